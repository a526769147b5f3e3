package verdict

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plumb/backend"
	"plumb/internal/judge/compare"
	"plumb/program"
	"plumb/tensor"
)

// product is y = x @ w, differentiated.
func product() *program.Program {
	return &program.Program{
		Inputs: []program.Input{
			{Name: "x", DType: tensor.F32, Shape: []int{2, 2}, RequiresGrad: true},
			{Name: "w", DType: tensor.F32, Shape: []int{2, 2}, RequiresGrad: true},
		},
		Calls:    []program.Call{{Result: "y", Target: "torch.matmul", Args: []any{program.Ref("x"), program.Ref("w")}}},
		Backward: []program.Backward{{Value: "y"}},
	}
}

// expected is an outcome of product; every call of it is fresh.
func expected(y, x, w *tensor.Tensor) *backend.Outcome {
	return &backend.Outcome{
		Status: backend.OK,
		Values: []backend.Value{{Tensor: y, RequiresGrad: true}},
		Slots: []backend.Slot{
			{Place: backend.Place{Part: backend.PartGrad, Owner: "x"}, Tensor: x},
			{Place: backend.Place{Part: backend.PartGrad, Owner: "w"}, Tensor: w},
		},
	}
}

func small(k float64) *tensor.Tensor { return f32([]int{2, 2}, k, -2*k, 3*k, -4*k) }

func judgeBy(policy Policy) func(p *program.Program, ref, cand *backend.Outcome) *Verdict {
	return func(p *program.Program, ref, cand *backend.Outcome) *Verdict { return Judge(p, ref, cand, policy) }
}

// lines lists weaknesses as "FAKE: PLACE", with a "=" before those that are equal.
func lines(found []Weakness) []string {
	var out []string
	for _, f := range found {
		line := fmt.Sprintf("%s: %s", f.Fake, &f.Where)
		if f.Equal {
			line = "=" + line
		}
		out = append(out, line)
	}
	return out
}

