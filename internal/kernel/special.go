package kernel

import (
	"math"
	"math/cmplx"
)

// Lgamma returns log|Γ(x)|. math.Lgamma is off by hundreds of units in the
// last place near its zeros.
func Lgamma(x float64) float64 {
	switch {
	case math.IsInf(x, 0) || x <= 0 && x == math.Floor(x):
		return math.Inf(1)
	case x > 0:
		return lgammaPositive(x)
	}
	r := math.Abs(math.Sin(math.Pi * (x - math.Round(x))))
	return math.Log(math.Pi/(r*-x)) - lgammaPositive(-x)
}

// lgammaPositive brings x near 2 by Γ(x+1) = x·Γ(x), or takes Stirling's series.
func lgammaPositive(x float64) float64 {
	switch {
	case x >= 10:
		z := 1 / (x * x)
		p := polynomial(z, 1.0/12, -1.0/360, 1.0/1260, -1.0/1680, 1.0/1188, -691.0/360360, 1.0/156)
		return (x-0.5)*(math.Log(x)-1) + (0.5*(logTwoPi-1) + p/x)
	case x < 0.5:
		return lgammaNearTwo(x) - math.Log1p(x) - math.Log(x)
	case x < 1.5:
		return lgammaNearTwo(x-1) - math.Log1p(x-1)
	case x <= 2.5:
		return lgammaNearTwo(x - 2)
	}
	product := 1.0
	for x > 2.5 {
		x--
		product *= x
	}
	return math.Log(product) + lgammaNearTwo(x-2)
}

const logTwoPi = 1.8378770664093454835606594728112353

// lgammaNearTwo returns log Γ(2 + z) for |z| ≤ 1/2.
func lgammaNearTwo(z float64) float64 { return z * polynomial(z, lgammaTerms[:]...) }

// lgammaTerms are 1 - γ, then (-1)^k·(ζ(k) - 1)/k for k = 2, 3, …: the Taylor
// series of log Γ at 2.
var lgammaTerms = [...]float64{
	0.42278433509846713, 0.3224670334241132, -0.0673523010531981, 0.020580808427784546, -0.007385551028673986,
	0.0028905103307415234, -0.001192753911703261, 0.0005096695247430425, -0.00022315475845357939,
	9.945751278180853e-05, -4.492623673813314e-05, 2.050721277567069e-05, -9.439488275268397e-06,
	4.374866789907488e-06, -2.039215753801366e-06, 9.55141213040742e-07, -4.492469198764566e-07,
	2.1207184805554665e-07, -1.0043224823968099e-07, 4.7698101693639804e-08, -2.2711094608943164e-08,
	1.0838659214896955e-08, -5.183475041970047e-09, 2.4836745438024785e-09, -1.1921401405860912e-09,
	5.731367241678862e-10, -2.7595228851242334e-10, 1.330476437424449e-10, -6.4229645638381e-11,
	3.1044247747322276e-11,
}

// Digamma returns the logarithmic derivative of Γ: -∞ at 0, ∞ at -0, NaN at
// negative integers.
func Digamma(x float64) float64 {
	switch {
	case x == 0:
		return math.Copysign(math.Inf(1), -x)
	case math.IsInf(x, -1) || x < 0 && x == math.Floor(x):
		return math.NaN()
	case x < 0:
		return digammaPositive(1-x) - math.Pi*cotPi(x-math.Trunc(x))
	}
	return digammaPositive(x)
}

// cotPi returns cot πr for 0 < |r| < 1, exactly 0 for 1/2.
func cotPi(r float64) float64 {
	if math.Abs(r) <= 0.25 {
		return 1 / math.Tan(math.Pi*r)
	}
	y := math.Tan(math.Pi * (0.5 - math.Abs(r)))
	if r < 0 {
		return -y
	}
	return y
}

