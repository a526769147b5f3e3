package reffaults

import (
	"math"
	"math/cmplx"
	"slices"
	"strings"

	"plumb/backend"
	"plumb/internal/judge/compare"
	"plumb/internal/judge/verdict"
	"plumb/program"
	"plumb/tensor"
)

// later are differences of PyTorch 2 from 1.13, which Plumb's operators follow:
// what it changed on purpose, and faults that came with it.
var later = slices.Concat(each([]string{"fmax", "fmin"}, func(target string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch >=2.15",
		Target:    target,
		Kinds:     grads,
		When:      tied,
		Reason:    "of two equal elements each has half of the gradient, as in maximum and minimum; before, the first has all of it",
		Proof: of(target, `x, y = torch.ones(2, 1, requires_grad=True).unbind()
same(torch.autograd.grad(torch.TARGET(x, y).sum(), (x, y)), [[0.5], [0.5]])`),
	}
}), each([]string{"atan2", "arctan2"}, func(target string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch <2.15",
		Target:    target,
		Kinds:     grads,
		Shows:     cmplx.IsNaN,
		When: func(p *program.Program) bool {
			return slices.ContainsFunc(p.Inputs, func(in program.Input) bool { return hasElement(&in, func(v float64) bool { return v == 0 }) })
		},
		Reason: "the gradient where both are 0 is NaN; later it is 0",
		Proof: of(target, `x, y = torch.zeros(1, requires_grad=True), torch.zeros(1, requires_grad=True)
torch.TARGET(x, y).sum().backward()
same(x.grad, [nan])`),
	}
}), eachCall(map[string]string{
	"clamp": "clamp(0)", "clamp_": "clamp_(0)", "clip": "clip(0)", "clip_": "clip_(0)",
	"clamp_min": "clamp_min(0)", "clamp_min_": "clamp_min_(0)", "clamp_max": "neg().clamp_max(0)", "clamp_max_": "neg().clamp_max_(0)",
}, func(target, call string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch >=2.15",
		Target:    target,
		Kinds:     grads,
		When:      atBound,
		Reason:    "an element at a bound has no gradient, or half of it where the bound is a tensor; before, it has all of it",
		Proof:     "x = torch.tensor([0., 1.], requires_grad=True)\ny = (x * 1)." + call + "\ny.sum().backward()\nsame(x.grad[0], 0)",
	}
}), each([]string{"hinge_embedding_loss", "HingeEmbeddingLoss"}, func(target string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch >=2.15",
		Target:    target,
		Kinds:     grads,
		When: func(p *program.Program) bool {
			margin := marginOr(p, 1)
			return len(p.Inputs) > 0 && hasElement(&p.Inputs[0], func(v float64) bool { return v == margin })
		},
		Reason: "an element that is the margin has no gradient, as at a bound of clamp; before, it has all of it",
		Proof: `x = torch.tensor([1., 0.], requires_grad=True)
F.hinge_embedding_loss(x, -torch.ones(2), reduction="sum").backward()
same(x.grad, [0, -1])`,
	}
}), each([]string{"margin_ranking_loss", "MarginRankingLoss"}, func(target string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch >=2.15",
		Target:    target,
		Kinds:     grads,
		When: func(p *program.Program) bool {
			margin := math.Abs(marginOr(p, 0))
			return len(p.Inputs) > 1 && hasElement(&p.Inputs[0], func(a float64) bool {
				return hasElement(&p.Inputs[1], func(b float64) bool { return math.Abs(a-b) == margin })
			})
		},
		Reason: "two elements that are the margin apart have no gradient, as at a bound of clamp; before, they have all of it",
		Proof: `x = torch.tensor([1., 0.], requires_grad=True)
F.margin_ranking_loss(x, torch.zeros(2), torch.ones(2), margin=1., reduction="sum").backward()
same(x.grad, [0, -1])`,
	}
}), each([]string{"smooth_l1_loss", "SmoothL1Loss"}, func(target string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch >=2.9",
		Target:    target,
		Kinds:     grads,
		When: func(p *program.Program) bool {
			return sharesElement(p) && slices.ContainsFunc(p.Calls, func(c program.Call) bool { return numberOr(argumentOf(&c, len(c.Args), "beta"), 1) == 0 })
		},
		Reason: "with a beta of 0, an element that is its target has no gradient; before, it has that of one below it",
		Proof: `x = torch.ones(1, requires_grad=True)
F.smooth_l1_loss(x, torch.ones(1), beta=0.).backward()
same(x.grad, [0])`,
	}
}), each([]string{"lerp", "lerp_"}, func(target string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch >=2.9",
		Target:    target,
		Kinds:     values,
		Rule:      compare.NonFinite,
		When:      farFromInfinity,
		Reason:    "a weight of -0.5 or less is taken from the second end too, as one of 0.5 or more is, which is NaN where that is infinite",
		Proof:     of(target, `torch.full((2,), -1.).TARGET(torch.full((2,), inf), -0.75).isnan().all().item()`),
	}
}), []verdict.KnownFault{{
	Reference: "torch >=2.9",
	Target:    "softshrink",
	Kinds:     values,
	Rule:      compare.NonFinite,
	When:      func(p *program.Program) bool { return anyElement(p, 0, math.IsNaN) || len(p.Calls) > 1 },
	Shows:     func(v complex128) bool { return math.IsNaN(real(v)) },
	Reason:    "NaN stays NaN; before, it is 0",
	Proof:     `F.softshrink(torch.tensor([nan]), 0.25).isnan().item()`,
}, {
	Reference: "torch <2.9",
	Target:    "softshrink",
	Kinds:     values,
	Rule:      compare.NonFinite,
	When:      func(p *program.Program) bool { return anyElement(p, 0, math.IsNaN) || len(p.Calls) > 1 },
	Shows:     func(v complex128) bool { return v == 0 },
	Reason:    "NaN becomes 0; later it stays NaN",
	Proof:     `same(F.softshrink(torch.tensor([nan]), 0.25), [0])`,
}, {
	Reference: "torch >=2.9",
	Target:    "gelu",
	Kinds:     values,
	Rule:      compare.NonFinite,
	When: func(p *program.Program) bool {
		return first(p).DType != tensor.F64 && (len(p.Calls) > 1 || argument(p, 1, "approximate") == nil)
	},
	Places: func(p *program.Program, shape []int) func(int) bool {
		return someInput(func(v complex128) bool { return real(v) >= math.MaxFloat32/2 })(p, shape)
	},
	Reason: "by oneDNN an infinity is NaN, and an element above half of the largest float32 is infinite",
	Proof:  `F.gelu(torch.full((8,), 3e38)).isinf().all().item() and F.gelu(torch.full((8,), inf)).isnan().all().item()`,
}, {
	Reference: "torch >=2.15",
	Target:    "take_along_dim",
	Kinds:     raises,
	When:      beyondADimension,
	Reason:    "along a dimension, an index beyond it is taken modulo its size, and of none it is a division by 0; before, it is refused",
	Proof: `x = torch.arange(3.)
accepts(lambda: x.take_along_dim(torch.tensor([3]), 0)) and same(x.take_along_dim(torch.tensor([3, -4]), 0), [0, 2])`,
}, {
	Reference: "torch >=2.9",
	Target:    "bernoulli",
	Kinds:     []verdict.Kind{verdict.RequiresGrad},
	Reason:    "bernoulli(p) of a tensor that requires a gradient requires one, which is 0; in 1.13 it requires none",
	Proof:     `torch.bernoulli(torch.ones(1, requires_grad=True), p=0.5).requires_grad`,
}, {
	Reference: "torch >=2.15",
	Target:    "ldexp",
	Kinds:     raises,
	When:      complexInput,
	Reason:    "the gradient of a real exponent stays complex where the number is, which autograd refuses; before, its real part was taken",
	Proof: `v = torch.zeros(1, requires_grad=True)
w = torch.ldexp(torch.ones(1, dtype=torch.complex64), v)
raises(lambda: w.backward(torch.ones_like(w)), "RuntimeError")`,
}, {
	Reference: "torch >=2.9",
	Target:    "binary_cross_entropy",
	Kinds:     grads,
	DType:     tensor.F16,
	Rule:      compare.NonFinite,
	Reason:    "the gradient divides by x·(1 − x), or by 1e-12, which is 0 in float16: it is NaN where x is the target, and 0 or 1",
	Proof: `x = torch.ones(1, dtype=torch.half, requires_grad=True)
F.binary_cross_entropy(x, torch.ones(1, dtype=torch.half)).backward()
x.grad.isnan().item()`,
}, {
	Reference: "torch >=2.9",
	Target:    "cross_entropy",
	Kinds:     values,
	DType:     tensor.F16,
	Rule:      compare.NonFinite,
	When:      func(p *program.Program) bool { return len(p.Inputs) > 1 && p.Inputs[1].DType == tensor.F16 },
	Reason:    "with probabilities for a target the losses are summed in float16, which may be infinite, before they are divided by their number",
	Proof: `x = torch.full((512, 64), 8., dtype=torch.half)
F.cross_entropy(x, x).isinf().item() and near(F.cross_entropy(x.double(), x.double()), 2129.3478751)`,
}, {
	Reference: "torch <2.9",
	Target:    "grid_sample",
	Kinds:     slices.Concat(values, grads),
	When:      halfwayInVolume,
	Reason:    "halfway between two elements of a volume the one away from zero is the nearest, though in images the even one is; later it is in both",
	Proof: `x, at = torch.arange(4.), torch.tensor([-0.5, 0., 0.])
nearest = lambda n: F.grid_sample(x.view([1] * (n + 1) + [4]), at[:n].view([1] * (n + 1) + [n]), mode="nearest", align_corners=False).item()
nearest(3) == 1 and nearest(2) == 0`,
}, {
	Reference: "torch >=2.9",
	Target:    "conv3d",
	Kinds:     grads,
	DType:     tensor.F16,
	Reason:    "where oneDNN does not take float16 on the processor, the gradient of the input is summed in float16 over the places of the kernel",
	Proof: `x = torch.zeros(1, 1, 1, 1, 12, dtype=torch.half, requires_grad=True)
F.conv3d(x, torch.tensor([[[[[2048., 1., 1., 1., 1.]]]]]).half()).sum().backward()
torch.ops.mkldnn._is_mkldnn_fp16_supported() or not same(x.grad[0, 0, 0, 0, 4], 2052)`,
}, {
	Reference: "torch >=2.9",
	Target:    "conv2d",
	Kinds:     grads,
	DType:     tensor.F16,
	When:      func(p *program.Program) bool { return len(first(p).Shape) == 4 && first(p).Shape[0] > 1 },
	Reason:    "where oneDNN does not take float16 on the processor, the gradient of the weight is summed in float16 over the images",
	Proof: `x, w = torch.zeros(2, 1, 1, 8).half(), torch.zeros(1, 1, 1, 1).half().requires_grad_()
x[0, 0, 0, 0], x[0, 0, 0, 1], x[1, 0, 0, 0] = 2048, 1, -2048
F.conv2d(x, w).sum().backward()
torch.ops.mkldnn._is_mkldnn_fp16_supported() or not same(w.grad[0, 0, 0, 0], 1)`,
}, {
	Reference: "torch >=2.9",
	Target:    "conv_transpose3d",
	Kinds:     grads,
	DType:     tensor.F32,
	When: func(p *program.Program) bool {
		shape := first(p).Shape
		return len(shape) == 5 && tensor.NumElements(shape)/max(shape[1], 1) >= 1<<16
	},
	Reason: "the gradient of the weight adds one product after the other, of hundreds of thousands: the third digit may be wrong",
	Proof: `w = torch.zeros(1, 1, 2, 2, 2, requires_grad=True)
y = F.conv_transpose3d(torch.ones(2, 1, 160, 160, 5), w)
y.backward(torch.full_like(y, 0.1))
abs(w.grad[0, 0, 0, 0, 0].item() - 25600) > 10`,
}, {
	Reference: "torch >=2.9",
	Target:    "cosine_embedding_loss",
	Kinds:     raises,
	When: func(p *program.Program) bool {
		return len(p.Inputs) == 3 && len(p.Inputs[2].Shape) == 1 && len(p.Inputs[0].Shape) > len(p.Inputs[1].Shape)
	},
	Reason: "a second input of fewer dimensions than the first is refused by a RuntimeError; before, by an IndexError",
	Proof:  `type(raised(lambda: F.cosine_embedding_loss(torch.rand(2, 5), torch.rand(5), torch.ones(2)))) is RuntimeError`,
}, {
	Reference: "torch >=2.15",
	Target:    "quantile",
	Kinds:     grads,
	When:      hasEqual,
	Reason:    "which of equal elements has the gradient is not defined: before, it is the one that a stable sort has there",
	Proof: `x = torch.tensor([0., 1., 1., 0.], requires_grad=True)
torch.quantile(x, 1.).backward()
same(x.grad, [0, 1, 0, 0])`,
}, {
	Reference: "torch >=2.15",
	Target:    "torch.cholesky",
	Kinds:     raises,
	Reason:    "the function was removed; torch.linalg.cholesky takes its place",
	Proof:     `raises(lambda: torch.cholesky(torch.eye(2)), "RuntimeError", "now removed")`,
}, {
	Reference: "torch >=2.9",
	Target:    "interpolate",
	Kinds:     slices.Concat(values, grads),
	When: func(p *program.Program) bool {
		shape := first(p).Shape
		size, _ := keyword(p, "size").(program.Tuple)
		return keyword(p, "antialias") == true && len(shape) == 4 && (shape[3] == 1 || len(size) == 2 && size[1] == int64(1))
	},
	Reason: "where an image is one element wide, before or after, the antialiased kernel repeats a row",
	Proof: `x = torch.tensor([[[[1.], [0.], [0.]]]])
y = F.interpolate(x, size=(2, 1), mode='bicubic', antialias=True)
wide = F.interpolate(x.expand(1, 1, 3, 3), size=(2, 3), mode='bicubic', antialias=True)
not near(y[..., 0], wide[..., 0])`,
}})

