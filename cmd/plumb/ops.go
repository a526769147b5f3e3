package main

import (
	"encoding/json"
	"errors"
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
	var asJSON, covered, reasons bool
	cmd := &cobra.Command{
		Use:   "ops [NAME…]",
		Short: "List Plumb's own operators",
		Long:  "List Plumb's own operators: signature, public names, numerics class, whether a gradient exists. For named ones also how ranks may share a sample call.",
		Example: `  plumb ops
  plumb ops conv2d torch.max
  plumb ops --coverage softmax                what agrees with PyTorch, by dtype and layout
  plumb ops --coverage cover.json softmax     the same of a run with --coverage
  plumb ops --json | jq -r '.[].id'`,
		RunE: func(cmd *cobra.Command, names []string) error {
			if covered {
				return opsCoverage(cmd.OutOrStdout(), names, reasons, asJSON)
			}
			if reasons {
				return usage(errors.New("--reasons needs --coverage"))
			}
			defs, err := selectOps(names)
			if err != nil {
				return usage(err)
			}
			if asJSON {
				return opsJSON(cmd.OutOrStdout(), defs)
			}
			if err := opsText(cmd.OutOrStdout(), defs); err != nil || len(names) == 0 {
				return err
			}
			return shardingText(cmd.OutOrStdout(), defs)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print an array with one object per operator")
	cmd.Flags().BoolVar(&covered, "coverage", false, "print the matrix operator × direction × dtype × layout that comes with Plumb, or that of a file that plumb run --coverage wrote, the first argument")
	cmd.Flags().BoolVar(&reasons, "reasons", false, "with --coverage: say of every cell that is not aligned why")
	return cmd
}

// opsCoverage prints a coverage file; the arguments are its path, if it is not
// the shipped one, and the operators that are wanted.
func opsCoverage(w io.Writer, args []string, reasons, asJSON bool) error {
	path, source := "", "the shipped coverage"
	if len(args) > 0 && isCoverage(args[0]) {
		path, source, args = args[0], args[0], args[1:]
	}
	defs, err := selectOps(args)
	if err != nil {
		return usage(err)
	}
	m, err := readCoverage(path, defs)
	if err != nil {
		return usage(err)
	}
	if len(m.Ops) == 0 && len(args) > 0 {
		return usage(fmt.Errorf("%s has none of these operators; plumb run --ops %s --coverage FILE compares them", source, args[0]))
	}
	if asJSON {
		return m.Write(w)
	}
	m.Text(w, reasons)
	return nil
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
			return nil, fmt.Errorf("no operator is called %s; plumb ops lists them", n)
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
			Gradient: !d.Traits.Has(op.NoGrad), Class: d.Tol.Class, ULP: d.Tol.ULP, Reason: d.Tol.Reason,
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
		if d.Traits.Has(op.NoGrad) {
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
