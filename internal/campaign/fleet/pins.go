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

// Pins say which build of Plumb judges each subject of a campaign whose workers have
// several: the first that serves it, for two builds may draw and judge differently.
type Pins struct {
	path string

	mu     sync.Mutex
	builds map[string]string // by subject
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

// may reports whether a build judges a subject, which is its own from now on where it was
// no other's: new, then.
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
