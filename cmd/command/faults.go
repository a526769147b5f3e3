package command

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"plumb/backend/open"
	"plumb/backend/worker"
	"plumb/internal/judge/proof"
	"plumb/internal/judge/reffaults"
	"plumb/internal/judge/verdict"
	"plumb/tensor"
)

// faultRow is a fault of a framework as it is listed, with what its proof came
// to where that was run.
type faultRow struct {
	Operator string         `json:"operator"` // "" for any
	Versions string         `json:"versions"`
	Modes    []string       `json:"modes,omitempty"`
	DType    string         `json:"dtype,omitempty"`
	Kinds    []verdict.Kind `json:"kinds"`
	Reason   string         `json:"reason"`
	Proof    string         `json:"proof"`
	Word     proof.Word     `json:"word,omitempty"`
	Message  string         `json:"message,omitempty"`
	Wrong    bool           `json:"wrong,omitempty"` // what the row claims of the version
}

// name is what a row is called in columns, and what -k looks at.
func (r *faultRow) name() string {
	name := cmp.Or(r.Operator, "(any)")
	if len(r.Modes) > 0 {
		name += ":" + strings.Join(r.Modes, ",")
	}
	if r.DType != "" {
		name += " " + r.DType
	}
	return name
}

// faultsFlags choose rows.
type faultsFlags struct {
	keyword string
	json    bool
}

func (f *faultsFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&f.keyword, "keyword", "k", "", "the faults whose operators match, such as 'norm and not batch'")
	cmd.Flags().BoolVar(&f.json, "json", false, "print one object per fault and line")
}

func newFaults() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "faults",
		Short: "List the proved faults of frameworks, or run their proofs",
		Long: `Faults lists what frameworks are known to do wrong, and is not held against what
is compared with them: by operator, versions, kinds of misalignment, and why.
verify runs the proof of each fault.`,
		Example: `  plumb faults -k conv
  plumb faults verify --reference torch:~/venv/bin/python`,
		Args: noArguments(),
	}
	cmd.AddCommand(newFaultsList(), newFaultsVerify())
	list := newFaultsList()
	cmd.RunE = list.RunE
	cmd.Flags().AddFlagSet(list.Flags())
	return cmd
}

func newFaultsList() *cobra.Command {
	var f faultsFlags
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the proved faults of frameworks",
		Example: `  plumb faults list -k conv --json`,
		Args:    noArguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var all []*faultRow
			for _, fw := range reffaults.Frameworks() {
				rows, err := f.rows(fw)
				if err != nil {
					return err
				}
				all = append(all, rows...)
			}
			return f.print(cmd.OutOrStdout(), all)
		},
	}
	f.add(cmd)
	return cmd
}

// rows are the faults of a framework that -k chooses.
func (f *faultsFlags) rows(fw reffaults.Framework) (rows []*faultRow, err error) {
	matches, err := parseKeyword(f.keyword)
	if err != nil {
		return nil, usage(err)
	}
	for _, k := range fw.Faults {
		r := &faultRow{Operator: k.Target, Versions: k.Reference, Modes: k.Modes, Kinds: k.Kinds, Reason: k.Reason, Proof: k.Proof}
		if k.DType != tensor.Invalid {
			r.DType = k.DType.String()
		}
		if matches(r.name()) {
			rows = append(rows, r)
		}
	}
	return rows, nil
}

func (f *faultsFlags) print(out io.Writer, rows []*faultRow) error {
	if f.json {
		enc := json.NewEncoder(out)
		for _, r := range rows {
			if err := enc.Encode(r); err != nil {
				return err
			}
		}
		return nil
	}
	tw := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\n", r.name(), r.Versions, strings.Join(kindNames(r.Kinds), ","), r.Reason)
	}
	return tw.Flush()
}

func kindNames(kinds []verdict.Kind) (names []string) {
	for _, k := range kinds {
		names = append(names, string(k))
	}
	return names
}

