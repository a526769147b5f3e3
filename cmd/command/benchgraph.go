package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"plumb/internal/judge/compare"
	"plumb/internal/kernel"
	"plumb/internal/stopwatch"
	"plumb/tensor"
)

func newBenchGraph() *cobra.Command {
	b := &graphBench{}
	var python string
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "graph",
		Example: `  plumb bench graph --threads 1`,
		Short:   "Time and memory of graphs beside eager, and beside PyTorch's",
		Long: `Graph runs an MLP, a small ResNet block and a transformer block, forward and as
a training step (forward, loss, gradients, SGD with momentum): on Plumb's
operators one by one and as a compiled graph, on PyTorch eagerly, traced by
torch.jit.trace and, where the version has it, by torch.compile. All take turns
on the same tensors; medians are shown. The results of each are compared with
PyTorch's before anything is timed, and those of the graph with eager's, bit by
bit.

Memory is the peak of what a step adds: of Plumb the live tensors after each
operator, as Go's garbage collector counts them; of PyTorch what its profiler
reports of the allocator.`,
		Args: noArguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := b.run(cmd.Context(), python); err != nil {
				return err
			}
			return b.print(cmd.OutOrStdout(), asJSON)
		},
	}
	fl := cmd.Flags()
	pythonFlag(fl, &python)
	b.count = 7
	fl.Var(wholeNumber(&b.count, 1), "count", "measurements")
	fl.StringVar(&b.filter, "filter", "", "only blocks whose name contains this")
	b.threads = []int{1}
	fl.Var(wholeNumbers(&b.threads, 0), "threads", "numbers of threads; 0 is one per core")
	fl.Var(passes(&b.without), "without", "passes that the graphs leave out")
	fl.BoolVar(&b.CPU, "cpu", false, "measure CPU time instead of wall-clock time")
	fl.BoolVar(&asJSON, "json", false, "print one object")
	return cmd
}

type graphBench struct {
	count   int
	filter  string
	threads []int
	without []string
	CPU     bool        `json:"cpu_time"`
	Torch   string      `json:"torch"`
	Parts   []graphPart `json:"parts"`
}

// graphPart holds what was measured with one number of threads.
type graphPart struct {
	Threads int        `json:"threads"`
	Rows    []graphRow `json:"blocks"`
}

// graphRow is one block and step.
type graphRow struct {
	Block string `json:"block"`
	Step  string `json:"step"`
	// Sides are native eager and graph and PyTorch's eager, trace and compile,
	// those that ran.
	Sides []graphSide `json:"sides"`
	// Speed is eager's time divided by the graph's, Memory the graph's memory
	// divided by eager's.
	Speed   float64  `json:"eager_per_graph_time"`
	Memory  float64  `json:"graph_per_eager_memory"`
	Skipped []string `json:"skipped,omitempty"` // what was not measured, and why
}

// graphSide is one way to run a step.
type graphSide struct {
	Name   string  `json:"name"`
	Millis float64 `json:"ms"`
	Bytes  int     `json:"peak_bytes"`

	runner graphRunner
	repeat int
	times  []float64
}

// graphRunner runs a step.
type graphRunner interface {
	// check runs the step once from the beginning and returns all it leaves.
	check() ([]*tensor.Tensor, error)
	// time returns the seconds of one step, the mean of several: those that
	// pass, or those that its process computes.
	time(repeats int, cpu bool) (float64, error)
	// memory returns the bytes that a step holds at most above what was there.
	memory() (int, error)
}

const (
	nativeEager = "native eager"
	nativeGraph = "native graph"
	torchEager  = "torch eager"
)

func (b *graphBench) run(ctx context.Context, python string) error {
	defer kernel.SetThreads(0)
	for _, n := range b.threads {
		if n < 1 {
			n = runtime.GOMAXPROCS(0)
		}
		kernel.SetThreads(n)
		part, err := b.part(ctx, n, python)
		if err != nil {
			return err
		}
		b.Parts = append(b.Parts, *part)
	}
	return nil
}

