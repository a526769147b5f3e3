package open

import (
	"errors"
	"strings"
	"testing"
)

// TestTorchSpecs: what follows "torch:" is a mode, a Python, or both.
func TestTorchSpecs(t *testing.T) {
	s := &Set{Python: "asked"}
	for arg, want := range map[string][2]string{
		"":                          {"", "asked"},
		"eager":                     {"eager", "asked"},
		"jit.trace":                 {"jit.trace", "asked"},
		"fx:/usr/bin/python3":       {"fx", "/usr/bin/python3"},
		"/usr/bin/python3":          {"", "/usr/bin/python3"},
		`C:\Python\python.exe`:      {"", `C:\Python\python.exe`},
		"compile:relative/python":   {"compile", "relative/python"},
		"jit.tracer":                {"", "jit.tracer"},
		"jit.script:venv/bin:other": {"jit.script", "venv/bin:other"},
	} {
		if mode, python := s.torch(arg); mode != want[0] || python != want[1] {
			t.Errorf("torch:%s: mode %q of %q, want %q of %q", arg, mode, python, want[0], want[1])
		}
	}
	for spec, want := range map[string]string{"native": "native:graph", "./own": "./own:graph", "torch:/usr/bin/python3": "torch:graph:/usr/bin/python3"} {
		if got := InMode(spec, "graph"); got != want {
			t.Errorf("%s in graph: %s", spec, got)
		}
	}
}

// TestMisspeltMode: a mode that torch has not is told apart from a missing PyTorch.
func TestMisspeltMode(t *testing.T) {
	_, err := new(Set).Opener(t.Context(), "torch:jit.trase")
	var wrong *Error
	if !errors.As(err, &wrong) || !strings.Contains(err.Error(), `"jit.trase" is neither a mode of torch`) || !strings.Contains(err.Error(), "jit.trace") {
		t.Error(err)
	}
}
