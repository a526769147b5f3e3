// Package interp runs programs call by call over a table of operators and one
// of modules. What a call computes is up to the session: results, a graph of
// them, or something beside them such as the bounds of their errors.
package interp

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"plumb/backend"
	"plumb/graph"
	"plumb/internal/eager"
	"plumb/internal/inplace"
	"plumb/internal/refusal"
	"plumb/nn"
	"plumb/op"
	"plumb/program"
	"plumb/tensor"
)

// Interpreter runs programs.
type Interpreter struct {
	table   *op.Table
	modules *nn.Table
	int32s  bool // see TakingInt32
	trusts  bool // see Trusting
	device  *op.Device
	stream  int
}

// New returns an interpreter over a table of operators and one of modules.
func New(table *op.Table, modules *nn.Table) *Interpreter {
	return &Interpreter{table: table, modules: modules}
}

// TakingInt32 returns the interpreter with operators that take indices of int32
// wherever they take int64.
func (in *Interpreter) TakingInt32() *Interpreter {
	own := *in
	own.int32s = true
	return &own
}

// Trusting returns the interpreter that takes it for granted that kernels write to
// no argument but those that their operators name: where a program calls none of
// these, it does not look at the bytes of all arguments around each call.
func (in *Interpreter) Trusting() *Interpreter {
	own := *in
	own.trusts = true
	return &own
}

// On returns the interpreter with the tensors of programs on a stream of a device.
func (in *Interpreter) On(d *op.Device, stream int) *Interpreter {
	own := *in
	own.device, own.stream = d, stream
	return &own
}

// Eager computes the program's results at once and reports what its calls change.
func (in *Interpreter) Eager(ctx context.Context, job *backend.Job) *backend.Outcome {
	return in.Computed(ctx, job, (*op.Call).Execute)
}

// Computed is Eager where compute takes the place of op.Call.Execute.
func (in *Interpreter) Computed(ctx context.Context, job *backend.Job, compute func(call *op.Call) ([]*tensor.Tensor, error)) *backend.Outcome {
	return in.computed(ctx, job, compute, nil)
}

// OnRanks is Eager over ranks.
func (in *Interpreter) OnRanks(ctx context.Context, job *backend.Job, ranks Ranks) *backend.Outcome {
	return in.computed(ctx, job, ranks.Compute, ranks)
}

func (in *Interpreter) computed(ctx context.Context, job *backend.Job, compute func(call *op.Call) ([]*tensor.Tensor, error), ranks Ranks) *backend.Outcome {
	s := eager.New(in.table)
	s.Compute(compute)
	s.Seed(job.Program.Seed)
	s.On(in.device, in.stream)
	r := in.Start(job, EagerSession{s})
	r.ranks = ranks
	w := &watch{Run: r, marks: map[program.Ref]mark{}, spoilt: map[int]uint64{}, blind: in.trusts && in.pure(job.Program)}
	r.observer = w
	out := r.Outcome(ctx)
	w.restore()
	return brought(out)
}

// brought returns an outcome with its tensors on the host; that of a device which
// cannot bring them there is Crashed.
func brought(out *backend.Outcome) (whole *backend.Outcome) {
	defer func() {
		if p := recover(); p != nil {
			whole = &backend.Outcome{Status: backend.Crashed, Class: "device", Message: fmt.Sprint(p)}
		}
	}()
	mapTensors(out, here)
	return out
}

// Start returns a run of the program, before its first call.
func (in *Interpreter) Start(job *backend.Job, s Session) *Run {
	return &Run{Interpreter: in, job: job, session: s, env: map[program.Ref]*value{}, out: &backend.Outcome{Status: backend.OK}}
}

// Run is one run of a program.
type Run struct {
	*Interpreter
	job      *backend.Job
	session  Session
	ranks    Ranks          // nil: there are none
	observer observer       // nil: nobody asks what calls change
	aside    time.Duration  // spent on the observer
	space    *inplace.Space // nil: no call of the program may change a tensor
	env      map[program.Ref]*value
	leaves   leaves
	behind   behindAutograd
	built    []builtModule
	out      *backend.Outcome
}

// observer follows what the program's names stand for.
type observer interface {
	// named is told that a name stands for something new.
	named(name string)
	// called is told of a call that was just run.
	called(c *program.Call)
}

// Calls counts the calls that are done.
func (r *Run) Calls() int { return len(r.out.Values) }

// Names returns the name of each tensor that has one, the first of several.
func (r *Run) Names() map[op.Value]program.Ref {
	names := map[op.Value]program.Ref{}
	for name, v := range r.env {
		if v.tensor == nil {
			continue
		}
		if other, ok := names[v.tensor]; !ok || name < other {
			names[v.tensor] = name
		}
	}
	return names
}

