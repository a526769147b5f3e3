package kernel

import "math"

// Groups says which elements of a contiguous array [Outer, Count, Inner] are normalised together: those with one middle index.
// Batch normalisation has [N, C, H·W]; layer normalisation has [1, rows, row length].
type Groups struct {
	Outer, Count, Inner int
}

func (d Groups) size() int { return d.Outer * d.Inner }

func (d Groups) grain() int { return ceilDiv(1<<12, max(d.size(), 1)) }

// Moments sets mean and variance, the biased one, of each group; zeros for groups without elements. Sums are in float64; the variance is that of the deviations from the mean.
func Moments[T float32 | float64](d Groups, x []T, mean, variance []float64) {
	if d.size() == 0 {
		clear(mean)
		clear(variance)
		return
	}
	Parallel(d.Count, d.grain(), func(lo, hi int) {
		for c := lo; c < hi; c++ {
			sum := 0.0
			for o := range d.Outer {
				sum += sumOf(groupRun(d, x, o, c))
			}
			m := sum / float64(d.size())
			squares := 0.0
			for o := range d.Outer {
				squares += deviation(groupRun(d, x, o, c), m)
			}
			mean[c], variance[c] = m, squares/float64(d.size())
		}
	})
}

// groupRun returns the elements of group c with outer index o.
func groupRun[T any](d Groups, x []T, o, c int) []T {
	return x[(o*d.Count+c)*d.Inner:][:d.Inner]
}

func sumOf[T float32 | float64](x []T) float64 {
	var s [4]float64
	for ; len(x) >= 4; x = x[4:] {
		s[0] += float64(x[0])
		s[1] += float64(x[1])
		s[2] += float64(x[2])
		s[3] += float64(x[3])
	}
	for i, v := range x {
		s[i] += float64(v)
	}
	return (s[0] + s[1]) + (s[2] + s[3])
}

func deviation[T float32 | float64](x []T, mean float64) float64 {
	var s [4]float64
	for ; len(x) >= 4; x = x[4:] {
		a, b, c, d := float64(x[0])-mean, float64(x[1])-mean, float64(x[2])-mean, float64(x[3])-mean
		s[0] += a * a
		s[1] += b * b
		s[2] += c * c
		s[3] += d * d
	}
	for i, v := range x {
		a := float64(v) - mean
		s[i] += a * a
	}
	return (s[0] + s[1]) + (s[2] + s[3])
}

// InverseDeviation sets each variance to 1/√(variance+eps), every step of it rounded to T.
func InverseDeviation[T float32 | float64](variance []float64, eps float64) {
	for i, v := range variance {
		root := T(math.Sqrt(float64(T(v) + T(eps))))
		variance[i] = float64(1 / root)
	}
}

// Affine holds optional factors and offsets; nil means ones and zeros.
type Affine[T float32 | float64] struct {
	Weight, Bias []T
}

func (a *Affine[T]) present() bool { return a.Weight != nil || a.Bias != nil }

// at returns the factor and the offset with index i.
func (a *Affine[T]) at(i int) (weight, bias float64) {
	weight = 1
	if a.Weight != nil {
		weight = float64(a.Weight[i])
	}
	if a.Bias != nil {
		bias = float64(a.Bias[i])
	}
	return weight, bias
}

// NormaliseGroups sets y to x·factor + offset with factor = scale·weight and offset = bias − mean·factor, all of them one per group.
// Means, scales, factors and offsets are rounded to T, as in PyTorch's CPU kernels: where a group's elements are nearly equal, that rounding is most of the result.
func NormaliseGroups[T float32 | float64](d Groups, x []T, mean, scale []float64, affine Affine[T], y []T) {
	Parallel(d.Count, d.grain(), func(lo, hi int) {
		for c := lo; c < hi; c++ {
			weight, bias := affine.at(c)
			factor := rounded[T](rounded[T](scale[c]) * weight)
			offset := rounded[T](bias - rounded[T](mean[c])*factor)
			for o := range d.Outer {
				scaleShift(groupRun(d, x, o, c), factor, offset, groupRun(d, y, o, c))
			}
		}
	})
}

func rounded[T float32 | float64](v float64) float64 { return float64(T(v)) }

func scaleShift[T float32 | float64](x []T, factor, offset float64, y []T) {
	y = y[:len(x)]
	for i, v := range x {
		y[i] = T(float64(v)*factor + offset)
	}
}

// NormaliseRows sets y to (x·scale − mean·scale)·weight + bias for d.Outer = 1, mean and scale one per group, weight and bias one per inner index.
// It rounds in between as NormaliseGroups does.
func NormaliseRows[T float32 | float64](d Groups, x []T, mean, scale []float64, affine Affine[T], y []T) {
	weight, bias := widen(affine.Weight, d.Inner, 1), widen(affine.Bias, d.Inner, 0)
	Parallel(d.Count, d.grain(), func(lo, hi int) {
		for c := lo; c < hi; c++ {
			out := groupRun(d, y, 0, c)
			factor := rounded[T](scale[c])
			offset := rounded[T](-factor * rounded[T](mean[c]))
			if !affine.present() {
				scaleShift(groupRun(d, x, 0, c), factor, offset, out)
				continue
			}
			for i, v := range groupRun(d, x, 0, c) {
				out[i] = T(rounded[T](float64(v)*factor+offset)*weight[i] + bias[i])
			}
		}
	})
}

