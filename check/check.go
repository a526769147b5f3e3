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
// difference quotients.
package check

import (
	"context"
	"fmt"
	"math"
	"testing"

	"plumb/backend"
	"plumb/backend/native"
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

// rejects makes illegal calls on the native backend alone: they give values or
// an error of a Python class.
func rejects(t *testing.T, drawer opcase.Drawer, dt tensor.DType) {
	run := native.New(drawer.Table, nn.Modules())
	for i := range Cases {
		p, err := drawer.Illegal(choice.New(choice.Derive(1, uint64(i))), dt, i)
		if err != nil {
			t.Fatal(err)
		}
		out, err := run.Run(context.Background(), job(p))
		if err != nil {
			t.Fatal(err)
		}
		if out.Status != backend.OK && (out.Status != backend.Raised || out.Class == "") {
			t.Errorf("%s: %s\n%s", out.Status, out.Message, p)
		}
	}
}

func job(p *program.Program) *backend.Job {
	j := &backend.Job{Program: p}
	for i := range p.Inputs {
		j.Inputs = append(j.Inputs, p.Inputs[i].Materialize())
	}
	return j
}

// exact compares sampled calls with the literal's Exact, in float64 and
// float32 and the dtypes between, by the units that its numerics class allows.
func exact(t *testing.T, drawer opcase.Drawer, dtypes []tensor.DType) {
	for _, dt := range dtypes {
		if !dt.IsFloat() {
			continue
		}
		for i := range Cases {
			call, out := execute(t, drawer, dt, uint64(i))
			for e := range out.Len() {
				var x []float64
				for _, v := range call.Args.AllValues() {
					x = append(x, v.(*tensor.Tensor).Float(e))
				}
				want := tensor.Scalar(dt, complex(drawer.Def.Exact(x...), 0)).Float(0)
				if got, ulps := out.Float(e), max(drawer.Def.Tol.ULP, 1); !within(got, want, ulps*compare.Spacing(math.Abs(want), dt)) {
					t.Fatalf("%s, sample %d: %s of %v is %v, exactly %v: more than %v ULP apart", dt, i, drawer.Def.ID(), x, got, want, ulps)
				}
			}
		}
	}
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
	for _, v := range call.Args.AllValues() {
		if v.(*tensor.Tensor).Len() != out[0].Len() {
			t.Skip("the operator broadcasts: Exact is compared by PyTorch's tests alone")
		}
	}
	return call, out[0]
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
		t := campaign.Drawn(name, name, gotest.Number(Cases), choice.DeriveName(seed, name), func(src *choice.Source, i int, _ campaign.Observer) (*program.Program, error) {
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
