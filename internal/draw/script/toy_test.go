package script

import (
	"slices"
	"strings"
	"testing"

	"plumb/backend"
	"plumb/internal/draw/choice"
	"plumb/op"
	"plumb/program"
	"plumb/tensor"
)

// toy are the signatures of the tests' own small world.
type toy map[string][]*op.Sig

func (t toy) Signatures(name string) ([]*op.Sig, error) { return t[name], nil }

var toySigs = toy{}

func init() {
	for name, texts := range map[string][]string{
		"torch.relu":                     {"relu(Tensor input) -> Tensor"},
		"torch.cat":                      {"cat(Tensor[] tensors, int dim=0) -> Tensor"},
		"torch.matmul":                   {"matmul(Tensor input, Tensor other) -> Tensor"},
		"torch.add":                      {"add(Tensor input, Tensor other, *, Scalar alpha=1) -> Tensor", "add(Tensor input, Scalar other, *, Scalar alpha=1) -> Tensor"},
		"torch.unique":                   {"unique(Tensor input, *, bool return_counts=False) -> Tensor", "unique.counts(Tensor input, *, bool return_counts) -> (Tensor output, Tensor counts)"},
		"torch.max":                      {"max(Tensor input) -> Tensor", "max.dim(Tensor input, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)", "max.other(Tensor input, Tensor other) -> Tensor"},
		"Tensor.max":                     {"max(Tensor input) -> Tensor", "max.dim(Tensor input, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)", "max.other(Tensor input, Tensor other) -> Tensor"},
		"Tensor.sum":                     {"sum(Tensor input, int[1]? dim=None, bool keepdim=False) -> Tensor"},
		"Tensor.relu":                    {"relu(Tensor input) -> Tensor"},
		"Tensor.relu_":                   {"relu_(Tensor input) -> Tensor"},
		"Tensor.permute":                 {"permute(Tensor input, int[] dims) -> Tensor"},
		"torch.nn.functional.leaky_relu": {"leaky_relu(Tensor input, float negative_slope=0.01, bool inplace=False) -> Tensor"},
		"torch.nn.functional.gelu":       {"gelu(Tensor input, *, str approximate='none') -> Tensor"},
		"torch.nn.functional.max_pool2d": {"max_pool2d(Tensor input, int[2] kernel_size, int[2]? stride=None) -> Tensor"},
		"torch.nn.Linear":                {"Linear(int in_features, int out_features, bool bias=True)"},
		"torch.nn.Conv2d":                {"Conv2d(int in_channels, int out_channels, int[2] kernel_size, int[2] stride=1, int[2] padding=0, int groups=1)"},
		"torch.zeros_like":               {"zeros_like(Tensor input, *, dtype? dtype=None) -> Tensor"},
	} {
		for _, text := range texts {
			toySigs[name] = append(toySigs[name], op.MustParseSig(text))
		}
	}
}

// watcher answers observations from a list and remembers what was asked.
type watcher struct {
	asked  []string
	answer func(p *program.Program, ref program.Ref) (backend.Value, error)
}

func (w *watcher) Observe(p *program.Program, refs ...program.Ref) ([]backend.Value, error) {
	w.asked = append(w.asked, string(refs[0]))
	v, err := w.answer(p, refs[0])
	return slices.Repeat([]backend.Value{v}, len(refs)), err
}

func plain(v any) func(*program.Program, program.Ref) (backend.Value, error) {
	return func(*program.Program, program.Ref) (backend.Value, error) { return backend.Value{Plain: v}, nil }
}

func ofShape(shape ...int) func(*program.Program, program.Ref) (backend.Value, error) {
	return func(*program.Program, program.Ref) (backend.Value, error) {
		return backend.Value{Tensor: tensor.New(tensor.F32, shape...), RequiresGrad: true}, nil
	}
}

// loadTest loads a file and returns its only test.
func loadTest(t *testing.T, src string) *Test {
	t.Helper()
	f, err := Load("t.py", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Tests()) != 1 {
		t.Fatalf("%d tests", len(f.Tests()))
	}
	return f.Tests()[0]
}

// body makes a test file of the statements of one test.
func body(lines string) string {
	return "@autotest()\ndef test_it():\n    " + strings.ReplaceAll(strings.TrimSpace(lines), "\n", "\n    ") + "\n"
}

// draw draws a test's first case.
func drawOne(t *testing.T, src string, env Env) *program.Program {
	t.Helper()
	if env.Signatures == nil {
		env.Signatures = toySigs
	}
	p, err := loadTest(t, src).Draw(choice.New(1), env)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Validate(); err != nil {
		t.Fatalf("invalid program: %v\n%s", err, p)
	}
	return p
}

// calls returns the lines of a program's calls and backward requests, without
// keys.
func calls(p *program.Program) string {
	var lines []string
	for i := range p.Calls {
		lines = append(lines, p.Calls[i].String())
	}
	for _, b := range p.Backward {
		lines = append(lines, "backward "+string(b.Value))
	}
	return strings.Join(lines, "\n")
}
