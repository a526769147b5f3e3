package script

import (
	"fmt"

	"go.starlark.net/syntax"
)

// rewriter changes a parsed file so that operators, truth and slices reach the
// engine, and so that functions and classes report themselves.
type rewriter struct {
	marks map[point]mark
	// hints are the names of the variables to which calls are assigned, by the
	// position that the call has at run time.
	hints map[point]string
	// calls are the call expressions by that position, for error messages.
	calls map[point]*syntax.CallExpr
	// undefined are the messages about names that nothing defines.
	undefined map[point]string
	held      *celled
	level     level
	class     *classBody // the innermost class around; nil for none
	self      string     // the first parameter of the method around
	count     int        // classes so far
	elses     int        // loops with an else so far
	// properties are the names of attributes that functions compute.
	properties map[string]bool
	// withs counts the with statements around the code within its function;
	// loopWiths those around the innermost loop. unbroken is the variable of
	// that loop which its breaks set; empty for none.
	withs, loopWiths int
	unbroken         string
	pendingElse      string // of the loop that comes next
	err              *syntax.Error
}

func at(p syntax.Position) point { return point{p.Line, p.Col} }

func (r *rewriter) fail(p syntax.Position, format string, args ...any) {
	if r.err == nil {
		r.err = &syntax.Error{Pos: p, Msg: fmt.Sprintf(format, args...)}
	}
}

func (r *rewriter) stmts(list []syntax.Stmt) []syntax.Stmt {
	var out []syntax.Stmt
	pending := false
	for i, s := range list {
		decorator := isCallOf(s, fnDecorate)
		if pending && !decorator && !isDefinition(s) {
			r.fail(syntax.Start(s), "a decorator must be followed by a function or a class")
		}
		decorated := pending
		pending = decorator
		switch s := s.(type) {
		case *syntax.ReturnStmt:
			r.returns(s)
		case *syntax.BranchStmt:
			out = append(out, r.branch(s)...)
			continue
		case *syntax.ForStmt, *syntax.WhileStmt:
			if i+1 < len(list) && isUnbroken(list[i+1]) {
				out = append(out, r.watched(s, list[i+1].(*syntax.IfStmt)))
			}
		}
		r.stmt(s)
		if decorator {
			r.later(s.(*syntax.ExprStmt).X.(*syntax.CallExpr))
		}
		out = append(out, s)
		out = append(out, r.member(s)...)
		if def, ok := s.(*syntax.DefStmt); ok && (r.level != inFunction || decorated || r.held.variables[def]) {
			out = append(out, r.defined(def))
		}
	}
	if pending {
		r.fail(syntax.Start(list[len(list)-1]), "a decorator must be followed by a function or a class")
	}
	return out
}

// defined is the statement by which a function reports itself.
func (r *rewriter) defined(def *syntax.DefStmt) syntax.Stmt {
	name, p := def.Name.Name, def.Name.NamePos
	ofClass := ident(map[bool]string{true: "True", false: "False"}[r.level == inClass], def.Def)
	target := r.place(def, name, p)
	if r.held.variables[def] { // its name is the cell's
		def.Name = ident("__"+name+"__", p)
	}
	return &syntax.AssignStmt{OpPos: def.Def, Op: syntax.EQ, LHS: target, RHS: call(fnDef, def.Def, ident(def.Name.Name, p), ofClass)}
}

// place is the variable of a name, which stands at a node of the source.
func (r *rewriter) place(n syntax.Node, name string, p syntax.Position) syntax.Expr {
	if r.held.variables[n] {
		return cellOf(name, p)
	}
	return ident(name, p)
}

func stringLiteral(s string, p syntax.Position) *syntax.Literal {
	return &syntax.Literal{Token: syntax.STRING, TokenPos: p, Raw: quote(s), Value: s}
}

