package interp

import (
	"testing"

	"plumb/backend"
	"plumb/nn"
	"plumb/op"
	"plumb/ops"
	"plumb/program"
	"plumb/tensor"
)

// TestTrusting: what a kernel writes into its argument is told by an interpreter
// that watches, and by none that trusts; what a call changes in place, or an
// operator says that its kernel does, by both.
func TestTrusting(t *testing.T) {
	in := New(ops.Table(), nn.Modules())
	job := func(target string) *backend.Job {
		p := &program.Program{
			Inputs: []program.Input{{Name: "x", DType: tensor.F32, Shape: []int{4}, Fill: program.Fill{Dist: program.Normal, Hi: 1, Key: 1}}},
			Calls:  []program.Call{{Result: "y", Target: target, Args: []any{program.Ref("x")}}},
		}
		return backend.NewJob(p)
	}
	spoilt := func(in *Interpreter) *backend.Outcome {
		asked := job("torch.neg")
		return in.Computed(t.Context(), asked, func(call *op.Call) ([]*tensor.Tensor, error) {
			defer asked.Inputs[0].Set(0, 99)
			return call.Execute()
		})
	}
	norm := func() *backend.Job {
		asked := job("torch.nn.functional.batch_norm")
		p := asked.Program
		p.Inputs[0].Shape = []int{3, 1}
		for _, name := range []string{"mean", "var"} {
			p.Inputs = append(p.Inputs, program.Input{Name: name, DType: tensor.F32, Shape: []int{1}, Fill: program.Fill{Dist: program.Constant, Lo: 1}})
			p.Calls[0].Args = append(p.Calls[0].Args, program.Ref(name))
		}
		p.Calls[0].Kwargs = []program.Kwarg{{Name: "training", Value: true}}
		return backend.NewJob(p)
	}
	changes := func(o *backend.Outcome) int {
		n := 0
		for _, s := range o.Slots {
			if s.Part == backend.PartChange {
				n++
			}
		}
		return n
	}
	for _, one := range []struct {
		name   string
		got    *backend.Outcome
		wanted int
	}{
		{"watched kernel that spoils", spoilt(in), 1},
		{"trusted kernel that spoils", spoilt(in.Trusting()), 0},
		{"in place, watched", in.Eager(t.Context(), job("torch.relu_")), 1},
		{"told by the operator, watched", in.Eager(t.Context(), norm()), 2},
		{"told by the operator, trusted", in.Trusting().Eager(t.Context(), norm()), 2},
		{"in place, trusted", in.Trusting().Eager(t.Context(), job("torch.relu_")), 1},
	} {
		if n := changes(one.got); one.got.Status != backend.OK || n != one.wanted {
			t.Errorf("%s: %s with %d changes, want %d", one.name, one.got.Status, n, one.wanted)
		}
	}
}
