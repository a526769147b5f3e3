package global

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"plumb/graph"
	"plumb/internal/ranks"
	"plumb/op"
	"plumb/tensor"
)

// Runtime runs operators on global tensors.
type Runtime struct {
	// Placement is where the results of calls without tensor arguments lie.
	Placement Placement
	// Choose picks one of the legal signatures of a call for a dimension of the
	// hierarchy; nil stands for Cheapest.
	Choose func(call *op.Call, legal []Option) int
	// Allows, where it is not nil, says which legal signatures may be chosen; that
	// in which every rank has all and computes all always may.
	Allows func(Option) bool
	// Tamper, where it is not nil, may put other parts in the place of those that a
	// boxing brought about, by position: so are faults planted that must be found.
	Tamper func(from, to *Tensor, parts []*tensor.Tensor)
	// Explain, where it is not nil, is told how each call was run.
	Explain func(Step)
	// Demands are how some values of a graph have to lie once they are made, where
	// the hierarchy has as many dimensions: plans box them there.
	Demands map[*graph.Value]SBP
}

// Option is a legal signature of a call for one dimension of a hierarchy.
type Option struct {
	op.Sharding
	// Cost is how many bytes have to travel until the arguments lie so.
	Cost int
	// Moves is how many of the arguments lie otherwise now, Sums how many of these
	// are to be summands.
	Moves, Sums int
}

// Step says how a call was run.
type Step struct {
	Call *op.Call
	// Signature has a Sharding for each dimension of the hierarchy.
	Signature []op.Sharding
	// Gathered says why every rank computes the whole: nothing else is legal, or
	// nothing cheaper. "" where ranks share the work.
	Gathered string
	// Boxed are the arguments that had to move, with the bytes that travelled.
	Boxed []Boxed
}

// Boxed is an argument that was brought to another sbp.
type Boxed struct {
	Argument string
	From, To SBP
	Bytes    int
}

// Cheapest returns the signature whose arguments cost least to bring there, of
// several the one under which the fewest arguments move, the first of those.
func Cheapest(_ *op.Call, legal []Option) int {
	best := 0
	for i, o := range legal {
		if b := legal[best]; o.Cost < b.Cost || o.Cost == b.Cost && o.Moves < b.Moves {
			best = i
		}
	}
	return best
}

// Execute computes a call whose tensor arguments are *Tensor. Signatures are
// chosen one dimension of the hierarchy at a time, the arguments brought to
// them, and the kernel runs on every rank. The error is a rejection (*op.Error),
// a *ranks.Fault, or says that the operator itself is broken.
func (rt *Runtime) Execute(ctx context.Context, call *op.Call) ([]*Tensor, error) {
	p, err := rt.placementOf(call)
	if err != nil {
		return nil, err
	}
	l, err := rt.launch(call, p, func(v op.Value) (SBP, error) {
		t, ok := v.(*Tensor)
		if !ok {
			return nil, fmt.Errorf("%s: an argument is not global", call.Def.ID())
		}
		return t.sbp, nil
	})
	if err != nil {
		return nil, err
	}
	l.plan()
	if err := l.box(ctx); err != nil {
		return nil, err
	}
	return l.run(ctx)
}

// Way is how a call would run.
type Way struct {
	// Args says how the tensor arguments, in their order, are brought to lie, Results
	// how the results lie then.
	Args, Results []SBP
	// Sized says that a rank puts sizes of its own into the call.
	Sized bool
}

// Follows returns how a call would run whose arguments, of which no element is
// looked at, lie on the runtime's placement as lies tells.
func (rt *Runtime) Follows(call *op.Call, lies func(op.Value) SBP) (*Way, error) {
	l, err := rt.launch(call, rt.Placement, func(v op.Value) (SBP, error) {
		s := lies(v)
		return s, s.Fits(rt.Placement)
	})
	if err != nil {
		return nil, err
	}
	l.plan()
	w := &Way{Sized: slices.ContainsFunc(l.signature, func(s op.Sharding) bool { return len(s.Sizes) > 0 })}
	for i := range l.names {
		w.Args = append(w.Args, l.wants(i))
	}
	for i := range max(1, len(l.metas)) {
		w.Results = append(w.Results, l.gives(i))
	}
	return w, nil
}

// ToGlobal moves a tensor to another placement or sbp.
func (rt *Runtime) ToGlobal(ctx context.Context, t *Tensor, p Placement, s SBP) (*Tensor, error) {
	x, err := t.ToGlobal(ctx, p, s)
	if err != nil || x == t || rt.Tamper == nil {
		return x, err
	}
	tampered := *x
	tampered.parts = slices.Clone(x.parts)
	rt.Tamper(t, x, tampered.parts)
	return &tampered, nil
}

