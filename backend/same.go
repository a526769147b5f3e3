package backend

import (
	"cmp"
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
		maps.EqualFunc(a.Initial, b.Initial, sameState) && a.Watched == b.Watched && a.ForwardOnly == b.ForwardOnly && a.Derived == b.Derived && a.NoGradients == b.NoGradients && a.NoElements == b.NoElements && a.Permissive == b.Permissive && a.OwnForms == b.OwnForms &&
		slices.EqualFunc(byPlace(a.Slots), byPlace(b.Slots), func(x, y Slot) bool { return x.Place == y.Place && sameTensor(x.Tensor, y.Tensor) })
}

// byPlace returns slots in an order that does not depend on who filled them.
func byPlace(slots []Slot) []Slot {
	return slices.SortedFunc(slices.Values(slots), func(a, b Slot) int {
		return cmp.Or(cmp.Compare(a.Part, b.Part), a.Call-b.Call, cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Name, b.Name))
	})
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
