package reffaults

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"plumb/backend"
	"plumb/internal/judge/verdict"
	"plumb/program"
	"plumb/tensor"
)

// refusals are operators, separated by spaces, which some versions refuse
// otherwise than Plumb's do; TARGET stands for each in the proof.
func refusals(reference, targets string, when func(*program.Program) bool, reason, proof string) []verdict.KnownFault {
	return each(strings.Fields(targets), func(target string) verdict.KnownFault {
		return verdict.KnownFault{Reference: reference, Target: target, Kinds: raises, When: when, Reason: reason, Proof: of(target, proof)}
	})
}

// ending narrows faults to where the reference ends so.
func ending(with backend.Status, faults []verdict.KnownFault) []verdict.KnownFault {
	for i := range faults {
		faults[i].Ends = with
	}
	return faults
}

// earlierRefusals are what earlier versions refuse, accept, or call by another
// class of exception than the version that Plumb's operators follow.
var earlierRefusals = slices.Concat(
	refusals("torch <2.9", "gather scatter scatter_ scatter_add scatter_add_ scatter_reduce scatter_reduce_", shortIndex,
		"indices of int32 are refused, as later those of fewer bits alone",
		`x, i = torch.zeros(1), torch.zeros(1, dtype=torch.int32)
raises(lambda: x.TARGET(*((0, i, torch.ones(1), "sum") if "reduce" in "TARGET" else (0, i, torch.ones(1)) if "scatter" in "TARGET" else (0, i))), "RuntimeError", "int64")`),
	refusals("torch <2.9", "getitem setitem index_put index_put_", shortIndex,
		"indices of int32 are refused, as later those of fewer bits alone",
		`raises(lambda: torch.zeros(1)[torch.zeros(1, dtype=torch.int32)], "IndexError", "long")`),
	ending(backend.Raised, refusals("torch <2.9", "squeeze squeeze_", nil,
		"a list of dims is refused", `raises(lambda: torch.zeros(2, 1).TARGET((1,)), "TypeError")`)),
	ending(backend.Raised, refusals("torch <2.9", "all any", nil,
		"a list of dims, or None, is refused",
		`raises(lambda: torch.TARGET(torch.zeros(2, 1), (1,)), "TypeError") and raises(lambda: torch.TARGET(torch.zeros(2), None), "RuntimeError")`)),
	ending(backend.Raised, refusals("torch <2.9", "where", numberForOther,
		"the method refuses a number for the other branch, later it is taken, as in the function",
		`x = torch.ones(2)
raises(lambda: x.TARGET(x > 0, 2), "TypeError") and accepts(lambda: torch.TARGET(x > 0, x, 2))`)),
	refusals("torch <2.15", "rot90", illegal,
		"dims out of range are a RuntimeError, later an IndexError",
		`type(raised(lambda: torch.rot90(torch.zeros(2, 2), 1, (0, 7)))) is RuntimeError`),
	refusals("torch <2.15", "cond", illegal,
		"an order that is none is a RuntimeError, later a ValueError",
		`type(raised(lambda: torch.linalg.cond(torch.eye(2), 3))) is RuntimeError`),
	refusals("torch <2.15", "view_as_real imag", illegal,
		"real numbers are refused by a RuntimeError, later by a TypeError",
		`type(raised(lambda: torch.TARGET(torch.zeros(2)))) is RuntimeError`),
	refusals("torch <2.15", "max_unpool1d max_unpool2d max_unpool3d", illegal,
		"a size below 0 is a RuntimeError of the kernel, later a ValueError before the other checks",
		`n = int("TARGET"[-2])
x = torch.zeros([1] + [2] * (n + 1))
type(raised(lambda: F.TARGET(x, x.long(), [-7] * n))) is RuntimeError`),
	ending(backend.Raised, refusals("torch <2.15", "isclose allclose", nil,
		"with equal_nan, a second tensor that enlarges the first is refused",
		`raises(lambda: torch.TARGET(torch.zeros(1), torch.zeros(2), equal_nan=True), "RuntimeError", "broadcast")`)),
	refusals("torch <2.9", "diff", illegal,
		"an order below 0 counts as 0, later it is refused", `accepts(lambda: torch.diff(torch.ones(2), -1))`),
	ending(backend.Raised, refusals("torch <2.9", "diag", nil,
		"a diagonal outside a matrix is refused, later it has no elements",
		`raises(lambda: torch.diag(torch.ones(2, 2), -7), "RuntimeError")`)),
	refusals("torch <2.9", "tril triu tril_ triu_", illegal,
		"a tensor of less than two dimensions is an IndexError, later a RuntimeError",
		`type(raised(lambda: torch.zeros(2).TARGET())) is IndexError`),
	refusals("torch <2.9", "embedding_bag", illegal,
		"a weight that is no matrix is an IndexError, or is read as one, later a ValueError before the other checks",
		`type(raised(lambda: F.embedding_bag(torch.zeros(1, 1).long(), torch.zeros(2)))) is IndexError and accepts(lambda: F.embedding_bag(torch.zeros(1, 1).long(), torch.zeros(2, 2, 2)))`),
	refusals("torch <2.9", "embedding", illegal,
		"of a row without elements there are norms of all orders for max_norm, later none of a negative or infinite one",
		`accepts(lambda: F.embedding(torch.zeros(1).long(), torch.zeros(1, 0), max_norm=1., norm_type=float("inf")))`),
	refusals("torch <2.9", "layer_norm group_norm", mixedNorm,
		"beside an input of a half type, a weight and a bias of float32 are refused, later taken",
		`x = torch.ones(1, 2, dtype=torch.bfloat16)
raises(lambda: F.TARGET(x, 1 if "group" in "TARGET" else (2,), torch.ones(2)), "RuntimeError", "expected scalar type")`),
	refusals("torch <2.9", "masked_fill masked_fill_ masked_scatter masked_scatter_", byteMask,
		"masks of uint8 are taken, later bool alone",
		`accepts(lambda: torch.zeros(1).TARGET(torch.zeros(1, dtype=torch.uint8), torch.tensor(1.)))`),
	refusals("torch <2.9", "masked_select", byteMask,
		"masks of uint8 are taken, later bool alone",
		`accepts(lambda: torch.zeros(1).masked_select(torch.zeros(1, dtype=torch.uint8)))`),
	ending(backend.Raised, refusals("torch <2.15", "pad constant_pad_nd", nil,
		"a padding that takes more away than it leaves is an IndexError, and one that leaves nothing beside one that adds is refused",
		`raises(lambda: F.pad(torch.ones(2, 3), (-1, -2, 1, 1)), "RuntimeError", "negative output size")`)),
	refusals("torch <2.9", "local_response_norm", illegal,
		"a size far below 0 is an IndexError, later a RuntimeError",
		`type(raised(lambda: F.local_response_norm(torch.ones(1, 3, 4), -13))) is IndexError`),
	ending(backend.OK, refusals("torch <2.9", "binary_cross_entropy BCELoss", outsideUnit,
		"targets outside 0 to 1 are taken, later refused",
		`accepts(lambda: F.binary_cross_entropy(torch.tensor(0.5), torch.tensor(2.)))`)),
	refusals("torch <2.9", "triplet_margin_loss", illegal,
		"a margin of 0 or less is taken, later refused",
		`x = torch.ones(1, 2)
accepts(lambda: F.triplet_margin_loss(x, x, x, margin=0.0))`),
	refusals("torch <2.9", "logsumexp", complexInput,
		"complex numbers are refused", `raises(lambda: torch.ones(2, dtype=torch.complex64).logsumexp(0), "RuntimeError")`),
	refusals("torch <2.9", "cat concat concatenate", illegal,
		"a list without tensors is a RuntimeError, later a ValueError", `type(raised(lambda: torch.cat([]))) is RuntimeError`),
	refusals("torch <2.9", "group_norm", illegal,
		"a tensor of less than two dimensions is an IndexError, later a RuntimeError",
		`type(raised(lambda: F.group_norm(torch.ones(1), 1))) is IndexError`),
	ending(backend.Raised, refusals("torch >=2.15", "rnn_tanh_cell rnn_relu_cell gru_cell lstm_cell", otherRows,
		"weights whose rows are not those of the gates' hidden features are refused, before multiplied as they are",
		`hx = torch.zeros(2, 1)
raises(lambda: torch.TARGET(hx, [hx, hx] if "TARGET" == "lstm_cell" else hx, torch.zeros({"gru_cell": 3, "lstm_cell": 4}.get("TARGET", 1), 1), torch.zeros(0, 1)), "RuntimeError", "first dim")`)),
	refusals("torch <2.9", "hardtanh", boundsExchanged,
		"a min_val above max_val is taken, later refused", `accepts(lambda: F.hardtanh(torch.ones(1), 0.5, -0.5))`),
	ending(backend.OK, refusals("torch <2.15", "group_norm", emptyInput,
		"channels without elements, and no channels, are taken, later refused", `accepts(lambda: F.group_norm(torch.ones(1, 1, 0), 1))`)),
	ending(backend.Raised, refusals("torch <2.9", "lerp lerp_", weightOfAnotherType,
		"a weight without dimensions that has another dtype is refused, later taken",
		`raises(lambda: torch.ones(2).TARGET(torch.ones(2), torch.tensor(1)), "RuntimeError", "dtype")`)),
	refusals("torch <2.15", "maximum minimum max min fmax fmin", complexInput,
		"complex numbers are refused by a RuntimeError, later by a TypeError",
		`type(raised(lambda: torch.TARGET(*[torch.zeros(2, dtype=torch.complex64)] * 2))) is RuntimeError`),
	refusals("torch <2.15", "argmax argmin aminmax histc sort argsort msort topk", complexInput,
		"complex numbers are refused by a RuntimeError of the kernel, and by some versions after the other checks or not where there are few, later by a TypeError",
		`isinstance(raised(lambda: torch.TARGET(torch.zeros(2, dtype=torch.complex64), *[1] * ("TARGET" == "topk"))), RuntimeError)`),
	refusals("torch <2.15", "view_as_complex isposinf isneginf", complexInput,
		"complex numbers are refused by a RuntimeError, later by a TypeError",
		`type(raised(lambda: torch.TARGET(torch.zeros(2, dtype=torch.complex64)))) is RuntimeError`),
	refusals("torch <2.9", "nll_loss cross_entropy", vectorOfOneSample,
		"of one sample, a target that is a vector is a RuntimeError, later a ValueError",
		`type(raised(lambda: F.TARGET(torch.ones(3), torch.zeros(2).long()))) is RuntimeError`),
	refusals("torch >=2.9 <2.15", "nll_loss cross_entropy", vectorOfOneSample,
		"of one sample, a target that is a vector is a ValueError, whatever its dtype, later that is asked for first",
		`type(raised(lambda: F.TARGET(torch.ones(3), torch.zeros(2)))) is ValueError`),
	refusals("torch <2.9", "bilinear", func(p *program.Program) bool { return anotherType(p, 3, "bias") },
		"a bias of another dtype is taken, later refused before the other checks",
		`one = torch.ones(1)
accepts(lambda: torch.bilinear(one, one, torch.ones(1, 1, 1), one.bool()))`),
	refusals("torch <2.15", "linear", func(p *program.Program) bool {
		b := tensorArgument(p, 2, "bias")
		return b != nil && len(b.Shape) != 1 && len(first(p).Shape) != 2
	},
		"the bias of three dimensions is added to all rows at once, whatever its shape, and that of one or of four and more in place, unless it has a single dimension; later at once where it has one dimension but for others of size 1",
		`raises(lambda: F.linear(torch.ones(1), torch.ones(2, 1), torch.ones(1, 2)), "RuntimeError") and raises(lambda: F.linear(torch.ones(1, 2, 1), torch.ones(2, 1), torch.ones(1, 2, 2)), "RuntimeError")`),
	ending(backend.OK, refusals("torch <2.9", "linear", func(p *program.Program) bool {
		b, n := tensorArgument(p, 2, "bias"), len(first(p).Shape)
		return b != nil && len(b.Shape) == 1 && n != 2 && n != 3
	},
		"the bias of a vector, and of four dimensions and more, is added in place: it may have another dtype, and the weight be a vector",
		`accepts(lambda: F.linear(torch.ones(1), torch.ones(1, 1), torch.ones(1).long()))`)),
	ending(backend.OK, refusals("torch <2.9", "matmul imatmul rmatmul mm linear tensordot inner", emptyOfTypes,
		"without products to sum, dtypes that differ are taken, later refused but of batches",
		`x, y = torch.ones(0, 0), torch.ones(0, 0).long()
accepts({"imatmul": lambda: x.__matmul__(y), "rmatmul": lambda: x.__rmatmul__(y), "linear": lambda: F.linear(x, y), "tensordot": lambda: torch.tensordot(x, y, 1)}.get("TARGET", lambda: torch.TARGET(x, y)))`)),
	ending(backend.OK, refusals("torch <2.15", "matmul imatmul rmatmul mv linear", func(p *program.Program) bool {
		return emptyOfTypes(p) && slices.ContainsFunc(p.Inputs, func(in program.Input) bool { return len(in.Shape) == 1 })
	},
		"without products to sum, a matrix and a vector of several dtypes are taken, later refused",
		`x, y = torch.ones(0, 0), torch.ones(0).long()
accepts({"imatmul": lambda: x.__matmul__(y), "rmatmul": lambda: y.__rmatmul__(x), "linear": lambda: F.linear(x, y)}.get("TARGET", lambda: torch.TARGET(x, y)))`)),
	ending(backend.OK, refusals("torch <2.15", "addmv", severalTypes,
		"tensors of several dtypes are taken, later refused",
		`accepts(lambda: torch.ones(2, dtype=torch.float64).TARGET(torch.ones(2, 3), torch.ones(3)))`)),
	ending(backend.OK, refusals("torch <2.9", "baddbmm", severalTypes,
		"an input of another dtype than the matrices is converted, later refused",
		`one = torch.ones(1, 1, 1)
accepts(lambda: one.double().TARGET(one, one))`)),
	each(strings.Fields("clamp clamp_ clip clip_ clamp_min clamp_min_ clamp_max clamp_max_ hardtanh hardtanh_"), func(target string) verdict.KnownFault {
		return verdict.KnownFault{
			Reference: "torch <2.15", Target: target, Kinds: slices.Concat(values, raises), When: boundBeyond,
			Reason: "a bound outside the range of an integer dtype wraps around or is refused; later it bounds nothing, or is refused where no element could keep it",
			Proof: of(target, `x = torch.ones(1, dtype=torch.uint8)
not accepts(lambda: F.TARGET(x, -1, 2)) if "hardtanh" in "TARGET" else not accepts(lambda: x.TARGET(max=300)) if "TARGET"[:5] in ("clamp", "clip", "clip_") and "_m" not in "TARGET" else not accepts(lambda: x.TARGET(300)) if "max" in "TARGET" else same(x.TARGET(-1), [255])`),
		}
	}),
	[]verdict.KnownFault{{
		Reference: "torch <2.15",
		Target:    "arange",
		Kinds:     slices.Concat(values, raises, []verdict.Kind{"shape"}),
		When:      countsBetweenIntegers,
		Reason:    "of integers the number of steps is counted after start, end and step are cut to integers, later before",
		Proof:     `list(torch.arange(0.5, 3, 1.5, dtype=torch.int64).shape) == [3]`,
	}})

