package script

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"go.starlark.net/starlark"

	"plumb/internal/draw/choice"
	"plumb/tensor"
)

// randomModule is what "import random" binds: Python's module by its
// attributes, and the generator of that name when it is called.
type randomModule struct{}

func (randomModule) String() string        { return "random" }
func (randomModule) Type() string          { return "module" }
func (randomModule) Freeze()               {}
func (randomModule) Truth() starlark.Bool  { return true }
func (randomModule) Hash() (uint32, error) { return hashString("random") }
func (randomModule) Name() string          { return "random" }
func (randomModule) AttrNames() []string   { return nil }

// CallInternal makes a generator.
func (randomModule) CallInternal(t *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	return starlark.Call(t, vocabulary["random"], args, kwargs)
}

// Attr returns a function of Python's module.
func (randomModule) Attr(name string) (starlark.Value, error) {
	if f, ok := randomFuncs[name]; ok {
		return f.value("random." + name), nil
	}
	switch name {
	case "seed":
		return ignoredCall("random.seed"), nil
	case "Random", "SystemRandom": // the case's decisions, as all of random
		return builtin("random."+name, func(*starlark.Thread, starlark.Tuple) (starlark.Value, error) { return randomModule{}, nil }), nil
	}
	return nil, lack("random.%s is not supported in test files", name)
}

// seeded makes a function that draws; what it draws is told to the draw's trace.
func seeded(params []string, required int, f func(d *draw, a arguments) (starlark.Value, error)) numpyFunc {
	return numpyFunc{params, required, func(t *starlark.Thread, a arguments) (starlark.Value, error) {
		d, err := drawOf(t, a.fn)
		if err != nil {
			return nil, err
		}
		v, err := f(d, a)
		if err == nil && d.env.trace != nil {
			seen := v
			if v == starlark.None && len(a.values) > 0 {
				seen = a.values[0]
			}
			d.env.trace(a.fn, seen)
		}
		return v, err
	}}
}

var randomFuncs map[string]numpyFunc

func init() {
	randomFuncs = map[string]numpyFunc{
		"random": seeded(nil, 0, func(d *draw, _ arguments) (starlark.Value, error) {
			return starlark.Float(d.gen.Source.Float(0, 1)), nil
		}),
		"uniform": seeded([]string{"a", "b"}, 2, uniform), "randint": seeded([]string{"a", "b"}, 2, randInt), "randrange": seeded([]string{"start", "stop", "step"}, 1, randRange),
		"choice": seeded([]string{"seq"}, 1, pick), "shuffle": seeded([]string{"x"}, 1, shuffle), "sample": seeded([]string{"population", "k"}, 2, sample),
		"choices": seeded([]string{"population", "weights", "cum_weights", "k"}, 1, choices), "gauss": seeded([]string{"mu", "sigma"}, 0, gauss), "normalvariate": seeded([]string{"mu", "sigma"}, 0, gauss),
		"getrandbits": seeded([]string{"k"}, 1, func(d *draw, a arguments) (starlark.Value, error) {
			k, err := small("getrandbits", starlark.Tuple(a.values), 1, 53)
			if err != nil {
				return nil, err
			}
			return starlark.MakeInt64(d.gen.Int(0, 1<<k[0])), nil
		}),
	}
	size := func(params ...string) []string { return append(params, "size") }
	names := starlark.StringDict{"seed": ignoredCall("numpy.random.seed")}
	for name, f := range map[string]numpyFunc{
		"uniform": seeded(size("low", "high"), 0, uniformArray), "normal": seeded(size("loc", "scale"), 0, normalArray), "randint": seeded([]string{"low", "high", "size", "dtype"}, 1, intArray),
		"random": seeded(size(), 0, unitArray), "random_sample": seeded(size(), 0, unitArray), "standard_normal": seeded(append(size(), "dtype"), 0, func(d *draw, a arguments) (starlark.Value, error) {
			dt, err := numpyDType(a.get("dtype"))
			if err != nil {
				return nil, err
			}
			return d.array(a.get("size"), cmp.Or(dt, tensor.F64), normalOf(0, 1))
		}),
		"choice": seeded([]string{"a", "size", "replace", "p"}, 1, choiceArray), "permutation": seeded([]string{"x"}, 1, permutation), "shuffle": seeded([]string{"x"}, 1, shuffle),
	} {
		names[name] = f.value("numpy.random." + name)
	}
	for name, of := range map[string]func(word1, word2 uint64) float64{"rand": unitOf, "randn": normalOf(0, 1)} {
		full := "numpy.random." + name
		names[name] = starlark.NewBuiltin(full, func(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
			d, err := drawOf(t, full)
			if err != nil {
				return nil, err
			}
			var size starlark.Value = args
			if len(args) == 0 {
				size = starlark.None
			}
			v, err := d.array(size, tensor.F64, of)
			if err == nil && d.env.trace != nil {
				d.env.trace(full, v)
			}
			return v, err
		})
	}
	names["integers"] = names["randint"]
	for _, name := range []string{"RandomState", "default_rng"} { // the case's decisions, as all of numpy.random
		names[name] = starlark.NewBuiltin("numpy.random."+name, func(*starlark.Thread, *starlark.Builtin, starlark.Tuple, []starlark.Tuple) (starlark.Value, error) {
			return numpyRandom, nil
		})
	}
	numpyRandom.names = names
}

