// Command plumblib is the shared library of Plumb's own operators:
//
//	go build -buildmode=c-shared -o libplumb.so ./cmd/plumblib
package main

import (
	"plumb/cmd/shared"
	"plumb/op"
	"plumb/ops"
)

func init() { shared.Export(op.NewTable(ops.All()...)) }

func main() {}
