package command

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"plumb/backend/open"
	"plumb/graph"
	"plumb/internal/draw/script"
	"plumb/internal/spell"
	"plumb/program"
	"plumb/tensor"
)

// The headings under which help lists flags.
const (
	whichCases    = "Which cases"
	whichSubjects = "Reference and candidates"
	howJudged     = "How they are judged"
	whatPrinted   = "What is printed and kept"
)

// The annotations of flags.
const (
	headingOf = "plumb_heading"
	needsFlag = "plumb_needs" // one of these flags
	barsFlag  = "plumb_bars"  // these flags
)

// group adds flags to a command, under a heading of its help.
func group(cmd *cobra.Command, heading string, define func(fl *pflag.FlagSet)) {
	fl := pflag.NewFlagSet(heading, pflag.ContinueOnError)
	define(fl)
	fl.VisitAll(func(f *pflag.Flag) { annotate(fl, f.Name, headingOf, heading) })
	cmd.Flags().AddFlagSet(fl)
}

// annotate adds values to an annotation of a flag that must exist.
func annotate(fl *pflag.FlagSet, name, key string, values ...string) {
	f := fl.Lookup(name)
	if f == nil {
		panic("no flag --" + name)
	}
	if f.Annotations == nil {
		f.Annotations = map[string][]string{}
	}
	f.Annotations[key] = append(f.Annotations[key], values...)
}

// needs says that a flag means something only with one of the others.
func needs(cmd *cobra.Command, name string, others ...string) {
	annotate(cmd.Flags(), name, needsFlag, others...)
}

// bars says that a flag leaves no meaning to the others.
func bars(cmd *cobra.Command, name string, others ...string) {
	annotate(cmd.Flags(), name, barsFlag, others...)
}

// checkFlags refuses flags that the command cannot honour together, texts that
// are empty, and paths at which there is not what the flag needs.
func checkFlags(cmd *cobra.Command, _ []string) error {
	if err := loadProject(cmd); err != nil {
		return err
	}
	fl := cmd.Flags()
	var errs []error
	fl.Visit(func(f *pflag.Flag) {
		file, isFile := f.Value.(*pathValue)
		switch {
		case f.Value.String() == "" && (isFile || f.Value.Type() == "string"):
			errs = append(errs, fmt.Errorf("--%s is empty: give it a value or leave it out", f.Name))
		case isFile:
			if err := file.check(*file.to); err != nil {
				errs = append(errs, fmt.Errorf("--%s %s: %w", f.Name, *file.to, err))
			}
		}
		if of := f.Annotations[needsFlag]; of != nil && !slices.ContainsFunc(of, fl.Changed) {
			errs = append(errs, fmt.Errorf("--%s needs --%s", f.Name, strings.Join(of, " or --")))
		}
		for _, other := range f.Annotations[barsFlag] {
			if fl.Changed(other) {
				errs = append(errs, fmt.Errorf("--%s has no effect with --%s: leave one of them out", other, f.Name))
			}
		}
	})
	if len(errs) > 0 {
		return usage(errs[0])
	}
	return nil
}

// flagError says which flag takes another value.
func flagError(cmd *cobra.Command, err error) error {
	var value *pflag.InvalidValueError
	if errors.As(err, &value) {
		err = fmt.Errorf("--%s %s: %w", value.GetFlag().Name, value.GetValue(), value.Unwrap())
	}
	if name, ok := strings.CutPrefix(err.Error(), "unknown flag: --"); ok {
		var all []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { all = append(all, f.Name) })
		if at := spell.Nearest(name, all); at != "" {
			err = fmt.Errorf("%w (is it --%s?)", err, at)
		}
	}
	return usage(fmt.Errorf("%w\n  see: %s --help", err, cmd.CommandPath()))
}

