package ops

import (
	"fmt"
	"slices"
	"strings"

	"plumb/op"
	"plumb/tensor"
)

// sharder is a rule for the SBP of a Def.
type sharder = func(a op.Args) []op.Sharding

// Reasons why nothing but Broadcast is legal.
const (
	createsAll   = "it has no tensor argument to split"
	drawsAll     = "its random stream numbers the elements of the whole result"
	dependsOnAll = "each result element depends on all elements in a way that is no sum"
)

// anyOf has the signatures of all rules.
func anyOf(rules ...sharder) sharder {
	return func(a op.Args) []op.Sharding {
		var all []op.Sharding
		for _, r := range rules {
			all = append(all, r(a)...)
		}
		return all
	}
}

// provided is a rule that holds on a condition.
func provided(cond func(a op.Args) bool, r sharder) sharder {
	return func(a op.Args) []op.Sharding {
		if !cond(a) {
			return nil
		}
		return r(a)
	}
}

// splits makes one signature: S along the axes of the arguments, out of the results.
func splits(axes map[string]int, out ...op.SBP) op.Sharding {
	s := op.Sharding{Args: map[string]op.SBP{}, Results: out}
	for name, axis := range axes {
		s.Args[name] = op.S(axis)
	}
	return s
}

// pointwise splits the broadcast shape of all tensor arguments along each
// axis; arguments of size 1 there, or without the axis, are B.
func pointwise(a op.Args) []op.Sharding {
	names, values := a.ArgNames(), a.AllValues()
	shape, err := broadcastShape(values...)
	if err != nil {
		return nil
	}
	var all []op.Sharding
	for axis, n := range shape {
		if n < 2 {
			continue
		}
		axes := map[string]int{}
		for i, v := range values {
			at := axis - (len(shape) - len(v.Shape()))
			if at >= 0 && v.Shape()[at] == n {
				axes[names[i]] = at
			}
		}
		all = append(all, splits(axes, op.S(axis)))
	}
	return all
}

// additive takes P of all the named arguments that are given, of differentiable
// dtypes, together to P: f(Σx, Σy) = Σf(x, y).
func additive(names ...string) sharder {
	return func(a op.Args) []op.Sharding {
		s := op.Sharding{Args: map[string]op.SBP{}, Results: []op.SBP{op.P}}
		for _, n := range names {
			v, tensor := a.Any(n).(op.Value)
			switch {
			case a.Any(n) == nil:
			case tensor && v.DType().IsDifferentiable():
				s.Args[n] = op.P
			default:
				return nil
			}
		}
		return []op.Sharding{s}
	}
}

// linear takes P of each of the named arguments alone to P.
func linear(names ...string) sharder {
	var rules []sharder
	for _, n := range names {
		rules = append(rules, additive(n))
	}
	return anyOf(rules...)
}

// linearly is pointwise, and linear in the input.
var linearly = anyOf(pointwise, linear("input"))

// reductionDims are the dimensions that dim names, all of them without dim.
func reductionDims(a op.Args) []int {
	n := len(a.Value("input").Shape())
	var dims []int
	if a.Sig.Index("dim") >= 0 {
		switch d := a.Any("dim").(type) {
		case int:
			dims = []int{d}
		case []int:
			dims = d
		}
	}
	dims, _ = wrapDims(dims, n)
	return dims
}

func keptDims(a op.Args) bool { return a.Sig.Index("keepdim") >= 0 && a.Bool("keepdim") }

// reduced splits the axes that a reduction keeps, in all results.
func reduced(a op.Args) []op.Sharding {
	dims, at := reductionDims(a), 0
	var all []op.Sharding
	for axis := range a.Value("input").Shape() {
		gone := slices.Contains(dims, axis)
		if !gone {
			all = append(all, splits(map[string]int{"input": axis}, op.S(at)))
		}
		if !gone || keptDims(a) {
			at++
		}
	}
	return all
}

