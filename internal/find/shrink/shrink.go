// Package shrink makes a failing case smaller. It edits the recorded decisions
// of the draw first, so that every smaller case is one that the test could have
// drawn, and then the program itself: calls, arguments, shapes, values.
//
// There is one door: a smaller program is taken only when it fails with the
// same Signature as the first one, so that a search cannot drift into another
// fault. The best program so far is kept whatever ends the search.
package shrink

import (
	"context"
	"time"

	"plumb/internal/draw/choice"
	"plumb/internal/judge/verdict"
	"plumb/program"
)

// Subject is what a case is tried on.
type Subject struct {
	// Judge runs a program on the reference and the candidate.
	Judge func(ctx context.Context, p *program.Program) (*verdict.Record, error)
	// Redraw draws the test again from a record of decisions and returns the
	// program and the decisions that it took; with a nil record, those of the
	// first draw. Nil for a program that no test drew.
	Redraw func(record []choice.Choice) (*program.Program, []choice.Choice, error)
	// OverRanks says that the candidate runs over ranks, and takes what a program
	// says of how tensors lie on them.
	OverRanks bool
}

// Budget bounds a search.
type Budget struct {
	Runs int // of the candidate
	Time time.Duration
}

// DefaultBudget is what plumb run spends on one finding.
var DefaultBudget = Budget{Runs: 500, Time: 30 * time.Second}

// Result is the smallest failing case that was found.
type Result struct {
	Record    *verdict.Record
	Signature Signature
	// Choices draw a program of the test that fails likewise, from which the
	// record's was made smaller still; nil when no test drew it.
	Choices []choice.Choice
	Runs    int // of the candidate
	Elapsed time.Duration
	// Minimal says that no pass made the program smaller; otherwise the budget
	// or the context ended the search.
	Minimal bool
	// Ranks says, of a case over ranks, how its inputs lie where it is wrong, and
	// what is right: "wrong with 2 ranks, x S(0), 3 rows; right with 4 rows". "" where
	// that is not known.
	Ranks string
}

// Shrink returns a small program that fails as first does. Progress, which may
// be nil, is called after every run. The error is a fault of the harness; the
// result is the best so far even then.
func Shrink(ctx context.Context, first *verdict.Record, s Subject, b Budget, progress func(*Result)) (*Result, error) {
	start := time.Now()
	ctx, cancel := context.WithTimeout(ctx, b.Time)
	defer cancel()
	h := &search{ctx: ctx, subject: s, runs: b.Runs, progress: progress, tried: map[string]bool{first.Program.ID(): true}}
	h.result = Result{Record: first, Signature: SignatureOf(first)}
	h.size = h.sizeOf(first.Program)
	h.draws()
	h.spread()
	h.result.Minimal = h.passes()
	if h.spread() {
		h.result.Minimal = h.passes()
	}
	h.contrast()
	h.result.Elapsed = time.Since(start)
	return &h.result, h.err
}

// search is one search for a smaller case.
type search struct {
	ctx      context.Context
	subject  Subject
	runs     int // the budget
	progress func(*Result)
	tried    map[string]bool // programs by id
	size     size            // of the best program
	result   Result
	err      error
}

func (s *search) best() *program.Program { return s.result.Record.Program }

// over reports whether the search has to end.
func (s *search) over() bool {
	return s.err != nil || s.result.Runs >= s.runs || s.ctx.Err() != nil
}

// try is the door: it takes a program that is valid, smaller than the best,
// and fails in the same way.
func (s *search) try(p *program.Program) bool {
	size := s.sizeOf(p)
	if s.over() || !size.less(s.size) || len(p.Calls) == 0 || p.Validate() != nil {
		return false
	}
	id := p.ID()
	if s.tried[id] {
		return false
	}
	s.tried[id] = true
	r, err := s.subject.Judge(s.ctx, p)
	s.result.Runs++
	if err != nil {
		if s.ctx.Err() == nil {
			s.err = err
		}
		return false
	}
	fails := SignatureOf(r) == s.result.Signature
	if fails {
		first := s.result.Record
		r.Test, r.Index, r.Candidate = first.Test, first.Index, first.Candidate
		s.result.Record, s.size = r, size
	}
	if s.progress != nil {
		s.progress(&s.result)
	}
	return fails
}

// edit tries a change of a copy of the best program.
func (s *search) edit(change func(p *program.Program)) bool {
	if s.over() {
		return false
	}
	p := s.best().Clone()
	change(p)
	return s.try(p)
}

// pass is a family of edits; it reports whether one was taken.
type pass func(s *search) bool

// cheap and dear are the passes over a program: the first take few runs and
// remove much.
var (
	cheap = []pass{(*search).forwardOnly, (*search).dropDead, (*search).dropBackward, (*search).plainInputs, (*search).outOfPlace, (*search).dropArguments}
	dear  = []pass{(*search).cutCalls, (*search).focus, (*search).dropAxes, (*search).shrinkSizes, (*search).simplifyRanks, (*search).simplifyArguments, (*search).simplifyValues}
)

// passes runs the passes to a fixpoint, the cheap ones before each dear one. It
// reports whether nothing can be made smaller.
func (s *search) passes() bool {
	for progress := true; progress; {
		progress = s.fixpoint(cheap)
		for _, p := range dear {
			if p(s) {
				progress = true
				s.fixpoint(cheap)
			}
		}
	}
	return !s.over()
}

// fixpoint repeats passes until none has an effect.
func (s *search) fixpoint(passes []pass) bool {
	taken := false
	for again := true; again; {
		again = false
		for _, p := range passes {
			if p(s) {
				again, taken = true, true
			}
		}
	}
	return taken
}
