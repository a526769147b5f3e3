package opcheck_test

import (
	"os"
	"strings"
	"testing"

	"plumb/internal/opcheck"
	"plumb/op"
)

// TestGrade: of a sound literal all but what nothing can tell is found, and of one
// whose Sample leaves out an attribute the faults there are missed, with that reason.
func TestGrade(t *testing.T) {
	grade := func(d *op.Def) *opcheck.Grading {
		g, err := opcheck.Grade(t.Context(), table(t, d), d.ID(), opcheck.Options{Calls: 6}, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Log(g)
		return g
	}
	if os.Getenv(allVariable) != "" {
		if missed := grade(bent()).Missed(); len(missed) > 0 {
			t.Errorf("missed: %v", missed)
		}
	}
	poor := windowed()
	poor.Sample = func(s *op.Sampler) []any { return []any{s.Tensor(-1, 1, 5+s.Index(4)), int(s.Int(1, 4))} }
	g := grade(poor)
	if missed := g.Missed(); len(missed) > 4 || len(missed) == 0 {
		t.Errorf("%d are missed", len(missed))
	}
	if !strings.Contains(g.String(), "because Sample never draws dilation other than 1") {
		t.Error("the reason is not told")
	}
}
