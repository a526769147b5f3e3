package wheel

import (
	"archive/zip"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func need(t *testing.T, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Skip(err)
	}
	return path
}

func run(t *testing.T, dir string, env []string, args ...string) string {
	t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// TestPack packs a library of one function: the wheel has every file with its sum, and
// the tag of what the library asks for.
func TestPack(t *testing.T) {
	gcc, python := need(t, "gcc"), need(t, "python3")
	dir := t.TempDir()
	source, lib := filepath.Join(dir, "f.c"), filepath.Join(dir, "f.so")
	if err := os.WriteFile(source, []byte("int f(void) { return 1; }"), 0o644); err != nil {
		t.Fatal(err)
	}
	run(t, dir, nil, gcc, "-shared", "-o", lib, source)
	w := &Wheel{Name: "mine", Version: "1.2", Summary: "Mine"}
	path, err := w.Pack(lib, filepath.Join(dir, "dist"))
	if err != nil {
		t.Fatal(err)
	}
	if filepath.Base(path) != "mine-1.2-py3-none-manylinux_2_17_x86_64.whl" {
		t.Error(path)
	}
	z, err := zip.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close() //nolint:errcheck // it is read only
	files := map[string]string{}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[f.Name] = string(data)
	}
	record := files["mine-1.2.dist-info/RECORD"]
	for name, data := range files {
		sum := sha256.Sum256([]byte(data))
		line := fmt.Sprintf("%s,sha256=%s,%d\n", name, base64.RawURLEncoding.EncodeToString(sum[:]), len(data))
		if !strings.HasSuffix(name, "RECORD") && !strings.Contains(record, line) {
			t.Errorf("RECORD lacks %s", line)
		}
		if strings.HasSuffix(name, ".py") && strings.Contains(data, "NAME") {
			t.Errorf("%s does not have the package's name", name)
		}
	}
	if len(files) != 8 || !strings.Contains(files["mine-1.2.dist-info/WHEEL"], "Tag: py3-none-manylinux_2_17_x86_64\n") {
		t.Errorf("%d files", len(files))
	}
	script := "import importlib.metadata as m, sys, glob, ast\nsys.path[:] = [sys.argv[1], *sys.path]\nassert m.version('mine') == '1.2'\n" +
		"import zipfile\nz = zipfile.ZipFile(sys.argv[1])\n[ast.parse(z.read(n)) for n in z.namelist() if n.endswith('.py')]"
	run(t, dir, nil, python, "-c", script, path)
}

// TestRefused: what no wheel can be made of is refused with the reason.
func TestRefused(t *testing.T) {
	for reason, w := range map[string]*Wheel{
		"no name of a Python package": {Name: "Mine", Version: "1"},
		"is no version":               {Name: "mine", Version: "one"},
		"the library":                 {Name: "mine", Version: "1"},
	} {
		if _, err := w.Pack("/dev/null", t.TempDir()); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("%v, want %q", err, reason)
		}
	}
	if _, err := (&Wheel{Name: "mine", Version: "1", Main: "plumb/no/such"}).Build(t.TempDir()); err == nil || !strings.Contains(err.Error(), "plumb/no/such") {
		t.Error(err)
	}
}

// TestPackage builds the wheel of examples/userop and walks it: numpy, DLPack, forks,
// two packages in a process, C. PLUMB_WHEEL is the Python that has numpy, and PyTorch
// 2 where torch.library is to be walked too; compiling takes a minute of the CPU.
func TestPackage(t *testing.T) {
	python := os.Getenv("PLUMB_WHEEL")
	if python == "" {
		t.Skip("PLUMB_WHEEL names no Python")
	}
	gcc := need(t, "gcc")
	dir := t.TempDir()
	example, err := filepath.Abs("../../examples/userop")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(example)
	for _, name := range []string{"userlib", "twin"} {
		path, err := (&Wheel{Name: name, Version: "0.1.0", Main: "./python"}).Build(dir)
		if err != nil {
			t.Fatal(err)
		}
		run(t, dir, nil, python, "-m", "zipfile", "-e", path, dir)
	}
	testdata := filepath.Join(example, "../../internal/wheel/testdata")
	env := []string{"PYTHONPATH=" + dir}
	t.Log(run(t, dir, env, python, filepath.Join(testdata, "walk.py"), "twin"))
	lib := filepath.Join(dir, "userlib")
	run(t, dir, nil, gcc, "-Wall", "-Werror", "-I", filepath.Join(example, "../../cmd/shared"), filepath.Join(testdata, "example.c"), filepath.Join(lib, "libplumb.so"), "-Wl,-rpath,"+lib, "-o", "example")
	if out := run(t, dir, nil, filepath.Join(dir, "example")); out != "ok\n" {
		t.Error(out)
	}
	if exec.Command(python, "-c", "import torch; assert hasattr(torch.library, 'register_autograd')").Run() != nil {
		t.Log("torch.library is not walked: PLUMB_WHEEL has no PyTorch 2.4 or later")
		return
	}
	t.Log(run(t, dir, env, python, filepath.Join(testdata, "registered.py")))
}
