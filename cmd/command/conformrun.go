package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"plumb/backend/open"
	"plumb/conform"
	"plumb/internal/campaign/report"
	"plumb/internal/conform/baseline"
	"plumb/internal/judge/verdict"
	"plumb/internal/stopwatch"
	"plumb/ops"
	"plumb/program"
)

// asDIOPI takes flags as DIOPI's users write them: --filter_dtype; and --backend
// for --candidate.
func asDIOPI(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	if name == "backend" {
		name = "candidate"
	}
	return pflag.NormalizedName(strings.ReplaceAll(name, "_", "-"))
}

type conformRun struct {
	baseline  string
	candidate string
	python    string
	timeout   time.Duration
	jobs      int
	sandbox   bool
	fnames    []string
	json      bool
	verbose   bool
	memory    int
	pages     vendorPages
	junitFile string
	files     reportFiles
	outline   *report.Outline // nil without --report
	modes     conformModes
	limits    conformLimits
	kept      keeper
	least     quota
	found     conformFindings

	base    *baseline.Baseline
	sink    report.Sink
	before  *report.Conformance // of the run before, where there is one
	earlier string              // which run that is
	summary *report.Summary
	rows    map[string]*report.Summary // by function
	skipped int
	// standIns are the cases that were judged by what the reference computes in
	// other types.
	standIns int
	started  time.Time
	backends *open.Set
	calls    time.Duration  // processor time of the candidate's own calls
	cost     time.Duration  // of all processes, without their start
	beyond   map[string]int // unsupported cases by function
	vendor   *report.Conformance
	junit    *report.JUnit // nil without --junit
	out      io.Writer
}

func newConformRun() *cobra.Command {
	var r conformRun
	cmd := &cobra.Command{
		Use:   "run [CONFIG]",
		Short: "Judge a backend by a baseline",
		Long: `Run compares a candidate with a baseline, which holds what the reference computed
when it was recorded: every case forward and backward, and in place where the
function can, within the limits of docs/numerics.md. PyTorch is not needed on
this machine. The default baseline is the one that Plumb ships.

With a CONFIG, only the cases of that config are judged.

Each result goes into the results store as soon as it is known, and --resume
continues an interrupted run; plumb history lists and compares the runs there.`,
		Example: `  plumb conform run --candidate ./my-worker
  plumb conform run --baseline baseline
  plumb conform run --baseline baseline --candidate torch --fname conv2d
  plumb conform run --baseline baseline --store results.db --resume
  plumb conform run --junit conformance.xml`,
		Args: takes(0, 1, "one CONFIG"),
		RunE: func(cmd *cobra.Command, args []string) error {
			r.out = cmd.OutOrStdout()
			if cmd.Flags().Changed("timeout") {
				if err := idleTimeout("--timeout", r.candidate); err != nil {
					return err
				}
			}
			return r.run(cmd.Context(), args, cmd.ErrOrStderr())
		},
	}
	fl := cmd.Flags()
	fl.VarP(folder(&r.baseline), "baseline", "b", "the directory of the baseline (default: the one that Plumb ships)")
	fl.StringVar(&r.candidate, "candidate", "native", "the backend that is judged; see plumb help backends")
	pythonFlag(fl, &r.python)
	r.timeout = 2 * time.Minute
	fl.Var(timeSpan(&r.timeout), "timeout", "time limit of one case")
	r.jobs = runtime.NumCPU()
	jobsFlag(fl, &r.jobs, "cases that run at the same time, as many as CPUs and memory allow")
	sandboxFlag(fl, &r.sandbox)
	fl.StringSliceVar(&r.fnames, "fname", nil, "judge these functions only; may be repeated")
	fl.BoolVar(&r.json, "json", false, "one JSON object per case and line, the summary last")
	fl.BoolVarP(&r.verbose, "verbose", "v", false, "a line per case")
	fl.Var(memorySize(&r.memory, "1GB"), "memory", "memory for the cases that run at the same time; a case that needs more runs alone")
	r.pages.add(fl)
	needs(cmd, "before", "html", "markdown", "summary")
	fl.Var(outFile(&r.junitFile), "junit", "write JUnit XML for CI systems to this file: a testsuite per function")
	fl.Var(quotaFlag(&r.least), "min-implemented", "exit with 5 where fewer cases are judged: a share of those that are asked, such as 40%, or a number")
	r.files.flag(fl)
	r.kept.add(fl)
	r.found.flags(fl)
	r.modes.add(cmd)
	fl.Var(conformTolerances(&r.limits), "tolerance", "the limits that decide: classes (those of docs/numerics.md), config (the config's own), both (classes, with a note where the config's own say otherwise: the default where the config gives some), autotest (rtol 1e-4, atol 1e-5), default (those of torch.testing.assert_close, by dtype), exact or RTOL,ATOL")
	bars(cmd, "json", "verbose", "failure-debug-level")
	return cmd
}

