package onekernel

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"plumb/backend"
	"plumb/internal/draw/choice"
	"plumb/internal/judge/verdict"
	"plumb/program"
	"plumb/tensor"
)

// problem draws the cases of a file in KernelBench's form: its module-level sizes are
// given other values, from which its own code makes the inputs and the model.
type problem struct {
	session  *Session
	given    map[string]int
	told     *modelOf // by the reference, of the model that it holds
	held     string   // which that is
	kernel   string   // which the kernel's process holds
	random   bool     // in training: it is compared in eval alone, but for its buffers
	training bool     // it is held in training all the same
	// ties counts the cases that the reference takes where sizes given as equal are equal alone.
	ties int
	// orders are pairs of sizes of which the first may not be larger than the second: the reference
	// has refused such a case, as of a sequence that is longer than its longest, and not that in order.
	orders [][2]string
	// searched counts the cases in which no such pair was found.
	searched int
	// share is how many times more elements the kernel's operators gave than the reference's.
	share float64
	// patterns and classes are those of inputs, known from ones that are large enough to show them.
	patterns map[string]Pattern
	classes  map[string][]float64
	// inside and outside count the cases of other values than the given ones that the
	// reference takes, and that it does not.
	inside, outside int
	notes           []string
}

// modelOf is what the reference tells of a model.
type modelOf struct {
	Init     json.RawMessage `json:"init"`
	Examples []exampleInput  `json:"examples"`
	Given    json.RawMessage `json:"given"` // how the model's forward is given them, in lists and dicts
	State    []stateEntry    `json:"state"`
	Random   bool            `json:"random"`
}

// wholes bounds the product of the sizes of which a case is drawn as they are given.
const wholes = 1 << 22

// shows is the least size of matrices that show a pattern, and showing the most elements of
// inputs that show no classes: as plumb_forms.py has them.
const shows, showing = 3, 8

// domain is how many cases the reference has to refuse for their values until only
// the given ones are drawn.
const domain = 3

// dtype is that of the example inputs, at sizes near the given ones.
func (p *problem) dtype(ctx context.Context) (tensor.DType, error) {
	c := &Case{Sizes: map[string]int{}}
	for name, n := range p.given {
		c.Sizes[name] = near{given: n, unit: p.unit(name)}.reduced()
	}
	told, err := p.model(ctx, c)
	if err != nil { // sizes that hang together are given as they have to be
		told, err = p.model(ctx, &Case{Sizes: p.given})
	}
	if err != nil {
		return tensor.Invalid, fmt.Errorf("the problem %s: %w", p.session.cfg.Reference.File, err)
	}
	for _, e := range told.Examples {
		if dt, err := tensor.ParseDType(e.DType); err == nil && dt.IsFloat() {
			return dt, nil
		}
	}
	return tensor.F32, nil
}

// size draws sizes near the given ones, one of which is in focus; those as given come
// second.
func (p *problem) size(c *Case, src *choice.Source, s step, i, try int, m *maker) error {
	names := slices.Sorted(maps.Keys(p.given))
	whole := m.promises.Shapes == Given || i == 1 && try == 0 && p.product() <= wholes || try >= attempts-2
	c.eval = p.random || (i%3 == 1) != (s.regime == Offset) // which shows a variance that cancels
	for k, name := range names {
		given := p.given[name]
		n := near{given: given, unit: 1, any: m.promises.Shapes == Any, small: try > attempts/2}
		if try == 0 && i >= 2 {
			n.turn = turn(1 + (i-2)/len(names))
		}
		if (i+try)%3 != 0 {
			n.unit = p.unit(name)
		}
		size, focus := given, k == (i+try)%len(names)
		switch {
		case whole:
		case !focus && given > smallSize && (near{given: p.given[names[(i+try)%len(names)]], turn: n.turn}).long():
			size = max(n.reduced()/telltale/n.unit, 1) * n.unit // a long row has few others beside it
		case i%6 == 3 && try == 0 && !focus && given > smallSize:
			size = odd(n.reduced())
		case i == 0 && try == 0:
			size = n.reduced()
		default:
			size = n.draw(src, s, focus)
		}
		c.Sizes[name] = m.within(src, name, size)
	}
	focus := ""
	if len(names) > 0 {
		focus = names[(i+try)%len(names)]
	}
	if p.ties >= tiesTold {
		p.tie(c, focus)
	}
	p.ordered(c.Sizes)
	c.focus = focus
	p.values(c, i)
	m.differentiate(c)
	err := m.rewrite(c)
	if err != nil && p.ties < tiesTold && p.tie(c, focus) {
		if m.rewrite(c) == nil {
			p.ties++
			return nil
		}
	}
	return err
}

