package ops

import "plumb/op"

var attentionOps []*op.Def
