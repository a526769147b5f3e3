package command

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func newConfig() *cobra.Command {
	return &cobra.Command{
		Use:   "config [--json] [COMMAND [FLAG…]]",
		Short: "Print the values of a command's flags, and where each is from",
		Long: `Config prints what would be in force if a command ran here, by default plumb run:
each flag and setting with its value, and where that is from: the command line,
a line of plumb.toml, or the default.

plumb.toml is looked for in the working directory and above it; $PLUMB_CONFIG
names another file, or "none". Its keys are the flags of plumb run, ops run,
graph run and campaign by their long names; [set] has the keys of --set. The
flags of one command are in its own table, such as [ops.run] or [conform.run],
where they go before the others; what the command line says goes before all.
sources names what plumb campaign runs, and plumb run where it is given no FILE.`,
		Example: `  plumb config
  plumb config campaign run
  plumb config ops run --dtype float64
  plumb config --json run`,
		DisableFlagParsing: true,
		Args:               cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if slices.Contains(args, "--help") || slices.Contains(args, "-h") {
				return cmd.Help()
			}
			asJSON := len(args) > 0 && args[0] == "--json"
			if asJSON {
				args = args[1:]
			}
			if len(args) == 0 {
				args = []string{"run"}
			}
			of, rest, err := cmd.Root().Find(args)
			if err != nil || of == cmd.Root() || !of.HasAvailableLocalFlags() {
				return usage(fmt.Errorf("there is no command %q with flags; plumb help lists them", strings.Join(args, " ")))
			}
			if err := of.ParseFlags(rest); err != nil {
				return flagError(of, err)
			}
			if err := checkFlags(of, nil); err != nil {
				return err
			}
			return printConfig(cmd.OutOrStdout(), of, asJSON)
		},
	}
}

// inForce is a flag, a setting or the sources of a command with their value.
type inForce struct {
	Key   string `json:"key"`
	Value string `json:"value"`
	From  string `json:"from"` // a line of plumb.toml, "the command line" or "default"
}

func printConfig(out io.Writer, of *cobra.Command, asJSON bool) error {
	list, err := valuesOf(of)
	if err != nil {
		return usage(err)
	}
	if asJSON {
		enc := json.NewEncoder(out)
		enc.SetEscapeHTML(false)
		return enc.Encode(map[string]any{"command": of.CommandPath(), "values": list})
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%s\t\t\n", strings.ToUpper(of.CommandPath()))
	for _, v := range list {
		fmt.Fprintf(w, "%s\t%s\t%s\n", v.Key, v.Value, v.From)
	}
	return w.Flush()
}

// valuesOf are the values of a command's flags, of its settings, and its sources.
func valuesOf(of *cobra.Command) ([]inForce, error) {
	var list []inForce
	if slices.Contains([]string{"run", "campaign run", "campaign serve"}, commandPath(of)) {
		sources, err := projectSources()
		if err != nil {
			return nil, err
		}
		from := "plumb.toml"
		if sources == nil {
			sources, from = []string{"suites"}, "default"
		}
		list = append(list, inForce{sourcesKey, strings.Join(sources, ", "), from})
	}
	of.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Name == "help" || f.Name == "set" || f.Hidden {
			return
		}
		value := f.Value.String()
		if list, ok := f.Value.(pflag.SliceValue); ok {
			value = strings.Join(list.GetSlice(), ", ")
		}
		list = append(list, inForce{f.Name, value, given(f)})
	})
	s, ok := settingsOf(of)
	if !ok {
		return list, nil
	}
	for _, key := range s.keys {
		row := s.row(key)
		v := inForce{"set." + key, row.value.String(), "default"}
		switch {
		case s.from[key] != "":
			v.From = s.from[key]
		case s.given[key]:
			v.From = "the command line"
		default:
			v.Value = row.initial
		}
		list = append(list, v)
	}
	return list, nil
}

// loadProject applies plumb.toml to a command that has a use for it: what tells of
// the program and explains it works with a wrong file, too.
func loadProject(cmd *cobra.Command) error {
	switch commandPath(cmd) {
	case "version", "doctor", "help", "config", "":
		return nil
	}
	if err := configured(cmd); err != nil {
		return usage(err)
	}
	return nil
}
