package diopi

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"plumb/internal/eager"
	"plumb/op"
	"plumb/program"
	"plumb/tensor"
)

// gap says why the interface has no form for a call, or the library no function.
type gap struct{ reason string }

func (g *gap) Error() string { return g.reason }

func gapf(format string, args ...any) error { return &gap{fmt.Sprintf(format, args...)} }

// binding makes the arguments in C of an operator's call.
type binding struct {
	args    op.Args
	out     []op.Meta        // of the results; nil where they are not known before
	results []op.Value       // of a call that is differentiated
	cot     []op.Value       // the cotangents of its results
	saved   []*tensor.Tensor // what it wrote beside its results
	inPlace bool
	tapes   bool // the program is differentiated
	whole   bool // the call is a case's: see whole.txt

	tensors []*tensor.Tensor // that the call reads
	writes  []write          // the tensors that it may write, in the order of its parameters
}

// write says what a tensor that the function may write is.
type write struct {
	result int          // of the operator's results; -1 for none
	saved  bool         // for the gradient
	param  string       // of the operator, whose tensor it is or whose gradient
	dtype  tensor.DType // of the result, where the function writes a number in C's; else Invalid
}

// call returns the call as a program for the child.
func (b *binding) call(e *entry) (*program.Program, error) {
	if err := b.serves(e); err != nil {
		return nil, err
	}
	return b.step(e)
}

// step is the call of one function of an entry.
func (b *binding) step(e *entry) (*program.Program, error) {
	b.tensors, b.writes = nil, nil
	c := program.Call{Result: "y", Target: e.function}
	for i, text := range e.args {
		v, err := b.argument(text, e.kinds()[i])
		if err != nil {
			return nil, err
		}
		c.Args = append(c.Args, v)
	}
	p := &program.Program{Calls: []program.Call{c}}
	for i, t := range b.tensors {
		p.Inputs = append(p.Inputs, program.Input{Name: inputName(i), DType: t.DType(), Shape: t.Shape()})
	}
	return p, nil
}

// keep has the next function of the entry see what one before it wrote.
func (b *binding) keep(got []*tensor.Tensor) {
	for i, w := range b.writes {
		switch {
		case w.saved:
			b.saved = append(b.saved, got[i])
		case w.param != "":
			tensorOf(b.args.Value(op.TensorArg(w.param))).CopyFrom(got[i])
		}
	}
}

// last is the last of the operator's results that the call writes.
func (b *binding) last() int {
	last := max(0, len(b.out)-1)
	for _, w := range b.writes {
		last = max(last, w.result)
	}
	return last
}

func inputName(i int) string { return "t" + strconv.Itoa(i) }

// serves looks at the parameters that the entry does not mention.
func (b *binding) serves(e *entry) error {
	if e.when["tape"] == "true" && !b.tapes {
		return gapf("%s serves programs that are differentiated", e.function)
	}
	if name := e.when["alike"]; name != "" && !slices.Equal(b.shape("input"), b.shape(op.TensorArg(name))) {
		return gapf("%s serves an input and a %s of one shape", e.function, name)
	}
	if e.when["batched"] == "true" && len(b.shape("input")) != len(b.shape("weight")) {
		return gapf("%s serves batches", e.function)
	}
	for i, p := range b.args.Sig.Params {
		v := b.args.Vals[i]
		if want, ok := e.when[p.Name]; ok && text(v) != want {
			return gapf("%s serves %s = %s", e.function, p.Name, want)
		}
		if b.cot != nil && p.Type.Kind == op.KTensor {
			continue
		}
		if !e.mentions(p.Name) && v != nil && !reflect.DeepEqual(v, p.Default) && !slices.Contains(unread, p.Name) {
			return gapf("%s has no %s", e.function, p.Name)
		}
	}
	return nil
}

// shape is that of a tensor argument; nil where it is none.
func (b *binding) shape(name op.TensorArg) []int {
	if x := b.args.Value(name); x != nil {
		return x.Shape()
	}
	return nil
}

// unread are parameters that change no result.
var unread = []string{"inplace", "non_blocking", "sparse_grad", "_stacklevel"}

