package script

import (
	"fmt"
	"math"

	"go.starlark.net/starlark"

	"plumb/internal/draw/gen"
	"plumb/tensor"
)

var choiceParams = []string{"a", "size", "replace", "p", "dtype", "requires_grad"}

// choiceTensor describes a tensor drawn as numpy.random.choice does.
func choiceTensor(t *starlark.Thread, a arguments) (*draw, *gen.Node, error) {
	d, err := drawOf(t, a.fn)
	if err != nil {
		return nil, nil, err
	}
	spec := gen.ChoiceSpec{Replace: true, DType: tensor.I64}
	if spec.From, err = a.population(d); err != nil {
		return nil, nil, err
	}
	if spec.Shape, err = a.sizes(d); err != nil {
		return nil, nil, err
	}
	if err = a.switches(map[string]*bool{"replace": &spec.Replace, "requires_grad": &spec.RequiresGrad}); err != nil {
		return nil, nil, err
	}
	if v := a.get("p"); v != nil && v != starlark.None {
		if spec.Weights, err = a.probabilities(v); err != nil {
			return nil, nil, err
		}
	}
	if a.get("dtype") != nil {
		if spec.DType, err = d.elementType(a); err != nil {
			return nil, nil, err
		}
	}
	return d, gen.ChoiceTensor(spec), nil
}

// population returns the elements to choose from: an int n stands for those of range(n).
func (a arguments) population(d *draw) ([]complex128, error) {
	v, err := d.settled(a.get("a"), gen.Int)
	if err != nil {
		return nil, err
	}
	switch v := v.(type) {
	case starlark.Int:
		n, err := starlark.AsInt32(v)
		if err != nil || n < 0 || n > maxElements {
			return nil, a.wrong("a", fmt.Sprintf("an int from 0 to %d or a list of numbers", maxElements))
		}
		out := make([]complex128, n)
		for i := range out {
			out[i] = complex(float64(i), 0)
		}
		return out, nil
	case starlark.Iterable:
		var out []complex128
		for e := range starlark.Elements(v) {
			c, ok := asComplex(number(e))
			if !ok {
				return nil, a.wrong("a", "an int or a list of numbers")
			}
			out = append(out, c)
		}
		return out, nil
	}
	if a.get("a") == nil {
		return nil, fmt.Errorf("%s needs the argument 'a'", a.fn)
	}
	return nil, a.wrong("a", "an int or a list of numbers")
}

// settled draws a generator; other values stay.
func (d *draw) settled(v starlark.Value, t gen.Type) (starlark.Value, error) {
	g, ok := v.(*generator)
	if !ok {
		return v, nil
	}
	g.node.To(d.gen, t)
	return g.draw(d.thread, (*gen.Node).Value)
}

// sizes returns the shape that the argument size asks for; none for one element.
func (a arguments) sizes(d *draw) ([]int, error) {
	v, err := d.settled(a.get("size"), gen.Int)
	if err != nil {
		return nil, err
	}
	var items starlark.Tuple
	switch v := v.(type) {
	case nil, starlark.NoneType:
		return []int{}, nil
	case starlark.Int:
		items = starlark.Tuple{v}
	case starlark.Iterable:
		for e := range starlark.Elements(v) {
			items = append(items, e)
		}
	default:
		return nil, a.wrong("size", "an int or a tuple of ints")
	}
	shape := make([]int, len(items))
	for i, e := range items {
		if shape[i], err = d.integer(e); err != nil || shape[i] < 0 {
			return nil, a.wrong("size", "an int or a tuple of ints that are not negative")
		}
	}
	return shape, tensor.CheckShape(tensor.F64, shape)
}

func (a arguments) probabilities(v starlark.Value) ([]float64, error) {
	it, ok := v.(starlark.Iterable)
	if !ok {
		return nil, a.wrong("p", "a list of numbers")
	}
	var out []float64
	sum := 0.0
	for e := range starlark.Elements(it) {
		p, ok := starlark.AsFloat(e)
		if !ok || !(p >= 0 && p <= 1) {
			return nil, a.wrong("p", "a list of numbers from 0 to 1")
		}
		out, sum = append(out, p), sum+p
	}
	if math.Abs(sum-1) > 1e-6 {
		return nil, fmt.Errorf("%s: argument 'p' must add up to 1, not %v", a.fn, sum)
	}
	return out, nil
}
