package beside

import (
	"fmt"
	"time"

	"plumb/backend"
	"plumb/program"
	"plumb/tensor"
)

// request is a job as it travels.
type request struct {
	Mode    string
	Program string // its text
	Inputs  []*elements
	State   map[string][]named // nil where the job has none
	Reach   int
	Measure *backend.Measure
}

// reply is what the process is, or an outcome, or why there is none.
type reply struct {
	Info    backend.Info
	Error   string
	Outcome *outcome
}

// outcome is a backend.Outcome; Unread is of recordings alone.
type outcome struct {
	Status             backend.Status
	Class, Message     string
	Call               int
	NoKernel           bool
	Values             []value
	Initial            map[string][]named
	Slots              []slot
	Watched            bool
	ForwardOnly        bool
	NoGradients        string
	Derived            bool
	NoElements         bool
	Permissive         bool
	OwnForms           bool
	Blame, Evidence    string
	Elapsed, CPU, Took time.Duration
}

type value struct {
	Tensor       *elements
	RequiresGrad bool
	IsTuple      bool
	Tuple        []value
	Module       bool
	Plain        any
}

type named struct {
	Name   string
	Tensor *elements
}

type slot struct {
	Place  backend.Place
	Tensor *elements
}

// elements are a tensor with its layout. Gob does not tell empty slices from none.
type elements struct {
	DType          tensor.DType
	Shape, Strides []int
	Storage        []byte // from the first element on
}

func elementsOf(t *tensor.Tensor) *elements {
	if t == nil {
		return nil
	}
	last := 0
	for i, n := range t.Shape() {
		last += max(n-1, 0) * t.Strides()[i]
	}
	size := t.DType().Size()
	e := &elements{DType: t.DType(), Shape: t.Shape(), Strides: t.Strides()}
	if t.Len() > 0 {
		e.Storage = t.Storage()[t.Offset()*size : (t.Offset()+last+1)*size]
	}
	return e
}

func (e *elements) tensor() (*tensor.Tensor, error) {
	if e == nil {
		return nil, nil
	}
	shape, strides := e.Shape, e.Strides
	if shape == nil {
		shape, strides = []int{}, []int{}
	}
	return tensor.FromBytes(e.DType, shape, strides, 0, e.Storage)
}

func asked(mode string, job *backend.Job) request {
	q := request{Mode: mode, Program: job.Program.String(), State: statesOf(job.State), Reach: job.Reach, Measure: job.Measure}
	for _, t := range job.Inputs {
		q.Inputs = append(q.Inputs, elementsOf(t))
	}
	return q
}

func (q *request) job(p *program.Program) (*backend.Job, error) {
	job := &backend.Job{Program: p, Reach: q.Reach, Measure: q.Measure}
	for _, e := range q.Inputs {
		t, err := e.tensor()
		if err != nil {
			return nil, err
		}
		job.Inputs = append(job.Inputs, t)
	}
	var err error
	job.State, err = states(q.State)
	return job, err
}

func statesOf(m map[string]backend.State) map[string][]named {
	if m == nil {
		return nil
	}
	out := map[string][]named{}
	for module, state := range m {
		list := []named{}
		for _, n := range state {
			list = append(list, named{n.Name, elementsOf(n.Tensor)})
		}
		out[module] = list
	}
	return out
}

func states(m map[string][]named) (map[string]backend.State, error) {
	if m == nil {
		return nil, nil
	}
	out := map[string]backend.State{}
	for module, list := range m {
		state := backend.State{}
		for _, n := range list {
			t, err := n.Tensor.tensor()
			if err != nil {
				return nil, fmt.Errorf("%s.%s: %w", module, n.Name, err)
			}
			state = append(state, backend.Named{Name: n.Name, Tensor: t})
		}
		out[module] = state
	}
	return out, nil
}

func valuesOf(vs []backend.Value) []value {
	var out []value
	for i := range vs {
		v := &vs[i]
		out = append(out, value{elementsOf(v.Tensor), v.RequiresGrad, v.IsTuple, valuesOf(v.Tuple), v.Module, v.Plain})
	}
	return out
}

func values(vs []value) ([]backend.Value, error) {
	var out []backend.Value
	for i := range vs {
		v := &vs[i]
		t, err := v.Tensor.tensor()
		if err != nil {
			return nil, err
		}
		tuple, err := values(v.Tuple)
		if err != nil {
			return nil, err
		}
		out = append(out, backend.Value{Tensor: t, RequiresGrad: v.RequiresGrad, IsTuple: v.IsTuple, Tuple: tuple, Module: v.Module, Plain: v.Plain})
	}
	return out, nil
}

func replied(o *backend.Outcome) reply {
	w := &outcome{
		Status: o.Status, Class: o.Class, Message: o.Message, Call: o.Call, NoKernel: o.NoKernel, Values: valuesOf(o.Values), Initial: statesOf(o.Initial),
		Watched: o.Watched, ForwardOnly: o.ForwardOnly, NoGradients: o.NoGradients, Derived: o.Derived, NoElements: o.NoElements, Permissive: o.Permissive,
		OwnForms: o.OwnForms, Blame: o.Blame, Evidence: o.Evidence, Elapsed: o.Elapsed, CPU: o.CPU, Took: o.Measured,
	}
	for _, s := range o.Slots {
		w.Slots = append(w.Slots, slot{s.Place, elementsOf(s.Tensor)})
	}
	return reply{Outcome: w}
}

func (r *reply) outcome() (*backend.Outcome, error) {
	w := r.Outcome
	if w == nil {
		return nil, fmt.Errorf("a reply without an outcome")
	}
	o := &backend.Outcome{
		Status: w.Status, Class: w.Class, Message: w.Message, Call: w.Call, NoKernel: w.NoKernel,
		Watched: w.Watched, ForwardOnly: w.ForwardOnly, NoGradients: w.NoGradients, Derived: w.Derived, NoElements: w.NoElements, Permissive: w.Permissive,
		OwnForms: w.OwnForms, Blame: w.Blame, Evidence: w.Evidence, Elapsed: w.Elapsed, CPU: w.CPU, Measured: w.Took,
	}
	var err error
	if o.Values, err = values(w.Values); err != nil {
		return nil, err
	}
	if o.Initial, err = states(w.Initial); err != nil {
		return nil, err
	}
	for _, s := range w.Slots {
		t, err := s.Tensor.tensor()
		if err != nil {
			return nil, err
		}
		o.Slots = append(o.Slots, backend.Slot{Place: s.Place, Tensor: t})
	}
	return o, nil
}
