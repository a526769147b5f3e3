package reffaults

import (
	"slices"
	"strings"
	"testing"

	"plumb/internal/judge/verdict"
	"plumb/program"
)

// TestEdgeFaultsKnowTheirCases gives every fault a program that shows it and
// one beside it that does not.
func TestEdgeFaultsKnowTheirCases(t *testing.T) {
	for _, c := range []struct{ target, shows, beside string }{
		{"conv_transpose1d",
			"x = tensor((1, 1, 1), torch.float32, [0.0])\nw = tensor((1, 1, 1), torch.float32, [float(\"nan\")])\nv = torch.conv_transpose1d(x, w)",
			"x = tensor((1, 1, 1), torch.float32, [float(\"nan\")])\nw = tensor((1, 1, 1), torch.float32, [1.0])\nv = torch.conv_transpose1d(x, w)"},
		{"conv_transpose2d",
			"x = tensor((1, 1, 1, 1), torch.float32, [0.0])\nw = tensor((1, 1, 1, 1), torch.float32, [float(\"inf\")])\nv = torch.conv_transpose2d(x, w)",
			"x = tensor((1, 1, 1, 1), torch.float32, [0.0])\nw = tensor((1, 1, 1, 1), torch.float32, [1.0])\nv = torch.conv_transpose2d(x, w)"},
		{"conv_transpose3d",
			"x = tensor((1, 1, 1, 1, 1), torch.float32, [0.0])\nw = tensor((1, 1, 1, 1, 1), torch.float32, [float(\"inf\")])\nv = torch.conv_transpose3d(x, w)",
			"x = tensor((1, 1, 1, 1, 1), torch.float32, [0.0])\nw = tensor((1, 1, 1, 1, 1), torch.float32, [1.0])\nv = torch.conv_transpose3d(x, w)"},
		{"polygamma",
			"x = tensor((), torch.float32, [-1.0])\nv = torch.polygamma(1, x)",
			"x = tensor((), torch.float32, [0.0])\nv = torch.polygamma(1, x)"},
		{"pdist",
			"x = tensor((2, 1), torch.float32, [0.0, float(\"nan\")])\nv = torch.pdist(x, 1.0)",
			"x = tensor((2, 1), torch.float32, [0.0, 1.0])\nv = torch.pdist(x, 1.0)"},
		{"cdist",
			"x = tensor((1, 1), torch.float32, [float(\"nan\")])\nv = torch.cdist(x, x, float(\"inf\"))",
			"x = tensor((1, 1), torch.float32, [3.0])\nv = torch.cdist(x, x, float(\"inf\"))"},
		{"cholesky_solve",
			"x = tensor((2, 1), torch.float32, [1.0, 1.0])\nl = tensor((2, 2), torch.float32, [1.0, 0.0, 1.0, 1.0], requires_grad=True)\nv = torch.cholesky_solve(x, l)",
			"x = tensor((2, 1), torch.float32, [1.0, 1.0], requires_grad=True)\nl = tensor((2, 2), torch.float32, [1.0, 0.0, 1.0, 1.0])\nv = torch.cholesky_solve(x, l)"},
		{"embedding_bag",
			"i = tensor((1,), torch.int64, [0])\nw = tensor((1, 1), torch.float32, [0.0])\ns = tensor((1,), torch.float32, [0.0], requires_grad=True)\nv = torch.nn.functional.embedding_bag(i, w, i, per_sample_weights=s)",
			"i = tensor((1,), torch.int64, [0])\nw = tensor((1, 1), torch.float32, [0.0], requires_grad=True)\ns = tensor((1,), torch.float32, [0.0], requires_grad=True)\nv = torch.nn.functional.embedding_bag(i, w, i, per_sample_weights=s)"},
		{"binary_cross_entropy",
			"x = tensor((2,), torch.float32, [0.5, 1.0])\nv = torch.nn.functional.binary_cross_entropy(x, x)",
			"x = tensor((2,), torch.float32, [0.5, 0.25])\nv = torch.nn.functional.binary_cross_entropy(x, x)"},
		{"soft_margin_loss",
			"x = tensor((), torch.float32, [-100.0])\ny = tensor((), torch.float32, [1.0])\nv = torch.nn.functional.soft_margin_loss(x, y)",
			"x = tensor((), torch.float32, [-3.0])\ny = tensor((), torch.float32, [1.0])\nv = torch.nn.functional.soft_margin_loss(x, y)"},
		{"isin",
			"x = tensor((2, 2), torch.int64, [0, 1, 2, 3], strides=(1, 2))\nv = torch.isin(x, x)",
			"x = tensor((2, 2), torch.int64, [0, 1, 2, 3])\nv = torch.isin(x, x)"},
		{"pixel_shuffle",
			"x = tensor((1, 2, 2, 1, 1), torch.float32, [0.0, 1.0, 2.0, 3.0], strides=(4, 1, 2, 2, 2))\nv = torch.nn.functional.pixel_shuffle(x, 1)",
			"x = tensor((1, 2, 2, 1, 1), torch.float32, [0.0, 1.0, 2.0, 3.0])\nv = torch.nn.functional.pixel_shuffle(x, 1)"},
		{"pixel_unshuffle",
			"x = tensor((1, 2, 2, 1, 1), torch.float32, [0.0, 1.0, 2.0, 3.0], strides=(4, 1, 2, 2, 2))\nv = torch.nn.functional.pixel_unshuffle(x, 1)",
			"x = tensor((1, 2, 2, 1, 1), torch.float32, [0.0, 1.0, 2.0, 3.0])\nv = torch.nn.functional.pixel_unshuffle(x, 1)"},
		{"median",
			"x = tensor((2, 1), torch.int64, [8, 8], strides=(0, 1))\nv = torch.median(x, 0)",
			"x = tensor((2, 1), torch.int64, [8, 8], strides=(2, 1))\nv = torch.median(x, 0)"},
		{"nanmedian",
			"x = tensor((1, 2), torch.float32, [8.0, 5.0])\ny = x.expand(3, 2)\nv = y.nanmedian(0)",
			"x = tensor((1, 2), torch.float32, [8.0, 5.0])\ny = x.repeat(3, 2)\nv = y.nanmedian(0)"},
		{"bitwise_left_shift",
			"x = tensor((), torch.int64, [64])\nv = torch.bitwise_left_shift(x, x)",
			"x = tensor((), torch.int64, [63])\nv = torch.bitwise_left_shift(x, x)"},
		{"bitwise_right_shift",
			"x = tensor((), torch.int8, [7])\ny = tensor((), torch.int8, [-1])\nv = torch.bitwise_right_shift(x, other=y)",
			"x = tensor((), torch.int8, [-7])\ny = tensor((), torch.int8, [1])\nv = torch.bitwise_right_shift(x, other=y)"},
		{"bitwise_right_shift",
			"x = tensor((), torch.int8, [-1])\nv = torch.bitwise_right_shift(x, x)",
			"x = tensor((), torch.int8, [7])\nv = torch.bitwise_right_shift(x, x)"},
		{"matrix_power",
			"x = tensor((1, 1), torch.float32, [float(\"inf\")])\nv = torch.matrix_power(x, -1)",
			"x = tensor((1, 1), torch.float32, [3.0])\nv = torch.matrix_power(x, -1)"},
		{"InstanceNorm1d",
			"x = tensor((1, 1, 2), torch.float32, [0.0, 1e25])\nv = torch.nn.functional.instance_norm(x)",
			"x = tensor((1, 1, 2), torch.float32, [float(\"inf\"), 1e9])\nv = torch.nn.functional.instance_norm(x)"},
		{"hardswish",
			"x = tensor((), torch.float32, [3.0])\nv = torch.nn.functional.hardswish(x)",
			"x = tensor((), torch.float32, [2.0])\nv = torch.nn.functional.hardswish(x)"},
		{"hardswish",
			"x = tensor((1,), torch.float32, [float(\"-inf\")])\nv = torch.nn.functional.hardswish(x)",
			"x = tensor((1,), torch.float32, [float(\"inf\")])\nv = torch.nn.functional.hardswish(x)"},
		{"digamma",
			"x = tensor((2,), torch.float32, [-1.0, 0.5])\nv = torch.digamma(x)",
			"x = tensor((2,), torch.float32, [-1.5, 0.5])\nv = torch.digamma(x)"},
		{"erfinv",
			"x = tensor((2,), torch.float64, [0.999, 0.5])\nv = torch.erfinv(x)",
			"x = tensor((2,), torch.float64, [1.0, 0.5])\nv = torch.erfinv(x)"},
		{"where",
			"c = tensor((1,), torch.bool, [True])\nx = tensor((1,), torch.complex64, [1.0])\ny = tensor((1,), torch.float32, [0.5], requires_grad=True)\nv = torch.where(c, x, y)\nv.backward()",
			"c = tensor((1,), torch.bool, [True])\nx = tensor((1,), torch.float64, [1.0])\ny = tensor((1,), torch.float32, [0.5], requires_grad=True)\nv = torch.where(c, x, y)\nv.backward()"},
		{"softsign",
			"x = tensor((2,), torch.uint8, [1, 255])\nv = torch.nn.functional.softsign(x)",
			"x = tensor((2,), torch.uint8, [1, 254])\nv = torch.nn.functional.softsign(x)"},
		{"softsign",
			"x = tensor((2,), torch.int8, [1, -128])\nv = torch.nn.functional.softsign(x)",
			"x = tensor((2,), torch.float32, [1.0, 255.0])\nv = torch.nn.functional.softsign(x)"},
		{"relu6",
			"x = tensor((), torch.float32, [float(\"nan\")])\nv = torch.nn.functional.relu6(x)",
			"x = tensor((), torch.float32, [3.0])\nv = torch.nn.functional.relu6(x)"},
		{"logcumsumexp",
			"x = tensor((1,), torch.float32, [3e38])\nv = torch.logcumsumexp(x, 0)",
			"x = tensor((1,), torch.float32, [3.0])\nv = torch.logcumsumexp(x, 0)"},
		{"std_mean",
			"x = tensor((1,), torch.float32, [float(\"inf\")])\nv = torch.std_mean(x)",
			"x = tensor((2,), torch.float32, [3e38, 1.0])\nv = torch.std_mean(x)"},
		{"var",
			"x = tensor((1,), torch.float32, [2.0], requires_grad=True)\nv = torch.var(x)\nv.backward()",
			"x = tensor((1,), torch.float32, [2.0], requires_grad=True)\nv = torch.var(x, 0)\nv.backward()"},
		{"var",
			"x = tensor((2,), torch.float32, [2.0, 3.0], requires_grad=True)\nv = x.var(dim=None, correction=2)\nv.backward()",
			"x = tensor((2,), torch.float32, [2.0, 3.0], requires_grad=True)\nv = x.var(dim=None, correction=1)\nv.backward()"},
		{"std_mean",
			"x = tensor((1,), torch.float32, [2.0], requires_grad=True)\nv = torch.std_mean(x, unbiased=True)",
			"x = tensor((1,), torch.float32, [2.0], requires_grad=True)\nv = torch.std_mean(x, unbiased=False)"},
		{"conv2d",
			"x = tensor((1, 1, 1), torch.float32, [1.0])\nw = tensor((1, 1, 1, 1), torch.float32, [float(\"nan\")])\nv = torch.conv2d(x, w)",
			"x = tensor((1, 1, 1), torch.float32, [float(\"nan\")])\nw = tensor((1, 1, 1, 1), torch.float32, [1.0])\nv = torch.conv2d(x, w)"},
		{"ctc_loss",
			"x = tensor((2, 1), torch.float32, [0.0, 0.0])\ny = tensor((1,), torch.int64, [0])\nv = torch.nn.functional.ctc_loss(x, y, (2,), (1,))",
			"x = tensor((2, 2), torch.float32, [0.0, 0.0, 0.0, 0.0])\ny = tensor((1,), torch.int64, [1])\nv = torch.nn.functional.ctc_loss(x, y, (2,), (1,))"},
		{"ctc_loss",
			"x = tensor((2, 2), torch.float32, [0.0, 0.0, 0.0, 0.0])\ny = tensor((2,), torch.int64, [1, 1], strides=(2,))\nv = torch.nn.functional.ctc_loss(x, y, (2,), (2,))",
			"x = tensor((2, 2), torch.float32, [0.0, 0.0, 0.0, 0.0])\ny = tensor((2,), torch.int64, [1, 1])\nv = torch.nn.functional.ctc_loss(x, y, (2,), (2,))"},
	} {
		if !holdsFor(t, c.target, c.shows) {
			t.Errorf("no fault of %s holds for\n%s", c.target, c.shows)
		}
		if holdsFor(t, c.target, c.beside) {
			t.Errorf("a fault of %s holds for\n%s", c.target, c.beside)
		}
	}
}

