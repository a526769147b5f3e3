package onekernel

import (
	"maps"
	"testing"

	"plumb/program"
	"plumb/tensor"
)

// TestSizesAreBoundedByPrograms: what has few programs is not held to what another size
// has made many of.
func TestSizesAreBoundedByPrograms(t *testing.T) {
	m := &maker{}
	if got := m.programs(map[string]int{"N": 4099}); got != 0 {
		t.Errorf("%d programs are known before any call", got)
	}
	m.learn(&Case{Sizes: map[string]int{"N": 129, "C": 3}}, 129)
	m.learn(&Case{Sizes: map[string]int{"N": 8, "C": 1024}}, 8)
	hold := func(n, c, wantN, wantC int) {
		sizes := map[string]int{"N": n, "C": c}
		if m.thin(sizes); sizes["N"] != wantN || sizes["C"] != wantC {
			t.Errorf("%d rows of %d become %v, want %d of %d", n, c, sizes, wantN, wantC)
		}
	}
	for _, of := range [][4]int{{4099, 3, 1025, 3}, {4096, 3, 1024, 3}, {511, 3, 511, 3}, {8, 4099, 8, 4099}, {4099, 1024, 1025, 1024}} {
		hold(of[0], of[1], of[2], of[3])
	}
	m.learn(&Case{Sizes: map[string]int{"N": 1025, "C": 3}}, 1025) // a program for each row indeed
	for _, of := range [][4]int{{4099, 3, 257, 3}, {4096, 3, 512, 3}, {1023, 3, 511, 3}, {8, 4099, 8, 4099}} {
		hold(of[0], of[1], of[2], of[3])
	}
	m.promises.Ranges = map[string][2]int{"N": {1000, 5000}}
	sizes := map[string]int{"N": 4099, "C": 3}
	if m.thin(sizes); sizes["N"] < 1000 {
		t.Errorf("what is promised becomes %v", sizes)
	}
}

// TestManyProgramsOfOtherSizesDoNotBoundALargeOne: 512 programs of six sizes, all of which are
// smaller in another call, say little of one that has two sizes larger.
func TestManyProgramsOfOtherSizesDoNotBoundALargeOne(t *testing.T) {
	m := &maker{}
	m.learn(&Case{Sizes: map[string]int{"D": 64, "T": 8, "H": 8, "G": 8, "B": 8, "S": 8}}, 512)
	sizes := map[string]int{"D": 129, "T": 2, "H": 2, "G": 2, "B": 2, "S": 65}
	if m.thin(sizes); sizes["D"] != 129 || sizes["S"] != 65 {
		t.Errorf("%v", sizes)
	}
}

// TestWhatIsNoMatrixIsNarrowedFirst: where all sizes are multiples of 8, as a kernel may demand.
func TestWhatIsNoMatrixIsNarrowedFirst(t *testing.T) {
	m := makerOf(t, "q: float[B,H,T,D], k: float[B,H,S,D]", tensor.F32)
	c := cases(t, m, 1)[0]
	for _, want := range []map[string]int{{"B": 2, "H": 2, "T": 8, "S": 8, "D": 64}, {"B": 2, "H": 2, "T": 2, "S": 2, "D": 64}} {
		if !m.narrow(c) || !maps.Equal(c.Sizes, want) {
			t.Errorf("%v, want %v", c.Sizes, want)
		}
	}
}

