package native_test

import (
	"context"
	"fmt"
	"math"
	"math/cmplx"
	"slices"
	"strings"
	"testing"

	"plumb/backend"
	"plumb/backend/native"
	"plumb/global"
	"plumb/graph"
	"plumb/internal/draw/choice"
	"plumb/internal/draw/opcase"
	"plumb/internal/find/shrink"
	"plumb/internal/judge/verdict"
	"plumb/internal/mutants"
	"plumb/nn"
	"plumb/op"
	"plumb/ops"
	"plumb/program"
	"plumb/tensor"
)

// rankModes are the hierarchies that cases are drawn over.
var rankModes = []string{"global", "global-3", "global-2x2", "global-graph", "global-graph-3", "global-graph-2x2"}

// disagreement runs legal float64 calls of an operator over ranks and by one
// process, and returns the first way in which they differ; nil if none does.
func disagreement(t *testing.T, table *op.Table, modules *nn.Table, id string, cases int) error {
	t.Helper()
	one := native.New(table, modules)
	d := opcase.Drawer{Table: table, Def: table.Def(id)}
	for key := range uint64(cases) {
		p, err := d.Legal(choice.New(choice.DeriveName(key, id)), tensor.F64)
		if err != nil {
			continue
		}
		over, err := one.In(rankModes[int(key)%len(rankModes)])
		if err != nil {
			t.Fatal(err)
		}
		want, err := one.Run(context.Background(), backend.NewJob(p))
		if err != nil {
			t.Fatal(err)
		}
		got, err := over.Run(context.Background(), backend.NewJob(p))
		if err != nil {
			t.Fatal(err)
		}
		if got.Status == backend.Unsupported && strings.Contains(got.Message, "cannot be captured") {
			continue
		}
		if err := alike(want, got); err != nil {
			return fmt.Errorf("case %d: %w in\n%s", key, err, p)
		}
	}
	return nil
}

// alike compares outcomes whose sums may be added up in another order.
func alike(want, got *backend.Outcome) error {
	if got.Status != want.Status || got.Class != want.Class {
		return fmt.Errorf("%s %s: %s, not %s %s: %s", got.Status, got.Class, got.Message, want.Status, want.Class, want.Message)
	}
	if len(got.Slots) != len(want.Slots) || len(got.Values) != len(want.Values) {
		return fmt.Errorf("%d values and %d other tensors, not %d and %d", len(got.Values), len(got.Slots), len(want.Values), len(want.Slots))
	}
	for i := range want.Values {
		if err := alikeValues(&want.Values[i], &got.Values[i]); err != nil {
			return fmt.Errorf("value %d: %w", i, err)
		}
	}
	for _, s := range want.Slots {
		i := slices.IndexFunc(got.Slots, func(o backend.Slot) bool { return o.Place == s.Place })
		if i < 0 {
			return fmt.Errorf("%v is missing", s.Place)
		}
		if err := near(s.Tensor, got.Slots[i].Tensor); err != nil {
			return fmt.Errorf("%v: %w", s.Place, err)
		}
	}
	return nil
}

func alikeValues(want, got *backend.Value) error {
	if len(got.Tuple) != len(want.Tuple) {
		return fmt.Errorf("%d results, not %d", len(got.Tuple), len(want.Tuple))
	}
	for i := range want.Tuple {
		if err := alikeValues(&want.Tuple[i], &got.Tuple[i]); err != nil {
			return err
		}
	}
	return near(want.Tensor, got.Tensor)
}

