// Command compare writes the AVX2 and FMA passes of package compare.
package main

import (
	"fmt"
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
	// ahead is how far to read ahead, in bytes: a chunk of float32.
	ahead   = 8192
	greater = 0x1e // ordered, quiet
	less    = 0x11 // ordered, quiet
	unequal = 0x04 // or unordered
)

// decades are compare.Decades above 0.
var decades = [8]float64{1e-4, 1e-3, 1e-2, 0.1, 1, 10, 100, 1000}

func main() {
	sums32()
	rates32("rates32", plain)
	rates32("ratesWide32", wide)
	rates32("ratesULP32", ulp)
	count("count8", 8)
	count("count4", 4)
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
			VFMADD231PD(d, d, sum[half+2])
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

// Three passes rate elements. The plain one is for absolute tolerances that
// outweigh an underflow, differences below 2 and ratios below 3000; the others
// are for all.
type variant int

const (
	plain variant = iota
	wide
	ulp // with a limit in ULP, too
)

// rate holds the registers of a pass. Beyond is a count in the plain pass.
type rate struct {
	variant
	w, g, ratios, in                   Register
	atol                               VecVirtual
	worst, relative, edge, most, above VecVirtual
	tiny, below                        VecVirtual // but plain
	least                              VecVirtual // plain only
	negative                           Register   // plain only
}

func rates32(name string, v variant) {
	TEXT(name, NOSPLIT, "func(want, got *float32, n int, in *[12]uint32, ratios *float32, bins *int8, out *[7]uint32)")
	Pragma("noescape")
	Doc(name + " rates n elements, a multiple of 32: see rate32.")
	w, g, n := sides()
	k := rate{variant: v, w: w, g: g, in: Load(Param("in"), GP64()), ratios: Load(Param("ratios"), GP64())}
	bins := Load(Param("bins"), GP64())
	k.start()
	loop(name+"_loop", n, 32, func() {
		var pair [2]VecVirtual
		for i := range 2 {
			a := k.eight(2 * i)
			b := k.eight(2*i + 1)
			VPACKSSDW(b, a, a)
			pair[i] = a
		}
		for line := range 2 {
			PREFETCHT1(Mem{Base: w, Disp: ahead + 64*line})
			PREFETCHT1(Mem{Base: g, Disp: ahead + 64*line})
		}
		VPACKSSWB(pair[1], pair[0], pair[0])
		VMOVDQU(pair[0], Mem{Base: bins})
		ADDQ(U32(32), bins)
		for _, p := range []Register{w, g, k.ratios} {
			ADDQ(U32(128), p)
		}
	})
	k.finish(Load(Param("out"), GP64()))
	VZEROUPPER()
	RET()
}

func (k *rate) start() {
	k.atol = k.constant(4)
	k.worst, k.most, k.above = zero(), zero(), zero()
	k.edge, k.relative = YMM(), YMM()
	VPCMPEQD(k.edge, k.edge, k.edge)
	VPSLLD(Imm(31), k.edge, k.relative) // -0
	if k.variant == plain {
		k.least, k.negative = zero(), GP64()
		XORQ(k.negative, k.negative)
		return
	}
	k.below, k.tiny = zero(), YMM()
	VPCMPEQD(k.tiny, k.tiny, k.tiny)
}

func (k *rate) finish(out Register) {
	at := func(i int) Mem { return Mem{Base: out, Disp: 4 * i} }
	VMOVSS(fold32(VMAXPS, k.worst), at(0))
	VMOVSS(fold32(VMAXPS, k.relative), at(1))
	VMOVSS(fold32(VPMINUD, k.edge), at(2))
	if k.variant == plain {
		nought := zero()
		VPSUBD(k.least, nought, k.least)
		VPMAXSD(k.least, k.most, k.most)
		MOVL(k.negative.(GPVirtual).As32(), at(5))
		MOVL(I32(-1), at(6))
	} else {
		VMOVSS(fold32(VPADDD, k.below), at(5))
		VMOVSS(fold32(VPMINUD, k.tiny), at(6))
	}
	VMOVSS(fold32(VPMAXUD, k.most), at(3))
	VMOVSS(fold32(VPADDD, k.above), at(4))
}

// constant returns the number at an offset of the input in every lane.
func (k *rate) constant(at int) VecVirtual {
	x := YMM()
	VBROADCASTSS(Mem{Base: k.in, Disp: at}, x)
	return x
}

// eight rates the i-th eight elements and returns their bins less 2.
func (k *rate) eight(i int) VecVirtual {
	w, g, mw := YMM(), YMM(), YMM()
	VMOVUPS(Mem{Base: k.w, Disp: vector * i}, w)
	VMOVUPS(Mem{Base: k.g, Disp: vector * i}, g)
	VPAND(mask32(), w, mw)
	e := YMM()
	VSUBPS(w, g, e)
	VANDPS(mask32(), e, e)
	VPSIGND(w, mw, w)
	mg := YMM()
	VPAND(mask32(), g, mg)
	VPSIGND(g, mg, g)
	if k.variant == plain {
		k.difference(w, g)
	} else {
		k.distance(w, g, mg)
	}

	r := k.constant(0)
	VFMADD213PS(k.atol, mw, r)
	VDIVPS(r, e, r)
	k.relativeTo(e, mw)
	if k.variant == ulp {
		byULP, least := k.binULP(r, w, i)
		b := k.bin(least)
		VPMINSD(byULP, b, b)
		return b
	}
	if k.variant == wide {
		VMAXPS(all32("zero", 0), r, r) // 0 ÷ 0 is 0
	}
	VMAXPS(r, k.worst, k.worst)
	VMOVUPS(r, Mem{Base: k.ratios, Disp: vector * i})
	return k.bin(r)
}

// difference counts signs of errors, and finds the largest distance of places
// that are less than 2^31 apart.
func (k *rate) difference(w, g VecVirtual) {
	VPSUBD(w, g, g)
	VPMAXSD(g, k.most, k.most)
	VPMINSD(g, k.least, k.least)
	bits := GP32()
	VMOVMSKPS(g, bits)
	POPCNTL(bits, bits)
	ADDQ(bits.As64(), k.negative)
	VPCMPGTD(all32("zero", 0), g, g)
	VPSUBD(g, k.above, k.above)
}

// distance counts signs of errors, and leaves the distances in w.
func (k *rate) distance(w, g, t VecVirtual) {
	VPCMPGTD(w, g, t)
	VPSUBD(t, k.above, k.above)
	VPCMPGTD(g, w, t)
	VPSUBD(t, k.below, k.below)
	VPMAXSD(w, g, t)
	VPMINSD(w, g, w)
	VPSUBD(w, t, w)
	VPMAXUD(w, k.most, k.most)
}

// relativeTo keeps the largest e·in.inverse − mw, and the smallest magnitude mw
// other than 0. A magnitude of 0 turns into a NaN, which is no maximum.
func (k *rate) relativeTo(e, mw VecVirtual) {
	VPADDD(ones(), mw, mw)
	if k.variant != plain {
		VPMINUD(mw, k.tiny, k.tiny)
	}
	t := k.constant(8)
	VFMSUB213PS(mw, e, t)
	VMAXPS(k.relative, t, k.relative)
}

// nearest returns the index of the edge nearest to each ratio.
func (k *rate) nearest(r VecVirtual) VecVirtual {
	j := YMM()
	VPSRLD(Imm(16), r, j)
	VPSUBUSW(all32("half_base", halfBase), j, j)
	if k.variant != plain {
		VPMINUW(all32("half_top", halfTop), j, j)
	}
	VPMULHUW(all32("half_mul", halfMul), j, j)
	return j
}

// bin returns the bins less 2 of ratios, and notes those close to an edge.
func (k *rate) bin(r VecVirtual) VecVirtual {
	j := k.nearest(r)
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
	bins = k.nearest(u)
	VPERMD(Mem{Base: k.in, Disp: 16}, bins, u)
	VPSUBD(u, steps, u)
	VPSRAD(Imm(31), u, u)
	VPADDD(u, bins, bins)
	return bins, r
}

// count counts small bytes, the first of the given number of values.
func count(name string, values int) {
	TEXT(name, NOSPLIT, "func(bins *int8, n int, out *[8]uint64)")
	Pragma("noescape")
	Doc(fmt.Sprintf("%s counts each of 0 to %d among n bytes, a multiple of 32 below 8192.", name, values-1))
	bins, n := Load(Param("bins"), GP64()), Load(Param("n"), GP64())
	counts := zeros(values)
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
