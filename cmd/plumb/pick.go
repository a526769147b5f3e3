package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"plumb/internal/campaign"
	"plumb/internal/judge/verdict"
	"plumb/suites"
)

// pickFlags choose among tests, in the words of pytest.
type pickFlags struct {
	keyword     string
	collectOnly bool
	exitFirst   bool
	maxFail     int
	lastFailed  bool
	failedFirst bool
	durations   int
	quiet       bool
}

func (f *pickFlags) register(fl *pflag.FlagSet) {
	fl.StringVarP(&f.keyword, "keyword", "k", "", `run the tests whose full name matches this expression of names, and, or, not and (), such as "conv and not transpose"`)
	fl.BoolVar(&f.collectOnly, "collect-only", false, "list the tests instead of running them; with -q their names alone")
	fl.BoolVarP(&f.exitFirst, "exitfirst", "x", false, "end the run at the first finding or mistake")
	fl.IntVar(&f.maxFail, "maxfail", 0, "end the run when this many tests fail")
	for _, name := range []string{"last-failed", "lf"} {
		fl.BoolVar(&f.lastFailed, name, false, "run the tests that failed last time in this folder, with the seed and -n of that time; all when none did")
	}
	for _, name := range []string{"failed-first", "ff"} {
		fl.BoolVar(&f.failedFirst, name, false, "run all tests, those that failed last time first")
	}
	fl.IntVar(&f.durations, "durations", 0, "print the tests that took the reference and the candidates longest, this many")
	fl.BoolVarP(&f.quiet, "quiet", "q", false, "print findings and the counts only")
}

func (f *pickFlags) check() error {
	switch {
	case f.maxFail < 0:
		return fmt.Errorf("--maxfail %d: the number of tests cannot be negative", f.maxFail)
	case f.durations < 0:
		return fmt.Errorf("--durations %d: the number of tests cannot be negative", f.durations)
	}
	return nil
}

// picked is what a run knows of its selection.
type picked struct {
	ids     []string // asked for, as "file::Class::test"
	matches keyword
	names   []string // of every test that was loaded, selected or not
	last    lastFailed
	failed  map[string]bool
	ended   map[string]bool
	took    map[string]time.Duration
	enough  context.CancelCauseFunc
	stopped bool
}

// splitIDs separates the files from the tests that are asked for in them:
// "file::Class::test", "file::test" or "file::Class".
func splitIDs(args []string) (files, ids []string) {
	for _, a := range args {
		file, test, selects := strings.Cut(a, "::")
		file = shipped(file)
		if selects {
			ids = append(ids, path.Clean(filepath.ToSlash(file))+"::"+test)
		}
		if !slices.Contains(files, file) {
			files = append(files, file)
		}
	}
	return files, ids
}

// shipped returns the name of the shipped suite that a file which does not
// exist is: "suites/conv.py" for itself and for "conv.py".
func shipped(file string) string {
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		return file
	}
	for _, f := range suites.Files() {
		if f.Name == path.Clean(filepath.ToSlash(file)) || path.Base(f.Name) == file {
			return f.Name
		}
	}
	return file
}

// prepare reads the flags that choose among tests.
func (r *runner) prepare() (err error) {
	p := &r.picked
	if err := r.pick.check(); err != nil {
		return err
	}
	if p.matches, err = parseKeyword(r.pick.keyword); err != nil {
		return err
	}
	r.files, p.ids = splitIDs(r.files)
	p.failed, p.ended, p.took = map[string]bool{}, map[string]bool{}, map[string]time.Duration{}
	p.last, err = readLastFailed()
	if !r.pick.lastFailed && !r.pick.failedFirst {
		return nil
	}
	if err != nil {
		fmt.Fprintf(r.err, "plumb: which tests failed last time is not known: %v\n", err)
	}
	if len(p.last.Failed) > 0 {
		r.repeat(p.last)
	}
	return nil
}

// repeat takes the seed and the number of cases of an earlier run, where the
// command line gives none.
func (r *runner) repeat(l lastFailed) {
	if !r.flags.Flags().Changed("seed") {
		r.seed = l.Seed
	}
	if !r.flags.Flags().Changed("number") {
		r.n = l.Number
	}
}

// wanted reports whether the command line selects a test, and notes its name.
func (r *runner) wanted(name string) bool {
	r.picked.names = append(r.picked.names, name)
	return strings.Contains(name, r.filter) && r.picked.matches(name) && r.asked(name)
}

