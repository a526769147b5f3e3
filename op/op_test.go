package op

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"plumb/tensor"
)

func TestParseSig(t *testing.T) {
	s, err := ParseSig("max.dim(Tensor input, int[2]? dim=[1, 2], *, bool keepdim=False, float p=.5, str mode='none', MemoryFormat memory_format=torch.preserve_format) -> (Tensor values, Tensor indices)")
	if err != nil {
		t.Fatal(err)
	}
	want := []Param{
		{Name: "input", Type: Type{Kind: KTensor}},
		{Name: "dim", Type: Type{Kind: KInt, List: true, N: 2, Optional: true}, Default: []int{1, 2}, HasDefault: true},
		{Name: "keepdim", Type: Type{Kind: KBool}, Default: false, HasDefault: true, KwOnly: true},
		{Name: "p", Type: Type{Kind: KFloat}, Default: 0.5, HasDefault: true, KwOnly: true},
		{Name: "mode", Type: Type{Kind: KStr}, Default: "none", HasDefault: true, KwOnly: true},
		{Name: "memory_format", Type: Type{Kind: KFormat}, Default: tensor.Preserve, HasDefault: true, KwOnly: true},
	}
	if s.Name != "max.dim" || !reflect.DeepEqual(s.Params, want) || !reflect.DeepEqual(s.Results, []string{"values", "indices"}) {
		t.Errorf("%#v", s)
	}
	if got := s.Params[1].Type.String(); got != "int[2]?" {
		t.Errorf("type prints as %s", got)
	}
	for _, c := range []struct{ text, want string }{
		{"relu", "no parameter list"},
		{"relu(Tensor input", "parentheses do not match"},
		{"relu(Tensor input) > Tensor", "unexpected"},
		{"relu(Tenser input) -> Tensor", "unknown type"},
		{"relu(Tensor) -> Tensor", "has no name"},
		{"relu(Tensor x, int x) -> Tensor", "appears twice"},
		{"relu(int x=1.5) -> Tensor", "default of x"},
		{"relu(int[0] x) -> Tensor", "list length"},
		{"relu(Tensor x) -> str", "is not a tensor"},
	} {
		if _, err := ParseSig(c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.text, err, c.want)
		}
	}
}

