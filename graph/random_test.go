package graph

import (
	"math"
	"slices"
	"testing"

	"plumb/internal/draw/choice"
	"plumb/internal/eager"
	"plumb/op"
	"plumb/ops"
	"plumb/tensor"
)

// step is a way to make a value of random others; it fails where they do not fit.
type step struct {
	weight int
	make   func(b op.Builder, s *choice.Source, old func() op.Value) op.Value
}

func unary(ids ...string) func(op.Builder, *choice.Source, func() op.Value) op.Value {
	return func(b op.Builder, s *choice.Source, old func() op.Value) op.Value {
		return b.Op(pick(s, ids), old())
	}
}

func binary(ids ...string) func(op.Builder, *choice.Source, func() op.Value) op.Value {
	return func(b op.Builder, s *choice.Source, old func() op.Value) op.Value {
		return b.Op(pick(s, ids), old(), old())
	}
}

var scalars = []op.Scalar{op.ScalarOf(0.0), op.ScalarOf(math.Copysign(0, -1)), op.ScalarOf(1.0), op.ScalarOf(int64(1)), op.ScalarOf(int64(0)), op.ScalarOf(2.5)}

// steps mix elementwise operators, views, reductions, conversions, draws and
// what passes look for.
var steps = []step{
	{4, unary("neg", "abs", "relu", "exp", "tanh", "sigmoid", "floor", "sign", "clone", "square")},
	{4, binary("add", "sub", "mul", "div", "maximum", "minimum")},
	{2, binary("gt", "eq", "le")},
	{4, func(b op.Builder, s *choice.Source, old func() op.Value) op.Value {
		return b.Op(pick(s, []string{"add", "sub", "mul", "div"}), old(), pick(s, scalars))
	}},
	{1, func(b op.Builder, s *choice.Source, old func() op.Value) op.Value {
		x := old()
		return b.Op(pick(s, []string{"sub", "mul", "maximum", "eq"}), x, x)
	}},
	{1, func(b op.Builder, s *choice.Source, old func() op.Value) op.Value {
		id := pick(s, []string{"neg", "abs", "relu", "exp", "floor", "sign"})
		return b.Op(id, b.Op(id, old()))
	}},
	{2, func(b op.Builder, s *choice.Source, old func() op.Value) op.Value {
		return b.Op("clamp", old(), op.Kw("min", pick(s, []op.Scalar{op.ScalarOf(-1.0), op.ScalarOf(0.5)})))
	}},
	{5, func(b op.Builder, s *choice.Source, old func() op.Value) op.Value {
		dts := []tensor.DType{tensor.F32, tensor.F64, tensor.F16, tensor.I64, tensor.I32, tensor.Bool}
		x := old()
		y := b.Op("to", x, pick(s, dts))
		return b.Op("to", y, pick(s, append(dts, x.DType(), x.DType())))
	}},
	{3, func(b op.Builder, s *choice.Source, old func() op.Value) op.Value {
		x := old()
		n := int64(len(x.Shape()))
		return b.Op("transpose", x, int(s.Int(-n, n)), int(s.Int(-n, n)))
	}},
	{1, func(b op.Builder, s *choice.Source, old func() op.Value) op.Value {
		return b.Op("flip", b.Op("flip", old(), []int{int(s.Int(0, 2))}), []int{int(s.Int(0, 2))})
	}},
	{2, func(b op.Builder, s *choice.Source, old func() op.Value) op.Value {
		return b.Op("narrow", old(), 0, int(s.Int(0, 2)), 2)
	}},
	{2, func(b op.Builder, s *choice.Source, old func() op.Value) op.Value {
		return b.Reshape(old(), pick(s, [][]int{{-1}, {3, -1}, {2, -1}, {1, -1}}))
	}},
	{1, func(b op.Builder, s *choice.Source, old func() op.Value) op.Value {
		return b.Op("select", old(), 0, int(s.Int(0, 3)))
	}},
	{2, func(b op.Builder, s *choice.Source, old func() op.Value) op.Value {
		return b.Op(pick(s, []string{"softmax", "cumsum"}), old(), int(s.Int(0, 2)))
	}},
	{2, func(b op.Builder, s *choice.Source, old func() op.Value) op.Value {
		return b.Op("sum", old(), op.Kw("dim", []int{int(s.Int(0, 2))}), op.Kw("keepdim", s.Bool()))
	}},
	{1, func(b op.Builder, s *choice.Source, old func() op.Value) op.Value {
		x := old()
		return b.Op("matmul", x, b.Op("transpose", x, 0, 1))
	}},
	{3, func(b op.Builder, s *choice.Source, old func() op.Value) op.Value {
		x, w := old(), old()
		y := b.Op("linear", x, w)
		if s.Bool() {
			y = b.Op("matmul", x, b.Op("transpose", w, 0, 1))
		}
		return b.Op(pick(s, []string{"relu", "tanh", "neg", "abs"}), y)
	}},
	{1, func(b op.Builder, s *choice.Source, old func() op.Value) op.Value {
		y := b.Op("linear", old(), old())
		return b.Op("maximum", b.Op("relu", y), b.Op("softmax", y, 0))
	}},
	{1, func(b op.Builder, s *choice.Source, old func() op.Value) op.Value {
		return b.Op("where", b.Op("gt", old(), op.ScalarOf(0.0)), old(), old())
	}},
	{1, func(b op.Builder, s *choice.Source, old func() op.Value) op.Value {
		return b.Op("cat", []any{old(), old()}, int(s.Int(0, 2)))
	}},
	{2, func(b op.Builder, s *choice.Source, old func() op.Value) op.Value {
		return b.Op("dropout", old(), 0.5, true)
	}},
	{1, func(b op.Builder, s *choice.Source, old func() op.Value) op.Value {
		return b.Op("rand", []int{3, 4})
	}},
	{2, func(b op.Builder, s *choice.Source, old func() op.Value) op.Value {
		id := pick(s, []string{"zeros", "ones"})
		return b.Add(old(), b.Op(id, pick(s, [][]int{{3, 4}, {4}, {3, 1}})))
	}},
	{1, func(b op.Builder, s *choice.Source, old func() op.Value) op.Value {
		return b.Add(old(), b.Op("tensor", []any{pick(s, []any{1.5, -2.0}), 1.0, 0.0, -1.0}))
	}},
	{1, func(b op.Builder, s *choice.Source, old func() op.Value) op.Value {
		return b.Op("contiguous", old())
	}},
	{1, func(b op.Builder, s *choice.Source, old func() op.Value) op.Value {
		return b.Op("clamp_min", b.Op("clamp_min", old(), op.ScalarOf(-1.0)), op.ScalarOf(0.5))
	}},
	{1, func(b op.Builder, s *choice.Source, old func() op.Value) op.Value {
		x, y := old(), old()
		return b.Op("maximum", b.Sub(x, y), b.Sub(y, x))
	}},
	{1, func(b op.Builder, s *choice.Source, old func() op.Value) op.Value {
		x := old()
		return b.Op("cat", []any{b.Mul(x, op.ScalarOf(0.0)), b.Mul(x, op.ScalarOf(math.Copysign(0, -1)))}, 0)
	}},
}

