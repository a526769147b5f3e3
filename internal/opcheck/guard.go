package opcheck

import (
	"fmt"
	"slices"
	"sync/atomic"

	"plumb/op"
	"plumb/tensor"
)

// guarded returns the table with the operator's functions telling whose a panic is.
func (c *checker) guarded(table *op.Table, id string) (*op.Table, error) {
	defs := slices.Clone(table.Defs())
	at := slices.IndexFunc(defs, func(d *op.Def) bool { return d.ID() == id })
	if at < 0 {
		return nil, fmt.Errorf("the table has no operator %s", id)
	}
	d := *defs[at]
	c.guard(&d)
	defs[at] = &d
	return op.NewTable(defs...)
}

func (c *checker) guard(d *op.Def) {
	d.SelectOverload = guard1("SelectOverload", d.SelectOverload)
	d.SBP = guard1("SBP", d.SBP)
	if f := d.NdSBP; f != nil {
		d.NdSBP = func(a op.Args, hierarchy []int) [][]op.Sharding { defer in("NdSBP"); return f(a, hierarchy) }
	}
	d.Reject = guard1("Reject", d.Reject)
	d.Itself = guard1("Itself", d.Itself)
	d.Saves = guard1("Saves", d.Saves)
	d.Constant = guard1("Constant", d.Constant)
	d.Unread = guard1("Unread", d.Unread)
	d.Sample = guard1("Sample", d.Sample)
	d.Exact = guard1("Exact", d.Exact)
	d.Law = guard1("Law", d.Law)
	d.HasMagnitude = guard1("HasMagnitude", d.HasMagnitude)
	d.Neutral = guard1("Neutral", d.Neutral)
	if d.Tol.Terms != nil {
		d.Tol.Terms = guard1("Tol", d.Tol.Terms)
	}
	if f := d.Infer; f != nil {
		d.Infer = func(a op.Args) ([]op.Meta, error) {
			defer in("Infer")
			defer c.unmoved(a, "Infer")()
			return f(a)
		}
	}
	if f := d.Place; f != nil {
		c.place = func(a op.Args, at op.Place) op.Place { defer in("Place"); return f(a, at) }
		d.Place = nil // all else is checked on the host
	}
	if f := d.View; f != nil {
		d.View = func(a op.Args) (*tensor.Tensor, error) { defer in("View"); return f(a) }
	}
	if f := d.Grad; f != nil {
		d.Grad = func(g *op.Grad) { defer in("Grad"); f(g) }
	}
	if f := d.Compose; f != nil {
		d.Compose = func(b op.Builder, a op.Args) []op.Value { defer in("Compose"); return f(b, a) }
	}
	if f := d.Formula; f != nil {
		d.Formula = func(b op.Builder, a op.Args) []op.Value { defer in("Formula"); return f(b, a) }
	}
	d.Kernels = slices.Clone(d.Kernels)
	c.chosen = make([]atomic.Bool, len(d.Kernels))
	for i := range d.Kernels {
		k := &d.Kernels[i]
		k.When.Holds = guard1("Kernels", k.When.Holds)
		k.Scratch = guard1("Kernels", k.Scratch)
		if f := k.State; f != nil {
			k.State = func(a op.Args) (any, error) { defer in("Kernels"); return f(a) }
		}
		k.Run = c.ran(i, guard1("Kernels", k.Run))
	}
}

// ran notes which kernel runs, and fills its scratch memory, which may hold anything:
// otherwise at every run.
func (c *checker) ran(kernel int, run func(*op.Run) error) func(*op.Run) error {
	var times atomic.Uint32
	return func(r *op.Run) error {
		defer c.unmoved(r.Args, "Kernels")()
		c.chosen[kernel].Store(true)
		fill := byte(times.Add(1)*0x35 | 0x80)
		if c.def.Kernels[kernel].Scratch == nil || r.Device != nil {
			return run(r)
		}
		n := len(r.Scratch)
		room := tensor.New(tensor.U8, n+2*guardBytes).Storage()
		for i := range room {
			room[i] = fill
		}
		own := *r
		own.Scratch = room[guardBytes:][:n]
		err := run(&own)
		beside := func(b byte) bool { return b != fill }
		if slices.ContainsFunc(room[:guardBytes], beside) || slices.ContainsFunc(room[guardBytes+n:], beside) {
			c.find("Kernels", &op.Call{Def: c.def, Args: r.Args}, "kernel %q writes beside the %d bytes that its Scratch asks for", c.def.Kernels[kernel].Name, n)
		}
		return err
	}
}

// guardBytes lie on either side of scratch memory.
const guardBytes = 64

// unmoved returns what reports, and undoes, changes of the arguments' shapes and strides.
func (c *checker) unmoved(a op.Args, field string) func() {
	values := a.AllValues()
	shapes, strides := make([][]int, len(values)), make([][]int, len(values))
	for i, v := range values {
		shapes[i], strides[i] = slices.Clone(v.Shape()), slices.Clone(v.Strides())
	}
	return func() {
		for i, v := range values {
			if !slices.Equal(v.Shape(), shapes[i]) || !slices.Equal(v.Strides(), strides[i]) {
				now := slices.Clone(v.Shape())
				copy(v.Shape(), shapes[i])
				copy(v.Strides(), strides[i])
				c.find(field, &op.Call{Def: c.def, Args: a}, "changes the shape of %s from %v to %v: what Shape returns is the argument's own, and has to be copied first", a.ArgNames()[i], shapes[i], now)
			}
		}
	}
}

// idle reports kernels that no call has reached.
func (c *checker) idle() {
	for i := range c.def.Kernels {
		if k := &c.def.Kernels[i]; !c.chosen[i].Load() && len(c.calls) > 0 && (k.Device == "" || op.DeviceNamed(k.Device) != nil) {
			c.find("Kernels", nil, "kernel %q (%s) is chosen for no call: an earlier candidate takes what it asks for, or Sample never draws it", k.Name, k.When.Text)
		}
	}
}

func guard1[A, R any](field string, f func(A) R) func(A) R {
	if f == nil {
		return nil
	}
	return func(a A) R { defer in(field); return f(a) }
}
