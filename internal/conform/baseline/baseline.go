// Package baseline keeps what a reference did with the cases of a conformance
// config, for machines on which there is no reference.
//
// A baseline is a directory: manifest.json, the config that it was made from,
// and shards. A shard is a safetensors file compressed with Zstandard; its
// metadata has one key, "plumb", with a JSON text that holds, per case, the
// programs and the structure of their outcomes. Inputs are not stored: they
// follow from the program's text. A result is stored as cheaply as it can be
// (see coder): not at all where it has the bits of an input, of an earlier
// result or of what the predictor computes, else as its difference from the
// prediction, else as its bytes.
//
// [Gen] writes a baseline shard by shard, [Open] and [Run] read it likewise;
// neither holds more than a few cases. Nothing in a baseline is executed, and
// every number in it is checked before it is used.
package baseline

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"plumb/backend"
	"plumb/program"
)

// Version is the version of the format that Gen writes and Open reads. It counts
// changes of how inputs are drawn too: a baseline stores what was computed from
// them, not them.
const Version = 3

// The names of files of a baseline.
const (
	manifestName = "manifest.json"
	journalName  = "unfinished.jsonl"
	// unfinishedName is the pattern of files that are being written.
	unfinishedName = ".plumb-*"
)

// The most that the parts of a baseline may hold, in bytes or by number, so
// that a small file cannot make a reader take more than about 1 GiB.
const (
	maxManifest = 128 << 20
	maxCases    = 1 << 20
	maxHeader   = 64 << 20
	maxInputs   = 1 << 30 // of a program
	window      = 8 << 20
	maxShard    = 16 << 30
	// A shard holds up to roomBytes of tensors, and perByte for each of its own
	// bytes; the results of a case that are larger than what is stored of them up to
	// roomBytes, and perInput for each byte of its inputs.
	roomBytes = 512 << 20
	perByte   = 64
	// Memory for a tensor is taken before its bytes are there up to this size.
	trustedBytes   = 16 << 20
	trustedPerByte = 64
)

// Variant is one way in which a case is run.
type Variant struct {
	Name    string // "" for the function itself, "inplace"
	Program *program.Program
}

// Case is a case to record.
type Case struct {
	Name       string
	Function   string
	ATol, RTol float64
	// Programs returns the case's variants. The error says why there are none.
	Programs func() ([]Variant, error)
}

// Manifest is the table of contents.
type Manifest struct {
	Format        int          `json:"format"`
	Plumb         string       `json:"plumb"`
	Config        File         `json:"config"`
	Seed          uint64       `json:"seed"`
	Reference     backend.Info `json:"reference"`
	SelfContained bool         `json:"self_contained"`
	// Truth says of which cases the shards hold the truth; empty for none.
	Truth TruthMode `json:"truth,omitempty"`
	// Seeded says that there are no shards: Gen makes the very ones again.
	Seeded bool `json:"seeded,omitempty"`
	// Complete is false where the recording was interrupted.
	Complete bool    `json:"complete"`
	Shards   []Shard `json:"shards"`
	Cases    []Entry `json:"cases"`
	// Took is the processor time of the reference's calls, as far as it tells, where
	// it was recorded just now.
	Took time.Duration `json:"-"`
}

// File is a file of the directory with what it has to be.
type File struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// Shard is a file of consecutive cases.
type Shard struct {
	File
	Cases int `json:"cases"`
}

// Entry is a case in the manifest.
type Entry struct {
	Name     string  `json:"case"`
	Function string  `json:"function"`
	ATol     float64 `json:"atol"`
	RTol     float64 `json:"rtol"`
	// Missing says why the case has no program; it is in no shard then.
	Missing string `json:"missing,omitempty"`
	// Refused says how the reference failed a variant, by its name.
	Refused map[string]Refusal `json:"refused,omitempty"`
}

// usual is the tolerance, absolute and relative, that an entry need not tell:
// that of configs which say none.
const usual = 1e-5

// entryJSON is an entry that tells its tolerance where it is not the usual one,
// and its function where its name does not say it.
type entryJSON struct {
	*plainEntry
	Function string   `json:"function,omitempty"`
	ATol     *float64 `json:"atol,omitempty"`
	RTol     *float64 `json:"rtol,omitempty"`
}

// named is the function of a case by its name, "entry::function_0.pth".
func named(name string) string {
	_, of, _ := strings.Cut(name, "::")
	return of[:max(strings.LastIndexByte(of, '_'), 0)]
}

type plainEntry Entry

// MarshalJSON leaves out what is usual.
func (e Entry) MarshalJSON() ([]byte, error) {
	told := func(v *float64) *float64 {
		if *v == usual {
			return nil
		}
		return v
	}
	function := e.Function
	if function == named(e.Name) {
		function = ""
	}
	return json.Marshal(entryJSON{(*plainEntry)(&e), function, told(&e.ATol), told(&e.RTol)})
}