// flagText is the usage text of a command's flags, by heading.
func flagText(cmd *cobra.Command) string {
	var headings []string
	sets := map[string]*pflag.FlagSet{}
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		heading := "Flags"
		if h := f.Annotations[headingOf]; h != nil {
			heading = h[0]
		}
		if sets[heading] == nil {
			sets[heading] = pflag.NewFlagSet(heading, pflag.ContinueOnError)
			headings = append(headings, heading)
		}
		sets[heading].AddFlag(f)
	})
	order := []string{whichCases, whichSubjects, howJudged, whatPrinted}
	slices.SortStableFunc(headings, func(a, b string) int {
		at := func(h string) int { return (slices.Index(order, h) + len(order) + 1) % (len(order) + 1) }
		return at(a) - at(b)
	})
	var b strings.Builder
	for _, h := range headings {
		if text := sets[h].FlagUsagesWrapped(100); text != "" {
			fmt.Fprintf(&b, "\n%s:\n%s", h, text)
		}
	}
	return b.String()
}

// usageText is cobra's, with the flags under their headings.
const usageText = `Usage:{{if .Runnable}}
  {{.UseLine}}{{end}}{{if .HasAvailableSubCommands}}
  {{.CommandPath}} COMMAND{{end}}
{{if .HasExample}}
Examples:
{{.Example}}
{{end}}{{if .HasAvailableSubCommands}}
Commands:{{range .Commands}}{{if .IsAvailableCommand}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}
{{end}}{{if .HasAvailableLocalFlags}}{{flagText .}}{{end}}{{if .HasHelpSubCommands}}
Help on:{{range .Commands}}{{if .IsAdditionalHelpTopicCommand}}
  plumb help {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}
{{end}}`

// parent is a command that has others and does nothing itself.
func parent(cmd *cobra.Command, children ...*cobra.Command) *cobra.Command {
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		message := fmt.Sprintf("unknown command %q for %q", args[0], cmd.CommandPath())
		if like := cmd.SuggestionsFor(args[0]); len(like) > 0 {
			message += "; is it " + strings.Join(like, " or ") + "?"
		}
		return usage(fmt.Errorf("%s\n  see: %s --help", message, cmd.CommandPath()))
	}
	cmd.SuggestionsMinimumDistance = 2
	cmd.AddCommand(children...)
	return cmd
}

// takes says how many arguments a command has, and what they are.
func takes(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return fmt.Errorf("%s needs %s", cmd.CommandPath(), what)
		case most == 0 && len(args) > 0:
			return fmt.Errorf("%s takes flags only, not %q", cmd.CommandPath(), args[0])
		case len(args) > most:
			return fmt.Errorf("%s takes %s, not %d arguments", cmd.CommandPath(), what, len(args))
		}
		return nil
	}
}

func noArguments() cobra.PositionalArgs { return takes(0, 0, "") }

func atLeastOne(what string) cobra.PositionalArgs { return takes(1, math.MaxInt, what) }

// limited is the value of a flag or a setting that takes some texts only.
type limited[T any] struct {
	to    *T
	parse func(text string) (T, bool)
	kind  string // as help names it
	want  string // what parse takes
	text  string
	words []string // where there are but these
}

func (v *limited[T]) choices() []string { return v.words }

// String returns the text that was given, or the default's.
func (v *limited[T]) String() string { return v.text }

// Set takes a text.
func (v *limited[T]) Set(text string) error {
	x, ok := v.parse(text)
	if !ok {
		return errors.New("want " + v.want)
	}
	*v.to, v.text = x, text
	return nil
}

// Type names the kind of value for help.
func (v *limited[T]) Type() string { return v.kind }

// pathValue is the value of a flag that names a file or a folder.
type pathValue struct {
	to    *string
	kind  string // as help names it
	check func(path string) error
}

// String returns the path.
func (v *pathValue) String() string { return *v.to }

// Set takes any path; checkFlags looks what is there.
func (v *pathValue) Set(path string) error {
	*v.to = path
	return nil
}

// Type names the kind of value for help.
func (v *pathValue) Type() string { return v.kind }

// inFile is a file that is read.
func inFile(to *string) pflag.Value { return &pathValue{to, "file", checkRegular} }

// outFile is a file that is written.
func outFile(to *string) pflag.Value { return &pathValue{to, "file", checkWritable} }

// folder is a folder that is read, or is made where it is not there.
func folder(to *string) pflag.Value { return &pathValue{to, "folder", checkFolder} }

