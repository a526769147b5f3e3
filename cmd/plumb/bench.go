package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"plumb/backend/open"
	"plumb/internal/campaign"
	"plumb/internal/campaign/report"
	"plumb/internal/find/finding"
	"plumb/internal/find/shrink"
	"plumb/internal/judge"
	"plumb/internal/judge/verdict"
)

//go:embed bench/cases.py
var benchCases []byte

func newBench() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure Plumb: cases per CPU-second, drawing, kernels and graphs beside PyTorch's",
	}
	cmd.AddCommand(newBenchCases(), newBenchDraw(), newBenchKernels(), newBenchCompare(), newBenchGraph(), newBenchConform())
	return cmd
}

func newBenchCases() *cobra.Command {
	f := runFlags{reference: "torch", candidates: []string{"native"}, noGraph: true, seed: 1, timeout: time.Minute, device: "cpu", oracle: string(judge.OnMismatch), shrink: shrink.DefaultBudget}
	var rounds int
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "cases",
		Short: "Cases per CPU-second over twelve fixed tests, all processes counted",
		Long: `Cases runs twelve fixed tests, forward and backward, on the reference and on the
native operators, and divides the cases by the CPU time of every process,
drawing, comparing and PyTorch included; the start of the processes is not
counted. The median of the rounds is shown.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			b := &caseBench{f: f, rounds: rounds, flags: cmd}
			if err := b.run(cmd.Context()); err != nil {
				return err
			}
			return b.print(cmd.OutOrStdout(), asJSON)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.reference, "reference", f.reference, "the reference: "+open.Help)
	fl.StringVar(&f.python, "python", "", "the Python that has torch")
	fl.IntVarP(&f.n, "number", "n", 200, "cases per test and round")
	fl.IntVar(&rounds, "count", 5, "rounds")
	fl.IntVarP(&f.jobs, "jobs", "j", 2, "lanes")
	fl.BoolVar(&asJSON, "json", false, "print one object")
	fl.Float64Var(&f.rtol, "rtol", 0, "")
	fl.Float64Var(&f.atol, "atol", 0, "")
	_ = fl.MarkHidden("rtol")
	_ = fl.MarkHidden("atol")
	return cmd
}

// caseBench measures the pipeline.
type caseBench struct {
	f      runFlags
	rounds int
	flags  *cobra.Command
	Rows   []caseRow `json:"tests"`
	Total  float64   `json:"cases_per_cpu_second"`
}

type caseRow struct {
	Test   string  `json:"test"`
	PerCPU float64 `json:"cases_per_cpu_second"`
}

func (b *caseBench) run(ctx context.Context) error {
	r := &runner{runFlags: b.f, flags: b.flags, out: io.Discard, err: b.flags.ErrOrStderr()}
	cfg, err := r.config(ctx)
	if err != nil {
		return err
	}
	defer r.sigs.Close()
	tests, err := r.fileTests("cases.py", benchCases)
	if err != nil {
		return usage(err)
	}
	var totals []float64
	for range b.rounds {
		var cpu time.Duration
		cases := 0
		for i, t := range tests {
			n, spent, err := b.measure(ctx, r, cfg, t)
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
	b.Total = median(totals)
	return nil
}

// measure runs one test and returns its judged cases and the CPU time that
// they took here and in the workers.
func (b *caseBench) measure(ctx context.Context, r *runner, base *campaign.Config, t campaign.Test) (int, time.Duration, error) {
	cfg := *base
	cfg.Tests = []campaign.Test{t}
	r.summary, r.sink = report.NewSummary(), nullSink{}
	r.backends.TakeSpent()
	start := cpuTime()
	if err := campaign.Run(ctx, cfg); err != nil {
		return 0, 0, harness(err)
	}
	if len(r.summary.Errors) > 0 {
		return 0, 0, usage(r.summary.Errors[0])
	}
	if n := r.summary.Findings(); n > 0 {
		return 0, 0, &exitError{exitFindings, fmt.Errorf("%s: %d findings; run plumb run first", t.Name, n)}
	}
	return r.summary.Cases(), cpuTime() - start + r.backends.TakeSpent(), nil
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
