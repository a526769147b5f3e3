package diopi

import (
	"encoding/hex"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"plumb/tensor"
)

// TestSumsAreNumpys holds the sums to the bits of numpy's, in lengths on both
// sides of its blocks.
func TestSumsAreNumpys(t *testing.T) {
	python := "/usr/bin/python3"
	if exec.Command(python, "-c", "import numpy").Run() != nil {
		t.Skip("no numpy: numpy.sum is not asked")
	}
	const script = `
import numpy as np, warnings
warnings.simplefilter("ignore")
rng = np.random.RandomState(0)
for d in "float16 float32 float64 int8 uint8 int16 int32 int64 bool complex64 complex128".split():
    for n in 0, 1, 2, 7, 8, 9, 15, 16, 60, 63, 64, 65, 70, 127, 128, 129, 130, 300, 1000, 8192, 9001, 30000:
        x = rng.randn(n) * 30
        if d.startswith("complex"):
            x = x + 1j * rng.randn(n)
        x = x.astype(d)
        s = np.sum(x)
        print(d, n, x.tobytes().hex() or "-", s.dtype, s.tobytes().hex())
`
	out, err := exec.Command(python, "-c", script).Output()
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		n, err := strconv.Atoi(f[1])
		if err != nil {
			t.Fatal(err)
		}
		in := tensor.New(numpyDType(t, f[0]), n)
		if f[2] != "-" {
			raw, err := hex.DecodeString(f[2])
			if err != nil {
				t.Fatal(err)
			}
			copy(in.Bytes(), raw)
		}
		got := summed(in)
		compared++
		if wide := f[3]; wide == "uint64" {
			f[3] = "int64" // the same bits
		}
		if got.DType() != numpyDType(t, f[3]) || hex.EncodeToString(got.Bytes()) != f[4] {
			t.Errorf("%s of %d: %s %x, numpy has %s %s", f[0], n, got.DType(), got.Bytes(), f[3], f[4])
		}
	}
	if compared != 11*22 {
		t.Errorf("%d sums are compared", compared)
	}
}
