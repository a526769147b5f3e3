package script

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.starlark.net/starlark"

	"plumb/backend"
	"plumb/internal/draw/choice"
	"plumb/internal/draw/gen"
	"plumb/op"
	"plumb/program"
	"plumb/tensor"
)

// Observer runs the calls of a program on the reference and tells the values
// of names, as they are after the last call. Its error is what Draw returns:
// the reference's rejection of the program, or a fault.
type Observer interface {
	Observe(p *program.Program, refs ...program.Ref) ([]backend.Value, error)
}

// Env is what drawing needs from outside. Goroutines may share what it refers
// to when that allows it.
type Env struct {
	// Signatures tells the parameters of a name; nil when nobody does. It is
	// asked at every call of every draw, and should remember its answers.
	Signatures backend.Signatures
	// Reference is asked for further signatures before an argument is called a
	// mistake, since a table may know fewer forms than PyTorch; may be nil.
	Reference backend.Signatures
	// Observer tells computed values; nil when there is no reference to ask.
	Observer Observer
	// Devices are those of the run; the first is the default. Empty means "cpu".
	Devices []string
	// DeviceStrict makes a test that names a CUDA device unsupported in a run
	// without one; otherwise the default device takes its place.
	DeviceStrict bool
	// Float is the dtype of random float tensors and of modules' parameters;
	// Invalid means float32.
	Float   tensor.DType
	skipped int // calls of decorated functions that drew nothing
	// Index is that of the case. A test that calls decorated functions takes
	// the calls in turn.
	Index int
	// MaxBytes bounds the size of a random tensor; 0 is gen.MaxBytes.
	MaxBytes int
	// Integers draws an eighth of the cases with small integers for the
	// elements of random float tensors and of cotangents.
	Integers bool
	// Version tells what torch.__version__ says while a test is drawn. It is
	// asked where a test looks, nil and "" mean one that the suites are written for.
	Version func() string

	// Print receives what the test prints, once a draw that prints something.
	Print func(text string)
	// Debug returns what a graph's debug of a level prints: of a program that
	// ends with the graph's call.
	Debug func(p *program.Program, o *program.Outline, level int) string

	trace func(what string, v starlark.Value) // told of what Python's random functions gave
}

// integerWeights gives an eighth of the cases integer elements.
var integerWeights = []float64{7, 1}

func lookup(s backend.Signatures, name string) ([]*op.Sig, error) {
	if s == nil {
		return nil, nil
	}
	return s.Signatures(name)
}

// maxSteps bounds what one draw, or the loading of a file, may execute.
const maxSteps = 1 << 20

// drawKey is the thread-local name of the draw.
const drawKey = "plumb"

// draw records one program.
type draw struct {
	test    *Test
	env     Env
	gen     *gen.Case
	thread  *starlark.Thread
	prog    *program.Program
	names   map[string]int // of each base: how many names it has
	inputs  map[*gen.Tensor]*symbol
	symbols map[program.Ref]*symbol
	seen    map[program.Ref]backend.Value
	sided   []*symbol // inputs that a side has
	mirrors []mirror
	options Options
	turn    *turn                     // of a test whose cases are calls of others; nil once it runs one
	fault   error                     // of the observer or the signatures; ends the draw
	fields  map[string]starlark.Value // of the test case
	blocks  []*block                  // with statements around
	groups  groups
	facts   map[program.Ref]*facts // of tensors that calls without tensors made
	asked   int                    // calls that the reference has run to tell values
	labels  map[int]string         // of a profile: descriptions, by the call
	printed strings.Builder
	outline *outline     // of the graph whose debug tells of it; else nil
	floats  tensor.DType // of what is made without a dtype, where the test set one
	seed    *int64       // what the test seeded the subjects' draws with; nil once recorded
	data    dataStream   // of what the test draws for both sides
	same    []sameInput
	files   map[string]*savedFile
	environ map[string]starlark.Value // what the test has set in os.environ
	// backward are the hooks of backward passes, passing says that one runs them.
	backward []*backwardHook
	passing  bool
	// inBackward counts the backward methods of functions that run: a subject runs them unrecorded.
	inBackward int
	// temporary counts the temporary files and folders.
	temporary int
	trying    int // try statements around
	prepared  prepared
	stops     []func() // of the sequences that may not have ended
	// expecting counts the blocks around that must raise; refusals those that
	// the program has gone on without.
	expecting, refusals int
	// ranked says that the test has asked for its rank, guessed that it then had all
	// ranks' local tensors put together.
	ranked, guessed bool
}

