package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"plumb/backend/open"
	"plumb/backend/recorded"
	"plumb/backend/worker"
	"plumb/cmd/command"
	"plumb/internal/judge/verdict"
	"plumb/op"
	"plumb/ops"
	"plumb/tensor"
)

// TestMain keeps tests out of the results store of whoever runs them.
func TestMain(m *testing.M) {
	if _, set := os.LookupEnv("PLUMB_STORE"); !set {
		_ = os.Setenv("PLUMB_STORE", "none")
	}
	testscript.Main(m, map[string]func(){
		"plumb": main,
		"mine":  func() { command.Main(op.NewTable(append([]*op.Def{halved(), lists(), fragile()}, ops.All()...)...)) },
		"alone": func() { command.Main(op.NewTable(halved())) },
	})
}

// halved is an operator of a program that calls Main.
func halved() *op.Def {
	return &op.Def{
		Sig: "halved(Tensor x) -> Tensor", Doc: "x/2.", Tol: op.Tol{Class: op.Exact, Reason: "a change of the exponent"},
		Compose: func(b op.Builder, a op.Args) []op.Value { return []op.Value{b.Mul(a.Value("x"), 0.5)} },
		Sample:  func(s *op.Sampler) []any { return []any{s.Distinct(s.Shape(0, 3)...)} },
	}
}

// fragile ends the process, with nothing to recover from, where n is 7.
func fragile() *op.Def {
	return &op.Def{
		Sig: "fragile(Tensor x, int n) -> Tensor", Doc: "x.", Tol: op.Tol{Class: op.Exact, Reason: "a copy"}, Traits: op.NoGrad,
		Infer: func(a op.Args) ([]op.Meta, error) {
			x := a.Value("x")
			return []op.Meta{{DType: x.DType(), Shape: x.Shape()}}, nil
		},
		Kernels: []op.Kernel{{Name: "copy", When: op.DTypeIn("x", tensor.F32), Run: func(c *op.Run) error {
			if c.Int("n") == 7 {
				go func() { panic("fragile") }()
				select {}
			}
			for i := range c.Out[0].Len() {
				c.Out[0].Set(i, c.Tensor("x").At(i))
			}
			return nil
		}}},
		Sample: func(s *op.Sampler) []any { return []any{s.Distinct(s.Shape(1, 2)...), int(s.Int(0, 20))} },
	}
}

// lists has arguments that are lists of each kind: the product of x with factors and
// with the weights that are kept, negated for each "negate", in the first of dtypes.
func lists() *op.Def {
	return &op.Def{
		Sig: "listed(Tensor x, Tensor?[] factors, Scalar[] weights, bool[] kept, *, str[] modes=['plain'], dtype[] dtypes=[], float[]? shifts=None, int[][] moves=[[0], []]) -> Tensor",
		Doc: "A product.", Tol: op.Tol{Class: op.Pointwise, ULP: 8, Reason: "a few products"},
		OneOf: map[op.StrArg][]string{"modes": {"plain", "negate"}},
		Compose: func(b op.Builder, a op.Args) []op.Value {
			y := a.Value("x")
			for _, v := range a.Values("factors") {
				if v != nil {
					y = b.Mul(y, v)
				}
			}
			for i, w := range a.Scalars("weights") {
				if i < len(a.Bools("kept")) && a.Bools("kept")[i] {
					y = b.Mul(y, w.Any())
				}
			}
			for _, mode := range a.Strs("modes") {
				if mode == "negate" {
					y = b.Neg(y)
				}
			}
			for _, f := range a.Floats("shifts") {
				y = b.Add(y, f)
			}
			for i, move := range a.Shapes("moves") {
				for _, n := range move {
					y = b.Add(y, n*(i+1))
				}
			}
			if ds := a.DTypes("dtypes"); len(ds) > 0 {
				y = b.Cast(y, ds[0])
			}
			return []op.Value{y}
		},
		Sample: func(s *op.Sampler) []any {
			shape := s.Shape(0, 3)
			return []any{s.Distinct(shape...), []any{nil, s.Distinct(shape...)}[s.Index(2):], []any{s.Float(1, 2), int(s.Int(1, 4))}, []any{s.Bool(), s.Bool()},
				op.Kw("modes", []any{"plain", "negate"}[s.Index(2):]), op.Kw("shifts", []any{s.Float(1, 2)}),
				op.Kw("moves", [][]int{{s.Index(3)}, {}, {1, s.Index(3)}}[:s.Index(4)])}
		},
	}
}

