package shrink

import (
	"math"
	"slices"

	"plumb/program"
	"plumb/tensor"
)

// maxLiteral bounds the elements of inputs that are written out.
const maxLiteral = 64

// simplifyValues gives inputs and cotangents simpler elements: all ones, all
// zeros, small integers; then written out, all but one zero, and each by itself.
func (s *search) simplifyValues() bool {
	taken := false
	for i := range s.best().Backward {
		taken = s.edit(func(p *program.Program) { p.Backward[i].Cotangent = program.Fill{} }) || taken
	}
	for i := range s.best().Inputs {
		taken = s.fills(i) || taken
	}
	for i := range s.best().Inputs {
		taken = s.elements(i) || taken
	}
	return taken
}

// fills tries whole distributions for input i.
func (s *search) fills(i int) bool {
	in := &s.best().Inputs[i]
	if in.Fill.Dist == program.Literal {
		return false
	}
	for _, f := range []program.Fill{
		{Dist: program.Integer, Lo: 0, Hi: 1},
		{Dist: program.Integer, Lo: 1, Hi: 2},
		{Dist: program.Integer, Lo: -3, Hi: 4, Key: in.Fill.Key},
		{Dist: in.Fill.Dist, Lo: in.Fill.Lo, Hi: in.Fill.Hi, Key: in.Fill.Key},
	} {
		if s.edit(func(p *program.Program) { p.Inputs[i].Fill = f }) {
			return true
		}
	}
	return false
}

// elements writes input i out and simplifies its elements.
func (s *search) elements(i int) bool {
	in := &s.best().Inputs[i]
	n := tensor.NumElements(in.Shape)
	if n == 0 || n > maxLiteral {
		return false
	}
	literal := in.Materialize().Contiguous()
	write := func(t *tensor.Tensor) bool {
		return s.edit(func(p *program.Program) { p.Inputs[i].Fill = program.Fill{Dist: program.Literal, Data: t} })
	}
	taken := false
	take := func(t *tensor.Tensor) bool {
		if write(t) {
			literal, taken = t, true
			return true
		}
		return false
	}
	take(literal)
	for k := range n {
		if take(only(literal, k)) {
			break
		}
	}
	for k := range n {
		for _, v := range simplerElements(literal.At(k)) {
			t := literal.Clone()
			t.Set(k, v)
			if take(t) {
				break
			}
		}
	}
	return taken
}

// only returns t with all elements but one zero.
func only(t *tensor.Tensor, k int) *tensor.Tensor {
	out := tensor.New(t.DType(), t.Shape()...)
	out.Set(k, t.At(k))
	return out
}

// simplerElements returns values to try in the place of an element, the
// simplest first.
func simplerElements(v complex128) []complex128 {
	var out []complex128
	for _, f := range []float64{0, 1, -1, 2, math.Round(real(v)), math.Round(real(v)*4) / 4, math.Round(real(v)*64) / 64} {
		c := complex(f, 0)
		if c != v && !math.IsNaN(f) && !slices.Contains(out, c) {
			out = append(out, c)
		}
	}
	if imag(v) != 0 {
		out = append(out, complex(real(v), 0), complex(0, 1))
	}
	return out
}
