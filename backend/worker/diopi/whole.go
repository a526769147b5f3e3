package diopi

import (
	"context"
	_ "embed" // the table
	"errors"
	"fmt"
	"slices"
	"strings"

	"plumb/backend"
	"plumb/op"
	"plumb/program"
	"plumb/tensor"
)

//go:embed whole.txt
var wholeText string

// whole is a function of the interface that a case of DIOPI's config names.
type whole struct {
	forward  entry
	results  []string // what the outputs of the case are
	backward []entry
}

var wholes = mustWholes(wholeText)

func mustWholes(text string) map[string]*whole {
	m, err := parseTable(text)
	if err != nil {
		panic(err)
	}
	all := map[string]*whole{}
	for head, entries := range m.forward {
		name, results, _ := strings.Cut(head, " ")
		all[name] = &whole{forward: entries[0], results: strings.Fields(results), backward: m.backward[name]}
	}
	return all
}

// The keywords of a case that is asked for as one function, beside its own:
// conform.OneFunction says what they are.
const (
	outputs    = "outputs"
	cotangents = "grad_outputs"
	wanted     = "grad_inputs"
)

// wholeOf is the call of a program that is a case as one function; nil where it is none.
func wholeOf(p *program.Program) *program.Call {
	for i := range p.Calls {
		call := &p.Calls[i]
		switch {
		case slices.ContainsFunc(call.Kwargs, func(kw program.Kwarg) bool { return kw.Name == outputs }):
			return call
		case call.Target != toSparse:
			return nil
		}
	}
	return nil
}

// runWhole has the library compute a case as one function: a tuple of its outputs, and of
// the gradients that are wanted.
func (b *Backend) runWhole(ctx context.Context, call *program.Call, job *backend.Job) *backend.Outcome {
	b.ctx, b.seed, b.ended = ctx, job.Program.Seed, nil
	name := call.Target[strings.LastIndexByte(call.Target, '.')+1:]
	w := wholes[name]
	if w == nil {
		return &backend.Outcome{Status: backend.Unsupported, Message: "no function of the interface computes " + name + " as one"}
	}
	bind, err := w.bind(name, call, job)
	var out *backend.Outcome
	if err == nil {
		out, err = b.computeWhole(w, bind, call, job)
	}
	if err != nil {
		err = b.unsupported(err)
	}
	switch {
	case b.ended != nil:
		return b.ended
	case err != nil:
		return &backend.Outcome{Status: backend.Unsupported, Message: err.Error()}
	}
	return out
}

func (b *Backend) computeWhole(w *whole, bind *binding, call *program.Call, job *backend.Job) (*backend.Outcome, error) {
	name := bind.args.Sig.Name
	got, err := b.ask(name, []entry{w.forward}, bind)
	if err != nil {
		return nil, err
	}
	tuple := backend.Value{IsTuple: true}
	for i := range bind.out {
		tuple.Tuple = append(tuple.Tuple, backend.Value{Tensor: w.result(bind, got, i)})
	}
	out := &backend.Outcome{Status: backend.OK}
	names, _ := keyword(call, wanted).(program.List)
	if len(names) > 0 {
		given, _ := argument(keyword(call, cotangents), job)
		of, _ := given.([]op.Value)
		grads, err := b.wholeGradients(w, bind, of, got, tuple.Tuple[0].Tensor)
		var lack *gap
		switch {
		case b.ended != nil:
			out.Status, out.Class, out.Message, out.Call = b.ended.Status, b.ended.Class, b.ended.Message, 1
			b.ended = nil
		case errors.As(err, &lack):
			out.ForwardOnly, out.NoGradients = true, lack.reason
		case err != nil:
			return nil, err
		default:
			for _, n := range names {
				tuple.Tuple = append(tuple.Tuple, backend.Value{Tensor: grads[fmt.Sprint(n)]})
			}
		}
	}
	out.Values = []backend.Value{tuple}
	return out, nil
}

