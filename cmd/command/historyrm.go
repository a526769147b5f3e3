package command

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"plumb/internal/campaign/store"
	"plumb/internal/scratch"
)

// historyRemoval is plumb history rm.
type historyRemoval struct {
	store     campaignStore
	olderThan time.Duration
	keep      int
	dryRun    bool
}

func newHistoryRm() *cobra.Command {
	h := historyRemoval{keep: -1}
	cmd := &cobra.Command{
		Use:   "rm {RUN… | --older-than AGE | --keep N}",
		Short: "Delete runs from the results store, and give their room back",
		Long: `Rm deletes runs and campaigns with their cases, and prints which. With --older-than
and --keep both it deletes what is old, but for the last N runs. A run that is under
way stays. Findings keep their numbers; where they were first and last seen is told
of the runs that are left. Bundles of findings stay in their folders.`,
		Example: `  plumb history rm 3 4
  plumb history rm --older-than 30d --dry-run
  plumb history rm --older-than 90d --keep 20`,
		Args: cobra.ArbitraryArgs,
		RunE: h.run,
	}
	h.store.of(cmd.Flags())
	cmd.Flags().Var(ages(&h.olderThan), "older-than", "runs that began so long ago, such as 30d, 2w or 12h")
	cmd.Flags().Var(wholeNumber(&h.keep, 0), "keep", "all runs but the last so many")
	cmd.Flags().BoolVar(&h.dryRun, "dry-run", false, "print what would be deleted, and delete nothing")
	return cmd
}

func (h *historyRemoval) run(cmd *cobra.Command, args []string) error {
	if chosen := h.olderThan > 0 || h.keep >= 0; chosen == (len(args) > 0) {
		return usage(errors.New("say which runs: by their numbers, or with --older-than and --keep"))
	}
	path, err := h.store.named()
	if err != nil {
		return err
	}
	if _, err := os.Stat(path); err != nil {
		return usage(err)
	}
	s, err := store.Open(path)
	if err != nil {
		return usage(err)
	}
	defer s.Close()
	runs, err := h.chosen(s, args)
	if err != nil {
		return err
	}
	if err := h.delete(s, path, runs, cmd.OutOrStdout(), cmd.ErrOrStderr()); err != nil {
		return &exitError{exitFault, err}
	}
	return nil
}

// chosen are the runs that are to go.
func (h *historyRemoval) chosen(s *store.Store, names []string) ([]*store.Run, error) {
	if len(names) > 0 {
		runs, err := runsNamed(s, names)
		if err != nil {
			return nil, usage(err)
		}
		for _, r := range runs {
			if r.Going() {
				return nil, usage(fmt.Errorf("run %d is under way: it wrote something %s ago", r.ID, time.Since(r.Written).Round(time.Second)))
			}
		}
		return runs, nil
	}
	var all []*store.Run
	if err := s.Runs(func(r *store.Run) error { all = append(all, r); return nil }); err != nil {
		return nil, harness(err)
	}
	var runs []*store.Run
	for _, r := range all[:max(0, len(all)-max(h.keep, 0))] {
		if !r.Going() && time.Since(r.Started) >= h.olderThan {
			runs = append(runs, r)
		}
	}
	return runs, nil
}

func (h *historyRemoval) delete(s *store.Store, path string, runs []*store.Run, out, errs io.Writer) error {
	before, cases, gone := sizeOf(path), 0, map[int64]bool{}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, r := range runs {
		if gone[r.ID] {
			continue
		}
		if !h.dryRun {
			release, taken := lockCampaign(path, r.ID)
			if taken {
				fmt.Fprintf(errs, "plumb: run %d stays: another process goes on with this campaign\n", r.ID)
				continue
			}
			err := s.Delete(r.ID)
			release(err == nil)
			if err != nil {
				return errors.Join(w.Flush(), err)
			}
		}
		gone[r.ID] = true
		cases += r.Cases()
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\n", r.ID, r.Started.Format("2006-01-02 15:04"), plain(strings.TrimPrefix(r.Command, "plumb ")), count(r.Cases(), "case"))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	what := fmt.Sprintf("%s with %s", count(len(gone), "run"), count(cases, "case"))
	switch {
	case h.dryRun:
		fmt.Fprintf(out, "%s would go; --dry-run deletes nothing\n", what)
	case len(gone) == 0:
		fmt.Fprintln(out, "no run is deleted")
	default:
		if err := h.giveBack(s); err != nil {
			fmt.Fprintf(errs, "plumb: %v; plumb db vacuum gives the room back\n", err)
		}
		fmt.Fprintf(out, "%s deleted; %s: %d KB, before %d KB\n", what, path, sizeOf(path)>>10, before>>10)
	}
	return nil
}

// leastFree is the share of a file that has to be free for it to be written anew.
const leastFree = 0.1

// giveBack gives the free room of the file back, where it is worth it; later runs use
// what is little.
func (h *historyRemoval) giveBack(s *store.Store) error {
	if free, err := s.Free(); err != nil || free < leastFree {
		return err
	}
	return s.Vacuum()
}

// lockCampaign keeps others from going on with a campaign, whose folder beside the
// store release removes where the campaign is gone.
func lockCampaign(path string, run int64) (release func(gone bool), taken bool) {
	dir := filepath.Join(path+".campaigns", fmt.Sprint(run))
	if _, err := os.Stat(dir); err != nil {
		return func(bool) {}, false
	}
	unlock, taken := scratch.Lock(dir)
	return func(gone bool) {
		if gone {
			_ = os.RemoveAll(dir)
		}
		unlock()
	}, taken
}

// ages are times back, with days and weeks.
func ages(to *time.Duration) pflag.Value {
	v := &limited[time.Duration]{to: to, kind: "age", want: "an age such as 30d, 2w or 12h"}
	v.parse = func(text string) (time.Duration, bool) {
		const day = 24 * time.Hour
		for suffix, unit := range map[string]time.Duration{"d": day, "w": 7 * day} {
			if number, ok := strings.CutSuffix(text, suffix); ok {
				n, err := strconv.ParseUint(number, 10, 14)
				return time.Duration(n) * unit, err == nil && n > 0
			}
		}
		d, err := time.ParseDuration(text)
		return d, err == nil && d > 0
	}
	return v
}
