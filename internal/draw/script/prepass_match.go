package script

import (
	"fmt"
	"slices"
	"strings"
)

// isMatch reports whether a line is the header of a match statement: match is a name as
// any other elsewhere.
func isMatch(toks []token) bool {
	return toks[0].is("match") && headerColon(toks) > 1
}

// isCase reports whether the line is a case of the match statement around it.
func (p *prepasser) isCase(toks []token) bool {
	if !toks[0].is("case") || headerColon(toks) < 2 {
		return false
	}
	for i := p.line - 1; i >= 0; i-- {
		if l := p.lines[i]; l.indent < p.lines[p.line].indent {
			return isMatch(l.toks)
		}
	}
	return false
}

// matchStmt turns "match x:" into "if __match__(x):".
func (p *prepasser) matchStmt(toks []token) *scanError {
	subject, last := toks[1:len(toks)-1], toks[len(toks)-1]
	open, end := "(", ")"
	if topLevel(subject, ",") >= 0 {
		open, end = "((", "))"
	}
	p.replace(toks[0].start, toks[0].end, "if "+fnMatch+open)
	p.put(last.start, -1, end)
	return p.expressions(subject)
}

// caseClause turns "case P if g:" into "if __case__(P, ("x", "y"), g):", with the pattern
// as calls of __pattern__ and the names that it gives values.
func (p *prepasser) caseClause(toks []token) *scanError {
	if p.elifs++; p.elifs > maxElifs {
		return fail(toks[0], "the file has more than %d cases", maxElifs)
	}
	last := toks[len(toks)-1]
	given, guard := toks[1:len(toks)-1], []token(nil)
	if at := topLevel(given, "if"); at >= 0 {
		given, guard = given[:at], given[at+1:]
	}
	w := patternWriter{src: p.src}
	text := w.whole(given)
	if w.err != nil {
		return w.err
	}
	text = fmt.Sprintf("if %s(%s, (%s)", fnCase, text, strings.Join(w.names, ""))
	if guard == nil {
		p.replace(toks[0].start, last.start, text+")")
		return nil
	}
	p.replace(toks[0].start, guard[0].start, text+", ")
	p.put(last.start, -1, ")")
	return p.expressions(guard)
}

// patternWriter writes patterns as calls.
type patternWriter struct {
	src   string
	names []string // that get values, quoted, each with a comma
	err   *scanError
}

func (w *patternWriter) fail(t token) string {
	if w.err == nil {
		w.err = lacks(t, "this pattern is not supported in test files")
	}
	return ""
}

func (w *patternWriter) pattern(kind string, args ...string) string {
	return fmt.Sprintf("%s(%s)", fnPattern, strings.Join(append([]string{quote(kind)}, args...), ", "))
}

func (w *patternWriter) name(t token) string {
	if t.kind != tokName || keywords[t.text] {
		return w.fail(t)
	}
	if name := quote(t.text); t.text != "_" && !strings.Contains(strings.Join(w.names, ""), name) {
		w.names = append(w.names, name+",")
	}
	return quote(t.text)
}

// whole is a pattern of a case: "a, b" is a sequence there.
func (w *patternWriter) whole(toks []token) string {
	if topLevel(toks, ",") >= 0 {
		return w.pattern("sequence", w.items(toks)...)
	}
	return w.one(toks)
}

func (w *patternWriter) items(toks []token) []string {
	var out []string
	for _, item := range separated(toks, ",") {
		if item[0].is("*") && len(item) == 2 {
			out = append(out, w.pattern("star", w.name(item[1])))
		} else {
			out = append(out, w.one(item))
		}
	}
	return out
}

// one is a pattern with alternatives and a name.
func (w *patternWriter) one(toks []token) string {
	if as := topLevel(toks, "as"); as > 0 && as == len(toks)-2 {
		return w.pattern("as", w.one(toks[:as]), w.name(toks[as+1]))
	}
	ways := separated(toks, "|")
	if len(ways) == 1 {
		return w.closed(ways[0])
	}
	var out []string
	for _, way := range ways {
		out = append(out, w.closed(way))
	}
	return w.pattern("or", out...)
}

// closed is a pattern without alternatives.
func (w *patternWriter) closed(toks []token) string {
	first, last := toks[0], toks[len(toks)-1]
	inner := func() []token { return toks[1 : len(toks)-1] }
	switch {
	case len(toks) == 1 && first.kind == tokName && !constants[first.text]:
		return w.pattern("name", w.name(first))
	case first.is("[") && last.is("]"):
		return w.pattern("sequence", w.items(inner())...)
	case first.is("(") && last.is(")"):
		if len(toks) > 2 && topLevel(inner(), ",") < 0 {
			return w.one(inner())
		}
		return w.pattern("sequence", w.items(inner())...)
	case first.is("{") && last.is("}"):
		return w.mapping(inner())
	case first.kind == tokName && last.is(")"):
		return w.class(toks)
	case first.kind == tokString, first.kind == tokNumber, first.is("-"), first.kind == tokName:
		return w.pattern("value", w.src[first.start:last.end])
	}
	return w.fail(first)
}

func (w *patternWriter) mapping(toks []token) string {
	var out []string
	for _, item := range separated(toks, ",") {
		colon := topLevel(item, ":")
		switch {
		case item[0].is("**") && len(item) == 2:
			out = append(out, w.pattern("rest", w.name(item[1])))
		case colon > 0 && colon < len(item)-1:
			out = append(out, w.src[item[0].start:item[colon-1].end], w.one(item[colon+1:]))
		default:
			return w.fail(item[0])
		}
	}
	return w.pattern("mapping", out...)
}

func (w *patternWriter) class(toks []token) string {
	open := slices.IndexFunc(toks, func(t token) bool { return t.is("(") })
	out := []string{w.src[toks[0].start:toks[open-1].end]}
	for _, item := range separated(toks[open+1:len(toks)-1], ",") {
		if len(item) > 2 && item[1].is("=") {
			out = append(out, item[0].text+"="+w.one(item[2:]))
		} else {
			out = append(out, w.one(item))
		}
	}
	return w.pattern("class", out...)
}

// constants are the names that stand for one value each.
var constants = map[string]bool{"None": true, "True": true, "False": true}

// separated splits tokens outside of brackets; the last part may be empty, and is none.
func separated(toks []token, by string) [][]token {
	var out [][]token
	for len(toks) > 0 {
		n := topLevel(toks, by)
		if n < 0 {
			n = len(toks)
		}
		if n > 0 {
			out = append(out, toks[:n])
		}
		toks = toks[min(n+1, len(toks)):]
	}
	return out
}
