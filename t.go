package plumb

import (
	"fmt"

	"plumb/api"
	"plumb/backend"
	"plumb/internal/campaign"
	"plumb/internal/draw/gen"
	"plumb/op"
	"plumb/program"
	"plumb/tensor"
)

// T is one case that is being drawn: the source of its random values and the
// record of its calls. It is for the goroutine of the function that it is
// given to. A mistake in the test, such as a bound that is no number, ends the
// draw and fails the test at its line.
type T struct {
	gen      *gen.Case
	prog     *program.Program
	table    *op.Table
	observer campaign.Observer
	session  *api.Session
	values   map[program.Ref]*Value
	seen     map[program.Ref]backend.Value // observed since the last call
	changed  bool                          // some call was in place
}

// Draw draws from a generator of package gen. A tensor is a *Value, an int an
// int64; Nothing's value leaves an argument out.
func (p *T) Draw(n *gen.Node) any {
	v, err := n.Value(p.gen)
	if err != nil {
		p.fail(err)
	}
	if t, ok := v.(*gen.Tensor); ok {
		return p.add(program.Input{DType: t.DType, Shape: t.Shape, Strides: t.Strides, Fill: t.Fill, RequiresGrad: t.RequiresGrad})
	}
	return v
}

func (p *T) number(typ gen.Type, low, high any) any {
	n := gen.Random(low, high)
	n.To(p.gen, typ)
	return p.Draw(n)
}

// Int draws an integer in [low, high).
func (p *T) Int(low, high int) int { return int(p.number(gen.Int, low, high).(int64)) }

// Float draws a number uniformly in [low, high).
func (p *T) Float(low, high float64) float64 { return p.number(gen.Float, low, high).(float64) }

// Bool draws a fair coin.
func (p *T) Bool() bool { return p.Draw(gen.RandomBool()).(bool) }

// OneOf draws one of the values, each as likely as the others. Pick does so
// for values of one type.
func (p *T) OneOf(values ...any) any { return values[p.pick(nil, len(values))] }

// Weighted draws one of the values with the given probabilities, which add up
// to 1.
func (p *T) Weighted(weights []float64, values ...any) any {
	return values[p.pick(weights, len(values))]
}

// Pick draws one of the values, each as likely as the others.
func Pick[V any](p *T, values ...V) V { return values[p.pick(nil, len(values))] }

func (p *T) pick(weights []float64, n int) int {
	indices := make([]any, n)
	for i := range indices {
		indices[i] = i
	}
	node, err := gen.OneOf(weights, indices...)
	if err != nil {
		p.fail(err)
	}
	return int(p.Draw(node).(int64))
}

// Nothing is the value of an argument by keyword that is left out.
func (p *T) Nothing() any { return gen.Missing{} }

// Maybe gives x or Nothing, one as likely as the other.
func (p *T) Maybe(x any) any { return p.OneOf(p.Nothing(), x) }

// DType draws an element type of AutoTest's groups, uniformly over all their
// members: all, arithmetic, bfloat16, bool, complex, float, half, image, index,
// int, pod, signed, unsigned.
func (p *T) DType(groups ...string) tensor.DType {
	n, err := gen.RandomDType(groups...)
	if err != nil {
		p.fail(err)
	}
	return p.Draw(n).(tensor.DType)
}

// Device draws one of the devices of the run: "cpu".
func (p *T) Device() string { return p.Draw(gen.RandomDevice()).(string) }

// TensorOption says what a drawn tensor is like.
type TensorOption func(*gen.TensorSpec) error

// NDim sets the number of dimensions: 1 to 5 unless it is given.
func NDim(n int) TensorOption {
	return func(s *gen.TensorSpec) error { s.NDim = n; return nil }
}

// Dim sets the size of one of the first five dimensions. Unless it is given,
// dimension 0 has the size 1, as in AutoTest, and any other 1 to 7.
func Dim(i, size int) TensorOption {
	return func(s *gen.TensorSpec) error {
		if i < 0 || i >= len(s.Dims) {
			return fmt.Errorf("plumb.Dim(%d, %d): only the dimensions 0 to %d can be set", i, size, len(s.Dims)-1)
		}
		s.Dims[i] = size
		return nil
	}
}

