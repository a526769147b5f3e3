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
				found := Operand{like, opening(bytes.NewReader(want.Bytes()))}.Judge(got, limit, Options{})
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

func opening(r io.Reader) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) { return io.NopCloser(r), nil }
}

// TestStreamEnds: what is cut short, or cannot be read, is an error.
func TestStreamEnds(t *testing.T) {
	got := tensor.New(tensor.F32, 3000)
	for _, r := range []io.Reader{bytes.NewReader(nil), bytes.NewReader(make([]byte, 2999*4))} {
		if d := (Operand{got, opening(r)}).Judge(got, Default(tensor.F32), Options{}); d.Rule != Structure {
			t.Errorf("%v: want broken structure", d)
		}
	}
	zeros := Operand{got, opening(bytes.NewReader(make([]byte, 3000*4)))}
	if d := zeros.Judge(got.Narrow(0, 0, 1500, 2), Default(tensor.F32), Options{}); d.Rule != Shape {
		t.Errorf("another shape: %v", d)
	}
	strided := tensor.New(tensor.F32, 6000).Narrow(0, 0, 3000, 2)
	if d := zeros.Judge(strided, Default(tensor.F32), Options{}); d.Rule != Structure {
		t.Errorf("a strided result: %v", d)
	}
}
