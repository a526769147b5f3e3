package verdict

import (
	"math"
	"testing"

	"plumb/backend"
	"plumb/internal/judge/compare"
	"plumb/program"
	"plumb/tensor"
)

// TestOverflowsThatTheOrderDecides: of a sum whose terms exceed the dtype
// either side may be infinite; of any other sum neither.
func TestOverflowsThatTheOrderDecides(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		name         string
		input        []float64
		want, got    float64
		truth, terms float64 // the truth is the reference's in float64
		word         Word
	}{
		{"terms exceed float32", []float64{3e38, -3e38, 3e38}, inf, 3e38, 3e38, 9e38, Aligned},
		{"and one order gives NaN", []float64{3e38, -3e38, 3e38}, 3e38, math.NaN(), 3e38, 9e38, Aligned},
		{"terms do not", []float64{1, 2, 3}, inf, 6, 6, 6, Aligned}, // the candidate has the sum that float64 has
		{"the same, rounded otherwise", []float64{1, 2, 3}, inf, 6.000002, 6, 6, Aligned},
		{"the same, and the candidate is off", []float64{1, 2, 3}, inf, 6.00002, 6, 6, Misaligned},
		{"a subnormal sum", []float64{1e-39, 0, 0}, math.NaN(), 1.000002e-39, 1e-39, 1e-39, Aligned},
		{"terms do not, and the reference is infinite in float64 too", []float64{1, 2, 3}, inf, 6, inf, 6, Misaligned},
		{"a NaN that is lost", []float64{1, math.NaN(), 3}, math.NaN(), 4, math.NaN(), 4, Misaligned},
		{"terms do not, the candidate overflows", []float64{1, 2, 3}, 6, inf, 6, 6, Misaligned},
		{"an infinite term beside huge ones", []float64{inf, -3e38, -3e38}, inf, math.NaN(), inf, inf, Aligned},
		{"an infinite term beside small ones", []float64{inf, -3, -3}, inf, math.NaN(), inf, inf, Misaligned},
		{"finite on both sides", []float64{3e38, 3e38, -3e38}, 3e38, 1e38, 3e38, 9e38, Misaligned},
	} {
		x := tensor.Float64s(tensor.F32, []int{3}, c.input...)
		p := &program.Program{
			Inputs: []program.Input{{Name: "x", DType: tensor.F32, Shape: []int{3}, Fill: program.Fill{Dist: program.Literal, Data: x}}},
			Calls:  []program.Call{{Result: "y", Target: "torch.sum", Args: []any{program.Ref("x")}}},
		}
		outcome := func(v float64) *backend.Outcome {
			return &backend.Outcome{Status: backend.OK, Values: []backend.Value{{Tensor: tensor.Float64s(tensor.F32, nil, v)}}}
		}
		scalar := func(v float64) *tensor.Tensor { return tensor.Float64s(tensor.F64, nil, v) }
		oracle := &Oracle{Truth: &backend.Outcome{Status: backend.OK, Values: []backend.Value{{Tensor: scalar(c.truth)}}}}
		v := Judge(p, outcome(c.want), outcome(c.got), Policy{Oracle: oracle, Rounding: bounded{scalar(c.truth), scalar(c.terms)}})
		if v.Word != c.word {
			t.Errorf("%s: %s: %s", c.name, v.Word, v.Reason)
		}
	}
}

// bounded is the rounding of one sum of three terms.
type bounded struct{ value, terms *tensor.Tensor }

func (b bounded) Bounds(bool) *compare.Bounds {
	err := tensor.Float64s(tensor.F64, nil, 3*b.terms.Float(0))
	return &compare.Bounds{Values: []compare.ValueBound{{Bound: &compare.Bound{Value: b.value, Error: err, Terms: b.terms, Count: 3}}}}
}

func (b bounded) Outline(bool) *compare.Bounds { return nil }

func (b bounded) Call(*program.Program) *compare.Bounds { return nil }

func (b bounded) Draws() [][]backend.Draw { return nil }
