package nn_test

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"plumb/backend/worker"
	"plumb/internal/safetensors"
	"plumb/nn"
	"plumb/op"
	"plumb/tensor"
)

//go:embed testdata/modules.py
var script string

// python runs testdata/modules.py on a request; without PyTorch the test is skipped.
func python(t *testing.T, request, reply any) {
	t.Helper()
	path, _, err := worker.FindPython("")
	if err != nil {
		t.Skip("needs a Python with torch: ", strings.SplitN(err.Error(), "\n", 2)[0])
	}
	in, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "-c", script)
	cmd.Stdin = bytes.NewReader(in)
	var fail bytes.Buffer
	cmd.Stderr = &fail
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, fail.String())
	}
	if reply == nil {
		return
	}
	if err := json.Unmarshal(out, reply); err != nil {
		t.Fatal(err)
	}
}

// A construction is a call of a module's constructor.
type construction struct {
	Target string         `json:"target"`
	Args   []any          `json:"args"`
	Kwargs map[string]any `json:"kwargs"`
}

// constructions are calls of every module of the table: with the parameters
// that it requires, and with one more at a time.
func constructions() []construction {
	var cs []construction
	for _, d := range nn.Modules().Defs() {
		if ofModules(d) {
			continue
		}
		for _, name := range d.Names {
			for _, s := range d.Sigs() {
				cs = append(cs, calls(name, s)...)
			}
		}
	}
	return cs
}

// ofModules reports whether a module is made from others.
func ofModules(d *nn.Def) bool {
	first := d.Sigs()[0].Params
	return d.Container || len(first) > 0 && first[0].Type.Kind == op.KData
}

func calls(target string, s *op.Sig) []construction {
	base := construction{Target: target, Args: []any{}, Kwargs: map[string]any{}}
	for _, p := range s.Params {
		if !p.HasDefault {
			v := required(p)
			if v == nil {
				return nil
			}
			base.Args = append(base.Args, v)
		}
		if n, ok := p.Default.(int); ok && n > 64 { // the size of a layer
			base.Kwargs[p.Name] = 8
		}
	}
	cs := []construction{base}
	for _, p := range s.Params {
		for _, v := range others(p) {
			kwargs := maps.Clone(base.Kwargs)
			kwargs[p.Name] = v
			cs = append(cs, construction{target, base.Args, kwargs})
		}
	}
	return cs
}

// required is a value for a required parameter; nil where there is none to guess.
func required(p op.Param) any {
	switch {
	case p.Type.Kind == op.KInt && p.Type.List && p.Type.N == 0:
		return []int{4, 3}
	case p.Type.Kind == op.KInt:
		return 4
	case p.Type.Kind == op.KFloat || p.Type.Kind == op.KScalar:
		return 0.5
	}
	return nil
}

// others are values of an optional parameter that are not its default.
func others(p op.Param) []any {
	if !p.HasDefault || p.Type.List {
		return nil
	}
	switch p.Type.Kind {
	case op.KBool:
		if p.Type.Optional {
			return []any{true, false}
		}
		return []any{p.Default != true}
	case op.KInt:
		return []any{2, 0}
	case op.KDType:
		return []any{"float64"}
	}
	return nil
}

func (c construction) kwargs() []op.Kwarg {
	var kws []op.Kwarg
	for name, v := range c.Kwargs {
		if name == "dtype" {
			v = tensor.F64
		}
		kws = append(kws, op.Kw(name, v))
	}
	return kws
}

// describe lists the state as modules.py does, or says which class of error
// the constructor ends with.
func (c construction) describe() (state []string, class string, err error) {
	m, err := nn.Modules().Lookup(c.Target).New(c.Args, c.kwargs())
	var e *op.Error
	if errors.As(err, &e) {
		return nil, e.Class, nil
	}
	if err != nil {
		return nil, "", err
	}
	for _, s := range m.State() {
		state = append(state, fmt.Sprintf("%s %s %s%s", s.Name, s.Kind, s.DType, tensor.ShapeString(s.Shape)))
	}
	return state, "", nil
}

func TestEveryModuleHasTheStateOfPyTorch(t *testing.T) {
	cs := constructions()
	var want []struct {
		State []string `json:"state"`
		Error string   `json:"error"`
	}
	python(t, map[string]any{"cases": cs}, &want)
	seen, absent, states := map[string]bool{}, map[string]bool{}, 0
	for i, c := range cs {
		got, class, err := c.describe()
		switch {
		case errors.Is(err, nn.ErrUnsupported):
		case err != nil:
			t.Errorf("%s%v%v: %v", c.Target, c.Args, c.Kwargs, err)
		case want[i].Error == "absent":
			absent[c.Target] = true
		case class != want[i].Error || !slices.Equal(got, want[i].State):
			t.Errorf("%s%v%v has %s%s, PyTorch %s%s", c.Target, c.Args, c.Kwargs, class, got, want[i].Error, want[i].State)
		default:
			seen[c.Target] = true
			states += len(got)
		}
	}
	t.Logf("%d constructions of %d modules, %d entries; this PyTorch lacks %d", len(cs), len(seen), states, len(absent))
	for _, name := range nn.Modules().Names() {
		if d := nn.Modules().Lookup(name); !seen[name] && !absent[name] && !ofModules(d) {
			t.Errorf("%s was never compared", name)
		}
	}
}

// model is the network of modules.py.
func model(t *testing.T) *nn.Module {
	t.Helper()
	return build(t, "Sequential", []any{
		build(t, "Conv2d", []any{2, 4, 3}, op.Kw("padding", 1)), build(t, "BatchNorm2d", []any{4}), build(t, "ReLU", nil), build(t, "Flatten", nil),
		build(t, "Linear", []any{100, 6}), build(t, "LayerNorm", []any{6}), build(t, "Linear", []any{6, 3}, op.Kw("bias", false)),
	})
}