func near(w, g *tensor.Tensor) error {
	if w == nil && g == nil {
		return nil
	}
	if w == nil || g == nil {
		return fmt.Errorf("a tensor is missing")
	}
	if w.DType() != g.DType() || !slices.Equal(w.Shape(), g.Shape()) || !slices.Equal(w.Strides(), g.Strides()) {
		return fmt.Errorf("%s with strides %v, not %s with %v", g, g.Strides(), w, w.Strides())
	}
	scale, unit := 1.0, 0x1p-52
	if w.DType().Real() == tensor.F32 {
		unit = 0x1p-23
	}
	for i := range w.Len() {
		if m := cmplx.Abs(w.At(i)); !math.IsInf(m, 0) && !math.IsNaN(m) {
			scale = max(scale, m)
		}
	}
	for i := range w.Len() {
		x, y := w.At(i), g.At(i)
		if x != y && !(cmplx.IsNaN(x) && cmplx.IsNaN(y)) && !(cmplx.Abs(x-y) <= 1024*scale*unit) {
			return fmt.Errorf("element %d is %v, not %v", i, y, x)
		}
	}
	return nil
}

// TestRanksComputeTheWhole: what every operator computes over ranks, forward and
// backward, in place and through views, is what one process computes.
func TestRanksComputeTheWhole(t *testing.T) {
	for _, d := range ops.Table().Defs() {
		if d.Sample == nil || d.Traits.Has(op.Random) || len(d.Names) == 0 {
			continue
		}
		if err := disagreement(t, ops.Table(), nn.Modules(), d.ID(), len(rankModes)); err != nil {
			t.Errorf("%s: %v", d.ID(), err)
		}
	}
}

// claims has the operator claim another signature beside its own.
func claims(args map[string]op.SBP, results ...op.SBP) func(d *op.Def) {
	return func(d *op.Def) {
		own := d.SBP
		d.NotSplittable = ""
		d.SBP = func(a op.Args) []op.Sharding {
			var all []op.Sharding
			if own != nil {
				all = own(a)
			}
			for name, sbp := range args {
				axis, split := sbp.Axis()
				if i := slices.Index(a.ArgNames(), name); i < 0 || split && axis >= len(a.AllValues()[i].Shape()) {
					return all
				}
			}
			return append(all, op.Sharding{Args: args, Results: results})
		}
	}
}

