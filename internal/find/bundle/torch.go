package bundle

import (
	"bytes"
	"fmt"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"

	_ "embed"

	"plumb/backend"
	"plumb/internal/judge/compare"
	"plumb/internal/judge/verdict"
	"plumb/internal/refusal"
	"plumb/program"
	"plumb/tensor"
)

//go:embed torch.tmpl
var torchText string

var torchTemplate = template.Must(template.New("torch").Parse(torchText))

// torchScript is what the template of a PyTorch file is filled with.
type torchScript struct {
	Title, Reason, Origin string
	Mine, Other           string // names of this side and of the other
	Mode                  mode
	Program               string // the lines of the function program
	Result                string // the expression at the place
	Recorded              string // what the other side had there
	Stored                string // the file from which tensors are loaded; "" for none
	Want, Got             string // which of here and recorded is which
	Bound                 string // an expression of E, on which Limit depends
	Limit                 string // an expression of w; "" for equal values
	LimitText             string
	ULP                   float64
	Complex, Number       bool
	SignedZero, NaN, Bias bool
	Metadata              bool // no elements are compared
	Own                   bool // recorded is what this side itself had
	Optional              bool // the value may be missing
	Float                 bool
	Differ                bool // the difference of two elements is a number
	Strides               string
	Finish                string // how the other side ended, for people
	OtherRaised           string // the class of the other side's exception; ""
	OwnClass              string // that this side raised
	Classes               bool
	OtherBad              bool // crashed, hung, out of memory
	Timeout               float64
	Imports               []string
	Constants             string // imported from math
}

// python writes the file of a side that PyTorch runs.
type pythonFile struct {
	f           *Finding
	p           *place
	mine        *Side
	other       *Side
	outcome     *backend.Outcome // of the other side
	own         *backend.Outcome
	isReference bool   // this side is it
	stored      string // the other side's file of tensors
	usesFile    bool
	onRanks     bool // to_global is called
}

func (w *pythonFile) text() ([]byte, error) {
	s := torchScript{
		Title: w.title(), Reason: w.f.Verdict.Reason, Origin: w.origin(),
		Mine: w.mine.Framework(), Other: w.other.Framework(), Mode: w.p.Mode,
		Timeout: w.f.Timeout.Seconds(), LimitText: w.p.Limit.String(),
	}
	if s.Mine == s.Other {
		s.Mine, s.Other = w.mine.Info.Name+" "+w.mine.Info.Version, w.other.Spec
	}
	s.Want, s.Got = "here", "recorded"
	if !w.isReference {
		s.Want, s.Got = "recorded", "here"
	}
	s.Program = w.program()
	w.place(&s)
	if w.usesFile {
		s.Stored = "yes"
	}
	s.imports()
	var b bytes.Buffer
	if err := torchTemplate.Execute(&b, s); err != nil {
		return nil, err
	}
	return append(bytes.TrimSpace(gaps.ReplaceAll(b.Bytes(), []byte("\n\n\n"))), '\n'), nil
}

// gaps are more blank lines than a Python file has.
var gaps = regexp.MustCompile(`\n{4,}`)

// imports lists the modules and constants that the file needs.
func (s *torchScript) imports() {
	text := s.Program + s.Recorded + s.Bound
	for name, needed := range map[string]bool{
		"sys": true, "os": s.Stored != "" || s.Mode == byEnding, "json": s.Stored != "", "struct": s.Stored != "",
		"subprocess": s.Mode == byEnding, "operator": strings.Contains(text, "operator."),
	} {
		if needed {
			s.Imports = append(s.Imports, name)
		}
	}
	slices.Sort(s.Imports)
	var constants []string
	for _, c := range []string{"inf", "nan"} {
		if regexp.MustCompile(`\b` + c + `\b`).MatchString(text) {
			constants = append(constants, c)
		}
	}
	s.Constants = strings.Join(constants, ", ")
}

func (w *pythonFile) title() string {
	v := w.f.Verdict
	what := string(v.Word)
	if v.Kind != "" {
		what += " " + string(v.Kind)
	}
	if v.Where != nil && v.Where.Target != "" {
		what += " of " + v.Where.Target
	}
	return clean(what)
}

