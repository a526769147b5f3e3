// Package shared makes a table of operators a shared library for those who do not
// write Go: with C's interface in plumb.h, and the Python package that plumb ops
// wheel makes of it. A library of your own is a main package of three lines, built
// by go build -buildmode=c-shared:
//
//	func init() { shared.Export(op.NewTable(append(mine, ops.All()...)...)) }
//
//	func main() {}
//
// It is the only package with cgo.
package shared

import (
	"fmt"
	"os"

	"plumb/internal/foreign"
	"plumb/op"
)

//lint:ignore U1000 what is exported to C, which is not built without cgo, serves it
var library *foreign.Library

// Export gives the library its operators; the error is that of making the table. It
// is called once, while the program is initialised.
func Export(table *op.Table, err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "plumb: the table of operators:", err)
		os.Exit(2)
	}
	library = foreign.New(table)
}
