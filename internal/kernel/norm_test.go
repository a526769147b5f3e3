package kernel

import (
	"math"
	"slices"
	"testing"
)

var groupCases = []Groups{{1, 1, 2}, {1, 3, 7}, {2, 3, 1}, {4, 5, 6}, {3, 2, 65}, {1, 9, 129}}

// inGroup returns the indices of the elements of group c.
func (d Groups) inGroup(c int) []int {
	var at []int
	for o := range d.Outer {
		for i := range d.Inner {
			at = append(at, (o*d.Count+c)*d.Inner+i)
		}
	}
	return at
}

func TestMomentsAreAccurateFarFromZero(t *testing.T) {
	for _, d := range groupCases {
		x := floatsFor(d.Outer * d.Count * d.Inner)
		for i := range x {
			x[i] = float64(float32(x[i] + 10000))
		}
		mean, variance := make([]float64, d.Count), make([]float64, d.Count)
		Moments(d, narrowed[float32](x), mean, variance)
		for c := range d.Count {
			m, v := naiveMoments(x, d.inGroup(c))
			if math.Abs(mean[c]-m) > 1e-10 || math.Abs(variance[c]-v) > 1e-10 {
				t.Errorf("%v group %d: mean %v and variance %v, want %v and %v", d, c, mean[c], variance[c], m, v)
			}
		}
	}
}

func naiveMoments(x []float64, at []int) (mean, variance float64) {
	for _, i := range at {
		mean += x[i] / float64(len(at))
	}
	for _, i := range at {
		variance += (x[i] - mean) * (x[i] - mean) / float64(len(at))
	}
	return mean, variance
}

// normalised is (x − mean)/√(var + eps) per group, times the weight and plus the bias that of returns.
func normalised(d Groups, x []float64, eps float64, of func(c, inner int) (weight, bias float64)) []float64 {
	out := make([]float64, len(x))
	for c := range d.Count {
		at := d.inGroup(c)
		m, v := naiveMoments(x, at)
		for _, i := range at {
			w, b := of(c, i%d.Inner)
			out[i] = (x[i]-m)/math.Sqrt(v+eps)*w + b
		}
	}
	return out
}

func TestNormalisationsAndTheirGradients(t *testing.T) {
	const eps = 0.01
	for _, d := range groupCases {
		n := d.Outer * d.Count * d.Inner
		x, gy := floatsFor(n), floatsFor(n + 1)[:n]
		mean, scale := make([]float64, d.Count), make([]float64, d.Count)
		Moments(d, x, mean, scale)
		InverseDeviation[float64](scale, eps)
		y, gx := make([]float64, n), make([]float64, n)

		group := Affine[float64]{floatsFor(d.Count), floatsFor(d.Count + 1)[:d.Count]}
		perGroup := func(c, _ int) (float64, float64) { return group.Weight[c], group.Bias[c] }
		NormaliseGroups(d, x, mean, scale, group, y)
		near(t, "groups", y, normalised(d, x, eps, perGroup), 100)
		sumG, sumGX := make([]float64, d.Count), make([]float64, d.Count)
		GroupGrads(d, gy, x, mean, scale, group.Weight, gx, sumG, sumGX)
		slopes(t, d, x, gy, gx, func(x []float64) []float64 { return normalised(d, x, eps, perGroup) })
		for c := range d.Count {
			checkSums(t, d.inGroup(c), x, gy, sumG[c], sumGX[c], func(i int) float64 { return (x[i] - mean[c]) * scale[c] })
		}

		if d.Outer > 1 {
			continue
		}
		row := Affine[float64]{floatsFor(d.Inner), floatsFor(d.Inner + 1)[:d.Inner]}
		perInner := func(_, i int) (float64, float64) { return row.Weight[i], row.Bias[i] }
		NormaliseRows(d, x, mean, scale, row, y)
		near(t, "rows", y, normalised(d, x, eps, perInner), 100)
		RowGrads(d, gy, x, mean, scale, row.Weight, gx)
		slopes(t, d, x, gy, gx, func(x []float64) []float64 { return normalised(d, x, eps, perInner) })
		sumG, sumGX = make([]float64, d.Inner), make([]float64, d.Inner)
		RowSums(d, gy, x, mean, scale, sumG, sumGX)
		for j := range d.Inner {
			var at []int
			for c := range d.Count {
				at = append(at, c*d.Inner+j)
			}
			checkSums(t, at, x, gy, sumG[j], sumGX[j], func(i int) float64 { return (x[i] - mean[i/d.Inner]) * scale[i/d.Inner] })
		}
	}
}

// slopes compares gx with difference quotients of gy·f(x).
func slopes(t *testing.T, d Groups, x, gy, gx []float64, f func([]float64) []float64) {
	t.Helper()
	const h = 1e-5
	for i := 0; i < len(x); i += 1 + len(x)/7 {
		up, down := slices.Clone(x), slices.Clone(x)
		up[i] += h
		down[i] -= h
		a, b, want := f(up), f(down), 0.0
		for j := range gy {
			want += gy[j] * (a[j] - b[j]) / (2 * h)
		}
		if math.Abs(gx[i]-want) > 1e-6*(1+math.Abs(want)) {
			t.Errorf("%v: gradient of element %d is %v, want %v", d, i, gx[i], want)
		}
	}
}

