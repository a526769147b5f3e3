package api

import (
	"fmt"
	"slices"

	"plumb/internal/eager"
	"plumb/op"
	"plumb/tensor"
)

// Tensor is a tensor of a session.
type Tensor struct {
	v *eager.Var
	r *op.Value // in place of v, of a session that records
	s *Session
}

// Element is the set of Go types of elements. Float16 and BFloat16 hold bits.
type Element interface {
	bool | uint8 | int8 | int16 | int32 | int64 | tensor.Float16 | tensor.BFloat16 | float32 | float64 | complex64 | complex128
}

// dtypeOf returns the dtype whose elements are of type T.
func dtypeOf[T Element]() DType {
	var zero T
	switch any(zero).(type) {
	case bool:
		return tensor.Bool
	case uint8:
		return tensor.U8
	case int8:
		return tensor.I8
	case int16:
		return tensor.I16
	case int32:
		return tensor.I32
	case int64:
		return tensor.I64
	case tensor.Float16:
		return tensor.F16
	case tensor.BFloat16:
		return tensor.BF16
	case float32:
		return tensor.F32
	case float64:
		return tensor.F64
	case complex64:
		return tensor.C64
	}
	return tensor.C128
}

// FromSlice returns a tensor of the elements in row-major order, which it
// copies; no dimensions give a 0-d tensor. The dtype is that of T. The error
// says that the shape is not one of as many elements.
func FromSlice[T Element](s *Session, elements []T, shape ...int) (*Tensor, error) {
	if err := tensor.CheckShape(dtypeOf[T](), shape); err != nil {
		return nil, op.RuntimeError("FromSlice: %v", err)
	}
	if tensor.NumElements(shape) != len(elements) {
		return nil, op.RuntimeError("FromSlice: shape %s is invalid for input of size %d", tensor.ShapeString(shape), len(elements))
	}
	return s.Wrap(tensor.Of(dtypeOf[T](), shape, elements)), nil
}

// Wrap returns a tensor of the session that shares the elements of t.
func (s *Session) Wrap(t *tensor.Tensor) *Tensor {
	if s.rec != nil {
		return s.Recorded(s.rec.Literal(t))
	}
	return &Tensor{v: s.eager.Leaf(t, false), s: s}
}

// Unwrap returns the tensor without its session, on its device. It shares the elements.
func (t *Tensor) Unwrap() *tensor.Tensor { return t.elements() }

// Values returns a copy of the elements in row-major order, on the host. The error says
// that T is not the type of t's elements.
func Values[T Element](t *Tensor) ([]T, error) {
	if d := dtypeOf[T](); d != t.DType() {
		return nil, op.TypeError("Values: the elements are %s, not %s", t.DType(), d)
	}
	h, err := t.here()
	if err != nil {
		return nil, err
	}
	c := h.Contiguous()
	return slices.Clone(tensor.Data[T](c)[:c.Len()]), nil
}

// Float64s returns the elements in row-major order as float64, whatever the
// dtype; of a complex tensor, the real parts. It panics when a device fails.
func (t *Tensor) Float64s() []float64 {
	h, err := t.here()
	if err != nil {
		panic(fmt.Sprintf("api: %s from %s: %v", t, t.Device(), err))
	}
	c := h.Convert(tensor.F64)
	return tensor.Data[float64](c)[:c.Len()]
}

// Item returns the one element. The error says that t has not exactly one.
func (t *Tensor) Item() (Scalar, error) {
	h, err := t.here()
	if err != nil {
		return Scalar{}, err
	}
	v, err := h.Item()
	if err != nil {
		return Scalar{}, op.ValueError("%v", err)
	}
	return Scalar{op.ScalarOf(v)}, nil
}

// Shape returns a copy of the dimensions.
func (t *Tensor) Shape() []int { return slices.Clone(t.Value().Shape()) }

// Strides returns a copy of the strides, in elements.
func (t *Tensor) Strides() []int { return slices.Clone(t.Value().Strides()) }

