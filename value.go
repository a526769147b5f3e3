package plumb

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"plumb/api"
	"plumb/internal/draw/gen"
	"plumb/op"
	"plumb/program"
	"plumb/tensor"
)

// Value is an input or the result of a recorded call: a tensor, a tuple, a
// module or a number. Arguments of its methods, and of those of T, are values,
// typed tensors of package api, Go numbers, bools, strings and slices of these,
// dtypes and memory formats, nil for None, Slice, All and Ellipsis, and, for
// arguments by keyword, Kw.
type Value struct {
	p       *T
	ref     program.Ref
	kind    kind
	metas   []op.Meta // what is inferred, of a tuple for each element
	refusal error     // of the inference
	input   int       // number of an input among the inputs
	elems   []*Value  // of a tuple, once used
}

type kind uint8

const (
	unknown kind = iota
	aTensor
	aTuple
	aModule
	aNumber
)

// Kw makes an argument by keyword. One that is Nothing is left out.
func Kw(name string, value any) op.Kwarg { return op.Kw(name, value) }

// Slice is start:stop:step among the arguments of Value.Index; nil parts are
// left out.
func Slice(start, stop, step any) any { return program.Slice{Start: start, Stop: stop, Step: step} }

// All is ":" among the arguments of Value.Index, Ellipsis is "...".
var (
	All      any = program.Slice{}
	Ellipsis any = program.Ellipsis{}
)

// Torch records a call of a function below torch, such as "relu" or
// "nn.functional.conv2d". The name need not be known to Plumb.
func (p *T) Torch(name string, args ...any) *Value {
	return p.call("torch."+strings.TrimPrefix(name, "torch."), args)
}

// Module makes a module below torch, such as "nn.Conv2d". Its parameters are
// the reference's, drawn from the case's seed.
func (p *T) Module(name string, args ...any) *Value {
	m := p.Torch(name, args...)
	if m.kind != aModule {
		p.fail(fmt.Errorf("torch.%s is no module's class; use Torch", strings.TrimPrefix(name, "torch.")))
	}
	return m
}

// Operator records a Python operator by its name in module operator: "add",
// "lt", "getitem", "iadd" and so on.
func (p *T) Operator(name string, args ...any) *Value { return p.call("operator."+name, args) }

// Method records a call of a tensor's or module's method.
func (v *Value) Method(name string, args ...any) *Value {
	receiver := "Tensor."
	if v.kind == aModule {
		receiver = "Module."
	}
	return v.p.call(receiver+name, append([]any{v}, args...))
}

// Call records a call of a module.
func (v *Value) Call(args ...any) *Value {
	if v.kind != aModule {
		v.p.fail(fmt.Errorf("%s is no module and cannot be called", v.ref))
	}
	return v.p.call("Module.__call__", append([]any{v}, args...))
}

// Attr records the use of an attribute such as "T" or "weight".
func (v *Value) Attr(name string) *Value {
	return v.p.record(program.Call{Target: "getattr", Args: []any{v.ref, name}})
}

// Add records v + x.
func (v *Value) Add(x any) *Value { return v.p.call("operator.add", []any{v, x}) }

// Sub records v - x.
func (v *Value) Sub(x any) *Value { return v.p.call("operator.sub", []any{v, x}) }

// Mul records v * x.
func (v *Value) Mul(x any) *Value { return v.p.call("operator.mul", []any{v, x}) }

// Div records v / x.
func (v *Value) Div(x any) *Value { return v.p.call("operator.truediv", []any{v, x}) }

// Pow records v ** x.
func (v *Value) Pow(x any) *Value { return v.p.call("operator.pow", []any{v, x}) }

// MatMul records v @ x.
func (v *Value) MatMul(x any) *Value { return v.p.call("operator.matmul", []any{v, x}) }

// Neg records -v.
func (v *Value) Neg() *Value { return v.p.call("operator.neg", []any{v}) }

// Index records v[index, …].
func (v *Value) Index(index ...any) *Value {
	return v.p.call("operator.getitem", []any{v, indices(index)})
}

// SetIndex records v[index, …] = x.
func (v *Value) SetIndex(x any, index ...any) {
	v.p.call("operator.setitem", []any{v, indices(index), x})
}

// indices are one index, or a tuple of several.
func indices(index []any) any {
	if len(index) == 1 {
		return index[0]
	}
	return program.Tuple(index)
}

