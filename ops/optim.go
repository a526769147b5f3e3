package ops

import (
	"fmt"
	"slices"
	"strings"

	"plumb/internal/arg"
	"plumb/op"
	"plumb/tensor"
)

// optimOps are the updates of the optimizers: pure functions of a parameter,
// its gradient and the optimizer's state to the new parameter and state, in
// the order of PyTorch's single-tensor loops (torch/optim/*.py, 1.13). Complex
// parameters are updated as pairs of reals.
//
// The learning rate and the step number may be tensors, so that a recorded
// update need not be recorded again when they change.
var optimOps = []*op.Def{
	update(&op.Def{
		Sig:    "sgd.update(Tensor param, Tensor grad, Tensor? momentum_buffer=None, *, Tensor lr, float momentum=0, float dampening=0, float weight_decay=0, bool nesterov=False, bool maximize=False) -> (Tensor param, Tensor momentum_buffer)",
		Doc:    "Gradient descent: d = grad + weight_decay·param; with momentum buf = momentum·buf + (1 − dampening)·d, at first buf = d, and d = buf or, with nesterov, d + momentum·buf; param − lr·d. The buffer is a result only with momentum.",
		Sample: sampleUpdate("momentum_buffer", op.Kw("momentum", 0.5), op.Kw("dampening", 0.25), op.Kw("weight_decay", 0.5)),
		Tol:    updateTol(4, "weight decay, momentum and the step add up"),
	}, updateSGD),
	update(&op.Def{
		Sig:    "adam.update(Tensor param, Tensor grad, Tensor exp_avg, Tensor exp_avg_sq, Tensor step, Tensor? max_exp_avg_sq=None, *, Tensor lr, float beta1=0.9, float beta2=0.999, float eps=1e-08, float weight_decay=0, bool maximize=False) -> (Tensor param, Tensor exp_avg, Tensor exp_avg_sq, Tensor step, Tensor max_exp_avg_sq)",
		Doc:    "Adam (arxiv.org/abs/1412.6980): moments m = β₁·m + (1 − β₁)·g and v = β₂·v + (1 − β₂)·g² of g = grad + weight_decay·param; param − lr·(m/(1 − β₁ᵗ))/(√v/√(1 − β₂ᵗ) + eps), t = step + 1. With max_exp_avg_sq, which is then a result too, v is the largest so far (AMSGrad).",
		Sample: sampleUpdate("exp_avg exp_avg_sq step max_exp_avg_sq", op.Kw("weight_decay", 0.5)),
		Tol:    updateTol(6, "weight decay, both moments and the step add up"),
	}, updateAdam),
	update(&op.Def{
		Sig:    "adamw.update(Tensor param, Tensor grad, Tensor exp_avg, Tensor exp_avg_sq, Tensor step, Tensor? max_exp_avg_sq=None, *, Tensor lr, float beta1=0.9, float beta2=0.999, float eps=1e-08, float weight_decay=0.01, bool maximize=False) -> (Tensor param, Tensor exp_avg, Tensor exp_avg_sq, Tensor step, Tensor max_exp_avg_sq)",
		Doc:    "AdamW (arxiv.org/abs/1711.05101): adam.update without weight decay, applied to (1 − lr·weight_decay)·param.",
		Sample: sampleUpdate("exp_avg exp_avg_sq step max_exp_avg_sq"),
		Tol:    updateTol(6, "weight decay, both moments and the step add up"),
	}, updateAdamW),
	update(&op.Def{
		Sig:    "radam.update(Tensor param, Tensor grad, Tensor exp_avg, Tensor exp_avg_sq, Tensor step, *, Tensor lr, float beta1=0.9, float beta2=0.999, float eps=1e-08, float weight_decay=0) -> (Tensor param, Tensor exp_avg, Tensor exp_avg_sq, Tensor step)",
		Doc:    "RAdam (arxiv.org/abs/1908.03265): the moments of adam.update, m' = m/(1 − β₁ᵗ), ρ∞ = 2/(1 − β₂) − 1, ρ = ρ∞ − 2·t·β₂ᵗ/(1 − β₂ᵗ); param − lr·m'·√(1 − β₂ᵗ)/(√v + eps)·√((ρ − 4)(ρ − 2)ρ∞/((ρ∞ − 4)(ρ∞ − 2)ρ)) where ρ > 5, else param − lr·m'.",
		Sample: sampleUpdate("exp_avg exp_avg_sq step", op.Kw("weight_decay", 0.5)),
		Tol:    updateTol(6, "weight decay, both moments and the step add up"),
	}, updateRAdam),
	update(&op.Def{
		Sig:    "rmsprop.update(Tensor param, Tensor grad, Tensor square_avg, Tensor? grad_avg=None, Tensor? momentum_buffer=None, *, Tensor lr, float alpha=0.99, float eps=1e-08, float weight_decay=0, float momentum=0, bool maximize=False) -> (Tensor param, Tensor square_avg, Tensor grad_avg, Tensor momentum_buffer)",
		Doc:    "RMSprop: v = α·v + (1 − α)·g² of g = grad + weight_decay·param; with grad_avg a = α·a + (1 − α)·g, and v − a² in v's place; d = g/(√v + eps); with momentum_buffer buf = momentum·buf + d in d's place; param − lr·d. The states that are given are results.",
		Sample: sampleUpdate("square_avg momentum_buffer", op.Kw("weight_decay", 0.5), op.Kw("momentum", 0.5)),
		Tol:    updateTol(6, "weight decay, the average, momentum and the step add up"),
	}, updateRMSprop),
	update(&op.Def{
		Sig:    "adagrad.update(Tensor param, Tensor grad, Tensor sum, Tensor step, *, Tensor lr, float lr_decay=0, float eps=1e-10, float weight_decay=0, bool maximize=False) -> (Tensor param, Tensor sum, Tensor step)",
		Doc:    "Adagrad (jmlr.org/papers/v12/duchi11a.html): sum + g² of g = grad + weight_decay·param; param − lr/(1 + step·lr_decay)·g/(√sum + eps); step + 1.",
		Sample: sampleUpdate("sum step", op.Kw("lr_decay", 0.5), op.Kw("weight_decay", 0.5)),
		Tol:    updateTol(4, "weight decay, squares and the step add up"),
	}, updateAdagrad),
	update(&op.Def{
		Sig:    "adadelta.update(Tensor param, Tensor grad, Tensor square_avg, Tensor acc_delta, *, Tensor lr, float rho=0.9, float eps=1e-06, float weight_decay=0, bool maximize=False) -> (Tensor param, Tensor square_avg, Tensor acc_delta)",
		Doc:    "Adadelta (arxiv.org/abs/1212.5701): v = ρ·v + (1 − ρ)·g² of g = grad + weight_decay·param; d = √(acc_delta + eps)/√(v + eps)·g; acc_delta = ρ·acc_delta + (1 − ρ)·d²; param − lr·d.",
		Sample: sampleUpdate("square_avg acc_delta", op.Kw("weight_decay", 0.5)),
		Tol:    updateTol(6, "weight decay, both averages and the step add up"),
	}, updateAdadelta),
}

