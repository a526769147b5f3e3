package rounding

import (
	"math"
	"slices"

	"plumb/op"
	"plumb/tensor"
)

// step is how far the operands of a sum of products are moved to see how far
// the sum moves: small beside 1, large beside the roundoff of float64.
const step = 0x1p-20

// sums bounds sums of products: the roundings of the sum, and what the errors
// of its operands become in it.
func (c *applied) sums() []*state {
	terms, err := c.magnitude(func(v op.Value) *tensor.Tensor { return absolute(tensorOf(v)) })
	if err != nil {
		return nil
	}
	count := c.roundings()
	summed := func(i int) *state { return &state{terms: terms[i], count: count} }
	if !c.inexact && c.integral && !c.call.Def.Tol.Fractional && below(terms, 1/c.unit) && whole(c.out) {
		return each(len(terms), func(i int) *state { st := summed(i); st.integral = true; return st })
	}
	moved := terms
	if c.inexact {
		moved, err = c.magnitude(c.enlarged)
		if err != nil {
			return nil
		}
	}
	return each(len(terms), func(i int) *state {
		st := summed(i)
		st.err = tensor.New(tensor.F64, terms[i].Shape()...)
		e, m, t := tensor.Data[float64](st.err), tensor.Data[float64](moved[i]), tensor.Data[float64](terms[i])
		exactTerm := c.exactTerm(terms[i].Shape())
		for j := range e {
			if math.IsInf(t[j], 1) { // an infinite term leaves nothing to round
				continue
			}
			e[j] = max(m[j]-t[j], 0) / step
			if size := t[j]; !exactTerm(j) || c.near && Near*c.unit*e[j] > size {
				e[j] += c.rounded(count, size, e[j])
			}
		}
		return st
	})
}

// moved carries the errors along with elements that are moved, not computed.
func (c *applied) moved() []*state {
	errs, err := c.magnitude(func(v op.Value) *tensor.Tensor {
		if e := c.of(v).err; e != nil {
			return e
		}
		return tensor.New(tensor.F64, v.Shape()...)
	})
	if err != nil {
		return nil
	}
	terms, count := c.movedTerms()
	return each(len(errs), func(i int) *state {
		if errs[i].DType() != tensor.F64 {
			return &state{unknown: true}
		}
		st := &state{err: errs[i]}
		if len(terms) == len(errs) {
			st.terms, st.count = terms[i], count
		}
		return st
	})
}

// movedTerms are those of a sum whose elements are moved, and of nothing else with them.
func (c *applied) movedTerms() ([]*tensor.Tensor, float64) {
	operands := c.call.Args.AllValues()
	if len(operands) != 1 || c.of(operands[0]).terms == nil {
		return nil, 0
	}
	of := c.of(operands[0])
	terms, err := c.magnitude(func(op.Value) *tensor.Tensor { return of.terms })
	if err != nil {
		return nil, 0
	}
	return terms, of.count
}

// enlarged returns the absolute values of an operand moved by its errors.
func (c *applied) enlarged(v op.Value) *tensor.Tensor {
	x := absolute(tensorOf(v))
	if e := c.of(v).err; e != nil {
		addScaled(x, e, step)
	}
	return x
}

// cancels reports a finite value less itself, which is 0 whatever its error.
func cancels(call *op.Call) bool {
	vs := call.Args.AllValues()
	if !call.Def.Traits.Has(op.Cancels) || len(vs) != 2 || !unscaled(call) {
		return false
	}
	a, b := tensorOf(vs[0]), tensorOf(vs[1])
	return a.SharesStorage(b) && a.Offset() == b.Offset() && slices.Equal(a.Shape(), b.Shape()) && slices.Equal(a.Strides(), b.Strides()) &&
		below([]*tensor.Tensor{absolute(a)}, math.MaxFloat64)
}

// unscaled reports that the numbers of a call which scale its operands are 1.
func unscaled(call *op.Call) bool {
	for i, p := range call.Args.Sig.Params {
		if x, ok := call.Args.Vals[i].(op.Scalar); ok && p.HasDefault && x.Float() != 1 {
			return false
		}
	}
	return true
}

// exactTerm reports, for a sum or a difference, which results have a term that
// is 0, without error, and so are the other term: nothing rounds.
func (c *applied) exactTerm(shape []int) func(i int) bool {
	none := func(int) bool { return false }
	if !c.call.Def.Traits.Has(op.Additive) || !unscaled(c.call) {
		return none
	}
	var terms []*tensor.Tensor
	for _, v := range c.call.Args.AllValues() {
		t, err := tensorOf(v).Expand(shape...)
		if err != nil {
			return none
		}
		if c.of(v).err == nil {
			terms = append(terms, t)
		}
	}
	switch len(terms) {
	case 0:
		return none
	case 1:
		return zeroAt(terms[0])
	}
	x, y := zeroAt(terms[0]), zeroAt(terms[1])
	return func(i int) bool { return x(i) || y(i) }
}

// zeroAt tells which elements are 0.
func zeroAt(t *tensor.Tensor) func(i int) bool {
	if t.DType() != tensor.F64 {
		return func(i int) bool { return t.At(i) == 0 }
	}
	data := reals(t)
	return func(i int) bool { return data[i] == 0 }
}

// sumsProducts reports whether the results of a call are sums of products.
func sumsProducts(call *op.Call) bool {
	d := call.Def
	return d.Magnitude != "" && (d.HasMagnitude == nil || d.HasMagnitude(call.Args))
}

// magnitude is magnitudeOf with numbers replaced by their absolute values.
func (c *applied) magnitude(of func(op.Value) *tensor.Tensor) ([]*tensor.Tensor, error) {
	return c.magnitudeOf(of, func(_ op.Param, v op.Scalar) float64 {
		c := v.Complex()
		return math.Hypot(real(c), imag(c))
	})
}

// magnitudeOf computes the call's magnitude operator on other tensors in place of
// its floating-point ones, and on other numbers. The results are contiguous.
func (c *applied) magnitudeOf(of func(op.Value) *tensor.Tensor, number func(op.Param, op.Scalar) float64) ([]*tensor.Tensor, error) {
	def := c.table.Def(c.call.Def.Magnitude)
	replaced := c.call.Args.MapValues(func(v op.Value) op.Value {
		switch d := v.DType(); {
		case d.IsDifferentiable():
			return of(v)
		case c.call.Def.ScalarFunction() && d != tensor.Bool: // a number, no index
			return absolute(tensorOf(v))
		}
		return tensorOf(v)
	})
	for i, v := range replaced.Vals {
		if sc, ok := v.(op.Scalar); ok {
			replaced.Vals[i] = op.ScalarOf(number(c.call.Args.Sig.Params[i], sc))
		}
	}
	abs := &op.Call{Def: def, Args: replaced}
	if def != c.call.Def {
		var err error
		if abs, err = c.table.ResolveID(def.ID(), nil, shared(def, replaced)); err != nil {
			return nil, err
		}
	}
	out, err := abs.Execute()
	for i := range out {
		out[i] = out[i].Contiguous()
	}
	return out, err
}

// shared returns the arguments that def has a parameter for.
func shared(def *op.Def, a op.Args) []op.Kwarg {
	var kwargs []op.Kwarg
	for i, p := range a.Sig.Params {
		if v := a.Vals[i]; v != nil && def.Sigs()[0].Index(op.AnyArg(p.Name)) >= 0 {
			kwargs = append(kwargs, op.Kw(p.Name, v))
		}
	}
	return kwargs
}
