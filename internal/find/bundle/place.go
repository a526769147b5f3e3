package bundle

import (
	"fmt"

	"plumb/backend"
	"plumb/internal/judge"
	"plumb/internal/judge/compare"
	"plumb/internal/judge/verdict"
	"plumb/program"
	"plumb/tensor"
)

// mode says how two sides are compared at a place.
type mode string

const (
	byElements     mode = "elements"  // of tensors and numbers, after dtype and shape
	byText         mode = "text"      // of other Python values
	byStructure    mode = "structure" // tensor, tuple, number, …
	byRequiresGrad mode = "requires_grad"
	byException    mode = "exception" // one side raises
	byEnding       mode = "ending"    // a side crashes, hangs or runs out of memory
	byBits         mode = "bits"      // of what was judged by its law or by the truth
)

// place is where the sides diverged first, and what decides there.
type place struct {
	Mode  mode           `json:"mode"`
	Where *verdict.Where `json:"where,omitempty"`
	judge.Settled

	program *program.Program
}

// Ending is how a side's run ended and what it had at the place.
type Ending struct {
	Status  backend.Status `json:"status"`
	Class   string         `json:"class,omitempty"`
	Message string         `json:"message,omitempty"`
	Call    int            `json:"call"`
	// Is says what the value at the place was: "a tensor", "a tuple of 2", "None".
	Is           string `json:"is,omitempty"`
	Text         string `json:"text,omitempty"` // of a value that is no tensor or number
	RequiresGrad bool   `json:"requires_grad,omitempty"`
	Strides      []int  `json:"strides,omitempty"`
}

// placeOf returns the place of a verdict. The error says that it has none.
func placeOf(f *Finding) (*place, error) {
	v := f.Verdict
	switch {
	case len(v.Differences) > 0:
		return differing(f, &v.Differences[0]), nil
	case v.Word == verdict.Crash || v.Word == verdict.Timeout || v.Word == verdict.OOM:
		return &place{Mode: byEnding, program: f.Program}, nil
	}
	return nil, fmt.Errorf("a verdict %q without a difference is no finding", v.Word)
}

func differing(f *Finding, d *verdict.Difference) *place {
	p := &place{Mode: byElements, Where: &d.Where, Settled: judge.Settled{Rule: d.Diff.Rule, Limit: d.Limit}, program: f.Program}
	p.Metadata = f.Program.Shapes || d.Limit.Reason == "" && (p.Rule == compare.DType || p.Rule == compare.Shape)
	switch d.Kind {
	case verdict.Exception:
		p.Mode = byException
		p.Classes = f.Expected.Status == backend.Raised && f.Got.Status == backend.Raised
		return p
	case verdict.RequiresGrad:
		p.Mode = byRequiresGrad
		return p
	}
	want, got := p.value(f.Expected), p.value(f.Got)
	switch {
	case p.Rule == compare.Support || p.Rule == compare.Distribution || p.Rule == compare.Relation:
		p.Mode = byBits
	case want.is != got.is && p.Where.Part == backend.PartValue:
		p.Mode = byStructure
	case want.number == nil && got.number == nil:
		p.Mode = byText
	case !p.reproduces(want.number, got.number):
		p.Mode = byBits
	}
	return p
}

// reproduces looks for the options under which the limit is broken again.
func (p *place) reproduces(want, got *tensor.Tensor) bool {
	for _, o := range []compare.Options{{}, {SignedZero: true}, {NaNDiffers: true}, {Layout: true}} {
		if p.Options = o; p.judge().Breach(want, got) != "" {
			return true
		}
	}
	return false
}

// judge returns the judge by what is settled at the place.
func (p *place) judge() *judge.Judge { return judge.New(judge.Config{Settled: &p.Settled}) }

// found is a value at a place; number is nil for what is no tensor or number.
type found struct {
	is     string
	number *tensor.Tensor
	text   string
	grad   bool
	ok     bool // the run got there
}

