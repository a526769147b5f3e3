package command

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/spf13/cobra"

	"plumb/internal/campaign"
	"plumb/internal/campaign/drive"
	"plumb/internal/campaign/report"
	"plumb/internal/judge/verdict"
)

// budgetBench counts the cases until planted faults are found: spent as --for spends
// them, and spent evenly.
type budgetBench struct {
	*selftest
	tests []*benched
}

// benched is a test with what its cases show.
type benched struct {
	test  campaign.Test
	cases []benchedCase
	shows map[string]int // by the name of a fault, the first case that shows it
}

// benchedCase is what a budget looks at.
type benchedCase struct {
	traits []uint64
	worst  float64
}

func newBenchBudget() *cobra.Command {
	b := &budgetBench{selftest: newSelftestOf()}
	b.judging.shrink.Runs, b.proofs = 0, 0
	b.selftest.watch = b.watch
	cmd := &cobra.Command{
		Use:   "budget",
		Short: "Cases until planted faults are found: spent as --for spends them, and evenly",
		Long: `Budget runs the shipped suites on the operators without a fault, and each of the
faults of plumb selftest on every case that touches what it changes. It then tells
after how many cases the faults are found: where --for spends them, and where every
test has one after the other.`,
		Example: `  plumb bench budget -n 24 --seed 5`,
		Args:    noArguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			b.out, b.err = io.Discard, cmd.ErrOrStderr()
			b.told = report.NewSummary()
			b.plant("")
			if err := b.open(); err != nil {
				return err
			}
			if err := b.judgeAll(cmd.Context()); err != nil {
				return err
			}
			defer b.close()
			b.print(cmd.OutOrStdout())
			return nil
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&b.subjects.reference, "reference", "", "the backend that is taken to be right (default torch): torch, recorded, …; see plumb help backends")
	pythonFlag(fl, &b.subjects.python)
	b.cases.register(fl)
	jobsFlag(fl, &b.subjects.jobs, "cases that run at the same time, as many as CPUs and memory allow")
	return cmd
}

// watch keeps the cases of a test, and which of them show which fault.
func (b *budgetBench) watch(ctx context.Context, records []*verdict.Record, touched []map[string]bool) {
	if len(records) == 0 {
		return
	}
	t := &benched{test: campaign.Test{Name: records[0].Test, N: len(records), Fixed: true}, shows: map[string]int{}}
	b.tests = append(b.tests, t)
	for _, r := range records {
		worst, _ := worstOf(r.Verdict)
		t.cases = append(t.cases, benchedCase{report.Traits(r.Program), worst})
	}
	var one sync.Mutex
	_ = drive.Each(ctx, b.subjects.jobs, b.mutants, func(m *mutantRun) error { // the run around it ends with the context too
		for i, r := range records {
			if !touched[i][m.In] || m.err != nil || ctx.Err() != nil {
				continue
			}
			if m.err = b.try(ctx, m, r); m.found != nil {
				one.Lock()
				t.shows[m.Name] = i
				one.Unlock()
				m.found = nil
				break
			}
		}
		return m.err
	}, nil)
}

// order is a sequence of cases, each the next of a test.
type order []*benched

// evenly gives every test a case after the other.
func (b *budgetBench) evenly() (all order) {
	for i, more := 0, true; more; i++ {
		more = false
		for _, t := range b.tests {
			if i < len(t.cases) {
				all, more = append(all, t), true
			}
		}
	}
	return all
}

// asSpent is the order in which --for gives tests their cases.
func (b *budgetBench) asSpent() (all order) {
	var s spending
	var tests []campaign.Test
	by := map[string]*benched{}
	for _, t := range b.tests {
		tests, by[t.test.Name] = append(tests, t.test), t
	}
	for round := s.first(tests); len(round) > 0; round = s.more() {
		for _, t := range round {
			of := by[t.Name]
			for i := t.First; i < t.First+t.N; i++ {
				s.bandit.Told(&s.by[t.Name].Arm, 1, of.cases[i].traits, nearness(of.cases[i].worst), 0)
				all = append(all, of)
			}
			s.end(&verdict.End{Test: t.Name, Judged: t.N, Next: t.First + t.N})
		}
	}
	return all
}

// found is after how many cases of an order each fault is, in order.
func (all order) found() []int {
	var out []int
	had, known := map[*benched]int{}, map[string]bool{}
	for k, t := range all {
		for name, at := range t.shows {
			if at == had[t] && !known[name] {
				known[name] = true
				out = append(out, k+1)
			}
		}
		had[t]++
	}
	return out
}

func (b *budgetBench) print(out io.Writer) {
	even, spent := b.evenly(), b.asSpent()
	a, c := even.found(), spent.found()
	fmt.Fprintf(out, "%d tests, %d cases, %d of %d faults shown\n", len(b.tests), len(even), len(a), len(b.mutants))
	for _, percent := range []int{50, 75, 90, 95} {
		n := (len(b.mutants)*percent + 99) / 100
		if n > min(len(a), len(c)) {
			break
		}
		fmt.Fprintf(out, "%d%% of the faults: after %d cases spent evenly, %d as --for spends them: %.2f × fewer\n", percent, a[n-1], c[n-1], float64(a[n-1])/float64(c[n-1]))
	}
	for _, m := range b.mutants {
		if !slices.ContainsFunc(b.tests, func(t *benched) bool { _, ok := t.shows[m.Name]; return ok }) {
			fmt.Fprintf(out, "not shown: %s\n", m.Name)
		}
	}
}
