// Command philox writes the AVX2 loop of package choice's random words.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

const (
	vector = 32
	groups = 3          // of four blocks each
	blocks = 4 * groups // that a turn of the loop computes
	rounds = 10
)

// group is the counter words of four blocks, each in the low half of a lane.
type group [4]VecVirtual

func main() {
	TEXT("philoxAVX2", NOSPLIT, "func(dst *uint64, turns int, block uint64, keys *[20][4]uint64)")
	Pragma("noescape")
	Doc("philoxAVX2 writes the words of 12·turns blocks, from block on; keys holds k0 and k1 of each round, four times.")
	dst := Load(Param("dst"), GP64())
	turns := Load(Param("turns"), GP64())
	block := Load(Param("block"), GP64())
	keys := Mem{Base: Load(Param("keys"), GP64())}

	m0, m1 := YMM(), YMM()
	VPBROADCASTQ(constant("multiply0", 0xD2511F53), m0)
	VPBROADCASTQ(constant("multiply1", 0xCD9E8D57), m1)
	lanes := GLOBL("lanes", RODATA|NOPTR)
	for i := range groups {
		for k, lane := range []int{0, 2, 1, 3} {
			DATA(vector*i+8*k, U64(4*i+lane))
		}
	}

	Label("turn")
	TESTQ(turns, turns)
	JZ(LabelRef("end"))
	var g [groups]group
	for i := range g {
		g[i] = start(block, lanes.Offset(vector*i))
	}
	for r := range rounds {
		for i := range g {
			g[i] = round(g[i], m0, m1, keys.Offset(2*vector*r), keys.Offset(2*vector*r+vector))
		}
	}
	for i := range g {
		store(g[i], Mem{Base: dst}.Offset(2*vector*i))
	}
	ADDQ(Imm(2*vector*groups), dst)
	ADDQ(Imm(blocks), block)
	DECQ(turns)
	JMP(LabelRef("turn"))
	Label("end")
	VZEROUPPER()
	RET()
	Generate()
}

func constant(name string, v uint64) Mem {
	m := GLOBL(name, RODATA|NOPTR)
	DATA(0, U64(v))
	return m
}

// start is the counter words before the first round: the block's number.
func start(block Register, lanes Mem) group {
	g := group{YMM(), YMM(), YMM(), YMM()}
	x := XMM()
	VMOVQ(block, x)
	VPBROADCASTQ(x, g[0])
	VPADDQ(lanes, g[0], g[0])
	VPSRLQ(Imm(32), g[0], g[1])
	VPXOR(g[2], g[2], g[2])
	VPXOR(g[3], g[3], g[3])
	return g
}

// round leaves rubbish in the high halves, which nothing reads.
func round(g group, m0, m1 VecVirtual, k0, k1 Mem) group {
	high := YMM()
	VPMULUDQ(m0, g[0], g[0])
	VPMULUDQ(m1, g[2], g[2])
	VPXOR(k0, g[1], g[1])
	VPXOR(k1, g[3], g[3])
	VPSRLQ(Imm(32), g[2], high)
	VPXOR(high, g[1], g[1])
	VPSRLQ(Imm(32), g[0], high)
	VPXOR(high, g[3], g[3])
	return group{g[1], g[2], g[3], g[0]}
}

// store joins the words of each block and puts the blocks in order: the lanes
// hold blocks 0, 2, 1, 3.
func store(g group, to Mem) {
	VPSLLQ(Imm(32), g[1], g[1])
	VPSLLQ(Imm(32), g[3], g[3])
	VPBLENDD(Imm(0xAA), g[1], g[0], g[0])
	VPBLENDD(Imm(0xAA), g[3], g[2], g[2])
	VPUNPCKLQDQ(g[2], g[0], g[1])
	VPUNPCKHQDQ(g[2], g[0], g[3])
	VMOVDQU(g[1], to)
	VMOVDQU(g[3], to.Offset(vector))
}
