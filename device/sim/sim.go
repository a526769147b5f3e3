// Package sim is a device that is there for tests: memory that the host cannot read,
// queues that work while the host goes on, memory that holds NaN until it is written,
// and counts of what crosses. Importing it registers the device "sim".
package sim

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"

	"plumb/op"
	"plumb/tensor"
)

// Name is the name of the device that is registered.
const Name = "sim"

// Streams is how many streams it has.
const Streams = 16

// Default is the device that is registered.
var Default = New(Name, Options{Streams: Streams})

func init() { op.RegisterDevice(Default.Device) }

// Options say how a device works.
type Options struct {
	Streams int // 0 for one
	// Held leaves what is queued undone until Sync, as a slow device would: what lacks
	// a Sync then fails each time.
	Held bool
	// Memory bounds the bytes that may be allocated in all; 0 for no bound.
	Memory int
}

// Device is a simulated device. Its embedded Device is what operators know.
type Device struct {
	*op.Device
	queues []queue

	mu     sync.Mutex
	counts Counts
	room   int // bytes that may yet be allocated; negative for no bound
}

// Counts are what a device did.
type Counts struct {
	ToDevice, FromDevice, Within                int // copies
	BytesToDevice, BytesFromDevice, BytesWithin int
	Launches                                    int // of kernels
	Allocated                                   int // bytes, in all
}

// New returns a device, which is not registered. Calls that have no kernel for its name
// run on the host.
func New(name string, o Options) *Device {
	d := &Device{queues: make([]queue, max(o.Streams, 1)), room: -1}
	if o.Memory > 0 {
		d.room = o.Memory
	}
	for i := range d.queues {
		d.queues[i].held = o.Held
		d.queues[i].idle.L = &d.queues[i].mu
	}
	d.Device = &op.Device{Name: name, Alloc: d.alloc, Copy: d.copy, Sync: d.sync, Streams: len(d.queues), Fallback: true}
	return d
}

// Counts returns what the device did since it was made.
func (d *Device) Counts() Counts {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.counts
}

func (d *Device) count(f func(c *Counts)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f(&d.counts)
}

// memory is an allocation, between guards.
type memory struct {
	of    *Device
	bytes []byte
	whole []byte
}

// poison is what memory holds before it is written: NaN in each floating dtype, far
// from zero in each integer one.
const poison = 0x7ffd

// guard is what lies around an allocation.
const (
	guard      = 0xa5
	guardBytes = 64
)

func (d *Device) alloc(bytes int) (tensor.Memory, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.room >= 0 {
		if d.room < bytes {
			return nil, op.RuntimeError("%s is out of memory: %d bytes are left of what may be allocated, not %d", d.Name, d.room, bytes)
		}
		d.room -= bytes
	}
	d.counts.Allocated += bytes
	whole := tensor.New(tensor.U8, bytes+2*guardBytes).Storage()
	m := &memory{of: d, whole: whole, bytes: whole[guardBytes:][:bytes:bytes]}
	for i := range whole {
		whole[i] = guard
	}
	for i := 0; i+1 < bytes; i += 2 {
		binary.LittleEndian.PutUint16(m.bytes[i:], poison)
	}
	return m, nil
}

// intact returns an error when something was written beside an allocation.
func (m *memory) intact() error {
	for i := range guardBytes {
		if m.whole[i] != guard || m.whole[len(m.whole)-1-i] != guard {
			return errors.New("it wrote outside of its tensors")
		}
	}
	return nil
}

// within returns the bytes of a region of the device.
func (d *Device) within(r tensor.Region) ([]byte, error) {
	m, ok := r.Memory.(*memory)
	if !ok || m.of != d {
		return nil, fmt.Errorf("%s: the memory is another device's", d.Name)
	}
	return m.bytes[r.At:][:r.Len:r.Len], nil
}

func (d *Device) queue(stream int) (*queue, error) {
	if stream < 0 || stream >= len(d.queues) {
		return nil, fmt.Errorf("%s has no stream %d, but %d", d.Name, stream, len(d.queues))
	}
	return &d.queues[stream], nil
}

// copy is the device's Copy. What comes from the host is staged at once.
func (d *Device) copy(stream int, to, from tensor.Region) error {
	q, err := d.queue(stream)
	if err != nil {
		return err
	}
	var dst, src []byte
	switch {
	case from.Memory == nil:
		src = append(src, from.Host...)
		d.count(func(c *Counts) { c.ToDevice++; c.BytesToDevice += len(src) })
	case to.Memory == nil:
		dst = to.Host
		d.count(func(c *Counts) { c.FromDevice++; c.BytesFromDevice += from.Len })
	default:
		d.count(func(c *Counts) { c.Within++; c.BytesWithin += from.Len })
	}
	if src == nil && from.Memory != nil {
		if src, err = d.within(from); err != nil {
			return err
		}
	}
	if dst == nil {
		if dst, err = d.within(to); err != nil {
			return err
		}
	}
	if len(dst) != len(src) {
		return fmt.Errorf("%s: a copy of %d bytes to %d", d.Name, len(src), len(dst))
	}
	q.add(func() error {
		copy(dst, src)
		return nil
	})
	return nil
}

