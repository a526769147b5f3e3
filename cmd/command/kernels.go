package command

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"plumb/backend"
	"plumb/backend/native"
	"plumb/backend/worker"
	"plumb/internal/kernel"
	"plumb/internal/stopwatch"
	"plumb/nn"
	"plumb/ops"
	"plumb/program"
	"plumb/tensor"
)

func newBenchKernels() *cobra.Command {
	b := &kernelBench{}
	var python string
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "kernels",
		Example: `  plumb bench kernels --filter conv --threads 1,0`,
		Short:   "Time of Plumb's operators divided by PyTorch's, per operator and size",
		Long: `Kernels runs each operator of a fixed list several times on the same inputs, on
PyTorch and on Plumb's own operators, with one thread each and then with one
per core, and prints the medians and their ratio. Below 1, Plumb is faster.
A row that ends in "backward" is the call and its gradients together.`,
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
	fl.Var(wholeNumber(&b.count, 1), "count", "measurements per operator")
	fl.StringVar(&b.filter, "filter", "", "only operators whose name contains this")
	fl.BoolVar(&b.more, "more", false, "time a longer list: more operators, small sizes too")
	b.threads = []int{1, 0}
	fl.Var(wholeNumbers(&b.threads, 0), "threads", "numbers of threads; 0 is one per core")
	fl.BoolVar(&asJSON, "json", false, "print one object")
	return cmd
}

type kernelBench struct {
	count   int
	filter  string
	more    bool
	threads []int
	Parts   []kernelPart `json:"parts"`
}

// kernelPart holds what was measured with one number of threads.
type kernelPart struct {
	Threads int         `json:"threads"`
	Rows    []kernelRow `json:"kernels"`
	Mean    float64     `json:"geometric_mean"`
}

type kernelRow struct {
	Name   string  `json:"name"`
	Native float64 `json:"native_us"`
	Torch  float64 `json:"torch_us"`
	Ratio  float64 `json:"ratio"`
}

// kernelCase is one call to time: shapes of the float32 inputs, then arguments.
type kernelCase struct {
	target   string
	shapes   [][]int
	args     []any
	kwargs   []program.Kwarg
	list     bool // the tensors are one list argument
	mask     bool // the first tensor is a bool mask
	index    int  // the last tensor holds indices below this
	last     bool // the last tensor comes after args
	backward bool
}

func kw(name string, v any) program.Kwarg { return program.Kwarg{Name: name, Value: v} }

var (
	small  = []int{64, 64}
	large  = []int{1024, 1024}
	images = []int{2, 64, 56, 56}
)

// kernelCases is the fixed list by which the kernels are judged.
func kernelCases() []kernelCase {
	f := "torch.nn.functional."
	million, pad := []int{1 << 20}, []program.Kwarg{kw("padding", int64(1))}
	rows, length := []int{4096, 1024}, program.Tuple{int64(1024)}
	training := []program.Kwarg{kw("training", true)}
	cs := []kernelCase{
		{target: "torch.add", shapes: [][]int{million, million}},
		{target: "torch.mul", shapes: [][]int{million, million}},
		{target: "torch.exp", shapes: [][]int{million}},
		{target: "torch.tanh", shapes: [][]int{million}},
		{target: f + "gelu", shapes: [][]int{million}},
		{target: "torch.sum", shapes: [][]int{rows}},
		{target: f + "softmax", shapes: [][]int{rows}, kwargs: []program.Kwarg{kw("dim", int64(-1))}},
		{target: "torch.matmul", shapes: [][]int{{256, 256}, {256, 256}}},
		{target: "torch.matmul", shapes: [][]int{large, large}},
		{target: "torch.bmm", shapes: [][]int{{32, 128, 128}, {32, 128, 64}}},
		{target: f + "conv2d", shapes: [][]int{images, {64, 64, 3, 3}}, kwargs: pad},
		{target: f + "conv2d", shapes: [][]int{images, {64, 64, 1, 1}}},
		{target: f + "conv2d", shapes: [][]int{images, {64, 1, 3, 3}}, kwargs: append(pad, kw("groups", int64(64)))},
		{target: f + "conv_transpose2d", shapes: [][]int{images, {64, 64, 3, 3}}, kwargs: pad},
		{target: f + "max_pool2d", shapes: [][]int{images}, args: []any{int64(2)}},
		{target: "operator.getitem", shapes: [][]int{million, million}, index: 1 << 20},
		{target: "torch.gather", shapes: [][]int{million, million}, args: []any{int64(0)}, index: 1 << 20, last: true},
	}
	for _, backward := range []bool{false, true} {
		cs = append(cs,
			kernelCase{target: f + "batch_norm", shapes: [][]int{images, {64}, {64}}, kwargs: training, backward: backward},
			kernelCase{target: f + "layer_norm", shapes: [][]int{rows}, args: []any{length}, backward: backward},
		)
	}
	return cs
}

