package bundle

import (
	"slices"

	"plumb/program"
)

// Prefix returns the fewest of the cases, in their order, after which a case
// fails that does not fail alone: what left the state behind that it needs.
// Fails runs the cases, and the failing one after them, in a fresh process. The
// shortest tail of the cases that fails is looked for first, by bisection, then
// cases within it are left out, in ever smaller groups, until none can be
// (Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input",
// IEEE TSE 28, 2002). It returns nil where all cases together do not fail, an
// empty slice where none is needed. The error is that of fails.
func Prefix(cases []*program.Program, fails func(prefix []*program.Program) (bool, error)) ([]*program.Program, error) {
	if ok, err := fails(nil); ok || err != nil {
		return []*program.Program{}, err
	}
	if ok, err := fails(cases); !ok || err != nil {
		return nil, err
	}
	lo, hi := 1, len(cases) // the last hi cases fail, the last lo-1 do not
	for lo < hi {
		mid := (lo + hi) / 2
		ok, err := fails(cases[len(cases)-mid:])
		switch {
		case err != nil:
			return nil, err
		case ok:
			hi = mid
		default:
			lo = mid + 1
		}
	}
	return ddmin(cases[len(cases)-hi:], fails)
}

// ddmin leaves out groups of the cases as long as the rest fails.
func ddmin(cases []*program.Program, fails func([]*program.Program) (bool, error)) ([]*program.Program, error) {
	for size := (len(cases) + 1) / 2; len(cases) > 1; {
		removed := false
		for at := 0; at < len(cases) && len(cases) > 1; {
			rest := slices.Concat(cases[:at], cases[min(at+size, len(cases)):])
			ok, err := false, error(nil)
			if len(rest) > 0 {
				ok, err = fails(rest)
			}
			if err != nil {
				return nil, err
			}
			if ok {
				cases, removed = rest, true
			} else {
				at += size
			}
		}
		if size == 1 && !removed {
			break
		}
		size = max(1, min(size, len(cases))/2)
	}
	return cases, nil
}
