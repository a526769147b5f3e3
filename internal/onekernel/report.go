package onekernel

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
	"time"

	"plumb/backend"
	"plumb/internal/judge/verdict"
)

// Report is what is said of a kernel. Its JSON is stable; docs/kernel.md states it.
type Report struct {
	Verdict Word     `json:"verdict"`
	Reasons []Reason `json:"reasons"`
	// When says which draws show the mistake, as "only at sizes that are no power of two".
	When     string    `json:"when,omitempty"`
	Smallest *Smallest `json:"smallest,omitempty"`
	Bundle   *Bundle   `json:"bundle,omitempty"` // of the smallest call
	// Evidence is all that was seen beside the results.
	Evidence []Reason `json:"evidence,omitempty"`
	Tried    Tried    `json:"tried"`
	// Refused maps what the kernel raises to the cases in which it does.
	Refused map[string][]string `json:"refused,omitempty"`
	// Promises are what the kernel is said to take, and to compute with.
	Promises []string `json:"promises,omitempty"`
	// Delegates says that the kernel calls what it is to replace.
	Delegates bool     `json:"delegates,omitempty"`
	Notes     []string `json:"notes,omitempty"`
	Kernel    string   `json:"kernel"`
	Against   string   `json:"against"`
	Reference string   `json:"reference"` // its framework and version
	Sandbox   Sandbox  `json:"sandbox"`
	Time      *Timing  `json:"time,omitempty"` // under Options.Time
	Seed      uint64   `json:"seed"`
	Seconds   float64  `json:"seconds"`
	// Score is the share of the cases that the kernel answers rightly, 0 where it cheats:
	// one that is right in more of them has no lower score.
	Score float64 `json:"score"`

	session *Session
}

// Reason is one thing that is said.
type Reason struct {
	Kind  string `json:"kind"`
	Text  string `json:"text"`
	Cases int    `json:"cases,omitempty"` // in how many it was seen
}

// Smallest is the smallest call that shows a problem.
type Smallest struct {
	Case    string `json:"case"`
	Program string `json:"program"`
	Where   string `json:"where,omitempty"`
	Index   []int  `json:"index,omitempty"`
	Got     string `json:"got,omitempty"`
	Want    string `json:"want,omitempty"`
	Truth   string `json:"truth,omitempty"`
	Limit   string `json:"limit,omitempty"`
	Reason  string `json:"reason"`

	result  *result
	session *Session
}

// Tried says what was drawn.
type Tried struct {
	Cases     int      `json:"cases"`   // that the reference takes
	Right     int      `json:"right"`   // of them
	Refused   int      `json:"refused"` // by the kernel
	Gradients int      `json:"gradients"`
	DTypes    []string `json:"dtypes"`
	Layouts   []string `json:"layouts"`
	Values    []string `json:"values"`
	Sizes     []int    `json:"sizes"`
}

func (s *Session) newReport() *Report {
	c := s.cfg
	name := c.Kernel.File
	if c.Kernel.Name != "" {
		name += "::" + c.Kernel.Name
	}
	own := *c
	if s.maker != nil && s.maker.form != nil { // its examples narrow what is drawn
		own.Promises = s.maker.promises
	}
	return &Report{Promises: own.promised(), Tried: Tried{DTypes: []string{}, Layouts: []string{}, Values: []string{}, Sizes: []int{}}, Kernel: strings.TrimPrefix(name, "::"), Against: c.Against, Reference: s.info, Sandbox: s.sandbox.told, Seed: c.Seed, Seconds: time.Since(s.start).Seconds(), Reasons: []Reason{}, session: s}
}

// promised lists in words what narrows the draws and widens the limits.
func (c *Config) promised() []string {
	var all []string
	list := func(what string, names []string) {
		if len(names) > 0 {
			all = append(all, what+" "+strings.Join(names, ", "))
		}
	}
	var dtypes, layouts []string
	for _, dt := range c.DTypes {
		dtypes = append(dtypes, dt.String())
	}
	for _, l := range c.Layouts {
		layouts = append(layouts, string(l))
	}
	list("dtypes", dtypes)
	list("layouts", layouts)
	if c.Shapes != "" {
		list("shapes", []string{string(c.Shapes)})
	}
	for _, name := range slices.Sorted(maps.Keys(c.Ranges)) {
		all = append(all, fmt.Sprintf("%s from %d to %d", name, c.Ranges[name][0], c.Ranges[name][1]))
	}
	for _, said := range []struct {
		holds bool
		text  string
	}{
		{c.NoEmpty, "no empty tensor"}, {c.NoNonFinite, "no NaN and no infinity"},
		{c.Grad != nil && *c.Grad && !c.GradGrad, "gradients"}, {c.GradGrad, "gradients of the second order"}, {c.Grad != nil && !*c.Grad, "no gradients"},
		{c.Precision == TF32 || c.Precision == Fast, "precision " + string(c.Precision)}, {c.HalfSums, "half dtypes summed in themselves"},
	} {
		if said.holds {
			all = append(all, said.text)
		}
	}
	return all
}

