package ops

import "plumb/op"

var ternaryOps []*op.Def
