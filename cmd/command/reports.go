package command

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"plumb/internal/campaign/report"
)

// reports say what a command prints of its cases and where it keeps them.
type reports struct {
	verbose   int // a line per test, or per case
	quiet     bool
	json      bool
	junit     string
	durations int
	record    string
	kept      keeping
	color     colours
	filed     filed
}

func (f *reports) register(cmd *cobra.Command) {
	group(cmd, whatPrinted, func(fl *pflag.FlagSet) {
		fl.CountVarP(&f.verbose, "verbose", "v", "a line per test, with what is weak and what is unsupported; -vv a line per case too")
		fl.BoolVarP(&f.quiet, "quiet", "q", false, "print findings and the counts only")
		colorFlag(fl, &f.color)
		jsonFlag(fl, &f.json, "one JSON object per case and line, the summary last")
		fl.Var(outFile(&f.junit), "junit", "write JUnit XML for CI systems to this file: a testsuite per test")
		fl.Var(wholeNumber(&f.durations, 1), "durations", "print this many tests, those that ran longest on reference and candidates")
		f.filed.flags(fl, "findings with pictures, coverage, limits, tests and cases")
		f.kept.flag(fl)
		fl.Var(outFile(&f.record), "record", "save the cases and the reference's results in this file, for --reference recorded:FILE")
	})
	bars(cmd, "json", "verbose", "durations")
	bars(cmd, "quiet", "verbose")
}

func colorFlag(fl *pflag.FlagSet, to *colours) {
	*to = auto
	fl.Var(oneOf(to, auto, always, never), "color", "paint what is printed: auto does on a terminal, unless NO_COLOR is set")
}

// sink is the printer; brief where findings are made smaller afterwards.
func (f *reports) sink(out io.Writer, brief bool) report.Sink {
	if f.json {
		return report.NewJSON(out)
	}
	return &report.Console{W: out, Color: f.color.paint(out), Width: widthOf(out), Tests: f.verbose > 0, Verbose: f.verbose > 1, Quiet: f.quiet, Brief: brief}
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
func closeJUnit(j *report.JUnit, err error, log io.Writer) error {
	werr := j.Close()
	if werr == nil {
		return err
	}
	if err == nil {
		return &exitError{exitFault, fmt.Errorf("--junit: %w", werr)}
	}
	fmt.Fprintf(log, "plumb: --junit: %v\n", werr)
	return err
}
