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

var discreteDraws = []*op.Def{
	{
		Sig:           "bernoulli(Tensor input, *, Generator? generator=None) -> Tensor",
		Names:         both("bernoulli"),
		Doc:           "1 with the probability that each element gives, else 0. The gradient is 0.",
		Traits:        op.Random,
		NotSplittable: drawsAll,
		Reject:        rejectTypes(arg.Input, slices.Concat(integralSet, complexTypes)...),
		Infer:         inferBernoulli,
		Kernels:       resultKernel(floatTypes, runBernoulli),
		Grad:          op.Gradient(zeroGrad),
		Sample:        func(s *op.Sampler) []any { return []any{s.Tensor(0.1, 0.9, s.Shape(0, 4)...)} },
		Law:           func(a op.Args) *op.Law { return binary(a.Tensor(arg.Input).Float) },
		Tol:           drawn("0 or 1"),
	},
	{
		Sig:           "bernoulli.p(Tensor input, float p, *, Generator? generator=None) -> Tensor",
		Names:         both("bernoulli"),
		Doc:           "1 with probability p, else 0, in the shape and dtype of the input.",
		Traits:        op.NoGrad | op.Random,
		NotSplittable: drawsAll,
		Reject:        firstError(rejectTypes(arg.Input, complexTypes...), checkBernoulliP),
		Infer:         inferBernoulliP,
		Kernels:       resultKernel(slices.Concat(floatTypes, integralSet), runBernoulliP),
		Sample:        func(s *op.Sampler) []any { return []any{s.Tensor(-1, 1, s.Shape(0, 4)...), s.Float(0, 1)} },
		Law:           bernoulliPLaw,
		Tol:           drawn("0 or 1"),
	},
	creation("randint", "int low, int high, int[] size", "Uniform integers in [low, high).", op.Def{
		More:  []string{"randint(int high, int[] size, *, Generator? generator=None, dtype? dtype=None, device? device=None, bool requires_grad=False) -> Tensor"},
		Names: []string{"torch.randint"}, Reject: checkRange, Infer: sizedIntegers, Kernels: integerKernels, Law: integerLaw,
		Sample: func(s *op.Sampler) []any { return []any{int(s.Int(-5, 1)), int(s.Int(1, 9)), s.Shape(0, 3)} },
	}),
	drawnLike("randint_like", ", int low, int high", "Uniform integers in [low, high) in the shape of the input.", op.Def{
		More:  []string{"randint_like(Tensor input, int high, *, dtype? dtype=None, device? device=None, bool requires_grad=False, MemoryFormat? memory_format=None) -> Tensor"},
		Names: []string{"torch.randint_like"}, Reject: checkRange, Kernels: integerKernels, Law: integerLaw,
		Sample: func(s *op.Sampler) []any {
			x, lo, hi := s.Tensor(-1, 1, s.Shape(0, 3)...), int(s.Int(-5, 1)), int(s.Int(1, 9))
			if s.DType == tensor.U8 || s.DType == tensor.Bool {
				lo = 0
			}
			if s.DType == tensor.Bool {
				hi = min(hi, 2)
			}
			return []any{x, lo, hi}
		},
	}),
	creation("randperm", "int n", "The integers 0 to n - 1 in random order.", op.Def{
		Names: []string{"torch.randperm"},
		Infer: func(a op.Args) ([]op.Meta, error) {
			n, d := a.Int(arg.N), tensor.I64
			if n < 0 {
				return nil, op.RuntimeError("argument 'n' must not be negative, but is %d", n)
			}
			if a.Has(arg.DType) {
				d = a.DType(arg.DType)
			}
			if most := largestInteger(d); d == tensor.Bool || d.IsComplex() || float64(n) > most+1 {
				return nil, op.RuntimeError("argument 'n' is %d, which %s cannot count to", n, d)
			}
			return one(d, []int{n}, nil), nil
		},
		Kernels: resultKernel(append(integerTypes, floatTypes...), func(c *op.Run) error {
			order := make([]int64, c.Int(arg.N))
			kernel.Shuffle(order, c.Random)
			c.Out[0].CopyFrom(tensor.Of(tensor.I64, []int{len(order)}, order).Convert(c.Out[0].DType()))
			return nil
		}),
		Law:    func(a op.Args) *op.Law { return permutations(a.Int(arg.N)) },
		Sample: func(s *op.Sampler) []any { return []any{int(s.Int(0, 20))} },
	}),
	{
		Sig:           "multinomial(Tensor input, int num_samples, bool replacement=False, *, Generator? generator=None) -> Tensor",
		Names:         both("multinomial"),
		Doc:           "Indices drawn with the probabilities that each row gives up to a factor, with or without replacement.",
		Traits:        op.NoGrad | op.Random,
		NotSplittable: drawsAll,
		Reject:        checkMultinomial,
		Infer:         inferMultinomial,
		Kernels:       []op.Kernel{{Name: "inversion", When: op.DTypeIn(arg.Input, floatTypes...), Run: drawMultinomial}},
		Sample:        sampleMultinomial,
		Law:           multinomialLaw,
		Tol:           drawn("indices"),
	},
	{
		Sig:           "poisson(Tensor input, Generator? generator=None) -> Tensor",
		Names:         []string{"torch.poisson"},
		Doc:           "Poisson numbers, each of its own rate. The gradient is 0.",
		Traits:        op.Random,
		NotSplittable: drawsAll,
		Fixed:         []op.Handle{arg.Input},
		Reject:        rejectTypes(arg.Input, slices.Concat(integralSet, complexTypes)...),
		Infer:         inferPoisson,
		Kernels:       resultKernel(floatTypes, runPoisson),
		Grad:          op.Gradient(zeroGrad),
		Sample:        func(s *op.Sampler) []any { return []any{s.Tensor(0, 9, s.Shape(0, 4)...)} },
		Law:           poissonLaw,
		Tol:           drawn("counts"),
	},
}