// moreKernelCases lists many operators at a small and a large size.
func moreKernelCases() []kernelCase {
	var cs []kernelCase
	unary := []string{"neg", "abs", "exp", "log", "sqrt", "tanh", "sigmoid", "relu"}
	for _, shape := range [][]int{small, large} {
		for _, u := range unary {
			cs = append(cs, kernelCase{target: "torch." + u, shapes: [][]int{shape}})
		}
		for _, b := range []string{"add", "sub", "mul", "div", "pow"} {
			cs = append(cs, kernelCase{target: "torch." + b, shapes: [][]int{shape, shape}})
		}
		f := "torch.nn.functional."
		cs = append(cs,
			kernelCase{target: f + "leaky_relu", shapes: [][]int{shape}},
			kernelCase{target: f + "gelu", shapes: [][]int{shape}},
			kernelCase{target: f + "gelu", shapes: [][]int{shape}, kwargs: []program.Kwarg{kw("approximate", "tanh")}},
			kernelCase{target: f + "softmax", shapes: [][]int{shape}, kwargs: []program.Kwarg{kw("dim", int64(-1))}},
			kernelCase{target: f + "log_softmax", shapes: [][]int{shape}, kwargs: []program.Kwarg{kw("dim", int64(-1))}},
			kernelCase{target: "torch.sum", shapes: [][]int{shape}},
			kernelCase{target: "torch.sum", shapes: [][]int{shape}, kwargs: []program.Kwarg{kw("dim", int64(0))}},
			kernelCase{target: "torch.mean", shapes: [][]int{shape}, kwargs: []program.Kwarg{kw("dim", int64(1))}},
			kernelCase{target: "torch.max", shapes: [][]int{shape}},
			kernelCase{target: "torch.max", shapes: [][]int{shape}, args: []any{int64(1)}},
			kernelCase{target: "torch.max", shapes: [][]int{shape, shape}},
			kernelCase{target: f + "layer_norm", shapes: [][]int{shape}, args: []any{program.Tuple{int64(shape[1])}}},
			kernelCase{target: "torch.matmul", shapes: [][]int{shape, shape}},
			kernelCase{target: f + "linear", shapes: [][]int{shape, shape}},
			kernelCase{target: "torch.cat", shapes: [][]int{shape, shape}, list: true},
			kernelCase{target: "torch.where", shapes: [][]int{shape, shape, shape}, mask: true},
		)
	}
	f := "torch.nn.functional."
	pad := []program.Kwarg{kw("padding", int64(1))}
	return append(cs,
		kernelCase{target: f + "conv2d", shapes: [][]int{images, {64, 64, 3, 3}}, kwargs: pad},
		kernelCase{target: f + "conv2d", shapes: [][]int{images, {64, 64, 1, 1}}},
		kernelCase{target: f + "conv_transpose2d", shapes: [][]int{images, {64, 64, 3, 3}}, kwargs: pad},
		kernelCase{target: f + "max_pool2d", shapes: [][]int{images}, args: []any{int64(2)}},
		kernelCase{target: f + "batch_norm", shapes: [][]int{images, {64}, {64}}},
	)
}

const repeats = 10

// program repeats the call, so that one run is one measurement.
func (c *kernelCase) program() *program.Program {
	p := &program.Program{Name: c.target}
	var refs []any
	for i, shape := range c.shapes {
		in := program.Input{Name: fmt.Sprintf("x%d", i), DType: tensor.F32, Shape: shape, Fill: program.Fill{Dist: program.Uniform, Lo: 0.1, Hi: 1, Key: uint64(i)}}
		if c.mask && i == 0 {
			in.DType, in.Fill = tensor.Bool, program.Fill{Dist: program.Integer, Lo: 0, Hi: 2}
		}
		p.Inputs = append(p.Inputs, in)
		refs = append(refs, program.Ref(in.Name))
	}
	if c.index > 0 {
		in := &p.Inputs[len(p.Inputs)-1]
		in.DType, in.Fill = tensor.I64, program.Fill{Dist: program.Integer, Lo: 0, Hi: float64(c.index)}
	}
	args := slices.Concat(refs, c.args)
	switch {
	case c.list:
		args = append([]any{program.List(refs)}, c.args...)
	case c.last:
		last := len(refs) - 1
		args = slices.Concat(refs[:last], c.args, refs[last:])
	}
	for i := range repeats {
		name := fmt.Sprintf("y%d", i)
		p.Calls = append(p.Calls, program.Call{Result: name, Target: c.target, Args: args, Kwargs: c.kwargs})
		if c.backward {
			p.Inputs[0].RequiresGrad = true
			p.Backward = append(p.Backward, program.Backward{Value: program.Ref(name)})
		}
	}
	return p
}