// update completes the literal of an update, whose steps it writes with the
// arguments' reals. Each signature has a form whose lr is a number.
func update(d *op.Def, steps func(u updating) []op.Value) *op.Def {
	d.More = []string{strings.Replace(d.Sig, "Tensor lr", "Scalar lr", 1)}
	d.Traits = op.NoGrad
	d.Reject = checkUpdate
	d.Compose = func(b op.Builder, a op.Args) []op.Value {
		if !a.Value(arg.Param).DType().IsComplex() {
			return steps(updating{b, a})
		}
		out := steps(updating{b, a.MapValues(func(v op.Value) op.Value {
			if v.DType().IsComplex() {
				return b.Op("view_as_real", v)
			}
			return v
		})})
		for i, v := range out {
			if len(v.Shape()) > len(a.Value(arg.Param).Shape()) {
				out[i] = b.Op("view_as_complex", b.Op("contiguous", v))
			}
		}
		return out
	}
	return d
}

// updateNumbers are the tensor arguments that have one element whatever the parameter's shape.
var updateNumbers = []string{"step", "lr"}

// checkUpdate rejects parameters that are not floating, and gradients and
// states of another dtype or shape than the parameter's.
func checkUpdate(a op.Args) error {
	p := a.Value(arg.Param)
	if !p.DType().IsDifferentiable() {
		return op.RuntimeError("argument 'param' must be floating or complex, not %s", p.DType())
	}
	for i, param := range a.Sig.Params {
		v, ok := a.Vals[i].(op.Value)
		if !ok {
			continue
		}
		if slices.Contains(updateNumbers, param.Name) {
			if len(v.Shape()) != 0 {
				return op.RuntimeError("argument '%s' must be a 0-d tensor, but has %d dimensions", param.Name, len(v.Shape()))
			}
			continue
		}
		if v.DType() != p.DType() || !slices.Equal(v.Shape(), p.Shape()) {
			return op.RuntimeError("argument '%s' must be %s%s as 'param' is, but is %s%s", param.Name,
				p.DType(), tensor.ShapeString(p.Shape()), v.DType(), tensor.ShapeString(v.Shape()))
		}
	}
	return nil
}

