package compare

import "math"

// Hist counts elements by observed error ÷ limit. Entry 0 counts those without
// error; entry i those of a ratio in (Decades[i-1], Decades[i]], and the last
// entry those above.
type Hist [len(Decades) + 1]int

// Decades are the upper ends of a Hist's entries but the last.
var Decades = [...]float64{0, 1e-4, 1e-3, 1e-2, 0.1, 1, 10, 100, 1000}

// firstBin holds, by biased exponent, the entry of the smallest ratio with that
// exponent; the largest one is in the same entry or the next.
var firstBin = func() (t [2048]uint8) {
	for e := range t {
		low := math.Float64frombits(uint64(e) << 52)
		for int(t[e]) < len(Decades) && low > Decades[t[e]] {
			t[e]++
		}
	}
	return t
}()

// decadeBits are the Decades as they order among the bits of ratios; nothing is
// above the last.
var decadeBits = func() (t [16]uint64) {
	for i := range t {
		t[i] = 1<<63 - 1
	}
	for i, d := range Decades {
		t[i] = math.Float64bits(d)
	}
	return t
}()

// bin returns the entry that counts a ratio, which is not negative.
func bin(r float64) int {
	bits := math.Float64bits(r)
	k := int(firstBin[bits>>52&2047])
	return k + int((decadeBits[k&15]-bits)>>63)
}
