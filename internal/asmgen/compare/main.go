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
	sums32("sums32", false)
	sums32("sumsMost32", true)
	rates32("rates32", plain)
	rates32("ratesWide32", wide)
	rates32("ratesULP32", ulp)
	histogram32("histogram32", 8)
	histogram32("histogramLow32", 4)
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

// sums32 with most finds the largest |e| as well, which costs a tenth more.
func sums32(name string, withMost bool) {
	TEXT(name, NOSPLIT, "func(want, got *float32, n int, out *[7]float64)")
	Pragma("noescape")
	Doc(name+" sums over n elements, a multiple of 8; element i adds to lane i mod 8.",
		"The lanes fold as ((0+4)+(2+6)) + ((1+5)+(3+7)).")
	w, g, n := sides()
	sum, most := zeros(10), zero()
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
			if withMost {
				VMAXPD(d, most, most)
			}
		}
		ADDQ(U32(32), w)
		ADDQ(U32(32), g)
	})
	out := Load(Param("out"), GP64())
	foldSums(sum, out)
	if withMost {
		VMOVSD(fold(VMAXPD, most), Mem{Base: out, Disp: 40})
	}
	VZEROUPPER()
	RET()
}

// foldSums folds pairs of vectors into numbers.
func foldSums(sum []VecVirtual, out Register) {
	for i := range len(sum) / 2 {
		VADDPD(sum[2*i+1], sum[2*i], sum[2*i])
		VMOVSD(fold(VADDPD, sum[2*i]), Mem{Base: out, Disp: 8 * i})
	}
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
// outweigh an underflow and differences below 2; the others are for all.
type variant int

const (
	plain variant = iota
	wide
	ulp // with a limit in ULP, too
)

// rate holds the registers of a pass.
type rate struct {
	variant
	w, g, ratios, in      Register
	atol, edge            Mem
	worst, relative, most VecVirtual
	largest               VecVirtual
	tiny, above, below    VecVirtual // but plain
	least, mask           VecVirtual // plain only
	rtol, inverse         VecVirtual // plain only
	equal, negative       Register   // plain only
}

func rates32(name string, v variant) {
	signature := "func(want, got *float32, n int, in *[20]uint32, ratios *float32, out *[8]uint32)"
	if v == ulp {
		signature = "func(want, got *float32, n int, in *[20]uint32, ratios *float32, bins *int8, out *[8]uint32)"
	}
	TEXT(name, NOSPLIT, signature)
	Pragma("noescape")
	Doc(name + " rates n elements, a multiple of 32: see rate32.")
	w, g, n := sides()
	k := rate{variant: v, w: w, g: g, in: Load(Param("in"), GP64()), ratios: Load(Param("ratios"), GP64())}
	var bins Register
	if v == ulp {
		bins = Load(Param("bins"), GP64())
	}
	k.start()
	loop(name+"_loop", n, 32, func() {
		b := k.group()
		for line := range 2 {
			PREFETCHT1(Mem{Base: w, Disp: ahead + 64*line})
			if v == ulp {
				PREFETCHT1(Mem{Base: g, Disp: ahead + 64*line})
			}
		}
		if v == ulp {
			VMOVDQU(b, Mem{Base: bins})
			ADDQ(U32(32), bins)
		}
		for _, p := range []Register{w, g, k.ratios} {
			ADDQ(U32(128), p)
		}
	})
	k.finish(Load(Param("out"), GP64()))
	VZEROUPPER()
	RET()
}

func (k *rate) start() {
	k.atol = Mem{Base: k.in, Disp: 48}
	k.worst, k.most, k.largest, k.relative = zero(), zero(), zero(), YMM()
	VPCMPEQD(k.relative, k.relative, k.relative)
	if k.variant == plain {
		k.mask = YMM()
		VPSRLD(Imm(1), k.relative, k.mask)
		k.rtol, k.inverse = k.constant(0), k.constant(4)
		k.least, k.equal, k.negative = zero(), GP64(), GP64()
		XORQ(k.equal, k.equal)
		XORQ(k.negative, k.negative)
	} else {
		k.above, k.below, k.tiny = zero(), zero(), YMM()
		VMOVDQA(k.relative, k.tiny)
	}
	if k.variant == ulp {
		k.edge = AllocLocal(vector)
		VMOVDQU(k.relative, k.edge)
	}
	VPSLLD(Imm(31), k.relative, k.relative) // -0
}

func (k *rate) finish(out Register) {
	at := func(i int) Mem { return Mem{Base: out, Disp: 4 * i} }
	VMOVSS(fold32(VMAXPS, k.worst), at(0))
	VMOVSS(fold32(VMAXPS, k.relative), at(1))
	if k.variant == ulp {
		edge := YMM()
		VMOVDQU(k.edge, edge)
		VMOVSS(fold32(VPMINUB, edge), at(2))
	}
	if k.variant == plain {
		nought := zero()
		VPSUBD(k.least, nought, k.least)
		VPMAXSD(k.least, k.most, k.most)
		above := Load(Param("n"), GP64())
		SUBQ(k.equal, above)
		SUBQ(k.negative, above)
		MOVL(above.(GPVirtual).As32(), at(4))
		MOVL(k.negative.(GPVirtual).As32(), at(5))
		MOVL(I32(-1), at(6))
	} else {
		VMOVSS(fold32(VPADDD, k.above), at(4))
		VMOVSS(fold32(VPADDD, k.below), at(5))
		VMOVSS(fold32(VPMINUD, k.tiny), at(6))
	}
	VMOVSS(fold32(VPMAXUD, k.most), at(3))
	VMOVSS(fold32(VPMAXUD, k.largest), at(7))
}

// group rates 32 elements; with a limit in ULP it returns their bins less 1.
func (k *rate) group() VecVirtual {
	var half [2]VecVirtual
	for i := range half {
		a, b := k.eight(2*i), k.eight(2*i+1)
		if a != nil {
			VPACKSSDW(b, a, a)
			half[i] = a
		}
	}
	if k.variant == wide {
		return nil
	}
	VPACKSSWB(half[1], half[0], half[0])
	if k.variant == plain {
		k.signs(half[0])
	}
	return half[0]
}

// signs counts bytes below 0 and equal to 0.
func (k *rate) signs(steps VecVirtual) {
	bits := GP32()
	VPMOVMSKB(steps, bits)
	POPCNTL(bits, bits)
	ADDQ(bits.As64(), k.negative)
	VPCMPEQB(all32("zero", 0), steps, steps)
	bits = GP32()
	VPMOVMSKB(steps, bits)
	POPCNTL(bits, bits)
	ADDQ(bits.As64(), k.equal)
}

// constant returns the number at an offset of the input in every lane.
func (k *rate) constant(at int) VecVirtual {
	x := YMM()
	VBROADCASTSS(Mem{Base: k.in, Disp: at}, x)
	return x
}

// eight rates the i-th eight elements. It returns their differences in steps
// in the plain pass, and their bins with a limit in ULP.
func (k *rate) eight(i int) VecVirtual {
	w, g, mw, mg, e := YMM(), YMM(), YMM(), YMM(), YMM()
	mask := Op(k.mask)
	if k.variant != plain {
		mask = mask32()
	}
	VMOVUPS(Mem{Base: k.w, Disp: vector * i}, w)
	VMOVUPS(Mem{Base: k.g, Disp: vector * i}, g)
	VPAND(mask, w, mw)
	VSUBPS(w, g, e)
	VANDPS(mask, e, e)
	VPMAXUD(e, k.largest, k.largest)
	VPSIGND(w, mw, w)
	VPAND(mask, g, mg)
	VPSIGND(g, mg, g)
	if k.variant == plain {
		VPSUBD(w, g, g)
		VPMAXSD(g, k.most, k.most)
		VPMINSD(g, k.least, k.least)
	} else {
		k.distance(w, g, mg)
	}

	var r VecVirtual
	if k.variant == plain {
		r = YMM()
		VMOVAPS(k.rtol, r)
	} else {
		r = k.constant(0)
	}
	VFMADD213PS(k.atol, mw, r)
	VDIVPS(r, e, r)
	k.relativeTo(e, mw)
	if k.variant == ulp {
		return k.binULP(r, w, i)
	}
	if k.variant == wide {
		VMAXPS(all32("zero", 0), r, r) // 0 ÷ 0 is 0
	}
	VMAXPS(r, k.worst, k.worst)
	VMOVUPS(r, Mem{Base: k.ratios, Disp: vector * i})
	if k.variant == wide {
		return nil
	}
	return g
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
	if k.variant == plain {
		VPADDD(ones(), mw, mw)
		VFMSUB231PS(k.inverse, e, mw)
		VMAXPS(k.relative, mw, k.relative)
		return
	}
	VPADDD(ones(), mw, mw)
	VPMINUD(mw, k.tiny, k.tiny)
	t := k.constant(4)
	VFMSUB213PS(mw, e, t)
	VMAXPS(k.relative, t, k.relative)
}

// binULP returns the lesser of the bins, less 1, by the tolerances, which may be
// close to an edge, and by the ULP limit, which are exact.
func (k *rate) binULP(r, steps VecVirtual, i int) VecVirtual {
	VPMINUD(all32("abs32", abs32), steps, steps)
	u, least := YMM(), YMM()
	VCVTDQ2PS(steps, u)
	VMULPS(k.constant(8), u, u)
	VMINPS(u, r, least)
	VMAXPS(least, k.worst, k.worst)
	VMOVUPS(least, Mem{Base: k.ratios, Disp: vector * i})

	byULP := constants().nearest(u)
	VPERMD(Mem{Base: k.in, Disp: 16}, byULP, u)
	VPSUBD(u, steps, u)
	above(u, byULP)

	bin := constants().nearest(r)
	VPERMD(edges32(), bin, u)
	VPSUBD(u, r, u)
	VPACKSSDW(u, u, least)
	VPACKSSWB(least, least, least)
	VPMINUB(k.edge, least, least)
	VMOVDQU(least, k.edge)
	above(u, bin)
	VPMINSD(byULP, bin, bin)
	return bin
}

// above adds 1 to the bins where t is not negative.
func above(t, bin VecVirtual) {
	VPCMPGTD(ones(), t, t)
	VPSUBD(t, bin, bin)
}

// estimate holds the constants of nearest; top is nil where no ratio is above
// all edges.
type estimate struct{ base, top, mul Op }

func constants() estimate {
	return estimate{all32("half_base", halfBase), all32("half_top", halfTop), all32("half_mul", halfMul)}
}

// nearest returns the index of the edge nearest to each ratio.
func (c estimate) nearest(r VecVirtual) VecVirtual {
	j := YMM()
	VPSRLD(Imm(16), r, j)
	VPSUBUSW(c.base, j, j)
	if c.top != nil {
		VPMINUW(c.top, j, j)
	}
	VPMULHUW(c.mul, j, j)
	return j
}

func register(m Mem) VecVirtual {
	x := YMM()
	VMOVDQU(m, x)
	return x
}

// histogram32 counts ratios in the first bins above the lowest.
func histogram32(name string, bins int) {
	TEXT(name, NOSPLIT, "func(ratios *float32, n int, next *float32, out *[8]uint64, edge *[4]uint8)")
	Pragma("noescape")
	Doc(fmt.Sprintf("%s counts n ratios, a multiple of 32 below 8192, in Hist[2:%d]; none is above those.", name, 2+bins),
		"The least of edge is how many steps the start of the window of an edge is below a ratio.")
	ratios, n, next := Load(Param("ratios"), GP64()), Load(Param("n"), GP64()), Load(Param("next"), GP64())
	c := estimate{base: register(all32("half_base", halfBase)), mul: register(all32("half_mul", halfMul))}
	edges, edge := Op(register(edges32())), register(ones())
	if bins == len(decades) {
		c = constants()
		edges = edges32()
	}
	counts := zeros(bins)
	loop(name+"_loop", n, 32, func() {
		var index, beyond [4]VecVirtual
		for i := range index {
			r := register(Mem{Base: ratios, Disp: vector * i})
			index[i] = c.nearest(r)
			beyond[i] = YMM()
			VPERMD(edges, index[i], beyond[i])
			VPSUBD(beyond[i], r, beyond[i])
			if i%2 == 1 {
				VPACKSSDW(index[i], index[i-1], index[i-1])
				VPACKSSDW(beyond[i], beyond[i-1], beyond[i-1])
			}
		}
		VPACKSSWB(index[2], index[0], index[0])
		VPACKSSWB(beyond[2], beyond[0], beyond[0])
		VPMINUB(beyond[0], edge, edge)
		VPCMPGTB(ones(), beyond[0], beyond[0])
		VPSUBB(beyond[0], index[0], index[0])
		countBytes(index[0], counts)
		PREFETCHT1(Mem{Base: next, Disp: ahead})
		PREFETCHT1(Mem{Base: next, Disp: ahead + 64})
		ADDQ(U32(128), next)
		ADDQ(U32(128), ratios)
	})
	finishCounts(counts, Load(Param("out"), GP64()))
	VMOVSS(fold32(VPMINUB, edge), Mem{Base: Load(Param("edge"), GP64())})
	VZEROUPPER()
	RET()
}

// countBytes counts bytes equal to 1, 2, ….
func countBytes(x VecVirtual, counts []VecVirtual) {
	for i, c := range counts {
		eq := YMM()
		VPCMPEQB(all64("byte"+strconv.Itoa(i+1), uint64(i+1)*0x0101010101010101), x, eq)
		VPSUBB(eq, c, c)
	}
}

func finishCounts(counts []VecVirtual, out Register) {
	for v, c := range counts {
		VPSADBW(all32("zero", 0), c, c)
		VMOVQ(fold(VPADDQ, c), Mem{Base: out, Disp: 8 * v})
	}
}

func count() {
	const name = "count"
	TEXT(name, NOSPLIT, "func(bins *int8, n int, out *[8]uint64)")
	Pragma("noescape")
	Doc(name + " counts each of 1 to 8 among n bytes, a multiple of 32 below 8192.")
	bins, n := Load(Param("bins"), GP64()), Load(Param("n"), GP64())
	counts := zeros(8)
	loop(name+"_loop", n, 32, func() {
		x := YMM()
		VMOVDQU(Mem{Base: bins}, x)
		countBytes(x, counts)
		ADDQ(U32(32), bins)
	})
	finishCounts(counts, Load(Param("out"), GP64()))
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
