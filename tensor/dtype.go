// Package tensor holds n-dimensional arrays in the layouts and element types
// of PyTorch: dtypes with their exact bits, shapes, strides, views and memory
// formats. It knows no operator.
package tensor

import (
	"fmt"
	"strings"
)

// DType is an element type. The zero value is Invalid.
type DType uint8

// The element types, in PyTorch's order of promotion within each kind.
const (
	Invalid DType = iota
	Bool
	U8
	I8
	I16
	I32
	I64
	F16
	BF16
	F32
	F64
	C64
	C128
)

// DTypes lists every element type.
var DTypes = []DType{Bool, U8, I8, I16, I32, I64, F16, BF16, F32, F64, C64, C128}

var dtypeInfo = [...]struct {
	name string // as in torch.NAME
	size int    // bytes
}{
	Invalid: {"invalid", 0},
	Bool:    {"bool", 1}, U8: {"uint8", 1}, I8: {"int8", 1}, I16: {"int16", 2}, I32: {"int32", 4}, I64: {"int64", 8},
	F16: {"float16", 2}, BF16: {"bfloat16", 2}, F32: {"float32", 4}, F64: {"float64", 8},
	C64: {"complex64", 8}, C128: {"complex128", 16},
}

var dtypeAliases = map[string]DType{
	"byte": U8, "char": I8, "short": I16, "int": I32, "long": I64,
	"half": F16, "float": F32, "double": F64, "cfloat": C64, "cdouble": C128,
}

// String returns PyTorch's name of d, such as "float32".
func (d DType) String() string {
	if int(d) >= len(dtypeInfo) {
		return fmt.Sprintf("dtype(%d)", uint8(d))
	}
	return dtypeInfo[d].name
}

// Valid reports whether d is one of DTypes.
func (d DType) Valid() bool { return d > Invalid && d <= C128 }

// Size returns the bytes of one element.
func (d DType) Size() int { return dtypeInfo[d].size }

// IsFloat reports whether d is a real floating-point type.
func (d DType) IsFloat() bool { return d >= F16 && d <= F64 }

// IsComplex reports whether d is a complex type.
func (d DType) IsComplex() bool { return d == C64 || d == C128 }

// IsInt reports whether d is an integer type; Bool is not.
func (d DType) IsInt() bool { return d >= U8 && d <= I64 }

// IsDifferentiable reports whether a tensor of d can require a gradient.
func (d DType) IsDifferentiable() bool { return d.IsFloat() || d.IsComplex() }

// Real returns the type of the components of a complex d, and d itself otherwise.
func (d DType) Real() DType {
	switch d {
	case C64:
		return F32
	case C128:
		return F64
	}
	return d
}

// ParseDType reads PyTorch's name of a dtype, with or without the leading
// "torch.", aliases such as "half" and "long" included.
func ParseDType(s string) (DType, error) {
	name := strings.TrimPrefix(s, "torch.")
	for d := Bool; d <= C128; d++ {
		if dtypeInfo[d].name == name {
			return d, nil
		}
	}
	if d, ok := dtypeAliases[name]; ok {
		return d, nil
	}
	return Invalid, fmt.Errorf("unknown dtype %q", s)
}

// kind orders the dtype categories for promotion: bool < integer < float < complex.
func (d DType) kind() int {
	switch {
	case d == Bool:
		return 0
	case d.IsInt():
		return 1
	case d.IsFloat():
		return 2
	}
	return 3
}

// Promote returns the smallest dtype to which both a and b convert under
// PyTorch's rules (torch.promote_types). Invalid is the identity.
func Promote(a, b DType) DType {
	switch {
	case a == Invalid || a == b:
		return b
	case b == Invalid:
		return a
	}
	if a > b {
		a, b = b, a
	}
	switch {
	case b.IsComplex():
		if a == F64 || a == C128 {
			return C128
		}
		return b
	case a == F16 && b == BF16:
		return F32
	case a == U8 && b == I8:
		return I16
	}
	return b
}

// PromoteWrapped returns the result type of PyTorch's torch.result_type:
// dim, zeroDim and wrapped are the promoted types of the operands with
// dimensions, of the 0-d tensors and of the Python numbers. An operand of a
// lower rank in that order takes part only if its kind is higher.
func PromoteWrapped(dim, zeroDim, wrapped DType) DType {
	combine := func(hi, lo DType) DType {
		if hi == Invalid || lo == Invalid {
			return Promote(hi, lo)
		}
		if hi.IsFloat() && lo.IsComplex() {
			return Promote(hi, C64)
		}
		if lo.kind() > hi.kind() {
			return Promote(hi, lo)
		}
		return hi
	}
	return combine(dim, combine(zeroDim, wrapped))
}
