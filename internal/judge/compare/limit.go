package compare

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"

	"plumb/op"
	"plumb/tensor"
)

// Explicit is the class of a limit that a test or the command line gave.
const Explicit op.Class = "explicit"

// Limit is how far an element may be from the expected one: an element passes
// when
//
//	|got − want| ≤ ATol + RTol·|want|   or   units in the last place ≤ ULP
//
// or, where Error is set and the tolerances are not, when
//
//	|got − want| ≤ 2·Unit·Error   of that element.
//
// The zero tolerances ask for equal values. A negative or NaN tolerance counts
// as zero.
type Limit struct {
	Class  op.Class `json:"class"`
	RTol   Number   `json:"rtol"`
	ATol   Number   `json:"atol"`
	ULP    Number   `json:"ulp,omitempty"`
	Unit   Number   `json:"unit,omitempty"`  // roundoff of the dtype
	Count  Number   `json:"count,omitempty"` // roundings of one sum
	Reason string   `json:"reason"`          // where the numbers come from

	Error *tensor.Tensor `json:"-"` // by element, in float64, in units of Unit
	Terms *tensor.Tensor `json:"-"` // Σ|terms| by element, of a sum of products
}

// String states the rule in words.
func (l Limit) String() string {
	if l.Error != nil {
		return fmt.Sprintf("|got - want| <= 2 * %.3g * E", float64(l.Unit))
	}
	if l.RTol == 0 && l.ATol == 0 && l.ULP == 0 {
		return "equal values"
	}
	var parts []string
	if l.RTol != 0 || l.ATol != 0 {
		parts = append(parts, fmt.Sprintf("|got - want| <= %s + %s * |want|", short(l.ATol), short(l.RTol)))
	}
	if l.ULP != 0 {
		parts = append(parts, fmt.Sprintf("%s ULP", short(l.ULP)))
	}
	return strings.Join(parts, " or ")
}

// short prints the shortest decimal that reads back as n.
func short(n Number) string { return strconv.FormatFloat(float64(n), 'g', -1, 64) }

// defaults are the tolerances of torch.testing.assert_close, by dtype.
var defaults = map[tensor.DType][2]Number{
	tensor.F16:  {1e-3, 1e-5},
	tensor.BF16: {1.6e-2, 1e-5},
	tensor.F32:  {1.3e-6, 1e-5},
	tensor.F64:  {1e-7, 1e-7},
	tensor.C64:  {1.3e-6, 1e-5},
	tensor.C128: {1e-7, 1e-7},
}

// Default returns PyTorch's own tolerance for a dtype, that of
// torch.testing.assert_close; integers and bool compare exactly.
func Default(d tensor.DType) Limit {
	t, ok := defaults[d]
	if !ok {
		return Exactly(d.String() + " compares exactly")
	}
	return Limit{RTol: t[0], ATol: t[1], Reason: "torch.testing.assert_close's default for " + d.String()}
}

// Coarser returns the less precise of two dtypes; those that are not floats say
// nothing.
func Coarser(a, b tensor.DType) tensor.DType {
	if !b.IsDifferentiable() || a.IsDifferentiable() && Roundoff(a) > Roundoff(b) {
		return a
	}
	return b
}

// Exactly returns the limit that asks for equal values.
func Exactly(reason string) Limit { return Limit{Class: op.Exact, Reason: reason} }

// Basis is what decides the limit of one comparison.
type Basis struct {
	DType tensor.DType
	// From is the least precise dtype that the result was computed from;
	// tensor.Invalid where nothing is known of it.
	From tensor.DType
	// Tols are the numerics of the operators that answer to the call's target;
	// none when the operator is unknown.
	Tols []op.Tol
	// Same says that every input of the call has the same bits on both sides.
	Same bool
	// Bound is the rounding-error bound of the result; nil when there is none.
	Bound *Bound
	// RTol and ATol are explicit tolerances; one that is nil is the default's.
	RTol, ATol *float64
	Given      string // who gave them; "" for the user
	// Default asks for PyTorch's default of the dtype.
	Default bool
}

// Settled reports whether LimitFor returns the same whatever the bound is; where
// it is not nil, outline tells what is certain of it.
func (b *Basis) Settled(outline *Bound) bool {
	if !b.DType.IsDifferentiable() || b.RTol != nil || b.ATol != nil || b.Default {
		return true
	}
	switch class := classOf(b.Tols); {
	case !b.Same:
		return false
	case class == op.Pointwise:
		return outline != nil && outline.Elementwise
	default:
		return class == op.Exact
	}
}

