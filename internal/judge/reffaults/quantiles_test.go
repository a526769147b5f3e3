package reffaults

import (
	"testing"

	"plumb/program"
)

// TestInfiniteQuantiles: what is known is of one infinity, among numbers alone.
func TestInfiniteQuantiles(t *testing.T) {
	for elements, want := range map[string]bool{
		`1.0, float("inf")`:            true,
		`float("-inf"), float("-inf")`: true,
		`float("-inf"), float("inf")`:  false,
		`float("nan"), float("inf")`:   false,
		`1.0, 2.0`:                     false,
	} {
		p, err := program.Parse("case.py", program.Header+"\ncase(\"case.py::case\", seed=1)\nx = tensor((2,), torch.float32, ["+elements+"])\nv = torch.quantile(x, 0.5)\n")
		if err != nil {
			t.Fatal(err)
		}
		f := infiniteQuantiles[0]
		if got := f.When(p); got != want {
			t.Errorf("%s: %t", elements, got)
		}
		if f.Shows(1) || f.Target != "quantile" {
			t.Error("a number is known")
		}
	}
}
