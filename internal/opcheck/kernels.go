package opcheck

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"plumb/internal/draw/choice"
	"plumb/op"
	"plumb/tensor"
)

// kernels checks that every kernel whose predicate holds computes the same,
// whatever was in the results' memory, and changes nothing that it may not.
func (c *checker) kernels() {
	if c.def.Compose != nil || c.def.View != nil && len(c.def.Kernels) == 0 {
		return
	}
	mutated := map[op.TensorArg]bool{}
	for _, d := range c.calls {
		c.try(d.Call, func() { c.kernel(d, mutated) })
	}
	for _, p := range c.def.Mutates {
		if !mutated[p] {
			c.find("Mutates", c.calls[0].Call, "names %s, which no sampled call changes", p)
		}
	}
	c.unclaimed()
	c.integers()
	c.imaginary()
}

func (c *checker) kernel(d *drawn, mutated map[op.TensorArg]bool) {
	for _, fill := range []byte{0xff, 0x5a} {
		call := with(d.Call, sameLayout)
		before := with(call, sameLayout)
		var first *tensor.Tensor // result
		done := &reports{}
		call.Done = func(lo, hi int) { done.note(first, lo, hi) }
		if k, err := c.def.Kernel(call.Args); err != nil || !k.Reports {
			call.Done = nil
		}
		out, err := call.ExecuteInto(func(i int, m op.Meta) *tensor.Tensor {
			t := poisoned(m, fill)
			if i == 0 {
				first = t
			}
			return t
		})
		if err != nil {
			c.find("Kernels", d.Call, "compute a call once and fail then: %v", err)
			return
		}
		c.count()
		for i := range out {
			if !alike(c.def, out[i], d.out[i]) || c.def.Tol.Class != op.Accumulating && !sameElements(out[i], d.out[i]) {
				c.find("Kernels", d.Call, "the results of one call differ: by what their memory held before, or by what was called before (result %d: %s, then %s)", i, text(d.out[i]), text(out[i]))
			}
		}
		c.changed(call, before, mutated)
		c.reported(call, out, done)
	}
	c.candidates(d)
	c.keeps(d)
	c.over(d)
	c.onDevices(d)
	c.placed(d)
	if !c.def.Traits.Has(op.Random) {
		again := with(d.Call, sameLayout)
		again.Key++
		if out, err := again.Execute(); err == nil && !allAlike(c.def, out, d.out) {
			c.find("Traits", d.Call, "lack Random: the results depend on the key of the random stream")
		}
	}
}

func sameElements(a, b *tensor.Tensor) bool {
	for i := range a.Len() {
		if !sameNaN(a.At(i), b.At(i)) {
			return false
		}
	}
	return true
}

func poisoned(m op.Meta, fill byte) *tensor.Tensor {
	t := tensor.Unset(m.DType, m.Shape, m.Strides)
	for i := range t.Storage() {
		t.Storage()[i] = fill
		if m.DType == tensor.Bool {
			t.Storage()[i] = fill & 1
		}
	}
	return t
}

// changed reports arguments that kernels change, and notes those that they may.
func (c *checker) changed(call, before *op.Call, mutated map[op.TensorArg]bool) {
	names := call.Args.ArgNames()
	for i, x := range tensorsOf(call) {
		p := op.TensorArg(names[i])
		switch same := slices.Equal(x.Storage(), tensorsOf(before)[i].Storage()); {
		case same:
		case slices.Contains(c.def.Mutates, p):
			mutated[p] = true
		default:
			c.find("Kernels", before, "change the elements of %s, which Mutates does not name", p)
		}
	}
}

// reports are the ranges that a kernel told of, and what they held then.
type reports struct {
	mu   sync.Mutex
	all  [][2]int
	held [][]byte
}

func (r *reports) note(out *tensor.Tensor, lo, hi int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all, r.held = append(r.all, [2]int{lo, hi}), append(r.held, slices.Clone(stretch(out, lo, hi)))
}

// stretch is the memory of a range of elements; nil where there is none.
func stretch(t *tensor.Tensor, lo, hi int) []byte {
	size := t.DType().Size()
	if lo < 0 || hi < lo || (t.Offset()+hi)*size > len(t.Storage()) {
		return nil
	}
	return t.Storage()[(t.Offset()+lo)*size : (t.Offset()+hi)*size]
}

