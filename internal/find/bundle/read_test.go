package bundle_test

import (
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"plumb/backend"
	"plumb/internal/find/bundle"
	"plumb/internal/judge/compare"
	"plumb/internal/judge/verdict"
	"plumb/program"
	"plumb/tensor"
)

// toy is a finding that needs no backend.
func toy(t testing.TB) *bundle.Finding {
	t.Helper()
	p, err := program.Parse("toy", program.Header+`
case("toy", seed=1)
x = tensor((2,), torch.float32, [1.0, 2.0])
y = torch.tanh(x)
`)
	if err != nil {
		t.Fatal(err)
	}
	outcome := func(v ...float32) *backend.Outcome {
		return &backend.Outcome{Status: backend.OK, Values: []backend.Value{{Tensor: tensor.Of(tensor.F32, []int{2}, v)}}}
	}
	want, got := outcome(0.76, 0.96), outcome(0.76, 0.5)
	return &bundle.Finding{
		Program: p, Job: &backend.Job{Program: p}, Expected: want, Got: got, Test: "toy", Count: 3,
		Verdict:   verdict.Judge(p, want, got, verdict.Policy{}),
		Reference: bundle.Side{Spec: "torch", Info: backend.Info{Name: "torch", Version: "1.13.1"}},
		Candidate: bundle.Side{Spec: "native", Info: backend.Info{Name: "native"}},
	}
}

