package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"plumb/internal/asmgen/turns"
)

func round() {
	l := turns.Begin("roundAVX2", "float32", "float64", ", top float32", "rounds reals and limits them to top")
	top := XMM()
	VBROADCASTSS(address("top"), top)
	l.Turns(func() {
		for k := 0; k < 8; k += 4 {
			x := XMM()
			VCVTPD2PSY(l.From(8, k), x)
			VMINPS(x, top, x)
			VMOVUPS(x, l.To(4, k))
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
	l := turns.Begin("truncateAVX2", "int32", "float32", "", "truncates toward 0")
	l.Turns(func() {
		x := YMM()
		VCVTTPS2DQ(l.From(4, 0), x)
		VMOVDQU(x, l.To(4, 0))
	})
}

func narrow8() {
	l := turns.Begin("narrow8AVX2", "int8", "int32", "", "keeps the lowest eight bits")
	low := all32(0xff)
	l.Turns(func() {
		x := YMM()
		VPAND(l.From(4, 0), low, x)
		w := words(x)
		VPACKUSWB(w, w, w)
		VMOVQ(w, l.To(1, 0))
	})
}

func narrow16() {
	l := turns.Begin("narrow16AVX2", "int16", "int32", "", "keeps the lowest sixteen bits")
	low := all32(0xffff)
	l.Turns(func() {
		x := YMM()
		VPAND(l.From(4, 0), low, x)
		VMOVDQU(words(x), l.To(2, 0))
	})
}

func widen() {
	l := turns.Begin("widenAVX2", "int64", "int32", "", "extends the sign")
	l.Turns(func() {
		for k := 0; k < 8; k += 4 {
			x := YMM()
			VPMOVSXDQ(l.From(4, k), x)
			VMOVDQU(x, l.To(8, k))
		}
	})
}
