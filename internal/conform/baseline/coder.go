package baseline

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"hash/maphash"
	"io"
	"slices"
	"strconv"
	"strings"

	"plumb/backend"
	"plumb/backend/recorded"
	"plumb/internal/safetensors"
	"plumb/program"
	"plumb/tensor"
)

// The codings of a tensor, by what its bytes are.
const (
	plain     = ""        // themselves, under the tensor's own dtype
	shuffled  = "shuffle" // themselves, transposed
	packed    = "bits"    // bits of a bool tensor
	filled    = "fill"    // one element for all
	predicted = "like"    // a residual, or nothing where the prediction is right
)

// plainBytes is up to how many bytes a tensor is stored as it is, and
// Predict from how many on a prediction is asked for.
const (
	plainBytes = 64
	Predict    = 64 << 10
)

// coder collects the tensors of a shard.
type coder struct {
	specs []safetensors.Spec
	out   io.Writer // of their bytes
	err   error     // the first one of out
	known map[fingerprint]stored
	seed  maphash.Seed
	buf   []byte // of shuffled parts
	delta []byte // of residuals
}

// keptDelta is up to how many bytes the memory of a residual may have to be kept for
// the next one.
const keptDelta = 32 << 20

// stored is where elements of a shape are stored.
type stored struct {
	ref   recorded.TensorRef
	shape []int
}

// fingerprint tells tensors apart, by a hash and some of their bytes.
type fingerprint struct {
	dtype tensor.DType
	bytes int
	hash  uint64
	some  [16]byte
}

func (c *coder) fingerprint(t *tensor.Tensor, raw []byte) fingerprint {
	d := fingerprint{dtype: t.DType(), bytes: len(raw), hash: maphash.Bytes(c.seed, raw)}
	for i := range d.some {
		if len(raw) > 0 {
			d.some[i] = raw[i*(len(raw)-1)/(len(d.some)-1)]
		}
	}
	return d
}

// source is where bits are to be found.
type source struct {
	ref recorded.TensorRef
	t   *tensor.Tensor
}

func newCoder(out io.Writer) *coder {
	return &coder{out: out, known: map[fingerprint]stored{}, seed: maphash.MakeSeed()}
}

// caseCoder codes the outcome of one program.
type caseCoder struct {
	*coder
	near []source                  // inputs, and results that were predicted
	like map[string]*tensor.Tensor // what was predicted, by place
}

// outcome returns the structure of an outcome; predicted is nil or the
// predictor's outcome of the same job.
func (c *coder) outcome(job *backend.Job, o, predicted *backend.Outcome) (*recorded.Structure, error) {
	k := &caseCoder{c, nil, tensorsOf(predicted)}
	for i, t := range job.Inputs {
		k.near = append(k.near, source{recorded.TensorRef{Input: job.Program.Inputs[i].Name}, t})
	}
	return recorded.Describe(o, k.tensor)
}

// tensorsOf returns the tensors of an outcome by place.
func tensorsOf(o *backend.Outcome) map[string]*tensor.Tensor {
	if o == nil {
		return nil
	}
	out := map[string]*tensor.Tensor{}
	_, err := recorded.Describe(o, func(place string, t *tensor.Tensor) *recorded.TensorRef {
		out[place] = t
		return nil
	})
	if err != nil {
		return nil
	}
	return out
}

// tensor returns where t's elements are to be found, after storing them where
// they are nowhere yet.
func (c *caseCoder) tensor(place string, t *tensor.Tensor) *recorded.TensorRef {
	ref, shape := c.find(place, t)
	if coded := ref.Coded != nil && ref.Coded.Like == ""; coded || !slices.Equal(shape, t.Shape()) {
		own := append([]int{}, t.Shape()...)
		ref.Shape = &own
	}
	ref.Strides = nil
	if !t.IsContiguous() && recorded.Modest(t.Shape(), t.Strides()) {
		ref.Strides = t.Strides()
	}
	return &ref
}

