package store

import (
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"plumb/internal/campaign/report"
)

// Runs hands every run to each, the oldest first.
func (s *Store) Runs(each func(*Run) error) error { return s.runs(`true ORDER BY id`, each) }

// Last hands the last runs to each, at most so many, the oldest first.
func (s *Store) Last(most int, each func(*Run) error) error {
	return s.runs(`id IN (SELECT id FROM runs ORDER BY id DESC LIMIT ?) ORDER BY id`, each, most)
}

// Before hands the runs before an id to each, the newest first, at most so many;
// the newest of all before 0.
func (s *Store) Before(id int64, most int, each func(*Run) error) error {
	return s.runs(`?1 = 0 OR id < ?1 ORDER BY id DESC LIMIT ?2`, each, id, most)
}

// Run returns a run by its id, or the last one by "last".
func (s *Store) Run(name string) (*Run, error) {
	var found *Run
	take := func(r *Run) error { found = r; return nil }
	if name == "last" {
		if err := s.runs(`true ORDER BY id DESC LIMIT 1`, take); err != nil || found != nil {
			return found, err
		}
		return nil, fmt.Errorf("results store %s has no runs", s.path)
	}
	id, err := strconv.ParseInt(name, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("run %q: want its number, or last", name)
	}
	if err := s.runs(`id = ?`, take, id); err != nil || found != nil {
		return found, err
	}
	return nil, fmt.Errorf("results store %s has no run %d", s.path, id)
}

// LastComplete returns the last complete conformance run of the same baseline and
// candidate; nil where there is none.
func (s *Store) LastComplete(like *Run) (*Run, error) {
	var found *Run
	err := s.runs(`complete = 1 AND id IN (SELECT run FROM recordings WHERE baseline_sha256 = ?)
		AND EXISTS (SELECT 1 FROM subjects u JOIN names ON names.id = u.name WHERE u.run = runs.id AND u.n = 1 AND text = ?)
		ORDER BY id DESC LIMIT 1`, func(one *Run) error { found = one; return nil }, like.Recording.Baseline, cut(like.Candidates()[0].Name, maxName))
	return found, err
}

func (s *Store) runs(where string, each func(*Run) error, args ...any) error {
	return s.query(`SELECT id, command, arguments, started_ms, ended_ms, elapsed_ms, complete, exit, seed, plumb, environment,
		passed, failed, unsupported, skipped, unrecorded, config, config_sha256, baseline_sha256, flags, wanted, written_ms, doing
		FROM runs JOIN progress ON progress.run = runs.id LEFT JOIN recordings ON recordings.run = runs.id WHERE `+where, args, func(rows *sql.Rows) error {
		var r Run
		var arguments, seed, environment string
		var started, ms, written int64
		var ended, exit sql.NullInt64
		var config, sha, base, flags sql.NullString
		err := rows.Scan(&r.ID, &r.Command, &arguments, &started, &ended, &ms, &r.Complete, &exit, &seed, &r.Plumb, &environment,
			&r.Passed, &r.Failed, &r.Unsupported, &r.Skipped, &r.Unrecorded, &config, &sha, &base, &flags, &r.Wanted, &written, &r.Doing)
		if err != nil {
			return err
		}
		r.Started, r.Elapsed = time.UnixMilli(started).UTC(), float64(ms)/1000
		r.Written = time.UnixMilli(written).UTC()
		if ended.Valid {
			r.Ended = time.UnixMilli(ended.Int64).UTC()
		}
		if exit.Valid {
			code := int(exit.Int64)
			r.Exit = &code
		}
		if config.Valid {
			r.Recording = &Recording{Config: config.String, ConfigSHA256: sha.String, Baseline: base.String, Flags: flags.String}
		}
		r.Seed, err = strconv.ParseUint(seed, 10, 64)
		err = errors.Join(err, json.Unmarshal([]byte(arguments), &r.Args), json.Unmarshal([]byte(environment), &r.Environment), s.complete(&r))
		r.Process = r.Environment[owner]
		if text := r.Environment[mistakes]; text != "" {
			err = errors.Join(err, json.Unmarshal([]byte(text), &r.Mistakes))
		}
		delete(r.Environment, owner)
		delete(r.Environment, mistakes)
		if err != nil {
			return fmt.Errorf("run %d: %w", r.ID, err)
		}
		return each(&r)
	})
}

