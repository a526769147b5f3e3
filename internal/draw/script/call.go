package script

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.starlark.net/starlark"

	"plumb/internal/draw/gen"
	"plumb/op"
	"plumb/program"
	"plumb/tensor"
)

// CallInternal records a call of a function or a module's class.
func (p path) CallInternal(t *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if rest, moved := onRanks(kwargs); len(rest) < len(kwargs) {
		d, err := drawOf(t, string(p))
		if err != nil {
			return nil, err
		}
		return d.makeOnRanks(string(p), rest, moved, func(rest []starlark.Tuple) (starlark.Value, error) { return p.CallInternal(t, args, rest) })
	}
	kwargs = p.inDefault(t, args, kwargs)
	if v, err := p.onHost(t, args, kwargs); v != nil || err != nil {
		return v, err
	}
	d, err := drawOf(t, string(p))
	if err != nil {
		return nil, err
	}
	return d.call(string(p), nil, args, kwargs)
}

// method calls a method of a tensor or module.
func (d *draw) method(s *symbol, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if isAccelerator(name) && (name != "cuda" || d.lacksDevice(name)) {
		return d.method(s, "to", starlark.Tuple{starlark.String(name)}, nil)
	}
	switch name {
	case "to_global", "to_consistent":
		return d.toGlobal(s, args, kwargs)
	case "local_to_global", "global_to_global":
		return d.toGlobalOf(s, name, args, kwargs, d.isLocal(s))
	case "to_local":
		return d.toLocal(s, args, kwargs)
	case "check_meta_consistency":
		if s.spread == nil {
			return nil, local("Check failed: tensor->is_global()")
		}
		return starlark.None, nil
	case "__str__", "__repr__":
		return toStr(d.thread, starlark.Tuple{s})
	}
	if s.kind == kindModule {
		if f, ok := moduleFunctions[name]; ok && !ofPrograms[name] {
			return f.call(d, name, s, args, kwargs)
		}
		v, err := d.call("Module."+name, s, args, kwargs)
		switch {
		case err != nil:
			return nil, err
		case name == "train" || name == "eval":
			s.trained(name)
			return s, nil
		case slices.Contains(moduleConversions, name):
			s.entries = nil
			return s, nil
		}
		return v, nil
	}
	if name == "register_hook" && len(args) == 1 {
		return s.registerHook(args[0])
	}
	if known, v, err := s.observed(name, args, kwargs); known {
		return v, err
	}
	if v, err := d.retyped(s, name, args, kwargs); v != nil || err != nil {
		return v, err
	}
	switch name {
	case "cpu":
		if len(args) == 0 && d.device() == "cpu" {
			return s, nil
		}
	}
	fn := ofOneFlow("Tensor." + name)
	if fn == nil && s.side == "oneflow" { // whose methods are its functions
		fn = ofOneFlow(name)
	}
	if fn != nil {
		return starlark.Call(d.thread, fn, append(starlark.Tuple{s}, args...), kwargs)
	}
	return d.call("Tensor."+name, s, args, kwargs)
}

// moduleConversions are the methods of modules that convert their state, and
// result in the module.
var moduleConversions = []string{"to", "type", "float", "double", "half", "bfloat16", "cpu"}

// trained notes the mode that the last call gave a module.
func (s *symbol) trained(method string) {
	c := s.d.prog.Calls[len(s.d.prog.Calls)-1]
	switch {
	case method == "eval":
		s.mode = starlark.False
	case method == "train" && len(c.Args) == 2:
		s.mode = starlark.Bool(c.Args[1] == true)
	case method == "train":
		s.mode = starlark.True
	}
}

func (d *draw) integer(v starlark.Value) (int, error) {
	if g, ok := v.(*generator); ok {
		g.node.To(d.gen, gen.Int)
		drawn, err := g.draw(d.thread, (*gen.Node).Value)
		if err != nil {
			return 0, err
		}
		v = drawn
	}
	return starlark.AsInt32(v)
}

func (d *draw) getattr(s *symbol, name string) (*symbol, error) {
	c := program.Call{Target: "getattr", Args: []any{s.ref, name}}
	if s.hooked != "" && (name == "grad" || name == "is_leaf" || name == "data") {
		c.Args[0] = s.hooked
	}
	if out := d.mirrored(s.side, c); out != nil {
		return out, nil
	}
	out, err := d.record(c)
	if err != nil {
		return nil, err
	}
	out.attribute = true
	if s.kind != kindUnknown && name != "grad" && name != "is_leaf" && name != "grad_fn" && name != "training" {
		out.kind = kindTensor
	}
	return d.mirror(s.side, c, out), nil
}

