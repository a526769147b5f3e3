package ops

import "plumb/op"

var createOps []*op.Def
