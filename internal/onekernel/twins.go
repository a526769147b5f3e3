package onekernel

import (
	"math/cmplx"
	"slices"

	"plumb/internal/draw/choice"
	"plumb/program"
	"plumb/tensor"
)

// least and usual are how small, but for 0, and how large an element may be that a twin of
// other values keeps: what only arguments beyond are forgiven, or blamed for, is not told
// of it.
const least, usual = 1e-12, 8

// keeping are what a twin keeps of a tensor of some length, by which a kernel may know its
// arguments again: the first three quarters, the first element, the first half, the ends and
// the middle, all but one element.
var keeping = []func(length, drawn int) func(k int) bool{
	func(length, _ int) func(int) bool { return func(k int) bool { return k < max(1, 3*length/4) } },
	func(int, int) func(int) bool { return func(k int) bool { return k == 0 } },
	func(length, _ int) func(int) bool { return func(k int) bool { return k < max(1, length/2) } },
	func(length, _ int) func(int) bool {
		return func(k int) bool { return k == 0 || k == length/2 || k == length-1 }
	},
	func(_, drawn int) func(int) bool { return func(k int) bool { return k != drawn } },
}

// after are the numbers of the calls that follow case i: of long sums that cancel in a half
// dtype, each shows an accumulator of that dtype with a probability of some 0.85.
func after(i int, c *Case) []int {
	if next := twins(i); next != nil || c.Regime != Cancelling || !half(c.DType) {
		return next
	}
	return []int{1, 3}
}

// twins are the numbers of the calls that follow case i in the same memory: after the first
// case more than any warm-up has, after every third other one one.
func twins(i int) []int {
	switch {
	case i == 0:
		return []int{1, 2, 3, 4, 5}
	case i%3 == 1:
		return []int{1 + i/3}
	}
	return nil
}

// twin is a case of the same sizes and layout in the same memory with other values, but for
// a sample of each tensor: what a kernel that remembers its calls takes for the one before.
// That of a case of ties has the same values in other places, so that sums are the same. What
// is special about the values of another case hides mistakes that its sizes show. Those of a
// task are data of another seed, but for the first ones, which are as well of the case before.
func (m *maker) twin(c *Case, n int) (*Case, error) {
	t := *c
	t.Key, t.again, t.kept = choice.Derive(c.Key, uint64(n)), true, c.Regime
	if t.Regime != Usual && t.Regime != AsGiven && t.Regime != Ties && t.Regime != Cancelling {
		t.Regime = Usual
	}
	if err := m.rewrite(&t); err != nil {
		return nil, err
	}
	_, task := m.form.(*task)
	t.mixed = task && c.Index == 0
	for i := range t.program.Inputs {
		in, was := &t.program.Inputs[i], &c.program.Inputs[i]
		if in.Fill.Dist == program.Literal && !t.mixed || !in.DType.IsFloat() || tensor.NumElements(in.Shape) == 0 || !slices.Equal(in.Shape, was.Shape) {
			continue
		}
		data, old := elementsOf(in), elementsOf(was)
		keeps := keeping[n%len(keeping)](data.Len(), int(t.keyOf(i)%uint64(data.Len())))
		if t.mixed && square(in.Shape) { // it may be symmetric, or a triangle
			keeps = func(k int) bool { return k == 0 }
		}
		for k := range data.Len() {
			was := old.At(k)
			switch {
			case t.Regime == Ties:
				data.Set(k, old.At((k+1)%data.Len()))
			case keeps(k) && (t.mixed || t.Regime == c.Regime || was == 0 || least <= cmplx.Abs(was) && cmplx.Abs(was) <= usual):
				data.Set(k, was)
			}
		}
		in.Fill = program.Fill{Dist: program.Literal, Data: data}
	}
	return &t, t.program.Validate()
}

func square(shape []int) bool {
	n := len(shape)
	return n >= 2 && shape[n-1] == shape[n-2]
}

// elementsOf are those of an input, without its layout.
func elementsOf(in *program.Input) *tensor.Tensor {
	plain := *in
	plain.Strides = nil
	return plain.Materialize()
}
