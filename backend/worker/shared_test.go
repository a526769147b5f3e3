//go:build unix

package worker

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"plumb/backend"
	"plumb/backend/recorded"
	"plumb/program"
	"plumb/tensor"
)

// drawn is an input that its fill tells.
func (b *builder) drawn(name string, grad bool, d tensor.DType, strides []int, shape ...int) *builder {
	b.p.Inputs = append(b.p.Inputs, program.Input{
		Name: name, DType: d, Shape: shape, Strides: strides, RequiresGrad: grad,
		Fill: program.Fill{Dist: program.Normal, Hi: 1, Key: uint64(len(b.p.Inputs)) + 7},
	})
	return b
}

// TestRunShared runs jobs with and without copies and compares all tensors: large
// ones that stay in the region, small ones, one that is not contiguous, a call in
// place, an exception, a value that does not fit into the region that was there,
// a cotangent that has to be asked for again, one that crosses in the dtype of its
// value, and one of which that was said by mistake.
func TestRunShared(t *testing.T) {
	w := torch(t)
	batches := map[string][]*builder{
		"batch": {
			new(builder).drawn("x", true, tensor.F32, nil, 64, 512).call("y", "torch.exp", program.Ref("x")).back("y", program.Fill{}),
			new(builder).drawn("x", false, tensor.F64, []int{1, 300}, 300, 40).call("y", "torch.relu_", program.Ref("x")),
			new(builder).drawn("x", false, tensor.F32, nil, 3).call("y", "torch.neg", program.Ref("x")),
			new(builder).drawn("x", false, tensor.F32, nil, 3).call("y", "torch.reshape", program.Ref("x"), program.Tuple{int64(2), int64(2)}),
		},
		"grows": {new(builder).drawn("x", false, tensor.F32, nil, 1000, 1).call("y", "torch.add", program.Ref("x"), int64(1)).
			call("z", "Tensor.repeat", program.Ref("y"), int64(8), int64(1000))},
		"told": {new(builder).drawn("x", true, tensor.F32, nil, 64, 512).call("y", "torch.exp", program.Ref("x")).
			back("y", program.Fill{Dist: program.Normal, Hi: 1, Key: 3})},
		"again": {new(builder).drawn("x", true, tensor.F64, nil, 20).call("y", "Tensor.repeat", program.Ref("x"), int64(100)).
			back("y", program.Fill{Dist: program.Normal, Hi: 1, Key: 3})},
	}
	told := map[string]tensor.DType{"typed": tensor.F32, "halves": tensor.BF16, "mistaken": tensor.BF16}
	for name, d := range map[string]tensor.DType{"typed": tensor.F32, "halves": tensor.BF16, "mistaken": tensor.F32} {
		batches[name] = []*builder{new(builder).drawn("x", true, d, nil, 300, 50).call("y", "torch.exp", program.Ref("x")).
			back("y", program.Fill{Dist: program.Uniform, Lo: -1, Hi: 1, Key: 3, Round: tensor.F16})}
	}
	for name, batch := range batches {
		var shared, plain []*backend.Job
		for _, b := range batch {
			shared = append(shared, &backend.Job{Program: &b.p, Cotangents: told[name]})
			job := backend.NewJob(&b.p)
			plain = append(plain, job)
		}
		clear(w.reach) // what other tests have taught
		before, requests := w.encode.number, 1
		if name == "again" || name == "mistaken" {
			requests = 2
		}
		got, err := w.RunShared(t.Context(), shared)
		if err != nil {
			t.Fatal(err)
		}
		if crosses := told[name] != tensor.Invalid && name != "mistaken"; bytes.Contains(w.encode.buf, []byte(`"cotangents":"`+told[name].String()+`"`)) != crosses {
			t.Errorf("%s: whether the cotangent crosses as %v is not %v", name, told[name], crosses)
		}
		if n := w.encode.number - before; n != requests {
			t.Errorf("%s: %d requests, want %d", name, n, requests)
		}
		var have []map[string]*tensor.Tensor
		for i, o := range got {
			have = append(have, tensorsOf(t, o))
			for k, x := range shared[i].Inputs {
				shared[i].Inputs[k] = x.Clone()
			}
		}
		w.Release()
		want, err := w.RunBatch(t.Context(), plain)
		if err != nil {
			t.Fatal(err)
		}
		for i := range want {
			if want[i].Status != got[i].Status || want[i].Message != got[i].Message {
				t.Errorf("%s %d: %s %q, want %s %q", name, i, got[i].Status, got[i].Message, want[i].Status, want[i].Message)
			}
			for k, x := range plain[i].Inputs {
				if !x.SameBits(shared[i].Inputs[k]) {
					t.Errorf("%s %d: input %d differs", name, i, k)
				}
			}
			for place, x := range tensorsOf(t, want[i]) {
				if y := have[i][place]; y == nil || !x.SameBits(y) {
					t.Errorf("%s %d: %s differs", name, i, place)
				}
			}
		}
	}
}

