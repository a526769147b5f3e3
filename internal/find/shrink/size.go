package shrink

import (
	"math"

	"plumb/program"
	"plumb/tensor"
)

// size orders programs: what comes first counts most. A person reads calls
// before elements, and elements before their digits.
type size struct {
	loose                                            int // inputs of which nothing says how ranks share them
	calls, backward, inputs                          int
	shared, uneven                                   int // how inputs lie on ranks
	elements, ranks, arguments, descriptions, values int
}

func (a size) less(b size) bool {
	x := [...]int{a.loose, a.calls, a.backward, a.inputs, a.shared, a.uneven, a.elements, a.ranks, a.arguments, a.descriptions, a.values}
	y := [...]int{b.loose, b.calls, b.backward, b.inputs, b.shared, b.uneven, b.elements, b.ranks, b.arguments, b.descriptions, b.values}
	for i := range x {
		if x[i] != y[i] {
			return x[i] < y[i]
		}
	}
	return false
}

func sizeOf(p *program.Program) size {
	s := size{backward: len(p.Backward), inputs: len(p.Inputs)}
	for i := range p.Inputs {
		in := &p.Inputs[i]
		elements := 1
		for _, d := range in.Shape {
			elements *= weightOfDim(d)
		}
		s.elements += elements
		s.ranks += len(in.Shape)
		s.descriptions += weightOfDType(in.DType)
		if in.Strides != nil {
			s.descriptions += 4
		}
		if in.RequiresGrad {
			s.descriptions++
		}
		s.values += weightOfFill(&in.Fill, elements)
	}
	for i := range p.Calls {
		if p.Calls[i].Target == program.ToGlobal {
			shared, uneven := lyingOf(p, &p.Calls[i]).weights(p)
			s.shared, s.uneven = s.shared+shared, s.uneven+uneven
			continue
		}
		s.calls++
		for _, a := range p.Calls[i].Args {
			s.arguments += 1 + weightOfArg(a)
		}
		for _, kw := range p.Calls[i].Kwargs {
			s.arguments += 2 + weightOfArg(kw.Value)
		}
	}
	s.descriptions += weightOfDType(p.DType) + inPlaceCalls(p)
	if p.Second.Dist != "" {
		s.backward++
	}
	if p.Step != (program.Step{}) {
		s.backward++
	}
	for i := range p.Backward {
		s.values += weightOfFill(&p.Backward[i].Cotangent, 1)
	}
	return s
}

// weightOfDim lets nothing at all count as more than one element: an empty
// tensor shows less.
func weightOfDim(d int) int {
	if d == 0 {
		return 2
	}
	return d
}

func weightOfDType(d tensor.DType) int {
	switch d {
	case tensor.Invalid, tensor.F32, tensor.I64, tensor.C64, tensor.Bool:
		return 0
	}
	return 1
}

func weightOfArg(v any) int {
	switch v := v.(type) {
	case bool:
		if v {
			return 1
		}
	case int64:
		return weightOfNumber(float64(v))
	case float64:
		return weightOfNumber(v)
	case complex128:
		return weightOfNumber(real(v)) + weightOfNumber(imag(v))
	case program.List:
		return weightOfArgs(v)
	case program.Tuple:
		return weightOfArgs(v)
	case program.Slice:
		return weightOfArgs([]any{v.Start, v.Stop, v.Step})
	case string, program.Ref:
		return 1
	}
	return 0
}

func weightOfArgs(vs []any) int {
	w := len(vs)
	for _, v := range vs {
		w += weightOfArg(v)
	}
	return w
}

// weightOfNumber orders 0, 1, -1, 2, … and fractions after small integers.
func weightOfNumber(f float64) int {
	switch {
	case math.IsNaN(f) || math.IsInf(f, 0):
		return 50
	case f != math.Trunc(f):
		return 60
	}
	w := int(min(2*math.Abs(f), 40))
	if f < 0 || math.Signbit(f) {
		w++
	}
	return w
}

func weightOfFill(f *program.Fill, elements int) int {
	switch f.Dist {
	case "":
		return 0
	case program.Literal:
		w := 0
		for i := range f.Data.Len() {
			c := f.Data.At(i)
			w += weightOfNumber(real(c)) + weightOfNumber(imag(c))
		}
		return w
	case program.Integer:
		if f.Hi-f.Lo <= 1 {
			return elements * weightOfNumber(f.Lo)
		}
		return 61 * elements
	}
	w := 63 * elements
	if f.Kinks {
		w++
	}
	if f.Scales {
		w++
	}
	if f.Special != 0 {
		w += 2
	}
	return w
}
