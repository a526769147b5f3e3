package margins

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plumb/backend"
	"plumb/internal/judge/compare"
	"plumb/internal/judge/verdict"
	"plumb/op"
	"plumb/program"
)

var update = flag.Bool("update", false, "rewrite testdata")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (go test ./margins -update writes it)", err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s: -want +got\n%s", path, diff)
	}
}

// sample is a table with a row of every kind.
func sample(t *testing.T) *Table {
	t.Helper()
	table := &Table{}
	add := func(name, dtype string, part backend.Part, class op.Class, n int, ratio func(i int) float64) {
		for i := range n {
			if err := table.Add(&Margin{Op: name, DType: dtype, Part: part, Class: class, Ratio: compare.Number(ratio(i))}); err != nil {
				t.Fatal(err)
			}
		}
	}
	always := func(v float64) func(int) float64 { return func(int) float64 { return v } }
	once := func(at int, v, rest float64) func(int) float64 {
		return func(i int) float64 {
			if i == at {
				return v
			}
			return rest
		}
	}
	add("torch.sum", "float32", backend.PartValue, op.Accumulating, 200, func(i int) float64 { return float64(i) / 1000 })
	add("torch.sum", "float32", backend.PartGrad, "", 200, once(7, 0.85, 0.01))
	add("torch.sum", "float16", backend.PartValue, op.Accumulating, 150, func(i int) float64 { return float64(i) / 250 })
	add("torch.exp", "float32", backend.PartValue, op.Pointwise, 300, always(1.0/3))
	add("torch.exp", "float64", backend.PartValue, "", 120, always(0.004))
	add("torch.exp", "float64", backend.PartGrad, "", 40, always(0.004))
	add("torch.mul", "float32", backend.PartValue, op.Pointwise, 100, always(0))
	add("torch.mul", "float32", backend.PartGrad, op.Pointwise, 50, always(0))
	add("torch.mul", "float32", backend.PartGrad, op.Accumulating, 60, always(0.1))
	add("torch.flatten", "float32", backend.PartValue, op.Exact, 500, always(0))
	add("torch.argmax", "int64", backend.PartValue, op.Exact, 500, once(3, math.Inf(1), 0))
	add("torch.nn.Linear", "float32", backend.PartParamGrad, "", 500, once(3, 2.5, 0.1))
	add("", "float32", backend.PartValue, "", 3, always(0.2))
	return table
}

func TestTable(t *testing.T) {
	rows := sample(t).Rows()
	var text, machine bytes.Buffer
	if err := errors.Join(Print(&text, rows), JSON(&machine, rows)); err != nil {
		t.Fatal(err)
	}
	golden(t, "table.txt", text.Bytes())
	golden(t, "table.jsonl", machine.Bytes())
}

func TestSuggest(t *testing.T) {
	rows := sample(t).Rows()
	Suggest(rows, DefaultSafety)
	var text, machine bytes.Buffer
	if err := errors.Join(Print(&text, rows), JSON(&machine, rows)); err != nil {
		t.Fatal(err)
	}
	golden(t, "suggest.txt", text.Bytes())
	golden(t, "suggest.jsonl", machine.Bytes())
}

func TestPrintNothing(t *testing.T) {
	var b bytes.Buffer
	if err := Print(&b, nil); err != nil || !strings.Contains(b.String(), "0 comparisons") {
		t.Errorf("%v\n%s", err, &b)
	}
}

func TestPrintQuotesControlCharacters(t *testing.T) {
	var b bytes.Buffer
	rows := []Row{{Op: "a\tb\n\x1b[31m", DType: "x\x07", Part: "p\r", Class: "c\x00", Count: 1}}
	if err := Print(&b, rows); err != nil || strings.ContainsAny(b.String(), "\t\x1b\x07\r\x00") || strings.Count(b.String(), "\n") != 7 {
		t.Errorf("%v\n%q", err, &b)
	}
}

// TestQuantile: a quantile is never below the exact one, and at most 1/32
// above it; the maximum is exact.
func TestQuantile(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, draw := range []func() float64{
		r.Float64,
		func() float64 { return math.Exp2(r.Float64()*40 - 28) },
		func() float64 { return math.Floor(r.Float64()*4) / 3 },
		func() float64 { return 0 },
		func() float64 { return math.Inf(1) },
		func() float64 { return 1 / math.Floor(r.Float64()*3) },
	} {
		for _, n := range []int{1, 2, 99, 1000} {
			var h hist
			all := make([]float64, n)
			for i := range all {
				all[i] = draw()
				h.add(all[i])
			}
			slices.Sort(all)
			for _, q := range []float64{0, 0.5, 0.99, 1} {
				exact := all[max(int(math.Ceil(q*float64(n)))-1, 0)]
				if got := h.quantile(q); !(got >= exact && got <= exact*(1+1.0/32)) {
					t.Errorf("quantile %g of %d: %v, exactly %v", q, n, got, exact)
				}
			}
			if h.max != all[n-1] || h.count != n {
				t.Errorf("max %v of %d, want %v of %d", h.max, h.count, all[n-1], n)
			}
		}
	}
}

