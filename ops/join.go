package ops

import (
	"math"
	"slices"

	"plumb/internal/arg"
	"plumb/op"
	"plumb/tensor"
)

// joinOps join tensors, or bring several to common shapes.
var joinOps = []*op.Def{
	{
		Sig:     "stack(Tensor[] tensors, int dim=0) -> Tensor",
		Names:   []string{"torch.stack"},
		Doc:     "Joins tensors of one shape along a new dimension.",
		Compose: composeStack,
		Sample: func(s *op.Sampler) []any {
			shape := s.Shape(0, 3)
			return []any{sampleList(s, 1+s.Index(3), shape...), s.Index(len(shape) + 1)}
		},
		Tol: exactTol("copies its inputs"),
	},
	stacker("hstack", "atleast_1d", 1, "torch.hstack"),
	stacker("vstack", "atleast_2d", 0, "torch.vstack", "torch.row_stack"),
	stacker("dstack", "atleast_3d", 2, "torch.dstack"),
	{
		Sig:     "column_stack(Tensor[] tensors) -> Tensor",
		Names:   []string{"torch.column_stack"},
		Doc:     "Joins tensors along dimension 1; 0-d and 1-d ones become columns.",
		Compose: composeColumnStack,
		Sample:  sampleStack(1),
		Tol:     exactTol("copies its inputs"),
	},
	leastRank("atleast_1d", 1), leastRanks("atleast_1d"),
	leastRank("atleast_2d", 2), leastRanks("atleast_2d"),
	leastRank("atleast_3d", 3), leastRanks("atleast_3d"),
	{
		Sig:     "meshgrid(Tensor[] tensors, *, str? indexing=None) -> Tensor[]",
		Names:   []string{"torch.meshgrid"},
		Doc:     "Expands vectors to a common grid: result i varies along dimension i; with indexing 'xy' the first two dimensions change places.",
		SBP:     gridded,
		Compose: meshgrid,
		Sample:  sampleMeshgrid,
		Tol:     exactTol("views of its inputs"),
	},
	{
		Sig:      "broadcast_tensors(Tensor[] tensors) -> Tensor[]",
		Names:    []string{"torch.broadcast_tensors"},
		Variadic: true,
		Doc:      "Expands tensors to their common shape.",
		SBP:      pointwise,
		Compose:  composeBroadcastTensors,
		Sample:   sampleBroadcastTensors,
		Tol:      exactTol("views of its inputs"),
	},
	{
		Sig:      "block_diag(Tensor[] tensors) -> Tensor",
		Names:    []string{"torch.block_diag"},
		Variadic: true,
		Doc:      "A matrix of zeros with the tensors, of at most two dimensions, along its diagonal.",
		Compose:  blockDiag,
		Sample:   sampleBlockDiag,
		Tol:      exactTol("copies its inputs"),
	},
	{
		Sig:      "cartesian_prod(Tensor[] tensors) -> Tensor",
		Names:    []string{"torch.cartesian_prod"},
		Variadic: true,
		Doc:      "All combinations of one element of each vector, as the rows of a matrix; a single vector is returned as it is.",
		Compose:  composeCartesianProd,
		Sample:   sampleCartesianProd,
		Tol:      exactTol("copies its inputs"),
	},
	{
		Sig:     "combinations(Tensor input, int r=2, bool with_replacement=False) -> Tensor",
		Names:   []string{"torch.combinations"},
		Doc:     "All combinations of r elements of a vector in order, as the rows of a matrix.",
		Compose: combinations,
		Sample:  func(s *op.Sampler) []any { return []any{s.Tensor(-2, 2, s.Dims(1)...), s.Index(4), s.Bool()} },
		Tol:     exactTol("copies its input"),
	},
	{
		Sig:           "vander(Tensor x, int? N=None, bool increasing=False) -> Tensor",
		Names:         []string{"torch.vander"},
		Fixed:         []op.Handle{arg.X}, // PyTorch overwrites what its gradient needs
		NotSplittable: "each column is a power of the one beside it, and the columns are counted",
		Doc:           "The matrix of the powers 0 to N-1 of a vector's elements, the highest first unless increasing.",
		Compose:       vander,
		Sample:        func(s *op.Sampler) []any { return []any{s.Tensor(-2, 2, s.Dims(1)...), s.Index(5), s.Bool()} },
		Tol:           ulpTol(8, "repeated products, in any order"),
	},
	{
		Sig:     "diag_embed(Tensor input, int offset=0, int dim1=-2, int dim2=-1) -> Tensor",
		Names:   both("diag_embed"),
		Doc:     "Zeros with the input's last dimension on the diagonals of the matrices in dimensions dim1 and dim2 of the result.",
		SBP:     anyOf(linear(arg.Input), diagonalEmbedded),
		Compose: composeDiagEmbed,
		Sample:  sampleDiagEmbed,
		Tol:     exactTol("copies its input"),
	},
}

