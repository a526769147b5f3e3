package ops_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"plumb/op"
	"plumb/ops"
	"plumb/tensor"
)

// updates are the operators that take a learning rate.
func updates() []*op.Def {
	return slices.DeleteFunc(slices.Clone(ops.Table().Defs()), func(d *op.Def) bool { return !d.Sigs()[0].Takes(op.AnyArg("lr")) })
}

func withArg(call *op.Call, name string, v any) *op.Call {
	vals := slices.Clone(call.Args.Vals)
	vals[call.Args.Sig.Index(op.AnyArg(name))] = v
	return &op.Call{Def: call.Def, Args: op.Args{Sig: call.Args.Sig, Vals: vals}}
}

func TestUpdatesTakeTheRateAsNumberOrTensor(t *testing.T) {
	if len(updates()) < 7 {
		t.Fatalf("%d updates, want SGD, Adam, AdamW, RAdam, RMSprop, Adagrad and Adadelta", len(updates()))
	}
	for _, d := range updates() {
		for key := range uint64(8) {
			call := sample(t, d, key, tensor.F32)
			number := execute(t, withArg(call, "lr", op.ScalarOf(0.25)))
			same := execute(t, withArg(call, "lr", tensor.Float64s(tensor.F64, nil, 0.25)))
			for i := range number {
				if number[i].DType() != same[i].DType() {
					t.Errorf("%s, result %d is %s, with a tensor %s", d.ID(), i, number[i], same[i])
				}
				for j := range number[i].Len() {
					if a, b := number[i].Float(j), same[i].Float(j); math.Abs(a-b) > 16*0x1p-24*(2+math.Abs(a)) {
						t.Errorf("%s, result %d: %v, with a tensor %v", d.ID(), i, a, b)
					}
				}
			}
		}
	}
}

func TestUpdatesRejectWhatDoesNotFitTheParameter(t *testing.T) {
	for _, d := range updates() {
		call := sample(t, d, 1, tensor.F32)
		shape := call.Args.Value("param").Shape()
		for name, bad := range map[string]*tensor.Tensor{
			"grad":  tensor.New(tensor.F64, shape...),
			"param": tensor.New(tensor.I64, shape...),
			"lr":    tensor.New(tensor.F32, 1),
		} {
			_, err := withArg(call, name, bad).Execute()
			var e *op.Error
			if !errors.As(err, &e) || e.Class != "RuntimeError" {
				t.Errorf("%s with %s as %s: error %v, want a RuntimeError", d.ID(), bad, name, err)
			}
		}
	}
}
