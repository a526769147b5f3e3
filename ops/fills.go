package ops

import (
	"fmt"
	"math"
	"slices"

	"plumb/internal/arg"
	"plumb/internal/kernel"
	"plumb/op"
	"plumb/tensor"
)

// fillOps draw every element of a tensor anew. PyTorch has their in-place form only.
var fillOps = []*op.Def{
	drawnOver("uniform", "float from=0, float to=1", "Tensor.uniform_(*)", "Uniform numbers in [from, to); the parts of a complex number are drawn alike.", op.Def{
		Reject: checkUniform,
		Kernels: resultKernel(inexactTypes, func(c *op.Run) error {
			kernel.Fill(realParts(c.Out[0]), c.Random, 1, kernel.UniformIn(c.Float(arg.From), c.Float(arg.ToFloat)))
			return nil
		}),
		Law: boundedLaw,
	}, func(s *op.Sampler) []any { return []any{s.Float(-3, 0), s.Float(0.5, 3)} }),
	drawnOver("normal_fill", "float mean=0, float std=1", "Tensor.normal_", "Normal numbers of a mean and a standard deviation.", op.Def{
		Reject: checkStd, Kernels: resultKernel(inexactTypes, drawNormal), Law: normalLaw,
	}, func(s *op.Sampler) []any { return []any{s.Float(-2, 2), s.Float(0.1, 2)} }),
	drawnOver("exponential", "float lambd=1", "Tensor.exponential_", "Exponential numbers of the rate lambd: P(X > x) = exp(-lambd·x).", op.Def{
		Reject: func(a op.Args) error { return atLeastZero(a, arg.Lambd) },
		Kernels: transformed(func(a op.Args) func(u float64) float64 {
			rate := a.Float(arg.Lambd)
			return func(u float64) float64 { return -math.Log(u) / rate }
		}),
		Law: func(a op.Args) *op.Law {
			rate := a.Float(arg.Lambd)
			if rate == 0 || math.IsInf(rate, 1) {
				return nil
			}
			return continuous("positive numbers", 1/rate, func(v float64) float64 { return -math.Expm1(-rate * max(v, 0)) }, func(v float64) bool { return v >= 0 })
		},
	}, func(s *op.Sampler) []any { return []any{s.Float(0.3, 3)} }),
	drawnOver("cauchy", "float median=0, float sigma=1", "Tensor.cauchy_", "Cauchy numbers: median + sigma·tan(π·(U - ½)), U uniform.", op.Def{
		Kernels: transformed(func(a op.Args) func(u float64) float64 {
			median, sigma := a.Float(arg.Median), a.Float(arg.Sigma)
			return func(u float64) float64 { return median + sigma*math.Tan(math.Pi*(u-0.5)) }
		}),
		Law: func(a op.Args) *op.Law {
			median, sigma := a.Float(arg.Median), math.Abs(a.Float(arg.Sigma))
			if sigma == 0 {
				return nil
			}
			return continuous("real numbers", math.Abs(median)+sigma, func(v float64) float64 { return 0.5 + math.Atan((v-median)/sigma)/math.Pi }, func(v float64) bool { return !math.IsNaN(v) })
		},
	}, func(s *op.Sampler) []any { return []any{s.Float(-2, 2), s.Float(0.1, 2)} }),
	drawnOver("log_normal", "float mean=1, float std=2", "Tensor.log_normal_", "Numbers whose logarithm is normal, of a mean and a standard deviation.", op.Def{
		Reject: func(a op.Args) error {
			if !(a.Float(arg.Std) > 0) {
				return op.RuntimeError("argument 'std' must be positive, but is %v", a.Float(arg.Std))
			}
			return nil
		},
		Kernels: resultKernel(floatTypes, func(c *op.Run) error {
			mean, std := c.Float(arg.Mean), c.Float(arg.Std)
			kernel.Fill(c.Out[0], c.Random, 2, func(dst []float64, words []uint64, at int) {
				kernel.Normal(dst, words, at)
				for i, z := range dst {
					dst[i] = math.Exp(mean + std*z)
				}
			})
			return nil
		}),
		Law: func(a op.Args) *op.Law {
			mean, std := a.Float(arg.Mean), a.Float(arg.Std)
			return continuous("positive numbers", 0, func(v float64) float64 { return normalCDF((math.Log(max(v, 0)) - mean) / std) }, func(v float64) bool { return v >= 0 })
		},
	}, func(s *op.Sampler) []any { return []any{s.Float(-1, 1), s.Float(0.1, 1)} }),
	drawnOver("geometric", "float p", "Tensor.geometric_", "How many trials it takes until the first success of probability p.", op.Def{
		Reject: func(a op.Args) error {
			if p := a.Float(arg.P); !(p > 0 && p < 1) {
				return op.RuntimeError("argument 'p' must be in (0, 1), but is %v", p)
			}
			return nil
		},
		Kernels: resultKernel(slices.Concat(integerTypes, floatTypes), drawGeometric),
		Law:     geometricLaw,
	}, func(s *op.Sampler) []any { return []any{s.Float(0.2, 0.9)} }),
	drawnOver("bernoulli.fill", "float p=0.5", "Tensor.bernoulli_", "1 with probability p, else 0.", op.Def{
		Reject:  checkProbability,
		Kernels: resultKernel(slices.Concat(floatTypes, integralSet), drawBernoulli),
		Law:     bernoulliLaw,
	}, func(s *op.Sampler) []any { return []any{s.Float(0.1, 0.9)} }),
	drawnOver("bernoulli.tensor", "Tensor p", "Tensor.bernoulli_", "1 with the probability that the element of p gives, broadcast to input, else 0.", op.Def{
		Reject: func(a op.Args) error {
			if !broadcastsTo(a.Value(arg.PTensor).Shape(), a.Value(arg.Input).Shape()) {
				return op.RuntimeError("argument 'p' of shape %s does not expand to input's %s", tensor.ShapeString(a.Value(arg.PTensor).Shape()), tensor.ShapeString(a.Value(arg.Input).Shape()))
			}
			return rejectTypes(arg.PTensor, slices.Concat(integralSet, complexTypes)...)(a)
		},
		Fixed:   []op.Handle{arg.PTensor},
		Kernels: resultKernel(slices.Concat(floatTypes, integralSet), drawBernoulli),
		Grad:    zeroGrads(arg.Input, arg.PTensor),
		Law:     bernoulliLaw,
	}, nil),
	randomFill(),
}

