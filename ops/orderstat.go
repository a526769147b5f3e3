package ops

import (
	"math"
	"slices"

	"plumb/internal/arg"
	"plumb/internal/kernel"
	"plumb/op"
	"plumb/tensor"
)

var orderStatOps = []*op.Def{
	medianAll("median", "NaN if there is one", false),
	medianDim("median", "a NaN is the median of its row", false),
	medianAll("nanmedian", "without NaN", true),
	medianDim("nanmedian", "without NaN", true),
	{
		Sig:       "mode(Tensor input, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)",
		Domains:   asSampled(arg.Input),
		Names:     both("mode"),
		Doc:       "Most frequent element along dim, the smallest of several, and an index at which it occurs: PyTorch does not say which.",
		SBP:       reduced,
		Reject:    firstError(statNonEmpty(op.IndexError), rejectTypes(arg.Input, complexTypes...)),
		Infer:     inferStatPair(statInputType, statIndexType),
		Kernels:   pairKernels(kernel.ModeRow[int64], kernel.ModeRow[float32], kernel.ModeRow[float64]),
		Canonical: firstPlaces,
		Grad:      op.Gradient(maxDimGrad),
		Sample:    sampleDistinctDim,
		Tol:       exactTol("one of its inputs"),
	},
	quantilePlaces,
	quantileDef("quantile", "NaN if its row has one", false),
	quantileDef("nanquantile", "without NaN", true),
	{
		Sig:           "bincount(Tensor input, Tensor? weights=None, int minlength=0) -> Tensor",
		Names:         both("bincount"),
		Doc:           "Counts how often each of the integers 0, 1, … occurs, or sums the weights at their places; at least minlength results. PyTorch has no gradient of weights.",
		Traits:        op.Dynamic,
		NotSplittable: "its length depends on all elements",
		Reject:        checkBincount,
		Infer:         inferBincount,
		Kernels:       []op.Kernel{{Name: "count", Run: bincountRun}},
		Grad:          noDerivative("bincount", arg.Weights),
		Fixed:         []op.Handle{arg.Input, arg.Weights},
		Sample:        sampleBincount,
		Tol:           accumulating(func(a op.Args) int { return tensor.NumElements(a.Value(arg.Input).Shape()) }, "a sum of at most Terms weights"),
	},
	{
		Sig:     "histc(Tensor input, int bins=100, Scalar min=0, Scalar max=0) -> Tensor",
		Domains: map[op.TensorArg]op.Domain{arg.Input: op.IntRange},
		Names:   both("histc"),
		Doc:     "Counts of the elements in equal intervals from min to max, the range of the elements when these are equal; the last interval has its end.",
		Traits:  op.NoGrad,
		SBP:     provided(func(a op.Args) bool { return a.Scalar(arg.Min).Float() != a.Scalar(arg.Max).Float() }, summing),
		Reject:  checkHistc,
		Infer:   func(a op.Args) ([]op.Meta, error) { return one(statInputType(a), []int{a.Int(arg.Bins)}, nil), nil },
		Kernels: []op.Kernel{
			{Name: "float32", When: op.DTypeIn(arg.Input, float32Set...), Run: histcRun[float32]},
			{Name: "float64", When: op.DTypeIn(arg.Input, tensor.F64), Run: histcRun[float64]},
		},
		Sample: sampleHistc,
		Tol:    exactTol("a count"),
	},
	composed(&op.Def{
		Sig:    "diff(Tensor input, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor",
		Names:  both("diff"),
		Doc:    "Differences of neighbours along dim, n times: out[i] = input[i+1] − input[i], with prepend and append joined on first, unless n is 0. Of bools, whether they differ.",
		Reject: checkDiff,
		Saves:  savesNothing,
		Sample: sampleDiff,
		Tol:    accumulating(func(a op.Args) int { return 1 << min(a.Int(arg.N), 20) }, "a sum of 2ⁿ terms"),
	}, differences),
}

