package op

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"plumb/tensor"
)

// part is one call of a composition, and what it results in.
type part struct {
	call      *Call
	out       []Value
	shardings []Sharding
}

// writer writes results in other operators.
type writer func(b Builder, a Args) []Value

// trace writes a call's results on values of which only the layout is known.
func (c *Call) trace(write writer) (parts []part, out []Value, err error) {
	b := Builder{applier{c.Def.table, func(call *Call) ([]Value, error) {
		metas, err := call.Infer()
		vs := make([]Value, len(metas))
		for i, m := range metas {
			vs[i] = &described{m}
		}
		parts = append(parts, part{call: call, out: vs})
		return vs, err
	}}}
	err = Catch(func() { out = write(b, c.Args) })
	return parts, out, err
}

// derivedLimit is how many ways to hold the arguments are tried.
const derivedLimit = 3000

// derived returns the signatures of a call so written: the ways to hold its
// arguments under which every part has a legal signature, and which change
// nothing else about the parts.
func (c *Call) derived(write writer) []Sharding {
	whole, err := Sharding{}.Local(c, nil, 1, 0, func(v Value, _ SBP) Value { return layoutOf(v, v.Shape()) })
	if err != nil {
		return nil
	}
	parts, out, err := whole.trace(write)
	if err != nil {
		return nil
	}
	for i := range parts {
		parts[i].shardings, _ = parts[i].call.Shardings()
	}
	var found []Sharding
	for _, args := range whole.Args.holdings(used(parts, out), c.Def.sigs[0].Many) {
		s := Sharding{Args: args}
		matches := whole.follow(&s, parts, out)
		if matches != nil && len(out) > 0 && whole.sameLocally(s, write, parts, matches, out) {
			found = append(found, s)
		}
	}
	return found
}

func layoutOf(v Value, shape []int) Value {
	return &described{Meta{DType: v.DType(), Shape: slices.Clone(shape)}}
}

// holdings returns the ways to hold the tensor arguments that are used, one at
// least not B. The elements of a list are held alike where that is asked or
// there are too many ways.
func (a Args) holdings(used map[Value]bool, alike bool) []map[string]SBP {
	all := []map[string]SBP{{}}
	for i, v := range a.Vals {
		names, values := a.tensorsAt(i, v)
		for len(values) > 0 {
			n := 1
			if alike {
				n = len(values)
			}
			if slices.ContainsFunc(values[:n], func(v Value) bool { return used[v] }) {
				all = heldEach(all, names[:n], waysToHold(values[:n]))
			}
			names, values = names[n:], values[n:]
		}
		if len(all) > derivedLimit {
			if alike {
				return nil
			}
			return a.holdings(used, true)
		}
	}
	return all[1:]
}

func heldEach(all []map[string]SBP, names []string, ways []SBP) []map[string]SBP {
	var next []map[string]SBP
	for _, sbp := range ways {
		for _, m := range all {
			with := maps.Clone(m)
			for _, n := range names {
				if sbp != B {
					with[n] = sbp
				}
			}
			next = append(next, with)
		}
	}
	return next
}

// used returns the values that a part takes or the composition returns.
func used(parts []part, out []Value) map[Value]bool {
	taken := map[Value]bool{}
	for _, p := range parts {
		for _, v := range p.call.Args.AllValues() {
			taken[v] = true
		}
	}
	for _, v := range out {
		taken[v] = true
	}
	return taken
}

func (a Args) tensorsAt(i int, v any) ([]string, []Value) {
	one := Args{Sig: &Sig{Params: a.Sig.Params[i : i+1]}, Vals: []any{v}}
	return one.ArgNames(), one.AllValues()
}

// waysToHold returns B first.
func waysToHold(values []Value) []SBP {
	ways := []SBP{B}
	axes, summable := len(values[0].Shape()), true
	for _, v := range values {
		axes, summable = min(axes, len(v.Shape())), summable && v.DType().IsDifferentiable()
	}
	for axis := range axes {
		if !slices.ContainsFunc(values, func(v Value) bool { return v.Shape()[axis] < 2 }) {
			ways = append(ways, S(axis))
		}
	}
	if summable {
		ways = append(ways, P)
	}
	return ways
}

