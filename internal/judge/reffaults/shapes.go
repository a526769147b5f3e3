package reffaults

import (
	"errors"
	"slices"
	"strings"

	"plumb/backend"
	"plumb/internal/judge/verdict"
	"plumb/op"
	"plumb/ops"
	"plumb/program"
	"plumb/tensor"
)

var (
	raises = []verdict.Kind{verdict.Exception}
	values = []verdict.Kind{verdict.Kind(backend.PartValue)}
	grads  = []verdict.Kind{verdict.Kind(backend.PartGrad)}
)

// shapeFaults are the faults around shapes, indices, products and windows.
var shapeFaults = slices.Concat(untypedShapes, equals, unordered, leniencies, scalarSorts, emptyKinds, emptyGradients, emptyOddities, meanPools, unpools, nearestScales, idle, lateDTypes, emptyGrads, integrals, infiniteEnds, infiniteQuantiles, unwritten, []verdict.KnownFault{{
	Reference: "torch <2.9",
	Target:    "masked_select",
	Kinds:     grads,
	When:      func(p *program.Program) bool { return len(p.Inputs) > 0 && first(p).Strides != nil },
	Reason:    "the gradient of masked_select is laid out in the order of memory, not of elements",
	Proof: `x = torch.arange(6.).reshape(3, 2).t().detach().requires_grad_()
m = torch.tensor([[True, False, True], [True, True, False]])
torch.masked_select(x, m).backward(torch.tensor([1., 2, 3, 4]))
not same(x.grad, [[1, 0, 2], [3, 4, 0]])`,
}, {
	Reference: "torch <2.9",
	Target:    "masked_scatter_",
	Kinds:     values,
	When: func(p *program.Program) bool {
		return len(p.Inputs) > 0 && permuted(first(p)) && slices.ContainsFunc(p.Calls, func(c program.Call) bool { return strings.HasSuffix(c.Target, ".masked_scatter_") })
	},
	Reason: "the elements of source are placed in the order of memory, not of elements",
	Proof: `x = torch.zeros(3, 2).t()
x.masked_scatter_(torch.ones(2, 3, dtype=torch.bool), torch.arange(1., 7))
not same(x, [[1, 2, 3], [4, 5, 6]])`,
}, {
	Reference: "torch",
	Target:    "fill_diagonal_",
	Kinds:     []verdict.Kind{verdict.Exception, verdict.Kind(backend.PartValue)},
	When:      func(p *program.Program) bool { return len(p.Inputs) > 0 && apartRows(first(p)) && wraps(p) },
	Reason:    "wrap takes the rows to follow one another in memory: of other layouts it fills other elements, or raises",
	Proof: `x = torch.zeros(7, 6)[:, :2]
x.fill_diagonal_(1, True)
not same(x, [[1, 0], [0, 1], [0, 0], [1, 0], [0, 1], [0, 0], [1, 0]])`,
}, {
	Reference: "torch <2.9",
	Target:    "baddbmm",
	Kinds:     values,
	When:      func(p *program.Program) bool { return len(p.Calls) == 1 && keyword(p, "beta") == int64(0) },
	Reason:    "with beta=0 the result is multiplied by 0 before it is written: NaN and infinities that happen to lie in fresh memory stay",
	Proof: `one, a, b = torch.tensor(1.), torch.ones(3, 4, 3), torch.ones(3, 3, 4)
def spoiled():
    freed = [torch.full((3, 4, 4), nan) for _ in range(8)]
    del freed
    return torch.baddbmm(one, a, b, beta=0).isnan().any().item()
any(spoiled() for _ in range(500))`,
}, {
	Reference: "torch",
	Target:    "conv2d",
	Kinds:     grads,
	When: func(p *program.Program) bool {
		return severalLayouts(p) && (first(p).DType == tensor.F64 || first(p).DType == tensor.C128)
	},
	Reason: "the weight gradient of a grouped convolution in float64 or complex128, input and weight in channels-last, takes the gradient of one group for that of another",
	Proof: `def wrong(dtype):
    x, w = torch.randn(4, 4, 4, dtype=dtype).as_strided((4, 4, 4), (1, 16, 4)), torch.randn(32, dtype=dtype).as_strided((4, 2, 2, 2), (8, 1, 4, 2))
    def by_weight(x, w):
        w = w.detach().requires_grad_()
        y = F.conv2d(x, w, None, 1, 0, 1, 2)
        y.backward(torch.arange(float(y.numel())).to(dtype).reshape(y.shape) * (1 if dtype is torch.float64 else 1j))
        return w.grad
    return (by_weight(x, w) - by_weight(x.contiguous(), w.contiguous())).abs().max() > 1e-9
all(map(wrong, (torch.float64, torch.complex128)))`,
}, {
	Reference: "torch",
	Target:    "pixel_unshuffle",
	Kinds:     []verdict.Kind{verdict.Kind("shape")},
	When:      emptyInput,
	Reason:    "an input without elements is returned in its own shape",
	Proof:     `list(F.pixel_unshuffle(torch.zeros(2, 2, 4, 0), 2).shape) != [2, 8, 2, 0]`,
}, {
	Reference: "torch",
	Target:    "pad",
	Kinds:     raises,
	When:      wrapsNothing,
	Reason:    "a circular pad of nothing, all entries being cropped, gives fresh memory",
	Proof:     `accepts(lambda: F.pad(torch.ones(1, 1, 2), (-3, 2), mode='circular'))`,
}, {
	Reference: "torch",
	Target:    "addmv",
	Kinds:     []verdict.Kind{verdict.Kind("shape")},
	When: func(p *program.Program) bool {
		return len(p.Inputs) > 1 && len(p.Inputs[1].Shape) == 2 && slices.Contains(p.Inputs[1].Shape, 0)
	},
	Reason: "a matrix without elements gives a result of the shape of input",
	Proof:  `list(torch.addmv(torch.zeros(1), torch.zeros(0, 1), torch.zeros(1)).shape) != [0]`,
}, {
	Reference: "torch",
	Target:    "linspace",
	Kinds:     values,
	When: func(p *program.Program) bool {
		d, ok := keyword(p, "dtype").(tensor.DType)
		return ok && !d.IsDifferentiable()
	},
	Reason: "integers are the truncation of end - step*i by one fused multiplication and addition, which falls short of whole numbers",
	Proof:  `torch.linspace(-3., 1., 7, dtype=torch.int32)[3].item() != -1`,
}})