// DType returns the element type.
func (t *Tensor) DType() DType { return t.Value().DType() }

// Len returns the number of elements.
func (t *Tensor) Len() int { return tensor.NumElements(t.Value().Shape()) }

// String describes t by dtype and shape, such as "float32[2, 3]".
func (t *Tensor) String() string { return t.DType().String() + tensor.ShapeString(t.Value().Shape()) }

// RequiresGrad reports whether a gradient of t is wanted: t is a leaf of which
// RequireGrad was asked, or was computed from one.
func (t *Tensor) RequiresGrad() bool {
	if t.r != nil {
		_, requires := t.s.rec.Observe(*t.r)
		return requires
	}
	return t.v.RequiresGrad()
}

// RequireGrad asks for the gradient of t in what is computed from it from now
// on. The error says that t's dtype has no gradients.
func (t *Tensor) RequireGrad() error {
	if t.r != nil {
		return errRecording
	}
	if !t.DType().IsDifferentiable() {
		return op.RuntimeError("only Tensors of floating point and complex dtype can require gradients, not %s", t.DType())
	}
	if !t.RequiresGrad() {
		t.v = t.s.eager.Leaf(t.v.Tensor, true)
	}
	return nil
}

// Detach returns a tensor of the same elements through which no gradient flows.
func (t *Tensor) Detach() *Tensor {
	if t.r != nil {
		return t.recordedDetach()
	}
	return t.s.Wrap(t.v.Tensor)
}

// Grad returns the gradient that calls of Backward have added up in t, a leaf;
// nil when none arrived.
func (t *Tensor) Grad() *Tensor {
	if t.r != nil || t.v.Grad == nil {
		return nil
	}
	return &Tensor{v: t.v.Grad, s: t.s}
}

// ZeroGrad forgets the gradient.
func (t *Tensor) ZeroGrad() {
	if t.r == nil {
		t.v.Grad = nil
	}
}

// Backward adds the gradients of t to every leaf that wants one and that t
// depends on. The gradient of t itself is 1, or the one given, of t's shape and
// dtype. It may be called again: what it needs lives as long as t. The error
// says that t wants no gradient, or has several elements and no gradient given.
func (t *Tensor) Backward(gradient ...*Tensor) error {
	if t.r != nil {
		return errRecording
	}
	seed, err := t.seed(gradient)
	if err != nil {
		return err
	}
	cot, err := t.s.differentiate(t, seed, false)
	if err != nil {
		return err
	}
	for x, g := range cot {
		leaf, ok := x.(*eager.Var)
		if !ok || !leaf.IsLeaf() || !leaf.RequiresGrad() {
			continue
		}
		if err := t.s.accumulate(leaf, g.(*eager.Var)); err != nil {
			return fmt.Errorf("backward: %w", err)
		}
	}
	return nil
}

func (t *Tensor) seed(gradient []*Tensor) (*eager.Var, error) {
	if len(gradient) > 0 && gradient[0] != nil {
		g := gradient[0]
		if g.DType() != t.DType() || !slices.Equal(g.v.Shape(), t.v.Shape()) {
			return nil, op.RuntimeError("backward: the gradient is %s, the tensor %s", g, t)
		}
		return g.v, nil
	}
	if t.Len() != 1 {
		return nil, op.RuntimeError("backward: grad can be implicitly created only for scalar outputs, not for %s", t)
	}
	ones := tensor.New(t.DType(), t.v.Shape()...)
	ones.Set(0, 1)
	return t.s.eager.Leaf(ones, false), nil
}

func (s *Session) accumulate(leaf, g *eager.Var) error {
	if leaf.Grad == nil {
		leaf.Grad = g
		return nil
	}
	return s.NoGrad(func() error {
		return op.Catch(func() {
			leaf.Grad = op.Builder{Applier: s.eager}.Add(leaf.Grad, g).(*eager.Var)
		})
	})
}
