package script

import (
	"fmt"
	"slices"
	"strings"
)

// A construct that test files cannot run must not break the file: the body of
// the function that holds it becomes one call of the engine, which reports the
// construct when a test gets there. What stands outside of every function is
// dropped, with a note.

// logical is one logical line of the source.
type logical struct {
	toks   []token
	indent int // of its first token, in bytes
	def    int // the line of the outermost def around; -1 for none
}

// lacks is a scanError for Python that test files cannot run.
func lacks(t token, format string, args ...any) *scanError {
	return &scanError{t.start, fmt.Sprintf(format, args...), true}
}

// split cuts the tokens into logical lines.
func (p *prepasser) split() {
	var around []int // lines that may have this one in their block, by rising indent
	for at := 0; at < len(p.toks) && p.toks[at].kind != tokEOF; {
		end := at
		for p.toks[end].kind != tokNewline {
			end++
		}
		if end > at {
			start := p.toks[at].start
			l := logical{p.toks[at:end], start - (strings.LastIndexByte(p.src[:start], '\n') + 1), -1}
			for len(around) > 0 && p.lines[around[len(around)-1]].indent >= l.indent {
				around = around[:len(around)-1]
			}
			if n := len(around); n > 0 {
				outer := around[n-1]
				l.def = p.lines[outer].def
				if first := p.lines[outer].toks[0]; l.def < 0 && (first.is("def") || first.is("async")) {
					l.def = outer
				}
			}
			around = append(around, len(p.lines))
			p.lines = append(p.lines, l)
		}
		at = end + 1
	}
}

// block returns the last line of the block that a line begins: those indented
// deeper, and with clauses those that go on with else, except and the like.
func (p *prepasser) block(line int, clauses bool) int {
	end := line
	for i := line + 1; i < len(p.lines); i++ {
		l := p.lines[i]
		if l.indent < p.lines[line].indent || l.indent == p.lines[line].indent && !(clauses && continues(l.toks[0])) {
			break
		}
		end = i
	}
	return end
}

func continues(t token) bool {
	return t.is("else") || t.is("elif") || t.is("except") || t.is("finally")
}

// poison replaces what cannot run, because of an error in a line, and returns
// the line after it.
func (p *prepasser) poison(line int, err *scanError) int {
	at := pointAt(p.src, err.at)
	fn := fnDropped
	from, end := p.lines[line].toks[0], p.block(line, true)
	def := p.lines[line].def
	if l := p.lines[line].toks; def < 0 && l[0].is("def") && headerColon(l) >= 0 && headerColon(l) < len(l)-1 {
		def = line
	}
	if def >= 0 {
		fn = fnUnsupported
		end = p.block(def, false)
		header := p.lines[def].toks
		if c := headerColon(header); c >= 0 && c < len(header)-1 {
			from = header[c+1]
		} else {
			from = p.lines[def+1].toks[0]
		}
	} else {
		p.opaque = true
	}
	last := p.lines[end].toks
	to := last[len(last)-1].end
	p.edits = slices.DeleteFunc(p.edits, func(e edit) bool { return e.start >= from.start && e.end <= to })
	p.replace(from.start, to, fmt.Sprintf("%s(%s, %d, %d)", fn, quote(err.msg), at.line, at.col))
	return end + 1
}

// quote returns a string literal that Starlark reads.
func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", `\r`).Replace(s) + `"`
}
