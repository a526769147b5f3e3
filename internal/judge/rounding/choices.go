package rounding

import (
	"slices"

	"plumb/backend"
	"plumb/internal/judge/compare"
	"plumb/op"
	"plumb/tensor"
)

// Choice is a call that takes elements by their order: what it takes them from, as Lines of
// N elements each, and at which Places of its line, K for each. Inner lines lie beside each
// other: so far apart are the elements of one.
type Choice struct {
	Lines, N, K, Inner int
	// Errors bounds the rounding errors of Values, in units of Unit; nil for none.
	Values, Errors []float64
	Unit           float64
	// Places may be changed: the call then takes the elements there.
	Places []int
}

// Choosing returns the bounds of a program whose calls that take elements by their order take
// them where choose says; nil where what one chooses from has no bounds, or the program fails.
// What follows from a comparison or a jump that is near has the other side in its bounds, and
// near says that there is any.
func (a *Analysis) Choosing(job *backend.Job, gradients bool, choose func(*Choice)) (bounds *compare.Bounds, near bool) {
	s := newSession(a.table, roundoff(job))
	s.choose = choose
	out := a.run(s, job, gradients)
	if out.Status != backend.OK || s.unsure {
		return nil, false
	}
	return s.collect(job.Program, out), s.near
}

// placesOf is which result of an operator has places in its first argument, along a dimension
// or in all of it; -1 for none.
func placesOf(d *op.Def) int {
	sig := d.Sigs()[0]
	if !slices.ContainsFunc(sig.Params, func(p op.Param) bool { return p.Name == dimension.Name() }) {
		return -1
	}
	switch {
	case d.Traits.Has(op.FollowsOrder):
		return 0
	case d.Traits.Has(op.Monotone) && d.Tol.Class == op.Exact && slices.Equal(sig.Results, []string{"values", "indices"}):
		return 1
	}
	return -1
}

const dimension = op.IntArg("dim")

// chosen lets choose say which elements a computed call takes; its results and what is known
// of them are then of these. It returns nil for calls that take none, or that nobody asks about.
func (s *errorSession) chosen(call *op.Call, out []op.Value) []*state {
	at := placesOf(call.Def)
	if s.choose == nil || s.silent || at < 0 {
		return nil
	}
	x, from := tensorOf(call.Args.AllValues()[0]), s.of(call.Args.AllValues()[0])
	if x.Dim() == 0 || x.Len() == 0 || x.DType().IsComplex() {
		return nil
	}
	if from.unknown {
		s.unsure = true
		return nil
	}
	along := lines{outer: 1, n: x.Len(), inner: 1}
	if dim, ok := call.Args.Any(dimension).(int); ok {
		dim = (dim + x.Dim()) % x.Dim()
		along = lines{tensor.NumElements(x.Shape()[:dim]), x.Shape()[dim], tensor.NumElements(x.Shape()[dim+1:])}
	}
	index := tensorOf(out[at])
	c := &Choice{Lines: along.outer * along.inner, N: along.n, K: index.Len() / max(1, along.outer*along.inner), Inner: along.inner, Unit: s.unit}
	c.Values = along.gather(x)
	if from.err != nil {
		c.Errors = along.gather(from.err)
	}
	places := lines{along.outer, c.K, along.inner}
	for _, p := range places.gather(index) {
		c.Places = append(c.Places, int(p))
	}
	s.choose(c)
	states := []*state{{integral: true}}
	places.each(func(i, at int) { index.Set(at, complex(float64(c.Places[i]), 0)) })
	if at == 0 {
		return states
	}
	values := tensorOf(out[0])
	taken := &state{integral: from.integral, functions: from.functions}
	if c.Errors != nil {
		taken.err = tensor.New(tensor.F64, values.Shape()...)
	}
	places.each(func(i, at int) {
		from := i/c.K*c.N + c.Places[i]
		values.Set(at, complex(c.Values[from], 0))
		if c.Errors != nil {
			taken.err.Set(at, complex(c.Errors[from], 0))
		}
	})
	return append([]*state{taken}, states...)
}

// lines are those of a tensor along a dimension of n.
type lines struct{ outer, n, inner int }

// each tells of each element of each line, in order, where it is in the tensor.
func (l lines) each(f func(i, at int)) {
	i := 0
	for o := range l.outer {
		for k := range l.inner {
			for j := range l.n {
				f(i, (o*l.n+j)*l.inner+k)
				i++
			}
		}
	}
}

func (l lines) gather(t *tensor.Tensor) []float64 {
	all, data := make([]float64, t.Len()), reals(t)
	l.each(func(i, at int) { all[i] = data[at] })
	return all
}
