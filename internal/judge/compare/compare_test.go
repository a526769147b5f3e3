package compare

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plumb/op"
	"plumb/tensor"
)

var nan = math.NaN()

func f32(values ...float64) *tensor.Tensor {
	return tensor.Float64s(tensor.F32, []int{len(values)}, values...)
}

// TestRules states, for each rule, what breaks it and what does not.
func TestRules(t *testing.T) {
	var none *tensor.Tensor
	inf := math.Inf(1)
	zero := math.Copysign(0, -1)
	c := func(v ...complex128) *tensor.Tensor { return tensor.Of(tensor.C128, []int{len(v)}, v) }
	square := tensor.New(tensor.F32, 2, 2)
	tests := []struct {
		name      string
		want, got *tensor.Tensor
		limit     Limit
		options   Options
		rule      Rule
		message   string // a part of it
		first     []int
	}{
		{name: "no tensors", want: none, got: none},
		{name: "want none", want: none, got: f32(1), rule: Structure, message: "got a tensor float32[1], want none"},
		{name: "got none", want: f32(1), got: none, rule: Structure, message: "got no tensor, want float32[1]"},
		{name: "dtype before shape", want: f32(1, 2), got: tensor.New(tensor.F64, 1), rule: DType, message: "got dtype float64, want float32"},
		{name: "no broadcasting", want: tensor.New(tensor.F32, 3), got: tensor.New(tensor.F32, 1, 3), rule: Shape, message: "got shape [1, 3], want [3]"},
		{name: "no broadcasting of one element", want: tensor.New(tensor.F32), got: tensor.New(tensor.F32, 1), rule: Shape, message: "got shape [1], want []"},
		{name: "empty shapes differ", want: tensor.New(tensor.F32, 0, 2), got: tensor.New(tensor.F32, 0, 3), rule: Shape, message: "[0, 3]"},
		{name: "empty", want: tensor.New(tensor.F32, 0, 2), got: tensor.New(tensor.F32, 0, 2)},
		{name: "layout not asked", want: square, got: square.Transpose(0, 1)},
		{name: "layout", want: square, got: square.Transpose(0, 1), options: Options{Layout: true}, rule: Layout, message: "got strides [1, 2], want [2, 1]"},
		{name: "layout of one row", want: tensor.New(tensor.F32, 1, 3), got: tensor.NewStrided(tensor.F32, []int{1, 3}, []int{7, 1}), options: Options{Layout: true}},
		{name: "NaN for NaN", want: f32(nan, 1), got: f32(nan, 1)},
		{name: "NaN differs", want: f32(1, nan), got: f32(1, nan), options: Options{NaNDiffers: true}, rule: NonFinite, first: []int{1}},
		{name: "NaN for 0", want: f32(1, 0), got: f32(1, nan), rule: NonFinite, message: "1 of 2 elements differ; at [1] got nan, want 0", first: []int{1}},
		{name: "0 for NaN", want: f32(1, nan), got: f32(1, 0), rule: NonFinite, first: []int{1}},
		{name: "infinities", want: f32(inf, -inf, 1), got: f32(inf, -inf, 1.0000001)},
		{name: "infinity of the other sign", want: f32(inf), got: f32(-inf), limit: Limit{RTol: 9, ATol: 9}, rule: NonFinite, first: []int{0}},
		{name: "infinity for the largest number", want: f32(inf), got: f32(math.MaxFloat32), limit: Limit{RTol: 9, ATol: 9, ULP: 9}, rule: NonFinite, first: []int{0}},
		{name: "nonfinite before distance", want: f32(1, 2, nan), got: f32(5, 2, 2), rule: NonFinite, first: []int{2}, message: "2 of 3"},
		{name: "zeros", want: f32(0), got: f32(zero), limit: Exactly("")},
		{name: "zeros with signs", want: f32(1, 0), got: f32(1, zero), options: Options{SignedZero: true}, rule: NonFinite, first: []int{1}},
		{name: "zeros with signs, same", want: f32(1, zero), got: f32(1.0000001, zero), options: Options{SignedZero: true}},
		{name: "complex infinity in one component", want: c(complex(inf, 1)), got: c(complex(inf, 1)).Clone()},
		{name: "complex infinity, other component off", want: c(complex(inf, 1)), got: c(complex(inf, 2)), rule: Distance, first: []int{0}},
		{name: "complex NaN in the wrong component", want: c(1, complex(nan, 1)), got: c(1, complex(1, nan)), rule: NonFinite, first: []int{1}},
		{name: "complex by modulus", want: c(3 + 4i), got: c(3 + 4i + 0.5i), limit: Limit{RTol: 0.1}},
		{name: "complex beyond modulus", want: c(3 + 4i), got: c(3 + 4i + 0.4 + 0.4i), limit: Limit{RTol: 0.1}, rule: Distance, first: []int{0}},
		{name: "far", want: f32(1, 2, 4, 8), got: f32(1, 3, 4, 80), rule: Distance, first: []int{1}, message: "2 of 4 elements differ; worst at [3]: got 80, want 8, error 72 is"},
		{name: "NaN tolerance", want: f32(1), got: f32(1.5), limit: Limit{ATol: Number(nan), RTol: Number(nan), ULP: Number(nan)}, rule: Distance, first: []int{0}},
		{name: "negative tolerance", want: f32(1), got: f32(1.5), limit: Limit{ATol: 1, RTol: -1}},
		{name: "overflowing difference", want: tensor.Float64s(tensor.F64, []int{1}, math.MaxFloat64), got: tensor.Float64s(tensor.F64, []int{1}, -math.MaxFloat64), limit: Limit{ATol: 1, RTol: 1}, rule: Distance, first: []int{0}},
		{name: "int64 beyond 2^53", want: tensor.Of(tensor.I64, []int{1}, []int64{1<<53 + 1}), got: tensor.Of(tensor.I64, []int{1}, []int64{1 << 53}), limit: Exactly(""), rule: Distance, first: []int{0}, message: "got 9007199254740992, want 9007199254740993, error 1"},
		{name: "int64 extremes", want: tensor.Of(tensor.I64, []int{1}, []int64{math.MinInt64}), got: tensor.Of(tensor.I64, []int{1}, []int64{math.MaxInt64}), limit: Exactly(""), rule: Distance, first: []int{0}, message: "error 1.84e+19"},
		{name: "bool", want: tensor.Of(tensor.Bool, []int{2}, []bool{true, false}), got: tensor.Of(tensor.Bool, []int{2}, []bool{true, true}), limit: Exactly(""), rule: Distance, first: []int{1}, message: "got true, want false"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.limit == (Limit{}) {
				tt.limit = Default(tensor.F32)
			}
			d := Tensors(tt.want, tt.got, tt.limit, tt.options)
			if d.Rule != tt.rule || d.OK != (tt.rule == "") || !strings.Contains(d.Message, tt.message) {
				t.Errorf("rule %q, ok %v, message %q; want rule %q and %q", d.Rule, d.OK, d.Message, tt.rule, tt.message)
			}
			if !slices.Equal(d.First, tt.first) {
				t.Errorf("first mismatch at %v, want %v", d.First, tt.first)
			}
			if d.OK != (d.WorstRatio <= 1) {
				t.Errorf("ok is %v with ratio %v", d.OK, d.WorstRatio)
			}
		})
	}
}

