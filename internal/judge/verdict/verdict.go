// Package verdict judges what two backends did with one program.
//
// # Rules
//
// Judge applies these rules in order:
//
//  1. A side that does not support the program makes it unsupported; a side
//     that crashed, timed out or ran out of memory gives its word to the
//     verdict. The reference is looked at first, and the reason says which
//     side it was.
//  2. The results of the calls that both sides finished are compared in
//     program order, each by the rules of package compare, with its structure
//     before (tuples and their lengths, modules, plain Python values by type)
//     and requires_grad after, and then what the call left in inputs and
//     earlier results that it changed on either side. The first call that
//     differs is the verdict's.
//  3. An exception on one side only is a misalignment. Exceptions on both
//     sides make the program rejected, unless rule 2 found a difference.
//  4. The modules' state after the last call, the gradients of the inputs and
//     those of the parameters, first of the first and then of the second order,
//     are compared, in this order, and then the parameters after the optimizer's
//     step, where the program asks for it and both sides made it.
//
// A program that asks for shapes only has no elements compared.
//
// A limit is the operator's own only where a difference cannot be inherited:
// see compare.LimitFor. Gradients and state have the default of their dtype.
package verdict

import (
	"slices"
	"strings"

	"plumb/backend"
	"plumb/internal/judge/compare"
	"plumb/op"
	"plumb/program"
	"plumb/tensor"
)

// Word is the judgement.
type Word string

// The words. Judge gives the first seven; Known, Fixed and Unstable are for
// those who compare a verdict with earlier ones, Skipped for those with a limit.
const (
	Aligned     Word = "aligned"
	Misaligned  Word = "misaligned"
	Rejected    Word = "rejected" // both sides raised
	Unsupported Word = "unsupported"
	Crash       Word = "crash"
	Timeout     Word = "timeout"
	OOM         Word = "oom"
	Fault       Word = "fault" // the harness failed, not the subject
	Known       Word = "known"
	Fixed       Word = "fixed"
	Unstable    Word = "unstable" // the reference disagrees with itself
	Skipped     Word = "skipped"  // larger than what may be taken
)

// Words lists every word.
var Words = []Word{Aligned, Misaligned, Rejected, Unsupported, Crash, Timeout, OOM, Fault, Known, Fixed, Unstable, Skipped}

// IsFinding reports whether the word speaks against the candidate.
func (w Word) IsFinding() bool {
	switch w {
	case Misaligned, Crash, Timeout, OOM, Fault:
		return true
	}
	return false
}

// Kind says what is misaligned: the part that was compared when its elements
// differ, otherwise the rule of package compare that is broken ("shape",
// "dtype", "structure", "layout"), or one of the kinds below.
type Kind string

// The kinds beyond parts and rules.
const (
	Exception    Kind = "exception"
	RequiresGrad Kind = "requires_grad"
	Crashes      Kind = "crash" // of faults that are known
)

// Where is the place of a comparison in a program.
type Where struct {
	Part backend.Part `json:"part"`
	// Call is the index of the call; the number of calls for what follows the
	// last one: state and gradients.
	Call   int    `json:"call"`
	Line   string `json:"line,omitempty"`   // the text of the call
	Target string `json:"target,omitempty"` // its public name; a module's call has the module's
	// Name is the result, the input, or module and tensor as in "m.weight".
	Name string `json:"name"`
	Path []int  `json:"path,omitempty"` // position within a tuple
	// Users are the lines of the calls that read the input or module.
	Users []string `json:"users,omitempty"`
}

// place returns the place of the outcomes' slots, which a value has not.
func (w *Where) place() backend.Place {
	owner, name, _ := strings.Cut(w.Name, ".")
	at := backend.Place{Part: w.Part, Owner: owner, Name: name}
	switch w.Part {
	case backend.PartParam:
		at.Part = backend.PartState
	case backend.PartChange:
		at.Call = w.Call
	}
	return at
}