// laterRefusals are what later versions refuse otherwise than Plumb's operators,
// which follow 1.13 there.
var laterRefusals = slices.Concat(
	refusals("torch >=2.9", "conv_transpose1d conv_transpose2d conv_transpose3d", illegal,
		"of several images a result without elements is computed, which of one is refused as too small, as is either before",
		`x, w = torch.ones([2, 1] + [1] * int("TARGET"[-2])), torch.ones([1, 1] + [2] * int("TARGET"[-2]))
accepts(lambda: torch.TARGET(x, w, padding=1))`),
	refusals("torch >=2.15", "batch_norm", smallEps,
		"an eps below 0 is refused, in training 0 too",
		`raises(lambda: F.batch_norm(torch.ones(2, 1), None, None, training=True, eps=0.0), "ValueError", "eps must be")`),
	refusals("torch >=2.15", "rnn_relu_cell rnn_tanh_cell gru_cell lstm_cell", illegal,
		"the sizes of weights and states are checked before they are used; before, some were not",
		`x, h, w = torch.ones(2), torch.ones(1, 2), torch.ones(8, 2)
type(raised(lambda: torch.TARGET(x, [h, h] if "lstm" in "TARGET" else h, w, w))) is RuntimeError`),
	refusals("torch >=2.9", "unflatten", illegal,
		"a dim out of range is a RuntimeError that quotes the IndexError; before, it was that",
		`type(raised(lambda: torch.ones(()).unflatten(0, (2, -1)))) is RuntimeError`),
	refusals("torch >=2.9", "index_add index_add_", illegal,
		"shapes are compared before indices are read, and a source that is a scalar beside a vector is refused",
		`raises(lambda: torch.ones(1).TARGET(0, torch.tensor([0]), torch.tensor(1.)), "RuntimeError", "must match")`),
	ending(backend.OK, refusals("torch >=2.9", "nll_loss cross_entropy", vectorOfOneSample,
		"of one sample, a target that is a vector of one element is taken, but has no gradient",
		`x, t = torch.ones(2, requires_grad=True), torch.zeros(1).long()
y = F.TARGET(x, t)
y.dim() == 0 and raises(y.backward, "RuntimeError", "size mismatch")`)),
	refusals("torch >=2.15", "gaussian_nll_loss", illegal,
		"var is broadcast against input; before, only a last dimension of 1 was",
		`accepts(lambda: F.gaussian_nll_loss(torch.ones(3, 2, 5), torch.ones(3, 2, 5), torch.ones(3, 1, 5)))`),
	each(strings.Fields("sum mean var std amax amin nansum nanmean var_mean std_mean"), func(target string) verdict.KnownFault {
		return verdict.KnownFault{Reference: "torch >=2.9", Target: target, Kinds: raises, When: tensorForDim(target),
			Reason: "a tensor is taken for dims; before, it was refused", Proof: of(target, `accepts(lambda: torch.TARGET(torch.ones(2, 3), torch.tensor([0])))`)}
	}),
	refusals("torch >=2.9", "bernoulli_", illegal,
		"probabilities of another shape are not looked at where there is nothing to draw",
		`accepts(lambda: torch.zeros(2, 0).bernoulli_(torch.zeros(2, 3)))`),
	refusals("torch >=2.9", "isin", illegal,
		"bfloat16 is taken", `accepts(lambda: torch.isin(torch.ones(2).bfloat16(), torch.ones(2).bfloat16()))`),
	refusals("torch >=2.9", "pad", illegal,
		"circular pads of fewer dimensions than all but the first two are taken",
		`accepts(lambda: F.pad(torch.ones(1, 2, 4), (2, 1, 0, 0), "circular"))`),
	ending(backend.OK, refusals("torch >=2.15", "arange", stepsCut,
		"of integers a step that is cut to 0 is taken; before, it was refused",
		`accepts(lambda: torch.arange(0, 4, 0.5, dtype=torch.int64))`)),
	ending(backend.OK, refusals("torch >=2.15", "grid_sample", volume,
		"bicubic volumes are taken; before, images alone",
		`accepts(lambda: F.grid_sample(torch.ones(1, 1, 2, 2, 2), torch.zeros(1, 2, 2, 2, 3), mode="bicubic"))`)),
	refusals("torch >=2.9", "scaled_dot_product_attention", illegal,
		"a mask of more dimensions than the product is refused where it enlarges that",
		`q, k = torch.ones(1, 2), torch.ones(2, 2)
raises(lambda: F.scaled_dot_product_attention(q, k, k, torch.ones(1, 1, 2)), "RuntimeError", "broadcast shape")`),
	refusals("torch >=2.9", "index_select", illegal,
		"of a scalar more than one index is a RuntimeError; before, each is taken, and one beyond it an IndexError",
		`raises(lambda: torch.tensor(1.).index_select(0, torch.tensor([0, 0])), "RuntimeError", "Index to scalar")`),
	refusals("torch >=2.15", "matrix_norm norm", illegal,
		"the largest of no sums or singular values is 0; before, it is refused",
		`same(torch.linalg.TARGET(torch.zeros(0, 4), inf), 0)`),
	refusals("torch >=2.15", "instance_norm", illegal,
		"statistics of another floating dtype are taken; before, they are refused",
		`accepts(lambda: F.instance_norm(torch.ones(3, 1, 3, 3), torch.ones(1).half(), torch.ones(1), use_input_stats=False))`),
	refusals("torch >=2.15", "rms_norm", illegal,
		"an input of fewer dimensions than normalized_shape is a ValueError; before, a RuntimeError",
		`type(raised(lambda: F.rms_norm(torch.ones(()), (3,)))) is ValueError`),
	ending(backend.Raised, refusals("torch >=2.9", "layer_norm group_norm", mixedBias,
		"the gradient of a bias of float32, beside an input of a half type and without a weight, is refused by its kernel",
		`b = torch.ones(2, requires_grad=True)
y = F.TARGET(torch.ones(1, 2, dtype=torch.bfloat16), 1 if "group" in "TARGET" else (2,), None, b)
raises(lambda: y.backward(y.detach()), "RuntimeError")`)),
	ending(backend.Raised, refusals("torch >=2.9", "index_reduce index_reduce_", productOfHalves,
		"products of half types in rows of one element end with an internal assertion",
		`x, i = torch.ones(2, 1, dtype=torch.half), torch.tensor([0, 0])
raises(lambda: x.TARGET(0, i, x.clone(), "prod"), "RuntimeError", "INTERNAL ASSERT")`)),
	refusals("torch >=2.9", "index_reduce index_reduce_", illegal,
		"shapes are compared before the index is read; before, after",
		`raises(lambda: torch.zeros(0).TARGET(0, torch.tensor(0), torch.tensor(0.), "prod"), "RuntimeError", "must match")`),
	ending(backend.Raised, refusals("torch", "conv2d", severalLayouts,
		"a weight of one row that is in channels-last but for the stride of that row, which counts for nothing, has no gradient beside an image in channels-last",
		`def strided(*strides): return torch.empty_strided((1, 2, 1, 2), strides).fill_(1)
y = F.conv2d(strided(4, 1, 4, 2), strided(4, 1, 1, 2).requires_grad_())
raises(lambda: y.sum().backward(), "RuntimeError", "grad_weight must be contiguous")`)),
	ending(backend.OK, refusals("torch", "embedding_bag", descendingBags,
		"offsets that descend are taken, which say of no row in which bag it is: each kernel reads them otherwise",
		`accepts(lambda: F.embedding_bag(torch.tensor([2, 3, 4]), torch.ones(5, 1), torch.tensor([0, 2, 1]), mode="max"))`)),
	refusals("torch", "amax amin aminmax", illegal,
		"a tensor of more than 64 dimensions is refused",
		`raises(lambda: torch.ones([1] * 65).TARGET(dim=-1), "RuntimeError", "64 dims")`))

