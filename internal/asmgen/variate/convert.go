package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

func round() {
	l := begin("roundAVX2", "float32", "float64", ", top float32", "rounds reals and limits them to top")
	top := XMM()
	VBROADCASTSS(address("top"), top)
	l.turns(func() {
		for k := 0; k < 8; k += 4 {
			x := XMM()
			VCVTPD2PSY(l.from(8, k), x)
			VMINPS(x, top, x)
			VMOVUPS(x, l.to(4, k))
		}
	})
}

// words is the low halves of lanes whose high halves are 0.
func words(x VecVirtual) VecVirtual {
	high := XMM()
	VEXTRACTI128(Imm(1), x, high)
	VPACKUSDW(high, x.AsX(), high)
	return high
}

func truncate() {
	l := begin("truncateAVX2", "int32", "float32", "", "truncates toward 0")
	l.turns(func() {
		x := YMM()
		VCVTTPS2DQ(l.from(4, 0), x)
		VMOVDQU(x, l.to(4, 0))
	})
}

func narrow8() {
	l := begin("narrow8AVX2", "int8", "int32", "", "keeps the lowest eight bits")
	low := all32(0xff)
	l.turns(func() {
		x := YMM()
		VPAND(l.from(4, 0), low, x)
		w := words(x)
		VPACKUSWB(w, w, w)
		VMOVQ(w, l.to(1, 0))
	})
}

func narrow16() {
	l := begin("narrow16AVX2", "int16", "int32", "", "keeps the lowest sixteen bits")
	low := all32(0xffff)
	l.turns(func() {
		x := YMM()
		VPAND(l.from(4, 0), low, x)
		VMOVDQU(words(x), l.to(2, 0))
	})
}

func widen() {
	l := begin("widenAVX2", "int64", "int32", "", "extends the sign")
	l.turns(func() {
		for k := 0; k < 8; k += 4 {
			x := YMM()
			VPMOVSXDQ(l.from(4, k), x)
			VMOVDQU(x, l.to(8, k))
		}
	})
}
