package autograd_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"plumb/autograd"
	"plumb/backend"
	"plumb/backend/native"
	"plumb/choice"
	"plumb/eager"
	"plumb/nn"
	"plumb/op"
	"plumb/ops"
	"plumb/program"
	"plumb/tensor"
)

// sample draws one call of d in float64 and wraps its differentiable tensors
// as leaves that want gradients.
func sample(d *op.Def, s *eager.Session, key uint64) (args []any, leaves []*eager.Var) {
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
			if !slices.ContainsFunc(d.Sigs()[0].Params, func(p op.Param) bool { return p.Type.Kind == op.KTensor && !slices.Contains(d.Fixed, p.Name) }) {
				t.Skip("PyTorch has no derivative either")
			}
			checked := 0
			for key := range uint64(12) {
				checked += checkFirst(t, d, key)
				if key < 4 {
					checkSecond(t, d, key)
				}
			}
			if checked == 0 {
				if d.Traits.Has(op.Random) && len(d.Fixed) > 0 {
					t.Skip("the gradient of a draw is 0 by definition, not the difference quotient")
				}
				if d.Infer == nil && d.Compose == nil || !rounds(d) {
					t.Error("no gradient was checked")
				}
				t.Skip("every result is rounded to another dtype: no difference quotient")
			}
		})
	}
}

// rounds reports whether d's first sample results in another dtype than float64.
func rounds(d *op.Def) bool {
	s := eager.New(ops.Table())
	args, _ := sample(d, s, 0)
	out, err := apply(s, d, args)
	return err == nil && out[0].DType() != tensor.F64
}

func checkFirst(t *testing.T, d *op.Def, key uint64) (checked int) {
	s := eager.New(ops.Table())
	args, leaves := sample(d, s, key)
	out, err := apply(s, d, args)
	if err != nil {
		t.Fatalf("sample %d: %v", key, err)
	}
	_, values, weights := weigh(s, out)
	if len(values) == 0 {
		return 0
	}
	grads, err := s.Backward(values, weights, false)
	if err != nil {
		t.Fatalf("sample %d: %v", key, err)
	}
	loss := func() float64 {
		s := eager.New(ops.Table())
		out, err := apply(s, d, args)
		if err != nil {
			t.Fatal(err)
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

// TestGradientsArePrograms extends a program by its gradients, runs it on the
// native backend, and expects the bits of the eager gradients.
func TestGradientsArePrograms(t *testing.T) {
	table := ops.Table()
	run := native.New(table, nn.Modules())
	for _, d := range table.Defs() {
		if d.Traits.Has(op.NoGrad) || d.Traits.Has(op.Dynamic) || len(d.Mutates) > 0 {
			continue
		}
		for key := range uint64(3) {
			p, inputs := asProgram(d, key)
			if p == nil {
				continue
			}
			ext, err := autograd.Extend(p, table)
			if err != nil {
				t.Errorf("%s: %v", d.ID(), err)
				break
			}
			if _, err := program.Parse("extended", ext.Program.String()); err != nil {
				t.Errorf("%s: the extended program does not parse: %v", d.ID(), err)
			}
			eagerOut, _ := run.Run(t.Context(), &backend.Job{Program: p, Inputs: inputs})
			for _, in := range ext.Program.Inputs[len(inputs):] {
				inputs = append(inputs, in.Materialize())
			}
			out, _ := run.Run(t.Context(), &backend.Job{Program: ext.Program, Inputs: inputs})
			if eagerOut.Status != backend.OK || out.Status != backend.OK {
				t.Errorf("%s: eager %s %s, program %s %s", d.ID(), eagerOut.Status, eagerOut.Message, out.Status, out.Message)
				break
			}
			for name, want := range eagerOut.Grads {
				ref, ok := ext.Grads[name]
				if !ok {
					if want != nil {
						t.Errorf("%s: the program has no gradient of %s", d.ID(), name)
					}
					continue
				}
				if got := valueOf(ext.Program, inputs, out, ref); !got.SameBits(want) {
					t.Errorf("%s sample %d: gradient of %s differs between eager and program", d.ID(), key, name)
				}
			}
		}
	}
}

// asProgram writes one sampled call of d as a program with literal inputs.
func asProgram(d *op.Def, key uint64) (*program.Program, []*tensor.Tensor) {
	s := eager.New(ops.Table())
	args, _ := sample(d, s, key)
	p := &program.Program{Name: d.ID()}
	var inputs []*tensor.Tensor
	var arg func(any) any
	arg = func(a any) any {
		switch a := a.(type) {
		case *eager.Var:
			in := program.Input{Name: fmt.Sprintf("x%d", len(inputs)), DType: a.DType(), Shape: a.Shape(),
				Fill: program.Fill{Dist: program.Literal, Data: a.Contiguous()}, RequiresGrad: a.RequiresGrad()}
			p.Inputs, inputs = append(p.Inputs, in), append(inputs, a.Tensor)
			return program.Ref(in.Name)
		case []any:
			list := make(program.List, len(a))
			for i := range a {
				list[i] = arg(a[i])
			}
			return list
		case int:
			return int64(a)
		case []int:
			list := make(program.List, len(a))
			for i := range a {
				list[i] = int64(a[i])
			}
			return list
		case op.Index:
			return program.FromOp(a)
		}
		return a
	}
	c := program.Call{Result: "y", Target: program.OwnPrefix + d.ID()}
	for _, a := range args {
		if kw, ok := a.(op.Kwarg); ok {
			c.Kwargs = append(c.Kwargs, program.Kwarg{Name: kw.Name, Value: arg(kw.Value)})
		} else {
			c.Args = append(c.Args, arg(a))
		}
	}
	p.Calls = []program.Call{c}
	cot := program.Fill{Dist: program.Uniform, Lo: 0, Hi: 1, Key: key}
	if len(d.Sigs()[0].Results) == 1 {
		p.Backward = []program.Backward{{Value: "y", Cotangent: cot, Auto: true}}
		return p, inputs
	}
	for i := range d.Sigs()[0].Results {
		name := fmt.Sprintf("e%d", i)
		p.Calls = append(p.Calls, program.Call{Result: name, Target: "operator.getitem", Args: []any{program.Ref("y"), int64(i)}})
		p.Backward = append(p.Backward, program.Backward{Value: program.Ref(name), Cotangent: cot, Auto: true})
	}
	return p, inputs
}

func valueOf(p *program.Program, inputs []*tensor.Tensor, out *backend.Outcome, ref program.Ref) *tensor.Tensor {
	for i, in := range p.Inputs {
		if in.Name == string(ref) {
			return inputs[i]
		}
	}
	for i, c := range p.Calls {
		if c.Result == string(ref) {
			return out.Values[i].Tensor
		}
	}
	return nil
}
