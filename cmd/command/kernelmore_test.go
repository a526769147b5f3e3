package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"plumb/internal/onekernel"
)

// kernelReport runs plumb kernel on functions of a file of this text.
func kernelReport(t *testing.T, python, source string, args ...string) *onekernel.Report {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "k.py"), []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	for i := range args {
		if of, function, named := strings.Cut(args[i], "::"); of == "k.py" {
			if args[i] = filepath.Join(dir, of); named {
				args[i] += "::" + function
			}
		}
	}
	var out bytes.Buffer
	cmd := newKernel()
	cmd.SetArgs(append(args, "--python", python, "--seed", "1", "--json", "--bundle", filepath.Join(dir, "bundle")))
	cmd.SetOut(&out)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err := cmd.ExecuteContext(t.Context())
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	r := &onekernel.Report{}
	if json.Unmarshal([]byte(lines[len(lines)-1]), r) != nil {
		t.Fatalf("no report: %v\n%s", err, out.String())
	}
	return r
}

// timedSource has kernels that are honest, one of which refuses what it was given before, as
// another would remember it, and three that would have short times.
const timedSource = `
import gc
import torch
calls, last = 0, None

def reference(x):
    return torch.exp(x) * 2

def honest(x):
    return 2 * torch.exp(x)

def stale(x):
    global calls, last
    calls += 1
    if calls <= 60 or last is None or last.shape != x.shape:
        last = 2 * torch.exp(x)
    return last.clone()

seen, known = set(), []

def tired(x):
    if x.numel() == 1024:
        key = x[:4].tolist().__repr__()
        known.append(key in seen)
        seen.add(key)
        if len(known) > 200 and sum(known[-100:]) > 50:
            raise RuntimeError("the same again and again")
    return 2 * torch.exp(x)

def stopped(x):
    for m in gc.get_objects(): # it has no name to import it by
        if type(m) is type(torch) and hasattr(m, "now") and "timing" in m.__name__:
            m.now = lambda: 0
    return 2 * torch.exp(x)

def ones(x):
    return x * 0 + 1
`

// TestTimesThatNobodyFools: a kernel that is right has times at each size of a sweep; one
// that answers otherwise while it is timed is found; times that are none are refused.
func TestTimesThatNobodyFools(t *testing.T) {
	slow(t)
	python := needTorch(t)
	run := func(name, against, size string) *onekernel.Report {
		return kernelReport(t, python, timedSource, "k.py::"+name, "--against", "k.py::"+against, "--inputs", "x: f32[N]", "--sizes", size, "--no-nonfinite", "--no-grad", "-n", "6", "--time")
	}
	r := run("honest", "reference", "N=1024..65536")
	if r.Verdict != onekernel.Right || r.Time == nil || len(r.Time.Points) < 2 {
		t.Fatalf("honest: %s, %+v", r.Verdict, r.Time)
	}
	for _, p := range r.Time.Points {
		if p.Refused != "" || p.Warm == nil || p.Cold == nil || p.Warm.Kernel.Median <= 0 || p.Warm.Kernel.Low > p.Warm.Kernel.High {
			t.Errorf("honest: %+v", p)
		}
	}
	if r := run("stale", "reference", "N=1024"); r.Verdict != onekernel.Cheats || len(r.Time.Points) > 0 || r.Time.Refused == "" {
		t.Errorf("stale: %s, %+v, %+v", r.Verdict, r.Reasons, r.Time)
	}
	if r := run("tired", "reference", "N=1024"); r.Verdict != onekernel.Right || len(r.Time.Points) == 0 || r.Time.Points[0].Refused != "" {
		t.Errorf("tired: %s, %+v, %+v", r.Verdict, r.Reasons, r.Time)
	}
	if r := run("stopped", "reference", "N=1024"); r.Verdict != onekernel.Cheats || r.Time.Refused == "" || !slices.ContainsFunc(r.Reasons, func(w onekernel.Reason) bool { return w.Kind == "spies" }) {
		t.Errorf("stopped: %s, %+v, %+v", r.Verdict, r.Reasons, r.Time)
	}
	wrong := kernelReport(t, python, timedSource, "k.py::ones", "--against", "k.py::reference", "--inputs", "x: f32[N]", "-n", "2", "--time")
	if wrong.Time == nil || wrong.Time.Refused == "" || len(wrong.Time.Points) > 0 {
		t.Errorf("what is wrong is timed: %+v", wrong.Time)
	}
}

