package bundle

import (
	"bytes"
	"fmt"
	"go/format"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"text/template"

	_ "embed"

	"plumb/backend"
	"plumb/internal/module"
	"plumb/op"
	"plumb/program"
	"plumb/tensor"
)

//go:embed native.tmpl
var nativeText string

var nativeTemplate = template.Must(template.New("native").Parse(nativeText))

// goMod is the module file of a bundle's Go test, for the module of Plumb and a
// place of its source: the packages that the test needs of Plumb import two
// modules besides.
const goMod = `module repro

go 1.26.0

require %[1]s v0.0.0

require (
	github.com/klauspost/compress v1.20.4 // indirect
	golang.org/x/sys v0.50.0 // indirect
)

// Where Plumb's source is.
replace %[1]s => /path/to/plumb
`

const goSum = `github.com/google/go-cmp v0.7.0 h1:wk8382ETsv4JYUZwIsn6YpYiWiBsYLSJiTsyBybVuN8=
github.com/google/go-cmp v0.7.0/go.mod h1:pXiqmnSA92OHEEa9HXL2W4E7lf9JzCmGVUdgjX3N/iU=
github.com/klauspost/compress v1.20.4 h1:dD0v/bvxtjCBqQu6sx1TNWkalEY5lNTIe+HY9w8TeNI=
github.com/klauspost/compress v1.20.4/go.mod h1:LUdAzn7YLVvxLpc7y3V1m40wESHTgc1422pwwBSKYuI=
golang.org/x/sys v0.50.0 h1:dkKZEFTEKaLr1sjhs0WiKqoi8Jj5nHbS3Njmx1UoMJs=
golang.org/x/sys v0.50.0/go.mod h1:hNLxWAXmnKAxqDtdwIYC4bM9oQPEecfsnNMuSxOs3og=
`

// nativeScript is what the template of a Go test is filled with.
type nativeScript struct {
	Title, Reason, Origin string
	Text                  []string // the program, for people
	Direct                bool     // the calls of package api; else the bundle's program
	Standard, Imports     []string
	Lines                 string // the body of the function run
	Finish                string // how the reference ended
	Strided, One, Grad    bool   // helpers that are called
}

// addNative writes the Go test of a candidate that Plumb's own operators run.
func (b *Bundle) addNative(f *Finding, p *place, role string) error {
	w := &pythonFile{f: f, p: p}
	s := nativeScript{
		Title: w.title(), Reason: clean(f.Verdict.Reason), Origin: w.origin(),
		Text: strings.Split(strings.TrimSpace(f.Program.String()), "\n"), Finish: finish(new(p.ending(f.Expected))),
	}
	g := &goFile{f: f, p: p, names: map[string]bool{}}
	s.Standard, s.Imports = []string{"testing"}, []string{module.Path}
	if g.expressible() {
		g.fill(&s)
	}
	var text bytes.Buffer
	if err := nativeTemplate.Execute(&text, s); err != nil {
		return fmt.Errorf("repro_test.go: %w", err)
	}
	source, err := format.Source(text.Bytes())
	if err != nil {
		return fmt.Errorf("repro_test.go: %w", err)
	}
	b.files["repro_test.go"], b.files[goModFile], b.files[goSumFile] = source, fmt.Appendf(nil, goMod, module.Path), []byte(goSum)
	b.m.Sides["native"] = script{File: "repro_test.go", Role: role}
	b.m.Run = append(b.m.Run, "go mod edit -replace "+module.Path+"=/path/to/plumb && go test .")
	return nil
}

// goFile writes a program as calls of package api.
type goFile struct {
	f       *Finding
	p       *place
	names   map[string]bool // that a later line reads
	strided bool
	one     bool
}

