package command

import (
	"io"
	"strings"
	"testing"
)

// ended runs a command line and returns its exit code and message.
func ended(t *testing.T, line string) (int, string) {
	t.Helper()
	cmd := newRoot()
	cmd.SetArgs(strings.Fields(line))
	cmd.SetOut(io.Discard)
	cmd.SetErr(io.Discard)
	err := cmd.ExecuteContext(t.Context())
	if err == nil {
		return exitAligned, ""
	}
	return exitCode(err), err.Error()
}

// TestNothingJudgedIsNoPass: a candidate that has nothing, and a selection that
// names nothing, end every command that judges with 5 and say why.
func TestNothingJudgedIsNoPass(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	file := save(t, "x.py", "@autotest(n=2)\ndef test_x():\n    return torch.relu(random_tensor())\n")
	skips := save(t, "skips.py", "import unittest\n\n@unittest.skip('not today')\n@autotest(n=2)\ndef test_x():\n    return torch.relu(random_tensor())\n")
	for _, c := range []struct{ line, why string }{
		{"run " + file + " --reference native -k zzzz", `no test's name matches -k "zzzz"`},
		{"run " + skips + " --reference native", "1 test, which the file skips: not today"},
		{"ops run nosuch* --reference native", "no operator's name matches nosuch*"},
		{"ops run relu --reference native -k zzzz", "no test's name matches"},
		{"ops run relu -n 1 --reference recorded", "--reference recorded: it holds none of these cases"},
		{"matrix nosuch* --reference native", "no operator's name matches nosuch*"},
		{"ops gradcheck nosuch*", "no operator's name matches nosuch*"},
		{"ops gradcheck eq", "no gradient was checked"},
	} {
		if code, said := ended(t, c.line); code != exitNothing || !strings.Contains(said, "no case was judged: "+c.why) {
			t.Errorf("plumb %s: %d, %s", c.line, code, said)
		}
	}
	without := ownWorkerBinary(t, "functions[] = {", "functions[] = {\n\t{NULL, NULL, 0},")
	with := ownWorkerBinary(t)
	for _, line := range []string{
		"run " + file + " --seed 1 --reference native",
		"ops run relu -n 12 --seed 1 --dtype float32 --reference native",
		"graph run -n 2 --reference native",
		"matrix relu -n 12 --seed 1 --dtype float32 --reference native",
		"conform run --fname relu",
	} {
		if code, said := ended(t, line+" --candidate "+without); code != exitNothing || !strings.Contains(said, "no case was judged: ") || !strings.Contains(said, " because there is no ") {
			t.Errorf("plumb %s of a worker that has nothing: %d, %s", line, code, said)
		}
		if strings.HasPrefix(line, "graph") {
			continue // it has few of the operators of programs
		}
		if code, said := ended(t, line+" --candidate "+with); code != exitAligned {
			t.Errorf("plumb %s: %d, %s", line, code, said)
		}
	}
}

// TestMinImplemented: too few judged cases are no pass, and findings come first.
func TestMinImplemented(t *testing.T) {
	t.Parallel()
	worker := ownWorkerBinary(t)
	broken := ownWorkerBinary(t, "relu_of(double x) { return x < 0 ? 0 : x; }", "relu_of(double x) { return x < 0 ? 1 : x; }")
	for _, c := range []struct {
		line string
		code int
	}{
		{"--fname relu --forward --candidate " + worker + " --min-implemented 100%", exitAligned},
		{"--fname relu --candidate " + worker + " --min-implemented 15", exitAligned},
		{"--fname relu --candidate " + worker + " --min-implemented 100", exitNothing},
		{"--fname relu,sort --candidate " + worker + " --min-implemented 0.9", exitNothing},
		{"--fname relu,sort --candidate " + broken + " --min-implemented 90%", exitFindings},
	} {
		if code, said := ended(t, "conform run "+c.line); code != c.code || code == exitNothing && !strings.Contains(said, "fewer than --min-implemented") {
			t.Errorf("%s: %d, %s", c.line, code, said)
		}
	}
	for _, text := range []string{"0", "-1", "0%", "101%", "1.5", "all"} {
		if got := refusal(t, "conform", "run", "--min-implemented", text); !strings.Contains(got, "want a share such as 40%") {
			t.Errorf("--min-implemented %s: %s", text, got)
		}
	}
}
