package command

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"plumb/backend/open"
	"plumb/internal/find/bundle"
	"plumb/internal/find/finding"
	"plumb/internal/find/shrink"
	"plumb/internal/judge/verdict"
	"plumb/ops"
)

// TestProofsEnd: what takes a case's whole time is proved last, and only where there
// is time for all of its runs.
func TestProofsEnd(t *testing.T) {
	found := func(id string, w verdict.Word) *finding.Finding {
		return &finding.Finding{ID: id, Result: &shrink.Result{Record: &verdict.Record{Verdict: &verdict.Verdict{Word: w}}}}
	}
	slow := found("slow", verdict.Timeout)
	all := []*finding.Finding{found("first", verdict.Misaligned), slow, found("second", verdict.Crash)}
	order := ""
	for _, one := range slowLast(all) {
		order += one.ID + " "
	}
	if order != "first second slow " || all[1] != slow {
		t.Errorf("the order is %s", order)
	}
	for _, c := range []struct {
		one    *finding.Finding
		left   time.Duration
		reason string
	}{
		{slow, provingTime, "3 runs would take the time limit of a case each, 2m0s"},
		{all[0], -time.Second, "the proofs before took 2m0s"},
	} {
		p, err := prove(t.Context(), nil, c.one, 2*time.Minute, c.left)
		if err != nil || p.State != bundle.Unproved || !strings.Contains(p.Reason, c.reason) {
			t.Errorf("%s: %+v, %v", c.one.ID, p, err)
		}
	}
}

// tanhWorker has the gradient of tanh as a function of its own, times FACTOR.
const tanhWorker = `#include "plumb_worker.h"
#include <math.h>
static void map(plumb_call *c, int gradient) {
	plumb_tensor x = plumb_tensor_arg(c, 0, "input");
	if (x.dtype != PLUMB_FLOAT32) plumb_unsupported(c, "%s", plumb_name(x.dtype));
	plumb_tensor y = plumb_result(c, x.dtype, x.rank, x.shape);
	plumb_tensor g = gradient ? plumb_element(c, 1, "grad_outputs", 0) : x;
	for (int64_t i = 0; i < y.count; i++) {
		double v = tanh(plumb_get(&x, i));
		plumb_set(&y, i, gradient ? plumb_get(&g, i) * (1 - v * v) * FACTOR : v);
	}
}
static void value(plumb_call *c) { map(c, 0); }
static void gradient(plumb_call *c) { map(c, 1); }
static const plumb_function functions[] = {{"torch.tanh", value, 0}, {"torch.tanh_backward", gradient, 0}, {NULL, NULL, 0}};
int main(void) {
	plumb_subject subject = {"tanh", "1", functions, 0};
	return plumb_serve(&subject);
}
`

// outerWorker has the two gradients of outer as a function of its own: the second times
// FACTOR, and FAULT before it.
const outerWorker = `#include "plumb_worker.h"
#include <stdlib.h>
static plumb_tensor arg(plumb_call *c, int i, const char *name) {
	plumb_tensor t = plumb_tensor_arg(c, i, name);
	if (t.dtype != PLUMB_FLOAT32) plumb_unsupported(c, "%s", plumb_name(t.dtype));
	return t;
}
static void value(plumb_call *c) {
	plumb_tensor x = arg(c, 0, "input"), v = arg(c, 1, "vec2");
	int64_t shape[2] = {x.count, v.count};
	plumb_tensor y = plumb_result(c, x.dtype, 2, shape);
	for (int64_t i = 0; i < y.count; i++) plumb_set(&y, i, plumb_get(&x, i / v.count) * plumb_get(&v, i % v.count));
}
static void gradient(plumb_call *c) {
	plumb_tensor x = arg(c, 0, "input"), v = arg(c, 1, "vec2"), g = plumb_element(c, 2, "grad_outputs", 0);
	plumb_tensor dx = plumb_result(c, x.dtype, 1, x.shape), dv = plumb_result(c, v.dtype, 1, v.shape);
	FAULT;
	for (int64_t i = 0; i < x.count; i++) {
		double sum = 0;
		for (int64_t j = 0; j < v.count; j++) sum += plumb_get(&g, i * v.count + j) * plumb_get(&v, j);
		plumb_set(&dx, i, sum);
	}
	for (int64_t j = 0; j < v.count; j++) {
		double sum = 0;
		for (int64_t i = 0; i < x.count; i++) sum += plumb_get(&g, i * v.count + j) * plumb_get(&x, i);
		plumb_set(&dv, j, sum * FACTOR);
	}
}
static const plumb_function functions[] = {{"torch.outer", value, 0}, {"torch.outer_backward", gradient, 0}, {NULL, NULL, 0}};
int main(void) {
	plumb_subject subject = {"outer", "1", functions, 0};
	return plumb_serve(&subject);
}
`

