package diopi

import (
	"fmt"
	"strings"
	"testing"

	"plumb/op"
	"plumb/ops"
	"plumb/program"
	"plumb/tensor"
)

// TestArguments binds calls of operators, and shows what the functions are given.
func TestArguments(t *testing.T) {
	of := func(shape ...int) op.Value { return tensor.New(tensor.F32, shape...) }
	index := func(ns ...int64) op.Value {
		t := tensor.New(tensor.I64, len(ns))
		for i, n := range ns {
			t.SetInt(i, n)
		}
		return t
	}
	for _, c := range []struct {
		id   string
		args []any
		kw   []op.Kwarg
		want string // the call of the first line that serves, or why the first two do not
	}{
		{"adaptive_avg_pool2d", []any{of(2, 3, 8, 6), []any{nil, int64(2)}}, nil, "diopiAdaptiveAvgPool2d(out[2 3 8 2], t0, [8 2])"},
		{"adaptive_max_pool1d.indices", []any{of(2, 3, 8), []any{int64(2)}}, nil, "diopiAdaptiveMaxPool1dWithIndices(out[2 3 2], out[2 3 2], t0, [2])"},
		{"adaptive_max_pool1d.indices", []any{of(2, 3, 8), []any{int64(2)}, false}, nil, "diopiAdaptiveMaxPool1dWithIndices(out[2 3 2], out[2 3 2], t0, [2])"},
		{"linalg_cholesky_ex", []any{of(2, 3, 3)}, nil, "diopiCholesky(out[2 3 3], out[2], t0, false, false)"},
		{"embedding", []any{index(0, 1, 2, 3, 0), of(4, 3), int64(-1)}, nil, "diopiEmbedding(out[5 3], t0, t1, 3, false, false)"},
		{"embedding", []any{index(0, 1, 2, 3, 0), of(4, 3)}, nil, "diopiEmbedding(out[5 3], t0, t1, -1, false, false)"},
		{"interpolate", []any{of(1, 2, 4, 6)}, []op.Kwarg{{Name: "scale_factor", Value: []any{1.5, 1.5}}}, "diopiUpsampleNearest(out[1 2 6 9], t0, [6 9])"},
		{"interpolate", []any{of(1, 2, 5, 6)}, []op.Kwarg{{Name: "scale_factor", Value: []any{1.5, 1.5}}}, "sizes do not tell a scale_factor of 1.5; diopiUpsampleLinear serves mode = linear"},
		{"interpolate", []any{of(1, 2, 4, 6), []any{int64(3), int64(3)}}, []op.Kwarg{{Name: "mode", Value: "bilinear"}}, `diopiUpsampleLinear(out[1 2 3 3], t0, [3 3], false, bilinear)`},
		{"grid_sample", []any{of(1, 2, 4, 6), of(1, 3, 3, 2), "bicubic"}, nil, "diopiGridSample serves mode = bilinear; diopiGridSample serves mode = bilinear"},
		{"grid_sample", []any{of(1, 2, 4, 6), of(1, 3, 3, 2), "nearest"}, nil, "diopiGridSample(out[1 2 3 3], t0, t1, nearest)"},
		{"where", []any{tensor.New(tensor.Bool, 2), of(2), 3.0}, nil, "diopiWhere(out[2], t0, t1, t2)"},
		{"slice", []any{of(2, 7), int64(1)}, nil, "diopiSlice(out[2 7], t0, 1, 0, 7, 1)"},
		{"slice", []any{of(2, 7), int64(-1), int64(2), int64(5), int64(2)}, nil, "diopiSlice(out[2 2], t0, -1, 2, 5, 2)"},
		{"softmax.functional", []any{of(2, 7, 3)}, nil, "diopiSoftmax(out[2 7 3], t0, 0)"},
		{"softmax.functional", []any{of(2, 7)}, nil, "diopiSoftmax(out[2 7], t0, 1)"},
		{"index_put", []any{of(4), []any{index(1, 2)}, of(2)}, nil, "diopiIndexPut(out[4], t0, t1, [t2], 1, false)"},
		{"index", []any{of(4, 3), []any{int64(1)}, []any{index(1, 2)}}, nil, "diopiIndex(new, t0, [<nil> t1], 2)"},
		{"normalize", []any{of(2, 7)}, nil, "diopiNormalize(out[2 7], t0, 2, 1, 1e-12)"},
		{"normalize", []any{of(2, 7), 2.0, []any{int64(0), int64(1)}}, nil, "the interface's dim takes no list of int"},
		{"norm", []any{of(2, 7)}, nil, "diopiNorm(out[], t0, 2, <nil>)"},
		{"norm", []any{of(2, 7), "nuc"}, nil, "diopiNorm serves p = fro; the interface's p takes no str"},
		{"linalg_cholesky", []any{of(2, 3, 3)}, nil, "diopiCholesky(out[2 3 3], out[2], t0, false, true)"},
		{"conv2d", []any{of(3, 5, 5), of(2, 3, 1, 1)}, nil, "diopiConvolution2d serves batches"},
		{"ctc_loss", []any{of(6, 2, 5), tensor.New(tensor.I64, 2, 3), index(6, 6), index(3, 1)}, nil, "diopiCTCLoss(out[], out[2], out[2 6 7], t0, t1, t2, t3, 0, 1, false)"},
	} {
		def := ops.Table().Def(c.id)
		var args op.Args
		var err error
		for _, sig := range def.Sigs() {
			if args, err = sig.Bind(c.args, c.kw, false); err == nil {
				break
			}
		}
		if err != nil {
			t.Fatal(c.id, err)
		}
		b := &binding{args: args}
		if b.out, err = (&op.Call{Def: def, Args: args}).Infer(); err != nil && !def.Traits.Has(op.Dynamic) {
			t.Fatal(c.id, err)
		}
		if got := bound(b, table.forward[c.id]); got != c.want {
			t.Errorf("%s: %s\nwant %s", c.id, got, c.want)
		}
	}
}

// bound is the call of the first entry that serves.
func bound(b *binding, entries []entry) string {
	var why []string
	for i := range entries {
		p, err := b.call(&entries[i])
		if err == nil {
			var args []string
			for _, a := range p.Calls[0].Args {
				args = append(args, shown(a))
			}
			return fmt.Sprintf("%s(%s)", p.Calls[0].Target, strings.Join(args, ", "))
		}
		why = append(why, err.Error())
	}
	return strings.Join(why[:min(2, len(why))], "; ")
}

// shown is an argument as the test writes it.
func shown(a any) string {
	switch a := a.(type) {
	case program.Ref:
		return string(a)
	case program.Tuple:
		if len(a) == 1 {
			return fmt.Sprint(a[0])
		}
		return fmt.Sprintf("%s%s", a[0], shown(a[2]))
	case program.List:
		var all []string
		for _, e := range a {
			all = append(all, shown(e))
		}
		return "[" + strings.Join(all, " ") + "]"
	}
	return fmt.Sprint(a)
}
