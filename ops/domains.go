package ops

import (
	"plumb/internal/arg"
	"plumb/op"
)

// holding gives an operator the domain of its input.
func holding(domain op.Domain, d *op.Def) *op.Def {
	d.Domains = map[op.TensorArg]op.Domain{arg.Input: domain}
	return d
}

// asSampled are the domains of tensors that are op.AsSampled: matrices that any
// change makes singular or indefinite, and elements without ties, where PyTorch
// does not say which index it returns.
func asSampled(ps ...op.TensorArg) map[op.TensorArg]op.Domain {
	domains := map[op.TensorArg]op.Domain{}
	for _, p := range ps {
		domains[p] = op.AsSampled
	}
	return domains
}