// apartRows reports a matrix whose rows do not follow one another in memory.
func apartRows(in program.Input) bool {
	return len(in.Shape) == 2 && in.Strides != nil && in.Strides[0] != in.Shape[1]*in.Strides[1]
}

// wraps reports whether a call fills a diagonal that goes on in a tall matrix.
func wraps(p *program.Program) bool {
	return slices.ContainsFunc(p.Calls, func(c program.Call) bool {
		return strings.HasSuffix(c.Target, ".fill_diagonal_") && (slices.Contains(c.Args, any(true)) || slices.ContainsFunc(c.Kwargs, func(kw program.Kwarg) bool { return kw.Name == "wrap" && kw.Value == true }))
	})
}

// viewed: kron lays its result out by view, which some layouts of the inputs
// do not allow.
var viewed = []verdict.KnownFault{{
	Reference: "torch",
	Target:    "kron",
	Kinds:     raises,
	When: func(p *program.Program) bool {
		return slices.ContainsFunc(p.Inputs, func(in program.Input) bool { return in.Strides != nil })
	},
	Reason: "kron takes a view of a product in another memory order and raises",
	Proof:  `raises(lambda: torch.kron(torch.ones(2, 3, 2).transpose(0, 2), torch.ones(3, 2, 2).transpose(0, 1)), "RuntimeError", "view size is not compatible")`,
}}

