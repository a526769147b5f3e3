package optim_test

import (
	"math"
	"testing"

	"plumb/internal/eager"
	"plumb/op"
	"plumb/ops"
	"plumb/optim"
	"plumb/tensor"
)

// TestLAMBIsOneFlows compares three steps with what OneFlow 0.9.0 gives on a CPU, to the
// roundings of its float32 loops, in which 1 − β₂ alone is off by 1.3e-5 of itself.
func TestLAMBIsOneFlows(t *testing.T) {
	start := []float64{0.5, -1, 2, 0.25, 1.5, -0.75}
	grad := []float64{0.1, -0.2, 0.3, 0.4, -0.5, 0.6}
	none := make([]float64, 6)
	for _, c := range []struct {
		name        string
		options     []op.Kwarg
		start, grad []float64
		steps       int
		want        []float64
	}{
		{"plain", nil, start, grad, 3, []float64{0.1555292010307312, -0.6555292010307312, 1.6555291414260864, -0.09447083622217178, 1.8444708585739136, -1.0944708585739136}},
		{"betas and eps", kw("betas", []float64{0.5, 0.8}, "eps", 1e-2), start, grad, 3, []float64{0.16840556263923645, -0.6575142741203308, 1.6537047624588013, -0.09823551774024963, 1.8494113683700562, -1.1002002954483032}},
		{"decoupled decay", kw("weight_decay", 0.3), start, grad, 3, []float64{0.12922602891921997, -0.579756498336792, 1.4808176755905151, -0.09603928029537201, 1.672896146774292, -0.9971003532409668}},
		{"L2", kw("weight_decay", 0.3, "adam_w_mode", false), start, grad, 3, []float64{0.1463286280632019, -0.6469509601593018, 1.6466201543807983, -0.09759397059679031, 1.813335657119751, -1.088822603225708}},
		{"no correction", kw("weight_decay", 0.1, "do_bias_correction", false), start, grad, 3, []float64{0.15315358340740204, -0.648745596408844, 1.639930248260498, -0.09464309364557266, 1.829216480255127, -1.0858278274536133}},
		{"a parameter of zeros", nil, none, grad, 1, []float64{-0.10000067, 0.10000067, -0.10000068, -0.10000067, 0.10000068, -0.10000068}},
		{"no step", kw("weight_decay", 0.5), start, none, 1, []float64{0.47499999, -0.94999999, 1.89999998, 0.2375, 1.42499995, -0.71249998}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := &optim.Param{Name: "p", Value: tensor.Float64s(tensor.F32, []int{2, 3}, c.start...)}
			o, err := optim.LAMB().New([]*optim.Param{p}, nil, append(kw("lr", 0.1), c.options...)...)
			if err != nil {
				t.Fatal(err)
			}
			for i := range c.steps {
				g := tensor.New(tensor.F32, 2, 3)
				for j, v := range c.grad {
					g.Set(j, complex(v*float64(i+1), 0))
				}
				p.Grad = g
				if err := o.Step(eager.New(ops.Table()).Builder()); err != nil {
					t.Fatal(err)
				}
			}
			for j, v := range values(tensorOf(p.Value)) {
				if math.Abs(v-c.want[j]) > 1e-5*max(math.Abs(c.want[j]), 0.1) {
					t.Errorf("element %d is %v, OneFlow has %v", j, v, c.want[j])
				}
			}
		})
	}
	if _, err := optim.LAMB().New([]*optim.Param{{Value: tensor.New(tensor.F32)}}, nil, op.Kw("amsgrad", true)); err == nil {
		t.Error("amsgrad is accepted")
	}
}
