package onekernel

import (
	"fmt"
	"math"
	"math/cmplx"
	"slices"
	"strings"

	"plumb/backend"
	"plumb/internal/judge/compare"
	"plumb/internal/judge/verdict"
	"plumb/op"
	"plumb/program"
	"plumb/tensor"
)

// excuses are what is not held against a kernel whose result misaligns, each for a reason
// that no honest kernel could mend.
var excuses []excuse

type excuse struct {
	name  string
	holds func(*Session, *result) bool
}

func init() { // one judges again by other choices
	excuses = []excuse{
		{"tolerated", func(_ *Session, r *result) bool { return r.tolerated() }},
		{"sums", (*Session).sums},
		{"overflows", (*Session).overflows},
		{"detached", func(_ *Session, r *result) bool { return r.emptyDetached() }},
		{"attached", func(_ *Session, r *result) bool { return r.attached() }},
		{"unbounded", func(_ *Session, r *result) bool { return r.unbounded() }},
		{"undefined", func(_ *Session, r *result) bool { return r.undefined() }},
		{"unused", func(_ *Session, r *result) bool { return r.unused() }},
		{"vanishes", (*Session).vanishes},
		{"unchanged", func(_ *Session, r *result) bool { return r.unchanged() }},
		{"nothing", func(_ *Session, r *result) bool { return r.averagesNothing() }},
		{"equals", func(_ *Session, r *result) bool { return r.exchanged() }},
		{"pooled", (*Session).pooled},
		{"places", (*Session).displaced},
		{"framework", (*Session).framework},
		{"channels", (*Session).withoutChannels},
	}
}

// framework reports whether all that differs are gradients that PyTorch's own operators give
// whoever calls them. gelu's of 1.13 in float32 is never written where the cotangent is
// transposed and the argument is not; masked_select's is laid out in the order of memory
// before 2.9.
func (s *Session) framework(r *result) bool {
	var major, minor int
	if n, _ := fmt.Sscanf(s.info, "torch %d.%d", &major, &minor); n < 2 || r.seen.Formulas {
		return false
	}
	strided := slices.ContainsFunc(r.program.Inputs, func(in program.Input) bool { return in.Strides != nil })
	unwritten := major < 2 && r.DType == tensor.F32 && r.Cotangents == Transposed && slices.Contains(r.seen.Operators, "aten::gelu")
	misplaced := (major < 2 || major == 2 && minor < 9) && strided && slices.Contains(slices.Concat(r.seen.Operators, r.refSeen.Operators), "aten::masked_select")
	return (unwritten || misplaced) && len(r.verdict.Differences) > 0 && !slices.ContainsFunc(r.verdict.Differences, func(d verdict.Difference) bool { return d.Where.Part != backend.PartGrad })
}

// withoutChannels reports whether all that differs is the shape of a convolution of no channels, and
// what follows from it: PyTorch has no channel in its result either (calc_output_size in
// ATen/native/Convolution.cpp), where its documentation has as many as the weight.
func (s *Session) withoutChannels(r *result) bool {
	convolves := func(r *result) bool { return uses(r.refSeen.Operators, "aten::conv") }
	none := func(t *tensor.Tensor) bool { return t.Len() == 0 }
	empty := slices.ContainsFunc(r.program.Inputs, func(in program.Input) bool { return tensor.NumElements(in.Shape) == 0 })
	return empty && len(r.verdict.Differences) > 0 && (convolves(r) || slices.ContainsFunc(s.outcomes, convolves)) &&
		anywhere(r.ref, none) && !slices.ContainsFunc(r.verdict.Differences, func(d verdict.Difference) bool {
		return d.Diff.Rule != compare.Shape && !d.Where.Part.IsGradient()
	})
}

// exchanged reports whether all that differs is to which of equal elements a gradient goes,
// where the reference's choice among them is its own: those of each number have the same sum.
func (r *result) exchanged() bool {
	if !r.choosesFreely() {
		return false
	}
	return len(r.verdict.Differences) > 0 && !slices.ContainsFunc(r.verdict.Differences, func(d verdict.Difference) bool {
		at := slices.IndexFunc(r.program.Inputs, func(in program.Input) bool { return in.Name == d.Where.Name })
		want, got := verdict.At(r.ref, d.Where), verdict.At(r.kernel, d.Where)
		if d.Where.Part != backend.PartGrad || d.Diff.Rule != compare.Distance || at < 0 || want == nil || got == nil {
			return true
		}
		x := r.program.Inputs[at].Materialize()
		off, size := map[complex128]complex128{}, map[complex128]float64{}
		for i := range x.Len() {
			v := x.At(i)
			off[v] += got.At(i) - want.At(i)
			size[v] += cmplx.Abs(got.At(i)) + cmplx.Abs(want.At(i))
		}
		for v, by := range off {
			if !(cmplx.Abs(by) <= 2*roundings*compare.Roundoff(want.DType())*size[v]) {
				return true
			}
		}
		return false
	})
}

