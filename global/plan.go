package global

import (
	"fmt"
	"maps"
	"slices"

	"plumb/graph"
	"plumb/op"
	"plumb/tensor"
)

// Plan is a graph as ranks run it: by which signature they compute each node,
// and which values are boxed in between.
type Plan struct {
	Code      *graph.Code
	Placement Placement
	Actions   []*Action
	Outputs   []*Held // by those of Code
}

// Held is a value of a graph as ranks share it.
type Held struct {
	Value *graph.Value
	SBP   SBP
}

// Action is a step of a plan: a node, or the boxing of a value.
type Action struct {
	Node *graph.Node // nil of a boxing
	// Signature has a Sharding for each dimension of the hierarchy, of a call.
	Signature []op.Sharding
	// Gathered says why all ranks compute the whole, as in Step.
	Gathered string
	From, To []*Held
}

// Lies says how ranks share an input or a constant of a graph.
type Lies func(v *graph.Value) SBP

// Plan chooses the signatures call by call, as Execute does: arguments are
// boxed each time that a call needs them otherwise than they were made.
func (rt *Runtime) Plan(code *graph.Code, lies Lies) (*Plan, error) {
	b := rt.planning(code)
	err := b.nodes(lies, func(_ *graph.Node, l *launch) { l.plan() })
	return b.plan, err
}

// planning writes a plan, action by action.
type planning struct {
	rt   *Runtime
	plan *Plan
	// copies are how each value is held, the first as it was made.
	copies map[*graph.Value][]*Held
	// shared has boxed values serve all calls that need them so.
	shared bool
	costs  map[boxing]int
}

// boxing is one of a value, by the codes of both sbps.
type boxing struct {
	value    *graph.Value
	from, to uint64
}

func (rt *Runtime) planning(code *graph.Code) *planning {
	return &planning{rt: rt, plan: &Plan{Code: code, Placement: rt.Placement}, copies: map[*graph.Value][]*Held{}, costs: map[boxing]int{}}
}

// nodes plans the code; choose gives a call its signature.
func (b *planning) nodes(lies Lies, choose func(n *graph.Node, l *launch)) error {
	for _, n := range b.plan.Code.Nodes {
		a := &Action{Node: n}
		switch n.Kind {
		case graph.Input, graph.Constant:
			s := lies(n.Out[0])
			if err := s.Check(b.plan.Placement, n.Out[0].Shape()); err != nil {
				return b.plan.Code.Failure(n, err)
			}
			a.To = []*Held{{n.Out[0], s}}
		case graph.Arrange:
			from := b.copies[n.Args()[0]][0]
			a.From, a.To = []*Held{from}, []*Held{{n.Out[0], from.SBP}}
		case graph.Apply:
			l, err := b.launch(n)
			if err != nil {
				return b.plan.Code.Failure(n, err)
			}
			choose(n, l)
			b.call(a, l)
		default:
			return fmt.Errorf("a plan over ranks has no node of kind %s", n.Kind)
		}
		b.plan.Actions = append(b.plan.Actions, a)
		for _, h := range a.To {
			b.copies[h.Value] = []*Held{h}
			if s := b.rt.demand(h.Value); s != nil {
				b.copies[h.Value] = []*Held{b.need(h.Value, s)}
			}
		}
	}
	for _, v := range b.plan.Code.Outputs {
		h := b.copies[v][0]
		b.plan.Outputs = append(b.plan.Outputs, b.need(v, summed(h.SBP)))
	}
	return nil
}

// demand is how a value has to lie; nil where that is free, or cannot be.
func (rt *Runtime) demand(v *graph.Value) SBP {
	if s := rt.Demands[v]; s != nil && s.Check(rt.Placement, v.Shape()) == nil {
		return s
	}
	return nil
}

// launch is the call of a node, with its arguments as they were made.
func (b *planning) launch(n *graph.Node) (*launch, error) {
	return b.rt.launch(n.Call, b.plan.Placement, func(v op.Value) (SBP, error) { return b.copies[v.(*graph.Value)][0].SBP, nil })
}

