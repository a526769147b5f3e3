// Package safetensors reads and writes the safetensors format: eight bytes
// with the length of a header, the header in JSON, then the tensors' bytes in
// row-major order, little-endian, without gaps
// (github.com/huggingface/safetensors, "Format").
//
// Nothing in a file is executed, and every number in it is checked before it
// is used. The dtype names are the format's own; complex128, which the format
// lacks, is "C128".
package safetensors

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"plumb/tensor"
)

// Entry is one tensor of a file.
type Entry struct {
	Name   string
	Tensor *tensor.Tensor
}

// File is the content of a file.
type File struct {
	Tensors  []Entry // in the order of their bytes
	Metadata map[string]string
}

// Tensor returns the tensor of a name; nil when there is none.
func (f *File) Tensor(name string) *tensor.Tensor {
	for _, e := range f.Tensors {
		if e.Name == name {
			return e.Tensor
		}
	}
	return nil
}

// Limits bound what a reader accepts, in bytes. A zero field is its default.
type Limits struct {
	Header int64 // default 100 MB, the format's own limit
	Data   int64 // default 64 GiB
	// Trusted is up to which size memory is taken for a tensor before its bytes
	// are there; default 16 MiB.
	Trusted int64
}

const (
	defaultHeader = 100_000_000
	defaultData   = 64 << 30
	defaultTrust  = 16 << 20
	lengthSize    = 8
	alignment     = 8 // of the first tensor byte in a file
	metadataKey   = "__metadata__"
)

func (l Limits) header() int64 {
	if l.Header == 0 {
		return defaultHeader
	}
	return l.Header
}

func (l Limits) data() int64 {
	if l.Data == 0 {
		return defaultData
	}
	return l.Data
}

func (l Limits) trusted() int64 {
	if l.Trusted == 0 {
		return defaultTrust
	}
	return l.Trusted
}

var dtypeNames = map[tensor.DType]string{
	tensor.Bool: "BOOL", tensor.U8: "U8", tensor.I8: "I8", tensor.I16: "I16", tensor.I32: "I32", tensor.I64: "I64",
	tensor.F16: "F16", tensor.BF16: "BF16", tensor.F32: "F32", tensor.F64: "F64", tensor.C64: "C64", tensor.C128: "C128",
}

var dtypes = func() map[string]tensor.DType {
	m := map[string]tensor.DType{}
	for d, name := range dtypeNames {
		m[name] = d
	}
	return m
}()

