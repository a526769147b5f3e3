package command

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"plumb/backend"
	"plumb/backend/native"
	"plumb/backend/open"
	"plumb/internal/campaign"
	"plumb/internal/campaign/drive"
	"plumb/internal/campaign/report"
	"plumb/internal/find/bundle"
	"plumb/internal/find/shrink"
	"plumb/internal/judge"
	"plumb/internal/judge/verdict"
	"plumb/internal/mutants"
	"plumb/nn"
	"plumb/ops"
	"plumb/program"
)

func newSelftest() *cobra.Command {
	s := newSelftestOf()
	var filter string
	cmd := &cobra.Command{
		Use:   "selftest",
		Short: "Plant faults in Plumb's own operators and see which are found",
		Long: `Selftest plants faults (mutants) in Plumb's operators and modules, one at a time,
and runs the shipped suites on each, with as many cases as plumb run. It says
which mutants are found, makes the failing programs smaller, and compares their
size with that of the smallest program a person would write. The operators
without a fault are judged too, and nothing may be found in them.

With --conform the mutants run the shipped conformance suite instead, each the
cases that touch what it changes: what it misses, a broken device would pass with.
There are more of them then: faults of numbers of some sizes alone (kind range).

The exit code is 0 when at least 95% of the mutants are found and nothing is
found in the operators without a fault, else 1.`,
		Example: `  plumb selftest                    every mutant against PyTorch, or the recorded baseline
  plumb selftest --filter conv -v   those with conv in their name
  plumb selftest --conform          what the shipped conformance suite is worth
  plumb selftest --json | tail -1   the summary, for machines`,
		Args: noArguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			s.out, s.err = cmd.OutOrStdout(), cmd.ErrOrStderr()
			s.plant(filter)
			if len(s.mutants) == 0 {
				return usage(fmt.Errorf("no mutant's name contains %q", filter))
			}
			if err := s.kept.open(s.err); err != nil {
				return err
			}
			s.to, s.told = s.filed.begin("plumb selftest", time.Now(), nil), report.NewSummary()
			err := s.run(cmd.Context())
			s.keep(err)
			return s.filed.end(err, s.err)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&s.subjects.reference, "reference", "", "the backend that is taken to be right (default torch): torch, recorded, …; see plumb help backends")
	pythonFlag(fl, &s.subjects.python)
	s.cases.register(fl)
	fl.StringVar(&filter, "filter", "", "plant the mutants whose name, kind or operator contains this")
	jobsFlag(fl, &s.subjects.jobs, "cases that run at the same time, as many as CPUs and memory allow")
	fl.BoolVarP(&s.verbose, "verbose", "v", false, "a line for each mutant, with the small program that shows it")
	jsonFlag(fl, &s.json, "one JSON object per mutant and line, the summary last")
	fl.Var(wholeNumber(&s.proofs, 0), "prove", "how many times the bundle of each finding is run again in a fresh process")
	fl.BoolVar(&s.conform, "conform", false, "run the shipped conformance suite, as conform run does, instead of the suites of tests")
	s.filed.flags(fl, "faults by kind and by operator, those that escape first")
	s.kept.flag(fl)
	s.judging.settings.flag(fl)
	bars(cmd, "json", "verbose")
	bars(cmd, "conform", "reference", "python", "number", "seed", "shapes", "jobs", "prove", "set")
	return cmd
}

// selftest runs mutants as candidates, each on the cases that touch what it
// has changed.
type selftest struct {
	subjects subjects
	cases    drawing
	judging  judging
	verbose  bool
	json     bool
	conform  bool // by the shipped conformance suite
	proofs   int  // fresh processes in which each finding's bundle is run
	out, err io.Writer
	kept     keeping
	filed    filed
	to       report.Sinks // of the files
	told     *report.Summary
	matches  keyword                                                                         // the tests that are run
	watch    func(ctx context.Context, records []*verdict.Record, touched []map[string]bool) // in the place of mutants; nil for none

	mutants []*mutantRun
	control []*verdict.Record // findings of the table without a fault
	judged  int
	errors  []error

	cfg      *campaign.Config
	judgedBy judge.Config
	pending  []*verdict.Record // cases of the running test
	touched  touchedNames
	idle     chan backend.Backend // references for questions beyond the run, nil: not yet started
}

// newSelftestOf returns a selftest of no mutants with the defaults.
func newSelftestOf() *selftest {
	eager := false // mutants are of operators, whose every mode is theirs
	s := &selftest{subjects: newSubjects(), judging: judging{settings: newSettings(shrinkKeys), checkGraph: &eager}, proofs: 1}
	s.matches = func(string) bool { return true }
	return s
}

// mutantRun is a mutant and what came of it.
type mutantRun struct {
	mutants.Mutant
	backend *native.Backend
	found   *verdict.Record // nil: missed
	test    campaign.Test   // that found it
	runs    int             // of the candidate until then
	elapsed time.Duration
	small   *shrink.Result
	proof   *bundle.Proof // nil: not asked for
	err     error
}