// later makes a function of a decorator.
func (r *rewriter) later(c *syntax.CallExpr) {
	for i, a := range c.Args {
		if u, ok := a.(*syntax.UnaryExpr); ok && (u.Op == syntax.STAR || u.Op == syntax.STARSTAR) {
			r.fail(u.OpPos, "want one decorator")
			return
		}
		c.Args[i] = &syntax.LambdaExpr{Lambda: syntax.Start(a), Body: a}
	}
}

func isUnbroken(s syntax.Stmt) bool {
	i, ok := s.(*syntax.IfStmt)
	if !ok {
		return false
	}
	id, ok := i.Cond.(*syntax.Ident)
	return ok && id.Name == nameUnbroken
}

// watched gives a loop with an else the variable that says whether it ran to
// its end, and returns the statement that sets it.
func (r *rewriter) watched(loop syntax.Stmt, other *syntax.IfStmt) syntax.Stmt {
	r.elses++
	name := fmt.Sprintf("__unbroken%d__", r.elses)
	p := syntax.Start(loop)
	other.Cond = ident(name, other.If)
	r.pendingElse = name
	return set(name, "True", p)
}

func set(name, value string, p syntax.Position) *syntax.AssignStmt {
	return &syntax.AssignStmt{OpPos: p, Op: syntax.EQ, LHS: ident(name, p), RHS: ident(value, p)}
}

// loop rewrites a loop's body.
func (r *rewriter) loop(body []syntax.Stmt) []syntax.Stmt {
	withs, unbroken := r.loopWiths, r.unbroken
	r.loopWiths, r.unbroken, r.pendingElse = r.withs, r.pendingElse, ""
	body = r.stmts(body)
	r.loopWiths, r.unbroken = withs, unbroken
	return body
}

// branch leaves the with statements inside a loop before a break or continue.
func (r *rewriter) branch(s *syntax.BranchStmt) []syntax.Stmt {
	var out []syntax.Stmt
	if n := r.withs - r.loopWiths; n > 0 && s.Token != syntax.PASS {
		out = append(out, &syntax.ExprStmt{X: call(fnLeave, s.TokenPos, number64(n, s.TokenPos))})
	}
	if s.Token == syntax.BREAK && r.unbroken != "" {
		out = append(out, set(r.unbroken, "False", s.TokenPos))
	}
	return append(out, s)
}

// returns leaves the with statements of a function once its result is known.
func (r *rewriter) returns(s *syntax.ReturnStmt) {
	if r.withs == 0 {
		return
	}
	args := []syntax.Expr{number64(r.withs, s.Return)}
	if s.Result != nil {
		args = append(args, s.Result)
	}
	s.Result = call(fnLeave, s.Return, args...)
}

func number64(n int, p syntax.Position) *syntax.Literal {
	return &syntax.Literal{Token: syntax.INT, TokenPos: p, Raw: fmt.Sprint(n), Value: int64(n)}
}

func isCallOf(s syntax.Stmt, fn string) bool {
	e, ok := s.(*syntax.ExprStmt)
	return ok && isCall(e.X, fn)
}

func isCall(e syntax.Expr, fn string) bool {
	c, ok := e.(*syntax.CallExpr)
	if !ok {
		return false
	}
	id, ok := c.Fn.(*syntax.Ident)
	return ok && id.Name == fn
}

func isDefinition(s syntax.Stmt) bool {
	if _, ok := s.(*syntax.DefStmt); ok {
		return true
	}
	i, ok := s.(*syntax.IfStmt)
	return ok && isCall(i.Cond, fnClass)
}

func ident(name string, p syntax.Position) *syntax.Ident {
	return &syntax.Ident{Name: name, NamePos: p}
}

func call(fn string, p syntax.Position, args ...syntax.Expr) *syntax.CallExpr {
	return &syntax.CallExpr{Fn: ident(fn, p), Lparen: p, Args: args, Rparen: p}
}

