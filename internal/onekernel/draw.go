package onekernel

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"

	"plumb/backend"
	"plumb/internal/draw/choice"
	"plumb/program"
	"plumb/tensor"
)

// Regime says what numbers the free float inputs of a case hold.
type Regime string

// The regimes.
const (
	Usual     Regime = "standard normal"
	Offset    Regime = "mean far from 0"    // mean ≫ deviation
	Large     Regime = "large magnitudes"   // |x| > 100
	Negative  Regime = "all negative"       //
	ConstRows Regime = "constant"           // every element the same
	ZeroRows  Regime = "all zero"           //
	Ties      Regime = "ties"               // few different integers
	NonFinite Regime = "NaN and infinities" //
	Zeros     Regime = "signed zeros"       //
	Extremes  Regime = "extreme magnitudes" // the largest finite values and subnormals
	Tiny      Regime = "tiny magnitudes"    //
	AsGiven   Regime = "as given"           // in the range of a problem's own inputs
	// Cancelling has rows whose sums grow far beyond what they come to.
	Cancelling Regime = "long cancelling sums"
)

// Layout says how the inputs of a case lie in memory.
type Layout string

// The layouts.
const (
	Contiguous Layout = "contiguous"
	Transposed Layout = "transposed"
	Sliced     Layout = "sliced"   // every second element of a contiguous tensor
	Expanded   Layout = "expanded" // one dimension repeats: its stride is 0
)

// Case is one call, and what is special about it.
type Case struct {
	Index  int            `json:"index"`
	DType  tensor.DType   `json:"-"`
	Sizes  map[string]int `json:"sizes,omitempty"`
	Regime Regime         `json:"values"`
	Layout Layout         `json:"layout"`
	Grad   bool           `json:"gradients,omitempty"`
	// Cotangents is how they lie in memory, "" for contiguous ones.
	Cotangents Layout `json:"cotangents,omitempty"`
	// Key is that of the case's elements.
	Key uint64 `json:"-"`

	sig     *Signature
	program *program.Program
	again   bool    // in the memory of the case before
	kept    Regime  // of the case of which it keeps elements
	still   bool    // by the clock of the kernel's import
	fenced  bool    // in the judge's memory, where it would be in ordinary one
	single  bool    // with one thread, whatever its sizes
	partial bool    // not all arguments that could require a gradient do
	eval    bool    // of a model, which is in training else
	test    int     // of a task: whose arguments the case has
	own     bool    // of a task: with all of them as they are
	mixed   bool    // of a task: no data that it makes, but those of two calls
	large   bool    // to be timed
	focus   string  // of a problem: the size that is drawn from the most values
	work    int     // of Triton's interpreter, once it was called
	parts   [][]int // of the result, whose gradients are asked for; nil for the result itself
	data    json.RawMessage
}

// step is one of the draws that come first.
type step struct {
	size   int // of the symbol in focus; -1 for small, single for 1 of all
	regime Regime
	layout Layout
}

// first are the draws that come first: sizes 1, 2ᵏ, 2ᵏ±1, a prime, more than one block
// of any usual size; each regime; each layout; empty. The first ten have each of these
// once; what has to be long and of a half dtype comes right after them, and rows far from 0
// that are short: the error bound of a sum grows with its terms, and hides what squares
// of them lose; magnitudes below the usual eps; few elements that are large, of which one is all
// that is left of a group; and ties, NaN and infinities in rows of several blocks, where rows are
// in focus (i/2%2 == 0), as is one element of all.
var first = []step{
	{64, Usual, Contiguous}, {129, Large, Contiguous}, {1, ZeroRows, Contiguous}, {17, Negative, Transposed}, {1027, Offset, Contiguous},
	{31, ConstRows, Contiguous}, {33, NonFinite, Expanded}, {7, Ties, Sliced}, {63, Extremes, Contiguous}, {0, Usual, Contiguous},
	{-1, Large, Contiguous}, {4099, Cancelling, Contiguous}, {12, Offset, Contiguous}, {32, Tiny, Expanded}, {4099, Usual, Contiguous}, {13, Zeros, Transposed},
	{single, Usual, Contiguous}, {1027, Ties, Contiguous}, {long, Negative, Contiguous}, {5, ZeroRows, Expanded}, {257, NonFinite, Contiguous}, {255, Large, Sliced},
}

// always is how many of them are made however long they take: none but the last of these, of
// long sums that cancel, shows an accumulator of a half dtype.
var always = 1 + slices.IndexFunc(first, func(s step) bool { return s.regime == Cancelling })

