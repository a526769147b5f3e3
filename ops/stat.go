package ops

import (
	"slices"

	"plumb/internal/arg"
	"plumb/internal/kernel"
	"plumb/op"
	"plumb/tensor"
)

var statOps = slices.Concat(extremeOps, productOps, countOps, momentOps, vectorNormOps, distanceOps, cdistOps, orderStatOps)

var extremeOps = []*op.Def{
	evenExtreme("amax", "Largest", func(c *op.Run, dims []int, lane statLane) {
		lane.reduce(c, dims, kernel.MaxRow[int64], kernel.MaxRow[float32], kernel.MaxRow[float64])
	}),
	evenExtreme("amin", "Smallest", func(c *op.Run, dims []int, lane statLane) {
		lane.reduce(c, dims, kernel.MinRow[int64], kernel.MinRow[float32], kernel.MinRow[float64])
	}),
	{
		Sig:           "min(Tensor input) -> Tensor",
		Magnitude:     "max",
		Names:         both("min"),
		Traits:        op.Monotone,
		Doc:           "Smallest element; NaN if there is one. Its gradient is spread evenly over all elements that equal it.",
		NotSplittable: "the minimum of a split axis would be a partial minimum, which the vocabulary lacks",
		Reject:        firstError(rejectTypes(arg.Input, complexTypes...), statNonEmpty(op.RuntimeError)),
		Infer:         inferStat(statInputType),
		Kernels:       pairKernels(kernel.MinRow[int64], kernel.MinRow[float32], kernel.MinRow[float64]),
		Grad:          op.Gradient(func(g *op.Grad) op.Value { return spreadEvenly(g) }),
		Sample:        func(s *op.Sampler) []any { return []any{s.Distinct(s.Shape(0, 4)...)} },
		Tol:           exactTol("one of its inputs"),
	},
	{
		Sig:       "min.dim(Tensor input, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
		Magnitude: "max.dim",
		Names:     both("min"),
		Traits:    op.Monotone,
		Doc:       "Smallest elements along dim and the first index of each; a NaN is smaller than everything. The gradient goes to that index.",
		SBP:       reduced,
		Reject:    firstError(statNonEmpty(op.IndexError), refuseComplex(arg.Input)),
		Infer:     inferStatPair(statInputType, statIndexType),
		Kernels:   pairKernels(kernel.MinRow[int64], kernel.MinRow[float32], kernel.MinRow[float64]),
		Grad:      op.Gradient(maxDimGrad),
		Sample:    sampleDistinctDim,
		Tol:       exactTol("one of its inputs"),
	},
	argExtreme("argmax", "largest", kernel.MaxRow[int64], kernel.MaxRow[float32], kernel.MaxRow[float64]),
	argExtreme("argmin", "smallest", kernel.MinRow[int64], kernel.MinRow[float32], kernel.MinRow[float64]),
	{
		Sig:    "aminmax(Tensor input, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)",
		Names:  both("aminmax"),
		Traits: op.Monotone,
		Doc:    "Smallest and largest elements along dim, of all elements by default; NaN if there is one. Gradients are spread evenly over equal elements.",
		SBP:    reduced,
		Reject: firstError(refuseComplex(arg.Input), statNonEmpty(op.RuntimeError)),
		Infer:  inferStatPair(statInputType, statInputType),
		Kernels: []op.Kernel{
			aminmaxKernel[int64]("integer", integralSet),
			aminmaxKernel[float32]("float32", float32Set),
			aminmaxKernel[float64]("float64", float64Set),
		},
		Grad:   op.Gradient(aminmaxGrad),
		Sample: sampleAminmax,
		Tol:    exactTol("two of its inputs"),
	},
}

func aminmaxGrad(g *op.Grad) op.Value {
	var terms []op.Value
	for i, cot := range g.Cot {
		if cot != nil {
			terms = append(terms, evenlyAlong(g, cot, g.Out[i]))
		}
	}
	return addAll(g, terms)
}

