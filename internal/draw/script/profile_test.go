package script

import (
	"fmt"
	"strings"
	"testing"

	"plumb/internal/draw/choice"
)

const profiles = `
import unittest

class TestOps(unittest.TestCase):
    @profile(torch.relu)
    def profile_relu(test_case):
        x = torch.ones(3)
        torch.relu(x)
        torch.exp(torch.relu(x, profile_description="again"))

    @profile(torch.Tensor.add_)
    def profile_add_(test_case):
        torch.ones(3).add_(1)

    @profile(torch.nn.ReLU)
    def profile_module(test_case):
        m = torch.nn.ReLU()
        m(torch.ones(3))

@profile(torch.sum)
def profile_none(test_case):
    torch.ones(3)

@profile(3)
def profile_number(test_case):
    torch.ones(3)
`

// TestProfilesTellTheirCalls draws functions with @profile: the calls of the
// operator that each names, with their descriptions.
func TestProfilesTellTheirCalls(t *testing.T) {
	want := []string{"profile_relu torch.relu: 1  2 again ", "profile_add_ Tensor.add_: 1  ", "profile_module torch.nn.ReLU: 2  ", "never calls torch.sum", "never calls 3"}
	all := load(t, profiles).Profiles()
	if len(all) != len(want) {
		t.Fatalf("%d profiles", len(all))
	}
	for i, p := range all {
		_, calls, err := p.DrawProfile(choice.New(1), Env{Signatures: toySigs})
		got := fmt.Sprintf("%s %s: ", shortName(p.fn), p.Profile)
		for _, m := range calls {
			got += fmt.Sprintf("%d %s ", m.Call, m.Description)
		}
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, want[i]) {
			t.Errorf("got %q, want %q", got, want[i])
		}
		if p.Skip == "" {
			t.Errorf("plumb run runs %s", p.Name)
		}
	}
}
