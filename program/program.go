// Package program is the intermediate form between a test and the backends: a
// straight-line tensor program of described inputs, calls by public name with
// concrete arguments, and what to differentiate. A program has a text form,
// which is a legal PyTorch-style script, and an identity, the hash of it.
package program

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"plumb/internal/draw/choice"
	"plumb/tensor"
)

// Program is one straight-line tensor program. Every input and every call
// defines one name; names are used only after they are defined.
type Program struct {
	Name string // of the test that drew it
	Seed uint64 // for what the reference draws itself: initial parameters, dropout
	// DType is the dtype in which modules make their parameters; Invalid means
	// PyTorch's default, float32.
	DType    tensor.DType
	Inputs   []Input
	Calls    []Call
	Backward []Backward
	// RTol and ATol are the test's explicit tolerance; both nil when the
	// operators' numerics classes decide.
	RTol, ATol *float64
	// Raises says that the test expects the program to be refused.
	Raises bool
	// Tolerance replaces the operators' numerics classes: Default gives every
	// comparison PyTorch's default for its dtype. Empty replaces nothing.
	Tolerance string
	// Shapes compares no elements, only structure, dtype and shape.
	Shapes bool
	// Draws compares what depends on random draws by dtype and shape only,
	// rather than by distribution.
	Draws bool
	// Second asks for gradients of the second order: the gradients of the
	// inputs, each times a cotangent of SecondCotangent, are differentiated
	// together. A zero Dist asks for none.
	Second Fill
	// Step asks for the modules' parameters after one step of SGD along the
	// gradients of Backward. A zero Step asks for none.
	Step Step
}

// Step is a step of SGD with momentum, of which there is none before.
type Step struct{ LR, Momentum float64 }

// GraphStep is the step with which AutoTest checks the graph of a module.
var GraphStep = Step{LR: 0.001, Momentum: 0.9}

// Steps reports whether a step can be asked of the program: it constructs a
// module, and gradients of the first order end it.
func (p *Program) Steps() bool {
	return len(p.Backward) > 0 && p.Second.Dist == "" && slices.ContainsFunc(p.Calls, func(c Call) bool { return IsModule(c.Target) })
}

// Default is the Tolerance of torch.testing.assert_close.
const Default = "default"

// SecondCotangent returns the cotangent of the gradient of input i in float64,
// two elements for each of a complex input, and rounded as Second says.
func (p *Program) SecondCotangent(i int) []float64 {
	in := &p.Inputs[i]
	n := tensor.NumElements(in.Shape)
	if in.DType.IsComplex() {
		n *= 2
	}
	f := p.Second
	f.Key = choice.Derive(f.Key, uint64(i))
	return f.Cotangent(n)
}

// Input describes a tensor: its elements follow from Fill, in row-major order
// of Shape whatever the strides.
type Input struct {
	Name         string
	DType        tensor.DType
	Shape        []int
	Strides      []int // in elements; nil for contiguous
	Fill         Fill
	RequiresGrad bool
}

// Dist is a distribution of elements.
type Dist string

// The distributions of inputs.
const (
	Uniform  Dist = "uniform"  // reals in [Lo, Hi); complex: both parts
	Integer  Dist = "integer"  // integers in [Lo, Hi), in any dtype
	Normal   Dist = "normal"   // normal deviates of mean Lo and standard deviation Hi; complex: both parts
	Folded   Dist = "folded"   // the magnitudes of Normal's
	Gram     Dist = "gram"     // square matrices Lo + M·Mᵀ, M of Hi columns of standard normal deviates
	Constant Dist = "constant" // Lo
	Literal  Dist = "literal"  // the elements of Data
)

// Fill says what the elements of an input are.
type Fill struct {
	Dist   Dist
	Lo, Hi float64
	// Key selects the Philox stream; element i depends on Key and i alone.
	Key uint64
	// Kinks replaces an eighth of the elements by 0, 1, -1 and a value that
	// recurs, as far as they lie in [Lo, Hi]: kinks and ties hide there.
	Kinks bool
	// Scales spreads the sizes of uniform elements over the octaves from a small
	// one to the ends of the range, and a quarter of them close to 1 and -1.
	Scales bool
	// Special replaces a quarter of the elements by edge values.
	Special Special
	// Round, of a cotangent, rounds the stream's elements to a dtype first;
	// Invalid does not.
	Round tensor.DType
	// Real gives complex elements no imaginary part.
	Real bool
	// Density is the share of the elements that are not replaced by 0; 0 means all.
	Density float64
	Data    *tensor.Tensor // of Literal; contiguous, same dtype and shape
}

