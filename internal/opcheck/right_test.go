package opcheck_test

import (
	"math"
	"math/cmplx"

	"plumb/op"
	"plumb/tensor"
)

// right are operators of varied kind, nothing of which is wrong.
var right = map[string]func() *op.Def{
	"leaky": leaky, "bent": bent, "celu": celu, "hypotenuse": hypotenuse, "rowsum": rowsum, "rowmax": rowmax, "turned": turned,
	"counted": counted, "noise": noise, "swished": swished, "affine": affine, "tripled": tripled, "rotated": rotated, "windowed": windowed,
	"positives": positives, "below": below, "rounded": rounded, "first": first, "summed": summed, "clipped": clipped, "shapeof": shapeof, "listed": listed,
	"pick": pick, "halved": halved, "normed": normed, "peaked": peaked, "weighed": weighed, "flattened": flattened, "totalled": totalled, "squared": squared,
	"stepped": stepped, "ramped": ramped, "slanted": slanted, "blocked": blocked, "sent": sent,
}

var float = []tensor.DType{tensor.F32, tensor.F64}

func like(a op.Args) ([]op.Meta, error) {
	return []op.Meta{{DType: a.Value("x").DType(), Shape: a.Value("x").Shape()}}, nil
}

// each is a kernel that computes f of every element of x.
func each(dtypes []tensor.DType, f func(x float64, a op.Args) float64) []op.Kernel {
	return []op.Kernel{{Name: "each", When: op.DTypeIn("x", dtypes...), Run: func(c *op.Run) error {
		for i := range c.Out[0].Len() {
			c.Out[0].Set(i, complex(f(c.Tensor("x").Float(i), c.Args), 0))
		}
		return nil
	}}}
}

func pointwise(ulp float64) op.Tol { return op.Tol{Class: op.Pointwise, ULP: ulp, Reason: "test"} }

func evenly(a op.Args) []op.Sharding {
	var all []op.Sharding
	for i := range a.Value("x").Shape() {
		all = append(all, op.Sharding{Args: map[string]op.SBP{"x": op.S(i)}, Results: []op.SBP{op.S(i)}})
	}
	return all
}

func leaky() *op.Def {
	return &op.Def{
		Sig: "my_leaky(Tensor x, float alpha=0.01) -> Tensor", Names: []string{"torch.nn.functional.leaky_relu(input, negative_slope)"},
		Doc: "x for x > 0, alpha·x elsewhere.", Infer: like, SBP: evenly, Tol: pointwise(1),
		Kernels: each([]tensor.DType{tensor.F32, tensor.F64, tensor.BF16}, func(x float64, a op.Args) float64 {
			if x > 0 {
				return x
			}
			return x * a.Float("alpha")
		}),
		Grad: func(g *op.Grad) {
			positive := g.Op("gt", g.Value("x"), 0)
			g.To("x", func() op.Value { return g.Op("where", positive, g.G(), g.Mul(g.G(), g.Float("alpha"))) })
		},
		Sample: func(s *op.Sampler) []any { return []any{s.Distinct(s.Shape(0, 4)...), s.Float(0, 1)} },
	}
}

func bent() *op.Def {
	return &op.Def{
		Sig: "bent(Tensor x) -> Tensor", Doc: "(√(x² + 1) - 1)/2 + x.", Infer: like, SBP: evenly, Tol: pointwise(4), Traits: op.Monotone,
		Kernels: each([]tensor.DType{tensor.F32, tensor.F64, tensor.BF16}, func(x float64, _ op.Args) float64 { return x*x/(math.Sqrt(x*x+1)+1)/2 + x }),
		Grad: func(g *op.Grad) {
			x := g.Value("x")
			g.To("x", func() op.Value { return g.Mul(g.G(), g.Add(g.Mul(g.Op("sin", g.Op("atan", x)), 0.5), 1)) })
		},
		Sample: func(s *op.Sampler) []any { return []any{s.Tensor(-3, 3, s.Shape(0, 4)...)} },
		Exact: func(op.Args) op.Truth {
			return op.InFloat64(func(x ...float64) float64 { return x[0]*math.Tan(math.Atan(x[0])/2)/2 + x[0] })
		},
	}
}