// asked reports whether a test is one of those that were asked for by name. A
// file without such a name is asked for as a whole.
func (r *runner) asked(name string) bool {
	file, _, _ := strings.Cut(name, "::")
	whole := true
	for _, id := range r.picked.ids {
		if selects(id, name) {
			return true
		}
		idFile, _, _ := strings.Cut(id, "::")
		whole = whole && idFile != path.Clean(file)
	}
	return whole
}

// selects reports whether an id is a test's name, that of its class, or its
// name without the dtype that it runs with.
func selects(id, name string) bool {
	file, rest, _ := strings.Cut(name, "::")
	after, ok := strings.CutPrefix(path.Clean(file)+"::"+rest, id)
	return ok && (after == "" || after[0] == '[' || strings.HasPrefix(after, "::"))
}

// choose returns the tests that the command line selects.
func (r *runner) choose(tests []campaign.Test) ([]campaign.Test, error) {
	var out []campaign.Test
	for _, t := range tests {
		if r.wanted(t.Name) {
			out = append(out, t)
		}
	}
	for _, id := range r.picked.ids {
		if !slices.ContainsFunc(r.picked.names, func(n string) bool { return selects(id, n) }) {
			return nil, r.noSuch(fmt.Sprintf("there is no test %s", id), id)
		}
	}
	if len(out) == 0 && r.skipped == 0 {
		return nil, r.selectsNothing()
	}
	return r.again(out), nil
}

// selectsNothing says which part of the selection no test has.
func (r *runner) selectsNothing() error {
	some := func(ok func(string) bool) bool { return slices.ContainsFunc(r.picked.names, ok) }
	switch {
	case !some(func(n string) bool { return strings.Contains(n, r.filter) }):
		return r.noSuch(fmt.Sprintf("no test's name contains %q", r.filter), r.filter)
	case !some(r.picked.matches):
		return r.noSuch(fmt.Sprintf("no test's name matches -k %q", r.pick.keyword), longestWord(r.pick.keyword))
	}
	return errors.New("no test is selected by all of -k, --filter and the names that are given")
}

// noSuch adds the names that are spelled alike.
func (r *runner) noSuch(message, name string) error {
	if like := near(name, r.picked.names); len(like) > 0 {
		message += "; there is\n  " + strings.Join(like, "\n  ")
	}
	return errors.New(message)
}

func longestWord(expr string) string {
	words := strings.FieldsFunc(expr, func(r rune) bool { return !isKeywordRune(r) })
	if len(words) == 0 {
		return expr
	}
	return slices.MaxFunc(words, func(a, b string) int { return len(a) - len(b) })
}

// again takes what failed last time out of the tests, or to their front.
func (r *runner) again(tests []campaign.Test) []campaign.Test {
	if !r.pick.lastFailed && !r.pick.failedFirst {
		return tests
	}
	var failed, others []campaign.Test
	for _, t := range tests {
		if slices.Contains(r.picked.last.Failed, t.Name) {
			failed = append(failed, t)
		} else {
			others = append(others, t)
		}
	}
	switch {
	case len(failed) == 0:
		fmt.Fprintf(r.err, "plumb: none of these tests failed last time: running all\n")
		return tests
	case r.pick.failedFirst:
		fmt.Fprintf(r.err, "plumb: first %s that failed last time, seed %d\n", count(len(failed), "test"), r.seed)
		return append(failed, others...)
	}
	fmt.Fprintf(r.err, "plumb: %s of %d that failed last time, seed %d\n", count(len(failed), "test"), len(tests), r.seed)
	return failed
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// readSource reads a test file, or a shipped suite that is not on the disk.
func readSource(name string) ([]byte, error) {
	src, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		for _, f := range suites.Files() {
			if f.Name == name {
				return f.Source, nil
			}
		}
	}
	return src, err
}

// errEnough ends a run whose tests have failed often enough.
var errEnough = errors.New("enough tests failed")

