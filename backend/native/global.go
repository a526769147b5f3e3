package native

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
	tamper    func(from, to *global.Tensor, parts []*tensor.Tensor) // of tests
	limit     time.Duration                                         // of a program
}

// maxModeRanks bounds the ranks of a mode's name.
const maxModeRanks = 64

// placementOf returns where a mode of global tensors has them; false for other modes.
func placementOf(mode string) (global.Placement, bool) {
	hierarchy, ok := hierarchyOf(mode)
	if !ok {
		return global.Placement{}, false
	}
	p, err := global.NewPlacement("cpu", hierarchy)
	return p, err == nil && len(p.Ranks) <= maxModeRanks
}

func hierarchyOf(mode string) (hierarchy []int, ok bool) {
	if mode == Global {
		return []int{2}, true
	}
	sizes, ok := strings.CutPrefix(mode, Global+"-")
	if !ok {
		return nil, false
	}
	hierarchy, err := global.ParseHierarchy(sizes)
	return hierarchy, err == nil
}

// Info returns the backend's name and modes.
func (b *GlobalBackend) Info() backend.Info {
	i := b.info(b.mode)
	i.Features = map[string]string{backend.OverRanks: b.placement.String()}
	return i
}

type telling struct{}

// Telling returns a context in which f is told how each call over ranks was run, by
// several goroutines.
func Telling(ctx context.Context, f func(global.Step)) context.Context {
	return context.WithValue(ctx, telling{}, f)
}

// caseLimit is how long ranks may take for a program: some hang where others wait.
const caseLimit = time.Minute

// Run runs the program. A rank that fails, ranks that disagree, and parts that are
// not what an sbp promises, are the outcome Crashed; a rank that does not come is
// TimedOut. The message names the rank and the exchange in which the others wait.
func (b *GlobalBackend) Run(ctx context.Context, job *backend.Job) (*backend.Outcome, error) {
	start := time.Now()
	ctx, cancel := context.WithTimeout(ctx, b.limit)
	defer cancel()
	source := choice.New(choice.DeriveName(job.Program.Seed, b.mode))
	r := &ranked{ctx: ctx, source: source, known: map[*tensor.Tensor]*global.Tensor{}, placed: map[*tensor.Tensor]bool{}}
	r.runtime = global.Runtime{Placement: b.placement, Choose: r.choose, Allows: r.allows, Tamper: b.tamper}
	r.runtime.Explain, _ = ctx.Value(telling{}).(func(global.Step))
	out := b.interpreter.OnRanks(ctx, job, r)
	out.Elapsed = time.Since(start)
	return out, nil
}

// ranked computes the calls of one program on global tensors.
type ranked struct {
	ctx     context.Context
	runtime global.Runtime
	source  *choice.Source
	known   map[*tensor.Tensor]*global.Tensor // by what the interpreter knows them as
	placed  map[*tensor.Tensor]bool           // by the program, or made of such alone
	// told says that the program says how all arguments of a call lie, summed that a
	// signature with summands was chosen, whole that none may be.
	told, summed, whole bool
}

// allows leaves out signatures under which an argument becomes summands, which
// would be rounded with others that it was no sum with.
func (r *ranked) allows(o global.Option) bool { return o.Sums == 0 && !(r.whole && o.Partial()) }

// choose draws a legal signature. Where the program says how all arguments lie it
// is the cheapest, as in OneFlow.
func (r *ranked) choose(call *op.Call, legal []global.Option) int {
	i := r.source.Index(len(legal))
	if r.told {
		i = global.Cheapest(call, legal)
	}
	r.summed = r.summed || legal[i].Partial()
	return i
}

// Compute takes the place of op.Call.Execute.
func (r *ranked) Compute(call *op.Call) ([]*tensor.Tensor, error) {
	whole := *call
	var err error
	p := r.placementOf(call)
	args := call.Args.AllValues()
	r.told = len(args) > 0 && !slices.ContainsFunc(args, func(v op.Value) bool { return !r.placed[v.(*tensor.Tensor)] })
	whole.Args = call.Args.MapValues(func(v op.Value) op.Value {
		x, failure := r.global(v.(*tensor.Tensor), p)
		err = errors.Join(err, failure)
		return x
	})
	if err != nil {
		return nil, err
	}
	out, err := r.execute(call, &whole)
	if err == nil && r.summed {
		out, err = r.unsummed(call, &whole, out)
	}
	r.summed, r.whole = false, false
	return out, err
}