func sampleCartesianProd(s *op.Sampler) []any {
	return []any{[]any{s.Tensor(-2, 2, s.Dims(1)...), s.Tensor(-2, 2, s.Dims(1)...)}}
}

func composeDiagEmbed(b op.Builder, a op.Args) []op.Value {
	shape, d1, d2, err := embeddedShape(a)
	if err != nil {
		op.Fail(err)
	}
	x := a.Value(arg.Input)
	return vals(b.Op("diagonal_scatter", b.Op("new_zeros", x, shape), x, a.Int(arg.Offset), d1, d2))
}

func sampleDiagEmbed(s *op.Sampler) []any {
	shape := s.Shape(1, 3)
	d := s.Index(len(shape) + 1)
	return []any{s.Tensor(-2, 2, shape...), s.Int(-2, 3), d, (d + 1) % (len(shape) + 1)}
}

func composeStack(b op.Builder, a op.Args) []op.Value {
	vs := a.Values(arg.Tensors)
	if len(vs) == 0 {
		op.Fail(op.RuntimeError("stack expects a non-empty TensorList"))
	}
	first := vs[0].Shape()
	d := must(wrapDim(a.Int(arg.Dim), len(first)+1))
	parts := make([]op.Value, len(vs))
	for i, v := range vs {
		if !slices.Equal(v.Shape(), first) {
			op.Fail(op.RuntimeError("stack expects each tensor to be equal size, but got %s at entry 0 and %s at entry %d", tensor.ShapeString(first), tensor.ShapeString(v.Shape()), i))
		}
		parts[i] = b.Op("unsqueeze", v, d)
	}
	return vals(b.Op("contiguous", b.Op("cat", parts, d)))
}

func composeColumnStack(b op.Builder, a op.Args) []op.Value {
	parts := []op.Value{}
	for _, v := range a.Values(arg.Tensors) {
		if len(v.Shape()) <= 1 {
			v = b.Reshape(v, []int{tensor.NumElements(v.Shape()), 1})
		}
		parts = append(parts, v)
	}
	return vals(b.Op("hstack", parts))
}

func sampleMeshgrid(s *op.Sampler) []any {
	return []any{[]any{s.Tensor(-2, 2, s.Shape(0, 1)...), s.Tensor(-2, 2, s.Dims(1)...)}, op.Kw("indexing", []string{"ij", "xy"}[s.Index(2)])}
}

func composeBroadcastTensors(b op.Builder, a op.Args) []op.Value {
	vs := a.Values(arg.Tensors)
	shape := must(broadcastShape(vs...))
	out := []op.Value{}
	for _, v := range vs {
		out = append(out, b.Expand(v, shape))
	}
	return out
}

func sampleBroadcastTensors(s *op.Sampler) []any {
	shape := s.Shape(1, 3)
	one := slices.Clone(shape)
	one[s.Index(len(one))] = 1
	return []any{[]any{s.Tensor(-2, 2, shape...), s.Tensor(-2, 2, one...)}}
}

func sampleBlockDiag(s *op.Sampler) []any {
	return []any{[]any{s.Tensor(-2, 2, s.Shape(0, 2)...), s.Tensor(-2, 2, s.Shape(0, 2)...)}}
}

func composeCartesianProd(b op.Builder, a op.Args) []op.Value {
	vs := a.Values(arg.Tensors)
	for _, v := range vs {
		if len(v.Shape()) != 1 {
			op.Fail(op.RuntimeError("Expect a 1D vector, but got shape %s", tensor.ShapeString(v.Shape())))
		}
	}
	if len(vs) == 1 {
		return vals(vs[0])
	}
	var columns []op.Value
	for _, v := range b.All("meshgrid", vs) {
		columns = append(columns, b.Op("flatten", v))
	}
	return vals(b.Op("stack", columns, 1))
}

func sampleList(s *op.Sampler, n int, shape ...int) []any {
	var parts []any
	for range n {
		parts = append(parts, s.Tensor(-2, 2, shape...))
	}
	return parts
}

func sampleStack(lo int) func(s *op.Sampler) []any {
	return func(s *op.Sampler) []any { return []any{sampleList(s, 1+s.Index(3), s.Shape(lo, 4)...)} }
}

