package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"plumb/backend"
	"plumb/internal/campaign"
	"plumb/internal/campaign/report"
	"plumb/internal/find/bundle"
	"plumb/internal/find/finding"
	"plumb/internal/judge/verdict"
	"plumb/ops"
	"plumb/tensor"
)

// explainCommand is plumb explain: cases judged again, to say why their limits are
// what they are.
type explainCommand struct {
	*runCommand
	findings string
	folder   string // of programs that are written for a moment
}

func newExplain() *cobra.Command {
	e := &explainCommand{runCommand: &runCommand{session: newSession(drawingKeys...)}}
	cmd := &cobra.Command{
		Use:   "explain ID | TEST | OPERATOR",
		Short: "Say why a limit is what it is, and how near cases come to it",
		Long: `Explain judges cases afresh and says of every comparison which rule gave its limit
(docs/numerics.md has them), where the numbers come from, which term of a bound of
the rounding errors is the largest, and how near the other cases came. Of a
candidate over ranks (native:global-2x2) it lists which calls the ranks did not
share, and why.

An ID is that of a finding, or its beginning; a TEST is a file, FILE::TEST or the
name of a test of the shipped suites; an OPERATOR is one of plumb ops list.`,
		Example: `  plumb explain conv2d                         an operator, by cases drawn of it
  plumb explain suites/norm.py::test_layer_norm -n 50
  plumb explain 3f5a9c12                       a finding
  plumb explain finding.py                     a saved program`,
		Args: takes(1, 1, "an ID, a test or an operator"),
		RunE: func(cmd *cobra.Command, args []string) error {
			e.attach(cmd)
			e.live = nil
			return e.explain(cmd.Context(), args[0])
		},
	}
	group(cmd, whichCases, func(fl *pflag.FlagSet) {
		e.cases.register(fl)
		fl.Var(folder(&e.findings), "findings", "the folder of findings (default: in the user's cache)")
	})
	e.subjects.register(cmd)
	e.judging.register(cmd)
	group(cmd, whatPrinted, func(fl *pflag.FlagSet) {
		colorFlag(fl, &e.reports.color)
		jsonFlag(fl, &e.reports.json, "one JSON object per place and line")
	})
	return cmd
}

// explain judges what a name means, and tells.
func (e *explainCommand) explain(ctx context.Context, name string) error {
	e.judging.explain, e.judging.shrink.Runs, e.judging.power = true, 0, 0
	e.judging.settings.margins, e.judging.settings.findings = "none", "none"
	e.reports.kept.path = noStore
	e.cases.n = cmp.Or(e.cases.n, 20)
	e.sink = &explanation{out: e.out, json: e.reports.json, color: e.reports.color.paint(e.out), reference: e.subjects.reference}
	tests, err := e.meaning(ctx, name)
	if e.folder != "" {
		defer os.RemoveAll(e.folder)
	}
	if err != nil {
		return err
	}
	defer e.cases.sigs.Close()
	err = e.session.run(ctx, "plumb explain", tests)
	var exit *exitError
	if errors.As(err, &exit) && exit.code == exitFindings {
		return nil // they are what is explained
	}
	return err
}

// meaning returns the tests that a name stands for.
func (e *explainCommand) meaning(ctx context.Context, name string) ([]campaign.Test, error) {
	if _, err := os.Stat(name); err == nil || strings.Contains(name, "::") || strings.HasSuffix(name, ".py") {
		return e.ofFiles(ctx, name)
	}
	if matches, err := matching(ops.Table(), []string{name}); err == nil && len(matches) > 0 {
		selection, err := newSelection(e.picking, nil, e.err)
		if err != nil {
			return nil, usage(err)
		}
		e.selection = selection
		selection.settle(&e.cases)
		if err := e.open(ctx, false); err != nil {
			return nil, err
		}
		return opTests([]string{name}, &e.cases)
	}
	if isID.MatchString(name) {
		b, err := (&reproFlags{findings: e.findings}).open(name)
		if err == nil {
			return e.ofBundle(ctx, b)
		}
		if len(name) == len("3f5a9c1200b7d4e8") {
			return nil, usage(err)
		}
	}
	e.picking.keyword = name
	tests, err := e.prepare(ctx, nil)
	if err != nil {
		var nothing *exitError
		if errors.As(err, &nothing) && nothing.err != nil {
			err = nothing.err
		}
		return nil, usage(fmt.Errorf("%s is no finding, no operator%s and no test: %w", name, like(name, operatorNames()), err))
	}
	return tests, nil
}

