// Command python is the shared library of package userop's operators and Plumb's.
package main

import (
	"plumb/cmd/shared"
	"userop"
)

func init() { shared.Export(userop.Table()) }

func main() {}