// reported checks what a kernel that Reports told of.
func (c *checker) reported(call *op.Call, out []*tensor.Tensor, done *reports) {
	if call.Done == nil {
		return
	}
	for i, r := range done.all {
		if !slices.Equal(done.held[i], stretch(out[0], r[0], r[1])) {
			c.find("Kernels", call, "a kernel that Reports tells of elements %d to %d of the result, and changes them after that", r[0], r[1])
		}
	}
	slices.SortFunc(done.all, func(a, b [2]int) int { return a[0] - b[0] })
	at := 0
	for _, r := range done.all {
		if r[0] != at || r[1] < r[0] {
			break
		}
		at = r[1]
	}
	if at != out[0].Len() {
		c.find("Kernels", call, "a kernel that Reports tells of the ranges %v, which do not make up its %d elements", done.all, out[0].Len())
	}
}

// candidates runs every kernel whose predicate holds, not the first alone.
func (c *checker) candidates(d *drawn) {
	if c.def.Traits.Has(op.Random) || !d.dtype.IsFloat() {
		return
	}
	best, err := c.def.Kernel(d.Args)
	if err != nil {
		return
	}
	for i := range c.def.Kernels {
		k := &c.def.Kernels[i]
		if k.Device != "" || k == best || k.Priority == best.Priority || k.When.Holds == nil || best.When.Holds == nil || !k.When.Holds(d.Args) {
			continue // what a predicate does not say an earlier candidate may
		}
		own := *c.def
		own.Kernels = []op.Kernel{*k}
		call := with(d.Call, sameLayout)
		call.Def = &own
		out, err := call.Execute()
		if err != nil {
			c.find("Kernels", d.Call, "kernel %q, whose predicate holds, fails: %v", k.Name, err)
		} else if !c.near(d.Call, out, d.out) {
			c.find("Kernels", d.Call, "kernels %q and %q both take the call and compute %s and %s", best.Name, k.Name, text(d.out[0]), text(out[0]))
		}
	}
}

// near compares by the numerics class: two kernels may round otherwise.
func (c *checker) near(call *op.Call, got, want []*tensor.Tensor) bool {
	for i := range want {
		if alike(c.def, got[i], want[i]) {
			continue
		}
		if c.def.Tol.Class != op.Pointwise || !want[i].DType().IsFloat() {
			return false
		}
		for e := range want[i].Len() {
			w := want[i].Float(e)
			if !within(got[i].Float(e), w, 2*allowed(call.Def.Tol, want[i].DType(), w)) {
				return false
			}
		}
	}
	return true
}

// unclaimed calls the operator with dtypes in which it is not legal: it refuses
// them with an error.
func (c *checker) unclaimed() {
	for _, dt := range tensor.DTypes {
		if slices.Contains(c.DTypes, dt) {
			continue
		}
		call, err := c.bind(dt, 0)
		if err != nil || call == nil {
			continue
		}
		c.try(call, func() {
			c.count()
			_, err := c.run(call)
			if err != nil && !rejection(err) {
				c.find("Kernels", call, "fails on a dtype that it does not take, rather than to refuse it: %v", err)
			}
			if e := (*op.Error)(nil); errors.As(err, &e) && !exception.MatchString(e.Class) {
				c.find("Reject", call, "the refusal %q has the class %q, which is no Python exception's", e.Msg, e.Class)
			}
		})
	}
}

// layouts checks that results do not depend on how arguments lie in memory.
func (c *checker) layouts() {
	for _, d := range c.calls {
		if len(d.Args.AllValues()) == 0 {
			continue
		}
		for _, l := range layoutsOf {
			c.layout(d, l.name, with(d.Call, l.of), d.out)
			c.left(d, l)
		}
		c.behind(d)
		c.expanded(d)
		c.aliased(d)
	}
}

func (c *checker) layout(d *drawn, name string, call *op.Call, want []*tensor.Tensor) {
	c.try(call, func() {
		out, err := c.run(call)
		c.count()
		field := "Kernels"
		if c.def.View != nil {
			field = "View"
		}
		switch {
		case err == nil && !allAlike(c.def, out, want):
			c.find(field, call, "compute %s of arguments %s, and %s of the same elements in a row", list(out), name, list(want))
		case err != nil && !rejection(err):
			c.find(field, call, "fail on arguments %s: %v", name, err)
		case err != nil && !c.def.Traits.Has(op.View):
			c.find(refuser(call), call, "refuses arguments %s that it takes in a row: %v", name, err)
		}
	})
}

