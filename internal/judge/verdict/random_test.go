package verdict_test

import (
	"strings"
	"testing"

	"plumb/backend"
	"plumb/backend/native"
	"plumb/internal/judge"
	"plumb/internal/judge/compare"
	"plumb/internal/judge/verdict"
	"plumb/nn"
	"plumb/ops"
	"plumb/program"
	"plumb/tensor"
)

const head = "# plumb program v1\nimport operator, torch\nfrom plumb import case, integer, tensor, uniform\n\ncase(\"t\", seed=1)\n"

// drawTwice runs a program on native under two seeds and returns a judge of
// its outcomes; change may spoil the second.
func drawTwice(t *testing.T, text string, change func(p *program.Program, cand *backend.Outcome)) *verdict.Verdict {
	t.Helper()
	p, err := program.Parse("t.py", head+text)
	if err != nil {
		t.Fatal(err)
	}
	own := native.New(ops.Table(), nn.Modules())
	job := backend.NewJob(p)
	ref, _ := own.Run(t.Context(), job)
	other := *p
	other.Seed = 2
	cand, _ := own.Run(t.Context(), &backend.Job{Program: &other, Inputs: job.Inputs, State: ref.Initial})
	if ref.Status != backend.OK || cand.Status != backend.OK {
		t.Fatalf("%s %s", ref.Message, cand.Message)
	}
	if change != nil {
		change(p, cand)
	}
	c := judge.New(judge.Config{Table: ops.Table(), Modules: nn.Modules()}).Case(job, ref, cand)
	c.Unbounded()
	c.Policy.Tols = nil
	return c.Verdict(nil)
}

const dropped = `x = tensor((100, 100), torch.float32, uniform(-2, 2, key=5), requires_grad=True)
y = torch.nn.functional.dropout(x, 0.3)
y.backward(uniform(0, 1, key=3))
`