// stacker joins tensors along a dimension after giving each the dimensions
// that a function of atleast adds.
func stacker(name, atleast string, dim int, names ...string) *op.Def {
	return &op.Def{
		Sig:   name + "(Tensor[] tensors) -> Tensor",
		Names: names,
		Doc:   "Joins tensors along a dimension after " + atleast + "; 1-d ones along their only dimension.",
		Compose: func(b op.Builder, a op.Args) []op.Value {
			vs := a.Values(arg.Tensors)
			if len(vs) == 0 {
				op.Fail(op.RuntimeError("%s expects a non-empty TensorList", name))
			}
			parts := make([]op.Value, len(vs))
			for i, v := range vs {
				parts[i] = b.Op(atleast, v)
			}
			if len(parts[0].Shape()) == 1 {
				return vals(b.Op("cat", parts, 0))
			}
			return vals(b.Op("cat", parts, dim))
		},
		Sample: sampleStack(0),
		Tol:    exactTol("copies its inputs"),
	}
}

// leastRank is a view of at least n dimensions.
func leastRank(name string, n int) *op.Def {
	return &op.Def{
		Sig:    name + "(Tensor input) -> Tensor",
		Names:  []string{"torch." + name + "(*)"},
		Doc:    "A view with dimensions of size 1 added up to a least number of them.",
		Traits: op.Idempotent,
		Compose: func(b op.Builder, a op.Args) []op.Value {
			x := a.Value(arg.Input)
			switch have := len(x.Shape()); {
			case have >= n:
				return vals(x)
			case have == 0:
				return vals(b.Reshape(x, slices.Repeat([]int{1}, n)))
			case have == 2:
				return vals(b.Op("unsqueeze", x, 2))
			case n == 2:
				return vals(b.Op("unsqueeze", x, 0))
			}
			return vals(b.Op("unsqueeze", b.Op("unsqueeze", x, 0), 2))
		},
		Sample: sampleUnary(-2, 2),
		Tol:    exactTol("a view of its input"),
	}
}

func leastRanks(name string) *op.Def {
	return &op.Def{
		Sig:   name + ".list(Tensor[] tensors) -> Tensor[]",
		Names: []string{"torch." + name + "(*)"},
		Doc:   "Applies " + name + " to each tensor.",
		Compose: func(b op.Builder, a op.Args) []op.Value {
			out := []op.Value{}
			for _, v := range a.Values(arg.Tensors) {
				out = append(out, b.Op(name, v))
			}
			return out
		},
		Sample: sampleStack(0),
		Tol:    exactTol("views of its inputs"),
	}
}

func meshgrid(b op.Builder, a op.Args) []op.Value {
	vs := a.Values(arg.Tensors)
	if len(vs) == 0 {
		op.Fail(op.RuntimeError("meshgrid expects a non-empty TensorList"))
	}
	var shape []int
	for _, v := range vs {
		if len(v.Shape()) > 1 {
			op.Fail(op.RuntimeError("torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: %s", tensor.ShapeString(v.Shape())))
		}
		if v.DType() != vs[0].DType() {
			op.Fail(op.RuntimeError("meshgrid expects all tensors to have the same dtype"))
		}
		shape = append(shape, tensor.NumElements(v.Shape()))
	}
	swap := false
	switch mode := a.Any(arg.Indexing); mode {
	case nil, "ij":
	case "xy":
		swap = len(vs) >= 2
	default:
		op.Fail(op.RuntimeError("torch.meshgrid: indexing must be one of \"xy\" or \"ij\", but received: %v", mode))
	}
	if swap {
		vs = slices.Clone(vs)
		vs[0], vs[1], shape[0], shape[1] = vs[1], vs[0], shape[1], shape[0]
	}
	out := make([]op.Value, len(vs))
	for i, v := range vs {
		single := slices.Repeat([]int{1}, len(vs))
		single[i] = -1
		if shape[i] == 0 {
			single[i] = 0
		}
		out[i] = b.Expand(b.Reshape(v, single), shape)
	}
	if swap {
		out[0], out[1] = out[1], out[0]
	}
	return out
}

func blockDiag(b op.Builder, a op.Args) []op.Value {
	vs := a.Values(arg.Tensors)
	if len(vs) == 0 {
		return vals(b.Op("zeros", []int{1, 0}))
	}
	to, width := catType(a), 0
	blocks := make([]op.Value, len(vs))
	for i, v := range vs {
		if n := len(v.Shape()); n > 2 {
			op.Fail(op.RuntimeError("torch.block_diag: Input tensors must have 2 or fewer dimensions. Input %d has %d dimensions", i, n))
		}
		blocks[i] = b.Op("atleast_2d", b.Cast(v, to))
		width += blocks[i].Shape()[1]
	}
	left := 0
	for i, v := range blocks {
		n := v.Shape()[1]
		blocks[i] = b.Op("pad", v, []int{left, width - left - n})
		left += n
	}
	return vals(b.Op("cat", blocks, 0))
}

