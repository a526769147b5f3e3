package api_test

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"

	"plumb/api"
	"plumb/op"
	"plumb/tensor"
)

// must returns the value of a call that has to succeed.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func class(err error) string {
	var e *op.Error
	if errors.As(err, &e) {
		return e.Class
	}
	return fmt.Sprint(err)
}

func ExampleConv2D() {
	s := api.NewSession()
	x := must(api.FromSlice(s, []float32{1, 2, 3, 4, 5, 6, 7, 8, 9}, 1, 1, 3, 3))
	w := must(api.FromSlice(s, []float32{1, 10, 100, 1000}, 1, 1, 2, 2))
	y := must(api.Conv2D(x, w, api.Conv2DOptions{Padding: api.Ints{1}, Stride: []int{2}}))
	fmt.Println(y, must(api.Values[float32](y)))
	same := must(api.Conv2D(x, w, api.Conv2DOptions{Padding: api.Str("same"), Groups: new(1)}))
	fmt.Println(same)
	_, err := api.Conv2D(x, w, api.Conv2DOptions{Groups: new(2)})
	fmt.Println(class(err))
	// Output:
	// float32[1, 1, 2, 2] [1000 3200 7040 9865]
	// float32[1, 1, 3, 3]
	// RuntimeError
}

func TestResults(t *testing.T) {
	s := api.NewSession()
	x := must(api.FromSlice(s, []float64{1, 5, 3, 4, 2, 6}, 2, 3))
	values, indices, err := api.MaxDim(x, 1, api.MaxDimOptions{Keepdim: true})
	if err != nil || !slices.Equal(values.Float64s(), []float64{5, 6}) || !slices.Equal(must(api.Values[int64](indices)), []int64{1, 2}) || len(values.Shape()) != 2 {
		t.Errorf("max over a dimension: %v %v %v", values, indices, err)
	}
	if equal, err := api.Equal(x, x); err != nil || !equal {
		t.Errorf("equal: %v, %v", equal, err)
	}
	parts, err := api.Split(x, api.Number(2), api.SplitOptions{Dim: 1})
	if err != nil || len(parts) != 2 || parts[1].Len() != 2 {
		t.Errorf("split: %v, %v", parts, err)
	}
	if sum := must(must(api.Sum(x)).Item()); sum.Float() != 21 {
		t.Errorf("sum is %v", sum)
	}
	if got := must(api.Sum(x, api.SumOptions{Dim: []int{0}, Dtype: api.F32})); got.DType() != api.F32 || got.Len() != 3 {
		t.Errorf("sum over a dimension is %v", got)
	}
	if got := must(s.Zeros([]int{2, 2}, api.ZerosOptions{Dtype: api.I64})); got.DType() != api.I64 || got.Strides()[0] != 2 {
		t.Errorf("zeros are %v", got)
	}
	if got := must(api.Add(api.Number(2), x)); got.Float64s()[0] != 3 {
		t.Errorf("2 + x begins with %v", got.Float64s()[0])
	}
	if got := must(api.Getitem(x, api.Index{1, must(api.FromSlice(s, []int64{2, 0}, 2))})); !slices.Equal(got.Float64s(), []float64{6, 4}) {
		t.Errorf("x[1, [2, 0]] is %v", got.Float64s())
	}
	out, err := s.Call("torch.mul", x, op.Kw("other", 2))
	if err != nil || out[0].Float64s()[5] != 12 {
		t.Errorf("a call by public name: %v, %v", out, err)
	}
}

