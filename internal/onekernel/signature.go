package onekernel

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"plumb/op"
	"plumb/program"
	"plumb/tensor"
)

// Size is a size of a dimension in symbols: the sum of its terms, of which a number is one
// without symbols.
type Size []Term

// Term is a number times the product of symbols.
type Term struct {
	Scale   int
	Symbols []string
}

// At returns the size where the symbols have these values.
func (s Size) At(sizes map[string]int) int {
	sum := 0
	for _, t := range s {
		n := t.Scale
		for _, name := range t.Symbols {
			n *= sizes[name]
		}
		sum += n
	}
	return sum
}

// alone returns the symbol that a size is, if it is no more than that.
func (s Size) alone() (string, bool) {
	if len(s) == 1 && s[0].Scale == 1 && len(s[0].Symbols) == 1 {
		return s[0].Symbols[0], true
	}
	return "", false
}

// symbols lists those of a size, in their order.
func (s Size) symbols() []string {
	var all []string
	for _, t := range s {
		all = append(all, t.Symbols...)
	}
	return all
}

// times returns the product of two sizes.
func (s Size) times(by Size) Size {
	var all Size
	for _, a := range s {
		for _, b := range by {
			all = append(all, Term{a.Scale * b.Scale, slices.Concat(a.Symbols, b.Symbols)})
		}
	}
	return all
}

// byKeyword has arguments given by keyword that an operator has under their names further on: a
// weight behind a shape that is given by keyword too.
func (sig *Signature) byKeyword(params []op.Param) {
	place := 0
	for i := range sig.Args {
		a := &sig.Args[i]
		at := slices.IndexFunc(params, func(p op.Param) bool { return p.Name == a.Name })
		if a.Keyword = a.Keyword || at > place; !a.Keyword {
			place++
		}
	}
}

func number(n int) Size       { return Size{{Scale: n}} }
func symbol(name string) Size { return Size{{Scale: 1, Symbols: []string{name}}} }

// Input is a tensor argument of a kernel and its reference.
type Input struct {
	Name string
	// DType is the tensor's own; Invalid for the float dtype of the case.
	DType tensor.DType
	Dims  []Size
	// Lo and Hi bound the elements, from Lo to below Hi, where Bounded; Below is the
	// symbol that Hi follows, such as the number of rows that indices point into.
	Lo, Hi  float64
	Bounded bool
	// Above says that they are above 0, and no more.
	Above bool
	Below *Size
	// Among are the values that an input is made of; nil for a range.
	Among []float64
	// Literal are elements that cannot be drawn otherwise, of a matrix that must not
	// be singular; such an input keeps its shape.
	Literal *tensor.Tensor
	// Pattern is what square matrices or rows of whole numbers of the examples have in common.
	Pattern Pattern
	NoGrad  bool
	Strides []int // where it has its own
	Output  bool  // it is there to be written to
}

// isFloat reports whether the case's float dtype is the input's.
func (in *Input) isFloat() bool { return in.DType == tensor.Invalid }

// firstFree is the place of the first free input, -1 where there is none.
func (sig *Signature) firstFree() int {
	return slices.IndexFunc(sig.Inputs, func(in Input) bool { return in.free() })
}

// rows reports whether it has a free input, and the first one has dimensions, none of which is always 1.
func (sig *Signature) rows() bool {
	k := sig.firstFree()
	return k >= 0 && len(sig.Inputs[k].Dims) > 0 && !slices.ContainsFunc(sig.Inputs[k].Dims, func(d Size) bool { return len(d.symbols()) == 0 && d.At(nil) == 1 })
}

// free reports whether any finite numbers make sense as elements.
func (in *Input) free() bool { return in.isFloat() && !in.Bounded && in.Literal == nil }

// Arg is an argument of a call: a tensor by its place among the inputs, or an
// attribute, of which Choices has the values it may be drawn with.
type Arg struct {
	Name    string
	Inputs  []int // of a tensor, or a list of them
	IsList  bool
	Choices []any
	Sizes   []Size // of an attribute that is a shape
	Keyword bool
	State   bool // a parameter or buffer of a problem's model
}

