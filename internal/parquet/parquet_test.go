package parquet

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write testdata/table.parquet anew: read it with pyarrow before it is kept")

var columns = []Column{
	{"int", Int64, false}, {"uint", Uint64, false}, {"float", Float64, true}, {"text", String, false}, {"note", String, true}, {"time", Time, false},
}

// row is a row of a table that has every type, nulls, and the ends of ranges.
func row(i int) []any {
	out := []any{int64(i) - 5, uint64(i), float64(i) / 3, strings.Repeat("é\x00,\"\n", i%4), "n", time.UnixMilli(1_800_000_000_123 + int64(i)).UTC()}
	switch i % 11 {
	case 1:
		out[0], out[1], out[2], out[4] = int64(math.MinInt64), uint64(math.MaxUint64), math.Inf(-1), nil
	case 4:
		out[2], out[4] = nil, ""
	case 9:
		out[2] = math.NaN()
	}
	return out
}

func table(t *testing.T, rows int, codec int32) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := NewWriter(&b, columns)
	if err != nil {
		t.Fatal(err)
	}
	w.codec = codec
	for i := range rows {
		if err := w.Write(row(i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestBytes holds what is written to a file that pyarrow was seen to read as it is
// (TestReader): every type, with nulls. Its pages are as they are, so that another
// version of the compressor may write other bytes.
func TestBytes(t *testing.T) {
	path := filepath.Join("testdata", "table.parquet")
	got := table(t, 23, codecNone)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%d bytes are not those %d of %s", len(got), len(want), path)
	}
}

// TestReader lets pyarrow read a table of several groups of rows, compressed, and
// the table of TestBytes: each value is as it was written.
func TestReader(t *testing.T) {
	python := os.Getenv("PLUMB_READERS")
	if python == "" {
		python = "python3"
	}
	if exec.Command(python, "-c", "import pyarrow.parquet").Run() != nil {
		t.Skip("needs Python's pyarrow: PLUMB_READERS names a Python that has it")
	}
	tables := []struct {
		rows, groups int
		codec        int32
	}{{0, 0, codecZstandard}, {23, 1, codecNone}, {groupRows + 9, 2, codecZstandard}}
	args := []string{"-c", `import json, sys, pyarrow.parquet as pq
for path in sys.argv[1:]:
    f = pq.ParquetFile(path)
    t = f.read()
    t.validate(full=True)
    print(json.dumps([f.num_row_groups, [str(c.type) + ('' if c.nullable else ' required') for c in t.schema], [c.null_count for c in t.columns]]))
    for row in t.slice(max(0, t.num_rows - 50)).to_pylist():
        row['time'] = row['time'].isoformat()
        row['float'] = repr(row['float'])
        print(json.dumps(list(row.values())))
    print()`}
	for i, tt := range tables {
		args = append(args, filepath.Join(t.TempDir(), "t.parquet"))
		if err := os.WriteFile(args[2+i], table(t, tt.rows, tt.codec), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.Command(python, args...).Output()
	if err != nil {
		t.Fatalf("%v: %s", err, errorOf(err))
	}
	read := strings.Split(strings.TrimSpace(string(out)), "\n\n")
	if len(read) != len(tables) {
		t.Fatalf("%d tables are read", len(read))
	}
	for i, tt := range tables {
		lines := strings.Split(read[i], "\n")
		nulls := [6]int{}
		for i := range tt.rows {
			for j, v := range row(i) {
				if v == nil {
					nulls[j]++
				}
			}
		}
		want, _ := json.Marshal([]any{tt.groups, []string{"int64 required", "uint64 required", "double", "string required", "string", "timestamp[ms, tz=UTC] required"}, nulls})
		if got := strings.ReplaceAll(lines[0], ", ", ","); got != strings.ReplaceAll(string(want), ", ", ",") {
			t.Errorf("%d rows: %s, want %s", tt.rows, got, want)
		}
		first := max(0, tt.rows-50)
		if len(lines)-1 != tt.rows-first {
			t.Fatalf("%d rows: %d are read", tt.rows, len(lines)-1)
		}
		for i, line := range lines[1:] {
			var got []any
			d := json.NewDecoder(strings.NewReader(line))
			d.UseNumber()
			if err := d.Decode(&got); err != nil {
				t.Fatal(err)
			}
			if err := same(got, row(first+i)); err != nil {
				t.Errorf("row %d: %v: %s", first+i, err, line)
			}
		}
	}
}

// same holds a row as Python prints it to one as it was written.
func same(got, want []any) error {
	for i, v := range want {
		text, _ := json.Marshal(v)
		switch v := v.(type) {
		case nil:
			text = []byte("null")
			if columns[i].Type == Float64 {
				text = []byte(`"None"`)
			}
		case time.Time:
			text, _ = json.Marshal(v.Format("2006-01-02T15:04:05.000000-07:00"))
		case float64:
			var read float64
			if err := json.Unmarshal([]byte(strings.NewReplacer("nan", "0", "-inf", "0").Replace(got[i].(string))), &read); err != nil {
				return err
			}
			switch {
			case math.IsNaN(v) && got[i] == "nan", math.IsInf(v, -1) && got[i] == "-inf", read == v:
				continue
			}
			return errors.New(columns[i].Name)
		}
		if read, _ := json.Marshal(got[i]); !bytes.Equal(read, text) {
			return errors.New(columns[i].Name)
		}
	}
	return nil
}

func errorOf(err error) []byte {
	var e *exec.ExitError
	if errors.As(err, &e) {
		return e.Stderr
	}
	return nil
}

type broken struct{ room int }

func (b *broken) Write(p []byte) (int, error) {
	if b.room -= len(p); b.room < 0 {
		return 0, errors.New("no room")
	}
	return len(p), nil
}

// TestRefusals: what does not fit the columns, and what cannot be written, is an error.
func TestRefusals(t *testing.T) {
	for _, tt := range []struct {
		row  []any
		want string
	}{
		{[]any{int64(1), nil}, ""},
		{[]any{int64(1)}, "1 values in a row of 2 columns"},
		{[]any{"1", nil}, "column a has a value of type string"},
		{[]any{nil, int64(1)}, "column a has a value of type <nil>"},
		{[]any{int64(1), 1}, "column b has a value of type int"},
	} {
		w, err := NewWriter(&bytes.Buffer{}, []Column{{"a", Int64, false}, {"b", Int64, true}})
		if err == nil {
			err = w.Write(tt.row)
		}
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v: %v", tt.row, err)
		}
	}
	whole := len(table(t, 23, codecNone))
	for room := range whole {
		w, err := NewWriter(&broken{room}, columns)
		for i := 0; i < 23 && err == nil; i++ {
			err = w.Write(row(i))
		}
		if err == nil {
			w.codec = codecNone
			err = w.Close()
		}
		if err == nil {
			t.Fatalf("%d of %d bytes are enough", room, whole)
		}
	}
}
