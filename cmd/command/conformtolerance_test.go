package command

import (
	"strings"
	"testing"

	"plumb/internal/judge/verdict"
)

// TestConformTolerance: each word judges by its limits, and --backward leaves
// the gradients alone.
func TestConformTolerance(t *testing.T) {
	_, dir := generated(t)
	for _, word := range []string{"classes", "config", "both", "autotest", "default", "exact", "1e-3,1e-5"} {
		if got, _, err := judged(t, dir, "--tolerance", word); err != nil || got[verdict.Aligned] != 36+520 {
			t.Errorf("--tolerance %s: %v, %v", word, got, err)
		}
	}
	out, _, err := conformed(t, "run", "--baseline", dir, "--backward")
	if err != nil || !strings.Contains(out, "relu  6 aligned") || !strings.Contains(out, "== 12 aligned in ") {
		t.Errorf("%v\n%s", err, out)
	}
	if got, _, err := judged(t, dir, "--forward"); err != nil || got[verdict.Aligned] != 24+520 {
		t.Errorf("--forward: %v, %v", got, err)
	}
}
