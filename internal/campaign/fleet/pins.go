package fleet

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
)

// Pins say what each subject of a campaign is where workers may differ: that of the first
// worker. Two builds of Plumb may draw and judge differently, and two versions of a
// framework compute differently.
type Pins struct {
	path string

	mu     sync.Mutex
	builds map[string]string // or versions, by subject
}

// maxPins bounds the file of pins.
const maxPins = 1 << 20

// OpenPins reads pins from a file, which need not be there yet.
func OpenPins(path string) (*Pins, error) {
	p := &Pins{path: path, builds: map[string]string{}}
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return p, nil
	}
	if err == nil && info.Size() > maxPins {
		err = fmt.Errorf("%s has %d bytes", path, info.Size())
	}
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &p.builds)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}

// may reports whether a build, or version, is that of a subject, which has it from now on
// where it had no other: fresh, then.
func (p *Pins) may(subject, build string) (is, fresh bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if by := p.builds[subject]; by != "" {
		return by == build, false, nil
	}
	p.builds[subject] = build
	text, err := json.Marshal(p.builds)
	if err == nil {
		err = os.WriteFile(p.path+".new", text, 0o600)
	}
	if err == nil {
		err = os.Rename(p.path+".new", p.path)
	}
	if err != nil {
		delete(p.builds, subject)
	}
	return err == nil, true, err
}

// of is what a subject has; "" for nothing yet.
func (p *Pins) of(subject string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.builds[subject]
}

// String names the build of each subject.
func (p *Pins) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var parts []string
	for _, s := range slices.Sorted(maps.Keys(p.builds)) {
		parts = append(parts, s+" by "+p.builds[s])
	}
	return strings.Join(parts, ", ")
}