// randomly applies n random steps, and returns some of what they made and the
// first sum that can be differentiated.
func randomly(b op.Builder, key uint64, n int, x []op.Value) (out []op.Value, loss op.Value) {
	s := choice.New(key)
	pool := slices.Clone(x)
	old := func() op.Value {
		if s.Bool() { // chains
			return pool[len(pool)-1-int(s.Int(0, int64(min(3, len(pool)))))]
		}
		return pick(s, pool)
	}
	var deck []step
	for _, st := range steps {
		deck = append(deck, slices.Repeat([]step{st}, st.weight)...)
	}
	defer marking(b, 0)
	for i := range n {
		switch key % 3 {
		case 1:
			marking(b, 1+i/9)
		case 2:
			marking(b, i/5*(i/5%2))
		}
		st := pick(s, deck)
		_ = op.Catch(func() {
			v := st.make(b, s, old)
			if tensor.NumElements(v.Shape()) <= 400 {
				pool = append(pool, v)
			}
		})
	}
	for i, v := range pool[len(x):] {
		if i == len(pool)-len(x)-1 || s.Int(0, 5) == 0 {
			out = append(out, v)
		}
	}
	for i := len(pool) - 1; i >= len(x) && loss == nil; i-- {
		if pool[i].DType().IsFloat() {
			loss = b.Op("sum", pool[i])
		}
	}
	return out, loss
}

// marking has a graph's builder mark a part from here on, as Checkpoint does; 0 for none.
func marking(b op.Builder, part int) {
	if g, ok := b.Applier.(*Builder); ok {
		g.part = part
	}
}

func someInputs() []*tensor.Tensor {
	nan, inf, neg := math.NaN(), math.Inf(1), math.Copysign(0, -1)
	return []*tensor.Tensor{
		tensor.Float64s(tensor.F32, []int{3, 4}, 1, -2, nan, neg, 0, inf, 0.1, -0.7, 3e20, 1.5, -1, 2),
		tensor.Float64s(tensor.F32, []int{4}, 0.3, -0.3, 2, neg),
		tensor.Float64s(tensor.F64, []int{3, 4}, 0.1, 0.2, -0.3, 1e-9, 7, -8, neg, 0, 1, -1, 300.7, 0.5),
		tensor.Float64s(tensor.I64, []int{3, 4}, 1, 2, -3, 0, 5, 300, 7, -8, 9, 70000, -1, 4),
	}
}