// buffer reports whether an argument is a buffer of a problem's model.
func (sig *Signature) buffer(name string) bool {
	return slices.ContainsFunc(sig.Args, func(a Arg) bool {
		return a.Name == name && a.State && len(a.Inputs) == 1 && sig.Inputs[a.Inputs[0]].NoGrad
	})
}

// state reports whether an argument is a parameter or a buffer of a problem's model.
func (sig *Signature) state(name string) bool {
	return slices.ContainsFunc(sig.Args, func(a Arg) bool { return a.Name == name && a.State })
}

// Signature says which arguments both functions take, and their sizes.
type Signature struct {
	Inputs []Input
	Args   []Arg
	// Given are the sizes of symbols in the examples that it was made of.
	Given map[string]int
}

// Symbols lists the symbols of the sizes, in the order of their first use, those
// of a tensor from its last dimension on.
func (sig *Signature) Symbols() []string {
	var names []string
	for _, in := range sig.Inputs {
		for _, d := range slices.Backward(in.Dims) {
			for _, n := range d.symbols() {
				if !slices.Contains(names, n) {
					names = append(names, n)
				}
			}
		}
	}
	return names
}

// together reports whether a tensor has both symbols among its sizes.
func (sig *Signature) together(a, b string) bool {
	has := func(in *Input, name string) bool {
		return slices.ContainsFunc(in.Dims, func(d Size) bool { return slices.Contains(d.symbols(), name) })
	}
	return slices.ContainsFunc(sig.Inputs, func(in Input) bool { return has(&in, a) && has(&in, b) })
}

var (
	tensorParam = regexp.MustCompile(`^([A-Za-z_]\w*)\s*:\s*([a-z]+\d*)\s*\[([^\]]*)\]\s*(.*)$`)
	attribute   = regexp.MustCompile(`^([A-Za-z_]\w*)\s*(?::\s*(\w+)\s*)?=\s*(.+)$`)
	interval    = regexp.MustCompile(`^in\s+(-?[\d.eE+-]+?)\s*\.\.\s*(.+)$`)
)

// shortDTypes are the short names of dtypes in --inputs; "float" is the case's.
var shortDTypes = map[string]tensor.DType{
	"float": tensor.Invalid, "f16": tensor.F16, "bf16": tensor.BF16, "f32": tensor.F32, "f64": tensor.F64,
	"c64": tensor.C64, "c128": tensor.C128, "i8": tensor.I8, "i16": tensor.I16, "i32": tensor.I32, "i64": tensor.I64, "u8": tensor.U8, "bool": tensor.Bool,
}

// ParseSignature reads a list of arguments: "x: f32[B,S,H], w: f32[H,2*F], i: i64[B] < V,
// p: float[B] in 0..1, dim = -1 | 0". Its float dtypes, of which there is usually one,
// are returned too; "float" stands for any.
func ParseSignature(text string) (*Signature, []tensor.DType, error) {
	sig := &Signature{}
	for i, field := range topLevel(text) {
		field = strings.TrimSpace(field)
		if field == "" {
			continue
		}
		if m := tensorParam.FindStringSubmatch(field); m != nil {
			in, err := parseInput(m)
			if err != nil {
				return nil, nil, fmt.Errorf("argument %d, %q: %w", i+1, field, err)
			}
			sig.Args = append(sig.Args, Arg{Name: in.Name, Inputs: []int{len(sig.Inputs)}})
			sig.Inputs = append(sig.Inputs, *in)
			continue
		}
		m := attribute.FindStringSubmatch(field)
		if m == nil {
			return nil, nil, fmt.Errorf("argument %d: %q is no argument: want a tensor such as x: f32[B,S,H] or an attribute such as dim = -1", i+1, field)
		}
		arg := Arg{Name: m[1], Keyword: true}
		for _, v := range strings.Split(m[3], "|") {
			arg.Choices = append(arg.Choices, plain(strings.TrimSpace(v)))
		}
		sig.Args = append(sig.Args, arg)
	}
	if len(sig.Inputs) == 0 {
		return nil, nil, fmt.Errorf("%q has no tensor: want one such as x: f32[B,S,H]", text)
	}
	return sig, sig.floats(), nil
}

