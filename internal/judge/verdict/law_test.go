package verdict_test

import (
	"testing"

	"plumb/internal/draw/choice"
	"plumb/internal/judge/compare"
	"plumb/op"
	"plumb/ops"
	"plumb/tensor"
)

// TestLawsHold draws from every random operator of the table, in every dtype,
// and judges all the draws together by the operator's own law.
func TestLawsHold(t *testing.T) {
	for _, d := range ops.Table().Defs() {
		if !d.Traits.Has(op.Random) || d.Sample == nil {
			continue
		}
		for _, dtype := range []tensor.DType{tensor.F32, tensor.F64, tensor.BF16, tensor.F16} {
			t.Run(d.ID()+" "+dtype.String(), func(t *testing.T) {
				var all []op.Draw
				var law *op.Law
				for key := range uint64(200) {
					more, l := drawSample(t, d, dtype, key)
					for _, m := range more {
						m.At = len(all)
						all = append(all, m)
					}
					if l != nil {
						law = l
					}
				}
				if d.Traits.Has(op.Undefined) {
					if law == nil || len(all) > 0 {
						t.Errorf("%d draws of undefined elements", len(all))
					}
					return
				}
				if len(all) < 400 {
					t.Fatalf("only %d draws", len(all))
				}
				if f := (&compare.Drawn{Draws: all, Law: law}).Follows([]int{len(all)}, dtype); f.Ratio > 1 {
					t.Error(f.Message)
				}
			})
		}
	}
}

func drawSample(t *testing.T, d *op.Def, dtype tensor.DType, key uint64) ([]op.Draw, *op.Law) {
	t.Helper()
	var pos []any
	var kws []op.Kwarg
	for _, a := range d.Sample(&op.Sampler{Source: choice.New(key), DType: dtype}) {
		if kw, ok := a.(op.Kwarg); ok {
			kws = append(kws, kw)
		} else {
			pos = append(pos, a)
		}
	}
	call, err := ops.Table().ResolveID(d.ID(), pos, kws)
	if err != nil {
		t.Fatal(err)
	}
	call.Key = key
	out, err := call.Execute()
	if err != nil {
		t.Fatal(err)
	}
	law := d.Law(call.Args)
	if law == nil {
		return nil, nil
	}
	draws, err := law.Draws(out[0])
	if err != nil {
		t.Fatalf("sample %d: %v", key, err)
	}
	return draws, law
}
