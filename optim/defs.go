package optim

import (
	"slices"
	"strings"

	"plumb/op"
	"plumb/tensor"
)

var defs = []*Def{
	{
		Name: "SGD",
		Sig:  "SGD(float? lr=None, float momentum=0, float dampening=0, float weight_decay=0, bool nesterov=False, *, bool maximize=False, bool? foreach=None, bool differentiable=False)",
		Doc:  "Stochastic gradient descent with momentum.",
		Reject: func(g *Group) error {
			if err := nonNegative(g, "learning rate:lr", "momentum value:momentum", "weight_decay value:weight_decay"); err != nil {
				return err
			}
			if g.Bool("nesterov") && (g.Float("momentum") <= 0 || g.Float("dampening") != 0) {
				return op.ValueError("Nesterov momentum requires a momentum and zero dampening")
			}
			return nil
		},
		Update: func(b op.Builder, g *Group, p *Param, st State) op.Value {
			out := apply(b, "sgd.update", p, []any{st["momentum_buffer"]}, g.with("lr", "momentum", "dampening", "weight_decay", "nesterov", "maximize"))
			st["momentum_buffer"] = nil
			if len(out) > 1 {
				st["momentum_buffer"] = out[1]
			}
			return out[0]
		},
	},
	{
		Name:   "Adam",
		Sig:    "Adam(float lr=1e-3, float[] betas=[0.9, 0.999], float eps=1e-8, float weight_decay=0, bool amsgrad=False, *, bool? foreach=None, bool maximize=False, bool capturable=False, bool differentiable=False, bool fused=False)",
		Doc:    "Adam: adaptive moments.",
		Reject: checkAdam,
		Begin:  beginAdam,
		Update: func(b op.Builder, g *Group, p *Param, st State) op.Value {
			return updateAdam(b, "adam.update", g, p, st)
		},
	},
	{
		Name:   "AdamW",
		Sig:    "AdamW(float lr=1e-3, float[] betas=[0.9, 0.999], float eps=1e-8, float weight_decay=1e-2, bool amsgrad=False, *, bool maximize=False, bool? foreach=None, bool capturable=False)",
		Doc:    "Adam with decoupled weight decay.",
		Reject: checkAdam,
		Begin:  beginAdam,
		Update: func(b op.Builder, g *Group, p *Param, st State) op.Value {
			return updateAdam(b, "adamw.update", g, p, st)
		},
	},
	{
		Name:   "RAdam",
		Sig:    "RAdam(float lr=1e-3, float[] betas=[0.9, 0.999], float eps=1e-8, float weight_decay=0, bool? foreach=None)",
		Doc:    "Adam whose step is rectified while the second moment has seen few gradients.",
		Reject: checkAdam,
		Begin:  beginAdam,
		Update: func(b op.Builder, g *Group, p *Param, st State) op.Value {
			out := apply(b, "radam.update", p, st.list("exp_avg", "exp_avg_sq", "step"), adamOptions(g))
			return st.take(out, "exp_avg", "exp_avg_sq", "step")
		},
	},
	{
		Name: "RMSprop",
		Sig:  "RMSprop(float lr=1e-2, float alpha=0.99, float eps=1e-8, float weight_decay=0, float momentum=0, bool centered=False, bool? foreach=None, bool maximize=False, bool differentiable=False)",
		Doc:  "Gradients divided by a running average of their size.",
		Reject: func(g *Group) error {
			return nonNegative(g, "learning rate:lr", "epsilon value:eps", "momentum value:momentum", "weight_decay value:weight_decay", "alpha value:alpha")
		},
		Begin: func(g *Group, p *Param) State {
			st := State{"step": int64(0), "square_avg": constantLike(p.Value, 0)}
			if g.Float("momentum") > 0 {
				st["momentum_buffer"] = constantLike(p.Value, 0)
			}
			if g.Bool("centered") {
				st["grad_avg"] = constantLike(p.Value, 0)
			}
			return st
		},
		Update: updateRMSprop,
	},
	{
		Name: "Adagrad",
		Sig:  "Adagrad(float lr=1e-2, float lr_decay=0, float weight_decay=0, float initial_accumulator_value=0, float eps=1e-10, bool? foreach=None, *, bool maximize=False)",
		Doc:  "Gradients divided by the root of the sum of their squares.",
		Reject: func(g *Group) error {
			return nonNegative(g, "learning rate:lr", "lr_decay value:lr_decay", "weight_decay value:weight_decay", "initial_accumulator_value value:initial_accumulator_value", "epsilon value:eps")
		},
		Begin: func(g *Group, p *Param) State {
			k := complex(g.Float("initial_accumulator_value"), 0)
			if p.Value.DType().IsComplex() {
				k = complex(real(k), real(k))
			}
			return State{"step": tensor.New(tensor.F32), "sum": constantLike(p.Value, k)}
		},
		Early: true,
		Update: func(b op.Builder, g *Group, p *Param, st State) op.Value {
			out := apply(b, "adagrad.update", p, st.list("sum", "step"), g.with("lr", "lr_decay", "eps", "weight_decay", "maximize"))
			return st.take(out, "sum", "step")
		},
	},
	{
		Name: "Adadelta",
		Sig:  "Adadelta(float lr=1.0, float rho=0.9, float eps=1e-6, float weight_decay=0, bool? foreach=None, *, bool maximize=False)",
		Doc:  "Gradients scaled by running averages of the steps and of the gradients.",
		Reject: func(g *Group) error {
			if rho := g.Float("rho"); !(0 <= rho && rho <= 1) {
				return op.ValueError("Invalid rho value: %v", rho)
			}
			return nonNegative(g, "learning rate:lr", "epsilon value:eps", "weight_decay value:weight_decay")
		},
		Begin: func(g *Group, p *Param) State {
			return State{"step": int64(0), "square_avg": constantLike(p.Value, 0), "acc_delta": constantLike(p.Value, 0)}
		},
		Update: func(b op.Builder, g *Group, p *Param, st State) op.Value {
			out := apply(b, "adadelta.update", p, st.list("square_avg", "acc_delta"), g.with("lr", "rho", "eps", "weight_decay", "maximize"))
			st.count()
			return st.take(out, "square_avg", "acc_delta")
		},
	},
}

