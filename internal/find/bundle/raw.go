package bundle

import (
	"encoding/json"
	"fmt"
	"strings"

	"plumb/backend"
	"plumb/tensor"
)

// The files of the raw form, for subjects that are no Python: a debugger of a
// device needs bytes and one call.
const (
	caseFile = "case.json"
	rawRun   = "repro.sh"
)

// maxRaw bounds the tensors of the raw form, to either side.
const maxRaw = 10

// rawCase is the content of case.json.
type rawCase struct {
	Calls    []rawCall   `json:"calls"`
	Inputs   []rawTensor `json:"inputs"`
	Expected []rawTensor `json:"expected"`
}

type rawCall struct {
	Result string `json:"result"`
	Target string `json:"target"`
	Text   string `json:"text"`
}

// rawTensor is a tensor in a file: little-endian elements in row-major order of
// the shape, whatever the strides are.
type rawTensor struct {
	Name    string `json:"name"`
	File    string `json:"file"`
	DType   string `json:"dtype"`
	Shape   []int  `json:"shape"`
	Strides []int  `json:"strides,omitempty"` // of the call's argument, where it is not contiguous
}

// isProgram reports whether a side is a program by its path.
func (s *Side) isProgram() bool {
	return strings.HasPrefix(s.Spec, "./") || strings.HasPrefix(s.Spec, "/") || strings.HasPrefix(s.Spec, "../")
}

// addRaw writes the raw form for a candidate that is a program: the inputs and
// what the reference computes as files of bytes, and a command line that runs
// the case on the candidate.
func (b *Bundle) addRaw(f *Finding) error {
	if !f.Candidate.isProgram() {
		return nil
	}
	var c rawCase
	add := func(to *[]rawTensor, prefix, name string, t *tensor.Tensor) {
		if t == nil || len(*to) == maxRaw {
			return
		}
		one := rawTensor{Name: name, File: prefix + "_" + name + ".bin", DType: t.DType().String(), Shape: t.Shape()}
		if !t.IsContiguous() {
			one.Strides = t.Strides()
		}
		b.files[one.File] = append([]byte{}, t.Contiguous().Bytes()...)
		*to = append(*to, one)
	}
	p, inputs, expected := f.Program, f.Job.Inputs, f.Expected.Values
	if g := f.Function; g != nil {
		p, inputs, expected = g.Program, backend.NewJob(g.Program).Inputs, nil
		for _, name := range g.Returns {
			if i := g.Call(name); i >= 0 {
				eachTensor(name, f.Expected.Values[i], func(name string, t *tensor.Tensor) { add(&c.Expected, "expected", name, t) })
			} else if name != "" {
				add(&c.Expected, "expected", name+"_grad", f.Expected.Grad(name))
			}
		}
	}
	for i, in := range p.Inputs {
		add(&c.Inputs, "input", in.Name, inputs[i])
	}
	text := strings.Split(strings.TrimSpace(p.String()), "\n")
	for i, call := range p.Calls {
		one := rawCall{Result: call.Result, Target: call.Target}
		for _, line := range text {
			if strings.HasPrefix(line, call.Result+" = ") {
				one.Text = line
			}
		}
		c.Calls = append(c.Calls, one)
		if i < len(expected) {
			eachTensor(call.Result, expected[i], func(name string, t *tensor.Tensor) { add(&c.Expected, "expected", name, t) })
		}
	}
	data, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	b.files[caseFile] = append(data, '\n')
	b.files[rawRun] = []byte(fmt.Sprintf(`#!/bin/sh
# Runs the case on %s once more and compares: exit code 1 where it still fails.
# %s says which calls it has, and in which files of this folder the inputs and
# what %s computes lie: little-endian elements in row-major order.
exec plumb repro "$(dirname "$0")" --as plumb --run
`, f.Candidate.Spec, caseFile, f.Reference.Framework()))
	b.m.Run = append(b.m.Run, "sh "+rawRun)
	return nil
}

func eachTensor(name string, v backend.Value, each func(string, *tensor.Tensor)) {
	if !v.IsTuple {
		each(name, v.Tensor)
		return
	}
	for i, e := range v.Tuple {
		eachTensor(fmt.Sprintf("%s_%d", name, i), e, each)
	}
}
