package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"plumb/internal/gradcheck"
	"plumb/internal/judge/compare"
	"plumb/op"
)

// ofComparisons are the flags of plumb run that say nothing about gradients
// checked by difference quotients.
var ofComparisons = []string{"reference", "candidate", "python", "rtol", "atol", "record", "timeout", "device", "oracle", "dtype", "margins", "power", "coverage"}

// gradients is plumb run --gradcheck of a table: no backend takes part.
func (r *runner) gradients(ctx context.Context, table *op.Table) error {
	defs, err := r.gradientOps(table)
	if err != nil {
		return usage(err)
	}
	g := &gradientLog{out: r.out, verbose: r.verbose, json: r.json}
	options := gradcheck.Options{Seed: r.seed, Calls: r.n}
	for report := range inOrder(ctx, r.jobs, defs, func(d *op.Def) *gradcheck.Report { return gradcheck.Check(table, d, options) }) {
		g.add(report)
	}
	if ctx.Err() != nil {
		return &exitError{exitFault, errors.New("interrupted")}
	}
	g.summary(r.seed)
	switch {
	case g.findings > 0:
		return &exitError{exitFindings, nil}
	case g.checked == 0:
		return usage(errors.New("no gradient was checked"))
	}
	return nil
}

// gradientOps returns the operators that --ops and --filter ask for.
func (r *runner) gradientOps(table *op.Table) ([]*op.Def, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	for _, name := range ofComparisons {
		if r.flags.Flags().Changed(name) {
			return nil, fmt.Errorf("--gradcheck compares no backends: leave out --%s", name)
		}
	}
	if len(r.files) > 0 {
		return nil, fmt.Errorf("--gradcheck checks operators, not test files; leave out %s", r.files[0])
	}
	var defs []*op.Def
	for _, d := range table.Defs() {
		ok, err := answersTo(d, r.ops)
		if err != nil {
			return nil, fmt.Errorf("--ops %s: %w", r.ops, err)
		}
		if (ok || r.ops == "") && strings.Contains(d.ID(), r.filter) {
			defs = append(defs, d)
		}
	}
	if len(defs) == 0 {
		return nil, fmt.Errorf("no operator's name matches --ops %q and --filter %q; plumb ops lists them", r.ops, r.filter)
	}
	return defs, nil
}

