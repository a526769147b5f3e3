package api

import (
	"plumb/op"
	"plumb/tensor"
)

// DType is an element type.
type DType = tensor.DType

// The element types, named as in package tensor; Boolean is PyTorch's bool.
const (
	Boolean = tensor.Bool
	U8      = tensor.U8
	I8      = tensor.I8
	I16     = tensor.I16
	I32     = tensor.I32
	I64     = tensor.I64
	F16     = tensor.F16
	BF16    = tensor.BF16
	F32     = tensor.F32
	F64     = tensor.F64
	C64     = tensor.C64
	C128    = tensor.C128
)

// MemoryFormat names an order of elements in memory.
type MemoryFormat = tensor.MemoryFormat

// Device names where a tensor lives, such as "cpu".
type Device = op.DeviceName

// NoInt stands for None in a list of ints that may have it, such as the
// output size of adaptive pooling.
const NoInt = op.NoInt

// Index says which elements of a tensor are meant, one entry per dimension: an
// int, a bool, op.Slice, op.Ellipsis, a *Tensor of integers or bools, nested
// []any of numbers, or nil for a new dimension.
type Index []any

// Arg is an argument that has several types, as the signatures say: a *Tensor,
// a Scalar (for a number of any type), Ints, Floats or Str.
type Arg interface{ argument() any }

// Scalar is a Python number. The zero Scalar stands for an argument that is
// not given.
type Scalar struct{ op.Scalar }

// Number returns a Scalar.
func Number[T bool | int | int64 | float64 | complex128](v T) Scalar {
	if i, ok := any(v).(int); ok {
		return Scalar{op.ScalarOf(int64(i))}
	}
	return Scalar{op.ScalarOf(v)}
}

// Ints is a list of ints among the types of an Arg.
type Ints []int

// Floats is a list of floats among the types of an Arg.
type Floats []float64

// Str is a string among the types of an Arg, such as padding="same".
type Str string

func (t *Tensor) argument() any {
	if t == nil {
		return nil
	}
	return t.Value()
}

func (x Scalar) argument() any { return x.Any() }
func (x Ints) argument() any   { return []int(x) }
func (x Floats) argument() any { return []float64(x) }
func (x Str) argument() any    { return string(x) }
