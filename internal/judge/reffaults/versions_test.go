package reffaults

import (
	"slices"
	"testing"

	"plumb/backend"
	"plumb/internal/judge/compare"
	"plumb/internal/judge/verdict"
	"plumb/program"
	"plumb/tensor"
)

// TestHalfPlaces: images that are read between their elements are excused like
// those of which the nearest is read, in half types alone.
func TestHalfPlaces(t *testing.T) {
	for _, c := range []struct {
		dtype tensor.DType
		known bool
	}{{tensor.F16, true}, {tensor.BF16, true}, {tensor.F32, false}} {
		for _, mode := range []string{"bilinear", "nearest", "bicubic"} {
			p, err := program.Parse("case.py", program.Header+"\ncase(\"case.py::case\", seed=1)\n"+
				"x = tensor((1, 1, 2, 2), "+"torch."+c.dtype.String()+", [0.0, 1.0, 2.0, 3.0])\ng = tensor((1, 1, 1, 2), "+"torch."+c.dtype.String()+", [0.0, 0.5])\n"+
				"y = torch.nn.functional.grid_sample(x, g, mode=\""+mode+"\")\n")
			if err != nil {
				t.Fatal(err)
			}
			for _, kind := range []verdict.Kind{verdict.Kind(backend.PartValue), verdict.Kind(backend.PartGrad)} {
				found := slices.ContainsFunc(Faults, func(f verdict.KnownFault) bool {
					return f.Target == "grid_sample" && (f.DType == tensor.Invalid || f.DType == c.dtype) && slices.Contains(f.Kinds, kind) && (f.When == nil || f.When(p))
				})
				if found != c.known {
					t.Errorf("%s of %s in %s: known is %t", kind, mode, c.dtype, found)
				}
			}
		}
	}
}

// TestPowerOverflows: of an order and elements whose power is in float16's range
// nothing is known.
func TestPowerOverflows(t *testing.T) {
	for _, c := range []struct {
		element, call string
		want          bool
	}{
		{"0.01", "torch.norm(x, p=-2, dim=-1)", true},
		{"0.01", "torch.norm(x, -2.0)", true},
		{"300.0", "torch.linalg.vector_norm(x, ord=3)", true},
		{"0.1", "torch.norm(x, p=-2, dim=-1)", false},
		{"0.0", "torch.norm(x, p=-2, dim=-1)", false},
		{"0.01", "torch.norm(x, p=2, dim=-1)", false},
		{"0.01", "torch.norm(x, p=float(\"-inf\"))", false},
		{"0.01", "torch.norm(x)", false},
	} {
		p, err := program.Parse("case.py", program.Header+"\ncase(\"case.py::case\", seed=1)\nx = tensor((2,), torch.float16, ["+c.element+", 1.0], requires_grad=True)\ny = "+c.call+"\n")
		if err != nil {
			t.Fatal(err)
		}
		if got := powerOverflows(p); got != c.want {
			t.Errorf("%s of %s: %t, want %t", c.call, c.element, got, c.want)
		}
	}
}

// TestSharedMaxima: pools of half types sum their gradients, and nothing else of them
// is known.
func TestSharedMaxima(t *testing.T) {
	for _, c := range []struct {
		target string
		dtype  tensor.DType
		kind   backend.Part
		want   bool
	}{
		{"adaptive_max_pool3d", tensor.F16, backend.PartGrad, true},
		{"max_pool2d", tensor.BF16, backend.PartGrad, true},
		{"adaptive_max_pool3d", tensor.F16, backend.PartValue, false},
		{"adaptive_max_pool3d", tensor.F32, backend.PartGrad, false},
		{"adaptive_avg_pool3d", tensor.F16, backend.PartGrad, false},
	} {
		got := slices.ContainsFunc(Faults, func(f verdict.KnownFault) bool {
			return f.Target == c.target && f.DType == c.dtype && f.Rule == compare.Distance && slices.Contains(f.Kinds, verdict.Kind(c.kind))
		})
		if got != c.want {
			t.Errorf("%s of %s in %s: %t, want %t", c.kind, c.target, c.dtype, got, c.want)
		}
	}
}

