package graph

import (
	"slices"
	"sync"

	"plumb/kernel"
	"plumb/op"
	"plumb/tensor"
)

// fused runs the calls of a group block by block, several blocks at a time.
func (r *execution) fused(n *Node) error {
	for _, v := range n.Out {
		r.env[v.id] = r.memory(v, op.Meta{DType: v.DType(), Shape: v.Shape(), Strides: v.Strides()})
	}
	var mu sync.Mutex
	var failed error
	size := tensor.NumElements(n.body[0].Out[0].Shape())
	kernel.Parallel((size+r.block-1)/r.block, 1, func(lo, hi int) {
		b := &block{execution: r, whole: size, stored: n.Out, inner: map[*Value]*tensor.Tensor{}, parts: map[*Value]*tensor.Tensor{}, chosen: make([]chosen, len(n.body))}
		for i := lo; i < hi; i++ {
			if err := b.run(n.body, i*r.block); err != nil {
				mu.Lock()
				failed = err
				mu.Unlock()
				return
			}
		}
	})
	return failed
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
}

// chosen is the kernel of a call for blocks of n elements.
type chosen struct {
	kernel  *op.Kernel
	n       int
	scratch []byte
}

// run computes the elements from position at on.
func (b *block) run(body []*Node, at int) error {
	b.at, b.n = at, min(b.block, b.whole-at)
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
	run := op.Run{Args: mapped(m.Call.Args, func(v *Value) op.Value { return b.part(v) })}
	if d.Check != nil {
		if err := d.Check(run.Args); err != nil {
			return err
		}
	}
	if d.View != nil { // a conversion
		b.result(m.Out[0]).CopyFrom(b.part(m.Args()[0]))
		return nil
	}
	if k.n != b.n {
		if err := k.choose(d, run.Args, b.n); err != nil {
			return err
		}
	}
	for _, v := range m.Out {
		run.Out = append(run.Out, b.result(v))
	}
	run.Scratch = k.scratch
	return k.kernel.Run(&run)
}

func (k *chosen) choose(d *op.Def, a op.Args, n int) (err error) {
	if k.kernel, err = d.Kernel(a); err != nil {
		return err
	}
	k.n, k.scratch = n, nil
	if k.kernel.Scratch != nil {
		k.scratch = make([]byte, k.kernel.Scratch(a))
	}
	return nil
}
