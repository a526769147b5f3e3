package op_test

import (
	"strings"
	"testing"

	"plumb/op"
	"plumb/tensor"
)

// TestTableLeavesLiterals: a table has copies of the literals that it is given.
func TestTableLeavesLiterals(t *testing.T) {
	literal := identity(op.Exact)
	literal.Names = []string{"torch.same(input)"}
	for range 2 {
		table, err := op.NewTable(literal)
		if err != nil {
			t.Fatal(err)
		}
		if d := table.Def("same"); d == literal || d.Called("torch.same").Params[0].Name != "input" {
			t.Errorf("the table has %p, given %p, called with %v", d, literal, d.Called("torch.same").Params)
		}
	}
	if literal.Names[0] != "torch.same(input)" || literal.ID() != "same" || literal.Sigs()[0].Params[0].Name != "x" {
		t.Errorf("the literal is now %+v", literal)
	}
}

// TestTableRefuses: a literal whose fields contradict each other is no operator.
func TestTableRefuses(t *testing.T) {
	for text, change := range map[string]func(*op.Def){
		"has the trait View and no View":    func(d *op.Def) { d.Traits |= op.View },
		"Mutates names y":                   func(d *op.Def) { d.Mutates = []op.TensorArg{"y"} },
		"Fixed names y":                     func(d *op.Def) { d.Fixed = []op.Handle{op.TensorArg("y")} },
		"Domains names y":                   func(d *op.Def) { d.Domains = map[op.TensorArg]op.Domain{"y": op.NoNaN} },
		"Choices names mode":                func(d *op.Def) { d.Choices = []string{"mode"} },
		"has no numerics class":             func(d *op.Def) { d.Tol = op.Tol{} },
		"has no gradient and is not NoGrad": func(d *op.Def) { d.Traits = 0 },
	} {
		d := identity(op.Exact)
		change(d)
		if _, err := op.NewTable(d); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("want %q, got %v", text, err)
		}
	}
}

// identity returns an operator that copies x.
func identity(class op.Class) *op.Def {
	return &op.Def{
		Sig: "same(Tensor x) -> Tensor", Traits: op.NoGrad, Tol: op.Tol{Class: class, Reason: "test"},
		Infer: func(a op.Args) ([]op.Meta, error) {
			return []op.Meta{{DType: a.Value("x").DType(), Shape: a.Value("x").Shape()}}, nil
		},
		Kernels: []op.Kernel{{Name: "copy", Run: func(c *op.Run) error { c.Out[0].CopyFrom(c.Tensor("x")); return nil }}},
	}
}

// TestShardingBeyondTheRank: a signature that splits an axis that is not there is none.
func TestShardingBeyondTheRank(t *testing.T) {
	d := identity(op.Exact)
	d.SBP = func(op.Args) []op.Sharding {
		return []op.Sharding{
			{Args: map[string]op.SBP{"x": op.S(4)}, Results: []op.SBP{op.S(4)}},
			{Args: map[string]op.SBP{"x": op.S(-1)}, Results: []op.SBP{op.S(0)}},
			{Args: map[string]op.SBP{"x": op.S(0)}, Results: []op.SBP{op.S(0)}},
		}
	}
	table, err := op.NewTable(d)
	if err != nil {
		t.Fatal(err)
	}
	call, err := table.ResolveID("same", []any{tensor.New(tensor.F32, 4, 3)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if all, err := call.Shardings(); err != nil || len(all) != 1 {
		t.Errorf("%v, %v; want that of axis 0 alone", all, err)
	}
}

// TestCopiesCallBySignaturesOfTheirOwn: a literal that was copied from a table and has
// another default since has it under a public name with its own parameters too.
func TestCopiesCallBySignaturesOfTheirOwn(t *testing.T) {
	const name = "torch.f"
	first, err := op.NewTable(&op.Def{
		Sig: "f(Tensor x, float a=0.5) -> Tensor", Names: []string{name + "(input, slope)"}, Traits: op.NoGrad, Tol: op.Tol{Class: op.Exact, Reason: "test"},
		Infer: func(op.Args) ([]op.Meta, error) { return nil, nil }, Kernels: make([]op.Kernel, 1),
	})
	if err != nil {
		t.Fatal(err)
	}
	changed := *first.Def("f")
	changed.Sig = "f(Tensor x, float a=0.25) -> Tensor"
	second, err := op.NewTable(&changed)
	if err != nil {
		t.Fatal(err)
	}
	for table, want := range map[*op.Table]float64{first: 0.5, second: 0.25} {
		p := table.Def("f").Called(name).Params[1]
		if p.Name != "slope" || p.Default != want {
			t.Errorf("the parameter is %s=%v, want slope=%v", p.Name, p.Default, want)
		}
	}
}
