package onekernel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"plumb/internal/draw/choice"
	"plumb/program"
	"plumb/tensor"
)

// exampleInput is what get_inputs gives for an argument.
type exampleInput struct {
	DType   string    `json:"dtype"`
	Shape   []int     `json:"shape"`
	Lo      *float64  `json:"lo"`
	Hi      *float64  `json:"hi"`
	Pattern Pattern   `json:"pattern"`
	Among   []float64 `json:"among"`
	Value   any       `json:"value"` // of no tensor

	List []exampleInput `json:"list"` // of tensors that are one argument of a function
}

// stateEntry is a parameter or a buffer of a problem's model.
type stateEntry struct {
	exampleInput
	Name         string    `json:"name"`
	Parameter    bool      `json:"parameter"`
	RequiresGrad bool      `json:"requires_grad"`
	Values       []float64 `json:"values,omitempty"` // of a buffer
}

// examples makes the signature of what get_inputs of the reference's file returns:
// a function's, or a problem's.
func (s *Session) examples(ctx context.Context) error {
	if s.task != nil {
		s.maker.form = s.task
		s.narrow(tensor.F32)
		s.maker.promises.Grad = new(bool)
		return nil
	}
	if s.cfg.Reference != nil && s.cfg.Reference.Form == "problem" {
		p := &problem{session: s, given: s.refTold.Sizes, patterns: map[string]Pattern{}, classes: map[string][]float64{}}
		dt, err := p.dtype(ctx)
		if err != nil {
			return err
		}
		s.maker.form = p
		s.narrow(dt)
		return nil
	}
	if len(s.refTold.Examples) == 0 {
		return &Mistake{errors.New("nothing says what the functions take: give --inputs 'x: f32[B,N]', or get_inputs() in the reference's file")}
	}
	sig, err := generalised(s.refTold.Examples)
	if err != nil {
		return err
	}
	s.maker.signature = sig.fixed
	if dtypes := sig.floats(); s.maker.promises.DTypes == nil {
		s.maker.promises.DTypes = dtypes
	}
	return nil
}

// narrow has cases drawn as the example inputs are: in their dtype, contiguous, with
// elements, finite. What is promised beyond is said by flags.
func (s *Session) narrow(dt tensor.DType) {
	p := &s.maker.promises
	if p.DTypes == nil {
		p.DTypes = []tensor.DType{dt}
	}
	if p.Layouts == nil {
		p.Layouts = []Layout{Contiguous}
	}
	if p.Shapes == "" {
		p.Shapes = Near
	}
	p.NoEmpty, p.NoNonFinite = true, true
}

// generalised makes symbols of the sizes of examples: equal sizes are one.
func generalised(examples []exampleInput) (*Signature, error) {
	sig := &Signature{Given: map[string]int{}}
	symbols, lists := map[int]string{}, map[int]bool{}
	for _, e := range examples {
		lists[len(e.List)] = true
	}
	for i, e := range examples {
		arg, of := Arg{Name: fmt.Sprintf("x%d", i), IsList: e.List != nil}, e.List
		switch {
		case e.DType != "":
			of = []exampleInput{e}
		case of == nil:
			arg.Choices = []any{wire(e.Value)}
		}
		for k := range of {
			name := arg.Name
			if arg.IsList {
				name = fmt.Sprintf("%s_%d", name, k)
			}
			in, err := of[k].input(name)
			if err != nil {
				return nil, err
			}
			in.DType, _ = tensor.ParseDType(of[k].DType) // floats too, which may differ
			for d, n := range of[k].Shape {
				if n < 2 || lists[n] { // a list is no longer elsewhere
					continue
				}
				if symbols[n] == "" {
					symbols[n] = string(rune('A' + len(symbols)))
					sig.Given[symbols[n]] = n
				}
				in.Dims[d] = symbol(symbols[n])
			}
			arg.Inputs = append(arg.Inputs, len(sig.Inputs))
			sig.Inputs = append(sig.Inputs, *in)
		}
		sig.Args = append(sig.Args, arg)
	}
	for i := range sig.Inputs {
		sig.Inputs[i].point(symbols)
	}
	return sig, nil
}

// point has whole numbers of an example follow the size that they point into: that below which all
// of them are, the smallest of those that are not twice as large; that at which offsets in order end.
// What is 0 or 1 may be a mask.
func (in *Input) point(symbols map[int]string) {
	if in.DType != tensor.I64 && in.DType != tensor.I32 || !in.Bounded || in.Lo < 0 {
		return
	}
	most := int(in.Hi) - 1
	if most < 2 {
		return
	}
	if in.ordered() && in.Lo == 0 && symbols[most] != "" {
		to := append(symbol(symbols[most]), number(1)...)
		in.Below = &to
		return
	}
	for n := most + 1; n <= 2*most; n++ {
		if symbols[n] != "" {
			to := symbol(symbols[n])
			in.Lo, in.Below = 0, &to
			return
		}
	}
}

