package baseline

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"

	"plumb/backend"
	"plumb/backend/recorded"
	"plumb/internal/safetensors"
	"plumb/program"
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
	spool *spool
	text  shardJSON
	at    map[string]int // where a case is in it
	last  int            // where the case is that was added to last
}

// newShardWriter returns a writer that keeps what it is told in a directory; it
// has to be closed.
func newShardWriter(dir string) (*shardWriter, error) {
	s, err := newSpool(dir)
	if err != nil {
		return nil, err
	}
	return &shardWriter{newCoder(s), s, shardJSON{Format: Version, Cases: []caseJSON{}}, map[string]int{}, 0}, nil
}

func (s *shardWriter) close() { s.spool.close() }

// add adds the outcome of a variant; that of a case's first one begins the case.
// Nothing keeps the tensors, which may lie in shared memory.
func (s *shardWriter) add(name string, v Variant, job *backend.Job, o, predicted *backend.Outcome) error {
	structure, err := s.outcome(job, o, predicted)
	if err = errors.Join(err, s.err); err != nil {
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

// write writes the shard as a file, by writeFile or measureFile.
func (s *shardWriter) write(path string, by func(path string, write func(io.Writer) error) (File, error)) (Shard, error) {
	text, err := json.Marshal(s.text)
	if err = errors.Join(err, s.err); err != nil {
		return Shard{}, err
	}
	header, err := safetensors.Header(s.specs, map[string]string{metadataKey: string(text)})
	if err != nil {
		return Shard{}, err
	}
	f, err := by(path, func(w io.Writer) error {
		first, err := newFrames(w)
		if err != nil {
			return err
		}
		if _, err := first.Write(header); err != nil {
			return err
		}
		return errors.Join(first.Flush(), s.spool.copyTo(w))
	})
	return Shard{f, len(s.text.Cases)}, err
}

// shardReader reads the tensors of a shard in the order of the file, when they
// are asked for, and keeps those that a later trial needs.
type shardReader struct {
	text *shardJSON
	path string
	from folder
	as   *Shard
	file io.Closer
	z    *zstd.Decoder
	in   *safetensors.Reader
	last map[string]int // the last trial that needs a tensor
	ends [][]string     // the tensors that no trial needs after this one
	held map[string]*tensor.Tensor
	gone map[string]bool // the tensors that open gave, which are behind
}

// openShard verifies a shard and reads its text. The error names the file. The
// reader has to be closed.
func openShard(in folder, s *Shard) (*shardReader, error) {
	f, err := s.open(in)
	if err != nil {
		return nil, err
	}
	r, err := newShardReader(f, s.Bytes)
	path := in.join(s.Name)
	if err == nil && len(r.text.Cases) != s.Cases {
		r.z.Close()
		err = fmt.Errorf("it holds %d cases, the manifest says %d", len(r.text.Cases), s.Cases)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	r.path, r.from, r.as, r.file = path, in, s, f
	return r, nil
}

// newShardReader reads the text of a shard in a file of so many bytes.
func newShardReader(f io.Reader, bytes int64) (*shardReader, error) {
	payload := roomBytes + perByte*min(bytes, maxShard)
	z, err := zstd.NewReader(f, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(window), zstd.WithDecoderMaxMemory(uint64(maxHeader+payload)))
	if err != nil {
		return nil, err
	}
	r := &shardReader{z: z, text: &shardJSON{}, last: map[string]int{}, held: map[string]*tensor.Tensor{}, gone: map[string]bool{}}
	r.in, err = safetensors.NewReader(z, safetensors.Limits{Header: maxHeader, Data: payload, Trusted: trustedBytes + trustedPerByte*min(bytes, maxShard)})
	if err == nil {
		err = r.parse()
	} else {
		err = fmt.Errorf("truncated or corrupt: %w", err)
	}
	if err != nil {
		z.Close()
	}
	return r, err
}

func (r *shardReader) parse() error {
	if err := json.Unmarshal([]byte(r.in.Metadata[metadataKey]), r.text); err != nil {
		return fmt.Errorf("the file is no shard of a baseline: %w", err)
	}
	if f := r.text.Format; f != Version {
		return fmt.Errorf("the shard has version %d of the format; this Plumb reads %d", f, Version)
	}
	return nil
}

func (r *shardReader) close() {
	r.z.Close()
	r.file.Close()
}

// needs notes the tensors that a trial of a program of so many calls takes.
// Those that none takes are passed over.
func (r *shardReader) needs(at int, v *variantJSON, calls int) {
	note := func(ref *recorded.TensorRef) (*tensor.Tensor, error) {
		if ref != nil && ref.Stored != "" {
			r.last[ref.Stored] = at
		}
		return nil, nil
	}
	_, _ = v.Outcome.Outcome(calls, note) // what is wrong with it is told when it is judged
	if v.Truth != nil {
		v.Truth.refs(note)
	}
}

// done lets go of the tensors that no trial after this one needs.
func (r *shardReader) done(at int) {
	if r.ends == nil {
		r.sort()
	}
	if at >= len(r.ends) {
		return
	}
	for _, name := range r.ends[at] {
		delete(r.held, name)
		delete(r.last, name)
	}
}

// sort lists what is needed by its last trial, when all is noted.
func (r *shardReader) sort() {
	n := 0
	for _, at := range r.last {
		n = max(n, at)
	}
	r.ends = make([][]string, n+1)
	for name, at := range r.last {
		r.ends[at] = append(r.ends[at], name)
	}
}

// blob returns a tensor that a trial that is not done needs.
func (r *shardReader) blob(name string) (*tensor.Tensor, error) {
	for r.held[name] == nil && r.in.More() {
		if err := r.read(); err != nil {
			return nil, r.corrupt(err)
		}
	}
	if t := r.held[name]; t != nil {
		return t, nil
	}
	if r.gone[name] {
		return r.again(name)
	}
	return nil, fmt.Errorf("the file has no tensor %q", name)
}

// again reads a tensor that is behind.
func (r *shardReader) again(name string) (*tensor.Tensor, error) {
	other, err := openShard(r.from, r.as)
	if err != nil {
		return nil, err
	}
	defer other.close()
	other.last[name] = r.last[name]
	t, err := other.blob(name)
	r.held[name] = t
	return t, err
}

func (r *shardReader) corrupt(err error) error {
	return fmt.Errorf("%s: truncated or corrupt: %w", r.path, err)
}

func (r *shardReader) spec(name string) (safetensors.Spec, bool) { return r.in.Spec(name) }

// open returns the bytes of a tensor, which can be read until another is asked
// for.
func (r *shardReader) open(name string) (io.Reader, error) {
	for r.held[name] == nil && r.in.More() && r.in.Name() != name {
		if err := r.read(); err != nil {
			return nil, r.corrupt(err)
		}
	}
	if t := r.held[name]; t != nil || !r.in.More() {
		t, err := r.blob(name)
		if err != nil {
			return nil, err
		}
		return bytes.NewReader(t.Bytes()), nil
	}
	r.gone[name] = true
	return r.in.Open()
}

// read reads the next tensor, and where it is the last, what follows.
func (r *shardReader) read() error {
	name := r.in.Name()
	if _, wanted := r.last[name]; !wanted {
		if err := r.in.Skip(); err != nil {
			return err
		}
	} else {
		e, err := r.in.Next()
		if err != nil {
			return err
		}
		r.held[name] = e.Tensor
	}
	if r.in.More() {
		return nil
	}
	switch n, err := io.CopyN(io.Discard, r.z, 1); {
	case n > 0:
		return errors.New("data follows the tensors")
	case err != io.EOF:
		return err
	}
	return nil
}

// parse returns the program of a variant.
func (v *variantJSON) parse() (*program.Program, error) {
	p, err := program.Parse("baseline", v.Program)
	if err != nil {
		return nil, err
	}
	if err := p.Validate(); err != nil {
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