// follow carries the arguments' SBPs through the parts and completes the
// Sharding; it returns the signature that each part has for what reaches it,
// nil when one has none.
func (c *Call) follow(s *Sharding, parts []part, out []Value) []Sharding {
	held := map[Value]SBP{}
	names := c.Args.ArgNames()
	for i, v := range c.Args.AllValues() {
		held[v] = s.Args[names[i]]
	}
	matches := []Sharding{}
	for _, p := range parts {
		match, ok := p.match(held)
		if !ok {
			return nil
		}
		matches = append(matches, match)
		s.Even = s.Even || match.Even
		for i, v := range p.out {
			held[v] = match.Result(i)
		}
	}
	for _, v := range out {
		s.Results = append(s.Results, held[v])
	}
	return matches
}

// match returns the part's signature for arguments so held.
func (p *part) match(held map[Value]SBP) (Sharding, bool) {
	names, values := p.call.Args.ArgNames(), p.call.Args.AllValues()
	for _, s := range append([]Sharding{{Results: []SBP{B}}}, p.shardings...) {
		fits := true
		for i, v := range values {
			fits = fits && held[v] == s.Args[names[i]]
		}
		if fits {
			return s, true
		}
	}
	return Sharding{}, false
}

// sameLocally reports whether the composition of a rank consists of the same
// parts with the same arguments besides tensors, as it must where those are
// computed from shapes.
func (c *Call) sameLocally(s Sharding, write writer, parts []part, matches []Sharding, out []Value) bool {
	ranks := s.leastRanks(c.Args, metasOf(out))
	if ranks == 0 {
		return false
	}
	if !slices.ContainsFunc(matches, func(m Sharding) bool { return m.Own != nil }) {
		return c.sameOn(s, write, parts, matches, out, Rank{ranks, 0})
	}
	for rank := range ranks { // each has arguments of its own
		if !c.sameOn(s, write, parts, matches, out, Rank{ranks, rank}) {
			return false
		}
	}
	return true
}

// sameOn is sameLocally of one rank.
func (c *Call) sameOn(s Sharding, write writer, parts []part, matches []Sharding, out []Value, at Rank) bool {
	local, err := s.Local(c, nil, at.Ranks, at.Rank, func(v Value, sbp SBP) Value {
		return layoutOf(v, sbp.LocalShape(v.Shape(), at.Ranks, at.Rank))
	})
	if err != nil {
		return false
	}
	localParts, _, err := local.trace(write)
	if err != nil || len(localParts) != len(parts) {
		return false
	}
	for i, p := range parts {
		want, err := matches[i].Local(p.call, metasOf(p.out), at.Ranks, at.Rank, func(v Value, _ SBP) Value { return v })
		if err != nil || !sameBesideTensors(want, localParts[i].call) {
			return false
		}
	}
	return true
}

func metasOf(vs []Value) []Meta {
	metas := make([]Meta, len(vs))
	for i, v := range vs {
		metas[i] = Meta{v.DType(), v.Shape(), nil}
	}
	return metas
}

func sameBesideTensors(a, b *Call) bool {
	if a.Def != b.Def {
		return false
	}
	for i, x := range a.Args.Vals {
		if !reflect.DeepEqual(besideTensors(x), besideTensors(b.Args.Vals[i])) {
			return false
		}
	}
	return true
}

// besideTensors replaces values whose layout alone is known by their type.
func besideTensors(v any) any {
	switch v := v.(type) {
	case *tensor.Tensor:
		return v.Bytes()
	case Value:
		return fmt.Sprintf("%T", v)
	case []Value:
		return len(v)
	case Index:
		return len(v.values())
	case float64, Scalar:
		return fmt.Sprint(v) // NaN is the same as NaN here
	}
	return v
}
