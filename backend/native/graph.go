package native

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"plumb/backend"
	"plumb/graph"
	"plumb/internal/interp"
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
		return b.info("graph-plain")
	}
	return b.info("graph")
}

// Run traces the program and runs the graph with and without passes. What
// cannot be captured is Unsupported, a panic is Crashed, and a pass that changes
// a bit of a result is blamed by the outcome.
func (b *GraphBackend) Run(ctx context.Context, job *backend.Job) (*backend.Outcome, error) {
	start := time.Now()
	g := tracedGraph{Trace: b.interpreter.Trace(ctx, job), options: b.options}
	out := g.outcome()
	out.Elapsed = time.Since(start)
	return out, nil
}

// Layouts returns the outcome of a program as far as it is known without computing it:
// its tensors have dtypes, shapes and strides, and no elements. What calls change in
// place is not told.
func (b *Backend) Layouts(ctx context.Context, job *backend.Job) (out *backend.Outcome) {
	defer func() {
		if p := recover(); p != nil {
			out = &backend.Outcome{Status: backend.Crashed, Class: "panic", Message: fmt.Sprint(p)}
		}
	}()
	return b.interpreter.Trace(ctx, job).Outcome()
}

// Trace returns the graph of a program before any pass. The error says what
// cannot be captured.
func (b *GraphBackend) Trace(ctx context.Context, job *backend.Job) (*graph.Code, error) {
	return b.Outlined(ctx, job, nil)
}

// Outlined is Trace for a graph that is described by the parts of an outline.
func (b *GraphBackend) Outlined(ctx context.Context, job *backend.Job, o *program.Outline) (*graph.Code, error) {
	t := b.interpreter.Outlined(ctx, job, o)
	if out := t.Outcome(); out.Status != backend.OK {
		return nil, fmt.Errorf("call %d: %s: %s", out.Call, out.Status, out.Message)
	}
	return t.Code(), nil
}

// tracedGraph is a program that was traced, with how its graph is compiled.
type tracedGraph struct {
	*interp.Trace
	options graph.Options
	code    *graph.Code
}

// outcome runs the graph and returns what it computed. If a call fails, the
// graph without passes tells what was computed until then.
func (g *tracedGraph) outcome() (out *backend.Outcome) {
	defer func() {
		if p := recover(); p != nil {
			out = &backend.Outcome{Status: backend.Crashed, Class: "panic", Message: fmt.Sprintf("%v\n%s", p, debug.Stack())}
		}
	}()
	g.code = g.Code()
	ts, err := g.compute(g.options)
	if err == nil {
		out := g.Fill(ts)
		out.Blame, out.Evidence = g.wrongPass(ts)
		return out
	}
	unchanged, failure := g.compute(g.options.WithoutPasses())
	if failure == nil {
		return &backend.Outcome{Status: backend.Crashed, Class: "pass", Message: err.Error(), Blame: g.blamed(unchanged)}
	}
	g.Fail(failure)
	return g.Fill(unchanged)
}

// wrongPass compares what the graph computed with what it does without passes:
// it returns which pass is to blame for a difference, and where that is; ""
// where there is none.
func (g *tracedGraph) wrongPass(ts []*tensor.Tensor) (pass, evidence string) {
	if slices.Contains(g.options.Without, graph.All) {
		return "", ""
	}
	unchanged, err := g.compute(g.options.WithoutPasses())
	if err != nil || slices.EqualFunc(ts, unchanged, (*tensor.Tensor).SameBits) {
		return "", ""
	}
	pass = g.blamed(unchanged)
	i := 0
	for ts[i].SameBits(unchanged[i]) {
		i++
	}
	n, of := g.code.Outputs[i].Node(), ""
	if n.Of != nil {
		of = "gradient of " + n.Of.Origin() + ": "
	}
	return pass, fmt.Sprintf("graph %s: pass %s changes output %d, %s, of %s%s in\n%s", g.code.Name, pass, i, ts[i], of, n.Origin(), g.code)
}

// blamed returns the pass with which the graph no longer gives what it does
// without any.
func (g *tracedGraph) blamed(unchanged []*tensor.Tensor) string {
	return graph.Blame(g.code, g.options, func(c *graph.Compiled) bool {
		got, err := g.run(c)
		return err == nil && slices.EqualFunc(got, unchanged, (*tensor.Tensor).SameBits)
	})
}

func (g *tracedGraph) compute(o graph.Options) ([]*tensor.Tensor, error) {
	c, err := graph.Compile(g.code, o)
	if err != nil {
		return nil, err
	}
	return g.run(c)
}

// run returns the results on the host.
func (g *tracedGraph) run(c *graph.Compiled) ([]*tensor.Tensor, error) {
	ts, err := g.Run(c)
	for i, t := range ts {
		if t == nil {
			continue
		}
		h, moved := t.To(nil)
		if moved != nil {
			return nil, moved
		}
		ts[i] = h
	}
	return ts, err
}
