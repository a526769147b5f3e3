package verdict

import (
	"strings"

	"plumb/backend"
	"plumb/program"
)

// Record is one judged case.
type Record struct {
	Test      string
	Index     int
	Candidate string
	Program   *program.Program
	Verdict   *Verdict
	Reference *backend.Outcome
	Outcome   *backend.Outcome // the candidate's
	// Function is the one by which the candidate computed a part of a program that it
	// does not run itself; Program is then the function's. Nil for others.
	Function *backend.Function
	// Modes are those in which the candidate has this verdict; its own comes
	// first where it is one of them.
	Modes []string
	// Uncaptured says why a graph mode does not support the case; "" where all do.
	Uncaptured string
}

// Mode names the modes in one text, such as "eager, graph".
func (r *Record) Mode() string { return strings.Join(r.Modes, ", ") }

// Baseline reports whether the reference's outcome can stand for it later: one
// that took an oracle to settle cannot, as a baseline has none.
func (r *Record) Baseline() bool {
	return len(r.Verdict.Settled) == 0 && r.Verdict.Inherited == nil && r.Verdict.Word != Rejected && r.Reference.Status == backend.OK
}

// End says how a test ended. Err is set when its file is wrong or when the
// reference rejected too many draws.
type End struct {
	Test     string
	Judged   int
	Rejected int
	Next     int // the index with which another round begins
	Err      error
	Weak     *Weak // what the sampled cases accept; nil for nothing
	// Rejects says that most draws were rejected, though the test does not say
	// that it is about rejections.
	Rejects bool
}

// Mostly reports whether more draws of the test were rejected than judged.
func (e *End) Mostly() bool { return e.Rejected > e.Judged }