// vanishedNorms are norms of a matrix of zeros, which have many subgradients.
var vanishedNorms = each([]string{"norm", "matrix_norm"}, func(target string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch",
		Target:    target,
		Kinds:     grads,
		When:      func(p *program.Program) bool { return !anyElement(p, 0, func(v float64) bool { return v != 0 }) },
		Reason:    "the gradient of a norm by singular values at a matrix of zeros is that of one of its decompositions, U·Vᵀ; Plumb's is 0, which is a subgradient too",
		Proof: of(target, `x = torch.zeros(2, 2, requires_grad=True)
torch.linalg.TARGET(x, "nuc").backward()
bool((x.grad != 0).any())`),
	}
})

// shortIndex reports an input of int32, among which are the indices.
func shortIndex(p *program.Program) bool {
	return slices.ContainsFunc(p.Inputs, func(in program.Input) bool { return in.DType == tensor.I32 })
}

// mixedNorm reports an input of a half type beside parameters of float32, or those of a module.
func mixedNorm(p *program.Program) bool {
	half := slices.ContainsFunc(p.Inputs, func(in program.Input) bool { return in.DType == tensor.F16 || in.DType == tensor.BF16 })
	return half && (len(p.Inputs) == 1 || slices.ContainsFunc(p.Inputs, func(in program.Input) bool { return in.DType == tensor.F32 }))
}

