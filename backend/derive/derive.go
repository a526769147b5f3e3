// Package derive gives a subject that computes no gradients those of Plumb's
// rules: each is a program of forward calls, which the subject runs.
package derive

import (
	"context"
	"fmt"

	"plumb/backend"
	"plumb/internal/interp"
	"plumb/nn"
	"plumb/op"
	"plumb/program"
)

// Subject is what a worker is.
type Subject interface {
	backend.Batcher
	backend.Modal
	backend.Signatures
}

// Backend is a subject, with gradients that it computes by its forward calls.
type Backend struct {
	Subject
	run   backend.Batcher // the subject in a mode
	table *op.Table
	in    *interp.Interpreter
}

// New returns a subject with gradients, by the rules of a table of operators.
func New(s Subject, table *op.Table, modules *nn.Table) *Backend {
	return &Backend{s, s, table, interp.New(table, modules)}
}

// Info describes the subject.
func (b *Backend) Info() backend.Info {
	info := b.run.Info()
	info.ForwardOnly = false
	return info
}

// In returns the subject in another mode, in which it computes gradients too.
func (b *Backend) In(mode string) (backend.Backend, error) {
	m, err := b.Subject.In(mode)
	if err != nil {
		return nil, err
	}
	return &inMode{Backend{b.Subject, m.(backend.Batcher), b.table, b.in}}, nil
}

// inMode leaves the subject to the backend that it was got from.
type inMode struct{ Backend }

// Close does nothing.
func (*inMode) Close() error { return nil }

// Run runs one program.
func (b *Backend) Run(ctx context.Context, job *backend.Job) (*backend.Outcome, error) {
	outs, err := b.RunBatch(ctx, []*backend.Job{job})
	if err != nil {
		return nil, err
	}
	return outs[0], nil
}

// RunBatch runs the jobs forward, and then the programs of their gradients.
func (b *Backend) RunBatch(ctx context.Context, jobs []*backend.Job) ([]*backend.Outcome, error) {
	outs, err := b.run.RunBatch(ctx, jobs)
	if err != nil {
		return nil, err
	}
	var of []int
	var gradients []*gradient
	var next []*backend.Job
	for i, job := range jobs {
		whole := asks(job.Program) && outs[i].Status == backend.Unsupported
		if !whole && (!job.Program.Differentiates() || !outs[i].ForwardOnly || outs[i].Status != backend.OK) {
			continue
		}
		g, err := b.gradient(ctx, job, whole)
		if err != nil {
			lacks(outs[i], whole, err.Error())
			continue
		}
		of, gradients, next = append(of, i), append(gradients, g), append(next, g.job)
	}
	if len(next) == 0 {
		return outs, nil
	}
	found, err := b.run.RunBatch(ctx, next)
	if err != nil {
		return nil, err
	}
	for k, i := range of {
		gradients[k].into(outs[i], found[k])
	}
	return outs, nil
}

// into puts the gradients that a subject has computed into the outcome of its
// forward calls. What it does not have leaves that forward only.
func (g *gradient) into(out, found *backend.Outcome) {
	out.Elapsed, out.CPU = out.Elapsed+found.Elapsed, out.CPU+found.CPU
	switch found.Status {
	case backend.Unsupported:
		lacks(out, g.returned != nil, found.Message)
	case backend.OK:
		out.ForwardOnly, out.Derived = false, true
		if g.returned != nil {
			out.Status, out.Message, out.Call, out.Values = backend.OK, "", 0, g.values(g.returned, found)
		}
		for _, s := range g.slots {
			out.Add(s.Place, s.tensor(found))
		}
	default:
		out.Status, out.Class, out.Message, out.Call = found.Status, found.Class, found.Message, g.calls
		if found.Call < len(g.job.Program.Calls) {
			out.Message = fmt.Sprintf("in %s of the gradient: %s", g.job.Program.Calls[found.Call].Target, found.Message)
		}
	}
}

// lacks notes why there are no gradients, or no program that asks for them.
func lacks(out *backend.Outcome, whole bool, why string) {
	if whole {
		out.Class, out.Message, out.Refused = "", why, false
		return
	}
	out.NoGradients = why
}

// index returns where the result of each call stands.
func index(p *program.Program) map[program.Ref]int {
	at := map[program.Ref]int{}
	for i := range p.Calls {
		at[program.Ref(p.Calls[i].Result)] = i
	}
	return at
}
