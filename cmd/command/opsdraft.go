package command

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"go/format"
	"os/exec"
	"regexp"
	"strings"
	"text/template"

	"github.com/spf13/cobra"

	"plumb/backend/worker"
)

func newOpsDraft() *cobra.Command {
	python := ""
	cmd := &cobra.Command{
		Use:   "draft NAME",
		Short: "Draft the literal of an operator from PyTorch's own schema",
		Long: `Draft asks the installed PyTorch for the schemas of a function and writes a literal
in Go: signature and overloads, defaults, the public names that there are, the
first sentence of its documentation, a sample from the kinds of its parameters.
What is left to write says TODO: inference beyond that of the first tensor, the
kernel, the gradient, the numerics class.`,
		Example: `  plumb ops draft torch.nn.functional.leaky_relu`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := draft(cmd.Context(), python, args[0])
			if err != nil {
				return usage(err)
			}
			_, err = cmd.OutOrStdout().Write(text)
			return err
		},
	}
	cmd.Flags().StringVar(&python, "python", "", "the Python that has torch")
	return cmd
}

//go:embed opsdraft.py
var draftSource string

// schemas is what PyTorch says of a function.
type schemas struct {
	Schemas []string `json:"schemas"`
	Names   []string `json:"names"`
	Doc     string   `json:"doc"`
}

// draft asks PyTorch for a function's schemas and writes a literal.
func draft(ctx context.Context, python, name string) ([]byte, error) {
	path, _, err := worker.FindPython(python)
	if err != nil {
		return nil, err
	}
	function := name[strings.LastIndexByte(name, '.')+1:]
	if !identifier.MatchString(function) {
		return nil, fmt.Errorf("%s is no name of a function, such as torch.nn.functional.leaky_relu", name)
	}
	out, err := exec.CommandContext(ctx, path, "-c", draftSource, function).Output()
	if err != nil {
		return nil, fmt.Errorf("PyTorch's schemas of %s: %w", name, err)
	}
	var s schemas
	if err := json.Unmarshal(out, &s); err != nil {
		return nil, fmt.Errorf("PyTorch's schemas of %s: %w", name, err)
	}
	return s.literal(name, function)
}

// literal writes the literal of the first schema, with the others as overloads
// where they have no parameter that it lacks.
func (s *schemas) literal(name, function string) ([]byte, error) {
	var sigs []string
	for _, text := range s.Schemas {
		if sig, ok := signatureOf(text, function); ok {
			sigs = append(sigs, sig)
		}
	}
	if len(sigs) == 0 {
		return nil, fmt.Errorf("PyTorch has no schema of %s that says what it takes: a function in Python, or in none of its operators", name)
	}
	l, err := newLiteral(sigs[0])
	if err != nil {
		return nil, err
	}
	l.Draft, l.More, l.Names, l.Doc = true, sigs[1:], s.Names, s.Doc
	t, err := template.New("draft").Parse(newFiles)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := t.ExecuteTemplate(&b, "literal", l); err != nil {
		return nil, err
	}
	return format.Source(b.Bytes())
}

var (
	schemaForm = regexp.MustCompile(`^aten::(\w+)(\.\w+)?\((.*)\) -> (.*)$`)
	// aliasing are the marks of what is changed in place or shared.
	aliasing = regexp.MustCompile(`\([a-z](\s*->\s*\*)?!?\)`)
	// leftOut are parameters that Plumb's operators do not have.
	leftOut = regexp.MustCompile(`^(Layout|Device|bool\? pin_memory|Generator|MemoryFormat|Dimname)`)
)

// signatureOf turns a schema of PyTorch into a signature; false for those that
// write into an argument and that return no tensors.
func signatureOf(schema, id string) (string, bool) {
	m := schemaForm.FindStringSubmatch(aliasing.ReplaceAllString(schema, ""))
	if m == nil || m[2] == ".out" || strings.Contains(schema, " out") || strings.Contains(schema, "!)") || strings.Contains(m[3], "Dimname") {
		return "", false
	}
	var params []string
	for _, p := range strings.Split(m[3], ", ") {
		if leftOut.MatchString(p) {
			continue
		}
		p = strings.NewReplacer("SymInt", "int", "Tensor self", "Tensor input", "ScalarType", "dtype").Replace(p)
		params = append(params, p)
	}
	if n := len(params); n > 0 && params[n-1] == "*" {
		params = params[:n-1]
	}
	results := m[4]
	if !strings.HasPrefix(results, "Tensor") && !strings.HasPrefix(results, "(Tensor") {
		return "", false
	}
	return fmt.Sprintf("%s(%s) -> %s", id, strings.Join(params, ", "), results), true
}