// updating is what the steps of an update are written with.
type updating struct {
	op.Builder
	op.Args
}

// gradient returns ±grad, with weight decay added.
func (u updating) gradient() op.Value {
	g := u.Value(arg.Grad)
	if u.Sig.Takes(arg.Maximize) && u.Bool(arg.Maximize) {
		g = u.Neg(g)
	}
	if decay := u.Float(arg.WeightDecay); decay != 0 {
		g = u.Op("add", g, u.Value(arg.Param), op.Kw("alpha", decay))
	}
	return g
}

// average returns k·avg + (1 − k)·x.
func (u updating) average(avg, x op.Value, k float64) op.Value {
	return u.Op("add", u.Mul(avg, k), x, op.Kw("alpha", 1-k))
}

// squares returns k·avg + (1 − k)·x².
func (u updating) squares(avg, x op.Value, k float64) op.Value {
	return u.Op("addcmul", u.Mul(avg, k), x, x, op.Kw("value", 1-k))
}

// descend returns p − k·d for a number or 0-d tensor k, with the bits of sub
// in both cases.
func (u updating) descend(p, d op.Value, k any) op.Value {
	switch k := k.(type) {
	case op.Scalar:
		return u.Op("sub", p, d, op.Kw("alpha", k))
	case op.Value:
		if slices.Contains(halfTypes, p.DType()) {
			return u.Sub(p, u.Mul(d, u.Cast(k, p.DType())))
		}
		return u.Op("addcmul", p, d, u.Cast(k, p.DType()), op.Kw("value", -1))
	}
	panic(fmt.Sprintf("ops: a learning rate of %T", k))
}

// descendQuotient is descendRatio with the bits of addcdiv for a 0-d tensor too.
func (u updating) descendQuotient(p, x, y op.Value, k any) op.Value {
	if _, ok := k.(op.Scalar); ok {
		return u.descendRatio(p, x, y, k)
	}
	step := u.Div(u.Cast(u.Mul(u.wide(x), k), tensor.F64), u.Cast(y, tensor.F64))
	return u.Cast(u.Cast(u.Sub(u.Cast(p, tensor.F64), step), u.wide(p).DType()), p.DType())
}

// descendRatio returns p − k·x/y for a number or 0-d tensor k.
func (u updating) descendRatio(p, x, y op.Value, k any) op.Value {
	if s, ok := k.(op.Scalar); ok {
		return u.Op("addcdiv", p, x, y, op.Kw("value", -s.Float()))
	}
	return u.Cast(u.Sub(u.wide(p), u.Mul(u.Div(u.wide(x), u.wide(y)), k)), p.DType())
}

