package script

import (
	"fmt"
	"math"
	"strings"

	"go.starlark.net/starlark"

	"plumb/tensor"
)

// How PyTorch prints tensors unless it is told otherwise.
const (
	textLine      = 80   // characters
	textThreshold = 1000 // elements, beyond which the edges alone are shown
	textEdge      = 3    // entries of an edge
)

// printed is str(x) of a tensor, as PyTorch prints it, or OneFlow a global one.
func (s *symbol) printed() (starlark.Value, error) {
	t, err := s.tensor()
	if err != nil || t == nil {
		return nil, err
	}
	const head = "tensor("
	p := printedTensor{t: t, entry: entryText(t), edges: t.Len() > textThreshold}
	for i := range t.Len() {
		p.width = max(p.width, len(p.entry(i)))
	}
	out := head + p.box(0, 0, len(head))
	if s.spread != nil {
		all, err := s.signature()
		if err != nil {
			return nil, err
		}
		out += fmt.Sprintf(", placement=%s,\n       sbp=%s, dtype=oneflow.%s", s.spread.placement, all, t.DType())
	} else if d := t.DType(); d != tensor.F32 && d != tensor.I64 && d != tensor.Bool {
		out += fmt.Sprintf(", dtype=torch.%s", d)
	}
	return starlark.String(out + ")"), nil
}

// printedTensor is a tensor as text.
type printedTensor struct {
	t     *tensor.Tensor
	entry func(i int) string
	width int
	edges bool
}

// box is the text of the elements from one on, along a dimension and those after it.
func (p printedTensor) box(from, dim, indent int) string {
	shape := p.t.Shape()
	if len(shape) == dim {
		return fmt.Sprintf("%*s", p.width, p.entry(from))
	}
	step := tensor.NumElements(shape[dim+1:])
	var parts []string
	for i := 0; i < shape[dim]; i++ {
		if p.edges && shape[dim] > 2*textEdge && i == textEdge {
			parts, i = append(parts, "..."), shape[dim]-textEdge
		}
		parts = append(parts, p.box(from+i*step, dim+1, indent+1))
	}
	if len(shape) > dim+1 {
		return "[" + strings.Join(parts, ","+strings.Repeat("\n", len(shape)-dim-1)+strings.Repeat(" ", indent+1)) + "]"
	}
	var lines []string
	for each := max(1, (textLine-indent)/(p.width+2)); len(parts) > each; parts = parts[each:] {
		lines = append(lines, strings.Join(parts[:each], ", "))
	}
	lines = append(lines, strings.Join(parts, ", "))
	return "[" + strings.Join(lines, ",\n"+strings.Repeat(" ", indent+1)) + "]"
}

// entryText writes an element: floats with four decimals, with none where all are
// whole, and by exponents where they are too large or too far apart for that.
func entryText(t *tensor.Tensor) func(i int) string {
	switch d := t.DType(); {
	case d == tensor.Bool:
		return func(i int) string { return map[bool]string{true: "True", false: "False"}[t.At(i) != 0] }
	case !d.IsFloat():
		return func(i int) string { return repr(scalarOf(t, i), 0) }
	}
	format, low, high := "%.0f.", math.Inf(1), 0.0
	for i := range t.Len() {
		v := math.Abs(real(t.At(i)))
		if math.IsInf(v, 0) || math.IsNaN(v) {
			continue
		}
		if v != math.Floor(v) {
			format = "%.4f"
		}
		if high = max(high, v); v > 0 {
			low = min(low, v)
		}
	}
	if high > 1e8 || high > 1000*low && format == "%.4f" || low < 1e-4 {
		format = "%.4e"
	}
	return func(i int) string {
		switch v := real(t.At(i)); {
		case math.IsInf(v, 0), math.IsNaN(v):
			return strings.TrimPrefix(strings.ToLower(fmt.Sprint(v)), "+")
		default:
			return fmt.Sprintf(format, v)
		}
	}
}
