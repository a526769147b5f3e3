package graph

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"plumb/op"
	"plumb/tensor"
)

// Memory is what a plan expects of results, in bytes; inputs and constants are
// not counted, nor the temporary memory of kernels.
type Memory struct {
	All     int // of all results together: what is held without releasing any
	Peak    int // held at once when each is released after its last use
	Held    int // held at once by a run: Reused, and what lies outside of it
	Reused  int // of the memory that several results have in turn
	InPlace int // results that take the memory of an argument
}

// String returns the figures.
func (m Memory) String() string {
	return fmt.Sprintf("%d bytes in all, at most %d at once, %d held, %d of them reused; %d results in place", m.All, m.Peak, m.Held, m.Reused, m.InPlace)
}

// lives tells the memory that each value is part of, and how long it is read.
type lives struct {
	roots   map[*Value]*Value
	views   map[*Value][]*Value // by root, itself among them
	last    map[*Value]int      // by root: the last node that reads it or a view of it
	escapes map[*Value]bool     // by root: it is there before or after the run
}

// livesOf finds them. Inputs that are given away live as results do.
func livesOf(c *Code) lives {
	l := lives{roots: map[*Value]*Value{}, views: map[*Value][]*Value{}, last: map[*Value]int{}, escapes: map[*Value]bool{}}
	for i, n := range c.Nodes {
		for _, v := range n.Args() {
			l.last[l.roots[v]] = i
		}
		for _, v := range n.Out {
			r := l.root(n, v)
			l.roots[v] = r
			l.views[r] = append(l.views[r], v)
			l.last[r] = i
			if n.Kind == Input || n.Kind == Constant {
				l.escapes[r] = true
			}
		}
	}
	for _, i := range c.donated {
		l.escapes[c.Inputs[i]] = false
	}
	for _, v := range c.Outputs {
		l.escapes[l.roots[v]] = true
	}
	return l
}

// root returns the value whose memory v is part of.
func (l *lives) root(n *Node, v *Value) *Value {
	if n.viewed > 0 {
		return l.roots[n.Args()[n.viewed-1]]
	}
	return v
}

// plan says when values are released and which memory they have.
type plan struct {
	lives
	release [][]int     // by node: ids of values that nobody reads any more
	over    map[int]int // by value id: the value whose memory it takes
	piece   map[int]int // by value id
	pieces  []piece
	arena   int // bytes of the memory that pieces share
	memory  Memory
	// overwrites reports whether a node may put a result where an argument lies.
	overwrites func(n *Node, u, v *Value) bool
	// apart reports whether two pieces must not overlap.
	apart func(a, b *piece) bool
	// early reports whether a piece holds nothing any more when another begins to.
	early func(s, home *piece) bool
}

// piece is memory that one result has, or several that take it over.
type piece struct {
	size        int
	first, last int // the nodes between which it holds something
	at          int // in the arena, or in home; -1: memory of its own
	input       bool
	placed      bool
	home        *piece   // in whose memory it lies before that holds something
	lodgers     []*piece // by place
}

// planned plans the memory of code; without reuse values are only released.
// Tamper, for tests, may spoil a plan once it knows how long values live.
func planned(c *Code, reuse bool, tamper func(*plan, *Code)) *plan {
	p := &plan{
		lives: livesOf(c), overwrites: (*Node).overwrites, apart: (*piece).overlaps,
		early:   func(s, home *piece) bool { return s.last < home.first },
		release: make([][]int, len(c.Nodes)), over: map[int]int{}, piece: map[int]int{},
	}
	if tamper != nil && reuse {
		tamper(p, c)
	}
	for i, n := range c.Nodes {
		for j, v := range n.Out {
			if p.roots[v] == v {
				p.take(n, i, v, reuse && n.places(j))
			}
		}
		p.releases(i, n)
	}
	p.settle(c)
	return p
}

