package script

import (
	"fmt"
	"regexp"
	"strings"

	"go.starlark.net/starlark"
)

// The module re, over Go's regexp: patterns that look around or back are not supported.

// regex is what re.compile gives.
type regex struct {
	text string
	re   *regexp.Regexp
}

func (p *regex) String() string        { return "re.compile(" + repr(starlark.String(p.text), 0) + ")" }
func (p *regex) Type() string          { return "Pattern" }
func (p *regex) Freeze()               {}
func (p *regex) Truth() starlark.Bool  { return true }
func (p *regex) Hash() (uint32, error) { return hashString(p.text) }
func (p *regex) AttrNames() []string {
	return []string{"findall", "finditer", "fullmatch", "match", "pattern", "search", "split", "sub"}
}

// regexFunctions are those of re that take a pattern, and its methods.
var regexFunctions = map[string]func(t *starlark.Thread, p *regex, a starlark.Tuple) (starlark.Value, error){
	"match": func(_ *starlark.Thread, p *regex, a starlark.Tuple) (starlark.Value, error) {
		return p.find(a, `\A(?:`, `)`)
	},
	"fullmatch": func(_ *starlark.Thread, p *regex, a starlark.Tuple) (starlark.Value, error) {
		return p.find(a, `\A(?:`, `)\z`)
	},
	"search": func(_ *starlark.Thread, p *regex, a starlark.Tuple) (starlark.Value, error) {
		return p.find(a, `(?:`, `)`)
	},
	"findall": findAll, "finditer": findEach, "split": splitBy, "sub": substitute,
}

// regexNames are those of the module re.
func regexNames() starlark.StringDict {
	names := starlark.StringDict{
		"compile": starlark.NewBuiltin("re.compile", func(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			return compilePattern(args, kwargs)
		}),
		"escape": builtin("re.escape", func(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
			if len(a) != 1 {
				return nil, fmt.Errorf("re.escape takes a string")
			}
			return starlark.String(regexp.QuoteMeta(str(a[0]))), nil
		}),
		"error": predeclared["ValueError"],
	}
	for _, flag := range []string{"IGNORECASE", "MULTILINE", "DOTALL", "I", "M", "S"} {
		names[flag] = starlark.MakeInt(map[byte]int{'I': 2, 'M': 8, 'D': 16, 'S': 16}[flag[0]])
	}
	for name, f := range regexFunctions {
		names[name] = starlark.NewBuiltin("re."+name, func(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			if len(args) < 2 {
				return nil, fmt.Errorf("re.%s takes a pattern and a string", name)
			}
			p, err := compilePattern(args[:1], kwargs)
			if err != nil {
				return nil, err
			}
			return f(t, p, args[1:])
		})
	}
	return names
}

func compilePattern(args starlark.Tuple, kwargs []starlark.Tuple) (*regex, error) {
	a := arguments{"re.compile", []string{"pattern", "flags"}, []starlark.Value{nil, starlark.MakeInt(0)}}
	if err := a.rebind(args, kwargs); err != nil {
		return nil, err
	}
	if p, ok := a.get("pattern").(*regex); ok {
		return p, nil
	}
	text, ok := starlark.AsString(a.get("pattern"))
	if !ok {
		return nil, fmt.Errorf("re.compile takes a string")
	}
	flags, err := starlark.AsInt32(a.get("flags"))
	if err != nil {
		return nil, err
	}
	prefix := ""
	for _, f := range []struct {
		bit  int
		flag string
	}{{2, "i"}, {8, "m"}, {16, "s"}} {
		if flags&f.bit != 0 {
			prefix += "(?" + f.flag + ")"
		}
	}
	re, err := regexp.Compile(prefix + strings.ReplaceAll(text, `\Z`, `\z`))
	if err != nil {
		return nil, lack("the regular expression %s is not supported in test files: %v", repr(starlark.String(text), 0), err)
	}
	return &regex{text, re}, nil
}