// pending is a call whose generators are still to be drawn.
type pending struct {
	d      *draw
	target string
	method bool // args[0] is the receiver
	sigs   []*op.Sig
	args   []any // program arguments; a *gen.Node is still to be drawn
	kwargs []program.Kwarg
	lazy   bool   // some argument holds a *gen.Node
	global string // the type of an argument that only global mode takes
	side   string // of its arguments; "" where none is one side's alone
}

// call records a call: generators are typed by the parameters that they are
// passed to and drawn, and keyword arguments that drew nothing are dropped.
func (d *draw) call(target string, recv *symbol, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if v, err := d.callHooked(target, recv, args, kwargs); v != nil || err != nil {
		return v, err
	}
	kwargs = d.drawnBy(kwargs)
	if rest, moved := onRanks(kwargs); len(rest) < len(kwargs) {
		return d.makeOnRanks(target, rest, moved, func(rest []starlark.Tuple) (starlark.Value, error) { return d.call(target, recv, args, rest) })
	}
	if d.test.Profile != "" {
		kwargs = d.described(kwargs)
	}
	c := &pending{d: d, target: target, method: recv != nil}
	if c.sigs, d.fault = lookup(d.env.Signatures, target); d.fault != nil {
		return nil, d.fault
	}
	if err := c.arguments(recv, args, kwargs); err != nil {
		return nil, err
	}
	if c.global != "" {
		return nil, lack("%s of a %s is not supported in test files", target, c.global)
	}
	if d.expecting == 0 { // else the reference says what is wrong
		if err := c.misuse(); err != nil {
			return nil, err
		}
	}
	if c.lazy {
		if err := c.drawAll(); err != nil {
			return nil, err
		}
	}
	if recv != nil && c.elided() {
		return recv, nil
	}
	made := program.Call{Target: target, Args: c.args, Kwargs: c.kwargs}
	if out := d.mirrored(c.side, made); out != nil {
		return out, nil
	}
	if c.side == "" {
		if s, err := d.shared(made); s != nil || err != nil {
			return s, err
		}
	}
	out, err := d.record(made)
	if err != nil {
		return nil, err
	}
	c.classify(out, recv)
	return d.mirror(c.side, made, out), nil
}

// elided reports whether the call is x.to(device) of the device where x is.
func (c *pending) elided() bool {
	if c.target != "Tensor.to" && c.target != "Module.to" {
		return false
	}
	switch {
	case len(c.args) == 2 && len(c.kwargs) == 0:
		return c.d.isDefaultDevice(c.args[1])
	case len(c.args) == 1 && len(c.kwargs) == 1 && c.kwargs[0].Name == "device":
		return c.d.isDefaultDevice(c.kwargs[0].Value)
	}
	return false
}

// classify says what kind of value the call gives, as far as signatures tell.
func (c *pending) classify(out, recv *symbol) {
	switch {
	case program.IsModule(c.target):
		out.kind, out.tupled, out.made = kindModule, c.tupled(), c.target
		if recv != nil {
			out.made = recv.made
		}
		out.children = c.held()
		return
	case strings.HasSuffix(c.target, ".Parameter"):
		out.kind, out.made = kindTensor, c.target
		return
	case strings.HasPrefix(c.target, "operator."):
		if len(c.args) > 0 && c.known(c.args[0]) {
			out.kind = kindTensor
		}
		return
	case c.target == "Module.__call__":
		if out.tupled = recv.tupled; !out.tupled {
			out.kind = kindTensor
		}
		return
	}
	sig := c.match(strict)
	if sig == nil {
		sig = c.match(lenient)
	}
	switch {
	case slices.Contains(c.kwargs, program.Kwarg{Name: "return_indices", Value: false}):
		out.kind = kindTensor
	case sig != nil && c.flagged(sig):
	case sig != nil && sig.Many:
		out.list = true
	case sig != nil && sig.Plain:
		out.kind = kindPlain
	case sig != nil && len(sig.Results) > 0:
		out.setResults(sig.Results)
	}
}

// flagged reports whether flags decide how many results there are, as those of
// unique and nonzero do: signatures of other results fit as well.
func (c *pending) flagged(sig *op.Sig) bool {
	return slices.ContainsFunc(c.sigs, func(s *op.Sig) bool { return givesSeveral(s) != givesSeveral(sig) && c.matches(s, strict) })
}

