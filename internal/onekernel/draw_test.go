package onekernel

import (
	"maps"
	"math"
	"math/bits"
	"slices"
	"testing"

	"plumb/backend"
	"plumb/ops"
	"plumb/program"
	"plumb/tensor"
)

func makerOf(t *testing.T, inputs string, dtypes ...tensor.DType) *maker {
	t.Helper()
	sig, _, err := ParseSignature(inputs)
	if err != nil {
		t.Fatal(err)
	}
	return &maker{seed: 3, target: "plumb.own.kernel", promises: Promises{DTypes: dtypes}, signature: sig.fixed}
}

func cases(t *testing.T, m *maker, n int) []*Case {
	t.Helper()
	var all []*Case
	for i := range n {
		c, err := m.draw(i, m.dtype(i))
		if err != nil {
			t.Fatalf("case %d: %v", i, err)
		}
		all = append(all, c)
	}
	return all
}

func power(n int) bool { return bits.OnesCount(uint(n)) == 1 }

// demanded are what the first ten draws have to have among them.
var demanded = map[string]func(*Case) bool{
	"size 1":               size(func(n int) bool { return n == 1 }),
	"a power of two":       size(func(n int) bool { return n > 2 && power(n) }),
	"one more":             size(func(n int) bool { return n > 4 && power(n-1) }),
	"one less":             size(func(n int) bool { return n > 4 && power(n+1) }),
	"a prime":              size(func(n int) bool { return slices.Contains([]int{7, 13, 17, 31, 97}, n) }),
	"more than one block":  size(func(n int) bool { return n > 1024 && n%1024 != 0 }),
	"empty":                size(func(n int) bool { return n == 0 }),
	"mean over deviation":  regime(Offset),
	"beyond 100":           regime(Large),
	"all negative":         regime(Negative),
	"constant rows":        regime(ConstRows),
	"zero rows":            regime(ZeroRows),
	"ties":                 regime(Ties),
	"NaN and infinities":   regime(NonFinite),
	"extremes of a dtype":  regime(Extremes),
	"a slice":              layout(Sliced),
	"a transpose":          layout(Transposed),
	"an expanded tensor":   layout(Expanded),
	"a contiguous tensor":  layout(Contiguous),
	"gradients":            func(c *Case) bool { return c.Grad },
	"no gradients":         func(c *Case) bool { return !c.Grad },
	"large elements there": func(c *Case) bool { return largest(c) > 100 },
}

func size(is func(int) bool) func(*Case) bool {
	return func(c *Case) bool { return slices.ContainsFunc(c.lengths(), is) }
}

func regime(r Regime) func(*Case) bool { return func(c *Case) bool { return c.Regime == r } }
func layout(l Layout) func(*Case) bool { return func(c *Case) bool { return c.Layout == l } }

func largest(c *Case) float64 {
	most := 0.0
	for i := range c.program.Inputs {
		t := c.program.Inputs[i].Materialize()
		for k := range t.Len() {
			most = max(most, real(t.At(k)))
		}
	}
	return most
}

// TestTheFirstTenDraws: what shows most mistakes comes first, whatever is random.
func TestTheFirstTenDraws(t *testing.T) {
	for _, dtypes := range [][]tensor.DType{{tensor.F32}, {tensor.F32, tensor.F16, tensor.F64, tensor.BF16}} {
		all := cases(t, makerOf(t, "x: float[B,N]", dtypes...), 10)
		for what, is := range demanded {
			if !slices.ContainsFunc(all, is) {
				t.Errorf("%v: no %s among the first ten", dtypes, what)
			}
		}
		if !slices.ContainsFunc(all, func(c *Case) bool { return c.width() > 1024 }) || !slices.ContainsFunc(all, func(c *Case) bool { return c.width() > 1 && !power(c.width()) }) {
			t.Errorf("%v: no row of more than one block, or of a part of one, among the first ten", dtypes)
		}
		for _, dt := range dtypes {
			if !slices.ContainsFunc(all, func(c *Case) bool { return c.DType == dt }) {
				t.Errorf("%v: no %s among the first ten", dtypes, dt)
			}
		}
	}
}

