// Command pointwise writes the AVX2 and FMA passes of package kernel over
// float32 elements, one after the other in memory. Functions are computed in
// float64 and rounded once, like the portable ones.
package main

import (
	"flag"
	"fmt"
	"os"
	"strconv"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

func main() {
	path := flag.String("lanes", "", "file for the functions in Go")
	flag.Parse()
	arithmetic("addAVX", "sets dst to a + b", VADDPS)
	arithmetic("subAVX", "sets dst to a - b", VSUBPS)
	arithmetic("mulAVX", "sets dst to a·b", VMULPS)
	arithmetic("divAVX", "sets dst to a / b", VDIVPS)
	arithmetic("maximumAVX", "sets dst to the larger of a and b, or to their NaN", larger(VMAXPS))
	arithmetic("minimumAVX", "sets dst to the smaller of a and b, or to their NaN", larger(VMINPS))
	simple("absAVX", "sets dst to |a|", func(x VecVirtual) { VANDPS(bits64(^uint64(1<<63|1<<31)), x, x) })
	simple("negAVX", "sets dst to -a", func(x VecVirtual) { VXORPS(bits64(1<<63|1<<31), x, x) })
	simple("sqrtAVX", "sets dst to the square root of a", func(x VecVirtual) { VSQRTPS(x, x) })
	simple("reluAVX", "sets dst to 0 where a < 0 and to a elsewhere", func(x VecVirtual) {
		zero := YMM()
		VXORPS(zero, zero, zero)
		VMAXPS(x, zero, x)
	})
	for _, f := range functions {
		f.write()
	}
	powers()
	for _, f := range functions64 {
		f.write64()
	}
	powers64()
	sum()
	squares()
	largest()
	exponentials()
	differences()
	affine()
	affineRow()
	gradientSums("gradSumsAVX", false)
	gradientSums("gradSumsWeightedAVX", true)
	projection("projectAVX", false)
	projection("projectWeightedAVX", true)
	columns()
	tapRow()
	Generate()
	if err := writePortable(*path); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// pass is a loop over n elements at pointers that share one index.
type pass struct {
	name     string
	pointers []Register
	n, i     Register
}

func begin(name, signature string, doc []string, pointers ...string) *pass {
	TEXT(name, NOSPLIT, signature)
	Pragma("noescape")
	Doc(doc...)
	p := &pass{name: name}
	for _, at := range pointers {
		p.pointers = append(p.pointers, Load(Param(at), GP64()))
	}
	p.n = Load(Param("n"), GP64())
	p.i = GP64()
	XORQ(p.i, p.i)
	return p
}

// at is elements offset, offset+1, … of the pass's step behind pointer k.
func (p *pass) at(k, offset int) Mem {
	return Mem{Base: p.pointers[k], Index: p.i, Scale: 4, Disp: 4 * offset}
}

// whole runs the body for every step elements as long as so many remain.
func (p *pass) whole(label string, step int, body func()) {
	end := GP64()
	LEAQ(Mem{Base: p.n, Disp: 1 - step}, end)
	Label(p.name + label)
	CMPQ(p.i, end)
	JGE(LabelRef(p.name + label + "_end"))
	body()
	ADDQ(Imm(uint64(step)), p.i)
	JMP(LabelRef(p.name + label))
	Label(p.name + label + "_end")
}

// rest runs the body once with a mask of the remaining elements, if any remain.
func (p *pass) rest(mask VecVirtual, body func()) {
	SUBQ(p.i, p.n)
	JLE(LabelRef(p.name + "_done"))
	table := NewDataAddr(masks().Symbol, 32)
	base := GP64()
	LEAQ(table, base)
	NEGQ(p.n)
	VMOVDQU(Mem{Base: base, Index: p.n, Scale: 4}, mask)
	body()
	Label(p.name + "_done")
}

func finish() {
	VZEROUPPER()
	RET()
}

// arithmetic works on eight elements at a time.
func arithmetic(name, doc string, op func(...Op)) {
	p := begin(name, "func(dst, a, b *float32, n int)", []string{name + " " + doc + "."}, "dst", "a", "b")
	p.whole("_blocks", 32, func() {
		for k := 0; k < 32; k += 8 {
			x := YMM()
			VMOVUPS(p.at(1, k), x)
			op(p.at(2, k), x, x)
			VMOVUPS(x, p.at(0, k))
		}
	})
	p.whole("_single", 8, func() {
		x := YMM()
		VMOVUPS(p.at(1, 0), x)
		op(p.at(2, 0), x, x)
		VMOVUPS(x, p.at(0, 0))
	})
	mask := YMM()
	p.rest(mask, func() {
		x, y := YMM(), YMM()
		VMASKMOVPS(p.at(1, 0), mask, x)
		VMASKMOVPS(p.at(2, 0), mask, y)
		op(y, x, x)
		VMASKMOVPS(x, mask, p.at(0, 0))
	})
	finish()
}

// larger makes of VMAXPS or VMINPS, which return b where either is NaN, one
// that returns a where that is NaN.
func larger(pick func(...Op)) func(...Op) {
	return func(ops ...Op) {
		b, a := ops[0], ops[1].(VecVirtual)
		picked, mask := YMM(), YMM()
		pick(b, a, picked)
		VCMPPS(Imm(0x03), a, a, mask)
		VBLENDVPS(mask, a, picked, ops[2])
	}
}

// simple writes a pass over float32 elements that changes a vector of 8 in place.
func simple(name, doc string, change func(VecVirtual)) {
	p := begin(name, "func(dst, a *float32, n int)", []string{name + " " + doc + "."}, "dst", "a")
	for _, step := range []int{32, 8} {
		p.whole("_"+strconv.Itoa(step), step, func() {
			for k := 0; k < step; k += 8 {
				x := YMM()
				VMOVUPS(p.at(1, k), x)
				change(x)
				VMOVUPS(x, p.at(0, k))
			}
		})
	}
	mask := YMM()
	p.rest(mask, func() {
		x := YMM()
		VMASKMOVPS(p.at(1, 0), mask, x)
		change(x)
		VMASKMOVPS(x, mask, p.at(0, 0))
	})
	finish()
}

// function is one of float32 elements, computed in float64, four at a time.
type function struct {
	name, doc string
	of        func(x *node) *node
}

var functions = []function{
	{"exp", "e^a", func(x *node) *node { return exp(clamp(x, 700)) }},
	{"exp2", "2^a", exp2},
	{"expm1", "e^a - 1", expm1},
	{"sigmoid", "1 / (1 + e^-a)", sigmoid},
	{"silu", "a / (1 + e^-a)", silu},
	{"mish", "a·tanh(log(1 + e^a))", mish},
	{"tanh", "the hyperbolic tangent of a", tanh},
	{"sinh", "the hyperbolic sine of a", sinh},
	{"cosh", "the hyperbolic cosine of a", cosh},
	{"erf", "the error function of a", erf},
	{"erfc", "1 - erf a", erfc},
	{"gelu", "a·Φ(a)", gelu},
	{"geluTanh", "a / (1 + e^(-2u)), u = √(2/π)·(a + 0.044715·a³)", geluTanh},
	{"log", "the natural logarithm of a", log},
	{"log2", "the binary logarithm of a", log2},
	{"log10", "the decimal logarithm of a", log10},
	{"log1p", "log(1 + a)", log1p},
	{"logSigmoid", "log(1 / (1 + e^-a))", logSigmoid},
	{"asinh", "the inverse hyperbolic sine of a", asinh},
	{"acosh", "the inverse hyperbolic cosine of a", acosh},
	{"atanh", "the inverse hyperbolic tangent of a", atanh},
	{"sin", "the sine of a, for |a| < 2^28", sin},
	{"cos", "the cosine of a, for |a| < 2^28", cos},
	{"tan", "the tangent of a, for |a| < 2^28", tan},
	{"asin", "the arc sine of a", asin},
	{"acos", "the arc cosine of a", acos},
	{"atan", "the arc tangent of a", atan},
	{"rsqrt", "1 / √a", rsqrt},
}

func (f function) write() {
	x := input(0)
	root := when(equals(x, x), f.of(x), x)
	p := begin(f.name+"AVX", "func(dst, a *float32, n int)", []string{f.name + "AVX sets dst to " + f.doc + "."}, "dst", "a")
	p.each(func(get func(k int) VecVirtual) VecVirtual { return emit(root, get(1)) })
	finish()
	twin(f.name+"Lane", "returns "+f.doc, root, "a")
}

// each sets the elements of pointer 0 to what the body makes of others, in
// float64.
func (p *pass) each(body func(get func(k int) VecVirtual) VecVirtual) {
	round := func(x VecVirtual) VecVirtual {
		y := XMM()
		VCVTPD2PSY(x, y)
		return y
	}
	p.whole("_loop", 4, func() {
		VMOVUPS(round(body(func(k int) VecVirtual { return p.wide(k, 0) })), p.at(0, 0))
	})
	mask := XMM()
	p.rest(mask, func() {
		VMASKMOVPS(round(body(func(k int) VecVirtual {
			x, y := XMM(), YMM()
			VMASKMOVPS(p.at(k, 0), mask, x)
			VCVTPS2PD(x, y)
			return y
		})), mask, p.at(0, 0))
	})
}

// wide loads four elements as float64.
func (p *pass) wide(k, offset int) VecVirtual {
	x := YMM()
	VCVTPS2PD(p.at(k, offset), x)
	return x
}

// number loads a float64 parameter into all lanes.
func number(name string) VecVirtual {
	x := YMM()
	VBROADCASTSD(addressOf(name), x)
	return x
}

func addressOf(name string) Mem {
	at, err := Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	return at.Addr
}

func powers() {
	const doc = "a raised to b, for finite a other than 0, and |b| < 2^31"
	p := begin("powAVX", "func(dst, a, b *float32, n int)", []string{"powAVX sets dst to " + doc + "."}, "dst", "a", "b")
	root := power(input(0), input(1))
	p.each(func(get func(k int) VecVirtual) VecVirtual { return emit(root, get(1), get(2)) })
	finish()
	twin("powLane", "returns "+doc, root, "a", "b")
}
