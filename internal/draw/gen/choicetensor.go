package gen

import (
	"fmt"

	"plumb/program"
	"plumb/tensor"
)

// ChoiceSpec says what a tensor of chosen elements is like; it is that of
// numpy.random.choice. Weights is nil for a uniform choice.
type ChoiceSpec struct {
	From         []complex128
	Shape        []int
	Replace      bool
	Weights      []float64
	DType        tensor.DType
	RequiresGrad bool
}

// maxChosen bounds the elements of a tensor whose every element is a decision.
const maxChosen = 1 << 14

// ChoiceTensor draws a tensor whose elements are among the given ones.
func ChoiceTensor(s ChoiceSpec) *Node { return newNode(choiceTensor{s}) }

type choiceTensor struct{ ChoiceSpec }

func (choiceTensor) name() string { return "choice_tensor" }

func (r choiceTensor) draw(c *Case, _ *Node) (any, error) {
	n := tensor.NumElements(r.Shape)
	if err := r.check(n); err != nil {
		return nil, fmt.Errorf("choice_tensor: %w", err)
	}
	t := tensor.New(r.DType, r.Shape...)
	c.Own(func() { r.choose(c, t, n) })
	fill := program.Fill{Dist: program.Literal, Data: t}
	return &Tensor{DType: r.DType, Shape: r.Shape, Fill: fill, RequiresGrad: r.RequiresGrad && r.DType.IsDifferentiable()}, nil
}

// choose draws the n elements of a tensor.
func (r choiceTensor) choose(c *Case, t *tensor.Tensor, n int) {
	left, weights := r.From, r.Weights
	for i := range n {
		k := 0
		if weights == nil {
			k = c.Index(len(left))
		} else {
			k = c.Weighted(weights)
		}
		set(t, i, left[k])
		if !r.Replace {
			left, weights = without(left, k), without(weights, k)
		}
	}
}

func (r choiceTensor) check(n int) error {
	switch {
	case len(r.From) == 0 && n > 0:
		return fmt.Errorf("argument 'a' is empty")
	case n > maxChosen:
		return fmt.Errorf("argument 'size' asks for %d elements, more than %d", n, maxChosen)
	case !r.Replace && n > len(r.From):
		return fmt.Errorf("there are %d elements, and %d different ones are asked for", len(r.From), n)
	case r.Weights != nil && len(r.Weights) != len(r.From):
		return fmt.Errorf("argument 'p' has %d numbers for %d elements", len(r.Weights), len(r.From))
	}
	return nil
}

func set(t *tensor.Tensor, i int, v complex128) {
	if t.DType().IsDifferentiable() {
		t.Set(i, v)
	} else {
		t.SetInt(i, int64(real(v)))
	}
}

func without[T any](xs []T, k int) []T {
	if xs == nil {
		return nil
	}
	return append(append([]T{}, xs[:k]...), xs[k+1:]...)
}
