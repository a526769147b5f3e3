package worker

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"plumb/backend"
	"plumb/internal/refusal"
	"plumb/program"
	"plumb/tensor"
)

// maxName and maxMessage bound the texts of a subject that are kept, in bytes.
const (
	maxName    = 200
	maxMessage = 4 << 10
)

// maxLogical bounds the bytes that a result would need without strides of zero,
// maxReuse how often a reply may refer to the same bytes.
const (
	maxLogical = 1 << 36
	maxReuse   = 4
	// maxCotangent bounds the elements of a cotangent that a worker may ask for.
	maxCotangent = 1 << 28
	// maxValues bounds the elements of tuples in a reply.
	maxValues = 1 << 18
)

// replyDecoder reads a reply into the outcomes of the jobs that todo lists. It
// trusts nothing: sizes and offsets are checked against the mapping.
type replyDecoder struct {
	reader
	mem      *memory
	jobs     []*backend.Job
	todo     []int
	lengths  []int
	outs     []*backend.Outcome
	cpu      time.Duration
	cases    []byte
	request  int  // its number
	copied   int  // bytes of tensors so far
	elements int  // of tuples so far
	shared   bool // large tensors stay where they are
	info     *backend.Info
}

// decode sets outs and cpu. Tensors are copied out of shared memory.
func (d *replyDecoder) decode(payload []byte) error {
	if err := valid(payload); err != nil {
		return err
	}
	d.b = payload
	size := 0
	for key, ok := d.object(); ok; key, ok = d.nextKey() {
		switch key {
		case "id":
			if got := d.int(); got != d.request {
				d.fail("an answer to request %d where that to request %d is due", got, d.request)
			}
		case "size":
			size = d.int()
		case "cpu":
			d.cpu = seconds(d.number())
		case "cases":
			start := d.i
			d.skip()
			d.cases = payload[start:d.i]
		default:
			d.skip()
		}
	}
	if d.err != nil {
		return d.err
	}
	if err := d.mem.follow(size); err != nil {
		return fmt.Errorf("reply: shared memory of %d bytes: %w", size, err)
	}
	d.reader = reader{b: d.cases}
	n := 0
	for ok := d.array(); ok; ok = d.more() {
		if n == len(d.todo) {
			return fmt.Errorf("reply: more than %d cases", n)
		}
		d.oneCase(d.todo[n])
		n++
	}
	if d.err == nil && n < len(d.todo) {
		return fmt.Errorf("reply: %d cases of %d", n, len(d.todo))
	}
	return d.err
}

func (d *replyDecoder) oneCase(i int) {
	job := d.jobs[i]
	out := &backend.Outcome{ForwardOnly: d.info.ForwardOnly, NoElements: d.info.NoElements, Permissive: d.info.Permissive, OwnForms: d.info.OwnForms}
	status := ""
	need := 0
	for key, ok := d.object(); ok; key, ok = d.nextKey() {
		switch key {
		case "status":
			status = d.string()
		case "class":
			out.Class = backend.Printable(d.string(), maxName)
		case "message":
			out.Message = backend.Printable(d.string(), maxMessage)
		case "call":
			out.Call = d.int()
		case "elapsed":
			out.Elapsed = time.Duration(d.int())
		case "cpu":
			out.CPU = time.Duration(d.int())
		case "measured":
			out.Measured = time.Duration(d.int())
		case "need":
			need = d.int()
		case "values":
			d.values(job, out)
		case "modules":
			d.modules(job, out)
		case "grads":
			d.grads(job, out, backend.PartGrad)
		case "made":
			d.made(job, out)
		case "grads2":
			d.grads(job, out, backend.PartSecondGrad)
		case "changes":
			d.changes(job, out)
		case "refused":
			out.Refused = d.plain() == true
		case "no_gradients":
			out.ForwardOnly, out.NoGradients = true, backend.Printable(d.string(), maxMessage)
		default:
			d.skip()
		}
	}
	if d.err != nil {
		return
	}
	if status == "need" {
		d.need(i, need)
		return
	}
	d.finish(job, out, backend.Status(status))
	d.outs[i] = out
}

func (d *replyDecoder) need(i, n int) {
	if n <= d.lengths[i] || n > maxCotangent {
		d.fail("needs a cotangent of %d elements, %d were sent", n, d.lengths[i])
	}
	d.lengths[i] = n
}

var statuses = []backend.Status{backend.OK, backend.Raised, backend.OutOfMemory, backend.Unsupported, backend.Crashed, backend.TimedOut}

