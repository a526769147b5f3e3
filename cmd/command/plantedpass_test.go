package command

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"plumb/backend"
	"plumb/backend/native"
	"plumb/graph"
	"plumb/internal/campaign/report"
	"plumb/internal/find/bundle"
	"plumb/internal/find/finding"
	"plumb/internal/judge/verdict"
	"plumb/nn"
	"plumb/ops"
	"plumb/tensor"
)

const passTest = `from plumb import *

@autotest(n=4)
def test_affine():
    m = torch.nn.Linear(3, 2)
    x = random_tensor(ndim=2, dim1=3)
    y = m(x)
    return torch.exp(y) - torch.sigmoid(y)

@autotest(n=4, check_graph=False)
def test_eager_only():
    x = random_tensor(ndim=2)
    return torch.exp(x) - torch.sigmoid(x)
`

// swapped is a pass that exchanges the operands of every sub.
func swapped(c *graph.Code) (int, error) {
	count := 0
	for _, n := range c.Nodes {
		if n.Kind != graph.Apply || n.Call.Def.ID() != "sub" {
			continue
		}
		a, isValue := n.Call.Args.Vals[0].(*graph.Value)
		b, too := n.Call.Args.Vals[1].(*graph.Value)
		if isValue && too && slices.Equal(a.Shape(), b.Shape()) {
			call := *n.Call
			call.Args.Vals = slices.Clone(call.Args.Vals)
			call.Args.Vals[0], call.Args.Vals[1] = b, a
			n.Call = &call
			count++
		}
	}
	return count, nil
}

// nudged is a pass that changes constants by less than any limit sees.
func nudged(c *graph.Code) (int, error) {
	count := 0
	for _, n := range c.Nodes {
		if n.Kind == graph.Constant && n.Const.DType() == tensor.F32 && n.Const.Len() > 0 {
			k := n.Const.Contiguous().Clone()
			k.Set(0, k.At(0)*(1+1.2e-7))
			n.Const = k
			count++
		}
	}
	return count, nil
}

// withPass has native compile with one more pass, after "algebra".
func withPass(name string, run func(*graph.Code) (int, error)) *native.Backend {
	passes := slices.Insert(graph.Passes(), 4, graph.Pass{Name: name, Run: run})
	return native.New(ops.Table(), nn.Modules()).Compiling(graph.Options{Passes: passes})
}

// TestPlantedPassIsNamed runs a test file against a candidate one of whose
// passes is wrong: eager is aligned, the finding is in graph alone, its report
// names the pass, in every form, and it is made smaller.
func TestPlantedPassIsNamed(t *testing.T) {
	slow(t)
	for _, ref := range references(&defect{}) {
		t.Run(ref, func(t *testing.T) {
			w, log := playOn(t, withPass("swap", swapped), []string{save(t, "pass.py", passTest)}, "--reference", ref, "--seed", "3", "--set", "shrink.runs=60")
			if len(w.records) != 8 || len(w.findings()) != 4 {
				t.Fatalf("%d records, %d findings:\n%s", len(w.records), len(w.findings()), log)
			}
			for _, r := range w.findings() {
				if !strings.Contains(r.Test, "test_affine") || r.Mode() != "graph" || r.Verdict.Blame != "pass swap" || r.Verdict.Word != verdict.Misaligned {
					t.Errorf("%s: %s in %s, to blame %q: %s", r.Test, r.Verdict.Word, r.Mode(), r.Verdict.Blame, r.Verdict.Reason)
				}
			}
			if !strings.Contains(log, "candidate native in graph (to blame: pass swap)") {
				t.Errorf("the log does not say it:\n%s", log)
			}
			if err := w.run.minimise(t.Context()); err != nil || len(w.minimal) != 1 {
				t.Fatalf("%d findings, %v", len(w.minimal), err)
			}
			f := w.minimal[0]
			if s := f.Result.Signature; s.Mode != "graph" || s.Blame != "pass swap" || s.Operator != "sub" {
				t.Errorf("signature %s", s)
			}
			if calls := f.Result.Record.Program.Calls; len(calls) > 2 {
				t.Errorf("%d calls are left:\n%s", len(calls), f.Result.Record.Program)
			}
			told(t, w.run.subjects.reference, f)
		})
	}
}

