package baseline

import (
	"context"
	"strings"

	"plumb/backend"
	"plumb/internal/refusal"
	"plumb/program"
)

// PyTorch has no kernel of many functions for some dtypes, float16 most of all,
// and says so before it reads an element. Once it has said it of drawn inputs, a
// program of the same functions and dtypes is run on inputs that were not drawn:
// where it is refused in the very same words, the drawn ones would have been.

// refused is how a program was refused at its first call.
type refused struct{ class, message string }

func refusalOf(o *backend.Outcome) (refused, bool) {
	if o == nil || o.Status != backend.Raised || o.Call > 0 || !refusal.OfDType(o.Message) || len(tensorsOf(o)) > 0 {
		return refused{}, false
	}
	return refused{o.Class, o.Message}, true
}

// kind is what a program's functions and dtypes are.
func kind(p *program.Program) string {
	var b strings.Builder
	for i := range p.Calls {
		b.WriteString(p.Calls[i].Target + ";")
	}
	for i := range p.Inputs {
		b.WriteString(p.Inputs[i].DType.String() + ",")
	}
	return b.String()
}

// learn remembers what was refused.
func (l *genLane) learn(ways []*way) {
	for _, w := range ways {
		if r, ok := refusalOf(w.outcome); ok {
			if l.refusals == nil {
				l.refusals = map[string]refused{}
			}
			l.refusals[kind(w.Program)] = r
		}
	}
}

// probe sets the outcomes of the variants that are refused again, and returns
// the others.
func (l *genLane) probe(ctx context.Context, ways []*way) ([]*way, error) {
	sharer, ok := l.ref.(backend.Sharer)
	if !ok || len(l.refusals) == 0 {
		return ways, nil
	}
	var left, asked []*way
	var jobs []*backend.Job
	for _, w := range ways {
		if _, known := l.refusals[kind(w.Program)]; !known {
			left = append(left, w)
			continue
		}
		asked, jobs = append(asked, w), append(jobs, &backend.Job{Program: w.Program})
	}
	if len(asked) == 0 {
		return ways, nil
	}
	outcomes, err := sharer.RunUninitialized(ctx, jobs)
	if err != nil {
		return nil, err
	}
	for i, w := range asked {
		if r, ok := refusalOf(outcomes[i]); ok && r == l.refusals[kind(w.Program)] {
			w.job, w.outcome = &backend.Job{Program: w.Program}, outcomes[i]
		} else {
			left = append(left, w)
		}
	}
	return left, nil
}
