package native

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"time"

	"plumb/backend"
	"plumb/graph"
	"plumb/internal/autograd"
	"plumb/internal/eager"
	"plumb/op"
	"plumb/program"
	"plumb/tensor"
)

// GraphBackend runs each program as one static graph: it traces all of it, with
// modules, changes in place and gradients, compiles and runs that.
type GraphBackend struct {
	*Backend
	options graph.Options
}

// Graph returns a backend that runs graphs instead.
func (b *Backend) Graph(o graph.Options) *GraphBackend { return &GraphBackend{b, o} }

// Info returns the backend's name and modes.
func (b *GraphBackend) Info() backend.Info {
	if slices.Contains(b.options.Without, graph.All) {
		return info("graph-plain")
	}
	return info("graph")
}

// Run traces the program and runs the graph with and without passes. What
// cannot be captured is Unsupported, a panic is Crashed, and a pass that changes
// a bit of a result is blamed by the outcome.
func (b *GraphBackend) Run(ctx context.Context, job *backend.Job) (*backend.Outcome, error) {
	start := time.Now()
	t := b.trace(ctx, job)
	t.run.out = t.finish(b.options)
	t.run.out.Elapsed = time.Since(start)
	return t.run.out, nil
}

// Trace returns the graph of a program before any pass. The error says what
// cannot be captured.
func (b *GraphBackend) Trace(ctx context.Context, job *backend.Job) (*graph.Code, error) {
	t := b.trace(ctx, job)
	if out := t.run.out; out.Status != backend.OK {
		return nil, fmt.Errorf("call %d: %s: %s", out.Call, out.Status, out.Message)
	}
	code, _ := t.code()
	return code, nil
}

func (b *GraphBackend) trace(ctx context.Context, job *backend.Job) *traceSession {
	t := newTrace(b.table, job)
	t.run = &run{Backend: b.Backend, job: job, session: t, traced: t, copies: true, env: map[program.Ref]*value{}, out: &backend.Outcome{Status: backend.OK}}
	t.run.outcome(ctx)
	return t
}

// traceSession is a session whose variables have no elements: their tensors
// are layouts, each of which stands for a value of a graph.
type traceSession struct {
	*eager.Session
	run     *run
	builder *graph.Builder
	values  map[*tensor.Tensor]*graph.Value
	fixed   map[*tensor.Tensor]*graph.Value // what kept returned
	feeds   []*tensor.Tensor                // the elements of the graph's inputs
	marks   map[program.Ref]*graph.Value    // what names stood for when they were last looked at
	changes [][]change                      // by call
}

// change is a name that stands for another value since a call.
type change struct {
	name    string
	was, is *graph.Value
}

func newTrace(table *op.Table, job *backend.Job) *traceSession {
	t := &traceSession{
		Session: eager.New(table),
		builder: graph.NewBuilder(table, job.Program.Name),
		values:  map[*tensor.Tensor]*graph.Value{},
		fixed:   map[*tensor.Tensor]*graph.Value{},
		marks:   map[program.Ref]*graph.Value{},
	}
	t.Seed(job.Program.Seed)
	t.Compute(t.record)
	t.OnGrad(t.differentiate)
	return t
}

// Leaf makes a variable of a tensor. One that has elements becomes an input.
func (t *traceSession) Leaf(x *tensor.Tensor, requiresGrad bool) *eager.Var {
	return t.Session.Leaf(t.input(x), requiresGrad)
}