// clean keeps a text from ending the string that it is put into.
func clean(s string) string {
	s = strings.ReplaceAll(strings.ReplaceAll(s, `\`, `/`), `"`, `'`)
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' {
			return ' '
		}
		return r
	}, s)
}

func (w *pythonFile) origin() string {
	return clean(fmt.Sprintf("reference %s %s, candidate %s %s; test %s, seed %d, case %d",
		w.f.Reference.Framework(), w.f.Reference.Info.Version, w.f.Candidate.Framework(), w.f.Candidate.Info.Version, w.f.Test, w.f.Seed, w.f.Index))
}

// program writes the body of the function program.
func (w *pythonFile) program() string {
	p := w.f.Program
	n := w.p.calls(len(p.Calls))
	lines := []string{fmt.Sprintf("torch.manual_seed(%d)", p.Seed)}
	for i := range p.Inputs {
		lines = append(lines, w.input(i))
	}
	lines = append(lines, w.calls(n)...)
	if w.p.differentiates(len(p.Calls)) {
		lines = append(lines, w.backward()...)
	}
	return "    " + strings.ReplaceAll(strings.Join(lines, "\n"), "\n", "\n    ")
}

func (w *pythonFile) input(i int) string {
	in := &w.f.Program.Inputs[i]
	s := in.Name + " = " + w.tensor(w.f.Job.Inputs[i], inputsFile, in.Name, len(in.Name)+16)
	if in.RequiresGrad {
		s += ".requires_grad_()"
	}
	return s
}

// tensor returns the expression of a tensor, which the file holds under the key.
func (w *pythonFile) tensor(t *tensor.Tensor, file, key string, indent int) string {
	dtype := "torch." + t.DType().String()
	if t.Len() == 0 {
		return fmt.Sprintf("torch.empty_strided(%s, %s, dtype=%s)", ints(t.Shape()), ints(t.Strides()), dtype)
	}
	if overlapping(t) {
		return w.overlapped(t, dtype)
	}
	s := fmt.Sprintf("load(%q, %q)", file, key)
	if t.Len() <= literalSize {
		s = fmt.Sprintf("torch.tensor(%s, dtype=%s)", python.nested(t, strings.Repeat(" ", indent)), dtype)
	} else {
		w.usesFile = true
	}
	if !t.IsContiguous() {
		s = fmt.Sprintf("torch.empty_strided(%s, %s, dtype=%s).copy_(%s)", ints(t.Shape()), ints(t.Strides()), dtype, s)
	}
	return s
}

// overlapping reports whether two elements share their memory.
func overlapping(t *tensor.Tensor) bool {
	return tensor.Extent(t.Shape(), t.Strides()) < t.Len() || slices.Contains(t.Strides(), 0)
}

// overlapped writes the memory of a tensor and looks at it with its strides.
func (w *pythonFile) overlapped(t *tensor.Tensor, dtype string) string {
	n := tensor.Extent(t.Shape(), t.Strides())
	storage, err := t.AsStrided([]int{n}, []int{1}, t.Offset())
	if err != nil {
		panic(err) // the extent lies within the storage
	}
	return fmt.Sprintf("torch.tensor(%s, dtype=%s).as_strided_(%s, %s)", python.nested(storage, ""), dtype, ints(t.Shape()), ints(t.Strides()))
}

func ints(xs []int) string {
	t := make(program.Tuple, len(xs))
	for i, x := range xs {
		t[i] = int64(x)
	}
	return program.FormatArg(t)
}

// calls writes the first n calls as the program prints them, and gives each
// module its initial state after it is made.
func (w *pythonFile) calls(n int) []string {
	p := *w.f.Program
	p.Inputs, p.Backward, p.Calls = nil, nil, p.Calls[:n]
	_, body, _ := strings.Cut(p.String(), "\ncase(")
	_, body, _ = strings.Cut(body, "\n")
	var lines []string
	at := 0
	for line := range strings.SplitSeq(strings.TrimSuffix(body, "\n"), "\n") {
		text := strings.TrimLeft(line, " ")
		indent := line[:len(line)-len(text)]
		if at >= n || text != p.Calls[at].String() {
			lines = append(lines, line)
			continue
		}
		for _, l := range w.call(&p.Calls[at], text) {
			lines = append(lines, indent+strings.ReplaceAll(l, "\n", "\n"+indent))
		}
		at++
	}
	return lines
}

