package diopi

import (
	"math"
	"slices"

	"plumb/program"
)

// decayed is the gradient with weight decay.
func (b *build) decayed() any {
	if wd := b.number("weight_decay", 0); wd != 0 {
		return b.call("torch.add", b.arg("param_grad"), b.arg("param"), kw("alpha", wd))
	}
	return b.arg("param_grad")
}

// mix is a·x + b·y.
func (b *build) mix(a float64, x any, c float64, y any) any {
	return b.call("torch.add", b.call("torch.mul", x, a), y, kw("alpha", c))
}

// mixSquare is a·x + b·y².
func (b *build) mixSquare(a float64, x any, c float64, y any) any {
	return b.call("torch.addcmul", b.call("torch.mul", x, a), y, y, kw("value", c))
}

// sgd has no momentum buffer where it was given none.
func sgd(b *build) []any {
	d, buf := b.decayed(), b.arg("buf")
	if m := b.number("momentum", 0); m != 0 {
		now := d
		if buf != nil {
			buf = b.mix(m, buf, 1-b.number("dampening", 0), d)
			now = buf
		}
		if b.arg("nesterov") == true {
			d = b.call("torch.add", d, now, kw("alpha", m))
		} else {
			d = now
		}
	}
	return []any{b.call("torch.add", b.arg("param"), d, kw("alpha", -b.number("lr", 1e-3))), buf}
}

// moments are what Adam updates.
type moments struct{ param, m, v, most any }

func (s moments) list() []any { return []any{s.param, s.m, s.v, s.most} }

// adamStep is the t-th step of Adam, the gradient g decayed already.
func (b *build) adamStep(s moments, g any, t float64) moments {
	beta1, beta2 := b.number("beta1", 0.9), b.number("beta2", 0.999)
	s.m = b.mix(beta1, s.m, 1-beta1, g)
	s.v = b.mixSquare(beta2, s.v, 1-beta2, g)
	top := s.v
	if b.arg("amsgrad") == true {
		s.most = b.call("torch.maximum", s.most, s.v)
		top = s.most
	}
	root := b.call("torch.div", b.call("torch.sqrt", top), math.Sqrt(1-math.Pow(beta2, t)))
	scale := b.call("torch.add", root, b.number("eps", 1e-8))
	s.param = b.call("torch.addcdiv", s.param, s.m, scale, kw("value", -b.number("lr", 1e-3)/(1-math.Pow(beta1, t))))
	return s
}

// shrunk is a parameter with the weight decay of AdamW.
func (b *build) shrunk(param any) any {
	return b.call("torch.mul", param, 1-b.number("lr", 1e-3)*b.number("weight_decay", 0))
}

// adam steps as PyTorch's functional form does, which counts a step before it
// takes it: the step with which it is called is the number of earlier ones.
func adam(decoupled bool) func(*build) []any {
	return func(b *build) []any {
		s := moments{b.arg("param"), b.arg("exp_avg"), b.arg("exp_avg_sq"), b.arg("max_exp_avg_sq")}
		g := b.arg("param_grad")
		if decoupled {
			s.param = b.shrunk(s.param)
		} else {
			g = b.decayed()
		}
		return b.adamStep(s, g, b.number("step", 1)+1).list()
	}
}

