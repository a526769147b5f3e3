package store

import (
	"database/sql"
	"encoding/json"
	"time"
)

// Finding is one finding over all runs in which it was seen.
type Finding struct {
	ID       int64     `json:"id"`
	Subject  string    `json:"subject"`
	Operator string    `json:"operator"`
	What     string    `json:"what"`
	Runs     int       `json:"runs"`  // in which it was seen
	Cases    int       `json:"cases"` // of them all
	First    int64     `json:"first_run"`
	Last     int64     `json:"last_run"`
	Since    time.Time `json:"first_seen"`
	Until    time.Time `json:"last_seen"`
	// Versions are those of the subject in which it was seen, the first seen first.
	Versions []string `json:"versions"`
}

// maxVersions bounds the versions that a finding names.
const maxVersions = 32

// FindingQuery says which findings are wanted.
type FindingQuery struct {
	Holding     string // in their subject, operator, or how they fail
	Run         int64  // that saw them; 0 for any
	Most, After int    // at most so many, after so many
}

// Findings hands findings over all runs to each, those that were seen last first.
func (s *Store) Findings(q FindingQuery, each func(*Finding) error) error {
	return s.findings(`(?4 = '' OR instr(what, ?4) > 0 OR instr((SELECT text FROM names WHERE id = f.subject), ?4) > 0 OR instr((SELECT text FROM names WHERE id = f.operator), ?4) > 0)
		AND (?5 = 0 OR EXISTS (SELECT 1 FROM sightings WHERE sightings.finding = f.id AND run = ?5))`, each, q.Most, q.After, maxVersions, q.Holding, q.Run)
}

// Finding returns a finding and its sightings, the last first; nil where there is
// none of that id.
func (s *Store) Finding(id int64) (found *Finding, seen []Sighting, err error) {
	if err = s.findings(`f.id = ?4`, func(f *Finding) error { found = f; return nil }, 1, 0, maxVersions, id); err != nil || found == nil {
		return nil, nil, err
	}
	err = s.sightings(`f.id = ? ORDER BY run DESC LIMIT 200`, func(f *Sighting) error { seen = append(seen, *f); return nil }, id)
	return found, seen, err
}

func (s *Store) findings(where string, each func(*Finding) error, args ...any) error {
	return s.query(`SELECT f.id, (SELECT text FROM names WHERE id = f.subject), (SELECT text FROM names WHERE id = f.operator), what,
			runs, cases, first, last,
			(SELECT started_ms FROM runs WHERE id = first), (SELECT started_ms FROM runs WHERE id = last), (SELECT json_group_array(version) FROM (
				SELECT version FROM sightings g JOIN subjects u ON u.run = g.run AND u.name = f.subject AND u.n > 0 WHERE g.finding = f.id GROUP BY version ORDER BY min(g.run) LIMIT ?3))
		FROM spans CROSS JOIN findings f ON finding = f.id WHERE `+where+` ORDER BY last DESC, finding LIMIT ?1 OFFSET ?2`, args, func(rows *sql.Rows) error {
		var f Finding
		var since, until int64
		var versions string
		if err := rows.Scan(&f.ID, &f.Subject, &f.Operator, &f.What, &f.Runs, &f.Cases, &f.First, &f.Last, &since, &until, &versions); err != nil {
			return err
		}
		f.Since, f.Until = time.UnixMilli(since).UTC(), time.UnixMilli(until).UTC()
		if err := json.Unmarshal([]byte(versions), &f.Versions); err != nil {
			return err
		}
		return each(&f)
	})
}

// Sightings hands the findings of a run to each, in the order in which the store
// first saw them.
func (s *Store) Sightings(run int64, each func(*Sighting) error) error {
	return s.FirstSightings(run, -1, each)
}

// FirstSightings are Sightings, at most so many.
func (s *Store) FirstSightings(run int64, most int, each func(*Sighting) error) error {
	return s.sightings(`run = ? ORDER BY f.id LIMIT ?`, each, run, most)
}

// Lacks hands to each how many cases of a run a subject does not support for a reason.
func (s *Store) Lacks(run int64, each func(subject, reason string, cases int) error) error {
	return s.query(`SELECT (SELECT text FROM names WHERE id = subject), reason, count(*)
		FROM details d JOIN cases c USING (run, n) WHERE run = ? AND outcome = 2 GROUP BY subject, reason`, []any{run}, func(rows *sql.Rows) error {
		var subject, reason string
		var cases int
		if err := rows.Scan(&subject, &reason, &cases); err != nil {
			return err
		}
		return each(subject, reason, cases)
	})
}

// Reasons hands to each how many cases of some tests of a run have a verdict for a reason,
// test by test, the most frequent first.
func (s *Store) Reasons(run int64, word string, tests []string, each func(test, reason string, cases int) error) error {
	if len(tests) == 0 {
		return nil // without reading the run
	}
	names := make([]string, len(tests))
	for i, t := range tests {
		names[i] = cut(t, maxName)
	}
	return s.query(`SELECT (SELECT text FROM names WHERE id = test), reason, count(*) FROM cases c LEFT JOIN details d USING (run, n)
		WHERE run = ? AND verdict = (SELECT id FROM names WHERE text = ?) AND test IN (SELECT id FROM names WHERE text IN (SELECT value FROM json_each(?)))
		GROUP BY test, reason ORDER BY test, 3 DESC, reason`, []any{run, word, encoded(names)}, func(rows *sql.Rows) error {
		var test string
		var reason sql.NullString
		var cases int
		if err := rows.Scan(&test, &reason, &cases); err != nil {
			return err
		}
		return each(test, reason.String, cases)
	})
}

// BundleOf is the folder of the bundle of a finding as it was seen in a run; "" of none.
func (s *Store) BundleOf(finding, run int64) (dir string, err error) {
	err = s.query(`SELECT bundle FROM sightings WHERE finding = ? AND run = ?`, []any{finding, run}, func(rows *sql.Rows) error { return rows.Scan(&dir) })
	return dir, err
}

func (s *Store) sightings(where string, each func(*Sighting) error, args ...any) error {
	return s.query(`SELECT f.id, run, (SELECT text FROM names WHERE id = f.subject), (SELECT text FROM names WHERE id = f.operator), what,
			(SELECT text FROM names WHERE id = test), cases, reason, program, bundle, proof
		FROM sightings JOIN findings f ON f.id = finding WHERE `+where, args, func(rows *sql.Rows) error {
		var f Sighting
		if err := rows.Scan(&f.Finding, &f.Run, &f.Subject, &f.Operator, &f.What, &f.Test, &f.Cases, &f.Reason, &f.Program, &f.Bundle, &f.Proof); err != nil {
			return err
		}
		return each(&f)
	})
}