// untypedShapes are Python functions of PyTorch, and torch.tensor, which do not
// check the types of their arguments as a signature does.
var untypedShapes = eachCall(map[string]string{
	"embedding":    "F.embedding(torch.zeros(1).long(), torch.ones(1, 1), 1.5)",
	"max_unpool1d": "F.max_unpool1d(torch.ones(1, 1, 1), torch.zeros(1, 1, 1).long(), True)",
	"max_unpool2d": "F.max_unpool2d(torch.ones(1, 1, 1, 1), torch.zeros(1, 1, 1, 1).long(), True)",
	"max_unpool3d": "F.max_unpool3d(torch.ones(1, 1, 1, 1, 1), torch.zeros(1, 1, 1, 1, 1).long(), 1, output_size={})",
	"interpolate":  "F.interpolate(torch.ones(1, 1, 2), 3, mode=True)",
	"upsample":     "F.upsample(torch.ones(1, 1, 2), 3, mode=True)",
	"grid_sample":  "F.grid_sample(torch.ones(1, 1, 2, 2), torch.ones(1, 1, 1, 2), True)",
	"affine_grid":  "F.affine_grid(torch.ones(1, 2, 3), 'a')",
	"lp_pool1d":    "F.lp_pool1d(torch.ones(1, 1, 2), True, 2)",
	"lp_pool2d":    "F.lp_pool2d(torch.ones(1, 1, 2, 2), True, 2)",
	"tensor":       "torch.tensor(torch.float32)",
}, func(target, call string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch",
		Target:    target,
		Kinds:     raises,
		When:      func(p *program.Program) bool { return illegal(p) && unbound(p) },
		Reason:    "the function does not check the types of its arguments: whether it raises, and what, depends on how far it comes with them",
		Proof:     "e = raised(lambda: " + call + ")\ntype(e) is not TypeError",
	}
})

// equals are operators that name the position of one of equal elements, of
// which the documentation says that any may be named.
var equals = eachCall(map[string]string{
	"topk":     "not same(torch.zeros(4, dtype=torch.int32).topk(4).indices, [0, 1, 2, 3])",
	"kthvalue": "any(torch.zeros(n, dtype=torch.int32).kthvalue(k).indices.item() != k - 1 for n in range(2, 40) for k in range(1, n))",
}, func(target, call string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch",
		Target:    target,
		Kinds:     values,
		When:      func(p *program.Program) bool { return hasEqual(p) },
		Reason:    "which of equal elements is named is not defined: the documentation of kthvalue says that it may be any, and that of topk nothing",
		Proof:     call,
	}
})

// unordered are sorts that do not promise the order of equal elements.
var unordered = each([]string{"argsort", "sort"}, func(target string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch",
		Target:    target,
		Kinds:     values,
		When:      func(p *program.Program) bool { return !stable(p) && hasEqual(p) },
		Reason:    "which of equal elements comes first is not defined: the documentation of torch.sort promises their order for stable=True only",
		Proof: of(target, `def misplaced(n):
    x = (torch.arange(n) % 3).half()
    i = x.argsort() if "TARGET" == "argsort" else x.sort().indices
    return not same(i, sorted(range(n), key=lambda j: j % 3))
any(misplaced(n) for n in range(2, 300))`),
	}
})

// stable reports whether a call of the program asks for stable=True.
func stable(p *program.Program) bool {
	return slices.ContainsFunc(p.Calls, func(c program.Call) bool {
		return slices.Contains(c.Kwargs, program.Kwarg{Name: "stable", Value: true})
	})
}

// idle are operators that ask for the dtype in a kernel, which a call with
// nothing to compute does not reach.
var idle = eachCall(map[string]string{
	"argmax": "x.argmax(-1)", "argmin": "x.argmin(-1)", "median": "x.median()", "nanmedian": "x.nanmedian()", "mode": "x.mode(-1)",
	"cummax": "x.cummax(-1)", "cummin": "x.cummin(-1)", "sort": "x.sort()", "argsort": "x.argsort()", "msort": "x.msort()",
	"topk": "x.topk(min(x.numel(), 1))", "kthvalue": "x.kthvalue(1)", "searchsorted": "torch.searchsorted(x, x)", "bucketize": "torch.bucketize(x, x)",
	"det": "torch.det(x)", "linalg_det": "torch.linalg.det(x)",
	"solve": "torch.linalg.solve(x, x)", "cholesky": "torch.linalg.cholesky(x)", "multi_margin_loss": "F.multi_margin_loss(x[..., None].expand(*x.shape, 3), torch.zeros(x.shape).long())",
	"multilabel_margin_loss": "F.multilabel_margin_loss(x[..., None].expand(*x.shape, 3), torch.zeros(*x.shape, 3).long())", "cov": "x.cov()", "corrcoef": "x.corrcoef()",
}, func(target, call string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: before("2.9", "argmax argmin argsort corrcoef cov msort sort topk", target),
		Target:    target,
		Kinds:     raises,
		When:      func(p *program.Program) bool { return nothingToDo(p) && refusesDType(p) },
		Reason:    "the dtype is asked for by a kernel that a tensor without elements, a scalar, or rows of one element do not reach",
		Proof:     idleOver(call),
	}
})

