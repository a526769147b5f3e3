package store

import "database/sql"

// Flake is a test of a subject that ended in several ways under one command line and
// seed, with one build of Plumb, one version of the subject and one of the reference.
type Flake struct {
	Test    string `json:"test"`
	Subject string `json:"subject"`
	Version string `json:"version"`
	Seed    string `json:"seed"`
	Runs    int    `json:"runs"`
	Failed  int    `json:"failed"` // of these
	Last    int64  `json:"last_run"`
}

// Flakes hands tests that failed in some and not in others of equal runs to each,
// those that did so last first.
func (s *Store) Flakes(most int, each func(*Flake) error) error {
	return s.query(`WITH equal AS (SELECT r.id AS run, c.name AS subject, c.version, dense_rank() OVER (ORDER BY seed, plumb, arguments, u.name, u.version, c.name, c.version) AS form
			FROM runs r JOIN subjects u ON u.run = r.id AND u.n = 0 JOIN subjects c ON c.run = r.id AND c.n > 0 WHERE complete = 1),
		again AS MATERIALIZED (SELECT run, subject, version, form FROM equal WHERE form IN (SELECT form FROM equal GROUP BY form HAVING count(*) > 1))
		SELECT (SELECT text FROM names WHERE id = name), (SELECT text FROM names WHERE id = subject), version, (SELECT seed FROM runs WHERE id = run), runs, failed, run FROM (
			SELECT t.name, t.subject, version, count(DISTINCT t.run) AS runs, count(DISTINCT iif(outcome = 4, t.run, NULL)) AS failed, max(t.run) AS run
			FROM again CROSS JOIN totals t ON t.run = again.run AND t.subject = again.subject AND t.kind = 2 GROUP BY form, t.name HAVING failed > 0 AND failed < runs) ORDER BY run DESC, 1 LIMIT ?`, []any{most},
		func(rows *sql.Rows) error {
			var f Flake
			if err := rows.Scan(&f.Test, &f.Subject, &f.Version, &f.Seed, &f.Runs, &f.Failed, &f.Last); err != nil {
				return err
			}
			return each(&f)
		})
}

// Names hands the names of a kind to each with the last run that has them: those
// that hold a text, from so many on, at most so many.
func (s *Store) Names(kind Kind, holding string, after, most int, each func(name string, last int64) error) error {
	return s.query(`SELECT text, max(run) FROM latest JOIN names ON names.id = name WHERE kind = ? AND instr(text, ?) > 0 AND text <> ''
		GROUP BY name ORDER BY text LIMIT ? OFFSET ?`, []any{int(kind), holding, most, after}, func(rows *sql.Rows) error {
		var name string
		var last int64
		if err := rows.Scan(&name, &last); err != nil {
			return err
		}
		return each(name, last)
	})
}

// Latest hands the totals of each operator and subject to each, of the last run
// that has them; those of operators that hold a text.
func (s *Store) Latest(holding string, most int, each func(*Total) error) error {
	return s.totals(`(run, kind, name, subject) IN (SELECT run, kind, name, subject FROM latest WHERE kind = 3 AND name IN
		(SELECT DISTINCT name FROM latest JOIN names ON names.id = name WHERE kind = 3 AND instr(text, ?1) > 0 ORDER BY text LIMIT ?2)) ORDER BY 2, 4, outcome DESC`, each, holding, most)
}

// Size is how much the store holds.
type Size struct{ Runs, Cases, Findings int }

// Size counts what the store holds.
func (s *Store) Size() (z Size, err error) {
	err = s.query(`SELECT count(*), coalesce(sum(passed + failed + unsupported + skipped + unrecorded), 0), (SELECT count(*) FROM spans) FROM runs`, nil,
		func(rows *sql.Rows) error { return rows.Scan(&z.Runs, &z.Cases, &z.Findings) })
	return z, err
}

// LastOf hands the last run of each command to each.
func (s *Store) LastOf(each func(*Run) error) error {
	return s.runs(`id IN (SELECT max(id) FROM runs GROUP BY command) ORDER BY command LIMIT 100`, each)
}
