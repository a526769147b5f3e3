// Package plumb checks tensor programs under go test: it draws random cases,
// runs each on a reference (PyTorch) and on a candidate (Plumb's own operators,
// or a backend of yours), forward and backward, and compares every tensor.
//
//	func TestConv2D(t *testing.T) {
//		plumb.Check(t, func(p *plumb.T) {
//			channels := p.Int(1, 6)
//			x := p.Tensor(plumb.NDim(4), plumb.Dim(1, channels))
//			w := p.Tensor(plumb.NDim(4), plumb.Dim(1, channels))
//			y := p.Torch("nn.functional.conv2d", x, w, plumb.Kw("stride", p.Maybe(p.Int(1, 4))))
//			p.Return(y)
//		})
//	}
//
// The function runs once for each case. It draws from its T and records calls;
// nothing is computed until it has returned, or asks for a value (Value.Shape,
// Value.Item), which is the reference's. What every call gives is compared, and
// the gradients that Return and Backward ask for, of the candidate call by call
// and, where it has them, of its static graphs (CheckGraph). A draw that both
// sides refuse is replaced by another.
//
// Calls are recorded by PyTorch's names (T.Torch, T.Module, Value.Method), or
// through the typed functions of package api on Value.Typed; both may be mixed.
//
// What fails prints the operator, the error and its limit, the program, and the
// command that draws it again: a case follows from the seed, the test's name
// and its number alone. The flags are those of go test:
//
//	go test -plumb.n=200 -plumb.seed=7       200 cases a test, the same every time
//	go test -plumb.reference=none            without a reference: the candidate is held to itself
//	go test -plumb.check-graph=false         call by call only, not as static graphs
//	go test -plumb.record=cases.plumb        keep what the reference does, for machines without it:
//	go test -plumb.reference=recorded:cases.plumb
//
// Without PyTorch, and unless a reference is asked for, the tests are skipped.
//
// Package check derives such tests from an operator's literal alone.
package plumb

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"plumb/api"
	"plumb/backend"
	"plumb/backend/native"
	"plumb/internal/campaign"
	"plumb/internal/draw/choice"
	"plumb/internal/draw/gen"
	"plumb/internal/find/bundle"
	"plumb/internal/gotest"
	"plumb/internal/module"
	"plumb/internal/onekernel"
	"plumb/internal/safetensors"
	"plumb/internal/where"
	"plumb/nn"
	"plumb/op"
	"plumb/ops"
	"plumb/program"
	"plumb/tensor"
)

// Cases is how many cases a test draws, unless N or -plumb.n says otherwise.
const Cases = 20

// Option changes what Check does.
type Option func(*config)

type config struct {
	n          int
	table      *op.Table
	rtol, atol *float64
	second     bool
	graph      bool
	floats     []tensor.DType
	candidates []campaign.Candidate
}

// N sets the number of cases; -plumb.n overrides it.
func N(n int) Option { return func(c *config) { c.n = n } }

// Tolerance compares by |candidate − reference| ≤ atol + rtol·|reference|, in
// place of the operators' numerics classes.
func Tolerance(rtol, atol float64) Option {
	return func(c *config) { c.rtol, c.atol = &rtol, &atol }
}

// DTypes draws all cases once for each of the dtypes, which is that of random
// tensors that would be float32 and of modules' parameters.
func DTypes(dtypes ...tensor.DType) Option {
	return func(c *config) { c.floats = append(c.floats, dtypes...) }
}

// SecondOrder compares gradients of the second order too: the gradients of the
// inputs, each times a random cotangent, are differentiated together.
func SecondOrder() Option { return func(c *config) { c.second = true } }

// CheckGraph says whether each case also runs as static graphs, where the
// candidate has them: with passes and without, forward, backward, and for
// modules a step of SGD. It does unless the option, or -plumb.check-graph,
// says otherwise.
func CheckGraph(check bool) Option { return func(c *config) { c.graph = check } }

