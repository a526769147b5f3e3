package onekernel

import "testing"

// TestSizesAreBoundedByPrograms: what has few programs is not held to what another size
// has made many of.
func TestSizesAreBoundedByPrograms(t *testing.T) {
	m := &maker{}
	if got := m.programs(map[string]int{"N": 4099}); got != 0 {
		t.Errorf("%d programs are known before any call", got)
	}
	m.learn(&Case{Sizes: map[string]int{"N": 129, "C": 3}}, 129)
	m.learn(&Case{Sizes: map[string]int{"N": 8, "C": 1024}}, 8)
	for _, of := range []struct{ n, c, wantN, wantC int }{{4099, 3, 257, 3}, {4096, 3, 512, 3}, {511, 3, 511, 3}, {1023, 3, 511, 3}, {8, 4099, 8, 4099}, {4099, 1024, 257, 1024}} {
		sizes := map[string]int{"N": of.n, "C": of.c}
		if m.thin(sizes); sizes["N"] != of.wantN || sizes["C"] != of.wantC {
			t.Errorf("%d rows of %d become %v, want %d of %d", of.n, of.c, sizes, of.wantN, of.wantC)
		}
	}
	m.promises.Ranges = map[string][2]int{"N": {1000, 5000}}
	sizes := map[string]int{"N": 4099, "C": 3}
	if m.thin(sizes); sizes["N"] < 1000 {
		t.Errorf("what is promised becomes %v", sizes)
	}
}

func TestSlowCallsBoundTheLargestSize(t *testing.T) {
	m := &maker{}
	m.slowed(&Case{sig: &Signature{}, Sizes: map[string]int{"N": 1024, "C": 16}}, 10, 40)
	if n, c := m.bounded("N", 1024), m.bounded("C", 16); n != 256 || c != 16 {
		t.Errorf("after 10 of 40 programs 1024 rows become %d, 16 columns %d", n, c)
	}
	m.slowed(&Case{sig: &Signature{}}, 10, 40) // no size at all
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
