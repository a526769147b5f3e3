// Command plumb is Plumb with the operators of package userop.
package main

import (
	"plumb/cmd/command"
	"userop"
)

func main() { command.Main(userop.Table()) }