// TestEachSizeIsLarge: each size is beyond a block before the tenth draw, whatever the seed.
func TestEachSizeIsLarge(t *testing.T) {
	for _, inputs := range []string{"x: float[B,N]", "x: float[T,K], w: float[E,K,N], i: i64[T] < E", "q: float[B,H,S,D], k: float[B,H,T,D]", "x: float[B,C,D,H,W], w: float[C]"} {
		for seed := range uint64(20) {
			m := makerOf(t, inputs, tensor.F32)
			m.seed = seed
			largest := map[string]int{}
			for _, c := range cases(t, m, tenth) {
				for name, n := range c.Sizes {
					largest[name] = max(largest[name], n)
				}
			}
			for name, n := range largest {
				if n < blocks {
					t.Errorf("%s, seed %d: %s is %d at most", inputs, seed, name, n)
				}
			}
		}
	}
}

// TestShortRowsFarFromZero: they are among the first draws in the first dtype.
func TestShortRowsFarFromZero(t *testing.T) {
	all := cases(t, makerOf(t, "x: float[B,N]", tensor.F32, tensor.F64), len(first))
	if !slices.ContainsFunc(all, func(c *Case) bool {
		return c.Regime == Offset && c.DType == tensor.F32 && c.width() > 4 && c.width() < 32
	}) {
		t.Error("there are none")
	}
	for seed := range uint64(20) { // nor is another size long, over which a layer sums as well
		m := makerOf(t, "x: float[B,C,N]", tensor.F32)
		m.seed = seed
		if !slices.ContainsFunc(cases(t, m, len(first)), func(c *Case) bool {
			return c.Regime == Offset && c.width() > 1 && slices.Max(c.lengths()) < 32
		}) {
			t.Errorf("seed %d: there are none whose sizes are all short", seed)
		}
	}
}

// TestMoreElementsThan16BitsCount: a tensor has them in one of the first draws, whose rows
// are within 64 kB.
func TestMoreElementsThan16BitsCount(t *testing.T) {
	for _, inputs := range []string{"x: float[N]", "x: float[B,N]", "x: float[B,S,N], w: float[N]"} {
		if !slices.ContainsFunc(cases(t, makerOf(t, inputs, tensor.F32), len(first)), func(c *Case) bool {
			return tensor.NumElements(c.program.Inputs[0].Shape) > math.MaxUint16 && (len(c.Sizes) == 1 || c.width() < 1<<14)
		}) {
			t.Errorf("%s: there are none", inputs)
		}
	}
	if !slices.ContainsFunc(cases(t, makerOf(t, "table: float[V,D], i: i64[N] < V", tensor.F32), len(first)), func(c *Case) bool {
		return c.Sizes["V"]*c.Sizes["D"] > 5*math.MaxUint16/4 && c.Sizes["N"] > 2
	}) {
		t.Error("few indices are of rows beyond 16 bits")
	}
	at := slices.IndexFunc(first, func(s step) bool { return s.size == long })
	for seed := range uint64(8) {
		m := makerOf(t, "table: float[V,D], i: i64[B,N] < V", tensor.F32)
		m.seed = seed
		if c, err := m.draw(at, tensor.F32); err != nil || c.Sizes["V"]*c.Sizes["D"] < math.MaxUint16 && c.Sizes["B"]*c.Sizes["N"] < math.MaxUint16 {
			t.Errorf("%s: no tensor has more elements than 16 bits count: %v", c, err)
		}
	}
}

// TestSmallIntegersFillTheirDType: the difference of two is beyond it once.
func TestSmallIntegersFillTheirDType(t *testing.T) {
	for inputs, want := range map[string]float64{"q: i8[8,N], z: i8[8,N]": 127, "q: u8[8,N], z: u8[8,N]": 254, "q: i16[8,N], z: i16[8,N]": 32767} {
		if !slices.ContainsFunc(cases(t, makerOf(t, inputs, tensor.F32), tenth), func(c *Case) bool {
			q, z := c.program.Inputs[0].Materialize(), c.program.Inputs[1].Materialize()
			most := 0.0
			for i := range q.Len() {
				most = max(most, real(q.At(i)-z.At(i)), real(q.At(i)))
			}
			return most > want || q.DType() == tensor.U8 && most >= want-8
		}) {
			t.Errorf("%s: none is beyond %v", inputs, want)
		}
	}
}

// TestTinyMagnitudesComeEarly: a call that takes long in Triton's interpreter has some 14.
func TestTinyMagnitudesComeEarly(t *testing.T) {
	if at := slices.IndexFunc(first, func(s step) bool { return s.regime == Tiny }); at < 0 || at >= 14 {
		t.Errorf("draw %d", at)
	}
}

