package conform

import (
	"context"
	"fmt"
	"slices"

	"plumb/backend"
	"plumb/internal/conform/baseline"
	"plumb/internal/judge"
	"plumb/internal/judge/verdict"
	"plumb/op"
	"plumb/ops"
	"plumb/program"
	"plumb/tensor"
)

// mostCut is how many elements of a large case are judged by cases of their own.
const mostCut = 1024

// bounded judges a case that is too large for a rounding-error analysis, and of
// which some elements differ by more than the tolerance that stands in for it: what
// these depend on is cut out, and each is judged by its own analysis, and by its own
// result in float64 as Plumb's operators compute it: a reference may round to a half type
// between its steps. It returns the verdict of before where that cannot be done or finds
// an element beyond its bound.
func bounded(j *judge.Judge, c *judge.Case, q *baseline.Question, before *verdict.Verdict) *verdict.Verdict {
	over := overLimit(q, before)
	worst := before.Worst
	kept := *q.Cand
	if len(over) > 0 {
		worst = 0
		kept.Values = []backend.Value{{Tensor: q.Cand.Values[0].Tensor.Clone()}}
	}
	for _, at := range over {
		small := cutOut(q, at, analysed/len(over))
		if small == nil {
			return before
		}
		one := j.Case(small.Job, small.Ref, small.Cand)
		one.Policy.CanAskReference = false
		v := one.Verdict(nil)
		if v.Arguable() {
			v = one.Verdict(exactly(small))
		}
		if v.Word != verdict.Aligned {
			return before
		}
		worst = max(worst, v.Worst)
		kept.Values[0].Tensor.Set(at, q.Ref.Values[0].Tensor.At(at))
	}
	if len(over) == 0 {
		return before
	}
	c.Candidate = &kept
	v := c.Verdict(nil)
	c.Candidate = q.Cand
	v.Worst = max(v.Worst, worst)
	return v
}

// exactly is the oracle of a case whose truth is what Plumb's own operators compute in
// float64; nil where they do not, or begin with a state.
func exactly(q *baseline.Question) *verdict.Oracle {
	if len(q.Job.State) > 0 {
		return nil
	}
	job := &backend.Job{Program: program.Widen(q.Job.Program)}
	for _, t := range q.Job.Inputs {
		job.Inputs = append(job.Inputs, t.Convert(program.Wide(t.DType())))
	}
	truth, err := Predictor().Run(context.Background(), job)
	if err != nil || truth.Status != backend.OK {
		return nil
	}
	return &verdict.Oracle{Reference: q.Ref, Truth: truth}
}

// byTruth judges a case by its policy with the truth, rounded, in the reference's place. It
// returns the verdict of before where that finds something, too.
func byTruth(j *judge.Judge, c *judge.Case, q *baseline.Question, before *verdict.Verdict) *verdict.Verdict {
	if len(q.Ref.Unread) > 0 {
		return before // and judge it with all in memory
	}
	o := exactly(q)
	if o == nil {
		return before
	}
	own := q.Ref.Replaced(func(at backend.Place, path []int, t *tensor.Tensor) *tensor.Tensor {
		truth := o.Truth.Within(at, path)
		if truth == nil || !t.DType().IsDifferentiable() {
			return t
		}
		return truth.Convert(t.DType())
	})
	one := j.Case(q.Job, own, q.Cand)
	one.Policy = c.Policy
	one.Unbounded()
	if v := one.Verdict(nil); v.Word == verdict.Aligned {
		return v
	}
	return before
}

// overLimit are the elements of a result that are beyond their limit, where they
// are few and all that is wrong with a program of one call.
func overLimit(q *baseline.Question, v *verdict.Verdict) []int {
	p := q.Job.Program
	if len(p.Calls) != 1 || len(p.Backward) > 0 || len(v.Differences) != 1 || len(q.Ref.Unread) > 0 {
		return nil
	}
	d := &v.Differences[0]
	if d.Where.Part != backend.PartValue || d.Diff.Mismatches > mostCut {
		return nil
	}
	want, got := q.Ref.Values[0].Tensor, q.Cand.Values[0].Tensor
	if want == nil || got == nil {
		return nil
	}
	return d.Beyond(want, got)
}

