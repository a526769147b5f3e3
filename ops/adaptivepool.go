package ops

import (
	"fmt"
	"slices"
	"strings"

	"plumb/internal/arg"
	"plumb/internal/kernel"
	"plumb/op"
	"plumb/tensor"
)

// adaptivePools are the adaptive poolings over n dimensions.
func adaptivePools(n int) []*op.Def {
	return append([]*op.Def{adaptiveMean(n)}, adaptiveMaxima(n)...)
}

// adaptiveSize begins the parameters of an adaptive pooling over n dimensions.
func adaptiveSize(n int) string {
	if n == 1 {
		return "(Tensor input, int[1] output_size"
	}
	return fmt.Sprintf("(Tensor input, int?[%d] output_size", n)
}

func adaptiveMean(n int) *op.Def {
	id := fmt.Sprintf("adaptive_avg_pool%dd", n)
	mean := &op.Def{
		Sig:     id + adaptiveSize(n) + ") -> Tensor",
		SBP:     anyOf(linear(arg.Input), planes(n, arg.Input)),
		Names:   []string{"torch.nn.functional." + id},
		Doc:     "Means over boxes " + adaptDoc,
		Infer:   inferAdaptive(n, 1),
		Kernels: windowKernels(arg.Input, adaptiveAvgRun[float32], adaptiveAvgRun[float64]),
		Grad: op.Gradient(func(g *op.Grad) op.Value {
			x := g.Value(arg.Input).Shape()
			return g.Op("adaptive_avg_pool.spread", g.G(), x[len(x)-n:])
		}),
		Saves:  savesTensors,
		Sample: func(s *op.Sampler) []any { return sampleAdaptive(s, n) },
		Tol: ownMagnitude(weighted(func(a op.Args) int {
			p, err := adaptiveOf(a, n)
			if err != nil {
				return 1
			}
			return p.terms()
		}, "a mean of the elements of a box")),
	}
	if n == 1 {
		mean.Names = append(mean.Names, "torch."+id)
	}
	return mean
}

// adaptiveMaxima are adaptive_max_pool without and with positions.
func adaptiveMaxima(n int) []*op.Def {
	top, size := fmt.Sprintf("adaptive_max_pool%dd", n), adaptiveSize(n)
	scatter := func(g *op.Grad, indices op.Value) op.Value {
		if indices == nil {
			indices = g.All(top+".indices", g.Value(arg.Input), g.Ints(arg.OutputSize))[1]
		}
		return poolScatter(g, g.G(), indices, g.Value(arg.Input), n)
	}
	sample := func(s *op.Sampler) []any {
		a := sampleAdaptive(s, n)
		return []any{s.Distinct(a[0].(*tensor.Tensor).Shape()...), a[1]}
	}
	maxima := &op.Def{
		Sig:     top + size + ") -> Tensor",
		Traits:  op.Monotone,
		Names:   []string{"torch.nn.functional." + top},
		Doc:     "Maxima over boxes " + adaptDoc,
		SBP:     planes(n, arg.Input),
		Infer:   inferAdaptive(n, 1),
		Kernels: windowKernels(arg.Input, adaptiveMaxRun[float32], adaptiveMaxRun[float64]),
		Grad:    op.Gradient(func(g *op.Grad) op.Value { return scatter(g, nil) }),
		Sample:  sample,
		Tol:     ownMagnitude(selectTol("each element is a copy of an input element")),
	}
	found := &op.Def{
		Sig:     top + ".indices" + size + ", bool return_indices=True) -> (Tensor output, Tensor indices)",
		Traits:  op.Monotone,
		Names:   []string{"torch.nn.functional." + top},
		Doc:     "Maxima and their positions in the image, without return_indices the maxima alone, over boxes " + adaptDoc,
		SBP:     planes(n, arg.Input),
		Infer:   inferAdaptive(n, 2),
		Kernels: maxima.Kernels,
		Grad:    maximaGrad(scatter),
		Sample:  sample,
		Tol:     ownMagnitude(selectTol("each element is a copy of an input element, or its position")),
	}
	defs := []*op.Def{maxima, found}
	if n == 1 {
		pair := *found
		pair.Sig = top + ".pair" + size + ") -> (Tensor output, Tensor indices)"
		pair.Names = []string{"torch." + top}
		defs = append(defs, &pair)
	}
	return defs
}

// adaptiveSpread is the transposed map of adaptive_avg_pool over any number of dimensions.
var adaptiveSpread = &op.Def{
	Sig:     "adaptive_avg_pool.spread(Tensor grad, int[] size) -> Tensor",
	SBP:     anyOf(linear(arg.Grad), planesBy(arg.Size, arg.Grad)),
	Doc:     "Gradient of adaptive_avg_pool for images of the given size: each element of grad over the size of its box is added to the elements of the box.",
	Infer:   inferAdaptiveAvgPoolSpread,
	Kernels: windowKernels(arg.Grad, adaptiveSpreadRun[float32], adaptiveSpreadRun[float64]),
	Grad:    op.GradientOf(arg.Grad, adaptiveAvgPoolSpreadGrad),
	Sample:  sampleAdaptiveAvgPoolSpread,
	Tol:     ownMagnitude(weighted(adaptiveAvgPoolSpreadTerms, "an element sums its share of every box that it is in")),
}

func inferAdaptiveAvgPoolSpread(a op.Args) ([]op.Meta, error) {
	return one(a.Value(arg.Grad).DType(), planesOf(a.Value(arg.Grad), a.Ints(arg.Size)), nil), nil
}

