package onekernel

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"plumb/backend"
	"plumb/internal/judge/compare"
	"plumb/internal/judge/verdict"
	"plumb/op"
	"plumb/program"
	"plumb/tensor"
)

var inf, nan = math.Inf(1), math.NaN()

func vector(v ...float64) *tensor.Tensor {
	t := tensor.New(tensor.F32, len(v))
	for i, x := range v {
		t.Set(i, complex(x, 0))
	}
	return t
}

// misalignedBy is a case of x whose result, or whose gradient of x where part is that,
// differs by a rule.
func misalignedBy(rule compare.Rule, ratio float64, part backend.Part, regime Regime, x, want, got *tensor.Tensor) *result {
	where := verdict.Where{Part: part, Name: "x"}
	o := func(t *tensor.Tensor) *backend.Outcome {
		out := &backend.Outcome{Status: backend.OK, Values: []backend.Value{{Tensor: want}}}
		if part == backend.PartValue {
			out.Values[0].Tensor = t
		} else {
			out.Add(backend.Place{Part: part, Owner: "x"}, t)
		}
		return out
	}
	return &result{
		Case: &Case{Regime: regime, DType: tensor.F32, program: &program.Program{Inputs: []program.Input{{Name: "x", DType: tensor.F32, Shape: x.Shape(), Fill: program.Fill{Dist: program.Literal, Data: x}}}}},
		ref:  o(want), kernel: o(got), slack: Slack,
		verdict: &verdict.Verdict{Word: verdict.Misaligned, Kind: verdict.Kind(part), Where: &where, Differences: []verdict.Difference{{
			Where: where, Kind: verdict.Kind(part), Limit: compare.Limit{ATol: 1e-7, Class: op.Accumulating},
			Diff: compare.Diff{Rule: rule, WorstRatio: compare.Number(ratio), MaxAbs: compare.Number(ratio * 1e-7)},
		}}},
	}
}

// ofNothing is a call without elements that changes x.
func ofNothing(x, got, want *tensor.Tensor) *result {
	r := misalignedBy(compare.NonFinite, math.Inf(1), backend.PartChange, Usual, x, want, got)
	r.ref.Values[0].Tensor, r.kernel.Values[0].Tensor = vector(), vector()
	return r
}

