package report

import (
	"cmp"
	_ "embed"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/template"
	"time"

	"plumb/internal/judge/verdict"
)

// CaseDetails are what a vendor's report tells of a case beside its verdict.
type CaseDetails struct {
	Mode    string // what is judged: ModeForward, ModeBackward, ModeInPlace or another
	Bytes   int64  // of the inputs; 0 where they are not known
	Kind    string // of what is misaligned
	Elapsed time.Duration
}

// The modes of cases.
const (
	ModeForward  = "forward"
	ModeBackward = "forward and backward"
	ModeInPlace  = "in place"
)

// Details are the parts of a report that are more than counts.
type Details struct {
	// About says what was run, in lines of a name and a text.
	About    [][2]string       `json:"about,omitempty"`
	ByMode   []*ModeRow        `json:"by_mode"`
	Clusters []*Alike          `json:"clusters"`
	Slowest  []*Slow           `json:"slowest"` // at most mostSlow
	Coverage []*Coverage       `json:"coverage"`
	Lacking  []*ConformanceRow `json:"not_implemented"` // functions
	Before   *Comparison       `json:"before,omitempty"`

	byMode   map[[2]string]*ModeRow
	clusters map[[4]string]*Alike
	slow     map[string]*Slow
}

// ModeRow counts the cases of a dtype in a mode.
type ModeRow struct {
	DType  string `json:"dtype"`
	Mode   string `json:"mode"`
	Passed int    `json:"passed"`
	Judged int    `json:"judged"`
	Asked  int    `json:"asked"`
}

// Alike is cases of a function that fail alike.
type Alike struct {
	Function string       `json:"function"`
	Mode     string       `json:"mode"`
	Verdict  verdict.Word `json:"verdict"`
	Kind     string       `json:"kind,omitempty"` // of what is misaligned
	Cases    int          `json:"cases"`
	Smallest string       `json:"smallest"` // the case with the fewest bytes of inputs
	Bytes    int64        `json:"bytes"`
	DType    string       `json:"dtype"`  // of the smallest
	Reason   string       `json:"reason"` // of the smallest
}

// Slow is what the cases of a function took.
type Slow struct {
	Function string  `json:"function"`
	Cases    int     `json:"cases"`
	Seconds  float64 `json:"seconds"`
	Longest  string  `json:"longest"` // case
	Most     float64 `json:"longest_seconds"`
}

// mostSlow bounds the functions that a report lists as slow.
const mostSlow = 10

// Coverage says whether a candidate can run a network: whether it computes all
// functions that the network calls.
type Coverage struct {
	Model     string   `json:"model"`
	Functions int      `json:"functions"`
	Aligned   int      `json:"aligned"`
	Failing   []string `json:"failing,omitempty"`
	Lacking   []string `json:"lacking,omitempty"` // not implemented
	Untold    []string `json:"untold,omitempty"`  // of which no case was asked
}

// Answer says whether the candidate runs the network.
func (c *Coverage) Answer() string {
	switch {
	case len(c.Lacking) > 0:
		return "no"
	case len(c.Failing) > 0:
		return "with wrong results"
	case len(c.Untold) > 0:
		return "as far as told"
	}
	return "yes"
}

// Comparison is how a run differs from one before it, by functions.
type Comparison struct {
	Run          string         `json:"run"` // which one
	Total        ConformanceRow `json:"total"`
	Implemented  int            `json:"implemented"`
	NewlyFailing []string       `json:"newly_failing,omitempty"`
	NoLonger     []string       `json:"no_longer_failing,omitempty"`
	Gained       []string       `json:"newly_implemented,omitempty"`
	Lost         []string       `json:"no_longer_implemented,omitempty"`
}

// Describe adds what is told of a case beside its verdict.
func (d *Details) Describe(one ConformanceCase, more CaseDetails) {
	if d.byMode == nil {
		d.byMode, d.clusters, d.slow = map[[2]string]*ModeRow{}, map[[4]string]*Alike{}, map[string]*Slow{}
	}
	at := [2]string{one.DType, more.Mode}
	row := d.byMode[at]
	if row == nil {
		row = &ModeRow{DType: one.DType, Mode: more.Mode}
		d.byMode[at] = row
	}
	switch one.Outcome() {
	case Passed:
		row.Passed, row.Judged, row.Asked = row.Passed+1, row.Judged+1, row.Asked+1
	case Failed:
		row.Judged, row.Asked = row.Judged+1, row.Asked+1
		d.cluster(one, more)
	case Unsupported:
		row.Asked++
	}
	if o := one.Outcome(); o == Passed || o == Failed {
		d.took(one, more.Elapsed)
	}
}

func (d *Details) cluster(one ConformanceCase, more CaseDetails) {
	at := [4]string{one.Function, more.Mode, string(one.Word), more.Kind}
	c := d.clusters[at]
	if c == nil {
		c = &Alike{Function: one.Function, Mode: more.Mode, Verdict: one.Word, Kind: more.Kind}
		d.clusters[at] = c
	}
	if c.Cases++; c.Cases == 1 || more.Bytes > 0 && (c.Bytes == 0 || more.Bytes < c.Bytes) {
		c.Smallest, c.Bytes, c.DType, c.Reason = one.Case, more.Bytes, one.DType, one.Reason
	}
}