func (r *conformRun) run(ctx context.Context, args []string, errs io.Writer) error {
	args, err := r.modes.models.own(args)
	if err == nil {
		err = idlePython(r.python, r.candidate)
	}
	if err != nil {
		return err
	}
	if r.base, err = conform.Open(r.baseline); err != nil {
		return usage(err)
	}
	m := &r.base.Manifest
	if !m.Complete {
		fmt.Fprintf(errs, "plumb: %s is not complete: it holds %d cases; plumb conform gen goes on with it\n", r.baseline, len(m.Cases))
	}
	cfg, err := r.config(ctx, args, errs)
	if err != nil {
		return err
	}
	cfg.Memory = int64(r.memory)
	if err := r.found.open(cfg, errs); err != nil {
		return err
	}
	r.summary = report.NewSummary()
	r.summary.Reference, r.summary.Candidates, r.summary.Seed = m.Reference.Name+" "+m.Reference.Version, []string{r.candidate}, m.Seed
	r.rows, r.beyond = map[string]*report.Summary{}, map[string]int{}
	r.vendor = report.NewConformance(r.candidate, r.summary.Reference, m.Seed, r.modes.calls())
	r.sink = r.newSink()
	if r.files.wanted() {
		r.outline = report.NewOutline("plumb conform run", plumbVersion(), nil)
		r.sink = report.Sinks{r.sink, report.OutlineSink{Outline: r.outline}}
	}
	if r.junit, err = openJUnit(r.junitFile, "plumb conform run"); err != nil {
		return err
	}
	r.started = time.Now()
	if err := r.keep(args, cfg, errs); err != nil {
		_ = errors.Join(r.kept.close(err), r.junit.Close())
		return err
	}
	err = r.judge(ctx, cfg, errs)
	return cmp.Or(err, r.kept.close(err))
}

// judge judges the cases and reports.
func (r *conformRun) judge(ctx context.Context, cfg *baseline.RunConfig, errs io.Writer) error {
	boundHeap(r.memory, anyGarbage)
	err := r.base.Run(ctx, *cfg)
	r.cost = stopwatch.CPUTime() + r.backends.TakeSpent()
	r.kept.complete = err == nil
	r.summary.Elapsed = time.Since(r.started)
	r.summary.Tests = len(r.rows)
	if err == nil {
		found := r.found.findings(ctx, r, errs)
		r.kept.findings(found, nil)
		r.sink.Findings(found)
		err = r.found.accepted.settle(r.summary)
	}
	werr := errors.Join(r.finish(), r.write(errs))
	r.modes.warnUnused(errs)
	switch {
	case errors.Is(err, context.Canceled):
		return &exitError{exitFault, errors.New(r.kept.interrupted())}
	case err != nil:
		return harness(err)
	case werr != nil:
		return usage(werr)
	}
	return r.exit()
}

func (r *conformRun) exit() error {
	faults, total := r.summary.Words[verdict.Fault], &r.vendor.Total
	switch {
	case r.summary.Findings() > faults:
		return &exitError{exitFindings, nil}
	case faults > 0:
		return &exitError{exitFault, nil}
	case total.Judged() == 0:
		return nothing(r.unjudged())
	}
	return r.least.missed(total.Judged(), total.Asked())
}

// unjudged says why no case was judged.
func (r *conformRun) unjudged() error {
	switch total := &r.vendor.Total; {
	case total.Unsupported > 0:
		return errors.New(r.summary.Unjudged())
	case total.Skipped > 0:
		return fmt.Errorf("%s, which the device config skips", count(total.Skipped, "case"))
	case total.Unrecorded > 0:
		return fmt.Errorf("%s, of which the recording has no result", count(total.Unrecorded, "case"))
	}
	return errors.New("no case of the baseline is selected")
}

