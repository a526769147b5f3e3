package baseline

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/klauspost/compress/zstd"

	"plumb/backend"
	"plumb/backend/recorded"
	"plumb/internal/judge/compare"
	"plumb/internal/safetensors"
	"plumb/internal/scratch"
	"plumb/tensor"
)

// small records a few cases into a new directory.
func small(t testing.TB, predict bool) (dir string) {
	t.Helper()
	dir = t.TempDir()
	cfg := toyGen(dir, toyCases(2, 40, 3, 30000, 6, 20000, 300000, 4))
	if !predict {
		cfg.Predict = nil
	}
	if _, err := Gen(context.Background(), cfg); err != nil {
		t.Fatal(err)
	}
	return dir
}

const first = "cases-00000.safetensors.zst"

// TestDamagedFiles spoils a file of a baseline: the cases in it are faults that
// name it, the rest is judged.
func TestDamagedFiles(t *testing.T) {
	tests := []struct {
		name, want string
		spoil      func(t *testing.T, path string)
	}{
		{"truncated", "is truncated: it has 50 bytes", func(t *testing.T, path string) { must(t, os.Truncate(path, 50)) }},
		{"flipped", "is corrupt: its SHA-256", func(t *testing.T, path string) { flip(t, path, 100) }},
		{"FIFO", "is not a regular file", func(t *testing.T, path string) {
			must(t, errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o644)))
		}},
		{"missing", "is missing", func(t *testing.T, path string) { must(t, os.Remove(path)) }},
		{"longer", "is longer than it was", func(t *testing.T, path string) {
			b, err := os.ReadFile(path)
			must(t, errors.Join(err, os.WriteFile(path, append(b, 0), 0o644)))
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := small(t, true)
			tt.spoil(t, filepath.Join(dir, first))
			lines := runToy(t, dir, toy{noise: true}, toy{})
			if count(lines, "fault") != 6 || count(lines, "aligned") != 2 || !strings.Contains(lines[0], first+" "+tt.want) {
				t.Error(strings.Join(lines, "\n"))
			}
		})
	}
}

