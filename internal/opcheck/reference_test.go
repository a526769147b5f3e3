package opcheck_test

import (
	"slices"
	"strings"
	"testing"

	"plumb/backend"
	"plumb/backend/open"
	"plumb/internal/opcheck"
	"plumb/op"
	"plumb/ops"
	"plumb/tensor"
)

// unlike are literals with one mistake each that only PyTorch can tell.
var unlike = []struct {
	name  string
	of    func() *op.Def
	field string
	plant func(d *op.Def)
}{
	{"a public name that PyTorch lacks", leaky, "Names", func(d *op.Def) { d.Names = []string{"torch.nn.functional.leaky_relu_yzh(input, negative_slope)"} }},
	{"one name of two that PyTorch lacks", leaky, "Names", func(d *op.Def) { d.Names = append(d.Names, "torch.leaky_relu(input, negative_slope)") }},
	{"another function", leaky, "Kernels", func(d *op.Def) { d.Names = []string{"torch.nn.functional.celu(input, alpha)"} }},
	{"a default that PyTorch has not", leaky, "Kernels", func(d *op.Def) { d.Sig = "my_leaky(Tensor x, float alpha=0.1) -> Tensor" }},
	{"NaN lost", leaky, "Kernels", func(d *op.Def) {
		d.Kernels = each(float, func(x float64, a op.Args) float64 {
			switch {
			case x > 0:
				return x
			case x < 0:
				return x * a.Float("alpha")
			}
			return 0
		})
		d.NoExact = "the test says so"
	}},
	{"a branch that Sample never reaches", leaky, "Kernels", func(d *op.Def) {
		d.Kernels = each(float, func(x float64, a op.Args) float64 { return max(x, x*0.01) })
		d.Sample = func(s *op.Sampler) []any { return []any{s.Tensor(0.1, 3, s.Shape(0, 4)...), s.Float(0, 1)} }
	}},
	{"a gradient that is the forward's of 1", celu, "Grad", func(d *op.Def) { d.Grad = func(g *op.Grad) { g.To("x", func() op.Value { return g.G() }) } }},
	{"no gradient though PyTorch has one", leaky, "Grad", func(d *op.Def) { d.Grad, d.Traits = nil, op.NoGrad }},
	{"a range with another edge", rounding, "Reject", func(d *op.Def) {
		d.Reject = func(a op.Args) error {
			if p := a.Float("lambd"); p < 1e-9 && p != 0 {
				return op.RuntimeError("lambd must be greater or equal to 0, but found to be %v", p)
			}
			return nil
		}
	}},
	{"a range that is too wide", rounding, "Reject", func(d *op.Def) {
		d.Reject = func(a op.Args) error {
			if !(a.Float("lambd") >= -1) {
				return op.RuntimeError("lambd %v", a.Float("lambd"))
			}
			return nil
		}
	}},
	{"a refusal of another class", rounding, "Reject", func(d *op.Def) {
		d.Reject = func(a op.Args) error {
			if !(a.Float("lambd") >= 0) {
				return op.IndexError("lambd %v", a.Float("lambd"))
			}
			return nil
		}
	}},
	{"a result of another dtype", below, "Infer", func(d *op.Def) {
		d.Infer = func(a op.Args) ([]op.Meta, error) {
			m, err := broadcast(a)
			if err == nil {
				m[0].DType = tensor.U8
			}
			return m, err
		}
	}},
	{"strides that PyTorch has not", leaky, "Infer", func(d *op.Def) {
		d.Infer = func(a op.Args) ([]op.Meta, error) {
			shape := a.Value("x").Shape()
			order := make([]int, len(shape))
			for i := range order {
				order[i] = len(shape) - 1 - i
			}
			return []op.Meta{{DType: a.Value("x").DType(), Shape: shape, Strides: tensor.PermutedStrides(shape, order)}}, nil
		}
	}},
}

// rounding is softshrink, whose attribute has a range.
func rounding() *op.Def {
	return &op.Def{
		Sig: "my_softshrink(Tensor x, float lambd=0.5) -> Tensor", Names: []string{"torch.nn.functional.softshrink(input, lambd)"},
		Doc: "x - lambd for x > lambd, x + lambd for x < -lambd, 0 elsewhere.", Infer: like, SBP: evenly, Tol: pointwise(1),
		Reject: func(a op.Args) error {
			if !(a.Float("lambd") >= 0) {
				return op.RuntimeError("lambda must be greater or equal to 0, but found to be %v", a.Float("lambd"))
			}
			return nil
		},
		Kernels: each(float, func(x float64, a op.Args) float64 {
			switch l := a.Float("lambd"); {
			case x > l:
				return x - l
			case x < -l:
				return x + l
			case x != x:
				return x
			}
			return 0
		}),
		Grad: func(g *op.Grad) {
			outside := g.Op("gt", g.Op("abs", g.Value("x")), g.Float("lambd"))
			g.To("x", func() op.Value { return g.Op("where", outside, g.G(), g.Mul(g.G(), 0)) })
		},
		Sample: func(s *op.Sampler) []any { return []any{s.Distinct(s.Shape(0, 3)...), s.Float(0, 0.4)} },
	}
}

// torch starts PyTorch once for all tables; the test is skipped without it.
func torch(t *testing.T) func() (backend.Backend, error) {
	t.Helper()
	set := &open.Set{Table: ops.Table()}
	opener, err := set.Opener(t.Context(), "torch")
	if err != nil {
		t.Skipf("needs PyTorch as the reference: %v", err)
	}
	b, err := opener()
	if err != nil {
		t.Skipf("needs PyTorch as the reference: %v", err)
	}
	t.Cleanup(func() { b.Close() })
	return func() (backend.Backend, error) { return staying{b}, nil }
}

// staying is a backend that Close leaves open.
type staying struct{ backend.Backend }

func (staying) Close() error { return nil }

func TestUnlikePyTorch(t *testing.T) {
	reference := torch(t)
	dtypes := []tensor.DType{tensor.F32, tensor.F64}
	found, tried := 0, sampled(len(unlike))
	for _, i := range tried {
		b := unlike[i]
		d := b.of()
		b.plant(d)
		fs, err := opcheck.Against(t.Context(), table(t, d), d.ID(), dtypes, reference, "torch 1.13.1", 0, 30)
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(fs, func(f opcheck.Finding) bool { return f.Field == b.field }) {
			found++
			continue
		}
		t.Logf("%s: want a finding of %s, got %v", b.name, b.field, fs)
	}
	if t.Logf("%d of %d are found", found, len(tried)); found < len(tried) {
		t.Errorf("%d of %d are found", found, len(tried))
	}
}

func TestRightOnesAreLikePyTorch(t *testing.T) {
	reference := torch(t)
	for _, of := range []func() *op.Def{leaky, celu, rounding, below} {
		d := of()
		fs, err := opcheck.Against(t.Context(), table(t, d), d.ID(), []tensor.DType{tensor.F32, tensor.F64}, reference, "torch 1.13.1", 0, 30)
		for _, f := range fs {
			t.Errorf("%s: %s", d.ID(), strings.SplitAfterN(f.String(), "\n", 20))
		}
		if err != nil {
			t.Error(err)
		}
	}
}
