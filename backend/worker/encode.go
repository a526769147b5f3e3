package worker

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"unsafe"

	"plumb/backend"
	"plumb/op"
	"plumb/program"
	"plumb/tensor"
)

// encoder writes requests: tensors into shared memory, everything else as JSON
// after the four bytes of the frame's length.
type encoder struct {
	buf []byte
	mem *memory
	job *backend.Job
	// names are the positions that index returns, of a long program; nil of others.
	names map[program.Ref]int
	// places are the offsets of the job's inputs where they were drawn.
	places        []int
	shared        bool // inputs are drawn in shared memory
	uninitialised bool // those of floats are not drawn
	// mode is that of the cases; empty for eager.
	mode    string
	forward bool // no gradients are asked for
	// number is that of the last request; secret makes numbers that cannot be guessed.
	number int
	secret bool
	// typed draws cotangents in the dtype that a job tells; narrow says that the subject
	// takes them so.
	typed, narrow bool
	// drawn is where the request has cotangents; nil for a subject that may write
	// to them.
	drawn map[stream]int
}

// stream is a cotangent of so many numbers of a dtype.
type stream struct {
	fill  program.Fill
	n     int
	dtype tensor.DType
}

// frame returns the last request with its length in front.
func (e *encoder) frame() []byte {
	binary.LittleEndian.PutUint32(e.buf, uint32(len(e.buf)-4))
	return e.buf
}

// request encodes the jobs that todo lists. lengths holds, for each job, how
// many elements of its cotangents to send.
func (e *encoder) request(mem *memory, jobs []*backend.Job, todo, lengths []int) error {
	e.mem = mem
	clear(e.drawn)
	mem.top = align
	if e.shared {
		if err := e.sharedRoom(jobs); err != nil {
			return err
		}
	}
	e.number = e.next()
	e.buf = append(e.buf[:0], `....{"id":`...)
	e.int(e.number)
	e.raw(`,"cases":[`)
	for n, i := range todo {
		e.comma(n)
		e.job, e.places = jobs[i], e.places[:0]
		if err := e.program(lengths[i]); err != nil {
			return fmt.Errorf("program %s: %w", jobs[i].Program.Name, err)
		}
	}
	e.raw(`],"size":`)
	e.int(max(mem.top, startMemory))
	e.raw(`,"out":`)
	e.int(mem.top)
	e.raw(`}`)
	return nil
}

// resultRoom is for how many times the bytes of its inputs a batch gets room at
// once: a region that grows later has to be mapped again. Room costs nothing.
const resultRoom = 4

func (e *encoder) sharedRoom(jobs []*backend.Job) error {
	n := 0
	for _, job := range jobs {
		for i := range job.Program.Inputs {
			in := &job.Program.Inputs[i]
			strides := in.Strides
			if strides == nil {
				strides = tensor.ContiguousStrides(in.Shape)
			}
			n += tensor.Extent(in.Shape, strides)*in.DType.Size() + align
		}
	}
	return e.mem.room(resultRoom * n)
}

// next is the number of the next request.
func (e *encoder) next() int {
	if e.secret {
		return int(rand.Uint64() >> 11) // what JSON's numbers hold
	}
	return e.number + 1
}

func signatureRequest(name string) []byte {
	e := encoder{buf: []byte(`....{"signatures":`)}
	e.string(name)
	e.raw("}")
	return e.frame()
}

func (e *encoder) raw(s string) { e.buf = append(e.buf, s...) }
func (e *encoder) int(n int)    { e.buf = strconv.AppendInt(e.buf, int64(n), 10) }

func (e *encoder) comma(n int) {
	if n > 0 {
		e.buf = append(e.buf, ',')
	}
}