// first sets FIRST to the name of the first entry of a folder.
func first(ts *testscript.TestScript, _ bool, args []string) {
	entries, err := os.ReadDir(ts.MkAbs(args[0]))
	ts.Check(err)
	ts.Setenv("FIRST", entries[0].Name())
}

// TestScripts runs the command line as testdata/script tells. The scripts with
// [torch] run where PyTorch is; all others need Go alone.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			path, _ := findTorch()
			env.Setenv("PLUMB_PYTHON", path)
			env.Setenv("HOME", env.WorkDir)
			return nil
		},
		Condition: func(cond string) (bool, error) {
			if cond != "torch" {
				return false, fmt.Errorf("unknown condition %q", cond)
			}
			_, err := findTorch()
			return err == nil, nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "tally": tally, "same": same, "operators": operatorList, "first": first, "tamper": tamper, "spoil": spoil,
		},
	})
}

// exits is "exits CODE COMMAND…": the command ends with the exit code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND…")
	}
	got := "0"
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		got = strings.TrimPrefix(err.Error(), "exit status ")
	}
	if got != args[0] {
		ts.Fatalf("%s ended with %s, want exit code %s", strings.Join(args[1:], " "), got, args[0])
	}
}

// output is one --json run.
type output struct {
	cases   []map[string]any
	others  []map[string]any // errors and remarks
	summary map[string]any
}

func parseOutput(text string) (*output, error) {
	var o output
	for line := range strings.Lines(text) {
		var object map[string]any
		if err := json.Unmarshal([]byte(line), &object); err != nil {
			return nil, fmt.Errorf("%q is no JSON object: %w", line, err)
		}
		if o.summary != nil {
			return nil, fmt.Errorf("%q follows the summary", line)
		}
		switch summary, ok := object["summary"].(map[string]any); {
		case ok:
			o.summary = summary
		case object["verdict"] != nil:
			o.cases = append(o.cases, object)
		default:
			o.others = append(o.others, object)
		}
	}
	if o.summary == nil {
		return nil, fmt.Errorf("the last line is no summary")
	}
	return &o, nil
}

// check holds the summary to the lines before it.
func (o *output) check() error {
	words, total := map[string]int{}, 0
	for _, c := range o.cases {
		words[c["verdict"].(string)]++
		for _, field := range []string{"test", "case", "id", "candidate"} {
			if c[field] == nil {
				return fmt.Errorf("a case has no %s: %v", field, c)
			}
		}
	}
	for _, w := range verdict.Words {
		n, ok := o.summary[string(w)].(float64)
		if !ok || int(n) != words[string(w)] {
			return fmt.Errorf("the summary counts %v %s, the lines %d", o.summary[string(w)], w, words[string(w)])
		}
		total += int(n)
	}
	if cases := int(o.summary["cases"].(float64)); cases != total || cases != len(o.cases) {
		return fmt.Errorf("the summary has %d cases, its words %d, the lines %d", cases, total, len(o.cases))
	}
	return nil
}

// tally is "tally FILE [WORD=N…]": the file is the output of a --json run whose
// summary agrees with its lines, and has these numbers.
func tally(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: tally FILE [WORD=N…]")
	}
	o, err := parseOutput(ts.ReadFile(args[0]))
	ts.Check(err)
	ts.Check(o.check())
	for _, a := range args[1:] {
		word, want, _ := strings.Cut(a, "=")
		if got := fmt.Sprint(o.summary[word]); got != want {
			ts.Fatalf("the summary's %s is %s, want %s", word, got, want)
		}
	}
}