// TestWhatIsFarTooLargeIsForeseen: by how the reference's work has grown, before a call of
// which nothing could be learned.
func TestWhatIsFarTooLargeIsForeseen(t *testing.T) {
	sig, _, err := ParseSignature("q: f32[B,L,D], k: f32[B,L,D]")
	if err != nil {
		t.Fatal(err)
	}
	attention := func(b, l int) int { return 6 * b * l * l }
	rows := func(b, l int) int { return 40 * b * l }
	for _, c := range []struct {
		name  string
		of    func(b, l int) int
		met   []int // lengths of the calls before
		least int   // that is promised
		want  int
	}{
		{"attention", attention, []int{3, 64, 129}, 0, 313},
		{"of one known length", attention, []int{64, 65, 3}, 0, 5000},
		{"rows", rows, []int{64, 129}, 0, 5000},
		{"a recurrence of slow steps", func(b, l int) int { return 1100 * l }, []int{64, 129}, 0, 2500},
		{"attention of lengths that are promised", attention, []int{64, 129}, 4000, 5000},
	} {
		m := &maker{}
		for _, l := range c.met {
			m.counts(&Case{sig: sig, Sizes: map[string]int{"B": 4, "L": l, "D": 4}}, c.of(4, l))
		}
		if c.least > 0 {
			m.promises.Ranges = map[string][2]int{"L": {c.least, 6000}}
		}
		sizes := map[string]int{"B": 4, "L": 5000, "D": 4}
		if m.foresee(sig, sizes); sizes["L"] != c.want || sizes["B"] != 4 || sizes["D"] != 4 {
			t.Errorf("%s: %v, want a length of %d", c.name, sizes, c.want)
		}
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

// worked is a session whose interpreter has computed so much.
func worked(done int, judged ...*result) *Session {
	return &Session{cfg: &Config{}, work: done, outcomes: judged}
}

// TestCallsHaveAShareOfTheWork: what is left goes to calls in ever smaller shares, and a call
// that is made again has room for what it took.
func TestCallsHaveAShareOfTheWork(t *testing.T) {
	one := &result{}
	all := worked(0).mayWork()
	for _, of := range []struct {
		s    *Session
		took int
		want int
	}{
		{worked(0), 0, all / ofAll},
		{worked(0, one), 0, min(usualOfCall, all/ofLeft)},
		{worked(all/2, one), 0, all / 2 / ofLeft},
		{worked(2*all, one), 0, leastOfCall},
		{worked(2*all, one), 40_000, 80_000},
	} {
		if got := of.s.allowance(&Case{work: of.took}); got != of.want {
			t.Errorf("after %d a call that took %d may take %d, want %d", of.s.work, of.took, got, of.want)
		}
	}
	if s := worked(all); s.worked(1) || !worked(all+1).worked(1) || s.worked(overdrawn) {
		t.Error("all that may be done is done too early or too late")
	}
	longer := worked(all)
	if longer.cfg.Budget = 4 * usualBudget; longer.worked(0.5) {
		t.Error("who gives more time is given no more work")
	}
}

// TestSlowCallsKeepTheirLargestSize: what takes too long is made smaller beside its largest
// size first, then by as much as there were too many programs.
func TestSlowCallsKeepTheirLargestSize(t *testing.T) {
	sig, _, err := ParseSignature("x: f32[N,C,W]")
	if err != nil {
		t.Fatal(err)
	}
	m := &maker{target: program.OwnPrefix + "kernel", signature: sig.fixed}
	c := &Case{sig: sig, DType: tensor.F32, Regime: Usual, Layout: Contiguous, Sizes: map[string]int{"N": 5, "C": 1, "W": 1027}}
	if !m.narrow(c) || c.Sizes["N"] != narrowest || c.Sizes["C"] != 1 || c.Sizes["W"] != 1027 || c.program.Inputs[0].Shape[2] != 1027 {
		t.Fatalf("%v beside its largest size", c.Sizes)
	}
	if m.narrow(c) {
		t.Errorf("%v twice", c.Sizes)
	}
	if !m.lighten(c, 1, 1) || c.Sizes["W"] != 257 {
		t.Errorf("one program that takes too long becomes %v", c.Sizes)
	}
	if !m.lighten(c, 10, 160) || c.Sizes["W"] > 17 || c.Sizes["W"] < 9 {
		t.Errorf("10 of 160 programs become %v", c.Sizes)
	}
	m.promises.Ranges = map[string][2]int{"N": {4, 8}}
	if c.Sizes["N"] = 5; m.narrow(c) {
		t.Errorf("what is promised becomes %v", c.Sizes)
	}
}
