package command

import (
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

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
func like(name string, among []string) string {
	best, at := max(1, len(name)/3)+1, ""
	for _, n := range among {
		if d := spell.Distance(strings.ToLower(name), strings.ToLower(n)); d < best {
			best, at = d, n
		}
	}
	if at == "" {
		return ""
	}
	return fmt.Sprintf(" (is it %s?)", at)
}

// completes adds what a shell completes: operators, tests and subjects. Cobra keeps the
// flags of it for ever, and with them all that a command has in memory, so that only
// who is asked to complete has it.
func completes(root *cobra.Command) {
	if len(os.Args) < 2 || !strings.HasPrefix(os.Args[1], cobra.ShellCompRequestCmd) {
		return
	}
	for cmd := range commandsOf(root) {
		for _, name := range []string{"reference", "candidate", "backend"} {
			if cmd.Flags().Lookup(name) != nil {
				_ = cmd.RegisterFlagCompletionFunc(name, func(_ *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
					return beginning(subjectNames(), begun), cobra.ShellCompDirectiveNoFileComp
				})
			}
		}
		if cmd.Flags().Lookup("keyword") != nil {
			_ = cmd.RegisterFlagCompletionFunc("keyword", func(_ *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
				return beginning(testNames(false), begun), cobra.ShellCompDirectiveNoFileComp
			})
		}
		switch cmd.CommandPath() {
		case "plumb ops run", "plumb ops show", "plumb ops gradcheck", "plumb ops check", "plumb matrix":
			cmd.ValidArgsFunction = completeOperators
		case "plumb explain":
			cmd.ValidArgsFunction = completeAnything
		}
	}
}

// commandsOf are a command and all below it.
func commandsOf(cmd *cobra.Command) iter.Seq[*cobra.Command] {
	return func(yield func(*cobra.Command) bool) {
		if !yield(cmd) {
			return
		}
		for _, c := range cmd.Commands() {
			for below := range commandsOf(c) {
				if !yield(below) {
					return
				}
			}
		}
	}
}

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

// completeAnything completes to an operator, a test or a finding.
func completeAnything(_ *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	names := append(operatorNames(), testNames(true)...)
	if dir, err := findingsDir(""); err == nil {
		all, _ := findingsIn(dir)
		for _, f := range all {
			names = append(names, f.name)
		}
	}
	return beginning(names, begun), cobra.ShellCompDirectiveDefault
}

// completeOperators completes an argument to an operator's id.
func completeOperators(_ *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	return beginning(operatorNames(), begun), cobra.ShellCompDirectiveDefault
}

func beginning(names []string, begun string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return !strings.HasPrefix(n, begun) })
}

func printJSON(out io.Writer, v any) { _ = json.NewEncoder(out).Encode(v) }
