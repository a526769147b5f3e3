package verdict

import (
	"slices"

	"plumb/backend"
	"plumb/internal/judge/compare"
	"plumb/internal/judge/truth"
	"plumb/op"
	"plumb/program"
	"plumb/tensor"
)

// maxScalars bounds the elements of a result that are computed exactly.
const maxScalars = 1 << 14

// scalarTruth returns a call's result correctly rounded to float64, where the
// call is a scalar function of floats that package exact knows; nil elsewhere.
// The inputs are the reference's.
func (j *judge) scalarTruth(w Where, want *tensor.Tensor) *tensor.Tensor {
	if j.policy.Table == nil || j.policy.NoScalars || w.Part != backend.PartValue && !j.isResult(w, want) || len(w.Path) > 0 || !want.DType().IsFloat() || want.Len() > maxScalars {
		return nil
	}
	if slices.ContainsFunc(j.p.Calls[:w.Call], func(c program.Call) bool { return inPlace(&c) }) {
		return nil // the arguments may have changed since they were compared
	}
	call, err := j.bound(w.Call, j.ref)
	if err != nil {
		return nil
	}
	f, operands, ok := scalarFunction(call, want)
	if !ok {
		return nil
	}
	truth := tensor.New(tensor.F64, want.Shape()...)
	at := make([]float64, f.Arity)
	for i := range truth.Len() {
		for k, o := range operands {
			at[k] = o.Float(i)
		}
		truth.Set(i, complex(f.Round(tensor.F64, at...), 0))
	}
	return truth
}

// exactly compares the candidate with the correctly rounded result where the
// sides disagree about what is infinite, NaN, or a zero of which sign: a
// reference that overflows on the way is not held against the candidate. It
// returns nil where the result is not known or the candidate is not right.
func (j *judge) exactly(w Where, want, got *tensor.Tensor, limit compare.Limit, o compare.Options) *Truth {
	exact := j.scalarTruth(w, want)
	if exact == nil {
		return nil
	}
	d := compare.Judge(exact.Convert(want.DType()), got, limit, o)
	if !d.OK {
		return nil
	}
	return &Truth{Where: w, Ratio: d.WorstRatio, values: exact}
}

// isResult reports whether what a call changed is its result: of an operator in
// place, under any name.
func (j *judge) isResult(w Where, want *tensor.Tensor) bool {
	if w.Part != backend.PartChange || w.Call >= len(j.ref.Values) {
		return false
	}
	result := j.ref.Values[w.Call].Tensor
	return result != nil && want != nil && result.SameBits(want)
}

// bound returns a call of the program as the table binds it to a side's values.
func (j *judge) bound(call int, side *backend.Outcome) (*op.Call, error) {
	c := &j.p.Calls[call]
	value := values(j.p, side)
	args, kwargs, err := c.OpArgs(func(r program.Ref) (any, error) {
		if t := value(r); t != nil {
			return t, nil
		}
		return nil, op.TypeError("%s is not a tensor", r)
	})
	if err != nil {
		return nil, err
	}
	return program.Resolve(j.policy.Table, c.Target, args, kwargs)
}

// scalarFunction returns the function of a bound call with its operands,
// broadcast to the result. The attributes beyond them must have their defaults.
func scalarFunction(call *op.Call, want *tensor.Tensor) (truth.Func, []*tensor.Tensor, bool) {
	id := call.Def.ID()
	if id == "gelu" && call.Args.Str("approximate") == "tanh" {
		id = "gelu:tanh"
	}
	f, ok := truth.Lookup(id)
	var operands []*tensor.Tensor
	for i, p := range call.Args.Sig.Params {
		v := call.Args.Vals[i]
		switch {
		case !ok:
		case len(operands) < f.Arity:
			o := operand(v, want)
			ok = o != nil
			operands = append(operands, o)
		case p.Name != "approximate":
			ok = p.HasDefault && v == p.Default
		}
	}
	return f, operands, ok && len(operands) == f.Arity
}

// operand returns an argument as the operator computes with it: a tensor of the
// result's dtype, or a number rounded to the dtype in which it computes.
func operand(v any, want *tensor.Tensor) *tensor.Tensor {
	var t *tensor.Tensor
	switch v := v.(type) {
	case *tensor.Tensor:
		if v.DType() != want.DType() {
			return nil
		}
		t = v
	case op.Scalar:
		t = computed(v.Float(), want.DType())
	case float64:
		t = computed(v, want.DType())
	default:
		return nil
	}
	t, err := t.Expand(want.Shape()...)
	if err != nil {
		return nil
	}
	return t
}

// computed returns a Python number as an operator on dtype d computes with it.
func computed(v float64, d tensor.DType) *tensor.Tensor {
	if d != tensor.F64 {
		d = tensor.F32
	}
	return tensor.Float64s(d, nil, v)
}
