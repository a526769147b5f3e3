package command

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"plumb/internal/campaign"
	"plumb/internal/judge/verdict"
	"plumb/program"
	"plumb/tensor"
)

// calling is a program of one call.
func calling(target string, d tensor.DType, strides ...int) *program.Program {
	return &program.Program{Inputs: []program.Input{{Name: "x", DType: d, Shape: []int{2, 2}, Strides: strides}}, Calls: []program.Call{{Target: target}}}
}

// TestTimeGoesToWhatIsLeastCovered: each test has a case, then those whose cells
// were met least have more; what is in error or has no more cases is left out.
func TestTimeGoesToWhatIsLeastCovered(t *testing.T) {
	var s spending
	var tests []campaign.Test
	for _, name := range []string{"common", "common2", "rare", "wrong", "saved"} {
		tests = append(tests, campaign.Test{Name: name, N: 20})
	}
	tests[4].Fixed, tests[4].N = true, 1
	first := s.first(tests)
	if len(first) != 5 || first[0].N != 1 || first[0].First != 0 {
		t.Fatalf("the first round is %v", first)
	}
	for name, p := range map[string]*program.Program{
		"common": calling("torch.relu", tensor.F32), "common2": calling("torch.nn.ReLU", tensor.F32), "rare": calling("torch.relu", tensor.F32, 1, 2),
		"wrong": calling("torch.tan", tensor.F32), "saved": calling("torch.sin", tensor.F32),
	} {
		s.record(&verdict.Record{Test: name, Program: p})
		e := &verdict.End{Test: name, Judged: 1, Next: 3}
		if name == "wrong" {
			e.Err = errors.New("a mistake")
		}
		s.end(e)
	}
	more := s.more()
	if len(more) != 3 || more[0].Name != "rare" || more[0].First != 3 || more[0].N != roundCases {
		t.Errorf("the second round is %v", more)
	}
	if c := s.covered(); c.Tests != 5 || c.Cells != 4 || c.Least != 1 || c.Rounds != 2 {
		t.Errorf("covered: %+v", c)
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
