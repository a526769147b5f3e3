package script

import (
	"maps"
	"slices"
	"strings"

	"go.starlark.net/syntax"
)

// A variable that a function assigns in the place of the function around it,
// by global, nonlocal, := or in the body of a try statement, is held by a cell:
// Starlark's functions read the variables around them but cannot assign them.

// cellValue is the attribute of a cell that is its variable.
const cellValue = "__value__"

// scopeKind is what a scope belongs to.
type scopeKind uint8

const (
	scopeFunction scopeKind = iota // or the module
	scopeBody                      // of a lowered statement: its variables are those of the function around
	scopeClass
	scopeLambda
	scopeComprehension
)

// scope holds the names that a part of a file binds.
type scope struct {
	kind             scopeKind
	outer            *scope
	binds            map[string]bool
	params           map[string]bool
	global, nonlocal map[string]bool // as declared
	celled           map[string]bool // those of binds that a cell holds
}

// variable is a place where a scope names a variable: an *Ident, the *Literal
// of a class or of what a with statement enters, or a *DefStmt.
type variable struct {
	node syntax.Node
	name string
	in   *scope
}

// cells finds the variables that need a cell.
type cells struct {
	bodies    map[*syntax.DefStmt]bool
	order     []*scope
	variables []variable
	lets      []variable // those that := binds
	functions map[syntax.Node]*scope

	evaluations []evaluation
}

// celled says which variables of a file are held by cells.
type celled struct {
	variables map[syntax.Node]bool
	functions map[syntax.Node]*scope // by *DefStmt and *LambdaExpr
	module    *scope
}

// findCells looks through the statements of a file.
func findCells(stmts []syntax.Stmt, bodies map[*syntax.DefStmt]bool) *celled {
	c := &cells{bodies: bodies, functions: map[syntax.Node]*scope{}}
	module := c.scope(scopeFunction, nil)
	c.stmts(stmts, module)
	for _, l := range c.lets {
		l.in.owner(l.name).take(l.name)
	}
	c.giveVariables()
	for _, bodiesFirst := range []bool{true, false} {
		for _, s := range c.order {
			if (s.kind == scopeBody) == bodiesFirst {
				s.assign()
			}
		}
	}
	out := &celled{map[syntax.Node]bool{}, c.functions, module}
	for _, v := range c.variables {
		if h := v.in.holder(v.name); h != nil && h.celled[v.name] {
			out.variables[v.node] = true
		}
	}
	return out
}

func (c *cells) scope(kind scopeKind, outer *scope) *scope {
	s := &scope{kind: kind, outer: outer, binds: map[string]bool{}, params: map[string]bool{}, global: map[string]bool{}, nonlocal: map[string]bool{}, celled: map[string]bool{}}
	c.order = append(c.order, s)
	return s
}

func (c *cells) stmts(list []syntax.Stmt, in *scope) {
	for _, s := range list {
		c.stmt(s, in)
	}
}

func (c *cells) stmt(s syntax.Stmt, in *scope) {
	switch s := s.(type) {
	case *syntax.AssignStmt:
		c.bind(s.LHS, in)
		c.exprs(in, s.LHS, s.RHS)
	case *syntax.DefStmt:
		c.named(s, s.Name.Name, in)
		kind := scopeFunction
		if c.bodies[s] {
			kind = scopeBody
		}
		inner := c.scope(kind, in)
		c.functions[s] = inner
		c.params(s.Params, in, inner)
		c.stmts(s.Body, inner)
	case *syntax.ExprStmt:
		in.declare(s.X)
		c.exprs(in, s.X)
	case *syntax.ForStmt:
		c.bind(s.Vars, in)
		c.exprs(in, s.Vars, s.X)
		c.stmts(s.Body, in)
	case *syntax.WhileStmt:
		c.exprs(in, s.Cond)
		c.stmts(s.Body, in)
	case *syntax.IfStmt:
		c.ifStmt(s, in)
	case *syntax.ReturnStmt:
		c.exprs(in, s.Result)
	}
}

