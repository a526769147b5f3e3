package command

import (
	"fmt"
	"go/ast"
	gobuild "go/build"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"plumb/internal/module"
	"plumb/op"
)

// sourceFault is a fault for the source of an operator's kernels or gradient: other text
// in the place of an operator, a number or a term.
type sourceFault struct {
	field    string // Kernels or Grad
	what     string
	from, to int // in the file
	text     string
}

// body is that of a function in which faults are planted: those within it, but not
// within an inner function, by number.
type body struct {
	from, to int  // between the braces
	results  bool // the function returns some
	labelled bool // it has labels, which a copy in the same function would repeat
	faults   []int
}

// plantedFile is a file with faults.
type plantedFile struct {
	path   string
	pkg    string // the package's name
	text   string
	bodies []*body // by where they begin
}

// planting finds where faults may be planted in an operator's source.
type planting struct {
	faults   []*sourceFault // by number, from 1 on; nil has been dropped
	files    map[string]*plantedFile
	packages map[string]bool // by import path
	fset     *token.FileSet
	named    map[string][]ast.Node // declarations of the packages
	where    map[ast.Node]*plantedFile
	seen     map[ast.Node]bool
}

// plant finds the faults of an operator's kernels and gradient, at most limit, spread over
// them, and how many there could be.
func plant(d *op.Def, limit int) (p *planting, all int, err error) {
	p = newPlanting()
	var files []*ast.File
	read := map[string]bool{}
	for _, f := range functionsOf(d) {
		path, _ := f.FileLine(f.Entry())
		if dir := filepath.Dir(path); !read[dir] && !isOurs(packageOfFunction(f.Name())) && !strings.HasPrefix(dir, gobuild.Default.GOROOT) {
			read[dir], p.packages[packageOfFunction(f.Name())] = true, true
			parsed, err := p.parse(dir)
			if err != nil {
				return nil, 0, err
			}
			files = append(files, parsed...)
		}
	}
	return p, p.find(d, files, limit), nil
}

func newPlanting() *planting {
	return &planting{faults: []*sourceFault{nil}, files: map[string]*plantedFile{}, packages: map[string]bool{}, fset: token.NewFileSet(), named: map[string][]ast.Node{}, where: map[ast.Node]*plantedFile{}, seen: map[ast.Node]bool{}}
}

// find is plant in files that are parsed; it returns how many faults there could be.
func (p *planting) find(d *op.Def, files []*ast.File, limit int) (all int) {
	for _, field := range []string{"Kernels", "Grad"} {
		for _, root := range p.roots(d, field, files) {
			p.within(root, field)
		}
	}
	all = len(p.faults) - 1
	for i := 1; all > limit && i < len(p.faults); i++ {
		if i*limit/all == (i-1)*limit/all {
			p.faults[i] = nil
		}
	}
	return all
}

// parse reads the Go files of a folder that are built here.
func (p *planting) parse(dir string) (files []*ast.File, err error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		if built, err := gobuild.Default.MatchFile(dir, filepath.Base(path)); err != nil || !built || strings.HasSuffix(path, "_test.go") {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		file, err := parser.ParseFile(p.fset, path, text, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		of := &plantedFile{path: path, pkg: file.Name.Name, text: string(text)}
		p.files[path], p.where[file] = of, of
		files = append(files, file)
		for _, decl := range file.Decls {
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				p.declare(decl.Name.Name, decl, of)
			case *ast.GenDecl:
				for _, spec := range decl.Specs {
					if v, ok := spec.(*ast.ValueSpec); ok && decl.Tok == token.VAR {
						for _, name := range v.Names {
							p.declare(name.Name, v, of)
						}
					}
				}
			}
		}
	}
	return files, nil
}

func (p *planting) declare(name string, n ast.Node, of *plantedFile) {
	p.named[name] = append(p.named[name], n)
	p.where[n] = of
}

// roots are what a field of the literal is written as, and the functions that it has.
func (p *planting) roots(d *op.Def, field string, files []*ast.File) (roots []ast.Node) {
	add := func(n ast.Node, of *plantedFile) {
		p.where[n] = of
		roots = append(roots, n)
	}
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			lit, ok := n.(*ast.CompositeLit)
			if !ok || !isDef(lit) || writtenSig(lit) != d.Sig {
				return true
			}
			for _, e := range lit.Elts {
				if kv, ok := e.(*ast.KeyValueExpr); ok && fmt.Sprint(kv.Key) == field {
					add(kv.Value, p.where[file])
				}
			}
			return false
		})
	}
	for _, at := range entries(d, field) {
		for _, file := range files {
			if p.where[file].path != at.file {
				continue
			}
			var innermost ast.Node
			ast.Inspect(file, func(n ast.Node) bool {
				switch n.(type) {
				case *ast.FuncLit, *ast.FuncDecl:
					if p.fset.Position(n.Pos()).Line <= at.from && p.fset.Position(n.End()).Line >= at.from {
						innermost = n
					}
				}
				return true
			})
			if innermost != nil {
				add(innermost, p.where[file])
			}
		}
	}
	return roots
}