// pooled reports whether all that differs are gradients of a problem's model that takes the
// largest of windows, of an image with equal elements: what is computed of it has equal ones in
// a window too, and a maximum by another operator spreads the gradient over them.
func (s *Session) pooled(r *result) bool {
	level := func(v Regime) bool { return v == ConstRows || v == ZeroRows || v == Ties || v == Zeros }
	pools := func(name string) bool { return strings.Contains(name, "max_pool") }
	if s.cfg == nil || s.cfg.Kernel.Form != "problem" || !level(r.Regime) && !level(r.kept) || !slices.ContainsFunc(r.refSeen.Operators, pools) || slices.ContainsFunc(r.seen.Operators, pools) {
		return false
	}
	return len(r.verdict.Differences) > 0 && !slices.ContainsFunc(r.verdict.Differences, func(d verdict.Difference) bool {
		return d.Where.Part != backend.PartGrad || d.Diff.Rule != compare.Distance
	})
}

// wrong reports whether a case that the kernel answers misaligns, and nothing excuses it.
func (s *Session) wrong(r *result) bool {
	if r.verdict.Word != verdict.Misaligned {
		return false
	}
	for _, e := range excuses {
		if e.holds(s, r) {
			return false
		}
	}
	return true
}

// tolerated reports whether all differences of a case are of distance, and none
// beyond slack times its limit. What has to be equal has no such limit.
func (r *result) tolerated() bool {
	return len(r.verdict.Differences) > 0 && r.intolerable() < 0
}

// bounded reports whether all differences of a verdict are ones that a kernel may have by
// error bounds of the reference's own operations: what it gives for thirty inputs near the
// given ones says nothing more, and takes thirty times as long.
func (r *result) bounded(v *verdict.Verdict) bool {
	return len(v.Differences) > 0 && !slices.ContainsFunc(v.Differences, func(d verdict.Difference) bool {
		return d.Limit.Error == nil || !r.tolerable(&d)
	})
}

// intolerable is the first difference that is beyond that, -1 for none.
func (r *result) intolerable() int {
	return slices.IndexFunc(r.verdict.Differences, func(d verdict.Difference) bool { return !r.tolerable(&d) })
}

func (r *result) tolerable(d *verdict.Difference) bool {
	return d.Diff.Rule == compare.Distance && (float64(d.Diff.WorstRatio) <= r.slack || r.rounding(d))
}

// sums reports whether all that is beyond its limit are gradients, or elements of a product of
// matrices or a convolution, none off by more than the largest of them may be: the errors of
// fast algorithms (Strassen's, Winograd's, by Fourier transforms) are bounded by norms, not by
// element (Higham, Accuracy and Stability, §23.2), and whole numbers are as others there; and a
// gradient is a difference of sums by another formula, as that of a recurrence's decays by
// running sums; where these are so large that all of it decays, or some factors are tiny beside
// others, of sums as large as the results. In a half dtype each is rounded at last.
func (s *Session) sums(r *result) bool {
	if half(r.DType) || r.tolerated() {
		return false
	}
	contracts := s.contracts || s.traced != nil && s.traced.contracts(r.program)
	return len(r.verdict.Differences) > 0 && !slices.ContainsFunc(r.verdict.Differences, func(d verdict.Difference) bool {
		if r.tolerable(&d) {
			return false
		}
		l, most := &d.Limit, 0.0
		switch want := verdict.At(r.ref, d.Where); {
		case d.Diff.Rule != compare.Distance || !want.DType().IsFloat():
			return true
		case l.Error != nil && d.Where.Part == backend.PartGrad:
			if !r.undecided { // what a decision may move is no rounding of another element
				most = compare.Largest(l.Error)
			}
			if contracts {
				most = max(most, float64(l.Count)*s.factors(r))
			}
			if r.Regime == Large || r.kept == Tiny {
				most = max(most, largestOf(r.ref))
			}
			most *= float64(l.Unit)
			if !r.undecided && uses(r.refSeen.Operators, exponentials...) && r.largestOfRows(l, 2*r.slack*most, want, verdict.At(r.kernel, d.Where)) {
				return false
			}
		case !contracts:
			return true
		case l.Error != nil && l.Terms != nil:
			return !s.normwise(r, l, want, verdict.At(r.kernel, d.Where))
		case l.Reason == compare.NothingRounds && (d.Where.Part == backend.PartValue || d.Where.Part == backend.PartGrad):
			most = compare.Roundoff(want.DType()) * s.factors(r) * longest(r)
		}
		return !(float64(d.Diff.MaxAbs) <= 2*r.slack*most)
	})
}

