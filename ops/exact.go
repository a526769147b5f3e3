package ops

import (
	"math"
	"slices"

	"plumb/internal/arg"
	"plumb/internal/truth"
	"plumb/op"
	"plumb/tensor"
)

// exactly is the Exact of an operator that computes f of its first parameters.
// Numbers among them are rounded as kernels hold them: to float32 unless a
// tensor is float64.
func exactly(f truth.Func) func(a op.Args) op.Truth {
	return func(a op.Args) op.Truth {
		wide := slices.ContainsFunc(a.AllValues(), func(v op.Value) bool { return v.DType() == tensor.F64 })
		return ofTensors(f, a, wide)
	}
}

// exactlyWide is exactly for operators that compute in float64 in any case.
func exactlyWide(f truth.Func) func(a op.Args) op.Truth {
	return func(a op.Args) op.Truth { return ofTensors(f, a, true) }
}

// ofTensors fixes the numbers among the parameters of f; of NaN it knows nothing.
func ofTensors(f truth.Func, a op.Args, wide bool) op.Truth {
	for i, p := range slices.Backward(a.Sig.Params[:f.Arity()]) {
		if _, ok := a.Vals[i].(op.Value); ok {
			continue
		}
		x := number(a, op.AnyArg(p.Name)).Float()
		if !wide {
			x = float64(float32(x))
		}
		if math.IsNaN(x) {
			return nil
		}
		f = f.Fixed(i, x)
	}
	return f
}

func exactGelu(a op.Args) op.Truth {
	if a.Str(arg.Approximate) == "tanh" {
		return truth.GeluTanh
	}
	return truth.Gelu
}

func exactLogit(a op.Args) op.Truth {
	if !a.Has(arg.Eps) {
		return truth.Logit
	}
	return exactly(truth.LogitWithin)(a)
}

func exactDiv(a op.Args) op.Truth {
	if a.Has(arg.RoundingMode) {
		return nil
	}
	return exactly(truth.Div)(a)
}

// exactPrelu knows the calls whose slopes lie along the last dimension, as
// tensors broadcast: one slope, or one per column.
func exactPrelu(a op.Args) op.Truth {
	rank, slopes := len(a.Value(arg.Input).Shape()), tensor.NumElements(a.Value(arg.Weight).Shape())
	if rank == 0 || slopes > 1 && rank != 2 {
		return nil
	}
	return exactly(truth.LeakyRelu)(a)
}
