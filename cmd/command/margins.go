package command

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/spf13/cobra"

	"plumb/backend"
	"plumb/internal/campaign"
	"plumb/internal/draw/script"
	"plumb/internal/judge"
	"plumb/internal/judge/margins"
	"plumb/internal/judge/verdict"
)

// gauges measure the tests and the limits themselves, beside the verdicts.
type gauges struct {
	judge   *judge.Judge
	power   int                     // cases per test that are sampled
	defined map[string]*script.Test // by the test's name
	log     io.Writer

	margins *margins.Writer // nil for none
	survey  verdict.Survey  // of the test whose records come in
	last    int             // index of the case that was sampled last
	sampled sync.Map        // by lanes: the power of a case by its place
}

// sampledCase is where a case stands.
type sampledCase struct {
	test  string
	index int
}

// sample takes the power of one of the first cases of a test in its lane.
func (g *gauges) sample(rec *verdict.Record) {
	if rec.Index < g.power && rec.Reference.Status == backend.OK {
		g.sampled.Store(sampledCase{rec.Test, rec.Index}, g.powerOf(rec))
	}
}

func (g *gauges) powerOf(rec *verdict.Record) []verdict.Weakness {
	return g.judge.Power(campaign.Job(rec.Program, rec.Reference), rec.Reference)
}

// open starts the file of the margins. That the default one cannot be written
// is no reason not to run.
func (g *gauges) open(s *settings, log io.Writer) error {
	g.power, g.log = s.power, log
	switch s.margins {
	case "none":
		return nil
	case "":
		path, err := margins.Default()
		if err == nil {
			g.margins, err = margins.Create(path)
		}
		g.warn(err)
		return nil
	}
	w, err := margins.Create(s.margins)
	if err != nil {
		return usage(fmt.Errorf("--set margins: %w", err))
	}
	g.margins = w
	return nil
}

func (g *gauges) close() {
	if g.margins != nil {
		g.warn(g.margins.Close())
	}
}

func (g *gauges) warn(err error) {
	if err != nil {
		fmt.Fprintf(g.log, "plumb: the margins of this run are not kept: %v\n", err)
	}
}

// record takes a record's margins and, of the first cases of a test, the power.
func (g *gauges) record(rec *verdict.Record) {
	if g.margins != nil {
		g.margins.Add(rec)
	}
	sampled := g.survey.Len()
	if sampled == g.power || sampled > 0 && g.last == rec.Index || rec.Reference.Status != backend.OK {
		return
	}
	if found, ok := g.sampled.LoadAndDelete(sampledCase{rec.Test, rec.Index}); ok {
		g.survey.Add(rec.Index, found.([]verdict.Weakness))
	} else {
		g.survey.Add(rec.Index, g.powerOf(rec))
	}
	g.last = rec.Index
}

// end gives a test's end what its sampled cases accept, and whether it mostly
// rejects. It reports whether the test is weak for either.
func (g *gauges) end(e *verdict.End) bool {
	e.Weak = g.survey.Weak()
	g.survey = verdict.Survey{}
	t := g.defined[e.Test]
	e.Rejects = e.Err == nil && t != nil && !t.Options.Refusals && e.Mostly()
	return e.Weak != nil || e.Rejects
}

// marginsFlags are what plumb margins is told.
type marginsFlags struct {
	json    bool
	suggest bool
	safety  float64
}

func newMargins() *cobra.Command {
	f := marginsFlags{safety: margins.DefaultSafety}
	cmd := &cobra.Command{
		Use:   "margins [FILE…]",
		Short: "Show how close errors came to their limits, and propose limits",
		Long: `Margins reads a file in which plumb run sums up, for its comparisons, the observed
error divided by the limit. It shows how these ratios are distributed, by
operator, dtype, and value or gradient: first where errors come close to the
limit, with the case that came closest, then where the limit is far too wide.
Without a FILE it reads that of the last run; several are taken as one run.

With --suggest it proposes limits and shows the evidence. It changes nothing.`,
		Example: `  plumb run -n 1000 && plumb margins    the limits of the shipped suites
  plumb run --set margins=mine.jsonl    keep a run's margins in a file
  plumb margins mine.jsonl --suggest    limits that fit it`,
		RunE: func(cmd *cobra.Command, files []string) error { return f.run(cmd.OutOrStdout(), files) },
	}
	fl := cmd.Flags()
	fl.BoolVar(&f.json, "json", false, "one JSON object per row and line")
	fl.BoolVar(&f.suggest, "suggest", false, "propose limits")
	fl.Var(realNumber(&f.safety, 1, 1e6), "safety", "a proposed limit is this many times the largest observed error")
	needs(cmd, "safety", "suggest")
	return cmd
}

func (f *marginsFlags) run(out io.Writer, files []string) error {
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
	_, err = fmt.Fprintln(out, "\nfor limits that fit these errors: plumb margins --suggest")
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
	f, err := openRegular(name)
	if err != nil {
		return err
	}
	defer f.Close()
	return t.Read(name, f)
}
