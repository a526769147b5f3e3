package script

import (
	"fmt"
	"slices"
	"strings"
)

// attempt makes a try outside of every function an if: importing never fails here.
func (p *prepasser) attempt(toks []token) bool {
	last := toks[len(toks)-1]
	if !last.is(":") {
		return false
	}
	text := ""
	switch toks[0].text {
	case "try", "finally":
		text = "if True:"
	case "except":
		text = "if False:"
	default:
		return false
	}
	p.replace(toks[0].start, last.end, text)
	return true
}

// exceptClause turns "except E as e:" into "if __except__("e", E):".
func (p *prepasser) exceptClause(toks []token) *scanError {
	rest, name := toks[1:len(toks)-1], ""
	if len(rest) > 0 && rest[0].is("*") {
		return lacks(rest[0], "except* is not supported in test files")
	}
	if as := topLevel(rest, "as"); as > 0 && as == len(rest)-2 {
		name = rest[as+1].text
		p.replace(rest[as].start, rest[as+1].end, "")
		rest = rest[:as]
	}
	p.replace(toks[0].start, toks[0].end, fmt.Sprintf("if %s(%s, ", fnExcept, quote(name)))
	p.put(toks[len(toks)-1].start, -1, ")")
	return p.expressions(rest)
}

// declaration turns "global x, y" into "__global__("x", "y")".
func (p *prepasser) declaration(toks []token) {
	var names []string
	for _, t := range toks[1:] {
		if t.kind == tokName {
			names = append(names, quote(t.text))
		}
	}
	p.replace(toks[0].start, toks[len(toks)-1].end, fmt.Sprintf("__%s__(%s)", toks[0].text, strings.Join(names, ", ")))
}

// yields turns "yield x" and "yield from x" into calls; the tokens start with
// it and end with its statement. It returns the number of further tokens used.
func (p *prepasser) yields(toks []token) int {
	fn, first, used := fnYield, toks[0], 0
	if len(toks) > 1 && toks[1].is("from") {
		fn, first.end, used = fnYieldFrom, toks[1].end, 1
	}
	end := operandEnd(toks, used+1, ")", "]", "}")
	if end == used+1 {
		p.replace(first.start, first.end, fn+"(None)")
		return used
	}
	tuple := topLevel(toks[used+1:end], ",") >= 0
	p.replace(first.start, first.end, fn+map[bool]string{true: "((", false: "("}[tuple])
	p.put(toks[end-1].end, -3, map[bool]string{true: "))", false: ")"}[tuple])
	return used
}

// let turns "x := e" into "__let__(x, e)"; the tokens start with the name and
// end with its statement.
func (p *prepasser) let(toks []token) {
	end := operandEnd(toks, 2, ")", "]", "}", ",", ":", "for", "if")
	p.put(toks[0].start, 2, fnLet+"(")
	p.replace(toks[1].start, toks[1].end, ",")
	p.put(toks[end-1].end, -2, ")")
}

// operandEnd returns the index of the first token from the given one on that
// is one of the ends, outside of brackets that open behind it; x if c else y
// goes on.
func operandEnd(toks []token, from int, ends ...string) int {
	depth := 0
	for i := from; i < len(toks); i++ {
		t := toks[i]
		if depth == 0 && t.is("if") && topLevel(toks[i:], "else") > 0 {
			continue
		}
		if depth == 0 && slices.ContainsFunc(ends, t.is) {
			return i
		}
		switch {
		case t.is("(") || t.is("[") || t.is("{"):
			depth++
		case t.is(")") || t.is("]") || t.is("}"):
			depth--
		}
	}
	return len(toks)
}
