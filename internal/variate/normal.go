package variate

import (
	"math"
	"sync"
)

// The quantile of the standard normal distribution, z(x) where |Z| > z has the
// probability x, in a polynomial for each octave of x. The tables of eight
// octaves are what a vector register holds; an octave's place in its table is
// the last bits of the exponent of x·2³¹ as a float32.
const (
	octaves = 8
	sets    = 4
	degree  = 4
	sign    = 1 << 31
)

// quantile returns the coefficients of z in v, which falls from 1 to 0 where x
// passes its octave upwards. Neighbours meet, so the law has no holes.
var quantile = sync.OnceValue(func() *[sets][degree + 1][octaves]float32 {
	var out [sets][degree + 1][octaves]float32
	o := orbit{x: 1, dz: -0x1.40d931ff62706p+00} // -√(2π)/2
	for k := range sets * octaves {
		var z [degree + 1]float64
		for i, v := range nodes {
			o.to(math.Ldexp(2-v, -1-k))
			z[i] = o.z
		}
		for j, c := range through(z) {
			out[k/octaves][j][exponent(k)%octaves] = float32(c)
		}
	}
	return &out
})

// exponent is that, with its bias, of the tails 2³¹⁻ᵏ⁻¹ to 2³¹⁻ᵏ as float32.
func exponent(k int) int { return 127 + 30 - k }

// nodes are (1 - cos(iπ/4))/2.
var nodes = [degree + 1]float64{0, 0x1.2bec333018866p-03, 0.5, 0x1.b504f333f9de6p-01, 1}

// through returns the coefficients of the polynomial whose values at the nodes are z.
func through(z [degree + 1]float64) (c [degree + 1]float64) {
	for i := 1; i <= degree; i++ {
		for j := degree; j >= i; j-- {
			z[j] = (z[j] - z[j-1]) / (nodes[j] - nodes[j-i])
		}
	}
	for i := degree; i >= 0; i-- {
		for j := degree; j > 0; j-- {
			c[j] = c[j-1] - float64(c[j]*nodes[i])
		}
		c[0] = z[i] - float64(c[0]*nodes[i])
	}
	return c
}

// orbit follows the quantile z(x) along its differential equation z″ = z·z′²,
// which needs no function that another machine may round differently.
type orbit struct{ x, z, dz float64 }

// to goes to x by 128 steps of the classical Runge–Kutta method.
func (o *orbit) to(x float64) {
	const steps = 128
	h := (x - o.x) / steps
	for range steps {
		z, v := o.z, o.dz
		k1 := bend(z, v)
		k2 := bend(z+float64(h/2*v), v+float64(h/2*k1))
		v2 := v + float64(h/2*k1)
		v3 := v + float64(h/2*k2)
		k3 := bend(z+float64(h/2*v2), v3)
		v4 := v + float64(h*k3)
		k4 := bend(z+float64(h*v3), v4)
		o.z = z + float64(h/6*(v+float64(2*v2)+float64(2*v3)+v4))
		o.dz = v + float64(h/6*(k1+float64(2*k2)+float64(2*k3)+k4))
	}
	o.x = x
}

func bend(z, v float64) float64 { return float64(float64(z*v) * v) }

// deviate returns the standard normal deviate of a random word: its first bit
// is the sign, the others are the probability of a larger magnitude.
func deviate(table *[sets][degree + 1][octaves]float32, word, signs uint32) float32 {
	tail := min(float32(max(int32(word&^sign), 1)), 1<<31-1<<7)
	bits := math.Float32bits(tail)
	k, e := exponent(0)-int(bits>>23), bits>>23%octaves
	v := 2 - math.Float32frombits(bits&(1<<23-1)|127<<23)
	c := &table[k/octaves%sets]
	z := c[degree][e]
	for j := degree - 1; j >= 0; j-- {
		z = float32(z*v) + c[j][e]
	}
	return math.Float32frombits(math.Float32bits(z) | word&signs)
}

// Normals makes standard normal deviates, two of each word, or their
// magnitudes where folded. The lower half of a word comes first.
//
// The first bit of a half is the sign; the others, as a share of 2³¹ and in 24
// digits, are the probability x of a larger magnitude z(x). That function is
// taken from a polynomial of degree 4 in each octave of x, within 6e-5. No
// deviate is 0; the largest is about 6.2.
func Normals(dst []float32, words []uint64, folded bool) {
	signs := signsOf(folded)
	table := quantile()
	for i := normals(dst, words, signs); i < len(dst); i++ {
		dst[i] = deviate(table, uint32(words[i/2]>>(i%2*32)), signs)
	}
}

// Normals64 makes standard normal deviates, one of each word, or their
// magnitudes where folded: those that Normals makes of the words' upper halves,
// with the 29 lowest bits of the words as further digits.
func Normals64(dst []float64, words []uint64, folded bool) {
	signs := signsOf(folded)
	table := quantile()
	for i := normals64(dst, words, signs); i < len(dst); i++ {
		z := float64(deviate(table, uint32(words[i]>>32), signs))
		dst[i] = math.Float64frombits(math.Float64bits(z) | words[i]&(1<<29-1))
	}
}

func signsOf(folded bool) uint32 {
	if folded {
		return 0
	}
	return sign
}
