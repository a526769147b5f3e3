package kernel

import (
	"math"
	"sync/atomic"
)

// RoundedRows are rows whose elements carry bounds of their errors, and how the
// steps of a distance round: errors are in units of Unit, a roundoff, and the
// roundings of a step in those of its result.
type RoundedRows struct {
	Rows[float64]
	Errs Rows[float64] // of X and Y, of the same batch and sizes
	Unit float64
	// Whole says that the elements are integers, so that what is less than
	// 1/Unit does not round.
	Whole          bool
	Sum            float64 // of a sum of K terms; for gradients, of N
	Sqrt, Pow, Div float64
}

// nearby is how many roundoffs of its error a number may be away from where a
// slope jumps.
const nearby = 4

// errorStep is how far the factors of a product are moved to see how far it moves.
const errorStep = 0x1p-20

// differences are those between two rows: their magnitudes, the bounds of their
// errors, and the part of these that came with the operands.
type differences struct{ v, err, inherited []float64 }

func newDifferences(k int) differences {
	return differences{make([]float64, k), make([]float64, k), make([]float64, k)}
}

// between sets d to the differences of rows i and j. A difference rounds by
// |x| + |y|, as one that is taken apart does (x·x − 2x·y + y·y for the order 2);
// without, equal numbers leave exactly nothing.
func (r *RoundedRows) between(d differences, x, y, ex, ey []float64, apart bool) {
	n := len(d.v)
	x, y, ex, ey, errs, inherited := x[:n], y[:n], ex[:n], ey[:n], d.err[:n], d.inherited[:n]
	whole := r.whole()
	for k := range d.v {
		a, b := math.Abs(x[k]), math.Abs(y[k])
		v, from, own := math.Abs(x[k]-y[k]), ex[k]+ey[k], a+b
		if a == 0 && ex[k] == 0 || b == 0 && ey[k] == 0 || v == 0 && from == 0 && !apart {
			own = 0
		}
		d.v[k], errs[k], inherited[k] = v, from+rounding(own, whole), from
	}
}

// whole is up to where numbers do not round.
func (r *RoundedRows) whole() float64 {
	if r.Whole {
		return 1 / r.Unit
	}
	return -1
}

// rounding is what a term rounds by, times its roundings: nothing when it is
// infinite, or so small that it does not round.
func rounding(t, whole float64) float64 {
	if t <= whole || t > math.MaxFloat64 {
		return 0
	}
	return t
}

// certain reports whether no difference that is not exact is so small that its
// sign could be another one.
func (r *RoundedRows) certain(d differences) bool {
	for k, v := range d.v {
		if s := d.inherited[k]; s != 0 && !(v > nearby*r.Unit*s) {
			return false
		}
	}
	return true
}

// DistanceErrors sets errs to bounds of the errors of Distances, whose results
// are d. It reports false where none holds, because the order 0 counts a
// difference that may be none.
func DistanceErrors(r RoundedRows, p float64, d, errs []float64) bool {
	var failed atomic.Bool
	bound := r.normError(p)
	r.each(func(lo, hi int) {
		between := newDifferences(r.K)
		for i := lo; i < hi; i++ {
			x, y := r.pairs(i)
			ex, ey := r.Errs.pairs(i)
			for j := range r.N {
				r.between(between, x, y.at(j), ex, ey.at(j), p == 2)
				if p == 0 && !r.certain(between) {
					failed.Store(true)
					return
				}
				errs[i*r.N+j] = bound(between, d[i*r.N+j])
			}
		}
	})
	return !failed.Load()
}

// normError returns the bound of the error of a norm of differences, which is d.
func (r *RoundedRows) normError(p float64) func(x differences, d float64) float64 {
	switch {
	case p == 0:
		return func(_ differences, d float64) float64 { return r.Sum * rounding(d, r.whole()) }
	case p == 1:
		return func(x differences, d float64) float64 {
			e := r.Sum * rounding(d, r.whole())
			for _, err := range x.err {
				e += err
			}
			return e
		}
	case p == 2:
		return r.euclideanError
	case math.IsInf(p, 1):
		return r.largestError
	}
	return func(x differences, d float64) float64 { return r.powerError(x, p, d) }
}

func (r *RoundedRows) euclideanError(x differences, d float64) float64 {
	sum, e, whole, errs := 0.0, 0.0, r.whole(), x.err[:len(x.v)]
	for k, v := range x.v {
		square, err := v*v, errs[k]
		sum += square
		e += 2*v*err + errorStep*err*err + rounding(square, whole)
	}
	if e += r.Sum * rounding(sum, whole); e == 0 {
		return r.Sqrt * d
	}
	return r.Sqrt*d + e/(2*d)
}

func (r *RoundedRows) largestError(x differences, d float64) float64 {
	low, high := math.Inf(-1), d
	for k, v := range x.v {
		low, high = max(low, v-r.Unit*x.err[k]), max(high, v+r.Unit*x.err[k])
	}
	if off := max(high-d, d-low); off > 0 && len(x.v) > 0 {
		return (off + 0x1p-52*d) / r.Unit
	}
	return 0
}

