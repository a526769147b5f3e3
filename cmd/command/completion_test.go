package command

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestCompletion: what shells are offered for tests, operators, subjects, functions and
// the words of flags.
func TestCompletion(t *testing.T) {
	args := os.Args
	defer func() { os.Args = args }()
	file := save(t, "mine.py", "class TestA(unittest.TestCase):\n    def test_in(self):\n        pass\n\ndef test_out():\n    pass\n\ndef helper(x):\n    pass\n")
	for _, c := range []struct {
		line, begun string
		want        string
		files       bool
	}{
		{"ops run", "softm", "softmax", true},
		{"matrix", "conv2", "conv2d", true},
		{"run", file + "::", file + "::TestA::test_in", true},
		{"run", file + "::test_o", file + "::test_out", true},
		{"run", "suites/activation.py::test_relu", "suites/activation.py::test_relu", true},
		{"graph show", file + "::TestA", file + "::TestA::test_in", true},
		{"explain", "rel", "relu", true},
		{"kernel", file + "::h", file + "::helper", true},
		{"kernel --against", "torch.nn.functional.softm", "torch.nn.functional.softmax", false},
		{"run --candidate", "native,jax", "native,jax", false},
		{"run --reference", "tor", "torch", false},
		{"run -k", "test_rel", "test_relu", false},
		{"run --report", "sar", "sarif=", false},
		{"run --color", "al", "always", false},
		{"run --dtype", "bf", "bfloat16", false},
		{"run --set", "oracle=on", "oracle=on-mismatch", false},
		{"run --set", "shrink.r", "shrink.runs=", false},
		{"conform run --fname", "conv2", "conv2d", false},
	} {
		os.Args = append([]string{"plumb", cobra.ShellCompRequestCmd}, append(strings.Fields(c.line), c.begun)...)
		var out bytes.Buffer
		cmd := newRoot()
		cmd.SetArgs(os.Args[1:])
		cmd.SetOut(&out)
		cmd.SetErr(new(bytes.Buffer))
		if err := cmd.ExecuteContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		offered, directive := lines[:len(lines)-1], lines[len(lines)-1]
		if !slices.ContainsFunc(offered, func(o string) bool { name, _, _ := strings.Cut(o, "\t"); return name == c.want }) || (directive == ":0") != c.files {
			t.Errorf("%s %s: %q, want %s", c.line, c.begun, lines, c.want)
		}
	}
}