// Table sets the operators that native runs and that typed calls are recorded
// by, such as op.NewTable(append(mine, ops.All()...)...): of two operators that
// answer to one name, the first counts.
func Table(t *op.Table) Option { return func(c *config) { c.table = t } }

// Candidate judges a backend of the caller's, in place of -plumb.candidate; it
// may be given several times. Check leaves the backend open, and runs one case
// on it at a time.
func Candidate(b backend.Backend) Option {
	return func(c *config) {
		c.candidates = append(c.candidates, campaign.Candidate{Name: b.Info().Name, Open: gotest.Shared(b)})
	}
}

// Check draws cases with f, runs them on the reference and the candidates, and
// fails the test where they differ. It judges as plumb run does.
func Check(t testing.TB, f func(p *T), options ...Option) {
	t.Helper()
	c := config{n: Cases, graph: true}
	for _, o := range options {
		o(&c)
	}
	if c.table == nil {
		c.table = ops.Table()
	}
	seed := gotest.Seed()
	gotest.Run(t, gotest.Config{Table: c.table, Seed: seed, Candidates: c.candidates, Tests: c.tests(t.Name(), seed, f)})
}

// tests returns the test of a name, one for each dtype where some are asked for.
func (c *config) tests(name string, seed uint64, f func(*T)) []campaign.Test {
	if c.floats == nil {
		return []campaign.Test{c.test(name, seed, tensor.Invalid, f)}
	}
	var out []campaign.Test
	for _, d := range c.floats {
		out = append(out, c.test(name+"["+d.String()+"]", seed, d, f))
	}
	return out
}

func (c *config) test(name string, seed uint64, float tensor.DType, f func(*T)) campaign.Test {
	test := campaign.Drawn(name, name, gotest.Number(c.n), choice.Any(choice.DeriveName(seed, name)), func(src *choice.Source, _ int, o campaign.Observer) (*program.Program, error) {
		return c.draw(name, float, src, o, f)
	})
	test.Graph = c.graph
	return test
}

// Replay runs the program of a finding's bundle, which dir holds, on Plumb's
// own operators, and fails the test where the result differs from what the
// reference gave by more than the limit of the finding.
func Replay(t testing.TB, dir string) {
	t.Helper()
	replay(t, dir, func(b *bundle.Bundle) (bundle.Result, error) {
		job, err := b.Job()
		if err != nil {
			return bundle.Result{}, err
		}
		outcome, err := native.New(ops.Table(), nn.Modules()).Run(t.Context(), job)
		if err != nil {
			return bundle.Result{}, err
		}
		return b.Judge(outcome)
	})
}

// ReplayCalls is Replay with the bundle's program written as calls of package
// api: run returns the tensor that the finding is about, or the error of the
// call that refused.
func ReplayCalls(t testing.TB, dir string, run func(s *api.Session) (*tensor.Tensor, error)) {
	t.Helper()
	replay(t, dir, func(b *bundle.Bundle) (bundle.Result, error) {
		return b.JudgeTensor(run(api.NewSession()))
	})
}

func replay(t testing.TB, dir string, judge func(*bundle.Bundle) (bundle.Result, error)) {
	t.Helper()
	b, err := bundle.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	result, err := judge(b)
	if err != nil {
		t.Fatal(err)
	}
	if t.Log(result.Text); result.Misaligned {
		t.Fail()
	}
}

// LoadTensor reads a tensor of a bundle's safetensors file. It panics where
// there is none.
func LoadTensor(file, name string) *tensor.Tensor {
	data, err := os.ReadFile(file)
	if err != nil {
		panic(err)
	}
	f, err := safetensors.Parse(data, safetensors.Limits{})
	if err != nil {
		panic(fmt.Errorf("%s: %w", file, err))
	}
	t := f.Tensor(name)
	if t == nil {
		panic(fmt.Errorf("%s has no tensor %s", file, name))
	}
	return t
}

