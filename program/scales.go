package program

import "math"

// The least size that Scales draws is 2 to the power of this, and so is the
// least distance from 1.
const leastOctave = -12

// scaled is the element of a word under Scales: an octave, each as likely as any
// other, and a place in it. A quarter is of the octaves from 1 on, and a quarter
// as near to 1 or to -1 as small numbers are to 0. It multiplies by powers of two
// alone, so that it is the same on every machine.
func (f *Fill) scaled(word uint64) float64 {
	u, sign := float64(word>>11)*0x1p-53, 1.0
	if f.Lo < 0 && (f.Hi <= 0 || word>>9&1 == 0) {
		sign = -1
	}
	if word>>7&3 == 0 {
		d := octave(u, math.Ldexp(1, leastOctave), 1)
		if word>>10&1 == 0 {
			d = -d / 2
		}
		if v := sign + d; v >= f.Lo && v < f.Hi {
			return v
		}
	}
	least := 0.0
	if word>>7&3 == 1 {
		least = 1
	}
	if sign < 0 {
		return -octave(u, max(-f.Hi, min(least, -f.Lo/2)), -f.Lo)
	}
	return octave(u, max(f.Lo, min(least, f.Hi/2)), f.Hi)
}

// octave is the place of u in the octaves from lo, or the least one, to hi.
func octave(u, lo, hi float64) float64 {
	lo = max(lo, math.Ldexp(min(hi, 1), leastOctave))
	if !(lo < hi) {
		return lo
	}
	_, first := math.Frexp(lo)
	_, last := math.Frexp(math.Nextafter(hi, lo))
	at := float64(u * float64(last-first+1))
	k := int(at)
	from := max(lo, math.Ldexp(0.5, first+k))
	to := min(hi, math.Ldexp(1, first+k))
	return from + float64((at-float64(k))*(to-from))
}