// mixedBias reports that there is no weight among them.
func mixedBias(p *program.Program) bool {
	return mixedNorm(p) && len(p.Inputs) == 2 && argument(p, 2, "weight") == nil
}

func productOfHalves(p *program.Program) bool {
	return first(p).DType.Size() == 2 && first(p).DType.IsFloat() && argument(p, 4, "reduce") == "prod"
}

func byteMask(p *program.Program) bool {
	return slices.ContainsFunc(p.Inputs, func(in program.Input) bool { return in.DType == tensor.U8 })
}

// severalLayouts reports an image and a weight that both have strides of their own.
func severalLayouts(p *program.Program) bool {
	return len(p.Inputs) > 1 && p.Inputs[0].Strides != nil && p.Inputs[1].Strides != nil
}

// severalTypes reports inputs of more than one dtype.
func severalTypes(p *program.Program) bool {
	return slices.ContainsFunc(p.Inputs, func(in program.Input) bool { return in.DType != p.Inputs[0].DType })
}

// anotherType reports an argument of the first call that has another dtype than the first input.
func anotherType(p *program.Program, at int, name string) bool {
	in := tensorArgument(p, at, name)
	return in != nil && in.DType != first(p).DType
}

// tensorArgument returns the input that is an argument of the first call; nil where none is.
func tensorArgument(p *program.Program, at int, name string) *program.Input {
	ref, ok := argument(p, at, name).(program.Ref)
	for i := range p.Inputs {
		if ok && p.Inputs[i].Symbol().Ref == ref {
			return &p.Inputs[i]
		}
	}
	return nil
}

