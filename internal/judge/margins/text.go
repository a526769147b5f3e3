package margins

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode"

	"plumb/op"
)

// Print writes the rows as a table for people, and then how many are marked.
// Rows with advice show it in place of the quantiles.
func Print(w io.Writer, rows []Row) error {
	if len(rows) > 0 && rows[0].Advice != nil {
		return printAdvice(w, rows)
	}
	lines := []string{"operator\tdtype\tpart\tclass\tcount\t50 %\t99 %\tmax\tmark\tlargest"}
	for _, r := range rows {
		lines = append(lines, fmt.Sprintf("%s\t%s\t%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s",
			cell(r.Op), cell(r.DType), cell(string(r.Part)), className(r.Class), r.Count, r.P50, r.P99, r.Max, r.remark(), r.largest()))
	}
	if err := columns(w, lines); err != nil {
		return err
	}
	s := count(rows)
	_, err := fmt.Fprintf(w, `
%d comparisons; 50 %%, 99 %%, max: of observed error ÷ limit
%d over: a comparison exceeded the limit
%d thin: 99 %% above %g or max above %g
%d wide: max below %g in %d comparisons or more; %d of them without any error
`, s.comparisons, s.over, s.thin, thin99, thinMax, s.wide, wideMax, enough, s.errorless)
	return err
}

func printAdvice(w io.Writer, rows []Row) error {
	lines := []string{"operator\tdtype\tpart\tclass\tcount\tmax\tproposal"}
	for _, r := range rows {
		lines = append(lines, fmt.Sprintf("%s\t%s\t%s\t%s\t%d\t%s\t%s",
			cell(r.Op), cell(r.DType), cell(string(r.Part)), className(r.Class), r.Count, r.Max, r.proposal()))
	}
	if err := columns(w, lines); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, `
%d comparisons; max: the largest observed error ÷ limit
a proposal is %g times the largest observed error; nothing is changed
of n comparisons without a larger error, 3/n bounds the share of those with one at 95 %% confidence
`, count(rows).comparisons, rows[0].Advice.Safety)
	return err
}

// columns aligns the cells of lines, and leaves no space at their ends.
func columns(w io.Writer, lines []string) error {
	var b strings.Builder
	tab := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, line := range lines {
		fmt.Fprintln(tab, line)
	}
	if err := tab.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(b.String()) {
		if _, err := fmt.Fprintln(w, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}

type counts struct{ comparisons, over, thin, wide, errorless int }

func count(rows []Row) (c counts) {
	for _, r := range rows {
		c.comparisons += r.Count
		switch r.Mark {
		case Over:
			c.over++
		case Thin:
			c.thin++
		case Wide:
			c.wide++
			if r.Max == 0 {
				c.errorless++
			}
		}
	}
	return c
}

func (r *Row) remark() string {
	if r.Over > 0 {
		return fmt.Sprintf("%d %s", r.Over, r.Mark)
	}
	return string(r.Mark)
}

// largest says where the largest error of a row was that asks for a look.
func (r *Row) largest() string {
	if r.At == nil || r.Mark != Over && r.Mark != Thin {
		return ""
	}
	return cell(fmt.Sprintf("%s case %d, %s", r.At.Test, r.At.Case, r.At.Name))
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
	return cell(string(c))
}

// cell keeps a table a table, whatever a file calls an operator.
func cell(s string) string {
	switch {
	case s == "":
		return "-"
	case strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }):
		return strconv.QuoteToASCII(s)
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