// largestOf is the largest number among the results.
func largestOf(o *backend.Outcome) (most float64) {
	for _, t := range all(o) {
		most = max(most, compare.Largest(t))
	}
	return most
}

// normwise reports whether no element is further off than the errors of its arguments, which
// are its own, and those of the largest sum make: how uncertain another row of attention is
// says nothing about this one.
func (s *Session) normwise(r *result, l *compare.Limit, want, got *tensor.Tensor) bool {
	count := float64(l.Count)
	largest := count * max(compare.Largest(l.Terms), s.factors(r))
	for i := range want.Len() {
		inherited := max(0, l.Error.Float(i)-count*l.Terms.Float(i))
		if !(verdict.Distance(want.At(i), got.At(i)) <= 2*r.slack*float64(l.Unit)*(inherited+largest)) {
			return false
		}
	}
	return true
}

// factors is the product of the largest elements of the two factors, where they are the first
// arguments: in no result need they meet. 0 where the reference computes on the way to them.
func (s *Session) factors(r *result) float64 {
	if in := r.program.Inputs; len(in) >= 2 && (s.contracts || s.traced.single(r.program)) {
		return compare.Largest(in[0].Materialize()) * compare.Largest(in[1].Materialize())
	}
	return 0
}

// longest is the largest size of an input: of a transform, each of whose results has the
// errors of as many products.
func longest(r *result) (n float64) {
	for _, in := range r.program.Inputs {
		for _, size := range in.Shape {
			n = max(n, float64(size))
		}
	}
	return n
}

// roundings is how many units in the last place of a gradient's largest element any
// of its elements may be off: by another formula it is a difference of terms that
// are as large.
const roundings = 4

// rounding reports whether a difference of gradients is of that size.
func (r *result) rounding(d *verdict.Difference) bool {
	return float64(d.Diff.MaxAbs) <= r.roundingOf(d.Where)
}

// roundingOf is how far a gradient may be off by roundings, -1 for other results.
func (r *result) roundingOf(w verdict.Where) float64 {
	if w.Part != backend.PartGrad && w.Part != backend.PartSecondGrad {
		return -1
	}
	at := slices.IndexFunc(r.ref.Slots, func(s backend.Slot) bool { return s.Part == w.Part && s.Owner == w.Name })
	if at < 0 || r.ref.Slots[at].Tensor == nil {
		return -1
	}
	t := r.ref.Slots[at].Tensor
	size := compare.Largest(t)
	if uses(r.refSeen.Operators, exponentials...) {
		size = max(size, largestSum(t))
	}
	return 2 * roundings * compare.Roundoff(t.DType()) * size * r.steepness(w)
}

// exponentials begin the names of operators in which a kernel takes the largest of a row from all of
// it: what the result does not depend on, but the gradient there, by PyTorch's rules, is its own term
// less the sum of all of the row's, which leaves their roundings.
var exponentials = []string{"aten::exp", "aten::logsumexp", "aten::softmax", "aten::_softmax", "aten::log_softmax", "aten::_log_softmax"}

// largestOfRows reports whether one element of each row at most is further off than most, as the
// one that is taken from all of the row is, and that by no more than the errors of all of them
// make where they are independent. Cotangents that are alike leave no gradient to measure it by:
// where those of a softmax are all 1, the gradient is 0, and the terms are 1 together.
func (r *result) largestOfRows(l *compare.Limit, most float64, want, got *tensor.Tensor) bool {
	inner := 1
	for d := want.Dim() - 1; d >= 0; d-- {
		n := want.Shape()[d]
		rows := want.Len() / max(n, 1)
		squares, far, beyond := make([]float64, rows), make([]float64, rows), make([]int, rows)
		for i := range want.Len() {
			row, e, off := i/(n*inner)*inner+i%inner, l.Error.Float(i), verdict.Distance(want.At(i), got.At(i))
			squares[row] += e * e
			if !(off <= most) {
				far[row], beyond[row] = off, beyond[row]+1
			}
		}
		one := true
		for row := range rows {
			one = one && beyond[row] <= 1 && far[row] <= 2*r.slack*float64(l.Unit)*math.Sqrt(squares[row])
		}
		if one {
			return true
		}
		inner *= n
	}
	return false
}

