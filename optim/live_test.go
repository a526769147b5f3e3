package optim_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"plumb/internal/eager"
	"plumb/op"
	"plumb/ops"
	"plumb/optim"
	"plumb/tensor"
)

// A trainCase trains two layers, linear(sin(linear(x))), with the mean squared
// error, with one optimizer. The sine is there because its derivative is no
// difference, as that of tanh is. The second layer's group has options of its own.
type trainCase struct {
	name      string
	dtype     tensor.DType
	optimizer string
	options   []op.Kwarg
	second    []op.Kwarg
	given     bool // gradients are drawn instead of computed
	clipNorm  []any
	clipValue float64
	steps     int
	parts     int // micro-batches, whose gradients add up; 0 is 1
}

var shapes = [][]int{{4, 3}, {4}, {2, 4}, {2}}

const trainSteps = 20

// variants are every optimizer with each of its options.
var variants = []struct {
	optimizer string
	options   []op.Kwarg
}{
	{"SGD", nil},
	{"SGD", kw("momentum", 0.9)},
	{"SGD", kw("momentum", 0.9, "dampening", 0.3)},
	{"SGD", kw("momentum", 0.9, "nesterov", true)},
	{"SGD", kw("weight_decay", 0.1)},
	{"SGD", kw("momentum", 0.9, "weight_decay", 0.1, "nesterov", true, "maximize", true)},
	{"Adam", nil},
	{"Adam", kw("betas", []float64{0.5, 0.9}, "eps", 1e-3)},
	{"Adam", kw("amsgrad", true)},
	{"Adam", kw("weight_decay", 0.1)},
	{"Adam", kw("maximize", true, "amsgrad", true)},
	{"AdamW", nil},
	{"AdamW", kw("weight_decay", 0.3, "amsgrad", true)},
	{"AdamW", kw("maximize", true)},
	{"RAdam", nil},
	{"RAdam", kw("betas", []float64{0.8, 0.9}, "weight_decay", 0.1)},
	{"RMSprop", nil},
	{"RMSprop", kw("alpha", 0.8, "eps", 1e-3, "weight_decay", 0.1)},
	{"RMSprop", kw("centered", true, "alpha", 0.9, "eps", 1e-2)},
	{"RMSprop", kw("momentum", 0.7, "maximize", true)},
	{"RMSprop", kw("momentum", 0.7, "centered", true, "alpha", 0.9, "eps", 1e-2)},
	{"Adagrad", nil},
	{"Adagrad", kw("lr_decay", 0.1, "weight_decay", 0.1)},
	{"Adagrad", kw("initial_accumulator_value", 0.5, "eps", 1e-3, "maximize", true)},
	{"Adadelta", nil},
	{"Adadelta", kw("rho", 0.7, "eps", 1e-3, "weight_decay", 0.1)},
	{"Adadelta", kw("maximize", true)},
}

func kw(pairs ...any) []op.Kwarg {
	var out []op.Kwarg
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, op.Kw(pairs[i].(string), pairs[i+1]))
	}
	return out
}

func trainCases() []trainCase {
	var cs []trainCase
	for _, v := range variants {
		name := v.optimizer
		for _, o := range v.options {
			name += fmt.Sprintf(" %s=%v", o.Name, o.Value)
		}
		c := trainCase{optimizer: v.optimizer, options: v.options, steps: trainSteps}
		rates := []float64{0.1, 0.03}
		if v.optimizer != "SGD" {
			rates = []float64{0.02, 0.01}
		}
		c.options = append(slices.Clone(c.options), op.Kw("lr", rates[0]))
		c.second = kw("lr", rates[1], "weight_decay", 0.01)
		for _, d := range []tensor.DType{tensor.F64, tensor.F32} {
			c.dtype, c.name = d, d.String()+" "+name
			cs = append(cs, c)
		}
		c.given, c.dtype, c.name = true, tensor.BF16, "bfloat16 "+name
		cs = append(cs, c)
		// PyTorch 1.13 squares RAdam's gradients as complex numbers, and has no amsgrad for them.
		if v.optimizer != "RAdam" && !strings.Contains(name, "amsgrad") {
			c.dtype, c.name = tensor.C64, "complex64 "+name
			cs = append(cs, c)
		}
	}
	clipped := trainCase{dtype: tensor.F32, optimizer: "SGD", options: kw("lr", 0.1, "momentum", 0.9), steps: trainSteps}
	for _, order := range []any{2.0, 1.0, 3.5, "inf", 0.5} {
		c := clipped
		c.clipNorm, c.name = []any{0.5, order}, fmt.Sprintf("float32 SGD clip_norm %v", order)
		cs = append(cs, c)
	}
	clipped.clipValue, clipped.name = 0.05, "float32 SGD clip_value"
	cs = append(cs, clipped)
	for _, optimizer := range []string{"SGD", "Adam"} {
		cs = append(cs, trainCase{name: "float32 " + optimizer + " parts", dtype: tensor.F32, optimizer: optimizer, options: kw("lr", 0.1), steps: trainSteps, parts: inputs.Shape[0]})
	}
	return cs
}