// widen returns n elements in float64, or n times the default for nil.
func widen[T float32 | float64](x []T, n int, missing float64) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = missing
	}
	for i, v := range x {
		out[i] = float64(v)
	}
	return out
}

// GroupGrads sets gx to the gradient of NormaliseGroups with mean and scale from x itself, and sumG and sumGX to the sums over each group of gy and of gy·x̂,
// where x̂ = (x − mean)·scale: gx = weight·scale·(gy − sumG/n − x̂·sumGX/n).
func GroupGrads[T float32 | float64](d Groups, gy, x []T, mean, scale []float64, weight []T, gx []T, sumG, sumGX []float64) {
	n := float64(d.size())
	affine := Affine[T]{Weight: weight}
	Parallel(d.Count, d.grain(), func(lo, hi int) {
		for c := lo; c < hi; c++ {
			sumG[c], sumGX[c] = 0, 0
			for o := range d.Outer {
				s, sx := gradSums(groupRun(d, gy, o, c), groupRun(d, x, o, c), mean[c])
				sumG[c] += s
				sumGX[c] += sx * scale[c]
			}
			w, _ := affine.at(c)
			for o := range d.Outer {
				project(groupRun(d, gy, o, c), groupRun(d, x, o, c), mean[c], scale[c]*w, sumG[c]/n, scale[c]*sumGX[c]/n, groupRun(d, gx, o, c))
			}
		}
	})
}

// gradSums returns Σ g and Σ g·(x − mean).
func gradSums[T float32 | float64](g, x []T, mean float64) (s, sx float64) {
	x = x[:len(g)]
	var t [2]float64
	i := 0
	for ; i+2 <= len(g); i += 2 {
		a, b := float64(g[i]), float64(g[i+1])
		s += a
		t[0] += b
		sx += a * (float64(x[i]) - mean)
		t[1] += b * (float64(x[i+1]) - mean)
	}
	if i < len(g) {
		s += float64(g[i])
		sx += float64(g[i]) * (float64(x[i]) - mean)
	}
	return s + t[0], sx + t[1]
}

// project sets gx to scale·(g − meanG − (x − mean)·slope).
func project[T float32 | float64](g, x []T, mean, scale, meanG, slope float64, gx []T) {
	x, gx = x[:len(g)], gx[:len(g)]
	for i, v := range g {
		gx[i] = T(scale * (float64(v) - meanG - (float64(x[i])-mean)*slope))
	}
}

// RowGrads sets gx to the gradient of NormaliseRows with mean and scale from x itself.
func RowGrads[T float32 | float64](d Groups, gy, x []T, mean, scale []float64, weight []T, gx []T) {
	if weight == nil {
		unused := make([]float64, 2*d.Count)
		GroupGrads(d, gy, x, mean, scale, nil, gx, unused[:d.Count], unused[d.Count:])
		return
	}
	w := widen(weight, d.Inner, 1)
	n := float64(d.Inner)
	Parallel(d.Count, d.grain(), func(lo, hi int) {
		for c := lo; c < hi; c++ {
			g, in, out := groupRun(d, gy, 0, c), groupRun(d, x, 0, c), groupRun(d, gx, 0, c)
			m, k := mean[c], scale[c]
			s, sx := 0.0, 0.0
			for i, v := range g {
				a := float64(v) * w[i]
				s += a
				sx += a * (float64(in[i]) - m)
			}
			s, sx = s/n, sx*k*k/n
			for i, v := range g {
				out[i] = T(k * (float64(v)*w[i] - s - (float64(in[i])-m)*sx))
			}
		}
	})
}

// RowSums sets sumG and sumGX to the sums over the groups, for each inner index, of gy and of gy·(x − mean)·scale, for d.Outer = 1; it rounds as NormaliseRows does.
func RowSums[T float32 | float64](d Groups, gy, x []T, mean, scale []float64, sumG, sumGX []float64) {
	clear(sumG)
	clear(sumGX)
	Parallel(d.Inner, max(16, ceilDiv(1<<12, max(d.Count, 1))), func(lo, hi int) {
		s, sx := sumG[lo:hi], sumGX[lo:hi]
		for c := range d.Count {
			g, in := groupRun(d, gy, 0, c)[lo:hi], groupRun(d, x, 0, c)[lo:hi]
			factor := rounded[T](scale[c])
			offset := rounded[T](-factor * rounded[T](mean[c]))
			for i, v := range g {
				s[i] += float64(v)
				sx[i] += float64(v) * (float64(in[i])*factor + offset)
			}
		}
	})
}
