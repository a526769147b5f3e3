package script

import (
	"fmt"
	"slices"

	"go.starlark.net/starlark"

	"plumb/internal/draw/gen"
)

// drawn is what hypothesis's @given says: which arguments are drawn, and how.
type drawn struct {
	args   starlark.Tuple // of the last parameters
	kwargs []starlark.Tuple
}

func (*drawn) String() string        { return "hypothesis.given" }
func (*drawn) Type() string          { return "decorator" }
func (*drawn) Freeze()               {}
func (*drawn) Truth() starlark.Bool  { return true }
func (*drawn) Hash() (uint32, error) { return 0, nil }

func given(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	return &drawn{args, kwargs}, nil
}

// of are the arguments by name, of a function or of a method.
func (g *drawn) of(fn *starlark.Function) ([]starlark.Tuple, error) {
	takes := fn.NumParams()
	if first, _ := fn.Param(0); slices.Contains(receivers, first) {
		takes--
	}
	switch {
	case len(g.args) > 0 && len(g.kwargs) > 0:
		return nil, fmt.Errorf("hypothesis.given takes strategies by position or by name, not both")
	case len(g.args) > takes:
		return nil, fmt.Errorf("hypothesis.given has %d strategies, and %s takes %d arguments", len(g.args), shortName(fn), takes)
	}
	out := slices.Clone(g.kwargs)
	for i, v := range g.args {
		name, _ := fn.Param(fn.NumParams() - len(g.args) + i)
		out = append(out, starlark.Tuple{starlark.String(name), v})
	}
	return out, nil
}

// examples is how many cases hypothesis's @settings asks for.
type examples int

func (examples) String() string        { return "hypothesis.settings" }
func (examples) Type() string          { return "decorator" }
func (examples) Freeze()               {}
func (examples) Truth() starlark.Bool  { return true }
func (examples) Hash() (uint32, error) { return 0, nil }

func hypothesisSettings(_ *starlark.Thread, _ *starlark.Builtin, _ starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	n := 0
	if most := keyword(kwargs, "max_examples"); most != nil {
		var err error
		if n, err = starlark.AsInt32(most[0]); err != nil {
			return nil, err
		}
	}
	return examples(n), nil
}

// strategy is a value that hypothesis draws.
type strategy struct {
	draw func(t *starlark.Thread) (starlark.Value, error)
}

func (*strategy) String() string        { return "strategy" }
func (*strategy) Type() string          { return "strategy" }
func (*strategy) Freeze()               {}
func (*strategy) Truth() starlark.Bool  { return true }
func (*strategy) Hash() (uint32, error) { return 0, nil }
func (*strategy) AttrNames() []string   { return []string{"map", "filter", "flatmap"} }

// Attr returns a strategy made of this one.
func (s *strategy) Attr(name string) (starlark.Value, error) {
	switch name {
	case "map", "flatmap":
		return ofOne(name, func(_ *starlark.Thread, f starlark.Value) (starlark.Value, error) {
			return &strategy{func(t *starlark.Thread) (starlark.Value, error) {
				v, err := s.draw(t)
				if err != nil {
					return nil, err
				}
				if v, err = starlark.Call(t, f, starlark.Tuple{v}, nil); err != nil {
					return nil, err
				}
				return drawnOf(t, v)
			}}, nil
		}), nil
	case "filter":
		return ofOne(name, func(_ *starlark.Thread, f starlark.Value) (starlark.Value, error) {
			return &strategy{func(t *starlark.Thread) (starlark.Value, error) {
				for range maxFiltered {
					v, err := s.draw(t)
					if err != nil {
						return nil, err
					}
					keep, err := starlark.Call(t, f, starlark.Tuple{v}, nil)
					if err != nil || bool(keep.Truth()) {
						return v, err
					}
				}
				return nil, fmt.Errorf("filter: none of %d draws is kept", maxFiltered)
			}}, nil
		}), nil
	}
	return nil, nil
}

// maxFiltered is how many draws a filter may refuse.
const maxFiltered = 100

