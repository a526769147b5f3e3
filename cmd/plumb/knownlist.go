package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/pflag"

	"plumb/internal/campaign/report"
	"plumb/internal/find/accepted"
	"plumb/internal/judge/verdict"
)

// defaultKnown is the list that is read where it is there.
const defaultKnown = "known.yaml"

// knownFlags are the flags about accepted failures.
type knownFlags struct {
	file   string
	clean  int
	strict bool
}

func (f *knownFlags) register(fl *pflag.FlagSet) {
	fl.StringVar(&f.file, "known", "", `the list of accepted failures, see plumb known; "none" for none (default: `+defaultKnown+`, where it is there)`)
	fl.IntVar(&f.clean, "known-clean", accepted.CleanRuns, "clean runs on end after which an accepted failure counts as fixed")
	fl.BoolVar(&f.strict, "strict", false, "fail when an accepted failure is fixed or has expired")
}

// acceptedList is a list of accepted failures that is followed through a run; nil accepts nothing.
type acceptedList struct {
	watch   *accepted.Watch
	history *accepted.History
	clean   int
}

func (f *knownFlags) open(log io.Writer) (*acceptedList, error) {
	path := f.file
	if path == "" {
		path = defaultKnown
	}
	if path == "none" {
		return nil, nil
	}
	l, err := readKnown(path)
	if errors.Is(err, fs.ErrNotExist) && f.file == "" {
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
	return &acceptedList{accepted.NewWatch(l, time.Now()), h, f.clean}, nil
}

func readKnown(path string) (*accepted.List, error) {
	f, err := os.Open(path)
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