func (s *Session) nothing(reason string) *Report {
	r := s.newReport()
	of := []finding(nil)
	if r.Verdict, of = s.verdict(); r.Verdict != Cheats && r.Verdict != Unsafe { // as a file does that fails when it is imported
		r.Verdict, of = Nothing, nil
	}
	r.Reasons = append(s.reasons(of), Reason{Kind: "nothing", Text: reason})
	return r
}

func (s *Session) report(ctx context.Context) (*Report, error) {
	rep := s.newReport()
	var of []finding
	rep.Verdict, of = s.verdict()
	rep.Reasons = s.reasons(of)
	rep.Time = s.timing
	if rep.Verdict == Nothing {
		rep.Reasons = append(rep.Reasons, Reason{Kind: "nothing", Text: s.whyNothing()})
	}
	for _, f := range s.findings {
		switch {
		case f.Kind == "delegates":
			rep.Delegates = true
			rep.Evidence = append(rep.Evidence, Reason{f.Kind, f.Text, s.count(f.Kind)})
		case words[f.Kind] == Cheats || words[f.Kind] == Unsafe:
			rep.Evidence = append(rep.Evidence, Reason{f.Kind, f.Text, s.count(f.Kind)})
		}
	}
	s.tried(rep)
	if flags := s.promising(); rep.Verdict == Limited && flags != "" {
		rep.Notes = append(rep.Notes, "it takes all that it promises with "+flags)
	}
	var small *result
	if at := slices.IndexFunc(of, func(f finding) bool { return f.at != nil && len(f.at.problems) > 0 }); at >= 0 {
		small = s.simplest(of[at].Kind)
		if of[at].Kind != "hangs" { // each smaller one would take as long
			var err error
			if small, err = s.smaller(ctx, small, of[at].Kind); err != nil {
				return nil, err
			}
		}
		rep.Smallest = smallestOf(small)
		rep.Smallest.session = s
	}
	rep.When = s.when(small)
	rep.Seconds = time.Since(s.start).Seconds()
	return rep, nil
}

// line says of a case what came of it, and its call.
func (r *result) line() string {
	word := "right"
	switch {
	case len(r.problems) > 0:
		word = r.problems[0].Text
	case r.kernel.Status != backend.OK:
		word = "refused: " + refusal(r)
	case r.verdict.Word != verdict.Aligned:
		word = "right, " + string(r.verdict.Word) + ": " + r.verdict.Reason
	}
	calls := strings.Split(strings.TrimSpace(r.program.String()), "\n")
	return fmt.Sprintf("%3d %s: %s: %s", r.Index, r.Case, calls[len(calls)-len(r.program.Backward)-len(r.program.Calls)], word)
}

// simplest is the failing case with the fewest elements, of a kind of problem.
func (s *Session) simplest(kind string) *result {
	var best *result
	for _, r := range s.outcomes {
		if !slices.ContainsFunc(r.problems, func(f finding) bool { return f.Kind == kind }) {
			continue
		}
		if best == nil || r.elements() < best.elements() {
			best = r
		}
	}
	return best
}

func (c *Case) elements() int {
	n := 0
	for i := range c.program.Inputs {
		size := 1
		for _, d := range c.program.Inputs[i].Shape {
			size *= d
		}
		n += size
	}
	return n
}

func (s *Session) count(kind string) int {
	n := 0
	for _, r := range s.outcomes {
		if slices.ContainsFunc(r.problems, func(f finding) bool { return f.Kind == kind }) {
			n++
		}
	}
	return n
}

// mostReasons bounds the reasons that are told.
const mostReasons = 8