func randomEagerly(key uint64, n int) []*tensor.Tensor {
	s := eager.New(ops.Table())
	s.Seed(key)
	var x []op.Value
	for _, t := range someInputs() {
		x = append(x, s.Leaf(t, t.DType().IsFloat()))
	}
	out, loss := randomly(s.Builder(), key, n, x)
	if loss != nil && eager.RequiresGrad(loss) {
		one, _ := s.Apply("ones_like", []any{loss}, nil)
		if grads, err := s.Backward([]op.Value{loss}, one, false); err == nil {
			for _, v := range x {
				if g := grads[v]; g != nil && v.DType().IsFloat() {
					out = append(out, g)
				}
			}
		}
	}
	var ts []*tensor.Tensor
	for _, v := range out {
		ts = append(ts, v.(*eager.Var).Tensor)
	}
	return ts
}

func randomCode(t *testing.T, key uint64, n int) *Code {
	g := New(ops.Table(), "random", func(b *Builder, x ...op.Value) []op.Value {
		out, loss := randomly(b.Builder, key, n, x)
		if loss == nil {
			return out
		}
		wrt := x[:3]
		grads, err := b.Grads([]op.Value{loss}, []op.Value{nil}, wrt)
		if err != nil {
			return out
		}
		return append(out, slices.DeleteFunc(grads, func(v op.Value) bool { return v == nil })...)
	}, Options{})
	code, err := g.Trace(someInputs()...)
	if err != nil {
		t.Fatal(err)
	}
	return code
}

func equal(got, want []*tensor.Tensor) bool {
	return slices.EqualFunc(got, want, func(a, b *tensor.Tensor) bool { return a != nil && a.SameBits(b) })
}

// gives returns a test of compiled code: whether it gives what eager does, and
// leaves inputs that are not donated as they are.
func gives(key uint64, want []*tensor.Tensor) func(c *Compiled) (ok bool) {
	return func(c *Compiled) (ok bool) {
		defer func() {
			if recover() != nil {
				ok = false
			}
		}()
		inputs := someInputs()
		got, err := c.Run(key, inputs)
		for i, t := range someInputs() {
			if !slices.Contains(c.Code.donated, i) && !t.SameBits(inputs[i]) {
				return false
			}
		}
		return err == nil && equal(got, want)
	}
}

// TestRandomGraphs compares random graphs with eager, bit for bit.
func TestRandomGraphs(t *testing.T) {
	changes := map[string]int{}
	inPlace, reused, given := 0, 0, 0
	for key := range uint64(600) {
		n := 3 + int(key%38)
		want, code := randomEagerly(key, n), randomCode(t, key, n)
		o := Options{Block: 5}
		if key%3 == 0 {
			o.Donate = []int{0, 2}
		}
		c, err := Compile(code, o)
		if err != nil {
			t.Fatal(err)
		}
		if !gives(key, want)(c) {
			t.Fatalf("graph %d differs from eager, since pass %s:\n%s\nwas\n%s", key, Blame(code, o, gives(key, want)), c.Code, code)
		}
		given += c.taken(someInputs())
		for _, s := range c.Stages {
			changes[s.Pass] += s.Changes
		}
		inPlace, reused = inPlace+c.Memory().InPlace, reused+c.Memory().Reused
		if m := c.Memory(); m.Reused > m.All+alignment*len(c.Code.Nodes) {
			t.Errorf("graph %d: memory %s", key, m)
		}
	}
	for _, p := range Passes() {
		if changes[p.Name] < 50 {
			t.Errorf("pass %s made %d changes: the test tests little", p.Name, changes[p.Name])
		}
	}
	if inPlace < 100 || reused == 0 || given < 20 {
		t.Errorf("%d results in place, %d bytes reused, %d donated inputs taken", inPlace, reused, given)
	}
	t.Log(changes, inPlace, given)
}

// taken returns how many results lie in the memory of an input.
func (c *Compiled) taken(inputs []*tensor.Tensor) int {
	out, err := c.Run(0, inputs)
	if err != nil {
		return 0
	}
	count := 0
	for i, v := range c.Code.Outputs {
		if v.node.Kind != Input && slices.ContainsFunc(inputs, out[i].SharesStorage) && c.plan.roots[v] == v {
			count++
		}
	}
	return count
}

func pick[T any](s *choice.Source, of []T) T { return of[s.Index(len(of))] }
