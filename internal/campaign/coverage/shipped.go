package coverage

import (
	"bytes"
	_ "embed"
	"io"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// Made by: go run ./cmd/plumb ops cover run '*' --out internal/campaign/coverage/torch.json.zst --seed 11 --set power=0
//
//go:embed torch.json.zst
var shipped []byte

// Compressed is the end of the names of files that are compressed by zstd.
const Compressed = ".zst"

// maxMemory limits what a compressed file may take.
const maxMemory = 256 << 20

// Shipped returns the matrix of all operators against PyTorch that comes with Plumb.
func Shipped() (*Matrix, error) { return ReadFile("torch.json.zst", bytes.NewReader(shipped)) }

// ReadFile reads a file of the given name, which tells whether it is compressed.
func ReadFile(name string, r io.Reader) (*Matrix, error) {
	if !strings.HasSuffix(name, Compressed) {
		return Read(r)
	}
	z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxMemory))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	return Read(z)
}

// WriteFile writes the matrix to a file of the given name, which tells whether
// it is compressed.
func (m *Matrix) WriteFile(name string, w io.Writer) error {
	if !strings.HasSuffix(name, Compressed) {
		return m.Write(w)
	}
	z, err := zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return err
	}
	if err := m.Write(z); err != nil {
		return err
	}
	return z.Close()
}
