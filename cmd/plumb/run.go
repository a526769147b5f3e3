package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"plumb/backend"
	"plumb/backend/open"
	"plumb/backend/recorded"
	"plumb/internal/campaign"
	"plumb/internal/campaign/report"
	"plumb/internal/draw/opcase"
	"plumb/internal/draw/script"
	"plumb/internal/find/finding"
	"plumb/internal/find/shrink"
	"plumb/internal/judge"
	"plumb/internal/judge/verdict"
	"plumb/nn"
	"plumb/ops"
	"plumb/program"
	"plumb/tensor"
)

// runFlags are what plumb run is told.
type runFlags struct {
	reference  string
	candidates []string
	python     string
	n          int
	seed       uint64
	filter     string
	rtol, atol float64
	jobs       int
	verbose    bool
	json       bool
	record     string
	timeout    time.Duration
	device     string
	oracle     string
	dtypes     []string
	margins    string
	power      int
	ops        string
	graphs     int
	gradcheck  bool
	coverage   string
	shrink     shrink.Budget
	known      knownFlags
	graph      bool
	noGraph    bool
	pick       pickFlags
	findings   string
	junit      string

	tolerance    string
	maxTensor    string
	noExceptions bool
}

func newRun() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run [FILE[::CLASS][::TEST]…]",
		Short: "Draw random cases from tests, run them on reference and candidates, compare",
		Long: `Run draws random programs from PyTorch-style tests, runs each on the reference
and on the candidates, forward and backward, and compares every tensor.

A FILE is a test file (see suites/), or the text of one program, as printed for
a finding; FILE::CLASS::TEST, FILE::TEST or FILE::CLASS are tests of it, by the
names that --collect-only lists. Without files the shipped suites run; on a
machine without PyTorch the recorded baseline stands in for the reference.`,
		Example: `  plumb run                                   the shipped suites
  plumb run my_test.py -n 200 --seed 7        200 cases a test, the same every time
  plumb run my_test.py::TestConv::test_1d     one test; also my_test.py::TestConv
  plumb run -k 'conv and not transpose'       tests by name: and, or, not, ()
  plumb run -k conv --collect-only -q         their names, without running them
  plumb run -x                                end at the first finding
  plumb run --lf                              what failed last time, with its seed
  plumb run --durations 10 -q                 the counts and the slowest tests only
  plumb run finding.py                        one saved program again
  plumb run --ops 'max*' -n 50                operators by name, without a test file
  plumb run --gradcheck --ops 'conv*'         their gradients against difference quotients
  plumb run --ops '*' --coverage cover.json   what is aligned, by dtype and layout
  plumb run --json | tail -1                  the summary, for machines
  plumb run --junit plumb.xml                 the cases, for CI systems`,
		RunE: func(cmd *cobra.Command, files []string) error {
			if !cmd.Flags().Changed("seed") {
				f.seed = rand.Uint64() >> 32
			}
			r := &runner{runFlags: f, flags: cmd, files: files, out: cmd.OutOrStdout(), err: cmd.ErrOrStderr()}
			if f.gradcheck && f.pick != (pickFlags{}) {
				return usage(errors.New("--gradcheck checks the operators of --ops; it takes none of pytest's flags"))
			}
			if f.gradcheck {
				return r.gradients(cmd.Context(), ops.Table())
			}
			if f.pick.collectOnly {
				return r.collect()
			}
			return r.run(cmd.Context())
		},
	}
	f.register(cmd)
	return cmd
}

