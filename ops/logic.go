package ops

import "plumb/op"

var logicOps []*op.Def
