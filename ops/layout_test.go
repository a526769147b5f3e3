package ops_test

import (
	"slices"
	"strings"
	"testing"

	"plumb/op"
	"plumb/ops"
	"plumb/tensor"
)

func TestSetitemReplacesWhatGetitemReads(t *testing.T) {
	d := map[string]*op.Def{}
	everySample(t, func(t *testing.T, c *op.Call) {
		if c.Def.ID() != "setitem" {
			return
		}
		d[c.Def.ID()] = c.Def
		x, index := c.Args.Tensor("input"), c.Args.Any(op.AnyArg("index"))
		out := execute(t, c)[0]
		part := call(t, "getitem", []any{out, index})
		want := 1.5
		if v := c.Args.Tensor("value"); v != nil {
			want = v.Float(0)
		}
		for i := range part.Len() {
			if part.Float(i) != want {
				t.Fatalf("%v: element %d of the part is %v, want %v", index, i, part.Float(i), want)
			}
		}
		back := call(t, "setitem", []any{out, index, call(t, "getitem", []any{x, index})})
		if !back.SameBits(x) {
			t.Errorf("%v: other elements changed", index)
		}
	})
	if len(d) == 0 {
		t.Error("no sample")
	}
}

func TestIndexErrorsNameTheirReason(t *testing.T) {
	x := tensor.New(tensor.F32, 2, 3)
	zero := 0
	for _, tt := range []struct {
		index op.Index
		class string
		text  string
	}{
		{op.Index{int64(2)}, "IndexError", "index 2 is out of bounds for dimension 0 with size 2"},
		{op.Index{int64(0), int64(0), int64(0)}, "IndexError", "too many indices for tensor of dimension 2"},
		{op.Index{op.Slice{Step: &zero}}, "ValueError", "step must be greater than zero"},
	} {
		c, err := ops.Table().ResolveID("getitem", []any{x, tt.index}, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Execute()
		e, ok := err.(*op.Error)
		if !ok || e.Class != tt.class || !strings.Contains(e.Msg, tt.text) {
			t.Errorf("%v: %v, want %s %q", tt.index, err, tt.class, tt.text)
		}
	}
}

func TestPadShowsTheEntriesThatItsModeNames(t *testing.T) {
	x := tensor.Float64s(tensor.F64, []int{1, 4}, 0, 1, 2, 3)
	for mode, want := range map[string][]float64{
		"constant": {9, 9, 0, 1, 2, 3, 9}, "reflect": {2, 1, 0, 1, 2, 3, 2},
		"replicate": {0, 0, 0, 1, 2, 3, 3}, "circular": {2, 3, 0, 1, 2, 3, 0},
	} {
		in := tensor.Float64s(tensor.F64, []int{1, 1, 4}, 0, 1, 2, 3)
		args := []any{in, []int{2, 1}, mode}
		if mode == "constant" {
			args = []any{x, []int{2, 1}, mode, 9.0}
		}
		out := call(t, "pad", args)
		var got []float64
		for i := range out.Len() {
			got = append(got, out.Float(i))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", mode, got, want)
		}
	}
}
