package deps

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/constant"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// drawing are the packages whose results are part of what a seed means.
var drawing = []string{"plumb/internal/draw/choice", "plumb/internal/draw/gen", "plumb/program", "plumb/internal/draw/script"}

// TestDrawingFusesNothing: compilers of other machines join x*y + z into one operation,
// over statements and inlined functions too, unless the product is converted. The same
// seed means the same bits everywhere: products that might be added are converted.
func TestDrawingFusesNothing(t *testing.T) {
	const wrong = `package p
func f[T float64 | int](x, y, z float64, u, v T) (float64, T) {
	x *= y
	w := -(x * y)
	return x*y + z + float64(x*y) + (x*y)/z + 2*w, u*v
}`
	if got := fused(checked(t, nil, "p", map[string]string{"p.go": wrong})); len(got) != 4 {
		t.Errorf("of four products that can be joined these are found: %q", got)
	}
	built := listed(t, "", append([]string{"-export"}, drawing...)...)
	for _, path := range drawing {
		for _, at := range fused(checked(t, built, path, built[path].sources(t))) {
			t.Errorf("%s: write float64(x*y) + z", at)
		}
	}
}

// TestOtherMachines: packages with assembly for amd64 are whole without it.
func TestOtherMachines(t *testing.T) {
	var paths []string
	for path, p := range listed(t, "", "../../...") {
		if strings.Contains(strings.Join(p.GoFiles, " "), "_amd64.go") && strings.HasPrefix(path, "plumb/") {
			paths = append(paths, path)
		}
	}
	if len(paths) < 5 {
		t.Fatalf("packages with assembly: %q", paths)
	}
	built, other := listed(t, "", append([]string{"-export"}, paths...)...), listed(t, "arm64", paths...)
	for _, path := range paths {
		checked(t, built, path, other[path].sources(t))
	}
}

// source is what the go command tells of a package.
type source struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
}

// listed are packages and all that they import, as files for another machine or this one.
func listed(t *testing.T, arch string, args ...string) map[string]source {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-deps", "-json=ImportPath,Dir,Export,GoFiles"}, args...)...)
	if arch != "" {
		cmd.Env = append(os.Environ(), "GOARCH="+arch)
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, &stderr)
	}
	found := map[string]source{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p source
		if err := d.Decode(&p); err == io.EOF {
			return found
		} else if err != nil {
			t.Fatal(err)
		}
		found[p.ImportPath] = p
	}
}

// sources are the texts of a package's files, by name.
func (p source) sources(t *testing.T) map[string]string {
	texts := map[string]string{}
	for _, name := range p.GoFiles {
		text, err := os.ReadFile(filepath.Join(p.Dir, name))
		if err != nil {
			t.Fatal(err)
		}
		texts[name] = string(text)
	}
	if len(texts) == 0 {
		t.Fatalf("no source of %s", p.ImportPath)
	}
	return texts
}

// typed is a package with the types of its expressions.
type typed struct {
	*types.Info
	fset  *token.FileSet
	files []*ast.File
}

// checked checks the types of a package, whose imports have been built for this machine.
func checked(t *testing.T, built map[string]source, path string, texts map[string]string) *typed {
	t.Helper()
	p := &typed{Info: &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}, fset: token.NewFileSet()}
	for name, text := range texts {
		f, err := parser.ParseFile(p.fset, path+"/"+name, text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		p.files = append(p.files, f)
	}
	exports := importer.ForCompiler(p.fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(built[path].Export) })
	config := types.Config{Importer: exports, Error: func(err error) { t.Error(err) }}
	_, _ = config.Check(path, p.fset, p.files, p.Info) // Error has been told
	return p
}

// fused are the places of products of floats that are neither converted at once nor a
// factor or compared.
func fused(p *typed) (places []string) {
	for _, f := range p.files {
		var above []ast.Node
		ast.Inspect(f, func(n ast.Node) bool {
			if n == nil {
				above = above[:len(above)-1]
				return true
			}
			if p.product(n) && !p.rounded(n, above) {
				places = append(places, p.fset.Position(n.Pos()).String())
			}
			above = append(above, n)
			return true
		})
	}
	return places
}

// product reports whether a node multiplies floats, by what is no power of two: that is exact.
func (p *typed) product(n ast.Node) bool {
	var x, y ast.Expr
	switch n := n.(type) {
	case *ast.BinaryExpr:
		if n.Op == token.MUL && p.Types[n].Value == nil {
			x, y = n.X, n.Y
		}
	case *ast.AssignStmt:
		if n.Tok == token.MUL_ASSIGN {
			x, y = n.Lhs[0], n.Rhs[0]
		}
	}
	return x != nil && !p.powerOfTwo(x) && !p.powerOfTwo(y) && !isInteger(p.Types[x].Type)
}

func (p *typed) powerOfTwo(x ast.Expr) bool {
	if p.Types[x].Value == nil {
		return false
	}
	f, _ := constant.Float64Val(constant.ToFloat(p.Types[x].Value))
	fraction, _ := math.Frexp(math.Abs(f))
	return fraction == 0.5
}

// isInteger reports whether a type is one of integers; those of type parameters need not be.
func isInteger(of types.Type) bool {
	b, ok := of.Underlying().(*types.Basic)
	return ok && b.Info()&types.IsInteger != 0
}

// rounded reports whether what a product is in rounds it: a conversion, or no sum.
func (p *typed) rounded(product ast.Node, above []ast.Node) bool {
	for i := len(above) - 1; i >= 0; i-- {
		switch n := above[i].(type) {
		case *ast.ParenExpr:
			continue
		case *ast.CallExpr:
			return p.Types[n.Fun].IsType()
		case *ast.BinaryExpr:
			return n.Op != token.ADD && n.Op != token.SUB
		}
		return false
	}
	return false
}