func (b *graphBench) part(ctx context.Context, threads int, python string) (*graphPart, error) {
	var blocks []graphBlock
	for _, k := range graphBlocks() {
		if strings.Contains(k.name, b.filter) {
			blocks = append(blocks, k)
		}
	}
	if len(blocks) == 0 {
		return nil, usage(fmt.Errorf("no block's name contains %q", b.filter))
	}
	torch, err := startGraphPeer(ctx, python, threads, blocks)
	if err != nil {
		return nil, harness(err)
	}
	defer torch.close()
	b.Torch = torch.Version
	p := &graphPart{Threads: threads}
	for i := range blocks {
		for _, step := range []string{"forward", "train"} {
			row, err := b.row(torch, &blocks[i], step)
			if err != nil {
				return nil, err
			}
			p.Rows = append(p.Rows, *row)
		}
	}
	return p, ctx.Err()
}

func (b *graphBench) row(torch *graphPeer, k *graphBlock, step string) (*graphRow, error) {
	r := &graphRow{Block: k.name, Step: step, Sides: []graphSide{
		{Name: torchEager, runner: torch.side(k, step, "eager")},
		{Name: nativeEager, runner: newEagerRunner(k, step)},
		{Name: nativeGraph, runner: newGraphRunner(k, step, b.without)},
		{Name: "torch.jit.trace", runner: torch.side(k, step, "trace")},
	}}
	if torch.Compile {
		r.Sides = append(r.Sides, graphSide{Name: "torch.compile", runner: torch.side(k, step, "compile")})
	}
	if err := r.check(); err != nil {
		return nil, err
	}
	for i := range r.Sides {
		s := &r.Sides[i]
		var err error
		if s.Bytes, err = s.runner.memory(); err != nil {
			return nil, harness(fmt.Errorf("%s, %s: %w", r.name(), s.Name, err))
		}
	}
	return r, b.time(r)
}

func (r *graphRow) name() string { return r.Block + " " + r.Step }

// check compares the results of every side with PyTorch's, the first, and
// those of native's graph with native's. A mode that PyTorch lacks is left out.
func (r *graphRow) check() error {
	var want, eager []*tensor.Tensor
	var kept []graphSide
	for i, s := range r.Sides {
		got, err := s.runner.check()
		var lacks *peerError
		switch {
		case errors.As(err, &lacks) && i > 0:
			r.Skipped = append(r.Skipped, fmt.Sprintf("%s: %v", s.Name, err))
			continue
		case err != nil:
			return harness(fmt.Errorf("%s, %s: %w", r.name(), s.Name, err))
		case s.Name == torchEager:
			want = got
		case s.Name == nativeEager:
			eager = got
		}
		if err := agree(want, got); err != nil {
			return &exitError{exitFindings, fmt.Errorf("%s, %s differs from %s: %w", r.name(), s.Name, torchEager, err)}
		}
		if s.Name == nativeGraph {
			if i := differs(eager, got); i >= 0 {
				return &exitError{exitFindings, fmt.Errorf("%s: result %d of the graph differs from eager's", r.name(), i)}
			}
		}
		kept = append(kept, s)
	}
	r.Sides = kept
	return nil
}

// agree compares results. The first, what a block or its loss gives, may be
// off by a thousandth of itself or a ten-thousandth of the largest. The others
// follow from gradients, which jump where a rounding error moves an element
// across the kink of relu: they may be off by a hundredth on the whole.
func agree(want, got []*tensor.Tensor) error {
	if len(want) != len(got) {
		return fmt.Errorf("%d results instead of %d", len(got), len(want))
	}
	for i, w := range want {
		largest, squares := 0.0, 0.0
		for _, x := range tensor.Data[float32](w) {
			largest = max(largest, math.Abs(float64(x)))
			squares += float64(x) * float64(x)
		}
		limit := compare.Limit{Class: compare.Explicit, RTol: 1e-3, ATol: compare.Number(1e-4 * largest)}
		d := compare.Tensors(w, got[i], limit, compare.Options{})
		off := float64(d.RMSE) / math.Sqrt(squares/float64(w.Len()))
		if !d.OK && (i == 0 || !(off <= 0.01)) {
			return fmt.Errorf("result %d: %s", i, d.Message)
		}
	}
	return nil
}

