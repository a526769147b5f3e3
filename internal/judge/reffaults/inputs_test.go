package reffaults

import (
	"testing"

	"plumb/internal/judge/verdict"
	"plumb/program"
)

func row(t *testing.T, conditions string) verdict.CandidateFault {
	t.Helper()
	fw, err := readSubject("x", []byte(`{"faults": [{"operator": "f", "versions": "x", "kinds": ["grad"], `+conditions+`}]}`))
	if err != nil {
		t.Fatal(conditions, err)
	}
	return fw.Faults[0]
}

func parsed(t *testing.T, lines string) *program.Program {
	t.Helper()
	p, err := program.Parse("case.py", program.Header+"\ncase(\"case.py::case\", seed=1)\n"+lines+"\n")
	if err != nil {
		t.Fatal(lines, err)
	}
	return p
}

// TestRowsOfCalls: each word of a row tells calls that have what it says from those
// that have not.
func TestRowsOfCalls(t *testing.T) {
	x := func(elements string) string {
		return "x = tensor((2,), torch.float32, [" + elements + "])\n"
	}
	const call = "v = torch.abs(x)"
	two := func(b string) string { return x("1.0, 2.0") + b + "\nv = torch.add(x, y)" }
	for conditions, c := range map[string]struct{ yes, no string }{
		`"has": ["nan"]`:                            {x(`0.0, float("nan")`) + call, x(`0.0, float("inf")`) + call},
		`"has": ["infinity"]`:                       {x(`0.0, float("-inf")`) + call, x(`0.0, float("nan")`) + call},
		`"has": ["-0"]`:                             {x("1.0, -0.0") + call, x("1.0, 0.0") + call},
		`"has": ["repeated"]`:                       {x("3.0, 3.0") + call, x("3.0, 4.0") + call},
		`"has": ["a tie"]`:                          {"i = tensor((1,), torch.int64, [0])\n" + x("3.0, 3.0") + call, "i = tensor((2,), torch.int64, [3, 3])\n" + x("3.0, 4.0") + call},
		`"has": ["a tie", "single"]`:                {x("3.0, 3.0") + "v = torch.max(x, 0)", "x = tensor((2, 1), torch.float32, [3.0, 3.0])\nv = torch.max(x, 1)"},
		`"has": ["equal"]`:                          {two("y = tensor((2,), torch.float32, [5.0, 2.0])"), two("y = tensor((2,), torch.float32, [2.0, 1.0])")},
		`"has": ["a bound"]`:                        {x("0.1, 2.0") + "v = torch.clamp(x, min=0.1)", x("0.2, 2.0") + "v = torch.clamp(x, 0.1, 3)"},
		`"has": ["broadcast"]`:                      {two("y = tensor((), torch.float32, [5.0])"), two("y = tensor((2,), torch.float32, [2.0, 1.0])")},
		`"has": ["samples"]`:                        {"x = tensor((2, 1, 1), torch.float32, [1.0, 2.0])\n" + call, "x = tensor((1, 2, 1), torch.float32, [1.0, 2.0])\ny = tensor((2, 1), torch.float32, [1.0, 2.0])\n" + call},
		`"has": ["single"]`:                         {x("1.0, 2.0") + call, two("y = tensor((), torch.float32, [5.0])")},
		`"has": ["nothing"]`:                        {"x = tensor((0,), torch.float32, [])\n" + call, x("1.0, 2.0") + call},
		`"has": ["integers"]`:                       {"x = tensor((1,), torch.bool, [True])\n" + call, x("1.0, 2.0") + call},
		`"has": ["negative integers"]`:              {"x = tensor((1,), torch.int64, [-1])\n" + call, "x = tensor((1,), torch.int64, [1])\ny = tensor((1,), torch.float32, [-1.0])\n" + call},
		`"at": [1, -1]`:                             {x("0.0, -1.0") + call, x("0.0, 0.5") + call},
		`"beyond": 8`:                               {x("0.0, -8.0") + call, x("7.0, -7.0") + call},
		`"arguments": {"alpha": [2]}`:               {x("1.0, 2.0") + "v = torch.add(x, x, alpha=2)", x("1.0, 2.0") + "v = torch.add(x, x, alpha=3)"},
		`"arguments": {"dim": [0]}`:                 {x("1.0, 2.0") + "v = torch.sum(x, 0)", x("1.0, 2.0") + "v = torch.sum(x, -1)"},
		`"arguments": {"dim": []}`:                  {x("1.0, 2.0") + "v = torch.sum(x, 0)", x("1.0, 2.0") + "v = torch.sum(x)"},
		`"arguments": {"dim": [null, 1]}`:           {x("1.0, 2.0") + "v = torch.sum(x)", x("1.0, 2.0") + "v = torch.sum(x, 0)"},
		`"has": ["nan", "infinity"]`:                {x(`float("inf"), float("nan")`) + call, x(`1.0, float("nan")`) + call},
		`"has": ["nan"], "arguments": {"dim": [0]}`: {x(`1.0, float("nan")`) + "v = torch.sum(x, 0)", x(`1.0, 2.0`) + "v = torch.sum(x, 0)"},
	} {
		f := row(t, conditions)
		if !f.When(parsed(t, c.yes)) {
			t.Errorf("%s is not of\n%s", conditions, c.yes)
		}
		if f.When(parsed(t, c.no)) {
			t.Errorf("%s is of\n%s", conditions, c.no)
		}
	}
	for word := range inputsHave {
		row(t, `"has": ["`+word+`"]`)
	}
}

