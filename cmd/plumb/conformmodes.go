package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"plumb/backend"
	"plumb/conform"
	"plumb/conform/baseline"
	"plumb/program"
	"plumb/tensor"
	"plumb/verdict"
)

// conformModes change which cases a conformance run has, how the candidate
// computes them, and what is told about them.
type conformModes struct {
	without    []string
	nhwc       bool
	minDim     int
	fourBytes  bool
	models     modelFlags
	deviceFile string
	compat     string
	debug      int
	forward    bool

	modes  conform.Modes
	seed   uint64
	cases  map[string]*conform.Case // of the recorded config
	loaded []*conform.Model
}

func (m *conformModes) add(fl *pflag.FlagSet) {
	fl.StringSliceVar(&m.without, "filter-dtype", nil, "leave out cases with an argument of these dtypes, such as float64,int64")
	fl.BoolVar(&m.nhwc, "nhwc", false, "give image arguments a channels-last layout: "+strings.Join(conform.ChannelsLastFunctions(), " "))
	fl.IntVar(&m.minDim, "nhwc-min-dim", 0, "leave out images of fewer dimensions with --nhwc (default 3)")
	fl.BoolVar(&m.fourBytes, "four-bytes", false, "give index arguments int32 for int64: "+strings.Join(conform.Int32Functions(), " "))
	fl.BoolVar(&m.forward, "forward", false, "judge the forward pass alone: no gradient is asked for")
	m.models.add(fl)
	fl.StringVar(&m.deviceFile, "device-config", "", "a file of skip rules and tolerances of a device")
	fl.StringVar(&m.compat, "compat", "", `say what the original's looser comparison says too: "diopi"`)
	fl.IntVar(&m.debug, "failure-debug-level", 0, "of each failure print: 0 nothing more, 1 the case and sums, 2 tensors too")
}

// load reads what the flags name.
func (m *conformModes) load(base *baseline.Baseline, errs io.Writer) (err error) {
	switch {
	case m.compat != "" && m.compat != "diopi":
		return usage(fmt.Errorf("--compat %s: want diopi", m.compat))
	case m.debug < 0 || m.debug > 2:
		return usage(fmt.Errorf("--failure-debug-level %d: want 0, 1 or 2", m.debug))
	case m.minDim != 0 && !m.nhwc:
		return usage(fmt.Errorf("--nhwc-min-dim %d needs --nhwc", m.minDim))
	}
	m.seed = base.Manifest.Seed
	m.modes = conform.Modes{ChannelsLast: m.nhwc, MinDim: m.minDim, FourBytes: m.fourBytes}
	for _, d := range m.without {
		m.modes.Without = append(m.modes.Without, conform.DType(strings.TrimSuffix(d, "_")))
		if d == "bool" {
			m.modes.Without[len(m.modes.Without)-1] = "bool_"
		}
	}
	if m.loaded, m.modes.Model, err = m.models.load(); err != nil {
		return err
	}
	if m.deviceFile != "" {
		if err := m.device(errs); err != nil {
			return err
		}
	}
	return m.config(base)
}

func (m *conformModes) device(errs io.Writer) error {
	src, err := os.ReadFile(m.deviceFile)
	if err != nil {
		return usage(err)
	}
	if m.modes.Device, err = conform.LoadDevice(m.deviceFile, src); err != nil {
		return usage(err)
	}
	for _, w := range m.modes.Device.Warnings {
		fmt.Fprintln(errs, "warning:", w)
	}
	return nil
}

// config reads the config that the baseline was recorded from.
func (m *conformModes) config(base *baseline.Baseline) error {
	src, err := base.Config()
	if err != nil {
		return usage(err)
	}
	c, err := conform.Load(base.Manifest.Config.Name, src)
	if err != nil {
		return usage(err)
	}
	if err := m.modes.Check(c); err != nil {
		return usage(err)
	}
	m.cases = make(map[string]*conform.Case, len(base.Manifest.Cases))
	for one := range c.Cases() {
		m.cases[one.Name] = one
	}
	return nil
}

// changes says whether the candidate runs other programs than were recorded.
func (m *conformModes) changes() bool { return m.nhwc || m.fourBytes || m.forward }

// apply puts the modes into a run.
func (m *conformModes) apply(cfg *baseline.RunConfig) {
	pick, judge := cfg.Select, cfg.Judge
	cfg.Select = func(e *baseline.Entry) bool {
		return pick(e) && (m.cases[e.Name] == nil || m.modes.Takes(m.cases[e.Name]))
	}
	cfg.Skip = func(e *baseline.Entry) string {
		_, skip := m.under(e)
		return skip
	}
	if m.changes() {
		cfg.Change = m.change
		cfg.Predict = predictor
	}
	cfg.Judge = func(e *baseline.Entry, job *backend.Job, ref, cand *backend.Outcome) *verdict.Verdict {
		return m.judge(judge, e, job, ref, cand)
	}
	if m.compat != "" || m.debug > 0 {
		cfg.Note = m.note
	}
}

