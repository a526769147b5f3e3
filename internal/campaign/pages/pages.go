package pages

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"plumb/internal/campaign/report"
	"plumb/internal/campaign/store"
)

// The most that a page shows.
const (
	mostRuns     = 50
	mostRows     = 500
	mostCases    = 200
	mostChanges  = 500
	mostFindings = 100
	mostNames    = 200
	trendRuns    = 60
	mostBefore   = 1000 // runs among which one of a command is looked for
)

// outcomes are those of cases, what matters most first.
var outcomes = []report.Outcome{report.Failed, report.Passed, report.Unsupported, report.Skipped, report.Unrecorded}

// whole is a number of the address, or of its query; 0 where there is none.
func (r *request) whole(name string) (int64, error) {
	text := cmp.Or(r.PathValue(name), r.FormValue(name))
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, missing(fmt.Sprintf("%s=%q is no number", name, text))
	}
	return n, nil
}

func (r *request) stored(name string) (*store.Run, error) {
	text := cmp.Or(r.PathValue(name), r.FormValue(name))
	if _, err := strconv.ParseUint(text, 10, 63); err != nil && text != "last" {
		return nil, missing(fmt.Sprintf("run %q: want its number, or last", text))
	}
	run, err := r.store.Run(text)
	if err != nil && r.Context().Err() == nil {
		return nil, missing(fmt.Sprintf("the store has no run %s", text))
	}
	return run, err
}

func (r *request) runs() error { return r.listed("runs") }

// now is what changes of the page of runs.
func (r *request) now() error { return r.listed("runlist") }

func (r *request) listed(template string) error {
	before, err := r.whole("before")
	if err != nil {
		return err
	}
	var all []*store.Run
	if err := r.store.Before(before, mostRuns, func(one *store.Run) error { all = append(all, one); return nil }); err != nil {
		return err
	}
	data := map[string]any{"Title": "Runs", "Runs": all, "First": "", "Second": "", "Older": int64(0), "Live": before == 0}
	if len(all) > 1 {
		data["First"], data["Second"] = all[1].ID, all[0].ID
	}
	if len(all) == mostRuns {
		data["Older"] = all[mostRuns-1].ID
	}
	return r.page(template, data)
}

func (r *request) run() error {
	run, err := r.stored("run")
	if err != nil {
		return err
	}
	data := map[string]any{"Title": fmt.Sprintf("Run %d: %s", run.ID, run.Command), "Outcomes": outcomes}
	for _, of := range []ofRun{ofTests, ofOperators} {
		g, err := r.groups(of, run.ID)
		if err != nil {
			return err
		}
		g.part(0, mostRows, fmt.Sprintf("/runs/%d/%s", run.ID, of.path))
		data[of.title] = g
	}
	data["Previous"] = int64(0)
	err = r.store.Before(run.ID, mostRuns, func(one *store.Run) error {
		if one.Command == run.Command && data["Previous"] == int64(0) {
			data["Previous"] = one.ID
		}
		return nil
	})
	if err != nil {
		return err
	}
	return r.running("run", run, data)
}

// runNow is what changes of the page of a run under way.
func (r *request) runNow() error {
	run, err := r.stored("run")
	if err != nil {
		return err
	}
	return r.running("running", run, map[string]any{})
}

// mostFailing bounds the failing tests that are shown of a run under way.
const mostFailing = 20

// running adds what changes while a run is under way.
func (r *request) running(template string, run *store.Run, data map[string]any) error {
	subjects, err := r.groups(ofRun{"Subjects", "", "", store.BySubject}, run.ID)
	if err != nil {
		return err
	}
	failing := &groups{}
	if run.Going() {
		if failing, err = r.groups(ofTests, run.ID); err != nil {
			return err
		}
		failing.Label = "Failing so far"
		failing.Rows = slices.DeleteFunc(failing.Rows, func(g *group) bool { return g.Failed == 0 })
		failing.part(0, mostFailing, fmt.Sprintf("/runs/%d/tests", run.ID))
	}
	var found []store.Sighting
	err = r.store.FirstSightings(run.ID, mostFindings+1, func(f *store.Sighting) error { found = append(found, *f); return nil })
	if err != nil {
		return err
	}
	data["MoreFindings"] = len(found) > mostFindings
	found = found[:min(len(found), mostFindings)]
	data["Run"], data["Subjects"], data["Failing"], data["Findings"], data["Live"] = run, subjects, failing, found, run.Going()
	return r.page(template, data)
}