// reasons tells findings, one of a kind.
func (s *Session) reasons(of []finding) []Reason {
	out := []Reason{}
	for _, f := range of {
		same := slices.ContainsFunc(out, func(r Reason) bool { return r.Kind == f.Kind && (f.word() == Wrong || r.Text == f.Text) })
		if !same && len(out) < mostReasons {
			out = append(out, Reason{f.Kind, f.Text, s.count(f.Kind)})
		}
	}
	return out
}

func (s *Session) whyNothing() string {
	if len(s.outcomes) == 0 {
		for _, text := range slices.Sorted(maps.Keys(s.untraced)) {
			return "no call could be judged: " + text
		}
		return "the reference takes none of the drawn calls: " + firstLine(s.refuses)
	}
	for _, r := range s.outcomes {
		if len(r.problems) == 0 && !r.fine() {
			return "the kernel answers none of the drawn calls: " + refusal(r)
		}
	}
	return "no call could be judged"
}

func (s *Session) tried(rep *Report) {
	t := &rep.Tried
	sets := [3]map[string]bool{{}, {}, {}}
	sizes := map[int]bool{}
	rep.Refused = map[string][]string{}
	for _, r := range s.outcomes {
		t.Cases++
		if r.fine() {
			t.Right++
		}
		if r.Grad {
			t.Gradients++
		}
		sets[0][r.DType.String()], sets[1][string(r.Layout)], sets[2][string(r.Regime)] = true, true, true
		for _, n := range r.lengths() {
			sizes[n] = true
		}
		if len(r.problems) == 0 && (r.kernel.Status != "ok") {
			t.Refused++
			text := refusal(r)
			rep.Refused[text] = append(rep.Refused[text], r.Case.String())
		}
	}
	t.DTypes, t.Layouts, t.Values = keys(sets[0]), keys(sets[1]), keys(sets[2])
	for n := range sizes {
		t.Sizes = append(t.Sizes, n)
	}
	sort.Ints(t.Sizes)
	if rep.Verdict != Cheats && t.Cases > 0 {
		rep.Score = float64(t.Right) / float64(s.asked(t.Cases))
	}
	if p, ok := s.maker.form.(*problem); ok {
		rep.Notes = append(rep.Notes, p.notes...)
		if p.random {
			rep.Notes = append(rep.Notes, "the reference draws random numbers in training: compared in eval alone, but for buffers that go by none of them and the law of its results")
		}
	}
	if s.detached {
		rep.Notes = append(rep.Notes, "forward only: its results have no gradients, which --grad would demand")
	}
	rep.Notes = append(rep.Notes, s.notes...)
	if n := len(s.untraced); n > 0 {
		for text, k := range s.untraced {
			rep.Notes = append(rep.Notes, fmt.Sprintf("%d × without error bounds of the reference's own calls: %s", k, text))
		}
		sort.Strings(rep.Notes)
	}
}

// asked is how many cases a score is a share of. Where enough of them have failed, those
// that were not run count: a kernel that fails in fewer has no lower score.
func (s *Session) asked(run int) int {
	if !s.enough() {
		return run
	}
	planned := 0
	for i := range s.cfg.Cases {
		planned += 1 + len(twins(i))
	}
	return max(run, planned)
}

func keys(set map[string]bool) []string {
	out := []string{}
	for k := range set {
		out = append(out, k)
	}
	sort.Strings(out)
	return out
}

func smallestOf(r *result) *Smallest {
	out := &Smallest{Case: r.Case.String(), Program: r.program.String(), result: r}
	for _, f := range r.problems {
		out.Reason = f.Text
	}
	if r.verdict == nil || len(r.verdict.Differences) == 0 {
		return out
	}
	d := r.verdict.Differences[0]
	out.Where = placed(&d)
	out.Index, out.Got, out.Want, out.Limit = d.Diff.Worst, d.Diff.Got, d.Diff.Want, d.Limit.Times(r.slack).String()
	if d.Truth != nil {
		out.Truth = d.Truth.Of(d.Diff.Worst)
	}
	return out
}

func placed(d *verdict.Difference) string {
	if d.Where.Part == "" || d.Where.Part == "value" {
		return "the result"
	}
	if d.Where.Part == backend.PartSecondGrad {
		return "the second-order gradient of " + d.Where.Name
	}
	return fmt.Sprintf("the %s of %s", d.Where.Part, d.Where.Name)
}
