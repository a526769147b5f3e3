package verdict_test

import (
	"fmt"
	"testing"

	"plumb/backend"
	"plumb/backend/native"
	"plumb/internal/judge/verdict"
	"plumb/nn"
	"plumb/ops"
	"plumb/program"
	"plumb/tensor"
)

// TestUnorderedResults: where PyTorch leaves the order of entries open, results
// are compared as sets, and what reads them is not held to either order.
func TestUnorderedResults(t *testing.T) {
	const unique = "x = tensor((4,), torch.int64, [7, 5, 7, 6])\ny = torch.unique(x, sorted=False, return_inverse=True, return_counts=True)\n"
	const unsorted = "x = tensor((5,), torch.float32, [4.0, 1.0, 3.0, 5.0, 2.0])\ny = torch.topk(x, 3, sorted=False)\nv = y[0]\nz = v * 2\n"
	const sorted = "x = tensor((5,), torch.float32, [4.0, 1.0, 3.0, 5.0, 2.0])\ny = torch.topk(x, 3)\n"
	const tied = "x = tensor((5,), torch.float32, [4.0, 1.0, 3.0, 3.0, 5.0])\ny = torch.median(x, 0)\n"
	const kth = "x = tensor((5,), torch.float32, [4.0, 1.0, 3.0, 3.0, 5.0])\ny = torch.kthvalue(x, 2, 0)\n"
	i64 := func(v ...int64) *tensor.Tensor { return tensor.Of(tensor.I64, []int{len(v)}, v) }
	f32 := func(v ...float32) *tensor.Tensor { return tensor.Of(tensor.F32, []int{len(v)}, v) }
	one := func(v float32) *tensor.Tensor { return tensor.Of(tensor.F32, nil, []float32{v}) }
	at := func(v int64) *tensor.Tensor { return tensor.Of(tensor.I64, nil, []int64{v}) }
	for name, c := range map[string]struct {
		text  string
		parts []*tensor.Tensor
		z     *tensor.Tensor
		want  verdict.Word
	}{
		"topk in another order":     {unsorted, []*tensor.Tensor{f32(3, 5, 4), i64(2, 3, 0)}, f32(6, 10, 8), verdict.Aligned},
		"topk of other elements":    {unsorted, []*tensor.Tensor{f32(2, 5, 4), i64(4, 3, 0)}, f32(4, 10, 8), verdict.Misaligned},
		"topk with others' indices": {unsorted, []*tensor.Tensor{f32(3, 5, 4), i64(3, 2, 0)}, f32(6, 10, 8), verdict.Misaligned},
		"sorted topk":               {sorted, []*tensor.Tensor{f32(3, 5, 4), i64(2, 3, 0)}, nil, verdict.Misaligned},
		"median, the other place":   {tied, []*tensor.Tensor{one(3), at(3)}, nil, verdict.Aligned},
		"median, another's place":   {tied, []*tensor.Tensor{one(3), at(0)}, nil, verdict.Misaligned},
		"kthvalue, the other place": {kth, []*tensor.Tensor{one(3), at(3)}, nil, verdict.Aligned},
		"unique in another order":   {unique, []*tensor.Tensor{i64(7, 5, 6), i64(0, 1, 0, 2), i64(2, 1, 1)}, nil, verdict.Aligned},
		"unique, other places":      {unique, []*tensor.Tensor{i64(7, 5, 6), i64(0, 2, 0, 1), i64(2, 1, 1)}, nil, verdict.Misaligned},
		"unique, other counts":      {unique, []*tensor.Tensor{i64(7, 5, 6), i64(0, 1, 0, 2), i64(1, 2, 1)}, nil, verdict.Misaligned},
	} {
		p, err := program.Parse("p.py", head+c.text)
		if err != nil {
			t.Fatal(err)
		}
		job := backend.NewJob(p)
		own := native.New(ops.Table(), nn.Modules())
		ref, _ := own.Run(t.Context(), job)
		cand, _ := own.Run(t.Context(), job)
		if ref.Status != backend.OK {
			t.Fatal(name, ref.Message)
		}
		for k := range c.parts {
			cand.Values[0].Tuple[k].Tensor = c.parts[k]
		}
		if c.z != nil {
			cand.Values[1].Tensor, cand.Values[2].Tensor = c.parts[0], c.z
		}
		if v := verdict.Judge(p, ref, cand, verdict.Policy{Table: ops.Table()}); v.Word != c.want {
			t.Errorf("%s: %s", name, v.Text())
		}
	}
}

// TestPlacesOfEqualElements: what goes to another of equal elements is a gradient
// that no side is held to; that of a median which is there once is held to its place.
func TestPlacesOfEqualElements(t *testing.T) {
	const text = head + "x = tensor((4,), torch.float32, [%s], requires_grad=True)\ny = torch.median(x, 0)\nv = y[0]\nv.backward()\n"
	for elements, want := range map[string]verdict.Word{"3.0, 3.0, 5.0, 1.0": verdict.Aligned, "3.0, 4.0, 5.0, 1.0": verdict.Misaligned} {
		p, err := program.Parse("p.py", fmt.Sprintf(text, elements))
		if err != nil {
			t.Fatal(err)
		}
		own := native.New(ops.Table(), nn.Modules())
		ref, _ := own.Run(t.Context(), backend.NewJob(p))
		cand, _ := own.Run(t.Context(), backend.NewJob(p))
		at := backend.Place{Part: backend.PartGrad, Owner: "x"}
		g := cand.At(at)
		if ref.Status != backend.OK || g == nil {
			t.Fatalf("%+v", ref)
		}
		other := 1 - int(ref.Values[0].Tuple[1].Tensor.Int(0))
		cand.Values[0].Tuple[1].Tensor.SetInt(0, int64(other))
		for i := range g.Len() {
			g.Set(i, 0)
		}
		g.Set(other, 1)
		if v := verdict.Judge(p, ref, cand, verdict.Policy{Table: ops.Table()}); v.Word != want {
			t.Errorf("%s: %s", elements, v.Text())
		}
	}
}