func adaptiveAvgPoolSpreadGrad(g *op.Grad) op.Value {
	n := len(g.Ints(arg.Size))
	s := g.Value(arg.Grad).Shape()
	return g.Op(fmt.Sprintf("adaptive_avg_pool%dd", n), g.G(), s[len(s)-n:])
}

func sampleAdaptiveAvgPoolSpread(s *op.Sampler) []any {
	n := 1 + s.Index(3)
	return []any{s.Tensor(-2, 2, s.Dims(n+1)...), s.Dims(n)}
}

func adaptiveAvgPoolSpreadTerms(a op.Args) int {
	n := len(a.Ints(arg.Size))
	s := a.Value(arg.Grad).Shape()
	terms := 1
	for i, out := range s[len(s)-n:] {
		terms *= out/max(a.Ints(arg.Size)[i], 1) + 2
	}
	return terms
}

// adaptivePlan is a checked adaptive pooling.
type adaptivePlan struct {
	in, out []int // sizes of the images
	result  []int
}

func (p *adaptivePlan) boxes() *kernel.Boxes { return adaptiveBoxes(p.in, p.out) }

// terms is the number of elements of the largest box.
func (p *adaptivePlan) terms() int {
	n := 1
	for _, axis := range p.boxes().Axes {
		if len(axis.Count) > 0 {
			n *= slices.Max(axis.Count)
		}
	}
	return n
}

func adaptiveOf(a op.Args, n int) (*adaptivePlan, error) {
	x, full := a.Value(arg.Input).Shape(), n
	if strings.HasPrefix(a.Sig.Name, "adaptive_max") || n == 3 {
		full = len(x) - 1
	}
	if d, v := len(x), a.Ints(arg.OutputSize); n > 1 && d <= len(v) {
		return nil, op.ValueError("expected input of more dimensions than output_size=%v has elements, but got size %s", v, tensor.ShapeString(x))
	}
	if d := len(x); d != n+1 && d != n+2 || tensor.NumElements(x[d-full:]) == 0 {
		return nil, op.RuntimeError("expected %dD or %dD (batch mode) input with elements, but got size %s", n+1, n+2, tensor.ShapeString(x))
	}
	v, err := tuple(a, arg.OutputSize, n)
	if err != nil {
		return nil, err
	}
	size := slices.Clone(v)
	for i := range size {
		if size[i] == op.NoInt {
			size[i] = x[len(x)-n+i]
		}
	}
	if err := checkAtLeast(0, arg.OutputSize, size); err != nil {
		return nil, err
	}
	return &adaptivePlan{x[len(x)-n:], size, append(slices.Clone(x[:len(x)-n]), size...)}, nil
}

// adaptiveBoxes divides images of size in into overlapping boxes, one for each position of size out.
func adaptiveBoxes(in, out []int) *kernel.Boxes {
	b := &kernel.Boxes{X: lifted(in, 1), Y: lifted(out, 1)}
	for i := range b.Axes {
		n, m := b.X[i], b.Y[i]
		axis := kernel.Axis{First: make([]int, m), Count: make([]int, m), Step: 1}
		for o := range m {
			axis.First[o] = o * n / m
			axis.Count[o] = ((o+1)*n+m-1)/m - axis.First[o]
		}
		b.Axes[i] = axis
	}
	return b
}

func inferAdaptive(n, results int) func(op.Args) ([]op.Meta, error) {
	return func(a op.Args) ([]op.Meta, error) {
		p, err := adaptiveOf(a, n)
		if err != nil {
			return nil, err
		}
		count := results
		if a.Sig.Takes(arg.ReturnIndices) && !a.Bool(arg.ReturnIndices) {
			count = 1
		}
		return pooled(a.Value(arg.Input), p.result, n, count), nil
	}
}

func adaptiveAvgRun[T float32 | float64](c *op.Run) error {
	n := c.Sig.Params[c.Sig.Index(arg.OutputSize)].Type.N
	p, err := adaptiveOf(c.Args, n)
	if err != nil {
		return err
	}
	if c.Out[0].Len() > 0 {
		applyBlend(c.Out[0], c.Tensor(arg.Input), boxMean[T](p.boxes()), n)
	}
	return nil
}

func adaptiveSpreadRun[T float32 | float64](c *op.Run) error {
	size, grad := c.Ints(arg.Size), c.Tensor(arg.Grad)
	if grad.Len() == 0 {
		return zeroResults(c)
	}
	s := grad.Shape()
	spreadBlend(c.Out[0], grad, boxMean[T](adaptiveBoxes(size, s[len(s)-len(size):])), len(size))
	return nil
}

func adaptiveMaxRun[T float32 | float64](c *op.Run) error {
	n := c.Sig.Params[c.Sig.Index(arg.OutputSize)].Type.N
	p, err := adaptiveOf(c.Args, n)
	if err != nil {
		return err
	}
	if c.Out[0].Len() == 0 {
		return nil
	}
	x, boxes := contiguousData[T](c.Tensor(arg.Input)), p.boxes()
	planes := tensor.NumElements(p.result[:len(p.result)-n])
	writeTo(c.Out[0], func(y []T) {
		if len(c.Out) == 1 {
			kernel.MaxBoxes(boxes, planes, x, y, make([]int64, len(y)))
			return
		}
		writeTo(c.Out[1], func(index []int64) { kernel.MaxBoxes(boxes, planes, x, y, index) })
	})
	return nil
}

func sampleAdaptive(s *op.Sampler, n int) []any {
	x := s.Dims(n + 2)
	if s.Bool() {
		x = x[1:]
	}
	return []any{s.Tensor(-2, 2, x...), s.Dims(n)}
}
