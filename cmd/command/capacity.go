package command

import (
	"fmt"
	"io"
	"os"
	"runtime"

	"plumb/backend/open"
	"plumb/backend/worker"
)

// capacity is what a machine, or the container on it, has for workers.
type capacity struct {
	cpus   int
	memory int64 // bytes that may still be taken; 0 where that is not known
}

// processMemory is what a framework's process takes before it has run much.
const processMemory = 512 << 20

func measureCapacity() capacity {
	return capacity{runtime.GOMAXPROCS(0), worker.FreeMemory(os.DirFS("/"))}
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
