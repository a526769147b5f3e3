package store

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"plumb/internal/campaign/report"
)

// total is the key of a row of totals, sums what it sums up.
type total struct {
	kind                       Kind
	name, dtype, subject, word string
	outcome                    int
}

type sums struct {
	cases              int
	worst              float64
	elapsed, reference time.Duration
}

// sum adds a case to the totals that are to be written.
func (w *Writer) sum(c *Case, outcome int) {
	dtype, _, _ := strings.Cut(c.DTypes, " ")
	key := total{BySubject, "", "", c.Subject, c.Word, outcome}
	w.sumAs(key, c)
	key.kind, key.name = ByTest, c.Test
	w.sumAs(key, c)
	key.kind, key.name = ByDType, dtype
	w.sumAs(key, c)
	key.kind, key.dtype = ByOperator, dtype
	for i, name := range c.Operators {
		if !slices.Contains(c.Operators[:i], name) {
			key.name = name
			w.sumAs(key, c)
		}
	}
}

func (w *Writer) sumAs(key total, c *Case) {
	s := w.totals[key]
	if s == nil {
		s = &sums{worst: math.NaN()}
		w.totals[key] = s
	}
	s.cases++
	s.elapsed += c.Elapsed
	s.reference += c.Reference
	if !(c.Worst <= s.worst) && !math.IsNaN(c.Worst) {
		s.worst = c.Worst
	}
}

// addTotals writes what the batch adds to the totals.
func (w *Writer) addTotals(ctx context.Context, tx *sql.Tx) error {
	add, err := tx.PrepareContext(ctx, `INSERT INTO totals (run, kind, name, dtype, subject, outcome, verdict, cases, worst, elapsed_us, reference_us)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET cases = cases + excluded.cases,
		worst = max(coalesce(worst, excluded.worst), coalesce(excluded.worst, worst)),
		elapsed_us = elapsed_us + excluded.elapsed_us, reference_us = reference_us + excluded.reference_us`)
	if err != nil {
		return err
	}
	defer add.Close()
	for _, key := range slices.SortedFunc(maps.Keys(w.totals), total.compare) {
		s := w.totals[key]
		ids, err := w.names.all(ctx, key.name, key.dtype, key.subject, key.word)
		if err != nil {
			return err
		}
		_, err = add.ExecContext(ctx, w.ID, key.kind, ids[0], ids[1], ids[2], key.outcome, ids[3],
			s.cases, number(s.worst), s.elapsed.Microseconds(), s.reference.Microseconds())
		if err = cmp.Or(err, w.addLatest(ctx, key, ids[0], ids[2])); err != nil {
			return err
		}
	}
	clear(w.totals)
	return nil
}

// compare orders keys, so that equal runs write equal files.
func (t total) compare(u total) int {
	if d := int(t.kind) - int(u.kind); d != 0 {
		return d
	}
	if d := t.outcome - u.outcome; d != 0 {
		return d
	}
	for _, pair := range [][2]string{{t.name, u.name}, {t.dtype, u.dtype}, {t.subject, u.subject}, {t.word, u.word}} {
		if d := strings.Compare(pair[0], pair[1]); d != 0 {
			return d
		}
	}
	return 0
}

// Total is how many cases of a kind have a verdict.
type Total struct {
	Run       int64          `json:"run"`
	Name      string         `json:"name,omitempty"` // of the test, operator or dtype
	DType     string         `json:"dtype,omitempty"`
	Subject   string         `json:"subject"`
	Outcome   report.Outcome `json:"outcome"`
	Word      string         `json:"verdict"`
	Cases     int            `json:"cases"`
	Worst     float64        `json:"-"` // NaN where nothing was compared
	Elapsed   time.Duration  `json:"-"`
	Reference time.Duration  `json:"-"`
}

// Totals hands the totals of a run to each, by name, dtype and subject, the worst
// outcome first.
func (s *Store) Totals(kind Kind, run int64, each func(*Total) error) error {
	return s.totals(`kind = ? AND run = ? ORDER BY 2, 3, 4, outcome DESC, cases DESC`, each, int(kind), run)
}

// Trend hands the totals of a name over the last runs to each, at most so many
// runs, the oldest first.
func (s *Store) Trend(kind Kind, name string, runs int, each func(*Total) error) error {
	return s.totals(`kind = ?1 AND name = (SELECT id FROM names WHERE text = ?2) AND run IN (SELECT DISTINCT run FROM totals
		WHERE kind = ?1 AND name = (SELECT id FROM names WHERE text = ?2) ORDER BY run DESC LIMIT ?3) ORDER BY run, 4, outcome DESC`, each, int(kind), name, runs)
}

func (s *Store) totals(where string, each func(*Total) error, args ...any) error {
	return s.query(`SELECT run, (SELECT text FROM names WHERE id = name), (SELECT text FROM names WHERE id = dtype), (SELECT text FROM names WHERE id = subject),
			outcome, (SELECT text FROM names WHERE id = verdict), cases, worst, elapsed_us, reference_us FROM totals WHERE `+where, args, func(rows *sql.Rows) error {
		var t Total
		var outcome int
		var worst sql.NullFloat64
		var us, reference int64
		if err := rows.Scan(&t.Run, &t.Name, &t.DType, &t.Subject, &outcome, &t.Word, &t.Cases, &worst, &us, &reference); err != nil {
			return err
		}
		if outcome < 0 || outcome >= len(outcomes) {
			return fmt.Errorf("outcome %d: want 0 to %d", outcome, len(outcomes)-1)
		}
		t.Outcome, t.Worst = outcomes[outcome], math.NaN()
		t.Elapsed, t.Reference = time.Duration(us)*time.Microsecond, time.Duration(reference)*time.Microsecond
		if worst.Valid {
			t.Worst = worst.Float64
		}
		return each(&t)
	})
}