// TestRecordingsOfOneDirectory: one process records into a directory at a time,
// and removes what one that was killed had begun to write.
func TestRecordingsOfOneDirectory(t *testing.T) {
	dir := t.TempDir()
	left := filepath.Join(dir, ".plumb-123")
	must(t, os.WriteFile(left, []byte("half"), 0o644))
	release, _ := scratch.Lock(dir)
	cfg := toyGen(dir, toyCases(2, 3))
	if _, err := Gen(context.Background(), cfg); err == nil || !strings.Contains(err.Error(), "another process is recording") {
		t.Errorf("%v", err)
	}
	release()
	if _, err := Gen(context.Background(), cfg); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(left); !os.IsNotExist(err) {
		t.Errorf("what was half written is there: %v", err)
	}
	must(t, os.Remove(filepath.Join(dir, manifestName)))
	must(t, syscall.Mkfifo(filepath.Join(dir, manifestName), 0o644))
	if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), "manifest.json is not a regular file") {
		t.Errorf("%v", err)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// rewrite replaces the first shard by one whose checksum is right.
func rewrite(t testing.TB, dir string, content []byte) {
	t.Helper()
	b, err := Open(dir)
	must(t, err)
	f, err := writeFile(filepath.Join(dir, first), func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
	must(t, err)
	b.Manifest.Shards[0].File = f
	text, err := b.Manifest.encode()
	must(t, errors.Join(err, os.WriteFile(filepath.Join(dir, manifestName), text, 0o644)))
}

func compressed(t testing.TB, content []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z, err := zstd.NewWriter(&b)
	must(t, err)
	_, err = z.Write(content)
	must(t, errors.Join(err, z.Close()))
	return b.Bytes()
}

// withHeader is a safetensors file of a header and 64 bytes.
func withHeader(header string) []byte {
	b := []byte{byte(len(header)), byte(len(header) >> 8), 0, 0, 0, 0, 0, 0}
	return append(append(b, header...), make([]byte, 64)...)
}

// shardOf makes a shard of the case's structures, with one tensor of 64 bytes.
func shardOf(t testing.TB, outcome string) []byte {
	t.Helper()
	variants, err := toyCases(2)[0].Programs()
	must(t, err)
	p := variants[0].Program
	id, text := p.ID(), p.String()
	quoted, err := json.Marshal(text)
	must(t, err)
	var cases []string
	for i := range 6 {
		cases = append(cases, fmt.Sprintf(`{"case":"entry::toy_%d.pth","variants":[{"id":%q,"program":%s,"outcome":%s}]}`, i, id, quoted, outcome))
	}
	var b bytes.Buffer
	must(t, safetensors.Write(&b, []safetensors.Entry{{Name: "0", Tensor: tensor.New(tensor.U8, 64)}},
		map[string]string{metadataKey: `{"format":3,"cases":[` + strings.Join(cases, ",") + `]}`}))
	return compressed(t, b.Bytes())
}

// TestHostileShards states the verdict on shards that say what cannot be.
func TestHostileShards(t *testing.T) {
	value := func(ref string) string { return `{"status":"ok","values":[{"t":` + ref + `}]}` }
	tests := []struct {
		name, want string
		shard      []byte
	}{
		{"no zstd", "truncated or corrupt", []byte("PK\x03\x04 is a zip file")},
		{"half a frame", "truncated or corrupt", compressed(t, make([]byte, 1000))[:20]},
		{"huge shape", "too large", compressed(t, withHeader(`{"0":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,4]}}`))},
		{"overlap", "overlap or leave a gap", compressed(t, withHeader(`{"0":{"dtype":"U8","shape":[64],"data_offsets":[0,64]},"1":{"dtype":"U8","shape":[32],"data_offsets":[0,32]}}`))},
		{"huge payload", "exceed the limit", compressed(t, withHeader(`{"0":{"dtype":"U8","shape":[1000000000000],"data_offsets":[0,1000000000000]}}`))},
		{"huge header", "exceeds the limit", compressed(t, []byte{255, 255, 255, 255, 255, 0, 0, 0, '{'})},
		{"no text", "is no shard of a baseline", compressed(t, withHeader(`{"0":{"dtype":"U8","shape":[64],"data_offsets":[0,64]}}`))},
		{"newer shard", "version 4 of the format; this Plumb reads 3", compressed(t, withHeader(`{"__metadata__":{"plumb":"{\"format\":4}"},"0":{"dtype":"U8","shape":[64],"data_offsets":[0,64]}}`))},
		{"no values", "0 values for 1 calls", shardOf(t, `{"status":"ok","values":[]}`)},
		{"too many values", "2 values for 1 calls", shardOf(t, `{"status":"ok","values":[{"plain":{}},{"plain":{}}]}`)},
		{"no tensor", `no tensor "9"`, shardOf(t, value(`{"s":"9"}`))},
		{"no input", `no input "z"`, shardOf(t, value(`{"i":"z"}`))},
		{"wrong shape", "cannot have the shape", shardOf(t, value(`{"s":"0","shape":[3]}`))},
		{"huge fill", "more than the 536870", shardOf(t, value(`{"c":{"d":"float32","by":"fill","fill":"00000000"},"shape":[1000000,1000000]}`))},
		{"negative fill", "negative", shardOf(t, value(`{"c":{"d":"float32","by":"fill","fill":"00000000"},"shape":[-1]}`))},
		{"fill of another dtype", "is no element of float64", shardOf(t, value(`{"c":{"d":"float64","by":"fill","fill":"00000000"},"shape":[1]}`))},
		{"bool of 7", "is no element of bool", shardOf(t, value(`{"c":{"d":"bool","by":"fill","fill":"07"},"shape":[1]}`))},
		{"unknown dtype", "dtype", shardOf(t, value(`{"s":"0","c":{"d":"float8","by":"shuffle"},"shape":[1]}`))},
		{"unknown coding", `unknown coding "zip"`, shardOf(t, value(`{"s":"0","c":{"d":"float32","by":"zip"},"shape":[1]}`))},
		{"bits of another shape", "are no bool of shape [7]", shardOf(t, value(`{"s":"0","c":{"d":"bool","by":"bits"},"shape":[7]}`))},
		{"no shape", "has no shape", shardOf(t, value(`{"s":"0","c":{"d":"float32","by":"shuffle"}}`))},
		{"no place", "was recorded as a difference", shardOf(t, value(`{"s":"0","c":{"d":"float32","by":"like","like":"v.9"}}`))},
		{"bad difference", "cut short or damaged", shardOf(t, value(`{"s":"0","c":{"d":"float32","by":"like","like":"v.0.0"}}`))},
		{"huge strides", "cannot have the strides", shardOf(t, value(`{"s":"0","strides":[1099511627776]}`))},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := small(t, true)
			rewrite(t, dir, tt.shard)
			lines := runToy(t, dir, toy{}, toy{})
			if count(lines, "fault") != 6 || count(lines, "misaligned") != 2 || !strings.Contains(lines[0], tt.want) || !strings.Contains(lines[0], "entry::toy_0.pth") {
				t.Errorf("want %q:\n%s", tt.want, strings.Join(lines, "\n"))
			}
		})
	}
}

