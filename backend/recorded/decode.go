package recorded

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"

	"plumb/backend"
	"plumb/program"
	"plumb/safetensors"
	"plumb/tensor"
)

// sorted iterates over a map in the order of its keys.
func sorted[V any](m map[string]V) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			if !yield(k, m[k]) {
				return
			}
		}
	}
}

func decode(text []byte, file *safetensors.File) (*Baseline, error) {
	var v struct{ Version int }
	if err := json.Unmarshal(text, &v); err != nil {
		return nil, err
	}
	if v.Version < 1 || v.Version > Version {
		return nil, fmt.Errorf("the file has version %d of the format; this Plumb reads up to %d", v.Version, Version)
	}
	var f fileJSON
	if err := json.Unmarshal(text, &f); err != nil {
		return nil, err
	}
	tensors := map[string]*tensor.Tensor{}
	for _, e := range file.Tensors {
		tensors[e.Name] = e.Tensor
	}
	b := &Baseline{reference: f.Info, byID: map[string]int{}}
	for i := range f.Cases {
		c, err := decodeCase(&f.Cases[i], tensors)
		if err != nil {
			return nil, fmt.Errorf("case %d (%s): %w", i, f.Cases[i].Test, err)
		}
		b.byID[f.Cases[i].ID] = i
		b.cases = append(b.cases, *c)
	}
	return b, nil
}

func decodeCase(c *caseJSON, tensors map[string]*tensor.Tensor) (*Case, error) {
	p, err := program.Parse("baseline", c.Program)
	if err != nil {
		return nil, err
	}
	if err := p.Check(); err != nil {
		return nil, err
	}
	if id := p.ID(); id != c.ID {
		return nil, fmt.Errorf("the program's identity is %s, recorded was %q", id, c.ID)
	}
	if n := len(c.Outcome.Values); n > len(p.Calls) {
		return nil, fmt.Errorf("%d values for %d calls", n, len(p.Calls))
	}
	d := &decoder{tensors: tensors, program: p, inputs: map[string]*tensor.Tensor{}}
	o, err := d.outcome(&c.Outcome)
	return &Case{p, o, c.Test}, err
}

// decoder builds the outcome of one case.
type decoder struct {
	tensors map[string]*tensor.Tensor
	program *program.Program
	inputs  map[string]*tensor.Tensor // made so far
}

func (d *decoder) outcome(j *outcomeJSON) (*backend.Outcome, error) {
	o := &backend.Outcome{Status: j.Status, Class: j.Class, Message: j.Message, Call: j.Call}
	var errs [9]error
	o.Values, errs[0] = d.values(j.Values)
	o.Initial, errs[1] = d.states(j.Initial)
	o.Final, errs[2] = d.states(j.Final)
	o.ParamGrads, errs[3] = d.states(j.ParamGrads)
	o.Grads, errs[4] = d.grads(j.Grads)
	o.SecondGrads, errs[5] = d.grads(j.SecondGrads)
	o.SecondParamGrads, errs[6] = d.states(j.SecondParamGrads)
	o.Changes, errs[7] = d.changes(j.Changes)
	o.Stepped, errs[8] = d.states(j.Stepped)
	return o, errors.Join(errs[:]...)
}

func (d *decoder) values(js []valueJSON) ([]backend.Value, error) {
	out := make([]backend.Value, len(js))
	for i := range js {
		v, err := d.value(&js[i])
		if err != nil {
			return nil, fmt.Errorf("value %d: %w", i, err)
		}
		out[i] = v
	}
	return out, nil
}

func (d *decoder) value(j *valueJSON) (v backend.Value, err error) {
	switch {
	case j.Tensor != nil:
		v.RequiresGrad = j.Grad
		v.Tensor, err = d.tensor(j.Tensor)
	case j.Tuple != nil:
		v.IsTuple = true
		v.Tuple, err = d.values(*j.Tuple)
	case j.Module:
		v.Module = true
	case j.Plain != nil:
		v.Plain, err = j.Plain.value()
	default:
		err = errors.New("it has no content")
	}
	return v, err
}

