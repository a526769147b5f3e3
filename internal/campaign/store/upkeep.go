package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// Check looks whether the file is sound, whether what its rows name is there, and
// whether the counts of runs and campaigns are those of their cases.
func (s *Store) Check() error {
	var errs []error
	err := s.query(`PRAGMA integrity_check(10)`, nil, func(rows *sql.Rows) error {
		var text string
		if err := rows.Scan(&text); err != nil {
			return err
		}
		if text != "ok" {
			errs = append(errs, errors.New(text))
		}
		return nil
	})
	errs = append(errs, err)
	errs = append(errs, s.checkCounts(
		`SELECT r.id, passed + failed + unsupported + skipped + unrecorded, (SELECT count(*) FROM cases WHERE run = r.id) FROM runs r`, "run %d counts %d cases and has %d"),
		s.checkCounts(`SELECT run, sum(cases), (SELECT count(*) FROM cases c WHERE c.run = u.run) FROM units u GROUP BY run`, "the units of campaign %d have %d cases, and it has %d"),
		s.checkCounts(`SELECT run, count(*), sum(EXISTS (SELECT 1 FROM names WHERE id = c.test) AND EXISTS (SELECT 1 FROM names WHERE id = c.subject)) FROM cases c GROUP BY run`, "run %d has %d cases, and names for %d"))
	if err := errors.Join(errs...); err != nil {
		return s.fail("check", err)
	}
	return nil
}

// checkCounts holds two counts of each run to each other.
func (s *Store) checkCounts(text, message string) error {
	var errs []error
	err := s.query(text, nil, func(rows *sql.Rows) error {
		var run, said, had int64
		if err := rows.Scan(&run, &said, &had); err != nil {
			return err
		}
		if said != had {
			errs = append(errs, fmt.Errorf(message, run, said, had))
		}
		return nil
	})
	return errors.Join(append(errs, err)...)
}

// Vacuum gives the room of what was deleted back to the file system.
func (s *Store) Vacuum() error {
	for _, text := range []string{`VACUUM`, `PRAGMA wal_checkpoint(TRUNCATE)`} {
		if _, err := s.conn.ExecContext(context.Background(), text); err != nil {
			return s.fail("vacuum", err)
		}
	}
	return nil
}
