package optim_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"plumb/graph"
	"plumb/internal/eager"
	"plumb/op"
	"plumb/ops"
	"plumb/optim"
	"plumb/tensor"
)

// stepGraph is a graph that takes the steps of a trainer.
func stepGraph(t *testing.T, tr *trainer, schedule optim.Schedule) *graph.Graph {
	t.Helper()
	g := graph.New(ops.Table(), tr.name, func(b *graph.Builder, x ...op.Value) []op.Value {
		loss := tr.recordedLoss(b.Builder, x)
		b.Backward(loss)
		return []op.Value{loss}
	}, graph.Options{})
	if err := g.AddOptimizer(tr.opt, schedule); err != nil {
		t.Fatal(err)
	}
	if err := g.Accumulate(max(1, tr.parts)); err != nil {
		t.Fatal(err)
	}
	if tr.clipNorm != nil || tr.clipValue > 0 {
		g.BeforeUpdate(func(b op.Builder, params []*optim.Param) error {
			if tr.clipValue > 0 {
				return optim.ClipGradValue(b, params, tr.clipValue)
			}
			order, ok := tr.clipNorm[1].(float64)
			if !ok {
				order = math.Inf(1)
			}
			_, err := optim.ClipGradNorm(b, params, tr.clipNorm[0].(float64), order, false)
			return err
		})
	}
	return g
}

// recordedLoss is the loss of the trainer; where gradients are given, one that has them.
func (tr *trainer) recordedLoss(b op.Builder, x []op.Value) op.Value {
	v := func(i int) op.Value { return tr.params[i].Value }
	if !tr.given {
		return b.Op("mse_loss", b.Op("linear", b.Op("sin", b.Op("linear", x[0], v(0), v(1))), v(2), v(3)), x[1])
	}
	var loss op.Value
	for i, p := range tr.params {
		w, g := p.Value, x[i]
		if tr.dtype.IsComplex() {
			w, g = b.Op("view_as_real", w), b.Op("view_as_real", g)
		}
		part := b.Op("sum", b.Mul(w, g))
		if loss != nil {
			part = b.Add(loss, part)
		}
		loss = part
	}
	return loss
}

func (tr *trainer) graphInputs(step int) []*tensor.Tensor {
	if !tr.given {
		return []*tensor.Tensor{fromValues(tr.dtype, inputs.Shape, inputs.Data), fromValues(tr.dtype, targets.Shape, targets.Data)}
	}
	var in []*tensor.Tensor
	for i, s := range shapes {
		in = append(in, fromValues(tr.dtype, s, tr.grad(step, i)))
	}
	return in
}

// trainByGraph is train by calls of one graph.
func (tr *trainer) trainByGraph(t *testing.T) [][]float64 {
	t.Helper()
	g := stepGraph(t, tr, nil)
	var steps [][]float64
	for i := range tr.steps {
		if _, err := g.Run(tr.graphInputs(i)...); err != nil {
			t.Fatal(err)
		}
		steps = append(steps, tr.snapshot())
	}
	if n := g.Signatures(); n > 2 {
		t.Errorf("%d signatures for %d steps", n, tr.steps)
	}
	return steps
}

// sameStates compares the states of two optimizers bit for bit.
func sameStates(a, b *optim.Optimizer) error {
	x, y := a.StateDict(), b.StateDict()
	if len(x.State) != len(y.State) {
		return fmt.Errorf("states of %d and %d parameters", len(x.State), len(y.State))
	}
	for i, st := range x.State {
		other := y.State[i]
		if !slices.Equal(slices.Sorted(maps.Keys(st)), slices.Sorted(maps.Keys(other))) {
			return fmt.Errorf("states %v and %v of parameter %d", st, other, i)
		}
		for name, v := range st {
			u, isTensor := v.(*tensor.Tensor)
			if !isTensor && v != other[name] {
				return fmt.Errorf("%s of parameter %d: %v and %v", name, i, v, other[name])
			}
			if isTensor && !u.SameBits(other[name].(*tensor.Tensor)) {
				return fmt.Errorf("%s of parameter %d: %v and %v", name, i, values(u), values(other[name].(*tensor.Tensor)))
			}
		}
	}
	return nil
}

