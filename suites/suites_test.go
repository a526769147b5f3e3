package suites_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"plumb/backend"
	"plumb/backend/native"
	"plumb/internal/draw/choice"
	"plumb/internal/draw/script"
	"plumb/nn"
	"plumb/op"
	"plumb/ops"
	"plumb/program"
	"plumb/suites"
)

type table struct{}

func (table) Signatures(name string) ([]*op.Sig, error) {
	var sigs []*op.Sig
	for _, d := range ops.Table().Lookup(name) {
		sigs = append(sigs, d.Sigs()...)
	}
	if d := nn.Modules().Lookup(name); d != nil {
		sigs = append(sigs, d.Sigs()...)
	}
	return sigs, nil
}

func load(t testing.TB) []*script.Test {
	var tests []*script.Test
	for _, f := range suites.Files() {
		file, err := script.Load(f.Name, f.Source)
		if err != nil {
			t.Fatal(err)
		}
		if len(file.Notes) > 0 {
			t.Errorf("%s: %v", f.Name, file.Notes)
		}
		tests = append(tests, file.Tests()...)
	}
	return tests
}

// draws calls f with n programs of every test, drawn without a reference.
func draws(t testing.TB, n int, f func(*script.Test, *program.Program)) {
	o := observer{native.New(ops.Table(), nn.Modules())}
	for _, test := range load(t) {
		for i := range uint64(n) {
			p, err := test.Draw(choice.New(choice.DeriveName(i, test.Name)), script.Env{Signatures: table{}, Observer: o})
			if errors.Is(err, errRefused) {
				continue
			}
			var lacks *script.Error
			if errors.As(err, &lacks) && lacks.Unsupported {
				break
			}
			if err != nil {
				t.Errorf("case %d: %v", i, err)
				break
			}
			f(test, p)
		}
	}
}

func TestEveryDrawIsAValidProgramThatTheTableKnows(t *testing.T) {
	total := 0
	draws(t, 20, func(test *script.Test, p *program.Program) {
		total++
		if err := p.Validate(); err != nil {
			t.Errorf("%s: %v\n%s", test.Name, err, p)
		}
		for _, c := range p.Calls {
			if c.Target == "getattr" {
				c.Target = fmt.Sprintf("Tensor.%v", c.Args[1])
			}
			if sigs, _ := (table{}).Signatures(c.Target); sigs == nil && !strings.HasPrefix(c.Target, "Module.") && !slices.Contains(ofTheBackend, c.Target) {
				t.Errorf("%s: the table does not know %s", test.Name, c.Target)
			}
		}
	})
	if total < 2000 {
		t.Errorf("%d cases, want at least 2000", total)
	}
}

// ofTheBackend are what native knows beside the operators of its table.
var ofTheBackend = []string{"operator.getitem", "setattr", "torch.nn.Parameter", "Tensor.requires_grad_", "Tensor.backward", "Tensor.grad", program.ToGlobal}

// unknownToPyTorch are names that came after PyTorch 1.13, where a test of the
// suites would have nothing to compare with; the table's own tests cover them.
var unknownToPyTorch = []string{"torch.nn.functional.rms_norm", "torch.nn.RMSNorm", "torch.nn.functional.scaled_dot_product_attention"}

// withoutCalls are modules that no test can make: a ModuleDict takes a dict,
// which programs do not have, and is not called itself.
var withoutCalls = []string{"torch.nn.ModuleDict"}

// TestEveryOperatorIsTested holds the suites to the table: every operator with
// a public name, and every module, is called by some test.
func TestEveryOperatorIsTested(t *testing.T) {
	used := map[string]bool{}
	draws(t, 6, func(_ *script.Test, p *program.Program) {
		for _, c := range p.Calls {
			if c.Target == "getattr" {
				c.Target = fmt.Sprintf("Tensor.%v", c.Args[1])
			}
			used[c.Target] = true
		}
	})
	for _, n := range slices.Concat(unknownToPyTorch, withoutCalls) {
		used[n] = true
	}
	for _, d := range ops.Table().Defs() {
		if len(d.Names) > 0 && !slices.ContainsFunc(d.Names, func(n string) bool { return used[n] }) {
			t.Errorf("no test calls the operator %s: %v", d.ID(), d.Names)
		}
	}
	for _, m := range nn.Modules().Defs() {
		if !slices.ContainsFunc(m.Names, func(n string) bool { return used[n] }) {
			t.Errorf("no test makes the module %s", m.Name())
		}
	}
}

// errRefused says that a call whose result a test looks at was refused.
var errRefused = errors.New("refused")

// observer runs programs natively, for tests that look at a computed value
// while they are drawn.
type observer struct{ *native.Backend }

func (o observer) Observe(p *program.Program, refs ...program.Ref) ([]backend.Value, error) {
	return backend.Observe(p, refs, func(job *backend.Job) (*backend.Outcome, error) {
		out, err := o.Run(context.Background(), job)
		if err == nil && out.Status != backend.OK {
			err = fmt.Errorf("%s: %s", out.Status, out.Message)
		}
		if err != nil && out.Status == backend.Raised {
			err = fmt.Errorf("%w: %w", errRefused, err)
		}
		return out, err
	})
}
