package eager_test

import (
	"errors"
	"math"
	"testing"

	"plumb/internal/draw/choice"
	"plumb/internal/draw/opcase"
	"plumb/internal/eager"
	"plumb/op"
	"plumb/ops"
	"plumb/tensor"
)

// keywords are the arguments of a call, with tensors in another order of their elements.
func keywords(s *eager.Session, call *op.Call, turn int, requiresGrad bool) []op.Kwarg {
	var kws []op.Kwarg
	for i, p := range call.Args.Sig.Params {
		switch v := call.Args.Vals[i].(type) {
		case nil:
		case *tensor.Tensor:
			u := v.CloneStrided(v.Strides())
			for e := range u.Len() {
				u.Set(e, v.At((e+turn)%u.Len()))
			}
			kws = append(kws, op.Kw(p.Name, s.Leaf(u, requiresGrad && v.DType().IsDifferentiable())))
		case op.Scalar:
			kws = append(kws, op.Kw(p.Name, v.Any()))
		default:
			kws = append(kws, op.Kw(p.Name, v))
		}
	}
	return kws
}

// gradients are those of the keywords' tensors.
func gradients(t *testing.T, s *eager.Session, out op.Value, kws []op.Kwarg) (all []*tensor.Tensor) {
	t.Helper()
	ones, err := s.Apply("ones_like", []any{out}, nil)
	if err != nil {
		t.Fatal(err)
	}
	grads, err := s.Backward([]op.Value{out}, ones, false)
	if err != nil {
		return nil
	}
	for _, kw := range kws {
		if v, ok := kw.Value.(*eager.Var); ok {
			if g, ok := grads[v].(*eager.Var); ok {
				all = append(all, g.Tensor)
			}
		}
	}
	return all
}

// TestPlans: a call of a signature that came before computes, refuses and records what
// it does anew, with other elements.
func TestPlans(t *testing.T) {
	count := 0
	for _, d := range ops.Table().Defs() {
		if d.Sample == nil {
			continue
		}
		drawer := opcase.Drawer{Table: ops.Table(), Def: d}
		for _, dt := range drawer.DTypes(tensor.F32, tensor.I64) {
			call, err := drawer.Bind(choice.New(choice.Derive(11, uint64(dt))), dt)
			if err != nil {
				continue
			}
			s := eager.New(ops.Table())
			for turn := range 4 {
				kws := keywords(s, call, turn, turn%2 == 1)
				want, wantErr := s.Apply(d.ID(), nil, kws)
				got, ok, err := s.ApplyPlanned(d.ID(), kws, nil)
				if !ok {
					continue
				}
				count++
				var a, b *op.Error
				if (err == nil) != (wantErr == nil) || errors.As(err, &a) && errors.As(wantErr, &b) && *a != *b {
					t.Errorf("%s: error %v by plan, %v without", d.ID(), err, wantErr)
				}
				if err != nil || wantErr != nil {
					continue
				}
				x := want[0].(*eager.Var)
				if !got.SameBits(x.Tensor) || got.RequiresGrad() != x.RequiresGrad() || tensor.ShapeString(got.Strides()) != tensor.ShapeString(x.Strides()) {
					t.Errorf("%s: %v %v by plan, %v %v without", d.ID(), got, got.Strides(), x, x.Strides())
				}
				if !got.RequiresGrad() {
					continue
				}
				gs, ws := gradients(t, s, got, kws), gradients(t, s, x, kws)
				for i := range ws {
					if len(gs) != len(ws) || !gs[i].SameBits(ws[i]) {
						t.Fatalf("%s: gradients %v by plan, %v without", d.ID(), gs, ws)
					}
				}
			}
		}
	}
	if t.Logf("%d calls by plan", count); count < 1000 {
		t.Errorf("%d calls by plan", count)
	}
}

// TestPlansAreOfSignatures: what differs in anything that decides has no plan of another.
func TestPlansAreOfSignatures(t *testing.T) {
	s := eager.New(ops.Table())
	x := s.Leaf(tensor.Of(tensor.F32, []int{2, 2}, []float32{1, 2, 3, 4}), true)
	y := s.Leaf(tensor.Of(tensor.F32, []int{2, 2}, []float32{1, 1, 1, 1}), false)
	turned := s.Leaf(x.Transpose(0, 1), false)
	add := func(a, b *eager.Var, alpha any) (*eager.Var, bool) {
		t.Helper()
		v, ok, err := s.ApplyPlanned("add", []op.Kwarg{op.Kw("input", a), op.Kw("other", b), op.Kw("alpha", alpha)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return v, ok
	}
	for i, known := range []bool{false, true, true} {
		if v, ok := add(x, y, 2); ok != known || ok && (v.Float(3) != 6 || !v.RequiresGrad()) {
			t.Errorf("call %d: %v, %v", i, v, ok)
		}
	}
	for name, c := range map[string]struct {
		a, b  *eager.Var
		alpha any
	}{
		"an attribute": {x, y, 3}, "its type": {x, y, 2.0}, "strides": {turned, y, 2},
		"a shape": {x, s.Leaf(tensor.New(tensor.F32, 2), false), 2}, "a dtype": {x, s.Leaf(tensor.New(tensor.F64, 2, 2), false), 2},
	} {
		if _, ok := add(c.a, c.b, c.alpha); ok {
			t.Errorf("%s makes no difference", name)
		}
	}
	add(x, y, 0.0)
	add(x, y, 0.0)
	if _, ok := add(x, y, math.Copysign(0, -1)); ok {
		t.Error("-0 is 0")
	}
	err := s.Pause(func() error {
		if v, ok := add(x, y, 2); !ok || v.RequiresGrad() {
			t.Errorf("paused: %v, %v", v.RequiresGrad(), ok)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Limit(8)
	if _, ok := add(x, y, 2); ok {
		t.Error("16 bytes by plan, beyond a limit of 8")
	}
}

// TestPlansRefuseElements: an operator may refuse a call for its elements.
func TestPlansRefuseElements(t *testing.T) {
	table, err := op.NewTable(append([]*op.Def{{
		Sig: "not_negative(Tensor x) -> Tensor", Doc: "x.", Traits: op.NoGrad, Tol: op.Tol{Class: op.Exact, Reason: "test"},
		Reject: func(a op.Args) error {
			if x := a.Tensor("x"); x != nil && x.Float(0) < 0 {
				return op.ValueError("x is negative")
			}
			return nil
		},
		Infer: func(a op.Args) ([]op.Meta, error) {
			return []op.Meta{{DType: a.Value("x").DType(), Shape: a.Value("x").Shape()}}, nil
		},
		Kernels: []op.Kernel{{Name: "copy", Run: func(c *op.Run) error { c.Out[0].CopyFrom(c.Tensor("x")); return nil }}},
	}}, ops.All()...)...)
	if err != nil {
		t.Fatal(err)
	}
	s := eager.New(table)
	for i, x := range []float32{1, 2, -3, 4} {
		v, ok, err := s.ApplyPlanned("not_negative", []op.Kwarg{op.Kw("x", s.Leaf(tensor.Of(tensor.F32, []int{1}, []float32{x}), false))}, nil)
		switch {
		case ok != (i > 0) || (err != nil) != (x < 0):
			t.Errorf("%v: %v, %v", x, ok, err)
		case err != nil && err.Error() != "not_negative: x is negative":
			t.Errorf("error %v", err)
		case ok && err == nil && v.Float(0) != float64(x):
			t.Errorf("%v of %v", v.Float(0), x)
		}
	}
}
