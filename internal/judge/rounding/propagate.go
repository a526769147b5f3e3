package rounding

import (
	"math"
	"slices"
	"strings"

	"plumb/internal/eager"
	"plumb/op"
	"plumb/tensor"
)

// step is how far the operands of a sum of products are moved to see how far
// the sum moves: small beside 1, large beside the roundoff of float64.
const step = 0x1p-20

// comparisons are the operators whose results may be exact on inexact inputs.
var comparisons = []string{"eq", "ne", "gt", "ge", "lt", "le"}

// orderings are the operators whose results follow from the order of their elements.
var orderings = []string{"argsort", "argmax", "argmin"}

// classifications are the operators whose results are exact for all finite operands.
var classifications = []string{"isnan", "isinf", "isposinf", "isneginf", "isfinite", "isreal"}

// propagate returns the states of a call's results.
func (s *errorSession) propagate(call *op.Call, out []op.Value) []*state {
	if cancels(call) {
		return []*state{{integral: true}}
	}
	inexact, whole, unknown, functions := false, wholeScalars(call.Args), false, false
	for _, v := range call.Args.AllValues() {
		st := s.of(v)
		inexact = inexact || st.err != nil
		unknown = unknown || st.unknown
		functions = functions || st.functions
		whole = whole && (st.integral || !v.DType().IsDifferentiable())
	}
	var states []*state
	if !unknown {
		states = s.rule(call, out, inexact, whole)
	}
	if states == nil {
		states = make([]*state, len(out))
		for i := range states {
			states[i] = &state{unknown: true}
		}
	}
	for _, st := range states {
		st.functions = st.functions || functions || function(call.Def)
	}
	return states
}

// function reports whether an operator is a function that another
// implementation may write otherwise.
func function(d *op.Def) bool { return d.Magnitude == "" && d.Tol.Class != op.Exact }

// rule applies the first rule that fits the operator; nil when none does.
func (s *errorSession) rule(call *op.Call, out []op.Value, inexact, whole bool) []*state {
	d := call.Def
	exact := d.Tol.Class == op.Exact
	switch {
	case !inexact && (exact || !anyDifferentiable(out)):
		return repeat(&state{integral: whole}, len(out))
	case !anyDifferentiable(out):
		return s.certain(call)
	case d.Errors != nil:
		return s.errors(call, out)
	case d.Formula != nil:
		return s.formula(call, out)
	case exact && d.Traits.Has(op.Monotone):
		return s.monotone(call, out)
	case d.Magnitude != "" && !quotient(call):
		return s.products(call, inexact, whole)
	case d.Tol.Class == op.Pointwise || d.ScalarFunction() && (exact || d.Tol.ULP > 0):
		return s.elementwise(call, out, exact)
	}
	return nil
}

// cancels reports a finite value less itself, which is 0 whatever its error.
func cancels(call *op.Call) bool {
	if call.Def.ID() != "sub" {
		return false
	}
	x, y, alpha := call.Args.Value("input"), call.Args.Value("other"), call.Args.Scalar("alpha")
	if x == nil || y == nil || alpha.Float() != 1 {
		return false
	}
	a, b := tensorOf(x), tensorOf(y)
	return a.SharesStorage(b) && a.Offset() == b.Offset() && slices.Equal(a.Shape(), b.Shape()) && slices.Equal(a.Strides(), b.Strides()) &&
		below([]*tensor.Tensor{absolute(a)}, math.MaxFloat64)
}

// alone reports, for a sum or a difference of two tensors, which results have
// a term that is 0, without error, and so are the other term: nothing rounds.
func (s *errorSession) alone(call *op.Call, shape []int) func(i int) bool {
	none := func(int) bool { return false }
	if id := call.Def.ID(); id != "add" && id != "sub" || call.Args.Scalar("alpha").Float() != 1 {
		return none
	}
	var terms []*tensor.Tensor
	for _, v := range call.Args.AllValues() {
		t, err := tensorOf(v).Expand(shape...)
		if err != nil {
			return none
		}
		if s.of(v).err == nil {
			terms = append(terms, t)
		}
	}
	switch len(terms) {
	case 0:
		return none
	case 1:
		return zeroAt(terms[0])
	}
	x, y := zeroAt(terms[0]), zeroAt(terms[1])
	return func(i int) bool { return x(i) || y(i) }
}