// drawnOver completes an operator that replaces its input by numbers from a random stream.
func drawnOver(id, params, name, doc string, d op.Def, sample func(s *op.Sampler) []any) *op.Def {
	d.Sig = id + "(Tensor input, " + params + ", *, Generator? generator=None) -> Tensor"
	d.Names = []string{name}
	d.Doc = doc
	d.Traits = op.Random
	d.Unread = unread(arg.Input)
	d.NotSplittable = drawsAll
	d.Infer = func(a op.Args) ([]op.Meta, error) {
		return one(a.Value(arg.Input).DType(), a.Value(arg.Input).Shape(), nil), nil
	}
	if d.Grad == nil {
		d.Grad = op.Gradient(zeroGrad)
	}
	d.Sample = func(s *op.Sampler) []any {
		x := s.Tensor(-1, 1, s.Shape(0, 4)...)
		if sample == nil {
			p := tensor.New(floatResult(realOr(s.DType)), x.Shape()...)
			for i := range p.Len() {
				p.Set(i, complex(s.Float(0.1, 0.9), 0))
			}
			return []any{x, p}
		}
		return append([]any{x}, sample(s)...)
	}
	d.Tol = drawn("numbers from a random stream")
	return &d
}

// transformed is a kernel that makes an element of one number in (0, 1].
func transformed(of func(a op.Args) func(u float64) float64) []op.Kernel {
	return resultKernel(floatTypes, func(c *op.Run) error {
		f := of(c.Args)
		kernel.Fill(c.Out[0], c.Random, 1, func(dst []float64, words []uint64, _ int) {
			for i, w := range words {
				dst[i] = f(float64(w>>11+1) * 0x1p-53)
			}
		})
		return nil
	})
}

