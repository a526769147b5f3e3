package picture

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// The extent of pictures on a page: blocks of a heat map, points of a scatter plot.
const (
	svgRows    = 48
	svgColumns = 64
	svgPoints  = 400
)

// svgOf wraps the inside of a picture. Its colours are classes of the page's.
func svgOf(width, height int, label, inside string) string {
	return fmt.Sprintf(`<svg role="img" aria-label="%s" viewBox="0 0 %d %d" width="%d" height="%d">%s</svg>`, label, width, height, width, height, inside)
}

// Heat draws error ÷ limit over a slice, a block for one element or for several.
func (f *Field) Heat(s Slice) string {
	rows := f.Pool(s, svgRows, svgColumns)
	label := fmt.Sprintf("error by place: %d of %d elements of %d rows and %d columns are beyond the limit", s.Over, s.Rows*s.Columns, s.Rows, s.Columns)
	return heat(rows, label)
}

// Strip draws the largest error ÷ limit of each index of a dimension.
func (f *Field) Strip(dim int) string {
	row := pool(f.Profile(dim), svgColumns)
	over := 0
	for _, r := range row {
		if r > 1 {
			over++
		}
	}
	return heat([][]float64{row}, fmt.Sprintf("dimension %d of size %d: %d of %d blocks are beyond the limit", dim, f.Shape[dim], over, len(row)))
}

// heat draws the blocks of each shade as one path.
func heat(rows [][]float64, label string) string {
	size := max(4, min(14, 448/max(len(rows[0]), 1)))
	width, height := len(rows[0])*size, len(rows)*size
	var paths [6]strings.Builder
	for y, row := range rows {
		for x := 0; x < len(row); {
			n, shade := 1, level(row[x])
			for x+n < len(row) && level(row[x+n]) == shade {
				n++
			}
			fmt.Fprintf(&paths[shade], "M%d %dh%dv%dh-%dz", x*size, y*size, n*size, size, n*size)
			x += n
		}
	}
	inside := fmt.Sprintf(`<path class="h0" d="M0 0h%dv%dh-%dz"/>`, width, height, width)
	for shade := 1; shade < len(paths); shade++ {
		if paths[shade].Len() > 0 {
			inside += fmt.Sprintf(`<path class="h%d" d="%s"/>`, shade, paths[shade].String())
		}
	}
	return svgOf(width, height, label, inside)
}

// level numbers the shades.
func level(ratio float64) int {
	switch {
	case math.IsInf(ratio, 1):
		return 5
	case ratio > 10:
		return 4
	case ratio > 1:
		return 3
	case ratio >= 0.1:
		return 2
	case ratio > 0:
		return 1
	}
	return 0
}

// Histogram draws how many elements are how many units in the last place off, by
// powers of two.
func (f *Field) Histogram() string {
	var bins [34]int // equal, up to 1, up to 2, …, more than 2^31 or not finite
	for i, u := range f.ULP {
		switch {
		case f.Ratio[i] == 0:
			bins[0]++
		case !(u < 1<<31):
			bins[33]++
		default:
			bins[1+int(math.Ceil(math.Log2(max(u, 1))))]++
		}
	}
	most, last := 1, 1
	for i, n := range bins {
		if most = max(most, n); n > 0 {
			last = max(last, i)
		}
	}
	const height, wide = 90, 14
	var b strings.Builder
	for i, n := range bins[:last+1] {
		if n > 0 {
			h := max(2, int(math.Round(height*math.Log1p(float64(n))/math.Log1p(float64(most)))))
			fmt.Fprintf(&b, `<rect class="bar" x="%d" y="%d" width="%d" height="%d"><title>%s: %d</title></rect>`, i*wide, height-h, wide-2, h, binName(i), n)
		}
		if i < 2 || i%4 == 1 || i == last {
			fmt.Fprintf(&b, `<text x="%d" y="%d">%s</text>`, i*wide, height+14, []string{"0", "1", "2"}[min(i, 2)]+power(i))
		}
	}
	return svgOf((last+1)*wide+40, height+20, fmt.Sprintf("histogram of the error in units in the last place: %d equal, at most %s", bins[0], binName(last)), b.String())
}

func power(i int) string {
	if i < 2 {
		return ""
	}
	return fmt.Sprintf("^%d", i-1)
}

func binName(i int) string {
	switch i {
	case 0:
		return "equal"
	case 1:
		return "up to 1 ULP"
	case 33:
		return "more than 2^31 ULP, or not finite"
	}
	return fmt.Sprintf("up to 2^%d ULP", i-1)
}

// Scatter draws what is there against what is expected, those beyond the limit
// first; "" where fewer than two elements are finite on both sides.
func (f *Field) Scatter() string {
	lo, hi := math.Inf(1), math.Inf(-1)
	var points [2][]int // within, beyond
	for i := range f.Want {
		if w, g := f.Want[i], f.Got[i]; finite(w) && finite(g) {
			lo, hi = min(lo, w, g), max(hi, w, g)
			k := 0
			if f.Ratio[i] > 1 {
				k = 1
			}
			points[k] = append(points[k], i)
		}
	}
	if len(points[0])+len(points[1]) < 2 || lo == hi || !finite(hi-lo) {
		return ""
	}
	const size = 160
	at := func(x float64) float64 { return 4 + (x-lo)/(hi-lo)*(size-8) }
	var b strings.Builder
	fmt.Fprintf(&b, `<path class="diagonal" d="M4 %dL%d 4"/>`, size-4, size-4)
	for k, class := range []string{"within", "beyond"} {
		step := max(1, len(points[k])/svgPoints)
		drawn := map[string]bool{}
		for n := 0; n < len(points[k]); n += step {
			i := points[k][n]
			drawn[fmt.Sprintf("M%.0f %.0fh0", at(f.Want[i]), size-at(f.Got[i]))] = true
		}
		fmt.Fprintf(&b, `<path class="%s" d="%s"/>`, class, strings.Join(slices.Sorted(maps.Keys(drawn)), ""))
	}
	return svgOf(size, size, fmt.Sprintf("what is there, upwards, against what is expected, to the right, from %.3g to %.3g: %d points are beyond the limit", lo, hi, len(points[1])), b.String())
}

func finite(x float64) bool { return x-x == 0 }

// Place is an element that is not finite on one side, or otherwise not there.
type Place struct {
	Index     []int
	Want, Got string
}

// Unlike returns the first elements of which one side alone is finite, or that are
// infinities or NaNs of two kinds.
func (f *Field) Unlike(most int) []Place {
	var out []Place
	for i := range f.Want {
		if f.Ratio[i] == 0 || finite(f.Want[i]) && finite(f.Got[i]) {
			continue
		}
		if len(out) == most {
			break
		}
		index := f.Index(i)
		want, got := f.Element(index)
		out = append(out, Place{index, want, got})
	}
	return out
}