func (d *replyDecoder) finish(job *backend.Job, out *backend.Outcome, status backend.Status) {
	out.Status = status
	refusal.Classify(out)
	calls := len(job.Program.Calls)
	switch {
	case !slices.Contains(statuses, status):
		d.fail("status %q", status)
	case out.Call < 0 || out.Call > calls:
		d.fail("call %d of %d", out.Call, calls)
	case status == backend.OK && len(out.Values) != calls:
		d.fail("%d values of %d calls", len(out.Values), calls)
	}
}

func (d *replyDecoder) values(job *backend.Job, out *backend.Outcome) {
	out.Values = make([]backend.Value, 0, len(job.Program.Calls))
	for ok := d.array(); ok; ok = d.more() {
		if len(out.Values) == len(job.Program.Calls) {
			d.fail("more values than calls")
			return
		}
		out.Values = append(out.Values, d.value(0))
	}
}

const maxDepth = 32

// value reads a plain value, or a tagged one.
func (d *replyDecoder) value(depth int) backend.Value {
	if d.peek() != '[' {
		return backend.Value{Plain: d.plain()}
	}
	if depth == maxDepth {
		d.fail("tuples nested more than %d deep", maxDepth)
		return backend.Value{}
	}
	var v backend.Value
	d.array()
	switch tag := d.string(); tag {
	case "t":
		v.Tensor, v.RequiresGrad = d.tensor()
		return v
	case "u":
		v.IsTuple = true
		d.more()
		for ok := d.array(); ok; ok = d.more() {
			if d.elements++; d.elements > maxValues {
				d.fail("more than %d elements of tuples", maxValues)
			}
			v.Tuple = append(v.Tuple, d.value(depth+1))
		}
	case "m":
		v.Module = true
	case "f":
		d.more()
		v.Plain = d.namedFloat()
	case "c":
		d.more()
		re := d.part()
		d.more()
		v.Plain = complex(re, d.part())
	case "x":
		d.more()
		v.Plain = "unsupported " + backend.Printable(d.string(), maxName)
	default:
		d.fail("value tag %q", tag)
	}
	d.rest()
	return v
}

// part reads a component of a complex number.
func (d *replyDecoder) part() float64 {
	if d.peek() != '[' {
		return d.number()
	}
	d.array()
	d.string()
	d.more()
	f := d.namedFloat()
	d.rest()
	return f
}

// tensor reads what follows the tag "t", the closing bracket included.
func (d *replyDecoder) tensor() (*tensor.Tensor, bool) {
	d.more()
	dtype := d.dtype()
	d.more()
	offset := d.int()
	d.more()
	shape := d.ints()
	d.more()
	var strides []int
	if d.peek() == 'n' {
		d.plain()
		strides = contiguous(shape)
	} else {
		strides = d.ints()
	}
	d.more()
	grad, _ := d.plain().(bool)
	d.rest()
	if d.err != nil {
		return nil, false
	}
	t, err := d.mem.tensor(dtype, offset, shape, strides, d.shared)
	if err != nil {
		d.fail("%v", err)
		return nil, false
	}
	if d.copied += len(t.Storage()); d.copied > maxReuse*len(d.mem.bytes) {
		d.fail("more than %d times the shared memory in tensors", maxReuse)
	}
	return t, grad
}

// contiguous is tensor.ContiguousStrides for shapes that may be nonsense.
func contiguous(shape []int) []int {
	if tensor.CheckShape(tensor.U8, shape) != nil {
		return make([]int, len(shape))
	}
	return tensor.ContiguousStrides(shape)
}

func (d *replyDecoder) dtype() tensor.DType {
	name := d.string()
	t, err := tensor.ParseDType(name)
	if err != nil {
		d.fail("%v", err)
	}
	return t
}

func (d *replyDecoder) ints() []int {
	ns := make([]int, 0, 4)
	for ok := d.array(); ok; ok = d.more() {
		ns = append(ns, d.int())
	}
	return ns
}

// optionalTensor reads a tagged tensor; nil for null and for what is no dense tensor.
func (d *replyDecoder) optionalTensor() *tensor.Tensor { return d.value(maxDepth - 1).Tensor }

// grads reads the gradients of the inputs that require one.
func (d *replyDecoder) grads(job *backend.Job, out *backend.Outcome, part backend.Part) {
	next := 0
	inputs := job.Program.Inputs
	for ok := d.array(); ok; ok = d.more() {
		for next < len(inputs) && !inputs[next].RequiresGrad {
			next++
		}
		if next == len(inputs) {
			d.fail("more gradients than inputs that require one")
			return
		}
		out.Add(backend.Place{Part: part, Owner: inputs[next].Name}, d.optionalTensor())
		next++
	}
}