func (sig *Signature) add(in Input) {
	sig.Args = append(sig.Args, Arg{Name: in.Name, Inputs: []int{len(sig.Inputs)}})
	sig.Inputs = append(sig.Inputs, in)
}

// input is an input like an example, of its sizes.
func (e *exampleInput) input(name string) (*Input, error) {
	dt, err := tensor.ParseDType(e.DType)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	in := &Input{Name: name, DType: dt, Dims: make([]Size, len(e.Shape)), Pattern: e.Pattern, Among: e.Among}
	for i, n := range e.Shape {
		in.Dims[i] = number(n)
	}
	if dt.IsFloat() {
		in.DType = tensor.Invalid
	} else if e.Lo != nil {
		in.Lo, in.Hi, in.Bounded = *e.Lo, *e.Hi+1, true
	}
	return in, nil
}

// Pattern is what square matrices, or rows of whole numbers, have in common, on which a kernel
// of such may rely.
type Pattern string

// The patterns: zeros above or below the diagonal, both, and a matrix that is its own
// transpose.
const (
	Lower     Pattern = "lower"
	Upper     Pattern = "upper"
	Diagonal  Pattern = "diagonal"
	Symmetric Pattern = "symmetric"
)

// The patterns of rows: in order, as the offsets of bags or the boundaries of bins, and no two alike;
// all numbers below the row's length, in any order; no two alike.
const (
	Ascending   Pattern = "ascending"
	Rising      Pattern = "rising"
	Permutation Pattern = "permutation"
	Distinct    Pattern = "distinct"
)

// fill draws an input's elements and gives them the pattern. What is no number but a mask
// has all of its ones.
func (p Pattern) fill(in *program.Input) program.Fill {
	data := elementsOf(in)
	switch {
	case p.ofRows() && in.DType.IsFloat():
		sortRows(data)
		return program.Fill{Dist: program.Literal, Data: data}
	case p.ofRows():
		p.order(data, in.Fill.Lo, in.Fill.Hi-1)
		return program.Fill{Dist: program.Literal, Data: data}
	case len(in.Shape) < 2:
		return in.Fill
	}
	n := in.Shape[len(in.Shape)-1]
	for k := range data.Len() {
		row, column := k/n%in.Shape[len(in.Shape)-2], k%n
		zero := row < column && (p == Lower || p == Diagonal) || row > column && (p == Upper || p == Diagonal)
		switch {
		case zero:
			data.Set(k, 0)
		case in.DType == tensor.Bool:
			data.Set(k, 1)
		case p == Symmetric && row > column:
			data.Set(k, data.At(k+(column-row)*n+row-column))
		}
	}
	return program.Fill{Dist: program.Literal, Data: data}
}

// ordered reports rows of whole numbers in order: offsets, of which there is at least one.
func (in *Input) ordered() bool {
	return !in.isFloat() && (in.Pattern == Ascending || in.Pattern == Rising)
}

func (p Pattern) ofRows() bool {
	return slices.Contains([]Pattern{Ascending, Rising, Permutation, Distinct}, p)
}

// sortRows puts the rows of numbers in order, NaN last, as PyTorch does.
func sortRows(data *tensor.Tensor) {
	if data.Dim() == 0 || data.Len() == 0 {
		return
	}
	row := make([]float64, data.Shape()[data.Dim()-1])
	for at := 0; at < data.Len(); at += len(row) {
		for i := range row {
			row[i] = data.Float(at + i)
		}
		slices.SortFunc(row, func(a, b float64) int {
			if math.IsNaN(a) || math.IsNaN(b) {
				return cmp.Compare(b, a)
			}
			return cmp.Compare(a, b)
		})
		for i, v := range row {
			data.Set(at+i, complex(v, 0))
		}
	}
}

// order gives the rows of whole numbers the pattern. Those in order begin with the least and end
// with the largest: what is before and behind all bags.
func (p Pattern) order(data *tensor.Tensor, least, largest float64) {
	if data.Dim() == 0 || data.Len() == 0 {
		return
	}
	n := data.Shape()[data.Dim()-1]
	row, places := make([]float64, n), make([]int, n)
	for at := 0; at < data.Len(); at += n {
		for i := range row {
			row[i], places[i] = data.Float(at+i), i
		}
		slices.SortStableFunc(places, func(i, j int) int { return cmp.Compare(row[i], row[j]) })
		slices.Sort(row)
		if p != Ascending { // each is above the one before, as far as there are numbers
			for i := range row {
				row[i] = math.Floor(least+(row[i]-least)*(largest-least-float64(n-1))/max(1, largest-least)) + float64(i)
				row[i] = max(least, min(row[i], largest))
			}
		}
		switch p {
		case Ascending, Rising:
			row[0], row[n-1] = least, largest
		case Permutation, Distinct:
			row = taken(row, places)
		}
		for i, v := range row {
			data.Set(at+i, complex(v, 0))
		}
	}
}

