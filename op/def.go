// Package op says what an operator is: one Def literal with its signatures,
// names, inference, kernels, gradient and numerics, and a Table of them. It
// holds no operator itself.
package op

import (
	"slices"
	"strings"

	"plumb/tensor"
)

// Meta describes a result before it is computed. Nil Strides mean contiguous.
type Meta struct {
	DType   tensor.DType
	Shape   []int
	Strides []int
}

// Trait is a set of properties that hold for every legal call.
type Trait uint32

// The traits. Each is checked by a test over the whole table.
const (
	NoGrad       Trait = 1 << iota // the results are never differentiable
	View                           // the result shares its input's storage when strides allow
	Commutative                    // f(a, b) = f(b, a)
	Idempotent                     // f(f(x)) = f(x)
	Involution                     // f(f(x)) = x
	Dynamic                        // the results' shapes depend on elements, so that nothing can be inferred from shapes alone
	Random                         // the results are drawn: see Law
	Monotone                       // no real result falls when elements of arguments rise
	ShapeOnly                      // no element of an argument is read
	ItselfOrCopy                   // a View that shares memory with its input is the input
	Contraction                    // sums of many terms for each byte of the results: may be dearer to compute again than to store
	Compares                       // each result follows from the sign of input - other, or from whether they are equal
	FollowsOrder                   // the results follow from the order of the elements alone, not from how far apart they are
	Classifies                     // the results are the same for all finite real elements
	Cancels                        // f(x, x) = 0 for finite x, if no alpha scales an argument
	Undefined                      // Random, with a law that draws nothing: the elements may be anything
	Additive                       // where one argument is 0, the result is the other or its negative, if no alpha scales an argument
)

// Domain is what a tensor argument has to be like: outside of it a call is
// refused, or its result is undefined.
type Domain int

// The domains.
const (
	Anything   Domain = iota
	UnitRange         // between 0 and 1
	NoNaN             // the sign of a NaN is undefined (IEEE 754 §6.3)
	IntRange          // within every integer dtype: what others convert to is undefined in C++
	AsSampled         // like Sample's: matrices that are not singular, elements without ties
	Structured        // AsSampled, though any other matrices too have results, of a part of them
	Hermitian         // Structured: one triangle of Hermitian matrices, though the gradient is by both
	Constant          // not differentiated: PyTorch refuses some calls' gradients
)

// FromSample reports whether Sample alone draws what makes sense.
func (d Domain) FromSample() bool { return d == AsSampled || d == Structured || d == Hermitian }

// Has reports whether all of want are in t.
func (t Trait) Has(want Trait) bool { return t&want == want }

