package graph

import (
	"fmt"
	"slices"
)

// Memory is what a plan expects of results, in bytes; inputs and constants are
// not counted, nor the temporary memory of kernels.
type Memory struct {
	All     int // of all results together: what is held without releasing any
	Peak    int // held at once when each is released after its last use
	Reused  int // of the memory that several results have in turn
	InPlace int // results that take the memory of an argument
}

// String returns the figures.
func (m Memory) String() string {
	return fmt.Sprintf("%d bytes in all, at most %d at once, %d reused, %d in place", m.All, m.Peak, m.Reused, m.InPlace)
}

// plan says when values are released and which memory they have.
type plan struct {
	release [][]int     // by node: ids of values that nobody reads any more
	slot    map[int]int // by value id: which piece of reused memory it has
	sizes   []int       // of the pieces
	memory  Memory
	roots   map[*Value]*Value
	views   map[*Value][]*Value // by root, itself among them
	last    map[*Value]int      // by root: the last node that reads it or a view of it
	escapes map[*Value]bool
	free    []int
	// overwrites reports whether a node may put a result where an argument lies.
	overwrites func(n *Node, u, v *Value) bool
}

// planned plans the memory of code; without reuse values are only released.
// Tamper, for tests, may spoil a plan once it knows how long values live.
func planned(c *Code, reuse bool, tamper func(*plan, *Code)) *plan {
	p := &plan{
		overwrites: (*Node).overwrites,
		release:    make([][]int, len(c.Nodes)), slot: map[int]int{},
		roots: map[*Value]*Value{}, views: map[*Value][]*Value{}, last: map[*Value]int{}, escapes: map[*Value]bool{},
	}
	p.lives(c)
	if tamper != nil && reuse {
		tamper(p, c)
	}
	live := 0
	for i, n := range c.Nodes {
		if n.Kind != Input && n.Kind != Constant {
			for j, v := range n.Out {
				if p.roots[v] != v {
					continue
				}
				p.memory.All += v.bytes()
				inPlace := false
				if reuse && n.Kind != Arrange && j < len(n.Out)-len(n.Mutated) && !p.escapes[v] && denseOrder(v) != "" && n.allocates() {
					inPlace = p.assign(n, i, v)
				}
				if !inPlace {
					live += v.bytes()
				}
			}
		}
		p.memory.Peak = max(p.memory.Peak, live+p.inner(n))
		live -= p.releases(i, n)
	}
	for _, s := range p.sizes {
		p.memory.Reused += s
	}
	return p
}

// lives finds the memory that each value is part of, and how long it is read.
func (p *plan) lives(c *Code) {
	for i, n := range c.Nodes {
		for _, v := range n.Args() {
			p.last[p.roots[v]] = i
		}
		for _, v := range n.Out {
			r := p.root(n, v)
			p.roots[v] = r
			p.views[r] = append(p.views[r], v)
			p.last[r] = i
			if n.Kind == Input || n.Kind == Constant {
				p.escapes[r] = true
			}
		}
	}
	for _, v := range c.Outputs {
		p.escapes[p.roots[v]] = true
	}
}

// root returns the value whose memory v is part of.
func (p *plan) root(n *Node, v *Value) *Value {
	if n.viewed > 0 {
		return p.roots[n.Args()[n.viewed-1]]
	}
	return v
}

// allocates reports whether the node's results can be put into memory that is
// given: views and what they copy make their own.
func (n *Node) allocates() bool {
	return n.Kind == Fused || n.Kind == Apply && n.Call.Def.View == nil
}

// assign gives a result a piece of memory: that of an argument that dies here,
// where an elementwise call may overwrite it, else a free piece or a new one.
func (p *plan) assign(n *Node, at int, v *Value) (inPlace bool) {
	for _, u := range n.Args() {
		r := p.roots[u]
		slot, has := p.slot[r.id]
		if has && r == u && p.last[r] == at && !p.taken(n, slot) && !p.seen(n, u) && p.overwrites(n, u, v) {
			p.slot[v.id] = slot
			p.memory.InPlace++
			return true
		}
	}
	size, best := v.bytes(), -1
	for i, s := range p.free {
		if p.sizes[s] >= size && (best < 0 || p.sizes[s] < p.sizes[p.free[best]]) {
			best = i
		}
	}
	if best < 0 {
		p.slot[v.id] = len(p.sizes)
		p.sizes = append(p.sizes, size)
		return false
	}
	p.slot[v.id] = p.free[best]
	p.free = slices.Delete(p.free, best, best+1)
	return false
}

// seen reports whether the node reads a view of its argument u too.
func (p *plan) seen(n *Node, u *Value) bool {
	return slices.ContainsFunc(n.Args(), func(w *Value) bool { return w != u && p.roots[w] == u })
}

// taken reports whether another result of the node has the piece already.
func (p *plan) taken(n *Node, slot int) bool {
	return slices.ContainsFunc(n.Out, func(v *Value) bool {
		s, has := p.slot[v.id]
		return has && s == slot
	})
}

// overwrites reports whether the node may put result v where its argument u
// lies: element by element, and when nothing reads u afterwards.
func (n *Node) overwrites(u, v *Value) bool {
	if !alike(u, v) {
		return false
	}
	if n.Kind != Fused {
		return flatOrder(n) != ""
	}
	writes, reads := -1, -1
	for i, m := range n.body {
		if slices.Contains(m.Args(), u) {
			reads = i
		}
		if slices.Contains(m.Out, v) {
			writes = i
		}
	}
	return reads <= writes
}

// inner returns the bytes of the blocks that pass between fused calls.
func (p *plan) inner(n *Node) int {
	size := 0
	for _, m := range n.body {
		for _, v := range m.Out {
			size += min(v.bytes(), defaultBlock*v.DType().Size())
		}
	}
	return size
}

// releases notes what is read for the last time by node i, and returns the
// bytes that become free.
func (p *plan) releases(i int, n *Node) int {
	bytes := 0
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
		slot, has := p.slot[r.id]
		if has && slices.ContainsFunc(n.Out, func(o *Value) bool { s, ok := p.slot[o.id]; return ok && s == slot && o != r }) {
			continue // its memory was taken over
		}
		bytes += r.bytes()
		if has {
			p.free = append(p.free, slot)
		}
	}
	return bytes
}
