package ops

import (
	"fmt"
	"math"
	"math/cmplx"
	"slices"

	"plumb/internal/arg"
	"plumb/internal/kernel"
	"plumb/op"
	"plumb/tensor"
)

var dropoutOps = []*op.Def{
	dropout{id: "dropout", doc: "Drops elements with probability p and scales the others: x·m / (1 - p), m 0 or 1."}.def(),
	dropout{id: "dropout1d", channels: true, ranks: []int{2, 3}, batched: 3,
		doc: "Drops whole channels of (N, C, L) or (C, L) with probability p and scales the others by 1 / (1 - p)."}.def(),
	dropout{id: "dropout2d", channels: true,
		doc: "Drops whole channels of (N, C, …) with probability p and scales the others by 1 / (1 - p)."}.def(),
	dropout{id: "dropout3d", channels: true, batched: 5,
		doc: "Drops whole channels of (N, C, D, H, W), or of any other rank with the first dimension as channels, with probability p and scales the others by 1 / (1 - p)."}.def(),
	dropout{id: "alpha_dropout", alpha: true,
		doc: "Sets elements to selu's negative limit with probability p and keeps mean and variance: a·x·m + b(m), m 0 or 1."}.def(),
	dropout{id: "feature_alpha_dropout", alpha: true, channels: true,
		doc: "Is alpha_dropout of whole channels of (N, C, …)."}.def(),
	{
		Sig:           "dropout_mask(Tensor like, int[] shape, float p, float scale, int draw) -> Tensor",
		Doc:           "What the call of a dropout with a number has multiplied its input by: scale with probability 1 - p, else 0.",
		Traits:        op.NoGrad | op.Random,
		NotSplittable: drawsAll,
		Infer:         func(a op.Args) ([]op.Meta, error) { return one(a.Value(arg.Like).DType(), a.Ints(arg.Shape), nil), nil },
		Kernels:       []op.Kernel{{Name: "mask", Run: runDropoutMask}},
		Law:           func(op.Args) *op.Law { return nil },
		Tol:           drawn("repeats the draws of another call"),
	},
}

func runDropoutMask(c *op.Run) error {
	c.Out[0].CopyFrom(keepMask(c, c.Out[0].DType(), c.Out[0].Shape(), c.Float(arg.Scale)))
	return nil
}

// keepMask draws what elements are multiplied by: scale where they are kept, else 0.
func keepMask(c *op.Run, d tensor.DType, shape []int, scale float64) *tensor.Tensor {
	mask := tensor.New(realOr(d), shape...)
	kernel.Fill(mask, c.Random, 1, kernel.Keep(c.Float(arg.P), scale))
	return mask.Convert(d)
}

// dropout is one operator of the family.
type dropout struct {
	id, doc  string
	channels bool  // drops whole channels
	alpha    bool  // sets to selu's limit rather than to 0
	ranks    []int // that the input may have; nil for all
	batched  int   // the rank that has a batch dimension first; 0 for any
}

// alphaLimit is -selu(-∞), as PyTorch's alpha_dropout has it.
const alphaLimit = 1.7580993408473766

