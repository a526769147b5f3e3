package conform

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"plumb/backend"
	"plumb/internal/conform/baseline"
	"plumb/internal/conform/config"
	"plumb/internal/conform/diopi"
	"plumb/internal/judge"
	"plumb/internal/judge/verdict"
	"plumb/program"
	"plumb/tensor"
)

// Kit is how a candidate is held to a baseline: which cases it has, what it is
// asked to run, how its outcomes are judged and what is told about them. Plumb
// conform run and [Run] judge by it alike.
type Kit struct {
	Modes   Modes
	Forward bool // no gradient is asked for
	Limits  Limits
	Lenient bool // note what DIOPI's comparison says of failures, as "diopi"
	Debug   int  // note of failures, as "debug": 0 nothing, 1 the case and sums, 2 tensors too
	// Library says that the candidate is a library with DIOPI's interface. What is one
	// function there and a composition here is asked for as that function.
	Library bool

	base  *baseline.Baseline
	cases map[string]*config.Case // of the recorded config, by name
	judge *judge.Judge
}

// NewKit returns the kit of a baseline under modes. The error says why the
// recorded config cannot be read; the kit judges without it, but has no modes.
func NewKit(base *baseline.Baseline, modes Modes) (*Kit, error) {
	k := &Kit{Modes: modes, base: base}
	src, err := base.Config()
	if err != nil {
		return k, err
	}
	c, err := config.Load(base.Manifest.Config.Name, src)
	if err != nil {
		return k, err
	}
	k.cases = make(map[string]*config.Case, len(base.Manifest.Cases))
	for one := range c.Cases() {
		k.cases[one.Name] = one
	}
	return k, modes.Check(c)
}

// Case returns the case of the recorded config; nil where it has none.
func (k *Kit) Case(e *baseline.Entry) *config.Case { return k.cases[e.Name] }

// Apply configures cfg to judge with the kit. It narrows the selection that cfg
// has.
func (k *Kit) Apply(cfg *baseline.RunConfig) {
	k.judge = k.Limits.newJudge(k.base.Manifest.Reference.Name + " " + k.base.Manifest.Reference.Version)
	pick := cfg.Select
	cfg.Select = func(e *baseline.Entry) bool {
		return (pick == nil || pick(e)) && (k.cases[e.Name] == nil || k.Modes.Takes(k.cases[e.Name]))
	}
	cfg.Skip = func(e *baseline.Entry) string {
		_, skip := k.under(e)
		return skip
	}
	if k.Library {
		cfg.AsOne = k.asOne
	}
	if k.Modes.ChannelsLast || k.Modes.FourBytes || k.Forward {
		cfg.Change = k.change
		cfg.Predict = Predictor
	} else {
		cfg.Read = analysed
	}
	cfg.Judge = k.Judge
	cfg.Apart, cfg.Backward = !k.Forward, k.backward
	if k.Lenient || k.Debug > 0 {
		cfg.Note = k.note
	}
}

// under is the case under the modes; nil where the config has none of the name.
func (k *Kit) under(e *baseline.Entry) (*config.Case, string) {
	c := k.cases[e.Name]
	if c == nil {
		return nil, ""
	}
	return k.Modes.Apply(c)
}

// asOne is how a library is asked for a case that is one function of its interface.
func (k *Kit) asOne(e *baseline.Entry, variant string) baseline.Asking {
	c, _ := k.under(e)
	switch {
	case c == nil || !diopi.One(c):
		return nil
	case variant == "csr":
		return func(*baseline.Entry, *program.Program, *backend.Outcome) (*backend.Function, *backend.Outcome, error) {
			return nil, nil, errors.New("the case itself has its matrices in this layout")
		}
	case variant != "":
		return func(*baseline.Entry, *program.Program, *backend.Outcome) (*backend.Function, *backend.Outcome, error) {
			return nil, nil, fmt.Errorf("the interface has no %s form of this function", variant)
		}
	}
	return func(e *baseline.Entry, p *program.Program, ref *backend.Outcome) (*backend.Function, *backend.Outcome, error) {
		if k.Forward {
			p = forwardOnly(p)
		}
		if own, by := k.narrow(c, e, p, ref); own != nil {
			p, ref = own, by
		}
		f, err := OneFunction(c, k.base.Manifest.Seed, p, ref)
		return f, ref, err
	}
}

