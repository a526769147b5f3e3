package rounding

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"plumb/backend"
	"plumb/internal/judge/compare"
	"plumb/nn"
	"plumb/op"
	"plumb/ops"
	"plumb/program"
	"plumb/tensor"
)

// text parses a program without its header.
func text(t *testing.T, lines string) *program.Program {
	t.Helper()
	p, err := program.Parse("p.py", lines)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	return p
}

// TestBounds: the error of a product and of its gradients is known, that of
// exact integers is none, and it goes through functions and exact operators.
func TestBounds(t *testing.T) {
	const inputs = "x = tensor((1, 2), torch.float32, [1.5, -2.0], requires_grad=True)\n" +
		"w = tensor((2, 1), torch.float32, [-3.0, 4.0], requires_grad=True)\ny = torch.matmul(x, w)\n"
	boundsOf := func(calls string) *compare.Bounds {
		return New(ops.Table(), nn.Modules()).Bounds(backend.NewJob(text(t, inputs+calls)), true)
	}
	b := boundsOf("z = torch.sub(y, 5)\nq = torch.div(z, 10)\ne = torch.tanh(q)\nr = torch.relu(e)\nf = torch.round(z)\nm = torch.gt(y, -12.4)\nn = torch.gt(y, -12.5)\n")
	product, difference := b.Values[0].Bound, b.Values[1].Bound
	if product == nil || product.Terms.Float(0) != 12.5 || product.Error.Float(0) != 3*12.5 {
		t.Errorf("product: %+v", product)
	}
	if got, want := difference.Error.Float(0), 3*12.5+17.5; math.Abs(got-want) > 1e-3 {
		t.Errorf("difference: error %v, want that of the product and 17.5, %v", got, want)
	}
	quotient, tanh, relu := b.Values[2].Bound, b.Values[3].Bound, b.Values[4].Bound
	slope := 1 - math.Pow(math.Tanh(-1.75), 2)
	if got, want := tanh.Error.Float(0), slope*quotient.Error.Float(0)+5*math.Tanh(1.75); math.Abs(got-want) > 1e-6*want {
		t.Errorf("tanh: error %v, want %v", got, want)
	}
	if relu.Error.Float(0) != tanh.Error.Float(0) {
		t.Errorf("relu: error %v, want that of its input, %v", relu.Error.Float(0), tanh.Error.Float(0))
	}
	for i, want := range map[int]bool{5: false, 6: true, 7: false} {
		if got := b.Values[i].Bound != nil; got != want {
			t.Errorf("call %d has a bound: %t, want %t", i, got, want)
		}
	}
	b = boundsOf("y.backward()")
	if got := b.Slots[backend.Place{Part: backend.PartGrad, Owner: "x"}]; got == nil || got.Error != nil || got.Value.Float(0) != -3 {
		t.Errorf("gradient of x, of integers: %+v", got)
	}
}

// TestBoundsOfWrittenNumbers: sums of what torch.tensor makes are exact where its
// numbers are integers.
func TestBoundsOfWrittenNumbers(t *testing.T) {
	for numbers, rounds := range map[string]bool{"[2.0, -1.0]": false, "[0.25, -0.2]": true} {
		b := New(ops.Table(), nn.Modules()).Bounds(backend.NewJob(text(t, "x = tensor((2,), torch.float32, [3.0, -2.0])\ng = torch.tensor("+numbers+")\nz = torch.mul(x, g)\ns = torch.sum(z)\n")), true)
		if sum := b.Values[2].Bound; sum == nil || (sum.Error != nil) != rounds {
			t.Errorf("%s: %+v, want an error: %t", numbers, sum, rounds)
		}
	}
}

