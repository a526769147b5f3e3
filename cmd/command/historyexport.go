package command

import (
	"encoding/csv"
	"errors"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"plumb/internal/campaign/store"
)

// caseColumns are the columns of exported cases: what each is of a run and a case.
var caseColumns = []struct {
	name string
	of   func(*store.Run, *store.Case) string
}{
	{"run", func(r *store.Run, _ *store.Case) string { return strconv.FormatInt(r.ID, 10) }},
	{"started", func(r *store.Run, _ *store.Case) string { return r.Started.Format(time.RFC3339) }},
	{"command", func(r *store.Run, _ *store.Case) string { return r.Command }},
	{"seed", func(r *store.Run, _ *store.Case) string { return strconv.FormatUint(r.Seed, 10) }},
	{"reference", func(r *store.Run, _ *store.Case) string { return nameOf(r.Reference()) }},
	{"n", func(_ *store.Run, c *store.Case) string { return strconv.FormatInt(c.N, 10) }},
	{"test", func(_ *store.Run, c *store.Case) string { return c.Test }},
	{"case", func(_ *store.Run, c *store.Case) string { return c.Name }},
	{"variant", func(_ *store.Run, c *store.Case) string { return c.Variant }},
	{"number", func(_ *store.Run, c *store.Case) string { return strconv.Itoa(c.Number) }},
	{"program", func(_ *store.Run, c *store.Case) string { return c.Program }},
	{"subject", func(_ *store.Run, c *store.Case) string { return c.Subject }},
	{"mode", func(_ *store.Run, c *store.Case) string { return c.Mode }},
	{"operator", func(_ *store.Run, c *store.Case) string { return strings.Join(c.Operators, " ") }},
	{"dtypes", func(_ *store.Run, c *store.Case) string { return c.DTypes }},
	{"outcome", func(_ *store.Run, c *store.Case) string { return string(c.Outcome) }},
	{"verdict", func(_ *store.Run, c *store.Case) string { return c.Word }},
	{"kind", func(_ *store.Run, c *store.Case) string { return c.Kind }},
	{"compared", func(_ *store.Run, c *store.Case) string { return strconv.Itoa(c.Compared) }},
	{"worst", func(_ *store.Run, c *store.Case) string {
		if math.IsNaN(c.Worst) {
			return ""
		}
		return strconv.FormatFloat(c.Worst, 'g', -1, 64)
	}},
	{"worst_at", func(_ *store.Run, c *store.Case) string { return c.WorstAt }},
	{"seconds", func(_ *store.Run, c *store.Case) string { return secondsOrNone(c.Elapsed) }},
	{"reference_seconds", func(_ *store.Run, c *store.Case) string { return secondsOrNone(c.Reference) }},
	{"reason", func(_ *store.Run, c *store.Case) string { return c.Reason }},
}

func secondsOrNone(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return strconv.FormatFloat(d.Seconds(), 'f', 6, 64)
}

func newHistoryExport() *cobra.Command {
	var h history
	var to string
	cmd := &cobra.Command{
		Use:   "export [RUN…] --csv FILE",
		Short: "Write the cases of runs as a table for other programs",
		Long: `Export writes a line per case of the runs, of all runs without one, as comma
separated values with a line of names first. A number that there is not is empty.`,
		Example: `  plumb history export --csv cases.csv
  plumb history export 3 last --csv cases.csv`,
		Args: cobra.ArbitraryArgs,
	}
	cmd.RunE = h.command(func(h *history, s *store.Store, runs []*store.Run) error { return exportFile(s, runs, to) })
	h.storeFlag(cmd)
	cmd.Flags().Var(outFile(&to), "csv", "the file")
	_ = cmd.MarkFlagRequired("csv")
	return cmd
}

func exportFile(s *store.Store, runs []*store.Run, path string) error {
	if len(runs) == 0 {
		if err := s.Runs(func(r *store.Run) error { runs = append(runs, r); return nil }); err != nil {
			return err
		}
	}
	file, err := os.Create(path)
	if err != nil {
		return usage(err)
	}
	if err = errors.Join(exportCSV(s, runs, file), file.Close()); err != nil {
		return &exitError{exitFault, err}
	}
	return nil
}

// exportCSV writes a line per case, the names of the columns first.
func exportCSV(s *store.Store, runs []*store.Run, out io.Writer) error {
	w := csv.NewWriter(out)
	row := make([]string, len(caseColumns))
	for i, c := range caseColumns {
		row[i] = c.name
	}
	err := w.Write(row)
	for _, r := range runs {
		if err == nil {
			err = s.Cases(r.ID, func(one *store.Case) error {
				for i, c := range caseColumns {
					row[i] = c.of(r, one)
				}
				return w.Write(row)
			})
		}
	}
	w.Flush()
	return errors.Join(err, w.Error())
}