// register defines the flags and sets their defaults.
func (f *runFlags) register(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.reference, "reference", "torch", "the backend that is believed: "+open.Help)
	fl.StringSliceVar(&f.candidates, "candidate", []string{"native"}, "the backends that are judged, likewise; may be repeated")
	fl.StringVar(&f.python, "python", "", "the Python that has torch")
	fl.IntVarP(&f.n, "number", "n", 0, "cases per test (default: the test's own, 20 unless it says otherwise)")
	fl.Uint64Var(&f.seed, "seed", 0, "the seed of all cases (default: a new one, printed at the end)")
	fl.StringVar(&f.filter, "filter", "", "run the tests whose name contains this")
	fl.Float64Var(&f.rtol, "rtol", 0, "relative tolerance in place of the numerics classes; needs --atol")
	fl.Float64Var(&f.atol, "atol", 0, "absolute tolerance in place of the numerics classes; needs --rtol")
	fl.IntVarP(&f.jobs, "jobs", "j", runtime.NumCPU(), "lanes that run cases at the same time")
	fl.BoolVarP(&f.verbose, "verbose", "v", false, "a line per case")
	fl.BoolVar(&f.json, "json", false, "one JSON object per case and line, the summary last")
	fl.StringVar(&f.record, "record", "", "write the reference's outcomes to this baseline file")
	fl.StringVar(&f.junit, "junit", "", "write JUnit XML for CI systems to this file: a testsuite per test")
	fl.DurationVar(&f.timeout, "timeout", time.Minute, "time limit of one case")
	fl.StringVar(&f.device, "device", "cpu", "the device that random_device() gives")
	fl.StringSliceVar(&f.dtypes, "dtype", nil, "run every test with this dtype for random float tensors and modules; may be repeated (default float32)")
	fl.StringVar(&f.oracle, "oracle", string(judge.OnMismatch), "when the reference is asked for the truth in float64: off, on-mismatch or always")
	fl.StringVar(&f.margins, "margins", "", `keep the observed error ÷ limit of every comparison in this file; "none" keeps none (default: the user's cache, for plumb margins)`)
	fl.IntVar(&f.power, "power", 3, "cases per test that are judged again with fakes for what is expected; 0 for none")
	fl.StringVar(&f.ops, "ops", "", "instead of test files, cases drawn from the literals of the operators whose name matches one of these globs, such as 'conv*,max*': legal calls in every dtype, and calls that break a rule")
	fl.IntVar(&f.graphs, "graphs", 0, "instead of test files, this many random programs of 3 to 40 calls over the whole table, which read each other's results")
	fl.BoolVar(&f.gradcheck, "gradcheck", false, "check the gradients of Plumb's own operators against difference quotients in float64, first and second order; -n is the number of calls of each (default 12); without --ops, all operators")
	fl.StringVar(&f.coverage, "coverage", "", "with --ops: a few cases (-n, default 2) of every dtype and layout, legal or not, instead; the matrix is written to this file, for plumb ops --coverage")
	fl.StringVar(&f.findings, "findings", "", `keep the bundle of each finding in this folder; "none" keeps none (default: in the user's cache, for plumb repro)`)
	fl.IntVar(&f.shrink.Runs, "shrink-runs", shrink.DefaultBudget.Runs, "runs of the candidate that making one finding smaller may take; 0 leaves findings as they were drawn")
	fl.DurationVar(&f.shrink.Time, "shrink-time", shrink.DefaultBudget.Time, "time that making one finding smaller may take")
	fl.BoolVar(&f.graph, "check-graph", false, "judge every case in the candidates' graph modes too, where they have them: values, gradients, changes, state, and a module's parameters after a step of SGD (default: as the tests say, by check_graph, which is True; not for --ops and --graphs)")
	fl.BoolVar(&f.noGraph, "no-check-graph", false, "judge no case in graph modes, whatever the tests say")
	f.known.register(fl)
	f.pick.register(fl)
	fl.StringVar(&f.tolerance, "tolerance", "", "in place of the numerics classes and of the tests' own tolerances: autotest (rtol 1e-4, atol 1e-5), exact, or default (torch.testing.assert_close's, by dtype)")
	fl.StringVar(&f.maxTensor, "max-tensor", "32MB", "the largest tensor that random_tensor draws")
	fl.BoolVar(&f.noExceptions, "no-exceptions", false, "count an exception of one side alone as a rejection, not as a finding")
	cmd.MarkFlagsRequiredTogether("rtol", "atol")
	cmd.MarkFlagsMutuallyExclusive("rtol", "tolerance")
	cmd.MarkFlagsMutuallyExclusive("check-graph", "no-check-graph")
}

