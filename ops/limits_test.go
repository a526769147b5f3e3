package ops_test

import (
	"flag"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"plumb/internal/draw/choice"
	"plumb/internal/truth"
	"plumb/op"
	"plumb/ops"
	"plumb/tensor"
)

var full = flag.Bool("full", false, "measure kernels at every number of 16 bits and at ten times as many others")

// form is one way to call an operator: its name with the arguments that follow
// the tensors.
type form struct {
	name string
	args []any
}

// attributes are the arguments after the tensors with which operators are
// measured.
var attributes = map[string][][]any{
	"leaky_relu": {{0.01}, {-0.75}, {3.1}},
	"elu":        {{1.0}, {0.3125}},
	"celu":       {{1.0}, {0.3125}},
	"hardshrink": {{0.5}},
	"softshrink": {{0.5}, {0.3125}},
	"hardtanh":   {{-1.0, 1.0}, {-0.3125, 0.6875}},
	"threshold":  {{0.125, 20.0}},
	"softplus":   {{1.0, 20.0}, {2.5, 20.0}},
	"pow":        {{}, {2.0}, {3.0}, {4.0}, {0.5}, {-0.5}, {-1.0}, {-2.0}, {0.3125}},
	"gelu":       {{}, {op.Kw("approximate", "tanh")}},
	"logit":      {{}, {0.0625}},
	"add":        {{}, {op.Kw("alpha", 2)}},
	"sub":        {{}, {op.Kw("alpha", -1)}},
	"rsub":       {{}, {op.Kw("alpha", -4)}},
}

// forms returns the calls of an operator that are measured.
func forms(def *op.Def) []form {
	lists, ok := attributes[def.ID()]
	if !ok {
		lists = [][]any{nil}
	}
	var fs []form
	for _, args := range lists {
		f := form{name: def.ID(), args: args}
		for _, a := range args {
			if kw, ok := a.(op.Kwarg); ok {
				a = kw.Value
			}
			f.name += fmt.Sprintf(",%v", a)
		}
		fs = append(fs, f)
	}
	return fs
}

// tensors is how many of the leading parameters of an operator are given as
// tensors beside the arguments args.
func tensors(def *op.Def, args []any) int {
	n := 0
	for _, p := range def.Sigs()[0].Params {
		if p.Type.Kind == op.KTensor {
			n++
		}
	}
	for _, a := range args {
		if _, ok := a.(op.Kwarg); !ok && n > 1 {
			n--
		}
	}
	return n
}

// breach is a region where kernels do not keep their limits, with the reason.
type breach struct {
	forms  string
	dtypes []tensor.DType
	where  func(x []float64) bool
	reason string
}

var all = []tensor.DType{tensor.F16, tensor.BF16, tensor.F32, tensor.F64}

var breaches = []breach{
	{"pow,0.5 pow,-0.5", all, func(x []float64) bool { return math.IsInf(x[0], -1) || x[0] == 0 },
		"PyTorch takes √x and 1/√x for these powers, at -Inf and -0 too"},
	{"pow,-2", all, func(x []float64) bool { return math.Abs(x[0]) > 0x1p63 },
		"PyTorch takes 1/(x·x), whose denominator overflows where the result is subnormal"},
	{"add,2 rsub,-4", all[:1], vast(13), roundedProduct},
	{"add,2 rsub,-4", all[1:2], vast(125), roundedProduct},
	{"ldexp", all[:2], func(x []float64) bool { return math.Abs(x[1]) > 13 || x[1] != math.Trunc(x[1]) }, roundedPower},
	{"ldexp", all[2:3], func(x []float64) bool { return math.Abs(x[1]) > 125 }, roundedPower},
	{"ldexp", all[3:], func(x []float64) bool { return math.Abs(x[1]) > 1021 }, roundedPower},
}

const (
	roundedProduct = "PyTorch rounds the product with alpha to the dtype, where it overflows"
	roundedPower   = "PyTorch rounds the power of two to the dtype"
)

// vast holds where an argument is above 2^exponent.
func vast(exponent int) func(x []float64) bool {
	return func(x []float64) bool { return max(math.Abs(x[0]), math.Abs(x[1])) >= math.Ldexp(1, exponent) }
}

