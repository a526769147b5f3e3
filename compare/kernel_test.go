package compare

import "testing"
import "unsafe"

func BenchmarkKernels(b *testing.B) {
	wt, gt := pair(2048)
	w, g := view[float32](wt.Storage()), view[float32](gt.Storage())
	m := newMeter(wt.DType(), rule{1.3e-6, 1e-5, 0}, Options{})
	m.estimable()
	k := &m.buf.simd.rate
	k.in.rel = 1
	var t total
	ratios := view[float32](bytesOf(m.buf.simd.ratios[:]))
	b.Run("sums32", func(b *testing.B) { b.SetBytes(16384); for b.Loop() { sums32(&w[0], &g[0], 2048, (*[7]float64)(unsafe.Pointer(&t))) } })
	b.Run("rates32", func(b *testing.B) { b.SetBytes(16384); for b.Loop() { rates32(&w[0], &g[0], 2048, (*[12]uint32)(unsafe.Pointer(&k.in)), &ratios[0], &m.buf.simd.bins[0], (*[7]uint32)(unsafe.Pointer(&k.out))) } })
	b.Run("count", func(b *testing.B) { b.SetBytes(16384); for b.Loop() { count(&m.buf.simd.bins[0], 2048, &k.bins) } })
	var in [4]uint32
	in[2] = 1<<32-1
	b.Run("within32", func(b *testing.B) { b.SetBytes(16384); for b.Loop() { within32(&w[0], &g[0], 2048, &in) } })
}