// lateDTypes are operators that ask for the dimension before the dtype.
var lateDTypes = eachCall(map[string]string{"logcumsumexp": "x.logcumsumexp(5)", "nansum": "x.nansum(5)", "cross": "torch.cross(x, x, 5)"}, func(target, call string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch",
		Target:    target,
		Kinds:     raises,
		When:      func(p *program.Program) bool { return nothingToDo(p) && refusesDType(p) },
		Reason:    "the dtype is asked for after the dimension",
		Proof:     "x = torch.zeros(3, dtype=torch.bool)\ntype(raised(lambda: " + call + ")) is IndexError",
	}
})

// idleOver is a proof that there is a dtype which a call of x refuses where there
// is something to do, and takes where there is not.
func idleOver(call string) string {
	return `f = lambda x: ` + call + `
takes = lambda dtype, *shape: accepts(lambda: f(torch.zeros(shape, dtype=dtype)))
dtypes = torch.bool, torch.int8, torch.half, torch.bfloat16, torch.complex64
idle = lambda d: takes(d) or takes(d, 0) or takes(d, 0, 0) or takes(d, 1) or takes(d, 2, 1)
any(idle(d) and not takes(d, 2) and not takes(d, 2, 2) for d in dtypes)`
}

// nothingToDo reports an input without elements, of no dimensions, or with
// rows of one element.
func nothingToDo(p *program.Program) bool {
	if len(p.Inputs) == 0 {
		return false
	}
	shape := first(p).Shape
	return len(shape) == 0 || slices.Contains(shape, 0) || slices.Contains(shape, 1)
}

// refusesDType reports a first call that Plumb refuses for a dtype.
func refusesDType(p *program.Program) bool {
	inputs := map[program.Ref]any{}
	for i := range p.Inputs {
		s := p.Inputs[i].Symbol()
		inputs[s.Ref] = s
	}
	args, kwargs, err := p.Calls[0].OpArgs(func(r program.Ref) (any, error) { return inputs[r], nil })
	if err != nil {
		return false
	}
	call, err := program.Resolve(ops.Table(), p.Calls[0].Target, args, kwargs)
	if err == nil {
		_, err = call.Infer()
	}
	return err != nil && strings.Contains(err.Error(), "not implemented for")
}

// emptyGrads are gradients of tensors without elements.
var emptyGrads = slices.Concat(each([]string{"det", "linalg.det"}, func(target string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch <2.15",
		Target:    target,
		Kinds:     []verdict.Kind{verdict.Kind("structure")},
		When:      emptyInput,
		Reason:    "a tensor without elements is left without a gradient",
		Proof: of(target, `x = torch.zeros(0, 5, 5, requires_grad=True)
torch.TARGET(x).sum().backward()
x.grad is None`),
	}
}), []verdict.KnownFault{{
	Reference: "torch <2.15",
	Target:    "group_norm",
	Kinds:     grads,
	When:      emptyInput,
	Reason:    "the gradient of weight, a sum of no terms, is NaN; 2.15 refuses images without elements",
	Proof: `w = torch.ones(6, requires_grad=True)
backward = lambda: torch.group_norm(torch.zeros(2, 6, 0, 3), 2, w).sum().backward()
accepts(backward) and not same(w.grad, [0] * 6)`,
}, {
	Reference: "torch",
	Target:    "block_diag",
	Kinds:     grads,
	When: func(p *program.Program) bool {
		return slices.ContainsFunc(p.Inputs, func(in program.Input) bool { return len(in.Shape) == 1 && in.Shape[0] == 0 })
	},
	Reason: "the gradient passes over the row that a vector without elements makes, and so takes the wrong rows for those behind it",
	Proof: `x = torch.ones(1, 2, requires_grad=True)
y = torch.block_diag(torch.zeros(0, requires_grad=True), x)
y.backward(torch.tensor([[1., 2], [3, 4]]))
not same(x.grad, [[3, 4]])`,
}, {
	Reference: "torch",
	Target:    "nanquantile",
	Kinds:     grads,
	When:      func(p *program.Program) bool { return hasEqual(p) },
	Reason:    "which of equal elements has the gradient is not defined: nanquantile sorts, and the documentation of torch.sort promises their order for stable=True only",
	Proof: `def misplaced(n):
    x = (torch.arange(n) % 3).float().requires_grad_()
    torch.nanquantile(x, 0.).backward()
    return x.grad[0].item() != 1
any(misplaced(n) for n in range(2, 300))`,
}, {
	Reference: "torch <2.9",
	Target:    "mean",
	Kinds:     values,
	When: func(p *program.Program) bool {
		in := first(p)
		return in.DType == tensor.F16 && tensor.NumElements(in.Shape) >= 65520
	},
	Reason: "the sum is divided by the number of elements in float16, which is infinite from 65520 on",
	Proof:  `torch.full((65536,), 2.0**-12, dtype=torch.half).mean().item() != 2.0**-12`,
}})

