package program

import (
	"testing"

	"plumb/tensor"
)

func TestWiden(t *testing.T) {
	p, err := Parse("p.py", "x = tensor((2,), torch.bfloat16, [0.5, 0.25], requires_grad=True)\n"+
		"i = tensor((2,), torch.int64, [1, 2])\nm = torch.nn.Linear(2, 2, dtype=torch.float32)\n"+
		"a = x.half()\nb = a.to(torch.float32)\nc = b.to(torch.int32)\n"+
		"d = torch.full((2,), 0.1)\ne = torch.arange(3)\nf = torch.linspace(0.0, 1.0, 3)\nb.backward(uniform(0, 1, key=3))")
	if err != nil {
		t.Fatal(err)
	}
	before := p.String()
	w := Widen(p)
	if p.String() != before {
		t.Error("the narrow program was changed")
	}
	if w.DType != tensor.F64 || w.Inputs[0].DType != tensor.F64 || w.Inputs[0].Fill.Data.Float(1) != 0.25 || w.Inputs[1].DType != tensor.I64 {
		t.Errorf("inputs: %v %v", w.DType, w.Inputs)
	}
	want := []string{
		"m = torch.nn.Linear(2, 2, dtype=torch.float64)", "a = x.double()", "b = a.to(torch.float64)", "c = b.to(torch.int32)",
		"d = torch.full((2,), 0.10000000149011612, dtype=torch.float64)", "e = torch.arange(3)", "f = torch.linspace(0.0, 1.0, 3, dtype=torch.float64)",
	}
	for i := range want {
		if got := w.Calls[i].String(); got != want[i] {
			t.Errorf("call %d is %s, want %s", i, got, want[i])
		}
	}
	cot := w.Backward[0].Cotangent.Cotangent(3)
	for i, v := range p.Backward[0].Cotangent.Cotangent(3) {
		if r := tensor.Float64ToBFloat16(v).Float32(); cot[i] != float64(r) {
			t.Errorf("cotangent %d is %v, want %v rounded to bfloat16: %v", i, cot[i], v, r)
		}
	}
	if _, err := Parse("p.py", w.String()); err != nil {
		t.Error(err)
	}
}
