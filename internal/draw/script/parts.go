package script

import (
	"fmt"
	"slices"

	"go.starlark.net/starlark"
)

// AttrNames lists what a slice has.
func (s *slice) AttrNames() []string { return []string{"start", "stop", "step", "indices"} }

// Attr returns a part of a slice, or indices, which is its bounds in a sequence.
func (s *slice) Attr(name string) (starlark.Value, error) {
	switch name {
	case "start":
		return s.start, nil
	case "stop":
		return s.stop, nil
	case "step":
		return s.step, nil
	case "indices":
		return method(name, func(a starlark.Tuple) (starlark.Value, error) {
			if len(a) != 1 {
				return nil, fmt.Errorf("indices takes a length")
			}
			n, err := starlark.AsInt32(a[0])
			if err != nil {
				return nil, err
			}
			start, stop, step, err := sliceBounds(s.start, s.stop, s.step, n)
			return intTuple([]int{start, stop, step}), err
		}), nil
	}
	return nil, nil
}

// itemOf is t[k].
func itemOf(t starlark.Tuple, k starlark.Value) (starlark.Value, error) {
	if part, ok := k.(*slice); ok {
		return getslice(t, part.start, part.stop, part.step)
	}
	i, err := starlark.AsInt32(k)
	if err == nil && i < 0 {
		i += len(t)
	}
	if err != nil || i < 0 || i >= len(t) {
		return nil, fmt.Errorf("index %s is outside a tuple of %d", k, len(t))
	}
	return t[i], nil
}

// part returns a slice of a tuple, or of a list, of tensors; nil of anything else.
func (s *symbol) part(of *slice) (starlark.Value, error) {
	if !s.list && !s.tupled && s.kind != kindTuple {
		return nil, nil
	}
	if kind, err := s.known(); kind != kindTuple || err != nil || slices.ContainsFunc(s.elems, isPlain) {
		return nil, err
	}
	elems, err := s.elements()
	if err != nil {
		return nil, err
	}
	return getslice(starlark.Tuple(elems), of.start, of.stop, of.step)
}

// isPlain reports whether an element of a tuple is known, and no tensor: one of a size.
func isPlain(v starlark.Value) bool {
	_, ok := v.(*symbol)
	return v != nil && !ok
}
