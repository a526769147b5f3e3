package op

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// SBP says how one tensor lies on a row of ranks, in OneFlow's words. The
// zero SBP is B.
type SBP struct {
	kind byte
	axis int
}

// B is Broadcast: every rank holds the whole tensor. P is PartialSum: every
// rank holds a summand of the whole shape.
var (
	B = SBP{}
	P = SBP{kind: 'P'}
)

// S is Split: the ranks hold consecutive pieces along the axis, counted from 0.
func S(axis int) SBP { return SBP{'S', axis} }

// Axis returns the axis that is split, and whether one is.
func (s SBP) Axis() (axis int, split bool) { return s.axis, s.kind == 'S' }

// String returns OneFlow's notation: "S(0)", "B" or "P".
func (s SBP) String() string {
	switch s.kind {
	case 'S':
		return fmt.Sprintf("S(%d)", s.axis)
	case 'P':
		return "P"
	}
	return "B"
}

// Balanced returns which of n indices rank holds when ranks share them in
// order: the first n%ranks of them get one more.
func Balanced(n, ranks, rank int) (start, size int) {
	quot, rem := n/ranks, n%ranks
	start = quot*rank + min(rank, rem)
	if rank < rem {
		return start, quot + 1
	}
	return start, quot
}

// LocalShape returns the shape of what rank holds of a tensor of the shape.
func (s SBP) LocalShape(shape []int, ranks, rank int) []int {
	local := slices.Clone(shape)
	if s.kind == 'S' {
		_, local[s.axis] = Balanced(shape[s.axis], ranks, rank)
	}
	return local
}

// Sharding is one legal signature of a call: every rank runs the operator on
// what it holds of the arguments, and then holds its part of the results.
type Sharding struct {
	// Args are the SBPs of the tensor arguments by name, elements of a list as
	// "tensors[1]". Those that are not named are B.
	Args map[string]SBP
	// Results are the SBPs of the results; the last holds for all further ones.
	Results []SBP
	// Sizes names the int[] arguments that have the size of the split axis of
	// result 0 at a position: there each rank has its own size, or -1 as given.
	Sizes map[IntsArg]int
	// Even says that the ranks have to divide every split axis.
	Even bool
	// Own returns what a rank has in the place of other arguments, where what it
	// computes depends on where its pieces lie: a diagonal or a start of its own. a is
	// the call that the ranks share. Nil leaves them as they are.
	Own func(a Args, r Rank) map[Handle]any
}

// Rank is one of several ranks in a row that share a call.
type Rank struct{ Ranks, Rank int }

// Piece returns which of n indices of a split axis the rank has.
func (r Rank) Piece(n int) (start, size int) { return Balanced(n, r.Ranks, r.Rank) }

// Partial reports whether ranks hold summands of an argument or a result.
func (s Sharding) Partial() bool {
	for _, sbp := range s.Args {
		if sbp == P {
			return true
		}
	}
	return slices.Contains(s.Results, P)
}

// Result returns the SBP of result i.
func (s Sharding) Result(i int) SBP { return s.Results[min(i, len(s.Results)-1)] }

// String returns the arguments in the order of their names, an arrow and the
// results: "input: S(0), weight: B -> S(0)" without those that are B.
func (s Sharding) String() string {
	text := ""
	for _, name := range slices.Sorted(maps.Keys(s.Args)) {
		if s.Args[name] != B {
			text += fmt.Sprintf("%s: %s, ", name, s.Args[name])
		}
	}
	if text != "" {
		text = text[:len(text)-2] + " "
	}
	text += "->"
	for i, r := range s.Results {
		if i > 0 {
			text += ","
		}
		text += " " + r.String()
	}
	if s.Even {
		text += " (evenly)"
	}
	return text
}

// ArgNames returns the names by which a Sharding knows the tensors of
// AllValues, in that order.
func (a Args) ArgNames() []string {
	var names []string
	for i, v := range a.Vals {
		name := a.Sig.Params[i].Name
		switch v := v.(type) {
		case Value:
			names = append(names, name)
		case []Value:
			for j := range v {
				names = append(names, fmt.Sprintf("%s[%d]", name, j))
			}
		case Index:
			for j := range v.values() {
				names = append(names, fmt.Sprintf("%s[%d]", name, j))
			}
		}
	}
	return names
}

