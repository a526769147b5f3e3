package recorded

import (
	"encoding/json"
	"fmt"

	"plumb/internal/safetensors"
	"plumb/program"
	"plumb/tensor"
)

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
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if id := p.ID(); id != c.ID {
		return nil, fmt.Errorf("the program's identity is %s, recorded was %q", id, c.ID)
	}
	d := &decoder{tensors: tensors, program: p, inputs: map[string]*tensor.Tensor{}}
	o, err := c.Outcome.Outcome(len(p.Calls), d.tensor)
	return &Case{p, o, c.Test}, err
}

// decoder builds the outcome of one case.
type decoder struct {
	tensors map[string]*tensor.Tensor
	program *program.Program
	inputs  map[string]*tensor.Tensor // made so far
}

func (d *decoder) tensor(j *TensorRef) (*tensor.Tensor, error) {
	t, err := d.elements(j)
	if err != nil {
		return nil, err
	}
	return j.Arrange(t)
}

func (d *decoder) elements(j *TensorRef) (*tensor.Tensor, error) {
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
