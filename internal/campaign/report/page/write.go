package page

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"plumb/internal/campaign/report"
	"plumb/internal/campaign/report/picture"
	"plumb/internal/judge/verdict"
	"plumb/tensor"
)

//go:embed page.html
var pageHTML string

//go:embed page.css
var pageCSS string

//go:embed page.js
var pageJS string

var layout = template.Must(template.New("page").Parse(pageHTML))

// hash is how a policy names the only script or style that may act.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// view is what the layout shows.
type view struct {
	Title, Policy, Counts, Verdict string
	Good, Covered                  bool
	Sections                       []Section
	Style                          template.CSS
	Script                         template.JS
	Data                           template.JS
	Started                        string
	Facts                          [][2]string
	Environment                    [][2]string
	Findings                       []*card
	More                           int
	Errors                         []string
	Subjects                       []subject
	Limits                         []limitRow
	Dropped                        int
}

// card is a finding on the page.
type card struct {
	*report.Block
	Anchor   string
	Source   template.HTML
	Text     string // what is copied
	Words    string
	Shape    string
	Strips   []strip
	Heats    []strip
	MoreHeat int
	Charts   []strip
	Places   []picture.Place
	Elements []report.Element
	OfDrawn  bool
}

// strip is a picture with what it is of.
type strip struct {
	Name string
	SVG  template.HTML
}

// subject is a candidate's row.
type subject struct {
	Name  string
	Words [][2]string
	Cases int
	Share string
}

// limitRow is an operator's distribution.
type limitRow struct {
	Operator, Worst, DType string
	Count, Equal           int
	SVG                    template.HTML
}

// Write writes the page.
func (p *Page) Write(w io.Writer) error {
	data, err := p.data()
	if err != nil {
		return err
	}
	s := p.summary
	if s == nil {
		s = report.NewSummary()
	}
	v := &view{
		Title: report.Plain(p.Title), Counts: s.Counts(), Verdict: "aligned", Data: template.JS(data),
		Style: template.CSS(pageCSS), Script: template.JS(pageJS),
		Policy:  "default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:; style-src " + hash(pageCSS) + "; script-src " + hash(pageJS),
		Started: p.Started.UTC().Format("2006-01-02 15:04:05 UTC"), Environment: plainPairs(p.Environment),
		Facts: facts(s), Covered: s.Met.String() != "", Subjects: p.subjects(), Limits: p.limitRows(), Dropped: p.dropped,
	}
	switch {
	case s.Findings() > 0:
		v.Verdict = "findings"
	case len(s.Errors) > 0:
		v.Verdict = "errors"
	case s.Judged() == 0:
		v.Verdict = "nothing judged"
	}
	v.Good = v.Verdict == "aligned"
	if p.Verdict != "" {
		v.Verdict, v.Good = report.Plain(p.Verdict), !p.Bad
	}
	for _, one := range p.Sections {
		v.Sections = append(v.Sections, one.plain())
	}
	for _, err := range s.Errors {
		v.Errors = append(v.Errors, report.Plain(report.ErrorText(err)))
	}
	blocks := p.blocks
	if len(blocks) == 0 {
		for _, r := range p.first {
			blocks = append(blocks, report.BlockOf(r))
		}
	}
	for i, b := range blocks {
		v.Findings = append(v.Findings, newCard(b, i))
	}
	return layout.Execute(w, v)
}

// plain is a section whose texts are safe to show.
func (s Section) plain() Section {
	out := Section{report.Plain(s.Title), report.Plain(s.Intro), plainAll(s.Head), nil}
	for _, row := range s.Rows {
		out.Rows = append(out.Rows, plainAll(row))
	}
	return out
}

func plainPairs(pairs [][2]string) [][2]string {
	out := make([][2]string, len(pairs))
	for i, p := range pairs {
		out[i] = [2]string{report.Plain(p[0]), report.Plain(p[1])}
	}
	return out
}

