package opcheck_test

import (
	"math"
	"runtime"
	"strings"
	"testing"

	"plumb/internal/opcheck"
	"plumb/op"
	"plumb/tensor"
)

// subtle are more literals with one mistake each: those that no call of a usual kind
// shows.
var subtle = []mistake{
	{"a mutated argument that is strided", counted, "Mutates", func(d *op.Def) {
		d.Sample = func(s *op.Sampler) []any { return []any{s.Distinct(s.Shape(0, 3)...), s.Tensor(-1, 9, 3)} }
		d.Kernels = wrapped(d, func(c *op.Run, run func(*op.Run) error) error {
			calls := c.Tensor("calls")
			flat, err := tensor.FromBytes(calls.DType(), calls.Shape(), tensor.ContiguousStrides(calls.Shape()), calls.Offset(), calls.Storage())
			if err != nil {
				return err
			}
			own := *c
			own.Args = c.Args.MapValues(func(v op.Value) op.Value {
				if v == op.Value(calls) {
					return flat
				}
				return v
			})
			return run(&own)
		})
	}},
	{"scratch that is zero", bent, "Kernels", func(d *op.Def) {
		d.Kernels = wrapped(d, func(c *op.Run, run func(*op.Run) error) error {
			err := run(c)
			for i := range c.Out[0].Len() {
				c.Out[0].Set(i, c.Out[0].At(i)+complex(float64(c.Scratch[0]), 0))
			}
			return err
		})
		d.Kernels[0].Scratch = func(op.Args) int { return 8 }
	}},
	{"reports before it computes", bent, "Kernels", func(d *op.Def) {
		d.Kernels = wrapped(d, func(c *op.Run, run func(*op.Run) error) error {
			if c.Done != nil {
				c.Done(0, c.Out[0].Len())
			}
			return run(c)
		})
		d.Kernels[0].Reports = true
	}},
	{"a negative dimension is not wrapped", pick, "Kernels", func(d *op.Def) {
		d.Kernels[0].Run = pickAlong(func(dim, _ int) int { return max(dim, 0) })
		d.Sample = func(s *op.Sampler) []any {
			shape := s.Shape(1, 3)
			return []any{s.Distinct(shape...), s.Index(len(shape))}
		}
		d.Formula = nil
	}},
	{"a formula that is the operator", rowsum, "Formula", func(d *op.Def) {
		d.Formula = func(b op.Builder, a op.Args) []op.Value {
			return []op.Value{b.Op("rowsum", a.Value("x"), a.Bool("keepdim"))}
		}
	}},
	{"an overload that Sample never draws", hypotenuse, "Sample", func(d *op.Def) { d.More = []string{"hypotenuse(Tensor x, Scalar y) -> Tensor"} }},
	{"a kernel that is never chosen", bent, "Kernels", func(d *op.Def) {
		d.Kernels = append(d.Kernels, op.Kernel{Name: "fast", When: op.DTypeIn("x", tensor.F32), Run: func(*op.Run) error { return nil }})
	}},
	{"wrong in five dimensions", bent, "Kernels", func(d *op.Def) {
		d.Kernels = wrapped(d, func(c *op.Run, run func(*op.Run) error) error {
			err := run(c)
			if x := c.Tensor("x"); x.Dim() > 4 && x.Len() > 0 {
				c.Out[0].Set(c.Out[0].Len()-1, 0)
			}
			return err
		})
	}},
	{"Infer changes the shape of the argument", rowsum, "Infer", func(d *op.Def) {
		d.Infer = func(a op.Args) ([]op.Meta, error) {
			shape := a.Value("x").Shape()
			if len(shape) == 0 {
				return nil, op.RuntimeError("rowsum wants a dimension")
			}
			m := op.Meta{DType: a.Value("x").DType(), Shape: append([]int{}, shape[:len(shape)-1]...)}
			if a.Bool("keepdim") {
				shape[len(shape)-1] = 1
				m.Shape = shape
			}
			return []op.Meta{m}, nil
		}
	}},
	{"a gradient that remembers", bent, "Grad", func(d *op.Def) {
		grad, times := d.Grad, 0
		d.Grad = func(g *op.Grad) {
			if times++; times%2 == 0 {
				g.To("x", func() op.Value { return g.Mul(g.G(), 2) })
				return
			}
			grad(g)
		}
	}},
	{"random numbers that repeat", noise, "Law", func(d *op.Def) {
		d.Kernels[0].Run = func(c *op.Run) error {
			words := make([]uint64, min(c.Out[0].Len(), 64))
			c.Random(words, 0)
			for i := range c.Out[0].Len() {
				c.Out[0].Set(i, complex(float64(words[i%64]>>11)*0x1p-53, 0))
			}
			return nil
		}
	}},
	{"a magnitude of something smaller", rowsum, "Magnitude", func(d *op.Def) { d.Tol.OwnMagnitude = false; d.Magnitude = "neg" }},
	{"two attributes together", windowed, "Kernels", func(d *op.Def) {
		run := d.Kernels[0].Run
		d.Kernels[0].Run = func(c *op.Run) error {
			err := run(c)
			if c.Int("size") > 2 && c.Int("dilation") > 2 && c.Out[0].Len() > 0 {
				c.Out[0].Set(0, c.Tensor("x").At(0))
			}
			return err
		}
		d.Formula = func(b op.Builder, a op.Args) []op.Value {
			size, dilation := a.Int("size"), a.Int("dilation")
			n := a.Value("x").Shape()[0] - dilation*(size-1)
			sum := b.Narrow(a.Value("x"), 0, 0, n)
			for k := 1; k < size; k++ {
				sum = b.Add(sum, b.Narrow(a.Value("x"), 0, k*dilation, n))
			}
			return []op.Value{b.Div(sum, size)}
		}
	}},
	{"truncates where it has to floor", halved, "Kernels", func(d *op.Def) {
		d.Kernels[0].Run = func(c *op.Run) error {
			for i := range c.Out[0].Len() {
				c.Out[0].SetInt(i, c.Tensor("x").Int(i)/2)
			}
			return nil
		}
	}},
	{"partial where it adds a number", tripled, "SBP", func(d *op.Def) {
		d.SBP = func(op.Args) []op.Sharding {
			return []op.Sharding{{Args: map[string]op.SBP{"x": op.P}, Results: []op.SBP{op.P}}}
		}
	}},
	{"the gradient of the values alone", normed, "Grad", func(d *op.Def) {
		d.Grad = func(g *op.Grad) {
			g.To("x", func() op.Value {
				if g.Cot[0] == nil {
					return g.Mul(g.Value("x"), 0)
				}
				return g.Cot[0]
			})
		}
	}},
	{"broadcasts what Sample draws alone", hypotenuse, "Kernels", func(d *op.Def) {
		d.Kernels[0].Run = func(c *op.Run) error {
			x, y := c.Tensor("x"), c.Tensor("y")
			for i := range c.Out[0].Len() {
				c.Out[0].Set(i, complex(math.Hypot(x.Float(i%x.Len()), y.Float(i%y.Len())), 0))
			}
			return nil
		}
	}},
	{"the dtype of the first tensor", hypotenuse, "Infer", func(d *op.Def) {
		d.Infer = func(a op.Args) ([]op.Meta, error) {
			m, err := broadcast(a)
			if err == nil {
				m[0].DType = a.Value("x").DType()
			}
			return m, err
		}
	}},
	{"NaN lost beside a formula", peaked, "Kernels", func(d *op.Def) {
		d.Kernels = rowKernel(func(row *tensor.Tensor) float64 {
			largest := math.Inf(-1)
			for k := range row.Len() {
				if v := row.Float(k); v > largest {
					largest = v
				}
			}
			return largest
		})
	}},
	{"a class that is no exception", clipped, "Reject", func(d *op.Def) {
		d.Reject = func(a op.Args) error {
			if !(a.Scalar("limit").Float() >= 0) {
				return &op.Error{Class: "limit", Msg: "is negative"}
			}
			return nil
		}
	}},
	{"one buffer for all calls", bent, "Kernels", func(d *op.Def) {
		buffer := make([]float64, 1<<17)
		d.Kernels = wrapped(d, func(c *op.Run, run func(*op.Run) error) error {
			x := c.Tensor("x")
			if x.Len() > len(buffer) {
				return run(c)
			}
			for i := range x.Len() {
				buffer[i] = x.Float(i)
			}
			runtime.Gosched()
			for i := range x.Len() {
				v := buffer[i]
				c.Out[0].Set(i, complex(v*v/(math.Sqrt(v*v+1)+1)/2+v, 0))
			}
			return nil
		})
	}},
	{"a kernel changes the shape of its argument", rowsum, "Kernels", func(d *op.Def) {
		run := d.Kernels[0].Run
		d.Kernels[0].Run = func(c *op.Run) error {
			err := run(c)
			if shape := c.Tensor("x").Shape(); len(shape) > 1 {
				shape[0], shape[1] = shape[1], shape[0]
			}
			return err
		}
	}},
	{"a choice that Sample never draws", rounded, "Sample", func(d *op.Def) {
		d.Sig, d.OneOf, d.Reject = "rounded(Tensor x, str mode='down') -> Tensor", map[op.StrArg][]string{"mode": {"up", "down", "odd"}}, nil
	}},
	{"no gradient of a tensor without dimensions", bent, "Grad", func(d *op.Def) {
		grad := d.Grad
		d.Grad = func(g *op.Grad) {
			_ = g.Value("x").Shape()[0]
			grad(g)
		}
		d.Sample = func(s *op.Sampler) []any { return []any{s.Tensor(-3, 3, s.Shape(1, 4)...)} }
	}},
	{"no gradient of an empty tensor", rowsum, "Grad", func(d *op.Def) {
		grad := d.Grad
		d.Grad = func(g *op.Grad) {
			_ = 1 / tensor.NumElements(g.Value("x").Shape())
			grad(g)
		}
	}},
	{"a sum that is split as if it were the largest", peaked, "SBP", func(d *op.Def) {
		d.NotSplittable = ""
		d.SBP = func(a op.Args) []op.Sharding {
			last := len(a.Value("x").Shape()) - 1
			return []op.Sharding{{Args: map[string]op.SBP{"x": op.S(last)}, Results: []op.SBP{op.P}}}
		}
	}},
	{"uneven pieces", flattened, "SBP", func(d *op.Def) {
		d.SBP = func(op.Args) []op.Sharding {
			return []op.Sharding{{Args: map[string]op.SBP{"x": op.S(0)}, Results: []op.SBP{op.S(0)}}}
		}
	}},
	{"neighbours that share a draw", noise, "Law", func(d *op.Def) {
		d.Kernels[0].Run = func(c *op.Run) error {
			words := make([]uint64, c.Out[0].Len())
			c.Random(words, 0)
			for i := range words {
				c.Out[0].Set(i, complex(float64(words[i/2*2]>>11)*0x1p-53, 0))
			}
			return nil
		}
	}},
	{"complex numbers beside a formula", totalled, "Kernels", func(d *op.Def) {
		d.Kernels = wrapped(d, func(c *op.Run, run func(*op.Run) error) error {
			err := run(c)
			for i := range c.Out[0].Len() {
				if v := c.Out[0].At(i); c.Out[0].DType().IsComplex() {
					c.Out[0].Set(i, complex(real(v), 1.25*imag(v)))
				}
			}
			return err
		})
		d.Grad, d.Traits, d.SBP, d.NotSplittable = nil, op.NoGrad, nil, "test"
	}},
	{"integers beside a formula", totalled, "Kernels", func(d *op.Def) {
		d.Kernels = wrapped(d, func(c *op.Run, run func(*op.Run) error) error {
			err := run(c)
			for i := range c.Out[0].Len() {
				if c.Out[0].DType() == tensor.I64 {
					c.Out[0].SetInt(i, c.Out[0].Int(i)&^1)
				}
			}
			return err
		})
	}},
	{"a kernel of halves that overflows", squared, "Kernels", func(d *op.Def) {
		d.Kernels = each([]tensor.DType{tensor.F16, tensor.F32, tensor.F64}, func(x float64, _ op.Args) float64 {
			h := tensor.Scalar(tensor.F16, complex(x*x, 0)).Float(0)
			return h
		})
	}},
}