func (r *conformRun) config(ctx context.Context, args []string, errs io.Writer) (*baseline.RunConfig, error) {
	m := &r.base.Manifest
	known := m.Functions()
	for _, f := range r.fnames {
		if !slices.Contains(known, f) {
			return nil, usage(fmt.Errorf("--fname %s: the baseline has no such function%s", f, like(f, known)))
		}
	}
	growth := fitJobs(&r.jobs, errs, r.candidate)
	cfg := &baseline.RunConfig{Candidate: r.candidate, Jobs: r.jobs, OnRecord: r.onRecord}
	cfg.Select = func(e *baseline.Entry) bool { return len(r.fnames) == 0 || slices.Contains(r.fnames, e.Function) }
	if len(args) == 1 {
		if err := r.only(cfg, args[0], errs); err != nil {
			return nil, err
		}
	}
	r.backends = &open.Set{Table: ops.Table(), Python: r.python, Timeout: r.timeout, Growth: growth, Sandbox: r.sandbox, Int32s: true}
	library := open.ParseSpec(r.candidate).Name == open.Library
	open, err := r.backends.Opener(ctx, r.candidate)
	if err != nil {
		return nil, harness(err)
	}
	cfg.Open = open
	if r.candidate != "native" {
		cfg.Predict = conform.Predictor
	}
	if err := r.modes.load(r.base, errs); err != nil {
		return nil, err
	}
	r.modes.kit.Limits = r.limits.kit()
	r.modes.kit.Library = library
	r.modes.kit.Apply(cfg)
	return cfg, nil
}

// only restricts the run to the cases of a config, and holds the recorded
// programs to those that the config has now.
func (r *conformRun) only(cfg *baseline.RunConfig, name string, errs io.Writer) error {
	c, err := readConfig(name, errs)
	if err != nil {
		return err
	}
	wanted := map[string]*baseline.Case{}
	cases := conform.Recordable(c, r.base.Manifest.Seed, func(string) bool { return true })
	for i := range cases {
		wanted[cases[i].Name] = &cases[i]
	}
	pick := cfg.Select
	cfg.Select = func(e *baseline.Entry) bool { return wanted[e.Name] != nil && pick(e) }
	cfg.Expect = func(e *baseline.Entry, variant string, p *program.Program) error {
		variants, err := wanted[e.Name].Programs()
		if err != nil {
			return err
		}
		for _, v := range variants {
			if v.Name == variant && v.Program.ID() == p.ID() {
				return nil
			}
		}
		return fmt.Errorf("the baseline was recorded with another program for this case; record it again, or run without %s", name)
	}
	recorded := map[string]bool{}
	for i := range r.base.Manifest.Cases {
		recorded[r.base.Manifest.Cases[i].Name] = true
	}
	lacking := 0
	for i := range cases {
		if !recorded[cases[i].Name] {
			lacking++
		}
	}
	if lacking > 0 {
		fmt.Fprintf(errs, "plumb: %d of the %d cases of %s are not in %s\n", lacking, len(cases), name, r.baseline)
	}
	return nil
}

func (r *conformRun) newSink() report.Sink {
	if r.json {
		return report.NewJSON(r.out)
	}
	return &report.Console{W: r.out, Color: auto.paint(r.out), Width: widthOf(r.out), Tests: r.verbose, Verbose: r.verbose, Quiet: true, Brief: true, Counted: true, MaxFindings: 3}
}

func (r *conformRun) onRecord(rec *baseline.Record) {
	if r.modes.backward && rec.Variant != baseline.Backward {
		return
	}
	rec.Test = testName(rec)
	r.calls += rec.CPU
	if as := rec.Entry.Refused[rec.Stored()].StandIn; as != "" && rec.Judged() {
		r.standIns++
		rec.Verdict.Reason = joined("judged by what the reference computes in "+as+", rounded", rec.Verdict.Reason)
	}
	r.found.record(rec)
	r.count(rec)
	if r.kept.writer != nil {
		r.kept.keeping.add(r.result(rec))
	}
	if rec.Skipped {
		return
	}
	if note := rec.Notes["diopi"]; note != "" {
		rec.Verdict.Reason += " (DIOPI's comparison " + note + ")"
	}
	if other := rec.Verdict.Otherwise; other != "" {
		rec.Verdict.Reason = joined(rec.Verdict.Reason, other)
	}
	r.sink.Record(&rec.Record)
	if note := rec.Notes["debug"]; note != "" && !r.json {
		fmt.Fprint(r.out, indented(note))
	}
}

