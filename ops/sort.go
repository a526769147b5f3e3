package ops

import (
	"math"
	"slices"

	"plumb/internal/arg"
	"plumb/internal/kernel"
	"plumb/op"
	"plumb/tensor"
)

var sortOps = slices.Concat(sortingOps, searchOps, uniqueOps)

// sortingOps order the entries of a dimension.
var sortingOps = []*op.Def{
	{
		Sig:     "sort(Tensor input, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)",
		Domains: asSampled(arg.Input),
		Names:   both("sort"),
		Traits:  op.Monotone,
		Doc:     "Sorts along dim, NaN as the largest value; indices are the places in input. Equal elements keep their order.",
		SBP:     alongOthers(arg.Input),
		Reject:  checkSort,
		Infer:   inferSort,
		Kernels: sortKernels(sortRun),
		Grad:    op.Gradient(orderGrad),
		Sample:  sampleSort,
		Tol:     exactTol("its inputs in another order"),
	},
	{
		Sig:     "sort.stable(Tensor input, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)",
		Domains: asSampled(arg.Input),
		Names:   both("sort"),
		Traits:  op.Monotone,
		Doc:     "Sorts along dim, NaN as the largest value; equal elements keep their order.",
		SBP:     alongOthers(arg.Input),
		Reject:  checkSort,
		Infer:   inferSort,
		Kernels: sortKernels(sortRun),
		Grad:    op.Gradient(orderGrad),
		Sample:  sampleSortStable,
		Tol:     exactTol("its inputs in another order"),
	},
	{
		Sig:     "argsort(Tensor input, int dim=-1, bool descending=False) -> Tensor",
		Domains: asSampled(arg.Input),
		Names:   both("argsort"),
		Doc:     "The places of the elements along dim in sorted order. Equal elements keep their order.",
		Traits:  op.NoGrad | op.FollowsOrder,
		SBP:     alongOthers(arg.Input),
		Reject:  checkSort,
		Infer:   inferArgsort,
		Kernels: sortKernels(sortRun),
		Sample:  sampleArgsort,
		Tol:     exactTol("places in its input"),
	},
	{
		Sig:     "argsort.stable(Tensor input, *, bool stable, int dim=-1, bool descending=False) -> Tensor",
		Domains: asSampled(arg.Input),
		Names:   both("argsort"),
		Doc:     "The places of the elements along dim in sorted order; equal elements keep their order.",
		Traits:  op.NoGrad | op.FollowsOrder,
		SBP:     alongOthers(arg.Input),
		Reject:  checkSort,
		Infer:   inferArgsort,
		Kernels: sortKernels(sortRun),
		Sample:  sampleArgsortStable,
		Tol:     exactTol("places in its input"),
	},
	{
		Sig:     "msort(Tensor input) -> Tensor",
		Domains: asSampled(arg.Input),
		Names:   both("msort"),
		Traits:  op.Monotone,
		Doc:     "Sorts along the first dimension, NaN as the largest value.",
		SBP:     besides(func(op.Args) []int { return []int{0} }, arg.Input),
		Reject:  refuseComplex(arg.Input),
		Infer:   inferMsort,
		Kernels: sortKernels(func(c *op.Run, run sortFunc) error {
			out := c.Out[0]
			run(out, tensor.New(tensor.I64, out.Shape()...), c.Tensor(arg.Input), 0, false)
			return nil
		}),
		Grad:   op.Gradient(msortGrad),
		Sample: func(s *op.Sampler) []any { return []any{sampleRanked(s, s.Shape(0, 3)...)} },
		Tol:    exactTol("its inputs in another order"),
	},
	{
		Sig:     "topk(Tensor input, int k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, Tensor indices)",
		Domains: asSampled(arg.Input),
		Names:   both("topk"),
		Traits:  op.Monotone,
		Doc:     "The k largest elements along dim, or the smallest, in sorted order, and their places; of equal elements the first ones.",
		SBP:     alongOthers(arg.Input),
		Reject:  firstError(checkTopK, refuseComplex(arg.Input), rejectTypes(arg.Input, tensor.Bool)),
		Infer:   inferTopk,
		Kernels: sortKernels(func(c *op.Run, run sortFunc) error {
			run(c.Out[0], c.Out[1], c.Tensor(arg.Input), dimOf(c.Args), c.Bool(arg.Largest))
			return nil
		}),
		Canonical: func(a op.Args, out []*tensor.Tensor) []*tensor.Tensor {
			if a.Bool(arg.Sorted) || out[0].Dim() == 0 {
				return out
			}
			return rowsInOrder(dimOf(a), out[0], out[1])
		},
		Grad:   op.Gradient(orderGrad),
		Sample: sampleTopk,
		Tol:    exactTol("elements of its input"),
	},
	{
		Sig:       "kthvalue(Tensor input, int k, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)",
		Domains:   asSampled(arg.Input),
		Names:     both("kthvalue"),
		Traits:    op.Monotone,
		Doc:       "The k-th smallest element along dim, counted from 1, and its place; NaN is the largest value.",
		SBP:       reduced,
		Reject:    firstError(checkKth, rejectTypes(arg.Input, append([]tensor.DType{tensor.Bool}, complexTypes...)...)),
		Infer:     inferKthvalue,
		Kernels:   sortKernels(runKth),
		Canonical: firstPlaces,
		Grad:      op.Gradient(kthvalueGrad),
		Sample:    sampleKthvalue,
		Tol:       exactTol("elements of its input"),
	},
}