func (c *kernelCase) name() string {
	s := c.target
	for _, shape := range c.shapes {
		s += " " + tensor.ShapeString(shape)
	}
	for _, k := range c.kwargs {
		s += " " + k.Name + "=" + program.FormatArg(k.Value)
	}
	for _, a := range c.args {
		s += " " + program.FormatArg(a)
	}
	if c.backward {
		s += " backward"
	}
	return s
}

func (b *kernelBench) run(ctx context.Context, asked string) error {
	python, _, err := worker.FindPython(asked)
	if err != nil {
		return harness(err)
	}
	defer kernel.SetThreads(0)
	for _, n := range b.threads {
		if n < 1 {
			n = runtime.GOMAXPROCS(0)
		}
		kernel.SetThreads(n)
		torch, err := worker.Open(ctx, worker.Config{Python: python, CaseTimeout: time.Minute, Threads: n})
		if err != nil {
			return harness(err)
		}
		part, err := b.part(ctx, n, native.New(ops.Table(), nn.Modules()), torch)
		if closed := torch.Close(); err == nil && closed != nil {
			err = harness(closed)
		}
		if err != nil {
			return err
		}
		b.Parts = append(b.Parts, *part)
	}
	return nil
}

func (b *kernelBench) part(ctx context.Context, threads int, ours, theirs backend.Backend) (*kernelPart, error) {
	cases := kernelCases()
	if b.more {
		cases = append(cases, moreKernelCases()...)
	}
	p, logs := &kernelPart{Threads: threads}, 0.0
	for _, c := range cases {
		if !strings.Contains(c.name(), b.filter) {
			continue
		}
		row := kernelRow{Name: c.name()}
		var err error
		if row.Native, row.Torch, err = b.time(ctx, ours, theirs, &c); err != nil {
			return nil, err
		}
		row.Ratio = row.Native / row.Torch
		logs += math.Log(row.Ratio)
		p.Rows = append(p.Rows, row)
	}
	if len(p.Rows) == 0 {
		return nil, usage(fmt.Errorf("no operator's name contains %q", b.filter))
	}
	p.Mean = math.Exp(logs / float64(len(p.Rows)))
	return p, nil
}

// time returns the median microseconds of one call on either side. The sides
// take turns, so that whatever else the machine does disturbs both.
func (b *kernelBench) time(ctx context.Context, ours, theirs backend.Backend, c *kernelCase) (native, torch float64, err error) {
	job := backend.NewJob(c.program())
	var times [2][]float64
	for range b.count + 1 {
		for i, side := range []backend.Backend{ours, theirs} {
			out, err := side.Run(ctx, job)
			if err != nil {
				return 0, 0, harness(err)
			}
			if out.Status != backend.OK {
				return 0, 0, &exitError{exitFault, fmt.Errorf("%s: %s %s: %s", side.Info().Name, c.name(), out.Status, out.Message)}
			}
			times[i] = append(times[i], float64(out.Elapsed.Nanoseconds())/1e3/repeats)
		}
	}
	return stopwatch.Median(times[0][1:]), stopwatch.Median(times[1][1:]), nil
}

func (b *kernelBench) print(w io.Writer, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(w).Encode(b)
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, p := range b.Parts {
		fmt.Fprintf(tw, "CALL, threads %d\tNATIVE µs\tPYTORCH µs\tRATIO\n", p.Threads)
		for _, r := range p.Rows {
			fmt.Fprintf(tw, "%s\t%.1f\t%.1f\t%.2f\n", r.Name, r.Native, r.Torch, r.Ratio)
		}
		fmt.Fprintf(tw, "geometric mean\t\t\t%.2f\n", p.Mean)
	}
	return tw.Flush()
}
