package ops

import (
	"fmt"
	"math"
	"math/cmplx"
	"slices"

	"plumb/internal/arg"
	"plumb/internal/truth"
	"plumb/op"
	"plumb/tensor"
)

const (
	makeOptions = "*, dtype? dtype=None, device? device=None, bool requires_grad=False"
	likeOptions = "*, dtype? dtype=None, device? device=None, bool requires_grad=False, MemoryFormat? memory_format=None"
)

// createOps make tensors from numbers.
var createOps = slices.Concat([]*op.Def{
	filled("zeros", 0), filled("ones", 1),
	filledLike("zeros_like", 0), filledLike("ones_like", 1),
	filledNew("new_zeros", 0), filledNew("new_ones", 1),
	created(&op.Def{
		Sig:           "full(int[] size, Scalar fill_value, " + makeOptions + ") -> Tensor",
		Names:         []string{"torch.full"},
		Doc:           "A tensor whose elements are all fill_value, of its dtype unless dtype says otherwise.",
		NotSplittable: createsAll,
		Infer:         sized(func(a op.Args) tensor.DType { return a.Scalar(arg.FillValue).DType() }),
		Sample:        func(s *op.Sampler) []any { return []any{s.Shape(0, 4), s.Int(-5, 6), op.Kw("dtype", s.DType)} },
	}, fillValue),
	created(&op.Def{
		Magnitude: "zeros_like",
		Sig:       "full_like(Tensor input, Scalar fill_value, " + likeOptions + ") -> Tensor",
		Names:     []string{"torch.full_like"},
		Doc:       "A tensor like the input whose elements are all fill_value.",
		SBP:       pointwise,
		Infer:     alike,
		Sample:    func(s *op.Sampler) []any { return []any{s.Tensor(-2, 2, s.Shape(0, 4)...), s.Int(-5, 6)} },
	}, fillValue),
	created(&op.Def{
		Magnitude:     "new_zeros",
		Sig:           "new_full(Tensor input, int[] size, Scalar fill_value, " + makeOptions + ") -> Tensor",
		Names:         []string{"Tensor.new_full"},
		Doc:           "A tensor of the input's dtype and the given size whose elements are all fill_value.",
		NotSplittable: createsAll,
		Infer:         sized(func(a op.Args) tensor.DType { return a.Value(arg.Input).DType() }),
		Sample:        func(s *op.Sampler) []any { return []any{s.Tensor(-2, 2, 1), s.Shape(0, 4), s.Int(-5, 6)} },
	}, fillValue),
	created(&op.Def{
		Sig:           "tensor(Data data, " + makeOptions + ") -> Tensor",
		Names:         []string{"torch.tensor"},
		Doc:           "A tensor of a number or of nested lists of numbers: bool, int64, float32 or complex64 by their kind unless dtype says otherwise.",
		NotSplittable: createsAll,
		Infer: func(a op.Args) ([]op.Meta, error) {
			d, shape, err := shapeOfList(a.Any(arg.Data))
			return one(chosen(a, d), shape, nil), err
		},
		Sample: func(s *op.Sampler) []any { return []any{[]any{[]any{1.5, s.Int(-5, 6)}, []any{-2.25, true}}} },
	}, func(c *op.Run) error {
		at := 0
		return fillList(c.Out[0], c.Any(arg.Data), &at)
	}),
	created(&op.Def{
		Sig:           "scalar_tensor(Scalar s, " + makeOptions + ") -> Tensor",
		Names:         []string{"torch.scalar_tensor"},
		Doc:           "A 0-d tensor of the number.",
		NotSplittable: createsAll,
		Infer: func(a op.Args) ([]op.Meta, error) {
			return one(chosen(a, tensor.F32), []int{}, nil), fits(a.Scalar(arg.S), chosen(a, tensor.F32))
		},
		Sample: func(s *op.Sampler) []any { return []any{s.Int(-5, 6)} },
	}, func(c *op.Run) error { return fillWith(c, c.Scalar(arg.S)) }),
	created(&op.Def{
		Sig:           "arange(Scalar start, Scalar end, Scalar step=1, " + makeOptions + ") -> Tensor",
		More:          []string{"arange(Scalar end, " + makeOptions + ") -> Tensor"},
		Names:         []string{"torch.arange"},
		Doc:           "start, start + step, … below end; int64 when all three are integers.",
		NotSplittable: createsAll,
		Infer:         inferArange,
		Tol:           stepsTol,
		Errors:        arangeErrors,
		Sample: func(s *op.Sampler) []any {
			step := float64(1+s.Index(4)) * 0.25
			start := float64(s.Index(5))
			return []any{start, start + 3.5*step, step, op.Kw("dtype", s.DType)}
		},
	}, runArange),
	created(&op.Def{
		Sig:           "eye(int n, int? m=None, " + makeOptions + ") -> Tensor",
		Names:         []string{"torch.eye"},
		Doc:           "An n by m matrix, m = n by default, with ones on the main diagonal and zeros elsewhere.",
		NotSplittable: createsAll,
		Infer: func(a op.Args) ([]op.Meta, error) {
			n, m := a.Int(arg.N), a.Int(arg.N)
			if n < 0 {
				return nil, op.RuntimeError("n must be greater or equal to 0, got %d", n)
			}
			if a.Has(arg.M) {
				m = a.Int(arg.M)
			}
			if m < 0 {
				return nil, op.RuntimeError("m must be greater or equal to 0, got %d", m)
			}
			return one(chosen(a, tensor.F32), []int{n, m}, nil), nil
		},
		Sample: func(s *op.Sampler) []any { return []any{s.Index(5), s.Index(5), op.Kw("dtype", s.DType)} },
	}, func(c *op.Run) error {
		out := c.Out[0]
		for i := range min(out.Shape()[0], out.Shape()[1]) {
			out.Set(i*out.Shape()[1]+i, 1)
		}
		return nil
	}),
	created(&op.Def{
		Sig:           "linspace(Scalar start, Scalar end, int steps, " + makeOptions + ") -> Tensor",
		Names:         []string{"torch.linspace"},
		Doc:           "steps numbers from start to end at equal distances; an integer dtype truncates start and end first, and then each number.",
		NotSplittable: createsAll,
		Infer:         inferSteps,
		Tol:           stepsTol,
		Errors:        linspaceErrors,
		Sample: func(s *op.Sampler) []any {
			var start, end any = float64(s.Int(-4, 5)), float64(s.Int(-4, 5))
			if s.DType.IsComplex() {
				end = complex(float64(s.Int(-4, 5)), float64(s.Int(-4, 5)))
			}
			return []any{start, end, s.Index(8), op.Kw("dtype", s.DType)}
		},
	}, func(c *op.Run) error {
		re, im := steps(c.Args)
		for i := range c.Out[0].Len() {
			if c.Out[0].DType().IsComplex() {
				c.Out[0].Set(i, complex(re(i), im(i)))
			} else {
				setNumber(c.Out[0], i, re(i))
			}
		}
		return nil
	}),
	created(&op.Def{
		Sig:           "logspace(Scalar start, Scalar end, int steps, float base=10.0, " + makeOptions + ") -> Tensor",
		Names:         []string{"torch.logspace"},
		Doc:           "base to the power of steps numbers from start to end at equal distances; an integer dtype truncates start and end first, and then each power.",
		NotSplittable: createsAll,
		Infer:         inferSteps,
		Tol:           ulpTol(64, "the exponent is rounded, which base^x magnifies by |x·ln base|"),
		Sample: func(s *op.Sampler) []any {
			return []any{float64(s.Int(-3, 3)), float64(s.Int(-3, 3)), s.Index(8), []float64{2, 10}[s.Index(2)]}
		},
	}, func(c *op.Run) error {
		line, _ := steps(c.Args)
		base := c.Float(arg.Base)
		for i := range c.Out[0].Len() {
			setNumber(c.Out[0], i, math.Pow(base, line(i)))
		}
		return nil
	}),
	triangle("tril_indices", false),
	triangle("triu_indices", true),
}, complexOps)

