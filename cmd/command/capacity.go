package command

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"plumb/backend/open"
)

// capacity is what a machine, or the container on it, has for workers.
type capacity struct {
	cpus   int
	memory int64 // bytes that may still be taken; 0 where that is not known
}

// processMemory is what a framework's process takes before it has run much.
const processMemory = 512 << 20

func measureCapacity() capacity {
	return capacity{runtime.GOMAXPROCS(0), availableMemory(os.DirFS("/"))}
}

// lanes returns how many of the lanes that are wanted there is room for, and
// why there are no more; each has so many processes.
func (c capacity) lanes(wanted, processes int) (lanes int, why string) {
	lanes = wanted
	if lanes > c.cpus {
		lanes, why = c.cpus, "it has "+count(c.cpus, "CPU")
	}
	if fit := c.memory / processMemory; processes > 0 && c.memory > 0 && int64(lanes*processes) > fit {
		lanes = max(int(fit)/processes, 1)
		why = fmt.Sprintf("%d MB of memory are free, and each takes some %d MB", c.memory>>20, processes*processMemory>>20)
	}
	return lanes, why
}

// growth is what each of the processes may take beyond what it has at its
// start; 0 where that is not known.
func (c capacity) growth(processes int) int64 {
	if processes == 0 || c.memory == 0 {
		return 0
	}
	return max(c.memory/int64(processes), 2*processMemory)
}

// fitJobs caps -j at what the machine has room for, says so, and returns by how
// much each worker of the subjects may grow.
func fitJobs(jobs *int, log io.Writer, specs ...string) int64 {
	processes := 0
	for _, spec := range specs {
		if of := open.ParseSpec(spec); of.IsFramework() || of.IsCommand() || of.IsLibrary() {
			processes++
		}
	}
	c := measureCapacity()
	lanes, why := c.lanes(*jobs, processes)
	if lanes < *jobs {
		fmt.Fprintf(log, "plumb: -j %d is %d on this machine: %s\n", *jobs, lanes, why)
		*jobs = lanes
	}
	return c.growth(*jobs * processes)
}

// availableMemory is the least of what the machine has left and of what the
// control groups of this process do.
func availableMemory(root fs.FS) int64 {
	least := fields(root, "proc/meminfo")["MemAvailable:"] << 10
	atMost := func(limit, used int64) {
		if left := max(limit-used, 1); limit > 0 && (least == 0 || left < least) {
			least = left
		}
	}
	group, _ := fs.ReadFile(root, "proc/self/cgroup")
	for line := range strings.Lines(string(group)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		switch {
		case parts[1] == "":
			for at := path.Join("sys/fs/cgroup", parts[2]); at != "sys/fs"; at = path.Dir(at) {
				atMost(number(root, at+"/memory.max"), number(root, at+"/memory.current")-fields(root, at+"/memory.stat")["inactive_file"])
			}
		case slices.Contains(strings.Split(parts[1], ","), "memory"):
			for _, at := range []string{path.Join("sys/fs/cgroup/memory", parts[2]), "sys/fs/cgroup/memory"} {
				atMost(number(root, at+"/memory.limit_in_bytes"), number(root, at+"/memory.usage_in_bytes")-fields(root, at+"/memory.stat")["total_inactive_file"])
			}
		}
	}
	return least
}

// number reads a file that holds one; 0 for another, such as "max".
func number(root fs.FS, name string) int64 {
	text, _ := fs.ReadFile(root, name)
	n, _ := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return n
}

// fields reads a file of lines that are a name and a number.
func fields(root fs.FS, name string) map[string]int64 {
	out := map[string]int64{}
	text, _ := fs.ReadFile(root, name)
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); len(words) > 1 {
			out[words[0]], _ = strconv.ParseInt(words[1], 10, 64)
		}
	}
	return out
}
