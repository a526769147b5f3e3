package beside

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"plumb/backend"
	"plumb/backend/native"
	"plumb/nn"
	"plumb/op"
	"plumb/ops"
	"plumb/program"
	"plumb/tensor"
)

// TestMain serves native where this program is started to: an operator of its table
// ends the process, or never ends.
func TestMain(m *testing.M) {
	if len(os.Args) != 2 || os.Args[1] != "serve" {
		os.Exit(m.Run())
	}
	table, err := op.NewTable(append([]*op.Def{deadly}, ops.All()...)...)
	if err != nil {
		panic(err)
	}
	if Serve(context.Background(), os.Stdin, os.Stdout, func() (backend.Backend, error) { return native.New(table, nn.Modules()), nil }) != nil {
		os.Exit(1)
	}
}

var deadly = &op.Def{
	Sig: "deadly(Tensor x, int n) -> Tensor", Doc: "x.", Tol: op.Tol{Class: op.Exact, Reason: "a copy"}, Traits: op.NoGrad,
	Infer: func(a op.Args) ([]op.Meta, error) {
		return []op.Meta{{DType: a.Value("x").DType(), Shape: a.Value("x").Shape()}}, nil
	},
	Sample: func(s *op.Sampler) []any { return []any{s.Distinct(1), 0} },
	Kernels: []op.Kernel{{Name: "deadly", When: op.DTypeIn("x", tensor.F32), Run: func(c *op.Run) error {
		switch c.Int("n") {
		case 1:
			os.Exit(0)
		case 2:
			go func() { panic("deadly") }()
			select {}
		case 3:
			time.Sleep(time.Hour)
		}
		return nil
	}}},
}

const head = "# plumb program v1\nimport operator, torch\nfrom plumb import case, integer, normal, tensor, uniform\n\ncase(\"a\", seed=1)\n"

func job(t *testing.T, text string) *backend.Job {
	t.Helper()
	p, err := program.Parse("t", head+text)
	if err != nil {
		t.Fatal(err)
	}
	return backend.NewJob(p)
}

func opened(t *testing.T, timeout time.Duration) *Backend {
	t.Helper()
	b, err := Open(Config{Command: []string{os.Args[0], "serve"}, Timeout: timeout})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

// TestOutcomesCross: what another process computes is what this one does, to the last
// bit, in the modes of graphs too.
func TestOutcomesCross(t *testing.T) {
	here, there := native.New(ops.Table(), nn.Modules()), opened(t, 0)
	statuses := ""
	for _, text := range []string{
		"x = tensor((2, 3), torch.float32, uniform(-1.0, 1.0, key=1), strides=(1, 2), requires_grad=True)\nm = torch.nn.BatchNorm1d(3)\ny = m(x)\nz = torch.sum(y)\nz.backward()",
		"x = tensor((0, 3), torch.complex64, uniform(-1.0, 1.0, key=1))\ny = torch.exp(x)",
		"x = tensor((), torch.float64, uniform(-1.0, 1.0, key=1))\ny = x.ndim",
		"x = tensor((4,), torch.int64, integer(0, 9, key=1))\ny = torch.sort(x)\nz = x.add_(1)",
		"x = tensor((4,), torch.float32, uniform(-1.0, 1.0, key=1))\ny = torch.matmul(x, 3)",
	} {
		j := job(t, text)
		want, err := here.Run(t.Context(), j)
		if err != nil {
			t.Fatal(err)
		}
		statuses += string(want.Status) + " "
		got, err := there.Run(t.Context(), j)
		if err != nil || !backend.Same(want, got) || want.NoKernel != got.NoKernel {
			t.Errorf("%s\n%+v, want %+v (%v)", text, got, want, err)
		}
		for _, mode := range here.Info().GraphModes() {
			graph, _ := here.In(mode)
			graphs, _ := there.In(mode)
			want, err := graph.Run(t.Context(), j)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := graphs.Run(t.Context(), j); err != nil || !backend.Same(want, got) {
				t.Errorf("%s in %s\n%+v, want %+v (%v)", text, mode, got, want, err)
			}
		}
	}
	if statuses != "ok ok ok ok raised " {
		t.Errorf("the programs end %s", statuses)
	}
}

// TestDeathsCostOneCase: a program that ends the process is a crash, one that does not
// end a time-out, and those after it run.
func TestDeathsCostOneCase(t *testing.T) {
	t.Parallel() // it waits for what hangs, as long as no other case takes on a busy machine
	b := opened(t, 5*time.Second)
	for _, c := range []struct {
		n      string
		status backend.Status
		says   string
	}{
		{"0", backend.OK, ""}, {"1", backend.Crashed, "exit status 0"}, {"0", backend.OK, ""},
		{"2", backend.Crashed, "panic: deadly"}, {"3", backend.TimedOut, "no reply within 5s"}, {"0", backend.OK, ""},
	} {
		out, err := b.Run(t.Context(), job(t, "x = tensor((2,), torch.float32, uniform(-1.0, 1.0, key=1))\ny = plumb.deadly(x, "+c.n+")"))
		if err != nil || out.Status != c.status || !strings.HasPrefix(out.Message, c.says) {
			t.Errorf("deadly(%s): %+v, %v", c.n, out, err)
		}
	}
}