func digammaPositive(x float64) float64 {
	if x >= 10 {
		return digammaLarge(x)
	}
	sum := 0.0
	for x > 2 {
		x--
		sum += 1 / x
	}
	for x < 1 {
		sum -= 1 / x
		x++
	}
	return sum + digammaNearRoot(x)
}

// digammaLarge is the asymptotic series with Bernoulli numbers.
func digammaLarge(x float64) float64 {
	z := 1 / (x * x)
	p := polynomial(z, 1.0/12, -1.0/120, 1.0/252, -1.0/240, 1.0/132, -691.0/32760, 1.0/12)
	return math.Log(x) - 0.5/x - z*p
}

// digammaNearRoot is a rational approximation on [1, 2] that keeps its digits
// at the root, 1.4616…, which is given in three parts (Boost.Math, digamma_imp_1_2).
func digammaNearRoot(x float64) float64 {
	const (
		root1 = 1569415565.0 / 1073741824
		root2 = 381566830.0 / 1073741824 / 1073741824
		root3 = 0.9016312093258695918615325266959189453125e-19
		y     = 0.99558162689208984
	)
	g := x - root1 - root2 - root3
	p := polynomial(x-1, 0.25479851061131551, -0.32555031186804491, -0.65031853770896507,
		-0.28919126444774784, -0.045251321448739056, -0.0020713321167745952)
	q := polynomial(x-1, 1, 2.0767117023730469, 1.4606242909763515, 0.43593529692665969,
		0.054151797245674225, 0.0021284987017821144, -0.55789841321675513e-6)
	return g*y + g*(p/q)
}

// polynomial returns Σ cᵢ·xⁱ.
func polynomial(x float64, c ...float64) float64 {
	sum := 0.0
	for i := len(c) - 1; i >= 0; i-- {
		sum = sum*x + c[i]
	}
	return sum
}

// zetaTerms are (2k)! / B₂ₖ of the Euler-Maclaurin formula.
var zetaTerms = [...]float64{
	12, -720, 30240, -1209600, 47900160, -1.8924375803183791606e9, 7.47242496e10, -2.950130727918164224e12,
	1.1646782814350067249e14, -4.5979787224074726105e15, 1.8152105401943546773e17, -7.1661652561756670113e18,
}

// Zeta returns Hurwitz's zeta function Σ (k + q)^-x for x > 1, by Cephes'
// method: ten terms, then the Euler-Maclaurin formula.
func Zeta(x, q float64) float64 {
	switch {
	case x == 1:
		return math.Inf(1)
	case x < 1 || math.IsNaN(q):
		return math.NaN()
	case q <= 0 && q == math.Floor(q):
		return math.Inf(1)
	case math.IsNaN(x) || q <= 0 && x != math.Floor(x):
		return math.NaN()
	}
	s := Power(q, -x)
	a, b := q, 0.0
	for i := 0; i < 9 || a <= 9; i++ {
		a++
		b = Power(a, -x)
		s += b
		if math.Abs(b) < epsilon64*math.Abs(s) {
			return s
		}
	}
	s += b * a / (x - 1)
	s -= 0.5 * b
	w, f, k := a, 1.0, 0.0
	for _, c := range zetaTerms {
		f *= x + k
		b /= w
		t := f * b / c
		s += t
		if math.Abs(t) < epsilon64*math.Abs(s) {
			return s
		}
		k++
		f *= x + k
		b /= w
		k++
	}
	return s
}

const epsilon64 = 0x1p-53

// Polygamma returns the n-th derivative of Digamma.
func Polygamma(n int) func(x float64) float64 {
	switch n {
	case 0:
		return Digamma
	case 1:
		return trigamma
	}
	factor := math.Gamma(float64(n + 1))
	if n%2 == 0 {
		factor = -factor
	}
	return func(x float64) float64 { return factor * Zeta(float64(n+1), x) }
}

