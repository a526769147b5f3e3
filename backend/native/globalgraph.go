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
	"plumb/global"
	"plumb/graph"
	"plumb/internal/draw/choice"
	"plumb/internal/interp"
	"plumb/op"
	"plumb/program"
	"plumb/tensor"
)

// GlobalGraph is the mode that runs programs as graphs over ranks, as Global is
// that which runs them call by call: "global-graph-2x2" has a hierarchy.
const GlobalGraph = "global-graph"

// GlobalGraphBackend traces each program, plans its graph for ranks and runs the
// plan. How the ranks share inputs and constants follows from the program's seed,
// and so does whether signatures are chosen call by call, by a search over the
// whole graph or at random.
type GlobalGraphBackend struct {
	*Backend
	mode      string
	placement global.Placement
	passes    []global.Pass // over plans
}

// Info returns the backend's name and modes.
func (b *GlobalGraphBackend) Info() backend.Info { return b.info(b.mode) }

// Run traces the program, plans and runs the graph. A pass over the plan that
// changes a bit of a result is blamed by the outcome.
func (b *GlobalGraphBackend) Run(ctx context.Context, job *backend.Job) (*backend.Outcome, error) {
	start := time.Now()
	out := b.outcome(ctx, job)
	out.Elapsed = time.Since(start)
	return out, nil
}

func (b *GlobalGraphBackend) outcome(ctx context.Context, job *backend.Job) (out *backend.Outcome) {
	defer func() {
		if p := recover(); p != nil {
			out = &backend.Outcome{Status: backend.Crashed, Class: "panic", Message: fmt.Sprintf("%v\n%s", p, debug.Stack())}
		}
	}()
	at, placed, err := b.placementOf(job.Program)
	if err != nil {
		return &backend.Outcome{Status: backend.Unsupported, Message: err.Error()}
	}
	g := &globalGraph{Trace: b.interpreter.TraceOver(ctx, job, at), ctx: ctx, placement: at, passes: b.passes, seed: job.Program.Seed}
	if g.code = g.Code(); placed {
		g.demands = g.Lies // of values that a pass would put others in the place of
	} else {
		compiled, err := graph.Compile(g.code, rankPasses)
		if err != nil {
			return &backend.Outcome{Status: backend.Crashed, Class: "pass", Message: err.Error()}
		}
		g.code = compiled.Code
	}
	source := choice.DeriveName(job.Program.Seed, b.mode)
	ran, err := g.run(source, false)
	if ran != nil && ran.Infinite {
		ran, err = g.run(source, true)
	}
	if err != nil && !g.failed(err) {
		return &backend.Outcome{Status: backend.Crashed, Class: "ranks", Message: err.Error()}
	}
	ts := make([]*tensor.Tensor, len(g.code.Outputs))
	for i, x := range ran.Outputs {
		if x == nil {
			continue
		}
		if ts[i], err = x.Logical(); err != nil {
			return &backend.Outcome{Status: backend.Crashed, Class: "ranks", Message: fmt.Sprintf("output %d: %v", i, err)}
		}
	}
	out = g.Fill(ts)
	out.Blame, out.Evidence = g.blame, g.evidence
	return out
}

// placementOf is where the ranks of a program's graph are: where the program says, the
// hierarchy with the most dimensions, else where the mode has them. A graph has one
// set of ranks; placed says that the program places tensors.
func (b *GlobalGraphBackend) placementOf(p *program.Program) (at global.Placement, placed bool, err error) {
	at = b.placement
	said := false
	for _, c := range p.Calls {
		if c.Target == program.ToLocal {
			return at, true, errors.New("to_local in a program, which runs call by call, in the mode " + Global)
		}
		placed = placed || c.AboutRanks()
		for _, kw := range c.Kwargs {
			text, isText := kw.Value.(string)
			if !c.AboutRanks() || kw.Name != "placement" || !isText {
				continue
			}
			q, err := global.ParsePlacement(text)
			switch {
			case err != nil: // the trace refuses it
			case said && !slices.Equal(at.Ranks, q.Ranks):
				return at, true, fmt.Errorf("tensors on %s and on %s, in one graph: such a program runs call by call, in the mode %s", at, q, Global)
			case !said || len(q.Hierarchy) > len(at.Hierarchy):
				at, said = q, true
			}
		}
	}
	return at, placed, nil
}

// rankPasses are those of a graph on one process that leave calls whole.
var rankPasses = graph.Options{Without: []string{"recompute", "fuse", "epilogue", "order", graph.Reuse}}