// flattened has the elements of a matrix in a row.
func flattened() *op.Def {
	return &op.Def{
		Sig: "flattened(Tensor x) -> Tensor", Doc: "The elements of a matrix in a row.", Tol: op.Tol{Class: op.Exact, Reason: "a copy"},
		Infer: func(a op.Args) ([]op.Meta, error) {
			x := a.Value("x")
			if len(x.Shape()) != 2 {
				return nil, op.RuntimeError("flattened expects a matrix, got shape %s", tensor.ShapeString(x.Shape()))
			}
			return []op.Meta{{DType: x.DType(), Shape: []int{x.Shape()[0] * x.Shape()[1]}}}, nil
		},
		SBP: func(op.Args) []op.Sharding {
			return []op.Sharding{{Args: map[string]op.SBP{"x": op.S(0)}, Results: []op.SBP{op.S(0)}, Even: true}}
		},
		Kernels: each(float, func(x float64, _ op.Args) float64 { return x }),
		Grad:    func(g *op.Grad) { g.To("x", func() op.Value { return g.Reshape(g.G(), g.Value("x").Shape()) }) },
		Sample:  func(s *op.Sampler) []any { return []any{s.Tensor(-1, 1, s.Dims(2)...)} },
		Formula: func(b op.Builder, a op.Args) []op.Value { return []op.Value{b.Reshape(a.Value("x"), []int{-1})} },
	}
}

