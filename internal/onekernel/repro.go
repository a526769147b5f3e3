package onekernel

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"math/cmplx"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"plumb/backend"
	"plumb/internal/judge/compare"
	"plumb/internal/judge/verdict"
	"plumb/program"
	"plumb/tensor"
)

//go:embed repro.tmpl
var reproText string

var reproTemplate = template.Must(template.New("repro").Parse(reproText))

// literalSize is how many elements are written into the program; more are in a file.
const literalSize = 64

// repro is what the template is filled with: lines and expressions of Python.
type repro struct {
	Title, Reason, Origin string
	Imports               []string
	Triton, CUDA, Load    bool
	Device                bool // it may compute on a GPU
	Problem               bool
	Named                 bool   // the parts of a result have names
	Guard                 string // "end" or "start": on which side of the arguments a page cannot be read
	Stored                bool
	Reference, Sizes      string // of a problem
	Hoisted               bool   // its sizes are numbers that it has no names for
	Given                 string // the nested lists and dicts that a model is given, "" where there are none
	Inputs                int
	Training              string
	Arguments             []string
	Names, ArgumentNames  string
	Setup                 []string
	Kernel, Against       []string
	Grad, Second          bool
	Cotangents            []string // of results, as pairs
	Laid                  Layout   // of their memory
	Seconds               []string // of gradients, None of what has none
	Twice, Alias          bool
	ResultNames           string
	Place                 int
	Limit, LimitText      string
	Slack                 float64
	DataFile              string

	s    *Session
	r    *result
	data []byte
}

// repro returns the text of the program that makes the smallest call again, and the
// elements that it reads from a file.
func (small *Smallest) repro(rep *Report) (text, data []byte, err error) {
	f := &repro{
		Title: clean(string(rep.Verdict) + ": " + rep.Kernel), Reason: clean(small.Reason), DataFile: dataFile, Slack: small.result.slack,
		Origin: clean(fmt.Sprintf("judged by %s (%s); seed %d, %s", rep.Against, rep.Reference, rep.Seed, small.Case)),
		s:      small.session, r: small.result,
	}
	f.traits()
	f.arguments()
	if err := f.calls(); err != nil {
		return nil, nil, err
	}
	f.gradient()
	f.limit()
	f.Stored = len(f.data) > 0
	f.imports()
	var b bytes.Buffer
	if err := reproTemplate.Execute(&b, f); err != nil {
		return nil, nil, err
	}
	return append(bytes.TrimSpace(gaps.ReplaceAll(b.Bytes(), []byte("\n\n\n"))), '\n'), f.data, nil
}

// gaps are more blank lines than a Python file has.
var gaps = regexp.MustCompile(`\n{4,}`)