func (p *place) value(o *backend.Outcome) found {
	switch p.Where.Part {
	case backend.PartValue:
	case backend.PartChange:
		return optional(o, p.changed(o))
	default:
		return optional(o, verdict.At(o, *p.Where))
	}
	if p.Where.Call >= len(o.Values) {
		return found{}
	}
	v := &o.Values[p.Where.Call]
	for _, i := range p.Where.Path {
		if i >= len(v.Tuple) {
			return found{}
		}
		v = &v.Tuple[i]
	}
	return foundIn(v)
}

// changed returns what a side has under the place's name right after its call.
func (p *place) changed(o *backend.Outcome) *tensor.Tensor {
	return verdict.Changed(p.program, o, p.Where.Call, p.Where.Name)
}

func optional(o *backend.Outcome, t *tensor.Tensor) found {
	if t == nil {
		return found{is: "None", ok: o.Status == backend.OK}
	}
	return found{is: "a tensor", number: t, ok: true}
}

func foundIn(v *backend.Value) found {
	f := found{ok: true, grad: v.RequiresGrad}
	switch x := v.Plain.(type) {
	case nil:
		f.is = "None"
	case int64:
		f.is, f.number = "an int", tensor.Of(tensor.I64, nil, []int64{x})
	case float64:
		f.is, f.number = "a float", tensor.Scalar(tensor.F64, complex(x, 0))
	case complex128:
		f.is, f.number = "a complex", tensor.Scalar(tensor.C128, x)
	case bool:
		f.is, f.text = "a bool", map[bool]string{true: "True", false: "False"}[x]
	case string:
		f.is, f.text = "a str", x
	default:
		f.is, f.text = fmt.Sprintf("a %T", x), fmt.Sprint(x)
	}
	switch {
	case v.Tensor != nil:
		f.is, f.number = "a tensor", v.Tensor
	case v.IsTuple:
		f.is = fmt.Sprintf("a tuple of %d", len(v.Tuple))
	case v.Module:
		f.is = "a module"
	}
	return f
}

// ending returns how a side ended; p tells the place.
func (p *place) ending(o *backend.Outcome) Ending {
	e := Ending{Status: o.Status, Class: o.Class, Message: o.Message, Call: o.Call}
	if p.Where == nil {
		return e
	}
	v := p.value(o)
	e.Is, e.Text, e.RequiresGrad = v.is, v.text, v.grad
	if v.number != nil {
		e.Strides = v.number.Strides()
	}
	return e
}

// key names the place's tensor in the files of tensors.
func (p *place) key() string {
	switch p.Where.Part {
	case backend.PartValue:
		return valueKey(p.Where.Name, p.Where.Path)
	case backend.PartChange:
		return fmt.Sprintf("%s.after.%d", p.Where.Name, p.Where.Call)
	}
	return p.Where.Name + suffixes[p.Where.Part]
}

// suffixes end the names of tensors by their part.
var suffixes = map[backend.Part]string{
	backend.PartGrad: ".grad", backend.PartParamGrad: ".grad",
	backend.PartSecondGrad: ".grad2", backend.PartSecondParamGrad: ".grad2",
	backend.PartStep: ".stepped",
}

func valueKey(name string, path []int) string {
	for _, i := range path {
		name += fmt.Sprintf(".%d", i)
	}
	return name
}

// twice reports whether gradients of the second order come before the place.
func (p *place) twice() bool {
	switch {
	case p.program.Second.Dist == "":
		return false
	case p.Where == nil:
		return true
	case p.Where.Part.IsSecond():
		return true
	}
	return p.Mode == byException && p.Where.Call >= len(p.program.Calls)
}

// stepped reports whether the optimizer's step comes before the place.
func (p *place) stepped() bool {
	return p.program.Step != (program.Step{}) && (p.Where == nil || p.Where.Part == backend.PartStep)
}

// calls returns how many calls it takes to get to the place, of n.
func (p *place) calls(n int) int {
	if p.Where == nil || p.Where.Call >= n {
		return n
	}
	return p.Where.Call + 1
}

// differentiates reports whether the backward pass comes before the place.
func (p *place) differentiates(n int) bool {
	if p.Where == nil {
		return true
	}
	switch p.Where.Part {
	case backend.PartValue, backend.PartChange:
		return p.Where.Call >= n
	}
	return p.Where.Part.IsGradient() || p.Where.Part == backend.PartStep
}