// covers reports whether the breach is about a form in a dtype at x.
func (b breach) covers(name string, d tensor.DType, x []float64) bool {
	first, _, _ := strings.Cut(name, ",")
	named := slices.Contains(strings.Fields(b.forms), name) || slices.Contains(strings.Fields(b.forms), first)
	return named && slices.Contains(b.dtypes, d) && b.where(x)
}

// TestKernelsKeepTheirLimits measures the kernels of every operator whose
// literal has an Exact, in units in the last place, and holds them to the limit
// that the literal declares. The 16-bit dtypes round the result of float32 once
// more, so that their limit is 1.
func TestKernelsKeepTheirLimits(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	measured := 0
	breached := make([]bool, len(breaches))
	for _, def := range ops.Table().Defs() {
		if def.Exact == nil {
			continue
		}
		for _, d := range all {
			for _, form := range forms(def) {
				measured++
				t.Run(form.name+"/"+d.String(), func(t *testing.T) { keepsLimit(t, def, form, d, breached) })
			}
		}
	}
	if measured < 320 {
		t.Errorf("%d forms of operators measured", measured)
	}
	for i, b := range breaches {
		if *full && !breached[i] {
			t.Errorf("%s: the kernels keep their limits now; remove the breach %q", b.forms, b.reason)
		}
	}
}

func keepsLimit(t *testing.T, def *op.Def, form form, d tensor.DType, breached []bool) {
	limit := declared(def, d)
	w, outside := measure(t, def, form, d, limit, breached)
	t.Logf("ulp %s %s %.3f %x limit %v", form.name, d, w.ulp, w.args, limit)
	for _, o := range outside {
		t.Logf("breach %s %s %.6g %x exact %x", form.name, d, o.ulp, o.args, o.exact)
	}
	if w.ulp > limit {
		t.Errorf("%s in %s is %.6g ULP off at %x, where %x is exact; its limit is %v", form.name, d, w.ulp, w.args, w.exact, limit)
	}
}

func declared(def *op.Def, d tensor.DType) float64 {
	switch {
	case def.Tol.Class == op.Exact:
		return 0
	case def.Tol.Class == op.Accumulating:
		return math.Inf(1)
	case d == tensor.F16 || d == tensor.BF16:
		return 1
	}
	return def.Tol.ULP
}

type worst struct {
	ulp   float64
	args  []float64
	exact float64
}

// measure runs the kernel on points and returns the largest distance, and
// apart from it those beyond the limit in known breaches.
func measure(t *testing.T, def *op.Def, form form, d tensor.DType, limit float64, breached []bool) (worst, []worst) {
	xs := make([]*tensor.Tensor, tensors(def, form.args))
	var args []any
	for i, values := range points(d, len(xs)) {
		shape := []int{len(values)}
		if i == 0 {
			shape = []int{1, len(values)} // one row of channels, for the slopes of prelu
		}
		xs[i] = tensor.Float64s(d, shape, values...)
		args = append(args, xs[i])
	}
	f, out := truthAndValue(t, def, append(args, form.args...))
	w, known := worst{ulp: -1}, make([]worst, len(breaches))
	x := make([]float64, len(xs))
	for i := range out.Len() {
		for k := range xs {
			x[k] = xs[k].Float(i)
		}
		u := f.ULP(out.DType(), out.Float(i), x...)
		into := &w
		if b := slices.IndexFunc(breaches, func(b breach) bool { return b.covers(form.name, d, x) }); b >= 0 && u > limit {
			into, breached[b] = &known[b], true
		}
		if u > into.ulp {
			*into = worst{u, slices.Clone(x), f.Round(out.DType(), x...)}
		}
	}
	return w, slices.DeleteFunc(known, func(w worst) bool { return w.ulp == 0 })
}

func truthAndValue(t *testing.T, def *op.Def, args []any) (truth.Func, *tensor.Tensor) {
	pos, kws := split(args)
	call, err := ops.Table().ResolveID(def.ID(), pos, kws)
	if err != nil {
		t.Fatal(err)
	}
	out, err := call.Execute()
	if err != nil {
		t.Fatal(err)
	}
	return def.Exact(call.Args).(truth.Func), out[0]
}