// celu computes by expm1, as PyTorch does not: near zero, its truth decides.
func celu() *op.Def {
	return &op.Def{
		Sig: "my_celu(Tensor x, float alpha=1.0) -> Tensor", Names: []string{"torch.nn.functional.celu(input, alpha)"},
		Doc: "x for x > 0, alpha·(e^(x/alpha) - 1) elsewhere.", Infer: like, SBP: evenly, Tol: pointwise(4),
		Kernels: each(float, func(x float64, a op.Args) float64 {
			if alpha := a.Float("alpha"); x <= 0 {
				return alpha * math.Expm1(x/alpha)
			}
			return x
		}),
		Grad: func(g *op.Grad) {
			x := g.Value("x")
			g.To("x", func() op.Value {
				return g.Op("where", g.Op("gt", x, 0), g.G(), g.Mul(g.G(), g.Op("exp", g.Div(x, g.Float("alpha")))))
			})
		},
		Sample: func(s *op.Sampler) []any { return []any{s.Distinct(s.Shape(0, 3)...), s.Float(0.5, 2)} },
		Exact: func(a op.Args) op.Truth {
			alpha := a.Float("alpha")
			return op.InFloat64(func(x ...float64) float64 {
				if x[0] > 0 {
					return x[0]
				}
				h := x[0] / alpha / 2
				return alpha * 2 * math.Sinh(h) * math.Exp(h)
			})
		},
	}
}

func broadcast(a op.Args) ([]op.Meta, error) {
	shape, err := tensor.BroadcastShapes(a.Value("x").Shape(), a.Value("y").Shape())
	if err != nil {
		return nil, op.RuntimeError("%v", err)
	}
	return []op.Meta{{DType: a.Promoted(op.TensorArg("x"), op.TensorArg("y")), Shape: shape}}, nil
}

func hypotenuse() *op.Def {
	return &op.Def{
		Sig: "hypotenuse(Tensor x, Tensor y) -> Tensor", Doc: "√(x² + y²).", Infer: broadcast, Tol: pointwise(2), Traits: op.Commutative,
		NotSplittable: "the test says so",
		Kernels: []op.Kernel{{Name: "pairs", When: op.And(op.DTypeIn("x", float...), op.DTypeIn("y", float...)), Run: func(c *op.Run) error {
			x, _ := c.Tensor("x").Expand(c.Out[0].Shape()...)
			y, _ := c.Tensor("y").Expand(c.Out[0].Shape()...)
			for i := range c.Out[0].Len() {
				c.Out[0].Set(i, complex(math.Hypot(x.Float(i), y.Float(i)), 0))
			}
			return nil
		}}},
		Grad: func(g *op.Grad) {
			g.To("x", func() op.Value { return g.Mul(g.G(), g.Div(g.Value("x"), g.Out[0])) })
			g.To("y", func() op.Value { return g.Mul(g.G(), g.Div(g.Value("y"), g.Out[0])) })
		},
		Sample: func(s *op.Sampler) []any {
			shape := s.Shape(1, 3)
			return []any{s.Distinct(shape...), s.Distinct(shape[len(shape)-1])}
		},
		Exact: func(op.Args) op.Truth {
			return op.InFloat64(func(x ...float64) float64 {
				if math.IsInf(x[0], 0) || math.IsInf(x[1], 0) {
					return math.Inf(1)
				}
				return cmplx.Abs(complex(x[0], x[1]))
			})
		},
	}
}

// rows walks the last dimension of x.
func rows(c *op.Run, f func(row *tensor.Tensor, i int)) error {
	x := c.Tensor("x").Contiguous()
	n := x.Shape()[x.Dim()-1]
	flat, _ := x.View(x.Len()/max(n, 1), n)
	for i := range flat.Shape()[0] {
		f(flat.Select(0, i), i)
	}
	return nil
}

func lastGone(a op.Args) ([]int, error) {
	shape := a.Value("x").Shape()
	if len(shape) == 0 {
		return nil, op.RuntimeError("my operator wants at least one dimension")
	}
	return shape[:len(shape)-1], nil
}