// call boxes the arguments of a call, whose signature is chosen.
func (b *planning) call(a *Action, l *launch) {
	a.Signature, a.Gathered = l.signature, l.step.Gathered
	for i, v := range l.call.Args.AllValues() {
		a.From = append(a.From, b.need(v.(*graph.Value), l.wants(i)))
	}
	results := len(a.Node.Out) - len(a.Node.Mutated)
	for i, v := range a.Node.Out[:results] {
		a.To = append(a.To, &Held{v, l.gives(i)})
	}
	for i, arg := range a.Node.Mutated {
		a.To = append(a.To, &Held{a.Node.Out[results+i], l.wants(slices.Index(l.names, arg.Name()))})
	}
}

// need returns the value as a call needs it: as it is held, or boxed.
func (b *planning) need(v *graph.Value, s SBP) *Held {
	held := b.copies[v]
	if i := slices.IndexFunc(held, func(h *Held) bool { return slices.Equal(h.SBP, s) }); i >= 0 {
		return held[i]
	}
	from := held[0]
	if b.shared {
		for _, h := range held[1:] {
			if b.cost(v, h.SBP, s) < b.cost(v, from.SBP, s) {
				from = h
			}
		}
	}
	to := &Held{v, s}
	b.plan.Actions = append(b.plan.Actions, &Action{From: []*Held{from}, To: []*Held{to}})
	if b.shared {
		b.copies[v] = append(held, to)
	}
	return to
}

// cost is how many bytes a boxing moves.
func (b *planning) cost(v *graph.Value, from, to SBP) int {
	key := boxing{v, from.code(), to.code()}
	if n, known := b.costs[key]; known {
		return n
	}
	n := traffic(v.Shape(), b.plan.Placement, from, to).total() * v.DType().Size()
	b.costs[key] = n
	return n
}

// maxCoded is how many dimensions of a hierarchy code tells apart.
const maxCoded = 8

// code is a number that no other sbp of the same tensor has, unless that has
// more than 250 dimensions.
func (s SBP) code() uint64 {
	n := uint64(0)
	for _, e := range s {
		n <<= 8
		if axis, split := e.Axis(); split {
			n += uint64(axis) + 2
		} else if e == op.P {
			n++
		}
	}
	return n
}

// summed is an sbp with the sums made: what a graph returns is no summand.
func summed(s SBP) SBP {
	out := slices.Clone(s)
	for k, e := range out {
		if e == op.P {
			out[k] = op.B
		}
	}
	return out
}

// Boxes reports whether the action is a boxing.
func (a *Action) boxes() bool { return a.Node == nil }

// Traffic is how many bytes each dimension of the hierarchy carries, as in Traffic.
func (p *Plan) Traffic() Traffic {
	sum := make(Traffic, len(p.Placement.Hierarchy))
	for _, a := range p.Actions {
		for k, n := range p.moved(a) {
			sum[k] += n
		}
	}
	return sum
}

// moved is how many bytes an action moves.
func (p *Plan) moved(a *Action) Traffic {
	if !a.boxes() {
		return nil
	}
	v := a.From[0].Value
	t := traffic(v.Shape(), p.Placement, a.From[0].SBP, a.To[0].SBP)
	for k := range t {
		t[k] *= v.DType().Size()
	}
	return t
}

// Bytes is how many bytes travel between ranks.
func (p *Plan) Bytes() int { return p.Traffic().total() }

// Memory is how many bytes the first rank, which has the largest pieces, holds at
// most at once, when each part is let go after its last use.
func (p *Plan) Memory() int {
	done := map[int]int{}
	for h, i := range p.lastUses() {
		done[i] += h.bytes(p.Placement)
	}
	peak, now := 0, 0
	for i, a := range p.Actions {
		for _, h := range a.To {
			now += h.bytes(p.Placement)
		}
		peak = max(peak, now)
		now -= done[i]
	}
	return peak
}

// bytes is the size of the first rank's part.
func (h *Held) bytes(p Placement) int {
	r := h.SBP.regionOf(p, h.Value.Shape(), make([]int, len(p.Hierarchy)))
	return tensor.NumElements(r.size) * h.Value.DType().Size()
}

// lastUses tells after which action each part may be let go; those of outputs never.
func (p *Plan) lastUses() map[*Held]int {
	last := map[*Held]int{}
	for i, a := range p.Actions {
		for _, h := range append(slices.Clone(a.To), a.From...) {
			last[h] = i
		}
	}
	maps.DeleteFunc(last, func(h *Held, _ int) bool { return slices.Contains(p.Code.Outputs, h.Value) })
	return last
}