func (r *rewriter) stmt(s syntax.Stmt) {
	switch s := s.(type) {
	case *syntax.AssignStmt:
		r.assign(s)
	case *syntax.DefStmt:
		r.params(s.Params)
		outer := *r
		r.withs, r.loopWiths, r.unbroken, r.pendingElse = 0, 0, "", ""
		if r.level == inClass {
			r.self = firstParam(s)
		}
		r.level = inFunction
		begin := append([]syntax.Stmt{&syntax.ExprStmt{X: call(fnDepth, s.Def)}}, r.held.functions[s].made(s.Def)...)
		s.Body = append(begin, r.stmts(s.Body)...)
		r.level, r.self = outer.level, outer.self
		r.withs, r.loopWiths, r.unbroken, r.pendingElse = outer.withs, outer.loopWiths, outer.unbroken, outer.pendingElse
	case *syntax.ExprStmt:
		if isCall(s.X, fnDelete) {
			s.X = r.deletes(s.X.(*syntax.CallExpr))
			return
		}
		_, attribute := s.X.(*syntax.DotExpr)
		if s.X = r.expr(s.X); attribute {
			s.X = call(fnLook, syntax.Start(s.X), s.X)
		}
	case *syntax.ForStmt:
		s.X = call(fnMany, syntax.Start(s.X), r.expr(s.X))
		s.Vars = r.target(s.Vars)
		s.Body = r.loop(s.Body)
	case *syntax.WhileStmt:
		s.Cond = r.truth(s.Cond)
		s.Body = r.loop(s.Body)
	case *syntax.IfStmt:
		r.ifStmt(s)
	case *syntax.ReturnStmt:
		if s.Result != nil {
			s.Result = r.expr(s.Result)
		}
	case *syntax.LoadStmt:
		r.fail(s.Load, "load is not supported in test files: write import")
	}
}

func (r *rewriter) ifStmt(s *syntax.IfStmt) {
	if isCall(s.Cond, fnClass) {
		r.classStmt(s)
		return
	}
	if isCall(s.Cond, fnWith) {
		r.with(s)
		return
	}
	s.Cond = r.truth(s.Cond)
	s.True = r.stmts(s.True)
	s.False = r.stmts(s.False)
}

// with binds what a with statement enters, and leaves it at the end.
func (r *rewriter) with(s *syntax.IfStmt) {
	c := s.Cond.(*syntax.CallExpr)
	var out []syntax.Stmt
	for i := 0; i+1 < len(c.Args); i += 2 {
		if name := c.Args[i].(*syntax.Literal).Value.(string); name != "" {
			out = append(out, &syntax.AssignStmt{OpPos: s.If, Op: syntax.EQ, LHS: r.place(c.Args[i], name, s.If), RHS: call(fnEntered, s.If, number64(i/2, s.If))})
		}
	}
	s.Cond = r.expr(c)
	r.withs++
	out = append(out, r.stmts(s.True)...)
	r.withs--
	s.True = append(out, &syntax.ExprStmt{X: call(fnLeave, s.If, number64(1, s.If))})
}

// deletes turns "del x[k], y" into calls; a name stays as it is.
func (r *rewriter) deletes(c *syntax.CallExpr) syntax.Expr {
	var out []syntax.Expr
	for _, a := range c.Args {
		switch a := a.(type) {
		case *syntax.Ident:
		case *syntax.IndexExpr:
			out = append(out, call(fnDelete, a.Lbrack, r.expr(a.X), r.expr(a.Y)))
		case *syntax.SliceExpr:
			out = append(out, call(fnDelete, a.Lbrack, append([]syntax.Expr{r.expr(a.X)}, call("slice", a.Lbrack, r.bounds(a)...))...))
		case *syntax.DotExpr:
			out = append(out, call("delattr", a.Dot, r.expr(a.X), stringLiteral(a.Name.Name, a.Dot)))
		default:
			out = append(out, call(fnDelete, c.Lparen, r.expr(a)))
		}
	}
	return &syntax.ListExpr{Lbrack: c.Lparen, List: out, Rbrack: c.Rparen}
}