// drawnOf draws a strategy; other values are themselves.
func drawnOf(t *starlark.Thread, v starlark.Value) (starlark.Value, error) {
	if s, ok := v.(*strategy); ok {
		return s.draw(t)
	}
	return v, nil
}

// oneAmong draws one of several strategies or values.
func oneAmong(among starlark.Tuple) *strategy {
	return &strategy{func(t *starlark.Thread) (starlark.Value, error) {
		i, err := integerBetween(t, 0, int64(len(among)-1))
		if err != nil {
			return nil, err
		}
		return drawnOf(t, among[i])
	}}
}

func integerBetween(t *starlark.Thread, least, most int64) (int64, error) {
	if most < least {
		return 0, fmt.Errorf("nothing is between %d and %d", least, most)
	}
	v, err := drawnAs(t, gen.Int, least, most+1)
	if err != nil {
		return 0, err
	}
	i, _ := v.(starlark.Int)
	n, _ := i.Int64()
	return n, nil
}

func drawnAs(t *starlark.Thread, as gen.Type, low, high any) (starlark.Value, error) {
	node := gen.Random(low, high)
	node.To(nil, as)
	return (&generator{node: node}).draw(t, (*gen.Node).Eval)
}

// The bounds of what has none: hypothesis draws from all integers and floats, and few
// tests of operators mean that.
const (
	defaultLeast = -100
	defaultMost  = 100
	defaultSize  = 8
)

func strategyNames() starlark.StringDict {
	names := starlark.StringDict{
		"none": builtin("none", func(*starlark.Thread, starlark.Tuple) (starlark.Value, error) {
			return oneAmong(starlark.Tuple{starlark.None}), nil
		}),
		"just": builtin("just", func(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) { return oneAmong(a), nil }),
		"booleans": builtin("booleans", func(*starlark.Thread, starlark.Tuple) (starlark.Value, error) {
			return oneAmong(starlark.Tuple{starlark.False, starlark.True}), nil
		}),
		"composite":    ofOne("composite", composite),
		"data":         builtin("data", func(*starlark.Thread, starlark.Tuple) (starlark.Value, error) { return &strategy{dataOf}, nil }),
		"one_of":       builtin("one_of", func(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) { return amongAll(t, a) }),
		"sampled_from": builtin("sampled_from", func(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) { return amongAll(t, a) }),
		"tuples": builtin("tuples", func(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
			return &strategy{func(t *starlark.Thread) (starlark.Value, error) { return drawnAll(t, a) }}, nil
		}),
		"integers": declare("integers", []string{"min_value", "max_value"}, func(_ *starlark.Thread, a arguments) (starlark.Value, error) { return integersBetween(a) }),
		"floats": declare("floats", []string{"min_value", "max_value", "allow_nan", "allow_infinity", "allow_subnormal", "width", "exclude_min", "exclude_max"}, func(_ *starlark.Thread, a arguments) (starlark.Value, error) {
			return floatsBetween(a)
		}),
		"lists": declare("lists", []string{"elements", "min_size", "max_size"}, func(_ *starlark.Thread, a arguments) (starlark.Value, error) { return listsOf(a) }),
	}
	return names
}

// amongAll is one of the arguments, or of the elements of the only one.
func amongAll(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	if len(a) == 1 {
		if _, one := a[0].(*strategy); !one {
			values, err := iterate(t, a[0])
			return oneAmong(values), err
		}
	}
	return oneAmong(a), nil
}

