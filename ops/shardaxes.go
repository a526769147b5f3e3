package ops

import (
	"fmt"
	"slices"
	"strings"

	"plumb/internal/arg"
	"plumb/op"
	"plumb/tensor"
)

// viewed is a map for views whose rule keeps an axis: it is the axis of the
// result that has its stride, found on strides of which none is a sum of others.
func viewed(rule func(op.Args) (layout, error)) func(a op.Args) []int {
	return func(a op.Args) []int {
		v := a.Value(arg.Input)
		l, err := rule(a)
		places := slices.Repeat([]int{-1}, len(v.Shape()))
		if err != nil {
			return places
		}
		strides := make([]int, len(v.Shape()))
		for i := range strides {
			strides[i] = 1 << (20 + i)
		}
		l, err = rule(withInput(a, dense{v, strides}))
		if err != nil {
			return places
		}
		for i, s := range strides {
			at := slices.Index(l.strides, s)
			if at >= 0 && l.shape[at] == v.Shape()[i] && v.Shape()[i] > 1 && !sharesStride(l.strides, s) {
				places[i] = at
			}
		}
		return places
	}
}

// unwindowed leaves out the axis over which windows slide: one window may have
// all of it, and is no axis of the input.
func unwindowed(place func(a op.Args) []int) func(a op.Args) []int {
	return func(a op.Args) []int {
		places := place(a)
		if d, err := wrapDim(a.Int(arg.Dimension), len(places)); err == nil && d < len(places) {
			places[d] = -1
		}
		return places
	}
}

// sharesStride reports whether a stride of the view is a proper sum with s in it.
func sharesStride(strides []int, s int) bool {
	n := 0
	for _, t := range strides {
		if t&s != 0 {
			n++
		}
	}
	return n != 1
}

// regrouped splits a reshaped input along each axis that is the outermost
// factor of a group of axes with the same elements in the result. The result
// sizes stand in the argument sizes from result axis first on, if there is one.
func regrouped(out func(a op.Args) ([]int, error), sizes op.IntsArg, first func(a op.Args) int) sharder {
	return anyOf(linear(arg.Input), func(a op.Args) []op.Sharding {
		shape, err := out(a)
		if err != nil {
			return nil
		}
		var all []op.Sharding
		for _, g := range groups(a.Value(arg.Input).Shape(), shape) {
			s := splits(map[op.TensorArg]int{arg.Input: g.in}, op.S(g.out))
			s.Even = !g.single
			if sizes != "" {
				if at := g.out - first(a); at >= 0 && at < len(a.Ints(sizes)) {
					s.Sizes = map[op.IntsArg]int{sizes: at}
				}
			}
			all = append(all, s)
		}
		return all
	})
}

// group is the first axes of two runs of axes with the same elements; single
// when both are one axis.
type group struct {
	in, out int
	single  bool
}

func groups(in, out []int) []group {
	if tensor.NumElements(in) == 0 {
		return nil
	}
	var all []group
	for i, j := nextAxis(in, 0), nextAxis(out, 0); i < len(in) && j < len(out); {
		g := group{i, j, in[i] == out[j]}
		n, m := in[i], out[j]
		i, j = nextAxis(in, i+1), nextAxis(out, j+1)
		for n != m {
			if n < m {
				n *= in[i]
				i = nextAxis(in, i+1)
			} else {
				m *= out[j]
				j = nextAxis(out, j+1)
			}
		}
		all = append(all, g)
	}
	return all
}

// nextAxis returns the first axis from i on whose size is not 1.
func nextAxis(shape []int, i int) int {
	for i < len(shape) && shape[i] == 1 {
		i++
	}
	return i
}

func fromFirst(op.Args) int { return 0 }

// repeatedAxes splits the axes of the input that an expansion does not repeat, and
// has no size for.
func repeatedAxes(sizes op.IntsArg) sharder {
	return anyOf(linear(arg.Input), func(a op.Args) []op.Sharding {
		in, shape := a.Value(arg.Input).Shape(), a.Ints(sizes)
		var all []op.Sharding
		for i, n := range in {
			at := i + len(shape) - len(in)
			if n == shape[at] || shape[at] == -1 {
				s := splits(map[op.TensorArg]int{arg.Input: i}, op.S(at))
				s.Sizes = map[op.IntsArg]int{sizes: at}
				all = append(all, s)
			}
		}
		return all
	})
}

// axes reads a rule that names the axes of arguments and results by letters:
//
//	input *mk, weight nk, +bias n -> *mn | input k, …
//
// Axes of one letter are split together; where a result lacks the letter it is
// P, for the operator sums over that axis. "." is an axis that is not split,
// "*" any number of axes, aligned at their ends, "~" the same but not split. An argument of size 1 along a
// split axis is B, as it is broadcast. Arguments that are added to the sum are
// marked "+": they are P where it is. Of the alternatives between
// bars the first holds whose arguments have the call's numbers of dimensions.
// "hx[]" stands for each tensor of a list.
func axes(text string) sharder {
	var forms []axisForm
	for _, alt := range strings.Split(text, "|") {
		forms = append(forms, parseAxisForm(alt))
	}
	return func(a op.Args) []op.Sharding {
		for _, f := range forms {
			if labels, ok := f.bind(a); ok {
				return f.shardings(labels)
			}
		}
		return nil
	}
}

