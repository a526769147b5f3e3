package spell

import (
	"strings"
	"testing"
)

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"conv", "conv", 0}, {"convv", "conv", 1}, {"conv", "cnov", 1}, {"rleu", "relu", 1}, {"abcd", "badc", 2}, {"", "abc", 3}, {"kitten", "sitting", 3}, {strings.Repeat("a", 300), "a", 300}} {
		if got := Distance(c.a, c.b); got != c.want || Distance(c.b, c.a) != got {
			t.Errorf("%q to %q: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