func drawnAll(t *starlark.Thread, of starlark.Tuple) (starlark.Tuple, error) {
	out := make(starlark.Tuple, len(of))
	for i, v := range of {
		var err error
		if out[i], err = drawnOf(t, v); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// farthest is how far from 0 integers are drawn.
const farthest = 1 << 62

// limit is a limit that a strategy is given; nil for none.
func (a arguments) limit(name string) starlark.Value {
	if v := a.get(name); v != starlark.None {
		return v
	}
	return nil
}

// bound is an integer limit of a strategy, or what it is where none is given.
func (a arguments) bound(name string, missing int64) (int64, error) {
	v := a.limit(name)
	if v == nil {
		return missing, nil
	}
	i, ok := v.(starlark.Int)
	if !ok {
		return 0, fmt.Errorf("%s: %s must be an integer, not %s", a.fn, name, article(v.Type()))
	}
	n, fits := i.Int64()
	if !fits || n > farthest || n < -farthest {
		return 0, lack("%s: %s beyond 2^62 is not supported in test files", a.fn, name)
	}
	return n, nil
}

func integersBetween(a arguments) (starlark.Value, error) {
	least, err := a.bound("min_value", defaultLeast)
	if err != nil {
		return nil, err
	}
	most, err := a.bound("max_value", max(defaultMost, least+defaultMost))
	if err != nil {
		return nil, err
	}
	if a.limit("min_value") == nil {
		least = min(least, most)
	}
	return &strategy{func(t *starlark.Thread) (starlark.Value, error) {
		i, err := integerBetween(t, least, most)
		return starlark.MakeInt64(i), err
	}}, nil
}

func floatsBetween(a arguments) (starlark.Value, error) {
	var ends [2]float64
	var given [2]bool
	for i, name := range []string{"min_value", "max_value"} {
		v := a.limit(name)
		if given[i] = v != nil; !given[i] {
			continue
		}
		if ends[i], given[i] = starlark.AsFloat(v); !given[i] {
			return nil, fmt.Errorf("floats: %s must be a number, not %s", name, article(v.Type()))
		}
	}
	if !given[0] {
		ends[0] = defaultLeast
	}
	if !given[1] {
		ends[1] = max(defaultMost, ends[0]+defaultMost)
	} else if !given[0] {
		ends[0] = min(ends[0], ends[1])
	}
	return &strategy{func(t *starlark.Thread) (starlark.Value, error) {
		switch {
		case ends[0] > ends[1]:
			return nil, fmt.Errorf("nothing is between %v and %v", ends[0], ends[1])
		case ends[0] == ends[1]:
			return starlark.Float(ends[0]), nil
		}
		return drawnAs(t, gen.Float, ends[0], ends[1])
	}}, nil
}

func listsOf(a arguments) (starlark.Value, error) {
	least, err := a.bound("min_size", 0)
	if err != nil {
		return nil, err
	}
	most, err := a.bound("max_size", least+defaultSize)
	if err != nil {
		return nil, err
	}
	elements := a.get("elements")
	switch {
	case elements == nil:
		return nil, fmt.Errorf("lists takes a strategy of its elements")
	case most > maxElements:
		return nil, fmt.Errorf("lists of more than %d elements", maxElements)
	}
	return &strategy{func(t *starlark.Thread) (starlark.Value, error) {
		n, err := integerBetween(t, least, most)
		if err != nil {
			return nil, err
		}
		values, err := drawnAll(t, slices.Repeat(starlark.Tuple{elements}, int(n)))
		return starlark.NewList(values), err
	}}, nil
}

// composite is @composite: the function draws with what it is handed.
func composite(_ *starlark.Thread, v starlark.Value) (starlark.Value, error) {
	fn, ok := v.(starlark.Callable)
	if !ok {
		return nil, fmt.Errorf("composite takes a function")
	}
	return starlark.NewBuiltin(fn.Name(), func(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		return &strategy{func(t *starlark.Thread) (starlark.Value, error) {
			return starlark.Call(t, fn, append(starlark.Tuple{drawing}, args...), kwargs)
		}}, nil
	}), nil
}

// drawing is what draws a strategy.
var drawing = starlark.NewBuiltin("draw", func(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
	if len(args) == 0 {
		return nil, fmt.Errorf("draw takes a strategy")
	}
	return drawnOf(t, args[0])
})

// dataOf is what a test that draws on its way is handed.
func dataOf(*starlark.Thread) (starlark.Value, error) {
	return &library{name: "data", names: starlark.StringDict{"draw": drawing}, lacks: true}, nil
}
