package graph

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"plumb/internal/eager"
	"plumb/op"
	"plumb/ops"
	"plumb/tensor"
)

// fault is a wrong pass. Pass is the name of the one that it replaces, and run
// what takes its place or, where after is set, is added to it; tamper spoils
// the plan of memory instead.
type fault struct {
	pass, what string
	run        func(c *Code) (int, error)
	after      bool
	tamper     func(p *plan, c *Code)
}

// equalTo is a pass that puts the value that a rule returns in the place of a
// node's result, without asking whether they are alike.
func equalTo(r rule) func(c *Code) (int, error) {
	return func(c *Code) (int, error) {
		count := 0
		for _, n := range c.Nodes {
			if n.Kind != Apply || len(n.Out) != 1 {
				continue
			}
			if v := r(n); v != nil && v != n.Out[0] {
				c.substitute(map[*Value]*Value{n.Out[0]: v})
				count++
			}
		}
		return count, nil
	}
}

// constantly is a pass that makes a constant of the results that a rule picks.
func constantly(x complex128, picks func(n *Node) bool) func(c *Code) (int, error) {
	return func(c *Code) (int, error) {
		count := 0
		for _, n := range c.Nodes {
			if n.Kind != Apply || !picks(n) {
				continue
			}
			v := n.Out[0]
			t := tensor.NewStrided(v.DType(), v.Shape(), v.Strides())
			for i := range t.Len() {
				t.Set(i, x)
			}
			n.Kind, n.Const, n.Call, n.viewed = Constant, t, nil, 0
			count++
		}
		return count, nil
	}
}

func id(n *Node) string { return n.op() }

func first(n *Node) *Value  { v, _ := n.Call.Args.Vals[0].(*Value); return v }
func second(n *Node) *Value { v, _ := n.Call.Args.Vals[1].(*Value); return v }

func scalar(n *Node, x float64) bool {
	if len(n.Call.Args.Vals) < 2 {
		return false
	}
	s, ok := n.Call.Args.Vals[1].(op.Scalar)
	return ok && s.Float() == x
}

// merging is common with another key.
func merging(key func(n *Node) string) func(c *Code) (int, error) {
	return func(c *Code) (int, error) {
		seen, count := map[string]*Node{}, 0
		for _, n := range c.Nodes {
			k := key(n)
			if k == "" {
				continue
			}
			m := seen[k]
			if m == nil || !alike(n.Out[0], m.Out[0]) {
				seen[k] = n
				continue
			}
			c.substitute(map[*Value]*Value{n.Out[0]: m.Out[0]})
			count++
		}
		return count, nil
	}
}

// argIDs is the id of a call and those of its tensors.
func argIDs(n *Node) string {
	if n.Kind != Apply || !n.pure() {
		return ""
	}
	return n.op() + fmt.Sprint(names(n.Args()))
}

// undone leaves out a conversion that returns to the dtype where a rule says so.
func undone(lossless func(narrow, d tensor.DType) bool) func(c *Code) (int, error) {
	return equalTo(func(n *Node) *Value {
		if !n.converts() || !n.Args()[0].node.converts() {
			return nil
		}
		x := n.Args()[0].node.Args()[0]
		if alike(x, n.Out[0]) && lossless(n.Args()[0].DType(), x.DType()) {
			return x
		}
		return nil
	})
}

func grouping(f fuser) func(c *Code) (int, error) {
	f.least = 2
	if f.order == nil {
		f.order = flatOrder
	}
	if f.apart == nil {
		f.apart = (*fuser).detour
	}
	return f.run
}

func joining(j joiner) func(c *Code) (int, error) {
	if j.order == nil {
		j.order = flatOrder
	}
	if j.after == nil {
		j.after = (*joiner).later
	}
	return func(c *Code) (int, error) {
		k := j
		k.code = c
		return k.run()
	}
}

// anyOrder takes calls of one dense result and arguments like it, whatever they compute.
func anyOrder(n *Node) string {
	if n.Kind != Apply || !n.pure() || len(n.Out) != 1 || n.Call.Def.View != nil || len(n.Args()) == 0 {
		return ""
	}
	order := denseOrder(n.Out[0])
	for _, v := range n.Args() {
		if denseOrder(v) != order {
			return ""
		}
	}
	return order
}