// TestEachInputHasInfinities: the first that have NaN and infinities have them in another
// argument each.
func TestEachInputHasInfinities(t *testing.T) {
	struck := map[int]bool{}
	for _, c := range cases(t, makerOf(t, "x: float[N], y: float[N], z: float[N]", tensor.F32, tensor.F64), 2*len(first)) {
		for k := range c.program.Inputs {
			if c.Regime == NonFinite && c.strikes(k) {
				struck[k] = true
			}
		}
	}
	if len(struck) != 3 {
		t.Errorf("of three arguments %v have them", struck)
	}
}

// TestRoundSizes: a kernel that takes multiples of 8 alone has calls to answer.
func TestRoundSizes(t *testing.T) {
	for i, c := range cases(t, makerOf(t, "a: float[M,K], b: float[K,N]", tensor.F32), 10) {
		if !slices.ContainsFunc(c.lengths(), func(n int) bool { return n%8 != 0 || n == 0 }) {
			return
		}
		t.Logf("case %d has %v", i, c.lengths())
	}
	t.Error("none of the first ten calls has multiples of 8 alone")
}

// TestRowsRise: of the first calls with large magnitudes one has rows that rise by far more
// than exp can be of, over several blocks, and one has not.
func TestRowsRise(t *testing.T) {
	seen := map[bool]bool{}
	for _, c := range cases(t, makerOf(t, "x: float[B,N]", tensor.F32), len(first)) {
		if n := c.Sizes["N"]; c.Regime == Large && n > 128 {
			x := c.program.Inputs[0].Materialize()
			rises := x.Float(n-1)-x.Float(63) > 100
			for i := 1; i < n; i++ {
				rises = rises && x.Float(i-1) <= x.Float(i)
			}
			seen[rises] = true
		}
	}
	if len(seen) != 2 {
		t.Errorf("rows of large magnitudes rise, or do not: %v, want both", seen)
	}
}

// TestFirstDrawsHaveRows: what is special about the elements of an operator's first calls
// shows in rows, not in a tensor without dimensions or where all other sizes are 1.
func TestFirstDrawsHaveRows(t *testing.T) {
	defs := ops.Table().Lookup("torch.log_softmax")
	literal := &Literal{Table: ops.Table(), Def: defs[0], Target: "torch.log_softmax"}
	m := &maker{target: literal.Target, promises: Promises{DTypes: []tensor.DType{tensor.F32}}, signature: literal.Draw}
	for m.seed = range 20 {
		for _, c := range cases(t, m, len(first)) {
			if c.Regime == Usual || first[c.Index].size == 1 {
				continue
			}
			if shape := c.program.Inputs[0].Shape; len(shape) == 0 || slices.Min(shape) < 2 && first[c.Index].size != long {
				t.Errorf("seed %d, call %d, %s: shape %v", m.seed, c.Index, c.Regime, shape)
			}
		}
	}
}

// TestOneElement: one of the first draws, after the first ten, has all sizes 1, where the
// reference takes that.
func TestOneElement(t *testing.T) {
	at := slices.IndexFunc(first, func(s step) bool { return s.size == single })
	if at < tenth {
		t.Fatalf("call %d", at)
	}
	sizes := func(m *maker, i int) []int {
		c, err := m.draw(i, tensor.F32)
		if err != nil {
			t.Fatal(err)
		}
		return slices.Sorted(maps.Values(c.Sizes))
	}
	m := makerOf(t, "x: float[B,N,M]", tensor.F32, tensor.F64)
	ones := []int{1, 1, 1}
	for m.seed = range 8 {
		if got := sizes(m, at); !slices.Equal(got, ones) {
			t.Errorf("seed %d: %v", m.seed, got)
		}
		if got := sizes(m, at+len(first)); slices.Equal(got, ones) {
			t.Errorf("seed %d: one element in the second round too", m.seed)
		}
	}
	m.several = true
	if got := sizes(m, at); got[0] != 1 || got[2] == 1 {
		t.Errorf("where one element is refused: %v", got)
	}
	m.several = false
	m.promises.Ranges = map[string][2]int{"N": {2, 9}}
	if got := sizes(m, at); got[2] < 2 {
		t.Errorf("beyond what is promised: %v", got)
	}
}