// ofRun is a table of a run: what its rows are of.
type ofRun struct {
	title, path, name string
	kind              store.Kind
}

var (
	ofTests     = ofRun{"Tests", "tests", "test", store.ByTest}
	ofOperators = ofRun{"Operators", "operators", "operator", store.ByOperator}
)

// groups are the rows of a table of a run: what failed first.
func (r *request) groups(of ofRun, run int64) (*groups, error) {
	g := &groups{Label: of.title, Of: of.name}
	err := r.store.Totals(of.kind, run, g.add)
	slices.SortStableFunc(g.Rows, func(a, b *group) int { return b.Failed - a.Failed })
	return g, err
}

func (r *request) runTests() error     { return r.rows(ofTests) }
func (r *request) runOperators() error { return r.rows(ofOperators) }

// rows shows the rows of a table of a run from so many on.
func (r *request) rows(of ofRun) error {
	run, err := r.stored("run")
	if err != nil {
		return err
	}
	after, err := r.whole("after")
	if err != nil {
		return err
	}
	g, err := r.groups(of, run.ID)
	if err != nil {
		return err
	}
	g.part(int(min(after, int64(len(g.Rows)))), mostRows, fmt.Sprintf("/runs/%d/%s", run.ID, of.path))
	return r.page("rows", map[string]any{"Title": fmt.Sprintf("%s of run %d", of.title, run.ID), "Run": run.ID, "Table": g})
}

func (r *request) cases() error {
	run, err := r.stored("run")
	if err != nil {
		return err
	}
	from, err := r.whole("from")
	if err != nil {
		return err
	}
	outcome, test := report.Outcome(r.FormValue("outcome")), r.FormValue("test")
	if outcome != "" && !slices.Contains(outcomes, outcome) {
		return missing(fmt.Sprintf("no case ends %q", outcome))
	}
	var all []store.Case
	if err := r.store.Page(run.ID, from, string(outcome), test, mostCases+1, func(c *store.Case) error { all = append(all, *c); return nil }); err != nil {
		return err
	}
	next := int64(0)
	if len(all) > mostCases {
		next, all = all[mostCases].N, all[:mostCases]
	}
	return r.page("cases", map[string]any{"Title": fmt.Sprintf("Cases of run %d %s", run.ID, outcome), "Run": run.ID, "Cases": all, "Next": next, "Outcome": outcome, "Outcomes": outcomes, "Test": test})
}

func (r *request) one() error {
	run, err := r.stored("run")
	if err != nil {
		return err
	}
	n, err := r.whole("n")
	if err != nil {
		return err
	}
	var found *store.Case
	if err := r.store.Page(run.ID, n, "", "", 1, func(c *store.Case) error { found = c; return nil }); err != nil {
		return err
	}
	if found == nil || found.N != n {
		return missing(fmt.Sprintf("run %d has no case %d", run.ID, n))
	}
	return r.page("case", map[string]any{"Title": fmt.Sprintf("%s %s case %d", found.Test, found.Name, found.Number), "Run": run.ID, "Case": found})
}

func (r *request) compare() error {
	a, err := r.stored("a")
	if err != nil {
		return err
	}
	b, err := r.stored("b")
	if err != nil {
		return err
	}
	counts := map[string]int{}
	var changes []store.Change
	take := func(c *store.Change) error {
		if counts[c.Kind]++; len(changes) < mostChanges {
			changes = append(changes, *c)
		}
		return nil
	}
	o, err := r.store.Diff(a.ID, b.ID, take)
	common := fmt.Sprintf("%d cases are in both, %d only in run %d, %d only in run %d.", o.Common, o.OnlyBefore, a.ID, o.OnlyAfter, b.ID)
	if err == nil && o.Common == 0 {
		common = "No case is in both, so tests are compared."
		err = r.store.DiffTests(a.ID, b.ID, take)
	}
	if err != nil {
		return err
	}
	type kind struct {
		Kind  string
		Count int
	}
	var kinds []kind
	all := 0
	for _, k := range []string{store.NewlyFailing, store.NoLongerJudged, store.NewlyPassing, store.Changed} {
		kinds = append(kinds, kind{k, counts[k]})
		all += counts[k]
	}
	return r.page("compare", map[string]any{"Title": fmt.Sprintf("Run %d compared with run %d", a.ID, b.ID), "A": a, "B": b, "Common": common, "Kinds": kinds, "Changes": changes, "More": all > len(changes)})
}