// wholes reads integers.
func (a arguments) wholes(params ...string) ([]int64, error) {
	out := make([]int64, len(params))
	for i, p := range params {
		v, err := settled(a.get(p))
		if err != nil {
			return nil, err
		}
		n, whole := number(v).(starlark.Int)
		var fits bool
		if out[i], fits = n.Int64(); !whole || !fits || out[i] > 1<<52 || out[i] < -1<<52 {
			return nil, a.wrong(p, "an int of at most 52 bits")
		}
	}
	return out, nil
}

func (a arguments) reals(defaults map[string]float64, params ...string) ([]float64, error) {
	out := make([]float64, len(params))
	for i, p := range params {
		v := a.get(p)
		if v == nil {
			out[i] = defaults[p]
			continue
		}
		v, err := settled(v)
		if err != nil {
			return nil, err
		}
		f, ok := starlark.AsFloat(number(v))
		if !ok {
			return nil, a.wrong(p, "a number")
		}
		out[i] = f
	}
	return out, nil
}

func uniform(d *draw, a arguments) (starlark.Value, error) {
	xs, err := a.reals(nil, "a", "b")
	if err != nil {
		return nil, err
	}
	lo, hi := min(xs[0], xs[1]), max(xs[0], xs[1])
	return starlark.Float(d.gen.Source.Float(lo, hi)), nil
}

func randInt(d *draw, a arguments) (starlark.Value, error) {
	xs, err := a.wholes("a", "b")
	if err != nil {
		return nil, err
	}
	if xs[0] > xs[1] {
		return nil, fmt.Errorf("empty range for randint(%d, %d)", xs[0], xs[1])
	}
	return starlark.MakeInt64(d.gen.Int(xs[0], xs[1]+1)), nil
}

func randRange(d *draw, a arguments) (starlark.Value, error) {
	if a.get("stop") == nil {
		a.values = []starlark.Value{starlark.MakeInt(0), a.values[0], nil}
	}
	if a.get("step") == nil {
		a.values = append(a.values[:2:2], starlark.MakeInt(1))
	}
	xs, err := a.wholes("start", "stop", "step")
	if err != nil {
		return nil, err
	}
	step := xs[2]
	if step == 0 {
		return nil, fmt.Errorf("zero step for randrange()")
	}
	n := (xs[1] - xs[0] + step - sign(step)) / step
	if n <= 0 {
		return nil, fmt.Errorf("empty range for randrange()")
	}
	return starlark.MakeInt64(xs[0] + step*d.gen.Int(0, n)), nil
}

func sign(n int64) int64 {
	if n < 0 {
		return -1
	}
	return 1
}

func pick(d *draw, a arguments) (starlark.Value, error) {
	vs, err := iterate(d.thread, a.values[0])
	if err != nil {
		return nil, err
	}
	if len(vs) == 0 {
		return nil, fmt.Errorf("cannot choose from an empty sequence")
	}
	return vs[d.gen.Index(len(vs))], nil
}

// shuffled permutes a copy, from the end on as Python does.
func (d *draw) shuffled(vs []starlark.Value) []starlark.Value {
	out := slices.Clone(vs)
	for i := len(out) - 1; i > 0; i-- {
		j := i - d.gen.Index(i+1)
		out[i], out[j] = out[j], out[i]
	}
	return out
}

func shuffle(d *draw, a arguments) (starlark.Value, error) {
	switch x := a.values[0].(type) {
	case *starlark.List:
		vs, _ := sequence(x)
		return starlark.None, replaceAll(x, d.shuffled(vs))
	case *array:
		v, err := d.permuted(x)
		if err != nil {
			return nil, err
		}
		x.t.CopyFrom(v.t)
		return starlark.None, nil
	}
	return nil, fmt.Errorf("shuffle needs a list, not %s", a.values[0].Type())
}

