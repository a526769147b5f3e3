//go:build unix

package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"math/cmplx"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"plumb/backend"
	"plumb/program"
	"plumb/tensor"
)

// kit opens PyTorch as plumb_subject.py hosts it.
func kit(t *testing.T) *Worker { return adapted(t, "torchkit") }

// adapters are the workers by name that the tests share.
var adapters = map[string]*Worker{}

// adapted is PyTorch by an adapter of testdata.
func adapted(t *testing.T, adapter string) *Worker {
	t.Helper()
	if w := adapters[adapter]; w != nil {
		return w
	}
	path, _, err := FindPython("")
	if err != nil {
		t.Skip("needs a Python with torch: ", strings.SplitN(err.Error(), "\n", 2)[0])
	}
	dir, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	w, err := Open(context.Background(), Config{Framework: adapter, Python: path, Env: []string{"PYTHONPATH=" + dir}})
	if err != nil {
		t.Fatal(err)
	}
	adapters[adapter] = w
	ended = append(ended, func() { w.Close() })
	return w
}

// TestKitComputesWhatPyTorchDoes: PyTorch on the kit gives what its own worker gives.
func TestKitComputesWhatPyTorchDoes(t *testing.T) {
	own, w := torch(t), kit(t)
	if info := w.Info(); info.Version != own.Info().Version {
		t.Errorf("%+v", info)
	}
	strided := tensor.NewStrided(tensor.F32, []int{2, 3}, []int{1, 4})
	for i := range 6 {
		strided.Set(i, complex(float64(i)-2.5, 0))
	}
	x := f32([]int{2, 3}, -1, 2, -3, 4, -5, 6)
	programs := map[string]*builder{
		"function":         new(builder).in("x", x, true).call("y", "torch.sin", program.Ref("x")).back("y", program.Fill{}),
		"strides":          new(builder).in("x", strided, true).call("y", "Tensor.exp", program.Ref("x")).back("y", program.Fill{}),
		"operator":         new(builder).in("x", x, true).call("y", "operator.mul", program.Ref("x"), program.Ref("x")).back("y", program.Fill{}),
		"tuple":            new(builder).in("x", x, true).call("y", "torch.max", program.Ref("x"), int64(1)).call("z", "operator.getitem", program.Ref("y"), int64(0)).back("z", program.Fill{}),
		"by keyword":       new(builder).call("y", "torch.full", program.Tuple{int64(2)}, 1.5).kw("dtype", tensor.F64),
		"slice":            new(builder).in("x", x, false).call("y", "operator.getitem", program.Ref("x"), program.Tuple{program.Ellipsis{}, program.Slice{Start: int64(1)}}),
		"module":           new(builder).in("x", x, true).call("m", "torch.nn.Linear", int64(3), int64(4)).call("y", "Module.__call__", program.Ref("m"), program.Ref("x")).back("y", program.Fill{}),
		"plain":            new(builder).in("x", x, false).call("y", "Tensor.size", program.Ref("x")).call("z", "getattr", program.Ref("x"), "dtype").call("n", "Tensor.dim", program.Ref("x")),
		"refused":          new(builder).in("x", x, false).call("y", "torch.matmul", program.Ref("x"), program.Ref("x")),
		"seed":             new(builder).call("s", "torch.manual_seed", int64(3)).call("y", "torch.rand", program.Tuple{int64(3)}),
		"of a call's leaf": new(builder).in("x", x, false).call("p", "torch.nn.Parameter", program.Ref("x")).call("y", "torch.sum", program.Ref("p")).call("b", "Tensor.backward", program.Ref("y")),
	}
	for _, d := range tensor.DTypes {
		z := tensor.New(d, 3)
		z.Set(1, 1)
		programs["clone of "+d.String()] = new(builder).in("x", z, d.IsDifferentiable()).call("y", "torch.clone", program.Ref("x"))
	}
	for name, b := range programs {
		t.Run(name, func(t *testing.T) { sameOutcome(t, run(t, w, b), run(t, own, b)) })
	}
}

