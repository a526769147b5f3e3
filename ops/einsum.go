package ops

import (
	"slices"
	"strings"

	"plumb/internal/arg"
	"plumb/op"
)

var einsumOps = []*op.Def{
	{
		Sig:     "einsum(str equation, Tensor[] operands) -> Tensor",
		Names:   []string{"torch.einsum", "torch.functional.einsum"},
		Doc:     "Sum of products in index notation: \"ij,jk->ik\" names the dimensions of each operand and of the result; out[result] = Σ over the other letters of Πₙ operandsₙ[…].",
		Reject:  checkEinsum,
		Compose: composeEinsum,
		Sample:  sampleEinsum,
		Tol:     accumulating(einsumTerms, "each element sums one product per value of the summed letters"),
	},
}

func checkEinsum(a op.Args) error {
	_, err := einsumOf(a)
	return err
}

func composeEinsum(b op.Builder, a op.Args) []op.Value {
	e, err := einsumOf(a)
	if err != nil {
		op.Fail(err)
	}
	return []op.Value{e.apply(b, a.Values(arg.Operands))}
}

// ellipsisLabel is the label of the first dimension that "..." stands for.
const ellipsisLabel = 52

// einsum is an equation applied to operands: dimensions carry labels, 0 to 51
// for the letters A–Z, a–z, from 52 on for those of the ellipsis.
type einsum struct {
	operands [][]int
	order    []int // the labels of the result, then those that are summed
	kept     int   // how many labels the result has
	size     map[int]int
}

func einsumOf(a op.Args) (*einsum, error) {
	vs := a.Values(arg.Operands)
	if len(vs) == 0 {
		return nil, op.ValueError("operands must have at least one element")
	}
	equation := a.Str(arg.Equation)
	left, right, explicit := strings.Cut(equation, "->")
	e := &einsum{size: map[int]int{}}
	terms := strings.Split(left, ",")
	if len(terms) != len(vs) {
		return nil, op.RuntimeError("equation %q has %d operands, but operands has %d elements", equation, len(terms), len(vs))
	}
	parsed := make([][]int, len(terms))
	dots := 0
	for i, t := range terms {
		var err error
		if parsed[i], err = einsumLabels(t); err != nil {
			return nil, err
		}
		n, err := ellipsisSize(parsed[i], len(vs[i].Shape()), i)
		if err != nil {
			return nil, err
		}
		dots = max(dots, n)
	}
	for i, p := range parsed {
		e.operands = append(e.operands, spreadEllipsis(p, dots, len(vs[i].Shape())-len(p)+1))
	}
	if err := e.measure(vs); err != nil {
		return nil, err
	}
	if err := e.arrange(right, explicit, dots); err != nil {
		return nil, err
	}
	return e, nil
}

// einsumLabels reads the letters of one operand or of the result; the ellipsis
// is one label.
func einsumLabels(term string) ([]int, error) {
	labels := []int{}
	for i := 0; i < len(term); i++ {
		switch c := term[i]; {
		case c == ' ':
		case 'A' <= c && c <= 'Z':
			labels = append(labels, int(c-'A'))
		case 'a' <= c && c <= 'z':
			labels = append(labels, int(c-'a')+26)
		case strings.HasPrefix(term[i:], "...") && !slices.Contains(labels, ellipsisLabel):
			labels = append(labels, ellipsisLabel)
			i += 2
		default:
			return nil, op.RuntimeError("equation has %q at index %d of %q; subscripts must be in [a-zA-Z] or one ellipsis", c, i, term)
		}
	}
	return labels, nil
}

// ellipsisSize returns how many of an operand's n dimensions the ellipsis stands for.
func ellipsisSize(labels []int, n, operand int) (int, error) {
	if !slices.Contains(labels, ellipsisLabel) {
		if len(labels) != n {
			return 0, op.RuntimeError("equation has %d subscripts for element %d of operands, which has %d dimensions", len(labels), operand, n)
		}
		return 0, nil
	}
	if len(labels)-1 > n {
		return 0, op.RuntimeError("equation has %d subscripts beside the ellipsis for element %d of operands, which has %d dimensions", len(labels)-1, operand, n)
	}
	return n - len(labels) + 1, nil
}