// zeroAt tells which elements are 0.
func zeroAt(t *tensor.Tensor) func(i int) bool {
	if t.DType() != tensor.F64 {
		return func(i int) bool { return t.At(i) == 0 }
	}
	data := reals(t)
	return func(i int) bool { return data[i] == 0 }
}

func repeat(st *state, n int) []*state {
	return slices.Repeat([]*state{st}, n)
}

func anyDifferentiable(vs []op.Value) bool {
	return slices.ContainsFunc(vs, func(v op.Value) bool { return v.DType().IsDifferentiable() })
}

// quotient reports a division of tensors, which is no sum of products.
func quotient(call *op.Call) bool {
	return call.Def.ID() == "div" && call.Args.Value("other") != nil
}

func wholeScalars(a op.Args) bool {
	for _, v := range a.Vals {
		if sc, ok := v.(op.Scalar); ok && sc.Float() != math.Trunc(sc.Float()) {
			return false
		}
	}
	return true
}

// certain tells whether a comparison comes out the same however its inexact
// operands were rounded.
func (s *errorSession) certain(call *op.Call) []*state {
	name, _, _ := strings.Cut(call.Def.ID(), ".")
	if slices.Contains(classifications, name) && s.finite(call) || slices.Contains(orderings, name) && s.ordered(call) {
		return []*state{{integral: true}}
	}
	if !slices.Contains(comparisons, name) || len(call.Args.AllValues()) == 0 {
		return nil
	}
	b := op.Builder{Applier: eager.New(s.table)}
	ok := false
	err := op.Catch(func() {
		var side, slack [2]any
		for i, n := range []string{"input", "other"} {
			side[i], slack[i] = call.Args.Any(n), 0.0
			if v := call.Args.Value(n); v != nil {
				side[i] = tensorOf(v)
				if e := s.of(v).err; e != nil {
					slack[i] = e
				}
			}
		}
		distance := b.Op("abs", b.Op("sub", side[0], side[1]))
		room := b.Mul(b.Add(b.Mul(b.Op("zeros_like", distance), 0.0), slack[0]), 4*s.unit)
		room = b.Add(room, b.Mul(b.Add(b.Op("zeros_like", distance), slack[1]), 4*s.unit))
		ok = everyAbove(tensorOf(distance), tensorOf(room))
	})
	if err != nil || !ok {
		return nil
	}
	return []*state{{integral: true}}
}

// finite reports whether the operands are finite, roundings included.
func (s *errorSession) finite(call *op.Call) bool {
	for _, v := range call.Args.AllValues() {
		if !below([]*tensor.Tensor{absolute(tensorOf(v))}, 0x1p126) {
			return false
		}
	}
	return true
}

func everyAbove(distance, room *tensor.Tensor) bool {
	for i := range distance.Len() {
		if r := real(room.At(i)); r != 0 && !(real(distance.At(i)) > r) {
			return false
		}
	}
	return true
}

// monotone bounds operators that select elements and whose results move with
// their operands: the results lie between those for operands that all lie as
// low, and as high, as their errors allow. Indices hold where the order of the
// elements does.
func (s *errorSession) monotone(call *op.Call, out []op.Value) []*state {
	low, errLow := s.shifted(call, -1)
	high, errHigh := s.shifted(call, 1)
	if errLow != nil || errHigh != nil {
		return nil
	}
	ordered := s.ordered(call)
	return each(len(out), func(i int) *state {
		y := tensorOf(out[i])
		switch {
		case y.DType() == tensor.F64:
			return &state{err: spread(y, low[i], high[i], s.unit)}
		case ordered:
			return &state{integral: true}
		}
		return &state{unknown: true}
	})
}

// shifted computes the call with every operand moved by its error, in the
// direction of sign.
func (s *errorSession) shifted(call *op.Call, sign float64) ([]*tensor.Tensor, error) {
	args := call.Args.MapValues(func(v op.Value) op.Value {
		x, e := tensorOf(v), s.of(v).err
		if e == nil {
			return x
		}
		x = x.Clone()
		for i := range x.Len() {
			x.Set(i, x.At(i)+complex(sign*s.unit*e.Float(i), 0))
		}
		return x
	})
	return (&op.Call{Def: call.Def, Args: args}).Execute()
}

