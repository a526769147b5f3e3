package pages

import (
	"cmp"
	"fmt"
	"html/template"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"plumb/backend"
	"plumb/internal/campaign/report"
	"plumb/internal/campaign/store"
)

// functions are those that the templates call.
var functions = template.FuncMap{
	"time":  func(t time.Time) string { return t.Format("2006-01-02 15:04") },
	"ms":    func(d time.Duration) string { return fmt.Sprintf("%.3f", float64(d.Microseconds())/1000) },
	"short": func(text string) string { return backend.Printable(firstLine(text), 300) },
	"number": func(x float64) string {
		if math.IsNaN(x) {
			return ""
		}
		return fmt.Sprintf("%.3g", x)
	},
	"ended":    (*store.Run).End,
	"bundle":   kindOf,
	"progress": progress,
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// progress says how far a run is.
func progress(r *store.Run) string {
	done := r.Cases()
	if done == 0 || r.Elapsed == 0 {
		return "no verdicts yet"
	}
	if r.Doing != store.Judging {
		return fmt.Sprintf("%d verdicts", done)
	}
	rate := float64(done) / r.Elapsed
	if r.Wanted <= done {
		return fmt.Sprintf("%d verdicts, %.0f a second", done, rate)
	}
	left := time.Duration(float64(r.Wanted-done) / rate * float64(time.Second)).Round(time.Second)
	return fmt.Sprintf("%d of about %d verdicts, %.0f a second, about %s left", done, r.Wanted, rate, left)
}

// group is a row: the totals of a name and a subject, of one run.
type group struct {
	Run           int64
	Name, Subject string
	store.Counts
	Worst   float64
	Seconds float64
	words   map[string]int
}

// Words are the verdicts with their numbers, the most frequent first.
func (g *group) Words() string {
	words := slices.SortedFunc(maps.Keys(g.words), func(a, b string) int {
		return cmp.Or(g.words[b]-g.words[a], strings.Compare(a, b))
	})
	for i, w := range words {
		words[i] = fmt.Sprintf("%d %s", g.words[w], cmp.Or(w, "left out"))
	}
	return strings.Join(words, ", ")
}

func (g *group) add(t *store.Total) {
	switch t.Outcome {
	case report.Passed:
		g.Passed += t.Cases
	case report.Failed:
		g.Failed += t.Cases
	case report.Unsupported:
		g.Unsupported += t.Cases
	case report.Skipped:
		g.Skipped += t.Cases
	default:
		g.Unrecorded += t.Cases
	}
	if !math.IsNaN(t.Worst) && !(t.Worst <= g.Worst) {
		g.Worst = t.Worst
	}
	g.Seconds += t.Elapsed.Seconds()
	g.words[t.Word] += t.Cases
}

// groups are rows in the order in which they come.
type groups struct {
	Label, Of string // Of is test or operator; "" for rows without a name
	Rows      []*group
	More      int    // rows that are left out
	Next      string // where they are
	at        map[group3]*group
}

type group3 struct {
	run           int64
	name, subject string
}

func (g *groups) add(t *store.Total) error {
	key := group3{t.Run, t.Name, t.Subject}
	row := g.at[key]
	if row == nil {
		if g.at == nil {
			g.at = map[group3]*group{}
		}
		row = &group{Run: t.Run, Name: t.Name, Subject: t.Subject, Worst: math.NaN(), words: map[string]int{}}
		g.at[key] = row
		g.Rows = append(g.Rows, row)
	}
	row.add(t)
	return nil
}

// part leaves so many rows from a place on; what follows is at a path.
func (g *groups) part(after, most int, path string) {
	if g.Rows = g.Rows[after:]; len(g.Rows) > most {
		g.Next = fmt.Sprintf("%s?after=%d", path, after+most)
		g.Rows, g.More = g.Rows[:most], len(g.Rows)-most
	}
}

// chart is a picture of bars over runs.
type chart struct {
	Title               string
	Width, Height, Base int
	Rects               []rect
	Marks               []mark
}

type rect struct {
	Class, X, Y, W, H string
	Says              string
}

type mark struct {
	X, Y int
	Says string
}

const (
	barWidth  = 14
	barRoom   = 20
	barHeight = 120
)

// bars draws a bar for each row, of parts with classes and sizes.
func bars(title string, rows []*group, parts func(*group) []part) chart {
	c := chart{Title: title, Width: max(200, barRoom*len(rows)+10), Height: barHeight + 20, Base: barHeight}
	largest := 0.0
	for _, r := range rows {
		sum := 0.0
		for _, p := range parts(r) {
			sum += p.size
		}
		largest = max(largest, sum)
	}
	if largest == 0 {
		return c
	}
	c.Title = fmt.Sprintf("%s, up to %.3g", title, largest)
	for i, r := range rows {
		y := float64(barHeight)
		for _, p := range parts(r) {
			h := p.size / largest * (barHeight - 4)
			y -= h
			c.Rects = append(c.Rects, rect{p.class, fmt.Sprint(5 + i*barRoom), fmt.Sprintf("%.2f", y), fmt.Sprint(barWidth), fmt.Sprintf("%.2f", h), fmt.Sprintf("run %d, %s: %s", r.Run, r.Subject, p.says)})
		}
		if i%5 == 0 {
			c.Marks = append(c.Marks, mark{5 + i*barRoom + barWidth/2, barHeight + 14, fmt.Sprint(r.Run)})
		}
	}
	return c
}

// part is a part of a bar.
type part struct {
	class string
	size  float64
	says  string
}

func outcomeParts(g *group) []part {
	other := g.Unsupported + g.Skipped + g.Unrecorded
	return []part{
		{"failed", float64(g.Failed), fmt.Sprintf("%d failed", g.Failed)},
		{"passed", float64(g.Passed), fmt.Sprintf("%d passed", g.Passed)},
		{"other", float64(other), fmt.Sprintf("%d not judged", other)},
	}
}

func worstParts(g *group) []part {
	if !(g.Worst > 0) {
		return nil
	}
	class := "passed"
	if g.Worst > 1 {
		class = "failed"
	}
	return []part{{class, min(g.Worst, 2), fmt.Sprintf("%.3g", g.Worst)}}
}

func timeParts(g *group) []part {
	cases := max(g.Cases(), 1)
	return []part{{"other", 1000 * g.Seconds / float64(cases), fmt.Sprintf("%.3g ms a case", 1000*g.Seconds/float64(cases))}}
}