// spreadEllipsis replaces the ellipsis by the labels of the last n of all its dimensions.
func spreadEllipsis(labels []int, all, n int) []int {
	out := []int{}
	for _, l := range labels {
		if l != ellipsisLabel {
			out = append(out, l)
			continue
		}
		for k := all - n; k < all; k++ {
			out = append(out, ellipsisLabel+k)
		}
	}
	return out
}

// measure finds each label's size; sizes of 1 broadcast between operands.
func (e *einsum) measure(vs []op.Value) error {
	for i, labels := range e.operands {
		own := map[int]int{}
		for d, l := range labels {
			n := vs[i].Shape()[d]
			if m, again := own[l]; again && m != n {
				return op.RuntimeError("equation repeats a subscript for element %d of operands, but its dimensions have sizes %d and %d", i, m, n)
			}
			own[l] = n
			switch seen, ok := e.size[l]; {
			case !ok || seen == 1:
				e.size[l] = n
			case n != 1 && n != seen:
				return op.RuntimeError("dimension %d of element %d of operands has size %d, which does not broadcast with the size %d seen before", d, i, n, seen)
			}
		}
	}
	return nil
}

// arrange reads the result's labels, or finds them: the ellipsis, then the
// letters that occur once.
func (e *einsum) arrange(right string, explicit bool, dots int) error {
	count := map[int]int{}
	for _, labels := range e.operands {
		for _, l := range labels {
			count[l]++
		}
	}
	if explicit {
		labels, err := einsumLabels(right)
		if err != nil {
			return err
		}
		e.order = spreadEllipsis(labels, dots, dots)
	} else {
		e.order = spreadEllipsis([]int{ellipsisLabel}, dots, dots)
		for l := range ellipsisLabel {
			if count[l] == 1 {
				e.order = append(e.order, l)
			}
		}
	}
	e.kept = len(e.order)
	for i, l := range e.order {
		if count[l] == 0 {
			return op.RuntimeError("equation has an output subscript that no operand has")
		}
		if slices.Contains(e.order[:i], l) {
			return op.RuntimeError("equation has an output subscript more than once")
		}
	}
	for k := range dots {
		e.sumOver(ellipsisLabel + k)
	}
	for l := range ellipsisLabel {
		if count[l] > 0 {
			e.sumOver(l)
		}
	}
	return nil
}

func (e *einsum) sumOver(label int) {
	if !slices.Contains(e.order, label) {
		e.order = append(e.order, label)
	}
}

// apply contracts the operands from left to right, as PyTorch does without opt_einsum.
func (e *einsum) apply(b op.Builder, vs []op.Value) op.Value {
	wide := make([]int, len(e.order)) // how many operands do not repeat the dimension
	full := make([]op.Value, len(vs))
	for i, v := range vs {
		full[i] = e.align(b, v, e.operands[i])
		for d, n := range full[i].Shape() {
			if n != 1 {
				wide[d]++
			}
		}
	}
	out := full[0]
	for _, v := range full[1:] {
		out = e.contract(b, out, v, wide)
	}
	summed := allDims(len(e.order))[e.kept:]
	switch {
	case len(summed) == 0:
		return out
	case len(vs) > 1:
		return b.Reshape(out, out.Shape()[:e.kept])
	}
	return b.Op("sum", out, summed)
}

// align brings an operand's dimensions into the common order, with size 1
// where it has none.
func (e *einsum) align(b op.Builder, v op.Value, labels []int) op.Value {
	labels = slices.Clone(labels)
	for i := 0; i < len(labels); i++ {
		for j := len(labels) - 1; j > i; j-- {
			if labels[j] == labels[i] {
				v = einsumDiagonal(b, v, i, j)
				labels = slices.Delete(labels, j, j+1)
			}
		}
	}
	perm := make([]int, len(e.order))
	for d, l := range e.order {
		at := slices.Index(labels, l)
		if at < 0 {
			at = len(v.Shape())
			v = b.Op("unsqueeze", v, -1)
		}
		perm[d] = at
	}
	return b.Op("permute", v, perm)
}

