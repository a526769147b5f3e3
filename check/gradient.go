package check

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"plumb/choice"
	"plumb/eager"
	"plumb/op"
	"plumb/program"
	"plumb/tensor"
)

// FirstOrder compares the gradients of one sampled call in float64 with central
// difference quotients, and returns how many elements it checked.
func FirstOrder(table *op.Table, d *op.Def, key uint64) (checked int, err error) {
	s := eager.New(table)
	args, leaves := Sample(d, s, key)
	out, err := apply(s, d, args)
	if err != nil {
		return 0, fmt.Errorf("sample %d: %w", key, err)
	}
	_, values, weights := weigh(s, out)
	if len(values) == 0 {
		return 0, nil
	}
	grads, err := s.Backward(values, weights, false)
	if err != nil {
		return 0, fmt.Errorf("sample %d: %w", key, err)
	}
	loss := func() float64 {
		s := eager.New(table)
		out, failed := apply(s, d, args)
		if failed != nil {
			err = failed
			return 0
		}
		total, _, _ := weigh(s, out)
		return total
	}
	for li, leaf := range leaves {
		g, _ := grads[leaf].(*eager.Var)
		for i := range min(leaf.Len(), 8) {
			i = i * 7 % leaf.Len()
			want, got := central(leaf, i, loss), 0.0
			if g != nil {
				got = g.Float(i)
			}
			checked++
			if err != nil {
				return checked, fmt.Errorf("sample %d, near its point: %w", key, err)
			}
			if !near(got, want) {
				return checked, fmt.Errorf("sample %d, tensor %d (%v), element %d: gradient %v, difference quotient %v", key, li, leaf.Tensor, i, got, want)
			}
		}
	}
	return checked, nil
}

// SecondOrder differentiates Σ gᵢ², g the gradients of one sampled call, and
// compares with central difference quotients.
func SecondOrder(table *op.Table, d *op.Def, key uint64) error {
	build := func(s *eager.Session, args []any, leaves []*eager.Var) (op.Value, error) {
		out, err := apply(s, d, args)
		if err != nil {
			return nil, err
		}
		_, values, weights := weigh(s, out)
		if len(values) == 0 {
			return nil, errNothing
		}
		grads, err := s.Backward(values, weights, true)
		if err != nil {
			return nil, err
		}
		b := s.Builder()
		var total op.Value
		err = op.Catch(func() {
			for _, leaf := range leaves {
				g := grads[leaf]
				if g == nil || !eager.RequiresGrad(g) {
					continue
				}
				sq := b.Op("sum", b.Mul(g, g))
				if total == nil {
					total = sq
				} else {
					total = b.Add(total, sq)
				}
			}
		})
		if total == nil {
			return nil, errNothing
		}
		return total, err
	}
	s := eager.New(table)
	args, leaves := Sample(d, s, key)
	total, err := build(s, args, leaves)
	if errors.Is(err, errNothing) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("sample %d, second order: %w", key, err)
	}
	grads, err := s.Backward([]op.Value{total}, []op.Value{tensor.Float64s(tensor.F64, nil, 1)}, false)
	if err != nil {
		return fmt.Errorf("sample %d, second order: %w", key, err)
	}
	loss := func() float64 {
		v, failed := build(eager.New(table), args, leaves)
		if failed != nil {
			err = failed
			return 0
		}
		return v.(*eager.Var).Float(0)
	}
	for li, leaf := range leaves {
		if leaf.Len() == 0 {
			continue
		}
		i := leaf.Len() / 2
		want, got := central(leaf, i, loss), 0.0
		if g, ok := grads[leaf].(*eager.Var); ok {
			got = g.Float(i)
		}
		if err != nil {
			return fmt.Errorf("sample %d, second order, near its point: %w", key, err)
		}
		if math.Abs(got-want) > 1e-4+1e-3*math.Abs(want) {
			return fmt.Errorf("sample %d, tensor %d (%v), element %d: second-order gradient %v, difference quotient %v", key, li, leaf.Tensor, i, got, want)
		}
	}
	return nil
}

var errNothing = errors.New("no gradient depends on the inputs")

// Rounds reports whether d's first sample results in another dtype than
// float64, so that there is no difference quotient.
func Rounds(table *op.Table, d *op.Def) bool {
	s := eager.New(table)
	args, _ := Sample(d, s, 0)
	out, err := apply(s, d, args)
	return err == nil && out[0].DType() != tensor.F64
}

// Sample draws one call of d in float64 and wraps its differentiable tensors
// as leaves that want gradients.
func Sample(d *op.Def, s *eager.Session, key uint64) (args []any, leaves []*eager.Var) {
	src := &op.Sampler{Source: choice.New(key), DType: tensor.F64}
	var wrap func(any, string) any
	wrap = func(a any, name string) any {
		switch a := a.(type) {
		case *tensor.Tensor:
			v := s.Leaf(a, a.DType().IsDifferentiable() && !slices.Contains(d.Fixed, name))
			if v.RequiresGrad() {
				leaves = append(leaves, v)
			}
			return v
		case []any:
			for i := range a {
				a[i] = wrap(a[i], name)
			}
		case op.Kwarg:
			return op.Kw(a.Name, wrap(a.Value, a.Name))
		}
		return a
	}
	for i, a := range d.Sample(src) {
		args = append(args, wrap(a, d.Sigs()[0].Params[i].Name))
	}
	return args, leaves
}

func apply(s *eager.Session, d *op.Def, args []any) ([]op.Value, error) {
	var pos []any
	var kws []op.Kwarg
	for _, a := range args {
		if kw, ok := a.(op.Kwarg); ok {
			kws = append(kws, kw)
		} else {
			pos = append(pos, a)
		}
	}
	return s.Apply(d.ID(), pos, kws)
}

// weigh returns Σ wᵢ·yᵢ over the differentiable results, with fixed weights.
func weigh(s *eager.Session, out []op.Value) (float64, []op.Value, []op.Value) {
	total := 0.0
	var values, weights []op.Value
	for i, v := range out {
		x := v.(*eager.Var)
		if x.DType() != tensor.F64 {
			continue // rounded or complex: no difference quotient
		}
		w := tensor.New(x.DType(), x.Shape()...)
		fill := program.Fill{Dist: program.Uniform, Lo: 0.5, Hi: 1.5, Key: uint64(i)}
		fill.Into(w)
		for j := range w.Len() {
			total += w.Float(j) * x.Float(j)
		}
		if x.RequiresGrad() {
			values, weights = append(values, v), append(weights, s.Leaf(w, false))
		}
	}
	return total, values, weights
}

// central returns the central difference quotient of f at leaf element i.
func central(leaf *eager.Var, i int, f func() float64) float64 {
	const h = 1e-5
	x := leaf.At(i)
	leaf.Set(i, x+complex(h, 0))
	up := f()
	leaf.Set(i, x-complex(h, 0))
	down := f()
	leaf.Set(i, x)
	return (up - down) / (2 * h)
}

func near(got, want float64) bool {
	return math.Abs(got-want) <= 1e-5+1e-4*math.Abs(want)
}