// TestExcuses: each excuse is the only one for a right kernel that has been seen, and
// none holds for a wrong kernel that is like it.
func TestExcuses(t *testing.T) {
	const value, grad = backend.PartValue, backend.PartGrad
	pointwise, rows, products := &Session{pointwise: true}, &Session{}, &Session{contracts: true}
	shown := map[string]bool{}
	x := vector(-150, -120, -100, 1)
	sat := vector(0, 0, 0, 1)
	far := func(part backend.Part, regime Regime) *result {
		return misalignedBy(compare.Distance, 1e6, part, regime, x, sat, vector(0, 0, 0.1, 0.9))
	}
	within := func(ratio float64, regime Regime) *result {
		r := misalignedBy(compare.Distance, ratio, grad, regime, x, vector(1, 0, 0, 1e-30), vector(1, 0, 0, 0))
		r.ref.Slots[0].Tensor, r.verdict.Differences[0].Limit = vector(0, 0, 0, 1e-30), compare.Limit{Class: op.Accumulating, Unit: 0x1p-24, Error: vector(0, 0, 0, 1e-36)}
		return r
	}
	chosen := func(x, want, got *tensor.Tensor) *result {
		r := misalignedBy(compare.Distance, 1e6, grad, Ties, x, want, got)
		r.refSeen.Operators = []string{"aten::topk"}
		return r
	}
	model := &Session{cfg: &Config{Kernel: Source{Form: "problem"}}}
	pooled := func(of Regime, part backend.Part, by string) *result {
		r := misalignedBy(compare.Distance, 1e6, part, of, vector(2, 2), vector(1, 0), vector(0.5, 0.5))
		r.refSeen.Operators, r.seen.Operators = []string{"aten::convolution", "aten::max_pool2d_with_indices"}, []string{"aten::convolution", by}
		return r
	}
	placed := func(calls string, x *tensor.Tensor, want, got []int) *result {
		places := func(v []int) *tensor.Tensor {
			t := tensor.New(tensor.I64, len(v))
			for i, at := range v {
				t.Set(i, complex(float64(at), 0))
			}
			return t
		}
		r := misalignedBy(compare.Distance, inf, value, Usual, x, places(want), places(got))
		r.refSeen.Operators = []string{calls}
		return r
	}
	narrow := placed("aten::topk", vector(2, 3, 1, 3), []int{1, 3}, []int{1, 3})
	narrow.verdict.Differences[0].Diff.Rule = compare.DType
	underflown := placed("aten::topk", vector(3, -200, -300, -400), []int{0, 1}, []int{0, 2})
	underflown.ref.Values = append(underflown.ref.Values, backend.Value{Tensor: vector(1, 0)})
	hidden := placed("aten::topk", vector(0, 0), []int{0, 1, 2}, []int{2, 1, 0}) // of what is computed of two elements
	hidden.program.Inputs[0].Shape, hidden.program.Inputs[0].Fill.Data = []int{1, 2}, vector(0, 0).Reshape(1, 2)
	beside := func(of *result, chosen ...float64) *result {
		r, ref := *of, *of.ref
		ref.Values = append(slices.Clone(ref.Values), backend.Value{Tensor: vector(chosen...)})
		r.ref = &ref
		return &r
	}
	many := func(differ int) *result { // of a computed row of 200
		want := make([]int, 100)
		for i := range want {
			want[i] = i
		}
		got := slices.Clone(want)
		for i := range differ {
			got[i] = 150 + i
		}
		r := placed("aten::topk", vector(0, 0), want, got)
		r.program.Inputs[0].Shape, r.program.Inputs[0].Fill.Data = []int{1, 2}, vector(0, 0).Reshape(1, 2)
		return r
	}
	zeros := *hidden
	zeros.Case = &Case{Regime: ZeroRows, DType: tensor.F32, program: hidden.program}
	offBy := func(most float64) *result {
		r := misalignedBy(compare.Distance, 100, grad, Usual, x, sat, sat)
		r.verdict.Differences[0].Diff.MaxAbs = compare.Number(most)
		return r
	}
	tiny := func(part backend.Part, regime Regime, size, most float64) *result {
		r := misalignedBy(compare.Distance, 100, part, regime, vector(-size, size/2), vector(-size, size/2), vector(-size, size/2+most))
		r.verdict.Differences[0].Diff.MaxAbs = compare.Number(most)
		return r
	}
	product := func(part backend.Part, most float64) *result {
		r := misalignedBy(compare.Distance, 1e30, part, ZeroRows, x, vector(0, 0, 0, 9), vector(most, 0, 0, 9))
		d := &r.verdict.Differences[0]
		d.Diff.MaxAbs = compare.Number(most)
		d.Limit = compare.Limit{Class: op.Accumulating, Unit: 0x1p-24, Error: vector(0, 0, 0, 18), Terms: vector(0, 0, 0, 9), Count: 2}
		return r
	}
	tight := func(part backend.Part, regime Regime, x, want, got *tensor.Tensor) *result {
		r := misalignedBy(compare.Distance, 1e6, part, regime, x, want, got)
		r.verdict.Differences[0].Limit = compare.Limit{RTol: 1e-7, Class: op.Pointwise}
		return r
	}
	times := func(x, y, want, got *tensor.Tensor) *result {
		r := tight(value, Usual, x, want, got)
		other := r.program.Inputs[0]
		other.Name, other.Shape, other.Fill.Data = "y", y.Shape(), y
		r.program.Inputs = append(r.program.Inputs, other)
		return r
	}
	root := func(regime Regime, want, got *tensor.Tensor) *result { // of finite results
		r := misalignedBy(compare.NonFinite, inf, grad, regime, x, want, got)
		r.ref.Values[0].Tensor = sat
		return r
	}
	old := &Session{info: "torch 1.13.0a0"}
	unwritten := func(part backend.Part, calls string, cotangents Layout) *result {
		r := misalignedBy(compare.NonFinite, inf, part, Usual, x, sat, vector(8e37, inf, inf, 8e37))
		r.seen.Operators, r.Cotangents = []string{calls}, cotangents
		return r
	}
	strided := func(calls string) *result {
		r := unwritten(grad, calls, "")
		r.program.Inputs[0].Strides = []int{2}
		return r
	}
	apart := product(value, 1.5e-5) // the largest elements of the factors meet in no result
	apart.verdict.Differences[0].Limit.Error, apart.verdict.Differences[0].Limit.Count = vector(0, 0, 0, 1e-3), 2
	apart.program.Inputs = slices.Repeat(apart.program.Inputs, 2)
	whole := product(value, 1.5e-5)
	whole.verdict.Differences[0].Limit = compare.Exactly(compare.NothingRounds)
	whole.program.Inputs = apart.program.Inputs
	convolved := func(part backend.Part, most float64) *result { // 4 elements long
		r := product(part, most*2*Slack*4*150*150*0x1p-24)
		r.verdict.Differences[0].Limit, r.program.Inputs = whole.verdict.Differences[0].Limit, whole.program.Inputs
		return r
	}
	inherited := product(value, 1.5e-5) // another element's error, of what it is computed of
	inherited.verdict.Differences[0].Limit.Terms = vector(0, 0, 0, 1e-3)
	inherited.verdict.Differences[0].Limit.Count = 2
	own := product(value, 1.5e-5)
	own.verdict.Differences[0].Limit.Error, own.verdict.Differences[0].Limit.Terms = vector(16, 0, 0, 2), vector(0, 0, 0, 1)
	softmax := func(calls string, by ...float64) *result { // in a row of 256, each 1/256
		const n, count, unit = 256, 33, 0x1p-24
		want, got, errors := tensor.New(tensor.F32, 2, n), tensor.New(tensor.F32, 2, n), tensor.New(tensor.F64, 2, n)
		for i := range errors.Len() {
			errors.Set(i, 2*count/complex(n, 0))
		}
		most := 0.0
		for i, v := range by {
			got.Set(i*7, complex(v, 0))
			most = max(most, v)
		}
		r := misalignedBy(compare.Distance, most/(2*unit*2*count/n), grad, Offset, want, want, got)
		r.Regime, r.refSeen.Operators = Usual, []string{calls}
		d := &r.verdict.Differences[0]
		d.Diff.MaxAbs, d.Limit = compare.Number(most), compare.Limit{Class: op.Accumulating, Unit: unit, Error: errors}
		return r
	}
	inHalf := product(value, 3e-7)
	inHalf.DType = tensor.F16
	for _, c := range []struct {
		excuse, what string
		s            *Session
		r            *result
	}{
		{"tolerated", "a sum in another order", rows, misalignedBy(compare.Distance, Slack, value, Usual, x, sat, sat)},
		{"", "more than that", rows, misalignedBy(compare.Distance, Slack+1, value, Usual, x, sat, sat)},
		{"tolerated", "a gradient off by roundings of its largest", rows, offBy(4e-7)},
		{"", "a gradient off by more", rows, offBy(6e-7)},
		{"tolerated", "a gradient that vanishes with its argument, off by roundings of what it is not", rows, tiny(grad, Tiny, 1e-4, 4e-7)},
		{"", "off by more", rows, tiny(grad, Tiny, 1e-4, 6e-7)},
		{"", "of usual arguments", rows, tiny(grad, Usual, 1e-4, 4e-7)},
		{"", "a tiny value", rows, tiny(value, Tiny, 1e-4, 4e-7)},
		{"", "another dtype", rows, misalignedBy(compare.DType, 2, value, Usual, x, sat, sat)},
		{"", "NaN", rows, misalignedBy(compare.NonFinite, 2, value, Usual, x, sat, vector(0, 0, nan, 1))},

		{"sums", "a gradient that has decayed, off by a rounding of the results", rows, within(9, Large)},
		{"", "by more than that", rows, within(20, Large)},
		{"sums", "a gradient of what is in part tiny, off by a rounding of the results", rows, func() *result {
			r := within(9, Usual)
			r.kept = Tiny
			return r
		}()},
		{"", "of what is not", rows, within(9, Usual)},
		{"", "of usual values, off by as much", rows, within(9, Usual)},
		{"sums", "a product by Strassen's algorithm", products, product(value, 1.5e-5)},
		{"sums", "one of factors whose largest elements do not meet", products, apart},
		{"", "off by more than the largest element may be", products, product(value, 2e-5)},
		{"", "off by what another element inherits", products, inherited},
		{"sums", "off by what it inherits itself, and one that is by the largest sum", products, own},
		{"sums", "the gradient of a product", products, product(grad, 1.5e-5)},
		{"sums", "a gradient of sums as long as those of another element", rows, product(grad, 1.5e-5)},
		{"", "one that is further off", rows, product(grad, 2e-5)},
		{"", "a result of such sums", rows, product(value, 1.5e-5)},
		{"sums", "a product of whole numbers", products, whole},
		{"", "a product of whole numbers, its factors unknown", rows, whole},
		{"sums", "whole numbers convolved by Fourier transforms", products, convolved(value, 0.99)},
		{"sums", "their gradients", products, convolved(grad, 0.99)},
		{"", "their gradients off by more", products, convolved(grad, 1.01)},
		{"", "off by more than transforms of that length may be", products, convolved(value, 1.01)},
		{"", "a product in half", products, inHalf},
		{"", "a sum", rows, product(value, 3e-7)},
		{"sums", "the gradient of a row's largest, by a softmax in blocks of equal cotangents", rows, softmax("aten::_softmax", 8e-7)},
		{"", "by more than the errors of all of the row", rows, softmax("aten::_softmax", 5e-6)},
		{"", "of two in a row", rows, softmax("aten::_softmax", 8e-7, 8e-7)},
		{"", "where nothing takes the largest", rows, softmax("aten::mul", 8e-7)},

		{"overflows", "a sum of the largest numbers", rows, far(value, Extremes)},
		{"overflows", "an infinity among them", rows, misalignedBy(compare.NonFinite, inf, value, Extremes, x, sat, vector(0, 0, inf, 1))},
		{"overflows", "a result near the largest number", rows, misalignedBy(compare.NonFinite, inf, value, Large, x, vector(3e38, 0, 0, 1), vector(inf, 0, 0, 1))},
		{"overflows", "a gradient through what overflows", rows, func() *result {
			r := misalignedBy(compare.NonFinite, inf, grad, Large, x, vector(nan, 0, 0, 1), vector(0, 0, 0, 1))
			r.ref.Values[0].Tensor = vector(inf, 0, 0, 1)
			return r
		}()},
		{"", "a function of single elements at the ends", pointwise, far(value, Extremes)},
		{"", "a sort at the ends", rows, misalignedBy(compare.Distance, 1e6, value, Extremes, vector(3e38, -1, 2, 0), vector(-1, 0, 2, 3e38), vector(-1, 0, 2, 1e4))},
		{"overflows", "a bias beside what vanishes", rows, misalignedBy(compare.NonFinite, inf, value, Extremes, vector(3e38, -1, 2, 0), vector(2, 2, 2, 2), vector(nan, nan, nan, nan))},
		{"overflows", "NaN that no argument has", rows, misalignedBy(compare.NonFinite, inf, value, Extremes, vector(3e38, -1, 2, 0), vector(nan, nan, nan, nan), vector(0, 0, 0, 0))},
		{"", "a sort of NaN at the ends", rows, misalignedBy(compare.NonFinite, inf, value, Extremes, vector(nan, 3e38, 1, 0), vector(0, 1, 3e38, nan), vector(0, 1, 3e38, 3e38))},
		{"", "another shape at the ends", rows, misalignedBy(compare.Shape, inf, value, Extremes, x, sat, vector(0))},
		{"", "another dtype at the ends", rows, misalignedBy(compare.DType, inf, value, Extremes, x, sat, sat)},
		{"", "a gradient that is NaN through what does not overflow", rows, misalignedBy(compare.NonFinite, inf, grad, Large, x, sat, vector(nan, 0, 0, 1))},
		{"", "a value that is NaN", rows, misalignedBy(compare.NonFinite, inf, value, Usual, x, vector(inf, 0, 0, 1), vector(inf, nan, 0, 1))},

		{"detached", "no gradient of nothing", rows, func() *result {
			r := misalignedBy(compare.Structure, inf, value, Usual, vector(), vector(), vector())
			r.verdict.Kind = verdict.RequiresGrad
			return r
		}()},
		{"detached", "no gradient of a sum of nothing", rows, func() *result {
			r := misalignedBy(compare.Structure, inf, value, Usual, vector(), vector(0, 0), vector(0, 0))
			r.verdict.Kind, r.program.Inputs[0].RequiresGrad = verdict.RequiresGrad, true
			return r
		}()},
		{"", "another structure of nothing", rows, misalignedBy(compare.Structure, inf, value, Usual, vector(), vector(), vector())},
		{"", "no gradient of something", rows, func() *result {
			r := misalignedBy(compare.Structure, inf, value, Usual, x, sat, sat)
			r.verdict.Kind, r.program.Inputs[0].RequiresGrad = verdict.RequiresGrad, true
			return r
		}()},

		{"attached", "no gradient of a constant", rows, attaching(false, false)},
		{"attached", "one of two results alone", rows, func() *result {
			r := attaching(false, false)
			r.verdict.Differences[0].Where.Path = []int{1}
			r.ref.Values[0] = backend.Value{Tuple: []backend.Value{{Tensor: vector(1), RequiresGrad: true}, {Tensor: vector(1)}}}
			return r
		}()},
		{"", "none of any tensor", rows, attaching(true, false)},
		{"", "a detached result", rows, attaching(false, true)},
		{"", "a constant and another result", rows, attaching(false, false, verdict.Difference{Diff: compare.Diff{Rule: compare.Structure}})},

		{"unbounded", "the gradient of a saturated softmax", rows, far(grad, Large)},
		{"unbounded", "far from 0", rows, far(grad, Offset)},
		{"", "of usual values", rows, far(grad, Usual)},
		{"", "a value", rows, far(value, Large)},
		{"", "a gradient that is NaN", rows, misalignedBy(compare.NonFinite, inf, grad, Large, x, sat, vector(nan, 0, 0, 1))},
		{"", "an exact gradient", rows, func() *result {
			r := far(grad, Large)
			r.verdict.Differences[0].Limit.Class = op.Exact
			return r
		}()},
		{"", "a gradient and a value", rows, func() *result {
			r := far(grad, Large)
			r.verdict.Differences = append(r.verdict.Differences, far(value, Large).verdict.Differences...)
			return r
		}()},

		{"equals", "the gradient of another one of equal elements", rows, chosen(vector(1, 1, 2, 3), vector(0, 4, 5, 0), vector(4, 0, 5, 0))},
		{"", "the gradient of another element", rows, chosen(vector(1, 1, 2, 3), vector(0, 4, 5, 0), vector(0, 0, 5, 4))},
		{"", "the gradient of both of them", rows, chosen(vector(1, 1, 2, 3), vector(0, 4, 5, 0), vector(4, 4, 5, 0))},
		{"", "the gradient of another one, which the reference does not choose", rows, misalignedBy(compare.Distance, 1e6, grad, Ties, vector(1, 1, 2, 3), vector(0, 4, 5, 0), vector(4, 0, 5, 0))},

		{"framework", "the gradient of PyTorch 1.13's own gelu", old, unwritten(grad, "aten::gelu", Transposed)},
		{"", "that of 2.0", rows, unwritten(grad, "aten::gelu", Transposed)},
		{"", "of a contiguous cotangent", old, unwritten(grad, "aten::gelu", "")},
		{"", "of another operator", old, unwritten(grad, "aten::mul", Transposed)},
		{"", "that the kernel states itself", old, func() *result {
			r := unwritten(grad, "aten::gelu", Transposed)
			r.seen.Formulas = true
			return r
		}()},
		{"", "its value", old, unwritten(value, "aten::gelu", Transposed)},
		{"framework", "the gradient of its masked_select, of what is not contiguous", &Session{info: "torch 2.8.0"}, strided("aten::masked_select")},
		{"", "of that of 2.9", &Session{info: "torch 2.9.1"}, strided("aten::masked_select")},
		{"", "of what is contiguous", old, unwritten(grad, "aten::masked_select", Transposed)},
		{"", "of another operator's", old, strided("aten::mul")},

		{"channels", "a convolution of none", rows, channelless("aten::convolution", 0)},
		{"", "of some", rows, channelless("aten::convolution", 1)},
		{"", "another function of none", rows, channelless("aten::mul", 0)},

		{"pooled", "the gradient of maxima over what is computed of equal elements", model, pooled(ConstRows, grad, "aten::amax")},
		{"", "their values", model, pooled(ConstRows, value, "aten::amax")},
		{"", "where elements are others", model, pooled(Usual, grad, "aten::amax")},
		{"", "by the reference's own operator", model, pooled(ConstRows, grad, "aten::max_pool2d_with_indices")},
		{"", "of a function's argument", rows, pooled(ConstRows, grad, "aten::amax")},

		{"places", "another one of the two largest", rows, placed("aten::topk", vector(2, 3, 1, 3), []int{1, 3}, []int{3, 1})},
		{"", "the same one twice", rows, placed("aten::topk", vector(2, 3, 1, 3), []int{1, 3}, []int{3, 3})},
		{"", "one that is smaller", rows, placed("aten::topk", vector(2, 3, 1, 3), []int{1, 3}, []int{1, 0})},
		{"", "places of another dtype", rows, narrow},
		{"", "a place that is not there", rows, placed("aten::topk", vector(2, 3, 1, 3), []int{1, 3}, []int{1, 4})},
		{"", "of an operator that says which", rows, placed("aten::argmax", vector(2, 3, 1, 3), []int{1}, []int{3})},
		{"places", "one that a softmax has as 0", rows, underflown},
		{"places", "one of those computed of zeros", rows, &zeros},
		{"", "one of those computed of any numbers", rows, hidden},
		{"places", "one of those computed that are NaN", rows, beside(hidden, nan, 2, nan)},
		{"places", "of what is computed of as many, alike in a case of ties", rows, func() *result {
			r := placed("aten::topk", vector(1, 3, 2, 4), []int{1, 2}, []int{0, 2})
			r.Regime = Ties
			return r
		}()},
		{"places", "of what is computed of elements of such a case", rows, func() *result {
			r := placed("aten::topk", vector(1, 3, 2, 4), []int{1, 2}, []int{0, 2})
			r.kept = Tiny
			return r
		}()},
		{"", "of usual ones", rows, placed("aten::topk", vector(1, 3, 2, 4), []int{1, 2}, []int{0, 2})},
		{"", "of the argument itself in such a case", rows, func() *result {
			r := placed("aten::topk", vector(1, 3, 2, 4), []int{3, 1}, []int{3, 0})
			r.Regime = Ties
			return r
		}()},
		{"places", "one of those computed that are 0", rows, beside(hidden, 0, 2, 0)},
		{"places", "one beside which another is as large", rows, beside(hidden, 0.5, 0.5, 0.5)},
		{"places", "one near another among many", rows, many(1)},
		{"", "others among many", rows, many(2)},
		{"", "beside one that is NaN", rows, beside(hidden, nan, 2, 1)},
		{"places", "another one of NaN", rows, placed("aten::topk", vector(nan, nan, 1), []int{0}, []int{1})},
		{"", "a number in the place of NaN", rows, placed("aten::topk", vector(nan, nan, 1), []int{0}, []int{2})},

		{"undefined", "a norm's gradient in a row of zeros, beside one of sqrt(sum(x²))", rows, root(ZeroRows, vector(nan, nan, nan, 1), vector(0, 0, 0, 1))},
		{"", "NaN for a number", rows, root(ZeroRows, vector(0, 0, 0, 1), vector(0, 0, nan, 1))},
		{"", "an infinity for NaN", rows, root(ZeroRows, vector(0, 0, nan, 1), vector(0, 0, inf, 1))},
		{"", "another number beside it", rows, root(ZeroRows, vector(0, 0, nan, 1), vector(0, 0, 0, 2))},
		{"", "a gradient of NaN", rows, root(NonFinite, vector(nan, nan, nan, 1), vector(0, 0, 0, 1))},
		{"unused", "no gradient where it is zero", rows, misalignedBy(compare.Structure, inf, grad, Usual, x, vector(0, 0, 0, 0), nil)},
		{"", "no gradient where it is not", rows, misalignedBy(compare.Structure, inf, grad, Usual, x, sat, nil)},
		{"", "no result", rows, misalignedBy(compare.Structure, inf, value, Usual, x, vector(0, 0, 0, 0), nil)},

		{"vanishes", "log1p(exp(x)) as log(1+exp(x)), far out", pointwise, tight(value, Usual, vector(-8, 2, 40), vector(3.3540637e-4, 2.126928, 40), vector(3.36e-4, 2.126928, 40))},
		{"vanishes", "the same of all that are negative, and to 0", pointwise, tight(value, Negative, vector(-17, -18), vector(4.13994e-8, 1.523e-8), vector(0, 0))},
		{"vanishes", "times another argument", pointwise, times(vector(-17, 2), vector(30, 1), vector(-2.1114e-5, 2), vector(0, 2))},
		{"", "by more than that argument's size", pointwise, times(vector(-17, 2), vector(0.01, 1), vector(-7.04e-9, 2), vector(-1e-6, 2))},
		{"", "of an argument that another length has", pointwise, times(vector(-17, 2), vector(30), vector(-2.1114e-5, 2), vector(0, 2))},
		{"", "off beside 0 as well", pointwise, tight(value, Usual, vector(-8, 2, 40), vector(3.3540637e-4, 2.126928, 40), vector(3.36e-4, 2.127, 40))},
		{"", "where little has vanished", pointwise, tight(value, Usual, vector(-2, 1), vector(0.126928, 0), vector(0.1269288, 0))},
		{"", "beside a large argument, of which nothing is left", pointwise, tight(value, Large, vector(-1e6, 1), vector(0, 0), vector(-0.01, 0))},
		{"", "of small arguments", pointwise, tight(value, Usual, vector(0.5, 1), vector(0.02, 0), vector(0.0200002, 0))},
		{"", "a reciprocal, which vanishes slowly", pointwise, tight(value, Large, vector(1000, 300), vector(1e-3, 1./300), vector(1.01e-3, 1./300))},
		{"", "a logarithm of large numbers", pointwise, tight(value, Large, vector(1e10, 1e9), vector(23.02585, 20.72327), vector(23.1, 20.72327))},
		{"", "erfc(x) as 1-erf(x)", pointwise, func() *result {
			r := tight(value, Usual, vector(4, 1), vector(1.54172e-8, 0.1572992), vector(0, 0.1572992))
			r.refSeen.Operators = []string{"aten::erfc"}
			return r
		}()},
		{"", "off by more than roundings of the argument", pointwise, tight(value, Negative, vector(-4, -3), vector(1e-5, 2e-5), vector(0, 0))},
		{"", "of rows", rows, tight(value, Negative, vector(-17, -18), vector(4.13994e-8, 1.523e-8), vector(0, 0))},
		{"", "a gradient", pointwise, tight(grad, Negative, vector(-17, -18), vector(4.13994e-7, 1.523e-8), vector(0, 0))},

		{"unchanged", "a running mean that stays, rounded", rows, misalignedBy(compare.Structure, inf, backend.PartChange, ConstRows, vector(1.75, 2), nil, vector(1.75+2e-7, 2))},
		{"", "one that moves", rows, misalignedBy(compare.Structure, inf, backend.PartChange, ConstRows, vector(1.75, 2), nil, vector(1.7501, 2))},
		{"", "one that does not move", rows, misalignedBy(compare.Structure, inf, backend.PartChange, ConstRows, vector(1.75, 2), vector(1.8, 2), nil)},
		{"nothing", "one of nothing", rows, ofNothing(vector(1.75, 2), vector(nan, nan), nil)},
		{"nothing", "one of nothing, written again", rows, ofNothing(vector(1.75, 2), vector(nan, 2), vector(1.75, 2))},
		{"", "another number of nothing", rows, ofNothing(vector(1.75, 2), vector(1.8, nan), nil)},
		{"", "NaN where the reference moves", rows, ofNothing(vector(1.75, 2), vector(nan, nan), vector(1.5, 2))},
		{"", "NaN in its place", rows, misalignedBy(compare.Structure, inf, backend.PartChange, ConstRows, vector(1.75, 2), nil, vector(nan, 2))},
	} {
		shown[c.excuse] = true
		var by []string
		for _, e := range excuses {
			if e.holds(c.s, c.r) {
				by = append(by, e.name)
			}
		}
		if strings.Join(by, " ") != c.excuse || c.s.wrong(c.r) != (c.excuse == "") {
			t.Errorf("%s: excused by %q, want %q", c.what, by, c.excuse)
		}
	}
	for _, e := range excuses {
		if !shown[e.name] {
			t.Errorf("no right kernel is shown that %s is needed for", e.name)
		}
	}
}

