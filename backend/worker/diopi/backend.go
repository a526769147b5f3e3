// Package diopi runs programs on a library in C with DIOPI's interface. A child
// process, built from child/child.c with the user's compiler, loads the library and calls
// one function at a time; which one computes an operator, and with what, is data:
// table.txt.
package diopi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"plumb/backend"
	"plumb/backend/worker"
	"plumb/internal/interp"
	"plumb/nn"
	"plumb/op"
	"plumb/program"
	"plumb/tensor"
)

// Backend is a library. Modules, views and the order of gradients are Plumb's own;
// what is computed the library computes.
type Backend struct {
	child   *worker.Worker
	forward *interp.Interpreter // every operator of the table is one step
	tape    *interp.Interpreter // but those that have no gradient function
	ctx     context.Context     // of the run
	calls   int                 // of the library, in the run
	seed    uint64              // of the run
	tapes   bool                // the program of the run is differentiated
	changes bool                // the program of the run may change a tensor in place
	lacks   map[string]bool     // functions that the library was found not to have
	lacked  string              // what was said of the first of these in the run
	inRule  bool                // a gradient's rule runs
	saved   map[*tensor.Tensor][]*tensor.Tensor
	ended   *backend.Outcome // how a call of the library failed in the run
}

// Open starts the child with a library. The configuration's Command is not read.
func Open(ctx context.Context, library string, ops *op.Table, modules *nn.Table, c worker.Config) (*Backend, error) {
	child, err := Child()
	if err != nil {
		return nil, &backend.Fault{Backend: "diopi", Err: err}
	}
	c.Command = []string{child, library}
	b := &Backend{ctx: ctx, lacks: map[string]bool{}}
	if b.child, err = worker.Open(ctx, c); err != nil {
		return nil, err
	}
	for _, t := range []struct {
		in       **interp.Interpreter
		gradient bool
	}{{&b.forward, false}, {&b.tape, true}} {
		steps, err := b.steps(ops, t.gradient)
		if err != nil {
			return nil, errors.Join(err, b.child.Close())
		}
		*t.in = interp.New(steps, modules)
	}
	return b, nil
}

// steps is the table of operators with those of the library as steps of their own.
func (b *Backend) steps(ops *op.Table, gradient bool) (*op.Table, error) {
	var defs []*op.Def
	for _, def := range ops.Defs() {
		d := *def
		defs = append(defs, &d)
		if rule := d.Grad; rule != nil {
			d.Grad = func(g *op.Grad) { b.within(func() { rule(g) }) }
		}
		entries := slices.Concat(table.forward[d.ID()], table.inPlace[d.ID()])
		if entries == nil || d.Compose != nil && slices.Contains(table.host, d.ID()) && !slices.ContainsFunc(entries, b.has) {
			continue
		}
		if own := d.Itself; own != nil { // a function is asked for what is its input, too
			d.Itself = func(a op.Args) bool { return b.changes && own(a) }
		}
		differentiates := table.backward[d.ID()] != nil
		switch {
		case d.Compose != nil && !(gradient && !differentiates && d.Differentiable()):
			d.Compose = nil
			d.Kernels = []op.Kernel{{Name: "library", Run: func(*op.Run) error { return op.ErrUnknown }}}
			d.Grad = b.differentiated(nil)
			d.Infer = func(a op.Args) ([]op.Meta, error) { return (&op.Call{Def: def, Args: a}).Infer() }
		case differentiates && d.Compose == nil:
			d.Grad = b.differentiated(d.Grad)
		}
	}
	return op.NewTable(defs...)
}

// has reports whether the library has the function of an entry: it is called without arguments.
func (b *Backend) has(e entry) bool {
	_, err := b.call(&program.Program{Calls: []program.Call{{Result: "y", Target: e.function}}}, &binding{})
	b.ended = nil
	return err == nil || !b.lacks[e.function]
}

// within runs a gradient's rule, in which the host does what it can.
func (b *Backend) within(rule func()) {
	defer func(was bool) { b.inRule = was }(b.inRule)
	b.inRule = true
	rule()
}

// Info describes the library.
func (b *Backend) Info() backend.Info { return b.child.Info() }

// Close ends the child.
func (b *Backend) Close() error { return b.child.Close() }

// CPUTime is that of the child.
func (b *Backend) CPUTime() time.Duration { return b.child.CPUTime() }

