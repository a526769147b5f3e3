package diopi_test

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"testing"

	"plumb/backend"
	"plumb/backend/open"
	"plumb/backend/worker"
	"plumb/internal/campaign"
	"plumb/internal/conform/config"
	"plumb/internal/conform/diopi"
	"plumb/internal/judge"
	"plumb/internal/judge/verdict"
	"plumb/nn"
	"plumb/ops"
	"plumb/program"
	"plumb/tensor"
)

// perFunction is how many small cases of each function run, and perInPlace how
// many of their variants in place.
const (
	perFunction = 6
	perInPlace  = 2
	small       = 4000 // elements
)

// refusals are the reasons for which PyTorch 1.13 refuses cases on a CPU: those
// that DIOPI's own run fails with.
var refusals = regexp.MustCompile(`not implemented for '?(Half|Bool)|ZeroDivisionError|must be long, byte or bool|` +
	`Could not run 'aten::batch_norm_|no callable torch(vision|\._fused_adamw_)|shape mismatch: value tensor|can't be cast to the desired output type|overflow`)

// lacking are the functions that the native table has not, or not in all of a
// config's forms.
var lacking = []string{}

// TestLiveSpread runs a spread of small cases of every function on PyTorch and
// on the native backend: what PyTorch computes is aligned.
func TestLiveSpread(t *testing.T) {
	src, err := os.ReadFile("../../../../shared/data/conformance_dev.py")
	if err != nil {
		t.Skip("no dev config: ", err)
	}
	if _, _, err := worker.FindPython(""); err != nil {
		t.Skip("no PyTorch: ", err)
	}
	cfg, err := config.Load("conformance_dev.py", src)
	if err != nil {
		t.Fatal(err)
	}
	programs, functions := spread(t, cfg)
	if len(functions) != 171 {
		t.Errorf("%d functions, want 171", len(functions))
	}
	run(t, programs)
}

// TestLiveCustom does the same with functions that the dev config has not.
func TestLiveCustom(t *testing.T) {
	if _, _, err := worker.FindPython(""); err != nil {
		t.Skip("no PyTorch: ", err)
	}
	src, err := os.ReadFile("../../../conform/testdata/custom.py")
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load("custom.py", src)
	if err != nil {
		t.Fatal(err)
	}
	programs, _ := spread(t, cfg)
	run(t, programs)
}

func run(t *testing.T, programs []one) {
	words := map[verdict.Word]int{}
	judgeAll(t, programs, func(r *verdict.Record) {
		words[r.Verdict.Word]++
		if why := complaint(r, programs[r.Index].function); why != "" {
			t.Errorf("%s: %s\n%s", r.Program.Name, why, r.Program)
		}
	})
	t.Logf("%d programs: %v", len(programs), words)
}

// complaint says what is wrong with a verdict; "" when nothing is.
func complaint(r *verdict.Record, function string) string {
	refused := r.Reference.Class + ": " + r.Reference.Message
	switch r.Verdict.Word {
	case verdict.Aligned, verdict.Known:
		return ""
	case verdict.Rejected:
		if refusals.MatchString(refused) {
			return ""
		}
	case verdict.Unsupported:
		if r.Reference.Status != backend.OK && refusals.MatchString(refused) {
			return ""
		}
		if r.Reference.Status == backend.OK && slices.Contains(lacking, function) {
			return ""
		}
	}
	return fmt.Sprintf("%s: %s; the reference: %s, the candidate: %s", r.Verdict.Word, r.Verdict.Reason, refused, r.Outcome.Message)
}

// one is a program of a function.
type one struct {
	function string
	program  *program.Program
}

// spread picks small cases of every function, evenly among all that it has, or
// the smallest where it has no small one.
func spread(t *testing.T, cfg *config.Config) ([]one, []string) {
	forward, inPlace, least := map[string][]one{}, map[string][]one{}, map[string]one{}
	for c := range cfg.Cases() {
		p, err := diopi.Program(c, 11)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		n := size(p)
		if l, ok := least[c.Function]; !ok || n < size(l.program) {
			least[c.Function] = one{c.Function, p}
		}
		if n > small {
			continue
		}
		forward[c.Function] = append(forward[c.Function], one{c.Function, p})
		if q, ok, err := diopi.InPlace(c, 11); err != nil {
			t.Errorf("%v", err)
		} else if ok {
			inPlace[c.Function] = append(inPlace[c.Function], one{c.Function, q})
		}
	}
	var out []one
	names := slices.Sorted(maps.Keys(least))
	for _, f := range names {
		if len(forward[f]) == 0 {
			forward[f] = []one{least[f]}
		}
		out = append(append(out, evenly(forward[f], perFunction)...), evenly(inPlace[f], perInPlace)...)
	}
	return out, names
}

func evenly(all []one, n int) []one {
	var out []one
	for i := range min(n, len(all)) {
		out = append(out, all[i*len(all)/min(n, len(all))])
	}
	return out
}

func size(p *program.Program) int {
	n := 0
	for _, in := range p.Inputs {
		n += tensor.NumElements(in.Shape)
	}
	return n
}

func judgeAll(t *testing.T, programs []one, on func(*verdict.Record)) {
	set := &open.Set{Table: ops.Table()}
	torch, err := set.Opener(t.Context(), "torch")
	if err != nil {
		t.Skip(err)
	}
	own, err := set.Opener(t.Context(), "native")
	if err != nil {
		t.Fatal(err)
	}
	err = campaign.Run(t.Context(), campaign.Config{
		Reference: torch, Candidates: []campaign.Candidate{{Name: "native", Open: own}}, Batch: 32,
		Judge:    judge.New(judge.Config{Table: ops.Table(), Modules: nn.Modules(), CanAskReference: true, Oracle: judge.OnMismatch, Reference: set.Is("torch")}),
		OnRecord: on,
		OnEnd: func(e *verdict.End) {
			if e.Err != nil {
				t.Error(e.Err)
			}
		},
		Tests: []campaign.Test{{Name: "conform", N: len(programs), Fixed: true, Draw: func(i int, _ campaign.Observer) (*program.Program, error) {
			return programs[i].program, nil
		}}},
	})
	if err != nil {
		t.Fatal(err)
	}
}
