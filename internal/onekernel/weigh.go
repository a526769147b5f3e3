package onekernel

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"math/cmplx"
	"slices"
	"strings"
	"time"

	"plumb/backend"
	"plumb/internal/draw/choice"
	"plumb/internal/judge/compare"
	"plumb/internal/judge/verdict"
	"plumb/program"
	"plumb/tensor"
)

// Word is the verdict on a kernel.
type Word string

// The verdicts, in the order of precedence.
const (
	Cheats     Word = "cheats"
	Unsafe     Word = "unsafe"
	Wrong      Word = "wrong"
	Delegation Word = "delegation" // with NoFallback alone
	Limited    Word = "limited"
	Right      Word = "right"
	Nothing    Word = "nothing"
)

// precedence lists the verdicts that findings give.
var precedence = []Word{Cheats, Unsafe, Wrong, Delegation, Limited}

// finding is one thing that is said against a kernel.
type finding struct {
	Kind string
	Text string
	at   *result // nil where it is of no case
}

// words say to which verdict a kind of evidence leads; a kind that is not here is a
// wrong result.
var words = map[string]Word{
	"patches": Cheats, "clock": Cheats, "spies": Cheats, "late": Cheats, "later": Cheats, "class": Cheats, "exits": Cheats, "channel": Cheats, "decoy": Cheats, "counts": Cheats, "marks": Cheats, "cached": Cheats, "spoils": Cheats, "unwritten": Cheats,
	"signal": Unsafe, "memory": Unsafe, "race": Unsafe,
	"refuses": Limited, "oom": Limited,
	"delegates": Delegation,
}

func (f *finding) word() Word { return cmp.Or(words[f.Kind], Wrong) }

func (s *Session) add(f finding) {
	if !slices.ContainsFunc(s.findings, func(g finding) bool { return g.Kind == f.Kind && g.Text == f.Text }) {
		s.findings = append(s.findings, f)
	}
}

// weigh says what a case holds against the kernel.
func (s *Session) weigh(ctx context.Context, r *result, job *backend.Job) error {
	say := func(kind, text string) {
		f := finding{kind, text, r}
		if w := f.word(); w != Delegation && w != Limited {
			r.problems = append(r.problems, f)
		}
		s.add(f)
	}
	var decoys []string
	clock := "" // how it is read
	for _, e := range r.seen.Evidence {
		switch {
		case e[0] == "raises", e[0] == "buffer" && r.sharesOutput():
		case e[0] == "decoy":
			decoys = append(decoys, e[1])
		case e[0] == "clock":
			clock = e[1]
		default:
			say(e[0], e[1])
		}
	}
	switch o := r.kernel; o.Status {
	case backend.Crashed:
		say(ending(o))
		return nil
	case backend.TimedOut:
		say("hangs", "gives no answer: "+firstLine(o.Message))
		return nil
	case backend.OutOfMemory:
		say("oom", "runs out of memory")
		return nil
	case backend.Raised, backend.Unsupported:
		say("refuses", refusal(r))
		return nil
	}
	if len(r.seen.Shares) > 0 && len(r.refSeen.Shares) == 0 && !r.sharesOutput() && !r.selectsOne() {
		text := fmt.Sprintf("returns the memory of its argument %d", r.seen.Shares[0])
		if r.plain() && !r.stays() {
			say("aliases", text)
		} else {
			r.viewed = text // which is weighed at the end
		}
	}
	old := s.repeated(r)
	var err error
	if r.misaligned = s.wrong(r); r.misaligned {
		var follows bool
		if follows, err = s.followsNonFinite(ctx, r, job); err != nil {
			return err
		}
		r.misaligned = !follows
	}
	if r.misaligned {
		near, err := s.nearTruth(ctx, r, job)
		if err != nil {
			return err
		}
		r.misaligned = !near
	}
	if r.misaligned {
		if old = old && !swallowed(r.ref, r.kernel, slices.Max(append(r.lengths(), 1))); old { // a sum that is not begun anew is the last one there
			if old, err = s.remembers(ctx, r); err != nil {
				return err
			}
		}
		r.misaligned = old || !r.mixed // such data a task does not promise
	}
	if r.misaligned {
		r.verdict = r.verdict.LedBy(r.intolerable())
		say(string(r.verdict.Kind), r.beyond(r.verdict.Reason))
		if old {
			say("cached", "returns the result of an earlier call, whose arguments were others")
		}
		parallel, err := s.races(ctx, r)
		if err != nil {
			return err
		}
		if parallel {
			say("race", "gives a wrong result where its threads are at work in call after call, and a right one in a single call")
		}
		spoilt, err := s.spoils(ctx, r)
		if err != nil {
			return err
		}
		if clock != "" {
			early, err := s.clocked(ctx, r)
			if err != nil {
				return err
			}
			if early {
				say("clock", clock+", and computes early alone")
			}
		}
		if spoilt {
			say("spoils", "changes its arguments, so that a reference that ran after it would agree")
		}
	}
	for _, text := range decoys {
		if !r.misaligned { // a wrong result is none that something else gives
			say("decoy", text)
		}
	}
	if by := delegates(r.seen.Operators, r.refSeen.Operators); r.recorded() && len(by) > 0 {
		say("delegates", "calls what it is to replace: "+strings.Join(by, ", "))
	}
	return nil
}

