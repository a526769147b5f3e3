package command

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"plumb/backend"
	"plumb/internal/campaign"
	"plumb/internal/draw/choice"
	"plumb/internal/draw/opcase"
	"plumb/ops"
	"plumb/program"
)

// The test of random programs, and how many cases it has unless it is said.
const (
	graphsTest = "graphs::random"
	graphCases = 100
)

func newGraphRun() *cobra.Command {
	s := newSession()
	s.cases.n = graphCases
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Compare random programs of 3 to 40 calls that use each other's results",
		Long: `Run draws random programs of several calls: each call is drawn from the
definition of its operator and takes results of earlier calls. The programs run
forward and backward on the reference and on the candidates, and are compared.`,
		Example: `  plumb graph run -n 1000
  plumb graph run -n 1000 --check-graph       as static graphs too
  plumb graph run --candidate torch:fx`,
		Args: noArguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			s.attach(cmd)
			return runGraphs(cmd.Context(), s)
		},
	}
	group(cmd, whichCases, func(fl *pflag.FlagSet) {
		fl.VarP(wholeNumber(&s.cases.n, 1), "number", "n", "how many programs")
		fl.Var(anySeed(&s.cases.given), "seed", "the seed of all programs (default: a new one, printed at the end)")
	})
	s.subjects.register(cmd)
	s.judging.register(cmd)
	s.reports.register(cmd)
	return guarded(cmd)
}

func runGraphs(ctx context.Context, s *session) error {
	s.cases.settle(nil)
	if err := s.open(ctx, false); err != nil {
		return err
	}
	defer s.cases.sigs.Close()
	test, err := graphTest(ctx, s)
	if err != nil {
		return err
	}
	s.observers = append(s.observers, &explainer{candidates: len(s.subjects.candidates)})
	return s.run(ctx, "plumb graph run", []campaign.Test{test})
}

// graphTest draws programs of operators that every backend has, differentiated
// where the reference can.
func graphTest(ctx context.Context, s *session) (campaign.Test, error) {
	const name = graphsTest
	g := opcase.NewGrapher(ops.Table())
	if err := probe(ctx, g, s.cfg); err != nil {
		return campaign.Test{}, err
	}
	return campaign.Drawn(name, name, s.cases.n, choice.Any(choice.DeriveName(s.cases.seed, name)), func(src *choice.Source, _ int, _ campaign.Observer) (*program.Program, error) {
		return g.Draw(src)
	}), nil
}

// probe tells a grapher what the backends lack.
func probe(ctx context.Context, g *opcase.Grapher, cfg *campaign.Config) error {
	probes := g.Probes()
	programs := make([]*program.Program, len(probes))
	for i := range probes {
		programs[i] = probes[i].Program
	}
	openers := []campaign.Opener{cfg.Reference}
	for _, c := range cfg.Candidates {
		openers = append(openers, c.Open)
	}
	for _, open := range openers {
		outcomes, err := campaign.Try(ctx, open, programs)
		if err != nil {
			return harness(err)
		}
		for i, out := range outcomes {
			switch {
			case out.Status == backend.Unsupported:
				g.Leave(probes[i])
			case out.NoKernel:
				g.Hold(probes[i])
			}
		}
	}
	return nil
}
