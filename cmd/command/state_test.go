package command

import (
	"testing"

	"plumb/backend"
	"plumb/internal/judge/verdict"
	"plumb/internal/mutants"
	"plumb/op"
	"plumb/tensor"
)

// stateDefects are planted where a program keeps something: in what calls
// change, in modules, in gradients of gradients, in draws.
var stateDefects = []defect{
	{
		name: "relu writes into its input",
		file: `
@autotest(auto_backward=False)
def test_relu():
    return torch.relu(random_tensor(ndim=2))
`,
		plant: func(defs map[string]*op.Def) {
			mutants.Around(defs["relu"], func(c *op.Run, run func(*op.Run) error) error {
				err := run(c)
				if in := c.Tensor("input"); in.Len() > 0 {
					in.Set(0, in.At(0)+1)
				}
				return err
			})
		},
		word: verdict.Misaligned, kind: verdict.Kind(backend.PartChange),
	},
	{
		name: "an assignment goes astray, and is overwritten",
		file: `
@autotest(auto_backward=False)
def test_setitem():
    x = random_tensor(ndim=2, dim0=3, dim1=4)
    y = x * 2
    y[1] = 0
    y.fill_(1)
    return y
`,
		plant: func(defs map[string]*op.Def) {
			compose := defs["fill"].Compose
			defs["fill"].Compose = func(b op.Builder, a op.Args) []op.Value {
				if a.Scalar("value").Float() == 0 {
					a = mutants.With(a, op.ScalarArg("value"), op.ScalarOf(int64(7)))
				}
				return compose(b, a)
			}
		},
		word: verdict.Misaligned, kind: verdict.Kind(backend.PartChange),
	},
	{
		name: "transpose is no view",
		file: `
@autotest(auto_backward=False)
def test_transpose():
    x = random_tensor(ndim=2, dim0=3, dim1=4)
    y = x + 1
    v = torch.transpose(y, 0, 1)
    v.mul_(2)
    return v
`,
		plant: func(defs map[string]*op.Def) {
			d := defs["transpose"]
			d.View, d.Kernels, d.Grad, d.Infer, d.Traits = nil, nil, nil, nil, 0
			d.Compose = func(b op.Builder, a op.Args) []op.Value {
				return []op.Value{b.Op("clone", b.Op("permute", a.Value("input"), []int{1, 0}))}
			}
		},
		word: verdict.Misaligned, kind: verdict.Kind(backend.PartChange),
	},
	{
		name: "running statistics are mixed with another momentum",
		file: `
@autotest(n=5)
def test_batch_norm():
    m = torch.nn.BatchNorm1d(3)
    return m(random_tensor(ndim=2, dim0=4, dim1=3))
`,
		plant: func(defs map[string]*op.Def) {
			for _, id := range []string{"batch_norm", "batch_norm.update"} {
				mutants.Around(defs[id], func(c *op.Run, run func(*op.Run) error) error {
					other := *c
					other.Args = mutants.With(c.Args, op.FloatArg("momentum"), 0.3)
					return run(&other)
				})
			}
		},
		word: verdict.Misaligned, kind: verdict.Kind(backend.PartState),
	},
	{
		name: "the second layer of a sequence of sequences has half a gradient",
		file: `
@autotest(n=5)
def test_nested():
    m = torch.nn.Sequential(torch.nn.Tanh(), torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU()))
    return m(random_tensor(ndim=2, dim0=4, dim1=3))
`,
		plant: func(defs map[string]*op.Def) {
			grad := defs["linear"].Grad
			defs["linear"].Grad = func(g *op.Grad) {
				grad(g)
				g.To("weight", func() op.Value { return g.Mul(g.Op("matmul", g.Op("transpose", g.G(), 0, 1), g.Value("input")), -0.5) })
			}
		},
		word: verdict.Misaligned, kind: verdict.Kind(backend.PartParamGrad),
	},
	{
		name: "the gradient of tanh cannot be differentiated",
		file: `
@autotest(n=5, order=2)
def test_tanh():
    return torch.tanh(random_tensor(ndim=2))
`,
		plant: func(defs map[string]*op.Def) {
			defs["tanh"].Grad = func(g *op.Grad) {
				g.To("input", func() op.Value {
					y := g.Op("detach", g.Op("tanh", g.Value("input")))
					return g.Mul(g.G(), g.Op("sub", 1, g.Mul(y, y)))
				})
			}
		},
		word: verdict.Misaligned, kind: verdict.Kind(backend.PartSecondGrad),
	},
	{
		name: "dropout drops too much",
		file: `
@autotest(n=5)
def test_dropout():
    return torch.nn.functional.dropout(random_tensor(ndim=2, dim0=40, dim1=50, low=1, high=2), p=0.3)
`,
		plant: func(defs map[string]*op.Def) {
			mutants.Around(defs["dropout"], func(c *op.Run, run func(*op.Run) error) error {
				other := *c
				other.Args = mutants.With(c.Args, op.FloatArg("p"), 0.4)
				return run(&other)
			})
		},
		word: verdict.Misaligned, kind: verdict.Kind(backend.PartValue),
	},
}

