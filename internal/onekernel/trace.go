package onekernel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"plumb/internal/judge/compare"
	"plumb/op"
	"plumb/ops"
	"plumb/program"
	"plumb/tensor"
)

// traced is a reference of a user's as an operator that is made of others: the
// calls that it makes, for inputs of given dtypes and shapes. Its results, their
// error bounds and its gradient follow from them.
type traced struct {
	id    string
	mu    sync.Mutex
	known map[string]*recording
	// context is what else than its arguments a call is traced for.
	context string
}

// recording is one traced call: nil where it cannot be traced.
type recording struct {
	program *program.Program
	results []string
	narrows bool // it converts what is computed in float64 to a coarser dtype
}

// def is the operator of a call with so many results, with the arguments of a signature: those
// by keyword follow the others.
func (t *traced) def(sig *Signature, results int) (*op.Def, error) {
	var params, given []string
	for _, a := range sig.Args {
		kind := "Tensor"
		switch {
		case a.IsList:
			kind = "Tensor[]"
		case len(a.Inputs) == 0:
			var err error
			if kind, err = kindOf(a.Choices); err != nil {
				return nil, fmt.Errorf("%s: %w", a.Name, err)
			}
		}
		if a.Keyword {
			given = append(given, kind+" "+a.Name)
		} else {
			params = append(params, kind+" "+a.Name)
		}
	}
	if given != nil {
		given = append([]string{"*"}, given...)
	}
	out := "Tensor"
	if results > 1 {
		out = "(" + strings.TrimSuffix(strings.Repeat("Tensor, ", results), ", ") + ")"
	}
	return &op.Def{
		Sig: fmt.Sprintf("%s(%s) -> %s", t.id, strings.Join(append(params, given...), ", "), out),
		Doc: "A function of the user's.",
		Tol: op.Tol{Class: op.Accumulating, Reason: "its parts"},
		Compose: func(b op.Builder, a op.Args) []op.Value {
			values := a.AllValues()
			unit := 0.0
			if wide, ok := b.Applier.(interface{ Unit() float64 }); ok {
				unit = wide.Unit()
			}
			r := t.of(values, a, unit)
			if r == nil {
				op.Fail(fmt.Errorf("%s is not traced for these arguments", t.id))
			}
			return r.apply(b, values)
		},
	}, nil
}

// kindOf returns the type of an attribute in a signature.
func kindOf(choices []any) (string, error) {
	for _, v := range choices {
		switch v := v.(type) {
		case bool:
			return "bool", nil
		case int64:
			return "int", nil
		case float64:
			return "float", nil
		case string:
			return "str", nil
		case tensor.DType:
			return "dtype", nil
		case program.Tuple:
			return "int[]", nil
		case nil:
		default:
			return "", fmt.Errorf("an attribute %v", v)
		}
	}
	return "int?", nil
}

// keyOf tells calls apart that may be traced to different ones: those of a run in float64 in
// the place of dtypes by their roundoff, which is 0 for others.
func (t *traced) keyOf(dtypes []tensor.DType, shapes [][]int, attributes string, unit float64) string {
	return fmt.Sprint(dtypes, shapes, attributes, t.context, unit)
}

// attributesOf writes the attributes of a bound call.
func attributesOf(a op.Args) string {
	var parts []string
	for i, p := range a.Sig.Params {
		if p.Type.Kind == op.KTensor || i >= len(a.Vals) {
			continue
		}
		name := ""
		if p.KwOnly {
			name = p.Name
		}
		parts = append(parts, given(name, program.FromOp(a.Vals[i])))
	}
	return strings.Join(parts, " ")
}

// given writes one, without a name where it has none in a call.
func given(name string, v any) string { return fmt.Sprintf("%s=%v", name, v) }