// TestWrongRulesAreFound plants rules that are wrong as those of frameworks have been.
func TestWrongRulesAreFound(t *testing.T) {
	const cases = 60
	in := func(sbp op.SBP) map[string]op.SBP { return map[string]op.SBP{"input": sbp} }
	both := func(x, y op.SBP) map[string]op.SBP { return map[string]op.SBP{"input": x, "other": y} }
	for _, f := range []struct {
		name, id string
		plant    func(d *op.Def)
	}{
		{"a partial value through relu", "relu", claims(in(op.P), op.P)},
		{"a partial value through exp", "exp", claims(in(op.P), op.P)},
		{"a partial value through abs", "abs", claims(in(op.P), op.P)},
		{"a partial value through floor", "floor", claims(in(op.P), op.P)},
		{"a partial value through sigmoid", "sigmoid", claims(in(op.P), op.P)},
		{"a product of two partial values", "mul", claims(both(op.P, op.P), op.P)},
		{"a sum of a partial value and a whole", "add", claims(both(op.P, op.B), op.P)},
		{"a partial divisor", "div", claims(both(op.B, op.P), op.P)},
		{"a comparison of partial values", "lt", claims(both(op.P, op.P), op.B)},
		{"a sum that every rank keeps for itself", "sum", claims(in(op.S(0)), op.B)},
		{"a mean of means", "mean", claims(in(op.S(0)), op.P)},
		{"a maximum of pieces", "amax", claims(in(op.S(0)), op.P)},
		{"a product of pieces as a sum", "prod", claims(in(op.S(0)), op.P)},
		{"an argmax within the piece", "argmax", claims(in(op.S(0)), op.B)},
		{"a softmax over a piece", "softmax", claims(in(op.S(0)), op.S(0))},
		{"a log_softmax over a piece", "log_softmax", claims(in(op.S(0)), op.S(0))},
		{"a norm over a piece", "layer_norm", claims(in(op.S(1)), op.S(1))},
		{"a scan that restarts in each piece", "cumsum", claims(in(op.S(0)), op.S(0))},
		{"a product scan that restarts", "cumprod", claims(in(op.S(0)), op.S(0))},
		{"a sort within the piece", "sort", claims(in(op.S(0)), op.S(0), op.S(0))},
		{"a flip within the piece", "flip", claims(in(op.S(0)), op.S(0))},
		{"a product without its reduction", "matmul", claims(both(op.S(1), op.S(0)), op.B)},
		{"a product whose rows are summed", "matmul", claims(both(op.S(0), op.B), op.P)},
		{"a transpose whose axis stays", "t", claims(in(op.S(0)), op.S(0))},
		{"a convolution without its halo", "conv1d", claims(in(op.S(2)), op.S(2))},
		{"a pool without its halo", "avg_pool1d", claims(in(op.S(2)), op.S(2))},
		{"a triangle of the piece", "tril", claims(in(op.S(0)), op.S(0))},
		{"a diagonal of the piece", "diagonal", claims(in(op.S(0)), op.S(0))},
		{"a loss that every rank averages", "mse_loss", claims(map[string]op.SBP{"input": op.S(0), "target": op.S(0)}, op.P)},
		{"a gather by the whole's indices", "index_select", claims(in(op.S(0)), op.S(0))},
		{"a gradient of softmax within the piece", "softmax.backward", claims(map[string]op.SBP{"grad": op.S(0), "output": op.S(0)}, op.S(0))},
		{"a gradient of log_softmax within the piece", "log_softmax.backward", claims(map[string]op.SBP{"grad": op.S(0), "output": op.S(0)}, op.S(0))},
		{"a gradient of a scan that restarts", "cumsum.backward", claims(map[string]op.SBP{"grad": op.S(0)}, op.S(0))},
		{"a weight's gradient that no rank sums", "layer_norm.backward", claims(map[string]op.SBP{"grad": op.S(0), "input": op.S(0)}, op.S(0), op.B)},
		{"a gradient of batch_norm by the piece's mean", "batch_norm.backward", claims(map[string]op.SBP{"grad": op.S(0), "input": op.S(0)}, op.S(0), op.P, op.P)},
	} {
		table, modules, err := mutants.Plant(func(defs map[string]*op.Def, _ map[string]*nn.Def) error {
			if defs[f.id] == nil {
				return fmt.Errorf("no operator %s", f.id)
			}
			f.plant(defs[f.id])
			return nil
		})
		if err != nil {
			t.Errorf("%s: %v", f.name, err)
			continue
		}
		forward, _, _ := strings.Cut(f.id, ".")
		if disagreement(t, table, modules, forward, cases) == nil {
			t.Errorf("%s (%s) is not found in %d cases", f.name, f.id, cases)
		}
		if err := disagreement(t, ops.Table(), nn.Modules(), forward, cases); err != nil {
			t.Errorf("%s is wrong without a fault: %v", forward, err)
		}
	}
}

