package campaign

import (
	"cmp"
	"context"
	"slices"

	"plumb/backend"
	"plumb/internal/find/shrink"
	"plumb/internal/judge"
	"plumb/internal/judge/verdict"
)

// mode is a way in which a candidate runs programs.
type mode struct {
	name string
	backend.Backend
}

// subject is a candidate in its modes: its own, and those in which tests that
// check graphs are judged too.
type subject []mode

func subjectOf(b backend.Backend) (subject, error) {
	info := b.Info()
	s := subject{{info.Own(), b}}
	modal, ok := b.(backend.Modal)
	if !ok {
		return s, nil
	}
	for _, name := range info.GraphModes() {
		in, err := modal.In(name)
		if err != nil {
			return s, err
		}
		s = append(s, mode{name, in})
	}
	return s, nil
}

// trial is what one mode did with a case.
type trial struct {
	mode    string
	info    *backend.Info // of the candidate in the mode
	outcome *backend.Outcome
	verdict *verdict.Verdict
}

// try runs jobs of a test on a candidate, in its graph modes too, and judges what each did.
func (l *lane) try(ctx context.Context, p *pool, test *Test, jobs []*backend.Job, refs []*backend.Outcome) ([][]trial, error) {
	all := make([][]trial, len(jobs))
	by := cmp.Or(test.Judge, l.cfg.Judge)
	for k, m := range p.modes(test.Graph) {
		for from, to := 0, 0; from < len(jobs); from = to {
			to = from + exchange(refs[from:])
			outcomes, err := p.run(ctx, k, jobs[from:to])
			if err != nil {
				return nil, err
			}
			for i, o := range outcomes {
				at := from + i
				t := trial{mode: m.name, info: &m.info, outcome: o}
				if err := l.judgeTrial(ctx, by, jobs[at], refs[at], &t, all[at]); err != nil {
					return nil, err
				}
				if t.verdict.Word.IsFinding() && (m.together() || o.Beside) {
					job := *jobs[at]
					job.Alone = o.Beside
					if t.outcome, err = p.one(ctx, k, &job); err != nil {
						return nil, err
					}
					if err := l.judgeTrial(ctx, by, jobs[at], refs[at], &t, nil); err != nil {
						return nil, err
					}
				}
				if t.verdict.Word == verdict.Aligned && o.Size() > exchangeBytes {
					t.outcome = o.Bare()
				}
				outcomes[i], all[at] = nil, append(all[at], t)
			}
		}
	}
	return all, nil
}

// exchangeBytes is what the results of one exchange with a candidate may take,
// if they are as large as the reference's, where it is of more than one case.
// Larger ones that are aligned go before the next mode runs.
const exchangeBytes = 32 << 20

// exchange returns how many of the first cases are in one exchange.
func exchange(refs []*backend.Outcome) int {
	bytes := 0
	for n, o := range refs {
		if bytes += o.Size(); n > 0 && bytes > exchangeBytes {
			return n
		}
	}
	return len(refs)
}

// judgeTrial gives a trial its verdict: an earlier one's where the outcomes are
// alike to the last bit, and its outcome too, so that one is held for all modes
// that agree. A subject that blames itself though its results are within their
// limits is condemned.
func (l *lane) judgeTrial(ctx context.Context, by *judge.Judge, job *backend.Job, ref *backend.Outcome, t *trial, earlier []trial) (err error) {
	for _, e := range earlier {
		if backend.Same(e.outcome, t.outcome) {
			t.outcome, t.verdict = e.outcome, e.verdict
			return nil
		}
	}
	if t.verdict, err = by.Judge(ctx, job, ref, t.outcome, l.ask); err != nil {
		return err
	}
	if t.outcome.Blame != "" && t.verdict.Word == verdict.Aligned {
		t.outcome = t.outcome.Condemned()
		if t.verdict, err = by.Judge(ctx, job, ref, t.outcome, l.ask); err != nil {
			return err
		}
	}
	t.verdict = by.Excused(t.verdict, job.Program, ref, t.outcome, *t.info)
	if t.outcome.Blame != "" && t.verdict.Word.IsFinding() {
		t.verdict.Blame = "pass " + t.outcome.Blame
	}
	return nil
}

// merge makes records of a case's trials, of which the first is that of the
// candidate's own mode: one for each way in which modes fail, or, where none
// does, the first one's, with the modes that agree with it.
func merge(trials []trial, of verdict.Record) []*verdict.Record {
	var records []*verdict.Record
	signatures := map[*verdict.Record]shrink.Signature{}
	for _, t := range trials {
		if !t.verdict.Word.IsFinding() {
			continue
		}
		r := of
		r.Verdict, r.Outcome = t.verdict, t.outcome
		s := shrink.SignatureOf(&r)
		at := slices.IndexFunc(records, func(o *verdict.Record) bool { return signatures[o] == s })
		if at < 0 {
			at = len(records)
			records = append(records, &r)
			signatures[&r] = s
		}
		records[at].Modes = append(records[at].Modes, t.mode)
	}
	for _, r := range records {
		blameTracing(r, trials[0].mode)
	}
	if records != nil {
		return records
	}
	return []*verdict.Record{agreeing(trials, of)}
}

// agreeing is the record of a case that fails in no mode.
func agreeing(trials []trial, of verdict.Record) *verdict.Record {
	r := of
	r.Verdict, r.Outcome = trials[0].verdict, trials[0].outcome
	for _, t := range trials {
		switch {
		case t.verdict.Word == r.Verdict.Word:
			r.Modes = append(r.Modes, t.mode)
		case t.verdict.Word == verdict.Unsupported && r.Uncaptured == "":
			r.Uncaptured = t.verdict.Reason
		}
	}
	return &r
}

// Plain is the mode of graphs that no pass has rewritten.
const Plain = "graph-plain"

// Tracing is what is to blame when a graph is wrong before any pass.
const Tracing = "tracing"

// blameTracing says that tracing is to blame for what fails in graphs, those
// without passes too, and not in the candidate's own mode.
func blameTracing(r *verdict.Record, own string) {
	if r.Verdict.Blame == "" && slices.Contains(r.Modes, Plain) && !slices.Contains(r.Modes, own) {
		v := *r.Verdict
		v.Blame = Tracing
		r.Verdict = &v
	}
}
