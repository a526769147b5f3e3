package baseline

import (
	"encoding/binary"
	"io"
	"math"
	"os"

	"github.com/klauspost/compress/zstd"

	"plumb/internal/scratch"
)

// frames writes Zstandard frames of up to frameBytes each. Bytes that do not
// compress are kept as they are, which costs a small part of the time.
type frames struct {
	w       io.Writer
	z       *zstd.Encoder
	pending []byte
	out     []byte
}

const frameBytes = 1 << 20

func newFrames(w io.Writer) (*frames, error) {
	z, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false))
	return &frames{w: w, z: z}, err
}

// Write adds bytes to the frame that is begun, and writes those that are full.
func (f *frames) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		if len(f.pending) == 0 && len(p) >= frameBytes {
			if err := f.frame(p[:frameBytes]); err != nil {
				return 0, err
			}
			p = p[frameBytes:]
			continue
		}
		k := min(len(p), frameBytes-len(f.pending))
		f.pending = append(f.pending, p[:k]...)
		if p = p[k:]; len(f.pending) == frameBytes {
			if err := f.Flush(); err != nil {
				return 0, err
			}
		}
	}
	return n, nil
}

// Flush ends the frame that is begun.
func (f *frames) Flush() error {
	if len(f.pending) == 0 {
		return nil
	}
	err := f.frame(f.pending)
	f.pending = f.pending[:0]
	return err
}

func (f *frames) frame(p []byte) error {
	if incompressible(p) {
		return f.raw(p)
	}
	f.out = f.z.EncodeAll(p, f.out[:0])
	_, err := f.w.Write(f.out)
	return err
}

// The parts of a frame of raw blocks (RFC 8878, 3.1.1).
const (
	frameMagic  = 0xfd2fb528
	rawHeader   = 0xa0 // one segment, four bytes with its size, no checksum
	blockBytes  = 128 << 10
	lastBlock   = 1
	sizeOfBlock = 3 // its size begins at this bit, after a type of 0
)

// raw writes a frame that holds p as it is.
func (f *frames) raw(p []byte) error {
	head := binary.LittleEndian.AppendUint32(f.out[:0], frameMagic)
	head = append(head, rawHeader)
	head = binary.LittleEndian.AppendUint32(head, uint32(len(p)))
	for len(p) > 0 {
		n := min(len(p), blockBytes)
		word := uint32(n) << sizeOfBlock
		if n == len(p) {
			word |= lastBlock
		}
		head = append(head, byte(word), byte(word>>8), byte(word>>16))
		if _, err := f.w.Write(head); err != nil {
			return err
		}
		if _, err := f.w.Write(p[:n]); err != nil {
			return err
		}
		head, p = head[:0], p[n:]
	}
	return nil
}

// incompressible reports whether a sample of some bytes has nearly eight bits
// of entropy each.
func incompressible(p []byte) bool {
	const stripes, width = 16, 256
	if len(p) < stripes*width {
		return false
	}
	var counts [256]uint32
	step := len(p) / stripes
	for i := range stripes {
		for _, c := range p[i*step:][:width] {
			counts[c]++
		}
	}
	return entropy(&counts, stripes*width) > 7.8
}

// entropy is that of n bytes of which so many have each value, in bits each.
func entropy(counts *[256]uint32, n int) float64 {
	sum := 0.0
	for _, c := range counts {
		if c > 0 {
			sum += float64(c) * math.Log2(float64(c))
		}
	}
	return math.Log2(float64(n)) - sum/float64(n)
}

// spool keeps the frames of a shard, whose header can be written only when all
// of them are known.
type spool struct {
	*frames
	file *os.File
}

func newSpool(dir string) (*spool, error) {
	file, err := scratch.File(dir, "shard")
	if err != nil {
		return nil, err
	}
	s := &spool{file: file}
	if s.frames, err = newFrames(file); err != nil {
		s.close()
	}
	return s, err
}

func (s *spool) close() {
	_ = scratch.Discard(s.file)
}

// copyTo writes all frames.
func (s *spool) copyTo(w io.Writer) error {
	if err := s.Flush(); err != nil {
		return err
	}
	if _, err := s.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	_, err := io.CopyBuffer(w, struct{ io.Reader }{s.file}, make([]byte, frameBytes))
	return err
}