// Run runs one program. Where there is no function of a gradient, it is run without
// one: the outcome tells why.
func (b *Backend) Run(ctx context.Context, job *backend.Job) (*backend.Outcome, error) {
	if call := wholeOf(job.Program); call != nil {
		return b.runWhole(ctx, call, job), ctx.Err()
	}
	out := &backend.Outcome{Status: backend.Unsupported, Message: "the interface has no gradients of the second order"}
	if job.Program.Second.Dist == "" {
		out = b.run(ctx, job)
	}
	p := *job.Program
	p.Backward, p.Second = nil, program.Fill{}
	if out.Status == backend.Unsupported && job.Program.Differentiates() && !p.Differentiates() {
		without := *job
		without.Program = &p
		if forward := b.run(ctx, &without); forward.Status != backend.Unsupported {
			forward.ForwardOnly, forward.NoGradients = true, out.Message
			out = forward
		}
	}
	return out, ctx.Err()
}

func (b *Backend) run(ctx context.Context, job *backend.Job) *backend.Outcome {
	b.ctx, b.calls, b.seed, b.ended, b.inRule, b.saved = ctx, 0, job.Program.Seed, nil, false, map[*tensor.Tensor][]*tensor.Tensor{}
	b.changes, b.lacked = job.Program.ChangesAfter(-1), ""
	in := b.forward
	if b.tapes = job.Program.Differentiates(); b.tapes {
		in = b.tape
	}
	return b.finish(in.Computed(ctx, job, b.compute))
}

// finish gives an outcome the end that the library gave it. What Plumb refused on
// the library's behalf, or computed without it, says nothing of it.
func (b *Backend) finish(out *backend.Outcome) *backend.Outcome {
	switch {
	case b.ended != nil:
		out.Status, out.Class, out.Message, out.NoKernel = b.ended.Status, b.ended.Class, b.ended.Message, false
	case out.Status == backend.Raised:
		out.Status = backend.Unsupported
	case out.Status == backend.OK && b.calls == 0:
		out.Status, out.Message = backend.Unsupported, cmp.Or(b.lacked, "no function of the interface takes part")
	}
	return out
}

// end notes how the library's part of a run ended.
func (b *Backend) end(out *backend.Outcome) error {
	if b.ended == nil {
		b.ended = out
	}
	return errors.New(out.Message)
}

// unsupported ends the library's part of a run where err is a gap.
func (b *Backend) unsupported(err error) error {
	var lack *gap
	if !errors.As(err, &lack) {
		return err
	}
	return b.end(&backend.Outcome{Status: backend.Unsupported, Class: "NotImplementedError", Message: lack.reason})
}

// compute is how a session computes a call. Views are the host's in a program that
// changes tensors in place: what a function of the interface gives has memory of its own.
func (b *Backend) compute(call *op.Call) ([]*tensor.Tensor, error) {
	id := call.Def.ID()
	entries := table.forward[id]
	stores := call.Stores || entries == nil
	if stores {
		entries = table.inPlace[id]
	}
	bind := &binding{args: call.Args, inPlace: stores, tapes: b.tapes}
	host := slices.Contains(table.host, id)
	switch {
	case host && (entries == nil || b.inRule || b.changes && !call.Stores):
		return call.Execute()
	case entries == nil:
		return nil, b.unsupported(gapf("%s: no function of the interface computes it", id))
	}
	if allocated := slices.ContainsFunc(entries, func(e entry) bool { return slices.Contains(e.args, "out") }); allocated || !call.Def.Traits.Has(op.Dynamic) {
		var err error
		if bind.out, err = call.Infer(); err != nil {
			return nil, err
		}
	}
	got, err := b.ask(id, entries, bind)
	var lack *gap
	switch {
	case errors.As(err, &lack) && host:
		b.lacked = cmp.Or(b.lacked, lack.reason)
		return call.Execute()
	case err != nil:
		return nil, b.unsupported(err)
	}
	return b.results(call, bind, got)
}

// results sorts what a function wrote.
func (b *Backend) results(call *op.Call, bind *binding, got []*tensor.Tensor) ([]*tensor.Tensor, error) {
	out := make([]*tensor.Tensor, 1+bind.last())
	var saved []*tensor.Tensor
	for i, w := range bind.writes {
		switch t := got[i]; {
		case w.result >= 0:
			out[w.result] = t
		case w.saved:
			saved = append(saved, t)
		case w.param != "" && call.Def.Mutates != nil:
			call.Args.Tensor(op.TensorArg(w.param)).CopyFrom(t)
		}
	}
	if slices.Contains(out, nil) {
		return nil, b.unsupported(gapf("%s: the function gives no such result", call.Def.ID()))
	}
	b.saved[out[0]] = saved
	return out, nil
}

// differentiated is the rule of operators that have gradient functions. Where the
// table says so, a library that lacks them differentiates by the operator's own rule.
func (b *Backend) differentiated(own func(*op.Grad)) func(*op.Grad) {
	return func(g *op.Grad) {
		var lack *gap
		switch err := b.gradient(g); {
		case errors.As(err, &lack) && table.backward[g.Sig.Name][0].optional:
			own(g)
		case err != nil:
			op.Fail(b.unsupported(err))
		}
	}
}