// sameOutcome compares what two workers gave, but for what the kit leaves out.
func sameOutcome(t *testing.T, got, want *backend.Outcome) {
	t.Helper()
	if got.Status != want.Status || got.Class != want.Class || got.Call != want.Call || len(got.Values) != len(want.Values) {
		t.Fatalf("%+v, want %+v", got, want)
	}
	for i := range want.Values {
		sameValue(t, got.Values[i], want.Values[i])
	}
	for _, s := range want.Slots {
		if s.Part == backend.PartChange {
			continue
		}
		i := slices.IndexFunc(got.Slots, func(g backend.Slot) bool { return g.Place == s.Place })
		switch {
		case i < 0:
			t.Errorf("no %+v", s.Place)
		case (s.Tensor == nil) != (got.Slots[i].Tensor == nil):
			t.Errorf("%+v is %v, want %v", s.Place, got.Slots[i].Tensor, s.Tensor)
		case s.Tensor != nil:
			same(t, s.Owner, got.Slots[i].Tensor.Contiguous(), s.Tensor.Contiguous())
		}
	}
}

// TestOwnInterface: a framework with an interface of its own, without a tape, gives
// what PyTorch gives, call by call and compiled.
func TestOwnInterface(t *testing.T) {
	own, w := torch(t), adapted(t, "torchown")
	traced, err := w.In("traced")
	if err != nil {
		t.Fatal(err)
	}
	x, image := f32([]int{2, 3}, -1, 2, -3, 4, -5, 6), tensor.New(tensor.F32, 1, 2, 4, 4)
	for i := range image.Len() {
		image.Set(i, complex(float64(i*5%7), 0))
	}
	whole := tensor.New(tensor.I64, 2)
	whole.Set(1, 4)
	programs := map[string]*builder{
		"gradient":       new(builder).in("x", x, true).call("y", "torch.exp", program.Ref("x")).call("z", "Tensor.sum", program.Ref("y")).back("z", program.Fill{}),
		"no gradient":    new(builder).in("x", x, true).in("w", x, true).call("y", "torch.relu", program.Ref("x")).back("y", program.Fill{}),
		"detached":       new(builder).in("x", x, true).call("y", "Tensor.detach", program.Ref("x")).call("z", "operator.mul", program.Ref("x"), program.Ref("y")).back("z", program.Fill{}),
		"integers":       new(builder).in("x", whole, false).call("y", "torch.exp", program.Ref("x")),
		"numbers":        new(builder).in("x", x, false).call("y", "operator.add", int64(2), program.Ref("x")).call("z", "torch.add", program.Ref("x"), 1.5).kw("alpha", int64(2)),
		"renamed":        new(builder).in("x", x, false).call("y", "torch.swapaxes").kw("input", program.Ref("x")).kw("axis0", int64(0)).kw("axis1", int64(1)),
		"one by one":     new(builder).in("x", x, false).call("y", "Tensor.permute", program.Ref("x"), int64(1), int64(0)),
		"tuple":          new(builder).in("x", x, true).call("y", "torch.max", program.Ref("x"), int64(1)).call("z", "operator.getitem", program.Ref("y"), int64(0)).back("z", program.Fill{}),
		"list":           new(builder).in("x", x, true).call("y", "torch.cat", program.List{program.Ref("x"), program.Ref("x")}).back("y", program.Fill{}),
		"shape":          new(builder).in("x", x, false).call("s", "getattr", program.Ref("x"), "shape").call("n", "operator.getitem", program.Ref("s"), int64(1)).call("d", "getattr", program.Ref("x"), "dtype").call("k", "Tensor.numel", program.Ref("x")),
		"in place":       new(builder).in("x", x, false).call("y", "Tensor.add_", program.Ref("x"), int64(1)).call("z", "torch.exp", program.Ref("x")),
		"graph in place": new(builder).in("x", x, true).call("z", "operator.mul", program.Ref("x"), program.Ref("x")).call("y", "Tensor.add_", program.Ref("z"), int64(1)).call("w", "torch.exp", program.Ref("y")).back("w", program.Fill{}),
		"view of a base": new(builder).in("x", x, true).call("z", "operator.mul", program.Ref("x"), program.Ref("x")).call("v", "Tensor.permute", program.Ref("z"), int64(1), int64(0)).
			call("u", "Tensor.detach", program.Ref("v")).call("y", "Tensor.add_", program.Ref("z"), program.Ref("x")).
			call("w", "operator.mul", program.Ref("v"), program.Ref("u")).back("w", program.Fill{}),
		"a copy of a base": new(builder).in("x", x, false).call("y", "torch.exp", program.Ref("x")).call("v", "operator.getitem", program.Ref("y"), program.List{int64(1), int64(0)}).
			call("z", "Tensor.add_", program.Ref("y"), int64(1)).call("w", "torch.exp", program.Ref("v")),
		"no new tensor": new(builder).in("x", f32([]int{2, 2}, 1, 2, 3, 4), true).call("y", "torch.exp", program.Ref("x")).call("z", "operator.imatmul", program.Ref("y"), program.Ref("x")).
			call("w", "torch.exp", program.Ref("y")).back("w", program.Fill{}),
		"alike": new(builder).in("x", x, true).in("w", x, true).call("y", "Tensor.view_as", program.Ref("x"), program.Ref("w")).back("y", program.Fill{}),
		"apart": new(builder).in("x", x, true).in("w", x, false).call("p", "torch.broadcast_tensors", program.Ref("w"), program.Ref("x")).call("a", "operator.getitem", program.Ref("p"), int64(0)).
			call("b", "operator.getitem", program.Ref("p"), int64(-1)).back("b", program.Fill{}),
		"module":         new(builder).in("x", x, true).call("m", "torch.nn.ReLU").call("y", "Module.__call__", program.Ref("m"), program.Ref("x")).back("y", program.Fill{}),
		"convolution":    new(builder).in("x", image, true).call("m", "torch.nn.Conv2d", int64(2), int64(3), int64(2)).call("y", "Module.__call__", program.Ref("m"), program.Ref("x")).back("y", program.Fill{}),
		"new dimension":  new(builder).in("x", x, true).call("y", "operator.getitem", program.Ref("x"), nil).back("y", program.Fill{}),
		"older words":    new(builder).in("x", x, true).call("y", "torch.nn.functional.mse_loss", program.Ref("x"), program.Ref("x")).kw("size_average", false).call("z", "torch.nn.functional.mse_loss", program.Ref("x"), program.Ref("x")).kw("reduce", false),
		"older module":   new(builder).in("x", x, true).call("m", "torch.nn.MSELoss", false).call("y", "Module.__call__", program.Ref("m"), program.Ref("x"), program.Ref("x")).back("y", program.Fill{}),
		"padded":         new(builder).in("x", image, true).call("m", "torch.nn.Conv2d", int64(2), int64(3), int64(2)).kw("padding", program.Tuple{int64(1), int64(2)}).kw("padding_mode", "reflect").call("y", "Module.__call__", program.Ref("m"), program.Ref("x")).back("y", program.Fill{}),
		"as large":       new(builder).in("x", image, true).call("m", "torch.nn.Conv2d", int64(2), int64(3), program.Tuple{int64(2), int64(3)}).kw("padding", "same").kw("padding_mode", "circular").call("y", "Module.__call__", program.Ref("m"), program.Ref("x")).back("y", program.Fill{}),
		"read":           new(builder).in("x", image, true).call("m", "torch.nn.Conv2d", int64(2), int64(3), int64(2)).kw("bias", false).call("n", "getattr", program.Ref("m"), "out_channels").call("t", "getattr", program.Ref("m"), "training").call("b", "getattr", program.Ref("m"), "bias").call("w", "Module.get_parameter", program.Ref("m"), "weight").call("y", "Module.__call__", program.Ref("m"), program.Ref("x")).back("y", program.Fill{}),
		"second order":   new(builder).in("x", x, true).call("y", "torch.exp", program.Ref("x")).back("y", program.Fill{}),
		"loss":           new(builder).in("x", x, true).call("m", "torch.nn.MSELoss").kw("reduction", "sum").call("y", "Module.__call__", program.Ref("m"), program.Ref("x"), program.Ref("x")).back("y", program.Fill{}),
		"a kernel of 1":  new(builder).in("x", image, true).in("w", tensor.New(tensor.F32, 3, 2, 1, 1), true).call("y", "torch.nn.functional.conv2d", program.Ref("x"), program.Ref("w")).kw("stride", int64(2)).back("y", program.Fill{}),
		"without a tape": new(builder).in("x", x, true).call("y", "torch.argmax", program.Ref("x")).call("z", "Tensor.float", program.Ref("y")),
	}
	programs["second order"].p.Second = program.Fill{Dist: program.Integer, Lo: 1, Hi: 4, Key: 3}
	for name, b := range programs {
		t.Run(name, func(t *testing.T) {
			want := run(t, own, b)
			job := b.job()
			job.State = want.Initial
			for _, in := range []backend.Backend{w, traced} {
				got, err := in.Run(t.Context(), job)
				if err != nil {
					t.Fatal(err)
				}
				sameOutcome(t, got, want)
			}
		})
	}
}