func TestPower(t *testing.T) {
	wide := Policy{RTol: ptr(0.5), ATol: ptr(0.5)}
	for _, tt := range []struct {
		name    string
		y, x, w *tensor.Tensor
		policy  Policy
		want    []string
	}{
		{name: "the default finds every fake", y: small(0.1), x: small(0.2), w: small(0.3)},
		{name: "a wide limit on small values", y: small(0.01), x: small(1), w: small(10), policy: wide, want: []string{
			"zeros: call 0, value y", "constant: call 0, value y",
			"shifted along dim 0: call 0, value y", "shifted along dim 1: call 0, value y", "transposed: call 0, value y",
		}},
		{name: "a small gradient", y: small(10), x: small(0.01), w: small(10), policy: wide, want: []string{
			"zeros: gradient of x", "constant: gradient of x",
			"shifted along dim 0: gradient of x", "shifted along dim 1: gradient of x", "transposed: gradient of x",
			"sign flipped: gradient of x",
		}},
		{name: "all zeros", y: small(1), x: small(1), w: f32([]int{2, 2}, 0, 0, 0, 0), want: []string{
			"=zeros: gradient of w", "=constant: gradient of w",
		}},
		{name: "one constant", y: f32([]int{2, 2}, 3, 3, 3, 3), x: small(1), w: small(1), want: []string{"=constant: call 0, value y"}},
		{name: "symmetric", y: f32([]int{2, 2}, 1, 2, 2, 1), x: small(1), w: small(1)},
		{name: "one element", y: f32([]int{1, 1}, 3), x: small(1), w: small(1)},
		{name: "no element", y: f32([]int{0, 2}), x: small(1), w: small(1), want: []string{"=zeros: call 0, value y"}},
		{name: "not finite", y: f32([]int{3}, math.NaN(), math.Inf(1), 2), x: nil, w: nil},
		{name: "not a number", y: f32(nil, math.NaN()), x: nil, w: nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ref := expected(tt.y, tt.x, tt.w)
			found := lines(Power(product(), ref, judgeBy(tt.policy)))
			if diff := cmp.Diff(tt.want, found); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

// TestPowerNeedsAnOutcome: an exception has no results to replace.
func TestPowerNeedsAnOutcome(t *testing.T) {
	ref := outcome()
	raise(ref, 2, "RuntimeError", "no")
	if found := Power(example(), ref, judgeBy(Policy{})); found != nil {
		t.Errorf("%v", lines(found))
	}
}

// TestPowerReplacesOneResultAtATime: every fake differs from the reference in
// one compared tensor, of a final output or a gradient, and the reference
// stays as it was.
func TestPowerReplacesOneResultAtATime(t *testing.T) {
	p := example()
	p.Backward = []program.Backward{{Value: "u"}, {Value: "v"}, {Value: "s"}, {Value: "n"}}
	ref := outcome()
	seen := map[string]int{}
	Power(p, ref, func(p *program.Program, ref, cand *backend.Outcome) *Verdict {
		v := Judge(p, ref, cand, Policy{})
		if cand == ref {
			return v
		}
		if len(v.Differences) != 1 || v.Differences[0].Diff.Rule != compare.Distance {
			t.Errorf("%s", v.Text())
		}
		for _, d := range v.Differences {
			seen[d.Where.String()]++
		}
		return v
	})
	places := []string{"call 3, value v[0]", "call 3, value v[1]", "call 4, value s", "call 5, value n", "call 7, value u", "gradient of m.weight", "gradient of x"}
	if got := slices.Sorted(maps.Keys(seen)); !slices.Equal(got, places) {
		t.Errorf("replaced %q\nwant %q", got, places)
	}
	if v := Judge(example(), outcome(), ref, Policy{RTol: ptr(0), ATol: ptr(0)}); v.Word != Aligned {
		t.Errorf("the reference was changed: %s", v.Text())
	}
}

// TestPowerWithoutBackward: the last call's results are the outputs.
func TestPowerWithoutBackward(t *testing.T) {
	p := example()
	p.Backward = nil
	ref := outcome()
	ref = ref.Without(backend.Part.IsGradient)
	for _, f := range Power(p, ref, judgeBy(Policy{RTol: ptr(1e9)})) {
		if f.Where.Name != "u" {
			t.Errorf("a fake of %s", &f.Where)
		}
	}
}

// TestPowerKeepsLayout: a fake that is judged with its strides must have the
// expected ones, or the layout would be what is found.
func TestPowerKeepsLayout(t *testing.T) {
	y := small(0.01).Transpose(0, 1)
	policy := Policy{RTol: ptr(0.5), ATol: ptr(0.5), Compare: compare.Options{Layout: true}}
	found := lines(Power(product(), expected(y, nil, nil), judgeBy(policy)))
	for _, fake := range []string{zeros, constants, shifts + " 0", shifts + " 1", transposes} {
		if !slices.Contains(found, fake+": call 0, value y") {
			t.Errorf("%s was not accepted: %q", fake, found)
		}
	}
}

// TestOneElementOffByTenLimits: the limit is found by judging alone, in a few
// attempts; what decides is off by at most 20 limits where the grid allows it.
func TestOneElementOffByTenLimits(t *testing.T) {
	p := &program.Program{Calls: []program.Call{{Result: "y", Target: "torch.f"}}}
	for _, d := range tensor.DTypes {
		for _, at := range []complex128{0, 1, -3, 100} {
			for _, policy := range []Policy{{}, {RTol: ptr(0), ATol: ptr(0)}, {RTol: ptr(1e-3), ATol: ptr(1e-3)}, {RTol: ptr(0), ATol: ptr(1e4)}, {RTol: ptr(0), ATol: ptr(1e-300)}} {
				ref := &backend.Outcome{Status: backend.OK, Values: []backend.Value{{Tensor: tensor.Scalar(d, at)}}}
				var last compare.Number
				calls := 0
				tr := &trial{r: result{want: ref.Values[0].Tensor}, judge: func(fake *tensor.Tensor) *Verdict {
					v := Judge(p, ref, &backend.Outcome{Status: backend.OK, Values: []backend.Value{{Tensor: fake}}}, policy)
					last = v.Worst
					calls++
					return v
				}}
				if tr.acceptsOff(ref.Values[0].Tensor) {
					t.Errorf("%s %v, %v: accepted", d, at, policy.ATol)
				}
				if !(last > 1) || calls > attempts {
					t.Errorf("%s %v: rejected at %v limits after %d attempts", d, at, last, calls)
				}
				if d == tensor.F64 && policy.ATol != nil && *policy.ATol > 1e-300 && last > 2*offBy {
					t.Errorf("%s %v: decided at %v limits", d, at, last)
				}
			}
		}
	}
}

// TestNoLimit: where every error passes, so does one element.
func TestNoLimit(t *testing.T) {
	policy := Policy{RTol: ptr(math.Inf(1)), ATol: ptr(math.Inf(1))}
	found := lines(Power(product(), expected(small(1), nil, nil), judgeBy(policy)))
	if !slices.Contains(found, oneOff+": call 0, value y") {
		t.Errorf("%q", found)
	}
}

// TestLenientJudge: a judge that forgives one element is told by the fake that
// has one wrong.
func TestLenientJudge(t *testing.T) {
	lenient := func(p *program.Program, ref, cand *backend.Outcome) *Verdict {
		v := Judge(p, ref, cand, Policy{})
		if len(v.Differences) == 1 && v.Differences[0].Diff.Mismatches == 1 {
			v.Word = Aligned
		}
		return v
	}
	found := lines(Power(product(), expected(small(1), small(1), small(1)), lenient))
	want := []string{"one element off: call 0, value y", "one element off: gradient of x", "one element off: gradient of w"}
	if !slices.Equal(found, want) {
		t.Errorf("%q", found)
	}
}

func TestFakes(t *testing.T) {
	i64 := func(shape []int, v ...int64) *tensor.Tensor { return tensor.Of(tensor.I64, shape, v) }
	bools := func(v ...bool) *tensor.Tensor { return tensor.Of(tensor.Bool, []int{len(v)}, v) }
	six := i64([]int{1, 2, 3}, 1, 2, 3, 4, 5, 6)
	for _, tt := range []struct {
		name      string
		got, want *tensor.Tensor
	}{
		{"shift dim 1", shifted(six, 1), i64([]int{1, 2, 3}, 4, 5, 6, 1, 2, 3)},
		{"shift dim 2", shifted(six, 2), i64([]int{1, 2, 3}, 3, 1, 2, 6, 4, 5)},
		{"shift nothing", shifted(i64([]int{2, 0}), 0), i64([]int{2, 0})},
		{"constant", constant(f32([]int{4}, 1, 2, 3, 6)), f32([]int{4}, 3, 3, 3, 3)},
		{"constant of finite elements", constant(f32([]int{3}, 1, math.Inf(-1), 2)), f32([]int{3}, 1.5, 1.5, 1.5)},
		{"constant of none", constant(f32([]int{2}, math.NaN(), math.NaN())), f32([]int{2}, 0, 0)},
		{"constant near the largest", constant(f32([]int{2}, math.MaxFloat32, math.MaxFloat32)), f32([]int{2}, math.MaxFloat32, math.MaxFloat32)},
		{"constant integer", constant(i64([]int{3}, 1, 2, 2)), i64([]int{3}, 2, 2, 2)},
		{"constant bool", constant(bools(true, true, false)), bools(true, true, true)},
		{"constant complex", constant(tensor.Of(tensor.C64, []int{2}, []complex64{1, 1i})), tensor.Of(tensor.C64, []int{2}, []complex64{0.5 + 0.5i, 0.5 + 0.5i})},
		{"negated", negated(f32([]int{2}, 1, -2)), f32([]int{2}, -1, 2)},
		{"negated half", negated(tensor.Float64s(tensor.F16, []int{1}, 3)), tensor.Float64s(tensor.F16, []int{1}, -3)},
		{"negated complex", negated(tensor.Of(tensor.C128, []int{1}, []complex128{1 - 2i})), tensor.Of(tensor.C128, []int{1}, []complex128{-1 + 2i})},
	} {
		if !tt.got.SameBits(tt.want) {
			t.Errorf("%s: %s", tt.name, strings.TrimSpace(fmt.Sprint(elements(tt.got))))
		}
	}
}

func elements(t *tensor.Tensor) []string {
	var out []string
	for i := range t.Len() {
		out = append(out, compare.Element(t, i))
	}
	return out
}

func TestSurvey(t *testing.T) {
	x, y := Where{Part: backend.PartGrad, Call: 1, Name: "x"}, Where{Part: backend.PartValue, Call: 0, Name: "y"}
	y0 := Where{Part: backend.PartValue, Call: 3, Name: "y", Path: []int{0}}
	wrong := func(fake string, w Where) Weakness { return Weakness{fake, w, false} }
	same := func(fake string, w Where) Weakness { return Weakness{fake, w, true} }
	for _, tt := range []struct {
		name  string
		cases [][]Weakness
		want  string
	}{
		{"nothing", [][]Weakness{nil, nil}, ""},
		{"no case", nil, ""},
		{"some", [][]Weakness{{wrong(zeros, x)}, nil, {wrong(zeros, x)}}, "weak 2/3 sampled cases: zeros accepted for gradient of x"},
		{"values before gradients, fakes in order", [][]Weakness{{wrong(flips, x), wrong(zeros, x)}, {wrong(transposes, y)}, nil},
			"weak 2/3 sampled cases: transposed accepted for y; zeros, sign flipped accepted for gradient of x"},
		{"sometimes zero", [][]Weakness{{same(zeros, y), same(constants, y)}, nil}, ""},
		{"always zero", [][]Weakness{{same(zeros, y), same(constants, y)}, {same(zeros, y), same(constants, y)}},
			"weak 2/2 sampled cases: zeros, constant accepted for y, which is all zeros"},
		{"always constant", [][]Weakness{{same(constants, x)}}, "weak 1/1 sampled cases: constant accepted for gradient of x, which is constant"},
		{"zero or too wide", [][]Weakness{{same(zeros, y)}, {wrong(zeros, y)}}, "weak 2/2 sampled cases: zeros accepted for y"},
		{"zero, too wide or neither", [][]Weakness{{same(zeros, y)}, {wrong(zeros, y)}, nil}, "weak 1/3 sampled cases: zeros accepted for y"},
		{"parts of a tuple", [][]Weakness{{wrong(zeros, y0), wrong(zeros, y)}}, "weak 1/1 sampled cases: zeros accepted for y; zeros accepted for y[0]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var s Survey
			for i, found := range tt.cases {
				s.Add(10+i, found)
			}
			got := ""
			if w := s.Weak(); w != nil {
				got = w.String()
			}
			if got != tt.want {
				t.Errorf("%q\nwant %q", got, tt.want)
			}
		})
	}
}

// TestSurveyNamesTheFirstCase: the first one that speaks against the test.
func TestSurveyNamesTheFirstCase(t *testing.T) {
	var s Survey
	x := Where{Part: backend.PartGrad, Name: "x"}
	s.Add(4, []Weakness{{zeros, x, true}})
	s.Add(6, nil)
	s.Add(7, []Weakness{{zeros, x, false}})
	want := &Weak{Cases: 1, Sampled: 3, Fakes: []Accepted{{Fake: zeros, Part: backend.PartGrad, Name: "x", Cases: 1, First: 7}}}
	if diff := cmp.Diff(want, s.Weak()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