// wide brings a half-precision value to float32: PyTorch rounds a step once.
func (u updating) wide(v op.Value) op.Value {
	if slices.Contains(halfTypes, v.DType()) {
		return u.Cast(v, tensor.F32)
	}
	return v
}

// like casts a result back: 0-d parameters and float64 numbers promote.
func (u updating) like(v op.Value) op.Value { return u.Cast(v, u.Value(arg.Param).DType()) }

// steps returns step in float64, in which PyTorch computes what depends on it.
func (u updating) steps() op.Value { return u.Cast(u.Value(arg.Step), tensor.F64) }

// unbiased returns 1 − βᵗ.
func (u updating) unbiased(beta float64, t op.Value) op.Value {
	return u.Sub(1, u.Op("pow", beta, t))
}

func updateSGD(u updating) []op.Value {
	d, momentum := u.gradient(), u.Float(arg.Momentum)
	if momentum == 0 {
		return []op.Value{u.descend(u.Value(arg.Param), d, u.Any(arg.LRFloat))}
	}
	buf := u.Value(arg.MomentumBuffer)
	if buf == nil {
		buf = u.Op("clone", d)
	} else {
		buf = u.Op("add", u.Mul(buf, momentum), d, op.Kw("alpha", 1-u.Float(arg.Dampening)))
	}
	if u.Bool(arg.Nesterov) {
		d = u.Op("add", d, buf, op.Kw("alpha", momentum))
	} else {
		d = buf
	}
	return []op.Value{u.descend(u.Value(arg.Param), d, u.Any(arg.LRFloat)), buf}
}

// adam applies Adam to p with the gradient g.
func (u updating) adam(p, g op.Value) []op.Value {
	t := u.Add(u.steps(), 1)
	beta1, beta2 := u.Float(arg.Beta1), u.Float(arg.Beta2)
	m, v := u.average(u.Value(arg.ExpAvg), g, beta1), u.squares(u.Value(arg.ExpAvgSq), g, beta2)
	states := []op.Value{m, v, u.Add(u.Value(arg.Step), 1)}
	largest := v
	if old := u.Value(arg.MaxExpAvgSq); old != nil {
		largest = u.Op("maximum", old, v)
		states = append(states, largest)
	}
	root := u.like(u.Div(u.Op("sqrt", largest), u.Op("sqrt", u.unbiased(beta2, t))))
	size := u.Div(u.Any(arg.LRFloat), u.unbiased(beta1, t))
	return append([]op.Value{u.descendRatio(p, m, u.Add(root, u.Float(arg.Eps)), size)}, states...)
}

func updateAdam(u updating) []op.Value { return u.adam(u.Value(arg.Param), u.gradient()) }

func updateAdamW(u updating) []op.Value {
	g, decay := u.Value(arg.Grad), u.Float(arg.WeightDecay)
	if u.Bool(arg.Maximize) {
		g = u.Neg(g)
	}
	var keep any
	if lr, ok := u.Any(arg.LRFloat).(op.Scalar); ok {
		keep = 1 - float64(lr.Float()*decay)
	} else {
		keep = u.Sub(1, u.Mul(u.Any(arg.LRFloat), decay))
	}
	return u.adam(u.like(u.Mul(u.Value(arg.Param), keep)), g)
}

