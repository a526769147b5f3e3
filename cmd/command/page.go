package command

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"plumb/backend"
	"plumb/internal/campaign/report"
	"plumb/internal/campaign/report/page"
)

// filed is what a command writes of its run in files: a page for people, and what
// other programs read.
type filed struct {
	html  string
	files reportFiles

	page    *page.Page      // nil without --html
	outline *report.Outline // nil where nobody reads one
}

// flags adds --html and --report; the page shows what is named.
func (f *filed) flags(fl *pflag.FlagSet, shows string) {
	fl.Var(outFile(&f.html), "html", "write the run as one page to this file: "+shows)
	f.files.flags(fl)
}

// begin returns what takes the run; where, which may be nil, tells the line of a test.
func (f *filed) begin(name string, start time.Time, where func(test string) (file string, line int)) report.Sinks {
	var sinks report.Sinks
	if f.html != "" {
		f.page = page.New(name, start)
		b := thisBuild()
		f.about("command", strings.Join(os.Args, " "))
		f.about("plumb", plumbVersion())
		f.about("go", b.Go)
		f.about("platform", fmt.Sprintf("%s, %s, %d CPUs", b.Platform, strings.Join(b.CPU, " "), runtime.NumCPU()))
		sinks = append(sinks, f.page)
	}
	if f.files.wanted() {
		f.outline = report.NewOutline(name, plumbVersion(), where)
		sinks = append(sinks, report.OutlineSink{Outline: f.outline})
	}
	return sinks
}

// about says on the page what ran.
func (f *filed) about(what, text string) {
	if line := [2]string{what, text}; f.page != nil && !slices.Contains(f.page.Environment, line) { // each lane opens the backends
		f.page.Environment = append(f.page.Environment, line)
	}
}

// verdict is the command's own, where it says more than the verdicts of its cases.
func (f *filed) verdict(text string, bad bool) {
	if f.page != nil {
		f.page.Verdict, f.page.Bad = text, bad
	}
}

// section adds a table of the command's own to the page, where it has rows.
func (f *filed) section(s page.Section) {
	if f.page != nil && len(s.Rows) > 0 {
		f.page.Sections = append(f.page.Sections, s)
	}
}

// end writes the files. It returns the run's own error where there is one.
func (f *filed) end(err error, log io.Writer) error {
	if f.outline != nil {
		err = f.files.close(f.outline, err, log)
	}
	if f.page == nil {
		return err
	}
	werr := whole(f.html, func(w io.Writer) error {
		b := bufio.NewWriter(w)
		if err := f.page.Write(b); err != nil {
			return err
		}
		return b.Flush()
	})
	switch {
	case werr == nil:
	case err == nil:
		return &exitError{exitFault, fmt.Errorf("--html: %w", werr)}
	default:
		fmt.Fprintf(log, "plumb: --html: %v\n", werr)
	}
	return err
}

// about says what a backend is.
func about(info backend.Info) string {
	text := info.Name + " " + info.Version + "; devices " + strings.Join(info.Devices, ", ")
	var names []string
	for name := range info.Features {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		text += "; " + name + " " + info.Features[name]
	}
	return text
}
