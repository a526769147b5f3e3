package onekernel

import (
	"math/cmplx"
	"slices"
	"testing"

	"plumb/program"
	"plumb/tensor"
)

// TestTwins: a call in the memory of the one before has its sizes and first elements,
// and other values.
func TestTwins(t *testing.T) {
	m := makerOf(t, "x: float[B,N]", tensor.F32)
	c := cases(t, m, 1)[0]
	twin, err := m.twin(c, 1)
	if err != nil {
		t.Fatal(err)
	}
	a, b := elements(c.program), elements(twin.program)
	if len(a) != len(b) || a[0] != b[0] || slices.Equal(a, b) || !twin.again {
		t.Errorf("%d elements from %v, %d from %v, again=%v", len(a), a[0], len(b), b[0], twin.again)
	}
}

// TestTwinsKeepNothingUnusual: of a case of NaN and infinities, or of subnormal numbers,
// none is in a twin whose values are called usual.
func TestTwinsKeepNothingUnusual(t *testing.T) {
	m := makerOf(t, "x: float[N]", tensor.F32)
	for _, c := range cases(t, m, len(first)) {
		for n := range keeping {
			twin, err := m.twin(c, n)
			if err != nil {
				t.Fatal(err)
			}
			if twin.Regime == Usual && slices.ContainsFunc(elements(twin.program), func(v complex128) bool { return v != 0 && !(least <= cmplx.Abs(v) && cmplx.Abs(v) <= usual) }) {
				t.Errorf("the twin of %s has %v", c, elements(twin.program))
			}
		}
	}
}

// TestTwinsKeepSamples: of the calls that follow the first one, each has other values, one
// has all of the old ones but one, one the old ends.
func TestTwinsKeepSamples(t *testing.T) {
	m := makerOf(t, "x: float[B,N]", tensor.F32)
	c := cases(t, m, 1)[0]
	was := elements(c.program)
	ends, allButOne := false, false
	for _, n := range twins(0) {
		twin, err := m.twin(c, n)
		if err != nil {
			t.Fatal(err)
		}
		now, differ := elements(twin.program), 0
		for k := range was {
			if was[k] != now[k] {
				differ++
			}
		}
		if differ == 0 {
			t.Errorf("twin %d has the values of the call before", n)
		}
		allButOne = allButOne || differ == 1
		ends = ends || differ > 1 && now[0] == was[0] && now[len(now)-1] == was[len(was)-1]
	}
	if !ends || !allButOne {
		t.Errorf("ends %v, all but one %v", ends, allButOne)
	}
}

// TestTwinsOfTiesHaveTheirSum: by which a kernel may know its arguments again.
func TestTwinsOfTiesHaveTheirSum(t *testing.T) {
	m := makerOf(t, "x: float[B,N]", tensor.F32)
	all := cases(t, m, tenth)
	at := slices.IndexFunc(all, func(c *Case) bool { return c.Regime == Ties && len(twins(c.Index)) > 0 })
	if at < 0 {
		t.Fatal("no case of ties among the first ten has a twin")
	}
	twin, err := m.twin(all[at], twins(at)[0])
	if err != nil {
		t.Fatal(err)
	}
	sum := func(values []complex128) (s complex128) {
		for _, v := range values {
			s += v
		}
		return s
	}
	a, b := elements(all[at].program), elements(twin.program)
	if sum(a) != sum(b) || slices.Equal(a, b) {
		t.Errorf("%v, then %v", a, b)
	}
}

// TestPatterns: matrices drawn like triangular and symmetric examples are such.
func TestPatterns(t *testing.T) {
	for pattern, holds := range map[Pattern]func(row, column int, v, mirrored complex128) bool{
		Lower:     func(row, column int, v, _ complex128) bool { return row >= column || v == 0 },
		Upper:     func(row, column int, v, _ complex128) bool { return row <= column || v == 0 },
		Diagonal:  func(row, column int, v, _ complex128) bool { return row == column || v == 0 },
		Symmetric: func(_, _ int, v, mirrored complex128) bool { return v == mirrored },
	} {
		in := program.Input{DType: tensor.F32, Shape: []int{2, 5, 5}, Fill: program.Fill{Dist: program.Normal, Hi: 1, Key: 7}}
		in.Fill = pattern.fill(&in)
		x, other := in.Materialize(), 0
		for k := range x.Len() {
			row, column := k/5%5, k%5
			if !holds(row, column, x.At(k), x.At(k/25*25+column*5+row)) {
				t.Errorf("%s: %v at %d, %d", pattern, x.At(k), row, column)
			}
			if x.At(k) != 0 {
				other++
			}
		}
		if other < 10 {
			t.Errorf("%s: %d elements are not 0", pattern, other)
		}
	}
}