// long is the size of a symbol in focus with which a tensor has more elements than 16
// bits count, and threads are at work at the same time: below the 64 kB to which
// kernels limit a row. One that is alone has alone elements.
const long, alone = 11003, 70001

// vast is the size of a symbol in focus where a kernel has threads at work and all other sizes are
// 3: less is done before the next thread has started. Those draws are of rows and of another symbol.
const vast = alone

var vastDraws = []int{14, 17}

// single is the size of a symbol in focus with which all others are 1 too, once: a kernel may
// have a path of its own for one element.
const single = -2

// round reports whether all sizes are to be multiples of 8, as some kernels demand:
// where the size in focus is a power of two.
func (s step) round() bool { return s.size >= 8 && s.size&(s.size-1) == 0 }

// later are the sizes of the symbol in focus in draws beyond the first.
var later = []int{1, 2, 3, 5, 7, 8, 11, 15, 16, 17, 23, 31, 32, 33, 47, 63, 64, 65, 97, 100, 127, 128, 129, 191, 255, 256, 257, 384, 500, 511, 512, 513, 700, 1000, 1023, 1024, 1025, 1500, 2047, 2049, 3001, 4096, 5000}

var (
	regimes = []Regime{Usual, Usual, Usual, Offset, Large, Negative, ConstRows, Ties, NonFinite, Zeros, Extremes, Tiny, Cancelling}
	layouts = []Layout{Contiguous, Contiguous, Transposed, Sliced, Expanded}
)

// beyond are sizes of other symbols than that of rows, beyond the usual blocks of tiles,
// which are below blocks.
var beyond = []int{65, 67, 96, 100, 129, 130, 200, 257}

const (
	blocks     = 64
	tenth      = 10
	usualBlock = 1024 // of a row, at most
)

// most is how many elements a tensor of a case may have.
const most = 1 << 18

// mostTimed is how many elements a tensor may have that is there to be timed.
const mostTimed = 1 << 24

func (c *Case) most() int {
	if c.large {
		return mostTimed
	}
	return most
}

// attempts is how often a case is drawn until one is legal.
const attempts = 24

// redrawn is how often an operator's literal is asked for one that has rows: nothing of them
// shows in a tensor without.
const redrawn = 16

// Promises narrow what is drawn to what a kernel claims.
type Promises struct {
	DTypes               []tensor.DType
	Layouts              []Layout
	NoEmpty, NoNonFinite bool
	Ranges               map[string][2]int // of symbols, both ends included
	Grad                 *bool             // nil: where the kernel has gradients
	GradGrad             bool              // of the second order too
	Shapes               Shapes            // in terms of the examples'; "" for any of a function, near for a problem
}

// maker draws cases.
type maker struct {
	seed     uint64
	target   string
	promises Promises
	// signature returns that of a draw: an operator's literal has a new one each time.
	signature func(src *choice.Source, dt tensor.DType) (*Signature, error)
	legal     func(*program.Program) bool // nil: the reference says
	form      form                        // nil where the cases are of a function
	bounds    map[string]int              // of symbols, by calls that took too long
	several   bool                        // elements are what the reference wants
	ran       []launched                  // that calls have had, by their sizes
	work      []computed                  // by the reference
	reduced   map[string]bool             // symbols that results have been seen without
	threads   bool                        // the kernel has threads at work
	parts     [][]int                     // of the reference's result, that have gradients; nil until it is known
}

// dtype is that of case i: every second one is of another dtype than the first. In the
// second round of the first draws those are of the first dtype that were of another.
func (m *maker) dtype(i int) tensor.DType {
	all := m.promises.DTypes
	if i%len(first) == i || i >= 2*len(first) {
		i++
	}
	if others := all[1:]; len(others) > 0 && i%2 == 0 {
		if i == 2 && slices.Contains(others, tensor.F16) { // where a sum of large squares overflows
			return tensor.F16
		}
		return others[i/2%len(others)]
	}
	return all[0]
}