// largestSum is the largest sum of magnitudes along a dimension.
func largestSum(t *tensor.Tensor) (most float64) {
	inner := 1
	for d := t.Dim() - 1; d >= 0; d-- {
		n := t.Shape()[d]
		sums := make([]float64, t.Len()/max(n, 1))
		for i := range t.Len() {
			sums[i/(n*inner)*inner+i%inner] += cmplx.Abs(t.At(i))
		}
		most = max(most, slices.Max(append(sums, 0)))
		inner *= n
	}
	return most
}

// steepness is how many times the gradient of a tiny argument the terms are of which a formula
// makes it: the slope of the gradient, where that goes to 0 with its argument. Huber's loss as
// q²/2 + δ·(d - q) has a gradient of (q - δ) + δ.
func (r *result) steepness(w verdict.Where) float64 {
	at := slices.IndexFunc(r.program.Inputs, func(in program.Input) bool { return in.Name == w.Name })
	if r.Regime != Tiny || w.Part != backend.PartGrad || at < 0 {
		return 1
	}
	if x := compare.Largest(r.program.Inputs[at].Materialize()); x > 0 && x < 1 {
		return 1 / x
	}
	return 1
}

// overflows reports whether numbers in a case of the ends of a dtype say nothing: where
// terms are multiplied or summed, what overflows on the way, or vanishes, follows from the
// order of operations and from the accumulator, which nothing asks of a kernel.
// Neither does a gradient of finite arguments through a result that overflows: it is
// 0·∞ for one formula and not for another. Dtypes and shapes are held to always, and
// so are results that are elements of the arguments, of a reference that computes nothing.
func (s *Session) overflows(r *result) bool {
	if !r.differsIn(compare.Distance, compare.NonFinite) {
		return false
	}
	atEnds := r.Regime == Extremes || nearEnd(r.ref)
	return !s.pointwise && atEnds && (gradientOnly(r) || !r.selects() || s.rounds || s.traced != nil && s.traced.rounds(r.program)) || r.Regime != NonFinite && gradientOnly(r) && r.verdict.Differences[0].Diff.Rule == compare.NonFinite && !finite(r.ref)
}

// selects reports whether every element of the reference's result is one of an argument,
// as those of a sort or a maximum are: no more of each than there are. A bias that is left
// of what vanishes beside it is more, and so is NaN where no argument has any.
func (r *result) selects() bool {
	given, missing := map[complex128]int{}, 0
	count(backend.NewJob(r.program).Inputs, given, &missing)
	return !anywhere(r.ref, func(t *tensor.Tensor) bool {
		taken, nans := map[complex128]int{}, 0
		count([]*tensor.Tensor{t}, taken, &nans)
		for v, n := range taken {
			if n > given[v] {
				return true
			}
		}
		return nans > missing
	})
}

// count counts the elements of tensors by their values, and those that are NaN, which equals
// no key of a map.
func count(tensors []*tensor.Tensor, by map[complex128]int, nans *int) {
	for _, t := range tensors {
		for i := range t.Len() {
			if v := t.At(i); cmplx.IsNaN(v) {
				*nans++
			} else {
				by[v]++
			}
		}
	}
}

// differsIn reports whether a case differs, and by these rules alone.
func (r *result) differsIn(rules ...compare.Rule) bool {
	return len(r.verdict.Differences) > 0 && !slices.ContainsFunc(r.verdict.Differences, func(d verdict.Difference) bool { return !slices.Contains(rules, d.Diff.Rule) })
}

// emptyDetached reports whether a result without elements, or of arguments without any, requires
// no gradient, of which nothing could be missing.
func (r *result) emptyDetached() bool {
	asked := func(in program.Input) bool { return in.RequiresGrad }
	nothing := slices.ContainsFunc(r.program.Inputs, asked) && !slices.ContainsFunc(r.program.Inputs, func(in program.Input) bool { return asked(in) && tensor.NumElements(in.Shape) > 0 })
	return r.verdict.Kind == verdict.RequiresGrad && (nothing || !anywhere(r.ref, func(t *tensor.Tensor) bool { return t.Len() > 0 }))
}

