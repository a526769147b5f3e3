package bundle

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"plumb/backend"
	"plumb/internal/safetensors"
	"plumb/op"
	"plumb/program"
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
		for _, n := range f.Job.State[module] {
			if n.Tensor != nil {
				out = append(out, safetensors.Entry{Name: module + "." + n.Name, Tensor: n.Tensor})
			}
		}
	}
	for i := range f.Program.Backward {
		if t := cotangentOf(f, i); t != nil {
			out = append(out, safetensors.Entry{Name: cotangentKey(f.Program, i), Tensor: t})
		}
	}
	for i := range f.Program.Inputs {
		if in := &f.Program.Inputs[i]; f.Program.Second.Dist != "" && in.RequiresGrad {
			out = append(out, safetensors.Entry{Name: secondKey(in.Name), Tensor: secondCotangent(f, i)})
		}
	}
	return out
}

func cotangentKey(p *program.Program, i int) string {
	return fmt.Sprintf("%s.cotangent.%d", p.Backward[i].Value, i)
}

// secondCotangent returns the cotangent of the gradient of an input.
func secondCotangent(f *Finding, i int) *tensor.Tensor {
	in := &f.Program.Inputs[i]
	return filled(f.Program.SecondCotangent(i), tensor.New(in.DType, in.Shape...))
}

func secondKey(name string) string { return name + ".grad.cotangent" }

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

// valueOf returns the tensor that a name stands for after the last call that a
// side finished; nil when it is none.
func valueOf(p *program.Program, o *backend.Outcome, name string) *tensor.Tensor {
	v := latest(p, o, name)
	if v == nil {
		return nil
	}
	return v.Tensor
}

// latest returns what a name stands for after the last call that a side
// finished; nil where it came not so far. A call in place returns its receiver,
// whose shape and need of a gradient it may have changed.
func latest(p *program.Program, o *backend.Outcome, name string) *backend.Value {
	now := map[string]*backend.Value{}
	same := map[string]string{} // the first name of what has several
	first := func(name string) string {
		if f, ok := same[name]; ok {
			return f
		}
		return name
	}
	for i := range p.Inputs {
		if in := &p.Inputs[i]; in.Name == name {
			now[name] = &backend.Value{Tensor: in.Materialize(), RequiresGrad: in.RequiresGrad}
		}
	}
	for i := range min(len(o.Values), len(p.Calls)) {
		c := &p.Calls[i]
		if r, ok := firstRef(c); ok && op.InPlace(c.Target) && o.Values[i].Tensor != nil {
			same[c.Result] = first(string(r))
		}
		now[first(c.Result)] = &o.Values[i]
	}
	return now[first(name)]
}

// cotangent returns the start of the fill's stream in the shape and dtype of v.
func cotangent(f *program.Fill, v *tensor.Tensor) *tensor.Tensor {
	n := v.Len()
	if v.DType().IsComplex() && f.Dist != "" {
		n *= 2
	}
	return filled(f.Cotangent(n), tensor.New(v.DType(), v.Shape()...))
}

// filled sets the elements of t, those of a complex one from pairs where there
// are pairs.
func filled(values []float64, t *tensor.Tensor) *tensor.Tensor {
	pairs := len(values) == 2*t.Len()
	for i := range t.Len() {
		if pairs {
			t.Set(i, complex(values[2*i], values[2*i+1]))
		} else {
			t.Set(i, complex(values[i], 0))
		}
	}
	return t
}

// outcomeTensors returns what a side gave, and what it has at the place.
func outcomeTensors(prog *program.Program, o *backend.Outcome, p *place) []safetensors.Entry {
	var out []safetensors.Entry
	for i := range o.Values {
		if i < len(prog.Calls) {
			out = valueTensors(out, prog.Calls[i].Result, &o.Values[i])
		}
	}
	for _, at := range backend.Places(prog, o) {
		if t := o.At(at); t != nil && at.Part != backend.PartChange {
			out = append(out, safetensors.Entry{Name: at.String() + suffixes[at.Part], Tensor: t})
		}
	}
	if p.Where != nil && p.Where.Part == backend.PartChange {
		if t := p.changed(o); t != nil {
			out = append(out, safetensors.Entry{Name: p.key(), Tensor: t})
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
