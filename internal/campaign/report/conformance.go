package report

import (
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"plumb/internal/judge/verdict"
)

// Conformance gathers the verdicts of a conformance run for a vendor's report:
// what a candidate implements and what of it passes, by function, dtype and
// model.
type Conformance struct {
	Candidate string `json:"candidate"`
	Reference string `json:"reference"`
	Seed      uint64 `json:"seed"`
	// JudgedCases of AskedCases were computed: see ConformanceRow.Judged and Asked.
	JudgedCases int               `json:"judged_cases"`
	AskedCases  int               `json:"asked_cases"`
	Total       ConformanceRow    `json:"total"`
	Functions   []*ConformanceRow `json:"functions"`
	DTypes      []*ConformanceRow `json:"dtypes"`
	Models      []*ConformanceRow `json:"models"`
	// Implemented is how many of the functions computed at least one case, or
	// failed one otherwise than by refusing it as unsupported. A function of
	// which the reference recorded nothing counts in neither.
	Implemented int `json:"implemented"`
	Asked       int `json:"asked"` // functions of which a case was recorded
	// Failures are the first cases that failed, at most MostFailures.
	Failures []Failure `json:"failures"`
	Details

	functions, dtypes, models map[string]*ConformanceRow
	calls                     map[string][]string // models by function
}

// MostFailures bounds the failures that a report lists.
const MostFailures = 500

// ConformanceRow counts cases and their variants.
type ConformanceRow struct {
	Name string `json:"name"`
	// Passed are aligned, or differ by a known fault of the reference alone;
	// Failed are all that did not pass, of those that were computed.
	Passed      int `json:"passed"`
	Failed      int `json:"failed"`
	Unsupported int `json:"unsupported"` // by the candidate
	Skipped     int `json:"skipped"`     // by modes and device rules
	Unrecorded  int `json:"unrecorded"`  // the reference refused them
	// Lenient are failures that DIOPI's looser comparison would have passed.
	Lenient int `json:"lenient,omitempty"`
	// Otherwise are judged cases of which the config's own tolerances say the
	// opposite.
	Otherwise int `json:"otherwise,omitempty"`
	// Functions and Implemented are of a model.
	Functions   int    `json:"functions,omitempty"`
	Implemented int    `json:"implemented,omitempty"`
	Reason      string `json:"reason,omitempty"` // the first of what did not pass
}

// Failure is a case that failed.
type Failure struct {
	Case    string       `json:"case"`
	DType   string       `json:"dtype"`
	Verdict verdict.Word `json:"verdict"`
	Reason  string       `json:"reason"`
	Lenient string       `json:"lenient,omitempty"`
}

// ConformanceCase is one verdict. Word is empty for a skipped case; Recorded is
// false where the reference has no outcome of it. Lenient says what DIOPI's
// comparison says, where it was asked: "passes" or "fails".
type ConformanceCase struct {
	Case, Function, DType string
	Word                  verdict.Word
	Reason                string
	Recorded              bool
	Lenient               string
	// Otherwise says that the config's own tolerances say the opposite.
	Otherwise bool
}

// NewConformance returns an empty report. Models are lists of functions by name.
func NewConformance(candidate, reference string, seed uint64, models map[string][]string) *Conformance {
	c := &Conformance{
		Candidate: candidate, Reference: reference, Seed: seed, Total: ConformanceRow{Name: "all"},
		functions: map[string]*ConformanceRow{}, dtypes: map[string]*ConformanceRow{}, models: map[string]*ConformanceRow{},
		calls: map[string][]string{},
	}
	for name, functions := range models {
		for _, f := range functions {
			c.calls[f] = append(c.calls[f], name)
		}
	}
	return c
}

// Add counts a verdict.
func (c *Conformance) Add(one ConformanceCase) {
	rows := []*ConformanceRow{&c.Total, rowOf(c.functions, one.Function), rowOf(c.dtypes, one.DType)}
	for _, m := range c.calls[one.Function] {
		rows = append(rows, rowOf(c.models, m))
	}
	for _, r := range rows {
		r.add(one)
	}
	if one.failed() && len(c.Failures) < MostFailures {
		c.Failures = append(c.Failures, Failure{one.Case, one.DType, one.Word, one.Reason, one.Lenient})
	}
}

func rowOf(rows map[string]*ConformanceRow, name string) *ConformanceRow {
	if rows[name] == nil {
		rows[name] = &ConformanceRow{Name: name}
	}
	return rows[name]
}

func (one *ConformanceCase) failed() bool {
	switch one.Word {
	case "", verdict.Aligned, verdict.Known, verdict.Rejected, verdict.Unsupported, verdict.Fixed:
		return false
	}
	return one.Recorded
}

// Outcome is what became of a case, for counting: the column of its row.
type Outcome string

// The outcomes. Passed are aligned, or differ by a known fault of the reference
// alone; Unrecorded are cases with no recorded result.
const (
	Passed      Outcome = "passed"
	Failed      Outcome = "failed"
	Unsupported Outcome = "unsupported"
	Skipped     Outcome = "skipped"
	Unrecorded  Outcome = "unrecorded"
)

// OutcomeOf is what the verdict on a drawn case counts as.
func OutcomeOf(word verdict.Word) Outcome {
	switch {
	case word == "", word == verdict.Skipped:
		return Skipped
	case word == verdict.Unsupported:
		return Unsupported
	case word.IsFinding():
		return Failed
	}
	return Passed
}

// Outcome is what a verdict counts as.
func (one *ConformanceCase) Outcome() Outcome {
	switch {
	case one.Word == "":
		return Skipped
	case !one.Recorded:
		return Unrecorded
	case one.Word == verdict.Unsupported:
		return Unsupported
	case one.failed():
		return Failed
	}
	return Passed
}