// TestBoundsTakeLittleMemory: a formula, or a kernel that is made of others, may pair all
// elements of a row, many times as many as it is given: then there is no bound.
func TestBoundsTakeLittleMemory(t *testing.T) {
	const scanned = "x = tensor((%d, 256), torch.float32, normal(0.0, 1.0, key=1), requires_grad=True)\ny = torch.logcumsumexp(x, 1)\nz = torch.sum(y)\nz.backward()\n"
	const labelled = "x = tensor((1, %d), torch.float32, normal(0.0, 1.0, key=1), requires_grad=True)\nt = tensor((1, %[1]d), torch.int64, integer(0, 9, key=2))\ny = torch.nn.functional.multilabel_margin_loss(x, t)\ny.backward()\n"
	for _, c := range []struct {
		calls        string
		n            int
		value, slope bool
	}{{scanned, 16, true, true}, {scanned, 512, true, false}, {labelled, 60, true, true}, {labelled, 6000, false, false}} {
		b := New(ops.Table(), nn.Modules()).Bounds(backend.NewJob(text(t, fmt.Sprintf(c.calls, c.n))), true)
		slope := b.Slots[backend.Place{Part: backend.PartGrad, Owner: "x"}] != nil
		if value := b.Values[0].Bound != nil; value != c.value || slope != c.slope {
			t.Errorf("%d: bounds of the value %t and the gradient %t, want %t, %t in\n%s", c.n, value, slope, c.value, c.slope, c.calls)
		}
	}
}

// TestBoundsOfResampling: the weights of a dimension are written as a matrix, unless that
// is a large one: of thousands of pixels it would take all memory.
func TestBoundsOfResampling(t *testing.T) {
	for n, want := range map[int]bool{100: true, 1500: false} {
		b := New(ops.Table(), nn.Modules()).Bounds(backend.NewJob(text(t, fmt.Sprintf("x = tensor((1, 1, %d), torch.float32, uniform(0.0, 1.0, key=1))\ny = torch.nn.functional.interpolate(x, size=%d, mode=\"linear\")\n", n, 2*n))), true)
		if got := b.Values[0].Bound != nil; got != want {
			t.Errorf("%d pixels have a bound: %t, want %t", n, got, want)
		}
	}
}

// TestBoundsOfTuples: what a tuple holds has bounds of its own.
func TestBoundsOfTuples(t *testing.T) {
	b := New(ops.Table(), nn.Modules()).Bounds(backend.NewJob(text(t, "x = tensor((3, 4), torch.float32, uniform(-1, 1, key=1))\ns = torch.exp(x)\ny = torch.max(s, 1)\n")), true)
	if values := b.Values[1].At([]int{0}); values == nil || values.Error.Float(0) < 1 {
		t.Errorf("maxima behind exp have the bound %+v", values)
	}
	if b.Values[1].At([]int{1}) == nil || b.Values[1].At(nil) != nil || b.Values[1].At([]int{2}) != nil {
		t.Errorf("bounds by path: %+v", b.Values[1])
	}
}

// TestBoundsOfFormulas: softmax and layer_norm have bounds, and so have their
// gradients.
func TestBoundsOfFormulas(t *testing.T) {
	for _, call := range []string{"torch.softmax(x, 1)", "torch.log_softmax(x, 1)", "torch.nn.functional.layer_norm(x, (4,))", "torch.nn.functional.batch_norm(x, None, None, training=True)", "torch.nn.functional.gelu(x)"} {
		b := New(ops.Table(), nn.Modules()).Bounds(backend.NewJob(text(t, "x = tensor((3, 4), torch.float32, uniform(-1, 1, key=1), requires_grad=True)\n"+
			"y = "+call+"\ny.backward(uniform(-1, 1, key=2))")), true)
		for name, bound := range map[string]*compare.Bound{"value": b.Values[0].Bound, "gradient": b.Slots[backend.Place{Part: backend.PartGrad, Owner: "x"}]} {
			if bound == nil || bound.Error == nil {
				t.Errorf("%s: the %s has no bound", call, name)
				continue
			}
			for i := range bound.Error.Len() {
				if e := bound.Error.Float(i); !(e > 0 && e < 2000) {
					t.Errorf("%s: the %s of element %d has error %v", call, name, i, e)
				}
			}
		}
	}
}

