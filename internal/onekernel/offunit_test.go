package onekernel

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"plumb/backend/worker"
)

// TestSizesOffTheMultiples: what a submission answers at sizes that no test of its task has is
// told, and is no mistake; what refuses them is not told of.
func TestSizesOffTheMultiples(t *testing.T) {
	if _, _, err := worker.FindPython(""); err != nil {
		t.Skip(err)
	}
	for text, told := range map[string]string{
		"data[:, : data.shape[1] // 32 * 32]":                                  "only tried where cols is a multiple of 32, as in the task's tests: at 33 it differs, which --shapes any would blame",
		"data if data.shape[1] % 32 == 0 and data.shape[0] % 4 == 0 else None": "",
	} {
		file := filepath.Join(t.TempDir(), "submission.py")
		source := "import torch\n\n\ndef custom_kernel(data):\n    x = " + text + "\n    e = torch.exp(x - x.amax(-1, keepdim=True))\n    return torch.nn.functional.pad(e / e.sum(-1, keepdim=True), (0, data.shape[1] - x.shape[1]))\n"
		if err := os.WriteFile(file, []byte(source), 0o644); err != nil {
			t.Fatal(err)
		}
		o := Options{Kernel: file, Against: filepath.Join(sets, "tasks", "row_softmax"), Seed: 1}.Filled()
		o.Cases = 5
		r := report(t, o)
		only := slices.IndexFunc(r.Notes, func(note string) bool { return strings.HasPrefix(note, "only tried") })
		if r.Verdict != Right || told == "" && only >= 0 || told != "" && !slices.Contains(r.Notes, told) {
			t.Errorf("%s: %s %v, notes %q", text, r.Verdict, r.Reasons, r.Notes)
		}
	}
}
