package script

import (
	"errors"
	"strings"
	"testing"

	"plumb/backend"
	"plumb/backend/native"
	"plumb/internal/draw/choice"
	"plumb/nn"
	"plumb/ops"
	"plumb/program"
)

func nativeEnv() Env {
	return Env{Signatures: tableSigs{}, Observer: nativeObserver{native.New(ops.Table(), nn.Modules())}}
}

func TestDeepCopyIsANewLeaf(t *testing.T) {
	p := drawOne(t, "import copy\n"+body("x = random_tensor()\ny, z = copy.deepcopy([x, x.detach() * 2])\nreturn x * y, z"), nativeEnv())
	want := "y = x.detach()\ny2 = y.clone()"
	if got := calls(p); !strings.Contains(got, ".requires_grad_()") || strings.Count(got, ".clone()") != 2 || strings.Count(got, "requires_grad_") != 1 {
		t.Errorf("got\n%s\nwant such as\n%s", got, want)
	}
	_, err := loadTest(t, "import copy\n"+body("x = random_tensor()\nreturn copy.deepcopy(x * 2)")).Draw(choice.New(1), nativeEnv())
	var e *Error
	if !errors.As(err, &e) || e.Unsupported || !strings.Contains(e.Msg, "only tensors that are leaves") {
		t.Errorf("a copy of what is no leaf: %v", err)
	}
}

func TestHasattrAsksTheReference(t *testing.T) {
	asked := ""
	env := Env{Observer: &watcher{answer: func(p *program.Program, ref program.Ref) (backend.Value, error) {
		c := p.Calls[len(p.Calls)-1]
		asked = c.String()
		if name := c.Args[1]; c.Result == string(ref) && name == "bias" {
			return backend.Value{}, nil
		}
		return backend.Value{Plain: c.Args[2]}, nil
	}}}
	src := "m = torch.nn.Linear(2, 3)\nx = random_tensor(ndim=2, dim1=2)\n" +
		"assert hasattr(m, 'bias') and hasattr(m, 'state_dict') and hasattr(x, 'relu')\nassert not hasattr(m, 'gain') and not hasattr(x, 'names')\nreturn m(x)"
	p := drawOne(t, body(src), env)
	if want := `asked = getattr(x, "names", "no such attribute")`; asked != want {
		t.Errorf("asked %s, want %s", asked, want)
	}
	if len(p.Calls) != 2 {
		t.Errorf("a question is part of the case:\n%s", p)
	}
}

func TestRunsWithoutCUDA(t *testing.T) {
	src := "from oneflow.test_utils.test_util import GenArgList, GenArgDict\nfrom collections import OrderedDict\n" + body(`
a = OrderedDict(device=["cuda", "cpu"], k=[1, 2])
x = random_tensor()
for device, k in GenArgList(a):
    x = x * k
    x = torch.add(x, 10 if device == "cuda" else 20)
return x`)
	for devices, want := range map[string]int{"cpu": 4, "cuda": 8} {
		if p := drawOne(t, src, Env{Devices: []string{devices}}); len(p.Calls) != want {
			t.Errorf("%s: %d calls, want %d:\n%s", devices, len(p.Calls), want, p)
		}
	}
}

func TestVersionIsTheReferences(t *testing.T) {
	src := body("return random_tensor() * float(torch.__version__[:3])")
	for want, f := range map[string]func() string{"v = x * 1.1": nil, "v = x * 2.3": func() string { return "2.3.0+cpu" }} {
		if got := calls(drawOne(t, src, Env{Version: f})); !strings.HasPrefix(got, want) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestStorageOffsetIsANumber(t *testing.T) {
	env := Env{Observer: &watcher{answer: plain(int64(3))}}
	p := drawOne(t, body("x = random_tensor(ndim=2)\ny = x[1:]\nassert y.storage_offset() == 3\nreturn y * y.storage_offset()"), env)
	if got := calls(p); !strings.Contains(got, "y * 3") || len(p.Calls) != 2 {
		t.Errorf("got\n%s", got)
	}
}