func (c *caseCoder) find(place string, t *tensor.Tensor) (recorded.TensorRef, []int) {
	t = t.Contiguous()
	if one := uniform(t); one != nil {
		return recorded.TensorRef{Coded: &recorded.Code{DType: t.DType().String(), By: filled, Fill: hex.EncodeToString(one)}}, nil
	}
	raw := t.Bytes()
	for i := range c.near {
		s := &c.near[i]
		if s.t.DType() != t.DType() || s.t.Len() != t.Len() {
			continue
		}
		if s.t = s.t.Contiguous(); bytes.Equal(s.t.Bytes(), raw) {
			return s.ref, s.t.Shape()
		}
	}
	if ref, ok := c.differ(place, t); ok {
		c.near = append(c.near, source{ref, t})
		return ref, t.Shape()
	}
	if len(raw) > repeated {
		return c.store(t), t.Shape()
	}
	h := c.fingerprint(t, raw)
	if k, ok := c.known[h]; ok {
		return k.ref, k.shape
	}
	ref := c.store(t)
	c.known[h] = stored{ref, t.Shape()}
	return ref, t.Shape()
}

// repeated is up to how many bytes a result may have to be stored once where
// several cases have it.
const repeated = 1 << 20

// uniform returns the bytes of the element that all elements are; nil when
// they differ or there are none.
func uniform(t *tensor.Tensor) []byte {
	size := t.DType().Size()
	b := t.Bytes()
	if len(b) == 0 || !bytes.Equal(b[size:], b[:len(b)-size]) {
		return nil
	}
	return b[:size]
}

// differ stores a large tensor as what it is more than the predicted one; ok is
// false where there is none or the difference is too large.
func (c *caseCoder) differ(place string, t *tensor.Tensor) (ref recorded.TensorRef, ok bool) {
	p := c.like[place]
	if strings.HasPrefix(place, recorded.InitialPlace) { // known before anything is predicted
		return ref, false
	}
	if p == nil || p.DType() != t.DType() || !slices.Equal(p.Shape(), t.Shape()) {
		return ref, false
	}
	raw, same := t.Bytes(), p.Bytes()
	if len(raw) <= plainBytes {
		return ref, false
	}
	d := residual(t.DType(), raw, same, c.delta[:0])
	if cap(d.packed) <= keptDelta {
		c.delta = d.packed
	}
	ref.Coded = &recorded.Code{DType: t.DType().String(), By: predicted, Like: place, Sum: d.check.String()}
	if d.differs {
		if len(d.packed) > len(raw)*3/4 {
			return ref, false
		}
		ref.Stored, ref.Coded.NaN = c.add(d.packed), d.nan
	}
	return ref, true
}

// store stores a tensor in the cheapest of the other codings.
func (c *coder) store(t *tensor.Tensor) recorded.TensorRef {
	raw := t.Bytes()
	switch {
	case len(raw) <= plainBytes:
	case t.DType() == tensor.Bool:
		return c.blob(t, packed, pack(raw))
	case worthShuffling(raw, part(t.DType())):
		ref := recorded.TensorRef{Stored: c.spec(tensor.U8, []int{len(raw)}), Coded: &recorded.Code{DType: t.DType().String(), By: shuffled}}
		c.shuffled(raw, part(t.DType()))
		return ref
	}
	ref := recorded.TensorRef{Stored: c.spec(t.DType(), t.Shape())}
	c.write(raw)
	return ref
}

// shuffled writes the bytes of elements transposed, part by part.
func (c *coder) shuffled(raw []byte, size int) {
	if c.buf == nil {
		c.buf = make([]byte, shuffledLen)
	}
	for some := range slices.Chunk(raw, size*shuffledLen) {
		for k := range size {
			p := c.buf[:len(some)/size]
			plane(p, some, size, k)
			c.write(p)
		}
	}
}

// worthShuffling reports whether elements of so many bytes may take a good deal
// less where their bytes are transposed, by a sample of a larger tensor.
func worthShuffling(raw []byte, size int) bool {
	const samples = 1024
	if size == 1 {
		return false
	}
	n := len(raw) / size
	if n < 8*samples {
		return true
	}
	bits := 0.0
	for k := range size {
		var counts [256]uint32
		for i := range samples {
			counts[raw[i*(n/samples)*size+k]]++
		}
		bits += entropy(&counts, samples)
	}
	return bits < 0.8*8*float64(size)
}

func (c *coder) blob(t *tensor.Tensor, by string, b []byte) recorded.TensorRef {
	return recorded.TensorRef{Stored: c.add(b), Coded: &recorded.Code{DType: t.DType().String(), By: by}}
}

// add stores bytes as a tensor of them, and returns its name.
func (c *coder) add(b []byte) string {
	name := c.spec(tensor.U8, []int{len(b)})
	c.write(b)
	return name
}

// spec announces a tensor whose bytes are written next.
func (c *coder) spec(d tensor.DType, shape []int) string {
	name := strconv.Itoa(len(c.specs))
	c.specs = append(c.specs, safetensors.Spec{Name: name, DType: d, Shape: slices.Clone(shape)})
	return name
}

