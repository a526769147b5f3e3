package gen

import (
	"fmt"
	"slices"
	"strings"

	"plumb/tensor"
)

// Layout is a way in which a drawn tensor lies in memory. One that its shape
// cannot have leaves it contiguous.
type Layout string

// The layouts.
const (
	Contiguous   Layout = "contiguous"
	Strided      Layout = "strided"       // every second element of a contiguous tensor
	Transposed   Layout = "transposed"    // two dimensions are exchanged; from two dimensions on
	Expanded     Layout = "expanded"      // one dimension repeats: its stride is 0
	ChannelsLast Layout = "channels_last" // of four and five dimensions
)

// Layouts lists every layout, the simplest first.
var Layouts = []Layout{Contiguous, Strided, Transposed, Expanded, ChannelsLast}

// ParseLayout returns the layouts of a name: one, or for "non-contiguous" the
// strided and the transposed.
func ParseLayout(name string) ([]Layout, error) {
	plain := strings.ReplaceAll(name, "-", "_")
	switch {
	case plain == "non_contiguous" || plain == "noncontiguous":
		return []Layout{Strided, Transposed}, nil
	case slices.Contains(Layouts, Layout(plain)):
		return []Layout{Layout(plain)}, nil
	}
	return nil, fmt.Errorf("%q is no layout; there are contiguous, strided, transposed, non-contiguous, expanded, channels_last", name)
}

// draw returns the strides of one of the layouts; nil for contiguous.
func drawLayout(c *Case, layouts []Layout, shape []int) []int {
	if len(layouts) == 0 {
		return nil
	}
	l := layouts[0]
	if len(layouts) > 1 {
		l = layouts[c.Index(len(layouts))]
	}
	strides := l.strides(c, shape)
	if strides == nil || tensor.Contiguous.Matches(shape, strides) {
		return nil
	}
	return strides
}

func (l Layout) strides(c *Case, shape []int) []int {
	n := len(shape)
	switch {
	case l == Strided && n >= 1:
		return tensor.SpacedStrides(shape, 2)
	case l == Transposed && n >= 2:
		order := make([]int, n)
		for i := range order {
			order[i] = i
		}
		a := c.Index(n - 1)
		b := a + 1 + c.Index(n-1-a)
		order[a], order[b] = order[b], order[a]
		return tensor.PermutedStrides(shape, order)
	case l == Expanded && n >= 1:
		d := c.Index(n)
		once := slices.Clone(shape)
		once[d] = 1
		strides := tensor.ContiguousStrides(once)
		strides[d] = 0
		return strides
	case l == ChannelsLast && (n == 4 || n == 5):
		return tensor.ChannelsLast.Strides(shape)
	}
	return nil
}
