package command

import (
	"math"
	"runtime"
	"slices"
	"strings"
	"time"

	"plumb/graph"
	"plumb/internal/draw/choice"
	"plumb/internal/eager"
	"plumb/internal/stopwatch"
	"plumb/op"
	"plumb/ops"
	"plumb/tensor"
)

// graphBlock is part of a network: its data, its state, and what it computes.
// The Python side has the same by the same names.
type graphBlock struct {
	name      string
	x, target []int
	classes   int // of the target's elements; 0: they are real
	state     []stateShape
	forward   func(b op.Builder, x op.Value, p map[string]op.Value, training bool) op.Value
}

// stateShape is a parameter, or with a name of mean or var a running statistic.
type stateShape struct {
	name  string
	shape []int
}

func (s stateShape) running() bool {
	return strings.HasPrefix(s.name, "mean") || strings.HasPrefix(s.name, "var")
}

func graphBlocks() []graphBlock {
	return []graphBlock{
		{
			name: "mlp", x: []int{256, 784}, target: []int{256}, classes: 10,
			state: []stateShape{
				{"w1", []int{512, 784}}, {"b1", []int{512}}, {"w2", []int{256, 512}}, {"b2", []int{256}}, {"w3", []int{10, 256}}, {"b3", []int{10}},
			},
			forward: mlp,
		},
		{
			name: "resnet", x: []int{4, 64, 28, 28}, target: []int{4, 64, 28, 28},
			state: []stateShape{
				{"conv1", []int{64, 64, 3, 3}}, {"gain1", []int{64}}, {"shift1", []int{64}}, {"mean1", []int{64}}, {"var1", []int{64}},
				{"conv2", []int{64, 64, 3, 3}}, {"gain2", []int{64}}, {"shift2", []int{64}}, {"mean2", []int{64}}, {"var2", []int{64}},
			},
			forward: resnet,
		},
		{
			name: "transformer", x: []int{4, 128, 256}, target: []int{4, 128, 256},
			state: []stateShape{
				{"gain1", []int{256}}, {"shift1", []int{256}},
				{"wq", []int{256, 256}}, {"bq", []int{256}}, {"wk", []int{256, 256}}, {"wv", []int{256, 256}}, {"bv", []int{256}},
				{"wo", []int{256, 256}}, {"bo", []int{256}}, {"gain2", []int{256}}, {"shift2", []int{256}},
				{"w1", []int{1024, 256}}, {"b1", []int{1024}}, {"w2", []int{256, 1024}}, {"b2", []int{256}},
			},
			forward: transformer,
		},
	}
}

func mlp(b op.Builder, x op.Value, p map[string]op.Value, _ bool) op.Value {
	x = b.Op("relu", b.Op("linear", x, p["w1"], p["b1"]))
	x = b.Op("relu", b.Op("linear", x, p["w2"], p["b2"]))
	return b.Op("linear", x, p["w3"], p["b3"])
}

func resnet(b op.Builder, x op.Value, p map[string]op.Value, training bool) op.Value {
	normal := func(x op.Value, i string) op.Value {
		return b.Op("batch_norm", x, p["mean"+i], p["var"+i], p["gain"+i], p["shift"+i], training)
	}
	pad := op.Kw("padding", 1)
	y := b.Op("relu", normal(b.Op("conv2d", x, p["conv1"], pad), "1"))
	return b.Op("relu", b.Add(normal(b.Op("conv2d", y, p["conv2"], pad), "2"), x))
}

const attentionHeads = 4

