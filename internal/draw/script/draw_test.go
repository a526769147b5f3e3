package script

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"plumb/backend"
	"plumb/internal/draw/choice"
	"plumb/op"
	"plumb/program"
	"plumb/tensor"
)

func TestDrawnCalls(t *testing.T) {
	for name, c := range map[string]struct{ src, want string }{
		"function, method, operator": {
			"x = random_tensor(ndim=2)\ny = torch.relu(x).sum(dim=1, keepdim=True)\nreturn 2 - y",
			"v = torch.relu(x)\ny = v.sum(dim=1, keepdim=True)\nv2 = 2 - y\nbackward v2"},
		"names of variables are kept": {
			"left = random_tensor()\nright = torch.relu(left)\nleft = left + right\nreturn left",
			"right = torch.relu(left)\nleft2 = left + right\nbackward left2"},
		"names that the text needs are not": {
			"tensor = random_tensor()\nuniform = tensor.relu()\nreturn uniform",
			"v = x.relu()\nbackward v"},
		"module": {
			"k = constant(3)\nm = torch.nn.Linear(k, 4, bias=False)\nm.train(random().to(bool) | True)\nm.to('cpu')\ny = m(random_tensor(ndim=2, dim1=k))\nreturn y",
			"m = torch.nn.Linear(3, 4, bias=False)\nm2 = m.train(True)\ny = m(x)\nbackward y"},
		"eval gives the module itself": {
			"m = torch.nn.Linear(2, 2).eval()\nreturn m(random_tensor()), m.weight.sum(), m.bias",
			"m = torch.nn.Linear(2, 2)\nm2 = m.eval()\nv = m(x)\nv2 = m.weight\nv3 = v2.sum()\nv4 = m.bias\nbackward v\nbackward v3\nbackward v4"},
		"nothing is left out": {
			"x = random_tensor()\nreturn torch.nn.functional.leaky_relu(x, negative_slope=nothing(), inplace=constant(False))",
			"v = torch.nn.functional.leaky_relu(x, inplace=False)\nbackward v"},
		"moves to the default device are left out": {
			"device = random_device()\nx = random_tensor().to(device)\ny = x.to(device='cpu').cpu().to(torch.device('cpu'))\nreturn y.to(torch.float64)",
			"v = x.to(torch.float64)"},
		"lists of tensors": {
			"x = random_tensor(ndim=1)\ny = random_tensor(ndim=1)\nreturn torch.cat([x, y], dim=constant(0))",
			"v = torch.cat([x, y], dim=0)\nbackward v"},
		"a tuple known by its signature": {
			"x = random_tensor(ndim=2)\nv, i = torch.max(x, 1)\nm = x.max(dim=0)\nreturn m.values + v, x.max(0)[-1], m.values",
			"v = torch.max(x, 1)\nv2 = v[0]\nv3 = v[1]\nm = x.max(dim=0)\nv4 = m[0]\nv5 = v4 + v2\nv6 = x.max(0)\nv7 = v6[1]\nbackward v5\nbackward v7\nbackward v4"},
		"overloads by type": {
			"x = random_tensor()\nreturn torch.max(x), torch.max(x, x), torch.add(x, 2), torch.add(x, x, alpha=2)",
			"v = torch.max(x)\nv2 = torch.max(x, x)\nv3 = torch.add(x, 2)\nv4 = torch.add(x, x, alpha=2)\nbackward v\nbackward v2\nbackward v3\nbackward v4"},
		"indices": {
			"x = random_tensor(ndim=3, dim0=4)\nreturn x[0], x[1:3], x[:, 1], x[..., None, ::2], x[-1:, :, 0:2], x[random(1, 2).to(int):]",
			"v = x[0]\nv2 = x[1:3]\nv3 = x[:, 1]\nv4 = x[..., None, ::2]\nv5 = x[-1:, :, 0:2]\nv6 = x[1:]\nbackward v\nbackward v2\nbackward v3\nbackward v4\nbackward v5\nbackward v6"},
		"operators": {
			"x = random_tensor(ndim=1)\ny = (x > 0) == (1 <= x)\nreturn -x ** 2 @ x, ~y, x // 2 % 3, x | y, +x, abs(x), pow(x, 2), sum([x, x])",
			"v = x > 0\nv2 = 1 <= x\ny = v == v2\nv3 = x ** 2\nv4 = -v3\nv5 = v4 @ x\nv6 = ~y\nv7 = x // 2\nv8 = v7 % 3\nv9 = x | y\nv10 = operator.pos(x)\nv11 = operator.abs(x)\nv12 = x ** 2\nv13 = 0 + x\nv14 = v13 + x\nbackward v5\nbackward v6\nbackward v8\nbackward v9\nbackward v10\nbackward v11\nbackward v12\nbackward v14"},
		"assignment in place": {
			"x = random_tensor()\ny = torch.relu(x)\ny += x\ny **= 2\ny[0] = 1\ny[1:2] *= 3\nreturn y",
			"y = torch.relu(x)\ny2 = operator.iadd(y, x)\ny3 = operator.ipow(y2, 2)\nv = operator.setitem(y3, 0, 1)\nv2 = y3[1:2]\nv3 = operator.imul(v2, 3)\nv4 = operator.setitem(y3, slice(1, 2, None), v3)\nbackward y3"},
		"attributes of a tensor": {
			"x = random_tensor(ndim=2)\nreturn x.T @ x, x.T.relu()",
			"v = x.T\nv2 = v @ x\nv3 = x.T\nv4 = v3.relu()\nbackward v2\nbackward v4"},
		"one attribute is one value": {
			"x = random_tensor()\ny = x.mT\nreturn y + y",
			"v = x.mT\nv2 = x.mT\nv3 = v + v2\nbackward v3"},
		"a method's list may be spread": {
			"x = random_tensor(ndim=3)\nreturn x.permute(2, 0, 1), x.permute((0, 1, 2))",
			"v = x.permute(2, 0, 1)\nv2 = x.permute((0, 1, 2))\nbackward v\nbackward v2"},
		"dtypes and formats": {
			"x = random_tensor()\nreturn torch.zeros_like(x, dtype=torch.half), torch.zeros_like(x, dtype=int)",
			"v = torch.zeros_like(x, dtype=torch.float16)\nv2 = torch.zeros_like(x, dtype=torch.int64)\nbackward v\nbackward v2"},
		"oneof is callable": {
			"return oneof(torch.relu)(random_tensor())",
			"v = torch.relu(x)\nbackward v"},
		"a tensor in oneof": {
			"x = random_tensor()\nreturn torch.relu(oneof(x, x))",
			"v = torch.relu(x)\nbackward v"},
		"shapes of inputs are known": {
			"x = random_tensor(ndim=2, dim0=3, dim1=4)\nif x.shape == (3, 4) and x.size(-1) == 4 and x.dim() == 2 and len(x) == 3 and x.numel() == 12 and x.dtype == torch.float32 and x.requires_grad:\n    return x.relu()\nreturn x",
			"v = x.relu()\nbackward v"},
		"a leaf": {"return random_tensor()", "backward x"},
		"is": {
			"x = random_tensor()\nif x is not None and (x is x) and not (None is x) and None is None:\n    return x.relu()",
			"v = x.relu()\nbackward v"},
		"complex numbers": {
			"x = random_tensor()\nreturn torch.add(x, 2j + 1)",
			"v = torch.add(x, complex(1.0, 2.0))\nbackward v"},
		"helpers, comprehensions, defaults": {
			"def double(v, times=2):\n    return [v * k for k in range(times) if k > 0]\nx = random_tensor()\nreturn double(x)[0], [torch.relu(y) for y in double(x, times=3)][1]",
			"v = x * 1\nv2 = x * 1\nv3 = x * 2\nv4 = torch.relu(v2)\nv5 = torch.relu(v3)\nbackward v\nbackward v5"},
	} {
		t.Run(name, func(t *testing.T) {
			env := Env{Observer: &watcher{answer: plain(nil)}}
			if got := calls(drawOne(t, body(c.src), env)); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

func TestGoldenProgram(t *testing.T) {
	test := loadTest(t, `import torch
from plumb import *

@autotest(n=3, rtol=1e-3, atol=0.01)
def test_conv():
    channels = random(1, 6)
    m = torch.nn.Conv2d(
        in_channels=channels,
        out_channels=random(1, 20),
        kernel_size=random(1, 4),
        stride=random(1, 3) | nothing(),
        padding=random(0, 3).to(int) | nothing(),
        groups=nothing(),
    )
    m.train(random())
    x = random_tensor(ndim=4, dim1=channels, dim2=random(8, 10), dim3=8, requires_grad=False)
    return m(x)
`)
	p, err := test.Draw(choice.New(11), Env{Signatures: toySigs})
	if err != nil {
		t.Fatal(err)
	}
	const want = `# plumb program v1
import operator, torch
from plumb import case, integer, tensor, uniform

case("t.py::test_conv", seed=SEED, rtol=0.001, atol=0.01)
x = tensor((1, 4, 8, 8), torch.float32, uniform(-1.0, 1.0, key=KEY, kinks=True))
m = torch.nn.Conv2d(in_channels=4, out_channels=1, kernel_size=(1, 2), stride=1, padding=2)
m2 = m.train(True)
v = m(x)
v.backward(uniform(0.0, 1.0, key=KEY))
`
	got := p.String()
	for _, number := range append([]uint64{p.Seed}, p.Inputs[0].Fill.Key, p.Backward[0].Cotangent.Key) {
		got = strings.Replace(got, fmt.Sprintf("=%d", number), map[bool]string{true: "=SEED", false: "=KEY"}[number == p.Seed], 1)
	}
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	read, err := program.Parse("p", p.String())
	if err != nil || read.ID() != p.ID() {
		t.Errorf("the text reads back as another program: %v", err)
	}
}

func TestGeneratorsAreTypedByTheirParameter(t *testing.T) {
	const src = `
k = random(1, 6)
m = torch.nn.Conv2d(random(1, 4), k, random(2, 4), stride=(random(1, 3), random(1, 3)), groups=random(1, 2) * 1)
m.train(random())
x = random_tensor(ndim=random(2, 4), dim0=k)
y = torch.nn.functional.leaky_relu(x, random(0, 1), inplace=random())
return torch.add(y, x, alpha=random(1, 3))`
	kinds := map[string]bool{}
	test := loadTest(t, body(src))
	for i := range uint64(100) {
		p, err := test.Draw(choice.New(i), Env{Signatures: toySigs})
		if err != nil {
			t.Fatal(err)
		}
		ctor, leaky := p.Calls[0], p.Calls[2]
		for what, v := range map[string]any{
			"in": ctor.Args[0], "kernel": ctor.Args[2], "stride": ctor.Kwargs[0].Value.(program.Tuple)[0], "groups": ctor.Kwargs[1].Value,
			"train": p.Calls[1].Args[1], "slope": leaky.Args[1], "inplace": leaky.Kwargs[0].Value, "alpha": p.Calls[3].Kwargs[0].Value,
		} {
			kinds[fmt.Sprintf("%s %T", what, v)] = true
		}
		if int64(p.Inputs[0].Shape[0]) != ctor.Args[1] {
			t.Fatalf("dim0 is %d, out_channels %v", p.Inputs[0].Shape[0], ctor.Args[1])
		}
	}
	var got []string
	for k := range kinds {
		got = append(got, k)
	}
	slices.Sort(got)
	want := "alpha float64, alpha int64, groups int64, in int64, inplace bool, kernel int64, kernel program.Tuple, slope float64, stride int64, train bool"
	if strings.Join(got, ", ") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, ", "), want)
	}
}

func TestObservationAsksTheReferenceOnce(t *testing.T) {
	for name, c := range map[string]struct {
		src    string
		answer func(*program.Program, program.Ref) (backend.Value, error)
		asked  string
		want   string
	}{
		"shape": {"y = torch.odd(random_tensor())\nif y.shape[0] == 5 and y.ndim == 2 and y.size(1) == 2 and y.dtype == torch.float32:\n    return y.relu()", ofShape(5, 2), "y",
			"y = torch.odd(x)\nv = y.relu()\nbackward v"},
		"if": {"y = torch.odd(random_tensor())\nif y.all():\n    return y.relu()", plain(true), "v",
			"y = torch.odd(x)\nv = y.all()\nv2 = y.relu()\nbackward v2"},
		"if not": {"y = torch.odd(random_tensor())\nif not y.all():\n    return y.relu()", plain(true), "v",
			"y = torch.odd(x)\nv = y.all()"},
		"item": {"y = torch.odd(random_tensor())\nn = int(y) + y.item()\nreturn random_tensor().relu() * n", plain(int64(2)), "y",
			"y = torch.odd(x)\nv = x2.relu()\nv2 = v * 4\nbackward v2"},
		"conditional expression": {"y = torch.odd(random_tensor())\nreturn torch.relu(random_tensor()) if y > 0 else None", plain(false), "v",
			"y = torch.odd(x)\nv = y > 0"},
		"unpacking": {"a, b = torch.odd(random_tensor())\nreturn a.relu() + b.relu()",
			func(*program.Program, program.Ref) (backend.Value, error) {
				return backend.Value{IsTuple: true, Tuple: make([]backend.Value, 2)}, nil
			}, "v",
			"v = torch.odd(x)\nv2 = v[0]\nv3 = v[1]\nv4 = v2.relu()\nv5 = v3.relu()\nv6 = v4 + v5\nbackward v6"},
		"flags that decide how many results there are": {"a, b = torch.unique(random_tensor(), return_counts=True)\nreturn a.relu()",
			func(*program.Program, program.Ref) (backend.Value, error) {
				return backend.Value{IsTuple: true, Tuple: make([]backend.Value, 2)}, nil
			}, "v",
			"v = torch.unique(x, return_counts=True)\nv2 = v[0]\nv3 = v[1]\nv4 = v2.relu()\nbackward v4"},
		"a returned tuple is differentiated element by element": {"return torch.max(random_tensor(ndim=2), dim=0)",
			func(*program.Program, program.Ref) (backend.Value, error) {
				one := backend.Value{Tensor: tensor.New(tensor.F32), RequiresGrad: true}
				return backend.Value{IsTuple: true, Tuple: []backend.Value{one, one}}, nil
			}, "v",
			"v = torch.max(x, dim=0)\nv2 = v[0]\nv3 = v[1]\nbackward v2\nbackward v3"},
		"constants of a tuple are not differentiated": {"return torch.max(random_tensor(ndim=2), dim=0)",
			func(*program.Program, program.Ref) (backend.Value, error) {
				one := backend.Value{Tensor: tensor.New(tensor.F32), RequiresGrad: true}
				return backend.Value{IsTuple: true, Tuple: []backend.Value{one, {Tensor: tensor.New(tensor.I64)}}}, nil
			}, "v",
			"v = torch.max(x, dim=0)\nv2 = v[0]\nbackward v2"},
		"returned value of unknown kind": {"return torch.odd(random_tensor())",
			func(_ *program.Program, ref program.Ref) (backend.Value, error) {
				one := backend.Value{Tensor: tensor.New(tensor.F32), RequiresGrad: true}
				return backend.Value{IsTuple: true, Tuple: []backend.Value{one, {}}}, nil
			}, "v v3",
			"v = torch.odd(x)\nv2 = v[0]\nv3 = v[1]\nbackward v2"},
		"after a change in place": {"y = torch.odd(random_tensor())\na = y.shape\ny.relu_()\nb = y.shape\nreturn y.relu()", ofShape(1), "y y",
			"y = torch.odd(x)\nv = y.relu_()\nv2 = y.relu()\nbackward v2"},
		"iteration": {"for row in torch.odd(random_tensor()):\n    row.relu()", ofShape(2, 3), "v",
			"v = torch.odd(x)\nv2 = v[0]\nv3 = v[1]\nv4 = v2.relu()\nv5 = v3.relu()"},
	} {
		t.Run(name, func(t *testing.T) {
			w := &watcher{answer: func(p *program.Program, ref program.Ref) (backend.Value, error) {
				if err := p.Validate(); err != nil || len(p.Backward) > 0 {
					t.Errorf("asked with a bad program: %v\n%s", err, p)
				}
				if ref == "v3" && name == "returned value of unknown kind" {
					return backend.Value{Plain: int64(3)}, nil
				}
				return c.answer(p, ref)
			}}
			if got := calls(drawOne(t, body(c.src), Env{Observer: w})); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
			if got := strings.Join(w.asked, " "); got != c.asked {
				t.Errorf("asked for %q, want %q", got, c.asked)
			}
		})
	}
}

func TestObserversErrorIsReturnedAsItIs(t *testing.T) {
	rejected := errors.New("the reference rejects this")
	for _, src := range []string{
		"y = torch.odd(random_tensor())\nreturn y.relu() if y.shape else None",
		"a, b = torch.odd(random_tensor())",
		"return torch.odd(random_tensor())",
	} {
		w := &watcher{answer: func(*program.Program, program.Ref) (backend.Value, error) { return backend.Value{}, rejected }}
		_, err := loadTest(t, body(src)).Draw(choice.New(1), Env{Signatures: toySigs, Observer: w})
		if err != rejected {
			t.Errorf("%q: got %v", src, err)
		}
		_, err = loadTest(t, body(src)).Draw(choice.New(1), Env{Signatures: toySigs})
		if !errors.Is(err, ErrNoObserver) {
			t.Errorf("%q without an observer: got %v", src, err)
		}
	}
}

type broken struct{ err error }

func (b broken) Signatures(string) ([]*op.Sig, error) { return nil, b.err }

func TestSignatureFaultIsReturnedAsItIs(t *testing.T) {
	fault := errors.New("the worker is gone")
	_, err := loadTest(t, body("return torch.relu(random_tensor())")).Draw(choice.New(1), Env{Signatures: broken{fault}})
	if err != fault {
		t.Error(err)
	}
}

// TestReferenceMayKnowMoreForms: an argument is no mistake while anybody's
// signature takes it.
func TestReferenceMayKnowMoreForms(t *testing.T) {
	src := body("m = torch.nn.Conv2d(3, 4, 3, padding='same')\nreturn m(random_tensor())")
	wider := toy{"torch.nn.Conv2d": {op.MustParseSig("Conv2d(int in_channels, int out_channels, int[2] kernel_size, int[2] stride=1, str padding='valid')")}}
	if _, err := loadTest(t, src).Draw(choice.New(1), Env{Signatures: toySigs}); err == nil {
		t.Error("padding='same' fits no signature of the table")
	}
	if _, err := loadTest(t, src).Draw(choice.New(1), Env{Signatures: toySigs, Reference: wider}); err != nil {
		t.Error(err)
	}
}

func TestOptions(t *testing.T) {
	f, err := Load("t.py", []byte(`
@autotest()
def test_a(test_case): return torch.relu(random_tensor())
@autotest(7, "auto", rtol=1e-3, check_graph="ValidatedFalse", check_dtype=True, check_grad_use_random_data=False)
def test_b(): return torch.relu(random_tensor())
@autotest(auto_backward=False, include_complex=True, atol=0)
def test_c(): return torch.relu(random_tensor())
@autotest
def test_d(): return torch.relu(random_tensor())
`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, test := range f.Tests() {
		o := test.Options
		dtypes := map[tensor.DType]bool{}
		var p *program.Program
		for i := range uint64(20) {
			if p, err = test.Draw(choice.New(i), Env{Signatures: toySigs}); err != nil {
				t.Fatal(err)
			}
			dtypes[p.Inputs[0].DType] = true
		}
		line := fmt.Sprint(test.Name, " ", o.N, " graph=", o.CheckGraph, " dtype=", o.CheckDType, " backward=", len(p.Backward), " dtypes=", len(dtypes))
		if len(p.Backward) > 0 {
			line += fmt.Sprint(" auto=", p.Backward[0].Auto, " ", p.Backward[0].Cotangent.Dist)
		}
		if p.RTol != nil {
			line += fmt.Sprint(" rtol=", *p.RTol)
		}
		if p.ATol != nil {
			line += fmt.Sprint(" atol=", *p.ATol)
		}
		got = append(got, line)
	}
	want := []string{
		"t.py::test_a 20 graph=true dtype=false backward=1 dtypes=1 auto=false uniform",
		"t.py::test_b 7 graph=false dtype=true backward=1 dtypes=1 auto=true  rtol=0.001",
		"t.py::test_c 20 graph=true dtype=false backward=0 dtypes=2 atol=0",
		"t.py::test_d 20 graph=true dtype=false backward=1 dtypes=1 auto=false uniform",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

const mixed = `
import torch
shared = random(1, 8)

@autotest()
def test_mixed():
    x = random_tensor(dim0=shared, ndim=random(1, 4))
    y = random_tensor(ndim=1, dim0=shared) * random(1, 3).to(float)
    if x.shape[0] > 4:
        x = torch.relu(x)
    return torch.nn.functional.leaky_relu(x, random(0, 1) | constant(0.5)), y
`

func TestReplayedRecordGivesTheSameProgram(t *testing.T) {
	test := loadTest(t, mixed)
	different := map[string]bool{}
	for i := range uint64(50) {
		src := choice.New(i)
		p, err := test.Draw(src, Env{Signatures: toySigs})
		if err != nil {
			t.Fatal(err)
		}
		q, err := test.Draw(choice.Replay(i+1000, src.Record()), Env{Signatures: toySigs})
		if err != nil || q.String() != p.String() {
			t.Fatalf("%v: replayed\n%s\ndrawn\n%s", err, q, p)
		}
		different[p.ID()] = true
	}
	if len(different) != 50 {
		t.Errorf("50 seeds gave %d programs", len(different))
	}
}

// TestGoroutinesDoNotMeet draws from one file at the same time: a generator at
// the top of the file is one sample per case.
func TestGoroutinesDoNotMeet(t *testing.T) {
	test := loadTest(t, mixed)
	want := make([]string, 40)
	for i := range want {
		p, err := test.Draw(choice.New(uint64(i)), Env{Signatures: toySigs})
		if err != nil {
			t.Fatal(err)
		}
		want[i] = p.String()
	}
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for i := range want {
				p, err := test.Draw(choice.New(uint64(i)), Env{Signatures: toySigs})
				if err != nil || p.String() != want[i] {
					t.Errorf("case %d: %v", i, err)
				}
			}
		})
	}
	group.Wait()
}

// TestGlobalsAreOfOneDraw: what the top of the file makes is made anew for
// every draw: a case cannot change what the next one sees, and a tensor of the
// file is one of the program.
func TestGlobalsAreOfOneDraw(t *testing.T) {
	test := loadTest(t, `
class Box:
    pass
box = Box()
box.seen = []
seen = []
size = random(2, 5).to(int).value()
W = torch.ones(2, size)

@autotest()
def test_it(test_case):
    seen.append(1)
    box.seen.append(1)
    assert len(seen) == len(box.seen) == 1
    return torch.relu(W)
`)
	sizes := map[string]bool{}
	for key := range uint64(20) {
		p, err := test.Draw(choice.New(key), Env{Signatures: toySigs})
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Calls) != 2 || p.Calls[0].Target != "torch.ones" || p.Calls[1].Expr() != "torch.relu(W)" {
			t.Fatalf("the program is\n%s", p)
		}
		sizes[p.Calls[0].Expr()] = true
	}
	if len(sizes) != 3 {
		t.Errorf("the sizes are %v, want 2 to 4", sizes)
	}
}

// TestDevicesOfARunWithoutCUDA: the default device takes the place of one that
// a test names; where that must not be, the test is unsupported.
func TestDevicesOfARunWithoutCUDA(t *testing.T) {
	src := body(`d = torch.device("cuda", 0)
x = random_tensor(ndim=2).to("cuda")
y = torch.relu(x.cuda()).to(device="cuda:0").to(d).to(torch.device(type="cuda")).to(gpu_device())
assert not torch.cuda.is_available() and y.device == d == torch.device("cuda")
return y`)
	p, err := loadTest(t, src).Draw(choice.New(1), Env{Signatures: toySigs})
	if err != nil || len(p.Calls) != 1 {
		t.Errorf("%v\n%s", err, p)
	}
	_, err = loadTest(t, src).Draw(choice.New(1), Env{Signatures: toySigs, DeviceStrict: true})
	var e *Error
	if !errors.As(err, &e) || !e.Unsupported || !strings.Contains(e.Msg, "needs a run with --device cuda") {
		t.Errorf("with DeviceStrict: %v", err)
	}
	if got := load(t, src).Accelerators; !slices.Equal(got, []int{3, 4, 5, 6}) {
		t.Errorf("lines that name CUDA: %v", got)
	}
}

// TestDrawnArgumentsAreForTheReferenceToRefuse: a mistake is only what is one
// whatever is drawn.
func TestDrawnArgumentsAreForTheReferenceToRefuse(t *testing.T) {
	for _, src := range []string{
		"m = torch.nn.Linear(3, oneof('a', 'b'))\nreturn m(random_tensor(ndim=2, dim1=3))",
		"m = torch.nn.Linear(3, 4, alpha=random())\nreturn m(random_tensor(ndim=2, dim1=3))",
	} {
		p := drawOne(t, body(src), Env{})
		if len(p.Calls) != 2 {
			t.Errorf("%s:\n%s", src, p)
		}
	}
}

// TestBothSidesOfPlainValues: a number or a shape is the same on both sides.
func TestBothSidesOfPlainValues(t *testing.T) {
	p := drawOne(t, body(`x = random_tensor(ndim=2, dim0=2, dim1=3)
k, n = x.shape.pytorch, x.shape[0].oneflow
assert k == (2, 3) and n == 2 and x.size().oneflow[1].pytorch == 3 and x.dim().pytorch == 2
x.pytorch = x.pytorch
torch.backends.cudnn.deterministic = True
torch.pytorch.backends.cuda.matmul.allow_tf32 = False
return torch.relu(x.oneflow)`), Env{})
	if len(p.Calls) != 1 {
		t.Error(p)
	}
}