// told looks at a finding's bundle and JSON.
func told(t *testing.T, reference string, f *finding.Finding) {
	t.Helper()
	var line bytes.Buffer
	report.NewJSON(&line).Findings([]*finding.Finding{f})
	var j struct {
		Minimal struct {
			Modes []string
			Blame string
		}
	}
	if err := json.Unmarshal(line.Bytes(), &j); err != nil || !slices.Equal(j.Minimal.Modes, []string{"graph"}) || j.Minimal.Blame != "pass swap" {
		t.Errorf("JSON: %v, %v: %s", j, err, line.String())
	}
	m := f.Result.Record
	b, err := bundle.Write(t.TempDir()+"/b", &bundle.Finding{
		Program: m.Program, Verdict: m.Verdict, Job: backend.NewJob(m.Program), Expected: m.Reference, Got: m.Outcome, Modes: f.Modes(),
		Reference: bundle.Side{Spec: reference, Info: backend.Info{Name: "torch"}}, Candidate: bundle.Side{Spec: "native:graph", Info: backend.Info{Name: "native", Mode: "graph"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if text := string(b.File("finding.json")); !strings.Contains(text, `"blame": "pass swap"`) || !strings.Contains(text, "\"modes\": [\n    \"graph\"\n  ]") {
		t.Errorf("finding.json: %s", text)
	}
}

// TestPassWithinEveryLimitIsAFinding: graphs give what they do without passes,
// bit for bit, however wide a limit is.
func TestPassWithinEveryLimitIsAFinding(t *testing.T) {
	file := save(t, "nudge.py", "from plumb import *\n\n@autotest(n=3)\ndef test_ones():\n    return random_tensor(ndim=2, dim1=3) * torch.full((3,), 0.7)\n")
	w, log := playOn(t, withPass("nudge", nudged), []string{file}, "--reference", "native", "--seed", "1", "--tolerance", "autotest")
	for _, r := range w.records {
		if r.Verdict.Word != verdict.Crash || r.Verdict.Blame != "pass nudge" || r.Mode() != "graph" || !strings.Contains(r.Verdict.Reason, "pass nudge changes output") {
			t.Errorf("%s in %s (%s): %s\n%s", r.Verdict.Word, r.Mode(), r.Verdict.Blame, r.Verdict.Reason, log)
		}
	}
	if len(w.records) != 3 {
		t.Errorf("%d records", len(w.records))
	}
}

// TestFaultInEveryModeIsOneFinding: what is wrong with an operator shows alike
// in eager and in graphs.
func TestFaultInEveryModeIsOneFinding(t *testing.T) {
	table := planted(t, leakyAtZero)
	w, log := play(t, table, nil, "--reference", "native", "--seed", "1", "-k", "test_leaky_relu", "--set", "oracle=off")
	if len(w.findings()) == 0 {
		t.Fatal(log)
	}
	for _, r := range w.findings() {
		if r.Mode() != "eager, graph, graph-plain" || r.Verdict.Blame != "" {
			t.Errorf("%s in %s, to blame %q", r.Verdict.Word, r.Mode(), r.Verdict.Blame)
		}
	}
	off, log := play(t, table, nil, "--reference", "native", "--seed", "1", "-k", "test_leaky_relu", "--set", "oracle=off", "--check-graph=false")
	if n := len(off.findings()); n != len(w.findings()) || off.findings()[0].Mode() != "eager" {
		t.Errorf("without graphs: %d findings, want %d\n%s", n, len(w.findings()), log)
	}
}