// TestWhatStaysAsItIsIsKnown: batch_norm changes its running statistics in training alone; in
// eval the gradient of its weight has a bound, as its value has.
func TestWhatStaysAsItIsIsKnown(t *testing.T) {
	for _, training := range []string{"False", "True"} {
		b := New(ops.Table(), nn.Modules()).Bounds(backend.NewJob(text(t, "x = tensor((3, 4), torch.float32, uniform(-1, 1, key=1))\n"+
			"w = tensor((4,), torch.float32, uniform(-1, 1, key=2), requires_grad=True)\nm = tensor((4,), torch.float32, uniform(-1, 1, key=3))\nv = tensor((4,), torch.float32, uniform(1, 2, key=4))\n"+
			"y = torch.nn.functional.batch_norm(x, m, v, w, training="+training+")\nz = y * m\nz.backward(uniform(-1, 1, key=2))")), true)
		if stays, known := training == "False", b.Values[1].Bound != nil; known != stays {
			t.Errorf("training %s: what follows from the running mean is bounded: %t", training, known)
		}
		if bound := b.Slots[backend.Place{Part: backend.PartGrad, Owner: "w"}]; training == "False" && (bound == nil || bound.Error == nil) {
			t.Errorf("the gradient of the weight in eval has no bound")
		}
	}
}

// TestBoundsOfWhatIsDocumented: hardsigmoid may be x/6 + 1/2, as PyTorch documents
// it, and loses nothing where it is 0 or 1.
func TestBoundsOfWhatIsDocumented(t *testing.T) {
	b := New(ops.Table(), nn.Modules()).Bounds(backend.NewJob(text(t, "x = tensor((3,), torch.float32, [-2.9413221, 4.0, -5.0])\ny = torch.nn.functional.hardsigmoid(x)\n")), true)
	const roundoff = 1.0 / (1 << 24)
	bound := b.Values[0].Bound
	if bound == nil || bound.Error == nil {
		t.Fatalf("no bound: %+v", b.Values[0])
	}
	x := float32(-2.9413221)
	lost := math.Abs(float64(x/6+0.5) - (float64(x)+3)/6)
	if e := bound.Error.Float(0) * roundoff; !(lost < e && e < 1e-6) {
		t.Errorf("the error is %v, want more than %v", e, lost)
	}
	if left, right := bound.Error.Float(1), bound.Error.Float(2); left != 0 || right != 0 {
		t.Errorf("errors %v and %v beyond the bounds, want 0", left, right)
	}
}

// TestBoundsOfRsub: what rsub subtracts is rounded before, as in the sub that it is.
func TestBoundsOfRsub(t *testing.T) {
	b := New(ops.Table(), nn.Modules()).Bounds(backend.NewJob(text(t, "x = tensor((2,), torch.float32, [-0.8688710927963257, 1.5])\n"+
		"v = torch.rsub(x, -2.337794070248434, alpha=3)\nw = torch.sub(-2.337794070248434, x, alpha=3)\n")), true)
	got, want := b.Values[0].Bound, b.Values[1].Bound
	if got == nil || got.Error == nil || got.Terms == nil {
		t.Fatalf("rsub: %+v, want a bound with terms", got)
	}
	for i := range got.Error.Len() {
		if got.Error.Float(i) < want.Error.Float(i) || got.Terms.Float(i) < want.Terms.Float(i) {
			t.Errorf("element %d: error %v of %v, want those of sub, %v of %v", i, got.Error.Float(i), got.Terms.Float(i), want.Error.Float(i), want.Terms.Float(i))
		}
	}
}

