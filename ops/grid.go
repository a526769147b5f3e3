package ops

import (
	"slices"

	"plumb/internal/arg"
	"plumb/internal/kernel"
	"plumb/op"
	"plumb/tensor"
)

// gridOps read images at given coordinates, and make such coordinates.
var gridOps = []*op.Def{
	{
		Sig:     "affine_grid(Tensor theta, int[] size, bool? align_corners=None) -> Tensor",
		Names:   []string{"torch.nn.functional.affine_grid"},
		Doc:     "Coordinates for grid_sample: out[n, …, i] = Σ theta[n, i, j]·p[j] for every position p = (x, y, [z,] 1) of an image of the given size [N, C, …] from −1 to 1, the ends of the image, or the centres of its outer elements with align_corners.",
		SBP:     anyOf(linear(arg.Theta), gridOfBatch),
		Infer:   inferAffineGrid,
		Kernels: windowKernels(arg.Theta, affineRun[float32], affineRun[float64]),
		Grad:    op.GradientOf(arg.Theta, func(g *op.Grad) op.Value { return g.Op("affine_grid.theta", g.G(), g.Bool(arg.AlignCorners)) }),
		Sample:  sampleAffineGrid,
		Formula: affineGridFormula,
		Tol:     weighted(func(a op.Args) int { return 3 * a.Value(arg.Theta).Shape()[2] }, "each element sums one product per coordinate, which PyTorch rounds twice"),
	},
	{
		Sig:     "affine_grid.theta(Tensor grad, bool align_corners) -> Tensor",
		Doc:     "Gradient of affine_grid with respect to theta.",
		SBP:     anyOf(linear(arg.Grad), axes("grad n~ -> n~")),
		Infer:   inferAffineGridTheta,
		Kernels: windowKernels(arg.Grad, affineThetaRun[float32], affineThetaRun[float64]),
		Grad:    op.GradientOf(arg.Grad, affineGridThetaGrad),
		Sample:  sampleAffineGridTheta,
		Formula: affineThetaFormula,
		Tol:     weighted(affineGridThetaTerms, "each element sums one product per position"),
	},
	{
		Sig:     "grid_sample(Tensor input, Tensor grid, str mode='bilinear', str padding_mode='zeros', bool? align_corners=None) -> Tensor",
		Domains: map[op.TensorArg]op.Domain{arg.Grid: op.IntRange}, // its gradient reads outside of memory
		Names:   []string{"torch.nn.functional.grid_sample"},
		Doc:     "Reads images at the coordinates grid[n, …, (x, y[, z])]: −1 and 1 are the ends of the image, or with align_corners the centres of its outer elements. Between elements the nearest, a linear or a cubic curve counts; outside the image zero, its border, or its reflection.",
		SBP:     sampledGrid,
		Infer:   inferGridSample,
		Kernels: windowKernels(arg.Input, gridSampleRun[float32], gridSampleRun[float64]),
		Grad:    gridSampleGrad,
		Sample:  func(s *op.Sampler) []any { return sampleGrid(s) },
		Tol:     weighted(gridTerms, "each element sums the weighted neighbours of a position"),
	},
	{
		Sig:     "grid_sample.read(Tensor input, Tensor grid, str mode, str padding_mode, bool align_corners, int[] order) -> Tensor",
		Doc:     "grid_sample, differentiated order[i] times by coordinate i of every position.",
		SBP:     sampledGrid,
		Infer:   inferGridSample,
		Kernels: windowKernels(arg.Input, gridSampleRun[float32], gridSampleRun[float64]),
		Grad:    gridSampleGrad,
		Sample:  sampleGridRead,
		Tol:     weighted(gridTerms, "each element sums the weighted neighbours of a position"),
	},
	{
		Sig:     "grid_sample.spread(Tensor grad, Tensor grid, int[] size, str mode, str padding_mode, bool align_corners, int[] order) -> Tensor",
		Doc:     "Gradient of grid_sample.read with respect to images of the given size.",
		SBP:     anyOf(linear(arg.Grad), axes("grad nchw, grid nhw. -> nc.. | grad ncdhw, grid ndhw. -> nc...")),
		Infer:   inferGridSampleSpread,
		Kernels: windowKernels(arg.Grad, gridSpreadRun[float32], gridSpreadRun[float64]),
		Grad:    gridSampleSpreadGrad,
		Sample:  sampleGridSampleSpread,
		Tol:     weighted(func(a op.Args) int { return tensor.NumElements(a.Value(arg.Grad).Shape()[2:]) }, "an element sums its share of every position that reads it"),
	},
}

