package graph

import (
	"regexp"
	"strings"
	"testing"

	"plumb/nn"
	"plumb/op"
	"plumb/ops"
	"plumb/tensor"
)

// network is a graph of a module in a module, with an operator of its own.
func network(t *testing.T) *Graph {
	t.Helper()
	linear, err := nn.Modules().Lookup("torch.nn.Linear").New([]any{3, 2}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range linear.State() {
		if err := linear.Load(s.Name, tensor.New(s.DType, s.Shape...)); err != nil {
			t.Fatal(err)
		}
	}
	m, err := nn.Modules().Lookup("torch.nn.Sequential").New([]any{nn.Named{Name: "first", Module: linear}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	g := New(ops.Table(), "net", func(b *Builder, x ...op.Value) []op.Value {
		y, err := m.Call(b.Builder, []any{x[0]}, nil)
		if err != nil {
			op.Fail(err)
		}
		return []op.Value{b.Op("softmax", y[0], -1)}
	}, Options{})
	if err := g.AddModule("encoder", m); err != nil {
		t.Fatal(err)
	}
	return g
}

// TestDebugLevels builds a graph on each level: what a level adds is there from
// it on, and not before.
func TestDebugLevels(t *testing.T) {
	first := map[Level][]string{
		Stages:    {`(?m)^\(GRAPH:net\) traced: 2 operators, `, `(?m)^\(GRAPH:net\) compiled: 2 operators, .*; memory: \d+ bytes`, `(?m)^\(GRAPH:net\) built: `},
		Modules:   {`(?m)^  \(MODULE:encoder:torch.nn.Sequential\(\)\): \($`, `(?m)^    \(MODULE:encoder.first:torch.nn.Linear\(3, out_features=2\)\): \($`, `\(PARAMETER:weight:%\d+:float32\[2, 3\]`, `(?m)^      \(INPUT:%0:float32\[4, 3\]`, `(?m)^    \(OUTPUT:%\d+:float32\[4, 2\]`},
		Operators: {`(?m)^      \(OPERATOR: %\d+:float32\[4, 2\].* = linear\(%0, .*, device cpu, sbp B \| `, `(?m)^  \(OPERATOR: .* = softmax\(%\d+, dim=-1`},
		Details:   {`strides \[2, 1\], 32 bytes`, `dtype=None`, `# debug_test.go:\d+`},
	}
	for l := Silent; l <= Details; l++ {
		var log strings.Builder
		g := network(t)
		if err := g.Debug(l, &log); err != nil {
			t.Fatal(err)
		}
		for range 2 { // it is built once
			if _, err := g.Run(tensor.New(tensor.F32, 4, 3)); err != nil {
				t.Fatal(err)
			}
		}
		for from, patterns := range first {
			for _, p := range patterns {
				want := 0
				if l >= from {
					want = 1
				}
				if got := len(regexp.MustCompile(p).FindAllString(log.String(), -1)); got != want && (got == 0 || from != Details) {
					t.Errorf("level %d tells %d times %s:\n%s", l, got, p, &log)
				}
			}
		}
	}
	for _, l := range []Level{-2, 4} {
		if err := network(t).Debug(l, nil); err == nil || !strings.Contains(err.Error(), "want a level from -1 to 3") {
			t.Errorf("level %d: %v", l, err)
		}
	}
}