// shapeOfList returns the dtype and shape of nested lists of numbers.
func shapeOfList(v any) (tensor.DType, []int, error) {
	list, ok := v.([]any)
	if !ok {
		return numberKind(v), []int{}, nil
	}
	d, shape := tensor.Invalid, []int{}
	for i, e := range list {
		_, nested := e.([]any)
		kind, inner, err := shapeOfList(e)
		switch {
		case err != nil:
			return d, nil, err
		case i == 0:
			shape = inner
		case len(inner) < len(shape) && !nested:
			return d, nil, op.TypeError("not a sequence: element %d of argument 'data'", i)
		case !slices.Equal(inner, shape):
			return d, nil, op.ValueError("expected sequences of one length: element %d of argument 'data' has shape %s, not %s", i, tensor.ShapeString(inner), tensor.ShapeString(shape))
		}
		d = tensor.Promote(d, kind)
	}
	if tensor.NumElements(shape)*len(list) == 0 {
		d = tensor.F32
	}
	return d, append([]int{len(list)}, shape...), nil
}

func numberKind(v any) tensor.DType {
	if s, ok := v.(op.Scalar); ok {
		return s.DType()
	}
	return op.ScalarOf(v).DType()
}

func fillList(out *tensor.Tensor, v any, at *int) error {
	if list, ok := v.([]any); ok {
		for _, e := range list {
			if err := fillList(out, e, at); err != nil {
				return err
			}
		}
		return nil
	}
	s := v.(op.Scalar)
	if d := out.DType(); d.IsInt() {
		if err := fits(s, d); err != nil {
			return err
		}
		out.SetInt(*at, s.Int())
	} else {
		out.Set(*at, s.Complex())
	}
	*at++
	return nil
}

