package diopi

import (
	"math"
	"slices"

	"plumb/op"
	"plumb/tensor"
)

// softmaxes is the shape of what attention says of its rows: batch, head, place. Sequences
// that lie one behind the other are the batch, the longest has the places.
func (b *binding) softmaxes() []int {
	q := b.shape("q")
	if len(q) == 4 {
		return []int{q[0], q[2], q[1]}
	}
	longest := 0
	for _, name := range []string{"max_seqlen_q", "max_seqlen"} {
		if n, ok := b.value(name).(int); ok {
			longest = n
		}
	}
	for _, name := range []string{"cu_seqlens_q", "cu_seqlens"} {
		if ends, err := b.ends(name); err == nil && ends != nil && len(q) == 3 {
			return []int{max(0, ends.Len()-1), q[1], longest}
		}
	}
	return nil
}

// ends are integers as a tensor of int32; nil where there are none.
func (b *binding) ends(name string) (*tensor.Tensor, error) {
	switch v := b.value(name).(type) {
	case nil:
		return nil, nil
	case op.Value:
		return tensorOf(v).Convert(tensor.I32), nil
	case []int:
		t := tensor.New(tensor.I32, len(v))
		for i, n := range v {
			t.Set(i, complex(float64(n), 0))
		}
		return t, nil
	}
	return nil, gapf("%s is no list of integers", name)
}

// scale is a number, or what attention scales by where it is None or 0.
func (b *binding) scale(name string) float64 {
	switch v := b.value(name).(type) {
	case int:
		if v != 0 {
			return float64(v)
		}
	case float64:
		if v != 0 {
			return v
		}
	}
	q := append([]int{1}, b.shape("q")...)
	return 1 / math.Sqrt(float64(q[len(q)-1]))
}

// beyond is the mask of an attention that is causal where the argument says so: true is
// what lies behind the diagonal and is hidden, as on Ascend, for whose devices DIOPI has
// the functions that take one (attenMask of aclnnFlashAttentionScore). Nil for others.
func (b *binding) beyond(causal string) *tensor.Tensor {
	if b.value(causal) != true {
		return nil
	}
	rows, columns := b.places("q", "max_seqlen_q"), b.places("k", "max_seqlen_kv")
	t := tensor.New(tensor.Bool, rows, columns)
	for i := range t.Len() {
		if i%columns > i/columns {
			t.SetInt(i, 1)
		}
	}
	return t
}

// places is how many an argument of attention has in a sequence; where sequences lie one
// behind the other, it is another argument.
func (b *binding) places(name, longest string) int {
	if n, ok := b.value(longest).(int); ok {
		return n
	}
	shape := append(slices.Clone(b.shape(op.TensorArg(name))), 0, 0, 0)
	switch b.value("input_layout") {
	case "BNSD":
		return shape[2]
	case "SBH":
		return shape[0]
	}
	return shape[1]
}