func sampleSort(s *op.Sampler) []any {
	x := sampleRanked(s, s.Shape(0, 3)...)
	n := int64(max(x.Dim(), 1))
	return []any{x, s.Int(-n, n), s.Bool()}
}

func sampleSortStable(s *op.Sampler) []any {
	x := sampleRanked(s, s.Shape(0, 3)...)
	n := int64(max(x.Dim(), 1))
	return []any{x, op.Kw("stable", s.Bool()), op.Kw("dim", s.Int(-n, n)), op.Kw("descending", s.Bool())}
}

func sampleArgsort(s *op.Sampler) []any {
	x := sampleRanked(s, s.Shape(0, 3)...)
	n := int64(max(x.Dim(), 1))
	return []any{x, s.Int(-n, n), s.Bool()}
}

func sampleArgsortStable(s *op.Sampler) []any {
	x := sampleRanked(s, s.Shape(0, 3)...)
	n := int64(max(x.Dim(), 1))
	return []any{x, op.Kw("stable", true), op.Kw("dim", s.Int(-n, n)), op.Kw("descending", s.Bool())}
}

func inferMsort(a op.Args) ([]op.Meta, error) {
	v := a.Value(arg.Input)
	return one(v.DType(), v.Shape(), denseStrides(v)), nil
}

func msortGrad(g *op.Grad) op.Value {
	x := g.Value(arg.Input)
	if len(x.Shape()) == 0 {
		return g.G()
	}
	return g.Op("scatter", zeros(g, x), 0, g.Op("argsort", x, 0), g.G())
}

func inferTopk(a op.Args) ([]op.Meta, error) {
	v := a.Value(arg.Input)
	shape := slices.Clone(v.Shape())
	if len(shape) > 0 {
		shape[dimOf(a)] = a.Int(arg.K)
	}
	return []op.Meta{{DType: v.DType(), Shape: shape}, {DType: tensor.I64, Shape: shape}}, nil
}

func sampleTopk(s *op.Sampler) []any {
	shape := s.Shape(0, 3)
	n := max(len(shape), 1)
	d, size := s.Index(n), 1
	if len(shape) > 0 {
		size = shape[d]
	}
	k, sorted := s.Index(size)+1, s.Bool()
	if !sorted {
		k = 1 // of more, PyTorch's order is unspecified
	}
	return []any{sampleRanked(s, shape...), k, d - s.Index(2)*n, s.Bool(), sorted}
}

