package safetensors

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"plumb/tensor"
)

// sample has a tensor of every dtype, an empty one, a 0-d one and a view.
func sample() []Entry {
	var list []Entry
	for i, d := range tensor.DTypes {
		t := tensor.New(d, 2, i%3+1)
		for j := range t.Len() {
			if d.IsDifferentiable() {
				t.Set(j, complex(float64(j)-1.5, float64(-j)))
			} else {
				t.SetInt(j, int64(j&1))
			}
		}
		list = append(list, Entry{"t." + d.String(), t})
	}
	nan := tensor.Of(tensor.F32, []int{2}, []float32{math.Float32frombits(0x7fa00001), float32(math.Copysign(0, -1))})
	return append(list, Entry{"empty", tensor.New(tensor.F32, 0, 3)}, Entry{"scalar", tensor.Scalar(tensor.F16, 7)},
		Entry{"view", tensor.Of(tensor.I16, []int{2, 2}, []int16{1, 2, 3, 4}).Transpose(0, 1)}, Entry{`odd "name" <é>`, nan})
}

var sampleMeta = map[string]string{"b": "2", "a": "line\n\"quoted\" <tag>"}

func encode(t *testing.T, tensors []Entry, metadata map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, tensors, metadata); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestRoundTrip(t *testing.T) {
	raw := encode(t, sample(), sampleMeta)
	readers := map[string]func() (*File, error){
		"Parse":        func() (*File, error) { return Parse(raw, Limits{}) },
		"Read":         func() (*File, error) { return Read(iotest.OneByteReader(bytes.NewReader(raw)), Limits{}) },
		"Parse, moved": func() (*File, error) { return Parse(append(make([]byte, 1), raw...)[1:], Limits{}) },
	}
	for name, read := range readers {
		t.Run(name, func(t *testing.T) {
			f, err := read()
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range sample() {
				if got := f.Tensor(e.Name); got == nil || !got.SameBits(e.Tensor) {
					t.Errorf("%s came back as %v", e.Name, got)
				}
			}
			for k, v := range sampleMeta {
				if f.Metadata[k] != v {
					t.Errorf("metadata %q came back as %q", k, f.Metadata[k])
				}
			}
			if again := encode(t, f.Tensors, f.Metadata); !bytes.Equal(again, raw) {
				t.Errorf("written again the file has other bytes")
			}
		})
	}
}