// gradientSource has functions whose gradients differ.
const gradientSource = `
import torch

class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return 3 * x * x * g

class Half(Square):
    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return 3 * x * x.detach() * g

class Detached(Square):
    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return (3 * x * x).detach() * g.detach()

def reference(x):
    return x ** 3

def cube(x):
    return Square.apply(x)

def half(x):
    return Half.apply(x)

def detached(x):
    return Detached.apply(x)

def moments(x):
    return x.mean(-1), (x * x).mean(-1), x.argmax(-1)

def moments_right(x):
    return x.sum(-1) / x.shape[-1], x.square().sum(-1) / x.shape[-1], x.argmax(-1)

def moments_wrong(x):
    return x.sum(-1) / x.shape[-1], (x * x.detach()).sum(-1) / x.shape[-1], x.argmax(-1)

def moments_lost(x):
    return x.sum(-1) / x.shape[-1], x.detach().square().sum(-1) / x.shape[-1], x.argmax(-1)

def moments_two(x):
    return moments(x)[:2]
`

// TestGradientsOfSecondOrderAndOfSeveralResults: with bundles that show it.
func TestGradientsOfSecondOrderAndOfSeveralResults(t *testing.T) {
	slow(t)
	python := needTorch(t)
	for i, c := range []struct {
		name, against, reason string
		flags                 []string
	}{
		{"cube", "reference", "", []string{"--gradgrad"}},
		{"half", "reference", "second-order gradient of x", []string{"--gradgrad"}},
		{"moments_right", "moments", "", nil},
		{"moments_wrong", "moments", "gradient of x", nil},
		{"half", "reference", "", nil}, // from here on with PLUMB_KERNELS=all
		{"detached", "reference", "second-order gradient of x", []string{"--gradgrad"}},
		{"moments_lost", "moments", "requires_grad", nil},
		{"moments_two", "moments", "a tuple of 2", nil},
	} {
		if i == 4 && os.Getenv("PLUMB_KERNELS") != "all" {
			break
		}
		args := append([]string{"k.py::" + c.name, "--against", "k.py::" + c.against, "--inputs", "x: float[B,N]", "--dtypes", "float32,float64", "--no-empty", "--no-nonfinite", "-n", "8"}, c.flags...)
		r := kernelReport(t, python, gradientSource, args...)
		want := onekernel.Right
		if c.reason != "" {
			want = onekernel.Wrong
		}
		if r.Verdict != want || want == onekernel.Wrong && (!strings.Contains(r.Reasons[0].Text, c.reason) || r.Bundle == nil || !r.Bundle.Failed) {
			t.Errorf("%s %v: %s, %+v, %+v", c.name, c.flags, r.Verdict, r.Reasons, r.Bundle)
		}
	}
}

const operatorSource = `
import gc
import torch

@torch.library.custom_op("plumbtest::twice", mutates_args=())
def twice(x: torch.Tensor, times: int, bias: torch.Tensor) -> torch.Tensor:
    return (x * times + bias).contiguous()

@twice.register_fake
def _(x, times, bias):
    return x.new_empty(x.shape)

@torch.library.custom_op("plumbtest::twice_flat", mutates_args=())
def twice_flat(x: torch.Tensor, times: int, bias: torch.Tensor) -> torch.Tensor:
    return x * times + bias

@twice_flat.register_fake
def _(x, times, bias):
    return x.new_empty(x.numel())

@torch.library.custom_op("plumbtest::twice_bare", mutates_args=())
def twice_bare(x: torch.Tensor, times: int, bias: torch.Tensor) -> torch.Tensor:
    return x * times + bias

@torch.library.custom_op("plumbtest::twice_into", mutates_args={"out"})
def twice_into(out: torch.Tensor, x: torch.Tensor, times: int, bias: torch.Tensor) -> None:
    torch.add(x * times, bias, out=out)

@torch.library.custom_op("plumbtest::twice_spying", mutates_args=())
def twice_spying(x: torch.Tensor, times: int, bias: torch.Tensor) -> torch.Tensor:
    return x * times + bias if gc.get_objects() else x

def reference(x, times, bias):
    return x * times + bias
`