func inferKthvalue(a op.Args) ([]op.Meta, error) {
	v := a.Value(arg.Input)
	shape := reducedShape(v.Shape(), []int{dimOf(a)}, a.Bool(arg.Keepdim))
	return []op.Meta{{DType: v.DType(), Shape: shape}, {DType: tensor.I64, Shape: shape}}, nil
}

func kthvalueGrad(g *op.Grad) op.Value {
	x := g.Value(arg.Input)
	if len(x.Shape()) == 0 {
		return g.G()
	}
	d := dimOf(g.Args)
	kept := reducedShape(x.Shape(), []int{d}, true)
	return g.Op("scatter", zeros(g, x), d, g.Reshape(g.Out[1], kept), g.Reshape(g.G(), kept))
}

func sampleKthvalue(s *op.Sampler) []any {
	shape := s.Shape(1, 3)
	d := s.Index(len(shape))
	return []any{sampleRanked(s, shape...), s.Index(shape[d]) + 1, d - s.Index(2)*len(shape), s.Bool()}
}

// sampleRanked draws a tensor whose elements all differ, in integers too.
func sampleRanked(s *op.Sampler, shape ...int) *tensor.Tensor {
	if s.DType.IsFloat() {
		return s.Distinct(shape...)
	}
	wide := *s
	wide.DType = tensor.F64
	x := wide.Distinct(shape...)
	for i := range x.Len() {
		v := math.Round(x.Float(i) * 20)
		if s.DType == tensor.U8 {
			v += 64
		}
		x.Set(i, complex(v, 0))
	}
	return x.Convert(s.DType)
}

// sortFunc sorts lines, as kernel.Sort does in one lane type.
type sortFunc func(values, indices, in *tensor.Tensor, dim int, descending bool)

func sortKernels(run func(c *op.Run, f sortFunc) error) []op.Kernel {
	with := func(name string, ds []tensor.DType, f sortFunc) op.Kernel {
		return op.Kernel{Name: name, When: op.DTypeIn(arg.Input, ds...), Run: func(c *op.Run) error { return run(c, f) }}
	}
	return []op.Kernel{
		with("integer", integralSet, kernel.Sort[int64]),
		with("float32", float32Set, kernel.Sort[float32]),
		with("float64", float64Set, kernel.Sort[float64]),
	}
}

func sortRun(c *op.Run, run sortFunc) error {
	values := c.Out[0]
	if len(c.Out) == 1 {
		values = nil
	}
	run(values, c.Out[len(c.Out)-1], c.Tensor(arg.Input), dimOf(c.Args), c.Bool(arg.Descending))
	return nil
}

func checkSort(a op.Args) error {
	if _, err := wrapDim(a.Int(arg.Dim), len(a.Value(arg.Input).Shape())); err != nil {
		return err
	}
	return refuseComplex(arg.Input)(a)
}

func inferSort(a op.Args) ([]op.Meta, error) {
	v := a.Value(arg.Input)
	strides := denseStrides(v)
	return []op.Meta{{DType: v.DType(), Shape: v.Shape(), Strides: strides}, {DType: tensor.I64, Shape: v.Shape(), Strides: strides}}, nil
}

func inferArgsort(a op.Args) ([]op.Meta, error) {
	v := a.Value(arg.Input)
	return one(tensor.I64, v.Shape(), denseStrides(v)), nil
}

func checkTopK(a op.Args) error {
	v := a.Value(arg.Input)
	d, err := wrapDim(a.Int(arg.Dim), len(v.Shape()))
	if err != nil {
		return err
	}
	if k := a.Int(arg.K); k < 0 || k > sizeAlong(v, d) {
		return op.RuntimeError("argument 'k' must be between 0 and the size %d of dimension %d, but is %d", sizeAlong(v, d), d, k)
	}
	return nil
}

func checkKth(a op.Args) error {
	v := a.Value(arg.Input)
	d, err := wrapDim(a.Int(arg.Dim), len(v.Shape()))
	if err != nil {
		return err
	}
	n := sizeAlong(v, d)
	if n == 0 {
		return op.IndexError("expected dimension %d of argument 'input' to have non-zero size", d)
	}
	if k := a.Int(arg.K); k < 1 || k > n {
		return op.RuntimeError("argument 'k' must be between 1 and the size %d of dimension %d, but is %d", n, d, k)
	}
	return nil
}

