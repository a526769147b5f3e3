package reffaults

import (
	"math"
	"math/cmplx"
	"reflect"
	"slices"

	"plumb/op"
	"plumb/ops"
	"plumb/program"
	"plumb/tensor"
)

// place says which elements of a result of a shape are such as a row says; nil where
// they belong to no elements of inputs.
type place = func(p *program.Program, shape []int) func(i int) bool

// inputsHave are the words of what a row's inputs have: in a call, and, where
// elements of its results belong to them, at which.
var inputsHave = map[string]inCalls{
	"nan":               someElement(func(v complex128) bool { return cmplx.IsNaN(v) }),
	"infinity":          someElement(cmplx.IsInf),
	"-0":                someElement(func(v complex128) bool { return v == 0 && math.Signbit(real(v)) }),
	"equal":             {hasEqualPlaces, equalAt},                                                    // two with floats, or the first and another, elements at one place
	"a bound":           {when: hasBound, at: boundAt},                                                // one, an element that is a number of the call
	"repeated":          {when: someInputIs(hasTwice)},                                                // one, an element twice
	"a tie":             {when: hasTie, at: tieAt},                                                    // the first with floats, an element twice along the dimensions of the call
	"nothing":           {when: someInputIs(func(in *program.Input) bool { return empty(*in) })},      // one, no elements
	"integers":          {when: someInputIs(func(in *program.Input) bool { return !hasFloats(*in) })}, // one, of bools too
	"negative integers": {when: someInputIs(func(in *program.Input) bool { return !hasFloats(*in) && hasOne(in, isNegative) })},
	"samples":           {when: someInputIs(func(in *program.Input) bool { return len(in.Shape) > 2 && in.Shape[0] > 1 })}, // several, each of channels
	"broadcast":         {when: shapesDiffer},                                                                              // several shapes
	"a diagonal":        {when: func(*program.Program) bool { return true }, at: offDiagonal},                              // one, and elements beside it differ
	"single":            {when: func(p *program.Program) bool { return len(p.Inputs) == 1 }},                               // there is one alone
}

// offDiagonal are the elements of square matrices that are not on their diagonals.
func offDiagonal(_ *program.Program, shape []int) func(int) bool {
	if len(shape) < 2 {
		return nil
	}
	n := shape[len(shape)-1]
	return func(i int) bool { return i/n%n != i%n }
}

// inCalls says in which calls a word is so, and at which places; at may be nil.
type inCalls struct {
	when func(*program.Program) bool
	at   place
}

func isNegative(v complex128) bool { return real(v) < 0 }

func hasFloats(in program.Input) bool { return in.DType.IsFloat() || in.DType.IsComplex() }

func someElement(f func(complex128) bool) inCalls {
	return inCalls{someInputIs(func(in *program.Input) bool { return hasOne(in, f) }), someInput(f)}
}

func someInputIs(f func(*program.Input) bool) func(*program.Program) bool {
	return func(p *program.Program) bool {
		return slices.ContainsFunc(p.Inputs, func(in program.Input) bool { return f(&in) })
	}
}

func hasOne(in *program.Input, f func(complex128) bool) bool {
	x := in.Materialize()
	for i := range x.Len() {
		if f(x.At(i)) {
			return true
		}
	}
	return false
}

// someInput are the elements at which one of the inputs has such an element.
func someInput(f func(complex128) bool) place {
	return func(p *program.Program, shape []int) func(int) bool {
		var at []func(int) complex128
		for i := range p.Inputs {
			if element := spread(&p.Inputs[i], shape); element != nil {
				at = append(at, element)
			}
		}
		if at == nil {
			return nil
		}
		return func(i int) bool {
			return slices.ContainsFunc(at, func(element func(int) complex128) bool { return f(element(i)) })
		}
	}
}

// spread returns the elements of an input broadcast to a shape; nil where it cannot be.
func spread(in *program.Input, shape []int) func(i int) complex128 {
	if to, err := tensor.BroadcastShapes(in.Shape, shape); err != nil || !slices.Equal(to, shape) {
		return nil
	}
	x, shift := in.Materialize(), len(shape)-len(in.Shape)
	return func(i int) complex128 {
		at, step := 0, 1
		for d := len(shape) - 1; d >= shift; d-- {
			if n := in.Shape[d-shift]; n > 1 {
				at += i % shape[d] * step
			}
			step *= in.Shape[d-shift]
			i /= shape[d]
		}
		return x.At(at)
	}
}

// allPlaces are the elements at which all that can be told is so.
func allPlaces(places []place) place {
	return func(p *program.Program, shape []int) func(int) bool {
		var at []func(int) bool
		for _, f := range places {
			if fits := f(p, shape); fits != nil {
				at = append(at, fits)
			}
		}
		if at == nil {
			return nil
		}
		return func(i int) bool { return !slices.ContainsFunc(at, func(fits func(int) bool) bool { return !fits(i) }) }
	}
}

// operands are the inputs with floats: of an operator of two, both.
func operands(p *program.Program) (all []*program.Input) {
	for i := range p.Inputs {
		if hasFloats(p.Inputs[i]) {
			all = append(all, &p.Inputs[i])
		}
	}
	return all
}

// hasEqualPlaces reports two inputs that are equal at a place.
func hasEqualPlaces(p *program.Program) bool {
	all := operands(p)
	if len(all) < 2 {
		return false
	}
	shape, err := all[0].Shape, error(nil)
	for _, in := range all[1:] {
		if shape, err = tensor.BroadcastShapes(shape, in.Shape); err != nil {
			return false
		}
	}
	equal := equalAt(p, shape)
	for i := range tensor.NumElements(shape) {
		if equal(i) {
			return true
		}
	}
	return false
}

