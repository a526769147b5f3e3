package tensor

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
)

// Device is where elements lie and kernels run, beside the host, whose devices are nil.
// The host never touches the memory of a device: it moves with Tensor.To.
type Device struct {
	Name string
	// Alloc returns memory of so many bytes, aligned for every element type, that holds
	// anything. It is free again when nobody refers to it.
	Alloc func(bytes int) (Memory, error)
	// Copy queues a copy on a stream, after what is queued there. Bytes of the host are
	// read before it returns, and written by the time that Sync does.
	Copy func(stream int, to, from Region) error
	// Sync waits until a stream has done what is queued there, and returns what went
	// wrong first since it was last called.
	Sync func(stream int) error
	// Streams is how many streams there are: 0 to Streams-1.
	Streams int
	// Fallback says that a call without a kernel on the device runs on the host, between
	// copies. Without it such a call is refused.
	Fallback bool
}

// Memory is what a device's Alloc returned.
type Memory any

// Region is bytes of one memory: of Host, or else Len bytes of Memory, from At on.
type Region struct {
	Host    []byte
	Memory  Memory
	At, Len int
}

// HostName is what the host is called among devices.
const HostName = "cpu"

// String returns the name of the device; of nil, that of the host.
func (d *Device) String() string {
	if d == nil {
		return HostName
	}
	return d.Name
}

var registered sync.Map // *Device by name

// RegisterDevice makes a device known by its name. It panics when the device is not
// complete, or the name is taken.
func RegisterDevice(d *Device) {
	if d.Name == "" || d.Name == HostName || d.Alloc == nil || d.Copy == nil || d.Sync == nil || d.Streams < 1 {
		panic(fmt.Sprintf("device %q: it needs a name, Alloc, Copy, Sync and a stream", d.Name))
	}
	if _, taken := registered.LoadOrStore(d.Name, d); taken {
		panic(fmt.Sprintf("device %q is registered twice", d.Name))
	}
}

// DeviceNamed returns the device that was registered by a name; nil for none.
func DeviceNamed(name string) *Device {
	d, _ := registered.Load(name)
	found, _ := d.(*Device)
	return found
}

// Devices returns the names of the registered devices, sorted.
func Devices() []string {
	var names []string
	registered.Range(func(name, _ any) bool {
		names = append(names, name.(string))
		return true
	})
	slices.Sort(names)
	return names
}

// block is memory of a device that several tensors may view.
type block struct {
	device *Device
	memory Memory
	at     int // in memory, in bytes
	bytes  int
	stream atomic.Int32 // which used it last
}

// use returns once a stream may use the block: another that did is waited for.
func (b *block) use(stream int) error {
	if was := b.stream.Swap(int32(stream)); was != int32(stream) {
		return b.device.Sync(int(was))
	}
	return nil
}

func (b *block) region() Region { return Region{Memory: b.memory, At: b.at, Len: b.bytes} }

func (d *Device) block(stream, bytes int) (*block, error) {
	b := &block{device: d, bytes: bytes}
	b.stream.Store(int32(stream))
	var err error
	if bytes > 0 {
		b.memory, err = d.Alloc(bytes)
	}
	return b, err
}

// Unset returns a tensor on the device that is to be used on a stream, whose elements may
// be anything. Nil strides are contiguous ones.
func (d *Device) Unset(stream int, dtype DType, shape, strides []int) (*Tensor, error) {
	t := Layout(dtype, shape, strides)
	var err error
	t.on, err = d.block(stream, Extent(t.shape, t.strides)*dtype.Size())
	return t, err
}

// Device returns where the elements are; nil for the host's memory.
func (t *Tensor) Device() *Device {
	if t.on == nil {
		return nil
	}
	return t.on.device
}

// Use returns once a stream of the tensor's device may use its memory, which is
// Region.Memory from Region.At on; Offset counts from there.
func (t *Tensor) Use(stream int) (Region, error) { return t.on.region(), t.on.use(stream) }

