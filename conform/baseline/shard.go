package baseline

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"

	"plumb/backend"
	"plumb/backend/recorded"
	"plumb/program"
	"plumb/safetensors"
	"plumb/tensor"
)

const metadataKey = "plumb"

// The JSON text of a shard.
type (
	shardJSON struct {
		Format int        `json:"format"`
		Cases  []caseJSON `json:"cases"`
	}
	caseJSON struct {
		Name     string        `json:"case"`
		Variants []variantJSON `json:"variants"`
	}
	variantJSON struct {
		Name    string             `json:"variant,omitempty"`
		ID      string             `json:"id"`
		Program string             `json:"program"`
		Outcome recorded.Structure `json:"outcome"`
		Truth   *truthJSON         `json:"truth,omitempty"`
	}
)

// shardWriter collects the cases of one shard.
type shardWriter struct {
	*coder
	text shardJSON
	at   map[string]int // where a case is in it
	last int            // where the case is that was added to last
}

func newShardWriter() *shardWriter {
	return &shardWriter{newCoder(), shardJSON{Format: Version, Cases: []caseJSON{}}, map[string]int{}, 0}
}

// add adds the outcome of a variant; that of a case's first one begins the case.
// Nothing keeps the tensors, which may lie in shared memory.
func (s *shardWriter) add(name string, v Variant, job *backend.Job, o, predicted *backend.Outcome) error {
	structure, err := s.outcome(job, o, predicted)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	i, ok := s.at[name]
	if !ok {
		i = len(s.text.Cases)
		s.at[name] = i
		s.text.Cases = append(s.text.Cases, caseJSON{Name: name})
	}
	s.last = i
	one := &s.text.Cases[i]
	one.Variants = append(one.Variants, variantJSON{v.Name, v.Program.ID(), v.Program.String(), *structure, nil})
	return nil
}

// write writes the shard as a file.
func (s *shardWriter) write(path string) (Shard, error) {
	text, err := json.Marshal(s.text)
	if err != nil {
		return Shard{}, err
	}
	f, err := writeFile(path, func(w io.Writer) error {
		z, err := zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(window), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(true))
		if err != nil {
			return err
		}
		err = safetensors.Write(z, s.tensors, map[string]string{metadataKey: string(text)})
		return errors.Join(err, z.Close())
	})
	return Shard{f, len(s.text.Cases)}, err
}

// readShard verifies and reads a shard. The error names the file.
func readShard(in folder, s *Shard) (*shardJSON, map[string]*tensor.Tensor, error) {
	if err := s.verify(in); err != nil {
		return nil, nil, err
	}
	path := in.join(s.Name)
	f, err := in.Open(s.Name)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	text, tensors, err := decodeShard(f, s.Bytes)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(text.Cases) != s.Cases {
		return nil, nil, fmt.Errorf("%s holds %d cases, the manifest says %d", path, len(text.Cases), s.Cases)
	}
	return text, tensors, nil
}

// decodeShard reads a shard from a file of so many bytes.
func decodeShard(r io.Reader, bytes int64) (*shardJSON, map[string]*tensor.Tensor, error) {
	payload := roomBytes + perByte*min(bytes, maxShard)
	z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(window), zstd.WithDecoderMaxMemory(uint64(maxHeader+payload)))
	if err != nil {
		return nil, nil, err
	}
	defer z.Close()
	file, err := safetensors.Read(z, safetensors.Limits{Header: maxHeader, Data: payload})
	if err != nil {
		return nil, nil, fmt.Errorf("truncated or corrupt: %w", err)
	}
	switch n, err := io.CopyN(io.Discard, z, 1); {
	case n > 0:
		return nil, nil, errors.New("corrupt: data follows the tensors")
	case err != io.EOF:
		return nil, nil, fmt.Errorf("truncated or corrupt: %w", err)
	}
	text := &shardJSON{}
	if err := json.Unmarshal([]byte(file.Metadata[metadataKey]), text); err != nil {
		return nil, nil, fmt.Errorf("the file is no shard of a baseline: %w", err)
	}
	if text.Format < 1 || text.Format > Version {
		return nil, nil, fmt.Errorf("the shard has version %d of the format; this Plumb reads up to %d", text.Format, Version)
	}
	tensors := make(map[string]*tensor.Tensor, len(file.Tensors))
	for _, e := range file.Tensors {
		tensors[e.Name] = e.Tensor
	}
	return text, tensors, nil
}

// parse returns the program of a variant.
func (v *variantJSON) parse() (*program.Program, error) {
	p, err := program.Parse("baseline", v.Program)
	if err != nil {
		return nil, err
	}
	if err := p.Check(); err != nil {
		return nil, err
	}
	if id := p.ID(); id != v.ID {
		return nil, fmt.Errorf("the program's identity is %s, recorded was %q", id, v.ID)
	}
	if n := inputBytes(p); n > maxInputs {
		return nil, fmt.Errorf("the inputs have %d bytes, more than %d", n, int64(maxInputs))
	}
	return p, nil
}