// Whole returns the graph of a program after the passes that leave calls whole,
// as ranks run it. Inputs need not have their elements.
func (b *GraphBackend) Whole(ctx context.Context, job *backend.Job) (*graph.Code, error) {
	code, err := b.Trace(ctx, job)
	if err != nil {
		return nil, err
	}
	compiled, err := graph.Compile(code, rankPasses)
	if err != nil {
		return nil, err
	}
	return compiled.Code, nil
}

// Placed is Whole of a program that says by to_global how some of its values lie, and
// these: no pass has put others in their place. Nil where it says nothing.
func (b *GraphBackend) Placed(ctx context.Context, job *backend.Job) (*graph.Code, map[*graph.Value]global.SBP, error) {
	if !slices.ContainsFunc(job.Program.Calls, func(c program.Call) bool { return c.AboutRanks() }) {
		code, err := b.Whole(ctx, job)
		return code, nil, err
	}
	t := b.interpreter.Trace(ctx, job)
	if out := t.Outcome(); out.Status != backend.OK {
		return nil, nil, fmt.Errorf("call %d: %s: %s", out.Call, out.Status, out.Message)
	}
	return t.Code(), t.Lies, nil
}

// globalGraph is a traced program on its way over ranks.
type globalGraph struct {
	*interp.Trace
	ctx             context.Context
	placement       global.Placement
	passes          []global.Pass
	seed            uint64
	code            *graph.Code
	demands         map[*graph.Value]global.SBP
	blame, evidence string
}

// failed reports whether the error is one of the program, which the outcome then has.
func (g *globalGraph) failed(err error) bool {
	var rejection *op.Error
	if !errors.As(err, &rejection) {
		return false
	}
	g.Fail(err)
	return true
}

// searchWidth is how many ways a search follows where many small graphs are run.
const searchWidth = 8

// plan plans the graph by what follows from the source; whole allows no summands.
func (g *globalGraph) plan(source *choice.Source, whole bool) (*global.Plan, error) {
	r := &ranked{source: source, whole: whole}
	feeds := map[*graph.Value]*tensor.Tensor{}
	for i, v := range g.code.Inputs {
		feeds[v] = g.Feeds()[i]
	}
	lies := map[*graph.Value]global.SBP{}
	for _, n := range g.code.Nodes {
		switch n.Kind {
		case graph.Input:
			lies[n.Out[0]] = r.draw(feeds[n.Out[0]], g.placement)
		case graph.Constant:
			lies[n.Out[0]] = r.draw(n.Const, g.placement)
		}
	}
	rt := &global.Runtime{Placement: g.placement, Allows: r.allows, Demands: g.demands}
	how := func(v *graph.Value) global.SBP { return lies[v] }
	switch source.Index(3) {
	case 0:
		return rt.Plan(g.code, how)
	case 1:
		return rt.Search(g.code, how, searchWidth)
	}
	rt.Choose = r.choose
	return rt.Plan(g.code, how)
}

// run plans the graph and runs it, with the passes over plans and without. It
// notes the pass that is to blame where they differ.
func (g *globalGraph) run(key uint64, whole bool) (*global.Ran, error) {
	plan, err := g.plan(choice.New(key), whole)
	if err != nil {
		return nil, err
	}
	plain, err := g.compute(plan)
	tidied := plan.Copy()
	changes := tidied.Tidy(g.passes)
	if err != nil || plain.Infinite || slices.Max(changes) == 0 {
		return plain, err
	}
	ran, err := g.compute(tidied)
	if err == nil && same(ran, plain) {
		return ran, nil
	}
	for n, pass := range g.passes {
		some := plan.Copy()
		some.Tidy(g.passes[:n+1])
		if ran, err := g.compute(some); err != nil || !same(ran, plain) {
			g.blame = pass.Name
			g.evidence = fmt.Sprintf("graph %s: pass %s over its plan changes what ranks compute (%v) in\n%s", g.code.Name, pass.Name, err, some)
			break
		}
	}
	return plain, nil
}

func (g *globalGraph) compute(p *global.Plan) (*global.Ran, error) {
	return p.Run(g.ctx, g.Feeds(), func(draw int) uint64 { return choice.Derive(g.seed, uint64(draw)) })
}

// same reports whether two plans computed the same bits.
func same(a, b *global.Ran) bool {
	return slices.EqualFunc(a.Outputs, b.Outputs, func(x, y *global.Tensor) bool {
		u, err := x.Logical()
		v, failure := y.Logical()
		return err == nil && failure == nil && u.SameBits(v)
	})
}

// graphPlacement returns where a mode of graphs over ranks has them.
func graphPlacement(mode string) (global.Placement, bool) {
	rest, ok := strings.CutPrefix(mode, GlobalGraph)
	if !ok {
		return global.Placement{}, false
	}
	return placementOf(Global + rest)
}