func sampleAminmax(s *op.Sampler) []any {
	args := sampleDistinctDim(s)
	if s.Bool() {
		return args[:1]
	}
	return []any{args[0], op.Kw("dim", args[1]), op.Kw("keepdim", args[2])}
}

// statLane is the lane in which a kernel runs.
type statLane int

const (
	statInt statLane = iota
	stat32
	stat64
)

// pairRow is a row function of a value and an index.
type pairRow[T kernel.Lane] = func(row, scratch []T) (T, int64)

// reduce runs the lane's row function and keeps the values.
func (l statLane) reduce(c *op.Run, dims []int, i64 pairRow[int64], f32 pairRow[float32], f64 pairRow[float64]) {
	out, in := c.Out[0], c.Tensor(arg.Input)
	switch l {
	case statInt:
		kernel.ReducePairs(out, nil, in, dims, i64)
	case stat32:
		kernel.ReducePairs(out, nil, in, dims, f32)
	default:
		kernel.ReducePairs(out, nil, in, dims, f64)
	}
}

// evenExtreme is amax or amin.
func evenExtreme(id, which string, run func(c *op.Run, dims []int, lane statLane)) *op.Def {
	lane := func(name string, ds []tensor.DType, l statLane) op.Kernel {
		return op.Kernel{Name: name, When: op.DTypeIn(arg.Input, ds...), Run: func(c *op.Run) error {
			dims, err := statDims(c.Args)
			if err == nil {
				run(c, dims, l)
			}
			return err
		}}
	}
	return &op.Def{
		Sig:       id + "(Tensor input, int[1]? dim=[], bool keepdim=False) -> Tensor",
		Magnitude: "amax",
		Names:     both(id),
		Traits:    op.Monotone,
		Doc:       which + " elements over the dimensions dim, all of them by default; NaN if there is one. The gradient is spread evenly over equal elements.",
		SBP:       reduced,
		Reject:    statNonEmptyEach(op.RuntimeError),
		Infer:     inferStat(statInputType),
		Kernels:   []op.Kernel{lane("integer", integralSet, statInt), lane("float32", float32Set, stat32), lane("float64", float64Set, stat64)},
		Grad:      op.Gradient(func(g *op.Grad) op.Value { return evenlyAlong(g, g.G(), g.Out[0]) }),
		Sample:    sampleEvenExtreme,
		Tol:       exactTol("one of its inputs"),
	}
}

func sampleEvenExtreme(s *op.Sampler) []any {
	args := sampleReduced(s)
	args[0] = s.Distinct(args[0].(*tensor.Tensor).Shape()...)
	return args
}

// argExtreme is argmax or argmin.
func argExtreme(id, which string, i64 pairRow[int64], f32 pairRow[float32], f64 pairRow[float64]) *op.Def {
	return &op.Def{
		Sig:     id + "(Tensor input, int? dim=None, bool keepdim=False) -> Tensor",
		Domains: asSampled(arg.Input),
		Names:   both(id),
		Doc:     "First index of the " + which + " element along dim, by default in the flattened tensor; a NaN counts as the " + which + ".",
		Traits:  op.NoGrad | op.FollowsOrder,
		SBP:     reduced,
		Reject:  firstError(refuseComplex(arg.Input), statNonEmpty(op.IndexError), rejectTypes(arg.Input, tensor.Bool)),
		Infer:   inferStat(statIndexType),
		Kernels: []op.Kernel{
			indexKernel("integer", integerTypes, i64),
			indexKernel("float32", float32Set, f32),
			indexKernel("float64", float64Set, f64),
		},
		Sample: sampleArgExtreme,
		Tol:    exactTol("an index"),
	}
}

func sampleArgExtreme(s *op.Sampler) []any {
	args := sampleDistinctDim(s)
	return args[:1+2*s.Index(2)]
}