func inferBernoulli(a op.Args) ([]op.Meta, error) {
	return one(a.Value(arg.Input).DType(), a.Value(arg.Input).Shape(), nil), nil
}

func runBernoulli(c *op.Run) error {
	p := wideElements(c.Tensor(arg.Input))
	for _, v := range p {
		if !(v >= 0 && v <= 1) {
			return op.RuntimeError("argument 'input' must have elements in [0, 1], but has %v", v)
		}
	}
	kernel.Fill(c.Out[0], c.Random, 1, kernel.Bernoulli(p))
	return nil
}

func checkBernoulliP(a op.Args) error {
	if p := a.Float(arg.P); !(p >= 0 && p <= 1) {
		return op.RuntimeError("argument 'p' must be in [0, 1], but is %v", p)
	}
	return nil
}

func inferBernoulliP(a op.Args) ([]op.Meta, error) {
	return one(a.Value(arg.Input).DType(), a.Value(arg.Input).Shape(), nil), nil
}

func runBernoulliP(c *op.Run) error {
	p := slices.Repeat([]float64{c.Float(arg.P)}, c.Out[0].Len())
	if c.Out[0].DType().IsDifferentiable() {
		kernel.Fill(c.Out[0], c.Random, 1, kernel.Bernoulli(p))
		return nil
	}
	kernel.Fill(c.Out[0], c.Random, 1, func(dst []int64, words []uint64, _ int) {
		for i := range dst {
			dst[i] = 0
			if kernel.Unit(words[i]) < p[0] {
				dst[i] = 1
			}
		}
	})
	return nil
}

func bernoulliPLaw(a op.Args) *op.Law {
	p := a.Float(arg.P)
	if p == 0 || p == 1 {
		return nil
	}
	return binary(func(int) float64 { return p })
}

func inferMultinomial(a op.Args) ([]op.Meta, error) {
	shape := slices.Clone(a.Value(arg.Input).Shape())
	shape[len(shape)-1] = a.Int(arg.NumSamples)
	return one(tensor.I64, shape, nil), nil
}

func sampleMultinomial(s *op.Sampler) []any {
	shape := s.Shape(1, 2)
	return []any{s.Tensor(0.1, 1, shape...), int(s.Int(1, int64(shape[len(shape)-1])+1)), s.Bool()}
}

func inferPoisson(a op.Args) ([]op.Meta, error) {
	return one(a.Value(arg.Input).DType(), a.Value(arg.Input).Shape(), nil), nil
}

func runPoisson(c *op.Run) error {
	rate := wideElements(c.Tensor(arg.Input))
	for _, v := range rate {
		if !(v >= 0) {
			return op.RuntimeError("argument 'input' must have rates that are not negative, but has %v", v)
		}
	}
	kernel.Fill(c.Out[0], c.Random, 1, kernel.Poisson(rate))
	return nil
}

var integerKernels = resultKernel(slices.Concat(integralSet, floatTypes), func(c *op.Run) error {
	draw := kernel.Integers(int64(c.Int(arg.Low)), int64(c.Int(arg.High)))
	if !c.Out[0].DType().IsDifferentiable() {
		kernel.Fill(c.Out[0], c.Random, 1, draw)
		return nil
	}
	kernel.Fill(c.Out[0], c.Random, 1, func(dst []float64, words []uint64, at int) {
		whole := make([]int64, len(dst))
		draw(whole, words, at)
		for i, v := range whole {
			dst[i] = float64(v)
		}
	})
	return nil
})