// totalled is rowsum of integers and complex numbers too.
func totalled() *op.Def {
	d := rowsum()
	d.Sig = "totalled(Tensor x, bool keepdim=False) -> Tensor"
	d.Kernels = []op.Kernel{{Name: "rows", When: op.DTypeIn("x", tensor.I64, tensor.F64, tensor.C128), Run: func(c *op.Run) error {
		return rows(c, func(row *tensor.Tensor, i int) {
			var sum complex128
			var whole int64
			for k := range row.Len() {
				if c.Out[0].DType() == tensor.I64 {
					whole += row.Int(k)
				} else {
					sum += row.At(k)
				}
			}
			if c.Out[0].Set(i, sum); c.Out[0].DType() == tensor.I64 {
				c.Out[0].SetInt(i, whole)
			}
		})
	}}}
	d.Sample = func(s *op.Sampler) []any {
		x := s.Tensor(-1, 1, s.Shape(1, 3)...)
		for i := range x.Len() {
			if s.DType == tensor.I64 {
				x.SetInt(i, s.Int(-50, 50))
			}
		}
		return []any{x, s.Bool()}
	}
	d.Formula = func(b op.Builder, a op.Args) []op.Value {
		return []op.Value{b.Op("sum", a.Value("x"), op.Kw("dim", []int{-1}), op.Kw("keepdim", a.Bool("keepdim")))}
	}
	return d
}