func (w *pythonFile) call(c *program.Call, text string) []string {
	switch {
	case c.Target == "operator.pow" && strings.HasPrefix(text, c.Result+" = -"): // -2 ** x is -(2 ** x)
		return []string{fmt.Sprintf("%s = operator.pow(%s, %s)", c.Result, program.FormatArg(c.Args[0]), program.FormatArg(c.Args[1]))}
	case c.Target == program.ToGlobal && w.onRanks:
		var said []string
		for _, kw := range c.Kwargs {
			if kw.Name == program.Itself {
				continue
			}
			said = append(said, kw.Name+"="+program.FormatArg(kw.Value))
		}
		return []string{fmt.Sprintf("%s = to_global(%s, %s)", c.Result, program.FormatArg(c.Args[0]), strings.Join(said, ", "))}
	case c.Target == program.ToLocal:
		return localLines(c, text)
	case c.Target == program.ToGlobal: // a whole tensor stays what it is
		return []string{fmt.Sprintf("%s = %s.clone()  # %s", c.Result, program.FormatArg(c.Args[0]), text)}
	case c.Target == program.ModuleToGlobal:
		return []string{fmt.Sprintf("%s = %s  # %s", c.Result, program.FormatArg(c.Args[0]), text)}
	case !program.IsModule(c.Target) || !strings.HasPrefix(c.Target, "torch."):
		return []string{text}
	}
	if holdsModules(c, w.f.Program) {
		return []string{text}
	}
	lines := []string{text}
	if d := w.f.Program.DType; d != tensor.Invalid && d != tensor.F32 {
		lines = []string{fmt.Sprintf("torch.set_default_dtype(torch.%s)", d), text, "torch.set_default_dtype(torch.float32)"}
	}
	return append(lines, w.state(c.Result)...)
}

// holdsModules reports whether a module is made of others, which have their state.
func holdsModules(c *program.Call, p *program.Program) bool {
	found := false
	for _, a := range c.Args {
		program.Refs(a, func(r program.Ref) {
			found = found || slices.ContainsFunc(p.Calls, func(o program.Call) bool { return o.Result == string(r) && program.IsModule(o.Target) })
		})
	}
	return found
}

func (w *pythonFile) state(module string) []string {
	var lines []string
	for _, n := range w.f.Job.State[module] {
		if n.Tensor != nil {
			lines = append(lines, fmt.Sprintf("    %q: %s,", n.Name, w.tensor(n.Tensor, inputsFile, module+"."+n.Name, len(n.Name)+26)))
		}
	}
	if lines == nil {
		return nil
	}
	return append(append([]string{module + ".load_state_dict({"}, lines...), "})")
}

// backward writes the backward pass: entries that the reference would not
// differentiate are left out.
func (w *pythonFile) backward() []string {
	p := w.f.Program
	var values, cotangents []string
	for i := range p.Backward {
		b := &p.Backward[i]
		if b.Auto && !w.requiresGrad(string(b.Value)) {
			continue
		}
		values = append(values, string(b.Value))
		t := cotangentOf(w.f, i)
		if b.Cotangent.Dist == "" || t == nil {
			cotangents = append(cotangents, fmt.Sprintf("torch.ones_like(%s)", b.Value))
			continue
		}
		cotangents = append(cotangents, w.tensor(t, inputsFile, cotangentKey(p, i), 17))
	}
	if values == nil {
		return nil
	}
	if w.p.twice() {
		return w.twice(values, cotangents)
	}
	if len(values) == 1 {
		return append([]string{fmt.Sprintf("%s.backward(%s)", values[0], cotangents[0])}, w.step()...)
	}
	lines := []string{"torch.autograd.backward(", "    [" + strings.Join(values, ", ") + "],", "    [" + strings.Join(cotangents, ",\n     ") + "],", ")"}
	return append(lines, w.step()...)
}

