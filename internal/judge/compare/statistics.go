package compare

import (
	"fmt"
	"math"
	"slices"

	"plumb/op"
	"plumb/tensor"
)

// FalseAlarms bounds how probable it is that the comparison of two results of
// a random operator finds a fault where there is none.
const FalseAlarms = 1e-9

// statistics is how many tests share FalseAlarms: the distribution, the mean,
// the spread, the share of one of two outcomes, repetition, and both sides
// against each other.
const statistics = 6

const level = FalseAlarms / statistics

// The rules of random results.
const (
	Support      Rule = "support"      // a result that cannot be drawn
	Distribution Rule = "distribution" // results that are not drawn like this
	Relation     Rule = "relation"     // a gradient that does not fit the side's own draws
)

// Fit says how well draws follow a law.
type Fit struct {
	Ratio   Number // the largest statistic ÷ critical value; above 1 the draws do not follow it
	Test    string // which that was
	Message string
}

func (f *Fit) worse(ratio float64, test, format string, args ...any) {
	if ratio > float64(f.Ratio) {
		*f = Fit{Number(ratio), test, fmt.Sprintf(format, args...)}
	}
}

// grain is how much of a distribution's mass the roundings and the coarse
// uniform numbers of a dtype may misplace.
func grain(d tensor.DType) float64 {
	if !d.IsDifferentiable() {
		return 0
	}
	return 4 * Roundoff(d)
}

// Drawn is what was drawn, and the law of it.
type Drawn struct {
	Draws []op.Draw
	Law   *op.Law

	below, upto []float64 // see ends
}

// Follows tests whether the draws behind a result of a shape and dtype follow
// their law. A sample that does, does not fail with a probability of more than
// FalseAlarms.
func (s *Drawn) Follows(shape []int, d tensor.DType) Fit {
	var f Fit
	draws, law := s.Draws, s.Law
	if len(draws) == 0 {
		return f
	}
	g := 0.0
	if !law.Atoms {
		g = grain(d)
	}
	s.kolmogorov(&f, g)
	if law.Atoms || Roundoff(d) < 0x1p-20 {
		moments(&f, draws)
	}
	if law.Two {
		share(&f, draws)
	}
	repeats(&f, draws, shape, g)
	return f
}

// ends returns the sorted ends of the draws' places, widened for what another
// implementation rounds differently.
func (s *Drawn) ends() (below, upto []float64) {
	if s.below != nil {
		return s.below, s.upto
	}
	s.below, s.upto = make([]float64, len(s.Draws)), make([]float64, len(s.Draws))
	for i, d := range s.Draws {
		slack := 0.0
		if !s.Law.Atoms {
			slack = d.Upto - d.Below
		}
		s.below[i], s.upto[i] = d.Below-slack, d.Upto+slack
	}
	for _, list := range [][]float64{s.below, s.upto} {
		if !sortFew(list) {
			sortEven(list)
		}
	}
	return s.below, s.upto
}

// fewValues is how many values sortFew can tell apart.
const fewValues = 8

// sortFew sorts a list of few values by counting them; false leaves a list of
// more, or with a NaN, as it is.
func sortFew(list []float64) bool {
	var values [fewValues]float64
	var counts [fewValues]int
	known := 0
	for _, v := range list {
		if v != v {
			return false
		}
		k := 0
		for k < known && values[k] != v {
			k++
		}
		if k == known {
			if known == fewValues {
				return false
			}
			values[k] = v
			known++
		}
		counts[k]++
	}
	at := 0
	for range known {
		least := -1
		for k := range known {
			if counts[k] > 0 && (least < 0 || values[k] < values[least]) {
				least = k
			}
		}
		for range counts[least] {
			list[at] = values[least]
			at++
		}
		counts[least] = 0
	}
	return true
}

// sortEven sorts numbers that mostly lie evenly between 0 and 1: into as many
// buckets as leave a few for each, which are sorted one by one.
func sortEven(list []float64) {
	buckets := len(list)/4 + 1
	bucket := func(v float64) int {
		switch {
		case v >= 1:
			return buckets - 1
		case v > 0:
			return int(v * float64(buckets-1))
		}
		return 0
	}
	ends := make([]int, buckets)
	for _, v := range list {
		ends[bucket(v)]++
	}
	at := 0
	for i, n := range ends {
		ends[i] = at
		at += n
	}
	for _, v := range slices.Clone(list) {
		i := bucket(v)
		list[ends[i]] = v
		ends[i]++
	}
	at = 0
	for _, end := range ends {
		slices.Sort(list[at:end])
		at = end
	}
}

// dkw is the critical value of the Kolmogorov–Smirnov statistic of n draws,
// P(D > c) ≤ 2·exp(-2nc²): Dvoretzky, Kiefer and Wolfowitz with the constant of
// Massart, "The tight constant in the Dvoretzky-Kiefer-Wolfowitz inequality" (1990).
func dkw(n int, level float64) float64 { return math.Sqrt(math.Log(2/level) / (2 * float64(n))) }

func (s *Drawn) kolmogorov(f *Fit, grain float64) {
	below, upto := s.ends()
	n, dist := float64(len(below)), 0.0
	for i := range below {
		dist = max(dist, float64(i+1)/n-upto[i], below[i]-float64(i)/n)
	}
	f.worse(dist/(dkw(len(below), level)+grain), "Kolmogorov-Smirnov",
		"the distribution of %d draws is %.3g away from the operator's, beyond %.3g", len(below), dist, dkw(len(below), level)+grain)
}

// normal returns the critical value of a standard normal number, both tails.
func normal(level float64) float64 { return math.Sqrt2 * math.Erfcinv(level) }

