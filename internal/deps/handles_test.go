package deps

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"plumb/ops"
)

const handles = "internal/arg/arg.go"

// TestHandlesAreOfSignatures: each handle in package arg names a parameter of a
// signature by its type there, and is used.
func TestHandlesAreOfSignatures(t *testing.T) {
	all := sources(t)
	params, used := map[string]bool{}, map[string]bool{}
	for _, d := range ops.Table().Defs() { // some of whose signatures are composed
		for _, sig := range d.Sigs() {
			addParams(params, sig.String())
		}
	}
	for path, src := range all {
		if path == handles {
			continue
		}
		ast.Inspect(parsed(t, path, src), func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BasicLit:
				addParams(params, n.Value)
			case *ast.SelectorExpr:
				if pkg, ok := n.X.(*ast.Ident); ok && pkg.Name == "arg" {
					used[n.Sel.Name] = true
				}
			}
			return true
		})
	}
	count := 0
	ast.Inspect(parsed(t, handles, all[handles]), func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		count++
		made := spec.Values[0].(*ast.CallExpr)
		kind := strings.TrimSuffix(made.Fun.(*ast.SelectorExpr).Sel.Name, "Arg")
		param, _ := strconv.Unquote(made.Args[0].(*ast.BasicLit).Value)
		name := spec.Names[0].Name
		if kind != "Any" && !params[kind+" "+param] {
			t.Errorf("arg.%s: no signature has a parameter %q of type %s", name, param, kind)
		}
		if !used[name] {
			t.Errorf("arg.%s is not used", name)
		}
		return true
	})
	if count < 300 {
		t.Errorf("%d handles, want 300 or more", count)
	}
}

// declared matches a parameter in a signature, such as int[2]? stride.
var declared = regexp.MustCompile(`\b(Tensor|Scalar|int|float|bool|str|dtype|device|MemoryFormat|Generator|Index|Data)\??(\[\d*\])?\?? (\w+)`)

// addParams adds the parameters in a text with signatures, as "Ints dim".
func addParams(params map[string]bool, text string) {
	for _, m := range declared.FindAllStringSubmatch(text, -1) {
		kind := strings.ToUpper(m[1][:1]) + m[1][1:]
		if m[1] == "dtype" {
			kind = "DType"
		}
		if m[2] != "" {
			kind += "s"
		}
		params[kind+" "+m[3]] = true
	}
}

// TestArgumentsAreReadByHandles finds arguments that rules and kernels read by
// a string, whose spelling and type nothing checks.
func TestArgumentsAreReadByHandles(t *testing.T) {
	for path, src := range sources(t) {
		if roomOf(path, map[string]string{"ops": "", "nn": "", "optim/kernels.go": "", "graph": "", "api": "", "internal/autograd": "", "internal/interp": "", "internal/inplace": "", "internal/mutants": ""}) == "" {
			continue
		}
		for _, at := range readByString(t, path, src) {
			t.Errorf("%s: an argument is read by a string; write its handle of internal/arg", at)
		}
	}
	planted := "package p\n\nfunc f(a op.Args) int { return a.Int(\"dim\") + a.Int(arg.Dim) + a.Int(strings.ToLower(\"DIM\")) }\n"
	if found := readByString(t, "p.go", []byte(planted)); len(found) != 1 {
		t.Errorf("%d reads by a string are found in %s, want 1", len(found), planted)
	}
}

// readers are the methods that take a handle.
var readers = strings.Fields("Value Values Tensor Tensors Scalar Int Ints Float Floats Bool Str DType Any Has To")

// readByString returns where a method of readers is called with a literal.
func readByString(t *testing.T, path string, src []byte) []string {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, src, 0)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) == 0 {
			return true
		}
		method, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || !slices.Contains(readers, method.Sel.Name) {
			return true
		}
		if x, ok := method.X.(*ast.Ident); ok && x.Name == "m" { // a module's state
			return true
		}
		if lit, ok := call.Args[0].(*ast.BasicLit); ok && lit.Kind == token.STRING {
			found = append(found, fset.Position(lit.Pos()).String())
		}
		return true
	})
	return found
}

func parsed(t *testing.T, path string, src []byte) *ast.File {
	file, err := parser.ParseFile(token.NewFileSet(), path, src, 0)
	if err != nil {
		t.Fatal(err)
	}
	return file
}
