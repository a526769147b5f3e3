package command

import (
	"errors"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"plumb/backend/open"
	"plumb/internal/campaign"
	"plumb/internal/judge"
	"plumb/nn"
	"plumb/ops"
)

// judging says how outcomes are judged.
type judging struct {
	*settings
	tolerance     tolerance
	checkGraph    *bool // nil: as the tests say
	known         string
	explain       bool // why limits are what they are
	sameException bool // what both sides raise must have the same class
	memory        int  // of the cases that run at the same time, in bytes
}

func (j *judging) register(cmd *cobra.Command) {
	group(cmd, howJudged, func(fl *pflag.FlagSet) {
		fl.Var(tolerances(&j.tolerance), "tolerance", "use these limits for every comparison instead of those of docs/numerics.md and of the tests: autotest (rtol 1e-4, atol 1e-5), exact, default (those of torch.testing.assert_close, by dtype) or RTOL,ATOL")
		fl.Var(yesOrNo(&j.checkGraph), "check-graph", "run every case as a static graph too, with =false none, and compare values, gradients, in-place changes, buffers, and a module's parameters after a step of SGD (default: as the test says; off for cases drawn from operators)")
		fl.Lookup("check-graph").NoOptDefVal = "true"
		fl.Var(&pathValue{&j.known, "file", checkKnown}, "known", `the list of accepted failures, see plumb known; "none" for no list (default: `+defaultKnown+`, where it exists)`)
		fl.Var(memorySize(&j.memory, "1GB"), "memory", "memory for the cases that run at the same time; what a single case takes more is not judged, and the case is skipped, with its size")
		j.settings.flag(fl)
	})
}

// checksGraph says whether a test is judged in graph modes too, which it says
// of itself unless the flag does.
func (j *judging) checksGraph(test bool) bool {
	if j.checkGraph != nil {
		return *j.checkGraph
	}
	return test
}

// arm gives a campaign its judge, and returns what it was made of.
func (j *judging) arm(cfg *campaign.Config, s *subjects) (judge.Config, error) {
	by := judge.Config{
		Table: ops.Table(), Modules: nn.Modules(), Oracle: j.oracle, Reference: s.set.Is(s.reference), CanAskReference: !open.IsRecorded(s.reference),
		RTol: j.tolerance.rtol, ATol: j.tolerance.atol, Default: j.tolerance.byDType,
		SameException: j.sameException, Explain: j.explain, NoExceptions: j.exceptions == isRejection, ReferencesException: j.exceptions == isStrict, Memory: int64(j.memory),
	}
	if by.Oracle == judge.Always && !by.CanAskReference {
		return by, usage(errors.New("--set oracle=always: a recorded reference cannot be asked again"))
	}
	cfg.Judge, cfg.Memory = judge.New(by), int64(j.memory)
	return by, nil
}
