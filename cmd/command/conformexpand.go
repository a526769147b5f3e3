package command

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"plumb/internal/conform/config"
)

// conformExpand prints the cases of a config.
type conformExpand struct {
	json    bool
	fnames  []string
	dropped bool
	diff    string
	modes   conformModes
}

func newConformExpand() *cobra.Command {
	var x conformExpand
	cmd := &cobra.Command{
		Use:   "expand [CONFIG]",
		Short: "Print the cases of a config, in order",
		Long: `Expand prints the cases of a config (default: the one that Plumb ships), in
order: their names, or with --json one object per line. Warnings about keys that
have no effect go to stderr.

The flags that choose cases are those of plumb conform run. --dropped prints the
cases that they leave out, and why; --diff compares with another config.

The exit code is 0, or 5 where no case is left. With --dropped it is 0 where
nothing is left out, else 1; with --diff 0 where the cases are the same, else 1.`,
		Example: `  plumb conform expand my_config.py --json
  plumb conform expand my_config.py --device-config my_device.py --dropped
  plumb conform expand my_config.py --diff your_config.py
  plumb conform expand --model resnet50 --model-configs model_config`,
		Args: takes(0, 1, "one CONFIG"),
		RunE: func(cmd *cobra.Command, args []string) error {
			out := bufio.NewWriter(cmd.OutOrStdout())
			err := x.run(args, out, cmd.ErrOrStderr())
			if flushed := out.Flush(); flushed != nil {
				return flushed
			}
			return err
		},
	}
	fl := cmd.Flags()
	fl.BoolVar(&x.json, "json", false, "print one object per case")
	fl.StringSliceVar(&x.fnames, "fname", nil, "the cases of these functions only; may be repeated")
	x.modes.addChoice(cmd)
	fl.BoolVar(&x.dropped, "dropped", false, "print the cases that are left out instead, each with the reason")
	fl.Var(inFile(&x.diff), "diff", "print how the cases of this config differ: - are not in it, + are in it only, ~ are others of the same name")
	needs(cmd, "model-file", "model")
	bars(cmd, "dropped", "diff")
	return cmd
}

func (x *conformExpand) run(args []string, out, errs io.Writer) error {
	args, err := x.modes.models.own(args)
	if err != nil {
		return err
	}
	c, err := configOrOwn(args, errs)
	if err != nil {
		return err
	}
	if err := x.modes.choose(errs); err != nil {
		return err
	}
	m := &x.modes.modes
	m.Functions = x.fnames
	if err := m.Check(c); err != nil {
		return usage(err)
	}
	defer x.modes.warnUnused(errs)
	switch {
	case x.diff != "":
		return x.compare(c, out, errs)
	case x.dropped:
		return x.leftOut(c, out)
	}
	return x.cases(c, out)
}

// cases prints the cases.
func (x *conformExpand) cases(c *config.Config, out io.Writer) error {
	n := 0
	for one := range c.Cases() {
		if x.modes.modes.LeavesOut(one) != "" {
			continue
		}
		n++
		if err := x.print(out, "", one); err != nil {
			return err
		}
	}
	if n == 0 {
		return &exitError{exitNothing, errors.New("no case is left of the config")}
	}
	return nil
}

// print prints a case after a mark.
func (x *conformExpand) print(out io.Writer, mark string, c *config.Case) error {
	line := append([]byte(mark), c.Name...)
	if x.json {
		line = c.AppendJSON([]byte(mark))
	}
	_, err := out.Write(append(line, '\n'))
	return err
}

// left is a case that is not asked.
type left struct {
	Case   string `json:"case"`
	Reason string `json:"reason"`
}

// leftOut prints the cases that are left out.
func (x *conformExpand) leftOut(c *config.Config, out io.Writer) error {
	n := 0
	for one := range c.Cases() {
		why := x.modes.modes.LeavesOut(one)
		if why == "" {
			continue
		}
		n++
		var err error
		if x.json {
			err = json.NewEncoder(out).Encode(left{one.Name, why})
		} else {
			_, err = fmt.Fprintf(out, "%s\t%s\n", one.Name, why)
		}
		if err != nil {
			return err
		}
	}
	return unlike(n)
}

// unlike ends a command that shows what differs, of which there is so much.
func unlike(n int) error {
	if n == 0 {
		return nil
	}
	return &exitError{exitFindings, nil}
}

// compare prints how the cases differ from those of the other config.
func (x *conformExpand) compare(c *config.Config, out, errs io.Writer) error {
	other, err := readConfig(x.diff, errs)
	if err != nil {
		return err
	}
	there := map[string]*config.Case{}
	for one := range other.Cases() {
		if x.modes.modes.LeavesOut(one) == "" {
			there[one.Name] = one
		}
	}
	n := 0
	for one := range c.Cases() {
		if x.modes.modes.LeavesOut(one) != "" {
			continue
		}
		match := there[one.Name]
		delete(there, one.Name)
		mark := "- "
		switch {
		case match == nil:
		case one.Same(match):
			continue
		default:
			mark = "~ "
		}
		n++
		if err := x.print(out, mark, one); err != nil {
			return err
		}
	}
	byIndex := func(a, b *config.Case) int { return a.Index - b.Index }
	for _, one := range slices.SortedFunc(maps.Values(there), byIndex) {
		n++
		if err := x.print(out, "+ ", one); err != nil {
			return err
		}
	}
	return unlike(n)
}