// peaked is the largest of the last dimension.
func peaked() *op.Def {
	d := rowmax()
	d.Sig, d.Doc = "peaked(Tensor x) -> Tensor", "The largest of the last dimension."
	infer := d.Infer
	d.Infer = func(a op.Args) ([]op.Meta, error) {
		m, err := infer(a)
		return m[:1], err
	}
	d.Kernels = rowKernel(func(row *tensor.Tensor) float64 {
		largest := row.Float(0)
		for k := range row.Len() {
			if v := row.Float(k); v > largest || math.IsNaN(v) {
				largest = v
			}
		}
		return largest
	})
	d.Grad, d.Traits = nil, op.NoGrad|op.Monotone
	d.Formula = func(b op.Builder, a op.Args) []op.Value { return []op.Value{b.Op("amax", a.Value("x"), -1)} }
	return d
}

// weighed is every other entry of the last dimension; its formula multiplies the
// others by zero.
func weighed() *op.Def {
	d := rowmax()
	d.Sig, d.Doc = "weighed(Tensor x, Scalar by) -> Tensor", "by·(the sum of entries 0, 2, … of the last dimension)."
	infer := d.Infer
	d.Infer = func(a op.Args) ([]op.Meta, error) {
		m, err := infer(a)
		return m[:1], err
	}
	d.Kernels = []op.Kernel{{Name: "rows", When: op.DTypeIn("x", float...), Run: func(c *op.Run) error {
		return rows(c, func(row *tensor.Tensor, i int) {
			sum := 0.0
			for k := 0; k < row.Len(); k += 2 {
				sum += row.Float(k)
			}
			c.Out[0].Set(i, complex(sum*c.Scalar("by").Float(), 0))
		})
	}}}
	d.Grad, d.Traits, d.Tol = nil, op.NoGrad, op.Tol{Class: op.Accumulating, Reason: "a sum", Terms: func(a op.Args) int { return 1 + a.Value("x").Shape()[len(a.Value("x").Shape())-1] }}
	d.Sample = func(s *op.Sampler) []any { return []any{s.Distinct(s.Shape(1, 3)...), s.Float(0.5, 2)} }
	d.Formula = func(b op.Builder, a op.Args) []op.Value {
		x := a.Value("x")
		even := b.Op("remainder", b.Op("add", b.Arange(x.Shape()[len(x.Shape())-1]), 1), 2)
		return []op.Value{b.Mul(b.Op("sum", b.Mul(x, even), op.Kw("dim", []int{-1})), a.Scalar("by").Float())}
	}
	return d
}