// StepSGD returns a parameter after the first step of SGD.
func StepSGD(b op.Builder, param, grad op.Value, lr, momentum float64) op.Value {
	return b.Op("sgd.update", param, grad, op.Kw("lr", lr), op.Kw("momentum", momentum))
}

// apply applies an update to a parameter, its gradient, states and options.
func apply(b op.Builder, id string, p *Param, states, options []any) []op.Value {
	return b.All(id, slices.Concat([]any{p.Value, p.Grad}, states, options)...)
}

// list returns states in order.
func (st State) list(names ...string) []any {
	out := make([]any, len(names))
	for i, n := range names {
		out[i] = st[n]
	}
	return out
}

// take stores the results of an update after the first, which it returns.
func (st State) take(out []op.Value, names ...string) op.Value {
	for i, n := range names {
		st[n] = out[1+i]
	}
	return out[0]
}

// count adds one to an integral step.
func (st State) count() {
	n, _ := st["step"].(int64)
	st["step"] = n + 1
}

// nonNegative checks options given as "words:name".
func nonNegative(g *Group, options ...string) error {
	for _, o := range options {
		words, name, _ := strings.Cut(o, ":")
		if v, ok := g.Get(name).(float64); ok && !(v >= 0) {
			return op.ValueError("Invalid %s: %v", words, v)
		}
	}
	return nil
}

func checkAdam(g *Group) error {
	if err := nonNegative(g, "learning rate:lr", "epsilon value:eps", "weight_decay value:weight_decay"); err != nil {
		return err
	}
	betas := g.Floats("betas")
	if len(betas) != 2 {
		return op.ValueError("betas must be 2 numbers, not %d", len(betas))
	}
	for i, beta := range betas {
		if !(0 <= beta && beta < 1) {
			return op.ValueError("Invalid beta parameter at index %d: %v", i, beta)
		}
	}
	return nil
}

func beginAdam(g *Group, p *Param) State {
	st := State{"step": tensor.New(tensor.F32), "exp_avg": constantLike(p.Value, 0), "exp_avg_sq": constantLike(p.Value, 0)}
	if g.Bool("amsgrad") {
		st["max_exp_avg_sq"] = constantLike(p.Value, 0)
	}
	return st
}

func adamOptions(g *Group) []any {
	betas := g.Floats("betas")
	return append(g.with("lr", "eps", "weight_decay"), op.Kw("beta1", betas[0]), op.Kw("beta2", betas[1]))
}

func updateAdam(b op.Builder, id string, g *Group, p *Param, st State) op.Value {
	states := []string{"exp_avg", "exp_avg_sq", "step"}
	if g.Bool("amsgrad") {
		states = append(states, "max_exp_avg_sq")
	}
	out := apply(b, id, p, st.list(states...), append(adamOptions(g), op.Kw("maximize", g.Bool("maximize"))))
	return st.take(out, states...)
}

func updateRMSprop(b op.Builder, g *Group, p *Param, st State) op.Value {
	names, states := []string{"square_avg"}, []any{st["square_avg"], nil, nil}
	if g.Bool("centered") {
		names, states[1] = append(names, "grad_avg"), st["grad_avg"]
	}
	if g.Float("momentum") > 0 {
		names, states[2] = append(names, "momentum_buffer"), st["momentum_buffer"]
	}
	out := apply(b, "rmsprop.update", p, states, g.with("lr", "alpha", "eps", "weight_decay", "momentum", "maximize"))
	st.count()
	return st.take(out, names...)
}