// TestTermsOfASumMoveWithIt: what is a part of a product, or its transpose, has its terms.
func TestTermsOfASumMoveWithIt(t *testing.T) {
	s := newSession(ops.Table(), 0x1p-24)
	b := s.Builder()
	x := tensor.New(tensor.F64, 3, 3)
	for i := range x.Len() {
		x.Set(i, complex(float64(i)-3.5, 0))
	}
	product := b.Op("matmul", s.Leaf(x, false), s.Leaf(x, false))
	row := b.Op("select", b.Op("t", product), 0, 1)
	of, moved := s.of(product), s.of(row)
	if moved.terms == nil || moved.count != of.count {
		t.Fatalf("the terms of a column are %v, %v roundings, want %v", moved.terms, moved.count, of.count)
	}
	for i := range moved.terms.Len() {
		if got, want := moved.terms.Float(i), of.terms.Float(3*i+1); got != want {
			t.Errorf("element %d has %v, want %v", i, got, want)
		}
	}
}

// TestBoundsOfSumsInPlace: what PyTorch adds into elements of a half tensor is rounded
// each time, as often as the most frequent index occurs, and other sums once.
func TestBoundsOfSumsInPlace(t *testing.T) {
	const n, roundoff = 64, 0x1p-8
	x, sum, exact := tensor.New(tensor.BF16, n), tensor.New(tensor.BF16, 2), [2]float64{}
	numbers, index := make([]string, n), make([]string, n)
	for i := range n {
		at := min(i%4, 1) // twice 0, then 62 times 1
		if i >= 8 {
			at = 1
		}
		x.Set(i, 0.0078125)
		if i == 1 { // too large for what follows to move it
			x.Set(i, 4)
		}
		sum.Set(at, complex(sum.Float(at)+x.Float(i), 0))
		exact[at] += x.Float(i)
		numbers[i], index[i] = strconv.FormatFloat(x.Float(i), 'g', -1, 64), strconv.Itoa(at)
	}
	inputs := fmt.Sprintf("x = tensor((%d,), torch.bfloat16, [%s])\ni = tensor((%[1]d,), torch.int64, [%[3]s])\nz = tensor((2,), torch.bfloat16, [0.0, 0.0])\n",
		n, strings.Join(numbers, ", "), strings.Join(index, ", "))
	for _, call := range []string{"torch.index_add(z, 0, i, x)", "torch.scatter_add(z, 0, i, x)", "torch.scatter(z, 0, i, x, reduce=\"add\")", "torch.index_put(z, (i,), x, accumulate=True)", "torch.put(z, i, x, accumulate=True)"} {
		b := New(ops.Table(), nn.Modules()).Bounds(backend.NewJob(text(t, inputs+"y = "+call+"\n")), true).Values[0].Bound
		if b == nil || b.Error == nil || b.Count != 64 {
			t.Errorf("%s: the bound is %+v, want one of 64 roundings", call, b)
			continue
		}
		for at := range exact {
			if lost := math.Abs(sum.Float(at) - exact[at]); lost > roundoff*b.Error.Float(at) || at == 1 && lost < 4*roundoff*exact[at] {
				t.Errorf("%s: the sum in place is %v off element %d, want from 4 roundings of %v to E %v", call, lost, at, exact[at], roundoff*b.Error.Float(at))
			}
		}
	}
	for call, want := range map[string]float64{"torch.scatter(z, 0, i, x, reduce=\"multiply\")": 66, "torch.sum(x)": 1 + 64*0x1p-16} {
		if b := New(ops.Table(), nn.Modules()).Bounds(backend.NewJob(text(t, inputs+"y = "+call+"\n")), true).Values[0].Bound; b == nil || b.Count != want {
			t.Errorf("%s: the bound is %+v, want one of %v roundings", call, b, want)
		}
	}
}

