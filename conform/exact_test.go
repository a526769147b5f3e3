package conform_test

import (
	"context"
	"slices"
	"testing"

	"plumb/backend"
	"plumb/backend/native"
	"plumb/backend/recorded"
	"plumb/conform"
	"plumb/internal/judge/verdict"
	"plumb/nn"
	"plumb/op"
	"plumb/ops"
	"plumb/program"
	"plumb/tensor"
)

// exact computes in float64, or complex128, and rounds once.
type exact struct{ *native.Backend }

func (e exact) RunBatch(ctx context.Context, jobs []*backend.Job) ([]*backend.Outcome, error) {
	return backend.RunEach(ctx, e, jobs)
}

func (e exact) Run(ctx context.Context, job *backend.Job) (*backend.Outcome, error) {
	o, err := e.Backend.Run(ctx, job)
	if err != nil || o.Status != backend.OK || !slices.ContainsFunc(job.Program.Calls, rounds) {
		return o, err
	}
	wide, err := e.Backend.Run(ctx, verdict.Questions(job, o.Initial)[0])
	if err != nil || wide.Status != backend.OK {
		return o, err
	}
	truth := places(wide)
	for place, t := range places(o) {
		w := truth[place]
		if w == nil || w.DType() == t.DType() || w.DType() != program.Wide(t.DType()) || w.Len() != t.Len() {
			continue
		}
		for i, once := 0, w.Convert(t.DType()); i < t.Len(); i++ {
			t.Set(i, once.At(i))
		}
	}
	return o, nil
}

// rounds reports whether the result of a call is not exact by what the operator is, as a
// cast's to half is: in float64 that is another operator.
func rounds(c program.Call) bool {
	defs := ops.Table().Lookup(c.Target)
	return len(defs) == 0 || slices.ContainsFunc(defs, func(d *op.Def) bool { return d.Tol.Class != op.Exact })
}

func places(o *backend.Outcome) map[string]*tensor.Tensor {
	out := map[string]*tensor.Tensor{}
	recorded.Describe(o, func(place string, t *tensor.Tensor) *recorded.TensorRef {
		out[place] = t
		return nil
	})
	return out
}

// TestExactDevice: a device that rounds once is nearer to the truth than the reference, and
// has no findings, though the suite was recorded on another machine.
func TestExactDevice(t *testing.T) {
	conform.Run(t, exact{native.New(ops.Table(), nn.Modules())}, "")
}
