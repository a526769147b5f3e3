package verdict

import (
	"math"
	"math/cmplx"
	"slices"

	"plumb/backend"
	"plumb/op"
	"plumb/program"
	"plumb/tensor"
)

// maxScalars bounds the elements of a result that are computed exactly.
const maxScalars = 1 << 14

// scalarTruth returns what a call's elements are by the operator's literal,
// rounded to float64; nil where the literal does not say. The inputs are the
// reference's.
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
	return exactResult(call, want)
}

// exactResult computes the Exact of a call's literal for each element of want;
// nil where it has none, or where the tensors are converted before.
func exactResult(call *op.Call, want *tensor.Tensor) *tensor.Tensor {
	if call.Def.Exact == nil {
		return nil
	}
	f := call.Def.Exact(call.Args)
	if f == nil {
		return nil
	}
	var operands []*tensor.Tensor
	for _, v := range call.Args.AllValues() {
		t, ok := v.(*tensor.Tensor)
		if !ok || t.DType() != want.DType() {
			return nil
		}
		t, err := t.Expand(want.Shape()...)
		if err != nil {
			return nil
		}
		operands = append(operands, t)
	}
	truth := tensor.New(tensor.F64, want.Shape()...)
	at := make([]float64, len(operands))
	for i := range truth.Len() {
		for k, o := range operands {
			at[k] = o.Float(i)
		}
		truth.Set(i, complex(f.Round(tensor.F64, at...), 0))
	}
	return truth
}

// exactly returns the correctly rounded result where the sides disagree about what is
// infinite, NaN, or a zero of which sign, and what the sides agree on elsewhere: a
// reference that overflows on the way is not held against the candidate. It returns nil
// where the result is not known.
func (j *judge) exactly(c *comparison) *tensor.Tensor {
	exact := j.scalarTruth(c.where, c.want)
	if exact == nil {
		return nil
	}
	for i := range exact.Len() {
		if w, g := c.want.At(i), c.got.At(i); sameKind(w, g) && (w == g || cmplx.IsNaN(w)) {
			exact.Set(i, w) // nobody asks: a literal may not know its function everywhere
		}
	}
	return exact
}

// rightly returns the candidate's elements with the reference's in the place of those that
// alone are infinite, NaN or a zero of the right sign; nil where there is none.
func rightly(want, got, exact *tensor.Tensor) (out *tensor.Tensor) {
	for i := range want.Len() {
		if w, g := want.At(i), got.At(i); !sameKind(w, g) && sameKind(exact.At(i), g) && (g == 0 || nonFinite(g)) {
			if out == nil {
				out = got.Clone()
			}
			out.Set(i, w)
		}
	}
	return out
}

// sameKind reports whether numbers are both NaN, the same infinity, zeros of one sign, or
// none of these.
func sameKind(a, b complex128) bool {
	if a == 0 && b == 0 {
		return math.Signbit(real(a)) == math.Signbit(real(b))
	}
	return nonFinite(a) == nonFinite(b) && (!nonFinite(a) || a == b || cmplx.IsNaN(a) && cmplx.IsNaN(b))
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
	return j.bind(call, values(j.p, side))
}

// bind binds a call of the program to the tensors that value tells.
func (j *judge) bind(call int, value func(program.Ref) *tensor.Tensor) (*op.Call, error) {
	c := &j.p.Calls[call]
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
