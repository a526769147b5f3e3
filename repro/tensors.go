package repro

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"plumb/backend"
	"plumb/program"
	"plumb/safetensors"
	"plumb/tensor"
)

// limitKey names the element-wise part of the limit in expected.safetensors.
const limitKey = "__limit__"

// inputTensors returns what a program starts from: its inputs, the initial
// state of its modules, and the cotangents of what is differentiated.
func inputTensors(f *Finding) []safetensors.Entry {
	var out []safetensors.Entry
	for i, t := range f.Job.Inputs {
		out = append(out, safetensors.Entry{Name: f.Program.Inputs[i].Name, Tensor: t})
	}
	for _, module := range slices.Sorted(maps.Keys(f.Job.State)) {
		out = append(out, stateTensors(module, f.Job.State[module], "")...)
	}
	for i := range f.Program.Backward {
		if t := cotangentOf(f, i); t != nil {
			out = append(out, safetensors.Entry{Name: cotangentKey(f.Program, i), Tensor: t})
		}
	}
	return out
}

func cotangentKey(p *program.Program, i int) string {
	return fmt.Sprintf("%s.cotangent.%d", p.Backward[i].Value, i)
}

func stateTensors(module string, s backend.State, suffix string) []safetensors.Entry {
	var out []safetensors.Entry
	for _, n := range s {
		if n.Tensor != nil {
			out = append(out, safetensors.Entry{Name: module + "." + n.Name + suffix, Tensor: n.Tensor})
		}
	}
	return out
}

// cotangentOf returns the cotangent of an entry of Backward in the shape and
// dtype of its value; nil where no side came so far.
func cotangentOf(f *Finding, i int) *tensor.Tensor {
	w := &f.Program.Backward[i]
	for _, o := range []*backend.Outcome{f.Expected, f.Got} {
		if v := valueOf(f.Program, o, string(w.Value)); v != nil {
			return cotangent(&w.Cotangent, v)
		}
	}
	return nil
}

// valueOf returns the tensor that a name stands for; nil when it is none.
func valueOf(p *program.Program, o *backend.Outcome, name string) *tensor.Tensor {
	for i := range p.Inputs {
		if p.Inputs[i].Name == name {
			return p.Inputs[i].Materialize()
		}
	}
	for i := range o.Values {
		if i < len(p.Calls) && p.Calls[i].Result == name {
			return o.Values[i].Tensor
		}
	}
	return nil
}

// cotangent returns the start of the fill's stream in the shape and dtype of v.
func cotangent(f *program.Fill, v *tensor.Tensor) *tensor.Tensor {
	t := tensor.New(v.DType(), v.Shape()...)
	if n := t.Len(); !v.DType().IsComplex() || f.Dist == "" {
		for i, c := range f.Cotangent(n) {
			t.Set(i, complex(c, 0))
		}
	} else {
		s := f.Cotangent(2 * n)
		for i := range n {
			t.Set(i, complex(s[2*i], s[2*i+1]))
		}
	}
	return t
}

// outcomeTensors returns what a side gave.
func outcomeTensors(p *program.Program, o *backend.Outcome) []safetensors.Entry {
	var out []safetensors.Entry
	for i := range o.Values {
		if i < len(p.Calls) {
			out = valueTensors(out, p.Calls[i].Result, &o.Values[i])
		}
	}
	for i := range p.Calls {
		name := p.Calls[i].Result
		out = append(out, stateTensors(name, o.Final[name], "")...)
		out = append(out, stateTensors(name, o.ParamGrads[name], ".grad")...)
	}
	for i := range p.Inputs {
		if t := o.Grads[p.Inputs[i].Name]; t != nil {
			out = append(out, safetensors.Entry{Name: p.Inputs[i].Name + ".grad", Tensor: t})
		}
	}
	return out
}

func valueTensors(out []safetensors.Entry, name string, v *backend.Value) []safetensors.Entry {
	if v.IsTuple {
		for i := range v.Tuple {
			out = valueTensors(out, fmt.Sprintf("%s.%d", name, i), &v.Tuple[i])
		}
		return out
	}
	if t := foundIn(v).number; t != nil {
		out = append(out, safetensors.Entry{Name: name, Tensor: t})
	}
	return out
}

// encode returns the file of tensors.
func encode(entries []safetensors.Entry) ([]byte, error) {
	size := 0
	for _, e := range entries {
		size += e.Tensor.Len() * e.Tensor.DType().Size()
	}
	if size > maxTensors {
		return nil, fmt.Errorf("the finding's tensors take %d bytes, a bundle holds %d in a file", size, maxTensors)
	}
	var b bytes.Buffer
	err := safetensors.Write(&b, entries, nil)
	return b.Bytes(), err
}