func (r *rewriter) assign(s *syntax.AssignStmt) {
	s.RHS = r.expr(s.RHS)
	name := assigned(s.LHS)
	if name != "" && s.Op == syntax.EQ {
		r.hint(s.RHS, name)
	}
	if s.Op == syntax.EQ {
		s.LHS = r.target(s.LHS)
		return
	}
	op, known := augmented[s.Op]
	if !known {
		return
	}
	switch r.marks[at(s.OpPos)] {
	case markPow:
		op = "ipow"
	case markMatmul:
		op = "imatmul"
	}
	value := call("__"+op+"__", s.OpPos, r.expr(r.copyTarget(s.LHS)), s.RHS)
	if name != "" {
		r.hints[at(s.OpPos)] = name
	}
	s.LHS = r.target(s.LHS)
	s.Op, s.RHS = syntax.EQ, value
}

// copyTarget copies the nodes of an assignment's target that are rewritten or
// resolved, so that it can be read as well.
func (r *rewriter) copyTarget(e syntax.Expr) syntax.Expr {
	switch e := e.(type) {
	case *syntax.Ident:
		return r.place(e, e.Name, e.NamePos)
	case *syntax.ParenExpr:
		return r.copyTarget(e.X)
	case *syntax.DotExpr:
		d := *e
		d.X = r.copyTarget(e.X)
		return &d
	case *syntax.IndexExpr:
		d := *e
		d.X, d.Y = r.copyTarget(e.X), r.copyTarget(e.Y)
		return &d
	case *syntax.Literal:
		d := *e
		return &d
	case *syntax.UnaryExpr:
		d := *e
		d.X = r.copyTarget(e.X)
		return &d
	}
	return e
}

func (r *rewriter) target(e syntax.Expr) syntax.Expr {
	switch e := e.(type) {
	case *syntax.Ident:
		return r.place(e, e.Name, e.NamePos)
	case *syntax.IndexExpr:
		r.targetItem(e)
	case *syntax.SliceExpr:
		x := call(fnParts, e.Lbrack, r.expr(e.X))
		return &syntax.IndexExpr{X: x, Lbrack: e.Lbrack, Rbrack: e.Rbrack, Y: call("slice", e.Lbrack, r.bounds(e)...)}
	case *syntax.DotExpr:
		e.X = r.expr(e.X)
	case *syntax.TupleExpr:
		for i := range e.List {
			e.List[i] = r.target(e.List[i])
		}
	case *syntax.ListExpr:
		for i := range e.List {
			e.List[i] = r.target(e.List[i])
		}
	case *syntax.ParenExpr:
		e.X = r.target(e.X)
	}
	return e
}

// hint records that the result of e goes to a variable; the tensor below a
// x.to(device) is hinted as well, since that call may be left out.
func (r *rewriter) hint(e syntax.Expr, name string) {
	switch e := e.(type) {
	case *syntax.ParenExpr:
		r.hint(e.X, name)
	case *syntax.IndexExpr:
		r.hints[at(e.Lbrack)] = name
	case *syntax.CallExpr:
		r.hints[at(e.Lparen)] = name
		if dot, ok := e.Fn.(*syntax.DotExpr); ok && dot.Name.Name == "to" {
			r.hint(dot.X, name)
		}
	}
}

func (r *rewriter) params(params []syntax.Expr) {
	for _, p := range params {
		if b, ok := p.(*syntax.BinaryExpr); ok && b.Op == syntax.EQ {
			b.Y = r.expr(b.Y)
		}
	}
}

// binaryNames are the engine's names of the operators.
var binaryNames = map[syntax.Token]string{
	syntax.PLUS: "add", syntax.MINUS: "sub", syntax.STAR: "mul", syntax.SLASH: "truediv", syntax.SLASHSLASH: "floordiv",
	syntax.PERCENT: "mod", syntax.AMP: "and", syntax.PIPE: "or", syntax.CIRCUMFLEX: "xor", syntax.LTLT: "lshift", syntax.GTGT: "rshift",
	syntax.EQL: "eq", syntax.NEQ: "ne", syntax.LT: "lt", syntax.LE: "le", syntax.GT: "gt", syntax.GE: "ge",
}

