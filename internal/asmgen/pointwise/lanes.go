package main

import (
	"bytes"
	"fmt"
	"go/format"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// node is a step of a function of float64 numbers, one in each lane. What it
// becomes in assembly and in Go has the same bits.
type node struct {
	step *step
	args []*node
	bits uint64 // of a constant
	k    int    // which input
}

// step is an operation: its Go text, and its instruction, whose operands are
// in the order of Intel's manual reversed.
type step struct {
	text     string
	emit     func(...Op)
	swaps    bool // the first two arguments may be exchanged
	computes func(e *emitter, n *node) VecVirtual
}

var (
	inputStep    = &step{}
	constantStep = &step{}
)

func input(k int) *node             { return &node{step: inputStep, k: k} }
func pattern(bits uint64) *node     { return &node{step: constantStep, bits: bits} }
func num(v float64) *node           { return pattern(math.Float64bits(v)) }
func (s *step) of(a ...*node) *node { return &node{step: s, args: a} }

// Go fuses no product that is converted.
var (
	addStep   = &step{text: "%s + %s", emit: VADDPD, swaps: true}
	subStep   = &step{text: "%s - %s", emit: VSUBPD}
	mulStep   = &step{text: "float64(%s * %s)", emit: VMULPD, swaps: true}
	divStep   = &step{text: "%s / %s", emit: VDIVPD}
	lesserOf  = &step{text: "lesser(%s, %s)", emit: VMINPD}
	greaterOf = &step{text: "greater(%s, %s)", emit: VMAXPD}
	andStep   = &step{text: "andBits(%s, %s)", emit: VANDPD, swaps: true}
	orStep    = &step{text: "orBits(%s, %s)", emit: VORPD, swaps: true}
	xorStep   = &step{text: "xorBits(%s, %s)", emit: VXORPD, swaps: true}
	bitsPlus  = &step{text: "addBits(%s, %s)", emit: VPADDQ, swaps: true}
	bitsMinus = &step{text: "subBits(%s, %s)", emit: VPSUBQ}
	belowStep = comparison("%s < %s", 0x11)
	aboveStep = comparison("%s > %s", 0x1e)
	equalStep = comparison("%s == %s", 0x00)
	notGEStep = comparison("!(%s >= %s)", 0x19)

	sqrtStep     = &step{text: "math.Sqrt(%s)", computes: unaryStep(VSQRTPD)}
	negativeStep = &step{text: "math.Signbit(%s)", computes: func(e *emitter, n *node) VecVirtual { return e.register(n.args[0]) }}
	fmaStep      = &step{text: "math.FMA(%s, %s, %s)", computes: fused(VFMADD231PD, VFMADD213PD)}
	fnmaStep     = &step{text: "math.FMA(-%s, %s, %s)", computes: fused(VFNMADD231PD, VFNMADD213PD)}
	selectStep   = &step{text: "choose(%s, %s, %s)", computes: (*emitter).blend}
)

func comparison(text string, predicate int) *step {
	return &step{text: text, emit: func(ops ...Op) { VCMPPD(append([]Op{Imm(uint64(predicate))}, ops...)...) }}
}

func unaryStep(emit func(...Op)) func(*emitter, *node) VecVirtual {
	return func(e *emitter, n *node) VecVirtual {
		y := YMM()
		emit(e.operand(n.args[0]), y)
		return y
	}
}

func shift(text string, by int, emit func(...Op)) *step {
	return &step{text: fmt.Sprintf("%s(%%s, %d)", text, by), computes: func(e *emitter, n *node) VecVirtual {
		y := YMM()
		emit(Imm(uint64(by)), e.register(n.args[0]), y)
		return y
	}}
}

func add(a, b *node) *node         { return addStep.of(a, b) }
func sub(a, b *node) *node         { return subStep.of(a, b) }
func mul(a, b *node) *node         { return mulStep.of(a, b) }
func div(a, b *node) *node         { return divStep.of(a, b) }
func sqrt(a *node) *node           { return sqrtStep.of(a) }
func lesser(a, b *node) *node      { return lesserOf.of(a, b) }  // a < b ? a : b
func greaterOr(a, b *node) *node   { return greaterOf.of(a, b) } // a > b ? a : b
func xor(a, b *node) *node         { return xorStep.of(a, b) }
func or(a, b *node) *node          { return orStep.of(a, b) }
func and(a, b *node) *node         { return andStep.of(a, b) }
func addBits(a, b *node) *node     { return bitsPlus.of(a, b) }
func subBits(a, b *node) *node     { return bitsMinus.of(a, b) }
func left(a *node, by int) *node   { return shift("shiftLeft", by, VPSLLQ).of(a) }
func right(a *node, by int) *node  { return shift("shiftRight", by, VPSRLQ).of(a) }
func fma(a, b, c *node) *node      { return fmaStep.of(a, b, c) }  // a·b + c
func fnma(a, b, c *node) *node     { return fnmaStep.of(a, b, c) } // c - a·b
func below(a, b *node) *node       { return belowStep.of(a, b) }
func above(a, b *node) *node       { return aboveStep.of(a, b) }
func equals(a, b *node) *node      { return equalStep.of(a, b) }
func notAtLeast(a, b *node) *node  { return notGEStep.of(a, b) }
func negative(a *node) *node       { return negativeStep.of(a) }
func when(c, yes, no *node) *node  { return selectStep.of(c, yes, no) }
func absolute(a *node) *node       { return and(a, pattern(signBit-1)) }
func negated(a *node) *node        { return xor(a, pattern(signBit)) }
func withSign(a, sign *node) *node { return or(a, and(sign, pattern(signBit))) } // for a ≥ 0, or of that sign

// schedule lists what the root needs, arguments first. Of arguments the one
// that needs most comes first, so that few registers are held meanwhile.
func schedule(root *node) []*node {
	var list []*node
	seen, needs := map[*node]bool{}, map[*node]int{}
	var visit func(n *node)
	visit = func(n *node) {
		if seen[n] {
			return
		}
		seen[n] = true
		args := slices.Clone(n.args)
		slices.SortStableFunc(args, func(a, b *node) int { return depth(b, needs) - depth(a, needs) })
		for _, a := range args {
			visit(a)
		}
		list = append(list, n)
	}
	visit(root)
	return list
}

// depth is the length of the longest way from n to an input.
func depth(n *node, known map[*node]int) int {
	if d, ok := known[n]; ok {
		return d
	}
	d := 0
	for _, a := range n.args {
		d = max(d, 1+depth(a, known))
	}
	known[n] = d
	return d
}

// emitter writes a function's instructions.
type emitter struct {
	inputs []VecVirtual
	at     map[*node]VecVirtual
	left   map[*node]int // uses to come
}

// emit writes the instructions that compute the root from the inputs, which
// are lost.
func emit(root *node, inputs ...VecVirtual) VecVirtual {
	e := &emitter{inputs: inputs, at: map[*node]VecVirtual{}, left: map[*node]int{root: 1}}
	list := schedule(root)
	for _, n := range list {
		for _, a := range n.args {
			e.left[a]++
		}
	}
	for _, n := range list {
		e.write(n)
	}
	return e.register(root)
}

func (e *emitter) write(n *node) {
	switch {
	case n.step == constantStep:
		return
	case n.step == inputStep:
		e.at[n] = e.inputs[n.k]
		return
	case n.step.computes != nil:
		e.at[n] = n.step.computes(e, n)
	default:
		e.at[n] = e.binary(n)
	}
	for _, a := range n.args {
		e.left[a]--
	}
}

func (e *emitter) binary(n *node) VecVirtual {
	a, b := n.args[0], n.args[1]
	if n.step.swaps && a.step == constantStep {
		a, b = b, a
	}
	y := YMM()
	n.step.emit(e.operand(b), e.register(a), y)
	return y
}

// operand is where an argument is, a constant in memory.
func (e *emitter) operand(n *node) Op {
	if n.step == constantStep {
		return bits64(n.bits)
	}
	return e.at[n]
}

func (e *emitter) register(n *node) VecVirtual {
	if n.step == constantStep {
		x := YMM()
		VMOVUPD(bits64(n.bits), x)
		return x
	}
	return e.at[n]
}

// spare is an argument's register if the argument is not used again, else a copy.
func (e *emitter) spare(n *node) VecVirtual {
	if e.dies(n) || n.step == constantStep {
		return e.register(n)
	}
	y := YMM()
	VMOVAPD(e.at[n], y)
	return y
}

func (e *emitter) dies(n *node) bool { return n.step != constantStep && e.left[n] == 1 }

// fused overwrites the addend, or a factor where the addend is constant.
func fused(addend, factor func(...Op)) func(*emitter, *node) VecVirtual {
	return func(e *emitter, n *node) VecVirtual {
		a, b, c := n.args[0], n.args[1], n.args[2]
		if a.step == constantStep {
			a, b = b, a
		}
		if b.step == constantStep || e.dies(c) {
			y := e.spare(c)
			addend(e.operand(b), e.register(a), y)
			return y
		}
		if e.dies(b) {
			a, b = b, a
		}
		y := e.spare(a)
		factor(e.operand(c), e.register(b), y)
		return y
	}
}

func (e *emitter) blend(n *node) VecVirtual {
	y := YMM()
	VBLENDVPD(e.register(n.args[0]), e.operand(n.args[1]), e.register(n.args[2]), y)
	return y
}

// portable collects the Go twins of the functions.
var portable bytes.Buffer

// twin writes the root as a Go function.
func twin(name, doc string, root *node, inputs ...string) {
	fmt.Fprintf(&portable, "\n// %s %s.\nfunc %s(%s float64) float64 {\n", name, doc, name, strings.Join(inputs, ", "))
	names := map[*node]string{}
	for _, n := range schedule(root) {
		switch n.step {
		case inputStep:
			names[n] = inputs[n.k]
		case constantStep:
			names[n] = literal(n.bits)
		default:
			names[n] = fmt.Sprintf("v%d", len(names))
			fmt.Fprintf(&portable, "\t%s := %s\n", names[n], n.text(names))
		}
	}
	fmt.Fprintf(&portable, "\treturn %s\n}\n", names[root])
}

func (n *node) text(names map[*node]string) string {
	var args []any
	for _, a := range n.args {
		args = append(args, names[a])
	}
	return fmt.Sprintf(n.step.text, args...)
}

func literal(bits uint64) string {
	v := math.Float64frombits(bits)
	if plain := math.Abs(v); plain >= 1e-300 && plain <= math.MaxFloat64 || bits == 0 {
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	return fmt.Sprintf("math.Float64frombits(%#x)", bits)
}

// writePortable writes the file of the Go twins.
func writePortable(path string) error {
	head := "// Code generated by internal/asmgen/pointwise. DO NOT EDIT.\n\npackage kernel\n\nimport \"math\"\n"
	text, err := format.Source(slices.Concat([]byte(head), portable.Bytes()))
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o644)
}
