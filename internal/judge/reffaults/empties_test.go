package reffaults

import (
	"slices"
	"testing"

	"plumb/backend"
	"plumb/internal/judge/verdict"
)

// TestStatisticsOfNoSamples: running statistics are written over with NaN before 2.15,
// where they are read alone and there are no samples.
func TestStatisticsOfNoSamples(t *testing.T) {
	const statistics = "m = tensor((2,), torch.float32, [0.0, 0.0])\nv = tensor((2,), torch.float32, [1.0, 1.0])\n"
	for text, want := range map[string]bool{
		"x = tensor((0, 2, 3), torch.float32, [])\n" + statistics + "y = torch.nn.functional.instance_norm(x, m, v, use_input_stats=False)":                             true,
		"x = tensor((0, 2, 3), torch.float32, [])\n" + statistics + "y = torch.nn.functional.instance_norm(x, m, v)":                                                    false,
		"x = tensor((1, 2, 3), torch.float32, [1.0, 2.0, 3.0, 1.0, 2.0, 3.0])\n" + statistics + "y = torch.nn.functional.instance_norm(x, m, v, use_input_stats=False)": false,
	} {
		p := parsed(t, text)
		if found := slices.ContainsFunc(Faults, func(f verdict.KnownFault) bool {
			return f.Target == "instance_norm" && slices.Contains(f.Kinds, verdict.Kind(backend.PartChange)) && f.When(p)
		}); found != want {
			t.Errorf("known is %t of\n%s", found, text)
		}
	}
}
