// Package report turns the records of a run into what people and machines
// read: a console log, JSON lines, JUnit XML.
package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"plumb/backend"
	"plumb/internal/find/finding"
	"plumb/internal/judge/verdict"
)

// Sink receives the records of a run in order.
type Sink interface {
	Record(r *verdict.Record)
	End(e *verdict.End)
	// Findings receives the minimised findings after the last test.
	Findings(fs []*finding.Finding)
	Summary(s *Summary)
}

// Sinks hands everything to each of several sinks.
type Sinks []Sink

// Record hands a record on.
func (ss Sinks) Record(r *verdict.Record) {
	for _, s := range ss {
		s.Record(r)
	}
}

// End hands on how a test ended.
func (ss Sinks) End(e *verdict.End) {
	for _, s := range ss {
		s.End(e)
	}
}

// Findings hands the findings on.
func (ss Sinks) Findings(fs []*finding.Finding) {
	for _, s := range ss {
		s.Findings(fs)
	}
}

// Summary hands the summary on.
func (ss Sinks) Summary(sum *Summary) {
	for _, s := range ss {
		s.Summary(sum)
	}
}

// Summary counts the verdicts of a run.
type Summary struct {
	Reference  string
	Candidates []string
	Seed       uint64
	Shared     bool     // cases share programs
	Met        Met      // operators, dtypes, layouts and modes
	Covered    *Covered // nil where no time was to be spent
	Tests      int
	Words      map[verdict.Word]int
	Errors     []error // mistakes in tests, rejected draws without end
	Elapsed    time.Duration
	Worst      float64 // largest observed error ÷ limit of an aligned case
	WorstAt    string
	Compared   int            // tensors
	Drawn      int            // of these, the ones that depend on random draws
	Graphs     int            // cases that were judged in graph modes beside the candidate's own
	Uncaptured int            // cases that a graph mode does not support
	NotGraphs  string         // why the first of them is so
	Forward    int            // cases whose gradients the candidate does not have
	NoDerived  string         // why the first is so of a candidate that computes gradients by programs
	Weak       int            // tests whose sampled cases accept a fake, or that mostly reject
	Beyond     string         // why the first unsupported case is so
	Lacking    map[string]int // unsupported cases by reason
	TooLarge   string         // why the first skipped case is so
	Excused    string         // why the first known case is so
	Fixed      int            // entries of the known list that no longer fail
	Stale      []string       // a line for each of these, and for those that have expired
	Triage     *Triage        // nil where findings are not gathered
}

// Covered is what a time was spent on: cells are operator × dtype × layout, of
// which the one that was met least was met in so many cases.
type Covered struct {
	Tests  int `json:"tests"`
	Rounds int `json:"rounds"`
	Cells  int `json:"cells"`
	Least  int `json:"least"`
}

// NewSummary returns an empty summary.
func NewSummary() *Summary { return &Summary{Words: map[verdict.Word]int{}, Lacking: map[string]int{}} }

// Add counts a record.
func (s *Summary) Add(r *verdict.Record) {
	v := r.Verdict
	s.Words[v.Word]++
	s.Compared += v.Compared
	s.Drawn += v.Drawn
	if v.ForwardOnly && v.Word != verdict.Unsupported {
		s.Forward++
		s.NoDerived = cmp.Or(s.NoDerived, v.NoGradients)
	}
	if v.Word == verdict.Unsupported {
		s.Beyond = cmp.Or(s.Beyond, v.Reason)
		s.Lacking[Lack(v.Reason)]++
	}
	if v.Word == verdict.Skipped && s.TooLarge == "" {
		s.TooLarge = v.Reason
	}
	if v.Word == verdict.Known {
		s.Excused = cmp.Or(s.Excused, firstLine(v.Reason))
	}
	if s.Triage != nil {
		s.Triage.Add(r)
	}
	s.graph(r)
	s.Met.Add(r)
	if worst := float64(v.Worst); v.Word == verdict.Aligned && worst > s.Worst && v.WorstAt != nil {
		s.Worst, s.WorstAt = worst, fmt.Sprintf("%s case %d, %s %s", r.Test, r.Index, v.WorstAt.Part, v.WorstAt.Name)
	}
}

func (s *Summary) graph(r *verdict.Record) {
	if len(r.Modes) > 1 && r.Modes[0] == backend.Eager && r.Verdict.Word != verdict.Unsupported {
		s.Graphs++
	}
	if r.Uncaptured != "" {
		if s.Uncaptured++; s.NotGraphs == "" {
			s.NotGraphs = r.Uncaptured
		}
	}
}