func pairKernels(i64 pairRow[int64], f32 pairRow[float32], f64 pairRow[float64]) []op.Kernel {
	return []op.Kernel{pairKernel("integer", integralSet, i64), pairKernel("float32", float32Set, f32), pairKernel("float64", float64Set, f64)}
}

// pairKernel writes values and, if there are two results, indices.
func pairKernel[T kernel.Lane](name string, ds []tensor.DType, f pairRow[T]) op.Kernel {
	return op.Kernel{Name: name, When: op.DTypeIn(arg.Input, ds...), Run: func(c *op.Run) error {
		dims, err := statDims(c.Args)
		if err != nil {
			return err
		}
		var indices *tensor.Tensor
		if len(c.Out) > 1 {
			indices = c.Out[1]
		}
		kernel.ReducePairs(c.Out[0], indices, c.Tensor(arg.Input), dims, f)
		return nil
	}}
}

func indexKernel[T kernel.Lane](name string, ds []tensor.DType, f pairRow[T]) op.Kernel {
	return op.Kernel{Name: name, When: op.DTypeIn(arg.Input, ds...), Run: func(c *op.Run) error {
		dims, err := statDims(c.Args)
		if err == nil {
			kernel.ReducePairs(nil, c.Out[0], c.Tensor(arg.Input), dims, f)
		}
		return err
	}}
}

func aminmaxKernel[T float32 | float64 | int64](name string, ds []tensor.DType) op.Kernel {
	return op.Kernel{Name: name, When: op.DTypeIn(arg.Input, ds...), Run: func(c *op.Run) error {
		dims, err := statDims(c.Args)
		if err != nil {
			return err
		}
		kernel.ReducePairs(c.Out[0], c.Out[1], c.Tensor(arg.Input), dims, func(row, _ []T) (T, T) {
			lo, _ := kernel.MinRow(row, nil)
			hi, _ := kernel.MaxRow(row, nil)
			return lo, hi
		})
		return nil
	}}
}

// since says from which version on PyTorch has a kernel for the calls of k.
func since(version string, k op.Kernel) op.Kernel {
	k.Since = version
	return k
}

// rowKernel is a kernel of one result per row, of an operator whose "dim" says
// which dimensions a row has. The input is brought to the dtype to first, if given.
func rowKernel[T, D kernel.Lane](name string, when op.Pred, to func(op.Args) tensor.DType, f func(a op.Args) func(row []T) D) op.Kernel {
	return op.Kernel{Name: name, When: when, Run: func(c *op.Run) error {
		dims, err := statDims(c.Args)
		if err != nil {
			return err
		}
		in := c.Tensor(arg.Input)
		if to != nil && in.DType() != to(c.Args) {
			in = in.Convert(to(c.Args))
		}
		kernel.ReduceRows(c.Out[0], in, dims, f(c.Args))
		return nil
	}}
}

// statDims returns the dimensions that the argument dim names: all of them
// for None, none and operators without it.
func statDims(a op.Args) ([]int, error) {
	n := len(a.Value(arg.Input).Shape())
	if !a.Sig.Takes(arg.Dim) {
		return allDims(n), nil
	}
	switch d := a.Any(arg.Dim).(type) {
	case int:
		return wrapDims([]int{d}, n)
	case []int:
		return wrapDims(d, n)
	}
	return allDims(n), nil
}

// statTerms returns how many elements each result combines.
func statTerms(a op.Args) int {
	dims, _ := statDims(a)
	n := 1
	for _, d := range dims {
		n *= a.Value(arg.Input).Shape()[d]
	}
	return n
}

func statShape(a op.Args) ([]int, error) {
	dims, err := statDims(a)
	if err != nil {
		return nil, err
	}
	keep := a.Sig.Takes(arg.Keepdim) && a.Bool(arg.Keepdim)
	return reducedShape(a.Value(arg.Input).Shape(), dims, keep), nil
}

