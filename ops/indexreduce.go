package ops

import (
	"slices"

	"plumb/internal/arg"
	"plumb/internal/kernel"
	"plumb/op"
	"plumb/tensor"
)

// combineType is the dtype in which elements of d are combined.
func combineType(d tensor.DType) tensor.DType {
	switch {
	case d == tensor.Bool || d.IsInt():
		return tensor.I64
	case d.IsComplex():
		return tensor.C128
	}
	return workType(d)
}

// reduceEntries runs index_add and index_reduce.
func reduceEntries(c *op.Run, r kernel.Reduction, self bool, alpha op.Scalar) error {
	return reduceInto(c, r, self, func(t *tensor.Tensor) (kernel.Selection, *tensor.Tensor, error) {
		s, err := chosenEntries(t, dimOf(c.Args), c.Tensor(arg.Index))
		if err != nil {
			return s, nil, err
		}
		src := reshapedTo(c.Tensor(arg.Source).Convert(t.DType()), s.View.Shape())
		if k := alpha.Complex(); k != 1 {
			scaled := tensor.New(t.DType(), src.Shape()...)
			multiplied(scaled, src, scalarTensor(alpha, c.Out[0].DType()).Convert(t.DType()))
			src = scaled
		}
		return s, src, nil
	})
}

// multiplied sets out = a·b in the lanes of combineType.
func multiplied(out, a, b *tensor.Tensor) {
	switch out.DType() {
	case tensor.F32:
		kernel.Map2(out, a, b, kernel.Mul[float32])
	case tensor.F64:
		kernel.Map2(out, a, b, kernel.Mul[float64])
	case tensor.I64:
		kernel.Map2(out, a, b, kernel.Mul[int64])
	case tensor.C128:
		kernel.Map2(out, a, b, kernel.Mul[complex128])
	}
}

// reduceElements runs scatter_reduce and scatter with a reduction.
func reduceElements(c *op.Run, r kernel.Reduction, self bool, src *tensor.Tensor) error {
	if c.Tensor(arg.Index).Len() == 0 {
		c.Out[0].CopyFrom(c.Tensor(arg.Input))
		return nil
	}
	return reduceInto(c, r, self, func(t *tensor.Tensor) (kernel.Selection, *tensor.Tensor, error) {
		s, err := chosenElements(t, dimOf(c.Args), c.Tensor(arg.Index))
		if err != nil {
			return s, nil, err
		}
		if src.Dim() == 0 {
			src, _ = src.View(1)
		}
		part, err := src.AsStrided(s.View.Shape(), src.Strides(), src.Offset())
		if err != nil {
			return s, nil, err
		}
		return s, part.Convert(t.DType()), nil
	})
}

const meanReduction kernel.Reduction = "mean"

// reduceInto combines what choose selects in a copy of the input, in a dtype
// of more precision, and rounds once.
func reduceInto(c *op.Run, r kernel.Reduction, self bool, choose func(*tensor.Tensor) (kernel.Selection, *tensor.Tensor, error)) error {
	sum := c.Tensor(arg.Input).Convert(combineType(c.Out[0].DType()))
	s, src, err := choose(sum)
	if err != nil {
		return err
	}
	if !self {
		s.Put(repeated(r.Identity(sum.DType()), src.Shape()))
	}
	if r == meanReduction {
		s.Combine(src, kernel.ReduceSum)
		if d := c.Out[0].DType(); d.IsInt() {
			sum = sum.Convert(d).Convert(tensor.I64) // PyTorch's sums wrap around before they are divided
		}
		if err := divideByCounts(sum, self, choose); err != nil {
			return err
		}
	} else {
		s.Combine(src, r)
	}
	c.Out[0].CopyFrom(sum)
	return nil
}

// divideByCounts divides each element by how many were summed into it;
// integers are rounded down.
func divideByCounts(sum *tensor.Tensor, self bool, choose func(*tensor.Tensor) (kernel.Selection, *tensor.Tensor, error)) error {
	counts := tensor.New(sum.DType(), sum.Shape()...)
	unit := kernel.ReduceProd.Identity(sum.DType())
	if self {
		counts.CopyFrom(repeated(unit, sum.Shape()))
	}
	s, src, err := choose(counts)
	if err != nil {
		return err
	}
	s.Combine(repeated(unit, src.Shape()), kernel.ReduceSum)
	for i := range sum.Len() {
		switch n := counts.Float(i); {
		case n <= 1:
		case sum.DType() == tensor.I64:
			k, v := int64(n), sum.Int(i)
			q := v / k
			if v%k < 0 {
				q--
			}
			sum.SetInt(i, q)
		default:
			v := sum.At(i)
			sum.Set(i, complex(real(v)/n, imag(v)/n))
		}
	}
	return nil
}

func scatterReduction(a op.Args) kernel.Reduction {
	if a.Str(arg.ReduceStr) == "add" {
		return kernel.ReduceSum
	}
	return kernel.ReduceProd
}

// entries gathers the cotangent's entries for source.
func entries(g *op.Grad) op.Value {
	return g.Reshape(g.Op("index_select", g.G(), dimOf(g.Args), g.Value(arg.Index)), g.Value(arg.Source).Shape())
}

func entryTerms(a op.Args) int { return 1 + tensor.NumElements(a.Value(arg.Index).Shape()) }

// reductionWriter is how a reduction's gradient reaches the operators of its family.
type reductionWriter struct {
	source         op.TensorArg
	reduce         func(g *op.Grad, self, src op.Value) op.Value // the same reduction of other values
	add            func(g *op.Grad, to, src op.Value) op.Value
	gather, zeroed func(g *op.Grad, v op.Value) op.Value // entries for source; v without the entries that index names
}

