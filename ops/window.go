package ops

import "plumb/op"

var windowOps []*op.Def