func (c *coder) write(b []byte) {
	if c.err == nil {
		_, c.err = c.out.Write(b)
	}
}

// part returns the size of an element, of a part of a complex one.
func part(d tensor.DType) int { return d.Real().Size() }

// residual returns what turns pred into want, in memory that is appended to.
func residual(d tensor.DType, want, pred, memory []byte) *delta {
	switch part(d) {
	case 1:
		return difference(want, pred, memory, formatOf[uint8](d))
	case 2:
		return difference(want, pred, memory, formatOf[uint16](d))
	case 4:
		return difference(want, pred, memory, formatOf[uint32](d))
	}
	return difference(want, pred, memory, formatOf[uint64](d))
}

// pack keeps the lowest bit of each byte.
func pack(bools []byte) []byte { return appendBits(nil, bools, 1)[1:] }

// castagnoli and IEEE are both computed by instructions for them.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum is that of a tensor's bytes that a prediction has to lead to.
type checksum struct{ castagnoli, ieee uint32 }

func (c *checksum) add(b []byte) {
	c.castagnoli = crc32.Update(c.castagnoli, castagnoli, b)
	c.ieee = crc32.Update(c.ieee, crc32.IEEETable, b)
}

// addAll adds bytes that are not in a processor's cache.
func (c *checksum) addAll(b []byte) {
	for part := range slices.Chunk(b, 64<<10) {
		c.add(part)
	}
}

func (c *checksum) String() string { return fmt.Sprintf("%08x%08x", c.castagnoli, c.ieee) }

// errPredictor says that the predictor computes something else than it did.
var errPredictor = errors.New("was recorded as a difference from what Plumb's own operators compute, and they compute something else here")

// decoder finds the tensors of one outcome.
type decoder struct {
	program *program.Program
	inputs  []*tensor.Tensor
	stored  blobs
	predict func() (map[string]*tensor.Tensor, error)
	made    map[string]*tensor.Tensor // by stored name and coding
	room    int64                     // how many bytes may still be made
}

// newDecoder returns a decoder of the outcome of a job.
func newDecoder(job *backend.Job, stored blobs, predict func() (map[string]*tensor.Tensor, error)) *decoder {
	return &decoder{program: job.Program, inputs: job.Inputs, stored: stored, predict: predict, made: map[string]*tensor.Tensor{}, room: roomFor(job)}
}

// make takes the bytes of a tensor that is larger than what is stored of it from
// the room that is left.
func (d *decoder) make(dtype tensor.DType, shape []int) (*tensor.Tensor, error) {
	if err := tensor.CheckShape(dtype, shape); err != nil {
		return nil, err
	}
	if d.room -= int64(tensor.NumElements(shape)) * int64(dtype.Size()); d.room < 0 {
		return nil, fmt.Errorf("the results of the case have more than the %d bytes that its inputs leave them", roomFor(&backend.Job{Inputs: d.inputs}))
	}
	return tensor.Unset(dtype, shape, nil), nil
}

// tensor returns the tensor that a reference stands for.
func (d *decoder) tensor(r *recorded.TensorRef) (*tensor.Tensor, error) {
	t, err := d.elements(r)
	if err != nil {
		return nil, err
	}
	return r.Arrange(t)
}

func (d *decoder) elements(r *recorded.TensorRef) (*tensor.Tensor, error) {
	switch {
	case r.Input != "":
		for i := range d.program.Inputs {
			if d.program.Inputs[i].Name == r.Input {
				return d.inputs[i].Contiguous(), nil
			}
		}
		return nil, fmt.Errorf("the case has no input %q to take elements from", r.Input)
	case r.Coded == nil:
		return d.stored.blob(r.Stored)
	}
	key := r.Stored + "/" + r.Coded.By + "/" + r.Coded.Like
	if t := d.made[key]; t != nil && r.Coded.By != filled {
		return t, nil
	}
	dtype, err := tensor.ParseDType(r.Coded.DType)
	if err != nil {
		return nil, err
	}
	t, err := d.decode(r, dtype)
	if err != nil {
		return nil, err
	}
	d.made[key] = t
	return t, nil
}

// blobs finds a stored tensor by its name.
type blobs interface {
	blob(name string) (*tensor.Tensor, error)
}

