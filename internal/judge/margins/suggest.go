package margins

import (
	"fmt"
	"math"
	"strconv"

	"plumb/internal/judge/compare"
	"plumb/op"
)

// Advice is what the data say about the limit of a row.
type Advice struct {
	Do Do `json:"do"`
	// Factor times the present limit is the proposed one: Safety times the
	// largest observed error. Only with Shrink and Grow.
	Factor compare.Number `json:"factor,omitempty"`
	Safety float64        `json:"safety"`
	// Rest bounds, at 95 % confidence, the share of comparisons whose error is
	// above the largest observed one: 3 ÷ count.
	Rest float64 `json:"rest"`
}

// Do is what to do with a limit.
type Do string

// What to do with a limit.
const (
	Keep   Do = "keep"
	Shrink Do = "shrink" // to Factor times the limit
	Grow   Do = "grow"   // likewise, unless a bug made the error
	Equals Do = "equal"  // ask for equal values: no error was observed
	Mend   Do = "mend"   // no limit would do: a NaN, an exact result that differs
	Wait   Do = "wait"   // too few comparisons
)

// DefaultSafety is how much larger than the largest observed error a proposed
// limit is.
const DefaultSafety = 4

// Suggest sets the Advice of every row: limits that data support, with safety,
// at least 1, between them and the largest observed error. The rules, of which
// the first that fits holds:
//
//	an infinite error ÷ limit                 mend
//	an error above the limit                  grow
//	fewer than 100 comparisons                wait
//	an exact limit                            keep
//	no error at all                           equal
//	a thin margin                             grow, if safety × max is above 1
//	safety × max below 1/2                    shrink
//	else                                      keep
func Suggest(rows []Row, safety float64) {
	for i := range rows {
		a := rows[i].advice(safety)
		rows[i].Advice = &a
	}
}

func (r *Row) advice(safety float64) Advice {
	a := Advice{Do: Keep, Safety: safety, Rest: min(3/float64(r.Count), 1)}
	worst := float64(r.Max)
	factor := compare.Number(roundUp(safety * worst))
	switch {
	case math.IsInf(worst, 1):
		a.Do = Mend
	case worst > 1, r.Count >= enough && r.Mark == Thin && factor > 1:
		a.Do, a.Factor = Grow, factor
	case r.Count < enough:
		a.Do = Wait
	case r.Class == op.Exact:
	case worst == 0:
		a.Do = Equals
	case factor < 0.5:
		a.Do, a.Factor = Shrink, factor
	}
	return a
}

// roundUp keeps two significant digits.
func roundUp(v float64) float64 {
	if v == 0 || math.IsInf(v, 0) {
		return v
	}
	exponent := math.Floor(math.Log10(v)) - 1
	digits := math.Ceil(v / math.Pow(10, exponent) * (1 - 1e-12))
	up, _ := strconv.ParseFloat(fmt.Sprintf("%ge%g", digits, exponent), 64)
	return up
}