// runner is one execution of plumb run.
type runner struct {
	runFlags
	flags    *cobra.Command
	files    []string
	out, err io.Writer

	backends open.Set
	probe    func(*opcase.Grapher) error // tells what the backends lack; nil without any
	sigs     *signatures
	summary  *report.Summary
	sink     report.Sink
	cases    []recorded.Case
	judgedBy judge.Config
	judge    *judge.Judge
	floats   []tensor.DType
	maxBytes int // of a random tensor
	gauges   gauges

	covering *covering // nil without --coverage

	collector finding.Collector
	accepted  *acceptedList // nil without a known list
	picked    picked

	skipped int                     // tests that say that they are not to be run
	over    []collected             // the same, by name
	defined map[string]*script.Test // by name
	beyond  []*verdict.Record       // cases of the running test that the reference does not support
}

func (r *runner) run(ctx context.Context) (err error) {
	start := time.Now()
	cfg, err := r.config(ctx)
	if err != nil {
		return err
	}
	defer r.sigs.Close()
	r.summary = report.NewSummary()
	r.summary.Reference, r.summary.Candidates = r.reference, r.candidates
	r.summary.Seed, r.summary.Tests = r.seed, len(cfg.Tests)
	r.sink = r.newSink()
	junit, err := openJUnit(r.junit, "plumb run")
	if err != nil {
		return err
	}
	if junit != nil {
		junit.Started = start
		junit.Properties = [][2]string{{"candidates", strings.Join(r.candidates, ", ")}, {"reference", r.reference}, {"seed", fmt.Sprint(r.seed)}}
		r.sink = report.Sinks{r.sink, junit}
		defer func() { err = r.closeJUnit(junit, err) }()
	}
	if err := r.openMargins(); err != nil {
		return err
	}
	defer r.closeMargins()
	if r.accepted, err = r.known.open(r.err); err != nil {
		return err
	}
	err = r.campaign(ctx, cfg)
	r.remember()
	if err == nil {
		err = r.minimise(ctx, cfg)
	}
	if err == nil {
		err = r.accepted.settle(r.summary)
	}
	r.summary.Elapsed = time.Since(start)
	if err == nil || r.summary.Cases() > 0 {
		r.epilogue()
		r.sink.Summary(r.summary)
	}
	switch {
	case errors.Is(err, context.Canceled):
		return &exitError{exitFault, errors.New("interrupted")}
	case err != nil:
		return harness(err)
	}
	if r.covering != nil {
		if err := r.finish(ctx); err != nil {
			return &exitError{exitFault, err}
		}
	}
	if r.record != "" {
		if err := r.writeBaseline(cfg); err != nil {
			return &exitError{exitFault, err}
		}
	}
	return r.exit()
}

// openJUnit makes the file of --junit; nil without one.
func openJUnit(path, name string) (*report.JUnit, error) {
	if path == "" {
		return nil, nil
	}
	j, err := report.NewJUnit(path, name)
	if err != nil {
		return nil, usage(fmt.Errorf("--junit: %w", err))
	}
	return j, nil
}

// closeJUnit writes the file. It returns the run's own error where there is one.
func (r *runner) closeJUnit(j *report.JUnit, err error) error {
	werr := j.Close()
	if werr == nil {
		return err
	}
	if err == nil {
		return &exitError{exitFault, fmt.Errorf("--junit: %w", werr)}
	}
	fmt.Fprintf(r.err, "plumb: --junit: %v\n", werr)
	return err
}

func (r *runner) exit() error {
	switch {
	case len(r.summary.Errors) > 0:
		return &exitError{exitUsage, nil}
	case r.summary.Findings() > 0, r.known.strict && len(r.summary.Stale) > 0:
		return &exitError{exitFindings, nil}
	case r.summary.Cases() == 0 && r.skipped == 0:
		return usage(errors.New("no case was run"))
	}
	return nil
}

func (r *runner) newSink() report.Sink {
	if r.json {
		return report.NewJSON(r.out)
	}
	f, ok := r.out.(*os.File)
	tty := ok && term.IsTerminal(int(f.Fd()))
	return &report.Console{W: r.out, Color: tty && os.Getenv("NO_COLOR") == "", Live: tty, Verbose: r.verbose, Quiet: r.pick.quiet, Brief: r.shrink.Runs > 0}
}

