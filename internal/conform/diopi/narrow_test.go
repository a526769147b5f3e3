package diopi

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestFloatsAreThoseOfTheInterface holds the numbers of compositions that are in float32 to
// the parameters of DIOPI's functions that are.
func TestFloatsAreThoseOfTheInterface(t *testing.T) {
	read := func(name string) []string {
		text, err := os.ReadFile(filepath.Join("..", "..", "..", "backend", "worker", "diopi", name))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Split(string(text), "\n")
	}
	kinds := map[string]string{}
	for _, line := range read("functions.txt") {
		name, ks, _ := strings.Cut(line, " ")
		kinds[name] = ks
	}
	seen := 0
	for _, line := range read("whole.txt") {
		head, call, ok := strings.Cut(line, ": ")
		if !ok || line[0] == '#' || strings.HasPrefix(head, "d ") {
			continue
		}
		name, _, _ := strings.Cut(head, " ")
		function, list, _ := strings.Cut(call, "(")
		var floats []string
		for i, arg := range strings.Split(list, ", ") {
			if kinds[function][i] == 'f' && !strings.HasPrefix(arg, "p_dropout") { // it is 0
				arg, _, _ = strings.Cut(strings.TrimSuffix(strings.TrimPrefix(arg, "scale("), ")"), " or ")
				floats = append(floats, arg)
			}
		}
		own, ok := customs[name]
		for target, c := range elsewhere {
			if strings.HasSuffix(target, "."+name) {
				own, ok = c, true
			}
		}
		want := strings.Fields(own.floats)
		slices.Sort(floats)
		slices.Sort(want)
		if !ok || !own.one || !slices.Equal(floats, want) {
			t.Errorf("%s: %v are in float32, not %v; one %t", name, floats, want, own.one)
		}
		seen++
	}
	if seen < 20 {
		t.Errorf("%d functions are read", seen)
	}
}
