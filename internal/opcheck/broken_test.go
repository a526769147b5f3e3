package opcheck_test

import (
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"plumb/internal/opcheck"
	"plumb/op"
	"plumb/tensor"
)

// mistake is one that is planted into a right literal, and the field that has it.
type mistake struct {
	name  string
	of    func() *op.Def
	field string
	plant func(d *op.Def)
}

// broken are literals with one mistake each.
var broken = append([]mistake{
	// Doc, Sig, Tol.
	{"no doc", bent, "Doc", func(d *op.Def) { d.Doc = "" }},
	{"two results in the signature", bent, "Infer", func(d *op.Def) { d.Sig = "bent(Tensor x) -> (Tensor a, Tensor b)"; d.Exact = nil }},
	{"a class that is far too loose", bent, "Tol", func(d *op.Def) { d.Tol.ULP = 1000 }},
	{"a class that is too loose", clipped, "Tol", func(d *op.Def) { d.Tol = pointwise(10) }},
	{"accumulating for a function of elements", bent, "Tol", func(d *op.Def) { d.Tol = op.Tol{Class: op.Accumulating, Reason: "test"} }},
	{"exact though it rounds", bent, "Kernels", func(d *op.Def) { d.Tol = op.Tol{Class: op.Exact, Reason: "test"} }},
	{"statistics of what is not drawn", bent, "Tol", func(d *op.Def) { d.Tol.Class = op.Statistical }},
	{"a class that there is not", bent, "Tol", func(d *op.Def) { d.Tol.Class = "approximate" }},
	{"far too many terms", rowsum, "Tol", func(d *op.Def) { d.Tol.Terms = func(op.Args) int { return 1e6 } }},
	{"its own magnitude though it subtracts", rowsum, "Tol", func(d *op.Def) {
		d.Kernels = rowKernel(func(row *tensor.Tensor) (s float64) {
			for k := range row.Len() {
				s += row.Float(k) * float64(1-k%2*2)
			}
			return s
		})
		d.SBP, d.NotSplittable, d.Traits, d.Grad = nil, "test", op.NoGrad, nil
	}},
	{"a magnitude that is no operator", rowsum, "Magnitude", func(d *op.Def) { d.Tol.OwnMagnitude = false; d.Magnitude = "rowsum_of_absolutes" }},
	// Traits.
	{"commutative", hypotenuse, "Traits", func(d *op.Def) {
		d.Kernels = pairs(func(x, y float64) float64 { return x - 2*y })
		d.Exact = func(op.Args) op.Truth {
			return op.InFloat64(func(x ...float64) float64 { return math.FMA(-2, x[1], x[0]) })
		}
		d.Sample = func(s *op.Sampler) []any { x := s.Shape(1, 3); return []any{s.Distinct(x...), s.Distinct(x...)} }
		d.Grad, d.Traits = nil, op.NoGrad|op.Commutative
	}},
	{"idempotent", bent, "Traits", func(d *op.Def) { d.Traits |= op.Idempotent }},
	{"involution", bent, "Traits", func(d *op.Def) { d.Traits |= op.Involution }},
	{"monotone", bent, "Traits", func(d *op.Def) {
		d.Kernels = each(float, func(x float64, _ op.Args) float64 { return x * x })
		d.Exact, d.Traits, d.Grad = square, op.Monotone|op.NoGrad, nil
	}},
	{"shape only", bent, "Traits", func(d *op.Def) { d.Traits |= op.ShapeOnly }},
	{"random", bent, "Traits", func(d *op.Def) {
		d.Traits, d.Law = op.Random, noise().Law
		d.Tol.Class, d.Exact = op.Statistical, nil
	}},
	{"not random", noise, "Traits", func(d *op.Def) {
		d.Traits &^= op.Random
		d.Tol = op.Tol{Class: op.Exact, Reason: "test"}
	}},
	{"dynamic", bent, "Traits", func(d *op.Def) { d.Traits |= op.Dynamic }},
	{"not dynamic", positives, "Traits", func(d *op.Def) { d.Traits &^= op.Dynamic }},
	{"classifies", rounded, "Traits", func(d *op.Def) { d.Traits |= op.Classifies }},
	{"follows the order", bent, "Traits", func(d *op.Def) { d.Traits |= op.FollowsOrder }},
	{"compares", below, "Traits", func(d *op.Def) {
		d.Kernels = pairs(func(x, y float64) float64 {
			if x < 2*y {
				return 1
			}
			return 0
		})
		d.Names = nil
	}},
	{"cancels", hypotenuse, "Traits", func(d *op.Def) { d.Traits |= op.Cancels }},
	{"additive", hypotenuse, "Traits", func(d *op.Def) {
		d.Kernels = pairs(func(x, y float64) float64 { return math.Hypot(x, y) + 1 })
		d.Exact = nil
		d.Traits, d.Grad = d.Traits|op.Additive|op.NoGrad, nil
	}},
	{"a view that is a copy", turned, "Traits", func(d *op.Def) {
		view := d.View
		d.View = func(a op.Args) (*tensor.Tensor, error) {
			t, err := view(a)
			if err != nil {
				return nil, err
			}
			return laidLike(t), nil
		}
	}},
	{"a contraction that is none", bent, "Traits", func(d *op.Def) { d.Traits |= op.Contraction }},
	// SBP.
	{"a sum that is said to be split", rowsum, "SBP", func(d *op.Def) {
		d.SBP = func(a op.Args) []op.Sharding {
			last := len(a.Value("x").Shape()) - 1
			return []op.Sharding{{Args: map[string]op.SBP{"x": op.S(last)}, Results: []op.SBP{op.B}}}
		}
	}},
	{"partial through a function that is not linear", bent, "SBP", func(d *op.Def) {
		d.SBP = func(op.Args) []op.Sharding {
			return []op.Sharding{{Args: map[string]op.SBP{"x": op.P}, Results: []op.SBP{op.P}}}
		}
	}},
	{"the wrong axis", turned, "SBP", func(d *op.Def) {
		d.SBP = func(op.Args) []op.Sharding {
			return []op.Sharding{{Args: map[string]op.SBP{"x": op.S(0)}, Results: []op.SBP{op.S(0)}}}
		}
	}},
	{"an axis beyond the rank", bent, "SBP", func(d *op.Def) {
		d.SBP = func(op.Args) []op.Sharding {
			return []op.Sharding{{Args: map[string]op.SBP{"x": op.S(7)}, Results: []op.SBP{op.S(7)}}}
		}
	}},
	{"an argument that there is not", bent, "SBP", func(d *op.Def) {
		d.SBP = func(op.Args) []op.Sharding {
			return []op.Sharding{{Args: map[string]op.SBP{"input": op.S(0)}, Results: []op.SBP{op.S(0)}}}
		}
	}},
	{"signatures that panic", bent, "SBP", func(d *op.Def) {
		d.SBP = func(a op.Args) []op.Sharding {
			return []op.Sharding{{Args: map[string]op.SBP{"x": op.S(a.Value("x").Shape()[2])}}}
		}
	}},
	// Infer.
	{"an extra leading dimension", bent, "Infer", func(d *op.Def) {
		d.Infer = func(a op.Args) ([]op.Meta, error) {
			return []op.Meta{{DType: a.Value("x").DType(), Shape: append([]int{1}, a.Value("x").Shape()...)}}, nil
		}
		d.SBP, d.NotSplittable = nil, "test"
	}},
	{"strides of the input, gaps and all", bent, "Infer", func(d *op.Def) {
		d.Infer = func(a op.Args) ([]op.Meta, error) {
			return []op.Meta{{DType: a.Value("x").DType(), Shape: a.Value("x").Shape(), Strides: make([]int, len(a.Value("x").Shape()))}}, nil
		}
	}},
	{"a narrower dtype", bent, "Infer", func(d *op.Def) {
		d.Infer = func(a op.Args) ([]op.Meta, error) {
			return []op.Meta{{DType: tensor.F32, Shape: a.Value("x").Shape()}}, nil
		}
	}},
	{"reads elements", bent, "Infer", func(d *op.Def) {
		d.Infer = func(a op.Args) ([]op.Meta, error) {
			_ = a.Tensor("x").Len()
			return like(a)
		}
	}},
	{"panics on 0 dimensions", bent, "Infer", func(d *op.Def) {
		d.Infer = func(a op.Args) ([]op.Meta, error) { _ = a.Value("x").Shape()[0]; return like(a) }
		d.Sample = func(s *op.Sampler) []any { return []any{s.Tensor(-3, 3, s.Shape(1, 3)...)} }
	}},
	{"ignores that shapes broadcast", hypotenuse, "Infer", func(d *op.Def) {
		d.Infer = func(a op.Args) ([]op.Meta, error) {
			return []op.Meta{{DType: a.Value("x").DType(), Shape: a.Value("x").Shape()}}, nil
		}
		d.Sample = func(s *op.Sampler) []any { return []any{s.Distinct(3), s.Distinct(2, 3)} }
	}},
	{"a view of another shape", turned, "Infer", func(d *op.Def) {
		d.Infer = func(a op.Args) ([]op.Meta, error) {
			if len(a.Value("x").Shape()) != 2 {
				return nil, op.RuntimeError("no matrix")
			}
			return like(a)
		}
	}},
	// Reject.
	{"refuses what Sample draws", bent, "Reject", func(d *op.Def) { d.Reject = func(op.Args) error { return op.RuntimeError("no") } }},
	{"refuses without a class", rounded, "Reject", func(d *op.Def) {
		d.Reject = func(a op.Args) error {
			if m := a.Str("mode"); m != "up" && m != "down" {
				return &op.Error{Msg: "no such mode"}
			}
			return nil
		}
		d.Choices = nil
	}},
	{"an edge that nobody refuses", windowed, "Kernels", func(d *op.Def) {
		d.Infer = func(a op.Args) ([]op.Meta, error) {
			x := a.Value("x").Shape()
			if len(x) != 1 || a.Int("size") < 0 || a.Int("dilation") < 0 {
				return nil, op.RuntimeError("windowed wants a vector")
			}
			n := x[0] - a.Int("dilation")*(a.Int("size")-1)
			if n < 0 || n > 100 {
				return nil, op.RuntimeError("windowed has no window")
			}
			return []op.Meta{{DType: a.Value("x").DType(), Shape: []int{n + 1 - min(a.Int("size"), 1)}}}, nil
		}
		run := d.Kernels[0].Run
		d.Kernels = []op.Kernel{{Name: "windows", When: op.DTypeIn("x", float...), Run: func(c *op.Run) error {
			_ = c.Out[0].Len() / c.Int("size")
			return run(c)
		}}}
	}},
	// View, Kernels.
	{"a view that panics", first, "View", func(d *op.Def) {
		d.View = func(a op.Args) (*tensor.Tensor, error) { return a.Tensor("x").Select(a.Int("dim"), 0), nil }
	}},
	{"wrong on strided inputs", bent, "Kernels", func(d *op.Def) { d.Kernels = linear(bent().Kernels[0], 0) }},
	{"wrong where the first dimension is innermost", bent, "Kernels", func(d *op.Def) { d.Kernels = linear(bent().Kernels[0], 2) }},
	{"wrong at an offset", bent, "Kernels", func(d *op.Def) {
		d.Kernels = wrapped(d, func(c *op.Run, run func(*op.Run) error) error {
			if x := c.Tensor("x"); x.Offset() != 0 {
				y, _ := tensor.FromBytes(x.DType(), x.Shape(), x.Strides(), 0, x.Storage())
				return run(withX(c, y))
			}
			return run(c)
		})
	}},
	{"NaN lost", clipped, "Kernels", func(d *op.Def) {
		d.Kernels = each([]tensor.DType{tensor.F64}, func(x float64, a op.Args) float64 {
			limit := a.Scalar("limit").Float()
			if x < limit {
				if x > -limit {
					return x
				}
				return -limit
			}
			return limit
		})
	}},
	{"int64 in float64", tripled, "Kernels", func(d *op.Def) {
		d.Kernels = each([]tensor.DType{tensor.I64, tensor.I32}, func(x float64, _ op.Args) float64 { return 3*x + 1 })
	}},
	{"a race above what Sample draws", bent, "Kernels", func(d *op.Def) {
		f := d.Kernels[0]
		d.Kernels = []op.Kernel{{Name: "parallel", When: f.When, Run: func(c *op.Run) error {
			x, out := c.Tensor("x"), c.Out[0]
			if x.Len() < 4096 {
				return f.Run(c)
			}
			var v float64 // shared by the goroutines
			var m sync.Mutex
			var all sync.WaitGroup
			for part := range 4 {
				all.Add(1)
				go func() {
					defer all.Done()
					for i := part; i < x.Len(); i += 4 {
						m.Lock()
						v = x.Float(i)
						m.Unlock()
						runtime.Gosched()
						m.Lock()
						w := v
						m.Unlock()
						out.Set(i, complex(w*w/(math.Sqrt(w*w+1)+1)/2+w, 0))
					}
				}()
			}
			all.Wait()
			return nil
		}}}
	}},
	{"the last block of a large call", bent, "Kernels", func(d *op.Def) {
		d.Kernels = wrapped(d, func(c *op.Run, run func(*op.Run) error) error {
			err := run(c)
			for i := 4096 * (c.Out[0].Len() / 4096); i > 0 && i < c.Out[0].Len(); i++ {
				c.Out[0].Set(i, 0)
			}
			return err
		})
	}},
	{"what is not written stays", rowsum, "Kernels", func(d *op.Def) {
		d.Kernels = []op.Kernel{{Name: "rows", When: op.DTypeIn("x", float...), Run: func(c *op.Run) error {
			return rows(c, func(row *tensor.Tensor, i int) {
				for k := range row.Len() {
					c.Out[0].Set(i, c.Out[0].At(i)+row.At(k))
				}
			})
		}}}
	}},
	{"changes its argument", bent, "Kernels", func(d *op.Def) {
		d.Kernels = wrapped(d, func(c *op.Run, run func(*op.Run) error) error {
			err := run(c)
			if c.Tensor("x").Len() > 0 {
				c.Tensor("x").Set(0, 0)
			}
			return err
		})
	}},
	{"remembers the call before", bent, "Kernels", func(d *op.Def) {
		last := 0.0
		d.Kernels = wrapped(d, func(c *op.Run, run func(*op.Run) error) error {
			err := run(c)
			if c.Out[0].Len() > 0 {
				c.Out[0].Set(0, complex(c.Out[0].Float(0)+last, 0))
				last += 1e-3
			}
			return err
		})
	}},
	{"one dtype of three", bent, "Kernels", func(d *op.Def) {
		run := d.Kernels[0].Run
		d.Kernels = []op.Kernel{{Name: "each", When: d.Kernels[0].When, Run: func(c *op.Run) error {
			if c.Tensor("x").DType() == tensor.BF16 {
				c.Out[0].CopyFrom(c.Tensor("x"))
				return nil
			}
			return run(c)
		}}}
	}},
	{"takes complex numbers and drops a part", rotated, "Kernels", func(d *op.Def) {
		d.Kernels = []op.Kernel{{Name: "turn", When: op.DTypeIn("x", tensor.C64, tensor.C128), Run: func(c *op.Run) error {
			for i := range c.Out[0].Len() {
				c.Out[0].Set(i, complex(0, real(c.Tensor("x").At(i))))
			}
			return nil
		}}}
		d.Traits, d.Grad = op.NoGrad, nil
	}},
	{"a fast path that is wrong", bent, "Kernels", func(d *op.Def) {
		short := op.Pred{Text: "short", Holds: func(a op.Args) bool { return tensor.NumElements(a.Value("x").Shape()) < 6 }}
		d.Exact, d.Tol, d.NotSplittable, d.SBP = nil, op.Tol{Class: op.Exact, Reason: "test"}, "test", nil
		d.Kernels = append(d.Kernels, op.Kernel{Name: "short", Priority: 1, When: op.And(short, op.DTypeIn("x", float...)), Run: each(float, func(x float64, _ op.Args) float64 { return x })[0].Run})
	}},
	{"too little scratch", bent, "Kernels", func(d *op.Def) {
		d.Kernels[0].Scratch = func(op.Args) int { return 8 }
		d.Kernels = wrapped(d, func(c *op.Run, run func(*op.Run) error) error {
			c.Scratch[c.Out[0].Len()/2] = 1
			return run(c)
		})
	}},
	{"reports a part", bent, "Kernels", func(d *op.Def) {
		d.Kernels = wrapped(d, func(c *op.Run, run func(*op.Run) error) error {
			err := run(c)
			if c.Done != nil {
				c.Done(0, c.Out[0].Len()/2)
			}
			return err
		})
		d.Kernels[0].Reports = true
	}},
	{"indices of one too far", rowmax, "Grad", func(d *op.Def) {
		run := d.Kernels[0].Run
		d.Kernels[0].Run = func(c *op.Run) error {
			err := run(c)
			for i := range c.Out[1].Len() {
				c.Out[1].SetInt(i, (c.Out[1].Int(i)+1)%int64(c.Tensor("x").Shape()[c.Tensor("x").Dim()-1]))
			}
			return err
		}
	}},
	// Mutates, Fixed, Unread, Neutral, Itself, Canonical, Constant.
	{"mutates in silence", counted, "Kernels", func(d *op.Def) { d.Mutates = nil }},
	{"mutates nothing", bent, "Mutates", func(d *op.Def) { d.Mutates, d.Traits, d.Grad = []op.TensorArg{"x"}, op.NoGrad, nil }},
	{"reads what is unread", bent, "Unread", func(d *op.Def) { d.Unread = func(op.Args) []op.TensorArg { return []op.TensorArg{"x"} } }},
	{"a neutral number that is none", clipped, "Neutral", func(d *op.Def) { d.Neutral = func(a op.Args) bool { return a.Scalar("limit").Float() == 1 } }},
	{"itself, and is not", bent, "Itself", func(d *op.Def) { d.Itself = func(op.Args) bool { return true } }},
	{"constant, and is not", bent, "Constant", func(d *op.Def) { d.Constant = func(op.Args) []op.TensorArg { return []op.TensorArg{"x"} } }},
	// Compose, Formula, Exact, Law.
	{"a composition of an operator that there is not", swished, "Compose", func(d *op.Def) {
		d.Compose = func(b op.Builder, a op.Args) []op.Value { return []op.Value{b.Op("logistic", a.Value("x"))} }
	}},
	{"a formula of something else", bent, "Formula", func(d *op.Def) {
		d.Formula = func(b op.Builder, a op.Args) []op.Value { return []op.Value{b.Op("tanh", a.Value("x"))} }
	}},
	{"an Exact that is wrong below zero", bent, "Kernels", func(d *op.Def) {
		exact := d.Exact
		d.Exact = func(a op.Args) op.Truth {
			return op.InFloat64(func(x ...float64) float64 { return exact(a).Round(tensor.F64, math.Abs(x[0])) })
		}
	}},
	{"an Exact that panics", bent, "Exact", func(d *op.Def) {
		d.Exact = func(op.Args) op.Truth { return op.InFloat64(func(x ...float64) float64 { return x[1] }) }
	}},
	{"an Exact of no call", bent, "Exact", func(d *op.Def) { d.Exact = func(op.Args) op.Truth { return nil } }},
	{"another law", noise, "Law", func(d *op.Def) {
		run := d.Kernels[0].Run
		d.Kernels[0].Run = func(c *op.Run) error {
			err := run(c)
			for i := range c.Out[0].Len() {
				c.Out[0].Set(i, c.Out[0].At(i)*c.Out[0].At(i))
			}
			return err
		}
	}},
	// Sample.
	{"never draws the attribute", leaky, "Sample", func(d *op.Def) { d.Sample = func(s *op.Sampler) []any { return []any{s.Distinct(s.Shape(0, 4)...)} } }},
	{"never draws dilation > 1", windowed, "Sample", func(d *op.Def) {
		d.Sample = func(s *op.Sampler) []any { return []any{s.Tensor(-1, 1, 5+s.Index(4)), int(s.Int(1, 4))} }
	}},
	{"never draws the optional tensor", affine, "Sample", func(d *op.Def) {
		d.Sample = func(s *op.Sampler) []any {
			n := s.Dims(3)
			return []any{s.Tensor(-1, 1, n[0], n[1]), s.Tensor(-1, 1, n[1], n[2])}
		}
	}},
	{"never reaches the branch that is wrong", bent, "Kernels", func(d *op.Def) {
		f := func(x float64) float64 { return x*x/(math.Sqrt(x*x+1)+1)/2 + x }
		d.Kernels = each(float, func(x float64, _ op.Args) float64 {
			if x < 0 {
				return -f(-x)
			}
			return f(x)
		})
		d.Sample = func(s *op.Sampler) []any { return []any{s.Tensor(0.1, 3, s.Shape(0, 4)...)} }
	}},
	{"never draws negative numbers", swished, "Sample", func(d *op.Def) {
		d.Sample = func(s *op.Sampler) []any { return []any{s.Tensor(0.1, 3, s.Shape(0, 3)...), s.Float(0.5, 2)} }
	}},
	{"panics", bent, "Sample", func(d *op.Def) {
		d.Sample = func(s *op.Sampler) []any { return []any{s.Tensor(-3, 3, s.Shape(0, 4)[2:]...)} }
	}},
	{"too many arguments", bent, "Sample", func(d *op.Def) { d.Sample = func(s *op.Sampler) []any { return []any{s.Tensor(-3, 3, 2), 0.5} } }},
	{"outside of the domain", bent, "Sample", func(d *op.Def) { d.Domains = map[op.TensorArg]op.Domain{"x": op.UnitRange} }},
	// Grad.
	{"a sign", bent, "Grad", func(d *op.Def) { d.Grad = func(g *op.Grad) { g.To("x", func() op.Value { return g.Neg(g.G()) }) } }},
	{"no sum over a broadcast dimension", hypotenuse, "Grad", func(d *op.Def) {
		d.Grad = func(g *op.Grad) {
			g.To("x", func() op.Value { return g.Mul(g.G(), g.Div(g.Value("x"), g.Out[0])) })
			g.To("y", func() op.Value {
				v := g.Mul(g.G(), g.Div(g.Value("y"), g.Out[0]))
				for len(v.Shape()) > 1 {
					v = g.Op("select", v, 0, 0)
				}
				return v
			})
		}
	}},
	{"a gradient that needs another", hypotenuse, "Grad", func(d *op.Def) {
		d.Grad = func(g *op.Grad) {
			if g.Needs("y") {
				g.To("x", func() op.Value { return g.Mul(g.G(), g.Div(g.Value("x"), g.Out[0])) })
				g.To("y", func() op.Value { return g.Mul(g.G(), g.Div(g.Value("y"), g.Out[0])) })
			}
		}
	}},
	{"the second order", bent, "Grad", func(d *op.Def) {
		d.Grad = func(g *op.Grad) {
			x := g.Value("x")
			g.To("x", func() op.Value {
				return g.Mul(g.G(), g.Add(g.Mul(g.Op("sin", g.Op("atan", g.Op("detach", x))), 0.5), 1))
			})
		}
	}},
	{"no conjugate", rotated, "Grad", func(d *op.Def) {
		d.Grad = func(g *op.Grad) { g.To("x", func() op.Value { return g.Mul(g.G(), complex(0, 1)) }) }
	}},
	{"a gradient that panics", bent, "Grad", func(d *op.Def) {
		d.Grad = func(g *op.Grad) { g.To("x", func() op.Value { return g.Value("y") }) }
	}},
	{"an operator that there is not", bent, "Grad", func(d *op.Def) {
		d.Grad = func(g *op.Grad) { g.To("x", func() op.Value { return g.Op("bent_backward", g.G()) }) }
	}},
	{"wrong where Sample does not draw", bent, "Grad", func(d *op.Def) {
		grad := d.Grad
		d.Grad = func(g *op.Grad) {
			if x, ok := g.Value("x").(interface{ Float(int) float64 }); ok && tensor.NumElements(g.Value("x").Shape()) > 0 && x.Float(0) < 0 {
				g.To("x", func() op.Value { return g.G() })
				return
			}
			grad(g)
		}
		d.Sample = func(s *op.Sampler) []any { return []any{s.Tensor(0.1, 3, s.Shape(1, 3)...)} }
	}},
	{"fails in bfloat16", bent, "Grad", func(d *op.Def) {
		grad := d.Grad
		d.Grad = func(g *op.Grad) {
			if g.G().DType() == tensor.BF16 {
				op.Fail(op.RuntimeError("no bfloat16"))
			}
			grad(g)
		}
	}},
}, slices.Concat(subtle, keeping, large, overRanks, elsewhere)...)

