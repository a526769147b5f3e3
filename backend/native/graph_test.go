package native

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"plumb/backend"
	"plumb/graph"
	"plumb/nn"
	"plumb/ops"
	"plumb/program"
	"plumb/tensor"
)

const graphHeader = "# plumb program v1\nimport operator, torch\nfrom plumb import case, integer, tensor, uniform\n\ncase(\"t\", seed=5)\n"

// graphPrograms mix what a graph has to hold: modules with state, changes in
// place, views, draws, several gradients, second order, refusals.
var graphPrograms = map[string]string{
	"module": `x = tensor((4, 3), torch.float32, uniform(-1.0, 1.0, key=1), requires_grad=True)
m = torch.nn.Linear(3, 3)
n = torch.nn.BatchNorm1d(3)
y = m(x)
z = n(y)
z2 = n(z)
s = torch.nn.functional.dropout(z2)
s.backward(uniform(-1.0, 1.0, key=2))
`,
	"in place": `x = tensor((4, 3), torch.float32, uniform(-1.0, 1.0, key=1), requires_grad=True)
y = torch.clone(x)
v = y.t()
w = v.mul_(2.0)
part = y[1:3]
u = part.add_(1.0)
e = torch.exp(v)
y.backward(uniform(-1.0, 1.0, key=2))
e.backward(uniform(-1.0, 1.0, key=3))
`,
	"statistics": `x = tensor((4, 3), torch.float32, uniform(-1.0, 1.0, key=1))
mean = tensor((3,), torch.float32, uniform(-1.0, 1.0, key=4))
var = tensor((3,), torch.float32, uniform(0.5, 1.0, key=5))
y = torch.nn.functional.batch_norm(x, mean, var, training=True)
k = mean + 0
z = torch.nn.functional.batch_norm(y, mean, var, training=True)
`,
	"refused late": `x = tensor((3,), torch.float32, uniform(-1.0, 1.0, key=1), requires_grad=True)
i = tensor((1,), torch.int64, [9])
y = torch.exp(x)
z = torch.take(y, i)
w = torch.neg(y)
w.backward(uniform(-1.0, 1.0, key=2))
`,
	"refused while traced": `x = tensor((3,), torch.float32, uniform(-1.0, 1.0, key=1))
y = torch.exp(x)
z = torch.reshape(y, (2, 2))
`,
}

func outcomesOf(t *testing.T, src string, o graph.Options) (eager, traced *backend.Outcome) {
	t.Helper()
	p, err := program.Parse("p.py", graphHeader+src)
	if err != nil {
		t.Fatal(err)
	}
	b := New(ops.Table(), nn.Modules())
	if eager, err = b.Run(context.Background(), backend.NewJob(p)); err != nil {
		t.Fatal(err)
	}
	traced, err = b.Graph(o).Run(context.Background(), backend.NewJob(p))
	if err != nil {
		t.Fatal(err)
	}
	return eager, traced
}

func TestGraphOutcomes(t *testing.T) {
	for name, src := range graphPrograms {
		for _, o := range []graph.Options{{Block: 3}, {Without: []string{graph.All}}} {
			want, got := outcomesOf(t, src, o)
			if got.Status != want.Status || got.Call != want.Call || got.Class != want.Class {
				t.Errorf("%s: %s %s at %d (%s), eager: %s %s at %d (%s)", name, got.Status, got.Class, got.Call, got.Message, want.Status, want.Class, want.Call, want.Message)
				continue
			}
			a, b := tensorsOf(got), tensorsOf(want)
			if !slices.Equal(slices.Sorted(maps.Keys(a)), slices.Sorted(maps.Keys(b))) {
				t.Errorf("%s: has %v, eager %v", name, slices.Sorted(maps.Keys(a)), slices.Sorted(maps.Keys(b)))
			}
			for at, x := range b {
				if a[at] == nil || !a[at].SameBits(x) || !slices.Equal(a[at].Strides(), x.Strides()) {
					t.Errorf("%s: %s differs from eager", name, at)
				}
			}
		}
	}
}

// tensorsOf names the tensors of an outcome.
func tensorsOf(out *backend.Outcome) map[string]*tensor.Tensor {
	all := map[string]*tensor.Tensor{}
	var value func(name string, v backend.Value)
	value = func(name string, v backend.Value) {
		if v.Tensor != nil {
			all[name] = v.Tensor
		}
		for i, e := range v.Tuple {
			value(name+"."+string(rune('0'+i)), e)
		}
	}
	for i, v := range out.Values {
		value("value "+string(rune('0'+i)), v)
	}
	for m, st := range out.Initial {
		for _, n := range st {
			all["initial "+m+"."+n.Name] = n.Tensor
		}
	}
	for _, s := range out.Slots {
		all[fmt.Sprint(s.Part, s.Call, s.Place)] = s.Tensor
	}
	return all
}