func givesSeveral(s *op.Sig) bool { return s.Many || len(s.Results) > 1 }

// held are the modules that a container is made of; nil for other calls.
func (c *pending) held() []named {
	if !slices.Contains(containerPaths, path(c.target)) {
		return nil
	}
	parts := c.args
	if len(parts) == 1 {
		switch list := parts[0].(type) {
		case program.List:
			parts = list
		case program.Tuple:
			parts = list
		}
	}
	var out []named
	for i, p := range parts {
		ref, _ := p.(program.Ref)
		if s := c.d.symbols[ref]; s != nil {
			out = append(out, named{strconv.Itoa(i), s})
		}
	}
	return out
}

// tupleModules are the modules of torch.nn whose call gives a tuple; max pools
// do when they return indices.
var tupleModules = []string{"RNN", "LSTM", "GRU", "LSTMCell", "MultiheadAttention", "AdaptiveLogSoftmaxWithLoss"}

func (c *pending) tupled() bool {
	return slices.Contains(tupleModules, strings.TrimPrefix(c.target, "torch.nn.")) ||
		slices.ContainsFunc(c.kwargs, func(kw program.Kwarg) bool { return kw.Name == "return_indices" }) ||
		strings.Contains(c.target, "MaxPool") && len(c.args) >= 5
}

// known reports whether an operand is no element of an unknown value.
func (c *pending) known(v any) bool {
	r, ok := v.(program.Ref)
	return !ok || c.target != "operator.getitem" || c.d.kindOf(r) == kindTensor || c.d.symbols[r].list
}

func (s *symbol) setResults(names []string) {
	if len(names) > 1 {
		s.kind, s.names = kindTuple, names
		return
	}
	s.kind = kindTensor
}

func (c *pending) arguments(recv *symbol, args starlark.Tuple, kwargs []starlark.Tuple) error {
	c.args = make([]any, 0, len(args)+1)
	if recv != nil {
		c.args, c.side = append(c.args, recv.ref), recv.side
	}
	for i, v := range args {
		a, err := c.argument(v)
		if err != nil && len(c.sigs) == 0 {
			return lack("%s is not supported in test files: %v", c.target, err)
		}
		if err != nil {
			return &argumentError{i, "", c.target + ": " + err.Error()}
		}
		if a == any(gen.Missing{}) {
			return &argumentError{i, "", c.target + ": nothing() leaves out a keyword argument; this one is positional"}
		}
		c.args = append(c.args, a)
	}
	for _, kw := range kwargs {
		name := string(kw[0].(starlark.String))
		a, err := c.argument(kw[1])
		if err != nil {
			return &argumentError{-1, name, fmt.Sprintf("%s: argument '%s': %v", c.target, name, err)}
		}
		if a != any(gen.Missing{}) {
			c.kwargs = append(c.kwargs, program.Kwarg{Name: name, Value: a})
		}
	}
	return nil
}

// argument converts a value; generators stay for later.
func (c *pending) argument(v starlark.Value) (any, error) {
	switch v := v.(type) {
	case placement, sbp:
		c.global = v.Type()
		return nil, nil
	case *generator:
		c.lazy = true
		return v.node, nil
	case *starlark.List:
		list := make(program.List, 0, v.Len())
		for e := range starlark.Elements(v) {
			a, err := c.argument(e)
			if err != nil {
				return nil, err
			}
			list = append(list, a)
		}
		return list, nil
	case starlark.Tuple:
		tuple := make(program.Tuple, 0, len(v))
		for _, e := range v {
			a, err := c.argument(e)
			if err != nil {
				return nil, err
			}
			tuple = append(tuple, a)
		}
		return tuple, nil
	case *slice:
		return c.sliceArgument(v)
	case *symbol:
		c.side = cmp.Or(c.side, v.side)
		return v.ref, nil
	case starlark.String:
		return c.d.placed(string(v))
	}
	return c.d.toProgram(v)
}

func (c *pending) sliceArgument(v *slice) (any, error) {
	var parts [3]any
	for i, p := range []starlark.Value{v.start, v.stop, v.step} {
		a, err := c.argument(p)
		if err != nil {
			return nil, err
		}
		parts[i] = a
	}
	return program.Slice{Start: parts[0], Stop: parts[1], Step: parts[2]}, nil
}

