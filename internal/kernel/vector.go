package kernel

import "math"

//go:generate go run -C ../asmgen ./pointwise -out ../kernel/pointwise_amd64.s -stubs ../kernel/pointwise_stub_amd64.go -pkg kernel -lanes ../kernel/pointwise_lanes.go

// unaryPass and binaryPass work on n elements that lie side by side.
type (
	unaryPass    = func(dst, a *float32, n int)
	binaryPass   = func(dst, a, b *float32, n int)
	unaryPass64  = func(dst, a *float64, n int)
	binaryPass64 = func(dst, a, b *float64, n int)
)

// vectorPasses are passes for the processor at hand, over float32 elements or those of the name; nil
// where it has none. The bits of an element depend on neither its place nor n.
type vectorPasses struct {
	add, sub, mul, div, pow, maximum, minimum                                      binaryPass
	abs, neg, sqrt, relu                                                           unaryPass
	exp, exp2, expm1, sigmoid, silu, mish, tanh, sinh, cosh                        unaryPass
	erf, erfc, gelu, geluTanh                                                      unaryPass
	log, log2, log10, log1p, logSigmoid                                            unaryPass
	asinh, acosh, atanh, sin, cos, tan, asin, acos, atan, rsqrt                    unaryPass
	exp64, expm1Of64, sigmoid64, silu64, tanh64, sinh64, cosh64                    unaryPass64
	log64, log2Of64, log10Of64, log1pOf64, logSigmoid64, asinh64, acosh64, atanh64 unaryPass64
	pow64                                                                          binaryPass64
	sum                                                                            func(a *float32, n int) float64
	squares                                                                        func(a *float32, n int, mean float64) float64
	max                                                                            func(a *float32, n int) float32
	expSum                                                                         func(dst, a *float32, n int, top float64) float64
	subtract, affine                                                               func(dst, a *float32, n int, first, second float64)
	affineRow                                                                      func(dst, a, weight, bias *float32, n int, factor, offset float32)
	gradSums                                                                       func(g, x *float32, n int, mean float64, out *[2]float64)
	gradSumsWeighted                                                               func(g, x, weight *float32, n int, mean float64, out *[2]float64)
	project                                                                        func(dst, g, x *float32, n int, mean, scale, meanG, slope float64)
	projectWeighted                                                                func(dst, g, x, weight *float32, n int, mean, scale, meanG, slope float64)
	addColumns                                                                     func(g, x *float32, n, step int, factors, offsets *[4]float64, sums, products *float64)
	tapRow                                                                         func(dst, x *float32, n int, start float32, taps *float32, offsets *int, count int)
}

var vectors = availablePasses()

// vectorSum returns the sum of the elements that a pass takes, and the others.
func vectorSum[T Lane](x []T) (sum float64, rest []T) {
	if v, ok := any(x).([]float32); ok && vectors.sum != nil && len(v) >= 16 {
		n := len(v) &^ 15
		return vectors.sum(&v[0], n), x[n:]
	}
	return 0, x
}

func unaryBlock[T float](pass func(dst, a *T, n int), portable func(dst, a []T)) func(dst, a []T) {
	if pass == nil {
		return portable
	}
	return func(dst, a []T) {
		if len(dst) > 0 {
			a = a[:len(dst)]
			pass(&dst[0], &a[0], len(dst))
		}
	}
}

func binaryBlock[T float](pass func(dst, a, b *T, n int), portable func(dst, a, b []T)) func(dst, a, b []T) {
	if pass == nil {
		return portable
	}
	return func(dst, a, b []T) {
		if len(dst) > 0 {
			a, b = a[:len(dst)], b[:len(dst)]
			pass(&dst[0], &a[0], &b[0], len(dst))
		}
	}
}

// Block functions of float32.
var (
	// Add32 sets dst to a + b.
	Add32 = binaryBlock(vectors.add, Add[float32])
	// Sub32 sets dst to a - b.
	Sub32 = binaryBlock(vectors.sub, Sub[float32])
	// Mul32 sets dst to a·b.
	Mul32 = binaryBlock(vectors.mul, Mul[float32])
	// Div32 sets dst to a / b.
	Div32 = binaryBlock(vectors.div, Div[float32])
	// Maximum32 sets dst to the larger of a and b; a NaN wins.
	Maximum32 = binaryBlock(vectors.maximum, Maximum[float32])
	// Minimum32 sets dst to the smaller of a and b; a NaN wins.
	Minimum32 = binaryBlock(vectors.minimum, Minimum[float32])
	// Abs32 sets dst to |a|.
	Abs32 = unaryBlock(vectors.abs, abs32)
	// Neg32 sets dst to -a.
	Neg32 = unaryBlock(vectors.neg, Neg[float32])
	// Sqrt32 sets dst to the square root of a.
	Sqrt32 = unaryBlock(vectors.sqrt, Sqrt[float32])
	// Relu32 sets dst to max(a, 0).
	Relu32 = unaryBlock(vectors.relu, Relu[float32])
	// Pow32 sets dst to a raised to b.
	Pow32 = pow32(binaryBlock(vectors.pow, Zip[float32](powLane)))
	// Pow64 sets dst to a raised to b, within a unit in the last place or so.
	Pow64 = pow64(binaryBlock(vectors.pow64, Zip[float64](pow64Lane)))
)

func pow32(block func(dst, a, b []float32)) func(dst, a, b []float32) {
	return func(dst, a, b []float32) {
		a, b = a[:len(dst)], b[:len(dst)]
		block(dst, a, b)
		for i, x := range a {
			if y := b[i]; x == 0 || x-x != 0 || !(y < 1<<31 && y > -1<<31) {
				dst[i] = float32(Power(float64(x), float64(y)))
			}
		}
	}
}

// pow64 leaves to Power what is zero, subnormal, infinite or nearly so.
func pow64(block func(dst, a, b []float64)) func(dst, a, b []float64) {
	return func(dst, a, b []float64) {
		a, b = a[:len(dst)], b[:len(dst)]
		block(dst, a, b)
		for i, x := range a {
			size, y := math.Abs(dst[i]), b[i]
			if size < 1e-300 || size > 1e300 || math.Abs(x) < 0x1p-1022 || x-x != 0 || !(y < 1<<31 && y > -1<<31) {
				dst[i] = Power(x, y)
			}
		}
	}
}
