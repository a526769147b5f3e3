package command

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"plumb/backend/open"
	"plumb/internal/campaign"
)

// runCommand is plumb run: the tests of files, or of the shipped suites.
type runCommand struct {
	*session
	picking picking
}

func newRun() *cobra.Command {
	r := &runCommand{session: newSession(drawingKeys...)}
	return r.command()
}

func (r *runCommand) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run [FILE[::CLASS][::TEST]…]",
		Short: "Draw random cases from test files, run them on reference and candidates, compare",
		Long: `Run draws random programs from PyTorch-style tests, runs each forward and
backward on the reference and on the candidates, and compares every tensor.

A FILE is a test file, a folder, which stands for the test_*.py in it and below,
or a program as printed for a finding.
FILE::TEST, FILE::CLASS::TEST and FILE::CLASS choose tests of a file, by the names
that --collect-only lists. Without a FILE the shipped suites run (and by the word
suites, where no folder has that name); on a machine without PyTorch, its recorded
results are the reference.

To draw cases without a test file: plumb ops run, plumb graph run.`,
		Example: `  plumb run                                   the shipped suites
  plumb run my_test.py -n 200 --seed 7        200 cases a test, the same every time
  plumb run my_test.py::TestConv::test_1d     one test; also my_test.py::TestConv
  plumb run -k 'conv and not transpose'       tests by name: and, or, not, ()
  plumb run -k conv --collect-only -q         their names, without running them
  plumb run -x                                end at the first finding
  plumb run --lf                              what failed last time, with its seed
  plumb run --durations 10 -q                 the counts and the slowest tests only
  plumb run finding.py                        one saved program again
  plumb run --set oracle=off --set power=0    quicker, with fewer checks
  plumb run --json | tail -1                  the summary, for machines
  plumb run --junit plumb.xml                 the cases, for CI systems`,
		RunE: func(cmd *cobra.Command, files []string) error {
			r.attach(cmd)
			return r.run(cmd.Context(), files)
		},
	}
	group(cmd, whichCases, func(fl *pflag.FlagSet) {
		r.cases.register(fl)
		r.cases.registerDTypes(fl)
		r.picking.register(fl)
		budgetFlag(fl, &r.progress.budget.Budget, "each has one, then those")
	})
	group(cmd, whatPrinted, func(fl *pflag.FlagSet) {
		fl.BoolVarP(&r.cases.printed.atOnce, "no-capture", "s", false, "show at once what tests print, with the test and case; without the flag it is shown for cases that fail")
	})
	r.subjects.register(cmd)
	group(cmd, whichSubjects, func(fl *pflag.FlagSet) {
		fl.StringVar(&r.subjects.device, "device", r.subjects.device, "the device that random_device() gives")
		fl.BoolVar(&r.cases.strict, "device-strict", false, "tests that name an accelerator, such as \"cuda\", are unsupported in a run without it; without the flag they run on the CPU, with a note")
	})
	r.judging.register(cmd)
	r.reports.register(cmd)
	r.picking.restrict(cmd)
	bars(cmd, "for", "number")
	return guarded(cmd)
}

func (r *runCommand) run(ctx context.Context, args []string) error {
	tests, err := r.prepare(ctx, args)
	if err != nil {
		return err
	}
	defer r.cases.sigs.Close()
	if r.picking.collectOnly {
		return nil
	}
	return r.session.run(ctx, "plumb run", tests)
}

// prepare opens the subjects and returns the tests that are selected; with
// --collect-only it lists them instead.
func (r *runCommand) prepare(ctx context.Context, args []string) ([]campaign.Test, error) {
	if len(args) == 0 {
		var err error
		if args, err = filesOf(projectSources()); err != nil {
			return nil, usage(err)
		}
	}
	files, ids := splitIDs(args)
	selection, err := newSelection(r.picking, ids, r.err)
	if err != nil {
		return nil, usage(err)
	}
	r.selection, r.progress.limit = selection, r.picking.limit()
	selection.settle(&r.cases)
	if r.picking.collectOnly {
		r.cases.sigs = &signatures{}
	} else if err := r.open(ctx, len(files) == 0); err != nil {
		return nil, err
	}
	return r.choose(files)
}

// choose loads the files and selects tests of them.
func (r *runCommand) choose(files []string) ([]campaign.Test, error) {
	l, err := r.load(files)
	if err != nil {
		return nil, usage(err)
	}
	tests, skipped, err := r.selection.choose(l)
	if err == nil {
		err = r.effective(l, tests)
	}
	if err != nil {
		return nil, mistake(err)
	}
	r.skipped, r.gauges.defined, r.progress.saved = skipped, l.defined, l.saved == len(l.tests)
	r.observers = append(r.observers, &explainer{defined: l.defined, candidates: len(r.subjects.candidates)})
	if r.picking.collectOnly {
		var list []collected
		for _, t := range tests {
			c := collected{Test: t.Name, Cases: t.N}
			if d := l.defined[t.Name]; d != nil {
				c.File, c.Line = d.File, d.Line
			}
			list = append(list, c)
		}
		printCollected(r.out, append(list, skipped...), r.reports.json, r.reports.quiet)
	}
	return tests, nil
}

// load loads the files, or what runs without any.
func (r *runCommand) load(files []string) (*loaded, error) {
	if len(files) == 0 {
		return r.cases.shipped(&r.subjects)
	}
	l, err := r.cases.files(files)
	if err != nil {
		return nil, err
	}
	for _, n := range l.notes {
		fmt.Fprintf(r.err, "plumb: %s\n", n)
	}
	return l, nil
}

// effective refuses flags about drawing where nothing is drawn: a saved program
// and a recorded case are as they are.
func (r *runCommand) effective(l *loaded, tests []campaign.Test) error {
	drawn := len(tests) == 0
	for _, t := range tests {
		drawn = drawn || l.defined[t.Name] != nil
	}
	switch {
	case drawn:
	case r.cases.shapes != "" && !r.soft("shapes") && !r.selection.lastFailed && !r.selection.failedFirst:
		return errors.New("--shapes has no effect: saved programs and recorded cases are as they were drawn")
	case r.cases.dtypes != nil && !r.soft("dtype"):
		return errors.New("--dtype has no effect: saved programs and recorded cases are as they were drawn")
	case r.subjects.device != newSubjects().device && !r.soft("device"):
		return errors.New("--device has no effect: saved programs and recorded cases are as they were drawn")
	case r.judging.asked("tensor.max"):
		return errors.New("--set tensor.max has no effect: saved programs and recorded cases are as they were drawn")
	case r.cases.n > 0 && !r.soft("number") && !open.IsRecorded(r.subjects.reference) && !r.selection.lastFailed && !r.selection.failedFirst:
		return errors.New("-n has no effect: a saved program is one case")
	}
	return nil
}