// fusedAdamW steps each parameter of a list, each with a count of its own, which
// is the step that it takes. The outputs are the lists one behind the other.
func fusedAdamW(b *build) []any {
	lists := map[string]program.List{}
	for name := range words("params grads exp_avgs exp_avg_sqs max_exp_avg_sqs state_steps") {
		lists[name], _ = b.arg(name).(program.List)
	}
	n := len(lists["params"])
	for name := range words("grads exp_avgs exp_avg_sqs") {
		if len(lists[name]) != n {
			b.refuse("fused_adamw needs as many %s as params, %d, not %d", name, n, len(lists[name]))
		}
	}
	var out [4][]any
	for i := range n {
		s := moments{b.shrunk(lists["params"][i]), lists["exp_avgs"][i], lists["exp_avg_sqs"][i], nil}
		if i < len(lists["max_exp_avg_sqs"]) {
			s.most = lists["max_exp_avg_sqs"][i]
		} else if b.arg("amsgrad") == true {
			b.refuse("fused_adamw with amsgrad needs as many max_exp_avg_sqs as params, %d", n)
		}
		g := lists["grads"][i]
		if b.arg("maximize") == true {
			g = b.call("torch.neg", g)
		}
		for k, v := range b.adamStep(s, g, b.stepOf(lists["state_steps"], i)).list() {
			out[k] = append(out[k], v)
		}
	}
	return slices.Concat(out[:]...)
}

// stepOf is the step that the i-th parameter takes.
func (b *build) stepOf(steps program.List, i int) float64 {
	if i >= len(steps) {
		return b.number("step", 1)
	}
	at := slices.IndexFunc(b.p.Inputs, func(in program.Input) bool { return steps[i] == program.Ref(in.Name) })
	if at < 0 {
		b.refuse("state_steps: want tensors")
	}
	t := b.p.Inputs[at].Materialize()
	if t.Len() != 1 {
		b.refuse("state_steps: want tensors of one element, not %d", t.Len())
	}
	return real(t.At(0))
}

func adadelta(b *build) []any {
	g, rho, eps := b.decayed(), b.number("rho", 0.9), b.number("eps", 1e-6)
	v := b.mixSquare(rho, b.arg("square_avg"), 1-rho, g)
	std := b.call("torch.sqrt", b.call("torch.add", v, eps))
	acc := b.arg("acc_delta")
	delta := b.call("torch.mul", b.call("torch.div", b.call("torch.sqrt", b.call("torch.add", acc, eps)), std), g)
	param := b.call("torch.add", b.arg("param"), delta, kw("alpha", -b.number("lr", 1)))
	return []any{param, v, b.mixSquare(rho, acc, 1-rho, delta)}
}

func rmsprop(b *build) []any {
	g, alpha, mean, buf := b.decayed(), b.number("alpha", 0.99), b.arg("grad_avg"), b.arg("momentum_buffer")
	v := b.mixSquare(alpha, b.arg("square_avg"), 1-alpha, g)
	spread := v
	if b.arg("centered") == true {
		mean = b.mix(alpha, mean, 1-alpha, g)
		spread = b.call("torch.addcmul", v, mean, mean, kw("value", -1.0))
	}
	root := b.call("torch.add", b.call("torch.sqrt", spread), b.number("eps", 1e-8))
	lr := b.number("lr", 1e-2)
	var param any
	if m := b.number("momentum", 0); m > 0 {
		buf = b.call("torch.addcdiv", b.call("torch.mul", buf, m), g, root)
		param = b.call("torch.add", b.arg("param"), buf, kw("alpha", -lr))
	} else {
		param = b.call("torch.addcdiv", b.arg("param"), g, root, kw("value", -lr))
	}
	return []any{param, v, mean, buf}
}

// clipGradNorm returns the norm of all gradients.
func clipGradNorm(b *build) []any {
	grads, isList := b.arg("tensors").(program.List)
	if one := b.arg("tensors"); !isList && one != nil {
		grads = program.List{one}
	}
	if len(grads) == 0 {
		b.refuse("CustomizedTest.clip_grad_norm_ needs tensors")
	}
	p := b.number("norm_type", 2)
	norms := program.List{}
	for _, g := range grads {
		if math.IsInf(p, 1) {
			norms = append(norms, b.call("torch.max", b.call("torch.abs", g)))
		} else {
			norms = append(norms, b.call("torch.norm", g, p))
		}
	}
	all := b.call("torch.stack", norms)
	if math.IsInf(p, 1) {
		return []any{b.call("torch.max", all)}
	}
	return []any{b.call("torch.norm", all, p)}
}