// transformer has no bias of keys: softmax cancels it, and its gradient is noise.
func transformer(b op.Builder, x op.Value, p map[string]op.Value, _ bool) op.Value {
	shape := x.Shape()
	d := shape[2]
	heads := func(x op.Value) op.Value {
		return b.Op("transpose", b.Reshape(x, []int{shape[0], shape[1], attentionHeads, d / attentionHeads}), 1, 2)
	}
	y := b.Op("layer_norm", x, []int{d}, p["gain1"], p["shift1"])
	var qkv []op.Value
	for _, c := range []string{"q", "k", "v"} {
		qkv = append(qkv, heads(b.Op("linear", y, p["w"+c], p["b"+c])))
	}
	scores := b.Mul(b.Op("matmul", qkv[0], b.Op("transpose", qkv[1], -2, -1)), 1/math.Sqrt(float64(d/attentionHeads)))
	y = b.Op("matmul", b.Op("softmax", scores, -1), qkv[2])
	x = b.Add(x, b.Op("linear", b.Reshape(b.Op("transpose", y, 1, 2), shape), p["wo"], p["bo"]))
	y = b.Op("layer_norm", x, []int{d}, p["gain2"], p["shift2"])
	return b.Add(x, b.Op("linear", b.Op("gelu", b.Op("linear", y, p["w1"], p["b1"])), p["w2"], p["b2"]))
}

func (k *graphBlock) loss(b op.Builder, y, target op.Value) op.Value {
	if k.classes > 0 {
		return b.Op("cross_entropy", y, target)
	}
	return b.Op("mse_loss", y, target)
}

type namedTensor struct {
	name string
	*tensor.Tensor
}

// tensors draws x, target and the state, the same each time.
func (k *graphBlock) tensors() []namedTensor {
	out := []namedTensor{{"x", uniform(1, -1, 1, k.x)}, {"target", uniform(2, -1, 1, k.target)}}
	if k.classes > 0 {
		out[1].Tensor = tensor.New(tensor.I64, k.target...)
		for i := range tensor.Data[int64](out[1].Tensor) {
			tensor.Data[int64](out[1].Tensor)[i] = int64(i*7) % int64(k.classes)
		}
	}
	for i, s := range k.state {
		low, high := -0.1, 0.1
		switch {
		case strings.HasPrefix(s.name, "gain"), strings.HasPrefix(s.name, "var"):
			low, high = 0.8, 1.2
		case len(s.shape) > 1:
			high = 1 / math.Sqrt(float64(tensor.NumElements(s.shape[1:])))
			low = -high
		}
		out = append(out, namedTensor{s.name, uniform(uint64(i+3), low, high, s.shape)})
	}
	return out
}

func uniform(key uint64, low, high float64, shape []int) *tensor.Tensor {
	t, rng := tensor.New(tensor.F32, shape...), choice.NewPhilox(key)
	for i := range tensor.Data[float32](t) {
		u, _ := rng.Pair(uint64(i))
		tensor.Data[float32](t)[i] = float32(low + (high-low)*float64(u>>11)*0x1p-53)
	}
	return t
}

const (
	benchRate     = 0.1
	benchMomentum = 0.9
)

// benchState is what a runner of a step holds between steps.
type benchState struct {
	block     *graphBlock
	training  bool
	x, target *tensor.Tensor
	state     []*tensor.Tensor
	buffers   []*tensor.Tensor // of the momentum, by parameter
}

func newBenchState(k *graphBlock, step string) benchState {
	s := benchState{block: k, training: step == "train"}
	ts := k.tensors()
	s.x, s.target = ts[0].Tensor, ts[1].Tensor
	for i, t := range ts[2:] {
		s.state = append(s.state, t.Tensor)
		if s.training && !k.state[i].running() {
			s.buffers = append(s.buffers, tensor.New(tensor.F32, t.Shape()...))
		}
	}
	return s
}

// update applies the operator of SGD with momentum.
func update(b op.Builder, param, grad, buffer op.Value) (newParam, newBuffer op.Value) {
	out := b.All("sgd.update", param, grad, buffer, op.Kw("lr", benchRate), op.Kw("momentum", benchMomentum))
	return out[0], out[1]
}

// named maps the names of the block's state to values.
func (k *graphBlock) named(vs []op.Value) map[string]op.Value {
	p := map[string]op.Value{}
	for i, s := range k.state {
		p[s.name] = vs[i]
	}
	return p
}