// TestVersionsKnowTheirCases gives differences between versions a program that shows each and one beside it that does not.
func TestVersionsKnowTheirCases(t *testing.T) {
	value, grad := verdict.Kind(backend.PartValue), verdict.Kind(backend.PartGrad)
	for _, c := range []struct {
		target, shows, beside string
		kind                  verdict.Kind
	}{
		{"softshrink", "x = tensor((2,), torch.float32, [float(\"nan\"), 1.0])\ny = torch.nn.functional.softshrink(x)",
			"x = tensor((2,), torch.float32, [float(\"inf\"), 1.0])\ny = torch.nn.functional.softshrink(x)", value},
		{"where", "x = tensor((1,), torch.float32, [1.0])\nc = tensor((1,), torch.bool, [True])\ny = x.where(c, 2)",
			"x = tensor((1,), torch.float32, [1.0])\nc = tensor((1,), torch.bool, [True])\ny = torch.where(c, x, 2)", verdict.Exception},
		{"grid_sample", "x = tensor((1, 1, 1, 1, 2), torch.float32, [1.0, 2.0])\ng = tensor((1, 1, 1, 1, 3), torch.float32, [0.0, 0.5, 0.5])\ny = torch.nn.functional.grid_sample(x, g, mode=\"nearest\")",
			"x = tensor((1, 1, 1, 1, 2), torch.float32, [1.0, 2.0])\ng = tensor((1, 1, 1, 1, 3), torch.float32, [0.25, 0.0, 0.0])\ny = torch.nn.functional.grid_sample(x, g, mode=\"nearest\")", value},
		{"grid_sample", "x = tensor((1, 1, 2, 1, 1), torch.float32, [1.0, 2.0])\ng = tensor((1, 1, 1, 1, 3), torch.float32, [0.5, 0.5, 0.0])\ny = torch.nn.functional.grid_sample(x, g, \"nearest\", align_corners=True)",
			"x = tensor((1, 1, 2, 1, 1), torch.float32, [1.0, 2.0])\ng = tensor((1, 1, 1, 1, 3), torch.float32, [0.0, 0.0, 0.0])\ny = torch.nn.functional.grid_sample(x, g, \"bilinear\", align_corners=True)", value},
		{"grid_sample", "x = tensor((1, 1, 1, 1, 5), torch.float32, [1.0, 0.0, 0.0, 0.0, 0.0])\ng = tensor((1, 1, 1, 1, 3), torch.float32, [-1.4, 0.25, 0.25])\ny = torch.nn.functional.grid_sample(x, g, \"nearest\", \"reflection\")",
			"x = tensor((1, 1, 1, 1, 5), torch.float64, [1.0, 0.0, 0.0, 0.0, 0.0])\ng = tensor((1, 1, 1, 1, 3), torch.float64, [-1.3999999761581421, 0.25, 0.25])\ny = torch.nn.functional.grid_sample(x, g, \"nearest\", \"reflection\")", value},
		{"prod", "x = tensor((3,), torch.float32, [0.0, -0.0, 2.0], requires_grad=True)\ny = x.prod()",
			"x = tensor((3,), torch.float32, [0.0, 1.0, 2.0], requires_grad=True)\ny = x.prod()", verdict.RequiresGrad},
		{"prod", "x = tensor((2,), torch.float32, [0.0, 0.0], requires_grad=True)\ny = torch.prod(x, dtype=torch.float64)",
			"x = tensor((2,), torch.float32, [0.0, 0.0], requires_grad=True)\ny = torch.prod(x, 0)", verdict.RequiresGrad},
		{"fmax", "x = tensor((2,), torch.float32, [1.0, 2.0], requires_grad=True)\nd = x.detach()\ny = torch.fmax(x, d)",
			"x = tensor((2,), torch.float32, [1.0, 2.0], requires_grad=True)\nd = tensor((2,), torch.float32, [3.0, 4.0])\ny = torch.fmax(x, d)", grad},
		{"sum", "x = tensor((2,), torch.float32, [0.5, 1.0])\nd = tensor((), torch.int64, [0])\ny = torch.sum(x, d)",
			"x = tensor((2,), torch.float32, [0.5, 1.0])\ny = torch.sum(x, 0)", verdict.Exception},
		{"layer_norm", "x = tensor((2,), torch.float16, [0.5, 1.0])\nw = tensor((2,), torch.float32, [0.5, 1.0])\ny = torch.layer_norm(x, (2,), w)",
			"x = tensor((2,), torch.float16, [0.5, 1.0])\nw = tensor((2,), torch.float64, [0.5, 1.0])\ny = torch.layer_norm(x, (2,), w)", verdict.Exception},
		{"index_reduce", "x = tensor((1, 1), torch.float16, [0.5])\ni = tensor((1,), torch.int64, [0])\ny = torch.index_reduce(x, 0, i, x, \"prod\")",
			"x = tensor((1, 1), torch.float16, [0.5])\ni = tensor((1,), torch.int64, [0])\ny = torch.index_reduce(x, 0, i, x, \"mean\")", verdict.Exception},
		{"BCELoss", "x = tensor((2,), torch.float32, [0.5, 1.0])\nt = tensor((2,), torch.float32, [0.5, 2.0])\nm = torch.nn.BCELoss()\ny = m(x, t)",
			"x = tensor((2,), torch.float32, [0.5, 1.0])\nt = tensor((2,), torch.float32, [0.5, 0.0])\nm = torch.nn.BCELoss()\ny = m(x, t)", verdict.Exception},
		{"lerp", "x = tensor((1,), torch.float32, [-1.0])\nd = tensor((1,), torch.float32, [float(\"inf\")])\ny = torch.lerp(x, d, -0.75)",
			"x = tensor((1,), torch.float32, [-1.0])\nd = tensor((1,), torch.float32, [float(\"inf\")])\ny = torch.lerp(x, d, -0.25)", value},
		{"lerp_", "x = tensor((1,), torch.float32, [float(\"-inf\")])\nd = tensor((1,), torch.float32, [1.0])\nw = tensor((1,), torch.float32, [-0.5])\ny = x.lerp_(d, w)",
			"x = tensor((1,), torch.float32, [-1.0])\nd = tensor((1,), torch.float32, [1.0])\nw = tensor((1,), torch.float32, [-0.5])\ny = x.lerp_(d, w)", value},
		{"hinge_embedding_loss", "x = tensor((2,), torch.float32, [1.0, 0.5], requires_grad=True)\nt = tensor((2,), torch.float32, [-1.0, 1.0])\ny = torch.nn.functional.hinge_embedding_loss(x, t)",
			"x = tensor((2,), torch.float32, [1.0, 0.5], requires_grad=True)\nt = tensor((2,), torch.float32, [-1.0, 1.0])\ny = torch.nn.functional.hinge_embedding_loss(x, t, margin=2.0)", grad},
		{"HingeEmbeddingLoss", "x = tensor((2,), torch.float32, [2.0, 0.5], requires_grad=True)\nt = tensor((2,), torch.float32, [-1.0, 1.0])\nm = torch.nn.HingeEmbeddingLoss(margin=2.0)\ny = m(x, t)",
			"x = tensor((2,), torch.float32, [2.0, 0.5], requires_grad=True)\nt = tensor((2,), torch.float32, [-1.0, 1.0])\nm = torch.nn.HingeEmbeddingLoss()\ny = m(x, t)", grad},
		{"margin_ranking_loss", "x = tensor((2,), torch.float32, [1.0, 0.5], requires_grad=True)\nt = tensor((2,), torch.float32, [0.0, 0.25])\ns = tensor((2,), torch.int64, [1, 1])\ny = torch.nn.functional.margin_ranking_loss(x, t, s, margin=1.0)",
			"x = tensor((2,), torch.float32, [1.0, 0.5], requires_grad=True)\nt = tensor((2,), torch.float32, [0.0, 0.25])\ns = tensor((2,), torch.int64, [1, 1])\ny = torch.nn.functional.margin_ranking_loss(x, t, s)", grad},
		{"addmv", "x = tensor((1,), torch.float64, [1.0])\na = tensor((1, 1), torch.float32, [1.0])\nv = tensor((1,), torch.float32, [1.0])\ny = torch.addmv(x, a, v)",
			"x = tensor((1,), torch.float32, [1.0])\na = tensor((1, 1), torch.float32, [1.0])\nv = tensor((1,), torch.float32, [1.0])\ny = torch.addmv(x, a, v)", verdict.Exception},
		{"lerp", "x = tensor((1,), torch.float32, [1.0])\nw = tensor((), torch.int64, [1])\ny = torch.lerp(x, x, w)",
			"x = tensor((1,), torch.float32, [1.0])\nw = tensor((1,), torch.int64, [1])\ny = torch.lerp(x, x, w)", verdict.Exception},
		{"isposinf", "x = tensor((1,), torch.complex64, [1.0])\ny = torch.isposinf(x)",
			"x = tensor((1,), torch.float32, [1.0])\ny = torch.isposinf(x)", verdict.Exception},
		{"sort", "x = tensor((1,), torch.complex64, [1.0])\ny = torch.sort(x)",
			"x = tensor((1,), torch.bfloat16, [1.0])\ny = torch.sort(x)", verdict.Exception},
		{"view_as_complex", "x = tensor((1, 2), torch.complex64, [1.0, 1.0])\ny = torch.view_as_complex(x)",
			"x = tensor((1, 2), torch.int64, [1, 1])\ny = torch.view_as_complex(x)", verdict.Exception},
		{"bilinear", "x = tensor((1,), torch.float32, [1.0])\nw = tensor((1, 1, 1), torch.float32, [1.0])\nb = tensor((1,), torch.int64, [1])\ny = torch.nn.functional.bilinear(x, x, w, b)",
			"x = tensor((1,), torch.float32, [1.0])\nw = tensor((1, 1, 1), torch.int64, [1])\nb = tensor((1,), torch.float32, [1.0])\ny = torch.nn.functional.bilinear(x, x, w, bias=b)", verdict.Exception},
		{"linear", "x = tensor((1,), torch.float32, [1.0])\nw = tensor((1, 1), torch.float32, [1.0])\ny = torch.nn.functional.linear(x, w, w)",
			"w = tensor((1, 1), torch.float32, [1.0])\ny = torch.nn.functional.linear(w, w, w)", verdict.Exception},
		{"linear", "x = tensor((1, 1, 1), torch.float32, [1.0])\nw = tensor((1, 1), torch.float32, [1.0])\nb = tensor((), torch.int64, [1])\ny = torch.nn.functional.linear(x, w, bias=b)",
			"x = tensor((1, 1, 1), torch.float32, [1.0])\nw = tensor((1, 1), torch.float32, [1.0])\nb = tensor((1,), torch.int64, [1])\ny = torch.nn.functional.linear(x, w, bias=b)", verdict.Exception},
		{"linear", "x = tensor((1,), torch.float32, [1.0])\nw = tensor((1, 1), torch.float32, [1.0])\nb = tensor((1,), torch.int64, [1])\ny = torch.nn.functional.linear(x, w, b)",
			"x = tensor((1,), torch.float32, [1.0])\nw = tensor((1, 1), torch.float32, [1.0])\ny = torch.nn.functional.linear(x, w)", verdict.Exception},
		{"mm", "x = tensor((0, 1), torch.float32, [])\nz = tensor((1, 1), torch.int64, [1])\ny = torch.mm(x, z)",
			"x = tensor((0, 1), torch.float32, [])\nz = tensor((1, 1), torch.float32, [1.0])\ny = torch.mm(x, z)", verdict.Exception},
		{"mv", "x = tensor((0, 1), torch.float32, [])\nz = tensor((1,), torch.int64, [1])\ny = torch.mv(x, z)",
			"x = tensor((1, 1), torch.float32, [1.0])\nz = tensor((1,), torch.int64, [1])\ny = torch.mv(x, z)", verdict.Exception},
		{"dist", "x = tensor((1,), torch.float32, [1.0])\ny = torch.dist(x, x, True)",
			"x = tensor((1,), torch.float32, [1.0])\ny = torch.dist(x, x, 1)", verdict.Exception},
		{"clamp_min", "x = tensor((1,), torch.uint8, [1])\ny = torch.clamp_min(x, -1)",
			"x = tensor((1,), torch.uint8, [1])\ny = torch.clamp_min(x, 2)", value},
		{"clamp", "x = tensor((1,), torch.int8, [1])\ny = x.clamp(max=128)",
			"x = tensor((1,), torch.int8, [1])\ny = x.clamp(max=127)", verdict.Exception},
		{"clamp", "x = tensor((1,), torch.uint8, [1])\ny = torch.clamp(x, -1, 1)",
			"x = tensor((1,), torch.uint8, [1])\ny = torch.clamp(x, -1.5, 1)", value},
		{"hardtanh", "x = tensor((1,), torch.uint8, [1])\ny = torch.nn.functional.hardtanh(x)",
			"x = tensor((1,), torch.uint8, [1])\ny = torch.nn.functional.hardtanh(x, 0, 1)", verdict.Exception},
		{"hardtanh", "x = tensor((1,), torch.uint8, [1])\ny = torch.nn.functional.hardtanh(x, min_val=-1.5, max_val=2)",
			"x = tensor((1,), torch.uint8, [1])\ny = torch.nn.functional.hardtanh(x, min_val=-0.5, max_val=2)", verdict.Exception},
		{"cross_entropy", "x = tensor((3,), torch.float32, [1.0, 2.0, 3.0])\nt = tensor((2,), torch.int64, [0, 1])\ny = torch.nn.functional.cross_entropy(x, t)",
			"x = tensor((2, 3), torch.float32, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0])\nt = tensor((2,), torch.int64, [0, 1])\ny = torch.nn.functional.cross_entropy(x, t)", verdict.Exception},
		{"embedding_bag", "i = tensor((2,), torch.int64, [0, 1])\nw = tensor((2, 1), torch.float32, [0.0, 1.0])\no = tensor((3,), torch.int64, [0, 2, 1])\ny = torch.nn.functional.embedding_bag(i, w, o, mode=\"max\")",
			"i = tensor((2,), torch.int64, [0, 1])\nw = tensor((2, 1), torch.float32, [0.0, 1.0])\no = tensor((3,), torch.int64, [0, 1, 1])\ny = torch.nn.functional.embedding_bag(i, w, o, mode=\"max\")", verdict.Exception},
		{"smooth_l1_loss", "x = tensor((2,), torch.float32, [1.0, 0.5], requires_grad=True)\nt = tensor((2,), torch.float32, [0.0, 0.5])\ny = torch.nn.functional.smooth_l1_loss(x, t, beta=0.0)",
			"x = tensor((2,), torch.float32, [1.0, 0.5], requires_grad=True)\nt = tensor((2,), torch.float32, [0.0, 0.5])\ny = torch.nn.functional.smooth_l1_loss(x, t)", grad},
		{"quantile", "x = tensor((3,), torch.float32, [1.0, 1.0, 2.0], requires_grad=True)\ny = torch.quantile(x, 0.5)",
			"x = tensor((3,), torch.float32, [1.0, 3.0, 2.0], requires_grad=True)\ny = torch.quantile(x, 0.5)", grad},
		{"cosine_embedding_loss", "x = tensor((1, 5), torch.float32, uniform(0, 1, key=1))\nd = tensor((5,), torch.float32, uniform(0, 1, key=2))\nt = tensor((1,), torch.int64, [1])\ny = torch.nn.functional.cosine_embedding_loss(x, d, t)",
			"x = tensor((1, 5), torch.float32, uniform(0, 1, key=1))\nd = tensor((1, 5), torch.float32, uniform(0, 1, key=2))\nt = tensor((1,), torch.int64, [1])\ny = torch.nn.functional.cosine_embedding_loss(x, d, t)", verdict.Exception},
	} {
		for text, want := range map[string]bool{c.shows: true, c.beside: false} {
			p, err := program.Parse("case.py", program.Header+"\ncase(\"case.py::case\", seed=1)\n"+text+"\n")
			if err != nil {
				t.Fatal(err)
			}
			found := slices.ContainsFunc(slices.Concat(later, laterRefusals, earlier, earlierRefusals, trueOrders), func(f verdict.KnownFault) bool {
				return f.Target == c.target && slices.Contains(f.Kinds, c.kind) && f.When != nil && f.When(p)
			})
			if found != want {
				t.Errorf("%s is known is %t for\n%s", c.target, found, text)
			}
		}
	}
}

