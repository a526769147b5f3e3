package graph

import (
	"fmt"
	"runtime"
	"slices"
	"sync"

	"plumb/internal/kernel"
	"plumb/op"
	"plumb/tensor"
)

// fused runs the calls of a group block by block, several blocks at a time.
func (r *execution) fused(n *Node) error {
	for _, v := range n.Out {
		r.env[v.id] = r.memory(v, op.Meta{DType: v.DType(), Shape: v.Shape(), Strides: v.Strides()})
	}
	l := &fusedLoop{execution: r, node: n, body: n.body, size: tensor.NumElements(n.body[0].Out[0].Shape())}
	if r.watch != nil {
		defer runtime.KeepAlive(l) // what blocks hold counts
		defer r.watch()
	}
	if n.headed {
		l.body = n.body[1:]
		return l.headed(n.body[0])
	}
	kernel.Parallel((l.size+r.block-1)/r.block, 1, func(lo, hi int) { l.run(lo*r.block, min(hi*r.block, l.size)) })
	return l.failed
}

// fusedLoop is one run of a group.
type fusedLoop struct {
	*execution
	node   *Node
	body   []*Node // what runs block by block
	size   int     // elements of a whole tensor
	mu     sync.Mutex
	failed error    // the first
	idle   []*block // that no range is computed with
	told   int      // elements that the head reported
}

// headed runs the group's first call as a whole, and the others on each range
// that its kernel reports.
func (l *fusedLoop) headed(head *Node) error {
	v := head.Out[0]
	call := *head.Call
	call.Args = mapped(call.Args, func(v *Value) op.Value { return l.env[v.id] })
	call.States = &l.states
	call.Done = func(lo, hi int) {
		l.run(lo, hi)
		l.mu.Lock()
		l.told += hi - lo
		l.mu.Unlock()
	}
	out, err := call.ExecuteInto(func(int, op.Meta) *tensor.Tensor { return l.env[v.id] })
	switch {
	case err != nil:
		return &bodyError{head, err}
	case !sameMeta(out[0], v):
		return &bodyError{head, fmt.Errorf("the result is %s with strides %v; inferred was %s", out[0], out[0].Strides(), describe(v))}
	case l.told != l.size:
		return &bodyError{head, fmt.Errorf("it reported %d of %d elements", l.told, l.size)}
	}
	return l.failed
}

// run computes a range of elements. Ranges may run at the same time.
func (l *fusedLoop) run(lo, hi int) {
	b := l.borrow()
	for at := lo; at < hi; at += l.block {
		if err := b.run(l.body, at, min(l.block, hi-at)); err != nil {
			l.mu.Lock()
			l.failed = err
			l.mu.Unlock()
			break
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.idle = append(l.idle, b)
}

// borrow returns a block that no other range uses.
func (l *fusedLoop) borrow() *block {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.idle); n > 0 {
		b := l.idle[n-1]
		l.idle = l.idle[:n-1]
		return b
	}
	return &block{
		execution: l.execution, whole: l.size, stored: l.node.Out, inner: map[*Value]*tensor.Tensor{}, parts: map[*Value]*tensor.Tensor{},
		spreads: map[spreadKey]*tensor.Tensor{}, chosen: make([]chosen, len(l.body)),
	}
}

// block is the part of a fused loop that is under way.
type block struct {
	*execution
	whole int // elements of a whole tensor
	at, n int
	// stored are the values that are kept as a whole; inner holds one block of
	// each of the others.
	stored []*Value
	inner  map[*Value]*tensor.Tensor
	parts  map[*Value]*tensor.Tensor // of this block
	chosen []chosen                  // by call
	// spreads hold one block of each argument that is written out.
	spreads map[spreadKey]*tensor.Tensor
}

// spreadKey names an argument of a call.
type spreadKey struct {
	call     *Node
	argument int
}

// chosen is the kernel of a call for blocks of n elements.
type chosen struct {
	kernel  *op.Kernel
	n       int
	scratch []byte
	state   any
}

// run computes n elements from position at on.
func (b *block) run(body []*Node, at, n int) error {
	b.at, b.n = at, n
	clear(b.parts)
	for i, m := range body {
		if err := b.call(m, &b.chosen[i]); err != nil {
			return &bodyError{m, err}
		}
	}
	return nil
}

// part returns the block's elements of a value.
func (b *block) part(v *Value) *tensor.Tensor {
	t := b.parts[v]
	if t == nil {
		t = flatten(b.env[v.id], b.whole, b.at, b.n)
		b.parts[v] = t
	}
	return t
}

// argument returns the block's elements of argument i of a call, written out
// where it does not lie as the result does.
func (b *block) argument(m *Node, i int, v *Value) *tensor.Tensor {
	s := m.spreads[i]
	if s == nil {
		return b.part(v)
	}
	key := spreadKey{m, i}
	whole := b.spreads[key]
	if whole == nil {
		whole = tensor.Unset(v.DType(), []int{min(b.block, b.whole)}, nil)
		b.spreads[key] = whole
	}
	t := flatten(whole, b.whole, 0, b.n)
	s.write(t, b.env[v.id], b.at)
	return t
}

// result returns where the block's elements of a result go.
func (b *block) result(v *Value) *tensor.Tensor {
	if slices.Contains(b.stored, v) {
		return b.part(v)
	}
	whole := b.inner[v]
	if whole == nil {
		whole = tensor.Unset(v.DType(), []int{min(b.block, b.whole)}, nil)
		b.inner[v] = whole
	}
	b.parts[v] = flatten(whole, b.whole, 0, b.n)
	return b.parts[v]
}

// call computes the block of one call. What op.Call.Execute infers is the same
// for every block; arguments are checked in each, since they may be refused for
// their elements.
func (b *block) call(m *Node, k *chosen) error {
	d := m.Call.Def
	i := -1
	run := op.Run{Args: mapped(m.Call.Args, func(v *Value) op.Value {
		i++
		return b.argument(m, i, v)
	})}
	if d.Reject != nil {
		if err := d.Reject(run.Args); err != nil {
			return err
		}
	}
	if d.View != nil { // a conversion
		b.result(m.Out[0]).CopyFrom(b.argument(m, 0, m.Args()[0]))
		return nil
	}
	if k.n != b.n {
		if err := k.choose(d, run.Args, b); err != nil {
			return err
		}
	}
	for _, v := range m.Out {
		run.Out = append(run.Out, b.result(v))
	}
	run.Scratch, run.State = k.scratch, k.state
	return k.kernel.Run(&run)
}

func (k *chosen) choose(d *op.Def, a op.Args, b *block) (err error) {
	if k.kernel, err = d.Kernel(a); err != nil {
		return err
	}
	run := op.Run{Args: a}
	err = k.kernel.Prepare(&run, &b.states)
	k.n, k.scratch, k.state = b.n, run.Scratch, run.State
	return err
}