// TestBothHalvesOfTheFirstDraws: in two rounds the first dtype has each of them.
func TestBothHalvesOfTheFirstDraws(t *testing.T) {
	seen := map[step]bool{}
	for i, c := range cases(t, makerOf(t, "x: float[N]", tensor.F32, tensor.F64), 2*len(first)) {
		if c.DType == tensor.F32 {
			seen[first[i%len(first)]] = true
		}
	}
	if len(seen) != len(first) {
		t.Errorf("float32 has %d of the %d first draws", len(seen), len(first))
	}
}

func TestPromisesNarrowTheDraws(t *testing.T) {
	m := makerOf(t, "x: float[B,N]", tensor.F32)
	m.promises.NoEmpty, m.promises.NoNonFinite, m.promises.Layouts = true, true, []Layout{Contiguous}
	m.promises.Ranges = map[string][2]int{"N": {2, 9}}
	no := false
	m.promises.Grad = &no
	for _, c := range cases(t, m, 3*len(first)) {
		if n := c.Sizes["N"]; n < 2 || n > 9 || c.Sizes["B"] == 0 || c.Layout != Contiguous || c.Regime == NonFinite || c.Grad {
			t.Errorf("%s breaks a promise", c)
		}
	}
}

// TestSeedsReplay: a seed and an index are a case, whatever was drawn before.
func TestSeedsReplay(t *testing.T) {
	m := makerOf(t, "x: float[B,N], dim = 0 | 1 | -1", tensor.F32, tensor.F16)
	all := cases(t, m, 2*len(first)+8)
	again, err := m.draw(len(all)-1, m.dtype(len(all)-1))
	if err != nil || again.program.String() != all[len(all)-1].program.String() {
		t.Errorf("the same index gives another case: %v", err)
	}
	other := makerOf(t, "x: float[B,N], dim = 0 | 1 | -1", tensor.F32, tensor.F16)
	other.seed = 4
	if cases(t, other, 1)[0].program.String() == all[0].program.String() {
		t.Error("another seed gives the same case")
	}
}

// TestSizesThatAreReducedAreInFocus: attention's keys, which its result has not, are long
// as often as its last dimension.
func TestSizesThatAreReducedAreInFocus(t *testing.T) {
	m := makerOf(t, "q: float[B,H,L,D], k: float[B,H,S,D], v: float[B,H,S,D]", tensor.F32)
	long := func(name string) int {
		n := 0
		for _, c := range cases(t, m, 60) {
			if c.Sizes[name] > 16 {
				n++
			}
		}
		return n
	}
	before := long("S")
	m.reduces(&Case{Sizes: map[string]int{"B": 2, "H": 2, "L": 4, "D": 257, "S": 7}}, &backend.Outcome{Values: []backend.Value{{Tensor: tensor.New(tensor.F32, 2, 2, 4, 257)}}})
	if !m.reduced["S"] || len(m.reduced) != 1 {
		t.Errorf("reduced are %v", m.reduced)
	}
	if after := long("S"); after < 12 || after < before+4 || long("D") < 8 {
		t.Errorf("of 60 draws %d have many keys, %d before it was known that they are reduced; %d a long last dimension", after, before, long("D"))
	}
}

func elements(p *program.Program) []complex128 {
	t := p.Inputs[0].Materialize()
	var all []complex128
	for i := range t.Len() {
		all = append(all, t.At(i))
	}
	return all
}

// TestPositiveElementsAreSmallAndLarge: what is declared as above 0, a variance, is near it
// too, and never 0.
func TestPositiveElementsAreSmallAndLarge(t *testing.T) {
	least, most := 1.0, 0.0
	for _, c := range cases(t, makerOf(t, "v: float[N] > 0", tensor.F32), len(first)) {
		v := c.program.Inputs[0].Materialize()
		for k := range v.Len() {
			least, most = min(least, real(v.At(k))), max(most, real(v.At(k)))
		}
	}
	if least <= 0 || least > 1e-10 || most < 100 {
		t.Errorf("from %g to %g", least, most)
	}
}

// TestTiesOfScalesHalve: among ties a positive argument is 2 or 4, so that quotients by it lie
// halfway between whole numbers, where those who round go apart.
func TestTiesOfScalesHalve(t *testing.T) {
	seen := 0
	for _, c := range cases(t, makerOf(t, "x: float[N,C], s: float[1] > 0", tensor.F32), len(first)) {
		if x, s := c.program.Inputs[0].Materialize(), c.program.Inputs[1].Materialize(); c.Regime == Ties && x.Len() > 0 {
			seen++
			for k := range s.Len() {
				if v := real(s.At(k)); v != 2 && v != 4 {
					t.Errorf("a scale of %g", v)
				}
			}
		}
	}
	if seen == 0 {
		t.Error("no ties were drawn")
	}
}