// respread spoils how arguments lie under the results of fused calls.
func respread(spoil func(s *spread)) func(c *Code) (int, error) {
	return func(c *Code) (int, error) {
		for _, n := range c.Nodes {
			for _, m := range n.body {
				for _, s := range m.spreads {
					if s != nil {
						spoil(s)
					}
				}
			}
		}
		return 1, nil
	}
}

var faults = []fault{
	{pass: "dead", what: "leaves out what only outputs need", run: func(c *Code) (int, error) {
		users := c.users()
		c.Nodes = slices.DeleteFunc(c.Nodes, func(n *Node) bool { return n.Kind == Apply && len(users[n.Out[0]]) == 0 })
		return 1, nil
	}},
	{pass: "dead", what: "looks at the first argument only", run: func(c *Code) (int, error) {
		used := map[*Value]bool{}
		for _, v := range c.Outputs {
			used[v] = true
		}
		for i := len(c.Nodes) - 1; i >= 0; i-- {
			n := c.Nodes[i]
			if n.Kind != Input && !used[n.Out[0]] {
				c.Nodes = slices.Delete(c.Nodes, i, i+1)
			} else if args := n.Args(); len(args) > 0 {
				used[args[0]] = true
			}
		}
		return 1, nil
	}},
	{pass: "fold", what: "folds draws", run: constantly(0.5, func(n *Node) bool { return n.Call.Def.Traits.Has(op.Random) && n.Call.Def.ID() == "rand" })},
	{pass: "fold", what: "takes the dimension of a sum for its value", run: constantly(12, func(n *Node) bool { return id(n) == "sum" && len(n.Out[0].Shape()) == 0 })},
	{pass: "fold", what: "ones for zeros", run: constantly(1, func(n *Node) bool { return id(n) == "zeros" })},
	{pass: "casts", what: "drops a needed cast to float16", run: undone(func(d, _ tensor.DType) bool { return d == tensor.F16 })},
	{pass: "casts", what: "drops a needed cast to int64", run: undone(func(d, x tensor.DType) bool { return d == tensor.I64 && x.IsFloat() })},
	{pass: "casts", what: "drops a needed cast to float32", run: undone(func(d, x tensor.DType) bool { return d == tensor.F32 && x == tensor.F64 })},
	{pass: "casts", what: "drops a needed cast to int32", run: undone(func(d, x tensor.DType) bool { return d == tensor.I32 && x == tensor.I64 })},
	{pass: "casts", what: "drops a needed cast to bool", run: undone(func(d, _ tensor.DType) bool { return d == tensor.Bool })},
	{pass: "casts", what: "shortens any chain of casts", run: func(c *Code) (int, error) {
		for _, n := range c.Nodes {
			if n.converts() && n.Args()[0].node.converts() {
				x := n.Args()[0].node.Args()[0]
				if short := n.with(x); x.DType() != n.Out[0].DType() && short != nil {
					n.Call = short
				}
			}
		}
		return 1, nil
	}},
	{pass: "casts", what: "drops a cast where the dtype changes", run: equalTo(func(n *Node) *Value {
		if n.converts() {
			return n.Args()[0]
		}
		return nil
	})},
	{pass: "algebra", what: "folds x - x over NaN", run: constantly(0, func(n *Node) bool {
		return id(n) == "sub" && first(n) == second(n) && n.Out[0].DType().IsFloat()
	})},
	{pass: "algebra", what: "x·0 is 0", run: constantly(0, func(n *Node) bool { return id(n) == "mul" && scalar(n, 0) })},
	{pass: "algebra", what: "x = x holds for NaN", run: constantly(1, func(n *Node) bool { return id(n) == "eq" && first(n) == second(n) })},
	{pass: "algebra", what: "x + 0 is x for −0", run: equalTo(func(n *Node) *Value {
		if id(n) == "add" && scalar(n, 0) && alike(first(n), n.Out[0]) {
			return first(n)
		}
		return nil
	})},
	{pass: "algebra", what: "x·1 is x for any dtype", run: equalTo(func(n *Node) *Value {
		if id(n) == "mul" && scalar(n, 1) || id(n) == "div" && scalar(n, 1) {
			return first(n)
		}
		return nil
	})},
	{pass: "algebra", what: "exp is idempotent", run: equalTo(func(n *Node) *Value {
		if id(n) == "exp" {
			if m := again(n); m != nil {
				return m.Out[0]
			}
		}
		return nil
	})},
	{pass: "algebra", what: "abs is an involution", run: equalTo(func(n *Node) *Value {
		if id(n) == "abs" && again(n) != nil {
			return again(n).Args()[0]
		}
		return nil
	})},
	{pass: "algebra", what: "an idempotent call of other arguments", run: equalTo(func(n *Node) *Value {
		if v := first(n); bitwise(n, op.Idempotent) && v != nil && v.node.op() == id(n) && alike(v, n.Out[0]) {
			return v
		}
		return nil
	})},
	{pass: "algebra", what: "an involution of other arguments", run: equalTo(func(n *Node) *Value {
		if v := first(n); bitwise(n, op.Involution) && v != nil && v.node.op() == id(n) && alike(v.node.Args()[0], n.Out[0]) {
			return v.node.Args()[0]
		}
		return nil
	})},
	{pass: "algebra", what: "max(x, y) is x", run: equalTo(func(n *Node) *Value {
		if id(n) == "maximum" && alike(first(n), n.Out[0]) {
			return first(n)
		}
		return nil
	})},
	{pass: "common", what: "forgets attributes", run: merging(argIDs)},
	{pass: "common", what: "forgets the second tensor", run: merging(func(n *Node) string {
		if n.Kind != Apply || !n.pure() || len(n.Args()) != 2 {
			return ""
		}
		return id(n) + names(n.Args()[:1])
	})},
	{pass: "common", what: "takes a - b for b - a", run: merging(func(n *Node) string {
		if n.Kind != Apply || (id(n) != "sub" && id(n) != "div") || len(n.Args()) != 2 {
			return ""
		}
		ids := []int{n.Args()[0].id, n.Args()[1].id}
		slices.Sort(ids)
		return fmt.Sprint(id(n), ids)
	})},
	{pass: "common", what: "merges draws", run: merging(func(n *Node) string {
		if n.Kind != Apply || !n.Call.Def.Traits.Has(op.Random) {
			return ""
		}
		return id(n) + fmt.Sprint(n.Args()) + fmt.Sprint(n.Out[0].Shape())
	})},
	{pass: "common", what: "takes 0 for −0", run: merging(func(n *Node) string { return strings.ReplaceAll(n.key(), "-0)", "0)") })},
	{pass: "common", what: "takes constants of one shape for equal", run: merging(func(n *Node) string {
		if n.Kind != Constant {
			return ""
		}
		return describe(n.Out[0])
	})},
	{pass: "common", what: "takes any two calls of an operator for equal", run: merging(func(n *Node) string {
		if n.Kind != Apply || !n.pure() {
			return ""
		}
		return id(n)
	})},
	{pass: "recompute", what: "draws anew", run: repeating(func(n *Node) *Node {
		m := n.again()
		if n.Kind == Apply && n.Call.Def.Traits.Has(op.Random) {
			call := *n.Call
			call.Draw += 100
			m.Call = &call
		}
		return m
	}).run},
	{pass: "recompute", what: "takes the second argument for the first", run: repeating(func(n *Node) *Node {
		m := n.again()
		if args := n.Args(); len(args) > 1 && alike(args[0], args[1]) {
			m.replace(func(*Value) *Value { return args[1] })
		}
		return m
	}).run},
	{pass: "recompute", what: "computes again after it is read", run: func(c *Code) (int, error) {
		n, err := recompute(c)
		slices.SortStableFunc(c.Nodes, func(a, b *Node) int { return a.Repeats - b.Repeats })
		return n, err
	}},
	{pass: "fuse", what: "closes a circle", run: grouping(fuser{apart: func(*fuser, *unit, *Node) bool { return false }})},
	{pass: "fuse", what: "fuses what is not elementwise", run: grouping(fuser{order: anyOrder})},
	{pass: "fuse", what: "fuses across orders in memory", run: grouping(fuser{order: func(n *Node) string {
		if n.Kind != Apply || !n.pure() || n.Call.Def.SBP == nil || n.Call.Def.View != nil || !splits(n.Call, n.Out[0].Shape()) {
			return ""
		}
		for _, v := range n.Args() {
			if denseOrder(v) == "" || !slices.Equal(v.Shape(), n.Out[0].Shape()) {
				return ""
			}
		}
		return fmt.Sprint(n.Out[0].Shape())
	}})},
	{pass: "fuse", what: "loses what is read outside", after: true, run: func(c *Code) (int, error) {
		for _, n := range c.Nodes {
			if n.Kind == Fused && len(n.Out) > 1 {
				n.Out = n.Out[1:]
			}
		}
		return 1, nil
	}},
	{pass: "fuse", what: "runs the calls in another order", after: true, run: func(c *Code) (int, error) {
		for _, n := range c.Nodes {
			slices.Reverse(n.body)
		}
		return 1, nil
	}},
	{pass: "fuse", what: "takes the first element of a broadcast argument for all", after: true, run: respread(func(s *spread) {
		clear(s.strides)
	})},
	{pass: "fuse", what: "repeats a broadcast argument along another dimension", after: true, run: respread(func(s *spread) {
		slices.Reverse(s.strides)
	})},
	{pass: "fuse", what: "aligns shapes of other sizes in memory", after: true, run: respread(func(s *spread) {
		slices.Reverse(s.sizes)
	})},
	{pass: "epilogue", what: "runs the head after others that read it", run: joining(joiner{after: func(*joiner, *Node, *Node) bool { return true }})},
	{pass: "epilogue", what: "runs on parts what reads more than its part", run: joining(joiner{order: func(n *Node) string {
		if n.Kind == Apply && (id(n) == "softmax" || id(n) == "cumsum") && alike(first(n), n.Out[0]) {
			return denseOrder(n.Out[0])
		}
		return flatOrder(n)
	}})},
	{pass: "epilogue", what: "loses the result of the head", after: true, run: func(c *Code) (int, error) {
		for _, n := range c.Nodes {
			if n.headed {
				n.Out = n.Out[1:]
			}
		}
		return 1, nil
	}},
	{pass: "epilogue", what: "leaves out the first call after the head", after: true, run: func(c *Code) (int, error) {
		for _, n := range c.Nodes {
			if n.headed && len(n.body) > 2 && alike(n.body[0].Out[0], n.body[1].Out[0]) {
				n.body[2].replace(func(v *Value) *Value {
					if v == n.body[1].Out[0] {
						return n.body[0].Out[0]
					}
					return v
				})
			}
		}
		return 1, nil
	}},
	{pass: "order", what: "runs a node before what it reads", run: func(c *Code) (int, error) {
		slices.SortStableFunc(c.Nodes, func(m, n *Node) int { return len(m.Args()) - len(n.Args()) })
		return 1, nil
	}},
	{pass: "order", what: "forgets the results of a group but the last", run: func(c *Code) (int, error) {
		for _, n := range c.Nodes {
			if n.Kind == Fused {
				n.Out = n.Out[len(n.Out)-1:]
			}
		}
		return order(c)
	}},
	{pass: Reuse, what: "takes the memory of inputs that nobody gave up", tamper: func(p *plan, c *Code) {
		for _, v := range c.Inputs {
			p.escapes[v] = slices.Contains(c.Outputs, v)
		}
	}},
	{pass: Reuse, what: "lets results lie where an output is already", tamper: func(p *plan, _ *Code) {
		p.early = func(s, home *piece) bool { return true }
	}},
	{pass: Reuse, what: "puts a result where another argument of its node lies", tamper: func(p *plan, _ *Code) {
		p.apart = func(a, b *piece) bool { return a.first < b.last && b.first < a.last }
	}},
	{pass: Reuse, what: "reuses a live buffer", tamper: func(p *plan, c *Code) {
		for i := len(c.Nodes) - 1; i >= 0; i-- { // the first reader is taken for the last
			for _, v := range c.Nodes[i].Args() {
				p.last[p.roots[v]] = i
			}
		}
	}},
	{pass: Reuse, what: "takes a view for memory of its own", tamper: func(p *plan, c *Code) {
		for i, n := range c.Nodes {
			for _, v := range n.Out {
				p.roots[v], p.last[v] = v, i
			}
			for _, v := range n.Args() {
				p.last[v] = i
			}
		}
	}},
	{pass: Reuse, what: "forgets that outputs stay", tamper: func(p *plan, c *Code) {
		for _, v := range c.Outputs {
			p.escapes[p.roots[v]] = v.node.Kind == Input || v.node.Kind == Constant
		}
	}},
	{pass: Reuse, what: "overwrites what is not elementwise", tamper: func(p *plan, _ *Code) {
		p.overwrites = func(n *Node, u, v *Value) bool { return n.Kind == Apply && u.bytes() == v.bytes() }
	}},
	{pass: Reuse, what: "overwrites what the head of a loop still reads", tamper: func(p *plan, _ *Code) {
		p.overwrites = func(n *Node, u, v *Value) bool { return n.headed && alike(u, v) || n.overwrites(u, v) }
	}},
	{pass: Reuse, what: "overwrites another dtype", tamper: func(p *plan, _ *Code) {
		p.overwrites = func(n *Node, u, v *Value) bool { return n.Kind == Apply && flatOrder(n) != "" }
	}},
	{pass: Reuse, what: "overwrites in a fused loop what a later call reads", tamper: func(p *plan, _ *Code) {
		p.overwrites = func(n *Node, u, v *Value) bool { return alike(u, v) && (n.Kind == Fused || flatOrder(n) != "") }
	}},
}