func TestGradients(t *testing.T) {
	s := api.NewSession()
	x := must(api.FromSlice(s, []float64{2, 3}, 2))
	if err := x.RequireGrad(); err != nil {
		t.Fatal(err)
	}
	cube := func() *api.Tensor { return must(api.Sum(must(api.Mul(must(api.Mul(x, x)), x)))) }
	for range 2 {
		if err := cube().Backward(); err != nil {
			t.Fatal(err)
		}
	}
	if got := x.Grad().Float64s(); !slices.Equal(got, []float64{24, 54}) {
		t.Errorf("two backward passes add up to %v, want twice 3x²", got)
	}
	x.ZeroGrad()
	if x.Grad() != nil {
		t.Error("ZeroGrad left a gradient")
	}
	first := must(s.Gradients(cube(), []*api.Tensor{x}, true))[0]
	second := must(s.Gradients(first, []*api.Tensor{x}, false))[0]
	if got := second.Float64s(); !slices.Equal(got, []float64{12, 18}) {
		t.Errorf("the second derivative is %v, want 6x", got)
	}
	y := must(api.Mul(x, x))
	if err := y.Backward(); class(err) != "RuntimeError" {
		t.Errorf("backward of two elements: %v", err)
	}
	if err := y.Backward(must(api.FromSlice(s, []float64{1, 10}, 2))); err != nil || x.Grad().Float64s()[1] != 60 {
		t.Errorf("backward with a gradient: %v, %v", err, x.Grad().Float64s())
	}
	var unrecorded *api.Tensor
	err := s.NoGrad(func() (err error) { unrecorded, err = api.Exp(x); return err })
	if err != nil || unrecorded.RequiresGrad() || x.Detach().RequiresGrad() {
		t.Errorf("NoGrad or Detach recorded: %v", err)
	}
	if err := unrecorded.Backward(unrecorded); class(err) != "RuntimeError" {
		t.Errorf("backward of what wants no gradient: %v", err)
	}
	n := must(api.FromSlice(s, []int64{1}))
	if err := n.RequireGrad(); class(err) != "RuntimeError" {
		t.Errorf("an integer can require a gradient: %v", err)
	}
}

