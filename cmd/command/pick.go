package command

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"plumb/internal/campaign"
	"plumb/suites"
)

// picking are the flags that choose among tests, in the words of pytest.
type picking struct {
	keyword     string
	lastFailed  bool
	failedFirst bool
	collectOnly bool
	exitFirst   bool
	maxFail     int
}

func (f *picking) register(fl *pflag.FlagSet) {
	fl.StringVarP(&f.keyword, "keyword", "k", "", `run the tests whose full name matches this expression of names, and, or, not and (), such as "conv and not transpose"`)
	fl.BoolVar(&f.lastFailed, "lf", false, "run the tests that failed in the last run in this folder, with its seed and -n; all when none failed")
	fl.BoolVar(&f.failedFirst, "ff", false, "run all tests, those that failed in the last run first")
	fl.BoolVar(&f.collectOnly, "collect-only", false, "list the tests instead of running them; with -q only their names")
	fl.BoolVarP(&f.exitFirst, "exitfirst", "x", false, "end the run at the first finding or mistake")
	fl.Var(wholeNumber(&f.maxFail, 1), "maxfail", "end the run when this many tests fail; -x, --exitfirst: at the first finding or mistake")
	fl.Lookup("exitfirst").Hidden = true // told with maxfail
}

// asPytest takes the longer spellings that pytest has.
func asPytest(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	switch name {
	case "last-failed":
		name = "lf"
	case "failed-first":
		name = "ff"
	}
	return pflag.NormalizedName(name)
}

// restrict says which flags have no meaning beside these.
func (f *picking) restrict(cmd *cobra.Command) {
	cmd.Flags().SetNormalizeFunc(asPytest)
	bars(cmd, "ff", "lf")
	bars(cmd, "exitfirst", "maxfail")
	bars(cmd, "collect-only", "exitfirst", "maxfail", "seed", "shapes", "for", "candidate", "jobs", "python", "device", "set", "tolerance", "check-graph", "known", "verbose", "junit", "html", "color", "durations", "record", "store", "report", "markdown", "no-capture")
}

// limit is the number of failing tests at which the run ends; 0 for none.
func (f *picking) limit() int {
	if f.exitFirst {
		return 1
	}
	return f.maxFail
}

// selection chooses among tests as the command line says.
type selection struct {
	picking
	ids     []string // asked for, as "file::Class::test"
	matches keyword
	names   []string // of every test that was loaded, selected or not
	last    lastFailed
	seed    uint64 // of the run
	log     io.Writer
}

// newSelection reads the flags, and what failed last time.
func newSelection(f picking, ids []string, log io.Writer) (*selection, error) {
	s := &selection{picking: f, ids: ids, log: log}
	var err error
	if s.matches, err = parseKeyword(f.keyword); err != nil {
		return nil, err
	}
	s.last, err = readLastFailed()
	if err != nil && (f.lastFailed || f.failedFirst) {
		fmt.Fprintf(log, "plumb: which tests failed last time is not known: %v\n", err)
	}
	return s, nil
}

// settle gives the drawing its seed, and with --lf and --ff the seed and the
// number of cases of the earlier run, where the command line gives none.
func (s *selection) settle(d *drawing) {
	var earlier *uint64
	if (s.lastFailed || s.failedFirst) && len(s.last.Failed) > 0 {
		earlier = &s.last.Seed
		if d.n == 0 {
			d.n = s.last.Number
		}
		d.shapes = cmp.Or(d.shapes, s.last.Shapes)
	}
	d.settle(earlier)
	s.seed = d.seed
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

// wanted reports whether the command line selects a test, and notes its name.
func (s *selection) wanted(name string) bool {
	s.names = append(s.names, name)
	return s.matches(name) && s.asked(name)
}

// asked reports whether a test is one of those that were asked for by name. A
// file without such a name is asked for as a whole.
func (s *selection) asked(name string) bool {
	file, _, _ := strings.Cut(name, "::")
	whole := true
	for _, id := range s.ids {
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

// choose returns the tests that the command line selects, and tells of those
// that skip themselves.
func (s *selection) choose(l *loaded) (tests []campaign.Test, skipped []collected, err error) {
	for _, t := range l.skipped {
		if s.wanted(t.Name) {
			skipped = append(skipped, collected{Test: t.Name, File: t.File, Line: t.Line, Skip: t.Skip})
			fmt.Fprintf(s.log, "plumb: %s:%d: %s is skipped: %s\n", t.File, t.Line, t.Name, t.Skip)
		}
	}
	for _, t := range l.tests {
		if s.wanted(t.Name) {
			tests = append(tests, t)
		}
	}
	for _, id := range s.ids {
		if !slices.ContainsFunc(s.names, func(n string) bool { return selects(id, n) }) {
			return nil, nil, s.noSuch(fmt.Sprintf("there is no test %s", id), id)
		}
	}
	if len(tests)+len(skipped) == 0 {
		return nil, nil, s.selectsNothing()
	}
	return s.again(tests), skipped, nil
}

// selectsNothing says which part of the selection no test has.
func (s *selection) selectsNothing() error {
	if !slices.ContainsFunc(s.names, s.matches) {
		return noneSelected{s.noSuch(fmt.Sprintf("no test's name matches -k %q", s.keyword), longestWord(s.keyword))}
	}
	return noneSelected{errors.New("no test is selected by both -k and the names that are given")}
}

// noSuch adds the names that are spelled alike.
func (s *selection) noSuch(message, name string) error {
	if like := near(name, s.names); len(like) > 0 {
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
func (s *selection) again(tests []campaign.Test) []campaign.Test {
	if !s.lastFailed && !s.failedFirst {
		return tests
	}
	var failed, others []campaign.Test
	for _, t := range tests {
		if slices.Contains(s.last.Failed, t.Name) {
			failed = append(failed, t)
		} else {
			others = append(others, t)
		}
	}
	switch {
	case len(failed) == 0:
		fmt.Fprintf(s.log, "plumb: none of these tests failed last time: running all\n")
		return tests
	case s.failedFirst:
		fmt.Fprintf(s.log, "plumb: first %s that failed last time, seed %d\n", count(len(failed), "test"), s.seed)
		return append(failed, others...)
	}
	fmt.Fprintf(s.log, "plumb: %s of %d that failed last time, seed %d\n", count(len(failed), "test"), len(tests), s.seed)
	return failed
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
