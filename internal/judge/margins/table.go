package margins

import (
	"cmp"
	"fmt"
	"slices"

	"plumb/backend"
	"plumb/internal/judge/compare"
	"plumb/op"
)

// Table sums up margins by operator, dtype and part. Its size depends on the
// number of such groups, not on that of the margins.
type Table struct {
	groups map[group]*tally
	count  int
}

type group struct {
	op, dtype string
	part      backend.Part
}

type tally struct {
	hist
	at Place // of the largest ratio, the first by its names; of none above 0, nothing
	// The classes of the comparisons with an error and of those without. Where
	// all bits agree, the judge need not know the class that would have held.
	erring, clean classes
}

// classes are sorted, and no more than it takes to know that they are mixed.
type classes []op.Class

const maxClasses = 2

func (c *classes) add(class op.Class) {
	at, found := slices.BinarySearch(*c, class)
	if found || at == maxClasses {
		return
	}
	*c = slices.Insert(*c, at, class)
	*c = (*c)[:min(len(*c), maxClasses)]
}

// Mark judges the limit of a row.
type Mark string

// The marks, in the order in which rows are shown.
const (
	// Over: a comparison exceeded the limit.
	Over Mark = "over"
	// Thin: 99 % of the comparisons do not keep within half of the limit, or
	// one came nearer than 0.8 of it. A bad day's rounding may exceed it.
	Thin Mark = "thin"
	// Wide: of 100 comparisons or more, none used a hundredth of the limit. A
	// bug of that size would pass. Exact comparisons are never wide.
	Wide Mark = "wide"
	None Mark = ""
)

const (
	thin99  = 0.5
	thinMax = 0.8
	wideMax = 0.01
	enough  = 100 // comparisons to say that a limit is wide
)

// Row is the summary of one group. The quantiles are at most 3 % too large
// where the ratios spread little and 25 % where they spread much, never too
// small.
type Row struct {
	Op    string       `json:"op"`
	DType string       `json:"dtype"`
	Part  backend.Part `json:"part"`
	// Class is the class of the comparisons that showed an error; "mixed" for
	// several. Without errors it is the one that the comparisons name.
	Class op.Class       `json:"class"`
	Count int            `json:"count"`
	P50   compare.Number `json:"p50"` // of observed error ÷ limit
	P99   compare.Number `json:"p99"`
	Max   compare.Number `json:"max"`
	Over  int            `json:"over"`         // comparisons that exceed the limit
	At    *Place         `json:"at,omitempty"` // the comparison with the largest error; nil without any
	Mark  Mark           `json:"mark,omitempty"`
	// Advice is set by Suggest.
	Advice *Advice `json:"advice,omitempty"`
}

// Add counts a margin. The error says that there are more groups than any run
// has, or that a name is too long.
func (t *Table) Add(m *Margin) error {
	h, err := t.group(group{m.Op, m.DType, m.Part})
	if err != nil {
		return err
	}
	ratio := float64(m.Ratio)
	if ratio > 0 {
		h.erring.add(m.Class)
		h.reach(ratio, &m.At)
	} else {
		h.clean.add(m.Class)
	}
	h.add(ratio)
	t.count++
	return nil
}

// group returns the tally of g, which it makes where that is missing.
func (t *Table) group(g group) (*tally, error) {
	if h := t.groups[g]; h != nil {
		return h, nil
	}
	switch {
	case len(t.groups) == maxGroups:
		return nil, fmt.Errorf("more than %d kinds of comparisons", maxGroups)
	case max(len(g.op), len(g.dtype), len(g.part)) > maxText:
		return nil, fmt.Errorf("a name is longer than %d bytes", maxText)
	case t.groups == nil:
		t.groups = map[group]*tally{}
	}
	h := &tally{}
	t.groups[g] = h
	return h, nil
}

// reach notes where a ratio above 0 was seen; add or merge counts it afterwards.
func (t *tally) reach(ratio float64, at *Place) {
	if ratio > t.max || ratio == t.max && at.compare(&t.at) < 0 {
		t.at = *at
	}
}

func (t *tally) merge(o *tally) {
	if o.max > 0 {
		t.reach(o.max, &o.at)
	}
	for _, c := range o.erring {
		t.erring.add(c)
	}
	for _, c := range o.clean {
		t.clean.add(c)
	}
	t.hist.merge(&o.hist)
}

// Mixed stands for several classes.
const Mixed op.Class = "mixed"

func (t *tally) class() op.Class {
	classes := t.erring
	if len(classes) == 0 {
		classes = t.clean
	}
	if len(classes) > 1 {
		return Mixed
	}
	return classes[0]
}

// Count returns the number of margins added.
func (t *Table) Count() int { return t.count }

// Rows returns the summaries: those over the limit first, then thin margins,
// wide limits and the rest, each by operator, dtype and part.
func (t *Table) Rows() []Row {
	rows := make([]Row, 0, len(t.groups))
	for g, h := range t.groups {
		r := Row{
			Op: g.op, DType: g.dtype, Part: g.part, Class: h.class(), Count: h.count, Over: h.over,
			P50: compare.Number(h.quantile(0.5)), P99: compare.Number(h.quantile(0.99)), Max: compare.Number(h.max),
		}
		if h.max > 0 {
			r.At = &h.at
		}
		r.Mark = r.mark()
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(a.Mark.rank(), b.Mark.rank()), cmp.Compare(a.Op, b.Op), cmp.Compare(a.DType, b.DType),
			cmp.Compare(a.Part, b.Part))
	})
	return rows
}

func (r *Row) mark() Mark {
	switch {
	case r.Over > 0:
		return Over
	case r.P99 > thin99 || r.Max > thinMax:
		return Thin
	case r.Max < wideMax && r.Count >= enough && r.Class != op.Exact:
		return Wide
	}
	return None
}

func (m Mark) rank() int { return slices.Index([]Mark{Over, Thin, Wide, None}, m) }
