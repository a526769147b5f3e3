package graph

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"plumb/internal/arg"
	"plumb/internal/draw/choice"
	"plumb/nn"
	"plumb/op"
	"plumb/ops"
	"plumb/optim"
	"plumb/tensor"
)

// trainFault is a fault of training: a wrong pass, something wrong that the
// function does to the stage that calls it, or to what was compiled.
type trainFault struct {
	stage, what string
	pass        func(c *Code) (int, error)
	call        func(b *Builder)
	compiled    func(g *Graph, e *entry)
}

// changed is a pass that puts a constant in the place of an input.
func changed(name string, by func(v *Value) *tensor.Tensor) func(c *Code) (int, error) {
	return func(c *Code) (int, error) {
		for i, v := range c.Inputs {
			if !strings.HasPrefix(v.node.Name, name) {
				continue
			}
			n := &Node{Kind: Constant, Const: by(v)}
			u := &Value{node: n, id: c.values, layout: v.layout}
			n.Out = []*Value{u}
			c.values++
			c.substitute(map[*Value]*Value{v: u})
			c.Nodes = slices.Insert(c.Nodes, i, n)
		}
		return 1, nil
	}
}

// narrowed is a pass that changes where micro-batches start.
func narrowed(start func(old, size int) int) func(c *Code) (int, error) {
	return func(c *Code) (int, error) {
		for _, n := range c.Nodes {
			if n.op() != "narrow" || n.Of != nil {
				continue
			}
			call := *n.Call
			call.Args.Vals = slices.Clone(call.Args.Vals)
			at := call.Args.Sig.Index(arg.Start)
			call.Args.Vals[at] = start(call.Args.Int("start"), call.Args.Int("length"))
			n.Call = &call
		}
		return 1, nil
	}
}

