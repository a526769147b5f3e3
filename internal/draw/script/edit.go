package script

import (
	"cmp"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"
)

// edit replaces the bytes [start, end) of the source. Lines stay: the new text
// is followed by the line ends of the old.
type edit struct {
	start, end int
	text       string
	mark       mark
	// rank orders the insertions at one place: what closes an expression, from
	// the inside out, is negative; what opens one, from the outside in, positive.
	rank int
}

// mark says what an operator stood for before it was replaced by one that
// Starlark knows.
type mark uint8

const (
	noMark mark = iota
	markPow
	markMatmul
	markIs
)

// point is a position: line and column from 1, columns in characters.
type point struct{ line, col int32 }

// segment maps the columns of a changed line from outCol on to srcCol on; all
// to srcCol itself when fixed.
type segment struct {
	outCol, srcCol int32
	fixed          bool
}

// rewritten is a source after its edits.
type rewritten struct {
	text         string
	marks        map[point]mark
	segments     map[int32][]segment // by line
	opaque       bool                // something outside of every function was dropped
	stars        []string            // modules of which everything is imported
	imports      []string            // modules, and what may be one
	accelerators []int               // lines that name one
}

// source returns the position in the original text.
func (r *rewritten) source(p point) point {
	segs := r.segments[p.line]
	i := sort.Search(len(segs), func(i int) bool { return segs[i].outCol > p.col })
	if i == 0 {
		return p
	}
	s := segs[i-1]
	if s.fixed {
		return point{p.line, s.srcCol}
	}
	return point{p.line, s.srcCol + p.col - s.outCol}
}

// apply carries out the edits, which must not overlap.
func apply(src string, edits []edit) *rewritten {
	slices.SortStableFunc(edits, func(a, b edit) int { return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.rank, b.rank)) })
	w := &editWriter{src: src, out: point{1, 1}, in: point{1, 1}}
	w.marks, w.segments = map[point]mark{}, map[int32][]segment{}
	for _, e := range edits {
		if e.start < w.at {
			continue
		}
		w.copyTo(e.start)
		w.replace(e)
	}
	w.copyTo(len(src))
	w.text = w.b.String()
	return &w.rewritten
}

type editWriter struct {
	rewritten
	src     string
	b       strings.Builder
	at      int
	out, in point
}

func (w *editWriter) copyTo(end int) {
	text := w.src[w.at:end]
	w.b.WriteString(text)
	advance(&w.out, text)
	advance(&w.in, text)
	w.at = end
}

func (w *editWriter) replace(e edit) {
	if e.mark != noMark {
		w.marks[w.out] = e.mark
	}
	old := w.src[e.start:e.end]
	lines := strings.Count(old, "\n")
	w.segment(true)
	text := e.text + strings.Repeat("\n", lines)
	w.b.WriteString(text)
	advance(&w.out, text)
	advance(&w.in, old)
	w.segment(false)
	w.at = e.end
}

func (w *editWriter) segment(fixed bool) {
	w.segments[w.out.line] = append(w.segments[w.out.line], segment{w.out.col, w.in.col, fixed})
}

func advance(p *point, text string) {
	n := strings.Count(text, "\n")
	if n > 0 {
		p.line += int32(n)
		p.col = 1
		text = text[strings.LastIndexByte(text, '\n')+1:]
	}
	p.col += int32(utf8.RuneCountInString(text))
}

// pointAt returns the position of a byte offset.
func pointAt(src string, at int) point {
	p := point{1, 1}
	advance(&p, src[:min(at, len(src))])
	return p
}
