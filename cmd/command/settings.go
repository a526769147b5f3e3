package command

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"plumb/internal/find/accepted"
	"plumb/internal/find/shrink"
	"plumb/internal/judge"
)

// settings tune the judge and what is done with what it finds; --set changes
// one of them.
type settings struct {
	oracle     judge.OracleMode
	power      int
	exceptions exceptionMode
	timeout    time.Duration
	growth     int // of a worker in one case, in bytes; 0 for what the machine has
	shrink     shrink.Budget
	clean      int
	strict     *bool
	findings   string
	margins    string
	maxBytes   int

	keys  []string // that the command has
	table []setting
	given map[string]bool
	from  map[string]string // where plumb.toml gives it
}

// exceptionMode says what an exception of one side alone is, and whether what both
// sides raise has to be of the reference's class.
type exceptionMode string

const (
	isFinding   exceptionMode = "finding"
	isRejection exceptionMode = "rejection"
	isStrict    exceptionMode = "strict"
)

// setting is one line of the table.
type setting struct {
	key     string
	meaning string
	value   pflag.Value
	want    string // the range
	initial string // the default, where the value cannot tell
}

// The settings by what takes them.
var (
	drawingKeys = []string{"tensor.max"}
	judgeKeys   = []string{"oracle", "exceptions", "timeout", "growth", "power", "margins", "known.clean", "known.strict"}
	shrinkKeys  = []string{"shrink.runs", "shrink.time"}
	findingKeys = append([]string{"findings"}, shrinkKeys...)
)

// newSettings returns the defaults, and lets --set change those of the keys.
func newSettings(keys ...[]string) *settings {
	s := &settings{
		oracle: judge.OnMismatch, power: 3, exceptions: isFinding, timeout: time.Minute, shrink: shrink.DefaultBudget,
		clean: accepted.CleanRuns, keys: slices.Concat(keys...), given: map[string]bool{}, from: map[string]string{},
	}
	path := func(to *string) pflag.Value {
		return &limited[string]{to: to, parse: func(text string) (string, bool) { return text, text != "" }, want: "a path or none"}
	}
	s.table = []setting{
		{"exceptions", "whether an exception that only one side raises counts as a finding or as a rejection; strict: a finding, and so is one of another class than the reference's", oneOf(&s.exceptions, isFinding, isRejection, isStrict), "", ""},
		{"findings", "folder for the bundle of each finding, for plumb repro", path(&s.findings), "", "the user's cache"},
		{"growth", "memory that a worker may add in one case, which is an oom beyond that", memorySize(&s.growth, ""), "", "what the machine has"},
		{"known.clean", "runs in a row without an accepted failure after which it counts as fixed", wholeNumber(&s.clean, 1), "", ""},
		{"known.strict", "whether the run fails when an accepted failure is fixed or has expired", yesOrNo(&s.strict), "", "false"},
		{"margins", "file that sums up observed error ÷ limit of the comparisons, for plumb margins", path(&s.margins), "", "the user's cache"},
		{"oracle", "when to run the reference again in float64, to tell which side is right", oneOf(&s.oracle, judge.OracleModes...), "", ""},
		{"power", "cases per test for which Plumb checks that wrong results would be rejected", wholeNumber(&s.power, 0), "", ""},
		{"shrink.runs", "candidate runs allowed for making one finding smaller; 0: findings stay as drawn, no bundles", wholeNumber(&s.shrink.Runs, 0), "", ""},
		{"shrink.time", "time allowed for making one finding smaller", timeSpan(&s.shrink.Time), "", ""},
		{"tensor.max", "largest tensor that random_tensor draws", memorySize(&s.maxBytes, "32MB"), "", ""},
		{"timeout", "time limit of one case in PyTorch or a worker", timeSpan(&s.timeout), "", ""},
	}
	for i := range s.table {
		row := &s.table[i]
		row.want = row.value.(interface{ wants() string }).wants()
		if row.initial == "" {
			row.initial = row.value.String()
		}
	}
	return s
}