// TestULP states distances that formulas by exponent get wrong.
func TestULP(t *testing.T) {
	one32 := math.Nextafter32(1, 0)
	tests := []struct {
		name  string
		dtype tensor.DType
		a, b  float64
		ulp   Number
	}{
		{"below a power of two", tensor.F32, 1, float64(one32), 1},
		{"above a power of two", tensor.F32, 1, float64(math.Nextafter32(1, 2)), 1},
		{"across a power of two", tensor.F32, float64(one32), float64(math.Nextafter32(1, 2)), 2},
		{"zeros", tensor.F32, 0, math.Copysign(0, -1), 0},
		{"smallest subnormals", tensor.F32, math.SmallestNonzeroFloat32, -math.SmallestNonzeroFloat32, 2},
		{"subnormal to normal", tensor.F32, 0x1p-126, 0x1p-126 - 0x1p-149, 1},
		{"zero to smallest normal", tensor.F32, 0, 0x1p-126, 1 << 23},
		{"float64 subnormal", tensor.F64, 0, math.SmallestNonzeroFloat64, 1},
		{"float64 below one", tensor.F64, 1, math.Nextafter(1, 0), 1},
		{"float64 extremes", tensor.F64, math.MaxFloat64, -math.MaxFloat64, 2 * 0x7fefffffffffffff},
		{"float16 grid", tensor.F16, 1, 1 + 0x1p-10, 1},
		{"float16 subnormal", tensor.F16, 0x1p-24, 0x1p-23, 1},
		{"float16 below one", tensor.F16, 1, 1 - 0x1p-11, 1},
		{"bfloat16 grid", tensor.BF16, 1, 1 + 0x1p-7, 1},
		{"bfloat16 signs", tensor.BF16, 0x1p-133, -0x1p-133, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a, b := tensor.Float64s(tt.dtype, []int{1}, tt.a), tensor.Float64s(tt.dtype, []int{1}, tt.b)
			for _, d := range []Diff{Tensors(a, b, Default(tt.dtype), Options{}), Tensors(b, a, Exactly(""), Options{})} {
				if d.MaxULP != tt.ulp {
					t.Errorf("%v and %v are %v ULP apart, want %v", tt.a, tt.b, float64(d.MaxULP), tt.ulp)
				}
			}
			if tt.ulp == 0 {
				return
			}
			for _, limit := range []Number{tt.ulp, tt.ulp * 0.9} {
				d := Tensors(a, b, Limit{ULP: limit}, Options{})
				if d.OK != (limit >= tt.ulp) {
					t.Errorf("ok is %v with a limit of %v ULP for a distance of %v", d.OK, limit, tt.ulp)
				}
			}
		})
	}
}