// LimitFor returns the limit by the first of these rules that applies:
//
//  1. Integers and bool are exact.
//  2. An explicit tolerance holds as it was given, one that asks for PyTorch's
//     default likewise.
//  3. An operator of the exact class is exact when its inputs are the same
//     bits on both sides; otherwise the difference may be inherited.
//  4. An operator of the pointwise class that is no sum of products has its ULP
//     limit when its inputs are the same bits on both sides.
//  5. A result with a rounding-error bound may differ by the errors of both
//     sides: 2·u·E; not at all when its sums are exact. Without a bound, rule 4
//     holds for sums of products too.
//  6. Everything else has PyTorch's default of its dtype, or of a less precise
//     one that it was computed from.
func LimitFor(b Basis) Limit {
	l := Default(b.DType)
	if !b.DType.IsDifferentiable() {
		return l
	}
	if b.RTol != nil || b.ATol != nil {
		return explicit(l, b.RTol, b.ATol, cmp.Or(b.Given, "given explicitly"))
	}
	if b.Default {
		return l
	}
	if Coarser(b.From, b.DType) == b.From {
		l = Default(b.From)
	}
	l.Class = classOf(b.Tols)
	switch {
	case l.Class == op.Exact && b.Same:
		return Exactly(b.Tols[0].Reason)
	case l.Class == op.Pointwise && b.Same && (b.Bound == nil || b.Bound.Error != nil && b.Bound.Terms == nil):
		return pointwise(b.Tols, b.DType)
	case b.Bound != nil:
		return b.Bound.limit(b.DType)
	case l.Class == op.Exact:
		l.Reason += ": the operator is exact, but its inputs differ already"
	}
	return l
}

// pointwise returns the largest ULP limit among the operators. A half dtype is
// computed in float32 and rounded once: two units there cover both sides. A
// complex result may be off by as many units of its modulus: where one part
// cancels, formulas differ in it. In complex128, where no truth settles what
// lies beyond, either side may.
func pointwise(tols []op.Tol, d tensor.DType) Limit {
	l := Limit{Class: op.Pointwise}
	for _, t := range tols {
		if Number(t.ULP) >= l.ULP {
			l.ULP, l.Reason = Number(t.ULP), t.Reason
		}
	}
	if d.IsComplex() {
		l = Limit{Class: op.Pointwise, RTol: 2 * l.ULP * Number(Roundoff(d)), Reason: l.Reason + ", of the modulus"}
		if d == tensor.C128 {
			l.RTol, l.Reason = 2*l.RTol, l.Reason+", on either side"
		}
		return l
	}
	if Roundoff(d) > 0x1p-12 {
		l.ULP = min(l.ULP, 2)
	}
	return l
}

func explicit(l Limit, rtol, atol *float64, given string) Limit {
	l.Class = Explicit
	switch {
	case rtol != nil && atol != nil:
		l.Reason = given
	case rtol != nil:
		l.Reason = "rtol " + given + ", atol " + l.Reason
	default:
		l.Reason = "atol " + given + ", rtol " + l.Reason
	}
	if rtol != nil {
		l.RTol = Number(*rtol)
	}
	if atol != nil {
		l.ATol = Number(*atol)
	}
	return l
}

// classOf returns the most permissive class; "" when nothing is known.
func classOf(tols []op.Tol) op.Class {
	rank := map[op.Class]int{op.Exact: 0, op.Pointwise: 1, op.Accumulating: 2}
	if len(tols) == 0 {
		return ""
	}
	c := op.Exact
	for _, t := range tols {
		class := t.Class
		if class == op.Statistical && t.ULP > 0 { // what it computes where nothing is drawn
			class = op.Pointwise
		}
		if rank[class] > rank[c] {
			c = class
		}
	}
	return c
}

// rule is a Limit in the form that loops use.
type rule struct{ rtol, atol, ulp float64 }

func (l Limit) rule() rule { return rule{clean(l.RTol), clean(l.ATol), clean(l.ULP)} }

// clean brings a tolerance into [0, MaxFloat64], so that 0·rtol is never NaN.
func clean(n Number) float64 {
	if !(n > 0) {
		return 0
	}
	return math.Min(float64(n), math.MaxFloat64)
}

// ratio returns observed error ÷ limit; an element passes when it is at most 1.
func (r rule) ratio(err, magnitude, ulp float64) float64 {
	if err == 0 {
		return 0
	}
	ratio := math.Inf(1)
	if !math.IsInf(err, 1) {
		ratio = err / (r.atol + float64(r.rtol*magnitude))
	}
	if r.ulp > 0 {
		ratio = min(ratio, ulp/r.ulp)
	}
	return ratio
}
