package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"time"

	"plumb/internal/campaign/drive"
	"plumb/internal/opcheck"
	"plumb/internal/scratch"
	"plumb/op"
)

// chosenVariable is the variable of the environment with which a program that has faults
// in its source is told which of them to have; chosenName, what its packages call that.
const (
	chosenVariable = "PLUMB_PLANTED_FAULT"
	chosenName     = "plumbPlantedFault"
)

// plantedLimit is how many faults are planted in one operator's source at most.
const plantedLimit = 60

// plantedSource is a program with faults in an operator's source, all in one binary.
type plantedSource struct {
	*planting
	program string // its import path
	dir     string // of what is written
	binary  string
	args    []string // of the check
	beside  []string // of that with PyTorch, for what the literal alone does not tell; nil for none
}

// sourceFaults plants faults in the source of an operator's kernels and gradient, and
// has the checks look for each. why says why none could be planted.
func (c *operatorCheck) sourceFaults(ctx context.Context, d *op.Def) (faults []opcheck.Fault, why string, err error) {
	p, all, err := plant(d, plantedLimit)
	if err != nil || all == 0 {
		return nil, "its kernels and gradient are none of the program's own source", err
	}
	s := &plantedSource{planting: p, program: ownProgram(), args: (&operatorCheck{seed: c.seed, alone: true, json: true}).again([]*op.Def{d})}
	if !c.alone && len(d.Names) > 0 {
		s.beside = (&operatorCheck{seed: c.seed, python: c.python, json: true}).again([]*op.Def{d})
	}
	if s.program == "" {
		return nil, "this program is to be built again, and does not know of which package it is: run it as go run ./plumb", nil
	}
	if s.dir, err = scratch.Dir("planted"); err != nil {
		return nil, "", err
	}
	defer scratch.Remove(s.dir)
	if err := s.build(ctx); err != nil {
		return nil, err.Error(), nil
	}
	if faults, err = s.look(ctx); err == nil && all > plantedLimit {
		why = fmt.Sprintf("%d of the %d that there could be in the source", len(faults), all)
	}
	return faults, why, err
}

// complaint is where the compiler complains.
var complaint = regexp.MustCompile(`(?m)^(.+\.go):(\d+):\d+: `)

// build builds the program. Faults that do not compile are dropped.
func (s *plantedSource) build(ctx context.Context) error {
	for range 5 {
		spans, overlay, err := s.overlay()
		if err != nil {
			return err
		}
		s.binary = filepath.Join(s.dir, "plumb")
		args := []string{"build", "-overlay", overlay, "-o", s.binary}
		for pkg := range s.packages { // all complaints at once
			args = append(args, "-gcflags="+pkg+"=-e")
		}
		text, err := exec.CommandContext(ctx, "go", append(args, s.program)...).CombinedOutput()
		if err == nil {
			return nil
		}
		if !s.drop(string(text), spans) {
			return fmt.Errorf("the program cannot be built again in the folder where it was run: %w\n%s", err, bytes.TrimSpace(text))
		}
	}
	return errors.New("what was planted does not compile")
}

// overlay writes the files with their faults, and what go build -overlay asks for.
func (s *plantedSource) overlay() (spans map[string][]span, path string, err error) {
	spans = map[string][]span{}
	replaced := map[string]string{}
	write := func(of, text string, in []span) error {
		name := fmt.Sprintf("%d.go", len(replaced))
		spans[name], replaced[of] = in, filepath.Join(s.dir, name)
		return os.WriteFile(replaced[of], []byte(text), 0o644)
	}
	for _, f := range s.files {
		text, in := s.write(f, chosenName)
		if len(in) == 0 {
			continue
		}
		if err := write(f.path, text, in); err != nil {
			return nil, "", err
		}
		if chooser := filepath.Join(filepath.Dir(f.path), "plumb_planted_fault.go"); replaced[chooser] == "" {
			text := fmt.Sprintf("package %s\n\nimport (\n\t\"os\"\n\t\"strconv\"\n)\n\nvar %s, _ = strconv.Atoi(os.Getenv(%q))\n", f.pkg, chosenName, chosenVariable)
			if err := write(chooser, text, nil); err != nil {
				return nil, "", err
			}
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		return nil, "", err
	}
	path = filepath.Join(s.dir, "overlay.json")
	return spans, path, os.WriteFile(path, text, 0o644)
}

// drop leaves out the faults in whose copies the compiler complains, and reports whether
// there were any.
func (s *plantedSource) drop(complaints string, spans map[string][]span) (dropped bool) {
	for _, m := range complaint.FindAllStringSubmatch(complaints, -1) {
		line, _ := strconv.Atoi(m[2])
		for _, in := range spans[filepath.Base(m[1])] {
			if line >= in.from && line <= in.to && s.faults[in.fault] != nil {
				s.faults[in.fault], dropped = nil, true
			}
		}
	}
	return dropped
}

// look has the program check itself with each fault in turn.
func (s *plantedSource) look(ctx context.Context) ([]opcheck.Fault, error) {
	begin := time.Now()
	ways := [][]string{s.args}
	if s.beside != nil {
		ways = append(ways, s.beside)
	}
	var sound []*opcheck.Report
	for _, args := range ways {
		r, err := s.check(ctx, args, 0, 10*time.Minute)
		if err != nil {
			return nil, fmt.Errorf("the program that was built with faults to choose from: %w", err)
		}
		sound = append(sound, r)
	}
	limit := 30*time.Second + 10*time.Since(begin)
	var chosen []int
	for i, f := range s.faults {
		if f != nil {
			chosen = append(chosen, i)
		}
	}
	faults := make([]opcheck.Fault, len(chosen))
	next := 0
	err := drive.Each(ctx, runtime.GOMAXPROCS(0), chosen, func(i int) opcheck.Fault {
		f := opcheck.Fault{Field: s.faults[i].field, What: s.faults[i].what}
		for way := 0; way < len(ways) && f.By == ""; way++ {
			if r, err := s.check(ctx, ways[way], i, limit); err != nil {
				f.By = err.Error()
			} else {
				f.By = opcheck.Fresh(r.Findings, sound[way].Findings)
			}
		}
		if f.By == "" {
			f.Why = "no call that is checked tells it from what is written there"
		}
		return f
	}, func(f opcheck.Fault) {
		faults[next] = f
		next++
	})
	return faults, err
}

// check runs the check with a fault; 0 for none. The error says how the program ended.
func (s *plantedSource) check(ctx context.Context, args []string, fault int, limit time.Duration) (*opcheck.Report, error) {
	within, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(within, s.binary, args...)
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", chosenVariable, fault))
	text, err := cmd.Output()
	r := &opcheck.Report{}
	if bad := json.Unmarshal(text, r); bad == nil {
		return r, nil
	}
	switch {
	case within.Err() != nil && ctx.Err() == nil:
		return nil, fmt.Errorf("the check does not end within %s", limit.Round(time.Second))
	case err == nil:
		return nil, errors.New("the check tells nothing")
	}
	return nil, fmt.Errorf("the check ends: %w", err)
}
