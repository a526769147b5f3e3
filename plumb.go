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
	"testing"

	"plumb/api"
	"plumb/backend"
	"plumb/backend/native"
	"plumb/internal/campaign"
	"plumb/internal/draw/choice"
	"plumb/internal/find/bundle"
	"plumb/internal/gotest"
	"plumb/internal/onekernel"
	"plumb/internal/safetensors"
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