// step writes the optimizer's step; nothing where it does not come before the place.
func (w *pythonFile) step() []string {
	if !w.p.stepped() {
		return nil
	}
	return []string{
		"wanted = {id(p): p for module in [" + strings.Join(w.modules(), ", ") + "] for p in module.parameters() if p.requires_grad}",
		fmt.Sprintf("torch.optim.SGD(list(wanted.values()), lr=%v, momentum=%v).step()", w.f.Program.Step.LR, w.f.Program.Step.Momentum),
	}
}

// modules returns the names of the modules that the program constructs.
func (w *pythonFile) modules() []string {
	var names []string
	for _, c := range w.f.Program.Calls {
		if program.IsModule(c.Target) && strings.HasPrefix(c.Target, "torch.") {
			names = append(names, c.Result)
		}
	}
	return names
}

// twice writes the gradients of the second order: the gradients of the inputs,
// each times a cotangent, are differentiated together.
func (w *pythonFile) twice(values, cotangents []string) []string {
	p := w.f.Program
	var leaves, seconds []string
	for i := range p.Inputs {
		if in := &p.Inputs[i]; in.RequiresGrad {
			leaves = append(leaves, in.Name)
			seconds = append(seconds, w.tensor(secondCotangent(w.f, i), inputsFile, secondKey(in.Name), 17))
		}
	}
	modules := w.modules()
	lines := []string{"wanted = [" + strings.Join(leaves, ", ") + "]"}
	if modules != nil {
		lines = append(lines, "for module in ["+strings.Join(modules, ", ")+"]:",
			"    wanted += [p for p in module.parameters() if p.requires_grad and all(p is not x for x in wanted)]")
	}
	return append(lines,
		"grads = torch.autograd.grad(", "    ["+strings.Join(values, ", ")+"], wanted,", "    ["+strings.Join(cotangents, ",\n     ")+"],", "    create_graph=True, allow_unused=True)",
		"cotangents = [", "    "+strings.Join(seconds, ",\n    "), "]",
		"firsts = [(g, c) for g, c in zip(grads, cotangents) if g is not None and g.requires_grad]",
		"seconds = torch.autograd.grad([g for g, _ in firsts], wanted, [c for _, c in firsts], allow_unused=True) if firsts else [None] * len(wanted)",
		"second = {id(x): torch.zeros_like(x) if g is None else g for x, g in zip(wanted, seconds)}",
	)
}

// requiresGrad reports whether a value wants a gradient on the reference, or
// on the candidate where the reference did not come so far.
func (w *pythonFile) requiresGrad(name string) bool {
	for _, o := range []*backend.Outcome{w.f.Expected, w.f.Got} {
		if v := latest(w.f.Program, o, name); v != nil {
			return v.Tensor != nil && v.RequiresGrad
		}
	}
	return true
}

// place fills in what is compared.
func (w *pythonFile) place(s *torchScript) {
	end := w.p.ending(w.outcome)
	s.Finish = clean(finish(&end))
	if end.Status == backend.Raised {
		s.OtherRaised = refusal.Caught(end.outcome())
	}
	if w.own.Status == backend.Raised {
		s.OwnClass = w.own.Class
	}
	s.Classes = w.p.Classes
	_, s.OtherBad = badEndings[end.Status]
	if w.p.Where == nil || w.p.Mode == byException {
		return
	}
	s.Result = w.result()
	switch w.p.Mode {
	case byText:
		s.Recorded = pythonText(&end)
	case byStructure:
		s.Recorded = strconv.Quote(end.Is)
	case byRequiresGrad:
		s.Recorded = program.FormatArg(end.RequiresGrad)
	case byElements, byBits:
		w.elements(s)
	}
}

func pythonText(e *Ending) string {
	switch e.Is {
	case "None", "a bool":
		if e.Text == "" {
			return "None"
		}
		return e.Text
	}
	return strconv.Quote(e.Text)
}

