package ops

import "plumb/op"

var arithOps []*op.Def