// facts are the lines of the summary.
func facts(s *report.Summary) [][2]string {
	all := [][2]string{
		{"judged", fmt.Sprintf("%d of %d cases", s.Judged(), s.Cases())},
		{"tests", fmt.Sprint(s.Tests)},
		{"subjects", fmt.Sprintf("%s against %s", strings.Join(s.Candidates, ", "), s.Reference)},
		{"seed", fmt.Sprint(s.Seed)},
		{"time", s.Elapsed.Round(10 * time.Millisecond).String()},
		{"comparisons", fmt.Sprint(s.Compared)},
		{"covered", s.Met.String()},
	}
	if s.Worst > 0 {
		all = append(all, [2]string{"nearest to its limit", fmt.Sprintf("%.2g at %s", s.Worst, s.WorstAt)})
	}
	if s.Weak > 0 {
		all = append(all, [2]string{"weak tests", fmt.Sprint(s.Weak)})
	}
	for i, why := range s.Reasons() {
		if i == 5 {
			break
		}
		all = append(all, [2]string{"unsupported", fmt.Sprintf("%d × %s", s.Lacking[why], why)})
	}
	return plainPairs(all)
}

// mostHeats is how many slices of a finding are drawn.
const mostHeats = 6

func newCard(b *report.Block, i int) *card {
	for _, text := range []*string{&b.Reason, &b.Because, &b.Limit, &b.Operator, &b.Where} {
		*text = report.Plain(*text)
	}
	b.Notes = plainPairs(b.Notes)
	text := report.Plain(strings.Join(b.Program, "\n"))
	c := &card{Block: b, Anchor: fmt.Sprintf("finding-%d", i+1), Text: text, Source: highlight(text), Elements: b.Elements, OfDrawn: b.Drawn}
	f := b.Picture
	if f == nil {
		return c
	}
	c.Words, c.Shape = f.Words(), tensor.ShapeString(f.Shape)
	for d, n := range f.Shape {
		if n > 1 {
			c.Strips = append(c.Strips, strip{fmt.Sprintf("dim %d, size %d", d, n), template.HTML(f.Strip(d))})
		}
	}
	all := f.Slices()
	if len(f.Shape) > 1 {
		for _, s := range all[:min(len(all), mostHeats)] {
			name := fmt.Sprintf("%d of %d beyond the limit", s.Over, s.Rows*s.Columns)
			if len(s.Fixed) > 0 {
				name = "at " + tensor.ShapeString(s.Fixed) + ": " + name
			}
			c.Heats = append(c.Heats, strip{name, template.HTML(f.Heat(s))})
		}
		c.MoreHeat = len(all) - len(c.Heats)
	}
	c.Charts = append(c.Charts, strip{"elements by error in units in the last place", template.HTML(f.Histogram())})
	if scatter := f.Scatter(); scatter != "" {
		c.Charts = append(c.Charts, strip{"got (up) against expected (right)", template.HTML(scatter)})
	}
	c.Places = f.Unlike(12)
	return c
}

// token finds what is painted in a program's text.
var token = regexp.MustCompile(`("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(#[^\n]*)|\b(True|False|None|import|from)\b|(-?\b[0-9][0-9.e+-]*\b)|([A-Za-z_][A-Za-z0-9_.]*)(?:\()`)

// highlight paints a program's text.
func highlight(text string) template.HTML {
	classes := []string{"", "s", "c", "k", "n", "f"}
	var b strings.Builder
	last := 0
	for _, m := range token.FindAllStringSubmatchIndex(text, -1) {
		for g := 1; g < len(classes); g++ {
			from, to := m[2*g], m[2*g+1]
			if from < 0 {
				continue
			}
			fmt.Fprintf(&b, `%s<span class="%s">%s</span>`, template.HTMLEscapeString(text[last:from]), classes[g], template.HTMLEscapeString(text[from:to]))
			last = to
		}
	}
	b.WriteString(template.HTMLEscapeString(text[last:]))
	return template.HTML(b.String())
}

