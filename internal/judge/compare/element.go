package compare

import (
	"math"
	"strconv"

	"plumb/tensor"
)

// Element prints the element of t at row-major position i with as many digits
// as its dtype needs.
func Element(t *tensor.Tensor, i int) string {
	switch d := t.DType(); {
	case d == tensor.Bool:
		return strconv.FormatBool(t.Int(i) != 0)
	case d.IsInt():
		return strconv.FormatInt(t.Int(i), 10)
	case d.IsComplex():
		v := t.At(i)
		re, im := float(real(v), d.Real()), float(imag(v), d.Real())
		if im[0] != '-' && im[0] != '+' {
			im = "+" + im
		}
		return re + im + "j"
	default:
		return float(t.Float(i), d)
	}
}

// digits are how many significant digits tell neighbours of a half dtype apart.
var digits = map[tensor.DType]int{tensor.F16: 5, tensor.BF16: 4}

func float(v float64, d tensor.DType) string {
	switch {
	case math.IsNaN(v):
		return "nan"
	case math.IsInf(v, 0):
		return map[bool]string{true: "-inf", false: "inf"}[v < 0]
	case d == tensor.F64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case d == tensor.F32:
		return strconv.FormatFloat(v, 'g', -1, 32)
	}
	s := strconv.FormatFloat(v, 'g', digits[d], 64)
	if f, err := strconv.ParseFloat(s, 64); err == nil {
		s = strconv.FormatFloat(f, 'g', -1, 64)
	}
	return s
}
