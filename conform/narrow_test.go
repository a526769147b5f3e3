package conform

import (
	"testing"

	"plumb/backend"
	"plumb/internal/conform/config"
	"plumb/program"
	"plumb/tensor"
)

// TestFourBytesNarrowIndicesAlone: int32 stands for int64 in the indices of max,
// and not in its values.
func TestFourBytesNarrowIndicesAlone(t *testing.T) {
	c, err := config.Load("m.py", []byte("d = {'a': dict(name=['max'], interface=['torch'], para=dict(dim=[0]), tensor_para=dict(args=[dict(shape=[(2,)], dtype=[np.int64])]))}"))
	if err != nil {
		t.Fatal(err)
	}
	pair := func(d tensor.DType) backend.Value {
		one := backend.Value{Tensor: tensor.New(d, 2)}
		return backend.Value{IsTuple: true, Tuple: []backend.Value{one, one}}
	}
	p := &program.Program{Calls: []program.Call{{Result: "step0"}, {Result: "result"}}}
	ref := &backend.Outcome{Values: []backend.Value{pair(tensor.I64), pair(tensor.I64)}}
	cand := &backend.Outcome{Values: []backend.Value{pair(tensor.I32), pair(tensor.I32)}}
	for one := range c.Cases() {
		under, _ := (&Modes{FourBytes: true}).Apply(one)
		got := narrowed(under, p, ref, cand)
		for call, want := range [][2]tensor.DType{{tensor.I64, tensor.I64}, {tensor.I64, tensor.I32}} {
			for i, d := range want {
				if own := got.Values[call].Tuple[i].Tensor.DType(); own != d {
					t.Errorf("result %d of call %d is %s, want %s", i, call, own, d)
				}
			}
		}
		if plain := narrowed(one, p, ref, cand); plain.Values[1].Tuple[1].Tensor.DType() != tensor.I64 {
			t.Error("an index is int32 without the mode")
		}
	}
}