// unwritten are losses that leave the sum over no samples as they found it.
var unwritten = eachCall(map[string]string{
	"multi_margin_loss":      "multi_margin_loss(torch.zeros(0, 3), torch.zeros(0).long(), reduction='sum')",
	"multilabel_margin_loss": "multilabel_margin_loss(torch.zeros(0, 3), torch.zeros(0, 3).long(), reduction='sum')",
}, func(target, call string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch",
		Target:    target,
		Kinds:     values,
		When:      emptyInput,
		Reason:    "of no samples nothing is written into the result, which is what lay in fresh memory",
		Proof: `def of_none():
    x = torch.full((1,), 7.)
    del x
    return F.` + call + `.item()
any(of_none() != 0 for _ in range(300))`,
	}
})

func emptyInput(p *program.Program) bool {
	return len(p.Inputs) > 0 && slices.Contains(first(p).Shape, 0)
}

// biased is a proof that a convolution takes a bias of another dtype by one way
// and refuses it by another.
const biased = `n = int("TARGET"[-2])
w = torch.ones([2, 2] + [2] * n)
f = lambda *shape: F.TARGET(torch.ones(shape), w, torch.tensor([3, 3]), padding='same')
accepts(lambda: f(1, 2, *[5] * n)) and not accepts(lambda: f(4, 2, *[9] * n))`

