// Package turns writes loops that take eight elements a turn.
package turns

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// Loop is a pass over n elements, a positive multiple of eight.
type Loop struct {
	dst, src, i, n Register
	Aside          []func() // code that a turn seldom jumps to
}

// Begin begins a function of that name, with more parameters after dst, src and n.
func Begin(name, dst, src, more, doc string) *Loop {
	TEXT(name, NOSPLIT, "func(dst *"+dst+", src *"+src+", n int"+more+")")
	Pragma("noescape")
	Doc(name + " " + doc + ".")
	l := &Loop{dst: Load(Param("dst"), GP64()), src: Load(Param("src"), GP64()), n: Load(Param("n"), GP64()), i: GP64()}
	XORQ(l.i, l.i)
	return l
}

// To is where element k of a turn is put, of a size in bytes.
func (l *Loop) To(size, k int) Mem {
	return Mem{Base: l.dst, Index: l.i, Scale: uint8(size), Disp: size * k}
}

// From is where element k of a turn is read.
func (l *Loop) From(size, k int) Mem {
	return Mem{Base: l.src, Index: l.i, Scale: uint8(size), Disp: size * k}
}

// Turns ends the function: body is a turn.
func (l *Loop) Turns(body func()) {
	Label("turn")
	body()
	ADDQ(Imm(8), l.i)
	CMPQ(l.i, l.n)
	JL(LabelRef("turn"))
	VZEROUPPER()
	RET()
	for _, code := range l.Aside {
		code()
	}
}