// expressible reports whether package api can say the program: no change in
// place, no Python value among the results.
func (g *goFile) expressible() bool {
	p := g.f.Program
	n := g.p.calls(len(p.Calls))
	if g.p.Mode != byElements && g.p.Mode != byException || g.p.Classes || g.p.Metadata || g.p.twice() || g.p.stepped() || g.p.Where.Part == backend.PartChange {
		return false
	}
	if strings.Contains(p.String(), "\n    ") { // a block of statements
		return false
	}
	if g.p.differentiates(len(p.Calls)) && (len(p.Backward) > 1 || len(p.Backward) == 1 && cotangentOf(g.f, 0) == nil) {
		return false
	}
	for i := range n {
		c := &p.Calls[i]
		v := g.result(i)
		last := i == n-1 && g.p.Mode == byException
		if len(c.Scopes) > 0 || aboutLeaves(c) || !plainCall(c) || v == nil && !last || v != nil && !v.Module && !tensors(v) {
			return false
		}
		if r, ok := firstRef(c); c.Target == "getattr" && (!ok || g.tuple(r)) {
			return false
		}
	}
	return true
}

// aboutLeaves reports whether a call takes gradients or makes leaves, which
// package api says in other words.
func aboutLeaves(c *program.Call) bool {
	switch c.Target {
	case "Tensor.backward", "Tensor.retain_grad", "torch.nn.Parameter", "torch.nn.parameter.Parameter", "setattr":
		return true
	case "getattr":
		return len(c.Args) == 2 && (c.Args[1] == "grad" || c.Args[1] == "data" || c.Args[1] == "is_leaf")
	}
	return strings.HasPrefix(c.Target, "torch.autograd.")
}

// plainCall reports whether a call is one of an operator that changes nothing.
func plainCall(c *program.Call) bool {
	switch c.Target {
	case "Module.__call__", "Module.forward", "Module.train", "Module.eval":
		_, ok := firstRef(c)
		return ok
	}
	target := strings.HasPrefix(c.Target, "torch.") || strings.HasPrefix(c.Target, "Tensor.") || strings.HasPrefix(c.Target, "operator.") || c.Target == "getattr"
	return target && !c.AboutRanks() && !op.InPlace(c.Target) && !slices.Contains(c.Args, any(true)) && !slices.ContainsFunc(c.Kwargs, func(kw program.Kwarg) bool {
		return kw.Name == "out" || kw.Name == "inplace"
	})
}

func firstRef(c *program.Call) (program.Ref, bool) {
	if len(c.Args) == 0 {
		return "", false
	}
	r, ok := c.Args[0].(program.Ref)
	return r, ok
}

// tensors reports whether a value is a tensor or a tuple of tensors.
func tensors(v *backend.Value) bool {
	if !v.IsTuple {
		return v.Tensor != nil
	}
	return !slices.ContainsFunc(v.Tuple, func(e backend.Value) bool { return e.Tensor == nil })
}

// result returns what a call gave, on the candidate if it came so far.
func (g *goFile) result(i int) *backend.Value {
	for _, o := range []*backend.Outcome{g.f.Got, g.f.Expected} {
		if i < len(o.Values) {
			return &o.Values[i]
		}
	}
	return nil
}

// tuple reports whether a name stands for a tuple.
func (g *goFile) tuple(r program.Ref) bool {
	for i := range g.f.Program.Calls {
		if v := g.result(i); g.f.Program.Calls[i].Result == string(r) && v != nil {
			return v.IsTuple
		}
	}
	return false
}

func (g *goFile) fill(s *nativeScript) {
	p := g.f.Program
	s.Direct = true
	s.Lines = g.body(g.p.calls(len(p.Calls)))
	s.Strided, s.One = g.strided, g.one
	s.Grad = strings.Contains(s.Lines, "return grad(")
	s.Standard = []string{"testing"}
	if strings.Contains(s.Lines, "math.") {
		s.Standard = []string{"math", "testing"}
	}
	s.Imports = []string{module.Path, module.Join("api")}
	if strings.Contains(s.Lines, "op.") {
		s.Imports = append(s.Imports, module.Join("op"))
	}
	s.Imports = append(s.Imports, module.Join("tensor"))
}

