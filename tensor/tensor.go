package tensor

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unsafe"
)

// Elem is the set of Go types that elements are stored as. Bool is stored as
// one byte, 0 or 1.
type Elem interface {
	~bool | ~uint8 | ~int8 | ~int16 | ~int32 | ~int64 | ~uint16 | ~float32 | ~float64 | ~complex64 | ~complex128
}

// Tensor is a strided view of a storage. Several tensors may share one
// storage. A Tensor is not changed after it is made; its elements may be.
type Tensor struct {
	dtype   DType
	shape   []int
	strides []int // in elements; 0 repeats
	offset  int   // of element [0,…,0], in elements
	storage []byte
	on      *block // in place of storage, of a tensor on a device
}

// MaxElements bounds the number of elements of a tensor that New makes.
const MaxElements = 1 << 40

// New returns a contiguous tensor of zeros. It panics when a dimension is
// negative or the size overflows: callers check shapes from outside with CheckShape.
func New(d DType, shape ...int) *Tensor {
	if err := CheckShape(d, shape); err != nil {
		panic("tensor.New: " + err.Error())
	}
	return &Tensor{dtype: d, shape: slices.Clone(shape), strides: ContiguousStrides(shape), storage: alloc(NumElements(shape) * d.Size())}
}

// NewStrided returns a tensor of zeros with the given strides, which must be
// non-negative, over a storage just large enough.
func NewStrided(d DType, shape, strides []int) *Tensor {
	return &Tensor{dtype: d, shape: slices.Clone(shape), strides: slices.Clone(strides), storage: alloc(Extent(shape, strides) * d.Size())}
}

// Unset returns a tensor whose elements are unspecified, for a caller that
// writes every one of them. Nil strides are contiguous ones; others must be
// non-negative, and elements of the storage that they skip are zeros.
func Unset(d DType, shape, strides []int) *Tensor {
	dims := len(shape)
	both := make([]int, 2*dims) // in one piece of memory
	copy(both, shape)
	if strides == nil {
		contiguousStrides(both[dims:], shape)
	} else {
		copy(both[dims:], strides)
	}
	t := &Tensor{dtype: d, shape: both[:dims:dims], strides: both[dims:]}
	t.storage = storageFor(d, shape, t.strides)
	return t
}

// storageFor returns memory for a tensor, whose elements are unspecified.
func storageFor(d DType, shape, strides []int) []byte {
	n := Extent(shape, strides)
	if n == NumElements(shape) {
		return unset(n * d.Size())
	}
	return alloc(n * d.Size())
}

// Make makes u, which nobody has, a tensor of t's layout over the storage, as Over does;
// over one of its own, as Unset does, where that is nil.
func (t *Tensor) Make(u *Tensor, storage []byte) {
	if storage == nil {
		storage = storageFor(t.dtype, t.shape, t.strides)
	}
	*u = Tensor{dtype: t.dtype, shape: t.shape, strides: t.strides, storage: storage}
}

// unset returns n bytes that hold anything, aligned like those of alloc. A
// builder's memory is the only one that the runtime does not clear; it pays
// for objects of many pages, which are aligned to one.
func unset(n int) []byte {
	if n < 1<<16 {
		return alloc(n)
	}
	var b strings.Builder
	b.Grow(n)
	b.WriteByte(0)
	return unsafe.Slice(unsafe.StringData(b.String()), n)
}

// alloc returns n zero bytes aligned for every element type.
func alloc(n int) []byte {
	words := make([]complex128, (n+15)/16)
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), n)
}

// FromBytes returns a view of storage, which must be aligned for d. Offset and
// strides are in elements. It returns an error when an element would lie
// outside the storage.
func FromBytes(d DType, shape, strides []int, offset int, storage []byte) (*Tensor, error) {
	if err := inside(d, shape, strides, offset, len(storage)); err != nil {
		return nil, err
	}
	if len(storage) > 0 && uintptr(unsafe.Pointer(unsafe.SliceData(storage)))%uintptr(min(d.Size(), 8)) != 0 {
		return nil, fmt.Errorf("storage is not aligned for %s", d)
	}
	return &Tensor{dtype: d, shape: slices.Clone(shape), strides: slices.Clone(strides), offset: offset, storage: storage}, nil
}

