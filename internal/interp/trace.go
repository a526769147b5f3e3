package interp

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"plumb/backend"
	"plumb/global"
	"plumb/graph"
	"plumb/internal/autograd"
	"plumb/internal/eager"
	"plumb/op"
	"plumb/program"
	"plumb/tensor"
)

// Trace is a session whose variables have no elements: their tensors
// are layouts, each of which stands for a value of a graph.
type Trace struct {
	*eager.Session
	run     *Run
	builder *graph.Builder
	values  map[*tensor.Tensor]*graph.Value
	fixed   map[*tensor.Tensor]*graph.Value // what Kept returned
	feeds   []*tensor.Tensor                // the elements of the graph's inputs
	outputs []*tensor.Tensor                // the layouts of the graph's outputs
	marks   map[program.Ref]*graph.Value    // what names stood for when they were last looked at
	changes [][]change                      // by call
	outline *program.Outline                // nil where nobody asks for the graph's modules
	// Lies is how the program wants values to lie over ranks.
	Lies  map[*graph.Value]global.SBP
	ranks *global.Placement // of a graph for ranks
}

var (
	_ Session  = (*Trace)(nil)
	_ observer = (*Trace)(nil)
)

// change is a name that stands for another value since a call.
type change struct {
	name    string
	was, is *graph.Value
}

// Trace follows the program without computing it. Its outcome says what cannot
// be captured; the tensors in it are layouts.
func (in *Interpreter) Trace(ctx context.Context, job *backend.Job) *Trace {
	return in.Outlined(ctx, job, nil)
}

// Outlined is Trace for a graph that can be described by the parts of an outline.
func (in *Interpreter) Outlined(ctx context.Context, job *backend.Job, o *program.Outline) *Trace {
	return in.trace(ctx, job, &Trace{outline: o})
}

// TraceOver is Trace of a graph for ranks, whose placements are theirs.
func (in *Interpreter) TraceOver(ctx context.Context, job *backend.Job, ranks global.Placement) *Trace {
	return in.trace(ctx, job, &Trace{ranks: &ranks})
}

func (in *Interpreter) trace(ctx context.Context, job *backend.Job, t *Trace) *Trace {
	*t = Trace{
		outline: t.outline,
		ranks:   t.ranks,
		Session: eager.New(in.table),
		builder: graph.NewBuilder(in.table, job.Program.Name),
		values:  map[*tensor.Tensor]*graph.Value{},
		fixed:   map[*tensor.Tensor]*graph.Value{},
		marks:   map[program.Ref]*graph.Value{},
		Lies:    map[*graph.Value]global.SBP{},
	}
	t.Seed(job.Program.Seed)
	t.Compute(t.emit)
	t.Symbolic()
	t.OnGrad(t.differentiate)
	t.run = in.Start(job, t)
	t.run.observer = t
	if t.outline != nil {
		t.builder.Describing()
	}
	t.run.Outcome(ctx)
	t.addParts()
	return t
}

// Outcome is what is known of the program's outcome so far.
func (t *Trace) Outcome() *backend.Outcome { return t.run.out }

// Nodes returns the graph without outputs.
func (t *Trace) Nodes() []*graph.Node { return t.builder.Code().Nodes }

// Feeds returns the elements of the graph's inputs, in order.
func (t *Trace) Feeds() []*tensor.Tensor { return t.feeds }

// Run runs a compiled graph on the program's inputs.
func (t *Trace) Run(c *graph.Compiled) ([]*tensor.Tensor, error) {
	return c.Run(t.run.job.Program.Seed, t.feeds)
}

// Leaf makes a variable of a tensor. One that has elements becomes an input.
func (t *Trace) Leaf(x *tensor.Tensor, requiresGrad bool) *eager.Var {
	return t.Session.Leaf(t.input(x), requiresGrad)
}

func (t *Trace) input(x *tensor.Tensor) *tensor.Tensor {
	if t.values[x] != nil {
		return x
	}
	t.at()
	v := t.builder.Input(fmt.Sprintf("x%d", len(t.feeds)), op.Meta{DType: x.DType(), Shape: x.Shape(), Strides: x.Strides()})
	t.feeds = append(t.feeds, x)
	t.values[v.Layout()] = v
	return v.Layout()
}

// Builder returns a Builder on the session.
func (t *Trace) Builder() op.Builder { return op.Builder{Applier: t} }