// places reports whether result i can be put into memory that is given: views,
// what they copy and what kernels change have their own.
func (n *Node) places(i int) bool {
	switch n.Kind {
	case Fused:
	case Apply:
		if n.Call.Def.View != nil || i >= len(n.Out)-len(n.Mutated) {
			return false
		}
	default:
		return false
	}
	return denseOrder(n.Out[i]) != ""
}

// take gives a result a piece: that of an argument that dies here, where an
// elementwise call may overwrite it, else a new one.
func (p *plan) take(n *Node, at int, v *Value, placed bool) {
	given := n.Kind == Input || n.Kind == Constant
	if !given {
		p.memory.All += v.bytes()
	}
	if placed {
		if u := p.host(n, at, v); u != nil {
			p.memory.InPlace++
			p.over[v.id], p.piece[v.id] = u.id, p.piece[u.id]
			s := &p.pieces[p.piece[u.id]]
			s.last = max(s.last, p.last[v])
			if p.escapes[v] {
				s.at, s.last = -1, math.MaxInt
			}
			return
		}
	}
	s := piece{size: v.bytes(), first: at, last: p.last[v], at: -1, input: given, placed: placed}
	if p.escapes[v] {
		s.last = math.MaxInt
	} else if placed {
		s.at = 0
	}
	p.piece[v.id] = len(p.pieces)
	p.pieces = append(p.pieces, s)
}

// host returns an argument whose memory a result may take; nil for none.
func (p *plan) host(n *Node, at int, v *Value) *Value {
	args := n.Args()
	if n.headed && v != n.Out[0] {
		args = append(args, n.Out[0])
	}
	for _, u := range args {
		if p.roots[u] == u && p.last[u] == at && !p.escapes[u] && p.owned(u) && !p.taken(n, u) && !p.seen(n, u) && p.overwrites(n, u, v) {
			return u
		}
	}
	return nil
}

// owned reports whether a value has memory that the plan knows: a piece, or
// that of an input that is given away.
func (p *plan) owned(u *Value) bool {
	return u.node.Kind == Input || u.node.places(slices.Index(u.node.Out, u))
}

// seen reports whether the node reads a view of its argument u too.
func (p *plan) seen(n *Node, u *Value) bool {
	return slices.ContainsFunc(n.Args(), func(w *Value) bool { return w != u && p.roots[w] == u })
}

// taken reports whether a result of the node has the piece of u already.
func (p *plan) taken(n *Node, u *Value) bool {
	return slices.ContainsFunc(n.Out, func(v *Value) bool {
		s, has := p.piece[v.id]
		return has && v != u && s == p.piece[u.id]
	})
}

// overwrites reports whether the node may put result v where its argument u
// lies: element by element, and when nothing reads u afterwards.
func (n *Node) overwrites(u, v *Value) bool {
	if !alike(u, v) {
		return false
	}
	if n.Kind != Fused {
		return flatOrder(n) != "" || n.proposes(u, v)
	}
	writes, reads := -1, -1
	for i, m := range n.body {
		if n.headed && i == 0 && (m.Out[0] == v || slices.Contains(m.Args(), u)) {
			return false // it reads all of u while parts of results are written
		}
		if slices.Contains(m.Args(), u) {
			reads = i
		}
		if slices.Contains(m.Out, v) {
			writes = i
		}
	}
	return reads <= writes
}

// proposes reports whether the node's kernel may put its first result where u lies, of
// which it is the only argument.
func (n *Node) proposes(u, v *Value) bool {
	if n.Kind != Apply || v != n.Out[0] || n.Call.Def.Compose != nil || n.Call.Def.View != nil {
		return false
	}
	k, err := n.Call.Def.Kernel(laid(n.Call.Args))
	if err != nil || len(k.Over) == 0 {
		return false
	}
	times := 0
	for _, w := range n.Args() {
		if w == u {
			times++
		}
	}
	return times == 1 && slices.ContainsFunc(k.Over, func(p op.TensorArg) bool { return n.Call.Args.Any(p) == op.Value(u) })
}

