package command

import (
	"context"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestNewModule: what plumb ops new writes compiles, and its test passes.
func TestNewModule(t *testing.T) {
	slow(t)
	t.Parallel() // it waits for go
	dir := filepath.Join(t.TempDir(), "several")
	n := newModule{sig: "several.parts(Tensor x, Tensor? b=None, int[2] stride=1, *, bool flag=False) -> (Tensor, Tensor)"}
	if _, err := n.write(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := n.write(dir); err == nil {
		t.Error("a folder that is there is written over")
	}
	if err := os.WriteFile(filepath.Join(dir, "typed_test.go"), []byte(typedTest), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"vet", "./plumb", "./python"}, {"test", "."}, {"run", "./plumb", "ops", "gen", "--check"}} {
		cmd := exec.Command("go", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// typedTest calls the function that the module has of its operator: at once, for a
// gradient, and in a graph with Plumb's own.
const typedTest = `package several

import (
	"testing"

	"plumb/api"
	"plumb/graph"
	"plumb/tensor"
)

func TestTyped(t *testing.T) {
	table, err := Table()
	if err != nil {
		t.Fatal(err)
	}
	f := func(s *api.Session, x ...*api.Tensor) ([]*api.Tensor, error) {
		y, z, err := SeveralParts(x[0], SeveralPartsOptions{Stride: []int{2}, Flag: true})
		if err != nil {
			return nil, err
		}
		sum, err := api.Add(y, z)
		if err != nil {
			return nil, err
		}
		gradient, err := s.Gradients(sum, x, false)
		return append(gradient, sum), err
	}
	in := tensor.Float64s(tensor.F32, []int{2}, 3, -4)
	s := api.NewSessionOn(table)
	x := s.Wrap(in)
	if err := x.RequireGrad(); err != nil {
		t.Fatal(err)
	}
	out, err := f(s, x)
	if err != nil {
		t.Fatal(err)
	}
	recorded, err := graph.New(table, "several", api.Traced(f), graph.Options{}).Run(in)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range [][]float64{{2, 2}, {6, -8}} {
		for e, w := range want {
			if got := out[i].Float64s()[e]; got != w || recorded[i].Float(e) != w {
				t.Errorf("result %d: %v at once and %v in a graph, want %v", i, got, recorded[i].Float(e), w)
			}
		}
	}
	if _, _, err := SeveralParts(api.NewSession().Wrap(in)); err == nil {
		t.Error("a session without the operator applies it")
	}
}
`

// TestNewModuleRefuses: a signature of which no module follows is refused with the reason.
func TestNewModuleRefuses(t *testing.T) {
	for sig, reason := range map[string]string{
		"f(int n) -> Tensor":             "want a parameter that is a Tensor",
		"f(Tensor x) -> bool":            "want one or several tensors as results",
		"f(Tensor x, Index i) -> Tensor": "no sample is known of Index i",
		"f(Tensor x":                     "parentheses do not match",
	} {
		if _, err := newLiteral(sig); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("%s: %v, want %q", sig, err, reason)
		}
	}
}

// TestDraft: the drafts of functions are Go, with PyTorch's signature and names.
func TestDraft(t *testing.T) {
	python := needTorch(t)
	for name, has := range map[string][]string{
		"torch.nn.functional.leaky_relu": {`"leaky_relu(Tensor input, Scalar negative_slope=0.01) -> Tensor"`, `"torch.nn.functional.leaky_relu"`, "TODO"},
		"torch.lerp":                     {`"lerp(Tensor input, Tensor end, Scalar weight) -> Tensor"`, `"Tensor.lerp"`},
	} {
		text, err := draft(context.Background(), python, name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parser.ParseFile(token.NewFileSet(), name, "package p\n"+string(text), 0); err != nil {
			t.Errorf("%s: %v\n%s", name, err, text)
		}
		for _, part := range has {
			if !strings.Contains(string(text), part) {
				t.Errorf("%s lacks %s:\n%s", name, part, text)
			}
		}
	}
	if _, err := draft(context.Background(), python, "torch.no_such_function"); err == nil {
		t.Error("a function that there is not is drafted")
	}
}
