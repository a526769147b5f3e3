package truth

import "math"

// The functions of this file have the values at zeros, infinities and NaN, and
// NaN where there is none. Elsewhere they may have any number.

const seluLimit = 1.0507009873554804934193349852946 * 1.6732632423543772848170429916717

// powLimit follows Annex F of ISO C99.
func powLimit(x, y float64) float64 {
	switch {
	case y == 0 || x == 1:
		return 1
	case math.IsNaN(x) || math.IsNaN(y):
		return ieeeNaN
	case math.IsInf(y, 0):
		return infinitePower(math.Abs(x), y > 0)
	case x == 0 || math.IsInf(x, 0):
		size := 0.0
		if (x == 0) != (y > 0) {
			size = inf
		}
		if isOdd(y) {
			return withSignOf(size, x)
		}
		return size
	case x < 0 && !number(y).mid.IsInt():
		return ieeeNaN
	}
	return x
}

// infinitePower returns size to the power of ±Inf.
func infinitePower(size float64, grows bool) float64 {
	switch {
	case size == 1:
		return 1
	case (size > 1) == grows:
		return inf
	}
	return 0
}

func isOdd(y float64) bool {
	mid := number(y).mid
	return mid.IsInt() && mid.Sign() != 0 && int(mid.MinPrec()) == mid.MantExp(nil)
}

// atan2Limit follows Annex F of ISO C99.
func atan2Limit(y, x float64) float64 {
	switch {
	case math.IsNaN(x) || math.IsNaN(y):
		return ieeeNaN
	case y == 0 || math.IsInf(x, 0) && !math.IsInf(y, 0):
		if math.Signbit(x) {
			return withSignOf(math.Pi, y)
		}
		return withSignOf(0, y)
	case !math.IsInf(x, 0):
		return withSignOf(halfPi, y)
	case x > 0:
		return withSignOf(math.Pi/4, y)
	}
	return withSignOf(3*math.Pi/4, y)
}

func hypotLimit(x, y float64) float64 {
	if math.IsInf(x, 0) || math.IsInf(y, 0) {
		return inf
	}
	return x + y
}

// largerLimit is that of functions which approach the larger argument.
func largerLimit(x, y float64) float64 {
	if math.IsInf(x, 0) || math.IsInf(y, 0) {
		return max(x, y)
	}
	return x + y
}

func xlogyLimit(x, y float64) float64 {
	if x == 0 && !math.IsNaN(y) {
		return 0
	}
	return x * logLimit(y, 1)
}

func xlog1pyLimit(args []float64) (float64, bool) {
	x, y := args[0], args[1]
	switch {
	case x == 0 && !math.IsNaN(y):
		return 0, true
	case y == 0:
		return x * y, true
	}
	z := x * logLimit(y, 0)
	return z, !allFinite(args) || y <= -1
}

// logLimit has the sign of a logarithm that is zero at root, its pole one
// below it, and its values at both ends.
func logLimit(x, root float64) float64 {
	switch {
	case x < root-1:
		return ieeeNaN
	case x == root-1:
		return -inf
	case x < root:
		return -1
	case x == root:
		return 0
	}
	return x
}

// logitWithinLimit limits x in float64 to find where there is no evaluation.
func logitWithinLimit(args []float64) (float64, bool) {
	x, eps := args[0], args[1]
	y := x
	switch {
	case x < eps:
		y = eps
	case x > 1-eps:
		y = 1 - eps
	}
	switch {
	case math.IsNaN(x) || math.IsNaN(eps) || y < 0 || y > 1:
		return ieeeNaN, true
	case y == 0:
		return -inf, true
	case y == 1 && (eps <= 0 || eps >= 1): // else 1-eps is below 1
		return inf, true
	}
	return y, false
}

func leakyReluLimit(x, slope float64) float64 {
	if x > 0 {
		return x
	}
	return x * slope
}

func eluLimit(x, alpha float64) float64 {
	if x >= 0 {
		return x
	}
	return alpha * expm1Limit(x)
}

func celuLimit(x, alpha float64) float64 {
	if x >= 0 {
		return x
	}
	return alpha * expm1Limit(x/alpha)
}

func expm1Limit(x float64) float64 {
	if x < 0 {
		return -1
	}
	return x
}

// softplusLimit is for log(1 + e^(beta·x))/beta, which PyTorch makes x where
// beta·x > threshold.
func softplusLimit(args []float64) (float64, bool) {
	x, beta, threshold := args[0], args[1], args[2]
	open := isFinite(x) && !isSpecial(beta)
	switch t := x * beta; {
	case t > threshold:
		return x, !open
	case math.IsInf(t, -1):
		return 0 / beta, !open
	case t == 0:
		return math.Ln2 / beta, !open
	default:
		return t / beta, !open
	}
}

func softshrinkLimit(x, lambda float64) float64 {
	switch {
	case x > lambda:
		return x - lambda
	case x < -lambda:
		return x + lambda
	}
	return 0
}

// product returns the product of zeros, infinities and NaN, and of other numbers
// one of the same sign: theirs does not overflow.
func product(xs ...float64) float64 {
	z := 1.0
	for _, x := range xs {
		if isSpecial(x) {
			z *= x
		} else {
			z = withSignOf(1, x) * z
		}
	}
	return z
}

func addLimit(x []float64) (float64, bool) {
	return x[0] + product(x[1], x[2]), isSpecial(x[1]) || isSpecial(x[2]) || !isFinite(x[0])
}

func subLimit(x []float64) (float64, bool) { return addLimit([]float64{x[0], -x[1], x[2]}) }

func rsubLimit(x []float64) (float64, bool) { return addLimit([]float64{x[1], -x[0], x[2]}) }

func ldexpLimit(x, y float64) float64 {
	switch {
	case y == inf:
		return x * inf
	case y == -inf:
		return x * 0
	case math.IsNaN(y):
		return y
	}
	return x
}

func addcmulLimit(x []float64) (float64, bool) { return x[0] + product(x[1:]...), !allFinite(x) }

func addcdivLimit(x []float64) (float64, bool) {
	return x[0] + product(x[3], x[1])/x[2], !allFinite(x) || x[2] == 0
}

func lerpLimit(x []float64) (float64, bool) {
	return x[0] + x[2]*(x[1]-x[0]), !allFinite(x)
}

func fmodLimit(x, y float64) float64 {
	if math.IsNaN(y) || math.IsInf(x, 0) || y == 0 {
		return ieeeNaN
	}
	return x
}

func remainderLimit(x, y float64) float64 {
	r := fmodLimit(x, y)
	if math.IsInf(y, 0) && (r < 0 && y > 0 || r > 0 && y < 0) {
		return y
	}
	return r
}
