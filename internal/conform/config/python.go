package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/resolve"
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// The bounds of an evaluation.
const (
	maxSteps  = 1 << 22 // Starlark instructions
	maxValues = 1 << 21 // numbers, strings and containers of a config
)

// dialect is Starlark where a name may be assigned again, as in Python.
var dialect = &syntax.FileOptions{GlobalReassign: true}

// variable is the name by which DIOPI looks its config up; that of a model's
// config is the model's with modelSuffix.
const (
	variable    = "diopi_configs"
	modelSuffix = "_config"
)

// readPython evaluates the dict of a .py config by Starlark.
func readPython(name string, src []byte) (*source, error) {
	text, at, reason := dropImports(src)
	if reason != "" {
		p := positionAt(src, at)
		return nil, &Error{File: name, Line: p.Line, Col: p.Col, Msg: reason}
	}
	tree, err := dialect.Parse(name, text, 0)
	if err != nil {
		return nil, located(name, err)
	}
	s := &source{name: name}
	g := &grammar{s: s, assigned: map[string]syntax.Expr{}}
	if err := g.file(tree); err != nil {
		return nil, err
	}
	program, err := starlark.FileProgram(tree, predeclared.Has)
	if err != nil {
		return nil, located(name, err)
	}
	thread := &starlark.Thread{Name: name, Print: func(*starlark.Thread, string) {}}
	thread.SetMaxExecutionSteps(maxSteps)
	globals, err := program.Init(thread, predeclared)
	if err != nil {
		return nil, located(name, err)
	}
	config, err := chosen(name, globals)
	if err != nil {
		return nil, err
	}
	c := converter{left: maxValues}
	v, err := c.value(globals[config], 0)
	if err != nil {
		return nil, &Error{File: name, Msg: err.Error()}
	}
	s.root, s.variable = v.(*Dict), config
	s.locate = func(path []step) position { return walk(g.assigned[config], path) }
	return s, nil
}

// chosen is the name of the variable that holds the config.
func chosen(file string, globals starlark.StringDict) (string, error) {
	var dicts, models []string
	for _, name := range globals.Keys() {
		if _, ok := globals[name].(*starlark.Dict); ok {
			dicts = append(dicts, name)
			if strings.HasSuffix(name, modelSuffix) {
				models = append(models, name)
			}
		}
	}
	switch {
	case slices.Contains(dicts, variable):
		return variable, nil
	case len(dicts) == 1:
		return dicts[0], nil
	case len(models) == 1:
		return models[0], nil
	case len(dicts) == 0:
		return "", &Error{File: file, Msg: "no variable holds a dict of configs; want " + variable + " = {...}"}
	}
	return "", &Error{File: file, Msg: fmt.Sprintf("which dict is the config, %s? Name it %s", strings.Join(dicts, " or "), variable)}
}

// located turns an error of Starlark's into an Error.
func located(name string, err error) error {
	var parse syntax.Error
	var names resolve.ErrorList
	var eval *starlark.EvalError
	switch {
	case errors.As(err, &parse):
		return errorAt(name, parse.Pos, parse.Msg)
	case errors.As(err, &names):
		return errorAt(name, names[0].Pos, names[0].Msg)
	case errors.As(err, &eval):
		return errorAt(name, innermost(eval), eval.Msg)
	}
	return &Error{File: name, Msg: err.Error()}
}

// innermost is where in the file evaluation stopped.
func innermost(e *starlark.EvalError) syntax.Position {
	for i := range e.CallStack {
		if at := e.CallStack.At(i).Pos; at.Line > 0 {
			return at
		}
	}
	return syntax.Position{}
}

func errorAt(name string, at syntax.Position, msg string) *Error {
	return &Error{File: name, Line: int(at.Line), Col: int(at.Col), Msg: msg}
}

// walk finds the expression that a path leads to, or the last one on the way.
func walk(e syntax.Expr, path []step) position {
	for _, s := range path {
		next := child(e, s)
		if next == nil {
			break
		}
		e = next
	}
	if e == nil {
		return position{}
	}
	start, _ := e.Span()
	return position{int(start.Line), int(start.Col)}
}

func child(e syntax.Expr, s step) syntax.Expr {
	switch e := e.(type) {
	case *syntax.ParenExpr:
		return child(e.X, s)
	case *syntax.DictExpr:
		for _, entry := range e.List {
			entry := entry.(*syntax.DictEntry)
			if l, ok := entry.Key.(*syntax.Literal); ok && l.Value == s.key {
				return entry.Value
			}
		}
	case *syntax.CallExpr:
		for _, arg := range e.Args {
			if k, v, ok := keyword(arg); ok && k == s.key {
				return v
			}
		}
	case *syntax.ListExpr:
		return element(e.List, s)
	case *syntax.TupleExpr:
		return element(e.List, s)
	}
	return nil
}

func element(list []syntax.Expr, s step) syntax.Expr {
	if s.key == "" && s.index < len(list) {
		return list[s.index]
	}
	return nil
}

// keyword splits the argument k=v of a call.
func keyword(e syntax.Expr) (string, syntax.Expr, bool) {
	b, ok := e.(*syntax.BinaryExpr)
	if !ok || b.Op != syntax.EQ {
		return "", nil, false
	}
	id, ok := b.X.(*syntax.Ident)
	if !ok {
		return "", nil, false
	}
	return id.Name, b.Y, true
}

// converter makes Values of Starlark's.
type converter struct{ left int }

func (c *converter) value(v starlark.Value, depth int) (Value, error) {
	if c.left--; c.left < 0 {
		return nil, fmt.Errorf("the config holds more than %d values", maxValues)
	}
	if depth > maxDepth {
		return nil, errors.New("the config is nested too deep")
	}
	switch v := v.(type) {
	case starlark.NoneType:
		return None{}, nil
	case starlark.Bool:
		return Bool(v), nil
	case starlark.Int:
		n, ok := v.Int64()
		if !ok {
			return nil, fmt.Errorf("the integer %s needs more than 64 bits", v)
		}
		return Int(n), nil
	case starlark.Float:
		return Float(v), nil
	case starlark.String:
		return String(v), nil
	case starlark.Tuple:
		list, err := c.list(v, depth)
		return Tuple(list), err
	case *starlark.List:
		list, err := c.list(v, depth)
		return List(list), err
	case *starlark.Dict:
		return c.dict(v, depth)
	case dtypeValue:
		return DType(v), nil
	case *tupled:
		return c.tupled(v, depth)
	}
	return nil, fmt.Errorf("a %s is no value of a config", v.Type())
}

func (c *converter) list(v starlark.Indexable, depth int) ([]Value, error) {
	out := make([]Value, v.Len())
	for i := range out {
		x, err := c.value(v.Index(i), depth+1)
		if err != nil {
			return nil, err
		}
		out[i] = x
	}
	return out, nil
}

func (c *converter) dict(v *starlark.Dict, depth int) (Value, error) {
	out := &Dict{}
	for _, item := range v.Items() {
		key, ok := starlark.AsString(item[0])
		if !ok {
			return nil, fmt.Errorf("the key %s of a dict is no string", item[0])
		}
		x, err := c.value(item[1], depth+1)
		if err != nil {
			return nil, err
		}
		out.Set(key, x)
	}
	return out, nil
}

func (c *converter) tupled(v *tupled, depth int) (Value, error) {
	list, err := c.list(v.parts, depth)
	if err != nil {
		return nil, err
	}
	if v.name == "Skip" {
		return Skip(list), nil
	}
	return Slice(list), nil
}