// Attr returns a method.
func (p *regex) Attr(name string) (starlark.Value, error) {
	if name == "pattern" {
		return starlark.String(p.text), nil
	}
	f := regexFunctions[name]
	if f == nil {
		return nil, nil
	}
	return builtin(name, func(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
		if len(a) == 0 {
			return nil, fmt.Errorf("%s takes a string", name)
		}
		return f(t, p, a)
	}), nil
}

// subject is the text that is looked through.
func subject(a starlark.Tuple) (string, error) {
	s, ok := starlark.AsString(a[len(a)-1])
	if !ok {
		return "", fmt.Errorf("expected string or bytes-like object")
	}
	for i := range len(s) {
		if s[i] >= 0x80 {
			return "", lack("regular expressions over characters beyond ASCII are not supported in test files")
		}
	}
	return s, nil
}

func (p *regex) find(a starlark.Tuple, before, behind string) (starlark.Value, error) {
	s, err := subject(a[:1])
	if err != nil {
		return nil, err
	}
	re, err := regexp.Compile(before + p.re.String() + behind)
	if err != nil {
		return nil, err
	}
	at := re.FindStringSubmatchIndex(s)
	if at == nil {
		return starlark.None, nil
	}
	return &occurrence{p, s, at}, nil
}

// matches are all that do not overlap.
func (p *regex) matches(a starlark.Tuple) ([]*occurrence, error) {
	s, err := subject(a[:1])
	if err != nil {
		return nil, err
	}
	var out []*occurrence
	for _, at := range p.re.FindAllStringSubmatchIndex(s, -1) {
		out = append(out, &occurrence{p, s, at})
	}
	return out, nil
}

func findAll(_ *starlark.Thread, p *regex, a starlark.Tuple) (starlark.Value, error) {
	all, err := p.matches(a)
	out := make([]starlark.Value, len(all))
	for i, m := range all {
		switch groups := m.groups(starlark.String("")); len(groups) {
		case 0:
			out[i] = m.group(0)
		case 1:
			out[i] = groups[0]
		default:
			out[i] = groups
		}
	}
	return starlark.NewList(out), err
}

func findEach(_ *starlark.Thread, p *regex, a starlark.Tuple) (starlark.Value, error) {
	all, err := p.matches(a)
	out := make([]starlark.Value, len(all))
	for i, m := range all {
		out[i] = m
	}
	return &iterator{rest: out}, err
}

func splitBy(_ *starlark.Thread, p *regex, a starlark.Tuple) (starlark.Value, error) {
	all, err := p.matches(a)
	if err != nil {
		return nil, err
	}
	s, from := str(a[0]), 0
	var out []starlark.Value
	for _, m := range all {
		out = append(out, starlark.String(s[from:m.at[0]]))
		out = append(out, m.groups(starlark.None)...)
		from = m.at[1]
	}
	return starlark.NewList(append(out, starlark.String(s[from:]))), nil
}

// substitute is re.sub: by a text, in which \1 and \g<name> are groups, or by a function.
func substitute(t *starlark.Thread, p *regex, a starlark.Tuple) (starlark.Value, error) {
	if len(a) < 2 {
		return nil, fmt.Errorf("sub takes what takes the place and a string")
	}
	all, err := p.matches(a[1:])
	if err != nil {
		return nil, err
	}
	s, from := str(a[1]), 0
	var out strings.Builder
	for _, m := range all {
		out.WriteString(s[from:m.at[0]])
		from = m.at[1]
		if by, ok := starlark.AsString(a[0]); ok {
			out.WriteString(m.expand(by))
			continue
		}
		v, err := starlark.Call(t, a[0], starlark.Tuple{m}, nil)
		if err != nil {
			return nil, err
		}
		out.WriteString(str(v))
	}
	out.WriteString(s[from:])
	return starlark.String(out.String()), nil
}

// groupName is a group within a text that takes the place of matches.
var groupName = regexp.MustCompile(`\\(?:(\d)|g<(\w+)>|(n)|(t)|(\\))`)