// TestBadManifests states the error of manifests that cannot be right.
func TestBadManifests(t *testing.T) {
	sha := strings.Repeat("0", 64)
	tests := []struct{ name, text, want string }{
		{"truncated", `{"format":1,`, "truncated or corrupt"},
		{"no JSON", "PK\x03\x04", "truncated or corrupt"},
		{"no version", `{}`, "version 0 of the format"},
		{"newer", `{"format":4,"cases":"changed"}`, "version 4 of the format; this Plumb reads 3"},
		{"older", `{"format":1,"cases":"changed"}`, "version 1 of the format; this Plumb reads 3"},
		{"path", `{"format":3,"shards":[{"name":"../../etc/passwd","sha256":"` + sha + `","cases":1}]}`, "is no name of a file"},
		{"absolute path", `{"format":3,"shards":[{"name":"/etc/passwd","sha256":"` + sha + `","cases":1}]}`, "is no name of a file"},
		{"config path", `{"format":3,"config":{"name":"../x","sha256":"` + sha + `"}}`, "is no name of a file"},
		{"negative size", `{"format":3,"shards":[{"name":"a","bytes":-1,"sha256":"` + sha + `","cases":1}]}`, "-1 bytes"},
		{"bad digest", `{"format":3,"shards":[{"name":"a","bytes":1,"sha256":"x","cases":1}]}`, "is no SHA-256"},
		{"negative cases", `{"format":3,"shards":[{"name":"a","bytes":1,"sha256":"` + sha + `","cases":-1}]}`, "-1 cases"},
		{"twice", `{"format":3,"cases":[{"case":"a","missing":"x"},{"case":"a","missing":"x"}]}`, "appears twice"},
		{"too few shards", `{"format":3,"cases":[{"case":"a"}]}`, "-1 cases against the list"},
		{"too many cases in shards", `{"format":3,"shards":[{"name":"a","bytes":1,"sha256":"` + sha + `","cases":2}],"cases":[{"case":"a"}]}`, "+1 cases against the list"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, manifestName)
			must(t, os.WriteFile(path, []byte(tt.text), 0o644))
			if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("error %v, want one with %q and the file", err, tt.want)
			}
		})
	}
	if _, err := Open(t.TempDir()); err == nil || !strings.Contains(err.Error(), "plumb conform gen makes one") {
		t.Errorf("no manifest: %v", err)
	}
}