// TestStatistics compares every measured figure with values computed by hand.
func TestStatistics(t *testing.T) {
	want := tensor.Float64s(tensor.F64, []int{2, 3}, 1, -2, 4, 0, 8, nan)
	got := tensor.Float64s(tensor.F64, []int{2, 3}, 1, -2.5, 4.25, 1, 6, nan)
	d := Tensors(want, got, Limit{RTol: 0.25, ATol: 0.125}, Options{})
	exp := Diff{
		Rule: Distance, Total: 6, Mismatches: 1, First: []int{1, 0}, Worst: []int{1, 0}, Want: "0", Got: "1",
		WorstRatio: 8, MaxAbs: 2, MaxRel: 0.25, MaxULP: d.MaxULP,
		MeanAbs: Number((0.5 + 0.25 + 1 + 2) / 5), MeanRel: (0.25 + 0.0625 + 0.25) / 4, RMSE: Number(math.Sqrt((0.25 + 0.0625 + 1 + 4) / 5)),
		Bias:    0, // two errors above zero, two below
		Cosine:  Number((1 + 5 + 17 + 48) / math.Sqrt((1+4+16+64)*(1+6.25+18.0625+1+36))),
		Hist:    Hist{0: 2, 5: 3, 6: 1},
		Message: "1 of 6 elements differ; worst at [1, 0]: got 1, want 0, error 1 is 8 x the limit",
	}
	if diff := cmp.Diff(exp, d); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// TestBiasIgnoresZeros: -0 for 0 is no error below.
func TestBiasIgnoresZeros(t *testing.T) {
	for _, l := range []Limit{Default(tensor.F32), Exactly("")} {
		if d := Tensors(f32(0, 1), f32(math.Copysign(0, -1), 1.5), l, Options{}); d.Bias != 1 {
			t.Errorf("one error, above 0: bias %v", d.Bias)
		}
	}
}

func TestHistogramEdges(t *testing.T) {
	for i, edge := range Decades {
		if got := bin(edge); got != i {
			t.Errorf("bin(%v) = %d, want %d", edge, got, i)
		}
		if got := bin(math.Nextafter(edge, 2*edge+1)); got != i+1 {
			t.Errorf("bin just above %v is %d, want %d", edge, got, i+1)
		}
	}
	if got := bin(math.Inf(1)); got != len(Decades) {
		t.Errorf("bin(Inf) = %d", got)
	}
}

func bound(e float64) *Bound {
	b := &Bound{Value: tensor.New(tensor.F64, 1), Terms: tensor.Float64s(tensor.F64, []int{1}, 1), Count: 7}
	if e > 0 {
		b.Error = tensor.Float64s(tensor.F64, []int{1}, e)
	}
	return b
}

// TestBoundedJudge: the limit is that of each element, 2·u·E.
func TestBoundedJudge(t *testing.T) {
	b := &Bound{Value: tensor.Float64s(tensor.F64, []int{3}, 1, 1, 0), Error: tensor.Float64s(tensor.F64, []int{3}, 2, 2000, 0)}
	limit := LimitFor(Basis{DType: tensor.F32, Bound: b})
	want := tensor.Float64s(tensor.F32, []int{3}, 1, 1, 0)
	for _, c := range []struct {
		got   []float64
		ok    bool
		first int
	}{
		{[]float64{1, 1, 0}, true, 0},
		{[]float64{1 + 0x1p-22, 1, 0}, true, 0},
		{[]float64{1 + 0x1p-21, 1, 0}, false, 0},
		{[]float64{1, 1 + 0x1p-13, 0}, true, 0},
		{[]float64{1, 1 + 0x1p-11, 0}, false, 1},
		{[]float64{1, 1, 1e-30}, false, 2},
		{[]float64{1, math.NaN(), 0}, false, 1},
	} {
		d := Judge(want, tensor.Float64s(tensor.F32, []int{3}, c.got...), limit, Options{})
		if d.OK != c.ok || !c.ok && (len(d.First) != 1 || d.First[0] != c.first) {
			t.Errorf("%v: %+v", c.got, d)
		}
	}
	if b.Holds(tensor.Float64s(tensor.F32, []int{3}, 1, 1, 0.5)) {
		t.Error("a value far from the exact one fits the bound")
	}
	if !b.Holds(want) {
		t.Error("the exact values do not fit the bound")
	}
}

// TestSpacing compares with the neighbours on the grid.
func TestSpacing(t *testing.T) {
	for _, v := range []float32{1, 1.5, 2, 3e-39, 1e-45, 0x1p-126, 3.4e38, 1 - 0x1p-24} {
		next := float64(math.Nextafter32(v, math.MaxFloat32)) - float64(v)
		if got := Spacing(float64(v), tensor.F32); got != next {
			t.Errorf("spacing at %v is %v, want %v", v, got, next)
		}
	}
	if Spacing(1, tensor.BF16) != 0x1p-7 || Spacing(1, tensor.F16) != 0x1p-10 || Spacing(1, tensor.F64) != 0x1p-52 {
		t.Error("spacing at 1")
	}
}

func TestLimitFor(t *testing.T) {
	exact := op.Tol{Class: op.Exact, Reason: "copies"}
	point := op.Tol{Class: op.Pointwise, ULP: 3, Reason: "exp"}
	sum := op.Tol{Class: op.Accumulating, Reason: "sums"}
	v := func(x float64) *float64 { return &x }
	tests := []struct {
		name       string
		basis      Basis
		class      op.Class
		rtol, atol Number
		reason     string
	}{
		{"integers", Basis{DType: tensor.I64, Tols: []op.Tol{sum}, RTol: v(1)}, op.Exact, 0, 0, "int64 compares exactly"},
		{"bool", Basis{DType: tensor.Bool}, op.Exact, 0, 0, "bool compares exactly"},
		{"unknown operator", Basis{DType: tensor.F32, Same: true}, "", 1.3e-6, 1e-5, "assert_close"},
		{"exact", Basis{DType: tensor.F32, Tols: []op.Tol{exact}, Same: true}, op.Exact, 0, 0, "copies"},
		{"exact on other inputs", Basis{DType: tensor.F32, Tols: []op.Tol{exact}}, op.Exact, 1.3e-6, 1e-5, "inputs differ"},
		{"the loosest overload", Basis{DType: tensor.F64, Tols: []op.Tol{exact, sum, point}, Same: true}, op.Accumulating, 1e-7, 1e-7, "float64"},
		{"pointwise", Basis{DType: tensor.F32, Tols: []op.Tol{point}, Same: true}, op.Pointwise, 0, 0, "exp"},
		{"a random operator where it draws nothing", Basis{DType: tensor.F32, Tols: []op.Tol{{Class: op.Statistical, ULP: 5, Reason: "mean slope"}}, Same: true}, op.Pointwise, 0, 0, "mean slope"},
		{"a random operator that copies there", Basis{DType: tensor.F32, Tols: []op.Tol{{Class: op.Statistical, Reason: "dropped"}}, Same: true}, op.Exact, 0, 0, "dropped"},
		{"complex, with a wider truth", Basis{DType: tensor.C64, Tols: []op.Tol{point}, Same: true}, op.Pointwise, 6 * 0x1p-24, 0, "of the modulus"},
		{"complex, without one", Basis{DType: tensor.C128, Tols: []op.Tol{point}, Same: true}, op.Pointwise, 12 * 0x1p-53, 0, "on either side"},
		{"pointwise on other inputs", Basis{DType: tensor.F16, Tols: []op.Tol{point}}, op.Pointwise, 1e-3, 1e-5, "float16"},
		{"bounded", Basis{DType: tensor.F32, Tols: []op.Tol{sum}, Bound: bound(3)}, op.Accumulating, 0, 0, "roundings"},
		{"bounded integers", Basis{DType: tensor.F32, Tols: []op.Tol{sum}, Bound: bound(0)}, op.Exact, 0, 0, "every term is an integer"},
		{"a sum of products of the pointwise class", Basis{DType: tensor.F32, Tols: []op.Tol{point}, Same: true, Bound: bound(3)}, op.Accumulating, 0, 0, "roundings"},
		{"pointwise with a bound", Basis{DType: tensor.F32, Tols: []op.Tol{point}, Same: true, Bound: &Bound{Error: tensor.New(tensor.F64, 1)}}, op.Pointwise, 0, 0, "exp"},
		{"explicit before bounded", Basis{DType: tensor.F32, Bound: bound(5), RTol: v(1), ATol: v(1)}, Explicit, 1, 1, "given"},
		{"from float32", Basis{DType: tensor.F64, From: tensor.F32}, "", 1.3e-6, 1e-5, "float32"},
		{"from float64", Basis{DType: tensor.F32, From: tensor.F64}, "", 1.3e-6, 1e-5, "float32"},
		{"from integers", Basis{DType: tensor.F64, From: tensor.I64}, "", 1e-7, 1e-7, "float64"},
		{"bfloat16", Basis{DType: tensor.BF16}, "", 1.6e-2, 1e-5, "bfloat16"},
		{"explicit", Basis{DType: tensor.F32, Tols: []op.Tol{exact}, Same: true, RTol: v(0.5), ATol: v(0)}, Explicit, 0.5, 0, "given explicitly"},
		{"explicit rtol", Basis{DType: tensor.C64, RTol: v(0.5)}, Explicit, 0.5, 1e-5, "rtol given explicitly, atol torch"},
		{"explicit atol", Basis{DType: tensor.C128, ATol: v(0.5)}, Explicit, 1e-7, 0.5, "atol given explicitly, rtol torch"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := LimitFor(tt.basis)
			if l.Class != tt.class || l.RTol != tt.rtol || l.ATol != tt.atol || !strings.Contains(l.Reason, tt.reason) {
				t.Errorf("got %+v", l)
			}
		})
	}
}

