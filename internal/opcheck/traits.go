package opcheck

import (
	"fmt"
	"math"
	"slices"

	"plumb/op"
	"plumb/tensor"
)

// trait is a property that calls made of a sampled one show.
type trait struct {
	name  string
	trait op.Trait
	// broken returns how the property does not hold for a call; "" where it does, or has nothing to say.
	broken func(c *checker, d *drawn) (how string, checked bool)
}

var traits = []trait{
	{"Commutative", op.Commutative, (*checker).commutative},
	{"Idempotent", op.Idempotent, (*checker).idempotent},
	{"Involution", op.Involution, (*checker).involution},
	{"ShapeOnly", op.ShapeOnly, (*checker).shapeOnly},
	{"Monotone", op.Monotone, (*checker).monotone},
	{"Compares", op.Compares, (*checker).compares},
	{"FollowsOrder", op.FollowsOrder, (*checker).followsOrder},
	{"Classifies", op.Classifies, (*checker).classifies},
	{"Cancels", op.Cancels, (*checker).cancels},
	{"Additive", op.Additive, (*checker).additive},
	{"View", op.View, (*checker).views},
	{"ItselfOrCopy", op.ItselfOrCopy, (*checker).itselfOrCopy},
}

// traits checks each trait of the literal, and the functions that state properties of calls.
func (c *checker) traits() {
	for _, t := range traits {
		if !c.def.Traits.Has(t.trait) {
			continue
		}
		checked := 0
		for _, d := range c.calls {
			c.try(d.Call, func() {
				how, did := t.broken(c, d)
				if how != "" {
					c.find("Traits", d.Call, "have %s: %s", t.name, how)
				}
				if did {
					checked++
					c.count()
				}
			})
		}
		if checked == 0 {
			c.gap("Traits", "of no sampled call "+t.name+" says anything")
		}
	}
	c.unread()
	c.neutral()
	c.itself()
	c.canonical()
	c.constant()
	c.dynamic()
}

// again runs a call and compares its first result with another.
func (c *checker) again(call *op.Call, want *tensor.Tensor) string {
	out, err := c.run(call)
	switch {
	case err != nil:
		return fmt.Sprintf("%s fails: %v", Describe(call), err)
	case !out[0].SameBits(want) && !alikeExactly(out[0], want):
		return fmt.Sprintf("%s is %s, not %s", Describe(call), text(out[0]), text(want))
	}
	return ""
}

// alikeExactly compares every element, NaN with NaN.
func alikeExactly(a, b *tensor.Tensor) bool {
	return a.DType() == b.DType() && slices.Equal(a.Shape(), b.Shape()) && sameElements(a, b)
}

// edges puts NaN, zeros and ties into the tensors of a call.
func edges(call *op.Call) *op.Call {
	turn := 0
	return with(call, func(x *tensor.Tensor) *tensor.Tensor {
		u := sameLayout(x)
		turn++
		for i := range u.Len() {
			if u.DType().IsFloat() && (i+turn)%3 == 0 {
				u.Set(i, complex([]float64{math.NaN(), 0, math.Inf(1), -0.5}[(i+turn)/3%4], 0))
			}
		}
		return u
	})
}

func (c *checker) commutative(d *drawn) (string, bool) {
	tensors := 0
	for i, p := range d.Args.Sig.Params[:min(2, len(d.Args.Vals))] {
		if _, ok := d.Args.Vals[i].(*tensor.Tensor); ok && p.Type.Kind == op.KTensor {
			tensors++
		}
	}
	if tensors < 2 {
		return "", false
	}
	for _, call := range []*op.Call{d.Call, edges(d.Call)} {
		out, err := c.run(call)
		if err != nil || len(c.def.Domains) > 0 && call != d.Call {
			continue
		}
		swapped := replaced(call, 0, call.Args.Vals[1])
		swapped.Args.Vals[1] = call.Args.Vals[0]
		if how := c.again(swapped, out[0]); how != "" {
			return how, true
		}
	}
	return "", true
}

func (c *checker) idempotent(d *drawn) (string, bool) {
	return c.again(replaced(d.Call, 0, d.out[0]), d.out[0]), true
}

func (c *checker) involution(d *drawn) (string, bool) {
	x, ok := d.Args.Vals[0].(*tensor.Tensor)
	if !ok {
		return "", false
	}
	return c.again(replaced(d.Call, 0, d.out[0]), x), true
}

func (c *checker) shapeOnly(d *drawn) (string, bool) {
	if len(d.Args.AllValues()) == 0 {
		return "", false
	}
	return c.again(others(d.Call, nil), d.out[0]), true
}