// TestRegisteredOperatorsAreChecked: operators of a module in the working folder are called as
// their schemas have it, opcheck's findings are wrong, by name, and what the module does is seen.
func TestRegisteredOperatorsAreChecked(t *testing.T) {
	slow(t)
	python := kernelPythons(t)["torch2"]
	if python == "" {
		t.Skip("no Python here has PyTorch 2: PLUMB_KERNELS_PYTHON lists more")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "plumbtestops.py"), []byte(operatorSource), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	for name, want := range map[string]struct {
		verdict onekernel.Word
		reason  string
	}{"twice": {onekernel.Right, ""}, "twice_flat": {onekernel.Wrong, "test_faketensor"}, "twice_bare": {onekernel.Right, ""}, "twice_into": {onekernel.Right, ""}, "twice_spying": {onekernel.Cheats, "looks through all objects"}} {
		r := kernelReport(t, python, operatorSource, "--op", "plumbtest::"+name, "--import", "plumbtestops", "--against", filepath.Join(dir, "plumbtestops.py")+"::reference",
			"--inputs", "x: f32[B,N], times = 2, bias: f32[N]", "--no-grad", "--no-empty", "-n", "4")
		if r.Verdict != want.verdict || want.reason != "" && !strings.Contains(r.Reasons[0].Text, want.reason) {
			t.Errorf("%s: %s, %+v", name, r.Verdict, r.Reasons)
		}
		if told := strings.Contains(strings.Join(r.Notes, "; "), "no fake implementation"); told != (name == "twice_bare") {
			t.Errorf("%s: notes %q", name, r.Notes)
		}
		if opened := strings.Join(r.Sandbox.Missing, "; "); strings.Contains(opened, "torch/") {
			t.Errorf("%s: what PyTorch imports at a first call opens the sandbox: %s", name, opened)
		}
	}
}

// TestHangsAreAskedAgain: what dies in a new process of a call that it waited for in another
// has written where it may not.
func TestHangsAreAskedAgain(t *testing.T) {
	slow(t)
	source := "import ctypes, time\ncalls = 0\ndef deadlocks(x):\n    global calls\n    calls += 1\n    if x.shape[-1] == 129:\n        time.sleep(60) if calls > 1 else ctypes.string_at(8)\n    return x * 2\ndef reference(x):\n    return x * 2\n"
	r := kernelReport(t, needTorch(t), source, "k.py::deadlocks", "--against", "k.py::reference", "--inputs", "x: f32[B,N]", "--no-grad", "--timeout", "5s", "-n", "2")
	if r.Verdict != onekernel.Unsafe {
		t.Errorf("%s, %+v", r.Verdict, r.Reasons)
	}
}

