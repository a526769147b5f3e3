package onekernel

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"plumb/backend/worker"
	"plumb/op"
	"plumb/tensor"
)

// TestMethodsAreTraced: a traced x.view(3, 2) is known, as one of a list of sizes is, and
// so is a property.
func TestMethodsAreTraced(t *testing.T) {
	for _, call := range []string{"x0.view(3, 2)", "x0.view((3, 2))", "x0.permute(1, 0)", "x0.expand(4, 2, 3)", "x0.T"} {
		tell := func(_ context.Context, _, answer any) error {
			told := answer.(*struct {
				Program string
				Results []string
			})
			told.Program = "# plumb program v1\nfrom plumb import case, tensor\n\ncase(\"trace\", seed=0)\nx0 = tensor((2, 3), torch.float32, constant(0.0))\ny = " + call + "\n"
			told.Results = []string{"y"}
			return nil
		}
		c := cases(t, makerOf(t, "x: float[2,3]", tensor.F32), 1)[0]
		if _, err := (&traced{id: "kernel", known: map[string]*recording{}}).learn(t.Context(), tell, c.program); err != nil {
			t.Errorf("%s: %v", call, err)
		}
	}
}

// TestProductsOfWhatIsMoved: a product of arguments is a single one where they, or the result,
// are moved besides, and none where they are computed with.
func TestProductsOfWhatIsMoved(t *testing.T) {
	for body, want := range map[string]bool{
		"y = x0 @ x1\n": true,
		"a = x0.flip(0)\nb = x1[:, None]\nd = b[:, 0]\nc = a @ d\ny = c[:, 1:]\n": true,
		"a = x0 * 2\ny = a @ x1\n": false,
		"i = torch.arange(2)\nj = i - 1\nm = j >= 0\nn = m[:, None]\nz = torch.zeros(2, 3)\na = torch.where(n, x0, z)\ny = a @ x1\n": true, // of a mask
		"z = torch.zeros(2, 3)\nw = z.add_(x0)\ny = z @ x1\n":                                                                        false,
		"y = x0.flip(0)\n": false,
	} {
		tell := func(_ context.Context, _, answer any) error {
			told := answer.(*struct {
				Program string
				Results []string
			})
			told.Program = "# plumb program v1\nimport operator, torch\nfrom plumb import case, tensor\n\ncase(\"trace\", seed=0)\nx0 = tensor((2, 3), torch.float32, constant(0.0))\nx1 = tensor((3, 4), torch.float32, constant(0.0))\n" + body
			told.Results = []string{"y"}
			return nil
		}
		c := cases(t, makerOf(t, "x: float[2,3], w: float[3,4]", tensor.F32), 1)[0]
		of := &traced{id: "kernel", known: map[string]*recording{}}
		if _, err := of.learn(t.Context(), tell, c.program); err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		if got := of.single(c.program); got != want {
			t.Errorf("%s: %v, want %v", body, got, want)
		}
	}
}

// TestRunsInFloat64AreToldApart: what a float32 call is traced to stands for its run in float64,
// and for no call of float64's own, which is not drawn where it computes in float32.
func TestRunsInFloat64AreToldApart(t *testing.T) {
	of := &traced{id: "kernel", known: map[string]*recording{}}
	for _, d := range []tensor.DType{tensor.F32, tensor.F64} {
		tell := func(_ context.Context, _, answer any) error {
			told := answer.(*struct {
				Program string
				Results []string
			})
			told.Program, told.Results = "# plumb program v1\nfrom plumb import case, tensor\n\ncase(\"trace\", seed=0)\nx0 = tensor((2, 3), torch."+d.String()+", constant(0.0))\ny = x0.float()\n", []string{"y"}
			return nil
		}
		c := cases(t, makerOf(t, "x: "+d.String()+"[2,3]", d), 1)[0]
		if _, err := of.learn(t.Context(), tell, c.program); err != nil {
			t.Fatal(err)
		}
	}
	for d, want := range map[tensor.DType]bool{tensor.F32: false, tensor.F64: true} {
		s := &Session{traced: of, maker: makerOf(t, "x: float[2,3]", d)}
		c := cases(t, s.maker, 1)[0]
		s.maker.promises.DTypes = []tensor.DType{tensor.F32, tensor.F64}
		if got := s.coarser(c); got != want || slices.Contains(s.maker.promises.DTypes, tensor.F64) == want {
			t.Errorf("%v: computes in a coarser dtype %v, then drawn are %v", d, got, s.maker.promises.DTypes)
		}
	}
	x := []op.Value{tensor.New(tensor.F64, 2, 3)}
	for unit, want := range map[float64]tensor.DType{0: tensor.F64, 0x1p-53: tensor.F64, 0x1p-24: tensor.F32} {
		if r := of.of(x, op.Args{Sig: &op.Sig{}}, unit); r == nil || r.program.Inputs[0].DType != want {
			t.Errorf("roundoff %v: %+v, want what %v is traced to", unit, r, want)
		}
	}
	if r := of.of(x, op.Args{Sig: &op.Sig{}}, 0x1p-11); r != nil {
		t.Errorf("float16 is traced to %v", r.program)
	}
}

// TestOneIndexIsTraced: an index that is no tuple is seen as others are, by each PyTorch.
func TestOneIndexIsTraced(t *testing.T) {
	python, _, err := worker.FindPython("")
	if err != nil {
		t.Skip(err)
	}
	file := filepath.Join(t.TempDir(), "ref.py")
	if err := os.WriteFile(file, []byte("def f(x):\n    return x[0] * 2, x[None], x[1:], x[...], x[x.argmax(0)], x[[0, 1]], x[-1]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	of := Source{Form: "function", File: file, Name: "f"}
	cfg := &Config{Reference: &of, Python: python, Timeout: time.Minute}
	h, err := openHost(t.Context(), cfg, of.spec("reference", cfg.target()), "")
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	var told described
	if err := h.ask(t.Context(), map[string]any{"describe": nil}, &told); err != nil || told.Failed != "" {
		t.Fatal(err, told.Failed)
	}
	c := cases(t, makerOf(t, "x: float[3,2]", tensor.F32), 1)[0]
	if n, err := (&traced{id: "kernel", known: map[string]*recording{}}).learn(t.Context(), h.ask, c.program); n != 7 || err != nil {
		t.Errorf("%d results, %v", n, err)
	}
}