func (d *decoder) decode(r *recorded.TensorRef, dtype tensor.DType) (*tensor.Tensor, error) {
	switch r.Coded.By {
	case filled:
		return d.fill(r, dtype)
	case predicted:
		return d.like(r, dtype)
	}
	blob, err := d.stored.blob(r.Stored)
	if err != nil {
		return nil, err
	}
	shape, err := shapeOf(r, dtype, blob)
	if err != nil {
		return nil, err
	}
	if r.Coded.By == shuffled {
		t := tensor.Unset(dtype, shape, nil)
		unshuffleAll(t.Storage(), blob.Bytes(), part(dtype))
		return t, nil
	}
	t, err := d.make(dtype, shape)
	if err != nil {
		return nil, err
	}
	readBits(t.Storage(), blob.Bytes(), 1)
	return t, nil
}

// shapeOf returns the one dimension that the elements of a blob have; their
// shape is the reference's.
func shapeOf(r *recorded.TensorRef, dtype tensor.DType, blob *tensor.Tensor) ([]int, error) {
	n := len(blob.Bytes())
	switch {
	case r.Shape == nil:
		return nil, errors.New("a coded tensor has no shape")
	case r.Coded.By == packed && dtype == tensor.Bool:
		if err := tensor.CheckShape(dtype, *r.Shape); err != nil {
			return nil, err
		}
		if elements := tensor.NumElements(*r.Shape); (elements+7)/8 == n {
			return []int{elements}, nil
		}
	case r.Coded.By == shuffled && dtype != tensor.Bool:
		if n%dtype.Size() == 0 {
			return []int{n / dtype.Size()}, nil
		}
	default:
		return nil, fmt.Errorf("unknown coding %q of %s", r.Coded.By, dtype)
	}
	return nil, fmt.Errorf("%d bytes are no %s of shape %v", n, dtype, *r.Shape)
}

// roomFor is how many bytes the results of a case may have beyond what is stored of them.
func roomFor(job *backend.Job) int64 {
	n := int64(0)
	for _, t := range job.Inputs {
		n += int64(t.Len() * t.DType().Size())
	}
	return roomBytes + perInput*n
}

func (d *decoder) fill(r *recorded.TensorRef, dtype tensor.DType) (*tensor.Tensor, error) {
	one, err := hex.DecodeString(r.Coded.Fill)
	if err != nil || len(one) != dtype.Size() || dtype == tensor.Bool && one[0] > 1 {
		return nil, fmt.Errorf("%q is no element of %s", r.Coded.Fill, dtype)
	}
	if r.Shape == nil {
		return nil, errors.New("a tensor of one value has no shape")
	}
	t, err := d.make(dtype, *r.Shape)
	if err != nil {
		return nil, err
	}
	all := t.Storage()
	for n := copy(all, one); n < len(all); n *= 2 {
		copy(all[n:], all[:n])
	}
	return t, nil
}

// like decodes a tensor that was predicted, and holds it to its checksum.
func (d *decoder) like(r *recorded.TensorRef, dtype tensor.DType) (*tensor.Tensor, error) {
	p, err := d.predicted(r, dtype)
	if err != nil {
		return nil, err
	}
	var check checksum
	if r.Stored == "" {
		check.addAll(p.Bytes())
		return p, holdTo(r, p, &check)
	}
	blob, err := d.stored.blob(r.Stored)
	if err != nil {
		return nil, err
	}
	t := tensor.Unset(dtype, p.Shape(), nil)
	if err := restore(dtype, t.Storage(), p.Bytes(), blob.Bytes(), r.Coded.NaN, &check); err != nil {
		return nil, err
	}
	return t, holdTo(r, t, &check)
}

// predicted returns the contiguous prediction of a tensor.
func (d *decoder) predicted(r *recorded.TensorRef, dtype tensor.DType) (*tensor.Tensor, error) {
	all, err := d.predict()
	if err != nil {
		return nil, err
	}
	p := all[r.Coded.Like]
	if p == nil || p.DType() != dtype {
		return nil, unlike(r)
	}
	return p.Contiguous(), nil
}

func unlike(r *recorded.TensorRef) error {
	return fmt.Errorf("result %s %w", r.Coded.Like, errPredictor)
}

// holdTo reports whether a prediction has led to what was recorded.
func holdTo(r *recorded.TensorRef, t *tensor.Tensor, check *checksum) error {
	if t.DType() == tensor.Bool && slices.ContainsFunc(t.Bytes(), func(c byte) bool { return c > 1 }) || check.String() != r.Coded.Sum {
		return unlike(r)
	}
	return nil
}
