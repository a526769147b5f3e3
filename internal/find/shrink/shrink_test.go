package shrink

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"plumb/backend"
	"plumb/internal/draw/choice"
	"plumb/internal/judge/compare"
	"plumb/internal/judge/verdict"
	"plumb/program"
	"plumb/tensor"
)

// judged is a subject that is wrong where faulty says so: its verdict blames
// the last call.
func judged(faulty func(*program.Program) bool) Subject {
	return Subject{Judge: func(_ context.Context, p *program.Program) (*verdict.Record, error) {
		return judge(p, takesTensors(p) && faulty(p)), nil
	}}
}

// takesTensors reports whether a framework would take the calls.
func takesTensors(p *program.Program) bool {
	return !slices.ContainsFunc(p.Calls, func(c program.Call) bool { _, ok := c.Args[0].(program.Ref); return !ok })
}

func judge(p *program.Program, wrong bool) *verdict.Record {
	o := &backend.Outcome{Status: backend.OK}
	for range p.Calls {
		o.Values = append(o.Values, backend.Value{Tensor: tensor.Float64s(tensor.F32, []int{2}, 1, 2)})
	}
	r := &verdict.Record{Program: p, Verdict: &verdict.Verdict{Word: verdict.Aligned}, Reference: o, Outcome: o}
	if wrong {
		last := len(p.Calls) - 1
		r.Verdict.Word, r.Verdict.Kind = verdict.Misaligned, "value"
		r.Verdict.Where = &verdict.Where{Part: backend.PartValue, Call: last, Target: p.Calls[last].Target, Name: p.Calls[last].Result}
	}
	return r
}