func (t *traceSession) input(x *tensor.Tensor) *tensor.Tensor {
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
func (t *traceSession) Builder() op.Builder { return op.Builder{Applier: t} }

// Apply applies an operator by id.
func (t *traceSession) Apply(id string, args []any, kwargs []op.Kwarg) ([]op.Value, error) {
	call, err := t.run.table.ResolveID(id, args, kwargs)
	if err != nil {
		return nil, err
	}
	return t.Execute(call)
}

// Execute records a call. A composition that asks for elements, which layouts
// would tell falsely, cannot be captured.
func (t *traceSession) Execute(call *op.Call) ([]op.Value, error) {
	if call.Def.Compose != nil && !call.InPlace {
		described := *call
		described.Args = call.Args.MapValues(func(v op.Value) op.Value {
			if x, ok := v.(*eager.Var); ok && t.valueOf(x.Tensor) != nil {
				return t.valueOf(x.Tensor)
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

// mark remembers what a name stands for now.
func (t *traceSession) mark(name string) {
	if v := t.run.env[program.Ref(name)]; v.tensor != nil {
		t.marks[program.Ref(name)] = t.valueOf(v.tensor.Tensor)
	}
}

// observe notes which names may stand for other elements since a call that was
// just traced.
func (t *traceSession) observe(c *program.Call) {
	var changed []change
	look := func(ref program.Ref) {
		old, v := t.marks[ref], t.run.env[ref]
		if old == nil || t.run.refresh(v) != nil || v.tensor == nil {
			return
		}
		if now := t.valueOf(v.tensor.Tensor); now != old {
			changed = append(changed, change{name: string(ref), was: old, is: now})
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
	t.mark(c.Result)
}

// at tells the builder which call of the program is traced.
func (t *traceSession) at() {
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
func (t *traceSession) differentiate(n *autograd.Node) {
	if n == nil {
		t.builder.Differentiate(nil)
		return
	}
	if v := t.values[n.Out[0].(*eager.Var).Tensor]; v != nil {
		t.builder.Differentiate(v.Node())
	}
}

// record adds a call to the graph and returns the layouts of its results.
func (t *traceSession) record(call *op.Call) ([]*tensor.Tensor, error) {
	t.at()
	c := *call
	c.Args = call.Args.MapValues(func(v op.Value) op.Value {
		if x, ok := v.(*tensor.Tensor); ok && t.valueOf(x) != nil {
			return t.valueOf(x)
		}
		return v
	})
	out, err := t.builder.Record(&c)
	if err != nil {
		return nil, t.named(err)
	}
	layouts := make([]*tensor.Tensor, len(out))
	for i, o := range out {
		v := o.(*graph.Value)
		layouts[i] = v.Layout()
		t.values[v.Layout()] = v
	}
	return layouts, nil
}

// named puts the graph's name into an error of its builder.
func (t *traceSession) named(err error) error {
	var e *graph.Error
	if !errors.As(err, &e) {
		return err
	}
	whole := *e
	whole.Graph = t.run.job.Program.Name
	return &whole
}

// valueOf returns the value that a layout stands for; nil for a tensor with elements.
func (t *traceSession) valueOf(x *tensor.Tensor) *graph.Value {
	if v := t.fixed[x]; v != nil {
		return v
	}
	if v := t.values[x]; v != nil {
		return t.builder.Latest(v)
	}
	return nil
}

// Backward feeds cotangents that have elements as inputs.
func (t *traceSession) Backward(values, cotangents []op.Value, create bool) (autograd.Cotangents, error) {
	fed := make([]op.Value, len(cotangents))
	for i, c := range cotangents {
		fed[i] = c
		if x, ok := c.(*tensor.Tensor); ok {
			fed[i] = t.input(x)
		}
	}
	return t.Session.Backward(values, fed, create)
}

// replace gives a variable the elements of another layout, or its own in a new one.
func (t *traceSession) replace(v *eager.Var, x *tensor.Tensor) {
	if t.values[x] != nil {
		v.Tensor = x
		return
	}
	t.at()
	arranged := t.builder.Arrange(t.valueOf(v.Tensor), x.Strides())
	t.values[arranged.Layout()] = arranged
	v.Tensor = arranged.Layout()
}

func (t *traceSession) kept(x *tensor.Tensor) *tensor.Tensor {
	v := t.valueOf(x)
	if v == nil {
		return copyOf(x)
	}
	stand := *x
	t.fixed[&stand] = v
	return &stand
}

// code ends the graph with the tensors of the outcome as its outputs, and
// returns the layouts of those.
func (t *traceSession) code() (*graph.Code, []*tensor.Tensor) {
	var outputs []*graph.Value
	var layouts []*tensor.Tensor
	mapTensors(t.run.out, func(x *tensor.Tensor) *tensor.Tensor {
		if v := t.valueOf(x); v != nil {
			outputs, layouts = append(outputs, v), append(layouts, x)
		}
		return x
	})
	for _, changed := range t.changes {
		for _, c := range changed {
			outputs, layouts = append(outputs, c.was, c.is), append(layouts, nil, nil)
		}
	}
	return t.builder.Code(outputs...), layouts
}

// changed returns what the calls changed, of which ts holds the elements
// before and after.
func (t *traceSession) changed(ts []*tensor.Tensor) (all [][]backend.Named) {
	for _, noted := range t.changes[:len(t.run.out.Values)] {
		var changed []backend.Named
		for _, c := range noted {
			was, is := ts[0], ts[1]
			ts = ts[2:]
			if !is.SameBits(was) {
				changed = append(changed, backend.Named{Name: c.name, Tensor: is})
			}
		}
		all = append(all, changed)
	}
	return all
}

// finish runs the graph and puts what it computed into the outcome. If a call
// fails, the graph without passes tells what was computed until then.
func (t *traceSession) finish(o graph.Options) (out *backend.Outcome) {
	out = t.run.out
	defer func() {
		if p := recover(); p != nil {
			*out = backend.Outcome{Status: backend.Crashed, Class: "panic", Message: fmt.Sprintf("%v\n%s", p, debug.Stack())}
		}
	}()
	code, layouts := t.code()
	ts, err := t.compute(code, o)
	if err != nil {
		plain, plainErr := t.compute(code, graph.Options{Without: []string{graph.All}})
		if plainErr == nil {
			return &backend.Outcome{Status: backend.Crashed, Class: "pass", Message: err.Error(), Blame: t.blamed(code, o, plain)}
		}
		ts = plain
		t.fail(plainErr)
	} else {
		out.Blame, out.Evidence = t.wrongPass(code, o, ts)
	}
	computed := map[*tensor.Tensor]*tensor.Tensor{}
	count := 0
	for i, x := range layouts {
		if x != nil {
			computed[x] = ts[i]
			count++
		}
	}
	out.Changes = t.changed(ts[count:])
	mapTensors(out, func(x *tensor.Tensor) *tensor.Tensor {
		if t.valueOf(x) != nil {
			return computed[x]
		}
		return x
	})
	return out
}

// wrongPass compares what the graph computed with what it does without passes:
// it returns which pass is to blame for a difference, and where that is; ""
// where there is none.
func (t *traceSession) wrongPass(code *graph.Code, o graph.Options, ts []*tensor.Tensor) (pass, evidence string) {
	if slices.Contains(o.Without, graph.All) {
		return "", ""
	}
	plain, err := t.compute(code, graph.Options{Without: []string{graph.All}})
	if err != nil || slices.EqualFunc(ts, plain, (*tensor.Tensor).SameBits) {
		return "", ""
	}
	pass = t.blamed(code, o, plain)
	i := 0
	for ts[i].SameBits(plain[i]) {
		i++
	}
	n, of := code.Outputs[i].Node(), ""
	if n.Of != nil {
		of = "gradient of " + n.Of.Origin() + ": "
	}
	return pass, fmt.Sprintf("graph %s: pass %s changes output %d, %s, of %s%s in\n%s", code.Name, pass, i, ts[i], of, n.Origin(), code)
}

// blamed returns the pass with which the graph no longer gives what it does
// without any.
func (t *traceSession) blamed(code *graph.Code, o graph.Options, plain []*tensor.Tensor) string {
	return graph.Blame(code, o, func(c *graph.Compiled) bool {
		got, err := c.Run(t.run.job.Program.Seed, t.feeds)
		return err == nil && slices.EqualFunc(got, plain, (*tensor.Tensor).SameBits)
	})
}

func (t *traceSession) compute(code *graph.Code, o graph.Options) ([]*tensor.Tensor, error) {
	c, err := graph.Compile(code, o)
	if err != nil {
		return nil, err
	}
	return c.Run(t.run.job.Program.Seed, t.feeds)
}

// fail makes the outcome that of a program whose graph failed: it ends before
// the call that did.
func (t *traceSession) fail(err error) {
	out, at := t.run.out, len(t.run.out.Values)
	var failed *graph.Error
	if errors.As(err, &failed) {
		at = min(at, failed.Step)
	}
	ended := *out
	*out = backend.Outcome{Status: backend.OK, Values: ended.Values[:at], Initial: ended.Initial}
	if at == len(t.run.job.Program.Calls) {
		out.Final = ended.Final
	}
	t.run.raise(at, err)
}

// mapTensors puts f of each tensor in its place in an outcome.
func mapTensors(out *backend.Outcome, f func(*tensor.Tensor) *tensor.Tensor) {
	for i := range out.Values {
		mapValue(&out.Values[i], f)
	}
	for _, all := range []map[string]backend.State{out.Initial, out.Final, out.ParamGrads, out.SecondParamGrads, out.Stepped} {
		for _, name := range slices.Sorted(maps.Keys(all)) {
			for i := range all[name] {
				all[name][i].Tensor = f(all[name][i].Tensor)
			}
		}
	}
	for _, all := range []map[string]*tensor.Tensor{out.Grads, out.SecondGrads} {
		for _, name := range slices.Sorted(maps.Keys(all)) {
			if all[name] != nil {
				all[name] = f(all[name])
			}
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
