// Package where tells from which line of a user's program a call came.
package where

import (
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"plumb/internal/module"
)

// depth is how many frames are looked at.
const depth = 64

// Outside returns FILE:LINE of the innermost running frame that is in none of
// the packages of this module, named by their folders ("." is its root), nor in Go's own runtime, reflect, sync and testing; test files
// of the packages are outside. It is "" where there is none. The file is its
// name without folders.
func Outside(packages ...string) string {
	var pcs [depth]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for {
		f, more := frames.Next()
		if f.Function != "" && !within(f, packages) {
			return fmt.Sprintf("%s:%d", filepath.Base(f.File), f.Line)
		}
		if !more {
			return ""
		}
	}
}

func within(f runtime.Frame, packages []string) bool {
	name := packageOf(f.Function)
	switch name {
	case "runtime", "reflect", "sync", "testing", "slices", "maps":
		return true
	}
	own := func(folder string) bool { return module.Join(folder) == name }
	return slices.ContainsFunc(packages, own) && !strings.HasSuffix(f.File, "_test.go")
}

// packageOf cuts a function's name after the package's path.
func packageOf(function string) string {
	slash := strings.LastIndexByte(function, '/') + 1
	if dot := strings.IndexByte(function[slash:], '.'); dot >= 0 {
		return function[:slash+dot]
	}
	return function
}