// tamper is "tamper FILE TEST…": what the baseline has for the tests' calls
// becomes wrong by one.
func tamper(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: tamper FILE TEST…")
	}
	path := ts.MkAbs(args[0])
	base, err := open.Baseline(path)
	ts.Check(err)
	cases := slices.Clone(base.Cases())
	for i, c := range cases {
		if slices.Contains(args[1:], c.Test) {
			o := *c.Outcome
			o.Values = slices.Clone(o.Values)
			wrong := o.Values[0].Tensor.Clone()
			wrong.Set(0, wrong.At(0)+1)
			o.Values[0].Tensor = wrong
			cases[i].Outcome = &o
		}
	}
	ts.Check(recorded.WriteFile(path, base.Reference(), cases))
}

// spoil is "spoil DIR": the files of the folder in the user's cache become unreadable.
func spoil(ts *testscript.TestScript, neg bool, args []string) {
	files, err := filepath.Glob(ts.MkAbs(filepath.Join(".cache", "plumb", args[0], "*")))
	ts.Check(err)
	if neg || len(files) == 0 {
		ts.Fatalf("no file in %s", args[0])
	}
	for _, f := range files {
		ts.Check(os.WriteFile(f, []byte("spoiled"), 0o644))
	}
}

var seconds = regexp.MustCompile(`seconds":[-+.e0-9]+`)

// same is "same FILE FILE": the outputs of two --json runs hold the same lines,
// apart from the seconds that they took.
func same(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: same FILE FILE")
	}
	lines := func(name string) []string {
		text := seconds.ReplaceAllString(ts.ReadFile(name), `seconds":0`)
		return slices.Sorted(strings.Lines(text))
	}
	if slices.Equal(lines(args[0]), lines(args[1])) == neg {
		ts.Fatalf("%s and %s: same is %v", args[0], args[1], neg)
	}
}

// operatorList is "operators FILE": the file is an array with one complete
// object per operator.
func operatorList(ts *testscript.TestScript, _ bool, args []string) {
	var list []struct {
		ID, Doc, Class, Reason string
		Signatures, Names      []string
		Gradient               *bool
	}
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &list))
	ids := map[string]bool{}
	for _, o := range list {
		if o.ID == "" || o.Doc == "" || o.Class == "" || o.Reason == "" || o.Gradient == nil || len(o.Signatures) == 0 || len(o.Names) == 0 {
			ts.Fatalf("incomplete: %+v", o)
		}
		for _, s := range o.Signatures {
			if !strings.HasPrefix(s, strings.Split(o.ID, ".")[0]) || !strings.Contains(s, " -> ") {
				ts.Fatalf("%s has the signature %q", o.ID, s)
			}
		}
		ids[o.ID] = true
	}
	for _, want := range []string{
		"add", "sub", "mul", "div", "neg", "abs", "pow", "exp", "log", "sqrt", "tanh", "sigmoid", "relu", "leaky_relu", "gelu", "softmax",
		"log_softmax", "sum", "mean", "max", "max.dim", "matmul", "linear", "conv2d", "conv_transpose2d", "max_pool2d", "batch_norm",
		"layer_norm", "flatten", "reshape", "transpose", "permute", "cat", "where",
	} {
		if !ids[want] {
			ts.Fatalf("no operator %s among %v", want, slices.Sorted(maps.Keys(ids)))
		}
	}
	if len(ids) != len(list) {
		ts.Fatalf("%d objects for %d operators", len(list), len(ids))
	}
}

// findTorch returns the Python that has torch, or why there is none.
var findTorch = sync.OnceValues(func() (string, error) {
	path, _, err := worker.FindPython("")
	return path, err
})
