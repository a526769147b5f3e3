package truth_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestTruthsShareNoArithmetic follows every Exact of package ops, and all the
// rest of it, through the functions of the module: no function that computes
// with floating-point numbers is reached from both. Of the standard library,
// math and math/cmplx compute, apart from what only looks at bits; math/big is
// taken for an operator, as + is.
func TestTruthsShareNoArithmetic(t *testing.T) {
	code := load(t, nil)
	for _, f := range code.shared() {
		t.Errorf("kernels and truths share %s", f)
	}
	for _, where := range code.opaque {
		t.Errorf("%s: an Exact uses a function that is passed to it", where)
	}
	exact, rest := code.reached()
	for _, want := range []string{"(plumb/internal/truth.bits).exp", "(plumb/internal/truth.Func).Round", "plumb/internal/truth.fmod"} {
		if !exact[want] {
			t.Errorf("%s is not reached from any Exact", want)
		}
	}
	for _, want := range []string{"plumb/internal/kernel.Expm1", "math.Erfinv", "plumb/internal/kernel.Elu", "plumb/ops.logitBounds"} {
		if !rest[want] {
			t.Errorf("%s is not reached from kernels", want)
		}
	}
}

// TestSharedArithmeticIsFound plants what TestTruthsShareNoArithmetic is to find.
func TestSharedArithmeticIsFound(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: loads the types of the whole table for each planted fault")
	}
	for _, c := range []struct{ file, old, new, shared, opaque string }{
		{"internal/truth/estimate.go", "return 2 * sum", "return 2*sum + math.Log1p(m)", "math.Log1p", ""},
		{"ops/exact.go", "x = float64(float32(x))", "x, _ = logitBounds(a)", "plumb/ops.logitBounds", ""},
		{"ops/exact.go", "return truth.Logit\n", "return op.InFloat64(func(x ...float64) float64 { lo, _ := logitBounds(a); return lo })\n", "plumb/ops.logitBounds", ""},
		{"ops/special.go", "Exact:   exactly(t)", "Exact:   func(op.Args) op.Truth { return op.InFloat64(func(x ...float64) float64 { return times(x[0]) }) }", "", "ops/special.go"},
		{"ops/special.go", "Kernels: through(kernel.Entr, nil)", "Kernels: through(func(x float64) float64 { return truth.Entr.Round(tensor.F64, x) }, nil)", "(plumb/internal/truth.Func).Round", ""},
	} {
		code := load(t, func(path, text string) string {
			if strings.HasSuffix(path, "/"+c.file) {
				if !strings.Contains(text, c.old) {
					t.Fatalf("%s does not have %q", c.file, c.old)
				}
				return strings.Replace(text, c.old, c.new, 1)
			}
			return text
		})
		if c.shared != "" && !slices.Contains(code.shared(), c.shared) {
			t.Errorf("%s: %q shares %q; found %v", c.file, c.new, c.shared, code.shared())
		}
		if c.opaque != "" && !slices.ContainsFunc(code.opaque, func(s string) bool { return strings.Contains(s, c.opaque) }) {
			t.Errorf("%s: %q hides a function; found %v", c.file, c.new, code.opaque)
		}
	}
}

// bitwise are the functions of package math that compute nothing.
var bitwise = strings.Fields(`Abs Copysign Float32bits Float32frombits Float64bits Float64frombits
	Frexp Inf IsInf IsNaN Ldexp NaN Signbit`)

// code is what refers to what: functions and package variables by their full names.
type code struct {
	fset       *token.FileSet
	refers     map[string]map[string]bool
	arithmetic map[string]bool
	exact      map[string]bool // what the values of Exact refer to
	opaque     []string        // where an Exact uses a function it is given
}

// listed is a package as go list describes it.
type listed struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
	Module                  *struct{ Main bool }
}

// load reads the packages of the module of which package ops is made; edit, if
// any, changes a file's text first.
func load(t *testing.T, edit func(path, text string) string) *code {
	packages := list(t)
	c := &code{fset: token.NewFileSet(), refers: map[string]map[string]bool{}, arithmetic: map[string]bool{}, exact: map[string]bool{}}
	exports := importer.ForCompiler(c.fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(packages[path].Export) })
	for _, path := range slices.Sorted(maps.Keys(packages)) {
		p := packages[path]
		if p.Module == nil || !p.Module.Main {
			continue
		}
		var files []*ast.File
		for _, name := range p.GoFiles {
			file := filepath.Join(p.Dir, name)
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if edit != nil {
				text = []byte(edit(file, string(text)))
			}
			parsed, err := parser.ParseFile(c.fset, file, text, 0)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, parsed)
		}
		info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}}
		if _, err := (&types.Config{Importer: exports}).Check(path, c.fset, files, info); err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			c.file(f, info)
		}
	}
	return c
}

func list(t *testing.T) map[string]listed {
	cmd := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles,Module", "plumb/ops")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.Bytes())
	}
	packages := map[string]listed{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := d.Decode(&p); err == io.EOF {
			return packages
		} else if err != nil {
			t.Fatal(err)
		}
		packages[p.ImportPath] = p
	}
}