// placementOf returns the placement that all arguments have.
func (rt *Runtime) placementOf(call *op.Call) (Placement, error) {
	p, found := rt.Placement, false
	for _, v := range call.Args.AllValues() {
		t, ok := v.(*Tensor)
		if !ok {
			continue
		}
		if found && !p.Equal(t.placement) {
			return p, op.RuntimeError("all tensors of %s must have the same placement, not %s and %s", call.Def.ID(), p, t.placement)
		}
		p, found = t.placement, true
	}
	return p, nil
}

// launch is one call on its way over the ranks.
type launch struct {
	*Runtime
	call      *op.Call
	placement Placement
	names     []string
	from      []SBP           // of the arguments, in their order
	metas     []op.Meta       // nil where they depend on elements
	joint     [][]op.Sharding // signatures that NdSBP states
	signature []op.Sharding   // by dimension of the hierarchy
	boxed     []*Tensor       // the arguments, in their order
	step      Step
}

// launch prepares a call whose arguments lie as lies tells.
func (rt *Runtime) launch(call *op.Call, p Placement, lies func(op.Value) (SBP, error)) (*launch, error) {
	l := &launch{Runtime: rt, call: call, placement: p, names: call.Args.ArgNames()}
	if !call.Def.Traits.Has(op.Dynamic) {
		var err error
		if l.metas, err = call.Infer(); err != nil {
			return nil, err
		}
	}
	for _, v := range call.Args.AllValues() {
		s, err := lies(v)
		if err != nil {
			return nil, err
		}
		l.from = append(l.from, s)
	}
	return l, l.stated()
}

// plan chooses the signature of each dimension.
func (l *launch) plan() {
	l.step = Step{Call: l.call}
	if reason := l.wholly(); reason != "" {
		l.step.Gathered = reason
		l.signature = make([]op.Sharding, len(l.placement.Hierarchy))
		for k := range l.signature {
			l.signature[k] = everywhere
		}
		return
	}
	l.keepAllowed()
	corners, fits, alone := []*op.Call{l.call}, false, true
	for k, n := range l.placement.Hierarchy {
		c, several := l.choose(k, l.legal(k, l.signature, alone, corners), corners)
		fits = fits || several
		l.signature, alone = append(l.signature, c.Sharding), c.alone
		corners = nextCorners(corners, c.Sharding, n)
	}
	switch {
	case slices.ContainsFunc(l.signature, shares):
	case fits:
		l.step.Gathered = nothingCheaper
	default:
		l.step.Gathered = nothingFits
	}
}

// halved reports whether a tensor of the call has a half type: its summands are
// not kept apart, as each would be rounded to half.
func (l *launch) halved() bool {
	half := func(d tensor.DType) bool { return d == tensor.F16 || d == tensor.BF16 }
	return slices.ContainsFunc(l.call.Args.AllValues(), func(v op.Value) bool { return half(v.DType()) }) ||
		slices.ContainsFunc(l.metas, func(m op.Meta) bool { return half(m.DType) })
}

// shares reports whether a rank has less than the whole of some argument or result.
func shares(s op.Sharding) bool {
	for _, sbp := range s.Args {
		if sbp != op.B {
			return true
		}
	}
	return slices.ContainsFunc(s.Results, func(e op.SBP) bool { return e != op.B })
}

// nothingCheaper is why a call that ranks could share is not shared.
const nothingCheaper = "nothing legal is cheaper"

// nothingFits is why a call is not shared of which no signature fits the ranks.
const nothingFits = "no signature fits the ranks"

// everywhere is the signature under which each rank has all arguments and computes all.
var everywhere = op.Sharding{Results: []op.SBP{op.B}}

// wholly says why nothing but everywhere is legal; "" if that is not known.
func (l *launch) wholly() string {
	switch d := l.call.Def; {
	case d.NotSplittable != "":
		return d.NotSplittable
	case d.Traits.Has(op.Dynamic) || d.Traits.Has(op.Random):
		return "the results depend on all elements"
	case l.call.Stores:
		return "it stores into a memory"
	}
	return ""
}

