package truth

import (
	"fmt"
	"math"
	"math/big"

	"plumb/tensor"
)

// format is a binary floating-point format: its normal numbers are
// ±1.f × 2^e, with digits-1 bits in f and minExp ≤ e ≤ maxExp.
type format struct{ digits, minExp, maxExp int }

func formatOf(d tensor.DType) format {
	switch d {
	case tensor.F16:
		return format{11, -14, 15}
	case tensor.BF16:
		return format{8, -126, 127}
	case tensor.F32:
		return format{24, -126, 127}
	case tensor.F64:
		return format{53, -1022, 1023}
	}
	panic(fmt.Sprintf("truth: %s is no real floating-point dtype", d))
}

// quantum returns the exponent of the spacing of the format at numbers of size
// n: in [2^(n-1), 2^n).
func (f format) quantum(n int) int { return max(n-1, f.minExp) - f.digits + 1 }

// round returns the number of the format nearest to x, ties to even, in one step.
func (f format) round(x *big.Float) float64 {
	if x.Sign() == 0 || x.IsInf() {
		y, _ := x.Float64()
		return y
	}
	sign := 1.0
	if x.Signbit() {
		sign = -1
	}
	e := x.MantExp(nil)
	q := f.quantum(e)
	switch {
	case e < q:
		return math.Copysign(0, sign)
	case e == q:
		if half := new(big.Float).SetMantExp(big.NewFloat(sign), q-1); x.Cmp(half) == 0 {
			return math.Copysign(0, sign)
		}
		return math.Ldexp(sign, q)
	}
	y := new(big.Float).SetPrec(uint(e - q)).Set(x)
	if y.MantExp(nil) > f.maxExp+1 {
		return math.Inf(int(sign))
	}
	z, _ := y.Float64()
	return z
}

// ulp returns the exponent of the unit in the last place at x: the distance of
// the two numbers of the format around x, or where x is one of them that to
// its nearest neighbour. Beyond the largest number it does not grow.
func (f format) ulp(x *big.Float) int {
	if x.Sign() == 0 {
		return f.quantum(f.minExp)
	}
	n := x.MantExp(nil)
	if isPower2(x) {
		n--
	}
	return f.quantum(min(n, f.maxExp+1))
}

func isPower2(x *big.Float) bool { return x.MinPrec() == 1 }
