package ops

import "plumb/op"

var scanOps []*op.Def