// body writes the inputs, the first n calls, the backward pass and the result.
func (g *goFile) body(n int) string {
	p := g.f.Program
	place, expr := g.place()
	g.names[place] = true
	for i := range n {
		p.Calls[i].EachRef(func(r program.Ref) { g.names[string(r)] = true })
	}
	differentiates := g.p.differentiates(len(p.Calls))
	if differentiates {
		for i := range p.Backward {
			g.names[string(p.Backward[i].Value)] = true
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "s.Seed(%d)\n", p.Seed)
	if p.DType != tensor.Invalid && p.DType != tensor.F32 {
		fmt.Fprintf(&b, "s.DefaultDType(tensor.%s)\n", goDTypes[p.DType])
	}
	for i := range p.Inputs {
		g.input(&b, i)
	}
	for i := range n {
		g.call(&b, i)
	}
	if differentiates {
		for i := range p.Backward {
			g.backward(&b, i)
		}
	}
	fmt.Fprintf(&b, "return %s, nil\n", expr)
	return b.String()
}

// place returns the name that holds the result and the expression of it.
func (g *goFile) place() (name, expr string) {
	if g.p.Mode == byException {
		return "", "nil"
	}
	w := g.p.Where
	v := ident(w.Name)
	switch {
	case w.Part == backend.PartGrad:
		return w.Name, "grad(" + v + ")"
	case w.Part != backend.PartValue:
		module, name, _ := strings.Cut(w.Name, ".")
		get := fmt.Sprintf("%s.Get(%q)", ident(module), name)
		if w.Part == backend.PartParamGrad {
			return module, "grad(" + get + ")"
		}
		return module, get + ".Unwrap()"
	case len(w.Path) > 0:
		return w.Name, fmt.Sprintf("%s[%d].Unwrap()", v, w.Path[len(w.Path)-1])
	}
	return w.Name, v + ".Unwrap()"
}

// taken are the names that a test uses itself.
var taken = []string{
	"s", "t", "err", "api", "op", "tensor", "plumb", "math", "testing", "one", "strided", "grad", "run",
	"any", "bool", "byte", "complex", "complex64", "complex128", "float32", "float64", "int", "int8", "int16", "int32", "int64", "uint8", "string", "new", "nil", "true", "false",
}

// ident returns the Go name of a program's name.
func ident(name string) string {
	if token.IsKeyword(name) || slices.Contains(taken, name) || name == "_" {
		return name + "_"
	}
	return name
}

func (g *goFile) input(b *strings.Builder, i int) {
	in := &g.f.Program.Inputs[i]
	if !g.names[in.Name] {
		return
	}
	fmt.Fprintf(b, "%s := s.Wrap(%s)\n", ident(in.Name), g.tensor(g.f.Job.Inputs[i], inputsFile, in.Name))
	if in.RequiresGrad {
		fmt.Fprintf(b, "if err := %s.RequireGrad(); err != nil {\nreturn nil, err\n}\n", ident(in.Name))
	}
}

func (g *goFile) call(b *strings.Builder, i int) {
	c := &g.f.Program.Calls[i]
	if r, ok := firstRef(c); ok && c.Target == "operator.getitem" && g.tuple(r) {
		if k, ok := c.Args[1].(int64); ok {
			g.element(b, c.Result, r, int(k))
			return
		}
	}
	target, args := c.Target, c.Args
	switch {
	case strings.HasPrefix(target, "Module."):
		g.moduleCall(b, i)
		return
	case program.IsModule(target):
		g.construct(b, i)
		return
	}
	if target == "getattr" {
		target, args = fmt.Sprintf("Tensor.%s", c.Args[1]), c.Args[:1]
	}
	parts := []string{strconv.Quote(target)}
	for k, a := range args {
		if k == 1 && (target == "operator.getitem" || target == "Tensor.__getitem__") {
			parts = append(parts, g.index(a))
			continue
		}
		parts = append(parts, g.arg(a))
	}
	g.results(b, i, "s.Call("+strings.Join(append(parts, g.kwargs(c)...), ", ")+")")
}

func (g *goFile) kwargs(c *program.Call) []string {
	var parts []string
	for _, kw := range c.Kwargs {
		parts = append(parts, fmt.Sprintf("op.Kw(%q, %s)", kw.Name, g.arg(kw.Value)))
	}
	return parts
}

// results writes a call with its results, if a later line reads them.
func (g *goFile) results(b *strings.Builder, i int, expr string) {
	v := g.result(i)
	if name := g.f.Program.Calls[i].Result; g.names[name] && v != nil {
		if !v.IsTuple {
			expr, g.one = "one("+expr+")", true
		}
		assign(b, name, expr)
		return
	}
	fmt.Fprintf(b, "if _, err := %s; err != nil {\nreturn nil, err\n}\n", expr)
}

func assign(b *strings.Builder, name, expr string) {
	fmt.Fprintf(b, "%s, err := %s\nif err != nil {\nreturn nil, err\n}\n", ident(name), expr)
}

// construct writes a module's constructor, and its state after it.
func (g *goFile) construct(b *strings.Builder, i int) {
	c := &g.f.Program.Calls[i]
	parts := append([]string{strconv.Quote(c.Target)}, g.args(c.Args)...)
	expr := "s.Module(" + strings.Join(append(parts, g.kwargs(c)...), ", ") + ")"
	state := g.f.Job.State[c.Result]
	if holdsModules(c, g.f.Program) {
		state = nil
	}
	if !g.names[c.Result] && len(state) == 0 {
		fmt.Fprintf(b, "if _, err := %s; err != nil {\nreturn nil, err\n}\n", expr)
		return
	}
	assign(b, c.Result, expr)
	for _, n := range state {
		if n.Tensor != nil {
			fmt.Fprintf(b, "if err := %s.Load(%q, %s); err != nil {\nreturn nil, err\n}\n",
				ident(c.Result), n.Name, g.tensor(n.Tensor, inputsFile, c.Result+"."+n.Name))
		}
	}
}

// moduleCall writes the call of a module or of a method of it.
func (g *goFile) moduleCall(b *strings.Builder, i int) {
	c := &g.f.Program.Calls[i]
	module := g.arg(c.Args[0])
	switch c.Target {
	case "Module.train", "Module.eval":
		mode := c.Target == "Module.train"
		for _, a := range c.Args[1:] {
			mode = mode && a == true
		}
		for _, kw := range c.Kwargs {
			mode = mode && kw.Value == true
		}
		fmt.Fprintf(b, "%s.Train(%t)\n", module, mode)
		if g.names[c.Result] {
			fmt.Fprintf(b, "%s := %s\n", ident(c.Result), module)
		}
		return
	}
	g.results(b, i, module+".Call("+strings.Join(append(g.args(c.Args[1:]), g.kwargs(c)...), ", ")+")")
}

// element writes the k-th element of a tuple.
func (g *goFile) element(b *strings.Builder, name string, of program.Ref, k int) {
	if !g.names[name] {
		fmt.Fprintf(b, "_ = %s\n", ident(string(of)))
		return
	}
	if k < 0 {
		fmt.Fprintf(b, "%s := %s[len(%s)%d]\n", ident(name), ident(string(of)), ident(string(of)), k)
		return
	}
	fmt.Fprintf(b, "%s := %s[%d]\n", ident(name), ident(string(of)), k)
}

// arg returns the Go expression of an argument.
func (g *goFile) arg(v any) string {
	switch v := v.(type) {
	case nil:
		return "nil"
	case program.Ref:
		return ident(string(v))
	case bool, int64:
		return fmt.Sprint(v)
	case float64:
		return golang.float(v, tensor.F64)
	case complex128:
		return fmt.Sprintf("complex(%s, %s)", golang.float(real(v), tensor.F64), golang.float(imag(v), tensor.F64))
	case string:
		return strconv.Quote(v)
	case tensor.DType:
		return "tensor." + goDTypes[v]
	case tensor.MemoryFormat:
		return fmt.Sprintf("tensor.MemoryFormat(%d)", v)
	case program.List:
		return "[]any{" + strings.Join(g.args(v), ", ") + "}"
	case program.Tuple:
		return "[]any{" + strings.Join(g.args(v), ", ") + "}"
	case program.Slice:
		var parts []string
		for name, x := range map[string]any{"Start": v.Start, "Stop": v.Stop, "Step": v.Step} {
			if x != nil {
				parts = append(parts, fmt.Sprintf("%s: new(%s)", name, g.arg(x)))
			}
		}
		slices.Sort(parts)
		return "op.Slice{" + strings.Join(parts, ", ") + "}"
	case program.Ellipsis:
		return "op.Ellipsis{}"
	}
	return fmt.Sprintf("%v", v)
}

func (g *goFile) args(vs []any) []string {
	var parts []string
	for _, v := range vs {
		parts = append(parts, g.arg(v))
	}
	return parts
}

func (g *goFile) index(v any) string {
	if t, ok := v.(program.Tuple); ok {
		return "api.Index{" + strings.Join(g.args(t), ", ") + "}"
	}
	return "api.Index{" + g.arg(v) + "}"
}

func (g *goFile) backward(b *strings.Builder, i int) {
	w := &g.f.Program.Backward[i]
	py := pythonFile{f: g.f}
	if w.Auto && !py.requiresGrad(string(w.Value)) {
		return
	}
	fmt.Fprintf(b, "if err := %s.Backward(s.Wrap(%s)); err != nil {\nreturn nil, err\n}\n",
		ident(string(w.Value)), g.tensor(cotangentOf(g.f, i), inputsFile, cotangentKey(g.f.Program, i)))
}

var goDTypes = map[tensor.DType]string{
	tensor.Bool: "Bool", tensor.U8: "U8", tensor.I8: "I8", tensor.I16: "I16", tensor.I32: "I32", tensor.I64: "I64",
	tensor.F16: "F16", tensor.BF16: "BF16", tensor.F32: "F32", tensor.F64: "F64", tensor.C64: "C64", tensor.C128: "C128",
}

var golang = notation{"{", "}", "true", "false", "math.NaN()", "math.Inf(1)", "math.Inf(-1)", "complex(%s, %s)", "math.Copysign(0, -1)"}

// tensor returns the expression of a *tensor.Tensor, which the file holds under the key.
func (g *goFile) tensor(t *tensor.Tensor, file, key string) string {
	shape := "[]int{" + strings.Trim(ints(t.Shape()), "(),") + "}"
	s := fmt.Sprintf("plumb.LoadTensor(%q, %q)", file, key)
	switch d := t.DType(); {
	case t.Len() > literalSize:
	case d.IsFloat():
		s = fmt.Sprintf("tensor.Float64s(tensor.%s, %s%s)", goDTypes[d], shape, comma(elements(t)))
	default:
		s = fmt.Sprintf("tensor.Of(tensor.%s, %s, []%s{%s})", goDTypes[d], shape, goTypes[d], strings.Join(elements(t), ", "))
	}
	if !slices.Equal(t.Strides(), tensor.ContiguousStrides(t.Shape())) {
		g.strided = true
		s = fmt.Sprintf("strided(%s%s)", s, comma(strings.FieldsFunc(ints(t.Strides()), func(r rune) bool { return strings.ContainsRune("(), ", r) })))
	}
	return s
}

var goTypes = map[tensor.DType]string{
	tensor.Bool: "bool", tensor.U8: "uint8", tensor.I8: "int8", tensor.I16: "int16", tensor.I32: "int32", tensor.I64: "int64",
	tensor.C64: "complex64", tensor.C128: "complex128",
}

func comma(parts []string) string {
	if len(parts) == 0 {
		return ""
	}
	return ", " + strings.Join(parts, ", ")
}

func elements(t *tensor.Tensor) []string {
	out := make([]string, t.Len())
	for i := range out {
		out[i] = golang.element(t, i)
		if t.DType() == tensor.C64 && strings.Contains(out[i], "math.") {
			out[i] = "complex64(" + out[i] + ")"
		}
	}
	return out
}