// KernelOptions say which kernel is judged by what, as the flags of plumb kernel do;
// what is zero is as it is there without flags, the seed 0.
type KernelOptions = onekernel.Options

// KernelReport is what is said of a kernel; docs/kernel.md states its fields.
type KernelReport = onekernel.Report

// Kernel judges one kernel of yours, a function in Python, Triton or C, by the
// function that it should equal, and fails the test unless the verdict is "right", or
// "limited" where that is allowed:
//
//	func TestSoftmax(t *testing.T) {
//		plumb.Kernel(t, plumb.KernelOptions{Kernel: "softmax.py::my_softmax", Against: "torch.softmax"})
//	}
//
// It does what plumb kernel does, in processes of their own. Without PyTorch the test
// is skipped.
func Kernel(t testing.TB, o KernelOptions) *KernelReport {
	t.Helper()
	o = o.Filled()
	cfg, err := o.Config()
	if fault := (*backend.Fault)(nil); errors.As(err, &fault) && o.Python == "" {
		t.Skipf("needs PyTorch: %v (fix: %s)", fault.Err, fault.Fix)
	}
	if err != nil {
		t.Fatal(err)
	}
	r, err := onekernel.Judge(context.Background(), *cfg)
	if err != nil {
		t.Fatal(err)
	}
	if !o.Passes(r) {
		t.Errorf("%s", r.Text())
	}
	return r
}

// T is one case that is being drawn: the source of its random values and the
// record of its calls. It is for the goroutine of the function that it is
// given to. A mistake in the test, such as a bound that is no number, ends the
// draw and fails the test at its line.
type T struct {
	gen      *gen.Case
	prog     *program.Program
	table    *op.Table
	observer campaign.Observer
	session  *api.Session
	values   map[program.Ref]*Value
	seen     map[program.Ref]backend.Value // observed since the last call
	changed  bool                          // some call was in place
}

// generate draws from a generator. A tensor is a *Value, an int an int64;
// Nothing's value leaves an argument out.
func (p *T) generate(n *gen.Node) any {
	v, err := n.Value(p.gen)
	if err != nil {
		p.fail(err)
	}
	if t, ok := v.(*gen.Tensor); ok {
		return p.add(program.Input{DType: t.DType, Shape: t.Shape, Strides: t.Strides, Fill: t.Fill, RequiresGrad: t.RequiresGrad})
	}
	return v
}

func (p *T) number(typ gen.Type, low, high any) any {
	n := gen.Random(low, high)
	n.To(p.gen, typ)
	return p.generate(n)
}

// Int draws an integer in [low, high).
func (p *T) Int(low, high int) int { return int(p.number(gen.Int, low, high).(int64)) }

// Float draws a number uniformly in [low, high).
func (p *T) Float(low, high float64) float64 { return p.number(gen.Float, low, high).(float64) }

// Bool draws a fair coin.
func (p *T) Bool() bool { return p.generate(gen.RandomBool()).(bool) }

// OneOf draws one of the values, each as likely as the others. Pick does so
// for values of one type.
func (p *T) OneOf(values ...any) any { return values[p.pick(nil, len(values))] }

// Weighted draws one of the values with the given probabilities, which add up
// to 1.
func (p *T) Weighted(weights []float64, values ...any) any {
	return values[p.pick(weights, len(values))]
}

// Pick draws one of the values, each as likely as the others.
func Pick[V any](p *T, values ...V) V { return values[p.pick(nil, len(values))] }

func (p *T) pick(weights []float64, n int) int {
	indices := make([]any, n)
	for i := range indices {
		indices[i] = i
	}
	node, err := gen.OneOf(weights, indices...)
	if err != nil {
		p.fail(err)
	}
	return int(p.generate(node).(int64))
}

// Nothing is the value of an argument by keyword that is left out.
func (p *T) Nothing() any { return gen.Missing{} }