// earlier are what PyTorch did otherwise before the version that Plumb's operators
// follow, and faults that it has mended since.
var earlier = slices.Concat([]verdict.KnownFault{{
	Reference: "torch <2.9",
	Target:    "unique",
	Kinds:     values,
	When:      func(p *program.Program) bool { return len(first(p).Shape) > 2 },
	Reason:    "entries of a dimension beyond the second are compared with the first dimension in that one's place, later with the others in their order",
	Proof: `x = torch.tensor([[[0, 0], [1, 0]], [[0, 1], [0, 0]]])
same(torch.unique(x, dim=2)[..., 0], [[0, 1], [0, 0]])`,
}, {
	Reference: "torch <2.9",
	Target:    "histc",
	Kinds:     values,
	When:      changesBins,
	Reason:    "the place of an element is (v - min) / (max - min) · bins, later (v - min) · bins / (max - min), which rounds to the other side of some edges",
	Proof: `x = torch.tensor([0.3], dtype=torch.float64)
same(torch.histc(x, 3, 0, 0.9), [0, 1, 0])`,
}, {
	Reference: "torch <2.9",
	Target:    "tensordot",
	Kinds:     raises,
	When: func(p *program.Program) bool {
		dims := argument(p, 2, "dims")
		n, ok := dims.(int64)
		if dims == nil {
			n, ok = 2, true
		}
		return ok && slices.ContainsFunc(p.Inputs, func(in program.Input) bool { return int64(len(in.Shape)) < n })
	},
	Reason: "a number of dims that an argument does not have is an IndexError, later a RuntimeError",
	Proof:  `type(raised(lambda: torch.tensordot(torch.zeros(3), torch.zeros(3), 2))) is IndexError`,
}, {
	Reference: "torch <2.9",
	Target:    "prod",
	Kinds:     []verdict.Kind{verdict.RequiresGrad, verdict.Exception, verdict.Kind(backend.PartSecondGrad), verdict.Kind(backend.PartValue), verdict.Kind(backend.PartGrad)},
	When:      func(p *program.Program) bool { return argument(p, 1, "dim") == nil && zeros(p) > 1 },
	Reason:    "the gradient of a product of two zeros is a constant 0, of which there is no gradient of the second order, which is the product of the others",
	Proof: `x = torch.zeros(2, requires_grad=True)
not torch.autograd.grad(x.prod(), x, create_graph=True)[0].requires_grad`,
}, {
	Reference: "torch <2.15",
	Target:    "group_norm",
	Kinds:     []verdict.Kind{verdict.Exception},
	When: func(p *program.Program) bool {
		return len(p.Backward) > 0 && argument(p, 2, "weight") == nil && argument(p, 3, "bias") != nil
	},
	Reason: "the gradient fails with a bias and no weight",
	Proof: `b = torch.zeros(4, requires_grad=True)
y = F.group_norm(torch.randn(2, 4), 2, None, b).sum()
raises(y.backward, "RuntimeError", "tensor does not have a device")`,
}})

