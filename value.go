package plumb

import (
	"fmt"
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
func (v *Value) Add(x any) *Value { return v.p.Operator("add", v, x) }

// Sub records v - x.
func (v *Value) Sub(x any) *Value { return v.p.Operator("sub", v, x) }

// Mul records v * x.
func (v *Value) Mul(x any) *Value { return v.p.Operator("mul", v, x) }

// Div records v / x.
func (v *Value) Div(x any) *Value { return v.p.Operator("truediv", v, x) }

// Pow records v ** x.
func (v *Value) Pow(x any) *Value { return v.p.Operator("pow", v, x) }

// MatMul records v @ x.
func (v *Value) MatMul(x any) *Value { return v.p.Operator("matmul", v, x) }

// Neg records -v.
func (v *Value) Neg() *Value { return v.p.Operator("neg", v) }

// Index records v[index, …].
func (v *Value) Index(index ...any) *Value { return v.p.Operator("getitem", v, indices(index)) }

// SetIndex records v[index, …] = x.
func (v *Value) SetIndex(x any, index ...any) { v.p.Operator("setitem", v, indices(index), x) }

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
	if v.known() != aTuple {
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

// known returns what kind of value v is.
func (v *Value) known() kind {
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
