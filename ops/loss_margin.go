package ops

import "plumb/op"

// Losses with a margin.
var marginLosses = []*op.Def{}