// anyAxes removes what stands for any number of axes.
var anyAxes = strings.NewReplacer("*", "", "~", "")

type axisForm struct {
	args    map[string]string
	added   map[string]bool
	results []string
}

func parseAxisForm(text string) axisForm {
	left, right, ok := strings.Cut(text, "->")
	if !ok {
		panic(fmt.Sprintf("ops: axes %q lack an arrow", text))
	}
	f := axisForm{args: map[string]string{}, added: map[string]bool{}}
	for _, arg := range strings.Split(left, ",") {
		name, pattern, _ := strings.Cut(strings.TrimSpace(arg), " ")
		plain := strings.TrimPrefix(name, "+")
		f.args[plain], f.added[plain] = strings.TrimSpace(pattern), plain != name
	}
	for _, r := range strings.Split(right, ",") {
		f.results = append(f.results, strings.TrimSpace(r))
	}
	return f
}

// boundAxes are a call's arguments with a label for each axis.
type boundAxes struct {
	names  []string
	shapes [][]int
	labels [][]string
	added  []bool
	stars  int
}

func (f axisForm) bind(a op.Args) (boundAxes, bool) {
	var b boundAxes
	names := a.ArgNames()
	for i, v := range a.AllValues() {
		base, _, list := strings.Cut(names[i], "[")
		if list {
			base += "[]"
		}
		pattern, ok := f.args[base]
		if !ok {
			continue
		}
		stars := len(v.Shape()) - len(anyAxes.Replace(pattern))
		if stars < 0 || stars > 0 && !strings.ContainsAny(pattern, "*~") {
			return b, false
		}
		b.stars = max(b.stars, stars)
		b.names, b.shapes, b.added = append(b.names, names[i]), append(b.shapes, v.Shape()), append(b.added, f.added[base])
		b.labels = append(b.labels, spelled(pattern, stars))
	}
	return b, true
}

// spelled returns the label of each axis; those of a star count from its end.
func spelled(pattern string, stars int) []string {
	labels := []string{}
	for _, c := range pattern {
		switch c {
		case '*':
			for i := stars; i > 0; i-- {
				labels = append(labels, fmt.Sprintf("*%d", i))
			}
		case '~':
			labels = append(labels, slices.Repeat([]string{"."}, stars)...)
		default:
			labels = append(labels, string(c))
		}
	}
	return labels
}

func (f axisForm) shardings(b boundAxes) []op.Sharding {
	var all []op.Sharding
	seen := map[string]bool{".": true}
	for _, labels := range b.labels {
		for _, label := range labels {
			if !seen[label] {
				seen[label] = true
				if s, ok := f.along(b, label); ok {
					all = append(all, s)
				}
			}
		}
	}
	return all
}

func (f axisForm) along(b boundAxes, label string) (op.Sharding, bool) {
	size := 1
	for i, labels := range b.labels {
		if at := slices.Index(labels, label); at >= 0 && b.shapes[i][at] != 1 {
			size = b.shapes[i][at]
		}
	}
	s := op.Sharding{Args: map[string]op.SBP{}}
	var added []int
	for i, labels := range b.labels {
		at := slices.Index(labels, label)
		if at < 0 && b.added[i] {
			added = append(added, i)
		}
		if at >= 0 && b.shapes[i][at] == size {
			s.Args[b.names[i]] = op.S(at)
		}
	}
	summed := false
	for _, r := range f.results {
		if at := slices.Index(spelled(r, b.stars), label); at >= 0 {
			s.Results = append(s.Results, op.S(at))
		} else {
			s.Results, summed = append(s.Results, op.P), true
		}
	}
	for _, i := range added {
		if summed {
			s.Args[b.names[i]] = op.P
		}
	}
	return s, size > 1
}

// dimsOf returns the dimensions that an int or int[] argument names in the first tensor.
func dimsOf(names ...op.Handle) func(a op.Args) []int {
	return func(a op.Args) []int {
		var dims []int
		n := len(a.AllValues()[0].Shape())
		for _, name := range names {
			for _, d := range intsOf(a.Any(name)) {
				w, _ := wrapDim(d, n)
				dims = append(dims, w)
			}
		}
		return dims
	}
}

// intsOf returns an int or int[] argument as a list.
func intsOf(v any) []int {
	if d, ok := v.(int); ok {
		return []int{d}
	}
	ds, _ := v.([]int)
	return ds
}

// ungrouped holds for a convolution of one group.
func ungrouped(a op.Args) bool { return a.Int(arg.Groups) == 1 }