// tensorsOf returns copies of the tensors of an outcome, by place.
func tensorsOf(t *testing.T, o *backend.Outcome) map[string]*tensor.Tensor {
	out := map[string]*tensor.Tensor{}
	if _, err := recorded.Describe(o, func(place string, t *tensor.Tensor) *recorded.TensorRef {
		out[place] = t.Clone()
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestRunUninitialized: integers are drawn, floats are not; a dtype without a kernel is
// refused in the words in which drawn inputs are.
func TestRunUninitialized(t *testing.T) {
	w := torch(t)
	jobs := func() []*backend.Job {
		var list []*backend.Job
		for _, b := range []*builder{
			new(builder).drawn("x", false, tensor.F16, nil, 100).call("y", "torch.log", program.Ref("x")),
			new(builder).drawn("x", false, tensor.F32, nil, 3000).drawn("i", false, tensor.I64, nil, 3000).call("y", "torch.neg", program.Ref("i")).call("z", "torch.neg", program.Ref("x")),
		} {
			list = append(list, &backend.Job{Program: &b.p})
		}
		return list
	}
	blank := jobs()
	got, err := w.RunUninitialized(t.Context(), blank)
	if err != nil {
		t.Fatal(err)
	}
	ints, floats := got[1].Values[0].Tensor.Clone(), got[1].Values[1].Tensor.Clone()
	want, err := w.RunShared(t.Context(), jobs())
	if err != nil {
		t.Fatal(err)
	}
	if got[0].Status != want[0].Status || got[0].Class != want[0].Class || got[0].Message != want[0].Message || got[0].Call != want[0].Call {
		t.Errorf("%s %q, of drawn inputs %s %q", got[0].Status, got[0].Message, want[0].Status, want[0].Message)
	}
	if !ints.SameBits(want[1].Values[0].Tensor) || floats.SameBits(want[1].Values[1].Tensor) {
		t.Error("integers are others, or floats are drawn")
	}
}

// TestMappingIsKept asks about a large case and then about a small one: the worker
// still maps what that took, whose pages it would have to touch anew.
func TestMappingIsKept(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("it reads /proc")
	}
	w := torch(t)
	const large = keepMemory + 32<<20
	for _, n := range []int{large / 4, 16} {
		b := new(builder).drawn("x", false, tensor.F32, nil, n).call("y", "torch.numel", program.Ref("x"))
		b.p.Inputs[0].Fill = program.Fill{Dist: program.Constant, Lo: 1}
		if _, err := w.RunShared(t.Context(), []*backend.Job{{Program: &b.p}}); err != nil {
			t.Fatal(err)
		}
	}
	w.Release()
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", w.proc.pid))
	if err != nil {
		t.Fatal(err)
	}
	most := uint64(0)
	for line := range strings.Lines(string(maps)) {
		var from, to uint64
		if _, err := fmt.Sscanf(line, "%x-%x", &from, &to); err == nil && strings.Contains(line, "memfd:plumb") {
			most = max(most, to-from)
		}
	}
	if most < large {
		t.Errorf("the worker maps %d bytes of %d", most, len(w.mem.bytes))
	}
}