// Maybe gives x or Nothing, one as likely as the other.
func (p *T) Maybe(x any) any { return p.OneOf(p.Nothing(), x) }

// DType draws an element type of AutoTest's groups, uniformly over all their
// members: all, arithmetic, bfloat16, bool, complex, float, half, image, index,
// int, pod, signed, unsigned.
func (p *T) DType(groups ...string) tensor.DType {
	n, err := gen.RandomDType(groups...)
	if err != nil {
		p.fail(err)
	}
	return p.generate(n).(tensor.DType)
}

// Device draws one of the devices of the run: "cpu".
func (p *T) Device() string { return p.generate(gen.RandomDevice()).(string) }

// TensorOption says what a drawn tensor is like.
type TensorOption func(*gen.TensorSpec) error

// NDim sets the number of dimensions: 1 to 5 unless it is given.
func NDim(n int) TensorOption {
	return func(s *gen.TensorSpec) error { s.NDim = n; return nil }
}

// Dim sets the size of one of the first five dimensions. Unless it is given,
// dimension 0 has the size 1, as in AutoTest, and any other 1 to 7.
func Dim(i, size int) TensorOption {
	return func(s *gen.TensorSpec) error {
		if i < 0 || i >= len(s.Dims) {
			return fmt.Errorf("plumb.Dim(%d, %d): only the dimensions 0 to %d can be set", i, size, len(s.Dims)-1)
		}
		s.Dims[i] = size
		return nil
	}
}

// Dims sets the whole shape, of at most five dimensions.
func Dims(sizes ...int) TensorOption {
	return func(s *gen.TensorSpec) error {
		s.NDim = len(sizes)
		for i, n := range sizes {
			if err := Dim(i, n)(s); err != nil {
				return err
			}
		}
		return nil
	}
}

// DType sets the element type: float32 unless it is given.
func DType(d tensor.DType) TensorOption {
	return func(s *gen.TensorSpec) error { s.DType = d; return nil }
}

// Low sets the least element. Elements are uniform: floats in [-1, 1), integers
// in [-10, 11), both parts of a complex in [-10, 10) unless Low or High are given.
func Low(x float64) TensorOption {
	return func(s *gen.TensorSpec) error { s.Low = x; return nil }
}

// High sets the end of the elements' range, which is not in it.
func High(x float64) TensorOption {
	return func(s *gen.TensorSpec) error { s.High = x; return nil }
}

// RequiresGrad says whether the gradient of the tensor is compared: it is,
// unless the option says otherwise or the elements are integers or bools.
func RequiresGrad(b bool) TensorOption {
	return func(s *gen.TensorSpec) error { s.RequiresGrad = b; return nil }
}

// Layouts draws the tensor's layout among those named: "contiguous", "strided",
// "transposed", "expanded", "channels_last", and "non-contiguous" for strided
// and transposed. Unless it is given, tensors are contiguous.
func Layouts(names ...string) TensorOption {
	return func(s *gen.TensorSpec) error {
		for _, n := range names {
			ls, err := gen.ParseLayout(n)
			if err != nil {
				return fmt.Errorf("plumb.Layouts: %w", err)
			}
			s.Layouts = append(s.Layouts, ls...)
		}
		return nil
	}
}

// Special mixes edge values among the elements: "zeros" (of both signs), "inf",
// "nan", "subnormal", "ties", "extremes". A tensor has none of them, those of
// one kind, or those of all.
func Special(kinds ...string) TensorOption {
	return func(s *gen.TensorSpec) error {
		for _, k := range kinds {
			kind, err := program.ParseSpecial(k)
			if err != nil {
				return fmt.Errorf("plumb.Special: %w", err)
			}
			s.Special |= kind
		}
		return nil
	}
}

// Tensor draws a tensor. A quarter of those of floats hold zeros, ±1 and values
// that recur.
func (p *T) Tensor(options ...TensorOption) *Value {
	var s gen.TensorSpec
	for _, o := range options {
		if err := o(&s); err != nil {
			p.fail(err)
		}
	}
	return p.generate(gen.RandomTensor(s)).(*Value)
}

