package picture

import (
	"fmt"
	"slices"
	"strings"
)

// Words says where the elements beyond the limit are, as far as that is simple:
// "only index 3 of dim 1 (of 8)", "only the border of dims 2 and 3". It is "" where
// nothing is, or where all differ.
func (f *Field) Words() string {
	var parts []string
	for d := range f.Shape {
		if text := f.along(d); text != "" {
			parts = append(parts, text)
		}
	}
	if border := f.border(); border != "" {
		parts = append(parts, border)
	}
	if len(parts) == 0 && f.Over == len(f.Ratio) && f.Over > 1 {
		return fmt.Sprintf("all %d elements", f.Over)
	}
	return strings.Join(parts, "; ")
}

// along describes which indices of a dimension are beyond the limit; "" where all
// are, or where there is no choice.
func (f *Field) along(dim int) string {
	n := f.Shape[dim]
	var hit []int
	for k, r := range f.Profile(dim) {
		if r > 1 {
			hit = append(hit, k)
		}
	}
	if n < 2 || len(hit) == n {
		return ""
	}
	of := fmt.Sprintf("of dim %d (of %d)", dim, n)
	first, last := hit[0], hit[len(hit)-1]
	run := last-first == len(hit)-1
	switch {
	case len(hit) == 1 && first == 0:
		return "only the first index " + of
	case len(hit) == 1 && first == n-1:
		return fmt.Sprintf("only the last index, %d, %s", first, of)
	case len(hit) == 1:
		return fmt.Sprintf("only index %d %s%s", first, of, seam(hit, n))
	case len(hit) == 2 && first == 0 && last == n-1:
		return "only the first and the last index " + of
	case run && first == 0:
		return fmt.Sprintf("only the first %d indices %s", len(hit), of)
	case run && last == n-1:
		return fmt.Sprintf("only from index %d on %s", first, of)
	case run:
		return fmt.Sprintf("only indices %d to %d %s", first, last, of)
	}
	if step := hit[1] - hit[0]; step > 1 && len(hit) > 2 && regular(hit, step) {
		return fmt.Sprintf("only every %s index from %d on %s%s", ordinal(step), first, of, seam(hit, n))
	}
	if len(hit) <= 6 && 2*len(hit) <= n {
		return fmt.Sprintf("only indices %s %s%s", strings.Trim(strings.ReplaceAll(fmt.Sprint(hit), " ", ", "), "[]"), of, seam(hit, n))
	}
	return ""
}

// mostParts is in how many parts a dimension is thought to be split.
const mostParts = 16

// fewestSplit is how long a dimension is at least of which one index may tell that.
const fewestSplit = 6

// seam says where the parts of a dimension meet that is split evenly, where these are
// the indices that were hit: the longer parts come first, or the sizes are rounded down.
func seam(hit []int, n int) string {
	for parts := 2; parts <= min(mostParts, n/2); parts++ {
		if len(hit) != parts-1 || n < fewestSplit {
			continue
		}
		longerFirst, down := true, true
		ends := parts > 2
		for i, k := range hit {
			even := (i+1)*(n/parts) + min(i+1, n%parts)
			longerFirst, down = longerFirst && k == even, down && k == (i+1)*n/parts
			ends = ends && k == even-1
		}
		switch {
		case longerFirst || down:
			return fmt.Sprintf(", where a part of a split in %d begins", parts)
		case ends:
			return fmt.Sprintf(", where a part of a split in %d ends", parts)
		}
	}
	return ""
}

func regular(hit []int, step int) bool {
	for i := 1; i < len(hit); i++ {
		if hit[i]-hit[i-1] != step {
			return false
		}
	}
	return true
}

func ordinal(n int) string {
	if words := []string{2: "second", 3: "third"}; n < len(words) {
		return words[n]
	}
	return fmt.Sprintf("%dth", n)
}

// side is one end of a dimension.
type side struct {
	dim  int
	last bool
}

// mostAtBorder bounds the elements that are looked at one by one.
const mostAtBorder = 1 << 16

// sides are the ends of the dimensions that have an inside.
func (f *Field) sides() (out []side) {
	for d, n := range f.Shape {
		if n > 2 {
			out = append(out, side{d, false}, side{d, true})
		}
	}
	return out
}

// border says at which ends of dimensions all elements beyond the limit are, as
// few as tell it; "" where some are inside.
func (f *Field) border() string {
	all := f.sides()
	if len(all) < 2 || f.Over > mostAtBorder || !f.covered(all) {
		return ""
	}
	for i := 0; i < len(all); {
		if less := slices.Delete(slices.Clone(all), i, i+1); len(less) > 0 && f.covered(less) {
			all = less
		} else {
			i++
		}
	}
	if !slices.ContainsFunc(all, func(s side) bool { return s.dim != all[0].dim }) {
		return "" // along says it
	}
	var ends []string
	for _, s := range all {
		end := "first"
		if s.last {
			end = "last"
		}
		ends = append(ends, fmt.Sprintf("%s of dim %d", end, s.dim))
	}
	return "only at a border: " + strings.Join(ends, ", ")
}

// covered reports whether every element beyond the limit is at one of the sides.
func (f *Field) covered(sides []side) bool {
	index := make([]int, len(f.Shape))
	for i, r := range f.Ratio {
		if !(r > 1) {
			continue
		}
		copy(index, f.Index(i))
		if !slices.ContainsFunc(sides, func(s side) bool {
			return !s.last && index[s.dim] == 0 || s.last && index[s.dim] == f.Shape[s.dim]-1
		}) {
			return false
		}
	}
	return true
}