// TestReferencesAreTraced: one that unpacks bytes by shifts has error bounds of its own, as has
// one of a weight norm, which programs have not by its name, and one that changes what it has made
// in place, by views of it too.
func TestReferencesAreTraced(t *testing.T) {
	slow(t)
	tracedWhole(t, "def f(x, p):\n    return x * (p >> 4).to(x.dtype) + (p << 1).to(x.dtype)\n", "x: f32[N], p: u8[N] in 0..256")
	tracedWhole(t, "import torch\ndef f(x, v, g):\n    return x @ torch._weight_norm(v, g, 0).t()\n", "x: f32[B,I], v: f32[O,I], g: f32[O,1]")
	tracedWhole(t, "import torch\ndef f(x, b):\n    y = torch.empty_like(x)\n    y[:, 1:] = x[:, :-1].clone()\n    y[:, 0] = b\n    rest = y[:, 1:]\n    y[0] += b[0]\n    y.t()[0].mul_(3)\n    return y, rest.exp()\n", "x: f32[B,N], b: f32[B]")
	tracedClosely(t, "    y = x.clone()\n    part = y[:, 1:]\n    y[:, 0] = 0\n    y.view(-1)[1::2].neg_()\n    return part\n")
	tracedClosely(t, "    y = torch.zeros_like(x)\n    for i, row in enumerate(x.unbind(0)):\n        y[i] = row.flip(0)\n    y.t()[0].neg_()\n    return y\n")
}

func tracedWhole(t *testing.T, source, inputs string) {
	t.Helper()
	r := kernelReport(t, needTorch(t), source, "k.py::f", "--against", "k.py::f", "--inputs", inputs, "-n", "2")
	if i := slices.IndexFunc(r.Notes, func(note string) bool { return strings.Contains(note, "error bounds") }); i >= 0 {
		t.Error(r.Notes[i])
	}
}

// tracedClosely: a function of x that moves elements is right, and one that is off by the last
// digits, which the default of a dtype allows, is not.
func tracedClosely(t *testing.T, body string) {
	t.Helper()
	source := "import torch\ndef f(x):\n" + body + "def off(x):\n    return f(x) * (1 + 2.0 ** -20)\n"
	for of, want := range map[string]onekernel.Word{"f": onekernel.Right, "off": onekernel.Wrong} {
		r := kernelReport(t, needTorch(t), source, "k.py::"+of, "--against", "k.py::f", "--inputs", "x: f32[B,N]", "--no-grad", "--no-empty", "--no-nonfinite", "-n", "4")
		if r.Verdict != want {
			t.Errorf("%s of %s: %s, %+v, %v", of, body, r.Verdict, r.Reasons, r.Notes)
		}
	}
}

// TestProblemsWithoutNames: the sizes of a problem that has no names for them are the numbers of its
// inputs and its model; one that has no numbers either is judged as it is given.
func TestProblemsWithoutNames(t *testing.T) {
	slow(t)
	dir := t.TempDir()
	const model = "import torch\nclass %s(torch.nn.Module):\n    def __init__(self, i=2, o=3):\n        super().__init__()\n        self.fc = torch.nn.Linear(i, o)\n    def forward(self, x):\n        %s\n"
	const rows, whole = "y = x.new_empty(x.shape[0], self.fc.out_features)\n        for a in range(0, x.shape[0] - 15, 16):\n            y[a:a + 16] = self.fc(x[a:a + 16])\n        return y", "return self.fc(x)"
	for _, c := range []struct {
		makers, forward string
		want            onekernel.Word
	}{
		{"def get_inputs():\n    torch.manual_seed(42)\n    return [torch.randn(64, 128)]\ndef get_init_inputs():\n    return [128, 256]\n", whole, onekernel.Right},
		{"device = torch.device('cpu')\nSEED = 7\ndef get_inputs():\n    return [torch.randn(64, 128, device=device)]\ndef get_init_inputs():\n    return [128, 256]\n", rows, onekernel.Wrong},
		{"def get_inputs():\n    return [torch.ones(1, 1)]\ndef get_init_inputs():\n    return [1, 1]\n", whole, onekernel.Right},
	} {
		problem := filepath.Join(dir, "problem.py")
		if err := os.WriteFile(problem, []byte(fmt.Sprintf(model, "Model", whole)+c.makers), 0o644); err != nil {
			t.Fatal(err)
		}
		r := kernelReport(t, needTorch(t), fmt.Sprintf(model, "ModelNew", c.forward), "k.py", "--against", problem, "-n", "12")
		if r.Verdict != c.want {
			t.Errorf("%s: %s, %+v", c.makers, r.Verdict, r.Reasons)
		}
	}
}