// TestSumsOfEqualTerms: the roundings of equal terms are equal while the sum is of one order of
// magnitude, and add up; those of different ones do not.
func TestSumsOfEqualTerms(t *testing.T) {
	const n = 1 << 17
	sum := float32(0)
	for range n {
		sum += 0.1
	}
	for _, c := range []struct {
		what, calls string
		equal       bool
	}{
		{"equal", "x = tensor((131072,), torch.float32, constant(0.1))\ny = torch.sum(x)\n", true},
		{"equal in each row", "x = tensor((2, 65536), torch.float32, uniform(1.0, 2.0, key=7), strides=(1, 0))\ny = torch.sum(x)\n", true},
		{"different", "x = tensor((131072,), torch.float32, uniform(0.0, 0.2, key=7))\ny = torch.sum(x)\n", false},
		{"equal by others", "x = tensor((1, 131072), torch.float32, constant(0.1))\nw = tensor((131072, 1), torch.float32, uniform(0.0, 1.0, key=7))\ny = torch.matmul(x, w)\n", false},
	} {
		b := New(ops.Table(), nn.Modules()).Bounds(backend.NewJob(text(t, c.calls)), false).Values[0].Bound
		if got := b.Count > 2*math.Sqrt(n)+2; got != c.equal {
			t.Errorf("%s: %v roundings of a sum", c.what, b.Count)
		}
		if off := math.Abs(float64(sum) - b.Value.Float(0)); c.what == "equal" && !(off <= b.Unit*b.Error.Float(0)) {
			t.Errorf("%s: a sum in order is off by %v, the bound is %v", c.what, off, b.Unit*b.Error.Float(0))
		} else if c.what == "equal" && off <= 2*math.Sqrt(n)*b.Unit*b.Value.Float(0) {
			t.Errorf("a sum in order is off by %v, as if its roundings were independent", off)
		}
	}
}

// TestPositionsAreExact: whole numbers that a dtype has are, and what they decay by has bounds.
func TestPositionsAreExact(t *testing.T) {
	for _, c := range []struct {
		id    string
		args  []any
		exact bool
	}{
		{"arange", []any{5, op.Kw("dtype", tensor.F64)}, true},
		{"arange", []any{0, 9, 3, op.Kw("dtype", tensor.F64)}, true},
		{"arange", []any{0.0, 2.0, 0.5, op.Kw("dtype", tensor.F64)}, false},
		{"arange", []any{1 << 25, 1<<25 + 3, op.Kw("dtype", tensor.F64)}, false},
		{"linspace", []any{-4, 4, 5, op.Kw("dtype", tensor.F64)}, true},
		{"linspace", []any{-1, 1, 10, op.Kw("dtype", tensor.F64)}, false},
	} {
		s := newSession(ops.Table(), 0x1p-24)
		var kwargs []op.Kwarg
		args := c.args
		if kw, ok := args[len(args)-1].(op.Kwarg); ok {
			args, kwargs = args[:len(args)-1], append(kwargs, kw)
		}
		out, err := s.Apply(c.id, args, kwargs)
		if err != nil {
			t.Fatal(err)
		}
		if st := s.of(out[0]); st.unknown || (st.err == nil) != c.exact {
			t.Errorf("%s %v: %+v, want exact: %v", c.id, c.args, st, c.exact)
		}
	}
}

// TestStepsOfALinspace: what counts from the start in float32 stays within the bound.
func TestStepsOfALinspace(t *testing.T) {
	for _, c := range []struct {
		lo, hi float64
		n      int
	}{{-1, 1, 10}, {0.1, 0.7, 1000}, {1e6, 1e6 + 1, 333}, {-3, 1e-3, 77}} {
		s := newSession(ops.Table(), 0x1p-24)
		out, err := s.Apply("linspace", []any{c.lo, c.hi, c.n}, []op.Kwarg{op.Kw("dtype", tensor.F64)})
		if err != nil {
			t.Fatal(err)
		}
		st, exact := s.of(out[0]), tensorOf(out[0])
		step := (float32(c.hi) - float32(c.lo)) / float32(c.n-1)
		for i := range c.n {
			got := float32(c.lo) + float32(step*float32(i))
			if off := math.Abs(float64(got) - exact.Float(i)); st.err == nil || !(off <= 0x1p-24*st.err.Float(i)) {
				t.Fatalf("%v: element %d is off by %v, bound %v", c, i, off, st.err)
			}
		}
	}
}