func TestRandomResults(t *testing.T) {
	value := func(i int, f func(at int, v float64) float64) func(*program.Program, *backend.Outcome) {
		return func(_ *program.Program, cand *backend.Outcome) {
			cand.Values[i].Tensor = cand.Values[i].Tensor.Clone() // it may be the job's input
			rewrite(cand.Values[i].Tensor, f)
		}
	}
	times := func(c float64) func(int, float64) float64 {
		return func(_ int, v float64) float64 { return v * c }
	}
	const part = "x = torch.randn((4, 3))\n"
	const filled = "x = torch.zeros((50, 40))\ny = torch.ones((50, 40))\nw = x.add_(y)\nz = x.uniform_(1, 3)\n"
	const emptied = "x = tensor((3, 4), torch.float32, uniform(1, 2, key=5))\nv = torch.empty(3, 4)\np = torch.nn.Parameter(v)\nw = p.data\nu = w.copy_(x)\nz = p.mul(2)\n"
	const given = "m = torch.nn.Linear(3, 2)\nw = m.weight\nr = torch.randn(2, 3)\nu = setattr(w, \"data\", r)\nv = m.weight\n"
	const halved = "x = tensor((50, 40), torch.float32, uniform(1, 2, key=5))\nv = torch.transpose(x, 0, 1)\nw = v.mul_(2)\nz = torch.nn.functional.dropout(x, 0.5)\n"
	squared := func(_ int, v float64) float64 { return 1 + (v-1)*(v-1)/2 }
	const channels = "x = tensor((4, 5, 6, 7), torch.float32, uniform(1, 2, key=5))\ny = torch.nn.functional.dropout2d(x, 0.3)\n"
	tests := map[string]struct {
		text   string
		change func(*program.Program, *backend.Outcome)
		want   compare.Rule // "" for aligned
	}{
		"dropout":                    {dropped, nil, ""},
		"in place":                   {filled, nil, ""},
		"in place, squared":          {filled, value(3, squared), compare.Distribution},
		"in place, out of bounds":    {filled, value(3, times(1.5)), compare.Support},
		"filled through data":        {emptied, value(4, times(1.01)), compare.Distance},
		"given":                      {given, value(4, times(1.01)), ""},
		"of what was changed":        {halved, nil, ""},
		"dropout, not scaled":        {dropped, value(0, times(0.7)), compare.Support},
		"dropout, scaled by p":       {dropped, value(0, times(0.7/0.3)), compare.Support},
		"dropout, one element":       {dropped, value(0, at(77, 0.1)), compare.Support},
		"dropout of nothing":         {strings.Replace(dropped, "0.3", "0.0", 1), value(0, at(77, 0.1)), compare.Distance},
		"dropout, another mask back": {dropped, shiftGrad, compare.Relation},
		"dropout, gradient unscaled": {dropped, func(_ *program.Program, cand *backend.Outcome) { rewrite(cand.Grad("x"), times(0.7)) }, compare.Relation},
		"dropout, other p":           {dropped, dropMore, compare.Distribution},
		"dropout, everything kept":   {dropped, keepAll, compare.Distribution},
		"channels":                   {channels, nil, ""},
		"channels, dropped in part":  {channels, inPart, compare.Support},
		"downstream":                 {strings.Replace(dropped, "y.backward", "z = torch.exp(y)\nw = torch.sum(z, 0)\nw.backward", 1), nil, ""},
		"downstream, other shape": {strings.Replace(dropped, "y.backward", "z = torch.exp(y)\nz.backward", 1), func(_ *program.Program, cand *backend.Outcome) {
			cand.Values[1].Tensor = cand.Values[1].Tensor.Narrow(0, 0, 50, 1)
		}, compare.Shape},
		"beside":               {strings.Replace(dropped, "y.backward", "z = torch.exp(x)\nz.backward", 1), nil, ""},
		"beside, value":        {strings.Replace(dropped, "y.backward", "z = torch.exp(x)\nz.backward", 1), value(1, at(5, 1)), compare.Distance},
		"beside, sum":          {strings.Replace(dropped, "y.backward", "z = torch.exp(x)\nz.backward", 1), func(_ *program.Program, cand *backend.Outcome) { rewrite(cand.Grad("x"), at(5, 9)) }, compare.Distance},
		"module":               {"x = tensor((90, 80), torch.float32, uniform(1, 2, key=5))\nm = torch.nn.Dropout(0.5)\ny = m(x)\n", nil, ""},
		"module, p":            {"x = tensor((90, 80), torch.float32, uniform(1, 2, key=5))\nm = torch.nn.Dropout(0.5)\ny = m(x)\n", keepSome, compare.Distribution},
		"module, eval":         {"x = tensor((9,), torch.float32, uniform(1, 2, key=5))\nm = torch.nn.Dropout(0.5)\ne = m.eval()\ny = m(x)\n", value(2, at(5, 1)), compare.Distance},
		"a part's gradient":    {part + "m = torch.nn.Linear(3, 3)\nl = torch.nn.ModuleList([m])\ny = m(x)\ny.backward(uniform(0, 1, key=3))\n", nil, ""},
		"a buffer read before": {part + "m = torch.nn.BatchNorm1d(3)\nl = torch.nn.Sequential(m)\nv = m.running_mean\ny = l(x)\nz = v.detach()\n", nil, ""},
		"a weight of a loss":   {part + "w = torch.ones((3,))\nm = torch.nn.BCEWithLogitsLoss(weight=w)\ny = m(x, x)\nz = w.exp()\n", value(4, at(1, 7)), compare.Distance},
		"a part's state":       {part + "m = torch.nn.BatchNorm1d(3)\nl = torch.nn.ModuleList([m])\ny = m(x)\n", nil, ""},
		"uniform":              {"y = torch.rand((100, 100))\n", nil, ""},
		"uniform, biased":      {"y = torch.rand((100, 100))\n", value(0, func(_ int, v float64) float64 { return 0.02 + 0.98*v }), compare.Distribution},
		"uniform, 1":           {"y = torch.rand((3,))\n", value(0, at(1, 1)), compare.Support},
		"uniform, rows":        {"y = torch.rand((100, 100))\n", repeatRows, compare.Distribution},
		"normal":               {"y = torch.randn((100, 100))\n", nil, ""},
		"normal, wide":         {"y = torch.randn((100, 100))\n", value(0, times(1.06)), compare.Distribution},
		"constant":             {"y = torch.randn((100,))\n", value(0, times(0)), compare.Distribution},
		"permutation":          {"y = torch.randperm(60)\n", nil, ""},
		"no permutation":       {"y = torch.randperm(60)\n", value(0, at(1, 0)), compare.Support},
		"undefined":            {"e = torch.empty((5,))\ny = torch.exp(e)\n", value(1, at(2, 7)), ""},
		"undefined, its shape": {"x = tensor((5,), torch.float32, uniform(1, 2, key=5))\ne = torch.empty((5,))\ny = x.view_as(e)\n", value(1, at(2, 7)), compare.Distance},
		"undefined, filled":    {"e = torch.empty((5,))\nf = e.fill_(2.0)\ny = torch.exp(e)\n", value(2, at(2, 7)), compare.Distance},
		"undefined, in part":   {"x = tensor((5,), torch.float32, uniform(1, 2, key=5))\ne = torch.empty((5,))\nv = torch.select(e, 0, 0)\nf = v.fill_(2.0)\ny = torch.exp(e)\n", value(3, at(2, 7)), ""},
		"undefined, beside":    {"x = tensor((5,), torch.float32, uniform(1, 2, key=5))\ne = torch.empty((5,))\nf = e.add_(x)\ny = torch.exp(x)\n", value(2, at(2, 7)), compare.Distance},
		"ordered":              {"y = torch.randperm(60)\n", value(0, func(i int, _ float64) float64 { return float64(i) }), compare.Distribution},
		"rrelu":                {"x = tensor((100, 100), torch.float32, uniform(-2, 2, key=5), requires_grad=True)\ny = torch.nn.functional.rrelu(x, 0.1, 0.3, True)\ny.backward(uniform(0, 1, key=3))\n", nil, ""},
		"rrelu, beyond":        {"x = tensor((100, 100), torch.float32, uniform(-2, 2, key=5))\ny = torch.nn.functional.rrelu(x, 0.1, 0.3, True)\n", value(0, times(1.01)), compare.Support},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			v := drawTwice(t, tt.text, tt.change)
			var rule compare.Rule
			if len(v.Differences) > 0 {
				rule = v.Differences[0].Diff.Rule
			}
			if rule != tt.want {
				t.Errorf("rule %q, want %q: %s", rule, tt.want, v.Text())
			}
		})
	}
}

