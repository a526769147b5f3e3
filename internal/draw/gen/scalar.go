package gen

import (
	"fmt"
	"math"

	"plumb/op"
	"plumb/program"
)

// random draws a value of its type; its kids are low and high.
type random struct{}

func (random) name() string { return "random" }

// Random draws an int among the integers in [low, high), a float or each part
// of a complex uniformly in [low, high), or a bool with a fair coin, whatever
// low and high. They are numbers or generators.
func Random(low, high any) *Node { return newNode(random{}, pack(low), pack(high)) }

// RandomBool draws a fair coin.
func RandomBool() *Node {
	n := Random(1, 6)
	n.typ = Bool
	return n
}

func (r random) draw(c *Case, n *Node) (any, error) {
	t := n.typeIn(c)
	if t.kind == untyped {
		return nil, &UntypedError{n}
	}
	return r.sample(c, n, t)
}

func (r random) sample(c *Case, n *Node, t Type) (any, error) {
	switch t.kind {
	case unionType:
		return r.sample(c, n, t.parts[c.Index(len(t.parts))])
	case tupleType:
		tuple, err := r.samples(c, n, t.parts)
		return program.Tuple(tuple), err
	case listType:
		parts := make([]Type, c.Source.Int(1, 5))
		for i := range parts {
			parts[i] = t.parts[0]
		}
		list, err := r.samples(c, n, parts)
		return program.List(list), err
	case noneType:
		return nil, nil
	case boolType:
		return c.Bool(), nil
	case intType:
		return r.integer(c, n)
	}
	lo, hi, err := r.bounds(c, n, Float)
	if err != nil {
		return nil, err
	}
	re := c.Source.Float(lo, hi)
	if t.kind == complexType {
		return complex(re, c.Source.Float(lo, hi)), nil
	}
	return re, nil
}

func (r random) samples(c *Case, n *Node, ts []Type) ([]any, error) {
	out := make([]any, len(ts))
	for i, t := range ts {
		v, err := r.sample(c, n, t)
		if err != nil {
			return nil, err
		}
		out[i] = v
	}
	return out, nil
}

func (r random) integer(c *Case, n *Node) (any, error) {
	lo, hi, err := r.bounds(c, n, Int)
	if err != nil {
		return nil, err
	}
	lo, hi = math.Ceil(lo), math.Ceil(hi)
	if !(lo < hi) || lo < -1<<53 || hi > 1<<53 {
		return nil, fmt.Errorf("%s: there is no int in [%v, %v)", n, lo, hi)
	}
	return c.Source.Int(int64(lo), int64(hi)), nil
}

func (random) bounds(c *Case, n *Node, t Type) (lo, hi float64, err error) {
	if lo, err = real64(c, n.kids[0], t, "random", "low"); err != nil {
		return 0, 0, err
	}
	hi, err = real64(c, n.kids[1], t, "random", "high")
	return lo, hi, err
}

// real64 returns the value of a generator that must be a real number.
func real64(c *Case, n *Node, t Type, fn, arg string) (float64, error) {
	n.To(c, t)
	v, err := n.Value(c)
	if err != nil {
		return 0, err
	}
	switch v := v.(type) {
	case int64:
		return float64(v), nil
	case float64:
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			return v, nil
		}
	}
	return 0, fmt.Errorf("%s: argument '%s' must be a finite number, not %s", fn, arg, describe(v))
}

// describe names a value's Python type in messages.
func describe(v any) string {
	switch v := v.(type) {
	case Missing:
		return "nothing()"
	case program.Tuple:
		return "tuple"
	case program.List:
		return "list"
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Sprint(v)
		}
	case interface{ Type() string }:
		return v.Type()
	}
	return op.TypeName(v)
}

// constant holds one value.
type constant struct{ v any }

func (constant) name() string { return "constant" }

func (k constant) draw(*Case, *Node) (any, error) { return k.v, nil }

// Constant always gives v. An int becomes an int64.
func Constant(v any) *Node {
	if i, ok := v.(int); ok {
		v = int64(i)
	}
	return newNode(constant{v})
}

// Nothing gives Missing: the keyword argument that it is passed to is left out.
func Nothing() *Node { return Constant(Missing{}) }

// device draws one of the run's devices.
type device struct{}

func (device) name() string { return "random_device" }

func (device) draw(c *Case, _ *Node) (any, error) {
	switch len(c.Devices) {
	case 0:
		return "cpu", nil
	case 1:
		return c.Devices[0], nil
	}
	return c.Devices[c.Index(len(c.Devices))], nil
}

// RandomDevice draws one of the run's devices: "cpu" unless the run says otherwise.
func RandomDevice() *Node { return newNode(device{}) }