// TestFindingsOverRanksAreSmall: a wrong rule's case ends as one call whose input
// the program lays on two ranks, with what is right beside it.
func TestFindingsOverRanksAreSmall(t *testing.T) {
	table, modules, err := mutants.Plant(func(defs map[string]*op.Def, _ map[string]*nn.Def) error {
		claims(map[string]op.SBP{"input": op.S(0)}, op.S(0))(defs["softmax"])
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	over, err := native.New(table, modules).In("global-3")
	if err != nil {
		t.Fatal(err)
	}
	judge := func(ctx context.Context, p *program.Program) (*verdict.Record, error) {
		want, err := native.New(table, modules).Run(ctx, backend.NewJob(p))
		if err != nil {
			return nil, err
		}
		got, err := over.Run(ctx, backend.NewJob(p))
		r := &verdict.Record{Program: p, Reference: want, Outcome: got, Verdict: &verdict.Verdict{Word: verdict.Aligned}, Modes: []string{"global-3"}}
		if want.Status != backend.OK || got.Status != want.Status {
			r.Verdict.Word = verdict.Rejected
		} else if alike(want, got) != nil {
			last := len(p.Calls) - 1
			r.Verdict.Word = verdict.Misaligned
			r.Verdict.Where = &verdict.Where{Part: backend.PartValue, Call: last, Target: p.Calls[last].Target, Name: p.Calls[last].Result}
		}
		return r, err
	}
	for seed := range 20 {
		p, err := program.Parse("p.py", fmt.Sprintf("# plumb program v1\nimport operator, torch\nfrom plumb import case, integer, tensor, uniform\n\ncase(\"t\", seed=%d)\nx = tensor((7, 4), torch.float64, uniform(-1.0, 1.0, key=1))\na = torch.tanh(x)\ny = torch.softmax(a, 0)\n", seed))
		if err != nil {
			t.Fatal(err)
		}
		first, err := judge(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		if first.Verdict.Word != verdict.Misaligned {
			continue
		}
		result, err := shrink.Shrink(t.Context(), first, shrink.Subject{Judge: judge, OverRanks: true}, shrink.DefaultBudget, nil)
		if err != nil {
			t.Fatal(err)
		}
		if small := result.Record.Program; len(small.Calls) != 2 || !strings.Contains(result.Ranks, "wrong with 2 ranks, ") || !strings.Contains(result.Ranks, "S(0), 2 rows; right with ") {
			t.Errorf("%q of\n%s", result.Ranks, small)
		}
		return
	}
	t.Error("no seed shows the fault")
}

// TestPlacedPrograms: tensors that a program brings to places, illegal ones too.
func TestPlacedPrograms(t *testing.T) {
	const header = "# plumb program v1\nimport operator, torch\nfrom plumb import case, integer, tensor, uniform\n\ncase(\"t\", seed=5)\nx = tensor((5, 4), torch.float64, uniform(-1.0, 1.0, key=1), requires_grad=True)\n"
	for src, refused := range map[string]bool{
		"a = x.to_global(placement=\"cpu[0, 1, 2]\", sbp=\"S(0)\")\ny = torch.softmax(a, 0)\nz = y.to_global(sbp=\"P\")\nw = torch.relu(z)\nw.backward(uniform(-1.0, 1.0, key=2))\n":                                               false,
		"a = x.to_global(placement=\"cpu[[0, 1], [2, 3]]\", sbp=\"[S(0), S(0)]\")\nb = a.t()\ny = torch.matmul(a, b)\nz = y.to_global(placement=\"cpu[2]\", sbp=\"B\")\nw = torch.exp(z)\nw.backward(uniform(-1.0, 1.0, key=2))\n": false,
		"a = x.to_global(placement=\"cpu[0, 1]\", sbp=\"S(7)\")\n":                                                                    true,
		"a = x.to_global(placement=\"cpu[0, 1]\", sbp=\"[B, B]\")\n":                                                                  true,
		"a = x.to_global(placement=\"cpu[0, 0]\", sbp=\"B\")\n":                                                                       true,
		"y = torch.sum(x)\na = y.to_global(placement=\"cpu[0, 1]\", sbp=\"S(0)\")\n":                                                  true,
		"y = torch.sum(x)\na = y.to_global(placement=\"cpu[0, 1]\", sbp=\"P\")\nw = a.exp()\nw.backward(uniform(-1.0, 1.0, key=2))\n": false,
		"a = x.to_global(placement=\"cpu[0, 1]\", sbp=\"S(0)\", grad_sbp=\"[B, B]\")\n":                                               true,
		"y = x.to_local(placement=\"cpu[0, 1]\", sbp=\"S(0)\", rank=2)\n":                                                             true,
		"y = x.to_local(placement=\"cpu[0, 1]\", sbp=\"P\", rank=1)\n":                                                                true,
		"a = x.to_global(placement=\"cpu[0, 1, 2]\", sbp=\"S(0)\")\nb = torch.exp(a)\ny = b.to_local(placement=\"cpu[[0, 1], [2, 3]]\", sbp=\"[S(0), S(1)]\", rank=2)\nw = torch.sum(y)\nw.backward(uniform(-1.0, 1.0, key=2))\n": false,
		"a = x.to_global(placement=\"cpu[0, 1]\", sbp=\"S(0)\", grad_sbp=\"S(1)\")\nb = a.to_global(sbp=\"B\", grad_sbp=\"P\")\nw = torch.exp(b)\nw.backward(uniform(-1.0, 1.0, key=2))\n":                                        false,
	} {
		p, err := program.Parse("p.py", header+src)
		if err != nil {
			t.Fatal(err)
		}
		one := native.New(ops.Table(), nn.Modules())
		over, err := one.In("global")
		if err != nil {
			t.Fatal(err)
		}
		want, err := one.Run(context.Background(), backend.NewJob(p))
		if err != nil {
			t.Fatal(err)
		}
		got, err := over.Run(context.Background(), backend.NewJob(p))
		if err != nil {
			t.Fatal(err)
		}
		if refused {
			if got.Status != backend.Raised || got.Class != "RuntimeError" {
				t.Errorf("%s %s: %s, not a RuntimeError, of\n%s", got.Status, got.Class, got.Message, src)
			}
			continue
		}
		if err := alike(want, got); err != nil {
			t.Errorf("%v in\n%s", err, src)
		}
	}
}

// TestGradientsGoWhereTheyAreTold: the gradient of what to_global gives is boxed to
// grad_sbp, then to where the tensor lies of which it was made.
func TestGradientsGoWhereTheyAreTold(t *testing.T) {
	p, err := program.Parse("p.py", "# plumb program v1\nimport operator, torch\nfrom plumb import case, integer, tensor, uniform\n\ncase(\"t\", seed=5)\n"+
		"x = tensor((5, 4), torch.float64, uniform(-1.0, 1.0, key=1), requires_grad=True)\na = x.to_global(placement=\"cpu[0, 1, 2]\", sbp=\"S(0)\")\nb = a.to_global(sbp=\"B\", grad_sbp=\"S(1)\")\nw = torch.exp(b)\nw.backward(uniform(-1.0, 1.0, key=2))\n")
	if err != nil {
		t.Fatal(err)
	}
	over, err := native.New(ops.Table(), nn.Modules()).In("global")
	if err != nil {
		t.Fatal(err)
	}
	var boxings []string
	watched := over.(*native.GlobalBackend).Tampered(func(from, to *global.Tensor, _ []*tensor.Tensor) {
		boxings = append(boxings, from.SBP().String()+" to "+to.SBP().String())
	})
	if out, err := watched.Run(t.Context(), backend.NewJob(p)); err != nil || out.Status != backend.OK {
		t.Fatal(err, out)
	}
	if i := slices.Index(boxings, "S(0) to B"); i < 0 || !slices.Contains(boxings[i:], "S(1) to S(0)") {
		t.Errorf("the boxings are %q", boxings)
	}
}

// TestPlacedItself: a tensor that to_global places itself lies so in the calls after
// it, in eager execution and in plans.
func TestPlacedItself(t *testing.T) {
	p, err := program.Parse("p.py", "# plumb program v1\nimport operator, torch\nfrom plumb import case, integer, tensor, uniform\n\ncase(\"t\", seed=5)\n"+
		"x = tensor((4, 6), torch.float32, uniform(-1.0, 1.0, key=1))\na = x.to_global(placement=\"cpu[0, 1]\", sbp=\"S(1)\", itself=True)\nb = torch.exp(x)\nc = torch.relu(b)\nd = torch.neg(c)\ne = torch.tanh(x)\n")
	if err != nil {
		t.Fatal(err)
	}
	over, err := native.New(ops.Table(), nn.Modules()).In("global")
	if err != nil {
		t.Fatal(err)
	}
	ctx := native.Telling(t.Context(), func(s global.Step) {
		if s.Call.Def.ID() != "clone" && !strings.Contains(fmt.Sprint(s.Signature), "S(1)") {
			t.Errorf("%s runs by %v", s.Call.Def.ID(), s.Signature)
		}
	})
	if out, err := over.Run(ctx, backend.NewJob(p)); err != nil || out.Status != backend.OK {
		t.Fatal(err, out)
	}
	code, demands, err := native.New(ops.Table(), nn.Modules()).Graph(graph.Options{}).Placed(t.Context(), backend.NewJob(p))
	if err != nil {
		t.Fatal(err)
	}
	place, err := global.NewPlacement("cpu", []int{2})
	if err != nil {
		t.Fatal(err)
	}
	rt := &global.Runtime{Placement: place, Demands: demands}
	whole := func(*graph.Value) global.SBP { return global.Broadcast(1) }
	for name, plan := range map[string]func() (*global.Plan, error){
		"by calls": func() (*global.Plan, error) { return rt.Plan(code, whole) },
		"search":   func() (*global.Plan, error) { return rt.Search(code, whole, 8) },
	} {
		if p, err := plan(); err != nil || strings.Count(p.String(), ":S(1) float32") < 5 {
			t.Errorf("%s: %v\n%s", name, err, p)
		}
	}
}

// TestSumsOfZeros: what was computed of summands has the sign of zero that the whole has.
func TestSumsOfZeros(t *testing.T) {
	over, err := native.New(ops.Table(), nn.Modules()).In("global-3")
	if err != nil {
		t.Fatal(err)
	}
	for seed := range 40 {
		p, err := program.Parse("p.py", fmt.Sprintf("# plumb program v1\nimport operator, torch\nfrom plumb import case, integer, tensor, uniform\n\ncase(\"t\", seed=%d)\nx = tensor((), torch.float32, [-1.0])\ny = torch.mul(x, 0)\n", seed))
		if err != nil {
			t.Fatal(err)
		}
		out, err := over.Run(t.Context(), backend.NewJob(p))
		if err != nil || out.Status != backend.OK {
			t.Fatal(err, out)
		}
		if y := real(out.Values[0].Tensor.At(0)); !math.Signbit(y) {
			t.Fatalf("seed %d: -1 × 0 is %v", seed, y)
		}
	}
}

// TestTellingOfCalls: why ranks did not share a call is told of each.
func TestTellingOfCalls(t *testing.T) {
	p, err := program.Parse("p.py", "# plumb program v1\nimport operator, torch\nfrom plumb import case, integer, tensor, uniform\n\ncase(\"t\", seed=5)\n"+
		"x = tensor((1, 6), torch.float32, uniform(-1.0, 1.0, key=1))\na = x.to_global(placement=\"cpu[0, 1]\", sbp=\"S(1)\")\nb = torch.relu(a)\nc = torch.nonzero(b)\nd = torch.softmax(b, 1)\n")
	if err != nil {
		t.Fatal(err)
	}
	over, err := native.New(ops.Table(), nn.Modules()).In("global")
	if err != nil {
		t.Fatal(err)
	}
	said := map[string]string{}
	ctx := native.Telling(t.Context(), func(s global.Step) { said[s.Call.Def.ID()] = s.Gathered })
	if out, err := over.Run(ctx, backend.NewJob(p)); err != nil || out.Status != backend.OK {
		t.Fatal(err, out)
	}
	if said["relu"] != "" || !strings.Contains(said["nonzero"], "depend on all elements") || said["softmax"] != "no signature fits the ranks" {
		t.Errorf("%q", said)
	}
}

func TestRankModes(t *testing.T) {
	for mode, want := range map[string]bool{"global": true, "global-2": true, "global-2x3": true, "global-64": true, "global-65": false, "global-0": false, "global-2x": false, "global-x": false, "globally": false} {
		if native.HasMode(mode) != want {
			t.Errorf("HasMode(%q) is %v", mode, !want)
		}
	}
}
