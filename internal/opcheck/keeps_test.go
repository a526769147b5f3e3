package opcheck_test

import (
	"sync"

	"plumb/device/sim"
	"plumb/op"
	"plumb/tensor"
)

// stepped has a kernel with a state and scratch memory.
func stepped() *op.Def {
	return &op.Def{
		Sig: "stepped(Tensor x, int step=1) -> Tensor", Doc: "x[i·step mod n] of n elements.", Traits: op.NoGrad, NotSplittable: "the test says so",
		Tol: op.Tol{Class: op.Exact, Reason: "copies elements"},
		Infer: func(a op.Args) ([]op.Meta, error) {
			if len(a.Value("x").Shape()) != 1 || a.Int("step") < 0 {
				return nil, op.RuntimeError("stepped expects argument 'x' with one dimension and argument 'step' from 0 on")
			}
			return like(a)
		},
		Kernels: []op.Kernel{{
			Name: "places", When: op.DTypeIn("x", float...), State: places, Keyed: []op.Handle{op.TensorArg("x"), op.IntArg("step")},
			Scratch: func(a op.Args) int { return 8 * tensor.NumElements(a.Value("x").Shape()) }, Run: runPlaces,
		}},
		Sample: func(s *op.Sampler) []any { return []any{s.Distinct(1 + s.Index(5)), int(s.Int(0, 4))} },
	}
}

func places(a op.Args) (any, error) {
	n := a.Value("x").Shape()[0]
	at := make([]int, n)
	for i := range at {
		at[i] = i * a.Int("step") % n
	}
	return at, nil
}

func runPlaces(c *op.Run) error {
	x := c.Tensor("x")
	row, err := tensor.FromBytes(tensor.F64, x.Shape(), []int{1}, 0, c.Scratch)
	if err != nil {
		return err
	}
	row.CopyFrom(x)
	for i, at := range c.State.([]int) {
		c.Out[0].Set(i, row.At(at))
	}
	return nil
}

// ramped has a kernel whose result may lie over its argument, and one for a device.
func ramped() *op.Def {
	run := func(c *op.Run) error {
		for i := range c.Out[0].Len() {
			c.Out[0].Set(i, c.Tensor("x").At(i)*complex(float64(i%3), 0))
		}
		return nil
	}
	return &op.Def{
		Sig: "ramped(Tensor x) -> Tensor", Doc: "(i mod 3)·x[i] of the i-th element.", Traits: op.NoGrad, NotSplittable: "the test says so",
		Tol: op.Tol{Class: op.Exact, Reason: "small multiples"}, Infer: like,
		Kernels: []op.Kernel{
			{Name: "ramp", When: op.DTypeIn("x", float...), Over: []op.TensorArg{"x"}, Run: run},
			{Name: "ramp on sim", Device: sim.Name, When: op.DTypeIn("x", float...), Run: func(c *op.Run) error { return sim.Launch(c, run) }},
		},
		Sample: func(s *op.Sampler) []any { return []any{s.Tensor(-3, 3, s.Shape(0, 3)...)} },
	}
}

// keeping are literals whose kernels keep, want or propose what they must not.
var keeping = []mistake{
	{"a state of elements", stepped, "Kernels", func(d *op.Def) {
		type cached struct {
			sync.Mutex
			row []complex128
		}
		d.Kernels[0].State = func(op.Args) (any, error) { return &cached{}, nil }
		d.Kernels[0].Run = func(c *op.Run) error {
			k, x := c.State.(*cached), c.Tensor("x")
			k.Lock()
			defer k.Unlock()
			for i := len(k.row); i < x.Len(); i++ {
				k.row = append(k.row, x.At(i))
			}
			for i := range x.Len() {
				c.Out[0].Set(i, k.row[i*c.Int("step")%x.Len()])
			}
			return nil
		}
	}},
	{"a state made of elements", stepped, "Kernels", func(d *op.Def) {
		d.Kernels[0].State = func(a op.Args) (any, error) { _ = a.Tensor("x").At(0); return places(a) }
	}},
	{"a state of another attribute", stepped, "Kernels", func(d *op.Def) { d.Kernels[0].Keyed = []op.Handle{op.TensorArg("x")} }},
	{"a state of another shape", stepped, "Kernels", func(d *op.Def) {
		d.Kernels[0].Keyed = []op.Handle{op.IntArg("step")}
		d.Kernels[0].Run = func(c *op.Run) error {
			for i, at := range c.State.([]int) {
				if i < c.Out[0].Len() {
					c.Out[0].Set(i, c.Tensor("x").At(at%c.Out[0].Len()))
				}
			}
			return nil
		}
	}},
	{"a state that is used up", stepped, "Kernels", func(d *op.Def) {
		d.Kernels[0].Run = func(c *op.Run) error {
			err := runPlaces(c)
			for i := range c.State.([]int) {
				c.State.([]int)[i] = 0
			}
			return err
		}
	}},
	{"scratch memory overrun", stepped, "Kernels", func(d *op.Def) {
		d.Kernels[0].Run = func(c *op.Run) error {
			if n := len(c.Scratch); cap(c.Scratch) > n {
				c.Scratch[:n+1][n] ^= 0xff
			}
			return runPlaces(c)
		}
	}},
	{"scratch memory by elements", stepped, "Kernels", func(d *op.Def) {
		d.Kernels[0].Scratch = func(a op.Args) int {
			x := a.Value("x").(interface{ Len() int })
			return 8 * x.Len()
		}
	}},
	{"too little scratch memory for some", stepped, "Kernels", func(d *op.Def) { d.Kernels[0].Scratch = func(op.Args) int { return 32 } }},
	{"a result over what is read later", ramped, "Kernels", func(d *op.Def) {
		d.Kernels = []op.Kernel{{Name: "backwards", When: op.DTypeIn("x", float...), Over: []op.TensorArg{"x"}, Run: func(c *op.Run) error {
			n := c.Out[0].Len()
			for i := range n {
				c.Out[0].Set(i, c.Tensor("x").At(n-1-i))
			}
			return nil
		}}}
	}},
	{"a result that is cleared first", ramped, "Kernels", func(d *op.Def) {
		run := d.Kernels[0].Run
		d.Kernels[0].Run = func(c *op.Run) error {
			for i := range c.Out[0].Len() {
				c.Out[0].Set(i, 0)
			}
			return run(c)
		}
	}},
	{"a result over no argument", ramped, "Kernels", func(d *op.Def) { d.Kernels[0].Over = []op.TensorArg{"y"} }},
	{"another function on a device", ramped, "Kernels", func(d *op.Def) {
		d.Kernels[1].Run = func(c *op.Run) error {
			return sim.Launch(c, func(c *op.Run) error { c.Out[0].CopyFrom(c.Tensor("x")); return nil })
		}
	}},
	{"a kernel of a device on the host", ramped, "Kernels", func(d *op.Def) { d.Kernels[1].Run = d.Kernels[0].Run }},
	{"strides lost on a device", ramped, "Kernels", func(d *op.Def) {
		run := d.Kernels[0].Run
		d.Kernels[1].Run = func(c *op.Run) error {
			return sim.Launch(c, func(c *op.Run) error {
				x := c.Tensor("x")
				flat, err := x.AsStrided(x.Shape(), tensor.ContiguousStrides(x.Shape()), x.Offset())
				if err != nil {
					return err
				}
				return run(withX(c, flat))
			})
		}
	}},
}