// TestFollowsNonFinite: a NaN or an infinity may differ by the order of operations alone.
func TestFollowsNonFinite(t *testing.T) {
	for _, c := range []struct {
		what                       string
		want, got, a, b, near, far float64
		follows                    bool
		wide                       [2]float64
		undefined                  bool
	}{
		{"what is right", 1, 1, 1, 1, 1, 1, true, [2]float64{}, false},
		{"another number", 1, 1.5, 1, 1, 1, 1, true, [2]float64{}, false}, // which is held to its limit elsewhere
		{"an infinity for inf-inf", nan, -inf, -1e4, 1e4, -1e4, -3e4, true, [2]float64{}, false},
		{"what is masked", nan, 0.5, 0.5, 0.5, 0.5, 0.5, true, [2]float64{}, false},
		{"what depends on it", nan, 0.5, 0.5, 0.7, 0.5, 0.7, false, [2]float64{}, false},
		{"the limit beside an infinity", nan, 0, 0, 0.3, 0, 0, true, [2]float64{}, false},
		{"what is near that limit, which is told elsewhere", nan, 0.2, 0, 0.3, 0, 0, true, [2]float64{}, false},
		{"no limit beside an infinity", nan, 0.2, 0, 0.3, 0, 0.1, false, [2]float64{}, false},
		{"a limit for an infinity", inf, 0.5, 0.1, 0.2, 0.5, 0.5, false, [2]float64{}, false},
		{"a NaN that is lost", nan, 0, 0, 0.3, nan, nan, false, [2]float64{}, false},
		{"NaN for a number", 1, nan, 1, 1, 1, 1, false, [2]float64{}, false},
		{"an infinity for a number", 1, inf, 1, 1, 1, 1, false, [2]float64{}, false},
		{"the other infinity", inf, -inf, 1, 2, 1, 2, false, [2]float64{1e4, 3e4}, false},
		{"the other one of a residue of 0", inf, -inf, 1, 2, 1.5, 2.5, true, [2]float64{1, 1 + 1e-9}, false},
		{"NaN for an infinity beside zeros that pad", inf, nan, 1, 2, 1, 2, true, [2]float64{1e4, 3e4}, true},
		{"NaN for a number beside them", 1, nan, 1, 1, 1, 1, false, [2]float64{}, true},
		{"a number for an infinity beside them", inf, 3, 1e4, -1e4, 1e4, 3e4, false, [2]float64{1e4, 3e4}, true},
		{"the other infinity beside them", inf, -inf, 1, 2, 1, 2, false, [2]float64{1e4, 3e4}, true},
		{"NaN for an infinity", inf, nan, 1, 2, 1, 2, false, [2]float64{1e4, 3e4}, false},
		{"NaN for one that grows as a logarithm", inf, nan, 1, 2, 9.2, 10.3, false, [2]float64{9.2, 10.3}, false},
		{"NaN for one that a residue of 0 makes", inf, nan, 1, 2, 1.5, 2.5, true, [2]float64{1, 1 + 1e-9}, false},
		{"a number for one that a residue of 0 makes", inf, 1, 1, 2, 1.5, 2.5, false, [2]float64{1, 1 + 1e-9}, false},
		{"a number for an infinity", inf, 3, 1e4, -1e4, 1e4, 3e4, false, [2]float64{}, false},
	} {
		if got := follows(vector(c.want), vector(c.got), vector(c.a), vector(c.b), vector(c.near), vector(c.far), [2]*tensor.Tensor{vector(c.wide[0]).Convert(tensor.F64), vector(c.wide[1]).Convert(tensor.F64)}, c.undefined, false); got != c.follows {
			t.Errorf("%s: %v", c.what, got)
		}
	}
	for what, c := range map[string]struct {
		got     float64
		follows bool
	}{"NaN beside a mask that is added": {nan, true}, "an infinity beside one": {inf, false}} {
		if follows(vector(1), vector(c.got), vector(1), vector(1), vector(1), vector(1), [2]*tensor.Tensor{vector(1), vector(1)}, false, true) != c.follows {
			t.Errorf("%s: %t", what, !c.follows)
		}
	}
	for what, c := range map[string]struct {
		got   float64
		holds bool
	}{"as it": {0.5, true}, "off by a rounding": {0.5 + 0x1p-24, true}, "off by more": {0.6, false}} {
		s, r := chosenBy(t, "y = torch.div(x0, 3.0)\n", []float64{inf, 1.5, 3}, []string{"y"}, []*tensor.Tensor{vector(nan, nan, 1)}, []*tensor.Tensor{vector(inf, c.got, 1)})
		near := backend.Outcome{Status: backend.OK, Values: []backend.Value{{Tensor: vector(1e4/3., 0.5, 1)}}}
		old := near.Values[0].Tensor
		at := approached(r.ref.Values[0].Tensor, r.kernel.Values[0].Tensor, vector(1, 1, 1), vector(2, 2, 1), old, vector(1e4, 0.5, 1))
		grown := near
		grown.Values = replacedAt(near.Values, old, at)
		if holds, err := s.within(t.Context(), r, exchanged(r.program, 1e4, true, false), &near, &grown, unasked); holds != c.holds || c.holds && err != nil {
			t.Errorf("a limit, %s: %v, %v", what, holds, err)
		}
	}
	x := vector(nan, inf, -inf, 2)
	p := &program.Program{Inputs: []program.Input{{Name: "x", DType: tensor.F32, Shape: []int{4}, Fill: program.Fill{Dist: program.Literal, Data: x}}}}
	for _, c := range []struct {
		signed, masks bool
		want          []float64
	}{{false, false, []float64{9, 9, 9, 2}}, {true, false, []float64{nan, 9, -9, 2}}, {false, true, []float64{9, 9, 9, 2}}, {true, true, []float64{9 / far[0], 9, -9, 2}}} {
		q := exchanged(p, 9, c.signed, c.masks)
		got := q.Inputs[0].Materialize()
		for i, w := range c.want {
			if g := real(got.At(i)); g != float64(float32(w)) && !(math.IsNaN(g) && math.IsNaN(w)) {
				t.Errorf("%+v: element %d becomes %v", c, i, g)
			}
		}
	}
}

