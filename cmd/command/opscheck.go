package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"plumb/backend/open"
	"plumb/internal/campaign/report"
	"plumb/internal/opcheck"
	"plumb/op"
	"plumb/ops"
)

// operatorCheck is plumb ops check.
type operatorCheck struct {
	table  *op.Table
	out    io.Writer
	python string
	seed   uint64
	alone  bool // without a reference
	json   bool
	grade  bool
	cover  bool
	filed  filed
	kept   keeping
}

func newOpsCheck() *cobra.Command {
	c := &operatorCheck{table: ops.Table()}
	cmd := &cobra.Command{
		Use:   "check NAME…",
		Short: "Hold operators' definitions to what they promise, each field by itself",
		Long: `Check runs all that check.Operator does under go test: inference, kernels in every
layout, traits, sharding, gradients, graphs, Exact and Sample, and PyTorch's
results where it is installed. A finding names the field of the literal; what
could not be checked is listed as well.`,
		Example: `  plumb ops check softsign
  plumb ops check softsign --alone
  plumb ops check softsign --grade            which planted faults would be found
  go run ./plumb ops check my_op --cover      which lines of the definition no check reaches`,
		Args: atLeastOne("the name of an operator"),
		RunE: func(cmd *cobra.Command, names []string) error {
			c.out = cmd.OutOrStdout()
			return c.run(cmd.Context(), names, cmd.ErrOrStderr())
		},
	}
	fl := cmd.Flags()
	fl.Uint64Var(&c.seed, "seed", 0, "the seed of all calls")
	fl.StringVar(&c.python, "python", "", "the Python that has torch")
	fl.BoolVar(&c.alone, "alone", false, "without PyTorch: by the literal alone")
	fl.BoolVar(&c.grade, "grade", false, "plant faults in copies of the definition, one in each, and tell which the checks would find")
	fl.BoolVar(&c.cover, "cover", false, "build this program again with coverage, and list lines of the definition that no check reaches (needs Go)")
	jsonFlag(fl, &c.json, "one JSON object per operator and line")
	c.filed.flags(fl, "what each field of a definition is held to, and what is not checked")
	c.kept.flag(fl)
	bars(cmd, "grade", "html", "report", "markdown", "store")
	bars(cmd, "cover", "html", "report", "markdown", "store")
	return cmd
}

// usualNumber is how many calls of each kind are judged by the reference.
const usualNumber = 50

func (c *operatorCheck) run(ctx context.Context, names []string, log io.Writer) (err error) {
	defs, err := selectOps(names)
	if err != nil {
		return usage(err)
	}
	if c.grade && c.cover {
		return usage(errors.New("--grade and --cover are two runs: give one of them"))
	}
	if c.grade {
		return c.grades(ctx, defs)
	}
	if c.cover {
		return (&reached{out: c.out, args: c.again(defs)}).run(ctx, defs)
	}
	if err := c.kept.open(log); err != nil {
		return err
	}
	told := &checkTold{sum: report.NewSummary(), by: "their definitions"}
	told.to = c.kept.keepAspects(c.filed.begin("plumb ops check", time.Now(), nil), "plumb ops check", told.by, c.seed)
	defer func() {
		told.end(&c.filed, c.seed)
		err = c.filed.end(err, log)
		c.kept.end(codeOf(err) != exitFault, err)
	}()
	findings, checked := 0, 0
	for _, d := range defs {
		r := opcheck.Run(c.table, d.ID(), opcheck.Options{Seed: c.seed})
		if err := c.beside(ctx, d, r); err != nil {
			return harness(err)
		}
		findings += len(r.Findings)
		told.operator(r)
		for _, n := range r.Checked {
			checked += n
		}
		if c.json {
			encode(c.out, r)
		} else {
			c.text(r)
		}
	}
	switch {
	case findings > 0:
		return &exitError{exitFindings, nil}
	case checked == 0:
		return nothing(errors.New("nothing was checked"))
	}
	return nil
}

// again are the arguments of the same check without coverage.
func (c *operatorCheck) again(defs []*op.Def) []string {
	args := []string{"ops", "check", "--seed", fmt.Sprint(c.seed), "--store", "none"}
	if c.python != "" {
		args = append(args, "--python", c.python)
	}
	if c.alone {
		args = append(args, "--alone")
	}
	if c.json {
		args = append(args, "--json")
	}
	for _, d := range defs {
		args = append(args, d.ID())
	}
	return args
}

// beside judges an operator with public names by PyTorch, where it is installed.
func (c *operatorCheck) beside(ctx context.Context, d *op.Def, r *opcheck.Report) error {
	if len(d.Names) == 0 || len(r.DTypes) == 0 {
		return nil
	}
	gap := func(why string) {
		r.Unchecked = append(r.Unchecked, opcheck.Gap{Field: "Names", Why: "PyTorch was not asked: " + why})
	}
	if c.alone {
		gap("--alone")
		return nil
	}
	reference, err := c.torch(ctx)
	if err != nil {
		gap(err.Error())
		return nil
	}
	fs, err := opcheck.Against(ctx, c.table, d.ID(), r.DTypes, reference.Open, reference.Is, c.seed, usualNumber)
	r.Findings = append(r.Findings, fs...)
	return err
}

// torch is PyTorch as the reference.
func (c *operatorCheck) torch(ctx context.Context) (*opcheck.Reference, error) {
	set := &open.Set{Table: c.table, Python: c.python}
	opener, err := set.Opener(ctx, "torch")
	if err != nil {
		return nil, err
	}
	return &opcheck.Reference{Open: opener, Is: set.Is("torch")}, nil
}

// grades plants faults in the definitions. What would be missed is a finding: it
// speaks against the checks that the definition makes possible.
func (c *operatorCheck) grades(ctx context.Context, defs []*op.Def) error {
	missed := 0
	for _, d := range defs {
		var reference *opcheck.Reference
		if !c.alone && len(d.Names) > 0 {
			reference, _ = c.torch(ctx) // without PyTorch by the literal alone
		}
		g, err := opcheck.Grade(ctx, c.table, d.ID(), opcheck.Options{Seed: c.seed, Calls: gradedCalls}, reference)
		if err != nil {
			return harness(err)
		}
		faults, why, err := c.sourceFaults(ctx, d)
		if err != nil {
			return harness(err)
		}
		g.Faults, g.Source = append(g.Faults, faults...), why
		missed += len(g.Missed())
		if c.json {
			encode(c.out, g)
		} else {
			fmt.Fprintln(c.out, g)
		}
	}
	if missed > 0 {
		return &exitError{exitFindings, nil}
	}
	return nil
}

// gradedCalls is how many calls of each dtype a planted fault is looked for in.
const gradedCalls = 8

func (c *operatorCheck) text(r *opcheck.Report) {
	total := 0
	for _, n := range r.Checked {
		total += n
	}
	fmt.Fprintf(c.out, "%s in %v: %d comparisons, %d findings, %d not checked\n", r.ID, r.DTypes, total, len(r.Findings), len(r.Unchecked))
	for _, f := range r.Findings {
		fmt.Fprintf(c.out, "\n  %s: %s\n", f.Aspect, f)
	}
	for i, g := range r.Unchecked {
		if i == 0 {
			fmt.Fprintln(c.out, "\nNOT CHECKED")
		}
		fmt.Fprintf(c.out, "  %s\n", g)
	}
}