// inside returns an error when an element would lie outside of so many bytes.
func inside(d DType, shape, strides []int, offset, bytes int) error {
	if err := CheckShape(d, shape); err != nil {
		return err
	}
	if len(strides) != len(shape) {
		return fmt.Errorf("%d strides for %d dimensions", len(strides), len(shape))
	}
	if offset < 0 || offset > MaxElements {
		return fmt.Errorf("offset %d is out of range", offset)
	}
	if NumElements(shape) > 0 {
		lo, hi, err := places(shape, strides, offset)
		if err != nil {
			return err
		}
		if lo < 0 || hi >= bytes/d.Size() {
			return fmt.Errorf("%s tensor of shape %v, strides %v and offset %d exceeds its storage of %d bytes", d, shape, strides, offset, bytes)
		}
	}
	return nil
}

// Layout returns a tensor without memory, whose elements may not be touched: Over
// and Rebind give it one. Nil strides are contiguous ones.
func Layout(d DType, shape, strides []int) *Tensor {
	if strides == nil {
		strides = ContiguousStrides(shape)
	}
	return &Tensor{dtype: d, shape: slices.Clone(shape), strides: slices.Clone(strides)}
}

// Over returns a tensor of t's layout whose first element is that of storage. It
// panics when the storage is too small; it has to be aligned for t's elements.
func (t *Tensor) Over(storage []byte) *Tensor {
	if n := Extent(t.shape, t.strides) * t.dtype.Size(); len(storage) < n {
		panic(fmt.Sprintf("tensor.Over: %d bytes, want %d", len(storage), n))
	}
	return &Tensor{dtype: t.dtype, shape: t.shape, strides: t.strides, storage: storage}
}

// Rebind has t, which Layout made and nobody else has, lie over memory as Over says.
func (t *Tensor) Rebind(storage []byte) {
	if n := Extent(t.shape, t.strides) * t.dtype.Size(); len(storage) < n {
		panic(fmt.Sprintf("tensor.Rebind: %d bytes, want %d", len(storage), n))
	}
	t.storage = storage
}

// places returns the first and the last place of the elements in a storage.
func places(shape, strides []int, offset int) (lo, hi int, err error) {
	lo, hi = offset, offset
	for i, s := range strides {
		if s > MaxElements || s < -MaxElements {
			return 0, 0, fmt.Errorf("stride %d is out of range", s)
		}
		if span := (shape[i] - 1) * s; span > 0 {
			hi += span
		} else {
			lo += span
		}
		if hi > MaxElements || lo < -MaxElements {
			return 0, 0, fmt.Errorf("strides %v of shape %v are out of range", strides, shape)
		}
	}
	return lo, hi, nil
}

// Of returns a contiguous tensor that holds the given elements.
func Of[T Elem](d DType, shape []int, elems []T) *Tensor {
	t := New(d, shape...)
	if len(elems) != t.Len() {
		panic(fmt.Sprintf("tensor.Of: %d elements for shape %v", len(elems), shape))
	}
	copy(Data[T](t), elems)
	return t
}

// OverFloat64s returns a tensor of one dimension whose elements are those of the slice.
func OverFloat64s(elems []float64) *Tensor {
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(elems))), 8*len(elems))
	return &Tensor{dtype: F64, shape: []int{len(elems)}, strides: []int{1}, storage: bytes}
}

// Scalar returns a 0-d tensor that holds v converted to d.
func Scalar(d DType, v complex128) *Tensor {
	t := New(d)
	t.Set(0, v)
	return t
}

// Float64s returns a contiguous tensor of d that holds the rounded values.
func Float64s(d DType, shape []int, values ...float64) *Tensor {
	t := New(d, shape...)
	if len(values) != t.Len() {
		panic(fmt.Sprintf("tensor.Float64s: %d values for shape %v", len(values), shape))
	}
	for i, v := range values {
		t.Set(i, complex(v, 0))
	}
	return t
}

// DType returns the element type.
func (t *Tensor) DType() DType { return t.dtype }

// Shape returns the dimensions; the caller must not change them.
func (t *Tensor) Shape() []int { return t.shape }

// Strides returns the strides in elements; the caller must not change them.
func (t *Tensor) Strides() []int { return t.strides }

// Dim returns the number of dimensions.
func (t *Tensor) Dim() int { return len(t.shape) }

// Len returns the number of elements.
func (t *Tensor) Len() int { return NumElements(t.shape) }

// Offset returns the position of the first element in the storage, in elements.
func (t *Tensor) Offset() int { return t.offset }

