package program

import (
	"slices"

	"plumb/tensor"
)

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

// Replace returns the program with other dtypes: of inputs, casts and cotangents,
// which keep the values that they have in p's dtypes. Factories that are given
// no dtype, and modules, stay what they are.
func Replace(p *Program, dtype func(tensor.DType) tensor.DType) *Program {
	r := *p
	r.Inputs = make([]Input, len(p.Inputs))
	for i, in := range p.Inputs {
		to := dtype(in.DType)
		if in.Fill.Data != nil {
			in.Fill.Data = in.Fill.Data.Convert(to)
		}
		in.DType = to
		r.Inputs[i] = in
	}
	r.Backward = slices.Clone(p.Backward)
	for i := range r.Backward {
		if r.Backward[i].Cotangent.Round == tensor.Invalid {
			r.Backward[i].Cotangent.Round = p.narrowest()
		}
	}
	r.Calls = make([]Call, len(p.Calls))
	for i, c := range p.Calls {
		if d, ok := casts[c.Target]; ok && dtype(d) != d {
			c.Target, c.Kwargs = "Tensor.to", append(slices.Clone(c.Kwargs), Kwarg{"dtype", dtype(d)})
		}
		r.Calls[i] = mapDTypes(c, dtype)
	}
	return &r
}

// casts are the methods that convert to a half type.
var casts = map[string]tensor.DType{"Tensor.half": tensor.F16, "Tensor.bfloat16": tensor.BF16}

// narrowest is the dtype that the floating inputs promote to, or float32.
func (p *Program) narrowest() tensor.DType {
	narrow := tensor.Invalid
	for i := range p.Inputs {
		if d := p.Inputs[i].DType; d.IsDifferentiable() {
			narrow = tensor.Promote(narrow, d)
		}
	}
	if narrow == tensor.Invalid {
		return tensor.F32
	}
	return narrow
}

// mapDTypes returns the call with other dtypes in its arguments.
func mapDTypes(c Call, dtype func(tensor.DType) tensor.DType) Call {
	wide := func(v any) any {
		if d, ok := v.(tensor.DType); ok {
			return dtype(d)
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

// narrowing maps casts by method to the widest of their kind.
var narrowing = map[string]string{
	"Tensor.half": "Tensor.double", "Tensor.bfloat16": "Tensor.double", "Tensor.float": "Tensor.double", "Tensor.cfloat": "Tensor.cdouble",
}

// factories are the functions that make tensors of the default dtype where they
// are given none. Those that are true take it from their numbers instead.
var factories = map[string]bool{
	"torch.arange": true, "torch.full": true, "torch.tensor": true,
	"torch.scalar_tensor": false, "torch.zeros": false, "torch.ones": false, "torch.empty": false, "torch.eye": false, "torch.linspace": false, "torch.logspace": false,
}

// makesFloats reports a factory that makes a tensor of the default dtype.
func makesFloats(c *Call) bool {
	fromNumbers, ok := factories[c.Target]
	if !ok || slices.ContainsFunc(c.Kwargs, func(kw Kwarg) bool { return kw.Name == "dtype" && kw.Value != nil }) {
		return false
	}
	return !fromNumbers || slices.ContainsFunc(c.Args, hasFloat) || slices.ContainsFunc(c.Kwargs, func(kw Kwarg) bool { return hasFloat(kw.Value) })
}

func hasFloat(v any) bool {
	switch v := v.(type) {
	case float64:
		return true
	case List:
		return slices.ContainsFunc(v, hasFloat)
	case Tuple:
		return slices.ContainsFunc(v, hasFloat)
	}
	return false
}

// rounded returns the numbers of v as they are in float32.
func rounded(v any) any {
	switch v := v.(type) {
	case float64:
		return float64(float32(v))
	case List:
		out := make(List, len(v))
		for i, e := range v {
			out[i] = rounded(e)
		}
		return out
	case Tuple:
		out := make(Tuple, len(v))
		for i, e := range v {
			out[i] = rounded(e)
		}
		return out
	}
	return v
}

// Widen returns the program computing in float64 and complex128 throughout:
// inputs, modules, cotangents, casts and tensors of the default dtype, float32,
// whose numbers are rounded to it first. Inputs and cotangents are to hold the
// values that p's have in their own dtype, so the wide program's results are
// the truth that p's approximate.
func Widen(p *Program) *Program {
	w := *p
	w.DType = tensor.F64
	w.Inputs = make([]Input, len(p.Inputs))
	for i, in := range p.Inputs {
		if in.Fill.Data != nil {
			in.Fill.Data = in.Fill.Data.Convert(Wide(in.DType))
		}
		in.DType = Wide(in.DType)
		w.Inputs[i] = in
	}
	narrow := p.narrowest()
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
	c = mapDTypes(c, Wide)
	args, kwargs := c.Args, c.Kwargs
	if makesFloats(&c) {
		if c.Target == "torch.full" || c.Target == "torch.tensor" || c.Target == "torch.scalar_tensor" {
			for i, a := range args {
				args[i] = rounded(a)
			}
			for i, kw := range kwargs {
				kwargs[i].Value = rounded(kw.Value)
			}
		}
		kwargs = append(slices.DeleteFunc(kwargs, func(kw Kwarg) bool { return kw.Name == "dtype" }), Kwarg{"dtype", tensor.F64})
	}
	c.Args, c.Kwargs = args, kwargs
	return c
}
