package script

import (
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"plumb/global"
	"plumb/op"
	"plumb/ops"
	"plumb/program"
)

// A test file is run as rank 0 runs it, and a local tensor is what every rank has.

// toLocal records what rank 0 holds of a tensor.
func (d *draw) toLocal(s *symbol, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var copies starlark.Value
	if err := starlark.UnpackArgs("to_local", args, kwargs, "copy?", &copies); err != nil {
		return nil, err
	}
	if s.spread == nil {
		return nil, local("Expected global tensor for to_local but got local tensor!")
	}
	if _, err := s.signature(); err != nil {
		return nil, err
	}
	if at := s.spread.placement; at.Ranks != nil && !slices.Contains(at.Ranks, 0) {
		return nil, lack("to_local of %s on rank 0, which is not in %s", s.ref, at)
	}
	out, err := d.held(s)
	if err != nil {
		return nil, err
	}
	if out == s { // never the tensor itself
		return d.call("Tensor.clone", s, nil, nil)
	}
	return out, nil
}

// held is what rank 0 holds of a tensor that lies as its spread says.
func (d *draw) held(s *symbol) (*symbol, error) {
	if s.spread == nil {
		return s, nil
	}
	all, err := s.signature()
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(all, isSum) {
		return d.summand(s, all)
	}
	return d.piece(s, all)
}

func isSum(v starlark.Value) bool { return v.(sbp).Kind == 'P' }

// piece records what rank 0 has of a tensor by an sbp without summands.
func (d *draw) piece(s *symbol, all starlark.Tuple) (*symbol, error) {
	text, err := d.sbpText(all)
	if err != nil {
		return nil, err
	}
	at := s.spread.placement
	c := program.Call{Target: program.ToLocal, Args: []any{s.ref}, Kwargs: []program.Kwarg{
		{Name: "placement", Value: at.Device + at.Nested()}, {Name: "sbp", Value: text}, {Name: "rank", Value: int64(0)},
	}}
	out, err := d.moved(s, c)
	if err == nil {
		out.liesAs(nil)
	}
	return out, err
}

// summand records the summand that rank 0 has: what was brought to be one, or what an
// operator gives for what rank 0 has of its arguments.
func (d *draw) summand(s *symbol, all starlark.Tuple) (*symbol, error) {
	c := d.callOf(s.ref)
	switch {
	case c == nil:
	case c.Target == program.ToGlobal:
		ref, _ := c.Args[0].(program.Ref)
		return d.brought(d.symbols[ref], s, all)
	case d.keeps(c):
		if ref, ok := firstRef(c); ok && d.symbols[ref].spread != nil {
			return d.heldBy(s, c, func(program.Ref, int) (*symbol, error) { return d.held(d.symbols[ref]) })
		}
	default:
		return d.computed(s, c)
	}
	return nil, d.unsaid(s)
}

func (d *draw) unsaid(s *symbol) error {
	return lack("to_local of %s: which summand a rank holds is not said", s.ref)
}

// brought is what rank 0 has of x after it was brought to lie as s does, summands
// among it: those of the first rank are what it had, and zero elsewhere.
func (d *draw) brought(x, s *symbol, all starlark.Tuple) (*symbol, error) {
	if x.local != nil { // every rank's tensor was taken for a summand
		return x.local, nil
	}
	from := all
	if x.spread == nil {
		from = make(starlark.Tuple, len(all))
		for k := range from {
			from[k] = sbp{Kind: 'B'}
		}
	} else if known, err := x.signature(); err == nil {
		from = known
	} else {
		return nil, err
	}
	for k := range all {
		if len(from) != len(all) || from[k] != all[k] && !isSum(all[k]) {
			return nil, d.unsaid(s)
		}
	}
	has, err := d.held(x)
	if err != nil {
		return nil, err
	}
	return d.padded(has, s, all)
}

// padded is what rank 0 has of s, with zeros behind its own piece.
func (d *draw) padded(has, s *symbol, all starlark.Tuple) (*symbol, error) {
	shape, err := has.shape()
	if err != nil {
		return nil, err
	}
	whole, err := s.shape()
	if err != nil {
		return nil, err
	}
	want, err := d.pieceOf(s, all, whole)
	if err != nil || slices.Equal(want, shape) {
		return has, err
	}
	var behind []starlark.Value
	for axis := range slices.Backward(shape) {
		behind = append(behind, starlark.MakeInt(0), starlark.MakeInt(want[axis]-shape[axis]))
	}
	return d.local("torch.nn.functional.pad", has, starlark.NewList(behind))
}

// pieceOf is the shape of what rank 0 has, summands taken whole.
func (d *draw) pieceOf(s *symbol, all starlark.Tuple, shape []int) ([]int, error) {
	whole := slices.Clone(all)
	for k := range whole {
		if isSum(whole[k]) {
			whole[k] = sbp{Kind: 'B'}
		}
	}
	by, err := d.programSBP(whole)
	if err != nil {
		return nil, err
	}
	at := s.spread.placement
	p, err := global.ParsePlacement(at.Device + at.Nested())
	if err != nil {
		return nil, err
	}
	_, size, err := by.Piece(p, shape, 0)
	return size, err
}

// local records a call on what rank 0 has.
func (d *draw) local(target string, args ...starlark.Value) (*symbol, error) {
	v, err := d.call(target, nil, args, nil)
	if err != nil {
		return nil, err
	}
	return v.(*symbol), nil
}

