package native

import (
	"math"
	"testing"

	"plumb/eager"
	"plumb/op"
	"plumb/ops"
	"plumb/tensor"
)

// TestErrorsAreThoseOfTheFormula: what an operator says of its errors is what
// follows from its formula, step by step, up to a few roundings (of an absolute value: four by its limit, none in truth).
func TestErrorsAreThoseOfTheFormula(t *testing.T) {
	for _, d := range ops.Table().Defs() {
		if d.Errors == nil {
			continue
		}
		compared := 0
		for key := range uint64(60) {
			for _, rounded := range []bool{false, true} {
				compared += compareErrors(t, d, key, rounded)
			}
		}
		if compared < 200 {
			t.Errorf("%s: only %d bounds were compared", d.ID(), compared)
		}
	}
}

func compareErrors(t *testing.T, d *op.Def, key uint64, rounded bool) (compared int) {
	t.Helper()
	call := sampled(t, d, key)
	s := &errorSession{table: ops.Table(), states: map[*tensor.Tensor]*state{}, unit: 0x1p-24}
	wide := widened(call, func(w *tensor.Tensor) {
		if rounded {
			s.states[w] = &state{err: absolute(w)}
		}
	})
	out, err := eager.New(ops.Table()).Execute(wide)
	if err != nil {
		t.Fatal(err)
	}
	own, formula := s.errors(wide, out), s.formula(wide, out)
	if own == nil || formula == nil || formula[0].unknown {
		return 0
	}
	least, most := 1./6, 2.
	if call.Args.Float("p") == 2 { // no absolute values
		least, most = 0.55, 1.3
	}
	for i := range out[0].(*eager.Var).Len() {
		a, b := errorAt(own[0], i), errorAt(formula[0], i)
		if compared++; !(a <= most*b+1e-9 && a >= least*b-1e-9) && !(math.IsInf(a, 1) && math.IsInf(b, 1)) {
			t.Errorf("%s%v, sample %d, rounded inputs %v: the error of element %d is %v, by the formula %v", d.ID(), call.Args.Vals, key, rounded, i, a, b)
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
