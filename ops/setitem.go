package ops

import (
	"slices"

	"plumb/internal/arg"
	"plumb/op"
)

var setitemOps = []*op.Def{
	{
		Sig:     "setitem(Tensor input, Index index, Tensor value) -> Tensor",
		InPlace: op.InPlaceRules{Through: assignThroughView, NoResult: true, Expanded: true},
		More:    []string{"setitem(Tensor input, Index index, Scalar value) -> Tensor"},
		Names:   []string{"operator.setitem", "Tensor.__setitem__"},
		Doc:     "A copy of input after input[index] = value.",
		Compose: setitem,
		Unread:  replacedWhole,
		Sample:  sampleSetitem,
		Tol:     exactTol("copies its inputs"),
	},
}

// replacedWhole says that x[...] = value and x[:] = value read nothing of x.
func replacedWhole(a op.Args) []op.TensorArg {
	for _, entry := range assignedIndex(a) {
		s, slice := entry.(op.Slice)
		if entry != (op.Ellipsis{}) && entry != nil && !(slice && s == (op.Slice{})) {
			return nil
		}
	}
	return []op.TensorArg{arg.Input}
}

func sampleSetitem(s *op.Sampler) []any {
	args := sampleGetitem(s)
	if s.Bool() {
		return append(args, 1.5)
	}
	return append(args, s.Tensor(-2, 2))
}

// assignedIndex is the index, where True alone is None: PyTorch copies into what it
// makes then, as into a view, and leaves x[False] = value undone.
func assignedIndex(a op.Args) op.Index {
	index := numbered(a.Any(arg.Index).(op.Index))
	if len(index) == 1 && index[0] == true {
		return op.Index{nil}
	}
	return index
}

func isFalse(index op.Index) bool { return len(index) == 1 && index[0] == false }

// setitem takes the view apart that the index makes, and puts it together
// again around the value.
func setitem(b op.Builder, a op.Args) []op.Value {
	x, index := a.Value(arg.Input), assignedIndex(a)
	if isFalse(index) {
		return vals(b.Clone(x))
	}
	places := placesOf(b, x, index)
	stack := []op.Value{x}
	for _, s := range places.steps {
		stack = append(stack, s.view(b, stack[len(stack)-1]))
	}
	part := stack[len(places.steps)]
	if len(places.tensors) > 0 {
		part = b.Op("index.put", part, places.dims, places.tensors, assignedTo(b, a, part))
	} else {
		part = assigned(b, a, part)
	}
	for i := len(places.steps) - 1; i >= 0; i-- {
		part = places.steps[i].restore(b, stack[i], part)
	}
	return vals(part)
}

// assignThroughView writes x[index] = value as a copy into the view x[index];
// tensors, lists and masks among the index make none.
func assignThroughView(b op.Builder, a op.Args) (id string, args []any) {
	index := assignedIndex(a)
	if slices.ContainsFunc(index, picksElements) {
		return "", nil
	}
	view := b.Op("getitem", a.Value(arg.Input), index)
	v := a.Value(arg.ValueTensor)
	if v == nil {
		return "fill", []any{view, a.Scalar(arg.Value)}
	}
	for len(v.Shape()) > len(view.Shape()) && v.Shape()[0] == 1 {
		v = b.Op("select", v, 0, 0)
	}
	return "copy", []any{view, v}
}

// picksElements reports whether an entry of an index reads elements one by one.
func picksElements(entry any) bool {
	switch entry.(type) {
	case op.Value, []any, bool:
		return true
	}
	return false
}

// assigned brings the value to the dtype and shape of the view that it replaces.
func assigned(b op.Builder, a op.Args, view op.Value) op.Value {
	v := a.Value(arg.ValueTensor)
	if v == nil {
		return b.Op("full_like", view, a.Scalar(arg.Value))
	}
	return b.Op("clone", b.Expand(b.Cast(withoutLead(b, v), view.DType()), view.Shape()))
}

// assignedTo is assigned for what index tensors replace: numbers are
// converted, a tensor must have the dtype.
func assignedTo(b op.Builder, a op.Args, view op.Value) op.Value {
	if v := a.Value(arg.ValueTensor); v != nil {
		return withoutLead(b, v)
	}
	return b.Op("tensor", a.Scalar(arg.Value).Any(), op.Kw("dtype", view.DType()))
}

// withoutLead drops the leading dimensions of size 1.
func withoutLead(b op.Builder, v op.Value) op.Value {
	lead := 0
	for lead < len(v.Shape()) && v.Shape()[lead] == 1 {
		lead++
	}
	if lead == 0 {
		return v
	}
	return b.Reshape(v, v.Shape()[lead:])
}

// viewStep is one entry of an index: the view that it makes of a value, and
// the value in which that view is replaced.
type viewStep struct {
	view    func(b op.Builder, x op.Value) op.Value
	restore func(b op.Builder, x, part op.Value) op.Value
}

// places is an index taken apart: the views from left to right, and the
// tensors that read the dimensions dims of what they leave.
type places struct {
	steps   []viewStep
	dims    []int
	tensors []op.Value
}

func placesOf(b op.Builder, x op.Value, index op.Index) places {
	used := 0
	for _, e := range index {
		used += consumed(e)
	}
	rank := len(x.Shape())
	if used > rank {
		op.Fail(op.IndexError("too many indices for tensor of dimension %d", rank))
	}
	var p places
	dim := 0
	for _, e := range index {
		switch e := e.(type) {
		case int64:
			p.steps = append(p.steps, selectStep(dim, int(e)))
		case int:
			p.steps = append(p.steps, selectStep(dim, e))
		case op.Slice:
			p.steps = append(p.steps, sliceStep(dim, e))
			dim++
		case nil:
			p.steps = append(p.steps, newStep(dim))
			dim++
		case bool:
			p.steps = append(p.steps, newStep(dim))
			p.dims, p.tensors = append(p.dims, dim), append(p.tensors, whether(b, e))
			dim++
		case op.Ellipsis:
			dim += rank - used
		case []any:
			dim += p.read(dim, b.Op("tensor", e))
		case op.Value:
			dim += p.read(dim, e)
		default:
			op.Fail(unsupportedIndex(e))
		}
	}
	return p
}

// read notes an index tensor; it returns how many dimensions that takes.
func (p *places) read(dim int, v op.Value) int {
	p.dims, p.tensors = append(p.dims, dim), append(p.tensors, v)
	return consumed(v)
}

func selectStep(dim, i int) viewStep {
	return viewStep{
		view: func(b op.Builder, x op.Value) op.Value { return selectItem(b, x, dim, i) },
		restore: func(b op.Builder, x, part op.Value) op.Value {
			return b.Op("select_scatter", x, part, dim, i)
		},
	}
}

func sliceStep(dim int, s op.Slice) viewStep {
	return viewStep{
		view: func(b op.Builder, x op.Value) op.Value { return sliceItem(b, x, dim, s) },
		restore: func(b op.Builder, x, part op.Value) op.Value {
			step := 1
			if s.Step != nil {
				step = *s.Step
			}
			return b.Op("slice_scatter", x, part, dim, sliceEnd(s.Start), sliceEnd(s.Stop), step)
		},
	}
}

func newStep(dim int) viewStep {
	return viewStep{
		view:    func(b op.Builder, x op.Value) op.Value { return b.Op("unsqueeze", x, dim) },
		restore: func(b op.Builder, _, part op.Value) op.Value { return b.Op("squeeze", part, dim) },
	}
}