// draw makes case i in a dtype: the first draws, twice where there are several dtypes,
// then random ones.
func (m *maker) draw(i int, dt tensor.DType) (*Case, error) {
	n := i
	if len(m.promises.DTypes) > 1 && i < 2*len(first) {
		n = i % len(first)
	}
	var last error
	for try := range attempts {
		src := choice.New(choice.Derive(choice.DeriveName(m.seed, "kernel"), uint64(i)*attempts+uint64(try)))
		s := m.step(src, n)
		if s.size == single && (i != n || try > 0 || m.several || m.form != nil) {
			s.size = 1
		}
		if try > attempts/2 {
			s.size = -1
		}
		c, err := m.build(src, dt, s, i, try)
		if err != nil {
			last = err
			continue
		}
		if m.legal == nil || m.legal(c.program) {
			return c, nil
		}
		last = fmt.Errorf("case %d: no legal call of these sizes in %d draws", i, attempts)
	}
	return nil, last
}

// step returns what draw n of a dtype is to be like.
func (m *maker) step(src *choice.Source, n int) step {
	var s step
	if n < len(first) {
		s = first[n]
	} else {
		s = step{later[src.Index(len(later))], regimes[src.Index(len(regimes))], layouts[src.Index(len(layouts))]}
	}
	p := m.promises
	if s.size == 0 && p.NoEmpty {
		s.size = 3
	}
	if p.NoNonFinite && s.regime == NonFinite {
		s.regime = Usual
	}
	if len(p.Layouts) > 0 && !slices.Contains(p.Layouts, s.layout) {
		s.layout = p.Layouts[src.Index(len(p.Layouts))]
	}
	return s
}

// build makes a case of a drawn signature. The symbol in focus is the first one, of the
// last dimension, in every second case, by turns with those that are reduced, and one of
// the others by turns else. Each of these is larger than a block once among the first
// draws, as a second one where there are many; from the tenth draw on that one, or a second
// one, is too.
func (m *maker) build(src *choice.Source, dt tensor.DType, s step, i, try int) (*Case, error) {
	c := &Case{Index: i, DType: dt, Regime: s.regime, Layout: s.layout, Sizes: map[string]int{}, Key: src.Key()}
	if m.form != nil {
		return c, m.form.size(c, src, s, i, try, m)
	}
	shown := i < 2*len(first) && s.regime != Usual && s.size != 1 // among the first, in rows
	sig, err := m.signature(src, dt)
	for n := 0; n < redrawn && err == nil && shown && !sig.rows(); n++ {
		sig, err = m.signature(src, dt)
	}
	if err != nil {
		return nil, err
	}
	c.sig = sig
	symbols := sig.Symbols()
	rows := m.along(symbols)
	focus, second, size, narrow := 0, -1, s.size, false
	if len(rows) > 0 {
		focus = rows[i/4%len(rows)]
	}
	if len(rows) > 0 && i < tenth && size > usualBlock && m.reduced[symbols[0]] {
		focus = 0 // as of a loss: rows are in blocks, and how many there are is not
	}
	if len(symbols) > 1 && (i/2%2 == 1 && s.regime != Cancelling && s.size != long || try > 4) {
		focus = m.other(symbols, turnOf(i), try)
		if (i >= tenth || widens(turnOf(i), len(symbols)-1)) && try <= 4 && 0 < size && size < blocks && !s.round() {
			size = beyond[src.Index(len(beyond))]
		}
	} else if turn, ok := besideRows[i]; ok && try <= 4 && turns < len(symbols)-1 && turn < len(symbols)-1 {
		second, narrow = m.other(symbols, turn, try), true
	} else if alone := shown && s.regime == Offset && size < blocks; i >= tenth && try <= 4 && !alone && src.Index(3) == 0 {
		second = src.Index(len(symbols)) // sums over two sizes are long as well
	}
	spread := m.threads && try < 3 && slices.Contains(vastDraws, i)
	least := int64(1)
	if shown {
		least = 2
	}
	beside := (focus + 1) % max(len(symbols), 1)
	for n := range symbols {
		if k := (focus + 1 + n) % len(symbols); k != focus && sig.together(symbols[k], symbols[focus]) {
			beside = k
			break
		}
	}
	offsets := sig.offsets()
	for k, name := range symbols {
		n := int(src.Int(least, 6))
		switch {
		case spread:
			switch n = 3; {
			case len(symbols) == 1:
				n = most
			case k == focus:
				n = vast
			}
		case s.size == single:
			n = 1
		case s.size == long && k != focus:
			switch n = 1; {
			case k == beside:
				n = 8
			case !sig.together(name, symbols[focus]): // as of indices: some are of what is beyond 16 bits
				n = 4
			}
		case s.size == long && len(symbols) == 1:
			n = alone
		case k == focus && size >= 0:
			n = size
		case k == second:
			n = beyond[src.Index(len(beyond))]
		case narrow:
			n = narrowest
		case s.round():
			n = 8
		}
		c.Sizes[name] = m.within(src, name, m.bounded(name, m.promised(src, sig, name, s, k == focus, n)))
		if slices.Contains(offsets, name) {
			c.Sizes[name] = max(c.Sizes[name], 1)
		}
	}
	m.thin(c.Sizes)
	m.foresee(sig, c.Sizes)
	if m.differentiate(c); s.size == single { // autograd refuses to change an argument in place
		c.Grad, c.Cotangents = false, ""
	}
	return c, m.write(c)
}