// offsets are the sizes of rows of whole numbers in order.
func (sig *Signature) offsets() (all []string) {
	for i := range sig.Inputs {
		if in := &sig.Inputs[i]; in.ordered() && len(in.Dims) > 0 {
			all = append(all, in.Dims[len(in.Dims)-1].symbols()...)
		}
	}
	return all
}

// floats is the dtype of all float tensors, which is that of the case then; none where each has
// its own.
func (sig *Signature) floats() (all []tensor.DType) {
	for _, in := range sig.Inputs {
		if in.DType.IsFloat() && !slices.Contains(all, in.DType) {
			all = append(all, in.DType)
		}
	}
	if len(all) != 1 {
		return nil
	}
	for i := range sig.Inputs {
		if in := &sig.Inputs[i]; in.DType.IsFloat() {
			in.DType = tensor.Invalid
		}
	}
	return all
}

var (
	cParameter = regexp.MustCompile(`const\s+(\w+)\s*\*\s*(\w+)\s*\[([^\]]*)\]`)
	cDTypes    = map[string]string{"float": "f32", "double": "f64", "int": "i32", "int32_t": "i32", "int64_t": "i64", "long": "i64", "uint8_t": "u8", "int8_t": "i8", "int16_t": "i16", "bool": "bool"}
)

// InputsOfC returns the tensors that a declaration in C gives shapes to, such as
// "f(const float *x[N,C], float *y[N,C], int64_t N, int64_t C)", as ParseSignature
// reads them; "" where it gives none.
func InputsOfC(declaration string) string {
	var parts []string
	for _, m := range cParameter.FindAllStringSubmatch(declaration, -1) {
		parts = append(parts, fmt.Sprintf("%s: %s[%s]", m[2], cDTypes[m[1]], m[3]))
	}
	return strings.Join(parts, ", ")
}

// topLevel splits at commas that stand in no brackets.
func topLevel(text string) []string {
	var fields []string
	depth, start := 0, 0
	for i, c := range text {
		switch c {
		case '[', '(':
			depth++
		case ']', ')':
			depth--
		case ',':
			if depth == 0 {
				fields = append(fields, text[start:i])
				start = i + 1
			}
		}
	}
	return append(fields, text[start:])
}

func parseInput(m []string) (*Input, error) {
	dt, ok := shortDTypes[m[2]]
	if !ok {
		if named, err := tensor.ParseDType(m[2]); err == nil {
			dt = named
		} else {
			return nil, fmt.Errorf("%q is no dtype: there are float, f16, bf16, f32, f64, c64, i8, i16, i32, i64, u8, bool", m[2])
		}
	}
	in := &Input{Name: m[1], DType: dt}
	if strings.TrimSpace(m[3]) != "" {
		for _, text := range strings.Split(m[3], ",") {
			size, err := parseSize(text)
			if err != nil {
				return nil, err
			}
			in.Dims = append(in.Dims, size)
		}
	}
	return in, in.bound(strings.TrimSpace(m[4]))
}

// bound reads what follows a shape: "< V", "> 0", "in 0..1", and "sorted" after that.
func (in *Input) bound(text string) error {
	if rest, ok := strings.CutSuffix(text, "sorted"); ok {
		text, in.Pattern = strings.TrimSpace(rest), Ascending
	}
	if text == "" {
		return nil
	}
	in.Bounded = true
	lo, hi := "0", ""
	switch {
	case strings.HasPrefix(text, "<"):
		hi = text[1:]
	case strings.HasPrefix(text, ">"):
		lo = strings.TrimSpace(text[1:])
		v, err := strconv.ParseFloat(lo, 64)
		in.Lo, in.Hi, in.Above = v+0.05, v+4, v == 0
		return err
	default:
		m := interval.FindStringSubmatch(text)
		if m == nil {
			return fmt.Errorf("%q is no bound: want < V, > 0, in 0..1 or sorted", text)
		}
		lo, hi = m[1], m[2]
	}
	var err error
	if in.Lo, err = strconv.ParseFloat(lo, 64); err != nil {
		return fmt.Errorf("%q is no number", lo)
	}
	if v, err := strconv.ParseFloat(strings.TrimSpace(hi), 64); err == nil {
		in.Hi = v
		return nil
	}
	size, err := parseSize(hi)
	in.Below = &size
	return err
}

