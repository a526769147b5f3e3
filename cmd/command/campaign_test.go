package command

import (
	"os"
	"path/filepath"
	"testing"
)

// plumbProgram is this test's program under the name by which it is plumb.
func plumbProgram(t *testing.T) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	plumb := filepath.Join(t.TempDir(), "plumb")
	if err := os.Symlink(exe, plumb); err != nil {
		t.Skip(err)
	}
	return plumb
}

// TestKilledCampaignsLoseNothing: the short form of plumb bench campaign.
func TestKilledCampaignsLoseNothing(t *testing.T) {
	slow(t)
	k := killings{plumb: plumbProgram(t), dir: t.TempDir(), kills: 3, seed: 1, log: testLog{t}}
	k.args = []string{"ops:rel*", "--reference", "native", "-n", "40", "--seed", "3", "--candidate", "native,native:graph"}
	if err := k.run(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestFleetLosesNothing: workers are killed and stopped, and so is the coordinator.
func TestFleetLosesNothing(t *testing.T) {
	slow(t)
	k := siege{killings: killings{plumb: plumbProgram(t), dir: t.TempDir(), kills: 4, seed: 4, log: testLog{t}}, workers: 2}
	k.args = []string{"ops:rel*", "--reference", "native", "-n", "40", "--seed", "3", "--candidate", "native,native:graph"}
	if err := k.run(t.Context()); err != nil {
		t.Error(err)
	}
}

// testLog prints into a test's log.
type testLog struct{ testing.TB }

// Write logs.
func (l testLog) Write(p []byte) (int, error) {
	l.Logf("%s", p)
	return len(p), nil
}