func inferAffineGrid(a op.Args) ([]op.Meta, error) {
	shape, err := affineShape(a)
	if err != nil {
		return nil, err
	}
	return one(a.Value(arg.Theta).DType(), shape, nil), nil
}

func sampleAffineGrid(s *op.Sampler) []any {
	n := 2 + s.Index(2)
	size := s.Dims(n + 2)
	return []any{s.Tensor(-2, 2, size[0], n, n+1), size, s.Bool()}
}

func inferAffineGridTheta(a op.Args) ([]op.Meta, error) {
	v := a.Value(arg.Grad)
	s := v.Shape()
	n := s[len(s)-1]
	return one(v.DType(), []int{s[0], n, n + 1}, nil), nil
}

func affineGridThetaGrad(g *op.Grad) op.Value {
	s := g.Value(arg.Grad).Shape()
	return g.Op("affine_grid", g.G(), append([]int{s[0], 1}, s[1:len(s)-1]...), g.Bool(arg.AlignCorners))
}

func sampleAffineGridTheta(s *op.Sampler) []any {
	n := 2 + s.Index(2)
	return []any{s.Tensor(-2, 2, append(s.Dims(n+1), n)...), s.Bool()}
}

func affineGridThetaTerms(a op.Args) int {
	s := a.Value(arg.Grad).Shape()
	return tensor.NumElements(s[1 : len(s)-1])
}

func inferGridSampleSpread(a op.Args) ([]op.Meta, error) {
	s := a.Value(arg.Grad).Shape()
	return one(a.Value(arg.Grad).DType(), append(slices.Clone(s[:2]), a.Ints(arg.Size)...), nil), nil
}

func gridSampleSpreadGrad(g *op.Grad) {
	g.To(arg.Grad, func() op.Value { return readGrid(g, g.G(), g.Ints(arg.Order)) })
	g.To(arg.Grid, func() op.Value { return coordinateGrad(g, g.Value(arg.Grad), g.G()) })
}

func sampleGridSampleSpread(s *op.Sampler) []any {
	a := sampleGridRead(s)
	size, grid := a[0].(*tensor.Tensor).Shape(), a[1].(*tensor.Tensor).Shape()
	grad := s.Tensor(-2, 2, append(slices.Clone(size[:2]), grid[1:len(grid)-1]...)...)
	return append([]any{grad, a[1], size[2:]}, a[2:]...)
}

func affineShape(a op.Args) ([]int, error) {
	size, v := a.Ints(arg.Size), a.Value(arg.Theta)
	if d := v.DType(); !d.IsFloat() {
		return nil, op.ValueError("expected theta to have a floating point dtype, but got %s", d)
	}
	n := len(size) - 2
	if n != 2 && n != 3 {
		return nil, notImplemented("size must have 4 or 5 elements, but is %v", size)
	}
	theta := v.Shape()
	if len(theta) != 3 || theta[1] != n || theta[2] != n+1 {
		return nil, op.ValueError("expected theta of size [N, %d, %d] for size %v, but got %s", n, n+1, size, tensor.ShapeString(theta))
	}
	unchecked := a.Bool(arg.AlignCorners) && slices.Min(size[2:]) == 1 // PyTorch warns in place of checking
	switch {
	case unchecked && size[0] < 0:
		return nil, op.RuntimeError("expected a positive size, but got %v", size)
	case !unchecked && slices.Min(size) < 1:
		return nil, op.ValueError("expected a positive size, but got %v", size)
	}
	if theta[0] != size[0] {
		return nil, op.RuntimeError("theta of size %s and size=%v must have the same batch", tensor.ShapeString(theta), size)
	}
	return append(append([]int{size[0]}, size[2:]...), n), nil
}

// corners returns the coordinate of each of n positions between −1 and 1.
func corners[T float32 | float64](n int, align bool) []T {
	at := make([]T, n)
	for i := range at {
		if n == 1 {
			break
		}
		at[i] = T(2*i-(n-1)) / T(n-1)
		if !align {
			at[i] = T(2*i-(n-1)) / T(n)
		}
	}
	return at
}

// positions returns (x, y[, z], 1) of every position of an image.
func positions[T float32 | float64](size []int, align bool) []T {
	n := len(size)
	axes := make([][]T, n)
	for i := range axes {
		axes[i] = corners[T](size[i], align)
	}
	out := make([]T, 0, tensor.NumElements(size)*(n+1))
	for p := range tensor.NumElements(size) {
		row, rest := make([]T, n+1), p
		for i := n - 1; i >= 0; i-- {
			row[n-1-i] = axes[i][rest%size[i]]
			rest /= size[i]
		}
		row[n] = 1
		out = append(out, row...)
	}
	return out
}