func (c *cells) ifStmt(s *syntax.IfStmt, in *scope) {
	c.exprs(in, s.Cond)
	switch cond, _ := s.Cond.(*syntax.CallExpr); {
	case isCall(s.Cond, fnClass):
		c.named(cond.Args[0], textOf(cond.Args[0]), in)
		in = c.scope(scopeClass, in)
	case isCall(s.Cond, fnWith):
		for i := 0; i < len(cond.Args); i += 2 {
			if name := textOf(cond.Args[i]); name != "" {
				c.named(cond.Args[i], name, in)
			}
		}
	}
	c.stmts(s.True, in)
	c.stmts(s.False, in)
}

// textOf is the value of a string literal.
func textOf(e syntax.Expr) string { return e.(*syntax.Literal).Value.(string) }

// named binds a name at a node.
func (c *cells) named(n syntax.Node, name string, in *scope) {
	in.binds[name] = true
	c.variables = append(c.variables, variable{n, name, in})
}

func (c *cells) bind(target syntax.Expr, in *scope) {
	for _, id := range boundNames(target) {
		in.binds[id.Name] = true
	}
}

// params binds parameters; their defaults belong to the scope around.
func (c *cells) params(params []syntax.Expr, outer, inner *scope) {
	for _, p := range params {
		switch e := p.(type) {
		case *syntax.BinaryExpr:
			c.exprs(outer, e.Y)
			p = e.X
		case *syntax.UnaryExpr:
			p = e.X
		}
		if id, ok := p.(*syntax.Ident); ok {
			inner.binds[id.Name], inner.params[id.Name] = true, true
		}
	}
}

// exprs goes through expressions of a scope.
func (c *cells) exprs(in *scope, es ...syntax.Expr) {
	for _, e := range es {
		if e != nil {
			syntax.Walk(e, func(n syntax.Node) bool { return c.node(n, in) })
		}
	}
}

// node looks at a part of an expression, and reports whether its own parts are
// to be looked at.
func (c *cells) node(n syntax.Node, in *scope) bool {
	switch n := n.(type) {
	case *syntax.Ident:
		c.variables = append(c.variables, variable{n, n.Name, in})
	case *syntax.DotExpr:
		c.exprs(in, n.X)
		return false
	case *syntax.CallExpr:
		c.call(n, in)
		return false
	case *syntax.LambdaExpr:
		inner := c.scope(scopeLambda, in)
		c.functions[n] = inner
		c.params(n.Params, in, inner)
		c.exprs(inner, n.Body)
		return false
	case *syntax.Comprehension:
		inner := c.scope(scopeComprehension, in)
		for _, clause := range n.Clauses {
			switch clause := clause.(type) {
			case *syntax.ForClause:
				c.bind(clause.Vars, inner)
				c.exprs(inner, clause.X)
			case *syntax.IfClause:
				c.exprs(inner, clause.Cond)
			}
		}
		c.exprs(inner, n.Body)
		return false
	}
	return true
}

func (c *cells) call(n *syntax.CallExpr, in *scope) {
	args := n.Args
	if isCall(n, fnLet) {
		id, _ := args[0].(*syntax.Ident)
		if id == nil {
			return
		}
		to := in
		for to.kind == scopeComprehension {
			to = to.outer
		}
		c.lets = append(c.lets, variable{n, id.Name, to})
		args = args[1:]
	}
	if isCall(n, "eval") {
		c.evaluations = append(c.evaluations, evaluation{n, in})
	}
	c.exprs(in, n.Fn)
	for _, a := range args {
		if l, ok := a.(*syntax.LambdaExpr); ok && isCall(n, fnChain) { // an operand of the source's
			a = l.Body
		}
		if b, ok := a.(*syntax.BinaryExpr); ok && b.Op == syntax.EQ { // by keyword
			a = b.Y
		}
		c.exprs(in, a)
	}
}