// turns is the last turn of another symbol than that of rows before the tenth draw; what has
// its turn later, or at a size of 1, is large beside rows in one of these draws.
const turns = 3

var besideRows = map[int]int{1: 0, 5: turns + 1}

// turnOf is the turn of draw i, if another symbol than that of rows is in focus there.
func turnOf(i int) int { return i/4*2 + i%2 }

// widens reports whether before the tenth draw the symbol of a turn is to be larger than a
// block: each of so many is once, and smaller in what is left.
func widens(turn, others int) bool { return 0 < turn && turn <= min(turns, others) }

// other is the symbol but the first whose turn it is; which is the first of them follows
// from the seed.
func (m *maker) other(symbols []string, turn, try int) int {
	if try > 4 {
		turn += try
	}
	return 1 + (turn+int(m.seed%1021))%(len(symbols)-1)
}

// along lists the symbols along which kernels go in blocks: the first one, which is of the
// last dimension, and those that are reduced.
func (m *maker) along(symbols []string) []int {
	var all []int
	for k, name := range symbols {
		if k == 0 || m.reduced[name] {
			all = append(all, k)
		}
	}
	return all
}

// reduces learns from a result of a case which sizes it has not: they are reduced.
func (m *maker) reduces(c *Case, o *backend.Outcome) {
	if m.legal != nil || m.form != nil { // an operator's literal has other symbols each time
		return
	}
	var dims []int
	for _, v := range o.Values {
		for _, t := range leaves(v) {
			dims = append(dims, t.Shape()...)
		}
	}
	for name, n := range c.Sizes {
		if n > 1 && !slices.ContainsFunc(dims, func(d int) bool { return d%n == 0 }) {
			if m.reduced == nil {
				m.reduced = map[string]bool{}
			}
			m.reduced[name] = true
		}
	}
}

// within brings a size into what is promised, or near what a problem gives.
func (m *maker) within(src *choice.Source, name string, n int) int {
	if r, ok := m.promises.Ranges[name]; ok && (n < r[0] || n > r[1]) {
		if span := r[1] - r[0]; span < 4096 {
			return r[0] + src.Index(span+1)
		}
		return []int{r[0], r[1]}[src.Index(2)]
	}
	return n
}

// write makes the program of a case's sizes, values and layout. What else is drawn
// follows from its key.
func (m *maker) write(c *Case) error {
	src := choice.New(choice.Derive(c.Key, 1<<33))
	p := &program.Program{Name: "kernel", Seed: c.seed()}
	for k := range c.sig.Inputs {
		in, err := c.input(k, src)
		if err != nil {
			return err
		}
		p.Inputs = append(p.Inputs, *in)
	}
	call := program.Call{Result: resultName, Target: m.target}
	for _, a := range c.sig.Args {
		v := a.value(c, src)
		if a.Keyword {
			call.Kwargs = append(call.Kwargs, program.Kwarg{Name: a.Name, Value: v})
		} else {
			call.Args = append(call.Args, v)
		}
	}
	p.Calls = []program.Call{call}
	if c.Grad {
		m.leave(c, p)
		m.backward(c, p)
	}
	c.program = p
	return p.Validate()
}

// resultName is what programs call a kernel's result; no parameter is called so.
const resultName = "result_"

func (a *Arg) value(c *Case, src *choice.Source) any {
	if len(a.Inputs) > 0 {
		refs := program.List{}
		for _, k := range a.Inputs {
			refs = append(refs, program.Ref(c.sig.Inputs[k].Name))
		}
		if a.IsList {
			return refs
		}
		return refs[0]
	}
	if a.Sizes != nil {
		shape := program.Tuple{}
		for _, s := range a.Sizes {
			shape = append(shape, int64(s.At(c.Sizes)))
		}
		return shape
	}
	if len(a.Choices) == 0 {
		return nil
	}
	return a.Choices[src.Index(len(a.Choices))]
}

