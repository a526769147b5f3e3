package kernel

import "math"

// Softmax sets y to the softmax of x, or to its logarithm, over the middle one of the dimensions [outer, n, inner].
// The maximum is subtracted first; differences, exponentials and sums are in float64.
func Softmax[T float32 | float64](outer, n, inner int, x, y []T, logarithm bool) {
	size := n * inner
	if size == 0 {
		return
	}
	finish := normalise[T]
	if logarithm {
		finish = subtractLog[T]
	}
	Parallel(outer, ceilDiv(1<<12, size), func(lo, hi int) {
		top, sum := make([]T, inner), make([]float64, inner)
		for i := lo; i < hi; i++ {
			from, to := x[i*size:][:size], y[i*size:][:size]
			columnMax(from, top)
			columnExp(from, to, top, sum)
			finish(from, to, top, sum)
		}
	})
}

// columnMax sets top to the maximum of each column of x. NaN elements matter only first: any NaN makes its column's sum of exponentials one.
func columnMax[T float32 | float64](x, top []T) {
	copy(top, x)
	if len(top) == 1 {
		top[0] = rowMax(x)
		return
	}
	for i := len(top); i < len(x); i += len(top) {
		row := x[i:][:len(top)]
		for j, v := range row {
			if v > top[j] {
				top[j] = v
			}
		}
	}
}

func rowMax[T float32 | float64](x []T) T {
	top := x[0]
	if v, ok := any(x).([]float32); ok && vectors.max != nil && len(v) >= 16 {
		n := len(v) &^ 15
		top, x = T(vectors.max(&v[0], n)), x[n:]
	}
	for _, v := range x {
		if v > top {
			top = v
		}
	}
	return top
}

// columnExp sets y to the exponentials of x minus its columns' maxima, and sum to their sums.
func columnExp[T float32 | float64](x, y, top []T, sum []float64) {
	if v, ok := any(x).([]float32); ok && len(top) == 1 {
		sum[0] = rowExp(v, any(y).([]float32), float64(top[0]))
		return
	}
	clear(sum)
	var buf [256]float64
	for at := 0; at < len(x); at += len(buf) {
		e := buf[:min(len(buf), len(x)-at)]
		first := at % len(top)
		for i, j := 0, first; i < len(e); i++ {
			e[i] = float64(x[at+i]) - float64(top[j])
			if j++; j == len(top) {
				j = 0
			}
		}
		Exp64(e, e)
		for i, j := 0, first; i < len(e); i++ {
			sum[j] += e[i]
			y[at+i] = T(e[i])
			if j++; j == len(top) {
				j = 0
			}
		}
	}
}

// rowExp is columnExp of one column.
func rowExp(x, y []float32, top float64) (sum float64) {
	y = y[:len(x)]
	if vectors.expSum != nil && len(x) >= 8 {
		n := len(x) &^ 7
		sum = vectors.expSum(&y[0], &x[0], n, top)
		x, y = x[n:], y[n:]
	}
	for i, v := range x {
		e := expLane(float64(v) - top)
		sum += e
		y[i] = float32(e)
	}
	return sum
}

// normalise divides the exponentials in y by their columns' sums.
func normalise[T float32 | float64](_, y, top []T, sum []float64) {
	if len(top) == 1 {
		scaleShift(y, 1/sum[0], 0, y)
		return
	}
	for i := 0; i < len(y); i += len(top) {
		out := y[i:][:len(sum)]
		for j, v := range out {
			out[j] = T(float64(v) / sum[j])
		}
	}
}

// subtractLog sets y to x minus its columns' maxima minus the logarithms of the sums.
func subtractLog[T float32 | float64](x, y, top []T, sum []float64) {
	for j, s := range sum {
		sum[j] = math.Log(s)
	}
	if v, ok := any(x).([]float32); ok && len(top) == 1 && vectors.subtract != nil {
		vectors.subtract(&any(y).([]float32)[0], &v[0], len(v), float64(top[0]), sum[0])
		return
	}
	for i := 0; i < len(x); i += len(top) {
		row, out := x[i:][:len(top)], y[i:][:len(top)]
		for j, v := range row {
			out[j] = T(float64(v) - float64(top[j]) - sum[j])
		}
	}
}

// SoftmaxBackward sets gx to the gradient of softmax, or of its logarithm, from its result y and the gradient gy of that:
// y·(gy − Σ gy·y), or gy − exp(y)·Σ gy, with sums over the middle one of the dimensions [outer, n, inner].
// A gy of n·inner elements is that of every outer index.
func SoftmaxBackward[T float32 | float64](outer, n, inner int, gy, y, gx []T, logarithm bool) {
	size := n * inner
	if size == 0 {
		return
	}
	step := size
	if len(gy) == size {
		step = 0
	}
	Parallel(outer, ceilDiv(1<<12, size), func(lo, hi int) {
		sum := make([]float64, inner)
		for i := lo; i < hi; i++ {
			g, r, out := gy[i*step:][:size], y[i*size:][:size], gx[i*size:][:size]
			if logarithm {
				logSoftmaxGrad(g, r, out, sum)
			} else {
				softmaxGrad(g, r, out, sum)
			}
		}
	})
}

func softmaxGrad[T float32 | float64](g, y, gx []T, sum []float64) {
	clear(sum)
	for i := 0; i < len(g); i += len(sum) {
		a, b := g[i:][:len(sum)], y[i:][:len(sum)]
		for j := range sum {
			sum[j] += float64(a[j]) * float64(b[j])
		}
	}
	for i := 0; i < len(g); i += len(sum) {
		a, b, out := g[i:][:len(sum)], y[i:][:len(sum)], gx[i:][:len(sum)]
		for j, s := range sum {
			out[j] = T(float64(b[j]) * (float64(a[j]) - s))
		}
	}
}

func logSoftmaxGrad[T float32 | float64](g, y, gx []T, sum []float64) {
	clear(sum)
	for i := 0; i < len(g); i += len(sum) {
		a := g[i:][:len(sum)]
		for j := range sum {
			sum[j] += float64(a[j])
		}
	}
	var buf [256]float64
	for at := 0; at < len(g); at += len(buf) {
		e := buf[:min(len(buf), len(g)-at)]
		for i, v := range y[at:][:len(e)] {
			e[i] = float64(v)
		}
		Exp64(e, e)
		a, out := g[at:][:len(e)], gx[at:][:len(e)]
		for i, j := 0, at%len(sum); i < len(e); i++ {
			out[i] = T(float64(a[i]) - float64(e[i]*sum[j]))
			if j++; j == len(sum) {
				j = 0
			}
		}
	}
}