// clockOf returns what tells the time that passes, or that this process computes.
func clockOf(cpu bool) func() time.Duration {
	if cpu {
		return stopwatch.CPUTime
	}
	start := time.Now()
	return func() time.Duration { return time.Since(start) }
}

// repeated returns the seconds of one of several calls.
func repeated(n int, cpu bool, f func() error) (float64, error) {
	clock := clockOf(cpu)
	start := clock()
	for range n {
		if err := f(); err != nil {
			return 0, err
		}
	}
	return (clock() - start).Seconds() / float64(n), nil
}

// liveBytes returns the bytes that a collection leaves; the second one empties
// what pools hold.
func liveBytes() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// highWater follows the live bytes.
type highWater struct{ before, most int }

func (h *highWater) start() { h.before, h.most = liveBytes(), 0 }
func (h *highWater) look()  { h.most = max(h.most, liveBytes()-h.before) }

// eagerRunner runs a step operator by operator. Parameters, running statistics
// and momentum change in place, as PyTorch's do, and the tape is dropped before
// the update.
type eagerRunner struct {
	benchState
	watch func() // called after each operator
	fresh func() *eagerRunner
}

func newEagerRunner(k *graphBlock, step string) *eagerRunner {
	fresh := func() *eagerRunner { return &eagerRunner{benchState: newBenchState(k, step)} }
	r := fresh()
	r.fresh = fresh
	return r
}

func (r *eagerRunner) check() ([]*tensor.Tensor, error) {
	s := r.fresh()
	out, err := s.step()
	if !s.training {
		return []*tensor.Tensor{out}, err
	}
	return slices.Concat([]*tensor.Tensor{out}, s.state, s.buffers), err
}

func (r *eagerRunner) time(n int, cpu bool) (float64, error) {
	return repeated(n, cpu, func() error { _, err := r.step(); return err })
}

func (r *eagerRunner) memory() (int, error) {
	var h highWater
	s := r.fresh()
	h.start()
	s.watch = h.look
	_, err := s.step()
	return h.most, err
}

func (r *eagerRunner) session() *eager.Session {
	s := eager.New(ops.Table())
	if r.watch != nil {
		s.Compute(func(call *op.Call) ([]*tensor.Tensor, error) {
			out, err := call.Execute()
			r.watch()
			return out, err
		})
	}
	return s
}

// step returns the result of the block, or the loss.
func (r *eagerRunner) step() (out *tensor.Tensor, err error) {
	s := r.session()
	failed := op.Catch(func() {
		if !r.training {
			out = r.forward(s, r.leaves(s)).(*eager.Var).Tensor
			return
		}
		var grads []op.Value
		if out, grads, err = r.gradients(s); err == nil {
			err = s.Pause(func() error { r.descend(s.Builder(), grads); return nil })
		}
	})
	if failed != nil {
		err = failed
	}
	return out, err
}

func (r *eagerRunner) leaves(s *eager.Session) []op.Value {
	var out []op.Value
	for i, t := range r.state {
		out = append(out, s.Leaf(t, r.training && !r.block.state[i].running()))
	}
	return out
}

func (r *eagerRunner) forward(s *eager.Session, leaves []op.Value) op.Value {
	return r.block.forward(s.Builder(), s.Leaf(r.x, false), r.block.named(leaves), r.training)
}

// gradients returns the loss and the gradients of the parameters.
func (r *eagerRunner) gradients(s *eager.Session) (*tensor.Tensor, []op.Value, error) {
	leaves := r.leaves(s)
	loss := r.block.loss(s.Builder(), r.forward(s, leaves), s.Leaf(r.target, false))
	all, err := s.Backward([]op.Value{loss}, []op.Value{s.Leaf(tensor.Scalar(tensor.F32, 1), false)}, false)
	if err != nil {
		return nil, nil, err
	}
	var grads []op.Value
	for i, v := range leaves {
		if !r.block.state[i].running() {
			grads = append(grads, all[v].(*eager.Var).Tensor)
		}
	}
	return loss.(*eager.Var).Tensor, grads, nil
}