var isID = regexp.MustCompile(`^[0-9a-f]{4,16}$`)

// ofFiles are the tests of files, shipped ones among them.
func (e *explainCommand) ofFiles(ctx context.Context, name string) ([]campaign.Test, error) {
	_, err := os.Stat(strings.SplitN(name, "::", 2)[0])
	if err != nil && strings.HasPrefix(name, "suites/") {
		e.picking.keyword = ""
		tests, err := e.prepare(ctx, nil)
		tests = slices.DeleteFunc(tests, func(t campaign.Test) bool { return t.Name != name && !strings.HasPrefix(t.Name, name+"::") })
		if err == nil && len(tests) == 0 {
			err = usage(fmt.Errorf("the shipped suites have no test %s; plumb run --collect-only -q lists them", name))
		}
		return tests, err
	}
	return e.prepare(ctx, []string{name})
}

// ofBundle is the smallest program of a finding, on its own subjects.
func (e *explainCommand) ofBundle(ctx context.Context, b *bundle.Bundle) ([]campaign.Test, error) {
	f, err := b.Finding()
	if err != nil {
		return nil, harness(err)
	}
	if e.subjects.reference == "" && e.subjects.candidates[0] == "native" {
		e.subjects.reference, e.subjects.candidates = f.Reference.Spec, []string{f.Candidate.Spec}
	}
	if e.folder, err = os.MkdirTemp("", "plumb-explain-"); err != nil {
		return nil, fault(err)
	}
	path := filepath.Join(e.folder, b.ID()+".py")
	if err := os.WriteFile(path, []byte(f.Program.String()), 0o600); err != nil {
		return nil, fault(err)
	}
	e.cases.n = 0
	return e.prepare(ctx, []string{path})
}

// explanation is a sink that tells of each kind of place what its limits are.
type explanation struct {
	out       io.Writer
	json      bool
	color     bool
	reference string
	places    []*explained
	failed    []*verdict.Record
	other     map[verdict.Word]int
	why       map[verdict.Word]string
}

// explained is one kind of place: an operator's value or gradient in a dtype, under
// one rule.
type explained struct {
	Operator string       `json:"operator"`
	Part     backend.Part `json:"part"`
	DType    string       `json:"dtype"`
	Rule     string       `json:"rule"`
	Reason   string       `json:"reason"`
	Count    int          `json:"comparisons"`
	Equal    int          `json:"equal"`
	Over     int          `json:"beyond"`
	Settled  int          `json:"settled"`
	Nearest  *verdict.Why `json:"nearest"`
	Ratio    float64      `json:"ratio"`
	Case     string       `json:"case"`

	ratios []float64
}

// Record takes the margins of a case.
func (x *explanation) Record(r *verdict.Record) {
	if r.Verdict.Word.IsFinding() {
		x.failed = append(x.failed, r)
	}
	if len(r.Verdict.Margins) == 0 {
		if x.other == nil {
			x.other, x.why = map[verdict.Word]int{}, map[verdict.Word]string{}
		}
		x.other[r.Verdict.Word]++
		x.why[r.Verdict.Word] = cmp.Or(x.why[r.Verdict.Word], r.Verdict.Reason)
	}
	for i := range r.Verdict.Margins {
		if m := &r.Verdict.Margins[i]; m.Why != nil {
			x.place(m).add(m, namedCase(r))
		}
	}
}

// namedCase is a case's test, index and id; of a program that was written for a
// moment, its id.
func namedCase(r *verdict.Record) string {
	if strings.Contains(r.Test, r.Program.ID()) {
		return r.Program.ID()
	}
	return fmt.Sprintf("%s case %d, %s", r.Test, r.Index, r.Program.ID())
}

func (x *explanation) place(m *verdict.Margin) *explained {
	operator := cmp.Or(verdict.OperatorName(m.Target), "input "+m.Name)
	at := slices.IndexFunc(x.places, func(p *explained) bool {
		return p.Operator == operator && p.Part == m.Part && p.DType == m.DType && p.Rule == m.Why.Rule && p.Reason == m.Why.Reason
	})
	if at < 0 {
		at = len(x.places)
		x.places = append(x.places, &explained{Operator: operator, Part: m.Part, DType: m.DType, Rule: m.Why.Rule, Reason: m.Why.Reason})
	}
	return x.places[at]
}