// wholeNumber is a number from least on; to keeps what it has until one is given.
func wholeNumber(to *int, least int) pflag.Value {
	v := &limited[int]{to: to, kind: "int", want: fmt.Sprintf("a whole number, at least %d", least)}
	v.parse = func(text string) (int, bool) {
		n, err := strconv.Atoi(text)
		return n, err == nil && n >= least
	}
	if *to >= least {
		v.text = strconv.Itoa(*to)
	}
	return v
}

// wholeNumbers are numbers from least on, between commas.
func wholeNumbers(to *[]int, least int) pflag.Value {
	v := &limited[[]int]{to: to, kind: "ints", want: fmt.Sprintf("whole numbers, at least %d, between commas", least)}
	v.parse = func(text string) (all []int, ok bool) {
		for part := range strings.SplitSeq(text, ",") {
			n, err := strconv.Atoi(part)
			if err != nil || n < least {
				return nil, false
			}
			all = append(all, n)
		}
		return all, true
	}
	v.text = strings.Trim(strings.Join(strings.Fields(fmt.Sprint(*to)), ","), "[]")
	return v
}

// realNumber is a number between two.
func realNumber(to *float64, least, most float64) pflag.Value {
	v := &limited[float64]{to: to, kind: "float", want: fmt.Sprintf("a number from %g to %g", least, most), text: fmt.Sprint(*to)}
	v.parse = func(text string) (float64, bool) {
		x, err := strconv.ParseFloat(text, 64)
		return x, err == nil && x >= least && x <= most
	}
	return v
}

// timeSpan is a time that is longer than none.
func timeSpan(to *time.Duration) pflag.Value {
	v := &limited[time.Duration]{to: to, kind: "duration", want: "a positive duration such as 30s"}
	if *to > 0 {
		v.text = to.String()
	}
	v.parse = func(text string) (time.Duration, bool) {
		d, err := time.ParseDuration(text)
		return d, err == nil && d > 0
	}
	return v
}

// oneOf is one of some words.
func oneOf[T ~string](to *T, words ...T) pflag.Value {
	var list []string
	for _, w := range words {
		list = append(list, string(w))
	}
	want := list[0]
	if last := len(list) - 1; last > 0 {
		want = strings.Join(list[:last], ", ") + " or " + list[last]
	}
	v := &limited[T]{to: to, kind: "word", want: want, text: string(*to), words: list}
	v.parse = func(text string) (T, bool) { return T(text), slices.Contains(words, T(text)) }
	return v
}

// passes are names of passes over graphs.
func passes(to *[]string) pflag.Value {
	among := []string{"all"}
	for _, p := range graph.Passes() {
		among = append(among, p.Name)
	}
	v := &limited[[]string]{to: to, kind: "passes", want: "names of passes: " + strings.Join(among, ", ")}
	v.parse = func(text string) ([]string, bool) {
		all := *to
		for name := range strings.SplitSeq(text, ",") {
			if !slices.Contains(among, name) {
				return nil, false
			}
			all = append(all, name)
		}
		return all, true
	}
	return v
}

// yesOrNo is true or false; nil stands for neither.
func yesOrNo(to **bool) pflag.Value {
	v := &limited[*bool]{to: to, kind: "bool", want: "true or false"}
	v.parse = func(text string) (*bool, bool) {
		b, err := strconv.ParseBool(text)
		return &b, err == nil
	}
	return v
}

// anySeed is a seed; nil stands for a new one.
func anySeed(to **uint64) pflag.Value {
	v := &limited[*uint64]{to: to, kind: "uint", want: wantSeed}
	v.parse = func(text string) (*uint64, bool) {
		n, ok := parseSeed(text)
		return &n, ok
	}
	return v
}

// fixedSeed is a seed that has a default.
func fixedSeed(to *uint64, initial uint64) pflag.Value {
	*to = initial
	return &limited[uint64]{to: to, kind: "uint", want: wantSeed, parse: parseSeed, text: strconv.FormatUint(initial, 10)}
}

const wantSeed = "a whole number that is not negative and has at most 64 bits"

func parseSeed(text string) (uint64, bool) {
	n, err := strconv.ParseUint(text, 0, 64)
	return n, err == nil
}

