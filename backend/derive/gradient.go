package derive

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"plumb/backend"
	"plumb/graph"
	"plumb/internal/interp"
	"plumb/op"
	"plumb/program"
	"plumb/tensor"
)

// gradient is a program whose results are the gradients of another.
type gradient struct {
	job   *backend.Job
	slots []slot
	calls int // of the program that is differentiated
	// Of a program that itself asks for gradients all is in this one: what its calls
	// returned, and where the tensors in that are. Else nil and empty.
	returned []backend.Value
	places   map[*tensor.Tensor]slot
}

// slot is a gradient, or a parameter after a step: the result of a call, or a
// tensor that is known.
type slot struct {
	backend.Place
	call  int // -1 for none
	known *tensor.Tensor
}

func (s slot) tensor(found *backend.Outcome) *tensor.Tensor {
	if s.call < 0 {
		return s.known
	}
	return found.Values[s.call].Tensor
}

// gradient traces a program and writes down what its gradients follow from, or all of it.
// The error says what has no place in a program of forward calls.
func (b *Backend) gradient(ctx context.Context, job *backend.Job, all bool) (*gradient, error) {
	traced := b.in.Trace(ctx, job)
	out := traced.Outcome()
	if out.Status != backend.OK {
		return nil, fmt.Errorf("the program cannot be traced: %s", out.Message)
	}
	w := newWriter(b.table, job.Program, all)
	g := &gradient{calls: len(job.Program.Calls), places: map[*tensor.Tensor]slot{}}
	var wanted []backend.Slot
	for _, s := range out.Slots {
		if s.Part.IsGradient() || s.Part == backend.PartStep || all && s.Part != backend.PartChange {
			wanted = append(wanted, s)
		}
	}
	ends := len(wanted)
	if all {
		g.returned = out.Values
		for t := range tensorsOf(out.Values) {
			wanted = append(wanted, backend.Slot{Tensor: t})
		}
	}
	inputs, err := w.write(traced, wanted)
	if err != nil {
		return nil, err
	}
	at := index(w.out)
	for i, s := range wanted {
		sl := slot{s.Place, -1, s.Tensor}
		if v := value(traced, s.Tensor); v != nil {
			ref := w.names[v].Ref
			if call, computed := at[ref]; computed {
				sl.call = call
			} else {
				sl.known = inputs[slices.IndexFunc(w.out.Inputs, func(in program.Input) bool { return in.Name == string(ref) })]
			}
		}
		if i < ends {
			g.slots = append(g.slots, sl)
		} else {
			g.places[s.Tensor] = sl
		}
	}
	g.job = &backend.Job{Program: w.out, Inputs: inputs}
	return g, nil
}

// asks reports whether a program asks for gradients, or about them, before its end.
func asks(p *program.Program) bool {
	return slices.ContainsFunc(p.Calls, func(c program.Call) bool {
		switch c.Target {
		case "torch.autograd.grad", "Tensor.retain_grad":
			return true
		case "getattr":
			return len(c.Args) == 2 && slices.Contains([]any{"grad", "requires_grad", "is_leaf"}, c.Args[1])
		}
		return c.IsBackward()
	})
}

// tensorsOf returns the tensors of values.
func tensorsOf(values []backend.Value) map[*tensor.Tensor]bool {
	all := map[*tensor.Tensor]bool{}
	for _, v := range values {
		if v.Tensor != nil {
			all[v.Tensor] = true
		}
		maps.Copy(all, tensorsOf(v.Tuple))
	}
	return all
}

// values returns what calls returned, with the tensors that the subject has found.
func (g *gradient) values(returned []backend.Value, found *backend.Outcome) []backend.Value {
	out := slices.Clone(returned)
	for i := range out {
		if t := out[i].Tensor; t != nil {
			out[i].Tensor = g.places[t].tensor(found)
		}
		out[i].Tuple = g.values(out[i].Tuple, found)
	}
	return out
}

// value returns what a tensor of the outcome stands for; nil for none.
func value(traced *interp.Trace, t *tensor.Tensor) *graph.Value {
	if t == nil {
		return nil
	}
	return traced.Value(t)
}

// writer writes the nodes of a graph as the calls of a program.
type writer struct {
	table *op.Table
	out   *program.Program
	names map[*graph.Value]*program.Symbol
	of    map[program.Ref]any // the symbols by name
	draws bool                // nobody has drawn before, so that this program may
}

func newWriter(table *op.Table, p *program.Program, draws bool) *writer {
	out := &program.Program{Name: p.Name, Seed: p.Seed}
	return &writer{table, out, map[*graph.Value]*program.Symbol{}, map[program.Ref]any{}, draws}
}

// name has a value stand under a name.
func (w *writer) name(v *graph.Value, ref string) {
	s := program.NewSymbol(program.Ref(ref), op.Meta{DType: v.DType(), Shape: v.Shape(), Strides: v.Strides()})
	w.names[v], w.of[s.Ref] = s, s
}