// spread returns how far y lies from low and high, in units of the roundoff,
// with what float64 itself rounds.
func spread(y, low, high *tensor.Tensor, unit float64) *tensor.Tensor {
	err := tensor.New(tensor.F64, y.Shape()...)
	data, values, lows, highs := tensor.Data[float64](err), reals(y), reals(low), reals(high)
	for i, v := range values {
		if d := max(v-lows[i], highs[i]-v); d > 0 {
			data[i] = (d + 0x1p-52*math.Abs(v)) / unit
		}
	}
	return err
}

// ordered reports whether no two elements of an operand could change places
// by their errors.
func (s *errorSession) ordered(call *op.Call) bool {
	for _, v := range call.Args.AllValues() {
		e := s.of(v).err
		if e == nil {
			continue
		}
		x, room := slices.Clone(reals(tensorOf(v))), 8*s.unit*largest(e)
		slices.Sort(x)
		for i := range x[:max(len(x)-1, 0)] {
			if !(x[i+1]-x[i] > room) {
				return false
			}
		}
	}
	return true
}

// formula computes the results a second time by the operator's formula.
func (s *errorSession) formula(call *op.Call, out []op.Value) []*state {
	silent := s.silent
	defer func() { s.silent = silent }()
	s.silent = true
	var states []*state
	err := op.Catch(func() {
		for _, v := range call.Def.Formula(s.Builder(), call.Args) {
			states = append(states, s.of(v))
		}
	})
	if err != nil || len(states) != len(out) {
		return nil
	}
	for i, st := range states {
		if st.err != nil && !slices.Equal(st.err.Shape(), out[i].Shape()) {
			return nil
		}
	}
	return states
}

// errors has the operator itself bound the errors of its results.
func (s *errorSession) errors(call *op.Call, out []op.Value) []*state {
	r := &op.Rounding{
		Args:     call.Args.MapValues(func(v op.Value) op.Value { return tensorOf(v) }),
		Unit:     s.unit,
		Error:    func(arg string) *tensor.Tensor { return s.of(call.Args.Value(arg)).err },
		Integral: func(arg string) bool { st := s.of(call.Args.Value(arg)); return st.integral && st.err == nil },
		Sum:      s.sumRoundings,
		ULP:      func(limit float64) float64 { return max(1, s.limit(limit)) },
	}
	for _, v := range out {
		r.Out = append(r.Out, tensorOf(v))
	}
	errs, ok := call.Def.Errors(r)
	if !ok {
		return nil
	}
	return each(len(errs), func(i int) *state { return &state{err: errs[i], integral: errs[i] == nil} })
}

// products bounds sums of products: the roundings of the sum, and what the
// errors of its operands become in it.
func (s *errorSession) products(call *op.Call, inexact, whole bool) []*state {
	exact := call.Def.Tol.Class == op.Exact
	if exact {
		return s.moved(call)
	}
	terms, err := s.apply(call, func(v op.Value) *tensor.Tensor { return absolute(tensorOf(v)) })
	if err != nil {
		return nil
	}
	count := s.roundings(call)
	summed := func(i int) *state { return &state{terms: terms[i], count: count} }
	if !inexact && whole && !call.Def.Tol.Fractional && !strings.HasPrefix(call.Def.ID(), "mean") && call.Def.ID() != "div" && below(terms, 1/s.unit) {
		return each(len(terms), func(i int) *state { st := summed(i); st.integral = true; return st })
	}
	moved := terms
	if inexact {
		moved, err = s.apply(call, func(v op.Value) *tensor.Tensor {
			x := absolute(tensorOf(v))
			if e := s.of(v).err; e != nil {
				addScaled(x, e, step)
			}
			return x
		})
		if err != nil {
			return nil
		}
	}
	return each(len(terms), func(i int) *state {
		st := summed(i)
		st.err = tensor.New(tensor.F64, terms[i].Shape()...)
		e, m, t := tensor.Data[float64](st.err), tensor.Data[float64](moved[i]), tensor.Data[float64](terms[i])
		alone := s.alone(call, terms[i].Shape())
		for j := range e {
			if math.IsInf(t[j], 1) { // an infinite term leaves nothing to round
				continue
			}
			e[j] = max(m[j]-t[j], 0) / step
			if !alone(j) {
				e[j] += count * t[j]
			}
		}
		return st
	})
}

