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
	first, x := vectorSum(x)
	return first + sumOfRest(x)
}

func sumOfRest[T float32 | float64](x []T) float64 {
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
	first := 0.0
	if v, ok := any(x).([]float32); ok && vectors.squares != nil && len(v) >= 16 {
		n := len(v) &^ 15
		first, x = vectors.squares(&v[0], n, mean), x[n:]
	}
	return first + deviationOfRest(x, mean)
}

func deviationOfRest[T float32 | float64](x []T, mean float64) float64 {
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

// InverseDeviation sets each variance to 1/√(variance+eps), every step of it
// rounded to T unless the variance is more than its largest number.
func InverseDeviation[T float32 | float64](variance []float64, eps float64) {
	for i, v := range variance {
		sum := T(v) + T(eps)
		if math.IsInf(float64(sum), 1) {
			variance[i] = 1 / math.Sqrt(v+eps)
			continue
		}
		variance[i] = float64(1 / T(math.Sqrt(float64(sum))))
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
	if v, ok := any(x).([]float32); ok && vectors.affine != nil && len(v) > 0 {
		vectors.affine(&any(y).([]float32)[0], &v[0], len(v), factor, offset)
		return
	}
	for i, v := range x {
		y[i] = T(float64(v)*factor + offset)
	}
}

// NormaliseRows sets y to (x·scale − mean·scale)·weight + bias for d.Outer = 1, mean and scale one per group, weight and bias one per inner index.
// It rounds in between as NormaliseGroups does.
func NormaliseRows[T float32 | float64](d Groups, x []T, mean, scale []float64, affine Affine[T], y []T) {
	affine = affine.whole(d.Inner)
	Parallel(d.Count, d.grain(), func(lo, hi int) {
		for c := lo; c < hi; c++ {
			factor := rounded[T](scale[c])
			offset := rounded[T](-factor * rounded[T](mean[c]))
			if affine.present() {
				affineRow(groupRun(d, x, 0, c), factor, offset, affine, groupRun(d, y, 0, c))
			} else {
				scaleShift(groupRun(d, x, 0, c), factor, offset, groupRun(d, y, 0, c))
			}
		}
	})
}

// whole gives both or neither of the parts, of n elements.
func (a *Affine[T]) whole(n int) Affine[T] {
	w := *a
	if a.Weight == nil && a.Bias != nil {
		w.Weight = make([]T, n)
		fillRun(w.Weight, 1)
	}
	if a.Bias == nil && a.Weight != nil {
		w.Bias = make([]T, n)
	}
	return w
}

// affineRow sets y to (x·factor + offset)·weight + bias.
func affineRow[T float32 | float64](x []T, factor, offset float64, affine Affine[T], y []T) {
	weight, bias := affine.Weight[:len(x)], affine.Bias[:len(x)]
	y = y[:len(x)]
	if v, ok := any(x).([]float32); ok && vectors.affineRow != nil && len(v) > 0 {
		vectors.affineRow(&any(y).([]float32)[0], &v[0], &any(weight).([]float32)[0], &any(bias).([]float32)[0], len(v), float32(factor), float32(offset))
		return
	}
	for i, v := range x {
		y[i] = T(rounded[T](float64(v)*factor+offset)*float64(weight[i]) + float64(bias[i]))
	}
}

// GroupGrads sets gx to the gradient of NormaliseGroups with mean and scale from x itself, and sumG and sumGX to the sums over each group of gy and of gy·x̂,
// where x̂ = (x − mean)·scale: gx = weight·scale·(gy − sumG/n − x̂·sumGX/n).
func GroupGrads[T float32 | float64](d Groups, gy, x []T, mean, scale []float64, weight []T, gx []T, sumG, sumGX []float64) {
	n := float64(d.size())
	affine := Affine[T]{Weight: weight}
	Parallel(d.Count, d.grain(), func(lo, hi int) {
		pair := new([2]float64)
		for c := lo; c < hi; c++ {
			sumG[c], sumGX[c] = 0, 0
			for o := range d.Outer {
				s, sx := gradSums(groupRun(d, gy, o, c), groupRun(d, x, o, c), nil, mean[c], pair)
				sumG[c] += s
				sumGX[c] += sx * scale[c]
			}
			w, _ := affine.at(c)
			for o := range d.Outer {
				project(groupRun(d, gy, o, c), groupRun(d, x, o, c), nil, mean[c], scale[c]*w, sumG[c]/n, scale[c]*sumGX[c]/n, groupRun(d, gx, o, c))
			}
		}
	})
}

// gradSums returns Σ g and Σ g·(x − mean), each g times its weight unless that is nil; pair is scratch.
func gradSums[T float32 | float64](g, x, weight []T, mean float64, pair *[2]float64) (s, sx float64) {
	x = x[:len(g)]
	if v, ok := any(g).([]float32); ok && vectors.gradSums != nil && len(v) >= 8 {
		n := len(v) &^ 7
		at := &any(x).([]float32)[0]
		if weight == nil {
			vectors.gradSums(&v[0], at, n, mean, pair)
		} else {
			vectors.gradSumsWeighted(&v[0], at, &any(weight[:len(v)]).([]float32)[0], n, mean, pair)
			weight = weight[n:]
		}
		s, sx, g, x = pair[0], pair[1], g[n:], x[n:]
	}
	for i, v := range g {
		a := float64(v)
		if weight != nil {
			a *= float64(weight[i])
		}
		s += a
		sx += a * (float64(x[i]) - mean)
	}
	return s, sx
}

// project sets gx to scale·(g − meanG − (x − mean)·slope), each g times its weight unless that is nil.
func project[T float32 | float64](g, x, weight []T, mean, scale, meanG, slope float64, gx []T) {
	x, gx = x[:len(g)], gx[:len(g)]
	if v, ok := any(g).([]float32); ok && vectors.project != nil && len(v) > 0 {
		to, at := &any(gx).([]float32)[0], &any(x).([]float32)[0]
		if weight == nil {
			vectors.project(to, &v[0], at, len(v), mean, scale, meanG, slope)
		} else {
			vectors.projectWeighted(to, &v[0], at, &any(weight[:len(v)]).([]float32)[0], len(v), mean, scale, meanG, slope)
		}
		return
	}
	for i, v := range g {
		a := float64(v)
		if weight != nil {
			a *= float64(weight[i])
		}
		gx[i] = T(scale * (a - meanG - (float64(x[i])-mean)*slope))
	}
}

// RowGrads sets gx to the gradient of NormaliseRows with mean and scale from x itself.
func RowGrads[T float32 | float64](d Groups, gy, x []T, mean, scale []float64, weight []T, gx []T) {
	if weight == nil {
		unused := make([]float64, 2*d.Count)
		GroupGrads(d, gy, x, mean, scale, nil, gx, unused[:d.Count], unused[d.Count:])
		return
	}
	n := float64(d.Inner)
	Parallel(d.Count, d.grain(), func(lo, hi int) {
		pair := new([2]float64)
		for c := lo; c < hi; c++ {
			g, in := groupRun(d, gy, 0, c), groupRun(d, x, 0, c)
			s, sx := gradSums(g, in, weight, mean[c], pair)
			project(g, in, weight, mean[c], scale[c], s/n, sx*scale[c]*scale[c]/n, groupRun(d, gx, 0, c))
		}
	})
}

// RowSums sets sumG and sumGX to the sums over the groups, for each inner index, of gy and of gy·(x − mean)·scale, for d.Outer = 1; it rounds as NormaliseRows does.
func RowSums[T float32 | float64](d Groups, gy, x []T, mean, scale []float64, sumG, sumGX []float64) {
	clear(sumG)
	clear(sumGX)
	Parallel(d.Inner, max(16, ceilDiv(1<<12, max(d.Count, 1))), func(lo, hi int) {
		s, sx := sumG[lo:hi], sumGX[lo:hi]
		var factors, offsets [4]float64
		for c := 0; c < d.Count; c += 4 {
			rows := min(4, d.Count-c)
			for r := range rows {
				factors[r] = rounded[T](scale[c+r])
				offsets[r] = rounded[T](-factors[r] * rounded[T](mean[c+r]))
			}
			addRows(gy[c*d.Inner+lo:], x[c*d.Inner+lo:], d.Inner, rows, &factors, &offsets, s, sx)
		}
	})
}

// addRows adds g to s and g·(x·factor + offset) to sx, element by element, for up to four rows that lie step elements apart.
func addRows[T float32 | float64](g, x []T, step, rows int, factors, offsets *[4]float64, s, sx []float64) {
	done := 0
	if v, ok := any(g).([]float32); ok && vectors.addColumns != nil && rows == 4 && len(s) >= 4 {
		done = len(s) &^ 3
		vectors.addColumns(&v[0], &any(x).([]float32)[0], done, step, factors, offsets, &s[0], &sx[0])
	}
	s, sx = s[done:], sx[done:]
	for r := range rows {
		a, b := g[r*step+done:][:len(s)], x[r*step+done:][:len(s)]
		for i, v := range a {
			s[i] += float64(v)
			sx[i] += float64(v) * (float64(b[i])*factors[r] + offsets[r])
		}
	}
}