// writtenSig is the Sig of a literal, where it is written out.
func writtenSig(lit *ast.CompositeLit) string {
	for _, e := range lit.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok && fmt.Sprint(kv.Key) == "Sig" {
			if text, ok := kv.Value.(*ast.BasicLit); ok {
				sig, _ := strconv.Unquote(text.Value)
				return sig
			}
		}
	}
	return ""
}

// entries are where the functions of a field begin.
func entries(d *op.Def, field string) (at []block) {
	of := &op.Def{Grad: d.Grad}
	if field == "Kernels" {
		of = &op.Def{Kernels: d.Kernels}
	}
	for _, f := range functionsOf(of) {
		file, line := f.FileLine(f.Entry())
		at = append(at, block{file: file, from: line})
	}
	return at
}

// within finds the faults of a node, and of the functions of its package that it names.
func (p *planting) within(root ast.Node, field string) {
	if p.seen[root] {
		return
	}
	p.seen[root] = true
	of := p.where[root]
	var stack []ast.Node
	var innermost []*body
	ast.Inspect(root, func(n ast.Node) bool {
		if n == nil {
			if of.bodyOf(stack[len(stack)-1]) != nil {
				innermost = innermost[:len(innermost)-1]
			}
			stack = stack[:len(stack)-1]
			return true
		}
		stack = append(stack, n)
		if p.seen[n] && n != root {
			stack = stack[:len(stack)-1]
			return false
		}
		if unplanted(n) && n != root {
			stack = stack[:len(stack)-1]
			return false
		}
		if b := p.enter(of, n); b != nil {
			p.seen[n] = true
			innermost = append(innermost, b)
		}
		if len(innermost) > 0 && !innermost[len(innermost)-1].labelled {
			if call, ok := n.(*ast.CallExpr); ok && fmt.Sprint(call.Fun) == "complex" {
				if part, ok := call.Args[len(call.Args)-1].(*ast.BasicLit); ok {
					p.seen[part] = true // what a real result leaves out
				}
			}
			p.faultsOf(of, innermost[len(innermost)-1], field, n)
		}
		return true
	})
	ast.Inspect(root, func(n ast.Node) bool {
		if n != nil && n != root && unplanted(n) {
			return false
		}
		if id, ok := n.(*ast.Ident); ok {
			for _, decl := range p.named[id.Name] {
				p.within(decl, field)
			}
		}
		return true
	})
}

// bodyOf is the body of a function; nil of another node.
func (f *plantedFile) bodyOf(n ast.Node) *ast.BlockStmt {
	switch n := n.(type) {
	case *ast.FuncLit:
		return n.Body
	case *ast.FuncDecl:
		return n.Body
	}
	return nil
}

// enter makes the body of a function one for faults.
func (p *planting) enter(of *plantedFile, n ast.Node) *body {
	block := of.bodyOf(n)
	if block == nil {
		return nil
	}
	signature := (*ast.FuncType)(nil)
	switch n := n.(type) {
	case *ast.FuncLit:
		signature = n.Type
	case *ast.FuncDecl:
		signature = n.Type
	}
	b := &body{from: p.fset.Position(block.Lbrace).Offset + 1, to: p.fset.Position(block.Rbrace).Offset, results: signature.Results != nil}
	if at := slices.IndexFunc(of.bodies, func(o *body) bool { return o.from == b.from }); at >= 0 {
		return of.bodies[at]
	}
	ast.Inspect(block, func(n ast.Node) bool {
		if _, ok := n.(*ast.LabeledStmt); ok {
			b.labelled = true
		}
		return true
	})
	of.bodies = append(of.bodies, b)
	return b
}

// unplanted tells other operators' literals, and what makes errors and messages, which
// are nobody's results.
func unplanted(n ast.Node) bool {
	if lit, ok := n.(*ast.CompositeLit); ok {
		return isDef(lit)
	}
	if r, ok := n.(*ast.ReturnStmt); ok && len(r.Results) > 1 { // beside an error
		last := r.Results[len(r.Results)-1]
		return unplanted(last) || fmt.Sprint(last) == "err"
	}
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return false
	}
	name, ok := call.Fun.(*ast.SelectorExpr)
	return ok && (strings.HasSuffix(name.Sel.Name, "Error") || strings.HasSuffix(name.Sel.Name, "rrorf") || strings.HasPrefix(name.Sel.Name, "Sprint"))
}

