package ops

import "plumb/op"

var lossOps []*op.Def