func text(v any) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case op.Scalar:
		return fmt.Sprint(v.Any())
	}
	return fmt.Sprint(v)
}

// argument is the value of a text of the table for a parameter of a kind.
func (b *binding) argument(text string, kind byte) (any, error) {
	switch name, rest, _ := strings.Cut(text, "."); {
	case strings.HasPrefix(text, "new"):
		b.writes = append(b.writes, write{result: number(text, "new")})
		return program.Tuple{"new"}, nil
	case text == "outs":
		list := program.List{}
		for i := range b.out {
			list = append(list, b.output(i, kind))
		}
		return list, nil
	case text == "#outs":
		return int64(len(b.out)), nil
	case b.whole && b.value(text) != nil: // a case may have an argument out, or grad
		return b.given(text, kind)
	case name == "out" && rest == "" || name == "out1" || name == "out2" || name == "out3":
		return b.output(number(name, "out"), kind), nil
	case name == "grad" && rest != "":
		return b.gradient(rest)
	case kind == 't' && (name == "grad" || name == "result"):
		b.writes = append(b.writes, write{result: -1})
		return b.earlier(name)
	case name == "grad" || name == "grad1" || name == "result" || name == "result1" || strings.HasPrefix(name, "saved"):
		return b.earlier(name)
	case text == "+new":
		b.writes = append(b.writes, write{result: -1, saved: true})
		return program.Tuple{"new"}, nil
	case strings.HasPrefix(text, "+"):
		return b.beside(text[1:])
	}
	return b.given(text, kind)
}

func number(text, prefix string) int {
	n, _ := strconv.Atoi(strings.TrimPrefix(text, prefix))
	return n
}

// output is a result that the host allocates; of a pointer to a number, one number.
func (b *binding) output(i int, kind byte) any {
	if i >= len(b.out) || b.out[i].DType == tensor.Invalid {
		return nil
	}
	w := write{result: i}
	dt, shape := b.out[i].DType, b.out[i].Shape
	if numbers := map[byte]tensor.DType{'D': tensor.F64, 'B': tensor.Bool}; numbers[kind] != tensor.Invalid {
		w.dtype, dt, shape = dt, numbers[kind], nil
	}
	b.writes = append(b.writes, w)
	return room(dt, shape)
}

func room(dt tensor.DType, shape []int) any { return program.Tuple{"out", dt, ints(shape)} }

func ints(ns []int) program.List {
	list := program.List{}
	for _, n := range ns {
		list = append(list, int64(n))
	}
	return list
}

// gradient is the gradient of a tensor argument; None where that is None.
func (b *binding) gradient(param string) (any, error) {
	v := b.args.Value(op.TensorArg(param))
	if v == nil {
		return nil, nil
	}
	b.writes = append(b.writes, write{result: -1, param: param})
	return room(v.DType(), v.Shape()), nil
}

// earlier is a cotangent, a result, or what was written beside the results.
func (b *binding) earlier(name string) (any, error) {
	switch {
	case strings.HasPrefix(name, "grad") && number(name, "grad") < len(b.cot) && b.cot[number(name, "grad")] != nil:
		return b.read(b.cot[number(name, "grad")]), nil
	case strings.HasPrefix(name, "result") && number(name, "result") < len(b.results):
		return b.read(b.results[number(name, "result")]), nil
	case strings.HasPrefix(name, "saved") && number(name, "saved") < len(b.saved):
		if t := b.saved[number(name, "saved")]; t != nil {
			return b.read(t), nil
		}
		return nil, nil
	}
	return nil, gapf("no %s is known", name)
}