func rowsum() *op.Def {
	return &op.Def{
		Sig: "rowsum(Tensor x, bool keepdim=False) -> Tensor", Doc: "The sum over the last dimension.",
		Tol: op.Tol{Class: op.Accumulating, OwnMagnitude: true, Reason: "test", Terms: func(a op.Args) int { s := a.Value("x").Shape(); return s[len(s)-1] }},
		Infer: func(a op.Args) ([]op.Meta, error) {
			shape, err := lastGone(a)
			if err == nil && a.Bool("keepdim") {
				shape = append(append([]int{}, shape...), 1)
			}
			return []op.Meta{{DType: a.Value("x").DType(), Shape: shape}}, err
		},
		SBP: func(a op.Args) []op.Sharding {
			all := []op.Sharding{{Args: map[string]op.SBP{"x": op.P}, Results: []op.SBP{op.P}}}
			for i := range a.Value("x").Shape() {
				out := op.S(i)
				if i == len(a.Value("x").Shape())-1 {
					out = op.P
				}
				all = append(all, op.Sharding{Args: map[string]op.SBP{"x": op.S(i)}, Results: []op.SBP{out}})
			}
			return all
		},
		Kernels: []op.Kernel{{Name: "rows", When: op.DTypeIn("x", float...), Run: func(c *op.Run) error {
			return rows(c, func(row *tensor.Tensor, i int) {
				sum := 0.0
				for k := range row.Len() {
					sum += row.Float(k)
				}
				c.Out[0].Set(i, complex(sum, 0))
			})
		}}},
		Grad: func(g *op.Grad) {
			x := g.Value("x")
			g.To("x", func() op.Value {
				d := g.G()
				if !g.Bool("keepdim") {
					d = g.Op("unsqueeze", d, -1)
				}
				return g.Expand(d, x.Shape())
			})
		},
		Sample: func(s *op.Sampler) []any { return []any{s.Tensor(-1, 1, s.Shape(1, 3)...), s.Bool()} },
	}
}

func rowmax() *op.Def {
	return &op.Def{
		Sig: "rowmax(Tensor x) -> (Tensor values, Tensor indices)", Doc: "The largest of the last dimension, and where it is.",
		Tol: op.Tol{Class: op.Exact, Reason: "selects"}, NotSplittable: "the test says so", Traits: op.Monotone,
		Infer: func(a op.Args) ([]op.Meta, error) {
			shape, err := lastGone(a)
			if err == nil && a.Value("x").Shape()[len(shape)] == 0 {
				err = op.IndexError("of nothing there is no largest")
			}
			return []op.Meta{{DType: a.Value("x").DType(), Shape: shape}, {DType: tensor.I64, Shape: shape}}, err
		},
		Kernels: []op.Kernel{{Name: "rows", When: op.DTypeIn("x", float...), Run: func(c *op.Run) error {
			return rows(c, func(row *tensor.Tensor, i int) {
				at := 0
				for k := range row.Len() {
					if v := row.Float(k); v > row.Float(at) || math.IsNaN(v) && !math.IsNaN(row.Float(at)) {
						at = k
					}
				}
				c.Out[0].Set(i, row.At(at))
				c.Out[1].SetInt(i, int64(at))
			})
		}}},
		Grad: func(g *op.Grad) {
			x := g.Value("x")
			g.To("x", func() op.Value {
				return g.Op("scatter", g.Mul(x, 0), -1, g.Op("unsqueeze", g.Out[1], -1), g.Op("unsqueeze", g.G(), -1))
			})
		},
		Sample: func(s *op.Sampler) []any { return []any{s.Distinct(s.Shape(1, 3)...)} },
	}
}

