package command

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"plumb/internal/project"
	"plumb/suites"
)

// fromFile is the annotation of a flag whose value plumb.toml gives: where.
const fromFile = "plumb_from"

// sourcesKey names the cases of a project; setTable is that of --set.
const (
	sourcesKey = "sources"
	setTable   = "set"
)

// The commands to which the keys outside of tables apply: those that judge tests.
var projectCommands = []string{"run", "ops run", "graph run", "campaign"}

// findProject reads the plumb.toml that counts here: that of $PLUMB_CONFIG, else
// the nearest one at or above the working directory; nil for none.
func findProject() (*project.File, error) {
	path := os.Getenv("PLUMB_CONFIG")
	if path == "none" {
		return nil, nil
	}
	if path == "" {
		var err error
		if path, err = project.Find("."); err != nil || path == "" {
			return nil, err
		}
	}
	f, err := project.Read(path)
	if err != nil {
		return nil, err
	}
	if here, err := os.Getwd(); err == nil {
		if rel, err := filepath.Rel(here, f.Path); err == nil {
			f.Path = rel
		}
	}
	return f, nil
}

// configured gives the flags of a command the values that plumb.toml has for them,
// unless the command line has others.
func configured(cmd *cobra.Command) error {
	f, err := findProject()
	if err != nil || f == nil {
		return err
	}
	entries, err := resolve(cmd.Root(), f)
	if err != nil {
		return err
	}
	given := map[string]bool{} // by the command line
	cmd.Flags().Visit(func(fl *pflag.Flag) { given[fl.Name] = true })
	took := map[string]*keyed{}
	for i := range entries {
		e := &entries[i]
		if e.flag == "" || !e.applies(cmd) {
			continue
		}
		id := e.flag + "=" + e.setting
		if before := took[id]; before == nil || len(before.path) <= len(e.path) {
			took[id] = e
		}
	}
	for _, e := range entries {
		if took[e.flag+"="+e.setting] != nil && took[e.flag+"="+e.setting].entry == e.entry && !yields(cmd, e.flag, given) {
			if err := e.give(cmd, f, given); err != nil {
				return fmt.Errorf("%s: %s: %w", f.At(e.entry), strings.Join(e.entry.Key, "."), err)
			}
		}
	}
	return nil
}

// keyed is an entry of plumb.toml and what it is for.
type keyed struct {
	entry   *project.Entry
	path    string // of the command whose table it is in; "" outside of tables
	flag    string // "" for sources
	setting string // of --set
}

// applies says whether the entry is one for a command.
func (e *keyed) applies(cmd *cobra.Command) bool {
	path := commandPath(cmd)
	if cmd.Flags().Lookup(e.flag) == nil {
		return false
	}
	if s, ok := settingsOf(cmd); e.setting != "" && (!ok || !slices.Contains(s.keys, e.setting)) {
		return false
	}
	if e.path == "" {
		return slices.ContainsFunc(projectCommands, func(p string) bool { return belongs(path, p) })
	}
	return belongs(path, e.path)
}

func settingsOf(cmd *cobra.Command) (*settings, bool) {
	if f := cmd.Flags().Lookup("set"); f != nil {
		s, ok := f.Value.(*settings)
		return s, ok
	}
	return nil, false
}

// belongs says whether a command is another or below it.
func belongs(path, of string) bool { return path == of || strings.HasPrefix(path, of+" ") }

// commandPath is the path of a command without its root.
func commandPath(cmd *cobra.Command) string {
	_, path, _ := strings.Cut(cmd.CommandPath(), " ")
	return path
}

// yields says whether a key has no meaning beside the flags of the command line.
func yields(cmd *cobra.Command, name string, given map[string]bool) bool {
	f := cmd.Flags().Lookup(name)
	if given[name] && name != "set" {
		return true
	}
	for _, barred := range f.Annotations[barsFlag] {
		if given[barred] {
			return true
		}
	}
	for other := range given {
		if o := cmd.Flags().Lookup(other); slices.Contains(o.Annotations[barsFlag], name) && !(o.Value.Type() == "bool" && o.Value.String() == "false") {
			return true
		}
	}
	needed := f.Annotations[needsFlag]
	return needed != nil && !slices.ContainsFunc(needed, cmd.Flags().Changed)
}

