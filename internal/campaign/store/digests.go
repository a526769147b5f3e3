package store

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"hash/fnv"
	"slices"
	"strconv"
)

// digestTables are those that version 4 has not: of each test on each subject what
// tells whether two runs have the same verdicts on it, and where its cases are.
var digestTables = []object{
	{"digests", `CREATE TABLE digests (
  run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  test INTEGER NOT NULL,
  subject INTEGER NOT NULL,
  cases INTEGER NOT NULL,           -- records of several modes counted once
  records INTEGER NOT NULL,
  digest INTEGER NOT NULL,          -- of which case has which verdict, in no order
  first INTEGER NOT NULL,           -- n of its records
  last INTEGER NOT NULL,
  PRIMARY KEY (run, test, subject)
) STRICT, WITHOUT ROWID`},
}

// digestAll fills the table of a file of version 4; such a digest is like no other.
const digestAll = `INSERT INTO digests SELECT run, test, subject, count(DISTINCT name || ' ' || variant || ' ' || number), count(*), run, min(n), max(n)
	FROM cases GROUP BY run, test, subject`

// digest is a row that is to be added.
type digest struct {
	cases, records int
	sum            uint64
	first, last    int64
}

// caseKey is what makes records those of one case.
type caseKey struct {
	test, name, variant, program, subject string
	number                                int
}

// digest adds a record to the digests that are to be written.
func (w *Writer) digest(c *Case, outcome int) {
	at := [2]string{c.Test, c.Subject}
	d := w.digests[at]
	if d == nil {
		d = &digest{first: w.next}
		w.digests[at] = d
	}
	if key := (caseKey{c.Test, c.Name, c.Variant, c.Program, c.Subject, c.Number}); key != w.lastCase {
		d.cases++
		w.lastCase = key
	}
	h := fnv.New64a()
	for _, text := range []string{c.Name, c.Variant, c.Program, c.Mode, c.Word, strconv.Itoa(c.Number), strconv.Itoa(outcome)} {
		_, _ = h.Write([]byte(text))
		_, _ = h.Write([]byte{0})
	}
	d.records, d.last, d.sum = d.records+1, w.next, d.sum^h.Sum64()
}

// addDigests writes what the batch adds to the digests. SQLite has no exclusive or.
func (w *Writer) addDigests(ctx context.Context, tx *sql.Tx) error {
	add, err := tx.PrepareContext(ctx, `INSERT INTO digests (run, test, subject, cases, records, digest, first, last) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT DO UPDATE SET cases = cases + excluded.cases, records = records + excluded.records,
		digest = (digest | excluded.digest) - (digest & excluded.digest), first = min(first, excluded.first), last = max(last, excluded.last)`)
	if err != nil {
		return err
	}
	defer add.Close()
	keys := make([][2]string, 0, len(w.digests))
	for key := range w.digests {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b [2]string) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
	for _, key := range keys {
		ids, err := w.names.all(ctx, key[0], key[1])
		if err != nil {
			return err
		}
		d := w.digests[key]
		if _, err := add.ExecContext(ctx, w.ID, ids[0], ids[1], d.cases, d.records, int64(d.sum), d.first, d.last); err != nil {
			return err
		}
	}
	clear(w.digests)
	return nil
}

// unlike are the tests of subjects that two runs have both, with other verdicts, once
// for each run.
const unlike = `digests d JOIN digests e ON e.run = ?1 + ?2 - d.run AND e.test = d.test AND e.subject = d.subject
	AND (e.digest <> d.digest OR e.records <> d.records) AND d.run IN (?1, ?2) AND ?1 <> ?2`

// counted is how many cases two runs have, and how many of them in tests with the same
// verdicts.
type counted struct{ before, after, alike int }

func (s *Store) alike(before, after int64) (c counted, err error) {
	err = s.query(`SELECT (SELECT coalesce(sum(cases), 0) FROM digests WHERE run = ?1), (SELECT coalesce(sum(cases), 0) FROM digests WHERE run = ?2),
			(SELECT coalesce(sum(d.cases), 0) FROM digests d JOIN digests e ON d.run = ?1 AND e.run = ?2 AND e.test = d.test AND e.subject = d.subject AND e.digest = d.digest AND e.records = d.records)`,
		[]any{before, after}, func(rows *sql.Rows) error { return rows.Scan(&c.before, &c.after, &c.alike) })
	return c, err
}

// spread says whether most of the cases lie between those of tests that are unlike, and
// whether such tests are so scattered that all cases are read sooner than each of them.
func (s *Store) spread(before, after int64) (most, scattered bool, err error) {
	span, err := s.count(`SELECT coalesce(sum(d.last - d.first + 1), 0) FROM `+unlike, before, after)
	if err != nil {
		return false, false, err
	}
	all, err := s.count(`SELECT coalesce(sum(records), 0) FROM digests WHERE run IN (?, ?)`, before, after)
	return 2*span > all, span > 2*all, err
}

// mostPrograms bounds the programs of a run that are held in memory.
const mostPrograms = 1 << 20

// idBytes are those of the id of a program.
const idBytes = 8

// fewCommon returns the programs that two runs both have, as JSON, where every case has a
// program and those of both are few beside the cases, as in runs of other seeds.
func (s *Store) fewCommon(before, after int64) (common string, few bool, err error) {
	seen := map[[idBytes]byte]bool{} // whether the later run has it too
	cases, all := 0, true
	for _, run := range []int64{before, after} {
		n, err := s.count(`SELECT coalesce(sum(records), 0) FROM digests WHERE run = ?`, run)
		if err != nil || n > mostPrograms {
			return "", false, err
		}
		err = s.query(`SELECT count(*), CAST(coalesce(group_concat(program, ''), '') AS BLOB) FROM cases WHERE run = ?`, []any{run}, func(rows *sql.Rows) error {
			var n int
			var ids sql.RawBytes
			if err := rows.Scan(&n, &ids); err != nil {
				return err
			}
			cases, all = cases+n, all && len(ids) == n*idBytes
			for len(ids) >= idBytes {
				id := [idBytes]byte(ids)
				if _, earlier := seen[id]; earlier || run == before {
					seen[id] = run == after
				}
				ids = ids[idBytes:]
			}
			return nil
		})
		if err != nil {
			return "", false, err
		}
	}
	programs := []string{}
	for id, both := range seen {
		if both {
			programs = append(programs, hex.EncodeToString(id[:]))
		}
	}
	text, err := json.Marshal(programs)
	return string(text), all && 4*len(programs) < cases, err
}