// TestLerpsOfEither: the reference's of this case, or the kernel's of one that was recorded.
func TestLerpsOfEither(t *testing.T) {
	none, one := observed{Operators: []string{"aten::mul"}}, observed{Operators: []string{"aten::add", "aten::lerp"}}
	for what, c := range map[string]struct {
		s    Session
		r    result
		want bool
	}{
		"none":                   {Session{outcomes: []*result{{seen: none, refSeen: one}}}, result{seen: none, refSeen: none}, false},
		"the reference's":        {Session{}, result{seen: none, refSeen: one}, true},
		"the kernel's":           {Session{}, result{seen: one, refSeen: none}, true},
		"the kernel's elsewhere": {Session{outcomes: []*result{{seen: one}}}, result{seen: none, refSeen: none}, true},
	} {
		if got := c.s.lerps(&c.r); got != c.want {
			t.Errorf("%s: %v", what, got)
		}
	}
}

// TestBoundedIsNotAsked: a difference that a kernel may have by the bounds of the reference's
// own operations asks it nothing; a larger one does.
func TestBoundedIsNotAsked(t *testing.T) {
	for off, asks := range map[float64]bool{0: false, 0x1p-20: false, 0x1p-14: true} {
		s, r := chosenBy(t, "y = torch.div(x0, 3.0)\n", []float64{3, 1.5, 6}, []string{"y"}, []*tensor.Tensor{vector(1, 0.5, 2)}, []*tensor.Tensor{vector(1+off, 0.5, 2)})
		v, err := s.judge.Unless(t.Context(), r.bounded, backend.NewJob(r.program), r.ref, r.kernel, unasked)
		if asked := err != nil; asked != asks {
			t.Errorf("off by %v: asked %v, want %v", off, asked, asks)
		}
		if err != nil {
			continue
		}
		if r.verdict = v; s.wrong(r) {
			t.Errorf("off by %v: %s", off, v.Reason)
		}
	}
}