// Write writes the tensors and the metadata. Equal content gives equal bytes:
// tensors are ordered by falling element size, so that each is aligned, and by
// name within one size.
func Write(w io.Writer, tensors []Entry, metadata map[string]string) error {
	sorted := slices.Clone(tensors)
	slices.SortStableFunc(sorted, func(a, b Entry) int {
		if d := b.Tensor.DType().Size() - a.Tensor.DType().Size(); d != 0 {
			return d
		}
		return strings.Compare(a.Name, b.Name)
	})
	specs := make([]Spec, len(sorted))
	for i, e := range sorted {
		specs[i] = Spec{e.Name, e.Tensor.DType(), e.Tensor.Shape()}
	}
	header, err := Header(specs, metadata)
	if err != nil {
		return err
	}
	if _, err := w.Write(header); err != nil {
		return err
	}
	for _, e := range sorted {
		if _, err := w.Write(e.Tensor.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

// Spec is what a header says of a tensor.
type Spec struct {
	Name  string
	DType tensor.DType
	Shape []int
}

// entry is a tensor in the header, with its fields in the customary order.
type entry struct {
	DType   string  `json:"dtype"`
	Shape   []int   `json:"shape"`
	Offsets []int64 `json:"data_offsets"`
}

// Header returns what stands in a file before the bytes of these tensors, which
// are to follow in this order.
func Header(tensors []Spec, metadata map[string]string) ([]byte, error) {
	var b bytes.Buffer
	b.Write(make([]byte, lengthSize))
	b.WriteByte('{')
	field := func(name string, v any) error {
		if b.Len() > lengthSize+1 {
			b.WriteByte(',')
		}
		b.Write(plainJSON(name))
		b.WriteByte(':')
		text, err := json.Marshal(v)
		b.Write(text)
		return err
	}
	if len(metadata) > 0 {
		b.Write(plainJSON(metadataKey))
		b.WriteByte(':')
		b.Write(plainJSON(metadata))
	}
	seen := map[string]bool{metadataKey: true}
	at := int64(0)
	for _, e := range tensors {
		if seen[e.Name] {
			return nil, fmt.Errorf("safetensors: two tensors are named %q", e.Name)
		}
		seen[e.Name] = true
		size := int64(tensor.NumElements(e.Shape) * e.DType.Size())
		shape := append([]int{}, e.Shape...)
		if err := field(e.Name, entry{dtypeNames[e.DType], shape, []int64{at, at + size}}); err != nil {
			return nil, fmt.Errorf("safetensors: tensor %q: %w", e.Name, err)
		}
		at += size
	}
	b.WriteByte('}')
	for b.Len()%alignment != 0 {
		b.WriteByte(' ')
	}
	header := b.Bytes()
	if n := len(header) - lengthSize; n > defaultHeader {
		return nil, fmt.Errorf("safetensors: a header of %d bytes exceeds the format's %d", n, defaultHeader)
	}
	binary.LittleEndian.PutUint64(header, uint64(len(header)-lengthSize))
	return header, nil
}

// plainJSON encodes strings without the escapes that only HTML needs.
func plainJSON(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // strings always encode
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// Parse reads a file from memory. The tensors are views of b, which must stay
// unchanged, except those that are not aligned in it.
func Parse(b []byte, l Limits) (*File, error) {
	if len(b) < lengthSize {
		return nil, fmt.Errorf("safetensors: %d bytes are too short for a file", len(b))
	}
	n := binary.LittleEndian.Uint64(b)
	if err := l.checkHeader(n); err != nil {
		return nil, err
	}
	b = b[lengthSize:]
	if n > uint64(len(b)) {
		return nil, fmt.Errorf("safetensors: the file ends within its header of %d bytes", n)
	}
	h, err := decodeHeader(b[:n])
	if err != nil {
		return nil, err
	}
	return h.file(b[n:])
}

// Read reads a file. It reads as much as the header announces, and allocates no
// more than it has read and once as much again.
func Read(r io.Reader, l Limits) (*File, error) {
	in, err := NewReader(r, l)
	if err != nil {
		return nil, err
	}
	f := &File{Metadata: in.Metadata}
	for in.More() {
		e, err := in.Next()
		if err != nil {
			return nil, err
		}
		f.Tensors = append(f.Tensors, e)
	}
	return f, nil
}

// Reader reads the tensors of a file one after the other.
type Reader struct {
	Metadata map[string]string
	r        io.Reader
	h        *header
	next     int
	left     io.LimitedReader // of the tensor that Open gave
	trusted  int64
}

// NewReader reads the header of a file.
func NewReader(r io.Reader, l Limits) (*Reader, error) {
	var length [lengthSize]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, fmt.Errorf("safetensors: length of the header: %w", noEOF(err))
	}
	n := binary.LittleEndian.Uint64(length[:])
	if err := l.checkHeader(n); err != nil {
		return nil, err
	}
	text, err := readN(r, int64(n), l.trusted())
	if err != nil {
		return nil, fmt.Errorf("safetensors: header of %d bytes: %w", n, err)
	}
	h, err := decodeHeader(text)
	if err != nil {
		return nil, err
	}
	if h.size > l.data() {
		return nil, fmt.Errorf("safetensors: tensors of %d bytes exceed the limit of %d", h.size, l.data())
	}
	return &Reader{Metadata: h.metadata, r: r, h: h, trusted: l.trusted()}, nil
}

// More reports whether there are tensors that have not been read.
func (r *Reader) More() bool { return r.next < len(r.h.names) }

// Name returns the name of the tensor that Next reads.
func (r *Reader) Name() string { return r.h.names[r.next] }

// Spec returns what the header says of a tensor; ok is false where it has none of
// the name.
func (r *Reader) Spec(name string) (s Spec, ok bool) {
	e, ok := r.h.entries[name]
	return Spec{name, dtypes[e.DType], e.Shape}, ok
}

// Next reads the next tensor, into memory of its own.
func (r *Reader) Next() (Entry, error) {
	name, e, err := r.advance()
	if err != nil {
		return Entry{}, err
	}
	d := dtypes[e.DType]
	t, err := r.tensor(d, e.Shape)
	if err == nil {
		err = checkBool(d, t.Storage())
	}
	if err != nil {
		return Entry{}, fmt.Errorf("safetensors: %q: %w", name, err)
	}
	return Entry{name, t}, nil
}

// Open returns the bytes of the next tensor, to be read until the next call of
// the Reader. Those of a bool tensor are not checked.
func (r *Reader) Open() (io.Reader, error) {
	_, e, err := r.advance()
	if err != nil {
		return nil, err
	}
	r.left = io.LimitedReader{R: r.r, N: e.Offsets[1] - e.Offsets[0]}
	return &r.left, nil
}

// Skip passes over the next tensor.
func (r *Reader) Skip() error {
	if _, err := r.Open(); err != nil {
		return err
	}
	return r.pass()
}

// advance passes to the next tensor.
func (r *Reader) advance() (string, entry, error) {
	if err := r.pass(); err != nil {
		return "", entry{}, err
	}
	name := r.h.names[r.next]
	r.next++
	return name, r.h.entries[name], nil
}

// pass reads what is left of a tensor that Open gave.
func (r *Reader) pass() error {
	if r.left.N == 0 {
		return nil
	}
	if _, err := io.CopyN(io.Discard, &r.left, r.left.N); err != nil {
		return fmt.Errorf("safetensors: %q: %w", r.h.names[r.next-1], noEOF(err))
	}
	return nil
}

func (r *Reader) tensor(d tensor.DType, shape []int) (*tensor.Tensor, error) {
	n := int64(tensor.NumElements(shape)) * int64(d.Size())
	if n <= r.trusted {
		t := tensor.Unset(d, shape, nil)
		_, err := io.ReadFull(r.r, t.Storage())
		return t, noEOF(err)
	}
	b, err := readN(r.r, n, r.trusted)
	if err != nil {
		return nil, err
	}
	return view(d, shape, b)
}

func (l Limits) checkHeader(n uint64) error {
	if n > uint64(l.header()) {
		return fmt.Errorf("safetensors: a header of %d bytes exceeds the limit of %d", n, l.header())
	}
	return nil
}

// readN reads n bytes, and does not take n for granted beyond what is trusted
// before they are there.
func readN(r io.Reader, n, trusted int64) ([]byte, error) {
	if n <= trusted {
		b := make([]byte, n)
		_, err := io.ReadFull(r, b)
		return b, noEOF(err)
	}
	var b bytes.Buffer
	_, err := io.CopyN(&b, r, n)
	return b.Bytes(), noEOF(err)
}

func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// header is a checked header.
type header struct {
	names    []string
	entries  map[string]entry
	metadata map[string]string
	size     int64 // of all tensors, in bytes
}

func decodeHeader(text []byte) (*header, error) {
	h := &header{entries: map[string]entry{}}
	if len(text) == 0 || text[0] != '{' {
		return nil, fmt.Errorf("safetensors: the header is not a JSON object")
	}
	err := eachField(text, func(name string, value json.RawMessage) error {
		if name == metadataKey {
			return h.setMetadata(value)
		}
		return h.addEntry(name, value)
	})
	if err != nil {
		return nil, fmt.Errorf("safetensors: header: %w", err)
	}
	if err := h.checkOffsets(); err != nil {
		return nil, fmt.Errorf("safetensors: header: %w", err)
	}
	return h, nil
}

// eachField calls f for the fields of a JSON object; a name that recurs is an error.
func eachField(text []byte, f func(name string, value json.RawMessage) error) error {
	d := json.NewDecoder(bytes.NewReader(text))
	if tok, err := d.Token(); err != nil || tok != json.Delim('{') {
		return fmt.Errorf("not a JSON object (%v)", err)
	}
	seen := map[string]bool{}
	for d.More() {
		tok, err := d.Token()
		if err != nil {
			return err
		}
		name := tok.(string)
		if seen[name] {
			return fmt.Errorf("%q appears twice", name)
		}
		seen[name] = true
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return fmt.Errorf("%q: %w", name, err)
		}
		if err := f(name, value); err != nil {
			return fmt.Errorf("%q: %w", name, err)
		}
	}
	if _, err := d.Token(); err != nil {
		return err
	}
	if rest := bytes.TrimRight(text[d.InputOffset():], " "); len(rest) > 0 {
		return fmt.Errorf("%d bytes follow the JSON object", len(rest))
	}
	return nil
}

func (h *header) setMetadata(value json.RawMessage) error {
	h.metadata = map[string]string{}
	return eachField(value, func(name string, value json.RawMessage) error {
		var s string
		if err := json.Unmarshal(value, &s); err != nil || value[0] != '"' {
			return fmt.Errorf("not a string")
		}
		h.metadata[name] = s
		return nil
	})
}

func (h *header) addEntry(name string, value json.RawMessage) error {
	var e entry
	d := json.NewDecoder(bytes.NewReader(value))
	d.DisallowUnknownFields()
	if err := d.Decode(&e); err != nil {
		return err
	}
	dt, ok := dtypes[e.DType]
	switch {
	case e.Shape == nil:
		return fmt.Errorf("no shape")
	case len(e.Offsets) != 2:
		return fmt.Errorf("data_offsets are not two numbers")
	case !ok:
		return fmt.Errorf("unknown dtype %s", strconv.Quote(e.DType))
	}
	if err := tensor.CheckShape(dt, e.Shape); err != nil {
		return err
	}
	begin, end := e.Offsets[0], e.Offsets[1]
	if begin < 0 || end < begin {
		return fmt.Errorf("data_offsets [%d, %d] are not a range", begin, end)
	}
	if want := int64(tensor.NumElements(e.Shape)) * int64(dt.Size()); end-begin != want {
		return fmt.Errorf("%s tensor of shape %v has %d bytes, want %d", e.DType, e.Shape, end-begin, want)
	}
	h.names = append(h.names, name)
	h.entries[name] = e
	return nil
}

// checkOffsets sorts the tensors by their bytes, which must follow each other
// without gaps from 0 on.
func (h *header) checkOffsets() error {
	slices.SortStableFunc(h.names, func(a, b string) int {
		x, y := h.entries[a].Offsets, h.entries[b].Offsets
		if x[0] != y[0] {
			return cmp.Compare(x[0], y[0])
		}
		return cmp.Compare(x[1], y[1])
	})
	for _, name := range h.names {
		o := h.entries[name].Offsets
		if o[0] != h.size {
			return fmt.Errorf("%q begins at byte %d, want %d: tensors overlap or leave a gap", name, o[0], h.size)
		}
		h.size = o[1]
	}
	return nil
}

// file makes the tensors over their bytes.
func (h *header) file(data []byte) (*File, error) {
	if int64(len(data)) != h.size {
		return nil, fmt.Errorf("safetensors: the tensors have %d bytes, the header says %d", len(data), h.size)
	}
	f := &File{Metadata: h.metadata}
	for _, name := range h.names {
		e := h.entries[name]
		t, err := view(dtypes[e.DType], e.Shape, data[e.Offsets[0]:e.Offsets[1]:e.Offsets[1]])
		if err != nil {
			return nil, fmt.Errorf("safetensors: %q: %w", name, err)
		}
		f.Tensors = append(f.Tensors, Entry{name, t})
	}
	return f, nil
}

// view returns a tensor over b, or over an aligned copy of it.
func view(d tensor.DType, shape []int, b []byte) (*tensor.Tensor, error) {
	if err := checkBool(d, b); err != nil {
		return nil, err
	}
	strides := tensor.ContiguousStrides(shape)
	if t, err := tensor.FromBytes(d, shape, strides, 0, b); err == nil {
		return t, nil
	}
	t := tensor.New(d, shape...)
	copy(t.Storage(), b)
	return t, nil
}

// checkBool holds the bytes of bools to 0 and 1.
func checkBool(d tensor.DType, b []byte) error {
	if d != tensor.Bool {
		return nil
	}
	if i := slices.IndexFunc(b, func(x byte) bool { return x > 1 }); i >= 0 {
		return fmt.Errorf("element %d is the byte %d, which is no bool", i, b[i])
	}
	return nil
}