// taken puts the i-th of values at the i-th of places.
func taken(values []float64, places []int) []float64 {
	all := make([]float64, len(values))
	for i, at := range places {
		all[at] = values[i]
	}
	return all
}

// wire is a plain value of JSON as a program has it.
func wire(v any) any {
	switch v := v.(type) {
	case float64:
		if v == float64(int64(v)) {
			return int64(v)
		}
	case []any:
		var all program.Tuple
		for _, e := range v {
			all = append(all, wire(e))
		}
		return all
	}
	return v
}

// maker of cases whose inputs and sizes the reference's process knows: of a problem's
// file, or of a task's folder.
type form interface {
	// size gives a case sizes, and the program that follows from them.
	size(c *Case, src *choice.Source, s step, i, try int, m *maker) error
	// signature asks the reference what a case takes.
	signature(ctx context.Context, c *Case) (*Signature, error)
	// shape has both processes prepared for a case; the text says why the kernel is not.
	shape(ctx context.Context, c *Case) (refused string, err error)
}

// rewrite makes a case's program anew after its sizes or values changed.
func (m *maker) rewrite(c *Case) error {
	if m.form == nil {
		return m.write(c)
	}
	sig, err := m.form.signature(context.Background(), c)
	if err != nil {
		return err
	}
	c.sig = sig
	return m.write(c)
}

// Shapes says which sizes a kernel promises, in terms of the examples'.
type Shapes string

// The promises: the sizes that are given, those of their kind, all.
const (
	Given Shapes = "given"
	Near  Shapes = "near"
	Any   Shapes = "any"
)

// ParseShapes returns the promise of a name.
func ParseShapes(name string) (Shapes, error) {
	switch s := Shapes(name); s {
	case Given, Near, Any, "":
		return s, nil
	}
	return "", fmt.Errorf("%q: there are given, near, any", name)
}

// promised is the size of a symbol where the examples tell which are promised.
func (m *maker) promised(src *choice.Source, sig *Signature, name string, s step, focus bool, n int) int {
	given, known := sig.Given[name]
	switch {
	case known && m.promises.Shapes == Given:
		return given
	case known && m.promises.Shapes == Near:
		return near{given: given, unit: 1}.draw(src, s, focus)
	}
	return n
}

// near draws a size of the kind of one that is given.
type near struct {
	given, unit int  // unit divides it
	any         bool // whatever it is
	turn        turn // in focus
	small       bool // so that the reference, which has refused others, takes it
}

// turn counts how often a size has been in focus: a batch of one comes first, then what a
// kernel may have taken for the largest there is.
type turn int

const (
	smallest turn = iota + 1
	beyondGiven
	beyondAgain // of a large size, with other values
)

const (
	smallSize = 16   // to which a size may be a width of a window or a number of heads
	mediumOf  = 64   // to which a large size is brought, so that cases are quick
	mostDrawn = 4099 // of a drawn size
)

func (n near) draw(src *choice.Source, s step, focus bool) int {
	low, u := n.reduced(), n.unit
	if n.any {
		low, u = int(src.Int(1, 6)), 1
	}
	switch {
	case focus && n.turn == smallest:
		return u
	case focus && n.turn == beyondGiven && n.given < mostDrawn:
		return n.given + u
	case focus && n.long(): // of a kernel that takes a row in blocks, several and a part
		return max(mostDrawn/int(n.turn-1)/u, 1) * u
	case n.small:
		return []int{low, low, n.given}[src.Index(3)]
	case !focus && n.given <= smallSize && !n.any:
		return n.given
	case !focus:
		return []int{low, low, max(low/2/u, 1) * u}[src.Index(3)]
	}
	sizes := []int{low + u, max(low-u, u), u, 2 * u, 3 * u, 5 * u, min(n.given, mostDrawn)}
	if u == 1 || n.any {
		sizes = append(sizes, 1, 2, low+1, max(low-1, 1), max(s.size, 1), max(s.size, 1))
	}
	return min(sizes[src.Index(len(sizes))], max(4*n.given, smallSize), mostDrawn)
}

// long reports whether a size that is larger than any drawn one is to be long in this turn.
func (n near) long() bool {
	return n.given >= mostDrawn && (n.turn == beyondGiven || n.turn == beyondAgain)
}

// reduced halves a size while it is large and a multiple of its unit.
func (n near) reduced() int {
	low := n.given
	for low > mediumOf && low%(2*n.unit) == 0 {
		low /= 2
	}
	if low > 2*mediumOf {
		low = max(mediumOf/n.unit, 1) * n.unit
	}
	return low
}