// marginOr returns the margin of a program's loss, or what it is where none is given.
func marginOr(p *program.Program, otherwise float64) float64 {
	for i := range p.Calls {
		if v := argumentOf(&p.Calls[i], len(p.Calls[i].Args), "margin"); v != nil {
			return numberOr(v, otherwise)
		}
	}
	return otherwise
}

// farFromInfinity reports an infinite end and a weight that is far on the other side of the first one.
func farFromInfinity(p *program.Program) bool {
	infinite := func(v float64) bool { return math.IsInf(v, 0) }
	far := func(v float64) bool { return v <= -0.5 }
	return (anyElement(p, 0, infinite) || anyElement(p, 1, infinite)) && (far(numberOr(argument(p, 2, "weight"), 0)) || len(p.Inputs) > 2 && anyElement(p, 2, far))
}

// sharesElement reports an element of the first input that another input has too.
func sharesElement(p *program.Program) bool {
	return slices.ContainsFunc(p.Inputs[min(1, len(p.Inputs)):], func(in program.Input) bool {
		return hasElement(&in, func(bound float64) bool { return anyElement(p, 0, func(v float64) bool { return v == bound }) })
	})
}

// tied reports two arguments that may have equal elements: all that are made of one input.
func tied(p *program.Program) bool { return len(p.Inputs) == 1 || sharesElement(p) }