// moments tests mean and variance of the draws' normal scores: where in its
// place a draw lies is made up, so that they are normal and independent.
func moments(f *Fit, draws []op.Draw) {
	n := float64(len(draws))
	sum, squares := 0.0, 0.0
	for _, d := range draws {
		u := d.Below + jitter(d.At)*(d.Upto-d.Below)
		z := -math.Sqrt2 * math.Erfcinv(2*min(max(u, 0x1p-1000), 1-0x1p-53))
		sum += z
		squares += z * z
	}
	critical := normal(level)
	f.worse(math.Abs(sum)/math.Sqrt(n)/critical, "mean",
		"the mean of %d draws is %.3g standard errors off, beyond %.3g", len(draws), sum/math.Sqrt(n), critical)
	if x := squares / n; n >= 8 && math.Abs(x-1) > 1e-9 {
		z := chiSquare(x, n)
		f.worse(math.Abs(z)/critical, "spread",
			"the variance of %d draws is %.4g times the operator's, %.3g standard errors off, beyond %.3g", len(draws), x, z, critical)
	}
}

// chiSquare turns the mean of n squares of standard normal numbers into a
// standard normal number: the saddle point approximation of Barndorff-Nielsen
// and Lugannani and Rice, whose relative error stays small in the tails.
func chiSquare(x, n float64) float64 {
	r := math.Copysign(math.Sqrt(n*(x-1-math.Log(x))), x-1)
	return r + math.Log((x-1)*math.Sqrt(n/2)/r)/r
}

// jitter returns a number in (0, 1) that depends on i alone: SplitMix64.
func jitter(i int) float64 {
	x := uint64(i)*0x9e3779b97f4a7c15 + 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return (float64((x^x>>31)>>11) + 0.5) * 0x1p-53
}

// chernoff returns √(n·KL(share, p) ÷ ln(1/level)): above 1, the probability
// that n independent events, p of them expected on the average, occur as often
// or as seldom is less than level. Hoeffding, "Probability inequalities for
// sums of bounded random variables" (1963), theorem 1.
func chernoff(count, n, p, level float64) float64 {
	q := count / n
	return math.Sqrt(max(0, n*(divergence(q, p)+divergence(1-q, 1-p))) / math.Log(1/level))
}

func divergence(q, p float64) float64 {
	switch {
	case q == 0:
		return 0
	case p <= 0:
		return math.Inf(1)
	}
	return q * math.Log(q/p)
}

// share tests how many of the draws are the upper of two outcomes.
func share(f *Fit, draws []op.Draw) {
	count, expected := 0.0, 0.0
	for _, d := range draws {
		if d.Below == 0 {
			expected += 1 - d.Upto
			continue
		}
		count++
		expected += 1 - d.Below
	}
	n := float64(len(draws))
	f.worse(chernoff(count, n, expected/n, level/2), "share",
		"%.0f of %.0f draws have the one of two outcomes of which %.6g are expected", count, n, expected)
}

// repeats tests whether the slices 0 and 1, 2 and 3, … along a dimension are
// equal more often than independent draws are.
func repeats(f *Fit, draws []op.Draw, shape []int, grain float64) {
	at := places(draws)
	step := tensor.NumElements(shape)
	for dim, n := range shape {
		step /= max(n, 1)
		if n < 2 {
			continue
		}
		equal, pairs, expected := 0.0, 0.0, 0.0
		for _, d := range draws {
			slice := d.At / step % n
			if slice%2 != 0 || slice == n-1 || d.At+step >= len(at) || at[d.At+step] < 0 {
				continue
			}
			next := draws[at[d.At+step]]
			pairs++
			expected += min(d.Upto-d.Below+grain, 1)
			if next.Below == d.Below && next.Upto == d.Upto {
				equal++
			}
		}
		if equal > expected {
			f.worse(chernoff(equal, pairs, expected/pairs, level/float64(len(shape))), "repetition",
				"%.0f of %.0f draws are repeated by the next along dim %d, where %.3g are expected", equal, pairs, dim, expected)
		}
	}
}

// places returns, by element of the result, which draw it tells, the last one
// of several; -1 for none.
func places(draws []op.Draw) []int {
	most := -1
	for _, d := range draws {
		most = max(most, d.At)
	}
	at := slices.Repeat([]int{-1}, most+1)
	for i, d := range draws {
		at[d.At] = i
	}
	return at
}

// Alike tests whether the draws of two results of a dtype have one distribution:
// two samples, by Kolmogorov and Smirnov.
func (s *Drawn) Alike(other *Drawn, d tensor.DType) Fit {
	var f Fit
	want, got := len(s.Draws), len(other.Draws)
	if want == 0 || got == 0 {
		return f
	}
	critical := dkw(want, level/2) + dkw(got, level/2)
	if !s.Law.Atoms {
		critical += 2 * grain(d)
	}
	wb, wu := s.ends()
	gb, gu := other.ends()
	dist := max(ahead(wu, gb), ahead(gu, wb))
	f.worse(dist/critical, "two samples", "the distributions of both sides' draws, %d and %d, are %.3g apart, beyond %.3g", want, got, dist, critical)
	return f
}

// ahead returns the largest excess of the share of a's numbers up to a point
// over the share of b's before it.
func ahead(a, b []float64) float64 {
	most, j := 0.0, 0
	for i, x := range a {
		for j < len(b) && b[j] < x {
			j++
		}
		most = max(most, float64(i+1)/float64(len(a))-float64(j)/float64(len(b)))
	}
	return most
}
