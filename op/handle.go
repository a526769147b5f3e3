package op

import "plumb/tensor"

// Arg is the name of a parameter whose value has the Go type T, by which Args
// has a reader: with const dim = IntArg("dim"), a.Int(dim).
type Arg[T any] string

// Name returns the name of the parameter.
func (p Arg[T]) Name() string { return string(p) }

// Handle is an Arg of any type.
type Handle interface{ Name() string }

// The handles of the schema's types.
type (
	TensorArg  = Arg[Value]   // Tensor; an overload may take a Scalar in its place
	TensorsArg = Arg[[]Value] // Tensor[]; nil for None in Tensor?[]
	ScalarArg  = Arg[Scalar]
	IntArg     = Arg[int]
	IntsArg    = Arg[[]int] // int[]
	FloatArg   = Arg[float64]
	FloatsArg  = Arg[[]float64] // float[]
	BoolArg    = Arg[bool]
	StrArg     = Arg[string]
	DTypeArg   = Arg[tensor.DType]
	BoolsArg   = Arg[[]bool]         // bool[]
	StrsArg    = Arg[[]string]       // str[]
	DTypesArg  = Arg[[]tensor.DType] // dtype[]
	ScalarsArg = Arg[[]Scalar]       // Scalar[]
	ShapesArg  = Arg[[][]int]        // int[][]
	AnyArg     = Arg[any]            // of the types that have no reader, and of any type
)