// continuous is the law of a real of the distribution function cdf; scale is
// the size of the numbers of which a result is computed.
func continuous(support string, scale float64, cdf func(v float64) float64, in func(v float64) bool) *op.Law {
	return &op.Law{Support: support, Draws: func(out *tensor.Tensor) ([]op.Draw, error) {
		d := realParts(out).DType()
		return eachDraw(out, func(_ int, v float64) (below, upto float64, ok bool) {
			if math.IsInf(v, 0) {
				return 0, 1, in(v)
			}
			step := epsilonOf(d)*(math.Abs(v)+scale) + smallestOf(d)
			return unitInterval(cdf(v - step)), unitInterval(cdf(v + step)), in(v)
		}, support)
	}}
}

// checkUniform rejects what PyTorch's uniform_ does, its bounds being numbers of the dtype.
func checkUniform(a op.Args) error {
	lo, hi, most := a.Float(arg.From), a.Float(arg.ToFloat), largestOf(realOr(a.Value(arg.Input).DType()))
	for _, name := range []op.FloatArg{arg.From, arg.ToFloat} {
		if v := a.Float(name); !(math.Abs(v) <= most) {
			return op.RuntimeError("argument '%s' is out of bounds for %s: %v", name, a.Value(arg.Input).DType(), v)
		}
	}
	if lo > hi || hi-lo > most {
		return op.RuntimeError("arguments 'from' and 'to' must ascend by at most %v, but are %v and %v", most, lo, hi)
	}
	return nil
}

// largestOf is the largest finite number of a floating dtype.
func largestOf(d tensor.DType) float64 {
	switch d {
	case tensor.F16:
		return 65504
	case tensor.BF16:
		return 0x1.fep127
	case tensor.F32:
		return math.MaxFloat32
	}
	return math.MaxFloat64
}

func boundedLaw(a op.Args) *op.Law {
	lo, hi := a.Float(arg.From), a.Float(arg.ToFloat)
	if lo == hi {
		return nil
	}
	slack := 4 * epsilonOf(realOr(a.Value(arg.Input).DType())) * (math.Abs(lo) + math.Abs(hi))
	support := fmt.Sprintf("[%v, %v)", lo, hi)
	return continuous(support, math.Abs(lo)+math.Abs(hi), func(v float64) float64 { return (v - lo) / (hi - lo) }, func(v float64) bool { return v >= lo-slack && v <= hi+slack })
}

func atLeastZero(a op.Args, name op.FloatArg) error {
	if v := a.Float(name); !(v >= 0) {
		return op.RuntimeError("argument '%s' must not be negative, but is %v", name, v)
	}
	return nil
}

// counts draws whole numbers, for integers and floats alike.
func counts(c *op.Run, f func(word uint64, at int) int64) {
	if c.Out[0].DType().IsDifferentiable() {
		kernel.Fill(c.Out[0], c.Random, 1, func(dst []float64, words []uint64, at int) {
			for i, w := range words {
				dst[i] = float64(f(w, at+i))
			}
		})
		return
	}
	kernel.Fill(c.Out[0], c.Random, 1, func(dst []int64, words []uint64, at int) {
		for i, w := range words {
			dst[i] = f(w, at+i)
		}
	})
}

func drawGeometric(c *op.Run) error {
	scale := 1 / math.Log1p(-c.Float(arg.P))
	counts(c, func(word uint64, _ int) int64 {
		return int64(max(1, math.Ceil(math.Log(float64(word>>11+1)*0x1p-53)*scale)))
	})
	return nil
}

func geometricLaw(a op.Args) *op.Law {
	fail, most := math.Log1p(-a.Float(arg.P)), largestInteger(a.Value(arg.Input).DType())
	return &op.Law{Support: "counts from 1 on", Atoms: true, Draws: func(out *tensor.Tensor) ([]op.Draw, error) {
		return eachDraw(out, func(_ int, v float64) (below, upto float64, ok bool) {
			if most*fail > -20 { // counts that the dtype lacks occur
				return 0, 1, true
			}
			return -math.Expm1((v - 1) * fail), -math.Expm1(v * fail), v == math.Floor(v) && v >= 1
		}, "a count from 1 on")
	}}
}

func checkProbability(a op.Args) error {
	if p := a.Float(arg.P); !(p >= 0 && p <= 1) {
		return op.RuntimeError("argument 'p' must be in [0, 1], but is %v", p)
	}
	return nil
}

