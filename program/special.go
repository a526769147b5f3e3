package program

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"plumb/tensor"
)

// Special is a set of kinds of edge values that a Fill mixes among its
// elements, a quarter of which they replace, whatever its range.
type Special uint8

// The kinds. What a dtype lacks it does not get: integers have no infinities,
// bool has nothing.
const (
	Zeros      Special = 1 << iota // 0 and -0
	Infs                           // both infinities
	NaNs                           // a NaN
	Subnormals                     // the smallest and the largest subnormal, the smallest normal, of both signs
	Ties                           // halves, which rounding must break, and a value that recurs
	Extremes                       // the largest finite values; of integers the first, the last and their neighbours
)

// AllSpecials is every kind.
const AllSpecials = Zeros | Infs | NaNs | Subnormals | Ties | Extremes

var specialNames = []string{"zeros", "inf", "nan", "subnormal", "ties", "extremes"}

// SpecialNames lists the names of the kinds.
func SpecialNames() []string { return slices.Clone(specialNames) }

// ParseSpecial returns the kind of a name.
func ParseSpecial(name string) (Special, error) {
	i := slices.Index(specialNames, name)
	if i < 0 {
		return 0, fmt.Errorf("%q is no kind of edge value; there are %s", name, strings.Join(specialNames, ", "))
	}
	return 1 << i, nil
}

// Kinds returns the kinds of the set, one by one.
func (s Special) Kinds() []Special {
	var out []Special
	for rest := s; rest != 0; rest &= rest - 1 {
		out = append(out, rest&-rest)
	}
	return out
}

// String returns the Python expression of the set: True for all of them, else
// a list of names.
func (s Special) String() string {
	if s == AllSpecials {
		return "True"
	}
	var names []string
	for _, k := range s.Kinds() {
		names = append(names, strconv.Quote(specialNames[bits.TrailingZeros8(uint8(k))]))
	}
	return "[" + strings.Join(names, ", ") + "]"
}

// edges are the ends of a floating dtype.
var edges = map[tensor.DType]struct{ least, lastSubnormal, normal, most float64 }{
	tensor.F16:  {0x1p-24, 0x1.ff8p-15, 0x1p-14, 65504},
	tensor.BF16: {0x1p-133, 0x1.fcp-127, 0x1p-126, 0x1.fep127},
	tensor.F32:  {math.SmallestNonzeroFloat32, 0x1.fffffcp-127, 0x1p-126, math.MaxFloat32},
	tensor.F64:  {math.SmallestNonzeroFloat64, 0x1.ffffffffffffep-1023, 0x1p-1022, math.MaxFloat64},
}

// reals returns the edge values of a floating or complex dtype's parts; again
// is the value that recurs.
func (s Special) reals(d tensor.DType, again float64) []float64 {
	e := edges[d.Real()]
	var out []float64
	both := func(vs ...float64) {
		for _, v := range vs {
			out = append(out, v, -v)
		}
	}
	for _, k := range s.Kinds() {
		switch k {
		case Zeros:
			out = append(out, 0, math.Copysign(0, -1))
		case Infs:
			both(math.Inf(1))
		case NaNs:
			out = append(out, math.NaN())
		case Subnormals:
			both(e.least, e.lastSubnormal, e.normal)
		case Ties:
			both(0.5, 1.5, 2.5)
			out = append(out, again, again)
		case Extremes:
			both(e.most)
		}
	}
	return out
}

// integers returns the edge values of an integer dtype.
func (s Special) integers(d tensor.DType, again int64) []int64 {
	if !d.IsInt() {
		return nil
	}
	first, last := int64(0), int64(math.MaxUint8)
	if d != tensor.U8 {
		first, last = -1<<(8*d.Size()-1), 1<<(8*d.Size()-1)-1
	}
	var out []int64
	for _, k := range s.Kinds() {
		switch k {
		case Zeros:
			out = append(out, 0)
		case Ties:
			out = append(out, again)
		case Extremes:
			out = append(out, first, last, first+1, last-1)
		}
	}
	return out
}

// strikes reports whether an element is replaced by an edge value, and by
// which of n. The bits that decide are none of those that the value's kinks use.
func strikes(word uint64, n int) (int, bool) {
	if n == 0 || word>>5&3 != 0 {
		return 0, false
	}
	return int((word >> 11) % uint64(n)), true
}
