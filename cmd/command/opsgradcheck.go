package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"plumb/internal/campaign/drive"
	"plumb/internal/campaign/report"
	"plumb/internal/gradcheck"
	"plumb/internal/judge/compare"
	"plumb/op"
	"plumb/ops"
)

// gradientCheck is plumb ops gradcheck: no backend takes part.
type gradientCheck struct {
	calls int // of each operator; 0 for the usual number
	given *uint64
	jobs  int
	log   gradientLog
	filed filed
	kept  keeping
}

func newOpsGradcheck() *cobra.Command {
	g := &gradientCheck{jobs: runtime.NumCPU()}
	cmd := &cobra.Command{
		Use:   "gradcheck [PATTERN…]",
		Short: "Check gradients against difference quotients, without a reference",
		Long: `Gradcheck compares the gradients of Plumb's own operators with difference
quotients in float64 and complex128, of first and second order. Without a pattern
it checks all operators.`,
		Example: `  plumb ops gradcheck 'conv*' 'max*'
  plumb ops gradcheck --json | tail -1`,
		RunE: func(cmd *cobra.Command, patterns []string) error {
			g.log.out = cmd.OutOrStdout()
			if len(patterns) == 0 {
				patterns = []string{"*"}
			}
			return g.run(cmd.Context(), ops.Table(), patterns, cmd.ErrOrStderr())
		},
	}
	fl := cmd.Flags()
	fl.VarP(wholeNumber(&g.calls, 1), "number", "n", "calls of each operator (default 12)")
	fl.Var(anySeed(&g.given), "seed", "the seed of all calls (default: a new one, printed at the end)")
	jobsFlag(fl, &g.jobs, "operators that are checked at the same time")
	fl.BoolVarP(&g.log.verbose, "verbose", "v", false, "print every finding of an operator, not its first alone")
	jsonFlag(fl, &g.log.json, "one JSON object per operator and line, the summary last")
	g.filed.flags(fl, "findings with their programs, and the worst error ÷ limit of each operator")
	g.kept.flag(fl)
	bars(cmd, "json", "verbose")
	return cmd
}

// run checks the operators of a table.
func (g *gradientCheck) run(ctx context.Context, table *op.Table, patterns []string, log io.Writer) (err error) {
	var defs []*op.Def
	matches, err := matching(table, patterns)
	if err != nil {
		return usage(err)
	}
	for _, m := range matches {
		defs = append(defs, m.def)
	}
	if len(defs) == 0 {
		return mistake(noOperator(patterns))
	}
	if err := g.kept.open(log); err != nil {
		return err
	}
	c := drawing{given: g.given}
	c.settle(nil)
	start := time.Now()
	told := &gradientTold{sum: report.NewSummary(), by: "difference quotients"}
	told.to = g.kept.keepAspects(g.filed.begin("plumb ops gradcheck", start, nil), "plumb ops gradcheck", told.by, c.seed)
	defer func() {
		told.end(&g.filed, c.seed, time.Since(start))
		err = g.filed.end(err, log)
		g.kept.end(codeOf(err) != exitFault, err)
	}()
	options := gradcheck.Options{Seed: c.seed, Calls: g.calls}
	check := func(d *op.Def) *gradcheck.Report { return gradcheck.Check(table, d, options) }
	add := func(r *gradcheck.Report) {
		g.log.add(r)
		told.operator(r)
	}
	if err := drive.Each(ctx, g.jobs, defs, check, add); err != nil {
		return errInterrupted
	}
	g.log.summary(c.seed)
	switch {
	case g.log.findings > 0:
		return &exitError{exitFindings, nil}
	case g.log.checked == 0:
		return nothing(errors.New("no gradient was checked"))
	}
	return nil
}

// gradientLog prints the reports and counts them.
type gradientLog struct {
	out           io.Writer
	verbose, json bool

	operators, none, findings, checked, kinks int
	worst                                     float64
	heading                                   bool
}

func (g *gradientLog) add(r *gradcheck.Report) {
	g.operators++
	for _, o := range r.Orders {
		g.checked, g.kinks, g.worst = g.checked+o.Checked, g.kinks+o.Kinks, max(g.worst, o.Worst)
	}
	if len(r.Findings) > 0 {
		g.findings++
	}
	if r.None != "" {
		g.none++
	}
	if g.json {
		encode(g.out, reportJSON(r))
		return
	}
	g.text(r)
}

