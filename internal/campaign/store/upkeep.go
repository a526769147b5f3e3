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
		s.checkCounts(`SELECT run, count(*), sum(EXISTS (SELECT 1 FROM names WHERE id = c.test) AND EXISTS (SELECT 1 FROM names WHERE id = c.subject)) FROM cases c WHERE run NOT IN (SELECT run FROM gone) GROUP BY run`, "run %d has %d cases, and names for %d"))
	errs = append(errs, s.checkCounts(`SELECT r.id, passed + failed + unsupported + skipped + unrecorded, (SELECT coalesce(sum(records), 0) FROM digests WHERE run = r.id) FROM runs r`, "run %d counts %d cases and has digests of %d"))
	errs = append(errs, s.checkCounts(`SELECT finding, runs, (SELECT count(*) FROM sightings s WHERE s.finding = p.finding) FROM spans p`, "finding %d was seen in %d runs, and there are %d"))
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

// Free is the share of the file that holds nothing.
func (s *Store) Free() (share float64, err error) {
	var free, all float64
	err = errors.Join(
		s.query(`PRAGMA freelist_count`, nil, func(rows *sql.Rows) error { return rows.Scan(&free) }),
		s.query(`PRAGMA page_count`, nil, func(rows *sql.Rows) error { return rows.Scan(&all) }))
	return free / max(all, 1), err
}

// Vacuum gives the room of what was deleted back to the file system.
func (s *Store) Vacuum() error {
	if err := s.unbound(context.Background(), func() error { return s.sweep(context.Background()) }); err != nil {
		return s.fail("vacuum", err)
	}
	for _, text := range []string{`VACUUM`, `PRAGMA wal_checkpoint(TRUNCATE)`} {
		if _, err := s.conn.ExecContext(context.Background(), text); err != nil {
			return s.fail("vacuum", err)
		}
	}
	return nil
}