func inferBincount(a op.Args) ([]op.Meta, error) {
	n, err := bins(a)
	return one(binType(a), []int{n}, nil), err
}

func sampleBincount(s *op.Sampler) []any {
	n := int(s.Int(0, 12))
	x := tensor.New(tensor.I64, n)
	for i := range n {
		x.SetInt(i, s.Int(0, 7))
	}
	if s.Bool() {
		return []any{x}
	}
	return []any{x, s.Tensor(-2, 2, n), s.Int(0, 10)}
}

func sampleHistc(s *op.Sampler) []any {
	x := s.Tensor(-2, 2, s.Shape(0, 3)...)
	if s.Bool() {
		return []any{x, s.Int(1, 10)}
	}
	return []any{x, s.Int(1, 10), s.Float(-2, 0), s.Float(0.1, 2)}
}

func sampleDiff(s *op.Sampler) []any {
	shape := s.Shape(1, 3)
	d := s.Index(len(shape))
	args := []any{s.Tensor(-2, 2, shape...), s.Int(1, 3), d}
	if s.Bool() {
		edge := slices.Clone(shape)
		edge[d] = 1
		args = append(args, s.Tensor(-2, 2, edge...), s.Tensor(-2, 2, shape...))
	}
	return args
}

func medianAll(id, nan string, without bool) *op.Def {
	return &op.Def{
		Sig:           id + "(Tensor input) -> Tensor",
		Domains:       asSampled(arg.Input),
		Names:         both(id),
		Traits:        op.Monotone,
		Doc:           "Median of all elements, the lower one of two; " + nan + ". Its gradient is spread evenly over all elements that equal it.",
		NotSplittable: dependsOnAll,
		Reject:        firstError(rejectTypes(arg.Input, append(complexTypes, tensor.Bool)...), rejectEmptyIntegers),
		Infer:         inferStat(statInputType),
		Kernels:       medianKernels(without),
		Grad:          op.Gradient(medianAllGrad),
		Sample:        func(s *op.Sampler) []any { return []any{s.Distinct(s.Shape(0, 4)...)} },
		Tol:           exactTol("one of its inputs"),
	}
}

func medianAllGrad(g *op.Grad) op.Value {
	if tensor.NumElements(g.Value(arg.Input).Shape()) == 0 {
		return zeros(g, g.Value(arg.Input))
	}
	return spreadEvenly(g)
}

func medianDim(id, nan string, without bool) *op.Def {
	return &op.Def{
		Sig:       id + ".dim(Tensor input, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
		Domains:   asSampled(arg.Input),
		Names:     both(id),
		Traits:    op.Monotone,
		Doc:       "Medians along dim, the lower one of two, and the index of each that a stable sort gives; " + nan + ". The gradient goes to that index.",
		SBP:       reduced,
		Reject:    firstError(statNonEmpty(op.IndexError), rejectTypes(arg.Input, append(complexTypes, tensor.Bool)...)),
		Infer:     inferStatPair(statInputType, statIndexType),
		Kernels:   medianKernels(without),
		Canonical: firstPlaces,
		Grad:      op.Gradient(maxDimGrad),
		Sample:    sampleDistinctDim,
		Tol:       exactTol("one of its inputs"),
	}
}

func medianKernels(without bool) []op.Kernel {
	return []op.Kernel{
		{Name: "integer", When: op.DTypeIn(arg.Input, integerTypes...), Run: medianRun[int64](without)},
		{Name: "float32", When: op.DTypeIn(arg.Input, float32Set...), Run: medianRun[float32](without)},
		{Name: "float64", When: op.DTypeIn(arg.Input, tensor.F64), Run: medianRun[float64](without)},
	}
}

func medianRun[T float32 | float64 | int64](without bool) func(c *op.Run) error {
	return func(c *op.Run) error {
		dims, err := statDims(c.Args)
		if err != nil {
			return err
		}
		var indices *tensor.Tensor
		if len(c.Out) > 1 {
			indices = c.Out[1]
		}
		kernel.Medians[T](c.Out[0], indices, c.Tensor(arg.Input), dims, without)
		return nil
	}
}

