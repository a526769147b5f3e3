package eager

import (
	"slices"
	"unsafe"

	"plumb/internal/autograd"
	"plumb/op"
	"plumb/tensor"
)

// Signatures of calls of one operator that are remembered; a new one takes the place of
// the oldest. A call has a plan from the second time on.
const maxPlans = 8

// plans are the signatures of the calls of one operator.
type plans struct {
	all  []*planned
	next int // whose place the next new one takes
}

// planned is a call of one signature: the keywords that are given, the layouts of their
// tensors, and the other values.
type planned struct {
	kws     []op.Kwarg // a tensor's value is nil
	layouts []layout   // by keyword; of dtype Invalid where there is no tensor
	refused bool       // there is no plan
	plan    *op.Plan   // nil until the second call
	at      []int      // the place among the arguments, by keyword
	run     op.Run
	out     [1]*tensor.Tensor
	bytes   int // of the result
	busy    bool
}

// layout is how a tensor on the host lies in memory.
type layout struct {
	dtype          tensor.DType
	shape, strides []int
}

func (l *layout) of(t *tensor.Tensor) bool {
	return l.dtype == t.DType() && slices.Equal(l.shape, t.Shape()) && slices.Equal(l.strides, t.Strides()) && t.Device() == nil
}

// is reports whether a call has the signature.
func (p *planned) is(kws []op.Kwarg) bool {
	if len(p.kws) != len(kws) {
		return false
	}
	for i := range kws {
		own, given := &p.kws[i], &kws[i]
		if own.Name != given.Name {
			return false
		}
		if v, ok := given.Value.(*Var); ok {
			if !p.layouts[i].of(v.Tensor) || v.symbolic {
				return false
			}
		} else if p.layouts[i].dtype != tensor.Invalid || !sameValue(own.Value, given.Value) {
			return false
		}
	}
	return true
}

// sameValue compares the values that plans are made for: those that are not comparable,
// and numbers that are but differ, are none.
func sameValue(a, b any) bool {
	switch a := a.(type) {
	case nil:
		return b == nil
	case int:
		b, ok := b.(int)
		return ok && a == b
	case int64:
		b, ok := b.(int64)
		return ok && a == b
	case bool:
		b, ok := b.(bool)
		return ok && a == b
	case string:
		b, ok := b.(string)
		return ok && a == b
	case tensor.DType:
		b, ok := b.(tensor.DType)
		return ok && a == b
	case float64:
		b, ok := b.(float64)
		return ok && a == b && (a != 0 || 1/a == 1/b)
	case []int:
		b, ok := b.([]int)
		return ok && slices.Equal(a, b)
	}
	return false
}

// ApplyPlanned is Apply of an operator with one result whose arguments are given by
// keyword, *Var and plain values among them, for calls that come again with other
// elements: ok is false where there is no plan of theirs, and nothing was done. The slice
// stays the caller's. What room returns is where the result is made; nil stands for MakeRoom.
func (s *Session) ApplyPlanned(id string, kws []op.Kwarg, room func(bytes int) (*Room, []byte)) (out *Var, ok bool, err error) {
	p := s.planOf(id, kws)
	if p == nil {
		return nil, false, nil
	}
	p.busy = true
	record := false
	for i := range kws {
		if v, ok := kws[i].Value.(*Var); ok {
			p.run.Vals[p.at[i]] = v.Tensor
			record = record || v.requiresGrad
		}
	}
	out = p.result(room)
	p.out[0] = out.Tensor
	p.run.Out = p.out[:]
	err = p.plan.Run(&p.run)
	p.out[0], p.run.Scratch, p.busy = nil, nil, false
	for _, i := range p.at {
		if _, ok := p.run.Vals[i].(*tensor.Tensor); ok {
			p.run.Vals[i] = nil
		}
	}
	if err != nil {
		return nil, true, err
	}
	if record && !s.paused && !p.plan.Call.Def.Traits.Has(op.NoGrad) {
		s.recordPlanned(p, kws, out)
	}
	return out, true, nil
}

// Room is what a result is made in: the variable and its tensor, so that whoever makes
// it can have more in the same piece of memory.
type Room struct {
	Var
	t tensor.Tensor
}

// FewBytes are those of a result that is to be in one piece of memory with its elements.
const FewBytes = 64

// Few and Fewer are the elements of such a result, aligned for every dtype.
type (
	Few   [FewBytes / 16]complex128
	Fewer [FewBytes / 32]complex128
)

// Bytes returns the first bytes of them.
func (f *Few) Bytes(n int) []byte { return unsafe.Slice((*byte)(unsafe.Pointer(f)), n) }

