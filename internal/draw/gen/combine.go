package gen

import (
	"fmt"
	"math"
	"slices"

	"plumb/program"
)

// oneOf chooses one of its kids, uniformly when there are no weights.
type oneOf struct {
	weights []float64
	leaves  int
	drawn   *drawnWeights
}

// drawnWeights are weights that the last kid gives.
type drawnWeights struct {
	read  func(any) ([]float64, error)
	order []int // of each other kid: its place among the alternatives
}

func (oneOf) name() string { return "oneof" }

func (o oneOf) draw(c *Case, n *Node) (any, error) {
	weights := o.weights
	if o.drawn != nil {
		var err error
		if weights, err = o.drawn.value(c, n.kids[len(n.kids)-1]); err != nil {
			return nil, err
		}
	}
	i := 0
	if weights == nil {
		i = c.Index(len(n.kids))
	} else {
		i = c.Weighted(weights)
	}
	return n.kids[i].Value(c)
}

func (d *drawnWeights) value(c *Case, n *Node) ([]float64, error) {
	v, err := n.Value(c)
	if err != nil {
		return nil, err
	}
	given, err := d.read(v)
	if err != nil {
		return nil, err
	}
	if err := checkWeights(given, len(d.order)); err != nil {
		return nil, err
	}
	out := make([]float64, len(given))
	for i, at := range d.order {
		out[i] = given[at]
	}
	return out, nil
}

// OneOf chooses one of the alternatives, values or generators: uniformly with
// nil weights, else with the given probabilities, which must add up to 1. A
// nothing() among them is recorded as the first, simplest alternative.
func OneOf(weights []float64, alternatives ...any) (*Node, error) {
	if len(alternatives) == 0 {
		return nil, fmt.Errorf("oneof needs at least one alternative")
	}
	if weights != nil {
		if err := checkWeights(weights, len(alternatives)); err != nil {
			return nil, err
		}
	}
	return choose(weights, packAll(alternatives)), nil
}

// OneOfDrawn is OneOf with probabilities that are drawn: read tells them from
// what the generator of floats, or of lists of them, gives.
func OneOfDrawn(weights *Node, read func(any) ([]float64, error), alternatives ...any) (*Node, error) {
	n, err := OneOf(nil, alternatives...)
	if err != nil {
		return nil, err
	}
	weights.To(nil, Float)
	o := n.rule.(oneOf)
	o.drawn = &drawnWeights{read, nothingFirst(packAll(alternatives))}
	return newNode(o, append(slices.Clone(n.kids), weights)...), nil
}

func checkWeights(weights []float64, n int) error {
	if len(weights) != n {
		return fmt.Errorf("oneof: argument 'possibility' has %d numbers for %d alternatives", len(weights), n)
	}
	sum := 0.0
	for _, w := range weights {
		if !(w >= 0 && w <= 1) {
			return fmt.Errorf("oneof: argument 'possibility' must hold numbers from 0 to 1, not %v", w)
		}
		sum += w
	}
	if math.Abs(sum-1) > 1e-6 {
		return fmt.Errorf("oneof: argument 'possibility' must add up to 1, not %v", sum)
	}
	return nil
}

func choose(weights []float64, kids []*Node) *Node {
	o := oneOf{}
	var ordered []*Node
	for _, i := range nothingFirst(kids) {
		o.leaves += kids[i].Size()
		ordered = append(ordered, kids[i])
		if weights != nil {
			o.weights = append(o.weights, weights[i])
		}
	}
	return newNode(o, ordered...)
}

// nothingFirst returns the order in which alternatives are recorded.
func nothingFirst(kids []*Node) []int {
	var order []int
	for _, nothing := range []bool{true, false} {
		for i, k := range kids {
			if isNothing(k) == nothing {
				order = append(order, i)
			}
		}
	}
	return order
}

func isNothing(n *Node) bool {
	c, ok := n.rule.(constant)
	return ok && c.v == any(Missing{})
}

// Or is the operator "|": however alternatives are nested, each leaf is as
// likely as the others.
func Or(a, b any) *Node {
	x, y := pack(a), pack(b)
	return choose([]float64{float64(x.Size()), float64(y.Size())}, []*Node{x, y})
}

