// Package check runs all the checks that follow from an operator's literal, for
// operators of Plumb and for those of others alike:
//
//	func TestOperators(t *testing.T) {
//		table, err := op.NewTable(append(mine, ops.All()...)...)
//		…
//		check.Operator(t, table, "my_operator")
//	}
//
// They follow from the literal alone; package plumb judges programs that a test
// writes, and both take its flags.
//
// An operator with a public name is judged against PyTorch under that name:
// legal calls in every dtype, in other layouts, by position and by keyword,
// forward and backward, and calls that break a rule, which both sides have to
// refuse with the same class of error. One without a name is judged against the
// Exact of its literal. A differentiable one has its gradients compared with
// difference quotients. Each signature of its SBP is run on 2 and 3 ranks.
package check

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"plumb/backend"
	"plumb/backend/native"
	"plumb/global"
	"plumb/internal/campaign"
	"plumb/internal/draw/choice"
	"plumb/internal/draw/opcase"
	"plumb/internal/gotest"
	"plumb/internal/gradcheck"
	"plumb/internal/judge/compare"
	"plumb/internal/judge/verdict"
	"plumb/nn"
	"plumb/op"
	"plumb/program"
	"plumb/tensor"
)

// Cases is how many calls of each kind are drawn.
const Cases = 50

// Operator runs the checks of an operator of the table as subtests. Names are
// looked up in the table's order: an operator that shares one with Plumb's own
// stands before them. Without PyTorch, what needs it is skipped.
func Operator(t *testing.T, table *op.Table, id string) {
	d := table.Def(id)
	if d == nil {
		t.Fatalf("the table has no operator %s", id)
	}
	drawer := opcase.Drawer{Table: table, Def: d}
	dtypes := drawer.DTypes(tensor.DTypes...)
	if len(dtypes) == 0 {
		t.Fatalf("operator %s: no call of its Sample is legal in any dtype", id)
	}
	t.Logf("dtypes of %s: %v", id, dtypes)
	if len(d.Names) > 0 {
		t.Run("aligned", func(t *testing.T) { aligned(t, drawer, dtypes) })
	}
	t.Run("rejects", func(t *testing.T) { rejects(t, drawer, dtypes[0]) })
	if d.Exact != nil {
		t.Run("exact", func(t *testing.T) { exact(t, drawer, dtypes) })
	}
	if d.NotSplittable == "" && !d.Traits.Has(op.Random) && !d.Traits.Has(op.Dynamic) {
		t.Run("sharding", func(t *testing.T) { sharding(t, drawer, dtypes) })
	}
	if !d.Traits.Has(op.NoGrad) {
		t.Run("gradient", func(t *testing.T) { gradient(t, table, d) })
	}
	if len(d.Names) == 0 && d.Exact == nil {
		t.Errorf("operator %s has neither a public name nor an Exact to be judged by", id)
	}
}

// gradient compares the gradients of sampled calls with difference quotients,
// to second order.
func gradient(t *testing.T, table *op.Table, d *op.Def) {
	r := gradcheck.Check(table, d, gradcheck.Options{Seed: 1})
	for i := range r.Findings {
		t.Error(&r.Findings[i])
	}
	if r.None != "" {
		t.Error(r.None)
	}
}

// sharding runs sampled calls by every signature of the literal's SBP, or of
// those that follow from its formula, on 2 and 3 ranks.
func sharding(t *testing.T, drawer opcase.Drawer, dtypes []tensor.DType) {
	dt := dtypes[0]
	if slices.Contains(dtypes, tensor.F64) {
		dt = tensor.F64
	}
	ran := 0
	for i := range Cases {
		call, _ := execute(t, drawer, dt, uint64(i))
		if drawer.Def.SBP != nil {
			beyond(t, drawer.Def, call)
		}
		shardings, err := call.Shardings()
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range shardings {
			for _, ranks := range []int{2, 3} {
				tried, err := global.Holds(t.Context(), call, s, ranks)
				if err != nil {
					t.Fatalf("SBP of %s: by %s, %d ranks do not have the whole of sample %d: %v", drawer.Def.ID(), s, ranks, i, err)
				}
				if tried {
					ran++
				}
			}
		}
	}
	switch {
	case ran > 0:
	case drawer.Def.SBP == nil:
		t.Skipf("%s states no SBP, and none follows from its formula: each rank computes the whole", drawer.Def.ID())
	default:
		t.Errorf("SBP of %s: no signature fits 2 or 3 ranks in %d samples: state one, draw larger sizes in Sample, or say in NotSplittable why there is none", drawer.Def.ID(), Cases)
	}
}

// beyond reports a signature of the literal that splits an axis that is not there.
func beyond(t *testing.T, d *op.Def, call *op.Call) {
	names, values := call.Args.ArgNames(), call.Args.AllValues()
	for _, s := range d.SBP(call.Args) {
		for name, sbp := range s.Args {
			i := slices.Index(names, name)
			axis, split := sbp.Axis()
			switch {
			case i < 0:
				t.Fatalf("SBP of %s: the signature %s names %s, which is no tensor argument of the call", d.ID(), s, name)
			case split && (axis < 0 || axis >= len(values[i].Shape())):
				t.Fatalf("SBP of %s: the signature %s splits axis %d of %s, which has %d dimensions", d.ID(), s, axis, name, len(values[i].Shape()))
			}
		}
	}
}