var trainFaults = []trainFault{
	{stage: "accumulate", what: "weighs by one micro-batch too many", call: func(b *Builder) {
		if n := 1 / b.training.weight; n > 1 {
			b.training.weight = 1 / (n + 1)
		}
	}},
	{stage: "accumulate", what: "adds up and does not weigh", call: func(b *Builder) { b.training.weight = 1 }},
	{stage: "accumulate", what: "forgets the micro-batches before", call: func(b *Builder) { clear(b.training.grads) }},
	{stage: "accumulate", what: "leaves out the last micro-batch", call: func(b *Builder) {
		if b.marked == 4 {
			b.training.weight = 0
		}
	}},
	{stage: "accumulate", what: "takes the first micro-batch each time", pass: narrowed(func(int, int) int { return 0 })},
	{stage: "accumulate", what: "overlaps micro-batches", pass: narrowed(func(old, size int) int { return old - old/size })},
	{stage: "update", what: "has the rate of another group", pass: changed("rate", func(*Value) *tensor.Tensor { return tensor.Scalar(tensor.F64, 0.02) })},
	{stage: "update", what: "leaves parameters as they are", compiled: func(_ *Graph, e *entry) { e.change.cells = nil }},
	{stage: "state", what: "keeps the learning rate of the first step", pass: changed("rate", func(*Value) *tensor.Tensor { return tensor.Scalar(tensor.F64, 0.1) })},
	{stage: "state", what: "does not carry momentum", compiled: func(_ *Graph, e *entry) { e.change.states = make([][]stateChange, 1) }},
	{stage: "state", what: "begins momentum anew", pass: changed("momentum_buffer", func(v *Value) *tensor.Tensor { return tensor.New(v.DType(), v.Shape()...) })},
	{stage: "state", what: "draws the same in each step", compiled: func(_ *Graph, e *entry) { e.draws = 0 }},
	{stage: "state", what: "forgets a draw", compiled: func(_ *Graph, e *entry) { e.draws-- }},
	{stage: "state", what: "does not step the schedule", compiled: func(g *Graph, _ *entry) { g.optimizers[0].schedule = nil }},
	{stage: "state", what: "steps the schedule twice", compiled: func(g *Graph, _ *entry) { g.optimizers[0].schedule = twice{g.optimizers[0].schedule} }},
	{stage: "recompute", what: "draws anew", pass: repeating(func(n *Node) *Node {
		m := n.again()
		if n.Kind == Apply && n.Call.Def.Traits.Has(op.Random) {
			call := *n.Call
			call.Draw += 100
			m.Call = &call
		}
		return m
	}).run},
	{stage: "recompute", what: "updates running statistics twice", pass: func(c *Code) (int, error) {
		var twice []*Node
		by := map[*Value]*Value{}
		for _, n := range c.Nodes {
			if n.op() != "batch_norm.update" {
				continue
			}
			for i, name := range []op.TensorArg{arg.RunningMean, arg.RunningVar} {
				by[n.Call.Args.Value(name).(*Value)] = n.Out[i]
			}
			m := n.again()
			m.replace(func(v *Value) *Value {
				if u := by[v]; u != nil {
					return u
				}
				return v
			})
			for i, v := range n.Out {
				u := *v
				u.id, u.node = c.values, m
				c.values++
				m.Out[i] = &u
				if at := slices.Index(c.Outputs, v); at >= 0 {
					c.Outputs[at] = &u
				}
			}
			twice = append(twice, m)
		}
		c.Nodes = append(c.Nodes, twice...)
		return len(twice), nil
	}},
	{stage: "recompute", what: "computes again after it is read", pass: func(c *Code) (int, error) {
		n, err := recompute(c)
		slices.SortStableFunc(c.Nodes, func(a, b *Node) int { return a.Repeats - b.Repeats })
		return n, err
	}},
	{stage: "recompute", what: "loses the order of what it repeats", pass: func(c *Code) (int, error) {
		n, err := recompute(c)
		for i := 0; i < len(c.Nodes)-1; i++ {
			if c.Nodes[i].Repeats != 0 && c.Nodes[i+1].Repeats != 0 {
				c.Nodes[i], c.Nodes[i+1] = c.Nodes[i+1], c.Nodes[i]
				i++
			}
		}
		return n, err
	}},
	{stage: "recompute", what: "takes the parts' inputs for one another", pass: func(c *Code) (int, error) {
		var before *Node
		return repeating(func(n *Node) *Node {
			m := n.again()
			if before != nil && before.op() == n.op() && before.Part != n.Part && len(n.Args()) > 0 && alike(n.Args()[0], before.Args()[0]) {
				m.replace(func(v *Value) *Value {
					if v == n.Args()[0] {
						return before.Args()[0]
					}
					return v
				})
			}
			if n.op() == "linear" {
				before = n
			}
			return m
		}).run(c)
	}},
}

type twice struct{ optim.Schedule }

func (s twice) Step() error {
	if err := s.Schedule.Step(); err != nil {
		return err
	}
	return s.Schedule.Step()
}

// faultyNetwork is a graph that trains two marked parts, with a fault; it
// returns what the graph gives and leaves after some steps.
type faultyNetwork struct {
	*Graph
	m     *nn.Module
	fault trainFault
}

