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

	"plumb/backend"
	"plumb/internal/campaign/report"
	"plumb/internal/campaign/report/page"
)

// newPage begins the page of --html; nil without one.
func (s *session) newPage(name string, start time.Time) *page.Page {
	if s.reports.html == "" {
		return nil
	}
	p := page.New(name, start)
	build := thisBuild()
	p.Environment = [][2]string{
		{"command", strings.Join(os.Args, " ")},
		{"plumb", plumbVersion()},
		{"go", build.Go},
		{"platform", fmt.Sprintf("%s, %s, %d CPUs", build.Platform, strings.Join(build.CPU, " "), runtime.NumCPU())},
	}
	before := s.cfg.OnOpen
	s.cfg.OnOpen = func(reference backend.Info, candidates []backend.Info) {
		p.Environment = append(p.Environment, [2]string{"reference " + s.subjects.reference, about(reference)})
		for i, c := range candidates {
			p.Environment = append(p.Environment, [2]string{"candidate " + s.cfg.Candidates[i].Name, about(c)})
		}
		if before != nil {
			before(reference, candidates)
		}
	}
	s.sink = report.Sinks{s.sink, p}
	return p
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

// writePage writes the page. It returns the run's own error where there is one.
func (s *session) writePage(p *page.Page, err error) error {
	if p == nil {
		return err
	}
	werr := whole(s.reports.html, func(w io.Writer) error {
		b := bufio.NewWriter(w)
		if err := p.Write(b); err != nil {
			return err
		}
		return b.Flush()
	})
	switch {
	case werr == nil:
	case err == nil:
		return &exitError{exitFault, fmt.Errorf("--html: %w", werr)}
	default:
		fmt.Fprintf(s.err, "plumb: --html: %v\n", werr)
	}
	return err
}
