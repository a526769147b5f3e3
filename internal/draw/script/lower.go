package script

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.starlark.net/syntax"
)

// The names by which lowered source calls the engine.
const (
	fnAttempt  = "__attempt__"
	fnExpect   = "__expect__"
	fnCaught   = "__caught__"
	fnError    = "__error__"
	fnAgain    = "__again__"
	fnEnded    = "__ended__"
	fnFlow     = "__flow__"
	fnLeft     = "__left__"
	fnResult   = "__result__"
	fnSequence = "__sequence__"
	fnCell     = "__cell__"
)

// The ways in which the body of a try statement is left.
const (
	flowReturn   = "return"
	flowBreak    = "break"
	flowContinue = "continue"
)

// lowerer makes functions of what Starlark cannot interrupt: the bodies of try
// statements, of with statements that expect an exception, and of functions
// that yield. Their variables stay those of the function around; see cells.
type lowerer struct {
	count  int
	bodies map[*syntax.DefStmt]bool
	err    *syntax.Error
	caught string // the variable of the innermost try statement whose handler this is
}

func (l *lowerer) fresh(kind string) string {
	l.count++
	return fmt.Sprintf("__%s%d__", kind, l.count)
}

func (l *lowerer) stmts(list []syntax.Stmt) []syntax.Stmt {
	var out []syntax.Stmt
	for i := 0; i < len(list); i++ {
		switch s := list[i].(type) {
		case *syntax.IfStmt:
			switch {
			case isCall(s.Cond, fnTry):
				end := i + 1
				for end < len(list) && isClause(list[end]) {
					end++
				}
				out = append(out, l.try(s, list[i+1:end])...)
				i = end - 1
				continue
			case isCall(s.Cond, fnWith):
				if made := l.expecting(s); made != nil {
					out = append(out, made...)
					continue
				}
			case isCall(s.Cond, fnMatch):
				out = append(out, l.match(s)...)
				continue
			}
			s.True, s.False = l.stmts(s.True), l.stmts(s.False)
		case *syntax.ForStmt:
			s.Body = l.stmts(s.Body)
		case *syntax.WhileStmt:
			s.Body = l.stmts(s.Body)
		case *syntax.DefStmt:
			l.def(s)
		case *syntax.ExprStmt:
			if c, ok := s.X.(*syntax.CallExpr); ok && isCall(c, fnRaise) && len(c.Args) == 0 && l.caught != "" {
				s.X = call(fnAgain, c.Lparen, ident(l.caught, c.Lparen))
			}
		}
		out = append(out, list[i])
	}
	return out
}

func isClause(s syntax.Stmt) bool {
	i, ok := s.(*syntax.IfStmt)
	return ok && (isCall(i.Cond, fnExcept) || isCall(i.Cond, fnNoError) || isCall(i.Cond, fnFinally))
}

// def lowers a function; one that yields gives a sequence of what its body yields.
func (l *lowerer) def(s *syntax.DefStmt) {
	outer := l.caught
	l.caught = ""
	yields := doesYield(s.Body)
	s.Body = l.stmts(s.Body)
	if yields {
		body := l.body(s.Body)
		s.Body = []syntax.Stmt{body, &syntax.ReturnStmt{Return: body.Def, Result: call(fnSequence, body.Def, ident(body.Name.Name, body.Def))}}
	}
	l.caught = outer
}

func doesYield(list []syntax.Stmt) bool {
	found := false
	for _, s := range list {
		syntax.Walk(s, func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.DefStmt:
				return false
			case *syntax.CallExpr:
				found = found || isCall(n, fnYield) || isCall(n, fnYieldFrom)
			}
			return !found
		})
	}
	return found
}

// body makes a function of statements whose variables are those of the code around.
func (l *lowerer) body(list []syntax.Stmt) *syntax.DefStmt {
	p := syntax.Start(list[0])
	def := &syntax.DefStmt{Def: p, Name: ident(l.fresh("body"), p), Body: list}
	l.bodies[def] = true
	return def
}

// attempt is what runs a body and keeps how it ended in a variable, followed
// by what is to be done then and by what leaves the code around as the body
// was left.
func (l *lowerer) attempt(fn string, list, then []syntax.Stmt, args ...syntax.Expr) ([]syntax.Stmt, string) {
	left := map[string]bool{}
	outward(list, false, left)
	body := l.body(list)
	p, out := body.Def, l.fresh("outcome")
	args = append([]syntax.Expr{ident(body.Name.Name, p)}, args...)
	stmts := []syntax.Stmt{body, &syntax.AssignStmt{OpPos: p, Op: syntax.EQ, LHS: ident(out, p), RHS: call(fn, p, args...)}}
	stmts = append(stmts, then...)
	for _, f := range []struct {
		how  string
		stmt syntax.Stmt
	}{
		{flowReturn, &syntax.ReturnStmt{Return: p, Result: call(fnResult, p, ident(out, p))}},
		{flowBreak, &syntax.BranchStmt{Token: syntax.BREAK, TokenPos: p}},
		{flowContinue, &syntax.BranchStmt{Token: syntax.CONTINUE, TokenPos: p}},
	} {
		if left[f.how] {
			stmts = append(stmts, &syntax.IfStmt{If: p, Cond: call(fnLeft, p, ident(out, p), stringLiteral(f.how, p)), True: []syntax.Stmt{f.stmt}})
		}
	}
	return stmts, out
}

