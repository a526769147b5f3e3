package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plumb/backend"
	"plumb/internal/judge/verdict"
	"plumb/program"
	"plumb/tensor"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

func example(seed uint64) *program.Program {
	return &program.Program{
		Name: "act.py::test_relu", Seed: seed,
		Inputs: []program.Input{{Name: "x", DType: tensor.F32, Shape: []int{2}, Fill: program.Fill{Dist: program.Uniform, Lo: -1, Hi: 1, Key: 7}}},
		Calls:  []program.Call{{Result: "y", Target: "torch.relu", Args: []any{program.Ref("x")}}},
	}
}

func record(test string, index int, v verdict.Verdict) *verdict.Record {
	return &verdict.Record{Test: test, Index: index, Candidate: "native", Program: example(uint64(index)), Verdict: &v}
}

// placed is an error of a test file.
type placed struct{}

func (placed) Error() string   { return "bad.py:3:9: undefined: y" }
func (placed) Excerpt() string { return "      return y\n             ^" }

// play sends a sink one run that has everything.
func play(s Sink) {
	sum := NewSummary()
	sum.Reference, sum.Candidates, sum.Seed, sum.Tests, sum.Elapsed = "torch", []string{"native"}, 7, 5, 1500*time.Millisecond
	send := func(r *verdict.Record) { sum.Add(r); s.Record(r) }
	end := func(e *verdict.End) {
		if e.Err != nil {
			sum.Errors = append(sum.Errors, e.Err)
		}
		s.End(e)
	}
	worst := &verdict.Margin{Part: backend.PartValue, Name: "y"}
	send(record("act.py::test_relu", 0, verdict.Verdict{Word: verdict.Aligned, Compared: 2, Worst: 0.25, WorstAt: worst}))
	send(record("act.py::test_relu", 1, verdict.Verdict{Word: verdict.Rejected, Reason: "both sides raised\nhere and there"}))
	end(&verdict.End{Test: "act.py::test_relu", Judged: 1, Rejected: 1})
	for i := range 3 {
		crashed := &verdict.Side{Status: backend.Crashed, Class: "SIGSEGV", Message: "ended by SIGSEGV\nThread <1>"}
		send(record("act.py::test_tanh", i, verdict.Verdict{Word: verdict.Crash, Reason: "the reference crashed: SIGSEGV", Reference: crashed}))
	}
	end(&verdict.End{Test: "act.py::test_tanh", Judged: 3})
	send(record("act.py::test_new", 0, verdict.Verdict{Word: verdict.Unsupported, Reason: "the candidate does not support this program: unknown operator torch.new"}))
	end(&verdict.End{Test: "act.py::test_new", Judged: 1, Rejected: 3, Rejects: true})
	end(&verdict.End{Test: "bad.py::test_bad", Err: placed{}})
	end(&verdict.End{Test: "bad.py::test_stuck", Err: errors.New("bad.py:9:1: the reference rejected 60 draws")})
	s.Summary(sum)
}

func golden(t *testing.T, name string, got []byte) {
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("-want +got (go test ./report -update rewrites):\n%s", diff)
	}
}

func TestReports(t *testing.T) {
	for name, sink := range map[string]func(*bytes.Buffer) Sink{
		"console.txt": func(b *bytes.Buffer) Sink { return &Console{W: b} },
		"tests.txt":   func(b *bytes.Buffer) Sink { return &Console{W: b, Tests: true} },
		"verbose.txt": func(b *bytes.Buffer) Sink { return &Console{W: b, Tests: true, Verbose: true} },
		"records.txt": func(b *bytes.Buffer) Sink { return NewJSON(b) },
	} {
		var b bytes.Buffer
		play(sink(&b))
		golden(t, name, b.Bytes())
	}
}

// TestColoursAddOnlyColours: they change nothing of what is read.
func TestColoursAddOnlyColours(t *testing.T) {
	var plain, terminal bytes.Buffer
	play(&Console{W: &plain, Verbose: true, Tests: true})
	play(&Console{W: &terminal, Color: true, Verbose: true, Tests: true})
	text := terminal.String()
	for _, code := range []string{"\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[0m"} {
		if !strings.Contains(text, code) {
			t.Errorf("nothing is painted %q", code)
		}
		text = strings.ReplaceAll(text, code, "")
	}
	if diff := cmp.Diff(plain.String(), text); diff != "" {
		t.Errorf("-plain +terminal:\n%s", diff)
	}
}

// TestRecordsAddUp: every line is an object, and the summary counts the cases.
func TestRecordsAddUp(t *testing.T) {
	var b bytes.Buffer
	play(NewJSON(&b))
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	cases := 0
	for i, line := range lines {
		var object map[string]any
		if err := json.Unmarshal([]byte(line), &object); err != nil {
			t.Fatalf("line %d: %v", i+1, err)
		}
		if object["verdict"] != nil {
			cases++
		}
	}
	var last struct{ Summary map[string]any }
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil {
		t.Fatal(err)
	}
	total := 0.0
	for _, w := range verdict.Words {
		total += last.Summary[string(w)].(float64)
	}
	if last.Summary["cases"] != total || total != float64(cases) || last.Summary["errors"] != 2.0 {
		t.Errorf("%d cases, summary %v", cases, last.Summary)
	}
}