// TestLayers: modules of several steps, made of a table's functions, give what PyTorch's give, with gradients.
func TestLayers(t *testing.T) {
	own, w := torch(t), adapted(t, "torchown")
	x := tensor.New(tensor.F32, 3, 2, 4)
	for i := range x.Len() {
		x.Set(i, complex(float64(i*7%11)/4-1, 0))
	}
	masked := tensor.New(tensor.Bool, 3, 3)
	masked.Set(1, 1)
	of := func(module string, args ...any) *builder {
		return new(builder).in("x", x, true).in("masked", masked, false).call("m", "torch.nn."+module, args...)
	}
	called := func(b *builder, args ...any) *builder {
		return b.call("y", "Module.__call__", append([]any{program.Ref("m")}, args...)...)
	}
	first := func(b *builder) *builder {
		return b.call("z", "operator.getitem", program.Ref("y"), int64(0)).back("z", program.Fill{})
	}
	in, mask := program.Ref("x"), program.Ref("masked")
	holds := of("Linear", int64(4), int64(3)).call("a", "torch.nn.ReLU").call("s", "torch.nn.Sequential", program.Ref("m"), program.Ref("a")).
		call("l", "torch.nn.ModuleList", program.List{program.Ref("s")}).call("y", "Module.__call__", program.Ref("s"), in).back("y", program.Fill{})
	for name, b := range map[string]*builder{
		"holds":      holds,
		"cell":       called(of("GRUCell", int64(4), int64(3)).call("r", "operator.getitem", in, int64(0)), program.Ref("r")).back("y", program.Fill{}),
		"rnn":        first(called(of("RNN", int64(4), int64(3)).kw("nonlinearity", "relu"), in)),
		"gru":        first(called(of("GRU", int64(4), int64(3)).kw("batch_first", true), in)),
		"lstm":       first(called(of("LSTM", int64(4), int64(3)).kw("num_layers", int64(2)).kw("bidirectional", true), in)),
		"projected":  first(called(of("LSTM", int64(4), int64(3)).kw("proj_size", int64(2)), in)),
		"attention":  first(called(of("MultiheadAttention", int64(4), int64(2)), in, in, in, nil, false, mask)),
		"encoder":    called(of("TransformerEncoderLayer", int64(4), int64(2), int64(5), 0.0), in, mask).back("y", program.Fill{}),
		"norm first": called(of("TransformerEncoderLayer", int64(4), int64(2), int64(5), 0.0).kw("norm_first", true), in).back("y", program.Fill{}),
		"decoder":    called(of("TransformerDecoderLayer", int64(4), int64(2), int64(5), 0.0), in, in, mask).back("y", program.Fill{}),
	} {
		t.Run(name, func(t *testing.T) {
			want := run(t, own, b)
			job := b.job()
			job.State = want.Initial
			got, err := w.Run(t.Context(), job)
			if err != nil || got.Status != backend.OK || want.Status != backend.OK {
				t.Fatal(err, got, want)
			}
			for i, v := range want.Values {
				nearlyValue(t, got.Values[i], v)
			}
			grads := 0
			for i, s := range want.Slots {
				j := slices.IndexFunc(got.Slots, func(g backend.Slot) bool { return g.Place == s.Place })
				if j < 0 || (s.Tensor == nil) != (got.Slots[j].Tensor == nil) {
					t.Fatalf("slot %d, %+v: %v", i, s.Place, j)
				}
				if s.Tensor == nil {
					continue
				}
				if s.Part.IsGradient() {
					grads++
				}
				nearly(t, fmt.Sprint(s.Place), got.Slots[j].Tensor.Contiguous(), s.Tensor.Contiguous())
			}
			if grads < 3 {
				t.Errorf("%d gradients", grads)
			}
		})
	}
}

