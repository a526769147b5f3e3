package opcase_test

import (
	"math"
	"testing"

	"plumb/internal/draw/choice"
	"plumb/internal/draw/opcase"
	"plumb/op"
	"plumb/ops"
	"plumb/tensor"
)

// TestOrdersMeetTheirEnds: what goes by the order of elements meets NaN and both
// infinities, each once in a tensor where a result tells which of two comes first, which
// is a convention.
func TestOrdersMeetTheirEnds(t *testing.T) {
	for _, id := range []string{"amax", "argmin", "sort", "median.dim", "gt", "clamp_min", "isnan", "max_pool2d"} {
		met, def := [3]bool{}, ops.Table().Def(id)
		values := def.Traits.Has(op.Monotone) && len(def.Sigs()[0].Results) == 1
		for seed := range uint64(200) {
			p, err := opcase.Drawer{Table: ops.Table(), Def: def}.Legal(choice.New(seed), tensor.F32)
			if err != nil {
				t.Fatal(err)
			}
			for _, in := range p.Inputs {
				var counts [3]int
				x := in.Materialize()
				for i := range x.Len() {
					v := real(x.At(i))
					for k, is := range [3]bool{math.IsNaN(v), math.IsInf(v, 1), math.IsInf(v, -1)} {
						if is {
							met[k] = true
							counts[k]++
						}
					}
				}
				if !values && max(counts[0], counts[1], counts[2]) > 1 || counts != [3]int{} && in.RequiresGrad {
					t.Errorf("%s of\n%s", id, p)
				}
			}
		}
		if met != [3]bool{true, true, true} {
			t.Errorf("%s meets NaN, infinity and its negative: %v", id, met)
		}
	}
}

// TestFunctionsMeetNaN: in a few cases of a function one has a NaN.
func TestFunctionsMeetNaN(t *testing.T) {
	for _, id := range []string{"relu", "exp", "atan2"} {
		met := 0
		for seed := range uint64(200) {
			p, err := opcase.Drawer{Table: ops.Table(), Def: ops.Table().Def(id)}.Legal(choice.New(seed), tensor.F32)
			if err != nil {
				t.Fatal(err)
			}
			x := p.Inputs[0].Materialize()
			for i := range x.Len() {
				if math.IsNaN(x.Float(i)) {
					met++
					break
				}
			}
		}
		if met < 14 {
			t.Errorf("%s meets NaN in %d of 200 cases", id, met)
		}
	}
}

// TestQuotientsAreOfOtherDivisors: a quotient by 1 or -1 tells little of rounding.
func TestQuotientsAreOfOtherDivisors(t *testing.T) {
	for _, id := range []string{"floor_divide", "remainder", "fmod"} {
		for _, dt := range []tensor.DType{tensor.I64, tensor.F32} {
			rounded := false
			for seed := range uint64(60) {
				p, err := opcase.Drawer{Table: ops.Table(), Def: ops.Table().Def(id)}.Legal(choice.New(seed), dt)
				if err != nil {
					t.Fatal(err)
				}
				if len(p.Inputs) == 2 && p.Inputs[0].Fill.Data.Len() > 0 {
					x, y := real(p.Inputs[0].Materialize().At(0)), real(p.Inputs[1].Materialize().At(0))
					rounded = rounded || x*y < 0 && math.Abs(y) > 1 && math.Mod(x, y) != 0
				}
			}
			if !rounded {
				t.Errorf("%s of %s is rounded down and towards 0 alike", id, dt)
			}
		}
	}
}

// TestPointsAreMet: what a range does not hold is drawn too, and differentiated.
func TestPointsAreMet(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		id   string
		dt   tensor.DType
		grad bool
		met  func(x, y *tensor.Tensor) bool // some input of the case and another of it
	}{
		{"silu", tensor.F32, true, some(func(v, _ float64) bool { return v < -100 })},
		{"softplus", tensor.F32, true, some(func(v, _ float64) bool { return v > 1e4 })},
		{"hypot", tensor.F32, true, some(func(v, w float64) bool { return v == 0 && w == 0 })},
		{"logaddexp", tensor.F32, false, some(func(v, w float64) bool { return v == -inf && w == -inf })},
		{"logsumexp", tensor.F32, false, all(-inf)},
		{"softmax", tensor.F64, false, all(inf)},
		{"softmax", tensor.F32, true, some(func(v, _ float64) bool { return v > 100 })},
		{"amax", tensor.F32, false, all(-inf)},
		{"prod", tensor.F32, true, all(0)},
		{"matmul", tensor.I64, false, some(func(v, _ float64) bool { return math.Abs(v) == 1<<24+1 })},
		{"matmul", tensor.I64, false, some(func(v, _ float64) bool { return v == math.MinInt64 })},
		{"neg", tensor.I8, false, some(func(v, _ float64) bool { return v == -128 })},
		{"add", tensor.U8, false, some(func(v, _ float64) bool { return v == 255 })},
		{"relu", tensor.F32, true, none},
		{"matmul", tensor.F64, true, none},
		{"scatter_reduce", tensor.F32, false, some(func(v, _ float64) bool { return v != v })},
		{"pow", tensor.I32, false, some(func(v, w float64) bool { return v == -1 && w == -1 })},
	} {
		if !meets(t, c.id, c.dt, c.grad, c.met) {
			t.Errorf("%s of %s never meets its point", c.id, c.dt)
		}
	}
}

// TestFactorsOfIntegersAreWhole: PyTorch asks for whole factors beside integers.
func TestFactorsOfIntegersAreWhole(t *testing.T) {
	for _, id := range []string{"addmm", "addmv", "addbmm", "baddbmm", "addr", "addcmul"} {
		given := false
		for seed := range uint64(60) {
			p, err := opcase.Drawer{Table: ops.Table(), Def: ops.Table().Def(id)}.Legal(choice.New(seed), tensor.I32)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range p.Calls {
				for _, kw := range c.Kwargs {
					v, fractional := kw.Value.(float64)
					given = given || kw.Name == "alpha" || kw.Name == "value"
					if fractional {
						t.Errorf("%s of integers with %s=%v", id, kw.Name, v)
					}
				}
			}
		}
		if !given && id != "addr" {
			t.Errorf("%s has no factor", id)
		}
	}
}

func meets(t *testing.T, id string, dt tensor.DType, grad bool, met func(x, y *tensor.Tensor) bool) bool {
	t.Helper()
	for seed := range uint64(400) {
		p, err := opcase.Drawer{Table: ops.Table(), Def: ops.Table().Def(id)}.Legal(choice.New(seed), dt)
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Inputs) > 0 && (!grad || p.Inputs[0].RequiresGrad) && met(p.Inputs[0].Materialize(), p.Inputs[len(p.Inputs)-1].Materialize()) {
			return true
		}
	}
	return false
}

// none asks for tensors of which one has no elements.
func none(x, y *tensor.Tensor) bool { return x.Len() == 0 || y.Len() == 0 }

// some asks for a place with such elements of two tensors of one size.
func some(like func(v, w float64) bool) func(x, y *tensor.Tensor) bool {
	return func(x, y *tensor.Tensor) bool {
		for i := range x.Len() {
			if like(real(x.At(i)), real(y.At(min(i, y.Len()-1)))) && (x.Len() == y.Len() || y.Len() == 1) {
				return true
			}
		}
		return false
	}
}

func all(v float64) func(x, _ *tensor.Tensor) bool {
	return func(x, _ *tensor.Tensor) bool {
		for i := range x.Len() {
			if real(x.At(i)) != v {
				return false
			}
		}
		return x.Len() > 0
	}
}
