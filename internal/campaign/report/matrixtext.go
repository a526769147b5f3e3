package report

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"plumb/internal/judge/compare"
)

// none stands where a subject has nothing to tell.
const none = "—"

// MatrixLegend says what the parts of a cell are.
const MatrixLegend = `share: aligned, known faults too (! findings, ~ some unsupported; — not there)
worst: error ÷ limit; time: ÷ the reference's (— nothing compared, or measured)
--json and --csv have the reason of each`

// The widths of a table of text: of a subject's column, with what parts it from
// the one before, and of the longest name of an operator that is not cut.
const (
	matrixColumn = 21
	matrixName   = 30
)

// Text writes the matrix for a screen that is width characters wide, in as
// many tables as the subjects need, and then a line of each subject. Labels are
// the subjects' names in the headings.
func (m *Matrix) Text(w io.Writer, width int, labels []string) {
	name := len("operator")
	for _, row := range m.Operators {
		name = max(name, min(matrixName, utf8.RuneCountInString(row.Operator)))
	}
	step := max(1, (width-name)/matrixColumn)
	for from := 0; from < len(m.Subjects); from += step {
		m.table(w, name, from, min(from+step, len(m.Subjects)), labels)
		fmt.Fprintln(w)
	}
	fmt.Fprintln(w, MatrixLegend)
	fmt.Fprintf(w, "reference %s, seed %s\n\n", m.Reference, strings.Trim(fmt.Sprint(m.Seeds), "[]"))
	m.totals(w, labels)
}

// table writes the columns of the subjects from to.
func (m *Matrix) table(w io.Writer, name, from, to int, labels []string) {
	heads, columns := pad("", name), pad("operator", name)
	for _, label := range labels[from:to] {
		heads += "  " + pad(label, matrixColumn-2)
		columns += fmt.Sprintf("  %6s %6s %5s", "share", "worst", "time")
	}
	fmt.Fprintf(w, "%s\n%s\n", strings.TrimRight(heads, " "), columns)
	for _, row := range m.Operators {
		line := pad(row.Operator, name)
		for _, c := range row.Cells[from:to] {
			line += "  " + c.text()
		}
		fmt.Fprintln(w, strings.TrimRight(line, " "))
	}
}

// text is the cell in matrixColumn - 2 characters.
func (c *MatrixCell) text() string {
	if !c.Has {
		return fmt.Sprintf("%6s %6s %5s", none, "", "")
	}
	return fmt.Sprintf("%6s %6s %5s", c.shareText()+c.marks(), c.worstText(), c.timeText())
}

func (c *MatrixCell) marks() string {
	marks := ""
	if c.Findings > 0 {
		marks = "!"
	}
	if c.Unsupported > 0 {
		marks += "~"
	}
	return marks
}

// shareText is the share in percent, 100 only where nothing fails.
func (n *MatrixCounts) shareText() string {
	if n.Share == nil {
		return none
	}
	return fmt.Sprintf("%.0f%%", math.Floor(100**n.Share))
}

// worstText is the largest error ÷ limit of what was compared.
func (n *MatrixCounts) worstText() string {
	if n.Share == nil {
		return none
	}
	return ratioText(float64(n.Worst))
}

func (n *MatrixCounts) timeText() string {
	if n.Time == nil {
		return none
	}
	return ratioText(*n.Time) + "x"
}

// ratioText is a ratio in at most five characters, and a sign of an exponent.
func ratioText(v float64) string {
	switch {
	case math.IsInf(v, 0):
		return "inf"
	case v == 0:
		return "0"
	case v < 0.01, v >= 1000:
		return strings.NewReplacer("e-0", "e-", "e+0", "e", "e+", "e").Replace(strconv.FormatFloat(v, 'e', 0, 64))
	case v >= 10:
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.2g", v)
}

// pad cuts or fills a text to a width.
func pad(text string, width int) string {
	n := utf8.RuneCountInString(text)
	if n > width {
		return string([]rune(text)[:width-1]) + "…"
	}
	return text + strings.Repeat(" ", width-n)
}

// totals writes a line of each subject.
func (m *Matrix) totals(w io.Writer, labels []string) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "subject\toperators\taligned\tfindings\tunsupported\tworst\ttime")
	for i, s := range m.Subjects {
		passed := s.Aligned + s.Refused + s.Known
		fmt.Fprintf(t, "%s\t%d of %d\t%d of %d (%s)\t%d\t%d\t%s\t%s\n", labels[i], s.Has, s.Operators, passed, passed+s.Findings, s.shareText(),
			s.Findings, s.Unsupported, s.worstText(), s.timeText())
	}
	_ = t.Flush()
}

// Table is the matrix as texts: three columns of each subject.
func (m *Matrix) Table(labels []string) (head []string, rows [][]string) {
	head = []string{"operator"}
	for _, label := range labels {
		head = append(head, label+": aligned", "worst ÷ limit", "time ÷ reference's", "reason")
	}
	for _, row := range m.Operators {
		cells := []string{row.Operator}
		for _, c := range row.Cells {
			if c.Has {
				cells = append(cells, c.shareText()+c.marks(), c.worstText(), c.timeText(), c.Reason)
			} else {
				cells = append(cells, none, "", "", c.Reason)
			}
		}
		rows = append(rows, cells)
	}
	return head, rows
}

// JSON writes the matrix as one object.
func (m *Matrix) JSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", " ")
	enc.SetEscapeHTML(false)
	return enc.Encode(m)
}

// CSV writes a line of each operator and subject.
func (m *Matrix) CSV(w io.Writer) error {
	out := csv.NewWriter(w)
	_ = out.Write(strings.Split("operator,subject,has,cases,aligned,refused,known,findings,unsupported,forward_only,share,worst,time_ratio,reason", ","))
	for _, row := range m.Operators {
		for _, c := range row.Cells {
			fields := []string{row.Operator, c.Subject, strconv.FormatBool(c.Has)}
			for _, n := range []int{c.Cases, c.Aligned, c.Refused, c.Known, c.Findings, c.Unsupported, c.ForwardOnly} {
				fields = append(fields, strconv.Itoa(n))
			}
			worst := float64(c.Worst)
			for _, x := range []*float64{c.Share, &worst, c.Time} {
				fields = append(fields, optional(x))
			}
			_ = out.Write(append(fields, c.Reason))
		}
	}
	out.Flush()
	return out.Error()
}

func optional(x *float64) string {
	if x == nil {
		return ""
	}
	return compare.Number(*x).String()
}
