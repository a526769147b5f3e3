// Package compare finds how two tensors differ and judges the difference
// against a limit.
//
// # Rules
//
// Tensors applies these rules in order and reports the first that is broken:
//
//  1. structure — both tensors exist, or neither does.
//  2. dtype — the element types are the same; nothing is promoted.
//  3. shape — the shapes are the same; nothing is broadcast.
//  4. layout — the strides are the same, where Options.Layout asks for it;
//     strides of dimensions of size 1 and of tensors without elements do not
//     count.
//  5. nonfinite — a NaN stands only where a NaN is expected, an infinity only
//     where one of its sign is. With Options.SignedZero the signs of zeros
//     agree too. A complex number is looked at by component.
//  6. distance — every remaining element keeps the Limit. The error of a
//     complex number is the modulus of the difference and |want| its modulus,
//     as in torch.isclose; its ULP distance is that of its worse component.
//
// The ULP distance of two numbers is how many steps of their own dtype's grid
// lie between them: 0 between the zeros, 1 from the largest subnormal to the
// smallest normal number, 1 across a power of two in either direction.
//
// Every comparison that reaches rule 5 also measures: see Diff.
package compare

import (
	"bytes"
	"fmt"
	"math"
	"slices"

	"plumb/tensor"
)

// Rule names what a comparison found broken.
type Rule string

// The rules, in the order in which they are applied.
const (
	Structure Rule = "structure"
	DType     Rule = "dtype"
	Shape     Rule = "shape"
	Layout    Rule = "layout"
	NonFinite Rule = "nonfinite"
	Distance  Rule = "distance"
)

// Options change the rules.
type Options struct {
	Layout     bool // compare strides
	NaNDiffers bool // a NaN matches nothing, not even a NaN
	SignedZero bool // -0 and +0 differ
}

// Diff is what a comparison found. Errors are |got − want| in float64; the
// statistics cover the elements that are finite on both sides; RMSE is infinite
// and Cosine NaN where a square exceeds float64.
type Diff struct {
	OK      bool   `json:"ok"`
	Rule    Rule   `json:"rule,omitempty"` // the first that is broken
	Message string `json:"message,omitempty"`

	Total      int `json:"total"`      // elements
	Mismatches int `json:"mismatches"` // elements that break rule 5 or 6
	// First is the index of the first element in row-major order that breaks
	// the reported rule, Worst that of the largest error ÷ limit; nil for none.
	First []int  `json:"first"`
	Worst []int  `json:"worst"`
	Want  string `json:"want,omitempty"` // the element at Worst, where a rule is broken
	Got   string `json:"got,omitempty"`

	// WorstRatio is the largest observed error ÷ limit: above 1 an element
	// fails, and it is infinite where nothing could pass.
	WorstRatio Number `json:"worst_ratio"`
	MaxAbs     Number `json:"max_abs"`
	MaxRel     Number `json:"max_rel"` // |got − want| ÷ |want|, where want is not 0
	MaxULP     Number `json:"max_ulp"`
	MeanAbs    Number `json:"mean_abs"`
	// MeanRel is the mean of |got − want| ÷ |want| over the finite elements where
	// want is not 0; measured only where rule 6 is broken.
	MeanRel Number `json:"mean_rel,omitempty"`
	RMSE    Number `json:"rmse"`   // √(mean of squared errors)
	Bias    Number `json:"bias"`   // (errors above 0 − errors below 0) ÷ errors other than 0
	Cosine  Number `json:"cosine"` // of the angle between want and got; 1 for two zero vectors
	Hist    Hist   `json:"hist"`
}

// Tensors compares got with want by the rules of the package. It reads both in
// place, whatever their strides, and never panics on what they hold.
func Tensors(want, got *tensor.Tensor, limit Limit, o Options) Diff {
	if d, broken := metadata(want, got, o); broken || want == nil {
		return d
	}
	total := want.Len()
	if total == 0 || !o.NaNDiffers && sameBits(want, got) {
		return identical(total)
	}
	m := newMeter(want.DType(), limit.rule(), o)
	defer m.free()
	walk(want, got, m)
	d := m.diff(want, got, total)
	if d.Rule == Distance {
		d.MeanRel = meanRel(want, got)
	}
	return d
}