func checkSums(t *testing.T, at []int, x, gy []float64, sumG, sumGX float64, normal func(i int) float64) {
	t.Helper()
	g, gx := 0.0, 0.0
	for _, i := range at {
		g += gy[i]
		gx += gy[i] * normal(i)
	}
	if math.Abs(sumG-g) > 1e-12*float64(len(at)) || math.Abs(sumGX-gx) > 1e-10*float64(len(at)) {
		t.Errorf("sums %v and %v, want %v and %v", sumG, sumGX, g, gx)
	}
}

func TestNormBitsDoNotDependOnThreads(t *testing.T) {
	defer SetThreads(0)
	d := Groups{1, 300, 129}
	x := narrowed[float32](floatsFor(d.Count * d.Inner))
	var first []float64
	for _, threads := range []int{1, 3} {
		SetThreads(threads)
		mean, scale := make([]float64, d.Count), make([]float64, d.Count)
		Moments(d, x, mean, scale)
		sums := make([]float64, 2*d.Inner)
		RowSums(d, x, x, mean, scale, sums[:d.Inner], sums[d.Inner:])
		if got := slices.Concat(mean, scale, sums); first == nil {
			first = got
		} else if !slices.Equal(got, first) {
			t.Errorf("results differ between 1 and %d threads", threads)
		}
	}
}

func TestSoftmaxAndItsGradient(t *testing.T) {
	for _, s := range [][3]int{{1, 1, 1}, {3, 5, 1}, {2, 4, 3}, {1, 300, 2}} {
		outer, n, inner := s[0], s[1], s[2]
		x := floatsFor(outer * n * inner)
		gy := floatsFor(len(x) + 1)[:len(x)]
		for i := range x {
			x[i] = float64(float32(60 * x[i]))
		}
		d := Groups{1, outer * inner, n}
		for _, logarithm := range []bool{false, true} {
			f := func(x []float64) []float64 { return naiveSoftmax(outer, n, inner, x, logarithm) }
			y, y32, gx := make([]float64, len(x)), make([]float32, len(x)), make([]float64, len(x))
			Softmax(outer, n, inner, x, y, logarithm)
			near(t, "float64", y, f(x), 200)
			Softmax(outer, n, inner, narrowed[float32](x), y32, logarithm)
			near(t, "float32", y32, f(x), 50)
			SoftmaxBackward(outer, n, inner, gy, y, gx, logarithm)
			slopes(t, d, x, gy, gx, f)
		}
	}
}

func naiveSoftmax(outer, n, inner int, x []float64, logarithm bool) []float64 {
	out := make([]float64, len(x))
	for i := range outer * inner {
		base := i/inner*n*inner + i%inner
		top, sum := math.Inf(-1), 0.0
		for k := range n {
			top = max(top, x[base+k*inner])
		}
		for k := range n {
			sum += math.Exp(x[base+k*inner] - top)
		}
		for k := range n {
			v := x[base+k*inner] - top - math.Log(sum)
			if !logarithm {
				v = math.Exp(v)
			}
			out[base+k*inner] = v
		}
	}
	return out
}

func TestSoftmaxOfNonFinite(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, c := range []struct{ x, want, wantLog []float64 }{
		{[]float64{-inf, 0}, []float64{0, 1}, []float64{-inf, 0}},
		{[]float64{-inf, -inf}, []float64{nan, nan}, []float64{nan, nan}},
		{[]float64{inf, 1}, []float64{nan, nan}, []float64{nan, nan}},
		{[]float64{nan, 1}, []float64{nan, nan}, []float64{nan, nan}},
		{[]float64{1, nan}, []float64{nan, nan}, []float64{nan, nan}},
	} {
		for i, want := range [][]float64{c.want, c.wantLog} {
			y, y32 := make([]float64, 2), make([]float32, 2)
			columns := make([]float64, 4)
			Softmax(1, 2, 1, c.x, y, i == 1)
			Softmax(1, 2, 1, narrowed[float32](c.x), y32, i == 1)
			Softmax(1, 2, 2, []float64{0, c.x[0], 0, c.x[1]}, columns, i == 1)
			for j := range want {
				if !same(y[j], want[j]) || !same(float64(y32[j]), want[j]) || !same(columns[2*j+1], want[j]) || columns[2*j] != columns[0] {
					t.Errorf("softmax of %v, logarithm %v: %v, %v and in columns %v, want %v", c.x, i == 1, y, y32, columns, want)
				}
			}
		}
	}
}

func TestMatMulMultipliesBatches(t *testing.T) {
	const m, n, k = 2, 3, 4
	batch := []int{2, 3}
	x, y := floatsFor(2*m*k), floatsFor(3*k*n)
	a := Stack[float64]{Mat[float64]{x, 1, m}, []int{m * k, 0}} // transposed matrices, repeated along the second batch dimension
	b := Stack[float64]{Mat[float64]{y, n, 1}, []int{0, k * n}}
	got, want := make([]float64, 6*m*n), make([]float64, 6*m*n)
	for i := range want {
		p, q, row, col := i/(3*m*n), i/(m*n)%3, i/n%m, i%n
		for j := range k {
			want[i] += x[p*m*k+row+j*m] * y[q*k*n+j*n+col]
		}
	}
	MatMul(batch, m, n, k, a, b, got)
	near(t, "product", got, want, k)
}
