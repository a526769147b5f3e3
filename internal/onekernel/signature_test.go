package onekernel

import (
	"reflect"
	"strings"
	"testing"

	"plumb/program"
	"plumb/tensor"
)

func TestParseSignature(t *testing.T) {
	for _, c := range []struct {
		text    string
		tensors string // name dtype[dims at B=2 S=3 H=5 F=7 V=11]
		floats  []tensor.DType
	}{
		{"x: f32[B,S,H], w: f32[H,2*F]", "x case [2 3 5]; w case [5 14]", []tensor.DType{tensor.F32}},
		{" x :float[ B , 4 ] ", "x case [2 4]", nil},
		{"x: bf16[], i: i64[B] < V", "x case []; i int64 [2]", []tensor.DType{tensor.BF16}},
		{"x: f32[B], y: f64[B]", "x float32 [2]; y float64 [2]", nil},
		{"m: bool[B,S], x: float16[H*F+1,S-1]", "m bool [2 3]; x case [36 2]", []tensor.DType{tensor.F16}},
	} {
		sig, floats, err := ParseSignature(c.text)
		if err != nil {
			t.Errorf("%q: %v", c.text, err)
			continue
		}
		var told []string
		for _, in := range sig.Inputs {
			dt := "case"
			if in.DType != tensor.Invalid {
				dt = in.DType.String()
			}
			shape := []string{}
			for _, d := range in.Dims {
				shape = append(shape, program.FormatArg(int64(d.At(map[string]int{"B": 2, "S": 3, "H": 5, "F": 7, "V": 11}))))
			}
			told = append(told, in.Name+" "+dt+" ["+strings.Join(shape, " ")+"]")
		}
		if got := strings.Join(told, "; "); got != c.tensors || !reflect.DeepEqual(floats, c.floats) {
			t.Errorf("%q: got %s, floats %v, want %s, %v", c.text, got, floats, c.tensors, c.floats)
		}
	}
}

func TestBounds(t *testing.T) {
	for text, want := range map[string][2]float64{
		"x: f32[B] in 0..1": {0, 1}, "x: f32[B] in -2.5..3e1": {-2.5, 30}, "x: f32[B] > 0": {0.05, 4}, "i: i64[B] < 7": {0, 7},
	} {
		sig, _, err := ParseSignature(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
		} else if in := sig.Inputs[0]; !in.Bounded || in.Lo != want[0] || in.Hi != want[1] {
			t.Errorf("%q: bounded=%v by %v..%v, want %v", text, in.Bounded, in.Lo, in.Hi, want)
		}
	}
	sig, _, err := ParseSignature("i: i64[B] < 2*V")
	if err != nil {
		t.Fatal(err)
	}
	if got := sig.Inputs[0].Below.At(map[string]int{"V": 4}); got != 8 {
		t.Errorf("i < 2*V is bounded by %d where V is 4", got)
	}
}

func TestAttributes(t *testing.T) {
	sig, _, err := ParseSignature(`x: f32[B], dim = -1 | 0, eps: float = 1e-5, causal = True, mode = "sum", dtype = torch.float64, size = (2, 3), none = None`)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]any{
		"dim": {int64(-1), int64(0)}, "eps": {1e-5}, "causal": {true}, "mode": {"sum"}, "dtype": {tensor.F64},
		"size": {program.Tuple{int64(2), int64(3)}}, "none": {nil},
	}
	for _, a := range sig.Args[1:] {
		if !a.Keyword || !reflect.DeepEqual(a.Choices, want[a.Name]) {
			t.Errorf("%s: %#v, want %#v by keyword", a.Name, a.Choices, want[a.Name])
		}
	}
	if len(sig.Args) != 1+len(want) {
		t.Errorf("%d arguments, want %d", len(sig.Args), 1+len(want))
	}
}

