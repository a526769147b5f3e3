package baseline

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"plumb/backend"
	"plumb/backend/recorded"
	"plumb/internal/judge/verdict"
	"plumb/program"
	"plumb/tensor"
)

// TruthMode says of which cases the truth is recorded: what the reference
// computes in float64, and how far it is off on inputs nearby.
type TruthMode string

// The truth modes: of none, of those in which what Truth.Predict computes
// is a matter of dispute, of these and of small ones that round, and of all
// that round. Each leaves out large cases.
const (
	NoTruth    TruthMode = "none"
	Contested  TruthMode = "contested"
	SmallTruth TruthMode = "small"
	AllTruth   TruthMode = "all"
)

// Truth says when the truth is recorded.
type Truth struct {
	Mode TruthMode // empty for NoTruth
	// Predict returns a backend whose outcomes may be in dispute.
	Predict func() backend.Backend
	// Arguable reports whether an oracle could change the verdict on an outcome of
	// that backend.
	Arguable func(job *backend.Job, ref, cand *backend.Outcome) bool
	// Rounds reports whether a program has operators whose results are rounded.
	Rounds func(p *program.Program) bool
}

// truthElements is how many elements, of inputs and results, a case has at most
// for its truth to be recorded, since the reference runs it 31 times.
const truthElements = 3 << 20

// smallElements is how many a small case has at most.
const smallElements = 512

// The JSON text of the truth of a variant: tensors by their place in the
// reference's outcome.
type (
	truthJSON struct {
		Truth map[string]*recorded.TensorRef `json:"truth"`
		// Inputs is how many nearby inputs Errors are the largest errors of.
		Inputs int                            `json:"inputs,omitempty"`
		Errors map[string]*recorded.TensorRef `json:"errors,omitempty"`
		Near   []nearJSON                     `json:"near,omitempty"` // in the place of Errors
	}
	nearJSON struct {
		Reference map[string]*recorded.TensorRef `json:"reference"`
		Truth     map[string]*recorded.TensorRef `json:"truth"`
	}
)

// question is a variant whose truth is wanted. It has tensors of its own: those
// of the batch are where the reference works on the answers.
type question struct {
	of, variant int // the case in the shard, and its variant
	job         *backend.Job
	ref         map[string]*tensor.Tensor // what the reference computed, by place
	initial     map[string]backend.State
	standIn     *standIn  // what is asked in place of the variant; nil for itself
	calls       []int     // where its calls are in what stands in for it
	first       *question // about the variant that this one's outcome follows from
	answers     *answers  // nil until they are there, and when no other follows
}

// newQuestion returns the question about the variant that was added last.
func newQuestion(s *shardWriter, w *way) *question {
	q := &question{
		of: s.last, variant: len(s.text.Cases[s.last].Variants) - 1,
		job: &backend.Job{Program: w.job.Program, Reach: backend.Reach(w.job.Program, w.outcome)}, standIn: w.standIn, ref: tensorsOf(w.outcome), initial: map[string]backend.State{},
	}
	for _, t := range w.job.Inputs {
		q.job.Inputs = append(q.job.Inputs, copyOf(t))
	}
	for place, t := range q.ref {
		q.ref[place] = copyOf(t)
	}
	for name, state := range w.outcome.Initial {
		for _, n := range state {
			q.initial[name] = append(q.initial[name], backend.Named{Name: n.Name, Tensor: copyOf(n.Tensor)})
		}
	}
	return q
}

// copyOf is a tensor with the strides of t and memory of its own.
func copyOf(t *tensor.Tensor) *tensor.Tensor {
	if t == nil {
		return nil
	}
	own := tensor.NewStrided(t.DType(), t.Shape(), t.Strides())
	own.CopyFrom(t)
	return own
}

func (q *question) bytes() int64 {
	n := int64(0)
	for _, t := range q.job.Inputs {
		n += int64(t.Len() * t.DType().Size())
	}
	return n
}

// An exchange asks askedCases questions about small cases, of askedBytes of
// inputs, or one.
const (
	askedCases = 16
	askedBytes = 64 << 10
)

// settle asks the reference for the truth where it is wanted in a batch, and
// stores it.
func (l *genLane) settle(ctx context.Context, s *shardWriter) error {
	wanted := l.wanted
	l.wanted = nil
	for _, group := range runsOf(wanted, askedCases, askedBytes, func(q **question) int64 { return (*q).bytes() }) {
		if err := l.answer(ctx, group); err != nil {
			return err
		}
		var last *question
		for _, q := range group {
			s.addTruth(q)
			if last = q; q.first != nil {
				last = q.first
			}
		}
		for _, q := range group {
			if q != last {
				q.answers = nil
			}
		}
	}
	return s.err
}

