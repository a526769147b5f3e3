package plumb_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"plumb"
	"plumb/api"
	"plumb/backend"
	"plumb/backend/native"
	"plumb/graph"
	"plumb/internal/draw/choice"
	"plumb/internal/draw/opcase"
	"plumb/nn"
	"plumb/op"
	"plumb/ops"
	"plumb/program"
	"plumb/tensor"
)

func TestConv2D(t *testing.T) {
	plumb.Check(t, func(p *plumb.T) {
		channels, kernel := p.Int(1, 6), p.Int(1, 4)
		x := p.Tensor(plumb.NDim(4), plumb.Dim(1, channels))
		w := p.Tensor(plumb.Dims(p.Int(1, 6), channels, kernel, kernel))
		p.Return(p.Torch("nn.functional.conv2d", x, w, plumb.Kw("stride", p.Maybe(p.Int(1, 4))), plumb.Kw("padding", p.OneOf(0, 1, []int{2, 1}, "same"))))
	})
}

func TestModule(t *testing.T) {
	plumb.Check(t, func(p *plumb.T) {
		features := p.Int(2, 7)
		m := p.Module("nn.BatchNorm1d", features)
		m.Method("train", p.Bool())
		x := p.Tensor(plumb.Dims(p.Int(2, 5), features))
		p.Return(m.Call(x).Mul(2).Sub(x))
	}, plumb.DTypes(tensor.F32, tensor.F64))
}

func TestTuplesAndValues(t *testing.T) {
	plumb.Check(t, func(p *plumb.T) {
		x := p.Tensor(plumb.NDim(2), plumb.DType(tensor.F64))
		r := p.Torch("max", x, plumb.Kw("dim", 1))
		if n := len(r.Unpack()); n != 2 {
			p.Fatalf("max over a dimension has %d results", n)
		}
		if got := r.At(0).Shape(); len(got) != 1 || got[0] != x.Shape()[0] {
			p.Fatalf("its shape is %v", got)
		}
		n := x.Method("sum").Item().(float64) + 100
		p.Return(r, x.Index(plumb.Ellipsis, plumb.Slice(nil, 1, nil)).Div(n))
	})
}

func TestTyped(t *testing.T) {
	plumb.Check(t, func(p *plumb.T) {
		x := p.Tensor(plumb.NDim(p.Int(2, 4))).Typed()
		y := plumb.Must(api.Softmax(x, -1))
		values, indices, err := api.MaxDim(y, 0, api.MaxDimOptions{Keepdim: p.Bool()})
		plumb.NoError(err)
		z := plumb.Must(api.Add(api.Number(2), plumb.Must(api.Mul(values, plumb.Must(p.Session().Ones(values.Shape()))))))
		parts := plumb.Must(api.Split(x, api.Number(2), api.SplitOptions{Dim: 1}))
		p.Return(z, indices, parts[0], p.Dynamic(y).Method("sum"))
	})
}

func TestLayoutsAndEdges(t *testing.T) {
	plumb.Check(t, func(p *plumb.T) {
		x := p.Tensor(plumb.NDim(4), plumb.Dim(0, p.Int(1, 4)), plumb.Layouts("contiguous", "non-contiguous", "channels_last"))
		y := p.Tensor(plumb.NDim(1), plumb.Dim(0, p.Int(1, 9)), plumb.Special("zeros", "inf", "nan"), plumb.RequiresGrad(false))
		p.Return(p.Torch("tanh", x).Add(p.Torch("relu", y).Method("nansum")))
	})
}

func TestSecondOrder(t *testing.T) {
	plumb.Check(t, func(p *plumb.T) {
		x := p.Tensor(plumb.NDim(2), plumb.DType(tensor.F64))
		p.Return(p.Torch("sin", x).Mul(x))
	}, plumb.SecondOrder())
}

