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
			if err := table.Add(&Margin{Op: name, DType: dtype, Part: part, Class: class, Ratio: compare.Number(ratio(i)), At: Place{Test: "a.py::test", Case: i, Candidate: "native", Name: "y"}}); err != nil {
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
// above it, 1/4 where the bins are joined; the maximum is exact.
func TestQuantile(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, draw := range []func() float64{
		func() float64 { return least + r.Float64() },
		func() float64 { return math.Exp2(r.Float64()*15 - 12) },
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
				if got := h.quantile(q); !(got >= exact && got <= exact*(1+float64(int(1)<<h.joins)/32)) {
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
	if got := h.quantile(0.5); !(got >= 1e-200 && got < 1e-3) {
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

// table reads files into one.
func table(t *testing.T, paths ...string) *Table {
	t.Helper()
	all := &Table{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := all.Read(path, bytes.NewReader(text)); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// written returns the file of a table.
func written(t *testing.T, table *Table) string {
	t.Helper()
	var b strings.Builder
	if err := table.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
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
	if diff := cmp.Diff(written(t, &w.table), written(t, table(t, path))); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "file.jsonl", text)
}

// TestMergeIsExact: however comparisons are split among runs, and in whatever
// order they and the files of the runs come, the merged file is the same.
func TestMergeIsExact(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	classes := []op.Class{"", op.Exact, op.Pointwise, op.Accumulating}
	for range 50 {
		all := make([]Margin, 1+r.IntN(2000))
		spread := r.Float64() * 20
		for i := range all {
			ratio := math.Exp2(3 - r.Float64()*spread)
			if r.IntN(4) == 0 {
				ratio = math.Floor(ratio)
			}
			all[i] = Margin{
				Op: fmt.Sprint("torch.op", r.IntN(3)), DType: "float32", Part: backend.PartValue, Class: classes[r.IntN(4)],
				Ratio: compare.Number(ratio), At: Place{Test: "t", Case: r.IntN(9), Candidate: "native", Name: "y"},
			}
		}
		want := ""
		for range 4 {
			r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			merged := &Table{}
			for rest := all; len(rest) > 0; {
				n := 1 + r.IntN(len(rest))
				part := &Table{}
				for i := range n {
					if err := part.Add(&rest[i]); err != nil {
						t.Fatal(err)
					}
				}
				if err := merged.Read("part", strings.NewReader(written(t, part))); err != nil {
					t.Fatal(err)
				}
				rest = rest[n:]
			}
			got := written(t, merged)
			if want == "" {
				want = got
			}
			if got != want || merged.Count() != len(all) {
				t.Fatalf("%d of %d comparisons\n%s", merged.Count(), len(all), cmp.Diff(want, got))
			}
		}
	}
}

// TestFileIsSmall: 13,000 groups, more than there are in a run of every
// operator, each with as many bins as it can have.
func TestFileIsSmall(t *testing.T) {
	const groups, count = 13_000, 2000
	full := &Table{}
	for i := range count {
		m := Margin{
			Op: "torch.nn.functional.cross_entropy", DType: "complex64", Part: backend.PartParamGrad, Class: op.Accumulating,
			Ratio: compare.Number(math.Exp2(4 - 20*float64(i)/count)), At: Place{Test: "ops/torch.nn.functional.cross_entropy::test_alias", Case: i, Candidate: "native", Name: "v"},
		}
		if err := full.Add(&m); err != nil {
			t.Fatal(err)
		}
	}
	if line := written(t, full); len(line)*groups > 8<<20 {
		t.Errorf("%d bytes of a group are %d of a file\n%s", len(line), len(line)*groups, line)
	}
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
	if got := table(t, path).Count(); got != 10_000*len(Of(record())) {
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
	w.Add(record())
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
	good := `{"op":"torch.exp","part":"value","dtype":"float32","clean":[""],"count":2,"max":0,"join":1,"bins":[2]}` + "\n"
	with := func(old, text string) string { return good + strings.Replace(good, old, text, 1) }
	for _, tt := range []struct{ text, want string }{
		{"", ""},
		{"\n \r\n" + good, ""},
		{strings.TrimSuffix(good, "\n"), ""},
		{with(`"op"`, `"new":[1],"op"`), ""},
		{with(`"max":0,"join":1,"bins":[2]`, `"over":1,"max":"inf","join":4,"bins":[-100,1,-27,1]`), ""},
		{good + "{\n", "m:2: unexpected end of JSON input"},
		{good + "\n[1]", "m:3: json: cannot unmarshal array"},
		{with(`"count":2,`, ``), `m:2: "count" is missing or 0`},
		{with(`"count":2`, `"count":-2`), `m:2: "count" is missing or -2`},
		{with(`"count":2`, `"count":9007199254740993`), `m:2: "count" is missing or 9007199254740993`},
		{with(`"part":"value",`, ``), `m:2: "part" is missing`},
		{with(`"clean":[""],`, ``), `m:2: "erring" and "clean" are missing`},
		{with(`"max":0`, `"max":-0.5`), `m:2: "max" is -0.5`},
		{with(`"max":0`, `"max":"nan"`), `m:2: "max" is nan`},
		{with(`"max":0`, `"max":"wide"`), `m:2: "wide" is not a number`},
		{with(`"max":0`, `"max":1e999`), `m:2: `},
		{with(`"max":0`, `"max":0.5`), `m:2: "bins" do not sum up`},
		{with(`"max":0`, `"max":0,"over":1`), `m:2: "over" is 1 of 2`},
		{with(`"join":1`, `"join":16`), `m:2: "join" is 16`},
		{with(`"join":1`, `"join":3`), `m:2: "join" is 3`},
		{with(`[2]`, `[1]`), `m:2: "bins" do not sum up`},
		{with(`[2]`, `[3]`), `m:2: "bins": 3 comparisons in a bin, with 2 of 2 left`},
		{with(`[2]`, `[2,0]`), `m:2: "bins": 0 comparisons in a bin, with 0 of 2 left`},
		{with(`[2]`, `[-513,2]`), `m:2: "bins" has more than 513 bins`},
		{with(`[2]`, `[1,-512,1]`), `m:2: "bins" has more than 513 bins`},
		{with(`[2]`, `[-9223372036854775808,2]`), `m:2: "bins" has more than 513 bins`},
		{with(`torch.exp`, strings.Repeat("x", maxText+1)), "m:2: a name is longer than 256 bytes"},
		{with(`"op"`, `"test":"`+strings.Repeat("x", maxLine)+`","op"`) + good, "m:2: the line is longer than 16384 bytes"},
		{strings.ReplaceAll(good+good, "2", "9007199254740992"), "m:2: more than 9007199254740992 comparisons"},
	} {
		err := new(Table).Read("m", strings.NewReader(tt.text))
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("%.60q: %v", tt.text, err)
		case tt.want != "" && (err == nil || !strings.HasPrefix(err.Error(), tt.want)):
			t.Errorf("%.150q: %v\nwant %s", tt.text, err, tt.want)
		}
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
	text := strings.Repeat(`{"part":"value","clean":[""],"count":1,"max":0,"join":1,"bins":[1]}`+"\n", 2)
	err := new(Table).Read("m", brokenReader{strings.NewReader(text)})
	if err == nil || err.Error() != "m:3: disk on fire" {
		t.Errorf("%v", err)
	}
}

// FuzzRead: any bytes give rows within bounds or an error that names the file
// and a line; what was read can be printed, and written and read again.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"op":"torch.exp","part":"value","dtype":"float32","erring":["pointwise"],"count":1,"max":0.5,"at":{"name":"y"},"join":1,"bins":[-384,1]}` + "\n"))
	f.Add([]byte(`{"part":"grad","clean":[""],"count":3,"over":1,"max":"inf","join":8,"bins":[1,-5,1,-57,1]}` + "\n\n{}"))
	f.Add([]byte("{\"part\":\"\\u0000\\n\",\"clean\":[\"\"],\"count\":1,\"max\":5e-324,\"join\":2,\"bins\":[-16,1]}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		got := &Table{}
		err := got.Read("m", bytes.NewReader(text))
		line := 0
		if _, scan := fmt.Sscanf(fmt.Sprint(err), "m:%d: ", &line); err != nil && (scan != nil || line < 1 || line > 1+bytes.Count(text, []byte("\n"))) {
			t.Fatalf("the error names no line of the file: %v", err)
		}
		file, again := written(t, got), &Table{}
		if err := again.Read("again", strings.NewReader(file)); err != nil || again.Count() != got.Count() {
			t.Fatalf("%d comparisons, read again %d: %v", got.Count(), again.Count(), err)
		}
		rows := got.Rows()
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