// TestModulesThatChange: running statistics, and inputs of modules that work in place,
// are after a call what PyTorch makes of them, also where the program is one function.
func TestModulesThatChange(t *testing.T) {
	own, w := torch(t), adapted(t, "torchown")
	x := tensor.New(tensor.F32, 3, 2, 4)
	for i := range x.Len() {
		x.Set(i, complex(float64(i*7%11)/4-1, 0))
	}
	called := func(b *builder, m, x, y string) *builder {
		return b.call(y, "Module.__call__", program.Ref(m), program.Ref(x))
	}
	b := new(builder).in("x", x, true).call("n", "torch.nn.BatchNorm1d", int64(2)).kw("momentum", 0.3).call("r", "torch.nn.ReLU").kw("inplace", true).
		call("s", "torch.nn.Sequential", program.Ref("n"), program.Ref("r"))
	called(called(called(b, "n", "x", "y"), "r", "y", "z"), "s", "z", "v")
	b.call("a", "torch.add", program.Ref("v"), int64(-1)).call("f", "torch.nn.functional.relu", program.Ref("a")).kw("inplace", true).back("y", program.Fill{}).back("f", program.Fill{})
	want := run(t, own, b)
	for _, mode := range []string{"", "traced"} {
		of, err := w.In(mode)
		if err != nil {
			t.Fatal(err)
		}
		job := b.job()
		job.State = want.Initial
		got, err := of.Run(t.Context(), job)
		if err != nil || got.Status != backend.OK || want.Status != backend.OK {
			t.Fatalf("%q: %v %+v %+v", mode, err, got, want)
		}
		for _, s := range want.Slots {
			j := slices.IndexFunc(got.Slots, func(g backend.Slot) bool { return g.Place == s.Place })
			if s.Part == backend.PartChange {
				continue // it tells none: its values are what they became
			}
			if j < 0 || got.Slots[j].Tensor == nil {
				t.Fatalf("%q has no %+v", mode, s.Place)
			}
			nearly(t, fmt.Sprint(mode, s.Place), got.Slots[j].Tensor.Contiguous(), s.Tensor.Contiguous())
		}
		for i, v := range want.Values {
			nearlyValue(t, got.Values[i], v)
		}
	}
}