func runKth(c *op.Run, run sortFunc) error {
	in := c.Tensor(arg.Input)
	if in.Dim() == 0 {
		in, _ = in.View(1)
	}
	d := dimOf(c.Args)
	values, indices := tensor.New(in.DType(), in.Shape()...), tensor.New(tensor.I64, in.Shape()...)
	run(values, indices, in, d, false)
	k := c.Int(arg.K) - 1
	c.Out[0].CopyFrom(values.Narrow(d, k, 1, 1).Reshape(c.Out[0].Shape()...))
	c.Out[1].CopyFrom(indices.Narrow(d, k, 1, 1).Reshape(c.Out[1].Shape()...))
	return nil
}

// orderGrad sends each result's gradient to the place that it came from.
func orderGrad(g *op.Grad) op.Value {
	x := g.Value(arg.Input)
	if len(x.Shape()) == 0 {
		return g.G()
	}
	return g.Op("scatter", zeros(g, x), dimOf(g.Args), g.Out[1], g.G())
}

// searchOps look values up in others.
var searchOps = []*op.Def{
	{
		Sig:     "searchsorted(Tensor sorted_sequence, Tensor input, *, bool out_int32=False, bool right=False, str? side=None, Tensor? sorter=None) -> Tensor",
		Domains: asSampled(arg.SortedSequence, arg.Input, arg.Sorter),
		More:    []string{"searchsorted(Tensor sorted_sequence, Scalar input, *, bool out_int32=False, bool right=False, str? side=None, Tensor? sorter=None) -> Tensor"},
		Names:   []string{"torch.searchsorted"},
		Doc:     "The place in the sorted last dimension of sorted_sequence at which to insert each value: before equal entries, after them with right or side='right'. A sequence of one dimension serves all values; sorter is the order that sorts it.",
		Traits:  op.NoGrad,
		SBP:     searched,
		Reject:  checkSearch,
		Infer:   inferSearch,
		Kernels: searchKernels(arg.SortedSequence, func(c *op.Run, values *tensor.Tensor) searchArgs {
			return searchArgs{seq: c.Tensor(arg.SortedSequence), values: values, sorter: c.Tensor(arg.Sorter), right: c.Bool(arg.Right) || c.Str(arg.Side) == "right"}
		}),
		Sample: sampleSearch,
		Tol:    exactTol("places in its input"),
	},
	{
		Sig:     "bucketize(Tensor input, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor",
		Domains: asSampled(arg.Boundaries),
		More:    []string{"bucketize(Scalar input, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor"},
		Names:   []string{"torch.bucketize"},
		Doc:     "The place in the sorted boundaries at which to insert each value: before equal ones, after them with right.",
		Traits:  op.NoGrad,
		SBP:     axes("input *, boundaries b -> *"),
		Reject:  checkBucketize,
		Infer:   inferSearch,
		Kernels: searchKernels(arg.Boundaries, func(c *op.Run, values *tensor.Tensor) searchArgs {
			return searchArgs{seq: c.Tensor(arg.Boundaries), values: values, right: c.Bool(arg.Right)}
		}),
		Sample: sampleBucketize,
		Tol:    exactTol("places in its input"),
	},
	{
		Sig: "isin(Tensor elements, Tensor test_elements, *, bool assume_unique=False, bool invert=False) -> Tensor",
		More: []string{
			"isin(Tensor elements, Scalar test_elements, *, bool assume_unique=False, bool invert=False) -> Tensor",
			"isin(Scalar elements, Tensor test_elements, *, bool assume_unique=False, bool invert=False) -> Tensor",
		},
		Names:  []string{"torch.isin"},
		Doc:    "Whether each element is one of test_elements; with invert, whether it is not. NaN equals nothing.",
		Traits: op.NoGrad,
		SBP:    axes("elements * -> *"),
		Reject: checkIsin,
		Infer:  inferIsin,
		Kernels: []op.Kernel{
			isinKernel("integer", integralSet, kernel.IsIn[int64]),
			isinKernel("float32", float32Set, kernel.IsIn[float32]),
			isinKernel("float64", float64Set, kernel.IsIn[float64]),
		},
		Sample: sampleIsin,
		Tol:    exactTol("comparisons"),
	},
}