func turned() *op.Def {
	turn := func(a op.Args) ([]int, []int, error) {
		x := a.Value("x")
		if len(x.Shape()) != 2 {
			return nil, nil, op.RuntimeError("turned expects a matrix, got shape %s", tensor.ShapeString(x.Shape()))
		}
		return []int{x.Shape()[1], x.Shape()[0]}, []int{x.Strides()[1], x.Strides()[0]}, nil
	}
	return &op.Def{
		Sig: "turned(Tensor x) -> Tensor", Doc: "The transposed matrix, a view.", Traits: op.View | op.Involution, Tol: op.Tol{Class: op.Exact, Reason: "a view"},
		Infer: func(a op.Args) ([]op.Meta, error) {
			shape, strides, err := turn(a)
			return []op.Meta{{DType: a.Value("x").DType(), Shape: shape, Strides: strides}}, err
		},
		View: func(a op.Args) (*tensor.Tensor, error) {
			if _, _, err := turn(a); err != nil {
				return nil, err
			}
			return a.Tensor("x").Permute(1, 0), nil
		},
		SBP: func(op.Args) []op.Sharding {
			return []op.Sharding{{Args: map[string]op.SBP{"x": op.S(0)}, Results: []op.SBP{op.S(1)}}, {Args: map[string]op.SBP{"x": op.S(1)}, Results: []op.SBP{op.S(0)}}, {Args: map[string]op.SBP{"x": op.P}, Results: []op.SBP{op.P}}}
		},
		Grad:   func(g *op.Grad) { g.To("x", func() op.Value { return g.Op("turned", g.G()) }) },
		Sample: func(s *op.Sampler) []any { return []any{s.Tensor(-1, 1, s.Dims(2)...)} },
	}
}

// counted counts its calls in an argument.
func counted() *op.Def {
	return &op.Def{
		Sig: "counted(Tensor x, Tensor calls) -> Tensor", Doc: "x, and calls + 1 in place.", Infer: like, Mutates: []op.TensorArg{"calls"},
		Tol: op.Tol{Class: op.Exact, Reason: "a copy"}, NotSplittable: "it counts",
		Kernels: []op.Kernel{{Name: "count", When: op.DTypeIn("x", float...), Run: func(c *op.Run) error {
			c.Out[0].CopyFrom(c.Tensor("x"))
			for i := range c.Tensor("calls").Len() {
				c.Tensor("calls").Set(i, c.Tensor("calls").At(i)+1)
			}
			return nil
		}}},
		Grad:   func(g *op.Grad) { g.To("x", func() op.Value { return g.G() }) },
		Sample: func(s *op.Sampler) []any { return []any{s.Distinct(s.Shape(0, 3)...), s.Tensor(-1, 9)} },
	}
}

func noise() *op.Def {
	return &op.Def{
		Sig: "noise(Tensor x) -> Tensor", Doc: "Uniform numbers of [0, 1) in the shape of x.", Infer: like, Traits: op.Random | op.NoGrad | op.ShapeOnly,
		Tol: op.Tol{Class: op.Statistical, Reason: "drawn"}, NotSplittable: "it draws",
		Kernels: []op.Kernel{{Name: "uniform", When: op.DTypeIn("x", tensor.F64), Run: func(c *op.Run) error {
			words := make([]uint64, c.Out[0].Len())
			c.Random(words, 0)
			for i, w := range words {
				c.Out[0].Set(i, complex(float64(w>>11)*0x1p-53, 0))
			}
			return nil
		}}},
		Sample: func(s *op.Sampler) []any { return []any{s.Distinct(s.Shape(1, 3)...)} },
		Law: func(op.Args) *op.Law {
			return &op.Law{Support: "[0, 1)", Draws: func(out *tensor.Tensor) ([]op.Draw, error) {
				var ds []op.Draw
				for i := range out.Len() {
					v := out.Float(i)
					ds = append(ds, op.Draw{At: i, Below: v, Upto: v})
				}
				return ds, nil
			}}
		},
	}
}

func swished() *op.Def {
	return &op.Def{
		Sig: "swished(Tensor x, float beta=1.0) -> Tensor", Doc: "x·σ(beta·x).", Tol: pointwise(8),
		Compose: func(b op.Builder, a op.Args) []op.Value {
			x := a.Value("x")
			return []op.Value{b.Mul(x, b.Op("sigmoid", b.Mul(x, a.Float("beta"))))}
		},
		Sample: func(s *op.Sampler) []any { return []any{s.Tensor(-3, 3, s.Shape(0, 3)...), s.Float(0.5, 2)} },
	}
}