// changes reports whether a call leaves something else in an argument.
func changes(o *backend.Outcome, name string) bool {
	return slices.ContainsFunc(o.Slots, func(s backend.Slot) bool { return s.Part == backend.PartChange && s.Owner == name })
}

// telling is how many different finite numbers a result has to have for its being
// the same as another one to mean something: overflows and saturation are alike.
const telling = 4

// repeated reports whether a kernel's result has the very elements of one that an
// earlier case had, of another key.
func (s *Session) repeated(r *result) bool {
	h := sha256.New()
	numbers := map[complex128]bool{}
	for _, v := range r.kernel.Values {
		for _, t := range leaves(v) {
			fmt.Fprint(h, t.DType(), t.Shape())
			h.Write(t.Bytes())
			for i := 0; i < t.Len() && len(numbers) < telling; i++ {
				if !cmplx.IsNaN(t.At(i)) && !cmplx.IsInf(t.At(i)) {
					numbers[t.At(i)] = true
				}
			}
		}
	}
	if len(numbers) < telling {
		return false
	}
	sum := string(h.Sum(nil))
	key, known := s.earlier[sum]
	if !known {
		s.earlier[sum] = r.Key
	}
	return known && key != r.Key
}

// swallowed reports whether each element of the reference's result is lost in the kernel's, as
// a term of a sum of so many is in what it is added to: zero is, anywhere.
func swallowed(want, got *backend.Outcome, terms int) bool {
	all, of := all(want), all(got)
	if len(all) != len(of) {
		return false
	}
	for k, w := range all {
		if w.Len() != of[k].Len() {
			return false
		}
		for i := range w.Len() {
			if !(cmplx.Abs(w.At(i)) <= float64(terms)*compare.Roundoff(of[k].DType())*cmplx.Abs(of[k].At(i))) {
				return false
			}
		}
	}
	return true
}

