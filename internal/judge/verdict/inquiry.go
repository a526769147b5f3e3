package verdict

import (
	"slices"

	"plumb/backend"
	"plumb/internal/draw/choice"
	"plumb/internal/judge/compare"
	"plumb/program"
	"plumb/tensor"
)

// Questions returns the jobs whose outcomes, from the reference, make an
// oracle: the truth first, then narrow and wide ones in turn.
func Questions(job *backend.Job, initial map[string]backend.State) []*backend.Job {
	jobs := []*backend.Job{truthOf(job, initial)}
	for k := range uint64(NearInputs) {
		jobs = append(jobs, nearby(job, initial, k)...)
	}
	return jobs
}

func truthOf(job *backend.Job, initial map[string]backend.State) *backend.Job {
	return &backend.Job{Program: program.Widen(job.Program), Inputs: widenAll(job.Inputs), State: widenState(initial), Reach: job.Reach}
}

// nearby returns the k-th nearby job, narrow and wide.
func nearby(job *backend.Job, initial map[string]backend.State, k uint64) []*backend.Job {
	inputs := make([]*tensor.Tensor, len(job.Inputs))
	for i, t := range job.Inputs {
		inputs[i] = nudge(t, k)
	}
	state := map[string]backend.State{}
	for name, st := range initial {
		for _, n := range st {
			state[name] = append(state[name], backend.Named{Name: n.Name, Tensor: nudge(n.Tensor, k)})
		}
	}
	p := job.Program
	if k%2 == 1 {
		p = otherCotangents(p, k)
	}
	narrow := &backend.Job{Program: p, Inputs: inputs, State: state, Reach: job.Reach}
	return []*backend.Job{narrow, truthOf(narrow, state)}
}

// otherCotangents returns the program with other cotangents of the same size:
// constant ones can make the rounding errors of a gradient cancel.
func otherCotangents(p *program.Program, k uint64) *program.Program {
	q := *p
	q.Backward = nil
	for _, b := range p.Backward {
		f := &b.Cotangent
		if f.Dist == "" {
			f.Lo, f.Hi = 0.5, 1.5
		}
		f.Dist, f.Key = program.Uniform, choice.Derive(f.Key, k)
		q.Backward = append(q.Backward, b)
	}
	return &q
}

// OracleOf makes the oracle from the outcomes of Questions.
func OracleOf(ref *backend.Outcome, outcomes []*backend.Outcome) *Oracle {
	o := &Oracle{Reference: ref, Truth: outcomes[0]}
	for i := 1; i+1 < len(outcomes); i += 2 {
		o.Near = append(o.Near, Nearby{outcomes[i], outcomes[i+1]})
	}
	return o
}

// Inquiry makes the oracle that a verdict calls for, a few jobs at a time, and
// keeps of their outcomes what is in dispute: all results of all jobs take 45
// times what those of the case do.
type Inquiry struct {
	job      *backend.Job
	oracle   *Oracle
	suspect  bool    // the truth of every result is asked for
	distant  []Where // of which the errors alone matter
	infinite []Where // where a side has an infinity or NaN
	asked    uint64  // nearby inputs
}

// Inquire begins the inquiry into a verdict that is Arguable.
func Inquire(job *backend.Job, ref *backend.Outcome, v *Verdict) *Inquiry {
	q := &Inquiry{job: job, oracle: &Oracle{Reference: ref}, suspect: v.Suspect}
	for i := range v.Differences {
		switch d := &v.Differences[i]; d.Diff.Rule {
		case compare.Distance:
			q.distant = append(q.distant, d.Where)
		case compare.NonFinite:
			q.infinite = append(q.infinite, d.Where)
		}
	}
	q.oracle.Errors = pick(ref, q.distant, func(t *tensor.Tensor) *tensor.Tensor { return tensor.New(tensor.F64, t.Shape()...) })
	return q
}

// Jobs returns the next ones for the reference, whose results take about so many
// bytes, if a pair of nearby ones does; none at the end.
func (q *Inquiry) Jobs(bytes int) []*backend.Job {
	ref := q.oracle.Reference
	var jobs []*backend.Job
	if q.oracle.Truth == nil {
		jobs = append(jobs, truthOf(q.job, ref.Initial))
	}
	if len(q.distant)+len(q.infinite) == 0 {
		return jobs
	}
	for n := max(1, bytes/(3*ref.Size()+1)); n > 0 && q.asked < NearInputs; n-- {
		jobs = append(jobs, nearby(q.job, ref.Initial, q.asked)...)
		q.asked++
	}
	return jobs
}

// Answer takes the outcomes of the last Jobs.
func (q *Inquiry) Answer(outcomes []*backend.Outcome) {
	o := q.oracle
	if o.Truth == nil {
		if o.Truth = outcomes[0]; !q.suspect {
			o.Truth = pick(o.Truth, slices.Concat(q.distant, q.infinite), itself)
		}
		outcomes = outcomes[1:]
	}
	for pair := range slices.Chunk(outcomes, 2) {
		for _, w := range q.distant {
			if worst := At(o.Errors, w); worst != nil {
				addErrors(tensor.Data[float64](worst), At(pair[0], w), At(pair[1], w))
			}
		}
		if len(q.infinite) == 0 {
			o.Inputs++
			continue
		}
		o.Near = append(o.Near, Nearby{pick(pair[0], q.infinite, itself), pick(pair[1], q.infinite, itself)})
	}
}

// Oracle returns what was answered.
func (q *Inquiry) Oracle() *Oracle { return q.oracle }

// pick returns an outcome with what f makes of the tensors of some places alone.
func pick(o *backend.Outcome, list []Where, f func(*tensor.Tensor) *tensor.Tensor) *backend.Outcome {
	out := &backend.Outcome{Status: o.Status, Values: make([]backend.Value, len(o.Values))}
	for i := range list {
		w := &list[i]
		switch t := o.At(w.place()); {
		case w.Part != backend.PartValue && t != nil:
			out.Add(w.place(), f(t))
		case w.Part == backend.PartValue && w.Call < len(o.Values):
			out.Values[w.Call] = mapped(o.Values[w.Call], f)
		}
	}
	return out
}

func mapped(v backend.Value, f func(*tensor.Tensor) *tensor.Tensor) backend.Value {
	if v.Tensor != nil {
		v.Tensor = f(v.Tensor)
	}
	v.Tuple = slices.Clone(v.Tuple)
	for i := range v.Tuple {
		v.Tuple[i] = mapped(v.Tuple[i], f)
	}
	return v
}

func itself(t *tensor.Tensor) *tensor.Tensor { return t }

// addErrors takes the distances of a reference from the truth where they are the
// largest so far.
func addErrors(worst []float64, ref, truth *tensor.Tensor) {
	if ref == nil || truth == nil || ref.Len() != len(worst) || truth.Len() != len(worst) {
		return
	}
	for i := range worst {
		worst[i] = max(worst[i], Distance(ref.At(i), truth.At(i)))
	}
}
