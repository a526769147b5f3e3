package command

import (
	"iter"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"plumb/conform"
	"plumb/internal/campaign/report"
	"plumb/ops"
	"plumb/suites"
)

// names are what an argument may be, as far as it is begun.
type names func(begun string) []string

// completes adds what a shell completes: operators, tests, subjects, findings and the
// words of flags. Cobra keeps the flags of it for ever, and with them all that a command
// has in memory, so that only who is asked to complete has it.
func completes(root *cobra.Command) {
	if len(os.Args) < 2 || !strings.HasPrefix(os.Args[1], cobra.ShellCompRequestCmd) {
		return
	}
	flags := map[string]names{
		"reference": of(subjectNames), "candidate": listOf(subjectNames), "backend": of(subjectNames),
		"keyword": of(func() []string { return testNames(false) }), "report": of(reportNames), "against": of(publicNames), "fname": listOf(functionNames),
	}
	for cmd := range commandsOf(root) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			complete := flags[f.Name]
			switch v := f.Value.(type) {
			case *settings:
				complete = of(v.completions)
			case interface{ choices() []string }:
				if words := v.choices(); len(words) > 0 {
					complete = of(func() []string { return words })
				}
			}
			if complete != nil && f.Value.Type() != "file" {
				_ = cmd.RegisterFlagCompletionFunc(f.Name, complete.flag)
			}
		})
		switch cmd.CommandPath() {
		case "plumb ops run", "plumb ops show", "plumb ops gradcheck", "plumb ops check", "plumb matrix":
			cmd.ValidArgsFunction = of(operatorNames).argument
		case "plumb explain":
			cmd.ValidArgsFunction = names(func(begun string) []string {
				return slices.Concat(operatorNames(), testNames(true), findingNames(), testsIn(begun))
			}).argument
		case "plumb run", "plumb graph show":
			cmd.ValidArgsFunction = names(func(begun string) []string {
				if !strings.Contains(begun, "::") {
					return nil
				}
				return append(testNames(true), testsIn(begun)...)
			}).argument
		case "plumb kernel", "plumb profile":
			cmd.ValidArgsFunction = names(func(begun string) []string { return definedIn(begun, definesFunction) }).argument
		case "plumb repro", "plumb bisect":
			cmd.ValidArgsFunction = of(findingNames).argument
		}
	}
}

func of(all func() []string) names { return func(string) []string { return all() } }

// listOf completes the last of several, with commas between them.
func listOf(all func() []string) names {
	return func(begun string) []string {
		before := begun[:strings.LastIndexByte(begun, ',')+1]
		var out []string
		for _, name := range all() {
			out = append(out, before+name)
		}
		return out
	}
}

func (n names) flag(_ *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	directive := cobra.ShellCompDirectiveNoFileComp
	if all := beginning(n(begun), begun); len(all) != 1 || !strings.HasSuffix(all[0], "=") {
		return all, directive
	}
	return beginning(n(begun), begun), directive | cobra.ShellCompDirectiveNoSpace
}

func (n names) argument(_ *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	return beginning(n(begun), begun), cobra.ShellCompDirectiveDefault
}

func beginning(all []string, begun string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(n string) bool { return !strings.HasPrefix(n, begun) })
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

// findingNames are the findings that have a bundle.
func findingNames() (out []string) {
	dir, err := findingsDir("")
	if err != nil {
		return nil
	}
	all, _ := findingsIn(dir)
	for _, f := range all {
		out = append(out, f.name)
	}
	return out
}

// reportNames are the formats of --report, as they are begun.
func reportNames() (out []string) {
	for _, all := range []iter.Seq[string]{maps.Keys(report.Formats), maps.Keys(report.Folders)} {
		for name := range all {
			out = append(out, name+"=")
		}
	}
	slices.Sort(out)
	return out
}

// publicNames are the names of PyTorch's functions.
func publicNames() (out []string) {
	for _, d := range ops.Table().Defs() {
		out = append(out, d.Names...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// functionNames are those of the shipped conformance suite.
func functionNames() []string {
	base, err := conform.Open("")
	if err != nil {
		return nil
	}
	return base.Manifest.Functions()
}

// What lines of Python define.
var (
	definesFunction = regexp.MustCompile(`(?m)^(?:async )?def (\w+)`)
	definesIn       = regexp.MustCompile(`(?m)^(?:class (\w+)|([ \t]*)def (test_\w+))`)
)

// testsIn are the tests of the file that an argument has begun with.
func testsIn(begun string) (out []string) {
	file, _, ok := strings.Cut(begun, "::")
	if !ok {
		return nil
	}
	class := ""
	for _, m := range definesIn.FindAllStringSubmatch(sourceOf(file), -1) {
		switch {
		case m[1] != "":
			class = m[1] + "::"
			out = append(out, file+"::"+m[1])
		case m[2] == "":
			class = ""
			out = append(out, file+"::"+m[3])
		default:
			out = append(out, file+"::"+class+m[3])
		}
	}
	return out
}

// definedIn are the functions of the file that an argument has begun with.
func definedIn(begun string, what *regexp.Regexp) (out []string) {
	file, _, ok := strings.Cut(begun, "::")
	if !ok {
		return nil
	}
	for _, m := range what.FindAllStringSubmatch(sourceOf(file), -1) {
		out = append(out, file+"::"+m[1])
	}
	return out
}

// sourceOf is the text of a file, or of a shipped suite.
func sourceOf(file string) string {
	if text, err := readRegular(file); err == nil {
		return string(text)
	}
	for _, f := range suites.Files() {
		if f.Name == file {
			return string(f.Source)
		}
	}
	return ""
}