// UnmarshalJSON reads an entry.
func (e *Entry) UnmarshalJSON(text []byte) error {
	one := entryJSON{plainEntry: (*plainEntry)(e)}
	if err := json.Unmarshal(text, &one); err != nil {
		return err
	}
	e.Function, e.ATol, e.RTol = cmp.Or(one.Function, named(e.Name)), usual, usual
	if one.ATol != nil {
		e.ATol = *one.ATol
	}
	if one.RTol != nil {
		e.RTol = *one.RTol
	}
	return nil
}

// Refusal is how the reference failed a program.
type Refusal struct {
	Status  backend.Status `json:"status"`
	Class   string         `json:"class,omitempty"`
	Message string         `json:"message,omitempty"`
	// StandIn says in which types the reference was asked instead: the outcome is
	// what it said then, rounded. Empty where there is no outcome.
	StandIn string `json:"stand_in,omitempty"`
}

// Baseline is an opened baseline.
type Baseline struct {
	Manifest Manifest
	// SHA256 is that of the manifest, which has those of all other files.
	SHA256 string
	files  folder
}

// folder is a directory of files, by the path that messages give it.
type folder struct {
	fs.FS
	path string
}

func (in folder) join(name string) string { return filepath.Join(in.path, name) }

// Open reads a baseline's manifest. The error names the file.
func Open(dir string) (*Baseline, error) { return OpenFS(os.DirFS(dir), dir) }

// OpenFS is Open of the root of a file system, which messages call by dir.
func OpenFS(fsys fs.FS, dir string) (*Baseline, error) {
	b, err := openAny(fsys, dir)
	if err == nil && b.Manifest.Seeded {
		return nil, fmt.Errorf("%s holds no results: plumb conform gen --from %s --out NEW makes them again, with the reference", dir, dir)
	}
	return b, err
}

// OpenSeeded opens a baseline to record it anew, one without results too.
func OpenSeeded(dir string) (*Baseline, error) { return openAny(os.DirFS(dir), dir) }

func openAny(fsys fs.FS, dir string) (*Baseline, error) {
	files := folder{fsys, dir}
	path := files.join(manifestName)
	text, err := files.readAtMost(manifestName, maxManifest)
	if errors.Is(err, os.ErrNotExist) {
		if _, unfinished := fs.Stat(files, journalName); unfinished == nil {
			return nil, fmt.Errorf("%s: the recording was interrupted before it could write its manifest; run plumb conform gen again, which goes on from there", path)
		}
		return nil, fmt.Errorf("%s does not exist: %s is no baseline; plumb conform gen makes one", path, dir)
	}
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(text)
	b := &Baseline{files: files, SHA256: hex.EncodeToString(sum[:])}
	if err := b.Manifest.decode(text); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return b, nil
}

// openRegular opens a file of bytes; a FIFO would wait without end.
func (in folder) openRegular(name string) (fs.File, error) {
	info, err := fs.Stat(in.FS, name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", in.join(name))
	}
	return in.Open(name)
}

func (in folder) readAtMost(name string, most int64) ([]byte, error) {
	f, err := in.openRegular(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(b)) > most {
		err = fmt.Errorf("%s has more than %d bytes", in.join(name), most)
	}
	return b, err
}

func (m *Manifest) decode(text []byte) error {
	var v struct{ Format int }
	if err := json.Unmarshal(text, &v); err != nil {
		return fmt.Errorf("truncated or corrupt: %w", err)
	}
	if v.Format != Version {
		return fmt.Errorf("the baseline has version %d of the format; this Plumb reads %d: record again, or take a Plumb of the same age", v.Format, Version)
	}
	if err := json.Unmarshal(text, m); err != nil {
		return fmt.Errorf("truncated or corrupt: %w", err)
	}
	return m.check()
}

