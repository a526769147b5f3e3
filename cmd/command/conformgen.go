package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"plumb/backend/open"
	"plumb/conform"
	"plumb/internal/conform/baseline"
	"plumb/internal/conform/config"
	"plumb/internal/stopwatch"
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
	standIns  baseline.StandIns
	memory    int
	only      string
	models    modelFlags
	seeded    bool
	from      string // a baseline that is recorded again

	first *baseline.Baseline // that of from
}

func newConformGen() *cobra.Command {
	var g conformGen
	cmd := &cobra.Command{
		Use:   "gen [CONFIG] --out DIR",
		Short: "Record what the reference does with the cases of a config",
		Long: `Gen takes a CONFIG, or with --model-configs that of a network, or else the one
that Plumb ships. It draws the inputs of each case, runs it on the reference, forward and
backward, and writes a baseline: a directory with a manifest and compressed
shards, for plumb conform run on machines without the reference.

The same command resumes an interrupted recording; the cases recorded so far can
already be used.`,
		Example: `  plumb conform gen my_config.py --out baseline
  plumb conform gen my_config.py --out baseline --fname conv2d,relu
  plumb conform gen --model resnet50 --model-configs model_config --out baseline`,
		Args: takes(0, 1, "one CONFIG"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if g.from != "" && len(args) > 0 {
				return usage(fmt.Errorf("--from %s has the config: leave %s out", g.from, args[0]))
			}
			if cmd.Flags().Changed("timeout") {
				if err := idleTimeout("--timeout", g.reference); err != nil {
					return err
				}
			}
			return g.run(cmd.Context(), args, cmd.OutOrStdout(), cmd.ErrOrStderr())
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
	g.standIns = baseline.WhereRefused
	fl.Var(oneOf(&g.standIns, baseline.WhereRefused, baseline.Always, baseline.Never), "stand-ins", `which cases of float16, bfloat16 and int32 are recorded as what the reference computes in float32 or int64, rounded: those that it has no kernel for ("refused"), all that can be ("always"), or "never"`)
	g.truth = baseline.SmallTruth
	fl.Var(oneOf(&g.truth, baseline.Contested, baseline.SmallTruth, baseline.AllTruth, baseline.NoTruth), "truth", `for which cases float64 results of the reference are stored too: "contested" (Plumb's own operators differ from the reference by a quarter of their limits, in large cases by more than half), "small" (these, and every result of at most 512 elements that rounding affects), "all" (every result that rounding affects) or "none"; results of more than 3145728 elements never are`)
	fl.Var(memorySize(&g.memory, "1GB"), "memory", "memory for the cases that run at the same time; a case that needs more runs alone")
	fl.Var(inFile(&g.only), "only", "record these cases only: a file with a name a line")
	_ = fl.MarkHidden("only")
	fl.BoolVar(&g.seeded, "seeded", false, "write no results, only what they have to be: --from makes the very same again where the reference is")
	fl.Var(folder(&g.from), "from", "record again what this baseline was recorded from, and compare each file's bits with it")
	bars(cmd, "from", "seed", "truth", "self-contained", "fname", "model", "seeded")
	g.models.add(fl)
	needs(cmd, "model-file", "model")
	needs(cmd, "model-configs", "model")
	bars(cmd, "model-configs", "model-file")
	_ = cmd.MarkFlagRequired("out")
	return cmd
}

func (g *conformGen) run(ctx context.Context, args []string, out, errs io.Writer) error {
	if err := idlePython(g.python, g.reference); err != nil {
		return err
	}
	args, err := g.models.own(args)
	if err != nil {
		return err
	}
	config, src, err := g.source(args)
	if err != nil {
		return err
	}
	c, err := loadConfig(config, src, errs)
	if err != nil {
		return err
	}
	pick, err := g.pick(c)
	if err != nil {
		return usage(err)
	}
	cases := conform.Recordable(c, g.seed, pick)
	if g.first != nil {
		cases = g.recorded(cases)
	}
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
		Truth: conform.Truth(g.truth), Seeded: g.seeded, StandIns: g.standIns,
	}
	if !g.self {
		cfg.Predict, cfg.Costly = conform.Predictor, conform.Costly
	}
	boundHeap(g.memory, anyGarbage)
	start := time.Now()
	m, err := baseline.Gen(ctx, cfg)
	if m != nil {
		printBaseline(out, g.out, m, time.Since(start))
		if spent := stopwatch.CPUTime() + backends.TakeSpent(); m.Took > 0 {
			fmt.Fprintf(out, "  %.1f CPU-s without start-up: %.1f in the reference's own calls, %.1f of Plumb's\n", spent.Seconds(), m.Took.Seconds(), (spent - m.Took).Seconds())
		}
	}
	switch {
	case errors.Is(err, context.Canceled):
		return &exitError{exitFault, errors.New("interrupted; the same command goes on from here")}
	case errors.Is(err, syscall.ENOSPC):
		return &exitError{exitFault, fmt.Errorf("%w; once there is room the same command goes on from here", err)}
	case err != nil:
		return harness(err)
	case g.first != nil:
		return g.compare(m, out)
	}
	return nil
}

// source is the config, with --from that of the baseline, whose seed and truths
// it takes over.
func (g *conformGen) source(args []string) (name string, src []byte, err error) {
	if g.from == "" {
		return configSource(args)
	}
	if g.first, err = baseline.OpenSeeded(g.from); err != nil {
		return "", nil, usage(err)
	}
	m := &g.first.Manifest
	g.seed, g.self, g.truth = m.Seed, m.SelfContained, cmp.Or(m.Truth, baseline.NoTruth)
	if src, err = g.first.Config(); err != nil {
		return "", nil, usage(err)
	}
	return m.Config.Name, src, nil
}

// recorded are the cases that the first recording has.
func (g *conformGen) recorded(cases []baseline.Case) []baseline.Case {
	had := map[string]bool{}
	for i := range g.first.Manifest.Cases {
		had[g.first.Manifest.Cases[i].Name] = true
	}
	return slices.DeleteFunc(cases, func(c baseline.Case) bool { return !had[c.Name] })
}

// compare says whether the recording has the bits of the first one.
func (g *conformGen) compare(m *baseline.Manifest, out io.Writer) error {
	if err := g.first.Manifest.Differs(m); err != nil {
		return &exitError{exitFault, fmt.Errorf("%s: %w", g.out, err)}
	}
	_, err := fmt.Fprintf(out, "  all bits are those of %s\n", g.from)
	return err
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

// pick selects functions, by name and by network.
func (g *conformGen) pick(c *config.Config) (func(string) bool, error) {
	_, model, err := g.models.load()
	if err != nil {
		return nil, err
	}
	named, err := byFunction(c, g.fnames)
	if err != nil || model == nil {
		return named, err
	}
	return func(f string) bool { return named(f) && slices.Contains(model.Functions, f) }, nil
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
	if !isTerminal(w) {
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
	missing, refused, standIns := 0, 0, 0
	for i := range m.Cases {
		e := &m.Cases[i]
		switch {
		case e.Missing != "":
			missing++
		case e.StandsIn(""):
			standIns++
		case len(e.Refused) > 0:
			refused++
		}
	}
	size := fmt.Sprintf("%.1f MB", float64(m.Bytes())/1e6)
	if m.Seeded {
		size += " if its results were kept"
	}
	by := strings.TrimSpace(m.Reference.Name + " " + m.Reference.Version)
	fmt.Fprintf(w, "%s: %d cases, %s, by %s in %.1fs\n", dir, len(m.Cases), size, cmp.Or(by, "nobody yet"), elapsed.Seconds())
	if standIns > 0 {
		fmt.Fprintf(w, "  %d as the reference computes them in float32 or int64\n", standIns)
	}
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
	if m.Seeded {
		fmt.Fprintf(w, "next: plumb conform gen --from %s --out NEW\n", dir)
		return
	}
	fmt.Fprintf(w, "next: plumb conform run --baseline %s\n", dir)
}
