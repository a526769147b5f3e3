package rounding

import (
	"math"
	"testing"

	"plumb/internal/eager"
	"plumb/op"
	"plumb/ops"
	"plumb/tensor"
)

// TestErrorsAreThoseOfTheFormula: what an operator says of its errors is what
// follows from its formula, step by step, up to a few roundings (of an absolute value: four by its limit, none in truth).
func TestErrorsAreThoseOfTheFormula(t *testing.T) {
	for _, d := range ops.Table().Defs() {
		if d.Errors == nil || d.Formula == nil {
			continue // that has none is held by TestBoundsHold
		}
		compared := 0
		for key := range uint64(60) {
			for from := range sources {
				compared += compareErrors(t, d, key, from)
			}
		}
		if compared < 200 {
			t.Errorf("%s: only %d bounds were compared", d.ID(), compared)
		}
	}
}

// The sources of errors: the operator's own roundings, those of its arguments
// too, or errors of one argument that are so large that little comes from others.
const (
	own = iota
	ofAll
	ofFirst
	sources = ofFirst + 4
)

// large is how many roundings an argument is off that errors come from alone.
const large = 1000

func compareErrors(t *testing.T, d *op.Def, key uint64, from int) (compared int) {
	t.Helper()
	call := sampled(t, d, key)
	s, untouched := newSession(ops.Table(), 0x1p-24), newSession(ops.Table(), 0x1p-24)
	arguments := 0
	wide := widened(call, func(w *tensor.Tensor) {
		switch arguments++; {
		case from == ofAll:
			s.states[w] = &state{err: absolute(w)}
		case from == ofFirst+arguments-1:
			err := absolute(w)
			for i := range err.Len() {
				err.Set(i, large*err.At(i))
			}
			s.states[w] = &state{err: err}
		}
	})
	if from >= ofFirst+arguments {
		return 0
	}
	out, err := eager.New(ops.Table()).Execute(wide)
	if err != nil {
		t.Fatal(err)
	}
	c := s.applied(wide, out)
	said, formula := c.stated(), c.formula()
	if said == nil || formula == nil || formula[0].unknown {
		return 0
	}
	least, most := 1./6, 2.
	switch {
	case from >= ofFirst:
		least, most = 0.9, 1.1
	case call.Args.Float("p") == 2: // no absolute values
		least, most = 0.55, 1.3
	}
	rounding := untouched.applied(wide, out).formula()
	for i := range out[0].(*eager.Var).Len() {
		a, b := errorAt(said[0], i), errorAt(formula[0], i)
		if from >= ofFirst && b < 10*errorAt(rounding[0], i) {
			continue // little comes from the argument
		}
		if compared++; !(a <= most*b+1e-9 && a >= least*b-1e-9) && !(math.IsInf(a, 1) && math.IsInf(b, 1)) {
			t.Errorf("%s%v, sample %d, errors from %d: the error of element %d is %v, by the formula %v", d.ID(), call.Args.Vals, key, from, i, a, b)
			return compared
		}
	}
	return compared
}

func errorAt(st *state, i int) float64 {
	if st.err == nil {
		return 0
	}
	return st.err.Float(i)
}
