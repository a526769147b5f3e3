package command

import (
	"slices"
	"testing"
)

// TestSpread: a sample keeps the order of the list, and its share of the bytes.
func TestSpread(t *testing.T) {
	var all []sized
	sum := 0
	for i := range 1000 {
		n := 1 << (i * 7 % 20)
		all = append(all, sized{bytes: n})
		sum += n
	}
	some := spread(all, 100, 5)
	got, at := 0, -1
	for _, s := range some {
		got += s.bytes
		k := slices.Index(all[at+1:], s)
		if k < 0 {
			t.Fatal("the sample is not in the order of the list")
		}
		at += k + 1
	}
	if len(some) != 100 || got < sum/11 || got > sum/9 {
		t.Errorf("%d cases of %d bytes, want 100 of about %d", len(some), got, sum/10)
	}
	if len(spread(all, 0, 5)) != len(all) {
		t.Error("a sample of 0 is not all")
	}
}
