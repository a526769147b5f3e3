package opcase

import (
	"math"
	"slices"
	"strings"

	"plumb/internal/draw/choice"
	"plumb/program"
	"plumb/tensor"
)

// edgeFloats are where ranges of numbers begin and end.
var edgeFloats = []float64{0, math.Copysign(0, -1), 1, -1, math.Nextafter(0, -1), math.Nextafter(1, 2), math.Nextafter(-1, -2), 0.5, 2, -2, -1e-6, 1 + 1e-6, 100, math.Inf(1), math.Inf(-1), math.NaN()}

// Edges draws a legal call and returns, for each number among its arguments, the
// calls in which it is at the edge of a range that it may have: 0, 1, the rank and
// the sizes of the tensors, and what lies just beside. The operator may take them
// or not; nothing is differentiated. Without floats those of other types are left
// as they are.
func (d Drawer) Edges(src *choice.Source, dt tensor.DType, floats bool) []*program.Program {
	base, err := d.sample(src, dt, pureName)
	if err != nil || strings.HasPrefix(base.target, "operator.") {
		return nil
	}
	for i := range base.Inputs {
		base.Inputs[i].RequiresGrad = false
	}
	var out []*program.Program
	write := func(c *call) {
		p := *base.Program
		p.Calls = []program.Call{c.written()}
		if p.Validate() == nil {
			out = append(out, &p)
		}
	}
	for i := range base.pos {
		if _, float := base.pos[i].(float64); float && !floats {
			continue
		}
		for _, v := range base.beside(base.pos[i]) {
			own := *base
			own.pos = slices.Clone(base.pos)
			own.pos[i] = v
			write(&own)
		}
	}
	for i := range base.kws {
		if _, float := base.kws[i].Value.(float64); float && !floats {
			continue
		}
		for _, v := range base.beside(base.kws[i].Value) {
			own := *base
			own.kws = slices.Clone(base.kws)
			own.kws[i].Value = v
			write(&own)
		}
	}
	return out
}

// Defaults draws a legal call and returns those in which its last arguments that
// have defaults, and its keywords, are left out.
func (d Drawer) Defaults(src *choice.Source, dt tensor.DType) []*program.Program {
	base, err := d.sample(src, dt, pureName)
	if err != nil {
		return nil
	}
	params := base.def.Sigs()[0].Params
	var out []*program.Program
	for len(base.kws) > 0 || len(base.pos) > 0 && len(base.pos) <= len(params) && params[len(base.pos)-1].HasDefault {
		own := *base
		if len(base.kws) > 0 {
			own.kws = slices.Clone(base.kws[:len(base.kws)-1])
		} else {
			own.pos = slices.Clone(base.pos[:len(base.pos)-1])
		}
		p := *base.Program
		p.Calls, p.Backward = nil, nil
		own.Program = &p
		base = &own
		if _, err := program.Resolve(d.Table, own.target, placeholders(own.pos), nil); err != nil && len(own.kws) == 0 {
			break
		}
		if d.record(&own) == nil && own.Validate() == nil {
			out = append(out, own.Program)
		}
	}
	return out
}

// placeholders are arguments that bind where those of a program would.
func placeholders(pos []any) []any {
	c := program.Call{Args: pos}
	args, _, err := c.OpArgs(func(program.Ref) (any, error) { return tensor.New(tensor.F32), nil })
	if err != nil {
		return nil
	}
	return args
}

// beside returns what an argument may be at the edges of its range.
func (c *call) beside(v any) []any {
	switch v := v.(type) {
	case float64:
		var out []any
		for _, e := range edgeFloats {
			out = append(out, e)
		}
		return out
	case int64:
		var out []any
		for _, e := range c.edgeInts() {
			out = append(out, e)
		}
		return out
	case string:
		return []any{"", "surprise", strings.ToUpper(v)}
	case program.Tuple:
		if isInts(v) {
			var out []any
			for _, e := range c.edgeInts() {
				out = append(out, replaced(v, len(v)-1, e), append(slices.Clone(v), e))
			}
			return append(out, program.Tuple{}, v[:len(v)-1])
		}
	case program.List:
		if isInts(v) {
			var out []any
			for _, e := range c.beside(program.Tuple(v)) {
				out = append(out, program.List(e.(program.Tuple)))
			}
			return out
		}
	}
	return nil
}

// edgeInts are 0 and 1, the ranks and sizes of the inputs, and their neighbours.
func (c *call) edgeInts() []int64 {
	all := []int64{-2, -1, 0, 1, 2}
	for i := range c.Inputs {
		n := int64(len(c.Inputs[i].Shape))
		all = append(all, n-1, n, n+1, -n, -n-1)
		for _, s := range c.Inputs[i].Shape {
			all = append(all, int64(s)-1, int64(s), int64(s)+1, -int64(s), -int64(s)-1)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