func affine() *op.Def {
	return &op.Def{
		Sig: "affine(Tensor x, Tensor w, Tensor? bias=None) -> Tensor", Doc: "x·w + bias.", Traits: op.Contraction, NotSplittable: "the test says so",
		Tol: op.Tol{Class: op.Accumulating, OwnMagnitude: true, Reason: "sums of products", Terms: func(a op.Args) int { return a.Value("w").Shape()[0] + 1 }},
		Infer: func(a op.Args) ([]op.Meta, error) {
			x, w := a.Value("x").Shape(), a.Value("w").Shape()
			if len(x) != 2 || len(w) != 2 || x[1] != w[0] || a.Value("x").DType() != a.Value("w").DType() {
				return nil, op.RuntimeError("shapes %v and %v cannot be multiplied", x, w)
			}
			if b := a.Value("bias"); b != nil && (len(b.Shape()) != 1 || b.Shape()[0] != w[1] || b.DType() != a.Value("x").DType()) {
				return nil, op.RuntimeError("bias of shape %v", b.Shape())
			}
			return []op.Meta{{DType: a.Value("x").DType(), Shape: []int{x[0], w[1]}}}, nil
		},
		Kernels: []op.Kernel{{Name: "plain", When: op.DTypeIn("x", float...), Run: func(c *op.Run) error {
			x, w := c.Tensor("x"), c.Tensor("w")
			n := w.Shape()[1]
			for i := range c.Out[0].Len() {
				sum := 0.0
				for k := range w.Shape()[0] {
					sum += x.Float(i/n*w.Shape()[0]+k) * w.Float(k*n+i%n)
				}
				if b := c.Tensor("bias"); b != nil {
					sum += b.Float(i % n)
				}
				c.Out[0].Set(i, complex(sum, 0))
			}
			return nil
		}}},
		Grad: func(g *op.Grad) {
			g.To("x", func() op.Value { return g.Op("matmul", g.G(), g.Op("transpose", g.Value("w"), 0, 1)) })
			g.To("w", func() op.Value { return g.Op("matmul", g.Op("transpose", g.Value("x"), 0, 1), g.G()) })
			g.To("bias", func() op.Value { return g.G() })
		},
		Sample: func(s *op.Sampler) []any {
			d := s.Dims(3)
			args := []any{s.Tensor(-1, 1, d[0], d[1]), s.Tensor(-1, 1, d[1], d[2])}
			if s.Bool() {
				args = append(args, s.Tensor(-1, 1, d[2]))
			}
			return args
		},
	}
}

func tripled() *op.Def {
	return &op.Def{
		Sig: "tripled(Tensor x) -> Tensor", Doc: "3·x + 1 of integers.", Infer: like, SBP: evenly, Traits: op.NoGrad, Tol: op.Tol{Class: op.Exact, Reason: "integers"},
		Kernels: []op.Kernel{{Name: "int", When: op.DTypeIn("x", tensor.I64, tensor.I32), Run: func(c *op.Run) error {
			for i := range c.Out[0].Len() {
				c.Out[0].SetInt(i, 3*c.Tensor("x").Int(i)+1)
			}
			return nil
		}}},
		Sample: func(s *op.Sampler) []any {
			x := tensor.New(s.DType, s.Shape(0, 3)...)
			for i := range x.Len() {
				x.SetInt(i, s.Int(-50, 50))
			}
			return []any{x}
		},
		Exact: func(op.Args) op.Truth {
			return op.InFloat64(func(x ...float64) float64 { return math.FMA(x[0], 3, 1) })
		},
	}
}

func rotated() *op.Def {
	return &op.Def{
		Sig: "rotated(Tensor x) -> Tensor", Doc: "i·x.", Infer: like, SBP: evenly, Tol: op.Tol{Class: op.Exact, Reason: "swaps parts"},
		Kernels: []op.Kernel{{Name: "turn", When: op.DTypeIn("x", tensor.C64, tensor.C128), Run: func(c *op.Run) error {
			for i := range c.Out[0].Len() {
				v := c.Tensor("x").At(i)
				c.Out[0].Set(i, complex(-imag(v), real(v)))
			}
			return nil
		}}},
		Grad:   func(g *op.Grad) { g.To("x", func() op.Value { return g.Mul(g.G(), complex(0, -1)) }) },
		Sample: func(s *op.Sampler) []any { return []any{s.Tensor(-1, 1, s.Shape(0, 3)...)} },
	}
}

