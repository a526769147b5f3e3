package main

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"plumb/backend"
	"plumb/internal/conform/telling"
	"plumb/program"
	"plumb/tensor"
)

// telling lists what a call tells apart, and which sort of arguments it has.
func (l *lifter) telling(c *liftedCall, p *program.Program, o *backend.Outcome) map[string]int {
	told := map[string]int{}
	ctx := context.Background()
	for _, n := range l.teller.Neighbours(p) {
		if other, err := l.teller.Run(ctx, n.Program); err == nil && telling.Tells(o, other) {
			told[n.Arg+" "+n.Kind] = muchTold
		}
	}
	shapes, dtypes := map[string]bool{}, map[tensor.DType]bool{}
	for _, name := range c.names {
		var ins []program.Input
		switch v := c.args[name].(type) {
		case program.Input:
			ins = []program.Input{v}
		case []program.Input:
			ins = v
		default:
			for _, k := range literalKinds(name, v) {
				told[k] = muchTold
			}
		}
		for _, in := range ins {
			for _, k := range inputKinds(name, in) {
				told[k] = someTold
			}
			shapes[fmt.Sprint(in.Shape)], dtypes[in.DType] = true, true
		}
	}
	if c.eval {
		told["evaluates"] = muchTold
	}
	if len(shapes) > 1 && !c.plain {
		told["gradients of several shapes"] = muchTold
	}
	if len(dtypes) > 1 {
		told[fmt.Sprint("dtypes ", slices.Sorted(maps.Keys(dtypes)))] = someTold
	}
	if !c.plain {
		told["gradients"] = muchTold
	}
	return told
}

// How much it counts that a call tells a value of an attribute, and that it has
// a sort of input; less than leastTold is not worth a case.
const (
	muchTold  = 3
	someTold  = 2
	leastTold = 2
)

// roomForEdges is how many elements there must be for one of each edge value to
// be among them.
const roomForEdges = 20

func inputKinds(name string, in program.Input) []string {
	var out []string
	roomy := tensor.NumElements(in.Shape) >= roomForEdges
	if in.Fill.Kinks && roomy {
		out = append(out, name+" kinks")
	}
	var special program.Special
	if roomy {
		special = in.Fill.Special
	}
	if in.Fill.Dist == program.Literal && in.DType.IsFloat() {
		special |= specialOf(in.Fill.Data)
	}
	for _, k := range special.Kinds() {
		out = append(out, name+" special "+k.String())
	}
	switch {
	case in.Strides != nil && len(in.Shape) > 3:
		out = append(out, name+" strided image")
	case in.Strides != nil:
		out = append(out, name+" strided")
	}
	switch {
	case len(in.Shape) == 0:
		out = append(out, name+" of no dimension")
	case slices.Contains(in.Shape, 0):
		out = append(out, name+" without elements")
	}
	return out
}

// specialOf are the edge values among elements.
func specialOf(t *tensor.Tensor) program.Special {
	var out program.Special
	seen := map[float64]bool{}
	for i := range t.Len() {
		v := t.Float(i)
		switch {
		case math.IsNaN(v):
			out |= program.NaNs
		case math.IsInf(v, 0):
			out |= program.Infs
		case v == 0:
			out |= program.Zeros
		case seen[v]:
			out |= program.Ties
		}
		seen[v] = true
	}
	return out
}

func literalKinds(name string, v any) []string {
	switch v := v.(type) {
	case nil, bool, string, tensor.DType:
		return []string{name + "=" + program.FormatArg(v)}
	case int64:
		if v < 0 {
			return []string{name + " negative"}
		}
	}
	return nil
}

// choose takes calls until no other tells anything more, each time the one that
// tells most.
func (l *lifter) choose(pool []*liftedCall) []*liftedCall {
	known := map[string]bool{}
	var chosen []*liftedCall
	for len(chosen) < mostRows {
		var best *liftedCall
		most := 0
		for _, c := range pool {
			n := 0
			for t, much := range c.tells {
				if !known[t] {
					n += much
				}
			}
			if n > most {
				best, most = c, n
			}
		}
		if best == nil || most < leastTold {
			break
		}
		chosen = append(chosen, best)
		for t := range best.tells {
			known[t] = true
		}
	}
	return chosen
}

// form is what calls of one entry share.
func (c *liftedCall) form() string {
	var b strings.Builder
	fmt.Fprint(&b, c.target, c.call, c.eval, c.plain, c.outputs)
	for _, name := range slices.Sorted(maps.Keys(c.args)) {
		fmt.Fprintf(&b, ";%s ", name)
		switch v := c.args[name].(type) {
		case program.Input:
			fmt.Fprint(&b, v.DType, v.RequiresGrad, fillText(v))
		case []program.Input:
			fmt.Fprint(&b, "list ", v[0].DType, v[0].RequiresGrad, fillText(v[0]))
		}
	}
	return b.String()
}