// Def is one operator.
type Def struct {
	// Sig is the functional signature in PyTorch's schema notation; the name
	// before the parenthesis, such as "max.dim", is the operator's id.
	Sig string
	// More are further signatures, tried in order after Sig; their parameters
	// are a subset of Sig's by name, and a Tensor may be a Scalar in one of them.
	More []string
	// OnlyInOverloads names parameters of Sig that are given through a signature of
	// More alone, so that they go with its other parameters only.
	OnlyInOverloads []string
	// Names are the public names it answers to: "torch.relu",
	// "torch.nn.functional.relu", "Tensor.relu", "operator.add". Several
	// operators may share a name: the first whose signature accepts the call wins.
	// One whose parameters have other names tells them: "torch.swapaxes(input, axis0, axis1)";
	// those that it leaves out at the end it does not take.
	Names []string
	// Variadic says that the public functions take the elements of the first
	// argument, a list, one by one.
	Variadic bool
	// Neutral reports whether a scalar second argument leaves every bit of the
	// first as it is. Nil knows of none.
	Neutral func(a Args) bool
	// Domains say which tensors make sense for arguments that cannot hold any number.
	Domains map[TensorArg]Domain
	// SelectOverload says whether bound arguments are this operator's, among several of a
	// name whose flags decide what they return; nil takes all.
	SelectOverload func(a Args) bool
	// Doc is one sentence and the formula.
	Doc    string
	Traits Trait
	// SBP returns the legal sharding signatures of a call that is not rejected,
	// beside the one in which everything is Broadcast. Without one they follow
	// from Compose or Formula.
	SBP func(a Args) []Sharding
	// NdSBP returns further signatures for a hierarchy of ranks of the given sizes,
	// each with an entry for a dimension, outermost first: those that are legal for
	// some numbers of ranks only, or together. Combinations of what SBP says are legal
	// anyway.
	NdSBP func(a Args, hierarchy []int) [][]Sharding
	// NotSplittable says why an operator without SBP has no other signature.
	NotSplittable string
	// Reject returns a rejection for arguments that the signature cannot exclude.
	Reject func(a Args) error
	// Infer returns the results' dtypes and shapes, or a rejection.
	Infer func(a Args) ([]Meta, error)
	// Place returns on which device and stream a call runs, and its results are, from
	// attributes and layouts: at is where it would run otherwise, where its tensors are.
	// Tensors of another device are copied there. Nil leaves calls where they are.
	Place func(a Args, at Place) Place
	// View computes the result of a View operator.
	View func(a Args) (*tensor.Tensor, error)
	// Itself reports whether the result of a call is its first argument itself,
	// not a copy of it; nil for never.
	Itself func(a Args) bool
	// Canonical brings the results of a call into one order where the operator
	// leaves that of their entries open; nil where it never does.
	Canonical func(a Args, out []*tensor.Tensor) []*tensor.Tensor
	// Mutates names the tensor arguments that kernels update in place.
	Mutates []TensorArg
	// InPlace says what is otherwise where the result is stored into the first
	// tensor argument.
	InPlace InPlaceRules
	// Compose writes the operator on others, when it is a composition: what it
	// infers, its results and its gradient follow from theirs.
	Compose func(b Builder, a Args) []Value
	// Kernels are the candidates that compute the results of any other operator.
	Kernels []Kernel
	// Grad writes the gradient; nil only with NoGrad or Compose.
	Grad func(g *Grad)
	// Saves reports whether PyTorch keeps tensors for the gradient of a call, which
	// it then computes once only unless it is told to retain them; nil where that
	// follows from whether Grad reads elements of the arguments or results.
	Saves func(a Args) bool
	// Fixed are the tensor arguments that have no gradient by definition,
	// such as running statistics.
	Fixed []Handle
	// Long are arguments of indices that PyTorch takes in int64 alone: a subject
	// that takes int32 too converts them.
	Long []Handle
	// Constant names the tensor arguments on which the results of the call at
	// hand do not depend smoothly, so that they want no gradient for their sake;
	// nil for none. Its operators take no lists of tensors.
	Constant func(a Args) []TensorArg
	// Unread names the tensor arguments of which the call at hand reads no element:
	// it needs their shape and dtype, or replaces them. Nil for none, beside those
	// of ShapeOnly.
	Unread func(a Args) []TensorArg
	// Choices names the arguments that PyTorch compares with the values they
	// may have before it asks for their type: any other value is a ValueError.
	Choices []string
	// OneOf says of str and str[] arguments which text they take: any other is a
	// ValueError that lists it.
	OneOf map[StrArg][]string
	// Sample draws the arguments of one legal call.
	Sample func(s *Sampler) []any
	// Exact returns the function of numbers that a call computes, for elementwise
	// operators; nil for calls of which it knows none. It shares no arithmetic
	// with Kernels.
	Exact func(a Args) Truth
	// NoExact says why an elementwise operator has no second way to its results.
	NoExact string
	// Tol is the numerics class with its reason.
	Tol Tol
	// Law returns how the results of a Random operator are distributed; nil
	// where they are certain, such as those of dropout in evaluation.
	Law func(a Args) *Law
	// Magnitude names the operator of the same arguments which, given absolute
	// values, results in Σ|terms| of each result element; "" when the results
	// are no sums of products. Rounding-error bounds follow from it. A Tol with
	// OwnMagnitude stands for the operator itself.
	Magnitude string
	// HasMagnitude reports whether Magnitude holds for the call at hand: a
	// quotient is a product by a number, but no product of two tensors. Nil: for
	// every call.
	HasMagnitude func(a Args) bool
	// Formula writes the results in other operators, for those that are neither
	// elementwise nor sums of products: their rounding-error bounds are the formula's.
	Formula func(b Builder, a Args) []Value
	// Errors returns bounds of the rounding errors of the results, in units of
	// the roundoff, contiguous, and nil for exact integers, where the steps of
	// Formula would be too large to be written out; false where it knows none.
	Errors func(r *Rounding) ([]*tensor.Tensor, bool)

	sigs    []*Sig            // parsed Sig and More
	aliases map[string][]*Sig // the signatures with the parameter names of a public name
	called  map[string]string // those names, as they were written
	table   *Table
}

// IsFixed reports whether an argument is Fixed.
func (d *Def) IsFixed(name string) bool {
	return slices.ContainsFunc(d.Fixed, func(p Handle) bool { return p.Name() == name })
}

// Differentiable reports whether the results have a gradient of any argument.
func (d *Def) Differentiable() bool {
	return !d.Traits.Has(NoGrad) && slices.ContainsFunc(d.Sigs()[0].Params, func(p Param) bool {
		return p.Type.Kind == KTensor && !d.IsFixed(p.Name)
	})
}

// ID returns the operator's id, the name in its signature.
func (d *Def) ID() string {
	if d.sigs != nil {
		return d.sigs[0].Name
	}
	id, _, _ := strings.Cut(d.Sig, "(")
	return strings.TrimSpace(id)
}

// Sigs returns the parsed signatures in the order in which they are tried.
func (d *Def) Sigs() []*Sig {
	if d.sigs != nil {
		return d.sigs
	}
	own := *d // a literal that is in no table
	if err := own.init(); err != nil {
		panic(err)
	}
	return own.sigs
}

// Class is a numerics class: which rule limits the distance between results.
type Class string

// The numerics classes; docs/numerics.md states their rules.
const (
	Exact        Class = "exact"        // equal bits up to NaN payload and the sign of zero
	Pointwise    Class = "pointwise"    // a few units in the last place per element
	Accumulating Class = "accumulating" // grows with the number of summed terms
	Statistical  Class = "statistics"   // drawn: support and distribution are judged
)

// Tol is an operator's numerics class. ULP is the limit of a pointwise
// operator in units in the last place of the result; Reason names its source.
// Terms returns how many terms one result element of an accumulating operator sums.
type Tol struct {
	Class  Class
	ULP    float64
	Terms  func(a Args) int
	Reason string
	// AnyZero says that a zero result may have either sign.
	AnyZero bool
	// Vanishes says that results go to 0 as an exponential does, by a usual formula with terms
	// near 1: log(1 + exp(x)), (1 + tanh(x/2))/2.
	Vanishes bool
	// OwnMagnitude says that the operator is its own Magnitude: its terms are
	// elements of arguments, or products of them, none subtracted.
	OwnMagnitude bool
	// InPlace says that each addition rounds to the dtype, as additions into elements of
	// the result do, where other sums of half types round once.
	InPlace bool
	// Fractional says that terms are divided or have fractional weights, so
	// that sums of integers are no integers.
	Fractional bool
}
