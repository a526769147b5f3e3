package onekernel

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"plumb/backend"
	"plumb/backend/worker"
	"plumb/internal/draw/choice"
	"plumb/internal/judge/verdict"
	"plumb/internal/stopwatch"
	"plumb/tensor"
)

// Timing is how long the calls of a kernel and of its reference take.
type Timing struct {
	Unit   string  `json:"unit"` // of all times: µs
	Points []Point `json:"points"`
	// Refused says why nothing was measured, or nothing more.
	Refused string `json:"refused,omitempty"`
}

// Point is what was measured of calls of one size.
type Point struct {
	Case   string         `json:"case"`
	Sizes  map[string]int `json:"sizes,omitempty"`
	Bytes  int            `json:"bytes"`  // of arguments and results
	Calls  int            `json:"calls"`  // a round, in warm memory
	Rounds int            `json:"rounds"` // in warm memory, of each side
	Warm   *Pair          `json:"warm,omitempty"`
	Cold   *Pair          `json:"cold,omitempty"`
	// Refused says why the times are none.
	Refused string `json:"refused,omitempty"`
}

// Pair is what both sides take for a call, and how many times as fast the kernel is.
type Pair struct {
	Kernel    Span `json:"kernel"`
	Reference Span `json:"reference"`
	Speedup   Span `json:"speedup"`
}

// Span is a median, and between what the true one lies with at least 95%.
type Span struct {
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
}

func spanOf(xs []float64) Span {
	low, high := stopwatch.Interval(xs)
	return Span{stopwatch.Median(xs), low, high}
}

const (
	warming     = 2       // calls of each side that do not count
	warmRounds  = 11      // in which each side is measured; the interval leaves one out on each side
	coldRounds  = 7       //
	slowRounds  = 5       // of what takes longer than slowCall
	mostBatch   = 1000    // calls of a round
	batchMemory = 1 << 27 // bytes of the arguments of a round's calls
	freshCases  = 3       // of other values, whose calls alternate at random

	batchTime = 5 * time.Millisecond
	slowCall  = 200 * time.Millisecond
	pointTime = 6 * time.Second  // a larger point is not begun after one that took as long
	allTime   = 25 * time.Second // nor after this
)

// timer measures one size.
type timer struct {
	s     *Session
	src   *choice.Source
	cases []*result // whose calls are made
	// held says that calls take no other values than these: the function is not of any.
	held bool
}

// batch is one measurement: what the process's own clock says, and the judge's.
type batch struct {
	calls     int
	own, wall time.Duration
	empty     time.Duration // an exchange without a call, right before
	order     []int
	looked    []int // the calls whose results are compared
}

// time measures a kernel that was found right, at several sizes.
func (s *Session) time(ctx context.Context) error {
	if !s.cfg.Time {
		return nil
	}
	s.timing = &Timing{Unit: "µs", Points: []Point{}}
	if s.blamed() || s.right() == 0 {
		s.timing.Refused = "not measured, for it is not right"
		return nil
	}
	sweep := s.sweep()
	if len(sweep) == 0 {
		s.timing.Refused = "not measured: no call of it is"
	}
	start := time.Now()
	for _, c := range sweep {
		began := time.Now()
		p, err := s.point(ctx, c)
		var lost *worker.Lost
		switch {
		case errors.As(err, &lost):
			s.timing.Refused = "its process ended while it was timed: " + firstLine(lost.Message)
			kind, text := ending(&backend.Outcome{Class: lost.Class, Message: lost.Message})
			s.add(finding{Kind: kind, Text: "while it is timed, " + text})
			return s.again(ctx)
		case err != nil:
			return err
		case p != nil:
			s.timing.Points = append(s.timing.Points, *p)
		}
		if s.blamed() {
			s.timing.Points, s.timing.Refused = []Point{}, "not measured, for it is not right while it is timed"
		}
		if p == nil || s.blamed() || time.Since(began) > pointTime || time.Since(start) > allTime {
			break
		}
	}
	if s.launches() {
		s.notes = append(s.notes, "timed in Triton's interpreter: that says nothing of a GPU")
	}
	return nil
}