// RandomOrNothing is Random with probability 2/3, else nothing.
func RandomOrNothing(low, high any) *Node {
	return choose([]float64{2. / 3, 1. / 3}, []*Node{Random(low, high), Nothing()})
}

// arith applies an operator to the values of its kids.
type arith struct{ op byte }

func (a arith) name() string {
	return map[byte]string{'+': "add", '-': "sub", '*': "mul", '_': "neg"}[a.op]
}

// Add is a + b of generators and plain numbers, computed when it is drawn. A
// drawn tuple is computed element by element.
func Add(a, b any) *Node { return newNode(arith{'+'}, pack(a), pack(b)) }

// Sub is a - b; see Add.
func Sub(a, b any) *Node { return newNode(arith{'-'}, pack(a), pack(b)) }

// Mul is a * b; see Add.
func Mul(a, b any) *Node { return newNode(arith{'*'}, pack(a), pack(b)) }

// Neg is -a; see Add.
func Neg(a any) *Node { return newNode(arith{'_'}, pack(a)) }

func (a arith) draw(c *Case, n *Node) (any, error) {
	x, err := n.kids[0].Value(c)
	if err != nil {
		return nil, err
	}
	if a.op == '_' {
		return broadcast('-', int64(0), x)
	}
	y, err := n.kids[1].Value(c)
	if err != nil {
		return nil, err
	}
	return broadcast(a.op, x, y)
}

func broadcast(op byte, x, y any) (any, error) {
	xs, xt := x.(program.Tuple)
	ys, yt := y.(program.Tuple)
	if !xt && !yt {
		return compute(op, x, y)
	}
	n := max(len(xs), len(ys))
	if xt && yt && len(xs) != len(ys) {
		return nil, fmt.Errorf("%c on tuples of %d and %d elements", op, len(xs), len(ys))
	}
	out := make(program.Tuple, n)
	for i := range out {
		a, b := x, y
		if xt {
			a = xs[i]
		}
		if yt {
			b = ys[i]
		}
		v, err := compute(op, a, b)
		if err != nil {
			return nil, err
		}
		out[i] = v
	}
	return out, nil
}

func compute(op byte, x, y any) (any, error) {
	a, okA := number(x)
	b, okB := number(y)
	if !okA || !okB {
		return nil, fmt.Errorf("%c between generators needs numbers, not %s and %s", op, describe(x), describe(y))
	}
	ai, aInt := a.(int64)
	bi, bInt := b.(int64)
	if aInt && bInt {
		return computeInt(op, ai, bi)
	}
	z := computeComplex(op, toComplex(a), toComplex(b))
	_, aC := a.(complex128)
	_, bC := b.(complex128)
	if aC || bC {
		return z, nil
	}
	return real(z), nil
}

func number(v any) (any, bool) {
	switch v := v.(type) {
	case bool:
		if v {
			return int64(1), true
		}
		return int64(0), true
	case int64, float64, complex128:
		return v, true
	}
	return nil, false
}

func toComplex(v any) complex128 {
	switch v := v.(type) {
	case int64:
		return complex(float64(v), 0)
	case float64:
		return complex(v, 0)
	}
	return v.(complex128)
}

func computeInt(op byte, a, b int64) (any, error) {
	var v int64
	switch op {
	case '+':
		v = a + b
	case '-':
		v = a - b
	default:
		v = a * b
	}
	exact := real(computeComplex(op, complex(float64(a), 0), complex(float64(b), 0)))
	if math.Abs(exact) > 1<<62 {
		return nil, fmt.Errorf("%d %c %d overflows", a, op, b)
	}
	return v, nil
}

func computeComplex(op byte, a, b complex128) complex128 {
	switch op {
	case '+':
		return a + b
	case '-':
		return a - b
	}
	return Product(a, b)
}

// Product returns a·b without fused operations, so that every machine draws
// the same program.
func Product(a, b complex128) complex128 {
	re := float64(real(a)*real(b)) - float64(imag(a)*imag(b))
	im := float64(real(a)*imag(b)) + float64(imag(a)*real(b))
	return complex(re, im)
}
