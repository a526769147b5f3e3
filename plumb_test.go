package plumb_test

import (
	"testing"

	"plumb"
	"plumb/api"
	"plumb/tensor"
)

func TestConv2D(t *testing.T) {
	plumb.Check(t, func(p *plumb.T) {
		channels, kernel := p.Int(1, 6), p.Int(1, 4)
		x := p.Tensor(plumb.NDim(4), plumb.Dim(1, channels))
		w := p.Tensor(plumb.Dims(p.Int(1, 6), channels, kernel, kernel))
		p.Return(p.Torch("nn.functional.conv2d", x, w, plumb.Kw("stride", p.Maybe(p.Int(1, 4))), plumb.Kw("padding", p.OneOf(0, 1, []int{2, 1}, "same"))))
	})
}

func TestModule(t *testing.T) {
	plumb.Check(t, func(p *plumb.T) {
		features := p.Int(2, 7)
		m := p.Module("nn.BatchNorm1d", features)
		m.Method("train", p.Bool())
		x := p.Tensor(plumb.Dims(p.Int(2, 5), features))
		p.Return(m.Call(x).Mul(2).Sub(x))
	}, plumb.DTypes(tensor.F32, tensor.F64))
}

func TestTuplesAndValues(t *testing.T) {
	plumb.Check(t, func(p *plumb.T) {
		x := p.Tensor(plumb.NDim(2), plumb.DType(tensor.F64))
		r := p.Torch("max", x, plumb.Kw("dim", 1))
		if n := len(r.Unpack()); n != 2 {
			p.Fatalf("max over a dimension has %d results", n)
		}
		if got := r.At(0).Shape(); len(got) != 1 || got[0] != x.Shape()[0] {
			p.Fatalf("its shape is %v", got)
		}
		n := x.Method("sum").Item().(float64) + 100
		p.Return(r, x.Index(plumb.Ellipsis, plumb.Slice(nil, 1, nil)).Div(n))
	})
}

func TestTyped(t *testing.T) {
	plumb.Check(t, func(p *plumb.T) {
		x := p.Tensor(plumb.NDim(p.Int(2, 4))).Typed()
		y := plumb.Must(api.Softmax(x, -1))
		values, indices, err := api.MaxDim(y, 0, api.MaxDimOptions{Keepdim: p.Bool()})
		plumb.NoError(err)
		z := plumb.Must(api.Add(api.Number(2), plumb.Must(api.Mul(values, plumb.Must(p.Session().Ones(values.Shape()))))))
		parts := plumb.Must(api.Split(x, api.Number(2), api.SplitOptions{Dim: 1}))
		p.Return(z, indices, parts[0], p.Dynamic(y).Method("sum"))
	})
}

func TestLayoutsAndEdges(t *testing.T) {
	plumb.Check(t, func(p *plumb.T) {
		x := p.Tensor(plumb.NDim(4), plumb.Dim(0, p.Int(1, 4)), plumb.Layouts("contiguous", "non-contiguous", "channels_last"))
		y := p.Tensor(plumb.NDim(1), plumb.Dim(0, p.Int(1, 9)), plumb.Special("zeros", "inf", "nan"), plumb.RequiresGrad(false))
		p.Return(p.Torch("tanh", x).Add(p.Torch("relu", y).Method("nansum")))
	})
}

func TestSecondOrder(t *testing.T) {
	plumb.Check(t, func(p *plumb.T) {
		x := p.Tensor(plumb.NDim(2), plumb.DType(tensor.F64))
		p.Return(p.Torch("sin", x).Mul(x))
	}, plumb.SecondOrder())
}

func TestInPlace(t *testing.T) {
	plumb.Check(t, func(p *plumb.T) {
		x := p.Tensor(plumb.Dims(p.Int(1, 4), p.Int(5, 8)))
		y := x.Mul(2)
		y.SetIndex(1.5, plumb.All, plumb.Slice(1, nil, 2))
		y.SetIndex(x.Index(0, 0), 0, 0)
		y.Method("unsqueeze_", 0)
		if got := y.Shape(); len(got) != 3 || got[0] != 1 {
			p.Fatalf("the shape is %v after unsqueeze_", got)
		}
		p.Return(y)
	})
}