func combinations(b op.Builder, a op.Args) []op.Value {
	x, r := a.Value(arg.Input), a.Int(arg.R)
	if len(x.Shape()) != 1 {
		op.Fail(op.RuntimeError("Expect a 1D vector, but got shape %s", tensor.ShapeString(x.Shape())))
	}
	if r < 0 {
		op.Fail(op.RuntimeError("Expect a non-negative number, but got %d", r))
	}
	if r == 0 {
		return vals(b.Op("new_zeros", x, []int{0}))
	}
	n, again := x.Shape()[0], a.Bool(arg.WithReplacement)
	failBeyond("r", r)
	count := choices(n, r, again)
	if math.Pow(float64(n), float64(r)) > tensor.MaxElements || count*float64(r) > maxPicks {
		op.Fail(op.RuntimeError("can't allocate memory: %d of %v elements", r, n))
	}
	if count == 0 {
		return vals(b.Reshape(b.Op("narrow", x, 0, 0, 0), []int{0, r}))
	}
	picks := b.Op("tensor", chosenOf(n, r, int(count), again))
	return vals(b.Reshape(b.Op("gather", x, 0, picks), []int{int(count), r}))
}

// maxPicks is how many numbers chosenOf lists at most.
const maxPicks = 1 << 24

// choices counts the choices of r of n numbers; it is exact up to maxPicks.
func choices(n, r int, again bool) float64 {
	if again && n > 0 {
		n += r - 1
	}
	count := 1.0
	for i := range r {
		count *= float64(n-i) / float64(i+1)
	}
	return math.Round(count)
}

// chosenOf lists the choices of r of the numbers below n, one after the other.
func chosenOf(n, r, count int, again bool) []any {
	out, choice := make([]any, 0, count*r), make([]any, r)
	var choose func(at, from int)
	choose = func(at, from int) {
		if at == r {
			out = append(out, choice...)
			return
		}
		last, step := n-(r-at), 1
		if again {
			last, step = n-1, 0
		}
		for i := from; i <= last; i++ {
			choice[at] = int64(i)
			choose(at+1, i+step)
		}
	}
	choose(0, 0)
	return out
}

func vander(b op.Builder, a op.Args) []op.Value {
	x := a.Value(arg.X)
	if len(x.Shape()) != 1 {
		op.Fail(op.RuntimeError("x must be a one-dimensional tensor."))
	}
	n := x.Shape()[0]
	if a.Has(arg.UpperN) {
		n = a.Int(arg.UpperN)
	}
	if n < 0 {
		op.Fail(op.RuntimeError("N must be non-negative."))
	}
	if x.DType().IsInt() || x.DType() == tensor.Bool {
		x = b.Cast(x, tensor.I64)
	}
	if n == 0 {
		return vals(b.Op("new_zeros", x, []int{x.Shape()[0], 0}))
	}
	rows := x.Shape()[0]
	if n == 1 {
		return vals(b.Op("new_ones", x, []int{rows, 1}))
	}
	factors := []op.Value{b.Op("new_ones", x, []int{rows, 1}), b.Expand(b.Reshape(x, []int{rows, 1}), []int{rows, n - 1})}
	powers := b.Op("cumprod", b.Op("cat", factors, 1), 1)
	if !a.Bool(arg.Increasing) {
		powers = b.Op("flip", powers, []int{1})
	}
	return vals(powers)
}

// embeddedShape returns the shape of a diag_embed and its wrapped dimensions.
func embeddedShape(a op.Args) (shape []int, d1, d2 int, err error) {
	in := a.Value(arg.Input).Shape()
	n := len(in) + 1
	if d1, err = wrapDim(a.Int(arg.Dim1), n); err != nil {
		return
	}
	if d2, err = wrapDim(a.Int(arg.Dim2), n); err != nil {
		return
	}
	if d1 == d2 {
		err = op.RuntimeError("diagonal dimensions cannot be identical %d, %d", a.Int(arg.Dim1), a.Int(arg.Dim2))
		return
	}
	if len(in) == 0 {
		err = op.IndexError("Dimension out of range: diag_embed needs an argument 'input' of at least one dimension")
		return
	}
	side := in[len(in)-1] + max(a.Int(arg.Offset), -a.Int(arg.Offset))
	shape = slices.Clone(in[:len(in)-1])
	for _, d := range []int{min(d1, d2), max(d1, d2)} {
		shape = slices.Insert(shape, d, side)
	}
	return
}
