package worker

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"plumb/internal/scratch"
)

// groupPrefix begins the names of the control groups that this program makes, each below
// the one that it runs in, whose limits stay in force.
const groupPrefix = "plumb-"

// tree is one tree of control groups: version 1 has one for each thing that it bounds.
type tree struct {
	base         string // the group that this process was started in
	second       bool   // version
	memory, pids bool   // it bounds
	home         string // of this process's groups; "" until there is one
	release      func() // what says that the home is in use
	moved        bool   // this process has moved into its home, as version 2 wants that
	useless      bool
}

// groups are those of this process.
var groups struct {
	mu     sync.Mutex
	once   sync.Once
	trees  []*tree
	there  int // how many there are now
	number int // how many there were
}

// treesOf reads which trees bound memory and processes, from /proc/self/mountinfo and
// /proc/self/cgroup.
func treesOf(mounts, own string) (trees []*tree) {
	paths := map[string]string{} // by controller, "" for version 2
	for line := range strings.Lines(own) {
		if parts := strings.SplitN(strings.TrimSpace(line), ":", 3); len(parts) == 3 {
			for controller := range strings.SplitSeq(parts[1], ",") {
				paths[controller] = parts[2]
			}
		}
	}
	seen := map[string]bool{}
	add := func(root, mount, controller string, t *tree) {
		path, ok := paths[controller]
		below, err := filepath.Rel(root, path)
		if !ok || err != nil || below == ".." || strings.HasPrefix(below, "../") {
			return
		}
		if t.base = filepath.Join(mount, below); !seen[t.base] {
			seen[t.base] = true
			trees = append(trees, t)
		}
	}
	for line := range strings.Lines(mounts) {
		before, after, _ := strings.Cut(line, " - ")
		at, kind := strings.Fields(before), strings.Fields(after)
		if len(at) < 5 || len(kind) < 3 {
			continue
		}
		bounds := strings.Split(kind[2], ",")
		t := &tree{memory: slices.Contains(bounds, "memory"), pids: slices.Contains(bounds, "pids")}
		switch {
		case kind[0] == "cgroup2":
			add(at[3], at[4], "", &tree{second: true, memory: true, pids: true})
		case kind[0] == "cgroup" && t.memory:
			add(at[3], at[4], "memory", t)
		case kind[0] == "cgroup" && t.pids:
			add(at[3], at[4], "pids", t)
		}
	}
	return trees
}

// findTrees finds the trees of which something can be had.
func findTrees() {
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	own, _ := os.ReadFile("/proc/self/cgroup")
	groups.trees = slices.DeleteFunc(treesOf(string(mounts), string(own)), func(t *tree) bool {
		if !t.second {
			return t.memory && number(os.DirFS(t.base), "memory.use_hierarchy") != 1 // a group below would escape base's limit
		}
		text, _ := os.ReadFile(filepath.Join(t.base, "cgroup.controllers"))
		offered := strings.Fields(string(text))
		t.memory, t.pids = slices.Contains(offered, "memory"), slices.Contains(offered, "pids")
		return !t.memory && !t.pids
	})
	for _, t := range groups.trees {
		t.sweep()
	}
}

// Sweep ends what has outlived a Plumb that was killed, and removes its control groups.
func Sweep() { groups.once.Do(findTrees) }

// sweep removes the homes that no process uses, with what runs there.
func (t *tree) sweep() {
	homes, _ := filepath.Glob(filepath.Join(t.base, groupPrefix+"*"))
	for _, home := range homes {
		if release, taken := scratch.Lock(home); !taken {
			below, _ := filepath.Glob(filepath.Join(home, "*", "cgroup.procs"))
			for _, procs := range below {
				endAll(filepath.Dir(procs))
				removeGroup(filepath.Dir(procs))
			}
			_ = os.Remove(home)
			release()
		}
	}
}

// open makes a home where there is none.
func (t *tree) open() {
	for range 3 { // another process's sweep may take it for one that nobody uses
		home, err := os.MkdirTemp(t.base, fmt.Sprintf("%s%d-", groupPrefix, os.Getpid()))
		if err != nil {
			break
		}
		release, taken := scratch.Lock(home)
		if _, err := os.Stat(home); taken || err != nil {
			_ = os.Remove(home)
			continue
		}
		t.home, t.release = home, release
		if t.second && !t.delegate() {
			t.close()
			break
		}
		return
	}
	t.useless = true
}

