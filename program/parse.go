package program

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"plumb/tensor"
)

// Limits on a program's text.
const (
	maxText  = 64 << 20
	maxDepth = 64
)

// IsProgram reports whether text is meant to be a program rather than a test file.
func IsProgram(text string) bool { return strings.HasPrefix(text, "# plumb program ") }

// Parse reads the text form. The error is a *SyntaxError with the position.
func Parse(file, text string) (*Program, error) {
	if len(text) > maxText {
		return nil, &SyntaxError{file, 1, 1, "program is too long"}
	}
	if IsProgram(text) && !strings.HasPrefix(text, Header+"\n") {
		line, _, _ := strings.Cut(text, "\n")
		return nil, &SyntaxError{file, 1, 1, fmt.Sprintf("%q was written by a newer Plumb; this one reads %q", line, Header)}
	}
	r := &reader{p: &Program{}, kinds: map[string]bool{}}
	for i, line := range strings.Split(text, "\n") {
		r.place = file + ":" + strconv.Itoa(i+1)
		if err := r.line(line); err != nil {
			err.File, err.Line = file, i+1
			return nil, err
		}
	}
	return r.p, nil
}

// reader builds a program line by line; kinds says of each defined name
// whether it is a module.
type reader struct {
	p     *Program
	kinds map[string]bool
	open  []openScope
	toks  []token
	at    int
	depth int
	place string // of the line
}

func (r *reader) line(text string) (err *SyntaxError) {
	word, _, _ := strings.Cut(strings.TrimSpace(text), " ")
	if word == "import" || word == "from" {
		return nil
	}
	toks, lexErr := lex(text)
	if lexErr != nil {
		return lexErr.(*SyntaxError)
	}
	if len(toks) == 1 {
		return nil
	}
	r.toks, r.at, r.depth = toks, 0, 0
	defer func() {
		switch e := recover().(type) {
		case nil:
		case *SyntaxError:
			err = e
		default:
			panic(e)
		}
	}()
	indent := len(text) - len(strings.TrimLeft(text, " "))
	r.leave(indent)
	if t := r.peek(); t.kind == tName && t.text == "with" {
		r.with(indent)
		return nil
	}
	r.statement()
	return nil
}

func (r *reader) fail(col int, format string, args ...any) {
	panic(&SyntaxError{Col: col, Msg: fmt.Sprintf(format, args...)})
}

func (r *reader) peek() token { return r.toks[r.at] }

func (r *reader) next() token {
	t := r.toks[r.at]
	if t.kind != tEnd {
		r.at++
	}
	return t
}

func (r *reader) is(punct string) bool {
	t := r.peek()
	return t.kind == tPunct && t.text == punct
}

func (r *reader) accept(punct string) bool {
	if r.is(punct) {
		r.at++
		return true
	}
	return false
}

func (r *reader) expect(punct string) {
	if !r.accept(punct) {
		r.fail(r.peek().col, "expected %q, found %q", punct, r.peek().text)
	}
}

// node is a parsed expression: a value, or a call or attribute that is still
// to be given a meaning.
type node struct {
	col    int
	value  any    // an argument value, when op is ""
	op     string // "call", "attr", "index", an infix operator, "neg"
	name   string // dotted name of a call's function, or the attribute
	recv   *node
	args   []node
	kwargs []namedNode
}

type namedNode struct {
	name string
	node
}

func (r *reader) statement() {
	name := r.next()
	if name.kind != tName {
		r.fail(name.col, "expected a name, found %q", name.text)
	}
	if r.accept("=") {
		r.define(name, r.expr())
	} else {
		r.at--
		r.effect(r.expr())
	}
	if t := r.peek(); t.kind != tEnd {
		r.fail(t.col, "unexpected %q", t.text)
	}
}

