package ops

import "plumb/op"

var statOps []*op.Def