// under is the case under the modes; nil where the config has none of the name.
func (m *conformModes) under(e *baseline.Entry) (*conform.Case, string) {
	c := m.cases[e.Name]
	if c == nil {
		return nil, ""
	}
	return m.modes.Apply(c)
}

func (m *conformModes) change(e *baseline.Entry, variant string, p *program.Program) (*program.Program, error) {
	c, _ := m.under(e)
	if c == nil {
		return p, nil
	}
	variants, err := conformPrograms(c, m.seed)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(variants, func(v baseline.Variant) bool { return v.Name == variant })
	if i < 0 {
		return nil, fmt.Errorf("the config has no variant %q of this case now", variant)
	}
	changed := variants[i].Program
	if m.forward {
		changed = forwardOnly(changed)
	}
	if changed.ID() == p.ID() {
		return p, nil
	}
	return changed, nil
}

func forwardOnly(p *program.Program) *program.Program {
	p = p.Clone()
	p.Backward, p.Second = nil, program.Fill{}
	return p
}

type judgement func(e *baseline.Entry, job *backend.Job, ref, cand *backend.Outcome) *verdict.Verdict

// judge judges under the tolerances of a device config, and takes int32 for
// int64 where the four-bytes mode does.
func (m *conformModes) judge(judge judgement, e *baseline.Entry, job *backend.Job, ref, cand *backend.Outcome) *verdict.Verdict {
	c, _ := m.under(e)
	if c == nil {
		return judge(e, job, ref, cand)
	}
	if m.forward {
		job = &backend.Job{Program: forwardOnly(job.Program), Inputs: job.Inputs}
		ref = withoutGradients(ref)
	}
	if c.NarrowResults() {
		ref = narrowed(ref, cand)
	}
	atol, rtol := c.Tolerance()
	plainA, plainR := m.cases[e.Name].Tolerance()
	if atol != plainA || rtol != plainR {
		p := job.Program.Clone()
		p.ATol, p.RTol = &atol, &rtol
		job = &backend.Job{Program: p, Inputs: job.Inputs}
	}
	v := judge(e, job, ref, cand)
	if share := c.MismatchRatio(); share != m.cases[e.Name].MismatchRatio() && few(v, share) {
		v.Word = verdict.Known
		v.Reason = fmt.Sprintf("the device config lets %g of the elements differ; %s", share, v.Reason)
	}
	return v
}

// few says whether all that a verdict found wrong are elements over their
// limit, and no more than a share of them.
func few(v *verdict.Verdict, share float64) bool {
	return v.Word == verdict.Misaligned && len(v.Differences) > 0 && !slices.ContainsFunc(v.Differences, func(d verdict.Difference) bool {
		return d.Diff.Total == 0 || float64(d.Diff.Mismatches) > share*float64(d.Diff.Total)
	})
}

func withoutGradients(o *backend.Outcome) *backend.Outcome {
	out := *o
	out.Grads, out.ParamGrads, out.SecondGrads, out.SecondParamGrads = nil, nil, nil, nil
	return &out
}

// narrowed is the reference's outcome with int32 where it has int64 and the
// candidate has int32.
func narrowed(ref, cand *backend.Outcome) *backend.Outcome {
	out := *ref
	out.Values = slices.Clone(ref.Values)
	for i := range min(len(out.Values), len(cand.Values)) {
		out.Values[i] = narrowedValue(out.Values[i], cand.Values[i])
	}
	return &out
}

func narrowedValue(ref, cand backend.Value) backend.Value {
	if ref.Tensor != nil && cand.Tensor != nil && ref.Tensor.DType() == tensor.I64 && cand.Tensor.DType() == tensor.I32 {
		ref.Tensor = ref.Tensor.Convert(tensor.I32)
	}
	if len(ref.Tuple) == len(cand.Tuple) {
		ref.Tuple = slices.Clone(ref.Tuple)
		for i := range ref.Tuple {
			ref.Tuple[i] = narrowedValue(ref.Tuple[i], cand.Tuple[i])
		}
	}
	return ref
}

