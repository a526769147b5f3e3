package ops

import "plumb/op"

var randomOps []*op.Def