// TestUnloadedKernels: what cannot be loaded is told with what to do about it, what a compiler says and
// not its command, and a line of code as far as it tells something.
func TestUnloadedKernels(t *testing.T) {
	slow(t)
	const build = `'Error building extension: [1/2] c++ ' + '-I x ' * 100 + '\nFAILED: main.o\n/tmp/a/main.cpp:2:51: error: expected a semicolon'`
	for _, c := range []struct{ source, want string }{
		{"import nowhere\n", "No module named 'nowhere' (k.py:1: import nowhere); --python names a Python that has it"},
		{"raise RuntimeError(" + build + ")\n", "Error building extension: main.cpp:2:51: expected a semicolon (k.py:1: raise RuntimeError("},
		{"raise OSError('CUDA_HOME environment variable is not set.')" + strings.Repeat(" ", 80) + "# why\n", "); CUDA C++ takes nvcc"},
	} {
		r := kernelReport(t, needTorch(t), c.source, "k.py::f", "--against", "torch.relu", "-n", "1")
		if text := fmt.Sprint(r.Reasons); r.Verdict != onekernel.Nothing || !strings.Contains(text, c.want) {
			t.Errorf("%s: %s, %s", c.source, r.Verdict, text)
		}
	}
}

// TestParametersAsKernelsHaveThem: beside a function of PyTorch's a kernel needs no parameter for the
// dimensions that it works along, has its own names, is given no None that it has no default for, nor
// what --fix says, and one that writes to its first parameter is not asked for gradients.
func TestParametersAsKernelsHaveThem(t *testing.T) {
	slow(t)
	const norm = "import torch\ndef f(x, gamma, beta, eps=1e-5):\n    d = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x\n    m = d.mean(-1, keepdim=True)\n    v = (d - m).square().%s\n    return ((d - m) * torch.rsqrt(v + eps) * gamma + beta).to(x.dtype)\n"
	for _, c := range []struct {
		source string
		args   []string
		want   onekernel.Word
	}{
		{fmt.Sprintf(norm, "mean(-1, keepdim=True)"), []string{"torch.nn.functional.layer_norm"}, onekernel.Right},
		{fmt.Sprintf(norm, "sum(-1, keepdim=True) / max(x.shape[-1] - 1, 1)"), []string{"torch.nn.functional.layer_norm"}, onekernel.Wrong},
		{fmt.Sprintf(norm, "mean(-1, keepdim=True)"), []string{"torch.nn.functional.layer_norm", "--inputs", "x: float[B,64], normalized_shape = (64,), weight: float[64], bias: float[64]"}, onekernel.Right},
		{"def f(x, w, b):\n    return x @ w.t() + b\n", []string{"torch.nn.functional.linear"}, onekernel.Right},
		{"import torch\ndef f(src, idx):\n    return torch.gather(src, 1, idx)\n", []string{"torch.gather", "--fix", "dim=1"}, onekernel.Right},
		{"import torch\ndef f(out, a, b):\n    torch.add(a, b, out=out)\n", []string{"torch.add"}, onekernel.Right},
		{"import torch\ndef f(a, p, n):\n    d = lambda x, y: (x - y + 1e-6).square().sum(-1).sqrt()\n    return torch.relu(d(a, p) - d(a, n) + 1).mean()\n", []string{"torch.nn.functional.triplet_margin_loss", "--no-nonfinite", "--no-grad"}, onekernel.Right},
		{"def f(ids, table):\n    return table[ids]\n", []string{"torch.nn.functional.embedding"}, onekernel.Right},
	} {
		r := kernelReport(t, needTorch(t), c.source, append([]string{"k.py::f", "-n", "14", "--dtypes", "float32,float64", "--against"}, c.args...)...)
		if r.Verdict != c.want {
			t.Errorf("%s beside %v: %s, %+v", c.source, c.args, r.Verdict, r.Reasons)
		}
	}
}