// Difference is a comparison that failed.
type Difference struct {
	Where Where         `json:"where"`
	Kind  Kind          `json:"kind"`
	Limit compare.Limit `json:"limit"`
	Diff  compare.Diff  `json:"diff"`
	// Truth says where both sides stand to the oracle; nil when it was not asked.
	Truth *Truth `json:"truth,omitempty"`
	// Around are the elements around the worst one; of the first difference only.
	Around []compare.Sample `json:"around,omitempty"`
	// Map draws error ÷ limit over the last two dimensions around the worst
	// element; of the first difference only. See compare.HeatMap.
	Map []string `json:"map,omitempty"`
	// Explained says how the limit of the worst element came about.
	Explained string `json:"explained,omitempty"`

	exact *tensor.Tensor // the truth, as far as it is known; of the first difference only
}

// Beyond are the elements that are beyond the limit, none where another rule than
// that of the distance is broken.
func (d *Difference) Beyond(want, got *tensor.Tensor) []int {
	if d.Diff.Rule != compare.Distance {
		return nil
	}
	over := compare.Over(want, got, d.Limit)
	var all []int
	for i := range want.Len() {
		if over(i) {
			all = append(all, i)
		}
	}
	return all
}

// Margin says how near its limit one passed or failed comparison came.
type Margin struct {
	Part   backend.Part   `json:"part"`
	Call   int            `json:"call"`
	Name   string         `json:"name"`
	Target string         `json:"target,omitempty"`
	DType  string         `json:"dtype"`
	Class  op.Class       `json:"class,omitempty"`
	Ratio  compare.Number `json:"ratio"` // observed error ÷ limit
	// Why is set where Policy.Explain asks for it.
	Why *Why `json:"why,omitempty"`
}

// Side says how a backend's run ended.
type Side struct {
	Status  backend.Status `json:"status"`
	Class   string         `json:"class,omitempty"`
	Message string         `json:"message,omitempty"`
	// Call raised; the number of calls for the backward pass. It says nothing
	// with another status.
	Call int    `json:"call"`
	Line string `json:"line,omitempty"` // the text of the call that raised
}

// Verdict is one judgement with its reason.
type Verdict struct {
	Word   Word   `json:"word"`
	Kind   Kind   `json:"kind,omitempty"`
	Reason string `json:"reason,omitempty"` // one sentence
	Where  *Where `json:"where,omitempty"`  // of the first difference
	// OfReference says that the word is how the reference ended, whatever the
	// candidate did: it crashed, or does not support the program.
	OfReference bool `json:"of_reference,omitempty"`
	// Blame says what of a graph is wrong: "pass fuse", or "tracing" where the
	// graph is wrong without passes; "" where nothing is known.
	Blame string `json:"blame,omitempty"`
	// Vote says of a finding what all subjects hold; nil where there are too few.
	Vote *Vote `json:"vote,omitempty"`
	// Reference and Candidate are set when a side did not end well.
	Reference   *Side          `json:"reference,omitempty"`
	Candidate   *Side          `json:"candidate,omitempty"`
	Differences []Difference   `json:"differences,omitempty"` // in program order
	Compared    int            `json:"compared"`              // tensors and numbers
	Drawn       int            `json:"drawn,omitempty"`       // of these, the ones that depend on random draws
	Worst       compare.Number `json:"worst"`                 // the largest ratio of all comparisons
	WorstAt     *Margin        `json:"worst_at,omitempty"`
	Margins     []Margin       `json:"margins,omitempty"` // of every comparison, in order
	// ForwardOnly says that a side has no gradients, where the program asks for them:
	// they were not compared, nor requires_grad.
	ForwardOnly bool `json:"forward_only,omitempty"`
	// NoGradients says why, where a side has them for other programs.
	NoGradients string `json:"no_gradients,omitempty"`
	// Settled are the comparisons over their limit that the oracle decided in
	// the candidate's favour.
	Settled []Truth `json:"settled,omitempty"`
	// Inherited is where the sides first differ by more than a limit, when that
	// follows from differences within their limits before: the reference, given
	// what the candidate computed, agrees with it. See Path.
	Inherited *Where `json:"inherited,omitempty"`

	// Otherwise is what other limits, which were asked beside, say where they do not
	// say the same.
	Otherwise string `json:"otherwise,omitempty"`

	// Truths are the distances of both sides from the truth, of every
	// comparison, where the oracle was asked for all.
	Truths []Truth `json:"truths,omitempty"`
	// Suspect asks for an oracle: errors within the limit all lean to one side.
	Suspect bool `json:"suspect,omitempty"`
	// Wide is the first value that is far apart and passes by a bound that what came before has
	// widened; nil for none.
	Wide *Where `json:"-"`
	// OracleMightChange says that the verdict could be another one if the reference
	// could be asked: see Policy.CanAskReference.
	OracleMightChange bool `json:"-"`
}