// answers is what the reference said to a question.
type answers struct {
	jobs     []*backend.Job
	outcomes []*backend.Outcome
}

// answer asks some questions.
func (l *genLane) answer(ctx context.Context, group []*question) error {
	var jobs []*backend.Job
	for _, q := range group {
		if q.answers = (&answers{jobs: q.questions()}); q.first == nil {
			jobs = append(jobs, q.answers.jobs...)
		}
	}
	outcomes, err := l.inParts(ctx, jobs)
	if err != nil {
		return err
	}
	for _, q := range group {
		a := q.answers
		switch {
		case q.first == nil:
			n := len(a.jobs)
			a.outcomes, outcomes = outcomes[:n], outcomes[n:]
			q.round()
		case !a.follow(q.first.answers):
			if a.outcomes, err = l.inParts(ctx, a.jobs); err != nil {
				return err
			}
			q.round()
		}
	}
	return nil
}

// questions are the jobs of the truth, narrow ones as the reference computes them.
func (q *question) questions() []*backend.Job {
	jobs := verdict.Questions(q.job, q.initial)
	if q.standIn != nil {
		for i := 1; i < len(jobs); i += 2 {
			jobs[i], q.calls = q.standIn.job(jobs[i])
		}
	}
	return jobs
}

// round gives the answers to narrow jobs the dtypes of the variant's results.
func (q *question) round() {
	if q.standIn == nil {
		return
	}
	for i := 1; i < len(q.answers.outcomes); i += 2 {
		if o := q.answers.outcomes[i]; o.Status == backend.OK {
			q.answers.outcomes[i] = cmp.Or(q.standIn.answer(o, q.calls), &backend.Outcome{Status: backend.Raised})
		}
	}
}

// inParts runs jobs, and lets go of their inputs: all of a large case would take
// hundreds of megabytes in each of host and reference.
func (l *genLane) inParts(ctx context.Context, jobs []*backend.Job) ([]*backend.Outcome, error) {
	var all []*backend.Outcome
	for _, part := range runsOf(jobs, len(jobs), batchBytes, func(j **backend.Job) int64 { return inputBytes((*j).Program) }) {
		outcomes, err := l.runBatch(ctx, part)
		if err != nil {
			return nil, err
		}
		all = append(all, outcomes...)
		for _, job := range part {
			job.Inputs, job.State = nil, nil
		}
	}
	return all, nil
}

// follow takes the answers about a variant in place from those about the first
// one; false where they do not follow.
func (a *answers) follow(first *answers) bool {
	if first == nil {
		return false
	}
	out := make([]*backend.Outcome, len(a.jobs))
	for i, o := range first.outcomes {
		if out[i] = inPlaceOf(a.jobs[i].Program, first.jobs[i].Program, o); out[i] == nil {
			return false
		}
	}
	a.outcomes = out
	return true
}

func (l *genLane) contested(ctx context.Context, w *way, predicted *backend.Outcome) (bool, error) {
	t := &l.Truth
	if t.Mode == "" || t.Mode == NoTruth || w.outcome.Status != backend.OK || !narrow(w.outcome) {
		return false, nil
	}
	n := Elements(w.job, w.outcome)
	switch all := t.Mode == AllTruth || t.Mode == SmallTruth && n <= smallElements; {
	case n > truthElements:
		return false, nil
	case all && t.Rounds(w.Program):
		return true, nil
	}
	if predicted == nil {
		var err error
		if predicted, err = l.judged.Run(ctx, &backend.Job{Program: w.job.Program, Inputs: w.job.Inputs, State: w.outcome.Initial}); err != nil {
			return false, err
		}
	}
	return t.Arguable(w.job, w.outcome, predicted), nil
}

// narrow reports whether an outcome has results that the widened program has in
// a wider dtype.
func narrow(o *backend.Outcome) bool {
	for _, t := range tensorsOf(o) {
		if program.Wide(t.DType()) != t.DType() {
			return true
		}
	}
	return false
}

