package worker

import (
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// What an adapter may take: one of a framework that copies PyTorch's API needs
// little, one with an API of its own more. PyTorch's own brings its runs along,
// which do without numpy what the kit does with it.
const (
	likePyTorch = 80
	ownAPI      = 350
)

var (
	adapterClass = regexp.MustCompile(`(?m)^class (\w+)\((?:\w+, )?plumb_subject\.Adapter\):`)
	hasOwnAPI    = regexp.MustCompile(`(?m)^    own\b[^\n]*= True`)
)

// TestAdaptersAreShort: an adapter is short, beside its table of differences.
func TestAdaptersAreShort(t *testing.T) {
	files, err := fs.Glob(sources, "py/plumb_*.py")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, file := range files {
		text, err := fs.ReadFile(sources, file)
		if err != nil {
			t.Fatal(err)
		}
		if !adapterClass.Match(text) {
			continue
		}
		name := strings.TrimSuffix(strings.TrimPrefix(path.Base(file), "plumb_"), ".py")
		most := likePyTorch
		if hasOwnAPI.Match(text) || name == Torch {
			most = ownAPI
		}
		if lines := strings.Count(string(text), "\n"); lines > most {
			t.Errorf("%s has %d lines, want at most %d", file, lines, most)
		}
		found = append(found, name)
	}
	for _, framework := range Frameworks {
		name, _, _ := strings.Cut(framework, ":")
		if !slices.Contains(found, name) {
			t.Errorf("%s has no adapter among %v", framework, found)
		}
	}
}
