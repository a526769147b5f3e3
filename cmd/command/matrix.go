package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"plumb/backend/open"
	"plumb/internal/campaign/report"
	"plumb/internal/campaign/report/page"
	"plumb/internal/judge/verdict"
)

// matrixRun is plumb matrix: operators' cases as plumb ops run has them, and
// another report.
type matrixRun struct {
	*opsRun
	asJSON, asCSV bool
	matrix        *report.Matrix
}

func newMatrix() *cobra.Command {
	r := &matrixRun{opsRun: &opsRun{session: newSession()}}
	r.judging.sameException = true
	r.judging.settings = newSettings(slices.DeleteFunc(slices.Clone(judgeKeys), func(k string) bool { return k == "power" }))
	r.judging.shrink.Runs, r.judging.power = 0, 0
	cmd := &cobra.Command{
		Use:   "matrix PATTERN… | FILE.jsonl…",
		Short: "Print operators × subjects: what each has, how much of it is aligned, worst error, time",
		Long: `Matrix draws cases for the operators whose name matches one of the patterns, as
plumb ops run does, and prints a table: of each operator and candidate the share
of its cases that is aligned, the largest error ÷ limit, and the time relative to
the reference's. A case counts for the operator that it is drawn for. Files are
the records of earlier runs of plumb ops run --json against one reference; their
candidates come side by side. What shows a finding: plumb ops run.`,
		Example: `  plumb matrix 'conv*' --candidate native,jax,jax:jit -n 5
  plumb matrix '*' --candidate oneflow --csv > oneflow.csv
  plumb matrix oneflow.jsonl paddle.jsonl`,
		Args: atLeastOne("a pattern of operators' names, such as 'conv*' or '*', or files of records"),
		RunE: func(cmd *cobra.Command, args []string) error {
			r.attach(cmd)
			files := slices.IndexFunc(args, isRecords) >= 0
			if !files {
				return r.draw(cmd.Context(), args)
			}
			if err := r.checkFiles(cmd, args); err != nil {
				return usage(err)
			}
			return r.read(args)
		},
	}
	group(cmd, whichCases, r.chooses)
	r.subjects.register(cmd)
	r.judging.register(cmd)
	group(cmd, whatPrinted, func(fl *pflag.FlagSet) {
		jsonFlag(fl, &r.asJSON, "print the matrix as one object")
		fl.BoolVar(&r.asCSV, "csv", false, "print a line of each operator and candidate, by commas")
		r.reports.filed.flags(fl, "the matrix, what differs with pictures, every case")
		r.reports.kept.flag(fl)
	})
	bars(cmd, "json", "csv")
	r.picking.restrict(cmd)
	return cmd
}

// isRecords reports whether an argument names a file of records; no operator's
// name ends so.
func isRecords(arg string) bool {
	return slices.Contains([]string{".json", ".jsonl"}, filepath.Ext(arg))
}

// checkFiles refuses what means nothing where nothing is run.
func (r *matrixRun) checkFiles(cmd *cobra.Command, args []string) (err error) {
	if at := slices.IndexFunc(args, func(a string) bool { return !isRecords(a) }); at >= 0 {
		return fmt.Errorf("%s is no file of records, and %s is one: give patterns or files", args[at], args[slices.IndexFunc(args, isRecords)])
	}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if f.Name != "json" && f.Name != "csv" && err == nil {
			err = fmt.Errorf("--%s has no effect on records of earlier runs", f.Name)
		}
	})
	return err
}

// draw judges the operators' cases.
func (r *matrixRun) draw(ctx context.Context, patterns []string) error {
	r.matrix = report.NewMatrix(r.subjects.candidates...)
	r.sink, r.reports.json = &matrixSink{Matrix: r.matrix, run: r}, r.asJSON || r.asCSV
	return r.opsRun.run(ctx, patterns)
}

// matrixSink prints the matrix at the end of a run.
type matrixSink struct {
	*report.Matrix
	run   *matrixRun
	ended int
}

// End says what could not be judged, and on a terminal how far the run is.
func (s *matrixSink) End(e *verdict.End) {
	s.clear()
	if e.Err != nil {
		fmt.Fprintln(s.run.err, "plumb:", report.ErrorText(e.Err))
	}
	if s.ended++; isTerminal(s.run.err) {
		fmt.Fprintf(s.run.err, "%d of %s", s.ended, count(len(s.run.cfg.Tests), "test"))
	}
}

func (s *matrixSink) clear() {
	if isTerminal(s.run.err) {
		fmt.Fprint(s.run.err, "\r\x1b[K")
	}
}

// Summary prints the matrix.
func (s *matrixSink) Summary(sum *report.Summary) {
	s.clear()
	s.Matrix.Summary(sum)
	s.run.reports.filed.section(s.run.section())
	if err := s.run.print(); err != nil {
		fmt.Fprintln(s.run.err, "plumb:", err)
	}
}

// read prints the matrix of earlier runs.
func (r *matrixRun) read(names []string) error {
	var files []io.Reader
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			return usage(err)
		}
		defer f.Close()
		files = append(files, f)
	}
	var err error
	if r.matrix, err = report.ReadMatrix(files...); err != nil {
		return usage(err)
	}
	if err := r.print(); err != nil {
		return &exitError{exitFault, err}
	}
	if r.matrix.Wrong() > 0 {
		return &exitError{exitFindings, nil}
	}
	return nil
}

func (r *matrixRun) print() error {
	switch {
	case len(r.matrix.Operators) == 0:
		return errors.New("no case was judged")
	case r.asJSON:
		return r.matrix.JSON(r.out)
	case r.asCSV:
		return r.matrix.CSV(r.out)
	}
	screen := report.NewScreen(r.out, widthOf(r.out))
	r.matrix.Text(screen, columns(r.out), r.labels())
	return screen.Flush()
}

// section is the matrix on a page.
func (r *matrixRun) section() page.Section {
	head, rows := r.matrix.Table(r.labels())
	return page.Section{Title: "Operators × subjects", Intro: report.MatrixLegend, Head: head, Rows: rows}
}

// labels are the subjects' names, without their Pythons where these tell
// nothing apart.
func (r *matrixRun) labels() []string {
	var short []string
	for _, s := range r.matrix.Subjects {
		spec := open.ParseSpec(s.Subject)
		if spec.IsFramework() || spec.IsTorch() {
			spec.Path = ""
		}
		short = append(short, spec.String())
	}
	labels := slices.Clone(short)
	for i := range short {
		for k := range i {
			if short[i] == short[k] {
				labels[i], labels[k] = r.matrix.Subjects[i].Subject, r.matrix.Subjects[k].Subject
			}
		}
	}
	return labels
}

// columns is how wide the screen is.
func columns(out io.Writer) int {
	const usual = 100
	if t, ok := out.(*inTurn); ok {
		out = t.w
	}
	f, ok := out.(descriptor)
	if !ok {
		return usual
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return usual
	}
	return cmp.Or(width, usual)
}
