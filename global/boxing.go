package global

import (
	"context"
	"slices"

	"plumb/internal/ranks"
	"plumb/op"
	"plumb/tensor"
)

// route is the plan of a boxing: which box of elements each rank gets from which.
type route struct {
	what string
	to   Placement
	sbp  SBP
	// world are the ranks of both placements; from and into say at which of them
	// the parts are, by position in a placement.
	world      []int
	from, into []int
	holds      []region     // of the parts before
	wants      []region     // of the parts afterwards
	transfers  [][]transfer // by position afterwards, in the order in which they are added
	sums       bool         // what arrives is added up
}

// transfer brings a box of elements from the part at a position.
type transfer struct {
	from int
	box  region
}

// route plans how the ranks of p come to share the tensor by s.
//
// An element of the target is with the ranks that hold it before: along a
// dimension that was P with all of them, whose summands are added, along a
// dimension that stays P, or becomes P, with the rank itself, so that nothing
// moves (a rank that held a copy hands it to coordinate 0 alone).
func (t *Tensor) route(p Placement, s SBP) *route {
	r := &route{what: t.sbp.String() + " to " + s.String(), to: p, sbp: s, world: slices.Clone(t.placement.Ranks)}
	for _, rank := range p.Ranks {
		if !slices.Contains(r.world, rank) {
			r.world = append(r.world, rank)
		}
	}
	for i, rank := range t.placement.Ranks {
		r.from = append(r.from, slices.Index(r.world, rank))
		r.holds = append(r.holds, t.sbp.regionOf(t.placement, t.meta.Shape, t.placement.Coordinates(i)))
	}
	inPlace := slices.Equal(p.Hierarchy, t.placement.Hierarchy) && slices.Equal(p.Ranks, t.placement.Ranks)
	r.sums = slices.Contains(t.sbp, op.P)
	for j, rank := range p.Ranks {
		at := p.Coordinates(j)
		want := s.regionOf(p, t.meta.Shape, at)
		r.into, r.wants = append(r.into, slices.Index(r.world, rank)), append(r.wants, want)
		var all []transfer
		for i := range t.parts {
			if !t.gives(i, at, s, inPlace) {
				continue
			}
			if box := r.holds[i].intersect(want); !box.empty() {
				all = append(all, transfer{i, box})
			}
		}
		r.transfers = append(r.transfers, all)
	}
	return r
}

// gives reports whether the part at position i is one of those that the rank
// with the coordinates gets elements from.
func (t *Tensor) gives(i int, at []int, s SBP, inPlace bool) bool {
	c := t.placement.Coordinates(i)
	if !inPlace {
		for k, e := range s {
			if e == op.P && at[k] != 0 {
				return false
			}
		}
		for k, e := range t.sbp {
			if e == op.B && c[k] != 0 {
				return false
			}
		}
		return true
	}
	for k, e := range t.sbp {
		if !hands(e, s[k], c[k], at[k]) {
			return false
		}
	}
	return true
}

// hands reports whether, along a dimension whose ranks stay, the rank at c gives
// elements to that at another place.
func hands(from, to op.SBP, c, at int) bool {
	return !(from == op.B && to == op.P && at != 0) && (c == at || from != op.B && to != op.P)
}

// bytes is how much travels between ranks.
func (r *route) bytes(d tensor.DType) int {
	total := 0
	for j, all := range r.transfers {
		for _, x := range all {
			if r.from[x.from] != r.into[j] {
				total += tensor.NumElements(x.box.size) * d.Size()
			}
		}
	}
	return total
}

// carry moves the parts: every rank sends boxes of its part and makes its new
// part of what it gets.
func (r *route) carry(ctx context.Context, t *Tensor) (*Tensor, error) {
	t, err := t.here()
	if err != nil {
		return nil, err
	}
	out, err := r.hand(ctx, t)
	if err != nil {
		return nil, err
	}
	return out.there()
}

