//go:build unix

package worker

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"plumb/backend"
	"plumb/program"
	"plumb/tensor"
)

// kit opens PyTorch as plumb_subject.py hosts it.
func kit(t *testing.T) *Worker {
	t.Helper()
	path, _, err := FindPython("")
	if err != nil {
		t.Skip("needs a Python with torch: ", strings.SplitN(err.Error(), "\n", 2)[0])
	}
	dir, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	w, err := Open(t.Context(), Config{Framework: "torchkit", Python: path, Env: []string{"PYTHONPATH=" + dir}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
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
		t.Run(name, func(t *testing.T) {
			want, got := run(t, own, b), run(t, w, b)
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
				if i < 0 {
					t.Errorf("no %+v", s.Place)
				} else if s.Tensor != nil {
					same(t, s.Owner, got.Slots[i].Tensor.Contiguous(), s.Tensor.Contiguous())
				}
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

// TestTables: an adapter's table renames, fills in, leaves out and denies.
func TestTables(t *testing.T) {
	w := kit(t)
	x := f32([]int{2}, -2, 4)
	double := tensor.New(tensor.F64, 2)
	for name, c := range map[string]struct {
		b    *builder
		want backend.Status
		text string
	}{
		"another name":     {new(builder).in("x", x, false).call("y", "torch.sub", program.Ref("x"), program.Ref("x")), backend.OK, "0 0"},
		"not there":        {new(builder).in("x", x, false).call("y", "torch.tanh", program.Ref("x")), backend.Unsupported, "torch has no torch.tanh"},
		"no such dtype":    {new(builder).in("x", double, false).call("y", "torch.sin", program.Ref("x")), backend.Unsupported, "torch has no torch.sin of float64"},
		"keyword":          {new(builder).in("x", x, false).call("y", "torch.sum", program.Ref("x")).kw("dim", int64(0)), backend.OK, "2"},
		"other default":    {new(builder).in("x", x, false).call("y", "torch.nn.functional.leaky_relu", program.Ref("x")), backend.OK, "-1 4"},
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

// TestDevices: a device that is not there, or holds nothing, is refused at the start.
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
		"nosuch": {Python: path}, "meta": {Python: path}, "cuda:77": {Python: path},
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