// clean keeps a text from ending the string that it is put into.
func clean(text string) string {
	return backend.Printable(strings.NewReplacer(`\`, `/`, `"`, `'`).Replace(text), 4*widest)
}

// traits says what the call has to be like for its problem to show.
func (f *repro) traits() {
	c := &f.s.cfg.Kernel
	source, err := os.ReadFile(c.File)
	if err != nil || !strings.HasSuffix(c.File, ".py") {
		source = nil
	}
	f.Triton, f.CUDA = bytes.Contains(source, []byte("triton")) || f.r.seen.Launches > 0, bytes.Contains(source, []byte("cuda"))
	f.Load = strings.HasSuffix(c.File, ".py")
	f.Problem = c.Form == "problem"
	f.Named = namesParts(&f.r.ref.Values[0])
	for _, p := range f.r.problems {
		switch {
		case words[p.Kind] == Unsafe:
			f.Guard = f.s.guard(f.r.Case)
		case p.Kind == "aliases":
			f.Alias = true
		case p.Kind == "cached" || p.Kind == "buffer" || p.Kind == "later":
			f.Twice = true
		}
	}
	f.Twice = f.Twice || f.r.again
	f.Device = (f.Triton || f.CUDA) && f.Guard == ""
}

func (f *repro) imports() {
	needed := map[string]bool{
		"sys": true, "os": f.Stored || f.Triton || f.Load, "importlib": len(f.s.cfg.Kernel.Imports) > 0 || f.s.cfg.Kernel.Form == "operator",
		"importlib.util": f.Load, "re": f.Load && f.CUDA, "ast": f.Problem, "ctypes": f.Guard != "" || f.s.cfg.Kernel.Form == "library", "mmap": f.Guard != "",
	}
	for _, name := range slices.Sorted(maps.Keys(needed)) {
		if needed[name] {
			f.Imports = append(f.Imports, name)
		}
	}
}

// arguments writes the tensors of the call.
func (f *repro) arguments() {
	var names, quoted []string
	for i := range f.r.program.Inputs {
		in := &f.r.program.Inputs[i]
		t := in.Materialize()
		line := fmt.Sprintf("%s = laid(%s, %s, %s)", in.Name, f.elements(t.Contiguous()), ints(t.Shape()), ints(t.Strides()))
		if in.RequiresGrad {
			line += ".requires_grad_()"
		}
		f.Arguments = append(f.Arguments, line)
		names, quoted = append(names, in.Name), append(quoted, strconv.Quote(in.Name))
	}
	f.Names, f.ArgumentNames = strings.Join(names, ", "), "["+strings.Join(quoted, ", ")+"]"
}

// elements is the expression of a contiguous tensor's elements, in one dimension.
func (f *repro) elements(t *tensor.Tensor) string {
	if t.Len() <= literalSize {
		return fmt.Sprintf("torch.tensor(%s, dtype=torch.%s)", (&program.Fill{Dist: program.Literal, Data: t}).String(), t.DType())
	}
	at := len(f.data)
	f.data = append(f.data, t.Bytes()...)
	return fmt.Sprintf("stored(%d, %d, torch.%s)", at, t.Len(), t.DType())
}

func ints(all []int) string {
	v := program.Tuple{}
	for _, n := range all {
		v = append(v, int64(n))
	}
	return program.FormatArg(v)
}

// calls writes how both functions are reached and called.
func (f *repro) calls() error {
	c, call := f.s.cfg, &f.r.program.Calls[0]
	if folder, err := os.Getwd(); err == nil && c.Kernel.Form == "operator" {
		f.Setup = append(f.Setup, fmt.Sprintf("sys.path.append(%q)", folder))
	}
	for _, name := range c.Kernel.Imports {
		f.Setup = append(f.Setup, fmt.Sprintf("importlib.import_module(%q)", name))
	}
	switch own := f.arguing(&f.s.told, call); c.Kernel.Form {
	case "function":
		f.Setup = append(f.Setup, fmt.Sprintf("KERNEL = load(%q).%s", c.Kernel.File, c.Kernel.Name))
		f.Kernel = f.called(own)
	case "operator":
		f.Setup = append(f.Setup, "KERNEL = "+registered(c.Kernel.Name))
		f.Kernel = f.called(own)
	case "library":
		f.Setup = append(f.Setup, fmt.Sprintf("KERNEL = ctypes.CDLL(%q).%s", c.Kernel.File, c.Kernel.Name), "KERNEL.restype = None")
		lines, err := f.library(call)
		if err != nil {
			return err
		}
		f.Kernel = lines
	case "problem":
		f.problem()
		return nil
	default:
		return errNoProgram
	}
	if c.Reference == nil {
		f.Against = []string{"return " + call.Expr()}
		return nil
	}
	f.Load = true
	f.Setup = append(f.Setup, fmt.Sprintf("REFERENCE = load(%q).%s", c.Reference.File, c.Reference.Name))
	f.Against = []string{"return REFERENCE(" + f.arguing(&f.s.refTold, call) + ")"}
	return nil
}

var errNoProgram = errors.New("no program of PyTorch's alone is written of a task: the bundle has the call with its inputs")

// registered is the expression of an operator, mylib::f, or of a function, mylib.f.
func registered(name string) string {
	if strings.Contains(name, "::") {
		return "torch.ops." + strings.ReplaceAll(name, "::", ".")
	}
	module, rest, _ := strings.Cut(name, ".")
	return fmt.Sprintf("importlib.import_module(%q).%s", module, rest)
}

// given maps the reference's parameters to the arguments of a call; nil where they
// have no names.
func (f *repro) given(call *program.Call) map[string]any {
	if f.s.params == nil {
		return nil
	}
	given := map[string]any{}
	for i, v := range call.Args {
		if i < len(f.s.params) {
			given[f.s.params[i]] = v
		}
	}
	for _, kw := range call.Kwargs {
		given[kw.Name] = kw.Value
	}
	return given
}

// arguing writes the arguments of a call as a function takes them; see bind in
// plumb_forms.py.
func (f *repro) arguing(told *described, call *program.Call) string {
	given := f.given(call)
	var parts []string
	if given == nil || f.s.cfg.Inputs == nil && told == &f.s.refTold {
		for _, v := range call.Args {
			parts = append(parts, program.FormatArg(v))
		}
		for _, kw := range call.Kwargs {
			parts = append(parts, kw.Name+"="+program.FormatArg(kw.Value))
		}
		return strings.Join(parts, ", ")
	}
	positional := true
	for i, p := range told.own() {
		var v any
		there := i < len(told.Takes) && told.Takes[i] != nil
		if there {
			v, there = given[*told.Takes[i]]
		}
		switch {
		case !there:
			positional = false
		case positional && !p.Keyword:
			parts = append(parts, program.FormatArg(v))
		default:
			parts = append(parts, p.Name+"="+program.FormatArg(v))
		}
	}
	return strings.Join(parts, ", ")
}

// own are a function's parameters without that of the result.
func (d *described) own() []parameter {
	if d.Destination && len(d.Parameters) > 0 {
		return d.Parameters[1:]
	}
	return d.Parameters
}

// called writes the body of a function that calls the kernel, in the destination form
// with memory for the results.
func (f *repro) called(arguments string) []string {
	if !f.s.told.Destination {
		return []string{"return KERNEL(" + arguments + ")"}
	}
	return []string{"out = " + f.memory(), "v = KERNEL(*out, " + arguments + ")", "return v if v is not None else out[0] if len(out) == 1 else tuple(out)"}
}

// memory is the expression of a list of results that hold NaN.
func (f *repro) memory() string {
	var parts []string
	device := ""
	if f.Device {
		device = ", device=DEVICE"
	}
	for _, v := range f.r.ref.Values[:1] {
		for _, t := range leaves(v) {
			fill := "0"
			if t.DType().IsFloat() {
				fill = `float("nan")`
			}
			if f.Guard != "" && t.Len() > 0 {
				parts = append(parts, fmt.Sprintf("room(%d, torch.%s).fill_(%s).reshape(%s)", t.Len(), t.DType(), fill, ints(t.Shape())))
			} else {
				parts = append(parts, fmt.Sprintf("torch.full(%s, %s, dtype=torch.%s%s)", ints(t.Shape()), fill, t.DType(), device))
			}
		}
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

var (
	declared = regexp.MustCompile(`^\s*(const\s+)?([A-Za-z_0-9]+)\s*(\*?)\s*([A-Za-z_0-9]+)\s*(?:\[([^\]]*)\]\s*)?(?:=\s*(.+?)\s*)?$`)
	division = regexp.MustCompile(`/+`)
)

// library writes the call of a function in C by its declaration; see Library in
// plumb_forms.py.
func (f *repro) library(call *program.Call) ([]string, error) {
	_, inner, _ := strings.Cut(f.s.cfg.Kernel.Signature, "(")
	end := strings.LastIndex(inner, ")")
	if end < 0 {
		return nil, errors.New("--signature has no parameters")
	}
	given := f.given(call)
	lines := []string{"out = " + f.memory()}
	for i, p := range f.s.told.own() {
		if takes := f.s.told.Takes; i < len(takes) && takes[i] != nil {
			if v, ok := given[*takes[i]]; ok && program.FormatArg(v) != p.Name {
				lines = append(lines, p.Name+" = "+program.FormatArg(v))
			}
		}
	}
	sizes, outs := map[string]string{}, 0
	if f.s.cfg.Inputs != nil {
		for name, place := range f.s.cfg.Inputs.places() {
			sizes[name] = fmt.Sprintf("%s.shape[%d]", place[0], place[1])
		}
	}
	var args []string
	for _, text := range topLevel(inner[:end]) {
		m := declared.FindStringSubmatch(text)
		if m == nil {
			return nil, fmt.Errorf("--signature: %q is no parameter", strings.TrimSpace(text))
		}
		name, shape := m[4], m[5]
		switch {
		case m[3] != "" && m[1] != "":
			for axis, size := range strings.Split(shape, ",") {
				if size = strings.TrimSpace(size); size != "" && sizes[size] == "" {
					sizes[size] = fmt.Sprintf("%s.shape[%d]", name, axis)
				}
			}
			args = append(args, "ctypes.c_void_p("+name+".data_ptr())")
		case m[3] != "":
			args = append(args, fmt.Sprintf("ctypes.c_void_p(out[%d].data_ptr())", outs))
			outs++
		default:
			v := name
			if m[6] != "" {
				v = division.ReplaceAllString(m[6], "//")
			} else if sizes[name] != "" {
				v = sizes[name]
			}
			args = append(args, fmt.Sprintf("ctypes.c_%s(%s)", ctype(m[2]), v))
		}
	}
	return append(lines, "KERNEL("+strings.Join(args, ", ")+")", "return out[0] if len(out) == 1 else tuple(out)"), nil
}

// ctype is what ctypes calls a type of C, after "c_".
func ctype(name string) string {
	if name == "size_t" {
		return name
	}
	return strings.TrimSuffix(name, "_t")
}

// problem writes the calls of a problem's two models.
func (f *repro) problem() {
	c := f.s.cfg
	var args []string
	for i, v := range f.r.program.Calls[0].Args {
		args = append(args, program.FormatArg(v))
		if !f.r.sig.Args[i].State {
			f.Inputs++
		}
	}
	if told := f.s.maker.form.(*problem).told; told != nil && bytes.ContainsAny(told.Given[1:], "{") {
		f.Given = string(told.Given)
	}
	f.Hoisted = f.s.refTold.Hoisted
	f.Training = program.FormatArg(f.r.training())
	f.Reference = strconv.Quote(c.Reference.File)
	var sizes []string
	for _, name := range slices.Sorted(maps.Keys(f.r.Sizes)) {
		sizes = append(sizes, fmt.Sprintf("%q: %d", name, f.r.Sizes[name]))
	}
	f.Sizes = "{" + strings.Join(sizes, ", ") + "}"
	f.Setup = append(f.Setup, fmt.Sprintf("KERNEL = load(%q).ModelNew", c.Kernel.File))
	list := ", [" + strings.Join(args, ", ") + "])"
	f.Kernel = []string{"return call(KERNEL(*INIT)" + list}
	f.Against = []string{`return call(PROBLEM["Model"](*INIT)` + list}
}

// gradient writes the cotangents.
func (f *repro) gradient() {
	results := f.resultNames()
	p := f.r.program
	values := map[program.Ref]string{resultName: "v"}
	for _, c := range p.Calls[1:] {
		values[program.Ref(c.Result)] = fmt.Sprintf("%s[%s]", values[c.Args[0].(program.Ref)], program.FormatArg(c.Args[1]))
	}
	for i := range p.Backward {
		b := &p.Backward[i]
		at := slices.IndexFunc(p.Calls, func(c program.Call) bool { return program.Ref(c.Result) == b.Value })
		if at < 0 || at >= len(f.r.ref.Values) || f.r.ref.Values[at].Tensor == nil {
			continue
		}
		t := f.r.ref.Values[at].Tensor
		f.Cotangents = append(f.Cotangents, fmt.Sprintf("(%s, %s)", values[b.Value], f.stream(t.DType(), b.Cotangent.Cotangent(numbers(t.DType(), t.Len())))))
	}
	f.Grad, f.Second, f.Laid = len(f.Cotangents) > 0, p.Second.Dist != "", f.r.Case.Cotangents
	for _, order := range []struct {
		holds bool
		name  string
	}{{f.Grad, "the gradient of "}, {f.Grad && f.Second, "the second gradient of "}} {
		for i := range p.Inputs {
			in := &p.Inputs[i]
			if !order.holds || !in.RequiresGrad {
				continue
			}
			results = append(results, strconv.Quote(order.name+in.Name))
			if order.name != "the gradient of " {
				f.Seconds = append(f.Seconds, f.stream(in.DType, p.SecondCotangent(i)))
			}
		}
	}
	f.ResultNames = "[" + strings.Join(results, ", ") + "]"
}

// resultNames are what the results of the call are called.
func (f *repro) resultNames() []string {
	var names []string
	for range leaves(f.r.ref.Values[0]) {
		names = append(names, `"the result"`)
	}
	for i := range names {
		if len(names) > 1 {
			names[i] = fmt.Sprintf(`"result %d"`, i)
		}
	}
	return names
}

func numbers(dt tensor.DType, elements int) int {
	if dt.IsComplex() {
		return 2 * elements
	}
	return elements
}

// stream is the expression of a cotangent's numbers, for a tensor of a dtype.
func (f *repro) stream(dt tensor.DType, numbers []float64) string {
	t := tensor.New(tensor.F64, len(numbers))
	copy(tensor.Data[float64](t), numbers)
	if dt.IsComplex() {
		return "torch.view_as_complex(" + f.elements(t) + ".reshape(-1, 2))"
	}
	return f.elements(t)
}

// limit writes what may lie between the elements at the place that differs.
func (f *repro) limit() {
	if f.r.verdict == nil {
		return
	}
	for i := range f.r.verdict.Differences {
		d := &f.r.verdict.Differences[i]
		if d.Diff.Rule != compare.Distance && d.Diff.Rule != compare.NonFinite {
			continue
		}
		place, ok := f.placed(&d.Where)
		want := verdict.At(f.r.ref, d.Where)
		if !ok || want == nil {
			continue
		}
		limits := tensor.New(tensor.F64, want.Len())
		for k := range want.Len() {
			if allowed := f.r.slack * d.Limit.Allows(want, k); allowed >= 0 { // no NaN
				limits.Set(k, complex(allowed, 0))
			}
		}
		f.widen(limits, f.r.roundingOf(d.Where), want, verdict.At(f.r.kernel, d.Where))
		f.Place, f.Limit, f.LimitText = place, f.elements(limits), d.Limit.Times(f.r.slack).String()
		return
	}
}

// widen gives every limit the roundings of a gradient, as long as what is wrong stays so.
func (f *repro) widen(limits *tensor.Tensor, least float64, want, got *tensor.Tensor) {
	if got == nil || got.Len() != want.Len() {
		return
	}
	all := tensor.Data[float64](limits)[:limits.Len()]
	beyond := func(k int) bool { return cmplx.Abs(got.At(k)-want.At(k)) > max(all[k], least) }
	for k := range all {
		if beyond(k) {
			for i := range all {
				all[i] = max(all[i], least)
			}
			return
		}
	}
}

// placed is where in the list of results and gradients a difference is.
func (f *repro) placed(w *verdict.Where) (int, bool) {
	switch w.Part {
	case backend.PartValue:
		if len(w.Path) > 1 || w.Name != resultName {
			return 0, false
		}
		at := append(slices.Clone(w.Path), 0)[0]
		if f.Named {
			at--
		}
		return at, true
	case backend.PartGrad, backend.PartSecondGrad:
		at := len(leaves(f.r.ref.Values[0]))
		if w.Part == backend.PartSecondGrad {
			at += f.differentiated()
		}
		for _, in := range f.r.program.Inputs {
			if in.Name == w.Name && in.RequiresGrad {
				return at, f.Grad
			}
			if in.RequiresGrad {
				at++
			}
		}
	}
	return 0, false
}

// namesParts reports whether a result is a dict, which comes as the names and then the parts.
func namesParts(v *backend.Value) bool {
	if len(v.Tuple) == 0 {
		return false
	}
	_, named := v.Tuple[0].Plain.(string)
	return named
}

// differentiated is how many arguments have a gradient.
func (f *repro) differentiated() int {
	n := 0
	for i := range f.r.program.Inputs {
		if f.r.program.Inputs[i].RequiresGrad {
			n++
		}
	}
	return n
}
