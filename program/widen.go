package program

import "plumb/tensor"

// Wide returns the dtype of d's kind with the most precision.
func Wide(d tensor.DType) tensor.DType {
	switch {
	case d.IsFloat():
		return tensor.F64
	case d.IsComplex():
		return tensor.C128
	}
	return d
}

// narrowing maps casts by method to the widest of their kind.
var narrowing = map[string]string{
	"Tensor.half": "Tensor.double", "Tensor.bfloat16": "Tensor.double", "Tensor.float": "Tensor.double", "Tensor.cfloat": "Tensor.cdouble",
}

// Widen returns the program computing in float64 and complex128 throughout:
// inputs, modules, cotangents and casts. Inputs and cotangents are to hold the
// values that p's have in their own dtype, so the wide program's results are
// the truth that p's approximate.
func Widen(p *Program) *Program {
	w := *p
	w.DType = tensor.F64
	w.Inputs = make([]Input, len(p.Inputs))
	narrow := tensor.Invalid
	for i, in := range p.Inputs {
		if in.DType.IsDifferentiable() {
			narrow = tensor.Promote(narrow, in.DType)
		}
		if in.Fill.Data != nil {
			in.Fill.Data = in.Fill.Data.Convert(Wide(in.DType))
		}
		in.DType = Wide(in.DType)
		w.Inputs[i] = in
	}
	if narrow == tensor.Invalid {
		narrow = tensor.F32
	}
	if w.Second.Dist != "" && w.Second.Round == tensor.Invalid {
		w.Second.Round = narrow
	}
	w.Calls = make([]Call, len(p.Calls))
	for i, c := range p.Calls {
		w.Calls[i] = widenCall(c)
	}
	w.Backward = make([]Backward, len(p.Backward))
	for i, b := range p.Backward {
		if b.Cotangent.Round == tensor.Invalid {
			b.Cotangent.Round = narrow
		}
		w.Backward[i] = b
	}
	return &w
}

func widenCall(c Call) Call {
	if wide, ok := narrowing[c.Target]; ok {
		c.Target = wide
	}
	wide := func(v any) any {
		if d, ok := v.(tensor.DType); ok {
			return Wide(d)
		}
		return v
	}
	args := make([]any, len(c.Args))
	for i, a := range c.Args {
		args[i] = wide(a)
	}
	kwargs := make([]Kwarg, len(c.Kwargs))
	for i, kw := range c.Kwargs {
		kwargs[i] = Kwarg{kw.Name, wide(kw.Value)}
	}
	c.Args, c.Kwargs = args, kwargs
	return c
}
