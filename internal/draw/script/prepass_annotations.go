package script

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// blankAnnotations removes the annotations of a def's parameters and result, and the mark
// of those that have no names for callers.
func (p *prepasser) blankAnnotations(toks []token) {
	depth := 0
	for i := 0; i < len(toks)-1; i++ {
		t := toks[i]
		switch {
		case t.is("(") || t.is("[") || t.is("{"):
			depth++
		case t.is(")") || t.is("]") || t.is("}"):
			depth--
		case t.is("->") && depth == 0:
			p.replace(t.start, toks[len(toks)-2].end, "")
			return
		case t.is(":") && depth == 1 && isParameter(toks[:i]):
			end := annotationEnd(toks[i:])
			p.replace(t.start, toks[i+end-1].end, "")
			i += end - 1
		case t.is("/") && depth == 1 && toks[i-1].is(","):
			p.replace(toks[i-1].start, t.end, "")
		}
	}
}

// isParameter reports whether the last token is a parameter's name.
func isParameter(before []token) bool {
	n := len(before)
	return n >= 2 && before[n-1].kind == tokName && (before[n-2].is("(") || before[n-2].is(",") || before[n-2].is("*") || before[n-2].is("**"))
}

// annotationEnd returns the number of tokens from the colon up to the comma,
// "=" or bracket that ends the annotation.
func annotationEnd(toks []token) int {
	depth := 0
	for i, t := range toks {
		switch {
		case depth == 0 && (t.is(",") || t.is("=") || t.is(")")):
			return i
		case t.is("(") || t.is("[") || t.is("{"):
			depth++
		case t.is(")") || t.is("]") || t.is("}"):
			depth--
		}
	}
	return len(toks)
}

// targetEnd is the number of tokens of the name, attribute or item that a statement
// begins with.
func targetEnd(toks []token) int {
	i := 1
	for i < len(toks) {
		switch {
		case toks[i].is(".") && i+1 < len(toks):
			i += 2
		case toks[i].is("["):
			for depth := 0; i < len(toks); {
				if toks[i].is("[") {
					depth++
				} else if toks[i].is("]") {
					depth--
				}
				if i++; depth == 0 {
					break
				}
			}
		default:
			return i
		}
	}
	return i
}

// blankVariable removes the annotation of "x: int = 3", whose colon is at a place, and
// returns what is left; nil where that is nothing. The body of a class notes it.
func (p *prepasser) blankVariable(toks []token, colon int) []token {
	eq, end := topLevel(toks, "="), len(toks)
	if eq >= 0 {
		end = eq
	}
	note := ""
	if colon == 1 && p.inClassBody() {
		text := p.src[toks[colon].end:toks[end-1].end]
		note = fmt.Sprintf("%s(%q, %q)", fnAnnotated, toks[0].text, strings.Join(strings.Fields(text), " "))
	}
	if eq < 0 {
		p.replace(toks[0].start, toks[len(toks)-1].end, cmp.Or(note, "pass"))
		return nil
	}
	if note != "" {
		p.put(toks[0].start, 100, note+"; ")
	}
	p.replace(toks[colon].start, toks[eq-1].end, "")
	return slices.Concat(toks[:colon], toks[eq:])
}

// inClassBody reports whether the line stands in the body of a class itself.
func (p *prepasser) inClassBody() bool {
	indent := p.lines[p.line].indent
	for i := p.line - 1; i >= 0; i-- {
		if l := p.lines[i]; l.indent < indent && len(l.toks) > 0 {
			return l.toks[0].is("class")
		}
	}
	return false
}