// permuted is an array with its rows in another order.
func (d *draw) permuted(a *array) (*array, error) {
	rows, err := a.rows()
	if err != nil {
		return nil, err
	}
	order := make([]starlark.Value, len(rows))
	for i := range order {
		order[i] = starlark.MakeInt(i)
	}
	out := tensor.New(a.t.DType(), a.t.Shape()...)
	for i, j := range d.shuffled(order) {
		from, _ := starlark.AsInt32(j)
		out.Select(0, i).CopyFrom(a.t.Select(0, from))
	}
	return &array{out}, nil
}

func sample(d *draw, a arguments) (starlark.Value, error) {
	vs, err := iterate(d.thread, a.values[0])
	if err != nil {
		return nil, err
	}
	k, err := starlark.AsInt32(a.values[1])
	if err != nil || k < 0 || k > len(vs) {
		return nil, fmt.Errorf("sample larger than population or is negative")
	}
	left := slices.Clone(vs)
	out := make([]starlark.Value, k)
	for i := range out {
		j := d.gen.Index(len(left))
		out[i] = left[j]
		left = slices.Delete(left, j, j+1)
	}
	return starlark.NewList(out), nil
}

func choices(d *draw, a arguments) (starlark.Value, error) {
	vs, err := iterate(d.thread, a.values[0])
	if err != nil {
		return nil, err
	}
	k := 1
	if v := a.get("k"); v != nil {
		if k, err = starlark.AsInt32(v); err != nil || k < 0 || k > 1<<12 {
			return nil, a.wrong("k", "an int from 0 to 4096")
		}
	}
	if len(vs) == 0 {
		return nil, fmt.Errorf("cannot choose from an empty sequence")
	}
	if a.get("cum_weights") != nil {
		return nil, lack("cum_weights of random.choices is not supported in test files")
	}
	weights, err := weightsOf(d.thread, a.get("weights"), len(vs))
	if err != nil {
		return nil, err
	}
	out := make([]starlark.Value, k)
	for i := range out {
		out[i] = vs[d.pickIndex(len(vs), weights)]
	}
	return starlark.NewList(out), nil
}

func (d *draw) pickIndex(n int, weights []float64) int {
	if weights == nil {
		return d.gen.Index(n)
	}
	return d.gen.Weighted(weights)
}

func weightsOf(t *starlark.Thread, v starlark.Value, n int) ([]float64, error) {
	if v == nil || v == starlark.None {
		return nil, nil
	}
	vs, err := iterate(t, v)
	if err != nil {
		return nil, err
	}
	out := make([]float64, len(vs))
	for i, v := range vs {
		f, ok := starlark.AsFloat(number(v))
		if !ok || !(f >= 0) || math.IsInf(f, 0) {
			return nil, fmt.Errorf("weights must be numbers that are not negative")
		}
		out[i] = f
	}
	if len(out) != n {
		return nil, fmt.Errorf("%d weights for %d elements", len(out), n)
	}
	return out, nil
}

func gauss(d *draw, a arguments) (starlark.Value, error) {
	xs, err := a.reals(map[string]float64{"sigma": 1}, "mu", "sigma")
	if err != nil {
		return nil, err
	}
	return starlark.Float(boxMuller(xs[0], xs[1], 1-d.gen.Source.Float(0, 1), d.gen.Source.Float(0, 1))), nil
}

// boxMuller maps u in (0, 1] and v in [0, 1) to a normal distribution.
func boxMuller(loc, scale, u, v float64) float64 {
	r := math.Sqrt(-2 * math.Log(u))
	return loc + float64(scale*float64(r*math.Cos(float64(2*math.Pi*v))))
}

// unitOf maps words to [0, 1).
func unitOf(word, _ uint64) float64 { return float64(float64(word>>11) * 0x1p-53) }

// normalOf maps words to a normal distribution.
func normalOf(loc, scale float64) func(a, b uint64) float64 {
	return func(a, b uint64) float64 {
		v := unitOf(a, 0)
		return boxMuller(loc, scale, float64(1-v), unitOf(b, 0))
	}
}

