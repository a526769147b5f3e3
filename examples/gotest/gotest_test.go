package gotest

import (
	"testing"

	"plumb"
	"plumb/api"
	"plumb/check"
	"plumb/op"
	"plumb/ops"
	"plumb/tensor"
)

// TestConvTranspose2D calls a module by PyTorch's name. Its parameters are the
// reference's; their gradients are compared too.
func TestConvTranspose2D(t *testing.T) {
	plumb.Check(t, func(p *plumb.T) {
		channels := p.Int(1, 6)
		m := p.Module("nn.ConvTranspose2d", channels, p.Int(1, 20),
			plumb.Kw("kernel_size", p.Int(1, 4)),
			plumb.Kw("stride", p.Maybe(p.Int(1, 4))))
		x := p.Tensor(plumb.NDim(4), plumb.Dim(1, channels))
		p.Return(m.Call(x))
	}, plumb.N(50))
}

// TestNormalise mixes functions, methods, operators and indices.
func TestNormalise(t *testing.T) {
	plumb.Check(t, func(p *plumb.T) {
		x := p.Tensor(plumb.Dims(p.Int(1, 5), p.Int(2, 9)), plumb.DType(plumb.Pick(p, tensor.F32, tensor.F64)))
		centred := x.Sub(x.Method("mean", -1, plumb.Kw("keepdim", true)))
		y := p.Torch("tanh", centred).Div(p.Float(1, 3))
		p.Return(y.Index(plumb.Ellipsis, plumb.Slice(nil, nil, p.OneOf(1, 2))))
	})
}

// TestTyped uses the functions of package api, which the compiler checks.
func TestTyped(t *testing.T) {
	plumb.Check(t, func(p *plumb.T) {
		x := p.Tensor(plumb.NDim(p.Int(2, 5)), plumb.Low(0.1), plumb.High(3)).Typed()
		y := plumb.Must(api.Mul(plumb.Must(api.Log(x)), plumb.Must(api.Softmax(x, -1))))
		p.Return(plumb.Must(api.Sum(y, api.SumOptions{Dim: []int{0}, Keepdim: p.Bool()})))
	})
}

// TestLoop looks at a shape: what is computed follows from what was drawn.
func TestLoop(t *testing.T) {
	plumb.Check(t, func(p *plumb.T) {
		x := p.Tensor(plumb.NDim(3), plumb.Dim(0, p.Int(1, 5)))
		total := x.Index(0)
		for i := 1; i < x.Shape()[0]; i++ {
			total = total.Add(x.Index(i))
		}
		p.Return(total)
	})
}

// mish is an operator of this module under PyTorch's name for it: it stands
// before Plumb's own in the table, and is judged in its place.
var mish = &op.Def{
	Sig:   "my_mish(Tensor input) -> Tensor",
	Names: []string{"torch.nn.functional.mish"},
	Doc:   "x·tanh(softplus(x)).",
	Compose: func(b op.Builder, a op.Args) []op.Value {
		x := a.Value("input")
		return []op.Value{b.Mul(x, b.Op("tanh", b.Op("softplus", x)))}
	},
	Sample: func(s *op.Sampler) []any { return []any{s.Tensor(-5, 5, s.Shape(0, 4)...)} },
	Tol:    op.Tol{Class: op.Pointwise, ULP: 16, Reason: "three functions of at most 5 ULP each"},
}

func TestOwnOperator(t *testing.T) {
	table, err := op.NewTable(append([]*op.Def{mish}, ops.All()...)...)
	if err != nil {
		t.Fatal(err)
	}
	plumb.Check(t, func(p *plumb.T) {
		x := p.Tensor(plumb.NDim(2), plumb.Low(-5), plumb.High(5))
		p.Return(p.Torch("nn.functional.mish", x).Mul(x))
	}, plumb.Table(table))
	t.Run("literal", func(t *testing.T) { check.Operator(t, table, "my_mish") })
}
