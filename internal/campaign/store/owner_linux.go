package store

import (
	"fmt"
	"os"
	"strings"
	"sync"
)

// thisProcess tells this process from every other of this machine and others: the
// machine's boot, the process' namespace, its number, and when it began.
var thisProcess = sync.OnceValue(func() string {
	where, began := bootID(), beginning(os.Getpid())
	if where == "" || began == "" {
		return ""
	}
	return fmt.Sprintf("%s %d %s", where, os.Getpid(), began)
})

// bootID is of this start of this machine, and the processes that can be seen.
func bootID() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	space, err2 := os.Readlink("/proc/self/ns/pid")
	if err != nil || err2 != nil {
		return ""
	}
	return strings.TrimSpace(string(boot)) + " " + space
}

// beginning is when a process began, in ticks since the boot; "" where there is none.
func beginning(pid int) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	const state, began = 0, 19 // among the fields behind the name, which may hold anything
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(fields) <= began || fields[state] == "Z" {
		return ""
	}
	return fields[began]
}

// isGone reports whether a process was one of this machine's and is no more.
func isGone(process string) bool {
	var boot, space, began string
	var pid int
	if n, _ := fmt.Sscan(process, &boot, &space, &pid, &began); n < 4 || boot+" "+space != bootID() {
		return false
	}
	return beginning(pid) != began
}
