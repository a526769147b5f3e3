package nn_test

import (
	"encoding/json"
	"math"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"plumb/backend/worker"
	"plumb/nn"
)

// TestInitialsAreThoseOfPyTorch: of many draws, PyTorch's and ours have the same largest
// magnitude, mean and deviation, for a weight of several dimensions.
func TestInitialsAreThoseOfPyTorch(t *testing.T) {
	path, _, err := worker.FindPython("")
	if err != nil {
		t.Skip("needs a Python with torch: ", strings.SplitN(err.Error(), "\n", 2)[0])
	}
	shape := []int{40, 60, 3, 5}
	mine := map[string]nn.Initial{
		"uniform_(w, -1.0, 3.0)": nn.Uniform(-1, 3), "normal_(w, 2.0, 0.5)": nn.Normal(2, 0.5),
		"kaiming_uniform_(w, a=5 ** 0.5)": nn.KaimingUniform(math.Sqrt(5)), "kaiming_normal_(w, a=0.3)": nn.KaimingNormal(0.3),
		"xavier_uniform_(w, gain=1.7)": nn.XavierUniform(1.7), "xavier_normal_(w)": nn.XavierNormal(1),
		"uniform_(w, -1 / 900 ** 0.5, 1 / 900 ** 0.5)": nn.BiasOf(shape),
	}
	var calls []string
	for call := range mine {
		calls = append(calls, call)
	}
	text, err := json.Marshal(calls)
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(path, "-c", `
import json, sys, torch
for call in json.loads(sys.argv[1]):
    w = torch.empty(40, 60, 3, 5, dtype=torch.float64)
    eval("torch.nn.init." + call)
    print(w.abs().max().item(), w.mean().item(), w.std().item())
`, string(text)).Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	for i, call := range calls {
		var want [3]float64
		for k, word := range strings.Fields(lines[i]) {
			if err := json.Unmarshal([]byte(word), &want[k]); err != nil {
				t.Fatal(err)
			}
		}
		draws := mine[call](shape, 7)
		largest, sum, squares := 0.0, 0.0, 0.0
		for _, v := range draws {
			largest, sum = max(largest, math.Abs(v)), sum+v
		}
		mean := sum / float64(len(draws))
		for _, v := range draws {
			squares += (v - mean) * (v - mean)
		}
		deviation := math.Sqrt(squares / float64(len(draws)))
		// Six standard errors of 36,000 draws, of both sides; the largest of normal draws varies.
		if math.Abs(mean-want[1]) > want[2]*0.045 || math.Abs(deviation-want[2]) > want[2]*0.035 {
			t.Errorf("%s: mean %v and deviation %v, PyTorch %v and %v", call, mean, deviation, want[1], want[2])
		}
		if !strings.Contains(call, "normal") && math.Abs(largest-want[0]) > want[0]*0.002 {
			t.Errorf("%s: up to %v, PyTorch up to %v", call, largest, want[0])
		}
	}
}

// TestInitialsReplay: a key draws the same, another key and another entry otherwise.
func TestInitialsReplay(t *testing.T) {
	draw := nn.Normal(0, 1)
	a := draw([]int{7}, 1)
	if !slices.Equal(a, draw([]int{7}, 1)) || slices.Equal(a, draw([]int{7}, 2)) {
		t.Error("draws do not follow from the key")
	}
}