func zeroGrad(g *op.Grad) op.Value { return zeros(g, g.Value(arg.Input)) }

// zeroGrads has the gradient 0 for each of the arguments.
func zeroGrads(names ...op.TensorArg) func(*op.Grad) {
	return func(g *op.Grad) {
		for _, name := range names {
			g.To(name, func() op.Value { return zeros(g, g.Value(name)) })
		}
	}
}

// wideElements returns the elements in row-major order.
func wideElements(t *tensor.Tensor) []float64 {
	return tensor.Data[float64](t.Convert(tensor.F64).Contiguous())
}

// binary is the law of 1 with a probability, else 0.
func binary(p func(i int) float64) *op.Law {
	return &op.Law{Support: "0 or 1", Atoms: true, Two: true, Draws: func(out *tensor.Tensor) ([]op.Draw, error) {
		return eachDraw(out, func(i int, v float64) (below, upto float64, ok bool) {
			switch q := p(i); {
			case v == 0 && q < 1:
				return 0, 1 - q, true
			case v == 1 && q > 0:
				return 1 - q, 1, true
			}
			return 0, 1, false
		}, "0 or 1, as far as its probability is not 0")
	}}
}

func checkRange(a op.Args) error {
	if a.Int(arg.Low) >= a.Int(arg.High) {
		return op.RuntimeError("argument 'low' must be less than 'high', but %d >= %d", a.Int(arg.Low), a.Int(arg.High))
	}
	d := tensor.I64
	if a.Has(arg.DType) {
		d = a.DType(arg.DType)
	} else if a.Sig.Takes(arg.Input) {
		d = a.Value(arg.Input).DType()
	}
	least := -largestInteger(d) - 1
	if d == tensor.U8 || d == tensor.Bool {
		least = 0
	}
	if d.IsComplex() || float64(a.Int(arg.Low)) < least || float64(a.Int(arg.High)-1) > largestInteger(d) {
		return op.RuntimeError("a range from %d to %d is out of bounds for %s", a.Int(arg.Low), a.Int(arg.High), d)
	}
	return nil
}

// largestInteger is the end of the integers that a dtype has without gaps.
func largestInteger(d tensor.DType) float64 {
	switch {
	case d == tensor.Bool:
		return 1
	case d == tensor.U8:
		return 255
	case d.IsFloat() && d != tensor.F64:
		return math.Ldexp(1, digitsOf(d))
	case d == tensor.F64:
		return 1 << 53
	}
	return math.Ldexp(1, 8*d.Size()-1) - 1
}

func sizedIntegers(a op.Args) ([]op.Meta, error) {
	metas, err := drawnSize(a)
	if err == nil && !a.Has(arg.DType) {
		metas[0].DType = tensor.I64
	}
	return metas, err
}

func integerLaw(a op.Args) *op.Law {
	lo, hi := float64(a.Int(arg.Low)), float64(a.Int(arg.High))
	if hi-lo <= 1 {
		return nil
	}
	return &op.Law{Support: fmt.Sprintf("integers in [%v, %v)", lo, hi), Atoms: true, Draws: func(out *tensor.Tensor) ([]op.Draw, error) {
		return eachDraw(out, func(_ int, v float64) (below, upto float64, ok bool) {
			return (v - lo) / (hi - lo), (v + 1 - lo) / (hi - lo), v == math.Floor(v) && v >= lo && v < hi
		}, fmt.Sprintf("an integer in [%v, %v)", lo, hi))
	}}
}

// permutations is the law of a random order. Its draws are the digits of the
// Lehmer code, the numbers of smaller elements to the right: the digit of
// element i is uniform over n - i numbers and independent of the others.
func permutations(n int) *op.Law {
	if n < 2 {
		return nil
	}
	return &op.Law{Support: "a permutation", Atoms: true, Draws: func(out *tensor.Tensor) ([]op.Draw, error) {
		var ds []op.Draw
		tree := make([]int, n+1) // Fenwick's, of the elements to the right
		seen := make([]bool, n)
		for i := n - 1; i >= 0; i-- {
			v := out.Float(i)
			if v != math.Floor(v) || v < 0 || v >= float64(n) || seen[int(v)] {
				return nil, outside(i, out, fmt.Sprintf("each of 0 to %d once", n-1))
			}
			seen[int(v)] = true
			smaller := 0
			for k := int(v); k > 0; k -= k & -k {
				smaller += tree[k]
			}
			for k := int(v) + 1; k <= n; k += k & -k {
				tree[k]++
			}
			if left := float64(n - i); left > 1 {
				ds = append(ds, op.Draw{At: i, Below: float64(smaller) / left, Upto: float64(smaller+1) / left})
			}
		}
		return ds, nil
	}}
}