// write writes what the slots follow from, and returns the program's inputs.
func (w *writer) write(traced *interp.Trace, slots []backend.Slot) ([]*tensor.Tensor, error) {
	needed := map[*graph.Node]bool{}
	for _, s := range slots {
		if v := value(traced, s.Tensor); v != nil {
			needed[v.Node()] = true
		}
	}
	nodes, feeds := traced.Nodes(), traced.Feeds()
	for _, n := range slices.Backward(nodes) {
		if needed[n] {
			for _, v := range n.Args() {
				needed[v.Node()] = true
			}
		}
	}
	var inputs []*tensor.Tensor
	for _, n := range nodes {
		if n.Kind == graph.Input {
			if needed[n] {
				inputs = append(inputs, w.input(n, feeds[0]))
			}
			feeds = feeds[1:]
			continue
		}
		if !needed[n] {
			continue
		}
		if n.Kind == graph.Constant {
			inputs = append(inputs, w.input(n, n.Const))
		} else if err := w.node(n); err != nil {
			return nil, err
		}
	}
	return inputs, nil
}

func (w *writer) input(n *graph.Node, t *tensor.Tensor) *tensor.Tensor {
	in := program.Input{Name: fmt.Sprintf("x%d", len(w.out.Inputs)), DType: t.DType(), Shape: t.Shape()}
	w.out.Inputs = append(w.out.Inputs, in)
	w.name(n.Out[0], in.Name)
	return t
}

func (w *writer) node(n *graph.Node) error {
	switch {
	case n.Kind == graph.Arrange:
		w.names[n.Out[0]] = w.names[n.Args()[0]]
		return nil
	case len(n.Mutated) > 0:
		return fmt.Errorf("%s changes its arguments", n.Call.Def.ID())
	case n.Call.Def.Traits.Has(op.Random) && !w.draws:
		return fmt.Errorf("%s draws", n.Call.Def.ID())
	}
	c := w.call(n.Call)
	w.out.Calls = append(w.out.Calls, c)
	if len(n.Out) == 1 && !n.Call.Def.Sigs()[0].Many {
		w.name(n.Out[0], c.Result)
		return nil
	}
	for i, v := range n.Out {
		part := program.Call{Result: fmt.Sprintf("%s_%d", c.Result, i), Target: "operator.getitem", Args: []any{program.Ref(c.Result), int64(i)}}
		w.out.Calls = append(w.out.Calls, part)
		w.name(v, part.Result)
	}
	return nil
}

// call writes a call under the first public name that means it, else by its id.
func (w *writer) call(call *op.Call) program.Call {
	result := fmt.Sprintf("v%d", len(w.out.Calls))
	for _, target := range call.Def.Names {
		target, _, _ = strings.Cut(target, "(")
		own := call.Def.Called(target)
		if op.InPlace(target) || strings.HasPrefix(target, "operator.") || own == nil || len(own.Params) < len(call.Args.Sig.Params) {
			continue
		}
		if c := w.named(call, own, result, target); w.means(c, call.Def) {
			return c
		}
	}
	return w.named(call, call.Args.Sig, result, program.OwnPrefix+call.Def.ID())
}

// named writes a call with the parameters' names under a target.
func (w *writer) named(call *op.Call, own *op.Sig, result, target string) program.Call {
	symbols := call.Args.MapValues(func(v op.Value) op.Value {
		if x, ok := v.(*graph.Value); ok {
			return w.names[x]
		}
		return v
	})
	params := symbols.Sig.Params
	last := len(params)
	for last > 0 && omitted(params[last-1], symbols.Vals[last-1]) {
		last--
	}
	var args []any
	var kwargs []program.Kwarg
	named := false
	for i, p := range params[:last] {
		v := written(p, symbols.Vals[i])
		switch {
		case symbols.Vals[i] == nil && !p.HasDefault && !p.Type.Optional: // of another signature, which is given no such argument
			named = true
		case !p.KwOnly && !named:
			args = append(args, v)
		case !omitted(p, symbols.Vals[i]):
			kwargs, named = append(kwargs, program.Kwarg{Name: own.Params[i].Name, Value: v}), true
		}
	}
	return program.Written(call.Def, result, target, args, kwargs)
}

// omitted reports whether an argument is what a call without it has.
func omitted(p op.Param, v any) bool { return p.HasDefault && reflect.DeepEqual(v, p.Default) }

// written is an argument as a program has it.
func written(p op.Param, v any) any {
	w := program.FromOp(v)
	if list, ok := w.(program.Tuple); ok && p.Type.Holes {
		for i := range list {
			if list[i] == int64(op.NoInt) {
				list[i] = nil
			}
		}
	}
	return w
}

// means reports whether a call is one of an operator, and not of another that
// has the name too.
func (w *writer) means(c program.Call, def *op.Def) bool {
	args, kwargs, err := c.OpArgs(func(r program.Ref) (any, error) { return w.of[r], nil })
	if err != nil {
		return false
	}
	bound, err := program.Resolve(w.table, c.Target, args, kwargs)
	return err == nil && bound.Def.ID() == def.ID()
}
