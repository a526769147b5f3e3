package graph

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"plumb/nn"
	"plumb/op"
	"plumb/ops"
	"plumb/tensor"
)

// traces returns the code of a function of float32[2, 3] inputs.
func traces(t *testing.T, inputs int, f func(b op.Builder, x []op.Value) []op.Value) *Code {
	t.Helper()
	var in []*tensor.Tensor
	for range inputs {
		in = append(in, tensor.New(tensor.F32, 2, 3))
	}
	code, err := New(ops.Table(), "test", func(b *Builder, x ...op.Value) []op.Value { return f(b.Builder, x) }, Options{}).Trace(in...)
	if err != nil {
		t.Fatal(err)
	}
	return code
}

// TestPasses shows what each pass does alone, once what is of no use is left out: the
// operators that remain.
func TestPasses(t *testing.T) {
	one, zero := op.ScalarOf(1.0), op.ScalarOf(0.0)
	for _, c := range []struct {
		pass, what string
		f          func(b op.Builder, x []op.Value) []op.Value
		want       string
	}{
		{"dead", "leaves out what no output needs", func(b op.Builder, x []op.Value) []op.Value {
			b.Op("exp", b.Neg(x[0]))
			return []op.Value{b.Op("abs", x[0])}
		}, "abs"},
		{"fold", "computes with constants", func(b op.Builder, x []op.Value) []op.Value {
			return []op.Value{b.Add(x[0], b.Op("exp", b.Op("zeros", []int{3})))}
		}, "add"},
		{"fold", "leaves draws", func(b op.Builder, x []op.Value) []op.Value {
			return []op.Value{b.Op("neg", b.Op("rand", []int{3}))}
		}, "rand neg"},
		{"casts", "leaves out a way there and back", func(b op.Builder, x []op.Value) []op.Value {
			return []op.Value{b.Op("neg", b.Cast(b.Cast(x[0], tensor.F64), tensor.F32))}
		}, "neg"},
		{"casts", "keeps a conversion that rounds", func(b op.Builder, x []op.Value) []op.Value {
			return []op.Value{b.Op("neg", b.Cast(b.Cast(x[0], tensor.F16), tensor.F32))}
		}, "to to neg"},
		{"algebra", "knows idempotent operators", func(b op.Builder, x []op.Value) []op.Value {
			return []op.Value{b.Op("exp", b.Op("relu", b.Op("relu", x[0])))}
		}, "relu exp"},
		{"common", "computes equal calls once", func(b op.Builder, x []op.Value) []op.Value {
			return []op.Value{b.Add(b.Op("exp", x[0]), b.Op("exp", x[0]))}
		}, "exp add"},
		{"fuse", "puts elementwise calls together", func(b op.Builder, x []op.Value) []op.Value {
			return []op.Value{b.Op("softmax", b.Op("exp", b.Mul(x[0], x[1])), 1)}
		}, "fused softmax"},
		{"fuse", "does not fuse around something else", func(b op.Builder, x []op.Value) []op.Value {
			y := b.Op("exp", x[0])
			return []op.Value{b.Add(y, b.Op("softmax", y, 1))}
		}, "exp softmax add"},
	} {
		code := traces(t, 2, c.f)
		o := Options{}
		for _, p := range Passes() {
			if p.Name == c.pass {
				o.Passes = append(o.Passes, p)
			}
		}
		o.Passes = append(o.Passes, Pass{Name: "sweep", Run: dead})
		compiled, err := Compile(code, o)
		if err != nil {
			t.Fatal(err)
		}
		if got := calls(compiled.Code); got != c.want {
			t.Errorf("%s %s: %s, want %s\n%s", c.pass, c.what, got, c.want, compiled.Code)
		}
	}
	for what, c := range map[string]struct {
		f    func(b op.Builder, x []op.Value) op.Value
		same bool
	}{
		"x·1":     {func(b op.Builder, x []op.Value) op.Value { return b.Mul(x[0], one) }, true},
		"x/1":     {func(b op.Builder, x []op.Value) op.Value { return b.Div(x[0], one) }, true},
		"x−0":     {func(b op.Builder, x []op.Value) op.Value { return b.Sub(x[0], zero) }, true},
		"x+0":     {func(b op.Builder, x []op.Value) op.Value { return b.Add(x[0], zero) }, false},
		"x−x":     {func(b op.Builder, x []op.Value) op.Value { return b.Sub(x[0], x[0]) }, false},
		"−−x":     {func(b op.Builder, x []op.Value) op.Value { return b.Neg(b.Neg(x[0])) }, true},
		"(xᵀ)ᵀ":   {func(b op.Builder, x []op.Value) op.Value { return b.Op("t", b.Op("t", x[0])) }, true},
		"1·x":     {func(b op.Builder, x []op.Value) op.Value { return b.Mul(one, x[0]) }, false},
		"x·1 f64": {func(b op.Builder, x []op.Value) op.Value { return b.Mul(b.Op("gt", x[0], x[1]), one) }, false},
	} {
		code := traces(t, 2, func(b op.Builder, x []op.Value) []op.Value { return []op.Value{c.f(b, x)} })
		compiled, err := Compile(code, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if same := compiled.Code.Outputs[0] == compiled.Code.Inputs[0]; same != c.same {
			t.Errorf("%s is x: %v, want %v", what, same, c.same)
		}
	}
}

func calls(c *Code) string {
	var ids []string
	for _, n := range c.Nodes {
		if n.Kind != Input && n.Kind != Constant {
			ids = append(ids, n.op())
		}
	}
	return strings.Join(ids, " ")
}

func TestWithoutPasses(t *testing.T) {
	code := traces(t, 1, func(b op.Builder, x []op.Value) []op.Value {
		return []op.Value{b.Neg(b.Neg(b.Op("relu", b.Op("relu", x[0]))))}
	})
	for _, c := range []struct {
		without []string
		want    string
	}{{nil, "relu"}, {[]string{All}, "relu relu neg neg"}, {[]string{"algebra", "fuse"}, "relu relu neg neg"}, {[]string{"dead", "dead2", "fuse"}, "relu relu neg neg"}} {
		compiled, err := Compile(code, Options{Without: c.without})
		if err != nil {
			t.Fatal(err)
		}
		if got := calls(compiled.Code); got != c.want {
			t.Errorf("without %v: %s, want %s", c.without, got, c.want)
		}
	}
}

// TestMemory releases and reuses what is read no more: a chain of n results
// lives in the memory of two, one of which becomes the output.
func TestMemory(t *testing.T) {
	code := traces(t, 1, func(b op.Builder, x []op.Value) []op.Value {
		y := x[0]
		for range 10 {
			y = b.Op("softmax", y, 1)
		}
		return []op.Value{y}
	})
	c, err := Compile(code, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if want := (Memory{All: 240, Peak: 48, Held: 48, Reused: 24}); c.Memory() != want {
		t.Errorf("%+v, want %+v", c.Memory(), want)
	}
}

func TestCachePerSignature(t *testing.T) {
	traced := 0
	g := New(ops.Table(), "twice", func(b *Builder, x ...op.Value) []op.Value {
		traced++
		return []op.Value{b.Add(x[0], x[0])}
	}, Options{})
	for _, n := range []int{2, 3, 2, 3} {
		out, err := g.Run(tensor.Float64s(tensor.F32, []int{n}, []float64{1, 2, 3}[:n]...))
		if err != nil || out[0].Float(1) != 4 {
			t.Errorf("%v, %v", out, err)
		}
	}
	if traced != 2 || g.Signatures() != 2 {
		t.Errorf("traced %d times for %d signatures", traced, g.Signatures())
	}
}

func TestSecondOrder(t *testing.T) {
	g := New(ops.Table(), "cube", func(b *Builder, x ...op.Value) []op.Value {
		y := b.Mul(b.Mul(x[0], x[0]), x[0])
		first, err := b.Grads([]op.Value{y}, []op.Value{nil}, x)
		if err != nil {
			op.Fail(err)
		}
		second, err := b.Grads(first, []op.Value{nil}, x)
		if err != nil {
			op.Fail(err)
		}
		return append(first, second...)
	}, Options{})
	out, err := g.Run(tensor.Float64s(tensor.F64, []int{2}, 2, 3))
	if err != nil {
		t.Fatal(err)
	}
	if out[0].Float(1) != 27 || out[1].Float(1) != 18 {
		t.Errorf("gradients of x³ at 3: %v and %v, want 27 and 18", out[0].Float(1), out[1].Float(1))
	}
}

func TestModule(t *testing.T) {
	def := nn.Modules().Lookup("torch.nn.BatchNorm1d")
	m, err := def.New([]any{3}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range m.StateDict() {
		if e.Value == nil {
			s := m.State()[0]
			if err := m.Load(e.Name, tensor.New(s.DType, s.Shape...)); err != nil {
				t.Fatal(err)
			}
		}
	}
	g := OfModule(ops.Table(), m, Options{})
	var in []*tensor.Tensor
	for _, e := range m.StateDict() {
		in = append(in, e.Value.(*tensor.Tensor))
	}
	out, err := g.Run(append(in, tensor.Float64s(tensor.F32, []int{2, 3}, 1, 2, 3, 3, 2, 1))...)
	if err != nil {
		t.Fatal(err)
	}
	names := m.StateDict()
	for i, e := range names {
		if e.Name == "running_mean" && float32(out[1+i].Float(0)) != 0.2 {
			t.Errorf("running_mean after the call: %v", out[1+i].Float(0))
		}
		if e.Value.(*tensor.Tensor) != in[i] {
			t.Errorf("tracing changed the module's %s", e.Name)
		}
	}
}

func TestErrors(t *testing.T) {
	dynamic := New(ops.Table(), "mask", func(b *Builder, x ...op.Value) []op.Value { return []op.Value{b.Op("nonzero", x[0])} }, Options{})
	var capture *CaptureError
	if _, err := dynamic.Run(tensor.New(tensor.F32, 2)); !errors.As(err, &capture) || capture.Op != "nonzero" {
		t.Errorf("nonzero: %v", err)
	}

	b := NewBuilder(ops.Table(), "take")
	x := b.Input("x", op.Meta{DType: tensor.F32, Shape: []int{3}})
	i := b.Input("i", op.Meta{DType: tensor.I64, Shape: []int{1}})
	b.At(4, "y = torch.take, test.py:7")
	y := b.Op("take", x, i).(*Value)
	c, err := Compile(b.Code(y), Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Run(0, []*tensor.Tensor{tensor.New(tensor.F32, 3), tensor.Of(tensor.I64, []int{1}, []int64{9})})
	var failed *Error
	if !errors.As(err, &failed) || failed.Step != 4 {
		t.Fatalf("%v", err)
	}
	for _, part := range []string{"graph take", "y = torch.take, test.py:7", "take(float32[3], int64[1])"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q lacks %q", err, part)
		}
	}
	if _, err := c.Run(0, []*tensor.Tensor{tensor.New(tensor.F32, 4), tensor.New(tensor.I64, 1)}); err == nil {
		t.Error("an input of another shape is taken")
	}

	broken := Pass{Name: "broken", Run: func(c *Code) (int, error) { c.Nodes = c.Nodes[:1]; return 1, nil }}
	if _, err := Compile(b.Code(y), Options{Passes: []Pass{broken}}); !errors.As(err, &failed) || failed.Pass != "broken" {
		t.Errorf("a broken pass: %v", err)
	}
}

func TestDebug(t *testing.T) {
	code := traces(t, 1, func(b op.Builder, x []op.Value) []op.Value { return []op.Value{b.Neg(b.Neg(x[0]))} })
	var lines []int
	for level := range 4 {
		var log bytes.Buffer
		if _, err := Compile(code, Options{DebugPasses: level, Log: &log}); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, strings.Count(log.String(), "\n"))
	}
	if lines[0] != 0 || !(lines[1] < lines[2] && lines[2] < lines[3]) {
		t.Errorf("lines by level: %v", lines)
	}
	want := "%0 float32[2, 3] = input x0\n%1 float32[2, 3] = neg(%0)\n%2 float32[2, 3] = neg(%1)\nreturn %2\n"
	if code.String() != want {
		t.Errorf("%s", code)
	}
	if dot := code.Dot(); !strings.Contains(dot, "n1 -> n2") {
		t.Errorf("%s", dot)
	}
}

// TestDimensionsAreNotElementwise: along an axis of one element a softmax and a
// pooling look elementwise.
func TestDimensionsAreNotElementwise(t *testing.T) {
	b := NewBuilder(ops.Table(), "rows")
	x := b.Input("x", op.Meta{DType: tensor.F32, Shape: []int{1, 3, 1}})
	y := b.Op("softmax", b.Op("exp", x), 0)
	z := b.Op("max_pool1d", b.Op("exp", y), []int{1}).(*Value)
	c, err := Compile(b.Code(z), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := calls(c.Code); strings.Contains(got, "fused") {
		t.Errorf("%s\n%s", got, c.Code)
	}
}

// TestDonate: a result takes the memory of an input that is given up, and of
// no other; one that shares its memory with another input is refused.
func TestDonate(t *testing.T) {
	f := func(b *Builder, x ...op.Value) []op.Value { return []op.Value{b.Sub(x[0], x[1])} }
	x, y := tensor.Float64s(tensor.F32, []int{2}, 5, 7), tensor.Float64s(tensor.F32, []int{2}, 1, 2)
	for _, o := range []Options{{Donate: []int{1}}, {}, {Donate: []int{0}}} {
		out, err := New(ops.Table(), "step", f, o).Run(x, y)
		if err != nil || out[0].Float(0) != 4 || out[0].Float(1) != 5 {
			t.Fatalf("donating %v: %v, %v", o.Donate, out, err)
		}
		for i, in := range []*tensor.Tensor{x, y} {
			if got, want := out[0].SharesStorage(in), slices.Contains(o.Donate, i); got != want {
				t.Errorf("donating %v: the result lies in input %d: %v", o.Donate, i, got)
			}
		}
		y = tensor.Float64s(tensor.F32, []int{2}, 1, 2)
	}
	if _, err := New(ops.Table(), "step", f, Options{Donate: []int{0}}).Run(y, y); err == nil || !strings.Contains(err.Error(), "input x0 is donated and shares its memory with input x1") {
		t.Errorf("an input that is there twice: %v", err)
	}
}
