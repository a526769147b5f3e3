package main

import (
	"math"
	"strings"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// Coefficients of interpolations at Chebyshev nodes, lowest first.
var (
	// (e^t - 1) / t for |t| ≤ ln 2 / 2, within a relative 2.7e-10.
	expTerms = []float64{1, 0.5000000047146074, 0.16666666719028586, 0.04166635277105987, 0.008333298469742999, 0.001394111889950734, 0.00019899285628730234}
	// 2·atanh(√z) / √z for √z ≤ (√2 - 1) / (√2 + 1), within 4.3e-12.
	logTerms = []float64{2.000000000008363, 0.6666666524694825, 0.4000038478496916, 0.2853504383307004, 0.23616499700038662}
	// erf(√z) / √z for z ≤ 1/2, within 1.2e-11.
	erfTerms = []float64{1.1283791670837557, -0.37612638672628945, 0.11283784271519315, -0.026865277508325167, 0.0052188212040906595, -0.0008394229795570038, 9.72552308147507e-05}
	// e^(y²/2)·erfc(y/√2)/2 in t = (y - 3.5) / (y + 3.5) for 0 ≤ y ≤ 14.5, within 1.3e-10.
	tailTerms = []float64{0.10634515363392483, -0.18713969865223126, 0.12585525502354164, -0.06163942018250091, 0.019065539800930863, -0.0015615770214025776, -0.001380764161274003, 0.0003915311227946389, 0.0001315407633741634, -5.714372916291379e-05, -1.9637817483058004e-05, 6.289192426742556e-06, 2.893498272185088e-06}
)

const (
	tailCentre = 3.5
	tailEnd    = 14.5 // beyond it, y·erfc(y/√2)/2 rounds to zero in float32
	magic      = 3 << 51
	signBit    = 1 << 63
)

const (
	equal     = 0x00
	unordered = 0x03
	less      = 0x11
	notAtMost = 0x16 // or unordered
	notBelow  = 0x15 // or unordered
	notGE     = 0x19 // or unordered
	greater   = 0x1e
)

var globals = map[uint64]Mem{}

// bits64 is a constant in all lanes.
func bits64(bits uint64) Mem {
	m, ok := globals[bits]
	if !ok {
		m = GLOBL("lanes_"+hex(bits), RODATA|NOPTR)
		for i := range 4 {
			DATA(8*i, U64(bits))
		}
		globals[bits] = m
	}
	return m
}

func hex(bits uint64) string {
	var s strings.Builder
	for shift := 60; shift >= 0; shift -= 4 {
		s.WriteByte("0123456789abcdef"[bits>>shift&15])
	}
	return s.String()
}

func all(v float64) Mem { return bits64(math.Float64bits(v)) }

var maskTable *Mem

// masks are eight lanes of ones, then eight of zeros.
func masks() Mem {
	if maskTable == nil {
		m := GLOBL("masks", RODATA|NOPTR)
		for i := range 16 {
			v := uint32(math.MaxUint32)
			if i >= 8 {
				v = 0
			}
			DATA(4*i, U32(v))
		}
		maskTable = &m
	}
	return *maskTable
}

func constant(v float64) VecVirtual {
	x := YMM()
	VMOVUPD(all(v), x)
	return x
}

func copyOf(x VecVirtual) VecVirtual {
	y := YMM()
	VMOVAPD(x, y)
	return y
}

// clamp brings x into [-limit, limit]; NaN stays.
func clamp(x VecVirtual, limit float64) VecVirtual {
	VMINPD(x, constant(limit), x)
	VMAXPD(x, constant(-limit), x)
	return x
}

// polynomial returns Σ terms[i]·x^i.
func polynomial(x VecVirtual, terms []float64) VecVirtual {
	last := len(terms) - 1
	p := constant(terms[last])
	for i := last - 1; i >= 0; i-- {
		VFMADD213PD(all(terms[i]), x, p)
	}
	return p
}

// reduced returns t and 2^n, n as an exponent in the upper bits, such that x = n·ln 2 + t.
func reduced(x VecVirtual) (t, n VecVirtual) {
	n = constant(magic)
	VFMADD231PD(all(math.Log2E), x, n)
	whole := YMM()
	VSUBPD(all(magic), n, whole)
	VFNMADD231PD(all(math.Ln2), whole, x)
	VPSLLQ(Imm(52), n, n)
	return x, n
}

// exp returns e^x for |x| ≤ 700 and destroys x.
func exp(x VecVirtual) VecVirtual {
	t, n := reduced(x)
	p := polynomial(t, append([]float64{1}, expTerms...))
	VPADDQ(n, p, p)
	return p
}

// expMinus1 returns e^x - 1 for |x| ≤ 700 and destroys x.
func expMinus1(x VecVirtual) VecVirtual {
	t, n := reduced(x)
	p := polynomial(t, expTerms)
	VMULPD(t, p, p)
	VPADDQ(all(1), n, n)
	less1 := YMM()
	VSUBPD(all(1), n, less1)
	VFMADD231PD(n, p, less1)
	return less1
}

func negated(x VecVirtual) VecVirtual {
	y := YMM()
	VXORPD(bits64(signBit), x, y)
	return y
}

func absolute(x VecVirtual) VecVirtual {
	y := YMM()
	VANDPD(bits64(signBit-1), x, y)
	return y
}

// signed gives y, zero or more, the sign of x.
func signed(y, x VecVirtual) VecVirtual {
	sign := YMM()
	VANDPD(bits64(signBit), x, sign)
	VORPD(sign, y, y)
	return y
}

func sigmoid(x VecVirtual) VecVirtual {
	e := exp(clamp(negated(x), 700))
	VADDPD(all(1), e, e)
	y := constant(1)
	VDIVPD(e, y, y)
	return y
}

// tanh is m / (m + 2) with m = e^2x - 1.
func tanh(x VecVirtual) VecVirtual {
	twice := absolute(x)
	VADDPD(twice, twice, twice)
	m := expMinus1(clamp(twice, 60))
	divisor := YMM()
	VADDPD(all(2), m, divisor)
	VDIVPD(divisor, m, m)
	return signed(m, x)
}

// tail returns erfc(y/√2)/2 for 0 ≤ y ≤ 14.5.
func tail(y VecVirtual) VecVirtual {
	above, t := YMM(), YMM()
	VADDPD(all(tailCentre), y, above)
	VSUBPD(all(tailCentre), y, t)
	VDIVPD(above, t, t)
	p := polynomial(t, tailTerms)
	square := YMM()
	VMULPD(y, y, square)
	VMULPD(all(-0.5), square, square)
	VMULPD(exp(square), p, p)
	return p
}

func erf(x VecVirtual) VecVirtual {
	size := absolute(x)
	z := YMM()
	VMULPD(size, size, z)
	near := polynomial(z, erfTerms)
	VMULPD(size, near, near)
	far := YMM()
	VMULPD(all(math.Sqrt2), size, far)
	VMINPD(far, constant(tailEnd), far)
	far = tail(far)
	VADDPD(far, far, far)
	one := constant(1)
	VSUBPD(far, one, far)
	VCMPPD(Imm(greater), all(0.5), z, z)
	VBLENDVPD(z, far, near, near)
	return signed(near, x)
}

// gelu is max(x, 0) - y·Φ(-y) with y = min(|x|, 14.5), and NaN for -∞ like
// its formula.
func gelu(x VecVirtual) VecVirtual {
	y := absolute(x)
	VMINPD(y, constant(tailEnd), y)
	q := tail(y)
	positive, lost := YMM(), YMM()
	VXORPD(positive, positive, positive)
	VMAXPD(x, positive, positive)
	VFNMADD231PD(q, y, positive)
	VCMPPD(Imm(equal), all(math.Inf(-1)), x, lost)
	VORPD(lost, positive, positive)
	return positive
}

func geluTanh(x VecVirtual) VecVirtual {
	u := YMM()
	VMULPD(x, x, u)
	VMULPD(all(0.044715), u, u)
	VFMADD213PD(x, x, u)
	VMULPD(all(-2*math.Sqrt2/math.SqrtPi), u, u)
	over := YMM()
	VCMPPD(Imm(greater), all(700), u, over)
	e := exp(clamp(u, 700))
	VBLENDVPD(over, all(math.Inf(1)), e, e)
	VADDPD(all(1), e, e)
	y := YMM()
	VDIVPD(e, x, y)
	return y
}

// logarithm returns log x for positive, finite and normal x, and destroys it:
// x = m·2^e with m in [√½, √2), log m = 2·atanh((m - 1)/(m + 1)).
func logarithm(x VecVirtual) VecVirtual {
	one := math.Float64bits(1)
	k, shift := YMM(), YMM()
	VPADDQ(bits64(one-math.Float64bits(math.Sqrt2/2)), x, k)
	VPSRLQ(Imm(52), k, k)
	VPSLLQ(Imm(52), k, shift)
	VPSUBQ(shift, x, x)
	VPADDQ(bits64(one), x, x)
	VPOR(all(1<<52), k, k)
	VSUBPD(all(1<<52+1023), k, k)
	s, below := YMM(), YMM()
	VADDPD(all(1), x, below)
	VSUBPD(all(1), x, s)
	VDIVPD(below, s, s)
	z := YMM()
	VMULPD(s, s, z)
	p := polynomial(z, logTerms)
	VMULPD(s, p, p)
	VFMADD231PD(all(math.Ln2), k, p)
	return p
}

func log(x VecVirtual) VecVirtual {
	y := logarithm(copyOf(x))
	mask := YMM()
	VCMPPD(Imm(equal), all(math.Inf(1)), x, mask)
	VBLENDVPD(mask, x, y, y)
	VCMPPD(Imm(equal), all(0), x, mask)
	VBLENDVPD(mask, all(math.Inf(-1)), y, y)
	VCMPPD(Imm(notGE), all(0), x, mask)
	VBLENDVPD(mask, all(math.NaN()), y, y)
	return y
}