// Rounding knows how the operators of one program compute. It is asked more
// than once, and remembers.
type Rounding interface {
	// Bounds returns how far rounding may move the results of calls and, where
	// asked, gradients.
	Bounds(gradients bool) *compare.Bounds
	// Outline tells what is certain of the bounds in less time: see
	// compare.Bound.Functions and Elementwise.
	Outline(gradients bool) *compare.Bounds
	// Call returns the bounds of a program of one call on literals.
	Call(p *program.Program) *compare.Bounds
	// Draws returns the calls of random operators by the program's calls. What
	// depends on them is not compared element by element.
	Draws() [][]backend.Draw
}

// Policy is what the judge goes by.
type Policy struct {
	// Tols returns the numerics of the operators that answer to a public name;
	// none when it is unknown. Nil knows no operator.
	Tols func(target string) []op.Tol
	// Table, where set, tells what shape a result has that depends on draws, and
	// which scalar function a call is. NoScalars leaves the functions' results
	// uncomputed.
	Table     *op.Table
	NoScalars bool
	// Rounding knows how the program's operators compute; nil has no bounds.
	Rounding Rounding
	// Recorded says that the reference cannot be asked what it makes of the candidate's
	// own operands.
	Recorded bool
	// CanAskReference says that the reference can be asked about differences.
	// Where it cannot, bounds that rest on how functions are written are not used.
	CanAskReference bool
	// Oracle decides about differences beyond their limit; nil leaves them.
	Oracle *Oracle
	// RTol and ATol, where set, replace the program's own.
	RTol, ATol *float64
	Given      string // who gave them, as reports say it; "" for the user
	// Default gives every comparison PyTorch's default tolerance.
	Default bool
	// NoExceptions counts an exception of one side only as a rejection.
	NoExceptions bool
	Compare      compare.Options
	// Reference is the reference's name and version, such as "torch 1.13.1";
	// Faults are what is known to be wrong with references.
	Reference string
	Faults    []KnownFault
	// SameException asks that what both sides raise has the same class.
	SameException bool
	// ReferencesException asks that it has the reference's own class, whatever
	// stands for that elsewhere.
	ReferencesException bool
	// IgnoreRequiresGrad is for sides that do not report it.
	IgnoreRequiresGrad bool
	// Explain asks of each comparison why its limit is what it is, also of those
	// that are equal.
	Explain bool
}

// Judge compares a candidate's outcome with the reference's by the rules of
// the package. It does not change them.
func Judge(p *program.Program, ref, cand *backend.Outcome, policy Policy) *Verdict {
	j := newJudge(p, ref, cand, policy)
	j.forward()
	if j.status(); j.v.Word != "" {
		return j.excused()
	}
	j.places = backend.Places(p, ref, cand)
	if j.calls(); j.aliased != "" {
		return j.conclude()
	}
	j.exceptions()
	if j.ref.Status == backend.OK && j.cand.Status == backend.OK {
		j.slots()
	}
	return j.conclude()
}

