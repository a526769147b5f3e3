package command

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"plumb/internal/campaign/report"
	"plumb/internal/campaign/store"
)

// TestRunsThatGo: --older-than and --keep choose the runs that they say, and none that
// is under way; the file becomes smaller.
func TestRunsThatGo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	s, err := store.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	for i, days := range []int{90, 60, 40, 20, 1, 50} { // the last is still under way
		w, err := s.Begin(&store.Run{Command: "plumb run", Started: time.Now().Add(-time.Duration(days) * 24 * time.Hour)})
		for n := 0; n < 2000 && err == nil; n++ {
			err = w.Add(store.Case{Test: "t", Number: n, Program: fmt.Sprintf("%016x", n), Subject: "a", Outcome: report.Passed, Word: "aligned"})
		}
		if err == nil && i < 5 {
			err = w.End(true, 0)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		rm   historyRemoval
		want []int64
	}{
		{historyRemoval{keep: 0}, []int64{1, 2, 3, 4, 5}},
		{historyRemoval{keep: 2}, []int64{1, 2, 3, 4}},
		{historyRemoval{keep: 9}, nil},
		{historyRemoval{keep: -1, olderThan: 30 * 24 * time.Hour}, []int64{1, 2, 3}},
		{historyRemoval{keep: 4, olderThan: 30 * 24 * time.Hour}, []int64{1, 2}},
	} {
		runs, err := tt.rm.chosen(s, nil)
		var got []int64
		for _, r := range runs {
			got = append(got, r.ID)
		}
		if err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("%+v: %d, %v; want %d", tt.rm, got, err, tt.want)
		}
	}
	if _, err := (&historyRemoval{}).chosen(s, []string{"6"}); err == nil {
		t.Error("a run that is under way goes")
	}
	runs, err := (&historyRemoval{keep: 2}).chosen(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Vacuum(); err != nil {
		t.Fatal(err)
	}
	before := sizeOf(path)
	var out, errs bytes.Buffer
	if err := errors.Join((&historyRemoval{}).delete(s, path, runs, &out, &errs), s.Check()); err != nil || errs.Len() > 0 {
		t.Error(err, errs.String())
	}
	if after := sizeOf(path); after > before/2 {
		t.Errorf("%d bytes, before %d\n%s", after, before, out.String())
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