// windowed averages windows of a vector, with holes.
func windowed() *op.Def {
	length := func(a op.Args) (int, error) {
		x, k, d := a.Value("x").Shape(), a.Int("size"), a.Int("dilation")
		if k < 1 || d < 1 || k > 100 || d > 100 {
			return 0, op.RuntimeError("windowed: size %d and dilation %d have to be from 1 to 100", k, d)
		}
		if len(x) != 1 || x[0] < d*(k-1)+1 {
			return 0, op.RuntimeError("windowed: shape %v has no window of %d entries %d apart", x, k, d)
		}
		return x[0] - d*(k-1), nil
	}
	return &op.Def{
		Sig: "windowed(Tensor x, int size, int dilation=1) -> Tensor", Doc: "The mean of size entries, dilation apart.", NotSplittable: "windows overlap",
		Tol: op.Tol{Class: op.Accumulating, OwnMagnitude: true, Fractional: true, Reason: "sums", Terms: func(a op.Args) int { return a.Int("size") }},
		Infer: func(a op.Args) ([]op.Meta, error) {
			n, err := length(a)
			return []op.Meta{{DType: a.Value("x").DType(), Shape: []int{n}}}, err
		},
		Kernels: []op.Kernel{{Name: "windows", When: op.DTypeIn("x", float...), Run: func(c *op.Run) error {
			for i := range c.Out[0].Len() {
				sum := 0.0
				for k := range c.Int("size") {
					sum += c.Tensor("x").Float(i + k*c.Int("dilation"))
				}
				c.Out[0].Set(i, complex(sum/float64(c.Int("size")), 0))
			}
			return nil
		}}},
		Grad: func(g *op.Grad) {
			x, n := g.Value("x"), g.Out[0].Shape()[0]
			g.To("x", func() op.Value {
				var sum op.Value
				for k := range g.Int("size") {
					at := k * g.Int("dilation")
					d := g.Op("pad", g.G(), []int{at, x.Shape()[0] - n - at})
					if sum == nil {
						sum = d
					} else {
						sum = g.Add(sum, d)
					}
				}
				return g.Div(sum, g.Int("size"))
			})
		},
		Sample: func(s *op.Sampler) []any {
			size, dilation := int(s.Int(1, 4)), int(s.Int(1, 4))
			return []any{s.Tensor(-1, 1, dilation*(size-1)+int(s.Int(1, 5))), size, dilation}
		},
	}
}

// positives has as many results as there are positive elements.
func positives() *op.Def {
	of := func(x *tensor.Tensor) (found []float64) {
		for i := range x.Len() {
			if x.Float(i) > 0 {
				found = append(found, x.Float(i))
			}
		}
		return found
	}
	return &op.Def{
		Sig: "positives(Tensor x) -> Tensor", Doc: "The positive elements.", Traits: op.Dynamic | op.NoGrad, Tol: op.Tol{Class: op.Exact, Reason: "selects"},
		Infer: func(a op.Args) ([]op.Meta, error) {
			x := a.Tensor("x")
			if x == nil {
				return nil, op.ErrNoElements
			}
			return []op.Meta{{DType: x.DType(), Shape: []int{len(of(x))}}}, nil
		},
		Kernels: []op.Kernel{{Name: "select", When: op.DTypeIn("x", float...), Run: func(c *op.Run) error {
			for i, v := range of(c.Tensor("x")) {
				c.Out[0].Set(i, complex(v, 0))
			}
			return nil
		}}},
		Sample: func(s *op.Sampler) []any { return []any{s.Distinct(s.Shape(1, 2)...)} },
	}
}