// campaign runs the tests until enough of them have failed.
func (r *runner) campaign(ctx context.Context, cfg *campaign.Config) error {
	ctx, enough := context.WithCancelCause(ctx)
	defer enough(nil)
	r.picked.enough = enough
	err := campaign.Run(ctx, *cfg)
	if r.picked.stopped {
		r.collector.End()
	}
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// note keeps what a record says of its test: how long it took, whether it
// failed.
func (r *runner) note(rec *verdict.Record) {
	r.picked.took[rec.Test] += rec.Reference.Elapsed + rec.Outcome.Elapsed
	if rec.Verdict.Word.IsFinding() {
		r.fail(rec.Test)
	}
}

// fail counts a failing test, and ends the run when there are enough.
func (r *runner) fail(test string) {
	p := &r.picked
	p.failed[test] = true
	limit := r.pick.maxFail
	if r.pick.exitFirst {
		limit = 1
	}
	if limit > 0 && len(p.failed) >= limit && p.enough != nil {
		p.stopped = true
		p.enough(errEnough)
	}
}

// remember keeps which tests failed, for --lf.
func (r *runner) remember() {
	p := &r.picked
	if r.covering != nil || len(p.ended) == 0 && len(p.failed) == 0 {
		return
	}
	l := lastFailed{Seed: r.seed, Number: r.n}
	for _, name := range p.last.Failed {
		if !p.ended[name] && !p.failed[name] {
			l.Failed = append(l.Failed, name)
		}
	}
	l.Failed = append(l.Failed, slices.Sorted(maps.Keys(p.failed))...)
	if len(l.Failed) == 0 && len(p.last.Failed) == 0 {
		return
	}
	if err := l.write(); err != nil {
		fmt.Fprintf(r.err, "plumb: which tests failed is not kept: %v\n", err)
	}
}

// epilogue prints what the flags ask for before the counts.
func (r *runner) epilogue() {
	p := &r.picked
	if r.json {
		return
	}
	if r.pick.durations > 0 && len(p.took) > 0 {
		names := slices.SortedFunc(maps.Keys(p.took), func(a, b string) int {
			if d := p.took[b] - p.took[a]; d != 0 {
				return int(min(max(d, -1), 1))
			}
			return strings.Compare(a, b)
		})
		fmt.Fprintf(r.out, "\nslowest tests, time in the reference and the candidates:\n")
		for _, n := range names[:min(len(names), r.pick.durations)] {
			fmt.Fprintf(r.out, "  %8.3fs  %s\n", p.took[n].Seconds(), n)
		}
	}
	if p.stopped {
		fmt.Fprintf(r.out, "\nthe run ended after %s; %s of %d had ended before\n", count(len(p.failed), "failing test"), count(len(p.ended), "test"), r.summary.Tests)
	}
}

// collected is a test as --collect-only --json prints it.
type collected struct {
	Test  string `json:"test"`
	Cases int    `json:"cases"`
	File  string `json:"file,omitempty"`
	Line  int    `json:"line,omitempty"`
	Skip  string `json:"skip,omitempty"`
}

// collect lists the tests that would run, and those that are skipped.
func (r *runner) collect() error {
	if err := errors.Join(r.check(), r.parseDTypes()); err != nil {
		return usage(err)
	}
	if err := r.prepare(); err != nil {
		return usage(err)
	}
	tests, err := r.tests()
	if err != nil {
		return err
	}
	if tests, err = r.choose(tests); err != nil {
		return usage(err)
	}
	var list []collected
	for _, t := range tests {
		c := collected{Test: t.Name, Cases: t.N}
		if d := r.defined[t.Name]; d != nil {
			c.File, c.Line = d.File, d.Line
		}
		list = append(list, c)
	}
	r.printCollected(append(list, r.over...))
	return nil
}

func (r *runner) printCollected(list []collected) {
	if r.json {
		enc := json.NewEncoder(r.out)
		for _, c := range list {
			_ = enc.Encode(c)
		}
		return
	}
	width, cases, skipped := 0, 0, 0
	for _, c := range list {
		width = max(width, len(c.Test))
	}
	for _, c := range list {
		cases += c.Cases
		what := count(c.Cases, "case")
		if c.Skip != "" {
			skipped++
			what = "skipped: " + c.Skip
		}
		if r.pick.quiet {
			fmt.Fprintln(r.out, c.Test)
		} else {
			fmt.Fprintf(r.out, "%-*s  %s\n", width, c.Test, what)
		}
	}
	if !r.pick.quiet {
		fmt.Fprintf(r.out, "\n%s, %s, %d skipped\n", count(len(list)-skipped, "test"), count(cases, "case"), skipped)
	}
}
