package op

import (
	"fmt"
	"slices"

	"plumb/tensor"
)

// Scalar is a Python number: bool, int64, float64 or complex128.
type Scalar struct {
	v     any
	dtype tensor.DType // of the tensor whose element it is, in Data
}

// ScalarOf wraps a bool, int64, float64 or complex128.
func ScalarOf(v any) Scalar { return Scalar{v: v} }

// DType returns the dtype that the number has as a wrapped number in type
// promotion; of an element of a tensor, the tensor's.
func (s Scalar) DType() tensor.DType {
	if s.dtype != tensor.Invalid {
		return s.dtype
	}
	switch s.v.(type) {
	case bool:
		return tensor.Bool
	case int64:
		return tensor.I64
	case float64:
		return tensor.F32
	}
	return tensor.C64
}

// Any returns the number as it was given.
func (s Scalar) Any() any { return s.v }

// Complex returns the number as a complex128.
func (s Scalar) Complex() complex128 {
	switch v := s.v.(type) {
	case bool:
		if v {
			return 1
		}
		return 0
	case int64:
		return complex(float64(v), 0)
	case float64:
		return complex(v, 0)
	case complex128:
		return v
	}
	return 0
}

// Float returns the real part of the number.
func (s Scalar) Float() float64 { return real(s.Complex()) }

// Int returns the number truncated to an integer.
func (s Scalar) Int() int64 {
	if i, ok := s.v.(int64); ok {
		return i
	}
	return int64(s.Float())
}

// Args are the bound arguments of a call, in the order of the signature.
type Args struct {
	Sig  *Sig
	Vals []any
}

// Any returns an argument in its normal form; nil for None.
func (a Args) Any(p Handle) any { return a.at(p.Name()) }

// Has reports whether an argument is not None.
func (a Args) Has(p Handle) bool { return a.at(p.Name()) != nil }

// With returns the arguments with another value of one of them.
func (a Args) With(p Handle, v any) Args {
	a.Vals = slices.Clone(a.Vals)
	a.Vals[a.Sig.index(p.Name())] = v
	return a
}

func (a Args) at(name string) any {
	i := a.Sig.index(name)
	if i < 0 {
		panic(fmt.Sprintf("op: %s has no parameter %q", a.Sig.Name, name))
	}
	return a.Vals[i]
}

// read returns an argument as a T; the zero T for None, and for what an
// overload takes in its place.
func read[T any](a Args, p Arg[T]) T {
	v, _ := a.at(string(p)).(T)
	return v
}

// Value returns a tensor argument; nil for None, and for what an overload
// takes in the tensor's place. So do the other readers.
func (a Args) Value(p TensorArg) Value { return read(a, p) }

// Tensor is Value inside a kernel.
func (a Args) Tensor(p TensorArg) *tensor.Tensor {
	t, _ := a.at(string(p)).(*tensor.Tensor)
	return t
}

// Values returns a Tensor[] argument.
func (a Args) Values(p TensorsArg) []Value { return read(a, p) }

// Tensors returns a Tensor[] argument inside a kernel.
func (a Args) Tensors(p TensorsArg) []*tensor.Tensor {
	var ts []*tensor.Tensor
	for _, v := range a.Values(p) {
		t, _ := v.(*tensor.Tensor) // nil for None
		ts = append(ts, t)
	}
	return ts
}

// Int returns an int argument; 0 for None.
func (a Args) Int(p IntArg) int { return read(a, p) }

// Ints returns an int[] argument; nil for None.
func (a Args) Ints(p IntsArg) []int { return read(a, p) }

// Float returns a float argument; 0 for None.
func (a Args) Float(p FloatArg) float64 { return read(a, p) }

// Floats returns a float[] argument; nil for None.
func (a Args) Floats(p FloatsArg) []float64 { return read(a, p) }

// Bool returns a bool argument; false for None.
func (a Args) Bool(p BoolArg) bool { return read(a, p) }

// Str returns a str argument; "" for None.
func (a Args) Str(p StrArg) string { return read(a, p) }

// Bools returns a bool[] argument; nil for None.
func (a Args) Bools(p BoolsArg) []bool { return read(a, p) }

// Strs returns a str[] argument; nil for None.
func (a Args) Strs(p StrsArg) []string { return read(a, p) }

// DTypes returns a dtype[] argument; nil for None.
func (a Args) DTypes(p DTypesArg) []tensor.DType { return read(a, p) }

// Scalars returns a Scalar[] argument; nil for None.
func (a Args) Scalars(p ScalarsArg) []Scalar { return read(a, p) }

// Shapes returns an int[][] argument; nil for None.
func (a Args) Shapes(p ShapesArg) [][]int { return read(a, p) }

// DType returns a dtype argument; Invalid for None.
func (a Args) DType(p DTypeArg) tensor.DType { return read(a, p) }

// Scalar returns a Scalar argument; the zero Scalar for None.
func (a Args) Scalar(p ScalarArg) Scalar { return read(a, p) }

// AllValues returns every tensor among the arguments, lists flattened, in order.
func (a Args) AllValues() []Value {
	var out []Value
	for _, v := range a.Vals {
		switch v := v.(type) {
		case Value:
			out = append(out, v)
		case []Value:
			for _, e := range v {
				if e != nil {
					out = append(out, e)
				}
			}
		case Index:
			out = append(out, v.values()...)
		}
	}
	return out
}

// MapValues returns the arguments with every tensor replaced by f of it.
func (a Args) MapValues(f func(Value) Value) Args {
	vals := make([]any, len(a.Vals))
	for i, v := range a.Vals {
		switch v := v.(type) {
		case Value:
			vals[i] = f(v)
		case []Value:
			list := make([]Value, len(v))
			for j := range v {
				if v[j] != nil {
					list[j] = f(v[j])
				}
			}
			vals[i] = list
		case Index:
			vals[i] = v.mapValues(f)
		default:
			vals[i] = v
		}
	}
	return Args{a.Sig, vals}
}

// Promoted returns the dtype to which PyTorch's promotion rules bring the
// arguments, tensors or Scalars (torch.result_type). None takes no part.
func (a Args) Promoted(ps ...Handle) tensor.DType {
	var dim, zeroDim, wrapped tensor.DType
	for _, p := range ps {
		switch v := a.Any(p).(type) {
		case Scalar:
			wrapped = tensor.Promote(wrapped, v.DType())
		case Value:
			if len(v.Shape()) == 0 {
				zeroDim = tensor.Promote(zeroDim, v.DType())
			} else {
				dim = tensor.Promote(dim, v.DType())
			}
		}
	}
	return tensor.PromoteWrapped(dim, zeroDim, wrapped)
}
