package truth_test

import (
	"flag"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"plumb/internal/draw/choice"
	"plumb/internal/judge/truth"
	"plumb/op"
	"plumb/ops"
	"plumb/tensor"
)

var full = flag.Bool("full", false, "measure kernels at every number of 16 bits and at ten times as many others")

// form is one way to call an operator: its name with the arguments that follow
// the tensors, and the function that it is then.
type form struct {
	name string
	args []any
	f    truth.Func
}

// attributes are the numbers after the tensors with which operators are
// measured. All but slopes are numbers of every dtype, since some
// kernels round them to the tensor's and some to that of the lane.
var attributes = map[string][][]float64{
	"leaky_relu": {{0.01}, {-0.75}, {3.1}},
	"elu":        {{1}, {0.3125}},
	"celu":       {{1}, {0.3125}},
	"hardshrink": {{0.5}},
	"softshrink": {{0.5}, {0.3125}},
	"hardtanh":   {{-1, 1}, {-0.3125, 0.6875}},
	"threshold":  {{0.125, 20}},
	"softplus":   {{1, 20}, {2.5, 20}},
	"pow":        {{}, {2}, {3}, {4}, {0.5}, {-0.5}, {-1}, {-2}, {0.3125}},
}

// forms returns the calls of an operator that have an exact function. Kernels
// compute with attributes in their lane dtype.
func forms(id string, d tensor.DType) []form {
	f, ok := truth.Lookup(id)
	if !ok || id == "prelu" { // its slopes are one per channel; leaky_relu has the same loop
		return nil
	}
	var fs []form
	for _, numbers := range attributes[id] {
		fs = append(fs, withNumbers(id, f, numbers, d))
	}
	switch {
	case id == "gelu":
		approximation, _ := truth.Lookup("gelu:tanh")
		return []form{{id, nil, f}, {"gelu:tanh", []any{op.Kw("approximate", "tanh")}, approximation}}
	case fs == nil:
		return []form{{id, nil, f}}
	}
	return fs
}

func withNumbers(id string, f truth.Func, numbers []float64, d tensor.DType) form {
	x := form{name: id}
	var rounded []float64
	for _, n := range numbers {
		x.name += fmt.Sprintf(",%g", n)
		x.args = append(x.args, n)
		rounded = append(rounded, tensor.Scalar(lane(d), complex(n, 0)).Float(0))
	}
	x.f = f.With(rounded...)
	return x
}

// lane is the dtype in which kernels compute d.
func lane(d tensor.DType) tensor.DType {
	if d == tensor.F64 {
		return d
	}
	return tensor.F32
}

// breach is a region where kernels do not keep their limits, with the reason.
type breach struct {
	forms  string
	dtypes []tensor.DType
	where  func(x float64) bool
	reason string
}

var all = []tensor.DType{tensor.F16, tensor.BF16, tensor.F32, tensor.F64}

var breaches = []breach{
	{"pow,0.5 pow,-0.5", all, func(x float64) bool { return math.IsInf(x, -1) || x == 0 },
		"PyTorch takes √x and 1/√x for these powers, at -Inf and -0 too"},
	{"pow,-2", all, func(x float64) bool { return math.Abs(x) > 0x1p63 },
		"PyTorch takes 1/(x·x), whose denominator overflows where the result is subnormal"},
}

// covers reports whether the breach is about a form in a dtype at x.
func (b breach) covers(name string, d tensor.DType, x float64) bool {
	first, _, _ := strings.Cut(name, ",")
	named := slices.Contains(strings.Fields(b.forms), name) || slices.Contains(strings.Fields(b.forms), first)
	return named && slices.Contains(b.dtypes, d) && b.where(x)
}