// point measures calls of a case's sizes; nil where they are not judged.
func (s *Session) point(ctx context.Context, c *Case) (*Point, error) {
	t := &timer{s: s, src: choice.New(choice.Derive(c.Key, 1<<34))}
	for k := range freshCases {
		fresh := *c
		fresh.Key, fresh.own = choice.Derive(c.Key, uint64(1<<35+k)), false
		if s.maker.rewrite(&fresh) != nil {
			return nil, nil
		}
		s.withoutGradients(&fresh)
		for _, h := range []*host{s.kernel, s.reference} {
			if err := timed(ctx, h, map[string]any{"hold": k}, nil); err != nil {
				return nil, err
			}
		}
		r, err := s.one(ctx, &fresh)
		if err != nil || r == nil || !maps.Equal(fresh.Sizes, c.Sizes) { // of fewer elements than what is held
			return nil, err
		}
		if len(r.problems) > 0 {
			s.outcomes = append(s.outcomes, r)
		}
		if !r.fine() {
			return nil, nil
		}
		t.cases = append(t.cases, r)
	}
	return t.measure(ctx, c)
}

func (t *timer) measure(ctx context.Context, c *Case) (*Point, error) {
	bytes := moved(t.cases[0])
	p := &Point{Case: c.String(), Sizes: c.Sizes, Bytes: bytes, Calls: 1, Rounds: warmRounds}
	trial := [2]*batch{}
	warm := func(_, side int) (err error) {
		trial[side], err = t.batch(ctx, side, 1, false, false)
		return err
	}
	err := stopwatch.InTurns(warming, 2, warm)
	var lost *worker.Lost
	if err != nil && !errors.As(err, &lost) {
		t.held = true
		err = stopwatch.InTurns(warming, 2, warm)
	}
	if err != nil {
		return p.stopped(err)
	}
	longest := max(trial[0].own, trial[1].own, time.Microsecond)
	p.Calls = int(max(1, min(mostBatch, batchMemory/max(bytes, 1), int(batchTime/longest))))
	cold := coldRounds
	if longest > slowCall {
		p.Rounds, cold = slowRounds, slowRounds
	}
	checked := t.src.Index(p.Rounds)
	if p.Warm, err = t.rounds(ctx, p, p.Rounds, p.Calls, false, checked); err == nil && p.Refused == "" {
		p.Cold, err = t.rounds(ctx, p, cold, 1, true, cold-1)
	}
	if err != nil {
		return p.stopped(err)
	}
	p.hold(copyRate(bytes))
	return p, nil
}

// stopped is a point of which a call raised something.
func (p *Point) stopped(err error) (*Point, error) {
	var lost *worker.Lost
	if errors.As(err, &lost) {
		return nil, err
	}
	p.Warm, p.Cold, p.Refused = nil, nil, "a call was not timed: "+firstLine(err.Error())
	return p, nil
}

// rounds measures both sides in turns. The results of one round, which nothing tells
// the kernel, and of the last are compared with the reference's.
func (t *timer) rounds(ctx context.Context, p *Point, rounds, calls int, cold bool, checked int) (*Pair, error) {
	var sides [2][]*batch
	err := stopwatch.InTurns(rounds, 2, func(round, side int) error {
		b, err := t.batch(ctx, side, calls, cold, side == 0 && (round == checked || round == rounds-1))
		if err != nil {
			return err
		}
		sides[side] = append(sides[side], b)
		return t.check(ctx, b)
	})
	if err != nil {
		return nil, err
	}
	pair := &Pair{}
	var each [2][]float64
	for side, of := range []*Span{&pair.Kernel, &pair.Reference} {
		each[side] = perCall(sides[side])
		*of = spanOf(each[side])
	}
	if !cold && clockLies(sides[0]) {
		p.Refused = "the clock of the kernel's process says less than the judge's: a measuring error"
	}
	speedup := make([]float64, rounds)
	for i := range speedup {
		speedup[i] = each[1][i] / each[0][i]
	}
	pair.Speedup = spanOf(speedup)
	return pair, nil
}