// TestMistakesInSignatures: a mistake is named with the field that has it.
func TestMistakesInSignatures(t *testing.T) {
	for text, want := range map[string]string{
		"":                            "has no tensor",
		"dim = 1":                     "has no tensor",
		"x: f32[B], y":                `"y" is no argument`,
		"x: f33[B]":                   `"x: f33[B]": "f33" is no dtype`,
		"x: f32[B,S-]":                `"S-" is no size`,
		"x: f32[-B]":                  `"-B" is no size`,
		"x: f32[B] about 3":           "is no bound",
		"x: f32[B] in a..b":           "is no bound",
		"i: i64[B] < ":                "no size",
		"x: f32[B":                    "is no argument",
		"x: f32[B], y: f32[B] in 0..": "is no bound",
		"x: f32[B] > y":               "invalid syntax",
	} {
		_, _, err := ParseSignature(text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestSizes(t *testing.T) {
	at := map[string]int{"B": 3, "H": 4, "N": 10}
	for text, want := range map[string]int{"7": 7, "B": 3, "2*B": 6, "B*2": 6, "B*H": 12, "N+1": 11, "N-2": 8, " 2 * B * H + 1 ": 25, "0": 0,
		"B+H": 7, "B*H+2*N": 32, "2*(B+H)-1": 13, "(B+1)*(H-1)": 12, "(B)": 3, "1+B": 4, "((2))": 2, "B-1+H": 6} {
		s, err := parseSize(text)
		if err != nil || s.At(at) != want {
			t.Errorf("%q: %d, %v, want %d", text, s.At(at), err, want)
		}
	}
	for _, text := range []string{"", "*", "2*", "B/2", "-1", "B B", "+1", "B-H", "B-(1+H)", "(B", "B)", "()", "B+", "(A+B)*(C+D)*(E+F)*(G+H)*(I+J)*(K+L)*(M+N)", strings.Repeat("(", 1000) + "B" + strings.Repeat(")", 1000), "99999999999999999999"} {
		if s, err := parseSize(text); err == nil {
			t.Errorf("%q is taken as %v", text, s)
		}
	}
}

func TestInputsOfC(t *testing.T) {
	for declaration, want := range map[string]string{
		"void f(const float *x[N,C], float *y[N,C], int64_t N, int64_t C)": "x: f32[N,C]",
		"f(const double *a[M], const int32_t * i [K], double *out)":        "a: f64[M], i: i32[K]",
		"f(const float *input, float *out, int64_t n = input.numel())":     "",
		"": "",
	} {
		if got := InputsOfC(declaration); got != want {
			t.Errorf("%q: %q, want %q", declaration, got, want)
		}
	}
}

func TestSymbols(t *testing.T) {
	sig, _, err := ParseSignature("x: f32[B,S,H], w: f32[H,2*F], b: f32[4]")
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(sig.Symbols(), " "); got != "H S B F" {
		t.Errorf("symbols %s, want the last dimension's first: H S B F", got)
	}
	if got, told := sig.places()["F"]; told {
		t.Errorf("2*F tells F by %v", got)
	}
	if sum, _, err := ParseSignature("x: f32[A+B], y: f32[B]"); err != nil || sum.places()["B"] != [2]any{"y", 0} || strings.Join(sum.Symbols(), " ") != "A B" {
		t.Errorf("A+B has the symbols %v, told by %v: %v", sum.Symbols(), sum.places(), err)
	}
	if got := sig.places()["S"]; got != [2]any{"x", 1} {
		t.Errorf("S is the size of %v, want x along 1", got)
	}
}

// FuzzSignature: what a user writes never panics, and what is taken has sizes that
// can be computed.
func FuzzSignature(f *testing.F) {
	for _, text := range []string{
		"x: f32[B,S,H], w: f32[H,2*F]", "i: i64[B] < V, p: float[B] in 0..1, dim = -1 | 0", "x: f32[], y = (1, 2)", "x: f32[999999999999999999999]",
		"x: f32[[B]], y: f32[B)", "x: f32[B] in 1e309..2", "x: f32[B*B*B*B+1-2]", "x: f32[2*(A+B)*(A+1)]", "x:f32[B],,,", "λ: f32[B]",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<12 {
			return
		}
		InputsOfC(text)
		sig, _, err := ParseSignature(text)
		if err != nil {
			return
		}
		if len(sig.Inputs) == 0 || len(sig.Inputs) > len(text) || len(sig.Args) > len(text) {
			t.Fatalf("%q gives %d tensors, %d arguments", text, len(sig.Inputs), len(sig.Args))
		}
		sizes := map[string]int{}
		for _, s := range sig.Symbols() {
			sizes[s] = 1
		}
		for _, in := range sig.Inputs {
			for _, d := range in.Dims {
				d.At(sizes)
			}
		}
	})
}

// TestBuffers: what a model may change is told from its parameters and its inputs.
func TestBuffers(t *testing.T) {
	sig := &Signature{}
	for _, in := range []Input{{Name: "x0", NoGrad: true}, {Name: "p0"}, {Name: "p1", NoGrad: true}} {
		sig.add(in)
		sig.Args[len(sig.Args)-1].State = in.Name != "x0"
	}
	for name, want := range map[string]bool{"x0": false, "p0": false, "p1": true, "y": false} {
		if sig.buffer(name) != want {
			t.Errorf("%s: want %v", name, want)
		}
	}
}