func TestParseDoesNotCopy(t *testing.T) {
	raw := encode(t, sample(), nil)
	aligned := tensor.New(tensor.U8, len(raw)).Storage()
	copy(aligned, raw)
	f, err := Parse(aligned, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range f.Tensors {
		if s := e.Tensor.Storage(); len(s) > 0 && !within(s, aligned) {
			t.Errorf("%s was copied", e.Name)
		}
	}
}

// within reports whether writing to s shows in b.
func within(s, b []byte) bool {
	before := bytes.Clone(b)
	s[0] ^= 1
	changed := !bytes.Equal(before, b)
	s[0] ^= 1
	return changed
}

func TestOrderDoesNotMatter(t *testing.T) {
	list := sample()
	raw := encode(t, list, sampleMeta)
	for i, j := 0, len(list)-1; i < j; i, j = i+1, j-1 {
		list[i], list[j] = list[j], list[i]
	}
	if !bytes.Equal(raw, encode(t, list, sampleMeta)) {
		t.Error("the order of the tensors changes the bytes")
	}
}

func TestDuplicateNames(t *testing.T) {
	x := tensor.New(tensor.F32)
	for _, name := range []string{"x", metadataKey} {
		if err := Write(io.Discard, []Entry{{name, x}, {name, x}}, nil); err == nil {
			t.Errorf("two tensors named %q were written", name)
		}
	}
}

// TestBadFiles states the error of every defect.
func TestBadFiles(t *testing.T) {
	file := func(header string, data int) []byte {
		b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
		return append(append(b, header...), make([]byte, data)...)
	}
	const x = `"dtype":"F32","shape":[2]`
	tests := []struct{ name, header, want string }{
		{"empty header", ``, "not a JSON object"},
		{"not an object", `[]`, "not a JSON object"},
		{"cut object", `{"x":{`, "unexpected EOF"},
		{"after the object", `{} {}`, "3 bytes follow"},
		{"name twice", `{"x":{` + x + `,"data_offsets":[0,8]},"x":{` + x + `,"data_offsets":[0,8]}}`, `"x" appears twice`},
		{"metadata of a number", `{"__metadata__":{"a":1}}`, "not a string"},
		{"metadata of null", `{"__metadata__":{"a":null}}`, "not a string"},
		{"metadata twice", `{"__metadata__":{"a":"1","a":"2"}}`, `"a" appears twice`},
		{"tensor of a number", `{"x":1}`, "cannot unmarshal"},
		{"unknown dtype", `{"x":{"dtype":"F8_E4M3","shape":[2],"data_offsets":[0,2]}}`, `unknown dtype "F8_E4M3"`},
		{"no shape", `{"x":{"dtype":"F32","data_offsets":[0,4]}}`, "no shape"},
		{"negative dimension", `{"x":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}}`, "negative dimension"},
		{"huge shape", `{"x":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,4]}}`, "too large"},
		{"one offset", `{"x":{` + x + `,"data_offsets":[8]}}`, "not two numbers"},
		{"three offsets", `{"x":{` + x + `,"data_offsets":[0,8,8]}}`, "not two numbers"},
		{"backward offsets", `{"x":{` + x + `,"data_offsets":[8,0]}}`, "not a range"},
		{"negative offsets", `{"x":{` + x + `,"data_offsets":[-8,0]}}`, "not a range"},
		{"wrong size", `{"x":{` + x + `,"data_offsets":[0,4]}}`, "has 4 bytes, want 8"},
		{"gap", `{"x":{` + x + `,"data_offsets":[1,9]}}`, `"x" begins at byte 1, want 0`},
		{"overlap", `{"x":{` + x + `,"data_offsets":[0,8]},"y":{` + x + `,"data_offsets":[4,12]}}`, `"y" begins at byte 4, want 8`},
		{"unknown field", `{"x":{` + x + `,"data_offsets":[0,8],"strides":[1]}}`, "unknown field"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := Parse(file(tt.header, 8), Limits{}); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}

	ok := `{"x":{` + x + `,"data_offsets":[0,8]}}`
	if _, err := Parse(file(ok, 8), Limits{}); err != nil {
		t.Fatal(err)
	}
	if _, err := Parse(file(ok, 9), Limits{}); err == nil {
		t.Error("bytes after the tensors were accepted")
	}
	if _, err := Parse(file(ok, 8), Limits{Header: 10}); err == nil || !strings.Contains(err.Error(), "limit of 10") {
		t.Errorf("header limit: %v", err)
	}
	if _, err := Read(bytes.NewReader(file(ok, 8)), Limits{Data: 7}); err == nil || !strings.Contains(err.Error(), "limit of 7") {
		t.Errorf("data limit: %v", err)
	}
	bool2 := file(`{"x":{"dtype":"BOOL","shape":[1],"data_offsets":[0,1]}}`, 1)
	bool2[len(bool2)-1] = 2
	if _, err := Parse(bool2, Limits{}); err == nil || !strings.Contains(err.Error(), "no bool") {
		t.Errorf("a bool of 2: %v", err)
	}
}

// TestTruncated cuts a file at every byte.
func TestTruncated(t *testing.T) {
	raw := encode(t, sample(), sampleMeta)
	for n := range raw {
		if _, err := Parse(raw[:n], Limits{}); err == nil {
			t.Fatalf("the first %d of %d bytes were accepted", n, len(raw))
		}
		if _, err := Read(bytes.NewReader(raw[:n]), Limits{}); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("the first %d of %d bytes: %v", n, len(raw), err)
		}
	}
}

// TestLyingLengths announces far more than follows: it must fail at the end of
// the input, not at the end of memory.
func TestLyingLengths(t *testing.T) {
	header := `{"x":{"dtype":"U8","shape":[60000000000],"data_offsets":[0,60000000000]}}`
	b := append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...)
	if _, err := Read(bytes.NewReader(b), Limits{}); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("60 GB announced: %v", err)
	}
}

// TestPython exchanges a file with the reference implementation.
func TestPython(t *testing.T) {
	if exec.Command("python3", "-c", "import safetensors.numpy").Run() != nil {
		t.Skip("python3 without safetensors")
	}
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
	list := []Entry{{"a", tensor.Float64s(tensor.F32, []int{2, 2}, 1, 2, 3, 4)}, {"b", tensor.Float64s(tensor.F16, []int{1}, 5)}}
	if err := os.WriteFile(in, encode(t, list, sampleMeta), 0o600); err != nil {
		t.Fatal(err)
	}
	code := `import sys; from safetensors.numpy import load_file, save_file; save_file(load_file(sys.argv[1]), sys.argv[2])`
	if b, err := exec.Command("python3", "-c", code, in, out).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, b)
	}
	raw, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	f, err := Parse(raw, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		if got := f.Tensor(e.Name); got == nil || !got.SameBits(e.Tensor) {
			t.Errorf("%s came back as %v", e.Name, got)
		}
	}
}

// FuzzParse looks for panics, and for files that change when they are written
// again.
func FuzzParse(f *testing.F) {
	var b bytes.Buffer
	if err := Write(&b, sample(), sampleMeta); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Fuzz(func(t *testing.T, raw []byte) {
		file, err := Parse(raw, Limits{Header: 1 << 16})
		streamed, err2 := Read(bytes.NewReader(raw), Limits{Header: 1 << 16, Data: 1 << 20})
		if err != nil {
			return
		}
		if err2 != nil {
			t.Fatalf("Parse accepts what Read does not: %v", err2)
		}
		for i, e := range file.Tensors {
			if !e.Tensor.SameBits(streamed.Tensors[i].Tensor) {
				t.Fatalf("%q differs between Parse and Read", e.Name)
			}
		}
		var once, twice bytes.Buffer
		if err := Write(&once, file.Tensors, file.Metadata); err != nil {
			t.Fatal(err)
		}
		again, err := Parse(once.Bytes(), Limits{})
		if err != nil {
			t.Fatalf("cannot read what was written: %v", err)
		}
		if err := Write(&twice, again.Tensors, again.Metadata); err != nil || !bytes.Equal(once.Bytes(), twice.Bytes()) {
			t.Fatalf("written twice the file changes (%v)", err)
		}
	})
}