// created completes the definition of an operator that makes a tensor; run
// finds its result filled with zeros.
func created(d *op.Def, run func(c *op.Run) error) *op.Def {
	d.Traits |= op.NoGrad | op.ShapeOnly
	if d.Tol.Class == "" {
		d.Tol = exactTol("numbers, rounded once")
	}
	if d.Reject == nil {
		d.Reject = checkDevice
	}
	d.Kernels = []op.Kernel{{Name: "fill", Run: func(c *op.Run) error {
		if err := fillZero(c); err != nil {
			return err
		}
		return run(c)
	}}}
	return d
}

// chosen is the argument dtype, or else the given one.
func chosen(a op.Args, otherwise tensor.DType) tensor.DType {
	if a.Has(arg.DType) {
		return a.DType(arg.DType)
	}
	return otherwise
}

// sized infers a tensor of the argument size.
func sized(otherwise func(op.Args) tensor.DType) func(op.Args) ([]op.Meta, error) {
	return func(a op.Args) ([]op.Meta, error) {
		size := a.Ints(arg.Size)
		for _, n := range size {
			if n < 0 {
				return nil, op.RuntimeError("Trying to create tensor with negative dimension %d: argument 'size' is %s", n, tensor.ShapeString(size))
			}
		}
		d := chosen(a, otherwise(a))
		if a.Sig.Takes(arg.FillValue) && d != tensor.Bool {
			if err := fits(a.Scalar(arg.FillValue), d); err != nil {
				return nil, err
			}
		}
		return one(d, size, nil), nil
	}
}

// alike infers a tensor like the input.
func alike(a op.Args) ([]op.Meta, error) {
	v := a.Value(arg.Input)
	d := chosen(a, v.DType())
	if a.Sig.Takes(arg.FillValue) {
		if err := fits(a.Scalar(arg.FillValue), d); err != nil {
			return nil, err
		}
	}
	metas, err := inferClone(a)
	if err == nil {
		metas[0].DType = d
	}
	return metas, err
}

func fillWith(c *op.Run, v op.Scalar) error {
	out := c.Out[0]
	value, err := scalarTensor(v, out.DType()).Expand(out.Shape()...)
	if err != nil {
		return err
	}
	out.CopyFrom(value)
	return nil
}