// call records a call whose arguments are those of a test.
func (p *T) call(target string, args []any) *Value {
	c := program.Call{Target: target}
	for _, a := range args {
		if kw, ok := a.(op.Kwarg); ok {
			if x := p.argument(kw.Value); x != any(gen.Missing{}) {
				c.Kwargs = append(c.Kwargs, program.Kwarg{Name: kw.Name, Value: x})
			}
			continue
		}
		x := p.argument(a)
		switch {
		case x == any(gen.Missing{}):
			p.fail(fmt.Errorf("%s: Nothing leaves out an argument by keyword (plumb.Kw); this one is positional", target))
		case len(c.Kwargs) > 0:
			p.fail(fmt.Errorf("%s: a positional argument follows one by keyword", target))
		}
		c.Args = append(c.Args, x)
	}
	return p.record(c)
}

// argument turns a value of the test into an argument of a program.
func (p *T) argument(v any) any {
	switch v := v.(type) {
	case nil, bool, int64, float64, complex128, string, tensor.DType, tensor.MemoryFormat, program.Ellipsis, gen.Missing:
		return v
	case int:
		return int64(v)
	case *Value:
		return p.own(v)
	case *api.Tensor:
		return p.own(p.Dynamic(v))
	case []int:
		return program.FromOp(v)
	case []float64:
		return program.FromOp(v)
	case []*Value:
		return program.List(list(p, v))
	case []*api.Tensor:
		return program.List(list(p, v))
	case []any:
		return program.List(list(p, v))
	case program.List:
		return program.List(list(p, v))
	case program.Tuple:
		return program.Tuple(list(p, v))
	case program.Slice:
		return program.Slice{Start: p.argument(v.Start), Stop: p.argument(v.Stop), Step: p.argument(v.Step)}
	}
	p.fail(fmt.Errorf("a %T cannot be passed to an operator", v))
	return nil
}

func list[V any](p *T, vs []V) []any {
	out := make([]any, len(vs))
	for i, v := range vs {
		out[i] = p.argument(v)
	}
	return out
}

// own returns the name of a value of this case.
func (p *T) own(v *Value) program.Ref {
	if v == nil || v.p != p {
		p.fail(fmt.Errorf("a value of another case cannot be used: draw it inside of the function"))
	}
	return v.ref
}

// Shape returns the dimensions of a tensor. Those of a result are the
// reference's.
func (v *Value) Shape() []int {
	if v.input > 0 && !v.p.changed {
		return append([]int(nil), v.metas[0].Shape...)
	}
	return v.Tensor().Shape()
}

// DType returns the element type of a tensor. That of a result is the
// reference's.
func (v *Value) DType() tensor.DType {
	if v.input > 0 && !v.p.changed {
		return v.metas[0].DType
	}
	return v.Tensor().DType()
}

// Tensor returns the elements, which the reference computes.
func (v *Value) Tensor() *tensor.Tensor {
	x := v.p.observe(v.ref)
	if x.Tensor == nil {
		v.p.fail(fmt.Errorf("%s is no tensor", v.ref))
	}
	return x.Tensor
}

// Item returns a number that was computed, or the one element of a tensor, as
// a bool, int64, float64 or complex128. It is the reference's.
func (v *Value) Item() any {
	x := v.p.observe(v.ref)
	if x.Tensor == nil {
		return x.Plain
	}
	item, err := x.Tensor.Item()
	if err != nil {
		v.p.fail(fmt.Errorf("%s: %w", v.ref, err))
	}
	return item
}

// At returns an element of a tuple.
func (v *Value) At(i int) *Value {
	if n := v.length(); i < 0 || i >= n {
		v.p.fail(fmt.Errorf("element %d of a tuple of %d", i, n))
	}
	if v.elems == nil {
		v.elems = make([]*Value, v.length())
	}
	if v.elems[i] == nil {
		e := v.p.record(program.Call{Target: "operator.getitem", Args: []any{v.ref, int64(i)}})
		e.refusal = nil
		if v.metas != nil {
			e.kind, e.metas = aTensor, v.metas[i:i+1]
		}
		v.elems[i] = e
	}
	return v.elems[i]
}

// Unpack returns the elements of a tuple.
func (v *Value) Unpack() []*Value {
	out := make([]*Value, v.length())
	for i := range out {
		out[i] = v.At(i)
	}
	return out
}

