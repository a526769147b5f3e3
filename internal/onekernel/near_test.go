package onekernel

import (
	"cmp"
	"math"
	"testing"

	"plumb/backend"
	"plumb/program"
	"plumb/tensor"
)

// TestNearDecisions: what a comparison or a jump decides from computed numbers may come out the
// other way within their rounding errors, and so may what follows; nothing
// further, and no decision on numbers that are exact. Nor is what vanishes as an exponential does known
// better than its formula has it.
func TestNearDecisions(t *testing.T) {
	one := func(v ...float64) []*tensor.Tensor { return []*tensor.Tensor{vector(v...)} }
	whole := func(v ...float64) []*tensor.Tensor { return []*tensor.Tensor{vector(v...).Convert(tensor.I8)} }
	yes := func(v ...float64) []*tensor.Tensor { return []*tensor.Tensor{vector(v...).Convert(tensor.Bool)} }
	x, inf := []float64{1.5 + 0x1p-23, 1, 2}, math.Inf(-1)
	const third = "d = torch.div(x0, 3.0)\n"
	const vanishing = "s = torch.nn.functional.softplus(x0)\nw = torch.unsqueeze(s, 0)\ny = torch.sum(w, 0)\n"
	const byte8 = third + "r = torch.round(d)\nc = torch.clamp(r, -128, 127)\nq = c.to(dtype=torch.int8)\n"
	for _, c := range []struct {
		what, calls, result string
		want, got           []*tensor.Tensor
		wrong               bool
		x                   float64 // the first element, if another one
	}{
		{"rounded the other way", third + "y = torch.round(d)\n", "y", one(1, 0, 1), one(0, 0, 1), false, 0},
		{"rounded down one more", third + "y = torch.round(d)\n", "y", one(1, 0, 1), one(-1, 0, 1), true, 0},
		{"not rounded where that is far", third + "y = torch.round(d)\n", "y", one(1, 0, 1), one(1, 1, 1), true, 0},
		{"an integer the other way", byte8, "q", whole(1, 0, 1), whole(0, 0, 1), false, 0},
		{"an integer that is far", byte8, "q", whole(1, 0, 1), whole(1, 0, 0), true, 0},
		{"an integer of two more", byte8, "q", whole(1, 0, 1), whole(3, 0, 1), true, 0},
		{"dequantised", byte8 + "f = q.to(dtype=torch.float32)\ny = torch.mul(f, x1)\n", "y", one(10, 0, 30), one(0, 0, 30), false, 0},
		{"dequantised by another scale", byte8 + "f = q.to(dtype=torch.float32)\ny = torch.mul(f, x1)\n", "y", one(10, 0, 30), one(-5, 0, 30), true, 0},
		{"a comparison", third + "y = torch.gt(d, 0.5)\n", "y", yes(1, 0, 1), yes(0, 0, 1), false, 0},
		{"a comparison that is far", third + "y = torch.gt(d, 0.5)\n", "y", yes(1, 0, 1), yes(1, 1, 1), true, 0},
		{"what a comparison selects", third + "m = torch.gt(d, 0.5)\nn = torch.logical_not(m)\ny = torch.where(n, x1, d)\n", "y", one(0.5, 20, 2./3), one(10, 20, 2./3), false, 0},
		{"further than either", third + "m = torch.gt(d, 0.5)\nn = torch.logical_not(m)\ny = torch.where(n, x1, d)\n", "y", one(0.5, 20, 2./3), one(-10, 20, 2./3), true, 0},
		{"filled by the other decision", third + "m = torch.gt(d, 0.5)\ny = torch.masked_fill(x1, m, float('-inf'))\n", "y", one(inf, 20, inf), one(10, 20, inf), false, 0},
		{"left by the other decision", third + "m = torch.gt(d, 0.5)\nn = torch.logical_not(m)\ny = torch.masked_fill(x1, n, float('-inf'))\n", "y", one(10, inf, 30), one(inf, inf, 30), false, 0},
		{"filled where a decision is far", third + "m = torch.gt(d, 0.5)\ny = torch.masked_fill(x1, m, float('-inf'))\n", "y", one(inf, 20, inf), one(inf, inf, inf), true, 0},
		{"left where a decision is far", third + "m = torch.gt(d, 0.5)\ny = torch.masked_fill(x1, m, float('-inf'))\n", "y", one(inf, 20, inf), one(inf, 20, 30), true, 0},
		{"softplus as log(1 + exp(x)), multiplied", vanishing, "y", one(4.13994e-8, 1.3132616, 2.126928), one(0, 1.3132616, 2.126928), false, -17},
		{"softplus that is off by more", vanishing, "y", one(4.13994e-8, 1.3132616, 2.126928), one(1e-5, 1.3132616, 2.126928), true, -17},
		{"an argument compared", "m = torch.gt(x0, 1.5)\ny = torch.where(m, x1, x0)\n", "y", one(1.5, 1, 30), one(10, 1, 30), true, 0},
		{"a half that is exact, up", third + "y = torch.round(d)\n", "y", one(0, 0, 1), one(1, 0, 1), true, 1.5},
		{"what equals a threshold", third + "y = torch.gt(d, 0.5)\n", "y", yes(0, 0, 1), yes(1, 0, 1), true, 1.5},
	} {
		s, r := chosenBy(t, c.calls, append([]float64{cmp.Or(c.x, x[0])}, x[1:]...), []string{c.result}, c.want, c.got)
		if got := s.wrong(r); got != c.wrong {
			t.Errorf("%s: wrong %v, want %v (%s)", c.what, got, c.wrong, r.verdict.Reason)
		}
	}
}