// TestPlantedFaults plants faults in the passes and looks whether random graphs
// find them and name the pass.
func TestPlantedFaults(t *testing.T) {
	type sample struct {
		key  uint64
		want []*tensor.Tensor
		code *Code
	}
	var samples []sample
	for key := range uint64(1500) {
		n := 3 + int(key%38)
		samples = append(samples, sample{key, randomEagerly(key, n), randomCode(t, key, n)})
	}
	for _, f := range faults {
		found := false
		for _, s := range samples {
			o := f.options()
			c, err := Compile(s.code, o)
			if err == nil && gives(s.key, s.want)(c) {
				continue
			}
			found = true
			if got := Blame(s.code, o, gives(s.key, s.want)); got != f.pass {
				t.Errorf("%s: %s: pass %q is blamed", f.pass, f.what, got)
			}
			break
		}
		if !found {
			t.Errorf("%s: %s: not found in %d graphs", f.pass, f.what, len(samples))
		}
	}
	t.Logf("%d faults", len(faults))
}

func (f fault) options() Options {
	o := Options{Block: 5, tamper: f.tamper}
	for _, p := range Passes() {
		right := p.Run
		switch {
		case f.tamper != nil || p.Name != f.pass:
		case f.after:
			p.Run = func(c *Code) (int, error) {
				if n, err := right(c); err != nil {
					return n, err
				}
				return f.run(c)
			}
		default:
			p.Run = f.run
		}
		o.Passes = append(o.Passes, p)
	}
	return o
}