func checkBucketize(a op.Args) error {
	if n := len(a.Value(arg.Boundaries).Shape()); n != 1 {
		return op.RuntimeError("argument 'boundaries' must have 1 dimension, but has %d", n)
	}
	return checkSearchTypes(a, arg.Boundaries)
}

func sampleBucketize(s *op.Sampler) []any {
	return []any{s.Tensor(-2, 2, s.Shape(0, 3)...), sampleSorted(s, 1+s.Index(4)), op.Kw("right", s.Bool()), op.Kw("out_int32", s.Bool())}
}

func checkIsin(a op.Args) error {
	for _, name := range []op.TensorArg{arg.Elements, arg.TestElements} {
		if v := a.Value(name); v != nil {
			if err := rejectTypes(name, tensor.Bool, tensor.BF16, tensor.C64, tensor.C128)(a); err != nil {
				return err
			}
		} else if d := number(a, name).DType(); d == tensor.Bool || d.IsComplex() {
			return op.RuntimeError("not implemented for argument '%s' of type %s", name, op.TypeName(number(a, name).Any()))
		}
	}
	return nil
}

func inferIsin(a op.Args) ([]op.Meta, error) {
	shape := []int{}
	if v := a.Value(arg.Elements); v != nil {
		shape = v.Shape()
	}
	return one(tensor.Bool, shape, nil), nil
}

func sampleIsin(s *op.Sampler) []any {
	x := s.Tensor(-2, 2, s.Shape(0, 3)...)
	test := s.Tensor(-2, 2, 3)
	test.Set(0, x.At(0))
	return []any{x, test, op.Kw("invert", s.Bool()), op.Kw("assume_unique", false)}
}

// searchArgs are the arguments of a search in normal form.
type searchArgs struct {
	seq, values, sorter *tensor.Tensor
	right               bool
}

func searchKernels(seq op.TensorArg, of func(c *op.Run, values *tensor.Tensor) searchArgs) []op.Kernel {
	with := func(name string, ds []tensor.DType, search func(out, seq, values, sorter *tensor.Tensor, right bool)) op.Kernel {
		return op.Kernel{Name: name, When: resultIn(ds, seq, arg.Input), Run: func(c *op.Run) error {
			d := c.Promoted(seq, arg.Input)
			a := of(c, operand(c.Args, arg.Input, d).Convert(d))
			if a.sorter != nil {
				if err := checkSorter(a.sorter, sizeOf(a.seq, 1)); err != nil {
					return err
				}
			}
			out := tensor.New(tensor.I64, c.Out[0].Shape()...)
			search(out, a.seq.Convert(d), a.values, a.sorter, a.right)
			c.Out[0].CopyFrom(out)
			return nil
		}}
	}
	return []op.Kernel{
		with("integer", integerTypes, kernel.Search[int64]),
		with("float32", float32Set, kernel.Search[float32]),
		with("float64", float64Set, kernel.Search[float64]),
	}
}

// checkSorter rejects places outside the sequence; PyTorch 1.13 reads what lies there.
func checkSorter(sorter *tensor.Tensor, n int) error {
	for _, v := range contiguousData[int64](sorter) {
		if v < 0 || v >= int64(n) {
			return op.RuntimeError("argument 'sorter' has %d, which is outside a sequence of %d entries", v, n)
		}
	}
	return nil
}

func checkSearchTypes(a op.Args, seq op.TensorArg) error {
	if d := a.Promoted(seq, arg.Input); d == tensor.Bool || d.IsComplex() {
		return op.RuntimeError("not implemented for arguments '%s' and 'input' of dtype %s", seq, d)
	}
	return nil
}

