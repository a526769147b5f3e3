package ops

import (
	"plumb/op"
)

var setitemOps = []*op.Def{
	{
		Sig:     "setitem(Tensor input, Index index, Tensor value) -> Tensor",
		More:    []string{"setitem(Tensor input, Index index, Scalar value) -> Tensor"},
		Doc:     "A copy of input after input[index] = value, for an index of ints, slices, None and an ellipsis.",
		Compose: setitem,
		Sample: func(s *op.Sampler) []any {
			args := sampleGetitem(s)
			if s.Bool() {
				return append(args, 1.5)
			}
			return append(args, s.Tensor(-2, 2))
		},
		Tol: exactTol("copies its inputs"),
	},
}

// setitem takes the view apart that the index makes, and puts it together
// again around the value.
func setitem(b op.Builder, a op.Args) []op.Value {
	x := a.Value("input")
	steps := viewSteps(x, a.Any("index").(op.Index))
	stack := []op.Value{x}
	for _, s := range steps {
		stack = append(stack, s.view(b, stack[len(stack)-1]))
	}
	part := assigned(b, a, stack[len(stack)-1])
	for i := len(steps) - 1; i >= 0; i-- {
		part = steps[i].restore(b, stack[i], part)
	}
	return vals(part)
}

// assigned brings the value to the dtype and shape of the view that it replaces.
func assigned(b op.Builder, a op.Args, view op.Value) op.Value {
	v := a.Value("value")
	if v == nil {
		return b.Op("full_like", view, a.Scalar("value"))
	}
	for len(v.Shape()) > len(view.Shape()) && v.Shape()[0] == 1 {
		v = b.Op("select", v, 0, 0)
	}
	return b.Op("clone", b.Expand(b.Cast(v, view.DType()), view.Shape()))
}

// viewStep is one entry of an index: the view that it makes of a value, and
// the value in which that view is replaced.
type viewStep struct {
	view    func(b op.Builder, x op.Value) op.Value
	restore func(b op.Builder, x, part op.Value) op.Value
}

func viewSteps(x op.Value, index op.Index) []viewStep {
	used := 0
	for _, e := range index {
		used += consumed(e)
	}
	rank := len(x.Shape())
	if used > rank {
		op.Fail(op.IndexError("too many indices for tensor of dimension %d", rank))
	}
	var steps []viewStep
	dim := 0
	for _, e := range index {
		switch e := e.(type) {
		case int64:
			steps = append(steps, selectStep(dim, int(e)))
		case int:
			steps = append(steps, selectStep(dim, e))
		case op.Slice:
			steps = append(steps, sliceStep(dim, e))
			dim++
		case nil:
			steps = append(steps, newStep(dim))
			dim++
		case op.Ellipsis:
			dim += rank - used
		default:
			op.Fail(unsupportedIndex(e))
		}
	}
	return steps
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
