package op

import (
	"slices"

	"plumb/tensor"
)

// Applier applies operators by id to values: at once, or by recording them.
type Applier interface {
	Apply(id string, args []any, kwargs []Kwarg) ([]Value, error)
}

// Builder is how gradients and modules are written: operators by name over an
// Applier. The first error ends the rule that runs on it; Catch returns it.
type Builder struct{ Applier }

type buildError struct{ err error }

// Catch runs f and returns the error that ended it on a Builder.
func Catch(f func()) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case buildError:
			err = r.err
		default:
			panic(r)
		}
	}()
	f()
	return nil
}

// Fail ends the rule that runs on a Builder with an error.
func Fail(err error) { panic(buildError{err}) }

// All applies an operator and returns all of its results. Kwarg arguments
// (see Kw) are passed by keyword.
func (b Builder) All(id string, args ...any) []Value {
	var pos []any
	var kws []Kwarg
	for _, a := range args {
		if kw, ok := a.(Kwarg); ok {
			kws = append(kws, kw)
		} else {
			pos = append(pos, a)
		}
	}
	out, err := b.Apply(id, pos, kws)
	if err != nil {
		Fail(err)
	}
	return out
}

// Op applies an operator and returns its first result.
func (b Builder) Op(id string, args ...any) Value { return b.All(id, args...)[0] }

// Add returns x + y.
func (b Builder) Add(x, y any) Value { return b.Op("add", x, y) }

// Sub returns x - y.
func (b Builder) Sub(x, y any) Value { return b.Op("sub", x, y) }

// Mul returns x * y.
func (b Builder) Mul(x, y any) Value { return b.Op("mul", x, y) }

// Div returns x / y.
func (b Builder) Div(x, y any) Value { return b.Op("div", x, y) }

// Neg returns -x.
func (b Builder) Neg(x any) Value { return b.Op("neg", x) }

// Cast returns x in dtype d; x itself when it has it.
func (b Builder) Cast(x Value, d tensor.DType) Value {
	if x.DType() == d {
		return x
	}
	return b.Op("to", x, d)
}

// Reshape returns x in another shape of as many elements.
func (b Builder) Reshape(x Value, shape []int) Value { return b.Op("reshape", x, shape) }

// Expand returns x broadcast to shape.
func (b Builder) Expand(x Value, shape []int) Value { return b.Op("expand", x, shape) }

// Clone returns a copy of x.
func (b Builder) Clone(x Value) Value { return b.Op("clone", x) }

// OnesLike returns ones of x's dtype and shape.
func (b Builder) OnesLike(x Value) Value { return b.Op("ones_like", x) }

// FullLike returns a number of x's dtype everywhere in x's shape.
func (b Builder) FullLike(x Value, n any) Value { return b.Op("full_like", x, n) }

// Arange returns 0, 1, … n-1.
func (b Builder) Arange(n int) Value { return b.Op("arange", n) }

// Narrow returns the n entries of x from start on along a dimension.
func (b Builder) Narrow(x Value, dim, start, n int) Value { return b.Op("narrow", x, dim, start, n) }

// Stack joins tensors of one shape along a new first dimension.
func (b Builder) Stack(xs []any) Value { return b.Op("stack", xs) }

// Cat joins tensors along their first dimension.
func (b Builder) Cat(xs []any) Value { return b.Op("cat", xs, 0) }

// Put returns x with values at the places, counted in row-major order.
func (b Builder) Put(x, places, values Value) Value { return b.Op("put", x, places, values) }

// Replace returns the elements of y; x, which they replace, has a gradient of zeros.
func (b Builder) Replace(x, y Value) Value { return b.Op("where", b.Op("tensor", true), y, x) }

// Detach returns x, of which nothing depends in a gradient.
func (b Builder) Detach(x Value) Value { return b.Op("detach", x) }

// NoGradient returns x, which refuses to be differentiated for a reason.
func (b Builder) NoGradient(x Value, reason string) Value { return b.Op("no_gradient", x, reason) }

// SumTo undoes a broadcast: it sums g over the dimensions along which shape
// was repeated to become g's shape.
func (b Builder) SumTo(g Value, shape []int) Value {
	lead := len(g.Shape()) - len(shape)
	var dims []int
	for i, n := range g.Shape() {
		if i < lead || shape[i-lead] == 1 && n != 1 {
			dims = append(dims, i)
		}
	}
	if len(dims) == 0 {
		return g
	}
	return b.Reshape(b.Op("sum", g, Kw("dim", dims)), shape)
}

