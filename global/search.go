package global

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"plumb/graph"
	"plumb/op"
)

// Search chooses the signatures of a whole graph together: those under which the
// fewest bytes travel and, of several, the ranks compute least. It is dynamic
// programming over the nodes: of the ways to reach a node that hold what is
// still needed alike, the cheapest goes on. At most width ways do; where there
// are never more of them, no plan is cheaper, and none that Plan makes ever is.
func (rt *Runtime) Search(code *graph.Code, lies Lies, width int) (*Plan, error) {
	if dims := len(rt.Placement.Hierarchy); dims > maxCoded {
		return nil, fmt.Errorf("a search over a hierarchy of %d dimensions: at most %d are supported", dims, maxCoded)
	}
	first := rt.planning(code)
	s := &search{planning: first, last: map[*graph.Value]int{}, ways: []*way{{held: map[*graph.Value][]SBP{}}}, width: width}
	for i, n := range code.Nodes {
		for _, v := range append(n.Args(), n.Out...) {
			s.last[v] = i
		}
	}
	for _, v := range code.Outputs {
		if s.last[v] < len(code.Nodes) {
			s.outputs = append(s.outputs, v)
		}
		s.last[v] = len(code.Nodes)
	}
	for i, n := range code.Nodes {
		if err := s.node(i, n, lies); err != nil {
			return nil, err
		}
	}
	for _, w := range s.ways {
		for _, v := range s.outputs {
			s.box(w, v, summed(w.held[v][0]))
		}
		w.due = 0
	}
	chosen := map[*graph.Node]*option{}
	for w := slices.MinFunc(s.ways, (*way).compare); w.before != nil; w = w.before {
		chosen[w.node] = w.by
	}
	b := rt.planning(code)
	b.shared, b.costs = true, first.costs
	err := b.nodes(lies, func(n *graph.Node, l *launch) { l.signature, l.step.Gathered = chosen[n].signature, chosen[n].gathered })
	if err != nil {
		return nil, err
	}
	greedy, err := rt.Plan(code, lies)
	if err != nil {
		return nil, err
	}
	if greedy.Tidy(Passes()); greedy.Bytes() < b.plan.Bytes() {
		return greedy, nil
	}
	return b.plan, nil
}

type search struct {
	*planning
	last    map[*graph.Value]int // the node that reads a value last
	live    []*graph.Value       // those that a later node reads
	outputs []*graph.Value
	ways    []*way
	width   int
	text    []byte
}

// way is the signatures of the nodes so far, and what they cost.
type way struct {
	held        map[*graph.Value][]SBP // of values that are still needed
	bytes, work int
	due         int // bytes that the sums among the outputs will take
	before      *way
	node        *graph.Node
	by          *option
}

func (w *way) compare(o *way) int {
	return cmp.Or(w.bytes+w.due-o.bytes-o.due, w.work-o.work)
}

// option is a signature of a node in all dimensions.
type option struct {
	signature []op.Sharding
	gathered  string
	wants     []SBP // of the arguments
	gives     []SBP // of the node's results
	work      int   // elements that all ranks read and write
}

// node brings each way beyond a node.
func (s *search) node(i int, n *graph.Node, lies Lies) error {
	var args []*graph.Value
	options := []*option{{}}
	if n.Kind == graph.Apply {
		l, err := s.rt.launch(n.Call, s.plan.Placement, func(op.Value) (SBP, error) { return nil, nil })
		if err != nil {
			return s.plan.Code.Failure(n, err)
		}
		options, args = l.options(n), n.Args()
	}
	s.live = append(s.live, n.Out...)
	s.live = slices.DeleteFunc(s.live, func(v *graph.Value) bool { return s.last[v] == i })
	best := map[string]*way{}
	var order []string
	for _, w := range s.ways {
		for _, o := range options {
			next := s.by(w, n, o, args, lies)
			if next == nil {
				continue
			}
			s.forget(next, i, n)
			s.owe(next)
			key := s.key(next)
			if b := best[key]; b == nil {
				order = append(order, key)
				best[key] = next
			} else if next.compare(b) < 0 {
				best[key] = next
			}
		}
	}
	s.ways = nil
	for _, key := range order {
		s.ways = append(s.ways, best[key])
	}
	slices.SortStableFunc(s.ways, (*way).compare)
	s.ways = s.ways[:min(len(s.ways), s.width)]
	return nil
}

