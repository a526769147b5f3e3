package report

import (
	"encoding/json"
	"io"

	"plumb/internal/find/finding"
	"plumb/internal/find/shrink"
	"plumb/internal/judge/compare"
	"plumb/internal/judge/verdict"
)

// JSON writes one object per line: one for each record, {"error":…} for each
// test that could not be judged, {"weak":…} for each test whose cases accept a
// fake of what they expect, {"minimal":…} for each finding, and {"summary":…}
// at the end.
type JSON struct{ enc *json.Encoder }

// NewJSON returns a sink that writes to w.
func NewJSON(w io.Writer) *JSON {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return &JSON{enc}
}

type jsonRecord struct {
	Test      string         `json:"test"`
	Case      int            `json:"case"`
	ID        string         `json:"id"`
	Candidate string         `json:"candidate"`
	Modes     []string       `json:"modes,omitempty"` // of the candidate that have the verdict
	Verdict   verdict.Word   `json:"verdict"`
	Kind      verdict.Kind   `json:"kind,omitempty"`
	Reason    string         `json:"reason,omitempty"`
	Compared  int            `json:"compared"` // tensors and numbers
	Worst     compare.Number `json:"worst"`    // observed error ÷ limit
	// OfReference says that the verdict is how the reference ended.
	OfReference bool   `json:"of_reference,omitempty"`
	Otherwise   string `json:"otherwise,omitempty"` // what the config's own tolerances say
	ForwardOnly bool   `json:"forward_only,omitempty"`
	// NoGradients says why, where the candidate computes gradients by programs.
	NoGradients string `json:"no_gradients,omitempty"`
	// Seconds and ReferenceSeconds are what the case took, where a side tells.
	Seconds          float64 `json:"seconds,omitempty"`
	ReferenceSeconds float64 `json:"reference_seconds,omitempty"`
	// Truths are the distances of both sides from the truth (--set oracle=always).
	Truths []verdict.Truth `json:"truths,omitempty"`
	// Uncaptured says why a graph mode does not support the case, Blame what of
	// the graph is wrong, or the reference where it is alone against the truth.
	Uncaptured string `json:"uncaptured,omitempty"`
	Blame      string `json:"blame,omitempty"`
	// Finding and Program are the whole verdict and the program of a finding.
	Finding *verdict.Verdict `json:"finding,omitempty"`
	Program string           `json:"program,omitempty"`
}

// Record writes the record's line.
func (j *JSON) Record(r *verdict.Record) {
	v := r.Verdict
	out := jsonRecord{Test: r.Test, Case: r.Index, ID: r.Program.ID(), Candidate: r.Candidate, Modes: r.Modes, Uncaptured: r.Uncaptured, Blame: v.ToBlame(),
		Verdict: v.Word, Kind: v.Kind, Reason: v.Reason, Compared: v.Compared, Worst: v.Worst, Truths: v.Truths,
		OfReference: v.OfReference, Otherwise: v.Otherwise, ForwardOnly: v.ForwardOnly, NoGradients: v.NoGradients, Seconds: elapsed(r.Outcome).Seconds(), ReferenceSeconds: elapsed(r.Reference).Seconds()}
	if v.Word.IsFinding() {
		out.Finding, out.Program = v, r.Program.String()
	}
	_ = j.enc.Encode(out)
}

// End writes a line when the test could not be judged, one when it is weak, and
// one when it mostly rejects.
func (j *JSON) End(e *verdict.End) {
	if e.Err != nil {
		_ = j.enc.Encode(map[string]any{"test": e.Test, "error": e.Err.Error()})
	}
	if e.Weak != nil {
		_ = j.enc.Encode(struct {
			Test string `json:"test"`
			*verdict.Weak
		}{e.Test, e.Weak})
	}
	if e.Rejects {
		_ = j.enc.Encode(map[string]any{"test": e.Test, "mostly_rejected": e.Rejected, "judged": e.Judged})
	}
}

type jsonFinding struct {
	ID        string           `json:"id"`
	Candidate string           `json:"candidate"`
	Modes     []string         `json:"modes,omitempty"` // of the candidate, in which it shows
	Blame     string           `json:"blame,omitempty"` // "pass fuse", "tracing", the reference
	Signature shrink.Signature `json:"signature"`
	Count     int              `json:"count"` // failing cases
	Tests     []string         `json:"tests"`
	Common    string           `json:"common,omitempty"`
	Unstable  string           `json:"unstable,omitempty"`
	Proof     string           `json:"proof,omitempty"`
	Bundle    string           `json:"bundle,omitempty"`
	Ranks     string           `json:"ranks,omitempty"`
	Minimal   bool             `json:"minimal"` // nothing makes it smaller
	Runs      int              `json:"runs"`    // of the candidate, to get there
	Seconds   float64          `json:"seconds"`
	Program   string           `json:"program"`
	Verdict   *verdict.Verdict `json:"verdict"`
}

// Findings writes a line for each finding.
func (j *JSON) Findings(fs []*finding.Finding) {
	for _, f := range fs {
		r := f.Result
		_ = j.enc.Encode(map[string]any{"minimal": jsonFinding{
			f.ID, f.Candidate(), f.Modes(), r.Record.Verdict.ToBlame(), r.Signature, f.Count(), f.Tests(), f.Common, f.Unstable, f.Proof, f.Bundle,
			r.Ranks, r.Minimal, r.Runs, r.Elapsed.Seconds(), r.Record.Program.String(), r.Record.Verdict,
		}})
	}
}

// Summary writes the last line. Cases is the sum of all verdicts, rejected
// draws included.
func (j *JSON) Summary(s *Summary) {
	sum := map[string]any{
		"cases": s.Cases(), "judged": s.Judged(), "tests": s.Tests, "seed": s.Seed, "errors": len(s.Errors), "weak": s.Weak,
		"compared": s.Compared, "drawn": s.Drawn, "worst": s.Worst, "seconds": s.Elapsed.Seconds(),
		"reference": s.Reference, "candidates": s.Candidates, "rejection_rate": s.RejectionRate(),
	}
	if s.Graphs+s.Uncaptured > 0 {
		sum["graphs"], sum["uncaptured"] = s.Graphs, s.Uncaptured
	}
	if len(s.Lacking) > 0 {
		sum["unsupported_by"] = s.Lacking
	}
	if s.Covered != nil {
		sum["covered"] = s.Covered
	}
	if s.Shared {
		sum["shapes"] = "few"
	}
	if s.Forward > 0 {
		sum["forward_only"] = s.Forward
	}
	if clusters := s.Triage.Clusters(); len(clusters) > 0 {
		sum["clusters"] = clusters
	}
	for _, w := range order {
		sum[string(w)] = s.Words[w]
	}
	sum[string(verdict.Fixed)] = s.Fixed
	_ = j.enc.Encode(map[string]any{"summary": sum})
}
