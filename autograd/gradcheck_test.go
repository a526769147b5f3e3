package autograd_test

import (
	"errors"
	"math"
	"testing"

	"plumb/autograd"
	"plumb/choice"
	"plumb/eager"
	"plumb/op"
	"plumb/ops"
	"plumb/program"
	"plumb/tensor"
)

// sample draws one call of d in float64 and wraps its differentiable tensors
// as leaves that want gradients.
func sample(d *op.Def, s *eager.Session, key uint64) (args []any, leaves []*eager.Var) {
	src := &op.Sampler{Source: choice.New(key), DType: tensor.F64}
	var wrap func(any) any
	wrap = func(a any) any {
		switch a := a.(type) {
		case *tensor.Tensor:
			v := s.Leaf(a, a.DType().IsDifferentiable())
			if v.RequiresGrad() {
				leaves = append(leaves, v)
			}
			return v
		case []any:
			for i := range a {
				a[i] = wrap(a[i])
			}
		case op.Kwarg:
			return op.Kw(a.Name, wrap(a.Value))
		}
		return a
	}
	for _, a := range d.Sample(src) {
		args = append(args, wrap(a))
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
func weigh(out []op.Value) (float64, []op.Value, []op.Value) {
	total := 0.0
	var values, weights []op.Value
	for i, v := range out {
		x := v.(*eager.Var)
		if !x.DType().IsDifferentiable() {
			continue
		}
		w := tensor.New(x.DType(), x.Shape()...)
		fill := program.Fill{Dist: program.Uniform, Lo: 0.5, Hi: 1.5, Key: uint64(i)}
		fill.Into(w)
		for j := range w.Len() {
			total += w.Float(j) * x.Float(j)
		}
		if x.RequiresGrad() {
			values, weights = append(values, v), append(weights, w)
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

func close(got, want float64) bool {
	return math.Abs(got-want) <= 1e-5+1e-4*math.Abs(want)
}

// TestGradients compares every gradient rule with difference quotients, first
// and second order.
func TestGradients(t *testing.T) {
	for _, d := range ops.All() {
		table := ops.Table()
		if table.Def(d.ID()).Traits.Has(op.NoGrad) {
			continue
		}
		d = table.Def(d.ID())
		t.Run(d.ID(), func(t *testing.T) {
			if d.Sample == nil {
				t.Fatal("a differentiable operator has no Sample")
			}
			checked := 0
			for key := range uint64(12) {
				checked += checkFirst(t, d, key)
				if key < 4 {
					checkSecond(t, d, key)
				}
			}
			if checked == 0 {
				t.Error("no gradient was checked")
			}
		})
	}
}

func checkFirst(t *testing.T, d *op.Def, key uint64) (checked int) {
	s := eager.New(ops.Table())
	args, leaves := sample(d, s, key)
	out, err := apply(s, d, args)
	if err != nil {
		t.Fatalf("sample %d: %v", key, err)
	}
	_, values, weights := weigh(out)
	if len(values) == 0 {
		return 0
	}
	grads, err := s.Backward(values, weights, false)
	if err != nil {
		t.Fatalf("sample %d: %v", key, err)
	}
	loss := func() float64 {
		out, err := apply(eager.New(ops.Table()), d, args)
		if err != nil {
			t.Fatal(err)
		}
		total, _, _ := weigh(out)
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
			if !close(got, want) {
				t.Errorf("sample %d, tensor %d (%v), element %d: gradient %v, difference quotient %v", key, li, leaf.Tensor, i, got, want)
				return
			}
		}
	}
	return checked
}

// checkSecond differentiates Σ gᵢ², g the first gradients, and compares.
func checkSecond(t *testing.T, d *op.Def, key uint64) {
	build := func(s *eager.Session, args []any, leaves []*eager.Var) (op.Value, error) {
		out, err := apply(s, d, args)
		if err != nil {
			return nil, err
		}
		_, values, weights := weigh(out)
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
	s := eager.New(ops.Table())
	args, leaves := sample(d, s, key)
	total, err := build(s, args, leaves)
	if errors.Is(err, errNothing) {
		return
	}
	if err != nil {
		t.Fatalf("sample %d, second order: %v", key, err)
	}
	grads, err := s.Backward([]op.Value{total}, []op.Value{tensor.Float64s(tensor.F64, nil, 1)}, false)
	if err != nil {
		t.Fatalf("sample %d, second order: %v", key, err)
	}
	loss := func() float64 {
		v, err := build(eager.New(ops.Table()), args, leaves)
		if err != nil {
			t.Fatal(err)
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
		if math.Abs(got-want) > 1e-4+1e-3*math.Abs(want) {
			t.Errorf("sample %d, tensor %d (%v), element %d: second-order gradient %v, difference quotient %v", key, li, leaf.Tensor, i, got, want)
			return
		}
	}
}

var errNothing = errors.New("no gradient depends on the inputs")
