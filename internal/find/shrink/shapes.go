package shrink

import (
	"slices"

	"plumb/program"
	"plumb/tensor"
)

// dropAxes removes an axis of all inputs that have it, counted from either
// end, then of each.
func (s *search) dropAxes() bool {
	taken := false
	deepest := 0
	for _, in := range s.best().Inputs {
		deepest = max(deepest, len(in.Shape))
	}
	for axis := -deepest; axis < deepest; axis++ {
		taken = s.edit(func(p *program.Program) {
			for i := range p.Inputs {
				dropAxis(&p.Inputs[i], axis)
			}
		}) || taken
	}
	for i := range s.best().Inputs {
		for axis := len(s.best().Inputs[i].Shape) - 1; axis >= 0; axis-- {
			taken = s.edit(func(p *program.Program) { dropAxis(&p.Inputs[i], axis) }) || taken
		}
	}
	return taken
}

// shrinkSizes makes dimensions smaller: of all inputs where they are equal,
// with the integer arguments that equal them, and then each.
func (s *search) shrinkSizes() bool {
	taken := false
	for _, n := range sizesOf(s.best()) {
		for _, m := range smallerSizes(n) {
			if s.edit(func(p *program.Program) { resizeAll(p, n, m, false) }) || s.edit(func(p *program.Program) { resizeAll(p, n, m, true) }) {
				taken = true
				break
			}
		}
	}
	for i := range s.best().Inputs {
		for axis := range s.best().Inputs[i].Shape {
			for _, m := range smallerSizes(s.best().Inputs[i].Shape[axis]) {
				if s.edit(func(p *program.Program) { resize(&p.Inputs[i], axis, m) }) || s.edit(func(p *program.Program) { keepLast(&p.Inputs[i], axis, m) }) {
					taken = true
					break
				}
			}
		}
	}
	return taken
}

// sizesOf returns the sizes above 1, the largest first.
func sizesOf(p *program.Program) []int {
	var out []int
	for _, in := range p.Inputs {
		for _, d := range in.Shape {
			if d > 1 && !slices.Contains(out, d) {
				out = append(out, d)
			}
		}
	}
	slices.Sort(out)
	slices.Reverse(out)
	return out
}

func smallerSizes(n int) []int {
	out := []int{}
	for _, m := range []int{1, 2, 3, n / 4, n / 2, n - 1} {
		if (m > 0 && m < n || n == 0 && m == 1) && !slices.Contains(out, m) {
			out = append(out, m)
		}
	}
	return out
}

func resizeAll(p *program.Program, from, to int, arguments bool) {
	for i := range p.Inputs {
		for axis, d := range p.Inputs[i].Shape {
			if d == from {
				resize(&p.Inputs[i], axis, to)
			}
		}
	}
	if !arguments {
		return
	}
	for i := range p.Calls {
		for _, l := range leaves(&p.Calls[i]) {
			if l.value() == any(int64(from)) {
				l.set(int64(to))
			}
		}
	}
}

// resize cuts an axis to its first n entries.
func resize(in *program.Input, axis, n int) {
	old := in.Shape[axis]
	shape := slices.Clone(in.Shape)
	shape[axis] = n
	reshape(in, shape, func(t *tensor.Tensor) *tensor.Tensor {
		if n > old {
			return tensor.New(in.DType, shape...)
		}
		return t.Narrow(axis, 0, n, 1)
	})
}

// keepLast cuts an axis of literal elements to its last n entries.
func keepLast(in *program.Input, axis, n int) {
	if in.Fill.Dist != program.Literal || n > in.Shape[axis] {
		return
	}
	shape := slices.Clone(in.Shape)
	shape[axis] = n
	reshape(in, shape, func(t *tensor.Tensor) *tensor.Tensor { return t.Narrow(axis, t.Shape()[axis]-n, n, 1) })
}

// dropAxis keeps the first entry along an axis; a negative one counts from the end.
func dropAxis(in *program.Input, axis int) {
	if axis < 0 {
		axis += len(in.Shape)
	}
	if axis < 0 || axis >= len(in.Shape) || in.Shape[axis] == 0 {
		return
	}
	reshape(in, slices.Delete(slices.Clone(in.Shape), axis, axis+1), func(t *tensor.Tensor) *tensor.Tensor { return t.Select(axis, 0) })
	in.Strides = nil
}

// reshape gives an input another shape; cut does so for literal elements.
// Strides keep their order and their gap.
func reshape(in *program.Input, shape []int, cut func(*tensor.Tensor) *tensor.Tensor) {
	if in.Fill.Dist == program.Literal {
		in.Fill.Data = cut(in.Fill.Data).Contiguous()
	}
	if in.Strides != nil && len(shape) == len(in.Shape) {
		in.Strides = likewise(in.Strides, shape)
	}
	in.Shape = shape
}

// likewise returns strides for a shape in the order of given ones: expanded
// axes stay expanded, and the innermost keeps its gap.
func likewise(strides, shape []int) []int {
	order := make([]int, len(shape))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return strides[a] - strides[b] })
	out := make([]int, len(shape))
	next := 0
	for _, axis := range order {
		if strides[axis] == 0 {
			continue
		}
		if next == 0 {
			next = strides[axis]
		}
		out[axis] = next
		next *= max(shape[axis], 1)
	}
	return out
}