var augmented = map[syntax.Token]string{
	syntax.PLUS_EQ: "iadd", syntax.MINUS_EQ: "isub", syntax.STAR_EQ: "imul", syntax.SLASH_EQ: "itruediv", syntax.SLASHSLASH_EQ: "ifloordiv",
	syntax.PERCENT_EQ: "imod", syntax.AMP_EQ: "iand", syntax.PIPE_EQ: "ior", syntax.CIRCUMFLEX_EQ: "ixor", syntax.LTLT_EQ: "ilshift", syntax.GTGT_EQ: "irshift",
}

var unaryNames = map[syntax.Token]string{syntax.MINUS: "neg", syntax.PLUS: "pos", syntax.TILDE: "invert"}

func (r *rewriter) expr(e syntax.Expr) syntax.Expr {
	switch e := e.(type) {
	case *syntax.BinaryExpr:
		return r.binary(e)
	case *syntax.CallExpr:
		return r.callExpr(e)
	case *syntax.Comprehension:
		return r.comprehension(e)
	case *syntax.CondExpr:
		e.True, e.Cond, e.False = r.expr(e.True), r.truth(e.Cond), r.expr(e.False)
	case *syntax.DictEntry:
		e.Key, e.Value = r.expr(e.Key), r.expr(e.Value)
	case *syntax.DictExpr:
		r.list(e.List)
	case *syntax.DotExpr:
		return r.dot(e)
	case *syntax.Ident:
		if msg, ok := r.undefined[at(e.NamePos)]; ok {
			return call(fnUndefined, e.NamePos, stringLiteral(msg, e.NamePos))
		}
		return r.place(e, e.Name, e.NamePos)
	case *syntax.IndexExpr:
		return r.item(e)
	case *syntax.LambdaExpr:
		r.params(e.Params)
		e.Body = &syntax.CondExpr{If: e.Lambda, Cond: call(fnDepth, e.Lambda), True: r.held.functions[e].celling(r.expr(e.Body), e.Lambda), ElsePos: e.Lambda, False: ident("None", e.Lambda)}
	case *syntax.ListExpr:
		r.list(e.List)
	case *syntax.ParenExpr:
		e.X = r.expr(e.X)
	case *syntax.SliceExpr:
		x := r.expr(e.X)
		return call(fnSlice, e.Lbrack, append([]syntax.Expr{x}, r.bounds(e)...)...)
	case *syntax.TupleExpr:
		r.list(e.List)
	case *syntax.UnaryExpr:
		return r.unary(e)
	}
	return e
}

// dot leaves an attribute to Starlark unless it may be one that Starlark's
// own types lack.
func (r *rewriter) dot(e *syntax.DotExpr) syntax.Expr {
	start := syntax.Start(e)
	e.X = r.expr(e.X)
	if !pythonAttrs[e.Name.Name] && !r.properties[e.Name.Name] {
		return e
	}
	return call(fnAttr, start, e.X, stringLiteral(e.Name.Name, e.Name.NamePos))
}

func (r *rewriter) list(es []syntax.Expr) {
	for i := range es {
		es[i] = r.expr(es[i])
	}
}

func (r *rewriter) bounds(e *syntax.SliceExpr) []syntax.Expr {
	out := make([]syntax.Expr, 3)
	for i, b := range []syntax.Expr{e.Lo, e.Hi, e.Step} {
		if b == nil {
			out[i] = ident("None", e.Lbrack)
		} else {
			out[i] = r.expr(b)
		}
	}
	return out
}