// Grad is what a gradient rule sees: the call that is differentiated, its
// results, the gradients of those (the cotangents), and a Builder to write on.
type Grad struct {
	Builder
	Args
	Out   []Value // the results of the call
	Cot   []Value // dL/dOut; nil where no gradient arrives
	Draw  int     // the call's, by which its draws are repeated
	need  func(Value) bool
	grads map[Value]Value
}

// NewGrad prepares the rule of one call. Need reports which inputs want a gradient.
func NewGrad(b Builder, a Args, out, cot []Value, need func(Value) bool) *Grad {
	return &Grad{Builder: b, Args: a, Out: out, Cot: cot, need: need, grads: map[Value]Value{}}
}

// G returns the cotangent of result 0; nil when none arrives.
func (g *Grad) G() Value { return g.Cot[0] }

// Needs reports whether a tensor argument wants a gradient.
func (g *Grad) Needs(p TensorArg) bool {
	v := g.Value(p)
	return v != nil && g.need(v)
}

// NeedsValue reports whether an element of a Tensor[] argument wants a gradient.
func (g *Grad) NeedsValue(v Value) bool { return g.need(v) }

// To sets the gradient of a tensor argument when it wants one: f
// builds it. What f returns is summed over broadcast dimensions and cast to
// the argument's dtype and shape; a complex gradient of a real argument keeps
// its real part. One that the argument's shape does not broadcast to is a
// RuntimeError, as in PyTorch. A nil result means no gradient.
func (g *Grad) To(p TensorArg, f func() Value) {
	if g.Needs(p) {
		g.ToValue(g.Value(p), f)
	}
}

// ToValue is To for a value, such as an element of a Tensor[] argument.
// Gradients of a value that occurs twice among the arguments add up.
func (g *Grad) ToValue(v Value, f func() Value) {
	if !g.need(v) {
		return
	}
	d := f()
	if d == nil {
		return
	}
	if !repeats(d.Shape(), v.Shape()) {
		Fail(RuntimeError("the gradient has the shape %s, which is not that of its input, %s", tensor.ShapeString(d.Shape()), tensor.ShapeString(v.Shape())))
	}
	d = g.Cast(g.SumTo(d, v.Shape()), v.DType())
	if prev := g.grads[v]; prev != nil {
		d = g.Add(prev, d)
	}
	g.grads[v] = d
}

// repeats reports whether shape broadcasts to the shape big.
func repeats(big, shape []int) bool {
	lead := len(big) - len(shape)
	if lead < 0 {
		return false
	}
	for i, n := range shape {
		if n != 1 && n != big[lead+i] {
			return false
		}
	}
	return true
}

// Gradient makes the Grad of an operator of whose tensors the first alone has
// a gradient: rule returns it, as for To.
func Gradient(rule func(g *Grad) Value) func(*Grad) {
	return func(g *Grad) {
		first := slices.IndexFunc(g.Sig.Params, func(p Param) bool { return p.Type.Kind == KTensor && !p.Type.List })
		GradientOf(TensorArg(g.Sig.Params[first].Name), rule)(g)
	}
}

// GradientOf is Gradient for another tensor.
func GradientOf(p TensorArg, rule func(g *Grad) Value) func(*Grad) {
	return func(g *Grad) { g.To(p, func() Value { return rule(g) }) }
}

// Result returns the gradient that the rule set for an input; nil if none.
func (g *Grad) Result(v Value) Value { return g.grads[v] }

// IsBuilding reports whether what a rule panicked with is an error that ended it
// on a Builder, which Catch returns.
func IsBuilding(recovered any) bool {
	_, ok := recovered.(buildError)
	return ok
}

// Changed runs a rule with f applied to the gradient that it gives an argument, for
// those who plant faults; nil of f takes it away.
func (g *Grad) Changed(rule func(*Grad), p TensorArg, f func(Value) Value) {
	rule(g)
	v := g.Value(p)
	if v == nil || g.grads[v] == nil {
		return
	}
	if changed := f(g.grads[v]); changed != nil {
		g.grads[v] = changed
	} else {
		delete(g.grads, v)
	}
}
