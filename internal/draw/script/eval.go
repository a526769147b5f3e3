package script

import (
	"fmt"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// fnEval is eval where the source calls it by its name: its further arguments
// are the names that the call sees, each with a function that reads it.
const fnEval = "__eval__"

func init() { predeclared[fnEval] = builtin(fnEval, evaluate) }

// evaluation is a call of eval.
type evaluation struct {
	call *syntax.CallExpr
	in   *scope
}

// giveVariables lets each call of eval read the variables that it sees.
func (c *cells) giveVariables() {
	for _, e := range c.evaluations {
		if e.in.holder("eval") != nil {
			continue
		}
		p := e.call.Lparen
		e.call.Fn = ident(fnEval, p)
		for _, name := range e.in.visible() {
			read := &syntax.LambdaExpr{Lambda: p, Body: ident(name, p)}
			inner := c.scope(scopeLambda, e.in)
			c.functions[read] = inner
			c.variables = append(c.variables, variable{read.Body, name, inner})
			e.call.Args = append(e.call.Args, stringLiteral(name, p), read)
		}
	}
}

// evaluate is eval(source) of an expression.
func evaluate(t *starlark.Thread, args starlark.Tuple) (starlark.Value, error) {
	source, ok := starlark.AsString(args[0])
	if !ok {
		return nil, fmt.Errorf("eval() arg 1 must be a string, but it is %s", args[0].Type())
	}
	if len(args) > 1 {
		if _, ok := args[1].(starlark.String); !ok {
			return nil, lack("eval with variables of its own is not supported in test files")
		}
	}
	d, err := drawOf(t, "eval")
	if err != nil {
		return nil, err
	}
	var params []string
	var values starlark.Tuple
	for i := 1; i < len(args); i += 2 {
		name := string(args[i].(starlark.String))
		if !strings.Contains(source, name) {
			continue
		}
		if v, err := starlark.Call(t, args[i+1], nil, nil); err == nil { // else it has no value yet
			params, values = append(params, name), append(values, v)
		}
	}
	f, err := d.test.file.expression(t, source, params)
	if err != nil {
		return nil, fmt.Errorf("eval(%q): %w", source, err)
	}
	return starlark.Call(t, f, values, nil)
}

// expression makes a function of an expression.
func (f *File) expression(t *starlark.Thread, source string, params []string) (starlark.Value, error) {
	const result = "__evaluated"
	e := &File{Name: "<string>", src: fmt.Sprintf("%s = lambda %s: (%s)\n", result, strings.Join(params, ", "), strings.TrimSpace(source))}
	out, scanErr := prepass(e.src)
	if scanErr != nil {
		return nil, fmt.Errorf("%s", scanErr.msg)
	}
	e.out = out
	program, err := e.compile(&names{known: f.names})
	if err != nil {
		return nil, err
	}
	globals, err := program.Init(t, f.names)
	if err != nil {
		return nil, err
	}
	return globals[result], nil
}