func (e *encoder) program(length int) error {
	p := e.job.Program
	e.names = namesOf(p)
	e.raw(`{"seed":`)
	e.int(int(p.Seed &^ (1 << 63)))
	if e.mode != "" {
		e.raw(`,"mode":`)
		e.string(e.mode)
	}
	if p.DType != tensor.Invalid {
		e.raw(`,"dtype":`)
		e.string(p.DType.String())
	}
	if p.Differentiates() && !e.forward {
		e.raw(`,"grads":true`)
	}
	if p.MakesLeaves() && !e.forward {
		e.raw(`,"leaves":true`)
	}
	if err := e.inputs(); err != nil {
		return err
	}
	e.raw(`],"calls":[`)
	for i := range p.Calls {
		e.comma(i)
		if err := e.call(&p.Calls[i]); err != nil {
			return fmt.Errorf("call %s: %w", p.Calls[i].Target, err)
		}
	}
	e.raw(`]`)
	if err := e.state(); err != nil {
		return err
	}
	if len(p.Backward) > 0 && !e.forward {
		if err := e.backward(length); err != nil {
			return err
		}
		if err := e.second(); err != nil {
			return err
		}
		if p.Step != (program.Step{}) {
			e.raw(`,"sgd":[`)
			e.float(p.Step.LR)
			e.raw(`,`)
			e.float(p.Step.Momentum)
			e.raw(`]`)
		}
	}
	if e.job.Wanted != nil {
		e.raw(`,"wanted":`)
		e.ints(e.job.Wanted)
	}
	if m := e.job.Measure; m != nil {
		e.raw(`,"measure":[`)
		e.int(m.Times)
		e.raw(fmt.Sprintf(`,%t]`, m.Backward))
	}
	e.raw(`}`)
	return nil
}

func (e *encoder) inputs() error {
	p := e.job.Program
	if e.shared {
		if err := e.draw(); err != nil {
			return err
		}
	}
	if len(e.job.Inputs) != len(p.Inputs) {
		return fmt.Errorf("%d tensors for %d inputs", len(e.job.Inputs), len(p.Inputs))
	}
	e.raw(`,"inputs":[`)
	for i, t := range e.job.Inputs {
		e.comma(i)
		if e.shared {
			e.entry(t, e.places[i])
		} else if err := e.tensor(t); err != nil {
			return err
		}
		if p.Inputs[i].RequiresGrad && !e.forward {
			e.raw(`,true]`)
		} else {
			e.raw(`,false]`)
		}
	}
	return nil
}

// draw draws the job's inputs in shared memory.
func (e *encoder) draw() error {
	for i := range e.job.Program.Inputs {
		in := &e.job.Program.Inputs[i]
		strides := in.Strides
		if strides == nil {
			strides = tensor.ContiguousStrides(in.Shape)
		}
		room, at, err := e.mem.reserve(tensor.Extent(in.Shape, strides) * in.DType.Size())
		if err != nil {
			return fmt.Errorf("shared memory for %s: %w", in.Name, err)
		}
		t, err := tensor.FromBytes(in.DType, in.Shape, strides, 0, room)
		if err != nil {
			return err
		}
		if tensor.NumElements(in.Shape)*in.DType.Size() < len(room) {
			clear(room)
		}
		if !e.uninitialised || !in.DType.IsDifferentiable() {
			in.Fill.Into(t)
		}
		e.job.Inputs = append(e.job.Inputs, t)
		e.places = append(e.places, at)
	}
	return nil
}

// tensor appends an entry without its closing bracket.
func (e *encoder) tensor(t *tensor.Tensor) error {
	for _, s := range t.Strides() {
		if s < 0 {
			t = t.Clone()
			break
		}
	}
	bytes := elements(t)
	room, at, err := e.mem.reserve(len(bytes))
	if err != nil {
		return fmt.Errorf("shared memory for %s: %w", t, err)
	}
	copy(room, bytes)
	e.entry(t, at)
	return nil
}

// entry appends the entry of a tensor at an offset, without its closing bracket.
func (e *encoder) entry(t *tensor.Tensor, at int) {
	e.raw(`["`)
	e.raw(t.DType().String())
	e.raw(`",`)
	e.int(at)
	e.raw(`,`)
	e.ints(t.Shape())
	if t.IsContiguous() {
		e.raw(`,null`)
		return
	}
	e.raw(`,`)
	e.ints(t.Strides())
}

// elements returns the bytes of t's storage from its first element to its last.
func elements(t *tensor.Tensor) []byte {
	size := t.DType().Size()
	n := tensor.Extent(t.Shape(), t.Strides())
	if n == 0 {
		return nil
	}
	return t.Storage()[t.Offset()*size : (t.Offset()+n)*size]
}

func (e *encoder) ints(ns []int) {
	e.raw(`[`)
	for i, n := range ns {
		e.comma(i)
		e.int(n)
	}
	e.raw(`]`)
}