func hasTwice(in *program.Input) bool {
	seen := map[complex128]bool{}
	return hasOne(in, func(v complex128) bool {
		twice := seen[v]
		seen[v] = true
		return twice
	})
}

// hasTie reports a tie, as tieAt has them, in the first input with floats.
func hasTie(p *program.Program) bool {
	all := operands(p)
	if len(all) == 0 {
		return false
	}
	shape := all[0].Shape
	tie := tieAt(p, shape)
	for i := range tensor.NumElements(shape) {
		if tie(i) {
			return true
		}
	}
	return false
}

// tieAt are the places of what the first input with floats has twice: along the
// dimensions of the call, where it has some.
func tieAt(p *program.Program, shape []int) func(int) bool {
	all := operands(p)
	if len(all) == 0 {
		return nil
	}
	element := spread(all[0], shape)
	if element == nil {
		return nil
	}
	row := rowOf(p, shape)
	type at struct {
		row int
		v   complex128
	}
	times := map[at]int{}
	for i := range tensor.NumElements(shape) {
		times[at{row(i), element(i)}]++
	}
	return func(i int) bool { return times[at{row(i), element(i)}] > 1 }
}

// rowOf numbers the rows of elements along the dimensions that a call is given:
// without some there is one.
func rowOf(p *program.Program, shape []int) func(i int) int {
	reduced := make([]bool, len(shape))
	for _, c := range p.Calls {
		given, _ := argumentNamed(&c, "dim")
		dims := []any{given}
		switch several := given.(type) {
		case program.List:
			dims = several
		case program.Tuple:
			dims = several
		}
		for _, d := range dims {
			if d, ok := d.(int64); ok && -len(shape) <= int(d) && int(d) < len(shape) {
				reduced[(int(d)+len(shape))%len(shape)] = true
			}
		}
	}
	if !slices.Contains(reduced, true) {
		return func(int) int { return 0 }
	}
	return func(i int) int {
		row, step := 0, 1
		for d := len(shape) - 1; d >= 0; d-- {
			if !reduced[d] {
				row += i % shape[d] * step
				step *= shape[d]
			}
			i /= shape[d]
		}
		return row
	}
}

// equalAt are the places at which the first input and another are equal.
func equalAt(p *program.Program, shape []int) func(int) bool {
	all := operands(p)
	if len(all) < 2 {
		return nil
	}
	var at []func(int) complex128
	for _, in := range all {
		element := spread(in, shape)
		if element == nil {
			return nil
		}
		at = append(at, element)
	}
	return func(i int) bool {
		return slices.ContainsFunc(at[1:], func(other func(int) complex128) bool { return other(i) == at[0](i) })
	}
}

// bounds are the numbers of the calls as elements of an input.
func bounds(p *program.Program, in *program.Input) (all []complex128) {
	for _, c := range p.Calls {
		values := slices.Clone(c.Args)
		for _, kw := range c.Kwargs {
			values = append(values, kw.Value)
		}
		for _, v := range values {
			if n, ok := v.(int64); ok {
				v = float64(n)
			}
			if x, ok := v.(float64); ok {
				all = append(all, tensor.Float64s(in.DType, []int{1}, x).At(0))
			}
		}
	}
	return all
}

func isBound(p *program.Program, in *program.Input) func(complex128) bool {
	all := bounds(p, in)
	return func(v complex128) bool { return slices.Contains(all, v) }
}

func hasBound(p *program.Program) bool {
	return slices.ContainsFunc(p.Inputs, func(in program.Input) bool { return hasFloats(in) && hasOne(&in, isBound(p, &in)) })
}

// boundAt are the places at which the first input is a number of the call.
func boundAt(p *program.Program, shape []int) func(int) bool {
	all := operands(p)
	if len(all) == 0 {
		return nil
	}
	element := spread(all[0], shape)
	if element == nil {
		return nil
	}
	is := isBound(p, all[0])
	return func(i int) bool { return is(element(i)) }
}

// shapesDiffer reports inputs of different shapes.
func shapesDiffer(p *program.Program) bool {
	return slices.ContainsFunc(p.Inputs, func(in program.Input) bool { return !slices.Equal(in.Shape, p.Inputs[0].Shape) })
}

// hasArguments reports a call whose arguments have the row's values.
func (r *subjectRow) hasArguments(p *program.Program) bool {
	return slices.ContainsFunc(p.Calls, func(c program.Call) bool {
		for name, values := range r.Arguments {
			v, given := argumentNamed(&c, name)
			if len(values) == 0 && !given || len(values) > 0 && !slices.ContainsFunc(values, func(want any) bool { return equalArgument(v, want) }) {
				return false
			}
		}
		return true
	})
}

func equalArgument(v, want any) bool {
	if n, ok := v.(int64); ok {
		v = float64(n)
	}
	return reflect.DeepEqual(v, want)
}

// argumentNamed returns an argument of a call by its name in the operator's signature;
// false where it is not given.
func argumentNamed(c *program.Call, name string) (v any, given bool) {
	for _, kw := range c.Kwargs {
		if kw.Name == name {
			return kw.Value, kw.Value != nil
		}
	}
	for _, d := range ops.Table().Lookup(c.Target) {
		for _, sig := range d.CalledAll(c.Target) {
			at := slices.IndexFunc(sig.Params, func(param op.Param) bool { return param.Name == name })
			if at >= 0 && at < len(c.Args) {
				return c.Args[at], c.Args[at] != nil
			}
		}
	}
	return nil, false
}