// input describes one of a case's tensors.
func (c *Case) input(k int, src *choice.Source) (*program.Input, error) {
	of := &c.sig.Inputs[k]
	in := &program.Input{Name: of.Name, DType: of.DType}
	if of.isFloat() {
		in.DType = c.DType
	}
	elements := 1
	for _, d := range of.Dims {
		n := d.At(c.Sizes)
		if n < 0 {
			return nil, fmt.Errorf("%s has a size of %d", of.Name, n)
		}
		in.Shape = append(in.Shape, n)
		if elements *= max(n, 1); elements > c.most() {
			return nil, fmt.Errorf("%s has more than %d elements", of.Name, c.most())
		}
	}
	if in.Shape == nil {
		in.Shape = []int{}
	}
	in.Fill = of.fill(c, k)
	switch {
	case !of.free():
	case c.Regime == Cancelling:
		in.Fill = cancelling(in, c.keyOf(k), k == c.sig.firstFree())
	case c.Regime == Large && c.rises():
		in.Fill = rising(in)
	case c.Regime == NonFinite && !c.strikes(k):
		in.Fill.Special = 0
	}
	switch {
	case len(of.Among) > 0:
		in.Fill = among(in, of.Among)
	case of.Above && c.Regime == Ties: // a quotient by a scale lies halfway between whole numbers
		in.Fill = among(in, []float64{2, 4})
	}
	if of.Pattern != "" {
		in.Fill = of.Pattern.fill(in)
	}
	if in.Strides = of.Strides; of.Strides == nil && !of.NoGrad { // others may be changed in place, as running statistics are
		in.Strides = c.strides(in.Shape, src)
	}
	in.RequiresGrad = c.Grad && in.DType.IsDifferentiable() && !of.NoGrad
	return in, nil
}

// rises reports whether the rows of a case of Large rise, as the later one of the first
// draws does, so that each block of a row has a larger maximum than those before it.
func (c *Case) rises() bool {
	if c.Index < 2*len(first) {
		return c.Index%len(first) > len(first)/2
	}
	return c.Key&1 == 1
}

// strikes reports whether input k of a case of NonFinite has NaN and infinities: one of
// several has, so that what the others are multiplied by stays finite, and what comes of
// two infinities does not hang on the order of operations. Among the first draws each has
// its turn.
func (c *Case) strikes(k int) bool {
	var free []int
	for i := range c.sig.Inputs {
		if c.sig.Inputs[i].free() {
			free = append(free, i)
		}
	}
	turn := c.Key
	if c.Index < 2*len(first) {
		turn = uint64(c.Index / 14) // 14 lie between two that have them
	}
	return free[turn%uint64(len(free))] == k
}

func (in *Input) fill(c *Case, k int) program.Fill {
	f := program.Fill{Dist: program.Normal, Hi: 1, Key: c.keyOf(k)}
	switch {
	case in.Literal != nil:
		return program.Fill{Dist: program.Literal, Data: in.Literal}
	case in.Below != nil:
		f.Dist, f.Lo, f.Hi = program.Integer, in.Lo, float64(max(in.Below.At(c.Sizes), 1))
	case in.DType == tensor.Bool:
		f.Dist, f.Lo, f.Hi = program.Integer, 0, 2
	case in.DType.IsInt():
		f.Dist, f.Lo, f.Hi = program.Integer, in.Lo, in.Hi
		if !in.Bounded {
			f.Lo, f.Hi = -8, 9
			switch bits := 8 * in.DType.Size(); {
			case c.Regime == Large && bits <= 16: // differences of such are beyond the dtype
				f.Lo, f.Hi = -math.Ldexp(1, bits-1), math.Ldexp(1, bits-1)
			case c.Regime == Large:
				half := math.Ldexp(1, min(bits, 54)-2) // of the range of the dtype, and exact in float64
				f.Lo, f.Hi = -half, half
			}
			if in.DType == tensor.U8 {
				if f.Lo = 0; c.Regime == Large {
					f.Hi = 256
				}
			}
		}
	case in.Bounded:
		f.Dist, f.Lo, f.Hi = program.Uniform, in.Lo, in.Hi
		switch {
		case in.Above && c.Regime == Tiny && c.DType != tensor.F16: // what variances may be
			f.Lo, f.Hi = 1e-12, 1e-10
		case in.Above && (c.Regime == Tiny || c.Regime == ZeroRows):
			f.Lo, f.Hi = 1e-6, 1e-4
		case in.Above && c.Regime == Large:
			f.Lo, f.Hi = 50, 150
		}
		if c.Regime == Zeros && in.Lo <= 0 && 0 <= in.Hi {
			f.Special = program.Zeros
		}
	case in.free():
		in.regime(&f, c.Regime)
		if c.Regime == Offset && !half(c.DType) { // E[x²] - E[x]² loses the variance whole; two passes lose no more than the bound of their means
			f.Hi = 1. / 16
		}
	}
	return f
}

