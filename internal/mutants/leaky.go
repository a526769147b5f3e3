package mutants

import (
	"plumb/internal/arg"
	"plumb/nn"
	"plumb/op"
	"plumb/tensor"
)

// Leaky plants the fault of plumb tour: relu lets negative numbers through in the
// last element of each row whose length is odd.
func Leaky() (*op.Table, *nn.Table, error) {
	return Plant(func(defs map[string]*op.Def, _ map[string]*nn.Def) error {
		Around(defs["relu"], func(c *op.Run, run func(*op.Run) error) error {
			err := run(c)
			if err == nil {
				letThrough(c.Tensor(arg.Input), c.Out[0])
			}
			return err
		})
		return nil
	})
}

// letThrough copies what is negative in the last element of each row of odd length.
func letThrough(in, out *tensor.Tensor) {
	shape := out.Shape()
	if len(shape) == 0 || shape[len(shape)-1]%2 == 0 || !out.DType().IsFloat() {
		return
	}
	n := shape[len(shape)-1]
	for i := n - 1; i < out.Len(); i += n {
		if x := in.Float(i); x < 0 {
			out.Set(i, complex(x, 0))
		}
	}
}