// odd is the nearest odd size that is no larger. In one draw all large sizes are: a kernel that
// flattens dimensions pads their product, which the others would have a multiple of any block.
func odd(n int) int { return n - 1 + n%2 }

// tiesTold is how many cases tell that sizes hang together.
const tiesTold = 2

// tie gives sizes that are given as equal one size, that of the one in focus where it is
// among them; it reports whether any has changed.
func (p *problem) tie(c *Case, focus string) bool {
	changed, by := false, map[int]int{p.given[focus]: c.Sizes[focus]}
	for _, name := range slices.Sorted(maps.Keys(p.given)) {
		n, ok := by[p.given[name]]
		if !ok {
			n = c.Sizes[name]
			by[p.given[name]] = n
		}
		if p.given[name] > 1 && c.Sizes[name] != n {
			c.Sizes[name], changed = n, true
		}
	}
	return changed
}

// disordered lists the pairs of sizes of which the first is larger, and is not as they are given.
func (p *problem) disordered(sizes map[string]int) [][2]string {
	var all [][2]string
	names := slices.Sorted(maps.Keys(p.given))
	for _, a := range names {
		for _, b := range names {
			if p.given[a] < p.given[b] && sizes[a] > sizes[b] {
				all = append(all, [2]string{a, b})
			}
		}
	}
	return all
}

// ordered has the second of each pair that is known to be in order as large as the first.
func (p *problem) ordered(sizes map[string]int) {
	for _, o := range p.orders {
		sizes[o[1]] = max(sizes[o[1]], sizes[o[0]])
	}
}

// order looks for a pair of sizes without whose order the reference refuses a case; it reports
// whether the case has it now.
func (p *problem) order(ctx context.Context, c *Case) (bool, error) {
	if c.again || p.searched == ordersSought {
		return false, nil
	}
	for _, o := range p.disordered(c.Sizes) {
		kept := *c
		kept.Sizes = maps.Clone(c.Sizes)
		kept.Sizes[o[1]] = kept.Sizes[o[0]]
		if slices.Contains(p.orders, o) || p.session.maker.rewrite(&kept) != nil {
			continue
		}
		if ref, _, err := p.session.tryReference(ctx, backend.NewJob(kept.program)); err != nil {
			return false, err
		} else if ref.Status == backend.OK {
			p.orders = append(p.orders, o)
			*c = kept
			return true, nil
		}
	}
	p.searched++
	return false, p.session.maker.rewrite(c)
}

// ordersSought is in how many refused cases an order is sought in vain.
const ordersSought = 6

// values draws every fourth case like the examples, and all where the reference takes
// no others.
func (p *problem) values(c *Case, i int) {
	switch {
	case p.inside == 0 && p.outside >= domain, i%4 == 0 && c.Regime == Usual:
		c.Regime = AsGiven
	case c.Regime == Extremes:
		c.Regime = Large
	}
}

// mostOfProblem is how many elements the operators of a problem's model should give in a call:
// some twenty calls come first, whatever they take. What is as given may give as many as
// another reference.
const mostOfProblem = 1 << 18

// computes is how many elements a call takes: where the kernel's operators are not recorded, by
// what they gave in one where they were.
func (p *problem) computes(r *result) int {
	if n := r.refSeen.Elements; n > 0 && r.recorded() {
		p.share = max(p.share, float64(r.computes())/float64(n))
	}
	return int(float64(r.refSeen.Elements) * max(p.share, 1))
}

// shrink makes a case smaller whose model computes much; it reports whether it has.
func (p *problem) shrink(c *Case, elements int) bool {
	for _, sizes := range p.less(c.Sizes, c.focus, elements) {
		smaller := *c
		if smaller.Sizes = sizes; p.session.maker.rewrite(&smaller) == nil {
			*c = smaller
			return true
		}
	}
	return false
}