// TestChangesStayInOrder runs a chain of batch_norm calls that update their
// running statistics: each reads what the one before left.
func TestChangesStayInOrder(t *testing.T) {
	f := func(b op.Builder, x []op.Value) []op.Value {
		var out []op.Value
		for range 3 {
			out = append(out, b.Op("batch_norm", x[0], x[1], x[2], op.Kw("training", true)), b.Op("clone", x[1]))
		}
		return append(out, x[1], x[2])
	}
	inputs := func() []*tensor.Tensor {
		return []*tensor.Tensor{someInputs()[2], tensor.New(tensor.F64, 4), tensor.Float64s(tensor.F64, []int{4}, 1, 2, 3, 4)}
	}
	var x []op.Value
	s := eager.New(ops.Table())
	for _, v := range inputs() {
		x = append(x, s.Leaf(v, false))
	}
	var want []*tensor.Tensor
	if err := op.Catch(func() {
		for _, v := range f(s.Builder(), x) {
			want = append(want, v.(*eager.Var).Tensor)
		}
	}); err != nil {
		t.Fatal(err)
	}
	given := inputs()
	g := New(ops.Table(), "norms", func(b *Builder, x ...op.Value) []op.Value { return f(b.Builder, x) }, Options{})
	got, err := g.Run(given...)
	if err != nil || !equal(got, want) {
		t.Errorf("%v: the graph differs from eager", err)
	}
	for i, v := range inputs() {
		if !given[i].SameBits(v) {
			t.Errorf("input %d was changed", i)
		}
	}
}
