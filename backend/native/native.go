// Package native is the backend of Plumb's own operators.
package native

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"plumb/backend"
	"plumb/graph"
	"plumb/internal/autograd"
	"plumb/internal/eager"
	"plumb/internal/inplace"
	"plumb/nn"
	"plumb/op"
	"plumb/program"
	"plumb/tensor"
)

// Backend runs programs eagerly on the operators of a table and the modules of another.
type Backend struct {
	table   *op.Table
	modules *nn.Table
	options graph.Options // of the mode "graph"
}

// New returns a backend.
func New(table *op.Table, modules *nn.Table) *Backend {
	return &Backend{table: table, modules: modules}
}

// Compiling returns the backend with other options for the mode "graph".
func (b *Backend) Compiling(o graph.Options) *Backend {
	c := *b
	c.options = o
	return &c
}

// Modes are what may follow "native:": how programs are run.
var Modes = []string{backend.Eager, "graph", "graph-plain"}

var _ backend.Modal = (*Backend)(nil)

// Info returns the backend's name and modes.
func (*Backend) Info() backend.Info { return info(backend.Eager) }

func info(mode string) backend.Info {
	return backend.Info{Name: "native", Version: mode, Devices: []string{"cpu"}, Modes: Modes, Mode: mode}
}

// In returns the backend in a mode; "" stands for the first.
func (b *Backend) In(mode string) (backend.Backend, error) {
	switch mode {
	case "", backend.Eager:
		return b, nil
	case "graph":
		return b.Graph(b.options), nil
	case "graph-plain":
		return b.Graph(graph.Options{Without: []string{graph.All}}), nil
	}
	return nil, &backend.ModeError{Backend: "native", Mode: mode, Modes: Modes}
}

// Close does nothing.
func (*Backend) Close() error { return nil }

// Run runs the program. A panic of an operator is the outcome Crashed.
func (b *Backend) Run(ctx context.Context, job *backend.Job) (*backend.Outcome, error) {
	s := eager.New(b.table)
	s.Seed(job.Program.Seed)
	return b.run(ctx, job, plainSession{s}, &watch{marks: map[program.Ref]mark{}, spoilt: map[int]uint64{}}), nil
}

func (b *Backend) run(ctx context.Context, job *backend.Job, s session, w *watch) *backend.Outcome {
	r := &run{Backend: b, job: job, session: s, watch: w, copies: w != nil, env: map[program.Ref]*value{}, out: &backend.Outcome{Status: backend.OK}}
	return r.outcome(ctx)
}

// outcome runs the program. A panic is the outcome Crashed.
func (r *run) outcome(ctx context.Context) (out *backend.Outcome) {
	start := time.Now()
	defer func() {
		if p := recover(); p != nil {
			r.out.Status, r.out.Class, r.out.Message = backend.Crashed, "panic", fmt.Sprintf("%v\n%s", p, debug.Stack())
		}
		r.out.Elapsed = time.Since(start) - r.aside
		r.restore()
		out = r.out
	}()
	r.program(ctx)
	return r.out
}

// run is the execution of one job.
type run struct {
	*Backend
	job     *backend.Job
	session session
	traced  *traceSession  // the session, where it is one
	watch   *watch         // nil: nobody asks what calls change
	copies  bool           // of values that later calls may write into are wanted
	aside   time.Duration  // spent on the watch
	space   *inplace.Space // nil: no call of the program may change a tensor
	env     map[program.Ref]*value
	leaves  []*eager.Var
	made    []made // leaves that calls made
	// retained are the variables that keep their gradients though they are no leaves.
	retained map[*eager.Var]bool
	data     map[op.Value]*eager.Var // what x.data gave, and x: a change goes unnoticed by autograd
	modules  []moduleRun
	out      *backend.Outcome
}

// session is how a run applies operators: eager.Session, or one that computes
// something else along the same calls.
type session interface {
	Leaf(t *tensor.Tensor, requiresGrad bool) *eager.Var
	Execute(call *op.Call) ([]op.Value, error)
	Builder() op.Builder
	// Recording runs f with or without recording what its calls compute.
	Recording(on bool, f func() error) error
	Backward(values, cotangents []op.Value, create bool) (autograd.Cotangents, error)
	// replace gives a variable other elements.
	replace(v *eager.Var, t *tensor.Tensor)
	// kept returns what a tensor is now, whatever is written into it later.
	kept(t *tensor.Tensor) *tensor.Tensor
}