func trainable2(t *testing.T, f trainFault, parts int, o Options) *faultyNetwork {
	t.Helper()
	var layers []any
	for _, size := range [][2]int{{5, 5}, {5, 5}} {
		for _, l := range []struct {
			name string
			args []any
		}{{"Linear", []any{size[0], size[1]}}, {"Dropout", []any{0.5}}, {"BatchNorm1d", []any{size[1]}}, {"Sigmoid", nil}} {
			m, err := nn.Modules().Lookup("torch.nn."+l.name).New(l.args, nil)
			if err != nil {
				t.Fatal(err)
			}
			layers = append(layers, m)
		}
	}
	m, err := nn.Modules().Lookup("torch.nn.Sequential").New(layers, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range m.State() {
		if s.Kind == nn.Param {
			if err := m.Load(s.Name, drawn(uint64(i), s.Shape...)); err != nil {
				t.Fatal(err)
			}
		}
	}
	n := &faultyNetwork{m: m, fault: f}
	n.Graph = New(ops.Table(), "faulty", n.loss, o)
	opt, err := optim.Lookup("SGD").New(optim.Parameters(m), nil, op.Kw("lr", 0.1), op.Kw("momentum", 0.9))
	if err != nil {
		t.Fatal(err)
	}
	schedule, err := optim.LookupSchedule("ExponentialLR").New(opt, nil, op.Kw("gamma", 0.5))
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{n.AddModule("", m), n.AddOptimizer(opt, schedule), n.Accumulate(parts)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return n
}

func drawn(key uint64, shape ...int) *tensor.Tensor {
	t, s := tensor.New(tensor.F32, shape...), choice.New(key)
	for i := range t.Len() {
		t.Set(i, complex(float64(s.Int(-1000, 1000))/1000, 0))
	}
	return t
}

func (n *faultyNetwork) loss(b *Builder, x ...op.Value) []op.Value {
	if n.fault.call != nil {
		n.fault.call(b)
	}
	h := []op.Value{x[0]}
	for i := 0; i < len(n.m.Children); i += 4 {
		h = b.Checkpoint(func(h ...op.Value) []op.Value {
			for _, c := range n.m.Children[i : i+4] {
				out, err := c.Call(b.Builder, []any{h[0]}, nil)
				if err != nil {
					op.Fail(err)
				}
				h = out
			}
			return h
		}, h...)
	}
	loss := b.Op("mse_loss", h[0], x[1])
	b.Backward(loss)
	return []op.Value{loss}
}

// train takes steps, and returns results and parameters of each.
func (n *faultyNetwork) train(steps int) ([]*tensor.Tensor, error) {
	var out []*tensor.Tensor
	known := map[*entry]bool{}
	for i := range steps {
		x, y := drawn(uint64(100+i), 6, 5), drawn(uint64(200+i), 6, 5)
		if n.fault.compiled != nil {
			if _, err := n.Compile(x, y); err != nil {
				return nil, err
			}
			for e := range maps.Values(n.compiled) {
				if !known[e] {
					known[e] = true
					n.fault.compiled(n.Graph, e)
				}
			}
		}
		ts, err := n.Run(x, y)
		if err != nil {
			return nil, err
		}
		out = append(out, ts...)
		for _, e := range n.m.StateDict() {
			out = append(out, e.Value.(*tensor.Tensor))
		}
	}
	return out, nil
}

// blamed names the first stage with which training is wrong: one update, one
// of several micro-batches, several steps; then the first pass.
func (f trainFault) blamed(t *testing.T, passes []Pass) string {
	wrong := func(parts, steps int, o Options) bool {
		want, err := trainable2(t, trainFault{}, parts, Options{Without: []string{All}}).train(steps)
		if err != nil {
			t.Fatal(err)
		}
		got, err := trainable2(t, f, parts, o).train(steps)
		return err != nil || !equal(got, want)
	}
	plain := Options{Without: []string{Reuse}, Passes: []Pass{}}
	if f.pass != nil && f.stage != "recompute" {
		plain.Passes = []Pass{{Name: f.stage, Run: f.pass}}
	}
	for _, s := range []struct {
		stage        string
		parts, steps int
	}{{"update", 1, 1}, {"accumulate", 3, 1}, {"state", 1, 4}} {
		if wrong(s.parts, s.steps, plain) {
			return s.stage
		}
	}
	for i := range passes {
		if wrong(3, 4, Options{Passes: passes[:i+1], Block: 5}) {
			return passes[i].Name
		}
	}
	return ""
}

// TestPlantedTrainingFaults plants faults in the stages and the pass that
// training has, and expects each to be found and its stage to be named.
func TestPlantedTrainingFaults(t *testing.T) {
	for _, f := range append([]trainFault{{}}, trainFaults...) {
		passes := Passes()
		if f.stage == "recompute" {
			at := slices.IndexFunc(passes, func(p Pass) bool { return p.Name == f.stage })
			passes[at].Run = f.pass
		}
		if got := f.blamed(t, passes); got != f.stage {
			t.Errorf("%s: %s: stage %q is blamed", f.stage, f.what, got)
		}
	}
	t.Logf("%d faults", len(trainFaults))
}
