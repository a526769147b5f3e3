package config

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// readYAML reads the schema of the Python configs as YAML. Shapes and strides
// are lists there, and dtypes are their names; elsewhere a tuple, a dtype, a
// slice or a float that YAML lacks is written as in [Case.AppendJSON].
func readYAML(name string, src []byte) (s *source, err error) {
	if err := flat(name, src); err != nil {
		return nil, err
	}
	file, err := parse(src)
	if err != nil {
		return nil, yamlError(name, err)
	}
	if len(file.Docs) > 1 {
		return nil, &Error{File: name, Msg: fmt.Sprintf("want one document, not %d", len(file.Docs))}
	}
	if len(file.Docs) == 0 || file.Docs[0].Body == nil {
		return nil, &Error{File: name, Msg: "the document is empty"}
	}
	body := file.Docs[0].Body
	r := &yamlReader{name: name, left: maxValues}
	root, err := r.value(body, 0)
	if err != nil {
		return nil, err
	}
	d, ok := root.(*Dict)
	if !ok {
		return nil, r.errorf(body, "want a mapping of entries, not %s", Show(root))
	}
	for _, k := range d.Keys() {
		d.Set(k, typedEntry(d.Get(k)))
	}
	locate := func(path []step) position { return walkYAML(body, path) }
	return &source{name: name, root: d, locate: locate}, nil
}

// parse makes a panic of the parser an error.
func parse(src []byte) (file *ast.File, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the YAML cannot be parsed: %v", r)
		}
	}()
	return parser.ParseBytes(src, 0)
}

func yamlError(name string, err error) error {
	var syntax yaml.Error
	if errors.As(err, &syntax) && syntax.GetToken() != nil {
		at := syntax.GetToken().Position
		return &Error{File: name, Line: at.Line, Col: at.Column, Msg: syntax.GetMessage()}
	}
	return &Error{File: name, Msg: err.Error()}
}

// maxKeys bounds the keys of a YAML file: its parser compares those of one
// mapping with each other.
const maxKeys = 1 << 15

// flat refuses anchors, aliases and tags, which configs have no need of, and
// what is nested too deep to be parsed.
func flat(name string, src []byte) error {
	brackets, entries, line, keys := 0, 0, 0, 0
	for _, t := range lexer.Tokenize(string(src)) {
		if t.Position.Line != line {
			line, entries = t.Position.Line, 0
		}
		msg := ""
		switch t.Type {
		case token.AnchorType, token.AliasType, token.TagType, token.MergeKeyType, token.DirectiveType:
			msg = fmt.Sprintf("%q: a config has no anchors, aliases, tags or directives", t.Value)
		case token.SequenceStartType, token.MappingStartType:
			brackets++
		case token.SequenceEndType, token.MappingEndType:
			brackets--
		case token.SequenceEntryType, token.MappingKeyType:
			entries++
		case token.MappingValueType:
			if keys++; keys > maxKeys {
				msg = fmt.Sprintf("the config has more than %d keys", maxKeys)
			}
		}
		if max(brackets, entries) > maxDepth || t.Position.Column > maxDepth && t.Type == token.SequenceEntryType {
			msg = "the YAML is nested too deep"
		}
		if msg != "" {
			return &Error{File: name, Line: t.Position.Line, Col: t.Position.Column, Msg: msg}
		}
	}
	return nil
}

// yamlReader makes Values of nodes.
type yamlReader struct {
	name string
	left int
}

func (r *yamlReader) errorf(n ast.Node, format string, args ...any) error {
	at := positionOf(n)
	return &Error{File: r.name, Line: at.Line, Col: at.Col, Msg: fmt.Sprintf(format, args...)}
}

func positionOf(n ast.Node) position {
	t := n.GetToken()
	if m, ok := n.(*ast.MappingNode); ok && !m.IsFlowStyle && len(m.Values) > 0 {
		t = m.Values[0].Key.GetToken()
	}
	if m, ok := n.(*ast.MappingValueNode); ok {
		t = m.Key.GetToken()
	}
	if t == nil || t.Position == nil {
		return position{}
	}
	return position{t.Position.Line, t.Position.Column}
}

func (r *yamlReader) value(n ast.Node, depth int) (Value, error) {
	if r.left--; r.left < 0 {
		return nil, r.errorf(n, "the config holds more than %d values", maxValues)
	}
	if depth > maxDepth {
		return nil, r.errorf(n, "the config is nested too deep")
	}
	switch n := n.(type) {
	case *ast.NullNode:
		return None{}, nil
	case *ast.BoolNode:
		return Bool(n.Value), nil
	case *ast.IntegerNode:
		if v, ok := n.Value.(int64); ok {
			return Int(v), nil
		}
		if v, ok := n.Value.(uint64); ok && v <= math.MaxInt64 {
			return Int(v), nil
		}
		return nil, r.errorf(n, "the integer %s needs more than 64 bits", n.Token.Value)
	case *ast.FloatNode:
		return Float(n.Value), nil
	case *ast.InfinityNode:
		return Float(n.Value), nil
	case *ast.NanNode:
		return Float(math.NaN()), nil
	case *ast.StringNode:
		return String(n.Value), nil
	case *ast.LiteralNode:
		return String(n.Value.Value), nil
	case *ast.SequenceNode:
		return r.list(n, depth)
	case *ast.MappingNode:
		return r.dict(n, n.Values, depth)
	case *ast.MappingValueNode:
		return r.dict(n, []*ast.MappingValueNode{n}, depth)
	case nil:
		return None{}, nil
	}
	return nil, r.errorf(n, "a %s has no place in a config", strings.ToLower(n.Type().String()))
}

