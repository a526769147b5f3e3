package worker

import (
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// FreeMemory is the least of what the machine, whose files are below root, has left and
// of what the control groups of this process do, in bytes; 0 where that is not known.
func FreeMemory(root fs.FS) int64 {
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