// delegate has version 2 bound what is in groups below the home. Groups with others below
// them have no processes there: where this program is alone in base, it moves.
func (t *tree) delegate() bool {
	allow := func(dir string) bool {
		return (!t.memory || writeTo(dir, "cgroup.subtree_control", "+memory") == nil) && (!t.pids || writeTo(dir, "cgroup.subtree_control", "+pids") == nil)
	}
	if allow(t.base) {
		return allow(t.home)
	}
	inside := members(t.base)
	if slices.ContainsFunc(inside, func(pid int) bool { return !ours(pid) }) || os.Mkdir(t.host(), 0o755) != nil {
		return false
	}
	t.moved = true
	move(inside, t.host())
	return allow(t.base) && allow(t.home)
}

// host is where this program moves to.
func (t *tree) host() string { return filepath.Join(t.home, "host") }

func move(pids []int, dir string) {
	for _, pid := range pids {
		_ = writeTo(dir, "cgroup.procs", strconv.Itoa(pid))
	}
}

// ours reports whether a process is this one, or of this program and has started it.
func ours(pid int) bool {
	exe := func(pid int) string { path, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); return path }
	return pid == os.Getpid() || pid == os.Getppid() && exe(pid) == exe(os.Getpid())
}

// close removes the home.
func (t *tree) close() {
	if t.moved {
		for _, dir := range []string{t.home, t.base} {
			_ = writeTo(dir, "cgroup.subtree_control", "-memory")
			_ = writeTo(dir, "cgroup.subtree_control", "-pids")
		}
		move(members(t.host()), t.base)
		_ = os.Remove(t.host())
	}
	_ = os.Remove(t.home)
	t.release()
	t.home, t.moved = "", false
}

// group is the control groups of one process and of all that it starts. Without folders it
// bounds nothing.
type group struct {
	memory, pids string // folders; "" for none
	second       bool   // version of that of memory
	pidsSecond   bool
	told         [2]*os.File

	mu       sync.Mutex
	inside   bool
	over     bool
	most     int64 // bytes that it is held to; 0 while it is not
	tasks    int64 // that it is held to
	killings int64 // for want of memory
	refusals int64 // of tasks
}

// newGroup makes one, of what can be had here.
func newGroup() *group {
	groups.mu.Lock()
	defer groups.mu.Unlock()
	Sweep()
	g := &group{over: true}
	groups.number++
	for _, t := range groups.trees {
		if t.home == "" && !t.useless {
			t.open()
		}
		dir := filepath.Join(t.home, strconv.Itoa(groups.number))
		if t.home == "" || os.Mkdir(dir, 0o755) != nil {
			continue
		}
		if t.memory && g.memory == "" {
			g.memory, g.second = dir, t.second
		}
		if t.pids && g.pids == "" {
			g.pids, g.pidsSecond = dir, t.second
		}
		g.over = false
	}
	if g.over {
		return g
	}
	groups.there++
	name := "memory.oom_control"
	if g.second {
		name = "memory.events"
	}
	for i, file := range [][2]string{{g.memory, name}, {g.pids, "pids.events"}} {
		if file[0] != "" {
			g.told[i], _ = os.Open(filepath.Join(file[0], file[1]))
		}
	}
	return g
}

func (g *group) folders() []string {
	return slices.DeleteFunc(slices.Compact([]string{g.memory, g.pids}), func(dir string) bool { return dir == "" })
}

// join has a process, and what it starts from then on, be of the group.
func (g *group) join(pid int, tasks int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.over {
		return
	}
	for _, dir := range []*string{&g.memory, &g.pids} {
		if *dir == "" {
			continue
		}
		if err := writeTo(*dir, "cgroup.procs", strconv.Itoa(pid)); err != nil && !errors.Is(err, unix.ESRCH) {
			removeGroup(*dir)
			*dir = ""
			continue
		}
		g.inside = true
	}
	g.limitTasks(tasks)
}

func (g *group) limitTasks(most int64) {
	if g.pids != "" && writeTo(g.pids, "pids.max", strconv.FormatInt(most, 10)) == nil {
		g.tasks = most
	}
}

// ready is called once the process has all that it has before its first case; it returns
// the bytes of memory that are its own there.
func (g *group) ready(tasks int64) (held int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.over || !g.inside {
		return 0
	}
	if g.pids != "" {
		g.limitTasks(tasks + number(os.DirFS(g.pids), "pids.current"))
	}
	if g.memory == "" {
		return 0
	}
	told := fields(os.DirFS(g.memory), "memory.stat")
	return told["rss"] + told["anon"]
}

