// Command gemm writes the AVX2 and FMA tiles of package kernel's matrix product.
package main

import (
	"math/bits"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

const (
	rows   = 6
	cols   = 2 * vector
	vector = 32
	unroll = 4
)

type lane struct {
	name, typ                               string
	size                                    int
	broadcast, load, add, zero, multiplyAdd func(...Op)
}

func main() {
	tile(lane{"gemmTile32", "float32", 4, VBROADCASTSS, VMOVUPS, VADDPS, VXORPS, VFMADD231PS})
	tile(lane{"gemmTile64", "float64", 8, VBROADCASTSD, VMOVUPD, VADDPD, VXORPD, VFMADD231PD})
	scattered(lane{"gemmRows32", "float32", 4, VBROADCASTSS, VMOVUPS, VADDPS, VXORPS, VFMADD231PS}, "gemmTile32")
	scattered(lane{"gemmRows64", "float64", 8, VBROADCASTSD, VMOVUPD, VADDPD, VXORPD, VFMADD231PD}, "gemmTile64")
	Generate()
}

func tile(l lane) {
	TEXT(l.name, NOSPLIT, "func(k int, a, b, c *"+l.typ+", ldc int, add bool)")
	Pragma("noescape")
	Doc(l.name+" computes the 6-row, 64-byte-wide tile C = A·B, or C += A·B when add is set.",
		"A holds k columns of 6 and B holds k rows of one tile width; ldc is the row stride of C in elements.")

	k := Load(Param("k"), GP64())
	a := Load(Param("a"), GP64())
	b := Load(Param("b"), GP64())
	sum := accumulators(l)

	Comment("Unrolled by four.")
	blocks := GP64()
	MOVQ(k, blocks)
	SHRQ(Imm(uint64(bits.TrailingZeros(unroll))), blocks)
	JZ(LabelRef(l.name + "_rest"))
	Label(l.name + "_blocks")
	for p := range unroll {
		l.step(a, b, p, sum)
	}
	l.advance(a, b, unroll)
	DECQ(blocks)
	JNZ(LabelRef(l.name + "_blocks"))

	Label(l.name + "_rest")
	ANDQ(Imm(unroll-1), k)
	JZ(LabelRef(l.name + "_store"))
	Label(l.name + "_single")
	l.step(a, b, 0, sum)
	l.advance(a, b, 1)
	DECQ(k)
	JNZ(LabelRef(l.name + "_single"))

	l.store(sum)
}

// scattered is tile for rows of B that lie anywhere.
func scattered(l lane, like string) {
	TEXT(l.name, NOSPLIT, "func(k int, a, b *"+l.typ+", offsets *int, c *"+l.typ+", ldc int, add bool)")
	Pragma("noescape")
	Doc(l.name + " is " + like + " with row p of B at b[offsets[p]]. It needs k > 0.")

	k := Load(Param("k"), GP64())
	a := Load(Param("a"), GP64())
	b := Load(Param("b"), GP64())
	offsets := Load(Param("offsets"), GP64())
	sum := accumulators(l)

	Label(l.name + "_single")
	row := GP64()
	MOVQ(Mem{Base: offsets}, row)
	LEAQ(Mem{Base: b, Index: row, Scale: uint8(l.size)}, row)
	l.step(a, row, 0, sum)
	ADDQ(U32(rows*l.size), a)
	ADDQ(Imm(8), offsets)
	DECQ(k)
	JNZ(LabelRef(l.name + "_single"))
	l.store(sum)
}

func (l lane) store(sum [rows][2]VecVirtual) {
	Label(l.name + "_store")
	c := Load(Param("c"), GP64())
	stride := Load(Param("ldc"), GP64())
	IMUL3Q(U32(l.size), stride, stride)
	add := Load(Param("add"), GP8())
	TESTB(add, add)
	JZ(LabelRef(l.name + "_overwrite"))
	l.finish(c, stride, sum, true)
	Label(l.name + "_overwrite")
	l.finish(c, stride, sum, false)
}

func accumulators(l lane) (sum [rows][2]VecVirtual) {
	for i := range sum {
		for j := range sum[i] {
			sum[i][j] = YMM()
			l.zero(sum[i][j], sum[i][j], sum[i][j])
		}
	}
	return sum
}

func (l lane) step(a, b Register, p int, sum [rows][2]VecVirtual) {
	b0, b1 := YMM(), YMM()
	l.load(Mem{Base: b, Disp: p * cols}, b0)
	l.load(Mem{Base: b, Disp: p*cols + vector}, b1)
	for i := range sum {
		x := YMM()
		l.broadcast(Mem{Base: a, Disp: (p*rows + i) * l.size}, x)
		l.multiplyAdd(b0, x, sum[i][0])
		l.multiplyAdd(b1, x, sum[i][1])
	}
}

func (l lane) advance(a, b Register, steps int) {
	ADDQ(U32(steps*rows*l.size), a)
	ADDQ(U32(steps*cols), b)
}

func (l lane) finish(c, stride Register, sum [rows][2]VecVirtual, add bool) {
	for i := range sum {
		for j, s := range sum[i] {
			at := Mem{Base: c, Disp: j * vector}
			if add {
				l.add(at, s, s)
			}
			l.load(s, at)
		}
		if i < rows-1 {
			ADDQ(stride, c)
		}
	}
	VZEROUPPER()
	RET()
}
