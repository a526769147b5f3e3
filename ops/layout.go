package ops

import "plumb/op"

var layoutOps []*op.Def
