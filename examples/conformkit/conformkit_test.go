package conformkit

import (
	"context"
	"testing"

	"plumb/backend"
	"plumb/conform"
	"plumb/tensor"
)

// operators are what this backend computes, by PyTorch's names.
var operators = map[string]func(x float32) float32{
	"torch.relu": func(x float32) float32 { return max(x, 0) },
	"torch.neg":  func(x float32) float32 { return -x },
}

// device runs programs of one call that has one float32 argument.
type device struct{}

func (device) Info() backend.Info { return backend.Info{Name: "device", Version: "1"} }
func (device) Close() error       { return nil }

func (device) Run(_ context.Context, job *backend.Job) (*backend.Outcome, error) {
	p := job.Program
	f := operators[p.Calls[0].Target]
	if len(p.Calls) != 1 || len(job.Inputs) != 1 || f == nil || job.Inputs[0].DType() != tensor.F32 {
		return &backend.Outcome{Status: backend.Unsupported, Message: "no operator for " + p.Calls[0].Target}, nil
	}
	x := job.Inputs[0].Contiguous()
	y := tensor.New(tensor.F32, x.Shape()...)
	for i, v := range tensor.Data[float32](x) {
		tensor.Data[float32](y)[i] = f(v)
	}
	return &backend.Outcome{Status: backend.OK, Values: []backend.Value{{Tensor: y}}}, nil
}

func TestConformance(t *testing.T) {
	conform.Run(t, device{}, "baseline")
}
