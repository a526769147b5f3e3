package command

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"plumb/internal/campaign/store"
	"plumb/internal/parquet"
)

// caseColumns are the columns of exported cases: what each is of a run and a case.
// A time.Duration is seconds; nil is none.
var caseColumns = []struct {
	parquet.Column
	of func(*store.Run, *store.Case) any
}{
	{parquet.Column{Name: "run"}, func(r *store.Run, _ *store.Case) any { return r.ID }},
	{parquet.Column{Name: "started", Type: parquet.Time}, func(r *store.Run, _ *store.Case) any { return r.Started }},
	{textColumn("command"), func(r *store.Run, _ *store.Case) any { return r.Command }},
	{parquet.Column{Name: "seed", Type: parquet.Uint64}, func(r *store.Run, _ *store.Case) any { return r.Seed }},
	{textColumn("reference"), func(r *store.Run, _ *store.Case) any { return r.Reference().String() }},
	{parquet.Column{Name: "n"}, func(_ *store.Run, c *store.Case) any { return c.N }},
	{textColumn("test"), func(_ *store.Run, c *store.Case) any { return c.Test }},
	{textColumn("case"), func(_ *store.Run, c *store.Case) any { return c.Name }},
	{textColumn("variant"), func(_ *store.Run, c *store.Case) any { return c.Variant }},
	{parquet.Column{Name: "number"}, func(_ *store.Run, c *store.Case) any { return int64(c.Number) }},
	{textColumn("program"), func(_ *store.Run, c *store.Case) any { return c.Program }},
	{textColumn("subject"), func(_ *store.Run, c *store.Case) any { return c.Subject }},
	{textColumn("mode"), func(_ *store.Run, c *store.Case) any { return c.Mode }},
	{textColumn("operator"), func(_ *store.Run, c *store.Case) any { return strings.Join(c.Operators, " ") }},
	{textColumn("dtypes"), func(_ *store.Run, c *store.Case) any { return c.DTypes }},
	{textColumn("outcome"), func(_ *store.Run, c *store.Case) any { return string(c.Outcome) }},
	{textColumn("verdict"), func(_ *store.Run, c *store.Case) any { return c.Word }},
	{textColumn("kind"), func(_ *store.Run, c *store.Case) any { return c.Kind }},
	{parquet.Column{Name: "compared"}, func(_ *store.Run, c *store.Case) any { return int64(c.Compared) }},
	{optionalNumber("worst"), func(_ *store.Run, c *store.Case) any {
		if math.IsNaN(c.Worst) {
			return nil
		}
		return c.Worst
	}},
	{textColumn("worst_at"), func(_ *store.Run, c *store.Case) any { return c.WorstAt }},
	{optionalNumber("seconds"), func(_ *store.Run, c *store.Case) any { return timeOrNone(c.Elapsed) }},
	{optionalNumber("reference_seconds"), func(_ *store.Run, c *store.Case) any { return timeOrNone(c.Reference) }},
	{textColumn("reason"), func(_ *store.Run, c *store.Case) any { return c.Reason }},
}

func textColumn(name string) parquet.Column { return parquet.Column{Name: name, Type: parquet.String} }

func optionalNumber(name string) parquet.Column {
	return parquet.Column{Name: name, Type: parquet.Float64, Optional: true}
}

func timeOrNone(d time.Duration) any {
	if d == 0 {
		return nil
	}
	return d
}

func newHistoryExport() *cobra.Command {
	var h history
	var csvFile, parquetFile string
	cmd := &cobra.Command{
		Use:   "export [RUN…] --csv FILE | --parquet FILE",
		Short: "Write the cases of runs as a table for other programs",
		Long: `Export writes a row per case of the runs, of all runs without one: as comma
separated values with a line of names first, where a number that there is not is
empty, or as Parquet, where it is null.`,
		Example: `  plumb history export --csv cases.csv
  plumb history export 3 last --parquet cases.parquet`,
		Args: cobra.ArbitraryArgs,
	}
	cmd.RunE = h.command(func(_ *history, s *store.Store, runs []*store.Run) error {
		if len(runs) == 0 {
			if err := s.Runs(func(r *store.Run) error { runs = append(runs, r); return nil }); err != nil {
				return err
			}
		}
		for _, to := range []struct {
			path  string
			write exporter
		}{{csvFile, exportCSV}, {parquetFile, exportParquet}} {
			if to.path != "" {
				if err := exportFile(s, runs, to.path, to.write); err != nil {
					return err
				}
			}
		}
		return nil
	})
	h.storeFlag(cmd)
	cmd.Flags().Var(outFile(&csvFile), "csv", "write comma separated values to this file")
	cmd.Flags().Var(outFile(&parquetFile), "parquet", "write a Parquet file, for pandas, DuckDB and others")
	cmd.MarkFlagsOneRequired("csv", "parquet")
	return cmd
}

// exporter writes the cases of runs.
type exporter func(*store.Store, []*store.Run, io.Writer) error

func exportFile(s *store.Store, runs []*store.Run, path string, export exporter) error {
	file, err := os.Create(path)
	if err != nil {
		return usage(err)
	}
	if err = errors.Join(export(s, runs, file), file.Close()); err != nil {
		return &exitError{exitFault, err}
	}
	return nil
}

// exportCSV writes a line per case, the names of the columns first.
func exportCSV(s *store.Store, runs []*store.Run, out io.Writer) error {
	w := csv.NewWriter(out)
	names := make([]string, len(caseColumns))
	for i, c := range caseColumns {
		names[i] = c.Name
	}
	line := make([]string, len(caseColumns))
	err := cmp.Or(w.Write(names), eachRow(s, runs, func(row []any) error {
		for i, v := range row {
			line[i] = field(v)
		}
		return w.Write(line)
	}))
	w.Flush()
	return errors.Join(err, w.Error())
}

// field is a value in a line.
func field(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case time.Time:
		return v.Format(time.RFC3339)
	case time.Duration:
		return strconv.FormatFloat(v.Seconds(), 'f', 6, 64)
	default:
		return fmt.Sprint(v)
	}
}

// exportParquet writes a row per case.
func exportParquet(s *store.Store, runs []*store.Run, out io.Writer) error {
	buffered := bufio.NewWriter(out)
	columns := make([]parquet.Column, len(caseColumns))
	for i, c := range caseColumns {
		columns[i] = c.Column
	}
	w, err := parquet.NewWriter(buffered, columns)
	if err != nil {
		return err
	}
	err = eachRow(s, runs, func(row []any) error {
		for i, v := range row {
			if d, ok := v.(time.Duration); ok {
				row[i] = d.Seconds()
			}
		}
		return w.Write(row)
	})
	return errors.Join(err, w.Close(), buffered.Flush())
}

// eachRow hands the values of each case of the runs on, in one row that is used again.
func eachRow(s *store.Store, runs []*store.Run, each func(row []any) error) error {
	row := make([]any, len(caseColumns))
	for _, r := range runs {
		err := s.Cases(r.ID, func(one *store.Case) error {
			for i, c := range caseColumns {
				row[i] = c.of(r, one)
			}
			return each(row)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