// attached reports whether results require a gradient, and nothing else differs, that to the reference
// are constants while other tensors require none. A class that states its gradients says of a constant
// that it has none, and all of its results require one; whether any is wrong, calls show in which all do.
func (r *result) attached() bool {
	return !slices.ContainsFunc(r.verdict.Differences, func(d verdict.Difference) bool {
		return d.Diff.Rule != compare.Rule(verdict.RequiresGrad) || d.Where.Call >= len(r.ref.Values) || requiresGrad(r.ref.Values[d.Where.Call].Part(d.Where.Path))
	}) && len(r.verdict.Differences) > 0 &&
		slices.ContainsFunc(r.program.Inputs, func(in program.Input) bool { return in.DType.IsDifferentiable() && !in.RequiresGrad })
}

// unbounded reports whether a case differs by distance in gradients alone whose rounding
// errors have no bound, with values so large that another formula's terms may be as much:
// the gradient of a saturated softmax is 0 by one formula, and a difference of products
// of such values by another.
func (r *result) unbounded() bool {
	if r.Regime != Large && r.Regime != Offset && r.Regime != Cancelling {
		return false
	}
	return !slices.ContainsFunc(r.verdict.Differences, func(d verdict.Difference) bool {
		return d.Where.Part != backend.PartGrad || d.Diff.Rule != compare.Distance || d.Limit.Error != nil || d.Limit.Class == op.Exact || d.Limit.Class == op.Pointwise
	}) && len(r.verdict.Differences) > 0
}

// undefined reports whether all that is beyond its limit are gradients of finite numbers that
// are NaN by the reference's formula alone, and numbers by the kernel's: sqrt(sum(x²)) has 0·∞
// in a row of zeros, where a norm has a gradient of 0.
func (r *result) undefined() bool {
	if r.Regime == NonFinite || !finite(r.ref) || r.tolerated() {
		return false
	}
	return len(r.verdict.Differences) > 0 && !slices.ContainsFunc(r.verdict.Differences, func(d verdict.Difference) bool {
		want, got := verdict.At(r.ref, d.Where), verdict.At(r.kernel, d.Where)
		if d.Where.Part != backend.PartGrad || d.Diff.Rule != compare.NonFinite && !r.tolerable(&d) || want == nil || got == nil || want.Len() != got.Len() {
			return true
		}
		for i := range want.Len() {
			off := verdict.Distance(want.At(i), got.At(i))
			if nan := cmplx.IsNaN(want.At(i)) && compare.Finite(got.At(i)); !nan && off != 0 && !(off <= r.slack*d.Limit.Allows(want, i)) {
				return true
			}
		}
		return false
	})
}

// unused reports whether all that differs is that an argument has no gradient at all where
// the reference's is zero, or one of zeros where that has none: the kernel does not need it for
// these sizes, or it is none of the result that is asked about.
func (r *result) unused() bool {
	return len(r.verdict.Differences) > 0 && !slices.ContainsFunc(r.verdict.Differences, func(d verdict.Difference) bool {
		want, got := verdict.At(r.ref, d.Where), verdict.At(r.kernel, d.Where)
		none := want != nil && got == nil && zero(want) || want == nil && got != nil && zero(got)
		return d.Where.Part != backend.PartGrad || !none
	})
}

// accurate are functions that PyTorch has for no other reason than that the digits of what
// vanishes, or of what is near 1, are wanted.
var accurate = []string{"aten::erfc", "aten::special_erfc", "aten::expm1", "aten::special_expm1", "aten::log1p", "aten::special_log1p"}

// vanishes reports whether a function of single elements differs by no more than some
// roundings of the argument's own magnitude, and only where it goes to 0 as an exponential
// does: far out, log(1 + exp(x)) and log1p(exp(x)), or (1 + tanh(x/2))/2 and 1/(1 + exp(-x)),
// do so in another manner. PyTorch 1.13's own logaddexp is of that kind.
func (s *Session) vanishes(r *result) bool {
	if !s.pointwise && (s.traced == nil || !s.traced.pointwise(r.program)) || slices.ContainsFunc(accurate, func(name string) bool { return slices.Contains(r.refSeen.Operators, name) }) {
		return false
	}
	given := backend.NewJob(r.program).Inputs
	return len(r.verdict.Differences) > 0 && !slices.ContainsFunc(r.verdict.Differences, func(d verdict.Difference) bool {
		want, got := verdict.At(r.ref, d.Where), verdict.At(r.kernel, d.Where)
		if d.Where.Part != backend.PartValue || d.Diff.Rule != compare.Distance || got.Len() != want.Len() || slices.ContainsFunc(given, func(x *tensor.Tensor) bool { return x.Len() != want.Len() }) {
			return true
		}
		unit := min(compare.Roundoff(want.DType()), compare.Roundoff(tensor.F32))
		for i := range want.Len() {
			off := verdict.Distance(want.At(i), got.At(i))
			if !(off <= r.slack*d.Limit.Allows(want, i) || off <= r.slack*unit*farOut(given, i, cmplx.Abs(want.At(i)))) {
				return true
			}
		}
		return false
	})
}

