package bundle_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"plumb/backend"
	"plumb/backend/native"
	"plumb/backend/recorded"
	"plumb/backend/worker"
	"plumb/baselines"
	"plumb/internal/find/bundle"
	"plumb/internal/judge"
	"plumb/internal/judge/compare"
	"plumb/internal/judge/verdict"
	"plumb/nn"
	"plumb/op"
	"plumb/ops"
	"plumb/program"
	"plumb/tensor"
)

// planted returns the table of all operators with a defect in it.
func planted(t testing.TB, plant func(map[string]*op.Def)) *op.Table {
	var defs []*op.Def
	byID := map[string]*op.Def{}
	for _, d := range ops.All() {
		c := *d
		c.Kernels = append([]op.Kernel{}, d.Kernels...)
		id, _, _ := strings.Cut(d.Sig, "(")
		byID[id] = &c
		defs = append(defs, &c)
	}
	if plant != nil {
		plant(byID)
	}
	table, err := op.NewTable(defs...)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// after has f see the results of an operator's kernels, and change them.
func after(id string, f func(c *op.Run)) func(map[string]*op.Def) {
	return func(defs map[string]*op.Def) {
		for i := range defs[id].Kernels {
			run := defs[id].Kernels[i].Run
			defs[id].Kernels[i].Run = func(c *op.Run) error {
				err := run(c)
				if err == nil {
					f(c)
				}
				return err
			}
		}
	}
}

// first changes the first element of the first result.
func first(f func(v complex128) complex128) func(c *op.Run) {
	return func(c *op.Run) {
		if c.Out[0].Len() > 0 {
			c.Out[0].Set(0, f(c.Out[0].At(0)))
		}
	}
}

func plus1(v complex128) complex128 { return v + 1 }

// zeroGrad makes an operator's gradient that of the cotangent times two.
func doubled(id string, input op.TensorArg) func(map[string]*op.Def) {
	return func(defs map[string]*op.Def) {
		defs[id].Grad = func(g *op.Grad) {
			g.To(input, func() op.Value { return g.Mul(g.G(), 2) })
		}
	}
}

// python is the Python with torch, "" where there is none.
var python = func() string {
	path, _, err := worker.FindPython("")
	if err != nil {
		return ""
	}
	return path
}()

var shared *worker.Worker

func torch(t testing.TB) *worker.Worker {
	if python == "" {
		t.Skip("no PyTorch here")
	}
	if shared == nil {
		w, err := worker.Open(context.Background(), worker.Config{Python: python, CaseTimeout: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		shared = w
	}
	return shared
}

// folder holds the bundles of all tests.
var folder string

func TestMain(m *testing.M) {
	var err error
	if folder, err = os.MkdirTemp("", "plumb-repro-test-*"); err != nil {
		panic(err)
	}
	code := m.Run()
	if os.Getenv("PLUMB_TEST_KEEP") == "" {
		os.RemoveAll(folder)
	}
	if shared != nil {
		_ = shared.Close()
	}
	os.Exit(code)
}

// finding runs a program on PyTorch and on the table, and judges.
func finding(t testing.TB, text string, table *op.Table) *bundle.Finding {
	t.Helper()
	ref := torch(t)
	p, err := program.Parse("test", program.Header+"\n"+text)
	if err != nil {
		t.Fatal(err)
	}
	job := backend.NewJob(p)
	expected := run(t, ref, job)
	job.State = expected.Initial
	cand := native.New(table, nn.Modules())
	got := run(t, cand, job)
	v := judged(job, expected, got, false)
	return &bundle.Finding{
		Program: p, Job: job, Verdict: v, Expected: expected, Got: got, Seed: 7, Test: "test_planted", Index: 3,
		Reference: bundle.Side{Spec: "torch", Info: ref.Info()}, Candidate: bundle.Side{Spec: "native", Info: cand.Info()},
	}
}

// judged is what the judge says of two outcomes, with PyTorch as the reference
// that can be asked. One that is believing lets no exact value absolve the
// candidate.
func judged(job *backend.Job, expected, got *backend.Outcome, believing bool) *verdict.Verdict {
	c := judge.New(judge.Config{
		Table: ops.Table(), Modules: nn.Modules(), CanAskReference: true, Oracle: judge.OnMismatch, SameException: true,
	}).Case(job, expected, got)
	if believing {
		c.Policy.NoScalars = true
	}
	return c.Verdict(nil)
}

func run(t testing.TB, b backend.Backend, job *backend.Job) *backend.Outcome {
	t.Helper()
	o, err := b.Run(context.Background(), job)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// reversed is the finding with the defect on the reference's side, and Plumb's
// true operators as the candidate.
func reversed(t testing.TB, d *defect) *bundle.Finding {
	t.Helper()
	f := finding(t, d.text, planted(t, d.plant))
	f.Expected = f.Got
	f.Got = run(t, native.New(ops.Table(), nn.Modules()), f.Job)
	f.Verdict = judged(f.Job, f.Expected, f.Got, true)
	return f
}

// writeBundle writes the bundle of a defect.
func writeBundle(t testing.TB, d *defect) *bundle.Bundle {
	t.Helper()
	f := finding(t, d.text, planted(t, d.plant))
	if f.Verdict.Word != d.word || f.Verdict.Kind != d.kind {
		t.Fatalf("the verdict is %s (%s): %s", f.Verdict.Word, f.Verdict.Kind, f.Verdict.Text())
	}
	b, err := bundle.Write(filepath.Join(folder, strings.ReplaceAll(d.name, " ", "_")), f)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// driver runs each of the files that it is given in a process of its own, forked
// after PyTorch is there, and prints exit codes and outputs as JSON.
const driver = `
import json, os, runpy, sys, tempfile
import torch
torch.set_num_threads(1)
results = []
for path in sys.argv[1:]:
    with tempfile.TemporaryFile() as out:
        child = os.fork()
        if child == 0:
            code = 1
            try:
                os.dup2(out.fileno(), 1)
                os.dup2(out.fileno(), 2)
                sys.argv = [path]
                runpy.run_path(path, run_name="__main__")
                code = 0
            except SystemExit as e:
                code = e.code or 0
            except BaseException:
                import traceback
                traceback.print_exc()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        out.seek(0)
        results.append({"Code": code, "Output": out.read().decode()})
print(json.dumps(results))
`

// result is what one file did.
type result struct {
	Code   int
	Output string
}

// scripts runs Python files, each in a fresh process.
func scripts(t testing.TB, paths ...string) []result {
	t.Helper()
	out, err := exec.Command(python, append([]string{"-c", driver}, paths...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	var all []result
	if err := json.Unmarshal(out, &all); err != nil || len(all) != len(paths) {
		t.Fatalf("%v: %s", err, out)
	}
	return all
}

// TestEveryDefectIsShown runs PyTorch's file of every bundle in a fresh
// process, and judges the true and the defective table by the bundle.
func TestEveryDefectIsShown(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	torch(t)
	bundles := make([]*bundle.Bundle, len(defects))
	var paths []string
	var of []int
	for i := range defects {
		t.Run(defects[i].name, func(t *testing.T) {
			bundles[i] = writeBundle(t, &defects[i])
			judges(t, &defects[i], bundles[i])
			text := string(bundles[i].File("repro_torch.py"))
			if strings.Contains(text, "plumb") {
				t.Errorf("repro_torch.py speaks of plumb:\n%s", text)
			}
			paths, of = append(paths, filepath.Join(bundles[i].Dir, "repro_torch.py")), append(of, i)
		})
	}
	for k, r := range scripts(t, paths...) {
		if r.Code != 1 || !strings.Contains(r.Output, "misaligned") || strings.Contains(r.Output, "Traceback") {
			t.Errorf("%s: exit code %d\n%s\n%s", defects[of[k]].name, r.Code, r.Output, bundles[of[k]].File("repro_torch.py"))
		}
	}
}

// judges has the bundle judge the true and the defective table.
func judges(t *testing.T, d *defect, b *bundle.Bundle) {
	t.Helper()
	again, err := bundle.Read(b.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, side := range []struct {
		table *op.Table
		want  bool
	}{{planted(t, d.plant), true}, {ops.Table(), false}} {
		job, err := again.Job()
		if err != nil {
			t.Fatal(err)
		}
		r, err := again.Judge(run(t, native.New(side.table, nn.Modules()), job))
		if err != nil || r.Misaligned != side.want || r.Unable {
			t.Errorf("Judge: %+v, %v; want misaligned %v", r, err, side.want)
		}
	}
}

// TestTheOtherSides: with the defect on the reference's side, PyTorch's file as
// the candidate's fails and as the reference's passes; and the other way round.
func TestTheOtherSides(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	torch(t)
	var paths []string
	var want []int
	add := func(t *testing.T, name string, f *bundle.Finding, reference, candidate int) {
		f.Candidate = f.Reference
		f.Candidate.Spec = "torch:" + python
		b, err := bundle.Write(filepath.Join(folder, name), f)
		if err != nil {
			t.Fatal(err)
		}
		if argv := bundle.Candidate(b, "."); argv[0] != python || argv[1] != "repro_torch_candidate.py" {
			t.Errorf("the candidate is run by %v", argv)
		}
		paths = append(paths, filepath.Join(b.Dir, "repro_torch.py"), filepath.Join(b.Dir, "repro_torch_candidate.py"))
		want = append(want, reference, candidate)
	}
	for i := range defects {
		d := &defects[i]
		t.Run(d.name, func(t *testing.T) {
			f := finding(t, d.text, planted(t, d.plant))
			add(t, fmt.Sprint("there", i), f, 1, 0)
			if d.word == verdict.Crash || d.name == "class of the exception" {
				return
			}
			g := *f
			g.Expected, g.Got = f.Got, f.Expected
			g.Verdict = judged(f.Job, g.Expected, g.Got, true)
			add(t, fmt.Sprint("back", i), &g, 0, 1)
		})
	}
	for i, r := range scripts(t, paths...) {
		if r.Code != want[i] || strings.Contains(r.Output, "Traceback") {
			text, _ := os.ReadFile(paths[i])
			t.Errorf("%s: exit code %d, want %d\n%s\n%s", paths[i], r.Code, want[i], r.Output, text)
		}
	}
}

// TestDraws: what a law judged is told by its bits, where they are drawn again.
func TestDraws(t *testing.T) {
	f := finding(t, `
x = tensor((40,), torch.float32, uniform(0.5, 1.0, key=3))
y = torch.nn.functional.dropout(x, 0.5)
`, planted(t, nil))
	healthy := f.Expected.Values[0].Tensor
	wrong := healthy.Clone()
	wrong.Set(3, 77)
	f.Got = &backend.Outcome{Status: backend.OK, Values: []backend.Value{{Tensor: wrong}}}
	f.Verdict = judged(f.Job, f.Expected, f.Got, false)
	if len(f.Verdict.Differences) == 0 || f.Verdict.Differences[0].Diff.Rule != compare.Support {
		t.Fatalf("the verdict is %s", f.Verdict.Text())
	}
	b, err := bundle.Write(filepath.Join(t.TempDir(), "native"), f)
	if err != nil {
		t.Fatal(err)
	}
	for got, want := range map[*tensor.Tensor]bool{wrong: true, healthy: false} {
		r, err := b.Judge(&backend.Outcome{Status: backend.OK, Values: []backend.Value{{Tensor: got}}})
		if err != nil || r.Misaligned != want {
			t.Errorf("%+v, %v; want misaligned %v", r, err, want)
		}
	}
	f.Candidate = bundle.Side{Spec: "torch:" + python, Info: f.Reference.Info}
	paths := []string{filepath.Join(b.Dir, "repro_torch.py")}
	want := []int{2, 0, 1}
	for _, got := range []*tensor.Tensor{wrong, healthy} { // what PyTorch draws again is healthy
		g := *f
		g.Got = &backend.Outcome{Status: backend.OK, Values: []backend.Value{{Tensor: got}}}
		c, err := bundle.Write(filepath.Join(t.TempDir(), "torch"), &g)
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, filepath.Join(c.Dir, "repro_torch_candidate.py"))
	}
	for i, r := range scripts(t, paths...) {
		if r.Code != want[i] || strings.Contains(r.Output, "Traceback") {
			t.Errorf("%s: exit code %d, want %d: %s", paths[i], r.Code, want[i], r.Output)
		}
	}
}

// TestWithoutPyTorch: a file says in one line that it cannot run, and ends with 2.
func TestWithoutPyTorch(t *testing.T) {
	if python == "" {
		t.Skip("no Python here")
	}
	b := written(t)
	code, out := execute(t, b.Dir, python, "-c", `
import sys, runpy
sys.modules["torch"] = None
runpy.run_path("repro_torch.py", run_name="__main__")`)
	if code != 2 || strings.Count(out, "\n") != 1 || !strings.Contains(out, "cannot run") {
		t.Errorf("exit code %d: %s", code, out)
	}
}

// TestAnotherPyTorch: a file whose functions PyTorch lacks ends with 2.
func TestAnotherPyTorch(t *testing.T) {
	torch(t)
	f := toy(t)
	f.Program.Calls[0].Target = "torch.no_such_function"
	var paths []string
	for _, kind := range []verdict.Kind{"value", verdict.Exception} {
		g := *f
		v := *f.Verdict
		d := v.Differences[0]
		d.Kind = kind
		v.Differences = []verdict.Difference{d}
		g.Verdict = &v
		b, err := bundle.Write(filepath.Join(t.TempDir(), "bundle"), &g)
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, filepath.Join(b.Dir, "repro_torch.py"))
	}
	for i, r := range scripts(t, paths...) {
		if r.Code != 2 || !strings.Contains(r.Output, "cannot run") || strings.Contains(r.Output, "Traceback") {
			t.Errorf("%d: exit code %d: %s", i, r.Code, r.Output)
		}
	}
}

// execute runs a command and returns its exit code and output.
func execute(t testing.TB, dir string, argv ...string) (int, string) {
	t.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// source is the folder of Plumb's source.
func source(t testing.TB) string {
	t.Helper()
	dir, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// goTest runs the Go test of a bundle as a person would who has Plumb's source.
func goTest(t testing.TB, b *bundle.Bundle) (int, string) {
	t.Helper()
	for _, argv := range [][]string{{"go", "mod", "edit", "-replace", "plumb=" + source(t)}, {"go", "test", "-mod=readonly", "."}} {
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Dir, cmd.Env = b.Dir, append(os.Environ(), "GOWORK=off")
		out, err := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); err != nil || argv[1] == "test" {
			return code, string(out)
		}
	}
	return 0, ""
}

// TestGoTests compiles the Go test of bundles against Plumb's source: it passes
// where only the planted table is wrong, and fails where the true one differs
// from what was recorded.
func TestGoTests(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: go test builds a module for each bundle")
	}
	torch(t)
	chosen := map[string]bool{"parameter gradient": true, "in place": true}
	for i := range defects {
		d := &defects[i]
		if !chosen[d.name] && os.Getenv("PLUMB_TEST_ALL") == "" {
			continue
		}
		t.Run(d.name, func(t *testing.T) {
			b := writeBundle(t, d)
			if code, out := goTest(t, b); code != 0 {
				t.Errorf("exit code %d with the true operators\n%s\n%s", code, out, b.File("repro_test.go"))
			}
			if d.word == verdict.Crash {
				return
			}
			wrong, err := bundle.Write(filepath.Join(t.TempDir(), "bundle"), reversed(t, d))
			if err != nil {
				t.Fatal(err)
			}
			if code, out := goTest(t, wrong); code != 1 || !strings.Contains(out, "misaligned") {
				t.Errorf("exit code %d where the operators are not what was recorded\n%s\n%s", code, out, wrong.File("repro_test.go"))
			}
		})
	}
}

// TestOfTheBaseline: for every so many of the recorded cases, with one tensor
// changed in what the candidate is said to have given, PyTorch's file as the
// reference's fails and as the candidate's passes, which computes it again.
func TestOfTheBaseline(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	ref := torch(t)
	base, err := recorded.Read(baselines.Default())
	if err != nil {
		t.Fatal(err)
	}
	every := 400
	if n, err := strconv.Atoi(os.Getenv("PLUMB_TEST_EVERY")); err == nil {
		every = n
	}
	var paths []string
	for i, c := range base.Cases() {
		if i%every != 0 || c.Outcome.Status != backend.OK {
			continue
		}
		job := backend.NewJob(c.Program)
		expected := run(t, ref, job)
		for k, got := range changes(expected) {
			f := &bundle.Finding{
				Program: c.Program, Job: job, Verdict: judged(job, expected, got, false), Expected: expected, Got: got,
				Reference: bundle.Side{Spec: "torch", Info: ref.Info()}, Candidate: bundle.Side{Spec: "torch:" + python, Info: ref.Info()}, Test: c.Test,
			}
			if f.Verdict.Word != verdict.Misaligned {
				continue // of a random draw, or a change that is not looked at
			}
			b, err := bundle.Write(filepath.Join(folder, fmt.Sprint("base", i, "_", k)), f)
			if err != nil {
				t.Fatal(err)
			}
			for file := range b.Scripts() {
				if strings.HasPrefix(file, "torch") {
					paths = append(paths, filepath.Join(b.Dir, b.Scripts()[file]))
				}
			}
		}
	}
	t.Logf("%d files", len(paths))
	for i, r := range scripts(t, paths...) {
		want := 1
		if strings.HasSuffix(paths[i], "candidate.py") {
			want = 0
		}
		if r.Code != want || strings.Contains(r.Output, "Traceback") {
			text, _ := os.ReadFile(paths[i])
			t.Errorf("%s: exit code %d, want %d\n%s\n%s", paths[i], r.Code, want, r.Output, text)
		}
	}
}

// changes returns outcomes that differ from o in one tensor each: the last
// value, what a call changed, a gradient, a parameter's gradient, and state.
func changes(o *backend.Outcome) []*backend.Outcome {
	var out []*backend.Outcome
	add := func(t *tensor.Tensor, set func(c *backend.Outcome, t *tensor.Tensor)) {
		if t == nil || t.Len() == 0 {
			return
		}
		u := tensor.NewStrided(t.DType(), t.Shape(), t.Strides())
		u.CopyFrom(t)
		i := t.Len() / 2
		if v := 7 - 2*u.At(i); u.DType() != tensor.Bool && real(v) == real(v) {
			u.Set(i, v)
		} else if u.DType() == tensor.Bool {
			u.SetInt(i, 1-u.Int(i))
		} else {
			u.Set(i, 1)
		}
		c := *o
		set(&c, u)
		out = append(out, &c)
	}
	for i := len(o.Values) - 1; i >= 0; i-- {
		if v := &o.Values[i]; v.Tensor != nil {
			add(v.Tensor, func(c *backend.Outcome, t *tensor.Tensor) {
				c.Values = slices.Clone(o.Values)
				c.Values[i].Tensor = t
			})
			break
		}
	}
	for _, s := range o.Slots {
		add(s.Tensor, func(c *backend.Outcome, t *tensor.Tensor) { *c = *o.With(s.Place, t) })
	}
	return out
}

// TestGoTestsSayTheCalls: a bundle's Go test is written in calls of package api
// wherever that can say the program.
func TestGoTestsSayTheCalls(t *testing.T) {
	torch(t)
	for i := range defects {
		d := &defects[i]
		t.Run(d.name, func(t *testing.T) {
			text := string(writeBundle(t, d).File("repro_test.go"))
			inTerms := strings.Contains(text, `"plumb/api"`)
			switch d.name {
			case "gradient of two", "buffer", "in place", "input that is written into", "change in place", "gradient of the second order", "shape changed in place", "detached in place", "dtype", "shape", "bool value", "crash",
				"second order", "second order of a parameter", "optimizer's step", "requires_grad", "class of the exception":
			default:
				if !inTerms {
					t.Errorf("not in terms of api:\n%s", text)
				}
			}
		})
	}
}