// Storage returns the bytes that t views; they may be shared with other tensors. It
// panics when they are on a device.
func (t *Tensor) Storage() []byte {
	t.mustBeHere()
	return t.storage
}

// Room returns how many bytes the storage has.
func (t *Tensor) Room() int {
	if t.on != nil {
		return t.on.bytes
	}
	return len(t.storage)
}

// SharesStorage reports whether t and u view the same storage.
func (t *Tensor) SharesStorage(u *Tensor) bool {
	if t.on != nil {
		return t.on == u.on && t.on.bytes > 0
	}
	return len(t.storage) > 0 && len(u.storage) > 0 && &t.storage[0] == &u.storage[0]
}

// Data returns the storage of t from its first element on, as a slice of T.
// Element [i,j,…] is at i*stride0 + j*stride1 + …; strides must be non-negative.
// It panics when T has not the size of t's elements, or they are on a device.
func Data[T Elem](t *Tensor) []T {
	var zero T
	size := int(unsafe.Sizeof(zero))
	if size != t.dtype.Size() {
		panic(fmt.Sprintf("tensor.Data[%T] of a %s tensor", zero, t.dtype))
	}
	if len(t.storage) == 0 {
		t.mustBeHere()
		return nil
	}
	all := unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(t.storage))), len(t.storage)/size)
	return all[min(t.offset, len(all)):]
}

// IsContiguous reports whether the elements lie in row-major order without gaps.
func (t *Tensor) IsContiguous() bool { return Contiguous.Matches(t.shape, t.strides) }

// Contiguous returns t itself when it is contiguous, else a contiguous copy.
func (t *Tensor) Contiguous() *Tensor {
	if t.IsContiguous() {
		return t
	}
	return t.Clone()
}

// Clone returns a contiguous copy.
func (t *Tensor) Clone() *Tensor { return t.Convert(t.dtype) }

// CloneAs returns a copy with the strides of format f.
func (t *Tensor) CloneAs(f MemoryFormat) *Tensor {
	return t.CloneStrided(f.Strides(t.shape))
}

// CloneStrided returns a copy with the given strides, non-negative ones.
func (t *Tensor) CloneStrided(strides []int) *Tensor {
	u := t.beside(t.dtype, t.shape, strides)
	u.CopyFrom(t)
	return u
}

// CopyFrom sets every element of t from src, which has the same shape,
// converting as Convert does.
func (t *Tensor) CopyFrom(src *Tensor) {
	if !slices.Equal(t.shape, src.shape) {
		panic(fmt.Sprintf("tensor.CopyFrom: shape %v from %v", t.shape, src.shape))
	}
	copyConvert(t, src)
}

// Convert returns a contiguous copy of t in dtype d. Floats round to nearest
// even; floats to integers truncate as C does (the value is unspecified when
// out of range); anything to Bool asks whether it is non-zero; complex to real
// drops the imaginary part.
func (t *Tensor) Convert(d DType) *Tensor {
	u := t.beside(d, t.shape, nil)
	copyConvert(u, t)
	return u
}

// index returns the storage position of the element at linear index i, counted
// in row-major order over the shape.
func (t *Tensor) index(i int) int {
	t.mustBeHere()
	d, size := len(t.shape)-1, 1
	for ; d >= 0 && t.strides[d] == size; d-- {
		size *= t.shape[d]
	}
	if d < 0 {
		return t.offset + i
	}
	return t.stridedIndex(i)
}

func (t *Tensor) stridedIndex(i int) int {
	at := t.offset
	for d := len(t.shape) - 1; d >= 0; d-- {
		n := t.shape[d]
		at += i % n * t.strides[d]
		i /= n
	}
	return at
}

// At returns the element at row-major index i as a complex number. Integers
// above 2^53 lose bits: use Int for them.
func (t *Tensor) At(i int) complex128 { return load(t.dtype, t.storage, t.index(i)) }

// Float returns the real part of the element at row-major index i.
func (t *Tensor) Float(i int) float64 {
	at := t.index(i)
	switch t.dtype {
	case F32:
		return float64(*(*float32)(unsafe.Pointer(&t.storage[at*4])))
	case F64:
		return *(*float64)(unsafe.Pointer(&t.storage[at*8]))
	}
	return real(load(t.dtype, t.storage, at))
}

// Int returns the integer or bool element at row-major index i.
func (t *Tensor) Int(i int) int64 {
	at := t.index(i)
	if t.dtype == I64 {
		return *(*int64)(unsafe.Pointer(&t.storage[at*8]))
	}
	return int64(real(load(t.dtype, t.storage, at)))
}

