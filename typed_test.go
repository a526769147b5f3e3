package plumb_test

import (
	"context"
	"testing"

	"plumb"
	"plumb/backend"
	"plumb/backend/native"
	"plumb/internal/draw/opcase"
	"plumb/nn"
	"plumb/op"
	"plumb/ops"
	"plumb/program"
	"plumb/tensor"
)

// sampled are the operators that draw calls of their own, each with a dtype in
// which they are legal.
func sampled() (defs []*op.Def, dtypes []tensor.DType) {
	for _, d := range ops.Table().Defs() {
		legal := opcase.Drawer{Table: ops.Table(), Def: d}.DTypes(tensor.F32, tensor.I64, tensor.C64, tensor.Bool)
		if d.Sample != nil && len(d.Names) > 0 && len(legal) > 0 {
			defs, dtypes = append(defs, d), append(dtypes, legal[0])
		}
	}
	return defs, dtypes
}

// drawTyped records a sampled call of an operator through package api.
func drawTyped(p *plumb.T, d *op.Def, dt tensor.DType) {
	var args []any
	for _, a := range d.Sample(&op.Sampler{Source: p.Source(), DType: dt}) {
		args = append(args, typed(p, a))
	}
	out := plumb.Must(p.Session().Call(d.ID(), args...))
	for _, y := range out {
		p.Return(y)
	}
}

func typed(p *plumb.T, v any) any {
	switch v := v.(type) {
	case *tensor.Tensor:
		return p.Literal(v).Typed()
	case op.Kwarg:
		return op.Kw(v.Name, typed(p, v.Value))
	case []any:
		list := make([]any, len(v))
		for i, e := range v {
			list[i] = typed(p, e)
		}
		return list
	}
	return v
}

// TestTypedCallsHaveTheirNames: what is recorded of a typed call is a call of
// the same operator by a public name, and it runs.
func TestTypedCallsHaveTheirNames(t *testing.T) {
	defs, dtypes := sampled()
	if len(defs) < 200 {
		t.Fatalf("only %d operators have samples", len(defs))
	}
	own := keeper{native.New(ops.Table(), nn.Modules()), map[string]bool{}}
	for i, d := range defs {
		if got := play(t, "Test/"+d.ID(), []string{"plumb.reference=none", "plumb.n=5", "plumb.seed=1"}, func(p *plumb.T) { drawTyped(p, d, dtypes[i]) }, plumb.Candidate(own)); got.failed || got.state != "" {
			t.Errorf("%s: %s %s", d.ID(), got.state, &got.log)
		}
		if !own.ran[d.ID()] {
			t.Errorf("%s: no recorded call is one of the operator's that runs", d.ID())
		}
	}
}

// keeper notes the operators of the first calls that succeeded.
type keeper struct {
	*native.Backend
	ran map[string]bool
}

func (k keeper) Run(ctx context.Context, job *backend.Job) (*backend.Outcome, error) {
	out, err := k.Backend.Run(ctx, job)
	if err != nil || out.Status != backend.OK || len(job.Program.Calls) == 0 {
		return out, err
	}
	inputs := map[program.Ref]*tensor.Tensor{}
	for i := range job.Program.Inputs {
		inputs[program.Ref(job.Program.Inputs[i].Name)] = job.Inputs[i]
	}
	c := job.Program.Calls[0]
	args, kwargs, err := c.OpArgs(func(r program.Ref) (any, error) { return inputs[r], nil })
	if err == nil {
		if call, err := program.Resolve(ops.Table(), c.Target, args, kwargs); err == nil {
			k.ran[call.Def.ID()] = true
		}
	}
	return out, nil
}

// TestTypedCallsAgainstPyTorch draws the same against live PyTorch.
func TestTypedCallsAgainstPyTorch(t *testing.T) {
	defs, dtypes := sampled()
	plumb.Check(t, func(p *plumb.T) {
		i := p.Int(0, len(defs))
		drawTyped(p, defs[i], dtypes[i])
	}, plumb.N(100))
}
