package worker

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"plumb/backend"
)

// grouped skips where there are no control groups, or none that bounds memory and processes.
func grouped(t *testing.T) {
	t.Helper()
	g := newGroup()
	defer g.end()
	if g.memory == "" || g.pids == "" {
		t.Skip("no control groups may be made here")
	}
}

// homes are the folders of control groups of processes of Plumb.
func homes() (dirs []string) {
	for _, t := range groups.trees {
		below, _ := filepath.Glob(filepath.Join(t.base, groupPrefix+"*"))
		dirs = append(dirs, below...)
	}
	return dirs
}

// gone waits until a process has ended; one that nobody has waited for has.
func gone(pid int) bool {
	for range 2000 {
		s := readStatus(fmt.Sprintf("/proc/%d", pid))
		if text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); s == nil || strings.Contains(string(text), ") Z ") {
			return true
		}
		time.Sleep(time.Millisecond)
	}
	return false
}

// TestGroupHolds: memory and tasks beyond what a group is held to are never had.
func TestGroupHolds(t *testing.T) {
	grouped(t)
	g := newGroup()
	defer g.end()
	cmd := exec.Command("sh", "-c", "read x; head -c 300M /dev/zero | tail -n 1 >/dev/null; for i in 1 2 3 4 5 6 7 8; do sleep 600 & done; read x")
	cmd.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	g.join(cmd.Process.Pid, 6)
	g.ready(5)
	g.hold(100 << 20)
	fmt.Fprintln(in)
	killings, refusals := int64(0), int64(0)
	for range 10000 {
		if killings, refusals, _ = g.counts(); killings > 0 && refusals > 0 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	root := os.DirFS(g.memory)
	if peak := max(number(root, "memory.max_usage_in_bytes"), number(root, "memory.peak")); killings == 0 || refusals == 0 || peak > 100<<20 || len(g.members()) > 6 {
		t.Errorf("%d killings, %d refusals, %d MB and %d processes, at most 100 and 6", killings, refusals, peak>>20, len(g.members()))
	}
	pids := g.members()
	g.end()
	if len(pids) == 0 || !gone(pids[0]) {
		unix.Kill(-cmd.Process.Pid, unix.SIGKILL)
	}
	cmd.Wait()
	for _, pid := range pids {
		if !gone(pid) {
			t.Errorf("process %d is left", pid)
		}
	}
}

// TestKernelBounds: what is over before anybody looks is stopped by the kernel.
func TestKernelBounds(t *testing.T) {
	grouped(t)
	file := filepath.Join(t.TempDir(), "sparse")
	for _, of := range []struct {
		target  string
		status  backend.Status
		class   string
		message string
	}{
		{"burst", backend.OutOfMemory, "memory", "it grew by more than 100 MB in burst"},
		{"throng", backend.Crashed, "processes", "processes and "},
		{"sparse", backend.Crashed, "output", "it wrote a file of more than "},
	} {
		w := fake(t, Config{GrowthLimit: 100 << 20, ProcessLimit: 1, Env: []string{"PLUMB_FAKE_WORKER=" + fakeHello, "FAKE_FILE=" + file}})
		out, err := w.Run(t.Context(), fakeJob(of.target))
		if err != nil || out.Status != of.status || out.Class != of.class || !strings.Contains(out.Message, of.message) {
			t.Errorf("%s: %+v, %v", of.target, out, err)
		}
		if out, err := w.Run(t.Context(), fakeJob("1")); err != nil || out.Status != backend.OK {
			t.Errorf("after %s: %+v, %v", of.target, out, err)
		}
	}
}

// elsewhere has a worker start a process that has left it in every way that it can.
func elsewhere(t *testing.T, w *Worker) int {
	t.Helper()
	out, err := w.Run(t.Context(), fakeJob("elsewhere"))
	if err != nil || out.Status != backend.OK {
		t.Fatalf("%+v, %v", out, err)
	}
	pid, err := strconv.Atoi(fmt.Sprint(out.Values[0].Plain))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// TestAlone: what a case has left running is told of those after it, until one asks for a
// process of its own.
func TestAlone(t *testing.T) {
	grouped(t)
	w := fake(t, Config{Env: []string{"PLUMB_FAKE_WORKER=" + fakeHello}})
	run := func(alone, beside bool) {
		t.Helper()
		job := fakeJob("1")
		job.Alone = alone
		if out, err := w.Run(t.Context(), job); err != nil || out.Beside != beside {
			t.Errorf("%+v, %v; beside others: want %v", out, err, beside)
		}
	}
	run(false, false)
	pid := elsewhere(t, w)
	run(false, true)
	run(true, false)
	if !gone(pid) {
		t.Errorf("process %d is left", pid)
	}
}

// TestNoneOutlivesItsGroup: what has a session of its own, another parent and no marker ends
// with its worker, and no control group is left.
func TestNoneOutlivesItsGroup(t *testing.T) {
	grouped(t)
	w := fake(t, Config{})
	pid := elsewhere(t, w)
	if !slices.Contains(w.proc.group.members(), pid) || marked(pid, w.proc.marker) {
		t.Errorf("process %d is not where it is to be", pid)
	}
	group := w.proc.group.memory
	w.Close()
	if !gone(pid) {
		t.Errorf("process %d is left", pid)
		unix.Kill(pid, unix.SIGKILL)
	}
	if _, err := os.Stat(group); err == nil {
		t.Errorf("%s is left", group)
	}
	if groups.there > 0 {
		return // of another test
	}
	End()
	for _, dir := range homes() {
		if strings.HasPrefix(filepath.Base(dir), fmt.Sprintf("%s%d-", groupPrefix, os.Getpid())) {
			t.Errorf("%s is left", dir)
		}
	}
}

// TestGroupsAreSwept: what a process leaves that was killed goes when the next one starts,
// and what another uses stays.
func TestGroupsAreSwept(t *testing.T) {
	if os.Getenv("GROUP_WAITS") != "" {
		fmt.Println("elsewhere", elsewhere(t, fake(t, Config{})))
		time.Sleep(time.Minute)
		return
	}
	grouped(t)
	w := fake(t, Config{})
	child := exec.Command(os.Args[0], "-test.run=^TestGroupsAreSwept$")
	child.Env = append(os.Environ(), "GROUP_WAITS=1")
	told, err := child.StdoutPipe()
	if err == nil {
		err = child.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer child.Wait()
	defer child.Process.Kill()
	pid := 0
	for lines := bufio.NewScanner(told); pid == 0 && lines.Scan(); {
		fmt.Sscanf(lines.Text(), "elsewhere %d", &pid)
	}
	if pid == 0 {
		t.Fatal("no worker has started")
	}
	theirs := slices.DeleteFunc(homes(), func(dir string) bool {
		return !strings.HasPrefix(filepath.Base(dir), fmt.Sprintf("%s%d-", groupPrefix, child.Process.Pid))
	})
	sweep := func() {
		for _, t := range groups.trees {
			t.sweep()
		}
	}
	if sweep(); len(theirs) == 0 || len(members(w.proc.group.memory)) == 0 || unix.Kill(pid, 0) != nil {
		t.Errorf("what is in use was swept: %q", theirs)
	}
	child.Process.Kill()
	child.Wait()
	if sweep(); !gone(pid) { // another package's test may have been first
		t.Errorf("process %d is left", pid)
		unix.Kill(pid, unix.SIGKILL)
	}
	left := func() []string {
		return slices.DeleteFunc(slices.Clone(theirs), func(dir string) bool { _, err := os.Stat(dir); return err != nil })
	}
	for range 50 { // a group can be removed when its last process has been reaped
		if len(left()) == 0 {
			return
		}
		time.Sleep(20 * time.Millisecond)
		sweep()
	}
	t.Errorf("%q are left", left())
}

// TestTreesOfGroups: where groups are made, by what the system tells of its mounts.
func TestTreesOfGroups(t *testing.T) {
	for _, of := range []struct{ mounts, own, want string }{
		{"35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n39 31 0:36 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
			"8:pids:/\n4:memory:/a/b\n0::/\n", "1 memory /sys/fs/cgroup/memory/a/b; 1 pids /sys/fs/cgroup/pids; 2 memory pids /sys/fs/cgroup/unified"},
		{"30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n", "0::/user.slice/user-1000.slice/run.scope\n", "2 memory pids /sys/fs/cgroup/user.slice/user-1000.slice/run.scope"},
		{"30 23 0:26 /docker/f00 /sys/fs/cgroup ro - cgroup cgroup rw,pids,memory\n", "3:memory,pids:/docker/f00/x\n", "1 memory pids /sys/fs/cgroup/x"},
		{"30 23 0:26 /docker/f00 /sys/fs/cgroup ro - cgroup cgroup rw,memory\n", "3:memory:/docker\n", ""},
	} {
		var got []string
		for _, tree := range treesOf(of.mounts, of.own) {
			words := []string{"1"}
			if tree.second {
				words[0] = "2"
			}
			if tree.memory {
				words = append(words, "memory")
			}
			if tree.pids {
				words = append(words, "pids")
			}
			got = append(got, strings.Join(append(words, tree.base), " "))
		}
		if got := strings.Join(got, "; "); got != of.want {
			t.Errorf("%q, want %q", got, of.want)
		}
	}
}
