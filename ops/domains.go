package ops

import (
	"fmt"
	"strings"

	"plumb/internal/arg"
	"plumb/op"
)

// domains are the arguments that cannot hold any number, by operator and parameter.
var domains = map[string]map[op.TensorArg]op.Domain{
	"binary_cross_entropy": {arg.Input: op.UnitRange, arg.Target: op.UnitRange},
	"gaussian_nll_loss":    {arg.Var: op.UnitRange},
	"quantile":             {arg.Q: op.UnitRange},
	"nanquantile":          {arg.Q: op.UnitRange},
	"grid_sample":          {arg.Grid: op.IntRange}, // its gradient reads outside of memory
	"histc":                {arg.Input: op.IntRange},
	"to":                   {arg.Input: op.IntRange},
	"byte":                 {arg.Input: op.IntRange},
	"char":                 {arg.Input: op.IntRange},
	"short":                {arg.Input: op.IntRange},
	"int":                  {arg.Input: op.IntRange},
	"long":                 {arg.Input: op.IntRange},
	"signbit":              {arg.Input: op.NoNaN},
	"copysign":             {arg.Other: op.NoNaN},
	"nll_loss":             {arg.Weight: op.Constant},
	"cross_entropy":        {arg.Weight: op.Constant},
}

// sampledOnly are the operators all of whose tensors are op.AsSampled: matrices
// that any change makes singular or indefinite, and elements without ties,
// where PyTorch does not say which index it returns.
var sampledOnly = strings.Fields(`
	cholesky linalg_cholesky linalg_cholesky_ex det linalg_det slogdet linalg_slogdet logdet
	inverse inverse.near linalg_inv linalg_solve matrix_power matrix_power.identity
	argmax argmin argsort argsort.stable kthvalue median median.dim nanmedian nanmedian.dim mode
	msort searchsorted sort sort.stable topk`)

// withDomains gives the operators the domains of their arguments.
func withDomains(defs []*op.Def) []*op.Def {
	byID := map[string]*op.Def{}
	for _, d := range defs {
		byID[idOf(d)] = d
		d.Domains = domains[idOf(d)]
	}
	for _, id := range sampledOnly {
		s, err := op.ParseSig(byID[id].Sig)
		if err != nil {
			panic(fmt.Errorf("operator %s: %w", id, err))
		}
		all := map[op.TensorArg]op.Domain{}
		for _, p := range s.Params {
			if p.Type.Kind == op.KTensor {
				all[op.TensorArg(p.Name)] = op.AsSampled
			}
		}
		byID[id].Domains = all
	}
	return defs
}

// idOf returns the id of an operator that is in no table yet.
func idOf(d *op.Def) string {
	id, _, _ := strings.Cut(d.Sig, "(")
	return id
}