// define gives the assigned expression its meaning: an input or a call.
func (r *reader) define(name token, n node) {
	if _, dup := r.kinds[name.text]; dup || name.text == "torch" || name.text == "operator" {
		r.fail(name.col, "%s is already defined", name.text)
	}
	if n.op == "call" && n.recv == nil && n.name == "tensor" {
		r.p.Inputs = append(r.p.Inputs, r.input(name.text, n))
		r.kinds[name.text] = false
		return
	}
	c := r.call(n)
	c.Result, c.Scopes, c.Place = name.text, r.scopes(), r.place
	r.kinds[name.text] = IsModule(c.Target)
	r.p.Calls = append(r.p.Calls, c)
}

func (r *reader) effect(n node) {
	switch {
	case n.op == "call" && n.recv == nil && n.name == "case":
		r.caseLine(n)
	case n.op == "call" && n.recv != nil && n.name == "backward":
		r.p.Backward = append(r.p.Backward, r.backward(n))
	default:
		r.fail(n.col, "expected an assignment, case(…) or VALUE.backward(…)")
	}
}

func (r *reader) caseLine(n node) {
	if len(n.args) != 1 {
		r.fail(n.col, "case takes the test's name")
	}
	r.p.Name = r.str(n.args[0])
	for _, kw := range n.kwargs {
		switch kw.name {
		case "seed":
			r.p.Seed = r.uint(kw.node)
		case "dtype":
			r.p.DType = r.dtype(kw.node)
		case "rtol":
			v := r.float(kw.node)
			r.p.RTol = &v
		case "atol":
			v := r.float(kw.node)
			r.p.ATol = &v
		case "raises":
			r.p.Raises = r.bool(kw.node)
		case "tolerance":
			r.p.Tolerance = r.word(kw.node, Default)
		case "elements":
			r.p.Shapes = !r.bool(kw.node)
		case "random":
			r.p.Draws = r.word(kw.node, "shape", "distribution") == "shape"
		case "second":
			r.p.Second = r.cotangent(kw.node)
		case "sgd":
			r.p.Step = r.step(kw.node)
		default:
			r.fail(kw.col, "case has no argument %s; it takes seed, dtype, rtol, atol, tolerance, elements, random, second, sgd, raises", kw.name)
		}
	}
}

func (r *reader) input(name string, n node) Input {
	if len(n.args) != 3 {
		r.fail(n.col, "tensor takes a shape, a dtype and a fill")
	}
	in := Input{Name: name, Shape: r.ints(n.args[0])}
	in.DType = r.dtype(n.args[1])
	if err := tensor.CheckShape(in.DType, in.Shape); err != nil {
		r.fail(n.args[0].col, "%v", err)
	}
	for _, kw := range n.kwargs {
		switch kw.name {
		case "strides":
			in.Strides = r.strides(kw.node, in.Shape)
		case "requires_grad":
			in.RequiresGrad = r.bool(kw.node)
		default:
			r.fail(kw.col, "tensor has no argument %s; it takes strides, requires_grad", kw.name)
		}
	}
	if list, ok := n.args[2].value.(List); ok {
		in.Fill = Fill{Dist: Literal, Data: r.literal(n.args[2].col, in, list)}
	} else {
		in.Fill = r.fill(n.args[2])
		if err := in.Fill.fits(in.Shape); err != nil {
			r.fail(n.args[2].col, "%v", err)
		}
	}
	return in
}

func (r *reader) strides(n node, shape []int) []int {
	strides := r.ints(n)
	if len(strides) != len(shape) {
		r.fail(n.col, "%d strides for %d dimensions", len(strides), len(shape))
	}
	if slices.ContainsFunc(strides, func(s int) bool { return s < 0 || s > tensor.MaxElements }) {
		r.fail(n.col, "strides must be between 0 and %d", tensor.MaxElements)
	}
	return strides
}