// spoils reports whether the kernel has changed its arguments to ones for which the
// reference gives what the kernel gave. A buffer of a model's is the model's own to change: a mean
// that goes on running in eval is a mistake; and what is written to one of several elements in one
// place is written to all of them, whoever works in place.
func (s *Session) spoils(ctx context.Context, r *result) (bool, error) {
	if r.verdict.Where == nil || r.verdict.Where.Part != backend.PartValue {
		return false, nil
	}
	p := r.program.Clone()
	changed := false
	for i := range p.Inputs {
		in := &p.Inputs[i]
		for _, slot := range r.kernel.Slots {
			if slot.Part == backend.PartChange && slot.Owner == in.Name && slot.Tensor != nil && !changes(r.ref, in.Name) && !r.sig.buffer(in.Name) {
				if slices.Contains(in.Strides, 0) {
					return false, nil
				}
				in.Fill, in.Strides, changed = program.Fill{Dist: program.Literal, Data: slot.Tensor.Contiguous()}, nil, true
			}
		}
		in.RequiresGrad = false
	}
	if !changed {
		return false, nil
	}
	forward(p)
	job := backend.NewJob(p)
	ref, err := s.reference.Run(ctx, job)
	if err != nil || ref.Status != backend.OK {
		return false, err
	}
	same := *r.kernel
	same.Slots = slices.DeleteFunc(slices.Clone(same.Slots), func(slot backend.Slot) bool { return slot.Part != backend.PartValue })
	ref.Slots = nil
	v, err := s.judge.Judge(ctx, job, ref, &same, s.asks)
	return err == nil && (v.Word == verdict.Aligned || v.Kind == verdict.RequiresGrad), err
}

// several is from how many calls on it pays to tell the reference not to record its operators.
const several = 4

// asks has the reference answer the judge, who does not look at its operators.
func (s *Session) asks(ctx context.Context, jobs []*backend.Job) (_ []*backend.Outcome, err error) {
	if len(jobs) >= several {
		if err := s.records(ctx, false); err != nil {
			return nil, err
		}
		defer func() { err = cmp.Or(err, s.records(ctx, true)) }()
	}
	return backend.RunBatch(ctx, s.reference, jobs)
}

func (s *Session) records(ctx context.Context, on bool) error {
	var none struct{}
	return s.reference.ask(ctx, map[string]any{"record": on}, &none)
}

// Slack is how many times the error bound of the reference's own way to a result, or
// what is allowed by the truth, a kernel may be off: it may sum in another order
// and take another formula, whose error is of the same kind.
const Slack = 8

// Precision is what a kernel says of its arithmetic beyond the reference's.
type Precision string

// The precisions.
const (
	Full Precision = "full"
	TF32 Precision = "tf32" // products of float32 numbers of 11 bits, as tensor cores have them
	Fast Precision = "fast" // hardware's approximations of functions, some 10 bits short of float32
)

// slack is how many times its limit a difference may be in a case: Slack, times what
// the kernel says of its arithmetic.
func (c *Config) slack(of *Case) float64 {
	slack := float64(Slack)
	switch {
	case of.DType != tensor.F32:
	case c.Precision == TF32:
		slack *= 1 << (24 - 11)
	case c.Precision == Fast:
		slack *= 1 << 10
	}
	if c.HalfSums && half(of.DType) {
		slack *= float64(max(1, slices.Max(append(of.lengths(), 1)))) // (n-1)·u of a sum of n terms: Higham, Accuracy and Stability, §4.2
	}
	return slack
}

// ending says how the kernel's process ended.
func ending(o *backend.Outcome) (kind, text string) {
	switch {
	case strings.HasPrefix(o.Class, "SIG"):
		if where, ok := toldAt(o.Message, faultAt); ok {
			return "signal", fmt.Sprintf("%s (it dies by %s at a page without access)%s", where, o.Class, lastFrame(o.Message))
		}
		return "signal", fmt.Sprintf("its process dies by %s while its arguments lie between pages that cannot be read%s", o.Class, lastFrame(o.Message))
	case o.Class == "garbage" || o.Class == "protocol" || strings.Contains(o.Message, "reply"):
		return "channel", "what came by the judge's channel is no answer: " + firstLine(o.Message)
	}
	return "exits", "ends its process instead of returning: " + firstLine(o.Message)
}

// faultAt and misaligned begin the lines in which plumb_room.py tells of a
// segmentation fault.
const faultAt, misaligned = "plumb: reads", "plumb: wants aligned memory"

