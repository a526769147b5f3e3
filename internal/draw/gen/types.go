package gen

import (
	"slices"
	"strings"

	"plumb/op"
)

type typeKind uint8

const (
	untyped typeKind = iota
	intType
	floatType
	boolType
	complexType
	noneType
	unionType
	tupleType
	listType
)

var typeNames = [...]string{
	untyped: "?", intType: "int", floatType: "float", boolType: "bool", complexType: "complex",
	noneType: "None", unionType: "Union", tupleType: "Tuple", listType: "List",
}

// Type is what a random is asked for.
type Type struct {
	kind  typeKind
	parts []Type
}

// The plain types.
var (
	Int     = Type{kind: intType}
	Float   = Type{kind: floatType}
	Bool    = Type{kind: boolType}
	Complex = Type{kind: complexType}
	None    = Type{kind: noneType}
)

// Union is a uniform choice of one of the types.
func Union(ts ...Type) Type { return Type{unionType, ts} }

// Tuple is a tuple with one independent sample per type.
func Tuple(ts ...Type) Type { return Type{tupleType, ts} }

// List is a list of one to four samples of a type.
func List(t Type) Type { return Type{listType, []Type{t}} }

// Size is Union[int, Tuple[int, …]] with n ints: PyTorch's _size_n_t.
func Size(n int) Type { return sized(Int, n) }

// OptionalSize is Union[int, None, Tuple[Union[int, None], …]] with n parts:
// PyTorch's _size_n_opt_t.
func OptionalSize(n int) Type {
	part := Union(Int, None)
	return Union(Int, None, Tuple(slices.Repeat([]Type{part}, n)...))
}

// AnySize is Union[int, Tuple[int, …]] with one to four ints: _size_any_t.
func AnySize() Type { return Union(Int, List(Int)) }

// AnyOptionalSize is AnySize with None for any int: _size_any_opt_t.
func AnyOptionalSize() Type { return Union(Int, None, List(Union(Int, None))) }

func sized(t Type, n int) Type { return Union(t, Tuple(slices.Repeat([]Type{t}, n)...)) }

// TypeOf returns the type to draw for a parameter. A Scalar is an int or a
// float; int[2] is an int or a tuple of two; an optional parameter is never
// drawn as None, which a test says with "| nothing()". It reports false for a
// parameter that random cannot draw, such as a Tensor.
func TypeOf(t op.Type) (Type, bool) {
	var elem Type
	switch t.Kind {
	case op.KInt:
		elem = Int
	case op.KFloat:
		elem = Float
	case op.KBool:
		elem = Bool
	case op.KScalar:
		elem = Union(Int, Float)
	case op.KShape:
		elem = List(Int)
	default:
		return Type{}, false
	}
	switch {
	case !t.List:
		return elem, true
	case t.N > 0:
		return sized(elem, t.N), true
	}
	return List(elem), true
}

// IsDrawable reports whether the type is one to draw, and not Python's str or
// a class.
func (t Type) IsDrawable() bool { return t.kind != untyped }

// String returns Python's notation, such as "Union[int, Tuple[int, int]]".
func (t Type) String() string {
	name := typeNames[t.kind]
	if len(t.parts) == 0 {
		return name
	}
	var parts []string
	for _, p := range t.parts {
		parts = append(parts, p.String())
	}
	return name + "[" + strings.Join(parts, ", ") + "]"
}
