//go:build unix

package worker

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"plumb/backend"
)

// What a process and all that it has started take in one exchange at most, where Config
// does not say.
const (
	mostProcesses = 128
	mostThreads   = 8       // for each process that there may be
	mostWritten   = 4 << 30 // bytes to files and pipes
)

// bounds are what a process is held to.
type bounds struct {
	growth    int64 // bytes of memory beyond those that it had when it was ready; 0 for no bound
	processes int
	written   int64
	processor time.Duration // 0 for no bound
}

func (c *Config) bounds() bounds {
	b := bounds{c.GrowthLimit, c.ProcessLimit, c.WriteLimit, starved * c.CaseTimeout * time.Duration(max(c.Threads, 1))}
	if b.processes == 0 {
		b.processes = mostProcesses
	}
	if b.written == 0 {
		b.written = mostWritten
	}
	return b
}

// tasks are the processes and threads that it may start, which the kernel counts together,
// with those that earlier cases have left.
func (b *bounds) tasks() int64 { return int64(b.processes) * (mostThreads + 1) }

// excess is the bound that was exceeded.
type excess struct {
	status  backend.Status
	class   string
	message string
}

// count is how much time passes between two looks at all that a process has started, where
// the machine has not many more tasks than before. The first is a glance after an exchange
// begins.
const count = 400 * time.Millisecond

// patience is for how many milliseconds its pipes are awaited before it is looked at.
func patience() int {
	if runtime.GOOS != "linux" {
		return -1
	}
	return int(glance / time.Millisecond)
}

// looking is how bounds hold that the kernel does not.
const looking = "looking ten times a second"

// begin says that an exchange begins.
func (p *process) begin() {
	p.looked, p.counted, p.before = time.Now(), time.Time{}, nil
	p.restrain(0)
}

// kernelSpare is what a process may have in the kernel, such as its page tables.
const kernelSpare = 32 << 20

// restrain has the kernel hold the process, with so many others that it has started, to no
// less memory than it is held to by looking: the kernel counts the region that it shares,
// and what a fork writes to for the first time, too.
func (p *process) restrain(others int) {
	b, region := &p.bounds, int64(len(p.memory.bytes))
	if b.growth == 0 {
		return
	}
	p.group.hold(p.held + int64(1+others)*p.ready + b.growth + b.growth>>7 + region + kernelSpare)
	if most := max(b.written+b.written/8, 2*(b.growth+region)); most > p.most { // the region is a file
		p.most = most
		limitFiles(p.pid, most)
	}
}

// refused returns the bound at which the kernel has stopped the process or what it has
// started; nil for none.
func (p *process) refused() *excess {
	switch killings, refusals, tasks := p.group.counts(); {
	case killings > 0 && p.bounds.growth > 0:
		return &excess{backend.OutOfMemory, "memory", fmt.Sprintf("it grew by more than %d MB", p.bounds.growth>>20)}
	case killings > 0:
		return &excess{backend.OutOfMemory, "memory", "the system has ended it for want of memory"}
	case refusals > 0:
		return &excess{backend.Crashed, "processes", fmt.Sprintf("it started all of the %d processes and threads that it may", tasks)}
	}
	return nil
}

// watch ends the process, and what it has started, where they take too much.
func (p *process) watch() {
	now := time.Now()
	if runtime.GOOS != "linux" || now.Sub(p.looked) < glance || p.excess != nil {
		return
	}
	p.looked = now
	inside := p.group.members()
	p.restrain(max(len(inside)-1, 0))
	if p.excess = cmp.Or(p.refused(), p.exceeds(now)); p.excess != nil {
		p.kill()
		killListed(func() []int {
			inside := p.group.members()
			return append(inside, family(p.pid, p.marker, inside).pids...)
		})
	}
}

// exceeds returns what the process exceeds; nil where that is nothing.
func (p *process) exceeds(now time.Time) *excess {
	tasks := allTasks()
	if e := p.fills(p.grown(), p.grown()); e != nil || now.Sub(p.counted) < count && tasks-p.tasks < p.bounds.processes/2 {
		return e
	}
	p.counted, p.tasks = now, tasks
	all := family(p.pid, p.marker, p.group.members())
	if p.before == nil {
		p.before = &all
	}
	switch {
	case len(all.pids) > p.bounds.processes || all.threads-p.before.threads > p.bounds.processes*mostThreads:
		return &excess{backend.Crashed, "processes", fmt.Sprintf("it started %d processes and %d threads", len(all.pids), all.threads)}
	case all.written-p.before.written > min(p.bounds.written, room(os.TempDir(), ".")):
		return &excess{backend.Crashed, "output", fmt.Sprintf("it wrote %d MB", (all.written-p.before.written)>>20)}
	case p.bounds.processor > 0 && all.used-p.before.used > p.bounds.processor:
		return &excess{backend.TimedOut, "", fmt.Sprintf("it used more than %s of processors", p.bounds.processor)}
	}
	children := int64(0)
	for _, n := range all.memory {
		children += max(n-p.ready, 0) // the forks of one process share what it had
	}
	return p.fills(p.grown()+children, p.grown()+all.sum())
}

