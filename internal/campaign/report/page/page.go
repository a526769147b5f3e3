// Package page writes a run as one HTML file that needs nothing else: what failed
// and where, what was met, how near results came to their limits, and every case.
package page

import (
	"math"
	"slices"
	"strings"
	"time"

	"plumb/internal/campaign/report"
	"plumb/internal/find/finding"
	"plumb/internal/judge/verdict"
)

// Page gathers a run for a page. It is a report.Sink, and keeps no tensors of what
// is aligned.
type Page struct {
	Title       string      // the command
	Started     time.Time   // of the run
	Environment [][2]string // what ran where
	Verdict     string      // of the command, where it says more than those of its cases
	Bad         bool        // that verdict
	Sections    []Section   // of the command's own

	summary *report.Summary
	blocks  []*report.Block
	first   []*verdict.Record // failing cases of different kinds, where none was made smaller
	kinds   map[string]bool
	tests   []*test
	byName  map[string]*test
	limits  map[string]*limits
	cases   []row
	dropped int // aligned cases that have no row
	words   strung
	shown   strung // reasons, operators and dtypes of rows
}

// Section is a table that a command adds to what every page has.
type Section struct {
	Title, Intro string
	Head         []string
	Rows         [][]string
}

// The most rows of cases, and of different failures that are shown as drawn.
const (
	mostCases = 20000
	mostKinds = 50
)

// fewReasons is how many texts may be long ones.
const fewReasons = 2000

// test is what a page says of one.
type test struct {
	name   string
	cases  int
	words  map[verdict.Word]int
	worst  float64
	took   time.Duration
	weak   string
	failed string
}

// row is a case: of a test, a candidate, with a verdict.
type row struct {
	test, index     int
	id              string
	word            int
	worst           float64
	took            time.Duration
	candidate       int
	reason          int
	operators, part []int
}

// strung numbers texts.
type strung struct {
	list []string
	at   map[string]int
}

func (s *strung) of(text string) int {
	if i, ok := s.at[text]; ok {
		return i
	}
	if s.at == nil {
		s.at = map[string]int{}
	}
	s.at[text] = len(s.list)
	s.list = append(s.list, text)
	return len(s.list) - 1
}

// New returns a page without anything.
func New(title string, started time.Time) *Page {
	return &Page{Title: title, Started: started, byName: map[string]*test{}, limits: map[string]*limits{}, kinds: map[string]bool{}}
}

// Record takes a record.
func (p *Page) Record(r *verdict.Record) {
	for i := range r.Verdict.Margins {
		p.margin(&r.Verdict.Margins[i])
	}
	if r.Verdict.Word.IsFinding() && len(p.first) < mostKinds {
		kind := strings.Join([]string{r.Test, r.Candidate, string(r.Verdict.Word), string(r.Verdict.Kind)}, "\x00")
		if !p.kinds[kind] {
			p.kinds[kind] = true
			p.first = append(p.first, r)
		}
	}
	c := Case{
		Test: r.Test, Index: r.Index, Candidate: r.Candidate, Word: r.Verdict.Word, Worst: float64(r.Verdict.Worst), Took: r.Reference.Elapsed + r.Outcome.Elapsed, Reason: r.Verdict.Reason,
	}
	if r.Program != nil && p.shows(c.Word) {
		c.ID, c.Operators = r.Program.ID(), report.Operators(r.Program)
		for i := range r.Program.Inputs {
			c.DTypes = append(c.DTypes, r.Program.Inputs[i].DType.String())
		}
	}
	p.Case(&c)
}

// Case is what a page says of a case, whose program and tensors need not be at hand.
type Case struct {
	Test, ID, Candidate string
	Index               int
	Word                verdict.Word
	Worst               float64
	Took                time.Duration
	Operators, DTypes   []string
	Reason              string
}

// Case takes a case.
func (p *Page) Case(c *Case) {
	t := p.test(c.Test)
	t.cases++
	t.words[c.Word]++
	t.took += c.Took
	if c.Word == verdict.Aligned && c.Worst > t.worst {
		t.worst = c.Worst
	}
	if !p.shows(c.Word) {
		p.dropped++
		return
	}
	p.cases = append(p.cases, p.row(c))
}

// shows reports whether a case of a verdict has a row.
func (p *Page) shows(w verdict.Word) bool { return len(p.cases) < mostCases || w != verdict.Aligned }

func (p *Page) test(name string) *test {
	if p.byName[name] == nil {
		p.byName[name] = &test{name: name, words: map[verdict.Word]int{}}
		p.tests = append(p.tests, p.byName[name])
	}
	return p.byName[name]
}

func (p *Page) row(c *Case) row {
	out := row{
		test: slices.Index(p.tests, p.byName[c.Test]), index: c.Index, id: c.ID, word: p.words.of(string(c.Word)), worst: c.Worst, took: c.Took, candidate: p.shown.of(c.Candidate), reason: -1,
	}
	if n := len(p.tests); n > 0 && p.tests[n-1].name == c.Test {
		out.test = n - 1
	}
	for _, name := range c.Operators {
		out.operators = append(out.operators, p.shown.of(name))
	}
	for _, name := range c.DTypes {
		if d := p.shown.of(name); !slices.Contains(out.part, d) {
			out.part = append(out.part, d)
		}
	}
	if c.Word != verdict.Aligned {
		most := 120
		if len(p.shown.list) > fewReasons {
			most = 40
		}
		out.reason = p.shown.of(cut(report.Plain(firstLine(c.Reason)), most))
	}
	return out
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// cut keeps so many characters of a text.
func cut(text string, most int) string {
	if r := []rune(text); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return text
}

// End takes the end of a test.
func (p *Page) End(e *verdict.End) {
	t := p.test(e.Test)
	if e.Weak != nil {
		t.weak = e.Weak.String()
	}
	if e.Err != nil {
		t.failed = report.ErrorText(e.Err)
	}
}

// Findings takes the findings.
func (p *Page) Findings(fs []*finding.Finding) {
	for _, f := range fs {
		p.blocks = append(p.blocks, report.NewBlock(f))
	}
}

// Block takes a finding of which a few texts are known.
func (p *Page) Block(b *report.Block) { p.blocks = append(p.blocks, b) }

// Summary takes the summary.
func (p *Page) Summary(s *report.Summary) { p.summary = s }

// limits are how near to their limits the comparisons of an operator came.
type limits struct {
	operator string
	bins     [limitBins]int
	equal    int
	worst    float64
	dtype    string // of the worst
}

// limitBins are those of error ÷ limit: eighths of a decade below 1, from 1e-4 on,
// and one for what is beyond.
const limitBins = 33

func (p *Page) margin(m *verdict.Margin) {
	name := verdict.OperatorName(m.Target)
	if name == "" {
		name = string(m.Part)
	}
	l := p.limits[name]
	if l == nil {
		l = &limits{operator: name}
		p.limits[name] = l
	}
	ratio := float64(m.Ratio)
	switch {
	case ratio == 0:
		l.equal++
		return
	case ratio > 1:
		l.bins[limitBins-1]++
	default:
		l.bins[min(limitBins-2, max(0, int(8*(4+math.Log10(ratio)))))]++
	}
	if ratio > l.worst {
		l.worst, l.dtype = ratio, m.DType
	}
}