// check returns the mistakes in the flags that cobra cannot see.
func (f *runFlags) check() error {
	if !slices.Contains(judge.OracleModes, judge.OracleMode(f.oracle)) {
		return fmt.Errorf("--oracle %s: want off, on-mismatch or always", f.oracle)
	}
	switch {
	case f.coverage != "" && f.ops == "":
		return fmt.Errorf("--coverage %s needs --ops, such as --ops '*'", f.coverage)
	case f.n < 0:
		return fmt.Errorf("-n %d: the number of cases cannot be negative", f.n)
	case f.shrink.Runs < 0:
		return fmt.Errorf("--shrink-runs %d: the number of runs cannot be negative", f.shrink.Runs)
	case f.shrink.Time <= 0:
		return fmt.Errorf("--shrink-time %v: want a positive duration such as 30s", f.shrink.Time)
	case f.power < 0:
		return fmt.Errorf("--power %d: the number of cases cannot be negative", f.power)
	case f.jobs < 1:
		return fmt.Errorf("--jobs %d: want at least one lane", f.jobs)
	case f.timeout <= 0:
		return fmt.Errorf("--timeout %v: want a positive duration such as 30s", f.timeout)
	case !(f.rtol >= 0):
		return fmt.Errorf("--rtol %v: want a number that is not negative", f.rtol)
	case !(f.atol >= 0):
		return fmt.Errorf("--atol %v: want a number that is not negative", f.atol)
	}
	return nil
}

func (r *runner) config(ctx context.Context) (*campaign.Config, error) {
	if err := r.check(); err != nil {
		return nil, usage(err)
	}
	if err := r.parseDTypes(); err != nil {
		return nil, usage(err)
	}
	if err := r.prepare(); err != nil {
		return nil, usage(err)
	}
	if err := r.parseMaxTensor(); err != nil {
		return nil, usage(err)
	}
	r.backends.Table, r.backends.Python, r.backends.Timeout = ops.Table(), r.python, r.timeout
	cfg := &campaign.Config{Jobs: r.jobs, Batch: 32, OnRecord: r.onRecord, OnEnd: r.onEnd}
	by := judge.Config{Table: ops.Table(), Modules: nn.Modules(), Oracle: judge.OracleMode(r.oracle), SameException: r.ops != ""}
	if err := r.judgeBy(&by); err != nil {
		return nil, usage(err)
	}
	if err := r.openBackends(ctx, cfg); err != nil {
		return nil, err
	}
	by.Reference, by.CanAskReference = r.backends.Is(r.reference), !open.IsRecorded(r.reference)
	r.judgedBy, r.judge = by, judge.New(by)
	cfg.Judge = r.judge
	r.probe = func(g *opcase.Grapher) error { return probe(ctx, g, cfg) }
	r.sigs = &signatures{}
	switch {
	case strings.HasPrefix(r.reference, "torch"):
		r.sigs.open = cfg.Reference
	case open.IsRecorded(r.reference):
		r.sigs.info = cfg.Reference
	}
	tests, err := r.tests()
	if err != nil {
		return nil, err
	}
	if cfg.Tests, err = r.choose(tests); err != nil {
		return nil, usage(err)
	}
	for i := range cfg.Tests {
		cfg.Tests[i].Graph = r.checksGraph(cfg.Tests[i].Graph)
	}
	return cfg, nil
}

// checksGraph says whether a test is judged in graph modes too, which it says
// of itself unless a flag does.
func (f *runFlags) checksGraph(test bool) bool {
	return f.graph || test && !f.noGraph
}

// openBackends resolves the backends. Without PyTorch, and when the reference
// was not chosen, the shipped baseline takes its place.
func (r *runner) openBackends(ctx context.Context, cfg *campaign.Config) error {
	var err error
	cfg.Reference, err = r.backends.Opener(ctx, r.reference)
	var missing *backend.Fault
	if errors.As(err, &missing) && len(r.files) == 0 && !r.flags.Flags().Changed("reference") && r.python == "" {
		r.reference = "recorded"
		fmt.Fprintf(r.err, "plumb: %v: the recorded baseline is the reference; for fresh random cases: %s\n", missing.Err, missing.Fix)
		cfg.Reference, err = r.backends.Opener(ctx, r.reference)
	}
	if err != nil {
		return harness(err)
	}
	for _, spec := range r.candidates {
		open, err := r.backends.Opener(ctx, spec)
		if err != nil {
			return harness(err)
		}
		cfg.Candidates = append(cfg.Candidates, campaign.Candidate{Name: spec, Open: open})
	}
	return nil
}

