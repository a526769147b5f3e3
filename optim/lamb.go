package optim

import (
	"math"
	"sync"

	"plumb/op"
)

// LAMB returns OneFlow's optimizer of that name: Adam whose step is as long as the
// parameter is. PyTorch has none, so Lookup and All leave it out. As OneFlow's, it
// measures the step before weight decay is added.
var LAMB = sync.OnceValue(func() *Def {
	d := &Def{
		Name: "LAMB",
		Sig:  "LAMB(float lr=1e-3, float[] betas=[0.9, 0.999], float eps=1e-8, float weight_decay=0, bool adam_w_mode=True, bool do_bias_correction=True, bool amsgrad=False)",
		Doc:  "Adam whose step is as long as the parameter is.",
		Reject: func(g *Group) error {
			if g.Bool("amsgrad") {
				return op.RuntimeError("LAMB does not support AMSGrad variant.")
			}
			return checkAdam(g)
		},
		Begin: func(_ *Group, p *Param) State {
			return State{"step": int64(0), "exp_avg": constantLike(p.Value, 0), "exp_avg_sq": constantLike(p.Value, 0)}
		},
		Update: updateLAMB,
	}
	d.sig = op.MustParseSig(d.Sig)
	return d
})

func updateLAMB(b op.Builder, g *Group, p *Param, st State) op.Value {
	st.count()
	betas, decay, x, grad := g.Floats("betas"), g.Float("weight_decay"), p.Value, p.Grad
	if decay != 0 && !g.Bool("adam_w_mode") {
		grad, decay = b.Add(grad, b.Mul(x, decay)), 0
	}
	mean := b.Add(b.Mul(st["exp_avg"], betas[0]), b.Mul(grad, 1-betas[0]))
	square := b.Add(b.Mul(st["exp_avg_sq"], betas[1]), b.Mul(b.Mul(grad, grad), 1-betas[1]))
	st["exp_avg"], st["exp_avg_sq"] = mean, square
	if g.Bool("do_bias_correction") {
		n := float64(st["step"].(int64))
		mean, square = b.Div(mean, 1-math.Pow(betas[0], n)), b.Div(square, 1-math.Pow(betas[1], n))
	}
	step := b.Div(mean, b.Add(b.Op("sqrt", square), g.Float("eps")))
	ratio := trust(b, x, step)
	if decay != 0 {
		step = b.Add(step, b.Mul(x, decay))
	}
	return b.Sub(x, b.Mul(step, b.Mul(ratio, g.Float("lr"))))
}

// trust is the norm of a parameter by that of its step; 1 where either is 0.
func trust(b op.Builder, x, step op.Value) op.Value {
	long, size := norm(b, x), norm(b, step)
	one := b.OnesLike(long)
	ratio := b.Op("where", b.Op("gt", size, 0), b.Div(long, size), one)
	return b.Op("where", b.Op("gt", long, 0), ratio, one)
}

func norm(b op.Builder, x op.Value) op.Value { return b.Op("sqrt", b.Op("sum", b.Mul(x, x))) }