// batch has one side make calls, of arguments that have been laid out for them. All but those
// whose results are looked at have values that no other call has: what a kernel remembers of
// earlier ones saves it nothing.
func (t *timer) batch(ctx context.Context, side, calls int, cold, looked bool) (*batch, error) {
	h := t.s.kernel
	if side == 1 {
		h = t.s.reference
	}
	b := &batch{calls: calls}
	last := map[int]int{}
	for i := range calls {
		b.order = append(b.order, t.src.Index(len(t.cases)))
		last[b.order[i]] = i
	}
	if looked {
		b.looked = append(slices.Sorted(maps.Values(last)), t.src.Index(calls))
	}
	turns := make([]int, calls)
	for i := range turns {
		if !t.held && !slices.Contains(b.looked, i) {
			turns[i] = 1 + t.src.Index(1<<30)
		}
	}
	if err := timed(ctx, h, map[string]any{"lay": b.order, "turns": turns, "cold": cold}, nil); err != nil {
		return nil, err
	}
	var made struct {
		NS       int64       `json:"ns"`
		Evidence [][2]string `json:"evidence"`
	}
	for _, n := range []int{0, calls} {
		start := time.Now()
		if err := timed(ctx, h, map[string]any{"go": n}, &made); err != nil {
			return nil, err
		}
		if b.wall = time.Since(start); n == 0 {
			b.empty = b.wall
		}
	}
	b.own = time.Duration(made.NS)
	for _, e := range made.Evidence {
		t.s.add(finding{Kind: e[0], Text: "while it is timed, it " + e[1]})
	}
	return b, nil
}

func timed(ctx context.Context, h *host, request map[string]any, answer any) error {
	if answer == nil {
		answer = &struct{}{}
	}
	return h.ask(ctx, map[string]any{"time": request}, answer)
}

// perCall is what each batch takes for a call, in microseconds: by the clock of the
// process, but no less than the judge's clock leaves beside the slowest empty exchange.
func perCall(all []*batch) []float64 {
	idle := slowest(all)
	out := make([]float64, len(all))
	for i, b := range all {
		out[i] = float64(max(b.own, b.wall-idle, 1)) / float64(b.calls) / float64(time.Microsecond)
	}
	return out
}

func slowest(all []*batch) time.Duration {
	var idle time.Duration
	for _, b := range all {
		idle = max(idle, b.empty)
	}
	return idle
}

// clockLies reports whether the judge's clock contradicts that of a process in most
// batches: by half as much again, and more than a busy machine explains.
func clockLies(all []*batch) bool {
	idle, lies := slowest(all), 0
	for _, b := range all {
		if b.wall-idle > b.own+b.own/2+time.Millisecond {
			lies++
		}
	}
	return 2*lies > len(all)
}

// check compares what the calls of a batch that are looked at gave with what the reference
// gives: the last one of each case, and a random one. One result is not right for two cases.
func (t *timer) check(ctx context.Context, b *batch) error {
	for _, i := range b.looked {
		r := t.cases[b.order[i]]
		var none struct{}
		if err := t.s.kernel.ask(ctx, map[string]any{"prepare": map[string]any{"timed": i}}, &none); err != nil {
			return err
		}
		job := backend.NewJob(r.program)
		got, err := t.s.kernel.Run(ctx, job)
		if err != nil {
			return err
		}
		if err := t.compare(ctx, r, job, got); err != nil {
			return err
		}
	}
	return nil
}