// TestBundlesOfGradientFunctions: a function of gradients that is wrong has a bundle,
// which runs that function again and PyTorch's gradient of the case.
func TestBundlesOfGradientFunctions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		function, worker, wrong string
		flags, repaired         []string
		expected                string // a file of the gradient that PyTorch has
	}{
		{"tanh", tanhWorker, "gradient of input", []string{"-DFACTOR=1.01"}, []string{"-DFACTOR=1"}, "expected_input_grad.bin"},
		{"outer", outerWorker, "gradient of vec2", []string{"-DFACTOR=1.01", "-DFAULT="}, []string{"-DFACTOR=1", "-DFAULT="}, "expected_vec2_grad.bin"},
		{"outer", outerWorker, "crashed", []string{"-DFACTOR=1", "-DFAULT=abort()"}, []string{"-DFACTOR=1", "-DFAULT="}, ""},
	} {
		t.Run(c.function+" "+c.wrong, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			binary := filepath.Join(dir, "worker")
			compile := func(flags []string) {
				made := workerInC(t, c.worker, flags...)
				_ = os.Remove(binary)
				if err := os.Link(made, binary); err != nil {
					t.Fatal(err)
				}
			}
			compile(c.flags)
			out, _, err := conformed(t, "run", "--candidate", binary, "--fname", c.function, "--findings", filepath.Join(dir, "found"), "--known", "none")
			if exitCode(err) != exitFindings {
				t.Fatalf("exit code %d\n%s", exitCode(err), out)
			}
			found, err := filepath.Glob(filepath.Join(dir, "found", "*"))
			if err != nil || len(found) != 1 {
				t.Fatalf("bundles %v, %v\n%s", found, err, out)
			}
			if r := runAgain(t, found[0]); !r.Misaligned || !strings.Contains(r.Text, c.wrong) {
				t.Errorf("the wrong function again: %+v", r)
			}
			compile(c.repaired)
			if r := runAgain(t, found[0]); r.Misaligned || r.Unable {
				t.Errorf("the right function: %+v", r)
			}
			for file, want := range map[string]string{
				"case.json": c.expected, "function.py": "torch." + c.function + "_backward(", "program.py": "torch." + c.function + "(",
			} {
				text, err := os.ReadFile(filepath.Join(found[0], file))
				if err != nil || !strings.Contains(string(text), want) {
					t.Errorf("%s does not say %s: %v\n%s", file, want, err, text)
				}
			}
			python, err := findTorch()
			if err != nil {
				t.Log("no PyTorch: its file of the bundle is not run")
				return
			}
			text, err := exec.Command(python, filepath.Join(found[0], "repro_torch.py")).CombinedOutput()
			if e, ok := err.(*exec.ExitError); !ok || e.ExitCode() != 1 {
				t.Errorf("repro_torch.py ends with %v\n%s", err, text)
			}
		})
	}
}

// runAgain runs the candidate of a bundle over its case.
func runAgain(t *testing.T, dir string) bundle.Result {
	t.Helper()
	b, err := bundle.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	f, err := b.Finding()
	if err != nil {
		t.Fatal(err)
	}
	opener, err := (&open.Set{Table: ops.Table(), Timeout: time.Minute}).Opener(t.Context(), f.Candidate.Spec)
	if err != nil {
		t.Fatal(err)
	}
	candidate, err := opener()
	if err != nil {
		t.Fatal(err)
	}
	defer candidate.Close()
	o, err := f.Run(t.Context(), candidate)
	if err != nil {
		t.Fatal(err)
	}
	r, err := b.Judge(o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
