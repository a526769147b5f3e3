package pages

import (
	"fmt"
	"strings"

	"plumb/internal/campaign/report"
	"plumb/internal/campaign/store"
	"plumb/internal/judge/verdict"
)

// metrics writes what the store holds, and the last run of each command, as OpenMetrics.
func (r *request) metrics() error {
	size, err := r.store.Size()
	if err != nil {
		return err
	}
	var last []*store.Run
	if err := r.store.LastOf(func(one *store.Run) error { last = append(last, one); return nil }); err != nil {
		return err
	}
	r.kind = "application/openmetrics-text; version=1.0.0; charset=utf-8"
	w := &r.body
	gauge := func(name, help string) { fmt.Fprintf(w, "# TYPE %s gauge\n# HELP %s %s\n", name, name, help) }
	for _, g := range []struct {
		name, help string
		value      int
	}{{"plumb_runs", "Runs in the store.", size.Runs}, {"plumb_cases", "Cases of all runs.", size.Cases}, {"plumb_findings", "Findings over all runs.", size.Findings}} {
		gauge(g.name, g.help)
		fmt.Fprintf(w, "%s %d\n", g.name, g.value)
	}
	gauge("plumb_last_run_cases", "Cases of the last run of a command, by outcome.")
	for _, one := range last {
		for _, o := range []struct {
			outcome report.Outcome
			n       int
		}{{report.Passed, one.Passed}, {report.Failed, one.Failed}, {report.Unsupported, one.Unsupported}, {report.Skipped, one.Skipped}, {report.Unrecorded, one.Unrecorded}} {
			fmt.Fprintf(w, "plumb_last_run_cases{command=%s,outcome=%s} %d\n", label(one.Command), label(string(o.outcome)), o.n)
		}
	}
	for _, g := range []struct {
		name, unit, help string
		value            func(*store.Run) (float64, bool)
	}{
		{"plumb_last_run_start_seconds", "seconds", "When the last run of a command began, since 1970.", func(r *store.Run) (float64, bool) { return float64(r.Started.UnixMilli()) / 1000, true }},
		{"plumb_last_run_duration_seconds", "seconds", "How long it took.", func(r *store.Run) (float64, bool) { return r.Elapsed, true }},
		{"plumb_last_run_exit_code", "", "Its exit code.", func(r *store.Run) (float64, bool) {
			if r.Exit == nil {
				return 0, false
			}
			return float64(*r.Exit), true
		}},
	} {
		gauge(g.name, g.help)
		if g.unit != "" {
			fmt.Fprintf(w, "# UNIT %s %s\n", g.name, g.unit)
		}
		for _, one := range last {
			if v, ok := g.value(one); ok {
				fmt.Fprintf(w, "%s{command=%s} %v\n", g.name, label(one.Command), v)
			}
		}
	}
	_, err = w.WriteString("# EOF\n")
	return err
}

// badge is a picture of a run, or of the last one of a command that has every case.
func (r *request) badge() error {
	var run *store.Run
	var err error
	if r.FormValue("run") != "" {
		run, err = r.stored("run")
	} else {
		command := r.FormValue("command")
		err = r.store.Before(0, mostBefore, func(one *store.Run) error {
			if run == nil && one.Complete && (command == "" || one.Command == command) {
				run = one
			}
			return nil
		})
	}
	if err != nil {
		return err
	}
	if run == nil {
		return missing("no such run has ended")
	}
	aligned, findings := 0, 0
	err = r.store.Words(run.ID, func(_, word string, cases int) error {
		if word == string(verdict.Aligned) {
			aligned += cases
		}
		return nil
	})
	if err == nil && run.Failed > 0 {
		err = r.store.FirstSightings(run.ID, -1, func(*store.Sighting) error { findings++; return nil })
		findings = max(findings, 1)
	}
	if err != nil {
		return err
	}
	r.kind = "image/svg+xml"
	return report.WriteBadge(&r.body, run.Cases(), aligned, findings)
}

// label is a value of a label, in quotes.
func label(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(text) + `"`
}
