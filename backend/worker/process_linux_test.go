package worker

import (
	"os/exec"
	"syscall"
	"testing"
)

// TestKilledAreListedTwice: a number that is no longer listed once its process is held is
// another's, which lives on.
func TestKilledAreListedTwice(t *testing.T) {
	start := func() *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), "sleep", "60")
		if err := cmd.Start(); err != nil {
			t.Skip(err)
		}
		return cmd
	}
	mine, another := start(), start()
	lists := [][]int{{mine.Process.Pid, another.Process.Pid}, {mine.Process.Pid}}
	some := killListed(func() []int {
		list := lists[0]
		lists = lists[1:]
		return list
	})
	if err := mine.Wait(); !some || err == nil || mine.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("%v: %v", some, mine.ProcessState)
	}
	if err := another.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if err := another.Wait(); err == nil || another.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGTERM {
		t.Errorf("what was not listed again: %v", another.ProcessState)
	}
	if killListed(func() []int { return nil }) {
		t.Error("nobody was killed")
	}
}