// unasked is a reference that answers nothing.
func unasked(context.Context, []*backend.Job) ([]*backend.Outcome, error) {
	return nil, errors.New("asked")
}

// TestFailsLater: only a kernel that is right for as long as a warm-up, and wrong later, is
// asked its first call again.
func TestFailsLater(t *testing.T) {
	for pattern, want := range map[string]int{"rrrw": 3, "rrrrrwrr": 5, "rrw": -1, "wrrrr": -1, "rrrr": -1, "": -1, "rrrxw": 4} {
		s := judged(t, len(pattern))
		for i, c := range pattern {
			switch c {
			case 'w':
				s.outcomes[i].misaligned, s.outcomes[i].problems = true, []finding{{Kind: "value"}}
			case 'x': // a refusal
				s.outcomes[i].kernel.Status = backend.Raised
			}
		}
		got := slices.Index(s.outcomes, s.failsLater())
		if got != want {
			t.Errorf("%s: case %d, want %d", pattern, got, want)
		}
	}
}

// TestCheapestOfTheFirst: what is asked again is the first right call that takes least of
// Triton's interpreter, and no twin, which wants the memory of another.
func TestCheapestOfTheFirst(t *testing.T) {
	s := judged(t, 5)
	for i, work := range []int{50, 20, 5, 20, 1} {
		s.outcomes[i].work = work
	}
	s.outcomes[2].again = true
	s.outcomes[4].misaligned, s.outcomes[4].problems = true, []finding{{Kind: "value"}}
	if got := slices.Index(s.outcomes, s.cheapest()); got != 1 {
		t.Errorf("case %d, want 1", got)
	}
}