// gradient calls as many gradient functions as it takes for the tensors that want one,
// and gives no gradient where one of them is lacking.
func (b *Backend) gradient(g *op.Grad) error {
	id := g.Sig.Name
	first := tensorOf(g.Out[0])
	bind := &binding{args: g.Args, results: g.Out, cot: g.Cot, saved: b.saved[first], out: []op.Meta{{DType: first.DType(), Shape: first.Shape()}}, tapes: true}
	found := map[string]*tensor.Tensor{}
	for _, p := range g.Sig.Params {
		if p.Type.Kind != op.KTensor || p.Type.List || found[p.Name] != nil || !g.Needs(op.TensorArg(p.Name)) {
			continue
		}
		entries := slices.DeleteFunc(slices.Clone(table.backward[id]), func(e entry) bool { return !slices.Contains(e.args, "grad."+p.Name) })
		if len(entries) == 0 {
			return gapf("%s: the interface has no function for the gradient of %s", id, p.Name)
		}
		got, err := b.ask(id, entries, bind)
		if err != nil {
			return err
		}
		for i, w := range bind.writes {
			if w.param != "" && found[w.param] == nil {
				found[w.param] = got[i]
			}
		}
	}
	for _, p := range g.Sig.Params {
		if t := found[p.Name]; t != nil {
			g.To(op.TensorArg(p.Name), func() op.Value { return t })
		}
	}
	return nil
}

// ask has the library compute the first of the entries that takes the arguments
// and whose function it has, and returns the tensors that it may have written.
func (b *Backend) ask(id string, entries []entry, bind *binding) ([]*tensor.Tensor, error) {
	var reasons, lacking []string
	for i := range entries {
		got, called, err := b.follow(&entries[i], bind)
		var lack *gap
		switch {
		case !errors.As(err, &lack):
			return got, err
		case called:
			lacking = append(lacking, lack.reason)
		default:
			reasons = append(reasons, lack.reason)
		}
	}
	if lacking != nil {
		reasons = lacking
	}
	return nil, gapf("%s: %s", id, strings.Join(reasons, "; "))
}

// follow has the library run the functions of an entry one after the other. An error that
// is a gap says why the entry does not serve or, where it was called, what the library lacks.
func (b *Backend) follow(e *entry, bind *binding) (got []*tensor.Tensor, called bool, err error) {
	if e.before != nil {
		defer func(was []*tensor.Tensor) { bind.saved = was }(bind.saved)
		bind.saved = nil
		if err := bind.serves(e); err != nil {
			return nil, false, err
		}
		p, err := bind.step(e.before)
		if err != nil {
			return nil, false, err
		}
		got, err := b.call(p, bind)
		if err != nil {
			return nil, true, err
		}
		bind.keep(got)
	}
	p, err := bind.call(e)
	if err != nil {
		return nil, false, err
	}
	got, err = b.call(p, bind)
	return got, true, err
}

// call has the library run a function.
func (b *Backend) call(p *program.Program, bind *binding) ([]*tensor.Tensor, error) {
	function := p.Calls[0].Target
	if b.lacks[function] {
		return nil, gapf("%s", lacking(function))
	}
	p.Seed = b.seed + uint64(b.calls) // PyTorch's generator goes on from call to call
	out, err := b.child.Run(b.ctx, &backend.Job{Program: p, Inputs: bind.tensors})
	if err != nil {
		return nil, b.end(&backend.Outcome{Status: backend.Crashed, Class: "worker", Message: err.Error()})
	}
	if out.Status == backend.Unsupported && out.Message == lacking(function) {
		b.lacks[function] = true
		return nil, gapf("%s", out.Message)
	}
	b.calls++
	if out.Status != backend.OK {
		out.Message = told(out.Message, function)
		return nil, b.end(out)
	}
	var got []*tensor.Tensor
	for i, v := range out.Values[0].Tuple {
		if v.Tensor != nil && i < len(bind.writes) && bind.writes[i].dtype != tensor.Invalid {
			v.Tensor = v.Tensor.Convert(bind.writes[i].dtype)
		}
		got = append(got, v.Tensor)
	}
	if len(got) != len(bind.writes) {
		return nil, b.end(&backend.Outcome{Status: backend.Crashed, Class: "protocol", Message: fmt.Sprintf("%s gave %d tensors, not %d", function, len(got), len(bind.writes))})
	}
	return got, nil
}

// lacking is what the child says of a function that the library has not.
func lacking(function string) string { return "the library has no " + function }

// told brings what the child said of a function before it died, on a line of its
// own, to the head of a message.
func told(message, function string) string {
	head, rest, _ := strings.Cut(message, "\n")
	for line := range strings.Lines(rest) {
		if said, ok := strings.CutPrefix(strings.TrimSpace(line), function+": "); ok {
			return head + ": " + said + "\n" + rest
		}
	}
	return message
}
