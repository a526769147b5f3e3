package ops

import "plumb/op"

var einsumOps []*op.Def
