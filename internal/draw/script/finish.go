package script

import (
	"errors"
	"fmt"
	"plumb/program"
	"plumb/tensor"

	"go.starlark.net/starlark"
)

var errDrawsNothing = errors.New("draws nothing: it makes no call of torch")

// finish asks for the gradients of what the test returned.
func (d *draw) finish(result starlark.Value) error {
	at := point{int32(d.test.Line), 1}
	values, err := returned(result, 0)
	if err != nil {
		return &positioned{at, err}
	}
	if len(values) == 0 && len(d.prog.Calls) == 0 && len(d.prog.Backward) == 0 && !d.test.plain && d.refusals == 0 {
		return &positioned{at, fmt.Errorf("%s %w", d.test.Name, errDrawsNothing)}
	}
	if d.options.AutoBackward == NoBackward {
		d.unshare()
		return nil
	}
	for _, s := range values {
		if err := d.differentiate(s, len(values) > 1); err != nil {
			return &positioned{at, err}
		}
	}
	d.unshare()
	if d.options.Order == 2 && len(d.prog.Backward) > 0 {
		d.prog.Second = d.cotangent()
	}
	return nil
}

// returned lists the values of the program in what a test returned: in lists,
// tuples and dicts of any depth. An attribute such as x.T is one of them.
func returned(v starlark.Value, depth int) ([]*symbol, error) {
	var parts []starlark.Value
	switch v := v.(type) {
	case *symbol:
		return []*symbol{v}, nil
	case *attr:
		s, err := v.resolve()
		return []*symbol{s}, err
	case *starlark.Dict:
		for _, item := range v.Items() {
			parts = append(parts, item[1])
		}
	case *starlark.List, starlark.Tuple, instance, *iterator:
		var err error
		if parts, err = iterate(nil, v); err != nil {
			return nil, err
		}
	}
	if depth > maxDepth {
		return nil, fmt.Errorf("what the test returns is nested more than %d deep", maxDepth)
	}
	var out []*symbol
	for _, p := range parts {
		found, err := returned(p, depth+1)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

// cotangent draws the stream of a random cotangent.
func (d *draw) cotangent() program.Fill {
	f := program.Fill{Dist: program.Uniform, Lo: 0, Hi: 1, Key: d.gen.Key()}
	if d.gen.Integers {
		f.Dist, f.Lo, f.Hi = program.Integer, 1, 4
	}
	return f
}

// partial reports whether a result without gradient is to be left out: the
// test says so, or it runs with a dtype that has no gradients.
func (d *draw) partial() bool {
	return d.options.AutoBackward == AutoBackward || d.env.Float != tensor.Invalid && !d.env.Float.IsDifferentiable()
}

// differentiate asks for the gradient of a result. One of several may require
// none, such as the indices beside the values of a sort.
func (d *draw) differentiate(s *symbol, several bool) error {
	kind, err := s.known()
	if err != nil {
		return err
	}
	switch kind {
	case kindTuple:
		for i := range s.names {
			if constant, err := d.constant(s, i); constant || err != nil {
				if err != nil {
					return err
				}
				continue
			}
			e, err := s.element(i)
			if err != nil {
				return err
			}
			if e, ok := e.(*symbol); ok {
				if err := d.differentiate(e, false); err != nil {
					return err
				}
			}
		}
	case kindTensor:
		if several || s.attribute {
			if constant, err := d.constant(s, -1); constant || err != nil {
				return err
			}
		}
		b := program.Backward{Value: s.ref, Auto: d.partial()}
		if d.options.RandomGrad {
			b.Cotangent = d.cotangent()
		}
		d.prog.Backward = append(d.prog.Backward, b)
	}
	return nil
}

// constant reports whether a tensor, or the element i of a tuple, requires no
// gradient on the reference, which then cannot be asked for one.
func (d *draw) constant(s *symbol, i int) (bool, error) {
	if d.partial() || d.env.Observer == nil {
		return false, nil
	}
	v, err := d.observe(s.ref)
	if err != nil {
		return false, err
	}
	if i >= 0 && i < len(v.Tuple) {
		v = v.Tuple[i]
	}
	return v.Tensor != nil && !v.RequiresGrad, nil
}
