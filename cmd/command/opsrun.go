package command

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"plumb/internal/campaign"
	"plumb/internal/campaign/report"
	"plumb/internal/draw/choice"
	"plumb/internal/draw/opcase"
	"plumb/op"
	"plumb/ops"
	"plumb/program"
	"plumb/tensor"
)

// opDTypes are the dtypes in which operators are drawn unless some are named.
var opDTypes = []tensor.DType{
	tensor.F32, tensor.F64, tensor.F16, tensor.BF16, tensor.C64, tensor.C128,
	tensor.Bool, tensor.U8, tensor.I8, tensor.I16, tensor.I32, tensor.I64,
}

// opsRun is plumb ops run.
type opsRun struct {
	*session
	picking picking
	opInfo  bool // the cases are the reference's own sample inputs
}

func newOpsRun() *cobra.Command {
	r := &opsRun{session: newSession()}
	r.judging.sameException = true
	cmd := &cobra.Command{
		Use:   "run PATTERN…",
		Short: "Compare operators with the reference, by cases drawn from their definitions",
		Long: `Run draws cases for the operators whose name matches one of the patterns, compares
them with the reference, and needs no test file: legal calls in every dtype, and
calls that break one rule, which both sides have to refuse.`,
		Example: `  plumb ops run 'conv*' 'max*' -n 50
  plumb ops run relu --dtype float16
  plumb ops run 'Tensor.*_'                   in-place forms alone
  plumb ops run --opinfo 'nn.functional.*'    PyTorch's own sample inputs`,
		Args: atLeastOne("a pattern of operators' names, such as 'conv*' or '*'"),
		RunE: func(cmd *cobra.Command, patterns []string) error {
			r.attach(cmd)
			return r.run(cmd.Context(), patterns)
		},
	}
	group(cmd, whichCases, func(fl *pflag.FlagSet) {
		r.chooses(fl)
		budgetFlag(fl, &r.progress.budget.Budget, "each has one, then those")
		fl.BoolVar(&r.opInfo, "opinfo", false, "take PyTorch's own sample inputs and error inputs (torch.testing's op_db) of the entries that match, in float32, float64, int64, bool and complex64")
	})
	r.subjects.register(cmd)
	r.judging.register(cmd)
	r.reports.register(cmd)
	r.picking.restrict(cmd)
	bars(cmd, "for", "number")
	return guarded(cmd)
}

// chooses adds the flags that choose among the operators' cases.
func (r *opsRun) chooses(fl *pflag.FlagSet) {
	r.cases.register(fl)
	fl.Var(floatTypes(&r.cases.dtypes), "dtype", "draw calls of this dtype; may be repeated (default: every one that the operator takes)")
	r.picking.register(fl)
}

func (r *opsRun) run(ctx context.Context, patterns []string) error {
	selection, err := newSelection(r.picking, nil, r.err)
	if err != nil {
		return usage(err)
	}
	r.selection, r.progress.limit = selection, r.picking.limit()
	selection.settle(&r.cases)
	tests, err := r.tests(ctx, patterns)
	if err != nil {
		return err
	}
	if tests, _, err = selection.choose(&loaded{tests: tests}); err != nil {
		return mistake(err)
	}
	if r.picking.collectOnly {
		var list []collected
		for _, t := range tests {
			list = append(list, collected{Test: t.Name, Cases: t.N})
		}
		printCollected(r.out, list, r.reports.json, r.reports.quiet)
		return nil
	}
	if r.cfg == nil {
		if err := r.open(ctx, false); err != nil {
			return err
		}
	}
	defer r.cases.sigs.Close()
	return r.session.run(ctx, "plumb ops run", tests)
}

// tests are those of the operators, or of the reference's sample inputs, that
// match the patterns.
func (r *opsRun) tests(ctx context.Context, patterns []string) ([]campaign.Test, error) {
	if !r.opInfo {
		tests, err := opTests(patterns, &r.cases)
		if err != nil {
			return nil, mistake(err)
		}
		return tests, nil
	}
	if err := r.open(ctx, false); err != nil {
		return nil, err
	}
	return opInfoTests(ctx, patterns, &r.cases, r.cfg, r.err)
}

// opTests are the tests that follow from the literals of the operators whose
// id or public name matches a pattern: one per operator and legal dtype, and
// one of calls that break a rule. A pattern of in-place forms, such as
// "Tensor.*_", draws calls by such names only.
func opTests(patterns []string, c *drawing) ([]campaign.Test, error) {
	matches, err := matching(ops.Table(), patterns)
	if err != nil {
		return nil, err
	}
	among := opDTypes
	if c.dtypes != nil {
		among = c.dtypes
	}
	var out []campaign.Test
	matched := false
	for _, m := range matches {
		if len(m.def.Names) == 0 {
			continue
		}
		matched = true
		drawer := opcase.Drawer{Table: ops.Table(), Def: m.def, InPlace: op.InPlace(m.pattern)}
		legal := drawer.DTypes(among...)
		for _, dt := range legal {
			out = append(out, opTest(c, m.def, dt.String(), 20, func(src *choice.Source, _ int) (*program.Program, error) { return drawer.Legal(src, dt) }))
		}
		if len(legal) > 0 {
			dt := legal[0]
			t := opTest(c, m.def, report.Illegal, 2*opcase.Rules(), func(src *choice.Source, i int) (*program.Program, error) { return drawer.Illegal(src, dt, i) })
			t.Fixed = true
			out = append(out, t)
		}
	}
	if !matched {
		return nil, noOperator(patterns)
	}
	return out, nil
}

// opTest is a test of an operator. Calls that break a rule are compiled by nobody.
func opTest(c *drawing, d *op.Def, variant string, n int, draw func(*choice.Source, int) (*program.Program, error)) campaign.Test {
	name := report.OperatorTest(d.ID(), variant)
	if c.n > 0 {
		n = c.n
	}
	return campaign.Drawn(name, name, n, c.drawn(name, c.seed, 1, variant != report.Illegal), func(src *choice.Source, i int, _ campaign.Observer) (*program.Program, error) { return draw(src, i) })
}

// match is an operator and the pattern that one of its names matches.
type match struct {
	def     *op.Def
	pattern string
}

// matching returns the operators that have a name which matches a glob: their
// id or a public name, with or without what is before the last dot.
func matching(table *op.Table, patterns []string) ([]match, error) {
	for _, p := range patterns {
		if _, err := path.Match(p, ""); err != nil {
			return nil, fmt.Errorf("pattern %s: %w", p, err)
		}
	}
	var out []match
	for _, d := range table.Defs() {
		if at := slices.IndexFunc(patterns, func(p string) bool { return answersTo(d, p) }); at >= 0 {
			out = append(out, match{d, patterns[at]})
		}
	}
	return out, nil
}

func answersTo(d *op.Def, pattern string) bool {
	return slices.ContainsFunc(append([]string{d.ID()}, d.Names...), func(name string) bool { return fits(name, pattern) })
}

// fits reports whether a glob matches a name, whole or from its last dot on.
func fits(name, pattern string) bool {
	whole, _ := path.Match(pattern, name)
	last, _ := path.Match(pattern, name[strings.LastIndexByte(name, '.')+1:])
	return whole || last
}

func noOperator(patterns []string) error {
	return noneSelected{fmt.Errorf("no operator's name matches %s%s; plumb ops list prints them", strings.Join(patterns, " "), like(patterns[0], operatorNames()))}
}