func nearlyValue(t *testing.T, got, want backend.Value) {
	t.Helper()
	if (got.Tensor == nil) != (want.Tensor == nil) || len(got.Tuple) != len(want.Tuple) {
		t.Fatalf("%+v, want %+v", got, want)
	}
	if want.Tensor != nil {
		nearly(t, "value", got.Tensor.Contiguous(), want.Tensor.Contiguous())
	}
	for i := range want.Tuple {
		nearlyValue(t, got.Tuple[i], want.Tuple[i])
	}
}

// nearly compares what was summed in another order.
func nearly(t *testing.T, what string, got, want *tensor.Tensor) {
	t.Helper()
	if !slices.Equal(got.Shape(), want.Shape()) {
		t.Fatalf("%s has shape %v, want %v", what, got.Shape(), want.Shape())
	}
	for i := range want.Len() {
		if d := cmplx.Abs(got.At(i) - want.At(i)); !(d < 1e-5) {
			t.Errorf("%s at %d: %v, want %v", what, i, got.At(i), want.At(i))
		}
	}
}

// TestOwnGaps: what a table does not have is unsupported.
func TestOwnGaps(t *testing.T) {
	w := adapted(t, "torchown")
	x := f32([]int{2, 3}, -1, 2, -3, 4, -5, 6)
	double := tensor.New(tensor.F64, 2)
	for name, c := range map[string]struct {
		b    *builder
		want string
	}{
		"operator":      {new(builder).in("x", x, false).call("y", "torch.sin", program.Ref("x")), "torch has no sin"},
		"argument":      {new(builder).in("x", x, false).call("y", "torch.nn.functional.softmax", program.Ref("x"), int64(1)).kw("dtype", tensor.F64), "no argument dtype"},
		"dtype":         {new(builder).in("x", double, false).call("y", "torch.sqrt", program.Ref("x")), "sqrt has no float64"},
		"when":          {new(builder).in("x", x, false).call("y", "torch.amax", program.Ref("x"), int64(1)), "amax is there for keepdim=True alone"},
		"arguments":     {new(builder).in("x", x, false).call("y", "torch.exp", program.Ref("x"), int64(1)), "takes no such arguments"},
		"module":        {new(builder).call("m", "torch.nn.EmbeddingBag", int64(2), int64(2)), "torch has no torch.nn.EmbeddingBag"},
		"training":      {new(builder).in("x", x, false).call("m", "torch.nn.BatchNorm1d", int64(3)).kw("momentum", nil).call("y", "Module.__call__", program.Ref("m"), program.Ref("x")), "momentum=None"},
		"held in place": {new(builder).in("x", x, false).call("m", "torch.nn.ReLU", true).call("s", "torch.nn.Sequential", program.Ref("m")).call("y", "Module.__call__", program.Ref("s"), program.Ref("x")), "a change in place of what a Sequential is given"},
		"turned":        {new(builder).in("x", f32([]int{2, 2}, 1, 2, 3, 4), false).call("v", "Tensor.permute", program.Ref("x"), int64(0), int64(1)).call("y", "Tensor.transpose_", program.Ref("x"), int64(0), int64(1)), "no change in place of the shape"},
		"maybe a view":  {new(builder).in("x", x, false).call("v", "Tensor.reshape", program.Ref("x"), program.List{int64(6)}).call("y", "Tensor.add_", program.Ref("v"), int64(1)), "no views of what is changed in place"},
		"attribute":     {new(builder).in("x", x, true).call("y", "getattr", program.Ref("x"), "__class__"), "no attribute __class__"},
	} {
		t.Run(name, func(t *testing.T) {
			if out := run(t, w, c.b); out.Status != backend.Unsupported || !strings.Contains(out.Message, c.want) {
				t.Errorf("%+v, want unsupported %q", out, c.want)
			}
		})
	}
}

