package suites_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"plumb/choice"
	"plumb/nn"
	"plumb/op"
	"plumb/ops"
	"plumb/program"
	"plumb/script"
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

// draws calls f with n programs of every test, none of which may look at a
// computed value: the suites are drawn without a reference.
func draws(t testing.TB, n int, f func(*script.Test, *program.Program)) {
	for _, test := range load(t) {
		for i := range uint64(n) {
			p, err := test.Draw(choice.New(choice.DeriveName(i, test.Name)), script.Env{Signatures: table{}})
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
		if err := p.Check(); err != nil {
			t.Errorf("%s: %v\n%s", test.Name, err, p)
		}
		for _, c := range p.Calls {
			if c.Target == "getattr" {
				c.Target = fmt.Sprintf("Tensor.%v", c.Args[1])
			}
			if sigs, _ := (table{}).Signatures(c.Target); sigs == nil && !strings.HasPrefix(c.Target, "Module.") && c.Target != "operator.getitem" {
				t.Errorf("%s: the table does not know %s", test.Name, c.Target)
			}
		}
	})
	if total < 2000 {
		t.Errorf("%d cases, want at least 2000", total)
	}
}

// TestEveryOperatorIsTested holds the suites to the operators that they are for.
func TestEveryOperatorIsTested(t *testing.T) {
	used := map[string]bool{}
	draws(t, 3, func(_ *script.Test, p *program.Program) {
		for _, c := range p.Calls {
			last := c.Target[strings.LastIndexByte(c.Target, '.')+1:]
			used[last] = true
		}
	})
	for _, want := range [][]string{
		{"add"}, {"sub"}, {"mul"}, {"div", "truediv"}, {"neg"}, {"abs"}, {"pow"}, {"exp"}, {"log"}, {"sqrt"}, {"tanh"}, {"sigmoid"},
		{"relu"}, {"leaky_relu"}, {"gelu"}, {"softmax"}, {"log_softmax"}, {"sum"}, {"mean"}, {"max"}, {"matmul"}, {"linear"}, {"conv2d"},
		{"conv_transpose2d"}, {"max_pool2d"}, {"batch_norm"}, {"layer_norm"}, {"flatten"}, {"reshape"}, {"transpose"}, {"permute"}, {"cat"}, {"where"},
		{"Conv2d"}, {"ConvTranspose2d"}, {"Linear"}, {"BatchNorm2d"}, {"LayerNorm"}, {"MaxPool2d"}, {"Flatten"}, {"GELU"}, {"Softmax"},
	} {
		if !slices.ContainsFunc(want, func(n string) bool { return used[n] }) {
			t.Errorf("no test calls %s", want[0])
		}
	}
}
