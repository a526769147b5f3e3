package command

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"plumb/internal/campaign"
	"plumb/internal/campaign/report"
	"plumb/internal/find/finding"
	"plumb/internal/judge/verdict"
	"plumb/internal/stopwatch"
)

//go:embed bench/cases.py
var benchCases []byte

func newBench() *cobra.Command {
	return parent(&cobra.Command{
		Use:   "bench",
		Short: "Measure Plumb: cases per CPU-second, drawing, kernels and graphs beside PyTorch's",
		Example: `  plumb bench cases      cases per CPU-second
  plumb bench kernels    operators beside PyTorch's`,
	}, newBenchCases(), newBenchDraw(), newBenchKernels(), newBenchCompare(), newBenchGraph(), newBenchConform(), newBenchSubjects(), newBenchCampaign(), newBenchBudget())
}

func newBenchCases() *cobra.Command {
	b := &caseBench{session: newSession(), rounds: 5}
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "cases",
		Example: `  plumb bench cases -n 20 --count 3`,
		Short:   "Cases per CPU-second over twelve fixed tests, all processes counted",
		Long: `Cases runs twelve fixed tests, forward and backward, on the reference and on the
native operators, and divides the cases by the CPU time of every process,
drawing, comparing and PyTorch included; the start of the processes is not
counted. The median of the rounds is shown.`,
		Args: noArguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			b.session.err = cmd.ErrOrStderr()
			if err := b.run(cmd.Context()); err != nil {
				return err
			}
			return b.print(cmd.OutOrStdout(), asJSON)
		},
	}
	b.cases.n, b.subjects.jobs, b.cases.seed = 200, 2, 1
	fl := cmd.Flags()
	fl.StringVar(&b.subjects.reference, "reference", "", "the backend that is taken to be right (default torch); see plumb help backends")
	pythonFlag(fl, &b.subjects.python)
	fl.VarP(wholeNumber(&b.cases.n, 1), "number", "n", "cases per test and round")
	fl.Var(wholeNumber(&b.rounds, 1), "count", "rounds")
	jobsFlag(fl, &b.subjects.jobs, "cases that run at the same time, as many as CPUs and memory allow")
	jsonFlag(fl, &asJSON, "print one object")
	return cmd
}

// caseBench measures the pipeline.
type caseBench struct {
	*session `json:"-"`
	rounds   int
	Rows     []caseRow `json:"tests"`
	Total    float64   `json:"cases_per_cpu_second"`
}

type caseRow struct {
	Test   string  `json:"test"`
	PerCPU float64 `json:"cases_per_cpu_second"`
}

func (b *caseBench) run(ctx context.Context) error {
	eager := false
	b.judging.checkGraph, b.judging.power = &eager, 0
	if err := b.open(ctx, true); err != nil {
		return err
	}
	defer b.session.cases.sigs.Close()
	l, err := b.session.cases.file("cases.py", benchCases)
	if err != nil {
		return usage(err)
	}
	var totals []float64
	for range b.rounds {
		var cpu time.Duration
		cases := 0
		for i, t := range l.tests {
			n, spent, err := b.measure(ctx, t)
			if err != nil {
				return err
			}
			if len(b.Rows) <= i {
				b.Rows = append(b.Rows, caseRow{Test: t.Name})
			}
			b.Rows[i].PerCPU = max(b.Rows[i].PerCPU, float64(n)/spent.Seconds())
			cases, cpu = cases+n, cpu+spent
		}
		totals = append(totals, float64(cases)/cpu.Seconds())
	}
	b.Total = stopwatch.Median(totals)
	return nil
}

// measure runs one test and returns its judged cases and the CPU time that
// they took here and in the workers.
func (b *caseBench) measure(ctx context.Context, t campaign.Test) (int, time.Duration, error) {
	b.cfg.Tests = []campaign.Test{t}
	b.summary, b.sink = report.NewSummary(), nullSink{}
	b.subjects.set.TakeSpent()
	start := stopwatch.CPUTime()
	if err := b.progress.run(ctx, b.cfg); err != nil {
		return 0, 0, harness(err)
	}
	if len(b.summary.Errors) > 0 {
		return 0, 0, usage(b.summary.Errors[0])
	}
	if n := b.summary.Findings(); n > 0 {
		return 0, 0, &exitError{exitFindings, fmt.Errorf("%s: %d findings; run plumb run first", t.Name, n)}
	}
	return b.summary.Cases(), stopwatch.CPUTime() - start + b.subjects.set.TakeSpent(), nil
}

type nullSink struct{}

func (nullSink) Record(*verdict.Record)      {}
func (nullSink) End(*verdict.End)            {}
func (nullSink) Findings([]*finding.Finding) {}
func (nullSink) Summary(*report.Summary)     {}

func (b *caseBench) print(w io.Writer, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(w).Encode(b)
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "cases per CPU-second (best of rounds)\t\t")
	for _, r := range b.Rows {
		fmt.Fprintf(tw, "%s\t%.0f\t\n", r.Test, r.PerCPU)
	}
	fmt.Fprintf(tw, "all (median of %d rounds)\t%.0f\t\n", b.rounds, b.Total)
	return tw.Flush()
}
