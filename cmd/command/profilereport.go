package command

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
)

// profileReport is what plumb profile measured.
type profileReport struct {
	Reference string            `json:"reference"`
	Subjects  map[string]string `json:"subjects"` // names and versions, by the name of the flag
	Rounds    int               `json:"rounds"`
	Rows      []profileRow      `json:"rows"`
	Skipped   []profileSkipped  `json:"skipped,omitempty"`
	Slower    []string          `json:"slower,omitempty"` // than in the run of --compare
}

// The passes of a row.
const (
	forwardPass = "forward"
	bothPasses  = "forward+backward"
)

// profileRow is what one subject takes for one call.
type profileRow struct {
	Function  string   `json:"function"`
	Call      string   `json:"call"`
	Arguments []string `json:"arguments"` // tensors of the call: "x float32[2, 3]"
	Label     string   `json:"description,omitempty"`
	Pass      string   `json:"pass"`
	Threads   int      `json:"threads"`
	Subject   string   `json:"subject"`
	Calls     int      `json:"calls"`        // that were measured
	Median    float64  `json:"microseconds"` // of a call
	Low       float64  `json:"low"`
	High      float64  `json:"high"`
	// Ratio is the time divided by the reference's, between RatioLow and
	// RatioHigh; 0 for the reference itself.
	Ratio     float64 `json:"per_reference,omitempty"`
	RatioLow  float64 `json:"per_reference_low,omitempty"`
	RatioHigh float64 `json:"per_reference_high,omitempty"`
	GBs       float64 `json:"gb_per_s,omitempty"` // of arguments and results, where that bounds the speed
	Failed    string  `json:"failed,omitempty"`   // why there is no time
}

// profileSkipped is a function that could not be drawn.
type profileSkipped struct {
	Function string `json:"function"`
	Why      string `json:"why"`
}

// skip notes why a function has no rows.
func (r *profileReport) skip(function string, err error) {
	r.Skipped = append(r.Skipped, profileSkipped{function, firstLineOf(err.Error())})
}

// conclude prints what became slower; with --json all.
func (p *profileCommand) conclude(w io.Writer) error {
	if p.before != "" {
		before, err := readProfile(p.before)
		if err != nil {
			return usage(err)
		}
		p.report.Slower = slowerRows(before.Rows, p.report.Rows)
	}
	if p.asJSON {
		if err := json.NewEncoder(w).Encode(&p.report); err != nil {
			return err
		}
	} else {
		p.report.printEnd(w)
	}
	switch n := len(p.report.Slower); {
	case n > 0:
		return &exitError{exitFindings, fmt.Errorf("%s slower than in %s", count(n, "measurement"), p.before)}
	case p.before != "" && !p.asJSON:
		fmt.Fprintf(w, "nothing is slower than in %s\n", p.before)
	}
	return nil
}

// maxProfile bounds the file of an earlier run.
const maxProfile = 64 << 20

func readProfile(name string) (*profileReport, error) {
	info, err := os.Stat(name)
	if err == nil && info.Size() > maxProfile {
		return nil, fmt.Errorf("%s is larger than %d MiB: no JSON of plumb profile", name, maxProfile>>20)
	}
	data, err := readRegular(name)
	if err != nil {
		return nil, err
	}
	var r profileReport
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, fmt.Errorf("%s is no JSON of plumb profile: %w", name, err)
	}
	if r.Rounds == 0 {
		return nil, fmt.Errorf("%s is no JSON of plumb profile: it has no rounds", name)
	}
	return &r, nil
}

// leastSlower is how many times as long as before what counts as slower takes
// at least, relative to the reference.
const leastSlower = 1.05

// slowerRows says which rows of now lie beyond those of before: relative to the
// reference in the same run, so that a slower machine is no slower operator.
func slowerRows(before, now []profileRow) []string {
	key := func(r profileRow) string {
		return fmt.Sprint(inFolder(r.Function), "\n", r.Call, "\n", r.Label, "\n", r.Pass, "\n", r.Threads, "\n", r.Subject)
	}
	earlier := map[string]profileRow{}
	for _, r := range before {
		earlier[key(r)] = r
	}
	var out []string
	for _, r := range now {
		b, ok := earlier[key(r)]
		switch {
		case !ok || b.Failed != "" || b.Ratio == 0:
		case r.Failed != "":
			out = append(out, fmt.Sprintf("fails now: %s: %s", r.name(), r.Failed))
		case r.RatioLow > b.RatioHigh && r.Ratio > leastSlower*b.Ratio:
			out = append(out, fmt.Sprintf("slower: %s: %.2f times the reference's time, %.2f before (%s and %s µs)", r.name(), r.Ratio, b.Ratio, microseconds(r.Median), microseconds(b.Median)))
		}
	}
	return out
}

// inFolder is a function's name without the folder of its file.
func inFolder(function string) string {
	file, name, _ := strings.Cut(function, "::")
	return filepath.Base(file) + "::" + name
}

func (r *profileRow) name() string {
	return fmt.Sprintf("%s, %s, %s, %s, %s", inFolder(r.Function), cmp.Or(r.Label, r.Call), r.Pass, count(r.Threads, "thread"), r.Subject)
}

func (r *profileReport) printHead(w io.Writer) {
	fmt.Fprintf(w, "medians of %s, relative to %s\n", count(r.Rounds, "round"), r.Reference)
}

// print shows the rows from first on.
func (r *profileReport) print(w io.Writer, first int) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	last := ""
	for i := range r.Rows[first:] {
		row := &r.Rows[first+i]
		if head := row.head(); head != last {
			last = head
			fmt.Fprintf(tw, "\n%s\n  pass\tthreads\tsubject\tµs\tinterval\t÷ %s\tGB/s\n", head, r.Reference)
		}
		fmt.Fprintf(tw, "  %s\t%d\t%s\t%s\n", row.Pass, row.Threads, row.Subject, row.cells())
	}
	return tw.Flush()
}

// printEnd shows what was not measured, and what is slower.
func (r *profileReport) printEnd(w io.Writer) {
	for _, s := range r.Skipped {
		fmt.Fprintf(w, "not measured: %s\n", s.Why)
	}
	for _, s := range r.Slower {
		fmt.Fprintln(w, s)
	}
}

// head tells the function, the call and its tensors.
func (r *profileRow) head() string {
	text := inFolder(r.Function) + ": " + cmp.Or(r.Label, r.Call)
	if len(r.Arguments) > 0 {
		text += "  (" + strings.Join(r.Arguments, ", ") + ")"
	}
	return text
}

// cells are the columns of what was measured.
func (r *profileRow) cells() string {
	if r.Failed != "" {
		return "-\t" + r.Failed
	}
	ratio, speed := "", ""
	if r.Ratio > 0 {
		ratio = fmt.Sprintf("%.2f", r.Ratio)
	}
	if r.GBs > 0 {
		speed = fmt.Sprintf("%.1f", r.GBs)
	}
	return fmt.Sprintf("%s\t%s – %s\t%s\t%s", microseconds(r.Median), microseconds(r.Low), microseconds(r.High), ratio, speed)
}

func microseconds(us float64) string {
	if us < 100 {
		return fmt.Sprintf("%.2f", us)
	}
	return fmt.Sprintf("%.0f", us)
}
