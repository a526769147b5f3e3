package onekernel

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"plumb/backend"
	"plumb/backend/worker"
	"plumb/internal/draw/choice"
	"plumb/internal/judge/verdict"
	"plumb/op"
	"plumb/ops"
	"plumb/program"
	"plumb/tensor"
)

// shape prepares both processes for a case of a form; the outcome is that of a kernel
// which refuses it, nil else.
func (s *Session) shape(ctx context.Context, c *Case) (*backend.Outcome, error) {
	if s.maker.form == nil {
		return nil, nil
	}
	refused, err := s.maker.form.shape(ctx, c)
	if err != nil || refused == "" {
		return nil, err
	}
	return &backend.Outcome{Status: backend.Raised, Class: "refused", Message: refused}, nil
}

// tryKernel runs a case in the kernel's process: every second one in the memory of
// the one before, with the guard pages behind or before it, half of them recorded.
func (s *Session) tryKernel(ctx context.Context, c *Case, job *backend.Job) (*backend.Outcome, observed, error) {
	var seen observed
	told := map[string]any{
		"guard": s.guard(c), "ordinary": c.ordinary(), "still": c.still, "names": c.inputNames(), "reuse": c.again, "record": s.recording(c), "seed": c.Key >> 32, "order": []string{"forward", "reversed", "random"}[c.Index%3],
		"cotangents": c.Cotangents, "work": s.allowance(c), "threads": !c.single && c.many(),
		"cores": c.Index%4 >= 2, "frozen": s.frozen(c),
	}
	if s.told.Destination {
		out, err := s.results(c)
		if err != nil {
			return nil, seen, err
		}
		told["out"] = out
	}
	if err := s.seal(ctx); err != nil {
		return nil, seen, err
	}
	var none struct{}
	if err := s.kernel.ask(ctx, map[string]any{"prepare": told}, &none); err != nil {
		return nil, seen, err
	}
	s.hangs()
	o, err := s.kernel.Run(ctx, job)
	s.kernel.Hung(0, 0)
	if err != nil {
		return nil, seen, err
	}
	if o.Status == backend.Crashed || o.Status == backend.TimedOut {
		if err := s.again(ctx); err != nil {
			return nil, seen, err
		}
		if _, aligns := toldAt(o.Message, misaligned); aligns && !s.aligned {
			s.aligned = true
			s.notes = append(s.notes, "wants memory as aligned as PyTorch's: the pages without access lie before its arguments only")
			return s.tryKernel(ctx, c, job)
		}
		if o.Status == backend.TimedOut && !s.hung {
			s.hung = true
			return s.onceMore(ctx, c, job, o)
		}
		return o, seen, nil
	}
	err = s.kernel.ask(ctx, map[string]any{"observe": nil}, &seen)
	var lost *worker.Lost
	if errors.As(err, &lost) {
		return &backend.Outcome{Status: backend.Crashed, Class: lost.Class, Message: "after the call: " + lost.Message}, seen, s.again(ctx)
	}
	if err == nil && seen.Builds != "" && s.sandbox.relax(seen.Builds) {
		s.kernel.Restart()
		if err := s.again(ctx); err != nil {
			return nil, seen, err
		}
		return s.tryKernel(ctx, c, job)
	}
	return o, seen, err
}

// onceMore makes a call that has hung in a new process too: what writes where it may not, as
// into an allocator's own memory, dies of it in one and waits for ever in another.
func (s *Session) onceMore(ctx context.Context, c *Case, job *backend.Job, hung *backend.Outcome) (*backend.Outcome, observed, error) {
	alone := *c
	alone.again = false
	if refused, err := s.shape(ctx, &alone); refused != nil || err != nil {
		return hung, observed{}, err
	}
	o, _, err := s.tryKernel(ctx, &alone, job)
	if err == nil && o.Status != backend.Crashed {
		o = hung
	}
	return o, observed{}, err
}

// asleep and busy are the parts of the time that a call has after which one hangs that has
// done nothing, or computed, all the while; firstAsleep and firstBusy those of the first.
const (
	asleep, busy           = 5, 3
	firstAsleep, firstBusy = 3, 2
)

// hangs says when a call hangs: before its time is over, where the processor is others'
// meanwhile.
func (s *Session) hangs() { s.kernel.Hung(s.patience()) }