func below() *op.Def {
	return &op.Def{
		Sig: "below(Tensor x, Tensor y) -> Tensor", Doc: "Whether x < y.", Traits: op.NoGrad | op.Compares, Tol: op.Tol{Class: op.Exact, Reason: "compares"},
		NotSplittable: "the test says so", Names: []string{"torch.lt(input, other)"},
		Infer: func(a op.Args) ([]op.Meta, error) {
			m, err := broadcast(a)
			if err == nil {
				m[0].DType = tensor.Bool
			}
			return m, err
		},
		Kernels: []op.Kernel{{Name: "compare", When: op.And(op.DTypeIn("x", float...), op.DTypeIn("y", float...)), Run: func(c *op.Run) error {
			x, _ := c.Tensor("x").Expand(c.Out[0].Shape()...)
			y, _ := c.Tensor("y").Expand(c.Out[0].Shape()...)
			for i := range c.Out[0].Len() {
				v := 0.0
				if x.Float(i) < y.Float(i) {
					v = 1
				}
				c.Out[0].Set(i, complex(v, 0))
			}
			return nil
		}}},
		Sample: func(s *op.Sampler) []any { x := s.Dims(2); return []any{s.Tensor(-1, 1, x...), s.Tensor(-1, 1, x[1])} },
	}
}

func rounded() *op.Def {
	return &op.Def{
		Sig: "rounded(Tensor x, str mode='down') -> Tensor", Doc: "⌊x⌋, or ⌈x⌉ if mode is 'up'.", Infer: like, SBP: evenly, Traits: op.Idempotent | op.Monotone,
		Tol: op.Tol{Class: op.Exact, Reason: "an integer"}, Choices: []string{"mode"},
		Reject: func(a op.Args) error {
			if m := a.Str("mode"); m != "up" && m != "down" {
				return op.ValueError("mode '%s' is neither 'up' nor 'down'", m)
			}
			return nil
		},
		Kernels: each(float, func(x float64, a op.Args) float64 {
			if a.Str("mode") == "up" {
				return math.Ceil(x)
			}
			return math.Floor(x)
		}),
		Grad: func(g *op.Grad) { g.To("x", func() op.Value { return g.Mul(g.G(), 0) }) },
		Sample: func(s *op.Sampler) []any {
			return []any{s.Tensor(-5, 5, s.Shape(0, 3)...), []string{"up", "down"}[s.Index(2)]}
		},
		Exact: func(a op.Args) op.Truth {
			return op.InFloat64(func(x ...float64) float64 {
				down, fraction := math.Modf(x[0])
				switch {
				case math.IsInf(x[0], 0):
					return x[0]
				case a.Str("mode") == "up" && fraction > 0:
					return down + 1
				case a.Str("mode") == "down" && fraction < 0:
					return down - 1
				}
				return down
			})
		},
	}
}

// first is the entry at an index of a dimension.
func first() *op.Def {
	wrap := func(a op.Args) (dim int, err error) {
		n := len(a.Value("x").Shape())
		if dim = a.Int("dim"); dim < -n || dim >= n || n == 0 {
			return 0, op.IndexError("dim %d of %d dimensions", dim, n)
		}
		dim = (dim + n) % n
		if a.Value("x").Shape()[dim] == 0 {
			return 0, op.IndexError("dimension %d is empty", dim)
		}
		return dim, nil
	}
	without := func(v []int, dim int) []int { return append(append([]int{}, v[:dim]...), v[dim+1:]...) }
	return &op.Def{
		Sig: "first(Tensor x, int dim=0) -> Tensor", Doc: "Entry 0 of a dimension, a view.", Traits: op.View, Tol: op.Tol{Class: op.Exact, Reason: "a view"}, NotSplittable: "the test says so",
		Infer: func(a op.Args) ([]op.Meta, error) {
			dim, err := wrap(a)
			if err != nil {
				return nil, err
			}
			return []op.Meta{{DType: a.Value("x").DType(), Shape: without(a.Value("x").Shape(), dim), Strides: without(a.Value("x").Strides(), dim)}}, nil
		},
		View: func(a op.Args) (*tensor.Tensor, error) {
			dim, err := wrap(a)
			if err != nil {
				return nil, err
			}
			return a.Tensor("x").Select(dim, 0), nil
		},
		Grad: func(g *op.Grad) {
			x, dim := g.Value("x"), g.Int("dim")
			g.To("x", func() op.Value {
				return g.Op("select_scatter", g.Mul(x, 0), g.G(), dim, 0)
			})
		},
		Sample: func(s *op.Sampler) []any {
			shape := s.Shape(1, 3)
			return []any{s.Tensor(-1, 1, shape...), int(s.Int(int64(-len(shape)), int64(len(shape))))}
		},
	}
}

