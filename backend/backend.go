// Package backend is the waist of Plumb: anything that can run a program. An
// error from a backend is a fault of the harness; what the subject did wrong
// is part of the Outcome.
package backend

import (
	"context"
	"fmt"
	"io"
	"time"

	"plumb/op"
	"plumb/program"
	"plumb/tensor"
)

// Together is the feature of a subject that names the mode in which it may
// compile the cases of an exchange as one function.
const Together = "together"

// Info says what a backend is.
type Info struct {
	Name     string            `json:"name"`    // "native", "torch"
	Version  string            `json:"version"` // of the subject, such as "1.13.1"
	Devices  []string          `json:"devices"`
	Modes    []string          `json:"modes"`          // "eager", "graph", …
	Mode     string            `json:"mode,omitempty"` // of Modes, in which it runs; empty for "eager"
	Features map[string]string `json:"features,omitempty"`
	// ForwardOnly says that it computes no gradients: it is asked for none.
	ForwardOnly bool `json:"forward_only,omitempty"`
	// NoElements says that its tensors have none: shapes and dtypes alone are compared.
	NoElements bool `json:"no_elements,omitempty"`
	// Permissive says that its interface is its own: what PyTorch refuses it may take.
	Permissive bool `json:"permissive,omitempty"`
	// OwnForms says that it has PyTorch's interface, but forms of arguments of its own.
	OwnForms bool `json:"own_forms,omitempty"`
	// Compiles says that in its mode it compiles each new program, which is dear.
	Compiles bool `json:"compiles,omitempty"`
}

// Job is one program to run.
type Job struct {
	Program *program.Program
	// Inputs are the materialised inputs, in order. A backend must not change
	// the caller's tensors even when the program works in place.
	Inputs []*tensor.Tensor
	// State holds the initial parameters and buffers of each module, by the
	// name of the constructing call, as the reference reported them. Nil for
	// the reference itself, which makes its own from the program's seed.
	State map[string]State
	// Reach is how many elements the values that are differentiated may have, as
	// far as it is known: a subject that has to say so first computes twice.
	Reach int
	// Cotangents is the dtype of all values that are differentiated, as far as it is
	// known: cotangents then need not cross in float64.
	Cotangents tensor.DType
	// Measure asks how long the last call takes; nil for not.
	Measure *Measure
	// Wanted are the calls whose values alone are asked for; nil for all that a run
	// tells. A backend may tell more.
	Wanted []int
	// Alone asks for a process of the subject's that has run nothing before.
	Alone bool
}

// Reals returns how many real numbers a tensor's elements are.
func Reals(t *tensor.Tensor) int {
	if t.DType().IsComplex() {
		return 2 * t.Len()
	}
	return t.Len()
}

// Reach is how many numbers a value of an outcome that may be differentiated has
// at most; 0 where there is none.
func Reach(p *program.Program, o *Outcome) int {
	n := 0
	for i := range o.Values {
		if t := o.Values[i].Tensor; len(p.Backward) > 0 && t != nil {
			n = max(n, Reals(t))
		}
	}
	return n
}

// CotangentType is the dtype of all values of an outcome that are differentiated;
// tensor.Invalid where they have several, or one of them is no call's tensor.
func CotangentType(p *program.Program, o *Outcome) tensor.DType {
	known := map[program.Ref]tensor.DType{}
	for i := range min(len(o.Values), len(p.Calls)) {
		if t := o.Values[i].Tensor; t != nil {
			known[program.Ref(p.Calls[i].Result)] = t.DType()
		}
	}
	all := tensor.Invalid
	for i, b := range p.Backward {
		d := known[b.Value]
		if i > 0 && d != all {
			return tensor.Invalid
		}
		all = d
	}
	return all
}

// Measure is how a program's last call is measured, after the program has run.
type Measure struct {
	Times    int  // the call is made again
	Backward bool // each time with the gradients of its float results by its float arguments
}

// OverRanks is the feature of a subject that runs programs on tensors over ranks,
// and takes what a program says of how they lie: its placement.
const OverRanks = "ranks"

// NewJob returns a job with the inputs that the program describes.
func NewJob(p *program.Program) *Job {
	job := &Job{Program: p}
	for i := range p.Inputs {
		job.Inputs = append(job.Inputs, p.Inputs[i].Materialize())
	}
	return job
}

// State is a module's parameters and buffers under PyTorch's names, in
// PyTorch's order.
type State []Named

// Named is a tensor with its name in a module's state.
type Named struct {
	Name   string
	Tensor *tensor.Tensor
}

// Status says how a run ended.
type Status string

// The ways in which a run ends.
const (
	OK          Status = "ok"
	Raised      Status = "raised" // an exception: a rejection, seen from the program
	Crashed     Status = "crash"
	TimedOut    Status = "timeout"
	OutOfMemory Status = "oom"
	Unsupported Status = "unsupported" // the backend does not know a name or a dtype
)