func (r *yamlReader) list(n *ast.SequenceNode, depth int) (Value, error) {
	out := make(List, len(n.Values))
	for i, x := range n.Values {
		v, err := r.value(x, depth+1)
		if err != nil {
			return nil, err
		}
		out[i] = v
	}
	return out, nil
}

func (r *yamlReader) dict(n ast.Node, values []*ast.MappingValueNode, depth int) (Value, error) {
	out := &Dict{}
	for _, kv := range values {
		key, ok := keyOf(kv)
		if !ok {
			return nil, r.errorf(kv, "the key of a mapping has to be a string")
		}
		if out.Get(key) != nil {
			return nil, r.errorf(kv, "the key %q is there twice", key)
		}
		v, err := r.value(kv.Value, depth+1)
		if err != nil {
			return nil, err
		}
		out.Set(key, v)
	}
	return r.decoded(n, out)
}

func keyOf(kv *ast.MappingValueNode) (string, bool) {
	s, ok := kv.Key.(*ast.StringNode)
	if !ok {
		return "", false
	}
	return s.Value, true
}

// decoded makes {$tuple: [...]} and its like the value that it stands for.
func (r *yamlReader) decoded(n ast.Node, d *Dict) (Value, error) {
	if len(d.keys) != 1 || !strings.HasPrefix(d.keys[0], "$") {
		return d, nil
	}
	switch v := d.Get(d.keys[0]); d.keys[0] {
	case "$tuple":
		if list, ok := v.(List); ok {
			return Tuple(list), nil
		}
	case "$np":
		if s, ok := v.(String); ok && slices.Contains(dtypes, string(s)) {
			return DType(s), nil
		}
	case "$slice":
		if list, ok := v.(List); ok && len(list) == 3 {
			return Slice(list), nil
		}
	case "$skip":
		if list, ok := v.(List); ok && len(list) == 1 {
			return Skip(list), nil
		}
	case "$float":
		switch v {
		case String("inf"):
			return Float(math.Inf(1)), nil
		case String("-inf"):
			return Float(math.Inf(-1)), nil
		case String("nan"):
			return Float(math.NaN()), nil
		}
	}
	return nil, r.errorf(n, "%s stands for no value: want $tuple, $np, $slice, $float or $skip and what it takes", Show(d))
}

// typedEntry gives an entry the tuples and dtypes that YAML writes as lists and
// names. What is of another form is left for the checks.
func typedEntry(v Value) Value {
	entry, ok := v.(*Dict)
	if !ok {
		return v
	}
	typedDTypes(entry)
	tensors, ok := entry.Get("tensor_para").(*Dict)
	if !ok {
		return entry
	}
	typedDTypes(tensors)
	args, _ := tensors.Get("args").(List)
	for _, a := range args {
		arg, ok := a.(*Dict)
		if !ok {
			continue
		}
		typedDTypes(arg)
		for _, k := range []string{"shape", "stride"} {
			if column, ok := arg.Get(k).(List); ok {
				for i := range column {
					column[i] = asTuples(column[i])
				}
			}
		}
	}
	return entry
}

func typedDTypes(d *Dict) {
	list, _ := d.Get("dtype").(List)
	for i, v := range list {
		if skip, ok := v.(Skip); ok {
			list[i] = Skip{asDType(skip[0])}
		} else {
			list[i] = asDType(v)
		}
	}
}

func asDType(v Value) Value {
	if s, ok := v.(String); ok && slices.Contains(dtypes, string(s)) {
		return DType(s)
	}
	return v
}

func asTuples(v Value) Value {
	if skip, ok := v.(Skip); ok {
		return Skip{asTuples(skip[0])}
	}
	list, ok := v.(List)
	if !ok {
		return v
	}
	out := make(Tuple, len(list))
	for i, x := range list {
		out[i] = asTuples(x)
	}
	return out
}

// walkYAML finds the node that a path leads to, or the last one on the way.
func walkYAML(n ast.Node, path []step) position {
	at := positionOf(n)
	for _, s := range path {
		if n = childYAML(n, s); n == nil {
			break
		}
		at = positionOf(n)
	}
	return at
}

func childYAML(n ast.Node, s step) ast.Node {
	switch n := n.(type) {
	case *ast.MappingNode:
		for _, kv := range n.Values {
			if key, ok := keyOf(kv); ok && key == s.key {
				return kv.Value
			}
		}
	case *ast.MappingValueNode:
		if key, ok := keyOf(n); ok && key == s.key {
			return n.Value
		}
	case *ast.SequenceNode:
		if s.key == "" && s.index < len(n.Values) {
			return n.Values[s.index]
		}
	}
	return nil
}
