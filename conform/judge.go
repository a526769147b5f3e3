package conform

import (
	"context"
	"math"
	"slices"

	"plumb/backend"
	"plumb/backend/native"
	"plumb/internal/conform/baseline"
	"plumb/internal/conform/config"
	"plumb/internal/conform/diopi"
	"plumb/internal/judge"
	"plumb/internal/judge/verdict"
	"plumb/nn"
	"plumb/op"
	"plumb/ops"
	"plumb/program"
	"plumb/tensor"
)

// analysed is how many elements, of inputs and results, a case may have to be
// judged by a rounding-error analysis, which takes ten float64 numbers an element.
const analysed = 4 << 20

func judging(reference string) judge.Config {
	return judge.Config{
		Table: ops.Table(), Modules: nn.Modules(), Reference: reference, CanAskReference: true, Oracle: judge.OnMismatch,
	}
}

// withoutOracle judges a case of which the reference cannot be asked for the
// truth. Plumb's own operators are asked in its place where they come to what it did.
// Where a large one differs by more than PyTorch's default tolerance, the
// config's own tolerance stands in for the analysis, and elements beyond that are
// analysed alone; what is near it is held to that tolerance of what Plumb's operators
// compute in float64.
func withoutOracle(j *judge.Judge, c *judge.Case, q *baseline.Question) *verdict.Verdict {
	c.Policy.CanAskReference = false
	if baseline.Elements(q.Job, q.Ref) <= analysed {
		v := c.Verdict(nil)
		if v.Word == verdict.Misaligned && v.Arguable() && len(q.Ref.Unread) == 0 {
			v = byStandIn(j, c, q, v)
		}
		return v
	}
	c.Unbounded()
	v := c.Verdict(nil)
	if v.Word == verdict.Misaligned && v.Arguable() {
		c.Policy.RTol, c.Policy.ATol, c.Policy.Given = &q.Entry.RTol, &q.Entry.ATol, "of the config, in the place of an analysis of so many elements"
		if v = c.Verdict(nil); v.Word == verdict.Misaligned {
			v = bounded(j, c, q, v)
		}
		if v.Word == verdict.Misaligned && float64(v.Worst) <= plausible {
			v = byTruth(j, c, q, v)
		}
	}
	return v
}

// byStandIn judges a case by what Plumb's own operators say in float64 and on inputs nearby.
// It returns the verdict of before where they do not come to what the reference did.
func byStandIn(j *judge.Judge, c *judge.Case, q *baseline.Question, before *verdict.Verdict) *verdict.Verdict {
	ctx, own := context.Background(), Predictor()
	o, err := own.Run(ctx, &backend.Job{Program: q.Job.Program, Inputs: q.Job.Inputs, State: q.Ref.Initial})
	if err != nil {
		return before
	}
	same := j.Case(q.Job, q.Ref, o)
	same.Policy.CanAskReference = false
	if same.Verdict(nil).Word != verdict.Aligned {
		return before
	}
	inquiry := verdict.Inquire(q.Job, q.Ref, before)
	for jobs := inquiry.Jobs(askedBytes); jobs != nil; jobs = inquiry.Jobs(askedBytes) {
		outcomes, err := backend.RunEach(ctx, own, jobs)
		if err != nil {
			return before
		}
		inquiry.Answer(outcomes)
	}
	return c.Verdict(inquiry.Oracle())
}

// askedBytes is what the answers of a stand-in may take at a time.
const askedBytes = 32 << 20

// plausible is up to how many times the tolerance that stands in a reference may be off.
const plausible = 100

// near is which part of a limit an error has to be for another candidate's to
// come near the limit, so that the truth is asked for. Of many elements the largest
// error is no chance of a few draws: there it has to be more than nearOfMany, but
// for half types, where another candidate may round between its steps.
const (
	near       = 0.25
	nearOfMany = 0.5
	many       = 1 << 14
)

// nearLimit reports whether the largest share of its limit that an error of so
// many elements takes is near.
func nearLimit(worst float64, elements int, half bool) bool {
	if elements >= many && !half {
		return worst > nearOfMany
	}
	return worst >= near
}