func (r *ConformanceRow) add(one ConformanceCase) {
	if one.Otherwise {
		r.Otherwise++
	}
	switch one.Outcome() {
	case Skipped:
		r.Skipped++
	case Unrecorded:
		r.Unrecorded++
	case Unsupported:
		r.Unsupported++
		r.Reason = cmp.Or(r.Reason, one.Reason)
	case Failed:
		if r.Failed == 0 {
			r.Reason = one.Reason
		}
		r.Failed++
		if one.Lenient == "passes" {
			r.Lenient++
		}
	case Passed:
		r.Passed++
	}
}

// Judged is how many cases the candidate computed, of those that it was Asked.
func (r *ConformanceRow) Judged() int { return r.Passed + r.Failed }

// Asked is how many cases the reference recorded and no mode leaves out.
func (r *ConformanceRow) Asked() int { return r.Judged() + r.Unsupported }

// JudgedRate is the share of what was asked that was judged.
func (r *ConformanceRow) JudgedRate() float64 {
	return float64(r.Judged()) / float64(max(r.Asked(), 1))
}

// Rate is the share of what was computed that passed, from 0 to 1; 0 of nothing.
func (r *ConformanceRow) Rate() float64 {
	if n := r.Passed + r.Failed; n > 0 {
		return float64(r.Passed) / float64(n)
	}
	return 0
}

// ImplementedRate is the share of the functions that the candidate implements.
func (c *Conformance) ImplementedRate() float64 {
	if c.Asked == 0 {
		return 0
	}
	return float64(c.Implemented) / float64(c.Asked)
}

// Function is the row of a function, of zeros where no case of it was counted.
func (c *Conformance) Function(name string) ConformanceRow {
	if r := c.functions[name]; r != nil {
		return *r
	}
	return ConformanceRow{Name: name}
}

// Finish sorts the rows and counts what is implemented; call it after the last Add.
func (c *Conformance) Finish() {
	c.Functions, c.DTypes, c.Models = sortedRows(c.functions), sortedRows(c.dtypes), sortedRows(c.models)
	c.Implemented, c.Asked = 0, 0
	c.JudgedCases, c.AskedCases = c.Total.Judged(), c.Total.Asked()
	for _, m := range c.Models {
		m.Functions, m.Implemented = 0, 0
	}
	for _, f := range c.Functions {
		done := f.Passed+f.Failed > 0
		if !done && f.Unsupported == 0 {
			continue
		}
		c.Asked++
		for _, m := range c.calls[f.Name] {
			c.models[m].Functions++
		}
		if !done {
			continue
		}
		c.Implemented++
		for _, m := range c.calls[f.Name] {
			c.models[m].Implemented++
		}
	}
	c.finishDetails()
}

func sortedRows(rows map[string]*ConformanceRow) []*ConformanceRow {
	out := make([]*ConformanceRow, 0, len(rows))
	for _, r := range rows {
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b *ConformanceRow) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// Text writes the table of dtypes, that of models where it is wanted, and the
// summary.
func (c *Conformance) Text(w io.Writer, models bool) {
	c.Rows(w, "dtype", c.DTypes)
	if models && len(c.Models) > 0 {
		c.Rows(w, "model", c.Models)
	}
	t := &c.Total
	fmt.Fprintf(w, "cases       %d of %d judged (%s): %d of %d passed (%s), %d unsupported, %d skipped, %d without a reference\n",
		t.Judged(), t.Asked(), percent(t.JudgedRate()), t.Passed, t.Judged(), percent(t.Rate()), t.Unsupported, t.Skipped, t.Unrecorded)
	if t.Otherwise > 0 {
		fmt.Fprintf(w, "otherwise   %d by the config's own tolerances\n", t.Otherwise)
	}
	fmt.Fprintf(w, "functions   %d of %d implemented (%s)\n", c.Implemented, c.Asked, percent(c.ImplementedRate()))
}

// Rows writes a table of rows, which are of a kind: "dtype".
func (c *Conformance) Rows(w io.Writer, kind string, rows []*ConformanceRow) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	heads := []string{kind, "passed", "failed", "rate", "unsupported", "skipped", "no reference"}
	counted := slices.ContainsFunc(rows, func(r *ConformanceRow) bool { return r.Functions > 0 })
	if counted {
		heads = append(heads, "implemented")
	}
	fmt.Fprintf(t, "%s\t\n", strings.Join(heads, "\t"))
	for _, r := range rows {
		implemented := ""
		switch {
		case r.Functions > 0:
			implemented = fmt.Sprintf("%d/%d\t", r.Implemented, r.Functions)
		case counted:
			implemented = "\t"
		}
		fmt.Fprintf(t, "%s\t%d\t%d\t%s\t%d\t%d\t%d\t%s\n", r.Name, r.Passed, r.Failed, percent(r.Rate()), r.Unsupported, r.Skipped, r.Unrecorded, implemented)
	}
	_ = t.Flush()
	fmt.Fprintln(w)
}

func percent(share float64) string { return fmt.Sprintf("%.1f%%", 100*share) }

//go:embed conformance.html
var conformancePage string

var conformanceTemplate = template.Must(template.New("conformance").Funcs(template.FuncMap{"percent": percent, "duration": duration, "join": func(list []string) string { return strings.Join(list, " ") }}).Parse(conformancePage))

// HTML writes the report as one page without references to other files.
func (c *Conformance) HTML(w io.Writer) error { return conformanceTemplate.Execute(w, c) }