// beside is a tensor that a function writes beside the results.
func (b *binding) beside(what string) (any, error) {
	x, ok := b.args.Vals[0].(op.Value)
	if !ok {
		return nil, gapf("the first argument is no tensor")
	}
	dt, shape := x.DType(), x.Shape()
	switch what {
	case "indices":
		dt, shape = tensor.I64, b.out[0].Shape
	case "total":
		shape = b.out[0].Shape
	case "mask":
		dt = tensor.Bool
	case "planemask":
		dt, shape = tensor.Bool, slices.Clone(shape)
		for i := min(2, len(shape)); i < len(shape); i++ {
			shape[i] = 1
		}
	case "channels":
		shape = shape[min(1, len(shape)):min(2, len(shape))]
	case "rows", "rms":
		shape = shape[:max(0, len(shape)-len(b.args.Ints("normalized_shape")))]
		if what == "rms" {
			dt = tensor.Promote(dt, tensor.F32)
		}
	case "groups":
		shape = []int{shape[0], b.args.Int("num_groups")}
	case "one":
		shape = nil
	case "lse":
		if shape = b.softmaxes(); shape == nil {
			return nil, gapf("q has %d dimensions, not 4, or 3 and ends", len(b.shape("q")))
		}
		dt = tensor.Promote(dt, tensor.F32)
	case "info":
		dt, shape = tensor.I32, shape[:max(0, len(shape)-2)]
	case "losses", "paths":
		if len(shape) != 3 {
			return nil, gapf("%s is of no batch", b.args.Sig.Params[0].Name)
		}
		longest := 0
		for i, lengths := 0, tensorOf(b.args.Value("target_lengths")); i < lengths.Len(); i++ {
			longest = max(longest, int(lengths.Int(i)))
		}
		if shape = []int{shape[1], shape[0], 2*longest + 1}; what == "losses" {
			shape = shape[:1]
		}
	}
	b.writes = append(b.writes, write{result: -1, saved: true})
	return room(dt, shape), nil
}

// read is a tensor that the call reads. One that repeats elements is written out.
func (b *binding) read(v op.Value) any {
	t := tensorOf(v)
	for i, s := range t.Strides() {
		if s < 0 || s == 0 && t.Shape()[i] > 1 {
			t = t.Clone()
			break
		}
	}
	b.tensors = append(b.tensors, t)
	return program.Ref(inputName(len(b.tensors) - 1))
}

func tensorOf(v op.Value) *tensor.Tensor {
	if x, ok := v.(*eager.Var); ok {
		return x.Tensor
	}
	return v.(*tensor.Tensor)
}

// given is an argument of the operator, or a literal.
func (b *binding) given(text string, kind byte) (any, error) {
	if name, or, ok := strings.Cut(text, " or "); ok {
		if v, err := b.param(name); err != nil || v != nil && !isEmpty(v) {
			return b.convert(name, v, kind, err)
		}
		return b.given(or, kind)
	}
	switch {
	case strings.HasPrefix(text, "'"):
		return strings.Trim(text, "'"), nil
	case text == "None":
		return nil, nil
	case text == "true" || text == "false":
		return text == "true", nil
	case strings.HasPrefix(text, "#"):
		return int64(len(b.args.Values(op.TensorsArg(text[1:])))), nil
	case strings.HasSuffix(text, ")"):
		word, of, _ := strings.Cut(text[:len(text)-1], "(")
		return b.derived(word, of)
	}
	if f, err := strconv.ParseFloat(text, 64); err == nil {
		if !strings.Contains(text, ".") {
			return int64(f), nil
		}
		return f, nil
	}
	v, err := b.param(text)
	return b.convert(text, v, kind, err)
}