// less lists smaller sizes for a model that computes much, in each of which one is smaller: the
// largest first, and the one in focus and any that is larger than given last.
func (p *problem) less(sizes map[string]int, focus string, elements int) []map[string]int {
	most := mostOfProblem
	if maps.Equal(sizes, p.given) {
		most = mostWork
	}
	if elements <= most {
		return nil
	}
	names := slices.SortedFunc(maps.Keys(p.given), func(a, b string) int {
		beyond := func(name string) int {
			if name == focus || sizes[name] > p.given[name] {
				return 1
			}
			return 0
		}
		return cmp.Or(beyond(a)-beyond(b), sizes[b]-sizes[a], cmp.Compare(a, b))
	})
	var all []map[string]int
	for _, name := range names {
		n, u := sizes[name], p.unit(name)
		bound := max(max(n*most/elements, n/telltale)/u*u, u)
		if n <= smallSize { // a batch need not be a multiple
			bound = max(n*most/elements, 1)
		}
		if p.given[name] <= smallSize { // one that was made larger stays larger than given
			bound = max(n*most/elements, p.given[name]+1)
		}
		if bound >= n || p.session.maker.within(choice.New(0), name, bound) != bound {
			continue
		}
		if n%2 == 1 && u == 1 {
			bound = odd(bound)
		}
		c := &Case{Sizes: maps.Clone(sizes)}
		if c.Sizes[name] = bound; p.ties >= tiesTold {
			p.tie(c, name)
		}
		if slices.ContainsFunc(p.disordered(c.Sizes), func(o [2]string) bool { return o[1] == name && slices.Contains(p.orders, o) }) {
			continue
		}
		all = append(all, c.Sizes)
	}
	return all
}

// unit is what divides a size and is a size of its own, such as a number of heads.
func (p *problem) unit(name string) int {
	n, best := p.given[name], 1
	for other, m := range p.given {
		if other != name && m <= smallSize && m > best && m < n && n%m == 0 {
			best = m
		}
	}
	return best
}

func (p *problem) product() int {
	n := 1
	for _, m := range p.given {
		if n *= max(m, 1); n > wholes {
			break
		}
	}
	return n
}

// signature asks the reference for the model of a case's sizes.
func (p *problem) signature(ctx context.Context, c *Case) (*Signature, error) {
	told, err := p.model(ctx, c)
	if err != nil {
		return nil, err
	}
	sig := &Signature{}
	for i, e := range told.Examples {
		name := fmt.Sprintf("x%d", i)
		if e.DType == "" {
			sig.Args = append(sig.Args, Arg{Name: name, Choices: []any{wire(e.Value)}})
			continue
		}
		in, err := e.input(name)
		if err != nil {
			return nil, err
		}
		if in.Pattern != "" {
			p.patterns[name] = in.Pattern
		} else if n := len(e.Shape); n > 1 && e.Shape[n-1] == e.Shape[n-2] && e.Shape[n-1] < shows {
			in.Pattern = p.patterns[name]
		}
		if in.Among != nil {
			p.classes[name] = in.Among
		} else if in.isFloat() && tensor.NumElements(e.Shape) <= showing {
			in.Among = p.classes[name]
		}
		in.NoGrad = in.Pattern != "" || in.Among != nil // of what is always 0, or a class, the gradient is anybody's
		if in.isFloat() && e.Lo != nil {
			in.Lo, in.Hi = *e.Lo, *e.Hi
		}
		sig.add(*in)
	}
	for i, e := range told.State {
		in, err := e.input(fmt.Sprintf("p%d", i))
		if err != nil {
			return nil, err
		}
		e.fill(in, c.DType)
		sig.add(*in)
		sig.Args[len(sig.Args)-1].State = true
	}
	return sig, nil
}

// fill says what a parameter or buffer holds: a buffer what the model gives it, a
// parameter numbers of the same range.
func (e *stateEntry) fill(in *Input, of tensor.DType) {
	in.NoGrad = !e.Parameter || !e.RequiresGrad
	dt, err := tensor.ParseDType(e.DType)
	if err != nil {
		return
	}
	if e.Values != nil {
		if dt.IsFloat() {
			dt = of
		}
		in.Among, in.Pattern = nil, "" // a causal mask is not any triangle of zeros and ones
		in.DType, in.Literal = dt, tensor.New(dt, e.Shape...)
		for i, v := range e.Values {
			in.Literal.Set(i, complex(v, 0))
		}
		return
	}
	if e.Lo != nil && dt.IsFloat() {
		in.Lo, in.Hi, in.Bounded = *e.Lo, *e.Hi, true
		if in.Lo == in.Hi { // ones or zeros, as of a norm
			in.Lo, in.Hi = in.Lo-0.5, in.Hi+0.5
		}
	}
}