// rejectEmptyIntegers rejects what has no NaN to result in.
func rejectEmptyIntegers(a op.Args) error {
	v := a.Value(arg.Input)
	if v.DType().IsInt() && tensor.NumElements(v.Shape()) == 0 {
		return op.RuntimeError("argument 'input' has no elements, and its dtype %s no NaN", v.DType())
	}
	return nil
}

// quantileDef is quantile or nanquantile: an interpolation between the elements
// that quantile.places names.
func quantileDef(id, nan string, without bool) *op.Def {
	params := ", int? dim=None, bool keepdim=False, *, str interpolation='linear') -> Tensor"
	return composed(&op.Def{
		Sig:      id + "(Tensor input, Tensor q" + params,
		More:     []string{id + "(Tensor input, float q" + params},
		Domains:  map[op.TensorArg]op.Domain{arg.Q: op.UnitRange},
		Names:    both(id),
		Doc:      "Quantiles q, from 0 to 1, along dim, of all elements by default, " + nan + ": the element at rank q·(n − 1), interpolated as asked: linear, lower, higher, midpoint or nearest. A q of one dimension is the first dimension of the result.",
		Reject:   checkQuantile,
		Constant: constantQuantile,
		Sample:   sampleQuantile,
		Tol:      accumulating(func(op.Args) int { return 2 }, "an interpolation between two inputs, which may cancel"),
	}, func(b op.Builder, a op.Args) op.Value {
		x := rowsLast(b, a)
		p := b.All("quantile.places", x, a.Any(arg.QFloat), a.Str(arg.Interpolation), without)
		lower := b.Op("gather", x, -1, p[0])
		if between := a.Str(arg.Interpolation); between != "linear" && between != "midpoint" {
			return quantileResult(b, a, lower)
		}
		upper, weight := b.Op("gather", x, -1, p[1]), p[2]
		step := b.Sub(upper, lower)
		near := b.Op("lt", weight, 0.5)
		return quantileResult(b, a, b.Op("where", near, b.Add(lower, b.Mul(weight, step)), b.Sub(upper, b.Mul(step, b.Sub(1.0, weight)))))
	})
}

func constantQuantile(a op.Args) []op.TensorArg {
	if a.Str(arg.Interpolation) != "linear" {
		return []op.TensorArg{arg.Q} // the rank that is chosen is constant between jumps
	}
	return nil
}

// quantilesIn returns the quantiles of a call.
func quantilesIn[T float32 | float64](c *op.Run) []T {
	if q, ok := c.Any(arg.QFloat).(float64); ok {
		return []T{T(q)}
	}
	return contiguousData[T](c.Tensor(arg.Q))
}

// rowsLast brings the reduced dimension to the end.
func rowsLast(b op.Builder, a op.Args) op.Value {
	x := a.Value(arg.Input)
	shape := x.Shape()
	if !a.Has(arg.Dim) || len(shape) == 0 {
		return b.Reshape(x, []int{tensor.NumElements(shape)})
	}
	d, err := wrapDim(a.Int(arg.Dim), len(shape))
	if err != nil {
		op.Fail(err)
	}
	order := slices.DeleteFunc(allDims(len(shape)), func(i int) bool { return i == d })
	return b.Op("permute", x, append(order, d))
}

// quantileResult brings the quantiles, along the last dimension, to the front.
func quantileResult(b op.Builder, a op.Args, v op.Value) op.Value {
	shape, err := statShape(a)
	if err != nil {
		op.Fail(err)
	}
	if q := a.Value(arg.Q); q == nil || len(q.Shape()) == 0 {
		return b.Reshape(v, shape)
	}
	n := len(shape)
	v = b.Reshape(v, append(slices.Clone(shape), sizeOf(v, 1)))
	return b.Op("permute", v, append([]int{n}, allDims(n)...))
}