func sameValue(t *testing.T, got, want backend.Value) {
	t.Helper()
	switch {
	case want.Tensor != nil && got.Tensor != nil:
		same(t, "value", got.Tensor.Contiguous(), want.Tensor.Contiguous())
	case got.Tensor != nil || want.Tensor != nil || got.Plain != want.Plain || got.IsTuple != want.IsTuple || got.Module != want.Module || len(got.Tuple) != len(want.Tuple):
		t.Errorf("%+v, want %+v", got, want)
	}
	for i := range min(len(got.Tuple), len(want.Tuple)) {
		sameValue(t, got.Tuple[i], want.Tuple[i])
	}
}

// TestTables: an adapter's table renames, orders, fills in, leaves out and denies.
func TestTables(t *testing.T) {
	w := kit(t)
	x := f32([]int{2}, -2, 4)
	double, small := tensor.New(tensor.F64, 2), tensor.Of(tensor.I8, []int{2}, []int8{100, 2})
	for name, c := range map[string]struct {
		b    *builder
		want backend.Status
		text string
	}{
		"another name":     {new(builder).in("x", x, false).call("y", "torch.sub", program.Ref("x"), program.Ref("x")), backend.OK, "0 0"},
		"not there":        {new(builder).in("x", x, false).call("y", "torch.tanh", program.Ref("x")), backend.Unsupported, "torch has no torch.tanh"},
		"no such dtype":    {new(builder).in("x", double, false).call("y", "torch.sin", program.Ref("x")), backend.Unsupported, "torch has no torch.sin of float64"},
		"nor by keyword":   {new(builder).call("y", "torch.sin").kw("input", program.Ref("x")).in("x", double, false), backend.Unsupported, "torch has no torch.sin of float64"},
		"keyword":          {new(builder).in("x", x, false).call("y", "torch.sum", program.Ref("x")).kw("dim", int64(0)), backend.OK, "2"},
		"other default":    {new(builder).in("x", x, false).call("y", "torch.nn.functional.leaky_relu", program.Ref("x")), backend.OK, "-1 4"},
		"another order":    {new(builder).in("x", x, false).call("y", "torch.clamp", program.Ref("x"), 3.0, -1.0), backend.OK, "-1 3"},
		"a bool":           {new(builder).in("x", x, false).call("y", "torch.all", program.Ref("x"), true).kw("dim", int64(0)), backend.OK, "1"},
		"its dtype":        {new(builder).in("x", small, false).call("y", "torch.cumprod", program.Ref("x"), int64(0)), backend.OK, "100 -56"},
		"a dtype":          {new(builder).in("x", f32([]int{2}, 1<<24, 1), false).call("y", "torch.cumsum", program.Ref("x"), int64(0)), backend.OK, "16777216 16777217"},
		"the only value":   {new(builder).in("x", x, false).call("y", "torch.softmax", program.Ref("x"), int64(0)).kw("dtype", nil), backend.OK, ""},
		"another value":    {new(builder).in("x", x, false).call("y", "torch.softmax", program.Ref("x"), int64(0)).kw("dtype", tensor.F64), backend.Unsupported, "no argument dtype other than None"},
		"input by keyword": {new(builder).in("x", x, false).call("y", "torch.abs").kw("input", program.Ref("x")), backend.OK, "2 4"},
		"closed":           {new(builder).call("y", "torch.load", "file"), backend.Unsupported, "not open to programs"},
		"a private method": {new(builder).in("x", x, false).call("y", "Tensor.__reduce__", program.Ref("x")), backend.Unsupported, "not open to programs"},
		"another module":   {new(builder).call("y", "os.getcwd"), backend.Unsupported, "not open to programs"},
		"of a module":      {new(builder).call("y", "torch.os.getcwd"), backend.Unsupported, "not open to programs"},
	} {
		out := run(t, w, c.b)
		if out.Status != c.want || c.want != backend.OK && !strings.Contains(out.Message, c.text) {
			t.Errorf("%s: %+v, want %s with %q", name, out, c.want, c.text)
			continue
		}
		if c.want == backend.OK && c.text != "" {
			if got := numbers(out.Values[0].Tensor); got != c.text {
				t.Errorf("%s: %s, want %s", name, got, c.text)
			}
		}
	}
}

