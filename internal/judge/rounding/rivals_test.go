package rounding

import (
	"fmt"
	"slices"
	"testing"

	"plumb/backend"
	"plumb/nn"
	"plumb/ops"
)

// TestRivals: a gradient may go to any element of a window that is within the errors of its
// largest, and to no other: none that is further, nor one that is as large in float64.
func TestRivals(t *testing.T) {
	const near, far, less = 1 + 0x1p-23, 1 + 0x1p-16, 1 - 0x1p-24
	for _, c := range []struct {
		what, pool string
		x          []float64
		moves      []bool // whether an element may have another gradient by a choice
	}{
		{"the second", "max_pool1d(d, 2)", []float64{1, near, 2, 1, 1, 2}, []bool{true, true, false, false, false, false}},
		{"one that is further", "max_pool1d(d, 2)", []float64{1, far, 1, near}, []bool{false, false, true, true}},
		{"one that is as large", "max_pool1d(d, 2)", []float64{1, 1, near, 1}, []bool{false, false, true, true}},
		{"each of three", "max_pool1d(d, 3)", []float64{1, near, less, 1, far, near}, []bool{true, true, true, false, false, false}},
		{"the largest of the window beside it", "max_pool1d(d, 2, stride=1)", []float64{near, 1, 0, 2}, []bool{true, true, false, false}},
		{"of two windows", "max_pool1d(d, 2, stride=1)", []float64{0, near, 1, 2}, []bool{false, true, true, false}},
		{"of boxes", "adaptive_max_pool1d(d, 2)", []float64{1, near, 2, 1}, []bool{true, true, false, false}},
	} {
		lines := fmt.Sprintf("x = tensor((1, 1, %d), torch.float32, [%s], requires_grad=True)\nd = torch.div(x, 3.0)\np = torch.nn.functional.%s\ny = torch.sum(p)\ny.backward()\n", len(c.x), joined(c.x), c.pool)
		job := backend.NewJob(text(t, lines))
		a := New(ops.Table(), nn.Modules())
		bounds, decided := a.Choosing(job, true, func(*Choice) {})
		slot := bounds.Slots[backend.Place{Part: backend.PartGrad, Owner: "x"}]
		if slot == nil {
			t.Errorf("%s: no bound of the gradient", c.what)
			continue
		}
		for i, want := range c.moves {
			if got := slot.Error != nil && slot.Error.Float(i)*slot.Unit*Near > 0.3; got != want {
				t.Errorf("%s: element %d may have another gradient %t, want %t", c.what, i, got, want)
			}
		}
		if decided != slices.Contains(c.moves, true) {
			t.Errorf("%s: a decision is near %t", c.what, decided)
		}
	}
}

// TestRivalsRound: a gradient at another place of the window is a number in float32, which has
// been rounded behind that as any other; by the reference's choice there is 0.
func TestRivalsRound(t *testing.T) {
	factors := []float64{1.1, 1.3, 0.7, 1.7, 0.9, 1.9}
	lines, exact, single := "x = tensor((1, 1, 2), torch.float32, [1, 1.00000011920928955], requires_grad=True)\nd0 = torch.div(x, 3.0)\n", 1., float32(1)
	for i, f := range factors {
		factors[i] = float64(float32(f))
		lines += fmt.Sprintf("d%d = torch.mul(d%d, %.17g)\n", i+1, i, factors[i])
	}
	for _, f := range slices.Backward(factors) {
		exact, single = exact*f, single*float32(f)
	}
	if exact, single = exact/3, single/3; float64(single) <= exact {
		t.Fatalf("%v is rounded to %v: other factors are needed", exact, single)
	}
	lines += fmt.Sprintf("p = torch.nn.functional.max_pool1d(d%d, 2)\ny = torch.sum(p)\ny.backward()\n", len(factors))
	bounds, _ := New(ops.Table(), nn.Modules()).Choosing(backend.NewJob(text(t, lines)), true, func(*Choice) {})
	slot := bounds.Slots[backend.Place{Part: backend.PartGrad, Owner: "x"}]
	if slot == nil || slot.Error == nil {
		t.Fatal("no bound of the gradient")
	}
	if most := Near * slot.Unit * slot.Error.Float(0); most < float64(single) || most > float64(single)*(1+0x1p-16) {
		t.Errorf("the gradient at the other place may be %.9g, and is %.9g", most, single)
	}
}

func joined(x []float64) (s string) {
	for i, v := range x {
		if i > 0 {
			s += ", "
		}
		s += fmt.Sprintf("%.17g", v)
	}
	return s
}

// TestDecisionsBesideNumbers: of sums that reach a number exactly rounding decides whether they are
// beyond it where the dtype has not the number, as 0.9, and the rule of the comparison where it has;
// what is true or false by that stays uncertain where it is moved to.
func TestDecisionsBesideNumbers(t *testing.T) {
	ones, reversed := make([]float64, 20), make([]float64, 20)
	for i := range ones {
		ones[i], reversed[i] = 1, float64(19-i)
	}
	for bound, uncertain := range map[string]int{"0.9": 19 - 17, "0.5": -1} {
		lines := fmt.Sprintf("x = tensor((20,), torch.float32, [%s])\ni = tensor((20,), torch.int64, [%s])\nd = torch.div(x, 20.0)\nc = torch.cumsum(d, 0)\nm = torch.gt(c, %s)\ns = torch.scatter(m, 0, i, m)\ny = torch.masked_fill(x, s, -1.0)\n", joined(ones), joined(reversed), bound)
		bounds, near := New(ops.Table(), nn.Modules()).Choosing(backend.NewJob(text(t, lines)), false, func(*Choice) {})
		if near != (uncertain >= 0) {
			t.Errorf("beyond %s: a decision is near %t", bound, near)
		}
		y := bounds.Values[4].At(nil)
		if y == nil {
			t.Fatalf("beyond %s: no bound", bound)
		}
		for k := range ones {
			if got := y.Error != nil && y.Error.Float(k)*y.Unit*Near > 1.9; got != (k == uncertain) {
				t.Errorf("beyond %s: element %d may be another one %t", bound, k, got)
			}
		}
	}
}
