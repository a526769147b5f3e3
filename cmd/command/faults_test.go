package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"os/exec"
	"strings"
	"testing"

	"plumb/backend/worker"
	"plumb/internal/judge/proof"
	"plumb/internal/judge/reffaults"
	"plumb/internal/judge/verdict"
)

// TestFaultsOfTorch: what is claimed of the PyTorch that is here, its proofs show.
func TestFaultsOfTorch(t *testing.T) {
	t.Parallel()
	if _, _, err := worker.FindPython(""); err != nil {
		t.Skip(err)
	}
	out, err := command(t, "faults", "verify")
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if last := out[strings.LastIndexByte(strings.TrimSpace(out), '\n')+1:]; !strings.HasPrefix(last, "torch ") || !strings.HasSuffix(last, "; 0 rows are wrong about it\n") {
		t.Error(last)
	}
}

// command runs a command line and returns what it prints.
func command(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	cmd := newRoot()
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

func TestFaultsList(t *testing.T) {
	out, err := command(t, "faults", "list", "-k", "cholesky_solve", "--json")
	if err != nil {
		t.Fatal(err)
	}
	var row faultRow
	if err := json.Unmarshal([]byte(out), &row); err != nil || row.Operator != "cholesky_solve" || row.Proof == "" || row.Reason == "" || row.Word != "" {
		t.Errorf("%v: %s", err, out)
	}
	if all, err := command(t, "faults"); err != nil || !strings.Contains(all, row.Reason) {
		t.Errorf("%v: plumb faults does not list %q", err, row.Reason)
	}
	refusal(t, "faults", "verify", "--reference", "native")
	refusal(t, "faults", "verify", "--reference", "torch:nosuchpython")
	refusal(t, "faults", "-k", "or or")
}

// TestWrongClaims: rows that claim too much or too little of a version are told
// apart from those that are right.
func TestWrongClaims(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3: ", err)
	}
	fw := reffaults.Framework{Name: "json", Module: "json"} // whose version is 2.0.9
	for _, c := range []struct {
		versions, proof string
		wrong           bool
	}{
		{"json", "True", false}, {"json <2.1", "True", false}, {"json <2", "True", true}, {"json >=2.1", "True", true},
		{"json", "False", true}, {"json <2", "False", false},
		{"json", "1/0", true}, {"json >=3", "1/0", false},
	} {
		fw.Faults = []verdict.CandidateFault{{KnownFault: verdict.KnownFault{Reference: c.versions, Proof: c.proof}}}
		var f faultsFlags
		rows, err := f.rows(fw)
		if err != nil {
			t.Fatal(err)
		}
		version, err := runProofs(t.Context(), fw, python, rows)
		if err != nil {
			t.Fatal(err)
		}
		if rows[0].Wrong != c.wrong {
			t.Errorf("%s of %s: %s %s, wrong %v", c.versions, version, c.proof, rows[0].Word, rows[0].Wrong)
		}
		var out bytes.Buffer
		err = f.verdicts(&out, "json "+version, rows)
		var failed *exitError
		if errors.As(err, &failed) != c.wrong || c.wrong && failed.code != exitFindings || strings.Contains(out.String(), ", wrong") != c.wrong {
			t.Errorf("%s %s: %v\n%s", c.versions, c.proof, err, out.String())
		}
		if rows[0].Word == proof.Changed && !strings.Contains(out.String(), "ZeroDivisionError") {
			t.Error(out.String())
		}
	}
}