func takesHalf(job *backend.Job) bool {
	return slices.ContainsFunc(job.Inputs, func(t *tensor.Tensor) bool { return t.DType() == tensor.F16 || t.DType() == tensor.BF16 })
}

// Truth returns of which cases a recording asks the reference for the truth.
func Truth(mode baseline.TruthMode) baseline.Truth {
	j := judge.New(judging(""))
	return baseline.Truth{
		Mode: mode, Predict: Predictor,
		Arguable: func(job *backend.Job, ref, cand *backend.Outcome) bool {
			c := j.Case(job, ref, cand)
			c.Policy.CanAskReference = false
			v := c.Verdict(nil)
			c.Policy.CanAskReference = true
			return v.Arguable() || nearLimit(float64(v.Worst), baseline.Elements(job, ref), takesHalf(job)) || v.OracleMightChange && c.Verdict(nil).Arguable()
		},
		Rounds: func(p *program.Program) bool {
			return slices.ContainsFunc(p.Calls, func(c program.Call) bool { return rounds(j.Tols(c.Target)) })
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
func Predictor() backend.Backend {
	return native.New(ops.Table(), nn.Modules()).TakingInt32().Trusting()
}

// productsPerByte is up to how many products a byte of the results may take for
// them to be predicted: more of them cost more time, at recording and at judging,
// than the byte would to be stored and read.
const productsPerByte = 64

// Costly reports whether the results of a program cost more to compute again than
// to store: those of contractions, which sum many products an element. With
// gradients there are three contractions of a size in the place of one.
func Costly(job *backend.Job, o *backend.Outcome) bool {
	p, products := job.Program, 0.0
	known := map[program.Ref]*tensor.Tensor{}
	for i, t := range job.Inputs {
		known[program.Ref(p.Inputs[i].Name)] = t
	}
	for i := range p.Calls {
		c := &p.Calls[i]
		made := o.Values[i].Tensor
		if known[program.Ref(c.Result)] = made; made != nil && contracts(c.Target) {
			products += productsOf(c, known, made)
		}
	}
	if len(p.Backward) > 0 {
		products *= 3
	}
	return products > productsPerByte*float64(baseline.ResultBytes(o))
}

func contracts(target string) bool {
	return slices.ContainsFunc(ops.Table().Lookup(target), func(d *op.Def) bool { return d.Traits.Has(op.Contraction) })
}

// productsOf estimates the products of a contraction from the elements of its two
// largest arguments and of its result: of b m×k and k×n matrices they are the root
// of bmk · bkn · bmn / b.
func productsOf(c *program.Call, known map[program.Ref]*tensor.Tensor, made *tensor.Tensor) float64 {
	var args []*tensor.Tensor
	see := func(r program.Ref) any {
		if t := known[r]; t != nil {
			args = append(args, t)
		}
		return r
	}
	for _, a := range c.Args {
		program.MapRefs(a, see)
	}
	for _, kw := range c.Kwargs {
		program.MapRefs(kw.Value, see)
	}
	slices.SortStableFunc(args, func(a, b *tensor.Tensor) int { return b.Len() - a.Len() })
	args = args[:min(len(args), 2)]
	products, batch := float64(made.Len()), max(len(made.Shape())-2, 0)
	for _, t := range args {
		products *= float64(t.Len())
		batch = min(batch, shared(t.Shape(), made.Shape()))
	}
	return math.Sqrt(products / float64(max(tensor.NumElements(made.Shape()[:batch]), 1)))
}

// shared is how many leading dimensions two shapes have in common.
func shared(a, b []int) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
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

// variants returns the programs of a case: the function, and where there are
// such its variants in place and with sparse arguments.
func variants(c *config.Case, seed uint64) ([]baseline.Variant, error) {
	p, err := diopi.Program(c, seed)
	if err != nil {
		return nil, err
	}
	all := []baseline.Variant{{Program: p}}
	for _, more := range []struct {
		name string
		of   func(*config.Case, uint64) (*program.Program, bool, error)
	}{{"inplace", diopi.InPlace}, {"csr", diopi.Sparse}} {
		switch p, ok, err := more.of(c, seed); {
		case err != nil:
			return nil, err
		case ok:
			all = append(all, baseline.Variant{Name: more.name, Program: p})
		}
	}
	return all, nil
}
