package pages

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

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
)

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

func (r *request) runs() error {
	before, err := r.whole("before")
	if err != nil {
		return err
	}
	var all []*store.Run
	if err := r.store.Before(before, mostRuns, func(one *store.Run) error { all = append(all, one); return nil }); err != nil {
		return err
	}
	data := map[string]any{"Title": "Runs", "Runs": all, "First": "", "Second": "", "Older": int64(0)}
	if len(all) > 1 {
		data["First"], data["Second"] = all[1].ID, all[0].ID
	}
	if len(all) == mostRuns {
		data["Older"] = all[mostRuns-1].ID
	}
	return r.page("runs", data)
}

func (r *request) run() error {
	run, err := r.stored("run")
	if err != nil {
		return err
	}
	data := map[string]any{"Title": fmt.Sprintf("Run %d: %s", run.ID, run.Command), "Run": run, "Outcomes": []string{"failed", "passed", "unsupported", "skipped", "unrecorded"}}
	for _, of := range []struct {
		key, label, name string
		kind             store.Kind
	}{{"Subjects", "Subjects", "", store.BySubject}, {"Tests", "Tests", "test", store.ByTest}, {"Operators", "Operators", "operator", store.ByOperator}} {
		g := &groups{Label: of.label, Of: of.name}
		if err := r.store.Totals(of.kind, run.ID, g.add); err != nil {
			return err
		}
		g.most(mostRows)
		data[of.key] = g
	}
	var found []store.Sighting
	if err := r.store.Sightings(run.ID, func(f *store.Sighting) error { found = append(found, *f); return nil }); err != nil {
		return err
	}
	data["Findings"], data["Previous"] = found, int64(0)
	err = r.store.Before(run.ID, mostRuns, func(one *store.Run) error {
		if one.Command == run.Command && data["Previous"] == int64(0) {
			data["Previous"] = one.ID
		}
		return nil
	})
	if err != nil {
		return err
	}
	return r.page("run", data)
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
	outcome, test := r.FormValue("outcome"), r.FormValue("test")
	var all []store.Case
	if err := r.store.Page(run.ID, from, outcome, test, mostCases+1, func(c *store.Case) error { all = append(all, *c); return nil }); err != nil {
		return err
	}
	next := int64(0)
	if len(all) > mostCases {
		next, all = all[mostCases].N, all[:mostCases]
	}
	return r.page("cases", map[string]any{"Title": fmt.Sprintf("Cases of run %d %s", run.ID, outcome), "Run": run.ID, "Cases": all, "Next": next, "Outcome": outcome, "Test": test})
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
	n, err := r.store.Common(a.ID, b.ID)
	if err != nil {
		return err
	}
	walk, common := r.store.Diff, fmt.Sprintf("%d cases are in both.", n)
	if n == 0 {
		walk, common = r.store.DiffTests, "No case is in both, so tests are compared."
	}
	counts := map[string]int{}
	var changes []store.Change
	err = walk(a.ID, b.ID, func(c *store.Change) error {
		if counts[c.Kind]++; len(changes) < mostChanges {
			changes = append(changes, *c)
		}
		return nil
	})
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
	var all []store.Finding
	if err := r.store.Findings(mostFindings+1, int(after), func(f *store.Finding) error { all = append(all, *f); return nil }); err != nil {
		return err
	}
	next := 0
	if len(all) > mostFindings {
		next, all = int(after)+mostFindings, all[:mostFindings]
	}
	return r.page("findings", map[string]any{"Title": "Findings over runs", "Findings": all, "Next": next})
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
