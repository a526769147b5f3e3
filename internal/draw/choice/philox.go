package choice

import "math/bits"

// Philox is the counter-based generator Philox4x32-10 of Salmon et al.,
// "Parallel random numbers: as easy as 1, 2, 3" (SC 2011), under one 64-bit
// key. Block i depends on the key and i alone, so that a stream can be
// produced in any order, in parts, on any machine.
type Philox struct{ k0, k1 uint32 }

// NewPhilox returns the generator of a key.
func NewPhilox(key uint64) Philox { return Philox{uint32(key), uint32(key >> 32)} }

// Derive returns the key of a sub-stream from a key and a path of numbers, so
// that (seed, test, case, tensor) has one key however cases are scheduled.
func Derive(seed uint64, path ...uint64) uint64 {
	for i, p := range path {
		out := NewPhilox(seed).block(uint32(p), uint32(p>>32), uint32(i), 0x506c756d)
		seed = uint64(out[0]) | uint64(out[1])<<32
	}
	return seed
}

// DeriveName returns the key of a sub-stream from a name.
func DeriveName(seed uint64, name string) uint64 {
	h := uint64(14695981039346656037) // FNV-1a
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * 1099511628211
	}
	return Derive(seed, h)
}

// Block returns the four 32-bit words of block i.
func (p Philox) Block(i uint64) [4]uint32 { return p.block(uint32(i), uint32(i>>32), 0, 0) }

// Pair returns the two 64-bit words of block i.
func (p Philox) Pair(i uint64) (uint64, uint64) {
	b := p.Block(i)
	return uint64(b[0]) | uint64(b[1])<<32, uint64(b[2]) | uint64(b[3])<<32
}

func (p Philox) block(c0, c1, c2, c3 uint32) [4]uint32 {
	k0, k1 := p.k0, p.k1
	for range 10 {
		h0, l0 := bits.Mul32(0xD2511F53, c0)
		h1, l1 := bits.Mul32(0xCD9E8D57, c2)
		c0, c1, c2, c3 = h1^c1^k0, l1, h0^c3^k1, l0
		k0 += 0x9E3779B9
		k1 += 0xBB67AE85
	}
	return [4]uint32{c0, c1, c2, c3}
}