// cutOut is the case of what an element of the result depends on: where ranks may
// split a dimension of the result they need no more of the arguments than this, as
// the operator's signatures of ranks say. It is nil where more than most elements are left.
func cutOut(q *baseline.Question, element, most int) *baseline.Question {
	inputs := slices.Clone(q.Job.Inputs)
	want, got := q.Ref.Values[0].Tensor, q.Cand.Values[0].Tensor
	at := element
	for d := len(want.Shape()) - 1; d >= 0; d-- {
		n := want.Shape()[d]
		index := at % n
		at /= n
		call := callOf(q.Job.Program, inputs)
		if call == nil {
			return nil
		}
		if narrowTo(call, inputs, d, index, n) {
			want, got = want.Narrow(d, index, 1, 1), got.Narrow(d, index, 1, 1)
		}
	}
	small := smaller(q, inputs, want.Clone(), got.Clone())
	call := callOf(q.Job.Program, inputs)
	if call == nil || baseline.Elements(small.Job, small.Ref) > most {
		return nil
	}
	if metas, err := call.Infer(); err != nil || len(metas) != 1 || !slices.Equal(metas[0].Shape, want.Shape()) {
		return nil
	}
	return small
}

// callOf is the one call of a program, on these inputs; nil where it is of no operator.
func callOf(p *program.Program, inputs []*tensor.Tensor) *op.Call {
	c := &p.Calls[0]
	args, kwargs, err := c.OpArgs(func(r program.Ref) (any, error) {
		if i := slices.IndexFunc(p.Inputs, func(in program.Input) bool { return in.Name == string(r) }); i >= 0 {
			return inputs[i], nil
		}
		return nil, fmt.Errorf("%s is no input", r)
	})
	if err != nil {
		return nil
	}
	call, err := program.Resolve(ops.Table(), c.Target, args, kwargs)
	if err != nil {
		return nil
	}
	return call
}

// narrowTo narrows the inputs to what an index of a dimension of size n of the result
// depends on, where a signature tells.
func narrowTo(call *op.Call, inputs []*tensor.Tensor, dim, index, n int) bool {
	shardings, err := call.Shardings()
	if err != nil || n == 1 {
		return false
	}
	values, names := call.Args.AllValues(), call.Args.ArgNames()
	for _, s := range shardings {
		if len(s.Results) != 1 || s.Results[0] != op.S(dim) || s.Partial() || s.Even || s.Own != nil || len(s.Sizes) > 0 {
			continue
		}
		narrowed, fits := slices.Clone(inputs), true
		for i, v := range values {
			axis, split := s.Args[names[i]].Axis()
			k := slices.IndexFunc(inputs, func(t *tensor.Tensor) bool { return op.Value(t) == v })
			switch {
			case k < 0 || split && (v.Shape()[axis] != n || narrowed[k] != inputs[k]):
				fits = false
			case split:
				narrowed[k] = inputs[k].Narrow(axis, index, 1, 1)
			}
		}
		once := func(t *tensor.Tensor) bool {
			uses := 0
			for _, v := range values {
				if op.Value(t) == v {
					uses++
				}
			}
			return uses <= 1
		}
		if fits && !slices.ContainsFunc(inputs, func(t *tensor.Tensor) bool { return !once(t) }) {
			copy(inputs, narrowed)
			return true
		}
	}
	return false
}

// smaller is a case over these inputs, with these results.
func smaller(q *baseline.Question, inputs []*tensor.Tensor, want, got *tensor.Tensor) *baseline.Question {
	p := q.Job.Program.Clone()
	job := &backend.Job{Program: p}
	for i, t := range inputs {
		t = t.Clone()
		p.Inputs[i].Shape, p.Inputs[i].Strides = t.Shape(), nil
		p.Inputs[i].Fill = program.Fill{Dist: program.Literal, Data: t}
		job.Inputs = append(job.Inputs, t)
	}
	outcome := func(o *backend.Outcome, t *tensor.Tensor) *backend.Outcome {
		own := *o
		own.Values = []backend.Value{{Tensor: t}}
		return &own
	}
	return &baseline.Question{Entry: q.Entry, Job: job, Ref: outcome(q.Ref, want), Cand: outcome(q.Cand, got)}
}
