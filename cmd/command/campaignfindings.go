package command

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"plumb/internal/campaign/store"
)

// campaignFindings is plumb campaign findings.
type campaignFindings struct {
	campaignOf
	python string
	most   int
	args   []string // of plumb run
}

func newCampaignFindings() *cobra.Command {
	c := campaignFindings{most: 100}
	cmd := &cobra.Command{
		Use:   "findings [NUMBER|NAME] [-- FLAGS]",
		Short: "Judge a campaign's findings again: the smallest program, a bundle, reports",
		Long: `Findings judges the smallest program of each finding of a campaign again, on this
machine, as plumb run does: it is made smaller, and has a bundle that plumb repro
shows. What comes behind -- are flags of plumb run, such as its reports; where there are
findings of several candidates, the files of the second are FILE-2, and so on.`,
		Example: `  plumb campaign findings                         of the last campaign
  plumb campaign findings nightly -- --html findings.html --junit findings.xml`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if at := cmd.ArgsLenAtDash(); at >= 0 {
				args, c.args = args[:at], args[at:]
			}
			if len(args) > 1 {
				return usage(fmt.Errorf("plumb campaign findings takes one campaign, not %d; flags of plumb run come behind --", len(args)))
			}
			return c.run(cmd, args)
		},
	}
	c.keep.of(cmd.Flags())
	pythonFlag(cmd.Flags(), &c.python)
	cmd.Flags().Var(wholeNumber(&c.most, 1), "most", "look at so many findings of each candidate")
	return cmd
}

func (c *campaignFindings) run(cmd *cobra.Command, args []string) error {
	db, _, one, err := c.find(args)
	if err != nil {
		return err
	}
	defer db.Close()
	s, err := decodeSpec(one.Spec)
	if err != nil {
		return &exitError{exitFault, err}
	}
	dir, err := os.MkdirTemp("", "plumb-findings-")
	if err != nil {
		return &exitError{exitFault, err}
	}
	defer os.RemoveAll(dir)
	lists := map[runKind][]string{}
	var order []runKind
	err = db.Sightings(one.ID, func(f *store.Sighting) error {
		kind := runKind{f.Subject, ofOperators(f.Test)}
		if f.Program == "" || len(lists[kind]) == c.most {
			return nil
		}
		path := filepath.Join(dir, fmt.Sprintf("finding-%d.py", f.Finding))
		if lists[kind] == nil {
			order = append(order, kind)
		}
		lists[kind] = append(lists[kind], path)
		return os.WriteFile(path, []byte(f.Program), 0o600)
	})
	if err != nil {
		return &exitError{exitFault, err}
	}
	if len(order) == 0 {
		fmt.Fprintf(cmd.OutOrStdout(), "campaign %d%s has no findings\n", one.ID, named(one.Name))
		return nil
	}
	known, err := s.knownFile(dir)
	if err != nil {
		return &exitError{exitFault, err}
	}
	return c.runs(cmd, s, order, lists, known)
}

// runKind is what the findings of one run of plumb run have in common.
type runKind struct {
	candidate string
	strict    bool // what both sides raise is of one class
}

// ofOperators reports whether a test is one that operators' literals or samples are drawn for.
func ofOperators(test string) bool {
	return strings.HasPrefix(test, "ops::") || strings.HasPrefix(test, "opinfo::")
}

// runs judges the programs, each kind in a run of its own.
func (c *campaignFindings) runs(cmd *cobra.Command, s *spec, order []runKind, lists map[runKind][]string, known string) error {
	var errs []error
	worst := 0
	for i, kind := range order {
		fmt.Fprintf(cmd.ErrOrStderr(), "plumb: %s on %s\n", count(len(lists[kind]), "finding"), kind.candidate)
		err := c.runOne(cmd, i+1, slices.Concat(s.runFlags(kind, known), c.args, lists[kind]))
		var e *exitError
		if errors.As(err, &e) && e.err == nil { // it has said why
			worst, err = max(worst, e.code), nil
		}
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if worst > 0 {
		return &exitError{worst, nil}
	}
	return nil
}

func (c *campaignFindings) runOne(of *cobra.Command, n int, args []string) error {
	run := newRun()
	run.PreRunE = func(run *cobra.Command, _ []string) error { return ownFiles(run, n) }
	run.SetOut(of.OutOrStdout())
	run.SetErr(of.ErrOrStderr())
	run.SilenceErrors, run.SilenceUsage = true, true
	if c.python != "" {
		args = append([]string{"--python", c.python}, args...)
	}
	run.SetArgs(args)
	return run.ExecuteContext(of.Context())
}

// ownFiles numbers the files that a run writes, from the second of several runs on.
func ownFiles(run *cobra.Command, n int) error {
	if n == 1 {
		return nil
	}
	numbered := func(path string) string {
		end := filepath.Ext(path)
		return fmt.Sprintf("%s-%d%s", strings.TrimSuffix(path, end), n, end)
	}
	for _, name := range []string{"html", "junit", "record"} {
		if f := run.Flags().Lookup(name); f.Changed {
			if err := f.Value.Set(numbered(f.Value.String())); err != nil {
				return err
			}
		}
	}
	files := run.Flags().Lookup("report").Value.(*reportFiles)
	for i := range files.all {
		files.all[i].path = numbered(files.all[i].path)
	}
	return nil
}

// knownFile writes the list of accepted failures into a folder, for --known.
func (s *spec) knownFile(dir string) (string, error) {
	if s.Known == "" {
		return "none", nil
	}
	path := filepath.Join(dir, "known.yaml")
	return path, os.WriteFile(path, []byte(s.Known), 0o600)
}

// runFlags are those with which plumb run judges as the campaign has.
func (s *spec) runFlags(kind runKind, known string) []string {
	args := []string{"--reference", s.Reference, "--candidate", kind.candidate, "--known", known}
	for name, values := range s.Flags {
		if slices.Contains([]string{"import", "device", "device-strict", "tolerance", "check-graph", "sandbox"}, name) {
			for _, v := range values {
				args = append(args, "--"+name+"="+v)
			}
		}
	}
	settings := maps.Clone(s.Settings)
	if kind.strict && settings["exceptions"] == "" {
		settings["exceptions"] = "strict"
	}
	for key, value := range settings {
		args = append(args, "--set", key+"="+value)
	}
	return args
}