// close ends what may still run.
func (d *draw) close() {
	for _, stop := range d.stops {
		stop()
	}
}

// Draw runs the test once and returns the program that it recorded. The same
// decisions of src give the same program. A mistake in the test file is an
// *Error; any other error is the observer's or of the signatures.
func (t *Test) Draw(src *choice.Source, env Env) (*program.Program, error) {
	d := newDraw(t, src, env)
	defer d.close()
	d.prog.Seed = src.Key()
	if env.Integers {
		src.Own(func() { d.gen.Integers = src.Weighted(integerWeights) == 1 })
	}
	if d.options.IncludeComplex {
		d.gen.Complex = src.Bool()
	}
	defer d.handPrinted()
	err := guarded(func() error {
		result, err := d.run()
		if err == nil && d.fault == nil {
			err = d.finish(result)
		}
		return err
	})
	if errors.Is(err, errDrawsNothing) && t.drives && env.skipped < t.Calls-1 && d.fault == nil { // it returned at once: the next has its turn
		env.Index, env.skipped = env.Index+1, env.skipped+1
		return t.Draw(src, env)
	}
	if d.fault != nil {
		return nil, d.fault
	}
	if err != nil {
		return nil, t.file.located(err)
	}
	return d.prog, nil
}

func newDraw(t *Test, src *choice.Source, env Env) *draw {
	d := &draw{
		test: t, env: env, gen: gen.NewCase(src, env.Devices...), options: t.Options, prog: &program.Program{Name: t.Name},
		names: map[string]int{}, inputs: map[*gen.Tensor]*symbol{}, symbols: map[program.Ref]*symbol{}, seen: map[program.Ref]backend.Value{}, groups: groups{}, facts: map[program.Ref]*facts{}, fields: map[string]starlark.Value{},
	}
	maps.Copy(d.fields, t.attributes)
	d.gen.Float, d.gen.MaxBytes = env.Float, env.MaxBytes
	if env.Float.IsFloat() {
		d.prog.DType = env.Float
	} else if t.file != nil && t.file.floats != tensor.Invalid {
		_ = d.setDefault(t.file.floats) // there is no module yet
	}
	d.adopt()
	d.thread = &starlark.Thread{Name: t.Name, Print: func(*starlark.Thread, string) {}}
	d.thread.SetLocal(drawKey, d)
	d.gen.Caller = d.thread
	d.thread.SetMaxExecutionSteps(maxSteps)
	return d
}

// adopt takes what the test's options say of its programs.
func (d *draw) adopt() {
	o := &d.options
	d.prog.RTol, d.prog.ATol, d.prog.Tolerance = o.RTol, o.ATol, o.Tolerance
	d.prog.Shapes, d.prog.Draws = !o.CheckAllClose, o.Draws
	d.gen.Layouts, d.gen.Special, d.gen.Generic = o.Layouts, o.Special, (d.test.plain || d.test.global) && !d.test.drives
}

// run calls the test's function, or as far as the call whose turn it is.
func (d *draw) run() (starlark.Value, error) {
	t := d.test
	if t.wrong != nil {
		return nil, t.wrong
	}
	if t.lacks != "" {
		return nil, &unsupportedInFiles{t.lacks, point{int32(t.Line), 1}}
	}
	if err := d.setUp(); err != nil {
		return nil, err
	}
	if !t.drives {
		return d.body()
	}
	turn := &turn{want: d.env.Index % max(t.Calls, 1)}
	d.turn = turn
	v, err := d.body()
	switch {
	case turn.done && errors.Is(err, errTurn):
		return turn.value, nil
	case err == nil && !turn.done && len(turn.made) > 0: // fewer than when the file was loaded
		return turn.made[turn.want%len(turn.made)].run(d)
	}
	return v, err
}

