package command

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"plumb/internal/campaign/report"
	"plumb/internal/find/accepted"
	"plumb/internal/judge/verdict"
)

// defaultKnown is the list that is read where it is there.
const defaultKnown = "known.yaml"

// acceptedList is a list of accepted failures that is followed through a run; nil accepts nothing.
type acceptedList struct {
	watch   *accepted.Watch
	history *accepted.History
	clean   int
}

// openKnown opens the list at a path, "" for the default one where it exists.
func openKnown(given string, clean int, log io.Writer) (*acceptedList, error) {
	path := cmp.Or(given, defaultKnown)
	if path == "none" {
		return nil, nil
	}
	l, err := readKnown(path)
	if errors.Is(err, fs.ErrNotExist) && given == "" {
		return nil, nil
	}
	if err != nil {
		return nil, usage(err)
	}
	place, err := accepted.DefaultHistory(path)
	if err != nil {
		return nil, err
	}
	h, err := accepted.OpenHistory(place)
	if err != nil {
		fmt.Fprintf(log, "plumb: %v\n", err)
	}
	return &acceptedList{accepted.NewWatch(l, time.Now()), h, clean}, nil
}

// checkKnown returns an error where --known names no list.
func checkKnown(path string) error {
	if path == "none" {
		return nil
	}
	return checkRegular(path)
}

func readKnown(path string) (*accepted.List, error) {
	f, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	l, err := accepted.Read(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return l, nil
}

func (a *acceptedList) excuse(r *verdict.Record) {
	if a != nil {
		a.watch.Excuse(r)
	}
}

// settle counts the run and tells the summary which entries should go.
func (a *acceptedList) settle(s *report.Summary) error {
	if a == nil {
		return nil
	}
	fixed, err := a.history.Note(a.watch, a.clean)
	if err != nil {
		return err
	}
	s.Fixed = len(fixed)
	for _, e := range fixed {
		s.Stale = append(s.Stale, fmt.Sprintf("fixed: %s no longer fails (%s, %s); remove it from the known list", e, e.Reason, e.Owner))
	}
	for _, e := range a.watch.Expired() {
		s.Stale = append(s.Stale, fmt.Sprintf("expired: %s was accepted until %s (%s, %s)", e, e.Until, e.Reason, e.Owner))
	}
	return nil
}
