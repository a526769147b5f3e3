package command

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"plumb/internal/campaign/store"
)

func newDB() *cobra.Command {
	return parent(&cobra.Command{
		Use:   "db",
		Short: "The file of the results store: where it is, whether it is sound, its cases for other programs",
	}, newDBPath(), newDBCheck(), newDBVacuum(), newDBExport())
}

func newDBPath() *cobra.Command {
	var keep campaignStore
	cmd := &cobra.Command{
		Use:   "path",
		Short: "Print the path of the results store",
		Example: `  plumb db path
  ls -l "$(plumb db path)"`,
		Args: noArguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			path, err := keep.named()
			if err == nil {
				fmt.Fprintln(cmd.OutOrStdout(), path)
			}
			return err
		},
	}
	keep.flag(cmd.Flags())
	return cmd
}

func newDBCheck() *cobra.Command {
	var keep campaignStore
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Tell whether the store is sound, and its counts are those of its cases",
		Example: `  plumb db check
  plumb db check --store nightly.db`,
		Args: noArguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return keep.with(store.Read, func(db *store.Store, path string) error {
				if err := db.Check(); err != nil {
					return &exitError{exitFault, err}
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%s is sound\n", path)
				return nil
			})
		},
	}
	keep.of(cmd.Flags())
	return cmd
}

func newDBVacuum() *cobra.Command {
	var keep campaignStore
	cmd := &cobra.Command{
		Use:     "vacuum",
		Short:   "Give the room of what was deleted back to the file system",
		Example: `  plumb history rm --older-than 90d && plumb db vacuum`,
		Args:    noArguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return keep.with(openStored, func(db *store.Store, path string) error {
				before := sizeOf(path)
				if err := db.Vacuum(); err != nil {
					return &exitError{exitFault, err}
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%s: %d KB, before %d KB\n", path, sizeOf(path)>>10, before>>10)
				return nil
			})
		},
	}
	keep.of(cmd.Flags())
	return cmd
}

// with opens the store for one thing to be done with it.
func (c *campaignStore) with(open func(path string) (*store.Store, error), do func(db *store.Store, path string) error) error {
	path, err := c.named()
	if err != nil {
		return err
	}
	db, err := open(path)
	if err != nil {
		return usage(err)
	}
	defer db.Close()
	return do(db, path)
}

// openStored opens a store that exists.
func openStored(path string) (*store.Store, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	return store.Open(path)
}

func sizeOf(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

func newDBExport() *cobra.Command {
	var keep campaignStore
	format := "csv"
	cmd := &cobra.Command{
		Use:   "export RUN",
		Short: "Print the cases of a run or a campaign as CSV, as a JSON object a line, or as Parquet",
		Example: `  plumb db export last > cases.csv
  plumb db export 12 --format parquet > cases.parquet`,
		Args: takes(1, 1, "one run, by its number or last"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return keep.with(store.Read, func(db *store.Store, _ string) error {
				run, err := db.Run(args[0])
				if err != nil {
					return usage(err)
				}
				export := map[string]exporter{"csv": exportCSV, "jsonl": exportLines, "parquet": exportParquet}[format]
				if err := export(db, []*store.Run{run}, cmd.OutOrStdout()); err != nil {
					return &exitError{exitFault, err}
				}
				return nil
			})
		},
	}
	keep.of(cmd.Flags())
	cmd.Flags().Var(oneOf(&format, "csv", "jsonl", "parquet"), "format", "csv, jsonl or parquet")
	return cmd
}

// exportLines writes a JSON object per case and line.
func exportLines(s *store.Store, runs []*store.Run, out io.Writer) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	for _, r := range runs {
		if err := s.Cases(r.ID, func(c *store.Case) error { return enc.Encode(storedResultOf(c)) }); err != nil {
			return err
		}
	}
	return nil
}
