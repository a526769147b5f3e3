package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"maps"

	"github.com/spf13/cobra"

	"plumb/backend"
	"plumb/backend/native"
	"plumb/backend/open"
	"plumb/backend/worker"
	"plumb/internal/campaign/report"
	"plumb/nn"
	"plumb/ops"
)

// checkup is what doctor says of one backend.
type checkup struct {
	Backend string            `json:"backend"`
	OK      bool              `json:"ok"`
	Version string            `json:"version,omitempty"`
	Devices []string          `json:"devices,omitempty"`
	Details map[string]string `json:"details,omitempty"`
	Problem string            `json:"problem,omitempty"`
	Fix     string            `json:"fix,omitempty"`

	forwardOnly bool
	optional    bool
	python      string // that would have it, once it is installed by Fix
}

func newDoctor() *cobra.Command {
	var python string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor [DIR]",
		Short: "Say which backends are here, and how to install what is missing",
		Long: `Doctor starts every backend and prints its version and devices, and for each
backend that is missing the command that installs it. With a directory it says
what the Pythons of the environments in it, and below it, can serve.`,
		Example: `  plumb doctor
  plumb doctor --python ~/venv/bin/python
  plumb doctor ~/envs
  plumb doctor --json | jq '.[] | select(.ok | not).fix'`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			checks := []checkup{checkNative(), checkBaseline(), checkFramework(cmd.Context(), worker.Torch, python)}
			if len(args) > 0 {
				if python != "" {
					return usage(fmt.Errorf("--python %s has no effect beside a directory", python))
				}
				var err error
				if checks, err = checkBelow(cmd.Context(), args[0]); err != nil {
					return usage(err)
				}
			} else {
				checks = append(checks, otherFrameworks(cmd.Context())...)
			}
			if asJSON {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(checks)
			}
			screen := report.NewScreen(cmd.OutOrStdout(), widthOf(cmd.OutOrStdout()))
			printCheckups(screen, checks)
			return screen.Flush()
		},
	}
	pythonFlag(cmd.Flags(), &python)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print an array with one object per backend")
	return cmd
}

func checkNative() checkup {
	info := native.New(ops.Table(), nn.Modules()).Info()
	public, _ := selectOps(nil)
	return checkup{Backend: "native", OK: true, Version: info.Version, Devices: info.Devices, Details: map[string]string{
		"operators": fmt.Sprint(len(public)), "go": runtime.Version(), "cpu": runtime.GOARCH,
	}}
}

func checkBaseline() checkup {
	c := checkup{Backend: "recorded"}
	base, err := open.Baseline("")
	if err != nil {
		c.Problem = err.Error()
		return c
	}
	info := base.Info()
	c.OK, c.Version, c.Devices = true, info.Version, info.Devices
	c.Details = map[string]string{"cases": fmt.Sprint(len(base.Cases()))}
	return c
}

// otherFrameworks are those beside PyTorch, which nobody needs.
func otherFrameworks(ctx context.Context) (checks []checkup) {
	for _, name := range worker.Frameworks[1:] {
		c := checkFramework(ctx, name, "")
		if c.optional = true; !c.OK && os.Getenv(worker.Variable(name)) == "" {
			c.Fix, c.python = worker.Install(name)
		}
		checks = append(checks, c)
	}
	return checks
}

// checkBelow looks at every Python below a directory.
func checkBelow(ctx context.Context, dir string) (checks []checkup, err error) {
	pythons, err := worker.Below(dir)
	if err != nil {
		return nil, err
	}
	for _, python := range pythons {
		for _, name := range worker.Frameworks {
			if _, _, err := worker.Try(name, python); err == nil {
				checks = append(checks, checkFramework(ctx, name, python))
			}
		}
	}
	if len(checks) == 0 {
		return nil, fmt.Errorf("no Python below %s has %s", dir, strings.Join(worker.Frameworks, " or "))
	}
	return checks, nil
}

func checkFramework(ctx context.Context, name, python string) checkup {
	c := checkup{Backend: name}
	fail := func(err error) checkup {
		c.Problem = err.Error()
		var f *backend.Fault
		if errors.As(err, &f) {
			c.Problem, c.Fix = f.Err.Error(), f.Fix
		}
		return c
	}
	path, _, err := worker.Find(name, python)
	if err != nil {
		return fail(err)
	}
	start := time.Now()
	w, err := worker.Open(ctx, worker.Config{Framework: name, Python: path})
	if err != nil {
		return fail(err)
	}
	defer w.Close()
	info := w.Info()
	c.OK, c.Version, c.Devices, c.Details = true, info.Version, info.Devices, maps.Clone(info.Features)
	c.forwardOnly = info.ForwardOnly
	if c.Details == nil {
		c.Details = map[string]string{}
	}
	c.Details["python"], c.Details["bounds"] = path, w.Bounds()
	c.Details["start"] = time.Since(start).Round(time.Millisecond).String()
	return c
}

// shared is a detail that several backends have alike, and none otherwise.
func shared(checks []checkup, detail string) string {
	found, n := "", 0
	for _, c := range checks {
		if v := c.Details[detail]; v != "" {
			if n++; n > 1 && v != found {
				return ""
			}
			found = v
		}
	}
	if n < 2 {
		return ""
	}
	return found
}

func printCheckups(w io.Writer, checks []checkup) {
	missing := func(c checkup) bool { return !c.OK }
	optional := func(c checkup) bool { return !c.OK && c.python != "" }
	others := slices.DeleteFunc(slices.Clone(checks), func(c checkup) bool { return !optional(c) })
	checks = slices.DeleteFunc(checks, optional)
	bounds := shared(checks, "bounds")
	for _, c := range checks {
		if missing(c) {
			fmt.Fprintf(w, "%-9s missing: %s\n", c.Backend, c.Problem)
			if c.Fix != "" {
				fmt.Fprintf(w, "%-9s fix: %s\n", "", c.Fix)
			}
			continue
		}
		fmt.Fprintf(w, "%-9s %s on %v\n", c.Backend, c.Version, c.Devices)
		for _, k := range slices.Sorted(maps.Keys(c.Details)) {
			if k != "bounds" || bounds == "" {
				fmt.Fprintf(w, "%-9s   %s: %s\n", "", k, c.Details[k])
			}
		}
	}
	if bounds != "" {
		fmt.Fprintf(w, "bounds of each: %s\n", bounds)
	}
	for i, c := range others {
		if i == 0 {
			fmt.Fprintf(w, "not here, and how they are installed; then plumb run --candidate %s:%s\n", c.Backend, c.python)
		}
		fmt.Fprintf(w, "    %-13s  %s\n", c.Backend, c.Fix)
	}
	if slices.ContainsFunc(checks, func(c checkup) bool { return !c.OK && !c.optional }) {
		return
	}
	next := "plumb run"
	if i := slices.IndexFunc(checks, func(c checkup) bool {
		return c.OK && slices.Contains(worker.Frameworks[1:], c.Backend) && !c.forwardOnly
	}); i >= 0 {
		next += fmt.Sprintf(" --candidate %s:%s", checks[i].Backend, checks[i].Details["python"])
	}
	fmt.Fprintln(w, "next:", next)
}
