package command

import (
	"testing"
	"testing/fstest"
)

// TestLanes: -j is capped by CPUs and by memory, and never at none.
func TestLanes(t *testing.T) {
	for _, c := range []struct {
		of                capacity
		wanted, processes int
		want              int
		why               string
	}{
		{capacity{8, 16 << 30}, 4, 2, 4, ""},
		{capacity{8, 16 << 30}, 64, 2, 8, "it has 8 CPUs"},
		{capacity{64, 4 << 30}, 64, 2, 4, "4096 MB of memory are free, and each takes some 1024 MB"},
		{capacity{64, 4 << 30}, 64, 0, 64, ""},
		{capacity{64, 0}, 64, 3, 64, ""},
		{capacity{2, 1}, 2, 2, 1, "0 MB of memory are free, and each takes some 1024 MB"},
	} {
		if got, why := c.of.lanes(c.wanted, c.processes); got != c.want || why != c.why {
			t.Errorf("%+v: %d of %d lanes, %q", c.of, got, c.wanted, why)
		}
	}
}

// TestAvailableMemory: the least of machine and control groups counts.
func TestAvailableMemory(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	machine := file("MemTotal: 9000 kB\nMemAvailable:    8000 kB\n")
	for name, c := range map[string]struct {
		root fstest.MapFS
		want int64
	}{
		"neither": {fstest.MapFS{}, 0},
		"machine": {fstest.MapFS{"proc/meminfo": machine}, 8000 << 10},
		"v2, limited above": {fstest.MapFS{
			"proc/meminfo": machine, "proc/self/cgroup": file("0::/a/b\n"),
			"sys/fs/cgroup/a/b/memory.max": file("max\n"),
			"sys/fs/cgroup/a/memory.max":   file("5000\n"), "sys/fs/cgroup/a/memory.current": file("3000\n"), "sys/fs/cgroup/a/memory.stat": file("anon 1\ninactive_file 500\n"),
		}, 2500},
		"v1, in a container": {fstest.MapFS{
			"proc/self/cgroup":                           file("4:cpu,memory:/docker/x\n1:name=systemd:/\n"),
			"sys/fs/cgroup/memory/memory.limit_in_bytes": file("7000\n"), "sys/fs/cgroup/memory/memory.usage_in_bytes": file("6000\n"),
		}, 1000},
	} {
		if got := availableMemory(c.root); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
