package opcheck_test

import "plumb/op"

// slanted adds to each row its number: a rank starts with that of its first row.
func slanted() *op.Def {
	return &op.Def{
		Sig: "slanted(Tensor x, int start=0) -> Tensor", Doc: "x + start + i, i the index along dimension 0.", Infer: like,
		Tol: op.Tol{Class: op.Accumulating, Terms: func(op.Args) int { return 2 }, Reason: "a sum of two"},
		Reject: func(a op.Args) error {
			if len(a.Value("x").Shape()) == 0 {
				return op.RuntimeError("slanted: argument 'x' has to have a dimension")
			}
			return nil
		},
		SBP: func(a op.Args) []op.Sharding {
			all := evenly(a)
			all[0].Own = func(a op.Args, r op.Rank) map[op.Handle]any {
				first, _ := r.Piece(a.Value("x").Shape()[0])
				return map[op.Handle]any{op.IntArg("start"): a.Int("start") + first}
			}
			return all
		},
		Kernels: []op.Kernel{{Name: "rows", When: op.DTypeIn("x", float...), Run: func(c *op.Run) error {
			inner := c.Out[0].Len() / max(c.Out[0].Shape()[0], 1)
			for e := range c.Out[0].Len() {
				c.Out[0].Set(e, complex(c.Tensor("x").Float(e)+float64(c.Int("start")+e/inner), 0))
			}
			return nil
		}}},
		Grad: func(g *op.Grad) { g.To("x", func() op.Value { return g.G() }) },
		Formula: func(b op.Builder, a op.Args) []op.Value {
			x := a.Value("x")
			column := make([]int, len(x.Shape()))
			for i := range column {
				column[i] = 1
			}
			column[0] = x.Shape()[0]
			numbers := b.Op("to", b.Arange(column[0]), x.DType())
			return []op.Value{b.Add(x, b.Add(b.Reshape(numbers, column), a.Int("start")))}
		},
		Sample: func(s *op.Sampler) []any { return []any{s.Tensor(-3, 3, s.Shape(1, 3)...), int(s.Int(-3, 4))} },
	}
}

// blocked sums blocks: how many ranks may share it depends on the block.
func blocked() *op.Def {
	return &op.Def{
		Sig: "blocked(Tensor x, int block) -> Tensor", Doc: "The sum of each block of consecutive elements.",
		Tol: op.Tol{Class: op.Accumulating, Terms: func(a op.Args) int { return a.Int("block") }, OwnMagnitude: true, Reason: "a sum"},
		Infer: func(a op.Args) ([]op.Meta, error) {
			x, block := a.Value("x"), a.Int("block")
			if len(x.Shape()) != 1 || block < 1 || x.Shape()[0]%block != 0 {
				return nil, op.RuntimeError("blocked: argument 'x' has to be a vector of whole blocks")
			}
			return []op.Meta{{DType: x.DType(), Shape: []int{x.Shape()[0] / block}}}, nil
		},
		NdSBP: func(a op.Args, hierarchy []int) [][]op.Sharding {
			ranks := 1
			for _, n := range hierarchy {
				ranks *= n
			}
			if a.Value("x").Shape()[0]/a.Int("block")%ranks != 0 {
				return nil // a block would be cut
			}
			pieces := op.Sharding{Args: map[string]op.SBP{"x": op.S(0)}, Results: []op.SBP{op.S(0)}}
			var signature []op.Sharding
			for range hierarchy {
				signature = append(signature, pieces)
			}
			return [][]op.Sharding{signature}
		},
		Kernels: []op.Kernel{{Name: "blocks", When: op.DTypeIn("x", float...), Run: func(c *op.Run) error {
			for i := range c.Out[0].Len() {
				sum := 0.0
				for k := range c.Int("block") {
					sum += c.Tensor("x").Float(i*c.Int("block") + k)
				}
				c.Out[0].Set(i, complex(sum, 0))
			}
			return nil
		}}},
		Grad: func(g *op.Grad) {
			n, block := g.Value("x").Shape()[0], g.Int("block")
			g.To("x", func() op.Value {
				return g.Reshape(g.Expand(g.Reshape(g.G(), []int{n / block, 1}), []int{n / block, block}), []int{n})
			})
		},
		Sample: func(s *op.Sampler) []any {
			block := 1 + s.Index(3)
			return []any{s.Tensor(-1, 1, block*(1+s.Index(8))), block}
		},
	}
}