// TestDearCallsAreNotWarmedUp: where the first call takes long, what is made often is a later
// one that does not, and where each does, the last of those that always come.
func TestDearCallsAreNotWarmedUp(t *testing.T) {
	s := &Session{cfg: &Config{Budget: usualBudget}}
	long := s.mayWork() / 20
	for _, of := range []struct {
		work   []int // of the cases in turn
		warmed int   // the case that all twins follow
	}{{[]int{100}, 0}, {[]int{long, long, 100}, 2}, {[]int{long, long, long, long, long, long, long, long, long, long, long}, 10}} {
		for i, work := range of.work {
			next, warm := s.warming(&Case{Index: i, work: work})
			if warm != (i == of.warmed) || warm && len(next) != len(twins(0)) || !warm && i == 0 && len(next) != 0 || !warm && i > 0 && !slices.Equal(next, twins(i)) {
				t.Errorf("of calls that take %v, %v follow case %d", of.work, next, i)
			}
			if warm {
				break
			}
		}
	}
}

// TestCancellingSumsComeAgain: those of a half dtype, with others of their kind.
func TestCancellingSumsComeAgain(t *testing.T) {
	m := makerOf(t, "x: float[B,N]", tensor.F16)
	c := cases(t, m, always)[always-1]
	next := after(c.Index, c)
	if len(next) != 2 || c.Regime != Cancelling {
		t.Fatalf("%s is followed by %v", c, next)
	}
	was := elements(c.program)
	for _, n := range next {
		twin, err := m.twin(c, n)
		if err != nil {
			t.Fatal(err)
		}
		now, same := elements(twin.program), 0
		for k := range was {
			if was[k] == now[k] {
				same++
			}
		}
		if twin.Regime != Cancelling || 4*same > len(was) {
			t.Errorf("%d of %d elements are the same, of %s", same, len(was), twin.Regime)
		}
	}
	c.DType = tensor.F32
	if next := after(c.Index, c); next != nil {
		t.Errorf("in float32, %v", next)
	}
}

// TestTwinsOfMeansFarFromZero: where long rows are far from 0, the bounds hide what is left out
// of them, and no other draw among the first has such rows.
func TestTwinsOfMeansFarFromZero(t *testing.T) {
	m := makerOf(t, "x: float[B,N]", tensor.F32)
	for _, c := range cases(t, m, tenth) {
		if c.Regime != Offset || len(twins(c.Index)) == 0 {
			continue
		}
		if twin, err := m.twin(c, twins(c.Index)[0]); err != nil || twin.Regime != Usual || c.lengths()[0] < blocks && c.lengths()[1] < blocks {
			t.Errorf("%s: %v, %v", c, twin, err)
		}
		return
	}
	t.Error("there are none")
}

// TestPatternsOfRows: whole numbers drawn like those in order, and like those of which no two
// are alike, are such.
func TestPatternsOfRows(t *testing.T) {
	for _, of := range []struct {
		pattern   Pattern
		hi        float64
		ends      bool
		different int // numbers of a row
	}{{Ascending, 4, true, 0}, {Rising, 30, true, 7}, {Rising, 7, true, 7}, {Permutation, 7, false, 7}, {Distinct, 9, false, 7}} {
		in := program.Input{DType: tensor.I64, Shape: []int{3, 7}, Fill: program.Fill{Dist: program.Integer, Hi: of.hi, Key: 7}}
		in.Fill = of.pattern.fill(&in)
		x := in.Materialize()
		for at := 0; at < x.Len(); at += 7 {
			row := make([]float64, 7)
			for i := range row {
				row[i] = x.Float(at + i)
			}
			if slices.IsSorted(row) != of.ends || of.ends && (row[0] != 0 || row[6] != of.hi-1) {
				t.Errorf("%s: %v", of.pattern, row)
			}
			slices.Sort(row)
			if row[0] < 0 || row[6] >= of.hi || len(slices.Compact(row)) < of.different {
				t.Errorf("%s: %v when sorted", of.pattern, row)
			}
		}
	}
}
