package diopi

import (
	"plumb/program"
	"plumb/tensor"
)

// The parts of a batch norm whose batch lies on several devices. Statistics of
// halves are in float32.

// overChannels are all dimensions but that of the channels.
func (b *build) overChannels(name string) program.Tuple {
	dims := program.Tuple{int64(0)}
	n := len(b.input(name).Shape)
	if n < 2 {
		b.refuse("%s: %v has no channels", name, b.input(name).Shape)
	}
	for i := 2; i < n; i++ {
		dims = append(dims, int64(i))
	}
	return dims
}

// channels gives a vector of channels the shape that broadcasts over input.
func (b *build) channels(name string) any {
	v := b.arg(name)
	if v == nil {
		return nil
	}
	shape := program.Tuple{int64(1), int64(-1)}
	for range len(b.input("input").Shape) - 2 {
		shape = append(shape, int64(1))
	}
	return b.call("torch.reshape", b.widened(name), shape)
}

// widened is a tensor argument, of a half type in float32.
func (b *build) widened(name string) any { return b.wide(b.arg(name), b.input(name).DType) }

func batchNormStats(b *build) []any {
	dims, x := b.overChannels("input"), b.widened("input")
	mean := b.call("torch.mean", x, dims)
	spread := b.call("torch.var", x, dims, kw("unbiased", false))
	return []any{mean, b.call("torch.rsqrt", b.call("torch.add", spread, b.number("eps", 1e-5)))}
}

// batchNormElemt is (x − mean)·invstd·weight + bias.
func batchNormElemt(b *build) []any {
	out := b.call("torch.mul", b.centered(), b.channels("invstd"))
	if w := b.channels("weight"); w != nil {
		out = b.call("torch.mul", out, w)
	}
	if bias := b.channels("bias"); bias != nil {
		out = b.call("torch.add", out, bias)
	}
	return []any{b.narrow(out, b.input("input").DType)}
}

func (b *build) centered() program.Ref {
	b.overChannels("input")
	return b.call("torch.sub", b.widened("input"), b.channels("mean"))
}

// batchNormBackwardReduce is Σdy, Σdy·(x − mean) and the gradients of weight and
// bias, as far as they are asked for.
func batchNormBackwardReduce(b *build) []any {
	dims, dy := b.overChannels("input"), b.widened("grad_output")
	sum := b.call("torch.sum", dy, dims)
	dot := b.call("torch.sum", b.call("torch.mul", dy, b.centered()), dims)
	out := make([]any, 4)
	if b.arg("input_g") == true {
		out[0], out[1] = sum, dot
	}
	if b.arg("weight_g") == true {
		out[2] = b.narrow(b.call("torch.mul", dot, b.widened("invstd")), b.weightType())
	}
	if b.arg("bias_g") == true {
		out[3] = b.narrow(b.call("torch.clone", sum), b.weightType())
	}
	return out
}

func (b *build) weightType() tensor.DType {
	if _, ok := b.arg("weight").(program.Ref); ok {
		return b.input("weight").DType
	}
	return tensor.F32
}

// batchNormBackwardElemt is the gradient of the input from the sums over all
// devices.
func batchNormBackwardElemt(b *build) []any {
	n := b.call("torch.sum", b.arg("count"))
	invstd := b.channels("invstd")
	part := b.call("torch.div", b.channels("sum_dy_xmu"), n)
	part = b.call("torch.mul", part, b.call("torch.mul", invstd, invstd))
	out := b.call("torch.sub", b.widened("grad_out"), b.call("torch.div", b.channels("sum_dy"), n))
	out = b.call("torch.sub", out, b.call("torch.mul", b.centered(), part))
	out = b.call("torch.mul", out, invstd)
	if w := b.channels("weight"); w != nil {
		out = b.call("torch.mul", out, w)
	}
	return []any{b.narrow(out, b.input("grad_out").DType)}
}

// batchNormGather is the mean and 1 ÷ √(variance + eps) of all devices; the
// running ones take a share of mean and unbiased variance.
func batchNormGather(b *build) []any {
	means, invstds := b.input("mean_all").Shape, b.input("invstd_all").Shape
	counts := b.input("count_all")
	if len(means) != 2 || len(invstds) != 2 || tensor.NumElements(counts.Shape) != means[0] {
		b.refuse("mean_all and count_all: %v and %v are no statistics of devices", means, counts.Shape)
	}
	eps := b.number("eps", 1e-5)
	all := b.widened("mean_all")
	n := b.call("torch.reshape", b.call("Tensor.to", b.arg("count_all"), kw("dtype", wider(b.input("mean_all").DType))), sizes(-1, 1))
	total := b.call("torch.sum", n)
	mean := b.call("torch.div", b.call("torch.sum", b.call("torch.mul", all, n), int64(0)), total)
	apart := b.call("torch.sub", all, mean)
	stds := b.call("torch.reciprocal", b.widened("invstd_all"))
	spread := b.call("torch.sub", b.call("torch.mul", stds, stds), eps)
	spread = b.call("torch.add", spread, b.call("torch.mul", apart, apart))
	moment := b.call("torch.sum", b.call("torch.mul", spread, n), int64(0))
	invstd := b.call("torch.rsqrt", b.call("torch.add", b.call("torch.div", moment, total), eps))
	b.run("running_mean", mean)
	b.run("running_var", b.call("torch.div", moment, b.call("torch.sub", total, int64(1))))
	return []any{mean, invstd}
}

func wider(d tensor.DType) tensor.DType {
	if half(d) {
		return tensor.F32
	}
	return d
}

// run moves a running statistic towards what a batch has.
func (b *build) run(name string, batch any) {
	old, ok := b.arg(name).(program.Ref)
	if !ok {
		return
	}
	m := b.number("momentum", 0.1)
	b.call("Tensor.copy_", old, b.mix(1-m, old, m, batch))
}
