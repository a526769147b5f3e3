package recorded

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"plumb/backend"
	"plumb/internal/draw/choice"
	"plumb/internal/safetensors"
	"plumb/program"
	"plumb/tensor"
)

var info = backend.Info{Name: "torch", Version: "1.13.1", Devices: []string{"cpu"}, Modes: []string{"eager"}, Features: map[string]string{"blas": "openblas", "threads": "1"}}

// sample is a case with every kind of value; n makes it unique.
func sample(n int) Case {
	x, m, h := program.Ref("x"), program.Ref("m"), program.Ref("h")
	p := &program.Program{
		Name: "test_sample", Seed: uint64(n),
		Inputs: []program.Input{
			{Name: "x", DType: tensor.F32, Shape: []int{2, 3}, Strides: []int{1, 2}, RequiresGrad: true, Fill: program.Fill{Dist: program.Uniform, Lo: -1, Hi: 1, Key: uint64(n)}},
			{Name: "c", DType: tensor.BF16, Shape: []int{2}, Fill: program.Fill{Dist: program.Literal, Data: tensor.Float64s(tensor.BF16, []int{2}, 1, 2)}},
		},
		Calls: []program.Call{
			{Result: "m", Target: "torch.nn.Linear", Args: []any{int64(3), int64(2)}},
			{Result: "h", Target: "Module.__call__", Args: []any{m, x}},
			{Result: "f", Target: "torch.flatten", Args: []any{x}},
			{Result: "v", Target: "torch.max", Args: []any{h, int64(0)}},
			{Result: "s", Target: "Tensor.item", Args: []any{h}},
		},
		Backward: []program.Backward{{Value: "h"}},
	}
	input := p.Inputs[0].Materialize()
	weight := tensor.Float64s(tensor.F32, []int{2, 3}, 1, 2, 3, 4, 5, float64(n))
	state := map[string]backend.State{"m": {{Name: "weight", Tensor: weight}, {Name: "bias", Tensor: nil}}}
	out := tensor.Float64s(tensor.F32, []int{2, 2}, math.NaN(), math.Inf(-1), 3, math.Copysign(0, -1))
	return Case{p, &backend.Outcome{
		Status: backend.OK,
		Values: []backend.Value{
			{Module: true},
			{Tensor: out.Transpose(0, 1), RequiresGrad: true},
			{Tensor: input.Reshape(6), RequiresGrad: true},
			{IsTuple: true, Tuple: []backend.Value{{Tensor: out}, {Tensor: tensor.Of(tensor.I64, []int{0}, []int64{})}, {IsTuple: true, Tuple: []backend.Value{}},
				{Tensor: tensor.New(tensor.F32, 2)}, {Tensor: tensor.New(tensor.I32, 2)}}},
			plainOf(n),
		},
		Initial: state,
		Slots: []backend.Slot{
			{Place: backend.Place{Part: backend.PartState, Owner: "m", Name: "weight"}, Tensor: weight},
			{Place: backend.Place{Part: backend.PartState, Owner: "m", Name: "bias"}, Tensor: nil},
			{Place: backend.Place{Part: backend.PartGrad, Owner: "c"}, Tensor: nil},
			{Place: backend.Place{Part: backend.PartGrad, Owner: "x"}, Tensor: tensor.Float64s(tensor.F32, []int{2, 3}, 1, 1, 1, 1, 1, 1)},
			{Place: backend.Place{Part: backend.PartParamGrad, Owner: "m", Name: "weight"}, Tensor: weight.Clone()},
			{Place: backend.Place{Part: backend.PartStep, Owner: "m", Name: "weight"}, Tensor: tensor.Float64s(tensor.F32, []int{2, 3}, 1, 2, 3, 4, 5, 6.5)},
		},
	}, "suites/sample.py::test_sample"}
}

func plainOf(n int) backend.Value {
	plains := []any{nil, true, int64(math.MinInt64), math.Inf(1), 0.1, complex(math.Copysign(0, -1), 1.5), "text \"<>\" é"}
	return backend.Value{Plain: plains[n%len(plains)]}
}

func rejection() Case {
	c := sample(1000)
	c.Outcome = &backend.Outcome{Status: backend.Raised, Class: "RuntimeError", Message: "bad\nshape", Call: 1, Values: c.Outcome.Values[:1]}
	return c
}

func samples() []Case {
	var cases []Case
	for n := range 8 {
		cases = append(cases, sample(n))
	}
	return append(cases, rejection())
}

func write(t testing.TB, cases []Case) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, info, cases); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// sameTensors compares tensors by dtype, shape, strides and bits.
var sameTensors = cmp.Comparer(func(a, b *tensor.Tensor) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.SameBits(b) && cmp.Equal(a.Strides(), b.Strides())
})