// graphLine says how many cases were judged as graphs.
func (s *Summary) graphLine() string {
	line := fmt.Sprintf("judged as graphs too: %s", plural(s.Graphs, "case"))
	if s.Uncaptured > 0 {
		line += fmt.Sprintf("; not captured: %d, the first because %s", s.Uncaptured, strings.TrimPrefix(firstLine(s.NotGraphs), lacking))
	}
	return line
}

// Cases returns the number of records.
func (s *Summary) Cases() int {
	n := 0
	for _, c := range s.Words {
		n += c
	}
	return n
}

// Judged returns the number of records that say something: not of what is
// unsupported, or larger than what may be taken.
func (s *Summary) Judged() int {
	return s.Cases() - s.Words[verdict.Unsupported] - s.Words[verdict.Skipped]
}

// lacking is the beginning of the reason where a candidate does not support a
// program: what follows is its own reason.
const lacking = "the candidate does not support this program: "

// Lack returns the reason for which a case is unsupported, in one line, as it is
// counted.
func Lack(reason string) string {
	why := strings.TrimPrefix(firstLine(reason), lacking)
	why = strings.TrimPrefix(why, "NotImplementedError: ")
	if utf8.RuneCountInString(why) > longestLack {
		why = string([]rune(why)[:longestLack]) + "…"
	}
	return why
}

// longestLack bounds a reason as it is counted.
const longestLack = 200

// Reasons returns the reasons of unsupported cases, the most frequent first.
func (s *Summary) Reasons() []string {
	return slices.SortedFunc(maps.Keys(s.Lacking), func(a, b string) int {
		return cmp.Or(cmp.Compare(s.Lacking[b], s.Lacking[a]), strings.Compare(a, b))
	})
}

// mostReasons is how many reasons are printed.
const mostReasons = 5

// LackLines are the most frequent reasons, a line each; which says where all of them are.
func (s *Summary) LackLines(which string) []string {
	var lines []string
	reasons, shown := s.Reasons(), 0
	for _, why := range reasons[:min(mostReasons, len(reasons))] {
		lines = append(lines, fmt.Sprintf("%d × %s", s.Lacking[why], why))
		shown += s.Lacking[why]
	}
	if more := len(reasons) - len(lines); more > 0 {
		lines = append(lines, fmt.Sprintf("%d × %s, which %s", s.Words[verdict.Unsupported]-shown, plural(more, "other reason"), which))
	}
	return lines
}

// Unjudged says why no case was judged.
func (s *Summary) Unjudged() string {
	unsupported, skipped := s.Words[verdict.Unsupported], s.Words[verdict.Skipped]
	switch {
	case unsupported > 0:
		why := s.Reasons()[0]
		return fmt.Sprintf("%d of %s unsupported, %d because %s", unsupported, plural(s.Cases(), "case"), s.Lacking[why], why)
	case skipped > 0:
		return fmt.Sprintf("%s skipped, the first because %s", plural(skipped, "case"), firstLine(s.TooLarge))
	}
	return "none was drawn"
}

// RejectionRate returns the share of the cases that both sides refused.
func (s *Summary) RejectionRate() float64 {
	return float64(s.Words[verdict.Rejected]) / float64(max(s.Cases(), 1))
}

// Findings returns the number of records whose verdict speaks against a candidate.
func (s *Summary) Findings() int {
	n := 0
	for w, c := range s.Words {
		if w.IsFinding() {
			n += c
		}
	}
	return n
}

// Counts prints the verdicts, most wanted first: "740 aligned, 2 misaligned".
func (s *Summary) Counts() string {
	words := slices.SortedFunc(maps.Keys(s.Words), func(a, b verdict.Word) int {
		return slices.Index(order, a) - slices.Index(order, b)
	})
	var parts []string
	for _, w := range words {
		parts = append(parts, fmt.Sprintf("%d %s", s.Words[w], w))
	}
	if len(parts) == 0 {
		return "no cases"
	}
	return strings.Join(parts, ", ")
}

var order = []verdict.Word{
	verdict.Misaligned, verdict.Crash, verdict.Timeout, verdict.OOM, verdict.Fault, verdict.Unstable,
	verdict.Aligned, verdict.Known, verdict.Fixed, verdict.Unsupported, verdict.Skipped, verdict.Rejected,
}
