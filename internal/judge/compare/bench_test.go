package compare

import (
	"testing"

	"plumb/internal/draw/choice"
	"plumb/op"
	"plumb/tensor"
)

// pair returns two float32 tensors of n elements that differ in the last bits
// of about half of them.
func pair(n int) (a, b *tensor.Tensor) {
	a, b = tensor.New(tensor.F32, n), tensor.New(tensor.F32, n)
	x, y := tensor.Data[float32](a), tensor.Data[float32](b)
	rng := choice.NewPhilox(7)
	for i := range x {
		u, v := rng.Pair(uint64(i))
		x[i] = float32(u>>40)*0x1p-23 - 1
		y[i] = x[i] * (1 + float32(v&3)*0x1p-23)
	}
	return a, b
}

// BenchmarkTensors reports GB/s over two 64 MiB tensors, both counted, beside a
// plain read of as many bytes.
func BenchmarkTensors(b *testing.B) {
	want, got := pair(16 << 20)
	same := want.Clone() // next to want: 256 MiB apart, the lines of both would share a tag in AMD's first-level cache
	want64, got64 := want.Narrow(0, 0, 8<<20, 1).Convert(tensor.F64), got.Narrow(0, 0, 8<<20, 1).Convert(tensor.F64)
	def := Default(tensor.F32)
	steps := Limit{Class: op.Pointwise, RTol: 1e-9, ULP: 8}
	cases := []struct {
		name      string
		want, got *tensor.Tensor
		limit     Limit
	}{
		{"close", want, got, def},
		{"close-ulp", want, got, steps},
		{"exact", want, got, Exactly("")},
		{"identical", want, same, def},
		{"transposed", want.Reshape(4096, 4096), got.Reshape(4096, 4096).Transpose(0, 1), def},
		{"float64", want64, got64, def},
		{"float64-ulp", want64, got64, steps},
	}
	for _, c := range cases {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(2 * 64 << 20)
			for b.Loop() {
				Tensors(c.want, c.got, c.limit, Options{})
			}
		})
		b.Run(c.name+"-rules-alone", func(b *testing.B) {
			b.SetBytes(2 * 64 << 20)
			for b.Loop() {
				Passes(c.want, c.got, c.limit, Options{})
			}
		})
	}
	b.Run("memory-read", func(b *testing.B) {
		b.SetBytes(2 * 64 << 20)
		for b.Loop() {
			read64(want)
			read64(got)
		}
	})
}

// BenchmarkSmall is the cost of one comparison of the size that tests draw.
func BenchmarkSmall(b *testing.B) {
	want, got := pair(60)
	b.ReportAllocs()
	for b.Loop() {
		Tensors(want, got, Default(tensor.F32), Options{})
	}
}

var sink uint64

func read64(t *tensor.Tensor) {
	bits := t.Storage()
	n := len(bits) / 8
	flat, _ := tensor.FromBytes(tensor.I64, []int{n}, []int{1}, 0, bits)
	var s0, s1, s2, s3 int64
	x := tensor.Data[int64](flat)
	for i := 0; i+4 <= len(x); i += 4 {
		s0 += x[i]
		s1 += x[i+1]
		s2 += x[i+2]
		s3 += x[i+3]
	}
	sink += uint64(s0 + s1 + s2 + s3)
}