// body calls the test's function.
func (d *draw) body() (starlark.Value, error) {
	args, err := d.arguments()
	if err != nil {
		return nil, err
	}
	v, err := starlark.Call(d.thread, d.test.fn, d.test.receiver(d.fields), args)
	if err != nil {
		return nil, err
	}
	return v, d.tearDown()
}

// receiver returns the arguments of the test's function.
func (t *Test) receiver(fields map[string]starlark.Value) starlark.Tuple {
	if t.signature().NumParams() == len(t.given)+len(t.fixtures.of(t.signature())) || t.class == nil && t.signature().ParamDefault(0) != nil {
		return nil
	}
	return starlark.Tuple{testCase{t.class, fields}}
}

// fail ends the draw where no error can be returned.
func (d *draw) fail(err error) {
	if d.fault == nil {
		d.fault = d.test.file.located(&positioned{d.test.file.top(d.thread), err})
	}
}

// reserved are names that a program's text uses otherwise.
var reserved = map[string]bool{
	"torch": true, "operator": true, "tensor": true, "case": true, "uniform": true, "integer": true, "slice": true,
	"normal": true, "folded": true, "gram": true, "constant": true,
	"complex": true, "float": true, "inf": true, "nan": true, "None": true, "True": true, "False": true, "import": true, "from": true,
}

// name returns a new name: the variable to which the test assigns, or base.
func (d *draw) name(base string) string {
	if hint, ok := d.test.file.hints[d.test.file.top(d.thread)]; ok && !reserved[hint] && isASCII(hint) {
		base = hint
	}
	for {
		d.names[base]++
		name := base
		if n := d.names[base]; n > 1 {
			name += strconv.Itoa(n)
		}
		if name == base || d.names[name] == 0 {
			d.names[name] = max(d.names[name], 1)
			return name
		}
	}
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r > 126 })
}

// input returns the symbol of a drawn tensor.
func (d *draw) input(t *gen.Tensor) *symbol {
	if s, ok := d.inputs[t]; ok {
		return s
	}
	name := d.name("x")
	d.prog.Inputs = append(d.prog.Inputs, program.Input{Name: name, DType: t.DType, Shape: t.Shape, Strides: t.Strides, Fill: t.Fill, RequiresGrad: t.RequiresGrad})
	s := &symbol{d: d, ref: program.Ref(name), kind: kindTensor, input: t}
	if d.test.global { // as OneFlow's test utilities make them
		s.spread = &spread{placement{gen.AllPlacements("cpu")[0]}, starlark.Tuple{sbp{Kind: 'B'}}}
	}
	d.inputs[t], d.symbols[s.ref] = s, s
	return s
}

// place is the line of the test that runs.
func (d *draw) place() string {
	f := d.test.file
	if line := f.top(d.thread).line; line > 0 {
		return f.Name + ":" + strconv.Itoa(int(line))
	}
	return ""
}

// maxCalls bounds the calls of one program.
const maxCalls = 10000

// record appends a call.
func (d *draw) record(c program.Call) (*symbol, error) {
	if len(d.prog.Calls) == maxCalls {
		return nil, fmt.Errorf("the test makes more than %d calls", maxCalls)
	}
	if d.seed != nil && draws(c.Target) {
		seed := *d.seed
		d.seed = nil
		if _, err := d.record(program.Call{Target: "torch.manual_seed", Args: []any{seed}}); err != nil {
			return nil, err
		}
	}
	base := "v"
	if program.IsModule(c.Target) {
		base = "m"
	}
	c.Result, c.Scopes, c.Place = d.name(base), d.current(), d.place()
	d.prog.Calls = append(d.prog.Calls, c)
	d.groups.join(&c)
	changes := d.prog.MayChange(len(d.prog.Calls) - 1)
	if changes || c.IsBackward() {
		clear(d.seen)
	}
	if changes {
		for _, in := range d.inputs {
			in.input = nil
		}
		for _, s := range d.sided {
			s.input = nil
		}
	}
	s := &symbol{d: d, ref: program.Ref(c.Result), at: len(d.prog.Calls) - 1, spread: d.spreadOf(&c)}
	if made := d.factsOf(&c); made != nil {
		d.facts[s.ref] = made
	}
	d.symbols[s.ref] = s
	if d.trying > 0 {
		return s, d.demand(s)
	}
	return s, nil
}

