package worker

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"plumb/backend"
	"plumb/program"
	"plumb/tensor"
)

// parent is what a process was started by.
func parent(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	var state string
	var ppid int
	if _, err := fmt.Sscan(rest, &state, &ppid); err != nil {
		t.Fatal(err)
	}
	return ppid
}

// TestForks: workers of one environment are forks of one process, each with the folder and
// variables of its start; where that process ends, a case that was running runs again.
func TestForks(t *testing.T) {
	torch(t)
	open := func(env ...string) *Worker {
		w, err := Open(t.Context(), Config{Env: append(env, "FORKS=yes")})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { w.Close() })
		return w
	}
	first := open()
	dir := t.TempDir()
	t.Chdir(dir)
	second, third := open("PLUMB_WORKER_MEMORY="+fmt.Sprint(3<<30)), open("OTHER=yes")
	forker := parent(t, first.proc.pid)
	if parent(t, second.proc.pid) != forker || forker == os.Getpid() || parent(t, third.proc.pid) == forker {
		t.Errorf("processes %d, %d and %d are of %d, %d and %d, this is %d", first.proc.pid, second.proc.pid, third.proc.pid,
			forker, parent(t, second.proc.pid), parent(t, third.proc.pid), os.Getpid())
	}
	if at, _ := os.Readlink(fmt.Sprintf("/proc/%d/cwd", second.proc.pid)); at != dir {
		t.Errorf("it is in %s, this in %s", at, dir)
	}
	if limits, _ := os.ReadFile(fmt.Sprintf("/proc/%d/limits", second.proc.pid)); !strings.Contains(string(limits), fmt.Sprint(3<<30)) {
		t.Errorf("its variable is not its own:\n%s", limits)
	}

	if g, other := first.proc.group, second.proc.group; g.inside && (g.memory == other.memory || !slices.Equal(g.members(), []int{first.proc.pid})) {
		t.Errorf("control group %s has processes %d, and is to have %d", g.memory, g.members(), first.proc.pid)
	}

	var long builder
	long.in("x", tensor.New(tensor.F32, 1200, 1200), false)
	for _, to := range []string{"a", "b", "c", "d", "e"} {
		long.call(to, "torch.matmul", program.Ref("x"), program.Ref("x"))
	}
	ran := make(chan *backend.Outcome)
	proc, before := first.proc, first.proc.used()
	go func() {
		out, err := first.Run(t.Context(), long.job())
		if err != nil {
			t.Error(err)
		}
		ran <- out
	}()
	for proc.used() < before+50*time.Millisecond {
		time.Sleep(time.Millisecond)
	}
	unix.Kill(forker, unix.SIGKILL)
	if out := <-ran; out == nil || out.Status != backend.OK || parent(t, first.proc.pid) != os.Getpid() {
		t.Errorf("the case that was running when the forker ended: %+v", out)
	}
	if fourth := open(); parent(t, fourth.proc.pid) == forker || parent(t, fourth.proc.pid) == os.Getpid() {
		t.Error("the next worker is no fork of another")
	}
}