// trigamma reflects negative numbers.
func trigamma(x float64) float64 {
	if x < 0 && x != math.Floor(x) {
		s := math.Sin(math.Pi * (x - math.Trunc(x)))
		return math.Pi*math.Pi/(s*s) - Zeta(2, 1-x)
	}
	return Zeta(2, x)
}

// BesselI0 returns the modified Bessel function of order 0.
func BesselI0(x float64) float64 {
	x = math.Abs(x)
	if x < 30 {
		return besselSeries(x, 0)
	}
	return expBy(x, besselLarge(x, 0))
}

// BesselI0e returns e^-|x|·BesselI0(x).
func BesselI0e(x float64) float64 {
	x = math.Abs(x)
	if x < 30 {
		return math.Exp(-x) * besselSeries(x, 0)
	}
	return besselLarge(x, 0)
}

// BesselI1 returns the modified Bessel function of order 1.
func BesselI1(x float64) float64 {
	y := math.Abs(x)
	if y < 30 {
		return x / 2 * besselSeries(x, 1)
	}
	return math.Copysign(expBy(y, besselLarge(y, 1)), x)
}

// BesselI1e returns e^-|x|·BesselI1(x).
func BesselI1e(x float64) float64 {
	y := math.Abs(x)
	if y < 30 {
		return math.Exp(-y) * (x / 2 * besselSeries(x, 1))
	}
	return math.Copysign(besselLarge(y, 1), x)
}

// besselSeries is Σ (x²/4)^k / (k!·(k + order)!), whose terms are positive.
func besselSeries(x, order float64) float64 {
	q := x * x / 4
	sum, term := 1.0, 1.0
	for k := 1.0; term > sum*epsilon64/4; k++ {
		term *= q / (k * (k + order))
		sum += term
	}
	return sum
}

// besselLarge is the asymptotic series of e^-x·I(x) for x ≥ 30.
func besselLarge(x, order float64) float64 {
	mu := 4 * order * order
	sum, term := 1.0, 1.0
	for k := 1.0; k < 40 && math.Abs(term) > sum*epsilon64/4; k++ {
		odd := 2*k - 1
		term *= -(mu - odd*odd) / (8 * x * k)
		sum += term
	}
	return sum / math.Sqrt(2*math.Pi*x)
}

// expBy returns e^x·y without an intermediate overflow.
func expBy(x, y float64) float64 {
	half := math.Exp(x / 2)
	return half * y * half
}

// Sinc returns sin πx / πx, and 1 for 0.
func Sinc(x float64) float64 {
	if x == 0 {
		return 1
	}
	return math.Sin(math.Pi*x) / (math.Pi * x)
}

// SincComplex is Sinc of a complex number.
func SincComplex(z complex128) complex128 {
	if z == 0 {
		return 1
	}
	return divComplex(cmplx.Sin(math.Pi*z), math.Pi*z)
}

// Logit returns log(x / (1 - x)).
func Logit(x float64) float64 {
	if x > 0.25 && x < 0.75 {
		return 2 * math.Atanh(2*x-1)
	}
	return math.Log(x / (1 - x))
}

// Entr returns -x·log x, 0 for 0 and -∞ for negative x.
func Entr(x float64) float64 {
	switch {
	case x == 0:
		return 0
	case x < 0:
		return math.Inf(-1)
	}
	return -x * Log(x)
}

// Ndtr returns the normal distribution function, erfc(-x/√2) / 2. The rounding
// of the quotient, which the tail would magnify, is made up for by the slope.
func Ndtr(x float64) float64 {
	const c, rest = 0.70710678118654757, -4.833646656726457e-17 // 1/√2 in two parts
	z := -x * c
	if math.Abs(z) > 30 {
		return 0.5 * math.Erfc(z)
	}
	lost := math.FMA(-x, c, -z) - x*rest
	return 0.5 * (math.Erfc(z) - lost*math.Exp(-z*z)*(2/math.SqrtPi))
}
