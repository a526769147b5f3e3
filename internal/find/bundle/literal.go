package bundle

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"plumb/tensor"
)

// literalSize is how many elements are written into a script; a larger tensor
// is read from the files of tensors.
const literalSize = 64

// notation writes elements in a language.
type notation struct {
	open, close string // of a list
	yes, no     string
	nan         string
	inf, negInf string
	complex     string // of two parts
	negZero     string // "" where -0.0 is one
}

var python = notation{"[", "]", "True", "False", "nan", "inf", "-inf", "complex(%s, %s)", ""}

// element returns the element at row-major index i.
func (n *notation) element(t *tensor.Tensor, i int) string {
	switch d := t.DType(); {
	case d == tensor.Bool && t.Int(i) != 0:
		return n.yes
	case d == tensor.Bool:
		return n.no
	case d.IsInt():
		return strconv.FormatInt(t.Int(i), 10)
	case d.IsComplex():
		v := t.At(i)
		return fmt.Sprintf(n.complex, n.float(real(v), d.Real()), n.float(imag(v), d.Real()))
	default:
		return n.float(t.Float(i), d)
	}
}

// float returns the shortest decimal that is v in the dtype, whether it is
// rounded to it at once or through float32.
func (n *notation) float(v float64, d tensor.DType) string {
	switch {
	case math.IsNaN(v):
		return n.nan
	case math.IsInf(v, 1):
		return n.inf
	case math.IsInf(v, -1):
		return n.negInf
	case v == 0 && math.Signbit(v) && n.negZero != "":
		return n.negZero
	}
	for digits := 1; digits < 17; digits++ {
		s := strconv.FormatFloat(v, 'g', digits, 64)
		if x, err := strconv.ParseFloat(s, 64); err == nil && rounded(x, d) == v && rounded(float64(float32(x)), d) == v {
			return withPoint(s)
		}
	}
	return withPoint(strconv.FormatFloat(v, 'g', -1, 64))
}

func withPoint(s string) string {
	if !strings.ContainsAny(s, ".e") {
		s += ".0"
	}
	return s
}

func rounded(v float64, d tensor.DType) float64 {
	switch d {
	case tensor.F16:
		return float64(tensor.Float64ToFloat16(v).Float32())
	case tensor.BF16:
		return float64(tensor.Float64ToBFloat16(v).Float32())
	case tensor.F32:
		return float64(float32(v))
	}
	return v
}

// nested writes the elements as lists in lists, a row to a line where they are many.
func (n *notation) nested(t *tensor.Tensor, indent string) string {
	s := n.lists(t, t.Shape(), 0)
	if rows := n.close + ", " + n.open; len(s) > 90 {
		s = strings.ReplaceAll(s, rows, n.close+",\n"+indent+n.open)
	}
	return s
}

func (n *notation) lists(t *tensor.Tensor, shape []int, at int) string {
	if len(shape) == 0 {
		return n.element(t, at)
	}
	step := tensor.NumElements(shape[1:])
	parts := make([]string, shape[0])
	for i := range parts {
		parts[i] = n.lists(t, shape[1:], at+i*step)
	}
	return n.open + strings.Join(parts, ", ") + n.close
}