// changes reads what calls changed: the index of the call, that of the value,
// and the tensor, each.
func (d *replyDecoder) changes(job *backend.Job, out *backend.Outcome) {
	p := job.Program
	out.Watched = true
	for ok := d.array(); ok; ok = d.more() {
		d.array()
		call := d.int()
		d.more()
		value := d.int()
		d.more()
		t := d.optionalTensor()
		d.rest()
		if call < 0 || call >= len(p.Calls) || value < 0 || value >= len(p.Inputs)+call {
			d.fail("call %d changes value %d", call, value)
			return
		}
		if t != nil {
			out.Add(backend.Place{Part: backend.PartChange, Call: call, Owner: nameOf(p, value)}, t)
		}
	}
}

// made reads the gradients of leaves that are no inputs with one: pairs of a
// position among inputs and calls, and a tensor.
func (d *replyDecoder) made(job *backend.Job, out *backend.Outcome) {
	p := job.Program
	for ok := d.array(); ok; ok = d.more() {
		d.array()
		i := d.int()
		d.more()
		t := d.optionalTensor()
		d.rest()
		if i < 0 || i >= len(p.Inputs)+len(p.Calls) {
			d.fail("gradient of value %d", i)
			return
		}
		out.Add(backend.Place{Part: backend.PartGrad, Owner: nameOf(p, i)}, t)
	}
}

// nameOf returns the name of a value by its position among inputs and calls.
func nameOf(p *program.Program, i int) string {
	if i < len(p.Inputs) {
		return p.Inputs[i].Name
	}
	return p.Calls[i-len(p.Inputs)].Result
}

// moduleParts are the parts of an outcome by their keys in a module's reply.
var moduleParts = map[string]backend.Part{
	"final": backend.PartState, "grads": backend.PartParamGrad, "grads2": backend.PartSecondParamGrad, "stepped": backend.PartStep,
}

func (d *replyDecoder) modules(job *backend.Job, out *backend.Outcome) {
	for ok := d.array(); ok; ok = d.more() {
		call := -1
		var initial backend.State
		var slots []backend.Slot
		for key, ok := d.object(); ok; key, ok = d.nextKey() {
			part, known := moduleParts[key]
			switch {
			case key == "call":
				call = d.int()
			case key == "initial":
				initial = d.state()
			case known:
				for _, n := range d.state() {
					slots = append(slots, backend.Slot{Place: backend.Place{Part: part, Name: n.Name}, Tensor: n.Tensor})
				}
			default:
				d.skip()
			}
		}
		if call < 0 || call >= len(job.Program.Calls) {
			d.fail("module of call %d", call)
			return
		}
		name := job.Program.Calls[call].Result
		if out.Initial == nil {
			out.Initial = map[string]backend.State{}
		}
		out.Initial[name] = initial
		for _, s := range slots {
			s.Owner = name
			out.Slots = append(out.Slots, s)
		}
	}
}

func (d *replyDecoder) state() backend.State {
	s := backend.State{}
	for ok := d.array(); ok; ok = d.more() {
		d.array()
		name := d.string()
		d.more()
		s = append(s, backend.Named{Name: name, Tensor: d.optionalTensor()})
		d.rest()
	}
	return s
}

// tensor returns a copy of a tensor in the region, with its strides, or the
// tensor itself.
func (m *memory) tensor(dtype tensor.DType, offset int, shape, strides []int, itself bool) (*tensor.Tensor, error) {
	if offset < 0 || offset > len(m.bytes) {
		return nil, fmt.Errorf("offset %d outside the shared memory", offset)
	}
	if slices.ContainsFunc(strides, func(s int) bool { return s < 0 }) {
		return nil, fmt.Errorf("negative strides %v", strides)
	}
	shared, err := tensor.FromBytes(dtype, shape, strides, 0, m.bytes[offset:])
	if err != nil {
		return nil, err
	}
	if shared.Len() > maxLogical/dtype.Size() {
		return nil, fmt.Errorf("%s is too large", shared)
	}
	if n := tensor.Extent(shape, strides) * dtype.Size(); itself && n >= smallest {
		return tensor.FromBytes(dtype, shape, strides, 0, m.bytes[offset:offset+n])
	}
	own := tensor.Unset(dtype, shape, strides)
	copy(own.Storage(), m.bytes[offset:])
	return own, nil
}

// smallest is from how many bytes on a tensor may stay in the region.
const smallest = 4 << 10

// decodeSignatures reads the reply to a signature request; nil for unknown.
func decodeSignatures(payload []byte) ([]string, error) {
	if err := valid(payload); err != nil {
		return nil, err
	}
	d := reader{b: payload}
	var texts []string
	for key, ok := d.object(); ok; key, ok = d.nextKey() {
		if key != "signatures" || d.peek() == 'n' {
			d.skip()
			continue
		}
		for ok := d.array(); ok; ok = d.more() {
			texts = append(texts, d.string())
		}
	}
	return texts, d.err
}

var (
	errGarbage = errors.New("garbage on the pipe")
	errBreach  = errors.New("reply")
)