// probabilities returns that of each element of the input.
func probabilities(a op.Args) (func(i int) float64, error) {
	t := a.Tensor(arg.PTensor)
	if t == nil {
		return func(int) float64 { return a.Float(arg.P) }, nil
	}
	spread, err := t.Expand(a.Value(arg.Input).Shape()...)
	if err != nil {
		return nil, err
	}
	return spread.Float, nil
}

func drawBernoulli(c *op.Run) error {
	p, err := probabilities(c.Args)
	if err != nil {
		return err
	}
	for i := range c.Out[0].Len() {
		if v := p(i); !(v >= 0 && v <= 1) {
			return op.RuntimeError("argument 'p' must have elements in [0, 1], but has %v", v)
		}
	}
	counts(c, func(word uint64, at int) int64 {
		if kernel.Unit(word) < p(at) {
			return 1
		}
		return 0
	})
	return nil
}

func bernoulliLaw(a op.Args) *op.Law {
	p, err := probabilities(a)
	if v := a.Float(arg.P); err != nil || a.Value(arg.PTensor) == nil && (v == 0 || v == 1) {
		return nil
	}
	return binary(p)
}

// randomFill is random_: integers from a range, by default all that the dtype
// has from 0 on without gaps.
func randomFill() *op.Def {
	return drawnOver("random", "int from, int? to", "Tensor.random_(*)", "Uniform integers in [from, to), without to as many as the dtype has without gaps.", op.Def{
		More: []string{
			"random(Tensor input, int to, *, Generator? generator=None) -> Tensor",
			"random(Tensor input, *, Generator? generator=None) -> Tensor",
		},
		Reject:  checkRandomFill,
		Kernels: resultKernel(slices.Concat(integralSet, floatTypes), runRandomFill),
		Law:     randomFillLaw,
	}, func(s *op.Sampler) []any {
		lo, hi := int(s.Int(-5, 1)), int(s.Int(2, 9))
		if s.DType == tensor.U8 || s.DType == tensor.Bool {
			lo = 0
		}
		if s.DType == tensor.Bool {
			hi = 2
		}
		return []any{lo, hi}
	})
}

func checkRandomFill(a op.Args) error {
	d := a.Value(arg.Input).DType()
	lo, hi := fillRange(a)
	least := -largestInteger(d) - 1
	if d == tensor.U8 || d == tensor.Bool {
		least = 0
	}
	switch {
	case d.IsComplex():
		return op.RuntimeError("not implemented for argument 'input' of dtype %s", d)
	case a.Has(arg.To) && lo >= hi:
		return op.RuntimeError("argument 'from' must be less than 'to', but %d >= %d", lo, hi)
	case float64(lo) < least || a.Has(arg.To) && float64(hi-1) > largestInteger(d):
		return op.RuntimeError("a range from %d to %d is out of bounds for %s", lo, hi, d)
	}
	return nil
}

func runRandomFill(c *op.Run) error {
	lo, hi := fillRange(c.Args)
	span := uint64(hi - lo)
	counts(c, func(word uint64, _ int) int64 { return lo + int64(word%span) })
	return nil
}

func randomFillLaw(a op.Args) *op.Law {
	from, to := fillRange(a)
	lo, span := float64(from), float64(uint64(to-from))
	if span <= 1 {
		return nil
	}
	support := fmt.Sprintf("an integer of %v from %v on", span, lo)
	return &op.Law{Support: support, Atoms: span <= 1<<20, Draws: func(out *tensor.Tensor) ([]op.Draw, error) {
		return eachDraw(out, func(_ int, v float64) (below, upto float64, ok bool) {
			return (v - lo) / span, unitInterval((v + 1 - lo) / span), v == math.Floor(v) && v >= lo && v <= lo+span
		}, support)
	}}
}

// fillRange is the range of random_; its end may be 2^63, which wraps.
func fillRange(a op.Args) (lo, hi int64) {
	lo = int64(a.Int(arg.FromInt))
	switch d := a.Value(arg.Input).DType(); {
	case a.Has(arg.To):
		hi = int64(a.Int(arg.To))
	case d == tensor.I64:
		hi = math.MinInt64
	default:
		hi = int64(largestInteger(d)) + 1
	}
	return lo, hi
}
