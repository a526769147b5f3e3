package diopi

import (
	"slices"
	"testing"

	"plumb/internal/conform/config"
	"plumb/program"
	"plumb/tensor"
)

func only(t *testing.T, src string) []*config.Case {
	t.Helper()
	c, err := config.Load("m.py", []byte("d = {"+src+"}"))
	if err != nil {
		t.Fatal(err)
	}
	var out []*config.Case
	for one := range c.Cases() {
		out = append(out, one)
	}
	return out
}

// TestModesOfPrograms: an image keeps its elements in another layout, and an
// index its values in another dtype.
func TestModesOfPrograms(t *testing.T) {
	m := &config.Modes{ChannelsLast: true, FourBytes: true}
	input := func(c *config.Case, name string) *tensor.Tensor {
		p, err := Program(c, 7)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(p.Inputs, func(in program.Input) bool { return in.Name == name })
		if i < 0 {
			t.Fatalf("no input %s", name)
		}
		return p.Inputs[i].Materialize()
	}
	conv := only(t, "'a': dict(name=['max_pool2d'], para=dict(kernel_size=[2]), tensor_para=dict(args=[dict(shape=[(2, 3, 4, 5)], dtype=[np.float32])]))")[0]
	changed, _ := m.Apply(conv)
	plain, last := input(conv, "input"), input(changed, "input")
	if !slices.Equal(last.Strides(), []int{60, 1, 15, 3}) || !last.Contiguous().SameBits(plain) {
		t.Errorf("strides %v, or other elements", last.Strides())
	}
	pick := only(t, "'a': dict(name=['index_select'], interface=['torch'], para=dict(dim=[0]), tensor_para=dict(args=[dict(shape=[(4,)], dtype=[np.float32]), dict(ins=['index'], shape=[(9,)], dtype=[np.int64], gen_fn=dict(fn='Genfunc.randint', high=4))]))")[0]
	changed, _ = m.Apply(pick)
	wide, narrow := input(pick, "index"), input(changed, "index")
	if narrow.DType() != tensor.I32 || !narrow.Convert(tensor.I64).SameBits(wide) {
		t.Errorf("index is %s %v, and was %v", narrow.DType(), narrow, wide)
	}
}