// outward makes results of the statements that leave the code around a body,
// and notes which there are.
func outward(list []syntax.Stmt, looping bool, left map[string]bool) {
	for i, s := range list {
		switch s := s.(type) {
		case *syntax.ReturnStmt:
			left[flowReturn] = true
			result := s.Result
			if result == nil {
				result = ident("None", s.Return)
			}
			s.Result = call(fnFlow, s.Return, stringLiteral(flowReturn, s.Return), result)
		case *syntax.BranchStmt:
			how := map[syntax.Token]string{syntax.BREAK: flowBreak, syntax.CONTINUE: flowContinue}[s.Token]
			if how != "" && !looping {
				left[how] = true
				list[i] = &syntax.ReturnStmt{Return: s.TokenPos, Result: call(fnFlow, s.TokenPos, stringLiteral(how, s.TokenPos), ident("None", s.TokenPos))}
			}
		case *syntax.IfStmt:
			outward(s.True, looping, left)
			outward(s.False, looping, left)
		case *syntax.ForStmt:
			outward(s.Body, true, left)
		case *syntax.WhileStmt:
			outward(s.Body, true, left)
		}
	}
}

// try lowers a try statement with its clauses.
func (l *lowerer) try(s *syntax.IfStmt, clauses []syntax.Stmt) []syntax.Stmt {
	out := l.stmts(s.True)
	var handlers []*syntax.IfStmt
	var other, last *syntax.IfStmt
	for _, c := range clauses {
		switch c := c.(*syntax.IfStmt); {
		case isCall(c.Cond, fnExcept):
			handlers = append(handlers, c)
		case isCall(c.Cond, fnNoError):
			other = c
		default:
			last = c
		}
	}
	if len(handlers) > 0 {
		out = l.handled(out, handlers, other)
	}
	if last == nil {
		if len(handlers) == 0 && l.err == nil {
			l.err = &syntax.Error{Pos: s.If, Msg: "try needs an except or a finally clause"}
		}
		return out
	}
	p := last.If
	tail := l.stmts(last.True)
	again := call(fnAgain, p, nil)
	stmts, outcome := l.attempt(fnAttempt, out, append(tail, &syntax.ExprStmt{X: again}))
	again.Args[0] = ident(outcome, p)
	return stmts
}

// handled is a try statement without its finally clause.
func (l *lowerer) handled(body []syntax.Stmt, handlers []*syntax.IfStmt, other *syntax.IfStmt) []syntax.Stmt {
	choice := &syntax.IfStmt{If: handlers[0].If}
	stmts, outcome := l.attempt(fnAttempt, body, []syntax.Stmt{choice})
	of := func(fn string, p syntax.Position) *syntax.CallExpr { return call(fn, p, ident(outcome, p)) }
	outer := l.caught
	l.caught = outcome
	at := choice
	for i, h := range handlers {
		if i > 0 {
			next := &syntax.IfStmt{If: h.If}
			at.False = []syntax.Stmt{next}
			at = next
		}
		given := h.Cond.(*syntax.CallExpr).Args
		caught := of(fnCaught, h.If)
		caught.Args = append(caught.Args, given[1:]...)
		at.Cond = caught
		if name := given[0].(*syntax.Literal).Value.(string); name != "" {
			at.True = append(at.True, &syntax.AssignStmt{OpPos: h.If, Op: syntax.EQ, LHS: ident(name, h.If), RHS: of(fnError, h.If)})
		}
		at.True = append(at.True, l.stmts(h.True)...)
	}
	l.caught = outer
	at.False = []syntax.Stmt{&syntax.ExprStmt{X: of(fnAgain, at.If)}}
	if other != nil {
		at.False = append(at.False, &syntax.IfStmt{If: other.If, Cond: of(fnEnded, other.If), True: l.stmts(other.True)})
	}
	return stmts
}

// match lowers a match statement to a chain of ifs.
func (l *lowerer) match(s *syntax.IfStmt) []syntax.Stmt {
	p, subject := s.If, l.fresh("subject")
	var chain []syntax.Stmt
	for _, c := range slices.Backward(s.True) {
		clause, ok := c.(*syntax.IfStmt)
		if !ok || !isCall(clause.Cond, fnCase) {
			start, _ := c.Span()
			l.err = cmp.Or(l.err, &syntax.Error{Pos: start, Msg: "match has cases alone"})
			continue
		}
		chain = l.clause(subject, clause, chain)
	}
	return append([]syntax.Stmt{assignment(subject, s.Cond.(*syntax.CallExpr).Args[0], p)}, chain...)
}