func (p *explained) add(m *verdict.Margin, at string) {
	ratio := float64(m.Ratio)
	p.Count++
	switch {
	case m.Why.Settled:
		p.Settled++
	case ratio == 0:
		p.Equal++
	case ratio > 1:
		p.Over++
	}
	p.ratios = append(p.ratios, ratio)
	if p.Nearest == nil || ratio > p.Ratio {
		p.Nearest, p.Ratio, p.Case = m.Why, ratio, at
	}
}

// End takes nothing.
func (x *explanation) End(*verdict.End) {}

// Findings takes nothing: none is made smaller.
func (x *explanation) Findings([]*finding.Finding) {}

// Summary tells.
func (x *explanation) Summary(s *report.Summary) {
	slices.SortStableFunc(x.places, func(a, b *explained) int {
		return cmp.Or(-cmp.Compare(a.Ratio, b.Ratio), strings.Compare(a.Rule, b.Rule))
	})
	if x.json {
		for _, p := range x.places {
			printJSON(x.out, p)
		}
		return
	}
	screen := report.NewScreen(x.out, widthOf(x.out))
	defer screen.Flush()
	out := report.NewPlainWriter(screen)
	for i, p := range x.places {
		if i > 0 && p.like(x.places[i-1]) {
			fmt.Fprintf(out, "%s, %s, %s: by the same rule within %s; %s\n", p.Operator, p.Part, p.DType, p.Nearest.Limit, p.spread())
			continue
		}
		p.print(out)
	}
	for word, n := range x.other {
		fmt.Fprintf(out, "%s %s, nothing compared: %s\n", count(n, "case"), word, x.why[word])
	}
	for i, r := range x.failed {
		if i == 3 {
			fmt.Fprintf(out, "and %s more\n", count(len(x.failed)-i, "failing case"))
			break
		}
		fmt.Fprintf(out, "\n%s\n%s", namedCase(r), r.Verdict.Text())
	}
	fmt.Fprintf(out, "\n%s of %s, %s against %s, seed %d\n", count(s.Compared, "comparison"), count(s.Cases(), "case"), strings.Join(s.Candidates, ", "), s.Reference, s.Seed)
}

// like reports whether there is nothing to say of p, all of which is equal, that was
// not said of another.
func (p *explained) like(o *explained) bool {
	same := func(x *explained) string { return x.Rule + "\n" + strings.ReplaceAll(x.Reason, x.DType, "") }
	return p.Equal == p.Count && same(p) == same(o)
}

func (p *explained) print(out io.Writer) {
	fmt.Fprintf(out, "%s, %s, %s\n", p.Operator, p.Part, p.DType)
	note := func(name, text string) {
		if text != "" {
			fmt.Fprintf(out, "  %-9s %s\n", name, text)
		}
	}
	note("rule", p.Rule)
	note("limit", p.Nearest.Limit)
	note("because", p.Reason)
	note("cases", p.spread())
	if p.Ratio > 0 {
		at := ""
		if p.Nearest.Index != nil {
			at = fmt.Sprintf(" at %s: got %s, want %s", tensor.ShapeString(p.Nearest.Index), p.Nearest.Got, p.Nearest.Want)
		}
		note("nearest", fmt.Sprintf("%s%s (%s)", times(p.Ratio), at, p.Case))
	}
	note("there", p.Nearest.Terms)
	note("", p.Nearest.Dominates)
}

func times(ratio float64) string {
	if math.IsInf(ratio, 1) {
		return "beyond a limit that allows nothing"
	}
	return fmt.Sprintf("%.3g × the limit", ratio)
}

// spread says how the comparisons lie below the limit.
func (p *explained) spread() string {
	text := fmt.Sprintf("%s, %d equal", count(p.Count, "comparison"), p.Equal)
	if p.Settled > 0 {
		text += fmt.Sprintf(", %d beyond the limit that the truth lets stand", p.Settled)
	}
	if p.Over > 0 {
		text += fmt.Sprintf(", %d BEYOND the limit", p.Over)
	}
	slices.Sort(p.ratios)
	at := func(q float64) float64 { return p.ratios[int(q*float64(len(p.ratios)-1))] }
	if p.Ratio > 0 && !math.IsInf(p.Ratio, 1) {
		text += fmt.Sprintf("; error ÷ limit: half below %.2g, nine of ten below %.2g, all below %.2g", at(0.5), at(0.9), p.Ratio)
	}
	return text
}
