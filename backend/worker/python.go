package worker

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"plumb/backend"
)

// ErrNoPython and ErrNoTorch say what Find missed.
var (
	ErrNoPython = errors.New("no Python")
	ErrNoTorch  = errors.New("no torch")
)

// Torch is the framework whose subject is what Plumb compares others with.
const Torch = "torch"

// Frameworks are those that Plumb has an adapter of, PyTorch first. An engine
// that runs ONNX is named after a colon.
var Frameworks = []string{Torch, "oneflow", "jax", "paddle", "mlx", "tensorflow", "tinygrad", "mindspore", "numpy", "onnx:ort", "onnx:openvino"}

// packages are what Python calls frameworks that have another name there.
var packages = map[string]string{"onnx:ort": "onnxruntime", "onnx:openvino": "openvino"}

// wheels are what pip installs for a framework, where that is more than its package.
var wheels = map[string]string{"paddle": "paddlepaddle", "mlx": "mlx-cpu mlx numpy", "tensorflow": "tensorflow-cpu", "onnx:ort": "onnxruntime onnx", "onnx:openvino": "openvino onnx"}

// Install returns the command that installs a framework into an environment of its own,
// and the Python there.
func Install(framework string) (command, python string) {
	dir := "$HOME/plumb-" + packageOf(framework)
	return fmt.Sprintf("python3 -m venv %s && %s/bin/pip install %s", dir, dir, cmp.Or(wheels[framework], packageOf(framework))), dir + "/bin/python"
}

// packageOf returns the name by which Python imports a framework.
func packageOf(framework string) string { return cmp.Or(packages[framework], framework) }

// probe prints a framework's version without importing it. The current
// directory must stand in neither for the framework nor for what the probe
// itself imports.
const probe = `
import sys
sys.path = [p for p in sys.path if p]
import importlib.util, os, re
name = sys.argv[1]
spec = importlib.util.find_spec(name)
if spec is None:
    sys.exit(3)
file = os.path.join(os.path.dirname(spec.origin), "version.py") if spec.origin else ""
text = open(file).read() if os.path.exists(file) else ""
found = re.search(r"__version__ = ['\"](.+?)['\"]", text)
if found:
    version = found.group(1)
else:
    from importlib import metadata
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError: # a folder of that name
        dists = metadata.packages_distributions().get(name)
        if not dists:
            sys.exit(3)
        version = metadata.version(dists[0])
print(name, version)
`

// FindPython is Find of PyTorch.
func FindPython(flag string) (path, torchVersion string, err error) { return Find(Torch, flag) }

// Find returns the first Python that has a framework, and the framework's
// version: the one named by flag, else by $PLUMB_<NAME>_PYTHON, else one of
// Interpreters. When flag or the variable names one, no other is tried; for
// PyTorch $PLUMB_PYTHON is a variable too. The error is a *backend.Fault
// around ErrNoPython or ErrNoTorch, with the command that repairs it. The
// framework is looked for, not imported.
func Find(framework, flag string) (path, version string, err error) {
	if flag == "" {
		flag = os.Getenv(Variable(framework))
	}
	if flag == "" && framework == Torch {
		flag = os.Getenv("PLUMB_PYTHON")
	}
	if flag != "" {
		path, version, err := Try(framework, flag)
		if err != nil {
			return "", "", &backend.Fault{Backend: framework, Err: err, Fix: fixNamed(framework, flag, path)}
		}
		return path, version, nil
	}
	var missed []error
	for _, candidate := range Interpreters() {
		path, version, err := Try(framework, candidate)
		if err == nil {
			return path, version, nil
		}
		missed = append(missed, err)
	}
	return "", "", &backend.Fault{Backend: framework, Err: worst(missed), Fix: fixFor(framework, "")}
}

// Variable is that of the environment which names the Python of a framework.
func Variable(framework string) string {
	name, _, _ := strings.Cut(framework, ":")
	return "PLUMB_" + strings.ToUpper(name) + "_PYTHON"
}

// Interpreters are the Pythons in which frameworks are looked for: python3 on
// the PATH, and the system's.
func Interpreters() []string { return []string{"python3", "/usr/bin/python3"} }

// Below returns the Pythons of the environments in a directory, or below it.
func Below(dir string) ([]string, error) {
	if _, err := os.ReadDir(dir); err != nil {
		return nil, fmt.Errorf("no environments can be looked for in %s: %w", dir, err)
	}
	var found []string
	for _, depth := range []string{"", "*", "*/*"} {
		paths, err := filepath.Glob(filepath.Join(dir, depth, "bin", "python"))
		if err != nil {
			return nil, err
		}
		found = append(found, paths...)
	}
	return found, nil
}

// Try returns the path of a Python and the version of the framework that it
// has; the resolved path even when the framework is not there.
func Try(framework, name string) (path, version string, err error) {
	path, err = exec.LookPath(name)
	if err != nil {
		return "", "", fmt.Errorf("%w at %s", ErrNoPython, name)
	}
	pkg := packageOf(framework)
	out, err := exec.Command(path, "-c", probe, pkg).Output()
	if version, ok := strings.CutPrefix(strings.TrimSpace(string(out)), pkg+" "); ok && err == nil {
		return path, version, nil
	}
	var exit *exec.ExitError
	switch {
	case !errors.As(err, &exit) || exit.ExitCode() != 3:
		return "", "", fmt.Errorf("%w at %s: it does not run", ErrNoPython, name)
	case framework == Torch:
		return path, "", fmt.Errorf("%w: Python %s cannot import it", ErrNoTorch, path)
	}
	return path, "", fmt.Errorf("no %s: Python %s cannot import it", pkg, path)
}

// worst joins the errors, naming each Python once, the nearest to success last.
func worst(missed []error) error {
	for _, err := range missed {
		if !errors.Is(err, ErrNoPython) {
			return err
		}
	}
	return missed[0]
}

const aptInstall = "apt-get install --no-install-recommends python3-torch libopenblas0-pthread"

// fixNamed says how to repair the Python that is asked for by name; path is ""
// where there is none.
func fixNamed(framework, name, path string) string {
	if framework == Torch && path == "" && !strings.HasPrefix(name, "/usr/bin/") {
		return "name a Python that has torch with --python or $PLUMB_PYTHON, or neither after: " + fixFor(framework, "")
	}
	return fixFor(framework, path)
}

// fixFor returns the command that gives the Python at path its framework; for an
// empty path, one that gives the system both.
func fixFor(framework, path string) string {
	_, err := os.Stat("/etc/debian_version")
	debian := err == nil
	switch {
	case framework == Torch && debian && (path == "" || strings.HasPrefix(path, "/usr/bin/")):
		return aptInstall
	case path != "":
		return path + " -m pip install " + packageOf(framework)
	case framework == Torch:
		return "pip install torch"
	}
	return fmt.Sprintf("name a Python that has it: --candidate %s:PYTHON, or $%s", framework, Variable(framework))
}