func (d *draw) device() string {
	if len(d.env.Devices) > 0 {
		return d.env.Devices[0]
	}
	return "cpu"
}

func (d *draw) isDefaultDevice(v any) bool {
	s, ok := v.(string)
	return ok && (s == d.device() || s == d.device()+":0")
}

// maxAsked bounds the calls that the reference runs to tell values to a draw.
const maxAsked = 1 << 20

// observe asks the reference for a value.
func (d *draw) observe(ref program.Ref) (backend.Value, error) {
	for _, name := range []program.Ref{ref, gradientOf(d.derives(ref))} {
		if v, ok := d.seen[name]; ok {
			return v, nil
		}
	}
	if d.env.Observer == nil {
		d.fault = fmt.Errorf("%s: %w", d.test.Name, ErrNoObserver)
		return backend.Value{}, d.fault
	}
	p := *d.prog
	p.Inputs, p.Calls, p.Backward = slices.Clip(p.Inputs), d.calls(ref), nil
	if len(p.Calls) < len(d.prog.Calls) {
		p.Inputs = d.inputsOf(p.Calls, ref)
	}
	if d.asked += len(p.Calls); d.asked > maxAsked {
		return backend.Value{}, lack("the test looks at values after too many calls, more than %d in sum, to be run by the reference each time", maxAsked)
	}
	names, asked := d.foresee(&p, ref)
	vs, err := d.env.Observer.Observe(&p, append([]program.Ref{ref}, asked...)...)
	if err != nil {
		d.fault = err
		return backend.Value{}, err
	}
	for i, name := range names {
		d.seen[name] = vs[1+i]
	}
	d.seen[ref] = vs[0]
	return vs[0], nil
}

// known observes what kind of value s is when no signature told.
func (s *symbol) known() (symbolKind, error) {
	if s.kind != kindUnknown {
		return s.kind, nil
	}
	v, err := s.d.observe(s.ref)
	if err != nil {
		return kindUnknown, err
	}
	switch {
	case v.Tensor != nil:
		s.kind = kindTensor
	case v.IsTuple:
		s.kind, s.names = kindTuple, make([]string, len(v.Tuple))
		return s.kind, s.plainElements(v.Tuple)
	default:
		s.kind = kindPlain
	}
	return s.kind, nil
}

// plainElements takes the elements of an observed tuple that are plain values,
// such as those of a size.
func (s *symbol) plainElements(vs []backend.Value) error {
	s.elems = make([]starlark.Value, len(vs))
	for i, v := range vs {
		if v.Tensor != nil || v.IsTuple || v.Module || v.Plain == nil {
			continue
		}
		e, err := s.d.fromProgram(v.Plain)
		if err != nil {
			return err
		}
		s.elems[i] = e
	}
	return nil
}

// tensor observes a tensor; nil when s is none.
func (s *symbol) tensor() (*tensor.Tensor, error) {
	v, err := s.d.observe(s.ref)
	return v.Tensor, err
}

// shape returns the dimensions of a tensor.
func (s *symbol) shape() ([]int, error) {
	if s.input != nil {
		return s.input.Shape, nil
	}
	if made := s.d.facts[s.ref]; made != nil && s.d.long() {
		return made.Shape, nil
	}
	t, err := s.tensor()
	if err != nil {
		return nil, err
	}
	if t == nil {
		return nil, fmt.Errorf("%s is not a tensor and has no shape", s.ref)
	}
	return t.Shape(), nil
}