var sizePart = regexp.MustCompile(`^\s*(?:(\d+)|([A-Za-z_]\w*)|([*+()-]))\s*`)

// mostTerms is how many terms a size has at most.
const mostTerms = 64

// parseSize reads a size: B, 2*F, H*W, N+1, T+S, 2*(T+S), 128.
func parseSize(text string) (Size, error) {
	p := sizes{rest: text}
	s, ok := p.sum()
	if !ok || p.next() != "" || len(s) > mostTerms {
		return nil, fmt.Errorf("%q is no size: want a name, a number, or sums and products of them, such as 2*F or T+S; only a number may be taken away, as in N-1", strings.TrimSpace(text))
	}
	return s, nil
}

// sizes reads a size from left to right.
type sizes struct {
	rest  string
	depth int
}

// next returns what comes next: a number, a name, an operator or a bracket; "" at the end,
// and what nothing begins with where there is none of these.
func (p *sizes) next() string {
	if m := sizePart.FindStringSubmatch(p.rest); m != nil {
		return m[1] + m[2] + m[3]
	}
	return strings.TrimSpace(p.rest)
}

func (p *sizes) take() {
	p.rest = p.rest[len(sizePart.FindString(p.rest)):]
}

func (p *sizes) sum() (Size, bool) {
	s, ok := p.product()
	for ok && (p.next() == "+" || p.next() == "-") {
		minus := p.next() == "-"
		p.take()
		var more Size
		if more, ok = p.product(); minus {
			if len(more.symbols()) > 0 {
				return nil, false
			}
			more = more.times(number(-1))
		}
		if s = append(s, more...); len(s) > mostTerms {
			return nil, false
		}
	}
	return s, ok
}

func (p *sizes) product() (Size, bool) {
	s, ok := p.factor()
	for ok && p.next() == "*" {
		p.take()
		var by Size
		if by, ok = p.factor(); len(s)*len(by) > mostTerms {
			return nil, false
		}
		s = s.times(by)
	}
	return s, ok
}

func (p *sizes) factor() (Size, bool) {
	m := sizePart.FindStringSubmatch(p.rest)
	switch {
	case m == nil:
		return nil, false
	case m[1] != "":
		n, err := strconv.Atoi(m[1])
		p.take()
		return number(n), err == nil
	case m[2] != "":
		p.take()
		return symbol(m[2]), true
	case m[3] != "(" || p.depth == mostTerms:
		return nil, false
	}
	p.take()
	p.depth++
	s, ok := p.sum()
	if p.depth--; !ok || p.next() != ")" {
		return nil, false
	}
	p.take()
	return s, true
}

// plain reads a value of Python's: a number, True, False, None or a string.
func plain(text string) any {
	switch text {
	case "None":
		return nil
	case "True":
		return true
	case "False":
		return false
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n
	}
	if f, err := strconv.ParseFloat(text, 64); err == nil {
		return f
	}
	if dt, err := tensor.ParseDType(strings.TrimPrefix(text, "torch.")); err == nil && strings.HasPrefix(text, "torch.") {
		return dt
	}
	if inner, ok := strings.CutPrefix(text, "("); ok && strings.HasSuffix(inner, ")") {
		tuple := program.Tuple{}
		for _, v := range strings.Split(strings.TrimSuffix(inner, ")"), ",") {
			if v = strings.TrimSpace(v); v != "" {
				tuple = append(tuple, plain(v))
			}
		}
		return tuple
	}
	return strings.Trim(text, `"'`)
}