// file notes what the declarations of a file refer to.
func (c *code) file(f *ast.File, info *types.Info) {
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			c.walk(fullName(info.Defs[d.Name]), d, info)
		case *ast.GenDecl:
			for _, s := range d.Specs {
				v, ok := s.(*ast.ValueSpec)
				if !ok {
					continue
				}
				for _, name := range v.Names {
					c.walk(fullName(info.Defs[name]), v, info)
				}
			}
		}
	}
}

// walk notes what a declaration refers to, the values of Exact apart.
func (c *code) walk(name string, n ast.Node, info *types.Info) {
	c.refers[name] = map[string]bool{}
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.KeyValueExpr:
			if key, ok := n.Key.(*ast.Ident); ok && key.Name == "Exact" {
				c.truth(n.Value, info)
				return false
			}
		case *ast.BinaryExpr:
			c.arithmetic[name] = c.arithmetic[name] || isFloat(info.Types[n.X].Type) && isComputed(n.Op)
		case *ast.AssignStmt:
			c.arithmetic[name] = c.arithmetic[name] || n.Tok != token.ASSIGN && n.Tok != token.DEFINE && isFloat(info.Types[n.Lhs[0]].Type)
		case *ast.Ident:
			if o := info.Uses[n]; o != nil && isGlobal(o) && !isTruth(o) {
				c.refers[name][fullName(o)] = true
			} else if o != nil && isTruth(o) {
				c.exact[fullName(o)] = true // passed on to an Exact
				if strings.HasPrefix(name, "plumb/internal/truth.") || strings.HasPrefix(name, "(plumb/internal/truth.") {
					c.refers[name][fullName(o)] = true
				}
			}
		}
		return true
	})
}

// truth notes what the value of an Exact refers to.
func (c *code) truth(value ast.Expr, info *types.Info) {
	ast.Inspect(value, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		if !ok {
			return true
		}
		o := info.Uses[id]
		if o == nil {
			return true
		}
		_, isFunc := o.Type().Underlying().(*types.Signature)
		switch v, isVar := o.(*types.Var); {
		case isGlobal(o):
			c.exact[fullName(o)] = true
		case isVar && isFunc && !v.IsField():
			c.opaque = append(c.opaque, c.fset.Position(id.Pos()).String())
		}
		return true
	})
}

// reached returns what is reached from values of Exact, and what from the rest
// of package ops.
func (c *code) reached() (exact, rest map[string]bool) {
	exact, rest = map[string]bool{}, map[string]bool{}
	c.follow("(plumb/internal/truth.Func).Round", exact)
	for name := range c.exact {
		c.follow(name, exact)
	}
	for name := range c.refers {
		if name, ok := strings.CutPrefix(name, "plumb/ops."); ok && ast.IsExported(name) {
			c.follow("plumb/ops."+name, rest)
		}
	}
	return exact, rest
}

func (c *code) follow(name string, reached map[string]bool) {
	if reached[name] {
		return
	}
	reached[name] = true
	for r := range c.refers[name] {
		c.follow(r, reached)
	}
}

// shared returns the functions that compute and are reached from both sides.
func (c *code) shared() []string {
	exact, rest := c.reached()
	var both []string
	for name := range exact {
		if rest[name] && c.computes(name) {
			both = append(both, name)
		}
	}
	slices.Sort(both)
	return both
}

func (c *code) computes(name string) bool {
	if f, ok := strings.CutPrefix(name, "math."); ok {
		return !slices.Contains(bitwise, f)
	}
	return c.arithmetic[name] || strings.HasPrefix(name, "math/cmplx.") || strings.HasPrefix(name, "(plumb/internal/truth.")
}

// isGlobal reports a function, a method or a variable of a package.
func isGlobal(o types.Object) bool {
	switch o := o.(type) {
	case *types.Func:
		return true
	case *types.Var:
		return !o.IsField() && o.Pkg() != nil && o.Parent() == o.Pkg().Scope()
	}
	return false
}

// isTruth reports one of the functions that package truth has as variables.
func isTruth(o types.Object) bool {
	_, ok := o.(*types.Var)
	return ok && isGlobal(o) && o.Exported() && o.Pkg().Path() == "plumb/internal/truth"
}

func fullName(o types.Object) string {
	if f, ok := o.(*types.Func); ok {
		return f.Origin().FullName()
	}
	return fmt.Sprintf("%s.%s", o.Pkg().Path(), o.Name())
}

func isComputed(op token.Token) bool {
	return op == token.ADD || op == token.SUB || op == token.MUL || op == token.QUO
}

// isFloat reports types whose operators may be those of floating-point numbers.
func isFloat(t types.Type) bool {
	switch t := t.(type) {
	case nil:
		return false
	case *types.TypeParam:
		return true
	default:
		b, ok := t.Underlying().(*types.Basic)
		return ok && b.Info()&(types.IsFloat|types.IsComplex) != 0
	}
}