// Literal makes an input of the elements of t.
func (p *T) Literal(t *tensor.Tensor) *Value {
	return p.add(program.Input{DType: t.DType(), Shape: t.Shape(), Fill: program.Fill{Dist: program.Literal, Data: t.Contiguous()}})
}

// Return says what the test computes, as values or typed tensors: each tensor
// among them that requires a gradient is differentiated, with random
// cotangents. Without Return and Backward no gradients are compared.
func (p *T) Return(values ...any) { p.differentiate(true, values) }

// Backward differentiates the values, with random cotangents. One that requires
// no gradient is refused by the reference, and has to be by the candidate.
func (p *T) Backward(values ...any) { p.differentiate(false, values) }

func (p *T) differentiate(auto bool, values []any) {
	for _, x := range values {
		ref, ok := p.argument(x).(program.Ref)
		if !ok {
			p.fail(fmt.Errorf("%T has no gradient", x))
		}
		v := p.values[ref]
		switch v.observedKind() {
		case aTensor:
			p.prog.Backward = append(p.prog.Backward, program.Backward{Value: ref, Auto: auto, Cotangent: p.cotangent()})
		case aTuple:
			for i := range v.length() {
				p.differentiate(auto, []any{v.At(i)})
			}
		}
	}
}

func (p *T) cotangent() program.Fill {
	if p.gen.Integers {
		return program.Fill{Dist: program.Integer, Lo: 1, Hi: 4, Key: p.gen.Key()}
	}
	return program.Fill{Dist: program.Uniform, Lo: 0, Hi: 1, Key: p.gen.Key()}
}

// Fatalf ends the draw and fails the test: the test itself is wrong.
func (p *T) Fatalf(format string, args ...any) { p.fail(fmt.Errorf(format, args...)) }

// integerWeights gives an eighth of the cases small integers for elements, as
// test files have it: sums of their products are exact in any order.
var integerWeights = []float64{7, 1}

// draw runs f once and returns the program that it records.
func (c *config) draw(name string, float tensor.DType, src *choice.Source, o campaign.Observer, f func(*T)) (*program.Program, error) {
	p := &T{
		gen: gen.NewCase(src), table: c.table, observer: o,
		prog:   &program.Program{Name: name, Seed: src.Key(), RTol: c.rtol, ATol: c.atol},
		values: map[program.Ref]*Value{}, seen: map[program.Ref]backend.Value{},
	}
	p.gen.Float = float
	if float.IsFloat() {
		p.prog.DType = float
	}
	p.gen.Integers = src.Weighted(integerWeights) == 1
	if err := p.run(f); err != nil {
		return nil, err
	}
	if len(p.prog.Calls) == 0 {
		return nil, fmt.Errorf("%s: the function records no call", name)
	}
	if c.second && len(p.prog.Backward) > 0 {
		p.prog.Second = p.cotangent()
	}
	if gotest.ChecksGraph(c.graph) && p.prog.Steps() {
		p.prog.Step = program.GraphStep
	}
	return p.prog, nil
}

// stop ends a draw; a nil err leaves what was recorded as its program.
type stop struct{ err error }

// run calls f on a goroutine of its own, which f may end by t.FailNow.
func (p *T) run(f func(*T)) error {
	ended := make(chan error, 1)
	go func() {
		err := errors.New("the function ended its goroutine, as t.FailNow and t.Skip do")
		defer func() { ended <- err }()
		defer func() {
			switch r := recover().(type) {
			case nil:
			case stop:
				err = r.err
			default:
				err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
			}
		}()
		f(p)
		err = nil
	}()
	return <-ended
}

// fail ends the draw with a mistake in the test, at the line of its call.
func (p *T) fail(err error) {
	panic(stop{fmt.Errorf("%s%w", position(), err)})
}

