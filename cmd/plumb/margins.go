package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"plumb/backend"
	"plumb/internal/campaign"
	"plumb/internal/judge/margins"
	"plumb/internal/judge/verdict"
)

// gauges measure the tests and the limits themselves, beside the verdicts.
type gauges struct {
	margins *margins.Writer // nil for none
	survey  verdict.Survey  // of the test whose records come in
	last    int             // index of the case that was sampled last
}

// openMargins starts the file that --margins names. That the default one
// cannot be written is no reason not to run.
func (r *runner) openMargins() error {
	path := r.margins
	given := r.flags.Flags().Changed("margins")
	switch {
	case path == "none" || path == "" && given:
		return nil
	case given:
		w, err := margins.Create(path)
		if err != nil {
			return usage(fmt.Errorf("--margins: %w", err))
		}
		r.gauges.margins = w
		return nil
	}
	path, err := margins.Default()
	if err == nil {
		r.gauges.margins, err = margins.Create(path)
	}
	r.warnMargins(err)
	return nil
}

func (r *runner) closeMargins() {
	if w := r.gauges.margins; w != nil {
		r.warnMargins(w.Close())
	}
}

func (r *runner) warnMargins(err error) {
	if err != nil {
		fmt.Fprintf(r.err, "plumb: the margins of this run are not kept: %v\n", err)
	}
}

// gauge takes a record's margins and, of the first cases of a test, the power.
func (r *runner) gauge(rec *verdict.Record) {
	g := &r.gauges
	if g.margins != nil {
		g.margins.Add(rec)
	}
	sampled := g.survey.Len()
	if sampled == r.power || sampled > 0 && g.last == rec.Index || rec.Reference.Status != backend.OK {
		return
	}
	g.survey.Add(rec.Index, r.judge.Power(campaign.Job(rec.Program, rec.Reference), rec.Reference))
	g.last = rec.Index
}

// weigh gives a test's end what its sampled cases accept, and whether it mostly
// rejects.
func (r *runner) weigh(e *verdict.End) {
	e.Weak = r.gauges.survey.Weak()
	r.gauges.survey = verdict.Survey{}
	t := r.defined[e.Test]
	e.Rejects = e.Err == nil && t != nil && !t.Options.Refusals && e.Mostly()
	if e.Weak != nil || e.Rejects {
		r.summary.Weak++
	}
}

// marginsFlags are what plumb margins is told.
type marginsFlags struct {
	json    bool
	suggest bool
	safety  float64
}

func newMargins() *cobra.Command {
	var f marginsFlags
	cmd := &cobra.Command{
		Use:   "margins [FILE…]",
		Short: "Show how near comparisons came to their limits, and what limits the data support",
		Long: `Margins reads what plumb run keeps of every comparison, the observed error divided
by its limit, and shows per operator, dtype and part how it is spread: thin
margins first, then limits far too wide. Without files it reads the last run's.

With --suggest it proposes limits with their evidence. It changes nothing.`,
		Example: `  plumb run -n 1000 && plumb margins    the limits of the shipped suites
  plumb run --margins mine.jsonl        keep a run's margins in a file
  plumb margins mine.jsonl --suggest    the limits that it supports`,
		RunE: func(cmd *cobra.Command, files []string) error { return f.run(cmd.OutOrStdout(), files) },
	}
	fl := cmd.Flags()
	fl.BoolVar(&f.json, "json", false, "one JSON object per row and line")
	fl.BoolVar(&f.suggest, "suggest", false, "propose limits")
	fl.Float64Var(&f.safety, "safety", margins.DefaultSafety, "a proposed limit is this many times the largest observed error")
	return cmd
}

func (f *marginsFlags) run(out io.Writer, files []string) error {
	if !(f.safety >= 1 && f.safety <= 1e6) {
		return usage(fmt.Errorf("--safety %g: want a number from 1 to 1e6", f.safety))
	}
	t, err := readMargins(files)
	if err != nil {
		return usage(err)
	}
	rows := t.Rows()
	if f.suggest {
		margins.Suggest(rows, f.safety)
	}
	if f.json {
		return fault(margins.JSON(out, rows))
	}
	if err := margins.Print(out, rows); err != nil || f.suggest {
		return fault(err)
	}
	_, err = fmt.Fprintln(out, "\nfor limits that these data support: plumb margins --suggest")
	return fault(err)
}

func fault(err error) error {
	if err == nil {
		return nil
	}
	return &exitError{exitFault, err}
}

func readMargins(files []string) (*margins.Table, error) {
	if len(files) == 0 {
		last, err := lastMargins()
		if err != nil {
			return nil, err
		}
		files = []string{last}
	}
	t := &margins.Table{}
	for _, name := range files {
		if err := readMarginsFile(name, t); err != nil {
			return nil, err
		}
	}
	if t.Count() == 0 {
		return nil, fmt.Errorf("%s: no comparison was made", files[0])
	}
	return t, nil
}

func lastMargins() (string, error) {
	path, err := margins.Default()
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("%s: no run has left margins yet; this makes one: plumb run", path)
	}
	return path, nil
}

func readMarginsFile(name string, t *margins.Table) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	return margins.Read(name, f, t.Add)
}
