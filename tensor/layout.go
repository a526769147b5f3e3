package tensor

import (
	"fmt"
	"slices"
	"strings"
)

// MemoryFormat names an order of elements in memory.
type MemoryFormat uint8

// The memory formats of PyTorch. Preserve asks an operator to keep its input's order.
const (
	Contiguous MemoryFormat = iota
	ChannelsLast
	Preserve
)

var formatNames = [...]string{"contiguous_format", "channels_last", "preserve_format"}

// String returns PyTorch's name, as in torch.NAME.
func (f MemoryFormat) String() string { return formatNames[f] }

// Valid reports whether f is one of the formats.
func (f MemoryFormat) Valid() bool { return int(f) < len(formatNames) }

// ParseMemoryFormat reads PyTorch's name of a memory format.
func ParseMemoryFormat(s string) (MemoryFormat, error) {
	i := slices.Index(formatNames[:], strings.TrimPrefix(s, "torch."))
	if i < 0 {
		return 0, fmt.Errorf("unknown memory format %q", s)
	}
	return MemoryFormat(i), nil
}

// Strides returns the strides of a dense tensor of the shape in format f.
// ChannelsLast needs 4 or 5 dimensions; other shapes and Preserve are contiguous.
func (f MemoryFormat) Strides(shape []int) []int {
	if f != ChannelsLast || len(shape) < 4 || len(shape) > 5 {
		return ContiguousStrides(shape)
	}
	order := append([]int{0}, dims(2, len(shape))...)
	return PermutedStrides(shape, append(order, 1))
}

// Matches reports whether strides are those of format f, ignoring the strides
// of dimensions of size 1 and of tensors without elements.
func (f MemoryFormat) Matches(shape, strides []int) bool {
	if f == ChannelsLast && (len(shape) < 4 || len(shape) > 5) {
		return false
	}
	if f == Contiguous {
		return isContiguous(shape, strides)
	}
	want := f.Strides(shape)
	for i, n := range shape {
		if n == 0 {
			return true
		}
		if n != 1 && strides[i] != want[i] {
			for _, m := range shape[i+1:] {
				if m == 0 {
					return true
				}
			}
			return false
		}
	}
	return true
}

// isContiguous is Matches of Contiguous, which allocates nothing.
func isContiguous(shape, strides []int) bool {
	step, gap := 1, false
	for i := len(shape) - 1; i >= 0; i-- {
		if shape[i] == 0 {
			return true
		}
		gap = gap || shape[i] != 1 && strides[i] != step
		step *= shape[i]
	}
	return !gap
}

func dims(lo, hi int) []int {
	var d []int
	for i := lo; i < hi; i++ {
		d = append(d, i)
	}
	return d
}

// PermutedStrides returns the strides of a dense tensor whose dimensions lie in
// memory in the given order, order[0] outermost.
func PermutedStrides(shape, order []int) []int {
	strides := make([]int, len(shape))
	step := 1
	for i := len(order) - 1; i >= 0; i-- {
		strides[order[i]] = step
		step *= max(shape[order[i]], 1)
	}
	return strides
}

// ContiguousStrides returns row-major strides in elements.
func ContiguousStrides(shape []int) []int {
	strides := make([]int, len(shape))
	contiguousStrides(strides, shape)
	return strides
}

func contiguousStrides(strides, shape []int) {
	step := 1
	for i := len(shape) - 1; i >= 0; i-- {
		strides[i] = step
		step *= max(shape[i], 1)
	}
}

// DenseLike returns dense strides for shape that keep the dimension order of
// the given strides, as PyTorch's preserve_format does for a result of the
// same shape; ambiguous or overlapping strides give contiguous ones.
func DenseLike(shape, strides []int) []int {
	order := dims(0, len(shape))
	for i, n := range shape {
		if n != 1 && strides[i] == 0 {
			return ContiguousStrides(shape)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		if shape[a] == 1 || shape[b] == 1 {
			return a - b
		}
		return strides[b] - strides[a]
	})
	return PermutedStrides(shape, order)
}

// SpacedStrides returns contiguous strides times gap, as of every gap-th
// element of a contiguous tensor.
func SpacedStrides(shape []int, gap int) []int {
	strides := ContiguousStrides(shape)
	for i := range strides {
		strides[i] *= gap
	}
	return strides
}

// NumElements returns the product of the dimensions; 1 for none.
func NumElements(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// Extent returns how many elements a storage needs for the shape and
// non-negative strides.
func Extent(shape, strides []int) int {
	n := 1
	for i, d := range shape {
		if d == 0 {
			return 0
		}
		n += (d - 1) * strides[i]
	}
	return n
}

// CheckShape returns an error when a dimension is negative or there are too many elements.
func CheckShape(d DType, shape []int) error {
	if d == Invalid || d > C128 {
		return fmt.Errorf("invalid dtype")
	}
	n := 1
	for _, s := range shape {
		if s < 0 {
			return fmt.Errorf("shape %v has a negative dimension", shape)
		}
		if s > MaxElements || s > 0 && n > MaxElements/s {
			return fmt.Errorf("shape %v is too large", shape)
		}
		n *= s
	}
	return nil
}

// ShapeString prints a shape as PyTorch does: "[2, 3]".
func ShapeString(shape []int) string {
	return strings.ReplaceAll(fmt.Sprint(shape), " ", ", ")
}

// BroadcastShapes returns the common shape of PyTorch's broadcasting rules.
func BroadcastShapes(shapes ...[]int) ([]int, error) {
	var out []int
	for _, s := range shapes {
		if len(s) > len(out) {
			out = append(slices.Repeat([]int{1}, len(s)-len(out)), out...)
		}
		for i, n := range s {
			o := &out[len(out)-len(s)+i]
			switch {
			case *o == 1:
				*o = n
			case n != 1 && n != *o:
				return nil, fmt.Errorf("shapes %s are not broadcastable", shapesString(shapes))
			}
		}
	}
	return out, nil
}

func shapesString(shapes [][]int) string {
	var parts []string
	for _, s := range shapes {
		parts = append(parts, ShapeString(s))
	}
	return strings.Join(parts, " and ")
}
