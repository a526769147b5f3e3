// Package truth computes scalar functions correctly rounded: to any precision
// that rounding asks for, and then once. It is the judge of kernels and
// references where a float64 reference is not certain enough.
//
// A function is evaluated in ball arithmetic, which carries a bound of every
// error that it makes, at 128 bits; when the bound leaves the rounded result
// open, at twice as many, and so on (Ziv, "Fast evaluation of elementary
// mathematical functions with correctly rounded last bit", ACM TOMS 17, 1991).
// Results that are exact or halfway between two numbers come out of the
// arithmetic without error, so that the search ends.
package truth

import (
	"fmt"
	"math"
	"math/big"
	"slices"

	"plumb/tensor"
)

// Func is a function of real numbers.
type Func struct {
	arity int
	// special returns the result where it does not follow from eval.
	special func(x []float64) (float64, bool)
	eval    func(p bits, x []ball) ball
}

// Arity returns the number of arguments.
func (f Func) Arity() int { return f.arity }

// firstBits is the precision of the first evaluation; lastBits is never needed.
const (
	firstBits = 128
	lastBits  = 1 << 16
)

// Fixed returns f with argument i fixed at v.
func (f Func) Fixed(i int, v float64) Func {
	g := f
	g.arity--
	g.special = func(x []float64) (float64, bool) { return f.special(slices.Insert(slices.Clone(x), i, v)) }
	fixed := number(v)
	g.eval = func(p bits, x []ball) ball { return f.eval(p, slices.Insert(slices.Clone(x), i, fixed)) }
	return g
}

// Round returns f of the arguments rounded to the nearest number of dtype d,
// ties to even, subnormal numbers, overflow and underflow included. The
// arguments are exact; d is a real floating-point dtype.
//
// NaN, infinities and signed zeros are treated as IEEE 754-2019 §9.2.1 and
// Annex F of ISO C99 say. Functions that are not there have the value of their
// formula in IEEE arithmetic: gelu(-Inf) = -Inf·0 is NaN.
func (f Func) Round(d tensor.DType, args ...float64) float64 {
	form := formatOf(d)
	if y, ok := f.known(args); ok {
		return form.round64(y)
	}
	var y float64
	f.refine(args, func(_ bits, b ball) bool {
		y = form.round(b.low())
		return b.exact() || same(y, form.round(b.high()))
	})
	return y
}

// ULP returns the distance of got from f of the arguments in units in the last
// place of dtype d, with its fraction: 0.5 at most for what Round returns.
//
// The unit is that of OpenCL C 3.0 §7.4 (Muller): at a real number between two
// neighbours of the dtype's grid their distance, and at one of the grid the
// distance to the nearer neighbour; the smallest subnormal number below the
// normal ones. An infinite got stands for the power of two above the largest
// number where the truth is within a factor of two of it, as in the OpenCL
// conformance tests. The distance is +Inf where one of got and the truth is
// NaN, or infinite, and the other is not, and 0 between two NaN. The sign of
// zero does not count.
func (f Func) ULP(d tensor.DType, got float64, args ...float64) float64 {
	form := formatOf(d)
	truth, ok := f.known(args)
	switch {
	case ok && math.IsInf(truth, 0) || ok && math.IsNaN(truth) || math.IsNaN(got):
		if same(truth, got) && ok {
			return 0
		}
		return math.Inf(1)
	case ok:
		return form.distance(got, number(truth))
	}
	var result float64
	f.refine(args, func(p bits, b ball) bool {
		result = form.distance(got, b)
		unit := form.ulp(b.mid)
		clear := result < 0x1p-32 || p >= 4096 || unit == form.ulp(b.low()) && unit == form.ulp(b.high())
		return b.exact() || form.isBeyond(b) || clear && b.err < unit-32
	})
	return result
}

// known returns the result where no evaluation is needed.
func (f Func) known(args []float64) (float64, bool) {
	if len(args) != f.arity {
		panic(fmt.Sprintf("truth: %d arguments for a function of %d", len(args), f.arity))
	}
	return f.special(args)
}

// refine evaluates at growing precision until done.
func (f Func) refine(args []float64, done func(p bits, b ball) bool) {
	x := balls(args)
	for p := bits(firstBits); p <= lastBits; p *= 2 {
		if b := f.eval(p, x); !b.lost() && done(p, b) {
			return
		}
	}
	panic(fmt.Sprintf("truth: a function of %v is not settled by %d bits", args, lastBits))
}

func balls(xs []float64) []ball {
	bs := make([]ball, len(xs))
	for i, x := range xs {
		bs[i] = number(x)
	}
	return bs
}

// low and high are the ends of the ball.
func (b ball) low() *big.Float  { return b.end(-1) }
func (b ball) high() *big.Float { return b.end(1) }

func (b ball) end(sign int) *big.Float {
	if b.exact() {
		return b.mid
	}
	radius := power2(b.err)
	if sign < 0 {
		radius = radius.neg()
	}
	return plus(exactly(b.mid), radius).mid
}

// same reports equal bits, all NaN being the same.
func same(a, b float64) bool {
	return math.Float64bits(a) == math.Float64bits(b) || math.IsNaN(a) && math.IsNaN(b)
}

func (f format) round64(x float64) float64 {
	if math.IsNaN(x) {
		return x
	}
	return f.round(new(big.Float).SetFloat64(x))
}

// isBeyond reports that the truth is more than twice the power of two above
// the largest number.
func (f format) isBeyond(truth ball) bool { return truth.size() > f.maxExp+2 }

// distance returns |got - truth| in units in the last place at the truth.
func (f format) distance(got float64, truth ball) float64 {
	g := number(got)
	switch {
	case math.IsInf(got, 0) && same(f.round(truth.mid), got):
		return 0
	case f.isBeyond(truth):
		return math.Inf(1)
	case math.IsInf(got, 0) && (truth.size() < f.maxExp+1 || truth.mid.Signbit() != math.Signbit(got)):
		return math.Inf(1)
	case math.IsInf(got, 0):
		g = power2(f.maxExp + 1).withSign(g)
	}
	d := plus(g, truth.neg()).abs()
	return d.scale(-f.ulp(truth.mid)).float()
}