func (d dropout) def() *op.Def {
	training := "True"
	if d.alpha {
		training = "False"
	}
	return &op.Def{
		Sig:           fmt.Sprintf("%s(Tensor input, float p=0.5, bool training=%s, bool inplace=False) -> Tensor", d.id, training),
		Names:         []string{"torch.nn.functional." + d.id},
		Doc:           d.doc,
		Traits:        op.Random,
		NotSplittable: drawsAll,
		Reject:        firstError(d.check),
		Infer:         d.infer,
		Itself:        passes,
		Kernels: []op.Kernel{
			{Name: "copy", Priority: 1, When: op.Pred{Text: "nothing to drop", Holds: passes}, Run: runUnchanged},
			{Name: "zero", Priority: 1, When: op.Pred{Text: "all is dropped from integers", Holds: func(a op.Args) bool {
				return a.Float(arg.P) == 1 && !a.Value(arg.Input).DType().IsDifferentiable()
			}}, Run: func(c *op.Run) error {
				c.Out[0].CopyFrom(tensor.New(c.Out[0].DType(), c.Out[0].Shape()...))
				return nil
			}},
			{Name: "float32", When: op.DTypeIn(arg.Input, tensor.F32), Run: dropoutRun(d, func(tensor.DType) func(float32) float32 { return itself })},
			{Name: "half precision", When: op.DTypeIn(arg.Input, halfTypes...), Run: dropoutRun(d, roundHalf)},
			{Name: "float64", When: op.DTypeIn(arg.Input, tensor.F64), Run: dropoutRun(d, func(tensor.DType) func(float64) float64 { return itself })},
			{Name: "complex, all dropped", Priority: 1, When: op.And(op.DTypeIn(arg.Input, complexTypes...), op.Pred{Text: "p = 1", Holds: func(a op.Args) bool {
				return a.Float(arg.P) == 1
			}}), Run: dropoutRun(d, func(tensor.DType) func(complex128) complex128 { return itself })},
			{Name: "complex", When: op.DTypeIn(arg.Input, complexTypes...), Run: dropoutRun(d, func(tensor.DType) func(complex128) complex128 { return itself }), Since: "2.15"},
		},
		Grad: op.Gradient(func(g *op.Grad) op.Value {
			x := g.Value(arg.Input)
			if passes(g.Args) {
				return g.G()
			}
			return g.Mul(g.G(), g.Op("dropout_mask", x, d.maskShape(x.Shape()), g.Float(arg.P), d.scale(g.Args), g.Draw))
		}),
		Sample: func(s *op.Sampler) []any {
			lo := 0
			if d.channels {
				lo = 2
			}
			hi := 4
			if d.ranks != nil {
				hi = slices.Max(d.ranks)
			}
			p := s.Float(0, 1)
			if !s.DType.IsDifferentiable() {
				p = math.Round(p)
			}
			return []any{s.Distinct(s.Shape(lo, hi)...), p, s.Index(4) > 0}
		},
		Law: d.law,
		Tol: drawn("0 or a multiple of the input at random"),
	}
}

func runUnchanged(c *op.Run) error {
	c.Out[0].CopyFrom(c.Tensor(arg.Input))
	return nil
}

// passes reports whether the input is the result.
func passes(a op.Args) bool {
	return a.Float(arg.P) == 0 || !a.Bool(arg.Training) || tensor.NumElements(a.Value(arg.Input).Shape()) == 0
}

func (d dropout) check(a op.Args) error {
	p, x := a.Float(arg.P), a.Value(arg.Input)
	switch {
	case p < 0 || p > 1:
		return op.ValueError("argument 'p' has to be between 0 and 1, but is %v", p)
	case !(p >= 0):
		return op.RuntimeError("argument 'p' has to be between 0 and 1, but is %v", p)
	case d.ranks != nil && !slices.Contains(d.ranks, len(x.Shape())):
		return op.RuntimeError("argument 'input' must have a rank in %v, but has shape %s", d.ranks, tensor.ShapeString(x.Shape()))
	case passes(a) || p == 1:
		return nil
	case d.batched == 5 && len(x.Shape()) == 0:
		return op.RuntimeError("argument 'input' must have a dimension of channels, but has none")
	case d.channels && d.batched == 0 && len(x.Shape()) < 2:
		return op.RuntimeError("argument 'input' must have at least 2 dimensions, but has shape %s", tensor.ShapeString(x.Shape()))
	case !x.DType().IsDifferentiable():
		return op.RuntimeError("argument 'input' of dtype %s cannot hold the results", x.DType())
	}
	return nil
}