// length returns the length of a tuple, which the reference is asked for when
// nothing else tells.
func (v *Value) length() int {
	if v.observedKind() != aTuple {
		v.p.fail(fmt.Errorf("%s is no tuple", v.ref))
	}
	if v.metas != nil {
		return len(v.metas)
	}
	if v.elems == nil {
		v.elems = make([]*Value, len(v.p.observe(v.ref).Tuple))
	}
	return len(v.elems)
}

// observedKind returns what kind of value v is.
func (v *Value) observedKind() kind {
	if v.kind != unknown {
		return v.kind
	}
	switch x := v.p.observe(v.ref); {
	case x.Tensor != nil:
		v.kind = aTensor
		v.metas = []op.Meta{{DType: x.Tensor.DType(), Shape: x.Tensor.Shape(), Strides: x.Tensor.Strides()}}
	case x.IsTuple:
		v.kind = aTuple
	case x.Module:
		v.kind = aModule
	default:
		v.kind = aNumber
	}
	return v.kind
}

// Typed returns a tensor for the functions of package api, which then record
// into the case:
//
//	y, err := api.Conv2D(x.Typed(), w.Typed(), api.Conv2DOptions{Stride: []int{2}})
//
// The error is Plumb's own refusal. The call stays in the case all the same:
// Must ends the draw there, and the reference has to refuse it as well. The
// shape and dtype of a result are those that Plumb infers.
func (v *Value) Typed() *api.Tensor {
	if v.observedKind() != aTensor {
		v.p.fail(fmt.Errorf("%s is no tensor", v.ref))
	}
	return v.p.Session().Recorded(program.NewSymbol(v.ref, v.metas[0]))
}

// Dynamic returns the value of a typed tensor of the case.
func (p *T) Dynamic(t *api.Tensor) *Value {
	if t == nil {
		p.fail(errors.New("a nil *api.Tensor is no value"))
	}
	s, ok := t.Value().(*program.Symbol)
	if !ok || p.values[s.Ref] == nil {
		p.fail(errors.New("a tensor of another session cannot be used: make it of a value by Typed, or by Session"))
	}
	return p.values[s.Ref]
}

// Must returns v. Where a typed call was refused it ends the draw, whose last
// call is then the refused one.
func Must[V any](v V, err error) V {
	NoError(err)
	return v
}

// NoError is Must for a typed call of several results.
func NoError(err error) {
	var refused *op.Error
	switch {
	case err == nil:
	case errors.As(err, &refused):
		panic(stop{})
	default:
		panic(stop{fmt.Errorf("%s%w", position(), err)})
	}
}

// recorder takes the calls of typed functions into a case.
type recorder struct{ p *T }

// Literal makes an input of a tensor.
func (r recorder) Literal(t *tensor.Tensor) op.Value {
	v := r.p.Literal(t)
	return program.NewSymbol(v.ref, v.metas[0])
}

// Observe returns the reference's value.
func (r recorder) Observe(v op.Value) (*tensor.Tensor, bool) {
	x := r.p.observe(v.(*program.Symbol).Ref)
	if x.Tensor != nil {
		return x.Tensor, x.RequiresGrad
	}
	switch n := x.Plain.(type) {
	case bool:
		return tensor.Scalar(tensor.Bool, op.ScalarOf(n).Complex()), false
	case int64:
		return tensor.Scalar(tensor.I64, complex(float64(n), 0)), false
	case float64:
		return tensor.Scalar(tensor.F64, complex(n, 0)), false
	case complex128:
		return tensor.Scalar(tensor.C128, n), false
	}
	r.p.fail(fmt.Errorf("%s is no tensor", v.(*program.Symbol).Ref))
	return nil, false
}

// Record notes a call by one of the operator's public names.
func (r recorder) Record(name string, args []any, kwargs []op.Kwarg) ([]op.Value, error) {
	c, err := r.p.named(name, args, kwargs)
	if err != nil {
		return nil, err
	}
	v := r.p.record(c)
	var refused *op.Error
	if errors.As(v.refusal, &refused) {
		return nil, refused
	}
	results := []*Value{v}
	if v.observedKind() == aTuple {
		results = v.Unpack()
	}
	out := make([]op.Value, len(results))
	for i, x := range results {
		var m op.Meta
		if x.observedKind() == aTensor || len(x.metas) == 1 {
			m = x.metas[0]
		}
		out[i] = program.NewSymbol(x.ref, m)
	}
	return out, nil
}