// computed is what an operator gives for what rank 0 has of its arguments once these
// lie as the operator wants them.
func (d *draw) computed(s *symbol, c *program.Call) (*symbol, error) {
	f, err := d.follower(s.spread.placement)
	if err != nil {
		return nil, err
	}
	args, kwargs, err := c.OpArgs(f.layout)
	if err != nil {
		return nil, d.unsaid(s)
	}
	call, err := program.Resolve(ops.Table(), c.Target, args, kwargs)
	if err != nil {
		return nil, d.unsaid(s)
	}
	way, err := f.runtime.Follows(call, f.of)
	if err != nil || way.Sized {
		return nil, d.unsaid(s)
	}
	wants := map[op.Value]global.SBP{}
	for i, v := range call.Args.AllValues() {
		wants[v] = way.Args[i]
	}
	return d.heldBy(s, c, func(ref program.Ref, i int) (*symbol, error) {
		v, _ := args[i].(op.Value)
		x := d.symbols[ref]
		switch want := wants[v]; {
		case want == nil:
			return nil, d.unsaid(s)
		case slices.Equal(want, f.lies[v]):
			return d.held(x)
		case slices.Contains(want, op.P):
			return nil, d.unsaid(s)
		default:
			return d.piece(x, sbpOf(want))
		}
	})
}

// heldBy records a call on what rank 0 has of its positional arguments.
func (d *draw) heldBy(s *symbol, c *program.Call, of func(ref program.Ref, i int) (*symbol, error)) (*symbol, error) {
	mine := program.Call{Target: c.Target, Kwargs: c.Kwargs}
	for i, a := range c.Args {
		ref, ok := a.(program.Ref)
		if !ok {
			mine.Args = append(mine.Args, a)
			continue
		}
		x, err := of(ref, i)
		if err != nil {
			return nil, err
		}
		mine.Args = append(mine.Args, x.ref)
	}
	return d.moved(s, mine)
}

// isLocal reports whether a tensor is one of each rank's own. What comes from the
// state of a module is not: OneFlow's utilities place modules under @globaltest.
func (d *draw) isLocal(s *symbol) bool {
	if s.spread != nil {
		return false
	}
	seen, local := map[program.Ref]bool{}, true
	var look func(ref program.Ref)
	look = func(ref program.Ref) {
		c := d.callOf(ref)
		if seen[ref] || c == nil || !local {
			return
		}
		seen[ref] = true
		if c.Target == "getattr" || strings.HasPrefix(c.Target, "Module.get_") {
			held, _ := c.Args[0].(program.Ref)
			local = d.symbols[held].kind != kindModule || d.ownState(held)
		}
		for _, a := range c.Args {
			program.Refs(a, look)
		}
	}
	look(s.ref)
	return local
}

// assembled is the logical tensor that a tensor of each rank makes up: under S the
// ranks' are its pieces, under P its summands. Gradients reach that of rank 0.
func (d *draw) assembled(s *symbol, at placement, all starlark.Tuple) (*symbol, error) {
	if len(all) != len(at.Hierarchy) || !slices.ContainsFunc(all, func(v starlark.Value) bool { return v.(sbp).Kind != 'B' }) {
		return s, nil
	}
	d.guessed = d.guessed || d.ranked
	out := s
	for k, n := range slices.Backward(at.Hierarchy) {
		how := all[k].(sbp)
		if how.Kind == 'B' || n == 1 {
			continue
		}
		others, err := d.local("Tensor.detach", out)
		if err != nil {
			return nil, err
		}
		if out, err = d.together(out, others, n, how); err != nil {
			return nil, err
		}
	}
	if out != s {
		joined := *out
		joined.local = s
		out = &joined
		d.symbols[out.ref] = out
	}
	return out, nil
}

// together puts a tensor of the first of n ranks and those of the others together.
func (d *draw) together(first, others *symbol, n int, how sbp) (*symbol, error) {
	if how.Kind == 'S' {
		all := []starlark.Value{first}
		for range n - 1 {
			all = append(all, others)
		}
		return d.local("torch.cat", starlark.NewList(all), starlark.MakeInt(how.Axis))
	}
	var err error
	for out := first; n > 1 && err == nil; n-- {
		out, err = d.local("torch.add", out, others)
		first = out
	}
	return first, err
}

// misplaced raises what OneFlow does where a tensor, or what a module holds, cannot lie so.
func (s *symbol) misplaced(all starlark.Tuple) error {
	if !slices.ContainsFunc(all, func(v starlark.Value) bool { return v.(sbp).Kind == 'S' }) {
		return nil
	}
	if s.kind == kindModule {
		return s.misplacedState(all)
	}
	if s.input == nil && s.d.env.Observer == nil {
		return nil
	}
	shape, err := s.shape()
	if err != nil {
		return err
	}
	return outOfRange(all, len(shape))
}

// misplacedState is misplaced of a module of torch.nn.
func (s *symbol) misplacedState(all starlark.Tuple) error {
	f := &follower{d: s.d, lies: map[op.Value]global.SBP{}}
	m, err := f.build(s.ref, nil)
	if err != nil { // the ranks will tell
		return nil
	}
	for _, slot := range m.State() {
		if err := outOfRange(all, len(slot.Shape)); err != nil && m.Value(slot.Name) != nil {
			return err
		}
	}
	return nil
}

func outOfRange(all starlark.Tuple, dims int) error {
	for _, v := range all {
		if axis := v.(sbp).Axis; v.(sbp).Kind == 'S' && axis >= dims {
			return local("Split axis out of range (expected to be in range of [0, %d), but got %d!)", dims, axis)
		}
	}
	return nil
}