// To returns the tensor with its elements on a device, nil for the host: itself where
// they are, else a copy of the same strides, of which what is behind no element is
// anything. The error is the device's.
func (t *Tensor) To(d *Device) (*Tensor, error) {
	if t.Device() == d {
		return t, nil
	}
	cut, size := *t, t.dtype.Size()
	n := Extent(t.shape, t.strides) * size
	if cut.offset = 0; t.on != nil {
		cut.on = &block{device: t.on.device, memory: t.on.memory, at: t.on.at + t.offset*size, bytes: n}
		cut.on.stream.Store(t.on.stream.Load())
	} else if n > 0 {
		cut.storage = t.storage[t.offset*size:][:n]
	}
	return (&Move{To: d}).Tensor(&cut)
}

// Move copies tensors, with all of the memory that they view, to another place: those
// that share memory do so there too.
type Move struct {
	To     *Device // nil for the host
	Stream int     // of To
	moved  map[any]*Tensor
}

// Tensor returns a tensor moved; itself where it is there.
func (m *Move) Tensor(t *Tensor) (*Tensor, error) {
	if t.Device() == m.To {
		return t, nil
	}
	if t.on != nil && m.To != nil { // between two devices, by the host
		h, err := (&Move{}).Tensor(t)
		if err != nil {
			return nil, err
		}
		t = h
	}
	key := any(t.on)
	if t.on == nil && len(t.storage) > 0 {
		key = &t.storage[0]
	}
	u := *t
	if first := m.moved[key]; first != nil && t.Room() <= first.Room() {
		u.storage, u.on = first.storage, first.on
		return &u, nil
	}
	if err := m.copy(&u, t); err != nil {
		return nil, err
	}
	if m.moved == nil {
		m.moved = map[any]*Tensor{}
	}
	m.moved[key] = &u
	return &u, nil
}

// copy gives u what t views, elsewhere.
func (m *Move) copy(u, t *Tensor) (err error) {
	if t.on == nil {
		u.storage = nil
		if u.on, err = m.To.block(m.Stream, len(t.storage)); err != nil || u.on.bytes == 0 {
			return err
		}
		return m.To.Copy(m.Stream, u.on.region(), Region{Host: t.storage})
	}
	u.on, u.storage = nil, alloc(t.on.bytes)
	if t.on.bytes == 0 {
		return nil
	}
	stream := int(t.on.stream.Load())
	if err := t.on.device.Copy(stream, Region{Host: u.storage}, t.on.region()); err != nil {
		return err
	}
	return t.on.device.Sync(stream)
}

// Back copies to t, on a device, what u, that Move made of it, holds now.
func (t *Tensor) Back(u *Tensor) error {
	if t.on.bytes == 0 {
		return nil
	}
	return t.on.device.Copy(int(t.on.stream.Load()), t.on.region(), Region{Host: u.storage})
}

// copyAcross is copyConvert where a device has one of the tensors, or both: by the host.
func copyAcross(dst, src *Tensor) {
	from, err := src.To(nil)
	if err != nil {
		panic(fmt.Sprintf("tensor: a copy of %s from %s: %v", src, src.Device(), err))
	}
	if dst.on == nil {
		copyConvert(dst, from)
		return
	}
	to, err := (&Move{}).Tensor(dst) // with what lies between elements
	if err == nil {
		copyConvert(to, from)
		err = dst.Back(to)
	}
	if err != nil {
		panic(fmt.Sprintf("tensor: a copy of %s to %s: %v", src, dst.Device(), err))
	}
}

// beside returns a tensor whose elements are unspecified where those of t are.
func (t *Tensor) beside(d DType, shape, strides []int) *Tensor {
	if t.on == nil {
		return Unset(d, shape, strides)
	}
	u, err := t.on.device.Unset(int(t.on.stream.Load()), d, shape, strides)
	if err != nil {
		panic(fmt.Sprintf("tensor: %s on %s: %v", u, t.on.device, err))
	}
	return u
}

// mustBeHere panics when the host cannot read the elements.
func (t *Tensor) mustBeHere() {
	if t.on != nil {
		t.elsewhere()
	}
}

func (t *Tensor) elsewhere() {
	panic(fmt.Sprintf("the elements of %s are on %s: To brings them to the host", t, t.on.device))
}