// large are mistakes that show above the sizes that Sample draws.
var large = []mistake{
	{"a block that large calls leave out, of a formula", listed, "Kernels", func(d *op.Def) {
		d.Kernels = wrapped(d, func(c *op.Run, run func(*op.Run) error) error {
			err := run(c)
			for e := c.Out[0].Len() / 4096 * 4096; e >= 4096 && e < c.Out[0].Len(); e++ {
				c.Out[0].Set(e, 0)
			}
			return err
		})
	}},
	{"an index of 16 bits, of a formula", slanted, "Kernels", func(d *op.Def) {
		d.Kernels = wrapped(d, func(c *op.Run, run func(*op.Run) error) error {
			err := run(c)
			for e := 1 << 16; e < c.Out[0].Len(); e++ {
				c.Out[0].Set(e, c.Out[0].At(int(uint16(e))))
			}
			return err
		})
	}},
}

// overRanks are mistakes in what a literal says of ranks.
var overRanks = []mistake{
	{"every rank starts at the first row", slanted, "SBP", func(d *op.Def) { d.SBP = evenly }},
	{"a start that counts ranks, not rows", slanted, "SBP", owning(func(a op.Args, r op.Rank) map[op.Handle]any {
		return map[op.Handle]any{op.IntArg("start"): a.Int("start") + r.Rank}
	})},
	{"an own argument that there is not", slanted, "SBP", owning(func(a op.Args, _ op.Rank) map[op.Handle]any {
		return map[op.Handle]any{op.IntArg("begin"): a.Int("start")}
	})},
	{"an own argument of another type", slanted, "SBP", owning(func(a op.Args, r op.Rank) map[op.Handle]any {
		first, _ := r.Piece(a.Value("x").Shape()[0])
		return map[op.Handle]any{op.AnyArg("start"): float64(a.Int("start") + first)}
	})},
	{"an own argument that forgets the outer ranks", slanted, "SBP", func(d *op.Def) {
		sbp := d.SBP
		d.SBP = func(whole op.Args) []op.Sharding {
			all, start := sbp(whole), whole.Int("start")
			all[0].Own = func(a op.Args, r op.Rank) map[op.Handle]any {
				first, _ := r.Piece(a.Value("x").Shape()[0])
				return map[op.Handle]any{op.IntArg("start"): start + first}
			}
			return all
		}
	}},
	{"blocks that are cut", blocked, "NdSBP", func(d *op.Def) {
		d.NdSBP = over(op.Sharding{Args: map[string]op.SBP{"x": op.S(0)}, Results: []op.SBP{op.S(0)}})
	}},
	{"sums that are no summands", blocked, "NdSBP", func(d *op.Def) {
		d.NdSBP = over(op.Sharding{Args: map[string]op.SBP{"x": op.P}, Results: []op.SBP{op.B}})
	}},
	{"a dimension of the hierarchy is missing", blocked, "NdSBP", func(d *op.Def) {
		nd := d.NdSBP
		d.NdSBP = func(a op.Args, hierarchy []int) [][]op.Sharding {
			all := nd(a, hierarchy)
			for i := range all {
				all[i] = all[i][:1]
			}
			return all
		}
	}},
	{"an axis of a hierarchy beyond the rank", blocked, "NdSBP", func(d *op.Def) {
		d.NdSBP = over(op.Sharding{Args: map[string]op.SBP{"x": op.S(1)}, Results: []op.SBP{op.S(1)}})
	}},
	{"a hierarchy that is not there", blocked, "NdSBP", func(d *op.Def) {
		nd := d.NdSBP
		d.NdSBP = func(a op.Args, hierarchy []int) [][]op.Sharding { _ = hierarchy[1]; return nd(a, hierarchy) }
	}},
	{"no hierarchy that fits", blocked, "NdSBP", func(d *op.Def) {
		d.NdSBP = func(op.Args, []int) [][]op.Sharding { return nil }
	}},
}

// owning gives the ranks that split dimension 0 other arguments of their own.
func owning(own func(a op.Args, r op.Rank) map[op.Handle]any) func(d *op.Def) {
	return func(d *op.Def) {
		sbp := d.SBP
		d.SBP = func(a op.Args) []op.Sharding {
			all := sbp(a)
			all[0].Own = own
			return all
		}
	}
}

// over states one signature for each dimension of any hierarchy.
func over(s op.Sharding) func(op.Args, []int) [][]op.Sharding {
	return func(_ op.Args, hierarchy []int) [][]op.Sharding {
		var signature []op.Sharding
		for range hierarchy {
			signature = append(signature, s)
		}
		return [][]op.Sharding{signature}
	}
}
