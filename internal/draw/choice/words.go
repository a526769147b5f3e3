package choice

//go:generate go run -C ../../asmgen ./philox -out ../draw/choice/philox_amd64.s -stubs ../draw/choice/philox_stub_amd64.go -pkg choice

// Words fills dst with the 64-bit words of the blocks from i on, two a block.
func (p Philox) Words(dst []uint64, i uint64) {
	if n := p.vector(dst, i); n > 0 {
		dst, i = dst[n:], i+uint64(n/2)
	}
	for k := 0; k < len(dst); k += 2 {
		a, b := p.Pair(i + uint64(k/2))
		dst[k] = a
		if k+1 < len(dst) {
			dst[k+1] = b
		}
	}
}
