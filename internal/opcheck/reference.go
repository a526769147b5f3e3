package opcheck

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"plumb/backend"
	"plumb/backend/native"
	"plumb/internal/campaign"
	"plumb/internal/draw/choice"
	"plumb/internal/draw/opcase"
	"plumb/internal/judge"
	"plumb/internal/judge/verdict"
	"plumb/nn"
	"plumb/op"
	"plumb/program"
	"plumb/tensor"
)

// Tests are what an operator with public names is judged by beside a reference:
// legal calls in every dtype, by every name, with elements beyond what Sample
// draws, with arguments left out, at the edges of ranges, of no dimension and of
// no element, and calls that break a rule. Number is how many of each are drawn.
func Tests(table *op.Table, d *op.Def, dtypes []tensor.DType, seed uint64, number int) []campaign.Test {
	drawer := opcase.Drawer{Table: table, Def: d}
	var all []campaign.Test
	add := func(variant string, n int, fixed bool, draw func(src *choice.Source, i int) (*program.Program, error)) {
		name := fmt.Sprintf("%s[%s]", d.ID(), variant)
		t := campaign.Drawn(name, name, n, choice.Any(choice.DeriveName(seed, name)), func(src *choice.Source, i int, _ campaign.Observer) (*program.Program, error) {
			return draw(src, i)
		})
		t.Fixed = fixed
		all = append(all, t)
	}
	for _, dt := range dtypes {
		add(dt.String(), number, false, func(src *choice.Source, _ int) (*program.Program, error) { return drawer.Legal(src, dt) })
	}
	add("illegal", number, true, func(src *choice.Source, i int) (*program.Program, error) { return drawer.Illegal(src, dtypes[0], i) })
	wide := *d
	wide.Sample = func(s *op.Sampler) []any { return scaled(d.Sample(s), []float64{-1, 5, -5}[s.Index(3)]) }
	if float := slices.IndexFunc(dtypes, tensor.DType.IsFloat); float >= 0 && len(d.Domains) == 0 {
		drawer := opcase.Drawer{Table: table, Def: &wide}
		add("beyond", number/2, true, func(src *choice.Source, _ int) (*program.Program, error) { return drawer.Legal(src, dtypes[float]) })
	}
	if float := slices.IndexFunc(dtypes, tensor.DType.IsDifferentiable); float >= 0 && d.Traits.Has(op.NoGrad) && !d.Traits.Has(op.Random) {
		wanted := *d
		wanted.Traits &^= op.NoGrad
		drawer := opcase.Drawer{Table: table, Def: &wanted}
		add("wanted", 4, true, func(src *choice.Source, _ int) (*program.Program, error) {
			p, err := drawer.Legal(src, dtypes[float])
			if err == nil {
				p.Backward = nil // whether a gradient is wanted is told of each result
			}
			return p, err
		})
	}
	for _, l := range []opcase.Layout{opcase.ZeroDim, opcase.ZeroSize} {
		if _, err := drawer.Arranged(choice.New(seed), dtypes[0], l); err == nil {
			add(string(l), 4, true, func(src *choice.Source, i int) (*program.Program, error) {
				return drawer.Arranged(src, dtypes[i%len(dtypes)], l)
			})
		}
	}
	written := func(variant string, most int, of func(*choice.Source, tensor.DType) []*program.Program) {
		var ps []*program.Program
		for i := range uint64(4) {
			ps = append(ps, of(choice.New(choice.Derive(seed, i)), dtypes[0])...)
		}
		if ps = ps[:min(len(ps), most)]; len(ps) > 0 {
			add(variant, len(ps), true, func(_ *choice.Source, i int) (*program.Program, error) { p := *ps[i]; return &p, nil })
		}
	}
	written("edges", 2*number, func(src *choice.Source, dt tensor.DType) []*program.Program {
		return drawer.Edges(src, dt, d.Reject != nil) // without a Reject no range is stated
	})
	written("defaults", number/2, drawer.Defaults)
	for i, name := range d.Names {
		one := *d
		one.Names = []string{name}
		drawer := opcase.Drawer{Table: table, Def: &one}
		dt := dtypes[max(slices.IndexFunc(dtypes, tensor.DType.IsFloat), 0)]
		if _, err := drawer.Legal(choice.New(seed), dt); err == nil {
			add(fmt.Sprintf("name %d", i), 1, true, func(src *choice.Source, _ int) (*program.Program, error) { return drawer.Legal(src, dt) })
		}
	}
	return all
}