// TestRowsOfElements: where the elements of a result belong to those of inputs, a row
// is of these elements alone, broadcast or not, and of any where they do not.
func TestRowsOfElements(t *testing.T) {
	const x = "x = tensor((2, 2), torch.float32, [0.0, 1.0, 2.0, 3.0])\n"
	const both = x + "y = tensor((2,), torch.float32, [0.0, 3.0])\nv = torch.maximum(x, y)"
	for _, c := range []struct {
		conditions, call string
		shape            []int
		want             string // of each element; "" where no element can be told
	}{
		{`"most": 1`, x + "v = torch.abs(x)", []int{2, 2}, "yynn"},
		{`"at": [0, 2]`, x + "v = torch.abs(x)", []int{2, 2}, "ynyn"},
		{`"at": [0, 2], "has": ["nan"]`, x + "v = torch.abs(x)", []int{2, 2}, "nnnn"},
		{`"most": 1`, x + "v = torch.sum(x)", []int{}, ""},
		{`"at": [3]`, both, []int{2, 2}, "nyny"},
		{`"has": ["equal"]`, both, []int{2, 2}, "ynny"},
		{`"has": ["equal"]`, both, []int{2}, ""},
		{`"has": ["equal"]`, x + "y = tensor((2,), torch.float32, [0.0, 3.0])\nz = tensor((), torch.float32, [2.0])\nv = torch.clamp(x, y, z)", []int{2, 2}, "ynyy"},
		{`"has": ["a tie"]`, "x = tensor((2, 2), torch.float32, [0.0, 1.0, 2.0, 1.0])\nv = torch.amax(x, 1)", []int{2, 2}, "nnnn"},
		{`"has": ["a tie"]`, "x = tensor((2, 2), torch.float32, [0.0, 1.0, 2.0, 1.0])\nv = torch.amax(x, -2)", []int{2, 2}, "nyny"},
		{`"has": ["a tie"]`, "x = tensor((1, 2, 2), torch.float32, [0.0, 1.0, 2.0, 1.0])\nv = torch.amax(x, dim=(2, 0))", []int{1, 2, 2}, "nnnn"},
		{`"has": ["a tie"]`, "x = tensor((1, 2, 2), torch.float32, [0.0, 1.0, 2.0, 1.0])\nv = torch.amax(x, dim=(1, 0))", []int{1, 2, 2}, "nyny"},
		{`"has": ["a tie"]`, "x = tensor((2, 2), torch.float32, [0.0, 1.0, 2.0, 1.0])\nv = torch.amax(x)", []int{2, 2}, "nyny"},
		{`"has": ["a tie"]`, "x = tensor((2, 2), torch.float32, [0.0, 1.0, 2.0, 1.0])\nv = torch.amax(x, 1)", []int{2}, ""},
		{`"has": ["a bound"]`, x + "v = torch.clamp(x, 0, 2.0)", []int{2, 2}, "ynyn"},
	} {
		fits := row(t, c.conditions).Places(parsed(t, c.call), c.shape)
		if fits == nil || c.want == "" {
			if fits != nil || c.want != "" {
				t.Errorf("%s of %v: elements are told: %v", c.conditions, c.shape, fits != nil)
			}
			continue
		}
		for i, want := range c.want {
			if fits(i) != (want == 'y') {
				t.Errorf("%s: element %d: %v", c.conditions, i, fits(i))
			}
		}
	}
}

// TestRowsOfAnArgument: a row of an argument's gradient knows which of a call's tensors it is.
func TestRowsOfAnArgument(t *testing.T) {
	f := row(t, `"by": "weight"`)
	for text, want := range map[string]program.Ref{
		"v = torch.lerp(x, y, w)": "w", "v = torch.lerp(x, y, weight=w)": "w", "v = torch.lerp(x, y, 0.5)": "", "v = x.lerp(y, w)": "w",
	} {
		p := parsed(t, "x = tensor((), torch.float32, [1.0])\ny = tensor((), torch.float32, [1.0])\nw = tensor((), torch.float32, [1.0])\n"+text)
		if got, ok := f.By(&p.Calls[0]); got != want || ok != (want != "") {
			t.Errorf("%s: %q, %v", text, got, ok)
		}
	}
}