// joined are the parts of a reason that there are.
func joined(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), "; ")
}

// testName is the name of a variant of a case.
func testName(rec *baseline.Record) string { return caseName(rec.Entry.Name, rec.Variant) }

// count adds a record to all tables and reports.
func (r *conformRun) count(rec *baseline.Record) {
	one := r.vendorCase(rec)
	r.vendor.Add(one)
	r.vendor.Describe(one, r.vendorDetails(rec))
	r.testCase(rec)
	r.pages.leftOut(rec)
	if rec.Skipped {
		r.skipped++
		return
	}
	row := r.rows[rec.Entry.Function]
	if row == nil {
		row = report.NewSummary()
		r.rows[rec.Entry.Function] = row
	}
	row.Add(&rec.Record)
	r.summary.Add(&rec.Record)
}

// vendorCase is a record in the vendor's report.
func (r *conformRun) vendorCase(rec *baseline.Record) report.ConformanceCase {
	_, refused := rec.Entry.Refused[rec.Stored()]
	one := report.ConformanceCase{
		Case: testName(rec), Function: rec.Entry.Function, DType: r.modes.dtype(rec.Entry),
		Recorded: rec.Entry.Missing == "" && (!refused || rec.Entry.StandsIn(rec.Stored()) || rec.Verdict.Word.IsFinding()),
	}
	if !rec.Skipped {
		one.Word, one.Reason = rec.Verdict.Word, rec.Verdict.Reason
	}
	one.Otherwise = rec.Verdict != nil && rec.Verdict.Otherwise != ""
	one.Lenient, _, _ = strings.Cut(rec.Notes["diopi"], ":")
	return one
}

// testCase adds a record to the JUnit file.
func (r *conformRun) testCase(rec *baseline.Record) {
	if r.junit == nil {
		return
	}
	c := report.JUnitCase{Suite: rec.Entry.Function, Name: testName(rec), Word: rec.Verdict.Word, Reason: rec.Verdict.Reason, Elapsed: rec.Elapsed}
	if len(rec.Program.Calls) > 0 && rec.Verdict.Word.IsFinding() {
		c.Reason, c.Output = rec.Verdict.Text(), rec.Program.String()
	}
	r.junit.Add(c)
}

// write writes the files that were asked for.
func (r *conformRun) write(log io.Writer) error {
	var errs []error
	if r.outline != nil {
		errs = append(errs, r.files.write(r.outline, log))
	}
	if r.junit != nil {
		r.junit.Started = r.started
		r.junit.Properties = [][2]string{{"candidate", r.candidate}, {"reference", r.summary.Reference}, {"seed", fmt.Sprint(r.summary.Seed)}}
		errs = append(errs, r.junit.Close())
	}
	return errors.Join(append(errs, r.pages.write(r.vendor))...)
}

func indented(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n  ") + "\n"
}

// finish prints the table of the functions and the summary.
func (r *conformRun) finish() error {
	r.vendor.About = r.about()
	r.vendor.Finish()
	err := r.compare()
	if !r.json {
		screen := report.NewScreen(r.out, widthOf(r.out))
		defer screen.Flush()
		r.table(screen)
		fmt.Fprintln(screen)
		r.vendor.Text(screen, r.verbose || r.modes.models.name != "")
		if r.standIns > 0 {
			fmt.Fprintf(screen, "stand-ins   %s judged by what the reference computes in float32 or int64, where it has no kernel\n", count(r.standIns, "case"))
		}
		if r.calls > 0 {
			fmt.Fprintf(screen, "cost        %s\n", r.spent())
		}
		fmt.Fprintln(r.out)
	}
	r.sink.Summary(r.summary)
	return err
}

func (r *conformRun) table(out io.Writer) {
	var names []string
	for n := range r.rows {
		names = append(names, n)
	}
	slices.Sort(names)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, n := range names {
		row := r.rows[n]
		note := row.Beyond
		if v := r.vendor.Function(n); v.Otherwise > 0 {
			note = joined(note, fmt.Sprintf("%d otherwise by the config", v.Otherwise))
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", n, row.Counts(), note)
	}
	_ = w.Flush()
}