// squared is x².
func squared() *op.Def {
	d := bent()
	d.Sig, d.Doc, d.Exact, d.Traits, d.Tol = "squared(Tensor x) -> Tensor", "x².", square, 0, pointwise(1)
	d.Kernels = each([]tensor.DType{tensor.F16, tensor.F32, tensor.F64}, func(x float64, _ op.Args) float64 { return x * x })
	d.Grad = func(g *op.Grad) { g.To("x", func() op.Value { return g.Mul(g.G(), g.Mul(g.Value("x"), 2)) }) }
	return d
}

// TestAttributesWithoutEffect: one on which no result depends is listed, and no other.
func TestAttributesWithoutEffect(t *testing.T) {
	d := leaky()
	d.Sig, d.Names = "my_leaky(Tensor x, float alpha=0.01, bool square=False) -> Tensor", nil
	d.Sample = func(s *op.Sampler) []any { return []any{s.Distinct(s.Shape(0, 4)...), s.Float(0, 1), s.Bool()} }
	var told []string
	for _, g := range opcheck.Run(table(t, d), d.ID(), opcheck.Options{}).Unchecked {
		if g.Field == "Sig" {
			told = append(told, g.Why)
		}
	}
	if len(told) != 1 || !strings.HasPrefix(told[0], "square: ") {
		t.Errorf("told of %q", told)
	}
}

