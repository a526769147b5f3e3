package config

import (
	"fmt"
	"slices"

	"go.starlark.net/syntax"
)

// grammar holds a file to what configs consist of: assignments of literals,
// calls of a few functions, lambdas and comprehensions. What remains can
// neither loop nor grow without being counted.
type grammar struct {
	s        *source
	assigned map[string]syntax.Expr // by variable
}

// universal are the names of Starlark's own that a config may use.
var universal = []string{"None", "True", "False", "float", "bool", "abs"}

func (g *grammar) file(tree *syntax.File) error {
	for _, stmt := range tree.Stmts {
		if err := g.statement(stmt); err != nil {
			return err
		}
	}
	return nil
}

func (g *grammar) statement(stmt syntax.Stmt) error {
	switch stmt := stmt.(type) {
	case *syntax.ExprStmt:
		if _, ok := stmt.X.(*syntax.Literal); ok {
			return nil
		}
	case *syntax.BranchStmt:
		if stmt.Token == syntax.PASS {
			return nil
		}
	case *syntax.AssignStmt:
		name, ok := stmt.LHS.(*syntax.Ident)
		if !ok || stmt.Op != syntax.EQ {
			break
		}
		if err := g.bind(name); err != nil {
			return err
		}
		err := g.expr(&stmt.RHS)
		g.assigned[name.Name] = stmt.RHS
		return err
	}
	start, _ := stmt.Span()
	return errorAt(g.s.name, start, "a config consists of imports and of NAME = value")
}

// bind refuses to hide a name that the engine gives.
func (g *grammar) bind(name *syntax.Ident) error {
	if predeclared.Has(name.Name) || slices.Contains(universal, name.Name) {
		return errorAt(g.s.name, name.NamePos, name.Name+" cannot be assigned")
	}
	return nil
}

// expr checks an expression, drops repeated keys in it and makes its operators
// calls that count.
func (g *grammar) expr(p *syntax.Expr) error {
	switch e := (*p).(type) {
	case *syntax.Literal:
		if e.Token != syntax.BYTES {
			return nil
		}
	case *syntax.Ident:
		return g.ident(e)
	case *syntax.DotExpr:
		if id, ok := e.X.(*syntax.Ident); ok && isModule(id.Name) {
			return nil
		}
	case *syntax.ParenExpr:
		return g.expr(&e.X)
	case *syntax.ListExpr:
		return g.all(e.List)
	case *syntax.TupleExpr:
		return g.all(e.List)
	case *syntax.DictExpr:
		return g.dict(e)
	case *syntax.CallExpr:
		return g.call(e)
	case *syntax.UnaryExpr:
		if e.X != nil && e.Op != syntax.STAR && e.Op != syntax.STARSTAR {
			return g.expr(&e.X)
		}
	case *syntax.BinaryExpr:
		return g.binary(p, e)
	case *syntax.CondExpr:
		return g.each(&e.Cond, &e.True, &e.False)
	case *syntax.IndexExpr:
		if isLiteral(e.Y) {
			return g.expr(&e.X)
		}
	case *syntax.LambdaExpr:
		return g.lambda(e)
	case *syntax.Comprehension:
		return g.comprehension(e)
	}
	start, _ := (*p).Span()
	return errorAt(g.s.name, start, "this expression has no place in a config: want literals, dict(...), slice(...), float(...) and np.NAME")
}

func isLiteral(e syntax.Expr) bool {
	if u, ok := e.(*syntax.UnaryExpr); ok && u.Op == syntax.MINUS {
		e = u.X
	}
	_, ok := e.(*syntax.Literal)
	return ok
}

func (g *grammar) ident(id *syntax.Ident) error {
	if isModule(id.Name) {
		return errorAt(g.s.name, id.NamePos, id.Name+" is no value: want "+id.Name+".NAME")
	}
	if predeclared.Has(id.Name) || slices.Contains(universal, id.Name) || !isUniverse(id.Name) {
		return nil
	}
	return errorAt(g.s.name, id.NamePos, id.Name+" has no place in a config")
}

func (g *grammar) all(list []syntax.Expr) error {
	for i := range list {
		if err := g.expr(&list[i]); err != nil {
			return err
		}
	}
	return nil
}