// narrow is the composition of a case with its numbers in float32, as the interface's
// function takes them, and what it comes to by Plumb's own operators; nil where that is
// no other, or where these do not come to what was recorded of the composition itself.
func (k *Kit) narrow(c *config.Case, e *baseline.Entry, p *program.Program, ref *backend.Outcome) (*program.Program, *backend.Outcome) {
	own, err := diopi.Narrow(c, k.base.Manifest.Seed)
	if err != nil || own == nil {
		return nil, nil
	}
	own.Backward = p.Backward // cotangents are those of the recording
	job := backend.NewJob(p)
	plain, err := Predictor().Run(context.Background(), job)
	if err != nil || plain.Status != backend.OK || k.Judge(&baseline.Question{Entry: e, Job: job, Ref: ref, Cand: plain}).Word != verdict.Aligned {
		return nil, nil
	}
	by, err := Predictor().Run(context.Background(), backend.NewJob(own))
	if err != nil || by.Status != backend.OK {
		return nil, nil
	}
	return own, by
}

// OneFunction is the case of a function of DIOPI's interface, of which p is the
// composition and ref its outcome, as a call of that function.
func OneFunction(c *config.Case, seed uint64, p *program.Program, ref *backend.Outcome) (*backend.Function, error) {
	one, returns, err := diopi.AsOne(c, seed, p, func(r program.Ref) *tensor.Tensor { return baseline.TensorOf(p, ref, r) })
	return &backend.Function{Program: one, Of: p, Returns: returns}, err
}

func (k *Kit) change(e *baseline.Entry, variant string, p *program.Program) (*program.Program, error) {
	c, _ := k.under(e)
	if c == nil {
		return p, nil
	}
	all, err := variants(c, k.base.Manifest.Seed)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(v baseline.Variant) bool { return v.Name == variant })
	if i < 0 {
		return nil, fmt.Errorf("the config has no variant %q of this case now", variant)
	}
	changed := all[i].Program.Clone()
	changed.Backward = p.Backward // cotangents are those of the recording
	if k.Forward {
		changed = forwardOnly(changed)
	}
	if changed.ID() == p.ID() {
		return p, nil
	}
	return changed, nil
}

// backward is the function that computes the gradients of a case.
func (k *Kit) backward(e *baseline.Entry, p *program.Program, ref *backend.Outcome) (*backend.Function, *backend.Outcome, error) {
	c, _ := k.under(e)
	if c == nil {
		return nil, nil, fmt.Errorf("the recorded config has no such case")
	}
	outputs, err := diopi.Outputs(p, func(call int) []*tensor.Tensor { return tensorsIn(ref.Values[call]) })
	if err != nil {
		return nil, nil, err
	}
	value := func(r program.Ref) *tensor.Tensor { return baseline.TensorOf(p, ref, r) }
	b, of, err := diopi.Backward(c, k.base.Manifest.Seed, p, value, outputs)
	return &backend.Function{Program: b, Of: p, Returns: of}, ref, err
}

func tensorsIn(v backend.Value) []*tensor.Tensor {
	if !v.IsTuple {
		return []*tensor.Tensor{v.Tensor}
	}
	var out []*tensor.Tensor
	for _, e := range v.Tuple {
		out = append(out, e.Tensor)
	}
	return out
}

func forwardOnly(p *program.Program) *program.Program {
	p = p.Clone()
	p.Backward, p.Second = nil, program.Fill{}
	return p
}

