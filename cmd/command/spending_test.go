package command

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"plumb/internal/campaign"
	"plumb/internal/campaign/ledger"
	"plumb/internal/draw/choice"
	"plumb/internal/judge/verdict"
	"plumb/program"
	"plumb/tensor"
)

// calling is a program of one call.
func calling(target string, d tensor.DType, strides ...int) *program.Program {
	return &program.Program{Inputs: []program.Input{{Name: "x", DType: d, Shape: []int{2, 2}, Strides: strides}}, Calls: []program.Call{{Target: target}}}
}

// TestBudgetGoesToWhatGains: each test has a case, then those have more first whose case
// met what none had met, or failed as none had; what is in error or has no more cases is
// left out.
func TestBudgetGoesToWhatGains(t *testing.T) {
	var s spending
	var tests []campaign.Test
	relu, rare := calling("torch.relu", tensor.F32), calling("torch.relu", tensor.F32, 1, 2)
	aligned := verdict.Verdict{Word: verdict.Aligned}
	cases := []struct {
		name    string
		p       *program.Program
		verdict verdict.Verdict
	}{
		{"common", relu, aligned}, {"common2", relu, aligned}, {"rare", rare, aligned}, {"fails", relu, verdict.Verdict{Word: verdict.Crash}},
		{"wrong", calling("torch.tan", tensor.F32), aligned}, {"saved", calling("torch.sin", tensor.F32), aligned},
	}
	for _, c := range cases {
		tests = append(tests, campaign.Test{Name: c.name, N: 20})
	}
	tests[5].Fixed, tests[5].N = true, 1
	first := s.first(tests)
	if len(first) != 6 || first[0].N != 1 || first[0].First != 0 {
		t.Fatalf("the first round is %v", first)
	}
	for _, c := range cases {
		s.record(&verdict.Record{Test: c.name, Program: c.p, Verdict: &c.verdict})
		e := &verdict.End{Test: c.name, Judged: 1, Next: 3}
		if c.name == "wrong" {
			e.Err = errors.New("a mistake")
		}
		s.end(e)
	}
	var names []string
	for _, of := range s.more() {
		if names = append(names, of.Name); of.First != 3 || of.N != roundCases {
			t.Errorf("the second round has %+v", of)
		}
	}
	if want := []string{"fails", "common", "rare", "common2"}; !slices.Equal(names, want) {
		t.Errorf("the second round is %q, want %q", names, want)
	}
	if c := s.covered(); c.Tests != 6 || c.Cells != 4 || c.Least != 1 || c.Rounds != 2 {
		t.Errorf("covered: %+v", c)
	}
	s.shared = new(atomic.Bool)
	s.shared.Store(true)
	if of := s.more()[0]; of.N != (choice.Cases{Few: true}).Sharing() {
		t.Errorf("%d cases in a round where %d share a program", of.N, choice.Cases{Few: true}.Sharing())
	}
}

// TestBudgetIsSpent: as many cases as there are to spend, of which no test has less than
// its floor, however much others gain.
func TestBudgetIsSpent(t *testing.T) {
	s := spending{Budget: ledger.Budget{Cases: 5001}}
	var tests []campaign.Test
	for i := range 40 {
		tests = append(tests, campaign.Test{Name: strconv.Itoa(i), N: 20})
	}
	had, fresh := map[string]int{}, uint64(0)
	for round := s.first(tests); len(round) > 0; round = s.more() {
		for _, of := range round {
			for range of.N {
				var traits []uint64
				for range 8 {
					if of.Name < "2" { // eleven of them
						fresh++
						traits = append(traits, fresh)
					}
				}
				s.bandit.Told(&s.by[of.Name].Arm, 1, traits, 0, 0)
			}
			had[of.Name] += of.N
			s.end(&verdict.End{Test: of.Name, Judged: of.N, Next: of.First + of.N})
		}
	}
	all, least := 0, 5001
	for _, n := range had {
		all, least = all+n, min(least, n)
	}
	if floor := 5001/(4*len(tests)) - roundCases; all != 5001 || len(had) != 40 || least < floor || had["10"] < 3*had["30"] {
		t.Errorf("%d cases, at least %d (floor %d), %d of what gains and %d of what does not", all, least, floor, had["10"], had["30"])
	}
}

// TestTimedRunsGoOnAndReplay: a case of any round is the one that -n draws.
func TestTimedRunsGoOnAndReplay(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	programs := func(args ...string) map[float64]string {
		var out strings.Builder
		cmd := newRoot()
		cmd.SetArgs(append([]string{"run", "suites/activation.py::test_relu_module", "--reference", "native", "--seed", "5", "--json", "--set", "oracle=off"}, args...))
		cmd.SetOut(&out)
		if err := cmd.ExecuteContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		ids := map[float64]string{}
		for line := range strings.Lines(out.String()) {
			var rec map[string]any
			if err := json.Unmarshal([]byte(line), &rec); err != nil {
				t.Fatal(err)
			}
			if at, ok := rec["case"].(float64); ok {
				ids[at], _ = rec["id"].(string)
			}
			if sum, ok := rec["summary"].(map[string]any); ok && (sum["covered"] != nil) != (args[0] == "--for") {
				t.Errorf("%v: the summary says covered %v", args, sum["covered"])
			}
		}
		return ids
	}
	timed := programs("--for", "2s")
	if len(timed) < 2*roundCases {
		t.Fatalf("%d cases in two seconds", len(timed))
	}
	for at, id := range programs("-n", "12") {
		if timed[at] != id || id == "" {
			t.Errorf("case %v is %q, with --for %q", at, id, timed[at])
		}
	}
}
