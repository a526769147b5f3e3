package verdict

import (
	"slices"
	"testing"

	"plumb/op"
	"plumb/tensor"
)

// TestTruthIsTheLiterals: what a call's elements are is said by its literal,
// whose id may be that of another operator, and depends on attributes.
func TestTruthIsTheLiterals(t *testing.T) {
	like := func(a op.Args) ([]op.Meta, error) {
		return []op.Meta{{DType: a.Value("x").DType(), Shape: a.Value("x").Shape()}}, nil
	}
	table, err := op.NewTable(&op.Def{
		Sig: "exp(Tensor x, float factor=1.0) -> Tensor", Infer: like, Traits: op.NoGrad,
		Kernels: []op.Kernel{{Run: func(*op.Run) error { return nil }}},
		Tol:     op.Tol{Class: op.Pointwise, ULP: 1, Reason: "test"},
		Exact: func(a op.Args) op.Truth {
			factor := a.Float("factor")
			if factor == 0 {
				return nil
			}
			return op.InFloat64(func(x ...float64) float64 { return factor * x[0] })
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	x := tensor.Float64s(tensor.F32, []int{2}, 1, 2)
	for _, c := range []struct {
		factor float64
		want   *tensor.Tensor
		truth  []float64
	}{
		{3, x, []float64{3, 6}},
		{0, x, nil},
		{3, x.Convert(tensor.F64), nil}, // x is converted before
	} {
		call, err := table.ResolveID("exp", []any{x, c.factor}, nil)
		if err != nil {
			t.Fatal(err)
		}
		var got []float64
		if truth := exactResult(call, c.want); truth != nil {
			got = []float64{truth.Float(0), truth.Float(1)}
		}
		if !slices.Equal(got, c.truth) {
			t.Errorf("factor %v, result %s: %v, want %v", c.factor, c.want.DType(), got, c.truth)
		}
	}
}
