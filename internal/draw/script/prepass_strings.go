package script

import (
	"strconv"
	"strings"
)

// strings rewrites a run of adjacent strings into one sum and returns their number.
func (p *prepasser) strings(toks []token) (int, *scanError) {
	n := 1
	for n < len(toks) && toks[n].kind == tokString {
		n++
	}
	if n > 1 {
		p.put(toks[0].start, 4, "(")
	}
	for i, t := range toks[:n] {
		if i > 0 {
			p.put(t.start, 5, "+ ")
		}
		if err := p.stringLiteral(t); err != nil {
			return 0, err
		}
	}
	if n > 1 {
		p.put(toks[n-1].end, -9, ")")
	}
	return n, nil
}

func (p *prepasser) stringLiteral(t token) *scanError {
	open := strings.IndexAny(t.text, `"'`)
	prefix := strings.ToLower(t.text[:open])
	switch {
	case strings.Contains(prefix, "f"):
		return p.fstring(t, open)
	case prefix == "u":
		p.replace(t.start, t.start+1, "")
	case !strings.Contains(prefix, "r") && hasOddEscape(t.text):
		p.replace(t.start, t.end, escaped(t.text))
	}
	return nil
}

// knownEscapes are what may follow a backslash in Starlark.
const knownEscapes = "abfnrtvxuU01234567\\'\"\n\r"

func hasOddEscape(s string) bool {
	for i := 0; i+1 < len(s); i++ {
		if s[i] == '\\' {
			if i++; !strings.Contains(knownEscapes, s[i:i+1]) {
				return true
			}
		}
	}
	return false
}

// escaped doubles the backslashes that Python keeps.
func escaped(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		b.WriteByte(s[i])
		if s[i] == '\\' && i+1 < len(s) {
			i++
			if !strings.Contains(knownEscapes, s[i:i+1]) {
				b.WriteByte('\\')
			}
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

// fstring turns f"a{x}" into ("a%s" % (x,)).
func (p *prepasser) fstring(t token, open int) *scanError {
	body := t.text[open:]
	width := 1
	if len(body) >= 6 && strings.HasPrefix(body, strings.Repeat(body[:1], 3)) {
		width = 3
	}
	inner := body[width : len(body)-width]
	var text, args strings.Builder
	for i := 0; i < len(inner); {
		switch c := inner[i]; {
		case strings.HasPrefix(inner[i:], "{{") || strings.HasPrefix(inner[i:], "}}"):
			text.WriteByte(c)
			i += 2
		case c == '%':
			text.WriteString("%%")
			i++
		case c == '{':
			field, n := replacementField(inner[i+1:])
			if n < 0 {
				return fail(t, "a { of the f-string has no }")
			}
			arg, err := field.argument()
			if err != nil {
				return lacks(t, "the expression %s is not supported in an f-string", strconv.Quote(field.expr))
			}
			text.WriteString(strings.ReplaceAll(field.label, "%", "%%") + "%" + field.verb())
			args.WriteString("(" + arg + "),")
			i += 1 + n
		case c == '}':
			return fail(t, "a single } in an f-string")
		default:
			text.WriteByte(c)
			i++
		}
	}
	prefix := strings.NewReplacer("f", "", "F", "").Replace(t.text[:open])
	quote := body[:width]
	out := "(" + prefix + quote + text.String() + quote
	if args.Len() > 0 {
		out += " % (" + args.String() + ")"
	} else {
		out += " % ()"
	}
	p.replace(t.start, t.end, strings.ReplaceAll(out, "\n", `\n`)+")")
	return nil
}

// field is a replacement field of an f-string.
type field struct {
	expr, conv, spec string
	label            string // "x=" of {x=}
}

// verb is how what argument returns is printed: what has a specification is text.
func (f field) verb() string {
	if f.spec != "" {
		return "s"
	}
	return f.conv
}

// argument returns the expression that is formatted.
func (f field) argument() (string, *scanError) {
	sub, err := prepass(f.expr)
	if err == nil && (strings.Contains(sub.text, "\n") || len(sub.marks) > 0) {
		err = &scanError{}
	}
	if err != nil || f.spec == "" {
		if err != nil {
			return "", err
		}
		return sub.text, nil
	}
	spec, err := prepass("f" + quote(f.spec))
	if err != nil || len(spec.marks) > 0 {
		return "", &scanError{}
	}
	value := "(" + sub.text + ")"
	if f.conv == "r" && f.label == "" { // {x=:3} formats x
		value = "repr" + value
	}
	return fnFormat + "(" + value + ", " + spec.text + ")", nil
}

// replacementField reads "expr}", "expr!r}" or "expr:spec}" and returns the
// number of bytes used, the brace included; -1 when there is no end.
func replacementField(s string) (f field, n int) {
	depth := 0
	var quoted byte
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quoted != 0:
			if c == quoted {
				quoted = 0
			}
		case c == '\'' || c == '"':
			quoted = c
		case c == '(' || c == '[' || c == '{':
			depth++
		case c == ')' || c == ']' || c == '}' && depth > 0:
			depth--
		case depth > 0:
		case c == '}':
			f.set(s[:i], "s")
			return f, i + 1
		case c == '!' && i+2 < len(s) && (s[i+2] == '}' || s[i+2] == ':') && (s[i+1] == 'r' || s[i+1] == 's'):
			if s[i+2] == '}' {
				f.set(s[:i], s[i+1:i+2])
				return f, i + 3
			}
			as := map[byte]string{'r': "repr", 's': "str"}[s[i+1]] // whose text is what is laid out
			f.set(as+"("+s[:i]+")", "s")
			return f.specified(s, i+3)
		case c == ':':
			f.set(s[:i], "s")
			return f.specified(s, i+1)
		}
	}
	return f, -1
}

func (f *field) set(expr, conv string) {
	f.expr, f.conv = expr, conv
	if name, ok := strings.CutSuffix(strings.TrimSpace(expr), "="); ok && !strings.HasSuffix(name, "=") && !strings.HasSuffix(name, "!") && !strings.HasSuffix(name, "<") && !strings.HasSuffix(name, ">") {
		f.label, f.expr, f.conv = expr, name, "r"
	}
}

func (f field) specified(s string, from int) (field, int) {
	depth := 0
	for i := from; i < len(s); i++ {
		switch s[i] {
		case '{':
			depth++
		case '}':
			if depth == 0 {
				f.spec = s[from:i]
				return f, i + 1
			}
			depth--
		}
	}
	return f, -1
}