func (r *request) findings() error {
	after, err := r.whole("after")
	if err != nil {
		return err
	}
	run, err := r.whole("run")
	if err != nil {
		return err
	}
	query := r.FormValue("q")
	var all []store.Finding
	err = r.store.Findings(store.FindingQuery{Holding: query, Run: run, Most: mostFindings + 1, After: int(after)}, func(f *store.Finding) error { all = append(all, *f); return nil })
	if err != nil {
		return err
	}
	next := 0
	if len(all) > mostFindings {
		next, all = int(after)+mostFindings, all[:mostFindings]
	}
	title := "Findings over runs"
	if run > 0 {
		title = fmt.Sprintf("Findings of run %d", run)
	}
	return r.page("findings", map[string]any{"Title": title, "Findings": all, "Next": next, "Query": query, "Run": run})
}

func (r *request) finding() error {
	id, err := r.whole("id")
	if err != nil {
		return err
	}
	found, seen, err := r.store.Finding(id)
	if err != nil {
		return err
	}
	if found == nil {
		return missing(fmt.Sprintf("the store has no finding %d", id))
	}
	return r.page("finding", map[string]any{"Title": fmt.Sprintf("Finding %d", id), "Finding": found, "Seen": seen, "Newest": seen[0]})
}

func (r *request) flaky() error {
	var all []store.Flake
	if err := r.store.Flakes(mostRows, func(f *store.Flake) error { all = append(all, *f); return nil }); err != nil {
		return err
	}
	return r.page("flaky", map[string]any{"Title": "Flaky tests", "Flakes": all})
}

func (r *request) tests() error     { return r.names(store.ByTest, "test", "Tests") }
func (r *request) operators() error { return r.names(store.ByOperator, "operator", "Operators") }
func (r *request) test() error      { return r.trend(store.ByTest, "test") }
func (r *request) operator() error  { return r.trend(store.ByOperator, "operator") }

func (r *request) names(kind store.Kind, of, title string) error {
	after, err := r.whole("after")
	if err != nil {
		return err
	}
	type name struct {
		Name string
		Last int64
	}
	var all []name
	err = r.store.Names(kind, r.FormValue("q"), int(after), mostNames+1, func(n string, last int64) error { all = append(all, name{n, last}); return nil })
	if err != nil {
		return err
	}
	next := 0
	if len(all) > mostNames {
		next, all = int(after)+mostNames, all[:mostNames]
	}
	return r.page("names", map[string]any{"Title": title, "Of": of, "Names": all, "Query": r.FormValue("q"), "Next": next})
}

// trend shows a test or an operator over the last runs.
func (r *request) trend(kind store.Kind, of string) error {
	name := r.FormValue("name")
	g := &groups{Label: "Runs"}
	if err := r.store.Trend(kind, name, trendRuns, g.add); err != nil {
		return err
	}
	rows := g.Rows
	table := &groups{Label: "Runs", Of: "run"}
	for _, row := range slices.Backward(rows) {
		one := *row
		one.Name = strconv.FormatInt(row.Run, 10)
		table.Rows = append(table.Rows, &one)
	}
	charts := []chart{
		bars("Cases of each run by outcome", rows, outcomeParts), bars("Largest error ÷ limit of each run, cut at 2", rows, worstParts), bars("Milliseconds a case of each run", rows, timeParts),
	}
	return r.page("trend", map[string]any{"Title": of + " " + name, "Bars": len(rows), "Charts": charts, "Table": table})
}

// matrix shows operators × subjects.
func (r *request) matrix() error {
	g := &groups{}
	if err := r.store.Latest(r.FormValue("q"), mostRows, g.add); err != nil {
		return err
	}
	var subjects []string
	for _, row := range g.Rows {
		if !slices.Contains(subjects, row.Subject) {
			subjects = append(subjects, row.Subject)
		}
	}
	slices.Sort(subjects)
	type line struct {
		Name  string
		Cells []*group
	}
	var lines []*line
	for _, row := range g.Rows {
		if len(lines) == 0 || lines[len(lines)-1].Name != row.Name {
			lines = append(lines, &line{row.Name, slices.Repeat([]*group{{}}, len(subjects))})
		}
		lines[len(lines)-1].Cells[slices.Index(subjects, row.Subject)] = row
	}
	return r.page("matrix", map[string]any{"Title": "Operators by subject", "Query": r.FormValue("q"), "Subjects": subjects, "Rows": lines})
}