// Apply applies an operator by id.
func (t *Trace) Apply(id string, args []any, kwargs []op.Kwarg) ([]op.Value, error) {
	call, err := t.run.table.ResolveID(id, args, kwargs)
	if err != nil {
		return nil, err
	}
	return t.Execute(call)
}

// Execute records a call. A composition that asks for elements, which layouts
// would tell falsely, cannot be captured.
func (t *Trace) Execute(call *op.Call) ([]op.Value, error) {
	if call.Def.Compose != nil && !call.InPlace {
		described := *call
		described.Args = call.Args.MapValues(func(v op.Value) op.Value {
			if x, ok := v.(*eager.Var); ok && t.Value(x.Tensor) != nil {
				return t.Value(x.Tensor)
			}
			return v
		})
		var rejection *op.Error
		if _, err := described.Infer(); err != nil && !errors.As(err, &rejection) {
			return nil, &graph.CaptureError{Op: call.Def.ID(), Reason: err.Error()}
		}
	}
	return t.Session.Execute(call)
}

// named remembers what a name stands for now.
func (t *Trace) named(name string) {
	if v := t.run.env[program.Ref(name)]; v.tensor != nil {
		t.marks[program.Ref(name)] = t.Value(v.tensor.Tensor)
	}
}

// called notes which names may stand for other elements since a call that was
// just traced.
func (t *Trace) called(c *program.Call) {
	var changed []change
	look := func(ref program.Ref) {
		old, v := t.marks[ref], t.run.env[ref]
		if old == nil || t.run.refresh(v) != nil || v.tensor == nil {
			return
		}
		if now := t.Value(v.tensor.Tensor); now != old {
			if t.run.counts(c, ref) {
				changed = append(changed, change{name: string(ref), was: old, is: now})
			}
			t.marks[ref] = now
		}
	}
	p := t.run.job.Program
	if t.run.space != nil && t.run.mayChange(c) {
		for i := range p.Inputs {
			look(program.Ref(p.Inputs[i].Name))
		}
		for i := range p.Calls[:len(t.run.out.Values)-1] {
			look(program.Ref(p.Calls[i].Result))
		}
	}
	for _, a := range c.Args {
		program.Refs(a, look)
	}
	for _, kw := range c.Kwargs {
		program.Refs(kw.Value, look)
	}
	t.changes = append(t.changes, changed)
	t.named(c.Result)
}

// at tells the builder which call of the program is traced.
func (t *Trace) at() {
	p, i := t.run.job.Program, len(t.run.out.Values)
	place := "backward"
	if i < len(p.Calls) {
		place = fmt.Sprintf("%s = %s", p.Calls[i].Result, p.Calls[i].Target)
		if at := p.Calls[i].Place; at != "" {
			place = at + ": " + place
		}
	}
	t.builder.At(i, place)
}

// differentiate tells the builder whose gradient is traced.
func (t *Trace) differentiate(n *autograd.Node) {
	if n == nil {
		t.builder.Differentiate(nil)
		return
	}
	if v := t.values[n.Out[0].(*eager.Var).Tensor]; v != nil {
		t.builder.Differentiate(v.Node())
	}
}

// emit adds a call to the graph and returns the layouts of its results.
func (t *Trace) emit(call *op.Call) ([]*tensor.Tensor, error) {
	t.at()
	c := *call
	c.Args = call.Args.MapValues(func(v op.Value) op.Value {
		if x, ok := v.(*tensor.Tensor); ok && t.Value(x) != nil {
			return t.Value(x)
		}
		return v
	})
	out, err := t.builder.Record(&c)
	if err != nil {
		return nil, t.inGraph(err)
	}
	layouts := make([]*tensor.Tensor, len(out))
	for i, o := range out {
		v := o.(*graph.Value)
		layouts[i] = v.Layout()
		t.values[v.Layout()] = v
	}
	return layouts, nil
}

// inGraph puts the graph's name into an error of its builder.
func (t *Trace) inGraph(err error) error {
	var e *graph.Error
	if !errors.As(err, &e) {
		return err
	}
	whole := *e
	whole.Graph = t.run.job.Program.Name
	return &whole
}

// Value returns the value that a layout stands for; nil for a tensor with elements.
func (t *Trace) Value(x *tensor.Tensor) *graph.Value {
	if v := t.fixed[x]; v != nil {
		return v
	}
	if v := t.values[x]; v != nil {
		return t.builder.Latest(v)
	}
	return nil
}