func holdsFor(t *testing.T, target, text string) bool {
	t.Helper()
	p, err := program.Parse("case.py", program.Header+"\ncase(\"case.py::case\", seed=1)\n"+text+"\n")
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(edgeFaults, func(f verdict.KnownFault) bool {
		return f.Target == target && f.When(p)
	})
}

func TestFaultsHaveProofs(t *testing.T) {
	for _, fw := range Frameworks() {
		for _, f := range fw.Faults {
			if strings.TrimSpace(f.Reason) == "" || strings.TrimSpace(f.Proof) == "" || len(f.Kinds) == 0 {
				t.Errorf("the fault of %s lacks a reason, a proof or its kinds", f.Target)
			}
			if strings.Contains(f.Proof, "TARGET") || strings.Contains(f.Proof, "%!") {
				t.Errorf("the proof of %s (%s) is not filled in:\n%s", f.Target, f.Reason, f.Proof)
			}
			if _, err := verdict.ParseVersions(f.Reference); err != nil || !strings.HasPrefix(f.Reference, fw.Name) {
				t.Errorf("the fault of %s (%s) in %s: %v", f.Target, f.Reason, f.Reference, err)
			}
		}
	}
}

// TestSingular: an exact determinant of 0, in a batch too, and none beside it.
func TestSingular(t *testing.T) {
	for text, want := range map[string]bool{
		"x = tensor((2, 2), torch.float64, [1.0, 2.0, 2.0, 4.0])":                          true,
		"x = tensor((2, 2), torch.float64, [0.0, 2.0, 2.0, 4.0])":                          false,
		"x = tensor((2, 2, 2), torch.float32, [1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 3.0, 4.0])":   true,
		"x = tensor((3, 3), torch.float64, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0])": true,
		"x = tensor((3, 3), torch.float64, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.5])": false,
		"x = tensor((2,), torch.float64, [0.0, 0.0])":                                      false,
		"x = tensor((0, 0), torch.float64, [])":                                            false,
		"x = tensor((1, 1), torch.complex64, [complex(0.0, 1.0)])":                         false,
	} {
		p, err := program.Parse("case.py", program.Header+"\ncase(\"case.py::case\", seed=1)\n"+text+"\nv = torch.det(x)\n")
		if err != nil {
			t.Fatal(err)
		}
		if got := singular(p.Inputs[0]); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

// TestOddScales: factors of modules and functions, one or several.
func TestOddScales(t *testing.T) {
	for text, want := range map[string]bool{
		"v = torch.nn.functional.interpolate(x, scale_factor=(1.25,))":    true,
		"v = torch.nn.functional.interpolate(x, scale_factor=1.25)":       true,
		"v = torch.nn.functional.interpolate(x, None, 2.25)":              true,
		"v = torch.nn.functional.interpolate(x, None, 1.25, \"bicubic\")": true,
		"v = torch.nn.functional.interpolate(x, None, 1.25, \"linear\")":  false,
		"v = torch.nn.functional.interpolate(x, scale_factor=2.0)":        false,
		"v = torch.nn.functional.interpolate(x, scale_factor=1.75)":       false,
		"v = torch.nn.functional.interpolate(x, (2,))":                    false,
		"m = torch.nn.Upsample(scale_factor=1.25)\nv = m(x)":              true,
		"m = torch.nn.Upsample(None, 1.25, \"trilinear\")\nv = m(x)":      false,
		"m = torch.nn.UpsamplingNearest2d(scale_factor=1.25)\nv = m(x)":   true,
	} {
		p, err := program.Parse("case.py", program.Header+"\ncase(\"case.py::case\", seed=1)\nx = tensor((1, 1, 2), torch.float32, [1.0, 2.0])\n"+text+"\n")
		if err != nil {
			t.Fatal(err)
		}
		if got := scaledOdd(p); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}