// Fits reports whether that many ranks can share the call: as in OneFlow every
// split axis, of the results too, has an index for each.
func (s Sharding) Fits(a Args, results []Meta, ranks int) bool {
	fits := func(sbp SBP, shape []int) bool {
		n := ranks
		if axis, split := sbp.Axis(); split {
			if axis < 0 || axis >= len(shape) {
				return false
			}
			n = shape[axis]
		}
		return n >= ranks && (!s.Even || n%ranks == 0)
	}
	names := a.ArgNames()
	for i, v := range a.AllValues() {
		if !fits(s.Args[names[i]], v.Shape()) {
			return false
		}
	}
	for i, m := range results {
		if !fits(s.Result(i), m.Shape) {
			return false
		}
	}
	return true
}

// Local returns the call of one rank: held returns what it holds of the tensor
// argument that has an SBP. The error says that Own does not fit the signature.
func (s Sharding) Local(c *Call, results []Meta, ranks, rank int, held func(Value, SBP) Value) (*Call, error) {
	names := c.Args.ArgNames()
	next := -1
	local := c.Args.MapValues(func(v Value) Value {
		next++
		return held(v, s.Args[names[next]])
	})
	for name, at := range s.Sizes {
		axis, _ := s.Results[0].Axis()
		sizes := slices.Clone(c.Args.Ints(name))
		if sizes[at] != -1 {
			_, sizes[at] = Balanced(results[0].Shape[axis], ranks, rank)
		}
		local.Vals[local.Sig.Index(name)] = sizes
	}
	if s.Own != nil {
		for name, v := range s.Own(c.Args, Rank{ranks, rank}) {
			i := local.Sig.Index(name)
			if i < 0 || reflect.TypeOf(v) != reflect.TypeOf(local.Vals[i]) {
				return nil, fmt.Errorf("%s: by %s a rank has a %T of its own for %s, which is no such argument", c.Def.ID(), s, v, name.Name())
			}
			local.Vals[i] = v
		}
	}
	return &Call{Def: c.Def, Args: local, Key: c.Key}, nil
}

// ShardingsOver returns the signatures over a hierarchy of ranks, of the given sizes,
// that NdSBP states and that fit it: each has an entry for a dimension, outermost first.
// The error is the call's rejection, or says that one has not as many.
func (c *Call) ShardingsOver(hierarchy []int) ([][]Sharding, error) {
	if c.Def.NdSBP == nil || c.Def.NotSplittable != "" {
		return nil, nil
	}
	metas, err := c.Infer()
	if err != nil {
		return nil, err
	}
	var fitting [][]Sharding
	for _, s := range c.Def.NdSBP(c.Args, hierarchy) {
		if len(s) != len(hierarchy) {
			return nil, fmt.Errorf("%s: NdSBP states %v for a hierarchy of %v, which has %d dimensions", c.Def.ID(), s, hierarchy, len(hierarchy))
		}
		if fit(s, c.Args, metas, hierarchy) {
			fitting = append(fitting, s)
		}
	}
	return fitting, nil
}

// fit reports whether a hierarchy has room for a signature: whether the smallest and
// the largest pieces that outer dimensions leave can be shared by the inner ones.
func fit(signature []Sharding, a Args, results []Meta, hierarchy []int) bool {
	for _, last := range []bool{false, true} {
		values, metas := slices.Clone(a.AllValues()), slices.Clone(results)
		for k, s := range signature {
			rank := 0
			if last {
				rank = hierarchy[k] - 1
			}
			next := -1
			piece := a.MapValues(func(Value) Value { next++; return values[next] })
			if len(s.Results) == 0 || !s.Fits(piece, metas, hierarchy[k]) {
				return false
			}
			for i, name := range a.ArgNames() {
				values[i] = layoutOf(values[i], s.Args[name].LocalShape(values[i].Shape(), hierarchy[k], rank))
			}
			for i, m := range metas {
				metas[i].Shape = s.Result(i).LocalShape(m.Shape, hierarchy[k], rank)
			}
		}
	}
	return true
}

// Shardings returns the legal one-dimensional signatures of a call beside the
// one in which everything is B, or the call's rejection. Those that no two or
// more ranks fit are left out.
func (c *Call) Shardings() ([]Sharding, error) {
	metas, err := c.Infer()
	if err != nil {
		return nil, err
	}
	var all []Sharding
	switch d := c.Def; {
	case d.SBP != nil:
		all = d.SBP(c.Args)
	case d.NotSplittable != "":
	case d.Compose != nil:
		all = c.derived(d.Compose)
	case d.Formula != nil:
		all = c.derived(d.Formula)
	}
	return slices.DeleteFunc(all, func(s Sharding) bool { return s.leastRanks(c.Args, metas) == 0 }), nil
}

// leastRanks returns the least number of ranks above 1 that fit, or 0.
func (s Sharding) leastRanks(a Args, results []Meta) int {
	for _, ranks := range []int{2, 3, 5, 7} {
		if s.Fits(a, results, ranks) {
			return ranks
		}
	}
	return 0
}
