package baseline

import (
	"context"
	"testing"

	"plumb/backend"
	"plumb/internal/judge/verdict"
	"plumb/tensor"
)

// haunted computes wrongly, and says that something was left beside it, until it is asked
// for a process of its own; and there too where it is wrong.
type haunted struct {
	affine
	wrong bool
}

func (h haunted) Run(ctx context.Context, job *backend.Job) (*backend.Outcome, error) {
	if job.Alone && !h.wrong {
		return h.affine.Run(ctx, job)
	}
	out, err := affine{off: 1}.Run(ctx, job)
	out.Beside = !job.Alone
	return out, err
}

// TestFailsBeside: a case that fails beside what an earlier one has left running counts as
// it does in a process of its own.
func TestFailsBeside(t *testing.T) {
	dir := t.TempDir()
	_, err := Gen(context.Background(), GenConfig{
		Dir: dir, Plumb: "test", Config: "config.py", Source: []byte("{}"), Cases: affineCases(tensor.F32, tensor.F64), Jobs: 1, Memory: 64 << 20,
		Open: func() (backend.Backend, error) { return affine{}, nil },
	})
	must(t, err)
	b, err := Open(dir)
	must(t, err)
	for _, wrong := range []bool{false, true} {
		want, judged := verdict.Aligned, 0
		if wrong {
			want = verdict.Misaligned
		}
		must(t, b.Run(context.Background(), RunConfig{
			Candidate: "haunted", Open: func() (backend.Backend, error) { return haunted{wrong: wrong}, nil }, Jobs: 1, Memory: 64 << 20,
			Judge: func(q *Question) *verdict.Verdict {
				return verdict.Judge(q.Job.Program, q.Ref, q.Cand, verdict.Policy{})
			},
			OnRecord: func(r *Record) {
				if judged++; r.Verdict.Word != want || (r.Outcome != nil) != wrong {
					t.Errorf("wrong by itself %v: %s, outcome kept %v", wrong, r.Verdict.Word, r.Outcome != nil)
				}
			},
		}))
		if judged != 2 {
			t.Errorf("%d cases were judged", judged)
		}
	}
}