// vectorOfOneSample reports a loss of classes of one sample whose target is a vector.
func vectorOfOneSample(p *program.Program) bool {
	t := tensorArgument(p, 1, "target")
	return t != nil && len(t.Shape) == 1 && len(first(p).Shape) == 1
}

// descendingBags reports offsets of which one is below the one before it.
func descendingBags(p *program.Program) bool {
	in := tensorArgument(p, 2, "offsets")
	if in == nil {
		return false
	}
	last := math.Inf(-1)
	return hasElement(in, func(v float64) bool {
		before := last
		last = v
		return v < before
	})
}

// weightOfAnotherType reports a lerp by a tensor without dimensions that has another dtype.
func weightOfAnotherType(p *program.Program) bool {
	w := tensorArgument(p, 2, "weight")
	return w != nil && len(w.Shape) == 0 && w.DType != first(p).DType
}

// emptyOfTypes reports inputs of several dtypes, of which one has no elements.
func emptyOfTypes(p *program.Program) bool {
	return severalTypes(p) && slices.ContainsFunc(p.Inputs, func(in program.Input) bool { return tensor.NumElements(in.Shape) == 0 })
}

// stepsCut reports whether the step of an arange is cut to 0 as an integer.
func stepsCut(p *program.Program) bool {
	step := numberOr(argument(p, 2, "step"), 1)
	return step != 0 && math.Trunc(step) == 0
}

