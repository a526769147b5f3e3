package command

import (
	"bytes"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"plumb/internal/module"
	"plumb/internal/typed"
	"plumb/op"
	"plumb/ops"
)

// typedFunctions is plumb ops gen.
type typedFunctions struct {
	out   string
	pkg   string
	check bool
}

func newOpsGen() *cobra.Command {
	g := &typedFunctions{}
	cmd := &cobra.Command{
		Use:   "gen [NAME…]",
		Short: "Write typed Go functions of operators of your own",
		Long: `Gen writes a Go file with one function per operator, as package api has them of
Plumb's own: required arguments are parameters, the others fields of an Options
struct, and the results are tensors of the session that the arguments are of, eager
or traced into a graph. Without names the operators are those that the program's
table has beside Plumb's own: gen is run by a program that calls command.Main with
your table, such as plumb ops new writes.`,
		Example: `  //go:generate go run ./plumb ops gen        in a Go file of your package
  go run ./plumb ops gen --check              exit code 1 where the file is stale`,
		RunE: func(cmd *cobra.Command, names []string) error { return g.run(cmd.OutOrStdout(), names) },
	}
	cmd.Flags().StringVar(&g.out, "out", "ops_gen.go", "the file to write; - prints it")
	cmd.Flags().StringVar(&g.pkg, "package", "", "the name of its package (default: that of the folder's other Go files)")
	cmd.Flags().BoolVar(&g.check, "check", false, "write nothing, and fail where the file is not what would be written")
	return cmd
}

func (g *typedFunctions) run(out io.Writer, names []string) error {
	defs, err := g.operators(names)
	if err != nil {
		return usage(err)
	}
	pkg, err := g.packageName()
	if err != nil {
		return usage(err)
	}
	text, err := typedSource(pkg, defs)
	if err != nil {
		return usage(err)
	}
	if g.out == "-" {
		_, err = out.Write(text)
		return err
	}
	if g.check {
		if old, err := os.ReadFile(g.out); err != nil || !bytes.Equal(old, text) {
			return &exitError{exitFindings, fmt.Errorf("%s is stale: run plumb ops gen (go generate) again", g.out)}
		}
		return nil
	}
	if err := os.WriteFile(g.out, text, 0o644); err != nil {
		return usage(err)
	}
	_, err = fmt.Fprintf(out, "%s: %d functions\n", g.out, len(defs))
	return err
}

// operators are those named, or those that are not Plumb's own.
func (g *typedFunctions) operators(names []string) ([]*op.Def, error) {
	if len(names) > 0 {
		return selectOps(names)
	}
	var own []*op.Def
	for _, d := range ops.Table().Defs() {
		if ops.Added(d.ID()) != nil {
			own = append(own, d)
		}
	}
	if len(own) == 0 {
		return nil, errors.New("the table has Plumb's own operators alone, which package api has: run gen by a program of yours that calls command.Main with your table, as in go run ./plumb ops gen; plumb ops new writes one")
	}
	return own, nil
}

// packageName is the package that the folder's Go files are of.
func (g *typedFunctions) packageName() (string, error) {
	if g.pkg != "" {
		return g.pkg, nil
	}
	dir, err := filepath.Abs(filepath.Dir(g.out))
	if err != nil {
		return "", err
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return "", err
	}
	for _, file := range files {
		if filepath.Base(file) == filepath.Base(g.out) || strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.PackageClauseOnly)
		if err == nil {
			return f.Name.Name, nil
		}
	}
	name := filepath.Base(dir)
	if !token.IsIdentifier(name) {
		return "", fmt.Errorf("%s has no Go file that names the package: give --package", dir)
	}
	return name, nil
}

// typedSource is the file of the functions of operators.
func typedSource(pkg string, defs []*op.Def) ([]byte, error) {
	fs, err := typed.Declare(defs)
	if err != nil {
		return nil, err
	}
	return typed.Source("plumb ops gen", pkg, module.Join("api"), fs)
}