var interpolations = []string{"linear", "lower", "higher", "midpoint", "nearest"}

func checkQuantile(a op.Args) error {
	x := a.Value(arg.Input)
	if d := x.DType(); d != tensor.F32 && d != tensor.F64 {
		return op.RuntimeError("argument 'input' must be float32 or float64, not %s", d)
	}
	if tensor.NumElements(x.Shape()) == 0 {
		return op.RuntimeError("argument 'input' must have an element")
	}
	if !slices.Contains(interpolations, a.Str(arg.Interpolation)) {
		return op.RuntimeError("argument 'interpolation' must be one of linear, lower, higher, midpoint and nearest, not %q", a.Str(arg.Interpolation))
	}
	if q := a.Value(arg.Q); q != nil {
		return checkQuantiles(q, x.DType())
	}
	if q, _ := a.Any(arg.QFloat).(float64); !(q >= 0 && q <= 1) {
		return op.RuntimeError("argument 'q' must lie in [0, 1], but is %v", q)
	}
	return nil
}

func checkQuantiles(q op.Value, d tensor.DType) error {
	switch {
	case len(q.Shape()) > 1:
		return op.RuntimeError("argument 'q' must be a number or have at most 1 dimension")
	case q.DType() != d:
		return op.RuntimeError("argument 'q' must have the dtype %s of input, not %s", d, q.DType())
	}
	if t, ok := q.(*tensor.Tensor); ok {
		for i := range t.Len() {
			if v := t.Float(i); !(v >= 0 && v <= 1) {
				return op.RuntimeError("argument 'q' must lie in [0, 1], but element %d is %v", i, v)
			}
		}
	}
	return nil
}

func sampleQuantile(s *op.Sampler) []any {
	x := s.Distinct(s.Shape(1, 3)...)
	args := []any{x, s.Float(0, 1), nil, s.Bool(), op.Kw("interpolation", interpolations[s.Index(5)])}
	if s.Bool() {
		args[1] = s.Tensor(0.02, 0.98, 1+s.Index(3))
	}
	if s.Bool() {
		args[2] = s.Index(x.Dim())
	}
	return args
}

// quantilePlaces is the step of quantile that chooses.
var quantilePlaces = &op.Def{
	Sig:   "quantile.places(Tensor input, Tensor q, str interpolation, bool without_nan) -> (Tensor lower, Tensor upper, Tensor weight, Tensor span)",
	More:  []string{"quantile.places(Tensor input, float q, str interpolation, bool without_nan) -> (Tensor lower, Tensor upper, Tensor weight, Tensor span)"},
	Doc:   "For each row, the last dimension of input, and each quantile: the places of the two elements between which it lies, the weight of the upper one, and the range of the ranks: the number of elements less 1, or 0 where NaN decides.",
	SBP:   axes("input *., q q -> *q | input *., q  -> *."),
	Infer: inferQuantilePlaces,
	Kernels: []op.Kernel{
		{Name: "float32", When: op.DTypeIn(arg.Input, tensor.F32), Run: placesRun[float32]},
		{Name: "float64", When: op.DTypeIn(arg.Input, tensor.F64), Run: placesRun[float64]},
	},
	Grad:   op.GradientOf(arg.Q, quantilePlacesGrad),
	Sample: sampleQuantilePlaces,
	Tol:    ulpTol(4, "a rank"),
}

func inferQuantilePlaces(a op.Args) ([]op.Meta, error) {
	x := a.Value(arg.Input)
	shape := slices.Clone(x.Shape())
	shape[len(shape)-1] = 1
	if q := a.Value(arg.Q); q != nil {
		shape[len(shape)-1] = tensor.NumElements(q.Shape())
	}
	place, weight := op.Meta{DType: tensor.I64, Shape: shape}, op.Meta{DType: x.DType(), Shape: shape}
	return []op.Meta{place, place, weight, weight}, nil
}