// summed adds a list of tensors.
func summed() *op.Def {
	return &op.Def{
		Sig: "summed(Tensor[] xs) -> Tensor", Doc: "The sum of tensors of one shape.", NotSplittable: "the test says so",
		Tol: op.Tol{Class: op.Accumulating, OwnMagnitude: true, Reason: "a sum", Terms: func(a op.Args) int { return len(a.Values("xs")) }},
		Infer: func(a op.Args) ([]op.Meta, error) {
			xs := a.Values("xs")
			if len(xs) == 0 {
				return nil, op.RuntimeError("summed expects a non-empty list of tensors")
			}
			for _, x := range xs {
				if tensor.ShapeString(x.Shape()) != tensor.ShapeString(xs[0].Shape()) || x.DType() != xs[0].DType() || !x.DType().IsFloat() {
					return nil, op.RuntimeError("summed expects tensors of one shape and floating dtype")
				}
			}
			return []op.Meta{{DType: xs[0].DType(), Shape: xs[0].Shape()}}, nil
		},
		Kernels: []op.Kernel{{Name: "sum", Run: func(c *op.Run) error {
			for i := range c.Out[0].Len() {
				sum := 0.0
				for _, x := range c.Tensors("xs") {
					sum += x.Float(i)
				}
				c.Out[0].Set(i, complex(sum, 0))
			}
			return nil
		}}},
		Grad: func(g *op.Grad) {
			for _, x := range g.Values("xs") {
				g.ToValue(x, func() op.Value { return g.G() })
			}
		},
		Sample: func(s *op.Sampler) []any {
			shape, list := s.Shape(0, 2), []any{}
			for range s.Int(1, 4) {
				list = append(list, s.Tensor(-1, 1, shape...))
			}
			return []any{list}
		},
	}
}

func clipped() *op.Def {
	return &op.Def{
		Sig: "clipped(Tensor x, Scalar limit) -> Tensor", Doc: "min(max(x, -limit), limit).", Infer: like, SBP: evenly, Traits: op.Idempotent | op.Monotone,
		Tol: op.Tol{Class: op.Exact, Reason: "selects"},
		Reject: func(a op.Args) error {
			if !(a.Scalar("limit").Float() >= 0) {
				return op.RuntimeError("limit %v is negative", a.Scalar("limit").Float())
			}
			return nil
		},
		Kernels: each([]tensor.DType{tensor.F64}, func(x float64, a op.Args) float64 {
			limit := a.Scalar("limit").Float()
			switch {
			case x > limit:
				return limit
			case x < -limit:
				return -limit
			}
			return x
		}),
		Grad: func(g *op.Grad) {
			x := g.Value("x")
			inside := g.Op("le", g.Op("abs", x), g.Scalar("limit").Float())
			g.To("x", func() op.Value { return g.Op("where", inside, g.G(), g.Mul(g.G(), 0)) })
		},
		Sample: func(s *op.Sampler) []any { return []any{s.Distinct(s.Shape(0, 3)...), s.Float(0.1, 0.4)} },
		Exact: func(a op.Args) op.Truth {
			limit := a.Scalar("limit").Float()
			return op.InFloat64(func(x ...float64) float64 { return math.Max(-limit, math.Min(limit, x[0])) })
		},
	}
}

func shapeof() *op.Def {
	return &op.Def{
		Sig: "shapeof(Tensor x) -> Tensor", Doc: "The sizes of x.", Traits: op.NoGrad | op.ShapeOnly, Tol: op.Tol{Class: op.Exact, Reason: "integers"}, NotSplittable: "sizes are those of the whole",
		Infer: func(a op.Args) ([]op.Meta, error) {
			return []op.Meta{{DType: tensor.I64, Shape: []int{len(a.Value("x").Shape())}}}, nil
		},
		Kernels: []op.Kernel{{Name: "sizes", Run: func(c *op.Run) error {
			for i, n := range c.Tensor("x").Shape() {
				c.Out[0].SetInt(i, int64(n))
			}
			return nil
		}}},
		Sample: func(s *op.Sampler) []any { return []any{s.Tensor(-1, 1, s.Shape(0, 4)...)} },
	}
}
