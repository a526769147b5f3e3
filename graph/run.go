package graph

import (
	"fmt"
	"sync"

	"plumb/internal/draw/choice"
	"plumb/op"
	"plumb/tensor"
)

// Compiled is code with its plan, ready to run.
type Compiled struct {
	Code   *Code
	Stages []Stage
	plan   *plan
	block  int
	watch  func()
	arenas sync.Pool // of *[]byte: what earlier runs left
	device *op.Device
	stream int
	states op.States
}

// Memory returns what the plan expects.
func (c *Compiled) Memory() Memory { return c.plan.memory }

// defaultBlock is how many elements a fused loop takes at a time: a few
// operands of float32 fit the cache nearest to a core but one.
const defaultBlock = 1 << 14

// Run computes the outputs. Inputs must have the signature that was traced;
// seed is what the draws of random operators follow from. The error is an
// *Error that wraps the operator's; the outputs that were computed before it
// are returned beside it, the others are nil. Inputs that are donated hold
// anything afterwards; results may lie in their memory.
func (c *Compiled) Run(seed uint64, inputs []*tensor.Tensor) ([]*tensor.Tensor, error) {
	return c.runFrom(seed, 0, inputs)
}

// runFrom is Run after so many draws.
func (c *Compiled) runFrom(seed uint64, drawn int, inputs []*tensor.Tensor) ([]*tensor.Tensor, error) {
	if err := c.accepts(inputs); err != nil {
		return nil, err
	}
	r := &execution{Compiled: c, seed: seed, drawn: drawn, env: make([]*tensor.Tensor, c.Code.values)}
	if c.plan.arena > 0 {
		r.arena = c.arena()
		defer c.arenas.Put(r.arena)
	}
	if inputs, err := c.placed(inputs); err != nil {
		return nil, &Error{Graph: c.Code.Name, Err: err}
	} else {
		for i, v := range c.Code.Inputs {
			r.env[v.id] = inputs[i]
		}
	}
	var failed error
	for i, n := range c.Code.Nodes {
		if err := r.node(n); err != nil {
			failed = c.Code.Failure(n, err)
			break
		}
		if c.watch != nil {
			c.watch()
		}
		for _, id := range c.plan.release[i] {
			r.env[id] = nil
		}
	}
	out := make([]*tensor.Tensor, len(c.Code.Outputs))
	for i, v := range c.Code.Outputs {
		out[i] = r.env[v.id]
	}
	return out, failed
}

// placed returns inputs where the graph runs.
func (c *Compiled) placed(inputs []*tensor.Tensor) ([]*tensor.Tensor, error) {
	if c.device == nil {
		return inputs, nil
	}
	move := tensor.Move{To: c.device, Stream: c.stream}
	out := make([]*tensor.Tensor, len(inputs))
	for i, t := range inputs {
		var err error
		if out[i], err = move.Tensor(t); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (c *Compiled) accepts(inputs []*tensor.Tensor) error {
	if len(inputs) != len(c.Code.Inputs) {
		return &Error{Graph: c.Code.Name, Err: fmt.Errorf("%d inputs instead of %d", len(inputs), len(c.Code.Inputs))}
	}
	for i, v := range c.Code.Inputs {
		if !sameMeta(inputs[i], v) {
			return &Error{Graph: c.Code.Name, Err: fmt.Errorf("input %s is %s with strides %v; it was compiled for %s", v.node.Name, inputs[i], inputs[i].Strides(), describe(v))}
		}
	}
	for _, i := range c.Code.donated {
		for j, t := range inputs {
			if i != j && t.SharesStorage(inputs[i]) {
				return &Error{Graph: c.Code.Name, Err: fmt.Errorf("input %s is donated and shares its memory with input %s", c.Code.Inputs[i].node.Name, c.Code.Inputs[j].node.Name)}
			}
		}
	}
	return nil
}

// arena returns memory for the pieces, whose bytes may be anything.
func (c *Compiled) arena() *[]byte {
	if a, ok := c.arenas.Get().(*[]byte); ok {
		return a
	}
	a := tensor.Unset(tensor.U8, []int{c.plan.arena}, nil).Storage()
	return &a
}

// execution is one run.
type execution struct {
	*Compiled
	seed  uint64
	drawn int              // before the run
	env   []*tensor.Tensor // by value id
	arena *[]byte
	homes map[*piece][]byte // of outputs that have lodgers
}

func (r *execution) node(n *Node) error {
	switch n.Kind {
	case Constant:
		ts, err := r.placed([]*tensor.Tensor{n.Const})
		if err != nil {
			return err
		}
		r.env[n.Out[0].id] = ts[0]
	case Apply:
		return r.apply(n)
	case Arrange:
		r.env[n.Out[0].id] = r.env[n.source.id].CloneStrided(n.Out[0].Strides())
	case Fused:
		return r.fused(n)
	}
	return nil
}

// apply runs a call. What it changes is a copy of its argument.
func (r *execution) apply(n *Node) error {
	copies := map[*Value]*tensor.Tensor{}
	results := n.Out[:len(n.Out)-len(n.Mutated)]
	for i, name := range n.Mutated {
		v := n.Call.Args.Value(name).(*Value)
		t := r.env[v.id].CloneStrided(v.Strides())
		copies[v], r.env[n.Out[len(results)+i].id] = t, t
	}
	call := *n.Call
	call.Device, call.Stream, call.States = r.device, r.stream, &r.states
	call.Args = mapped(call.Args, func(v *Value) op.Value {
		if t := copies[v]; t != nil {
			return t
		}
		return r.env[v.id]
	})
	if call.Def.Traits.Has(op.Random) {
		call.Key = choice.Derive(r.seed, uint64(r.drawn+call.Draw))
	}
	out, err := call.ExecuteInto(func(i int, m op.Meta) *tensor.Tensor { return r.memory(n.Out[i], m) })
	if err != nil {
		return err
	}
	for i, v := range results {
		if !sameMeta(out[i], v) {
			return fmt.Errorf("result %d is %s with strides %v; inferred was %s", i, out[i], out[i].Strides(), describe(v))
		}
		r.env[v.id] = out[i]
	}
	return nil
}

// home returns the memory of an output that has lodgers.
func (r *execution) home(s *piece) []byte {
	if r.homes == nil {
		r.homes = map[*piece][]byte{}
	}
	if r.homes[s] == nil {
		r.homes[s] = tensor.Unset(tensor.U8, []int{s.size}, nil).Storage()
	}
	return r.homes[s]
}

// memory returns where a result goes.
func (r *execution) memory(v *Value, m op.Meta) *tensor.Tensor {
	offset, bytes := 0, []byte(nil)
	if u, over := r.plan.over[v.id]; over {
		offset, bytes = r.env[u].Offset(), r.env[u].Storage()
	} else {
		s := &r.plan.pieces[r.plan.piece[v.id]]
		switch {
		case s.home != nil:
			bytes = r.home(s.home)[s.at:][:v.bytes():v.bytes()]
		case s.at >= 0:
			bytes = (*r.arena)[s.at:][:v.bytes():v.bytes()]
		case len(s.lodgers) > 0:
			bytes = r.home(s)
		default:
			return tensor.Unset(m.DType, m.Shape, m.Strides)
		}
	}
	t, err := tensor.FromBytes(v.DType(), v.Shape(), v.Strides(), offset, bytes)
	if err != nil {
		panic(fmt.Sprintf("graph: memory of %s: %v", describe(v), err))
	}
	return t
}