func TestBadArguments(t *testing.T) {
	s, other := api.NewSession(), api.NewSession()
	x := must(api.FromSlice(s, []float32{1, 2}, 2))
	for name, c := range map[string]struct {
		want string
		call func() error
	}{
		"nil tensor":        {"TypeError", func() error { _, err := api.Relu(nil); return err }},
		"nil argument":      {"TypeError", func() error { _, err := api.Add(x, nil); return err }},
		"nil in a list":     {"TypeError", func() error { _, err := api.Cat([]*api.Tensor{x, nil}); return err }},
		"empty list":        {"ValueError", func() error { _, err := api.Cat(nil); return err }},
		"other session":     {"TypeError", func() error { _, err := api.Add(x, must(other.Ones([]int{2}))); return err }},
		"wrong type":        {"TypeError", func() error { _, err := api.Add(x, api.Str("2")); return err }},
		"unknown operator":  {"unknown operator surprise", func() error { _, err := s.Call("surprise", x); return err }},
		"elements missing":  {"RuntimeError", func() error { _, err := api.FromSlice(s, []float32{1}, 2); return err }},
		"negative shape":    {"RuntimeError", func() error { _, err := api.FromSlice(s, []float32{}, -1, 0); return err }},
		"elements' type":    {"TypeError", func() error { _, err := api.Values[float64](x); return err }},
		"several elements":  {"ValueError", func() error { _, err := x.Item(); return err }},
		"dim out of range":  {"IndexError", func() error { _, _, err := api.MaxDim(x, 7); return err }},
		"too large a shape": {"RuntimeError", func() error { _, err := s.Zeros([]int{1 << 40, 1 << 40}); return err }},
		"too much memory":   {"RuntimeError", func() error { _, err := s.Zeros([]int{1 << 39}); return err }},
	} {
		if err := c.call(); class(err) != c.want {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

func TestMemoryLimit(t *testing.T) {
	s := api.NewSession()
	s.LimitMemory(1 << 10)
	if _, err := s.Zeros([]int{1 << 8}); err != nil {
		t.Errorf("1 KiB under a limit of as much: %v", err)
	}
	if _, err := s.Zeros([]int{1<<8 + 1}); class(err) != "RuntimeError" {
		t.Errorf("more than the limit: %v", err)
	}
}

// TestMemoryIsBounded runs many steps whose results are dropped: what is
// recorded for gradients goes with them.
func TestMemoryIsBounded(t *testing.T) {
	s := api.NewSession()
	x := must(s.Ones([]int{1 << 16}))
	if err := x.RequireGrad(); err != nil {
		t.Fatal(err)
	}
	for range 400 {
		must(api.Exp(must(api.Mul(x, x))))
	}
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if m.HeapAlloc > 64<<20 {
		t.Errorf("%d MiB are held after 400 dropped steps of 512 KiB", m.HeapAlloc>>20)
	}
}

func TestSeed(t *testing.T) {
	draw := func(seed uint64) []float64 {
		s := api.NewSession()
		s.Seed(seed)
		return must(s.Rand([]int{4})).Float64s()
	}
	if !slices.Equal(draw(1), draw(1)) || slices.Equal(draw(1), draw(2)) {
		t.Error("the seed does not determine the draws")
	}
}

func TestModules(t *testing.T) {
	s := api.NewSession()
	s.DefaultDType(api.F64)
	m := must(s.Module("torch.nn.Linear", 2, op.Kw("out_features", 1)))
	x := must(api.FromSlice(s, []float64{1, 2}, 1, 2))
	if _, err := m.Call(x); err == nil {
		t.Error("a module without its parameters is called")
	}
	for name, v := range map[string]*tensor.Tensor{"weight": tensor.Float64s(api.F64, []int{1, 2}, 3, 4), "bias": tensor.Float64s(api.F64, []int{1}, 5)} {
		if err := m.Load(name, v); err != nil {
			t.Fatal(err)
		}
	}
	both := must(s.Module("torch.nn.Sequential", m, must(s.Module("torch.nn.ReLU"))))
	y := must(both.Call(x))
	if got := y[0].Float64s(); !slices.Equal(got, []float64{16}) {
		t.Errorf("3·1 + 4·2 + 5 is %v", got)
	}
	if err := y[0].Backward(); err != nil {
		t.Fatal(err)
	}
	if g := both.Get("0.weight").Grad(); g == nil || !slices.Equal(g.Float64s(), []float64{1, 2}) {
		t.Errorf("the weight's gradient is %v, want x", g)
	}
	if err := m.Load("weight", tensor.Float64s(api.F32, []int{1, 2}, 3, 4)); err == nil {
		t.Error("a float32 parameter is loaded into a float64 module")
	}
	if _, err := s.Module("torch.nn.Linear", "two", 1); class(err) != "TypeError" {
		t.Errorf("a word for a size: %v", err)
	}
	if _, err := s.Module("torch.nn.Nothing"); !errors.Is(err, op.ErrUnknown) {
		t.Errorf("an unknown module: %v", err)
	}
	if _, err := api.NewSession().Module("torch.nn.Sequential", m); class(err) != "TypeError" {
		t.Errorf("a module of another session: %v", err)
	}

	norm := must(s.Module("torch.nn.BatchNorm1d", 2))
	two := must(api.FromSlice(s, []float64{1, 2, 3, 6}, 2, 2))
	must(norm.Call(two))
	if got := norm.Get("running_mean").Float64s(); !slices.Equal(got, []float64{0.2, 0.4}) {
		t.Errorf("the running mean is %v, want a tenth of the mean", got)
	}
	norm.Train(false)
	before := norm.Get("running_mean").Float64s()
	must(norm.Call(two))
	if got := norm.Get("running_mean").Float64s(); !slices.Equal(got, before) {
		t.Errorf("the running mean changed to %v in evaluation", got)
	}
	if norm.Get("nothing") != nil {
		t.Error("there is a parameter of any name")
	}
}