// declare notes what global and nonlocal say.
func (s *scope) declare(e syntax.Expr) {
	f := s.function()
	for fn, names := range map[string]map[string]bool{fnGlobal: f.global, fnNonlocal: f.nonlocal} {
		if isCall(e, fn) {
			for _, a := range e.(*syntax.CallExpr).Args {
				names[textOf(a)] = true
			}
		}
	}
}

// function is the innermost function around, or the module.
func (s *scope) function() *scope {
	for s.kind != scopeFunction && s.outer != nil {
		s = s.outer
	}
	return s
}

func (s *scope) module() *scope {
	for s.outer != nil {
		s = s.outer
	}
	return s
}

// owner is the scope whose variable a name is when code in s assigns it.
func (s *scope) owner(name string) *scope {
	if s.kind != scopeFunction && s.kind != scopeBody {
		return s
	}
	f := s.function()
	switch {
	case f.global[name]:
		return f.module()
	case f.nonlocal[name] && f.outer != nil:
		if h := f.outer.holder(name); h != nil {
			return h
		}
	}
	return f
}

// holder is the scope whose variable a name is when code in s reads it; nil
// for a name of the engine.
func (s *scope) holder(name string) *scope {
	within := true // a class's names are seen by its own statements alone
	for at := s; at != nil; at = at.outer {
		switch {
		case at.global[name]:
			return at.module()
		case at.binds[name] && !at.nonlocal[name] && at.kind != scopeBody && (at.kind != scopeClass || within):
			return at
		}
		within = within && at.kind != scopeFunction && at.kind != scopeLambda
	}
	return nil
}

// visible are the names that code in s may read, without those of the engine.
func (s *scope) visible() []string {
	names := map[string]bool{}
	for at := s; at != nil; at = at.outer {
		for name := range at.binds {
			if !isReserved(name) && s.holder(name) != nil {
				names[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// assign gives cells to the variables that the scope assigns for another.
func (s *scope) assign() {
	for name := range s.binds {
		if to := s.owner(name); to != s && !s.params[name] && !isReserved(name) {
			to.take(name)
		}
	}
}

func (s *scope) take(name string) {
	s.binds[name], s.celled[name] = true, true
}

// made are the statements that begin a scope: they make its cells.
func (s *scope) made(p syntax.Position) []syntax.Stmt {
	var out []syntax.Stmt
	for _, name := range slices.Sorted(maps.Keys(s.celled)) {
		c := call(fnCell, p, stringLiteral(name, p))
		if s.params[name] {
			c.Args = append(c.Args, ident(name, p))
		}
		out = append(out, &syntax.AssignStmt{OpPos: p, Op: syntax.EQ, LHS: ident(name, p), RHS: c})
	}
	return out
}

// celling is the body of a lambda behind the making of its cells.
func (s *scope) celling(body syntax.Expr, p syntax.Position) syntax.Expr {
	if s == nil || len(s.celled) == 0 { // nil: an operand of a chain
		return body
	}
	inner := &syntax.LambdaExpr{Lambda: p, Body: body}
	c := &syntax.CallExpr{Fn: inner, Lparen: p, Rparen: p}
	for _, made := range s.made(p) {
		a := made.(*syntax.AssignStmt)
		inner.Params, c.Args = append(inner.Params, a.LHS), append(c.Args, a.RHS)
	}
	return c
}

// cellOf is the variable that a cell holds.
func cellOf(name string, p syntax.Position) syntax.Expr {
	return &syntax.DotExpr{X: ident(name, p), Dot: p, NamePos: p, Name: ident(cellValue, p)}
}

// assigned is the name of the variable that an assignment's target is; "" for others.
func assigned(target syntax.Expr) string {
	if d, ok := target.(*syntax.DotExpr); ok && d.Name.Name == cellValue {
		target = d.X
	}
	id, ok := target.(*syntax.Ident)
	if !ok {
		return ""
	}
	return id.Name[strings.LastIndexByte(id.Name, '.')+1:]
}