func (e *encoder) call(c *program.Call) error {
	e.raw(`[`)
	e.string(c.Target)
	e.raw(`,`)
	if err := e.list(c.Args); err != nil {
		return err
	}
	if len(c.Kwargs) > 0 || len(c.Scopes) > 0 {
		if err := e.kwargs(c.Kwargs); err != nil {
			return err
		}
	}
	if len(c.Scopes) > 0 {
		e.raw(`,[`)
		for i, s := range c.Scopes {
			e.comma(i)
			if err := e.call(&program.Call{Target: s.Target, Args: s.Args, Kwargs: s.Kwargs}); err != nil {
				return err
			}
		}
		e.raw(`]`)
	}
	e.raw(`]`)
	return nil
}

func (e *encoder) kwargs(kwargs []program.Kwarg) error {
	e.raw(`,{`)
	for i, kw := range kwargs {
		e.comma(i)
		e.string(kw.Name)
		e.raw(`:`)
		if err := e.arg(kw.Value); err != nil {
			return err
		}
	}
	e.raw(`}`)
	return nil
}

func (e *encoder) list(args []any) error {
	e.raw(`[`)
	for i, a := range args {
		e.comma(i)
		if err := e.arg(a); err != nil {
			return err
		}
	}
	e.raw(`]`)
	return nil
}

func (e *encoder) arg(v any) error {
	switch v := v.(type) {
	case nil:
		e.raw(`null`)
	case bool:
		e.buf = strconv.AppendBool(e.buf, v)
	case int:
		e.int(v)
	case int64:
		e.buf = strconv.AppendInt(e.buf, v, 10)
	case float64:
		e.float(v)
	case complex128:
		e.tagged("c", floatText(real(v)), floatText(imag(v)))
	case string:
		e.string(v)
	case tensor.DType:
		e.tagged("d", v.String())
	case tensor.MemoryFormat:
		e.tagged("m", v.String())
	case op.DeviceName:
		e.tagged("v", string(v))
	case program.Ref:
		i, err := e.index(v)
		if err != nil {
			return err
		}
		e.raw(`["r",`)
		e.int(i)
		e.raw(`]`)
	case program.List:
		return e.sequence(`["l",`, v)
	case program.Tuple:
		return e.sequence(`["u",`, v)
	case program.Slice:
		return e.slice(v)
	case program.Ellipsis:
		e.raw(`["e"]`)
	default:
		return fmt.Errorf("argument of type %T", v)
	}
	return nil
}

func (e *encoder) sequence(open string, vs []any) error {
	e.raw(open)
	if err := e.list(vs); err != nil {
		return err
	}
	e.raw(`]`)
	return nil
}

func (e *encoder) slice(s program.Slice) error {
	e.raw(`["s"`)
	for _, part := range [3]any{s.Start, s.Stop, s.Step} {
		e.raw(`,`)
		if err := e.arg(part); err != nil {
			return err
		}
	}
	e.raw(`]`)
	return nil
}

func (e *encoder) tagged(parts ...string) {
	for i, s := range parts {
		if i == 0 {
			e.raw(`[`)
		} else {
			e.raw(`,`)
		}
		e.string(s)
	}
	e.raw(`]`)
}

// long is from how many calls on their names are found by a map.
const long = 32

// namesOf are the positions of a long program's names; nil of another's.
func namesOf(p *program.Program) map[program.Ref]int {
	if len(p.Calls) < long {
		return nil
	}
	names := make(map[program.Ref]int, len(p.Inputs)+len(p.Calls))
	for i := range p.Inputs {
		names[program.Ref(p.Inputs[i].Name)] = i
	}
	for i := range p.Calls {
		names[program.Ref(p.Calls[i].Result)] = len(p.Inputs) + i
	}
	return names
}

// index returns the position of a name among inputs and calls.
func (e *encoder) index(ref program.Ref) (int, error) {
	if i, ok := e.names[ref]; ok {
		return i, nil
	}
	p := e.job.Program
	for i := range p.Calls {
		if p.Calls[i].Result == string(ref) {
			return len(p.Inputs) + i, nil
		}
	}
	for i := range p.Inputs {
		if p.Inputs[i].Name == string(ref) {
			return i, nil
		}
	}
	return 0, fmt.Errorf("undefined name %s", ref)
}

func floatText(f float64) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}

