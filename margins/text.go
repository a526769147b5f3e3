package margins

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"plumb/op"
)

// Print writes the rows as a table for people, and then how many are marked.
// Rows with advice show it in place of the quantiles.
func Print(w io.Writer, rows []Row) error {
	if len(rows) > 0 && rows[0].Advice != nil {
		return printAdvice(w, rows)
	}
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tab, "operator\tdtype\tpart\tclass\tcount\t50 %\t99 %\tmax\tmark")
	for _, r := range rows {
		fmt.Fprintf(tab, "%s\t%s\t%s\t%s\t%d\t%s\t%s\t%s\t%s\n",
			orDash(r.Op), orDash(r.DType), r.Part, className(r.Class), r.Count, r.P50, r.P99, r.Max, r.remark())
	}
	if err := tab.Flush(); err != nil {
		return err
	}
	comparisons, marks := count(rows)
	_, err := fmt.Fprintf(w, `
%d comparisons; 50 %%, 99 %%, max: of observed error ÷ limit
%d thin: 99 %% above %g or max above %g
%d wide: max below %g in %d comparisons or more
`, comparisons, marks[Thin], thin99, thinMax, marks[Wide], wideMax, enough)
	return err
}

func printAdvice(w io.Writer, rows []Row) error {
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tab, "operator\tdtype\tpart\tclass\tcount\tmax\tproposal")
	for _, r := range rows {
		fmt.Fprintf(tab, "%s\t%s\t%s\t%s\t%d\t%s\t%s\n",
			orDash(r.Op), orDash(r.DType), r.Part, className(r.Class), r.Count, r.Max, r.proposal())
	}
	if err := tab.Flush(); err != nil {
		return err
	}
	comparisons, _ := count(rows)
	_, err := fmt.Fprintf(w, `
%d comparisons; max: the largest observed error ÷ limit
a proposal is %g times the largest observed error; nothing is changed
of n comparisons without a larger error, 3/n bounds the share of those with one at 95 %% confidence
`, comparisons, rows[0].Advice.Safety)
	return err
}

func count(rows []Row) (comparisons int, marks map[Mark]int) {
	marks = map[Mark]int{}
	for _, r := range rows {
		comparisons += r.Count
		marks[r.Mark]++
	}
	return comparisons, marks
}

func (r *Row) remark() string {
	if r.Over > 0 {
		return fmt.Sprintf("%s, %d over the limit", r.Mark, r.Over)
	}
	return string(r.Mark)
}

func (r *Row) proposal() string {
	switch a := r.Advice; a.Do {
	case Shrink:
		return fmt.Sprintf("shrink to %s of the limit; a larger error in less than 1 of %d", a.Factor, r.Count/3)
	case Grow:
		s := fmt.Sprintf("grow to %s times the limit", a.Factor)
		if r.Over > 0 {
			s += fmt.Sprintf(", unless a bug made the %d over it", r.Over)
		}
		return s
	case Equals:
		return fmt.Sprintf("equal values: no error; one in less than 1 of %d", r.Count/3)
	case Mend:
		return fmt.Sprintf("no limit would do for %d: see the findings", r.Over)
	case Wait:
		return fmt.Sprintf("too few: %d of %d comparisons", r.Count, enough)
	}
	return "keep"
}

func className(c op.Class) string {
	if c == "" {
		return "default"
	}
	return string(c)
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// JSON writes the rows, one object per line.
func JSON(w io.Writer, rows []Row) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for _, r := range rows {
		if err := enc.Encode(r); err != nil {
			return err
		}
	}
	return nil
}
