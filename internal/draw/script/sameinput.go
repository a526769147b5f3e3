package script

import (
	"math"
	"slices"
	"strings"

	"plumb/internal/draw/choice"
	"plumb/internal/draw/gen"
	"plumb/op"
	"plumb/ops"
	"plumb/program"
	"plumb/tensor"
)

// What a test makes with torch.randn and the like is data to it: both sides are given the same,
// drawn by Plumb, for their own draws could be held to a distribution alone, and all that is
// computed from them to its shape. A draw that nothing reads stays what it is, a call whose
// law is judged. So is new memory that a test writes to or reads, part by part or as out=:
// both sides have the same numbers there, whatever they are.

// sameInput is an input that a call was replaced by.
type sameInput struct {
	name string
	call program.Call // as the test made it
	at   int          // among the calls; of a draw in place, where the copy is
}

// mostShared bounds the elements of such an input; larger ones are the subjects' own.
const mostShared = 1 << 24

// creators are the functions that fill a new tensor at random; likes those that do in the
// shape of another; fillers the methods that fill their tensor.
var (
	creators = []string{"torch.randn", "torch.rand", "torch.randint", "torch.normal", "torch.randperm"}
	likes    = []string{"torch.randn_like", "torch.rand_like", "torch.randint_like"}
	blanks   = []string{"torch.empty", "torch.empty_like", "Tensor.new_empty"} // new memory
	fillers  = []string{"Tensor.uniform_", "Tensor.normal_", "Tensor.random_", "Tensor.bernoulli_"}
	// plainKwargs are the keywords with which a draw is one of the data.
	plainKwargs = []string{"dtype", "requires_grad", "device", "size", "low", "high", "mean", "std", "input", "from", "a", "to", "b", "n", "p"}
)

// shared makes an input of a call that draws; nil for calls that stay.
func (d *draw) shared(c program.Call) (*symbol, error) {
	filled := slices.Contains(fillers, c.Target)
	if !filled && !slices.Contains(slices.Concat(creators, likes, blanks), c.Target) ||
		d.test.global || d.ranked || d.test.Profile != "" || !d.ordinary(&c) {
		return nil, nil
	}
	call, err := d.boundDraw(&c)
	if err != nil {
		return nil, d.fault
	}
	metas, err := call.Infer()
	if err != nil || len(metas) != 1 || tensor.NumElements(metas[0].Shape) > mostShared || metas[0].Strides != nil && !slices.Equal(metas[0].Strides, tensor.ContiguousStrides(metas[0].Shape)) {
		return nil, nil
	}
	fill, ok := d.fillOf(c.Target, call, metas[0])
	if !ok {
		return nil, nil
	}
	c.Scopes, c.Place = d.current(), d.place()
	in := d.input(&gen.Tensor{DType: metas[0].DType, Shape: metas[0].Shape, Fill: fill, RequiresGrad: call.MakesLeaf()})
	same := sameInput{string(in.ref), c, len(d.prog.Calls)}
	if filled {
		if in, err = d.record(program.Call{Target: "Tensor.copy_", Args: []any{c.Args[0], in.ref}}); err != nil {
			return nil, err
		}
		in.kind = kindTensor
	}
	d.same = append(d.same, same)
	return in, nil
}

// ordinary reports whether a call has no keyword that makes more of it than data.
func (d *draw) ordinary(c *program.Call) bool {
	for _, kw := range c.Kwargs {
		if !slices.Contains(plainKwargs, kw.Name) || kw.Name == "device" && kw.Value != nil && !d.isDefaultDevice(kw.Value) {
			return false
		}
	}
	return true
}

// boundDraw binds the call; a tensor among its arguments stands for what it is known to be. The
// top of a file is run once without a reference: it asks none later either, so that the names
// are the same.
func (d *draw) boundDraw(c *program.Call) (*op.Call, error) {
	_, loads := d.thread.Local(loadKey).(*loader)
	asks := !loads && d.env.Observer != nil && !(slices.Contains(blanks, c.Target) && d.long())
	args, kwargs, err := c.OpArgs(func(ref program.Ref) (any, error) {
		s, made := d.symbols[ref], d.facts[ref]
		switch {
		case s == nil:
		case s.input != nil:
			return tensor.New(s.input.DType, s.input.Shape...), nil
		case made != nil:
			return tensor.New(made.DType, made.Shape...), nil
		case asks:
			if t, err := s.tensor(); err == nil && t != nil {
				return t, nil
			}
		}
		return nil, ErrNoObserver
	})
	if err != nil {
		return nil, err
	}
	return program.Resolve(ops.Table(), c.Target, args, kwargs)
}