// named writes a call of an operator, given by id or by public name, as PyTorch
// has it: required arguments by position, the others by keyword. Where a public
// name means another operator without the arguments that are left out, these
// are written too.
func (p *T) named(name string, args []any, kwargs []op.Kwarg) (program.Call, error) {
	d := p.table.Def(name)
	if d == nil {
		return p.asWritten(name, args, kwargs), nil
	}
	given, err := arguments(d, args, kwargs)
	if err != nil {
		return program.Call{}, err
	}
	for _, all := range []map[string]any{given, withDefaults(d, given)} {
		for _, n := range preferred(d, given) {
			c, ok := written(d, n, all)
			if !ok {
				continue
			}
			if bound, err := p.bind(&c); err != nil || bound.Def == d {
				return c, nil
			}
		}
	}
	return p.asWritten(program.OwnPrefix+name, args, kwargs), nil
}

// arguments returns the arguments of a call by the names of their parameters,
// in the first signature that takes them, else in the main one.
func arguments(d *op.Def, args []any, kwargs []op.Kwarg) (map[string]any, error) {
	sig := d.Sigs()[0]
	for _, s := range d.Sigs() {
		if _, err := s.Bind(args, kwargs, false); err == nil {
			sig = s
			break
		}
	}
	if len(args) > len(sig.Params) {
		return nil, op.TypeError("%s takes %d arguments but %d were given", sig.Name, len(sig.Params), len(args))
	}
	given := map[string]any{}
	for i, a := range args {
		given[sig.Params[i].Name] = program.FromOp(a)
	}
	for _, kw := range kwargs {
		given[kw.Name] = program.FromOp(kw.Value)
	}
	return given, nil
}

// withDefaults adds the defaults of the arguments that are left out.
func withDefaults(d *op.Def, given map[string]any) map[string]any {
	all := map[string]any{}
	for _, p := range d.Sigs()[0].Params {
		if v, ok := given[p.Name]; ok {
			all[p.Name] = v
		} else if p.HasDefault {
			all[p.Name] = program.FromOp(p.Default)
		}
	}
	return all
}

// asWritten writes a call with its arguments as they are.
func (p *T) asWritten(name string, args []any, kwargs []op.Kwarg) program.Call {
	c := program.Call{Target: name}
	for _, a := range args {
		c.Args = append(c.Args, program.FromOp(a))
	}
	for _, kw := range kwargs {
		c.Kwargs = append(c.Kwargs, program.Kwarg{Name: kw.Name, Value: program.FromOp(kw.Value)})
	}
	return c
}

// preferred returns the operator's names in the order in which they are tried:
// functions before methods and Python operators, which come first when the
// first argument is a number.
func preferred(d *op.Def, given map[string]any) []string {
	order := []string{"torch.", "Tensor.", "operator."}
	if _, tensor := given[d.Sigs()[0].Params[0].Name].(program.Ref); !tensor {
		order = []string{"operator.", "torch."}
	}
	var names []string
	for _, prefix := range order {
		for _, n := range d.Names {
			if strings.HasPrefix(n, prefix) && !op.InPlace(n) {
				names = append(names, n)
			}
		}
	}
	return names
}

// written writes a call by one public name; false when that cannot take the
// arguments.
func written(d *op.Def, name string, given map[string]any) (program.Call, bool) {
	own, main := d.Called(name), d.Sigs()[0]
	positional := own.Unnamed || strings.HasPrefix(name, "operator.")
	var args []any
	var kwargs []program.Kwarg
	placed, gap := 0, false
	for i, param := range own.Params {
		v, ok := given[main.Params[i].Name]
		if !ok {
			gap = true
			continue
		}
		placed++
		switch {
		case !gap && !param.KwOnly && (positional || !param.HasDefault):
			args = append(args, v)
		case positional:
			return program.Call{}, false
		default:
			gap = true
			kwargs = append(kwargs, program.Kwarg{Name: param.Name, Value: v})
		}
	}
	if strings.HasPrefix(name, "Tensor.") && (len(args) == 0 || !isRef(args[0])) {
		return program.Call{}, false
	}
	return program.Written(d, "", name, slices.Clip(args), kwargs), placed == len(given)
}

func isRef(v any) bool { _, ok := v.(program.Ref); return ok }