// drawAll types and draws the generators among the arguments.
func (c *pending) drawAll() error {
	sig := c.match(strict)
	if sig == nil {
		sig = c.match(lenient)
	}
	receiver := 0
	if c.method {
		receiver = 1
	}
	for i, a := range c.args {
		p := c.positional(sig, i)
		what := fmt.Sprintf("argument %d", i+1-receiver)
		if p != nil {
			what = "argument '" + p.Name + "'"
		}
		v, err := c.fill(a, p, what)
		if err != nil {
			return &argumentError{i - receiver, "", err.Error()}
		}
		if v == any(gen.Missing{}) {
			return &argumentError{i - receiver, "", c.target + ": nothing() leaves out a keyword argument; this one is positional"}
		}
		c.args[i] = v
	}
	kept := c.kwargs[:0]
	for _, kw := range c.kwargs {
		v, err := c.fill(kw.Value, c.keyword(sig, kw.Name), "argument '"+kw.Name+"'")
		if err != nil {
			return &argumentError{-1, kw.Name, err.Error()}
		}
		if v != any(gen.Missing{}) {
			kept = append(kept, program.Kwarg{Name: kw.Name, Value: v})
		}
	}
	c.kwargs = kept
	return nil
}

// positional returns the parameter of a positional argument: of the chosen
// signature, else of the first that has it.
func (c *pending) positional(sig *op.Sig, i int) *op.Param {
	if sig != nil {
		return positionalParam(sig, i, len(c.args), c.method)
	}
	for _, s := range c.sigs {
		if p := positionalParam(s, i, len(c.args), c.method); p != nil {
			return p
		}
	}
	return nil
}

// keyword returns the parameter of a keyword argument: of the chosen
// signature, else of the first that has it.
func (c *pending) keyword(sig *op.Sig, name string) *op.Param {
	if sig != nil {
		if i := paramIndex(sig, name); i >= 0 {
			return &sig.Params[i]
		}
	}
	for _, s := range c.sigs {
		if i := paramIndex(s, name); i >= 0 {
			return &s.Params[i]
		}
	}
	return nil
}

// trainParam is the parameter of Module.train, which no signature tells.
var trainParam = &op.Param{Name: "mode", Type: op.Type{Kind: op.KBool}}

// fill replaces the generators in an argument by what they draw.
func (c *pending) fill(a any, p *op.Param, what string) (any, error) {
	if p == nil && c.target == "Module.train" {
		p = trainParam
	}
	switch a := a.(type) {
	case *gen.Node:
		return c.drawNode(a, p, what)
	case program.List:
		return a, c.fillAll(a, p, what)
	case program.Tuple:
		return a, c.fillAll(a, p, what)
	case program.Slice:
		for _, part := range []*any{&a.Start, &a.Stop, &a.Step} {
			v, err := c.fill(*part, sliceParam, what)
			if err != nil {
				return nil, err
			}
			*part = v
		}
		return a, nil
	}
	return a, nil
}

// unknownParam types an argument that the signatures do not have.
var unknownParam = &op.Param{Type: op.Type{Kind: op.KFloat}}

// sliceParam types the parts of a slice.
var sliceParam = &op.Param{Type: op.Type{Kind: op.KInt}}

func (c *pending) fillAll(list []any, p *op.Param, what string) error {
	if p != nil && p.Type.List {
		elem := *p
		elem.Type = p.Type.Element()
		p = &elem
	}
	for i, e := range list {
		v, err := c.fill(e, p, what)
		if err != nil {
			return err
		}
		if v == any(gen.Missing{}) {
			return fmt.Errorf("%s: %s: nothing() in a list", c.target, what)
		}
		list[i] = v
	}
	return nil
}

func (c *pending) drawNode(n *gen.Node, p *op.Param, what string) (any, error) {
	if u := n.Untyped(c.d.gen); u != nil {
		if p == nil && len(c.sigs) > 0 { // for PyTorch to refuse
			p = unknownParam
		}
		if p == nil {
			return nil, fmt.Errorf("%s: the type of %s is not known, which %s needs; write %s.to(int), .to(float) or .to(bool)", c.target, what, u, u)
		}
		t, ok := gen.TypeOf(p.Type)
		if !ok {
			return nil, fmt.Errorf("%s: %s is %s, which %s cannot draw; write %s.to(int), .to(float) or .to(bool)", c.target, what, p.Type, u, u)
		}
		n.To(c.d.gen, t)
	}
	v, err := n.Value(c.d.gen)
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", c.target, what, err)
	}
	if c.d.env.trace != nil {
		if _, err := c.d.traced(v); err != nil {
			return nil, err
		}
	}
	return c.d.drawn(v)
}

