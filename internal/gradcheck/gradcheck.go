// Package gradcheck compares the gradients of operators with difference
// quotients of their results, in float64 and complex128, for first and second
// order. One body serves every operator of a table: its Sample gives the calls.
//
// # What is differentiated
//
// A call has results y, each weighted by a fixed drawn tensor w of its shape:
// the first order is that of L = Re Σ conj(w)·y. The gradient of L with
// respect to each differentiable tensor argument is weighted in turn by a
// drawn v: the second order is that of Re Σ conj(v)·dL/dx, with respect to the
// arguments and to w. A gradient of a complex z is dL/d(Re z) + i·dL/d(Im z),
// as PyTorch's is; both parts are perturbed.
//
// # Rules
//
// f is one of the two sums as a function of one element, h = 2⁻¹³·max(1, |x|),
// D(h) the central difference quotient and s(h) the forward one less the
// backward one.
//
//  1. D(h/2) is what the gradient is held against. In a smooth place its
//     truncation error is a third of |D(h) − D(h/2)|, and s(h) = 2·s(h/2) up
//     to O(h³). The disagreement is |D(h) − D(h/2)| + |s(h) − 2·s(h/2)|: at
//     least a seventh of the change of slope where a kink lies within h/2.
//  2. An element is skipped, and counted as a kink, where the disagreement is
//     beyond 1e-5 + 1e-3·slope + rounding or f is not finite: there is a kink,
//     a jump or a pole. The two numbers are atol and rtol of torch.autograd.gradcheck;
//     the slope is the larger of the one-sided quotients.
//  3. Otherwise the limit is the disagreement + rounding, where rounding is
//     64·u·S/h for S = Σ|w|·(1 + |y|), u = 2⁻⁵³: 16 units in the last place, the
//     most that a pointwise operator may err by, at both ends, for results
//     that come from numbers around 1.
//
// Not every element is looked at: up to 8 of each argument in the first order;
// in the second, which is that of every fourth call, up to 4.
package gradcheck

import (
	"errors"
	"fmt"
	"slices"

	"plumb/op"
	"plumb/program"
	"plumb/tensor"
)

// Options says how much is drawn.
type Options struct {
	Seed  uint64
	Calls int // that are drawn per dtype; 0 means 12
	// DTypes are those to draw in; none means float64 and complex128.
	DTypes []tensor.DType
	// Arrange, where set, gives a differentiable tensor another layout or
	// shape, and reports whether it did. Calls in which no tensor changes are
	// left out, those that the operator refuses then are no findings, and of
	// the others the second order alone is checked, of up to 3.
	Arrange func(*tensor.Tensor) (*tensor.Tensor, bool)
	// Refusable says that the operator may refuse calls, which are no findings then.
	Refusable bool
}

// Report is what the check of one operator found.
type Report struct {
	ID string
	// None says why the operator has no gradient to check; "" when it has one.
	None string
	// Orders are those of the first and of the second order.
	Orders   [2]Order
	DTypes   []tensor.DType // in which gradients were checked
	Refused  error          // why some or all calls in complex numbers, or arranged, were not differentiated
	Findings []Finding
}

// Order counts the elements of one order.
type Order struct {
	Checked int
	Kinks   int
	Worst   float64 // the largest error ÷ limit
}

// Finding is a gradient that disagrees with the difference quotient, or that
// could not be computed.
type Finding struct {
	Order   int
	DType   tensor.DType
	Draw    int    // the number of the call
	Of      string // the tensor and element that is differentiated by
	Got     float64
	Want    float64 // the difference quotient
	Limit   float64
	Err     error // where there is no gradient at all
	Program *program.Program
}

// String says in one line what is wrong.
func (f *Finding) String() string {
	order := []string{"first", "second"}[f.Order-1]
	if f.Err != nil {
		return fmt.Sprintf("%s order, call %d in %s: %v", order, f.Draw, f.DType, f.Err)
	}
	return fmt.Sprintf("%s order, call %d in %s: by %s the gradient is %.10g, the difference quotient %.10g ± %.2g",
		order, f.Draw, f.DType, f.Of, f.Got, f.Want, f.Limit)
}

