package command

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"go/format"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"text/template"

	"github.com/spf13/cobra"

	"plumb/op"
)

// newModule is plumb ops new.
type newModule struct {
	sig   string
	plumb string // the folder of Plumb's source
}

func newOpsNew() *cobra.Command {
	n := &newModule{}
	cmd := &cobra.Command{
		Use:   "new FOLDER",
		Short: "Write a module with an operator of your own, its test and its plumb",
		Long: `New writes a Go module to start from into a new folder: go.mod with what it needs,
the literal of an operator of the signature, its typed Go function (plumb ops gen),
a test that checks it, a program that is the whole of plumb with the operator in it,
and what plumb ops wheel makes a Python package of. It compiles and its test passes; the operator copies its first
tensor until you write what it computes.`,
		Example: `  plumb ops new leaky --sig 'leaky_relu_yzh(Tensor x, float alpha=0.01) -> Tensor'
  cd leaky && go test .`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			written, err := n.write(args[0])
			if err != nil {
				return usage(err)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s\nnext: cd %s && go test .\n", strings.Join(written, "\n"), args[0])
			return nil
		},
	}
	cmd.Flags().StringVar(&n.sig, "sig", "", "the signature in PyTorch's notation (default: 'FOLDER(Tensor x) -> Tensor')")
	cmd.Flags().StringVar(&n.plumb, "plumb", "", "the folder of Plumb's source, for go.mod (default: that of which this program was built)")
	return cmd
}

//go:embed opsnew.tmpl
var newFiles string

var identifier = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

// write writes the files and returns their names.
func (n *newModule) write(dir string) ([]string, error) {
	name := filepath.Base(dir)
	if !identifier.MatchString(name) {
		return nil, fmt.Errorf("%s names a Go package: want lower-case letters, digits and underscores", name)
	}
	if _, err := os.Stat(dir); err == nil {
		return nil, fmt.Errorf("%s is there already", dir)
	}
	if n.sig == "" {
		n.sig = name + "(Tensor x) -> Tensor"
	}
	l, err := newLiteral(n.sig)
	if err != nil {
		return nil, err
	}
	l.Package = name
	if l.Plumb, err = n.source(); err != nil {
		return nil, err
	}
	mod, err := os.ReadFile(filepath.Join(l.Plumb, "go.mod"))
	if err != nil {
		return nil, err
	}
	sum, err := os.ReadFile(filepath.Join(l.Plumb, "go.sum"))
	if err != nil {
		return nil, err
	}
	for _, m := range regexp.MustCompile(`(?m)^\t(\S+ v\S+)`).FindAllSubmatch(mod, -1) {
		l.Requires = append(l.Requires, string(m[1]))
	}
	slices.Sort(l.Requires)
	files, err := l.files()
	if err != nil {
		return nil, err
	}
	files["go.sum"] = sum
	if files["ops_gen.go"], err = l.typed(); err != nil {
		return nil, err
	}
	var written []string
	for file, text := range files {
		path := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return nil, err
		}
		written = append(written, path)
	}
	slices.Sort(written)
	return written, nil
}

