package report

import (
	"bytes"
	"strings"
	"testing"

	"plumb/internal/judge/verdict"
	"plumb/program"
)

// TestFaultOfManyCases: a fault that spoils many cases, such as one of a file, is
// told once, with how many there are; and no program is promised that none shows.
func TestFaultOfManyCases(t *testing.T) {
	var b bytes.Buffer
	c, s := &Console{W: &b}, NewSummary()
	for _, reason := range []string{"a is truncated", "a is truncated", "a is truncated", "b is missing"} {
		r := &verdict.Record{Test: reason[:1], Program: &program.Program{}, Verdict: &verdict.Verdict{Word: verdict.Fault, Reason: reason}}
		c.Record(r)
		s.Add(r)
	}
	c.Summary(s)
	text := b.String()
	for part, n := range map[string]int{"a is truncated": 1, "  and 2 cases more\n": 1, "b is missing": 1, "save a program above": 0} {
		if got := strings.Count(text, part); got != n {
			t.Errorf("%q is there %d times, want %d, in\n%s", part, got, n, text)
		}
	}
}
