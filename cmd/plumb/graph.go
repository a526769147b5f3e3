package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"plumb/backend"
	"plumb/backend/native"
	"plumb/graph"
	"plumb/nn"
	"plumb/ops"
	"plumb/program"
)

func newGraph() *cobra.Command {
	return parent(&cobra.Command{
		Use:   "graph",
		Short: "Print a test's compiled graph, or compare random programs",
	}, newGraphShow(), newGraphRun())
}

// graphShow is one execution of plumb graph show.
type graphShow struct {
	seed    uint64
	index   int
	dot     bool
	level   string // 1, 2 or 3
	without []string
	out     io.Writer
}

func newGraphShow() *cobra.Command {
	g := &graphShow{level: "2"}
	cmd := &cobra.Command{
		Use:   "show FILE::TEST",
		Short: "Print the graph of one case of a test, before and after the passes",
		Long: `Show draws one case of a test, or takes a saved program, traces it as native:graph
does, and prints the graph before and after the passes, what each pass changed,
and how much memory the results need. Nothing is run: PyTorch is not needed.`,
		Example: `  plumb graph show suites/norm.py::test_layer_norm
  plumb graph show suites/norm.py::test_layer_norm --dot | dot -Tsvg > graph.svg
  plumb graph show finding.py --debug 3 --without fuse,reuse`,
		Args: takes(1, 1, "one test, as FILE::TEST"),
		RunE: func(cmd *cobra.Command, args []string) error {
			g.out = cmd.OutOrStdout()
			p, err := g.program(cmd, args[0])
			if err != nil {
				return usage(err)
			}
			return g.show(cmd.Context(), p)
		},
	}
	fl := cmd.Flags()
	fl.Var(fixedSeed(&g.seed, 1), "seed", "the seed of the case")
	fl.Var(wholeNumber(&g.index, 0), "case", "which case of the test, counted from 0")
	fl.BoolVar(&g.dot, "dot", false, "print the graph after the passes in Graphviz's language")
	fl.Var(oneOf(&g.level, "1", "2", "3"), "debug", "what to print: 1, what the passes did; 2, also the graph before and after all passes; 3, also the graph after each pass, with the call that each node comes from")
	fl.Var(passes(&g.without), "without", `passes to leave out: dead, fold, casts, algebra, common, recompute, dead2, fuse, reuse; "all" leaves out every one`)
	bars(cmd, "dot", "debug")
	return cmd
}

// program draws the case.
func (g *graphShow) program(cmd *cobra.Command, id string) (*program.Program, error) {
	d := drawing{seed: g.seed, device: newSubjects().device, maxBytes: newSettings().maxBytes, sigs: &signatures{}}
	files, ids := splitIDs([]string{id})
	selection, err := newSelection(picking{}, ids, io.Discard)
	if err != nil {
		return nil, err
	}
	l, err := d.files(files)
	if err != nil {
		return nil, err
	}
	tests, _, err := selection.choose(l)
	if err != nil {
		return nil, err
	}
	if len(tests) != 1 {
		return nil, fmt.Errorf("%s names %d tests; want one, as FILE::TEST", id, len(tests))
	}
	if l.defined[tests[0].Name] == nil {
		for _, name := range []string{"seed", "case"} {
			if cmd.Flags().Changed(name) {
				return nil, fmt.Errorf("--%s has no effect: %s is a saved program, one case", name, id)
			}
		}
	}
	return tests[0].Draw(g.index, nativeObserver{})
}

func (g *graphShow) show(ctx context.Context, p *program.Program) error {
	b := native.New(ops.Table(), nn.Modules()).Graph(graph.Options{})
	code, err := b.Trace(ctx, backend.NewJob(p))
	if err != nil {
		return err
	}
	o := graph.Options{Log: g.out, Without: g.without}
	if !g.dot {
		o.Debug = int(g.level[0] - '0')
	}
	c, err := graph.Compile(code, o)
	if err == nil && g.dot {
		_, err = io.WriteString(g.out, c.Code.Dot())
	}
	return err
}

// nativeObserver tells a test that asks for values while it is drawn those of
// Plumb's own operators.
type nativeObserver struct{}

// Observe runs the program and returns the value of a name.
func (nativeObserver) Observe(p *program.Program, ref program.Ref) (backend.Value, error) {
	out, err := native.New(ops.Table(), nn.Modules()).Run(context.Background(), backend.NewJob(p))
	if err != nil {
		return backend.Value{}, err
	}
	for i := range out.Values {
		if p.Calls[i].Result == string(ref) {
			return out.Values[i], nil
		}
	}
	for i := range p.Inputs {
		if p.Inputs[i].Name == string(ref) {
			return backend.Value{Tensor: p.Inputs[i].Materialize()}, nil
		}
	}
	return backend.Value{}, fmt.Errorf("%s has no value: %s", ref, out.Message)
}
