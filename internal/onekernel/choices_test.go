package onekernel

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"plumb/backend"
	"plumb/internal/judge"
	"plumb/op"
	"plumb/program"
	"plumb/tensor"
)

// chosenBy is a case of x of three numbers, and codes of three, by a reference of traced calls,
// as a session judges it whose kernel gives something else.
func chosenBy(t *testing.T, calls string, x []float64, results []string, want, got []*tensor.Tensor) (*Session, *result) {
	t.Helper()
	tell := func(_ context.Context, _, answer any) error {
		told := answer.(*struct {
			Program string
			Results []string
		})
		told.Program = "# plumb program v1\nimport operator, torch\nfrom plumb import case, tensor\n\ncase(\"trace\", seed=0)\nx0 = tensor((3,), torch.float32, constant(0.0))\nx1 = tensor((3,), torch.float32, constant(0.0))\n" + calls
		told.Results = results
		return nil
	}
	s := judged(t, 0)
	s.maker = makerOf(t, "x: float[3], codes: float[3]", tensor.F32)
	s.maker.target = program.OwnPrefix + "kernel"
	c := cases(t, s.maker, 1)[0]
	c.program.Inputs[0].Fill, c.program.Inputs[0].Strides = program.Fill{Dist: program.Literal, Data: vector(x...)}, nil
	c.program.Inputs[1].Fill, c.program.Inputs[1].Strides = program.Fill{Dist: program.Literal, Data: vector(10, 20, 30)}, nil
	c.program.Backward = nil
	s.traced = &traced{id: "kernel", known: map[string]*recording{}}
	n, err := s.traced.learn(t.Context(), tell, c.program)
	if err != nil {
		t.Fatal(err)
	}
	def, err := s.traced.def(c.sig, n)
	if err != nil {
		t.Fatal(err)
	}
	if s.table, err = op.NewTable(append(lenient(), def)...); err != nil {
		t.Fatal(err)
	}
	s.judge = s.newJudge()
	outcome := func(all []*tensor.Tensor) *backend.Outcome {
		v := backend.Value{Tensor: all[0]}
		if len(all) > 1 {
			v = backend.Value{IsTuple: true}
			for _, one := range all {
				v.Tuple = append(v.Tuple, backend.Value{Tensor: one})
			}
		}
		return &backend.Outcome{Status: backend.OK, Values: []backend.Value{v}}
	}
	r := &result{Case: c, slack: Slack, ref: outcome(want), kernel: outcome(got)}
	r.verdict = s.judge.Case(backend.NewJob(c.program), r.ref, r.kernel).Verdict(nil)
	return s, r
}