func updateRAdam(u updating) []op.Value {
	g, t := u.gradient(), u.Add(u.steps(), 1)
	beta1, beta2 := u.Float(arg.Beta1), u.Float(arg.Beta2)
	m, v := u.average(u.Value(arg.ExpAvg), g, beta1), u.squares(u.Value(arg.ExpAvgSq), g, beta2)
	unbiased := u.unbiased(beta2, t)
	limit := 2/(1-beta2) - 1
	rho := u.Sub(limit, u.Div(u.Mul(u.Mul(t, 2), u.Op("pow", beta2, t)), unbiased))
	over := u.Mul(u.Mul(u.Sub(rho, 4), u.Sub(rho, 2)), limit)
	rect := u.Op("sqrt", u.Div(over, u.Mul(rho, (limit-4)*(limit-2))))
	scale := u.Div(u.Op("sqrt", unbiased), u.Add(u.wide(u.Op("sqrt", v)), u.Float(arg.Eps)))
	scale = u.Op("where", u.Op("gt", rho, 5), u.Mul(scale, rect), 1.0)
	d := u.Mul(u.like(u.Div(m, u.unbiased(beta1, t))), u.Any(arg.LRFloat))
	p := u.Cast(u.Sub(u.wide(u.Value(arg.Param)), u.Mul(u.wide(d), scale)), u.Value(arg.Param).DType())
	return []op.Value{p, m, v, u.Add(u.Value(arg.Step), 1)}
}

func updateRMSprop(u updating) []op.Value {
	g, alpha := u.gradient(), u.Float(arg.AlphaFloat)
	v := u.squares(u.Value(arg.SquareAvg), g, alpha)
	states := []op.Value{v}
	root := v
	if old := u.Value(arg.GradAvg); old != nil {
		avg := u.average(old, g, alpha)
		states = append(states, avg)
		root = u.Op("addcmul", v, avg, avg, op.Kw("value", -1))
	}
	root = u.Add(u.Op("sqrt", root), u.Float(arg.Eps))
	p, lr := u.Value(arg.Param), u.Any(arg.LRFloat)
	buf := u.Value(arg.MomentumBuffer)
	if buf == nil {
		return append([]op.Value{u.descendQuotient(p, g, root, lr)}, states...)
	}
	buf = u.Op("addcdiv", u.Mul(buf, u.Float(arg.Momentum)), g, root)
	return append([]op.Value{u.descend(p, buf, lr)}, append(states, buf)...)
}

func updateAdagrad(u updating) []op.Value {
	g := u.gradient()
	sum := u.Op("addcmul", u.Value(arg.Sum), g, g)
	slow := u.Add(u.Mul(u.steps(), u.Float(arg.LRDecay)), 1)
	root := u.Add(u.Op("sqrt", sum), u.Float(arg.Eps))
	p := u.descendRatio(u.Value(arg.Param), g, root, u.Div(u.Any(arg.LRFloat), slow))
	return []op.Value{p, sum, u.Add(u.Value(arg.Step), 1)}
}

func updateAdadelta(u updating) []op.Value {
	g, rho, eps := u.gradient(), u.Float(arg.Rho), u.Float(arg.Eps)
	v := u.squares(u.Value(arg.SquareAvg), g, rho)
	root := u.Op("sqrt", u.Add(v, eps))
	acc := u.Value(arg.AccDelta)
	d := u.Mul(u.Div(u.Op("sqrt", u.Add(acc, eps)), root), g)
	return []op.Value{u.descend(u.Value(arg.Param), d, u.Any(arg.LRFloat)), v, u.squares(acc, d, rho)}
}

// sampleUpdate draws a parameter, a gradient, the named states, which are
// positive, and a learning rate.
func sampleUpdate(states string, options ...op.Kwarg) func(s *op.Sampler) []any {
	return func(s *op.Sampler) []any {
		shape := s.Shape(0, 3)
		args := []any{s.Tensor(-2, 2, shape...), s.Tensor(-2, 2, shape...)}
		for _, name := range strings.Fields(states) {
			v := s.Tensor(1, 2, shape...)
			if name == "step" {
				v = tensor.Float64s(tensor.F32, nil, float64(s.Int(0, 20)))
			}
			args = append(args, op.Kw(name, v))
		}
		for _, o := range options {
			args = append(args, o)
		}
		if s.Bool() {
			return append(args, op.Kw("lr", tensor.Float64s(tensor.F64, nil, s.Float(0.01, 1))))
		}
		return append(args, op.Kw("lr", s.Float(0.01, 1)))
	}
}

func updateTol(terms int, reason string) op.Tol {
	return accumulating(func(op.Args) int { return terms }, reason)
}