// note tells of a failure what --compat and --failure-debug-level ask for.
func (m *conformModes) note(r *baseline.Record, ref, cand *backend.Outcome) map[string]string {
	c, _ := m.under(r.Entry)
	switch r.Verdict.Word {
	case verdict.Aligned, verdict.Rejected, verdict.Unsupported:
		return nil
	}
	if c == nil || cand.Status != backend.OK {
		return nil
	}
	if m.forward {
		ref = withoutGradients(ref)
	}
	notes := map[string]string{}
	if m.compat != "" {
		notes["diopi"] = lenient(c, r.Program, ref, cand)
	}
	if m.debug > 0 {
		notes["debug"] = m.describe(c, r.Program, ref, cand)
	}
	return notes
}

// lenient is what DIOPI's comparison says of the outputs and gradients.
func lenient(c *conform.Case, p *program.Program, ref, cand *backend.Outcome) string {
	rule := c.Lenient()
	for _, o := range outputsOf(p, ref, cand) {
		if o.want == nil || o.got == nil {
			if o.want != o.got {
				return "fails: " + o.name + " is on one side only"
			}
			continue
		}
		if ok, why := rule.Accepts(o.want, o.got); !ok {
			return "fails: " + o.name + ": " + why
		}
	}
	return "passes"
}

// compared is a result that DIOPI compares: one of the function's, or a gradient.
type compared struct {
	name      string
	want, got *tensor.Tensor
}

func outputsOf(p *program.Program, ref, cand *backend.Outcome) []compared {
	var out []compared
	for i, c := range p.Calls {
		if strings.HasPrefix(c.Result, conform.Result) && i < len(ref.Values) && i < len(cand.Values) {
			out = appendOutputs(out, c.Result, ref.Values[i], cand.Values[i])
		}
	}
	for _, in := range p.Inputs {
		if ref.Grads[in.Name] != nil || cand.Grads[in.Name] != nil {
			out = append(out, compared{"gradient of " + in.Name, ref.Grads[in.Name], cand.Grads[in.Name]})
		}
	}
	return out
}

func appendOutputs(out []compared, name string, want, got backend.Value) []compared {
	if !want.IsTuple && !got.IsTuple {
		return append(out, compared{name, want.Tensor, got.Tensor})
	}
	for i := range max(len(want.Tuple), len(got.Tuple)) {
		var w, g backend.Value
		if i < len(want.Tuple) {
			w = want.Tuple[i]
		}
		if i < len(got.Tuple) {
			g = got.Tuple[i]
		}
		out = appendOutputs(out, fmt.Sprintf("%s[%d]", name, i), w, g)
	}
	return out
}

// describe is the text of a failure at the debug level.
func (m *conformModes) describe(c *conform.Case, p *program.Program, ref, cand *backend.Outcome) string {
	var b strings.Builder
	b.Write(c.AppendJSON([]byte("case        ")))
	b.WriteString("\n")
	for _, o := range outputsOf(p, ref, cand) {
		fmt.Fprintf(&b, "%s\n", o.name)
		for _, side := range []struct {
			name string
			t    *tensor.Tensor
		}{{"want", o.want}, {"got", o.got}} {
			fmt.Fprintf(&b, "  %-4s      %s\n", side.name, m.side(side.t))
		}
	}
	return b.String()
}

func (m *conformModes) side(t *tensor.Tensor) string {
	if t == nil {
		return "none"
	}
	var sum complex128
	for i := range t.Len() {
		sum += t.At(i)
	}
	text := fmt.Sprintf("%s %s, strides %v, sum %v", t.DType(), tensor.ShapeString(t.Shape()), t.Strides(), real(sum))
	if t.DType().IsComplex() {
		text = fmt.Sprintf("%s %s, strides %v, sum %v", t.DType(), tensor.ShapeString(t.Shape()), t.Strides(), sum)
	}
	if m.debug > 1 {
		text += "\n            " + strings.ReplaceAll(t.String(), "\n", "\n            ")
	}
	return text
}

// dtype is the dtype by which a case is counted: that of its first tensor.
func (m *conformModes) dtype(e *baseline.Entry) string {
	if c := m.cases[e.Name]; c != nil {
		return cmp.Or(c.DType(), "none")
	}
	return "none"
}

// calls are the functions of each model.
func (m *conformModes) calls() map[string][]string {
	out := map[string][]string{}
	for _, one := range m.loaded {
		out[one.Name] = one.Functions
	}
	return out
}

// warnUnused tells of rules of the device config that met no case.
func (m *conformModes) warnUnused(errs io.Writer) {
	if m.modes.Device == nil {
		return
	}
	for _, w := range m.modes.Device.Unused() {
		fmt.Fprintln(errs, "warning:", w)
	}
}