func meanRel(want, got *tensor.Tensor) Number {
	if want.IsContiguous() && got.IsContiguous() {
		switch want.DType() {
		case tensor.F32:
			return meanRelOf(tensor.Data[float32](want)[:want.Len()], tensor.Data[float32](got))
		case tensor.F64:
			return meanRelOf(tensor.Data[float64](want)[:want.Len()], tensor.Data[float64](got))
		}
	}
	sum, n := 0.0, 0
	for i := range want.Len() {
		w, g := want.At(i), got.At(i)
		if size := math.Hypot(real(w), imag(w)); size > 0 && finite(w) && finite(g) {
			sum += distance(w, g) / size
			n++
		}
	}
	return Number(sum / float64(max(n, 1)))
}

func meanRelOf[T float32 | float64](want, got []T) Number {
	sum, n := 0.0, 0
	for i, x := range want {
		w, g := float64(x), float64(got[i])
		if w != 0 && w-w == 0 && g-g == 0 {
			sum += math.Abs(w-g) / math.Abs(w)
			n++
		}
	}
	return Number(sum / float64(max(n, 1)))
}

// Passes reports whether Tensors finds no rule broken, in less time: it
// measures nothing and stops at the first chunk that breaks one.
func Passes(want, got *tensor.Tensor, limit Limit, o Options) bool {
	if limit.Error != nil {
		return Judge(want, got, limit, o).OK
	}
	if _, broken := metadata(want, got, o); broken || want == nil || want.Len() == 0 {
		return !broken
	}
	m := newMeter(want.DType(), limit.rule(), o)
	defer m.free()
	m.brief = true
	walk(want, got, m)
	return m.nonFinite+m.far == 0
}

// metadata applies rules 1 to 4.
func metadata(want, got *tensor.Tensor, o Options) (Diff, bool) {
	switch {
	case want == nil && got == nil:
		return Diff{OK: true, Cosine: 1}, false
	case want == nil:
		return broken(Structure, "got a tensor %s, want none", got), true
	case got == nil:
		return broken(Structure, "got no tensor, want %s", want), true
	case want.DType() != got.DType():
		return broken(DType, "got dtype %s, want %s", got.DType(), want.DType()), true
	case !slices.Equal(want.Shape(), got.Shape()):
		return broken(Shape, "got shape %s, want %s", tensor.ShapeString(got.Shape()), tensor.ShapeString(want.Shape())), true
	case o.Layout && want.Len() > 0 && !sameStrides(want, got):
		return broken(Layout, "got strides %s, want %s", tensor.ShapeString(got.Strides()), tensor.ShapeString(want.Strides())), true
	}
	return Diff{}, false
}

// Metadata applies rules 1 to 4 alone.
func Metadata(want, got *tensor.Tensor, o Options) Diff {
	d, broken := metadata(want, got, o)
	d.OK = !broken
	return d
}

func broken(r Rule, format string, args ...any) Diff {
	return Diff{Rule: r, Message: fmt.Sprintf(format, args...), WorstRatio: inf}
}

func sameStrides(a, b *tensor.Tensor) bool {
	for i, n := range a.Shape() {
		if n != 1 && a.Strides()[i] != b.Strides()[i] {
			return false
		}
	}
	return true
}

// sameBits reports whether two tensors with elements lie alike in memory with
// the same bytes; false does not mean that their elements differ.
func sameBits(a, b *tensor.Tensor) bool {
	if !sameStrides(a, b) || slices.ContainsFunc(a.Strides(), func(s int) bool { return s < 0 }) {
		return false
	}
	return bytes.Equal(span(a), span(b))
}

// span returns the bytes from the first element of t to its last.
func span(t *tensor.Tensor) []byte {
	size := t.DType().Size()
	n := 1
	for i, d := range t.Shape() {
		if d != 1 {
			n += (d - 1) * t.Strides()[i]
		}
	}
	return t.Storage()[t.Offset()*size:][:n*size]
}

func identical(total int) Diff {
	d := Diff{OK: true, Total: total, Cosine: 1}
	d.Hist[0] = total
	return d
}

// unravel returns the index of the element at row-major position i.
func unravel(i int, shape []int) []int {
	index := make([]int, len(shape))
	for d := len(shape) - 1; d >= 0; d-- {
		index[d] = i % shape[d]
		i /= shape[d]
	}
	return index
}