func numbers(x *tensor.Tensor) string {
	var parts []string
	for i := range x.Len() {
		b, _ := json.Marshal(real(x.At(i)))
		parts = append(parts, string(b))
	}
	return strings.Join(parts, " ")
}

// TestPromotion: the kit promotes dtypes as PyTorch does.
func TestPromotion(t *testing.T) { prints(t, "testdata/promotion.py", "672\n") }

// TestTableMistakes: a table that says what no table says is refused by its entry.
func TestTableMistakes(t *testing.T) {
	prints(t, "testdata/mistakes.py", "none\nexpp is no operator: is it exp?\nexp: an entry has no dtype, but call, dtypes, when, ignores, ints, rank\nexp: the call numpy.exp(input: '(' was never closed\nexp: a table's call has no ListComp: numpy.exp(*[v for v in [input]]); exp: a table's call has no comprehension: numpy.exp(*[v for v in [input]])\nsoftmax: Own has no soft: is it self.softened?\n")
}

// TestPlain: tensors are the same with numpy and without it.
func TestPlain(t *testing.T) { prints(t, "testdata/plain.py", "75\n") }

// TestSecondGradient: whether a call keeps tensors, so that a second gradient through it is
// refused, is as the kit says.
func TestSecondGradient(t *testing.T) { prints(t, "testdata/secondgradient.py", "44\n") }

// TestCallsOnNumPy: NumPy's dtypes equal None for nobody, and what its table maps is PyTorch's.
func TestCallsOnNumPy(t *testing.T) { prints(t, "testdata/numpycalls.py", "8\n") }

