// Command compare writes the AVX2 and FMA passes of package compare.
package main

import (
	"math"
	"strconv"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

const (
	vector = 32
	abs32  = 1<<31 - 1
	abs64  = 1<<63 - 1
	// edgeSlack is how many float32 steps a ratio may be from an edge of the
	// histogram and still be called ambiguous.
	edgeSlack = 8
	greater   = 0x1e // ordered, quiet
	less      = 0x11 // ordered, quiet
	unequal   = 0x04 // or unordered
)

// decades are compare.Decades above 0.
var decades = [8]float64{1e-4, 1e-3, 1e-2, 0.1, 1, 10, 100, 1000}

func main() {
	sums32()
	rates32("rates32", false)
	rates32("ratesULP32", true)
	count()
	within32("within32", false)
	within32("withinULP32", true)
	sums64()
	steps64("steps64", false)
	steps64("stepsULP64", true)
	count64()
	within64()
	Generate()
}

// fill32 and fill64 define a constant that fills a vector.

func fill32(name string, bits uint32) Mem {
	m := GLOBL(name, RODATA|NOPTR)
	for i := range vector / 4 {
		DATA(4*i, U32(bits))
	}
	return m
}

func fill64(name string, bits uint64) Mem {
	m := GLOBL(name, RODATA|NOPTR)
	for i := range vector / 8 {
		DATA(8*i, U64(bits))
	}
	return m
}

var globals = map[string]Mem{}

func once(name string, define func(string) Mem) Mem {
	m, ok := globals[name]
	if !ok {
		m = define(name)
		globals[name] = m
	}
	return m
}

func all32(name string, bits uint32) Mem {
	return once(name, func(name string) Mem { return fill32(name, bits) })
}

func all64(name string, bits uint64) Mem {
	return once(name, func(name string) Mem { return fill64(name, bits) })
}

func mask32() Mem { return all32("abs32", abs32) }
func mask64() Mem { return all64("abs64", abs64) }
func ones() Mem   { return all32("ones", math.MaxUint32) }

func zero() VecVirtual {
	x := YMM()
	VXORPS(x, x, x)
	return x
}

func zeros(n int) []VecVirtual {
	list := make([]VecVirtual, n)
	for i := range list {
		list[i] = zero()
	}
	return list
}

// sides loads the pointers to both operands and the number of elements.
func sides() (w, g, n Register) {
	return Load(Param("want"), GP64()), Load(Param("got"), GP64()), Load(Param("n"), GP64())
}

// loop runs the body once for every so many of n elements.
func loop(name string, n Register, elements int, body func()) {
	Label(name)
	body()
	SUBQ(U32(elements), n)
	JNZ(LabelRef(name))
}

// op3 is an instruction of two sources.
type op3 func(...Op)

func three(f func(a, b, c Op)) op3 { return func(ops ...Op) { f(ops[0], ops[1], ops[2]) } }

// fold reduces the four 64-bit lanes of x to its lowest: (0+2)+(1+3).
func fold(add op3, x VecVirtual) VecVirtual {
	hi := XMM()
	VEXTRACTF128(Imm(1), x, hi)
	lo := XMM()
	add(hi, x.AsX(), lo)
	swap := XMM()
	VPSHUFD(Imm(0x4e), lo, swap)
	add(swap, lo, lo)
	return lo
}

// fold32 reduces the eight 32-bit lanes of x to its lowest.
func fold32(add op3, x VecVirtual) VecVirtual {
	lo := fold(add, x)
	swap := XMM()
	VPSHUFD(Imm(0xb1), lo, swap)
	add(swap, lo, lo)
	return lo
}

func sums32() {
	const name = "sums32"
	TEXT(name, NOSPLIT, "func(want, got *float32, n int, out *[7]float64)")
	Pragma("noescape")
	Doc(name+" sums over n elements, a multiple of 8; element i adds to lane i mod 8.",
		"The lanes fold as ((0+4)+(2+6)) + ((1+5)+(3+7)).")
	w, g, n := sides()
	sum := zeros(10)
	most := zero()
	loop(name+"_loop", n, 8, func() {
		for half := range 2 {
			x, y, d := YMM(), YMM(), YMM()
			VCVTPS2PD(Mem{Base: w, Disp: 16 * half}, x)
			VCVTPS2PD(Mem{Base: g, Disp: 16 * half}, y)
			VSUBPD(x, y, d)
			VFMADD231PD(x, x, sum[half+4])
			VFMADD231PD(y, y, sum[half+6])
			VFMADD231PD(x, y, sum[half+8])
			VMULPD(d, d, x)
			VADDPD(x, sum[half+2], sum[half+2])
			VANDPD(mask64(), d, d)
			VADDPD(d, sum[half], sum[half])
			VMAXPD(d, most, most)
		}
		ADDQ(U32(32), w)
		ADDQ(U32(32), g)
	})
	out := Load(Param("out"), GP64())
	for i := range 5 {
		VADDPD(sum[2*i+1], sum[2*i], sum[2*i])
		VMOVSD(fold(VADDPD, sum[2*i]), Mem{Base: out, Disp: 8 * i})
	}
	VMOVSD(fold(VMAXPD, most), Mem{Base: out, Disp: 40})
	VZEROUPPER()
	RET()
}

// The logarithm of a ratio is estimated from the upper half of its float32
// bits: (half − base)·mul ≫ 16 is the index of the nearest edge.
const (
	halfBase = 0x38d1 - 213
	halfTop  = 3404
	halfMul  = 154
)

func edges32() Mem {
	return once("edges32", func(name string) Mem {
		m := GLOBL(name, RODATA|NOPTR)
		for i, d := range decades {
			DATA(4*i, U32(math.Float32bits(float32(d))-edgeSlack))
		}
		return m
	})
}

// nearest returns the index of the edge nearest to each ratio.
func nearest(r VecVirtual) VecVirtual {
	j := YMM()
	VPSRLD(Imm(16), r, j)
	VPSUBUSW(all32("half_base", halfBase), j, j)
	VPMINUW(all32("half_top", halfTop), j, j)
	VPMULHUW(all32("half_mul", halfMul), j, j)
	return j
}

// rate holds the registers of rates32.
type rate struct {
	w, g, ratios, in                             Register
	atol                                         VecVirtual
	worst, hit, tiny, edge, steps, above, beyond VecVirtual
}

func rates32(name string, ulp bool) {
	TEXT(name, NOSPLIT, "func(want, got *float32, n int, in *[12]uint32, ratios *float32, bins *int8, out *[7]uint32)")
	Pragma("noescape")
	Doc(name + " rates n elements, a multiple of 32: see rateOut.")
	w, g, n := sides()
	k := rate{w: w, g: g, in: Load(Param("in"), GP64()), ratios: Load(Param("ratios"), GP64())}
	bins := Load(Param("bins"), GP64())
	k.atol = k.constant(4)
	for _, acc := range []*VecVirtual{&k.worst, &k.hit, &k.steps, &k.above, &k.beyond} {
		*acc = zero()
	}
	k.tiny, k.edge = YMM(), YMM()
	VPCMPEQD(k.tiny, k.tiny, k.tiny)
	VPCMPEQD(k.edge, k.edge, k.edge)
	loop(name+"_loop", n, 32, func() {
		var pair [2]VecVirtual
		for i := range 2 {
			a := k.eight(2*i, ulp)
			b := k.eight(2*i+1, ulp)
			VPACKSSDW(b, a, a)
			pair[i] = a
		}
		VPACKSSWB(pair[1], pair[0], pair[0])
		VMOVDQU(pair[0], Mem{Base: bins})
		ADDQ(U32(32), bins)
		for _, p := range []Register{w, g, k.ratios} {
			ADDQ(U32(128), p)
		}
	})
	out := Load(Param("out"), GP64())
	for i, x := range []VecVirtual{
		fold32(VMAXPS, k.worst), fold32(three(VPOR), k.hit), fold32(VPMINUD, k.tiny), fold32(VPMINUD, k.edge),
		fold32(VPMAXUD, k.steps), fold32(VPADDD, k.above), fold32(VPADDD, k.beyond),
	} {
		VMOVSS(x, Mem{Base: out, Disp: 4 * i})
	}
	VZEROUPPER()
	RET()
}

// constant returns the number at an offset of the input in every lane.
func (k *rate) constant(at int) VecVirtual {
	x := YMM()
	VBROADCASTSS(Mem{Base: k.in, Disp: at}, x)
	return x
}

// eight rates the i-th eight elements and returns their bins less 2.
func (k *rate) eight(i int, ulp bool) VecVirtual {
	w, g, mw := YMM(), YMM(), YMM()
	VMOVUPS(Mem{Base: k.w, Disp: vector * i}, w)
	VMOVUPS(Mem{Base: k.g, Disp: vector * i}, g)
	VPAND(mask32(), w, mw)
	e := YMM()
	VSUBPS(w, g, e)
	VANDPS(mask32(), e, e)
	steps := k.distance(w, g, mw)

	k.relative(e, mw)
	r := k.constant(0)
	VFMADD213PS(k.atol, mw, r)
	VDIVPS(r, e, r)
	if !ulp {
		VMAXPS(all32("zero", 0), r, r) // 0 ÷ 0 is 0
		VMAXPS(r, k.worst, k.worst)
		VMOVUPS(r, Mem{Base: k.ratios, Disp: vector * i})
		return k.bin(r)
	}
	byULP, least := k.binULP(r, steps, i)
	b := k.bin(least)
	VPMINSD(byULP, b, b)
	return b
}

// distance counts signs of errors and returns the distances in ULP.
func (k *rate) distance(w, g, mw VecVirtual) VecVirtual {
	VPSIGND(w, mw, w)
	mg := YMM()
	VPAND(mask32(), g, mg)
	VPSIGND(g, mg, g)
	sign := YMM()
	VPCMPGTD(w, g, sign)
	VPSUBD(sign, k.above, k.above)
	VPCMPGTD(g, w, sign)
	VPSUBD(sign, k.beyond, k.beyond)
	VPMAXSD(w, g, mg)
	VPMINSD(w, g, w)
	VPSUBD(w, mg, w)
	VPMAXUD(w, k.steps, k.steps)
	return w
}

// relative notes errors above the given relative one, and the smallest
// magnitude other than 0. A magnitude of 0 turns into a NaN, above nothing.
func (k *rate) relative(e, mw VecVirtual) {
	t := k.constant(8)
	VMULPS(t, mw, t)
	VPADDD(ones(), t, t)
	VCMPPS(Imm(greater), t, e, t)
	VORPS(t, k.hit, k.hit)
	VPADDD(ones(), mw, t)
	VPMINUD(t, k.tiny, k.tiny)
}

// bin returns the bins less 2 of ratios, and notes those close to an edge.
func (k *rate) bin(r VecVirtual) VecVirtual {
	j := nearest(r)
	t := YMM()
	VPERMD(edges32(), j, t)
	VPSUBD(t, r, t)
	VPMINUD(t, k.edge, k.edge)
	VPSRAD(Imm(31), t, t)
	VPADDD(t, j, j)
	return j
}

// binULP returns the bins less 2 of the distances by the ULP limit, which are
// exact, and the lesser of both ratios.
func (k *rate) binULP(r, steps VecVirtual, i int) (bins, least VecVirtual) {
	VPMINUD(all32("abs32", abs32), steps, steps)
	u := YMM()
	VCVTDQ2PS(steps, u)
	VMULPS(k.constant(12), u, u)
	least = YMM()
	VMINPS(u, r, least)
	VMAXPS(least, k.worst, k.worst)
	VMOVUPS(least, Mem{Base: k.ratios, Disp: vector * i})
	bins = nearest(u)
	VPERMD(Mem{Base: k.in, Disp: 16}, bins, u)
	VPSUBD(u, steps, u)
	VPSRAD(Imm(31), u, u)
	VPADDD(u, bins, bins)
	return bins, r
}

func count() {
	const name = "count"
	TEXT(name, NOSPLIT, "func(bins *int8, n int, out *[8]uint64)")
	Pragma("noescape")
	Doc(name + " counts each of 0 to 7 among n bytes, a multiple of 32 below 8192.")
	bins, n := Load(Param("bins"), GP64()), Load(Param("n"), GP64())
	counts := zeros(8)
	loop(name+"_loop", n, 32, func() {
		x := YMM()
		VMOVDQU(Mem{Base: bins}, x)
		for v, c := range counts {
			eq := YMM()
			VPCMPEQB(all64("byte"+strconv.Itoa(v), uint64(v)*0x0101010101010101), x, eq)
			VPSUBB(eq, c, c)
		}
		ADDQ(U32(32), bins)
	})
	out := Load(Param("out"), GP64())
	for v, c := range counts {
		VPSADBW(all32("zero", 0), c, c)
		VMOVQ(fold(VPADDQ, c), Mem{Base: out, Disp: 8 * v})
	}
	VZEROUPPER()
	RET()
}

// within32 tells whether every element passes beyond doubt.
func within32(name string, ulp bool) {
	TEXT(name, NOSPLIT, "func(want, got *float32, n int, in *[4]uint32) bool")
	Pragma("noescape")
	Doc(name + " reports whether each of n elements, a multiple of 32, is sure to pass: see withinIn.")
	w, g, n := sides()
	in := Load(Param("in"), GP64())
	rtol, atol, same, limit, ok := YMM(), YMM(), YMM(), YMM(), YMM()
	VBROADCASTSS(Mem{Base: in}, rtol)
	VBROADCASTSS(Mem{Base: in, Disp: 4}, atol)
	VPBROADCASTD(Mem{Base: in, Disp: 8}, same)
	if ulp {
		VPBROADCASTD(Mem{Base: in, Disp: 12}, limit)
	}
	VPCMPEQD(ok, ok, ok)
	loop(name+"_loop", n, 32, func() {
		for i := range 4 {
			x, y, mx, l, e, eq := YMM(), YMM(), YMM(), YMM(), YMM(), YMM()
			VMOVUPS(Mem{Base: w, Disp: vector * i}, x)
			VMOVUPS(Mem{Base: g, Disp: vector * i}, y)
			VANDPS(mask32(), x, mx)
			VMOVAPS(rtol, l)
			VFMADD213PS(atol, mx, l)
			VSUBPS(x, y, e)
			VANDPS(mask32(), e, e)
			VCMPPS(Imm(less), l, e, l)
			VPCMPEQD(x, y, eq)
			VPAND(same, eq, eq)
			VORPS(eq, l, l)
			if ulp {
				near(x, y, mx, limit, eq)
				VORPS(eq, l, l)
			}
			VANDPS(l, ok, ok)
		}
		ADDQ(U32(128), w)
		ADDQ(U32(128), g)
	})
	done(ok)
}

// near sets to whether x and y, with the magnitude of x, are finite and at most
// limit ULP apart.
func near(x, y, mx, limit, to VecVirtual) {
	my := YMM()
	VPAND(mask32(), y, my)
	VPSIGND(x, mx, x)
	VPSIGND(y, my, y)
	VPMAXUD(mx, my, my)
	VPCMPGTD(my, all32inf(), my)
	VPMAXSD(x, y, to)
	VPMINSD(x, y, x)
	VPSUBD(x, to, to)
	VPMINUD(to, limit, x)
	VPCMPEQD(x, to, to)
	VPAND(my, to, to)
}

// all32inf returns the bits of infinity in a register.
func all32inf() VecVirtual {
	x := YMM()
	VMOVDQU(all32("inf32", 0x7f800000), x)
	return x
}

// done returns whether every bit of ok is set.
func done(ok VecVirtual) {
	bits := GP32()
	VMOVMSKPS(ok, bits)
	CMPL(bits, U32(0xff))
	result := GP8()
	SETEQ(result)
	VZEROUPPER()
	Store(result, ReturnIndex(0))
	RET()
}