// left compares what a call leaves of the arguments that it may change, which lie in
// memory otherwise, with what it leaves of those in a row.
func (c *checker) left(d *drawn, l layout) {
	if len(c.def.Mutates) == 0 {
		return
	}
	call, row := with(d.Call, l.of), with(d.Call, sameLayout)
	c.try(d.Call, func() {
		if _, err := call.Execute(); err != nil {
			return // which layout tells
		}
		if _, err := row.Execute(); err != nil {
			return
		}
		c.count()
		names := call.Args.ArgNames()
		for i, x := range tensorsOf(call) {
			if want := tensorsOf(row)[i]; slices.Contains(c.def.Mutates, op.TensorArg(names[i])) && !alike(c.def, x, want) {
				c.find("Mutates", d.Call, "a call leaves %s as %s where arguments are %s, and as %s where they are in a row", names[i], text(x), l.name, text(want))
			}
		}
	})
}

// behind gives a dimension as counted from behind: the call is refused, or it
// computes the same.
func (c *checker) behind(d *drawn) {
	if len(d.out) == 0 {
		return
	}
	rank := tensorsOf(d.Call)[0].Dim()
	for i, p := range d.Args.Sig.Params {
		dim, ok := d.Args.Vals[i].(int)
		if !ok || p.Type.Kind != op.KInt || p.Name != "dim" && p.Name != "axis" {
			continue
		}
		var other []*op.Call
		for _, n := range []int{rank, d.out[0].Dim()} { // a new dimension is one of the result
			if dim >= 0 && dim < n {
				other = append(other, replaced(d.Call, i, dim-n))
			} else if dim < 0 && dim >= -n {
				other = append(other, replaced(d.Call, i, dim+n))
			}
		}
		var differs *op.Call
		same := len(other) == 0
		for _, call := range other {
			c.try(call, func() {
				out, err := c.run(call)
				c.count()
				if same = same || err != nil || allAlike(c.def, out, d.out); !same {
					differs = call
				}
			})
		}
		if !same && differs != nil && !c.def.Traits.Has(op.Random) {
			c.find("Kernels", differs, "compute something else than with %s=%d, which is the same dimension", p.Name, dim)
		}
	}
}

func list(ts []*tensor.Tensor) string {
	s := ""
	for i, t := range ts {
		if i > 0 {
			s += ", "
		}
		s += text(t)
	}
	return s
}

// expanded calls the operator with tensors whose entries along a dimension are one.
func (c *checker) expanded(d *drawn) {
	repeat := func(x *tensor.Tensor) *tensor.Tensor {
		for dim, n := range x.Shape() {
			if n > 1 && x.DType().IsDifferentiable() {
				u, err := sameLayout(x).Narrow(dim, 0, 1, 1).Expand(x.Shape()...)
				if err == nil {
					return u
				}
			}
		}
		return x
	}
	if len(c.def.Domains) > 0 || len(c.def.Mutates) > 0 {
		return
	}
	call := with(d.Call, repeat)
	c.try(call, func() {
		want, err := with(call, func(x *tensor.Tensor) *tensor.Tensor { return x.Clone() }).Execute()
		if err != nil {
			return
		}
		c.layout(d, "expanded", call, want)
	})
}

// aliased calls the operator with one tensor for all that are alike.
func (c *checker) aliased(d *drawn) {
	ts := tensorsOf(d.Call)
	if len(ts) < 2 || len(c.def.Mutates) > 0 || len(c.def.Domains) > 0 {
		return
	}
	one := sameLayout(ts[0])
	alias := func(x *tensor.Tensor) *tensor.Tensor {
		if x.DType() == one.DType() && slices.Equal(x.Shape(), one.Shape()) {
			return one
		}
		return x
	}
	call := with(d.Call, alias)
	c.try(call, func() {
		want, err := c.run(call) // on copies
		if err != nil {
			return
		}
		got, err := call.Execute()
		if err != nil || !allAlike(c.def, got, want) {
			c.find("Kernels", call, "compute %s where arguments are one tensor, and %s of equal ones (%v)", list(got), list(want), err)
		}
	})
}

// Sizes of the calls that are larger than what Sample draws.
const (
	largeElements = 1<<16 + 123
	largeRuns     = 4
	largeBytes    = 1 << 26 // that a large call may take
	largeTime     = 300 * time.Millisecond
)

