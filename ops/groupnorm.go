package ops

import "plumb/op"

var groupNormOps []*op.Def
