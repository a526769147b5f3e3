package ops

import "plumb/op"

var indexOps []*op.Def
