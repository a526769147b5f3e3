package verdict_test

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"

	"plumb/backend"
	"plumb/backend/native"
	"plumb/internal/judge"
	"plumb/internal/judge/compare"
	"plumb/internal/judge/verdict"
	"plumb/nn"
	"plumb/op"
	"plumb/ops"
	"plumb/program"
	"plumb/tensor"
)

// planted returns a backend whose operator id runs after its kernels: it
// changes the arguments before, or the results behind, the true kernel's back.
func planted(t *testing.T, id string, run func(original func(*op.Run) error, c *op.Run) error) *native.Backend {
	t.Helper()
	var defs []*op.Def
	found := false
	for _, d := range ops.All() {
		own := *d
		if ops.Table().Def(id).Sig == d.Sig {
			found = true
			own.Kernels = slices.Clone(d.Kernels)
			for i := range own.Kernels {
				original := own.Kernels[i].Run
				own.Kernels[i].Run = func(c *op.Run) error { return run(original, c) }
			}
		}
		defs = append(defs, &own)
	}
	if !found {
		t.Fatalf("no operator %s", id)
	}
	table, err := op.NewTable(defs...)
	if err != nil {
		t.Fatal(err)
	}
	return native.New(table, nn.Modules())
}

// after changes the results.
func after(f func(out *tensor.Tensor)) func(func(*op.Run) error, *op.Run) error {
	return func(original func(*op.Run) error, c *op.Run) error {
		err := original(c)
		f(c.Out[0])
		return err
	}
}

// without computes on arguments of which one holds zeros along its first row.
func without(name op.TensorArg) func(func(*op.Run) error, *op.Run) error {
	return func(original func(*op.Run) error, c *op.Run) error {
		x := c.Tensor(name).Clone()
		x.Set(0, 0)
		args := op.Args{Sig: c.Sig, Vals: slices.Clone(c.Vals)}
		args.Vals[c.Sig.Index(name)] = x
		return original(&op.Run{Args: args, Out: c.Out, Scratch: c.Scratch})
	}
}

func each(f func(v float64) float64) func(*tensor.Tensor) {
	return func(t *tensor.Tensor) {
		for i := range t.Len() {
			t.Set(i, complex(f(t.Float(i)), 0))
		}
	}
}

// judgeNative runs the program on the true native operators and on cand, and
// judges as plumb run does, the true operators in float64 being the oracle.
func judgeNative(t *testing.T, p *program.Program, cand *native.Backend) *verdict.Verdict {
	t.Helper()
	return judgeBounded(t, p, cand, true)
}