func (r *reader) literal(col int, in Input, list List) *tensor.Tensor {
	if tensor.NumElements(in.Shape) != len(list) {
		r.fail(col, "%d elements for shape %s", len(list), tensor.ShapeString(in.Shape))
	}
	t := tensor.New(in.DType, in.Shape...)
	for i, v := range list {
		switch v := v.(type) {
		case int64:
			t.SetInt(i, v)
		case bool:
			if v {
				t.SetInt(i, 1)
			}
		case float64:
			t.Set(i, complex(v, 0))
		case complex128:
			t.Set(i, v)
		default:
			r.fail(col, "element %d is not a number", i)
		}
	}
	return t
}

// dists are the distributions by the number of their arguments.
var dists = map[string]int{string(Uniform): 2, string(Integer): 2, string(Normal): 2, string(Folded): 2, string(Gram): 2, string(Constant): 1}

func (r *reader) fill(n node) Fill {
	if n.op != "call" || n.recv != nil || dists[n.name] == 0 || len(n.args) != dists[n.name] {
		r.fail(n.col, "expected uniform(lo, hi, key=…), integer(lo, hi, key=…), normal(mean, std, key=…), folded(mean, std, key=…), gram(plus, columns, key=…), constant(value) or a list of elements")
	}
	f := Fill{Dist: Dist(n.name), Lo: r.float(n.args[0])}
	if len(n.args) > 1 {
		f.Hi = r.float(n.args[1])
	}
	for _, kw := range n.kwargs {
		switch kw.name {
		case "key":
			f.Key = r.uint(kw.node)
		case "kinks":
			f.Kinks = r.bool(kw.node)
		case "scales":
			f.Scales = r.bool(kw.node)
		case "special":
			f.Special = r.special(kw.node)
		case "round":
			f.Round = r.dtype(kw.node)
		case "real":
			f.Real = r.bool(kw.node)
		case "density":
			f.Density = r.float(kw.node)
		default:
			r.fail(kw.col, "%s has no argument %s; it takes key, kinks, scales, special, round, real, density", n.name, kw.name)
		}
	}
	if err := f.check(); err != nil {
		r.fail(n.col, "%v", err)
	}
	return f
}

func (r *reader) cotangent(n node) Fill {
	f := r.fill(n)
	if !f.streams() {
		r.fail(n.col, "a cotangent cannot be %s", f.String())
	}
	return f
}

func (r *reader) backward(n node) Backward {
	ref, ok := n.recv.value.(Ref)
	if !ok {
		r.fail(n.col, "backward needs a named value")
	}
	w := Backward{Value: ref}
	if len(n.args) > 1 {
		r.fail(n.col, "backward takes at most a cotangent")
	}
	if len(n.args) == 1 {
		w.Cotangent = r.cotangent(n.args[0])
	}
	for _, kw := range n.kwargs {
		if kw.name != "auto" {
			r.fail(kw.col, "backward has no argument %s; it takes auto", kw.name)
		}
		w.Auto = r.bool(kw.node)
	}
	return w
}

// call gives an expression its meaning as a call.
func (r *reader) call(n node) Call {
	switch n.op {
	case "call":
		c := Call{Target: n.name, Args: r.values(n.args)}
		for _, kw := range n.kwargs {
			c.Kwargs = append(c.Kwargs, Kwarg{kw.name, r.value(kw.node)})
		}
		if n.recv != nil {
			c.Target = r.method(n)
			c.Args = append([]any{r.value(*n.recv)}, c.Args...)
		}
		return c
	case "attr":
		return Call{Target: "getattr", Args: []any{r.value(*n.recv), n.name}}
	case "index":
		return Call{Target: "operator.getitem", Args: []any{r.value(*n.recv), r.value(n.args[0])}}
	case "":
		r.fail(n.col, "expected a call")
	}
	return Call{Target: n.op, Args: r.values(n.args)}
}