// TestBindReadsTensors: a tensor is a number where PyTorch's argument parser
// takes it for one.
func TestBindReadsTensors(t *testing.T) {
	s := MustParseSig("f(Scalar scalar, int int, float float, int[2] ints, Data data, bool bool=False) -> Tensor")
	one, half := tensor.Scalar(tensor.I32, 1), tensor.Scalar(tensor.F64, 0.5)
	row, yes := tensor.Of(tensor.F32, []int{2}, []float32{1, 2}), tensor.Scalar(tensor.Bool, 1)
	list := []any{int64(2), tensor.Of(tensor.I64, []int{1, 1}, []int64{3})}
	a, err := s.Bind([]any{half, one, one, list, []any{row, half}[:1]}, nil, false)
	if err == nil || !strings.Contains(err.Error(), "only one element tensors") {
		t.Errorf("a row within data: %v, %v", a.Vals, err)
	}
	a, err = s.Bind([]any{half, one, one, list, row}, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	data := a.Vals[4].([]any)
	if a.Vals[0] != any(ScalarOf(0.5)) || a.Vals[1] != 1 || a.Vals[2] != 1.0 || !reflect.DeepEqual(a.Vals[3], []int{2, 3}) || len(data) != 2 || data[1].(Scalar).DType() != tensor.F32 {
		t.Errorf("got %v", a.Vals)
	}
	for i, wrong := range [][]any{{row}, {half, yes}, {half, half}, {half, row}, {half, one, row}, {half, one, one, one}, {half, one, one, []any{half, one}}, {half, one, one, list, 1, yes}} {
		args := append(append([]any{}, wrong...), []any{half, one, one, list, 1}[min(len(wrong), 5):]...)
		if a, err := s.Bind(args, nil, false); err == nil {
			t.Errorf("%d: accepted as %v", i, a.Vals)
		}
	}
}

func TestBind(t *testing.T) {
	x := tensor.New(tensor.F32, 2)
	pool := MustParseSig("pool(Tensor input, int[2] kernel, int[2]? stride=None, *, float eps=1e-5, Scalar alpha=1, bool flag=False) -> Tensor")
	permute := MustParseSig("permute(Tensor input, int[] dims) -> Tensor")
	sum := MustParseSig("sum(Tensor input, int[1]? dim=None, bool keepdim=False) -> Tensor")
	cat := MustParseSig("cat(Tensor[] tensors, int dim=0) -> Tensor")
	for _, c := range []struct {
		name   string
		sig    *Sig
		args   []any
		kwargs []Kwarg
		method bool
		want   []any
		err    string
	}{
		{"defaults, one int repeated", pool, []any{x, int64(3)}, nil, false, []any{x, []int{3, 3}, nil, 1e-5, ScalarOf(int64(1)), false}, ""},
		{"keywords, int as float", pool, []any{x, []any{int64(1), int64(2)}}, []Kwarg{Kw("eps", int64(2)), Kw("alpha", 0.5)}, false, []any{x, []int{1, 2}, nil, 2.0, ScalarOf(0.5), false}, ""},
		{"method with spread ints", permute, []any{x, int64(1), int64(0)}, nil, true, []any{x, []int{1, 0}}, ""},
		{"function does not spread", permute, []any{x, int64(1), int64(0)}, nil, false, nil, "takes 2 positional arguments but 3 were given"},
		{"numpy's names", sum, []any{x}, []Kwarg{Kw("axis", int64(0)), Kw("keepdims", true)}, false, []any{x, []int{0}, true}, ""},
		{"list of tensors", cat, []any{[]any{x, x}}, nil, false, []any{[]Value{x, x}, 0}, ""},
		{"keyword-only by position", pool, []any{x, int64(1), nil, 0.1}, nil, false, nil, "takes 3 positional arguments but 4 were given"},
		{"unknown keyword", pool, []any{x, int64(1)}, []Kwarg{Kw("stried", int64(1))}, false, nil, "unexpected keyword argument 'stried'; it takes input, kernel"},
		{"twice", pool, []any{x, int64(1)}, []Kwarg{Kw("kernel", int64(1))}, false, nil, "multiple values for argument 'kernel'"},
		{"missing", pool, []any{x}, nil, false, nil, "missing required argument: 'kernel' (int[2])"},
		{"None where it may not be", pool, []any{x, nil}, nil, false, nil, "argument 'kernel' must be int[2], not None"},
		{"bool is no int", pool, []any{x, true}, nil, false, nil, "argument 'kernel' must be int[2], not bool"},
		{"float is no int", sum, []any{x, 1.5}, nil, false, nil, "argument 'dim' must be int[1]?, not float"},
		{"element of a list", cat, []any{[]any{x, int64(1)}}, nil, false, nil, "element 1 is int"},
	} {
		a, err := c.sig.Bind(c.args, c.kwargs, c.method)
		var e *Error
		switch {
		case c.err == "" && (err != nil || !reflect.DeepEqual(a.Vals, c.want)):
			t.Errorf("%s: %#v, error %v", c.name, a.Vals, err)
		case c.err != "" && (!errors.As(err, &e) || e.Class != "TypeError" || !strings.Contains(err.Error(), c.err)):
			t.Errorf("%s: error %v, want a TypeError with %q", c.name, err, c.err)
		}
	}
}

// toy returns a table of two operators that share a name.
func toy(t *testing.T) *Table {
	same := func(a Args) ([]Meta, error) {
		v := a.Value("input")
		return []Meta{{DType: v.DType(), Shape: v.Shape()}}, nil
	}
	kernel := func(name string, value complex128, p Pred, priority int) Kernel {
		return Kernel{Name: name, When: p, Priority: priority, Run: func(c *Run) error {
			for i := range c.Out[0].Len() {
				c.Out[0].Set(i, value)
			}
			return nil
		}}
	}
	tol := Tol{Class: Exact, Reason: "test"}
	table, err := NewTable(
		&Def{Sig: "fill(Tensor input, Scalar value=1) -> Tensor", More: []string{"fill(Tensor input) -> Tensor"}, Names: []string{"torch.fill", "Tensor.fill"},
			Traits: NoGrad, Infer: same, Tol: tol, Kernels: []Kernel{
				kernel("plain", 1, DTypeIn("input", tensor.F32, tensor.F64), 0),
				kernel("better", 2, And(DTypeIn("input", tensor.F64), Pred{Text: "rank 1", Holds: func(a Args) bool { return len(a.Value("input").Shape()) == 1 }}), 10),
			}},
		&Def{Sig: "fill.dim(Tensor input, int dim, bool keepdim=False) -> Tensor", Names: []string{"torch.fill"}, Traits: NoGrad, Tol: tol,
			Infer: func(Args) ([]Meta, error) { return nil, IndexError("dim out of range") }, Kernels: []Kernel{kernel("k", 3, Pred{}, 0)}},
	)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func TestResolveAndExecute(t *testing.T) {
	table := toy(t)
	run := func(name string, args ...any) (float64, error) {
		c, err := table.Resolve(name, args, nil)
		if err != nil {
			return 0, err
		}
		out, err := c.Execute()
		if err != nil {
			return 0, err
		}
		return out[0].Float(0), nil
	}
	for _, c := range []struct {
		d    tensor.DType
		rank int
		want float64
	}{{tensor.F32, 1, 1}, {tensor.F64, 1, 2}, {tensor.F64, 2, 1}} {
		shape := []int{2, 2}[:c.rank]
		if got, err := run("torch.fill", tensor.New(c.d, shape...)); err != nil || got != c.want {
			t.Errorf("%s of rank %d: %v, %v; want %v", c.d, c.rank, got, err, c.want)
		}
	}
	for _, c := range []struct {
		name, class, want string
		args              []any
	}{
		{"torch.fill", "RuntimeError", "fill: no kernel for (int64[1]): plain needs dtype of input in {float32, float64}; better needs dtype of input in {float64}", []any{tensor.New(tensor.I64, 1)}},
		{"torch.fill", "IndexError", "fill.dim: dim out of range", []any{tensor.New(tensor.F32, 1), int64(0), true}},
		{"torch.fill", "TypeError", "no signature accepts the arguments (Tensor, str); it has\n  fill(Tensor input, Scalar value=1) -> Tensor", []any{tensor.New(tensor.F32, 1), "x"}},
	} {
		_, err := run(c.name, c.args...)
		var e *Error
		if !errors.As(err, &e) || e.Class != c.class || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: error %v, want a %s with %q", c.args, err, c.class, c.want)
		}
	}
	if _, err := run("torch.nothing"); !errors.Is(err, ErrUnknown) {
		t.Errorf("unknown name: %v", err)
	}
}

func TestNewTableRefusesIncompleteLiterals(t *testing.T) {
	whole := func() *Def {
		return &Def{Sig: "f(Tensor input) -> Tensor", Traits: NoGrad, Tol: Tol{Class: Exact, Reason: "test"},
			Infer: func(Args) ([]Meta, error) { return nil, nil }, Kernels: []Kernel{{}}}
	}
	if _, err := NewTable(whole()); err != nil {
		t.Fatal(err)
	}
	for want, spoil := range map[string]func(*Def){
		"unknown type":                 func(d *Def) { d.Sig = "f(Tenser x) -> Tensor" },
		"has a parameter other":        func(d *Def) { d.More = []string{"f(Tensor other) -> Tensor"} },
		"OnlyInOverloads names other":  func(d *Def) { d.OnlyInOverloads = []string{"other"} },
		"has no Infer":                 func(d *Def) { d.Infer = nil },
		"has no kernel":                func(d *Def) { d.Kernels = nil },
		"has no gradient":              func(d *Def) { d.Traits = 0 },
		"numerics class with a reason": func(d *Def) { d.Tol.Reason = "" },
		"is its own magnitude and":     func(d *Def) { d.Magnitude, d.Tol.OwnMagnitude = "g", true },
	} {
		d := whole()
		spoil(d)
		if _, err := NewTable(d); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
	if _, err := NewTable(whole(), whole()); err == nil {
		t.Error("one operator twice was accepted")
	}
}

func TestPromoted(t *testing.T) {
	s := MustParseSig("f(Tensor x, Tensor? y, Scalar z) -> Tensor")
	for _, c := range []struct {
		x, y any
		z    any
		want tensor.DType
	}{
		{tensor.New(tensor.I32, 2), nil, 1.5, tensor.F32},
		{tensor.New(tensor.F64, 2), tensor.New(tensor.F32), true, tensor.F64},
		{tensor.New(tensor.F16, 2), tensor.New(tensor.F64), int64(3), tensor.F16},
		{tensor.New(tensor.Bool, 2), nil, int64(3), tensor.I64},
		{tensor.New(tensor.F64, 2), nil, 1i, tensor.C128},
	} {
		a, err := s.Bind([]any{c.x, c.y, c.z}, nil, false)
		if err != nil {
			t.Fatal(err)
		}
		if got := a.Promoted(TensorArg("x"), TensorArg("y"), ScalarArg("z")); got != c.want {
			t.Errorf("%v, %v, %v: %s, want %s", c.x, c.y, c.z, got, c.want)
		}
	}
}

func FuzzParseSig(f *testing.F) {
	f.Add("max.dim(Tensor input, int[2]? dim=[1, 2], *, bool keepdim=False) -> (Tensor values, Tensor indices)")
	f.Fuzz(func(t *testing.T, text string) {
		if s, err := ParseSig(text); err == nil && s.String() != text {
			t.Errorf("%q prints as %q", text, s)
		}
	})
}

// TestReseed: calls behind the same seed draw the same, and a gradient meets
// the draws of its forward call whatever was seeded since.
func TestReseed(t *testing.T) {
	plain, repeats := &Call{Args: Args{Sig: MustParseSig("f() -> Tensor")}}, MustParseSig("g(int draw) -> Tensor")
	k := Keys{Seed: 9}
	_, first := k.Key(plain)
	var keys [2][2]uint64
	for i := range keys {
		k.Reseed(5)
		for j := range keys[i] {
			_, keys[i][j] = k.Key(plain)
		}
	}
	if keys[0] != keys[1] || keys[0][0] == keys[0][1] || keys[0][0] == first {
		t.Errorf("%v, after %v", keys, first)
	}
	for number, want := range []uint64{first, keys[0][0], keys[0][1], keys[1][0]} {
		if _, got := k.Key(&Call{Args: Args{Sig: repeats, Vals: []any{number}}}); got != want {
			t.Errorf("call %d: %v, want %v", number, got, want)
		}
	}
}