// float appends a number that reads back as a float.
func (e *encoder) float(f float64) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		e.tagged("f", floatText(f))
		return
	}
	start := len(e.buf)
	e.buf = strconv.AppendFloat(e.buf, f, 'g', -1, 64)
	for _, c := range e.buf[start:] {
		if c == '.' || c == 'e' {
			return
		}
	}
	e.raw(`.0`)
}

func (e *encoder) string(s string) {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			quoted, _ := json.Marshal(s)
			e.buf = append(e.buf, quoted...)
			return
		}
	}
	e.raw(`"`)
	e.raw(s)
	e.raw(`"`)
}

func (e *encoder) state() error {
	if e.job.State == nil {
		return nil
	}
	e.raw(`,"state":{`)
	n := 0
	for i, c := range e.job.Program.Calls {
		state, ok := e.job.State[c.Result]
		if !ok {
			continue
		}
		e.comma(n)
		n++
		e.raw(`"`)
		e.int(i)
		e.raw(`":{`)
		for j, named := range state {
			e.comma(j)
			e.string(named.Name)
			e.raw(`:`)
			if err := e.tensor(named.Tensor); err != nil {
				return err
			}
			e.raw(`]`)
		}
		e.raw(`}`)
	}
	e.raw(`}`)
	return nil
}

func (e *encoder) backward(length int) error {
	if d := e.cotangentType(); d != tensor.F64 {
		e.raw(`,"cotangents":`)
		e.string(d.String())
	}
	e.raw(`,"backward":[`)
	for i, b := range e.job.Program.Backward {
		e.comma(i)
		index, err := e.index(b.Value)
		if err != nil {
			return err
		}
		e.raw(`[`)
		e.int(index)
		if err := e.cotangent(&b.Cotangent, length); err != nil {
			return err
		}
		e.raw(`,`)
		e.buf = strconv.AppendBool(e.buf, b.Auto)
		e.raw(`]`)
	}
	e.raw(`]`)
	return nil
}

// second appends the offsets of the cotangents of the gradients of the inputs
// that require one.
func (e *encoder) second() error {
	p := e.job.Program
	if p.Second.Dist == "" {
		return nil
	}
	e.raw(`,"second":[`)
	n := 0
	for i := range p.Inputs {
		if !p.Inputs[i].RequiresGrad {
			continue
		}
		numbers := p.SecondCotangent(i)
		at, err := e.float64s(len(numbers), func(room []float64) { copy(room, numbers) })
		if err != nil {
			return err
		}
		e.comma(n)
		e.int(at)
		n++
	}
	e.raw(`]`)
	return nil
}

// float64s has n numbers set in shared memory, and returns their offset.
func (e *encoder) float64s(n int, set func([]float64)) (int, error) {
	room, at, err := e.mem.reserve(8 * n)
	if err != nil {
		return 0, fmt.Errorf("shared memory for a cotangent: %w", err)
	}
	set(unsafe.Slice((*float64)(unsafe.Pointer(unsafe.SliceData(room))), n))
	return at, nil
}

// cotangentType is the dtype in which the job's cotangents cross.
func (e *encoder) cotangentType() tensor.DType {
	d := e.job.Cotangents
	if e.typed && e.narrow && e.mode == "" && e.job.Program.Second.Dist == "" && (d == tensor.F16 || d == tensor.BF16 || d == tensor.F32) {
		return d
	}
	return tensor.F64
}

func (e *encoder) cotangent(f *program.Fill, n int) error {
	if f.Dist == "" {
		e.raw(`,null,0`)
		return nil
	}
	one := stream{*f, n, e.cotangentType()}
	at, ok := e.drawn[one]
	if !ok {
		var err error
		if at, err = e.stream(&one); err != nil {
			return err
		}
		if e.drawn != nil {
			e.drawn[one] = at
		}
	}
	e.raw(`,`)
	e.int(at)
	e.raw(`,`)
	e.int(n)
	return nil
}

// stream draws a cotangent in shared memory, and returns its offset.
func (e *encoder) stream(s *stream) (int, error) {
	if s.dtype == tensor.F64 {
		return e.float64s(s.n, s.fill.CotangentInto)
	}
	room, at, err := e.mem.reserve(s.n * s.dtype.Size())
	if err != nil {
		return 0, fmt.Errorf("shared memory for a cotangent: %w", err)
	}
	t, err := tensor.FromBytes(s.dtype, []int{s.n}, []int{1}, 0, room)
	if err == nil {
		s.fill.CotangentOf(t)
	}
	return at, err
}
