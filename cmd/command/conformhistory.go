package command

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"plumb/internal/campaign/report"
	"plumb/internal/campaign/store"
	"plumb/internal/judge/verdict"
)

type conformHistory struct {
	path string
	diff bool
	json bool
	out  *bufio.Writer
}

func newConformHistory() *cobra.Command {
	var h conformHistory
	cmd := &cobra.Command{
		Use:   "history [RUN | --diff RUN RUN]",
		Short: "List, show or compare the runs of a results store",
		Long: `History shows the runs that plumb conform run --store has kept. Without a RUN it
prints a line per run: how many functions the candidate implements and how many
cases pass. With a RUN (its number, or "last") it prints the tables of functions
and dtypes and what failed; with --diff and two RUNs, the cases whose verdict
changed from the first to the second.

With --diff the exit code is 1 where a case fails that did not fail before, 5
where none does and a case that was judged is not, or the runs have no case in
common, else 0.`,
		Example: `  plumb conform history --store results.db
  plumb conform history --store results.db last
  plumb conform history --store results.db --diff 3 last
  plumb conform history --store results.db last --json`,
		Args: takes(0, 2, "one RUN, or two with --diff"),
		RunE: func(cmd *cobra.Command, args []string) error {
			h.out = bufio.NewWriter(cmd.OutOrStdout())
			err := h.run(args)
			if flushed := h.out.Flush(); err == nil {
				err = flushed
			}
			return err
		},
	}
	fl := cmd.Flags()
	fl.Var(inFile(&h.path), "store", "the results store (default: $"+storeVariable+")")
	fl.BoolVar(&h.diff, "diff", false, "compare two runs")
	fl.BoolVar(&h.json, "json", false, "one JSON object per run, result or change and line")
	return cmd
}

func (h *conformHistory) run(args []string) error {
	path := cmp.Or(h.path, os.Getenv(storeVariable))
	switch {
	case path == "":
		return usage(errors.New("history needs --store FILE, the file that plumb conform run --store has written"))
	case h.diff && len(args) != 2:
		return usage(fmt.Errorf("--diff compares two runs, not %d", len(args)))
	case !h.diff && len(args) > 1:
		return usage(errors.New("history shows one run; --diff compares two"))
	}
	s, err := store.Read(path)
	if err != nil {
		return usage(err)
	}
	defer s.Close()
	runs, err := runsNamed(s, args)
	if err != nil {
		return usage(err)
	}
	switch {
	case h.diff:
		return h.compare(s, runs[0], runs[1])
	case len(runs) == 1:
		return h.show(s, runs[0])
	}
	return h.list(s)
}

// runsNamed are the runs by their names.
func runsNamed(s *store.Store, names []string) ([]*store.Run, error) {
	var runs []*store.Run
	for _, n := range names {
		r, err := s.Run(n)
		if err != nil {
			return nil, err
		}
		runs = append(runs, r)
	}
	return runs, nil
}