// patience is for how long a call may do nothing, and compute; 0 for all of its time. The
// first one may compile, and wait for a process that does where it can start one; those of
// a kernel that builds in calls may too.
func (s *Session) patience() (idle, computing time.Duration) {
	whole := s.cfg.Timeout
	switch {
	case s.sandbox.builds != "":
		return whole, 0
	case len(s.outcomes) == 0:
		if idle = whole; slices.Contains(s.sandbox.told.Held, "processes") {
			idle /= firstAsleep
		}
		if !s.told.Compiles {
			computing = whole / firstBusy
		}
		return idle, computing
	case s.launches(): // one program of Triton's interpreter may take seconds
		return whole / asleep, 0
	}
	return whole / asleep, whole / busy
}

// repeat makes an equal call, with programs in another order, and says where a bit of
// its results is another one.
func (s *Session) repeat(ctx context.Context, r *result) error {
	if !r.fine() {
		return nil
	}
	other := *r.Case
	other.Index++ // by which order and memory go
	o, _, err := s.tryKernel(ctx, &other, backend.NewJob(r.program))
	if err != nil || o.Status != backend.OK {
		return err
	}
	for i, v := range r.kernel.Values {
		for k, t := range leaves(v) {
			if !sameBits(t, leaves(o.Values[i])[k]) {
				f := finding{"nondeterministic", "gives other bits when it is called again with equal arguments", r}
				r.problems = append(r.problems, f)
				s.add(f)
				return nil
			}
		}
	}
	return nil
}

// remembers reports whether the kernel gives another result in a process that has not seen
// the calls before: what it gave was of one of these. It is asked once.
func (s *Session) remembers(ctx context.Context, r *result) (bool, error) {
	if s.remembered != nil {
		return *s.remembered, nil
	}
	s.kernel.Restart()
	if err := s.again(ctx); err != nil {
		return false, err
	}
	alone := *r.Case
	alone.again = false
	if refused, err := s.shape(ctx, &alone); refused != nil || err != nil {
		return false, err
	}
	o, _, err := s.tryKernel(ctx, &alone, backend.NewJob(r.program))
	if err != nil {
		return false, err
	}
	differs := o.Status == backend.OK && !slices.EqualFunc(all(o), all(r.kernel), sameBits)
	s.remembered = &differs
	return differs, nil
}

// clocked reports whether the kernel's result is right by the clock of its import.
func (s *Session) clocked(ctx context.Context, r *result) (bool, error) {
	early := *r.Case
	early.still = true
	job := backend.NewJob(r.program)
	o, _, err := s.tryKernel(ctx, &early, job)
	if err != nil || o.Status != backend.OK {
		return false, err
	}
	v, err := s.judge.Judge(ctx, job, r.ref, o, s.asks)
	return err == nil && v.Word == verdict.Aligned, err
}

// races reports whether a result that is wrong with two threads is right with one.
func (s *Session) races(ctx context.Context, r *result) (bool, error) {
	if !r.seen.Threads {
		return false, nil
	}
	single := *r.Case
	single.single, single.again = true, false
	if refused, err := s.shape(ctx, &single); refused != nil || err != nil {
		return false, err
	}
	job := backend.NewJob(r.program)
	o, _, err := s.tryKernel(ctx, &single, job)
	if err != nil || o.Status != backend.OK {
		return false, err
	}
	v, err := s.judge.Judge(ctx, job, r.ref, o, s.asks)
	return err == nil && v.Word == verdict.Aligned, err
}

// many reports whether a case is so large that a kernel of native code has two threads in it:
// work that takes no longer than to wake them shows no race.
func (c *Case) many() bool { return slices.Max(append(c.lengths(), 0)) > usualBlock }

// all lists the tensors of results.
func all(o *backend.Outcome) []*tensor.Tensor {
	var found []*tensor.Tensor
	for _, v := range o.Values {
		found = append(found, leaves(v)...)
	}
	return found
}

func sameBits(a, b *tensor.Tensor) bool {
	return a.DType() == b.DType() && slices.Equal(a.Shape(), b.Shape()) && bytes.Equal(a.Contiguous().Storage(), b.Contiguous().Storage())
}

// guard is the side of a case's arguments on which the page without access lies.
func (s *Session) guard(c *Case) string {
	if s.aligned || c.Index%2 == 1 || c.fenced {
		return "start"
	}
	return "end"
}