// Check draws calls of an operator of the table and checks their gradients.
func Check(table *op.Table, d *op.Def, o Options) *Report {
	r := &Report{ID: d.ID(), None: None(d)}
	if r.None != "" {
		return r
	}
	if o.Calls == 0 {
		o.Calls = 12
	}
	if o.DTypes == nil {
		o.DTypes = []tensor.DType{tensor.F64, tensor.C128}
	}
	for _, dt := range o.DTypes {
		c := &checker{Report: r, table: table, def: d, dtype: dt, arrange: o.Arrange, refusable: o.Refusable}
		for i := 0; i < o.Calls && c.arranged < 3; i++ {
			c.call(o.Seed, i)
		}
	}
	if r.Orders == [2]Order{} && len(r.Findings) == 0 {
		r.None = "no drawn call has a difference quotient: its results, or its arguments, are rounded to another dtype"
	}
	return r
}

// None returns why an operator has no gradient by definition; "" when it has one.
func None(d *op.Def) string {
	differentiable := func(p op.Param) bool {
		return p.Type.Kind == op.KTensor && !d.IsFixed(p.Name) && !slices.Contains(d.Mutates, op.TensorArg(p.Name))
	}
	switch {
	case d.Traits.Has(op.NoGrad):
		return "its results are not differentiable"
	case !slices.ContainsFunc(d.Sigs()[0].Params, differentiable):
		return "none of its arguments is differentiable"
	}
	return ""
}

type checker struct {
	*Report
	table *op.Table
	def   *op.Def
	dtype tensor.DType
	draw  int
	drawn *Call

	arrange   func(*tensor.Tensor) (*tensor.Tensor, bool)
	arranged  int // calls that were
	refusable bool
}

// orders prepare what is differentiated in the first and in the second order.
var orders = []struct {
	prepare  func(*Call) (*function, error)
	elements int // of each leaf
	every    int // so many calls one is looked at
}{{first, 8, 1}, {second, 4, 4}}

// call checks both orders of one drawn call. A panic is a finding: it is the
// operator's, not the checker's.
func (c *checker) call(seed uint64, i int) {
	defer func() {
		if p := recover(); p != nil {
			c.find(0, &Finding{Err: fmt.Errorf("the operator panicked: %v", p)})
		}
	}()
	var err error
	c.draw = i
	if c.drawn, err = draw(c.table, c.def, c.dtype, seed, i, c.arrange); err != nil {
		c.refuse(0, err)
		return
	}
	if c.arrange != nil {
		if !c.drawn.arranged {
			return
		}
		c.arranged++
	}
	for order, o := range orders {
		if skip := i%o.every != 0; skip && c.arrange == nil || order == 0 && c.arrange != nil {
			continue
		}
		f, err := o.prepare(c.drawn)
		switch {
		case errors.Is(err, errNothing):
		case err != nil:
			c.refuse(order, err)
			return
		default:
			c.function(order, f)
		}
	}
}

// refuse notes that a call, or its gradient, is rejected. Not every operator
// takes complex numbers, and not every one that does differentiates them.
func (c *checker) refuse(order int, err error) {
	var rejection *op.Error
	if (c.dtype == tensor.C128 || c.arrange != nil || c.refusable) && errors.As(err, &rejection) {
		c.Refused = err
		return
	}
	c.find(order, &Finding{Err: err})
}

func (c *checker) find(order int, f *Finding) {
	f.Order, f.DType, f.Draw = order+1, c.dtype, c.draw
	if c.drawn != nil {
		f.Program = c.drawn.Program("")
	}
	c.Findings = append(c.Findings, *f)
}

// function checks elements of every leaf, and stops at the first finding.
func (c *checker) function(order int, f *function) {
	o := &c.Orders[order]
	for li := range f.leaves {
		l := &f.leaves[li]
		for _, e := range l.elements(orders[order].elements) {
			q, err := f.quotient(l, e)
			switch {
			case err != nil:
				c.find(order, &Finding{Of: l.describe(e), Err: err})
				return
			case q.kink:
				o.Kinks++
				continue
			}
			o.Checked++
			if !slices.Contains(c.DTypes, c.dtype) {
				c.DTypes = append(c.DTypes, c.dtype)
			}
			got := l.gradient(e)
			ratio := q.ratio(got)
			o.Worst = max(o.Worst, ratio)
			if ratio > 1 {
				c.find(order, &Finding{Of: l.describe(e), Got: got, Want: q.value, Limit: q.limit})
				return
			}
		}
	}
}
