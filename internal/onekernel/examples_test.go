package onekernel

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"

	"plumb/program"
	"plumb/tensor"
)

// TestExamplesGeneralised: whole numbers of examples follow the size that they point into, floats
// keep their dtypes, and there is at least one offset.
func TestExamplesGeneralised(t *testing.T) {
	float := func(dtype string, shape ...int) exampleInput { return exampleInput{DType: dtype, Shape: shape} }
	whole := func(lo, hi float64, p Pattern, shape ...int) exampleInput {
		return exampleInput{DType: "int64", Shape: shape, Lo: &lo, Hi: &hi, Pattern: p}
	}
	sizes := map[string]int{"A": 100, "B": 50, "C": 20}
	for _, c := range []struct {
		what   string
		of     []exampleInput
		lo, hi float64 // of the last input at these sizes
		dtypes []tensor.DType
		first  tensor.DType // of the first input
	}{
		{"rows of a table", []exampleInput{float("float32", 37, 5), whole(3, 35, "", 8)}, 0, 100, []tensor.DType{tensor.F32}, tensor.Invalid},
		{"classes", []exampleInput{float("float16", 6, 10), whole(0, 9, "", 6)}, 0, 50, []tensor.DType{tensor.F16}, tensor.Invalid},
		{"far below all sizes", []exampleInput{float("float32", 37, 5), whole(0, 9, "", 8)}, 0, 10, []tensor.DType{tensor.F32}, tensor.Invalid},
		{"what is 0 or 1", []exampleInput{float("float32", 2, 5), whole(0, 1, "", 5)}, 0, 2, []tensor.DType{tensor.F32}, tensor.Invalid},
		{"with -1", []exampleInput{float("float32", 37, 5), whole(-1, 35, "", 8)}, -1, 36, []tensor.DType{tensor.F32}, tensor.Invalid},
		{"offsets", []exampleInput{float("float32", 37, 5), whole(0, 37, Ascending, 8)}, 0, 101, []tensor.DType{tensor.F32}, tensor.Invalid},
		{"a permutation of its places", []exampleInput{float("float32", 5), whole(0, 7, Permutation, 8)}, 0, 50, []tensor.DType{tensor.F32}, tensor.Invalid},
		{"two dtypes", []exampleInput{float("bfloat16", 37, 5), float("float32", 5), whole(3, 36, "", 8)}, 0, 100, nil, tensor.BF16},
	} {
		sig, err := generalised(c.of)
		if err != nil {
			t.Fatalf("%s: %v", c.what, err)
		}
		in := sig.Inputs[len(sig.Inputs)-1]
		if f := in.fill(&Case{sig: sig, Sizes: sizes}, 0); f.Lo != c.lo || f.Hi != c.hi {
			t.Errorf("%s: from %g to below %g, want %g and %g", c.what, f.Lo, f.Hi, c.lo, c.hi)
		}
		if got := sig.floats(); !slices.Equal(got, c.dtypes) || sig.Inputs[0].DType != c.first {
			t.Errorf("%s: dtypes %v, the first input's %v; want %v and %v", c.what, got, sig.Inputs[0].DType, c.dtypes, c.first)
		}
		if got := sig.offsets(); (len(got) > 0) != (in.Pattern == Ascending) {
			t.Errorf("%s: sizes of offsets %v", c.what, got)
		}
	}
}

// TestSortedInputs: rows of what is said to be sorted are in order, NaN last; of whole numbers with
// the ends of the range.
func TestSortedInputs(t *testing.T) {
	sig, _, err := ParseSignature("edges: f32[2,5] sorted, starts: i64[B+1] < N+1 sorted, p: f32[4] in 0..1 sorted")
	if err != nil {
		t.Fatal(err)
	}
	edges := tensor.New(tensor.F32, 2, 3)
	for i, v := range []float64{3, math.NaN(), 1, 2, 1, 1} {
		edges.Set(i, complex(v, 0))
	}
	sortRows(edges)
	if got := fmt.Sprint(tensor.Data[float32](edges)); got != "[1 3 NaN 1 1 2]" {
		t.Errorf("sorted rows: %v", got)
	}
	c := &Case{DType: tensor.F32, sig: sig, Sizes: map[string]int{"B": 4, "N": 9}}
	for k, ends := range map[int][2]float64{0: {math.NaN(), math.NaN()}, 1: {0, 9}, 2: {math.NaN(), math.NaN()}} {
		of := &sig.Inputs[k]
		in := &program.Input{DType: cmp.Or(of.DType, tensor.F32), Fill: of.fill(c, k)}
		for _, d := range of.Dims {
			in.Shape = append(in.Shape, d.At(c.Sizes))
		}
		x := of.Pattern.fill(in).Data
		row := in.Shape[len(in.Shape)-1]
		for i := range x.Len() {
			if i%row > 0 && x.Float(i) < x.Float(i-1) {
				t.Errorf("%s: %v", of.Name, x)
				break
			}
		}
		if first, last := x.Float(0), x.Float(row-1); first != ends[0] && ends[0] == ends[0] || last != ends[1] && ends[1] == ends[1] {
			t.Errorf("%s: from %g to %g, want %v", of.Name, first, last, ends)
		}
	}
}