// line writes one JSON object.
func (h *conformHistory) line(v any) error {
	enc := json.NewEncoder(h.out)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

func (h *conformHistory) list(s *store.Store) error {
	if h.json {
		return s.Runs(func(r *store.Run) error { return h.line(r) })
	}
	w := tabwriter.NewWriter(h.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "run\tstarted\tcandidate\treference\tconfig\tcases\timplemented\tpassed\tfailed\tpass rate\t")
	n := 0
	err := s.Runs(func(r *store.Run) error {
		n++
		state := ""
		if !r.Complete {
			state = "interrupted"
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%s %s\t%s %s\t%d\t%d/%d\t%d\t%d\t%s\t%s\n", r.ID, r.Started.Format("2006-01-02 15:04"), r.Candidate, r.Reference, r.ReferenceVersion,
			r.Config, r.ConfigSHA256[:min(8, len(r.ConfigSHA256))], r.Cases(), r.Implemented, r.Functions, r.Passed, r.Failed, percent(r.PassRate()), state)
		return nil
	})
	if err == nil && n == 0 {
		fmt.Fprintln(h.out, "no runs; plumb conform run --store makes them")
		return nil
	}
	return errors.Join(err, w.Flush())
}

func percent(share float64) string { return fmt.Sprintf("%.1f%%", 100*share) }

// storedResult is a result as JSON: what JSON has no number for is left out.
type storedResult struct {
	*store.Result
	Worst   *float64 `json:"worst,omitempty"` // observed error ÷ limit
	Seconds float64  `json:"seconds,omitempty"`
}

func (h *conformHistory) show(s *store.Store, r *store.Run) error {
	if h.json {
		if err := h.line(map[string]any{"run": r}); err != nil {
			return err
		}
		return s.Results(r.ID, func(one *store.Result) error {
			out := storedResult{Result: one, Seconds: one.Elapsed.Seconds()}
			if one.Worst-one.Worst == 0 {
				out.Worst = &one.Worst
			}
			return h.line(map[string]any{"result": out})
		})
	}
	c := report.NewConformance(r.Candidate, r.Reference+" "+r.ReferenceVersion, r.Seed, nil)
	if err := s.Results(r.ID, func(one *store.Result) error { c.Add(conformanceCase(one)); return nil }); err != nil {
		return err
	}
	c.Finish()
	h.head(r)
	c.Rows(h.out, "function", c.Functions)
	c.Text(h.out, false)
	h.failures(c)
	return nil
}

func (h *conformHistory) head(r *store.Run) {
	state := ""
	if !r.Complete {
		state = "; it was interrupted, or is under way"
	}
	w := tabwriter.NewWriter(h.out, 0, 0, 2, ' ', 0)
	for _, row := range [][2]string{
		{"run", fmt.Sprintf("%d, %s, %.1fs%s", r.ID, r.Started.Format("2006-01-02 15:04:05 MST"), r.Elapsed, state)},
		{"candidate", fmt.Sprintf("%s (%s)", r.Candidate, r.CandidateVersion)},
		{"reference", r.Reference + " " + r.ReferenceVersion},
		{"config", fmt.Sprintf("%s, SHA-256 %s, seed %d", r.Config, r.ConfigSHA256, r.Seed)},
		{"baseline", "SHA-256 " + r.Baseline},
		{"flags", r.Flags},
		{"plumb", r.Plumb},
	} {
		fmt.Fprintf(w, "%s\t%s\n", row[0], row[1])
	}
	_ = w.Flush()
	fmt.Fprintln(h.out)
}

func (h *conformHistory) failures(c *report.Conformance) {
	for _, f := range c.Failures {
		fmt.Fprintf(h.out, "%s %s (%s)\n%s", f.Verdict, f.Case, f.DType, indented(f.Reason))
	}
	if more := c.Total.Failed - len(c.Failures); more > 0 {
		fmt.Fprintf(h.out, "and %d more; --json has them all\n", more)
	}
}

// conformanceCase is a result in the vendor's report.
func conformanceCase(r *store.Result) report.ConformanceCase {
	dtype, _, _ := strings.Cut(r.DTypes, " ")
	return report.ConformanceCase{
		Case: caseName(r.Case, r.Variant), Function: r.Function, DType: cmp.Or(dtype, "none"), Word: verdict.Word(r.Word), Reason: r.Reason,
		Recorded: r.Outcome != report.Unrecorded, Lenient: r.Lenient,
	}
}

func (h *conformHistory) compare(s *store.Store, before, after *store.Run) error {
	counts := map[string]int{}
	kind := ""
	err := s.Diff(before.ID, after.ID, func(c *store.Change) error {
		counts[c.Kind]++
		if h.json {
			return h.line(c)
		}
		if kind != c.Kind {
			kind = c.Kind
			fmt.Fprintln(h.out, kind+":")
		}
		fmt.Fprintf(h.out, "  %s: %s, was %s\n", caseName(c.Case, c.Variant), c.After, c.Before)
		if c.Reason != "" && (c.Kind == store.NewlyFailing || c.Kind == store.NoLongerJudged) {
			fmt.Fprintf(h.out, "    %s\n", firstLineOf(c.Reason))
		}
		return nil
	})
	if err != nil {
		return err
	}
	if !h.json {
		if err := compared(h.out, s, before, after, counts); err != nil {
			return err
		}
	}
	common, err := s.Common(before.ID, after.ID)
	switch {
	case err != nil:
		return err
	case counts[store.NewlyFailing] > 0:
		return &exitError{exitFindings, nil}
	case common == 0:
		return nothing(fmt.Errorf("runs %d and %d have none in common", before.ID, after.ID))
	case counts[store.NoLongerJudged] > 0:
		return &exitError{exitNothing, fmt.Errorf("%s judged in run %d and not in run %d", were(counts[store.NoLongerJudged]), before.ID, after.ID)}
	}
	return nil
}

// were says how many cases were.
func were(n int) string {
	if n == 1 {
		return "1 case was"
	}
	return fmt.Sprintf("%d cases were", n)
}

// compared writes the last lines of a comparison.
func compared(w io.Writer, s *store.Store, before, after *store.Run, counts map[string]int) error {
	for _, one := range [][2]*store.Run{{before, after}, {after, before}} {
		n, err := s.Only(one[0].ID, one[1].ID)
		if err != nil {
			return err
		}
		if n > 0 {
			fmt.Fprintf(w, "only in run %d: %d\n", one[0].ID, n)
		}
	}
	_, err := fmt.Fprintf(w, "from run %d to %d: %d newly failing, %d no longer judged, %d newly passing, %d changed otherwise\n",
		before.ID, after.ID, counts[store.NewlyFailing], counts[store.NoLongerJudged], counts[store.NewlyPassing], counts[store.Changed])
	return err
}

func caseName(name, variant string) string {
	if variant == "" {
		return name
	}
	return name + " (" + variant + ")"
}