// inOrder yields f of every item, in their order, computed by some goroutines
// at a time, until the context ends.
func inOrder[A, B any](ctx context.Context, jobs int, items []A, f func(A) B) func(yield func(B) bool) {
	return func(yield func(B) bool) {
		results := make([]chan B, len(items))
		for i := range results {
			results[i] = make(chan B, 1)
		}
		next := make(chan int)
		var lanes sync.WaitGroup
		defer lanes.Wait()
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		lanes.Go(func() {
			defer close(next)
			for i := range items {
				select {
				case next <- i:
				case <-ctx.Done():
					return
				}
			}
		})
		for range jobs {
			lanes.Go(func() {
				for i := range next {
					results[i] <- f(items[i])
				}
			})
		}
		for _, result := range results {
			select {
			case v := <-result:
				if !yield(v) {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}

// gradientLog prints the reports and counts them.
type gradientLog struct {
	out           io.Writer
	verbose, json bool

	operators, none, findings, checked, kinks int
	worst                                     float64
	heading                                   bool
}

func (g *gradientLog) add(r *gradcheck.Report) {
	g.operators++
	for _, o := range r.Orders {
		g.checked, g.kinks, g.worst = g.checked+o.Checked, g.kinks+o.Kinks, max(g.worst, o.Worst)
	}
	if len(r.Findings) > 0 {
		g.findings++
	}
	if r.None != "" {
		g.none++
	}
	if g.json {
		encode(g.out, reportJSON(r))
		return
	}
	g.text(r)
}

// gradientRow are the columns: an operator, then of each order the elements
// that were checked, those skipped and the worst error ÷ limit.
const gradientRow = "%-28s %8v %6v %8v %8v %6v %8v  %s\n"

func (g *gradientLog) text(r *gradcheck.Report) {
	if !g.heading {
		fmt.Fprintf(g.out, gradientRow, "", "1st", "kinks", "worst", "2nd", "kinks", "worst", "")
		g.heading = true
	}
	if r.None != "" {
		fmt.Fprintf(g.out, "%-28s no gradient: %s\n", r.ID, r.None)
		return
	}
	a, b := r.Orders[0], r.Orders[1]
	var dtypes []string
	for _, d := range r.DTypes {
		dtypes = append(dtypes, d.String())
	}
	remark := strings.Join(dtypes, " ")
	if n := len(r.Findings); n > 0 {
		remark = fmt.Sprintf("MISALIGNED in %d of the gradients", n)
	}
	fmt.Fprintf(g.out, gradientRow, r.ID, a.Checked, a.Kinks, ratio(a), b.Checked, b.Kinks, ratio(b), remark)
	for i, f := range r.Findings {
		if i > 0 && !g.verbose {
			break
		}
		fmt.Fprintf(g.out, "\n  %v\n", &f)
		if f.Program != nil {
			fmt.Fprintf(g.out, "\n%s\n", f.Program)
		}
	}
}

func ratio(o gradcheck.Order) string {
	if o.Checked == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2g", o.Worst)
}

func (g *gradientLog) summary(seed uint64) {
	if g.json {
		encode(g.out, map[string]any{"summary": map[string]any{
			"operators": g.operators, "none": g.none, "findings": g.findings, "checked": g.checked, "kinks": g.kinks,
			"worst": compare.Number(g.worst), "seed": seed,
		}})
		return
	}
	fmt.Fprintf(g.out, "\n%d operators, %d of them without a gradient: %d elements checked, %d skipped at kinks, worst %.2g of the limit, %d operators misaligned (seed %d)\n",
		g.operators, g.none, g.checked, g.kinks, g.worst, g.findings, seed)
	if g.findings > 0 {
		fmt.Fprintln(g.out, "next: save a program above and compare its gradient with PyTorch's: plumb run FILE")
	}
}

func encode(w io.Writer, v any) {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v)
}

type gradientJSON struct {
	Op       string            `json:"op"`
	None     string            `json:"none,omitempty"` // why it has no gradient
	DTypes   []string          `json:"dtypes,omitempty"`
	Refused  string            `json:"refused,omitempty"` // why complex numbers are not differentiated
	First    *orderJSON        `json:"first,omitempty"`
	Second   *orderJSON        `json:"second,omitempty"`
	Findings []gradFindingJSON `json:"findings,omitempty"`
}

type orderJSON struct {
	Checked int            `json:"checked"`
	Kinks   int            `json:"kinks"`
	Worst   compare.Number `json:"worst"` // error ÷ limit
}

type gradFindingJSON struct {
	Order    int            `json:"order"`
	DType    string         `json:"dtype"`
	Call     int            `json:"call"`
	Of       string         `json:"of,omitempty"`
	Gradient compare.Number `json:"gradient"`
	Quotient compare.Number `json:"quotient"`
	Limit    compare.Number `json:"limit"`
	Error    string         `json:"error,omitempty"`
	Program  string         `json:"program,omitempty"`
}

func reportJSON(r *gradcheck.Report) gradientJSON {
	out := gradientJSON{Op: r.ID, None: r.None}
	if r.None != "" {
		return out
	}
	first, second := r.Orders[0], r.Orders[1]
	out.First = &orderJSON{first.Checked, first.Kinks, compare.Number(first.Worst)}
	out.Second = &orderJSON{second.Checked, second.Kinks, compare.Number(second.Worst)}
	for _, d := range r.DTypes {
		out.DTypes = append(out.DTypes, d.String())
	}
	if r.Refused != nil {
		out.Refused = r.Refused.Error()
	}
	for _, f := range r.Findings {
		j := gradFindingJSON{Order: f.Order, DType: f.DType.String(), Call: f.Draw, Of: f.Of,
			Gradient: compare.Number(f.Got), Quotient: compare.Number(f.Want), Limit: compare.Number(f.Limit)}
		if f.Err != nil {
			j.Error = f.Err.Error()
		}
		if f.Program != nil {
			j.Program = f.Program.String()
		}
		out.Findings = append(out.Findings, j)
	}
	return out
}
