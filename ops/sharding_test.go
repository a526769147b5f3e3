package ops_test

import (
	"fmt"
	"math"
	"math/cmplx"
	"testing"

	"plumb/internal/draw/choice"
	"plumb/op"
	"plumb/ops"
	"plumb/tensor"
)

func TestEveryOperatorSaysHowItIsSharded(t *testing.T) {
	for _, d := range ops.Table().Defs() {
		stated := d.SBP != nil || (d.Compose != nil || d.Formula != nil) && d.NotSplittable == ""
		if stated == (d.NotSplittable != "") {
			t.Errorf("%s: its literal needs either SBP or, in NotSplittable, the reason why it has none", d.ID())
		}
	}
}

// shardedSamples is how many sampled calls each operator's signatures have to hold on.
const shardedSamples = 16

func TestShardingsComputeTheWhole(t *testing.T) {
	for _, d := range ops.Table().Defs() {
		if d.Sample == nil || d.Traits.Has(op.Random) {
			continue
		}
		t.Run(d.ID(), func(t *testing.T) {
			tried := 0
			for key := range uint64(shardedSamples) {
				call := sample(t, d, key, tensor.F64)
				shardings, err := call.Shardings()
				if err != nil {
					t.Fatalf("sample %d: %v", key, err)
				}
				for _, s := range shardings {
					for _, ranks := range []int{2, 3} {
						ran, err := checkSharding(call, s, ranks, key)
						if err != nil {
							t.Errorf("sample %d, %s on %d ranks: %v", key, s, ranks, err)
						}
						if ran {
							tried++
						}
					}
				}
			}
			if tried == 0 && d.NotSplittable == "" {
				t.Errorf("no signature was tried on %d samples", shardedSamples)
			}
		})
	}
}

func TestWrongShardingsAreCaught(t *testing.T) {
	for _, c := range []struct {
		id  string
		key uint64
		s   op.Sharding
	}{
		{"relu", 0, op.Sharding{Args: map[string]op.SBP{"input": op.P}, Results: []op.SBP{op.P}}},
		{"sum", 0, op.Sharding{Args: map[string]op.SBP{"input": op.S(0)}, Results: []op.SBP{op.B}}},
		{"add", 0, op.Sharding{Args: map[string]op.SBP{"input": op.P}, Results: []op.SBP{op.P}}},
		{"matmul", 0, op.Sharding{Args: map[string]op.SBP{"input": op.S(0)}, Results: []op.SBP{op.P}}},
	} {
		d := ops.Table().Def(c.id)
		caught := false
		for key := range uint64(shardedSamples) {
			ran, err := checkSharding(sample(t, d, key, tensor.F64), c.s, 2, key)
			caught = caught || ran && err != nil
		}
		if !caught {
			t.Errorf("%s: nothing speaks against %s", c.id, c.s)
		}
	}
}

// checkSharding runs the call on ranks as s says and compares what they hold
// with the whole result. It does not run when the call cannot be shared so.
func checkSharding(call *op.Call, s op.Sharding, ranks int, key uint64) (ran bool, err error) {
	metas, err := call.Infer()
	if err != nil {
		return false, err
	}
	if !axesExist(s, call.Args, metas) || !s.Fits(call.Args, metas, ranks) {
		return false, nil
	}
	whole := with(call, sameLayout)
	want, err := whole.Execute()
	if err != nil {
		return false, err
	}
	summands := map[op.Value][]*tensor.Tensor{}
	parts, locals := make([][]*tensor.Tensor, ranks), make([]*op.Call, ranks)
	for rank := range ranks {
		locals[rank] = s.Local(call, metas, ranks, rank, func(v op.Value, sbp op.SBP) op.Value {
			x := v.(*tensor.Tensor)
			if sbp != op.P {
				return sbp.Piece(x, ranks, rank).Clone()
			}
			if summands[v] == nil {
				summands[v] = summandsOf(x, ranks, key+uint64(len(summands))<<8)
			}
			return summands[v][rank]
		})
		if parts[rank], err = locals[rank].Execute(); err != nil {
			return true, fmt.Errorf("rank %d: %w", rank, err)
		}
	}
	exact := call.Def.Tol.Class == op.Exact && !s.Partial()
	for i := range want {
		var held []*tensor.Tensor
		for _, p := range parts {
			if len(p) != len(want) {
				return true, fmt.Errorf("a rank has %d results of %d", len(p), len(want))
			}
			held = append(held, p[i])
		}
		if err := gathersTo(s.Result(i), want[i], held, exact); err != nil {
			return true, fmt.Errorf("result %d: %w", i, err)
		}
	}
	for _, name := range call.Def.Mutates {
		if !call.Args.Has(name) {
			continue
		}
		var held []*tensor.Tensor
		for _, l := range locals {
			held = append(held, l.Args.Tensor(name))
		}
		if err := gathersTo(s.Args[name.Name()], whole.Args.Tensor(name), held, exact); err != nil {
			return true, fmt.Errorf("%s afterwards: %w", name, err)
		}
	}
	return true, nil
}

func gathersTo(sbp op.SBP, want *tensor.Tensor, held []*tensor.Tensor, exact bool) error {
	got, err := sbp.Gather(want.Shape(), held)
	if err != nil {
		return err
	}
	return sameWithin(want, got, exact)
}

func axesExist(s op.Sharding, a op.Args, results []op.Meta) bool {
	exists := func(sbp op.SBP, shape []int) bool {
		axis, split := sbp.Axis()
		return !split || axis < len(shape)
	}
	names := a.ArgNames()
	for i, v := range a.AllValues() {
		if !exists(s.Args[names[i]], v.Shape()) {
			return false
		}
	}
	for i, m := range results {
		if !exists(s.Result(i), m.Shape) {
			return false
		}
	}
	return true
}

// summandsOf returns random summands of x, one for each rank.
func summandsOf(x *tensor.Tensor, ranks int, key uint64) []*tensor.Tensor {
	s := &op.Sampler{Source: choice.New(key + 1), DType: x.DType()}
	rest := x.Clone()
	parts := []*tensor.Tensor{}
	for range ranks - 1 {
		part := s.Tensor(-2, 2, x.Shape()...)
		for i := range rest.Len() {
			rest.Set(i, rest.At(i)-part.At(i))
		}
		parts = append(parts, part)
	}
	return append(parts, rest)
}

// unitOf is the distance from 1 to the next number; 0 for exact types.
var unitOf = map[tensor.DType]float64{
	tensor.F64: 0x1p-52, tensor.C128: 0x1p-52, tensor.F32: 0x1p-23, tensor.C64: 0x1p-23, tensor.F16: 0x1p-10, tensor.BF16: 0x1p-7,
}

// sameWithin compares elements: equal, or within what reordered sums may differ by.
func sameWithin(want, got *tensor.Tensor, exact bool) error {
	if want.DType() != got.DType() {
		return fmt.Errorf("dtype %s, not %s", got.DType(), want.DType())
	}
	scale := 1.0
	for i := range want.Len() {
		if m := cmplx.Abs(want.At(i)); !math.IsInf(m, 0) && !math.IsNaN(m) {
			scale = max(scale, m)
		}
	}
	limit := 64 * scale * unitOf[want.DType()]
	if exact {
		limit = 0
	}
	for i := range want.Len() {
		w, g := want.At(i), got.At(i)
		if w == g || cmplx.IsNaN(w) && cmplx.IsNaN(g) || cmplx.Abs(w-g) <= limit {
			continue
		}
		return fmt.Errorf("element %d is %v, not %v", i, g, w)
	}
	return nil
}