func (d *Details) took(one ConformanceCase, elapsed time.Duration) {
	if elapsed <= 0 {
		return
	}
	s := d.slow[one.Function]
	if s == nil {
		s = &Slow{Function: one.Function}
		d.slow[one.Function] = s
	}
	s.Cases++
	s.Seconds += elapsed.Seconds()
	if elapsed.Seconds() > s.Most {
		s.Longest, s.Most = one.Case, elapsed.Seconds()
	}
}

// finishDetails sorts what was gathered.
func (c *Conformance) finishDetails() {
	d := &c.Details
	d.ByMode = slices.SortedFunc(maps.Values(d.byMode), func(a, b *ModeRow) int {
		return cmp.Or(cmp.Compare(a.DType, b.DType), cmp.Compare(a.Mode, b.Mode))
	})
	d.Clusters = slices.SortedFunc(maps.Values(d.clusters), func(a, b *Alike) int {
		return cmp.Or(cmp.Compare(b.Cases, a.Cases), cmp.Compare(a.Function, b.Function), cmp.Compare(a.Smallest, b.Smallest))
	})
	d.Slowest = slices.SortedFunc(maps.Values(d.slow), func(a, b *Slow) int {
		return cmp.Or(cmp.Compare(b.Seconds, a.Seconds), cmp.Compare(a.Function, b.Function))
	})
	d.Slowest = d.Slowest[:min(len(d.Slowest), mostSlow)]
	d.Lacking = nil
	for _, f := range c.Functions {
		if f.Judged() == 0 && f.Unsupported > 0 {
			d.Lacking = append(d.Lacking, f)
		}
	}
	c.cover()
}

// cover asks of each network what the candidate lacks.
func (c *Conformance) cover() {
	called := map[string][]string{}
	for f, models := range c.calls {
		for _, m := range models {
			called[m] = append(called[m], f)
		}
	}
	c.Coverage = nil
	for _, m := range slices.Sorted(maps.Keys(called)) {
		functions := called[m]
		slices.Sort(functions)
		row := &Coverage{Model: m, Functions: len(functions)}
		for _, f := range functions {
			switch r := c.functions[f]; {
			case r == nil || r.Asked() == 0:
				row.Untold = append(row.Untold, f)
			case r.Judged() == 0:
				row.Lacking = append(row.Lacking, f)
			case r.Failed > 0:
				row.Failing = append(row.Failing, f)
			default:
				row.Aligned++
			}
		}
		c.Coverage = append(c.Coverage, row)
	}
}

// Compare tells how the report differs from one of a run before it; call it
// after Finish. Functions that one of the runs was not asked are passed over.
func (c *Conformance) Compare(run string, before *Conformance) {
	b := &Comparison{Run: run, Total: before.Total, Implemented: before.Implemented}
	then := map[string]*ConformanceRow{}
	for _, f := range before.Functions {
		then[f.Name] = f
	}
	for _, f := range c.Functions {
		old := then[f.Name]
		if old == nil || old.Asked() == 0 || f.Asked() == 0 {
			continue
		}
		switch {
		case f.Failed > 0 && old.Failed == 0:
			b.NewlyFailing = append(b.NewlyFailing, f.Name)
		case f.Failed == 0 && old.Failed > 0:
			b.NoLonger = append(b.NoLonger, f.Name)
		}
		switch {
		case f.Judged() > 0 && old.Judged() == 0:
			b.Gained = append(b.Gained, f.Name)
		case f.Judged() == 0 && old.Judged() > 0:
			b.Lost = append(b.Lost, f.Name)
		}
	}
	c.Before = b
}

// Modes are the modes that cases have, in order.
func (d *Details) Modes() []string {
	var modes []string
	for _, r := range d.ByMode {
		modes = append(modes, r.Mode)
	}
	slices.Sort(modes)
	return slices.Compact(modes)
}

// Grid is what passed and was judged by dtype, a row each, and mode.
func (d *Details) Grid() [][]string {
	var rows [][]string
	modes := d.Modes()
	for _, r := range d.ByMode {
		if n := len(rows); n == 0 || rows[n-1][0] != r.DType {
			rows = append(rows, append([]string{r.DType}, make([]string, len(modes))...))
		}
		cell := "not judged"
		if r.Judged > 0 {
			cell = fmt.Sprintf("%d of %d", r.Passed, r.Judged)
		}
		rows[len(rows)-1][1+slices.Index(modes, r.Mode)] = cell
	}
	return rows
}

// duration is a time as it is read.
func duration(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	for unit := time.Second; unit > time.Nanosecond; unit /= 1000 {
		if d >= unit {
			return d.Round(unit / 100).String()
		}
	}
	return d.String()
}

// shown is a text of a cell of a table in Markdown.
func shown(text string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", "\n", " ").Replace(clip(text, mostCell))
}

// mostCell bounds the text of a cell, in bytes.
const mostCell = 300

//go:embed vendor.md
var vendorMarkdown string

var vendorTemplate = template.Must(template.New("vendor").Funcs(template.FuncMap{
	"percent": percent, "shown": shown, "duration": duration, "join": func(list []string) string { return strings.Join(list, " ") },
}).Parse(vendorMarkdown))

// Markdown writes the report as one page of Markdown.
func (c *Conformance) Markdown(w io.Writer) error { return vendorTemplate.Execute(w, c) }
