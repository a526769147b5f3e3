package command

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"plumb/backend"
	"plumb/internal/campaign/report"
	"plumb/internal/campaign/store"
	"plumb/internal/judge/verdict"
)

// history is plumb history.
type history struct {
	files storedFiles
	errs  io.Writer
	path  string
	last  int
	json  bool
	out   *bufio.Writer
	width int // of the terminal; 0 where there is none
}

func newHistory() *cobra.Command {
	h := history{last: 30}
	cmd := &cobra.Command{
		Use:   "history [RUN]",
		Short: "List, show, compare and delete the runs that the results store keeps",
		Long: `History shows the runs of all commands that judge. Without a RUN it prints a line
for each of the last ones; with a RUN (its number, or "last") what the run was, its
findings and what failed, of a conformance run the tables of functions and dtypes.`,
		Example: `  plumb history
  plumb history last
  plumb history last --html run.html --junit run.xml
  plumb history diff 3 last
  plumb history export 3 4 --csv cases.csv
  plumb history rm --older-than 90d --keep 20
  plumb history --json -n 1`,
		Args: takes(0, 1, "one RUN; plumb history diff compares two"),
		RunE: h.command((*history).run),
	}
	cmd.AddCommand(newHistoryDiff(), newHistoryExport(), newHistoryRm())
	h.storeFlag(cmd)
	h.files.flags(cmd.Flags())
	cmd.Flags().VarP(wholeNumber(&h.last, 1), "number", "n", "how many runs are listed, the last ones")
	jsonFlag(cmd.Flags(), &h.json, "one JSON object per run or case and line")
	return cmd
}

func newHistoryDiff() *cobra.Command {
	var h history
	cmd := &cobra.Command{
		Use:   "diff RUN RUN",
		Short: "Compare two runs: what fails newly, is no longer judged, passes newly",
		Long: `Diff prints the cases whose verdict changed from the first run to the second. A case
is the same in both where its program is; where two runs have none in common, as
with another seed, their tests are compared.

The exit code is 1 where something fails that did not fail before, 5 where nothing
does and something that was judged is not, or the runs have nothing in common,
else 0.`,
		Example: `  plumb history diff 3 last
  plumb history diff 3 4 --json`,
		Args: takes(2, 2, "two RUNs: their numbers, or last"),
		RunE: h.command((*history).diff),
	}
	h.storeFlag(cmd)
	jsonFlag(cmd.Flags(), &h.json, "one JSON object per change and line")
	return cmd
}

// newConformHistory is plumb history under the name that it had.
func newConformHistory() *cobra.Command {
	h := history{last: math.MaxInt}
	var diff bool
	cmd := &cobra.Command{
		Use:     "history [RUN | --diff RUN RUN]",
		Short:   "plumb history under its former name",
		Long:    "This is plumb history, and with --diff plumb history diff, under their former name.",
		Example: "  plumb history",
		Args:    takes(0, 2, "one RUN, or two with --diff"),
		RunE: func(cmd *cobra.Command, args []string) error {
			fmt.Fprintln(cmd.ErrOrStderr(), "plumb: conform history is plumb history now")
			switch {
			case diff && len(args) != 2:
				return usage(fmt.Errorf("--diff compares two runs, not %d", len(args)))
			case diff:
				return h.command((*history).diff)(cmd, args)
			case len(args) > 1:
				return usage(errors.New("history shows one run; --diff compares two"))
			}
			return h.command((*history).run)(cmd, args)
		},
	}
	h.storeFlag(cmd)
	cmd.Flags().BoolVar(&diff, "diff", false, "compare two runs")
	jsonFlag(cmd.Flags(), &h.json, "one JSON object per run, case or change and line")
	return cmd
}

func (h *history) storeFlag(cmd *cobra.Command) {
	cmd.Flags().Var(inFile(&h.path), "store", "the results store (default: $"+storeVariable+", else plumb/plumb.db of the user's state folder)")
}

// command runs a method on the opened store and the runs that are named.
func (h *history) command(run func(*history, *store.Store, []*store.Run) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		s, err := openStore(h.path)
		if err != nil {
			return err
		}
		defer s.Close()
		runs, err := runsNamed(s, args)
		if err != nil {
			return usage(err)
		}
		h.out, h.errs, h.width = bufio.NewWriter(cmd.OutOrStdout()), cmd.ErrOrStderr(), widthOf(cmd.OutOrStdout())
		err = run(h, s, runs)
		return cmp.Or(err, h.out.Flush())
	}
}

