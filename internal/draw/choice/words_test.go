package choice

import (
	"slices"
	"testing"
)

// Words are those of Pair, whatever computes them, also where the block's number
// passes 2³² within a turn.
func TestWords(t *testing.T) {
	was := useAVX2
	defer func() { useAVX2 = was }()
	for _, vector := range []bool{was, false} {
		useAVX2 = vector
		for _, n := range []int{0, 1, 23, 24, 25, 103, 512} {
			for _, first := range []uint64{0, 7, 1<<32 - 5, 1<<64 - 3} {
				p := NewPhilox(0x0123456789abcdef)
				want, got := make([]uint64, n+1), make([]uint64, n)
				for i := 0; i < n; i += 2 {
					want[i], want[i+1] = p.Pair(first + uint64(i/2))
				}
				p.Words(got, first)
				if !slices.Equal(got, want[:n]) {
					t.Errorf("vector %t: %d words from block %d differ", vector, n, first)
				}
			}
		}
	}
}

func BenchmarkWords(b *testing.B) {
	dst := make([]uint64, 504)
	b.SetBytes(int64(8 * len(dst)))
	for b.Loop() {
		NewPhilox(7).Words(dst, 3)
	}
}
