package worker

import (
	"testing"
	"testing/fstest"
)

// TestFreeMemory: the least of machine and control groups counts.
func TestFreeMemory(t *testing.T) {
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
		if got := FreeMemory(c.root); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