func affineRun[T float32 | float64](c *op.Run) error {
	size, theta := c.Ints(arg.Size)[2:], contiguousData[T](c.Tensor(arg.Theta))
	n, count := len(size), tensor.NumElements(size)
	base, out := positions[T](size, c.Bool(arg.AlignCorners)), tensor.Data[T](c.Out[0])
	for i := range c.Out[0].Len() {
		batch, p, row := i/n/count, i/n%count, i%n
		var sum T
		for j, w := range theta[(batch*n+row)*(n+1):][:n+1] {
			sum += w * base[p*(n+1)+j]
		}
		out[i] = sum
	}
	return nil
}

func affineThetaRun[T float32 | float64](c *op.Run) error {
	g := c.Tensor(arg.Grad)
	s := g.Shape()
	n := s[len(s)-1]
	size, grad, out := s[1:len(s)-1], contiguousData[T](g), tensor.Data[T](c.Out[0])
	base, count := positions[T](size, c.Bool(arg.AlignCorners)), tensor.NumElements(size)
	for i := range c.Out[0].Len() {
		batch, row, column := i/(n+1)/n, i/(n+1)%n, i%(n+1)
		var sum T
		for p := range count {
			sum += grad[(batch*count+p)*n+row] * base[p*(n+1)+column]
		}
		out[i] = sum
	}
	return nil
}

var (
	gridCurves = map[string]kernel.Curve{"nearest": kernel.NearestCurve, "bilinear": kernel.LinearCurve, "bicubic": kernel.CubicCurve}
	gridEdges  = map[string]kernel.Edge{"zeros": kernel.ZeroEdge, "border": kernel.BorderEdge, "reflection": kernel.ReflectEdge}
)

func inferGridSample(a op.Args) ([]op.Meta, error) {
	if err := checkGridSample(a); err != nil {
		return nil, err
	}
	x, grid := a.Value(arg.Input), a.Value(arg.Grid).Shape()
	shape := append(slices.Clone(x.Shape()[:2]), grid[1:len(grid)-1]...)
	return one(x.DType(), shape, nil), nil
}

func checkGridSample(a op.Args) error {
	if _, ok := gridCurves[a.Str(arg.Mode)]; !ok {
		return op.ValueError("expected mode to be 'bilinear', 'nearest' or 'bicubic', but got '%s'", a.Str(arg.Mode))
	}
	if _, ok := gridEdges[a.Str(arg.PaddingMode)]; !ok {
		return op.ValueError("expected padding_mode to be 'zeros', 'border' or 'reflection', but got '%s'", a.Str(arg.PaddingMode))
	}
	x, grid := a.Value(arg.Input).Shape(), a.Value(arg.Grid).Shape()
	n := len(x) - 2
	switch {
	case len(x) == 0 || len(grid) == 0:
		return op.IndexError("expected input and grid to have a dimension of samples, but got sizes %s and %s", tensor.ShapeString(x), tensor.ShapeString(grid))
	case n != 2 && n != 3 || len(grid) != len(x):
		return op.RuntimeError("expected 4D or 5D input and a grid of as many dimensions, but got sizes %s and %s", tensor.ShapeString(x), tensor.ShapeString(grid))
	case x[0] != grid[0]:
		return op.RuntimeError("expected input and grid to have the same batch, but got sizes %s and %s", tensor.ShapeString(x), tensor.ShapeString(grid))
	case grid[n+1] != n:
		return op.RuntimeError("expected the last dimension of grid to have size %d, but got size %s", n, tensor.ShapeString(grid))
	case tensor.NumElements(x[2:]) == 0:
		return op.RuntimeError("expected input with non-empty images, but got size %s", tensor.ShapeString(x))
	case n == 3 && a.Str(arg.Mode) == "bicubic":
		return op.RuntimeError("mode 'bicubic' only supports 4D input, but got size %s", tensor.ShapeString(x))
	case a.Value(arg.Input).DType() != a.Value(arg.Grid).DType():
		return op.RuntimeError("expected input and grid to have the same dtype, but got %s and %s", a.Value(arg.Input).DType(), a.Value(arg.Grid).DType())
	}
	return nil
}