func checkMultinomial(a op.Args) error {
	x, n := a.Value(arg.Input), a.Int(arg.NumSamples)
	rank := len(x.Shape())
	switch {
	case rank != 1 && rank != 2:
		return op.RuntimeError("argument 'input' must have 1 or 2 dimensions, but has shape %s", tensor.ShapeString(x.Shape()))
	case !x.DType().IsFloat():
		return op.RuntimeError("argument 'input' must have a floating dtype, but has %s", x.DType())
	case n <= 0:
		return op.RuntimeError("argument 'num_samples' must be positive, but is %d", n)
	case !a.Bool(arg.Replacement) && n > x.Shape()[rank-1]:
		return op.RuntimeError("argument 'num_samples' is %d, more than the %d categories, without replacement", n, x.Shape()[rank-1])
	case x.Shape()[rank-1] == 0 && (rank == 1 || x.Shape()[0] > 0):
		return op.RuntimeError("argument 'input' must have a positive sum in each row, but has no categories")
	}
	return nil
}

// rowsOf returns the weights row by row.
func rowsOf(t *tensor.Tensor) [][]float64 {
	n := t.Shape()[t.Dim()-1]
	if t.Len() == 0 {
		return nil
	}
	return slices.Collect(slices.Chunk(wideElements(t), n))
}

func drawMultinomial(c *op.Run) error {
	n := c.Int(arg.NumSamples)
	rows := rowsOf(c.Tensor(arg.Input))
	out := tensor.Data[int64](c.Out[0])
	unit, words := make([]float64, n), make([]uint64, n)
	for r, weights := range rows {
		sum := 0.0
		for _, w := range weights {
			if !(w >= 0) || math.IsInf(w, 1) {
				return op.RuntimeError("argument 'input' must have finite elements that are not negative, but has %v", w)
			}
			sum += w
		}
		if sum <= 0 {
			return op.RuntimeError("argument 'input' must have a positive sum in each row, but row %d has %v", r, sum)
		}
		c.Random(words, r*n)
		for i, w := range words {
			unit[i] = kernel.Unit(w)
		}
		kernel.Multinomial(out[r*n:(r+1)*n], weights, c.Bool(arg.Replacement), unit)
	}
	return nil
}

// multinomialLaw follows each row: without replacement, an index has its share
// of what the earlier ones have left.
func multinomialLaw(a op.Args) *op.Law {
	rows, n, again := rowsOf(a.Tensor(arg.Input)), a.Int(arg.NumSamples), a.Bool(arg.Replacement)
	return &op.Law{Support: "indices of positive weight", Atoms: true, Draws: func(out *tensor.Tensor) ([]op.Draw, error) {
		var ds []op.Draw
		for r, row := range rows {
			left := slices.Clone(row)
			for k := range n {
				i := r*n + k
				at, below, sum := int(out.Int(i)), 0.0, 0.0
				for c, w := range left {
					sum += max(w, 0)
					if c < at {
						below += max(w, 0)
					}
				}
				if at < 0 || at >= len(left) || left[at] < 0 || sum > 0 && left[at] == 0 {
					return nil, outside(i, out, "an index of positive weight, once without replacement")
				}
				if sum > left[at] {
					ds = append(ds, op.Draw{At: i, Below: below / sum, Upto: unitInterval((below + left[at]) / sum)})
				}
				if !again {
					left[at] = -1
				}
			}
		}
		return ds, nil
	}}
}

func poissonLaw(a op.Args) *op.Law {
	rate := a.Tensor(arg.Input)
	return &op.Law{Support: "counts", Atoms: true, Draws: func(out *tensor.Tensor) ([]op.Draw, error) {
		return eachDraw(out, func(i int, v float64) (below, upto float64, ok bool) {
			r := rate.Float(i)
			if v != math.Floor(v) || v < 0 || r == 0 && v > 0 || math.IsInf(v, 1) {
				return 0, 1, false
			}
			if v > largestInteger(out.DType()) || r > 1e4 {
				return 0, 1, true
			}
			below, upto = poissonCDF(r, v)
			return below, upto, true
		}, "a count, 0 for the rate 0")
	}}
}

// poissonCDF returns P(X < k) and P(X ≤ k) of a rate.
func poissonCDF(rate, k float64) (below, upto float64) {
	for j := 0.0; j <= k; j++ {
		lg, _ := math.Lgamma(j + 1)
		mass := math.Exp(j*math.Log(rate) - rate - lg)
		if rate == 0 {
			mass = 1 - min(j, 1)
		}
		below, upto = upto, upto+mass
	}
	return unitInterval(below), unitInterval(upto)
}