// einsumDiagonal replaces dimensions i < j of equal size by their diagonal, at i.
func einsumDiagonal(b op.Builder, v op.Value, i, j int) op.Value {
	v = b.Op("diagonal", v, 0, i, j)
	last := len(v.Shape()) - 1
	return b.Op("permute", v, slices.Insert(allDims(last), i, last))
}

// contract multiplies two aligned operands and sums over what no later one has.
func (e *einsum) contract(b op.Builder, x, y op.Value, wide []int) op.Value {
	var onlyX, onlyY, shared []int
	for d := e.kept; d < len(e.order); d++ {
		switch nx, ny := x.Shape()[d], y.Shape()[d]; {
		case nx != 1 && ny != 1:
			if wide[d]--; wide[d] == 1 {
				shared = append(shared, d)
				wide[d] = 0
			}
		case wide[d] != 1:
		case nx != 1:
			onlyX = append(onlyX, d)
			wide[d] = 0
		case ny != 1:
			onlyY = append(onlyY, d)
			wide[d] = 0
		}
	}
	return sumProducts(b, sumKept(b, x, onlyX), sumKept(b, y, onlyY), shared)
}

func sumKept(b op.Builder, v op.Value, dims []int) op.Value {
	if len(dims) == 0 {
		return v
	}
	return b.Op("sum", v, dims, op.Kw("keepdim", true))
}

// sumProducts returns Σ x·y over the given dimensions, which stay with size 1;
// x and y have as many dimensions and broadcast. It is one batched product of
// matrices, as in PyTorch's sumproduct_pair.
func sumProducts(b op.Builder, x, y op.Value, summed []int) op.Value {
	if len(summed) == 0 {
		return b.Mul(x, y)
	}
	var both, left, right []int
	batch, rows, inner, columns := 1, 1, 1, 1
	for d, nx := range x.Shape() {
		ny := y.Shape()[d]
		switch {
		case slices.Contains(summed, d):
			inner *= nx
		case nx != 1 && ny != 1:
			both = append(both, d)
			batch *= nx
		case nx != 1:
			left = append(left, d)
			rows *= nx
		default:
			right = append(right, d)
			columns *= ny
		}
	}
	out := []int{}
	for _, d := range slices.Concat(both, left) {
		out = append(out, x.Shape()[d])
	}
	out = append(out, slices.Repeat([]int{1}, len(summed))...)
	for _, d := range right {
		out = append(out, y.Shape()[d])
	}
	x = b.Reshape(b.Op("permute", x, slices.Concat(both, left, summed, right)), []int{batch, rows, inner})
	y = b.Reshape(b.Op("permute", y, slices.Concat(both, summed, right, left)), []int{batch, inner, columns})
	back := make([]int, len(out))
	for i, d := range slices.Concat(both, left, summed, right) {
		back[d] = i
	}
	return b.Op("permute", b.Reshape(b.Op("bmm", x, y), out), back)
}

// einsumTerms counts the products that one element sums.
func einsumTerms(a op.Args) int {
	e, err := einsumOf(a)
	if err != nil {
		return 1
	}
	n := 1
	for _, l := range e.order[e.kept:] {
		n *= e.size[l]
	}
	return n
}

// sampleEinsum draws an equation over the letters a–d and perhaps an ellipsis,
// with tied sizes, and operands that fit.
func sampleEinsum(s *op.Sampler) []any {
	size := s.Dims(4)
	dots := partOf(s, s.Shape(0, 2))
	var terms []string
	var vs []any
	used := map[byte]bool{}
	for range 1 + s.Index(3) {
		var term strings.Builder
		var shape []int
		for range s.Index(4) {
			c := byte('a' + s.Index(4))
			used[c] = true
			term.WriteByte(c)
			shape = append(shape, size[c-'a'])
		}
		if s.Index(3) == 2 {
			term.WriteString("...")
			shape = append(shape, dots...)
		}
		terms = append(terms, term.String())
		vs = append(vs, s.Tensor(-2, 2, shape...))
	}
	equation := strings.Join(terms, ",")
	if s.Bool() {
		return []any{equation, vs}
	}
	equation += "->"
	for c := byte('d'); c >= 'a'; c-- {
		if used[c] && s.Bool() {
			equation += string(c)
		}
	}
	return []any{equation + "...", vs}
}
