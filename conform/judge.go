package conform

import (
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
// truth. Where a large one differs by more than PyTorch's default tolerance, the
// config's own tolerance stands in for the analysis.
func withoutOracle(c *judge.Case, q *baseline.Question) *verdict.Verdict {
	c.Policy.CanAskReference = false
	if baseline.Elements(q.Job, q.Ref) <= analysed {
		return c.Verdict(nil)
	}
	c.Unbounded()
	v := c.Verdict(nil)
	if v.Word == verdict.Misaligned && v.Arguable() {
		c.Policy.RTol, c.Policy.ATol = &q.Entry.RTol, &q.Entry.ATol
		v = c.Verdict(nil)
	}
	return v
}

// near is which part of a limit an error has to be for another candidate's to
// come near the limit, so that the truth is asked for.
const near = 0.25

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
			return v.Arguable() || v.Worst >= near || v.OracleMightChange && c.Verdict(nil).Arguable()
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
func Predictor() backend.Backend { return native.New(ops.Table(), nn.Modules()).TakingInt32() }

// Contracts reports whether a program calls a contraction, whose results are
// not predicted.
func Contracts(p *program.Program) bool {
	return slices.ContainsFunc(p.Calls, func(c program.Call) bool {
		return slices.ContainsFunc(ops.Table().Lookup(c.Target), func(d *op.Def) bool { return d.Traits.Has(op.Contraction) })
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