// TestDocumentedDefaults looks the default tolerances up in docs/numerics.md.
func TestDocumentedDefaults(t *testing.T) {
	page, err := os.ReadFile("../../../docs/numerics.md")
	if err != nil {
		t.Fatal(err)
	}
	for d, tolerance := range defaults {
		row := regexp.MustCompile(`(?m)^\|.*\b` + d.String() + `\b.*\| (\S+) \| (\S+) \|$`).FindStringSubmatch(string(page))
		if row == nil {
			t.Errorf("no row for %s", d)
			continue
		}
		for i, text := range row[1:] {
			if v, err := strconv.ParseFloat(text, 64); err != nil || Number(v) != tolerance[i] {
				t.Errorf("%s: the page says %s, the code %s", d, text, short(tolerance[i]))
			}
		}
	}
}

func TestNumberJSON(t *testing.T) {
	for _, n := range []Number{0, 1.5, -1e-300, Number(nan), inf, -inf} {
		b, err := json.Marshal(n)
		if err != nil {
			t.Fatal(err)
		}
		var m Number
		if err := json.Unmarshal(b, &m); err != nil || m != n && !(n != n && m != m) {
			t.Errorf("%v became %s and then %v (%v)", n, b, m, err)
		}
	}
	var n Number
	if err := json.Unmarshal([]byte(`"one"`), &n); err == nil {
		t.Error(`"one" was read as a number`)
	}
}

