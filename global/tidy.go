package global

import (
	"slices"

	"plumb/graph"
	"plumb/op"
)

// Pass rewrites the boxings of a plan. It changes no bit of a result.
type Pass struct {
	Name string
	Doc  string
	// Run returns how many changes it made.
	Run func(p *Plan) int
}

// Passes returns the passes in the order in which Tidy applies them.
func Passes() []Pass {
	return []Pass{
		{"merge", "boxes a value to an sbp once", merge},
		{"reroute", "boxes a value from the copy that costs least", reroute},
		{"move", "boxes the result of an elementwise call instead of its argument", move},
		{"drop", "leaves out boxings that nothing reads", drop},
	}
}

// Tidy applies passes to a plan, and returns how many changes each made.
func (p *Plan) Tidy(passes []Pass) []int {
	var changes []int
	for _, pass := range passes {
		changes = append(changes, pass.Run(p))
	}
	return changes
}

// Copy returns a plan of its own actions.
func (p *Plan) Copy() *Plan {
	q := *p
	q.Actions, q.Outputs = nil, slices.Clone(p.Outputs)
	for _, a := range p.Actions {
		b := *a
		b.From, b.To = slices.Clone(a.From), slices.Clone(a.To)
		q.Actions = append(q.Actions, &b)
	}
	return &q
}

// replace puts other parts in the place of some, wherever they are read.
func (p *Plan) replace(by map[*Held]*Held) {
	put := func(all []*Held) {
		for i, h := range all {
			for by[h] != nil {
				h = by[h]
			}
			all[i] = h
		}
	}
	for _, a := range p.Actions {
		put(a.From)
	}
	put(p.Outputs)
}

// merge keeps the first of several boxings of a value to one sbp.
func merge(p *Plan) int {
	by, first := map[*Held]*Held{}, map[*graph.Value][]*Held{}
	for _, a := range p.Actions {
		for _, h := range a.To {
			same := slices.IndexFunc(first[h.Value], func(o *Held) bool { return slices.Equal(o.SBP, h.SBP) })
			if same >= 0 && a.boxes() {
				by[h] = first[h.Value][same]
				continue
			}
			first[h.Value] = append(first[h.Value], h)
		}
	}
	p.replace(by)
	p.Actions = slices.DeleteFunc(p.Actions, func(a *Action) bool { return a.boxes() && by[a.To[0]] != nil })
	return len(by)
}

// reroute takes each boxing's source from the copies that are there by then. A
// sum is taken where it was made at once, so that it is rounded alike.
func reroute(p *Plan) int {
	b := &planning{plan: p, costs: map[boxing]int{}}
	changes := 0
	copies := map[*graph.Value][]*Held{}
	for _, a := range p.Actions {
		if a.boxes() {
			h, from := a.To[0], a.From[0]
			for _, o := range copies[h.Value] {
				if !slices.Contains(o.SBP, op.P) && !slices.Contains(h.SBP, op.P) && b.cost(h.Value, o.SBP, h.SBP) < b.cost(h.Value, from.SBP, h.SBP) {
					from = o
				}
			}
			if from != a.From[0] {
				a.From[0] = from
				changes++
			}
		}
		for _, h := range a.To {
			copies[h.Value] = append(copies[h.Value], h)
		}
	}
	return changes
}

// move runs an elementwise call of one argument on the parts that there were
// before its argument was boxed, and boxes the result, where that moves fewer
// bytes or makes the boxing of the result one with another.
func move(p *Plan) int {
	changes := 0
	makers := map[*Held]int{}
	for i, a := range p.Actions {
		for _, h := range a.To {
			makers[h] = i
		}
	}
	readers := map[*Held]int{}
	for _, a := range p.Actions {
		for _, h := range a.From {
			readers[h]++
		}
	}
	for _, h := range p.Outputs {
		readers[h]++
	}
	for i, a := range p.Actions {
		if a.boxes() || a.Node.Kind != graph.Apply || len(a.From) != 1 || len(a.To) != 1 || len(a.Node.Mutated) > 0 {
			continue
		}
		boxing := p.Actions[makers[a.From[0]]]
		if !boxing.boxes() || readers[a.From[0]] != 1 {
			continue
		}
		before, after := boxing.From[0], a.To[0]
		signature := p.elementwise(a.Node, before.SBP)
		if signature == nil || !slices.Equal(a.From[0].SBP, after.SBP) {
			continue
		}
		result := &Held{after.Value, before.SBP}
		later := &Action{From: []*Held{result}, To: []*Held{after}}
		if p.moved(later).total() >= p.moved(boxing).total() {
			continue
		}
		// The boxing's place is taken by the call, the call's by the boxing.
		at := makers[a.From[0]]
		call := &Action{Node: a.Node, Signature: signature, From: []*Held{before}, To: []*Held{result}}
		p.Actions[at], p.Actions[i] = call, later
		makers[result], makers[after] = at, i
		readers[result] = 1
		changes++
	}
	return changes
}

// elementwise returns the signature by which a call takes its argument and leaves
// its result by one sbp without sums; nil where there is none.
func (p *Plan) elementwise(n *graph.Node, s SBP) []op.Sharding {
	if slices.Contains(s, op.P) {
		return nil
	}
	rt := &Runtime{Placement: p.Placement}
	l, err := rt.launch(n.Call, p.Placement, func(op.Value) (SBP, error) { return s, nil })
	if err != nil || n.Call.Def.Traits.Has(op.Random) || !slices.Equal(n.Out[0].Shape(), n.Args()[0].Shape()) || n.Call.Def.Tol.Class != op.Exact {
		return nil
	}
	for _, o := range l.options(n) {
		if slices.Equal(o.wants[0], s) && slices.Equal(o.gives[0], s) {
			return o.signature
		}
	}
	return nil
}

// drop leaves out boxings that nothing reads.
func drop(p *Plan) int {
	changes := 0
	for {
		read := map[*Held]bool{}
		for _, a := range p.Actions {
			for _, h := range a.From {
				read[h] = true
			}
		}
		for _, h := range p.Outputs {
			read[h] = true
		}
		n := len(p.Actions)
		p.Actions = slices.DeleteFunc(p.Actions, func(a *Action) bool { return a.boxes() && !read[a.To[0]] })
		if len(p.Actions) == n {
			return changes
		}
		changes += n - len(p.Actions)
	}
}