// summed is reduced, with P for the axes that are summed over. (The extreme
// over a split axis would be a partial maximum, which the vocabulary lacks.)
func summing(a op.Args) []op.Sharding {
	all := reduced(a)
	for _, axis := range reductionDims(a) {
		all = append(all, splits(map[string]int{"input": axis}, op.P))
	}
	return all
}

// besides splits the named arguments, all of the same dimensions, along each
// axis that is not among dims.
func besides(dims func(a op.Args) []int, names ...string) sharder {
	return func(a op.Args) []op.Sharding {
		var all []op.Sharding
		for axis, n := range a.Value(names[0]).Shape() {
			if slices.Contains(dims(a), axis) {
				continue
			}
			axes := map[string]int{}
			for _, name := range names {
				if v := a.Value(name); v != nil && axis < len(v.Shape()) && v.Shape()[axis] == n {
					axes[name] = axis
				} else if v != nil {
					axes = nil
					break
				}
			}
			if axes != nil {
				all = append(all, splits(axes, op.S(axis)))
			}
		}
		return all
	}
}

// dimOfFirst is the dimension that dim names in the first tensor argument; all without one.
func dimOfFirst(a op.Args) []int {
	n := len(a.AllValues()[0].Shape())
	switch d := a.Any("dim").(type) {
	case int:
		w, _ := wrapDim(d, n)
		return []int{w}
	case []int:
		w, _ := wrapDims(d, n)
		return w
	}
	return allDims(n)
}

// alongOthers splits the named arguments along each axis but dim.
func alongOthers(names ...string) sharder { return besides(dimOfFirst, names...) }

// lastDims are the last n dimensions of the named tensor.
func lastDims(name string, n int) func(a op.Args) []int {
	return func(a op.Args) []int {
		d := len(a.Value(name).Shape())
		return allDims(d)[max(d-n, 0):]
	}
}

// mapped splits the input along each axis that the result has too: place
// returns, for each axis of the input, its axis in the result, or -1. The
// operator is linear.
func mapped(place func(a op.Args) []int) sharder {
	return anyOf(linear("input"), func(a op.Args) []op.Sharding {
		var all []op.Sharding
		for axis, to := range place(a) {
			if to >= 0 {
				all = append(all, splits(map[string]int{"input": axis}, op.S(to)))
			}
		}
		return all
	})
}

// insteadOf is a map for operators that put n dimensions in dim's place.
func insteadOf(dim func(a op.Args) int, n int) func(a op.Args) []int {
	return func(a op.Args) []int {
		places, d := allDims(len(a.Value("input").Shape())), dim(a)
		for axis := range places {
			switch {
			case axis == d:
				places[axis] = -1
			case axis > d:
				places[axis] += n - 1
			}
		}
		return places
	}
}

