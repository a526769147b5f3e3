package choice

import "golang.org/x/sys/cpu"

// useAVX2 is changed by tests only.
var useAVX2 = cpu.X86.HasAVX2

// perTurn is how many words a turn of philoxAVX2 writes.
const perTurn = 24

// vector writes as many of the words as whole turns do, and returns how many.
func (p Philox) vector(dst []uint64, i uint64) int {
	turns := len(dst) / perTurn
	if turns == 0 || !useAVX2 {
		return 0
	}
	var keys [20][4]uint64
	k0, k1 := p.k0, p.k1
	for r := 0; r < len(keys); r += 2 {
		for lane := range 4 {
			keys[r][lane], keys[r+1][lane] = uint64(k0), uint64(k1)
		}
		k0 += 0x9E3779B9
		k1 += 0xBB67AE85
	}
	philoxAVX2(&dst[0], turns, i, &keys)
	return turns * perTurn
}
