package program

import "testing"

// TestOutMayChange: a call whose keyword out is a tensor changes it.
func TestOutMayChange(t *testing.T) {
	p, err := Parse("p.py", Header+"\ncase(\"p.py::p\", seed=1)\nx = tensor((1,), torch.float32, [1.0])\ny = torch.add(x, 1)\nz = torch.add(x, 1, out=y)\nw = torch.add(x, 1, out=None)\n")
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []bool{false, true, false} {
		if got := p.MayChange(i); got != want {
			t.Errorf("call %d: %t", i, got)
		}
	}
}
