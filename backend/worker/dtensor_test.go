//go:build unix

package worker

import (
	"math"
	"slices"
	"strings"
	"testing"

	"plumb/backend"
	"plumb/program"
)

// TestDTensor: cases over the ranks of a mesh, of this process or a process each, give
// values and gradients as calls on whole tensors do, modules with their parameters
// replicated.
func TestDTensor(t *testing.T) {
	for mode, seeds := range map[string]int64{"dtensor": 6, "dtensor-gloo": 2, "dtensor-gloo-2x2": 1} {
		t.Run(mode, func(t *testing.T) { testDTensor(t, mode, seeds) })
	}
}

func testDTensor(t *testing.T, mode string, seeds int64) {
	w := transforming(t)
	if !slices.Contains(w.Info().Modes, mode) {
		t.Skip("needs a PyTorch with LocalTensorMode, such as 2.15, or with gloo")
	}
	ranks, err := w.In(mode)
	if err != nil {
		t.Fatal(err)
	}
	x := f32([]int{3, 3}, 1, -2, 3, 0.5, 2, -1, 4, 0.25, -3)
	for name, make := range map[string]func(turn int64) *builder{
		"softmax": func(turn int64) *builder {
			return new(builder).in("x", x, true).call("y", "torch.softmax", ref("x"), turn%2).back("y", program.Fill{})
		},
		"matmul": func(int64) *builder {
			return new(builder).in("x", x, true).in("w", x, true).call("y", "torch.matmul", ref("x"), ref("w")).call("z", "torch.exp", ref("y")).back("z", program.Fill{})
		},
		"module": func(int64) *builder {
			return new(builder).in("x", x, true).call("m", "torch.nn.Linear", int64(3), int64(2)).call("y", "Module.__call__", ref("m"), ref("x")).back("y", program.Fill{})
		},
		"NaN": func(int64) *builder {
			return new(builder).in("x", f32([]int{}, math.NaN()), false).call("y", "torch.cosh", ref("x"))
		},
		"local": func(turn int64) *builder {
			return new(builder).in("x", x, true).call("p", "Tensor.to_local", ref("x")).kw("placement", "cpu[0, 1]").kw("sbp", "S(0)").kw("rank", turn%2).
				call("y", "torch.relu", ref("p")).back("y", program.Fill{})
		},
		"placed": func(turn int64) *builder {
			return new(builder).in("x", x, true).call("p", "Tensor.to_global", ref("x")).kw("sbp", []string{"S(0)", "S(1)", "B"}[turn%3]).
				call("y", "torch.relu", ref("p")).back("y", program.Fill{})
		},
	} {
		for seed := range seeds {
			whole, shared := make(seed), make(seed)
			whole.p.Seed, shared.p.Seed = uint64(seed), uint64(seed)
			want, job := runOK(t, w, whole), shared.job()
			job.State = map[string]backend.State{"m": want.Initial["m"]}
			if names := differing(want, captured(t, ranks, job)); names != nil {
				t.Errorf("%s, seed %d: %v", name, seed, names)
			}
		}
	}
	for reason, b := range map[string]*builder{
		"need not share its memory": new(builder).in("x", x, false).call("y", "Tensor.mul_", ref("x"), 2.0),
		"DTensor: aten.bincount":    new(builder).in("x", x, false).call("y", "torch.bincount", ref("x")),
	} {
		if out := inTransform(t, w, mode, b); out.Status != backend.Unsupported || !strings.Contains(out.Message, reason) {
			t.Errorf("%s %s, want %s", out.Status, out.Message, reason)
		}
	}
}