func fillValue(c *op.Run) error { return fillWith(c, c.Scalar(arg.FillValue)) }

func fillOf(v int64) func(c *op.Run) error {
	return func(c *op.Run) error { return fillWith(c, op.ScalarOf(v)) }
}

func filled(name string, v int64) *op.Def {
	return created(&op.Def{
		Sig:           name + "(int[] size, " + makeOptions + ") -> Tensor",
		Names:         []string{"torch." + name},
		Doc:           fmt.Sprintf("A tensor whose elements are all %d, float32 unless dtype says otherwise.", v),
		NotSplittable: createsAll,
		Infer:         sized(func(op.Args) tensor.DType { return tensor.F32 }),
		Sample:        func(s *op.Sampler) []any { return []any{s.Shape(0, 4), op.Kw("dtype", s.DType)} },
	}, fillOf(v))
}

func filledLike(name string, v int64) *op.Def {
	d := created(&op.Def{
		Sig:    name + "(Tensor input, " + likeOptions + ") -> Tensor",
		Names:  []string{"torch." + name},
		Doc:    fmt.Sprintf("A tensor of the shape, dtype and memory order of the input whose elements are all %d.", v),
		SBP:    pointwise,
		Infer:  alike,
		Traits: op.Idempotent,
		Sample: sampleUnary(-2, 2),
		Exact:  exactly(truth.Constant(float64(v))),
	}, fillOf(v))
	d.Magnitude = "zeros_like"
	return d
}

func filledNew(name string, v int64) *op.Def {
	d := created(&op.Def{
		Sig:           name + "(Tensor input, int[] size, " + makeOptions + ") -> Tensor",
		Names:         []string{"Tensor." + name},
		Doc:           fmt.Sprintf("A tensor of the input's dtype and the given size whose elements are all %d.", v),
		NotSplittable: createsAll,
		Infer:         sized(func(a op.Args) tensor.DType { return a.Value(arg.Input).DType() }),
		Sample:        func(s *op.Sampler) []any { return []any{s.Tensor(-2, 2, 1), s.Shape(0, 4)} },
	}, fillOf(v))
	d.Magnitude = "new_zeros"
	return d
}

// progression is the start, end and step of an arange.
func progression(a op.Args) (start, end, step op.Scalar) {
	start = op.ScalarOf(int64(0))
	if a.Has(arg.Start) {
		start = a.Scalar(arg.StartScalar)
	}
	return start, a.Scalar(arg.End), a.Scalar(arg.StepScalar)
}

func inferArange(a op.Args) ([]op.Meta, error) {
	start, end, step := progression(a)
	d := tensor.I64
	for _, s := range []op.Scalar{start, end, step} {
		if _, float := s.Any().(float64); float {
			d = tensor.F32
		}
	}
	d = chosen(a, d)
	lo, hi, by := start.Float(), end.Float(), step.Float()
	switch {
	case d == tensor.Bool || d.IsComplex():
		return nil, op.RuntimeError("\"arange\" not implemented for argument 'dtype' %s", d)
	case by == 0 || d.IsInt() && step.Int() == 0:
		return nil, op.RuntimeError("argument 'step' must be nonzero")
	case math.IsInf(lo, 0) || math.IsInf(hi, 0) || math.IsNaN(lo) || math.IsNaN(hi):
		return nil, op.RuntimeError("unsupported range: %v -> %v", lo, hi)
	case by > 0 && hi < lo || by < 0 && hi > lo:
		return nil, op.RuntimeError("upper bound and larger bound inconsistent with step sign: %v to %v by %v", lo, hi, by)
	}
	n := math.Ceil((hi - lo) / by)
	if n > 1<<40 {
		return nil, op.RuntimeError("arange: %v elements are too many", n)
	}
	return one(d, []int{int(n)}, nil), nil
}

