package deps

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"plumb/ops"
)

// rooms are the folders and files in which operators' ids may be spelled, each
// with its reason.
var rooms = map[string]string{
	"ops":                             "the table",
	"nn":                              "modules are written in operators",
	"optim":                           "optimizers are written in operators",
	"op/grad.go":                      "the vocabulary of op.Builder: what gradients, graphs and changes in place are written in",
	"internal/arg":                    "the names of parameters, some of which are ids too",
	"internal/asmgen":                 "generates loops by the names of functions",
	"internal/draw/script":            "Python's, numpy's and the test language's functions, which test files call",
	"internal/conform/config":         "the functions of the conformance language",
	"internal/conform/diopi":          "the functions of DIOPI, by DIOPI's names",
	"internal/judge/reffaults":        "proved faults of references, by the functions that have them",
	"internal/mutants":                "faults planted into the operators that they break",
	"cmd/command/kernels.go":          "a bench set: which operators are measured",
	"cmd/command/benchgraphnative.go": "a bench set: the programs that are measured",
	"examples":                        "written as a user writes",
}

// lines are the single places beside rooms, by file and id.
var lines = map[string]string{
	"program/record.go getitem": "a program's text writes indices in brackets, by its own name for the function",
	"program/record.go setitem": "a program's text writes indices in brackets, by its own name for the function",
}

// words are ids that are dtypes or words of Python, of Go or of Plumb's own
// text too: they count where an operator is meant.
var words = strings.Fields(`
	all any add sub mul neg bool byte char short int long half float double bfloat16 complex cfloat cdouble
	t tensor index slice random round real equal zeros fill contiguous uniform normal mean trace diff mode dot sum prod`)

// lookups are the functions that take an operator's id.
var lookups = strings.Fields("Op All Apply ResolveID Def")

// named are the functions that take another name: of a parameter, a flag, a file.
var named = strings.Fields("Value Values Tensor Scalar Int Ints Float Bool Str Any Has BoolVar StringVar IntVar Run")

// TestOperatorsAreNamedInTheirLiterals finds ids of operators that Go code
// outside of rooms compares, looks up, or lists.
func TestOperatorsAreNamedInTheirLiterals(t *testing.T) {
	used := map[string]bool{}
	ids := operatorIDs()
	for path, src := range sources(t) {
		if r := roomOf(path, rooms); r != "" {
			used[r] = true
			continue
		}
		for _, s := range spelled(t, path, src, ids) {
			line := path + " " + s.id
			if lines[line] == "" {
				t.Errorf("%s: %q is an operator's id: what is special about the operator belongs into its literal in ops", s.at, s.id)
			}
			used[line] = true
		}
	}
	for _, known := range []map[string]string{rooms, lines} {
		for name := range known {
			if !used[name] {
				t.Errorf("%s is listed and not there", name)
			}
		}
	}
	if len(lines) > 12 {
		t.Errorf("%d single lines are listed, at most 12 may be", len(lines))
	}
}

// TestSpelledIDsAreFound tries every way to choose by an id, and what only
// looks like one.
func TestSpelledIDsAreFound(t *testing.T) {
	tests := map[string]int{
		`if d.ID() == "relu" {}`:                  1,
		`if "relu" != name {}`:                    1,
		`switch d.ID() { case "relu", "gelu": }`:  2,
		`_ = []string{"relu"}`:                    1,
		`_ = map[string]int{"relu": 1}`:           1,
		`_ = map[string]string{"x": "relu"}`:      1,
		`_ = m["relu"]`:                           1,
		`b.Op("relu", x)`:                         1,
		`strings.HasPrefix(id, "relu")`:           1,
		`if d.ID() == "add" {}`:                   1,
		`if c.Target == "add" {}`:                 1,
		`switch d.ID() { case "add": }`:           1,
		`b.Op("add", x, y)`:                       1,
		`switch d.ID() { case prefix + "relu": }`: 1,
		`fmt.Println("the " + "relu")`:            1,
		`if word == "add" {}`:                     0,
		`_ = []string{"int", "float"}`:            0,
		`a.Str("mode")`:                           0,
		`fmt.Println("the relu")`:                 0,
		`name := "relu"; _ = name`:                0,
	}
	for body, want := range tests {
		src := "package p\n\nfunc f() { " + body + " }\n"
		if got := spelled(t, "p.go", []byte(src), operatorIDs()); len(got) != want {
			t.Errorf("%s: %d found, want %d", body, len(got), want)
		}
	}
}

func operatorIDs() map[string]bool {
	ids := map[string]bool{}
	for _, d := range ops.Table().Defs() {
		ids[d.ID()] = true
	}
	return ids
}

// roomOf returns which of the rooms a file is in, "" for none.
func roomOf(path string, rooms map[string]string) string {
	for r := range rooms {
		if path == r || strings.HasPrefix(path, r+"/") {
			return r
		}
	}
	return ""
}

// sources returns the module's Go files by path, without tests.
func sources(t *testing.T) map[string][]byte {
	found := map[string][]byte{}
	root := os.DirFS("../..")
	err := fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") && path != "." || d.Name() == "testdata"):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		found[path], err = fs.ReadFile(root, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// spelling is an id in a place where it chooses.
type spelling struct{ id, at string }

func spelled(t *testing.T, path string, src []byte, ids map[string]bool) []spelling {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, src, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	if ast.IsGenerated(file) {
		return nil
	}
	var found []spelling
	ast.PreorderStack(file, nil, func(n ast.Node, stack []ast.Node) bool {
		lit, ok := n.(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING {
			return true
		}
		id, _ := strconv.Unquote(lit.Value)
		if ids[id] && chooses(stack, slices.Contains(words, id)) {
			found = append(found, spelling{id, fset.Position(lit.Pos()).String()})
		}
		return true
	})
	return found
}

// chooses reports whether a literal is compared, looked up or listed; a word of
// several meanings has to be that of an operator there.
func chooses(stack []ast.Node, word bool) bool {
	for len(stack) > 1 && joins(stack[len(stack)-1]) {
		stack = stack[:len(stack)-1]
	}
	switch parent := stack[len(stack)-1].(type) {
	case *ast.BinaryExpr:
		compares := parent.Op == token.EQL || parent.Op == token.NEQ
		return compares && (!word || isID(parent.X) || isID(parent.Y))
	case *ast.CaseClause:
		s, ok := stack[len(stack)-3].(*ast.SwitchStmt)
		return ok && (!word || isID(s.Tag))
	case *ast.KeyValueExpr, *ast.CompositeLit, *ast.IndexExpr:
		return !word
	case *ast.CallExpr:
		name := fmt.Sprint(parent.Fun)
		if s, ok := parent.Fun.(*ast.SelectorExpr); ok {
			name = s.Sel.Name
		}
		return slices.Contains(lookups, name) || !word && !slices.Contains(named, name)
	}
	return false
}

// joins reports a sum of texts.
func joins(n ast.Node) bool {
	b, ok := n.(*ast.BinaryExpr)
	return ok && b.Op == token.ADD
}

// isID reports an expression that names an operator: d.ID(), call.Target.
func isID(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.CallExpr:
		s, ok := e.Fun.(*ast.SelectorExpr)
		return ok && s.Sel.Name == "ID"
	case *ast.SelectorExpr:
		return e.Sel.Name == "Target"
	}
	return false
}