// Call applies a target to arguments. Target is a public name:
//
//	"torch.relu", "torch.nn.functional.conv2d"   a function
//	"torch.nn.Conv2d"                            a module's constructor
//	"Tensor.sum"                                 a method; Args[0] is the receiver
//	"Module.__call__", "Module.train"            a module's call and methods; Args[0] is the module
//	"operator.add", "operator.getitem"           a Python operator
//	"getattr"                                    an attribute; Args[1] is its name
type Call struct {
	Result string
	Target string
	Args   []any
	Kwargs []Kwarg
	// Scopes are the with statements around the call, the outermost first.
	// Calls of one statement share its pointer.
	Scopes []*Scope
	// Place is FILE:LINE of the call in its test or program, where that is
	// known. It is no part of the text.
	Place string
}

// Scope is a with statement: a context manager such as torch.no_grad().
type Scope struct {
	Target string
	Args   []any
	Kwargs []Kwarg
}

// Kwarg is one argument by keyword.
type Kwarg struct {
	Name  string
	Value any
}

// Arguments are nil, bool, int64, float64, complex128, string, tensor.DType,
// tensor.MemoryFormat and these:
type (
	// Ref names an input or the result of an earlier call.
	Ref string
	// List is a Python list.
	List []any
	// Tuple is a Python tuple.
	Tuple []any
	// Slice is a Python slice; nil parts are left out.
	Slice struct{ Start, Stop, Step any }
	// Ellipsis is Python's "...".
	Ellipsis struct{}
)

// Backward asks for the gradients of one value. All of a program's Backward
// entries are differentiated together, after the last call; gradients add up.
type Backward struct {
	Value Ref
	// Cotangent describes dL/dValue, in the shape and dtype of Value; a zero
	// Dist means ones.
	Cotangent Fill
	// Auto skips a value that does not require a gradient on the reference,
	// where PyTorch would raise.
	Auto bool
}

// ID returns the identity of the program: the first 16 hexadecimal digits of
// the SHA-256 of its canonical text.
func (p *Program) ID() string {
	sum := sha256.Sum256([]byte(p.String()))
	return hex.EncodeToString(sum[:8])
}

// Form returns the canonical text without what it says of elements: the seed and
// the fills. Programs of one form differ in their elements alone.
func (p *Program) Form() string {
	q := *p
	q.Seed = 0
	q.Inputs = slices.Clone(p.Inputs)
	for i := range q.Inputs {
		q.Inputs[i].Fill = Fill{}
	}
	q.Backward = slices.Clone(p.Backward)
	for i := range q.Backward {
		q.Backward[i].Cotangent = Fill{}
	}
	return q.String()
}

// Refs calls f for every name that the argument v refers to.
func Refs(v any, f func(Ref)) {
	switch v := v.(type) {
	case Ref:
		f(v)
	case List:
		for _, e := range v {
			Refs(e, f)
		}
	case Tuple:
		for _, e := range v {
			Refs(e, f)
		}
	case Slice:
		Refs(v.Start, f)
		Refs(v.Stop, f)
		Refs(v.Step, f)
	}
}

// EachRef calls f for every name among the call's arguments.
func (c *Call) EachRef(f func(Ref)) {
	for _, a := range c.Args {
		Refs(a, f)
	}
	for _, kw := range c.Kwargs {
		Refs(kw.Value, f)
	}
}

// MapRefs returns the argument v with every name replaced by f of it.
func MapRefs(v any, f func(Ref) any) any {
	each := func(vs []any) []any {
		out := make([]any, len(vs))
		for i, e := range vs {
			out[i] = MapRefs(e, f)
		}
		return out
	}
	switch v := v.(type) {
	case Ref:
		return f(v)
	case List:
		return List(each(v))
	case Tuple:
		return Tuple(each(v))
	case Slice:
		return Slice{MapRefs(v.Start, f), MapRefs(v.Stop, f), MapRefs(v.Step, f)}
	}
	return v
}