// TestKernelsKeepTheirLimits measures the kernels of every pointwise and exact
// operator that has an exact function, in units in the last place, and holds
// them to the limit that the operator's literal declares. The 16-bit dtypes
// round the result of float32 once more, so that their limit is 1.
func TestKernelsKeepTheirLimits(t *testing.T) {
	measured := 0
	breached := make([]bool, len(breaches))
	for _, def := range ops.Table().Defs() {
		for _, d := range all {
			for _, form := range forms(def.ID(), d) {
				measured++
				t.Run(form.name+"/"+d.String(), func(t *testing.T) {
					limit := declared(def, d)
					w, outside := measure(t, def, form, d, limit, breached)
					t.Logf("ulp %s %s %.3f %x limit %v", form.name, d, w.ulp, w.args, limit)
					for _, o := range outside {
						t.Logf("breach %s %s %.6g %x exact %x", form.name, d, o.ulp, o.args, o.exact)
					}
					if w.ulp > limit {
						t.Errorf("%s in %s is %.6g ULP off at %x, where %x is exact; its limit is %v", form.name, d, w.ulp, w.args, w.exact, limit)
					}
				})
			}
		}
	}
	if measured < 60 {
		t.Errorf("%d forms of operators measured", measured)
	}
	for i, b := range breaches {
		if *full && !breached[i] {
			t.Errorf("%s: the kernels keep their limits now; remove the breach %q", b.forms, b.reason)
		}
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
	xs := make([]*tensor.Tensor, form.f.Arity)
	var args []any
	for i, values := range points(d, len(xs)) {
		xs[i] = tensor.Float64s(d, []int{len(values)}, values...)
		args = append(args, xs[i])
	}
	out := execute(t, def, append(args, form.args...))
	w, known := worst{ulp: -1}, make([]worst, len(breaches))
	x := make([]float64, len(xs))
	for i := range out.Len() {
		for k := range xs {
			x[k] = xs[k].Float(i)
		}
		u := form.f.ULP(d, out.Float(i), x...)
		into := &w
		if b := slices.IndexFunc(breaches, func(b breach) bool { return b.covers(form.name, d, x[0]) }); b >= 0 && u > limit {
			into, breached[b] = &known[b], true
		}
		if u > into.ulp {
			*into = worst{u, slices.Clone(x), form.f.Round(d, x...)}
		}
	}
	return w, slices.DeleteFunc(known, func(w worst) bool { return w.ulp == 0 })
}

func execute(t *testing.T, def *op.Def, args []any) *tensor.Tensor {
	pos, kws := split(args)
	call, err := ops.Table().ResolveID(def.ID(), pos, kws)
	if err != nil {
		t.Fatal(err)
	}
	out, err := call.Execute()
	if err != nil {
		t.Fatal(err)
	}
	return out[0]
}

func split(args []any) (pos []any, kws []op.Kwarg) {
	for _, a := range args {
		if kw, ok := a.(op.Kwarg); ok {
			kws = append(kws, kw)
		} else {
			pos = append(pos, a)
		}
	}
	return pos, kws
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
	if *full {
		n = 24000
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
			lists[k] = append(lists[k], edges[[]int{i % len(edges), i / len(edges)}[k]])
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

// inexact are pointwise operators whose function has no ball arithmetic; the
// reference in float64 is their oracle.
var inexact = map[string]string{
	"lgamma": "kernel/special_test.go compares with mpmath", "digamma": "kernel/special_test.go compares with mpmath",
	"zeta": "kernel/special_test.go compares with mpmath", "erfinv": "kernel/special_test.go compares with mpmath",
	"i0": "kernel/special_test.go compares with mpmath", "i0e": "kernel/special_test.go compares with mpmath",
	"i1": "kernel/special_test.go compares with mpmath", "i1e": "kernel/special_test.go compares with mpmath",
	"rsub": "sub with its operands exchanged", "float_power": "pow in float64", "ldexp": "a product and a power of two",
	"entr": "a product and log", "xlog1py": "a product and log1p",
}

// TestEveryPointwiseOperatorIsKnown keeps the table of functions in step with that of operators.
func TestEveryPointwiseOperatorIsKnown(t *testing.T) {
	for _, def := range ops.Table().Defs() {
		if def.Tol.Class == op.Pointwise && def.Exact != nil {
			if _, ok := truth.Lookup(def.ID()); !ok && inexact[def.ID()] == "" {
				t.Errorf("%s has no exact function", def.ID())
			}
		}
	}
}
