// Package bundle turns a finding into a bundle: a folder, or one zip file, that
// shows the finding on a machine without Plumb.
//
//	program.py              Plumb's text; plumb run program.py judges it again
//	repro_torch.py          plain PyTorch, and a file for each other side:
//	ranks_dtensor.py        the program over ranks, of one that says how its inputs lie,
//	ranks_oneflow.py        beside itself on one rank
//	repro_test.go           native: a Go test, with its go.mod
//	repro_torch_candidate.py   a second PyTorch
//	function.py             the one call that computes a part of program.py on the candidate
//	inputs.safetensors      inputs "x", cotangents "y.cotangent", initial state "m.weight"
//	expected.safetensors    what the reference gave: "y", "y.0", "x.grad", "m.weight.grad", "m.running_mean"
//	got.safetensors         what the candidate gave, likewise
//	finding.json            verdict, limit, versions, seed, choices, how to run, checksums
//
// The file of a side computes that side's result again and compares it with
// what the other side gave, at the first place where they diverged and by the
// limit that was broken there. It exits with 1 when they are misaligned, with 0
// when not, and with 2 when the machine cannot run it.
package bundle

import (
	"context"
	"time"

	"plumb/backend"
	"plumb/internal/draw/choice"
	"plumb/internal/judge/verdict"
	"plumb/program"
)

// Finding is what a bundle is made of.
type Finding struct {
	Program   *program.Program
	Job       *backend.Job // inputs and the modules' initial state
	Verdict   *verdict.Verdict
	Function  *backend.Function // by which the candidate computes a part of Program; nil for itself
	Reference Side
	Candidate Side
	Expected  *backend.Outcome // the reference's
	Got       *backend.Outcome // the candidate's
	Seed      uint64           // of the run
	Test      string
	Index     int             // of the case in the test
	Choices   []choice.Choice // that drew the program; may be nil
	Original  string          // the program's text before it was made smaller; may be ""
	Shrink    Shrink
	Count     int           // cases that are this finding
	Signature string        // how it fails, as shrink.Signature says it
	Timeout   time.Duration // of one case; 0 means a minute
	Growth    int64         // bytes of memory that a worker may add in one case; 0 for what there is
	Modes     []string      // of the candidate, in which the finding shows
}

// Side names a backend.
type Side struct {
	Spec string       `json:"spec"` // "torch", "native", "torch:/usr/bin/python3"
	Info backend.Info `json:"info"`
}

// Run runs the program on a candidate, or its function.
func (f *Finding) Run(ctx context.Context, candidate backend.Backend) (*backend.Outcome, error) {
	if f.Function == nil {
		return candidate.Run(ctx, f.Job)
	}
	o, err := candidate.Run(ctx, backend.NewJob(f.Function.Program))
	if err != nil {
		return nil, err
	}
	return f.Function.Part(o)
}

// Framework returns whose code runs the side: "torch", "native".
func (s *Side) Framework() string {
	if s.Info.Name != "" && s.Info.Name != "recorded" {
		return s.Info.Name
	}
	return specKind(s.Spec)
}

// traced reports whether the side does not run call by call, as a file of
// plain calls does.
func (s *Side) traced() bool { return s.Info.Own() != backend.Eager }

// Shrink says what making the program smaller took.
type Shrink struct {
	Runs    int     `json:"runs"` // of the candidate
	Seconds float64 `json:"seconds"`
}