func TestInPlace(t *testing.T) {
	plumb.Check(t, func(p *plumb.T) {
		x := p.Tensor(plumb.Dims(p.Int(1, 4), p.Int(5, 8)))
		y := x.Mul(2)
		y.SetIndex(1.5, plumb.All, plumb.Slice(1, nil, 2))
		y.SetIndex(x.Index(0, 0), 0, 0)
		y.Method("unsqueeze_", 0)
		if got := y.Shape(); len(got) != 3 || got[0] != 1 {
			p.Fatalf("the shape is %v after unsqueeze_", got)
		}
		p.Return(y)
	})
}

// fake is a testing.TB that keeps what a test prints.
type fake struct {
	testing.TB
	name   string
	log    strings.Builder
	failed bool
	state  string // "skip" or "fatal"
}

type ended struct{}

func (f *fake) Helper()      {}
func (f *fake) Name() string { return f.name }
func (f *fake) Failed() bool { return f.failed }
func (f *fake) Logf(format string, args ...any) {
	fmt.Fprintf(&f.log, format+"\n", args...)
}
func (f *fake) Log(args ...any) { fmt.Fprintln(&f.log, args...) }
func (f *fake) Errorf(format string, args ...any) {
	f.failed = true
	f.Logf(format, args...)
}
func (f *fake) Fatalf(format string, args ...any) {
	f.Errorf(format, args...)
	f.state = "fatal"
	panic(ended{})
}
func (f *fake) Skipf(format string, args ...any) {
	f.Logf(format, args...)
	f.state = "skip"
	panic(ended{})
}

// play runs a Check as a test of a name would, with flags such as
// "plumb.seed=7".
func play(t *testing.T, name string, flags []string, f func(p *plumb.T), options ...plumb.Option) (tb *fake) {
	t.Helper()
	give(t, flags)
	tb = &fake{TB: t, name: name}
	defer func() {
		if r := recover(); r != nil && r != (ended{}) {
			panic(r)
		}
	}()
	plumb.Check(tb, f, options...)
	return tb
}

// give sets flags for the rest of the test. A flag set remembers which flags
// were given: those of the process must not.
func give(t *testing.T, flags []string) {
	t.Helper()
	all := flag.CommandLine
	flag.CommandLine = flag.NewFlagSet(t.Name(), flag.ContinueOnError)
	t.Cleanup(func() { flag.CommandLine = all })
	all.VisitAll(func(f *flag.Flag) { flag.Var(f.Value, f.Name, f.Usage) })
	all.Visit(func(f *flag.Flag) { _ = flag.Set(f.Name, f.Value.String()) })
	for _, pair := range flags {
		key, value, _ := strings.Cut(pair, "=")
		of := flag.Lookup(key).Value
		before := of.String()
		if err := flag.Set(key, value); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = of.Set(before) })
	}
}

// crooked is a table in which relu is wrong where a tensor has more than three
// elements: its last one is off by a tenth.
func crooked(t *testing.T) *op.Table {
	return altered(t, "relu", func(out *tensor.Tensor) {
		if out.Len() > 3 {
			out.Set(out.Len()-1, out.At(out.Len()-1)+0.1)
		}
	})
}