// hand is carry in the host's memory.
func (r *route) hand(ctx context.Context, t *Tensor) (*Tensor, error) {
	out := &Tensor{meta: t.meta, placement: r.to, sbp: slices.Clone(r.sbp), parts: make([]*tensor.Tensor, r.to.size())}
	travels := r.bytes(t.meta.DType) > 0
	move := func(me *ranks.Rank) error {
		var received []*tensor.Tensor
		if travels {
			var err error
			if received, err = me.Exchange(r.what, r.sends(t, me.ID)); err != nil {
				return err
			}
		}
		if j := slices.Index(r.into, me.ID); j >= 0 {
			out.parts[j] = r.receive(t, j, received)
		}
		return nil
	}
	if travels {
		return out, onRanks(ctx, len(r.world), move)
	}
	for id := range r.world {
		if err := move(&ranks.Rank{ID: id}); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// sends returns what the rank, by its number in the world, sends to each other.
func (r *route) sends(t *Tensor, id int) []*tensor.Tensor {
	send := make([]*tensor.Tensor, len(r.world))
	i := slices.Index(r.from, id)
	for j, all := range r.transfers {
		for _, x := range all {
			if x.from == i && r.into[j] != id {
				send[r.into[j]] = narrow(t.parts[i], r.holds[i], x.box)
			}
		}
	}
	return send
}

// receive makes the part at position j of what the rank has and gets. Where one
// part has all of it in one stretch nothing is copied: how a part lies does not
// depend on the way on which it came.
func (r *route) receive(t *Tensor, j int, received []*tensor.Tensor) *tensor.Tensor {
	want := r.wants[j]
	bring := func(x transfer) *tensor.Tensor {
		if r.from[x.from] == r.into[j] {
			return narrow(t.parts[x.from], r.holds[x.from], x.box)
		}
		return received[r.from[x.from]]
	}
	all := r.transfers[j]
	if len(all) == 1 && slices.Equal(all[0].box.size, want.size) && r.from[all[0].from] == r.into[j] {
		if part := bring(all[0]); slices.Equal(want.size, r.holds[all[0].from].size) || part.IsContiguous() {
			return part
		}
	}
	part := tensor.Unset(t.meta.DType, want.size, tensor.ContiguousStrides(want.size))
	switch whole := len(all) > 0 && slices.Equal(all[0].box.size, want.size); {
	case r.sums && whole: // each of the others adds to it
		part.CopyFrom(bring(all[0]))
		all = all[1:]
	case r.sums || covered(all) < tensor.NumElements(want.size):
		fill(part, neutral(t.meta.DType))
	}
	for _, x := range all {
		if into := narrow(part, want, x.box); r.sums {
			add(into, bring(x))
		} else {
			into.CopyFrom(bring(x))
		}
	}
	return part
}

func covered(all []transfer) int {
	n := 0
	for _, x := range all {
		n += tensor.NumElements(x.box.size)
	}
	return n
}

// box carries the tensor by the way that moves least: a sum that all ranks of a
// row need is made piece by piece, and the pieces are gathered.
func (t *Tensor) box(ctx context.Context, p Placement, s SBP) (*Tensor, error) {
	if t.placement.Equal(p) && slices.Equal(t.sbp, s) {
		return t, nil
	}
	if t.placement.Equal(p) {
		if pieces := scattered(p, t.meta.Shape, t.sbp, s); pieces != nil {
			x, err := t.route(p, pieces).carry(ctx, t)
			if err != nil {
				return nil, err
			}
			return x.route(p, s).carry(ctx, x)
		}
	}
	return t.route(p, s).carry(ctx, t)
}

// scattered returns the sbp in which a sum is made where P becomes B: split
// along an axis that has something for each rank. Nil where there is none, or
// nothing to gain.
func scattered(p Placement, shape []int, from, to SBP) SBP {
	pieces := slices.Clone(to)
	gain := false
	for k, e := range from {
		if ranks := p.Hierarchy[k]; e == op.P && to[k] == op.B && ranks > 2 {
			axis := slices.IndexFunc(shape, func(n int) bool { return n >= ranks })
			if axis >= 0 && !slices.Contains(pieces, op.S(axis)) {
				pieces[k], gain = op.S(axis), true
			}
		}
	}
	if !gain {
		return nil
	}
	return pieces
}

// neutral is what changes no sum: -0, because +0 + -0 is +0.
func neutral(d tensor.DType) complex128 {
	switch {
	case d.IsComplex():
		return complex(negativeZero, negativeZero)
	case d.IsFloat():
		return complex(negativeZero, 0)
	}
	return 0
}
