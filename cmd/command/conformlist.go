package command

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"plumb/backend"
	"plumb/backend/open"
	"plumb/baselines"
	"plumb/conform"
	"plumb/internal/conform/config"
	"plumb/internal/conform/diopi"
	"plumb/ops"
	"plumb/program"
	"plumb/tensor"
)

type conformList struct {
	candidate string
	python    string
	models    modelFlags
	json      bool
}

func newConformList() *cobra.Command {
	var l conformList
	cmd := &cobra.Command{
		Use:   "list [CONFIG]",
		Short: "Print the functions of a config: their cases, who implements them, which models call them",
		Long: `List prints the functions of a config (default: the one that Plumb ships) with
the number of their cases and entries. With --candidate it runs the smallest case
of each function on a backend and says which functions that implements. With
--models it prints networks instead, such as resnet50: how many functions each
calls, and which of them the config lacks.`,
		Example: `  plumb conform list my_config.py
  plumb conform list --candidate native
  plumb conform list --models --candidate ./my-worker`,
		Args: takes(0, 1, "one CONFIG"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return l.run(cmd.Context(), args, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&l.candidate, "candidate", "", "say for each function whether this backend implements it; see plumb help backends")
	pythonFlag(fl, &l.python)
	needs(cmd, "python", "candidate")
	fl.BoolVar(&l.json, "json", false, "one JSON object per function or model and line")
	l.models.add(fl)
	fl.BoolVar(&l.models.all, "models", false, "print networks instead of functions")
	needs(cmd, "model-file", "model", "models")
	needs(cmd, "model-configs", "model")
	bars(cmd, "model-configs", "models", "model-file")
	return cmd
}

// listed is what list tells about one function.
type listed struct {
	Function string `json:"function"`
	Cases    int    `json:"cases"`
	Entries  int    `json:"entries"`
	// Implemented is nil where no backend was asked, or the case has no program.
	Implemented *bool  `json:"implemented,omitempty"`
	Reason      string `json:"reason,omitempty"`

	last     string
	smallest *program.Program
	of       *config.Case // that smallest is
	bytes    int
}

func (l *conformList) run(ctx context.Context, args []string, out, errs io.Writer) error {
	args, err := l.models.own(args)
	if err != nil {
		return err
	}
	c, err := configOrOwn(args, errs)
	if err != nil {
		return err
	}
	models, model, err := l.models.load()
	if err != nil {
		return err
	}
	if model != nil {
		models = []*config.Model{model}
	}
	functions, total := l.count(c, model)
	if l.candidate != "" {
		if err := l.ask(ctx, functions); err != nil {
			return err
		}
	}
	if l.models.all {
		return l.printModels(out, models, functions)
	}
	return l.printFunctions(out, functions, total, len(c.Entries()))
}

// configOrOwn reads the config that is named, or the shipped one.
func configOrOwn(args []string, errs io.Writer) (*config.Config, error) {
	name, src, err := configSource(args)
	if err != nil {
		return nil, err
	}
	return loadConfig(name, src, errs)
}

// configSource is the name and the text of the config that is named, or of the
// shipped one.
func configSource(args []string) (name string, src []byte, err error) {
	if len(args) == 0 {
		return "baselines/conformance/config.py", baselines.ConformanceConfig, nil
	}
	src, err = configText(args[0])
	return args[0], src, err
}

// count lists the functions, sorted, with their smallest cases.
func (l *conformList) count(c *config.Config, model *config.Model) (functions []*listed, total int) {
	by := map[string]*listed{}
	modes := config.Modes{Model: model}
	for one := range c.Cases() {
		if !modes.Takes(one) {
			continue
		}
		f := by[one.Function]
		if f == nil {
			f = &listed{Function: one.Function}
			by[one.Function] = f
			functions = append(functions, f)
		}
		if f.last != one.Config {
			f.Entries++
			f.last = one.Config
		}
		f.Cases++
		total++
		switch {
		case l.candidate == "":
		default:
			f.smaller(one)
		}
	}
	slices.SortFunc(functions, func(a, b *listed) int { return strings.Compare(a.Function, b.Function) })
	return functions, total
}

// smaller keeps the program of the smallest case that has elements.
func (f *listed) smaller(c *config.Case) {
	p, err := diopi.Program(c, 0)
	if err != nil {
		if f.smallest == nil {
			f.Reason = err.Error()
		}
		return
	}
	n := 0
	for _, in := range p.Inputs {
		n += max(tensor.NumElements(in.Shape), 1) * in.DType.Size()
	}
	if f.smallest == nil || n < f.bytes {
		f.smallest, f.of, f.bytes, f.Reason = p, c, n, ""
	}
}

// ask runs the smallest case of each function on the candidate.
func (l *conformList) ask(ctx context.Context, functions []*listed) error {
	backends := &open.Set{Table: ops.Table(), Python: l.python}
	start, err := backends.Opener(ctx, l.candidate)
	if err != nil {
		return harness(err)
	}
	cand, err := start()
	if err != nil {
		return harness(err)
	}
	defer cand.Close()
	for _, f := range functions {
		if f.smallest == nil {
			continue
		}
		p := f.smallest
		if open.ParseSpec(l.candidate).Name == open.Library && diopi.One(f.of) {
			if p, err = asOne(ctx, f.of, p); err != nil {
				f.Reason = err.Error()
				continue
			}
		}
		o, err := cand.Run(ctx, backend.NewJob(p))
		if err != nil {
			return harness(err)
		}
		does := o.Status != backend.Unsupported
		f.Implemented = &does
		if !does {
			f.Reason = o.Message
		}
	}
	return nil
}

// asOne is the case as the one function that a library is asked for.
func asOne(ctx context.Context, c *config.Case, p *program.Program) (*program.Program, error) {
	ref, err := conform.Predictor().Run(ctx, backend.NewJob(p))
	if err != nil {
		return nil, err
	}
	f, err := conform.OneFunction(c, 0, p, ref)
	return f.Program, err
}

func (l *conformList) printFunctions(out io.Writer, functions []*listed, total, entries int) error {
	if l.json {
		return writeJSONLines(out, functions)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	head := "function\tcases\tentries"
	if l.candidate != "" {
		head += "\timplemented"
	}
	fmt.Fprintln(w, head)
	implemented := 0
	for _, f := range functions {
		fmt.Fprintf(w, "%s\t%d\t%d", f.Function, f.Cases, f.Entries)
		if l.candidate != "" {
			fmt.Fprintf(w, "\t%s", f.answer())
		}
		if f.Implemented != nil && *f.Implemented {
			implemented++
		}
		fmt.Fprintln(w)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(out, "%d functions, %d cases of %d entries\n", len(functions), total, entries)
	if l.candidate != "" {
		fmt.Fprintf(out, "%s implements %d of %d functions\n", l.candidate, implemented, len(functions))
	}
	return nil
}

func (f *listed) answer() string {
	switch {
	case f.Implemented == nil:
		return "unknown: " + f.Reason
	case *f.Implemented:
		return "yes"
	}
	return "no: " + f.Reason
}

// listedModel is what list tells about one model.
type listedModel struct {
	Model       string   `json:"model"`
	Functions   int      `json:"functions"`
	Cases       int      `json:"cases"`
	Implemented *int     `json:"implemented,omitempty"`
	Absent      []string `json:"absent,omitempty"` // functions of which the config has no case
	Lacking     []string `json:"lacking,omitempty"`
}

func (l *conformList) printModels(out io.Writer, models []*config.Model, functions []*listed) error {
	var list []*listedModel
	for _, m := range models {
		list = append(list, l.model(m, functions))
	}
	if l.json {
		return writeJSONLines(out, list)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "model\tfunctions\tcases\tnot in the config\tnot implemented")
	for _, m := range list {
		lacking := "-"
		if l.candidate != "" {
			lacking = some(m.Lacking)
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%s\t%s\n", m.Model, m.Functions, m.Cases, some(m.Absent), lacking)
	}
	return w.Flush()
}

func (l *conformList) model(m *config.Model, functions []*listed) *listedModel {
	row := &listedModel{Model: m.Name, Functions: len(m.Functions)}
	implemented := 0
	for _, name := range m.Functions {
		i := slices.IndexFunc(functions, func(f *listed) bool { return f.Function == name })
		if i < 0 {
			row.Absent = append(row.Absent, name)
			continue
		}
		f := functions[i]
		row.Cases += f.Cases
		switch {
		case f.Implemented == nil:
		case *f.Implemented:
			implemented++
		default:
			row.Lacking = append(row.Lacking, name)
		}
	}
	if l.candidate != "" {
		row.Implemented = &implemented
	}
	return row
}

// some names a few of a list and counts the rest.
func some(names []string) string {
	const most = 4
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], " "), len(names)-most)
	}
	return strings.Join(names, " ")
}

func writeJSONLines[T any](out io.Writer, list []T) error {
	enc := json.NewEncoder(out)
	for _, v := range list {
		if err := enc.Encode(v); err != nil {
			return err
		}
	}
	return nil
}