// wants says which texts the value takes.
func (v *limited[T]) wants() string { return v.want }

// String is the text of no setting.
func (s *settings) String() string { return "" }

// Type names the value for help.
func (s *settings) Type() string { return "KEY=VALUE" }

// Set changes a setting.
func (s *settings) Set(text string) error {
	key, value, ok := strings.Cut(text, "=")
	if !ok {
		return fmt.Errorf("want KEY=VALUE, such as %s=%s", s.keys[0], s.row(s.keys[0]).initial)
	}
	row := s.row(key)
	switch {
	case row == nil:
		return fmt.Errorf("there is no setting %q%s; plumb help settings lists them", key, s.likely(key))
	case !slices.Contains(s.keys, key):
		return fmt.Errorf("this command does not use the setting %s; it has %s", key, strings.Join(s.keys, ", "))
	}
	s.given[key] = true
	if err := row.value.Set(value); err != nil {
		return fmt.Errorf("%s=%s: %w", key, value, err)
	}
	return nil
}

// asked says whether the command line gives a setting.
func (s *settings) asked(key string) bool { return s.given[key] && s.from[key] == "" }

func (s *settings) row(key string) *setting {
	at := slices.IndexFunc(s.table, func(row setting) bool { return row.key == key })
	if at < 0 {
		return nil
	}
	return &s.table[at]
}

// likely names the key that is spelled most alike.
func (s *settings) likely(key string) string {
	if like := near(key, s.keys); len(like) > 0 {
		return "; is it " + like[0] + "?"
	}
	return ""
}

// completions are the settings as they are given.
func (s *settings) completions() (out []string) {
	for _, key := range s.keys {
		words, _ := s.row(key).value.(interface{ choices() []string })
		if words == nil || len(words.choices()) == 0 {
			out = append(out, key+"=")
			continue
		}
		for _, word := range words.choices() {
			out = append(out, key+"="+word)
		}
	}
	return out
}

// settle refuses settings that have no effect beside the others.
func (s *settings) settle(known string, specs ...string) error {
	for _, key := range []string{"timeout", "growth"} {
		if s.asked(key) {
			if err := idleTimeout("--set "+key, specs...); err != nil {
				return err
			}
		}
	}
	if err := checkFolder(s.findings); err != nil {
		return usage(fmt.Errorf("--set findings=%s: %w", s.findings, err))
	}
	for _, c := range []struct {
		idle  bool
		keys  []string
		where string
	}{
		{s.shrink.Runs == 0, []string{"shrink.time", "findings"}, "--set shrink.runs=0"},
		{known == "none", []string{"known.clean", "known.strict"}, "--known none"},
	} {
		for _, key := range c.keys {
			if c.idle && s.asked(key) {
				return usage(fmt.Errorf("--set %s has no effect with %s: leave one of them out", key, c.where))
			}
		}
	}
	return nil
}

// fails reports whether an accepted failure that is fixed fails the run.
func (s *settings) fails() bool { return s.strict != nil && *s.strict }

// flag adds --set.
func (s *settings) flag(fl *pflag.FlagSet) {
	fl.Var(s, "set", "change a setting, such as "+s.keys[0]+"="+s.row(s.keys[0]).initial+"; may be repeated (plumb help settings lists them; here: "+strings.Join(slices.Sorted(slices.Values(s.keys)), ", ")+")")
}

// newSettingsHelp is plumb help settings.
func newSettingsHelp() *cobra.Command {
	var b strings.Builder
	b.WriteString("Settings change how results are judged and what is done with findings. Give a\ncommand --set KEY=VALUE, as often as needed; its --help lists the keys it knows.\n\n")
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "KEY\tDEFAULT\tVALUES\tMEANING")
	for _, row := range newSettings().table {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", row.key, row.initial, row.want, row.meaning)
	}
	_ = w.Flush()
	return &cobra.Command{Use: "settings", Short: "What --set changes", Long: b.String()}
}
