package baseline

import (
	"errors"
	"io"

	"plumb/backend"
	"plumb/backend/recorded"
	"plumb/internal/judge/verdict"
	"plumb/internal/safetensors"
	"plumb/tensor"
)

// A reading judges a case of one call whose large results are read from the
// shard while they are compared, so that the reference's are never in memory. It
// can only tell that a case is aligned; any other is judged again with all in
// memory.
type reading struct {
	*decoder
	shard  later
	least  int // bytes of a result that is read while it is compared
	unread map[*tensor.Tensor]func() (io.ReadCloser, error)
	opened int
}

func newReading(d *decoder, shard later, least int) *reading {
	return &reading{d, shard, least, map[*tensor.Tensor]func() (io.ReadCloser, error){}, 0}
}

// later gives tensors when they are needed, large ones as they are read.
type later interface {
	blobs
	// spec returns what is known of a stored tensor before.
	spec(name string) (s safetensors.Spec, ok bool)
	// open returns the bytes of a stored tensor, once.
	open(name string) (io.Reader, error)
}

// readBytes is from how many bytes on a result is read while it is compared.
const readBytes = 4 << 20

// readable reports whether a trial's results may be read while they are
// compared: nothing else asks for their elements.
func (l *runLane) readable(t *trial) bool {
	s := &t.stored.Outcome
	return l.Read > 0 && l.Note == nil && t.stored.Truth == nil && t.outcome.Status == backend.OK && !t.outcome.ForwardOnly &&
		len(t.program.Calls) == 1 && (s.Changes == nil || len(*s.Changes) == 0) && Elements(t.job, t.outcome) > l.Read
}

// reading returns the verdict on a trial whose results are read while they are
// compared; nil where that does not tell.
func (l *runLane) reading(t *trial, d *decoder, shard later) *verdict.Verdict {
	r := newReading(d, shard, readBytes)
	ref, err := t.stored.Outcome.Outcome(1, r.tensor)
	if err != nil || len(r.unread) == 0 {
		return nil
	}
	ref.Unread = r.unread
	v := l.Judge(&Question{Entry: t.record.Entry, Job: t.job, Ref: ref, Cand: t.outcome})
	if v.Word == verdict.Aligned && v.Drawn == 0 && r.opened == len(r.unread) {
		return v
	}
	return nil
}

// tensor returns the tensor that a reference stands for, or one that stands for it.
func (r *reading) tensor(ref *recorded.TensorRef) (*tensor.Tensor, error) {
	dtype, shape, ok := r.form(ref)
	if !ok {
		return r.decoder.tensor(ref)
	}
	layout, err := tensor.Scalar(dtype, 0).Expand(shape...)
	if err == nil {
		r.unread[layout] = func() (io.ReadCloser, error) {
			r.opened++
			return r.open(ref, layout)
		}
	}
	return layout, err
}

// form returns the dtype and shape of a tensor that may be read as it is
// compared; ok is false for another. What is wrong with one is told by who
// decodes it.
func (r *reading) form(ref *recorded.TensorRef) (d tensor.DType, shape []int, ok bool) {
	s, ok := r.shard.spec(ref.Stored)
	if !ok || ref.Strides != nil {
		return d, nil, false
	}
	d, shape = s.DType, s.Shape
	if c := ref.Coded; c != nil {
		d, _ = tensor.ParseDType(c.DType)
		switch c.By {
		case predicted:
			p, err := r.predicted(ref, d)
			if err != nil {
				return d, nil, false
			}
			shape = p.Shape()
		case shuffled:
			if d == tensor.Invalid || len(s.Shape) != 1 || s.Shape[0]%d.Size() != 0 {
				return d, nil, false
			}
			shape = []int{s.Shape[0] / d.Size()}
		default:
			return d, nil, false
		}
	}
	n := tensor.NumElements(shape)
	if ref.Shape != nil {
		shape = *ref.Shape
	}
	ok = d != tensor.Invalid && d != tensor.Bool && n*d.Size() >= r.least && tensor.CheckShape(d, shape) == nil && tensor.NumElements(shape) == n
	return d, shape, ok
}

// elements are those of a tensor, as they are read.
type elements struct {
	io.Reader
	ended func() error // what is wrong when all are read
}

// Close tells what is wrong with the elements.
func (e elements) Close() error { return e.ended() }

func (r *reading) open(ref *recorded.TensorRef, want *tensor.Tensor) (io.ReadCloser, error) {
	in, err := r.shard.open(ref.Stored)
	switch {
	case err != nil:
		return nil, err
	case ref.Coded == nil:
		return io.NopCloser(in), nil
	case ref.Coded.By == shuffled:
		return io.NopCloser(newUnshuffler(in, part(want.DType()), int64(want.Len()*want.DType().Size()))), nil
	}
	p, err := r.predicted(ref, want.DType())
	if err != nil {
		return nil, err
	}
	var check checksum
	restored := newRestorer(want.DType(), p.Bytes(), in, ref.Coded.NaN, &check)
	return elements{restored, func() error { return errors.Join(restored.ended(), holdTo(ref, want, &check)) }}, nil
}

// unshuffler reads elements whose bytes are stored transposed.
type unshuffler struct {
	in        io.Reader
	size      int // of an element
	left      int64
	part, raw []byte
	rest      []byte // of part
}

func newUnshuffler(in io.Reader, size int, bytes int64) *unshuffler {
	n := min(bytes, int64(size*shuffledLen))
	return &unshuffler{in: in, size: size, left: bytes, part: make([]byte, n), raw: make([]byte, n)}
}

func (u *unshuffler) Read(p []byte) (int, error) {
	if len(u.rest) == 0 {
		if u.left == 0 {
			return 0, io.EOF
		}
		n := min(u.left, int64(len(u.part)))
		if _, err := io.ReadFull(u.in, u.raw[:n]); err != nil {
			return 0, err
		}
		unshuffle(u.part[:n], u.raw[:n], u.size)
		u.rest = u.part[:n]
		u.left -= n
	}
	n := copy(p, u.rest)
	u.rest = u.rest[n:]
	return n, nil
}
