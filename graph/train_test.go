package graph_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"plumb/graph"
	"plumb/internal/draw/choice"
	"plumb/internal/eager"
	"plumb/nn"
	"plumb/op"
	"plumb/ops"
	"plumb/optim"
	"plumb/tensor"
)

// noise returns a tensor of draws between -1 and 1.
func noise(key uint64, d tensor.DType, shape ...int) *tensor.Tensor {
	t, s := tensor.New(d, shape...), choice.New(key)
	for i := range t.Len() {
		t.Set(i, complex(float64(s.Int(-1000, 1000))/1000, 0))
	}
	return t
}

func newModule(t testing.TB, name string, args ...any) *nn.Module {
	t.Helper()
	m, err := nn.Modules().Lookup("torch.nn."+name).New(args, nil)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// network is a small network with what training has to carry: running
// statistics, and draws.
func network(t testing.TB) *nn.Module {
	m := newModule(t, "Sequential", newModule(t, "Linear", 6, 8), newModule(t, "BatchNorm1d", 8), newModule(t, "Dropout", 0.5),
		newModule(t, "Tanh"), newModule(t, "Linear", 8, 3))
	for i, e := range m.StateDict() {
		if e.Value == nil {
			s := m.State()[i]
			if err := m.Load(e.Name, noise(uint64(i), s.DType, s.Shape...)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return m
}

// variables puts leaves in the place of a module's parameters.
func variables(t testing.TB, m *nn.Module) {
	s := eager.New(ops.Table())
	for i, e := range m.StateDict() {
		if err := m.Load(e.Name, s.Leaf(e.Value.(*tensor.Tensor), m.State()[i].Kind == nn.Param)); err != nil {
			t.Fatal(err)
		}
	}
}

func must[T any](t testing.TB, v T, err error) T {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func momentum(t testing.TB, m *nn.Module) *optim.Optimizer {
	t.Helper()
	o, err := optim.Lookup("SGD").New(optim.Parameters(m), nil, op.Kw("lr", 0.1), op.Kw("momentum", 0.9))
	return must(t, o, err)
}

func decay(t testing.TB, o *optim.Optimizer) optim.Schedule {
	t.Helper()
	s, err := optim.LookupSchedule("ExponentialLR").New(o, nil, op.Kw("gamma", 0.7))
	return must(t, s, err)
}

// lossOf is the loss of a module.
func lossOf(b op.Builder, m *nn.Module, x, y op.Value) op.Value {
	out, err := m.Call(b, []any{x}, nil)
	if err != nil {
		op.Fail(err)
	}
	return b.Op("mse_loss", out[0], y)
}

// trainGraph is a graph that trains a module, marked as a whole if asked for.
func trainGraph(t testing.TB, m *nn.Module, o *optim.Optimizer, s optim.Schedule, marked bool, options graph.Options) *graph.Graph {
	t.Helper()
	g := graph.New(ops.Table(), "network", func(b *graph.Builder, x ...op.Value) []op.Value {
		f := func(x ...op.Value) []op.Value { return []op.Value{lossOf(b.Builder, m, x[0], x[1])} }
		var loss []op.Value
		if marked {
			loss = b.Checkpoint(f, x...)
		} else {
			loss = f(x...)
		}
		b.Backward(loss[0])
		return loss
	}, options)
	g.Seed = 5
	if err := g.AddModule("", m); err != nil {
		t.Fatal(err)
	}
	if err := g.AddOptimizer(o, s); err != nil {
		t.Fatal(err)
	}
	return g
}

// eagerTrainer takes the same steps eagerly.
type eagerTrainer struct {
	*eager.Session
	m *nn.Module
	o *optim.Optimizer
	s optim.Schedule
}

func newEagerTrainer(t testing.TB) *eagerTrainer {
	m := network(t)
	variables(t, m)
	o := momentum(t, m)
	e := &eagerTrainer{eager.New(ops.Table()), m, o, decay(t, o)}
	e.Seed(5)
	return e
}

// step trains on micro-batches, and returns their losses.
func (e *eagerTrainer) step(t testing.TB, parts int, x, y *tensor.Tensor) []*tensor.Tensor {
	t.Helper()
	var losses []*tensor.Tensor
	params := e.o.Groups[0].Params
	e.o.ZeroGrad(true)
	size := x.Shape()[0] / parts
	for k := range parts {
		b := e.Builder()
		err := op.Catch(func() {
			loss := lossOf(b, e.m, b.Op("narrow", x, 0, k*size, size), b.Op("narrow", y, 0, k*size, size))
			losses = append(losses, loss.(*eager.Var).Tensor)
			cot, err := e.Backward([]op.Value{loss}, []op.Value{tensor.Scalar(tensor.F32, complex(1/float64(parts), 0))}, false)
			if err != nil {
				op.Fail(err)
			}
			for _, p := range params {
				if p.Grad == nil {
					p.Grad = cot[p.Value]
				} else {
					p.Grad = b.Add(p.Grad, cot[p.Value])
				}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := e.o.Step(e.Builder()); err != nil {
		t.Fatal(err)
	}
	if err := e.s.Step(); err != nil {
		t.Fatal(err)
	}
	return losses
}

// differs names the first entry of two modules' states that is not the same.
func differs(a, b *nn.Module) string {
	other := b.StateDict()
	for i, e := range a.StateDict() {
		if x, y := stateTensor(e.Value), stateTensor(other[i].Value); !x.SameBits(y) {
			return fmt.Sprintf("%s is %v and %v", e.Name, values(x), values(y))
		}
	}
	return ""
}

func stateTensor(v op.Value) *tensor.Tensor {
	if x, ok := v.(*eager.Var); ok {
		return x.Tensor
	}
	return v.(*tensor.Tensor)
}

func values(t *tensor.Tensor) []float64 {
	var out []float64
	for i := range t.Len() {
		out = append(out, t.Float(i))
	}
	return out
}

// TestTrainingIsThatOfEager trains a network with running statistics, draws, momentum and
// a schedule: in micro-batches or not, computing again or not, with passes and
// without, on tensors and on variables.
func TestTrainingIsThatOfEager(t *testing.T) {
	for _, parts := range []int{1, 3} {
		for _, marked := range []bool{false, true} {
			for _, asVariables := range []bool{false, true} {
				for _, without := range []string{"", "recompute", graph.All} {
					t.Run(fmt.Sprintf("%d parts, marked %t, variables %t, without %q", parts, marked, asVariables, without), func(t *testing.T) {
						e, m := newEagerTrainer(t), network(t)
						if asVariables {
							variables(t, m)
						}
						o := momentum(t, m)
						g := trainGraph(t, m, o, decay(t, o), marked, graph.Options{Without: []string{without}, Block: 7})
						if err := g.Accumulate(parts); err != nil {
							t.Fatal(err)
						}
						for i := range uint64(5) {
							x, y := noise(100+i, tensor.F32, 12, 6), noise(200+i, tensor.F32, 12, 3)
							want := e.step(t, parts, x, y)
							got, err := g.Run(x, y)
							if err != nil {
								t.Fatal(err)
							}
							for k, w := range want {
								if got[0].Float(k) != w.Float(0) {
									t.Fatalf("step %d: loss %d is %v, eagerly %v", i, k, got[0].Float(k), w.Float(0))
								}
							}
							if d := differs(m, e.m); d != "" {
								t.Fatalf("step %d: %s", i, d)
							}
							if o.Groups[0].LR() != e.o.Groups[0].LR() {
								t.Fatalf("step %d: rate %v, eagerly %v", i, o.Groups[0].LR(), e.o.Groups[0].LR())
							}
						}
						if g.Signatures() != 2 { // the first step has no momentum
							t.Errorf("compiled for %d signatures", g.Signatures())
						}
					})
				}
			}
		}
	}
}

// TestStateGoesOn saves the state of a graph in the middle, and expects of
// another graph that loads it the same steps.
func TestStateGoesOn(t *testing.T) {
	for _, asVariables := range []bool{false, true} {
		t.Run(fmt.Sprintf("variables %t", asVariables), func(t *testing.T) { stateGoesOn(t, asVariables) })
	}
}

func stateGoesOn(t *testing.T, asVariables bool) {
	start := func() (*nn.Module, *graph.Graph) {
		m := network(t)
		if asVariables {
			variables(t, m)
		}
		o := momentum(t, m)
		return m, trainGraph(t, m, o, decay(t, o), false, graph.Options{})
	}
	batch := func(i uint64) []*tensor.Tensor {
		return []*tensor.Tensor{noise(100+i, tensor.F32, 4, 6), noise(200+i, tensor.F32, 4, 3)}
	}
	m, g := start()
	for i := range uint64(3) {
		must(t, 0, second(g.Run(batch(i)...)))
	}
	saved, err := g.StateDict()
	if err != nil {
		t.Fatal(err)
	}
	other, h := start()
	if err := h.LoadStateDict(saved); err != nil {
		t.Fatal(err)
	}
	for i := range uint64(3) {
		must(t, 0, second(g.Run(batch(3+i)...)))
		must(t, 0, second(h.Run(batch(3+i)...)))
	}
	if d := differs(m, other); d != "" {
		t.Error(d)
	}
	again, err := h.StateDict()
	if err != nil || again.Steps != 6 || again.Draws != 6 {
		t.Errorf("%v: %+v", err, again)
	}
	saved.Entries = saved.Entries[1:]
	saved.Entries[0].Name = "1.wait"
	if err := h.LoadStateDict(saved); err == nil || !strings.Contains(err.Error(), "0.weight is missing; 0.bias is missing; 1.wait is unexpected") {
		t.Errorf("a state that does not fit: %v", err)
	}
}

func second[T any](_ T, err error) error { return err }

// TestMemoryOfTraining: micro-batches and computing again take less memory.
func TestMemoryOfTraining(t *testing.T) {
	peak := func(parts int, marked bool) int {
		var layers []any
		for range 6 {
			layers = append(layers, newModule(t, "Linear", 32, 32), newModule(t, "Tanh"), newModule(t, "Dropout", 0.5))
		}
		m := newModule(t, "Sequential", layers...)
		for i, s := range m.State() {
			if err := m.Load(s.Name, noise(uint64(i), s.DType, s.Shape...)); err != nil {
				t.Fatal(err)
			}
		}
		o := momentum(t, m)
		g := graph.New(ops.Table(), "layers", func(b *graph.Builder, x ...op.Value) []op.Value {
			h := x
			for i := 0; i < len(m.Children); i += 3 {
				layer := func(h ...op.Value) []op.Value {
					for _, c := range m.Children[i : i+3] {
						out, err := c.Call(b.Builder, []any{h[0]}, nil)
						if err != nil {
							op.Fail(err)
						}
						h = out
					}
					return h
				}
				if marked {
					h = b.Checkpoint(layer, h...)
				} else {
					h = layer(h...)
				}
			}
			loss := b.Op("mean", b.Op("square", h[0]))
			b.Backward(loss)
			return []op.Value{loss}
		}, graph.Options{})
		if err := g.AddModule("", m); err != nil {
			t.Fatal(err)
		}
		if err := g.AddOptimizer(o, nil); err != nil {
			t.Fatal(err)
		}
		if err := g.Accumulate(parts); err != nil {
			t.Fatal(err)
		}
		c, err := g.Compile(noise(1, tensor.F32, 2048, 32))
		if err != nil {
			t.Fatal(err)
		}
		names := ""
		for _, s := range c.Stages {
			if s.Changes > 0 {
				names += s.Pass + " "
			}
		}
		if strings.Contains(names, "recompute") != marked || strings.Contains(names, "accumulate") != (parts > 1) || !strings.Contains(names, "update") {
			t.Errorf("stages %s", names)
		}
		return c.Memory().Peak
	}
	whole, again, parts := peak(1, false), peak(1, true), peak(4, false)
	t.Logf("at most %d bytes at once; computing again %d; in 4 micro-batches %d", whole, again, parts)
	if again > whole*7/10 || parts > whole*5/10 {
		t.Errorf("at most %d bytes at once; computing again %d; in 4 micro-batches %d", whole, again, parts)
	}
}

// TestTrees calls a graph of trees, and expects one trace for each structure.
func TestTrees(t *testing.T) {
	traces := 0
	g := graph.NewTree(ops.Table(), "tree", func(b *graph.Builder, args ...any) any {
		traces++
		pair, options := args[0].([]any), args[1].(map[string]any)
		sum := b.Add(pair[0].(op.Value), pair[1].(op.Value))
		if options["double"].(bool) {
			sum = b.Mul(sum, op.ScalarOf(2.0))
		}
		return map[string]any{"sum": sum, "parts": []any{options["x"], nil}, "name": "tree"}
	}, graph.Options{})
	one := tensor.Float64s(tensor.F64, nil, 1)
	call := func(double bool) map[string]any {
		out, err := g.Call([]any{one, one}, map[string]any{"x": one, "double": double})
		return must(t, out, err).(map[string]any)
	}
	for range 2 {
		if got := call(false); got["sum"].(*tensor.Tensor).Float(0) != 2 || got["parts"].([]any)[0].(*tensor.Tensor).Float(0) != 1 || got["name"] != "tree" {
			t.Errorf("the result is %v", got)
		}
		if got := call(true)["sum"].(*tensor.Tensor).Float(0); got != 4 {
			t.Errorf("doubled: %v", got)
		}
	}
	if traces != 2 {
		t.Errorf("traced %d times", traces)
	}
	for _, c := range []struct {
		args []any
		want string
	}{
		{[]any{[]any{one, struct{}{}}, nil}, "argument 0[1] is struct {}: a tree has tensors"},
		{[]any{nil, map[string]any{"x": []int{1}}}, `argument 1["x"] is []int: a tree has tensors`},
	} {
		if _, err := g.Call(c.args...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}

// TestShapesShareState trains on batches of several sizes, and keeps no more
// signatures than asked for.
func TestShapesShareState(t *testing.T) {
	e, m := newEagerTrainer(t), network(t)
	o := momentum(t, m)
	g := trainGraph(t, m, o, decay(t, o), false, graph.Options{Keep: 3})
	for i, n := range []int{4, 6, 4, 8, 10, 6, 4} {
		x, y := noise(uint64(i), tensor.F32, n, 6), noise(uint64(i+50), tensor.F32, n, 3)
		e.step(t, 1, x, y)
		if _, err := g.Run(x, y); err != nil {
			t.Fatal(err)
		}
		if d := differs(m, e.m); d != "" {
			t.Fatalf("step %d: %s", i, d)
		}
		if g.Signatures() > 3 {
			t.Errorf("%d signatures are kept", g.Signatures())
		}
	}
}

// TestModesAreCaptured: a module that is evaluated is another graph, and a
// frozen parameter stays.
func TestModesAreCaptured(t *testing.T) {
	m := network(t)
	variables(t, m)
	m.Value("4.bias").(*eager.Var).SetRequiresGrad(false)
	o := momentum(t, m)
	g := trainGraph(t, m, o, nil, false, graph.Options{})
	before := values(stateTensor(m.Value("4.bias")))
	x, y := noise(1, tensor.F32, 4, 6), noise(2, tensor.F32, 4, 3)
	for range 2 {
		must(t, 0, second(g.Run(x, y)))
	}
	if !slices.Equal(before, values(stateTensor(m.Value("4.bias")))) {
		t.Error("a frozen parameter was updated")
	}
	mean := values(stateTensor(m.Value("1.running_mean")))
	m.Train(false)
	must(t, 0, second(g.Run(x, y)))
	if !slices.Equal(mean, values(stateTensor(m.Value("1.running_mean")))) || g.Signatures() != 3 {
		t.Errorf("evaluation changed the running mean, or was not traced: %d signatures", g.Signatures())
	}
}

// TestTwoOptimizers trains two modules, each with an optimizer of its own and
// two losses, and expects what one optimizer does with both.
func TestTwoOptimizers(t *testing.T) {
	one, two := [2]*nn.Module{network(t), network(t)}, [2]*nn.Module{network(t), network(t)}
	for _, pair := range [][2]*nn.Module{one, two} {
		pair[0].Train(false)
		pair[1].Train(false)
	}
	graphOf := func(pair [2]*nn.Module, apart bool) *graph.Graph {
		g := graph.New(ops.Table(), "pair", func(b *graph.Builder, x ...op.Value) []op.Value {
			first, second := lossOf(b.Builder, pair[0], x[0], x[1]), lossOf(b.Builder, pair[1], x[0], x[1])
			if apart {
				b.Backward(first)
				b.Backward(second)
			} else {
				b.Backward(b.Add(first, second))
			}
			return []op.Value{first, second}
		}, graph.Options{})
		for i, name := range []string{"a", "b"} {
			if err := g.AddModule(name, pair[i]); err != nil {
				t.Fatal(err)
			}
		}
		return g
	}
	apart, joined := graphOf(one, true), graphOf(two, false)
	for _, m := range one {
		if err := apart.AddOptimizer(momentum(t, m), nil); err != nil {
			t.Fatal(err)
		}
	}
	o, err := optim.Lookup("SGD").New(append(optim.Parameters(two[0]), optim.Parameters(two[1])...), nil, op.Kw("lr", 0.1), op.Kw("momentum", 0.9))
	if err := joined.AddOptimizer(must(t, o, err), nil); err != nil {
		t.Fatal(err)
	}
	x, y := noise(1, tensor.F32, 4, 6), noise(2, tensor.F32, 4, 3)
	for range 3 {
		must(t, 0, second(apart.Run(x, y)))
		must(t, 0, second(joined.Run(x, y)))
	}
	if d := differs(one[0], two[0]) + differs(one[1], two[1]); d != "" {
		t.Error(d)
	}
	saved, err := apart.StateDict()
	if err != nil || len(saved.Optimizers) != 2 || saved.Entries[0].Name != "a.0.weight" || saved.Entries[len(saved.Entries)-1].Name != "b.4.bias" {
		t.Errorf("%v: the state is %+v", err, saved)
	}
	if err := apart.AddModule("a", network(t)); err == nil || !strings.Contains(err.Error(), `two modules have a state "a.0.weight"`) {
		t.Error(err)
	}
	if err := apart.AddModule("c", newModule(t, "Linear", 2, 2)); err == nil || !strings.Contains(err.Error(), `state "c.weight" of torch.nn.Linear is not loaded`) {
		t.Error(err)
	}
}

// TestTiedParametersStayTied: a module that is there twice is trained as one.
func TestTiedParametersStayTied(t *testing.T) {
	shared := newModule(t, "Linear", 3, 3)
	for i, s := range shared.State() {
		if err := shared.Load(s.Name, noise(uint64(i), s.DType, s.Shape...)); err != nil {
			t.Fatal(err)
		}
	}
	m := newModule(t, "Sequential", shared, newModule(t, "Tanh"), shared)
	o, err := optim.Lookup("SGD").New(optim.Parameters(shared), nil, op.Kw("lr", 0.1))
	g := trainGraph(t, m, must(t, o, err), nil, false, graph.Options{})
	w := shared.Value("weight").(*tensor.Tensor)
	b := eager.New(ops.Table())
	v, bias := b.Leaf(w, true), b.Leaf(shared.Value("bias").(*tensor.Tensor), true)
	x, y := noise(5, tensor.F32, 2, 3), noise(6, tensor.F32, 2, 3)
	must(t, 0, second(g.Run(x, y)))
	var want *tensor.Tensor
	if err := op.Catch(func() {
		e := b.Builder()
		loss := e.Op("mse_loss", e.Op("linear", e.Op("tanh", e.Op("linear", x, v, bias)), v, bias), y)
		cot, err := b.Backward([]op.Value{loss}, []op.Value{tensor.Scalar(tensor.F32, 1)}, false)
		if err != nil {
			op.Fail(err)
		}
		want = e.Op("sub", w, cot[v], op.Kw("alpha", 0.1)).(*eager.Var).Tensor
	}); err != nil {
		t.Fatal(err)
	}
	if got := m.Value("0.weight"); !stateTensor(got).SameBits(want) || m.Value("2.weight") != got {
		t.Errorf("the weight is %v, want %v", values(stateTensor(got)), values(want))
	}
}
