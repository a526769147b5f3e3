package command

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"testing"
	"time"

	"plumb/internal/campaign"
)

// TestSubjectsAreMeasured: all that was judged counts, once a side of each round.
func TestSubjectsAreMeasured(t *testing.T) {
	cmd := newBenchSubjects()
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetArgs([]string{"native", "--reference", "native", "--tests", "3", "-n", "4", "--count", "2", "--json"})
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	var got subjectBench
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Tests) != 3 || len(got.Rows) != 1 || got.Rows[0].Judged != 12 || got.Rows[0].Cold <= 0 || got.Rows[0].Warm <= 0 {
		t.Errorf("three tests of four cases give %s", out.Bytes())
	}
}

// TestTimeOfSubjects: what the processes of a run have used is part of its own time, also
// where they are forks of one.
func TestTimeOfSubjects(t *testing.T) {
	slow(t)
	python := needTorch(t)
	spent := func(name string, args ...string) time.Duration {
		cmd := exec.Command(name, args...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	run := spent(plumbProgram(t), "ops", "run", "relu", "-n", "1", "--store", "none", "-q", "--python", python)
	if imported := spent(python, "-c", "import torch"); run < imported/2 {
		t.Errorf("a run took %s, the import of PyTorch alone %s", run, imported)
	}
}

// TestUnsupportedCasesCountForNothing: nor do rejected ones.
func TestUnsupportedCasesCountForNothing(t *testing.T) {
	judged, cases, err := judgedCases([]byte("{\"case\":1}\n{\"summary\":{\"cases\":10,\"aligned\":4,\"misaligned\":1,\"unsupported\":3,\"rejected\":2,\"skipped\":0}}\n"))
	if judged != 5 || cases != 10 || err != nil {
		t.Errorf("%d judged of %d, %v", judged, cases, err)
	}
	if _, _, err := judgedCases(nil); err == nil {
		t.Error("no summary is taken for one")
	}
}

func TestTestsAreSpreadEvenly(t *testing.T) {
	tests := make([]campaign.Test, 10)
	for i := range tests {
		tests[i].N = i
	}
	if got := evenly(tests, 4); len(got) != 4 || got[1].N != 2 || got[3].N != 7 {
		t.Errorf("four of ten tests are %v", got)
	}
	if got := evenly(tests, 100); len(got) != 10 {
		t.Errorf("a hundred of ten tests are %d", len(got))
	}
}