func (r *eagerRunner) descend(b op.Builder, grads []op.Value) {
	at := 0
	for i, t := range r.state {
		if r.block.state[i].running() {
			continue
		}
		param, buffer := update(b, t, grads[at], r.buffers[at])
		t.CopyFrom(param.(*eager.Var).Tensor)
		r.buffers[at].CopyFrom(buffer.(*eager.Var).Tensor)
		at++
	}
}

// compiledRunner runs a step as one compiled graph, which may put the new
// state where the old one was.
type compiledRunner struct {
	benchState
	without  []string
	watch    func()
	compiled *graph.Compiled
	fresh    func() *compiledRunner
}

func newGraphRunner(k *graphBlock, step string, without []string) *compiledRunner {
	fresh := func() *compiledRunner { return &compiledRunner{benchState: newBenchState(k, step), without: without} }
	r := fresh()
	r.fresh = fresh
	return r
}

func (r *compiledRunner) inputs() []*tensor.Tensor {
	in := append([]*tensor.Tensor{r.x}, r.state...)
	if r.training {
		in = append(append(in, r.buffers...), r.target)
	}
	return in
}

// compile traces and compiles the step once.
func (r *compiledRunner) compile() (err error) {
	if r.compiled == nil {
		o := graph.Options{Without: r.without, Watch: r.watch}
		for i := range len(r.state) + len(r.buffers) {
			if r.training {
				o.Donate = append(o.Donate, 1+i)
			}
		}
		g := graph.New(ops.Table(), r.block.name, r.trace, o)
		r.compiled, err = g.Compile(r.inputs()...)
	}
	return err
}

// trace writes the step: the block's result, or the loss, the new state and the
// new buffers.
func (r *compiledRunner) trace(b *graph.Builder, x ...op.Value) []op.Value {
	state := x[1 : 1+len(r.state)]
	y := r.block.forward(b.Builder, x[0], r.block.named(state), r.training)
	if !r.training {
		return []op.Value{y}
	}
	loss := r.block.loss(b.Builder, y, x[len(x)-1])
	var params []op.Value
	for i, v := range state {
		if !r.block.state[i].running() {
			params = append(params, v)
		}
	}
	grads, err := b.Grads([]op.Value{loss}, []op.Value{nil}, params)
	if err != nil {
		op.Fail(err)
	}
	out, buffers, at := []op.Value{loss}, []op.Value(nil), 0
	for i, v := range state {
		if r.block.state[i].running() {
			out = append(out, b.Latest(v.(*graph.Value)))
			continue
		}
		param, buffer := update(b.Builder, v, grads[at], x[1+len(state)+at])
		out, buffers = append(out, param), append(buffers, buffer)
		at++
	}
	return append(out, buffers...)
}

func (r *compiledRunner) step() ([]*tensor.Tensor, error) {
	out, err := r.compiled.Run(0, r.inputs())
	if err == nil && r.training {
		r.state, r.buffers = out[1:1+len(r.state)], out[1+len(r.state):]
	}
	return out, err
}

func (r *compiledRunner) check() ([]*tensor.Tensor, error) {
	s := r.fresh()
	if err := s.compile(); err != nil {
		return nil, err
	}
	return s.step()
}

func (r *compiledRunner) time(n int, cpu bool) (float64, error) {
	if err := r.compile(); err != nil {
		return 0, err
	}
	return repeated(n, cpu, func() error { _, err := r.step(); return err })
}

func (r *compiledRunner) memory() (int, error) {
	var h highWater
	s := r.fresh()
	s.watch = func() { h.look() }
	if err := s.compile(); err != nil {
		return 0, err
	}
	h.start()
	_, err := s.step()
	runtime.KeepAlive(s)
	return h.most, err
}
