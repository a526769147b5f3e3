package conform

import (
	"slices"
	"strings"

	"plumb/backend"
	"plumb/backend/native"
	"plumb/internal/campaign"
	"plumb/internal/conform/baseline"
	"plumb/internal/conform/config"
	"plumb/internal/conform/diopi"
	"plumb/internal/judge/compare"
	"plumb/internal/judge/reffaults"
	"plumb/internal/judge/verdict"
	"plumb/nn"
	"plumb/op"
	"plumb/ops"
	"plumb/program"
)

// analysed is how many elements, of inputs and results, a case may have to be
// judged by a rounding-error analysis, which takes ten float64 numbers an element.
const analysed = 4 << 20

// judge judges by the numerics classes of the operators, as plumb run does.
type judge struct {
	policy    verdict.Policy
	estimator *native.Backend
}

// newJudge returns the judge of outcomes of a reference, such as "torch 1.13.1".
func newJudge(reference string) *judge {
	policy := verdict.Policy{Tols: campaign.Tolerances(ops.Table()), Table: ops.Table(), Faults: reffaults.Faults, Reference: reference}
	return &judge{policy: policy, estimator: native.New(ops.Table(), nn.Modules())}
}

// dispute is what is judged once or more, of one job.
type dispute struct {
	*judge
	job       *backend.Job
	ref, cand *backend.Outcome
	estimator campaign.Estimator
}

func (j *judge) dispute(job *backend.Job, ref, cand *backend.Outcome) *dispute {
	return &dispute{j, job, ref, cand, &estimates{Backend: j.estimator}}
}

// alone judges without a reference that can be asked.
func (d *dispute) alone() *verdict.Verdict {
	return campaign.Judge(d.policy, d.estimator)(d.job, d.ref, d.cand, nil)
}

// asked judges with a reference that can be asked, and its answers, where it was.
func (d *dispute) asked(o *verdict.Oracle) *verdict.Verdict {
	policy := d.policy
	policy.Answers = true
	return campaign.Judge(policy, d.estimator)(d.job, d.ref, d.cand, o)
}

// estimates remembers what is known of the one job that it is asked about.
type estimates struct {
	*native.Backend
	bounds, outline [2]*compare.Bounds // of results, and of gradients too
}

func (e *estimates) Bounds(job *backend.Job, gradients bool) *compare.Bounds {
	return remember(&e.bounds, gradients, func() *compare.Bounds { return e.Backend.Bounds(job, gradients) })
}

func (e *estimates) Outline(job *backend.Job, gradients bool) *compare.Bounds {
	return remember(&e.outline, gradients, func() *compare.Bounds { return e.Backend.Outline(job, gradients) })
}

func remember(known *[2]*compare.Bounds, gradients bool, ask func() *compare.Bounds) *compare.Bounds {
	if known[1] == nil && gradients {
		known[1] = ask()
	}
	if known[1] != nil {
		return known[1]
	}
	if known[0] == nil {
		known[0] = ask()
	}
	return known[0]
}

// plain judges without a reference that could be asked for the truth. Where a
// large case differs by more than PyTorch's default tolerance, the config's own
// tolerance stands in for the analysis.
func (j *judge) plain(q *baseline.Question) *verdict.Verdict {
	if baseline.Elements(q.Job, q.Ref) <= analysed {
		return j.dispute(q.Job, q.Ref, q.Cand).alone()
	}
	policy := j.policy
	policy.Measure = q.Measure
	policy.Draws = func() [][]backend.Draw { return j.estimator.Draws(q.Job) }
	v := verdict.Judge(q.Job.Program, q.Ref, q.Cand, policy)
	if v.Word == verdict.Misaligned && v.Arguable() {
		policy.RTol, policy.ATol = &q.Entry.RTol, &q.Entry.ATol
		v = verdict.Judge(q.Job.Program, q.Ref, q.Cand, policy)
	}
	return v
}

// Truth returns of which cases a recording asks the reference for the truth.
func Truth(mode baseline.TruthMode) baseline.Truth {
	j := newJudge("")
	return baseline.Truth{
		Mode: mode, Predict: Predictor,
		Arguable: func(job *backend.Job, ref, cand *backend.Outcome) bool {
			d := j.dispute(job, ref, cand)
			v := d.alone()
			return v.Arguable() || v.Answerable && d.asked(nil).Arguable()
		},
		Rounds: func(p *program.Program) bool {
			return slices.ContainsFunc(p.Calls, func(c program.Call) bool { return rounds(j.policy.Tols(c.Target)) })
		},
	}
}

// rounds reports whether results of an operator are not exact: those of one
// that is not known may not be.
func rounds(tols []op.Tol) bool {
	return len(tols) == 0 || slices.ContainsFunc(tols, func(t op.Tol) bool { return t.Class != op.Exact })
}

// Predictor returns the backend from whose results those of the reference are
// told apart in a baseline: Plumb's own operators.
func Predictor() backend.Backend { return native.New(ops.Table(), nn.Modules()) }

// contractions are the functions that do many operations for each byte of their
// results: computing them again costs more than storing them.
var contractions = []string{
	"conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d",
	"matmul", "bmm", "mm", "addmm", "baddbmm", "linear", "cdist", "cholesky_ex", "qr",
}

// Contracts reports whether a program calls a contraction, whose results are
// not predicted.
func Contracts(p *program.Program) bool {
	return slices.ContainsFunc(p.Calls, func(c program.Call) bool {
		return slices.Contains(contractions, c.Target[strings.LastIndexByte(c.Target, '.')+1:])
	})
}

// Recordable returns the cases of a config, as far as pick takes their
// functions, to record with inputs of the seed.
func Recordable(c *config.Config, seed uint64, pick func(function string) bool) []baseline.Case {
	var list []baseline.Case
	for one := range c.Cases() {
		if !pick(one.Function) {
			continue
		}
		atol, rtol := one.Tolerance()
		list = append(list, baseline.Case{
			Name: one.Name, Function: one.Function, ATol: atol, RTol: rtol,
			Programs: func() ([]baseline.Variant, error) { return variants(one, seed) },
		})
	}
	return list
}

// variants returns the programs of a case: the function, and where there is
// one its variant in place.
func variants(c *config.Case, seed uint64) ([]baseline.Variant, error) {
	p, err := diopi.Program(c, seed)
	if err != nil {
		return nil, err
	}
	all := []baseline.Variant{{Program: p}}
	switch p, ok, err := diopi.InPlace(c, seed); {
	case err != nil:
		return nil, err
	case ok:
		all = append(all, baseline.Variant{Name: "inplace", Program: p})
	}
	return all, nil
}