// TestNearTies: of elements that rounding may order otherwise a kernel may take any, and what
// follows from its choice is that of the elements it took.
func TestNearTies(t *testing.T) {
	next := func(x float64, n int) float64 { return x + float64(n)*0x1p-23 }
	ints := func(v ...float64) *tensor.Tensor { return vector(v...).Convert(tensor.I64) }
	one := func(t ...*tensor.Tensor) []*tensor.Tensor { return t }
	scalar := func(v *tensor.Tensor) *tensor.Tensor { return v.Reshape() }
	const nearest, largest = "d = torch.div(x0, 3.0)\n", "s = torch.div(x0, 3.0)\ny = torch.topk(s, 2)\nv = operator.getitem(y, 0)\ni = operator.getitem(y, 1)\n"
	for _, c := range []struct {
		what, calls string
		results     []string
		x           []float64
		want, got   []*tensor.Tensor
		wrong       bool
	}{
		{"another one as near", nearest + "y = torch.argmin(d)\n", []string{"y"}, []float64{2, 1, next(1, 1)}, one(scalar(ints(1))), one(scalar(ints(2))), false},
		{"another one as near to who says float", "d = torch.div(x0, 3.0)\nf = d.float()\nw = f.to(dtype=torch.float32)\ny = torch.argmin(w)\n", []string{"y"}, []float64{2, 1, next(1, 1)}, one(scalar(ints(1))), one(scalar(ints(2))), false},
		{"one that is further to who says float", "d = torch.div(x0, 3.0)\nf = d.float()\ny = torch.argmin(f)\n", []string{"y"}, []float64{2, 1, next(1, 64)}, one(scalar(ints(1))), one(scalar(ints(2))), true},
		{"one that is further", nearest + "y = torch.argmin(d)\n", []string{"y"}, []float64{2, 1, next(1, 64)}, one(scalar(ints(1))), one(scalar(ints(2))), true},
		{"no place", nearest + "y = torch.argmin(d)\n", []string{"y"}, []float64{2, 1, next(1, 1)}, one(scalar(ints(1))), one(scalar(ints(3))), true},
		{"equal ones of an argument", "y = torch.argmin(x0)\n", []string{"y"}, []float64{2, 1, 1}, one(scalar(ints(1))), one(scalar(ints(2))), true},
		{"equal sums of whole numbers", "d = torch.add(x0, x0)\ny = torch.argmin(d)\n", []string{"y"}, []float64{2, 1, 1}, one(scalar(ints(1))), one(scalar(ints(2))), true},
		{"what another one as near shows", nearest + "i = torch.argmin(d)\ny = torch.take(x1, i)\n", []string{"y"}, []float64{2, 1, next(1, 1)}, one(scalar(vector(20))), one(scalar(vector(30))), false},
		{"what one that is further shows", nearest + "i = torch.argmin(d)\ny = torch.take(x1, i)\n", []string{"y"}, []float64{2, 1, next(1, 64)}, one(scalar(vector(20))), one(scalar(vector(30))), true},
		{"neither", nearest + "i = torch.argmin(d)\ny = torch.take(x1, i)\n", []string{"y"}, []float64{2, 1, next(1, 1)}, one(scalar(vector(20))), one(scalar(vector(25))), true},
		{"two in another order", largest, []string{"v", "i"}, []float64{2, 3, next(2, 1)}, one(vector(1, 2./3), ints(1, 2)), one(vector(1, 2./3), ints(1, 0)), false},
		{"one of them twice", largest, []string{"v", "i"}, []float64{2, 1, next(2, 1)}, one(vector(2./3, 2./3), ints(2, 0)), one(vector(2./3, 2./3), ints(2, 2)), true},
		{"another one's place with the value of a third", largest, []string{"v", "i"}, []float64{2, 3, next(2, 1)}, one(vector(1, 2./3), ints(1, 2)), one(vector(1, 0.5), ints(1, 0)), true},
		{"the smallest, where nothing is near", largest, []string{"v", "i"}, []float64{1, 3, 2}, one(vector(1, 2./3), ints(1, 2)), one(vector(1, 1./3), ints(1, 0)), true},
		{"one that vanishes as well", "d = torch.exp(x0)\ny = torch.argmin(d)\n", []string{"y"}, []float64{2, -300, -200}, one(scalar(ints(1))), one(scalar(ints(2))), false},
		{"another infinity", "d = torch.exp(x0)\ny = torch.argmax(d)\n", []string{"y"}, []float64{2, 300, 200}, one(scalar(ints(1))), one(scalar(ints(2))), false},
		{"another NaN", "d = torch.sqrt(x0)\ny = torch.argmax(d)\n", []string{"y"}, []float64{-1, -2, 3}, one(scalar(ints(0))), one(scalar(ints(1))), false},
		{"a number for NaN", "d = torch.sqrt(x0)\ny = torch.argmax(d)\n", []string{"y"}, []float64{-1, -2, 3}, one(scalar(ints(0))), one(scalar(ints(2))), true},
	} {
		s, r := chosenBy(t, c.calls, c.x, c.results, c.want, c.got)
		if s.choosers(r) == nil {
			t.Errorf("%s: no choice is known", c.what)
		}
		if got := s.wrong(r); got != c.wrong {
			t.Errorf("%s: wrong %v, want %v (%s)", c.what, got, c.wrong, r.verdict.Reason)
		}
	}
}

// TestPlacesThatASizeDivides: a kernel that gives a place as its quotient and its rest by a size,
// as a beam and its token, is told to have taken it.
func TestPlacesThatASizeDivides(t *testing.T) {
	outcome := func(quotients, rests []float64) *backend.Outcome {
		pair := backend.Value{IsTuple: true}
		for _, v := range [][]float64{quotients, rests} {
			pair.Tuple = append(pair.Tuple, backend.Value{Tensor: vector(v...).Convert(tensor.I64)})
		}
		return &backend.Outcome{Values: []backend.Value{pair}}
	}
	p := &program.Program{Inputs: []program.Input{{Name: "x", Shape: []int{2, 3}}}}
	r := &result{Case: &Case{program: p, DType: tensor.F32}, ref: outcome([]float64{0, 0}, []float64{0, 1}), kernel: outcome([]float64{1, 0}, []float64{1, 2})}
	equal := []float64{1, 1, 1, 1, 1, 1}
	c := &choosers{of: r, free: true, made: []*judge.Choice{{Lines: 1, N: 6, K: 2, Inner: 1, Values: equal, Places: []int{0, 1}}}}
	if got := fmt.Sprint(c.told(0)); got != "[[1 0] [1 2] [4 2] [3 4]]" {
		t.Errorf("of equal elements: %s", got)
	}
	c.made[0].Values = []float64{1, 1, 1, 1, 0, 1}
	if got := fmt.Sprint(c.told(0)); strings.Contains(got, "4") {
		t.Errorf("of one that is smaller: %s", got)
	}
}