// leniencies are calls that PyTorch accepts by oversight.
var leniencies = []verdict.KnownFault{
	lenientIf("index_add", misfitSource, "shapes of source are compared slice by slice, by broadcasting, and not at all for an empty index",
		`accepts(lambda: torch.index_add(torch.zeros(2, 1, 3), 1, torch.tensor([0]), torch.ones(1, 1)))`),
	lenientIf("index_reduce", misfitSource, "shapes of source are compared slice by slice, by broadcasting, and not at all for an empty index",
		`accepts(lambda: torch.index_reduce(torch.zeros(1, 4), 0, torch.zeros(0, dtype=torch.int64), torch.zeros(0), 'amin'))`),
	inAll(lenientIf("conv1d", otherBias, "the kernels outside of oneDNN convert a bias of another dtype, where they are asked: always in 1.13, later with a padding of 'same' that is not the same on both sides",
		of("conv1d", biased))),
	inAll(lenientIf("conv2d", otherBias, "the kernels outside of oneDNN convert a bias of another dtype, where they are asked: always in 1.13, later with a padding of 'same' that is not the same on both sides", of("conv2d", biased))),
	inAll(lenientIf("conv3d", otherBias, "the kernels outside of oneDNN convert a bias of another dtype, where they are asked: always in 1.13, later with a padding of 'same' that is not the same on both sides", of("conv3d", biased))),
	lenient("max_pool1d", "a kernel that is longer than the image by one gives a result without elements",
		`accepts(lambda: F.max_pool1d(torch.ones(4, 2, 1), 2)) and not accepts(lambda: F.max_pool1d(torch.ones(4, 2, 1, requires_grad=True), 2))`),
	{
		Reference: "torch", Target: "linalg.vecdot", Kinds: raises,
		When: func(p *program.Program) bool {
			d, ok := keyword(p, "dim").(int64)
			return ok && len(first(p).Shape) == 1 && (d < -1 || d > 0)
		},
		Reason: "of two vectors dim is not looked at",
		Proof:  `accepts(lambda: torch.linalg.vecdot(torch.ones(1), torch.ones(1), dim=1)) and not accepts(lambda: torch.linalg.vecdot(torch.ones(1, 1), torch.ones(1, 1), dim=2))`,
	},
	lenientIf("masked_scatter", otherMask, "masks of any dtype are accepted, and their memory is read as booleans",
		`accepts(lambda: torch.zeros(4).masked_scatter(torch.tensor([1., 0, 1, 0]), torch.arange(1., 9)))`),
	{
		Reference: "torch", Target: "scatter_reduce", Kinds: raises, When: complexInput,
		Reason: "sums, products and means of complex numbers are accepted, but have no gradient; extremes are refused where there are elements",
		Proof: `x = torch.ones(3, dtype=torch.complex64)
f = lambda x, how: torch.scatter_reduce(x, 0, torch.tensor([0]), x, how)
accepts(lambda: f(x, 'sum')) and not accepts(lambda: f(x, 'amin')) and not accepts(lambda: f(x.requires_grad_(), 'sum'))`,
	},
	{
		Reference: "torch", Target: "index_reduce", Kinds: raises, When: complexInput,
		Reason: "complex matrices are accepted, slice by slice, and complex vectors refused",
		Proof: `f = lambda x: torch.index_reduce(x, 0, torch.tensor([0]), x[:1], 'prod')
accepts(lambda: f(torch.ones(3, 2, dtype=torch.complex64))) and not accepts(lambda: f(torch.ones(3, dtype=torch.complex64)))`,
	},
	{
		Reference: "torch", Target: "linspace", Kinds: raises,
		When: func(p *program.Program) bool {
			return keyword(p, "dtype") == tensor.Bool && argument(p, 2, "steps") == int64(1)
		},
		Reason: "one step is filled in, whatever the dtype",
		Proof:  `accepts(lambda: torch.linspace(-3., -2., 1, dtype=torch.bool)) and not accepts(lambda: torch.linspace(-3., -2., 2, dtype=torch.bool))`,
	},
	lenientIf("index_select", selectsNothing, "an empty index of a scalar gives a scalar of fresh memory",
		`accepts(lambda: torch.index_select(torch.tensor(1.), -1, torch.zeros(0, dtype=torch.int64)))`),
}

// misfitSource reports a source whose shape is not the input's but in dim.
func misfitSource(p *program.Program) bool {
	if len(p.Inputs) < 3 {
		return false
	}
	dim := indexedDim(p)
	x, src := first(p).Shape, p.Inputs[2].Shape
	if dim < 0 {
		dim += int64(len(x))
	}
	if len(x) != len(src) {
		return true
	}
	for d := range x {
		if x[d] != src[d] && int64(d) != dim {
			return true
		}
	}
	return false
}

// indexedDim returns the argument dim of the first call that has one.
func indexedDim(p *program.Program) int64 {
	for _, c := range p.Calls {
		if len(c.Args) > 1 {
			if d, ok := c.Args[1].(int64); ok {
				return d
			}
		}
		for _, k := range c.Kwargs {
			if d, ok := k.Value.(int64); ok && k.Name == "dim" {
				return d
			}
		}
	}
	return 0
}

func otherBias(p *program.Program) bool {
	return len(p.Inputs) > 2 && p.Inputs[2].DType != first(p).DType
}

func otherMask(p *program.Program) bool {
	return len(p.Inputs) > 1 && p.Inputs[1].DType != tensor.Bool
}

func selectsNothing(p *program.Program) bool {
	return len(p.Inputs) > 1 && len(first(p).Shape) == 0 && tensor.NumElements(p.Inputs[1].Shape) == 0
}

// scalarSorts sort nothing of one element, and so take any dtype of it.
var scalarSorts = eachCall(map[string]string{
	"sort": one("x.sort()"), "argsort": one("x.argsort()"), "msort": one("x.msort()"), "topk": one("x.topk(1)"), "kthvalue": one("x.kthvalue(1)"),
}, func(target, call string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: before("2.9", "argsort msort sort topk", target),
		Target:    target,
		Kinds:     raises,
		When: func(p *program.Program) bool {
			return len(p.Inputs) > 0 && (illegal(p) || orderless(first(p))) && tensor.NumElements(first(p).Shape) <= 1
		},
		Reason: "one element is returned as it is, whatever its dtype; more of them raise",
		Proof:  call,
	}
})