// TestQuantileBeyondItsBins: what is too small or too large for a bin is still
// bounded.
func TestQuantileBeyondItsBins(t *testing.T) {
	var h hist
	for _, v := range []float64{1e-300, 1e-200, 1e9, 1e300} {
		h.add(v)
	}
	if got := h.quantile(0.5); !(got >= 1e-200 && got < 1e-9) {
		t.Errorf("the lower half is below %v", got)
	}
	if got := h.quantile(0.75); got != 1e300 {
		t.Errorf("three quarters are below %v", got)
	}
}

func TestTableIsBounded(t *testing.T) {
	table := &Table{}
	var err error
	for i := 0; err == nil && i <= maxGroups; i++ {
		err = table.Add(&Margin{Op: fmt.Sprint(i)})
	}
	if err == nil || table.Count() != maxGroups {
		t.Errorf("%d groups, error %v", table.Count(), err)
	}
	if err := table.Add(&Margin{Op: "7"}); err != nil {
		t.Errorf("a known group: %v", err)
	}
}

// record is a judged case with one margin of each kind.
func record() *verdict.Record {
	x, m := program.Ref("x"), program.Ref("m")
	return &verdict.Record{
		Test: "a.py::test_<x>", Index: 3, Candidate: "native",
		Program: &program.Program{Calls: []program.Call{
			{Result: "m", Target: "torch.nn.Linear", Args: []any{int64(2), int64(3)}},
			{Result: "e", Target: "Module.eval", Args: []any{m}},
			{Result: "y", Target: "Module.__call__", Args: []any{program.Ref("e"), x}},
			{Result: "z", Target: "torch.add", Args: []any{program.Ref("y"), program.Ref("w")}, Kwargs: []program.Kwarg{{Name: "out", Value: program.Ref("w")}}},
			{Result: "u", Target: "torch.cat", Args: []any{program.List{program.Ref("b"), program.Ref("z")}}},
			{Result: "v", Target: "torch.exp", Args: []any{program.Ref("b")}},
		}},
		Verdict: &verdict.Verdict{Margins: []verdict.Margin{
			{Part: backend.PartValue, Call: 2, Name: "y", Target: "torch.nn.Linear", DType: "float32", Class: op.Accumulating, Ratio: 0.25},
			{Part: backend.PartGrad, Call: 6, Name: "x", DType: "float32", Ratio: compare.Number(math.Inf(1))},
			{Part: backend.PartGrad, Call: 6, Name: "w", DType: "float32", Ratio: 0},
			{Part: backend.PartGrad, Call: 6, Name: "b", DType: "float64", Ratio: 1e-9},
			{Part: backend.PartGrad, Call: 6, Name: "unused", DType: "float64", Ratio: 0},
		}},
	}
}