// TestNearMaxima: the gradient of a maximum of windows may go to another element that is as large
// to rounding, or to both in parts, and not to one that is smaller, nor anywhere twice.
func TestNearMaxima(t *testing.T) {
	const calls = "d = torch.div(x0, 3.0)\nu = torch.unsqueeze(d, 0)\np = torch.nn.functional.max_pool1d(u, 3)\ny = torch.sum(p)\n"
	for _, c := range []struct {
		what  string
		x     []float64
		got   *tensor.Tensor
		wrong bool
	}{
		{"another one as large", []float64{1 + 0x1p-23, 1, 0.5}, vector(0, 1./3, 0), false},
		{"both", []float64{1 + 0x1p-23, 1, 0.5}, vector(1./6, 1./6, 0), false},
		{"each all of it", []float64{1 + 0x1p-23, 1, 0.5}, vector(1./3, 4./3, 0), true},
		{"a smaller one", []float64{1 + 0x1p-23, 1, 0.5}, vector(0, 0, 1./3), true},
		{"one that is further", []float64{1 + 0x1p-14, 1, 0.5}, vector(0, 1./3, 0), true},
		{"one that is as large", []float64{1, 1, 0.5}, vector(0, 1./3, 0), true},
	} {
		total := []*tensor.Tensor{vector(float64(float32(c.x[0] / 3))).Reshape()}
		s, r := chosenBy(t, calls, c.x, []string{"y"}, total, total)
		r.program.Inputs[0].RequiresGrad = true
		r.program.Backward = []program.Backward{{Value: program.Ref(r.program.Calls[0].Result), Auto: true}}
		x := backend.Place{Part: backend.PartGrad, Owner: r.program.Inputs[0].Name}
		r.ref.Add(x, vector(1./3, 0, 0))
		r.kernel.Add(x, c.got)
		r.verdict = s.judge.Case(backend.NewJob(r.program), r.ref, r.kernel).Verdict(nil)
		if got := s.wrong(r); got != c.wrong {
			t.Errorf("%s: wrong %v, want %v (%s)", c.what, got, c.wrong, r.verdict.Reason)
		}
	}
}