// fillOf is the distribution of a call's draws; false for those that a fill has not.
func (d *draw) fillOf(target string, call *op.Call, of op.Meta) (program.Fill, bool) {
	number := func(name string, otherwise float64) float64 {
		i := slices.IndexFunc(call.Args.Sig.Params, func(p op.Param) bool { return p.Name == name })
		if i < 0 {
			return otherwise
		}
		switch v := call.Args.Vals[i].(type) {
		case int:
			return float64(v)
		case float64:
			return v
		case nil:
			return otherwise
		}
		return math.NaN()
	}
	f := program.Fill{}
	if slices.Contains(blanks, target) {
		return d.blank(of.DType), true
	}
	switch target[strings.LastIndexByte(target, '.')+1:] {
	case "randn", "randn_like", "normal", "normal_":
		f.Dist, f.Lo, f.Hi = program.Normal, number("mean", 0), number("std", 1)
		if of.DType.IsComplex() {
			f.Hi /= math.Sqrt2 // of each part
		}
	case "rand", "rand_like", "uniform_":
		f.Dist, f.Lo, f.Hi = program.Uniform, number("from", 0), number("to", 1)
	case "randint", "randint_like":
		f.Dist, f.Lo, f.Hi = program.Integer, number("low", 0), number("high", math.NaN())
	case "random_":
		f.Dist, f.Lo, f.Hi = program.Integer, number("from", 0), number("to", math.NaN())
	case "bernoulli_":
		f.Dist, f.Lo, f.Hi, f.Density, f.Key = program.Integer, 1, 2, number("p", math.NaN()), d.nextKey()
		return f, f.Density > 0 && f.Density <= 1
	case "randperm":
		if len(of.Shape) != 1 || of.Shape[0] > mostPermuted {
			return f, false
		}
		f.Dist, f.Data = program.Literal, d.permutation(of)
		return f, true
	}
	const exact = 1 << 53
	legal := f.Lo < f.Hi && f.Lo >= -exact && f.Hi <= exact
	if f.Dist == program.Normal {
		legal = f.Hi >= 0 && !math.IsInf(f.Lo, 0) && !math.IsInf(f.Hi, 0) && !math.IsNaN(f.Lo)
	}
	if f.Dist != program.Integer {
		legal = legal && (of.DType.IsFloat() || of.DType.IsComplex() && target != "Tensor.uniform_")
	}
	f.Key = d.nextKey()
	return f, legal
}

// blankStream is the random stream of new memory, which draws nothing of the test's.
const blankStream = 1 << 41

func (d *draw) blank(t tensor.DType) program.Fill {
	f := program.Fill{Dist: program.Normal, Hi: 1, Key: choice.Derive(d.prog.Seed, blankStream, uint64(len(d.prog.Inputs)))}
	switch {
	case t == tensor.Bool:
		f.Dist, f.Hi = program.Integer, 2
	case !t.IsFloat() && !t.IsComplex():
		f.Dist, f.Hi = program.Integer, 8
	}
	return f
}

// mostPermuted bounds the permutations that are data: their elements are in the program's text.
const mostPermuted = 1 << 12

func (d *draw) permutation(of op.Meta) *tensor.Tensor {
	t := tensor.New(of.DType, of.Shape...)
	random := choice.NewPhilox(d.nextKey())
	for i := range t.Len() {
		word, _ := random.Pair(uint64(i))
		at := int(word % uint64(i+1))
		t.SetInt(i, t.Int(at))
		t.SetInt(at, int64(i))
	}
	return t
}

// dataStream is where the test's data are in a random stream: that of a seed, which the test may
// set, and of the case.
type dataStream struct {
	seed  int64
	drawn uint64
}

func (d *draw) nextKey() uint64 {
	d.data.drawn++
	return choice.Derive(d.prog.Seed, uint64(d.data.seed), d.data.drawn)
}

// seeded says how draws go on: those of the subjects, and those of the test's data.
func (d *draw) seeded(seed int64) { d.seed, d.data = &seed, dataStream{seed: seed} }

// unshare makes a call again of each draw that no other call reads: it is what is tested.
func (d *draw) unshare() {
	for _, s := range slices.Backward(d.same) {
		calls, names := d.prog.Calls, []string{s.name}
		filled := slices.Contains(fillers, s.call.Target)
		if filled {
			own := string(calls[s.at].Args[0].(program.Ref))
			names = []string{own, calls[s.at].Result}
			if !d.isWhole(own) {
				continue // others may read what it is a part of
			}
			s.call.Result = calls[s.at].Result
			calls = slices.Delete(slices.Clone(calls), s.at, s.at+1)
		} else {
			s.call.Result = s.name
		}
		if slices.ContainsFunc(calls, func(c program.Call) bool {
			return slices.ContainsFunc(refsOf(&c), func(r program.Ref) bool { return slices.Contains(names, string(r)) })
		}) {
			continue
		}
		d.prog.Calls = slices.Insert(slices.Clone(calls), s.at, s.call)
		d.prog.Inputs = slices.DeleteFunc(d.prog.Inputs, func(in program.Input) bool { return in.Name == s.name })
	}
}

// isWhole reports whether a value is an input, or a call's that gives no view of another.
func (d *draw) isWhole(name string) bool {
	i := slices.IndexFunc(d.prog.Calls, func(c program.Call) bool { return c.Result == name })
	if i < 0 {
		return true
	}
	defs := ops.Table().Lookup(d.prog.Calls[i].Target)
	return len(defs) > 0 && !slices.ContainsFunc(defs, func(def *op.Def) bool { return def.View != nil || def.Compose != nil })
}