func TestOperatorOfAGradient(t *testing.T) {
	var got []string
	for _, m := range Of(record()) {
		got = append(got, m.Op)
	}
	want := []string{"torch.nn.Linear", "torch.nn.Linear", "torch.add", several, ""}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func read(t *testing.T, path string) []Margin {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var all []Margin
	err = Read(path, bytes.NewReader(text), func(m *Margin) error { all = append(all, *m); return nil })
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestWriteAndRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b", "m.jsonl")
	w, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w.Add(record())
	w.Add(record())
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	want := append(Of(record()), Of(record())...)
	if diff := cmp.Diff(want, read(t, path)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := bytes.Cut(text, []byte("\n"))
	golden(t, "line.json", append(first, '\n'))
}

// TestFileIsReplacedAtOnce: until Close the file before is there, whole, and
// after it nothing else is left in its directory.
func TestFileIsReplacedAtOnce(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "m.jsonl")
	if err := os.WriteFile(path, []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	w, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	for range 10_000 {
		w.Add(record())
	}
	if text, _ := os.ReadFile(path); string(text) != "before" {
		t.Errorf("before Close the file holds %d bytes", len(text))
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if got := len(read(t, path)); got != 10_000*len(Of(record())) {
		t.Errorf("%d margins", got)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("%d files, %v", len(entries), err)
	}
}

// TestFailedWriteKeepsTheFileBefore closes the file under the writer.
func TestFailedWriteKeepsTheFileBefore(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "m.jsonl")
	if err := os.WriteFile(path, []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	w, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.file.Close(); err != nil {
		t.Fatal(err)
	}
	for range 10_000 {
		w.Add(record())
	}
	if w.err == nil {
		t.Error("no error while writing")
	}
	if err := w.Close(); err == nil {
		t.Error("no error from Close")
	}
	if text, _ := os.ReadFile(path); string(text) != "before" {
		t.Errorf("the file holds %d bytes", len(text))
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("%d files are left", len(entries))
	}
}

func TestCreateWhereNothingCanBe(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(file, "m.jsonl"), t.TempDir()} {
		if w, err := Create(path); err == nil {
			t.Errorf("%s: no error, %v", path, w.Close())
		}
	}
}

func TestReadErrors(t *testing.T) {
	good := `{"op":"torch.exp","part":"value","dtype":"float32","ratio":0.5}` + "\n"
	for _, tt := range []struct{ text, want string }{
		{"", ""},
		{"\n \r\n" + good, ""},
		{strings.TrimSuffix(good, "\n"), ""},
		{`{"part":"value","ratio":"inf","new":[1]}`, ""},
		{good + "{\n", "m:2: unexpected end of JSON input"},
		{good + "\n[1]", "m:3: json: cannot unmarshal array"},
		{good + good + `{"part":"value"}`, `m:3: "ratio" is missing`},
		{`{"ratio":1}`, `m:1: "part" is missing`},
		{`{"part":"value","ratio":-0.5}`, `m:1: "ratio" is -0.5`},
		{`{"part":"value","ratio":"nan"}`, `m:1: "ratio" is nan`},
		{`{"part":"value","ratio":"wide"}`, `m:1: "wide" is not a number`},
		{`{"part":"value","ratio":1e999}`, `m:1: `},
		{good + `{"part":"value","ratio":1,"op":"` + strings.Repeat("x", maxText+1) + `"}`, "m:2: a name is longer than 256 bytes"},
		{good + `{"part":"value","ratio":1,"test":"` + strings.Repeat("x", maxLine) + `"}` + "\n" + good, "m:2: the line is longer than 65536 bytes"},
	} {
		err := Read("m", strings.NewReader(tt.text), func(*Margin) error { return nil })
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("%.60q: %v", tt.text, err)
		case tt.want != "" && (err == nil || !strings.HasPrefix(err.Error(), tt.want)):
			t.Errorf("%.60q: %v\nwant %s", tt.text, err, tt.want)
		}
	}
}

func TestReadNamesTheLineOfARefusal(t *testing.T) {
	full := errors.New("full")
	n := 0
	err := Read("m", strings.NewReader(strings.Repeat(`{"part":"value","ratio":1}`+"\n", 5)), func(*Margin) error {
		if n++; n == 4 {
			return full
		}
		return nil
	})
	if !errors.Is(err, full) || !strings.HasPrefix(err.Error(), "m:4: ") || n != 4 {
		t.Errorf("%v after %d", err, n)
	}
}

type brokenReader struct{ r io.Reader }

func (b brokenReader) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if err != nil {
		err = errors.New("disk on fire")
	}
	return n, err
}

func TestReadOfABrokenFile(t *testing.T) {
	text := strings.Repeat(`{"part":"value","ratio":1}`+"\n", 2)
	err := Read("m", brokenReader{strings.NewReader(text)}, func(*Margin) error { return nil })
	if err == nil || err.Error() != "m:3: disk on fire" {
		t.Errorf("%v", err)
	}
}

// FuzzRead: any bytes give margins within bounds or an error that names the
// file and a line; what was read can be tabled, printed and read again.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"op":"torch.exp","part":"value","dtype":"float32","class":"pointwise","ratio":0.5,"name":"y"}` + "\n"))
	f.Add([]byte(`{"part":"grad","ratio":"inf"}` + "\n\n{}"))
	f.Add([]byte("{\"part\":\"\\u0000\\n\",\"ratio\":5e-324}\n{\"part\":\"value\",\"ratio\":1e308}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		table, all := &Table{}, []Margin(nil)
		err := Read("m", bytes.NewReader(text), func(m *Margin) error {
			all = append(all, *m)
			return table.Add(m)
		})
		line := 0
		if _, scan := fmt.Sscanf(fmt.Sprint(err), "m:%d: ", &line); err != nil && (scan != nil || line < 1 || line > 1+bytes.Count(text, []byte("\n"))) {
			t.Fatalf("the error names no line of the file: %v", err)
		}
		if table.Count() != len(all) {
			t.Fatalf("%d of %d margins in the table", table.Count(), len(all))
		}
		rows := table.Rows()
		Suggest(rows, DefaultSafety)
		if err := errors.Join(Print(io.Discard, rows), JSON(io.Discard, rows)); err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			if !(0 <= r.P50 && r.P50 <= r.P99 && r.P99 <= r.Max) || r.Over > r.Count {
				t.Fatalf("%+v", r)
			}
		}
	})
}