// gradientRow are the columns: an operator, then of each order the elements
// that were checked, those skipped and the worst error ÷ limit.
const gradientRow = "%-28s %8v %6v %8v %8v %6v %8v  %s\n"

func (g *gradientLog) text(r *gradcheck.Report) {
	if !g.heading {
		fmt.Fprintf(g.out, gradientRow, "", "1st", "kinks", "worst", "2nd", "kinks", "worst", "")
		g.heading = true
	}
	if r.None != "" {
		fmt.Fprintf(g.out, "%-28s no gradient: %s\n", r.ID, r.None)
		return
	}
	a, b := r.Orders[0], r.Orders[1]
	var dtypes []string
	for _, d := range r.DTypes {
		dtypes = append(dtypes, d.String())
	}
	remark := strings.Join(dtypes, " ")
	if n := len(r.Findings); n > 0 {
		remark = fmt.Sprintf("MISALIGNED in %d of the gradients", n)
	}
	fmt.Fprintf(g.out, gradientRow, r.ID, a.Checked, a.Kinks, ratio(a), b.Checked, b.Kinks, ratio(b), remark)
	for i, f := range r.Findings {
		if i > 0 && !g.verbose {
			break
		}
		fmt.Fprintf(g.out, "\n  %v\n", &f)
		if f.Program != nil {
			fmt.Fprintf(g.out, "\n%s\n", f.Program)
		}
	}
}

func ratio(o gradcheck.Order) string {
	if o.Checked == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2g", o.Worst)
}

func (g *gradientLog) summary(seed uint64) {
	if g.json {
		encode(g.out, map[string]any{"summary": map[string]any{
			"operators": g.operators, "none": g.none, "findings": g.findings, "checked": g.checked, "kinks": g.kinks,
			"worst": compare.Number(g.worst), "seed": seed,
		}})
		return
	}
	fmt.Fprintf(g.out, "\n%d operators, %d of them without a gradient: %d elements checked, %d skipped at kinks, worst %.2g of the limit, %d operators misaligned (seed %d)\n",
		g.operators, g.none, g.checked, g.kinks, g.worst, g.findings, seed)
	if g.findings > 0 {
		fmt.Fprintln(g.out, "next: save a program above and compare its gradient with PyTorch's: plumb run FILE")
	}
}

func encode(w io.Writer, v any) {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v)
}

type gradientJSON struct {
	Op       string            `json:"op"`
	None     string            `json:"none,omitempty"` // why it has no gradient
	DTypes   []string          `json:"dtypes,omitempty"`
	Refused  string            `json:"refused,omitempty"` // why complex numbers are not differentiated
	First    *orderJSON        `json:"first,omitempty"`
	Second   *orderJSON        `json:"second,omitempty"`
	Findings []gradFindingJSON `json:"findings,omitempty"`
}

type orderJSON struct {
	Checked int            `json:"checked"`
	Kinks   int            `json:"kinks"`
	Worst   compare.Number `json:"worst"` // error ÷ limit
}

type gradFindingJSON struct {
	Order    int            `json:"order"`
	DType    string         `json:"dtype"`
	Call     int            `json:"call"`
	Of       string         `json:"of,omitempty"`
	Gradient compare.Number `json:"gradient"`
	Quotient compare.Number `json:"quotient"`
	Limit    compare.Number `json:"limit"`
	Error    string         `json:"error,omitempty"`
	Program  string         `json:"program,omitempty"`
}

func reportJSON(r *gradcheck.Report) gradientJSON {
	out := gradientJSON{Op: r.ID, None: r.None}
	if r.None != "" {
		return out
	}
	first, second := r.Orders[0], r.Orders[1]
	out.First = &orderJSON{first.Checked, first.Kinks, compare.Number(first.Worst)}
	out.Second = &orderJSON{second.Checked, second.Kinks, compare.Number(second.Worst)}
	for _, d := range r.DTypes {
		out.DTypes = append(out.DTypes, d.String())
	}
	if r.Refused != nil {
		out.Refused = r.Refused.Error()
	}
	for _, f := range r.Findings {
		j := gradFindingJSON{Order: f.Order, DType: f.DType.String(), Call: f.Draw, Of: f.Of,
			Gradient: compare.Number(f.Got), Quotient: compare.Number(f.Want), Limit: compare.Number(f.Limit)}
		if f.Err != nil {
			j.Error = f.Err.Error()
		}
		if f.Program != nil {
			j.Program = f.Program.String()
		}
		out.Findings = append(out.Findings, j)
	}
	return out
}