// wholeGradients are the gradients by parameter.
func (b *Backend) wholeGradients(w *whole, bind *binding, given []op.Value, got []*tensor.Tensor, first *tensor.Tensor) (map[string]*tensor.Tensor, error) {
	if w.backward == nil || len(given) == 0 {
		return nil, gapf("%s: the interface has no function of its gradients", bind.args.Sig.Name)
	}
	back := *bind
	back.cot = given
	back.results = []op.Value{first}
	for i, write := range bind.writes {
		if write.saved {
			back.saved = append(back.saved, got[i])
		}
	}
	got, err := b.ask(bind.args.Sig.Name, w.backward, &back)
	grads := map[string]*tensor.Tensor{}
	for i, write := range back.writes {
		if err == nil && write.param != "" {
			grads[write.param] = got[i]
		}
	}
	return grads, err
}

// result is the output of the case at a place.
func (w *whole) result(bind *binding, got []*tensor.Tensor, at int) *tensor.Tensor {
	var all []*tensor.Tensor
	for _, name := range w.results {
		before := len(all)
		for i, write := range bind.writes {
			if write.param == name || write.result >= 0 && (name == "outs" || name == "new" || name == "out" && write.result == 0 || name == fmt.Sprint("out", write.result)) {
				all = append(all, got[i])
			}
		}
		if len(all) == before { // there is none
			all = append(all, nil)
		}
	}
	if at >= len(all) {
		return nil
	}
	return all[at]
}

// bind makes the arguments of a case's keywords. Those of its functions that it lacks are None.
func (w *whole) bind(name string, call *program.Call, job *backend.Job) (*binding, error) {
	b := &binding{args: op.Args{Sig: &op.Sig{Name: name}}, whole: true}
	add := func(name string, v any) {
		b.args.Sig.Params = append(b.args.Sig.Params, op.Param{Name: name})
		b.args.Vals = append(b.args.Vals, v)
	}
	for _, kw := range call.Kwargs {
		v, err := argument(kw.Value, job)
		switch {
		case err != nil:
			return nil, fmt.Errorf("%s: %w", kw.Name, err)
		case kw.Name == outputs:
			b.out = metas(v)
		case kw.Name != cotangents && kw.Name != wanted:
			add(kw.Name, v)
		}
	}
	if len(b.out) == 0 {
		return nil, fmt.Errorf("%s: no %s are asked for", name, outputs)
	}
	for _, e := range append([]entry{w.forward}, w.backward...) {
		for _, name := range e.words() {
			if !slices.ContainsFunc(b.args.Sig.Params, func(p op.Param) bool { return p.Name == name }) {
				add(name, nil)
			}
		}
	}
	return b, nil
}

// metas are those of the outputs: pairs of a dtype and a shape, None for one that is not there.
func metas(v any) []op.Meta {
	list, _ := v.([]any)
	out := make([]op.Meta, len(list))
	for i, e := range list {
		if pair, ok := e.([]any); ok && len(pair) == 2 {
			out[i].DType, _ = pair[0].(tensor.DType)
			out[i].Shape, _ = pair[1].([]int)
		}
	}
	return out
}

func keyword(call *program.Call, name string) any {
	i := slices.IndexFunc(call.Kwargs, func(kw program.Kwarg) bool { return kw.Name == name })
	if i < 0 {
		return nil
	}
	return call.Kwargs[i].Value
}

// argument is a keyword's value in the form of an operator's argument.
func argument(v any, job *backend.Job) (any, error) {
	switch v := v.(type) {
	case program.Ref:
		if t := inputOf(v, job); t != nil {
			return t, nil
		}
		return madeSparse(v, job)
	case program.Tuple:
		return arguments(v, job)
	case program.List:
		return arguments(v, job)
	case int64:
		return int(v), nil
	}
	return v, nil
}

// inputOf is an input of the program; nil where it has none of the name.
func inputOf(v any, job *backend.Job) *tensor.Tensor {
	i := slices.IndexFunc(job.Program.Inputs, func(in program.Input) bool { return program.Ref(in.Name) == v })
	if i < 0 {
		return nil
	}
	return job.Inputs[i]
}

// arguments is a list: of tensors, of integers, or of both and others.
func arguments(list []any, job *backend.Job) (any, error) {
	var all []any
	var tensors []op.Value
	var ints []int
	for _, e := range list {
		v, err := argument(e, job)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
		switch v := v.(type) {
		case *tensor.Tensor:
			tensors = append(tensors, v)
		case int:
			ints = append(ints, v)
		}
	}
	switch len(all) {
	case len(ints):
		return ints, nil
	case len(tensors):
		return tensors, nil
	}
	return all, nil
}
