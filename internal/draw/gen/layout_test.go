package gen

import (
	"fmt"
	"slices"
	"testing"

	"plumb/internal/draw/choice"
	"plumb/program"
	"plumb/tensor"
)

func drawTensor(t *testing.T, key uint64, s TensorSpec) *Tensor {
	t.Helper()
	x := value(t, RandomTensor(s), NewCase(choice.New(key))).(*Tensor)
	in := program.Input{Name: "x", DType: x.DType, Shape: x.Shape, Strides: x.Strides, Fill: x.Fill}
	if err := (&program.Program{Inputs: []program.Input{in}}).Validate(); err != nil {
		t.Fatal(err)
	}
	in.Materialize()
	return x
}

func TestLayouts(t *testing.T) {
	dims := [5]any{2, 3, 4, 5}
	for _, c := range []struct {
		layout Layout
		ndim   int
		holds  func(strides []int) bool
	}{
		{Contiguous, 4, func(s []int) bool { return s == nil }},
		{Strided, 4, func(s []int) bool { return slices.Equal(s, []int{120, 40, 10, 2}) }},
		{Transposed, 4, func(s []int) bool {
			return s != nil && tensor.Extent([]int{2, 3, 4, 5}, s) == 120 && !slices.Contains(s, 0)
		}},
		{Expanded, 4, func(s []int) bool { return slices.Contains(s, 0) }},
		{ChannelsLast, 4, func(s []int) bool { return slices.Equal(s, []int{60, 1, 15, 3}) }},
		{ChannelsLast, 3, func(s []int) bool { return s == nil }},
		{Transposed, 1, func(s []int) bool { return s == nil }},
		{Expanded, 0, func(s []int) bool { return s == nil }},
		{Strided, 0, func(s []int) bool { return s == nil }},
	} {
		for key := range uint64(20) {
			if x := drawTensor(t, key, TensorSpec{NDim: c.ndim, Dims: dims, Layouts: []Layout{c.layout}}); !c.holds(x.Strides) {
				t.Errorf("%s of %d dimensions: strides %v", c.layout, c.ndim, x.Strides)
			}
		}
	}
	seen := map[string]bool{}
	for key := range uint64(100) {
		seen[fmt.Sprint(drawTensor(t, key, TensorSpec{NDim: 4, Dims: dims, Layouts: Layouts}).Strides)] = true
	}
	if len(seen) < 9 {
		t.Errorf("%d layouts of five kinds", len(seen))
	}
}

// TestNewOptionsTakeNoDecisions: what does not ask for layouts and edge values
// is drawn as it was before there were any.
func TestNewOptionsTakeNoDecisions(t *testing.T) {
	count := func(s TensorSpec) int {
		src := choice.New(1)
		value(t, RandomTensor(s), NewCase(src))
		return len(src.Record())
	}
	plain := count(TensorSpec{NDim: 2})
	if n := count(TensorSpec{NDim: 2, Layouts: []Layout{Strided}}); n != plain {
		t.Errorf("%d decisions with one layout, %d without", n, plain)
	}
	if n := count(TensorSpec{NDim: 2, Special: program.Infs}); n != plain+1 {
		t.Errorf("%d decisions with edge values, %d without", n, plain)
	}
}

func TestSpecialsAreNoneOneOrAll(t *testing.T) {
	seen := map[program.Special]int{}
	for key := range uint64(400) {
		seen[drawTensor(t, key, TensorSpec{Special: program.Infs | program.Zeros}).Fill.Special]++
	}
	for _, s := range []program.Special{0, program.Infs, program.Zeros, program.Infs | program.Zeros} {
		if seen[s] < 60 || len(seen) != 4 {
			t.Errorf("%s %d times of 400 in %v", s, seen[s], seen)
		}
	}
}

func TestChoiceTensor(t *testing.T) {
	from := []complex128{1, 2, 5}
	draw := func(key uint64, s ChoiceSpec) *Tensor {
		return value(t, ChoiceTensor(s), NewCase(choice.New(key))).(*Tensor)
	}
	for key := range uint64(50) {
		x := draw(key, ChoiceSpec{From: from, Shape: []int{3}, DType: tensor.I64}).Fill.Data
		if got := []int64{x.Int(0), x.Int(1), x.Int(2)}; !slices.Equal(slices.Sorted(slices.Values(got)), []int64{1, 2, 5}) {
			t.Fatalf("%v is no permutation", got)
		}
		y := draw(key, ChoiceSpec{From: from, Shape: []int{20}, Replace: true, Weights: []float64{0.5, 0, 0.5}, DType: tensor.F32}).Fill.Data
		for i := range y.Len() {
			if v := y.Float(i); v != 1 && v != 5 {
				t.Fatalf("%v is drawn", v)
			}
		}
	}
	for want, s := range map[string]ChoiceSpec{
		"choice_tensor: there are 3 elements, and 4 different ones are asked for": {From: from, Shape: []int{4}, DType: tensor.I64},
		"choice_tensor: argument 'a' is empty":                                    {Shape: []int{1}, DType: tensor.I64, Replace: true},
		"choice_tensor: argument 'p' has 1 numbers for 3 elements":                {From: from, Shape: []int{1}, DType: tensor.I64, Weights: []float64{1}},
	} {
		if _, err := ChoiceTensor(s).Value(NewCase(choice.New(1))); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestAllSBP(t *testing.T) {
	for _, c := range []struct {
		spec SBPSpec
		want string
	}{
		{SBPSpec{Dim: 1}, "[[B]]"},
		{SBPSpec{Dim: 1, MaxDim: 2}, "[[S0] [S1] [B] [P]]"},
		{SBPSpec{Dim: 1, MaxDim: 3, ValidSplitAxis: []int{2}, ExceptPartialSum: true}, "[[S2] [B]]"},
		{SBPSpec{Dim: 1, MaxDim: 1, ExceptSplit: true}, "[[B] [P]]"},
		{SBPSpec{Dim: 2, MaxDim: 1, ExceptPartialSum: true}, "[[S0 S0] [S0 B] [B S0] [B B]]"},
		{SBPSpec{Dim: 2, MaxDim: 1, ExceptBroadcast: true, ExceptPartialSum: true}, "[[S0 S0]]"},
	} {
		all, err := AllSBP(c.spec)
		if err != nil {
			t.Fatal(err)
		}
		var got [][]string
		for _, signature := range all {
			var one []string
			for _, s := range signature {
				text := string(s.Kind)
				if s.Kind == 'S' {
					text = fmt.Sprintf("S%d", s.Axis)
				}
				one = append(one, text)
			}
			got = append(got, one)
		}
		if fmt.Sprint(got) != c.want {
			t.Errorf("%+v: %v, want %s", c.spec, got, c.want)
		}
	}
	if _, err := AllSBP(SBPSpec{Dim: 20, MaxDim: 5}); err == nil {
		t.Error("any number of signatures is listed")
	}
	if got := AllPlacements("cpu")[1].String(); got != `oneflow.placement(type="cpu", ranks=[[0, 1], [2, 3]])` {
		t.Error(got)
	}
}