// model has the reference hold the model of a case.
func (p *problem) model(ctx context.Context, c *Case) (*modelOf, error) {
	if p.held == c.context() {
		return p.told, nil
	}
	p.held = ""
	told := &modelOf{}
	if err := p.session.reference.ask(ctx, map[string]any{"shape": map[string]any{"sizes": c.Sizes, "training": !c.eval}}, told); err != nil {
		return nil, err
	}
	if told.Random && c.eval {
		return nil, &errNothing{"the reference draws random numbers in eval too: no two of its calls are equal"}
	}
	if told.Random && !p.training {
		p.random, c.eval = true, true
		return p.model(ctx, c)
	}
	p.told, p.held = told, c.context()
	return told, nil
}

// context tells the models of cases apart.
func (c *Case) context() string { return fmt.Sprint(c.Sizes, c.eval, c.test) }

// shape has both processes hold the model of a case; a case in the memory of the one
// before is a further call of the same model.
func (p *problem) shape(ctx context.Context, c *Case) (string, error) {
	told, err := p.model(ctx, c)
	if err != nil {
		return "", err
	}
	if c.again && p.kernel == c.context() {
		return "", nil
	}
	p.kernel = c.context()
	var candidate struct {
		Renamed [][2]string `json:"renamed"`
		More    []string    `json:"more"`
	}
	request := map[string]any{"init": told.Init, "given": told.Given, "seed": c.Key >> 32, "state": told.State, "training": !c.eval}
	err = p.session.kernel.ask(ctx, map[string]any{"shape": request}, &candidate)
	if err != nil && p.session.sandbox.relax("its constructor: "+err.Error()) { // it may build in its constructor
		p.session.kernel.Restart()
		if err := p.session.again(ctx); err != nil {
			return "", err
		}
		p.kernel = c.context()
		err = p.session.kernel.ask(ctx, map[string]any{"shape": request}, &candidate)
	}
	if err != nil {
		return "ModelNew: " + err.Error(), nil
	}
	if p.notes == nil {
		for _, pair := range candidate.Renamed {
			p.notes = append(p.notes, fmt.Sprintf("state_dict: %s is called %s", pair[0], pair[1]))
		}
		for _, name := range candidate.More {
			p.notes = append(p.notes, fmt.Sprintf("state_dict: %s is no part of the reference's", name))
		}
	}
	return "", nil
}

// beyond reports whether a case is none of the reference's, which raises or gives NaN
// for values that no get_inputs gives; what it refuses for its sizes says nothing of values.
func (p *problem) beyond(ctx context.Context, c *Case, ref *backend.Outcome) (bool, error) {
	if c.Regime == AsGiven {
		return false, nil
	}
	if ref.Status != backend.OK && p.inside == 0 && p.outside < domain {
		plain := *c
		plain.Regime = AsGiven
		if p.session.maker.rewrite(&plain) == nil {
			o, _, err := p.session.tryReference(ctx, backend.NewJob(plain.program))
			if err != nil || o.Status != backend.OK {
				return true, err
			}
		}
	}
	if ref.Status != backend.OK || hasNaN(ref) {
		p.outside++
		return true, nil
	}
	p.inside++
	return false, nil
}

// stretched reports whether a case that misaligns, or is refused, is one that a problem takes by
// accident: with a size of 1, of its state alone, that it does not take at 2, as a mask for one
// position is broadcast to all of them, or as odd, where halves of it are no more alike.
func (s *Session) stretched(ctx context.Context, r *result) bool {
	p, of := s.maker.form.(*problem)
	if !of {
		return false
	}
	other := 2
	switch {
	case r.kernel.Status == backend.Raised:
		other = 5
	case r.verdict.Word != verdict.Misaligned:
		return false
	}
	for _, name := range slices.Sorted(maps.Keys(p.given)) {
		if r.Sizes[name] != 1 || p.given[name] == 1 {
			continue
		}
		larger := *r.Case
		larger.Sizes = maps.Clone(r.Sizes)
		larger.Sizes[name] = other
		if s.maker.rewrite(&larger) != nil || !p.alike(larger.program, r.program) {
			continue // it makes no such model, which is no broadcast; or it is a size of what it is given
		}
		if ref, _, err := s.tryReference(ctx, backend.NewJob(larger.program)); err == nil && ref.Status == backend.Raised {
			return true
		}
	}
	return false
}

// alike reports whether the inputs of two calls, without their state, have the same shapes.
func (p *problem) alike(a, b *program.Program) bool {
	given := 0
	for _, e := range p.told.Examples {
		if e.DType != "" {
			given++
		}
	}
	return slices.EqualFunc(a.Inputs[:given], b.Inputs[:given], func(x, y program.Input) bool { return slices.Equal(x.Shape, y.Shape) })
}