// meanPools are computed by mean where the result is one element a plane.
var meanPools = each([]string{"adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d"}, func(target string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch",
		Target:    target,
		Kinds:     raises,
		When: func(p *program.Program) bool {
			return illegal(p) && allOnes(p) && meanOnly(first(p), int(target[len(target)-2]-'0'))
		},
		Reason: "an output of one element is computed by mean, which also takes complex numbers, empty images and any number of dimensions",
		Proof: of(target, `x = torch.zeros([2] + [2] * int("TARGET"[-2]), dtype=torch.complex64)
accepts(lambda: F.TARGET(x, 1)) and not accepts(lambda: F.TARGET(x, 2))`),
	}
})

// unpools are the gradients of max_unpool.
var unpools = each([]string{"max_unpool2d", "max_unpool3d"}, func(target string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch",
		Target:    target,
		Kinds:     raises,
		When: func(p *program.Program) bool {
			return slices.ContainsFunc(p.Inputs, func(in program.Input) bool { return in.Strides != nil })
		},
		Reason: "the gradient of max_unpool views the indices as planes, which their strides do not allow",
		Proof: of(target, `n = int("TARGET"[-2])
x = torch.zeros([2, 2] + [3] * (n - 1), requires_grad=True)
indices = torch.zeros([2] + [3] * (n - 1) + [2], dtype=torch.int64).movedim(-1, 1)
y = F.TARGET(x, indices, 1).sum()
raises(y.backward, "RuntimeError", "view size is not compatible")`),
	}
})

// nearestScales are upsample and interpolate, by neighbours or cubics, by a factor
// that leaves or doubles a size though it is neither 1 nor 2.
var nearestScales = eachCall(map[string]string{
	"interpolate": scaledBy("F.interpolate(x, scale_factor=1.25)"), "upsample": scaledBy("F.upsample(x, scale_factor=1.25)"),
	"UpsamplingNearest2d": scaledBy("torch.nn.UpsamplingNearest2d(scale_factor=1.25)(x)"),
}, func(target, call string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch",
		Target:    target,
		Kinds:     slices.Concat(values, grads),
		When:      scaledOdd,
		Reason: "the gradient, and the result in the memory format channels-last, ignore a scale_factor where it leaves or doubles a size: " +
			"they do not agree with the result of contiguous images, which names other neighbours, the source index being ⌊i/scale_factor⌋",
		Proof: call,
	}
})

// scaledBy is a proof that a call by the factor 1.25 does not take the last
// element of an image from ⌊2/1.25⌋ = 1, or its gradient to there.
func scaledBy(call string) string {
	return `x = torch.arange(18.).reshape(1, 2, 3, 3).requires_grad_()
y = ` + call + `[0, 0, 2, 2]
y.backward()
y.item() != 4 or x.grad[0, 0, 1, 1].item() != 1`
}

// one is a proof that a call of a complex x is accepted of one element only.
func one(call string) string {
	return `f = lambda x: ` + call + `
accepts(lambda: f(torch.tensor(1j))) and not accepts(lambda: f(torch.tensor([1j, 2j])))`
}

// scaledOdd reports a scale factor that leaves or doubles a size, but is not 1 or 2.
func scaledOdd(p *program.Program) bool {
	return slices.ContainsFunc(p.Calls, func(c program.Call) bool {
		at := 2 // after input and size, which a module is not made with
		if program.IsModule(c.Target) {
			at = 1
		}
		mode, given := argumentOf(&c, at+1, "mode").(string)
		return (!given || mode == "nearest" || mode == "bicubic") && oddScales(argumentOf(&c, at, "scale_factor"), first(p).Shape)
	})
}

// oddScales reports a factor, or one for each dimension but the first two, by
// which a size stays or doubles though it is neither 1 nor 2.
func oddScales(factors any, shape []int) bool {
	scales, several := factors.(program.Tuple)
	for i, n := range shape[min(2, len(shape)):] {
		factor, _ := factors.(float64)
		if several && i < len(scales) {
			factor, _ = scales[i].(float64)
		}
		if size := int(factor * float64(n)); size == n && factor != 1 || size == 2*n && factor != 2 {
			return true
		}
	}
	return false
}