func runArange(c *op.Run) error {
	start, _, step := progression(c.Args)
	out := c.Out[0]
	for i := range out.Len() {
		if out.DType().IsInt() {
			out.SetInt(i, start.Int()+int64(i)*step.Int())
		} else {
			out.Set(i, complex(start.Float()+float64(i)*step.Float(), 0))
		}
	}
	return nil
}

// arangeErrors are those of start + i·step: none among whole numbers that the dtype has.
func arangeErrors(r *op.Rounding) ([]*tensor.Tensor, bool) {
	first, _, by := progression(r.Args)
	start, step := first.Float(), by.Float()
	e := tensor.New(tensor.F64, r.Out[0].Shape()...)
	errs, whole := tensor.Data[float64](e), start == math.Trunc(start) && step == math.Trunc(step)
	for i := range errs {
		moved := math.Abs(float64(i) * step)
		if y := math.Abs(start + float64(i)*step); !whole || r.Unit*max(y, moved, math.Abs(start)) > 1 {
			errs[i] = math.Abs(start) + 2*moved + y
		}
	}
	return exactOr(e, whole), true
}

// linspaceErrors are those of start + i·step, where step rounds both ends, their difference
// and the quotient: none among whole numbers that the dtype has.
func linspaceErrors(r *op.Rounding) ([]*tensor.Tensor, bool) {
	lo, hi, n := r.Scalar(arg.StartScalar).Complex(), r.Scalar(arg.End).Complex(), r.Int(arg.Steps)
	from, to, span := cmplx.Abs(lo), cmplx.Abs(hi), cmplx.Abs(hi-lo)
	step := span / float64(max(n-1, 1))
	e := tensor.New(tensor.F64, r.Out[0].Shape()...)
	errs := tensor.Data[float64](e)
	whole := imag(lo) == 0 && imag(hi) == 0 && real(lo) == math.Trunc(real(lo)) && step == math.Trunc(step)
	for i := range errs {
		if y := cmplx.Abs(r.Out[0].At(i)); !whole || r.Unit*max(from, to, span) > 1 {
			errs[i] = from + float64(i)*((from+to+2*span)/float64(max(n-1, 1))+step) + y
		}
	}
	return exactOr(e, whole), true
}

var stepsTol = op.Tol{
	Class: op.Accumulating, Terms: func(op.Args) int { return 3 },
	Reason: "start + i·step: two roundings and that of step",
}

func inferSteps(a op.Args) ([]op.Meta, error) {
	d := chosen(a, tensor.F32)
	switch {
	case a.Int(arg.Steps) < 0:
		return nil, op.RuntimeError("number of steps must be non-negative: argument 'steps' is %d", a.Int(arg.Steps))
	case d == tensor.Bool:
		return nil, op.RuntimeError("not implemented for argument 'dtype' %s", d)
	}
	if a.Sig.Name == "linspace" {
		for _, name := range []op.ScalarArg{arg.StartScalar, arg.End}[:min(a.Int(arg.Steps), 2)] {
			if err := fits(a.Scalar(name), d); err != nil {
				return nil, err
			}
		}
	}
	complexEnd := a.Scalar(arg.StartScalar).DType().IsComplex() || a.Scalar(arg.End).DType().IsComplex()
	switch {
	case complexEnd && a.Has(arg.DType) && !d.IsComplex():
		return nil, op.RuntimeError("complex steps cannot be cast to argument 'dtype' %s", d)
	case a.Sig.Name != "linspace" && (complexEnd || d.IsComplex()):
		return nil, fmt.Errorf("%w: complex exponents", op.ErrUnknown)
	case complexEnd && !a.Has(arg.DType):
		d = tensor.C64
	}
	return one(d, []int{a.Int(arg.Steps)}, nil), nil
}

// steps returns the numbers of a linspace, as their two parts.
func steps(a op.Args) (re, im func(i int) float64) {
	lo, hi, n := a.Scalar(arg.StartScalar).Complex(), a.Scalar(arg.End).Complex(), a.Int(arg.Steps)
	if a.Has(arg.DType) && a.DType(arg.DType).IsInt() {
		lo, hi = complex(math.Trunc(real(lo)), 0), complex(math.Trunc(real(hi)), 0)
	}
	return stepsBetween(real(lo), real(hi), n), stepsBetween(imag(lo), imag(hi), n)
}