func options(kws []op.Kwarg) map[string]any {
	m := map[string]any{}
	for _, k := range kws {
		m[k.Name] = k.Value
	}
	return m
}

// draw returns n fixed values around zero, none of them near it.
func draw(key uint64, n int) []float64 {
	r := rand.New(rand.NewPCG(key, 1))
	out := make([]float64, n)
	for i := range out {
		out[i] = math.Copysign(0.1+0.9*r.Float64(), r.Float64()-0.5)
	}
	return out
}

func width(d tensor.DType) int {
	if d.IsComplex() {
		return 2
	}
	return 1
}

// start are the parameters before the first step, rounded to float32 so that
// every dtype but bfloat16 begins with the same.
func (c *trainCase) start() [][]float64 {
	var ps [][]float64
	for i, s := range shapes {
		p := draw(uint64(i), tensor.NumElements(s)*width(c.dtype))
		for j := range p {
			p[j] = float64(float32(p[j]))
		}
		ps = append(ps, values(fromValues(c.dtype, s, p)))
	}
	return ps
}

func (c *trainCase) grad(step, param int) []float64 {
	return draw(uint64(100+10*step+param), tensor.NumElements(shapes[param])*width(c.dtype))
}

var (
	inputs  = packed{Shape: []int{5, 3}, Data: draw(90, 15)}
	targets = packed{Shape: []int{5, 2}, Data: draw(91, 10)}
)

func (c *trainCase) request() trainRequest {
	r := trainRequest{DType: c.dtype.String(), Optimizer: c.optimizer, Options: options(c.options), Groups: []map[string]any{{}, options(c.second)},
		Shapes: shapes, Params: c.start(), Steps: c.steps, Parts: c.parts, ClipNorm: slices.Clone(c.clipNorm), ClipValue: c.clipValue}
	if len(r.ClipNorm) > 1 && r.ClipNorm[1] == "inf" {
		r.ClipNorm[1] = "inf"
	}
	if !c.given {
		r.X, r.Y = &inputs, &targets
		return r
	}
	for i := range c.steps {
		var gs [][]float64
		for j := range shapes {
			gs = append(gs, c.grad(i, j))
		}
		r.Grads = append(r.Grads, gs)
	}
	return r
}

// trainer runs a case natively.
type trainer struct {
	*trainCase
	dtype  tensor.DType
	params []*optim.Param
	opt    *optim.Optimizer
	norms  []float64
	// disturb changes the gradients and rates before a step, and parameters and
	// states after it; nil leaves them.
	disturb func(t *tensor.Tensor, scale func(i int) float64)
}

func newTrainer(t *testing.T, c *trainCase, d tensor.DType) *trainer {
	t.Helper()
	tr := &trainer{trainCase: c, dtype: d}
	for i, p := range c.start() {
		v := eager.New(ops.Table()).Leaf(fromValues(d, shapes[i], p), true)
		tr.params = append(tr.params, &optim.Param{Name: fmt.Sprint(i), Value: v})
	}
	groups := []optim.GroupSpec{{Params: tr.params[:2]}, {Params: tr.params[2:], Options: c.second}}
	opt, err := optim.Lookup(c.optimizer).NewGroups(groups, nil, c.options...)
	if err != nil {
		t.Fatal(err)
	}
	tr.opt = opt
	return tr
}

// train returns the parameters after each step.
func (tr *trainer) train(t *testing.T) [][]float64 {
	t.Helper()
	var steps [][]float64
	for i := range tr.steps {
		s := eager.New(ops.Table())
		tr.gradients(t, s, i)
		tr.clip(t, s.Builder())
		before, restore := tr.snapshot(), tr.disturbRates(i+1)
		if err := tr.opt.Step(s.Builder()); err != nil {
			t.Fatal(err)
		}
		restore()
		tr.round(before)
		steps = append(steps, tr.snapshot())
	}
	return steps
}

func (tr *trainer) snapshot() []float64 {
	var out []float64
	for _, p := range tr.params {
		out = append(out, values(tensorOf(p.Value))...)
	}
	return out
}

func tensorOf(v op.Value) *tensor.Tensor {
	if x, ok := v.(*eager.Var); ok {
		return x.Tensor
	}
	return v.(*tensor.Tensor)
}