// volume reports whether the first input has the dimensions of a batch of volumes.
func volume(p *program.Program) bool { return len(first(p).Shape) == 5 }

// boundsExchanged reports whether a call's min_val is above its max_val.
func boundsExchanged(p *program.Program) bool {
	return slices.ContainsFunc(p.Calls, func(c program.Call) bool {
		bounds := map[string]float64{"min_val": -1, "max_val": 1}
		for i, name := range []string{"input", "min_val", "max_val"} {
			if i < len(c.Args) {
				note(bounds, name, c.Args[i])
			}
		}
		for _, kw := range c.Kwargs {
			note(bounds, kw.Name, kw.Value)
		}
		return bounds["min_val"] > bounds["max_val"]
	})
}

// boundBeyond reports a bound that the integers of the first input do not reach; that
// of hardtanh is cut to an integer, by a real one of clamp the result is real.
func boundBeyond(p *program.Program) bool {
	d := first(p).DType
	if !d.IsInt() {
		return false
	}
	least, most := 0.0, float64(math.MaxUint8)
	if d != tensor.U8 {
		most = math.Ldexp(1, 8*d.Size()-1)
		least, most = -most, most-1
	}
	return slices.ContainsFunc(p.Calls, func(c program.Call) bool {
		cut := strings.Contains(c.Target, "hardtanh")
		bounds := []any{argumentOf(&c, 1, "min"), argumentOf(&c, 1, "max"), argumentOf(&c, 2, "max")}
		if cut {
			bounds = []any{cmp.Or(argumentOf(&c, 1, "min_val"), any(int64(-1))), cmp.Or(argumentOf(&c, 2, "max_val"), any(int64(1)))}
		}
		beyond := func(v any) bool {
			x := math.Trunc(numberOr(v, least))
			return x < least || x > most
		}
		real := func(v any) bool { _, is := v.(float64); return is }
		return slices.ContainsFunc(bounds, beyond) && (cut || !slices.ContainsFunc(bounds, real))
	})
}

