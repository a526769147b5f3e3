package worker

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"plumb/backend"
)

// ErrNoPython and ErrNoTorch say what FindPython missed.
var (
	ErrNoPython = errors.New("no Python")
	ErrNoTorch  = errors.New("no torch")
)

// probe prints torch's version without importing it. The current directory
// must stand in neither for torch nor for what the probe itself imports.
const probe = `
import sys
sys.path = [p for p in sys.path if p]
import importlib.util, os, re
spec = importlib.util.find_spec("torch")
if spec is None or not spec.origin:
    sys.exit(3)
text = open(os.path.join(os.path.dirname(spec.origin), "version.py")).read()
print("torch", re.search(r"__version__ = ['\"](.+?)['\"]", text).group(1))
`

// FindPython returns the first Python that has torch, and torch's version: the
// one named by flag, else by $PLUMB_PYTHON, else python3 on the PATH, else
// /usr/bin/python3. When flag or the variable names one, no other is tried.
// The error is a *backend.Fault around ErrNoPython or ErrNoTorch, with the
// command that repairs it. torch is looked for, not imported.
func FindPython(flag string) (path, torchVersion string, err error) {
	if flag == "" {
		flag = os.Getenv("PLUMB_PYTHON")
	}
	if flag != "" {
		path, version, err := tryPython(flag)
		if err != nil {
			return "", "", &backend.Fault{Backend: "torch", Err: err, Fix: fixNamed(flag, path)}
		}
		return path, version, nil
	}
	var missed []error
	for _, candidate := range []string{"python3", "/usr/bin/python3"} {
		path, version, err := tryPython(candidate)
		if err == nil {
			return path, version, nil
		}
		missed = append(missed, err)
	}
	return "", "", &backend.Fault{Backend: "torch", Err: worst(missed), Fix: fixFor("")}
}

// tryPython returns the resolved path even when torch is not there.
func tryPython(name string) (path, version string, err error) {
	path, err = exec.LookPath(name)
	if err != nil {
		return "", "", fmt.Errorf("%w at %s", ErrNoPython, name)
	}
	out, err := exec.Command(path, "-c", probe).Output()
	if version, ok := strings.CutPrefix(strings.TrimSpace(string(out)), "torch "); ok && err == nil {
		return path, version, nil
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 3 {
		return path, "", fmt.Errorf("%w: Python %s cannot import it", ErrNoTorch, path)
	}
	return "", "", fmt.Errorf("%w at %s: it does not run", ErrNoPython, name)
}

// worst joins the errors, naming each Python once, the nearest to success last.
func worst(missed []error) error {
	for _, err := range missed {
		if errors.Is(err, ErrNoTorch) {
			return err
		}
	}
	return missed[0]
}

const aptInstall = "apt-get install --no-install-recommends python3-torch libopenblas0-pthread"

// fixNamed says how to repair the Python that is asked for by name; path is ""
// where there is none.
func fixNamed(name, path string) string {
	if path == "" && !strings.HasPrefix(name, "/usr/bin/") {
		return "name a Python that has torch with --python or $PLUMB_PYTHON, or neither after: " + fixFor("")
	}
	return fixFor(path)
}

// fixFor returns the command that gives the Python at path its torch; for an
// empty path, one that gives the system both.
func fixFor(path string) string {
	_, err := os.Stat("/etc/debian_version")
	debian := err == nil
	switch {
	case debian && (path == "" || strings.HasPrefix(path, "/usr/bin/")):
		return aptInstall
	case path != "":
		return path + " -m pip install torch"
	}
	return "pip install torch"
}
