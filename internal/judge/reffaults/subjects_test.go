package reffaults

import (
	"testing"

	"plumb/internal/judge/verdict"
	"plumb/ops"
	"plumb/program"
)

func TestReadSubject(t *testing.T) {
	fw, err := readSubject("x", []byte(`{"module": "m", "setup": "s", "faults": [
		{"operator": "f", "versions": "x <2", "kinds": ["value"], "dtype": "float64", "least": 1, "most": 2, "reason": "r", "proof": "p"}]}`))
	if err != nil || fw.Module != "m" || len(fw.Faults) != 1 {
		t.Fatal(fw, err)
	}
	for text, want := range map[string]bool{"[0.5, 1.5]": true, "[0.5, 2.0]": true, "[0.5, 2.5]": false} {
		p, err := program.Parse("case.py", program.Header+"\ncase(\"case.py::case\", seed=1)\nx = tensor((2,), torch.float64, "+text+")\nv = torch.abs(x)\n")
		if err != nil {
			t.Fatal(err)
		}
		if got := fw.Faults[0].When(p); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
	for _, bad := range []string{`{`, `{"faults": [{"unheard": 1}]}`, `{"faults": [{"versions": "x 2"}]}`, `{"faults": [{"versions": "x", "dtype": "float65"}]}`} {
		if _, err := readSubject("x", []byte(bad)); err == nil {
			t.Errorf("%s is read", bad)
		}
	}
}

// TestSubjectsNameFunctions: a row's operator is the last part of a public name,
// by which calls are known; an id such as linalg_pinv is none.
func TestSubjectsNameFunctions(t *testing.T) {
	known := map[string]bool{}
	for _, d := range ops.Table().Defs() {
		for _, name := range d.Names {
			known[verdict.OperatorName(name)] = true
		}
	}
	for _, f := range Subjects {
		if !known[verdict.OperatorName(f.Target)] || verdict.OperatorName(f.Target) != verdict.OperatorName("."+f.Target) {
			t.Errorf("%s: no public name ends with %s", f.Reference, f.Target)
		}
	}
}