func each(n int, f func(i int) *state) []*state {
	states := make([]*state, n)
	for i := range states {
		states[i] = f(i)
	}
	return states
}

// moved carries the errors along with elements that are moved, not computed.
func (s *errorSession) moved(call *op.Call) []*state {
	errs, err := s.apply(call, func(v op.Value) *tensor.Tensor {
		if e := s.of(v).err; e != nil {
			return e
		}
		return tensor.New(tensor.F64, v.Shape()...)
	})
	if err != nil {
		return nil
	}
	return each(len(errs), func(i int) *state {
		if errs[i].DType() != tensor.F64 {
			return &state{unknown: true}
		}
		return &state{err: errs[i]}
	})
}

// roundings counts those of one result element.
func (s *errorSession) roundings(call *op.Call) float64 {
	k := max(1, s.limit(call.Def.Tol.ULP))
	if tol := call.Def.Tol; tol.Class == op.Accumulating {
		terms := 1
		if tol.Terms != nil {
			terms = tol.Terms(call.Args)
		}
		k = s.sumRoundings(terms)
	}
	for _, v := range call.Args.AllValues() {
		if v.DType().IsComplex() {
			return 2 * k
		}
	}
	return k
}

// sumRoundings counts those of a sum.
func (s *errorSession) sumRoundings(terms int) float64 {
	k := float64(max(terms, 1))
	k = min(k, 2*math.Sqrt(k))
	if s.half() {
		k *= 0x1p-24 / s.unit
	}
	return k + 1
}

// half reports whether the program computes in a half dtype, whose sums and
// functions are computed in float32 and rounded once.
func (s *errorSession) half() bool { return s.unit > 0x1p-12 }

// limit is an operator's limit in units in the last place.
func (s *errorSession) limit(ulp float64) float64 {
	if s.half() {
		return min(ulp, 2)
	}
	return ulp
}

// apply computes the call's magnitude operator on other tensors in place of
// its floating-point ones, numbers replaced by their absolute values. The
// results are contiguous.
func (s *errorSession) apply(call *op.Call, of func(op.Value) *tensor.Tensor) ([]*tensor.Tensor, error) {
	def := s.table.Def(call.Def.Magnitude)
	replaced := call.Args.MapValues(func(v op.Value) op.Value {
		switch d := v.DType(); {
		case d.IsDifferentiable():
			return of(v)
		case call.Def.ScalarFunction() && d != tensor.Bool: // a number, no index
			return absolute(tensorOf(v))
		}
		return tensorOf(v)
	})
	for i, v := range replaced.Vals {
		if sc, ok := v.(op.Scalar); ok {
			c := sc.Complex()
			replaced.Vals[i] = op.ScalarOf(math.Hypot(real(c), imag(c)))
		}
	}
	abs := &op.Call{Def: def, Args: replaced}
	if def != call.Def {
		var err error
		if abs, err = s.table.ResolveID(def.ID(), nil, shared(def, replaced)); err != nil {
			return nil, err
		}
	}
	out, err := abs.Execute()
	for i := range out {
		out[i] = out[i].Contiguous()
	}
	return out, err
}

// shared returns the arguments that def has a parameter for.
func shared(def *op.Def, a op.Args) []op.Kwarg {
	var kwargs []op.Kwarg
	for i, p := range a.Sig.Params {
		if v := a.Vals[i]; v != nil && def.Sigs()[0].Index(p.Name) >= 0 {
			kwargs = append(kwargs, op.Kw(p.Name, v))
		}
	}
	return kwargs
}

// elementwise bounds a function of elements: its own roundings, and the errors
// of its operands times its derivatives there.
func (s *errorSession) elementwise(call *op.Call, out []op.Value, exact bool) []*state {
	if len(out) != 1 {
		return nil
	}
	y := tensorOf(out[0])
	err := absolute(y)
	e, k := tensor.Data[float64](err), s.roundings(call)
	if exact {
		k = 0
	}
	for i := range e {
		e[i] *= k
	}
	if exact && !s.continuous(call) {
		return nil
	}
	slopes, ok := s.slopes(call, y.Shape())
	if !ok {
		return nil
	}
	for _, sl := range slopes {
		from := tensor.Data[float64](sl.err)
		for i, d := range tensor.Data[float64](sl.slope) {
			if exact {
				d = max(d, 1) // it may be 0 at a kink
			}
			if from[i] != 0 {
				e[i] += d * from[i]
			}
		}
	}
	return []*state{{err: err}}
}