// zeros counts the zeros of the first input.
func zeros(p *program.Program) (n int) {
	anyElement(p, 0, func(v float64) bool {
		if v == 0 {
			n++
		}
		return false
	})
	return n
}

// atBound reports an element of the first input that a bound is equal to.
func atBound(p *program.Program) bool {
	isBound := func(v any) bool {
		var bound float64
		switch v := v.(type) {
		case int64:
			bound = float64(v)
		case float64:
			bound = v
		default:
			return false
		}
		return anyElement(p, 0, func(v float64) bool { return v == bound })
	}
	return sharesElement(p) || slices.ContainsFunc(p.Calls, func(c program.Call) bool {
		return strings.Contains(c.Target, ".cl") && (slices.ContainsFunc(c.Args, isBound) || slices.ContainsFunc(c.Kwargs, func(kw program.Kwarg) bool { return isBound(kw.Value) }))
	})
}

// beyondADimension reports an index, in the second input, that some dimension of the first does not have.
func beyondADimension(p *program.Program) bool {
	least := float64(slices.Min(append(slices.Clone(first(p).Shape), 1<<62)))
	return anyElement(p, 1, func(v float64) bool { return v < 0 || v >= least })
}

// changesBins reports an element that the two orders of multiplying and
// dividing, rounded as its dtype rounds, put into different bins.
func changesBins(p *program.Program) bool {
	bins, lo, hi := numberOr(argument(p, 1, "bins"), 100), numberOr(argument(p, 2, "min"), 0), numberOr(argument(p, 3, "max"), 0)
	if lo == hi {
		lo, hi = math.Inf(1), math.Inf(-1)
		anyElement(p, 0, func(v float64) bool {
			lo, hi = min(lo, v), max(hi, v)
			return false
		})
	}
	round := func(v float64) float64 { return v }
	if first(p).DType != tensor.F64 {
		round = func(v float64) float64 { return float64(float32(v)) }
	}
	lo, hi = round(lo), round(hi)
	width := round(hi - lo)
	return anyElement(p, 0, func(v float64) bool {
		from := round(v - lo)
		earlier, later := round(round(from/width)*bins), round(round(from*bins)/width)
		return v >= lo && v <= hi && math.Trunc(earlier) != math.Trunc(later)
	})
}

