package reffaults

import (
	"slices"
	"testing"

	"plumb/internal/judge/verdict"
	"plumb/program"
)

func faultOf(target, reference string) *verdict.KnownFault {
	i := slices.IndexFunc(Faults, func(f verdict.KnownFault) bool { return f.Target == target && f.Reference == reference })
	return &Faults[i]
}

// TestShortCosines: cosines differ between versions where a vector along the dimension,
// as it is broadcast, is shorter than eps, and has an element.
func TestShortCosines(t *testing.T) {
	f := faultOf("cosine_similarity", "torch <2.9")
	for call, want := range map[string]bool{
		"torch.cosine_similarity(x, y, 0, 0.5)":                               true,
		"torch.cosine_similarity(x, y, 0, 0.01)":                              false,
		"torch.cosine_similarity(x, y, dim=-1, eps=0.02)":                     true,
		"torch.cosine_similarity(x, y, 1, 0.005)":                             false,
		"torch.cosine_similarity(x, y, 0)":                                    false,
		"torch.nn.functional.cosine_similarity(x, y, 2, 0.01)":                false,
		"torch.nn.functional.cosine_similarity(x, y, dim=0, eps=0.200000001)": true,
	} {
		p, err := program.Parse("p.py", program.Header+"\ncase(\"p.py::p\", seed=1)\nx = tensor((2, 2), torch.float64, [0.0, 0.0, 0.01, 0.2])\ny = tensor((2,), torch.float64, [0.01, 0.01])\nz = "+call+"\n")
		if err != nil {
			t.Fatal(err)
		}
		if got := f.When(p); got != want {
			t.Errorf("%s: %t, want %t", call, got, want)
		}
	}
}

// TestInfiniteGelu: of oneDNN's gelu the infinities that differ are those of elements
// that are infinite, or too large to be doubled.
func TestInfiniteGelu(t *testing.T) {
	f := faultOf("gelu", "torch >=2.9")
	for _, c := range []struct {
		dtype, rest string
		when        bool
	}{{"float32", ")", true}, {"float16", ")", true}, {"float64", ")", false}, {"float32", ", approximate='tanh')", false}} {
		p, err := program.Parse("p.py", program.Header+"\ncase(\"p.py::p\", seed=1)\nx = tensor((4,), torch."+c.dtype+", [1.0, float(\"inf\"), float(\"-inf\"), 60000.0])\ny = torch.nn.functional.gelu(x"+c.rest+"\n")
		if err != nil {
			t.Fatal(err)
		}
		if got := f.When(p); got != c.when {
			t.Errorf("%s%s: %t", c.dtype, c.rest, got)
		}
		if fits := f.Places(p, []int{4}); fits(0) || !fits(1) || fits(2) || fits(3) {
			t.Errorf("%s%s: the fault is of other elements than the infinite", c.dtype, c.rest)
		}
	}
}

// TestNoBags: what ends the process is a bag of none, by the mode max or with padding.
func TestNoBags(t *testing.T) {
	for _, c := range []struct {
		offsets, rest string
		want          bool
	}{
		{"(0,), torch.int64, []", ", mode='sum', padding_idx=-4", true},
		{"(0,), torch.int64, []", ", mode='max'", true},
		{"(0,), torch.int64, []", ", mode='sum'", false},
		{"(1,), torch.int64, [0]", ", mode='max', padding_idx=1", false},
	} {
		p, err := program.Parse("p.py", program.Header+"\ncase(\"p.py::p\", seed=1)\nx = tensor((4,), torch.int64, [3, 0, 0, 3])\nw = tensor((4, 0), torch.float32, [])\no = tensor("+c.offsets+")\ny = torch.nn.functional.embedding_bag(x, w, o"+c.rest+")\n")
		if err != nil {
			t.Fatal(err)
		}
		if got := noBags(p); got != c.want {
			t.Errorf("offsets %s%s: %t", c.offsets, c.rest, got)
		}
	}
}