// pick is the first entry along a dimension, copied.
func pick() *op.Def {
	shapeOf := func(a op.Args) (dim int, shape []int, err error) {
		x := a.Value("x").Shape()
		if dim = a.Int("dim"); dim < -len(x) || dim >= len(x) || len(x) == 0 {
			return 0, nil, op.IndexError("dim %d of %d dimensions", dim, len(x))
		}
		if dim = (dim + len(x)) % len(x); x[dim] == 0 {
			return 0, nil, op.IndexError("dimension %d is empty", dim)
		}
		return dim, append(append([]int{}, x[:dim]...), x[dim+1:]...), nil
	}
	return &op.Def{
		Sig: "pick(Tensor x, int dim) -> Tensor", Doc: "Entry 0 of a dimension, copied.", Tol: op.Tol{Class: op.Exact, Reason: "a copy"}, NotSplittable: "the test says so",
		Infer: func(a op.Args) ([]op.Meta, error) {
			_, shape, err := shapeOf(a)
			return []op.Meta{{DType: a.Value("x").DType(), Shape: shape}}, err
		},
		Kernels: []op.Kernel{{Name: "pick", When: op.DTypeIn("x", float...), Run: pickAlong(func(dim, n int) int { return (dim + n) % n })}},
		Grad: func(g *op.Grad) {
			x := g.Value("x")
			g.To("x", func() op.Value { return g.Op("select_scatter", g.Mul(x, 0), g.G(), g.Int("dim"), 0) })
		},
		Sample: func(s *op.Sampler) []any {
			shape := s.Shape(1, 3)
			return []any{s.Distinct(shape...), s.Index(len(shape)) - len(shape)*s.Index(2)}
		},
		Formula: func(b op.Builder, a op.Args) []op.Value {
			return []op.Value{b.Op("select", a.Value("x"), a.Int("dim"), 0)}
		},
	}
}

func pickAlong(wrap func(dim, n int) int) func(c *op.Run) error {
	return func(c *op.Run) error {
		x := c.Tensor("x")
		from := x.Select(wrap(c.Int("dim"), x.Dim()), 0)
		for i := range min(c.Out[0].Len(), from.Len()) {
			c.Out[0].Set(i, from.At(i))
		}
		return nil
	}
}

// halved is ⌊x/2⌋ of integers.
func halved() *op.Def {
	d := tripled()
	d.Sig, d.Doc = "halved(Tensor x) -> Tensor", "⌊x/2⌋ of integers."
	d.Kernels[0].Run = func(c *op.Run) error {
		for i := range c.Out[0].Len() {
			c.Out[0].SetInt(i, c.Tensor("x").Int(i)>>1)
		}
		return nil
	}
	d.Exact = func(op.Args) op.Truth {
		return op.InFloat64(func(x ...float64) float64 { return math.Floor(x[0] / 2) })
	}
	return d
}

// normed has x and its square, both of which have gradients.
func normed() *op.Def {
	return &op.Def{
		Sig: "normed(Tensor x) -> (Tensor same, Tensor square)", Doc: "x and x².", Tol: pointwise(1), NotSplittable: "the test says so",
		Infer: func(a op.Args) ([]op.Meta, error) {
			m, err := like(a)
			return append(m, m...), err
		},
		Kernels: []op.Kernel{{Name: "both", When: op.DTypeIn("x", float...), Run: func(c *op.Run) error {
			for i := range c.Out[0].Len() {
				v := c.Tensor("x").Float(i)
				c.Out[0].Set(i, complex(v, 0))
				c.Out[1].Set(i, complex(v*v, 0))
			}
			return nil
		}}},
		Grad: func(g *op.Grad) {
			x := g.Value("x")
			g.To("x", func() op.Value {
				var sum op.Value
				if g.Cot[0] != nil {
					sum = g.Cot[0]
				}
				if g.Cot[1] != nil {
					second := g.Mul(g.Mul(g.Cot[1], x), 2)
					if sum == nil {
						return second
					}
					sum = g.Add(sum, second)
				}
				return sum
			})
		},
		Sample: func(s *op.Sampler) []any { return []any{s.Tensor(-2, 2, s.Shape(0, 3)...)} },
		Formula: func(b op.Builder, a op.Args) []op.Value {
			return []op.Value{b.Clone(a.Value("x")), b.Mul(a.Value("x"), a.Value("x"))}
		},
	}
}
