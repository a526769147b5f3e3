package sim_test

import (
	"errors"
	"math"
	"strings"
	"sync"
	"testing"

	"plumb/device/sim"
	"plumb/graph"
	"plumb/internal/eager"
	"plumb/op"
	"plumb/ops"
	"plumb/tensor"
)

// triple is an operator whose kernels of a device a test gives.
func triple(t *testing.T, kernels ...op.Kernel) *op.Table {
	t.Helper()
	host := op.Kernel{Name: "host", When: op.DTypeIn("x", tensor.F32, tensor.F64), Run: times(3)}
	table, err := op.NewTable(append([]*op.Def{{
		Sig: "triple(Tensor x, bool fast=False) -> Tensor", Doc: "3·x.", Traits: op.NoGrad,
		Infer: func(a op.Args) ([]op.Meta, error) {
			x := a.Value("x")
			return []op.Meta{{DType: x.DType(), Shape: x.Shape()}}, nil
		},
		Kernels: append([]op.Kernel{host}, kernels...),
		Tol:     op.Tol{Class: op.Pointwise, ULP: 1, Reason: "one product"},
	}}, ops.All()...)...)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// times multiplies by a factor.
func times(factor float64) func(c *op.Run) error {
	return func(c *op.Run) error {
		x := c.Tensor("x")
		for i := range x.Len() {
			c.Out[0].Set(i, x.At(i)*complex(factor, 0))
		}
		return nil
	}
}

func launched(f func(c *op.Run) error) func(c *op.Run) error {
	return func(c *op.Run) error { return sim.Launch(c, f) }
}

// tripled returns 3·x for 1, 2, 3 as a device computes it; the panic of a kernel is an error.
func tripled(t *testing.T, d *op.Device, args []any, kernels ...op.Kernel) (out []float32, err error) {
	t.Helper()
	defer func() {
		if p := recover(); p != nil {
			out, err = nil, errors.New(p.(string))
		}
	}()
	x, err := tensor.Of(tensor.F32, []int{3}, []float32{1, 2, 3}).To(d)
	if err != nil {
		return nil, err
	}
	s := eager.New(triple(t, kernels...))
	y, err := s.Apply("triple", append([]any{x}, args...), nil)
	if err != nil {
		return nil, err
	}
	h, err := y[0].(*eager.Var).To(nil)
	if err != nil {
		return nil, err
	}
	return tensor.Data[float32](h), nil
}

func right(xs []float32) bool { return len(xs) == 3 && xs[0] == 3 && xs[1] == 6 && xs[2] == 9 }

// TestFaults plants what goes wrong with devices: each shows in what comes back.
func TestFaults(t *testing.T) {
	const name = "faulty"
	on := func(k op.Kernel) op.Kernel {
		k.Name, k.Device = "planted", name
		return k
	}
	accumulate := func(c *op.Run) error { // into memory that it never wrote
		x := c.Tensor("x")
		for i := range x.Len() {
			c.Out[0].Set(i, c.Out[0].At(i)+3*x.At(i))
		}
		return nil
	}
	scratched := func(c *op.Run) error {
		return sim.Launch(c, func(c *op.Run) error {
			s, err := tensor.FromBytes(tensor.F32, []int{3}, []int{1}, 0, c.Scratch)
			if err != nil {
				return err
			}
			for i := range 3 {
				c.Out[0].Set(i, 3*c.Tensor("x").At(i)+s.At(i)-s.At(i))
			}
			return nil
		})
	}
	beyond := func(c *op.Run) error {
		m := tensor.Data[float32](c.Out[0])
		copy(m[:4:4][:4], []float32{3, 6, 9, 12})
		return nil
	}
	for _, c := range []struct {
		name   string
		kernel op.Kernel
		says   string // of the error; "" for wrong results
	}{
		{"none", op.Kernel{Run: launched(times(3))}, "right"},
		{"host memory read", op.Kernel{Run: times(3)}, "are on faulty"},
		{"host memory as a slice", op.Kernel{Run: func(c *op.Run) error { clear(tensor.Data[float32](c.Out[0])); return nil }}, "are on faulty"},
		{"uninitialised result", op.Kernel{Run: launched(accumulate)}, ""},
		{"uninitialised scratch", op.Kernel{Scratch: func(op.Args) int { return 12 }, Run: scratched}, ""},
		{"beyond its memory", op.Kernel{Run: launched(beyond)}, "slice bounds out of range"},
		{"nothing launched", op.Kernel{Run: func(*op.Run) error { return nil }}, ""},
		{"a panic on the device", op.Kernel{Run: launched(func(*op.Run) error { panic("lost") })}, "a kernel panicked: lost"},
	} {
		for _, held := range []bool{false, true} {
			d := sim.New(name, sim.Options{Held: held})
			got, err := tripled(t, d.Device, nil, on(c.kernel))
			switch {
			case c.says == "right":
				if err != nil || !right(got) {
					t.Errorf("%v, %v", got, err)
				}
			case c.says != "":
				if err == nil || !strings.Contains(err.Error(), c.says) {
					t.Errorf("%s: error %v, want %q", c.name, err, c.says)
				}
			case err != nil || right(got) || !math.IsNaN(float64(got[0])):
				t.Errorf("%s: %v, %v", c.name, got, err)
			}
		}
	}
}

// TestMissingSync reads a result before the queue ran.
func TestMissingSync(t *testing.T) {
	d := sim.New("hasty", sim.Options{Held: true})
	hasty := *d.Device
	hasty.Sync = func(int) error { return nil }
	k := op.Kernel{Name: "queued", Device: "hasty", Run: launched(times(3))}
	if got, err := tripled(t, &hasty, nil, k); err != nil || right(got) {
		t.Errorf("without Sync: %v, %v", got, err)
	}
	if got, err := tripled(t, d.Device, nil, k); err != nil || !right(got) {
		t.Errorf("with Sync: %v, %v", got, err)
	}
}

// TestChoice: of kernels of the device whose predicate holds, the first of the highest
// priority runs; a host's runs where there is none, between copies.
func TestChoice(t *testing.T) {
	d := sim.New("choosy", sim.Options{})
	kernel := func(name string, factor float64, priority int, when op.Pred) op.Kernel {
		return op.Kernel{Name: name, Device: "choosy", Priority: priority, When: when, Run: launched(times(factor))}
	}
	fast := op.And(op.DTypeIn("x", tensor.F32), op.AttributeIn[bool]("fast", true), op.ContiguousIn("x"))
	plain, better := kernel("plain", 3, 0, op.Pred{}), kernel("better", 30, 10, fast)
	for _, c := range []struct {
		name    string
		args    []any
		kernels []op.Kernel
		want    float32
		launch  int
	}{
		{"the one that holds", nil, []op.Kernel{plain, better}, 3, 1},
		{"the higher priority", []any{true}, []op.Kernel{plain, better}, 30, 1},
		{"in any order", []any{true}, []op.Kernel{better, plain}, 30, 1},
		{"the first of equals", nil, []op.Kernel{plain, kernel("second", 5, 0, op.Pred{})}, 3, 1},
		{"the host's", nil, []op.Kernel{better}, 3, 0},
		{"another device's never", nil, []op.Kernel{{Name: "other", Device: "other", Priority: 99, Run: launched(times(7))}}, 3, 0},
		// Planted: a wrong kernel of a priority that it should not have.
		{"planted", nil, []op.Kernel{plain, kernel("wrong", 4, 1, op.Pred{})}, 4, 1},
	} {
		before := d.Counts().Launches
		got, err := tripled(t, d.Device, c.args, c.kernels...)
		if err != nil || got[0] != c.want || d.Counts().Launches-before != c.launch {
			t.Errorf("%s: %v, %v, %d launches", c.name, got, err, d.Counts().Launches-before)
		}
	}
	strict := *d.Device
	strict.Fallback = false
	_, err := tripled(t, &strict, nil, better, op.Kernel{Name: "other", Device: "other"})
	want := "triple: no kernel for (float32[3]) on choosy: host needs device cpu; better needs fast in [true]; other needs device other"
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

func TestDevices(t *testing.T) {
	a, b := sim.New("a", sim.Options{Streams: 2, Held: true}), sim.New("b", sim.Options{})
	small := sim.New("small", sim.Options{Memory: 8})
	table, err := sim.Ported(ops.Table(), "a")
	if err != nil {
		t.Fatal(err)
	}
	x := tensor.Of(tensor.F32, []int{2, 3}, []float32{1, 2, 3, 4, 5, 6})
	xa, err := x.Transpose(0, 1).To(a.Device)
	if err != nil {
		t.Fatal(err)
	}
	if back, err := xa.To(nil); err != nil || !back.SameBits(x.Transpose(0, 1)) || back.Strides()[0] != 1 {
		t.Errorf("there and back: %v, %v", back, err)
	}
	xb, err := xa.To(b.Device)
	if err != nil {
		t.Fatal(err)
	}
	s := eager.New(table)
	for _, c := range []struct {
		args []any
		says string
	}{
		{[]any{xa, xb}, "found at least two devices, a and b!"},
		{[]any{xa, x.Transpose(0, 1)}, "found at least two devices, a and cpu!"},
		{[]any{xa, tensor.Scalar(tensor.F32, 2)}, ""}, // a number goes with any device
	} {
		_, err := s.Apply("add", c.args, nil)
		var rejection *op.Error
		if (err == nil) != (c.says == "") || err != nil && (!errors.As(err, &rejection) || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("error %v, want %q", err, c.says)
		}
	}
	if _, err := x.To(small.Device); err == nil || !strings.Contains(err.Error(), "out of memory") {
		t.Errorf("24 bytes of 8: error %v", err)
	}

	// What a call changes is changed where it is, or the call is refused.
	on := eager.New(table)
	on.On(a.Device, 0)
	mean := tensor.New(tensor.F32, 2)
	change := func(mean *tensor.Tensor) error {
		_, err := on.Call("torch.nn.functional.batch_norm", []any{xa, nil, mean}, []op.Kwarg{op.Kw("training", true)})
		return err
	}
	if err := change(mean); err == nil || !strings.Contains(err.Error(), "a and cpu!") {
		t.Errorf("a tensor of the host that is changed: error %v", err)
	}
	there, err := mean.To(a.Device)
	if err == nil {
		err = change(there)
	}
	if err != nil {
		t.Fatal(err)
	}
	if h, err := there.To(nil); err != nil || h.Float(0) == 0 {
		t.Errorf("the running variance: %v, %v", h.Float(0), err)
	}

	// What another stream left is waited for.
	one, two := eager.New(table), eager.New(table)
	one.On(a.Device, 0)
	two.On(a.Device, 1)
	y, err := one.Apply("mul", []any{xa, 2.0}, nil)
	if err == nil {
		y, err = two.Apply("add", []any{y[0], 1.0}, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	h, err := y[0].(*eager.Var).To(nil)
	if err != nil || h.Float(1) != 9 {
		t.Errorf("2·4 + 1 over two streams: %v, %v", h.Float(1), err)
	}

	// A refusal that elements decide is the call's.
	ints, err := tensor.Of(tensor.I64, []int{2}, []int64{1, 0}).To(a.Device)
	if err != nil {
		t.Fatal(err)
	}
	var rejection *op.Error
	if _, err := s.Apply("fmod", []any{ints, ints}, nil); !errors.As(err, &rejection) {
		t.Errorf("a divisor that is zero: %v", err)
	}
}

// TestGraph runs a graph, with gradients, on a device: the bits are those of the host.
// Several run at a time, each on a stream of its own.
func TestGraph(t *testing.T) {
	const goroutines = 4
	d := sim.New("graphs", sim.Options{Streams: goroutines})
	table, err := sim.Ported(ops.Table(), d.Name)
	if err != nil {
		t.Fatal(err)
	}
	x := tensor.Of(tensor.F32, []int{2, 3}, []float32{1, -2, 3, -4, 5, -6})
	step := func(b *graph.Builder, in ...op.Value) []op.Value {
		y := b.Op("relu", b.Mul(in[0], b.Constant(x)))
		z := b.Op("sum", b.Op("matmul", b.Op("exp", b.Neg(y)), b.Op("t", b.Arrange(y.(*graph.Value), []int{1, 2}))))
		grads, err := b.Grads([]op.Value{z}, []op.Value{nil}, in[:1])
		if err != nil {
			op.Fail(err)
		}
		return append(grads, z)
	}
	want, err := graph.New(table, "step", step, graph.Options{}).Run(x)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for stream := range goroutines {
		all.Go(func() {
			out, err := graph.New(table, "step", step, graph.Options{Device: d.Device, Stream: stream}).Run(x)
			if err != nil {
				t.Error(err)
				return
			}
			for i, y := range out {
				if h, err := y.To(nil); y.Device() != d.Device || err != nil || !h.SameBits(want[i]) {
					t.Errorf("result %d on %s: %v, %v", i, y.Device(), h, err)
				}
			}
		})
	}
	all.Wait()
	if c := d.Counts(); c.Launches == 0 || c.ToDevice == 0 || c.FromDevice == 0 {
		t.Errorf("%+v", c)
	}
}