var (
	fileName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,120}$`)
	digest   = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// check holds a manifest to what its readers rely on.
func (m *Manifest) check() error {
	if len(m.Cases) > maxCases {
		return fmt.Errorf("%d cases are more than %d", len(m.Cases), maxCases)
	}
	stored := 0
	for _, s := range m.Shards {
		if err := s.File.check(); err != nil {
			return err
		}
		if s.Cases < 1 || s.Cases > maxCases {
			return fmt.Errorf("%s is said to hold %d cases", s.Name, s.Cases)
		}
		stored += s.Cases
	}
	if m.Config.Name != "" {
		if err := m.Config.check(); err != nil {
			return err
		}
	}
	seen := make(map[string]bool, len(m.Cases))
	for i := range m.Cases {
		e := &m.Cases[i]
		if seen[e.Name] {
			return fmt.Errorf("the case %s appears twice", e.Name)
		}
		seen[e.Name] = true
		if e.Missing == "" {
			stored--
		}
	}
	if stored != 0 {
		return fmt.Errorf("the shards hold %+d cases against the list of cases", stored)
	}
	return nil
}

func (f *File) check() error {
	switch {
	case !fileName.MatchString(f.Name):
		return fmt.Errorf("%q is no name of a file of a baseline", f.Name)
	case f.Bytes < 0:
		return fmt.Errorf("%s is said to have %d bytes", f.Name, f.Bytes)
	case !digest.MatchString(f.SHA256):
		return fmt.Errorf("%s: %q is no SHA-256", f.Name, f.SHA256)
	}
	return nil
}

// encode writes the manifest with a line per shard and per case.
func (m *Manifest) encode() ([]byte, error) {
	head := *m
	head.Shards, head.Cases = []Shard{}, []Entry{}
	text, err := json.MarshalIndent(head, "", "  ")
	if err != nil {
		return nil, err
	}
	at := bytes.LastIndex(text, []byte(`"shards"`))
	var b bytes.Buffer
	b.Write(text[:at])
	b.WriteString(`"shards": [`)
	if err := writeLines(&b, m.Shards); err != nil {
		return nil, err
	}
	b.WriteString("],\n  \"cases\": [")
	if err := writeLines(&b, m.Cases); err != nil {
		return nil, err
	}
	b.WriteString("]\n}\n")
	return b.Bytes(), nil
}

func writeLines[T any](b *bytes.Buffer, list []T) error {
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	for i := range list {
		if i == 0 {
			b.WriteString("\n")
		} else {
			b.Truncate(b.Len() - 1)
			b.WriteString(",\n")
		}
		if err := enc.Encode(list[i]); err != nil {
			return err
		}
	}
	return nil
}

// writeFile writes a file beside its path and renames it.
func writeFile(path string, write func(w io.Writer) error) (File, error) {
	tmp, err := os.CreateTemp(filepath.Dir(path), unfinishedName)
	if err != nil {
		return File{}, err
	}
	defer os.Remove(tmp.Name())
	h := sha256.New()
	n := &counter{w: io.MultiWriter(tmp, h)}
	err = write(n)
	if err == nil {
		err = errors.Join(tmp.Chmod(0o644), tmp.Sync())
	}
	if err = errors.Join(err, tmp.Close()); err != nil {
		return File{}, err
	}
	return File{filepath.Base(path), n.n, hex.EncodeToString(h.Sum(nil))}, os.Rename(tmp.Name(), path)
}

// measureFile is writeFile without the file.
func measureFile(path string, write func(w io.Writer) error) (File, error) {
	h := sha256.New()
	n := &counter{w: h}
	if err := write(n); err != nil {
		return File{}, err
	}
	return File{filepath.Base(path), n.n, hex.EncodeToString(h.Sum(nil))}, nil
}

type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}

// verify reports how a file differs from what the manifest says; nil when it
// does not.
func (f *File) verify(in folder) error {
	r, err := f.open(in)
	if err == nil {
		r.Close()
	}
	return err
}

// open opens a file that is what the manifest says, to read it from its begin.
// The error says how it differs.
func (f *File) open(in folder) (fs.File, error) {
	r, err := in.openRegular(f.Name)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%s is missing", in.join(f.Name))
	}
	if err != nil {
		return nil, err
	}
	if err := f.hold(r, in.join(f.Name)); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// hold holds an open file to what the manifest says, and goes back to its begin.
func (f *File) hold(r fs.File, path string) error {
	info, err := r.Stat()
	if err != nil {
		return err
	}
	if info.Size() != f.Bytes {
		word := "truncated"
		if info.Size() > f.Bytes {
			word = "longer than it was"
		}
		return fmt.Errorf("%s is %s: it has %d bytes, recorded were %d", path, word, info.Size(), f.Bytes)
	}
	h := sha256.New()
	if _, err := io.Copy(h, r); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if sum := hex.EncodeToString(h.Sum(nil)); sum != f.SHA256 {
		return fmt.Errorf("%s is corrupt: its SHA-256 is %s, recorded was %s", path, sum, f.SHA256)
	}
	back, ok := r.(io.Seeker)
	if !ok {
		return fmt.Errorf("%s cannot be read twice", path)
	}
	_, err = back.Seek(0, io.SeekStart)
	return err
}

// Bytes returns the size of all files but the manifest.
func (m *Manifest) Bytes() int64 {
	n := m.Config.Bytes
	for _, s := range m.Shards {
		n += s.Bytes
	}
	return n
}

// Config returns the source of the config that the baseline was made from.
func (b *Baseline) Config() ([]byte, error) {
	if err := b.Manifest.Config.verify(b.files); err != nil {
		return nil, err
	}
	return b.files.readAtMost(b.Manifest.Config.Name, maxManifest)
}

// Functions returns the names of the functions, sorted.
func (m *Manifest) Functions() []string {
	var names []string
	for i := range m.Cases {
		names = append(names, m.Cases[i].Function)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
