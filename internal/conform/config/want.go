package config

import (
	"slices"

	"plumb/internal/spell"
)

func wantDict(at place, v Value) (*Dict, error) {
	if d, ok := v.(*Dict); ok {
		return d, nil
	}
	return nil, at.errorf("want a dict, not %s", Show(v))
}

func wantList(at place, v Value) ([]Value, error) {
	if list, ok := Items(v); ok {
		return list, nil
	}
	return nil, at.errorf("want a list or a tuple, not %s", Show(v))
}

func wantStrings(at place, v Value) ([]string, error) {
	list, ok := v.(List)
	if !ok {
		return nil, at.errorf("want a list of strings, not %s", Show(v))
	}
	out := make([]string, len(list))
	for i, x := range list {
		s, ok := x.(String)
		if !ok {
			return nil, at.index(i).errorf("want a string, not %s", Show(x))
		}
		out[i] = string(s)
	}
	return out, nil
}

// wantSizes holds a list to integers that are not negative.
func wantSizes(at place, list []Value) error {
	for i, v := range list {
		if n, ok := v.(Int); !ok || n < 0 {
			return at.index(i).errorf("want an integer that is not negative, not %s", Show(v))
		}
	}
	return nil
}

// wantShape takes what a shape column holds: None, an integer, a shape, or a
// tuple of shapes.
func wantShape(at place, v Value, depth int) error {
	switch v := v.(type) {
	case None:
		if depth == 0 {
			return nil
		}
	case Int:
		if v >= 0 {
			return nil
		}
	case List, Tuple:
		list, _ := Items(v)
		for i, x := range list {
			if depth > 1 {
				break
			}
			if err := wantShape(at.index(i), x, depth+1); err != nil {
				return err
			}
		}
		if depth < 2 {
			return nil
		}
	}
	return at.errorf("want None, a size or a tuple of sizes, not %s", Show(v))
}

// warnUnknown tells of keys that DIOPI ignores, and what a typo may stand for.
func warnUnknown(at place, d *Dict, known []string) {
	for _, k := range d.Keys() {
		if slices.Contains(known, k) {
			continue
		}
		if meant := nearest(k, known); meant != "" {
			at.key(k).warnf("the key is ignored; is %s meant?", meant)
		} else {
			at.key(k).warnf("the key is ignored")
		}
	}
}

// nearest is the known word that differs least, or nothing when all differ much.
func nearest(word string, known []string) string {
	best, least := "", min(4, len(word)/2+1)
	for _, k := range known {
		if n := spell.Distance(word, k); n < least {
			best, least = k, n
		}
	}
	return best
}

// Number is an int or a float as a float64.
func Number(v Value) (float64, bool) {
	switch v := v.(type) {
	case Int:
		return float64(v), true
	case Float:
		return float64(v), true
	}
	return 0, false
}

// Show is a value as its JSON, shortened.
func Show(v Value) string {
	if v == nil {
		return "nothing"
	}
	const most = 60
	s := []rune(string(v.AppendJSON(nil)))
	if len(s) > most {
		return string(s[:most]) + "…"
	}
	return string(s)
}