func (r *rewriter) callExpr(e *syntax.CallExpr) syntax.Expr {
	e.Fn = r.expr(e.Fn)
	r.calls[at(e.Lparen)] = e
	if isCall(e, "super") && len(e.Args) == 0 && r.self != "" {
		e.Args = []syntax.Expr{ident(r.class.ref, e.Lparen), ident(r.self, e.Lparen)}
	}
	e.Args = arranged(e.Args, e.Lparen)
	for i, a := range e.Args {
		switch a := a.(type) {
		case *syntax.BinaryExpr:
			if a.Op == syntax.EQ {
				a.Y = r.expr(a.Y)
				continue
			}
			e.Args[i] = r.expr(a)
		case *syntax.UnaryExpr:
			if a.Op == syntax.STAR || a.Op == syntax.STARSTAR {
				a.X = r.expr(a.X)
				continue
			}
			e.Args[i] = r.expr(a)
		default:
			e.Args[i] = r.expr(a)
		}
	}
	return e
}

// arranged puts arguments into the order that Starlark asks for: positional,
// by keyword, *args, **kwargs; several stars become one.
func arranged(args []syntax.Expr, p syntax.Position) []syntax.Expr {
	var positional, named, stars, dicts []syntax.Expr
	for _, a := range args {
		u, unary := a.(*syntax.UnaryExpr)
		b, binary := a.(*syntax.BinaryExpr)
		switch {
		case unary && u.X == nil:
			positional = append(positional, a)
		case unary && u.Op == syntax.STAR:
			stars = append(stars, call(fnMany, u.OpPos, u.X))
		case unary && u.Op == syntax.STARSTAR:
			dicts = append(dicts, u.X)
		case binary && b.Op == syntax.EQ:
			named = append(named, a)
		case len(stars) > 0:
			stars = append(stars, &syntax.ListExpr{List: []syntax.Expr{a}})
		default:
			positional = append(positional, a)
		}
	}
	if len(stars) == 0 && len(dicts) < 2 {
		return append(append(positional, named...), stared(dicts, syntax.STARSTAR, p, "")...)
	}
	out := append(positional, named...)
	out = append(out, stared(stars, syntax.STAR, p, fnConcat)...)
	return append(out, stared(dicts, syntax.STARSTAR, p, fnMerge)...)
}

// stared is the one starred argument of all xs.
func stared(xs []syntax.Expr, op syntax.Token, p syntax.Position, join string) []syntax.Expr {
	switch len(xs) {
	case 0:
		return nil
	case 1:
		return []syntax.Expr{&syntax.UnaryExpr{OpPos: p, Op: op, X: xs[0]}}
	}
	return []syntax.Expr{&syntax.UnaryExpr{OpPos: p, Op: op, X: call(join, p, xs...)}}
}

func (r *rewriter) comprehension(e *syntax.Comprehension) syntax.Expr {
	for _, c := range e.Clauses {
		switch c := c.(type) {
		case *syntax.ForClause:
			c.X = call(fnMany, syntax.Start(c.X), r.expr(c.X))
			c.Vars = r.target(c.Vars)
		case *syntax.IfClause:
			c.Cond = r.truth(c.Cond)
		}
	}
	e.Body = r.expr(e.Body)
	return e
}

func (r *rewriter) unary(e *syntax.UnaryExpr) syntax.Expr {
	if e.X == nil {
		return e
	}
	if e.Op == syntax.NOT {
		e.X = r.truth(e.X)
		return e
	}
	name, ok := unaryNames[e.Op]
	if _, literal := e.X.(*syntax.Literal); literal || !ok {
		return e
	}
	return call("__"+name+"__", e.OpPos, r.expr(e.X))
}

// junction is x and y or x or y for its value: a tensor on the left is a value
// itself, unlike its truth.
func (r *rewriter) junction(e *syntax.BinaryExpr) syntax.Expr {
	fn := fnAnd
	if e.Op == syntax.OR {
		fn = fnOr
	}
	e.X, e.Y = r.expr(e.X), r.expr(e.Y)
	if _, literal := e.X.(*syntax.Literal); literal {
		return e
	}
	return call(fn, e.OpPos, e.X, &syntax.LambdaExpr{Lambda: e.OpPos, Body: e.Y})
}

