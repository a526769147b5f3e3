//go:build !amd64

package choice

// useAVX2 is changed by tests only.
var useAVX2 = false

func (p Philox) vector([]uint64, uint64) int { return 0 }
