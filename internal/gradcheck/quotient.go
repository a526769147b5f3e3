package gradcheck

import (
	"fmt"
	"math"
	"math/cmplx"

	"plumb/internal/eager"
	"plumb/op"
)

// function is a sum as a function of the elements of its leaves, with its
// gradient where they stand.
type function struct {
	leaves []leaf
	value  func() (sum, error)
	middle sum // the value where the leaves stand
}

// sum is Re Σ conj(w)·y.
type sum struct {
	total, magnitude float64 // magnitude is Σ|w|·(1 + |y|)
}

// leaf is a tensor that is differentiated by.
type leaf struct {
	name string
	*eager.Var
	grad op.Value // nil means zero
	// hermitian says that elements change together with their mirror images.
	hermitian bool
}

// element is one real number of a leaf.
type element struct {
	at        int
	imaginary bool
}

// elements returns up to most elements, spread over the leaf; of complex ones
// both parts.
func (l *leaf) elements(most int) []element {
	n := min(l.Len(), most)
	var out []element
	for i := range n {
		at := i * l.Len() / n
		out = append(out, element{at, false})
		if l.DType().IsComplex() && !(l.hermitian && l.mirror(at) == at) {
			out = append(out, element{at, true})
		}
	}
	return out
}

func (l *leaf) describe(e element) string {
	part := ""
	if e.imaginary {
		part = ", imaginary part"
	}
	return fmt.Sprintf("%s (%v), element %d%s", l.name, l.Tensor, e.at, part)
}

func (l *leaf) gradient(e element) float64 {
	g, ok := l.grad.(*eager.Var)
	switch {
	case !ok:
		return 0
	case l.hermitian && l.mirror(e.at) != e.at:
		return partOf(g.At(e.at)+cmplx.Conj(g.At(l.mirror(e.at))), e.imaginary)
	}
	return partOf(g.At(e.at), e.imaginary)
}

// mirror returns the place of an element's mirror image in its matrix.
func (l *leaf) mirror(at int) int {
	n := l.Shape()[l.Dim()-1]
	row, column := at/n%n, at%n
	return at + (column-row)*n + row - column
}

func partOf(v complex128, imaginary bool) float64 {
	if imaginary {
		return imag(v)
	}
	return real(v)
}

// part returns the real number that e stands for.
func (l *leaf) part(e element) float64 {
	return partOf(l.At(e.at), e.imaginary)
}

func (l *leaf) setPart(e element, x float64) {
	v := l.At(e.at)
	if e.imaginary {
		l.Set(e.at, complex(real(v), x))
	} else {
		l.Set(e.at, complex(x, imag(v)))
	}
	if l.hermitian {
		l.Set(l.mirror(e.at), cmplx.Conj(l.At(e.at)))
	}
}

// quotient is a difference quotient with its limit.
type quotient struct {
	value, limit float64
	kink         bool
}

// The constants of the package's rules.
const (
	step     = 0x1p-13
	rtol     = 1e-3
	atol     = 1e-5
	rounding = 64 * 0x1p-53
)

// quotient returns the difference quotient by one element of a leaf.
func (f *function) quotient(l *leaf, e element) (quotient, error) {
	x := l.part(e)
	h := step * max(1, math.Abs(x))
	at := [5]float64{x - h, x - h/2, x, x + h/2, x + h}
	y := [5]float64{2: f.middle.total}
	magnitude := f.middle.magnitude
	for _, i := range []int{0, 1, 3, 4} {
		s, err := f.at(l, e, at[i])
		if err != nil {
			return quotient{}, err
		}
		y[i], magnitude = s.total, max(magnitude, s.magnitude)
	}
	slope := func(i, j int) float64 { return (y[j] - y[i]) / (at[j] - at[i]) }
	wide, narrow := slope(0, 4), slope(1, 3)
	bend, half := slope(2, 4)-slope(0, 2), slope(2, 3)-slope(1, 2)
	disagreement := math.Abs(wide-narrow) + math.Abs(bend-2*half)
	noise := rounding * magnitude / h
	steepest := max(math.Abs(slope(2, 4)), math.Abs(slope(0, 2)))
	return quotient{
		value: narrow,
		limit: disagreement + noise,
		kink:  !(disagreement <= atol+rtol*steepest+noise) || math.IsInf(steepest, 0),
	}, nil
}

// at returns the function's value where an element of a leaf is x.
func (f *function) at(l *leaf, e element, x float64) (sum, error) {
	defer l.setPart(e, l.part(e))
	l.setPart(e, x)
	return f.value()
}

// ratio returns the error of a gradient ÷ its limit.
func (q quotient) ratio(got float64) float64 {
	diff := math.Abs(got - q.value)
	switch {
	case diff == 0:
		return 0
	case math.IsNaN(diff):
		return math.Inf(1)
	}
	return diff / q.limit
}