func TestElement(t *testing.T) {
	tests := []struct {
		t    *tensor.Tensor
		text string
	}{
		{f32(0.1), "0.1"},
		{tensor.Float64s(tensor.F64, []int{1}, 0.1), "0.1"},
		{tensor.Float64s(tensor.F16, []int{1}, 0.1), "0.099976"},
		{tensor.Float64s(tensor.BF16, []int{1}, 3), "3"},
		{tensor.Of(tensor.C64, []int{1}, []complex64{1 - 2i}), "1-2j"},
		{tensor.Of(tensor.C128, []int{1}, []complex128{complex(nan, math.Inf(1))}), "nan+infj"},
		{tensor.Of(tensor.I64, []int{1}, []int64{math.MaxInt64}), "9223372036854775807"},
		{tensor.Of(tensor.Bool, []int{1}, []bool{true}), "true"},
		{f32(math.Inf(-1)), "-inf"},
	}
	for _, tt := range tests {
		if got := Element(tt.t, 0); got != tt.text {
			t.Errorf("%s prints %q, want %q", tt.t, got, tt.text)
		}
	}
}

// TestLeastLimit widens the limit to what LeastLimit says: it must then pass.
func TestLeastLimit(t *testing.T) {
	draws(t, func(t *testing.T, r *rng, a, b *tensor.Tensor) {
		l := r.limit(a.DType())
		d := Tensors(a, b, l, Options{})
		text := d.LeastLimit(l)
		if (text != "") != (d.Rule == Distance) {
			t.Errorf("rule %q gives %q", d.Rule, text)
		}
		for _, way := range strings.Split(text, ", or ") {
			var rtol, atol float64
			var ulp uint64
			var wide Limit
			switch {
			case scan(way, "rtol=%g and atol=%g and %d ULP", &rtol, &atol, &ulp):
				wide = Limit{RTol: Number(rtol), ATol: Number(atol), ULP: Number(ulp)}
			case scan(way, "rtol=%g and atol=%g", &rtol, &atol), scan(way, "atol=%g alone", &atol):
				wide = Limit{RTol: Number(rtol), ATol: Number(atol)}
			case scan(way, "%d ULP alone", &ulp):
				wide = Limit{ULP: Number(ulp)}
			case text != "":
				t.Errorf("cannot read %q", way)
			}
			if d := Tensors(a, b, wide, Options{}); text != "" && !d.OK && !math.IsInf(atol, 1) && d.MaxAbs < inf {
				t.Errorf("%q does not pass: %s", way, d.Message)
			}
		}
	})
}

