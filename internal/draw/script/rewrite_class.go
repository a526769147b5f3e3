package script

import (
	"fmt"

	"go.starlark.net/syntax"
)

// level is the kind of block that statements stand in.
type level uint8

const (
	inModule level = iota
	inClass
	inFunction
)

// classBody is a class whose body is rewritten. Its names are its own: in the
// function or module around they have the name of the class before them.
type classBody struct {
	prefix string
	ref    string // the variable that holds the class for super()
	names  map[string]bool
	outer  *classBody
}

// own returns the name under which the code around knows a name of the class.
func (c *classBody) own(name string) string {
	if c.names[name] {
		return c.prefix + name
	}
	return name
}

// classStmt rewrites the if statement that a class became.
func (r *rewriter) classStmt(s *syntax.IfStmt) {
	literal := s.Cond.(*syntax.CallExpr).Args[0]
	name := textOf(literal)
	target := name
	if r.level == inClass {
		target = r.class.own(name)
	}
	s.Cond = r.expr(s.Cond)
	r.count++
	c := &classBody{prefix: name + ".", ref: fmt.Sprintf("%s.__class%d__", name, r.count), names: map[string]bool{}, outer: r.class}
	for _, b := range s.True {
		c.collect(b)
	}
	for _, b := range s.True {
		c.rename(b)
	}
	outer := *r
	r.level, r.class, r.self = inClass, c, ""
	s.True = append(r.stmts(s.True),
		&syntax.AssignStmt{OpPos: s.If, Op: syntax.EQ, LHS: ident(c.ref, s.If), RHS: call(fnEndClass, s.If)},
		&syntax.AssignStmt{OpPos: s.If, Op: syntax.EQ, LHS: r.place(literal, target, s.If), RHS: ident(c.ref, s.If)})
	r.level, r.class, r.self = outer.level, outer.class, outer.self
	if r.level == inClass {
		s.True = append(s.True, r.class.tells(target, s.If))
	}
}

// collect notes the names that a statement of the body binds.
func (c *classBody) collect(s syntax.Stmt) {
	switch s := s.(type) {
	case *syntax.DefStmt:
		c.names[s.Name.Name] = true
	case *syntax.AssignStmt:
		c.bind(s.LHS)
	case *syntax.ForStmt:
		c.bind(s.Vars)
		c.collectAll(s.Body)
	case *syntax.WhileStmt:
		c.collectAll(s.Body)
	case *syntax.IfStmt:
		if isCall(s.Cond, fnClass) {
			c.names[textOf(s.Cond.(*syntax.CallExpr).Args[0])] = true
			return
		}
		c.collectAll(s.True)
		c.collectAll(s.False)
	}
}

func (c *classBody) collectAll(list []syntax.Stmt) {
	for _, s := range list {
		c.collect(s)
	}
}

func (c *classBody) bind(target syntax.Expr) {
	for _, id := range boundNames(target) {
		c.names[id.Name] = true
	}
}

// boundNames returns the variables that an assignment to a target binds.
func boundNames(target syntax.Expr) []*syntax.Ident {
	var list []syntax.Expr
	switch t := target.(type) {
	case *syntax.Ident:
		return []*syntax.Ident{t}
	case *syntax.ParenExpr:
		return boundNames(t.X)
	case *syntax.TupleExpr:
		list = t.List
	case *syntax.ListExpr:
		list = t.List
	}
	var out []*syntax.Ident
	for _, e := range list {
		out = append(out, boundNames(e)...)
	}
	return out
}

// rename gives the class's names their prefix, wherever its body uses them;
// the functions in it do not see them.
func (c *classBody) rename(n syntax.Node) {
	syntax.Walk(n, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Ident:
			n.Name = c.own(n.Name)
		case *syntax.DotExpr:
			c.rename(n.X)
			return false
		case *syntax.DefStmt:
			c.rename(n.Name)
			c.defaults(n.Params)
			return false
		case *syntax.LambdaExpr:
			c.defaults(n.Params)
			return false
		case *syntax.BinaryExpr:
			if n.Op == syntax.EQ { // an argument by keyword
				c.rename(n.Y)
				return false
			}
		case *syntax.IfStmt:
			if isCall(n.Cond, fnClass) {
				c.rename(n.Cond)
				return false
			}
		}
		return true
	})
}

func (c *classBody) defaults(params []syntax.Expr) {
	for _, p := range params {
		if b, ok := p.(*syntax.BinaryExpr); ok {
			c.rename(b.Y)
		}
	}
}

// tells is the statement by which the class learns of one of its names.
func (c *classBody) tells(name string, p syntax.Position) syntax.Stmt {
	return &syntax.ExprStmt{X: call(fnMember, p, stringLiteral(name[len(c.prefix):], p), ident(name, p))}
}

// member tells the class about what its body assigns.
func (r *rewriter) member(s syntax.Stmt) []syntax.Stmt {
	a, ok := s.(*syntax.AssignStmt)
	if !ok || r.level != inClass {
		return nil
	}
	var out []syntax.Stmt
	for _, id := range boundNames(a.LHS) {
		out = append(out, r.class.tells(id.Name, id.NamePos))
	}
	return out
}

// firstParam is the name of a method's first parameter; empty for none.
func firstParam(def *syntax.DefStmt) string {
	if len(def.Params) == 0 {
		return ""
	}
	if id, ok := def.Params[0].(*syntax.Ident); ok {
		return id.Name
	}
	return ""
}

// properties are the names of the functions that @property stands before.
func properties(tree *syntax.File) map[string]bool {
	names := map[string]bool{}
	marked := false
	syntax.Walk(tree, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.ExprStmt:
			if c, ok := n.X.(*syntax.CallExpr); ok && isCall(c, fnDecorate) && len(c.Args) == 1 {
				switch d := c.Args[0].(type) {
				case *syntax.Ident:
					marked = marked || d.Name == "property" || d.Name == "cached_property"
				case *syntax.DotExpr:
					marked = marked || d.Name.Name == "cached_property"
				}
			}
		case *syntax.DefStmt:
			if marked {
				names[n.Name.Name], marked = true, false
			}
		}
		return true
	})
	return names
}