// Beside collects what verdicts do not say of cases that were judged by a reference:
// names that it lacks, and strides.
type Beside struct {
	def      *op.Def
	Findings []Finding
	Gaps     []Gap
}

// NewBeside returns a collector for an operator.
func NewBeside(d *op.Def) *Beside { return &Beside{def: d} }

// Record looks at one case.
func (b *Beside) Record(rec *verdict.Record) {
	if rec.Reference == nil || rec.Outcome == nil {
		return
	}
	if m := rec.Reference.Message; rec.Reference.Status == backend.Unsupported && strings.Contains(m, "no callable") {
		b.find("Names", rec.Program, "the reference says %q: a public name is one that PyTorch has", m)
	}
	if rec.Verdict.Word != verdict.Aligned {
		return
	}
	for i := range min(len(rec.Reference.Values), len(rec.Outcome.Values)) {
		want, got := rec.Reference.Values[i].Tensor, rec.Outcome.Values[i].Tensor
		own := slices.ContainsFunc(b.def.Names, func(n string) bool { return n == rec.Program.Calls[i].Target })
		if own && want != nil && got != nil && slices.Equal(want.Shape(), got.Shape()) && !sameStrides(want.Shape(), got.Strides(), want.Strides()) {
			if got.IsContiguous() && slices.ContainsFunc(rec.Program.Inputs, func(in program.Input) bool { return in.Strides != nil }) {
				b.gap(Gap{"Infer", fmt.Sprintf("of arguments that are not contiguous the result has other strides than PyTorch's, such as %v for %v: a literal that is to have them says so", got.Strides(), want.Strides())})
				continue
			}
			b.find("Infer", rec.Program, "the result has the strides %v, PyTorch's %v", got.Strides(), want.Strides())
		}
	}
}

func (b *Beside) find(field string, p *program.Program, format string, args ...any) {
	if !slices.ContainsFunc(b.Findings, func(f Finding) bool { return f.Field == field }) {
		b.Findings = append(b.Findings, Finding{"aligned", field, fmt.Sprintf(format, args...), "\n" + indent(p.String())})
	}
}

func (b *Beside) gap(g Gap) {
	if !slices.ContainsFunc(b.Gaps, func(o Gap) bool { return o.Field == g.Field }) {
		b.Gaps = append(b.Gaps, g)
	}
}

// Against judges an operator with public names by a reference, and returns the
// first of each kind of disagreement.
func Against(ctx context.Context, table *op.Table, id string, dtypes []tensor.DType, reference func() (backend.Backend, error), is string, seed uint64, number int) ([]Finding, error) {
	d := table.Def(id)
	beside := NewBeside(d)
	findings := map[string]Finding{}
	cfg := campaign.Config{
		Tests: Tests(table, d, dtypes, seed, number), Jobs: 1, Batch: 64, Reference: reference,
		Candidates: []campaign.Candidate{{Name: "native", Open: func() (backend.Backend, error) { return native.New(table, nn.Modules()), nil }}},
		Judge:      judge.New(judge.Config{Table: table, Modules: nn.Modules(), Oracle: judge.OnMismatch, SameException: true, Reference: is, CanAskReference: true}),
		OnRecord: func(rec *verdict.Record) {
			beside.Record(rec)
			if !rec.Verdict.Word.IsFinding() {
				return
			}
			field := blamed(rec)
			if _, seen := findings[field]; !seen {
				findings[field] = Finding{"aligned", field, rec.Verdict.Text(), "\n" + indent(rec.Program.String())}
			}
		},
		OnEnd: func(*verdict.End) {},
	}
	err := campaign.Run(ctx, cfg)
	all := beside.Findings
	for _, field := range []string{"Infer", "Kernels", "Grad", "Reject"} {
		if f, ok := findings[field]; ok {
			all = append(all, f)
		}
	}
	return all, err
}

// blamed is the field that a case which is not aligned speaks against.
func blamed(rec *verdict.Record) string {
	text := rec.Verdict.Text()
	switch {
	case strings.Contains(text, "(dtype)") || strings.Contains(text, "(shape)") || strings.Contains(text, "(structure)"):
		return "Infer"
	case rec.Reference.Status != rec.Outcome.Status || rec.Outcome.Status == backend.Raised:
		return "Reject"
	case strings.Contains(text, "gradient") || strings.Contains(text, "requires_grad"):
		return "Grad"
	}
	return "Kernels"
}