// FuzzManifest decodes manifests; one that is accepted is written and read back.
func FuzzManifest(f *testing.F) {
	b, err := os.ReadFile(filepath.Join(small(f, true), manifestName))
	must(f, err)
	f.Add(b)
	f.Add([]byte(`{"format":3,"shards":[],"cases":[]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var m Manifest
		if m.decode(text) != nil {
			return
		}
		again, err := m.encode()
		must(t, err)
		var back Manifest
		if err := back.decode(again); err != nil {
			t.Fatalf("what was written cannot be read: %v", err)
		}
	})
}

// blobMap has the stored tensors by name.
type blobMap map[string]*tensor.Tensor

func (m blobMap) blob(name string) (*tensor.Tensor, error) {
	if t := m[name]; t != nil {
		return t, nil
	}
	return nil, fmt.Errorf("the file has no tensor %q", name)
}

func (m blobMap) spec(name string) (safetensors.Spec, bool) {
	t := m[name]
	if t == nil {
		return safetensors.Spec{}, false
	}
	return safetensors.Spec{Name: name, DType: t.DType(), Shape: t.Shape()}, true
}

func (m blobMap) open(name string) (io.Reader, error) {
	t, err := m.blob(name)
	if err != nil {
		return nil, err
	}
	return bytes.NewReader(t.Bytes()), nil
}

// FuzzShard decodes the text of a shard and its outcomes over a few tensors. What
// can be decoded is the same when it is read while it is compared.
func FuzzShard(f *testing.F) {
	dir := small(f, true)
	b, err := Open(dir)
	must(f, err)
	shard, err := openShard(b.files, &b.Manifest.Shards[0])
	must(f, err)
	defer shard.close()
	for i := range shard.text.Cases {
		outcome, err := json.Marshal(shard.text.Cases[i].Variants[0].Outcome)
		must(f, err)
		f.Add(outcome, []byte{1, 2, 3, 4})
	}
	variants, err := toyCases(40)[0].Programs()
	must(f, err)
	job := backend.NewJob(variants[0].Program)
	o, err := toy{}.Run(context.Background(), job)
	must(f, err)
	f.Fuzz(func(t *testing.T, outcome, blob []byte) {
		var s recorded.Structure
		if json.Unmarshal(outcome, &s) != nil {
			return
		}
		stored := blobMap{"0": tensor.Of(tensor.U8, []int{len(blob)}, blob), "1": tensor.New(tensor.F32, 4)}
		decoder := func() *decoder {
			d := newDecoder(job, stored, func() (map[string]*tensor.Tensor, error) { return tensorsOf(o), nil })
			d.room = 1 << 16
			return d
		}
		d, r := decoder(), newReading(decoder(), stored, 1)
		refs := map[*tensor.Tensor]*recorded.TensorRef{}
		_, _ = s.Outcome(len(job.Program.Calls), func(ref *recorded.TensorRef) (*tensor.Tensor, error) {
			t, err := r.tensor(ref)
			refs[t] = ref
			return t, err
		})
		for layout, open := range r.unread {
			whole, err := decoder().tensor(refs[layout])
			if err != nil {
				continue
			}
			expected := compare.Operand{Tensor: layout, Open: open}
			if diff := expected.Judge(whole, compare.Exactly("it is the same"), compare.Options{SignedZero: true}); !diff.OK {
				t.Fatalf("%+v is %s when it is read: %s", refs[layout], layout, diff.Message)
			}
		}
		got, err := s.Outcome(len(job.Program.Calls), d.tensor)
		if err != nil {
			return
		}
		if _, err := newCoder(io.Discard).outcome(job, got, &backend.Outcome{}); err != nil {
			t.Skip()
		}
	})
}

// FuzzShardFile reads files.
func FuzzShardFile(f *testing.F) {
	cfg := toyGen(f.TempDir(), toyCases(2, 3))
	_, err := Gen(context.Background(), cfg)
	must(f, err)
	b, err := os.ReadFile(filepath.Join(cfg.Dir, first))
	must(f, err)
	f.Add(b)
	f.Add([]byte("PK\x03\x04"))
	f.Fuzz(func(t *testing.T, file []byte) {
		if len(file) > 1<<16 {
			return
		}
		r, err := newShardReader(bytes.NewReader(file), int64(len(file)))
		if err != nil {
			return
		}
		defer r.z.Close()
		for i := range r.text.Cases {
			for k := range r.text.Cases[i].Variants {
				v := &r.text.Cases[i].Variants[k]
				_, _ = v.parse()
				r.needs(i, v, 1)
			}
		}
		for i := range r.text.Cases {
			if name := strconv.Itoa(i); i%2 == 0 {
				_, _ = r.blob(name)
			} else if in, err := r.open(name); err == nil {
				_, _ = io.Copy(io.Discard, in)
			}
			r.done(i)
		}
		if len(r.held) > 0 {
			t.Fatalf("%d tensors are held that nothing needs", len(r.held))
		}
	})
}