// traced is fromProgram, with word to the draw's trace.
func (d *draw) traced(v any) (starlark.Value, error) {
	out, err := d.fromProgram(v)
	if err == nil && d.env.trace != nil {
		d.env.trace("generator", out)
	}
	return out, err
}

// drawn converts what a generator gave into a program argument.
func (d *draw) drawn(v any) (any, error) {
	switch v := v.(type) {
	case starlark.Value:
		return d.toProgram(v)
	case *gen.Tensor:
		return d.input(v).ref, nil
	case *gen.Node:
		inner, err := v.Value(d.gen)
		if err != nil {
			return nil, err
		}
		return d.drawn(inner)
	}
	return v, nil
}

// toProgram converts a value without generators into a program argument.
func (d *draw) toProgram(v starlark.Value) (any, error) {
	switch v := memberValue(v).(type) {
	case starlark.NoneType:
		return nil, nil
	case starlark.Bool:
		return bool(v), nil
	case starlark.Int:
		if i, ok := v.Int64(); ok {
			return i, nil
		}
		return nil, fmt.Errorf("the integer %s is too large", v)
	case starlark.Float:
		return float64(v), nil
	case starlark.String:
		return string(v), nil
	case complexNumber:
		return complex128(v), nil
	case dtype:
		return tensor.DType(v), nil
	case format:
		return tensor.MemoryFormat(v), nil
	case *symbol:
		return v.ref, nil
	case *attr:
		s, err := v.resolve()
		if err != nil {
			return nil, err
		}
		return s.ref, nil
	case ellipsis:
		return program.Ellipsis{}, nil
	case missing:
		return gen.Missing{}, nil
	case *pyType:
		if v.dtype != tensor.Invalid {
			return v.dtype, nil
		}
	case foreign:
		return nil, v.unavailable()
	case path:
		return nil, fmt.Errorf("%s is a function; call it to get a value", v)
	case *starlark.List, starlark.Tuple, *slice:
		c := &pending{d: d}
		a, err := c.argument(v)
		if err != nil {
			return nil, err
		}
		return c.fill(a, nil, "an element")
	case starlark.Sequence:
		if v.Type() == "range" {
			return d.toProgram(starlark.NewList(slices.Collect(starlark.Elements(v))))
		}
	case *object: // a sequence, as a deque is
		if v.class.lookup("__getitem__") != nil && v.class.lookup("__len__") != nil && v.class.lookup("keys") == nil {
			vs, err := v.iterate(d.thread)
			if err != nil {
				return nil, err
			}
			return d.toProgram(starlark.NewList(vs))
		}
	}
	if l, ok := v.(*library); ok && strings.HasSuffix(l.name, "storage") {
		return nil, lack("the storage of a tensor as an argument is not supported in test files")
	}
	return nil, fmt.Errorf("%s cannot be passed to an operator", article(v.Type()))
}

func article(typ string) string {
	if strings.ContainsRune("aeiouAEIOU", rune(typ[0])) {
		return "an " + typ
	}
	return "a " + typ
}

// fromProgram converts a drawn or observed value for the test.
func (d *draw) fromProgram(v any) (starlark.Value, error) {
	switch v := v.(type) {
	case nil:
		return starlark.None, nil
	case starlark.Value:
		return v, nil
	case bool:
		return starlark.Bool(v), nil
	case int64:
		return starlark.MakeInt64(v), nil
	case float64:
		return starlark.Float(v), nil
	case complex128:
		return complexNumber(v), nil
	case string:
		return starlark.String(v), nil
	case tensor.DType:
		return dtype(v), nil
	case gen.Missing:
		return missing{}, nil
	case *gen.Tensor:
		return d.input(v), nil
	case program.Tuple:
		return d.fromAll(v)
	case program.List:
		items, err := d.fromAll(v)
		return starlark.NewList(items), err
	}
	return nil, fmt.Errorf("a %T has no place in a test", v)
}

func (d *draw) fromAll(vs []any) (starlark.Tuple, error) {
	out := make(starlark.Tuple, len(vs))
	for i, v := range vs {
		e, err := d.fromProgram(v)
		if err != nil {
			return nil, err
		}
		out[i] = e
	}
	return out, nil
}
