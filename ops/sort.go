package ops

import "plumb/op"

var sortOps []*op.Def
