package kernel

import (
	"math"
	"math/big"
	"sync"
)

// twoOverPi is 2/π to 1280 bits: the 1024 of the largest exponent, 53 of the
// argument, some 62 that cancel at worst, and 64 more.
var twoOverPi = sync.OnceValue(func() *big.Float {
	const digits = "0x0." +
		"a2f9836e4e441529fc2757d1f534ddc0db6295993c439041fe5163abdebbc561b7246e3a424dd2e0" +
		"06492eea09d1921cfe1deb1cb129a73ee88235f52ebb4484e99c7026b45f7e413991d639835339f4" +
		"9c845f8bbdf9283b1ff897ffde05980fef2f118b5a0a6d1f6d367ecf27cb09b74f463f669e5fea2d" +
		"7527bac7ebe5f17b3d0739f78a5292ea6bfb5fb11f8d5d0856033046fc7b6babf0cfbc209af4361d"
	v, _, err := big.ParseFloat(digits, 0, 1280, big.ToNearestEven)
	if err != nil {
		panic("kernel: " + err.Error())
	}
	return v
})

// reduce returns r in [-π/4, π/4] and the quadrant q modulo 4, where
// x = r + q·π/2 plus full turns.
func reduce(x float64) (r float64, q int) {
	turns := new(big.Float).SetPrec(1400).SetFloat64(x)
	turns.Mul(turns, twoOverPi())
	whole, _ := new(big.Float).Add(turns, big.NewFloat(math.Copysign(0.5, x))).Int(nil)
	rest, _ := turns.Sub(turns, new(big.Float).SetInt(whole)).Float64()
	return rest * (math.Pi / 2), int(whole.And(whole, big.NewInt(3)).Int64())
}

// near0 reports whether the math package may have lost bits of y, its result
// at x: its reduction knows too few bits of π for results near 0, and fewer
// yet for the arguments that it reduces by a table.
func near0(x, y float64) bool {
	limit := 0x1p-8
	if math.Abs(x) > 1<<28 {
		limit = 0.25
	}
	return math.Abs(x) > 1 && math.Abs(y) < limit
}

// Sin returns the sine of x.
func Sin(x float64) float64 {
	y := math.Sin(x)
	if near0(x, y) {
		return turned(reduce(x))
	}
	return y
}

// Cos returns the cosine of x.
func Cos(x float64) float64 {
	y := math.Cos(x)
	if near0(x, y) {
		r, q := reduce(x)
		return turned(r, q+1)
	}
	return y
}

// turned returns sin(r + q·π/2).
func turned(r float64, q int) float64 {
	y := math.Sin(r)
	if q&1 != 0 {
		y = math.Cos(r)
	}
	if q&2 != 0 {
		return -y
	}
	return y
}

// Tan returns the tangent of x.
func Tan(x float64) float64 {
	if math.Abs(x) < 0x1p-13 {
		return x + x*x*x/3
	}
	y := math.Tan(x)
	if !near0(x, y) && !near0(x, 1/y) {
		return y
	}
	r, q := reduce(x)
	if q&1 != 0 {
		return -1 / math.Tan(r)
	}
	return math.Tan(r)
}

// Sinh returns the hyperbolic sine of x. Where e^x overflows although the
// result does not, it is the square of e^(x/2).
func Sinh(x float64) float64 {
	if math.Abs(x) < 700 {
		return math.Sinh(x)
	}
	return math.Copysign(Cosh(x), x)
}

// Cosh returns the hyperbolic cosine of x.
func Cosh(x float64) float64 {
	if math.Abs(x) < 700 || x != x {
		return math.Cosh(x)
	}
	e := math.Exp(math.Abs(x) / 2)
	return e / 2 * e
}

// Expm1 returns e^x - 1, to the largest finite result.
func Expm1(x float64) float64 {
	if x < 700 || x != x {
		return math.Expm1(x)
	}
	e := math.Exp(x / 2)
	return e * e
}
