package native

import (
	"context"
	"errors"
	"slices"
	"testing"

	"plumb/backend"
	"plumb/global"
	"plumb/graph"
	"plumb/internal/draw/choice"
	"plumb/internal/draw/opcase"
	"plumb/nn"
	"plumb/op"
	"plumb/ops"
	"plumb/program"
	"plumb/tensor"
)

// randomGraphs draws programs of several calls.
func randomGraphs(t *testing.T, n int) []*program.Program {
	t.Helper()
	g := opcase.NewGrapher(ops.Table())
	var all []*program.Program
	for key := range uint64(n) {
		p, err := g.Draw(choice.New(choice.DeriveName(key, t.Name())))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	for _, name := range []string{"module", "in place", "statistics"} {
		p, err := program.Parse("p.py", graphHeader+graphPrograms[name])
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	return all
}

func overRanks(t *testing.T, p *program.Program, mode string, passes []global.Pass) *backend.Outcome {
	t.Helper()
	b, err := New(ops.Table(), nn.Modules()).In(mode)
	if err != nil {
		t.Fatal(err)
	}
	b.(*GlobalGraphBackend).passes = passes
	out, err := b.Run(t.Context(), backend.NewJob(p))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestPlansOfRandomGraphs: graphs of several calls run over ranks, and no pass
// over their plans changes a bit.
func TestPlansOfRandomGraphs(t *testing.T) {
	ran := 0
	for i, p := range randomGraphs(t, 60) {
		mode := []string{"global-graph", "global-graph-3", "global-graph-2x2"}[i%3]
		switch out := overRanks(t, p, mode, global.Passes()); {
		case out.Status == backend.Crashed || out.Blame != "":
			t.Errorf("%s: %s %s %s of\n%s", mode, out.Status, out.Message, out.Evidence, p)
		case out.Status == backend.OK:
			ran++
		}
	}
	if ran < 40 {
		t.Errorf("only %d graphs ran", ran)
	}
}

// TestWrongPassesOverPlans plants passes that change what ranks compute.
func TestWrongPassesOverPlans(t *testing.T) {
	programs := randomGraphs(t, 60)
	for name, run := range map[string]func(p *global.Plan) int{
		"a boxing to the sbp that a value had": func(p *global.Plan) int { return bypass(p, op.P) },
		"a merge across signatures": func(p *global.Plan) int {
			n := 0
			for _, a := range p.Actions {
				for k, s := range a.Signature {
					if s.Partial() {
						a.Signature[k].Results = slices.Repeat([]op.SBP{op.B}, len(s.Results))
						for _, h := range a.To {
							h.SBP[k] = op.B
						}
						n++
					}
				}
			}
			return n
		},
	} {
		found := slices.ContainsFunc(programs, func(p *program.Program) bool {
			out := overRanks(t, p, "global-graph", []global.Pass{{Name: "planted", Run: run}})
			return out.Blame == "planted" || out.Status == backend.Crashed
		})
		if !found {
			t.Errorf("%s is not found", name)
		}
	}
}

// bypass has what reads a boxed value read the value before it.
func bypass(p *global.Plan, from op.SBP) int {
	n := 0
	by := map[*global.Held]*global.Held{}
	for _, a := range p.Actions {
		if a.Node == nil && slices.Contains(a.From[0].SBP, from) {
			by[a.To[0]] = a.From[0]
			n++
		}
	}
	for _, a := range p.Actions {
		for i, h := range a.From {
			if a.Node != nil && by[h] != nil {
				a.From[i] = by[h]
			}
		}
	}
	return n
}

// counted runs a plan and counts what it says of itself.
func counted(t *testing.T, p *global.Plan, feeds []*tensor.Tensor) {
	t.Helper()
	ran, err := p.Run(t.Context(), feeds, func(draw int) uint64 { return uint64(draw) })
	var refused *op.Error
	if errors.As(err, &refused) {
		return
	}
	if err != nil || ran.Bytes != p.Bytes() || ran.Memory != p.Memory() {
		t.Errorf("%v: %d bytes moved and %d held, not %d and %d as planned in\n%s", err, ran.Bytes, ran.Memory, p.Bytes(), p.Memory(), p)
	}
}

// TestSearchIsCheapest: over the whole graph no more bytes travel than call by
// call, and fewer for a program of which a call by itself sees too little.
func TestSearchIsCheapest(t *testing.T) {
	p, err := global.NewPlacement("cpu", []int{2, 2})
	if err != nil {
		t.Fatal(err)
	}
	rt := &global.Runtime{Placement: p, Allows: func(o global.Option) bool { return o.Sums == 0 }}
	less := 0
	for _, prog := range randomGraphs(t, 12) {
		traced := New(ops.Table(), nn.Modules()).interpreter.Trace(context.Background(), backend.NewJob(prog))
		compiled, err := graph.Compile(traced.Code(), rankPasses)
		if err != nil {
			t.Fatal(err)
		}
		lies := func(v *graph.Value) global.SBP {
			s := global.Broadcast(2)
			for axis, n := range v.Shape() {
				if n >= 2 {
					s[0] = op.S(axis)
				}
			}
			return s
		}
		greedy, err := rt.Plan(compiled.Code, lies)
		if err != nil {
			t.Fatal(err)
		}
		searched, err := rt.Search(compiled.Code, lies, 16)
		if err != nil {
			t.Fatal(err)
		}
		counted(t, greedy, traced.Feeds())
		counted(t, searched, traced.Feeds())
		before := greedy.Bytes()
		greedy.Tidy(global.Passes())
		if greedy.Bytes() > before {
			t.Errorf("passes make %d bytes of %d of\n%s", greedy.Bytes(), before, greedy)
		}
		switch s, g := searched.Bytes(), greedy.Bytes(); {
		case s > g:
			t.Errorf("the search moves %d bytes, the calls one by one %d:\n%s\n%s", s, g, searched, greedy)
		case s < g:
			less++
		}
	}
	if less < 3 {
		t.Errorf("the search is cheaper for %d graphs only", less)
	}
}
