package worker

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// digests prints what plumb_code says of modules that a worker has imported.
const digests = `
import os, sys, types
sys.path[:0] = os.environ["KIT"], os.environ["OWN"], os.path.join(os.environ["OWN"], "site-packages")
sys.modules["__main__"].__file__ = os.path.join(os.environ["KIT"], os.environ["MAIN"])
import plumb_code
def said(): print(plumb_code.digest() or "none")
def write(name, text):
    with open(os.path.join(os.environ["OWN"], name), "w") as f: f.write(text)
said()
import installed
said()
import mine
said()
write("mine.py", "y = 2")
said()
write("mine.py", "x = 1")
said()
os.environ["PLUMB_WORKER_IMPORT"] = "installed"
said()
torch = sys.modules["torch"] = types.ModuleType("torch")
torch.ops = types.SimpleNamespace(loaded_libraries={os.path.join(os.environ["OWN"], "lib.so")})
said()
write("lib.so", "two")
said()
`

// TestCodeOfUsers: what a worker has loaded of its user's own is told by a digest of
// the files, and what is installed is none of that, unless --import names it.
func TestCodeOfUsers(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("needs python3")
	}
	kit, err := filepath.Abs("py")
	if err != nil {
		t.Fatal(err)
	}
	said := func(main string) []string {
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, "site-packages"), 0o700); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{"mine.py": "x = 1", "site-packages/installed.py": "x = 1", "lib.so": "one"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.Command(python, "-B", "-c", digests)
		cmd.Env = append(os.Environ(), "KIT="+kit, "OWN="+dir, "MAIN="+main, "PLUMB_WORKER_IMPORT=")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return strings.Fields(string(out))
	}
	got := said("plumb_worker.py")
	if len(got) != 8 || got[0] != "none" || got[1] != "none" {
		t.Fatalf("with Plumb's and installed code alone: %q", got)
	}
	if got[2] == "none" || got[3] == got[2] || got[4] != got[2] {
		t.Errorf("a file as it was, changed, and as it was again: %q", got[2:5])
	}
	if got[5] == got[4] {
		t.Error("what --import names does not count")
	}
	if got[6] == got[5] || got[7] == got[6] {
		t.Errorf("without a library, with one, with another: %q", got[5:])
	}
	if own := said("my-worker"); own[0] == "none" {
		t.Error("the kit beside a worker of its user's own does not count")
	}
}

// TestCodeIsTold: the greeting has the digest where there is such code alone.
func TestCodeIsTold(t *testing.T) {
	if code, is := torch(t).Info().Features["code"]; is {
		t.Errorf("of PyTorch alone: %s", code)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "my_operators.py"), []byte("x = 1"), 0o600); err != nil {
		t.Fatal(err)
	}
	w, err := Open(t.Context(), Config{Imports: []string{"my_operators"}, Env: []string{"PYTHONPATH=" + dir, "PYTHONDONTWRITEBYTECODE=1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if w.Info().Features["code"] == "" {
		t.Errorf("%+v", w.Info())
	}
}

// TestCotangentsOfHalves: numbers become a half type by way of float32, as in
// PyTorch, with numpy and without: rounded at once this one would be -0.9995.
func TestCotangentsOfHalves(t *testing.T) {
	got := kitPython(t, `import struct, plumb_arrays, plumb_plain
given = struct.pack("<d", -0.99975585936), "float16", 0, 1, (1,)
print(plumb_arrays.cotangent(*given)[0], struct.unpack("<d", plumb_plain.cotangent(*given).data)[0])`)
	if got != "-1.0 -0.999755859375\n" {
		t.Error(got)
	}
}

// TestArraysHaveTheirDType: what an adapter reads of a tensor is refused in another dtype,
// not taken for other numbers, but for bfloat16 as ml_dtypes has it.
func TestArraysHaveTheirDType(t *testing.T) {
	got := kitPython(t, `import numpy, plumb_arrays
class Memory:
    top, bytes = 0, bytearray(64)
    def reserve(self, n):
        return 0
memory, one = Memory(), numpy.ones(2, numpy.float32)
for name, array in (("float32", one), ("bfloat16", one), ("float32", one.astype(float)), ("bfloat16", one.view(numpy.uint16)), ("bool", one)):
    try:
        print(plumb_arrays.write(memory, name, array), memory.bytes[:4].hex())
    except Exception as e:
        print(type(e).__name__, e)
`)
	if want := "0 0000803f\n0 803f803f\nUnsupported the adapter's array() gave float64 for a tensor of float32: want float32\n" +
		"Unsupported the adapter's array() gave uint16 for a tensor of bfloat16: want float32\nUnsupported the adapter's array() gave float32 for a tensor of bool: want bool\n"; got != want {
		t.Error(got)
	}
}

// kitPython is what a script prints that imports modules of the kit, with numpy.
func kitPython(t *testing.T, script string) string {
	t.Helper()
	path, _, err := Find("numpy", "")
	if err != nil {
		t.Skip("needs a Python with it: ", strings.SplitN(err.Error(), "\n", 2)[0])
	}
	cmd := exec.Command(path, "-c", script)
	cmd.Env = append(os.Environ(), "PYTHONPATH=py", "PYTHONDONTWRITEBYTECODE=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v %s", err, out)
	}
	return string(out)
}
