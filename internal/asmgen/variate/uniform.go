package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"plumb/internal/asmgen/turns"
)

const (
	down    = 1    // of VROUNDPD
	atLeast = 0x1d // of VCMPPD
)

// interval turns words into reals low + word·scale, of which the lowest eleven
// bits take no part.
type interval struct{ low, scale, digits, upper, lower, both VecVirtual }

func newInterval() *interval {
	return &interval{
		low: argument("low"), scale: argument("scale"), digits: broadcast(^uint64(1<<11 - 1)),
		upper: all64(0x1p84), lower: all64(0x1p52), both: all64(0x1p84 + 0x1p52),
	}
}

// scaled is word·scale. The halves of the word become the digits of floats
// whose exponents are known.
func (in *interval) scaled(word Mem) VecVirtual {
	w, high := YMM(), YMM()
	VPAND(word, in.digits, w)
	VPSRLQ(Imm(32), w, high)
	VPBLENDD(Imm(0xaa), in.lower, w, w)
	VORPD(in.upper, high, high)
	VSUBPD(in.both, high, high)
	VADDPD(w, high, high)
	VMULPD(in.scale, high, high)
	return high
}

func uniforms() {
	l := turns.Begin("uniformsAVX2", "float64", "uint64", ", low, scale, high float64", "makes a real low + word·scale of each word, or low where that is high or more")
	in := newInterval()
	top := argument("high")
	l.Turns(func() {
		for k := 0; k < 8; k += 4 {
			x, out := in.scaled(l.From(8, k)), YMM()
			VADDPD(in.low, x, x)
			VCMPPD(Imm(atLeast), top, x, out)
			VBLENDVPD(out, in.low, x, x)
			VMOVUPD(x, l.To(8, k))
		}
	})
}

func integers() {
	l := turns.Begin("integersAVX2", "int32", "uint64", ", low, scale float64", "makes an integer low + ⌊word·scale⌋ of each word")
	in := newInterval()
	l.Turns(func() {
		for k := 0; k < 8; k += 4 {
			x := in.scaled(l.From(8, k))
			VROUNDPD(Imm(down), x, x)
			VADDPD(in.low, x, x)
			VCVTTPD2DQY(x, x.AsX())
			VMOVUPS(x.AsX(), l.To(4, k))
		}
	})
}
