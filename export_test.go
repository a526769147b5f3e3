package plumb

import "plumb/internal/draw/choice"

// Source is where the case's decisions come from.
func (p *T) Source() *choice.Source { return p.gen.Source }
