package command

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"plumb/internal/draw/choice"
	"plumb/op"
	"plumb/ops"
	"plumb/tensor"
)

func newOps() *cobra.Command {
	return parent(&cobra.Command{
		Use:   "ops",
		Short: "List Plumb's own operators, and check them by cases drawn from their definitions",
		Long: `Ops is about Plumb's own operators, without a test file: what an operator's
definition says is listed and shown, and calls drawn from it are compared with
PyTorch or checked against difference quotients.`,
		Example: `  plumb ops show conv2d                     one operator
  plumb ops run 'conv*' -n 50               legal calls in every dtype, and calls that break a rule
  plumb ops gradcheck 'conv*'               gradients against difference quotients
  plumb ops cover show softmax              what agrees with PyTorch, by dtype and layout`,
	}, newOpsList(), newOpsShow(), newOpsRun(), newOpsCover(), newOpsGradcheck(), newOpsCheck(), newOpsNew(), newOpsDraft(), newOpsGen(), newOpsWheel())
}

func newOpsList() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the operators: signature, numerics class, whether a gradient exists",
		Example: `  plumb ops list
  plumb ops list --json | jq -r '.[].id'`,
		Args: noArguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			defs, err := selectOps(nil)
			if err != nil {
				return usage(err)
			}
			if asJSON {
				return opsJSON(cmd.OutOrStdout(), defs)
			}
			return opsText(cmd.OutOrStdout(), defs)
		},
	}
	jsonFlag(cmd.Flags(), &asJSON, "print an array with one object per operator")
	return cmd
}

func newOpsShow() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show NAME…",
		Short: "Show operators by name, and how ranks may share a sample call",
		Example: `  plumb ops show conv2d torch.max
  plumb ops show conv2d --json`,
		Args: atLeastOne("the name of an operator"),
		RunE: func(cmd *cobra.Command, names []string) error {
			defs, err := selectOps(names)
			if err != nil {
				return usage(err)
			}
			if asJSON {
				return opsJSON(cmd.OutOrStdout(), defs)
			}
			if err := opsText(cmd.OutOrStdout(), defs); err != nil {
				return err
			}
			return shardingText(cmd.OutOrStdout(), defs)
		},
	}
	jsonFlag(cmd.Flags(), &asJSON, "print an array with one object per operator")
	return cmd
}

// selectOps returns the operators that answer to the names, by id or public
// name; all public ones for none.
func selectOps(names []string) ([]*op.Def, error) {
	table := ops.Table()
	var defs []*op.Def
	if len(names) == 0 {
		for _, d := range table.Defs() {
			if len(d.Names) > 0 {
				defs = append(defs, d)
			}
		}
		return defs, nil
	}
	for _, n := range names {
		found := table.Lookup(n)
		if len(found) == 0 {
			found = table.Lookup("torch." + n)
		}
		if d := table.Def(n); d != nil && !slices.Contains(found, d) {
			found = append(found, d)
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("no operator is called %s%s; plumb ops list prints them", n, like(n, operatorNames()))
		}
		defs = append(defs, found...)
	}
	return defs, nil
}

type opJSON struct {
	ID         string   `json:"id"`
	Signatures []string `json:"signatures"`
	Names      []string `json:"names"`
	Doc        string   `json:"doc"`
	Gradient   bool     `json:"gradient"`
	Class      op.Class `json:"class"`
	ULP        float64  `json:"ulp,omitempty"`
	Reason     string   `json:"reason"`
}

func opsJSON(w io.Writer, defs []*op.Def) error {
	out := []opJSON{}
	for _, d := range defs {
		out = append(out, opJSON{
			ID: d.ID(), Signatures: append([]string{d.Sig}, d.More...), Names: append([]string{}, d.Names...), Doc: d.Doc,
			Gradient: d.Differentiable(), Class: d.Tol.Class, ULP: d.Tol.ULP, Reason: d.Tol.Reason,
		})
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(out)
}

func opsText(w io.Writer, defs []*op.Def) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "OPERATOR\tGRADIENT\tCLASS\tSIGNATURE")
	for _, d := range defs {
		grad := "yes"
		if !d.Differentiable() {
			grad = "-"
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\n", d.ID(), grad, d.Tol.Class, d.Sig)
	}
	return tw.Flush()
}

// shardingText writes the legal sharding signatures of a sample call of each operator.
func shardingText(w io.Writer, defs []*op.Def) error {
	for _, d := range defs {
		if d.NotSplittable != "" {
			fmt.Fprintf(w, "\n%s is not sharded: %s\n", d.ID(), d.NotSplittable)
			continue
		}
		call, shardings, err := sampleSharded(d)
		if err != nil {
			return err
		}
		if call == nil {
			continue
		}
		fmt.Fprintf(w, "\n%s(%s) is sharded as\n", d.ID(), strings.Join(tensorsOf(call.Args), ", "))
		for _, s := range shardings {
			fmt.Fprintf(w, "  %s\n", s)
		}
	}
	return nil
}

// sampleSharded returns the one of a few sampled calls that can be sharded in
// the most ways; nil when none can.
func sampleSharded(d *op.Def) (best *op.Call, most []op.Sharding, err error) {
	if d.Sample == nil {
		return nil, nil, nil
	}
	for key := range uint64(16) {
		call, err := sampleCall(d, key)
		if err != nil {
			return nil, nil, err
		}
		shardings, err := call.Shardings()
		if err != nil {
			return nil, nil, err
		}
		if len(shardings) > len(most) {
			best, most = call, shardings
		}
	}
	return best, most, nil
}

func sampleCall(d *op.Def, key uint64) (*op.Call, error) {
	var pos []any
	var kws []op.Kwarg
	for _, v := range d.Sample(&op.Sampler{Source: choice.New(key), DType: tensor.F32}) {
		if kw, ok := v.(op.Kwarg); ok {
			kws = append(kws, kw)
		} else {
			pos = append(pos, v)
		}
	}
	return ops.Table().ResolveID(d.ID(), pos, kws)
}

// tensorsOf describes the tensor arguments: "input [2, 3]".
func tensorsOf(a op.Args) []string {
	var texts []string
	names := a.ArgNames()
	for i, v := range a.AllValues() {
		texts = append(texts, names[i]+" "+tensor.ShapeString(v.Shape()))
	}
	return texts
}
