package global_test

import (
	"context"
	"syscall"
	"testing"

	"plumb/global"
	"plumb/op"
	"plumb/ops"
	"plumb/program"
	"plumb/tensor"
)

// apply computes an operator with one result.
type apply func(target string, args ...any) op.Value

func local(b *testing.B) apply {
	return func(target string, args ...any) op.Value {
		out, err := resolved(b, target, args).Execute()
		if err != nil {
			b.Fatal(err)
		}
		return out[0]
	}
}

func overRanks(b *testing.B, rt *global.Runtime) apply {
	return func(target string, args ...any) op.Value {
		out, err := rt.Execute(context.Background(), resolved(b, target, args))
		if err != nil {
			b.Fatal(err)
		}
		return out[0]
	}
}

func resolved(b *testing.B, target string, args []any) *op.Call {
	call, err := program.Resolve(ops.Table(), target, args, nil)
	if err != nil {
		b.Fatal(err)
	}
	return call
}

// step is one step of gradient descent of two layers on the mean squared error:
// state has the weights [hidden, in] and [out, hidden] and the biases; reduced brings a
// gradient to where its parameter lies.
func step(f apply, reduced func(op.Value) op.Value, x, want op.Value, state [4]op.Value, samples int) (after [4]op.Value) {
	h := f("torch.nn.functional.linear", x, state[0], state[1])
	a := f("torch.relu", h)
	y := f("torch.nn.functional.linear", a, state[2], state[3])
	d := f("torch.mul", f("torch.sub", y, want), 2.0/float64(samples))
	dh := f("torch.mul", f("torch.matmul", d, state[2]), f("torch.gt", h, 0.0))
	grads := [4]op.Value{
		f("torch.matmul", f("torch.t", dh), x), f("torch.sum", dh, []int{0}),
		f("torch.matmul", f("torch.t", d), a), f("torch.sum", d, []int{0}),
	}
	for i, g := range grads {
		after[i] = f("torch.sub", state[i], f("torch.mul", reduced(g), 0.1))
	}
	return after
}

// cpu is the processor time of the process in seconds.
func cpu() float64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return float64(u.Utime.Sec+u.Stime.Sec) + float64(u.Utime.Usec+u.Stime.Usec)/1e6
}

// BenchmarkStep trains two layers data-parallel over four ranks, the batch S(0) and
// the parameters B, and reports its processor time as a multiple of that of four
// local steps on a quarter of the batch each.
func BenchmarkStep(b *testing.B) {
	const ranks, batch, width, hidden = 4, 256, 256, 512
	p, err := global.NewPlacement("cpu", []int{ranks})
	if err != nil {
		b.Fatal(err)
	}
	on := func(x *tensor.Tensor, s op.SBP) op.Value {
		g, err := global.FromLocal(x, p, global.SBP{s})
		if err != nil {
			b.Fatal(err)
		}
		return g
	}
	shapes := [4][]int{{hidden, width}, {hidden}, {width, hidden}, {width}}
	var mine, theirs [4]op.Value
	for i, shape := range shapes {
		w := ramp(shape...)
		mine[i], theirs[i] = w, on(w, op.B)
	}
	part, all := ramp(batch, width), ramp(ranks*batch, width)
	x, want := on(all, op.S(0)), on(ramp(ranks*batch, width), op.S(0))
	f, g := local(b), overRanks(b, &global.Runtime{Placement: p})
	same := func(v op.Value) op.Value { return v }
	whole := func(v op.Value) op.Value {
		w, err := v.(*global.Tensor).ToGlobal(context.Background(), p, global.Broadcast(1))
		if err != nil {
			b.Fatal(err)
		}
		return w
	}
	var single, shared float64
	for b.Loop() {
		start := cpu()
		for range ranks {
			step(f, same, part, part, mine, batch*width)
		}
		single += cpu() - start
		start = cpu()
		step(g, whole, x, want, theirs, ranks*batch*width)
		shared += cpu() - start
	}
	b.ReportMetric(shared/single, "x-local")
}

// ramp has elements from -1 to 1.
func ramp(shape ...int) *tensor.Tensor {
	t := tensor.New(tensor.F32, shape...)
	for i := range t.Len() {
		t.Set(i, complex(float64(i%201)/100-1, 0))
	}
	return t
}