func (d dropout) infer(a op.Args) ([]op.Meta, error) {
	x := a.Value(arg.Input)
	if passes(a) {
		return one(x.DType(), x.Shape(), slices.Clone(x.Strides())), nil
	}
	vs := []op.Value{x}
	if !d.channels && a.Float(arg.P) < 1 {
		vs = append(vs, dense{x, tensor.ContiguousStrides(x.Shape())})
	}
	return one(x.DType(), x.Shape(), iteratorStrides(x.Shape(), vs...)), nil
}

// maskShape is the shape of what is drawn.
func (d dropout) maskShape(shape []int) []int {
	if !d.channels {
		return shape
	}
	keep := 2
	if d.batched != 0 && d.batched != len(shape) {
		keep = 1
	}
	mask := slices.Repeat([]int{1}, len(shape))
	copy(mask[:min(keep, len(shape))], shape)
	return mask
}

// scale is what a kept element is multiplied by.
func (d dropout) scale(a op.Args) float64 {
	p := a.Float(arg.P)
	switch {
	case p == 1:
		return 0
	case d.alpha:
		return 1 / math.Sqrt((alphaLimit*alphaLimit*p+1)*(1-p))
	}
	return 1 / (1 - p)
}

// shift is what is added to a dropped and to a kept element.
func (d dropout) shift(a op.Args) (dropped, kept float64) {
	if p := a.Float(arg.P); d.alpha && p < 1 {
		scale := d.scale(a)
		return alphaLimit * scale * (p - 1), alphaLimit * scale * p
	}
	return 0, 0
}

func itself[T any](v T) T { return v }

// dropoutRun drops elements; rounding returns how a dtype rounds.
func dropoutRun[T float32 | float64 | complex128](d dropout, rounding func(tensor.DType) func(T) T) func(c *op.Run) error {
	return func(c *op.Run) error {
		x, out := c.Tensor(arg.Input), c.Out[0]
		mask := keepMask(c, x.DType(), d.maskShape(x.Shape()), d.scale(c.Args))
		if !d.alpha || c.Float(arg.P) == 1 {
			kernel.Map2(out, x, mask, kernel.Scaled[T])
			return nil
		}
		dropped, kept := d.shift(c.Args)
		round := rounding(x.DType())
		kernel.Map2(out, x, mask, kernel.ScaledAndShifted(round(numberOf[T](dropped)), round(numberOf[T](kept)), round))
		return nil
	}
}

// numberOf is a real number as a T.
func numberOf[T float32 | float64 | complex128](v float64) T {
	var n T
	switch p := any(&n).(type) {
	case *float32:
		*p = float32(v)
	case *float64:
		*p = v
	case *complex128:
		*p = complex(v, 0)
	}
	return n
}