// derived is what a word of the table makes of an argument, or of the result.
func (b *binding) derived(word, of string) (any, error) {
	var shape []int
	if of == "out" {
		shape = b.out[0].Shape
	} else if v, ok := b.value(of).(op.Value); ok {
		shape = v.Shape()
	} else if word == "sizes" {
		return nil, nil
	}
	switch word {
	case "sizes":
		return ints(shape), nil
	case "rows", "planes", "high", "wide":
		if at := slices.Index(fourSizes, word); at < len(shape) {
			return int64(shape[at]), nil
		}
		return nil, gapf("%s has %d dimensions", of, len(shape))
	case "next":
		n, ok := b.value(of).(int)
		if !ok {
			n = 1
		}
		return int64(n + 1), nil
	case "scale":
		return b.scale(of), nil
	case "not":
		v, given := b.value(of).(bool)
		return given && !v, nil
	case "axis":
		list, _ := b.value(of).([]int)
		return int64(len(b.shape("input")) - len(list)), nil
	case "ends":
		t, err := b.ends(of)
		if t == nil {
			return nil, err
		}
		return b.read(t), nil
	case "beyond":
		if t := b.beyond(of); t != nil {
			return b.read(t), nil
		}
		return nil, nil
	case "kept":
		return b.kept(of)
	case "windows":
		return b.windows(of), nil
	case "like":
		x := b.args.Value(op.TensorArg(of))
		b.writes = append(b.writes, write{result: 0})
		return room(x.DType(), x.Shape()), nil
	case "positions":
		if _, along := b.value("dim").(int); along {
			shape = []int{shape[b.dim(len(shape))]}
		}
		b.writes = append(b.writes, write{result: 1})
		return room(tensor.I64, shape), nil
	case "implicit":
		if d, given := b.value(of).(int); given {
			return int64(d), nil
		}
		return int64(implicit(len(b.shape("input")))), nil
	case "row":
		return b.row(of), nil
	case "fitted":
		n := b.args.Ints(op.IntsArg(of))
		return ints(b.out[0].Shape[len(b.out[0].Shape)-len(n):]), nil
	case "parts":
		list := program.List{}
		for _, m := range b.out {
			list = append(list, int64(m.Shape[b.dim(len(m.Shape))]))
		}
		return list, nil
	case "extent":
		return int64(shape[b.dim(len(shape))]), nil
	case "spatial":
		return ints(shape[min(2, len(shape)):]), b.unscaled()
	case "tensor":
		return b.tensor(of)
	case "placed":
		return b.placed(), nil
	case "places":
		dims := b.args.Ints("dims")
		return int64(dims[len(dims)-1] + 1), nil
	}
	return nil, fmt.Errorf("diopi: %s is no word of the table", word)
}

// kept is what dropout multiplies elements by, of the mask that it wrote.
func (b *binding) kept(mask string) (any, error) {
	n := number(mask, "saved")
	if n >= len(b.saved) || b.saved[n] == nil || len(b.cot) == 0 {
		return nil, gapf("no %s is known", mask)
	}
	p, factor := b.args.Float("p"), tensor.New(tensorOf(b.cot[0]).DType(), b.saved[n].Shape()...)
	drops := b.args.Bool("training") && p > 0
	for i := range factor.Len() {
		switch {
		case !drops:
			factor.Set(i, 1)
		case b.saved[n].Int(i) != 0:
			factor.Set(i, complex(1/(1-p), 0))
		}
	}
	return b.read(factor), nil
}

// windows is a number of a pooling for each of its dimensions, that of PyTorch where the
// case has none.
func (b *binding) windows(name string) program.List {
	v := b.value(name)
	if v == nil {
		v = map[string]any{"stride": b.value("kernel_size"), "padding": 0, "dilation": 1}[name]
	}
	switch v := v.(type) {
	case int:
		n, _ := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(b.args.Sig.Name, "pool"), "d"))
		return ints(slices.Repeat([]int{v}, n))
	case []int:
		return ints(v)
	}
	return program.List{}
}

// value is an argument of the operator; nil where it has no such parameter.
func (b *binding) value(name string) any {
	v, _ := b.param(name)
	return v
}

// implicit is the dimension of softmax without one: the first of none, one or three
// dimensions, else the second (torch.nn.functional._get_softmax_dim).
func implicit(rank int) int {
	if rank == 0 || rank == 1 || rank == 3 {
		return 0
	}
	return 1
}

// row is a row of the argument weight, counted from the first one on; -1 for None.
func (b *binding) row(name string) int64 {
	n, ok := b.value(name).(int)
	switch {
	case !ok:
		return -1
	case n < 0:
		return int64(n + b.shape("weight")[0])
	}
	return int64(n)
}

// fourSizes are the words for a tensor's first four sizes.
var fourSizes = []string{"rows", "planes", "high", "wide"}

// dim is the argument dim, counted from the first one on.
func (b *binding) dim(rank int) int {
	d := b.args.Int("dim")
	if d < 0 {
		d += rank
	}
	return d
}

