package command

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"plumb/internal/onekernel"
)

// kernelEntry is an entry of an index of functions below testdata/kernels, whose fields the
// README there states.
type kernelEntry struct {
	folder string

	File, Function, Against, Inputs, Signature, Python, Class, Verdict, Mistake string
	Flags, Also                                                                 []string
}

func (e *kernelEntry) name() string { return e.File + "::" + e.Function }

// sampled are an entry of each class, told apart in a minute; PLUMB_KERNELS=all tries all.
var sampled = []string{
	"softmax.py::softmax", "rows.c::softmax_f32", "triton_add.py::add",
	"softmax.py::softmax_simple", "autograd_pointwise.py::silu_gate", "buffers.py::contiguous_view",
	"limited.py::matmul", "delegation.py::fused_softmax", "attention_frame.py::attention",
	"dense.c::add_unrolled_f32", "triton_add.py::add_plain", "right.py::dot_rows_pool", "cheats.py::softmax_by_count",
	"warpers.py::weighted_sum", "warpers.py::weighted_sum_of_two", "warpers.py::top_p", "warpers.py::argsort_by_counting",
}

var kernelFolders = []string{"testdata/kernels/functions", "testdata/kernels/unusual", "testdata/kernels/idioms"}

// TestKernels: kernels as users write them have the verdict that they deserve. Those that
// need a Python which is not here are left out: PLUMB_KERNELS_PYTHON lists more.
func TestKernels(t *testing.T) {
	slow(t)
	pythons := kernelPythons(t)
	entries := kernelEntries(t)
	all, seen, lacking := os.Getenv("PLUMB_KERNELS") == "all", 0, map[string]int{}
	for i := range entries {
		e := &entries[i]
		if !all && !slices.Contains(sampled, e.name()) {
			continue
		}
		seen++
		python := pythons[e.Python]
		if python == "" {
			lacking[e.Python]++
			continue
		}
		var quick []string
		if !all {
			quick = []string{"-n", "12"} // more than the first draws
		}
		t.Run(e.name(), func(t *testing.T) {
			t.Parallel()
			e.run(t, python, quick)
		})
	}
	if !all && seen != len(sampled) {
		t.Errorf("the index has %d of the %d sampled entries", seen, len(sampled))
	}
	for what, n := range lacking {
		t.Logf("%d entries are left out, for no Python here has %s", n, what)
	}
}

// TestKernelsAreOfOneName: a later function of the same name would be another reference.
func TestKernelsAreOfOneName(t *testing.T) {
	defined := regexp.MustCompile(`(?m)^(?:def|class) (\w+)`)
	for _, folder := range kernelFolders {
		files, err := filepath.Glob(filepath.Join(folder, "*.py"))
		if err != nil || len(files) == 0 {
			t.Fatal(folder, err)
		}
		for _, file := range files {
			seen := map[string]bool{}
			for _, m := range defined.FindAllStringSubmatch(readFile(t, file), -1) {
				if seen[m[1]] {
					t.Errorf("%s defines %s twice", file, m[1])
				}
				seen[m[1]] = true
			}
		}
	}
}

func kernelEntries(t *testing.T) []kernelEntry {
	t.Helper()
	var all []kernelEntry
	for _, folder := range kernelFolders {
		text, err := os.ReadFile(filepath.Join(folder, "index.json"))
		if err != nil {
			t.Fatal(err)
		}
		var entries []kernelEntry
		if err := json.Unmarshal(text, &entries); err != nil {
			t.Fatal(err)
		}
		for i := range entries {
			entries[i].folder = folder
		}
		all = append(all, entries...)
	}
	return all
}

// kernelPythons maps what an entry needs to a Python that has it.
func kernelPythons(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, python := range append([]string{needTorch(t)}, filepath.SplitList(os.Getenv("PLUMB_KERNELS_PYTHON"))...) {
		has := []string{"any"}
		if onPath("cc") {
			has = append(has, "cc")
		}
		out, _ := exec.Command(python, "-c", "import torch; print(torch.__version__); import triton; print('triton')").Output()
		if strings.HasPrefix(string(out), "2.") {
			has = append(has, "torch2")
			if onPath("g++", "ninja") {
				has = append(has, "cpp")
			}
			if strings.Contains(string(out), "triton") {
				has = append(has, "triton")
			}
		}
		for _, what := range has {
			if found[what] == "" {
				found[what] = python
			}
		}
	}
	return found
}

// onPath reports whether all of some programs are there.
func onPath(programs ...string) bool {
	return !slices.ContainsFunc(programs, func(name string) bool {
		_, err := exec.LookPath(name)
		return err != nil
	})
}

func (e *kernelEntry) run(t *testing.T, python string, more []string) {
	against := e.Against
	if strings.Contains(against, "::") {
		against = filepath.Join(e.folder, against)
	}
	dir := t.TempDir()
	html, markdown := filepath.Join(dir, "k.html"), filepath.Join(dir, "k.md")
	args := []string{e.place(t), "--against", against, "--python", python, "--seed", "1", "--json", "--bundle", dir, "--html", html, "--markdown", markdown}
	if e.Inputs != "" {
		args = append(args, "--inputs", e.Inputs)
	}
	if e.Signature != "" {
		args = append(args, "--signature", e.Signature)
	}
	if e.Verdict == string(onekernel.Delegation) {
		args = append(args, "--no-fallback")
	}
	for _, flag := range e.Flags {
		args = append(args, strings.SplitN(flag, " ", 2)...)
	}
	var out bytes.Buffer
	cmd := newKernel()
	cmd.SetArgs(append(args, more...))
	cmd.SetOut(&out)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err := cmd.ExecuteContext(t.Context())
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	var r onekernel.Report
	if json.Unmarshal([]byte(lines[len(lines)-1]), &r) != nil {
		t.Fatalf("no report: %v\n%s", err, out.String())
	}
	if got := string(r.Verdict); got != e.Verdict && !slices.Contains(e.Also, got) {
		t.Errorf("%s, want %s: %s %s; %+v, %s, %d of %d right", got, e.Verdict, e.Class, e.Mistake, r.Reasons, r.When, r.Tried.Right, r.Tried.Cases)
	}
	if r.Verdict == onekernel.Wrong && (r.Bundle == nil || !r.Bundle.Failed) && slices.Contains(sampled, e.name()) {
		t.Errorf("its bundle was not seen to fail: %+v", r.Bundle)
	}
	kernelFiles(t, readFile(t, html), readFile(t, markdown), &r)
}

// place is what the command judges: a C file's function in a library made of it.
func (e *kernelEntry) place(t *testing.T) string {
	file := filepath.Join(e.folder, e.File)
	if filepath.Ext(file) != ".c" {
		return file + "::" + e.Function
	}
	library := filepath.Join(t.TempDir(), "k.so")
	if text, err := exec.Command("cc", "-O2", "-shared", "-fPIC", "-o", library, file, "-lm").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return library + ":" + e.Function
}
