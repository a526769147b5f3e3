package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"plumb/backend"
	"plumb/kernel"
	"plumb/program"
	"plumb/tensor"
)

func newBenchKernels() *cobra.Command {
	b := &kernelBench{}
	var python string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "kernels",
		Short: "Time of Plumb's operators divided by PyTorch's, per operator and size",
		Long: `Kernels runs each operator several times on the same inputs, on PyTorch and on
Plumb's own operators, one thread each, and prints the medians and their ratio.
Below 1, Plumb is faster.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			bs := &backends{python: python, timeout: time.Minute}
			if err := b.run(cmd.Context(), bs); err != nil {
				return err
			}
			return b.print(cmd.OutOrStdout(), asJSON)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&python, "python", "", "the Python that has torch")
	fl.IntVar(&b.count, "count", 7, "measurements per operator")
	fl.StringVar(&b.filter, "filter", "", "only operators whose name contains this")
	fl.BoolVar(&asJSON, "json", false, "print one object")
	return cmd
}

type kernelBench struct {
	count  int
	filter string
	Rows   []kernelRow `json:"kernels"`
	Mean   float64     `json:"geometric_mean"`
}

type kernelRow struct {
	Name   string  `json:"name"`
	Native float64 `json:"native_us"`
	Torch  float64 `json:"torch_us"`
	Ratio  float64 `json:"ratio"`
}

// kernelCase is one call to time: shapes of the float32 inputs, then arguments.
type kernelCase struct {
	target string
	shapes [][]int
	args   []any
	kwargs []program.Kwarg
	list   bool // the tensors are one list argument
	mask   bool // the first tensor is a bool mask
}

func kw(name string, v any) program.Kwarg { return program.Kwarg{Name: name, Value: v} }

var (
	small  = []int{64, 64}
	large  = []int{1024, 1024}
	images = []int{8, 64, 28, 28}
)

// kernelCases lists every operator at a small and a large size.
func kernelCases() []kernelCase {
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
	if c.list {
		refs = []any{program.List(refs)}
	}
	for i := range repeats {
		p.Calls = append(p.Calls, program.Call{Result: fmt.Sprintf("y%d", i), Target: c.target, Args: append(slices.Clone(refs), c.args...), Kwargs: c.kwargs})
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
	return s
}

func (b *kernelBench) run(ctx context.Context, bs *backends) error {
	kernel.SetThreads(1)
	defer kernel.SetThreads(0)
	var sides [2]backend.Backend
	for i, spec := range []string{"native", "torch"} {
		open, err := bs.opener(ctx, spec)
		if err != nil {
			return harness(err)
		}
		if sides[i], err = open(); err != nil {
			return harness(err)
		}
		defer sides[i].Close()
	}
	logs := 0.0
	for _, c := range kernelCases() {
		if !strings.Contains(c.name(), b.filter) {
			continue
		}
		row := kernelRow{Name: c.name()}
		native, err := b.time(ctx, sides[0], &c)
		if err != nil {
			return err
		}
		torch, err := b.time(ctx, sides[1], &c)
		if err != nil {
			return err
		}
		row.Native, row.Torch, row.Ratio = native, torch, native/torch
		logs += math.Log(row.Ratio)
		b.Rows = append(b.Rows, row)
	}
	if len(b.Rows) == 0 {
		return usage(fmt.Errorf("no operator's name contains %q", b.filter))
	}
	b.Mean = math.Exp(logs / float64(len(b.Rows)))
	return nil
}

// time returns the median microseconds of one call.
func (b *kernelBench) time(ctx context.Context, side backend.Backend, c *kernelCase) (float64, error) {
	job := &backend.Job{Program: c.program()}
	for i := range job.Program.Inputs {
		job.Inputs = append(job.Inputs, job.Program.Inputs[i].Materialize())
	}
	var times []float64
	for range b.count + 1 {
		out, err := side.Run(ctx, job)
		if err != nil {
			return 0, harness(err)
		}
		if out.Status != backend.OK {
			return 0, &exitError{exitFault, fmt.Errorf("%s: %s %s: %s", side.Info().Name, c.name(), out.Status, out.Message)}
		}
		times = append(times, float64(out.Elapsed.Nanoseconds())/1e3/repeats)
	}
	return median(times[1:]), nil
}

func (b *kernelBench) print(w io.Writer, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(w).Encode(b)
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "CALL\tNATIVE µs\tPYTORCH µs\tRATIO")
	for _, r := range b.Rows {
		fmt.Fprintf(tw, "%s\t%.1f\t%.1f\t%.2f\n", r.Name, r.Native, r.Torch, r.Ratio)
	}
	fmt.Fprintf(tw, "geometric mean\t\t\t%.2f\n", b.Mean)
	return tw.Flush()
}

func median(xs []float64) float64 {
	xs = slices.Sorted(slices.Values(xs))
	if len(xs) == 0 {
		return math.NaN()
	}
	return (xs[(len(xs)-1)/2] + xs[len(xs)/2]) / 2
}
