package ops

import (
	"slices"
	"strings"

	"plumb/internal/arg"
	"plumb/internal/kernel"
	"plumb/op"
	"plumb/tensor"
)

// uniqueOps group equal elements; how many groups there are depends on them.
var uniqueOps = slices.Concat(uniqueDefs("unique", true), uniqueDefs("unique_consecutive", false))

// uniqueDefs are the operator with each choice of what it returns beside the
// groups, for a signature has a fixed number of results.
func uniqueDefs(name string, all bool) []*op.Def {
	return []*op.Def{
		uniqueDef(name, "", all, false, false),
		uniqueDef(name, ".both", all, true, true),
		uniqueDef(name, ".inverse", all, true, false),
		uniqueDef(name, ".counts", all, false, true),
	}
}

// uniqueSigs are the signatures by keyword and by position.
func uniqueSigs(id string, all, inverse, counts bool) (keyword, position string) {
	results, required, optional := "Tensor output", "", ""
	for _, r := range []struct {
		flag, result string
		on           bool
	}{{"return_inverse", "inverse_indices", inverse}, {"return_counts", "counts", counts}} {
		if r.on {
			results += ", Tensor " + r.result
			required += ", bool " + r.flag
		} else {
			optional += ", bool " + r.flag + "=False"
		}
	}
	results = "(" + results + ")"
	if !inverse && !counts {
		results = "Tensor"
	}
	sorted := ""
	if all {
		sorted = ", bool sorted=True"
	}
	keyword = id + "(Tensor input" + sorted + ", *" + required + optional + ", int? dim=None) -> " + results
	position = id + "(Tensor input" + strings.TrimSuffix(sorted, "=True") + ", bool return_inverse, bool return_counts=False, int? dim=None) -> " + results
	return keyword, position
}

func uniqueDef(name, suffix string, all, inverse, counts bool) *op.Def {
	doc := "The distinct elements in ascending order, or the distinct entries of dim in lexicographic order; where each element went, and how often each occurs."
	if !all {
		doc = "The elements, or the entries of dim, without those that equal their predecessor; where each element went, and how long each run is."
	}
	keyword, position := uniqueSigs(name+suffix, all, inverse, counts)
	d := &op.Def{
		Sig:  keyword,
		More: []string{position},
		SelectOverload: func(a op.Args) bool {
			return a.Bool(arg.ReturnInverse) == inverse && a.Bool(arg.ReturnCounts) == counts
		},
		Names:         both(name),
		Doc:           doc,
		Traits:        op.Dynamic,
		NotSplittable: dependsOnAll,
		Canonical:     uniqueInOrder,
		Reject:        checkUnique,
		Grad:          noDerivative(name, arg.Input),
		Fixed:         []op.Handle{arg.Input},
		Tol:           exactTol("elements of its input and counts"),
	}
	d.Infer = func(a op.Args) ([]op.Meta, error) {
		x, err := elementsOf(a.Value(arg.Input), "input")
		if err != nil {
			return nil, err
		}
		g := groupsOf(a, x, all)
		return uniqueMetas(a, x, len(g.First)), nil
	}
	d.Kernels = []op.Kernel{{Name: "groups", Run: func(c *op.Run) error { return runUnique(c, groupsOf(c.Args, c.Tensor(arg.Input), all)) }}}
	d.Sample = func(s *op.Sampler) []any {
		args := []any{sampleIndex(s, s.Shape(1, 3), 3).Convert(realOr(s.DType))}
		for _, p := range d.Sigs()[0].Params {
			switch p.Name {
			case "return_inverse", "return_counts":
				if !p.HasDefault {
					args = append(args, op.Kw(p.Name, true))
				}
			case "dim":
				if s.Bool() {
					args = append(args, op.Kw("dim", -1))
				}
			}
		}
		return args
	}
	return d
}

// realOr is d, or its real dtype.
func realOr(d tensor.DType) tensor.DType {
	if d.IsComplex() {
		return d.Real()
	}
	return d
}

func checkUnique(a op.Args) error {
	x := a.Value(arg.Input)
	if x.DType().IsComplex() {
		return op.RuntimeError("not implemented for argument 'input' of dtype %s", x.DType())
	}
	if !a.Has(arg.Dim) {
		return nil
	}
	if len(x.Shape()) == 0 {
		return op.IndexError("dimension specified as argument 'dim' but the tensor has no dimensions")
	}
	d, err := wrapDim(a.Int(arg.Dim), len(x.Shape()))
	if err != nil {
		return err
	}
	for i, n := range x.Shape() {
		if n == 0 && i != d {
			return op.RuntimeError("argument 'input' of shape %s has dimensions of size 0 that are not argument 'dim'", tensor.ShapeString(x.Shape()))
		}
	}
	return nil
}

// rowsFirst returns the input with the entries to group along dimension 0.
func rowsFirst(a op.Args, x *tensor.Tensor) *tensor.Tensor {
	if !a.Has(arg.Dim) {
		return x.Reshape(x.Len())
	}
	return x.Permute(dimFirst(x.Dim(), dimOf(a))...)
}

// dimFirst is the order of n dimensions with d before the others.
func dimFirst(n, d int) []int {
	return slices.Insert(slices.Delete(allDims(n), d, d+1), 0, d)
}

func groupsOf(a op.Args, x *tensor.Tensor, sorted bool) kernel.RowGroups {
	x = rowsFirst(a, x)
	n := x.Shape()[0]
	switch d := x.DType(); {
	case d == tensor.F64:
		return kernel.UniqueRows[float64](x, n, sorted)
	case d.IsFloat():
		return kernel.UniqueRows[float32](x, n, sorted)
	}
	return kernel.UniqueRows[int64](x, n, sorted)
}

func uniqueMetas(a op.Args, x *tensor.Tensor, groups int) []op.Meta {
	out := op.Meta{DType: x.DType(), Shape: []int{groups}}
	inverse := op.Meta{DType: tensor.I64, Shape: x.Shape()}
	if a.Has(arg.Dim) {
		d := dimOf(a)
		shape := slices.Clone(x.Shape())
		shape[d] = groups
		strides := tensor.ContiguousStrides(slices.Insert(slices.Delete(slices.Clone(shape), d, d+1), 0, groups))
		out = op.Meta{DType: x.DType(), Shape: shape, Strides: slices.Insert(slices.Clone(strides[1:]), d, strides[0])}
		inverse.Shape = []int{x.Shape()[d]}
	}
	metas := []op.Meta{out}
	if a.Bool(arg.ReturnInverse) {
		metas = append(metas, inverse)
	}
	if a.Bool(arg.ReturnCounts) {
		metas = append(metas, op.Meta{DType: tensor.I64, Shape: []int{groups}})
	}
	return metas
}

func runUnique(c *op.Run, g kernel.RowGroups) error {
	x, out := rowsFirst(c.Args, c.Tensor(arg.Input)), rowsFirst(c.Args, c.Out[0])
	for i, from := range g.First {
		out.Narrow(0, i, 1, 1).CopyFrom(x.Narrow(0, from, 1, 1))
	}
	at := 1
	for _, part := range []struct {
		name   op.BoolArg
		places []int
	}{{arg.ReturnInverse, g.Inverse}, {arg.ReturnCounts, g.Counts}} {
		if c.Bool(part.name) {
			for i, v := range part.places {
				c.Out[at].SetInt(i, int64(v))
			}
			at++
		}
	}
	return nil
}