// continuous reports whether the results move no farther than the operands
// do when these move by their errors: whether no jump is that near.
func (s *errorSession) continuous(call *op.Call) bool {
	reach := 0.0
	for _, v := range call.Args.AllValues() {
		if e := s.of(v).err; e != nil {
			reach = max(reach, s.unit*largest(e))
		}
	}
	low, errLow := s.shifted(call, -1)
	high, errHigh := s.shifted(call, 1)
	if errLow != nil || errHigh != nil {
		return false
	}
	for i := range low[0].Len() {
		a, b := low[0].At(i), high[0].At(i)
		if !(math.Hypot(real(a)-real(b), imag(a)-imag(b)) <= 4*reach+0x1p-50*math.Hypot(real(a), imag(a))) {
			return false
		}
	}
	return true
}

// slope is |∂f/∂x| beside the error of x, element by element of the result.
type slope struct{ slope, err *tensor.Tensor }

// slopes differentiates the call by its own gradient rule; it fails for
// functions that jump.
func (s *errorSession) slopes(call *op.Call, shape []int) ([]slope, bool) {
	session := eager.New(s.table)
	leaves := map[op.Value]*eager.Var{}
	var errs []op.Value
	args := call.Args.MapValues(func(v op.Value) op.Value {
		if !v.DType().IsDifferentiable() || s.of(v).err == nil {
			return tensorOf(v)
		}
		if leaves[v] == nil {
			x, err := tensorOf(v).Expand(shape...)
			if err != nil {
				return tensorOf(v)
			}
			leaves[v] = session.Leaf(x.Contiguous(), true)
			errs = append(errs, v)
		}
		return leaves[v]
	})
	if len(errs) == 0 {
		return nil, true
	}
	out, err := session.Execute(&op.Call{Def: call.Def, Args: args})
	if err != nil || !eager.RequiresGrad(out[0]) {
		return nil, false
	}
	ones := tensor.New(out[0].DType(), shape...)
	for i := range ones.Len() {
		ones.Set(i, 1)
	}
	cot, err := session.Backward(out[:1], []op.Value{session.Leaf(ones, false)}, false)
	if err != nil {
		return nil, false
	}
	var list []slope
	for _, v := range errs {
		g, ok := cot[leaves[v]]
		e, err := s.of(v).err.Expand(shape...)
		if !ok || err != nil {
			return nil, false
		}
		list = append(list, slope{absolute(tensorOf(g)), e.Contiguous()})
	}
	return list, true
}

// reals returns the elements of real numbers in order.
func reals(t *tensor.Tensor) []float64 {
	if t.DType() != tensor.F64 {
		t = t.Convert(tensor.F64)
	}
	return tensor.Data[float64](t.Contiguous())[:t.Len()]
}

// absolute returns |t| in float64, contiguous.
func absolute(t *tensor.Tensor) *tensor.Tensor {
	m := tensor.New(tensor.F64, t.Shape()...)
	data := tensor.Data[float64](m)
	if t.DType() == tensor.F64 {
		for i, v := range reals(t) {
			data[i] = math.Abs(v)
		}
		return m
	}
	for i := range data {
		v := t.At(i)
		data[i] = math.Hypot(real(v), imag(v))
	}
	return m
}

func largest(e *tensor.Tensor) float64 {
	m := 0.0
	for _, v := range reals(e) {
		m = max(m, v)
	}
	return m
}

func addScaled(x, e *tensor.Tensor, by float64) {
	data, errs := tensor.Data[float64](x)[:x.Len()], reals(e)
	for i := range data {
		data[i] += by * errs[i]
	}
}

func below(ts []*tensor.Tensor, limit float64) bool {
	for _, t := range ts {
		if slices.ContainsFunc(tensor.Data[float64](t)[:t.Len()], func(m float64) bool { return !(m <= limit) }) {
			return false
		}
	}
	return true
}
