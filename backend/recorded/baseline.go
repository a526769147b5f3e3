// Package recorded is a backend that answers from a baseline: a file with
// programs and what the reference did with them, for machines on which the
// reference is not installed.
//
// A baseline is a safetensors file compressed with Zstandard. Its metadata has
// one key, "plumb", with a JSON text: the format's version, the reference's
// backend.Info, and per case the test's name, the program's text and identity,
// and the structure of the outcome. Tensors are stored once however often
// their bits occur, and not at all where an input of the case has them: inputs
// follow from their description.
package recorded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"

	"plumb/backend"
	"plumb/internal/safetensors"
	"plumb/program"
)

// Version is the version of the format that Write writes and the newest that
// Read reads.
const Version = 1

// The most that a baseline may hold, in bytes.
const (
	maxHeader = 256 << 20
	maxData   = 1 << 30
	window    = 8 << 20
)

const metadataKey = "plumb"

// Case is a program with what the reference did.
type Case struct {
	Program *program.Program
	Outcome *backend.Outcome
	Test    string // the name of the test that drew it
}

// Baseline is a read baseline.
type Baseline struct {
	reference backend.Info
	cases     []Case
	byID      map[string]int
}

var _ backend.Batcher = (*Baseline)(nil)

// Cases returns the cases in the order of the file. They must not be changed.
func (b *Baseline) Cases() []Case { return b.cases }

// Reference says which backend the outcomes came from.
func (b *Baseline) Reference() backend.Info { return b.reference }

// Info describes the baseline as a backend: its version names the reference.
func (b *Baseline) Info() backend.Info {
	info := b.reference
	info.Name, info.Version = "recorded", b.reference.Name+" "+b.reference.Version
	return info
}

// Run returns the outcome that was recorded for the job's program; a program
// that was not recorded is unsupported.
func (b *Baseline) Run(ctx context.Context, job *backend.Job) (*backend.Outcome, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	id := job.Program.ID()
	i, ok := b.byID[id]
	if !ok {
		return &backend.Outcome{Status: backend.Unsupported, Message: fmt.Sprintf("program %s is not among the %d recorded ones", id, len(b.cases))}, nil
	}
	o := *b.cases[i].Outcome
	return &o, nil
}

// RunBatch runs the jobs one after the other.
func (b *Baseline) RunBatch(ctx context.Context, jobs []*backend.Job) ([]*backend.Outcome, error) {
	outcomes := make([]*backend.Outcome, len(jobs))
	for i, job := range jobs {
		o, err := b.Run(ctx, job)
		if err != nil {
			return nil, err
		}
		outcomes[i] = o
	}
	return outcomes, nil
}

// Close does nothing.
func (b *Baseline) Close() error { return nil }

// Write writes a baseline. Equal content gives equal bytes. Of several cases
// with one program the first is kept; elapsed times are not.
func Write(w io.Writer, info backend.Info, cases []Case) error {
	tensors, text, err := encode(info, cases)
	if err != nil {
		return fmt.Errorf("baseline: %w", err)
	}
	z, err := zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithWindowSize(window), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(true))
	if err != nil {
		return fmt.Errorf("baseline: %w", err)
	}
	err = safetensors.Write(z, tensors, map[string]string{metadataKey: string(text)})
	return errors.Join(err, z.Close())
}

// WriteFile writes a baseline beside its path and renames it, so that a whole
// file is never replaced by half of one.
func WriteFile(path string, info backend.Info, cases []Case) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".plumb-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	if err := Write(tmp, info, cases); err != nil {
		tmp.Close()
		return err
	}
	if err := errors.Join(tmp.Chmod(0o644), tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}

// Read reads a baseline. The error says what is wrong with a file that is
// truncated, corrupt, written by a newer version, or no baseline at all.
func Read(r io.Reader) (*Baseline, error) {
	file, err := decompress(r)
	if err != nil {
		return nil, fmt.Errorf("baseline: truncated or corrupt: %w", err)
	}
	text, ok := file.Metadata[metadataKey]
	if !ok {
		return nil, fmt.Errorf("baseline: the file is no baseline: its metadata has no key %q", metadataKey)
	}
	b, err := decode([]byte(text), file)
	if err != nil {
		return nil, fmt.Errorf("baseline: %w", err)
	}
	return b, nil
}

// decompress reads to the end, where the checksum stands.
func decompress(r io.Reader) (*safetensors.File, error) {
	z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(window), zstd.WithDecoderMaxMemory(maxHeader+maxData))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	file, err := safetensors.Read(z, safetensors.Limits{Header: maxHeader, Data: maxData})
	if err != nil {
		return nil, err
	}
	switch n, err := io.CopyN(io.Discard, z, 1); {
	case n > 0:
		return nil, errors.New("data follows the tensors")
	case err != io.EOF:
		return nil, err
	}
	return file, nil
}