// choose picks one of the signatures for dimension k that are legal for every piece
// that the dimensions before leave, and says whether there were several.
func (l *launch) choose(k int, legal []candidate, corners []*op.Call) (c candidate, several bool) {
	at := l.call
	if len(corners) > 0 {
		at = corners[0]
	}
	var options []Option
	var chosen []candidate
	for i, c := range legal {
		if o := l.priced(c.Sharding, k, at); i == 0 || !c.alone || l.Allows == nil || l.Allows(o) {
			options, chosen = append(options, o), append(chosen, c)
		}
	}
	if l.Choose == nil {
		return chosen[Cheapest(l.call, options)], len(options) > 1
	}
	return chosen[l.Choose(l.call, options)], len(options) > 1
}

// common returns the signatures that are legal for all of the calls and fit n ranks.
func common(corners []*op.Call, n int) []op.Sharding {
	var all []op.Sharding
	for i, c := range corners {
		metas, err := c.Infer()
		if err != nil {
			return nil
		}
		shardings, err := c.Shardings()
		if err != nil {
			return nil
		}
		fitting := map[string]bool{}
		for _, s := range shardings {
			fitting[s.String()] = s.Fits(c.Args, metas, n)
		}
		if i == 0 {
			all = shardings
		}
		all = slices.DeleteFunc(all, func(s op.Sharding) bool { return !fitting[s.String()] })
	}
	return all
}

// nextCorners returns the calls of the first and the last rank along a
// dimension, which have the largest and the smallest pieces.
func nextCorners(corners []*op.Call, s op.Sharding, n int) []*op.Call {
	var next []*op.Call
	for _, c := range corners {
		for _, rank := range []int{0, n - 1} {
			if p, err := piece(c, s, n, rank); err == nil {
				next = append(next, p)
			}
		}
	}
	return next
}

// priced says what a signature costs for dimension k, by OneFlow's table.
func (l *launch) priced(s op.Sharding, k int, corner *op.Call) Option {
	o := Option{Sharding: s}
	values := corner.Args.AllValues()
	for i, v := range l.call.Args.AllValues() {
		from, to := l.from[i][k], s.Args[l.names[i]]
		if from != to {
			o.Moves++
			if to == op.P {
				o.Sums++
			}
		}
		o.Cost += Cost(from, to, tensor.NumElements(values[i].Shape())*v.DType().Size(), l.placement.Hierarchy[k])
	}
	return o
}

// Cost returns how many bytes travel when ranks in a row bring a tensor of as
// many bytes from one SBP to another.
func Cost(from, to op.SBP, bytes, ranks int) int {
	_, splits := to.Axis()
	_, split := from.Axis()
	switch {
	case from == to || to == op.P || from == op.B:
		return 0
	case split && splits:
		return bytes * (ranks - 1) / ranks
	case from == op.P && to == op.B:
		return 2 * bytes * (ranks - 1)
	}
	return bytes * (ranks - 1)
}

// box brings the arguments to the signature.
func (l *launch) box(ctx context.Context) error {
	for i, v := range l.call.Args.AllValues() {
		t, to := v.(*Tensor), l.wants(i)
		x, err := l.ToGlobal(ctx, t, l.placement, to)
		if err != nil {
			return fmt.Errorf("%s, argument %s: %w", l.call.Def.ID(), l.names[i], err)
		}
		if x != t && l.Explain != nil {
			l.step.Boxed = append(l.step.Boxed, Boxed{l.names[i], t.SBP(), to, t.Bytes(l.placement, to)})
		}
		if l.mutates(i) {
			x = x.ownCopy()
		}
		l.boxed = append(l.boxed, x)
	}
	return nil
}

// wants is how argument i has to lie.
func (l *launch) wants(i int) SBP {
	to := make(SBP, len(l.signature))
	for k, s := range l.signature {
		to[k] = s.Args[l.names[i]]
	}
	return to
}

// gives is how result i lies afterwards.
func (l *launch) gives(i int) SBP {
	s := make(SBP, len(l.signature))
	for k := range s {
		s[k] = l.signature[k].Result(i)
	}
	return s
}

// Bytes is how many bytes travel between ranks when ToGlobal brings the tensor there.
func (t *Tensor) Bytes(p Placement, s SBP) int {
	if pieces := scattered(p, t.meta.Shape, t.sbp, s); pieces != nil && t.placement.Equal(p) {
		half := &Tensor{meta: t.meta, placement: p, sbp: pieces, parts: t.parts}
		return t.route(p, pieces).bytes(t.meta.DType) + half.route(p, s).bytes(t.meta.DType)
	}
	return t.route(p, s).bytes(t.meta.DType)
}

// run executes the call of each rank and puts the results together.
func (l *launch) run(ctx context.Context) ([]*Tensor, error) {
	l.step.Signature = l.signature
	if l.Explain != nil {
		l.Explain(l.step)
	}
	out, err := l.compute(ctx)
	if err != nil {
		return nil, err
	}
	return out, l.writeBack(ctx)
}