// TestDimensionsOfPlaces: where the lines are as many as what is taken of each, places are read
// along the dimension of the choice first.
func TestDimensionsOfPlaces(t *testing.T) {
	x := tensor.New(tensor.I64, 2, 2)
	for inner, want := range map[int][]int{1: {1, 0}, 2: {0, 1}} {
		if got := dimensions(x, &judge.Choice{Lines: 2, N: 9, K: 2, Inner: inner}); !slices.Equal(got, want) {
			t.Errorf("%d apart: %v, want %v", inner, got, want)
		}
	}
}

// TestNearTiesOfHalf: what a reference computes of half numbers in float32 is near what rounding
// may order otherwise, too.
func TestNearTiesOfHalf(t *testing.T) {
	ints := func(v float64) *tensor.Tensor { return vector(v).Convert(tensor.I64).Reshape() }
	s, r := chosenBy(t, "d = torch.div(x0, 3.0)\nf = d.float()\ny = torch.argmin(f)\n", []float64{2, 1, 1.001}, []string{"y"}, []*tensor.Tensor{ints(1)}, []*tensor.Tensor{ints(2)})
	if !s.wrong(r) {
		t.Fatal("1.001 is as small as 1 in float32")
	}
	in := r.program.Inputs
	for i := range in {
		in[i].DType, in[i].Fill.Data = tensor.F16, in[i].Fill.Data.Convert(tensor.F16)
	}
	r.DType = tensor.F16
	for _, known := range s.traced.known {
		key, wide := s.traced.keysOf(r.program)
		s.traced.known[key], s.traced.known[wide] = known, known
		break
	}
	r.verdict = s.judge.Case(backend.NewJob(r.program), r.ref, r.kernel).Verdict(nil)
	if s.wrong(r) {
		t.Error(r.verdict.Reason)
	}
}

// TestAStableSortHasNoChoice: which of equal elements comes first is told where a sort is stable.
func TestAStableSortHasNoChoice(t *testing.T) {
	for ran, want := range map[string]bool{"aten::sort": true, "aten::sort aten::sort.stable": false, "aten::sort aten::sort.stable aten::topk": true, "aten::argsort aten::argsort.stable": false, "aten::mul": false} {
		r := &result{refSeen: observed{Operators: strings.Fields(ran)}}
		if got := r.choosesFreely(); got != want {
			t.Errorf("%s: free is %v, want %v", ran, got, want)
		}
	}
}

// TestStableOrders: of a reference that orders equal elements by any rule, a kernel that has all of
// them in the order of their places, or in the reverse, is told to.
func TestStableOrders(t *testing.T) {
	of := &judge.Choice{Lines: 2, N: 5, K: 3, Inner: 1, Values: []float64{1, 2, 1, 1, 2, 3, 3, 3, 3, 0}, Places: []int{4, 1, 3, 2, 0, 3}}
	c := &choosers{of: &result{Case: &Case{DType: tensor.F32}}, narrow: map[*judge.Choice][]float64{}}
	for last, want := range map[bool][]int{false: {1, 4, 0, 0, 1, 2}, true: {4, 1, 3, 3, 2, 1}} {
		if got := c.stable(of, last); !slices.Equal(got, want) {
			t.Errorf("the last first: %t: %v, want %v", last, got, want)
		}
	}
	stable := "y = torch.sort(x0, stable=True)\ni = operator.getitem(y, 1)\n"
	ints := func(v ...float64) []*tensor.Tensor { return []*tensor.Tensor{vector(v...).Convert(tensor.I64)} }
	for _, ran := range []string{"aten::sort", "aten::sort aten::sort.stable"} {
		s, r := chosenBy(t, stable, []float64{1, 1, 1}, []string{"i"}, ints(0, 1, 2), ints(2, 1, 0))
		if r.refSeen.Operators = strings.Fields(ran); s.wrong(r) != strings.HasSuffix(ran, ".stable") {
			t.Errorf("the reverse of equal elements after %s: wrong is %t", ran, s.wrong(r))
		}
	}
}
