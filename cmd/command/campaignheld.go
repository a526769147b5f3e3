package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"plumb/backend/open"
	"plumb/internal/campaign/fleet"
	"plumb/internal/scratch"
)

// addBaselines notes the files of recorded results that the campaign's subjects are:
// workers have them from the coordinator.
func (s *spec) addBaselines() error {
	s.Baselines = map[string]string{}
	for _, name := range append([]string{s.Reference}, s.Candidates...) {
		if !open.IsRecorded(name) {
			continue
		}
		if path := open.ParseSpec(name).File(); path != "" {
			digest, err := fileSHA256(path)
			if err != nil {
				return err
			}
			s.Baselines[path] = digest
		}
	}
	return nil
}

// sent reports whether a subject is recorded results that the coordinator sends.
func (s *spec) sent(name string) bool {
	return open.IsRecorded(name) && s.Baselines[open.ParseSpec(name).File()] != ""
}

// brought are the subjects that a worker needs on its machine.
func (s *spec) brought() []string {
	var names []string
	for _, name := range append([]string{s.Reference}, s.Candidates...) {
		if !slices.Contains(names, name) && !(name == s.Reference && s.sent(name)) {
			names = append(names, name)
		}
	}
	return names
}

// takeBaselines has the coordinator send its recorded results into a new folder.
func (w *workerCommand) takeBaselines(ctx context.Context, of *fleet.Worker, s *spec) (dir string, err error) {
	if len(s.Baselines) == 0 {
		return "", nil
	}
	if dir, err = scratch.Dir("baselines"); err != nil {
		return "", err
	}
	w.on.held = map[string]string{}
	for path, digest := range s.Baselines {
		at := filepath.Join(dir, fmt.Sprint(len(w.on.held)))
		if err := takeFile(ctx, of, digest, at); err != nil {
			return "", errors.Join(err, scratch.Remove(dir))
		}
		w.on.held[path] = at
	}
	return dir, nil
}

func takeFile(ctx context.Context, of *fleet.Worker, digest, at string) error {
	f, err := os.OpenFile(at, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(of.File(ctx, digest, f), f.Close())
}
