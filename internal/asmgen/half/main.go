// Command half writes the AVX2 loops of package tensor, which convert between
// floats of two, four and eight bytes: each turn converts eight.
package main

import (
	"strconv"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"plumb/internal/asmgen/turns"
)

func main() {
	fromFloat16()
	toFloat16()
	fromBFloat16()
	toBFloat16()
	single()
	double()
	Generate()
}

var constants = map[uint32]Mem{}

// all is a constant in all lanes of a register.
func all(bits uint32) VecVirtual {
	m, ok := constants[bits]
	if !ok {
		m = GLOBL("lanes_"+strconv.FormatUint(uint64(bits), 16), RODATA|NOPTR)
		DATA(0, U32(bits))
		constants[bits] = m
	}
	y := YMM()
	VPBROADCASTD(m, y)
	return y
}

// notANumber has all bits set in the lanes of x that are NaN.
func notANumber(x VecVirtual) VecVirtual {
	nan := YMM()
	VCMPPS(Imm(3), x, x, nan)
	return nan
}

// halves packs lanes into words by one of the two instructions for that.
func halves(pack func(...Op), x VecVirtual) VecVirtual {
	high := XMM()
	VEXTRACTI128(Imm(1), x, high)
	pack(high, x.AsX(), high)
	return high
}

// The instruction makes NaNs quiet; here they keep their bits.
func fromFloat16() {
	l := turns.Begin("fromFloat16AVX2", "float32", "uint16", "", "widens float16, whose bits NaNs keep")
	quiet := all(0x400000)
	l.Turns(func() {
		x, bits := YMM(), YMM()
		VCVTPH2PS(l.From(2, 0), x)
		VPMOVZXWD(l.From(2, 0), bits)
		VPSLLD(Imm(13), bits, bits)
		VPANDN(quiet, bits, bits)
		VPAND(notANumber(x), bits, bits)
		VPANDN(x, bits, x)
		VMOVUPS(x, l.To(4, 0))
	})
}

// The instruction keeps bits of NaNs; here only their sign stays.
func toFloat16() {
	l := turns.Begin("toFloat16AVX2", "uint16", "float32", "", "rounds to float16, NaNs to the quiet one of their sign")
	payload := all(0x01ff01ff)
	l.Turns(func() {
		x, h := YMM(), XMM()
		VMOVUPS(l.From(4, 0), x)
		VCVTPS2PH(Imm(0), x, h)
		nan := halves(VPACKSSDW, notANumber(x))
		VPAND(payload.AsX(), nan, nan)
		VPANDN(h, nan, h)
		VMOVDQU(h, l.To(2, 0))
	})
}

func fromBFloat16() {
	l := turns.Begin("fromBFloat16AVX2", "float32", "uint16", "", "widens bfloat16")
	l.Turns(func() {
		x := YMM()
		VPMOVZXWD(l.From(2, 0), x)
		VPSLLD(Imm(16), x, x)
		VMOVDQU(x, l.To(4, 0))
	})
}

func toBFloat16() {
	l := turns.Begin("toBFloat16AVX2", "uint16", "float32", "", "rounds to bfloat16, NaNs to the quiet one")
	one, most, quiet := all(1), all(0x7fff), all(0x7fc0)
	l.Turns(func() {
		x, odd := YMM(), YMM()
		VMOVDQU(l.From(4, 0), x)
		nan := notANumber(x)
		VPSRLD(Imm(16), x, odd)
		VPAND(one, odd, odd)
		VPADDD(most, x, x)
		VPADDD(odd, x, x)
		VPSRLD(Imm(16), x, x)
		VPBLENDVB(nan, quiet, x, x)
		VMOVDQU(halves(VPACKUSDW, x), l.To(2, 0))
	})
}

func single() {
	l := turns.Begin("singleAVX2", "float32", "float64", "", "rounds to float32")
	l.Turns(func() {
		for k := 0; k < 8; k += 4 {
			x := XMM()
			VCVTPD2PSY(l.From(8, k), x)
			VMOVUPS(x, l.To(4, k))
		}
	})
}

func double() {
	l := turns.Begin("doubleAVX2", "float64", "float32", "", "widens float32")
	l.Turns(func() {
		for k := 0; k < 8; k += 4 {
			x := YMM()
			VCVTPS2PD(l.From(4, k), x)
			VMOVUPD(x, l.To(8, k))
		}
	})
}