// give sets the flag.
func (e *keyed) give(cmd *cobra.Command, f *project.File, given map[string]bool) error {
	if e.setting != "" {
		s, _ := settingsOf(cmd)
		if s.given[e.setting] {
			return nil
		}
		s.from[e.setting] = f.At(e.entry)
		return s.Set(e.setting + "=" + e.entry.Values[0])
	}
	fl := cmd.Flags().Lookup(e.flag)
	_, isPath := fl.Value.(*pathValue)
	values := slices.Clone(e.entry.Values)
	for i, v := range values {
		if isPath && v != "none" && !filepath.IsAbs(v) {
			values[i] = filepath.Join(f.Dir(), v)
		}
	}
	var err error
	if list, ok := fl.Value.(pflag.SliceValue); ok {
		err = list.Replace(values)
		fl.Changed = err == nil
	} else {
		err = cmd.Flags().Set(e.flag, strings.Join(values, ","))
	}
	if err != nil {
		var value *pflag.InvalidValueError
		if errors.As(err, &value) {
			err = value.Unwrap()
		}
		return err
	}
	if fl.Annotations == nil {
		fl.Annotations = map[string][]string{}
	}
	fl.Annotations[fromFile] = []string{f.At(e.entry)}
	return nil
}

// resolve says what each entry is for; the error tells of one that is for nothing.
func resolve(root *cobra.Command, f *project.File) ([]keyed, error) {
	var out []keyed
	for i := range f.Entries {
		e, err := resolveEntry(root, &f.Entries[i])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.At(&f.Entries[i]), err)
		}
		out = append(out, e)
	}
	return out, nil
}

func resolveEntry(root *cobra.Command, e *project.Entry) (keyed, error) {
	k := keyed{entry: e}
	if len(e.Key) == 1 && e.Key[0] == sourcesKey {
		return k, nil
	}
	cmd, rest := root, e.Key
	for len(rest) > 1 && rest[0] != setTable {
		below := child(cmd, rest[0])
		if below == nil {
			return k, unknownTable(cmd, rest[0])
		}
		cmd, rest = below, rest[1:]
	}
	k.path = commandPath(cmd)
	among := []*cobra.Command{cmd}
	if cmd == root {
		k.path, among = "", nil
		for _, path := range projectCommands {
			if c, _, err := root.Find(strings.Fields(path)); err == nil {
				among = append(among, c)
			}
		}
	}
	flags := flagsBelow(among)
	if rest[0] == setTable && len(rest) > 1 {
		k.flag, k.setting = "set", strings.Join(rest[1:], ".")
		if settings := newSettings(); settings.row(k.setting) == nil {
			var all []string
			for _, row := range settings.table {
				all = append(all, row.key)
			}
			return k, fmt.Errorf("there is no setting %q%s; plumb help settings lists them", k.setting, perhaps(k.setting, all))
		}
		if len(e.Values) != 1 || e.List || !slices.Contains(flags, "set") {
			return k, fmt.Errorf("%s: want one value, outside of tables or in the table of a command that has --set", strings.Join(e.Key, "."))
		}
		return k, nil
	}
	k.flag = rest[0]
	if !slices.Contains(flags, k.flag) || k.flag == "help" || k.flag == "set" {
		return k, unknownKey(root, k, flags)
	}
	return k, nil
}

func child(cmd *cobra.Command, name string) *cobra.Command {
	for _, c := range cmd.Commands() {
		if c.Name() == name && !c.IsAdditionalHelpTopicCommand() {
			return c
		}
	}
	return nil
}