type moduleRun struct {
	name   string
	module *nn.Module
}

// value is what a name stands for: one of a tensor, a tuple, a module and a
// plain Python value.
type value struct {
	tensor *eager.Var
	tuple  []*value
	names  []string // of a named tuple's elements
	module *nn.Module
	plain  any
}

func (r *run) program(ctx context.Context) {
	p := r.job.Program
	mutates := slices.ContainsFunc(p.Calls, func(c program.Call) bool {
		return slices.ContainsFunc(r.table.Lookup(c.Target), func(d *op.Def) bool { return len(d.Mutates) > 0 })
	})
	if r.changes() {
		r.space = inplace.New(r.table, host{r.session})
	}
	for i := range p.Inputs {
		t := r.job.Inputs[i]
		if mutates {
			t = copyOf(t)
		}
		v := r.session.Leaf(t, p.Inputs[i].RequiresGrad)
		r.leaves = append(r.leaves, v)
		if r.space != nil {
			r.space.Leaf(v)
		}
		r.env[program.Ref(p.Inputs[i].Name)] = &value{tensor: v}
		r.untimed(func() { r.mark(p.Inputs[i].Name) })
	}
	for i := range p.Calls {
		if err := ctx.Err(); err != nil {
			r.out.Status, r.out.Message, r.out.Call = backend.TimedOut, err.Error(), i
			return
		}
		v, err := r.scoped(&p.Calls[i])
		if err != nil {
			r.raise(i, err)
			return
		}
		r.env[program.Ref(p.Calls[i].Result)] = v
		if err := r.refresh(v); err != nil {
			r.raise(i, err)
			return
		}
		r.out.Values = append(r.out.Values, v.outcome(r.keep(mutates)))
		r.untimed(func() { r.observe(&p.Calls[i]) })
	}
	r.finalState()
	if err := r.backward(); err != nil {
		r.raise(len(p.Calls), err)
	}
}

// copyOf returns a copy with the same strides.
func copyOf(t *tensor.Tensor) *tensor.Tensor {
	u := tensor.NewStrided(t.DType(), t.Shape(), t.Strides())
	u.CopyFrom(t)
	return u
}

// raise records how a call failed: a rejection, or something unsupported.
func (r *run) raise(call int, err error) {
	r.out.Call, r.out.Message = call, err.Error()
	var e *op.Error
	var capture *graph.CaptureError
	switch {
	case errors.As(err, &e):
		r.out.Status, r.out.Class = backend.Raised, e.Class
	case errors.As(err, &capture):
		r.out.Status = backend.Unsupported
	case errors.Is(err, op.ErrUnknown) || errors.Is(err, inplace.ErrUnsupported) || errors.Is(err, nn.ErrUnsupported) || errors.Is(err, errUnsupported):
		r.out.Status = backend.Unsupported
	default:
		r.out.Status, r.out.Class = backend.Crashed, "error"
	}
}

var errUnsupported = errors.New("not supported by native")

func (r *run) call(c *program.Call) (*value, error) {
	if f := leafCalls[c.Target]; f != nil {
		return f(r, c)
	}
	switch kind, name, _ := strings.Cut(c.Target, "."); {
	case kind == "Module":
		return r.moduleCall(name, c)
	case program.IsModule(c.Target):
		return r.construct(c)
	case c.Target == "operator.getitem" || c.Target == "getattr":
		if v, err := r.structure(c); v != nil || err != nil {
			return v, err
		}
	}
	args, kwargs, err := c.OpArgs(r.lookup)
	if err != nil {
		return nil, err
	}
	call, err := program.Resolve(r.table, c.Target, args, kwargs)
	if err != nil {
		return nil, err
	}
	if x := r.dataOf(call); x != nil {
		return r.throughData(c, call, x)
	}
	out, err := r.execute(call)
	if err != nil {
		return nil, err
	}
	if call.Def.ID() == "setitem" && call.InPlace {
		return &value{}, nil
	}
	return wrap(call, out), nil
}