func (t *timer) compare(ctx context.Context, r *result, job *backend.Job, got *backend.Outcome) error {
	s := t.s
	again := &result{Case: r.Case, kernel: valuesOf(got), ref: valuesOf(r.ref), slack: r.slack}
	var err error
	again.verdict, err = s.judge.Judge(ctx, job, again.ref, again.kernel, s.asks)
	if err != nil {
		return err
	}
	old := got.Status == backend.OK && s.repeated(again)
	again.misaligned = got.Status == backend.OK && again.verdict.Word == verdict.Misaligned && !again.tolerated() && !s.overflows(again)
	if !again.misaligned {
		return nil
	}
	kind, text := "timed", "gives another result while it is timed: "+again.verdict.Reason
	if old {
		kind, text = "cached", "returns the result of an earlier call while it is timed"
	}
	f := finding{kind, text, again}
	again.problems = append(again.problems, f)
	s.outcomes = append(s.outcomes, again)
	s.add(f)
	return nil
}

// valuesOf is an outcome without what its call left in arguments.
func valuesOf(o *backend.Outcome) *backend.Outcome {
	own := *o
	own.Slots = nil
	return &own
}

// moved is how many bytes a call reads and writes at least: those of its arguments, and
// of results that are memory of their own.
func moved(r *result) int {
	n := 0
	for i := range r.program.Inputs {
		in := &r.program.Inputs[i]
		n += tensor.NumElements(in.Shape) * in.DType.Size()
	}
	if len(r.seen.Shares) > 0 {
		return n
	}
	for _, v := range r.kernel.Values {
		for _, t := range leaves(v) {
			n += len(t.Storage())
		}
	}
	return n
}

// beyondCopy is how many times as fast as it can be copied memory may be read or
// written.
const beyondCopy = 2

// hold refuses times in which a kernel would move its bytes faster than memory does,
// where the reference, which need not read all of them either, takes longer.
func (p *Point) hold(rate float64) {
	least := float64(p.Bytes) / (beyondCopy * rate) * 1e6
	for _, pair := range []*Pair{p.Warm, p.Cold} {
		if pair != nil && p.Refused == "" && pair.Kernel.Median < least && pair.Reference.Median >= least {
			p.Refused = fmt.Sprintf("%d bytes in %.3g µs are more than memory gives, which is %.3g GB/s here: a measuring error", p.Bytes, pair.Kernel.Median, beyondCopy*rate/1e9)
		}
	}
	if p.Refused != "" {
		p.Warm, p.Cold = nil, nil
	}
}

// String is a point in a line.
func (p *Point) String() string {
	if p.Refused != "" {
		return p.Case + ": " + p.Refused
	}
	return fmt.Sprintf("%s: warm %s; cold %s", p.Case, p.Warm, p.Cold)
}

// String is a pair in words.
func (p *Pair) String() string {
	return fmt.Sprintf("%s µs, the reference %s: %s × as fast", p.Kernel, p.Reference, p.Speedup)
}

// String is a median with its interval.
func (s Span) String() string {
	return fmt.Sprintf("%s (%s to %s)", digits(s.Median), digits(s.Low), digits(s.High))
}