func (s *selftest) plant(filter string) {
	all := mutants.All()
	if s.conform {
		all = append(all, mutants.Ranges()...)
	}
	for _, m := range all {
		if strings.Contains(m.Name, filter) || strings.Contains(m.In, filter) || strings.Contains(string(m.Kind), filter) {
			s.mutants = append(s.mutants, &mutantRun{Mutant: m})
		}
	}
}

// run is the whole command.
func (s *selftest) run(ctx context.Context) error {
	start := time.Now()
	if err := s.open(); err != nil {
		return err
	}
	if s.conform {
		if err := s.byRecording(ctx); err != nil {
			return harness(err)
		}
		return s.report(time.Since(start))
	}
	if err := s.judgeAll(ctx); err != nil {
		return err
	}
	defer s.close()
	settle := func(m *mutantRun) error {
		m.err = cmp.Or(m.err, s.minimise(ctx, m), s.prove(ctx, m))
		return m.err
	}
	if err := drive.Each(ctx, s.subjects.jobs, s.found(), settle, nil); err != nil {
		return harness(err)
	}
	return s.report(time.Since(start))
}

// open makes the subjects of the mutants.
func (s *selftest) open() error {
	s.touched.names = map[*program.Program]map[string]bool{}
	for _, m := range s.mutants {
		table, modules, err := m.Tables()
		if err != nil {
			return harness(err)
		}
		m.backend = native.New(table, modules)
	}
	return nil
}

// judgeAll runs the tests; what it opens, close closes.
func (s *selftest) judgeAll(ctx context.Context) error {
	s.cases.settle(nil)
	err := s.configure(ctx)
	if err == nil {
		err = campaign.Run(ctx, *s.cfg)
	}
	if err != nil {
		return harness(err)
	}
	return nil
}

// configure sets up the run of the table without a fault, which also notes what
// each case touches.
func (s *selftest) configure(ctx context.Context) error {
	cfg, err := s.subjects.open(ctx, s.judging.settings, true, s.err)
	if err != nil {
		return err
	}
	if s.judgedBy, err = s.judging.arm(cfg, &s.subjects); err != nil {
		return err
	}
	s.cases.sigs, s.cases.device, s.cases.maxBytes = s.subjects.signatures(cfg), s.subjects.device, s.judging.maxBytes
	s.cases.graph = s.judging.checksGraph
	l, err := s.cases.shipped(&s.subjects)
	if err != nil {
		return usage(err)
	}
	for _, t := range l.tests {
		if s.matches(t.Name) {
			t.Graph = false
			cfg.Tests = append(cfg.Tests, t)
		}
	}
	s.idle = make(chan backend.Backend, s.subjects.jobs)
	for range s.subjects.jobs {
		s.idle <- nil
	}
	cfg.Candidates = []campaign.Candidate{{Name: "native", Open: s.touched.open}}
	cfg.OnRecord = func(r *verdict.Record) { s.pending = append(s.pending, r) }
	cfg.OnEnd = func(e *verdict.End) { s.endTest(ctx, e) }
	s.cfg = cfg
	return nil
}

func (s *selftest) close() {
	for range s.subjects.jobs {
		if ref := <-s.idle; ref != nil {
			_ = ref.Close()
		}
	}
	s.cases.sigs.Close()
}

// endTest runs the mutants that are not yet found on the cases of a test.
func (s *selftest) endTest(ctx context.Context, e *verdict.End) {
	records := s.pending
	s.pending = nil
	if e.Err != nil {
		s.errors = append(s.errors, e.Err)
	}
	s.judged += len(records)
	var touched []map[string]bool
	s.to.End(e)
	for _, r := range records {
		s.tellCase(r)
		touched = append(touched, s.touched.take(r.Program))
		if r.Verdict.Word.IsFinding() {
			s.control = append(s.control, r)
		}
	}
	if s.watch != nil {
		s.watch(ctx, records, touched)
		return
	}
	var waiting []*mutantRun
	for _, m := range s.mutants {
		if m.found == nil && m.err == nil {
			waiting = append(waiting, m)
		}
	}
	at := slices.IndexFunc(s.cfg.Tests, func(t campaign.Test) bool { return t.Name == e.Test })
	_ = drive.Each(ctx, s.subjects.jobs, waiting, func(m *mutantRun) error { // the run around it ends with the context too
		for i, r := range records {
			if touched[i][m.In] && m.found == nil && m.err == nil && ctx.Err() == nil {
				m.test = s.cfg.Tests[at]
				m.err = s.try(ctx, m, r)
			}
		}
		return m.err
	}, nil)
}