// gridOf is the geometry of reading images of the given size at a grid.
func gridOf(a op.Args, size, images []int) *kernel.Grid {
	grid := a.Value(arg.Grid).Shape()
	n := len(size)
	g := &kernel.Grid{
		N: images[0], C: images[1], P: tensor.NumElements(grid[1 : n+1]), Dims: n, X: lifted(size, 1),
		Align: a.Bool(arg.AlignCorners), Edge: gridEdges[a.Str(arg.PaddingMode)], Curve: gridCurves[a.Str(arg.Mode)],
	}
	for i, order := range gridOrder(a, n) {
		g.Order[2-i] = order
	}
	return g
}

// gridOrder is the order argument, which grid_sample lacks.
func gridOrder(a op.Args, n int) []int {
	if !a.Sig.Takes(arg.Order) {
		return make([]int, n)
	}
	return a.Ints(arg.Order)
}

func gridTerms(a op.Args) int {
	n := len(a.Value(arg.Input).Shape()) - 2
	if a.Str(arg.Mode) == "bicubic" {
		return 1 << (2 * n)
	}
	return 1 << n
}

func gridSampleRun[T float32 | float64](c *op.Run) error {
	x := c.Tensor(arg.Input)
	g := gridOf(c.Args, x.Shape()[2:], x.Shape())
	kernel.SampleGrid(g, contiguousData[T](x), contiguousData[T](c.Tensor(arg.Grid)), tensor.Data[T](c.Out[0]))
	return nil
}

func gridSpreadRun[T float32 | float64](c *op.Run) error {
	grad := c.Tensor(arg.Grad)
	g := gridOf(c.Args, c.Ints(arg.Size), grad.Shape())
	kernel.SpreadGrid(g, contiguousData[T](grad), contiguousData[T](c.Tensor(arg.Grid)), tensor.Data[T](c.Out[0])[:c.Out[0].Len()])
	return nil
}

func gridSampleGrad(g *op.Grad) {
	x := g.Value(arg.Input)
	n := len(x.Shape()) - 2
	g.To(arg.Input, func() op.Value {
		return g.Op("grid_sample.spread", g.G(), g.Value(arg.Grid), x.Shape()[2:], g.Str(arg.Mode), g.Str(arg.PaddingMode), g.Bool(arg.AlignCorners), gridOrder(g.Args, n))
	})
	g.To(arg.Grid, func() op.Value { return coordinateGrad(g, g.G(), x) })
}

// readGrid reads images as the call that is differentiated does, with another order.
func readGrid(g *op.Grad, images op.Value, order []int) op.Value {
	return g.Op("grid_sample.read", images, g.Value(arg.Grid), g.Str(arg.Mode), g.Str(arg.PaddingMode), g.Bool(arg.AlignCorners), order)
}

// coordinateGrad returns Σ over channels of cot times the derivative of what
// is read of the images by each coordinate.
func coordinateGrad(g *op.Grad, cot, images op.Value) op.Value {
	n := len(images.Shape()) - 2
	var parts []op.Value
	for i := range n {
		order := slices.Clone(gridOrder(g.Args, n))
		order[i]++
		slope := g.Op("sum", g.Mul(cot, readGrid(g, images, order)), op.Kw("dim", []int{1}))
		parts = append(parts, g.Op("unsqueeze", slope, n+1))
	}
	return g.Op("cat", parts, n+1)
}

// sampleGrid draws images, and coordinates away from the places where the
// result bends.
func sampleGrid(s *op.Sampler) []any {
	n := 2 + s.Index(2)
	x, align := s.Dims(n+2), s.Bool()
	modes := []string{"bilinear", "nearest", "bicubic"}[:5-n]
	grid := tensor.New(s.DType, append(append([]int{x[0]}, s.Dims(n)...), n)...)
	for i := range grid.Len() {
		size := x[n+1-i%n]
		at := float64(s.Int(-2, int64(size)+1)) + []float64{0.2, 0.3, 0.7, 0.8}[s.Index(4)]
		v := (2*at+1)/float64(size) - 1
		if align && size > 1 {
			v = 2*at/float64(size-1) - 1
		}
		grid.Set(i, complex(v, 0))
	}
	return []any{s.Tensor(-2, 2, x...), grid, modes[s.Index(len(modes))], []string{"zeros", "border", "reflection"}[s.Index(3)], align}
}

func sampleGridRead(s *op.Sampler) []any {
	a := sampleGrid(s)
	order := make([]int, len(a[0].(*tensor.Tensor).Shape())-2)
	order[s.Index(len(order))] = s.Index(2)
	return append(a, order)
}
