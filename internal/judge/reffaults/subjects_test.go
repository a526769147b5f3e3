package reffaults

import (
	"math"
	"slices"
	"testing"

	"plumb/backend"
	"plumb/internal/judge/verdict"
	"plumb/nn"
	"plumb/ops"
	"plumb/program"
	"plumb/tensor"
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
	for _, bad := range []string{`{`, `{"faults": [{"unheard": 1}]}`, `{"faults": [{"versions": "x 2"}]}`, `{"faults": [{"versions": "x", "dtype": "float65"}]}`,
		`{"faults": [{"versions": "x", "shows": "unheard"}]}`, `{"faults": [{"versions": "x", "has": ["unheard"]}]}`,
		`{"faults": [{"versions": "x", "kinds": ["value"]}]}`, `{"faults": [{"versions": "x", "dtype": "float64"}]}`,
		`{"faults": [{"versions": "x", "everywhere": true, "most": 1}]}`} {
		if _, err := readSubject("x", []byte(bad)); err == nil {
			t.Errorf("%s is read", bad)
		}
	}
}

// TestRowsAreNarrow: a row of numbers that float32 does not hold is of no other
// call, and one of infinities of no finite element.
func TestRowsAreNarrow(t *testing.T) {
	fw, err := readSubject("x", []byte(`{"faults": [{"operator": "f", "versions": "x <2", "long": true, "shows": "infinity"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	f := fw.Faults[0]
	for number, want := range map[string]bool{"0.1": true, "0.5": false, "1e300": true, "2": false, `float("nan")`: false, "v": false} {
		p, err := program.Parse("case.py", program.Header+"\ncase(\"case.py::case\", seed=1)\nv = tensor((), torch.float64, [1.0])\nw = torch.div("+number+", v)\n")
		if err != nil {
			t.Fatal(err)
		}
		if got := f.When(p); got != want {
			t.Errorf("%s: %v", number, got)
		}
	}
	if !f.Shows(complex(math.Inf(-1), 0)) || f.Shows(0.1) {
		t.Error("an infinity is not told from a number")
	}
	fw, err = readSubject("onnx-x", []byte(`{"name": "onnx:x", "faults": [{"operator": "f", "versions": "onnx:x", "text": ["training=True"]}]}`))
	if err != nil || fw.Name != "onnx:x" {
		t.Fatal(fw, err)
	}
	for text, want := range map[string]bool{"training=True": true, "training=False": false} {
		p, err := program.Parse("case.py", program.Header+"\ncase(\"case.py::case\", seed=1)\nv = tensor((1, 1), torch.float64, [1.0])\nw = torch.nn.functional.batch_norm(v, None, None, "+text+")\n")
		if err != nil {
			t.Fatal(err)
		}
		if got := fw.Faults[0].When(p); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

// TestPaddlesMargin: what Paddle's multi_margin_loss takes in float32 of float64 is known, and no more.
func TestPaddlesMargin(t *testing.T) {
	at := slices.IndexFunc(Subjects, func(f verdict.CandidateFault) bool { return f.Target == "multi_margin_loss" })
	if at < 0 || Subjects[at].DType != tensor.F64 || Subjects[at].Within > 1e-6 || !slices.Equal(Subjects[at].Kinds, []verdict.Kind{verdict.Kind(backend.PartValue)}) {
		t.Error("row ", at)
	}
}

// TestSubjectsNameFunctions: a row's operator is the last part of a public name,
// of a function or a module, by which calls are known; an id such as linalg_pinv is none.
func TestSubjectsNameFunctions(t *testing.T) {
	known := map[string]bool{}
	for _, d := range ops.Table().Defs() {
		for _, name := range d.Names {
			known[verdict.OperatorName(name)] = true
		}
	}
	for _, m := range nn.All() {
		for _, name := range m.Names {
			known[verdict.OperatorName(name)] = true
		}
	}
	for _, f := range Subjects {
		if f.Target == "" && f.Shows != nil && f.Gives != nil { // of every operator
			continue
		}
		if !known[verdict.OperatorName(f.Target)] || verdict.OperatorName(f.Target) != verdict.OperatorName("."+f.Target) {
			t.Errorf("%s: no public name ends with %s", f.Reference, f.Target)
		}
	}
}