// proofSeconds is what one proof may take.
const proofSeconds = 20

func newFaultsVerify() *cobra.Command {
	var f faultsFlags
	reference := defaultReference
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Run the proofs of a framework's faults on it",
		Long: `Verify runs the proof of each fault on the Python of a framework, each in a process
of its own, and prints held (the fault is there), gone (it is not) or changed (the
proof raises, crashes or takes more than ` + fmt.Sprint(proofSeconds) + ` s). A row that claims the fault of
this version has to hold, any other has not to: the exit code is 1 where a row is
wrong.`,
		Example: `  plumb faults verify
  plumb faults verify --reference torch:~/venv/bin/python -k 'clamp or norm'`,
		Args: noArguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.verify(cmd.Context(), cmd.OutOrStdout(), open.ParseSpec(reference))
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&reference, "reference", reference, "the framework, its Python after a colon")
	return cmd
}

// verify runs the proofs of a framework's faults.
func (f *faultsFlags) verify(ctx context.Context, out io.Writer, spec open.Spec) error {
	all := reffaults.Frameworks()
	at := slices.IndexFunc(all, func(fw reffaults.Framework) bool { return fw.Name == spec.Name })
	if at < 0 || spec.Mode != "" || spec.Device != "" {
		var names []string
		for _, fw := range all {
			names = append(names, fw.Name)
		}
		return usage(fmt.Errorf("--reference %s: no faults of it are listed; want %s, and its Python after a colon", spec, strings.Join(names, " or ")))
	}
	fw := all[at]
	rows, err := f.rows(fw)
	if err != nil {
		return err
	}
	python, _, err := worker.Find(fw.Name, spec.Path)
	if err != nil {
		return harness(err)
	}
	version, err := runProofs(ctx, fw, python, rows)
	if err != nil {
		return harness(err)
	}
	return f.verdicts(out, fw.Name+" "+version, rows)
}

// runProofs runs the proofs of rows and notes what they came to. It returns the
// framework's version.
func runProofs(ctx context.Context, fw reffaults.Framework, python string, rows []*faultRow) (version string, err error) {
	var proofs []string
	for _, r := range rows {
		proofs = append(proofs, r.Proof)
	}
	in := proof.Framework{Python: python, Module: fw.Module, Setup: fw.Setup, Seconds: proofSeconds}
	version, err = in.Run(ctx, proofs, func(i int, r proof.Result) { rows[i].Word, rows[i].Message = r.Word, r.Message })
	if err != nil {
		return "", err
	}
	for _, r := range rows {
		claim, err := verdict.ParseVersions(r.Versions)
		if err != nil {
			return "", err
		}
		claimed := claim.Has(fw.Name + " " + version)
		r.Wrong = claimed && r.Word != proof.Held || !claimed && r.Word == proof.Held
	}
	return version, nil
}

// verdicts prints what proofs came to, and returns an exit code of findings
// where a row is wrong.
func (f *faultsFlags) verdicts(out io.Writer, is string, rows []*faultRow) error {
	count, wrong := map[proof.Word]int{}, 0
	for _, r := range rows {
		count[r.Word]++
		if r.Wrong {
			wrong++
		}
	}
	if f.json {
		if err := f.print(out, rows); err != nil {
			return err
		}
	} else {
		tw := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		for _, r := range rows {
			said := string(r.Word)
			if r.Wrong {
				said += ", wrong"
			}
			fmt.Fprintf(tw, "%s\t%s\t%s\t%s\n", r.name(), r.Versions, said, strings.ReplaceAll(r.Message, "\n", " "))
		}
		if err := tw.Flush(); err != nil {
			return err
		}
		fmt.Fprintf(out, "%s: %d held, %d gone, %d changed; %d rows are wrong about it\n", is, count[proof.Held], count[proof.Gone], count[proof.Changed], wrong)
	}
	if wrong > 0 {
		return &exitError{code: exitFindings}
	}
	return nil
}