func (r *RoundedRows) powerError(x differences, p, d float64) float64 {
	sum, e := 0.0, 0.0
	for k, v := range x.v {
		power := Power(v, p)
		sum += power
		e += r.Pow * power
		if x.err[k] != 0 {
			e += p * Power(v, p-1) * x.err[k]
		}
	}
	if e += r.Sum * sum; e == 0 {
		return r.Pow * d
	}
	return r.Pow*d + Power(sum, 1/p-1)/p*e
}

// Rounded are numbers with bounds of their errors.
type Rounded struct {
	Values, Errs []float64
	Whole        bool // integers
}

// DistanceGradErrors sets errs to bounds of the errors of DistanceGrads with
// the gradient g and the distances d. It reports false where none holds,
// because the gradient jumps nearby.
func DistanceGradErrors(r RoundedRows, p float64, g, d Rounded, errs []float64) bool {
	var failed atomic.Bool
	slopes, weight := r.slopeErrors(p), r.weightError(p)
	exact := r.Whole && g.Whole && (p == 1 || math.IsInf(p, 1))
	r.each(func(lo, hi int) {
		between, slope := newDifferences(r.K), Rounded{Values: make([]float64, r.K), Errs: make([]float64, r.K)}
		terms := make([]float64, r.K)
		for i := lo; i < hi; i++ {
			clear(terms)
			to := errs[i*r.K:][:r.K]
			clear(to)
			x, y := r.pairs(i)
			ex, ey := r.Errs.pairs(i)
			for j := range r.N {
				at := i*r.N + j
				r.between(between, x, y.at(j), ex, ey.at(j), p == 2)
				w, ew, smooth := weight(math.Abs(g.Values[at]), g.Errs[at], d.Values[at], d.Errs[at])
				if !smooth || !slopes(between, d.Values[at], d.Errs[at], slope) {
					failed.Store(true)
					return
				}
				addTerms(to, terms, slope, w, ew, exact)
			}
			for k, t := range terms {
				if !(exact && t <= 1/r.Unit) {
					to[k] += r.Sum * t
				}
			}
		}
	})
	return !failed.Load()
}

// addTerms adds up the products of slopes and a weight, and bounds of their
// errors, which are two roundings each unless they are exact.
func addTerms(errs, terms []float64, slope Rounded, w, ew float64, exact bool) {
	for k, s := range slope.Values {
		es, t := slope.Errs[k], s*w
		terms[k] += t
		errs[k] += s*ew + w*es + errorStep*es*ew
		if !exact {
			errs[k] += 2 * t
		}
	}
}

// weightError returns what the slopes of a distance d with the gradient g are
// weighted by, its error, and whether no jump is nearby.
func (r *RoundedRows) weightError(p float64) func(g, eg, d, ed float64) (w, ew float64, smooth bool) {
	switch {
	case p == 1 || math.IsInf(p, 1):
		return func(g, eg, d, ed float64) (float64, float64, bool) { return g, eg, true }
	case p < 1:
		return func(g, eg, d, ed float64) (float64, float64, bool) {
			n := Power(d, 1-p)
			en := r.Pow * n
			if ed != 0 {
				en += (1 - p) * Power(d, -p) * ed
			}
			return g * n, g*en + n*eg + g*n, true
		}
	}
	return func(g, eg, d, ed float64) (w, ew float64, smooth bool) {
		switch {
		case ed != 0 && !(d > nearby*r.Unit*ed):
			return 0, 0, false
		case d == 0:
			return 0, 0, true
		}
		n, en := d, ed
		if p != 2 {
			n = Power(d, p-1)
			en = r.Pow*n + (p-1)*n/d*ed
		}
		w = g / n
		return w, r.Div*w + eg/n + w*en/n, true
	}
}

// slopeErrors returns what sets slopes to those of a distance d along the
// differences, without their sign and weight. It reports whether no jump is nearby.
func (r *RoundedRows) slopeErrors(p float64) func(x differences, d, ed float64, slope Rounded) bool {
	switch {
	case p == 2:
		return func(x differences, _, _ float64, slope Rounded) bool {
			copy(slope.Values, x.v)
			copy(slope.Errs, x.err)
			return true
		}
	case math.IsInf(p, 1):
		return r.largestSlope
	}
	return func(x differences, _, _ float64, slope Rounded) bool {
		for k, v := range x.v {
			slope.Values[k], slope.Errs[k] = r.powerSlope(v, x.err[k], p-1)
		}
		return r.certain(x)
	}
}

// powerSlope is vᵖ for a difference v, and its error; 0 for none, unless p is
// positive.
func (r *RoundedRows) powerSlope(v, err, p float64) (s, es float64) {
	switch {
	case v == 0 && p <= 0:
		return 0, 0
	case p == 0:
		return 1, 0
	}
	s = Power(v, p)
	if es = r.Pow * s; err != 0 {
		es += math.Abs(p) * Power(v, p-1) * err
	}
	return s, es
}

// largestSlope finds the one difference that is the distance; others are
// smaller by more than their errors unless everything is exact.
func (r *RoundedRows) largestSlope(x differences, d, ed float64, slope Rounded) bool {
	clear(slope.Errs)
	found, exact := 0, true
	for k, v := range x.v {
		slope.Values[k] = 0
		if off := x.err[k] + ed; v >= d-nearby*r.Unit*off {
			found++
			exact = exact && off == 0
			slope.Values[k] = 1
			if v == 0 {
				slope.Values[k] = 0
			}
		}
	}
	return (exact || found <= 1) && r.certain(x)
}