// result returns the expression of the value at the place.
func (w *pythonFile) result() string {
	module, name, _ := strings.Cut(w.p.Where.Name, ".")
	switch w.p.Where.Part {
	case backend.PartGrad:
		return w.p.Where.Name + ".grad"
	case backend.PartParamGrad:
		return w.parameter() + ".grad"
	case backend.PartParam, backend.PartState:
		return fmt.Sprintf("%s.state_dict()[%q]", module, name)
	case backend.PartStep:
		return w.parameter() + ".detach()"
	case backend.PartSecondGrad:
		return fmt.Sprintf("second[id(%s)]", w.p.Where.Name)
	case backend.PartSecondParamGrad:
		return fmt.Sprintf("second[id(%s)]", w.parameter())
	}
	s := w.p.Where.Name
	for _, i := range w.p.Where.Path {
		s += fmt.Sprintf("[%d]", i)
	}
	return s
}

// parameter returns the expression of the parameter at the place.
func (w *pythonFile) parameter() string {
	module, name, _ := strings.Cut(w.p.Where.Name, ".")
	if token.IsIdentifier(name) && !strings.HasPrefix(name, "_") {
		return module + "." + name
	}
	return fmt.Sprintf("%s.get_parameter(%q)", module, name)
}

// elements fills in the comparison of two tensors.
func (w *pythonFile) elements(s *torchScript) {
	other := w.p.value(w.outcome)
	want := w.p.value(w.f.Expected).number
	if s.Own = w.p.Mode == byBits && !w.isReference; s.Own {
		other = w.p.value(w.own)
		w.stored = gotFile
	}
	s.Recorded = "None"
	s.Optional = w.p.Where.Part != backend.PartValue && w.p.Where.Part != backend.PartChange
	if other.number != nil {
		s.Recorded = w.tensor(other.number, w.stored, w.p.key(), 13)
		s.Number = other.is != "a tensor"
	}
	s.Metadata = w.p.Metadata
	s.SignedZero, s.NaN, s.Bias = w.p.Options.SignedZero, w.p.Options.NaNDiffers, w.p.Rule == verdict.Bias
	if w.p.Options.Layout && other.number != nil {
		s.Strides = ints(other.number.Strides())
	}
	if want == nil {
		return
	}
	d := want.DType()
	s.Complex, s.Float, s.Differ = d.IsComplex(), d.IsFloat(), d != tensor.Bool
	if s.Limit = w.limit(d); w.p.Limit.Error != nil && s.Limit != "" {
		s.Bound = w.tensor(w.p.Limit.Error, expectedFile, limitKey, 21)
	}
	s.ULP = float64(w.p.Limit.ULP)
}

// limit returns the expression of the largest error allowed; "" for none.
func (w *pythonFile) limit(d tensor.DType) string {
	l := &w.p.Limit
	switch {
	case !d.IsDifferentiable():
		return ""
	case l.Error != nil:
		return fmt.Sprintf("2 * %s * E + %s", short(l.Unit), short(smallest(d)))
	case l.RTol == 0 && l.ATol == 0:
		return ""
	case l.RTol == 0:
		return short(l.ATol)
	}
	return fmt.Sprintf("%s + %s * w.abs()", short(l.ATol), short(l.RTol))
}

// smallest returns the smallest normal number of a dtype.
func smallest(d tensor.DType) compare.Number {
	return compare.Number(compare.Spacing(0, d) / (2 * compare.Roundoff(d)))
}

func short(n compare.Number) string { return python.float(float64(n), tensor.F64) }

// badEndings are what no program should end in, in words.
var badEndings = map[backend.Status]string{
	backend.Crashed: "crashed", backend.TimedOut: "timed out", backend.OutOfMemory: "ran out of memory",
}

// finish says how a side ended.
func finish(e *Ending) string {
	text, _, _ := strings.Cut(e.Message, "\n")
	switch {
	case e.Status == backend.OK:
		return "ended well"
	case e.Status == backend.Raised:
		return strings.TrimSuffix("raised "+e.Class+": "+text, ": ")
	case badEndings[e.Status] != "":
		return strings.TrimSuffix(badEndings[e.Status]+": "+text, ": ")
	}
	return string(e.Status)
}