// TestNotCaptured demands a reason for what a static graph cannot hold.
func TestNotCaptured(t *testing.T) {
	for src, reason := range map[string]string{
		"y = torch.nonzero(x)\n":  "nonzero cannot be captured in a graph: the shape of its result depends on elements",
		"y = torch.equal(x, x)\n": "equal cannot be captured in a graph: its result is a Python value",
		"n = torch.tensor([1, 2, 1])\ny = torch.repeat_interleave(x, n)\n": "the elements of argument 'repeats' of repeat_interleave are not known",
	} {
		_, got := outcomesOf(t, "x = tensor((3,), torch.float32, uniform(-1.0, 1.0, key=1))\n"+src, graph.Options{})
		if got.Status != backend.Unsupported || !strings.Contains(got.Message, reason) {
			t.Errorf("%s: %s %s, want %s", src, got.Status, got.Message, reason)
		}
	}
}

// TestWrongPassIsACrash plants a pass that breaks graphs.
func TestWrongPassIsACrash(t *testing.T) {
	broken := graph.Pass{Name: "broken", Run: func(c *graph.Code) (int, error) { c.Nodes = c.Nodes[1:]; return 1, nil }}
	_, got := outcomesOf(t, graphPrograms["in place"], graph.Options{Passes: []graph.Pass{broken}})
	if got.Status != backend.Crashed || !strings.Contains(got.Message, "pass broken") {
		t.Errorf("%s: %s", got.Status, got.Message)
	}
}

// TestWrongPassIsNamed plants a pass that changes results within every limit.
func TestWrongPassIsNamed(t *testing.T) {
	o := graph.Options{Passes: graph.Passes()}
	o.Passes = slices.Insert(o.Passes, 3, graph.Pass{Name: "wrong", Run: func(c *graph.Code) (int, error) {
		for _, n := range c.Nodes {
			if n.Kind == graph.Constant {
				n.Const.Set(0, n.Const.At(0)+1e-6)
			}
		}
		return 1, nil
	}})
	_, got := outcomesOf(t, `x = tensor((3,), torch.float32, uniform(-1.0, 1.0, key=1))
c = torch.ones(3)
y = x + c
`, o)
	if got.Status != backend.OK || got.Blame != "wrong" || !strings.HasPrefix(got.Evidence, "graph t: pass wrong changes output 0, ") || !strings.Contains(got.Evidence, " at p.py:7: c = torch.ones in\n") {
		t.Errorf("%s %s, blames %q: %s", got.Status, got.Message, got.Blame, got.Evidence)
	}
	if c := got.Condemned(); c.Status != backend.Crashed || c.Message != got.Evidence {
		t.Errorf("condemned: %s: %s", c.Status, c.Message)
	}
}

// TestGraphErrorsNameTheCall expects the program's line, the call, the shapes
// and, of a gradient, the call that it is of.
func TestGraphErrorsNameTheCall(t *testing.T) {
	for name, want := range map[string]string{
		"refused late":         "graph t: p.py:9: z = torch.take: take(float32[3], int64[1]): ",
		"refused while traced": "graph t: p.py:8: z = torch.reshape: reshape(float32[3]): ",
	} {
		_, got := outcomesOf(t, graphPrograms[name], graph.Options{})
		if got.Status != backend.Raised || !strings.HasPrefix(got.Message, want) {
			t.Errorf("%s: %s %s, want %s", name, got.Status, got.Message, want)
		}
	}
	p, err := program.Parse("p.py", graphHeader+graphPrograms["module"])
	if err != nil {
		t.Fatal(err)
	}
	code, err := New(ops.Table(), nn.Modules()).Graph(graph.Options{}).Trace(t.Context(), backend.NewJob(p))
	if err != nil {
		t.Fatal(err)
	}
	var shown strings.Builder
	if _, err := graph.Compile(code, graph.Options{DebugPasses: 3, Log: &shown}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"# p.py:9: y = Module.__call__", "# backward: gradient of linear(float32[4, 3], float32[3, 3], float32[3]) at p.py:9: y = "} {
		if !strings.Contains(shown.String(), want) {
			t.Errorf("%q is missing in\n%s", want, &shown)
		}
	}
}
