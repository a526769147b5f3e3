package compare

import (
	"errors"
	"io"

	"plumb/tensor"
)

// Operand is the expected side of a comparison: a tensor in memory or, where
// Open is set, one whose elements are read while they are compared. Open gives
// the bytes of a contiguous tensor; of Tensor only dtype, shape and strides
// count then. Close tells what is wrong with what was read.
type Operand struct {
	Tensor *tensor.Tensor
	Open   func() (io.ReadCloser, error)
}

// Judge is the function Judge. Where elements are read, got is contiguous and
// the limit one for all of them; the comparison ends where a rule is broken, and
// says of that no more than which one: the elements are gone.
func (want Operand) Judge(got *tensor.Tensor, limit Limit, o Options) Diff {
	if want.Open == nil {
		return Judge(want.Tensor, got, limit, o)
	}
	if d, broken := metadata(want.Tensor, got, o); broken {
		return d
	}
	d, err := want.read(got, limit, o)
	if err != nil {
		return broken(Structure, "what is expected cannot be read: %v", err)
	}
	return d
}

func (want Operand) read(got *tensor.Tensor, limit Limit, o Options) (d Diff, err error) {
	if limit.Error != nil || !got.IsContiguous() {
		return Diff{}, errors.New("elements that are compared as they are read need a limit for all of them and a contiguous result")
	}
	in, err := want.Open()
	if err != nil {
		return Diff{}, err
	}
	m := newMeter(got.DType(), limit.rule(), o)
	defer m.free()
	total, size, all := got.Len(), got.DType().Size(), got.Bytes()
	for start := 0; start < total; start += chunkLen {
		n := min(chunkLen, total-start)
		part := bytesOf(m.buf.want[:])[:n*size]
		if _, err := io.ReadFull(in, part); err != nil {
			return Diff{}, errors.Join(err, in.Close())
		}
		m.chunk(chunk{start, n, part, all[start*size:][:n*size]})
		if m.nonFinite+m.far > 0 {
			return broken(m.diff(got, got, total).Rule, "elements from %d on differ", start), in.Close()
		}
	}
	return m.diff(got, got, total), in.Close()
}
