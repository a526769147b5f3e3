package onekernel

import (
	"context"
	"fmt"
	"math"
	"slices"

	"plumb/backend"
	"plumb/internal/judge/compare"
	"plumb/tensor"
)

// draws is how many calls of each side say by which law their results are drawn, and surely in
// deviations how far the count of pairs in which one side's number is below the other's is from half
// of them: that is by chance, whatever the law, less than once in a million.
const draws, surely = 24, 5.0

// law compares the results of a call in training that are drawn at random, as behind a
// dropout, by what calls with other seeds give.
func (s *Session) law(ctx context.Context, r *result) error {
	c := s.inTraining(r)
	if refused, err := s.shape(ctx, c); err != nil || refused != nil {
		return err
	}
	var sides [2][]*backend.Outcome
	for k := range draws {
		job, again := backend.NewJob(c.program.Clone()), *c
		job.Program.Seed += uint64(k)
		again.Key ^= uint64(k) << 40
		ref, _, err := s.tryReference(ctx, job)
		if err != nil || ref.Status != backend.OK {
			return err
		}
		kernel, seen, err := s.tryKernel(ctx, &again, job)
		if err != nil || kernel.Status != backend.OK {
			return err
		}
		sides[0], sides[1] = append(sides[0], ref), append(sides[1], kernel)
		if k == draws-1 {
			if text := differ(sides); text != "" {
				now := &result{Case: &again, slack: r.slack, ref: ref, kernel: kernel, seen: seen, misaligned: true}
				s.outcomes = append(s.outcomes, now)
				s.behaves(now, "law", "is drawn in training by another law than the reference: "+text)
			}
		}
	}
	return nil
}

// differ says by what the results of two sides are of other laws.
func differ(sides [2][]*backend.Outcome) string {
	var results [2][][]*tensor.Tensor
	for i, side := range sides {
		for _, o := range side {
			var ts []*tensor.Tensor
			for _, v := range o.Values {
				ts = tensorsOf(ts, v)
			}
			results[i] = append(results[i], ts)
		}
	}
	for k := range results[0][0] {
		var of [2][]*tensor.Tensor
		for i, side := range results {
			for _, ts := range side {
				if k >= len(ts) {
					return ""
				}
				of[i] = append(of[i], ts[k])
			}
		}
		if text := otherLaw(of[0], of[1]); text != "" {
			return text
		}
	}
	return ""
}

func tensorsOf(ts []*tensor.Tensor, v backend.Value) []*tensor.Tensor {
	if v.Tensor != nil {
		ts = append(ts, v.Tensor)
	}
	for _, part := range v.Tuple {
		ts = tensorsOf(ts, part)
	}
	return ts
}

// otherLaw says by what a result is of another law than the reference's.
func otherLaw(ref, kernel []*tensor.Tensor) string {
	if !ref[0].DType().IsFloat() {
		return ""
	}
	if distinct(ref) == len(ref) && distinct(kernel) == 1 {
		return "it is the same whatever the seed, where no two of the reference's are"
	}
	near := math.Sqrt(compare.Roundoff(ref[0].DType())) * max(slices.Max(figures(ref, magnitude)), slices.Max(figures(kernel, magnitude))) // half of the digits, which roundings alone do not move
	for _, l := range laws {
		a, b := figures(ref, l.of), figures(kernel, l.of)
		if n := float64(len(a)); math.Abs(below(a, b, near)-n*n/2) > surely*n*math.Sqrt((2*n+1)/12) {
			return fmt.Sprintf("its %s is %.4g to %.4g in %d calls, the reference's %.4g to %.4g", l.name, slices.Min(b), slices.Max(b), len(b), slices.Min(a), slices.Max(a))
		}
	}
	return ""
}

// below counts the pairs in which the first number is below the second (Mann and Whitney's U);
// two that are near each other are half of one.
func below(as, bs []float64, near float64) float64 {
	n := 0.0
	for _, a := range as {
		for _, b := range bs {
			switch {
			case math.Abs(a-b) <= near:
				n += 0.5
			case a < b:
				n++
			}
		}
	}
	return n
}

func distinct(ts []*tensor.Tensor) int {
	var seen []*tensor.Tensor
	for _, t := range ts {
		if !slices.ContainsFunc(seen, t.SameBits) {
			seen = append(seen, t)
		}
	}
	return len(seen)
}

// laws are the numbers by which results are compared.
var laws = []struct {
	name string
	of   func(t *tensor.Tensor) float64
}{
	{"mean", func(t *tensor.Tensor) float64 { return mean(t, func(x float64) float64 { return x }) }},
	{"mean magnitude", magnitude},
	{"root mean square", func(t *tensor.Tensor) float64 { return math.Sqrt(mean(t, func(x float64) float64 { return x * x })) }},
}

func magnitude(t *tensor.Tensor) float64 { return mean(t, math.Abs) }

// mean is that of the finite elements.
func mean(t *tensor.Tensor, of func(x float64) float64) float64 {
	sum, n := 0.0, 0
	for i := range t.Len() {
		if x := of(t.Float(i)); !math.IsNaN(x) && !math.IsInf(x, 0) {
			sum, n = sum+x, n+1
		}
	}
	return sum / float64(max(n, 1))
}

func figures(ts []*tensor.Tensor, of func(t *tensor.Tensor) float64) []float64 {
	out := make([]float64, len(ts))
	for i, t := range ts {
		out[i] = of(t)
	}
	return out
}