// mistakenFor are the operators that are mistaken for each other.
var mistakenFor = map[token.Token]token.Token{
	token.ADD: token.SUB, token.SUB: token.ADD, token.MUL: token.QUO, token.QUO: token.MUL, token.REM: token.QUO,
	token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR, token.EQL: token.NEQ, token.NEQ: token.EQL,
	token.LAND: token.LOR, token.LOR: token.LAND,
	token.ADD_ASSIGN: token.SUB_ASSIGN, token.SUB_ASSIGN: token.ADD_ASSIGN, token.MUL_ASSIGN: token.QUO_ASSIGN, token.QUO_ASSIGN: token.MUL_ASSIGN,
	token.INC: token.DEC, token.DEC: token.INC,
}

// callMistakenFor are methods of a Builder, and functions of math, that are so.
var callMistakenFor = map[string]string{
	"Add": "Sub", "Sub": "Add", "Mul": "Div", "Div": "Mul",
	"Sin": "Cos", "Cos": "Sin", "Floor": "Ceil", "Ceil": "Floor", "Max": "Min", "Min": "Max", "Exp": "Expm1", "Log": "Log1p",
}

// faultsOf plants the faults of one node.
func (p *planting) faultsOf(of *plantedFile, b *body, field string, n ast.Node) {
	add := func(from, to token.Pos, text, what string) {
		f := &sourceFault{field: field, from: p.fset.Position(from).Offset, to: p.fset.Position(to).Offset, text: text}
		at := p.fset.Position(from)
		line := strings.Split(of.text, "\n")[at.Line-1]
		f.what = fmt.Sprintf("%s:%d: %s, in %s", filepath.Base(at.Filename), at.Line, what, strings.TrimSpace(line))
		b.faults = append(b.faults, len(p.faults))
		p.faults = append(p.faults, f)
	}
	swap := func(at token.Pos, is token.Token) {
		if other, ok := mistakenFor[is]; ok {
			add(at, at+token.Pos(len(is.String())), other.String(), fmt.Sprintf("%s is %s", is, other))
		}
	}
	switch n := n.(type) {
	case *ast.BinaryExpr:
		swap(n.OpPos, n.Op)
		if n.Op == token.ADD || n.Op == token.SUB || n.Op == token.MUL {
			add(n.X.End(), n.Y.End(), "", "the second of two terms is missing")
		}
	case *ast.AssignStmt:
		swap(n.TokPos, n.Tok)
	case *ast.IncDecStmt:
		swap(n.TokPos, n.Tok)
	case *ast.UnaryExpr:
		if n.Op == token.SUB || n.Op == token.NOT {
			add(n.OpPos, n.X.Pos(), "", n.Op.String()+" is missing")
		}
	case *ast.BasicLit:
		switch n.Kind {
		case token.INT:
			add(n.Pos(), n.End(), "("+n.Value+"+1)", n.Value+" is one more")
		case token.FLOAT:
			add(n.Pos(), n.End(), "("+n.Value+"*1.25+0.125)", n.Value+" is another")
		}
	case *ast.RangeStmt:
		if n.Value == nil && n.X != nil {
			add(n.X.End(), n.X.End(), "-1", "the last is left out")
		}
	case *ast.CallExpr:
		if name, ok := n.Fun.(*ast.SelectorExpr); ok && len(n.Args) > 0 {
			if other := callMistakenFor[name.Sel.Name]; other != "" {
				add(name.Sel.Pos(), name.Sel.End(), other, name.Sel.Name+" is "+other)
			}
		}
	}
}

// span is which lines of a written file have a fault.
type span struct{ fault, from, to int }

// write writes the file with each fault that was not dropped in a copy of its function's
// body, which runs in the place of the body where chosen is the fault's number.
func (p *planting) write(f *plantedFile, chosen string) (text string, spans []span) {
	var out strings.Builder
	line := 1
	emit := func(s string) {
		out.WriteString(s)
		line += strings.Count(s, "\n")
	}
	slices.SortFunc(f.bodies, func(a, b *body) int { return a.from - b.from })
	var render func(from, to int)
	render = func(from, to int) {
		for _, b := range f.bodies {
			if b.from <= from || b.to > to || !slices.ContainsFunc(b.faults, func(i int) bool { return p.faults[i] != nil }) {
				continue
			}
			emit(f.text[from:b.from] + "\nswitch " + chosen + " {\n")
			for _, i := range b.faults {
				m := p.faults[i]
				if m == nil {
					continue
				}
				begin := line
				emit(fmt.Sprintf("case %d:\n{\n%s%s%s\n}\n", i, f.text[b.from:m.from], m.text, f.text[m.to:b.to]))
				if !b.results {
					emit("return\n")
				}
				spans = append(spans, span{i, begin, line})
			}
			emit("}\n")
			render(b.from, b.to)
			from = b.to
		}
		emit(f.text[from:to])
	}
	render(0, len(f.text))
	return out.String(), spans
}

// isOurs reports whether a package is Plumb's.
func isOurs(pkg string) bool {
	return pkg == module.Path || strings.HasPrefix(pkg, module.Path+"/")
}