// Bytes returns the first bytes of them.
func (f *Fewer) Bytes(n int) []byte { return unsafe.Slice((*byte)(unsafe.Pointer(f)), n) }

// MakeRoom makes room for a result of so many bytes, and the memory of its elements; nil
// where they are not few.
func MakeRoom(bytes int) (*Room, []byte) {
	if bytes > FewBytes {
		return &Room{}, nil
	}
	r := &struct {
		Room
		few Few
	}{}
	return &r.Room, r.few.Bytes(bytes)
}

// result returns a variable of the plan's result, whose elements are unspecified.
func (p *planned) result(room func(bytes int) (*Room, []byte)) *Var {
	if room == nil {
		room = MakeRoom
	}
	r, storage := room(p.bytes)
	p.plan.Results[0].Make(&r.t, storage)
	r.Tensor = &r.t
	return &r.Var
}

// recordPlanned is record of a call by its plan.
func (s *Session) recordPlanned(p *planned, kws []op.Kwarg, out *Var) {
	r := &struct {
		application
		call op.Call
		out  [1]op.Value
		vals [4]any
	}{}
	vals := r.vals[:0]
	if n := len(p.run.Vals); n > len(r.vals) {
		vals = make([]any, 0, n)
	}
	vals = append(vals, p.run.Vals...)
	for i := range kws {
		if v, ok := kws[i].Value.(*Var); ok {
			vals[p.at[i]] = v
		}
	}
	r.call = op.Call{Def: p.plan.Call.Def, Args: op.Args{Sig: p.run.Sig, Vals: vals}}
	if !smooth(&r.call) {
		return
	}
	out.requiresGrad = out.DType().IsDifferentiable()
	r.out[0] = out
	r.application = application{Node: autograd.Node{Call: &r.call, Out: r.out[:]}, at: s.count}
	s.count++
	out.from = &r.application
}

// planOf returns the plan of a call; nil for none. It notes the signature.
func (s *Session) planOf(id string, kws []op.Kwarg) *planned {
	if s.device != nil || s.symbolic || s.walking != nil || s.computes {
		return nil
	}
	of := s.plans[id]
	if of == nil {
		if s.plans == nil {
			s.plans = map[string]*plans{}
		}
		of = &plans{}
		s.plans[id] = of
	}
	for _, p := range of.all {
		if !p.is(kws) {
			continue
		}
		if p.plan == nil && !p.refused {
			p.refused = !s.make(p, id, kws)
		}
		if p.refused || p.busy || s.limit > 0 && p.plan.Bytes() > s.limit {
			return nil
		}
		return p
	}
	p := &planned{kws: slices.Clone(kws), layouts: make([]layout, len(kws))}
	for i := range p.kws {
		if v, ok := kws[i].Value.(*Var); ok {
			p.layouts[i] = layout{v.DType(), v.Shape(), v.Strides()}
			p.kws[i].Value = nil
		} else if !sameValue(kws[i].Value, kws[i].Value) {
			return nil // it is never the same
		}
	}
	if len(of.all) < maxPlans {
		of.all = append(of.all, p)
	} else {
		of.all[of.next%maxPlans] = p
	}
	of.next++
	return nil
}

// make makes the plan of a call that comes again, where that does all that the call does.
func (s *Session) make(p *planned, id string, kws []op.Kwarg) bool {
	call, err := s.table.ResolveID(id, nil, slices.Clone(kws))
	if err != nil || call.InPlace || call.MakesLeaf() {
		return false
	}
	d := call.Def
	if d.Compose != nil || d.View != nil || d.Itself != nil || len(d.Mutates) > 0 || d.Traits.Has(op.Random) || d.Sigs()[0].Many {
		return false
	}
	given := call.Args
	for i := range kws {
		at := -1
		for j, v := range given.Vals {
			if x, ok := kws[i].Value.(*Var); ok && v == op.Value(x) && given.Sig.Params[j].Name == kws[i].Name {
				at = j
			}
		}
		if _, ok := kws[i].Value.(*Var); ok && at < 0 {
			return false // it stands for a number, or has another name
		}
		p.at = append(p.at, max(at, 0))
	}
	laid := *call
	laid.Args = op.Laid(given)
	if p.plan, err = laid.Plan(); err != nil || p.plan == nil || len(p.plan.Results) != 1 {
		return false
	}
	p.bytes = tensor.Extent(p.plan.Results[0].Shape(), p.plan.Results[0].Strides()) * p.plan.Results[0].DType().Size()
	p.run.Args = op.Args{Sig: given.Sig, Vals: slices.Clone(laid.Args.Vals)}
	return true
}