func scan(s, format string, args ...any) bool {
	n, err := fmt.Sscanf(s, format, args...)
	return err == nil && n == len(args)
}

func TestHeatMap(t *testing.T) {
	want := tensor.New(tensor.F64, 2, 3, 60)
	got := want.Clone()
	for i, v := range []float64{0, 0.05, 1, 5, 50} {
		got.Set(3*60+50+i, complex(v, 0))
	}
	lines := HeatMap(want, got, []int{1, 0, 53}, Limit{ATol: 1}, Options{})
	plain := strings.Repeat("·", 48)
	if len(lines) != 3 || lines[0] != strings.Repeat("·", 39)+"-+#X"+strings.Repeat("·", 5) || lines[1] != plain {
		t.Errorf("%q", lines)
	}
	if m := HeatMap(want.Select(1, 0), got.Select(1, 0), []int{1, 53}, Limit{}, Options{}); len(m) != 2 {
		t.Errorf("two rows: %q", m)
	}
	if m := HeatMap(tensor.New(tensor.F64, 5), tensor.New(tensor.F64, 5), []int{1}, Limit{}, Options{}); m != nil {
		t.Errorf("a vector has a map: %q", m)
	}
}

func TestAround(t *testing.T) {
	want := tensor.Float64s(tensor.F64, []int{2, 3}, 1, 2, 3, 4, 5, 6)
	got := tensor.Float64s(tensor.F64, []int{2, 3}, 1, 2, 3, 4, 5.5, 6)
	list := Around(want, got.Transpose(0, 1).Clone().Transpose(0, 1), []int{1, 1}, 1, Limit{ATol: 0.25}, Options{})
	exp := []Sample{
		{Index: []int{1, 0}, Want: "4", Got: "4"},
		{Index: []int{1, 1}, Want: "5", Got: "5.5", Ratio: 2},
		{Index: []int{1, 2}, Want: "6", Got: "6"},
	}
	if diff := cmp.Diff(exp, list); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	scalar := Around(tensor.Scalar(tensor.I64, 1), tensor.Scalar(tensor.I64, 2), []int{}, 3, Exactly(""), Options{})
	if len(scalar) != 1 || scalar[0].Got != "2" || scalar[0].Ratio != inf {
		t.Errorf("around a 0-d tensor: %+v", scalar)
	}
}
