package onekernel

import "testing"

func TestSizesAreBoundedByPrograms(t *testing.T) {
	m := &maker{}
	m.learn(&Case{Sizes: map[string]int{"N": 129, "C": 3}}, 129)
	for n, want := range map[int]int{4099: 257, 4096: 512, 511: 511, 1023: 511} {
		if got := m.bounded("N", n); got != want {
			t.Errorf("%d rows become %d, want %d", n, got, want)
		}
	}
	if got := m.bounded("C", 4099); got != 4099 {
		t.Errorf("a size that made no programs is bounded to %d", got)
	}
}

func TestFaultNamesItsArgument(t *testing.T) {
	got, ok := toldAt("noise\nplumb: reads or writes before the first element of x\nFatal Python error", faultAt)
	if want := "reads or writes before the first element of x"; !ok || got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if _, ok := toldAt("Fatal Python error", faultAt); ok {
		t.Error("an argument where none is told")
	}
}
