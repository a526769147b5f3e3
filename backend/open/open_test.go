package open

import (
	"errors"
	"os"
	"strings"
	"testing"

	"plumb/ops"
)

// TestSpecs: a name is taken apart and put together again.
func TestSpecs(t *testing.T) {
	for text, want := range map[string]Spec{
		"torch":                               {"torch", "", "", ""},
		"torch:eager":                         {"torch", "", "eager", ""},
		"torch:jit.trace":                     {"torch", "", "jit.trace", ""},
		"torch:fx:/usr/bin/python3":           {"torch", "", "fx", "/usr/bin/python3"},
		"torch:/usr/bin/python3":              {"torch", "", "", "/usr/bin/python3"},
		`torch:C:\Python\python.exe`:          {"torch", "", "", `C:\Python\python.exe`},
		"torch:compile:relative/python":       {"torch", "", "compile", "relative/python"},
		"torch:python3.11":                    {"torch", "", "", "python3.11"},
		"torch:jit.script:venv/bin:other":     {"torch", "", "jit.script", "venv/bin:other"},
		"torch@cuda:1":                        {"torch", "cuda", "", "1"},
		"torch@cuda:compile:/path/to/python":  {"torch", "cuda", "compile", "/path/to/python"},
		"oneflow":                             {"oneflow", "", "", ""},
		"oneflow@cuda":                        {"oneflow", "cuda", "", ""},
		"oneflow:graph":                       {"oneflow", "", "graph", ""},
		"oneflow:/opt/oneflow/bin/python":     {"oneflow", "", "", "/opt/oneflow/bin/python"},
		"oneflow:graph:envs/oneflow/bin/pyth": {"oneflow", "", "graph", "envs/oneflow/bin/pyth"},
		"onnx:ort":                            {"onnx:ort", "", "", ""},
		"onnx:ort:graph:/opt/bin/python":      {"onnx:ort", "", "graph", "/opt/bin/python"},
		"onnx:openvino:/opt/bin/python":       {"onnx:openvino", "", "", "/opt/bin/python"},
		"native":                              {"native", "", "", ""},
		"native:graph":                        {"native", "", "graph", ""},
		"native@sim":                          {"native", "sim", "", ""},
		"native@sim:graph":                    {"native", "sim", "graph", ""},
		"recorded":                            {"recorded", "", "", ""},
		"recorded:a/b:c.zst":                  {"recorded", "", "", "a/b:c.zst"},
		"./own":                               {"./own", "", "", ""},
		"./own:fast":                          {"./own", "", "fast", ""},
		"./a@b:fast":                          {"./a@b", "", "fast", ""},
	} {
		if got := ParseSpec(text); got != want || got.String() != text {
			t.Errorf("%s: %+v, want %+v; as text %s", text, got, want, got)
		}
	}
	for spec, want := range map[string]string{"native": "native:graph", "native@sim": "native@sim:graph", "./own": "./own:graph", "torch:/usr/bin/python3": "torch:graph:/usr/bin/python3", "oneflow:eager": "oneflow:graph"} {
		if got := InMode(spec, "graph"); got != want {
			t.Errorf("%s in graph: %s", spec, got)
		}
	}
}

// TestMisspeltDevice: what native lacks is told when it is asked for.
func TestMisspeltDevice(t *testing.T) {
	for spec, says := range map[string]string{"native@simm": `no device "simm"; there are cpu, sim`, "native@sim:jit": `has no mode "jit"`, "native:gloobal": "eager"} {
		_, err := (&Set{Table: ops.Table()}).Opener(t.Context(), spec)
		var wrong *Error
		if !errors.As(err, &wrong) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", spec, err, says)
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

// TestWorkerWithoutItsSlash: a file of the name is told, a folder is not.
func TestWorkerWithoutItsSlash(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := errors.Join(os.WriteFile("mine", nil, 0o700), os.Mkdir("folder", 0o700)); err != nil {
		t.Fatal(err)
	}
	for name, says := range map[string]string{"mine": "is ./mine:jit", "folder": "want NAME[@DEVICE]"} {
		if _, err := new(Set).Opener(t.Context(), name+":jit"); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", name, err, says)
		}
	}
}