// stepsBetween counts from the nearer end.
func stepsBetween(lo, hi float64, n int) func(i int) float64 {
	by := (hi - lo) / float64(max(n-1, 1))
	return func(i int) float64 {
		if i < n/2 || n == 1 {
			return lo + by*float64(i)
		}
		return hi - by*float64(n-1-i)
	}
}

// setNumber truncates for integer dtypes.
func setNumber(t *tensor.Tensor, i int, v float64) {
	if t.DType().IsInt() {
		t.SetInt(i, int64(v))
		return
	}
	t.Set(i, complex(v, 0))
}

// triangle lists the places of a triangle of a matrix.
func triangle(name string, upper bool) *op.Def {
	d := created(&op.Def{
		Sig:           name + "(int row, int col, int offset=0, *, dtype? dtype=None, device? device=None) -> Tensor",
		Names:         []string{"torch." + name},
		Doc:           "The row and column numbers, as two rows, of the entries of a triangle of a row by col matrix, in row-major order.",
		NotSplittable: createsAll,
		Reject:        checkDevice,
		Infer: func(a op.Args) ([]op.Meta, error) {
			d := chosen(a, tensor.I64)
			switch {
			case a.Int(arg.Row) < 0:
				return nil, op.RuntimeError("row must be non-negative, got %d", a.Int(arg.Row))
			case a.Int(arg.Col) < 0:
				return nil, op.RuntimeError("col must be non-negative, got %d", a.Int(arg.Col))
			case d != tensor.I64 && d != tensor.I32:
				return nil, op.RuntimeError("\"%s\" not implemented for argument 'dtype' %s", name, d)
			}
			n := cornerOf(a, upper).count()
			if n > tensor.MaxElements {
				return nil, op.RuntimeError("can't allocate memory: %v indices", n)
			}
			return one(d, []int{2, int(n)}, nil), nil
		},
		Sample: func(s *op.Sampler) []any { return []any{s.Index(5), s.Index(5), s.Int(-3, 4)} },
	}, func(c *op.Run) error {
		out, k := c.Out[0], 0
		n := out.Shape()[1]
		t := cornerOf(c.Args, upper)
		for i := t.first(); k < n; i++ {
			lo, hi := t.columns(i)
			for j := lo; j < hi; j++ {
				out.SetInt(k, int64(i))
				out.SetInt(n+k, int64(j))
				k++
			}
		}
		return nil
	})
	return d
}

// corner is a triangle of a rows by cols matrix: the entries with j-i ≤ offset,
// or of an upper one j-i ≥ offset.
type corner struct {
	rows, cols, offset int
	upper              bool
}

func cornerOf(a op.Args, upper bool) corner {
	rows, cols := a.Int(arg.Row), a.Int(arg.Col)
	return corner{rows, cols, min(max(a.Int(arg.Offset), -rows), cols), upper}
}

// columns returns the range of columns in row i.
func (t corner) columns(i int) (lo, hi int) {
	if t.upper {
		return min(max(i+t.offset, 0), t.cols), t.cols
	}
	return 0, min(max(i+t.offset+1, 0), t.cols)
}

// first returns a row before which there are no entries.
func (t corner) first() int {
	if t.upper {
		return 0
	}
	return max(-t.offset, 0)
}

// count returns the number of entries: in a lower triangle, rows of 1, 2, …
// entries between empty and full ones. An upper one is a lower one turned round.
func (t corner) count() float64 {
	if t.upper {
		return corner{t.rows, t.cols, t.cols - t.rows - t.offset, false}.count()
	}
	lo := min(max(-t.offset, 0), t.rows)
	hi := lo + min(max(t.cols-1-(lo+t.offset), 0), t.rows-lo)
	growing := float64(hi-lo) * (float64(lo+t.offset+1) + float64(hi+t.offset)) / 2
	return growing + float64(t.rows-hi)*float64(t.cols)
}
