package script

import (
	"fmt"
	"slices"

	"go.starlark.net/starlark"
)

func init() {
	predeclared[fnPattern] = starlark.NewBuiltin(fnPattern, func(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		return &pattern{kind: string(args[0].(starlark.String)), args: args[1:], kwargs: kwargs}, nil
	})
	predeclared[fnMatches] = builtin(fnMatches, matches)
}

// pattern is one of a case of a match statement: of which kind, and what it is made of.
type pattern struct {
	kind   string
	args   starlark.Tuple
	kwargs []starlark.Tuple
}

func (p *pattern) String() string      { return "pattern" }
func (*pattern) Type() string          { return "pattern" }
func (*pattern) Freeze()               {}
func (*pattern) Truth() starlark.Bool  { return true }
func (*pattern) Hash() (uint32, error) { return 0, fmt.Errorf("unhashable") }

// matches tells whether a value is as a pattern says: a tuple of True and of what the names
// stand for then, else an empty one.
func matches(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	m := matching{t, map[string]starlark.Value{}}
	fits, err := m.fits(a[0], a[1].(*pattern))
	if err != nil || !fits {
		return starlark.Tuple{}, err
	}
	out := starlark.Tuple{starlark.True}
	for _, name := range a[2].(starlark.Tuple) {
		v := m.bound[string(name.(starlark.String))]
		if v == nil {
			v = starlark.None // of another alternative
		}
		out = append(out, v)
	}
	return out, nil
}

// matching is a value being matched.
type matching struct {
	t     *starlark.Thread
	bound map[string]starlark.Value
}

func (m *matching) fits(v starlark.Value, p *pattern) (bool, error) {
	switch p.kind {
	case "value":
		return m.equals(v, p.args[0])
	case "name", "star", "rest":
		m.bound[string(p.args[0].(starlark.String))] = v
		return true, nil
	case "as":
		fits, err := m.fits(v, p.args[0].(*pattern))
		m.bound[string(p.args[1].(starlark.String))] = v
		return fits, err
	case "or":
		for _, one := range p.args {
			if fits, err := m.fits(v, one.(*pattern)); err != nil || fits {
				return fits, err
			}
		}
		return false, nil
	case "sequence":
		return m.sequence(v, p.args)
	case "mapping":
		return m.mapping(v, p.args)
	}
	return m.class(v, p)
}

func (m *matching) equals(v, want starlark.Value) (bool, error) {
	op := "=="
	switch want.(type) {
	case starlark.Bool, starlark.NoneType:
		op = "is"
	}
	eq, err := compare(m.t, op, v, want)
	if err != nil {
		return false, err
	}
	is, err := truth(m.t, eq)
	return err == nil && bool(is.Truth()), err
}

func (m *matching) sequence(v starlark.Value, of starlark.Tuple) (bool, error) {
	names, err := classNames(v)
	if err != nil || !slices.ContainsFunc(names, func(n string) bool { return n == "tuple" || n == "list" || n == "range" || n == "torch.Size" }) {
		return false, err
	}
	vs, err := iterate(m.t, v)
	if err != nil {
		return false, err
	}
	star := slices.IndexFunc(of, func(one starlark.Value) bool { return one.(*pattern).kind == "star" })
	if star < 0 && len(vs) != len(of) || len(vs) < len(of)-1 {
		return false, nil
	}
	for i, one := range of {
		at := i
		switch {
		case i == star:
			end := len(vs) - (len(of) - 1 - i)
			if fits, err := m.fits(starlark.NewList(slices.Clone(vs[i:end])), one.(*pattern)); err != nil || !fits {
				return false, err
			}
			continue
		case star >= 0 && i > star:
			at = len(vs) - len(of) + i
		}
		if fits, err := m.fits(vs[at], one.(*pattern)); err != nil || !fits {
			return false, err
		}
	}
	return true, nil
}

func (m *matching) mapping(v starlark.Value, of starlark.Tuple) (bool, error) {
	d, ok := v.(*starlark.Dict)
	if !ok {
		return false, nil
	}
	var used starlark.Tuple
	for i := 0; i < len(of); i++ {
		if rest, ok := of[i].(*pattern); ok { // the last
			others := starlark.NewDict(d.Len())
			for _, kv := range d.Items() {
				if !slices.ContainsFunc(used, func(k starlark.Value) bool { eq, err := starlark.Equal(k, kv[0]); return err == nil && eq }) {
					if err := others.SetKey(kv[0], kv[1]); err != nil {
						return false, err
					}
				}
			}
			return m.fits(others, rest)
		}
		held, found, err := d.Get(of[i])
		if err != nil || !found {
			return false, err
		}
		used = append(used, of[i])
		i++
		if fits, err := m.fits(held, of[i].(*pattern)); err != nil || !fits {
			return false, err
		}
	}
	return true, nil
}

// class matches values of a class: the patterns without a name are of the value itself for
// the types that Python has, else of the attributes that __match_args__ or a dataclass names.
func (m *matching) class(v starlark.Value, p *pattern) (bool, error) {
	is, err := isInstance(m.t, starlark.Tuple{v, p.args[0]})
	if err != nil || is != starlark.True {
		return false, err
	}
	names, err := m.positional(p.args[0], len(p.args)-1)
	if err != nil {
		return false, err
	}
	for i, one := range p.args[1:] {
		part := v
		if names != nil {
			if part, err = attribute(m.t, v, names[i]); err != nil || part == nil {
				return false, err
			}
		}
		if fits, err := m.fits(part, one.(*pattern)); err != nil || !fits {
			return false, err
		}
	}
	for _, kw := range p.kwargs {
		part, err := attribute(m.t, v, string(kw[0].(starlark.String)))
		if err != nil || part == nil {
			return false, err
		}
		if fits, err := m.fits(part, kw[1].(*pattern)); err != nil || !fits {
			return false, err
		}
	}
	return true, nil
}

// positional are the attributes that n patterns of a class without names are of; nil where
// the pattern is of the value itself.
func (m *matching) positional(of starlark.Value, n int) ([]string, error) {
	var names []string
	if c, ok := of.(*class); ok && n > 0 {
		if given := c.lookup("__match_args__"); given != nil {
			vs, err := iterate(m.t, given)
			if err != nil {
				return nil, err
			}
			for _, v := range vs {
				name, _ := starlark.AsString(v)
				names = append(names, name)
			}
		} else if c.dataOf() != nil {
			given, _ := c.arguments()
			names = namesOf(given)
		}
		if n > len(names) {
			return nil, fmt.Errorf("%s() accepts %d positional sub-patterns (%d given)", c.name, len(names), n)
		}
	} else if n > 1 {
		return nil, fmt.Errorf("%s() accepts 1 positional sub-pattern (%d given)", className(of), n)
	}
	return names, nil
}