func square(op.Args) op.Truth { return op.InFloat64(func(x ...float64) float64 { return x[0] * x[0] }) }

// pairs is a kernel of f of the elements of x and y.
func pairs(f func(x, y float64) float64) []op.Kernel {
	return []op.Kernel{{Name: "pairs", When: op.And(op.DTypeIn("x", float...), op.DTypeIn("y", float...)), Run: func(c *op.Run) error {
		x, err := c.Tensor("x").Expand(c.Out[0].Shape()...)
		if err != nil {
			return err
		}
		y, err := c.Tensor("y").Expand(c.Out[0].Shape()...)
		if err != nil {
			return err
		}
		for i := range c.Out[0].Len() {
			c.Out[0].Set(i, complex(f(x.Float(i), y.Float(i)), 0))
		}
		return nil
	}}}
}

func rowKernel(f func(row *tensor.Tensor) float64) []op.Kernel {
	return []op.Kernel{{Name: "rows", When: op.DTypeIn("x", float...), Run: func(c *op.Run) error {
		return rows(c, func(row *tensor.Tensor, i int) { c.Out[0].Set(i, complex(f(row), 0)) })
	}}}
}

// wrapped runs a kernel within another.
func wrapped(d *op.Def, run func(c *op.Run, original func(*op.Run) error) error) []op.Kernel {
	ks := slices.Clone(d.Kernels)
	for i := range ks {
		original := ks[i].Run
		ks[i].Run = func(c *op.Run) error { return run(c, original) }
	}
	return ks
}

