package choice

import (
	"math"
	"reflect"
	"testing"
)

// TestPhiloxKnownAnswers uses the vectors of Random123's kat_vectors.
func TestPhiloxKnownAnswers(t *testing.T) {
	for _, c := range []struct {
		key     uint64
		counter [4]uint32
		want    [4]uint32
	}{
		{0, [4]uint32{}, [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{math.MaxUint64, [4]uint32{math.MaxUint32, math.MaxUint32, math.MaxUint32, math.MaxUint32}, [4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{0x299f31d0a4093822, [4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, [4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
	} {
		if got := NewPhilox(c.key).block(c.counter[0], c.counter[1], c.counter[2], c.counter[3]); got != c.want {
			t.Errorf("key %x: got %x, want %x", c.key, got, c.want)
		}
	}
}

func drawSome(s *Source) []any {
	return []any{s.Int(1, 6), s.Float(-1, 1), s.Index(3), s.Bool(), s.Key(), s.Weighted([]float64{0, 1, 3}), s.Int(5, 5)}
}

func TestReplayRepeatsTheRecord(t *testing.T) {
	s := New(7)
	first := drawSome(s)
	again := Replay(99, s.Record())
	if got := drawSome(again); !reflect.DeepEqual(got, first) {
		t.Errorf("replay drew %v, the record says %v", got, first)
	}
	parsed, err := Parse(Format(s.Record()))
	if err != nil || !reflect.DeepEqual(parsed, s.Record()) {
		t.Errorf("text form changed the record (%v):\n%v\n%v", err, parsed, s.Record())
	}
	if other := drawSome(New(8)); reflect.DeepEqual(other, first) {
		t.Error("another seed drew the same")
	}
}

func TestEditedRecordStaysLegal(t *testing.T) {
	s := Replay(0, []Choice{{Int, 0, 100, 50}, {Float, 0, 9, 9}, {Index, 0, 9, -4}, {Key, 0, 1, math.NaN()}})
	if v := s.Int(1, 6); v != 5 {
		t.Errorf("int %d, want the largest legal value 5", v)
	}
	if v := s.Float(0, 1); v >= 1 || v < 0.99 {
		t.Errorf("float %v, want just below 1", v)
	}
	if v := s.Index(2); v != 0 {
		t.Errorf("index %d, want 0", v)
	}
	if v := s.Key(); v != 0 {
		t.Errorf("key %d, want 0", v)
	}
}

// TestEditsDoNotShiftLaterDecisions is what the shrinker relies on.
func TestEditsDoNotShiftLaterDecisions(t *testing.T) {
	a, b := New(3), Replay(3, []Choice{{Int, 0, 10, 9}})
	a.Int(0, 10)
	b.Int(0, 10)
	if x, y := a.Key(), b.Key(); x != y {
		t.Errorf("the second decision moved from %d to %d", x, y)
	}
}

func TestIntIsUniform(t *testing.T) {
	s := New(1)
	count := map[int64]int{}
	for range 50000 {
		count[s.Int(1, 6)]++
	}
	for v := int64(1); v < 6; v++ {
		if n := count[v]; n < 9600 || n > 10400 {
			t.Errorf("%d drawn %d times of 50000, want about 10000", v, n)
		}
	}
	if len(count) != 5 {
		t.Errorf("values outside [1, 6): %v", count)
	}
}

func TestParseErrors(t *testing.T) {
	for _, text := range []string{"int [1, 6)", "word [1, 2) 3", "int [a, 2) 3"} {
		if _, err := Parse(text); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}

func TestDerivedKeysDiffer(t *testing.T) {
	seen := map[uint64]bool{}
	for i := range uint64(100) {
		for j := range uint64(100) {
			seen[Derive(5, i, j)] = true
		}
	}
	if len(seen) != 10000 {
		t.Errorf("%d keys of 10000 are distinct", len(seen))
	}
	if Derive(1, 2) == Derive(2, 1) || DeriveName(1, "ab") == DeriveName(1, "ba") {
		t.Error("keys of different paths agree")
	}
}
