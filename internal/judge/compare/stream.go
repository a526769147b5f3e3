package compare

import (
	"fmt"
	"io"

	"plumb/tensor"
)

// Stream compares as Tensors does, and reads the expected elements as it goes: r
// gives the bytes of a contiguous tensor, 2048 elements at a time; of want only
// dtype, shape and strides count. Got is contiguous. It ends where a rule is
// broken, and says of that no more than which one: the elements are gone.
func Stream(want *tensor.Tensor, r io.Reader, got *tensor.Tensor, limit Limit, o Options) (Diff, error) {
	if d, broken := metadata(want, got, o); broken {
		return d, nil
	}
	if limit.Error != nil || !got.IsContiguous() {
		return Diff{}, fmt.Errorf("elements that are compared as they are read need a limit for all of them and a contiguous result")
	}
	m := newMeter(want.DType(), limit.rule(), o)
	defer m.free()
	total, size, all := got.Len(), got.DType().Size(), got.Bytes()
	for start := 0; start < total; start += chunkLen {
		n := min(chunkLen, total-start)
		part := bytesOf(m.buf.want[:])[:n*size]
		if _, err := io.ReadFull(r, part); err != nil {
			return Diff{}, err
		}
		m.chunk(chunk{start, n, part, all[start*size:][:n*size]})
		if m.nonFinite+m.far > 0 {
			return broken(m.diff(got, got, total).Rule, "elements from %d on differ", start), nil
		}
	}
	return m.diff(got, got, total), nil
}