// compute runs the kernels of all ranks on the arguments as they are boxed.
func (l *launch) compute(ctx context.Context) ([]*Tensor, error) {
	results := make([][]*tensor.Tensor, l.placement.size())
	err := onRanks(ctx, len(results), func(r *ranks.Rank) error {
		local, err := l.local(r.ID)
		if err == nil {
			results[r.ID], err = local.Execute()
		}
		return err
	})
	if rejection := (*op.Error)(nil); errors.As(err, &rejection) {
		return nil, rejection
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", l.call.Def.ID(), err)
	}
	return l.assemble(results)
}

// writeBack brings what kernels wrote into arguments to where these lie.
func (l *launch) writeBack(ctx context.Context) error {
	for i, v := range l.call.Args.AllValues() {
		t := v.(*Tensor)
		if !l.mutates(i) {
			continue
		}
		back, err := l.boxed[i].box(ctx, t.placement, t.sbp)
		if err != nil {
			return err
		}
		copy(t.parts, back.parts)
	}
	return nil
}

// mutates reports whether kernels write into tensor argument i.
func (l *launch) mutates(i int) bool {
	return slices.ContainsFunc(l.call.Def.Mutates, func(p op.TensorArg) bool { return p.Name() == l.names[i] })
}

// ownCopy is the tensor in memory that no other has.
func (t *Tensor) ownCopy() *Tensor {
	c := *t
	c.parts = nil
	for _, part := range t.parts {
		c.parts = append(c.parts, part.CloneAs(tensor.Contiguous))
	}
	return &c
}

// local returns the call of the rank at a position, on the parts that it holds.
func (l *launch) local(position int) (*op.Call, error) {
	call := l.call
	for k, at := range l.placement.Coordinates(position) {
		var err error
		if call, err = piece(call, l.signature[k], l.placement.Hierarchy[k], at); err != nil {
			return nil, err
		}
	}
	local := *l.call
	local.Device, local.Stream = l.placement.device(position)
	next := -1
	local.Args = call.Args.MapValues(func(op.Value) op.Value {
		next++
		return l.part(l.boxed[next], position)
	})
	return &local, nil
}

// part is what a rank holds of an argument, laid out as the whole is where a
// view follows the strides.
func (l *launch) part(t *Tensor, position int) *tensor.Tensor {
	x := t.parts[position]
	if l.call.Def.View == nil {
		return x
	}
	strides := tensor.ContiguousStrides(x.Shape())
	if t.sbp.isBroadcast() {
		strides = t.Strides()
	}
	return laid(x, strides)
}

// laid returns x with the strides.
func laid(x *tensor.Tensor, strides []int) *tensor.Tensor {
	if slices.Equal(x.Strides(), strides) {
		return x
	}
	y := tensor.Unset(x.DType(), x.Shape(), strides)
	y.CopyFrom(x)
	return y
}

// piece returns the call of one of n ranks in a row, as far as shapes go.
func piece(c *op.Call, s op.Sharding, n, rank int) (*op.Call, error) {
	metas, err := []op.Meta(nil), error(nil)
	if len(s.Sizes) > 0 {
		metas, err = c.Infer()
	}
	if err != nil {
		return nil, err
	}
	return s.Local(c, metas, n, rank, func(v op.Value, sbp op.SBP) op.Value {
		return op.Layout(op.Meta{DType: v.DType(), Shape: sbp.LocalShape(v.Shape(), n, rank)})
	})
}

// assemble makes global tensors of what the ranks computed.
func (l *launch) assemble(results [][]*tensor.Tensor) ([]*Tensor, error) {
	out := make([]*Tensor, len(results[0]))
	for i := range out {
		t := &Tensor{placement: l.placement}
		for rank, r := range results {
			if len(r) != len(out) {
				return nil, fmt.Errorf("%s: rank %d has %d results of %d", l.call.Def.ID(), l.placement.Ranks[rank], len(r), len(out))
			}
			t.parts = append(t.parts, r[i])
		}
		t.sbp = l.gives(i)
		if t.meta = metaOf(t.parts[0]); i < len(l.metas) {
			t.meta = l.metas[i]
		}
		if err := t.consistent(); err != nil {
			return nil, fmt.Errorf("%s by %s: %w", l.call.Def.ID(), l.signature, err)
		}
		var err error
		if out[i], err = t.there(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (s SBP) isBroadcast() bool {
	return !slices.ContainsFunc(s, func(e op.SBP) bool { return e != op.B })
}
