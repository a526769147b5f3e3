package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"plumb/backend"
	"plumb/backend/open"
	"plumb/internal/campaign"
	"plumb/ops"
)

// defaultReference is believed where no --reference is given.
const defaultReference = "torch"

// subjects are the backends of a command: one is believed, the others are judged.
type subjects struct {
	reference  string // "" for the default
	candidates []string
	python     string
	device     string
	jobs       int

	set open.Set
}

// newSubjects returns the defaults.
func newSubjects() subjects {
	return subjects{candidates: []string{"native"}, device: "cpu", jobs: runtime.NumCPU()}
}

func (s *subjects) register(cmd *cobra.Command) {
	group(cmd, whichSubjects, func(fl *pflag.FlagSet) {
		fl.StringVar(&s.reference, "reference", "", "the backend that is believed (default torch): torch, native, recorded:FILE, …; see plumb help backends")
		fl.StringSliceVar(&s.candidates, "candidate", s.candidates, "the backends that are judged; may be repeated")
		pythonFlag(fl, &s.python)
		jobsFlag(fl, &s.jobs, "lanes that run cases at the same time")
	})
}

// open begins a campaign: it resolves the backends. With fallback, the shipped
// baseline takes the place of a default reference that is not on this machine.
func (s *subjects) open(ctx context.Context, timeout time.Duration, fallback bool, log io.Writer) (*campaign.Config, error) {
	s.set.Table, s.set.Python, s.set.Timeout = ops.Table(), s.python, timeout
	given := s.reference != ""
	if !given {
		s.reference = defaultReference
	}
	if err := idlePython(s.python, append(s.candidates, s.reference)...); err != nil {
		return nil, err
	}
	cfg := &campaign.Config{Jobs: s.jobs, Batch: 32}
	var err error
	cfg.Reference, err = s.set.Opener(ctx, s.reference)
	var missing *backend.Fault
	if errors.As(err, &missing) && fallback && !given && s.python == "" {
		s.reference = "recorded"
		fmt.Fprintf(log, "plumb: %v: the recorded baseline is the reference; for fresh random cases: %s\n", missing.Err, missing.Fix)
		cfg.Reference, err = s.set.Opener(ctx, s.reference)
	}
	if err != nil {
		return nil, harness(err)
	}
	for _, spec := range s.candidates {
		opener, err := s.set.Opener(ctx, spec)
		if err != nil {
			return nil, harness(err)
		}
		cfg.Candidates = append(cfg.Candidates, campaign.Candidate{Name: spec, Open: opener})
	}
	return cfg, s.checkDevice(cfg)
}

func isTorch(spec string) bool { return spec == "torch" || strings.HasPrefix(spec, "torch:") }

// checkDevice refuses a device that one of the backends lacks.
func (s *subjects) checkDevice(cfg *campaign.Config) error {
	if s.device == "cpu" {
		return nil
	}
	lacks := func(name string, open campaign.Opener) error {
		b, err := open()
		if err != nil {
			return harness(err)
		}
		defer b.Close()
		if has := b.Info().Devices; !slices.Contains(has, s.device) {
			return usage(fmt.Errorf("--device %s: %s has no such device here; it has %s", s.device, name, strings.Join(has, ", ")))
		}
		return nil
	}
	if err := lacks(s.reference, cfg.Reference); err != nil {
		return err
	}
	for _, c := range cfg.Candidates {
		if err := lacks(c.Name, c.Open); err != nil {
			return err
		}
	}
	return nil
}

// signatures returns what tells the parameters of the reference's functions.
func (s *subjects) signatures(cfg *campaign.Config) *signatures {
	switch {
	case isTorch(s.reference):
		return &signatures{open: cfg.Reference}
	case open.IsRecorded(s.reference):
		return &signatures{info: cfg.Reference}
	}
	return &signatures{}
}
