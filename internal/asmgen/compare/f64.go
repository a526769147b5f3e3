package main

import (
	"math"
	"strconv"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

func sums64() {
	const name = "sums64"
	TEXT(name, NOSPLIT, "func(want, got *float64, n int, in *[2]float64, ratios *float64, out *[7]float64)")
	Pragma("noescape")
	Doc(name+" sums over n elements, a multiple of 4, and divides their errors by the tolerances;",
		"element i adds to lane i mod 4. The lanes fold as (0+2)+(1+3).")
	w, g, n := sides()
	in, ratios := Load(Param("in"), GP64()), Load(Param("ratios"), GP64())
	rtol, atol := YMM(), YMM()
	VBROADCASTSD(Mem{Base: in}, rtol)
	VBROADCASTSD(Mem{Base: in, Disp: 8}, atol)
	sum := zeros(7)
	loop(name+"_loop", n, 4, func() {
		PREFETCHT1(Mem{Base: w, Disp: 2 * ahead})
		PREFETCHT1(Mem{Base: g, Disp: 2 * ahead})
		x, y, e, t := YMM(), YMM(), YMM(), YMM()
		VMOVUPD(Mem{Base: w}, x)
		VMOVUPD(Mem{Base: g}, y)
		VSUBPD(x, y, e)
		VANDPD(mask64(), e, e)
		VFMADD231PD(e, e, sum[1])
		VFMADD231PD(x, x, sum[2])
		VFMADD231PD(y, y, sum[3])
		VFMADD231PD(x, y, sum[4])
		VADDPD(e, sum[0], sum[0])
		VMAXPD(e, sum[5], sum[5])
		VANDPD(mask64(), x, x)
		VDIVPD(x, e, t)
		VCMPPD(Imm(unequal), all64("zero", 0), x, y)
		VANDPD(y, t, t)
		VMAXPD(t, sum[6], sum[6])
		VMULPD(x, rtol, x)
		VADDPD(x, atol, x)
		VDIVPD(x, e, e)
		VMAXPD(all64("zero", 0), e, e) // 0 ÷ 0 is 0
		VMOVUPD(e, Mem{Base: ratios})
		for _, p := range []Register{w, g, ratios} {
			ADDQ(U32(vector), p)
		}
	})
	out := Load(Param("out"), GP64())
	for i, s := range sum {
		op := op3(VADDPD)
		if i >= 5 {
			op = VMAXPD
		}
		VMOVSD(fold(op, s), Mem{Base: out, Disp: 8 * i})
	}
	VZEROUPPER()
	RET()
}

func steps64(name string, ulp bool) {
	signature := "func(want, got *float64, n int, out *[6]uint64)"
	doc := " counts signs of errors and finds the largest distance in ULP of n elements, a multiple of 4."
	if ulp {
		signature = "func(want, got *float64, n int, ulp float64, ratios *float64, out *[6]uint64)"
		doc = " does as steps64, and lowers each ratio to distance ÷ ulp."
	}
	TEXT(name, NOSPLIT, signature)
	Pragma("noescape")
	Doc(name + doc)
	w, g, n := sides()
	var ratios Register
	var limit VecVirtual
	if ulp {
		ratios, limit = Load(Param("ratios"), GP64()), YMM()
		addr, err := Param("ulp").Resolve()
		if err != nil {
			panic(err)
		}
		VBROADCASTSD(addr.Addr, limit)
	}
	above, below, most, nought := zero(), zero(), zero(), zero()
	loop(name+"_loop", n, 4, func() {
		x, y := order64(w, nought), order64(g, nought)
		sign := YMM()
		VPCMPGTQ(x, y, sign)
		VPSUBQ(sign, above, above)
		VPCMPGTQ(y, x, sign)
		VPSUBQ(sign, below, below)
		VPSUBQ(x, y, x)
		VPXOR(sign, x, x)
		VPSUBQ(sign, x, x)
		maxUnsigned(x, most)
		if ulp {
			u := float64s(x)
			VDIVPD(limit, u, u)
			VMINPD(Mem{Base: ratios}, u, u)
			VMOVUPD(u, Mem{Base: ratios})
			ADDQ(U32(vector), ratios)
		}
		ADDQ(U32(vector), w)
		ADDQ(U32(vector), g)
	})
	out := Load(Param("out"), GP64())
	VMOVDQU(most, Mem{Base: out})
	VMOVQ(fold(VPADDQ, above), Mem{Base: out, Disp: 32})
	VMOVQ(fold(VPADDQ, below), Mem{Base: out, Disp: 40})
	VZEROUPPER()
	RET()
}

// order64 loads floats as their places on the grid.
func order64(p Register, nought VecVirtual) VecVirtual {
	x, sign := YMM(), YMM()
	VMOVDQU(Mem{Base: p}, x)
	VPCMPGTQ(x, nought, sign)
	VPAND(mask64(), x, x)
	VPXOR(sign, x, x)
	VPSUBQ(sign, x, x)
	return x
}

// maxUnsigned raises most to x.
func maxUnsigned(x, most VecVirtual) {
	a, b := YMM(), YMM()
	flip := all64("sign64", 1<<63)
	VPXOR(flip, x, a)
	VPXOR(flip, most, b)
	VPCMPGTQ(b, a, a)
	VBLENDVPD(a, x, most, most)
}

// float64s rounds unsigned integers: ((2^84 + high) − (2^84 + 2^52)) + (2^52 + low).
func float64s(x VecVirtual) VecVirtual {
	hi, lo := YMM(), YMM()
	VPSRLQ(Imm(32), x, hi)
	VPOR(all64("two84", math.Float64bits(0x1p84)), hi, hi)
	VSUBPD(all64("two84and52", math.Float64bits(0x1p84+0x1p52)), hi, hi)
	VPAND(all64("low32", math.MaxUint32), x, lo)
	VPOR(all64("two52", math.Float64bits(0x1p52)), lo, lo)
	VADDPD(lo, hi, hi)
	return hi
}

func count64() {
	const name = "count64"
	TEXT(name, NOSPLIT, "func(ratios *float64, n int, out *[10]uint64)")
	Pragma("noescape")
	Doc(name + " counts the ratios above each of Decades, and finds the largest, among n, a multiple of 4.")
	p, n := Load(Param("ratios"), GP64()), Load(Param("n"), GP64())
	counts, worst := zeros(len(decades)+1), zero()
	loop(name+"_loop", n, 4, func() {
		r, above := YMM(), YMM()
		VMOVUPD(Mem{Base: p}, r)
		VMAXPD(r, worst, worst)
		for i, c := range counts {
			edge := 0.0
			if i > 0 {
				edge = decades[i-1]
			}
			VCMPPD(Imm(greater), all64("decade"+strconv.Itoa(i), math.Float64bits(edge)), r, above)
			VPSUBQ(above, c, c)
		}
		ADDQ(U32(vector), p)
	})
	out := Load(Param("out"), GP64())
	for i, c := range counts {
		VMOVQ(fold(VPADDQ, c), Mem{Base: out, Disp: 8 * i})
	}
	VMOVSD(fold(VMAXPD, worst), Mem{Base: out, Disp: 8 * len(counts)})
	VZEROUPPER()
	RET()
}

func within64() {
	const name = "within64"
	TEXT(name, NOSPLIT, "func(want, got *float64, n int, in *[2]float64, same uint64) bool")
	Pragma("noescape")
	Doc(name+" reports whether each of n elements, a multiple of 4, is sure to pass:",
		"is within the tolerances, or, where same is all ones, has the expected bits.")
	w, g, n := sides()
	in := Load(Param("in"), GP64())
	rtol, atol, same, ok := YMM(), YMM(), YMM(), YMM()
	VBROADCASTSD(Mem{Base: in}, rtol)
	VBROADCASTSD(Mem{Base: in, Disp: 8}, atol)
	addr, err := Param("same").Resolve()
	if err != nil {
		panic(err)
	}
	VPBROADCASTQ(addr.Addr, same)
	VPCMPEQD(ok, ok, ok)
	loop(name+"_loop", n, 4, func() {
		x, y, e := YMM(), YMM(), YMM()
		VMOVUPD(Mem{Base: w}, x)
		VMOVUPD(Mem{Base: g}, y)
		VSUBPD(x, y, e)
		VANDPD(mask64(), e, e)
		VPCMPEQQ(x, y, y)
		VPAND(same, y, y)
		VANDPD(mask64(), x, x)
		VMULPD(x, rtol, x)
		VADDPD(x, atol, x)
		VCMPPD(Imm(less), x, e, x)
		VORPD(y, x, x)
		VANDPD(x, ok, ok)
		ADDQ(U32(vector), w)
		ADDQ(U32(vector), g)
	})
	done(ok)
}