// ordinary reports whether a case's arguments lie where PyTorch puts tensors, and new memory holds
// zeros: what a kernel knows its judge's memory by is not in all of its calls. None of these
// cases has calls that follow in its memory.
func (c *Case) ordinary() bool { return c.Index%9 == 3 && !c.again && !c.fenced }

func (c *Case) inputNames() []string {
	var all []string
	for i := range c.program.Inputs {
		all = append(all, c.program.Inputs[i].Name)
	}
	return all
}

// frozen reports whether a case's call is made under torch.no_grad(), as those of a model that
// is used are: half of those without gradients.
func (s *Session) frozen(c *Case) bool { return !s.thawed && !c.Grad && c.Index%2 == 1 }

// thaw makes a call that was refused under torch.no_grad() again without: what computes by
// gradients is not refused for that.
func (s *Session) thaw(ctx context.Context, c *Case, job *backend.Job, o *backend.Outcome, seen observed) (*backend.Outcome, observed, error) {
	if o.Status != backend.Raised || !s.frozen(c) || s.thaws == mostThaws {
		return o, seen, nil
	}
	s.thaws++
	s.thawed = true
	again, seenAgain, err := s.tryKernel(ctx, c, job)
	if s.thawed = err == nil && again.Status == backend.OK; s.thawed {
		return again, seenAgain, nil
	}
	return o, seen, err
}

// mostThaws is how many calls are made again for what may be no_grad.
const mostThaws = 4

// training reports whether the model of a problem's case trains.
func (c *Case) training() bool { return !c.eval }

// again loads the kernel in a new process.
func (s *Session) again(ctx context.Context) error {
	s.sandbox.sealed = false
	var told described
	if err := s.load(ctx, &told); err != nil {
		return fmt.Errorf("the kernel could not be loaded again: %w", err)
	}
	if told.Failed != "" {
		return fmt.Errorf("the kernel could not be loaded again: %s", told.Failed)
	}
	if p, ok := s.maker.form.(*problem); ok {
		p.kernel = "" // its model went with the process
	}
	return nil
}

// tryReference runs a case in the reference's process.
func (s *Session) tryReference(ctx context.Context, job *backend.Job) (*backend.Outcome, observed, error) {
	var seen observed
	o, err := s.reference.Run(ctx, job)
	if err == nil && o.Status == backend.OK {
		err = s.reference.ask(ctx, map[string]any{"observe": nil}, &seen)
	}
	return o, seen, err
}

// results are the dtypes, shapes and strides of a case's results, for a kernel that
// writes into its first arguments.
func (s *Session) results(c *Case) ([][3]any, error) {
	var metas []op.Meta
	if s.cfg.Reference == nil {
		symbols := map[program.Ref]*program.Symbol{}
		for i := range c.program.Inputs {
			v := c.program.Inputs[i].Symbol()
			symbols[v.Ref] = v
		}
		args, kwargs, err := c.program.Calls[0].OpArgs(func(r program.Ref) (any, error) { return symbols[r], nil })
		if err != nil {
			return nil, err
		}
		bound, err := program.Resolve(ops.Table(), c.program.Calls[0].Target, args, kwargs)
		if err == nil {
			metas, err = bound.Infer()
		}
		if err != nil {
			return nil, err
		}
	} else {
		p := c.program.Clone()
		forward(p)
		o, err := s.reference.Run(context.Background(), backend.NewJob(p))
		if err != nil {
			return nil, err
		}
		for _, v := range o.Values {
			for _, t := range leaves(v) {
				metas = append(metas, op.Meta{DType: t.DType(), Shape: t.Shape()})
			}
		}
	}
	out := [][3]any{}
	for _, m := range metas {
		out = append(out, [3]any{m.DType.String(), append([]int{}, m.Shape...), nil}) // of a scalar too
	}
	return out, nil
}

func leaves(v backend.Value) []*tensor.Tensor {
	if v.Tensor != nil {
		return []*tensor.Tensor{v.Tensor}
	}
	var all []*tensor.Tensor
	for _, e := range v.Tuple {
		all = append(all, leaves(e)...)
	}
	return all
}

// recorded reports whether the operators of a case's call are.
func (c *Case) recorded() bool { return c.Index%2 == 0 || c.Index < 4 }

// fixed is the signature that does not depend on a draw.
func (sig *Signature) fixed(*choice.Source, tensor.DType) (*Signature, error) { return sig, nil }