var scatterWriter = reductionWriter{
	source: arg.Src,
	reduce: func(g *op.Grad, self, src op.Value) op.Value {
		return g.Op("scatter_reduce", self, dimOf(g.Args), g.Value(arg.Index), src, g.Str(arg.ReduceStr), op.Kw("include_self", g.Bool(arg.IncludeSelf)))
	},
	add: func(g *op.Grad, to, src op.Value) op.Value {
		return g.Op("scatter_add", to, dimOf(g.Args), g.Value(arg.Index), src)
	},
	gather: func(g *op.Grad, v op.Value) op.Value { return g.Op("gather", v, dimOf(g.Args), g.Value(arg.Index)) },
	zeroed: func(g *op.Grad, v op.Value) op.Value {
		return g.Op("scatter.value", v, dimOf(g.Args), g.Value(arg.Index), 0.0)
	},
}

var indexWriter = reductionWriter{
	source: arg.Source,
	reduce: func(g *op.Grad, self, src op.Value) op.Value {
		return g.Op("index_reduce", self, dimOf(g.Args), g.Value(arg.Index), src, g.Str(arg.ReduceStr), op.Kw("include_self", g.Bool(arg.IncludeSelf)))
	},
	add: func(g *op.Grad, to, src op.Value) op.Value {
		return g.Op("index_add", to, dimOf(g.Args), g.Value(arg.Index), src)
	},
	gather: func(g *op.Grad, v op.Value) op.Value {
		return g.Reshape(g.Op("index_select", v, dimOf(g.Args), g.Value(arg.Index)), g.Value(arg.Source).Shape())
	},
	zeroed: func(g *op.Grad, v op.Value) op.Value {
		return g.Op("index_fill", v, dimOf(g.Args), g.Cast(g.Value(arg.Index), tensor.I64), 0.0)
	},
}

// reductionGrad follows PyTorch's scatter_reduce_backward: a product divides
// by each factor, or is taken without it where it is the only zero; mean
// divides by the counts; the extremes share the gradient evenly.
func reductionGrad(w reductionWriter) func(g *op.Grad) {
	return func(g *op.Grad) {
		var self, src func() op.Value
		switch g.Str(arg.ReduceStr) {
		case "sum":
			self, src = g.G, func() op.Value { return w.gather(g, g.G()) }
		case "prod":
			self, src = w.productGrads(g)
		case "mean":
			self, src = w.meanGrads(g)
		default:
			self, src = w.extremeGrads(g)
		}
		g.To(arg.Input, func() op.Value {
			if g.Bool(arg.IncludeSelf) {
				return self()
			}
			return w.zeroed(g, self())
		})
		g.To(w.source, src)
	}
}

func (w reductionWriter) productGrads(g *op.Grad) (self, src func() op.Value) {
	x, s := g.Value(arg.Input), g.Value(w.source)
	self = func() op.Value {
		masked := g.Op("where", g.Op("eq", x, 0.0), g.Add(zeros(g, x), 1.0), x)
		return g.Div(g.Mul(g.G(), conj(g, w.reduce(g, masked, s))), conj(g, masked))
	}
	src = func() op.Value {
		zero := g.Op("eq", s, 0.0)
		count := w.gather(g, w.add(g, zeros(g, x), g.Cast(zero, x.DType())))
		single := g.Op("where", zero, g.Op("eq", count, 1.0), zero)
		without := w.reduce(g, x, g.Op("where", single, g.Add(zeros(g, s), 1.0), s))
		direct := w.gather(g, g.Mul(g.G(), conj(g, without)))
		divided := g.Div(w.gather(g, g.Mul(g.G(), conj(g, g.Out[0]))), conj(g, g.Op("where", zero, g.Add(zeros(g, s), 1.0), s)))
		return g.Op("where", single, direct, divided)
	}
	return self, src
}

func (w reductionWriter) meanGrads(g *op.Grad) (self, src func() op.Value) {
	counts := zeros(g, g.Value(arg.Input))
	if g.Bool(arg.IncludeSelf) {
		counts = g.Add(counts, 1.0)
	}
	counts = w.add(g, counts, g.Add(zeros(g, g.Value(w.source)), 1.0))
	counts = g.Op("where", g.Op("eq", counts, 0.0), g.Add(counts, 1.0), counts)
	self = func() op.Value { return g.Div(g.G(), counts) }
	return self, func() op.Value { return w.gather(g, self()) }
}

func (w reductionWriter) extremeGrads(g *op.Grad) (self, src func() op.Value) {
	x, s, y := g.Value(arg.Input), g.Value(w.source), g.Out[0]
	selfHits := g.Cast(g.Op("eq", x, y), x.DType())
	srcHits := g.Cast(g.Op("eq", s, w.gather(g, y)), x.DType())
	share := g.Div(g.G(), w.add(g, selfHits, srcHits))
	return func() op.Value { return g.Mul(selfHits, share) }, func() op.Value { return g.Mul(srcHits, w.gather(g, share)) }
}

// sampleEntries draws input, dim, index and source; an index without repeats on demand.
func sampleEntries(s *op.Sampler, once bool) []any {
	shape := s.Shape(1, 4)
	d := s.Index(len(shape))
	n := s.Index(shape[d] + 1)
	index := sampleIndex(s, []int{n}, shape[d])
	if once {
		shift := s.Index(shape[d])
		for i := range n {
			index.SetInt(i, int64((i+shift)%shape[d]))
		}
	}
	part := slices.Clone(shape)
	part[d] = n
	return []any{s.Tensor(-2, 2, shape...), d, index, s.Tensor(-2, 2, part...)}
}