// hold holds it to so many bytes of memory, unless it has had more before.
func (g *group) hold(most int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.over || g.memory == "" || most <= g.most {
		return
	}
	g.most = most
	text := strconv.FormatInt(most, 10)
	if g.second {
		_ = writeTo(g.memory, "memory.swap.max", "0")
		_ = writeTo(g.memory, "memory.max", text)
		return
	}
	for _, name := range []string{"memory.memsw.limit_in_bytes", "memory.limit_in_bytes", "memory.memsw.limit_in_bytes"} { // never below the other
		_ = writeTo(g.memory, name, text)
	}
}

// counts returns how many processes have been ended for want of memory, and how many tasks
// were not to be, and how many may be.
func (g *group) counts() (killings, refusals, tasks int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.over {
		g.killings, g.refusals = toldOf(g.told[0], "oom_kill "), toldOf(g.told[1], "max ")
	}
	return g.killings, g.refusals, g.tasks
}

// toldOf reads the number after a name in a file that is open.
func toldOf(f *os.File, name string) int64 {
	var text [512]byte
	if f == nil {
		return 0
	}
	n, _ := f.ReadAt(text[:], 0)
	for line := range strings.Lines(string(text[:n])) {
		if value, ok := strings.CutPrefix(line, name); ok {
			count, _ := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
			return count
		}
	}
	return 0
}

// members are the processes of the group.
func (g *group) members() (pids []int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.over {
		return nil
	}
	for _, dir := range g.folders() {
		pids = append(pids, members(dir)...)
	}
	slices.Sort(pids)
	return slices.Compact(pids)
}

// end ends all that is in it, and removes it.
func (g *group) end() {
	g.counts()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.over {
		return
	}
	g.over = true
	for _, dir := range g.folders() { // what cannot fork any more is not what was refused
		endAll(dir)
	}
	for _, f := range g.told {
		if f != nil {
			f.Close()
		}
	}
	for _, dir := range g.folders() {
		removeGroup(dir)
	}
	groups.mu.Lock()
	defer groups.mu.Unlock()
	groups.there--
	closeHomes(false)
}

// closeHomes removes the homes in which no group is. One that this process has moved into
// stays until its end, for what it has started is there too.
func closeHomes(end bool) {
	for _, t := range groups.trees {
		if t.home != "" && groups.there == 0 && (end || !t.moved) {
			t.close()
		}
	}
}

// leaveGroups removes what is left of control groups at the end of this process.
func leaveGroups() {
	groups.mu.Lock()
	defer groups.mu.Unlock()
	closeHomes(true)
}

// endAll ends the processes of a group, which may start no more.
func endAll(dir string) {
	_ = writeTo(dir, "pids.max", "0")
	for range 1000 {
		if !killListed(func() []int { return members(dir) }) {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// members reads the processes of a group: those of another namespace of processes are 0.
func members(dir string) (pids []int) {
	text, _ := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	for word := range strings.FieldsSeq(string(text)) {
		if pid, err := strconv.Atoi(word); err == nil && pid > 1 {
			pids = append(pids, pid)
		}
	}
	return pids
}

// removeGroup removes a group, once what was in it is gone.
func removeGroup(dir string) {
	for range 200 {
		if err := unix.Rmdir(dir); !errors.Is(err, unix.EBUSY) {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

func writeTo(dir, name, text string) error {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// limitFiles holds the files that a process writes to so many bytes each, and has it leave
// no core.
func limitFiles(pid int, most int64) {
	_ = unix.Prlimit(pid, unix.RLIMIT_CORE, &unix.Rlimit{}, nil)
	var old unix.Rlimit
	if most > 0 && unix.Prlimit(pid, unix.RLIMIT_FSIZE, nil, &old) == nil {
		_ = unix.Prlimit(pid, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: min(uint64(most), old.Max), Max: old.Max}, nil)
	}
}

// Bounds says which bounds of its cases the kernel holds, for who looks at what is here.
func (w *Worker) Bounds() string {
	if w.proc == nil {
		return looking
	}
	g := w.proc.group
	g.mu.Lock()
	defer g.mu.Unlock()
	var by []string
	version := func(second bool) string {
		if second {
			return "cgroup v2"
		}
		return "cgroup v1"
	}
	if g.inside && g.memory != "" {
		by = append(by, "memory by "+version(g.second))
	}
	if g.inside && g.pids != "" {
		by = append(by, "processes by "+version(g.pidsSecond))
	}
	return strings.Join(append(by, "files by rlimit", "all by "+looking), ", ")
}