// lookup returns what a name stands for as an operator's argument.
func (r *run) lookup(ref program.Ref) (any, error) {
	v := r.env[ref]
	if err := r.refresh(v); err != nil {
		return nil, err
	}
	switch {
	case v.tensor != nil:
		return v.tensor, nil
	case v.tuple != nil:
		list := make([]any, len(v.tuple))
		for i, e := range v.tuple {
			if e.tensor != nil {
				list[i] = e.tensor
			} else {
				list[i] = e.plain
			}
		}
		return list, nil
	case v.module != nil:
		return nil, fmt.Errorf("%w: the module %s as an argument", errUnsupported, ref)
	}
	return v.plain, nil
}

func wrap(call *op.Call, out []op.Value) *value {
	sig := call.Def.Sigs()[0]
	if sig.Plain {
		v, err := out[0].(*eager.Var).Item()
		if err != nil {
			panic(fmt.Sprintf("native: %s: %v", call.Def.ID(), err))
		}
		return &value{plain: v}
	}
	if !sig.Many && (len(sig.Results) == 1 || len(out) == 1 && len(sig.Results) == 2) { // return_indices=False
		return &value{tensor: out[0].(*eager.Var)}
	}
	t := &value{tuple: []*value{}}
	if !sig.Many {
		t.names = sig.Results
	}
	for _, o := range out {
		t.tuple = append(t.tuple, &value{tensor: o.(*eager.Var)})
	}
	return t
}

// structure takes elements of tuples and attributes apart; nil leaves the call
// to the table.
func (r *run) structure(c *program.Call) (*value, error) {
	ref, ok := c.Args[0].(program.Ref)
	if !ok || len(c.Args) != 2 {
		return nil, nil
	}
	v := r.env[ref]
	if err := r.refresh(v); err != nil {
		return nil, err
	}
	if i, ok := c.Args[1].(int64); ok && v.tuple != nil && c.Target == "operator.getitem" {
		if i < 0 {
			i += int64(len(v.tuple))
		}
		if i < 0 || i >= int64(len(v.tuple)) {
			return nil, op.IndexError("tuple index out of range")
		}
		return v.tuple[i], nil
	}
	if c.Target != "getattr" {
		return nil, nil
	}
	name, _ := c.Args[1].(string)
	for i, n := range v.names {
		if n == name {
			return v.tuple[i], nil
		}
	}
	if v.tensor != nil {
		switch name {
		case "shape":
			return intTuple(v.tensor.Shape()), nil
		case "ndim":
			return &value{plain: int64(v.tensor.Dim())}, nil
		case "requires_grad":
			return &value{plain: v.tensor.RequiresGrad()}, nil
		}
	}
	if found, err := r.attribute(v, name); found != nil || err != nil {
		return found, err
	}
	if v.tensor != nil && r.table.Lookup("Tensor."+name) != nil {
		return nil, nil
	}
	return nil, fmt.Errorf("%w: attribute %s", errUnsupported, name)
}

func intTuple(xs []int) *value {
	v := &value{tuple: []*value{}}
	for _, x := range xs {
		v.tuple = append(v.tuple, &value{plain: int64(x)})
	}
	return v
}

// keep returns how the tensors of an outcome are made: copied, where later
// calls may write into them.
func (r *run) keep(mutates bool) func(*tensor.Tensor) *tensor.Tensor {
	if mutates && r.copies {
		return r.session.kept
	}
	return func(t *tensor.Tensor) *tensor.Tensor { return t }
}

// outcome returns the value as it is now.
func (v *value) outcome(keep func(*tensor.Tensor) *tensor.Tensor) backend.Value {
	switch {
	case v.tensor != nil:
		return backend.Value{Tensor: keep(v.tensor.Tensor), RequiresGrad: v.tensor.RequiresGrad()}
	case v.tuple != nil:
		out := backend.Value{IsTuple: true}
		for _, e := range v.tuple {
			out.Tuple = append(out.Tuple, e.outcome(keep))
		}
		return out
	case v.module != nil:
		return backend.Value{Module: true}
	}
	return backend.Value{Plain: v.plain}
}