func (t *traced) of(values []op.Value, a op.Args, unit float64) *recording {
	var dtypes []tensor.DType
	var shapes [][]int
	for _, v := range values {
		dtypes, shapes = append(dtypes, v.DType()), append(shapes, v.Shape())
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.known[t.keyOf(dtypes, shapes, attributesOf(a), unit)]
}

// unitOf is the coarsest roundoff of dtypes.
func unitOf(dtypes []tensor.DType) (unit float64) {
	for _, d := range dtypes {
		if d.IsDifferentiable() {
			unit = max(unit, compare.Roundoff(d))
		}
	}
	return unit
}

// widened are dtypes in which the judge computes too: the same calls are made.
func widened(dtypes []tensor.DType) []tensor.DType {
	wide := slices.Clone(dtypes)
	for i, d := range wide {
		if d.IsFloat() {
			wide[i] = tensor.F64
		}
	}
	return wide
}

// apply makes the traced calls on a Builder.
func (r *recording) apply(b op.Builder, inputs []op.Value) []op.Value {
	env := map[program.Ref]any{}
	for i := range r.program.Inputs {
		env[program.Ref(r.program.Inputs[i].Name)] = inputs[i]
	}
	look := func(ref program.Ref) (any, error) {
		if v, ok := env[ref]; ok {
			return v, nil
		}
		return nil, fmt.Errorf("no value %s", ref)
	}
	for i := range r.program.Calls {
		c := &r.program.Calls[i]
		args, kwargs, err := c.OpArgs(look)
		if err != nil {
			op.Fail(err)
		}
		if item, ok := element(c, args); ok {
			env[program.Ref(c.Result)] = item
			continue
		}
		call, err := partOf(c.Target, args, kwargs)
		if err != nil {
			op.Fail(err)
		}
		out, err := b.Apply(call.Def.ID(), gathered(call, args, c.Target), kwargs)
		if err != nil {
			op.Fail(err)
		}
		if call.InPlace && !alike(args[0], out) {
			op.Fail(errInPlace)
		}
		if len(out) == 1 && !call.Def.Sigs()[0].Many {
			env[program.Ref(c.Result)] = out[0]
		} else {
			env[program.Ref(c.Result)] = out
		}
	}
	results := make([]op.Value, len(r.results))
	for i, name := range r.results {
		results[i] = env[program.Ref(name)].(op.Value)
	}
	return results
}

// gathered are the arguments of a call by its operator's id: with those in one list that
// a method takes one by one, x.view(2, 3), and x.T without the property's name.
func gathered(call *op.Call, args []any, target string) []any {
	if target == "getattr" {
		return args[:1]
	}
	at := call.Args.Sig.Spread(strings.HasPrefix(target, "Tensor."))
	if at < 0 || at >= len(args) {
		return args
	}
	switch args[at].(type) {
	case int, int64, op.Value:
		return append(slices.Clone(args[:at]), slices.Clone(args[at:]))
	}
	return args
}

// element is a call that takes one of several results.
func element(c *program.Call, args []any) (op.Value, bool) {
	if c.Target != "operator.getitem" || len(args) != 2 {
		return nil, false
	}
	list, ok := args[0].([]op.Value)
	i, whole := c.Args[1].(int64)
	if !ok || !whole || i < 0 || int(i) >= len(list) {
		return nil, false
	}
	return list[i], true
}

var errInPlace = errors.New("a call converts to the dtype or shape of what it changes in place")

// alike reports whether what is computed out of place is of the dtype and shape of what
// a call changes.
func alike(changed any, out []op.Value) bool {
	v, ok := changed.(op.Value)
	return ok && len(out) == 1 && out[0].DType() == v.DType() && slices.Equal(out[0].Shape(), v.Shape())
}

func partOf(target string, args []any, kwargs []op.Kwarg) (*op.Call, error) {
	call, err := program.Resolve(ops.Table(), target, args, kwargs)
	if err != nil {
		return nil, err
	}
	return call, nil
}

// keysOf are the keys of a case's call, in its dtypes and in wide ones.
func (t *traced) keysOf(p *program.Program) (key, wide string) {
	var dtypes []tensor.DType
	var shapes [][]int
	for _, in := range p.Inputs {
		dtypes, shapes = append(dtypes, in.DType), append(shapes, in.Shape)
	}
	var parts []string
	for _, v := range p.Calls[0].Args {
		switch v.(type) {
		case program.Ref, program.List:
		default:
			parts = append(parts, given("", v))
		}
	}
	for _, kw := range p.Calls[0].Kwargs {
		parts = append(parts, given(kw.Name, kw.Value))
	}
	attributes := strings.Join(parts, " ")
	return t.keyOf(dtypes, shapes, attributes, 0), t.keyOf(widened(dtypes), shapes, attributes, unitOf(dtypes))
}

// pointwise reports whether a case's call is traced to functions of single elements alone.
func (t *traced) pointwise(p *program.Program) bool {
	r := t.recorded(p)
	return r != nil && !r.calls(func(d *op.Def) bool { return d == nil || !d.ScalarFunction() })
}

// contracts reports whether it is traced to a product of matrices or a convolution, among others.
func (t *traced) contracts(p *program.Program) bool {
	r := t.recorded(p)
	return r != nil && r.calls(func(d *op.Def) bool { return d != nil && d.Traits.Has(op.Contraction) })
}

// rounds reports whether any of the calls that it is traced to rounds what it gives.
func (t *traced) rounds(p *program.Program) bool {
	r := t.recorded(p)
	return r != nil && r.calls(computing)
}

// computing reports an operator that is unknown or does more than move elements.
func computing(d *op.Def) bool { return d == nil || d.Tol.Class != op.Exact }

// single reports whether all but one of the calls that it is traced to move elements alone, or
// follow from no argument, as a mask does.
func (t *traced) single(p *program.Program) bool {
	r := t.recorded(p)
	if r == nil {
		return false
	}
	follows := map[program.Ref]bool{}
	for i := range r.program.Inputs {
		follows[program.Ref(r.program.Inputs[i].Name)] = true
	}
	n := 0
	for i := range r.program.Calls {
		c, of := &r.program.Calls[i], false
		c.EachRef(func(v program.Ref) { of = of || follows[v] })
		if !of {
			continue
		}
		follows[program.Ref(c.Result)], follows[c.Out()] = true, true
		if len(c.Args) > 0 && op.InPlace(c.Target) {
			program.Refs(c.Args[0], func(v program.Ref) { follows[v] = true })
		}
		if computing(defOf(c)) {
			n++
		}
	}
	return n == 1
}

func (t *traced) recorded(p *program.Program) *recording {
	key, _ := t.keysOf(p)
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.known[key]
}

// calls reports whether a traced call is of such an operator, nil for one that is unknown.
func (r *recording) calls(such func(*op.Def) bool) bool {
	return slices.ContainsFunc(r.program.Calls, func(c program.Call) bool { return such(defOf(&c)) })
}

// defOf is the operator of a traced call, nil for one that is unknown.
func defOf(c *program.Call) *op.Def {
	if defs := ops.Table().Lookup(c.Target); len(defs) > 0 {
		return defs[0]
	}
	return nil
}

// learn asks the reference what it calls for a case, so that its bounds are known,
// and returns how many results it has; the error says why it cannot be traced.
func (t *traced) learn(ctx context.Context, ask asker, p *program.Program) (int, error) {
	key, wide := t.keysOf(p)
	t.mu.Lock()
	defer t.mu.Unlock()
	if r, known := t.known[key]; known {
		if r == nil {
			return 0, errUntraced
		}
		return len(r.results), nil
	}
	r, err := record(ctx, ask, p)
	if err == nil {
		err = r.check(p)
	}
	if err != nil {
		t.known[key] = nil
		return 0, err
	}
	t.known[key], t.known[wide] = r, r
	return len(r.results), nil
}

var errUntraced = errors.New("it cannot be traced")

// asker sends a request to a worker that hosts a kernel.
type asker func(ctx context.Context, request, answer any) error

func record(ctx context.Context, ask asker, p *program.Program) (*recording, error) {
	var inputs, args []any
	places := map[program.Ref]int{}
	for i, in := range p.Inputs {
		inputs, places[program.Ref(in.Name)] = append(inputs, [2]any{in.DType.String(), in.Shape}), i
	}
	for _, v := range p.Calls[0].Args {
		switch v := v.(type) {
		case program.Ref:
			args = append(args, []any{"r", places[v]})
		case program.List:
			list := make([]any, len(v))
			for i, e := range v {
				list[i] = []any{"r", places[e.(program.Ref)]}
			}
			args = append(args, []any{"l", list})
		default:
			args = append(args, onWire(v))
		}
	}
	kwargs := map[string]any{}
	for _, kw := range p.Calls[0].Kwargs {
		kwargs[kw.Name] = onWire(kw.Value)
	}
	var told struct {
		Program string
		Results []string
	}
	err := ask(ctx, map[string]any{"trace": map[string]any{"inputs": inputs, "args": args, "kwargs": kwargs}}, &told)
	if err != nil {
		return nil, err
	}
	parsed, err := program.Parse("trace", told.Program)
	if err != nil {
		return nil, err
	}
	return &recording{program: parsed, results: told.Results}, nil
}

// check reports whether every traced call is of an operator of the table.
func (r *recording) check(p *program.Program) error {
	values := make([]op.Value, len(p.Inputs))
	for i := range p.Inputs {
		values[i] = p.Inputs[i].Symbol()
	}
	if len(r.program.Inputs) > len(values) {
		return fmt.Errorf("it computes with tensors of its own")
	}
	seen := &narrowing{Applier: ops.Table().Describer()}
	defer func() { r.narrows = seen.found }()
	return op.Catch(func() { r.apply(op.Builder{Applier: seen}, values) })
}

// narrowing sees conversions of float64 to coarser dtypes.
type narrowing struct {
	op.Applier
	found bool
}

func (n *narrowing) Apply(id string, args []any, kwargs []op.Kwarg) ([]op.Value, error) {
	out, err := n.Applier.Apply(id, args, kwargs)
	if err == nil && len(args) > 0 {
		x, ok := args[0].(op.Value)
		d := out[0].DType()
		n.found = n.found || ok && x.DType() == tensor.F64 && d.IsFloat() && d != tensor.F64
	}
	return out, err
}

// narrows reports whether a case of float64 is traced to calls in coarser dtypes.
func (t *traced) narrows(c *Case) bool {
	r := t.recorded(c.program)
	return c.DType == tensor.F64 && r != nil && r.narrows
}

// onWire is a plain attribute as the worker protocol has it.
func onWire(v any) any {
	switch v := v.(type) {
	case tensor.DType:
		return []any{"d", v.String()}
	case program.Tuple:
		list := make([]any, len(v))
		for i, e := range v {
			list[i] = onWire(e)
		}
		return []any{"u", list}
	}
	return v
}
