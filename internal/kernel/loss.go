package kernel

import "math"

// CTC is connectionist temporal classification of one sample: log-probabilities
// [Time, Batch, Classes], of which it is Sample, and its labels. A path may
// have blanks between labels and repeat either.
type CTC[T float32 | float64] struct {
	LogProbs               []T
	Batch, Sample, Classes int
	Time, Blank            int
	Labels                 []int
}

// row returns the log-probabilities of the classes at time t.
func (c *CTC[T]) row(t int) []T { return c.LogProbs[(t*c.Batch+c.Sample)*c.Classes:][:c.Classes] }

// states are the blanks and labels that a path passes: blank, label, blank, …
func (c *CTC[T]) states() []int {
	s := make([]int, 2*len(c.Labels)+1)
	for i := range s {
		s[i] = c.Blank
		if i%2 == 1 {
			s[i] = c.Labels[i/2]
		}
	}
	return s
}

// Loss returns −log of the probability of the labels, +Inf when no path has
// them; alpha has the log-probability of all beginnings of paths, [Time, 2·labels+1].
func (c *CTC[T]) Loss() (loss float64, alpha []float64) {
	states := c.states()
	n := len(states)
	if c.Time == 0 {
		if n == 1 {
			return 0, nil
		}
		return math.Inf(1), nil
	}
	alpha = make([]float64, c.Time*n)
	for t := range c.Time {
		row, now := c.row(t), alpha[t*n:][:n]
		for s, class := range states {
			sum := math.Inf(-1)
			switch {
			case t > 0:
				sum = arriving(alpha[(t-1)*n:][:n], states, s)
			case s < 2:
				sum = 0
			}
			now[s] = sum + float64(row[class])
		}
	}
	last := alpha[(c.Time-1)*n:]
	total := last[n-1]
	if n > 1 {
		total = ctcLogAdd(total, last[n-2])
	}
	return -total, alpha
}

// arriving sums over the states from which a path may come to s.
func arriving(before []float64, states []int, s int) float64 {
	sum := before[s]
	if s > 0 {
		sum = ctcLogAdd(sum, before[s-1])
	}
	if s > 1 && states[s] != states[s-2] {
		sum = ctcLogAdd(sum, before[s-2])
	}
	return sum
}

// Grad adds to grad, laid out as LogProbs, g times the gradient of Loss where
// log-probabilities are normalised: e^p − e^(αβ + loss − p).
func (c *CTC[T]) Grad(g float64, grad []T) {
	loss, alpha := c.Loss()
	if c.Time == 0 {
		return
	}
	states := c.states()
	n := len(states)
	beta, after := make([]float64, n), make([]float64, n)
	through := make([]float64, c.Classes)
	for t := c.Time - 1; t >= 0; t-- {
		row := c.row(t)
		c.leaving(beta, after, states, row, t == c.Time-1)
		for i := range through {
			through[i] = math.Inf(-1)
		}
		for s, class := range states {
			through[class] = ctcLogAdd(through[class], alpha[t*n+s]+beta[s])
		}
		out := grad[(t*c.Batch+c.Sample)*c.Classes:][:c.Classes]
		for i, p := range row {
			out[i] += T(g * (math.Exp(float64(p)) - math.Exp(through[i]+loss-float64(p))))
		}
		beta, after = after, beta
	}
}

// leaving sets beta to the log-probability of all ends of paths from each
// state on, given those one step later.
func (c *CTC[T]) leaving(beta, after []float64, states []int, row []T, last bool) {
	n := len(states)
	for s, class := range states {
		sum := math.Inf(-1)
		switch {
		case !last:
			sum = after[s]
			if s+1 < n {
				sum = ctcLogAdd(sum, after[s+1])
			}
			if s+2 < n && states[s] != states[s+2] {
				sum = ctcLogAdd(sum, after[s+2])
			}
		case s >= n-2:
			sum = 0
		}
		beta[s] = sum + float64(row[class])
	}
}

// ctcLogAdd returns log(e^a + e^b).
func ctcLogAdd(a, b float64) float64 {
	if a < b {
		a, b = b, a
	}
	if math.IsInf(b, -1) {
		return a
	}
	return a + math.Log1p(math.Exp(b-a))
}