// Backward feeds cotangents that have elements as inputs.
func (t *Trace) Backward(values, cotangents []op.Value, create bool, inputs ...op.Value) (autograd.Cotangents, error) {
	fed := make([]op.Value, len(cotangents))
	for i, c := range cotangents {
		fed[i] = c
		if x, ok := c.(*tensor.Tensor); ok {
			fed[i] = t.input(x)
		}
	}
	return t.Session.Backward(values, fed, create, inputs...)
}

// Replace gives a variable the elements of another layout, or its own in a new one.
func (t *Trace) Replace(v *eager.Var, x *tensor.Tensor) {
	if t.values[x] != nil {
		v.Tensor = x
		return
	}
	t.at()
	arranged := t.builder.Arrange(t.Value(v.Tensor), x.Strides())
	t.values[arranged.Layout()] = arranged
	v.Tensor = arranged.Layout()
}

// Kept returns a layout that stands for what x does now.
func (t *Trace) Kept(x *tensor.Tensor) *tensor.Tensor {
	v := t.Value(x)
	if v == nil {
		return copyOf(x)
	}
	stand := *x
	t.fixed[&stand] = v
	return &stand
}

// Code ends the graph with the tensors of the outcome as its outputs.
func (t *Trace) Code() *graph.Code {
	var outputs []*graph.Value
	t.outputs = nil
	mapTensors(t.run.out, func(x *tensor.Tensor) *tensor.Tensor {
		if v := t.Value(x); v != nil {
			outputs, t.outputs = append(outputs, v), append(t.outputs, x)
		}
		return x
	})
	for _, changed := range t.changes {
		for _, c := range changed {
			outputs = append(outputs, c.was, c.is)
		}
	}
	return t.builder.Code(outputs...)
}

// Fill puts the graph's outputs into the outcome, and returns that.
func (t *Trace) Fill(ts []*tensor.Tensor) *backend.Outcome {
	computed := map[*tensor.Tensor]*tensor.Tensor{}
	for i, x := range t.outputs {
		computed[x] = ts[i]
	}
	mapTensors(t.run.out, func(x *tensor.Tensor) *tensor.Tensor {
		if t.Value(x) != nil {
			return computed[x]
		}
		return x
	})
	t.changed(ts[len(t.outputs):])
	return t.run.out
}

// changed reports what the calls changed, of which ts holds the elements before
// and after.
func (t *Trace) changed(ts []*tensor.Tensor) {
	out := t.run.out
	out.Watched = true
	for call, noted := range t.changes[:len(out.Values)] {
		for _, c := range noted {
			was, is := ts[0], ts[1]
			ts = ts[2:]
			if !is.SameBits(was) {
				out.Add(backend.Place{Part: backend.PartChange, Call: call, Owner: c.name}, is)
			}
		}
	}
}

// Fail makes the outcome that of a program whose graph failed: it ends before
// the call that did.
func (t *Trace) Fail(err error) {
	out, at := t.run.out, len(t.run.out.Values)
	var failed *graph.Error
	if errors.As(err, &failed) {
		at = min(at, failed.Step)
	}
	ended := *out
	*out = backend.Outcome{Status: backend.OK, Values: ended.Values[:at], Initial: ended.Initial}
	if at == len(t.run.job.Program.Calls) {
		out.Slots = slices.DeleteFunc(ended.Slots, func(s backend.Slot) bool { return s.Part != backend.PartState })
	}
	Fail(out, at, err)
}

// mapTensors puts f of each tensor in its place in an outcome.
func mapTensors(out *backend.Outcome, f func(*tensor.Tensor) *tensor.Tensor) {
	for i := range out.Values {
		mapValue(&out.Values[i], f)
	}
	for _, name := range slices.Sorted(maps.Keys(out.Initial)) {
		for i := range out.Initial[name] {
			t := &out.Initial[name][i].Tensor
			*t = f(*t)
		}
	}
	for i := range out.Slots {
		if t := &out.Slots[i].Tensor; *t != nil {
			*t = f(*t)
		}
	}
}

func mapValue(v *backend.Value, f func(*tensor.Tensor) *tensor.Tensor) {
	if v.Tensor != nil {
		v.Tensor = f(v.Tensor)
	}
	for i := range v.Tuple {
		mapValue(&v.Tuple[i], f)
	}
}
