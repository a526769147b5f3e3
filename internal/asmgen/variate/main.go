// Command variate writes the AVX2 loops of package variate: each turn makes
// eight numbers of random words, or converts eight.
package main

import (
	"math"
	"strconv"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

const vector = 32

func main() {
	normals()
	normals64()
	uniforms()
	integers()
	round()
	truncate()
	narrow8()
	narrow16()
	widen()
	Generate()
}

// all32 and all64 are a constant in all lanes of a register.
func all32(bits uint32) VecVirtual { return broadcast(uint64(bits)<<32 | uint64(bits)) }

func all64(x float64) VecVirtual { return broadcast(math.Float64bits(x)) }

var constants = map[uint64]Mem{}

func broadcast(bits uint64) VecVirtual {
	m, ok := constants[bits]
	if !ok {
		m = GLOBL("lanes_"+strconv.FormatUint(bits, 16), RODATA|NOPTR)
		DATA(0, U64(bits))
		constants[bits] = m
	}
	y := YMM()
	VPBROADCASTQ(m, y)
	return y
}

// argument is a float64 argument in all lanes of a register.
func argument(name string) VecVirtual {
	y := YMM()
	VBROADCASTSD(address(name), y)
	return y
}

func address(name string) Mem {
	b, err := Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	return b.Addr
}