// inferStat infers one contiguous result per row.
func inferStat(dtype func(op.Args) tensor.DType) func(op.Args) ([]op.Meta, error) {
	return func(a op.Args) ([]op.Meta, error) {
		shape, err := statShape(a)
		if err != nil {
			return nil, err
		}
		return one(dtype(a), shape, nil), nil
	}
}

func inferStatPair(first, second func(op.Args) tensor.DType) func(op.Args) ([]op.Meta, error) {
	return func(a op.Args) ([]op.Meta, error) {
		shape, err := statShape(a)
		if err != nil {
			return nil, err
		}
		return []op.Meta{{DType: first(a), Shape: shape}, {DType: second(a), Shape: shape}}, nil
	}
}

func statInputType(a op.Args) tensor.DType { return a.Value(arg.Input).DType() }

func statIndexType(op.Args) tensor.DType { return tensor.I64 }

// statNonEmpty rejects rows without elements: with class when there is but one
// row, else with an IndexError.
func statNonEmpty(class func(format string, args ...any) *op.Error) func(op.Args) error {
	return func(a op.Args) error {
		shape := a.Value(arg.Input).Shape()
		dims, err := statDims(a)
		if err != nil {
			return err
		}
		if !a.Sig.Takes(arg.Dim) || !a.Has(arg.Dim) {
			if tensor.NumElements(shape) == 0 {
				return class("Expected reduction dim to be specified for argument 'input' without elements")
			}
			return nil
		}
		for _, d := range dims {
			if shape[d] == 0 {
				return op.IndexError("Expected reduction dim %d to have non-zero size", d)
			}
		}
		return nil
	}
}

// statNonEmptyEach is statNonEmpty for a list of dimensions, where none means all.
func statNonEmptyEach(class func(format string, args ...any) *op.Error) func(op.Args) error {
	return func(a op.Args) error {
		if len(a.Ints(arg.DimInts)) == 0 {
			if tensor.NumElements(a.Value(arg.Input).Shape()) == 0 {
				return class("Expected reduction dim to be specified for argument 'input' without elements")
			}
			return nil
		}
		return statNonEmpty(class)(a)
	}
}

// keptLike brings a result, or its gradient, to the shape with reduced
// dimensions of size 1.
func keptLike(g *op.Grad, v op.Value) op.Value {
	dims, err := statDims(g.Args)
	if err != nil {
		op.Fail(err)
	}
	return g.Reshape(v, reducedShape(g.Value(arg.Input).Shape(), dims, true))
}

// spreadKept expands a result, or its gradient, to the shape of the input.
func spreadKept(g *op.Grad, v op.Value) op.Value {
	return g.Expand(keptLike(g, v), g.Value(arg.Input).Shape())
}

// statSum sums over the reduced dimensions, which stay with size 1.
func statSum(g *op.Grad, v op.Value) op.Value {
	dims, err := statDims(g.Args)
	if err != nil {
		op.Fail(err)
	}
	if len(dims) == 0 {
		return v
	}
	return sumOver(g, v, dims...)
}

// evenlyAlong divides the cotangent among the elements of each row that equal
// its result; where none does, for NaN, it is NaN.
func evenlyAlong(g *op.Grad, cot, result op.Value) op.Value {
	x := g.Value(arg.Input)
	mask := g.Cast(g.Op("eq", x, keptLike(g, result)), wide(g, cot).DType())
	share := g.Div(wide(g, keptLike(g, cot)), statSum(g, mask))
	return g.Mul(mask, share)
}

func sampleDistinctDim(s *op.Sampler) []any {
	shape := s.Shape(1, 4)
	n := int64(len(shape))
	return []any{s.Distinct(shape...), s.Int(-n, n), s.Bool()}
}

func sampleStatDim(s *op.Sampler) []any {
	shape := s.Shape(1, 4)
	n := int64(len(shape))
	return []any{s.Tensor(-2, 2, shape...), s.Int(-n, n), s.Bool()}
}
