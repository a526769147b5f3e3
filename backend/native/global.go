package native

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"plumb/backend"
	"plumb/global"
	"plumb/internal/draw/choice"
	"plumb/op"
	"plumb/tensor"
)

// Global is the mode that runs programs over ranks: "global" has two of them,
// "global-3" three, "global-2x2" a hierarchy.
const Global = "global"

// GlobalBackend runs each program on global tensors. Where the program says
// nothing about it, how the ranks share an input, and by which of its legal
// signatures a call is run, follow from the program's seed.
type GlobalBackend struct {
	*Backend
	mode      string
	placement global.Placement
}

// maxModeRanks bounds the ranks of a mode's name.
const maxModeRanks = 64

// overRanks returns the backend in a mode of global tensors; false for other modes.
func (b *Backend) overRanks(mode string) (*GlobalBackend, bool) {
	hierarchy, ok := hierarchyOf(mode)
	if !ok {
		return nil, false
	}
	p, err := global.NewPlacement("cpu", hierarchy)
	if err != nil || len(p.Ranks) > maxModeRanks {
		return nil, false
	}
	return &GlobalBackend{b, mode, p}, true
}

func hierarchyOf(mode string) (hierarchy []int, ok bool) {
	if mode == Global {
		return []int{2}, true
	}
	sizes, ok := strings.CutPrefix(mode, Global+"-")
	if !ok {
		return nil, false
	}
	for _, s := range strings.Split(sizes, "x") {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			return nil, false
		}
		hierarchy = append(hierarchy, n)
	}
	return hierarchy, true
}

// Info returns the backend's name and modes.
func (b *GlobalBackend) Info() backend.Info { return info(b.mode) }

// Run runs the program. A rank that fails, and parts that are not what an sbp
// promises, are the outcome Crashed.
func (b *GlobalBackend) Run(ctx context.Context, job *backend.Job) (*backend.Outcome, error) {
	start := time.Now()
	source := choice.New(choice.DeriveName(job.Program.Seed, b.mode))
	r := &ranked{ctx: ctx, source: source, known: map[*tensor.Tensor]*global.Tensor{}}
	r.runtime = global.Runtime{Placement: b.placement, Choose: r.choose}
	out := b.interpreter.Computed(ctx, job, r.compute)
	out.Elapsed = time.Since(start)
	return out, nil
}

// ranked computes the calls of one program on global tensors.
type ranked struct {
	ctx     context.Context
	runtime global.Runtime
	source  *choice.Source
	known   map[*tensor.Tensor]*global.Tensor // by what the interpreter knows them as
}

// choose draws a legal signature.
func (r *ranked) choose(_ *op.Call, legal []global.Option) int { return r.source.Index(len(legal)) }

// compute takes the place of op.Call.Execute.
func (r *ranked) compute(call *op.Call) ([]*tensor.Tensor, error) {
	whole := *call
	var err error
	whole.Args = call.Args.MapValues(func(v op.Value) op.Value {
		x, failure := r.global(v.(*tensor.Tensor))
		err = errors.Join(err, failure)
		return x
	})
	if err != nil {
		return nil, err
	}
	results, err := r.runtime.Execute(r.ctx, &whole)
	if err != nil {
		return nil, err
	}
	if err := r.writtenBack(call, &whole); err != nil {
		return nil, err
	}
	out := make([]*tensor.Tensor, len(results))
	for i, x := range results {
		if out[i], err = x.Logical(); err != nil {
			return nil, fmt.Errorf("%s, result %d: %w", call.Def.ID(), i, err)
		}
		if out[i], err = sharing(call, out[i]); err != nil {
			return nil, err
		}
		r.known[out[i]] = x
	}
	return out, nil
}

// sharing returns a view's result in the memory that it shares with an argument,
// by which the interpreter knows a view, if it is what the ranks have.
func sharing(call *op.Call, result *tensor.Tensor) (*tensor.Tensor, error) {
	if call.Def.View == nil {
		return result, nil
	}
	views, err := call.Execute()
	if err != nil || !views[0].SameBits(result) {
		return result, err
	}
	return views[0], nil
}

// writtenBack stores what kernels wrote into arguments where the interpreter looks.
func (r *ranked) writtenBack(call, whole *op.Call) error {
	for _, name := range call.Def.Mutates {
		if !call.Args.Has(name) {
			continue
		}
		now, err := whole.Args.Value(name).(*global.Tensor).Logical()
		if err != nil {
			return fmt.Errorf("%s, argument %s afterwards: %w", call.Def.ID(), name.Name(), err)
		}
		call.Args.Tensor(name).CopyFrom(now)
	}
	return nil
}

// global returns the tensor on the ranks. One that no call made is an input, a
// parameter or a constant: how the ranks share it is drawn.
func (r *ranked) global(x *tensor.Tensor) (*global.Tensor, error) {
	if g := r.known[x]; g != nil {
		return g, nil
	}
	g, err := global.FromLocal(x, r.runtime.Placement, r.draw(x))
	r.known[x] = g
	return g, err
}

// draw draws how ranks share a tensor: split along an axis, whole, or as summands
// where that loses nothing, neither to rounding nor to an infinity.
func (r *ranked) draw(x *tensor.Tensor) global.SBP {
	legal := []op.SBP{op.B}
	for axis := range x.Dim() {
		legal = append(legal, op.S(axis))
	}
	if d := x.DType(); d != tensor.F16 && d != tensor.BF16 && d != tensor.Bool && !x.HasNonFinite() {
		legal = append(legal, op.P)
	}
	s := global.Broadcast(len(r.runtime.Placement.Hierarchy))
	for k := range s {
		s[k] = legal[r.source.Index(len(legal))]
	}
	return s
}