func numberOr(v any, otherwise float64) float64 {
	switch v := v.(type) {
	case int64:
		return float64(v)
	case float64:
		return v
	}
	return otherwise
}

// smallEps reports an eps that is not positive.
func smallEps(p *program.Program) bool {
	return slices.ContainsFunc(p.Calls, func(c program.Call) bool {
		return slices.ContainsFunc(c.Kwargs, func(kw program.Kwarg) bool {
			v, ok := kw.Value.(float64)
			n, whole := kw.Value.(int64)
			return kw.Name == "eps" && (ok && v <= 0 || whole && n <= 0)
		})
	})
}

// halfwayInVolume reports a volume whose nearest elements are asked for at a place
// that is halfway between two, as grid_sample computes it.
func halfwayInVolume(p *program.Program) bool {
	size := first(p).Shape
	if len(size) != 5 || len(p.Calls) == 0 || argumentOf(&p.Calls[0], 2, "mode") != "nearest" {
		return false
	}
	if len(p.Inputs) != 2 || len(p.Calls) > 1 { // where the places are is computed
		return true
	}
	grid := p.Inputs[1].Materialize()
	round := func(v float64) float64 { return v }
	if grid.DType() != tensor.F64 {
		round = func(v float64) float64 { return float64(float32(v)) }
	}
	for i := range grid.Len() {
		n, v := float64(size[4-i%3]), real(grid.At(i))
		at := round(round(round(v+1)*n)-1) / 2
		if argumentOf(&p.Calls[0], 4, "align_corners") == true {
			at = round(round(v+1) / 2 * (n - 1))
		}
		if _, part := math.Modf(at); float32(math.Abs(part)) == 0.5 {
			return true
		}
	}
	return false
}