// judgeBounded is judgeNative, with or without rounding-error bounds.
func judgeBounded(t *testing.T, p *program.Program, cand *native.Backend, bounded bool) *verdict.Verdict {
	t.Helper()
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	ref := native.New(ops.Table(), nn.Modules())
	job := backend.NewJob(p)
	run := func(b *native.Backend, j *backend.Job) *backend.Outcome {
		out, err := b.Run(context.Background(), j)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	want := run(ref, job)
	if want.Status != backend.OK {
		t.Fatalf("%s: %s", want.Status, want.Message)
	}
	job.State = want.Initial
	got := run(cand, job)
	c := judge.New(judge.Config{Table: ops.Table(), Modules: nn.Modules(), CanAskReference: bounded, Oracle: judge.OnMismatch}).Case(job, want, got)
	c.Policy.NoScalars = true // no exact values
	if !bounded {
		c.Unbounded()
	}
	v := c.Verdict(nil)
	if v.Arguable() {
		var outcomes []*backend.Outcome
		for _, q := range verdict.Questions(job, want.Initial) {
			outcomes = append(outcomes, run(ref, q))
		}
		all := verdict.OracleOf(want, outcomes)
		q := verdict.Inquire(job, want, v)
		for jobs := q.Jobs(1); jobs != nil; jobs = q.Jobs(1) {
			outcomes = nil
			for _, job := range jobs {
				outcomes = append(outcomes, run(ref, job))
			}
			q.Answer(outcomes)
		}
		v = c.Verdict(all)
		if picked := c.Verdict(q.Oracle()); !reflect.DeepEqual(v, picked) {
			t.Errorf("%s: the oracle of what is in dispute says %s (%s), that of everything %s (%s)", job.Program.Name, picked.Word, picked.Reason, v.Word, v.Reason)
		}
	}
	return v
}

func uniform(key uint64, lo, hi float64, shape ...int) program.Input {
	return program.Input{DType: tensor.F32, Shape: shape, RequiresGrad: true, Fill: program.Fill{Dist: program.Uniform, Lo: lo, Hi: hi, Key: key}}
}

func literal(values ...float64) program.Input {
	t := tensor.Float64s(tensor.F32, []int{len(values)}, values...)
	return program.Input{DType: tensor.F32, Shape: t.Shape(), Fill: program.Fill{Dist: program.Literal, Data: t}}
}

// callOf writes one call on the inputs, without a backward pass.
func callOf(target string, inputs ...program.Input) *program.Program {
	p := &program.Program{Name: target}
	c := program.Call{Result: "y", Target: target}
	for i, in := range inputs {
		in.Name = fmt.Sprintf("x%d", i)
		p.Inputs = append(p.Inputs, in)
		c.Args = append(c.Args, program.Ref(in.Name))
	}
	p.Calls = []program.Call{c}
	return p
}

// with adds arguments to the only call.
func with(p *program.Program, args ...any) *program.Program {
	p.Calls[0].Args = append(p.Calls[0].Args, args...)
	return p
}

func ulps(n float64) func(float64) float64 {
	return func(v float64) float64 { return v + n*compare.Spacing(math.Abs(v), tensor.F32) }
}

// upward is exp half a unit in the last place too large.
func upward(_ func(*op.Run) error, c *op.Run) error {
	x := c.Tensor("input")
	for i := range x.Len() {
		e := math.Exp(x.Float(i))
		c.Out[0].Set(i, complex(float64(float32(e+compare.Spacing(e, tensor.F32)/2)), 0))
	}
	return nil
}

// TestErrorsOfOneRegion: where all values are nearly the same, the errors of any
// approximation have one sign; that is no bias.
func TestErrorsOfOneRegion(t *testing.T) {
	p := callOf("torch.exp", uniform(1, 0.5, 0.51, 400))
	if v := judgeNative(t, p, planted(t, "exp", upward)); v.Word != verdict.Aligned {
		t.Error(v.Text())
	}
}

// TestPlantedNumericFaults is the promise of the numerics: each of these is
// found, for every key, and none without the fault.
func TestPlantedNumericFaults(t *testing.T) {
	halfSum := func(_ func(*op.Run) error, c *op.Run) error {
		x, total := c.Tensor("input"), 0.0
		for i := range x.Len() {
			total = float64(tensor.Float64ToFloat16(total + x.Float(i)).Float32())
		}
		c.Out[0].Set(0, complex(total, 0))
		return nil
	}
	for _, f := range []struct {
		name    string
		id      string
		fault   func(func(*op.Run) error, *op.Run) error
		program func(key uint64) *program.Program
	}{
		{"exp 8 ULP off", "exp", after(each(ulps(8))), func(k uint64) *program.Program { return callOf("torch.exp", uniform(k, -1, 1, 7)) }},
		{"tanh 8 ULP off in one element", "tanh", after(func(y *tensor.Tensor) { y.Set(3, complex(ulps(8)(y.Float(3)), 0)) }),
			func(k uint64) *program.Program { return callOf("torch.tanh", uniform(k, -1, 1, 7)) }},
		{"a term of a sum dropped", "sum", without("input"), func(k uint64) *program.Program { return callOf("torch.sum", uniform(k, -1, 1, 1024)) }},
		{"a term of a product dropped", "matmul", without("input"), func(k uint64) *program.Program {
			return callOf("torch.matmul", uniform(k, -1, 1, 1, 1024), uniform(k+100, -1, 1, 1024, 3))
		}},
		{"a term of a convolution dropped", "conv2d", without("weight"), func(k uint64) *program.Program {
			return callOf("torch.nn.functional.conv2d", uniform(k, -1, 1, 1, 64, 5, 5), uniform(k+100, -1, 1, 2, 64, 4, 4))
		}},
		{"a sum accumulated in float16", "sum", halfSum, func(k uint64) *program.Program { return with(callOf("torch.sum", uniform(k, 0, 1, 4, 100)), int64(1)) }},
		{"NaN turned to 0", "relu", after(each(func(v float64) float64 {
			if v != v {
				return 0
			}
			return v
		})), func(uint64) *program.Program { return callOf("torch.relu", literal(1, math.NaN(), -1)) }},
		{"the sign of zero lost", "neg", after(each(func(v float64) float64 { return v + 0 })),
			func(uint64) *program.Program { return callOf("torch.neg", literal(1, 0)) }},
		{"the sign of zero lost in a product", "mul", after(each(func(v float64) float64 { return v + 0 })),
			func(uint64) *program.Program { return callOf("torch.mul", literal(-1, 0), literal(0, 2)) }},
		{"softmax off by less than PyTorch's tolerance", "softmax", after(each(func(v float64) float64 { return v * (1 + 1e-5) })), func(k uint64) *program.Program {
			return with(callOf("torch.softmax", uniform(k, -1, 1, 3, 8)), int64(1))
		}},
		{"layer_norm off by less than PyTorch's tolerance", "layer_norm", after(each(func(v float64) float64 { return v + 8e-6 })), func(k uint64) *program.Program {
			return with(callOf("torch.nn.functional.layer_norm", uniform(k, -1, 1, 3, 8)), program.Tuple{int64(8)})
		}},
		{"a bias of half an ULP upward", "exp", upward, func(k uint64) *program.Program { return callOf("torch.exp", uniform(k, -1, 1, 400)) }},
	} {
		t.Run(f.name, func(t *testing.T) {
			for key := range uint64(20) {
				p := f.program(key)
				if v := judgeNative(t, p, planted(t, f.id, f.fault)); v.Word != verdict.Misaligned {
					t.Errorf("key %d: %s", key, v.Text())
				}
				if v := judgeNative(t, p, native.New(ops.Table(), nn.Modules())); v.Word != verdict.Aligned {
					t.Errorf("key %d, no fault: %s", key, v.Text())
				}
			}
		})
	}
}

// TestExactIntegers: integer-valued terms leave a sum no room, in forward and
// in backward.
func TestExactIntegers(t *testing.T) {
	p := callOf("torch.matmul", uniform(1, 0, 1, 3, 50), uniform(2, 0, 1, 50, 4))
	for i := range p.Inputs {
		p.Inputs[i].Fill = program.Fill{Dist: program.Integer, Lo: -3, Hi: 4, Key: uint64(i)}
	}
	p.Backward = []program.Backward{{Value: "y", Cotangent: program.Fill{Dist: program.Integer, Lo: 1, Hi: 4, Key: 9}}}
	v := judgeNative(t, p, planted(t, "matmul", after(func(y *tensor.Tensor) {
		y.Set(5, complex(ulps(1)(y.Float(5)), 0))
	})))
	if v.Word != verdict.Misaligned || v.Differences[0].Limit.Class != op.Exact {
		t.Errorf("one ULP in a sum of integers: %s", v.Text())
	}
	for _, m := range v.Margins {
		if m.Class != op.Exact {
			t.Errorf("%s %s is judged as %s, want exact", m.Part, m.Name, m.Class)
		}
	}
}
