// Package global has tensors that lie on several ranks, in the words of OneFlow:
// a Placement says on which, an SBP how they share one. Ranks are goroutines of
// this process; each holds its parts alone, and they meet in exchanges whose
// sums have one order, so that a computation replays to the bit.
package global

import (
	"fmt"
	"slices"
	"strings"

	"plumb/op"
)

// Placement says where a tensor lies: ranks of a kind of device, in a row or in
// a hierarchy, row by row.
type Placement struct {
	Device    string // such as "cpu"
	Hierarchy []int  // the sizes of its dimensions, outermost first
	Ranks     []int  // by position in the hierarchy
}

// maxRanks bounds a placement.
const maxRanks = 1 << 16

// NewPlacement returns the placement of the ranks; without any, of the first
// ones, as many as the hierarchy has room for.
func NewPlacement(device string, hierarchy []int, ranks ...int) (Placement, error) {
	size := 1
	for _, n := range hierarchy {
		if n < 1 || n > maxRanks/size {
			return Placement{}, fmt.Errorf("placement: a hierarchy of %v ranks is not one of 1 to %d", hierarchy, maxRanks)
		}
		size *= n
	}
	if len(hierarchy) == 0 {
		return Placement{}, fmt.Errorf("placement: a hierarchy needs a dimension")
	}
	if ranks == nil {
		for i := range size {
			ranks = append(ranks, i)
		}
	}
	if len(ranks) != size {
		return Placement{}, fmt.Errorf("placement: a hierarchy of %v has %d ranks, not %d", hierarchy, size, len(ranks))
	}
	seen := map[int]bool{}
	for _, r := range ranks {
		if r < 0 || r >= maxRanks || seen[r] {
			return Placement{}, fmt.Errorf("placement: rank %d stands in %v twice, or is none", r, ranks)
		}
		seen[r] = true
	}
	return Placement{device, slices.Clone(hierarchy), slices.Clone(ranks)}, nil
}

// Equal reports whether two placements are the same.
func (p Placement) Equal(q Placement) bool {
	return p.Device == q.Device && slices.Equal(p.Hierarchy, q.Hierarchy) && slices.Equal(p.Ranks, q.Ranks)
}

// String returns OneFlow's notation: "cpu[[0, 1], [2, 3]]".
func (p Placement) String() string {
	next := 0
	return p.Device + p.nested(p.Hierarchy, &next)
}

func (p Placement) nested(hierarchy []int, next *int) string {
	if len(hierarchy) == 0 {
		*next++
		return fmt.Sprint(p.Ranks[*next-1])
	}
	var parts []string
	for range hierarchy[0] {
		parts = append(parts, p.nested(hierarchy[1:], next))
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// size is how many ranks there are.
func (p Placement) size() int { return len(p.Ranks) }

// Coordinates returns where in the hierarchy a position is.
func (p Placement) Coordinates(position int) []int {
	c := make([]int, len(p.Hierarchy))
	for k, n := range slices.Backward(p.Hierarchy) {
		c[k] = position % n
		position /= n
	}
	return c
}

// SBP says how ranks share a tensor, with an entry for each dimension of the
// hierarchy, outermost first: a piece that an outer entry splits is what the
// inner ones share. It is OneFlow's nd-SBP.
type SBP []op.SBP

// Broadcast is the SBP of dims dimensions under which every rank has the whole.
func Broadcast(dims int) SBP { return make(SBP, dims) }

// String returns the entries: "S(0)", or "[S(0), B]" of several.
func (s SBP) String() string {
	if len(s) == 1 {
		return s[0].String()
	}
	var parts []string
	for _, e := range s {
		parts = append(parts, e.String())
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// Dual is how the gradient of a tensor lies that lies by s: of pieces pieces, of
// copies summands, of summands copies.
func (s SBP) Dual() SBP {
	d := slices.Clone(s)
	for k, e := range d {
		switch e {
		case op.B:
			d[k] = op.P
		case op.P:
			d[k] = op.B
		}
	}
	return d
}

// Piece returns the elements of a tensor of the shape that a rank holds: from
// start on, size many along each axis. It refuses ranks that hold none, and
// summands, which are no elements.
func (s SBP) Piece(p Placement, shape []int, rank int) (start, size []int, err error) {
	if err := s.Check(p, shape); err != nil {
		return nil, nil, err
	}
	position := slices.Index(p.Ranks, rank)
	if position < 0 {
		return nil, nil, op.RuntimeError("rank %d is not in %s", rank, p)
	}
	if slices.Contains(s, op.P) {
		return nil, nil, op.RuntimeError("by %s a rank holds a summand, no elements", s)
	}
	r := s.regionOf(p, shape, p.Coordinates(position))
	return r.start, r.size, nil
}

// Fits returns a rejection where the sbp has not an entry for each dimension of
// the hierarchy.
func (s SBP) Fits(p Placement) error {
	if len(s) != len(p.Hierarchy) {
		return op.RuntimeError("an sbp of %d entries, %s, does not fit the %d dimensions of the hierarchy of %s", len(s), s, len(p.Hierarchy), p)
	}
	return nil
}

// Over is an sbp of one entry over all dimensions of the hierarchy, such as that of a
// row of ranks where these are in a grid; others are left alone.
func (s SBP) Over(p Placement) SBP {
	for n := range s {
		if s[n] != s[0] {
			return s
		}
	}
	if len(s) == 0 || len(s) >= len(p.Hierarchy) {
		return s
	}
	return slices.Repeat(s[:1], len(p.Hierarchy))
}

// Check returns a rejection where ranks of p cannot share a tensor of the shape so.
func (s SBP) Check(p Placement, shape []int) error {
	if err := s.Fits(p); err != nil {
		return err
	}
	for _, e := range s {
		if axis, split := e.Axis(); split && (axis < 0 || axis >= len(shape)) {
			return op.RuntimeError("%s splits an axis that a tensor of %d dimensions does not have", e, len(shape))
		}
	}
	return nil
}

// region is a box of a tensor's elements.
type region struct{ start, size []int }

func (r region) empty() bool { return slices.Contains(r.size, 0) }

// regionOf returns what the rank at the coordinates holds of a tensor of the
// shape: all of it along an axis that nothing splits.
func (s SBP) regionOf(p Placement, shape, at []int) region {
	r := region{make([]int, len(shape)), slices.Clone(shape)}
	for k, e := range s {
		if axis, split := e.Axis(); split {
			start, n := op.Balanced(r.size[axis], p.Hierarchy[k], at[k])
			r.start[axis] += start
			r.size[axis] = n
		}
	}
	return r
}

// intersect returns the elements in both boxes.
func (r region) intersect(q region) region {
	out := region{make([]int, len(r.start)), make([]int, len(r.start))}
	for i := range r.start {
		lo, hi := max(r.start[i], q.start[i]), min(r.start[i]+r.size[i], q.start[i]+q.size[i])
		out.start[i], out.size[i] = lo, max(hi-lo, 0)
	}
	return out
}