// TestMeansFarAboveTheDeviation: in one pass the squares' roundings are as large as the
// variance, where the dtype tells such elements apart.
func TestMeansFarAboveTheDeviation(t *testing.T) {
	for _, d := range []tensor.DType{tensor.F32, tensor.F16} {
		for _, c := range cases(t, makerOf(t, "x: float[N,C]", d), len(first)) {
			if in := c.program.Inputs[0]; c.Regime == Offset && (in.Fill.Lo*in.Fill.Lo*0x1p-24 >= in.Fill.Hi*in.Fill.Hi) != (d == tensor.F32) {
				t.Errorf("%v: a mean of %g, a deviation of %g", d, in.Fill.Lo, in.Fill.Hi)
			}
		}
	}
}

// TestRowsOfALossAreLong: where no size is one of the result, a row is longer than a usual
// block before the tenth draw, and not how many rows there are.
func TestRowsOfALossAreLong(t *testing.T) {
	m := makerOf(t, "logits: float[N,V], target: i64[N] < V", tensor.F32)
	m.reduced = map[string]bool{"N": true, "V": true}
	if !slices.ContainsFunc(cases(t, m, tenth), func(c *Case) bool { return c.Sizes["V"] > usualBlock }) {
		t.Error("no row is longer than a block")
	}
	m = makerOf(t, "q: float[B,T,D], k: float[B,S,D]", tensor.F32) // the keys of attention are
	m.reduced = map[string]bool{"S": true}
	if !slices.ContainsFunc(cases(t, m, tenth), func(c *Case) bool { return c.Sizes["S"] > usualBlock }) {
		t.Error("no more keys than a block has")
	}
}

// TestLargeNumbersAreInFloat16: the first that are large, whose squares overflow there alone.
func TestLargeNumbersAreInFloat16(t *testing.T) {
	m := &maker{promises: Promises{DTypes: []tensor.DType{tensor.F32, tensor.F16, tensor.BF16}}}
	at := slices.IndexFunc(first, func(s step) bool { return s.regime == Large })
	if got := m.dtype(at); got != tensor.F16 {
		t.Errorf("draw %d, of large numbers, is in %s", at, got)
	}
	if m.promises.DTypes = m.promises.DTypes[:1]; m.dtype(at) != tensor.F32 {
		t.Error("a dtype that is not promised")
	}
}

// TestSizesThatAreNumbers: a signature without symbols is drawn too.
func TestSizesThatAreNumbers(t *testing.T) {
	for _, c := range cases(t, makerOf(t, "x: float[4,8], y: float[8]", tensor.F32, tensor.F16), 3*tenth) {
		if !slices.Equal(c.program.Inputs[0].Shape, []int{4, 8}) {
			t.Errorf("%s: %v", c, c.program.Inputs[0].Shape)
		}
	}
}

// TestVastDraws: where a kernel has threads at work, two calls are so large that these are at
// work at once, one in rows and one beside them.
func TestVastDraws(t *testing.T) {
	for _, inputs := range []string{"x: f32[N,C]", "x: f32[N]", "a: f32[M,K], b: f32[N,K]"} {
		m := makerOf(t, inputs, tensor.F32)
		m.threads = true
		all := cases(t, m, 20)
		focus := map[string]bool{}
		for _, i := range vastDraws {
			for name, n := range all[i].Sizes {
				if n >= vast {
					focus[name] = true
				}
			}
		}
		if want := min(len(all[0].Sizes), len(vastDraws)); len(focus) != want {
			t.Errorf("%s: large are %v, want %d symbols", inputs, focus, want)
		}
	}
}

// TestSeeds: some calls are made as in a process where nobody has set a seed.
func TestSeeds(t *testing.T) {
	unset := 0
	for _, c := range cases(t, makerOf(t, "x: f32[N]", tensor.F32), 9) {
		if c.program.Seed == unseeded {
			unset++
		}
	}
	if unset != 3 {
		t.Errorf("%d of 9 calls have no seed, want 3", unset)
	}
}