// subjects are the candidates side by side.
func (p *Page) subjects() []subject {
	count := map[string]map[string]int{}
	for i := range p.cases {
		c := &p.cases[i]
		name := p.shown.list[c.candidate]
		if count[name] == nil {
			count[name] = map[string]int{}
		}
		count[name][p.words.list[c.word]]++
	}
	var out []subject
	for _, name := range slices.Sorted(maps.Keys(count)) {
		s := subject{Name: report.Plain(name)}
		for _, w := range slices.Sorted(maps.Keys(count[name])) {
			s.Words = append(s.Words, [2]string{w, fmt.Sprint(count[name][w])})
			s.Cases += count[name][w]
		}
		s.Share = fmt.Sprintf("%.1f %%", 100*float64(count[name][string(verdict.Aligned)])/float64(max(s.Cases, 1)))
		out = append(out, s)
	}
	return out
}

// mostLimits bounds the operators whose distribution is drawn.
const mostLimits = 300

func (p *Page) limitRows() []limitRow {
	all := slices.SortedFunc(maps.Values(p.limits), func(a, b *limits) int {
		return cmp.Or(-cmp.Compare(a.worst, b.worst), strings.Compare(a.operator, b.operator))
	})
	var out []limitRow
	for _, l := range all[:min(len(all), mostLimits)] {
		n := l.equal
		for _, k := range l.bins {
			n += k
		}
		worst := "equal"
		switch {
		case l.worst > 1:
			worst = "beyond"
		case l.worst > 0:
			worst = fmt.Sprintf("%.2g", l.worst)
		}
		out = append(out, limitRow{report.Plain(l.operator), worst, l.dtype, n, l.equal, template.HTML(l.draw())})
	}
	return out
}

// draw is a distribution as one path.
func (l *limits) draw() string {
	most := 1
	for _, n := range l.bins {
		most = max(most, n)
	}
	var b strings.Builder
	for i, n := range l.bins {
		if n > 0 {
			fmt.Fprintf(&b, "M%d 20v-%dh5V20z", i*6, max(2, int(20*math.Log1p(float64(n))/math.Log1p(float64(most)))))
		}
	}
	return fmt.Sprintf(`<svg aria-hidden="true" viewBox="0 0 198 21" width="198" height="21"><path class="rule" d="M192 0V21"/><path class="bar" d="%s"/></svg>`, b.String())
}

// data is what the script shows: tests, cases and cells, as rows of numbers.
func (p *Page) data() ([]byte, error) {
	d := map[string]any{"words": p.words.list, "texts": plainAll(p.shown.list)}
	var tests, cases, cells [][]any
	for _, t := range p.tests {
		tests = append(tests, []any{report.Plain(t.name), t.cases, counts(t.words), round(t.worst), micros(t.took), cut(report.Plain(t.weak), 300), cut(report.Plain(t.failed), 300)})
	}
	for i := range p.cases {
		c := &p.cases[i]
		cases = append(cases, []any{c.test, c.index, c.id, c.word, round(c.worst), micros(c.took), c.candidate, c.reason, c.operators, c.part})
	}
	if p.summary != nil {
		for _, c := range p.summary.Met.Cells() {
			cells = append(cells, []any{report.Plain(c.Operator), c.DType, cmp.Or(c.Layout, "none"), c.Mode, counts(c.Words)})
		}
	}
	d["tests"], d["cases"], d["cells"], d["dropped"] = tests, cases, cells, p.dropped
	var b bytes.Buffer
	err := json.NewEncoder(&b).Encode(d)
	return b.Bytes(), err
}

func plainAll(texts []string) []string {
	out := make([]string, len(texts))
	for i, t := range texts {
		out[i] = report.Plain(t)
	}
	return out
}

// counts are aligned, failed, and other cases.
func counts(words map[verdict.Word]int) []int {
	var out [3]int
	for w, n := range words {
		switch {
		case w == verdict.Aligned:
			out[0] += n
		case w.IsFinding():
			out[1] += n
		default:
			out[2] += n
		}
	}
	return out[:]
}

// round keeps three digits; what is not finite is a text.
func round(x float64) any {
	if math.IsInf(x, 0) || math.IsNaN(x) {
		return "inf"
	}
	return json.Number(fmt.Sprintf("%.3g", x))
}

func micros(d time.Duration) int64 { return d.Microseconds() }