func (m *occurrence) expand(by string) string {
	return groupName.ReplaceAllStringFunc(by, func(ref string) string {
		parts := groupName.FindStringSubmatch(ref)
		switch {
		case parts[3] != "":
			return "\n"
		case parts[4] != "":
			return "\t"
		case parts[5] != "":
			return `\`
		}
		i, err := m.index(starlark.String(parts[1] + parts[2]))
		if v, ok := m.group(i).(starlark.String); ok && err == nil {
			return string(v)
		}
		return ""
	})
}

// occurrence is a match.
type occurrence struct {
	p    *regex
	text string
	at   []int // the ends of the groups, as regexp has them
}

func (m *occurrence) String() string        { return "<re.Match object>" }
func (m *occurrence) Type() string          { return "Match" }
func (m *occurrence) Freeze()               {}
func (m *occurrence) Truth() starlark.Bool  { return true }
func (m *occurrence) Hash() (uint32, error) { return 0, fmt.Errorf("unhashable type: Match") }
func (m *occurrence) AttrNames() []string {
	return []string{"end", "group", "groupdict", "groups", "span", "start"}
}

func (m *occurrence) group(i int) starlark.Value {
	if m.at[2*i] < 0 {
		return starlark.None
	}
	return starlark.String(m.text[m.at[2*i]:m.at[2*i+1]])
}

func (m *occurrence) groups(none starlark.Value) starlark.Tuple {
	var out starlark.Tuple
	for i := 1; i < len(m.at)/2; i++ {
		v := m.group(i)
		if v == starlark.None {
			v = none
		}
		out = append(out, v)
	}
	return out
}

// index is the number of a group that is given by number or by name.
func (m *occurrence) index(v starlark.Value) (int, error) {
	i, err := starlark.AsInt32(v)
	if s, ok := starlark.AsString(v); ok {
		if i = m.p.re.SubexpIndex(s); i < 0 {
			_, err = fmt.Sscanf(s, "%d", &i)
		} else {
			err = nil
		}
	}
	if err != nil || i < 0 || i >= len(m.at)/2 {
		return 0, fmt.Errorf("index out of range: no such group")
	}
	return i, nil
}

// Get is m[k].
func (m *occurrence) Get(k starlark.Value) (starlark.Value, bool, error) {
	i, err := m.index(k)
	if err != nil {
		return nil, false, err
	}
	return m.group(i), true, nil
}

// Attr returns a method.
func (m *occurrence) Attr(name string) (starlark.Value, error) {
	of := func(f func(i int) starlark.Value) starlark.Value {
		return builtin(name, func(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
			var out starlark.Tuple
			for _, k := range append(a, starlark.MakeInt(0))[:max(len(a), 1)] {
				i, err := m.index(k)
				if err != nil {
					return nil, err
				}
				out = append(out, f(i))
			}
			if len(out) == 1 {
				return out[0], nil
			}
			return out, nil
		})
	}
	switch name {
	case "group":
		return of(m.group), nil
	case "start":
		return of(func(i int) starlark.Value { return starlark.MakeInt(m.at[2*i]) }), nil
	case "end":
		return of(func(i int) starlark.Value { return starlark.MakeInt(m.at[2*i+1]) }), nil
	case "span":
		return of(func(i int) starlark.Value {
			return starlark.Tuple{starlark.MakeInt(m.at[2*i]), starlark.MakeInt(m.at[2*i+1])}
		}), nil
	case "groups":
		return builtin(name, func(*starlark.Thread, starlark.Tuple) (starlark.Value, error) { return m.groups(starlark.None), nil }), nil
	case "groupdict":
		return builtin(name, func(*starlark.Thread, starlark.Tuple) (starlark.Value, error) {
			d := starlark.NewDict(len(m.at))
			for i, n := range m.p.re.SubexpNames() {
				if n == "" {
					continue
				}
				if err := d.SetKey(starlark.String(n), m.group(i)); err != nil {
					return nil, err
				}
			}
			return d, nil
		}), nil
	}
	return nil, nil
}