// prints runs a file that tries the kit.
func prints(t *testing.T, file, want string) {
	t.Helper()
	path, _, err := FindPython("")
	if err != nil {
		t.Skip("needs a Python with torch: ", strings.SplitN(err.Error(), "\n", 2)[0])
	}
	cmd := exec.Command(path, file)
	cmd.Env = append(os.Environ(), "PYTHONPATH=py:testdata", "PYTHONDONTWRITEBYTECODE=1")
	out, err := cmd.CombinedOutput()
	if err != nil || string(out) != want {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestOwnTables: what tables of frameworks with an interface of their own name is there.
func TestOwnTables(t *testing.T) {
	for _, framework := range Frameworks {
		t.Run(framework, func(t *testing.T) {
			path, _, err := Find(framework, "")
			if err != nil {
				t.Skip("needs a Python with it: ", strings.SplitN(err.Error(), "\n", 2)[0])
			}
			name, _, _ := strings.Cut(framework, ":")
			if _, err := sources.ReadFile("py/" + name + ".json"); err != nil {
				t.Skip("it has no table")
			}
			cmd := exec.Command(path, "testdata/tables.py", framework)
			cmd.Env = append(os.Environ(), "PYTHONPATH=py:testdata:"+os.Getenv("PYTHONPATH"), "PYTHONDONTWRITEBYTECODE=1")
			var log strings.Builder // frameworks log much
			cmd.Stderr = &log
			out, err := cmd.Output()
			if err != nil || len(out) > 0 {
				t.Errorf("%v\n%s%s", err, out, log.String())
			}
		})
	}
}

// TestDevices: a device that is not there is refused at the start.
func TestDevices(t *testing.T) {
	torch(t)
	path, _, err := FindPython("")
	if err != nil {
		t.Fatal(err)
	}
	dir, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	for device, c := range map[string]Config{
		"nosuch": {Python: path}, "cuda:77": {Python: path},
		"cuda": {Python: path, Framework: "torchkit", Env: []string{"PYTHONPATH=" + dir}},
	} {
		c.Device = device
		w, err := Open(t.Context(), c)
		if err == nil {
			w.Close()
			t.Errorf("%s %s opens", c.Framework, device)
		} else if text := err.Error(); !strings.Contains(text, device) || strings.Contains(text, "Traceback") {
			t.Errorf("%s: %s", device, text)
		}
	}
}

// TestOneFlow: OneFlow gives what it is known to give, and its table names what it has.
func TestOneFlow(t *testing.T) {
	path, _, err := Find("oneflow", "")
	if err != nil {
		t.Skip("needs a Python with oneflow: ", strings.SplitN(err.Error(), "\n", 2)[0])
	}
	w, err := Open(context.Background(), Config{Framework: "oneflow", Python: path})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	out := run(t, w, new(builder).in("x", f32([]int{2}, -2, 4), true).call("y", "torch.relu").kw("input", program.Ref("x")).back("y", program.Fill{}))
	if out.Status != backend.OK || numbers(out.Values[0].Tensor) != "0 4" || len(out.Slots) != 1 || numbers(out.Slots[0].Tensor) != "0 1" {
		t.Errorf("%+v", out)
	}
	text, err := os.ReadFile("py/oneflow.json")
	if err != nil {
		t.Fatal(err)
	}
	var table map[string]any
	if err := json.Unmarshal(text, &table); err != nil {
		t.Fatal(err)
	}
	for target, difference := range table {
		if difference == nil {
			continue
		}
		if out := run(t, w, new(builder).call("y", target)); strings.Contains(out.Message, "oneflow has no") {
			t.Errorf("the table names what is not there: %s: %s", target, out.Message)
		}
	}
}

// TestLateEnds: a process that ends by what a call left to do ends in the case of
// that call, though the call raised before.
func TestLateEnds(t *testing.T) {
	w := adapted(t, "torchtape")
	x := f32([]int{1}, 1)
	out := run(t, w, new(builder).in("x", x, false).call("y", "torch.tan", program.Ref("x")))
	if out.Status != backend.Crashed || out.Class != "SIGABRT" || !strings.Contains(out.Message, "in torch.tan") {
		t.Errorf("%+v", out)
	}
	if next := run(t, w, new(builder).in("x", x, false).call("y", "torch.exp", program.Ref("x"))); next.Status != backend.OK {
		t.Errorf("the next case: %+v", next)
	}
}

// TestLateEndsOfRanks: so does a rank.
func TestLateEndsOfRanks(t *testing.T) {
	ranks, err := adapted(t, "torchtape").In("ranks")
	if err != nil {
		t.Fatal(err)
	}
	late := new(builder).in("x", f32([]int{1}, 1), false).call("y", "torch.tan", program.Ref("x"))
	if out, err := ranks.Run(t.Context(), late.job()); err != nil || out.Status != backend.Crashed || !strings.Contains(out.Message, "ended by SIGABRT at call 0, torch.tan") {
		t.Errorf("%+v, %v", out, err)
	}
}