// edges are points where something happens, as far as the dtype has them.
var edges = []float64{
	0, 1, -1, 0.5, -0.5, 2, -2, 3, 10, 1.0000001, 0.9999999, 0.25, 0.75, math.Pi, math.Pi / 2, math.E, math.Ln2,
	math.Inf(1), math.Inf(-1), math.NaN(), math.Copysign(0, -1),
	0x1p-149, 0x1p-126, 0x1.fffffep-127, 0x1p-24, 0x1p-14, 0x1p-133, 0x1p-1074, 0x1p-1022, 5e-310,
	65504, 65519, 0x1.fep127, 0x1.fffffep127, math.MaxFloat64,
	88.72283, 88.72284, -87.33655, -103.9721, -103.2789, 709.782712893384, -745.1332191019411, 11.0898, -17.3287, 9.01, -9.01, 19.06, 5.92, -5.5, -13.5, 3.92,
}

// points returns as many lists of numbers of the dtype: for one argument of 16
// bits all of them; else every exponent with random mantissas, numbers of
// moderate size, and the edges, which are paired with each other.
func points(d tensor.DType, arity int) [][]float64 {
	if d.Size() == 2 && arity == 1 {
		return [][]float64{all16(d)}
	}
	n := 2000
	switch {
	case *full:
		n = 24000
	case testing.Short():
		n = 500
	}
	rng := choice.NewPhilox(11)
	lists := make([][]float64, arity)
	for k := range lists {
		for i := range n {
			u, v := rng.Pair(uint64(i*arity + k))
			lists[k] = append(lists[k], point(d, k, i, u, v))
		}
		for i := range len(edges) * len(edges) {
			if arity == 1 && i >= len(edges) {
				break
			}
			lists[k] = append(lists[k], edges[[]int{i, i / len(edges), 31 * i}[k]%len(edges)])
		}
	}
	return lists
}

// point draws the i-th number of argument k.
func point(d tensor.DType, k, i int, u, v uint64) float64 {
	m := 1 + float64(u>>12)*0x1p-52
	if v&2 == 0 {
		m = -m
	}
	if i%4 == 0 {
		return m * 8 * float64(v>>11) * 0x1p-53
	}
	low, high := -149, 128
	switch d {
	case tensor.F64:
		low, high = -1074, 1024
	case tensor.F16:
		low, high = -24, 16
	}
	e := low + i%(high-low)
	switch {
	case k > 0 && i%4 == 1:
		e += int(v>>2&63) - 32
	case k > 0:
		e = low + int(v>>2)%(high-low)
	}
	return math.Ldexp(m, e)
}

func all16(d tensor.DType) []float64 {
	var xs []float64
	step := 16
	if *full {
		step = 1
	}
	for i := 0; i < 1<<16; i += step {
		x := tensor.Float16(i).Float32()
		if d == tensor.BF16 {
			x = tensor.BFloat16(i).Float32()
		}
		xs = append(xs, float64(x))
	}
	return xs
}

// withoutTruth are pointwise operators that are no functions of real elements
// at the same place in each tensor.
var withoutTruth = map[string]string{
	"polar":           "its result is complex",
	"mse_loss.square": "a step of mse_loss", "_foreach_mul.list": "it takes lists of tensors",
}

// TestPointwiseOperatorsHaveATruth: an operator with a limit in units in the
// last place, all of whose parameters are tensors, has an Exact or says why not.
func TestPointwiseOperatorsHaveATruth(t *testing.T) {
	for _, def := range ops.Table().Defs() {
		switch params := def.Sigs()[0].Params; {
		case def.Exact != nil && def.NoExact != "":
			t.Errorf("%s has an Exact and says why it has none", def.ID())
		case def.Tol.Class == op.Pointwise && tensors(def, nil) == len(params) && def.ScalarFunction() != (withoutTruth[def.ID()] == ""):
			t.Errorf("%s: scalar function %v, withoutTruth %q", def.ID(), def.ScalarFunction(), withoutTruth[def.ID()])
		}
	}
}
