package global

import (
	"context"
	"fmt"
	"slices"

	"plumb/graph"
	"plumb/op"
	"plumb/tensor"
)

// Ran is what a plan computed.
type Ran struct {
	// Outputs are those of the code; nil, those that were not reached.
	Outputs []*Tensor
	// Infinite says that a summand, or a sum of them, is not finite: infinities are
	// no sums of finite parts.
	Infinite bool
	// Bytes is how many travelled between ranks, Memory how many the first rank's
	// parts took at once.
	Bytes, Memory int
}

// Run computes the graph of the code's inputs, which are brought to where the
// plan has them; key is what the draws of a random call follow from. An error of
// a node is a *graph.Error, and leaves what was computed before it.
func (p *Plan) Run(ctx context.Context, inputs []*tensor.Tensor, key func(draw int) uint64) (*Ran, error) {
	r := &planRun{Plan: p, ctx: ctx, key: key, env: map[*Held]*Tensor{}, ran: &Ran{Outputs: make([]*Tensor, len(p.Outputs))}}
	if len(inputs) != len(p.Code.Inputs) {
		return r.ran, fmt.Errorf("graph %s: %d inputs instead of %d", p.Code.Name, len(inputs), len(p.Code.Inputs))
	}
	done := map[int][]*Held{}
	for h, i := range p.lastUses() {
		done[i] = append(done[i], h)
	}
	held := 0
	for i, a := range p.Actions {
		if err := r.act(a, inputs); err != nil {
			return r.finish(), p.Code.Failure(a.about(), err)
		}
		for _, h := range a.To {
			held += r.env[h].firstBytes()
		}
		r.ran.Memory = max(r.ran.Memory, held)
		for _, h := range done[i] {
			held -= r.env[h].firstBytes()
			delete(r.env, h)
		}
	}
	return r.finish(), nil
}

// about is the node of an action, or that whose value is boxed.
func (a *Action) about() *graph.Node {
	if a.boxes() {
		return a.From[0].Value.Node()
	}
	return a.Node
}

type planRun struct {
	*Plan
	ctx context.Context
	key func(draw int) uint64
	env map[*Held]*Tensor
	ran *Ran
}

// firstBytes is the size of the first rank's part.
func (t *Tensor) firstBytes() int { return t.parts[0].Len() * t.meta.DType.Size() }

// finish gives each output as the plan has it or, where that was not reached, as
// it was made.
func (r *planRun) finish() *Ran {
	made := map[*graph.Value]*Tensor{}
	for _, a := range r.Actions {
		for _, h := range a.To {
			if x := r.env[h]; x != nil && made[h.Value] == nil {
				made[h.Value] = x
			}
		}
	}
	for i, h := range r.Outputs {
		if r.ran.Outputs[i] = r.env[h]; r.env[h] == nil {
			r.ran.Outputs[i] = made[h.Value]
		}
	}
	return r.ran
}

func (r *planRun) act(a *Action, inputs []*tensor.Tensor) error {
	if a.boxes() {
		return r.boxing(a)
	}
	switch a.Node.Kind {
	case graph.Input:
		return r.made(a.To[0], inputs[slices.Index(r.Code.Inputs, a.Node.Out[0])])
	case graph.Constant:
		return r.made(a.To[0], a.Node.Const)
	case graph.Arrange:
		x := *r.env[a.From[0]]
		x.meta.Strides = a.Node.Out[0].Strides()
		r.env[a.To[0]] = &x
		return nil
	}
	return r.call(a)
}

func (r *planRun) made(h *Held, x *tensor.Tensor) (err error) {
	r.env[h], err = FromLocal(x, r.Placement, h.SBP)
	return err
}

func (r *planRun) boxing(a *Action) error {
	x := r.env[a.From[0]]
	y, err := x.box(r.ctx, r.Placement, a.To[0].SBP)
	if err != nil {
		return err
	}
	r.env[a.To[0]] = y
	r.ran.Bytes += x.Bytes(r.Placement, y.sbp)
	r.ran.Infinite = r.ran.Infinite || slices.Contains(x.sbp, op.P) && y.infinite()
	return nil
}

// call runs a node's call. What it changes is a copy of its argument.
func (r *planRun) call(a *Action) error {
	call := *a.Node.Call
	if call.Def.Traits.Has(op.Random) {
		call.Key = r.key(call.Draw)
	}
	l, err := (&Runtime{Placement: r.Placement}).launch(&call, r.Placement, func(op.Value) (SBP, error) { return nil, nil })
	if err != nil {
		return err
	}
	l.signature = a.Signature
	for i, h := range a.From {
		x := r.env[h]
		if l.mutates(i) {
			x = x.ownCopy()
		}
		l.boxed = append(l.boxed, x)
	}
	out, err := l.compute(r.ctx)
	if err != nil {
		return err
	}
	for _, arg := range a.Node.Mutated {
		out = append(out, l.boxed[slices.Index(l.names, arg.Name())])
	}
	for i, h := range a.To {
		r.env[h] = out[i]
		r.ran.Infinite = r.ran.Infinite || slices.Contains(h.SBP, op.P) && out[i].infinite()
	}
	return nil
}