// complete adds the subjects of a run, and the functions of a recording.
func (s *Store) complete(r *Run) error {
	err := s.query(`SELECT text, version FROM subjects JOIN names ON names.id = subjects.name WHERE run = ? ORDER BY n`, []any{r.ID}, func(rows *sql.Rows) error {
		var one Subject
		err := rows.Scan(&one.Name, &one.Version)
		r.Subjects = append(r.Subjects, one)
		return err
	})
	if err != nil || r.Recording == nil {
		return err
	}
	return s.query(`SELECT coalesce(sum(best >= 2), 0), coalesce(sum(best >= 3), 0)
		FROM (SELECT max(outcome) AS best FROM totals WHERE run = ? AND kind = ? GROUP BY name)`, []any{r.ID, ByTest}, func(rows *sql.Rows) error {
		return rows.Scan(&r.Recording.Functions, &r.Recording.Implemented)
	})
}

// Cases hands the cases of a run to each, in the order of the run; of a
// conformance run in the order of the baseline.
func (s *Store) Cases(run int64, each func(*Case) error) error {
	return s.cases(`c.run = ? ORDER BY c.n`, each, run)
}

// Failures hands cases of a run that failed to each, at most so many.
func (s *Store) Failures(run int64, most int, each func(*Case) error) error {
	return s.cases(`c.run = ? AND c.outcome = 4 ORDER BY c.n LIMIT ?`, each, run, most)
}

// Page hands the cases of a run from n on to each, at most so many: of an outcome
// and of a test, where these are given.
func (s *Store) Page(run, n int64, outcome, test string, most int, each func(*Case) error) error {
	at := slices.Index(outcomes, report.Outcome(outcome))
	return s.cases(`c.run = ? AND c.n >= ? AND (? < 0 OR outcome = ?) AND (? = '' OR test = (SELECT id FROM names WHERE text = ?)) ORDER BY c.n LIMIT ?`,
		each, run, n, at, at, test, test, most)
}

// name is the text of a column of cases that holds the id of a name.
func name(column string) string { return `(SELECT text FROM names WHERE id = c.` + column + `)` }

func (s *Store) cases(where string, each func(*Case) error, args ...any) error {
	return s.query(`SELECT c.n, `+name("test")+`, `+name("name")+`, `+name("variant")+`, number, c.program, `+name("subject")+`, `+name("mode")+`,
		`+name("operator")+`, `+name("dtypes")+`, outcome, `+name("verdict")+`, compared, drawn, worst, `+name("worst_at")+`, elapsed_us, reference_us,
		coalesce(kind, ''), coalesce(reason, ''), coalesce(lenient, ''), coalesce(d.program, '')
		FROM cases c LEFT JOIN details d ON d.run = c.run AND d.n = c.n WHERE `+where, args, func(rows *sql.Rows) error {
		var c Case
		var operator string
		var program []byte
		var outcome int
		var worst sql.NullFloat64
		var us, reference sql.NullInt64
		err := rows.Scan(&c.N, &c.Test, &c.Name, &c.Variant, &c.Number, &program, &c.Subject, &c.Mode, &operator, &c.DTypes, &outcome, &c.Word,
			&c.Compared, &c.Drawn, &worst, &c.WorstAt, &us, &reference, &c.Kind, &c.Reason, &c.Lenient, &c.Text)
		if err != nil {
			return err
		}
		if outcome < 0 || outcome >= len(outcomes) {
			return fmt.Errorf("outcome %d: want 0 to %d", outcome, len(outcomes)-1)
		}
		if operator != "" {
			c.Operators = []string{operator}
		}
		c.Program, c.Outcome, c.Worst = hex.EncodeToString(program), outcomes[outcome], math.NaN()
		c.Elapsed, c.Reference = time.Duration(us.Int64)*time.Microsecond, time.Duration(reference.Int64)*time.Microsecond
		if worst.Valid {
			c.Worst = worst.Float64
		}
		return each(&c)
	})
}

// query hands each row of a query on.
func (s *Store) query(text string, args []any, each func(*sql.Rows) error) error {
	rows, err := s.conn.QueryContext(s.context(), text, args...)
	if err != nil {
		return s.fail("read", err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := each(rows); err != nil {
			return s.fail("read", err)
		}
	}
	if err := rows.Err(); err != nil {
		return s.fail("read", err)
	}
	return nil
}
