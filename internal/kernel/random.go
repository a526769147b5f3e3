package kernel

import (
	"math"

	"plumb/tensor"
)

// Stream fills dst with the words of a random stream from position at on.
type Stream func(dst []uint64, at int)

// Fill sets the elements of out, in row-major order whatever its strides, to
// what f makes of a random stream, per words for each element. At is the
// position of the first element of dst.
func Fill[T float64 | int64](out *tensor.Tensor, s Stream, per int, f func(dst []T, words []uint64, at int)) {
	t := out
	if !t.IsContiguous() {
		t = tensor.New(out.DType(), out.Shape()...)
	}
	store := storer[T](t)
	Parallel(t.Len(), mapGrain, func(lo, hi int) {
		words, dst := make([]uint64, per*blockSize), make([]T, blockSize)
		for lo < hi {
			n := min(blockSize, hi-lo)
			s(words[:per*n], per*lo)
			f(dst[:n], words[:per*n], lo)
			store(dst[:n], t.Offset()+lo, 1)
			lo += n
		}
	})
	if t != out {
		out.CopyFrom(t)
	}
}

// Unit returns the number in [0, 1) of a random word, in 53 bits.
func Unit(word uint64) float64 { return float64(word>>11) * 0x1p-53 }

// Uniform fills with numbers in [0, 1) of as many binary digits; one word each.
func Uniform(digits int) func(dst []float64, words []uint64, at int) {
	scale := math.Ldexp(1, -digits)
	return func(dst []float64, words []uint64, _ int) {
		for i := range dst {
			dst[i] = float64(words[i]>>(64-digits)) * scale
		}
	}
}

// UniformIn fills with numbers in [lo, hi); one word each.
func UniformIn(lo, hi float64) func(dst []float64, words []uint64, at int) {
	return func(dst []float64, words []uint64, _ int) {
		for i := range dst {
			dst[i] = lo + float64((hi-lo)*Unit(words[i]))
		}
	}
}

// Normal fills with standard normal numbers by the method of Box and Muller;
// two words each.
func Normal(dst []float64, words []uint64, _ int) {
	for i := range dst {
		u := float64(words[2*i]>>11+1) * 0x1p-53
		dst[i] = math.Sqrt(-2*math.Log(u)) * math.Cos(2*math.Pi*Unit(words[2*i+1]))
	}
}

// Keep fills with value, each with probability 1-p, and else with 0; one word each.
func Keep(p, value float64) func(dst []float64, words []uint64, at int) {
	return func(dst []float64, words []uint64, _ int) {
		for i := range dst {
			dst[i] = 0
			if Unit(words[i]) < 1-p {
				dst[i] = value
			}
		}
	}
}

// Bernoulli fills with 1 with the probability of each element, and else with
// 0; one word each.
func Bernoulli(p []float64) func(dst []float64, words []uint64, at int) {
	return func(dst []float64, words []uint64, at int) {
		for i, q := range p[at : at+len(dst)] {
			dst[i] = 0
			if Unit(words[i]) < q {
				dst[i] = 1
			}
		}
	}
}

// Integers fills with integers in [lo, hi); one word each.
func Integers(lo, hi int64) func(dst []int64, words []uint64, at int) {
	span := uint64(hi - lo)
	return func(dst []int64, words []uint64, _ int) {
		for i := range dst {
			dst[i] = lo + int64(words[i]%span)
		}
	}
}

// Poisson fills with Poisson numbers of the rate of each element, by
// inversion: the count is the number of unit exponential steps that fit into
// the rate. One word each seeds the steps.
func Poisson(rate []float64) func(dst []float64, words []uint64, at int) {
	return func(dst []float64, words []uint64, at int) {
		for i, r := range rate[at : at+len(dst)] {
			dst[i] = poisson(r, words[i])
		}
	}
}

// poisson adds exponential steps, as long as e^-rate is a normal number.
func poisson(rate float64, word uint64) float64 {
	if rate > 500 {
		return poissonOfMany(rate, word)
	}
	limit := math.Exp(-rate)
	for count, product := 0.0, 1.0; ; count++ {
		word = mix(word)
		if product *= Unit(word); product <= limit {
			return count
		}
	}
}

// poissonOfMany is Hörmann's transformed rejection with squeeze (PTRS, 1993),
// whose time does not grow with the rate.
func poissonOfMany(rate float64, word uint64) float64 {
	if math.IsInf(rate, 1) {
		return rate
	}
	b := 0.931 + 2.53*math.Sqrt(rate)
	a := -0.059 + 0.02483*b
	scale := 1.1239 + 1.1328/(b-3.4)
	for {
		word = mix(word)
		u := Unit(word) - 0.5
		word = mix(word)
		v := Unit(word)
		edge := 0.5 - math.Abs(u)
		k := math.Floor((2*a/edge+b)*u + rate + 0.43)
		if edge >= 0.07 && v <= 0.9277-3.6224/(b-2) {
			return k
		}
		if k < 0 || edge < 0.013 && v > edge {
			continue
		}
		factorial, _ := math.Lgamma(k + 1)
		if math.Log(v*scale/(a/(edge*edge)+b)) <= k*math.Log(rate)-rate-factorial {
			return k
		}
	}
}

// mix is one step of SplitMix64.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Shuffle fills dst with a random order of 0 to len(dst)-1, by the method of
// Fisher and Yates.
func Shuffle(dst []int64, s Stream) {
	for i := range dst {
		dst[i] = int64(i)
	}
	words := make([]uint64, blockSize)
	for i := len(dst) - 1; i > 0; i-- {
		k := (len(dst) - 1 - i) % blockSize
		if k == 0 {
			s(words, len(dst)-1-i)
		}
		j := int(words[k] % uint64(i+1))
		dst[i], dst[j] = dst[j], dst[i]
	}
}

// Multinomial fills dst with indices drawn with the given weights, whose sum
// is positive; without replacement an index is drawn once. One unit number each.
func Multinomial(dst []int64, weights []float64, replacement bool, unit []float64) {
	left, sum := make([]float64, len(weights)), 0.0
	copy(left, weights)
	for _, w := range left {
		sum += w
	}
	for k := range dst {
		target, at, last := unit[k]*sum, 0.0, 0
		for i, w := range left {
			if w < 0 || w == 0 && sum > 0 {
				continue
			}
			last = i
			if at += w; target < at {
				break
			}
		}
		dst[k] = int64(last)
		if !replacement {
			left[last] = -1
			sum = rest(left)
		}
	}
}

// rest adds the weights that are left; a drawn one is -1.
func rest(left []float64) float64 {
	sum := 0.0
	for _, w := range left {
		sum += max(w, 0)
	}
	return sum
}

// Scaled is the block function of a product.
func Scaled[T float32 | float64 | complex128](dst, a, b []T) {
	for i, x := range a {
		dst[i] = x * b[i]
	}
}

// ScaledAndShifted returns the block function of a·b + c, the product rounded
// by round; c is zero where b is 0, else other.
func ScaledAndShifted[T float32 | float64 | complex128](zero, other T, round func(T) T) func(dst, a, b []T) {
	return func(dst, a, b []T) {
		for i, x := range a {
			c := other
			if b[i] == 0 {
				c = zero
			}
			dst[i] = round(x*b[i]) + c
		}
	}
}

// NoisyRelu is rrelu: positive elements as they are, others times their slope.
func NoisyRelu[T float32 | float64](dst, a, slope []T) {
	for i, x := range a {
		dst[i] = x
		if x <= 0 {
			dst[i] = x * slope[i]
		}
	}
}