func quantilePlacesGrad(g *op.Grad) op.Value {
	if g.Cot[2] == nil || g.Str(arg.Interpolation) != "linear" {
		return nil
	}
	q := g.Value(arg.Q)
	slope := g.Op("where", g.Op("eq", g.Out[3], 0), 0.0, g.Mul(g.Cot[2], g.Out[3]))
	slope = g.SumTo(slope, []int{tensor.NumElements(q.Shape())})
	return g.Reshape(slope, q.Shape())
}

func sampleQuantilePlaces(s *op.Sampler) []any {
	return []any{s.Distinct(s.Shape(1, 3)...), s.Tensor(0.02, 0.98, 1+s.Index(3)), "linear", s.Bool()}
}

func placesRun[T float32 | float64](c *op.Run) error {
	var f func(rank float64) (lower, upper, weight float64)
	switch c.Str(arg.Interpolation) {
	case "lower":
		f = func(r float64) (float64, float64, float64) { return math.Floor(r), math.Floor(r), 0 }
	case "higher":
		f = func(r float64) (float64, float64, float64) { return math.Ceil(r), math.Ceil(r), 0 }
	case "nearest":
		f = func(r float64) (float64, float64, float64) { return math.RoundToEven(r), math.RoundToEven(r), 0 }
	case "midpoint":
		f = func(r float64) (float64, float64, float64) { return math.Floor(r), math.Ceil(r), 0.5 }
	default:
		f = func(r float64) (float64, float64, float64) { return math.Floor(r), math.Ceil(r), r - math.Floor(r) }
	}
	kernel.QuantilePlaces(kernel.Places[T]{
		Lower: tensor.Data[int64](c.Out[0]), Upper: tensor.Data[int64](c.Out[1]),
		Weight: tensor.Data[T](c.Out[2]), Span: tensor.Data[T](c.Out[3]),
	}, c.Tensor(arg.Input), quantilesIn[T](c), f, c.Bool(arg.WithoutNan))
	return nil
}

func checkBincount(a op.Args) error {
	x, w := a.Value(arg.Input), a.Value(arg.Weights)
	switch {
	case !x.DType().IsInt() || x.DType() == tensor.Bool:
		return op.RuntimeError("not implemented for argument 'input' of dtype %s", x.DType())
	case a.Int(arg.Minlength) < 0:
		return op.RuntimeError("argument 'minlength' must not be negative, but is %d", a.Int(arg.Minlength))
	case len(x.Shape()) != 1:
		return op.RuntimeError("argument 'input' must have 1 dimension, but has size %s", tensor.ShapeString(x.Shape()))
	case w != nil && x.Shape()[0] > 0 && !slices.Equal(w.Shape(), x.Shape()):
		return op.RuntimeError("argument 'weights' must have the size %s of input, but has %s", tensor.ShapeString(x.Shape()), tensor.ShapeString(w.Shape()))
	}
	return nil
}

// bins returns the number of results, which depends on the elements.
func bins(a op.Args) (int, error) {
	t, err := elementsOf(a.Value(arg.Input), "input")
	if err != nil {
		return 0, err
	}
	n := a.Int(arg.Minlength)
	for i := range t.Len() {
		v := int(real(t.At(i)))
		if v < 0 {
			return 0, op.RuntimeError("argument 'input' must not have negative elements, but element %d is %d", i, v)
		}
		n = max(n, v+1)
	}
	return n, nil
}

func binType(a op.Args) tensor.DType {
	w := a.Value(arg.Weights)
	switch {
	case w == nil || tensor.NumElements(w.Shape()) == 0 || tensor.NumElements(a.Value(arg.Input).Shape()) == 0:
		return tensor.I64
	case w.DType() == tensor.F32:
		return tensor.F32
	}
	return tensor.F64
}

func bincountRun(c *op.Run) error {
	x, out := c.Tensor(arg.Input).Convert(tensor.I64), c.Out[0]
	sums := make([]float64, out.Len())
	places := contiguousData[int64](x)
	if w := c.Tensor(arg.Weights); w != nil && len(places) > 0 {
		for i, v := range floats(w) {
			sums[places[i]] += v
		}
	} else {
		for _, p := range places {
			sums[p]++
		}
	}
	store(out, sums)
	return nil
}