// backward differentiates the program's Backward entries together.
func (r *run) backward() error {
	p := r.job.Program
	var values, cotangents []op.Value
	for _, w := range p.Backward {
		if err := r.refresh(r.env[w.Value]); err != nil {
			return err
		}
		for _, v := range r.env[w.Value].tensors() {
			if w.Auto && !v.RequiresGrad() {
				continue
			}
			values, cotangents = append(values, v), append(cotangents, cotangent(&w.Cotangent, v.Tensor))
		}
	}
	if len(values) == 0 && !p.Differentiates() {
		return nil
	}
	var grads autograd.Cotangents
	if len(values) > 0 {
		var err error
		if grads, err = r.session.Backward(values, cotangents, p.Second.Dist != ""); err != nil {
			return err
		}
	}
	if err := r.gradients(grads); err != nil {
		return err
	}
	if p.Second.Dist != "" {
		return r.second(grads)
	}
	return r.step(grads)
}

// gradients reports the gradients of the inputs, of the leaves that calls made
// and of the parameters.
func (r *run) gradients(end autograd.Cotangents) (err error) {
	r.out.Grads = map[string]*tensor.Tensor{}
	for i, leaf := range r.leaves {
		if r.job.Program.Inputs[i].RequiresGrad {
			if r.out.Grads[r.job.Program.Inputs[i].Name], err = r.leafGrad(leaf, end); err != nil {
				return err
			}
		}
	}
	params := map[op.Value]bool{}
	for _, m := range r.modules {
		for _, s := range m.module.State() {
			params[m.module.Value(s.Name)] = true
		}
	}
	for _, m := range r.made {
		g, err := r.leafGrad(m.leaf, end)
		if err != nil {
			return err
		}
		if g != nil && m.leaf.RequiresGrad() && !params[m.leaf] {
			r.out.Grads[m.name] = g
		}
	}
	r.out.ParamGrads, err = r.paramGrads(end, true)
	return err
}

// second differentiates the gradients of the inputs together.
func (r *run) second(grads autograd.Cotangents) (err error) {
	var values, cotangents []op.Value
	for i, leaf := range r.leaves {
		if g, ok := grads[leaf].(*eager.Var); ok && leaf.RequiresGrad() && g.RequiresGrad() {
			values, cotangents = append(values, g), append(cotangents, shaped(r.job.Program.SecondCotangent(i), g.Tensor))
		}
	}
	seconds := autograd.Cotangents{}
	if len(values) > 0 {
		if seconds, err = r.session.Backward(values, cotangents, false); err != nil {
			return err
		}
	}
	r.out.SecondGrads = r.inputGrads(seconds)
	r.out.SecondParamGrads, err = r.paramGrads(seconds, false)
	return err
}

// inputGrads returns the gradients of the inputs that require one.
func (r *run) inputGrads(grads autograd.Cotangents) map[string]*tensor.Tensor {
	out := map[string]*tensor.Tensor{}
	for i, leaf := range r.leaves {
		if leaf.RequiresGrad() {
			out[r.job.Program.Inputs[i].Name] = gradOf(grads[leaf])
		}
	}
	return out
}

func gradOf(v op.Value) *tensor.Tensor {
	switch v := v.(type) {
	case *eager.Var:
		return v.Tensor
	case *tensor.Tensor:
		return v
	}
	return nil
}

func (v *value) tensors() []*eager.Var {
	if v.tensor != nil {
		return []*eager.Var{v.tensor}
	}
	var out []*eager.Var
	for _, e := range v.tuple {
		out = append(out, e.tensors()...)
	}
	return out
}

// cotangent returns the start of the fill's stream in the shape and dtype of v;
// without one, a single 1 that stands for every element.
func cotangent(f *program.Fill, v *tensor.Tensor) *tensor.Tensor {
	if f.Dist == "" {
		t, err := tensor.Scalar(v.DType(), 1).Expand(v.Shape()...)
		if err != nil {
			panic(err)
		}
		return t
	}
	n := v.Len()
	if v.DType().IsComplex() {
		n *= 2
	}
	return shaped(f.Cotangent(n), v)
}

// shaped gives a stream the shape and dtype of v; two numbers make a complex one.
func shaped(s []float64, v *tensor.Tensor) *tensor.Tensor {
	t := tensor.Unset(v.DType(), v.Shape(), nil)
	if !v.DType().IsComplex() {
		t.CopyFrom(tensor.Of(tensor.F64, v.Shape(), s))
		return t
	}
	for i := range t.Len() {
		t.Set(i, complex(s[2*i], s[2*i+1]))
	}
	return t
}