// others gives the tensors of the names, or all, other elements.
func others(call *op.Call, names []op.TensorArg) *op.Call {
	at := -1
	all := call.Args.ArgNames()
	return with(call, func(x *tensor.Tensor) *tensor.Tensor {
		at++
		u := sameLayout(x)
		if names == nil || slices.Contains(names, op.TensorArg(all[at])) {
			for i := range u.Len() {
				u.Set(i, 1-u.At(i))
			}
		}
		return u
	})
}

func (c *checker) monotone(d *drawn) (string, bool) {
	n := 0
	raised := with(d.Call, func(x *tensor.Tensor) *tensor.Tensor {
		u := sameLayout(x)
		for i := range u.Len() {
			if n++; u.DType().IsFloat() && n%3 != 0 {
				u.Set(i, u.At(i)+complex(float64(n%7)/4, 0))
			}
		}
		return u
	})
	checked := false
	for _, pair := range [][2]*op.Call{{d.Call, raised}, {mapElements(d.Call, func(v float64) float64 { return -v }), nil}, {mapElements(d.Call, func(v float64) float64 { return 3 * v }), nil}} {
		low, high := pair[0], pair[1]
		if high == nil {
			if len(c.def.Domains) > 0 {
				continue
			}
			high = mapElements(low, func(v float64) float64 { return v + 0.75 })
		}
		a, err := c.run(low)
		b, err2 := c.run(high)
		if err != nil || err2 != nil {
			continue
		}
		for i := range a {
			for e := range a[i].Len() {
				if a[i].DType().IsFloat() {
					checked = true
					if b[i].Float(e) < a[i].Float(e) {
						return fmt.Sprintf("element %d falls from %v to %v where arguments rise", e, a[i].Float(e), b[i].Float(e)), true
					}
				}
			}
		}
	}
	return "", checked
}

func (c *checker) compares(d *drawn) (string, bool) {
	ts := tensorsOf(d.Call)
	if len(ts) < 2 || len(d.Args.Vals) < 2 {
		return "", false
	}
	shape, err := tensor.BroadcastShapes(ts[0].Shape(), ts[1].Shape())
	if err != nil {
		return "", false
	}
	a, _ := ts[0].Expand(shape...)
	b, _ := ts[1].Expand(shape...)
	signs, zeros := tensor.New(tensor.F64, shape...), tensor.New(tensor.F64, shape...)
	for i := range signs.Len() {
		switch d := a.At(i) - b.At(i); {
		case imag(d) != 0 || real(d) < 0:
			signs.Set(i, -1)
		case real(d) > 0:
			signs.Set(i, 1)
		}
	}
	call := replaced(d.Call, 0, signs)
	call.Args.Vals[1] = zeros
	return c.again(call, d.out[0]), true
}

func (c *checker) followsOrder(d *drawn) (string, bool) {
	return c.again(mapElements(d.Call, func(v float64) float64 { return v * math.Abs(v) }), d.out[0]), true
}

func (c *checker) classifies(d *drawn) (string, bool) {
	return c.again(mapElements(d.Call, func(v float64) float64 {
		if math.IsInf(v, 0) || math.IsNaN(v) {
			return v
		}
		return -3*v + 1
	}), d.out[0]), true
}

// pair calls the operator with two tensors for its first two arguments, and the
// defaults of the others.
func (c *checker) pair(x, y *tensor.Tensor) ([]*tensor.Tensor, error) {
	call, err := c.table.ResolveID(c.def.ID(), []any{x, y}, nil)
	if err != nil {
		return nil, err
	}
	return c.run(call)
}

func (c *checker) cancels(d *drawn) (string, bool) {
	for _, x := range tensorsOf(d.Call) {
		out, err := c.pair(x, x)
		if err != nil {
			return "", false
		}
		for i := range out[0].Len() {
			if out[0].At(i) != 0 {
				return fmt.Sprintf("%v and itself give %v", x.At(i), out[0].At(i)), true
			}
		}
	}
	return "", true
}

func (c *checker) additive(d *drawn) (string, bool) {
	if !d.dtype.IsFloat() {
		return "", false
	}
	for _, x := range tensorsOf(d.Call) {
		zero := tensor.New(x.DType(), x.Shape()...)
		for _, pair := range [][2]*tensor.Tensor{{x, zero}, {zero, x}} {
			out, err := c.pair(pair[0], pair[1])
			if err != nil {
				return "", false
			}
			for i := range out[0].Len() {
				if v := out[0].At(i); v != x.At(i) && v != -x.At(i) {
					return fmt.Sprintf("0 and %v give %v", x.At(i), v), true
				}
			}
		}
	}
	return "", true
}

func (c *checker) views(d *drawn) (string, bool) {
	x := tensorsOf(d.Call)
	if len(x) == 0 {
		return "", false
	}
	out, err := d.Execute()
	if err != nil {
		return "", false
	}
	for _, y := range out {
		if y.Len() > 0 && !y.SharesStorage(x[0]) {
			return "the result is a copy", true
		}
	}
	return "", true
}