// position is the line of the test that is running, as "file:line: ".
func position() string {
	var pcs [64]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for {
		f, more := frames.Next()
		if !strings.HasPrefix(f.Function, module.Path+".") && !strings.HasPrefix(f.Function, module.Join("api")+".") && !strings.HasPrefix(f.Function, "runtime.") {
			return fmt.Sprintf("%s:%d: ", f.File[strings.LastIndexByte(f.File, '/')+1:], f.Line)
		}
		if !more {
			return ""
		}
	}
}

// observe asks the reference for a value, of a tensor as it is by now.
func (p *T) observe(ref program.Ref) backend.Value {
	if v, ok := p.seen[ref]; ok {
		return v
	}
	so := *p.prog
	so.Inputs, so.Calls, so.Backward = slices.Clip(so.Inputs), slices.Clip(so.Calls), nil
	vs, err := p.observer.Observe(&so, ref)
	if err != nil {
		panic(stop{err})
	}
	p.seen[ref] = vs[0]
	return vs[0]
}

// add appends an input and returns its value.
func (p *T) add(in program.Input) *Value {
	in.Name = fmt.Sprintf("x%d", len(p.prog.Inputs)+1)
	p.prog.Inputs = append(p.prog.Inputs, in)
	v := &Value{p: p, ref: program.Ref(in.Name), kind: aTensor, input: len(p.prog.Inputs), metas: []op.Meta{{DType: in.DType, Shape: in.Shape, Strides: in.Strides}}}
	p.values[v.ref] = v
	return v
}

// maxCalls bounds the calls of one program.
const maxCalls = 10000

// record appends a call, with what can be inferred of its result.
func (p *T) record(c program.Call) *Value {
	if len(p.prog.Calls) == maxCalls {
		p.fail(fmt.Errorf("the test makes more than %d calls", maxCalls))
	}
	base := "v"
	if program.IsModule(c.Target) {
		base = "m"
	}
	c.Result, c.Place = fmt.Sprintf("%s%d", base, len(p.prog.Calls)+1), where.Outside(".", "api", "op")
	v := &Value{p: p, ref: program.Ref(c.Result)}
	v.infer(&c)
	p.prog.Calls = append(p.prog.Calls, c)
	p.changed = p.changed || p.prog.MayChange(len(p.prog.Calls)-1)
	p.values[v.ref] = v
	clear(p.seen)
	return v
}

// infer notes what the table tells of a call's result without computing it; a
// call that it refuses or does not know tells nothing.
func (v *Value) infer(c *program.Call) {
	if program.IsModule(c.Target) {
		v.kind = aModule
		return
	}
	bound, err := v.p.bind(c)
	if err != nil {
		v.refusal = err
		return
	}
	if bound.Def.Traits.Has(op.Dynamic) {
		return
	}
	metas, err := bound.Pure().Infer()
	if err != nil {
		v.refusal = err
		return
	}
	v.metas = metas
	switch sig := bound.Def.Sigs()[0]; {
	case sig.Plain:
		v.kind = aNumber
	case sig.Many || len(metas) > 1:
		v.kind = aTuple
	default:
		v.kind = aTensor
	}
}

// errUnknown says that the table cannot bind a call, as a value is not inferred.
var errUnknown = errors.New("not inferred")

func (p *T) bind(c *program.Call) (*op.Call, error) {
	args, kwargs, err := c.OpArgs(func(r program.Ref) (any, error) {
		v := p.values[r]
		if v == nil || v.kind != aTensor {
			return nil, errUnknown
		}
		return program.NewSymbol(r, v.metas[0]), nil
	})
	if err != nil {
		return nil, err
	}
	return program.Resolve(p.table, c.Target, args, kwargs)
}

// Session returns the session of package api that records into the case: its
// methods are the typed functions without a tensor argument.
func (p *T) Session() *api.Session {
	if p.session == nil {
		p.session = api.NewRecording(recorder{p})
	}
	return p.session
}