// unscaled refuses a scale_factor that the sizes do not tell.
func (b *binding) unscaled() error {
	scale, _ := b.value("scale_factor").([]float64)
	in := b.args.Vals[0].(op.Value).Shape()
	for i, s := range scale {
		if float64(in[i+2])*s != float64(b.out[0].Shape[i+2]) {
			return gapf("sizes do not tell a scale_factor of %v", s)
		}
	}
	return nil
}

// tensor is an argument that may be a number, which is a tensor of the result's dtype.
func (b *binding) tensor(name string) (any, error) {
	v := b.value(name)
	s, ok := v.(op.Scalar)
	if !ok {
		return b.form(name, v, 'c')
	}
	t := tensor.New(b.out[0].DType)
	t.Set(0, s.Complex())
	return b.read(t), nil
}

// placed is a list of indices with None for the dimensions that have none.
func (b *binding) placed() program.List {
	list := program.List{}
	for i, v := range b.args.Values("indices") {
		for len(list) < b.args.Ints("dims")[i] {
			list = append(list, nil)
		}
		list = append(list, b.read(v))
	}
	return list
}

func isEmpty(v any) bool { ns, ok := v.([]int); return ok && len(ns) == 0 }

func (b *binding) param(name string) (any, error) {
	i := slices.IndexFunc(b.args.Sig.Params, func(p op.Param) bool { return p.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("diopi: %s has no parameter %s", b.args.Sig.Name, name)
	}
	return b.args.Vals[i], nil
}

// enums are texts of PyTorch as the interface counts them.
var enums = map[byte][]string{'r': strings.Fields("none mean sum"), 'm': strings.Fields("None trunc floor")}

var errForm = errors.New("another form")

// convert brings an argument of the operator into the form of a kind.
func (b *binding) convert(name string, v any, kind byte, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	if names := enums[kind]; names != nil {
		if i := slices.Index(names, text(v)); i >= 0 {
			return int64(i), nil
		}
		return nil, gapf("%s is %s", name, text(v))
	}
	c, err := b.form(name, v, kind)
	if err != nil {
		return nil, gapf("the interface's %s takes no %s", name, op.TypeName(v))
	}
	return c, nil
}

func (b *binding) form(name string, v any, kind byte) (any, error) {
	switch kind {
	case 't', 'c':
		x, ok := v.(op.Value)
		switch rows, isSparse := v.(*csr); {
		case isSparse && kind == 'c':
			return b.sparse(rows), nil
		case !ok:
			return nil, onlyNil(v)
		}
		if kind == 't' {
			w := write{result: -1, param: name}
			if b.inPlace {
				w = write{result: 0}
			}
			b.writes = append(b.writes, w)
		}
		return b.read(x), nil
	case 'C', 'T':
		vs, ok := v.([]op.Value)
		if !ok && (kind == 'C' || v != nil) {
			return nil, errForm
		}
		list := program.List{}
		for _, x := range vs {
			if kind == 'T' {
				b.writes = append(b.writes, write{result: -1, param: name})
			}
			list = append(list, b.read(x))
		}
		return list, nil
	case 'z', 'Z':
		return sizes(v)
	case 's':
		if _, text := v.(string); text {
			return nil, errForm
		}
	case 'i':
		if ns, ok := v.([]int); ok && len(ns) == 1 { // a list of dimensions that has one
			return int64(ns[0]), nil
		}
	}
	return scalarForm(v)
}

func onlyNil(v any) error {
	if v == nil {
		return nil
	}
	return errForm
}

func sizes(v any) (any, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case int:
		return ints([]int{v}), nil
	case []int:
		return ints(v), nil
	}
	return nil, errForm
}

// scalarForm is a number, a truth value or a text.
func scalarForm(v any) (any, error) {
	switch v := v.(type) {
	case nil, bool, string, float64:
		return v, nil
	case int:
		return int64(v), nil
	case op.Scalar:
		if _, complex := v.Any().(complex128); !complex {
			return v.Any(), nil
		}
	}
	return nil, errForm
}
