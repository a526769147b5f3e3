package program

import (
	"math"
	"math/bits"
	"sync"
)

// The quantile of the standard normal distribution, as straight lines between
// points that lie 32 to an octave of the tail's probability, down to 2⁻³³: a
// deviate is a table look-up, a product and a sum, the same bits everywhere.
const (
	octaves   = 32
	perOctave = 32
)

// line is one piece of the quantile: at + t·step, t from 0 to 2⁵³.
type line struct{ at, step float64 }

// quantile returns the lines of z(x), where |Z| > z has the probability x, by
// the octave of x from [1/2, 1) downwards and the place in it. The last octave
// comes first, so that a leading bit takes part in the index.
var quantile = sync.OnceValue(func() *[octaves * perOctave]line {
	var out [octaves * perOctave]line
	o := orbit{x: 1, dz: -0x1.40d931ff62706p+00} // -√(2π)/2
	for k := range octaves {
		for j := perOctave - 1; j >= 0; j-- {
			end := o.z
			o.to(math.Ldexp(float64(perOctave+j), -6-k))
			out[(k*perOctave+j+perOctave)%len(out)] = line{o.z, (end - o.z) * 0x1p-53}
		}
	}
	return &out
})

// orbit follows the quantile z(x) along its differential equation z″ = z·z′²,
// which needs no function that another machine may round differently.
type orbit struct{ x, z, dz float64 }

// to goes to x by sixteen steps of the classical Runge–Kutta method.
func (o *orbit) to(x float64) {
	const steps = 16
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
func deviate(q *[octaves * perOctave]line, word uint64) float64 {
	tail := word<<1 | 1<<32
	k := bits.LeadingZeros64(tail)
	tail <<= k & 63
	l := &q[(k<<5+int(tail>>58))%len(q)]
	z := l.at + float64(float64(int64(tail<<6>>11))*l.step)
	return math.Float64frombits(math.Float64bits(z) | word&(1<<63))
}
