package choice

import (
	"slices"
	"testing"
)

// drawn are decisions as a program makes them, and a key.
func drawn(s *Source) (program [3]float64, key uint64) {
	program = [3]float64{float64(s.Int(0, 1000)), s.Float(0, 1), float64(s.Index(1000))}
	return program, s.Key()
}

// programs counts the programs and the keys of a test's first cases.
func programs(c Cases, cases int) (map[[3]float64]int, map[uint64]int) {
	programs, keys := map[[3]float64]int{}, map[uint64]int{}
	for i := range cases {
		p, k := drawn(c.Source(i, nil))
		programs[p]++
		keys[k]++
	}
	return programs, keys
}

func TestFewProgramsAreShared(t *testing.T) {
	c := Cases{Key: 7, Few: true, Name: "a"}
	got, keys := programs(c, Round)
	if len(got) != Few || len(keys) != Round {
		t.Errorf("%d cases have %d programs and %d keys, want %d and %d", Round, len(got), len(keys), Few, Round)
	}
	if got, _ := programs(c, 10*Round); len(got) != 10*Few {
		t.Errorf("%d cases have %d programs, want %d", 10*Round, len(got), 10*Few)
	}
	c.Few = false
	if got, _ := programs(c, Round); len(got) != Round {
		t.Errorf("%d cases that share nothing have %d programs", Round, len(got))
	}
}

// TestFewProgramsRecurFromSeedToSeed: what was compiled in one run serves another.
func TestFewProgramsRecurFromSeedToSeed(t *testing.T) {
	all := map[[3]float64]int{}
	for key := range uint64(100) {
		got, _ := programs(Cases{Key: key, Few: true, Name: "a"}, Round)
		for p := range got {
			all[p]++
		}
	}
	if len(all) != Pool {
		t.Errorf("100 seeds have %d programs, want %d", len(all), Pool)
	}
	other, _ := programs(Cases{Few: true, Name: "b"}, Round)
	for p := range other {
		if all[p] > 0 {
			t.Errorf("two tests share the program %v", p)
		}
	}
}

// TestTurnsHaveProgramsOfTheirOwn: cases that take different calls of a test.
func TestTurnsHaveProgramsOfTheirOwn(t *testing.T) {
	c := Cases{Few: true, Name: "a", Turns: 4}
	if got, _ := programs(c, 4*Round); len(got) != 4*Few {
		t.Errorf("4 turns have %d programs, want %d", len(got), 4*Few)
	}
}

func TestOwnDecisionsAreNotShared(t *testing.T) {
	c := Cases{Few: true, Name: "a"}
	own := func(i int) (v int64) {
		s := c.Source(i, nil)
		s.Own(func() { v = s.Int(0, 1<<40) })
		return v
	}
	if own(0) == own(Few) {
		t.Error("cases of one program share what is their own")
	}
}

// TestSharedDecisionsReplay: a record gives the case again, and one that is cut
// off goes on with the decisions of the case.
func TestSharedDecisionsReplay(t *testing.T) {
	c := Cases{Key: 3, Few: true, Name: "a"}
	first := c.Source(5, nil)
	program, key := drawn(first)
	for _, record := range [][]Choice{first.Record(), first.Record()[:2], nil} {
		again := c.Source(5, record)
		p, k := drawn(again)
		if p != program || k != key || !slices.Equal(again.Record(), first.Record()) {
			t.Errorf("a record of %d decisions gives %v, want %v", len(record), again.Record(), first.Record())
		}
	}
}
