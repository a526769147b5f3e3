package ops

import (
	"fmt"
	"slices"
	"strings"

	"plumb/internal/arg"
	"plumb/op"
	"plumb/tensor"
)

// sharder is a rule for the SBP of a Def.
type sharder = func(a op.Args) []op.Sharding

// Reasons why nothing but Broadcast is legal.
const (
	createsAll   = "it is made from its attributes, which hold the whole shape"
	drawsAll     = "its random stream numbers the elements of the whole result"
	dependsOnAll = "its results depend on all elements in a way that is no sum"
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
func splits[N ~string](axes map[N]int, out ...op.SBP) op.Sharding {
	s := op.Sharding{Args: map[string]op.SBP{}, Results: out}
	for name, axis := range axes {
		s.Args[string(name)] = op.S(axis)
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
func additive(names ...op.Handle) sharder {
	return func(a op.Args) []op.Sharding {
		if truncates(a) {
			return nil
		}
		s := op.Sharding{Args: map[string]op.SBP{}, Results: []op.SBP{op.P}}
		for _, n := range names {
			v, tensor := a.Any(n).(op.Value)
			switch {
			case a.Any(n) == nil:
			case tensor && v.DType().IsDifferentiable():
				s.Args[n.Name()] = op.P
			default:
				return nil
			}
		}
		return []op.Sharding{s}
	}
}

// truncates reports whether a call asks for a dtype that loses fractions.
func truncates(a op.Args) bool {
	return a.Sig.Takes(arg.DType) && a.Has(arg.DType) && !a.DType(arg.DType).IsDifferentiable()
}

// linear takes P of each of the named arguments alone to P.
func linear(names ...op.Handle) sharder {
	var rules []sharder
	for _, n := range names {
		rules = append(rules, additive(n))
	}
	return anyOf(rules...)
}

// linearly is pointwise, and linear in the input.
var linearly = anyOf(pointwise, linear(arg.Input))

// reductionDims are the dimensions that dim names, all of them without dim.
func reductionDims(a op.Args) []int {
	n := len(a.Value(arg.Input).Shape())
	var dims []int
	if a.Sig.Takes(arg.Dim) {
		switch d := a.Any(arg.Dim).(type) {
		case int:
			dims = []int{d}
		case []int:
			dims = d
		}
	}
	dims, _ = wrapDims(dims, n)
	return dims
}

func keptDims(a op.Args) bool { return a.Sig.Takes(arg.Keepdim) && a.Bool(arg.Keepdim) }

// reduced splits the axes that a reduction keeps, in all results.
func reduced(a op.Args) []op.Sharding {
	dims, at := reductionDims(a), 0
	var all []op.Sharding
	for axis := range a.Value(arg.Input).Shape() {
		gone := slices.Contains(dims, axis)
		if !gone {
			all = append(all, splits(map[op.TensorArg]int{arg.Input: axis}, op.S(at)))
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
		all = append(all, splits(map[op.TensorArg]int{arg.Input: axis}, op.P))
	}
	return all
}

// besides splits the named arguments, all of the same dimensions, along each
// axis that is not among dims.
func besides(dims func(a op.Args) []int, names ...op.TensorArg) sharder {
	return func(a op.Args) []op.Sharding {
		var all []op.Sharding
		for axis, n := range a.Value(names[0]).Shape() {
			if slices.Contains(dims(a), axis) {
				continue
			}
			axes := map[op.TensorArg]int{}
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
	switch d := a.Any(arg.Dim).(type) {
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
func alongOthers(names ...op.TensorArg) sharder { return besides(dimOfFirst, names...) }

// lastDims are the last n dimensions of the named tensor.
func lastDims(name op.TensorArg, n int) func(a op.Args) []int {
	return func(a op.Args) []int {
		d := len(a.Value(name).Shape())
		return allDims(d)[max(d-n, 0):]
	}
}

// mapped splits the input along each axis that the result has too: place
// returns, for each axis of the input, its axis in the result, or -1. The
// operator is linear.
func mapped(place func(a op.Args) []int) sharder {
	return anyOf(linear(arg.Input), func(a op.Args) []op.Sharding {
		var all []op.Sharding
		for axis, to := range place(a) {
			if to >= 0 {
				all = append(all, splits(map[op.TensorArg]int{arg.Input: axis}, op.S(to)))
			}
		}
		return all
	})
}

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
		additive(arg.Input, arg.Bias), additive(arg.Weight, arg.Bias),
	)
}

// planes splits all axes of the named tensors but the last n, the window's.
func planes(n int, names ...op.TensorArg) sharder {
	return besides(lastDims(names[0], n), names...)
}

// planesBy is planes over as many dimensions as the int[] argument has.
func planesBy(size op.IntsArg, names ...op.TensorArg) sharder {
	return func(a op.Args) []op.Sharding { return planes(len(a.Ints(size)), names...)(a) }
}

// multilinear takes P of one factor, together with all that is added, to P.
func multilinear(factors []op.Handle, added ...op.Handle) sharder {
	var rules []sharder
	for _, f := range factors {
		rules = append(rules, additive(append([]op.Handle{f}, added...)...))
	}
	return anyOf(rules...)
}

// bilinearConv splits the parts of a convolution: axes for the batch and the
// channels, which the window's follow.
func bilinearConv(text string) sharder {
	return func(a op.Args) []op.Sharding {
		if !ungrouped(a) {
			text = strings.NewReplacer("ni", "n.", "no", "n.", "oi", "..").Replace(text)
		}
		window := strings.Repeat(".", len(a.Ints(arg.Stride)))
		return axes(strings.ReplaceAll(strings.ReplaceAll(text, ",", window+","), " ->", window+" ->") + window)(a)
	}
}

// embedded splits the row numbers, and the columns of the table. A split of
// its rows would need the numbers masked.
func embedded(index op.TensorArg) sharder {
	return provided(func(a op.Args) bool { return !a.Sig.Takes(arg.MaxNorm) || !a.Has(arg.MaxNorm) },
		anyOf(linear(arg.Weight), axes(string(index)+" *, weight .d -> *d")))
}

// selectedRows splits the index of a selection along dim.
func selectedRows(index op.TensorArg) sharder {
	return func(a op.Args) []op.Sharding {
		if len(a.Value(index).Shape()) != 1 || len(a.Value(arg.Input).Shape()) == 0 {
			return nil
		}
		return []op.Sharding{splits(map[op.TensorArg]int{index: 0}, op.S(dimOf(a)))}
	}
}

// perChannel splits the channels of an input and of its statistics and
// weights; the batch and the window too where free says that no statistics of
// theirs are taken.
func perChannel(form, whole string, free func(a op.Args) bool) sharder {
	const rest = ", running_mean c, running_var c, weight c, bias c -> "
	split, kept := axes("input "+form+rest+form), axes("input "+whole+rest+whole)
	return func(a op.Args) []op.Sharding {
		if free(a) {
			return split(a)
		}
		return kept(a)
	}
}

// besidesNormalised splits what a normalisation over the last dimensions leaves apart.
func besidesNormalised(names ...op.TensorArg) sharder {
	return func(a op.Args) []op.Sharding { return planes(len(a.Ints(arg.NormalizedShape)), names...)(a) }
}

// normalisedBackward has P for the gradients of weight and bias.
func normalisedBackward(a op.Args) []op.Sharding {
	all := besidesNormalised(arg.Grad, arg.Input)(a)
	for i := range all {
		all[i].Results = append(all[i].Results, op.P, op.P)
	}
	return all
}

// softmaxed splits all axes but that of the softmax.
func softmaxed(a op.Args) []op.Sharding {
	d, _ := softmaxDim(a)
	return besides(func(op.Args) []int { return []int{d} }, arg.Input)(a)
}

// padded splits the axes that are not padded.
func padded(a op.Args) []op.Sharding {
	n, pad := len(a.Value(arg.Input).Shape()), a.Ints(arg.Pad)
	var dims []int
	for i := 0; i+1 < len(pad); i += 2 {
		if pad[i] != 0 || pad[i+1] != 0 {
			dims = append(dims, n-1-i/2)
		}
	}
	return besides(func(op.Args) []int { return dims }, arg.Input)(a)
}

// padsZeros reports whether a padding is linear.
func padsZeros(a op.Args) bool {
	return a.Str(arg.Mode) != "constant" || a.Scalar(arg.Value).Complex() == 0
}

// squeezedAxes splits axes other than dim. Without dim nothing is legal: a
// piece may have size 1 where the whole has not, and lose the axis.
func squeezedAxes(a op.Args) []op.Sharding {
	if !a.Has(arg.Dim) {
		return nil
	}
	places := viewed(squeezed)(a)
	dims, _ := squeezedDims(a)
	for _, d := range dims {
		if d < len(places) {
			places[d] = -1
		}
	}
	return mapped(func(op.Args) []int { return places })(a)
}

// converted is pointwise, and linear where the elements become floats.
func converted(a op.Args) []op.Sharding {
	to := a.DType(arg.DType)
	if other := a.Value(arg.Other); to == tensor.Invalid && other != nil {
		to = other.DType()
	}
	all := axes("input * -> *")(a)
	if to == tensor.Invalid || to.IsDifferentiable() {
		all = append(all, linear(arg.Input)(a)...)
	}
	return all
}

// productAxes is the rule of x @ y added to an input that is broadcast to out.
func productAxes(x, y, out string) sharder {
	var forms []string
	for i := range len(out) + 1 {
		forms = append(forms, fmt.Sprintf("+input %s, %s, %s -> %s", out[i:], x, y, out))
	}
	return axes(strings.Join(forms, " | "))
}

// concatenated splits the axes along which tensors are not joined.
func concatenated(a op.Args) []op.Sharding {
	names, dim := a.ArgNames(), catDim(a)
	partial := op.Sharding{Args: map[string]op.SBP{}, Results: []op.SBP{op.P}}
	for i, v := range a.Values(arg.Tensors) {
		partial.Args[names[i]] = op.P
		if !v.DType().IsDifferentiable() {
			partial.Args = nil
			break
		}
	}
	var all []op.Sharding
	if partial.Args != nil {
		all = append(all, partial)
	}
	for axis := range catParts(a)[0].Shape() {
		axes := map[string]int{}
		for i, v := range a.Values(arg.Tensors) {
			if !skipped(v) {
				axes[names[i]] = axis
			}
		}
		if axis != dim {
			all = append(all, splits(axes, op.S(axis)))
		}
	}
	return all
}

// scatteredDiagonal splits the axes that are not the diagonal's; it is src's last.
func scatteredDiagonal(a op.Args) []op.Sharding {
	diagonal, at := dimsOf(arg.Dim1, arg.Dim2)(a), 0
	var all []op.Sharding
	for axis := range a.Value(arg.Input).Shape() {
		if !slices.Contains(diagonal, axis) {
			all = append(all, splits(map[op.TensorArg]int{arg.Input: axis, arg.Src: at}, op.S(axis)))
			at++
		}
	}
	return all
}

// gridOfBatch splits the batch, whose size stands in the argument size.
func gridOfBatch(op.Args) []op.Sharding {
	s := splits(map[op.TensorArg]int{arg.Theta: 0}, op.S(0))
	s.Sizes = map[op.IntsArg]int{arg.Size: 0}
	return []op.Sharding{s}
}

// resampled splits batch and channels of images whose number of dimensions the
// attributes do not tell.
var resampled = anyOf(linear(arg.Input), axes("input nc~ -> nc~"))

// sampledGrid splits images by batch and channel, and grids by batch and position.
var sampledGrid = anyOf(linear(arg.Input), axes("input nc.., grid nhw. -> nchw | input nc..., grid ndhw. -> ncdhw"))

// chainProduct splits a chain of matrices by the rows of the first and the
// columns of the last, and has P for what two neighbours sum over. The
// product is linear in each.
func chainProduct(list op.TensorsArg) sharder {
	return func(a op.Args) []op.Sharding {
		vs, names := a.Values(list), a.ArgNames()
		last := len(vs) - 1
		rows, columns := len(vs[0].Shape()) == 2, len(vs[last].Shape()) == 2
		var all []op.Sharding
		if rows {
			all = append(all, splits(map[string]int{names[0]: 0}, op.S(0)))
		}
		if columns {
			out := 0
			if rows {
				out = 1
			}
			all = append(all, splits(map[string]int{names[last]: 1}, op.S(out)))
		}
		for i, name := range names {
			all = append(all, op.Sharding{Args: map[string]op.SBP{name: op.P}, Results: []op.SBP{op.P}})
			if i > 0 {
				inner := len(vs[i-1].Shape()) - 1
				all = append(all, splits(map[string]int{names[i-1]: inner, name: 0}, op.P))
			}
		}
		return all
	}
}

// diagonalEmbedded splits the axes of the input but its last, which becomes the diagonal.
func diagonalEmbedded(a op.Args) []op.Sharding {
	shape, d1, d2, err := embeddedShape(a)
	if err != nil {
		return nil
	}
	var all []op.Sharding
	axis := 0
	for at := range shape {
		if at != d1 && at != d2 {
			all = append(all, splits(map[op.TensorArg]int{arg.Input: axis}, op.S(at)))
			axis++
		}
	}
	return all
}

// unsqueezedPlaces moves the axes from dim on by one.
func unsqueezedPlaces(a op.Args) []int {
	places := allDims(len(a.Value(arg.Input).Shape()))
	d, _ := wrapDim(a.Int(arg.Dim), len(places)+1)
	for axis := range places {
		if axis >= d {
			places[axis]++
		}
	}
	return places
}

// reshapedAs is regrouped for a shape that is another tensor's, split like the result.
func reshapedAs(a op.Args) []op.Sharding {
	all := linear(arg.Input)(a)
	for _, g := range groups(a.Value(arg.Input).Shape(), a.Value(arg.Other).Shape()) {
		s := splits(map[op.TensorArg]int{arg.Input: g.in, arg.Other: g.out}, op.S(g.out))
		s.Even = !g.single
		all = append(all, s)
	}
	return all
}

// entriesOf splits an index along dim, where each of its entries chooses one
// of the whole input.
func entriesOf(index op.TensorArg) sharder {
	return provided(func(a op.Args) bool { return a.Has(arg.Dim) && len(a.Value(arg.Input).Shape()) > 0 },
		func(a op.Args) []op.Sharding {
			return []op.Sharding{splits(map[op.TensorArg]int{index: dimOf(a)}, op.S(dimOf(a)))}
		})
}

// addedAlong adds to a partial sum what each rank has of the named arguments,
// split along dim; an index of one dimension numbers it.
func addedAlong(index, src op.TensorArg) sharder {
	return provided(func(a op.Args) bool {
		return len(a.Value(arg.Input).Shape()) > 0 && a.Value(arg.Input).DType().IsDifferentiable()
	},
		func(a op.Args) []op.Sharding {
			at := min(dimOf(a), len(a.Value(index).Shape())-1)
			if at < 0 || len(a.Value(src).Shape()) == 0 || a.Value(index).Shape()[at] != a.Value(src).Shape()[dimOf(a)] {
				return nil
			}
			s := splits(map[op.TensorArg]int{index: at, src: dimOf(a)}, op.P)
			s.Args["input"] = op.P
			return []op.Sharding{s}
		})
}

// affinely takes P of weight and bias, which are linear where there is a weight.
var affinely = provided(func(a op.Args) bool { return a.Has(arg.Weight) }, additive(arg.Weight, arg.Bias))

// evenly demands that the ranks divide the split axes of a rule.
func evenly(r sharder) sharder {
	return func(a op.Args) []op.Sharding {
		all := r(a)
		for i := range all {
			all[i].Even = true
		}
		return all
	}
}

// gridded splits the vectors of a meshgrid, each along its axis of all results.
func gridded(a op.Args) []op.Sharding {
	var all []op.Sharding
	for i, name := range a.ArgNames() {
		if v := a.Values(arg.Tensors)[i]; len(v.Shape()) == 0 {
			continue
		}
		at := i
		if a.Str(arg.Indexing) == "xy" && i < 2 && len(a.ArgNames()) > 1 {
			at = 1 - i
		}
		all = append(all, splits(map[string]int{name: 0}, op.S(at)))
	}
	return all
}

// pooledEntries splits the window of a pooling's indices, each of which
// chooses one entry of the whole plane.
func pooledEntries(a op.Args) []op.Sharding {
	var all []op.Sharding
	n := len(a.Value(arg.Indices).Shape())
	for _, axis := range lastDims(arg.Indices, a.Int(arg.DimsInt))(a) {
		if axis < n {
			all = append(all, splits(map[op.TensorArg]int{arg.Indices: axis}, op.S(axis)))
		}
	}
	return all
}

// pooledSums has P for the window axes along which a plane's entries are summed.
func pooledSums(a op.Args) []op.Sharding {
	var all []op.Sharding
	for _, axis := range lastDims(arg.Grad, len(a.Ints(arg.Size)))(a) {
		all = append(all, splits(map[op.TensorArg]int{arg.Grad: axis, arg.Indices: axis}, op.P))
	}
	return all
}

// searched splits the values, and the sequences in which they are searched: a
// place is the sum of the places in the parts of a sequence.
func searched(a op.Args) []op.Sharding {
	if a.Has(arg.Sorter) {
		return axes("sorted_sequence ., sorter ., input * -> * | sorted_sequence *., sorter *., input *q -> *q")(a)
	}
	return axes("sorted_sequence s, input * -> * | sorted_sequence *s, input *q -> *q")(a)
}

// zeroElse takes P of the named choice to P where the other choice is the number 0.
func zeroElse(name, other op.Handle) sharder {
	return provided(func(a op.Args) bool {
		s, number := a.Any(other).(op.Scalar)
		return number && s.Complex() == 0
	}, linear(name))
}

// gradientOfWeighted has the gradient of the input linear in the weight, on
// which those of weight and bias do not depend.
func gradientOfWeighted(a op.Args) []op.Sharding {
	if !a.Has(arg.Weight) {
		return nil
	}
	return []op.Sharding{{Args: map[string]op.SBP{"weight": op.P}, Results: []op.SBP{op.P, op.B, op.B}}}
}