// source returns the folder of Plumb's source.
func (n *newModule) source() (string, error) {
	dir := n.plumb
	if dir == "" {
		_, file, _, _ := runtime.Caller(0)
		dir = filepath.Dir(filepath.Dir(filepath.Dir(file)))
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(filepath.Join(dir, "cmd", "command")); err != nil {
		return "", errors.New("the source of Plumb, which go.mod has to name, is not where this program was built: give --plumb FOLDER")
	}
	return dir, nil
}

// literal is what the files of a new operator are made of.
type literal struct {
	Package, Plumb string
	Requires       []string

	ID, Var, Sig, First string
	More, Names         []string
	Doc                 string
	Results             int
	Sample              []string // statements of Sample
	Args                string   // what it returns
	Exact               bool
	Draft               bool // kernel and gradient are left to write
}

// Further has an entry for each result but the first.
func (l *literal) Further() []int { return make([]int, l.Results-1) }

// newLiteral reads a signature.
func newLiteral(text string) (*literal, error) {
	sig, err := op.ParseSig(text)
	if err != nil {
		return nil, err
	}
	if len(sig.Results) == 0 || sig.Plain || sig.Many {
		return nil, fmt.Errorf("signature %q: want one or several tensors as results, such as -> Tensor", text)
	}
	l := &literal{ID: sig.Name, Sig: text, Results: len(sig.Results), Doc: "A copy of its first tensor.", Exact: len(sig.Results) == 1}
	for _, part := range strings.FieldsFunc(sig.Name, func(r rune) bool { return r == '_' || r == '.' }) {
		if l.Var == "" {
			l.Var = part
		} else {
			l.Var += strings.ToUpper(part[:1]) + part[1:]
		}
	}
	if l.Var == "" || !identifier.MatchString(strings.ToLower(l.Var)) {
		return nil, fmt.Errorf("signature %q: the operator's id is no identifier", text)
	}
	l.Var += "Op"
	var args []string
	for _, p := range sig.Params {
		if p.Type.Kind == op.KTensor && !p.Type.List && !p.Type.Optional && l.First == "" {
			l.First = p.Name
		}
		v, ok := drawnAs(p)
		switch {
		case !ok && p.HasDefault:
		case !ok:
			return nil, fmt.Errorf("signature %q: no sample is known of %s %s: leave it out and add it to the literal", text, p.Type, p.Name)
		case p.Type.Optional || p.KwOnly:
			l.Sample = append(l.Sample, fmt.Sprintf("if s.Bool() {\nargs = append(args, op.Kw(%q, %s))\n}", p.Name, v))
		case len(l.Sample) > 0:
			l.Sample = append(l.Sample, fmt.Sprintf("args = append(args, op.Kw(%q, %s))", p.Name, v))
		default:
			args = append(args, v)
		}
	}
	if l.First == "" {
		return nil, fmt.Errorf("signature %q: want a parameter that is a Tensor", text)
	}
	l.Args = strings.Join(args, ", ")
	return l, nil
}

// drawnAs is an expression that draws an argument of a parameter's type.
func drawnAs(p op.Param) (string, bool) {
	one := map[op.Kind]string{
		op.KTensor: "s.Distinct(shape...)", op.KScalar: "s.Float(0.1, 2)", op.KFloat: "s.Float(0.1, 2)",
		op.KInt: "int(s.Int(0, 3))", op.KBool: "s.Bool()",
	}[p.Type.Kind]
	switch {
	case p.Name == "inplace":
		return "", false
	case p.Type.List && p.Type.Kind == op.KStr:
		return `[]any{"one", "other"}[:1+s.Index(2)]`, true
	case p.Type.Kind == op.KShape:
		return "[]any{[]int{1 + s.Index(3)}, []int{1 + s.Index(3), 2}}[:1+s.Index(2)]", true
	case p.Type.List && p.Type.Kind == op.KDType:
		return "[]any{tensor.F32, tensor.F64}[:1+s.Index(2)]", true
	case p.Type.Kind == op.KStr:
		text, _ := p.Default.(string)
		return fmt.Sprintf("[]string{%q, %q}[s.Index(2)]", text, "other"), true
	case one == "":
		return "", false
	case p.Type.List && p.Type.Kind == op.KInt:
		return "[]int{" + strings.Repeat("int(s.Int(1, 4)), ", max(p.Type.N, 2)) + "}", true
	case p.Type.List:
		return "[]any{" + one + ", " + one + "}", true
	}
	return one, true
}

// typed is what plumb ops gen writes of the operator.
func (l *literal) typed() ([]byte, error) {
	table, err := op.NewTable(&op.Def{
		Sig: l.Sig, Doc: l.Doc, Traits: op.NoGrad, Tol: op.Tol{Class: op.Exact, Reason: "no result is compared"},
		Infer: func(op.Args) ([]op.Meta, error) { return nil, nil }, Kernels: make([]op.Kernel, 1),
	})
	if err != nil {
		return nil, err
	}
	return typedSource(l.Package, table.Defs())
}

// files returns the texts by name: those of the template, formatted.
func (l *literal) files() (map[string][]byte, error) {
	t, err := template.New("new").Parse(newFiles)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for block, file := range map[string]string{"mod": "go.mod", "literal": l.Package + ".go", "test": l.Package + "_test.go", "main": "plumb/main.go", "python": "python/main.go"} {
		var b bytes.Buffer
		if err := t.ExecuteTemplate(&b, block, l); err != nil {
			return nil, err
		}
		text := b.Bytes()
		if strings.HasSuffix(file, ".go") {
			if text, err = format.Source(text); err != nil {
				return nil, fmt.Errorf("%s: %w\n%s", file, err, b.Bytes())
			}
		}
		files[file] = text
	}
	return files, nil
}
