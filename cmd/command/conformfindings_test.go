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

// TestBundlesOfGradientFunctions: a function of gradients that is wrong has a bundle,
// which runs that function again and PyTorch's gradient of the case.
func TestBundlesOfGradientFunctions(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	binary := filepath.Join(dir, "tanh")
	compile := func(factor string) {
		made := workerInC(t, tanhWorker, "-DFACTOR="+factor)
		_ = os.Remove(binary)
		if err := os.Link(made, binary); err != nil {
			t.Fatal(err)
		}
	}
	compile("1.01")
	out, _, err := conformed(t, "run", "--candidate", binary, "--fname", "tanh", "--findings", filepath.Join(dir, "found"), "--known", "none")
	if exitCode(err) != exitFindings {
		t.Fatalf("exit code %d\n%s", exitCode(err), out)
	}
	found, err := filepath.Glob(filepath.Join(dir, "found", "*"))
	if err != nil || len(found) != 1 {
		t.Fatalf("bundles %v, %v", found, err)
	}
	again := func() bundle.Result {
		b, err := bundle.Read(found[0])
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
		for file, want := range map[string]string{"case.json": "expected_input_grad.bin", "gradients.py": "torch.tanh_backward(", "program.py": "torch.tanh("} {
			if !strings.Contains(string(b.File(file)), want) {
				t.Errorf("%s does not say %s:\n%s", file, want, b.File(file))
			}
		}
		return r
	}
	if r := again(); !r.Misaligned || !strings.Contains(r.Text, "gradient of input") {
		t.Errorf("the wrong function again: %+v", r)
	}
	compile("1")
	if r := again(); r.Misaligned || r.Unable {
		t.Errorf("the right function: %+v", r)
	}
	python := "/usr/bin/python3"
	if exec.Command(python, "-c", "import torch").Run() != nil {
		t.Log("no PyTorch: its file of the bundle is not run")
		return
	}
	script, err := exec.Command(python, filepath.Join(found[0], "repro_torch.py")).CombinedOutput()
	if e, ok := err.(*exec.ExitError); !ok || e.ExitCode() != 1 {
		t.Errorf("repro_torch.py ends with %v\n%s", err, script)
	}
}
