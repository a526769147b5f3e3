package command

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"plumb/backend/open"
	"plumb/backend/worker"
	"plumb/internal/campaign"
	"plumb/internal/judge/verdict"
	"plumb/internal/stopwatch"
)

// benchedModes are those that are measured beside eager where nothing is named.
var benchedModes = []string{"torch:compile", "jax:jit"}

func newBenchSubjects() *cobra.Command {
	b := &subjectBench{tests: 32, n: 20, rounds: 3, jobs: 2}
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "subjects [CANDIDATE…]",
		Short: "Cases per CPU-second of each subject that is here, start-up and all processes counted",
		Long: `Subjects runs tests of the shipped suites, as many as --tests says and spread
evenly over them, with each candidate, and divides the cases that were judged by
the CPU time of plumb, its workers and all that these start, from start to end.
What a subject does not support, and draws that are rejected, count for nothing.

Cold is with empty caches of compiled code; warm is the next run, of another seed,
with what the cold one left. Both are medians of the rounds. Without a CANDIDATE
those that are installed here are measured.`,
		Example: `  plumb bench subjects
  plumb bench subjects jax:jit torch:compile --tests 100 --count 1`,
		RunE: func(cmd *cobra.Command, candidates []string) error {
			if err := b.run(cmd.Context(), candidates); err != nil {
				return err
			}
			return b.print(cmd.OutOrStdout(), asJSON)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&b.reference, "reference", "", "the backend that is taken to be right (default torch); see plumb help backends")
	fl.Var(wholeNumber(&b.tests, 1), "tests", "how many tests")
	fl.VarP(wholeNumber(&b.n, 1), "number", "n", "cases per test")
	fl.Var(wholeNumber(&b.rounds, 1), "count", "rounds")
	jobsFlag(fl, &b.jobs, "cases that run at the same time, as many as CPUs and memory allow")
	jsonFlag(fl, &asJSON, "print one object")
	return cmd
}

// subjectBench measures what judging a subject costs.
type subjectBench struct {
	reference              string
	tests, n, rounds, jobs int
	Tests                  []string     `json:"tests"`
	Rows                   []subjectRow `json:"subjects"`
}

type subjectRow struct {
	Candidate string  `json:"candidate"`
	Judged    int     `json:"judged"` // cases of the last cold run
	Cases     int     `json:"cases"`  // these, and what is unsupported or rejected
	Cold      float64 `json:"cold_cases_per_cpu_second"`
	Warm      float64 `json:"warm_cases_per_cpu_second"`
}

func (b *subjectBench) run(ctx context.Context, candidates []string) error {
	d := drawing{sigs: &signatures{}}
	l, err := d.shipped(&subjects{})
	if err != nil {
		return usage(err)
	}
	for _, t := range evenly(l.tests, b.tests) {
		b.Tests = append(b.Tests, t.Name)
	}
	if len(candidates) == 0 {
		candidates = installed()
	}
	for _, c := range candidates {
		b.Rows = append(b.Rows, subjectRow{Candidate: c})
	}
	cold, warm := make([][]float64, len(b.Rows)), make([][]float64, len(b.Rows))
	err = stopwatch.InTurns(b.rounds, len(b.Rows), func(round, side int) error {
		first, second, err := b.Rows[side].measure(ctx, b, round)
		cold[side], warm[side] = append(cold[side], first), append(warm[side], second)
		return err
	})
	for i := range b.Rows {
		b.Rows[i].Cold, b.Rows[i].Warm = stopwatch.Median(cold[i]), stopwatch.Median(warm[i])
	}
	return err
}

// evenly returns n of the tests, evenly spread.
func evenly(tests []campaign.Test, n int) []campaign.Test {
	n = min(n, len(tests))
	out := make([]campaign.Test, n)
	for i := range out {
		out[i] = tests[i*len(tests)/n]
	}
	return out
}

// installed are the subjects that are here, each framework once by itself.
func installed() []string {
	out := []string{"native"}
	for _, f := range worker.Frameworks {
		if _, _, err := worker.Find(f, ""); err != nil {
			continue
		}
		out = append(out, f)
		for _, m := range benchedModes {
			if open.ParseSpec(m).Name == f {
				out = append(out, m)
			}
		}
	}
	return out
}

// measure returns the cases per CPU-second of a run with empty caches, and of
// another with what that one left.
func (row *subjectRow) measure(ctx context.Context, b *subjectBench, round int) (cold, warm float64, err error) {
	dir, err := os.MkdirTemp("", "plumb-bench-")
	if err != nil {
		return 0, 0, err
	}
	defer os.RemoveAll(dir)
	env := []string{"XDG_CACHE_HOME=" + dir} // which also keeps what failed last
	for _, name := range worker.CompiledCaches() {
		env = append(env, name+"="+filepath.Join(dir, name))
	}
	if row.Judged, row.Cases, cold, err = b.once(ctx, row.Candidate, 2*round+1, env); err != nil {
		return 0, 0, err
	}
	_, _, warm, err = b.once(ctx, row.Candidate, 2*round+2, env)
	return cold, warm, err
}

// once runs the tests in a process of its own, whose CPU time has that of all that
// it started and that ended before.
func (b *subjectBench) once(ctx context.Context, candidate string, seed int, env []string) (judged, cases int, rate float64, err error) {
	exe, err := os.Executable()
	if err != nil {
		return 0, 0, 0, err
	}
	args := []string{"run", "--json", "--candidate", candidate, "--reference", cmp.Or(b.reference, defaultReference), "--seed", strconv.Itoa(seed),
		"-n", strconv.Itoa(b.n), "-j", strconv.Itoa(b.jobs), "--check-graph=false", "--known", "none", "--set", "shrink.runs=0"}
	cmd := exec.CommandContext(ctx, exe, append(args, b.Tests...)...)
	cmd.Args[0] = "plumb"
	cmd.Env = append(os.Environ(), env...)
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	err = cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !(errors.As(err, &exit) && exit.ExitCode() == exitFindings) {
		return 0, 0, 0, harness(fmt.Errorf("plumb run --candidate %s: %w\n%s", candidate, err, log.Bytes()))
	}
	judged, cases, err = judgedCases(out.Bytes())
	spent := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return judged, cases, float64(judged) / spent.Seconds(), err
}

// judgedCases reads the last line of what plumb run --json prints.
func judgedCases(out []byte) (judged, cases int, err error) {
	lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
	var last struct {
		Summary map[string]any `json:"summary"`
	}
	if err := json.Unmarshal(lines[len(lines)-1], &last); err != nil {
		return 0, 0, fmt.Errorf("what plumb run --json prints last: %w", err)
	}
	number := func(key string) int {
		n, _ := last.Summary[key].(float64)
		return int(n)
	}
	cases = number("cases")
	return cases - number(string(verdict.Unsupported)) - number(string(verdict.Rejected)) - number(string(verdict.Skipped)), cases, nil
}

func (b *subjectBench) print(w io.Writer, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(w).Encode(b)
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(tw, "judged cases per CPU-second, median of %s of %s\tcold\twarm\tjudged\tof\t\n", count(b.rounds, "round"), count(len(b.Tests), "test"))
	for _, r := range b.Rows {
		fmt.Fprintf(tw, "%s\t%.1f\t%.1f\t%d\t%d\t\n", r.Candidate, r.Cold, r.Warm, r.Judged, r.Cases)
	}
	return tw.Flush()
}
