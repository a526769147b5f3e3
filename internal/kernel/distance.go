package kernel

import "math"

// Rows are two batches of matrices of the given shape, M rows of x against N
// rows of y, all of them of K elements that lie side by side.
type Rows[T float32 | float64] struct {
	Batch   []int
	M, N, K int
	X, Y    Stack[T]
}

// each calls f for ranges of the rows of x, numbered through the whole batch.
func (r *Rows[T]) each(f func(lo, hi int)) {
	count := r.M
	for _, d := range r.Batch {
		count *= d
	}
	Parallel(count, ceilDiv(1<<14, max(r.N*r.K, 1)), f)
}

// pairs returns row i of x and the rows of y in the same matrix of the batch.
func (r *Rows[T]) pairs(i int) (x []T, y rowList[T]) {
	if r.K == 0 {
		return nil, y
	}
	in := rowList[T]{r.X.matrix(r.Batch, i/r.M), r.K}
	if r.N > 0 {
		y = rowList[T]{r.Y.matrix(r.Batch, i/r.M), r.K}
	}
	return in.at(i % r.M), y
}

// rowList are rows of k elements.
type rowList[T float32 | float64] struct {
	m Mat[T]
	k int
}

func (r *rowList[T]) at(i int) []T {
	if r.k == 0 {
		return nil
	}
	return r.m.Data[i*r.m.RS:][:r.k]
}

// Distances sets out, contiguous M×N matrices of the batch, to the norms of
// order p of the differences between rows. The order 0 counts elements that
// differ, and a NaN gives NaN for every order. Sums are in float64.
func Distances[T float32 | float64](r Rows[T], p float64, out []T) {
	r.each(func(lo, hi int) {
		norm := differenceNorm[T](p)
		for i := lo; i < hi; i++ {
			x, y := r.pairs(i)
			to := out[i*r.N:][:r.N]
			for j := range to {
				to[j] = T(norm(x, y.at(j)))
			}
		}
	})
}

// differenceNorm returns the norm of order p of x − y, for one goroutine.
func differenceNorm[T float32 | float64](p float64) func(x, y []T) float64 {
	switch {
	case p == 0:
		return differing[T]
	case p == 1:
		return absoluteDifferences[T]
	case p == 2:
		block := make([]float32, 256)
		return func(x, y []T) float64 { return math.Sqrt(squaredDifferences(x, y, block)) }
	case math.IsInf(p, 1):
		return largestDifference[T]
	}
	return func(x, y []T) float64 { return Power(poweredDifferences(x, y, p), 1/p) }
}

func differing[T float32 | float64](x, y []T) float64 {
	count := 0.0
	for i, v := range x {
		switch d := v - y[i]; {
		case d != d:
			return math.NaN()
		case d != 0:
			count++
		}
	}
	return count
}

func absoluteDifferences[T float32 | float64](x, y []T) float64 {
	y = y[:len(x)]
	var s [4]float64
	for ; len(x) >= 4; x, y = x[4:], y[4:] {
		s[0] += math.Abs(float64(x[0] - y[0]))
		s[1] += math.Abs(float64(x[1] - y[1]))
		s[2] += math.Abs(float64(x[2] - y[2]))
		s[3] += math.Abs(float64(x[3] - y[3]))
	}
	for i, v := range x {
		s[i] += math.Abs(float64(v - y[i]))
	}
	return (s[0] + s[1]) + (s[2] + s[3])
}

// squaredDifferences leaves to the passes what they take of float32, with block
// for the differences.
func squaredDifferences[T float32 | float64](x, y []T, block []float32) float64 {
	first := 0.0
	if v, ok := any(x).([]float32); ok && vectors.squares != nil && len(v) >= 16 {
		w := any(y).([]float32)
		for len(v) >= 16 {
			n := min(len(v)&^15, len(block))
			vectors.sub(&block[0], &v[0], &w[0], n)
			first += vectors.squares(&block[0], n, 0)
			v, w = v[n:], w[n:]
		}
		done := len(x) - len(v)
		x, y = x[done:], y[done:]
	}
	return first + squaredRest(x, y)
}

func squaredRest[T float32 | float64](x, y []T) float64 {
	y = y[:len(x)]
	var s0, s1, s2, s3 float64
	for ; len(x) >= 4 && len(y) >= 4; x, y = x[4:], y[4:] {
		a, b, c, d := float64(x[0]-y[0]), float64(x[1]-y[1]), float64(x[2]-y[2]), float64(x[3]-y[3])
		s0 += a * a
		s1 += b * b
		s2 += c * c
		s3 += d * d
	}
	for i, v := range x {
		a := float64(v - y[i])
		s0 += a * a
	}
	return (s0 + s1) + (s2 + s3)
}

