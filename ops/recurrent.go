package ops

import "plumb/op"

var recurrentOps []*op.Def