// TestMomentsAreUndefined: PyTorch's own var_mean has a mean of NaN for an infinity, where mean
// has the infinity.
func TestMomentsAreUndefined(t *testing.T) {
	for of, want := range map[string]bool{"aten::var": true, "aten::std_mean": true, "aten::native_batch_norm": true, "aten::mean": false, "aten::vdot": false} {
		if got := uses([]string{"aten::add", of}, moments...); got != want {
			t.Errorf("%s: %v", of, got)
		}
	}
}

// TestLargestTaken: where the largest of a row is taken from it, its gradient is off by the sum of
// the row's, and by no more.
func TestLargestTaken(t *testing.T) {
	const n = 4096
	want := tensor.New(tensor.F32, 2, n)
	for i := range want.Len() {
		want.Set(i, complex(1.0/n, 0))
	}
	for _, of := range []struct {
		operators []string
		off       float64
		holds     bool
	}{
		{[]string{"aten::logsumexp"}, 0x1p-22, true},
		{[]string{"aten::logsumexp"}, 0x1p-20, false},
		{[]string{"aten::sum"}, 0x1p-22, false},
	} {
		r := misalignedBy(compare.Distance, of.off/1e-7, backend.PartGrad, Usual, want, want, want)
		r.refSeen.Operators = of.operators
		if r.rounding(&r.verdict.Differences[0]) != of.holds {
			t.Errorf("%v, off by %v: want %v", of.operators, of.off, of.holds)
		}
	}
}