func checkSearch(a op.Args) error {
	seq, v := a.Value(arg.SortedSequence).Shape(), a.Value(arg.Input)
	var values []int
	if v != nil {
		values = v.Shape()
	}
	switch n := len(seq); {
	case a.Has(arg.Side) && a.Str(arg.Side) != "left" && a.Str(arg.Side) != "right":
		return op.RuntimeError("argument 'side' must be 'left' or 'right', but is '%s'", a.Str(arg.Side))
	case a.Bool(arg.Right) && a.Str(arg.Side) == "left":
		return op.RuntimeError("arguments 'side' and 'right' cannot be opposites: side='left' with right=True")
	case n == 0:
		return op.RuntimeError("argument 'sorted_sequence' must have at least one dimension")
	case n != 1 && len(values) == 0:
		return op.RuntimeError("argument 'input' can be a scalar only when 'sorted_sequence' has 1 dimension, but it has %d", n)
	case n != 1 && (n != len(values) || !slices.Equal(seq[:n-1], values[:n-1])):
		return op.RuntimeError("argument 'sorted_sequence' of shape %s must have 1 dimension or all but the last dimension of 'input', %s", tensor.ShapeString(seq), tensor.ShapeString(values))
	}
	if sorter := a.Value(arg.Sorter); sorter != nil {
		switch {
		case !slices.Equal(sorter.Shape(), seq):
			return op.RuntimeError("argument 'sorter' must have the shape %s of 'sorted_sequence', not %s", tensor.ShapeString(seq), tensor.ShapeString(sorter.Shape()))
		case sorter.DType() != tensor.I64:
			return op.RuntimeError("argument 'sorter' must have dtype int64, not %s", sorter.DType())
		}
	}
	return checkSearchTypes(a, arg.SortedSequence)
}

func inferSearch(a op.Args) ([]op.Meta, error) {
	d, shape := tensor.I64, []int{}
	if a.Bool(arg.OutInt32) {
		d = tensor.I32
	}
	if v := a.Value(arg.Input); v != nil {
		shape = v.Shape()
	}
	return one(d, shape, nil), nil
}

// sampleSorted draws a sorted vector.
func sampleSorted(s *op.Sampler, n int) *tensor.Tensor {
	x := s.Tensor(-2, 2, n)
	values := make([]float64, n)
	for i := range values {
		values[i] = x.Float(i)
	}
	slices.Sort(values)
	return tensor.Float64s(s.DType, []int{n}, values...)
}

func sampleSearch(s *op.Sampler) []any {
	n := 1 + s.Index(4)
	seq := sampleSorted(s, n)
	args := []any{seq, s.Tensor(-2, 2, s.Shape(0, 3)...), op.Kw("right", s.Bool()), op.Kw("out_int32", s.Bool())}
	switch s.Index(3) {
	case 1:
		args[0], args[1] = seq.Reshape(1, n), s.Tensor(-2, 2, 1, 3)
	case 2:
		order := tensor.New(tensor.I64, n)
		reversed := tensor.New(seq.DType(), n)
		for i := range n {
			order.SetInt(i, int64(n-1-i))
			reversed.Set(n-1-i, seq.At(i))
		}
		args[0], args = reversed, append(args, op.Kw("sorter", order), op.Kw("side", []string{"left", "right"}[s.Index(2)]))
		args[2] = op.Kw("right", false)
	}
	return args
}

func isinKernel(name string, ds []tensor.DType, f func(out, x, test *tensor.Tensor, invert bool)) op.Kernel {
	return op.Kernel{Name: name, When: resultIn(ds, arg.Elements, arg.TestElements), Run: func(c *op.Run) error {
		d := c.Promoted(arg.Elements, arg.TestElements)
		f(c.Out[0], operand(c.Args, arg.Elements, d).Convert(d), operand(c.Args, arg.TestElements, d).Convert(d), c.Bool(arg.Invert))
		return nil
	}}
}