// try runs a mutant on a case. What differs from the true table in no bit need
// not be judged; where the reference may be asked, it is.
func (s *selftest) try(ctx context.Context, m *mutantRun, r *verdict.Record) error {
	start := time.Now()
	defer func() { m.elapsed += time.Since(start) }()
	job := campaign.Job(r.Program, r.Reference)
	m.runs++
	out, err := m.backend.Run(ctx, job)
	if err != nil || sameOutcome(out, r.Outcome) {
		return err
	}
	for i := range job.Inputs { // a mutant may have written into them
		job.Inputs[i] = r.Program.Inputs[i].Materialize()
	}
	v := s.cfg.Judge.Case(job, r.Reference, out).Verdict(nil)
	found := &verdict.Record{Test: r.Test, Index: r.Index, Candidate: m.Name, Program: r.Program, Verdict: v, Reference: r.Reference, Outcome: out}
	if v.Arguable() && !open.IsRecorded(s.subjects.reference) {
		err := s.withSolo(m, func(solo *campaign.Solo, _ *campaign.Config) error {
			again, err := solo.Judge(ctx, m.Name, r.Program)
			if err == nil {
				found.Verdict, found.Reference, found.Outcome = again.Verdict, again.Reference, again.Outcome
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	if found.Verdict.Word.IsFinding() {
		m.found = found
	}
	return nil
}

// sameOutcome reports whether two outcomes are the same in all but their time.
func sameOutcome(a, b *backend.Outcome) bool {
	x, y := *a, *b
	x.Elapsed, y.Elapsed, x.CPU, y.CPU = 0, 0, 0, 0
	return reflect.DeepEqual(&x, &y)
}

// minimise makes a finding smaller.
func (s *selftest) minimise(ctx context.Context, m *mutantRun) error {
	if s.judging.shrink.Runs == 0 {
		return nil
	}
	return s.withSolo(m, func(solo *campaign.Solo, cfg *campaign.Config) error {
		cfg.Tests = []campaign.Test{m.test}
		start := m.found
		if open.IsRecorded(s.subjects.reference) { // the table without a fault has to find it too
			r, err := solo.Judge(ctx, m.Name, m.found.Program)
			if err != nil || !r.Verdict.Word.IsFinding() {
				return err
			}
			r.Test, r.Index, start = m.found.Test, m.found.Index, r
		}
		var err error
		m.small, err = shrink.Shrink(ctx, start, solo.Subject(start), s.judging.shrink, nil)
		return err
	})
}

// withSolo calls f with what judges a mutant on any program. A baseline has no
// answers for programs that it does not hold: the table without a fault takes
// its place.
func (s *selftest) withSolo(m *mutantRun, f func(solo *campaign.Solo, cfg *campaign.Config) error) error {
	ref := <-s.idle
	defer func() { s.idle <- ref }()
	if ref == nil {
		var err error
		if ref, err = s.openReference(); err != nil {
			return err
		}
	}
	cfg := *s.cfg
	by := s.judgedBy
	by.CanAskReference = true
	cfg.Judge = judge.New(by)
	cfg.Reference = func() (backend.Backend, error) { return keep(ref), nil }
	cfg.Candidates = []campaign.Candidate{{Name: m.Name, Open: func() (backend.Backend, error) { return m.backend, nil }}}
	solo, err := campaign.Open(&cfg)
	if err != nil {
		return err
	}
	return f(solo, &cfg)
}

func (s *selftest) openReference() (backend.Backend, error) {
	if open.IsRecorded(s.subjects.reference) {
		return native.New(ops.Table(), nn.Modules()), nil
	}
	return s.cfg.Reference()
}

// keep returns a backend that outlasts its Close.
func keep(b backend.Backend) backend.Backend {
	if batcher, ok := b.(backend.Batcher); ok {
		return keptBatcher{batcher}
	}
	return kept{b}
}

type kept struct{ backend.Backend }

// Close leaves the backend running.
func (kept) Close() error { return nil }

type keptBatcher struct{ backend.Batcher }

// Close leaves the backend running.
func (keptBatcher) Close() error { return nil }

// touchedNames notes the operators and modules that each program touches.
type touchedNames struct {
	mu    sync.Mutex
	names map[*program.Program]map[string]bool
}

// take returns what a program touched, and forgets it.
func (t *touchedNames) take(p *program.Program) map[string]bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	names := t.names[p]
	delete(t.names, p)
	return names
}

func (t *touchedNames) open() (backend.Backend, error) {
	w := &watchedBackend{to: t}
	table, modules, err := mutants.Watched(func(name string) { w.names[name] = true })
	if err != nil {
		return nil, err
	}
	w.Backend = native.New(table, modules)
	return w, nil
}

// watchedBackend is the table without a fault.
type watchedBackend struct {
	*native.Backend
	to    *touchedNames
	names map[string]bool // of the running program
}

// Run runs a program and notes what it touches.
func (w *watchedBackend) Run(ctx context.Context, job *backend.Job) (*backend.Outcome, error) {
	w.names = map[string]bool{}
	out, err := w.Backend.Run(ctx, job)
	w.to.mu.Lock()
	defer w.to.mu.Unlock()
	w.to.names[job.Program] = w.names
	return out, err
}