// TestSoftshrinkOfNaN: either side of the change of 2.9 has its row, of which one alone holds for a version.
func TestSoftshrinkOfNaN(t *testing.T) {
	p, err := program.Parse("case.py", program.Header+"\ncase(\"case.py::case\", seed=1)\nx = tensor((2,), torch.float32, [float(\"nan\"), 1.0])\ny = torch.nn.functional.softshrink(x)\n")
	if err != nil {
		t.Fatal(err)
	}
	for version, want := range map[string]string{"1.13.1": "NaN becomes 0; later it stays NaN", "2.8.0": "NaN becomes 0; later it stays NaN",
		"2.9.1": "NaN stays NaN; before, it is 0", "2.15.0": "NaN stays NaN; before, it is 0"} {
		var reasons []string
		for _, f := range Faults {
			v, err := verdict.ParseVersions(f.Reference)
			if err == nil && v.Has("torch "+version) && f.Target == "softshrink" && f.Rule == compare.NonFinite && slices.Contains(f.Kinds, verdict.Kind(backend.PartValue)) && f.When(p) {
				reasons = append(reasons, f.Reason)
			}
		}
		if !slices.Equal(reasons, []string{want}) {
			t.Errorf("%s: %q, want %q", version, reasons, want)
		}
	}
}

// TestNoRowHidesAllValues: a row without a condition would take every wrong result of an
// operator for the fault that it tells of.
func TestNoRowHidesAllValues(t *testing.T) {
	for _, f := range Faults {
		if slices.Contains(f.Kinds, values[0]) && f.When == nil && f.DType == tensor.Invalid && f.Within == 0 && f.Shows == nil && f.Gives == nil && f.Places == nil {
			t.Errorf("%s, %s: %s: any result of any call", f.Reference, f.Target, f.Reason)
		}
	}
}
