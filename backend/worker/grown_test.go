package worker

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"plumb/backend"
)

// TestGrowthIsLimited: a worker that has grown is followed by another, and no
// case is lost; one that grows beyond its limit in a case costs that case.
func TestGrowthIsLimited(t *testing.T) {
	w := fake(t, Config{GrowthLimit: 100 << 20})
	if own(w.proc.pid) == 0 {
		t.Skip("needs /proc")
	}
	pids := map[any]bool{}
	for i := range 6 {
		out, err := w.Run(t.Context(), fakeJob("grow"))
		if err != nil || out.Status != backend.OK {
			t.Fatal(i, out, err)
		}
		pids[out.Values[0].Plain] = true
	}
	if len(pids) != 2 {
		t.Errorf("%d processes for 6 cases of 24 MB each, want 2", len(pids))
	}
	outs, err := w.RunBatch(t.Context(), []*backend.Job{fakeJob("slow"), fakeJob("swell"), fakeJob("slow")})
	if err != nil || outs[0].Status != backend.OK || outs[2].Status != backend.OK {
		t.Fatal(outs, err)
	}
	if o := outs[1]; o.Status != backend.OutOfMemory || !strings.Contains(o.Message, "it grew by more than 100 MB in swell") {
		t.Errorf("%+v", o)
	}
}

// TestThreadsAreLimited: a worker that has kept many threads is followed by another, and
// no case pays for those of earlier ones.
func TestThreadsAreLimited(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("threads are counted in /proc")
	}
	w := fake(t, Config{ProcessLimit: 8})
	pids := map[any]bool{}
	for i := range 8 {
		out, err := w.Run(t.Context(), fakeJob("threads"))
		if err != nil || out.Status != backend.OK {
			t.Fatal(i, out, err)
		}
		pids[out.Values[0].Plain] = true
	}
	if len(pids) < 2 || len(pids) > 4 {
		t.Errorf("%d processes for 8 cases of 15 threads each, where there may be 72", len(pids))
	}
}

// TestWhatACaseTakesIsBounded: processes, files, output, time of processors and shared
// memory, of all that the worker has started too; and its neighbours are none the worse.
func TestWhatACaseTakesIsBounded(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("what processes take is read from /proc")
	}
	for _, of := range []struct {
		target  string
		status  backend.Status
		class   string
		message string
	}{
		{"bomb", backend.Crashed, "processes", "processes and "},
		{"crowd", backend.TimedOut, "", "it used more than 300ms of processors in crowd"},
		{"write", backend.Crashed, "output", "it wrote "},
		{"pour", backend.Crashed, "output", "it wrote "},
		{"take", backend.OutOfMemory, "memory", "it grew by more than 200 MB in take"},
	} {
		t.Run(of.target, func(t *testing.T) {
			w := fake(t, Config{GrowthLimit: 200 << 20, ProcessLimit: 40, WriteLimit: 50 << 20, CaseTimeout: 20 * time.Second})
			w.proc.bounds.processor = 300 * time.Millisecond
			if of.target != "crowd" {
				w.proc.bounds.processor = time.Hour
			}
			marker := w.proc.marker
			out, err := w.Run(t.Context(), fakeJob(of.target))
			if err != nil || out.Status != of.status || out.Class != of.class || !strings.Contains(out.Message, of.message) {
				t.Errorf("%+v, %v", out, err)
			}
			if n := countMarked(marker); n > 0 {
				t.Errorf("%d processes are left", n)
			}
			if out, err := w.Run(t.Context(), fakeJob("1")); err != nil || out.Status != backend.OK {
				t.Errorf("the next one: %+v, %v", out, err)
			}
		})
	}
}

// countMarked counts the processes that began with a marker, whoever their parents are.
func countMarked(marker string) (n int) {
	names, _ := filepath.Glob("/proc/[0-9]*")
	for _, name := range names {
		if pid, err := strconv.Atoi(filepath.Base(name)); err == nil && pid != os.Getpid() && marked(pid, marker) {
			n++
		}
	}
	return n
}

// TestStoppedIsNoHang: a process that somebody stops for a time has more of it; one that
// nobody lets go on hangs.
func TestStoppedIsNoHang(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the state of processes is read from /proc")
	}
	w := fake(t, Config{CaseTimeout: 500 * time.Millisecond})
	pid := w.proc.pid
	for _, back := range []bool{true, false} {
		if err := unix.Kill(pid, unix.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		for !w.proc.stopped() { // one that has several threads stops when each has been told
			time.Sleep(time.Millisecond)
		}
		if back {
			time.AfterFunc(800*time.Millisecond, func() { unix.Kill(pid, unix.SIGCONT) })
		}
		out, err := w.Run(t.Context(), fakeJob("1"))
		if err != nil || (out.Status == backend.OK) != back {
			t.Errorf("goes on: %t: %+v, %v", back, out, err)
		}
	}
}

// TestGuard: a process that takes too much is ended, and one that does not is left.
func TestGuard(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("what processes take is read from /proc")
	}
	w := fake(t, Config{})
	stop := Guard(w.proc.pid, 200<<20)
	if out, err := w.Run(t.Context(), fakeJob("grow")); err != nil || out.Status != backend.OK {
		t.Fatalf("%+v, %v", out, err)
	}
	out, err := w.Run(t.Context(), fakeJob("swell"))
	if err != nil || out.Class != "SIGKILL" {
		t.Errorf("%+v, %v", out, err)
	}
	if why := stop(); !strings.HasPrefix(why, "out of memory: it took 2") {
		t.Errorf("%q", why)
	}
	if why := Guard(os.Getpid(), 0)(); why != "" {
		t.Error(why)
	}
}

// TestHangsAreToldByWhatTheyUse: one that sleeps hangs before one that may wait for a
// processor, and one that computes hangs by what it has used.
func TestHangsAreToldByWhatTheyUse(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the time of processors is read from /proc")
	}
	for _, of := range []struct {
		target              string
		limit, asleep, busy time.Duration
		want                string
	}{
		{"hang", time.Minute, 600 * time.Millisecond, 0, "no answer within "},
		{"hang", 1500 * time.Millisecond, 0, 200 * time.Millisecond, "no answer within 1.5s"},
		{"spin", 1500 * time.Millisecond, 200 * time.Millisecond, 0, "no answer within "},
	} {
		w := fake(t, Config{CaseTimeout: of.limit})
		w.Hung(of.asleep, of.busy)
		out, err := w.Run(t.Context(), fakeJob(of.target))
		if err != nil || out.Status != backend.TimedOut || !strings.Contains(out.Message, of.want) || strings.Contains(out.Message, "1m0s") {
			t.Errorf("%+v: %+v, %v", of, out, err)
		}
	}
}

// TestHangsOfWhatComputesLate: what has had little of a processor by the time that it may
// compute is looked at again.
func TestHangsOfWhatComputesLate(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the time of processors is read from /proc")
	}
	w := fake(t, Config{CaseTimeout: 20 * time.Second})
	w.Hung(0, 200*time.Millisecond)
	out, err := w.Run(t.Context(), fakeJob("spins late"))
	if err != nil || out.Status != backend.TimedOut || strings.Contains(out.Message, "20s") {
		t.Errorf("%+v, %v", out, err)
	}
}
