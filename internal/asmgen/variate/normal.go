package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"plumb/internal/asmgen/turns"
)

const (
	octaves = 8 // that a permutation chooses from
	sets    = 4
	degree  = 4
)

// quantile is what the loops that make normal deviates keep in registers; the
// table has, for each set of octaves, the coefficients of their pieces.
type quantile struct {
	table                                             Register
	sign, magnitude, often, below, mantissa, one, two VecVirtual
}

func load() *quantile {
	q := &quantile{table: Load(Param("table"), GP64()), sign: YMM()}
	VBROADCASTSS(address("sign"), q.sign)
	q.magnitude = all32(1<<31 - 1)
	q.often = all32(1 << (31 - octaves))
	q.below = all32(math.Float32bits(1<<31 - 1<<7))
	q.mantissa = all32(1<<23 - 1)
	q.one = all32(math.Float32bits(1))
	q.two = all32(math.Float32bits(2))
	return q
}

func normals() {
	l := turns.Begin("normalsAVX2", "float32", "uint64", ", sign uint32, table *[4][5][8]float32", "makes two normal deviates of each word")
	q := load()
	l.Turns(func() {
		w := YMM()
		VMOVDQU(l.From(4, 0), w)
		VMOVUPS(q.deviates(l, w), l.To(4, 0))
	})
}

// normals64 gives the deviate of a word's upper half 29 more digits, the
// word's lowest bits.
func normals64() {
	l := turns.Begin("normals64AVX2", "float64", "uint64", ", sign uint32, table *[4][5][8]float32", "makes a normal deviate of each word")
	q := load()
	digits := broadcast(1<<29 - 1)
	l.Turns(func() {
		w := YMM()
		VMOVUPS(l.From(8, 0), w)
		VSHUFPS(Imm(0xdd), l.From(8, 4), w, w)
		VPERMPD(Imm(0xd8), w, w)
		z := q.deviates(l, w)
		upper, more := XMM(), YMM()
		VEXTRACTF128(Imm(1), z, upper)
		for k, part := range []Register{z.AsX(), upper} {
			VCVTPS2PD(part, w)
			VANDPS(l.From(8, 4*k), digits, more)
			VORPS(more, w, w)
			VMOVUPS(w, l.To(8, 4*k))
		}
	})
}

// deviates is the quantile of the words' tails with the words' signs. A tail
// of none of the first eight octaves leaves the loop for a while.
func (q *quantile) deviates(l *turns.Loop, w VecVirtual) VecVirtual {
	tail, rare, z, any := YMM(), YMM(), YMM(), GP32()
	VPAND(q.magnitude, w, tail)
	VPCMPGTD(tail, q.often, rare)
	VMOVMSKPS(rare, any)
	TESTL(any, any)
	JNZ(LabelRef("rare"))
	octave, v := q.place(tail)
	q.piece(0, octave, v, z)
	Label("found")
	l.Aside = append(l.Aside, func() {
		Label("rare")
		VPMAXSD(all32(1), tail, tail)
		octave, v := q.place(tail)
		q.piece(0, octave, v, z)
		for set := 1; set < sets; set++ {
			lower, in := YMM(), YMM()
			q.piece(set, octave, v, lower)
			VPCMPGTD(tail, all32(1<<(31-octaves*set)), in)
			VBLENDVPS(in, lower, z, z)
		}
		JMP(LabelRef("found"))
	})
	VPAND(q.sign, w, w)
	VPOR(w, z, z)
	return z
}

// place is the octave of a tail, of which a permutation reads three bits, and
// how far below the octave's upper end it lies.
func (q *quantile) place(tail VecVirtual) (octave, v VecVirtual) {
	octave, v = YMM(), YMM()
	VCVTDQ2PS(tail, v)
	VMINPS(q.below, v, v)
	VPSRLD(Imm(23), v, octave)
	VANDPS(q.mantissa, v, v)
	VORPS(q.one, v, v)
	VSUBPS(v, q.two, v)
	return octave, v
}

func (q *quantile) piece(set int, octave, v, z VecVirtual) {
	coefficient := func(j int, to VecVirtual) {
		VPERMPS(Mem{Base: q.table, Disp: vector * ((degree+1)*set + j)}, octave, to)
	}
	coefficient(degree, z)
	for j := degree - 1; j >= 0; j-- {
		c := YMM()
		coefficient(j, c)
		VMULPS(v, z, z)
		VADDPS(c, z, z)
	}
}