// Dims sets the whole shape, of at most five dimensions.
func Dims(sizes ...int) TensorOption {
	return func(s *gen.TensorSpec) error {
		s.NDim = len(sizes)
		for i, n := range sizes {
			if err := Dim(i, n)(s); err != nil {
				return err
			}
		}
		return nil
	}
}

// DType sets the element type: float32 unless it is given.
func DType(d tensor.DType) TensorOption {
	return func(s *gen.TensorSpec) error { s.DType = d; return nil }
}

// Low sets the least element. Elements are uniform: floats in [-1, 1), integers
// in [-10, 11), both parts of a complex in [-10, 10) unless Low or High are given.
func Low(x float64) TensorOption {
	return func(s *gen.TensorSpec) error { s.Low = x; return nil }
}

// High sets the end of the elements' range, which is not in it.
func High(x float64) TensorOption {
	return func(s *gen.TensorSpec) error { s.High = x; return nil }
}

// RequiresGrad says whether the gradient of the tensor is compared: it is,
// unless the option says otherwise or the elements are integers or bools.
func RequiresGrad(b bool) TensorOption {
	return func(s *gen.TensorSpec) error { s.RequiresGrad = b; return nil }
}

// Layouts draws the tensor's layout among those named: "contiguous", "strided",
// "transposed", "expanded", "channels_last", and "non-contiguous" for strided
// and transposed. Unless it is given, tensors are contiguous.
func Layouts(names ...string) TensorOption {
	return func(s *gen.TensorSpec) error {
		for _, n := range names {
			ls, err := gen.ParseLayout(n)
			if err != nil {
				return fmt.Errorf("plumb.Layouts: %w", err)
			}
			s.Layouts = append(s.Layouts, ls...)
		}
		return nil
	}
}

// Special mixes edge values among the elements: "zeros" (of both signs), "inf",
// "nan", "subnormal", "ties", "extremes". A tensor has none of them, those of
// one kind, or those of all.
func Special(kinds ...string) TensorOption {
	return func(s *gen.TensorSpec) error {
		for _, k := range kinds {
			kind, err := program.ParseSpecial(k)
			if err != nil {
				return fmt.Errorf("plumb.Special: %w", err)
			}
			s.Special |= kind
		}
		return nil
	}
}

// Tensor draws a tensor. A quarter of those of floats hold zeros, ±1 and values
// that recur.
func (p *T) Tensor(options ...TensorOption) *Value {
	var s gen.TensorSpec
	for _, o := range options {
		if err := o(&s); err != nil {
			p.fail(err)
		}
	}
	return p.Draw(gen.RandomTensor(s)).(*Value)
}

// Literal makes an input of the elements of t.
func (p *T) Literal(t *tensor.Tensor) *Value {
	return p.add(program.Input{DType: t.DType(), Shape: t.Shape(), Fill: program.Fill{Dist: program.Literal, Data: t.Contiguous()}})
}

// Return says what the test computes, as values or typed tensors: each tensor
// among them that requires a gradient is differentiated, with random
// cotangents. Without Return and Backward no gradients are compared.
func (p *T) Return(values ...any) { p.differentiate(true, values) }

// Backward differentiates the values, with random cotangents. One that requires
// no gradient is refused by the reference, and has to be by the candidate.
func (p *T) Backward(values ...any) { p.differentiate(false, values) }

func (p *T) differentiate(auto bool, values []any) {
	for _, x := range values {
		ref, ok := p.argument(x).(program.Ref)
		if !ok {
			p.fail(fmt.Errorf("%T has no gradient", x))
		}
		v := p.values[ref]
		switch v.known() {
		case aTensor:
			p.prog.Backward = append(p.prog.Backward, program.Backward{Value: ref, Auto: auto, Cotangent: p.cotangent()})
		case aTuple:
			for i := range v.length() {
				p.differentiate(auto, []any{v.At(i)})
			}
		}
	}
}

func (p *T) cotangent() program.Fill {
	if p.gen.Integers {
		return program.Fill{Dist: program.Integer, Lo: 1, Hi: 4, Key: p.gen.Key()}
	}
	return program.Fill{Dist: program.Uniform, Lo: 0, Hi: 1, Key: p.gen.Key()}
}

// Fatalf ends the draw and fails the test: the test itself is wrong.
func (p *T) Fatalf(format string, args ...any) { p.fail(fmt.Errorf(format, args...)) }