// Variable returns the tensor that a name stands for; nil if it is none.
func (r *Run) Variable(name program.Ref) *eager.Var {
	if v := r.env[name]; v != nil {
		return v.tensor
	}
	return nil
}

// Outcome runs the program. A panic of an operator is the outcome Crashed.
func (r *Run) Outcome(ctx context.Context) (out *backend.Outcome) {
	start := time.Now()
	defer func() {
		if p := recover(); p != nil {
			r.out.Status, r.out.Class, r.out.Message = backend.Crashed, "panic", fmt.Sprintf("%v\n%s", p, debug.Stack())
		}
		r.out.Elapsed = time.Since(start) - r.aside
		out = r.out
	}()
	r.walk(ctx)
	return r.out
}

// walk runs the calls in order, then the backward pass.
func (r *Run) walk(ctx context.Context) {
	p := r.job.Program
	if r.changes() {
		r.space = inplace.New(r.table, host{r.session})
	}
	mutates := r.mutates()
	r.inputs(mutates)
	for i := range p.Calls {
		if err := ctx.Err(); err != nil {
			r.out.Status, r.out.Message, r.out.Call = backend.TimedOut, err.Error(), i
			return
		}
		v, err := r.scoped(&p.Calls[i])
		if err != nil {
			Fail(r.out, i, err)
			return
		}
		r.env[program.Ref(p.Calls[i].Result)] = v
		if err := r.refresh(v); err != nil {
			Fail(r.out, i, err)
			return
		}
		r.out.Values = append(r.out.Values, v.outcome(r.kept(mutates)))
		r.untimed(func(o observer) { o.called(&p.Calls[i]) })
	}
	err := r.finalState()
	if err == nil {
		err = r.backward()
	}
	if err != nil {
		Fail(r.out, len(p.Calls), err)
		return
	}
	if _, computes := r.session.(EagerSession); computes && r.job.Measure != nil {
		if err := r.measure(ctx, r.job.Measure); err != nil {
			Fail(r.out, len(p.Calls)-1, err)
		}
	}
}

// mutates reports whether kernels of the program may write into arguments.
func (r *Run) mutates() bool {
	return slices.ContainsFunc(r.job.Program.Calls, func(c program.Call) bool {
		if m := r.modules.Lookup(c.Target); m != nil {
			return m.Mutates
		}
		return slices.ContainsFunc(r.table.Lookup(c.Target), func(d *op.Def) bool { return len(d.Mutates) > 0 })
	})
}

// inputs makes the program's inputs variables, copied where kernels write into them.
func (r *Run) inputs(mutates bool) {
	p := r.job.Program
	for i := range p.Inputs {
		t := r.job.Inputs[i]
		if mutates {
			t = copyOf(t)
		}
		v := r.session.Leaf(t, p.Inputs[i].RequiresGrad)
		r.leaves.inputs = append(r.leaves.inputs, v)
		if r.space != nil {
			r.space.Leaf(v)
		}
		r.env[program.Ref(p.Inputs[i].Name)] = &value{tensor: v}
		r.untimed(func(o observer) { o.named(p.Inputs[i].Name) })
	}
}

// kept returns how the tensors of an outcome are made: copied, where later
// calls may write into them.
func (r *Run) kept(mutates bool) func(*tensor.Tensor) *tensor.Tensor {
	if mutates {
		return r.session.Kept
	}
	return func(t *tensor.Tensor) *tensor.Tensor { return t }
}

// untimed tells the observer something, which is no part of the time of the run.
func (r *Run) untimed(tell func(observer)) {
	if r.observer == nil {
		return
	}
	start := time.Now()
	tell(r.observer)
	r.aside += time.Since(start)
}

// Fail makes an outcome that of a program whose call failed: a rejection, or
// something unsupported.
func Fail(out *backend.Outcome, call int, err error) {
	out.Call, out.Message = call, err.Error()
	var e *op.Error
	var capture *graph.CaptureError
	switch {
	case errors.As(err, &e):
		out.Status, out.Class = backend.Raised, e.Class
		refusal.Classify(out)
	case errors.As(err, &capture):
		out.Status = backend.Unsupported
	case errors.Is(err, context.DeadlineExceeded):
		out.Status = backend.TimedOut
	case errors.Is(err, op.ErrUnknown) || errors.Is(err, op.ErrNoElements) || errors.Is(err, inplace.ErrUnsupported) || errors.Is(err, nn.ErrUnsupported) || errors.Is(err, errUnsupported):
		out.Status = backend.Unsupported
	default:
		out.Status, out.Class = backend.Crashed, "error"
	}
}

var errUnsupported = errors.New("not supported by native")