func rewrite(t *tensor.Tensor, f func(at int, v float64) float64) {
	for i := range t.Len() {
		t.Set(i, complex(f(i, t.Float(i)), 0))
	}
}

func at(i int, to float64) func(int, float64) float64 {
	return func(k int, v float64) float64 {
		if k == i {
			return to
		}
		return v
	}
}

// shiftGrad gives the gradient of another mask.
func shiftGrad(_ *program.Program, cand *backend.Outcome) {
	g := cand.Grad("x")
	first := g.Float(0)
	rewrite(g, func(i int, v float64) float64 {
		if i+1 == g.Len() {
			return first
		}
		return g.Float(i + 1)
	})
}

// dropMore drops every twentieth element.
func dropMore(_ *program.Program, cand *backend.Outcome) {
	rewrite(cand.Values[0].Tensor, func(i int, v float64) float64 {
		if i%20 == 0 {
			return 0
		}
		return v
	})
}

// inPart drops or keeps element 3 against its channel.
func inPart(p *program.Program, cand *backend.Outcome) {
	x := p.Inputs[0].Materialize()
	rewrite(cand.Values[0].Tensor, func(i int, v float64) float64 {
		switch {
		case i != 3:
			return v
		case v == 0:
			return x.Float(i) / 0.7
		}
		return 0
	})
}

func keepAll(p *program.Program, cand *backend.Outcome) {
	x := p.Inputs[0].Materialize()
	rewrite(cand.Values[0].Tensor, func(i int, _ float64) float64 { return x.Float(i) / 0.7 })
}

func keepSome(p *program.Program, cand *backend.Outcome) {
	x := p.Inputs[0].Materialize()
	rewrite(cand.Values[1].Tensor, func(i int, v float64) float64 {
		if i%9 == 0 {
			return 2 * x.Float(i)
		}
		return v
	})
}

func repeatRows(_ *program.Program, cand *backend.Outcome) {
	y := cand.Values[0].Tensor
	rewrite(y, func(i int, _ float64) float64 { return y.Float(i % 100) })
}

// TestShapesThatDrawsDecide compares results that are as large as what was
// drawn before says, and finds a shape that the candidate's own draws do not
// give.
func TestShapesThatDrawsDecide(t *testing.T) {
	const (
		integers = "r = torch.randint(0, 40, (5,))\n"
		mask     = "x = tensor((30,), torch.float32, uniform(1, 2, key=5))\nr = torch.rand((30,))\nm = torch.gt(r, 0.5)\n"
		changed  = mask + "z = x.mul_(r)\nb = torch.gt(x, 0.7)\ny = operator.getitem(r, b)\n"
	)
	tests := map[string]string{
		"one_hot":           integers + "y = torch.nn.functional.one_hot(r)\n",
		"one_hot, summed":   integers + "o = torch.nn.functional.one_hot(r)\ny = torch.sum(o, 0)\n",
		"bincount":          integers + "y = torch.bincount(r)\n",
		"repeat_interleave": integers + "y = torch.repeat_interleave(r, r)\n",
		"unique":            integers + "d = torch.remainder(r, 7)\ny = torch.unique(d)\n",
		"unique, in parts":  integers + "d = torch.remainder(r, 7)\nu = torch.unique(d, return_inverse=True, return_counts=True)\ny = operator.getitem(u, 2)\n",
		"where":             mask + "w = torch.where(m)\ny = operator.getitem(w, 0)\n",
		"nonzero":           mask + "y = torch.nonzero(m)\n",
		"masked_select":     mask + "s = torch.masked_select(x, m)\ny = torch.exp(s)\n",
		"getitem":           mask + "y = operator.getitem(x, m)\n",
		"index_put":         "v = tensor((), torch.float32, uniform(1, 2, key=6))\n" + mask + "y = torch.index_put(x, (m,), v)\n",
	}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			if v := drawTwice(t, text, nil); len(v.Differences) > 0 {
				t.Errorf("a difference: %s", v.Text())
			}
			v := drawTwice(t, text, func(_ *program.Program, cand *backend.Outcome) {
				y := &cand.Values[len(cand.Values)-1]
				y.Tensor = y.Tensor.Reshape(append([]int{1}, y.Tensor.Shape()...)...)
			})
			if len(v.Differences) == 0 || v.Differences[0].Diff.Rule != compare.Shape {
				t.Errorf("a result with a dimension more is not found: %s", v.Text())
			}
		})
	}
	if v := drawTwice(t, changed, nil); len(v.Differences) > 0 {
		t.Errorf("a mask of what was changed in place: %s", v.Text())
	}
}
