package onekernel

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/goccy/go-yaml"

	"plumb/backend/worker"
	"plumb/internal/draw/choice"
	"plumb/tensor"
)

// entry is a kernel of the test data and the verdict that it deserves; see its README.md.
type entry struct {
	File, Against, Python, Verdict string
	Also, Flags                    []string
}

const sets = "../../cmd/command/testdata/kernels"

// smoke are judged in every test run; PLUMB_KERNELS=all has all judged.
var smoke = []string{
	"problems/solutions/linear_batchnorm/same.py", "problems/solutions/linear_batchnorm/stale.py", "problems/solutions/linear_batchnorm/no_update.py",
	"problems/solutions/log_softmax/zeros.py", "problems/solutions/hinge_broadcast/same.py", "problems/solutions/hinge_broadcast/one_row.py", "problems/solutions/log_softmax/half.py", "tasks/row_softmax/submission_expected.py", "tasks/prefix_sum/submission_sampled.py",
	"problems/solutions/causal_mask_softmax/own_mask.py", "problems/solutions/causal_mask_softmax/strict.py",
	"problems/solutions/fpn_sum/reversed.py", "problems/solutions/bag_mlp/right.py", "problems/solutions/bag_mlp/left.py",
}

func TestProblemsAndTasks(t *testing.T) {
	for _, set := range []string{"problems", "tasks"} {
		text, err := os.ReadFile(filepath.Join(sets, set, "index.json"))
		if err != nil {
			t.Fatal(err)
		}
		var entries []entry
		if err := json.Unmarshal(text, &entries); err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			name := set + "/" + e.File
			if os.Getenv("PLUMB_KERNELS") == "all" || slices.Contains(smoke, name) {
				t.Run(name, func(t *testing.T) { e.judge(t, filepath.Join(sets, set)) })
			}
		}
	}
}

func (e *entry) judge(t *testing.T, dir string) {
	python := os.Getenv("PLUMB_KERNELS_PYTHON")
	if e.Python == "triton" && python == "" {
		t.Skip("PLUMB_KERNELS_PYTHON names no Python with Triton")
	}
	if _, _, err := worker.FindPython(python); err != nil {
		t.Skip(err)
	}
	o := Options{Kernel: filepath.Join(dir, e.File), Against: filepath.Join(dir, e.Against), Python: python, Seed: 1}.Filled()
	r := report(t, o)
	if string(r.Verdict) != e.Verdict && !slices.Contains(e.Also, string(r.Verdict)) {
		t.Errorf("%s, want %s: %v %s", r.Verdict, e.Verdict, r.Reasons, r.When)
	}
}

// report is what comes of judging by options.
func report(t *testing.T, o Options) *Report {
	t.Helper()
	o.YAML = decodeYAML
	cfg, err := o.Config()
	if err != nil {
		t.Fatal(err)
	}
	r, err := Judge(t.Context(), *cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestNear(t *testing.T) {
	for _, of := range []struct{ given, unit, want int }{{4096, 1, 64}, {393216, 1, 48}, {24, 4, 24}, {1000, 1, 125}, {768, 12, 48}, {1 << 20, 128, 128}, {99991, 1, 64}} {
		got := near{given: of.given, unit: of.unit}.reduced()
		if got != of.want || got%of.unit != 0 {
			t.Errorf("%d in units of %d: %d, want %d", of.given, of.unit, got, of.want)
		}
	}
	for _, of := range []struct { // in focus for the second and the third time, whatever is random
		given, unit int
		turn        turn
		want        int
	}{{32768, 1, beyondGiven, 4099}, {32768, 1, beyondAgain, 2049}, {393216, 12, beyondGiven, 4092}, {4098, 1, beyondGiven, 4099}, {511, 7, beyondGiven, 518}} {
		if got := (near{given: of.given, unit: of.unit, turn: of.turn}).draw(choice.New(uint64(of.given)), step{}, true); got != of.want {
			t.Errorf("%d in units of %d, turn %d: %d, want %d", of.given, of.unit, of.turn, got, of.want)
		}
	}
}

func TestTaskIsLaidOut(t *testing.T) {
	dir := filepath.Join(sets, "tasks", "row_softmax")
	task, err := ReadTask(dir, decodeYAML)
	if err != nil || len(task.Tests) != 3 || len(task.Benchmarks) != 1 {
		t.Fatalf("%v: %v", task, err)
	}
	to := t.TempDir()
	kernel, reference, err := task.lay(dir, filepath.Join(dir, "submission_padded.py"), to)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{kernel: true, reference: true, filepath.Join(to, "kernel", "reference.py"): false, filepath.Join(to, "kernel", "utils.py"): true, filepath.Join(to, "reference", "submission.py"): false} {
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s: %v", path, err)
		}
	}
	task.Files[1].Source = "../elsewhere/task.py" // here it is in the task's own folder
	task.Files = append(task.Files, task.Files[1])
	task.Files[len(task.Files)-1].Name, task.Files[len(task.Files)-1].Source = "eval.py", "../eval.py" // which is nowhere
	to = t.TempDir()
	if _, _, err := task.lay(dir, filepath.Join(dir, "submission.py"), to); err != nil {
		t.Error(err)
	}
	for path, want := range map[string]bool{filepath.Join(to, "kernel", "task.py"): true, filepath.Join(to, "kernel", "eval.py"): false} {
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s: %v", path, err)
		}
	}
	task.Files[1].Name = "../task.py"
	if _, _, err := task.lay(dir, filepath.Join(dir, "submission.py"), t.TempDir()); err == nil {
		t.Error("a file outside of the folder was written")
	}
}

func decodeYAML(text []byte, into any) error { return yaml.Unmarshal(text, into) }

// TestBuffersHoldWhatTheyAreGiven: a causal mask is no class of zeros and ones, nor any triangle.
func TestBuffersHoldWhatTheyAreGiven(t *testing.T) {
	e := stateEntry{Values: []float64{1, 0, 1, 1}}
	e.DType, e.Shape, e.Among, e.Pattern = "float32", []int{2, 2}, []float64{0, 1}, Lower
	in, err := e.input("p0")
	if err != nil {
		t.Fatal(err)
	}
	e.fill(in, tensor.F64)
	if in.Among != nil || in.Pattern != "" || in.Literal == nil || in.Literal.Float(1) != 0 || in.Literal.DType() != tensor.F64 {
		t.Errorf("%+v", in)
	}
}
