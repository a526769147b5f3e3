package op

import (
	"errors"
	"fmt"

	"plumb/tensor"
)

// ErrNoElements says that a tensor stands for a number, or for several, while
// its elements are not known: a graph is made.
var ErrNoElements = errors.New("an argument that depends on the elements of a tensor")

// ElementsOf returns a value with its elements, on the host; nil for one that has none.
func ElementsOf(v any) (*tensor.Tensor, error) {
	switch v := v.(type) {
	case *tensor.Tensor:
		return v.To(nil)
	case interface {
		Elements() (*tensor.Tensor, error)
	}:
		return v.Elements()
	}
	return nil, nil
}

func wantsGradient(v any) bool {
	x, ok := v.(interface{ RequiresGrad() bool })
	return ok && x.RequiresGrad()
}

// fromTensor reads a tensor, or a list with tensors, for which normalise has a
// refusal, where PyTorch's argument parser takes them for numbers: a Scalar or a
// float is a tensor of no dimensions, an int one of integers, and none requires
// a gradient.
func fromTensor(t Type, v any, refusal error) (any, error) {
	list, isList := v.([]any)
	switch {
	case t.Kind == KData:
		return dataOf(v, false)
	case isList && t.List && t.Kind == KInt:
		return intsOf(t, list)
	case t.List:
		return nil, refusal
	}
	x, err := ElementsOf(v)
	if err != nil {
		return nil, err
	}
	if x == nil || x.Dim() != 0 || wantsGradient(v) {
		return nil, refusal
	}
	switch item := x.Number(0); {
	case t.Kind == KFloat:
		return ScalarOf(item).Float(), nil
	case t.Kind == KScalar, t.Kind == KInt && x.DType().IsInt():
		return normalise(t, item)
	}
	return nil, refusal
}

// intsOf reads the tensors in a list of ints: each has one element, an integer
// or a bool.
func intsOf(t Type, list []any) (any, error) {
	ints := make([]any, len(list))
	for i, e := range list {
		ints[i] = e
		x, err := ElementsOf(e)
		if err != nil {
			return nil, err
		}
		if x != nil && x.Len() == 1 && (x.DType().IsInt() || x.DType() == tensor.Bool) {
			ints[i] = ScalarOf(x.Number(0)).Int()
		}
	}
	return normalise(t, ints)
}

// dataOf is data with tensors, which have one element where they are part of a list.
func dataOf(v any, part bool) (any, error) {
	if list, ok := v.([]any); ok {
		out := make([]any, len(list))
		for i, e := range list {
			x, err := dataOf(e, true)
			if err != nil {
				return nil, err
			}
			out[i] = x
		}
		return out, nil
	}
	x, err := ElementsOf(v)
	switch {
	case err != nil:
		return nil, err
	case x == nil:
		return data(v)
	case !part:
		return nested(x, x.Shape(), new(int)), nil
	case x.Len() != 1:
		return nil, errors.New("has tensors of several elements in it: only one element tensors can be converted to Python scalars")
	}
	return nested(x, nil, new(int)), nil
}

// nested returns the elements of x from *at on as nested lists of a shape.
func nested(x *tensor.Tensor, shape []int, at *int) any {
	if len(shape) == 0 {
		*at++
		return Scalar{x.Number(*at - 1), x.DType()}
	}
	list := make([]any, shape[0])
	for i := range list {
		list[i] = nested(x, shape[1:], at)
	}
	return list
}

func mustBe(t Type, v any) error { return fmt.Errorf("must be %s, not %s", t, TypeName(v)) }
