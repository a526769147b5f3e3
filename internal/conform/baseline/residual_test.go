package baseline

import (
	"bytes"
	"io"
	"math"
	"math/rand/v2"
	"testing"

	"plumb/tensor"
)

// TestResidual takes differences of every width, in every dtype, and applies them.
func TestResidual(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var memory []byte // of one after the other
	for _, d := range tensor.DTypes {
		for _, n := range []int{1, 7, 511, 512, 513, 5000} {
			for _, near := range []bool{false, true} {
				want, pred := tensor.New(d, n), tensor.New(d, n)
				a, b := want.Storage(), pred.Storage()
				for i := range a {
					a[i], b[i] = byte(rng.Uint32()), byte(rng.Uint32())
					if near && (i%part(d) > 0 || i%37 > 0) {
						b[i] = a[i]
					}
				}
				delta := residual(d, a, b, memory)
				packed, nan := delta.packed, delta.nan
				memory = packed
				if delta.differs == bytes.Equal(a, b) {
					t.Errorf("%s[%d]: differs %v", d, n, delta.differs)
				}
				if near && part(d) > 1 && len(a) > 4000 && len(packed) >= len(a) {
					t.Errorf("%s[%d]: %d bytes for %d", d, n, len(packed), len(a))
				}
				out := tensor.New(d, n)
				var check checksum
				if err := restore(d, out.Storage(), b, packed, nan, &check); err != nil || !bytes.Equal(out.Storage(), a) {
					t.Fatalf("%s[%d] near %v: other bytes (%v)", d, n, near, err)
				}
				var sum checksum
				sum.add(a)
				if check != sum || delta.check != sum {
					t.Errorf("%s[%d]: checksums %s and %s, want %s", d, n, &check, &delta.check, &sum)
				}
				for _, cut := range []int{0, len(packed) / 2, len(packed) - 1} {
					if err := restore(d, out.Storage(), b, packed[:cut], nan, &check); err == nil {
						t.Errorf("%s[%d]: %d of %d bytes were accepted", d, n, cut, len(packed))
					}
				}
			}
		}
	}
}

// TestUnits: a unit in the last place is a difference of one, of two across
// zero, which has two values; zigzag takes three bits for it.
func TestUnits(t *testing.T) {
	values := []float32{1, -1, 0, math.SmallestNonzeroFloat32, -math.SmallestNonzeroFloat32, math.MaxFloat32}
	want, pred := tensor.New(tensor.F32, 512), tensor.New(tensor.F32, 512)
	for i := range 512 {
		v := values[i%len(values)]
		want.Set(i, complex(float64(v), 0))
		pred.Set(i, complex(float64(math.Nextafter32(v, -2)), 0))
	}
	packed := residual(tensor.F32, want.Storage(), pred.Storage(), nil).packed
	if got, most := len(packed), 1+512*3/8; got > most {
		t.Errorf("%d bytes for differences of at most 1 unit, want at most %d", got, most)
	}
}

// TestShuffle: elements of each size, in fewer and in more than one part, come
// back from their planes, at once and as they are read.
func TestShuffle(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, size := range []int{1, 2, 4, 8} {
		for _, n := range []int{24, 2*shuffledLen + 8} {
			in := tensor.New(tensor.F64, (n*size+7)/8).Storage()[:n*size]
			for i := range in {
				in[i] = byte(rng.Uint32())
			}
			var out bytes.Buffer
			c := newCoder(&out)
			c.shuffled(in, size)
			for i, b := range out.Bytes()[:24] {
				if b != in[i*size] {
					t.Fatalf("size %d: byte %d is %d, want that of element %d, %d", size, i, b, i, in[i*size])
				}
			}
			back := tensor.New(tensor.F64, (len(in)+7)/8).Storage()[:len(in)]
			unshuffleAll(back, out.Bytes(), size)
			read, err := io.ReadAll(newUnshuffler(&out, size, int64(len(in))))
			if c.err != nil || err != nil || !bytes.Equal(in, back) || !bytes.Equal(in, read) {
				t.Errorf("%d elements of size %d: other bytes (%v, %v)", n, size, c.err, err)
			}
		}
	}
}

func FuzzResidual(f *testing.F) {
	f.Add([]byte{3, 1, 2, 3}, uint8(2), 9, uint64(0))
	f.Add([]byte{64, 255}, uint8(3), 600, uint64(0x7fc00000))
	f.Fuzz(func(t *testing.T, in []byte, kind uint8, n int, nan uint64) {
		if n < 0 || n > 5000 {
			return
		}
		d := tensor.DTypes[int(kind)%len(tensor.DTypes)]
		b, before := tensor.New(d, n), tensor.New(d, n).Storage()
		if restore(d, b.Storage(), before, in, nan, &checksum{}) != nil {
			return
		}
		out := tensor.New(d, n)
		delta := residual(d, b.Storage(), before, nil)
		if err := restore(d, out.Storage(), before, delta.packed, delta.nan, &checksum{}); err != nil || !bytes.Equal(out.Storage(), b.Storage()) {
			t.Fatalf("%s[%d] comes back as something else (%v)", d, n, err)
		}
	})
}

// TestNaNs: NaNs of other bits on both sides are no difference, but come back
// with the bits that they had.
func TestNaNs(t *testing.T) {
	for _, d := range []tensor.DType{tensor.F16, tensor.BF16, tensor.F32, tensor.F64, tensor.C64} {
		const n = 600
		want, pred := tensor.New(d, n), tensor.New(d, n)
		for i := range n {
			v := complex(float64(i%5), float64(i%3))
			if i%2 == 0 {
				v = complex(math.NaN(), math.NaN())
			}
			want.Set(i, v)
			pred.Set(i, v)
		}
		size := part(d)
		for i := size - 1; i < len(want.Storage()); i += size {
			if want.Storage()[i]&0x7f == 0x7f {
				want.Storage()[i] |= 0x80 // the sign
			}
		}
		delta := residual(d, want.Storage(), pred.Storage(), nil)
		packed, nan := delta.packed, delta.nan
		if len(packed) > 4 || delta.differs == bytes.Equal(want.Storage(), pred.Storage()) {
			t.Errorf("%s: %d bytes where only the signs of NaNs differ", d, len(packed))
		}
		out := tensor.New(d, n)
		if err := restore(d, out.Storage(), pred.Storage(), packed, nan, &checksum{}); err != nil || !bytes.Equal(out.Storage(), want.Storage()) {
			t.Errorf("%s: other bytes (%v)", d, err)
		}
	}
}