func TestRoundTrip(t *testing.T) {
	raw := write(t, samples())
	b, err := Read(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(info, b.Reference()); diff != "" {
		t.Errorf("reference: -want +got\n%s", diff)
	}
	if got := b.Info(); got.Name != "recorded" || got.Version != "torch 1.13.1" {
		t.Errorf("info: %+v", got)
	}
	if len(b.Cases()) != len(samples()) {
		t.Fatalf("%d cases, want %d", len(b.Cases()), len(samples()))
	}
	for i, want := range samples() {
		got := b.Cases()[i]
		if got.Test != want.Test || got.Program.String() != want.Program.String() {
			t.Errorf("case %d: test %q, program\n%s", i, got.Test, got.Program)
		}
		o, err := b.Run(context.Background(), &backend.Job{Program: want.Program})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want.Outcome, o, sameTensors); diff != "" {
			t.Errorf("case %d: -want +got\n%s", i, diff)
		}
	}
	var again bytes.Buffer
	if err := Write(&again, b.Reference(), b.Cases()); err != nil || !bytes.Equal(again.Bytes(), raw) {
		t.Errorf("written again the file has other bytes (%v)", err)
	}
}

func TestRun(t *testing.T) {
	b, err := Read(bytes.NewReader(write(t, samples())))
	if err != nil {
		t.Fatal(err)
	}
	jobs := []*backend.Job{{Program: sample(3).Program}, {Program: sample(77).Program}}
	outcomes, err := b.RunBatch(context.Background(), jobs)
	if err != nil || outcomes[0].Status != backend.OK || outcomes[1].Status != backend.Unsupported || !strings.Contains(outcomes[1].Message, "not among the 9 recorded") {
		t.Errorf("%v, %+v", err, outcomes[1])
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := b.RunBatch(ctx, jobs); err != context.Canceled {
		t.Errorf("cancelled: %v", err)
	}
}

// TestStoresOnce counts the tensors in the file: equal bits once, and none
// that an input has.
func TestStoresOnce(t *testing.T) {
	tensors, _, err := encode(info, samples())
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, e := range tensors {
		if seen[bits(e.Tensor)] {
			t.Errorf("%s is stored twice", e.Tensor)
		}
		seen[bits(e.Tensor)] = true
		for n := range 8 {
			if x := sample(n).Program.Inputs[0].Materialize(); bits(x) == bits(e.Tensor) {
				t.Errorf("input x of case %d is stored", n)
			}
		}
	}
	// per case a weight; for all the output twice (it is transposed), the gradient,
	// the stepped weight, the empty tensor and the zeros of two dtypes
	if want := 8 + 7; len(tensors) != want {
		t.Errorf("%d tensors are stored, want %d", len(tensors), want)
	}
}

func TestSameProgramTwice(t *testing.T) {
	b, err := Read(bytes.NewReader(write(t, []Case{sample(1), sample(2), sample(1)})))
	if err != nil || len(b.Cases()) != 2 {
		t.Errorf("%d cases, want 2 (%v)", len(b.Cases()), err)
	}
}

func TestUnknownValue(t *testing.T) {
	c := sample(0)
	c.Outcome.Values[4].Plain = []int{1}
	err := Write(&bytes.Buffer{}, info, []Case{c})
	if err == nil || !strings.Contains(err.Error(), "case 0 (suites/sample.py::test_sample): value 4: a []int cannot be recorded") {
		t.Errorf("error %v", err)
	}
}

// TestDamage cuts the file and flips a bit of it, everywhere.
func TestDamage(t *testing.T) {
	raw := write(t, samples()[:2])
	for n := range raw {
		if _, err := Read(bytes.NewReader(raw[:n])); err == nil || !strings.Contains(err.Error(), "truncated or corrupt") {
			t.Fatalf("the first %d of %d bytes: %v", n, len(raw), err)
		}
		bad := bytes.Clone(raw)
		bad[n] ^= 1 << (n % 8)
		if b, err := Read(bytes.NewReader(bad)); err == nil && !bytes.Equal(write(t, b.Cases()), raw) {
			t.Fatalf("bit %d of byte %d is flipped, and read without an error", n%8, n)
		}
	}
	if _, err := Read(bytes.NewReader(append(bytes.Clone(raw), raw...))); err == nil {
		t.Error("two baselines in one file were accepted")
	}
}

// compress makes a file around a JSON text.
func compress(t *testing.T, metadata map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	z, err := zstd.NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	stored := []safetensors.Entry{{Name: "a", Tensor: tensor.New(tensor.F32, 2, 3)}}
	if err := safetensors.Write(z, stored, metadata); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestBadFiles states the error of files whose checksums are right.
func TestBadFiles(t *testing.T) {
	text := sample(1).Program.String()
	withValues := func(values string) string {
		q, _ := json.Marshal(text)
		return fmt.Sprintf(`{"version":1,"cases":[{"test":"t","id":%q,"program":%s,"outcome":{"status":"ok","values":[%s]}}]}`, sample(1).Program.ID(), q, values)
	}
	tests := []struct{ name, json, want string }{
		{"not JSON", `{`, "unexpected end"},
		{"no version", `{}`, "version 0"},
		{"newer version", `{"version":2,"cases":"changed"}`, "version 2 of the format; this Plumb reads up to 1"},
		{"no program", `{"version":1,"cases":[{"test":"t","id":"x","program":"y = ?"}]}`, "case 0 (t): baseline:1"},
		{"other identity", `{"version":1,"cases":[{"test":"t","id":"x","program":""}]}`, `recorded was "x"`},
		{"too many values", withValues(`{},{},{},{},{},{}`), "6 values for 5 calls"},
		{"empty value", withValues(`{}`), "value 0: it has no content"},
		{"missing tensor", withValues(`{"t":{"s":"b"}}`), `no tensor "b"`},
		{"missing input", withValues(`{"t":{"i":"y"}}`), `no input "y"`},
		{"wrong shape", withValues(`{"t":{"s":"a","shape":[5]}}`), "cannot have the shape [5]"},
		{"negative shape", withValues(`{"t":{"s":"a","shape":[-2,-3]}}`), "negative dimension"},
		{"huge strides", withValues(`{"t":{"s":"a","strides":[1099511627776,1]}}`), "cannot have the strides"},
		{"negative strides", withValues(`{"t":{"s":"a","strides":[-3,1]}}`), "cannot have the strides"},
		{"too few strides", withValues(`{"t":{"s":"a","strides":[1]}}`), "cannot have the strides"},
		{"bad float", withValues(`{"plain":{"float":"one"}}`), `value 0: strconv.ParseFloat: parsing "one"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := Read(bytes.NewReader(compress(t, map[string]string{metadataKey: tt.json}))); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}
	if _, err := Read(bytes.NewReader(compress(t, nil))); err == nil || !strings.Contains(err.Error(), "is no baseline") {
		t.Errorf("a file without cases: %v", err)
	}
	if _, err := Read(strings.NewReader("PK\x03\x04 is a zip file")); err == nil || !strings.Contains(err.Error(), "truncated or corrupt") {
		t.Errorf("another kind of file: %v", err)
	}
	if _, err := Read(bytes.NewReader(compress(t, map[string]string{metadataKey: withValues(`{"t":{"s":"a","shape":[3,2],"strides":[1,3]}}`)}))); err != nil {
		t.Errorf("a good file: %v", err)
	}
}

// TestSize writes 500 cases with the amount of data of typical tests: random
// float32 mantissas, which no compression shortens.
func TestSize(t *testing.T) {
	var cases []Case
	payload := 0
	for n := range 500 {
		c := sample(n)
		for _, shape := range [][]int{{2, 4, 5, 5}, {2, 4, 5, 5}, {3, 2, 3, 3}} {
			in := program.Input{DType: tensor.F32, Shape: shape, Fill: program.Fill{Dist: program.Uniform, Lo: -1, Hi: 1, Key: choice.Derive(uint64(n), uint64(payload))}}
			v := in.Materialize()
			payload += len(v.Bytes())
			c.Program.Calls = append(c.Program.Calls, program.Call{Result: fmt.Sprintf("y%d", len(c.Program.Calls)), Target: "torch.nn.functional.conv2d", Args: []any{program.Ref("x"), program.Ref("h"), nil, int64(2)}})
			c.Outcome.Values = append(c.Outcome.Values, backend.Value{Tensor: v, RequiresGrad: true})
		}
		cases = append(cases, c)
	}
	size := len(write(t, cases))
	t.Logf("%d cases with %d bytes of tensors take %d bytes, %d per case beside them", len(cases), payload, size, (size-payload)/len(cases))
	if size > payload*21/20 {
		t.Errorf("%d bytes for %d bytes of tensors", size, payload)
	}
}

// FuzzRead looks for panics over whole files.
func FuzzRead(f *testing.F) {
	f.Add(write(f, samples()[:1]))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if b, err := Read(bytes.NewReader(raw)); err == nil {
			write(t, b.Cases())
		}
	})
}

// FuzzDecode looks for panics, and for cases that cannot be written again,
// behind the checksums.
func FuzzDecode(f *testing.F) {
	tensors, _, err := encode(info, samples())
	if err != nil {
		f.Fatal(err)
	}
	file := &safetensors.File{Tensors: tensors}
	for i := range samples() {
		_, one, err := encode(info, samples()[i:i+1])
		if err != nil {
			f.Fatal(err)
		}
		f.Add(one)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		b, err := decode(text, file)
		if err != nil {
			return
		}
		stored, text, err := encode(info, b.Cases())
		if err != nil {
			t.Fatalf("cannot write what was read: %v", err)
		}
		again, err := decode(text, &safetensors.File{Tensors: stored})
		if err != nil {
			t.Fatalf("cannot read what was written: %v", err)
		}
		for i, c := range again.Cases() {
			if diff := cmp.Diff(b.Cases()[b.byID[c.Program.ID()]].Outcome.Values, c.Outcome.Values, sameTensors); diff != "" {
				t.Fatalf("case %d: -before +after\n%s", i, diff)
			}
		}
	})
}