// toldAt returns the line of a message that begins so, without its mark.
func toldAt(message, begin string) (string, bool) {
	for _, line := range strings.Split(message, "\n") {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, begin) {
			return strings.TrimPrefix(line, "plumb: "), true
		}
	}
	return "", false
}

// lastFrame is the line of the kernel that Python's faulthandler names.
func lastFrame(message string) string {
	for _, line := range strings.Split(message, "\n") {
		line = strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(line, "File "); ok && !strings.Contains(rest, "plumb_") {
			return " (" + rest + ")"
		}
	}
	return ""
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

func refusal(r *result) string {
	for _, e := range r.seen.Evidence {
		if e[0] == "raises" {
			return e[1]
		}
	}
	text := r.kernel.Class + ": " + firstLine(r.kernel.Message)
	if r.kernel.Call == len(r.program.Calls) {
		text = "in the backward pass: " + text
	}
	return text
}

// fused are operators that do at once what a reference may write as several.
var fused = map[string][]string{
	"aten::scaled_dot_product_attention": strings.Fields("matmul _softmax mul div add sub amax max exp sum masked_fill where tril triu bitwise_not logical_not eq lt gt le ge repeat_interleave"),
	"aten::_softmax":                     strings.Fields("amax max sub exp sum div"),
	"aten::native_layer_norm":            normSteps,
	"aten::native_group_norm":            normSteps,
	"aten::native_batch_norm":            normSteps,
	"aten::gelu":                         strings.Fields("erf tanh pow mul div add"),
	"aten::silu":                         strings.Fields("sigmoid mul"),
}

var normSteps = strings.Fields("mean var var_mean std sub pow sqrt rsqrt mul div add")

// delegates are operators of a call that do all of what the reference's did, none where some of it is left.
func delegates(kernel, reference []string) (by []string) {
	for _, n := range reference {
		at := slices.Index(kernel, n)
		if at < 0 {
			at = slices.IndexFunc(kernel, func(k string) bool { return slices.Contains(fused[k], strings.TrimPrefix(n, "aten::")) })
		}
		if at < 0 {
			return nil
		}
		if !slices.Contains(by, kernel[at]) {
			by = append(by, kernel[at])
		}
	}
	return by
}

// word is the verdict that a finding leads to. Memory that was never written to is no
// cheat of a kernel which writes to it in other cases.
func (s *Session) word(f *finding) Word {
	answers := func(r *result) bool {
		return r.fine() && anywhere(r.ref, func(t *tensor.Tensor) bool { return t.Len() > 0 })
	}
	if f.Kind == "unwritten" && slices.ContainsFunc(s.outcomes, answers) {
		return Wrong
	}
	return f.word()
}

// verdict is the word that takes precedence, and its findings.
func (s *Session) verdict() (Word, []finding) {
	for _, w := range precedence {
		if w == Delegation && !s.cfg.NoFallback {
			continue
		}
		var of []finding
		for _, f := range s.findings {
			if s.word(&f) == w {
				of = append(of, f)
			}
		}
		if len(of) > 0 && (w != Limited || s.right() > 0) {
			return w, of
		}
	}
	if s.right() == 0 {
		return Nothing, nil
	}
	return Right, nil
}

// right is how many cases were judged and found right.
func (s *Session) right() int {
	n := 0
	for _, r := range s.outcomes {
		if r.fine() {
			n++
		}
	}
	return n
}

// fine reports whether a case was answered, and rightly.
func (r *result) fine() bool {
	return len(r.problems) == 0 && r.kernel.Status == backend.OK && r.verdict != nil && !r.misaligned &&
		(r.verdict.Word == verdict.Aligned || r.verdict.Word == verdict.Known || r.verdict.Word == verdict.Misaligned)
}

// trials is how many smaller cases are tried, and shrinking how long: a kernel that
// ends its process begins anew each time.
const (
	trials    = 40
	shrinking = 3 * time.Second // of the processor's
)

// smaller looks for the smallest case with a problem of the same kind as that of r.
func (s *Session) smaller(ctx context.Context, r *result, kind string) (*result, error) {
	best, left, began := r, trials, s.spent()
	for improved := true; improved && left > 0; {
		improved = false
		for _, c := range s.simpler(best.Case) {
			if left--; left < 0 || s.spent()-began > shrinking {
				return best, nil
			}
			kept := s.findings
			try, err := s.one(ctx, c)
			s.findings = kept
			if err != nil {
				return nil, err
			}
			if try != nil && try.kernel.Status == backend.Crashed {
				left -= trials / deadly
			}
			if try != nil && slices.ContainsFunc(try.problems, func(f finding) bool { return f.Kind == kind }) {
				best, improved = try, true
				break
			}
		}
	}
	return best, nil
}

// simpler lists the cases that are one step simpler than c.
func (s *Session) simpler(c *Case) []*Case {
	var out []*Case
	add := func(change func(*Case)) {
		n := *c
		n.Sizes = map[string]int{}
		for k, v := range c.Sizes {
			n.Sizes[k] = v
		}
		change(&n)
		if s.maker.rewrite(&n) == nil && (s.maker.legal == nil || s.maker.legal(n.program)) {
			if s.detached {
				s.withoutGradients(&n)
			}
			out = append(out, &n)
		}
	}
	size := func(name string, n int) {
		if n >= 1 && n < c.Sizes[name] && s.maker.within(choice.New(0), name, n) == n {
			add(func(k *Case) { k.Sizes[name] = n })
		}
	}
	for _, name := range c.names() {
		for _, n := range []int{1, 2, 3, c.Sizes[name] / 2} {
			size(name, n)
		}
	}
	if c.Layout != Contiguous {
		add(func(k *Case) { k.Layout = Contiguous })
	}
	if c.Regime != Usual {
		add(func(k *Case) { k.Regime = Usual })
	}
	if c.Cotangents != "" {
		add(func(k *Case) { k.Cotangents = "" })
	}
	if c.Grad {
		add(func(k *Case) { k.Grad, k.Cotangents = false, "" })
	}
	for _, name := range c.names() { // last: one by one may take all the trials
		size(name, c.Sizes[name]-1)
	}
	return out
}

// when says which draws show a problem and no other does: the class of the mistake. The
// smallest call, where there is one, is made of a draw that had more in common with others.
func (s *Session) when(smallest *result) string {
	var bad, good []*result
	for _, r := range s.outcomes {
		switch {
		case len(r.problems) > 0:
			bad = append(bad, r)
		case r.fine():
			good = append(good, r)
		}
	}
	if len(bad) == 0 {
		return ""
	}
	if len(good) == 0 {
		return "in every case"
	}
	all := fmt.Sprintf("in %d of %d cases", len(bad), len(bad)+len(good))
	if smallest != nil {
		bad = append(bad, smallest)
	}
	type trait struct {
		text  string
		holds func(*result) bool
	}
	traits := []trait{{"only in the gradient where the cotangent is not contiguous", func(r *result) bool {
		return r.Cotangents != "" && (len(r.problems) == 0 || gradientOnly(r))
	}}}
	for _, v := range []Regime{Offset, Large, Negative, ConstRows, ZeroRows, Ties, NonFinite, Zeros, Extremes, Tiny, Cancelling} {
		traits = append(traits, trait{"only where the values are: " + string(v), func(r *result) bool { return r.Regime == v }})
	}
	traits = append(traits, trait{"only with inputs that are not contiguous", func(r *result) bool { return r.Layout != Contiguous }})
	for _, l := range []Layout{Transposed, Sliced, Expanded} {
		traits = append(traits, trait{"only with inputs that are " + string(l), func(r *result) bool { return r.Layout == l }})
	}
	for _, dt := range s.maker.promises.DTypes {
		traits = append(traits, trait{"only in " + dt.String(), func(r *result) bool { return r.DType == dt }})
	}
	traits = append(traits,
		trait{"only in half dtypes", func(r *result) bool { return half(r.DType) }},
		trait{"only for empty tensors", func(r *result) bool { return r.smallest() == 0 }},
		trait{"only in the gradient", func(r *result) bool { return gradientOnly(r) }},
		trait{"only where gradients are asked for", func(r *result) bool { return r.Grad }},
		trait{"only at widths that are no power of two", func(r *result) bool { return r.width()&(r.width()-1) != 0 }},
		trait{"only at sizes that are no power of two", func(r *result) bool {
			return slices.ContainsFunc(r.lengths(), func(n int) bool { return n&(n-1) != 0 })
		}},
	)
	narrowest := slices.MinFunc(bad, func(a, b *result) int { return cmp.Compare(a.width(), b.width()) }).width()
	traits = append(traits, trait{fmt.Sprintf("only at widths of %d and more", narrowest), func(r *result) bool { return r.width() >= narrowest }})
	sizes := map[int]bool{}
	for _, r := range bad {
		sizes[slices.Max(append(r.lengths(), 0))] = true
	}
	for _, n := range slices.Sorted(maps.Keys(sizes)) {
		traits = append(traits, trait{fmt.Sprintf("only at sizes of %d and more", n), func(r *result) bool { return slices.Max(append(r.lengths(), 0)) >= n }})
	}
	for _, name := range bad[0].names() {
		n := slices.MinFunc(bad, func(a, b *result) int { return cmp.Compare(a.Sizes[name], b.Sizes[name]) }).Sizes[name]
		traits = append(traits, trait{fmt.Sprintf("only where %s is %d and more", name, n), func(r *result) bool { return r.Sizes[name] >= n }})
	}
	for _, t := range traits {
		if !slices.ContainsFunc(bad, func(r *result) bool { return !t.holds(r) }) && !slices.ContainsFunc(good, t.holds) {
			return t.text
		}
	}
	return all
}

func gradientOnly(r *result) bool {
	return r.verdict != nil && r.verdict.Where != nil && (r.verdict.Where.Part == backend.PartGrad || r.verdict.Where.Part == backend.PartSecondGrad)
}

func (c *Case) lengths() []int {
	var all []int
	for _, name := range c.names() {
		all = append(all, c.Sizes[name])
	}
	return all
}

// width is the size of the last dimension of the first tensor that has one.
func (c *Case) width() int {
	for i := range c.program.Inputs {
		if shape := c.program.Inputs[i].Shape; len(shape) > 0 {
			return shape[len(shape)-1]
		}
	}
	return 0
}

func (c *Case) smallest() int { return slices.Min(append(c.lengths(), 1)) }

// spent is the processor time that kernel, reference and judge have taken; how much else
// the machine does changes no verdict.
func (s *Session) spent() time.Duration {
	spent := s.kernel.CPUTime() + s.reference.CPUTime()
	if s.cfg.Own != nil {
		spent += s.cfg.Own()
	}
	return spent
}

// shown is how many failing cases are enough to say when a kernel fails, plenty how many in half
// the time, and deadly how many that end its process, which takes seconds to start.
const (
	shown  = 24
	plenty = 8
	deadly = 3
)

func (s *Session) enough() bool {
	ended := 0
	for _, r := range s.outcomes {
		switch r.kernel.Status {
		case backend.TimedOut: // each costs as long again
			return true
		case backend.Crashed:
			ended++
		}
	}
	return s.failing() >= shown || ended >= deadly
}

// failing is how many cases have something against the kernel.
func (s *Session) failing() int {
	n := 0
	for _, r := range s.outcomes {
		if len(r.problems) > 0 {
			n++
		}
	}
	return n
}