// Set stores v, converted, at row-major index i.
func (t *Tensor) Set(i int, v complex128) { store(t.dtype, t.storage, t.index(i), v) }

// SetInt stores the integer v exactly at row-major index i.
func (t *Tensor) SetInt(i int, v int64) {
	if t.dtype == I64 {
		*(*int64)(unsafe.Pointer(&t.storage[t.index(i)*8])) = v
		return
	}
	t.Set(i, complex(float64(v), 0))
}

func load(d DType, b []byte, i int) complex128 {
	p := unsafe.Pointer(&b[i*d.Size()])
	switch d {
	case Bool, U8:
		return complex(float64(*(*uint8)(p)), 0)
	case I8:
		return complex(float64(*(*int8)(p)), 0)
	case I16:
		return complex(float64(*(*int16)(p)), 0)
	case I32:
		return complex(float64(*(*int32)(p)), 0)
	case I64:
		return complex(float64(*(*int64)(p)), 0)
	case F16:
		return complex(float64((*(*Float16)(p)).Float32()), 0)
	case BF16:
		return complex(float64((*(*BFloat16)(p)).Float32()), 0)
	case F32:
		return complex(float64(*(*float32)(p)), 0)
	case F64:
		return complex(*(*float64)(p), 0)
	case C64:
		return complex128(*(*complex64)(p))
	case C128:
		return *(*complex128)(p)
	}
	panic("tensor: load of " + d.String())
}

func store(d DType, b []byte, i int, v complex128) {
	p := unsafe.Pointer(&b[i*d.Size()])
	switch d {
	case Bool:
		*(*bool)(p) = real(v) != 0
	case U8:
		*(*uint8)(p) = uint8(int64(real(v)))
	case I8:
		*(*int8)(p) = int8(int64(real(v)))
	case I16:
		*(*int16)(p) = int16(int64(real(v)))
	case I32:
		*(*int32)(p) = int32(int64(real(v)))
	case I64:
		*(*int64)(p) = int64(real(v))
	case F16:
		*(*Float16)(p) = Float64ToFloat16(real(v))
	case BF16:
		*(*BFloat16)(p) = Float64ToBFloat16(real(v))
	case F32:
		*(*float32)(p) = float32(real(v))
	case F64:
		*(*float64)(p) = real(v)
	case C64:
		*(*complex64)(p) = complex64(v)
	case C128:
		*(*complex128)(p) = v
	default:
		panic("tensor: store of " + d.String())
	}
}

// SameBits reports whether t and u have the same dtype, shape and element bits.
func (t *Tensor) SameBits(u *Tensor) bool {
	if t.dtype != u.dtype || !slices.Equal(t.shape, u.shape) {
		return false
	}
	return string(t.Bytes()) == string(u.Bytes())
}

// Bytes returns the elements in row-major order as little-endian bytes; for a
// contiguous tensor they are its own storage, not a copy.
func (t *Tensor) Bytes() []byte {
	t.mustBeHere()
	c := t.Contiguous()
	if c.Len() == 0 {
		return nil
	}
	size := c.dtype.Size()
	return c.storage[c.offset*size : (c.offset+c.Len())*size]
}

// String describes t by dtype and shape, such as "float32[2, 3]".
func (t *Tensor) String() string { return fmt.Sprintf("%s%s", t.dtype, ShapeString(t.shape)) }

// Item returns the one element of t as Number does.
func (t *Tensor) Item() (any, error) {
	if t.Len() != 1 {
		return nil, fmt.Errorf("a tensor with %d elements has no single item", t.Len())
	}
	return t.Number(0), nil
}

// Number returns element i in row-major order as a float64, int64, bool or complex128.
func (t *Tensor) Number(i int) any {
	switch {
	case t.dtype == Bool:
		return t.Int(i) != 0
	case t.dtype.IsInt():
		return t.Int(i)
	case t.dtype.IsComplex():
		return t.At(i)
	}
	return t.Float(i)
}

// HasNonFinite reports whether a floating or complex element is NaN or infinite.
func (t *Tensor) HasNonFinite() bool {
	if !t.dtype.IsDifferentiable() {
		return false
	}
	for i := range t.Len() {
		v := t.At(i)
		if s := real(v) - real(v) + imag(v) - imag(v); math.IsNaN(s) {
			return true
		}
	}
	return false
}