// TestGraphsTrainAsEager takes the steps of every optimizer by a graph, one
// call a step, and expects the bits of eager steps, which
// TestOptimizersAlignWithPyTorch holds to PyTorch: parameters and states.
func TestGraphsTrainAsEager(t *testing.T) {
	for _, c := range trainCases() {
		c.given = c.given || c.dtype.IsComplex()
		t.Run(c.name, func(t *testing.T) {
			tr, eagerly := newTrainer(t, &c, c.dtype), newTrainer(t, &c, c.dtype)
			want := eagerly.train(t)
			for i, got := range tr.trainByGraph(t) {
				sameNumbers(t, i, got, want[i])
			}
			if err := sameStates(tr.opt, eagerly.opt); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestGraphAndEagerStepsAlternate: both leave the same behind.
func TestGraphAndEagerStepsAlternate(t *testing.T) {
	for _, c := range []trainCase{
		{name: "SGD", optimizer: "SGD", options: kw("lr", 0.1, "momentum", 0.9), dtype: tensor.F32, steps: 6},
		{name: "RMSprop", optimizer: "RMSprop", options: kw("lr", 0.01, "centered", true), dtype: tensor.F32, steps: 6},
	} {
		want, tr := newTrainer(t, &c, c.dtype).train(t), newTrainer(t, &c, c.dtype)
		g := stepGraph(t, tr, nil)
		for i := range tr.steps {
			if i%2 == 0 {
				s := eager.New(ops.Table())
				tr.gradients(t, s, i)
				if err := tr.opt.Step(s.Builder()); err != nil {
					t.Fatal(err)
				}
			} else if _, err := g.Run(tr.graphInputs(i)...); err != nil {
				t.Fatal(err)
			}
			sameNumbers(t, i, tr.snapshot(), want[i])
		}
	}
}

// TestGraphsFollowSchedules trains by a graph under every schedule.
func TestGraphsFollowSchedules(t *testing.T) {
	for _, c := range scheduleCases {
		t.Run(c.name, func(t *testing.T) {
			train := trainCase{name: "scheduled", dtype: tensor.F32, optimizer: c.optimizer, second: kw("lr", 0.02), steps: scheduleSteps}
			train.options = kw("lr", 0.1)
			if c.optimizer == "SGD" {
				train.options = kw("lr", 0.1, "momentum", 0.9)
			}
			tr, eagerly := newTrainer(t, &train, train.dtype), newTrainer(t, &train, train.dtype)
			tr.opt.Output, eagerly.opt.Output = discard{}, discard{}
			step, err := c.build(tr.opt)
			if err != nil {
				t.Fatal(err)
			}
			eagerStep, err := c.build(eagerly.opt)
			if err != nil {
				t.Fatal(err)
			}
			epoch := 0
			g := stepGraph(t, tr, stepping(func() error { epoch++; return step(epoch - 1) }))
			for i := range tr.steps {
				s := eager.New(ops.Table())
				eagerly.gradients(t, s, i)
				if err := eagerly.opt.Step(s.Builder()); err != nil {
					t.Fatal(err)
				}
				if err := eagerStep(i); err != nil {
					t.Fatal(err)
				}
				if _, err := g.Run(tr.graphInputs(i)...); err != nil {
					t.Fatal(err)
				}
				sameNumbers(t, i, tr.snapshot(), eagerly.snapshot())
			}
		})
	}
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

type stepping func() error

func (f stepping) Step() error     { return f() }
func (stepping) LastLR() []float64 { return nil }

func sameNumbers(t *testing.T, step int, got, want []float64) {
	t.Helper()
	for i := range want {
		if math.Float64bits(got[i]) != math.Float64bits(want[i]) {
			t.Fatalf("step %d, element %d: %v, eagerly %v", step+1, i, got[i], want[i])
		}
	}
}
