package command

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"plumb/internal/campaign"
	"plumb/internal/stopwatch"
)

func newBenchDraw() *cobra.Command {
	b := &drawBench{n: 1000}
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "draw",
		Example: `  plumb bench draw -n 200`,
		Short:   "Microseconds to draw a case of the twelve fixed tests",
		Long: `Draw draws cases of the twelve tests of plumb bench cases in one goroutine: each
test function is executed and its calls are recorded as a program. Filling the
input tensors is timed separately. No operator runs, so PyTorch is not needed.
For each test the median and the 90th percentile over its cases are shown.`,
		Args: noArguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := b.run(); err != nil {
				return usage(err)
			}
			return b.print(cmd.OutOrStdout(), asJSON)
		},
	}
	fl := cmd.Flags()
	fl.VarP(wholeNumber(&b.n, 1), "number", "n", "cases per test")
	fl.Var(fixedSeed(&b.seed, 1), "seed", "the seed of all cases")
	fl.BoolVar(&asJSON, "json", false, "print one object")
	return cmd
}

// drawBench measures drawing.
type drawBench struct {
	n    int
	seed uint64
	Rows []drawRow `json:"tests"`
	All  drawRow   `json:"all"`
}

// drawRow holds times of single cases in microseconds.
type drawRow struct {
	Test   string  `json:"test"`
	Median float64 `json:"draw_median_us"`
	P90    float64 `json:"draw_p90_us"`
	Inputs float64 `json:"inputs_median_us"`

	draws, inputs []float64
}

func (b *drawBench) run() error {
	d := drawing{seed: b.seed, device: newSubjects().device, sigs: &signatures{}}
	l, err := d.file("cases.py", benchCases)
	if err != nil {
		return err
	}
	b.All.Test = "all"
	for _, t := range l.tests {
		row := drawRow{Test: t.Name}
		if err := row.measure(t, b.n); err != nil {
			return err
		}
		b.All.draws, b.All.inputs = append(b.All.draws, row.draws...), append(b.All.inputs, row.inputs...)
		b.Rows = append(b.Rows, row.summed())
	}
	b.All = b.All.summed()
	return nil
}

// measure draws the first case once more than it counts: that one fills caches.
func (row *drawRow) measure(t campaign.Test, n int) error {
	for i := -1; i < n; i++ {
		start := time.Now()
		p, err := t.Draw(max(i, 0), nil)
		drawn := time.Now()
		if err != nil {
			return err
		}
		for k := range p.Inputs {
			p.Inputs[k].Materialize()
		}
		if i >= 0 {
			row.draws = append(row.draws, micros(drawn.Sub(start)))
			row.inputs = append(row.inputs, micros(time.Since(drawn)))
		}
	}
	return nil
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

func (row drawRow) summed() drawRow {
	row.Median, row.Inputs = stopwatch.Median(row.draws), stopwatch.Median(row.inputs)
	slices.Sort(row.draws)
	row.P90 = row.draws[len(row.draws)*9/10]
	return row
}

func (b *drawBench) print(w io.Writer, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(w).Encode(b)
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "µs a case\tmedian\t90%\tinputs\t")
	for _, row := range append(b.Rows, b.All) {
		fmt.Fprintf(tw, "%s\t%.1f\t%.1f\t%.1f\t\n", row.Test, row.Median, row.P90, row.Inputs)
	}
	return tw.Flush()
}