// unsummed computes a call once more, without summands, where these tell less than the
// whole: what is not finite is no sum, and a sum of zeros has lost its sign.
func (r *ranked) unsummed(call, whole *op.Call, out []*tensor.Tensor) ([]*tensor.Tensor, error) {
	infinite := slices.ContainsFunc(out, (*tensor.Tensor).HasNonFinite)
	if !infinite && (len(call.Def.Mutates) > 0 || !slices.ContainsFunc(out, hasZero)) {
		return out, nil
	}
	r.whole = true
	again, err := r.execute(call, whole)
	if err == nil && !infinite && !slices.EqualFunc(out, again, equalButForZeros) {
		return out, nil
	}
	return again, err
}

func hasZero(t *tensor.Tensor) bool {
	return t.DType().IsFloat() && slices.ContainsFunc(elements(t), func(v complex128) bool { return v == 0 })
}

// equalButForZeros reports whether two tensors have the same elements, zeros of either sign.
func equalButForZeros(x, y *tensor.Tensor) bool { return slices.Equal(elements(x), elements(y)) }

func elements(t *tensor.Tensor) []complex128 {
	all := make([]complex128, t.Len())
	for i := range all {
		all[i] = t.At(i)
	}
	return all
}

// execute runs the call on global tensors. What is not finite is no sum of parts,
// each of which may be finite or infinite otherwise: it is computed without summands.
func (r *ranked) execute(call, whole *op.Call) ([]*tensor.Tensor, error) {
	results, err := r.runtime.Execute(r.ctx, whole)
	if err != nil {
		return nil, err
	}
	if err := r.writtenBack(call, whole); err != nil {
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
		r.known[out[i]], r.placed[out[i]] = x, r.told
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

// Place brings a tensor to a placement and an sbp, nil for those that it has.
func (r *ranked) Place(x *tensor.Tensor, p *global.Placement, s global.SBP) error {
	q, t, err := r.Lies(x)
	if err != nil {
		return err
	}
	if p != nil {
		q = *p
	}
	if s != nil {
		t = s
	}
	err = r.Gradient(x, q, t)
	r.placed[x] = err == nil
	return err
}

// Gradient brings a tensor to a placement and an sbp, of which the program says nothing.
func (r *ranked) Gradient(x *tensor.Tensor, p global.Placement, s global.SBP) error {
	if _, _, err := r.Lies(x); err != nil {
		return err
	}
	g, err := r.runtime.ToGlobal(r.ctx, r.known[x], p, s)
	if err == nil {
		r.known[x] = g
	}
	return err
}

// Lies returns where a tensor lies and how; of an input that is drawn now.
func (r *ranked) Lies(x *tensor.Tensor) (global.Placement, global.SBP, error) {
	if r.known[x] == nil {
		if _, err := r.global(x, r.runtime.Placement); err != nil {
			return global.Placement{}, nil, err
		}
	}
	return r.known[x].Placement(), r.known[x].SBP(), nil
}

// Local returns what a rank holds.
func (r *ranked) Local(x *tensor.Tensor, rank int) (*tensor.Tensor, error) {
	if _, _, err := r.Lies(x); err != nil {
		return nil, err
	}
	return r.known[x].ToLocal(rank), nil
}

// placementOf returns where a call runs: where the program put an argument, the
// one with the most ranks, else where the mode has tensors. A gradient that
// arrives from other ranks is brought to those of its value so.
func (r *ranked) placementOf(call *op.Call) global.Placement {
	p, put := r.runtime.Placement, false
	for _, v := range call.Args.AllValues() {
		g := r.known[v.(*tensor.Tensor)]
		if g == nil || g.Placement().Equal(r.runtime.Placement) {
			continue
		}
		if q := g.Placement(); !put || len(q.Ranks) > len(p.Ranks) {
			p, put = q, true
		}
	}
	return p
}

// global returns the tensor on the ranks of a placement. One that no call made is
// an input, a parameter or a constant: how the ranks share it is drawn.
func (r *ranked) global(x *tensor.Tensor, p global.Placement) (*global.Tensor, error) {
	g, err := r.known[x], error(nil)
	switch {
	case g == nil:
		g, err = global.FromLocal(x, p, r.draw(x, p))
	case !g.Placement().Equal(p):
		g, err = r.runtime.ToGlobal(r.ctx, g, p, global.Broadcast(len(p.Hierarchy)))
	}
	r.known[x] = g
	return g, err
}

// draw draws how ranks share a tensor: split along an axis, whole, or as summands
// where that loses nothing, neither to rounding nor to an infinity.
func (r *ranked) draw(x *tensor.Tensor, p global.Placement) global.SBP {
	legal := []op.SBP{op.B}
	for axis := range x.Dim() {
		legal = append(legal, op.S(axis))
	}
	if d := x.DType(); d != tensor.F16 && d != tensor.BF16 && d != tensor.Bool && !x.HasNonFinite() {
		legal = append(legal, op.P)
	}
	s := global.Broadcast(len(p.Hierarchy))
	for k := range s {
		s[k] = legal[r.source.Index(len(legal))]
	}
	return s
}