func (r *reader) method(n node) string {
	ref, ok := n.recv.value.(Ref)
	if !ok {
		r.fail(n.col, "a method needs a named receiver")
	}
	if n.name == "" {
		return "Module.__call__"
	}
	if r.kinds[string(ref)] {
		return "Module." + n.name
	}
	return "Tensor." + n.name
}

func (r *reader) values(ns []node) []any {
	var vs []any
	for _, n := range ns {
		vs = append(vs, r.value(n))
	}
	return vs
}

// value returns the argument that an expression is.
func (r *reader) value(n node) any {
	if n.op != "" {
		r.fail(n.col, "give this expression a name first: arguments are names and literals")
	}
	return n.value
}

// word returns one of the given strings.
func (r *reader) word(n node, words ...string) string {
	s := r.str(n)
	if !slices.Contains(words, s) {
		r.fail(n.col, "%q is none of %s", s, strings.Join(words, ", "))
	}
	return s
}

// special reads a set of kinds of edge values: True or a list of names.
func (r *reader) special(n node) Special {
	names, ok := n.value.(List)
	if !ok {
		if r.bool(n) {
			return AllSpecials
		}
		return 0
	}
	var s Special
	for _, v := range names {
		name, _ := v.(string)
		kind, err := ParseSpecial(name)
		if err != nil {
			r.fail(n.col, "%v", err)
		}
		s |= kind
	}
	return s
}

func (r *reader) str(n node) string {
	s, ok := n.value.(string)
	if !ok {
		r.fail(n.col, "expected a string")
	}
	return s
}

func (r *reader) dtype(n node) tensor.DType {
	d, ok := n.value.(tensor.DType)
	if !ok {
		r.fail(n.col, "expected a dtype such as torch.float32")
	}
	return d
}

func (r *reader) bool(n node) bool {
	b, ok := n.value.(bool)
	if !ok {
		r.fail(n.col, "expected True or False")
	}
	return b
}

func (r *reader) float(n node) float64 {
	switch v := n.value.(type) {
	case float64:
		return v
	case int64:
		return float64(v)
	}
	r.fail(n.col, "expected a number")
	return 0
}

// step reads the learning rate and the momentum of SGD.
func (r *reader) step(n node) Step {
	t, ok := n.value.(Tuple)
	if ok && len(t) == 2 {
		lr, isNumber := t[0].(float64)
		momentum, too := t[1].(float64)
		if isNumber && too && lr > 0 && lr <= 1 && momentum >= 0 && momentum < 1 {
			return Step{lr, momentum}
		}
	}
	r.fail(n.col, "expected a learning rate in (0.0, 1.0] and a momentum in [0.0, 1.0), such as (0.001, 0.9)")
	return Step{}
}

func (r *reader) uint(n node) uint64 {
	switch v := n.value.(type) {
	case int64:
		if v >= 0 {
			return uint64(v)
		}
	case uint64:
		return v
	}
	r.fail(n.col, "expected an integer between 0 and 2**64-1")
	return 0
}

func (r *reader) ints(n node) []int {
	t, ok := n.value.(Tuple)
	if !ok {
		r.fail(n.col, "expected a tuple of integers")
	}
	out := make([]int, len(t))
	for i, e := range t {
		v, ok := e.(int64)
		if !ok {
			r.fail(n.col, "expected a tuple of integers")
		}
		out[i] = int(v)
	}
	return out
}

// IsModule reports whether a call of the target results in a module: a
// constructor under torch.nn, or a method that returns its module.
func IsModule(target string) bool {
	switch target {
	case "torch.nn.Parameter", "torch.nn.parameter.Parameter":
		return false
	case "Module.train", "Module.eval", "Module.to", "Module.double", "Module.float", "Module.half", "Module.requires_grad_":
		return true
	}
	if !strings.HasPrefix(target, "torch.nn.") {
		return false
	}
	last := target[strings.LastIndexByte(target, '.')+1:]
	return last != "" && last[0] >= 'A' && last[0] <= 'Z'
}