func (j *plainJSON) value() (any, error) {
	switch {
	case j.Bool != nil:
		return *j.Bool, nil
	case j.Int != nil:
		return *j.Int, nil
	case j.Float != nil:
		return strconv.ParseFloat(*j.Float, 64)
	case j.Complex != nil:
		re, err := strconv.ParseFloat(j.Complex[0], 64)
		im, err2 := strconv.ParseFloat(j.Complex[1], 64)
		return complex(re, im), errors.Join(err, err2)
	case j.Str != nil:
		return *j.Str, nil
	}
	return nil, nil
}

func (d *decoder) changes(js *map[int][]namedJSON) ([][]backend.Named, error) {
	if js == nil {
		return nil, nil
	}
	out := make([][]backend.Named, len(d.program.Calls))
	for i, list := range *js {
		if i < 0 || i >= len(out) {
			return nil, fmt.Errorf("changes of call %d of %d", i, len(out))
		}
		changed, err := d.named(list)
		if err != nil {
			return nil, fmt.Errorf("after call %d: %w", i, err)
		}
		out[i] = changed
	}
	return out, nil
}

func (d *decoder) named(list []namedJSON) (backend.State, error) {
	state := backend.State{}
	for i := range list {
		t, err := d.tensor(list[i].Tensor)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", list[i].Name, err)
		}
		state = append(state, backend.Named{Name: list[i].Name, Tensor: t})
	}
	return state, nil
}

func (d *decoder) states(js map[string][]namedJSON) (map[string]backend.State, error) {
	if js == nil {
		return nil, nil
	}
	out := map[string]backend.State{}
	for module, list := range sorted(js) {
		state, err := d.named(list)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", module, err)
		}
		out[module] = state
	}
	return out, nil
}

func (d *decoder) grads(js map[string]*tensorJSON) (map[string]*tensor.Tensor, error) {
	if js == nil {
		return nil, nil
	}
	out := map[string]*tensor.Tensor{}
	for name, j := range sorted(js) {
		t, err := d.tensor(j)
		if err != nil {
			return nil, fmt.Errorf("gradient of %s: %w", name, err)
		}
		out[name] = t
	}
	return out, nil
}

// tensor returns the tensor that j describes; nil for nil.
func (d *decoder) tensor(j *tensorJSON) (*tensor.Tensor, error) {
	if j == nil {
		return nil, nil
	}
	t, err := d.elements(j)
	if err != nil {
		return nil, err
	}
	if j.Shape != nil {
		if err := tensor.CheckShape(t.DType(), *j.Shape); err != nil {
			return nil, err
		}
		if tensor.NumElements(*j.Shape) != t.Len() {
			return nil, fmt.Errorf("%s cannot have the shape %v", t, *j.Shape)
		}
		t = t.Reshape(*j.Shape...)
	}
	if j.Strides == nil {
		return t, nil
	}
	if !modest(t.Shape(), j.Strides) {
		return nil, fmt.Errorf("%s cannot have the strides %v", t, j.Strides)
	}
	strided := tensor.NewStrided(t.DType(), t.Shape(), j.Strides)
	strided.CopyFrom(t)
	return strided, nil
}

func (d *decoder) elements(j *tensorJSON) (*tensor.Tensor, error) {
	if j.Input == "" {
		if t := d.tensors[j.Stored]; t != nil {
			return t, nil
		}
		return nil, fmt.Errorf("the file has no tensor %q", j.Stored)
	}
	if t := d.inputs[j.Input]; t != nil {
		return t, nil
	}
	for i := range d.program.Inputs {
		if in := &d.program.Inputs[i]; in.Name == j.Input && refersTo(in) {
			d.inputs[j.Input] = in.Materialize().Contiguous()
			return d.inputs[j.Input], nil
		}
	}
	return nil, fmt.Errorf("the case has no input %q to take elements from", j.Input)
}
