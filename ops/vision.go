package ops

import "plumb/op"

var visionOps []*op.Def