// withX is a run with another tensor for x.
func withX(c *op.Run, x *tensor.Tensor) *op.Run {
	own := *c
	own.Args = c.Args.MapValues(func(op.Value) op.Value { return x })
	return &own
}

// linear reads memory in a row for tensors of at least so many dimensions.
func linear(k op.Kernel, dims int) []op.Kernel {
	return wrapped(&op.Def{Kernels: []op.Kernel{k}}, func(c *op.Run, run func(*op.Run) error) error {
		x := c.Tensor("x")
		if x.Dim() < dims {
			return run(c)
		}
		y, err := tensor.FromBytes(x.DType(), x.Shape(), tensor.ContiguousStrides(x.Shape()), x.Offset(), x.Storage())
		if err != nil {
			return err
		}
		return run(withX(c, y))
	})
}

func laidLike(t *tensor.Tensor) *tensor.Tensor {
	u := tensor.NewStrided(t.DType(), t.Shape(), t.Strides())
	u.CopyFrom(t)
	return u
}

// allVariable is the variable of the environment with which every broken literal is
// checked, not each third alone.
const allVariable = "PLUMB_OPCHECK_ALL"

// sampled returns every third of n, or all where the environment says so.
func sampled(n int) (all []int) {
	step := 3
	if os.Getenv(allVariable) != "" {
		step = 1
	}
	for i := 0; i < n; i += step {
		all = append(all, i)
	}
	return all
}

func TestBrokenOnesAreFound(t *testing.T) {
	found, tried := 0, sampled(len(broken))
	for _, i := range tried {
		b := broken[i]
		d := b.of()
		b.plant(d)
		tb, err := op.NewTable(append([]*op.Def{d}, theirs...)...)
		if err != nil {
			t.Errorf("%s: %v", b.name, err)
			continue
		}
		r := opcheck.Run(tb, d.ID(), opcheck.Options{})
		named := func(f opcheck.Finding) bool { return f.Field == b.field || strings.Contains(f.Text, b.field) }
		if slices.ContainsFunc(r.Findings, named) {
			found++
			continue
		}
		t.Logf("%s of %s: want a finding of %s, got %v", b.name, d.ID(), b.field, r.Findings)
	}
	if t.Logf("%d of %d are found", found, len(tried)); found < len(tried) {
		t.Errorf("%d of %d are found", found, len(tried))
	}
}
