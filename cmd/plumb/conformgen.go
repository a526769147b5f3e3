package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"plumb/backend/open"
	"plumb/conform"
	"plumb/internal/conform/baseline"
	"plumb/internal/conform/config"
	"plumb/ops"
)

type conformGen struct {
	out       string
	seed      uint64
	jobs      int
	fnames    []string
	reference string
	python    string
	timeout   time.Duration
	self      bool
	truth     baseline.TruthMode
	memory    int
	only      string
}

func newConformGen() *cobra.Command {
	var g conformGen
	cmd := &cobra.Command{
		Use:   "gen CONFIG --out DIR",
		Short: "Record what the reference does with the cases of a config",
		Long: `Gen draws the inputs of each case, runs it on the reference, forward and
backward, and writes a baseline: a directory with a manifest and compressed
shards, for plumb conform run on machines without the reference.

The same command resumes an interrupted recording; the cases recorded so far can
already be used.`,
		Example: `  plumb conform gen my_config.py --out baseline
  plumb conform gen my_config.py --out baseline --fname conv2d,relu`,
		Args: takes(1, 1, "one CONFIG"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("timeout") {
				if err := idleTimeout("--timeout", g.reference); err != nil {
					return err
				}
			}
			return g.run(cmd.Context(), args[0], cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	fl := cmd.Flags()
	fl.VarP(folder(&g.out), "out", "o", "the directory of the baseline")
	fl.Var(fixedSeed(&g.seed, 1), "seed", "the seed of all inputs")
	g.jobs = runtime.NumCPU()
	jobsFlag(fl, &g.jobs, "cases that run at the same time, as many as CPUs and memory allow")
	fl.StringSliceVar(&g.fnames, "fname", nil, "record these functions only; may be repeated")
	fl.StringVar(&g.reference, "reference", defaultReference, "the backend that is taken to be right; see plumb help backends")
	pythonFlag(fl, &g.python)
	g.timeout = 2 * time.Minute
	fl.Var(timeSpan(&g.timeout), "timeout", "time limit of one case")
	fl.BoolVar(&g.self, "self-contained", false, "store large results in full instead of as the difference from what Plumb's own operators compute: larger, but read without computing")
	g.truth = baseline.SmallTruth
	fl.Var(oneOf(&g.truth, baseline.Contested, baseline.SmallTruth, baseline.AllTruth, baseline.NoTruth), "truth", `for which cases float64 results of the reference are stored too: "contested" (Plumb's own operators differ from the reference by more than a quarter of their limits), "small" (these, and every result of at most 512 elements that rounding affects), "all" (every result that rounding affects) or "none"; results of more than 3145728 elements never are`)
	fl.Var(memorySize(&g.memory, "1GB"), "memory", "memory for the cases that run at the same time; a case that needs more runs alone")
	fl.Var(inFile(&g.only), "only", "record these cases only: a file with a name a line")
	_ = fl.MarkHidden("only")
	_ = cmd.MarkFlagRequired("out")
	return cmd
}

func (g *conformGen) run(ctx context.Context, config string, out, errs io.Writer) error {
	if err := idlePython(g.python, g.reference); err != nil {
		return err
	}
	src, err := configText(config)
	if err != nil {
		return err
	}
	c, err := loadConfig(config, src, errs)
	if err != nil {
		return err
	}
	pick, err := byFunction(c, g.fnames)
	if err != nil {
		return usage(err)
	}
	cases := conform.Recordable(c, g.seed, pick)
	if g.only != "" {
		if cases, err = onlyCases(cases, g.only); err != nil {
			return usage(err)
		}
	}
	warnBlind(ctx, cases, errs)
	backends := &open.Set{Table: ops.Table(), Python: g.python, Timeout: g.timeout, Growth: fitJobs(&g.jobs, errs, g.reference)}
	open, err := backends.Opener(ctx, g.reference)
	if err != nil {
		return harness(err)
	}
	cfg := baseline.GenConfig{
		Dir: g.out, Plumb: plumbVersion(), Config: filepath.Base(config), Source: src, Seed: g.seed,
		Cases: cases, Open: open, Jobs: g.jobs, Memory: int64(g.memory), Progress: progressTo(errs),
		Truth: conform.Truth(g.truth),
	}
	if !g.self {
		cfg.Predict, cfg.Costly = conform.Predictor, conform.Contracts
	}
	boundHeap(g.memory, anyGarbage)
	start := time.Now()
	m, err := baseline.Gen(ctx, cfg)
	if m != nil {
		printBaseline(out, g.out, m, time.Since(start))
	}
	switch {
	case errors.Is(err, context.Canceled):
		return &exitError{exitFault, errors.New("interrupted; the same command goes on from here")}
	case err != nil:
		return harness(err)
	}
	return nil
}

// onlyCases are the cases whose names are the lines of a file.
func onlyCases(cases []baseline.Case, path string) ([]baseline.Case, error) {
	text, err := readRegular(path)
	if err != nil {
		return nil, err
	}
	wanted := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		wanted[strings.TrimSpace(line)] = true
	}
	return slices.DeleteFunc(cases, func(c baseline.Case) bool { return !wanted[c.Name] }), nil
}

// byFunction selects functions by name; all for none.
func byFunction(c *config.Config, names []string) (func(string) bool, error) {
	if len(names) == 0 {
		return func(string) bool { return true }, nil
	}
	known := map[string]bool{}
	for one := range c.Cases() {
		known[one.Function] = true
	}
	for _, n := range names {
		if !known[n] {
			return nil, fmt.Errorf("--fname %s: the config has no such function; plumb conform list prints them", n)
		}
	}
	return func(f string) bool { return slices.Contains(names, f) }, nil
}

// progressTo rewrites a line on a terminal; nil for anything else.
func progressTo(w io.Writer) func(done, all int) {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	return func(done, all int) {
		fmt.Fprintf(w, "\r\x1b[K%d of %d cases", done, all)
		if done == all {
			fmt.Fprint(w, "\r\x1b[K")
		}
	}
}

// printBaseline says what was recorded.
func printBaseline(w io.Writer, dir string, m *baseline.Manifest, elapsed time.Duration) {
	missing, refused := 0, 0
	for i := range m.Cases {
		e := &m.Cases[i]
		switch {
		case e.Missing != "":
			missing++
		case len(e.Refused) > 0:
			refused++
		}
	}
	fmt.Fprintf(w, "%s: %d cases, %.1f MB, by %s %s in %.1fs\n", dir, len(m.Cases), float64(m.Bytes())/1e6, m.Reference.Name, m.Reference.Version, elapsed.Seconds())
	if refused > 0 {
		fmt.Fprintf(w, "  %d refused by the reference\n", refused)
	}
	if missing > 0 {
		fmt.Fprintf(w, "  %d not recorded: Plumb has no program for them\n", missing)
	}
	if !m.Complete {
		fmt.Fprintln(w, "  not complete")
		return
	}
	fmt.Fprintf(w, "next: plumb conform run --baseline %s\n", dir)
}
