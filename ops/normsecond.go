package ops

import (
	"plumb/internal/arg"
	"plumb/internal/kernel"
	"plumb/op"
)

// projection is the linear map J of a normalisation's gradient at x: with the
// mean μ and s = 1/√(var + eps) of each group of n elements and
// x̂ = (x − μ)·s, J·v = s·(v − mean(v) − x̂·mean(x̂·v)). It is symmetric, and
// the derivative of x̂.
type projection struct {
	*op.Grad
	x, normal, scale op.Value
	n, eps           float64
}

func projectionAt(g *op.Grad, x op.Value, d kernel.Groups, eps float64) *projection {
	m := g.All("batch_norm.moments", x, eps)
	return &projection{g, x, g.Mul(g.Sub(x, m[0]), m[1]), m[1], float64(d.Outer * d.Inner), eps}
}

func (p *projection) apply(v op.Value) op.Value {
	return p.All("batch_norm.backward", v, p.x, nil, p.eps)[0]
}

func (p *projection) sum(v op.Value) op.Value { return sumOver(p.Grad, v, 0, 2) }

// derivative returns the gradient of v·(J·u) with respect to x:
// −s·x̂·(v·Ju)/n − s·(mean(u·x̂)·Jv + mean(v·x̂)·Ju).
func (p *projection) derivative(u, v op.Value) op.Value {
	ju, jv := p.apply(u), p.apply(v)
	first := p.Mul(p.normal, p.Div(p.sum(p.Mul(v, ju)), p.n))
	second := p.Mul(jv, p.Div(p.sum(p.Mul(u, p.normal)), p.n))
	third := p.Mul(ju, p.Div(p.sum(p.Mul(v, p.normal)), p.n))
	return p.Neg(p.Mul(p.scale, p.Add(first, p.Add(second, third))))
}

// normSecond is the gradient of layer_norm.backward and batch_norm.backward.
// Groups has the normalised elements of one group at one middle index; param
// is the shape, in 3 dimensions, of the weight, and others are the
// dimensions along which the weight repeats.
func normSecond(g *op.Grad, d kernel.Groups, param, others []int) {
	x := g.Value(arg.Input)
	p := projectionAt(g, groups3(g, x, d), d, g.Float(arg.Eps))
	c, u := groups3(g, g.Value(arg.Grad), d), groups3(g, g.Value(arg.Grad), d)
	weight := g.Value(arg.Weight)
	if weight != nil {
		weight = g.Cast(g.Reshape(weight, param), x.DType())
		u = g.Mul(c, weight)
	}
	var v, toWeight, toBias op.Value
	if g.Cot[0] != nil {
		v = groups3(g, g.Cot[0], d)
	}
	if g.Cot[1] != nil {
		toWeight = g.Cast(g.Reshape(g.Cot[1], param), x.DType())
	}
	if g.Cot[2] != nil {
		toBias = g.Cast(g.Reshape(g.Cot[2], param), x.DType())
	}
	g.To(arg.Grad, func() op.Value {
		var terms []op.Value
		if v != nil {
			jv := p.apply(v)
			if weight != nil {
				jv = g.Mul(jv, weight)
			}
			terms = append(terms, jv)
		}
		if toWeight != nil {
			terms = append(terms, g.Mul(p.normal, toWeight))
		}
		if toBias != nil {
			terms = append(terms, g.Expand(toBias, p.x.Shape()))
		}
		return g.Reshape(addAll(g, terms), x.Shape())
	})
	g.To(arg.Input, func() op.Value {
		var terms []op.Value
		if v != nil {
			terms = append(terms, p.derivative(u, v))
		}
		if toWeight != nil {
			terms = append(terms, p.apply(g.Mul(c, toWeight)))
		}
		if len(terms) == 0 {
			return nil
		}
		return g.Reshape(addAll(g, terms), x.Shape())
	})
	g.To(arg.Weight, func() op.Value {
		if v == nil {
			return nil
		}
		return g.Reshape(sumOver(g, g.Mul(c, p.apply(v)), others...), g.Value(arg.Weight).Shape())
	})
}

// addAll sums the terms, at least one.
func addAll(g *op.Grad, terms []op.Value) op.Value {
	sum := terms[0]
	for _, t := range terms[1:] {
		sum = g.Add(sum, t)
	}
	return sum
}

func layerNormSecond(g *op.Grad) {
	d := rowGroups(g.Args)
	normSecond(g, d, []int{1, 1, d.Inner}, []int{0, 1})
}

func batchNormSecond(g *op.Grad) {
	d := channelGroups(g.Value(arg.Input))
	normSecond(g, d, []int{1, d.Count, 1}, []int{0, 2})
}