func (tr *trainer) gradients(t *testing.T, s *eager.Session, step int) {
	t.Helper()
	if tr.given {
		for i, p := range tr.params {
			p.Grad = fromValues(tr.dtype, shapes[i], values(fromValues(tr.trainCase.dtype, shapes[i], tr.grad(step, i))))
		}
		return
	}
	tr.opt.ZeroGrad(true)
	parts := max(1, tr.parts)
	for k := range parts {
		tr.backward(t, s, k, parts)
	}
	for _, p := range tr.params {
		if tr.disturb != nil {
			tr.disturb(tensorOf(p.Grad), func(int) float64 { return 2 * largest(tensorOf(p.Grad)) })
		}
	}
}

// backward adds the gradients of the k-th micro-batch, which is one of several.
func (tr *trainer) backward(t *testing.T, s *eager.Session, k, parts int) {
	t.Helper()
	b := s.Builder()
	v := func(i int) op.Value { return tr.params[i].Value }
	part := func(p packed) op.Value {
		size := p.Shape[0] / parts
		return b.Op("narrow", fromValues(tr.dtype, p.Shape, p.Data), 0, k*size, size)
	}
	err := op.Catch(func() {
		loss := b.Op("mse_loss", b.Op("linear", b.Op("sin", b.Op("linear", part(inputs), v(0), v(1))), v(2), v(3)), part(targets))
		cot, err := s.Backward([]op.Value{loss}, []op.Value{tensor.Scalar(tr.dtype, complex(1/float64(parts), 0))}, false)
		if err != nil {
			op.Fail(err)
		}
		for _, p := range tr.params {
			if g := cot[p.Value]; p.Grad == nil {
				p.Grad = g
			} else {
				p.Grad = b.Add(p.Grad, g)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (tr *trainer) clip(t *testing.T, b op.Builder) {
	t.Helper()
	if tr.clipValue > 0 {
		if err := optim.ClipGradValue(b, tr.params, tr.clipValue); err != nil {
			t.Fatal(err)
		}
	}
	if tr.clipNorm == nil {
		return
	}
	order, ok := tr.clipNorm[1].(float64)
	if !ok {
		order = math.Inf(1)
	}
	norm, err := optim.ClipGradNorm(b, tr.params, tr.clipNorm[0].(float64), order, true)
	if err != nil {
		t.Fatal(err)
	}
	tr.norms = append(tr.norms, tensorOf(norm).Float(0))
}

func largest(t *tensor.Tensor) float64 {
	m := 0.0
	for _, v := range values(t) {
		m = max(m, math.Abs(v))
	}
	return m
}

// disturbRates disturbs the learning rates of a step, by the roundings of the
// numbers with which Adam's are multiplied: 1 − β₂ᵗ and RAdam's ρ are
// differences, and what is rounded before them, in float64 on both sides, counts
// by as much more as the differences are smaller.
func (tr *trainer) disturbRates(step int) (restore func()) {
	var old []float64
	for _, g := range tr.opt.Groups {
		old = append(old, g.LR())
	}
	if betas := tr.opt.Groups[0].Floats("betas"); tr.disturb != nil && betas != nil {
		bias := 1 - math.Pow(betas[1], float64(step))
		times := 1 / bias
		if tr.optimizer == "RAdam" {
			times *= 2 / (1 - betas[1])
		}
		k := tensor.Float64s(tensor.F64, nil, 1)
		tr.disturb(k, func(int) float64 { return times * 0x1p-53 / unit[tr.trainCase.dtype] })
		for i, g := range tr.opt.Groups {
			g.SetLR(old[i] * k.Float(0))
		}
	}
	return func() {
		for i, g := range tr.opt.Groups {
			g.SetLR(old[i])
		}
	}
}

// round disturbs parameters by their size and that of the step, averages of
// gradients by the size of both, and averages of squares by their own.
func (tr *trainer) round(before []float64) {
	if tr.disturb == nil {
		return
	}
	at := 0
	states := tr.opt.StateDict().State
	for i, p := range tr.params {
		x, g := tensorOf(p.Value), tensorOf(p.Grad)
		n := x.Len()
		tr.disturb(x, func(j int) float64 { return math.Abs(x.Float(j)) + math.Abs(x.Float(j)-before[at+j]) })
		for _, name := range slices.Sorted(maps.Keys(states[i])) {
			st, ok := states[i][name].(*tensor.Tensor)
			if !ok || name == "step" {
				continue
			}
			squares := strings.Contains(name, "sq") || name == "sum" || name == "acc_delta"
			tr.disturb(st, func(j int) float64 {
				if squares {
					return math.Abs(st.Float(j))
				}
				return math.Abs(st.Float(j)) + math.Abs(g.Float(j))
			})
		}
		at += n
	}
}

// unit is half the distance from 1 to the next number of the dtype.
var unit = map[tensor.DType]float64{tensor.F64: 0x1p-53, tensor.F32: 0x1p-24, tensor.BF16: 0x1p-8}

const (
	roundings = 8 // of one element in one update, at most: see ops/optim.go
	runs      = 4
	spread    = 8 // limit ÷ largest deviation of the disturbed runs
)

// limits returns by how much the parameters may differ after each step. Both
// sides round each intermediate result; what that does to the parameters is
// measured: the case runs in float64 several times, every gradient, state and
// parameter moved at random by up to the case's roundings after each step
// (stochastic arithmetic: Vignes, Math. Comp. Sim. 35, 1993), and the limit is
// a multiple of the largest deviation from the undisturbed run.
func limits(t *testing.T, c *trainCase) [][]float64 {
	t.Helper()
	exact := newTrainer(t, c, tensor.F64).train(t)
	out := make([][]float64, len(exact))
	for i := range exact {
		out[i] = make([]float64, len(exact[i]))
	}
	u := unit[c.dtype]
	for run := range runs {
		r := rand.New(rand.NewPCG(uint64(run), 2))
		tr := newTrainer(t, c, tensor.F64)
		tr.disturb = func(x *tensor.Tensor, scale func(int) float64) {
			for i := range x.Len() {
				x.Set(i, complex(x.Float(i)+roundings*u*(2*r.Float64()-1)*scale(i), 0))
			}
		}
		for i, step := range tr.train(t) {
			for j, v := range step {
				out[i][j] = max(out[i][j], spread*math.Abs(v-exact[i][j]), 2*u*math.Abs(v))
			}
		}
	}
	return out
}

// limits is limits, the function; for complex parameters, which are pairs of reals: the limit
// of the same case with real parameters, by its largest element.
func (c *trainCase) limits(t *testing.T) [][]float64 {
	t.Helper()
	if !c.dtype.IsComplex() {
		return limits(t, c)
	}
	real := *c
	real.dtype = tensor.F32
	out := limits(t, &real)
	for i := range out {
		out[i] = slices.Repeat([]float64{slices.Max(out[i])}, 2*len(out[i]))
	}
	return out
}

func TestOptimizersAlignWithPyTorch(t *testing.T) {
	r := request{Train: map[string]trainRequest{}}
	for _, c := range trainCases() {
		r.Train[c.name] = c.request()
	}
	want, live := reference(t, r)
	for i, c := range trainCases() {
		if testing.Short() && i%4 != 0 {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			ref, ok := want.Train[c.name]
			if !ok {
				if live {
					t.Fatal("PyTorch has no answer")
				}
				t.Skip("not recorded")
			}
			tr := newTrainer(t, &c, c.dtype)
			got, limit := tr.train(t), c.limits(t)
			worst := farthest(t, got, ref.Steps, limit)
			if !c.dtype.IsComplex() {
				farthest(t, newTrainer(t, &c, c.dtype).trainByGraph(t), ref.Steps, limit)
			}
			for i, v := range ref.Norms {
				if d := math.Abs(tr.norms[i] - v); d > 64*0x1p-24*v {
					t.Errorf("step %d: total norm %v, PyTorch has %v", i+1, tr.norms[i], v)
				}
			}
			t.Logf("worst difference ÷ limit %.3g", worst)
		})
	}
	if *record {
		writeRecorded(t, func(out *reply) { out.Version, out.Train = want.Version, want.Train })
	}
}

// farthest returns the largest difference of two trainings as a part of its limit.
func farthest(t *testing.T, got, want, limit [][]float64) float64 {
	t.Helper()
	worst := 0.0
	for i, step := range want {
		for j, v := range step {
			off := math.Abs(got[i][j]-v) / limit[i][j]
			if worst = max(worst, off); !(off <= 1) {
				t.Fatalf("step %d, element %d: %v, PyTorch has %v; the difference is %.3g times the limit %.3g", i+1, j, got[i][j], v, off, limit[i][j])
			}
		}
	}
	return worst
}

// writeRecorded changes the recorded file.
func writeRecorded(t *testing.T, change func(*reply)) {
	t.Helper()
	out := &reply{}
	if text, err := os.ReadFile(recorded); err == nil {
		if err := json.Unmarshal(text, out); err != nil {
			t.Fatal(err)
		}
	}
	change(out)
	for name := range out.Train {
		if !strings.HasPrefix(name, "float64") {
			delete(out.Train, name)
		}
	}
	for name, c := range out.Schedules {
		if !strings.Contains(name, "SequentialLR") && !strings.Contains(name, "Plateau") {
			c.Text = ""
			out.Schedules[name] = c
		}
	}
	for name, c := range out.Train {
		c.Steps, c.State = c.Steps[:5], nil
		out.Train[name] = c
	}
	text, err := json.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(recorded, text, 0o644); err != nil {
		t.Fatal(err)
	}
}
