package picture

import (
	"fmt"
	"strings"

	"plumb/tensor"
)

// The extent of a picture in characters.
const (
	mostRows    = 12
	mostColumns = 64
)

// Legend explains the characters of Text.
const Legend = "error ÷ limit: · none, ░ below a tenth, ▒ within, ▓ beyond, █ ten times beyond"

// Text draws the field: a line for each dimension, with the largest error ÷ limit
// of each index, and the slice with most elements beyond the limit. Nothing is
// wider than width.
func (f *Field) Text(width int) []string {
	if len(f.Ratio) < 2 {
		return nil
	}
	columns := max(8, min(mostColumns, width-20))
	var lines []string
	for d, n := range f.Shape {
		if n > 1 {
			lines = append(lines, fmt.Sprintf("%-8s %4d  %s", fmt.Sprintf("dim %d", d), n, shades(pool(f.Profile(d), columns))))
		}
	}
	all := f.Slices()
	if rank := len(f.Shape); rank < 2 || len(all) == 0 || all[0].Rows < 2 || all[0].Columns < 2 {
		return lines
	}
	s := all[0]
	head := fmt.Sprintf("dims %d × %d", len(f.Shape)-2, len(f.Shape)-1)
	if len(s.Fixed) > 0 {
		head += " at " + strings.TrimSuffix(strings.Trim(tensor.ShapeString(s.Fixed), "()"), ",")
		if len(all) > 1 {
			head += fmt.Sprintf(", one of %d slices that differ", len(all))
		}
	}
	lines = append(lines, head)
	for _, row := range f.Pool(s, mostRows, columns) {
		lines = append(lines, "               "+shades(row))
	}
	return lines
}

// pool keeps the largest of each of at most n blocks.
func pool(xs []float64, n int) []float64 {
	n = min(n, len(xs))
	out := make([]float64, n)
	for i, x := range xs {
		k := i * n / len(xs)
		out[k] = max(out[k], x)
	}
	return out
}

func shades(ratios []float64) string {
	var b strings.Builder
	for _, r := range ratios {
		b.WriteRune(shade(r))
	}
	return b.String()
}

func shade(ratio float64) rune {
	switch {
	case ratio == 0:
		return '·'
	case ratio < 0.1:
		return '░'
	case ratio <= 1:
		return '▒'
	case ratio <= 10:
		return '▓'
	}
	return '█'
}