// flagsBelow are the names of the flags of commands and of those below them.
func flagsBelow(among []*cobra.Command) []string {
	var names []string
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		for _, b := range c.Commands() {
			walk(b)
		}
	}
	for _, c := range among {
		walk(c)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func unknownTable(cmd *cobra.Command, name string) error {
	names := []string{setTable}
	for _, c := range cmd.Commands() {
		names = append(names, c.Name())
	}
	return fmt.Errorf("there is no table %q%s; a table is named like a command, such as [run] or [conform.run], or set", name, perhaps(name, names))
}

// unknownKey names the keys that are spelled alike, or the command that has it.
func unknownKey(root *cobra.Command, k keyed, flags []string) error {
	what := "the commands that judge tests have"
	if k.path != "" {
		what = "plumb " + k.path + " has"
	}
	hint := perhaps(k.flag, append(slices.Clone(flags), sourcesKey))
	if hint == "" {
		for _, c := range root.Commands() {
			if slices.Contains(flagsBelow([]*cobra.Command{c}), k.flag) {
				hint = fmt.Sprintf("; plumb %s has it: put it in [%s]", c.Name(), c.Name())
				break
			}
		}
	}
	return fmt.Errorf("there is no key %q: %s no flag --%s%s", k.flag, what, k.flag, hint)
}

// perhaps asks whether the nearest of some names was meant.
func perhaps(name string, among []string) string {
	if like := near(name, among); len(like) > 0 {
		return "; is it " + like[0] + "?"
	}
	return ""
}

// projectSources are the cases that plumb.toml names; paths are from the working
// directory.
func projectSources() ([]string, error) {
	f, err := findProject()
	if err != nil || f == nil {
		return nil, err
	}
	var out []string
	for _, e := range f.Entries {
		if len(e.Key) != 1 || e.Key[0] != sourcesKey {
			continue
		}
		for _, s := range e.Values {
			switch kind, rest := sourceKind(s); {
			case kind == fileSource && !filepath.IsAbs(s):
				s = filepath.Join(f.Dir(), s)
			case kind == conformSource && rest != "" && !filepath.IsAbs(rest):
				s = string(conformSource) + ":" + filepath.Join(f.Dir(), rest)
			}
			out = append(out, s)
		}
	}
	return out, nil
}

// filesOf are the files and folders among sources; none where these are the suites
// alone.
func filesOf(sources []string, err error) ([]string, error) {
	var out []string
	shipped := false
	for _, s := range sources {
		kind, _ := sourceKind(s)
		shipped = shipped || kind == suitesSource
		if kind == fileSource {
			out = append(out, s)
		}
	}
	if shipped && out != nil {
		for _, f := range suites.Files() {
			out = append(out, f.Name)
		}
	}
	return out, err
}

// given says where a flag has its value from: plumb.toml, the command line, or a default.
func given(f *pflag.Flag) string {
	switch {
	case f.Annotations[fromFile] != nil:
		return f.Annotations[fromFile][0]
	case f.Changed:
		return "the command line"
	}
	return "default"
}

// isFromFile says whether plumb.toml gives the flag its value, which has no effect
// in silence where the command line's would be refused: it is for many commands.
func isFromFile(cmd *cobra.Command, name string) bool {
	f := cmd.Flags().Lookup(name)
	return f != nil && f.Annotations[fromFile] != nil
}

// The kinds of sources.
type sourceKindOf string

const (
	fileSource    sourceKindOf = "file" // a test file, a folder of them, a saved program
	opsSource     sourceKindOf = "ops"
	opInfoSource  sourceKindOf = "opinfo"
	suitesSource  sourceKindOf = "suites"
	graphsSource  sourceKindOf = "graphs"
	conformSource sourceKindOf = "conform" // cases of a conformance config
)

// sourceKind reads the name of a source: ops:PATTERN, opinfo:PATTERN, conform:CONFIG,
// conform, suites, graphs, else a file or a folder.
func sourceKind(name string) (kind sourceKindOf, rest string) {
	switch prefix, rest, ok := strings.Cut(name, ":"); {
	case ok && prefix == string(opsSource):
		return opsSource, cmp.Or(rest, "*")
	case ok && prefix == string(opInfoSource):
		return opInfoSource, cmp.Or(rest, "*")
	case ok && prefix == string(conformSource):
		return conformSource, rest
	}
	switch name {
	case string(suitesSource), string(graphsSource), string(conformSource):
		return sourceKindOf(name), ""
	}
	return fileSource, name
}
