package command

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"plumb/backend"
	"plumb/backend/native"
	"plumb/global"
	"plumb/graph"
	"plumb/nn"
	"plumb/op"
	"plumb/ops"
	"plumb/program"
)

// rankPlan is how plumb graph show plans a graph for ranks.
type rankPlan struct {
	hierarchy []int
	sbp       global.SBP // of the program's inputs
	by        string     // search or calls
	bandwidth []float64  // of a rank's link in each dimension, in bytes per second
}

func (r *rankPlan) register(cmd *cobra.Command) {
	r.by = "search"
	fl := cmd.Flags()
	fl.Var(&limited[[]int]{to: &r.hierarchy, kind: "ranks", want: "a number of ranks, or a hierarchy such as 2x2", parse: func(text string) ([]int, bool) {
		h, err := global.ParseHierarchy(text)
		return h, err == nil
	}}, "ranks", "print how so many ranks run the graph")
	fl.Var(&limited[global.SBP]{to: &r.sbp, kind: "sbp", want: "an sbp such as S(0), or one for each dimension such as [S(0), B]", parse: func(text string) (global.SBP, bool) {
		s, err := global.ParseSBP(text)
		return s, err == nil
	}}, "sbp", "how the ranks share the test's inputs; one that cannot lie so is B, as parameters are (default S(0) in each dimension)")
	fl.Var(oneOf(&r.by, "search", "calls"), "by", "how signatures are chosen: search, over the whole graph; calls, one call after the other, as eager execution does, with the passes over boxings afterwards")
	fl.Var(&limited[[]float64]{to: &r.bandwidth, kind: "GB/s", want: "one number above 0 for each dimension, between commas", parse: gigabytes}, "bandwidth", "the bandwidth of a rank's link in each dimension of the hierarchy, for an estimate of the time that boxings take")
	for _, name := range []string{"sbp", "by", "bandwidth"} {
		needs(cmd, name, "ranks")
	}
}

// gigabytes reads rates.
func gigabytes(text string) (all []float64, ok bool) {
	for part := range strings.SplitSeq(text, ",") {
		x, err := strconv.ParseFloat(part, 64)
		if err != nil || !(x > 0) {
			return nil, false
		}
		all = append(all, x*1e9)
	}
	return all, true
}

// width is how many ways a search follows.
const width = 256

func (r *rankPlan) show(ctx context.Context, p *program.Program, out io.Writer) error {
	if n := len(r.hierarchy); r.bandwidth != nil && len(r.bandwidth) != n {
		return usage(fmt.Errorf("--bandwidth: %d numbers for %d dimensions of ranks", len(r.bandwidth), n))
	}
	if n := len(r.hierarchy); len(r.sbp) > 1 && len(r.sbp) != n {
		return usage(fmt.Errorf("--sbp %s: %d entries for %d dimensions of ranks", r.sbp, len(r.sbp), n))
	}
	place, err := global.NewPlacement("cpu", r.hierarchy)
	if err != nil {
		return usage(err)
	}
	job := &backend.Job{Program: p}
	for i := range p.Inputs {
		job.Inputs = append(job.Inputs, p.Inputs[i].Layout())
	}
	b := native.New(ops.Table(), nn.Modules()).Graph(graph.Options{})
	code, demands, err := b.Placed(ctx, job)
	if err != nil {
		return err
	}
	given := code.Inputs[:min(len(p.Inputs), len(code.Inputs))]
	lies := func(v *graph.Value) global.SBP {
		if slices.Contains(given, v) {
			return r.shared(v, place)
		}
		return global.Broadcast(len(place.Hierarchy))
	}
	rt := &global.Runtime{Placement: place, Demands: demands}
	if r.by == "search" {
		plan, err := rt.Search(code, lies, width)
		if err == nil {
			r.print(out, plan)
		}
		return err
	}
	plan, err := rt.Plan(code, lies)
	if err != nil {
		return err
	}
	for i, n := range plan.Tidy(global.Passes()) {
		fmt.Fprintf(out, "%-8s %d changes: %s\n", global.Passes()[i].Name, n, global.Passes()[i].Doc)
	}
	r.print(out, plan)
	return nil
}

// shared is how the ranks share an input: as asked for, where it can.
func (r *rankPlan) shared(v *graph.Value, p global.Placement) global.SBP {
	s := global.Broadcast(len(p.Hierarchy))
	for k := range s {
		e := op.S(0)
		if len(r.sbp) > 0 {
			e = r.sbp[k%len(r.sbp)]
		}
		if axis, split := e.Axis(); !split || axis < len(v.Shape()) {
			s[k] = e
		}
	}
	return s
}

func (r *rankPlan) print(out io.Writer, plan *global.Plan) {
	fmt.Fprint(out, plan)
	if r.bandwidth == nil {
		return
	}
	seconds := 0.0
	for k, n := range plan.Traffic() {
		seconds += float64(n) / float64(len(plan.Placement.Ranks)) / r.bandwidth[k]
	}
	fmt.Fprintf(out, "at these bandwidths, all links at work and one boxing after the other: %.3g ms\n", 1000*seconds)
}