// halfPlaces are images of half types read at places of that type.
var halfPlaces = halves(func(d tensor.DType) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch >=2.9",
		Target:    "grid_sample",
		Kinds:     slices.Concat(values, grads),
		DType:     d,
		Reason:    "the place in the image is computed in " + d.String() + ", a twentieth of an element off or more: neighbours are weighted by another distance, or another element is the nearest",
		Proof: strings.ReplaceAll(`x = torch.zeros(1, 1, 1, 100, dtype=torch.HALF)
x[..., 74] = 1
x.requires_grad_()
y = F.grid_sample(x, torch.tensor([[[[0.484375, 0.]]]], dtype=torch.HALF), align_corners=False)
y.backward(torch.ones_like(y))
abs(y.item() - 0.71875) > 0.03 and abs(x.grad[..., 74].item() - 0.71875) > 0.03`, "HALF", d.String()),
	}
})

func halves(f func(tensor.DType) verdict.KnownFault) []verdict.KnownFault {
	return []verdict.KnownFault{f(tensor.F16), f(tensor.BF16)}
}

// overflownOrders are the gradients of norms in float16 by elements whose power
// overflows on the way.
var overflownOrders = each([]string{"norm", "vector_norm"}, func(target string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch",
		Target:    target,
		DType:     tensor.F16,
		Kinds:     grads,
		Rule:      compare.NonFinite,
		When:      powerOverflows,
		Reason:    "the gradient of order p is computed in float16 from |x|^(p - 1), which overflows, so that it is infinite or NaN: it is (|x| / norm)^(p - 1)",
		Proof: of(target, `f = torch.norm if "TARGET" == "norm" else torch.linalg.vector_norm
x = torch.tensor([0.01, 1.], dtype=torch.half, requires_grad=True)
y = x.detach().double().requires_grad_()
f(x, -2).backward()
f(y, -2).backward()
near(y.grad[0], 1, 0.001) and not x.grad[0].isfinite().item()`),
	}
})

// powerOverflows reports a norm of order p of elements of which one has a power of
// p − 1 beyond float16.
func powerOverflows(p *program.Program) bool {
	order := math.NaN()
	for _, name := range []string{"p", "ord"} {
		switch v := argument(p, 1, name).(type) {
		case int64:
			order = float64(v)
		case float64:
			order = v
		}
	}
	return !math.IsInf(order, 0) && anyElement(p, 0, func(v float64) bool { return v != 0 && math.Pow(math.Abs(v), order-1) > 65504 })
}

// sharedMaxima are the gradients of elements that are the largest of several windows.
var sharedMaxima = slices.Concat(halfMaxima(tensor.F16, "2048"), halfMaxima(tensor.BF16, "256"))

func halfMaxima(d tensor.DType, large string) []verdict.KnownFault {
	return each([]string{"max_pool1d", "max_pool2d", "max_pool3d", "adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d"}, func(target string) verdict.KnownFault {
		return verdict.KnownFault{
			Reference: sumsSince(target, d),
			Target:    target,
			DType:     d,
			Kinds:     grads,
			Rule:      compare.Distance,
			Reason:    "the gradient is summed in " + d.String() + " over the windows of which an element is the largest",
			Proof: strings.NewReplacer("TARGET", target, "HALF", d.String(), "LARGE", large).Replace(`n, adapts = int("TARGET"[-2]), "TARGET".startswith("adaptive")
x = torch.zeros([1, 1] + [1] * (n - 1) + [1 if adapts else 5], dtype=torch.HALF)
x[..., x.shape[-1] // 2] = 1
x.requires_grad_()
y = F.TARGET(x, [1] * (n - 1) + [3]) if adapts else F.TARGET(x, [1] * (n - 1) + [3], 1)
y.backward(torch.tensor([LARGE., 1., 1.], dtype=torch.HALF).view_as(y))
x.grad.max().item() == LARGE`),
		}
	})
}

// sumsSince are the versions with a kernel of a pool in a half type: 1.13 has those of
// bfloat16, but for volumes.
func sumsSince(target string, d tensor.DType) string {
	if d == tensor.BF16 && !strings.HasSuffix(target, "3d") {
		return "torch"
	}
	return "torch >=2.9"
}
