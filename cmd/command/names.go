package command

import (
	"encoding/json"
	"io"
	"regexp"
	"slices"

	"plumb/backend/worker"
	"plumb/internal/spell"
	"plumb/ops"
	"plumb/suites"
)

// operatorNames are the ids of the operators.
func operatorNames() []string {
	var out []string
	for _, d := range ops.Table().Defs() {
		out = append(out, d.ID())
	}
	slices.Sort(out)
	return out
}

// like names what is written nearly so: " (is it relu?)", or "".
func like(name string, among []string) string { return spell.Guess(name, among) }

// subjectNames are what references and candidates are called.
func subjectNames() []string {
	names := append([]string{"native", "native:graph", "native@sim", "torch:compile", "recorded"}, worker.Frameworks...)
	slices.Sort(names)
	return slices.Compact(names)
}

var definesTest = regexp.MustCompile(`(?m)^[ \t]*def (test_\w+)`)

// testNames are the tests of the shipped suites, by their functions alone or with
// their files.
func testNames(whole bool) []string {
	var out []string
	for _, f := range suites.Files() {
		for _, m := range definesTest.FindAllSubmatch(f.Source, -1) {
			name := string(m[1])
			if whole {
				name = f.Name + "::" + name
			}
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func printJSON(out io.Writer, v any) { _ = json.NewEncoder(out).Encode(v) }