// by is the way on which the node runs by an option; nil where it may not.
func (s *search) by(w *way, n *graph.Node, o *option, args []*graph.Value, lies Lies) *way {
	next := &way{held: maps.Clone(w.held), bytes: w.bytes, work: w.work + o.work, before: w, node: n, by: o}
	switch n.Kind {
	case graph.Apply:
		if !s.allowed(w, n, o, args) {
			return nil
		}
		for i, v := range args {
			s.box(next, v, o.wants[i])
		}
		for i, v := range n.Out {
			next.held[v] = []SBP{o.gives[i]}
		}
	case graph.Arrange:
		next.held[n.Out[0]] = w.held[n.Args()[0]][:1]
	default:
		next.held[n.Out[0]] = []SBP{lies(n.Out[0])}
	}
	for _, v := range n.Out {
		if to := s.rt.demand(v); to != nil {
			s.box(next, v, to)
			next.held[v] = []SBP{to}
		}
	}
	return next
}

// allowed asks the runtime about each dimension of an option.
func (s *search) allowed(w *way, n *graph.Node, o *option, args []*graph.Value) bool {
	if s.rt.Allows == nil || o.gathered != "" {
		return true
	}
	for k, sharding := range o.signature {
		priced := Option{Sharding: sharding}
		for i, v := range args {
			from := w.held[v][0][k]
			if to := o.wants[i][k]; from != to {
				priced.Moves++
				if to == op.P {
					priced.Sums++
				}
			}
		}
		if (priced.Sums > 0 || shares(sharding)) && !s.rt.Allows(priced) {
			return false
		}
	}
	return true
}

// box has a way hold a value so, boxed from what costs least.
func (s *search) box(w *way, v *graph.Value, to SBP) {
	held := w.held[v]
	if !slices.ContainsFunc(held, func(s SBP) bool { return slices.Equal(s, to) }) {
		w.bytes += s.least(v, held, to)
		w.held[v] = append(slices.Clip(held), to)
	}
}

// least is what a boxing of the copy that costs least moves.
func (s *search) least(v *graph.Value, held []SBP, to SBP) int {
	least := s.cost(v, held[0], to)
	for _, from := range held[1:] {
		least = min(least, s.cost(v, from, to))
	}
	return least
}

// owe counts what a way has to pay for outputs that it holds as summands.
func (s *search) owe(w *way) {
	w.due = 0
	for _, v := range s.outputs {
		if held := w.held[v]; len(held) > 0 && slices.Contains(held[0], op.P) {
			w.due += s.least(v, held, summed(held[0]))
		}
	}
}

// forget drops what nobody needs after node i.
func (s *search) forget(w *way, i int, n *graph.Node) {
	for _, v := range append(n.Args(), n.Out...) {
		if s.last[v] == i {
			delete(w.held, v)
		}
	}
}

// key is the same for ways that hold the same.
func (s *search) key(w *way) string {
	s.text = s.text[:0]
	for _, v := range s.live {
		s.text = binary.AppendUvarint(s.text, uint64(len(w.held[v])))
		for _, h := range w.held[v] {
			s.text = binary.AppendUvarint(s.text, h.code())
		}
	}
	return string(s.text)
}

// optionLimit bounds the signatures of a call that a search tries.
const optionLimit = 64

// options lists the signatures of a node's call in all dimensions.
func (l *launch) options(n *graph.Node) []*option {
	l.step = Step{Gathered: l.wholly()}
	var all []*option
	var dimension func(signature []op.Sharding, alone bool, corners []*op.Call)
	dimension = func(signature []op.Sharding, alone bool, corners []*op.Call) {
		k := len(signature)
		if k == len(l.placement.Hierarchy) {
			l.signature = signature
			all = append(all, l.option(n))
			return
		}
		legal := []candidate{{everywhere, true}}
		if l.step.Gathered == "" {
			legal = l.legal(k, signature, alone, corners)
		}
		for _, c := range legal {
			if len(all) < optionLimit {
				dimension(append(slices.Clone(signature), c.Sharding), c.alone, nextCorners(corners, c.Sharding, l.placement.Hierarchy[k]))
			}
		}
	}
	dimension(nil, true, []*op.Call{l.call})
	return all
}

// option describes the signature that the launch has.
func (l *launch) option(n *graph.Node) *option {
	o := &option{signature: l.signature, gathered: l.step.Gathered}
	if o.gathered == "" && !slices.ContainsFunc(o.signature, shares) {
		o.gathered = nothingCheaper
	}
	for i, v := range l.call.Args.AllValues() {
		o.wants = append(o.wants, l.wants(i))
		o.work += o.wants[i].elements(v.Shape(), l.placement)
	}
	results := len(n.Out) - len(n.Mutated)
	for i := range n.Out[:results] {
		o.gives = append(o.gives, l.gives(i))
	}
	for _, arg := range n.Mutated {
		o.gives = append(o.gives, l.wants(slices.Index(l.names, arg.Name())))
	}
	for i, v := range n.Out {
		o.work += o.gives[i].elements(v.Shape(), l.placement)
	}
	return o
}