// sizes makes large calls of sampled ones: of a function of elements every
// element is compared, of others that runs agree.
func (c *checker) sizes() {
	if len(c.def.Mutates) > 0 && c.def.Exact == nil {
		return
	}
	tried := 0
	calls := slices.Clone(c.calls) // those of many elements first: of one, repeated, a large call tells little
	slices.SortStableFunc(calls, func(a, b *drawn) int { return elementsOf(b.Call) - elementsOf(a.Call) })
	for _, d := range calls {
		if tried == 3 || len(d.Args.AllValues()) == 0 || d.dtype != tensor.F32 && d.dtype != c.DTypes[0] {
			continue
		}
		call := enlarged(d.Call)
		if call == nil {
			continue
		}
		call.Limit = largeBytes
		c.try(call, func() {
			start := time.Now()
			first, err := c.run(call)
			if err != nil {
				return // not every operator takes another shape
			}
			tried++
			c.count()
			for range largeRuns {
				if time.Since(start) > largeTime {
					break
				}
				again, err := c.run(call)
				if err != nil || !allAlike(c.def, again, first) {
					c.find("Kernels", call, "two runs of one large call differ: a race, or memory that is not set (%v)", err)
					return
				}
			}
			c.blocks(d, call, first)
			if tried == 1 {
				c.together(call)
			}
		})
	}
	if tried == 0 {
		c.gap("Kernels", fmt.Sprintf("no call of %d elements could be made of sampled ones: races and blocks above Sample's sizes are not checked", largeElements))
	}
}

// together runs two large calls at the same time, and each several times: what they
// give is what they give alone.
func (c *checker) together(call *op.Call) {
	other := with(call, func(x *tensor.Tensor) *tensor.Tensor {
		u := tensor.New(x.DType(), x.Shape()...)
		for i := range u.Len() {
			u.Set(i, x.At(u.Len()-1-i))
		}
		return u
	})
	calls := []*op.Call{call, other}
	for _, one := range calls {
		one.States = &op.States{}
	}
	calls[1].States = calls[0].States
	var alone [][]*tensor.Tensor
	for _, one := range calls {
		out, err := c.run(one)
		if err != nil {
			return
		}
		alone = append(alone, out)
	}
	var all sync.WaitGroup
	var differ atomic.Bool
	start := time.Now()
	for g := range 4 {
		all.Go(func() {
			defer func() {
				if recover() != nil {
					differ.Store(true)
				}
			}()
			for range largeRuns / 2 {
				out, err := c.run(calls[g%2])
				if err != nil || !allAlike(c.def, out, alone[g%2]) {
					differ.Store(true)
				}
				if differ.Load() || time.Since(start) > largeTime {
					return
				}
			}
		})
	}
	all.Wait()
	if c.count(); differ.Load() {
		c.find("Kernels", call, "give something else while another call runs: they share memory that is not the call's")
	}
}

func elementsOf(call *op.Call) (n int) {
	for _, x := range tensorsOf(call) {
		n += x.Len()
	}
	return n
}

// enlarged repeats the first dimension of the tensors that have the most of them.
func enlarged(call *op.Call) *op.Call {
	most := 0
	for _, x := range tensorsOf(call) {
		most = max(most, x.Dim())
	}
	times := 0
	for _, x := range tensorsOf(call) {
		if x.Dim() == most && x.Len() > 0 {
			times = max(times, largeElements/x.Len())
		}
	}
	if times < 2 {
		return nil
	}
	if most == 0 {
		return with(call, func(x *tensor.Tensor) *tensor.Tensor { return refit(x, []int{largeElements}) })
	}
	first := 1
	for _, x := range tensorsOf(call) {
		if x.Dim() == most {
			first = max(first, x.Shape()[0])
		}
	}
	return with(call, func(x *tensor.Tensor) *tensor.Tensor {
		if x.Dim() != most || x.Len() == 0 || x.Shape()[0] != first {
			return sameLayout(x)
		}
		shape := slices.Clone(x.Shape())
		shape[0] *= times
		return refit(x, shape)
	})
}