// onRecord counts a record and hands it on.
func (r *runner) onRecord(rec *verdict.Record) {
	if r.picked.stopped {
		return
	}
	r.accepted.excuse(rec)
	r.summary.Add(rec)
	r.gauge(rec)
	r.collector.Record(rec, rec.Verdict.Word.IsFinding())
	if r.covering != nil && rec.Candidate == r.candidates[0] {
		r.covering.record(rec)
	}
	if rec.Reference.Status == backend.Unsupported {
		r.beyond = append(r.beyond, rec)
	}
	r.sink.Record(rec)
	r.note(rec)
	if r.record != "" && rec.Candidate == r.candidates[0] && rec.Baseline() {
		r.cases = append(r.cases, recorded.Case{Test: rec.Test, Program: rec.Program, Outcome: rec.Reference})
	}
}

func (r *runner) onEnd(e *verdict.End) {
	if r.picked.stopped {
		return
	}
	r.explain(e)
	if e.Err != nil {
		r.summary.Errors = append(r.summary.Errors, e.Err)
		r.fail(e.Test)
	}
	r.picked.ended[e.Test] = true
	r.weigh(e)
	r.collector.End()
	r.sink.End(e)
}

// writeBaseline writes what was recorded.
func (r *runner) writeBaseline(cfg *campaign.Config) error {
	ref, err := cfg.Reference()
	if err != nil {
		return err
	}
	defer ref.Close()
	return recorded.WriteFile(r.record, ref.Info(), r.cases)
}

// judgeBy puts what the flags say of tolerances and exceptions into the
// configuration of the judge.
func (r *runner) judgeBy(by *judge.Config) error {
	by.NoExceptions = r.noExceptions
	if r.flags.Flags().Changed("rtol") {
		by.RTol, by.ATol = &r.rtol, &r.atol
	}
	rtol, atol := script.AutotestRTol, script.AutotestATol
	switch r.tolerance {
	case "":
	case "autotest":
		by.RTol, by.ATol = &rtol, &atol
	case "exact":
		rtol, atol = 0, 0
		by.RTol, by.ATol = &rtol, &atol
	case program.Default:
		by.Default = true
	default:
		return fmt.Errorf("--tolerance %s: want autotest, exact or default", r.tolerance)
	}
	return nil
}

// sizeUnits are those of --max-tensor; as in AutoTest a MB has 1024² bytes.
var sizeUnits = []struct {
	suffix string
	bytes  int
}{{"GB", 1 << 30}, {"MB", 1 << 20}, {"KB", 1 << 10}, {"B", 1}, {"", 1 << 20}}

// parseMaxTensor reads --max-tensor.
func (r *runner) parseMaxTensor() (err error) {
	if r.maxTensor != "" {
		r.maxBytes, err = memorySize("--max-tensor", r.maxTensor)
	}
	return err
}

// memorySize reads a size: a number with a unit, megabytes without.
func memorySize(flag, text string) (int, error) {
	for _, u := range sizeUnits {
		digits, ok := strings.CutSuffix(strings.ToUpper(text), u.suffix)
		if !ok {
			continue
		}
		n, err := strconv.Atoi(digits)
		if err != nil || n < 1 || n > program.MaxInputBytes/u.bytes {
			break
		}
		return n * u.bytes, nil
	}
	return 0, fmt.Errorf("%s %s: want a size such as 32MB, at most %dGB", flag, text, program.MaxInputBytes>>30)
}

// parseDTypes reads --dtype.
func (r *runner) parseDTypes() error {
	for _, name := range r.dtypes {
		d, err := tensor.ParseDType(name)
		if err != nil || !d.IsFloat() {
			return fmt.Errorf("--dtype %s: want float16, bfloat16, float32 or float64", name)
		}
		r.floats = append(r.floats, d)
	}
	if r.floats == nil {
		r.floats = []tensor.DType{tensor.Invalid}
	}
	return nil
}