// wrapsNothing reports a circular pad that takes all entries of a dimension
// and adds some.
func wrapsNothing(p *program.Program) bool {
	pad, ok := argument(p, 1, "pad").(program.Tuple)
	shape := first(p).Shape
	if mode, _ := argument(p, 2, "mode").(string); !ok || mode != "circular" {
		return false
	}
	for i := 0; i+1 < len(pad) && i/2 < len(shape); i += 2 {
		low, _ := pad[i].(int64)
		high, _ := pad[i+1].(int64)
		if kept := int64(shape[len(shape)-1-i/2]) + min(low, 0) + min(high, 0); kept <= 0 && max(low, high) > 0 {
			return true
		}
	}
	return false
}

// allOnes reports a size argument of ones.
func allOnes(p *program.Program) bool {
	size, ok := argument(p, 1, "output_size").(program.Tuple)
	if argument(p, 1, "output_size") == int64(1) {
		return true
	}
	return ok && !slices.ContainsFunc(size, func(v any) bool { return v != int64(1) })
}

// meanOnly reports a tensor that has a mean, but is no batch of real images of
// n dimensions.
func meanOnly(in program.Input, n int) bool {
	extra := len(in.Shape) - n
	return in.DType.IsComplex() || extra < 1 || extra > 2 || slices.Contains(in.Shape[extra:], 0)
}

// argument returns an argument of the first call; nil when it is not given.
func argument(p *program.Program, at int, name string) any { return argumentOf(&p.Calls[0], at, name) }

func argumentOf(c *program.Call, at int, name string) any {
	if at < len(c.Args) {
		return c.Args[at]
	}
	for _, kw := range c.Kwargs {
		if kw.Name == name {
			return kw.Value
		}
	}
	return nil
}

func lenient(target, reason, proof string) verdict.KnownFault {
	return verdict.KnownFault{Reference: "torch <2.9", Target: target, Kinds: raises, When: illegal, Reason: reason, Proof: proof}
}

// inAll says of a fault that later versions have it too.
func inAll(f verdict.KnownFault) verdict.KnownFault {
	f.Reference = "torch"
	return f
}

// illegal reports a call that was drawn to break a rule.
func illegal(p *program.Program) bool { return strings.HasSuffix(p.Name, "[illegal]") }

// unbound reports a call that no signature accepts.
func unbound(p *program.Program) bool {
	symbols := map[program.Ref]*program.Symbol{}
	for i := range p.Inputs {
		s := p.Inputs[i].Symbol()
		symbols[s.Ref] = s
	}
	c := p.Calls[0]
	args, kwargs, err := c.OpArgs(func(r program.Ref) (any, error) { return symbols[r], nil })
	if err != nil {
		return false
	}
	_, err = program.Resolve(ops.Table(), c.Target, args, kwargs)
	var refused *op.Error
	return errors.As(err, &refused)
}

// keyword returns a keyword argument of the first call; nil when it is not given.
func keyword(p *program.Program, name string) any {
	return argumentOf(&p.Calls[0], len(p.Calls[0].Args), name)
}

// permuted reports an input whose memory is in another order than its elements.
func permuted(in program.Input) bool {
	last := -1
	for i, n := range in.Shape {
		if in.Strides == nil || n < 2 {
			continue
		}
		if last >= 0 && in.Strides[i] > in.Strides[last] {
			return true
		}
		last = i
	}
	return false
}

// first returns the program's first input; one of no dtype where there is none.
func first(p *program.Program) program.Input {
	if len(p.Inputs) == 0 {
		return program.Input{}
	}
	return p.Inputs[0]
}

// hasEqual reports whether the first input has an element twice.
func hasEqual(p *program.Program) bool {
	in := first(p)
	if in.DType == tensor.Invalid {
		return false
	}
	t := in.Materialize()
	seen := map[complex128]bool{}
	for i := range t.Len() {
		if v := t.At(i); seen[v] {
			return true
		} else {
			seen[v] = true
		}
	}
	return false
}