// among makes the elements of an input of a few values, as its fill draws them.
func among(in *program.Input, values []float64) program.Fill {
	drawn := *in
	drawn.Strides, drawn.Fill = nil, program.Fill{Dist: program.Integer, Lo: 0, Hi: float64(len(values)), Key: in.Fill.Key}
	data := drawn.Materialize()
	for i := range data.Len() {
		data.Set(i, complex(values[int(real(data.At(i)))], 0))
	}
	return program.Fill{Dist: program.Literal, Data: data}
}

func (in *Input) regime(f *program.Fill, r Regime) {
	switch r {
	case AsGiven:
		if in.Lo < in.Hi {
			f.Dist, f.Lo, f.Hi = program.Uniform, in.Lo, in.Hi
		}
	case Offset:
		f.Lo, f.Hi = 300, 0.5
	case Large:
		f.Dist, f.Lo, f.Hi = program.Uniform, -150, 150
	case Negative:
		f.Dist, f.Lo, f.Hi = program.Uniform, -4, -0.25
	case ConstRows:
		f.Dist, f.Lo, f.Hi = program.Constant, 1.75, 0
	case ZeroRows:
		f.Dist, f.Lo, f.Hi = program.Constant, 0, 0
	case Ties:
		f.Dist, f.Lo, f.Hi = program.Integer, -2, 3
	case NonFinite:
		f.Dist, f.Lo, f.Hi, f.Special = program.Uniform, -3, 3, program.Infs|program.NaNs
	case Zeros:
		f.Dist, f.Lo, f.Hi, f.Special = program.Uniform, -3, 3, program.Zeros
	case Extremes:
		f.Dist, f.Lo, f.Hi, f.Special = program.Uniform, -3, 3, program.Extremes|program.Subnormals
	case Tiny:
		f.Hi = 1e-4
	}
}

func (c *Case) strides(shape []int, src *choice.Source) []int {
	n := len(shape)
	switch {
	case c.Layout == Transposed && n >= 2:
		order := make([]int, n)
		for i := range order {
			order[i] = i
		}
		order[n-1], order[n-2] = order[n-2], order[n-1]
		return tensor.PermutedStrides(shape, order)
	case c.Layout == Sliced && n >= 1:
		return tensor.SpacedStrides(shape, 2)
	case c.Layout == Expanded && n >= 1:
		at := src.Index(n)
		once := slices.Clone(shape)
		once[at] = 1
		strides := tensor.ContiguousStrides(once)
		strides[at] = 0
		return strides
	}
	return nil
}

// String names what is special about a case.
func (c *Case) String() string {
	s := c.DType.String()
	for _, name := range c.names() {
		s += fmt.Sprintf(" %s=%d", name, c.Sizes[name])
	}
	if c.Regime != Usual {
		s += ", " + string(c.Regime)
	}
	if c.Layout != Contiguous {
		s += ", " + string(c.Layout)
	}
	if c.eval {
		s += ", in eval"
	}
	if c.Grad {
		s += ", with gradients"
		if c.Cotangents != "" {
			s += " of a cotangent that is " + string(c.Cotangents)
		}
	}
	return s
}

// names are the symbols of a case's sizes.
func (c *Case) names() []string {
	if names := c.sig.Symbols(); len(names) > 0 {
		return names
	}
	return slices.Sorted(maps.Keys(c.Sizes))
}

// coarser reports a case of float64 by a reference that computes in a coarser dtype, as where
// it says .float(): what float64 would tell is not there, and no other one is drawn. Where it
// is promised first it is judged all the same.
func (s *Session) coarser(c *Case) bool {
	p := &s.maker.promises
	if s.traced == nil || p.DTypes[0] == tensor.F64 || !s.traced.narrows(c) {
		return false
	}
	p.DTypes = slices.DeleteFunc(slices.Clone(p.DTypes), func(d tensor.DType) bool { return d == tensor.F64 })
	s.note("float64 is not drawn: the reference computes in a coarser dtype there")
	return true
}
