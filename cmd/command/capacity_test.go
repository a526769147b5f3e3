package command

import "testing"

// TestLanes: -j is capped by CPUs and by memory, and never at none.
func TestLanes(t *testing.T) {
	for _, c := range []struct {
		of                capacity
		wanted, processes int
		want              int
		why               string
	}{
		{capacity{8, 16 << 30}, 4, 2, 4, ""},
		{capacity{8, 16 << 30}, 64, 2, 8, "it has 8 CPUs"},
		{capacity{64, 4 << 30}, 64, 2, 4, "4096 MB of memory are free, and each takes some 1024 MB"},
		{capacity{64, 4 << 30}, 64, 0, 64, ""},
		{capacity{64, 0}, 64, 3, 64, ""},
		{capacity{2, 1}, 2, 2, 1, "0 MB of memory are free, and each takes some 1024 MB"},
	} {
		if got, why := c.of.lanes(c.wanted, c.processes); got != c.want || why != c.why {
			t.Errorf("%+v: %d of %d lanes, %q", c.of, got, c.wanted, why)
		}
	}
}