// viewed is a map for views whose rule keeps an axis: it is the axis of the
// result that has its stride, found on strides of which none is a sum of others.
func viewed(rule func(op.Args) (layout, error)) func(a op.Args) []int {
	return func(a op.Args) []int {
		v := a.Value("input")
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
func regrouped(out func(a op.Args) ([]int, error), sizes string, first func(a op.Args) int) sharder {
	return anyOf(linear("input"), func(a op.Args) []op.Sharding {
		shape, err := out(a)
		if err != nil {
			return nil
		}
		var all []op.Sharding
		for _, g := range groups(a.Value("input").Shape(), shape) {
			s := splits(map[string]int{"input": g.in}, op.S(g.out))
			s.Even = !g.alone
			if sizes != "" {
				if at := g.out - first(a); at >= 0 && at < len(a.Ints(sizes)) {
					s.Sizes = map[string]int{sizes: at}
				}
			}
			all = append(all, s)
		}
		return all
	})
}

// group is the first axes of two runs of axes with the same elements; alone
// when both are one axis.
type group struct {
	in, out int
	alone   bool
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
// adds those that it repeats not at all.
func repeatedAxes(out func(a op.Args) []int, sizes string) sharder {
	return anyOf(linear("input"), func(a op.Args) []op.Sharding {
		in, shape := a.Value("input").Shape(), out(a)
		var all []op.Sharding
		for i, n := range in {
			at := i + len(shape) - len(in)
			if n == shape[at] {
				s := splits(map[string]int{"input": i}, op.S(at))
				s.Sizes = map[string]int{sizes: at}
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
// "*" any number of axes, aligned at their ends. An argument of size 1 along a
// split axis is B, as it is broadcast. Arguments that are added to the sum are
// marked "+": with one, the operator has no P. Of the alternatives between
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
		stars := len(v.Shape()) - len(strings.ReplaceAll(pattern, "*", ""))
		if stars < 0 || stars > 0 && !strings.Contains(pattern, "*") {
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
		if c != '*' {
			labels = append(labels, string(c))
			continue
		}
		for i := stars; i > 0; i-- {
			labels = append(labels, fmt.Sprintf("*%d", i))
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
	absent := false
	for i, labels := range b.labels {
		at := slices.Index(labels, label)
		absent = absent || at < 0 && b.added[i]
		if at >= 0 && b.shapes[i][at] == size {
			s.Args[b.names[i]] = op.S(at)
		}
	}
	for _, r := range f.results {
		if at := slices.Index(spelled(r, b.stars), label); at >= 0 {
			s.Results = append(s.Results, op.S(at))
		} else {
			s.Results = append(s.Results, op.P)
			if absent {
				return s, false
			}
		}
	}
	return s, size > 1
}

// dimsOf returns the dimensions that an int or int[] argument names in the first tensor.
func dimsOf(names ...string) func(a op.Args) []int {
	return func(a op.Args) []int {
		var dims []int
		n := len(a.AllValues()[0].Shape())
		for _, name := range names {
			for _, d := range append(slices.Clone(a.Ints(name)), intsOf(a.Any(name))...) {
				w, _ := wrapDim(d, n)
				dims = append(dims, w)
			}
		}
		return dims
	}
}

func intsOf(v any) []int {
	if d, ok := v.(int); ok {
		return []int{d}
	}
	return nil
}

// ungrouped holds for a convolution of one group.
func ungrouped(a op.Args) bool { return a.Int("groups") == 1 }

// convolved are the rules of a convolution over n dimensions: the batch, and
// in a convolution of one group the channels; P of the channels that it sums
// over, unless there is a bias.
func convolved(n int, weight string) sharder {
	window := strings.Repeat(".", n)
	form := func(channels string) sharder {
		in, out, w := channels[:1], channels[1:2], channels[2:]
		return axes(fmt.Sprintf("input b%[2]s%[1]s, weight %[4]s%[1]s, +bias %[3]s -> b%[3]s%[1]s | input %[2]s%[1]s, weight %[4]s%[1]s, +bias %[3]s -> %[3]s%[1]s", window, in, out, w))
	}
	return anyOf(
		provided(ungrouped, form("io"+weight)),
		provided(func(a op.Args) bool { return !ungrouped(a) }, form("....")),
		additive("input", "bias"), additive("weight", "bias"),
	)
}

// planes splits all axes of the named tensors but the last n, the window's.
func planes(n int, names ...string) sharder {
	return besides(lastDims(names[0], n), names...)
}

// planesBy is planes over as many dimensions as the int[] argument has.
func planesBy(size string, names ...string) sharder {
	return func(a op.Args) []op.Sharding { return planes(len(a.Ints(size)), names...)(a) }
}

// multilinear takes P of one factor, together with all that is added, to P.
func multilinear(factors []string, added ...string) sharder {
	var rules []sharder
	for _, f := range factors {
		rules = append(rules, additive(append([]string{f}, added...)...))
	}
	return anyOf(rules...)
}