// truth makes the truth of a tensor observable.
func (r *rewriter) truth(e syntax.Expr) syntax.Expr {
	if b, ok := unparen(e).(*syntax.BinaryExpr); ok && (b.Op == syntax.AND || b.Op == syntax.OR) {
		b.X, b.Y = r.truth(b.X), r.truth(b.Y)
		return e
	}
	x := r.expr(e)
	switch x.(type) {
	case *syntax.Literal:
		return x
	}
	p := syntax.Start(e)
	if c, ok := x.(*syntax.CallExpr); ok {
		p = c.Lparen
	}
	return call(fnTruth, p, x)
}

func (r *rewriter) binary(e *syntax.BinaryExpr) syntax.Expr {
	switch e.Op {
	case syntax.AND, syntax.OR:
		return r.junction(e)
	case syntax.STAR, syntax.SLASH, syntax.SLASHSLASH, syntax.PERCENT:
		return r.product(e)
	case syntax.EQL, syntax.NEQ:
		if r.marks[at(e.OpPos)] == markIs {
			fn := fnIs
			if e.Op == syntax.NEQ {
				fn = fnIsNot
			}
			return call(fn, e.OpPos, r.expr(e.X), r.expr(e.Y))
		}
	}
	switch e.Op {
	case syntax.IN:
		return call(fnIn, e.OpPos, r.expr(e.X), r.expr(e.Y))
	case syntax.NOT_IN:
		return call(fnNotIn, e.OpPos, r.expr(e.X), r.expr(e.Y))
	}
	name, ok := binaryNames[e.Op]
	if !ok {
		e.X, e.Y = r.expr(e.X), r.expr(e.Y)
		return e
	}
	return call("__"+name+"__", e.OpPos, r.expr(e.X), r.expr(e.Y))
}

// product regroups a chain of multiplicative operators: a power, which was
// parsed as one of them, binds tighter, to the right, and above a sign on its
// left.
func (r *rewriter) product(e *syntax.BinaryExpr) syntax.Expr {
	var operands []syntax.Expr
	var ops []*syntax.BinaryExpr
	for {
		ops = append(ops, e)
		operands = append(operands, e.Y)
		left, ok := e.X.(*syntax.BinaryExpr)
		if !ok || left.Op != syntax.STAR && left.Op != syntax.SLASH && left.Op != syntax.SLASHSLASH && left.Op != syntax.PERCENT {
			operands = append(operands, e.X)
			break
		}
		e = left
	}
	// operands and ops are from right to left
	for i := 0; i < len(ops); {
		if r.marks[at(ops[i].OpPos)] != markPow {
			i++
			continue
		}
		operands[i+1] = power(operands[i+1], operands[i], ops[i].OpPos)
		operands = append(operands[:i], operands[i+1:]...)
		ops = append(ops[:i], ops[i+1:]...)
	}
	out := r.expr(operands[len(operands)-1])
	for i := len(ops) - 1; i >= 0; i-- {
		name := binaryNames[ops[i].Op]
		if r.marks[at(ops[i].OpPos)] == markMatmul {
			name = "matmul"
		}
		out = call("__"+name+"__", ops[i].OpPos, out, r.expr(operands[i]))
	}
	return out
}

func power(x, y syntax.Expr, p syntax.Position) syntax.Expr {
	if u, ok := x.(*syntax.UnaryExpr); ok && u.Op != syntax.NOT {
		u.X = power(u.X, y, p)
		return u
	}
	return call("__pow__", p, x, y)
}

func unparen(e syntax.Expr) syntax.Expr {
	for {
		p, ok := e.(*syntax.ParenExpr)
		if !ok {
			return e
		}
		e = p.X
	}
}