func minimise(t *testing.T, text string, faulty func(*program.Program) bool) *program.Program {
	t.Helper()
	p, err := program.Parse("case.py", text)
	if err != nil {
		t.Fatal(err)
	}
	if !faulty(p) {
		t.Fatal("the case does not fail")
	}
	result, err := Shrink(t.Context(), judge(p, true), judged(faulty), DefaultBudget, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !result.Minimal || !faulty(result.Record.Program) {
		t.Errorf("minimal %t, fails %t", result.Minimal, faulty(result.Record.Program))
	}
	return result.Record.Program
}

const preamble = program.Header + "\nimport operator, torch\nfrom plumb import case, integer, tensor, uniform\n\n"

// body is a program's text from its inputs on.
func body(p *program.Program) string {
	return p.String()[len(preamble)+len("case(\"c\", seed=1)\n"):]
}

func calls(p *program.Program, target string) bool {
	return len(p.Calls) > 0 && p.Calls[len(p.Calls)-1].Target == target
}

func TestShrinkReachesTheSmallestProgram(t *testing.T) {
	for _, c := range []struct {
		name, text, want string
		faulty           func(*program.Program) bool
	}{
		{
			"calls before become an input",
			"x = tensor((3, 4), torch.float64, uniform(-1.0, 1.0, key=3), requires_grad=True)\ny = torch.exp(x)\nz = torch.tanh(y)\nw = torch.relu(z)\nw.backward(uniform(0.0, 1.0, key=4))\n",
			"z = tensor((), torch.float32, [0.0])\nw = torch.relu(z)\n",
			func(p *program.Program) bool { return calls(p, "torch.relu") },
		},
		{
			"an attribute that matters stays",
			"x = tensor((2, 5), torch.float32, uniform(-1.0, 1.0, key=3))\ny = torch.softmax(x, dim=1, dtype=torch.float64)\n",
			"x = tensor((), torch.float32, integer(0.0, 1.0, key=0))\ny = torch.softmax(x, dim=1)\n",
			func(p *program.Program) bool {
				return calls(p, "torch.softmax") && len(p.Calls[0].Kwargs) > 0 && p.Calls[0].Kwargs[0].Name == "dim" && p.Calls[0].Kwargs[0].Value == any(int64(1))
			},
		},
		{
			"a size that matters stays",
			"x = tensor((6, 7), torch.float32, uniform(-1.0, 1.0, key=3))\ny = torch.sum(x, dim=0)\n",
			"x = tensor((3,), torch.float32, integer(0.0, 1.0, key=0))\ny = torch.sum(x)\n",
			func(p *program.Program) bool {
				return calls(p, "torch.sum") && len(p.Inputs[0].Shape) > 0 && p.Inputs[0].Shape[len(p.Inputs[0].Shape)-1] >= 3
			},
		},
		{
			"a call in place becomes one that is not",
			"x = tensor((3,), torch.float32, uniform(-1.0, 1.0, key=3))\ny = x * 2\nz = y.cumprod_(0)\nw = torch.relu(y)\n",
			"y = tensor((), torch.float32, [0.0])\nz = y.cumprod()\nw = torch.relu(z)\n",
			func(p *program.Program) bool {
				return calls(p, "torch.relu") && slices.ContainsFunc(p.Calls, func(c program.Call) bool { return strings.HasPrefix(c.Target, "Tensor.cumprod") })
			},
		},
		{
			"strides that matter stay",
			"x = tensor((4, 3), torch.float64, uniform(-1.0, 1.0, key=3), strides=(1, 4))\ny = torch.neg(x)\n",
			"x = tensor((2, 2), torch.float32, integer(0.0, 1.0, key=0), strides=(1, 2))\ny = torch.neg(x)\n",
			func(p *program.Program) bool {
				in := p.Inputs[0]
				return calls(p, "torch.neg") && in.Strides != nil && !tensor.Contiguous.Matches(in.Shape, in.Strides)
			},
		},
		{
			"an element that matters stays",
			"x = tensor((5,), torch.float32, [0.25, -3.0, 1.5, 0.5, 2.0])\ny = torch.neg(x)\n",
			"x = tensor((), torch.float32, [-1.0])\ny = torch.neg(x)\n",
			func(p *program.Program) bool {
				v := p.Inputs[0].Materialize()
				for i := range v.Len() {
					if v.Float(i) < 0 {
						return calls(p, "torch.neg")
					}
				}
				return false
			},
		},
		{
			"an in-place change that matters stays",
			"x = tensor((2,), torch.float32, uniform(-1.0, 1.0, key=3))\ny = torch.neg(x)\nz = y.add_(1)\nw = torch.exp(y)\nv = torch.relu(y)\n",
			"y = tensor((), torch.float32, [0.0])\nz = y.add_()\nv = torch.relu(y)\n",
			func(p *program.Program) bool {
				return calls(p, "torch.relu") && slices.ContainsFunc(p.Calls, func(c program.Call) bool { return c.Target == "Tensor.add_" })
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := minimise(t, preamble+"case(\"c\", seed=1)\n"+c.text, c.faulty)
			if got := body(p); got != c.want {
				t.Errorf("got\n%swant\n%s", got, c.want)
			}
		})
	}
}

// TestSignatureKeepsTheFault: a program that fails in another way is no smaller
// form of this failure.
func TestSignatureKeepsTheFault(t *testing.T) {
	p, err := program.Parse("c.py", preamble+"case(\"c\", seed=1)\nx = tensor((4,), torch.float32, uniform(-1.0, 1.0, key=3))\ny = torch.neg(x)\n")
	if err != nil {
		t.Fatal(err)
	}
	s := Subject{Judge: func(_ context.Context, p *program.Program) (*verdict.Record, error) {
		r := judge(p, takesTensors(p))
		if takesTensors(p) && (len(p.Inputs[0].Shape) == 0 || p.Inputs[0].Shape[0] < 2) {
			r.Verdict.Kind = "shape"
		}
		return r, nil
	}}
	result, err := Shrink(t.Context(), judge(p, true), s, DefaultBudget, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := result.Record.Program.Inputs[0].Shape; len(got) != 1 || got[0] != 2 {
		t.Errorf("the shape became %v, want [2]: smaller ones fail in another way", got)
	}
}

func TestBudgetEndsTheSearchWithTheBest(t *testing.T) {
	text := preamble + "case(\"c\", seed=1)\nx = tensor((9, 9), torch.float32, uniform(-1.0, 1.0, key=3))\ny = torch.neg(x)\nz = torch.neg(y)\n"
	p, err := program.Parse("c.py", text)
	if err != nil {
		t.Fatal(err)
	}
	faulty := func(p *program.Program) bool { return calls(p, "torch.neg") }
	for _, runs := range []int{0, 1, 2, 5} {
		result, err := Shrink(t.Context(), judge(p, true), judged(faulty), Budget{runs, time.Minute}, nil)
		if err != nil || result.Runs > runs || result.Minimal || !faulty(result.Record.Program) {
			t.Errorf("budget %d: %d runs, minimal %t, error %v", runs, result.Runs, result.Minimal, err)
		}
	}
}

func TestAFaultOfTheHarnessEndsTheSearch(t *testing.T) {
	p, err := program.Parse("c.py", preamble+"case(\"c\", seed=1)\nx = tensor((9,), torch.float32, uniform(-1.0, 1.0, key=3))\ny = torch.neg(x)\n")
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("the worker is gone")
	runs := 0
	s := Subject{Judge: func(_ context.Context, p *program.Program) (*verdict.Record, error) {
		if runs++; runs > 1 {
			return nil, broken
		}
		return judge(p, true), nil
	}}
	result, err := Shrink(t.Context(), judge(p, true), s, DefaultBudget, nil)
	if !errors.Is(err, broken) || result == nil || runs != 2 {
		t.Errorf("%d runs, error %v, result %v", runs, err, result)
	}
}

// TestDrawsShrinkFirst: the smallest case that the test can draw is found
// through its decisions, and they draw it again.
func TestDrawsShrinkFirst(t *testing.T) {
	redraw := func(record []choice.Choice) (*program.Program, []choice.Choice, error) {
		src := choice.Replay(9, record)
		in := program.Input{Name: "x", DType: tensor.F32, Fill: program.Fill{Dist: program.Uniform, Lo: -1, Hi: 1, Key: 5}}
		for range src.Int(1, 5) {
			in.Shape = append(in.Shape, int(src.Int(1, 8)))
		}
		p := &program.Program{Name: "c", Seed: 1, Inputs: []program.Input{in}}
		p.Calls = []program.Call{{Result: "y", Target: "torch.neg", Args: []any{program.Ref("x")}}}
		if src.Bool() {
			p.Calls = append(p.Calls, program.Call{Result: "z", Target: "torch.exp", Args: []any{program.Ref("y")}})
		}
		return p, src.Record(), nil
	}
	faulty := func(p *program.Program) bool { return tensor.NumElements(p.Inputs[0].Shape) >= 4 }
	record := []choice.Choice{{Kind: choice.Int, Value: 3}, {Kind: choice.Int, Value: 7}, {Kind: choice.Int, Value: 6}, {Kind: choice.Int, Value: 5}, {Kind: choice.Index, Value: 0}}
	p, took, err := redraw(record)
	if err != nil || !faulty(p) {
		t.Fatal(err, p)
	}
	s := judged(faulty)
	s.Redraw = func(r []choice.Choice) (*program.Program, []choice.Choice, error) {
		if r == nil {
			r = took
		}
		return redraw(r)
	}
	h := &search{ctx: t.Context(), subject: s, runs: 500, tried: map[string]bool{}, size: sizeOf(p)}
	first := judge(p, true)
	h.result = Result{Record: first, Signature: SignatureOf(first)}
	h.draws()
	if n := tensor.NumElements(h.best().Inputs[0].Shape); n != 4 {
		t.Errorf("%d elements, want 4, of\n%s", n, h.best())
	}
	again, _, err := redraw(h.result.Choices)
	if err != nil || again.ID() != h.best().ID() {
		t.Errorf("the decisions draw\n%snot\n%s", again, h.best())
	}
}

// TestShrinkFocusesOnTheWorstElement: where one element in many shows a fault,
// and not the first along any axis, that element is kept at once.
func TestShrinkFocusesOnTheWorstElement(t *testing.T) {
	p, err := program.Parse("case.py", preamble+"case(\"c\", seed=1)\nx = tensor((7, 11), torch.float32, uniform(0.0, 1.0, key=3))\ny = torch.log1p(x)\n")
	if err != nil {
		t.Fatal(err)
	}
	values := p.Inputs[0].Materialize()
	most := 0
	for i := range values.Len() {
		if values.Float(i) > values.Float(most) {
			most = i
		}
	}
	if most < 11 || most%11 == 0 {
		t.Fatalf("element %d is the first along an axis", most)
	}
	judgeMost := func(p *program.Program) *verdict.Record {
		r := judge(p, false)
		if len(p.Inputs) == 0 {
			return r
		}
		x := p.Inputs[0].Materialize()
		r.Reference.Values[0].Tensor = x
		for i := range x.Len() {
			if x.Float(i) == values.Float(most) {
				r = judge(p, true)
				r.Reference.Values[0].Tensor = x
				worst := []int{}
				if n := x.Dim(); n == 2 {
					worst = []int{i / x.Shape()[1], i % x.Shape()[1]}
				} else if n == 1 {
					worst = []int{i}
				}
				r.Verdict.Differences = []verdict.Difference{{Where: *r.Verdict.Where, Diff: compare.Diff{Worst: worst}}}
			}
		}
		return r
	}
	subject := Subject{Judge: func(_ context.Context, p *program.Program) (*verdict.Record, error) { return judgeMost(p), nil }}
	result, err := Shrink(t.Context(), judgeMost(p), subject, DefaultBudget, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := result.Record.Program.Inputs[0].Materialize(); got.Len() != 1 || got.Float(0) != values.Float(most) {
		t.Errorf("got\n%s", result.Record.Program)
	}
	if result.Runs > 20 {
		t.Errorf("%d runs, want a few", result.Runs)
	}
}
