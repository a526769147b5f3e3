package op

import (
	"fmt"

	"plumb/tensor"
)

// Scalar is a Python number: bool, int64, float64 or complex128.
type Scalar struct{ v any }

// ScalarOf wraps a bool, int64, float64 or complex128.
func ScalarOf(v any) Scalar { return Scalar{v} }

// DType returns the dtype that the number has as a wrapped number in type promotion.
func (s Scalar) DType() tensor.DType {
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

// Any returns the named argument in its normal form; nil for None.
func (a Args) Any(name string) any {
	i := a.Sig.Index(name)
	if i < 0 {
		panic(fmt.Sprintf("op: %s has no parameter %q", a.Sig.Name, name))
	}
	return a.Vals[i]
}

// Has reports whether the named argument is not None.
func (a Args) Has(name string) bool { return a.Any(name) != nil }

// Value returns a tensor argument; nil for None.
func (a Args) Value(name string) Value { v, _ := a.Any(name).(Value); return v }

// Tensor returns a tensor argument inside a kernel; nil for None.
func (a Args) Tensor(name string) *tensor.Tensor { t, _ := a.Any(name).(*tensor.Tensor); return t }

// Values returns a Tensor[] argument.
func (a Args) Values(name string) []Value { v, _ := a.Any(name).([]Value); return v }

// Tensors returns a Tensor[] argument inside a kernel.
func (a Args) Tensors(name string) []*tensor.Tensor {
	var ts []*tensor.Tensor
	for _, v := range a.Values(name) {
		ts = append(ts, v.(*tensor.Tensor))
	}
	return ts
}

// Int returns an int argument; 0 for None.
func (a Args) Int(name string) int { v, _ := a.Any(name).(int); return v }

// Ints returns an int[] argument; nil for None.
func (a Args) Ints(name string) []int { v, _ := a.Any(name).([]int); return v }

// Float returns a float argument; 0 for None.
func (a Args) Float(name string) float64 { v, _ := a.Any(name).(float64); return v }

// Floats returns a float[] argument; nil for None.
func (a Args) Floats(name string) []float64 { v, _ := a.Any(name).([]float64); return v }

// Bool returns a bool argument; false for None.
func (a Args) Bool(name string) bool { v, _ := a.Any(name).(bool); return v }

// Str returns a str argument; "" for None.
func (a Args) Str(name string) string { v, _ := a.Any(name).(string); return v }

// DType returns a dtype argument; Invalid for None.
func (a Args) DType(name string) tensor.DType { v, _ := a.Any(name).(tensor.DType); return v }

// Scalar returns a Scalar argument; the zero Scalar for None.
func (a Args) Scalar(name string) Scalar { v, _ := a.Any(name).(Scalar); return v }

// AllValues returns every tensor among the arguments, lists flattened, in order.
func (a Args) AllValues() []Value {
	var out []Value
	for _, v := range a.Vals {
		switch v := v.(type) {
		case Value:
			out = append(out, v)
		case []Value:
			out = append(out, v...)
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
				list[j] = f(v[j])
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
// named arguments, tensors or Scalars (torch.result_type). None takes no part.
func (a Args) Promoted(names ...string) tensor.DType {
	var dim, zeroDim, wrapped tensor.DType
	for _, n := range names {
		switch v := a.Any(n).(type) {
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