// Judge judges a candidate's outcome: under the tolerances of a device config,
// and with int32 for int64 where the four-bytes mode has it.
func (k *Kit) Judge(q *baseline.Question) *verdict.Verdict {
	c, _ := k.under(q.Entry)
	if c == nil {
		return k.settled(q)
	}
	under := *q
	if k.Forward {
		under.Job = &backend.Job{Program: forwardOnly(q.Job.Program), Inputs: q.Job.Inputs}
		under.Ref, under.Cand = q.Ref.Without(backend.Part.IsGradient), q.Cand.Without(backend.Part.IsGradient)
	}
	under.Ref = narrowed(c, q.Job.Program, under.Ref, q.Cand)
	atol, rtol := c.Tolerance()
	plainA, plainR := k.cases[q.Entry.Name].Tolerance()
	if atol != plainA || rtol != plainR {
		p := under.Job.Program.Clone()
		p.ATol, p.RTol = &atol, &rtol
		under.Job = &backend.Job{Program: p, Inputs: q.Job.Inputs}
	}
	v := k.decided(c, &under)
	if q.Own && v.Word.IsFinding() {
		v.Reason = "judged by what Plumb computes with the numbers in float32, as the interface takes them; " + v.Reason
	}
	if share := c.MismatchRatio(); share != k.cases[q.Entry.Name].MismatchRatio() && few(v, share) {
		v.Word = verdict.Known
		v.Reason = fmt.Sprintf("the device config lets %g of the elements differ; %s", share, v.Reason)
	}
	return v
}

// settled judges by the numerics classes, with what the reference said when it
// was asked for the truth: as a live one would be asked. A proved fault of the
// candidate is known.
func (k *Kit) settled(q *baseline.Question) *verdict.Verdict {
	return k.judge.Excused(k.byClass(q), q.Job.Program, q.Ref, q.Cand, q.Candidate)
}

func (k *Kit) byClass(q *baseline.Question) *verdict.Verdict {
	c := k.judge.Case(q.Job, q.Ref, q.Cand)
	c.Policy.Recorded = true
	if q.Truth == nil {
		return withoutOracle(k.judge, c, q)
	}
	v := c.Verdict(nil)
	if !v.Arguable() {
		return v
	}
	o, err := q.Truth()
	if err != nil {
		v.Reason += "; what the reference says in float64 cannot be read: " + err.Error()
		return v
	}
	return c.Verdict(o)
}

// few says whether all that a verdict found wrong are elements over their
// limit, and no more than a share of them.
func few(v *verdict.Verdict, share float64) bool {
	return v.Word == verdict.Misaligned && len(v.Differences) > 0 && !slices.ContainsFunc(v.Differences, func(d verdict.Difference) bool {
		return d.Diff.Total == 0 || float64(d.Diff.Mismatches) > share*float64(d.Diff.Total)
	})
}

// narrowed is the reference's outcome with int32 where it has int64 and the
// candidate has int32, in results of which the four-bytes mode takes that.
func narrowed(c *config.Case, p *program.Program, ref, cand *backend.Outcome) *backend.Outcome {
	out := *ref
	out.Values = slices.Clone(ref.Values)
	for i := range min(len(out.Values), len(cand.Values), len(p.Calls)) {
		if at, ok := diopi.Position(p.Calls[i].Result); ok {
			out.Values[i] = narrowedValue(c, at, out.Values[i], cand.Values[i])
		}
	}
	return &out
}

// narrowedValue is a result that is at a position, or a tuple of all of them.
func narrowedValue(c *config.Case, at int, ref, cand backend.Value) backend.Value {
	if ref.Tensor != nil && cand.Tensor != nil && c.NarrowResult(at) && ref.Tensor.DType() == tensor.I64 && cand.Tensor.DType() == tensor.I32 {
		ref.Tensor = ref.Tensor.Convert(tensor.I32)
	}
	if len(ref.Tuple) == len(cand.Tuple) {
		ref.Tuple = slices.Clone(ref.Tuple)
		for i := range ref.Tuple {
			ref.Tuple[i] = narrowedValue(c, i, ref.Tuple[i], cand.Tuple[i])
		}
	}
	return ref
}