// array draws an array whose elements follow from one key; without a size, one
// number.
func (d *draw) array(size starlark.Value, dtype tensor.DType, f func(a, b uint64) float64) (starlark.Value, error) {
	var shape []int
	if size != nil && size != starlark.None {
		var err error
		if shape, err = dims(size); err != nil {
			return nil, err
		}
	}
	rng := choice.NewPhilox(d.gen.Key())
	out := tensor.New(dtype, shape...)
	for i := range out.Len() {
		a, b := rng.Pair(uint64(i))
		v := f(a, b)
		if dtype.IsInt() {
			out.SetInt(i, int64(v))
		} else {
			out.Set(i, complex(v, 0))
		}
	}
	return (&array{out}).scalar(), nil
}

func unitArray(d *draw, a arguments) (starlark.Value, error) {
	return d.array(a.get("size"), tensor.F64, unitOf)
}

func uniformArray(d *draw, a arguments) (starlark.Value, error) {
	xs, err := a.reals(map[string]float64{"high": 1}, "low", "high")
	if err != nil {
		return nil, err
	}
	return d.array(a.get("size"), tensor.F64, func(p, q uint64) float64 { return xs[0] + float64((xs[1]-xs[0])*unitOf(p, q)) })
}

func normalArray(d *draw, a arguments) (starlark.Value, error) {
	xs, err := a.reals(map[string]float64{"scale": 1}, "loc", "scale")
	if err != nil {
		return nil, err
	}
	return d.array(a.get("size"), tensor.F64, normalOf(xs[0], xs[1]))
}

func intArray(d *draw, a arguments) (starlark.Value, error) {
	if a.get("high") == nil || a.get("high") == starlark.None {
		a.values = []starlark.Value{starlark.MakeInt(0), a.values[0], a.values[2], a.values[3]}
	}
	xs, err := a.wholes("low", "high")
	if err != nil {
		return nil, err
	}
	if xs[0] >= xs[1] {
		return nil, fmt.Errorf("low >= high")
	}
	dtype, err := numpyDType(a.get("dtype"))
	if err != nil {
		return nil, err
	}
	if dtype == tensor.Invalid {
		dtype = tensor.I64
	}
	return d.array(a.get("size"), dtype, func(p, q uint64) float64 {
		return float64(xs[0]) + math.Floor(float64(unitOf(p, q)*float64(xs[1]-xs[0])))
	})
}

func choiceArray(d *draw, a arguments) (starlark.Value, error) {
	from := a.values[0]
	if n, ok := number(from).(starlark.Int); ok {
		k, err := starlark.AsInt32(n)
		if err != nil || k < 1 || k > maxElements {
			return nil, a.wrong("a", "a positive int or a sequence")
		}
		from = &array{tensor.New(tensor.I64, k)}
		for i := range k {
			from.(*array).t.SetInt(i, int64(i))
		}
	}
	pool, err := toArray(d.thread, from, tensor.Invalid)
	if err != nil {
		return nil, err
	}
	rows, err := pool.rows()
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("'a' cannot be empty")
	}
	weights, err := weightsOf(d.thread, a.get("p"), len(rows))
	if err != nil {
		return nil, err
	}
	if a.get("size") == nil || a.get("size") == starlark.None {
		return rows[d.pickIndex(len(rows), weights)], nil
	}
	shape, err := dims(a.get("size"))
	if err != nil {
		return nil, err
	}
	n := tensor.NumElements(shape)
	unique := a.get("replace") != nil && !bool(a.get("replace").Truth())
	if n > 1<<14 || unique && n > len(rows) {
		return nil, fmt.Errorf("cannot take a sample of that size")
	}
	picked := make([]starlark.Value, n)
	left := slices.Clone(rows)
	weights = slices.Clone(weights)
	for i := range picked {
		j := d.pickIndex(len(left), weights)
		picked[i] = left[j]
		if unique {
			left = slices.Delete(left, j, j+1)
			if weights != nil {
				weights = slices.Delete(weights, j, j+1)
			}
		}
	}
	out, err := toArray(d.thread, starlark.NewList(picked), pool.t.DType())
	if err != nil {
		return nil, err
	}
	return out.reshaped(append(shape, pool.t.Shape()[1:]...))
}

func permutation(d *draw, a arguments) (starlark.Value, error) {
	from := a.values[0]
	if n, ok := number(from).(starlark.Int); ok {
		k, err := starlark.AsInt32(n)
		if err != nil || k < 0 || k > maxElements {
			return nil, a.wrong("x", "an int that is not negative, or a sequence")
		}
		t := tensor.New(tensor.I64, k)
		for i := range k {
			t.SetInt(i, int64(i))
		}
		return d.permuted(&array{t})
	}
	x, err := toArray(d.thread, from, tensor.Invalid)
	if err != nil {
		return nil, err
	}
	return d.permuted(x)
}
