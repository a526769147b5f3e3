package ops

import "plumb/op"

var linalgOps []*op.Def
