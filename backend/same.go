package backend

import (
	"maps"
	"math"
	"slices"

	"plumb/tensor"
)

// Same reports whether two outcomes are alike to the last bit, in all but the
// time they took.
func Same(a, b *Outcome) bool {
	return a.Status == b.Status && a.Class == b.Class && a.Message == b.Message && a.Call == b.Call && a.Blame == b.Blame &&
		slices.EqualFunc(a.Values, b.Values, sameValue) &&
		sameStates(a.Initial, b.Initial) && sameStates(a.Final, b.Final) &&
		maps.EqualFunc(a.Grads, b.Grads, sameTensor) && sameStates(a.ParamGrads, b.ParamGrads) &&
		maps.EqualFunc(a.SecondGrads, b.SecondGrads, sameTensor) && sameStates(a.SecondParamGrads, b.SecondParamGrads) &&
		sameStates(a.Stepped, b.Stepped) &&
		(a.Changes == nil) == (b.Changes == nil) && slices.EqualFunc(a.Changes, b.Changes, func(x, y []Named) bool { return sameState(x, y) })
}

func sameTensor(a, b *tensor.Tensor) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.SameBits(b) && slices.Equal(a.Strides(), b.Strides())
}

func sameState(a, b State) bool {
	return slices.EqualFunc(a, b, func(x, y Named) bool { return x.Name == y.Name && sameTensor(x.Tensor, y.Tensor) })
}

func sameStates(a, b map[string]State) bool { return maps.EqualFunc(a, b, sameState) }

func sameValue(a, b Value) bool {
	return a.RequiresGrad == b.RequiresGrad && a.IsTuple == b.IsTuple && a.Module == b.Module &&
		sameTensor(a.Tensor, b.Tensor) && samePlain(a.Plain, b.Plain) && slices.EqualFunc(a.Tuple, b.Tuple, sameValue)
}

func samePlain(a, b any) bool {
	x, ok := a.(float64)
	y, too := b.(float64)
	if ok && too {
		return math.Float64bits(x) == math.Float64bits(y)
	}
	return a == b
}