func (g *grammar) each(list ...*syntax.Expr) error {
	for _, e := range list {
		if err := g.expr(e); err != nil {
			return err
		}
	}
	return nil
}

// dict gives a repeated key its last value at its first place, as Python does.
func (g *grammar) dict(e *syntax.DictExpr) error {
	first := map[string]*syntax.DictEntry{}
	kept := e.List[:0]
	for _, x := range e.List {
		entry := x.(*syntax.DictEntry)
		key, ok := text(entry.Key)
		start, _ := entry.Key.Span()
		if !ok {
			return errorAt(g.s.name, start, "the key of a dict has to be a string literal")
		}
		if err := g.expr(&entry.Value); err != nil {
			return err
		}
		if before := first[key]; before != nil {
			was, _ := before.Key.Span()
			g.s.warn(errorAt(g.s.name, start, fmt.Sprintf("the key %q is in line %d too: this later one counts", key, was.Line)))
			before.Value = entry.Value
			continue
		}
		first[key] = entry
		kept = append(kept, entry)
	}
	e.List = kept
	return nil
}

func text(e syntax.Expr) (string, bool) {
	l, ok := e.(*syntax.Literal)
	if !ok || l.Token != syntax.STRING {
		return "", false
	}
	s, ok := l.Value.(string)
	return s, ok
}

func (g *grammar) call(e *syntax.CallExpr) error {
	if err := g.expr(&e.Fn); err != nil {
		return err
	}
	for i := range e.Args {
		arg := &e.Args[i]
		if b, ok := (*arg).(*syntax.BinaryExpr); ok && b.Op == syntax.EQ {
			arg = &b.Y
		}
		if err := g.expr(arg); err != nil {
			return err
		}
	}
	return nil
}

// binary makes "x + y" the call of a counting function.
func (g *grammar) binary(p *syntax.Expr, e *syntax.BinaryExpr) error {
	if err := g.each(&e.X, &e.Y); err != nil {
		return err
	}
	if e.Op == syntax.AND || e.Op == syntax.OR {
		return nil
	}
	name, ok := operators[e.Op]
	if !ok {
		return errorAt(g.s.name, e.OpPos, e.Op.String()+" has no place in a config")
	}
	start, end := e.Span()
	fn := &syntax.Ident{NamePos: start, Name: name}
	*p = &syntax.CallExpr{Fn: fn, Lparen: e.OpPos, Args: []syntax.Expr{e.X, e.Y}, Rparen: end}
	return nil
}

func (g *grammar) lambda(e *syntax.LambdaExpr) error {
	for _, p := range e.Params {
		switch x := p.(type) {
		case *syntax.UnaryExpr:
			p = x.X
		case *syntax.BinaryExpr:
			if err := g.expr(&x.Y); err != nil {
				return err
			}
			p = x.X
		}
		if id, ok := p.(*syntax.Ident); ok {
			if err := g.bind(id); err != nil {
				return err
			}
		}
	}
	return g.expr(&e.Body)
}

func (g *grammar) comprehension(e *syntax.Comprehension) error {
	if e.Curly {
		return errorAt(g.s.name, e.Lbrack, "a comprehension of a dict has no place in a config")
	}
	for _, clause := range e.Clauses {
		var err error
		switch c := clause.(type) {
		case *syntax.ForClause:
			if err = g.expr(&c.Vars); err == nil {
				err = g.vars(c.Vars)
			}
			if err == nil {
				err = g.expr(&c.X)
			}
		case *syntax.IfClause:
			err = g.expr(&c.Cond)
		}
		if err != nil {
			return err
		}
	}
	return g.expr(&e.Body)
}

// vars binds the variables of a for.
func (g *grammar) vars(e syntax.Expr) error {
	switch e := e.(type) {
	case *syntax.Ident:
		return g.bind(e)
	case *syntax.ParenExpr:
		return g.vars(e.X)
	case *syntax.TupleExpr:
		for _, x := range e.List {
			if err := g.vars(x); err != nil {
				return err
			}
		}
		return nil
	}
	start, _ := e.Span()
	return errorAt(g.s.name, start, "want the name of a variable")
}
