package compare

import (
	"bytes"
	"io"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plumb/tensor"
)

// TestStream: elements that are read as they are compared give what Tensors
// finds of those in memory, and where a rule is broken that rule.
func TestStream(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, d := range []tensor.DType{tensor.U8, tensor.I64, tensor.F16, tensor.BF16, tensor.F32, tensor.F64, tensor.C64, tensor.C128} {
		for _, n := range []int{0, 1, chunkLen, chunkLen + 1, 3*chunkLen + 5} {
			for _, fault := range []float64{0, 1e-3, 10, math.NaN()} {
				want, got := tensor.New(d, 1, n), tensor.New(d, 1, n)
				for i := range n {
					v := complex(math.Round(rng.Float64()*100), 0)
					want.Set(i, v)
					got.Set(i, v)
				}
				if n > 0 {
					at := rng.IntN(n)
					got.Set(at, got.At(at)+complex(fault, 0))
				}
				limit := Default(d)
				expected := Tensors(want, got, limit, Options{})
				like, err := tensor.Scalar(d, 0).Expand(1, n)
				if err != nil {
					t.Fatal(err)
				}
				found, err := Stream(like, bytes.NewReader(want.Bytes()), got, limit, Options{})
				if err != nil {
					t.Fatalf("%s[%d]: %v", d, n, err)
				}
				if !expected.OK {
					expected, found.Message, found.WorstRatio = Diff{Rule: expected.Rule}, "", 0
				}
				if diff := cmp.Diff(expected, found); diff != "" {
					t.Errorf("%s[%d] off by %g (-in memory +read):\n%s", d, n, fault, diff)
				}
			}
		}
	}
}

// TestStreamEnds: what is cut short, or cannot be read, is an error.
func TestStreamEnds(t *testing.T) {
	got := tensor.New(tensor.F32, 3000)
	for _, r := range []io.Reader{bytes.NewReader(nil), bytes.NewReader(make([]byte, 2999*4))} {
		if d, err := Stream(got, r, got, Default(tensor.F32), Options{}); err == nil || d.OK {
			t.Errorf("%v, %v: want an error", d, err)
		}
	}
	if _, err := Stream(got, bytes.NewReader(make([]byte, 3000*4)), got.Narrow(0, 0, 1500, 2), Default(tensor.F32), Options{}); err != nil {
		t.Errorf("another shape is broken metadata, not an error: %v", err)
	}
	strided := tensor.New(tensor.F32, 6000).Narrow(0, 0, 3000, 2)
	if _, err := Stream(got, bytes.NewReader(make([]byte, 3000*4)), strided, Default(tensor.F32), Options{}); err == nil {
		t.Error("a strided result: want an error")
	}
}
