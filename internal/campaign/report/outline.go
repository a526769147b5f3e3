package report

import (
	"slices"
	"strings"
	"time"

	"plumb/internal/find/finding"
	"plumb/internal/judge/compare"
	"plumb/internal/judge/verdict"
)

// OutlineSchema is the version of an outline as JSON, docs/schema/report.json.
const OutlineSchema = 1

// The most that an outline holds of each.
const (
	outlineFailures = 1000
	outlineText     = 16 << 10 // bytes of a reason or a program
)

// Outline is a run in brief: its counts, tests, findings and first failures. Other
// programs read it, as the files of --report.
type Outline struct {
	Schema     int               `json:"schema"`
	Command    string            `json:"command"`
	Plumb      string            `json:"plumb"`
	Seed       uint64            `json:"seed"`
	Reference  string            `json:"reference"`
	Candidates []string          `json:"candidates"`
	Seconds    float64           `json:"seconds"`
	Cases      int               `json:"cases"`
	Verdicts   map[string]int    `json:"verdicts"`
	Tests      []*OutlineTest    `json:"tests"`
	Findings   []*OutlineFinding `json:"findings"`
	// Failures are the first cases that failed, Failed is how many there are.
	Failures []*OutlineFailure `json:"failures"`
	Failed   int               `json:"failed"`
	Errors   []string          `json:"errors"` // mistakes in tests

	// Where tells the file and line of a test; nil, or "", where there is none.
	Where func(test string) (file string, line int) `json:"-"`

	tests map[[2]string]*OutlineTest
}

// OutlineTest counts the cases of a test and a candidate.
type OutlineTest struct {
	Test      string         `json:"test"`
	Candidate string         `json:"candidate"`
	File      string         `json:"file,omitempty"`
	Line      int            `json:"line,omitempty"`
	Verdicts  map[string]int `json:"verdicts"`
	Worst     compare.Number `json:"worst"` // error ÷ limit
	Seconds   float64        `json:"seconds"`
}

// OutlineFinding is cases that fail alike.
type OutlineFinding struct {
	ID        string   `json:"id"`
	Candidate string   `json:"candidate"`
	Signature string   `json:"signature"`
	Kind      string   `json:"kind"` // the verdict
	Operator  string   `json:"operator,omitempty"`
	Tests     []string `json:"tests"`
	File      string   `json:"file,omitempty"`
	Line      int      `json:"line,omitempty"`
	Cases     int      `json:"cases"`
	Reason    string   `json:"reason"`
	Common    string   `json:"common,omitempty"`
	Program   string   `json:"program"`
	Proof     string   `json:"proof,omitempty"`
	Bundle    string   `json:"bundle,omitempty"`

	again string // the command that shows it again
}

// OutlineFailure is a case that failed.
type OutlineFailure struct {
	Test      string `json:"test"`
	Case      int    `json:"case"`
	ID        string `json:"id"`
	Candidate string `json:"candidate"`
	Verdict   string `json:"verdict"`
	Reason    string `json:"reason"`
	File      string `json:"file,omitempty"`
	Line      int    `json:"line,omitempty"`
}

// NewOutline returns an outline of no cases.
func NewOutline(command, plumb string, where func(string) (string, int)) *Outline {
	return &Outline{
		Schema: OutlineSchema, Command: command, Plumb: plumb, Where: where, Candidates: []string{}, Verdicts: map[string]int{}, Tests: []*OutlineTest{},
		Findings: []*OutlineFinding{}, Failures: []*OutlineFailure{}, Errors: []string{}, tests: map[[2]string]*OutlineTest{},
	}
}

func (o *Outline) where(test string) (string, int) {
	if o.Where == nil {
		return "", 0
	}
	return o.Where(test)
}

// OutlineCase is a case as an outline counts it.
type OutlineCase struct {
	Test      string
	Index     int
	ID        string // of the program
	Candidate string
	Word      verdict.Word
	Reason    string
	Worst     compare.Number
	Elapsed   time.Duration // of the candidate
}

// Record counts a record.
func (o *Outline) Record(r *verdict.Record) {
	v := r.Verdict
	c := OutlineCase{Test: r.Test, Index: r.Index, Candidate: r.Candidate, Word: v.Word, Reason: v.Reason, Worst: v.Worst, Elapsed: elapsed(r.Outcome)}
	if v.Word.IsFinding() {
		c.ID = r.Program.ID()
	}
	o.Case(c)
}

// Case counts a case.
func (o *Outline) Case(c OutlineCase) {
	key := [2]string{c.Test, c.Candidate}
	t := o.tests[key]
	if t == nil {
		t = &OutlineTest{Test: c.Test, Candidate: c.Candidate, Verdicts: map[string]int{}}
		t.File, t.Line = o.where(c.Test)
		o.tests[key] = t
		o.Tests = append(o.Tests, t)
	}
	o.Cases++
	o.Verdicts[string(c.Word)]++
	t.Verdicts[string(c.Word)]++
	t.Worst = max(t.Worst, c.Worst)
	t.Seconds += c.Elapsed.Seconds()
	if !c.Word.IsFinding() {
		return
	}
	if o.Failed++; o.Failed <= outlineFailures {
		o.Failures = append(o.Failures, &OutlineFailure{Test: c.Test, Case: c.Index, ID: c.ID, Candidate: c.Candidate, Verdict: string(c.Word), Reason: clip(c.Reason, outlineText), File: t.File, Line: t.Line})
	}
}

// End keeps a mistake in a test.
func (o *Outline) End(e *verdict.End) {
	if e.Err == nil {
		return
	}
	text := ErrorText(e.Err)
	if !strings.Contains(text, e.Test) {
		text = e.Test + ": " + text
	}
	o.Errors = append(o.Errors, clip(text, outlineText))
}

// AddFindings keeps the findings.
func (o *Outline) AddFindings(fs []*finding.Finding) {
	for _, f := range fs {
		r := f.Result
		one := &OutlineFinding{
			ID: f.ID, Candidate: f.Candidate(), Signature: r.Signature.String(), Kind: string(r.Signature.Word), Operator: r.Signature.Operator, Tests: f.Tests(), Cases: f.Count(),
			Reason: r.Record.Verdict.Reason, Common: f.Common, Program: r.Record.Program.String(), Proof: f.Proof, Bundle: f.Bundle,
		}
		o.Finding(one, f.Again)
	}
}

// Finding keeps a finding, which the command again shows once more.
func (o *Outline) Finding(f *OutlineFinding, again string) {
	f.File, f.Line = o.where(f.Tests[0])
	f.Reason, f.Program, f.again = clip(f.Reason, outlineText), clip(f.Program, outlineText), again
	o.Findings = append(o.Findings, f)
}

// Summarise takes what the summary of the run says.
func (o *Outline) Summarise(s *Summary) {
	o.Seed, o.Reference, o.Candidates, o.Seconds = s.Seed, s.Reference, slices.Clone(s.Candidates), s.Elapsed.Seconds()
}

// OutlineSink hands a run to an outline.
type OutlineSink struct{ *Outline }

// Findings keeps the findings.
func (s OutlineSink) Findings(fs []*finding.Finding) { s.AddFindings(fs) }

// Summary takes what the summary says.
func (s OutlineSink) Summary(sum *Summary) { s.Summarise(sum) }

// Aligned reports whether nothing speaks against a candidate.
func (o *Outline) Aligned() bool { return o.Failed+len(o.Errors)+len(o.Findings) == 0 }