// shapes compares what two tensors are, not what is in them.
func (j *judge) shapes(w Where, want, got *tensor.Tensor) compare.Diff {
	d := compare.Metadata(want, got, j.policy.Compare)
	j.v.Compared++
	if !d.OK {
		j.v.Differences = append(j.v.Differences, Difference{Where: w, Kind: Kind(d.Rule), Diff: d})
	}
	return d
}

// signsZero reports whether the sign of a zero result is defined. That of a sum
// depends on the order of its terms, though not of one of two terms or of a
// product, whose limit is that of a sum; the parts of a complex function are
// computed by several formulas, which differ in it. Of what no operator of the
// table computes, such as a gradient, nothing is defined.
func signsZero(c op.Class, want *tensor.Tensor, tols []op.Tol) bool {
	if len(tols) == 0 || slices.ContainsFunc(tols, func(t op.Tol) bool { return t.AnyZero || t.Class == op.Accumulating }) {
		return false
	}
	return c == op.Exact || (c == op.Pointwise || c == op.Accumulating) && want != nil && !want.DType().IsComplex()
}

// limit returns the limit of one comparison. The rounding-error bounds of the
// program are asked for only where some bit differs and they matter.
func (j *judge) limit(w Where, want, got *tensor.Tensor, basis *compare.Basis) compare.Limit {
	if want != nil && got != nil && j.policy.Rounding != nil && !basis.Settled(nil) && (j.policy.Explain || !want.SameBits(got)) {
		outline := j.outlined(w, basis)
		if !basis.Settled(outline) && j.usable(outline) {
			serves := func(b *compare.Bound) bool { return b != nil && j.usable(b) && b.Holds(want) }
			b := j.ownBound(w, want, got, basis)
			if !serves(b) {
				b = pickBound(j.bounds(w), w)
			}
			if serves(b) {
				basis.Bound = b
			}
		}
	}
	return compare.LimitFor(*basis)
}

// outlined returns what is certain of the bound of a place; nil where nothing
// is, or would settle the limit.
func (j *judge) outlined(w Where, basis *compare.Basis) *compare.Bound {
	if j.policy.CanAskReference && !basis.Settled(&compare.Bound{Elementwise: true}) {
		return nil
	}
	return pickBound(j.among(w, j.policy.Rounding.Outline), w)
}

// usable reports whether a bound may limit anything: one that rests on how
// functions are written may where an oracle decides about what breaks it.
func (j *judge) usable(b *compare.Bound) bool {
	if b == nil || !b.Functions || j.policy.CanAskReference {
		return true
	}
	j.v.OracleMightChange = true
	return false
}

// bounds returns the rounding-error bounds among which that of a place is.
func (j *judge) bounds(w Where) *compare.Bounds {
	if j.policy.Rounding == nil {
		return nil
	}
	return j.among(w, j.policy.Rounding.Bounds)
}

// among asks for the bounds of a place's part; nil where that has none.
func (j *judge) among(w Where, ask func(gradients bool) *compare.Bounds) *compare.Bounds {
	gradient := w.Part.IsGradient()
	if w.Part != backend.PartValue && !gradient {
		return nil
	}
	return ask(gradient)
}

// pickBound returns the bound of a place; nil when there is none.
func pickBound(b *compare.Bounds, w Where) *compare.Bound {
	if b == nil {
		return nil
	}
	if w.Part != backend.PartValue {
		return b.Slots[w.place()]
	}
	if w.Call < len(b.Values) {
		return b.Values[w.Call].At(w.Path)
	}
	return nil
}

// differ notes a difference that is none of two tensors.
func (j *judge) differ(w Where, kind Kind, message string) {
	d := compare.Diff{Rule: compare.Rule(kind), Message: message}
	j.v.Differences = append(j.v.Differences, Difference{Where: w, Kind: kind, Diff: d})
}

// Exact returns the truth of a verdict's first difference as far as it is known;
// nil where it is not, and of others.
func (d *Difference) Exact() *tensor.Tensor { return d.exact }