func (c *checker) itselfOrCopy(d *drawn) (string, bool) {
	out, err := d.Execute()
	if err != nil || len(d.Args.AllValues()) == 0 {
		return "", false
	}
	if x := tensorsOf(d.Call)[0]; x != out[0] && x.SharesStorage(out[0]) {
		return "the result is another view of the input", true
	}
	return "", true
}

// unread gives the tensors of which Unread says that nothing is read other elements.
func (c *checker) unread() {
	if c.def.Unread == nil || c.def.Traits.Has(op.Random) {
		return
	}
	for _, d := range c.calls {
		c.try(d.Call, func() {
			names := c.def.Unread(d.Args)
			if len(names) == 0 {
				return
			}
			c.count()
			if how := c.again(others(d.Call, names), d.out[0]); how != "" {
				c.find("Unread", d.Call, "names %v, whose elements change the results: %s", names, how)
			}
		})
	}
}

// neutral tries numbers that Neutral takes for neutral.
func (c *checker) neutral() {
	if c.def.Neutral == nil {
		return
	}
	found := 0
	for _, n := range []any{int64(0), int64(1), 0.0, math.Copysign(0, -1), 1.0, -1.0, 2.5} {
		for _, dt := range c.DTypes {
			if dt.IsComplex() || dt == tensor.Bool {
				continue
			}
			x := tensor.New(dt, 6)
			for i, v := range []float64{0, math.Copysign(0, -1), 3, -7, 1e4, 1} {
				x.Set(i, complex(v, 0))
			}
			call, err := c.table.ResolveID(c.def.ID(), []any{x, n}, nil)
			if err != nil {
				continue
			}
			c.try(call, func() {
				if !c.def.Neutral(call.Args) {
					return
				}
				found++
				c.count()
				if out, err := c.run(call); err == nil && out[0].DType() == dt && !out[0].SameBits(x) {
					c.find("Neutral", call, "says that %v leaves every bit, and the result is %s", n, text(out[0]))
				}
			})
		}
	}
	if found == 0 {
		c.find("Neutral", nil, "takes no number for neutral")
	}
}

// itself compares the result of which Itself says that it is the first argument.
func (c *checker) itself() {
	if c.def.Itself == nil {
		return
	}
	said := 0
	for _, d := range c.calls {
		c.try(d.Call, func() {
			if !c.def.Itself(d.Args) {
				return
			}
			said++
			c.count()
			if x := tensorsOf(d.Call)[0]; !d.out[0].SameBits(x) {
				c.find("Itself", d.Call, "says that the result is the first argument, and it is %s", text(d.out[0]))
			}
		})
	}
	if said == 0 {
		c.gap("Itself", "of no sampled call the result is the first argument")
	}
}

// canonical checks that the order into which Canonical brings results is one.
func (c *checker) canonical() {
	if c.def.Canonical == nil {
		return
	}
	for _, d := range c.calls {
		c.try(d.Call, func() {
			defer in("Canonical")
			once := c.def.Canonical(d.Args, d.out)
			twice := c.def.Canonical(d.Args, once)
			c.count()
			if !allAlike(c.def, twice, once) {
				c.find("Canonical", d.Call, "gives %s, and of that %s", list(once), list(twice))
			}
		})
	}
}

// constant checks that results do not change with a small step of the arguments
// on which Constant says that they do not depend smoothly.
func (c *checker) constant() {
	if c.def.Constant == nil {
		return
	}
	for _, d := range c.calls {
		if d.dtype != tensor.F64 {
			continue
		}
		c.try(d.Call, func() {
			names, all, at := c.def.Constant(d.Args), d.Args.ArgNames(), -1
			if len(names) == 0 {
				return
			}
			moved := with(d.Call, func(x *tensor.Tensor) *tensor.Tensor {
				at++
				u := sameLayout(x)
				if slices.Contains(names, op.TensorArg(all[at])) && u.DType() == tensor.F64 {
					for i := range u.Len() {
						u.Set(i, u.At(i)+1e-7)
					}
				}
				return u
			})
			c.count()
			out, err := c.run(moved)
			if err == nil && out[0].Len() > 0 && !allAlike(c.def, out, d.out) {
				c.find("Constant", d.Call, "names %v, and a step of 1e-7 moves the results from %s to %s", names, list(d.out), list(out))
			}
		})
	}
}

// dynamic checks that shapes depend on elements where the trait says so.
func (c *checker) dynamic() {
	if !c.def.Traits.Has(op.Dynamic) {
		return
	}
	for _, d := range c.calls {
		if d.DataDependentShape() {
			c.count()
			return
		}
	}
	c.find("Traits", c.calls[0].Call, "have Dynamic, though the shapes of every sampled call follow from the arguments' shapes")
}