// openStore opens the store that a flag names, or the usual one, to read it.
func openStore(flag string) (*store.Store, error) {
	path, err := storeNamed(flag)
	switch {
	case err != nil:
		return nil, usage(fmt.Errorf("%w: say where the results store is with --store FILE", err))
	case path == "":
		return nil, usage(errors.New("there is no results store: $" + storeVariable + " is none; --store FILE names one"))
	}
	s, err := store.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, usage(fmt.Errorf("%w; plumb run and the other commands that judge make it", err))
	}
	if err != nil {
		return nil, usage(err)
	}
	return s, nil
}

func (h *history) run(s *store.Store, runs []*store.Run) error {
	switch {
	case len(runs) == 1:
		return cmp.Or(h.show(s, runs[0]), h.files.write(s, runs[0], false, h.errs))
	case h.files.asked():
		return usage(errors.New("--html, --junit and --report write one run: name it by its number, or last"))
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
func (h *history) line(v any) error {
	enc := json.NewEncoder(h.out)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

func (h *history) list(s *store.Store) error {
	if h.json {
		return s.Last(h.last, func(r *store.Run) error { return h.line(r) })
	}
	w := tabwriter.NewWriter(h.out, 0, 0, 2, ' ', 0)
	row := wideRow
	if h.width > 0 && h.width < wideHistory {
		row = narrowRow
		fmt.Fprintln(w, "run\tstarted\tcommand\tcandidates\tcases\tfailed\ttime\tended")
	} else {
		fmt.Fprintln(w, "run\tstarted\tcommand\tcandidates\treference\tcases\tpassed\tfailed\tunsupported\ttime\tended")
	}
	n := 0
	err := s.Last(h.last, func(r *store.Run) error {
		n++
		row(w, r)
		return nil
	})
	if err == nil && n == 0 {
		fmt.Fprintln(h.out, "no runs; plumb run and the other commands that judge make them")
		return nil
	}
	return errors.Join(err, w.Flush())
}

// wideHistory is the width that the table of runs takes, with usual names.
const wideHistory = 110

func wideRow(w io.Writer, r *store.Run) {
	fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%d\t%d\t%d\t%d\t%.1fs\t%s\n", r.ID, r.Started.Format("2006-01-02 15:04"), plain(strings.TrimPrefix(r.Command, "plumb ")), plain(candidatesOf(r)),
		plain(r.Reference().String()), r.Cases(), r.Passed, r.Failed, r.Unsupported, r.Elapsed, r.End())
}

// narrowRow leaves out the year, the reference and what is not failed: plumb history RUN has them.
func narrowRow(w io.Writer, r *store.Run) {
	fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%d\t%d\t%.0fs\t%s\n", r.ID, r.Started.Format("01-02 15:04"), report.Clip(plain(strings.TrimPrefix(r.Command, "plumb ")), 16),
		report.Clip(plain(candidatesOf(r)), 16), r.Cases(), r.Failed, r.Elapsed, r.End())
}

// longestName bounds a name in a table, in bytes.
const longestName = 200

// plain is a text without what a terminal would obey.
func plain(text string) string { return backend.Printable(text, longestName) }

func candidatesOf(r *store.Run) string {
	var names []string
	for _, c := range r.Candidates() {
		names = append(names, c.Name)
	}
	return strings.Join(names, ", ")
}

// storedResult is a case as JSON: what JSON has no number for is left out.
type storedResult struct {
	*store.Case
	Worst            *float64 `json:"worst,omitempty"` // observed error ÷ limit
	Seconds          float64  `json:"seconds,omitempty"`
	ReferenceSeconds float64  `json:"reference_seconds,omitempty"`
}

func storedResultOf(c *store.Case) storedResult {
	out := storedResult{Case: c, Seconds: c.Elapsed.Seconds(), ReferenceSeconds: c.Reference.Seconds()}
	if c.Worst-c.Worst == 0 {
		out.Worst = &c.Worst
	}
	return out
}

func (h *history) show(s *store.Store, r *store.Run) error {
	if h.json {
		err := h.line(map[string]any{"run": r})
		if err == nil {
			err = s.Sightings(r.ID, func(f *store.Sighting) error { return h.line(map[string]any{"finding": f}) })
		}
		if err != nil {
			return err
		}
		return s.Cases(r.ID, func(one *store.Case) error { return h.line(map[string]any{"result": storedResultOf(one)}) })
	}
	h.head(r)
	if r.Recording != nil {
		return h.conformance(s, r)
	}
	return h.drawn(s, r)
}

// conformance prints the tables of a conformance run.
func (h *history) conformance(s *store.Store, r *store.Run) error {
	c := report.NewConformance(r.Candidates()[0].Name, r.Reference().Name+" "+r.Reference().Version, r.Seed, nil)
	if err := s.Cases(r.ID, func(one *store.Case) error { c.Add(conformanceCase(one)); return nil }); err != nil {
		return err
	}
	c.Finish()
	c.Rows(h.out, "function", c.Functions)
	c.Text(h.out, false)
	h.failures(c)
	return nil
}

// mostFailures bounds the failures that are printed of a run.
const mostFailures = 20

// drawn prints the verdicts of each subject, the findings and the first failures.
func (h *history) drawn(s *store.Store, r *store.Run) error {
	w := tabwriter.NewWriter(h.out, 0, 0, 2, ' ', 0)
	err := s.Totals(store.BySubject, r.ID, func(t *store.Total) error {
		fmt.Fprintf(w, "%s\t%s\t%d\t\n", plain(t.Subject), cmp.Or(t.Word, "left out"), t.Cases)
		return nil
	})
	_ = w.Flush()
	lacks := report.NewSummary()
	err = cmp.Or(err, s.Lacks(r.ID, func(_, reason string, cases int) error {
		lacks.Words[verdict.Unsupported] += cases
		lacks.Lacking[report.Lack(reason)] += cases
		return nil
	}))
	for _, line := range lacks.LackLines("--json tells") {
		fmt.Fprintf(h.out, "  unsupported: %s\n", plain(line))
	}
	findings := 0
	err = cmp.Or(err, s.Sightings(r.ID, func(f *store.Sighting) error {
		findings++
		fmt.Fprintf(h.out, "\nfinding %d: %s: %s, %s, %s\n%s", f.Finding, plain(f.Subject), plain(f.What), count(f.Cases, "case"), plain(f.Test), indented(plain(firstLineOf(f.Reason))))
		switch {
		case f.Bundle == "":
		case r.Command == "plumb kernel":
			fmt.Fprintf(h.out, "  python3 %s\n", plain(filepath.Join(f.Bundle, "repro.py")))
		default:
			fmt.Fprintf(h.out, "  %s: plumb repro %s\n", plain(f.Proof), plain(f.Bundle))
		}
		return nil
	}))
	if err != nil || findings > 0 {
		return err
	}
	err = s.Failures(r.ID, mostFailures, func(c *store.Case) error {
		fmt.Fprintf(h.out, "\n%s %s case %d, %s\n%s", c.Word, plain(c.Test), c.Number, plain(c.Subject), indented(plain(firstLineOf(c.Reason))))
		return nil
	})
	if more := r.Failed - mostFailures; more > 0 {
		fmt.Fprintf(h.out, "and %d more; --json has them all\n", more)
	}
	return err
}

func (h *history) head(r *store.Run) {
	rows := [][2]string{
		{"run", fmt.Sprintf("%d, %s, %.1fs, ended: %s", r.ID, r.Started.Format("2006-01-02 15:04:05 MST"), r.Elapsed, r.End())},
		{"command", cmp.Or(strings.TrimSpace("plumb "+strings.Join(r.Args, " ")), r.Command)},
		{"reference", r.Reference().String()},
	}
	for _, c := range r.Candidates() {
		rows = append(rows, [2]string{"candidate", c.String()})
	}
	rows = append(rows, [2]string{"seed", fmt.Sprint(r.Seed)})
	if m := r.Recording; m != nil {
		rows = append(rows, [2]string{"config", fmt.Sprintf("%s, SHA-256 %s", m.Config, m.ConfigSHA256)}, [2]string{"baseline", "SHA-256 " + m.Baseline}, [2]string{"flags", m.Flags})
	}
	rows = append(rows, [2]string{"plumb", r.Plumb})
	w := tabwriter.NewWriter(h.out, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintf(w, "%s\t%s\n", row[0], plain(row[1]))
	}
	_ = w.Flush()
	fmt.Fprintln(h.out)
	for _, m := range r.Mistakes {
		fmt.Fprintf(h.out, "ERROR %s\n", backend.Printable(m.Text, len(m.Text)))
	}
}

func (h *history) failures(c *report.Conformance) {
	for _, f := range c.Failures {
		fmt.Fprintf(h.out, "%s %s (%s)\n%s", f.Verdict, f.Case, f.DType, indented(f.Reason))
	}
	if more := c.Total.Failed - len(c.Failures); more > 0 {
		fmt.Fprintf(h.out, "and %d more; --json has them all\n", more)
	}
}

// conformanceCase is a result in the vendor's report.
func conformanceCase(r *store.Case) report.ConformanceCase {
	dtype, _, _ := strings.Cut(r.DTypes, " ")
	return report.ConformanceCase{
		Case: caseName(r.Name, r.Variant), Function: r.Test, DType: cmp.Or(dtype, "none"), Word: verdict.Word(r.Word), Reason: r.Reason,
		Recorded: r.Outcome != report.Unrecorded, Lenient: r.Lenient,
	}
}

// diff compares two runs, by their cases where they have some in common.
func (h *history) diff(s *store.Store, runs []*store.Run) error {
	before, after := runs[0], runs[1]
	counts := map[string]int{}
	o, err := s.Diff(before.ID, after.ID, h.change(counts))
	common := o.Common
	if err == nil && common == 0 && before.Recording == nil && after.Recording == nil {
		if common, err = s.CommonTests(before.ID, after.ID); err != nil {
			return err
		}
		if !h.json && common > 0 {
			fmt.Fprintf(h.out, "no case is in both, as their seeds are %d and %d; %s\n", before.Seed, after.Seed, count(common, "test")+" compared")
		}
		err = s.DiffTests(before.ID, after.ID, h.change(counts))
	}
	if err != nil {
		return err
	}
	if !h.json {
		compared(h.out, before, after, o, counts)
	}
	switch {
	case counts[store.NewlyFailing] > 0:
		return &exitError{exitFindings, nil}
	case common == 0:
		return nothing(fmt.Errorf("runs %d and %d have none in common", before.ID, after.ID))
	case counts[store.NoLongerJudged] > 0:
		return &exitError{exitNothing, fmt.Errorf("%s judged in run %d and not in run %d", were(counts[store.NoLongerJudged]), before.ID, after.ID)}
	}
	return nil
}

// change prints changes, and counts them by kind.
func (h *history) change(counts map[string]int) func(*store.Change) error {
	kind := ""
	return func(c *store.Change) error {
		counts[c.Kind]++
		if h.json {
			return h.line(c)
		}
		if kind != c.Kind {
			kind = c.Kind
			fmt.Fprintln(h.out, kind+":")
		}
		fmt.Fprintf(h.out, "  %s: %s, was %s\n", plain(changeName(c)), c.After, c.Before)
		if c.Reason != "" && (c.Kind == store.NewlyFailing || c.Kind == store.NoLongerJudged) {
			fmt.Fprintf(h.out, "    %s\n", plain(firstLineOf(c.Reason)))
		}
		return nil
	}
}

// changeName names what changed: a recorded case, a drawn one, or a test.
func changeName(c *store.Change) string {
	switch {
	case c.Case != "":
		return caseName(c.Case, c.Variant)
	case c.Program != "":
		return fmt.Sprintf("%s case %d, %s", c.Test, c.Number, c.Subject)
	}
	return c.Test + ", " + c.Subject
}

// were says how many cases were.
func were(n int) string {
	if n == 1 {
		return "1 case was"
	}
	return fmt.Sprintf("%d cases were", n)
}

// compared writes the last lines of a comparison.
func compared(w io.Writer, before, after *store.Run, o store.Overlap, counts map[string]int) {
	for _, only := range []struct {
		run *store.Run
		n   int
	}{{before, o.OnlyBefore}, {after, o.OnlyAfter}} {
		if only.n > 0 {
			fmt.Fprintf(w, "only in run %d: %d\n", only.run.ID, only.n)
		}
	}
	fmt.Fprintf(w, "from run %d to %d: %d newly failing, %d no longer judged, %d newly passing, %d changed otherwise\n",
		before.ID, after.ID, counts[store.NewlyFailing], counts[store.NoLongerJudged], counts[store.NewlyPassing], counts[store.Changed])
}

func caseName(name, variant string) string {
	if variant == "" {
		return name
	}
	return name + " (" + variant + ")"
}