func checkHistc(a op.Args) error {
	switch {
	case a.Int(arg.Bins) <= 0:
		return op.RuntimeError("argument 'bins' must be positive, but is %d", a.Int(arg.Bins))
	case a.Scalar(arg.Max).Float() < a.Scalar(arg.Min).Float():
		return op.RuntimeError("argument 'max' must not be smaller than 'min'")
	case a.Scalar(arg.Max).Float() == a.Scalar(arg.Min).Float() && tensor.NumElements(a.Value(arg.Input).Shape()) > 0:
		return refuseComplex(arg.Input)(a) // whose range is asked for first
	}
	return nil
}

// histcRange returns the range of the intervals.
func histcRange(c *op.Run) (lo, hi float64, err error) {
	lo, hi = c.Scalar(arg.Min).Float(), c.Scalar(arg.Max).Float()
	if x := c.Tensor(arg.Input); lo == hi && x.Len() > 0 {
		values := floats(x)
		lo, hi = slices.Min(values), slices.Max(values)
	}
	switch {
	case math.IsNaN(lo+hi) || math.IsInf(lo, 0) || math.IsInf(hi, 0):
		return 0, 0, op.RuntimeError("the range [%v, %v] of argument 'input' is not finite", lo, hi)
	case lo == hi:
		lo, hi = lo-1, hi+1
	}
	return lo, hi, nil
}

func histcRun[T float32 | float64](c *op.Run) error {
	lo, hi, err := histcRange(c)
	if err != nil {
		return err
	}
	counts := make([]float64, c.Int(arg.Bins))
	kernel.Histogram(counts, contiguousData[T](toFloat32(c.Tensor(arg.Input))), T(lo), T(hi))
	store(c.Out[0], counts)
	return nil
}

func checkDiff(a op.Args) error {
	shape := a.Value(arg.Input).Shape()
	switch n := a.Int(arg.N); {
	case len(shape) == 0:
		return op.RuntimeError("argument 'input' must have at least 1 dimension")
	case n < 0:
		return op.RuntimeError("argument 'n' must not be negative, but is %d", n)
	}
	d, err := wrapDim(a.Int(arg.Dim), len(shape))
	if err != nil {
		return err
	}
	for _, name := range []op.TensorArg{arg.Prepend, arg.Append} {
		v := a.Value(name)
		if v == nil {
			continue
		}
		if len(v.Shape()) != len(shape) {
			return op.RuntimeError("argument '%s' must have the %d dimensions of input, but has %d", name, len(shape), len(v.Shape()))
		}
		for i, n := range v.Shape() {
			if i != d && n != shape[i] {
				return op.RuntimeError("argument '%s' must have the size %d of input in dimension %d, but has %d", name, shape[i], i, n)
			}
		}
	}
	return nil
}

func differences(b op.Builder, a op.Args) op.Value {
	x := a.Value(arg.Input)
	d, err := wrapDim(a.Int(arg.Dim), len(x.Shape()))
	if err != nil {
		op.Fail(err)
	}
	n := a.Int(arg.N)
	if n == 0 {
		return b.Op("clone", x)
	}
	if parts := valuesOf(a, []op.Handle{arg.Prepend, arg.Input, arg.Append}); len(parts) > 1 {
		x = b.Op("cat", parts, d)
	}
	subtract := "sub"
	if x.DType() == tensor.Bool {
		subtract = "ne"
	}
	if n < 0 { // as PyTorch has it
		return b.Op("clone", x)
	}
	for range min(n, x.Shape()[d]) {
		rest := x.Shape()[d] - 1
		x = b.Op(subtract, b.Op("narrow", x, d, 1, rest), b.Op("narrow", x, d, 0, rest))
	}
	return x
}