// fills returns the bound of memory that is exceeded by so much growth: its own, or, where
// so much is held, what is left to the machine.
func (p *process) fills(growth, held int64) *excess {
	left := FreeMemory(os.DirFS("/"))
	switch {
	case p.bounds.growth > 0 && growth > p.bounds.growth:
		return &excess{backend.OutOfMemory, "memory", fmt.Sprintf("it grew by more than %d MB", p.bounds.growth>>20)}
	case left > 0 && held/leastLeft > left:
		return &excess{backend.OutOfMemory, "memory", fmt.Sprintf("it took %d MB, and left %d MB to the machine", held>>20, left>>20)}
	}
	return nil
}

// room is the least that may still be written to folders.
func room(folders ...string) int64 {
	least := int64(math.MaxInt64)
	for _, dir := range folders {
		var s unix.Statfs_t
		if unix.Statfs(dir, &s) == nil {
			least = min(least, int64(s.Bavail)*int64(s.Bsize))
		}
	}
	return least
}

// taken is what a process and all that it has started take.
type taken struct {
	pids    []int   // of what it has started
	memory  []int64 // of each of these, in bytes
	threads int
	used    time.Duration
	written int64
}

func (t *taken) sum() (all int64) {
	for _, n := range t.memory {
		all += n
	}
	return all
}

// family is what a process and all that it has started take. Nothing is read for which a
// process that forks all the while would have to be waited for (its mmap_lock): what is inside
// its control group, comes of it, is of its process group, or has nobody's care and its marker.
func family(pid int, marker string, inside []int) taken {
	all := map[int]*status{}
	names, _ := filepath.Glob("/proc/[0-9]*")
	for _, name := range names {
		if s := readStatus(name); s != nil {
			all[s.pid] = s
		}
	}
	for _, id := range inside {
		if s := all[id]; s != nil {
			s.seen, s.is = true, true
		}
	}
	var t taken
	for id, s := range all {
		if !s.within(pid, all, marker) {
			continue
		}
		t.threads += s.threads
		t.used += s.used
		t.written += written(id)
		if id != pid {
			t.pids = append(t.pids, id)
			t.memory = append(t.memory, own(id))
		}
	}
	return t
}

// status is what /proc/PID/stat tells.
type status struct {
	pid, parent, group, threads int
	used                        time.Duration // with that of those that it has waited for
	seen                        bool
	is                          bool // within the family
}

func readStatus(dir string) *status {
	text, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return nil
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:])) // from the third on: proc(5)
	if len(fields) < 18 {
		return nil
	}
	number := func(i int) int {
		n, _ := strconv.Atoi(fields[i-3])
		return n
	}
	pid, _ := strconv.Atoi(filepath.Base(dir))
	ticked := number(14) + number(15) + number(16) + number(17)
	return &status{pid: pid, parent: number(4), group: number(5), threads: number(20), used: time.Duration(ticked) * (time.Second / ticks)}
}

// within reports whether it is of the family of a process.
func (s *status) within(pid int, all map[int]*status, marker string) bool {
	if s.seen {
		return s.is
	}
	s.seen = true
	switch above := all[s.parent]; {
	case s.pid == pid || s.group == pid:
		s.is = true
	case above != nil && s.parent != 1 && s.parent != os.Getpid():
		s.is = above.within(pid, all, marker)
	default:
		s.is = marked(s.pid, marker)
	}
	return s.is
}

// newMarker returns an entry for the environment of a process. Its name is one that services
// of systemd have, for a kernel may behave where it finds the name of a judge.
func newMarker() string {
	id := make([]byte, 16)
	_, _ = rand.Read(id)
	return "INVOCATION_ID=" + hex.EncodeToString(id)
}

// marked reports whether a process has a marker in the environment that it began with.
func marked(pid int, marker string) bool {
	environment, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	return err == nil && bytes.Contains(environment, []byte(marker+"\x00"))
}

// written returns the bytes that a process, and those that it has waited for, have written.
func written(pid int) int64 {
	root := os.DirFS(fmt.Sprintf("/proc/%d", pid))
	told := fields(root, "io")
	return max(told["wchar:"], told["write_bytes:"])
}

// allTasks is how many processes and threads the machine has.
func allTasks() int {
	var load [3]float64
	var running, all int
	text, _ := os.ReadFile("/proc/loadavg")
	if _, err := fmt.Sscanf(string(text), "%f %f %f %d/%d", &load[0], &load[1], &load[2], &running, &all); err != nil {
		return 0
	}
	return all
}

// sacrifice has the system end the process rather than another where it has no memory
// left, and give its session, which shares the processors with others as a whole, the
// weight that this process has.
func (p *process) sacrifice() {
	if nice, err := unix.Getpriority(unix.PRIO_PROCESS, 0); err == nil && runtime.GOOS == "linux" {
		_ = os.WriteFile(fmt.Sprintf("/proc/%d/autogroup", p.pid), []byte(strconv.Itoa(20-nice)), 0)
	}
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", p.pid), []byte("1000"), 0)
	p.endings = memoryEndings()
}

// memoryEndings is how many processes the system has ended for want of memory.
func memoryEndings() int64 { return fields(os.DirFS("/proc"), "vmstat")["oom_kill"] }