func note(into map[string]float64, name string, v any) {
	switch v := v.(type) {
	case int64:
		into[name] = float64(v)
	case float64:
		into[name] = v
	}
}

// tensorForDim reports a call of an operator whose second argument, or dim, is a tensor.
func tensorForDim(target string) func(*program.Program) bool {
	return func(p *program.Program) bool {
		return slices.ContainsFunc(p.Calls, func(c program.Call) bool {
			_, is := argumentOf(&c, 1, "dim").(program.Ref)
			return is && verdict.OperatorName(c.Target) == verdict.OperatorName(target)
		})
	}
}

// outsideUnit reports an input with elements that may be outside 0 to 1.
func outsideUnit(p *program.Program) bool {
	return slices.ContainsFunc(p.Inputs, func(in program.Input) bool {
		if d := in.Fill.Data; d != nil {
			for i := range d.Len() {
				if v := d.Float(i); !(v >= 0 && v <= 1) {
					return true
				}
			}
			return false
		}
		return in.Fill.Lo < 0 || in.Fill.Hi > 1
	})
}

// numberForOther reports where as a method with a number for its other branch.
func numberForOther(p *program.Program) bool {
	return slices.ContainsFunc(p.Calls, func(c program.Call) bool {
		switch argumentOf(&c, 2, "other").(type) {
		case bool, int64, float64, complex128:
			return c.Target == "Tensor.where"
		}
		return false
	})
}

