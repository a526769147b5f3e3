package interp

import (
	"cmp"

	"plumb/graph"
	"plumb/internal/eager"
	"plumb/nn"
	"plumb/op"
	"plumb/program"
)

// scoped is an Applier of a trace that is told of the calls of modules.
type scoped struct {
	op.Applier
	trace *Trace
}

var _ nn.Scoped = scoped{}

// EnterModule begins a module's call, which leave ends.
func (s scoped) EnterModule(m *nn.Module, args op.Args) (leave func(out []op.Value)) {
	t := s.trace
	name := ""
	if c := t.run.job.Program.Calls[len(t.run.out.Values)]; len(c.Args) > 0 {
		if ref, ok := c.Args[0].(program.Ref); ok && t.run.env[ref].module == m {
			name = cmp.Or(t.outline.Names[ref], string(ref))
		}
	}
	return t.builder.EnterNamed(name, m, args, func(v op.Value) *graph.Value {
		if x, ok := v.(*eager.Var); ok {
			return t.Value(x.Tensor)
		}
		return nil
	})
}

// addParts adds the parts of the outline to the graph.
func (t *Trace) addParts() {
	if t.outline == nil {
		return
	}
	for _, p := range t.outline.Parts {
		kind := graph.ModuleScope
		if p.Graph {
			kind = graph.GraphScope
		}
		t.builder.Within(graph.Scope{Kind: kind, Name: p.Name, Class: p.Class, Inputs: t.valuesOf(p.Inputs), Outputs: t.valuesOf(p.Outputs)}, p.From, p.To)
	}
}

// valuesOf returns the values that names of tensors stand for.
func (t *Trace) valuesOf(refs []program.Ref) []*graph.Value {
	var out []*graph.Value
	for _, ref := range refs {
		v := t.run.env[ref]
		if v == nil || v.tensor == nil {
			continue
		}
		if value := t.Value(v.tensor.Tensor); value != nil {
			out = append(out, value)
		}
	}
	return out
}