// altered is Plumb's table with an operator whose results are changed.
func altered(t *testing.T, id string, change func(out *tensor.Tensor)) *op.Table {
	t.Helper()
	own := *ops.Table().Def(id)
	all := slices.Clone(ops.All())
	at := slices.IndexFunc(all, func(d *op.Def) bool { return d.ID() == id })
	own.Kernels = slices.Clone(own.Kernels)
	for i, k := range own.Kernels {
		own.Kernels[i].Run = func(r *op.Run) error {
			err := k.Run(r)
			change(r.Out[0])
			return err
		}
	}
	all[at] = &own
	table, err := op.NewTable(all...)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func drawRelu(p *plumb.T) { p.Return(p.Torch("relu", p.Tensor(plumb.NDim(2))).Mul(2)) }

// TestFailure plants a wrong operator: the failure names the call, the error,
// the limit and the program, and its last line finds the same program again.
func TestFailure(t *testing.T) {
	table := crooked(t)
	reference := "plumb.reference=native"
	own := plumb.Candidate(native.New(table, nn.Modules()))
	first := play(t, "TestPlanted/relu (f)", []string{reference, "plumb.seed=7"}, drawRelu, own)
	if !first.failed {
		t.Fatalf("the planted operator passes: %s", &first.log)
	}
	text := first.log.String()
	for _, want := range []string{"TestPlanted/relu (f), case ", "candidate native in eager, graph, graph-plain\n", "misaligned (value): call 0, value v1: ", "v1 = torch.relu(x1)\n", "limit ", "error       max abs 0.1", "\nx1 = tensor((4,), torch.float32, integer(0.0, 1.0, key=0))\nv1 = torch.relu(x1)\n\n", " of 20 cases; the program is the smallest that was found in "} {
		if !strings.Contains(text, want) {
			t.Errorf("the failure does not say %q:\n%s", want, text)
		}
	}
	again := regexp.MustCompile(`(?m)^again: go test -run '(.*)' -plumb.seed=7 -plumb.n=(\d+) -plumb.reference=native$`).FindStringSubmatch(text)
	if again == nil || again[1] != `^TestPlanted$/^relu \(f\)$` {
		t.Fatalf("no command to run again in:\n%s", text)
	}
	second := play(t, "TestPlanted/relu (f)", []string{reference, "plumb.seed=7", "plumb.n=" + again[2]}, drawRelu, own)
	if got := id(second.log.String()); got == "" || got != id(text) {
		t.Errorf("the command finds program %q, not %q", got, id(text))
	}
	if other := play(t, "TestPlanted/relu (f)", []string{reference, "plumb.seed=8"}, drawRelu, own); id(other.log.String()) == id(text) {
		t.Error("another seed draws the same program")
	}
	if a, b := printed(t, text), printed(t, second.log.String()); a.ID() != b.ID() {
		t.Errorf("the smallest programs are\n%s\nand\n%s", a, b)
	}
	drawn := play(t, "TestPlanted/relu (f)", []string{reference, "plumb.seed=7", "plumb.n=20", "plumb.shrink=0"}, drawRelu, own)
	if p := printed(t, drawn.log.String()); p.ID() != id(text) || len(p.Calls) != 2 {
		t.Errorf("without making it smaller, the program printed is not %s:\n%s", id(text), p)
	}
}

// printed is the program in what a test prints, read back.
func printed(t *testing.T, text string) *program.Program {
	t.Helper()
	_, after, _ := strings.Cut(text, program.Header)
	body, _, _ := strings.Cut(after, "\nseen: ")
	p, err := program.Parse("printed", program.Header+body)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return p
}

func id(text string) string {
	if m := regexp.MustCompile(`, case \d+ \(([0-9a-f]{16})\)`).FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return ""
}

// turned is a pass that computes the sine where a graph asks for the cosine.
func turned(c *graph.Code) (int, error) {
	count := 0
	for _, n := range c.Nodes {
		if n.Kind == graph.Apply && n.Call.Def.ID() == "cos" {
			call := *n.Call
			call.Def = ops.Table().Def("sin")
			n.Call = &call
			count++
		}
	}
	return count, nil
}

// TestGraphsAreChecked plants a pass that shows in the gradients of graphs alone:
// it is found unless the test or the flag asks for no graphs.
func TestGraphsAreChecked(t *testing.T) {
	own := plumb.Candidate(native.New(ops.Table(), nn.Modules()).Compiling(graph.Options{Passes: slices.Insert(graph.Passes(), 0, graph.Pass{Name: "turn", Run: turned})}))
	draws := map[string]func(p *plumb.T){
		"input": func(p *plumb.T) { p.Return(p.Torch("sin", p.Tensor(plumb.NDim(2)))) },
		"module": func(p *plumb.T) {
			p.Return(p.Torch("sin", p.Module("nn.Linear", 3, 2).Call(p.Tensor(plumb.Dims(2, 3), plumb.RequiresGrad(false)))))
		},
	}
	for name, draw := range draws {
		for _, c := range []struct {
			flag, again string
			options     []plumb.Option
			found       bool
		}{
			{found: true},
			{options: []plumb.Option{plumb.CheckGraph(false)}},
			{flag: "plumb.check-graph=false"},
			{flag: "plumb.check-graph=true", again: " -plumb.check-graph=true\n", options: []plumb.Option{plumb.CheckGraph(false)}, found: true},
		} {
			t.Run(name+" "+c.flag, func(t *testing.T) {
				flags := []string{"plumb.reference=native", "plumb.seed=1", "plumb.n=2", "plumb.shrink=0"}
				if c.flag != "" {
					flags = append(flags, c.flag)
				}
				got := play(t, "TestGraphs", flags, draw, append(c.options, own)...)
				text := got.log.String()
				if got.failed != c.found {
					t.Fatalf("failed is %v, want %v: %s", got.failed, c.found, text)
				}
				if !c.found {
					return
				}
				for _, want := range []string{"candidate native in graph (to blame: pass turn)\nmisaligned (", "the values agree; gradient of ", c.again} {
					if !strings.Contains(text, want) {
						t.Errorf("the failure does not say %q: %s", want, text)
					}
				}
				if steps := strings.Contains(text, ", sgd=("); steps != (name == "module") {
					t.Errorf("takes a step: %v\n%s", steps, text)
				}
			})
		}
	}
}

// TestGraphsOfCandidatesWithoutThem asks for a check of graphs where there are
// none: an error, or nothing where a test names its candidate itself.
func TestGraphsOfCandidatesWithoutThem(t *testing.T) {
	flags := []string{"plumb.reference=native", "plumb.n=2", "plumb.check-graph=true"}
	if got := play(t, "TestX", flags, drawRelu, plumb.Candidate(stubborn{backend.Unsupported})); got.state != "skip" {
		t.Errorf("the test's own candidate: %s", &got.log)
	}
	want := "no effect on native:graph: it runs every case in the mode graph already"
	if got := play(t, "TestX", append(flags, "plumb.candidate=native:graph"), drawRelu); got.state != "fatal" || !strings.Contains(got.log.String(), want) {
		t.Errorf("%s", &got.log)
	}
}

// TestTableIsJudged judges an operator of the caller's own table, by default
// against PyTorch; here Plumb's own operators stand in for it.
func TestTableIsJudged(t *testing.T) {
	got := play(t, "TestTable", []string{"plumb.reference=none"}, drawRelu, plumb.Table(crooked(t)))
	if got.failed {
		t.Errorf("a table held to itself: %s", &got.log)
	}
}

// stubborn refuses every program, or says that it does not know it.
type stubborn struct{ status backend.Status }

func (stubborn) Info() backend.Info { return backend.Info{Name: "stubborn"} }
func (stubborn) Close() error       { return fmt.Errorf("closed by another than its owner") }
func (s stubborn) Run(context.Context, *backend.Job) (*backend.Outcome, error) {
	return &backend.Outcome{Status: s.status, Class: "RuntimeError", Message: "no"}, nil
}

func TestCandidate(t *testing.T) {
	flags := []string{"plumb.reference=native", "plumb.n=3"}
	refuses := play(t, "TestX", flags, drawRelu, plumb.Candidate(stubborn{backend.Raised}))
	if text := refuses.log.String(); !refuses.failed || !strings.Contains(text, "candidate stubborn") || !strings.Contains(text, "misaligned (exception)") {
		t.Errorf("a candidate that refuses:\n%s", text)
	}
	unable := play(t, "TestX", flags, drawRelu, plumb.Candidate(stubborn{backend.Unsupported}))
	if unable.failed || unable.state != "skip" || !strings.Contains(unable.log.String(), "nothing was compared") {
		t.Errorf("a candidate that supports nothing: %s %s", unable.state, &unable.log)
	}
}

// TestMistakes are tests that are wrong themselves: they fail at the line of
// the mistake.
func TestMistakes(t *testing.T) {
	var kept *plumb.Value
	for name, c := range map[string]struct {
		f    func(p *plumb.T)
		want string
	}{
		"no call":         {func(p *plumb.T) { p.Int(1, 2) }, "records no call"},
		"empty range":     {func(p *plumb.T) { p.Int(3, 3) }, "there is no int in [3, 3)"},
		"weights":         {func(p *plumb.T) { p.Weighted([]float64{0.5, 1}, 1, 2) }, "must add up to 1"},
		"no alternative":  {func(p *plumb.T) { p.OneOf() }, "needs at least one"},
		"unknown group":   {func(p *plumb.T) { p.DType("real") }, `unknown group "real"`},
		"layout":          {func(p *plumb.T) { p.Tensor(plumb.Layouts("round")) }, "is no layout"},
		"special":         {func(p *plumb.T) { p.Tensor(plumb.Special("pi")) }, "is no kind of edge value"},
		"dimension":       {func(p *plumb.T) { p.Tensor(plumb.Dim(7, 1)) }, "only the dimensions 0 to 4"},
		"positional":      {func(p *plumb.T) { p.Torch("relu", p.Nothing()) }, "leaves out an argument by keyword"},
		"order":           {func(p *plumb.T) { p.Torch("sum", plumb.Kw("dim", 0), p.Tensor()) }, "a positional argument follows"},
		"type":            {func(p *plumb.T) { p.Torch("relu", struct{}{}) }, "a struct {} cannot be passed"},
		"nil value":       {func(p *plumb.T) { p.Torch("relu", kept) }, "a value of another case"},
		"no module":       {func(p *plumb.T) { p.Module("relu") }, "is no module's class"},
		"called a tensor": {func(p *plumb.T) { p.Tensor().Call() }, "cannot be called"},
		"no gradient":     {func(p *plumb.T) { p.Return(1) }, "int has no gradient"},
		"no tuple":        {func(p *plumb.T) { p.Torch("relu", p.Tensor()).At(0) }, "is no tuple"},
		"no element":      {func(p *plumb.T) { p.Torch("max", p.Tensor(), 0).At(2) }, "element 2 of a tuple of 2"},
		"foreign tensor":  {func(p *plumb.T) { api.Add(api.NewSession().Wrap(tensor.New(tensor.F32)), p.Tensor().Typed()) }, "records no call"},
		"wrong session":   {func(p *plumb.T) { p.Torch("relu", api.NewSession().Wrap(tensor.New(tensor.F32))) }, "a tensor of another session"},
		"fatal":           {func(p *plumb.T) { p.Fatalf("case of %d", 3) }, "case of 3"},
		"panic":           {func(p *plumb.T) { panic("oh") }, "panic: oh"},
	} {
		got := play(t, "TestX", []string{"plumb.reference=none"}, c.f)
		if text := got.log.String(); !got.failed || !strings.Contains(text, c.want) {
			t.Errorf("%s: want %q in:\n%s", name, c.want, text)
		} else if c.want != "records no call" && c.want != "panic: oh" && !strings.Contains(text, "plumb_test.go:") {
			t.Errorf("%s: no line of the test in:\n%s", name, text)
		}
	}
}

// TestFailNowInside ends the draw's goroutine as a real test's t.FailNow does.
func TestFailNowInside(t *testing.T) {
	got := play(t, "TestX", []string{"plumb.reference=none"}, func(p *plumb.T) {
		inner := &testing.T{}
		inner.FailNow()
	})
	if text := got.log.String(); !got.failed || !strings.Contains(text, "ended its goroutine") {
		t.Errorf("FailNow inside of the function:\n%s", text)
	}
}

// TestRefusals: a typed call that Plumb refuses ends the draw, and is a case.
func TestRefusals(t *testing.T) {
	got := play(t, "TestX", []string{"plumb.reference=native", "plumb.n=2"}, func(p *plumb.T) {
		x := p.Tensor(plumb.NDim(2)).Typed()
		if p.Bool() {
			plumb.Must(api.Softmax(x, 7))
			t.Error("the draw goes on after a refused call")
		}
		p.Return(plumb.Must(api.Exp(x)))
	})
	if got.failed || !strings.Contains(got.log.String(), "2 aligned") {
		t.Errorf("%s", &got.log)
	}
	most := play(t, "TestX", []string{"plumb.reference=native", "plumb.n=4", "plumb.seed=1"}, func(p *plumb.T) {
		p.Torch("softmax", p.Tensor(plumb.NDim(1)), p.OneOf(0, 1, 2, 3, 4))
	})
	if !regexp.MustCompile(`weak: of TestX both sides refuse \d+ draws and take 4\n`).MatchString(most.log.String()) {
		t.Errorf("a test that mostly refuses: %s", &most.log)
	}
	if !strings.Contains(play(t, "TestX", []string{"plumb.reference=native"}, func(p *plumb.T) {
		_, err := p.Session().Gradients(p.Tensor().Typed(), nil, false)
		plumb.NoError(err)
	}).log.String(), "the session records its calls") {
		t.Error("Gradients of a recording gives no error")
	}
}

// TestRecorded keeps what a reference does in a file, and judges by it.
func TestRecorded(t *testing.T) {
	file := t.TempDir() + "/cases.plumb"
	if got := play(t, "TestX", []string{"plumb.reference=native", "plumb.seed=3", "plumb.n=4", "plumb.record=" + file}, drawRelu); got.failed {
		t.Fatalf("%s", &got.log)
	}
	flags := []string{"plumb.record=", "plumb.n=20", "plumb.seed=99", "plumb.reference=recorded:" + file}
	if got := play(t, "TestX", flags, drawRelu); got.failed || !strings.Contains(got.log.String(), "4 aligned") {
		t.Errorf("%s", &got.log)
	}
	if got := play(t, "TestX", flags, drawRelu, plumb.Candidate(native.New(crooked(t), nn.Modules()))); !got.failed {
		t.Error("the planted operator passes a recorded reference")
	}
	if got := play(t, "TestY", flags, drawRelu); !got.failed || !strings.Contains(got.log.String(), "has no case of this test") {
		t.Errorf("a test that was not recorded: %s", &got.log)
	}
}

// TestWithoutPyTorch runs a test of this package in a process that finds none.
func TestWithoutPyTorch(t *testing.T) {
	run := func(args ...string) string {
		cmd := exec.Command(os.Args[0], append([]string{"-test.run=^TestConv2D$", "-test.v"}, args...)...)
		cmd.Env = append(os.Environ(), "PLUMB_PYTHON=/no/such/python")
		out, _ := cmd.CombinedOutput()
		return string(out)
	}
	if out := run(); !regexp.MustCompile(`(?m)^ +plumb_test.go:\d+: needs PyTorch as the reference: .*no Python.*$`).MatchString(out) || !strings.Contains(out, "SKIP: TestConv2D") {
		t.Errorf("without PyTorch:\n%s", out)
	}
	if out := run("-plumb.reference=torch"); !strings.Contains(out, "FAIL: TestConv2D") {
		t.Errorf("a reference that was asked for and is missing:\n%s", out)
	}
	if out := run("-plumb.reference=none"); !strings.Contains(out, "PASS: TestConv2D") || !strings.Contains(out, "20 aligned") {
		t.Errorf("without a reference:\n%s", out)
	}
}

func TestFlags(t *testing.T) {
	if got := play(t, "TestX", []string{"plumb.reference=none", "plumb.n=-1"}, drawRelu); got.state != "fatal" || !strings.Contains(got.log.String(), "-plumb.n=-1") {
		t.Errorf("-plumb.n=-1: %s %s", got.state, &got.log)
	}
	if err := flag.Set("plumb.n", "0"); err != nil {
		t.Fatal(err)
	}
	for spec, want := range map[string]string{
		"surprise":               `unknown backend "surprise"`,
		"recorded:/no/such":      "no such file",
		"torch:/no/such/python":  "no Python",
		"native:jit":             "native has no mode",
		"recorded:plumb_test.go": "baseline:",
		"torch:/usr/bin/env":     "torch",
		"recorded:":              "has no case of this test",
	} {
		got := play(t, "TestX", []string{"plumb.reference=" + spec}, drawRelu)
		if text := got.log.String(); got.state != "fatal" || !strings.Contains(text, want) {
			t.Errorf("-plumb.reference=%s: %s %q, want %q", spec, got.state, text, want)
		}
	}
}

// sampled are the operators that draw calls of their own, each with a dtype in
// which they are legal.
func sampled() (defs []*op.Def, dtypes []tensor.DType) {
	for _, d := range ops.Table().Defs() {
		legal := opcase.Drawer{Table: ops.Table(), Def: d}.DTypes(tensor.F32, tensor.I64, tensor.C64, tensor.Bool)
		if d.Sample != nil && len(d.Names) > 0 && len(legal) > 0 {
			defs, dtypes = append(defs, d), append(dtypes, legal[0])
		}
	}
	return defs, dtypes
}

// drawTyped records a sampled call of an operator through package api.
func drawTyped(p *plumb.T, d *op.Def, dt tensor.DType) {
	var args []any
	for _, a := range d.Sample(&op.Sampler{Source: choice.New(uint64(p.Int(0, 1<<40))), DType: dt}) {
		args = append(args, typed(p, a))
	}
	out := plumb.Must(p.Session().Call(d.ID(), args...))
	for _, y := range out {
		p.Return(y)
	}
}

func typed(p *plumb.T, v any) any {
	switch v := v.(type) {
	case *tensor.Tensor:
		return p.Literal(v).Typed()
	case op.Kwarg:
		return op.Kw(v.Name, typed(p, v.Value))
	case []any:
		list := make([]any, len(v))
		for i, e := range v {
			list[i] = typed(p, e)
		}
		return list
	}
	return v
}

// TestTypedCallsHaveTheirNames: what is recorded of a typed call is a call of
// the same operator by a public name, and it runs.
func TestTypedCallsHaveTheirNames(t *testing.T) {
	defs, dtypes := sampled()
	if len(defs) < 200 {
		t.Fatalf("only %d operators have samples", len(defs))
	}
	own := keeper{native.New(ops.Table(), nn.Modules()), map[string]bool{}}
	for i, d := range defs {
		if got := play(t, "Test/"+d.ID(), []string{"plumb.reference=none", "plumb.n=5", "plumb.seed=1"}, func(p *plumb.T) { drawTyped(p, d, dtypes[i]) }, plumb.Candidate(own)); got.failed || got.state != "" {
			t.Errorf("%s: %s %s", d.ID(), got.state, &got.log)
		}
		if !own.ran[d.ID()] {
			t.Errorf("%s: no recorded call is one of the operator's that runs", d.ID())
		}
	}
}

// keeper notes the operators of the first calls that succeeded.
type keeper struct {
	*native.Backend
	ran map[string]bool
}

func (k keeper) Run(ctx context.Context, job *backend.Job) (*backend.Outcome, error) {
	out, err := k.Backend.Run(ctx, job)
	if err != nil || out.Status != backend.OK || len(job.Program.Calls) == 0 {
		return out, err
	}
	inputs := map[program.Ref]*tensor.Tensor{}
	for i := range job.Program.Inputs {
		inputs[program.Ref(job.Program.Inputs[i].Name)] = job.Inputs[i]
	}
	c := job.Program.Calls[0]
	args, kwargs, err := c.OpArgs(func(r program.Ref) (any, error) { return inputs[r], nil })
	if err == nil {
		if call, err := program.Resolve(ops.Table(), c.Target, args, kwargs); err == nil {
			k.ran[call.Def.ID()] = true
		}
	}
	return out, nil
}

// TestTypedCallsAgainstPyTorch draws the same against live PyTorch.
func TestTypedCallsAgainstPyTorch(t *testing.T) {
	defs, dtypes := sampled()
	plumb.Check(t, func(p *plumb.T) {
		i := p.Int(0, len(defs))
		drawTyped(p, defs[i], dtypes[i])
	}, plumb.N(100))
}

// TestARecordedFileIsNotAsked: where a function can be written in several ways, a
// live reference is asked for the truth and decides against the candidate. One
// from a file is no more asked than the shipped baseline, and the limit is the
// default.
func TestARecordedFileIsNotAsked(t *testing.T) {
	softmax := func(p *plumb.T) { p.Return(p.Torch("softmax", p.Tensor(plumb.Dims(2, 8)), 1)) }
	off := plumb.Candidate(native.New(altered(t, "softmax", func(out *tensor.Tensor) { out.Set(0, out.At(0)+4e-6) }), nn.Modules()))
	file := t.TempDir() + "/asked.plumb"
	flags := []string{"plumb.reference=native", "plumb.seed=3", "plumb.n=4", "plumb.shrink=0"}
	if got := play(t, "TestAsked", append(flags, "plumb.record="+file), softmax); got.failed {
		t.Fatal(&got.log)
	}
	flags = append(flags, "plumb.record=")
	if got := play(t, "TestAsked", flags, softmax, off); !got.failed {
		t.Errorf("a live reference lets an error stand that it can be asked about: %s", &got.log)
	}
	if got := play(t, "TestAsked", append(flags, "plumb.reference=recorded:"+file), softmax, off); got.failed {
		t.Errorf("a recorded file is taken for a live reference: %s", &got.log)
	}
}

// scripted raises what TorchScript raises for a number and a tensor.
type scripted struct{ backend.Backend }

func (scripted) Info() backend.Info {
	return backend.Info{Name: "torch", Version: "1.13.1", Modes: []string{"jit.script"}, Mode: "jit.script"}
}

func (scripted) Run(context.Context, *backend.Job) (*backend.Outcome, error) {
	return &backend.Outcome{Status: backend.Raised, Class: "RuntimeError", Message: "Cannot input a tensor of dimension other than 0 as a scalar argument"}, nil
}

// TestGraphFaultsAreKnown: Go tests know what is wrong with PyTorch's own graph
// modes, and excuse nothing else.
func TestGraphFaultsAreKnown(t *testing.T) {
	candidate := plumb.Candidate(scripted{native.New(ops.Table(), nn.Modules())})
	flags := []string{"plumb.reference=native", "plumb.n=2", "plumb.shrink=0"}
	for name, fails := range map[string]bool{"floordiv": false, "truediv": true} {
		got := play(t, "TestKnown", flags, func(p *plumb.T) { p.Return(p.Operator(name, 9, p.Tensor(plumb.Dims(2), plumb.RequiresGrad(false)))) }, candidate)
		if got.failed != fails {
			t.Errorf("operator.%s of a number and a tensor: failed is %v: %s", name, got.failed, &got.log)
		}
	}
}

// TestKernel: a kernel that is right passes, and the report says what was tried.
func TestKernel(t *testing.T) {
	if testing.Short() {
		t.Skip("starts PyTorch")
	}
	file := filepath.Join(t.TempDir(), "k.py")
	if err := os.WriteFile(file, []byte("def relu(x):\n    return x.clamp(min=0)\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	o := plumb.KernelOptions{Kernel: file + "::relu", Against: "torch.relu", DTypes: []string{tensor.F32.String()}, Cases: 4, NoGrad: true, NoNonFinite: true}
	r := plumb.Kernel(t, o)
	if r.Verdict != "right" || r.Tried.Right != r.Tried.Cases || r.Tried.Cases < o.Cases {
		t.Errorf("%s", r.Text())
	}
}
