// Command plumb judges operators: it draws random programs from PyTorch-style
// tests, runs them on a reference and on candidates, and compares every tensor
// and gradient.
package main

import (
	"plumb/cmd/command"
	"plumb/ops"
)

func main() { command.Main(ops.Table(), nil) }
