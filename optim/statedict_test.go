package optim_test

import (
	"encoding/json"
	"math"
	"slices"
	"testing"

	"plumb/op"
	"plumb/optim"
	"plumb/tensor"
)

// stateCases are one case of each optimizer, with every state that it has.
func stateCases() []trainCase {
	var cs []trainCase
	for _, v := range []struct {
		optimizer string
		options   []op.Kwarg
	}{
		{"SGD", nil},
		{"SGD", kw("momentum", 0.9)},
		{"Adam", kw("amsgrad", true)},
		{"AdamW", nil},
		{"RAdam", nil},
		{"RMSprop", kw("momentum", 0.7, "centered", true, "eps", 1e-2)},
		{"Adagrad", kw("lr_decay", 0.1)},
		{"Adadelta", nil},
	} {
		name := v.optimizer
		if len(v.options) > 0 {
			name += " " + v.options[0].Name
		}
		options := append(slices.Clone(v.options), op.Kw("lr", 0.02))
		cs = append(cs, trainCase{name: name, optimizer: v.optimizer, dtype: tensor.F32, options: options, second: kw("lr", 0.01), steps: before + after})
	}
	return cs
}

const before, after = 6, 5

func pack(t *testing.T, d *optim.StateDict) *packedState {
	t.Helper()
	type group = struct {
		Options map[string]any `json:"options"`
		Params  []int          `json:"params"`
	}
	out := &packedState{State: map[int]map[string]json.RawMessage{}}
	for _, g := range d.Groups {
		out.Groups = append(out.Groups, group{g.Options, g.Params})
	}
	for i, st := range d.State {
		out.State[i] = map[string]json.RawMessage{}
		for name, v := range st {
			if x, ok := v.(*tensor.Tensor); ok {
				v = packed{x.DType().String(), append([]int{}, x.Shape()...), values(x)}
			}
			text, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			out.State[i][name] = text
		}
	}
	return out
}

func unpack(t *testing.T, p *packedState) *optim.StateDict {
	t.Helper()
	d := &optim.StateDict{State: map[int]optim.State{}}
	for _, g := range p.Groups {
		if list, ok := g.Options["betas"].([]any); ok {
			g.Options["betas"] = []float64{list[0].(float64), list[1].(float64)}
		}
		d.Groups = append(d.Groups, optim.GroupState{Options: g.Options, Params: g.Params})
	}
	for i, st := range p.State {
		d.State[i] = optim.State{}
		for name, text := range st {
			d.State[i][name] = entry(t, text)
		}
	}
	return d
}

// entry is a tensor, an integer or None.
func entry(t *testing.T, text json.RawMessage) any {
	t.Helper()
	var n *int64
	if err := json.Unmarshal(text, &n); err == nil {
		if n == nil {
			return nil
		}
		return *n
	}
	var p packed
	if err := json.Unmarshal(text, &p); err != nil {
		t.Fatal(err)
	}
	d := tensor.F32
	if p.DType == "float64" {
		d = tensor.F64
	}
	return fromValues(d, p.Shape, p.Data)
}

func (tr *trainer) load(t *testing.T, params []float64, state *packedState) {
	t.Helper()
	for i, p := range tr.params {
		n := tensor.NumElements(shapes[i])
		tensorOf(p.Value).CopyFrom(fromValues(tr.dtype, shapes[i], params[:n]))
		params = params[n:]
	}
	if err := tr.opt.LoadStateDict(unpack(t, state)); err != nil {
		t.Fatal(err)
	}
}

func TestStateDictsRoundTripWithPyTorch(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	short, long := request{Train: map[string]trainRequest{}}, request{Train: map[string]trainRequest{}}
	native := map[string][][]float64{}
	for _, c := range stateCases() {
		r := c.request()
		long.Train[c.name] = r
		r.Steps = before
		short.Train[c.name] = r

		tr := newTrainer(t, &c, c.dtype)
		tr.steps = before
		reached := tr.train(t)[before-1]
		r.State, r.Params, r.Steps = pack(t, tr.opt.StateDict()), split(reached), after
		long.Train[c.name+" continued"] = r
		tr.steps = after
		native[c.name] = tr.train(t)
	}
	first := ask(t, short)
	whole := ask(t, long)
	for _, c := range stateCases() {
		t.Run(c.name, func(t *testing.T) {
			limit := c.limits(t)
			compare := func(who string, got, want [][]float64) {
				for i := range want {
					for j, v := range want[i] {
						if d := math.Abs(got[i][j] - v); !(d <= limit[before+i][j]) {
							t.Fatalf("%s, step %d, element %d: %v, want %v ± %.3g", who, i+1, j, got[i][j], v, limit[before+i][j])
						}
					}
				}
			}
			compare("PyTorch after Plumb", whole.Train[c.name+" continued"].Steps, native[c.name])

			ref := first.Train[c.name]
			tr := newTrainer(t, &c, c.dtype)
			tr.load(t, ref.Steps[before-1], ref.State)
			sameLayout(t, pack(t, tr.opt.StateDict()), ref.State)
			tr.steps = after
			compare("Plumb after PyTorch", tr.train(t), whole.Train[c.name].Steps[before:])
		})
	}
}

func split(flat []float64) [][]float64 {
	var out [][]float64
	for _, s := range shapes {
		n := tensor.NumElements(s)
		out, flat = append(out, flat[:n]), flat[n:]
	}
	return out
}

// sameLayout checks that both have the same entries of the same values.
func sameLayout(t *testing.T, got, want *packedState) {
	t.Helper()
	normal := func(p *packedState) string {
		text, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		var v any
		if err := json.Unmarshal(text, &v); err != nil {
			t.Fatal(err)
		}
		text, err = json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if g, w := normal(got), normal(want); g != w {
		t.Errorf("state dict\n%s\nPyTorch has\n%s", g, w)
	}
}

func TestLoadStateDictRejects(t *testing.T) {
	c := stateCases()[2]
	o := newTrainer(t, &c, tensor.F32).opt
	good := o.StateDict()
	for _, change := range []func(d *optim.StateDict){
		func(d *optim.StateDict) { d.Groups = d.Groups[:1] },
		func(d *optim.StateDict) { d.Groups[0].Params = []int{0} },
		func(d *optim.StateDict) { d.Groups[0].Options = map[string]any{"lr": "fast"} },
	} {
		d := &optim.StateDict{State: good.State, Groups: slices.Clone(good.Groups)}
		change(d)
		if err := o.LoadStateDict(d); err == nil {
			t.Error("no error")
		}
	}
}