func written(t testing.TB) *bundle.Bundle {
	t.Helper()
	b, err := bundle.Write(filepath.Join(t.TempDir(), "bundle"), toy(t))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestRoundTrip(t *testing.T) {
	b := written(t)
	if err := b.SetProof(bundle.Proof{State: bundle.Flaky, Runs: 3, Failed: 1}); err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	if err := bundle.WriteZip(&packed, b); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "finding.zip")
	if err := os.WriteFile(file, packed.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{b.Dir, file} {
		again, err := bundle.Read(path)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(again.Files(), b.Files()) {
			t.Errorf("%s: files %v, want %v", path, again.Files(), b.Files())
		}
		for _, name := range b.Files() {
			if !bytes.Equal(again.File(name), b.File(name)) {
				t.Errorf("%s: %s is not what was written", path, name)
			}
		}
		f, err := again.Finding()
		if err != nil {
			t.Fatal(err)
		}
		if f.Program.String() != toy(t).Program.String() || f.Verdict.Reason != toy(t).Verdict.Reason || f.Count != 3 || f.Candidate.Spec != "native" {
			t.Errorf("%s: the finding is %+v", path, f)
		}
		if p := again.Proof(); p == nil || p.String() != "flaky 1/3" {
			t.Errorf("%s: the proof is %v", path, p)
		}
	}
}

// TestDamage: every file that is missing, cut short or has one bit flipped
// makes the bundle an error that names the file.
func TestDamage(t *testing.T) {
	b := written(t)
	for _, name := range b.Files() {
		if name == "go.mod" || name == "go.sum" { // there to be edited
			continue
		}
		path, whole := filepath.Join(b.Dir, name), b.File(name)
		damages := map[string][]byte{"cut": whole[:len(whole)/2], "longer": append(slices.Clone(whole), ' '), "empty": {}}
		for i := 0; i < len(whole); i += max(1, len(whole)/40) {
			flipped := slices.Clone(whole)
			flipped[i] ^= 1
			damages["flipped "+string(rune('a'+i%26))] = flipped
		}
		for how, data := range damages {
			if err := os.WriteFile(path, data, 0o644); err != nil {
				t.Fatal(err)
			}
			if _, err := bundle.Read(b.Dir); err == nil || !strings.Contains(err.Error(), "finding.json") && !strings.Contains(err.Error(), name) && !strings.Contains(err.Error(), "newer") {
				t.Errorf("%s %s: %v", name, how, err)
			}
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if _, err := bundle.Read(b.Dir); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("without %s: %v", name, err)
		}
		if err := os.WriteFile(path, whole, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := bundle.Read(b.Dir); err != nil {
		t.Errorf("mended: %v", err)
	}
}

func TestNewerFormat(t *testing.T) {
	b := written(t)
	text := regexp.MustCompile(`"format": 1`).ReplaceAll(b.File("finding.json"), []byte(`"format": 9, "place": "elsewhere"`))
	if err := os.WriteFile(filepath.Join(b.Dir, "finding.json"), text, 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := bundle.Read(b.Dir)
	if err == nil || !strings.Contains(err.Error(), "format 9") || !strings.Contains(err.Error(), "update Plumb") {
		t.Errorf("a bundle of a newer format: %v", err)
	}
}

func TestNoBundle(t *testing.T) {
	dir := t.TempDir()
	notes := filepath.Join(dir, "notes.txt")
	if err := os.WriteFile(notes, []byte("nothing"), 0o644); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{dir: "no finding.json", notes: "neither a folder nor a zip file", filepath.Join(dir, "none"): "no such file"} {
		if _, err := bundle.Read(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}

// TestWriteKeepsAWholeBundle: a bundle that cannot be written leaves nothing,
// and the earlier one where it was.
func TestWriteKeepsAWholeBundle(t *testing.T) {
	b := written(t)
	before := b.File("finding.json")
	full := errors.New("no space left on device")
	for stop := range len(b.Files()) {
		n := 0
		err := b.WriteWith(b.Dir, func(path string, data []byte, mode os.FileMode) error {
			if n == stop {
				_ = os.WriteFile(path, data[:len(data)/2], mode)
				return full
			}
			n++
			return os.WriteFile(path, data, mode)
		})
		if !errors.Is(err, full) {
			t.Errorf("file %d: %v", stop, err)
		}
		if again, err := bundle.Read(b.Dir); err != nil || !bytes.Equal(again.File("finding.json"), before) {
			t.Errorf("file %d: the earlier bundle: %v", stop, err)
		}
		left, err := os.ReadDir(filepath.Dir(b.Dir))
		if err != nil || len(left) != 1 {
			t.Errorf("file %d: left behind: %v, %v", stop, left, err)
		}
	}
	f := toy(t)
	f.Count = 44
	if _, err := bundle.Write(b.Dir, f); err != nil {
		t.Fatal(err)
	}
	again, err := bundle.Read(b.Dir)
	if err != nil || bytes.Equal(again.File("finding.json"), before) {
		t.Errorf("a bundle is not replaced by a new one: %v", err)
	}
	if left, _ := os.ReadDir(filepath.Dir(b.Dir)); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
}

func TestWriteSaysWhy(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := bundle.Write(filepath.Join(file, "bundle"), toy(t)); err == nil || !strings.Contains(err.Error(), "was not written") {
		t.Errorf("below a file: %v", err)
	}
	aligned := toy(t)
	aligned.Verdict = &verdict.Verdict{Word: verdict.Aligned}
	if _, err := bundle.Write(filepath.Join(t.TempDir(), "b"), aligned); err == nil || !strings.Contains(err.Error(), "no finding") {
		t.Errorf("an aligned verdict: %v", err)
	}
}

// TestJudgeByElementWiseLimit: the element-wise part of a limit survives.
func TestJudgeByElementWiseLimit(t *testing.T) {
	f := toy(t)
	f.Verdict.Differences[0].Limit = compare.Limit{Class: "accumulating", Unit: 0x1p-24, Error: tensor.Of(tensor.F64, []int{2}, []float64{1, 1 << 20})}
	b, err := bundle.Write(filepath.Join(t.TempDir(), "bundle"), f)
	if err != nil {
		t.Fatal(err)
	}
	if b, err = bundle.Read(b.Dir); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		got  []float32
		want bool
	}{{[]float32{0.76, 0.5}, true}, {[]float32{0.76, 0.9}, false}, {[]float32{0.77, 0.96}, true}, {[]float32{0.76, 0.96}, false}} {
		o := &backend.Outcome{Status: backend.OK, Values: []backend.Value{{Tensor: tensor.Of(tensor.F32, []int{2}, c.got)}}}
		if r, err := b.Judge(o); err != nil || r.Misaligned != c.want {
			t.Errorf("%v: %+v, %v", c.got, r, err)
		}
	}
}

// FuzzRead: no bytes make Read, or what is done with a bundle, panic.
func FuzzRead(f *testing.F) {
	b := written(f)
	pack := func(files map[string][]byte) []byte {
		var out bytes.Buffer
		z := zip.NewWriter(&out)
		for _, name := range slices.Sorted(maps.Keys(files)) {
			w, err := z.Create(name)
			if err != nil {
				f.Fatal(err)
			}
			if _, err := w.Write(files[name]); err != nil {
				f.Fatal(err)
			}
		}
		if err := z.Close(); err != nil {
			f.Fatal(err)
		}
		return out.Bytes()
	}
	files := map[string][]byte{}
	for _, name := range b.Files() {
		files[name] = b.File(name)
	}
	f.Add([]byte("finding"), false, pack(files))
	f.Add(b.File("finding.json"), true, b.File("expected.safetensors"))
	f.Add([]byte(`{"format": 1, "files": {}}`), true, b.File("expected.safetensors"))
	f.Fuzz(func(t *testing.T, manifest []byte, resealed bool, other []byte) {
		var all []byte
		if !resealed {
			all = other
		} else {
			changed := maps.Clone(files)
			changed["expected.safetensors"] = other
			changed["finding.json"] = bundle.Reseal(manifest, changed)
			all = pack(changed)
		}
		b, err := bundle.ReadZip(bytes.NewReader(all), int64(len(all)))
		if resealed && bytes.Equal(manifest, files["finding.json"]) && bytes.Equal(other, files["expected.safetensors"]) && err != nil {
			t.Fatal(err) // the fuzzer gets past the checksums
		}
		if err != nil {
			return
		}
		_, _ = b.Finding()
		_, _ = b.Limit()
		_ = b.Title()
		_, _ = b.Judge(&backend.Outcome{Status: backend.OK, Values: toy(t).Got.Values})
		_ = bundle.WriteZip(io.Discard, b)
	})
}