// digits writes a number with three digits that count.
func digits(x float64) string {
	if x >= 1000 {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.*f", max(0, 2-int(math.Floor(math.Log10(max(x, 1e-3))))), x)
}

// best is the right call from which the calls that are timed follow: contiguous, in the
// first dtype, the largest.
func (s *Session) best() *result {
	var best *result
	rank := func(r *result) int {
		n := 0
		for i, holds := range []bool{!r.again, r.DType == s.maker.promises.DTypes[0], r.Layout == Contiguous} {
			if holds {
				n |= 1 << i
			}
		}
		return n
	}
	for _, r := range s.outcomes {
		if !r.fine() || r.elements() == 0 {
			continue
		}
		if best == nil || rank(r) > rank(best) || rank(r) == rank(best) && r.elements() > best.elements() {
			best = r
		}
	}
	return best
}

// sizes of a sweep.
const (
	firstPoint = 1 << 10 // elements of a call's arguments
	nextPoint  = 1 << 4  // times as many elements
	lastPoint  = 1 << 20 // elements where nothing says which sizes there are
	mostPoints = 5
)

// sweep lists cases of growing sizes: up to those that the examples or promises give.
func (s *Session) sweep() []*Case {
	r := s.best()
	if r == nil {
		return nil
	}
	if s.task != nil {
		return s.asGiven()
	}
	base := *r.Case
	base.again, base.large, base.Regime = false, true, Usual
	if p, ok := s.maker.form.(*problem); ok {
		base.Regime, base.eval = AsGiven, p.random
	}
	low, high := s.ends(&base)
	at := s.sized(&base, low)
	if at == nil {
		at = s.sized(&base, base.Sizes)
	}
	if at == nil {
		return nil
	}
	known := len(high) == len(at.Sizes)
	var out []*Case
	target := firstPoint
	if known {
		out, target = append(out, at), at.elements()*nextPoint
	}
	stuck := map[string]bool{}
	for grown := true; grown; {
		grown = false
		for _, name := range at.names() {
			next := s.grown(at, name, high, stuck)
			if next == nil || !known && next.elements() > lastPoint {
				stuck[name] = true
				continue
			}
			at, grown = next, true
			if n := at.elements(); n >= target {
				out, target = append(out, at), n*nextPoint
			}
		}
	}
	if len(out) == 0 || out[len(out)-1] != at {
		out = append(out, at)
	}
	if len(out) > mostPoints { // the smallest, and the largest
		out = slices.Delete(out, 1, len(out)-mostPoints+1)
	}
	return out
}

// ends are the sizes from which a sweep goes to which; without a last one it ends where
// calls are large.
func (s *Session) ends(base *Case) (low, high map[string]int) {
	low, high = map[string]int{}, map[string]int{}
	given := base.sig.Given
	if p, ok := s.maker.form.(*problem); ok {
		given = p.given
	}
	for _, name := range base.names() {
		low[name] = 8
		if n, ok := given[name]; ok && s.maker.promises.Shapes != Any {
			unit := 1
			if p, ok := s.maker.form.(*problem); ok {
				unit = p.unit(name)
			}
			low[name], high[name] = near{given: n, unit: unit}.reduced(), n
			if s.maker.promises.Shapes == Given {
				low[name] = n
			}
		}
		if r, ok := s.maker.promises.Ranges[name]; ok {
			low[name], high[name] = max(r[0], 1), r[1]
		}
	}
	return low, high
}

// sized is a case of these sizes; nil where there is none.
func (s *Session) sized(base *Case, sizes map[string]int) *Case {
	c := *base
	c.Sizes = map[string]int{}
	for name, n := range sizes {
		c.Sizes[name] = n
	}
	if s.maker.rewrite(&c) != nil || s.maker.legal != nil && !s.maker.legal(c.program) {
		return nil
	}
	s.withoutGradients(&c)
	return &c
}

// grown is a case of which one size is doubled, or at its end; nil where it is already,
// or there is no such case.
func (s *Session) grown(c *Case, name string, high map[string]int, stuck map[string]bool) *Case {
	n := 2 * c.Sizes[name]
	if end, ok := high[name]; ok {
		n = min(n, end)
	}
	if stuck[name] || n == c.Sizes[name] {
		return nil
	}
	sizes := map[string]int{}
	for k, v := range c.Sizes {
		sizes[k] = v
	}
	sizes[name] = n
	return s.sized(c, sizes)
}

// asGiven are the calls of a task's own tests and benchmarks, the smallest and the largest.
func (s *Session) asGiven() []*Case {
	var out []*Case
	for _, r := range s.outcomes {
		if r.own && r.fine() && !r.again {
			out = append(out, r.Case)
		}
	}
	slices.SortFunc(out, func(a, b *Case) int { return a.elements() - b.elements() })
	if len(out) > mostPoints {
		out = slices.Delete(out, 1, len(out)-mostPoints+1)
	}
	return out
}
