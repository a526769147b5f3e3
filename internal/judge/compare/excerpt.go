package compare

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"plumb/tensor"
)

// Sample is one element of both tensors.
type Sample struct {
	Index []int  `json:"index"`
	Want  string `json:"want"`
	Got   string `json:"got"`
	Ratio Number `json:"ratio"` // error ÷ limit
	// Truth is the exact value, where an oracle told it.
	Truth string `json:"truth,omitempty"`
}

// Around returns the element at an index of the tensors with up to n
// neighbours to either side along the last dimension.
func Around(want, got *tensor.Tensor, index []int, n int, limit Limit, o Options) []Sample {
	last := len(index) - 1
	if last < 0 {
		return []Sample{sampleAt(want, got, index, limit, o)}
	}
	var list []Sample
	lo, hi := max(0, index[last]-n), min(want.Shape()[last]-1, index[last]+n)
	for i := lo; i <= hi; i++ {
		at := slices.Clone(index)
		at[last] = i
		list = append(list, sampleAt(want, got, at, limit, o))
	}
	return list
}

func sampleAt(want, got *tensor.Tensor, index []int, limit Limit, o Options) Sample {
	for d, i := range index {
		want, got = want.Narrow(d, i, 1, 1), got.Narrow(d, i, 1, 1)
		if limit.Error != nil {
			limit.Error = limit.Error.Narrow(d, i, 1, 1)
		}
	}
	return Sample{Index: index, Want: Element(want, 0), Got: Element(got, 0), Ratio: Judge(want, got, limit, o).WorstRatio}
}

// LeastLimit says which tolerances would just pass where a distance broke the
// limit: all of the limit's widened alike, or one kind alone. It is empty
// for any other Diff.
func (d *Diff) LeastLimit(l Limit) string {
	if d.Rule != Distance {
		return ""
	}
	var ways []string
	if r, w := l.rule(), float64(d.WorstRatio); !math.IsInf(w, 0) {
		way := fmt.Sprintf("rtol=%s and atol=%s", ceil(r.rtol*w), ceil(r.atol*w))
		if r.ulp > 0 {
			way += fmt.Sprintf(" and %.0f ULP", math.Ceil(r.ulp*w))
		}
		ways = append(ways, way)
	}
	ways = append(ways, fmt.Sprintf("atol=%s alone", ceil(float64(d.MaxAbs))), fmt.Sprintf("%d ULP alone", uint64(d.MaxULP)))
	return strings.Join(ways, ", or ")
}

// ceil prints x rounded up to three significant digits.
func ceil(x float64) string {
	s := strconv.FormatFloat(x, 'g', 3, 64)
	if v, err := strconv.ParseFloat(s, 64); err == nil && v < x {
		step := math.Pow(10, math.Floor(math.Log10(x))-2)
		s = strconv.FormatFloat(v+step, 'g', 3, 64)
	}
	return s
}

// The extent of a heat map.
const (
	mapRows    = 16
	mapColumns = 48
)

// HeatMap draws the part of the tensors' last two dimensions that lies around
// an index, a character for each element by its error ÷ limit: "·" none, "-"
// below a tenth, "+" within the limit, "#" beyond, "X" ten times beyond. It is
// nil for tensors of fewer than two rows or columns.
func HeatMap(want, got *tensor.Tensor, index []int, limit Limit, o Options) []string {
	rank := len(index)
	if rank < 2 || want.Shape()[rank-2] < 2 || want.Shape()[rank-1] < 2 {
		return nil
	}
	top, rows := window(index[rank-2], want.Shape()[rank-2], mapRows)
	left, columns := window(index[rank-1], want.Shape()[rank-1], mapColumns)
	at := slices.Clone(index)
	var lines []string
	for r := range rows {
		line := make([]rune, columns)
		for c := range columns {
			at[rank-2], at[rank-1] = top+r, left+c
			line[c] = heat(sampleAt(want, got, at, limit, o).Ratio)
		}
		lines = append(lines, string(line))
	}
	return lines
}

// window returns the start and length of at most n of size entries around i.
func window(i, size, n int) (start, length int) {
	length = min(size, n)
	return min(max(i-length/2, 0), size-length), length
}

func heat(ratio Number) rune {
	switch {
	case ratio == 0:
		return '·'
	case ratio < 0.1:
		return '-'
	case ratio <= 1:
		return '+'
	case ratio <= 10:
		return '#'
	}
	return 'X'
}
