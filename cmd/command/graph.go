package command

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

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
	level   string // of graph.Debug
	passes  string // 0 to 3: of Options.DebugPasses
	without []string
	ranks   rankPlan
	out     io.Writer
}

func newGraphShow() *cobra.Command {
	g := &graphShow{level: "-1", passes: "2"}
	cmd := &cobra.Command{
		Use:   "show FILE::TEST",
		Short: "Print the graph of one case of a test, before and after the passes",
		Long: `Show draws one case of a test, or takes a saved program, traces it as native:graph
does, and prints the graph before and after the passes, what each pass changed,
and how much memory the results need. Nothing is run: PyTorch is not needed.

With --debug N it tells how the graph is built instead, on the scale of OneFlow's
graph.debug(N), which test files and Go's graph.Graph have too; --debug-passes
adds what the passes do.

With --ranks it prints how ranks run the graph: the sbp of every value, each
boxing with the bytes that it moves, and in the end what each dimension of the
hierarchy carries and the first rank holds. No element is computed, so that
--ranks 64x8 plans what no machine here could run.`,
		Example: `  plumb graph show suites/norm.py::test_layer_norm
  plumb graph show suites/norm.py::test_layer_norm --dot | dot -Tsvg > graph.svg
  plumb graph show suites/norm.py::test_layer_norm --debug 2
  plumb graph show finding.py --debug-passes 3 --without fuse,reuse
  plumb graph show suites/norm.py::test_layer_norm --ranks 2x2
  plumb graph show suites/norm.py::test_layer_norm --ranks 64x8 --sbp '[S(0), B]' --bandwidth 12.5,100`,
		Args: takes(1, 1, "one test, as FILE::TEST"),
		RunE: func(cmd *cobra.Command, args []string) error {
			g.out = cmd.OutOrStdout()
			if cmd.Flags().Changed("debug") && !cmd.Flags().Changed("debug-passes") {
				g.passes = "0"
			}
			p, err := g.program(cmd, args[0])
			if err != nil {
				return usage(err)
			}
			if g.ranks.hierarchy != nil {
				return g.ranks.show(cmd.Context(), p, g.out)
			}
			return g.show(cmd.Context(), p)
		},
	}
	fl := cmd.Flags()
	fl.Var(fixedSeed(&g.seed, 1), "seed", "the seed of the case")
	fl.Var(wholeNumber(&g.index, 0), "case", "which case of the test, counted from 0")
	fl.BoolVar(&g.dot, "dot", false, "print the graph after the passes in Graphviz's language")
	fl.Var(oneOf(&g.level, "-1", "0", "1", "2", "3"), "debug", "tell how the graph is built: 0, the stages and their times; 1, also the calls of modules, with inputs, outputs, parameters and buffers; 2, also each operator with its attributes, device and shardings; 3, also strides, defaults and where each is called; -1, nothing")
	fl.Var(oneOf(&g.passes, "0", "1", "2", "3"), "debug-passes", "tell of the passes: 1, what each did; 2, also the graph before and after all of them; 3, also the graph after each, with the call that each node comes from; 0, nothing (the default with --debug)")
	fl.Var(passes(&g.without), "without", `passes to leave out: dead, fold, casts, algebra, common, recompute, dead2, fuse, reuse; "all" leaves out every one`)
	g.ranks.register(cmd)
	bars(cmd, "dot", "debug", "debug-passes")
	bars(cmd, "ranks", "dot", "debug", "debug-passes", "without")
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
	began := time.Now()
	code, err := b.Outlined(ctx, backend.NewJob(p), &program.Outline{})
	if err != nil {
		return err
	}
	o, d := graph.Options{Log: g.out, Without: g.without}, graph.Debug{}
	if !g.dot {
		level, _ := strconv.Atoi(g.level)
		d = graph.Debug{Level: graph.Level(level), W: g.out}
		o.DebugPasses = int(g.passes[0] - '0')
	}
	c, err := d.Compile(code, o, began)
	if err == nil && g.dot {
		_, err = io.WriteString(g.out, c.Code.Dot())
	}
	return err
}

// nativeObserver tells a test that asks for values while it is drawn those of
// Plumb's own operators.
type nativeObserver struct{}

// Observe runs the program and returns the values of names.
func (nativeObserver) Observe(p *program.Program, refs ...program.Ref) ([]backend.Value, error) {
	return backend.Observe(p, refs, func(job *backend.Job) (*backend.Outcome, error) {
		out, err := native.New(ops.Table(), nn.Modules()).Run(context.Background(), job)
		if err == nil && out.Status != backend.OK {
			err = fmt.Errorf("%s: %s", out.Status, out.Message)
		}
		return out, err
	})
}
