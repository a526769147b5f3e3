//go:build unix

package worker

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"plumb/backend"
	"plumb/program"
)

// TestNewSubject: what is written to start from is a worker, for an interface like
// PyTorch's and for one of its own.
func TestNewSubject(t *testing.T) {
	path, _, err := FindPython("")
	if err != nil {
		t.Skip("needs a Python with torch: ", strings.SplitN(err.Error(), "\n", 2)[0])
	}
	x := f32([]int{2, 2}, 1, -2, 3, -4)
	product := func() *builder {
		return new(builder).in("x", x, false).call("y", "torch.matmul", program.Ref("x"), program.Ref("x")).call("z", "torch.sum", program.Ref("y")).kw("dim", int64(1))
	}
	for _, c := range []struct {
		module string
		own    bool
	}{{"torch", false}, {"numpy", true}} {
		if c.own && exec.Command(path, "-c", "import numpy").Run() != nil {
			t.Log("needs numpy: ", path)
			continue
		}
		dir := t.TempDir()
		made, err := NewSubject(dir, "mine", c.module, path, c.own)
		if err != nil {
			t.Fatal(err)
		}
		w := openOwn(t, made)
		if out := run(t, w, product()); out.Status != backend.OK || numbers(out.Values[1].Tensor) != "1 1" {
			t.Errorf("%s: %+v", c.module, out)
		}
		if out := run(t, w, new(builder).in("x", x, false).call("y", "torch.no_such", program.Ref("x"))); out.Status != backend.Unsupported {
			t.Errorf("%s: %+v", c.module, out)
		}
		if _, err := NewSubject(dir, "mine", c.module, path, c.own); err == nil {
			t.Error("what is there is written over")
		}
	}
	for _, name := range []string{"Mine", "arrays"} { // plumb_arrays.py is the kit's
		if _, err := NewSubject(t.TempDir(), name, "numpy", path, true); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

// TestMistakesOfAdapters: where an adapter fails, or a tensor lacks what the kit
// reads, that is told with the file, the line and what the kit asks for; a
// mistake in the framework is not the adapter's.
func TestMistakesOfAdapters(t *testing.T) {
	path, _, err := FindPython("")
	if err != nil || exec.Command(path, "-c", "import numpy").Run() != nil {
		t.Skip("needs a Python with torch and numpy")
	}
	const framework = `import numpy
float32 = numpy.float32
class Array:
    def __init__(self, of):
        self.of = of
def asarray(a, dtype=None):
    return Array(numpy.asarray(a, dtype))
def copy(t):
    return Array(t.of.copy())
def matmul(a, b):
    return None.dot
`
	const attributes = "mine.Array.shape = property(lambda t: t.of.shape)\nmine.Array.dtype = property(lambda t: t.of.dtype)\n\nclass"
	has := []string{"\nclass", attributes, "return numpy.asarray(t)", "return t.of"}
	for name, c := range map[string]struct {
		edits        []string
		target, want string
	}{
		"at the start": {[]string{"type(make(", "type(mine.zeros("}, "", "plumb_mine.py, line 18: AttributeError: module 'mine' has no attribute 'zeros'\n" +
			"    root, tensor_class = mine, type(mine.zeros(numpy.zeros(1)))\nthe kit asks of the adapter's class: name and version; root, the module of the framework; tensor_class, "},
		"no module":       {[]string{"import mine\n", "import nowhere\n"}, "", "ModuleNotFoundError: No module named 'nowhere'\n    import nowhere\nthe Python that runs it is " + path},
		"no attributes":   {nil, "torch.clone", "(plumb_mine.py: the kit reads .shape and .dtype of every tensor, and Array has no shape and no dtype: give it Array.shape = property(...))"},
		"a method there":  {[]string{"\nclass", strings.Replace(attributes, "property(lambda t: t.of.shape)", "lambda t: t.of.shape", 1), "return numpy.asarray(t)", "return t.of"}, "torch.clone", "(plumb_mine.py: the kit reads the sizes in .shape of every tensor, and that of Array is a method)"},
		"in a method":     {[]string{"\nclass", attributes, "return numpy.asarray(t)", "return t.numpy()"}, "torch.clone", "(plumb_mine.py, line 38; the kit asks of array(): the elements of a tensor as an array of its dtype)"},
		"the framework's": {has, "torch.matmul", "'NoneType' object has no attribute 'dot'"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			made, err := NewSubject(dir, "mine", "mine", path, true)
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(dir, "plumb_mine.py")
			adapter, err := os.ReadFile(file)
			if err == nil {
				err = errors.Join(os.WriteFile(filepath.Join(dir, "mine.py"), []byte(framework), 0o644),
					os.WriteFile(file, []byte(strings.NewReplacer(c.edits...).Replace(string(adapter))), 0o644))
			}
			if err != nil {
				t.Fatal(err)
			}
			if c.target == "" {
				w, err := Open(t.Context(), Config{Command: []string{made}})
				if err == nil {
					w.Close()
				}
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%v, want %s", err, c.want)
				}
				return
			}
			b := new(builder).in("x", f32([]int{2}, 1, -2), false)
			if c.target == "torch.matmul" {
				b.call("y", c.target, program.Ref("x"), program.Ref("x"))
			} else {
				b.call("y", c.target, program.Ref("x"))
			}
			if out := run(t, openOwn(t, made), b); out.Status == backend.OK || !strings.HasSuffix(out.Message, c.want) {
				t.Errorf("%+v, want %s", out, c.want)
			}
		})
	}
}