// blocks compares the repetitions within the result of an elementwise call with
// what the small call gave.
func (c *checker) blocks(d *drawn, call *op.Call, out []*tensor.Tensor) {
	if !elementwise(d.Call) || c.def.Traits.Has(op.Random) {
		return
	}
	small := d.out[0]
	if small.Len() == 0 || out[0].Len()%small.Len() != 0 {
		return
	}
	for i := range out[0].Len() {
		if !sameNaN(out[0].At(i), small.At(i%small.Len())) {
			c.find("Kernels", call, "element %d of a large call is %v, and %v of the same numbers in a small one", i, out[0].At(i), small.At(i%small.Len()))
			return
		}
	}
}

// integers looks for int64 that are computed in float64: a function that steps
// evenly over small integers steps so over those that float64 cannot hold.
func (c *checker) integers() {
	if !slices.Contains(c.DTypes, tensor.I64) {
		return
	}
	for _, d := range c.calls {
		if d.dtype != tensor.I64 || d.key > 2 {
			continue
		}
		for i, v := range d.Args.Vals {
			x, ok := v.(*tensor.Tensor)
			if !ok || x.DType() != tensor.I64 || x.Len() == 0 {
				continue
			}
			c.try(d.Call, func() {
				step := func(base int64) (int64, bool) {
					var at [4]int64
					for k := range at {
						u := tensor.New(tensor.I64, x.Shape()...)
						for e := range u.Len() {
							u.SetInt(e, base+int64(k))
						}
						out, err := c.run(replaced(d.Call, i, u))
						if err != nil || len(out) == 0 || out[0].DType() != tensor.I64 || out[0].Len() == 0 {
							return 0, false
						}
						at[k] = out[0].Int(0)
					}
					return at[1] - at[0], at[2]-at[1] == at[1]-at[0] && at[3]-at[2] == at[1]-at[0]
				}
				small, even := step(100)
				large, still := step(1 << 40)
				if !even || !still || small == 0 || small != large {
					return
				}
				c.count()
				if huge, even := step(1<<53 + 1); !even || huge != small {
					c.find("Kernels", d.Call, "compute int64 in float64: f(n+1) - f(n) is %d for n = 100 and 2^40, and not so beyond 2^53", small)
				}
			})
		}
	}
}

// imaginary looks for complex kernels that drop imaginary parts: their results
// are complex, and of every call follow from the real parts alone.
func (c *checker) imaginary() {
	dropped, kept := 0, 0
	var at *op.Call
	defer func() {
		if dropped > 1 && kept == 0 {
			c.find("Kernels", at, "take complex numbers and drop their imaginary parts: the complex results follow from the real parts alone")
		}
	}()
	for _, d := range c.calls {
		if !d.dtype.IsComplex() || len(d.out) == 0 || !d.out[0].DType().IsComplex() || d.out[0].Len() == 0 || c.def.Traits.Has(op.ShapeOnly) || c.def.Traits.Has(op.Random) {
			continue
		}
		complexes := false
		flat := with(d.Call, func(x *tensor.Tensor) *tensor.Tensor {
			u := sameLayout(x)
			for i := range u.Len() {
				if u.DType().IsComplex() && imag(u.At(i)) != 0 {
					complexes = true
					u.Set(i, complex(real(u.At(i)), 0))
				}
			}
			return u
		})
		if !complexes {
			continue
		}
		c.try(d.Call, func() {
			out, err := c.run(flat)
			zero := with(flat, func(x *tensor.Tensor) *tensor.Tensor { return tensor.New(x.DType(), x.Shape()...) })
			none, err2 := c.run(zero)
			c.count()
			switch {
			case err != nil || err2 != nil || allAlike(c.def, none, d.out):
			case allAlike(c.def, out, d.out):
				dropped, at = dropped+1, d.Call
			default:
				kept++
			}
		})
	}
}

// law checks a Random operator against its Law, and that its draws follow from
// the key.
func (c *checker) law() {
	if !c.def.Traits.Has(op.Random) || c.def.Traits.Has(op.Undefined) {
		return
	}
	varies, tried := false, 0
	for _, d := range c.calls {
		if !d.dtype.IsFloat() || len(d.out) == 0 || d.out[0].Len() == 0 {
			continue
		}
		tried++
		again := with(d.Call, sameLayout)
		again.Key = choice.Derive(d.Key, 99)
		c.try(d.Call, func() {
			out, err := again.Execute()
			varies = varies || err == nil && !allAlike(c.def, out, d.out)
		})
	}
	if tried > 0 && !varies {
		c.find("Traits", c.calls[0].Call, "have Random, though no result depends on the key of the random stream")
		return
	}
	c.follows()
}