// rejects makes illegal calls on the native backend alone: they give values or
// an error of a Python class.
func rejects(t *testing.T, drawer opcase.Drawer, dt tensor.DType) {
	run := native.New(drawer.Table, nn.Modules())
	for i := range Cases {
		p, err := drawer.Illegal(choice.New(choice.Derive(1, uint64(i))), dt, i)
		if err != nil {
			t.Fatal(err)
		}
		out, err := run.Run(context.Background(), backend.NewJob(p))
		if err != nil {
			t.Fatal(err)
		}
		if out.Status != backend.OK && (out.Status != backend.Raised || out.Class == "") {
			t.Errorf("%s: %s\n%s", out.Status, out.Message, p)
		}
	}
}

// exact compares sampled calls with the literal's Exact, in float64 and
// float32 and the dtypes between, by what its numerics class allows.
func exact(t *testing.T, drawer opcase.Drawer, dtypes []tensor.DType) {
	compared := 0
	for _, dt := range dtypes {
		if !dt.IsFloat() {
			continue
		}
		for i := range Cases {
			call, out := execute(t, drawer, dt, uint64(i))
			truth := call.Def.Exact(call.Args)
			if truth == nil {
				continue
			}
			compared++
			ins := operands(t, call, out.Shape())
			x := make([]float64, len(ins))
			for e := range out.Len() {
				for k, in := range ins {
					x[k] = in.Float(e)
				}
				want := truth.Round(out.DType(), x...)
				if got, off := out.Float(e), allowed(call.Def.Tol, out.DType(), want); !within(got, want, off) {
					t.Fatalf("%s, sample %d: %s of %v is %v, exactly %v: more than %v apart", dt, i, drawer.Def.ID(), x, got, want, off)
				}
			}
		}
	}
	if compared == 0 {
		t.Errorf("operator %s: no sample has an Exact", drawer.Def.ID())
	}
}

// allowed is how far a result may be from the truth by a numerics class: terms
// that cancel get PyTorch's default tolerance.
func allowed(tol op.Tol, d tensor.DType, want float64) float64 {
	if tol.Class == op.Accumulating {
		limit := compare.Default(d)
		return float64(limit.ATol) + float64(limit.RTol)*math.Abs(want)
	}
	return max(tol.ULP, 1) * compare.Spacing(math.Abs(want), d)
}

func within(got, want, limit float64) bool {
	return got == want || math.IsNaN(got) && math.IsNaN(want) || math.Abs(got-want) <= limit
}

func execute(t *testing.T, drawer opcase.Drawer, dt tensor.DType, key uint64) (*op.Call, *tensor.Tensor) {
	call, err := drawer.Bind(choice.New(key), dt)
	if err != nil {
		t.Fatal(err)
	}
	out, err := call.Execute()
	if err != nil {
		t.Fatal(err)
	}
	return call, out[0]
}

// operands returns the tensors of a call, broadcast to its result.
func operands(t *testing.T, call *op.Call, shape []int) []*tensor.Tensor {
	var ins []*tensor.Tensor
	for _, v := range call.Args.AllValues() {
		in, err := v.(*tensor.Tensor).Expand(shape...)
		if err != nil {
			t.Fatalf("an Exact is of elements, and %v has no element for each of %v: %v", v.Shape(), shape, err)
		}
		ins = append(ins, in)
	}
	return ins
}

// aligned judges the operator against PyTorch.
func aligned(t *testing.T, drawer opcase.Drawer, dtypes []tensor.DType) {
	seed := gotest.SeedOr(0)
	s := gotest.Run(t, gotest.Config{Table: drawer.Table, Seed: seed, SameException: true, Tests: tests(drawer, dtypes, seed)})
	if !t.Failed() && (s.Words[verdict.Aligned] == 0 || s.Words[verdict.Rejected] == 0) {
		t.Error("no legal or no illegal call was judged")
	}
}

// tests draws legal calls in every dtype, and illegal ones.
func tests(drawer opcase.Drawer, dtypes []tensor.DType, seed uint64) []campaign.Test {
	var all []campaign.Test
	add := func(variant string, fixed bool, draw func(*choice.Source, int) (*program.Program, error)) {
		name := fmt.Sprintf("%s[%s]", drawer.Def.ID(), variant)
		t := campaign.Drawn(name, name, gotest.Number(Cases), choice.Any(choice.DeriveName(seed, name)), func(src *choice.Source, i int, _ campaign.Observer) (*program.Program, error) {
			return draw(src, i)
		})
		t.Fixed = fixed
		all = append(all, t)
	}
	for _, dt := range dtypes {
		add(dt.String(), false, func(src *choice.Source, _ int) (*program.Program, error) { return drawer.Legal(src, dt) })
	}
	add("illegal", true, func(src *choice.Source, i int) (*program.Program, error) {
		return drawer.Illegal(src, dtypes[0], i)
	})
	return all
}