// law compares each element with what it is when dropped and when kept. Of
// whole channels, any element tells.
func (d dropout) law(a op.Args) *op.Law {
	p := a.Float(arg.P)
	if passes(a) || p == 1 {
		return nil
	}
	x := a.Tensor(arg.Input)
	scale := d.scale(a)
	dropped, kept := d.shift(a)
	room := 1.0 // of nearby
	if realOr(x.DType()) != tensor.F64 {
		room += p / (1 - p) / 4 // one rounding of four: p is rounded to float32 before it is subtracted from 1
	}
	times := timesIn(x.DType())
	least := smallestOf(realOr(x.DType()))
	round, near := rounded(realOr(x.DType())), nearby(realOr(x.DType()))
	choices := func(i int) (no, yes complex128) {
		return times(x.At(i), 0) + complex(dropped, 0), times(x.At(i), scale) + complex(kept, 0)
	}
	tells := func(out *tensor.Tensor, i int) (isKept, told, legal bool) {
		v, size := out.At(i), room*(cmplx.Abs(times(x.At(i), scale))+math.Abs(kept)+math.Abs(dropped))
		is := func(want complex128) bool {
			return near(real(v), round(real(want)), size) && near(imag(v), round(imag(want)), size)
		}
		no, yes := choices(i)
		isNo, isYes := is(no), is(yes)
		return isYes, isNo != isYes, isNo || isYes
	}
	return &op.Law{
		Support: fmt.Sprintf("each element dropped, or x·%.6g%+.6g", scale, kept),
		Atoms:   true,
		Two:     true,
		Draws: func(out *tensor.Tensor) ([]op.Draw, error) {
			return d.draws(a, out, func(i int) (isKept, told bool, err error) {
				isKept, told, legal := tells(out, i)
				if !legal {
					no, yes := choices(i)
					err = outside(i, out, fmt.Sprintf("%v when dropped or %v when kept", numberIn(x.DType(), no), numberIn(x.DType(), yes)))
				}
				return isKept, told, err
			})
		},
		Slopes: func(out *tensor.Tensor) []float64 {
			return each(out, func(i int) float64 {
				isKept, told, _ := tells(out, i)
				switch {
				case !told:
					return math.NaN()
				case isKept && kept == 0 && math.Abs(x.Float(i)) >= least && math.Abs(out.Float(i)) >= least:
					return out.Float(i) / x.Float(i) // with the side's own rounding of p
				case isKept:
					return scale
				}
				return 0
			})
		},
	}
}

// draws lists what each element tells of being kept; of a whole channel, the
// first that tells.
func (d dropout) draws(a op.Args, out *tensor.Tensor, tells func(i int) (isKept, told bool, err error)) ([]op.Draw, error) {
	p, shape := a.Float(arg.P), a.Value(arg.Input).Shape()
	mask, seen := d.maskShape(shape), map[int]bool{}
	var ds []op.Draw
	for i := range out.Len() {
		isKept, told, err := tells(i)
		if err != nil {
			return nil, err
		}
		if !told {
			continue
		}
		if d.channels {
			at := maskIndex(i, shape, mask)
			was, known := seen[at]
			if known && was != isKept {
				return nil, fmt.Errorf("element %d is %v: a channel is dropped in part", i, out.Float(i))
			}
			if known {
				continue
			}
			seen[at] = isKept
		}
		draw := op.Draw{At: i, Below: 0, Upto: p}
		if isKept {
			draw.Below, draw.Upto = p, 1
		}
		ds = append(ds, draw)
	}
	return ds, nil
}

// timesIn returns how a dtype multiplies a number by a real one.
func timesIn(d tensor.DType) func(v complex128, by float64) complex128 {
	if d.IsComplex() {
		return func(v complex128, by float64) complex128 { return v * complex(by, 0) }
	}
	return func(v complex128, by float64) complex128 { return complex(real(v)*by, 0) }
}

// rounded returns what rounds a number to a real dtype.
func rounded(d tensor.DType) func(v float64) float64 {
	switch d {
	case tensor.F64:
		return func(v float64) float64 { return v }
	case tensor.F32:
		return func(v float64) float64 { return float64(float32(v)) }
	}
	return func(v float64) float64 { return tensor.Scalar(d, complex(v, 0)).Float(0) }
}

// nearby returns what reports whether v is want up to four roundings of numbers
// of a size in a dtype.
func nearby(d tensor.DType) func(v, want, size float64) bool {
	epsilon, least := epsilonOf(d), smallestOf(d)
	return func(v, want, size float64) bool {
		if v == want || math.IsNaN(v) && math.IsNaN(want) {
			return true
		}
		return math.Abs(v-want) <= 4*epsilon*size+2*least*epsilon
	}
}

// maskIndex returns the position in a mask that an element of the shape has.
func maskIndex(i int, shape, mask []int) int {
	at, step := 0, 1
	for d := len(shape) - 1; d >= 0; d-- {
		if mask[d] != 1 {
			at += i % shape[d] * step
		}
		i /= shape[d]
		step *= mask[d]
	}
	return at
}