// Outcome is what a backend did with a program.
type Outcome struct {
	Status Status
	// Class and Message describe the exception, or why the status is not OK;
	// Call is the index of the call that raised, len(Calls) for the backward pass.
	Class   string
	Message string
	Call    int
	// NoKernel says that the subject raised because it has no kernel for a legal
	// call, or no gradient: there is nothing to align with.
	NoKernel bool
	// Refused says of an unsupported call that the subject itself refused it: no
	// fault where the reference takes it, the same answer where that refuses it too.
	Refused bool
	// Values holds one value per finished call.
	Values []Value
	// Initial holds each module's state before the first call that used it, by
	// the name of the constructing call.
	Initial map[string]State
	// Slots hold every other tensor: changes by calls, the modules' state after
	// the last call, gradients, parameters after a step. An input that requires a
	// gradient has a slot for it, whether one arrived or not.
	Slots []Slot
	// Watched says that the backend tells which tensors a call has changed: those
	// that have a slot of PartChange.
	Watched bool
	// ForwardOnly says that gradients were not asked of the subject, which has
	// none: nobody's gradients are compared, nor requires_grad.
	ForwardOnly bool
	// NoGradients is why a subject that has gradients has none here.
	NoGradients string
	// Derived says that the gradients are such a program's: nobody's requires_grad
	// is compared.
	Derived bool
	// NoElements says that the subject's tensors have none, but shapes and dtypes.
	NoElements bool
	// Permissive says that the subject's interface is its own: what PyTorch refuses
	// it may take.
	Permissive bool
	// OwnForms says that it may take forms of arguments that PyTorch refuses with a
	// TypeError, and that its exceptions have classes of its own.
	OwnForms bool
	// Beside says that processes were left running beside the subject's, which may
	// have reached what it computed.
	Beside bool
	// Computed are the calls whose values the subject computed, where those of others are
	// what the reference has; nil for all.
	Computed []int
	// Unread opens the elements of tensors that are not in memory, once each; such
	// a tensor has dtype and shape alone. Close tells what is wrong with them.
	Unread map[*tensor.Tensor]func() (io.ReadCloser, error)
	// Blame names the pass of a graph with which the subject does not compute
	// what it does without, and Evidence says where; both empty where none is.
	Blame    string
	Evidence string
	Elapsed  time.Duration
	// CPU is the processor time of the calls and the backward pass, of all threads;
	// 0 where the subject does not tell.
	CPU time.Duration
	// Measured is the time of the calls that Job.Measure asks for; 0 where the
	// backend does not measure, negative where it asks for gradients and there
	// are none.
	Measured time.Duration
}

// Value is the result of a call: exactly one of a tensor, a tuple, or a plain
// Python value (nil, bool, int64, float64, complex128, string); a module's
// constructor gives Module.
type Value struct {
	Tensor       *tensor.Tensor
	RequiresGrad bool // of Tensor
	IsTuple      bool
	Tuple        []Value
	Module       bool
	Plain        any
}

// Backend runs programs. Run is called from one goroutine at a time.
type Backend interface {
	Info() Info
	Run(ctx context.Context, job *Job) (*Outcome, error)
	Close() error
}

// Sharer is a backend that shares memory with its subject.
type Sharer interface {
	Backend
	// RunShared runs jobs without inputs, which it draws itself. Inputs and
	// outcomes are valid until Release, or another run.
	RunShared(ctx context.Context, jobs []*Job) ([]*Outcome, error)
	// RunHeld is Run whose outcome is valid until Release, or another run.
	RunHeld(ctx context.Context, job *Job) (*Outcome, error)
	// RunUninitialized is RunShared with uninitialised floats.
	RunUninitialized(ctx context.Context, jobs []*Job) ([]*Outcome, error)
	Release()
}

// Batcher is a Backend that runs several jobs in one exchange.
type Batcher interface {
	Backend
	RunBatch(ctx context.Context, jobs []*Job) ([]*Outcome, error)
}

// RunBatch runs jobs on b, in one exchange where it has that. The error is the
// first of its harness; there are no outcomes then.
func RunBatch(ctx context.Context, b Backend, jobs []*Job) ([]*Outcome, error) {
	if batcher, ok := b.(Batcher); ok && len(jobs) > 0 {
		return batcher.RunBatch(ctx, jobs)
	}
	return RunEach(ctx, b, jobs)
}

// RunEach is RunBatch one by one.
func RunEach(ctx context.Context, b Backend, jobs []*Job) ([]*Outcome, error) {
	outcomes := make([]*Outcome, len(jobs))
	for i, job := range jobs {
		var err error
		if outcomes[i], err = b.Run(ctx, job); err != nil {
			return nil, err
		}
	}
	return outcomes, nil
}

// Signatures tells the parameters of a public name; nil when it is unknown.
type Signatures interface {
	Signatures(name string) ([]*op.Sig, error)
}

// SampleInputs is a backend that has PyTorch's own sample inputs, of its package
// torch.testing.
type SampleInputs interface {
	// OpInfo lists their entries.
	OpInfo() ([]OpInfo, error)
	// OpInfoCases returns the programs of an entry's samples in a dtype, or, where
	// it is tensor.Invalid, of calls that PyTorch refuses; and how many samples
	// are no programs, by reason.
	OpInfoCases(entry int, dt tensor.DType, seed uint32) ([]*program.Program, map[string]int, error)
}

// OpInfo is an entry of PyTorch's sample inputs: an operator, or a variant of one.
type OpInfo struct {
	Name    string
	DTypes  []tensor.DType
	Illegal bool // it has calls that are refused
}

// Fault is a failure of the harness, not of the subject: a backend that
// cannot be started, or that breaks the protocol.
type Fault struct {
	Backend string
	Err     error
	Fix     string // the command that repairs it, when there is one
}

// Error returns the failure and its fix.
func (f *Fault) Error() string {
	s := fmt.Sprintf("%s: %v", f.Backend, f.Err)
	if f.Fix != "" {
		s += "\n  fix: " + f.Fix
	}
	return s
}

// Unwrap returns the cause.
func (f *Fault) Unwrap() error { return f.Err }