// otherRows reports a cell one of whose weights has not a row for each hidden feature of
// each gate.
func otherRows(p *program.Program) bool {
	c := &p.Calls[0]
	shape := func(at int, name string) []int {
		ref, _ := argumentOf(c, at, name).(program.Ref)
		if i := slices.IndexFunc(p.Inputs, func(in program.Input) bool { return in.Name == string(ref) }); i >= 0 {
			return p.Inputs[i].Shape
		}
		return nil
	}
	in, hidden := shape(2, "w_ih"), shape(3, "w_hh")
	gates := map[string]int{"torch.gru_cell": 3, "torch.lstm_cell": 4}[c.Target]
	if len(in) != 2 || len(hidden) != 2 {
		return false
	}
	rows := max(gates, 1) * hidden[1]
	return in[0] != rows || hidden[0] != rows
}

// countsBetweenIntegers reports a range of integers whose start, end or step is none.
func countsBetweenIntegers(p *program.Program) bool {
	d, ok := keyword(p, "dtype").(tensor.DType)
	if !ok || d.IsDifferentiable() {
		return false
	}
	between := func(v any) bool { x, ok := v.(float64); return ok && x != math.Trunc(x) }
	return slices.ContainsFunc(p.Calls, func(c program.Call) bool {
		return slices.ContainsFunc(c.Args, between) || slices.ContainsFunc(c.Kwargs, func(kw program.Kwarg) bool { return between(kw.Value) })
	})
}