// little is what part of its argument a result that vanishes is below, and saturated where
// exp(-x) is nothing beside 1 even in float64.
const little, saturated = 1. / 16, 40

// farOut is the magnitude of the terms that element i of a product of functions was computed
// of, where it is no more than exp(-x) for one of its arguments: that of all of them. 0 elsewhere.
func farOut(given []*tensor.Tensor, i int, result float64) float64 {
	size := 1.0
	for _, x := range given {
		size *= cmplx.Abs(x.At(i))
	}
	most := 0.0
	for _, x := range given {
		if v := cmplx.Abs(x.At(i)); v >= 1 && result <= size*min(little, 2*math.Exp(-v)) {
			most = max(most, size/v*min(v, saturated))
		}
	}
	return most
}

// unchanged reports whether all that differs is that an argument was changed by roundings
// alone which the reference leaves as it is: a running mean that comes to itself.
func (r *result) unchanged() bool {
	return len(r.verdict.Differences) > 0 && !slices.ContainsFunc(r.verdict.Differences, func(d verdict.Difference) bool {
		return d.Where.Part != backend.PartChange || verdict.At(r.ref, d.Where) != nil || !r.remains(d.Where, verdict.At(r.kernel, d.Where), false)
	})
}

// averagesNothing reports whether all that differs in a call whose results have no elements is
// NaN for running statistics that the reference leaves as they are: the mean of nothing.
func (r *result) averagesNothing() bool {
	var results []*tensor.Tensor
	for _, v := range r.ref.Values {
		results = append(results, leaves(v)...)
	}
	if len(results) == 0 || slices.ContainsFunc(results, func(t *tensor.Tensor) bool { return t.Len() > 0 }) {
		return false
	}
	return len(r.verdict.Differences) > 0 && !slices.ContainsFunc(r.verdict.Differences, func(d verdict.Difference) bool {
		ref := verdict.At(r.ref, d.Where)
		return d.Where.Part != backend.PartChange || ref != nil && !r.remains(d.Where, ref, false) || !r.remains(d.Where, verdict.At(r.kernel, d.Where), true)
	})
}

// remains reports whether an argument has been left as it is but for roundings, or with no
// number where that is allowed.
func (r *result) remains(at verdict.Where, now *tensor.Tensor, orNaN bool) bool {
	k := slices.IndexFunc(r.program.Inputs, func(in program.Input) bool { return in.Name == at.Name })
	if now == nil || k < 0 {
		return false
	}
	given := r.program.Inputs[k]
	given.Strides = nil
	was := given.Materialize()
	if was.Len() != now.Len() || was.DType() != now.DType() {
		return false
	}
	for i := range was.Len() {
		near := verdict.Distance(was.At(i), now.At(i)) <= 2*r.slack*compare.Roundoff(was.DType())*cmplx.Abs(was.At(i))
		if !near && !(orNaN && cmplx.IsNaN(now.At(i))) {
			return false
		}
	}
	return true
}

func zero(t *tensor.Tensor) bool {
	for i := range t.Len() {
		if t.At(i) != 0 {
			return false
		}
	}
	return true
}

// finite reports whether all elements of results are.
func finite(o *backend.Outcome) bool {
	return !anywhere(o, func(t *tensor.Tensor) bool {
		return compare.Any(t, func(v complex128) bool { return !compare.Finite(v) })
	})
}

// hasNaN reports whether a result has one.
func hasNaN(o *backend.Outcome) bool {
	return anywhere(o, func(t *tensor.Tensor) bool { return compare.Any(t, cmplx.IsNaN) })
}

// anywhere reports whether any tensor among results is of a kind.
func anywhere(o *backend.Outcome, is func(*tensor.Tensor) bool) bool {
	return slices.ContainsFunc(o.Values, func(v backend.Value) bool { return slices.ContainsFunc(leaves(v), is) })
}

// nearEnd reports whether a result comes near the largest number of its dtype.
func nearEnd(o *backend.Outcome) bool { return anywhere(o, compare.NearEnd) }