// addTruth stores the truth of a variant.
func (s *shardWriter) addTruth(q *question) {
	a := q.answers
	if len(a.outcomes) != len(a.jobs) || a.outcomes[0] == nil || a.outcomes[0].Status != backend.OK {
		return
	}
	k := newCondenser(q.ref, a.outcomes)
	if len(k.truth) == 0 {
		return
	}
	t := &truthJSON{Truth: s.places(k.truth, k.wide)}
	errors, wavers := k.errors()
	if wavers {
		for i := 1; i+1 < len(a.outcomes); i += 2 {
			t.Near = append(t.Near, nearJSON{s.places(k.of(a.outcomes[i]), k.ref), s.places(k.of(a.outcomes[i+1]), k.wide)})
		}
	} else {
		t.Inputs, t.Errors = len(a.outcomes)/2, s.places(errors, nil)
	}
	s.text.Cases[q.of].Variants[q.variant].Truth = t
}

// places stores tensors by place; like are those that they resemble.
func (s *shardWriter) places(ts, like map[string]*tensor.Tensor) map[string]*recorded.TensorRef {
	c := &caseCoder{s.coder, nil, like}
	out := make(map[string]*recorded.TensorRef, len(ts))
	for _, place := range sorted(ts) {
		out[place] = c.tensor(place, ts[place].Contiguous())
	}
	return out
}

// refs calls f for all references to tensors.
func (t *truthJSON) refs(f func(*recorded.TensorRef) (*tensor.Tensor, error)) {
	all := []map[string]*recorded.TensorRef{t.Truth, t.Errors}
	for i := range t.Near {
		all = append(all, t.Near[i].Reference, t.Near[i].Truth)
	}
	for _, refs := range all {
		for _, ref := range refs {
			_, _ = f(ref)
		}
	}
}

// oracle returns the recorded oracle of a variant; nil where it has none.
func (t *truthJSON) oracle(job *backend.Job, ref *backend.Outcome, stored blobs) (*verdict.Oracle, error) {
	if t == nil {
		return nil, nil
	}
	if len(t.Near) > verdict.NearInputs || t.Inputs < 0 || t.Inputs > verdict.NearInputs {
		return nil, fmt.Errorf("the truth is said to be of %d nearby inputs", max(len(t.Near), t.Inputs))
	}
	r := &truthReader{job: job, ref: ref, own: tensorsOf(ref), stored: stored, room: ResultBytes(ref) * 16 * int64(3+2*len(t.Near))}
	wide := map[string]*tensor.Tensor{}
	for place, own := range r.own {
		wide[place] = own.Convert(program.Wide(own.DType())).Contiguous()
	}
	o := &verdict.Oracle{Reference: ref, Inputs: t.Inputs}
	o.Truth = r.outcome(t.Truth, wide)
	if t.Errors != nil {
		o.Errors = r.outcome(t.Errors, nil)
	}
	for i := range t.Near {
		o.Near = append(o.Near, verdict.Nearby{Reference: r.outcome(t.Near[i].Reference, r.own), Truth: r.outcome(t.Near[i].Truth, wide)})
	}
	return o, r.err
}

// truthReader reads the tensors of a truth into outcomes of the reference's
// structure.
type truthReader struct {
	job    *backend.Job
	ref    *backend.Outcome
	own    map[string]*tensor.Tensor
	stored blobs
	room   int64 // bytes
	err    error
}

func (r *truthReader) outcome(refs map[string]*recorded.TensorRef, like map[string]*tensor.Tensor) *backend.Outcome {
	if r.err != nil {
		return nil
	}
	d := newDecoder(r.job, r.stored, func() (map[string]*tensor.Tensor, error) { return like, nil })
	d.room = r.room
	s, err := recorded.Describe(r.ref, func(place string, _ *tensor.Tensor) *recorded.TensorRef {
		return &recorded.TensorRef{Stored: place}
	})
	if err != nil {
		r.err = err
		return nil
	}
	o, err := s.Outcome(len(r.job.Program.Calls), func(at *recorded.TensorRef) (*tensor.Tensor, error) {
		ref := refs[at.Stored]
		if ref == nil {
			return nil, nil
		}
		t, err := d.tensor(ref)
		if err == nil && t.Len() != r.own[at.Stored].Len() {
			err = fmt.Errorf("it has %d elements, the result %d", t.Len(), r.own[at.Stored].Len())
		}
		if err != nil {
			return nil, fmt.Errorf("the truth of result %s: %w", at.Stored, err)
		}
		return t, nil
	})
	r.room, r.err = d.room, err
	return o
}

func sorted(ts map[string]*tensor.Tensor) []string { return slices.Sorted(maps.Keys(ts)) }