func readFile(t *testing.T, path string) *safetensors.File {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	file, err := safetensors.Read(f, safetensors.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// near says that a is within 256 roundings of the largest element: a result
// is a sum of 100 products of sums of 18.
func near(a, b *tensor.Tensor) bool {
	scale, off := 0.0, 0.0
	for i := range b.Len() {
		scale, off = max(scale, math.Abs(b.Float(i))), max(off, math.Abs(a.Float(i)-b.Float(i)))
	}
	return slices.Equal(a.Shape(), b.Shape()) && a.DType() == b.DType() && off <= 256*0x1p-24*scale
}

func forward(t *testing.T, m *nn.Module, x *tensor.Tensor) *tensor.Tensor {
	t.Helper()
	out, err := m.Call(builder, []any{x}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return out[0].(*tensor.Tensor)
}

func TestStateTravelsToPyTorchAndBack(t *testing.T) {
	there, here, again := filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b"), filepath.Join(t.TempDir(), "c")
	python(t, map[string]any{"out": there}, nil)
	file := readFile(t, there)
	x := file.Tensor("x")
	var entries []nn.Entry
	for _, e := range file.Tensors {
		if e.Name != "x" && !strings.HasPrefix(e.Name, "result.") {
			entries = append(entries, nn.Entry{Name: e.Name, Value: e.Tensor})
		}
	}
	m := model(t)
	if err := m.LoadStateDict(entries, true); err != nil {
		t.Fatal(err)
	}
	for _, mode := range []string{"train", "eval"} {
		m.Train(mode == "train")
		if got, want := forward(t, m, x), file.Tensor("result."+mode); !near(got, want) {
			t.Errorf("%s: results differ from PyTorch's", mode)
		}
	}

	out := []safetensors.Entry{{Name: "x", Tensor: x}}
	for _, e := range m.StateDict() {
		out = append(out, safetensors.Entry{Name: e.Name, Tensor: e.Value.(*tensor.Tensor)})
	}
	var text bytes.Buffer
	if err := safetensors.Write(&text, out, nil); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(here, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	python(t, map[string]any{"in": here, "out": again}, nil)
	back := readFile(t, again)
	if !near(forward(t, m, x), back.Tensor("y")) {
		t.Error("PyTorch's results with our state differ from ours")
	}
	for _, e := range m.StateDict() {
		if b := back.Tensor(e.Name); b == nil || !b.SameBits(e.Value.(*tensor.Tensor)) {
			t.Errorf("%s came back as %v", e.Name, b)
		}
	}
}

func TestLoadStateDictListsWhatDoesNotFit(t *testing.T) {
	m := build(t, "Linear", []any{3, 2})
	entries := []nn.Entry{{Name: "weight", Value: tensor.New(tensor.F32, 3, 2)}, {Name: "scale", Value: tensor.New(tensor.F32, 2)}}
	err := m.LoadStateDict(entries, true)
	var e *op.Error
	if !errors.As(err, &e) || e.Class != "RuntimeError" {
		t.Fatalf("error %v, want a RuntimeError", err)
	}
	for _, word := range []string{"missing: bias", "unexpected: scale", "weight is float32[2, 3]"} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("error %q does not say %q", err, word)
		}
	}
	if m.Value("weight") != nil {
		t.Error("the weight was loaded all the same")
	}
	half := []nn.Entry{{Name: "bias", Value: tensor.Float64s(tensor.F64, []int{2}, 1, 2)}, {Name: "scale", Value: tensor.New(tensor.F32)}}
	if err := m.LoadStateDict(half, false); err != nil {
		t.Fatal(err)
	}
	if b := m.Value("bias"); b.DType() != tensor.F32 || b.(*tensor.Tensor).Float(1) != 2 {
		t.Errorf("bias %v", b)
	}
}

func TestContainersNameTheirModules(t *testing.T) {
	linear := func() *nn.Module { return build(t, "Linear", []any{1, 1}, op.Kw("bias", false)) }
	list := build(t, "ModuleList", []any{[]any{linear(), linear()}})
	dict := build(t, "ModuleDict", []any{nn.Named{Name: "head", Module: linear()}, nn.Named{Name: "rest", Module: list}})
	if got, want := describe(dict), "head.weight float32[1, 1]; rest.0.weight float32[1, 1]; rest.1.weight float32[1, 1]"; got != want {
		t.Errorf("state %q, want %q", got, want)
	}
	if err := dict.Load("rest.1.weight", tensor.Float64s(tensor.F32, []int{1, 1}, 5)); err != nil {
		t.Fatal(err)
	}
	if v := list.Child("1").Value("weight"); v == nil || dict.Child("rest") != list || dict.Child("tail") != nil {
		t.Errorf("weight %v", v)
	}
	var e *op.Error
	if _, err := dict.Call(builder, []any{tensor.New(tensor.F32, 1)}, nil); !errors.As(err, &e) || e.Class != "NotImplementedError" {
		t.Errorf("call: error %v, want a NotImplementedError", err)
	}
	for _, name := range []string{"", "a.b"} {
		_, err := nn.Modules().Lookup("torch.nn.ModuleDict").New([]any{nn.Named{Name: name, Module: linear()}}, nil)
		if !errors.As(err, &e) || e.Class != "KeyError" {
			t.Errorf("name %q: error %v, want a KeyError", name, err)
		}
	}
}