// clause is a case: what its pattern binds, its guard and its body, and the cases behind it.
func (l *lowerer) clause(subject string, s *syntax.IfStmt, other []syntax.Stmt) []syntax.Stmt {
	given, p, bound := s.Cond.(*syntax.CallExpr).Args, s.If, l.fresh("bound")
	out := []syntax.Stmt{assignment(bound, call(fnMatches, p, ident(subject, p), given[0], given[1]), p)}
	var binds []syntax.Stmt
	for i, name := range written(given[1]) {
		at := &syntax.IndexExpr{X: ident(bound, p), Lbrack: p, Y: &syntax.Literal{Token: syntax.INT, TokenPos: p, Raw: strconv.Itoa(i + 1), Value: int64(i + 1)}, Rbrack: p}
		binds = append(binds, assignment(textOf(name), at, p))
	}
	body := l.stmts(s.True)
	if len(given) == 2 {
		return append(out, &syntax.IfStmt{If: p, Cond: ident(bound, p), True: append(binds, body...), ElsePos: p, False: other})
	}
	hit := l.fresh("hit")
	out = append(out, assignment(hit, ident("False", p), p),
		&syntax.IfStmt{If: p, Cond: ident(bound, p), True: append(binds, assignment(hit, given[2], p))})
	return append(out, &syntax.IfStmt{If: p, Cond: ident(hit, p), True: body, ElsePos: p, False: other})
}

func assignment(name string, to syntax.Expr, p syntax.Position) *syntax.AssignStmt {
	return &syntax.AssignStmt{OpPos: p, Op: syntax.EQ, LHS: ident(name, p), RHS: to}
}

// written are the elements of a tuple that is written out.
func written(e syntax.Expr) []syntax.Expr {
	if in, ok := e.(*syntax.ParenExpr); ok {
		e = in.X
	}
	if t, ok := e.(*syntax.TupleExpr); ok {
		return t.List
	}
	return nil
}

// expecting lowers a with statement one of whose contexts expects an
// exception, or lets it pass; nil for others.
func (l *lowerer) expecting(s *syntax.IfStmt) []syntax.Stmt {
	args := s.Cond.(*syntax.CallExpr).Args
	for i := 0; i+1 < len(args); i += 2 {
		if !expectsException(args[i+1]) && calledName(args[i+1]) != "suppress" {
			continue
		}
		p := s.If
		inner := s.True
		if i+2 < len(args) {
			inner = []syntax.Stmt{&syntax.IfStmt{If: p, Cond: call(fnWith, p, args[i+2:]...), True: inner}}
		}
		context := l.fresh("context")
		out := []syntax.Stmt{&syntax.AssignStmt{OpPos: p, Op: syntax.EQ, LHS: ident(context, p), RHS: args[i+1]}}
		if name := args[i].(*syntax.Literal).Value.(string); name != "" {
			out = append(out, &syntax.AssignStmt{OpPos: p, Op: syntax.EQ, LHS: ident(name, p), RHS: ident(context, p)})
		}
		stmts, _ := l.attempt(fnExpect, l.stmts(inner), nil, ident(context, p))
		out = append(out, stmts...)
		if i == 0 {
			return out
		}
		return []syntax.Stmt{&syntax.IfStmt{If: p, Cond: call(fnWith, p, args[:i]...), True: out}}
	}
	return nil
}

func expectsException(e syntax.Expr) bool {
	name := calledName(e)
	return name == "raises" || strings.HasPrefix(name, "assertRaises")
}

// calledName is the last part of the name that a call calls.
func calledName(e syntax.Expr) string {
	if c, ok := e.(*syntax.CallExpr); ok {
		switch fn := c.Fn.(type) {
		case *syntax.Ident:
			return fn.Name
		case *syntax.DotExpr:
			return fn.Name.Name
		}
	}
	return ""
}

// endings counts, by the line of the function, the blocks and calls that expect
// an exception, and one more where something follows the last. Where a block
// names the exception, the function looks at what it says, which is another
// text in every framework: there the first one ends it.
func endings(tree *syntax.File) map[int]int {
	out := map[int]int{}
	syntax.Walk(tree, func(n syntax.Node) bool {
		def, ok := n.(*syntax.DefStmt)
		if !ok {
			return true
		}
		count, named := 0, false
		for _, s := range def.Body {
			syntax.Walk(s, func(n syntax.Node) bool {
				e, ok := n.(*syntax.CallExpr)
				if ok && expectsException(e) {
					count++
				}
				if ok && isCall(e, fnWith) {
					for i := 0; i+1 < len(e.Args); i += 2 {
						named = named || expectsException(e.Args[i+1]) && textOf(e.Args[i]) != ""
					}
				}
				return true
			})
		}
		if named {
			return true
		}
		if count > 0 && !isExpectation(def.Body[len(def.Body)-1]) {
			count++
		}
		out[int(def.Def.Line)] = count
		return true
	})
	return out
}

// isExpectation reports whether a statement does nothing but expect an exception.
func isExpectation(s syntax.Stmt) bool {
	switch s := s.(type) {
	case *syntax.IfStmt:
		if c, ok := s.Cond.(*syntax.CallExpr); ok && isCall(c, fnWith) {
			for _, a := range c.Args {
				if expectsException(a) {
					return true
				}
			}
		}
	case *syntax.ExprStmt:
		return expectsException(s.X)
	}
	return false
}