// TestRandomResultsAreComparedAsAsked: random="shape" lets other draws pass,
// and nothing else.
func TestRandomResultsAreComparedAsAsked(t *testing.T) {
	file := save(t, "shape.py", `
@autotest(n=5, random="shape")
def test_dropout():
    return torch.nn.functional.dropout(random_tensor(ndim=2, dim0=40, dim1=50, low=1, high=2), p=0.3)
`)
	for _, f := range []struct {
		plant func(map[string]*op.Def)
		found bool
	}{
		{stateDefects[len(stateDefects)-1].plant, false},
		{func(defs map[string]*op.Def) {
			infer := defs["dropout"].Infer
			defs["dropout"].Infer = func(a op.Args) ([]op.Meta, error) {
				out, err := infer(a)
				out[0].DType = tensor.F64
				return out, err
			}
		}, true},
	} {
		w, log := play(t, planted(t, f.plant), []string{file}, "--reference", "native", "--seed", "1")
		if found := len(w.findings()) > 0; found != f.found || len(w.records) == 0 {
			t.Errorf("found: %v, want %v\n%s", found, f.found, log)
		}
	}
}

// TestShapesOnly: check_allclose=False compares no elements, but shapes and dtypes.
func TestShapesOnly(t *testing.T) {
	file := save(t, "shape.py", `
@autotest(n=5, check_allclose=False)
def test_exp():
    return torch.exp(random_tensor(ndim=1))
`)
	double := func(defs map[string]*op.Def) {
		mutants.Around(defs["exp"], func(c *op.Run, run func(*op.Run) error) error {
			err := run(c)
			for i := range c.Out[0].Len() {
				c.Out[0].Set(i, 2*c.Out[0].At(i))
			}
			return err
		})
	}
	if w, log := play(t, planted(t, double), []string{file}, "--reference", "native", "--seed", "1"); len(w.findings()) > 0 || len(w.records) != 5 {
		t.Error(log)
	}
	longer := func(defs map[string]*op.Def) {
		infer := defs["exp"].Infer
		defs["exp"].Infer = func(a op.Args) ([]op.Meta, error) {
			out, err := infer(a)
			out[0].Shape, out[0].Strides = []int{1, out[0].Shape[0]}, nil
			return out, err
		}
	}
	if w, _ := play(t, planted(t, longer), []string{file}, "--reference", "native", "--seed", "1"); len(w.findings()) == 0 {
		t.Error("another shape is not found")
	}
}

// TestExceptionsOfOneSide: they are findings, unless the flag says otherwise.
func TestExceptionsOfOneSide(t *testing.T) {
	file := save(t, "refuse.py", `
@autotest(n=5)
def test_exp():
    return torch.exp(random_tensor(ndim=random(0, 2)))
`)
	refuse := func(defs map[string]*op.Def) {
		defs["exp"].Reject = func(a op.Args) error {
			if len(a.Value("input").Shape()) == 0 {
				return op.RuntimeError("expected a tensor with dimensions")
			}
			return nil
		}
	}
	strict, _ := play(t, planted(t, refuse), []string{file}, "--reference", "native", "--seed", "1")
	if len(strict.findings()) == 0 || strict.findings()[0].Verdict.Kind != verdict.Exception {
		t.Error("the candidate's exception is not found")
	}
	lenient, log := play(t, planted(t, refuse), []string{file}, "--reference", "native", "--seed", "1", "--set", "exceptions=rejection")
	if len(lenient.findings()) > 0 || lenient.ends[0].Rejected == 0 || lenient.ends[0].Judged != 5 {
		t.Error(log)
	}
}

// TestExceptionsOfAnotherClass: what both sides refuse by another class is a finding
// where the reference's own is asked for.
func TestExceptionsOfAnotherClass(t *testing.T) {
	file := save(t, "refuse.py", `
@autotest(n=3)
def test_matmul():
    x = random_tensor(2, 2, 3)
    return torch.matmul(x, x)
`)
	refuse := func(defs map[string]*op.Def) {
		defs["matmul"].Reject = func(op.Args) error { return op.TypeError("no such form") }
	}
	strict, log := play(t, planted(t, refuse), []string{file}, "--reference", "native", "--seed", "1", "--set", "exceptions=strict")
	if len(strict.findings()) == 0 || strict.findings()[0].Verdict.Kind != verdict.Exception {
		t.Error(log)
	}
	if lenient, log := play(t, planted(t, refuse), []string{file}, "--reference", "native", "--seed", "1"); len(lenient.findings()) > 0 || lenient.ends[0].Rejected == 0 {
		t.Error(log)
	}
}