func (d *Device) sync(stream int) error {
	q, err := d.queue(stream)
	if err != nil {
		return err
	}
	return q.wait()
}

// Launch queues work of a kernel of the device: f gets the run with tensors whose
// elements it may read and write, once all that was queued before it is done. It is
// called from a kernel's Run, which must not touch elements itself. An error of f, or a
// panic, is what the next Sync of the stream returns.
func Launch(c *op.Run, f func(c *op.Run) error) error {
	of := c.Out
	if c.ScratchOn != nil {
		of = append(of[:len(of):len(of)], c.ScratchOn)
	}
	l := &launch{seen: map[*memory]bool{}}
	own := *c
	own.Args = c.Args.MapValues(func(v op.Value) op.Value { return l.tensor(c, v.(*tensor.Tensor)) })
	own.Out = nil
	for _, t := range of {
		own.Out = append(own.Out, l.tensor(c, t))
	}
	if c.ScratchOn != nil {
		own.Scratch, own.ScratchOn = own.Out[len(own.Out)-1].Storage(), nil
		own.Out = own.Out[:len(own.Out)-1]
	}
	if l.err != nil || l.of == nil { // of no bytes at all
		return l.err
	}
	q, err := l.of.queue(c.Stream)
	if err != nil {
		return err
	}
	l.of.count(func(c *Counts) { c.Launches++ })
	q.add(func() (err error) {
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("a kernel panicked: %v", p)
			}
		}()
		err = f(&own)
		for m := range l.seen {
			err = errors.Join(err, m.intact())
		}
		return err
	})
	return nil
}

// launch is what a kernel is launched on.
type launch struct {
	of   *Device
	seen map[*memory]bool
	err  error
}

// tensor returns a tensor over the device's memory.
func (l *launch) tensor(c *op.Run, t *tensor.Tensor) *tensor.Tensor {
	if t.Device() != c.Device {
		l.err = fmt.Errorf("%s is on %s, the kernel on %s", t, t.Device(), c.Device)
		return t
	}
	r, err := t.Use(c.Stream)
	if err != nil || r.Memory == nil {
		l.err = errors.Join(l.err, err)
		return tensor.New(t.DType(), t.Shape()...)
	}
	m, ok := r.Memory.(*memory)
	if !ok {
		l.err = fmt.Errorf("%s is no simulated device", c.Device)
		return t
	}
	l.of, l.seen[m] = m.of, true
	u, err := tensor.FromBytes(t.DType(), t.Shape(), t.Strides(), t.Offset(), m.bytes[r.At:][:r.Len:r.Len])
	if err != nil {
		l.err = err
		return t
	}
	return u
}

// Kernels returns, of each kernel that a literal has for the host, one for the device of
// a name, which computes the same there.
func Kernels(device string, d *op.Def) []op.Kernel {
	var own []op.Kernel
	for _, k := range d.Kernels {
		if k.Device != "" {
			continue
		}
		run := k.Run
		k.Device, k.Reports = device, false
		k.Run = func(c *op.Run) error {
			err := Launch(c, run)
			if err == nil && slices.ContainsFunc(c.AllValues(), func(v op.Value) bool { return v.DType().IsInt() }) {
				return c.Device.Sync(c.Stream) // integers may be refused, as a divisor that is zero
			}
			return err
		}
		own = append(own, k)
	}
	return own
}

// Ported returns the table with kernels for the device of a name: of each operator of
// elements, those of the host. Any other kernel of the device comes before them. The rest
// of the table has none, and runs by copies.
func Ported(table *op.Table, device string) (*op.Table, error) {
	var defs []*op.Def
	for _, d := range table.Defs() {
		if d.Exact != nil && d.View == nil && len(d.Mutates) == 0 {
			kernels := Kernels(device, d)
			for i := range kernels {
				kernels[i].Priority += behind
			}
			d = d.With(kernels...)
		}
		defs = append(defs, d)
	}
	return op.NewTable(defs...)
}

// behind is the priority of ported kernels, beside that which they have on the host.
const behind = -1 << 20

// queue is a stream: work that is done in order.
type queue struct {
	mu      sync.Mutex
	idle    sync.Cond // told when running ends
	work    []func() error
	running bool
	held    bool
	err     error // the first since wait
}

func (q *queue) add(work func() error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.work = append(q.work, work)
	if !q.running && !q.held {
		q.running = true
		go q.run()
	}
}

// run does the work until there is none.
func (q *queue) run() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.work) > 0 {
		work := q.work[0]
		q.work[0], q.work = nil, q.work[1:]
		q.mu.Unlock()
		err := work()
		q.mu.Lock()
		if q.err == nil {
			q.err = err
		}
	}
	q.running = false
	q.idle.Broadcast()
}

func (q *queue) wait() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.running && len(q.work) > 0 {
		q.running = true
		go q.run()
	}
	for q.running {
		q.idle.Wait()
	}
	err := q.err
	q.err = nil
	return err
}