// differs returns the first result that has other bits; -1 for none.
func differs(want, got []*tensor.Tensor) int {
	for i, w := range want {
		if !w.SameBits(got[i]) {
			return i
		}
	}
	return -1
}

// measurement is how long one measurement takes at least.
const measurement = 100 * time.Millisecond

// time measures every side once a round, in turn.
func (b *graphBench) time(r *graphRow) error {
	err := stopwatch.InTurns(b.count+1, len(r.Sides), func(round, i int) error {
		s := &r.Sides[i]
		runtime.GC()
		seconds, err := s.runner.time(max(s.repeat, 1), b.CPU)
		switch {
		case err != nil:
			return harness(fmt.Errorf("%s, %s: %w", r.name(), s.Name, err))
		case round == 0:
			s.repeat = 1 + int(measurement.Seconds()/seconds)
		default:
			s.times = append(s.times, seconds)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i := range r.Sides {
		r.Sides[i].Millis = 1e3 * stopwatch.Median(r.Sides[i].times)
	}
	eager, graph := r.side(nativeEager), r.side(nativeGraph)
	r.Speed, r.Memory = eager.Millis/graph.Millis, float64(graph.Bytes)/float64(eager.Bytes)
	return nil
}

func (b *graphBench) print(w io.Writer, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(w).Encode(b)
	}
	for _, p := range b.Parts {
		if err := p.print(w, b); err != nil {
			return err
		}
	}
	return nil
}

// print shows times and memory of the sides that any row has.
func (p *graphPart) print(w io.Writer, b *graphBench) error {
	clock := "TIME"
	if b.CPU {
		clock = "CPU TIME"
	}
	fmt.Fprintf(w, "PyTorch %s, threads %d, medians of %d\n", b.Torch, p.Threads, b.count)
	var sides, skipped []string
	for _, r := range p.Rows {
		for _, s := range r.Sides {
			if !slices.Contains(sides, s.Name) {
				sides = append(sides, s.Name)
			}
		}
		for _, s := range r.Skipped {
			skipped = append(skipped, r.name()+", "+s)
		}
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(tw, "%s, ms\t%s\tnative eager ÷ graph\n", clock, strings.Join(sides, "\t"))
	for _, r := range p.Rows {
		fmt.Fprintf(tw, "%s\t%s%.2f\n", r.name(), r.cells(sides, func(s *graphSide) float64 { return s.Millis }), r.Speed)
	}
	fmt.Fprintf(tw, "\nMEMORY, MiB\t%s\tnative graph ÷ eager\n", strings.Join(sides, "\t"))
	for _, r := range p.Rows {
		fmt.Fprintf(tw, "%s\t%s%.2f\n", r.name(), r.cells(sides, func(s *graphSide) float64 { return float64(s.Bytes) / (1 << 20) }), r.Memory)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	for _, s := range slices.Compact(skipped) {
		fmt.Fprintln(w, "not measured:", s)
	}
	return nil
}

// cells returns a column for each of the sides, "-" where the row lacks it.
func (r *graphRow) cells(sides []string, of func(*graphSide) float64) string {
	text := ""
	for _, name := range sides {
		if s := r.side(name); s != nil {
			text += fmt.Sprintf("%.2f\t", of(s))
		} else {
			text += "-\t"
		}
	}
	return text
}

// side returns the side of a name, or nil.
func (r *graphRow) side(name string) *graphSide {
	for i := range r.Sides {
		if r.Sides[i].Name == name {
			return &r.Sides[i]
		}
	}
	return nil
}