// releases notes what is read for the last time by node i.
func (p *plan) releases(i int, n *Node) {
	done := map[*Value]bool{}
	for _, v := range append(slices.Clone(n.Args()), n.Out...) {
		r := p.roots[v]
		if p.last[r] != i || p.escapes[r] || done[r] {
			continue
		}
		done[r] = true
		for _, u := range p.views[r] {
			p.release[i] = append(p.release[i], u.id)
		}
	}
}

// alignment of the pieces in the arena: a line of the cache.
const alignment = 64

// overlaps reports whether two pieces hold something at the same time.
func (s *piece) overlaps(o *piece) bool { return s.first <= o.last && o.first <= s.last }

// arrange finds places for pieces, large and late ones first: in the arena or, with
// lodgers, in the memory of an output before that is made.
func (p *plan) arrange(lodgers bool) {
	var order, homes []*piece
	for i := range p.pieces {
		s := &p.pieces[i]
		s.home, s.lodgers = nil, nil
		switch {
		case s.at >= 0:
			order = append(order, s)
		case s.placed && lodgers:
			homes = append(homes, s)
		}
	}
	slices.SortStableFunc(order, func(a, b *piece) int { return cmp.Or(b.size-a.size, b.last-a.last) })
	p.arena = 0
	var lain []*piece // by place
	for _, s := range order {
		i := slices.IndexFunc(homes, func(h *piece) bool { return p.early(s, h) && p.lowest(s, h.lodgers)+s.size <= h.size })
		if i >= 0 {
			s.home, s.at = homes[i], p.lowest(s, homes[i].lodgers)
			homes[i].lodgers = s.among(homes[i].lodgers)
			continue
		}
		s.at = p.lowest(s, lain)
		lain = s.among(lain)
		p.arena = max(p.arena, s.at+s.size)
	}
}

// lowest returns the lowest place that none of those that lie has while s
// holds something.
func (p *plan) lowest(s *piece, lain []*piece) int {
	at := 0
	for _, o := range lain {
		if p.apart(s, o) && at < o.at+o.size {
			if at+s.size <= o.at {
				break
			}
			at = (o.at + o.size + alignment - 1) / alignment * alignment
		}
	}
	return at
}

// among inserts s by its place.
func (s *piece) among(lain []*piece) []*piece {
	i, _ := slices.BinarySearchFunc(lain, s.at, func(o *piece, at int) int { return o.at - at })
	return slices.Insert(lain, i, s)
}

// begins returns the node from which on a piece of its own is held.
func (s *piece) begins() int {
	first := s.first
	for _, o := range s.lodgers {
		first = min(first, o.first)
	}
	return first
}

// settle arranges the pieces the better way.
func (p *plan) settle(c *Code) {
	p.arrange(true)
	held := p.held(c)
	p.arrange(false)
	if held < p.held(c) {
		p.arrange(true)
	}
	p.memory.Reused, p.memory.Held = p.arena, p.held(c)
	for i, n := range c.Nodes {
		all := p.inner(n)
		for _, s := range p.pieces {
			if !s.input && s.first <= i && s.last >= i {
				all += s.size
			}
		}
		p.memory.Peak = max(p.memory.Peak, all)
	}
}

// held returns the most bytes that a run holds at once.
func (p *plan) held(c *Code) int {
	most := 0
	for i, n := range c.Nodes {
		outside := p.inner(n)
		for j := range p.pieces {
			if s := &p.pieces[j]; !s.input && s.at < 0 && s.begins() <= i && s.last >= i {
				outside += s.size
			}
		}
		most = max(most, p.arena+outside)
	}
	return most
}

// inner returns the bytes of the blocks that pass between fused calls.
func (p *plan) inner(n *Node) int {
	size := 0
	for _, m := range n.body {
		for _, v := range m.Out {
			if !slices.Contains(n.Out, v) {
				size += min(v.bytes(), defaultBlock*v.DType().Size())
			}
		}
		for i, v := range m.Args() {
			if i < len(m.spreads) && m.spreads[i] != nil {
				size += min(tensor.NumElements(m.Out[0].Shape()), defaultBlock) * v.DType().Size()
			}
		}
	}
	return size
}