// TestDividesByNothing: a size of 0 that Python's numbers divide by is no limit where the reference
// has no number.
func TestDividesByNothing(t *testing.T) {
	for _, of := range []struct {
		class string
		size  int
		ref   *tensor.Tensor
		want  bool
	}{
		{"ZeroDivisionError", 0, vector(), true},
		{"ZeroDivisionError", 0, vector(nan), true},
		{"ZeroDivisionError", 0, vector(0), false},
		{"ZeroDivisionError", 1, vector(), false},
		{"RuntimeError", 0, vector(), false},
	} {
		r := misalignedBy(compare.Distance, 1, backend.PartValue, Usual, vector(1), of.ref, of.ref)
		r.kernel = &backend.Outcome{Status: backend.Raised, Class: of.class}
		r.sig, r.Sizes = &Signature{}, map[string]int{"D": of.size}
		if got := r.dividesByNothing(); got != of.want {
			t.Errorf("%v: %v", of, got)
		}
	}
}

// channelless is a call of a convolution, or another function, of an input with so many channels,
// whose result has none, and the kernel's has one.
func channelless(calls string, channels int) *result {
	r := misalignedBy(compare.Shape, inf, backend.PartValue, Usual, vector(1), vector(), vector(1))
	r.refSeen.Operators = []string{calls}
	r.program.Inputs = []program.Input{{DType: tensor.F32, Shape: []int{channels}}}
	return r
}

// attaching is a case whose result requires a gradient and the reference's does not, with a
// tensor that requires one beside another.
func attaching(another, detached bool, more ...verdict.Difference) *result {
	in := func(requires bool) program.Input {
		return program.Input{DType: tensor.F32, Shape: []int{1}, RequiresGrad: requires}
	}
	r := misalignedBy(compare.Rule(verdict.RequiresGrad), inf, backend.PartValue, Usual, vector(1), vector(1), vector(1))
	r.verdict.Differences = append(r.verdict.Differences, more...)
	r.program.Inputs = []program.Input{in(another), in(true)}
	r.ref.Values[0].RequiresGrad = detached
	return r
}
