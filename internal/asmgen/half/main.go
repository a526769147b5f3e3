// Command half writes the AVX2 loops of package tensor, which convert between
// floats of two, four and eight bytes: each turn converts eight.
package main

import (
	"strconv"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
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

// loop is a pass over n elements, a positive multiple of eight.
type loop struct{ dst, src, i, n Register }

func begin(name, dst, src, doc string) *loop {
	TEXT(name, NOSPLIT, "func(dst *"+dst+", src *"+src+", n int)")
	Pragma("noescape")
	Doc(name + " " + doc + ".")
	l := &loop{dst: Load(Param("dst"), GP64()), src: Load(Param("src"), GP64()), n: Load(Param("n"), GP64()), i: GP64()}
	XORQ(l.i, l.i)
	return l
}

func (l *loop) to(size, k int) Mem {
	return Mem{Base: l.dst, Index: l.i, Scale: uint8(size), Disp: size * k}
}

func (l *loop) from(size, k int) Mem {
	return Mem{Base: l.src, Index: l.i, Scale: uint8(size), Disp: size * k}
}

func (l *loop) turns(body func()) {
	Label("turn")
	body()
	ADDQ(Imm(8), l.i)
	CMPQ(l.i, l.n)
	JL(LabelRef("turn"))
	VZEROUPPER()
	RET()
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
	l := begin("fromFloat16AVX2", "float32", "uint16", "widens float16, whose bits NaNs keep")
	quiet := all(0x400000)
	l.turns(func() {
		x, bits := YMM(), YMM()
		VCVTPH2PS(l.from(2, 0), x)
		VPMOVZXWD(l.from(2, 0), bits)
		VPSLLD(Imm(13), bits, bits)
		VPANDN(quiet, bits, bits)
		VPAND(notANumber(x), bits, bits)
		VPANDN(x, bits, x)
		VMOVUPS(x, l.to(4, 0))
	})
}

// The instruction keeps bits of NaNs; here only their sign stays.
func toFloat16() {
	l := begin("toFloat16AVX2", "uint16", "float32", "rounds to float16, NaNs to the quiet one of their sign")
	payload := all(0x01ff01ff)
	l.turns(func() {
		x, h := YMM(), XMM()
		VMOVUPS(l.from(4, 0), x)
		VCVTPS2PH(Imm(0), x, h)
		nan := halves(VPACKSSDW, notANumber(x))
		VPAND(payload.AsX(), nan, nan)
		VPANDN(h, nan, h)
		VMOVDQU(h, l.to(2, 0))
	})
}

func fromBFloat16() {
	l := begin("fromBFloat16AVX2", "float32", "uint16", "widens bfloat16")
	l.turns(func() {
		x := YMM()
		VPMOVZXWD(l.from(2, 0), x)
		VPSLLD(Imm(16), x, x)
		VMOVDQU(x, l.to(4, 0))
	})
}

func toBFloat16() {
	l := begin("toBFloat16AVX2", "uint16", "float32", "rounds to bfloat16, NaNs to the quiet one")
	one, most, quiet := all(1), all(0x7fff), all(0x7fc0)
	l.turns(func() {
		x, odd := YMM(), YMM()
		VMOVDQU(l.from(4, 0), x)
		nan := notANumber(x)
		VPSRLD(Imm(16), x, odd)
		VPAND(one, odd, odd)
		VPADDD(most, x, x)
		VPADDD(odd, x, x)
		VPSRLD(Imm(16), x, x)
		VPBLENDVB(nan, quiet, x, x)
		VMOVDQU(halves(VPACKUSDW, x), l.to(2, 0))
	})
}

func single() {
	l := begin("singleAVX2", "float32", "float64", "rounds to float32")
	l.turns(func() {
		for k := 0; k < 8; k += 4 {
			x := XMM()
			VCVTPD2PSY(l.from(8, k), x)
			VMOVUPS(x, l.to(4, k))
		}
	})
}

func double() {
	l := begin("doubleAVX2", "float64", "float32", "widens float32")
	l.turns(func() {
		for k := 0; k < 8; k += 4 {
			x := YMM()
			VCVTPS2PD(l.from(4, k), x)
			VMOVUPD(x, l.to(8, k))
		}
	})
}