// sizeUnits are those of sizes; as in AutoTest a MB has 1024² bytes.
var sizeUnits = []struct {
	suffix string
	bytes  int
}{{"GB", 1 << 30}, {"MB", 1 << 20}, {"KB", 1 << 10}, {"B", 1}, {"", 1 << 20}}

// memorySize is a number of bytes with a unit, megabytes without; to keeps what
// it has where the default is "".
func memorySize(to *int, text string) pflag.Value {
	v := &limited[int]{to: to, kind: "size", want: fmt.Sprintf("a size such as 32MB, at most %dGB", program.MaxInputBytes>>30)}
	v.parse = func(text string) (int, bool) {
		for _, u := range sizeUnits {
			if digits, ok := strings.CutSuffix(strings.ToUpper(text), u.suffix); ok {
				n, err := strconv.Atoi(digits)
				return n * u.bytes, err == nil && n >= 1 && n <= program.MaxInputBytes/u.bytes
			}
		}
		return 0, false
	}
	if n, ok := v.parse(text); ok {
		*to, v.text = n, text
	}
	return v
}

// floatTypes are dtypes with a fraction; given more than once, a flag adds to them.
func floatTypes(to *[]tensor.DType) pflag.Value {
	v := &limited[[]tensor.DType]{to: to, kind: "dtypes", want: "float16, bfloat16, float32 or float64, each once", words: []string{"float16", "bfloat16", "float32", "float64"}}
	v.parse = func(text string) ([]tensor.DType, bool) {
		all := *to
		for name := range strings.SplitSeq(text, ",") {
			d, err := tensor.ParseDType(name)
			if err != nil || !d.IsFloat() || slices.Contains(all, d) {
				return nil, false
			}
			all = append(all, d)
		}
		return all, true
	}
	return v
}

// tolerance is what takes the place of the numerics classes.
type tolerance struct {
	rtol, atol *float64
	byDType    bool
}

// tolerances reads a tolerance.
func tolerances(to *tolerance) pflag.Value {
	v := &limited[tolerance]{to: to, kind: "limits", want: "autotest, exact, default or two numbers RTOL,ATOL that are not negative, such as 1e-3,1e-5"}
	v.parse = func(text string) (tolerance, bool) {
		switch text {
		case "autotest":
			return absolute(script.AutotestRTol, script.AutotestATol), true
		case "exact":
			return absolute(0, 0), true
		case program.Default:
			return tolerance{byDType: true}, true
		}
		first, second, _ := strings.Cut(text, ",")
		rtol, err := strconv.ParseFloat(first, 64)
		atol, err2 := strconv.ParseFloat(second, 64)
		return absolute(rtol, atol), err == nil && err2 == nil && rtol >= 0 && atol >= 0 && !math.IsInf(rtol, 0) && !math.IsInf(atol, 0)
	}
	return v
}

func absolute(rtol, atol float64) tolerance { return tolerance{rtol: &rtol, atol: &atol} }

// The flags that several commands have.

func jsonFlag(fl *pflag.FlagSet, to *bool, what string) { fl.BoolVar(to, "json", false, what) }

func pythonFlag(fl *pflag.FlagSet, to *string) {
	fl.StringVar(to, "python", "", "the Python that has torch (default: $PLUMB_PYTHON, else python3 or /usr/bin/python3)")
}

// idlePython refuses a Python that no backend would run.
func idlePython(python string, specs ...string) error {
	if python != "" && !slices.ContainsFunc(specs, isTorch) {
		return usage(fmt.Errorf("--python %s has no effect: neither the reference nor a candidate is torch", python))
	}
	return nil
}

// idleTimeout refuses a time limit, given by a flag, that no backend would
// keep: only another process can be stopped.
func idleTimeout(flag string, specs ...string) error {
	if !slices.ContainsFunc(specs, func(spec string) bool {
		of := open.ParseSpec(spec)
		return of.IsFramework() || of.IsCommand() || of.IsLibrary()
	}) {
		return usage(fmt.Errorf("%s has no effect: it limits frameworks and workers, and %s is neither", flag, strings.Join(specs, ", ")))
	}
	return nil
}

func jobsFlag(fl *pflag.FlagSet, to *int, what string) {
	fl.VarP(wholeNumber(to, 1), "jobs", "j", what)
}
