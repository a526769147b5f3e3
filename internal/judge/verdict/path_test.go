package verdict_test

import (
	"context"
	"math"
	"slices"
	"testing"

	"plumb/backend"
	"plumb/backend/native"
	"plumb/internal/judge"
	"plumb/internal/judge/verdict"
	"plumb/nn"
	"plumb/ops"
	"plumb/program"
)

// unitLower is a candidate whose exp is a unit in the last place too small.
func unitLower(t *testing.T) *native.Backend {
	return planted(t, "exp", after(each(func(v float64) float64 { return float64(math.Nextafter32(float32(v), 0)) })))
}

// judgePath judges a program twice: as it is, and with the candidate's path.
// Tamper changes the candidate's outcome.
func judgePath(t *testing.T, text string, tamper func(*backend.Outcome)) (direct, settled *verdict.Verdict) {
	t.Helper()
	p, err := program.Parse("p.py", text)
	if err != nil {
		t.Fatal(err)
	}
	ref := native.New(ops.Table(), nn.Modules())
	run := func(b *native.Backend, j *backend.Job) *backend.Outcome {
		out, err := b.Run(context.Background(), j)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	plain := judge.New(judge.Config{Table: ops.Table(), Modules: nn.Modules(), CanAskReference: true, Oracle: judge.OnMismatch})
	judged := func(j *backend.Job, want, got *backend.Outcome) *verdict.Verdict {
		c := plain.Case(j, want, got)
		c.Policy.NoScalars = true // no exact values
		return c.Verdict(nil)
	}
	job := backend.NewJob(p)
	want, got := run(ref, job), run(unitLower(t), job)
	if want.Status != backend.OK {
		t.Fatal(want.Message)
	}
	if tamper != nil {
		tamper(got)
	}
	direct = judged(job, want, got)
	path := verdict.Along(job, want, got, direct)
	if path == nil {
		return direct, direct
	}
	if err := path.Job.Program.Validate(); err != nil {
		t.Fatal(err)
	}
	on := run(ref, path.Job)
	if on.Status != backend.OK {
		t.Fatal(on.Message)
	}
	return direct, path.Settle(direct, judged(path.Job, on, path.Lift(on, got)))
}

// jump is a program whose exp is 2 or one unit less, where floor jumps.
const jump = "x = tensor((2,), torch.float32, [0.6931471824645996, 1.5], requires_grad=True)\n" +
	"y = torch.exp(x)\nz = torch.floor(y)\nw = z + y\ni = y >= 2.0\n"

func TestPathExcusesWhatIsInherited(t *testing.T) {
	for name, text := range map[string]string{
		"a jump":       jump,
		"a tolerance":  "case(\"p.py::p\", seed=1, rtol=1e-5, atol=1e-6)\n" + jump,
		"a kink":       "x = tensor((2,), torch.float32, [0.6931472420692444, 1.5], requires_grad=True)\ny = torch.exp(x)\nd = y - 2.0\nr = torch.relu(d)\nr.backward()\n",
		"a comparison": "x = tensor((1,), torch.float32, [0.6931471824645996])\ny = torch.exp(x)\ni = y >= 2.0\n",
		"an order":     "x = tensor((2,), torch.float32, [0.6931471824645996, 0.0])\ny = torch.exp(x)\nc = tensor((1,), torch.float32, [2.0])\nz = torch.cat([y, c])\ni = torch.argmax(z)\n",
		"an infinity":  "x = tensor((1,), torch.float32, [0.6931472420692444])\ny = torch.exp(x)\nd = y - 2.0\nr = torch.log(d)\ns = r + 1.0\n",
		"a pole":       "x = tensor((1,), torch.float32, [0.6931471824645996])\ny = torch.exp(x)\nd = y - 2.0\nr = torch.sqrt(d)\ns = r + 1.0\n",
	} {
		direct, settled := judgePath(t, text, nil)
		if direct.Word != verdict.Misaligned {
			t.Errorf("%s: %s before: the program shows nothing", name, direct.Word)
		}
		if settled.Word != verdict.Aligned || settled.Inherited == nil {
			t.Errorf("%s: %s", name, settled.Text())
		}
	}
}

// TestEdgesOfDomains: where the reference cannot be asked about the candidate's operands, a NaN
// stands for a number where rounding decides whether the operand is in the domain, and for what
// follows from it; not elsewhere.
func TestEdgesOfDomains(t *testing.T) {
	const text = "x = tensor((2,), torch.float32, [0.6931471824645996, 2.0])\ny = torch.exp(x)\nd = y - 2.0\nr = torch.sqrt(d)\ns = r + 1.0\nm = torch.sum(s)\n"
	p, err := program.Parse("p.py", text)
	if err != nil {
		t.Fatal(err)
	}
	job := backend.NewJob(p)
	plain := judge.New(judge.Config{Table: ops.Table(), Modules: nn.Modules()})
	want, err := native.New(ops.Table(), nn.Modules()).Run(t.Context(), job)
	if err != nil || want.Status != backend.OK {
		t.Fatalf("%+v, %v", want, err)
	}
	for at, word := range []verdict.Word{verdict.Aligned, verdict.Misaligned} {
		got := *want
		got.Values = slices.Clone(want.Values)
		for k := range got.Values {
			c := got.Values[k].Tensor.Clone()
			switch k {
			case 2, 3:
				c.Set(at, complex(math.NaN(), 0))
			case 4:
				c.Set(0, complex(math.NaN(), 0))
			}
			got.Values[k].Tensor = c
		}
		c := plain.Case(job, want, &got)
		c.Policy.NoScalars, c.Policy.Recorded = true, true
		if v := c.Verdict(nil); v.Word != word {
			t.Errorf("a NaN at %d: %s", at, v.Text())
		}
	}
}

// TestPathBlamesFaults: on its own operands, a wrong result is wrong, whatever
// was inherited besides.
func TestPathBlamesFaults(t *testing.T) {
	set := func(call int, v float64) func(*backend.Outcome) {
		return func(o *backend.Outcome) {
			c := o.Values[call].Tensor.Clone()
			c.Set(c.Len()-1, complex(v, 0))
			o.Values[call].Tensor = c
		}
	}
	kink := "x = tensor((2,), torch.float32, [0.6931472420692444, 1.5], requires_grad=True)\ny = torch.exp(x)\nd = y - 2.0\nr = torch.relu(d)\nr.backward()\n"
	for _, c := range []struct {
		name, text, blamed string
		tamper             func(*backend.Outcome)
	}{
		{"floor", jump, "z", set(1, 3)},
		{"floor with a tolerance", "case(\"p.py::p\", seed=1, rtol=1e-5, atol=1e-6)\n" + jump, "z", set(1, 3)},
		{"a sum after a jump", jump, "w", set(2, 9)},
		{"a comparison after a jump", jump, "i", set(3, 0)},
		{"exp", jump, "y", set(0, 4.4818)},
		{"a gradient at a kink", kink, "x", func(o *backend.Outcome) {
			g := o.Grad("x").Clone()
			g.Set(1, 2*g.At(1))
			*o = *o.With(backend.Place{Part: backend.PartGrad, Owner: "x"}, g)
		}},
	} {
		_, settled := judgePath(t, c.text, c.tamper)
		if settled.Word != verdict.Misaligned || settled.Where.Name != c.blamed {
			t.Errorf("%s: want %s blamed, got %s", c.name, c.blamed, settled.Text())
		}
	}
}

// TestPathKeepsToPrograms: no path where calls are no functions of their arguments.
func TestPathKeepsToPrograms(t *testing.T) {
	for _, text := range []string{
		"x = tensor((1,), torch.float32, [0.6931471824645996])\ny = torch.exp(x)\nu = y.mul_(1.0)\nz = torch.floor(y)\n",
	} {
		direct, settled := judgePath(t, text, nil)
		if direct.Word != verdict.Misaligned || settled != direct {
			t.Errorf("%s\nwas followed: %s", text, settled.Text())
		}
	}
}