func poweredDifferences[T float32 | float64](x, y []T, p float64) float64 {
	sum := 0.0
	for i, v := range x {
		sum += Power(math.Abs(float64(v-y[i])), p)
	}
	return sum
}

func largestDifference[T float32 | float64](x, y []T) float64 {
	most := 0.0
	for i, v := range x {
		most = max(most, math.Abs(float64(v-y[i])))
	}
	return most
}

// DistanceGrads sets out, contiguous M×K matrices of the batch, to the gradient
// of Distances with respect to x, where g and d, both M×N, are the gradient with
// respect to the distances and the distances. It is 0 where a distance has no
// derivative; an infinite order gives the whole of it to each of the largest
// differences. Sums are in float64.
func DistanceGrads[T float32 | float64](r Rows[T], p float64, g, d, out []T) {
	add := slopesOf[T](p)
	r.each(func(lo, hi int) {
		sums := make([]float64, r.K)
		for i := lo; i < hi; i++ {
			clear(sums)
			x, y := r.pairs(i)
			add(sums, x, y, g[i*r.N:][:r.N], d[i*r.N:][:r.N])
			for k, v := range sums {
				out[i*r.K+k] = T(v)
			}
		}
	})
}

// slopesOf returns what adds to sums the gradients of the distances d between x
// and every row of y, weighted by g.
func slopesOf[T float32 | float64](p float64) func(sums []float64, x []T, y rowList[T], g, d []T) {
	switch {
	case p == 0:
		return func([]float64, []T, rowList[T], []T, []T) {}
	case p == 1:
		return byRow(func(sums []float64, x, y []T, g, _ float64) {
			for k, v := range x {
				sums[k] += signOf(v-y[k]) * g
			}
		})
	case p == 2:
		return euclideanSlopes[T]
	case math.IsInf(p, 1):
		return byRow(largestSlopes[T])
	case p < 1:
		return byRow(func(sums []float64, x, y []T, g, d float64) {
			weight := g * Power(d, 1-p)
			for k, v := range x {
				if v := v - y[k]; v != 0 {
					sums[k] += signOf(v) * Power(math.Abs(float64(v)), p-1) * weight
				} else {
					sums[k] += 0 * weight
				}
			}
		})
	}
	return byRow(func(sums []float64, x, y []T, g, d float64) {
		weight := 0.0
		if d != 0 {
			weight = g / Power(d, p-1)
		}
		for k, v := range x {
			v := v - y[k]
			sums[k] += signOf(v) * Power(math.Abs(float64(v)), p-1) * weight
		}
	})
}

func byRow[T float32 | float64](add func(sums []float64, x, y []T, g, d float64)) func(sums []float64, x []T, y rowList[T], g, d []T) {
	return func(sums []float64, x []T, y rowList[T], g, d []T) {
		for j := range g {
			add(sums, x, y.at(j), float64(g[j]), float64(d[j]))
		}
	}
}

// signOf is 0 for NaN.
func signOf[T float32 | float64](v T) float64 {
	switch {
	case v > 0:
		return 1
	case v < 0:
		return -1
	}
	return 0
}

func largestSlopes[T float32 | float64](sums []float64, x, y []T, g, d float64) {
	for k, v := range x {
		v := v - y[k]
		mask := 0.0
		if math.Abs(float64(v)) == d {
			mask = 1
		}
		sums[k] += signOf(v) * mask * g
	}
}

// euclideanSlopes takes four rows at a time.
func euclideanSlopes[T float32 | float64](sums []float64, x []T, y rowList[T], g, d []T) {
	var w [4]float64
	j := 0
	for ; j+4 <= len(g); j += 4 {
		for i := range w {
			w[i] = quotientOr0(g[j+i], d[j+i])
		}
		addFour(sums, x, y.at(j), y.at(j+1), y.at(j+2), y.at(j+3), &w)
	}
	for ; j < len(g); j++ {
		w := quotientOr0(g[j], d[j])
		for k, v := range y.at(j) {
			sums[k] += float64(x[k]-v) * w
		}
	}
}

// quotientOr0 is g/d, but 0 where d is.
func quotientOr0[T float32 | float64](g, d T) float64 {
	if d == 0 {
		return 0
	}
	return float64(g) / float64(d)
}

func addFour[T float32 | float64](sums []float64, x, a, b, c, d []T, w *[4]float64) {
	x, a, b, c, d = x[:len(sums)], a[:len(sums)], b[:len(sums)], c[:len(sums)], d[:len(sums)]
	w0, w1, w2, w3 := w[0], w[1], w[2], w[3]
	for k, v := range x {
		sums[k] += (float64(v-a[k])*w0 + float64(v-b[k])*w1) + (float64(v-c[k])*w2 + float64(v-d[k])*w3)
	}
}