func (s *symbol) elements() ([]starlark.Value, error) {
	kind, err := s.known()
	if err != nil {
		return nil, err
	}
	n := len(s.names)
	switch kind {
	case kindTensor:
		shape, err := s.shape()
		if err != nil {
			return nil, err
		}
		if len(shape) == 0 {
			return nil, fmt.Errorf("%s has no dimension to iterate over", s.ref)
		}
		n = shape[0]
	case kindModule, kindPlain:
		if s.hosted != nil {
			return s.hosted.iterate(s.d.thread)
		}
		if s.children != nil {
			vs, _ := sequence(listOf(s.children, func(c named) starlark.Value { return c.value }))
			return vs, nil
		}
		return nil, fmt.Errorf("%s is not a sequence", s.ref)
	}
	if n > maxElements {
		return nil, fmt.Errorf("%s has too many elements to iterate over", s.ref)
	}
	out := make([]starlark.Value, n)
	for i := range out {
		if kind == kindTuple {
			out[i], err = s.element(i)
		} else {
			out[i], _, err = s.Get(starlark.MakeInt(i))
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// item returns a plain value, or the only element of a tensor.
func (s *symbol) item() (any, error) {
	v, err := s.d.observe(s.ref)
	if err != nil {
		return nil, err
	}
	t := v.Tensor
	if t == nil {
		if v.IsTuple || v.Module {
			return nil, fmt.Errorf("%s is not a number", s.ref)
		}
		return v.Plain, nil
	}
	if t.Len() != 1 {
		return nil, fmt.Errorf("%s has %d elements; only one element has a value here", s.ref, t.Len())
	}
	switch {
	case t.DType() == tensor.Bool:
		return t.Int(0) != 0, nil
	case t.DType().IsInt():
		return t.Int(0), nil
	case t.DType().IsComplex():
		return t.At(0), nil
	}
	return t.Float(0), nil
}

func (s *symbol) truth() (bool, error) {
	kind, err := s.known()
	if err != nil {
		return false, err
	}
	if kind == kindTuple || kind == kindModule {
		return kind == kindModule || len(s.names) > 0, nil
	}
	v, err := s.item()
	if err != nil {
		return false, err
	}
	switch v := v.(type) {
	case bool:
		return v, nil
	case int64:
		return v != 0, nil
	case float64:
		return v != 0, nil
	case complex128:
		return v != 0, nil
	case string:
		return v != "", nil
	}
	return v != nil, nil
}

// property returns an attribute that is a plain value; nil for others.
func (s *symbol) property(name string) (starlark.Value, error) {
	if v, err := s.spreading(name); v != nil || err != nil {
		return v, err
	}
	switch name {
	case "shape":
		shape, err := s.shape()
		return intTuple(shape), err
	case "ndim":
		shape, err := s.shape()
		return starlark.MakeInt(len(shape)), err
	case "device":
		return starlark.String(s.d.device()), nil
	case "is_cuda", "is_npu", "is_xpu", "is_mps":
		return starlark.Bool(kindOfDevice(s.d.device()) == name[len("is_"):]), nil
	case "dtype":
		if s.input != nil {
			return dtype(s.input.DType), nil
		}
		if made := s.d.facts[s.ref]; made != nil && s.d.long() {
			return dtype(made.DType), nil
		}
		t, err := s.tensor()
		if err != nil {
			return nil, err
		}
		if t == nil {
			return nil, fmt.Errorf("%s is not a tensor and has no dtype", s.ref)
		}
		return dtype(t.DType()), nil
	case "requires_grad":
		if s.input != nil {
			return starlark.Bool(s.input.RequiresGrad), nil
		}
		if made := s.d.facts[s.ref]; made != nil && s.d.long() {
			return starlark.Bool(made.leaf), nil
		}
		v, err := s.d.observe(s.ref)
		return starlark.Bool(v.RequiresGrad), err
	}
	return nil, nil
}

func intTuple(xs []int) starlark.Value {
	out := make(starlark.Tuple, len(xs))
	for i, x := range xs {
		out[i] = starlark.MakeInt(x)
	}
	return out
}

// drawOf returns the draw of a thread. What is drawn while a file is loaded is
// drawn again for every test.
func drawOf(t *starlark.Thread, what string) (*draw, error) {
	if l, loads := t.Local(loadKey).(*loader); loads {
		l.drew = true
	}
	if d, ok := t.Local(drawKey).(*draw); ok {
		return d, nil
	}
	return nil, fmt.Errorf("%s can only be used inside a test", what)
}

// positioned is an error with its position in the rewritten source.
type positioned struct {
	at  point
	err error
}

func (p *positioned) Error() string { return p.err.Error() }
func (p *positioned) Unwrap() error { return p.err }

// argumentError is a mistake in one argument of a call.
type argumentError struct {
	index int    // of a positional argument in the source; -1 for a keyword
	name  string // of a keyword argument
	msg   string
}

func (e *argumentError) Error() string { return e.msg }
